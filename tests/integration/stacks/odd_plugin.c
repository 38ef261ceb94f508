/* odd_plugin.c: frames of every kind of rule, for odd.c; compiled with unwind tables and without. */
#include <alloca.h>
#include <stddef.h>

#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

void *odd_descend(void *(*allocate)(size_t), int depth);

__attribute__((noinline, noclone)) static void *with_room(void *(*allocate)(size_t), int depth)
{
    char *room = alloca(16 + (size_t)depth * 8);
    KEEP(room);
    void *block = odd_descend(allocate, depth - 1);
    KEEP(room);
    return block;
}

__attribute__((noinline, noclone)) static void *with_alignment(void *(*allocate)(size_t), int depth)
{
    _Alignas(64) char room[64];
    KEEP(room);
    void *block = odd_descend(allocate, depth - 1);
    KEEP(room);
    return block;
}

__attribute__((noinline, noclone)) void *odd_descend(void *(*allocate)(size_t), int depth)
{
    void *block = depth <= 0       ? allocate(100)
                  : depth % 3 == 0 ? with_room(allocate, depth)
                                   : with_alignment(allocate, depth);
    KEEP(&block);
    return block;
}
