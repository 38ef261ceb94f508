/* counts.c: requests and frees in loops whose instructions callgrind counts; run by bench/counts.
 *
 * Linked with libtracealloc by name only, so that LD_LIBRARY_PATH chooses the build. Every shape is run twice, with N
 * and with 3 N turns; callgrind is asked for its sum after each, and the difference leaves the loop alone. A turn is a
 * malloc and a free,
 *
 *   same       from one call site in a loop at the bottom of the stack
 *   sites2     from two call sites in turn, sites8 eight
 *   reentered  the whole stack is left and entered again for each pair
 *
 * or, from one call site,
 *
 *   calloc     a calloc and a free
 *   aligned    an aligned_alloc at a multiple of 64, and a free
 *   resize     a realloc that finds room where the block stands
 *   move       a realloc that does not
 *   elsewhere  a malloc, and a free by another thread
 *
 * And, each run once, a malloc and a free from each of 256 stacks that have the five outermost frames in common:
 *
 *   new        that nobody met before
 *   second     again by the same thread
 *   walked     by another thread, which met none of them
 *   kept       by that one again
 *   turns      and again
 *
 * A thread runs them: the stacks of a thread have no frames that depend on the C library's way to main. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
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

NOINLINE static void call_calloc(int pairs)
{
    for (int i = 0; i < pairs; i++) {
        void *block = calloc(1, BYTES);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
}

NOINLINE static void call_aligned(int pairs)
{
    for (int i = 0; i < pairs; i++) {
        void *block = aligned_alloc(64, BYTES);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
}

NOINLINE static void change_size(int times, size_t one, size_t other)
{
    void *volatile block = malloc(other);
    for (int i = 0; i < times; i += 2) {
        block = realloc(block, one);
        block = realloc(block, other);
    }
    free(block);
    __asm__ volatile(""); /* no tail call */
}

NOINLINE static void resize(int times)
{
    change_size(times, BYTES, BYTES - 8);
    __asm__ volatile("");
}

NOINLINE static void move(int times)
{
    change_size(times, BYTES, (size_t)4 * BYTES);
    __asm__ volatile("");
}

/* Blocks go to another thread in batches: what handing over costs is little for each, and the same in all builds. */
enum { BATCH = 250 };
static void *batch[BATCH];
static int there[2], back[2];

static void *releaser(void *unused)
{
    char word;
    while (read(there[0], &word, 1) == 1) {
        for (int i = 0; i < BATCH; i++)
            free(batch[i]);
        if (write(back[1], &word, 1) != 1)
            abort();
    }
    return unused;
}

NOINLINE static void elsewhere(int pairs)
{
    char word = 0;
    for (int done = 0; done < pairs; done += BATCH) {
        for (int i = 0; i < BATCH; i++)
            batch[i] = malloc(BYTES);
        if (write(there[1], &word, 1) != 1 || read(back[0], &word, 1) != 1)
            abort();
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

/* One of 2^levels stacks: each frame calls the next from one of two places. */
NOINLINE static void choose(int levels, unsigned which)
{
    if (levels == 0)
        PAIR();
    else if ((which & 1) != 0) {
        choose(levels - 1, which >> 1);
        __asm__ volatile("nop");
    } else {
        choose(levels - 1, which >> 1);
        __asm__ volatile("");
    }
}

enum { LEVELS = 8, STACKS = 1 << LEVELS, CHOSEN_FRAMES = 3 + 1 + LEVELS + 1 };

NOINLINE static void all_stacks(const char *name)
{
    char label[64];
    snprintf(label, sizeof label, "%s %d %d", name, CHOSEN_FRAMES, STACKS);
    CALLGRIND_ZERO_STATS;
    for (unsigned i = 0; i < STACKS; i++)
        choose(LEVELS, i);
    CALLGRIND_DUMP_STATS_AT(label);
}

static int run_thread(void *(*what)(void *), const void *argument)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, what, (void *)(uintptr_t)argument) == 0 && pthread_join(thread, NULL) == 0;
}

/* The first thread is there while the second one is, so that this begins with nothing of what that one knows. */
static void *meet_stacks(void *thread)
{
    static const char *const names[2][4] = {{"new", "second"}, {"walked", "kept", "turns"}};
    same(8); /* what a thread's first request makes is not a walk's */
    for (const char *const *name = names[(uintptr_t)thread]; *name != NULL; name++)
        all_stacks(*name); /* one call for all, so that they are the same stacks */
    if (thread == NULL && !run_thread(meet_stacks, (void *)1))
        abort();
    return NULL;
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
        count("calloc", frames[i], call_calloc);
        count("aligned", frames[i], call_aligned);
        count("resize", frames[i], resize);
        count("move", frames[i], move);
        count("elsewhere", frames[i], elsewhere);
    }
    for (int i = 0; i < 8; i++)
        free(live[i]);
    return unused;
}

int main(void)
{
    pthread_t thread;
    if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&thread, NULL, releaser, NULL) != 0)
        return 1;
    int done = run_thread(worker, NULL) && run_thread(meet_stacks, NULL);
    close(there[1]);
    return done && pthread_join(thread, NULL) == 0 ? 0 : 1;
}
