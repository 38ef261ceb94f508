/* counts.c: malloc and free in loops whose instructions callgrind counts; run by bench/counts.
 *
 * Linked with libtracealloc by name only, so that LD_LIBRARY_PATH chooses the build. Every shape is run twice, with N
 * and with 3 N pairs; callgrind is asked for its sum after each, and the difference leaves the loop alone.
 *
 *   same       one call site in a loop at the bottom of the stack
 *   sites2     two call sites in turn, sites8 eight
 *   reentered  the whole stack is left and entered again for each pair
 *
 * A thread runs them: the stacks of a thread have no frames that depend on the C library's way to main. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { PAIRS = 8000, WARM = 4000, BYTES = 64 };

/* One pair; the call site is this line of the caller. */
#define PAIR()                                                                                                         \
    do {                                                                                                               \
        void *block = malloc(BYTES);                                                                                   \
        __asm__ volatile("" : : "r"(block) : "memory");                                                                \
        free(block);                                                                                                   \
    } while (0)

NOINLINE static void same(int pairs)
{
    for (int i = 0; i < pairs; i++)
        PAIR();
}

NOINLINE static void sites2(int pairs)
{
    for (int i = 0; i < pairs; i += 2) {
        PAIR();
        PAIR();
    }
}

NOINLINE static void sites8(int pairs)
{
    for (int i = 0; i < pairs; i += 8) {
        PAIR();
        PAIR();
        PAIR();
        PAIR();
        PAIR();
        PAIR();
        PAIR();
        PAIR();
    }
}

NOINLINE static void at_depth(int depth, void (*shape)(int), int pairs)
{
    if (depth > 0)
        at_depth(depth - 1, shape, pairs);
    else
        shape(pairs);
    __asm__ volatile(""); /* no tail call */
}

static inline __attribute__((always_inline)) void run(int depth, void (*shape)(int), int pairs)
{
    if (shape != NULL)
        at_depth(depth, shape, pairs);
    else
        for (int i = 0; i < pairs; i++)
            at_depth(depth, same, 1);
}

static inline __attribute__((always_inline)) void count(const char *name, int frames, void (*shape)(int))
{
    /* clone3, start_thread, worker, at_depth once more than its argument says, and the shape. */
    int depth = frames - 5;
    char label[64];
    run(depth, shape, WARM);
    for (int times = 1; times <= 3; times += 2) {
        snprintf(label, sizeof label, "%s %d %d", name, frames, times * PAIRS);
        CALLGRIND_ZERO_STATS;
        run(depth, shape, times * PAIRS);
        CALLGRIND_DUMP_STATS_AT(label);
    }
}

static void *worker(void *unused)
{
    static const int frames[] = {5, 20, 60};
    static void *live[8]; /* a page is never emptied by a pair, as it is not in a program of any size */
    for (int i = 0; i < 8; i++)
        live[i] = malloc(BYTES);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        count("same", frames[i], same);
        count("sites2", frames[i], sites2);
        count("sites8", frames[i], sites8);
        count("reentered", frames[i], NULL);
    }
    for (int i = 0; i < 8; i++)
        free(live[i]);
    return unused;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    return 0;
}
