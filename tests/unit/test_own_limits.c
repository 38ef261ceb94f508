/* test_own_limits.c: a program that limits its own address space (alloc/own_limits.c) lives on under the limit, as one that
 * began under it: stacks grow, threads begin, blocks keep their traces. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "base/mappings.h"
#include "base/memory.h"
#include "trace/trace.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

#include "tests/support/child.h"

#define NOINLINE __attribute__((noinline, noclone, no_icf))
enum { MIB = 1 << 20, BLOCKS = 4000, PATHS = 1 << 10, NOT_HERE = 77 };

static struct {
    void *blocks[BLOCKS];
    void *path_blocks[PATHS];
} held;

static size_t resident_bytes(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    MUST(file != NULL && fscanf(file, "%lu %lu", &all, &resident) == 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static int lower_to(int resource, size_t bytes)
{
    struct rlimit limit;
    MUST(getrlimit(resource, &limit) == 0);
    limit.rlim_cur = bytes;
    return setrlimit(resource, &limit);
}

/* One of two calls for each bit: as many stacks as there are numbers. */
static NOINLINE void *at_bits(uint32_t bits);
static NOINLINE void *zero(uint32_t bits)
{
    void *block = at_bits(bits);
    __asm__ volatile("" : "+r"(block));
    return block;
}
static NOINLINE void *one(uint32_t bits)
{
    void *block = at_bits(bits);
    __asm__ volatile("" : "+r"(block));
    return block;
}
static NOINLINE void *at_bits(uint32_t bits)
{
    void *block = bits == 1 ? ta_malloc(40) : bits & 1 ? one(bits >> 1) : zero(bits >> 1);
    __asm__ volatile("" : "+r"(block));
    return block;
}

static NOINLINE size_t deep(size_t bytes)
{
    volatile char room[4096];
    memset((char *)room, (int)bytes, sizeof room);
    return bytes > sizeof room ? deep(bytes - sizeof room) + (size_t)room[7] : 0;
}

static size_t current(void)
{
    size_t now;
    ta_get_traced_memory(&now, NULL);
    return now;
}

static void *allocates(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        void *block = ta_malloc(100 + (size_t)i);
        if (block == NULL)
            return (void *)1;
        ta_free(block);
    }
    return unused;
}

/* What every program does that plain malloc lets do it. */
static void lives(void)
{
    pthread_t thread;
    void *answer = (void *)1;
    (void)deep((size_t)4 * MIB);
    MUST(pthread_create(&thread, NULL, allocates, NULL) == 0);
    MUST(pthread_join(thread, &answer) == 0 && answer == NULL);
    void *large = ta_malloc((size_t)8 * MIB);
    MUST(large != NULL);
    memset(large, 1, (size_t)8 * MIB);
    ta_free(large);
}

static void fill_blocks(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        held.blocks[i] = ta_malloc(16 + i);
        MUST(held.blocks[i] != NULL);
        memset(held.blocks[i], (int)i, 16 + i);
    }
    for (size_t i = 0; i < BLOCKS; i += 3) {
        ta_free(held.blocks[i]);
        held.blocks[i] = NULL;
    }
}

static void look_at_blocks_and_free(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        const unsigned char *bytes = held.blocks[i];
        for (size_t at = 0; bytes != NULL && at < 16 + i; at += 8)
            MUST(bytes[at] == (unsigned char)i);
        ta_free(held.blocks[i]);
    }
}

static void under_a_limit_of(int resource, size_t limit)
{
    MUST(ta_start(64) == 0);
    lives(); /* libc keeps a little of every thread */
    size_t libcs = current();
    fill_blocks();
    for (uint32_t i = 0; i < PATHS; i++)
        held.path_blocks[i] = at_bits(PATHS | i);
    void *before[64], *after[64];
    size_t total, live = current();
    int frames = (int)ta_get_object_traceback(held.path_blocks[99], before, 64, &total);
    MUST(frames > 12 && total == (size_t)frames);
    MUST(ta__memory_used(resource) > limit);

    MUST(lower_to(resource, limit) == 0);
    MUST(ta__memory_used(resource) < limit);
    MUST(current() == live);
    lives();
    MUST(current() == live);
    MUST((int)ta_get_object_traceback(held.path_blocks[99], after, 64, &total) == frames);
    MUST(memcmp(before, after, (size_t)frames * sizeof *before) == 0);

    /* Other stacks have numbers of their own, too. */
    uint32_t leaves = ta__leaf_count();
    for (uint32_t i = 0; i < PATHS / 2; i++) {
        void *block = at_bits(PATHS << 1 | i);
        MUST(block != NULL);
        ta_free(block);
    }
    MUST(ta__leaf_count() >= leaves + PATHS / 2);
    look_at_blocks_and_free();
    for (uint32_t i = 0; i < PATHS; i++)
        ta_free(held.path_blocks[i]);
    MUST(current() == libcs);
    ta_clear_traces(); /* looks at the tables as a whole */
    MUST(ta__leaf_capacity() < 1 << 22);
    held.path_blocks[0] = at_bits(PATHS);
    MUST(current() == 40);
    lives();
}

