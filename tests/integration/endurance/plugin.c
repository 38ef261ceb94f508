/* plugin.c: a library that allocates, for endurance.c. */
#include <stdlib.h>

void *plugin_allocate(size_t size);

__attribute__((noinline)) static void *below(size_t size)
{
    void *block = malloc(size);
    __asm__ volatile("");
    return block;
}

void *plugin_allocate(size_t size)
{
    void *block = below(size);
    __asm__ volatile("");
    return block;
}
