/* snapshot_live.c: what a snapshot of a running program costs, with none or many threads allocating meanwhile.
 *
 *     snapshot_live [THREADS…]     default: 0 and 64
 *
 * Programs of 2^13, 2^16 and 2^19 call paths. Time of the processor is the taker's own; on the clock it also waits for
 * its turn among the threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tracealloc.h"
#include "tracealloc/snapshot.h"

enum { THREADS_MAX = 256, ROUNDS = 3 };

static atomic_int go_on;
static int depth;

/* Two call sites per level: 2^depth paths. */
__attribute__((noinline)) static void *path(unsigned which, int level)
{
    void *volatile block;
    if (level == 0)
        return malloc(1 + which % 500);
    if (which >> (level - 1) & 1) {
        block = path(which, level - 1);
        __asm__ volatile("nop");
    } else {
        block = path(which, level - 1);
        __asm__ volatile("nop; nop");
    }
    return block;
}

static void *allocate_meanwhile(void *argument)
{
    unsigned random = (unsigned)(uintptr_t)argument * 7919;
    void *blocks[256] = {0};
    while (atomic_load_explicit(&go_on, memory_order_relaxed)) {
        random = random * 1664525 + 1013904223;
        unsigned slot = (random >> 16) % 256;
        free(blocks[slot]);
        blocks[slot] = path(random >> (32 - depth), depth);
    }
    for (int i = 0; i < 256; i++)
        free(blocks[i]);
    return NULL;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int measure(int threads)
{
    pthread_t thread[THREADS_MAX];
    double processor = 1e9, clock = 1e9;
    struct ta_health health;
    atomic_store(&go_on, 1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, allocate_meanwhile, (void *)(uintptr_t)(i + 1)) != 0)
            return 1;
    for (int round = 0; round < ROUNDS; round++) {
        double processor_start = seconds(CLOCK_THREAD_CPUTIME_ID), start = seconds(CLOCK_MONOTONIC);
        struct ta_snapshot *snapshot = ta_take_snapshot();
        double processor_taken = seconds(CLOCK_THREAD_CPUTIME_ID) - processor_start;
        double taken = seconds(CLOCK_MONOTONIC) - start;
        if (snapshot == NULL) {
            fprintf(stderr, "snapshot_live: %s\n", ta_error_text());
            return 1;
        }
        ta_snapshot_free(snapshot);
        processor = processor_taken < processor ? processor_taken : processor;
        clock = taken < clock ? taken : clock;
    }
    atomic_store(&go_on, 0);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    ta_get_health(&health, sizeof health);
    printf("%3d threads, %8lu contexts, %7lu leaves: %.4f s of the processor, %.3f s on the clock\n", threads,
           (unsigned long)health.contexts, (unsigned long)health.leaves, processor, clock);
    return 0;
}

int main(int argc, char **argv)
{
    if (ta_start(64) != 0)
        return 1;
    for (depth = 13; depth <= 19; depth += 3) {
        for (unsigned which = 0; which < 1u << depth; which++) {
            void *volatile kept = path(which, depth);
            (void)kept;
        }
        for (int i = 1; i < (argc > 1 ? argc : 3); i++)
            if (measure(argc > 1 ? atoi(argv[i]) % THREADS_MAX : i == 1 ? 0 : 64) != 0)
                return 1;
    }
    return 0;
}