static void space_of_200_mib(void *unused)
{
    (void)unused;
    under_a_limit_of(RLIMIT_AS, (size_t)200 * MIB);
}

static void space_of_60_mib(void *unused)
{
    (void)unused;
    under_a_limit_of(RLIMIT_AS, (size_t)60 * MIB);
}

static void data_of_60_mib(void *unused)
{
    (void)unused;
    under_a_limit_of(RLIMIT_DATA, (size_t)60 * MIB);
}

enum { DOMAIN = 5, OF_DOMAIN = 9000 };

static void count_block(const struct ta__source_block *block, void *count)
{
    *(size_t *)count += block->size == OF_DOMAIN;
}

static size_t blocks_of_domain(void)
{
    size_t count = 0;
    MUST(ta__safepoint_stop(&ta__self->safepoint) == TA__STOP_DONE);
    ta__blocks_visit(count_block, &count);
    ta__safepoint_resume(&ta__self->safepoint);
    return count;
}

/* Where there is no room for arenas mimalloc has each page from the system. */
static void every_block_is_found(void *unused)
{
    enum { OF_ONE = BLOCKS / 4 };
    (void)unused;
    MUST(ta_start(64) == 0);
    MUST(lower_to(RLIMIT_AS, (size_t)100 * MIB) == 0);
    for (size_t i = 0; i < OF_ONE; i++) {
        held.blocks[i] = ta_domain_malloc(DOMAIN, OF_DOMAIN);
        MUST(held.blocks[i] != NULL);
    }
    MUST(blocks_of_domain() == OF_ONE);
    MUST(ta_domain_usable_bytes(DOMAIN) >= (uint64_t)OF_ONE * OF_DOMAIN);
    for (size_t i = 0; i < OF_ONE; i += 3)
        ta_free(held.blocks[i]);
    MUST(blocks_of_domain() == OF_ONE - (OF_ONE + 2) / 3);
    ta_clear_traces();
    MUST(ta_domain_destroy(DOMAIN) == 0);
    MUST(blocks_of_domain() == 0);
}

/* Most of what the limit leaves is the program's. */
static void most_of_a_gib(void *unused)
{
    size_t got = 0;
    (void)unused;
    MUST(ta_start(64) == 0);
    MUST(lower_to(RLIMIT_AS, (size_t)1024 * MIB) == 0);
    while (ta_malloc(MIB) != NULL)
        got++;
    if (got < 800)
        dprintf(2, "only %zu MiB\n", got);
}

static void nothing_is_traced(void *unused)
{
    (void)unused;
    fill_blocks();
    MUST(lower_to(RLIMIT_AS, (size_t)60 * MIB) == 0);
    MUST(ta__memory_used(RLIMIT_AS) < (size_t)60 * MIB);
    lives();
    look_at_blocks_and_free();
    lives();
}

