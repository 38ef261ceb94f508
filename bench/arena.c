/* arena.c: what freeing a whole domain at once is worth.
 *
 *      arena [BLOCKS [ROUNDS]]
 *
 * Each round allocates BLOCKS blocks of 16 to 271 bytes four ways and gets rid of them:
 *      free      malloc, and each block freed by itself
 *      domain    ta_domain_malloc in an ordinary domain, each block freed by itself
 *      arena     ta_domain_create_arena, ta_domain_malloc, ta_domain_destroy
 *      mimalloc  mi_heap_new, mi_heap_malloc, mi_heap_destroy: the floor, without headers, figures or a handshake
 * The ways alternate in every round; medians are printed, in nanoseconds per block. */
#include <mimalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tracealloc.h"
#include "tracealloc/domain.h"

enum { WAYS = 4, ROUNDS_MAX = 1000 };
static const char *const names[WAYS] = {"free", "domain", "arena", "mimalloc"};

static double allocate_ns[WAYS][ROUNDS_MAX], release_ns[WAYS][ROUNDS_MAX];
static void **blocks;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static size_t size_of(long i)
{
    return 16 + (size_t)((uint32_t)i * 2654435761u >> 24);
}

static void run(int way, long count, int round)
{
    uint32_t arena = 77;
    mi_heap_t *heap = NULL;
    double begin = now();
    if (way == 2 && ta_domain_create_arena(&arena) != 0)
        abort();
    if (way == 3)
        heap = mi_heap_new();
    for (long i = 0; i < count; i++) {
        char *block = way == 0   ? ta_malloc(size_of(i))
                      : way == 3 ? mi_heap_malloc(heap, size_of(i))
                                 : ta_domain_malloc(arena, size_of(i));
        if (block == NULL)
            abort();
        *block = 1;
        blocks[i] = block;
    }
    double middle = now();
    if (way == 2)
        ta_domain_destroy(arena);
    else if (way == 3)
        mi_heap_destroy(heap);
    else
        for (long i = 0; i < count; i++)
            ta_free(blocks[i]);
    double end = now();
    allocate_ns[way][round] = (middle - begin) / (double)count;
    release_ns[way][round] = (end - middle) / (double)count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 31;
    if (count < 1 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: arena [BLOCKS [ROUNDS]], at most %d rounds\n", ROUNDS_MAX);
        return 2;
    }
    blocks = mi_malloc((size_t)count * sizeof *blocks);
    if (blocks == NULL)
        return 1;
    for (int way = 0; way < WAYS; way++) /* warm */
        run(way, count, 0);
    for (int round = 0; round < rounds; round++)
        for (int way = 0; way < WAYS; way++)
            run(way, count, round);
    printf("%ld blocks, %d rounds, %s; ns per block, medians\n%-10s %10s %10s %10s\n", count, rounds,
           ta_is_tracing() ? "traced" : "not traced", "", "allocate", "release", "together");
    for (int way = 0; way < WAYS; way++) {
        qsort(allocate_ns[way], (size_t)rounds, sizeof(double), compare);
        qsort(release_ns[way], (size_t)rounds, sizeof(double), compare);
        double allocate = allocate_ns[way][rounds / 2], release = release_ns[way][rounds / 2];
        printf("%-10s %10.2f %10.2f %10.2f\n", names[way], allocate, release, allocate + release);
    }
    return 0;
}
