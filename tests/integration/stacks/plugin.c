/* plugin.c: compiled with frames of different size (FRAME), for objects that take turns at one address; and twice with
 * the same, so that all their addresses are equal and only the object is another (NAME). */
#include <stddef.h>
#include <stdlib.h>

void plugin_allocate(void (*pair)(size_t), int depth);

__attribute__((noinline, noclone)) void plugin_allocate(void (*pair)(size_t), int depth)
{
    volatile char room[FRAME];
    room[depth] = 1;
    pair(8 + (size_t)depth);
    if (depth > 0)
        plugin_allocate(pair, depth - 1);
    pair(16);
    room[0] = room[depth];
}

extern const char plugin_name[];
const char plugin_name[] = NAME;

/* Under dlopen and dlclose: ld.so is on the stack. */
static void *block;

__attribute__((constructor)) static void comes(void)
{
    block = malloc(FRAME);
}

__attribute__((destructor)) static void goes(void)
{
    free(block);
    block = malloc(FRAME);
    free(block);
}