static void run(void (*body)(void *))
{
    struct child_result result;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    TEST_IGNORE_MESSAGE("the sanitizers want address space without end");
#endif
    if (ta__memory_left() != SIZE_MAX)
        TEST_IGNORE_MESSAGE("there is a limit already");
    child_run(&result, body, NULL);
    TEST_ASSERT_EQUAL_STRING("", result.text);
    if (result.exit_status == NOT_HERE)
        TEST_IGNORE_MESSAGE("memory may not be locked here");
    TEST_ASSERT_EQUAL_INT(0, result.signal);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

static void test_a_program_lives_on_in_little_space(void)
{
    run(space_of_200_mib);
    run(space_of_60_mib);
    run(most_of_a_gib);
}

static void test_a_program_lives_on_with_little_data(void)
{
    run(data_of_60_mib);
}

static void test_every_block_is_found_in_little_space(void)
{
    run(every_block_is_found);
}

static void test_arenas_go_back_where_nothing_is_traced(void)
{
    run(nothing_is_traced);
}

/* ---- the call itself ---------------------------------------------------------------------------------------------- */

static void call_is_the_kernels(void *unused)
{
    struct rlimit before, limit = {(rlim_t)300 * MIB, (rlim_t)4096 * MIB}, former, unreal = {2, 1};
    (void)unused;
    MUST(getrlimit(RLIMIT_AS, &before) == 0);
    errno = 77;
    MUST(prlimit(0, RLIMIT_AS, &limit, &former) == 0 && errno == 77);
    MUST(former.rlim_cur == before.rlim_cur && former.rlim_max == before.rlim_max);
    MUST(prlimit(getpid(), RLIMIT_AS, NULL, &former) == 0);
    MUST(former.rlim_cur == limit.rlim_cur && former.rlim_max == limit.rlim_max);
    MUST(setrlimit(RLIMIT_AS, &unreal) == -1 && errno == EINVAL);
    const struct rlimit *nowhere = (const struct rlimit *)(uintptr_t)16;
    MUST(prlimit(0, RLIMIT_AS, nowhere, NULL) == -1 && errno == EFAULT);
    MUST(prlimit(0, RLIMIT_NOFILE, nowhere, NULL) == -1 && errno == EFAULT);
    MUST(getrlimit(RLIMIT_AS, &former) == 0 && former.rlim_cur == limit.rlim_cur);
    struct rlimit files = {64, 64};
    MUST(setrlimit(RLIMIT_NOFILE, &files) == 0 && getrlimit(RLIMIT_NOFILE, &former) == 0 && former.rlim_cur == 64);
}

static void test_the_call_answers_as_the_kernel_does(void)
{
    run(call_is_the_kernels);
}

static long arena_reserve(void)
{
    return mi_option_get(mi_option_arena_reserve);
}

/* A program that looks how it does without memory is as fast as before when it has some again. */
static void limit_comes_and_goes(void *unused)
{
    (void)unused;
    long reserve = arena_reserve();
    MUST(reserve > 0);
    MUST(ta_start(64) == 0);
    for (uint32_t i = 0; i < PATHS; i++)
        held.path_blocks[i] = at_bits(PATHS | i);
    MUST(lower_to(RLIMIT_AS, (size_t)200 * MIB) == 0);
    MUST(arena_reserve() == 0);
    MUST(lower_to(RLIMIT_AS, (size_t)1 * MIB) == 0);
    MUST(ta_malloc((size_t)64 * MIB) == NULL && errno == ENOMEM);
    MUST(lower_to(RLIMIT_AS, RLIM_INFINITY) == 0);
    MUST(arena_reserve() == reserve);
    void *large = ta_malloc((size_t)64 * MIB);
    MUST(large != NULL);
    ta_free(large);
    for (uint32_t i = 0; i < PATHS; i++) { /* there was no room for tables at all: what they hold is there */
        size_t total;
        void *frames[64];
        MUST(ta_get_object_traceback(held.path_blocks[i], frames, 64, &total) > 10);
        ta_free(held.path_blocks[i]);
    }
}

static void test_a_limit_that_goes_leaves_nothing_behind(void)
{
    run(limit_comes_and_goes);
}

/* Programs that may not be interrupted by the disk want all their memory where it is; not what nobody uses. */
static void everything_is_locked(void *unused)
{
    (void)unused;
    MUST(ta_start(64) == 0);
    fill_blocks();
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        _exit(NOT_HERE);
    size_t resident = resident_bytes();
    if (resident > (size_t)100 * MIB)
        dprintf(2, "%zu bytes are resident\n", resident);
    lives();
    look_at_blocks_and_free();
    MUST(mlockall(~0) == -1 && errno == EINVAL);
}

static void test_what_is_reserved_is_not_locked(void)
{
    run(everything_is_locked);
}

/* ---- other threads ------------------------------------------------------------------------------------------------- */

static int must_end;

static void *allocates_until_the_end(void *number)
{
    uint32_t random = 77 + (uint32_t)(uintptr_t)number;
    void *blocks[64] = {NULL};
    while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED)) {
        random = random * 1103515245 + 12345;
        void **place = &blocks[random >> 8 & 63];
        ta_free(*place);
        *place = random >> 28 == 0 ? at_bits(PATHS | (random >> 12 & (PATHS - 1))) : ta_malloc(random >> 18);
        MUST(*place != NULL);
    }
    for (size_t i = 0; i < 64; i++)
        ta_free(blocks[i]);
    return NULL;
}

enum { THREADS = 4 };

static void start_threads(pthread_t *threads)
{
    __atomic_store_n(&must_end, 0, __ATOMIC_RELAXED);
    for (uintptr_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, allocates_until_the_end, (void *)i) == 0);
}

static void end_threads(const pthread_t *threads)
{
    __atomic_store_n(&must_end, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

static void others_allocate(void *unused)
{
    pthread_t threads[THREADS];
    (void)unused;
    MUST(ta_start(64) == 0);
    start_threads(threads); /* libc keeps a little of every thread */
    end_threads(threads);
    size_t libcs = current();
    start_threads(threads);
    for (size_t mib = 1000; mib >= 150; mib -= 10) {
        MUST(lower_to(RLIMIT_AS, mib * MIB) == 0);
        (void)deep((1000 - mib) * 4096);
    }
    end_threads(threads);
    MUST(current() == libcs);
}

static void test_other_threads_go_on_meanwhile(void)
{
    run(others_allocate);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_program_lives_on_in_little_space);
    RUN_TEST(test_a_program_lives_on_with_little_data);
    RUN_TEST(test_every_block_is_found_in_little_space);
    RUN_TEST(test_arenas_go_back_where_nothing_is_traced);
    RUN_TEST(test_the_call_answers_as_the_kernel_does);
    RUN_TEST(test_a_limit_that_goes_leaves_nothing_behind);
    RUN_TEST(test_what_is_reserved_is_not_locked);
    RUN_TEST(test_other_threads_go_on_meanwhile);
    return UNITY_END();
}

void setUp(void)
{
}

void tearDown(void)
{
}
