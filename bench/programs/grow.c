/* grow.c: holds many of one thing and prints what that costs: resident bytes before and after, and the tracer's own.
 *
 *     grow blocks N SIZE     N blocks of SIZE bytes
 *     grow contexts N        N call stacks, one block each
 *     grow threads N         N threads that allocated and wait
 *     grow domains N         a block in each of N domains (where the library has domains)
 *     grow soak SECONDS      constant load; a line each second: seconds, resident bytes, tracer's bytes, operations
 *
 * What the library tells is asked by dlsym: the program runs without it too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone, no_icf))

static size_t resident(void)
{
    static char text[65536]; /* read without stdio, whose buffers would be measured too */
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    const char *at = strstr(text, "Rss:");
    return at != NULL ? (size_t)strtoul(at + 4, NULL, 10) * 1024 : 0;
}

static size_t tracer(void)
{
    size_t (*ask)(void);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "ta_get_tracer_memory");
    return ask != NULL ? ask() : 0;
}

static void *touched(void *block, size_t size)
{
    for (size_t at = 0; at < size; at += 4096)
        ((volatile char *)block)[at] = 1;
    return block;
}

/* ---- many stacks: one per bit pattern ---------------------------------------------------------------------------- */

static void *volatile sink;

static NOINLINE void at_bits(uint32_t bits);
static NOINLINE void zero(uint32_t bits)
{
    at_bits(bits);
    sink = NULL;
}
static NOINLINE void one(uint32_t bits)
{
    at_bits(bits);
    sink = NULL;
}
static NOINLINE void at_bits(uint32_t bits)
{
    if (bits == 1)
        sink = malloc(32);
    else if (bits & 1)
        one(bits >> 1);
    else
        zero(bits >> 1);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static pthread_barrier_t all_have, may_end;

static void *waits(void *argument)
{
    sink = malloc(100);
    pthread_barrier_wait(&all_have);
    pthread_barrier_wait(&may_end);
    return argument;
}

static int many_threads(unsigned n, size_t before)
{
    pthread_t *threads = calloc(n, sizeof *threads);
    pthread_barrier_init(&all_have, NULL, n + 1);
    pthread_barrier_init(&may_end, NULL, n + 1);
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, waits, NULL) != 0)
            return 1;
    pthread_barrier_wait(&all_have);
    printf("%zu %zu %zu\n", before, resident(), tracer());
    pthread_barrier_wait(&may_end);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* ---- soak -------------------------------------------------------------------------------------------------------- */

enum { HELD = 20000 };
static volatile int soak_ends;
static unsigned long operations[4];

static void *soaks(void *argument)
{
    unsigned long *count = argument;
    void **held = calloc(HELD, sizeof *held);
    uint32_t random = 77 + (uint32_t)(count - operations);
    while (!soak_ends) {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        uint32_t at = random % HELD;
        free(held[at]);
        held[at] = (random & 1023) == 0 ? malloc(200000)
                   : (random & 7) == 0  ? calloc(1, random >> 8 & 2047)
                                        : malloc(16 + (random >> 8 & 255));
        ++*count;
    }
    for (int i = 0; i < HELD; i++)
        free(held[i]);
    free(held);
    return NULL;
}

static int soak(unsigned seconds)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, soaks, &operations[i]) != 0)
            return 1;
    for (unsigned second = 1; second <= seconds; second++) {
        sleep(1);
        unsigned long sum = 0;
        for (int i = 0; i < 4; i++)
            sum += *(volatile unsigned long *)&operations[i];
        printf("%u %zu %zu %lu\n", second, resident(), tracer(), sum);
        fflush(stdout);
    }
    soak_ends = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    size_t size = argc > 3 ? (size_t)atol(argv[3]) : 64;
    sink = malloc(64);
    free(sink);
    size_t before = resident();
    if (strcmp(what, "soak") == 0 && n > 0)
        return soak(n);
    if (strcmp(what, "threads") == 0 && n > 0)
        return many_threads(n, before);
    if (strcmp(what, "blocks") == 0) {
        for (unsigned i = 0; i < n; i++)
            sink = touched(malloc(size), size);
    } else if (strcmp(what, "contexts") == 0) {
        uint32_t leading = 1;
        while (leading < n)
            leading *= 2;
        for (unsigned i = 0; i < n; i++)
            at_bits(leading | i);
    } else if (strcmp(what, "domains") == 0) {
        void *(*in_domain)(uint32_t, size_t);
        *(void **)&in_domain = dlsym(RTLD_DEFAULT, "ta_domain_malloc");
        if (in_domain == NULL)
            return 77;
        for (unsigned i = 0; i < n; i++)
            sink = touched(in_domain(i + 1, size), size);
    } else {
        fprintf(stderr, "usage: grow blocks|contexts|threads|domains|soak N [SIZE]\n");
        return 2;
    }
    printf("%zu %zu %zu\n", before, resident(), tracer());
    return 0;
}
