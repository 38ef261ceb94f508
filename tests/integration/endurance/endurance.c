/* endurance.c: one thing done very often; the resident memory must stay what it is. endurance WHAT TIMES [PLUGIN].
 *
 *      WHAT       each time
 *      stacks     a block from a stack that was never met before takes the place of one of 4096
 *      search     the same in a search that goes down and up, with a block for each step on the way
 *      threads    a thread that allocates, and leaves a block to be freed by another
 *      starts     tracing begins, four blocks come and two go, tracing ends
 *      libraries  PLUGIN is opened, allocates, and is closed
 *
 * Says the resident memory forty times, beginning when a fortieth is done. Status 1: the highest of the last half is above
 * the highest of the first by more than a twentieth and 2 MiB. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracealloc.h"

#define NOINLINE __attribute__((noinline, noclone))

enum { SAMPLES = 40, LIVE = 4096, LEVELS = 10, BITS = 3, STACKS_BITS = LEVELS * BITS };

static unsigned long times;
static void *live[LIVE];

/* ---- watching ---- */

static unsigned long resident_kib(void)
{
    unsigned long whole = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &whole, &resident) != 2)
        exit(2);
    fclose(file);
    return resident * ((unsigned long)sysconf(_SC_PAGESIZE) / 1024);
}

static unsigned long highest[2];
static int samples;

/* After each time. */
static void watch(unsigned long done)
{
    if (done % ((times + SAMPLES - 1) / SAMPLES) != 0)
        return;
    unsigned long kib = resident_kib();
    unsigned long *high = &highest[done > times / 2];
    *high = kib > *high ? kib : *high;
    samples++;
    printf("%lu: %lu KiB\n", done, kib);
    fflush(stdout);
}

/* ---- stacks ---- */

static void keep(unsigned long which)
{
    void **place = &live[which * UINT64_C(0x9E3779B97F4A7C15) >> 52];
    free(*place);
    *place = malloc(16 + which % 200);
}

/* A stack for each number of 30 bits: each frame calls the next from one of eight places. */
NOINLINE static void descend(int levels, unsigned long which)
{
    if (levels == 0) {
        keep(which);
        __asm__ volatile("");
        return;
    }
    levels--;
    switch (which >> (levels * BITS) & 7) {
#define PLACE(n)                                                                                                       \
    case n:                                                                                                            \
        descend(levels, which);                                                                                        \
        __asm__ volatile("# " #n);                                                                                     \
        break;
        PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4) PLACE(5) PLACE(6) PLACE(7)
#undef PLACE
    }
}

static void stacks(void)
{
    for (unsigned long done = 1; done <= times; done++) {
        descend(LEVELS, done & ((UINT64_C(1) << STACKS_BITS) - 1));
        watch(done);
    }
}

/* Down to a depth that the random number says, each step from one of four places with a block of its own. */
static uint64_t random_state = 1;
static unsigned long found;

static unsigned random_bits(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 40);
}

NOINLINE static void search_below(int depth)
{
    unsigned random = random_bits();
    if (depth == 40 || (depth > 8 && random % 3 == 0) || found >= times)
        return;
    void *step = malloc(24 + random % 64);
    watch(++found);
    for (int branch = 0; branch < 2; branch++)
        switch (random >> (4 + 2 * branch) & 3) {
#define PLACE(n)                                                                                                       \
    case n:                                                                                                            \
        search_below(depth + 1);                                                                                       \
        __asm__ volatile("# " #n);                                                                                     \
        break;
            PLACE(0) PLACE(1) PLACE(2) PLACE(3)
#undef PLACE
        }
    free(step);
}

static void search(void)
{
    while (found < times)
        search_below(0);
}

/* ---- threads, starts, libraries ---- */

static void *short_life(void *left)
{
    free(left);
    void *blocks[16];
    for (int i = 0; i < 16; i++)
        blocks[i] = malloc(32u << (i % 6));
    for (int i = 1; i < 16; i++)
        free(blocks[i]);
    return blocks[0];
}

static void threads(void)
{
    void *left = NULL;
    for (unsigned long done = 1; done <= times; done++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_life, left) != 0 || pthread_join(thread, &left) != 0)
            exit(2);
        watch(done);
    }
    free(left);
}

static void starts(void)
{
    for (unsigned long done = 1; done <= times; done++) {
        if (ta_start(done % 2 == 0 ? 1 : 20) != 0)
            exit(2);
        free(malloc(100));
        keep(done);
        keep(done * 7);
        free(malloc(1000));
        ta_stop();
        watch(done);
    }
}

static void libraries(const char *path)
{
    for (unsigned long done = 1; done <= times; done++) {
        void *library = dlopen(path, RTLD_NOW);
        void *(*allocate)(size_t) = library != NULL ? (void *(*)(size_t))dlsym(library, "plugin_allocate") : NULL;
        if (allocate == NULL)
            exit(2);
        void **place = &live[done % LIVE];
        free(*place);
        *place = allocate(100);
        dlclose(library);
        watch(done);
    }
}

int main(int argc, char **argv)
{
    times = argc >= 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (times < SAMPLES)
        return 2;
    if (strcmp(argv[1], "stacks") == 0)
        stacks();
    else if (strcmp(argv[1], "search") == 0)
        search();
    else if (strcmp(argv[1], "threads") == 0)
        threads();
    else if (strcmp(argv[1], "starts") == 0)
        starts();
    else if (strcmp(argv[1], "libraries") == 0 && argc == 4)
        libraries(argv[3]);
    else
        return 2;
    printf("first half %lu KiB, last half %lu KiB at most, %d samples\n", highest[0], highest[1], samples);
    return samples < SAMPLES / 2 || highest[1] > highest[0] + highest[0] / 20 + 2048 ? 1 : 0;
}
