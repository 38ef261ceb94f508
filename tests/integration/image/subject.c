/* subject.c: a program to be looked at from outside. It allocates in all ways there are, takes a snapshot of itself, says
 * "ready" and waits until it is ended.
 *
 *     subject WHAT [SNAPSHOT]      WHAT: plain, threads, domains, track, clear, emergency
 *     subject list                 says its blocks first, and ends with its input
 *     subject dead                 has lost a block, whose address stands where its stack once reached
 *     subject pages                has blocks that pin pages; with each byte of its input some of them go */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tracealloc.h>
#include <tracealloc/domain.h>
#include <tracealloc/snapshot.h>

/* Of the library that is preloaded, when there is one. */
#pragma weak ta_take_snapshot
#pragma weak ta_snapshot_dump
#pragma weak ta_domain_push
#pragma weak ta_domain_pop
#pragma weak ta_domain_malloc
#pragma weak ta_track
#pragma weak ta_clear_traces
#pragma weak ta_error_text

enum { SLOTS = 4000, THREADS = 5 };

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *ask(size_t size, uint64_t how)
{
    switch (how % 8) {
    case 0:
        return calloc(3, size / 3);
    case 1:
        return aligned_alloc((size_t)32 << how / 8 % 12, size);
    case 2:
        return realloc(malloc(size / 2), size);
    default:
        return malloc(size);
    }
}

/* Many different stacks: each level chooses one of two ways. */
#define NEVER_A_JUMP(block) __asm__ volatile("" : "+r"(block))
static void *left(size_t size, unsigned depth, uint64_t way, uint64_t how);

__attribute__((noinline)) static void *right(size_t size, unsigned depth, uint64_t way, uint64_t how)
{
    void *block = depth == 0 ? ask(size, how)
                  : way % 2  ? left(size, depth - 1, way / 2, how)
                             : right(size, depth - 1, way / 2, how);
    NEVER_A_JUMP(block);
    return block;
}

__attribute__((noinline)) static void *left(size_t size, unsigned depth, uint64_t way, uint64_t how)
{
    void *block = depth == 0 ? ask(size, how)
                  : way % 2  ? right(size, depth - 1, way / 2, how)
                             : left(size, depth - 1, way / 2, how);
    NEVER_A_JUMP(block);
    return block;
}

static size_t some_size(uint64_t random)
{
    switch (random % 16) {
    case 0:
        return 0;
    case 1:
        return random % 3000000;
    case 2:
    case 3:
        return random % 70000;
    case 4:
    case 5:
        return random % 3000;
    default:
        return random % 200;
    }
}

static void churn(uint64_t seed, void **slots)
{
    uint64_t state = seed;
    for (int i = 0; i < 3 * SLOTS; i++) {
        void **slot = &slots[next(&state) % SLOTS];
        free(*slot);
        *slot = next(&state) % 3 == 0
                    ? NULL
                    : left(some_size(next(&state)), next(&state) % 7, next(&state) >> 8, next(&state) >> 8);
        if (*slot != NULL && malloc_usable_size(*slot) >= 16)
            memset(*slot, 0x5A, 16);
    }
}

static pthread_barrier_t barrier;

static void *thread(void *seed)
{
    static void *slots[THREADS][SLOTS];
    churn((uintptr_t)seed * 7919, slots[(uintptr_t)seed - 1]);
    pthread_barrier_wait(&barrier);
    pause();
    return NULL;
}

static void *slots[SLOTS];

/* What is no block, and blocks: in their own domain, and in others. */
static void track(void)
{
    int failures = 0;
    for (uint32_t i = 1; i < 3000; i++)
        failures += ta_track(i % 3, 0x1000 + i * 13, i) != 0;
    for (uint32_t i = 0; i < SLOTS; i++)
        if (slots[i] != NULL)
            failures += ta_track(i % 3, (uintptr_t)slots[i], 12345 + i) != 0;
    if (failures != 0)
        exit(3);
}

static void threads(void)
{
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t one;
        if (pthread_create(&one, NULL, thread, (void *)(i + 1)) != 0)
            _exit(3);
    }
    pthread_barrier_wait(&barrier);
}

static void domains(void)
{
    for (uint32_t domain = 1; domain < 40; domain++) {
        ta_domain_push(domain * 1000);
        slots[domain * 3] = malloc(domain * 10);
        slots[domain * 3 + 1] = aligned_alloc(256, 256);
        ta_domain_pop();
        slots[domain * 3 + 2] = ta_domain_malloc(domain * 7, domain);
        if (domain % 3 == 0)
            free(slots[domain * 3]);
    }
}

static void *handed_out[8];

static void on_signal(int number)
{
    for (int i = 0; i < 8; i++)
        handed_out[i] = left((size_t)number * 100, 3, (uint64_t)i, 4);
}

