/* micro.c: small loads that do nothing but allocate, one way each. Knows no allocator: whichever is preloaded serves.
 *
 *     micro LOAD [N]
 *
 *   small        malloc and free of one size after another, 16 to 512 bytes, from one place
 *   depth        the same from 40 frames further in
 *   places       from 64 call stacks in turn
 *   batch        10 000 blocks allocated, then freed in another order
 *   large        2 KiB to 256 KiB
 *   realloc      vectors that grow by doubling and strings that grow by a little
 *   calloc       zeroed blocks, 16 to 4096 bytes
 *   handover     two threads: one allocates, the other frees
 *   larson       threads that replace random blocks of a set which they hand on to each other
 *   threads      2, 4, 8 … N threads one after another, each with a load of its own
 *   processes    N processes that do little and end
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone, no_icf))

static void *volatile sink;

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void *touched(void *block)
{
    *(volatile char *)block = 1;
    return block;
}

/* ---- one thread -------------------------------------------------------------------------------------------------- */

static NOINLINE void pairs(long n)
{
    for (long i = 0; i < n; i++) {
        void *block = touched(malloc(16 + (size_t)(i & 31) * 16));
        sink = block;
        free(block);
    }
}

static NOINLINE int deeper(int depth, long n)
{
    volatile int guard = depth; /* keeps the frame, and the call from becoming a jump */
    if (depth > 0)
        deeper(depth - 1, n);
    else
        pairs(n);
    return guard;
}

static NOINLINE void *leaf_of_place(uint32_t bits, size_t size);
static NOINLINE void *left(uint32_t bits, size_t size)
{
    void *block = leaf_of_place(bits, size);
    sink = block;
    return block;
}
static NOINLINE void *right(uint32_t bits, size_t size)
{
    void *block = leaf_of_place(bits, size);
    sink = block;
    return block;
}
/* Six decisions make 64 stacks. */
static NOINLINE void *leaf_of_place(uint32_t bits, size_t size)
{
    if (bits == 1)
        return malloc(size);
    return bits & 1 ? left(bits >> 1, size) : right(bits >> 1, size);
}

static void places(long n)
{
    for (long i = 0; i < n; i++) {
        void *block = touched(leaf_of_place(64 | (uint32_t)(i & 63), 48));
        free(block);
    }
}

static void batch(long n)
{
    enum { BLOCKS = 10000 };
    static void *blocks[BLOCKS];
    uint32_t random = 12345;
    for (long round = 0; round < n; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = touched(malloc(16 + next_random(&random) % 240));
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[(i * 7919) % BLOCKS]);
    }
}

static void large(long n)
{
    void *blocks[16] = {NULL};
    uint32_t random = 12345;
    for (long i = 0; i < n; i++) {
        free(blocks[i & 15]);
        blocks[i & 15] = touched(malloc((size_t)2048 << next_random(&random) % 8));
    }
    for (int i = 0; i < 16; i++)
        free(blocks[i]);
}

static void grow(long n)
{
    for (long i = 0; i < n; i++) {
        char *vector = NULL;
        for (size_t size = 16; size <= 65536; size *= 2)
            vector = touched(realloc(vector, size));
        free(vector);
        char *text = NULL;
        for (size_t size = 10; size <= 1000; size += 10)
            text = touched(realloc(text, size));
        free(text);
    }
}

static void zeroed(long n)
{
    uint32_t random = 12345;
    for (long i = 0; i < n; i++) {
        void *block = touched(calloc(1, (size_t)16 << next_random(&random) % 9));
        sink = block;
        free(block);
    }
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { RING = 1024 };
struct ring {
    void *_Atomic blocks[RING];
    long n;
};

static void *consume(void *argument)
{
    struct ring *ring = argument;
    for (long i = 0; i < ring->n; i++) {
        void *block;
        while ((block = ring->blocks[i % RING]) == NULL)
            sched_yield();
        ring->blocks[i % RING] = NULL;
        free(block);
    }
    return NULL;
}

static void handover(long n)
{
    static struct ring ring;
    ring.n = n;
    pthread_t consumer;
    pthread_create(&consumer, NULL, consume, &ring);
    for (long i = 0; i < n; i++) {
        while (ring.blocks[i % RING] != NULL)
            sched_yield();
        ring.blocks[i % RING] = touched(malloc(32 + (size_t)(i & 7) * 32));
    }
    pthread_join(consumer, NULL);
}

enum { HELD = 1000 };
struct shop {
    void *held[HELD];
    uint32_t random;
    long n;
};

static void *larson_round(void *argument)
{
    struct shop *shop = argument;
    for (long i = 0; i < shop->n; i++) {
        uint32_t at = next_random(&shop->random) % HELD;
        free(shop->held[at]);
        shop->held[at] = touched(malloc(10 + next_random(&shop->random) % 490));
    }
    return NULL;
}

static void larson(long n)
{
    enum { SHOPS = 4, ROUNDS = 20 };
    static struct shop shops[SHOPS];
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[SHOPS];
        for (int i = 0; i < SHOPS; i++) {
            shops[i].random = 1 + (uint32_t)(round * SHOPS + i);
            shops[i].n = n / SHOPS / ROUNDS;
            pthread_create(&threads[i], NULL, larson_round, &shops[i]);
        }
        for (int i = 0; i < SHOPS; i++)
            pthread_join(threads[i], NULL);
    }
}

static void *one_of_many(void *argument)
{
    pairs(*(long *)argument);
    return NULL;
}

static void many_threads(long n)
{
    enum { MOST = 64, WORK = 4000000 };
    for (long count = 2; count <= n && count <= MOST; count *= 2) {
        pthread_t threads[MOST];
        long each = WORK / count;
        for (long i = 0; i < count; i++)
            pthread_create(&threads[i], NULL, one_of_many, &each);
        for (long i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
    }
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void processes(long n, char **argv)
{
    for (long i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl(argv[0], argv[0], "little", (char *)NULL);
            _exit(127);
        }
        waitpid(child, NULL, 0);
    }
}

static void little(long n)
{
    for (long i = 0; i < n; i++)
        sink = touched(malloc((size_t)(16 + i % 100)));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(long n);
        long n;
    } loads[] = {
        {"small", pairs, 40000000},      {"places", places, 15000000}, {"batch", batch, 1500},
        {"large", large, 4000000},       {"realloc", grow, 40000},     {"calloc", zeroed, 10000000},
        {"handover", handover, 6000000}, {"larson", larson, 15000000}, {"threads", many_threads, 64},
        {"little", little, 1000},
    };
    const char *load = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 0;
    if (strcmp(load, "depth") == 0) {
        deeper(40, n > 0 ? n : 20000000);
        return 0;
    }
    if (strcmp(load, "processes") == 0) {
        processes(n > 0 ? n : 500, argv);
        return 0;
    }
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        if (strcmp(load, loads[i].name) == 0) {
            loads[i].run(n > 0 ? n : loads[i].n);
            return 0;
        }
    }
    fprintf(stderr, "micro: no load '%s'\n", load);
    return 2;
}