/* No stdio: what it allocates would not be in the list. */
static void say_block(const void *block, size_t size, char is_live)
{
    char line[64], *end = line + sizeof line;
    *--end = '\n';
    for (size_t left = size, first = 1; left != 0 || first; left /= 10, first = 0)
        *--end = (char)('0' + left % 10);
    *--end = ' ';
    for (uintptr_t left_over = (uintptr_t)block; left_over != 0; left_over /= 16)
        *--end = "0123456789abcdef"[left_over % 16];
    *--end = is_live ? '+' : '-';
    if (write(STDOUT_FILENO, end, (size_t)(line + sizeof line - end)) < 0)
        _exit(3);
}

static int list_blocks(void)
{
    static size_t sizes[SLOTS];
    uint64_t state = 99;
    for (size_t i = 0; i < SLOTS; i++) {
        sizes[i] = i % 100 == 0 ? next(&state) % 300000 : next(&state) % 1500;
        slots[i] = i % 3 == 0 ? aligned_alloc(128, sizes[i]) : malloc(sizes[i]);
        if (slots[i] == NULL)
            return 3;
    }
    for (size_t i = 0; i < SLOTS; i += 5) {
        free(slots[i]);
    }
    for (size_t i = 0; i < SLOTS; i++)
        say_block(slots[i], sizes[i], i % 5 != 0);
    char byte;
    return write(STDOUT_FILENO, "ready\n", 6) == 6 && read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 3;
}

/* Three places: every tenth of many small blocks, which pin nine times their size; large blocks, of which half is
 * touched; and pages of their own, as the program could have got them without malloc. */
enum { SMALL = 60000, LARGE = 40, LARGE_BYTES = 1 << 20 };
static void *small[SMALL], *large[LARGE];

__attribute__((noinline)) static void *small_block(void)
{
    void *block = malloc(480);
    NEVER_A_JUMP(block);
    return block;
}

__attribute__((noinline)) static void *large_block(void)
{
    void *block = calloc(1, LARGE_BYTES);
    NEVER_A_JUMP(block);
    return block;
}

static int hold_pages(void)
{
    char byte;
    for (int i = 0; i < SMALL; i++)
        memset(small[i] = small_block(), 1, 480);
    for (int i = 0; i < LARGE; i++)
        memset(large[i] = large_block(), 2, LARGE_BYTES / 2);
    char *mapped = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *read_only = mmap(NULL, 5 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *common = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED || read_only == MAP_FAILED || common == MAP_FAILED)
        return 3;
    memset(mapped, 3, 3 << 20);
    memset(common, 4, 1 << 20);
    for (int i = 0; i < 5 << 20; i += 4096)
        if (read_only[i] != 0) /* the page of zeros that all share, which Rss does not count */
            return 3;
    for (int i = 0; i < SMALL; i++)
        if (i % 10 != 0)
            free(small[i]);
    for (int step = 0; write(STDOUT_FILENO, "ready\n", 6) == 6 && read(STDIN_FILENO, &byte, 1) == 1; step++) {
        for (int i = 0; i < SMALL && step == 0; i += 10)
            free(small[i]);
        for (int i = 0; i < LARGE && step == 1; i++)
            free(large[i]);
        malloc_trim(0);
    }
    return 0;
}

/* Deep enough that nothing later comes there. */
__attribute__((noinline)) static void lose_a_block(void)
{
    void *volatile deep[8192];
    deep[0] = malloc(123457);
    deep[8191] = NULL;
}

static int wait_with_a_dead_stack(void)
{
    char byte;
    lose_a_block();
    return write(STDOUT_FILENO, "ready\n", 6) == 6 && read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 3;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "plain";
    if (strcmp(what, "dead") == 0)
        return wait_with_a_dead_stack();
    if (strcmp(what, "pages") == 0)
        return hold_pages();
    if (strcmp(what, "list") == 0)
        return list_blocks();
    if (strcmp(what, "clear") == 0) {
        churn(5, slots);
        ta_clear_traces();
        for (int i = 0; i < SLOTS; i += 2) {
            free(slots[i]);
            slots[i] = left((size_t)i, 5, (uint64_t)i, 3);
        }
    } else {
        churn(12345, slots);
    }
    if (strcmp(what, "threads") == 0)
        threads();
    if (strcmp(what, "domains") == 0)
        domains();
    if (strcmp(what, "track") == 0)
        track();
    if (strcmp(what, "emergency") == 0) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
    }
    if (count > 2) {
        struct ta_snapshot *snapshot = ta_take_snapshot();
        if (snapshot == NULL || ta_snapshot_dump(snapshot, words[2]) != 0) {
            fprintf(stderr, "subject: %s\n", ta_error_text());
            return 3;
        }
    }
    if (write(STDOUT_FILENO, "ready\n", 6) != 6)
        return 3;
    for (;;)
        pause();
}
