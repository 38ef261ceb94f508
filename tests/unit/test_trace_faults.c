/* test_trace_faults.c: what can go wrong with tracing goes wrong quietly — no memory for its tables, too many stacks,
 * changes of mode under way, forks at any time — and the program runs on, with honest numbers. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <unity.h>

#include "base/atomics.h"
#include "base/memory.h"
#include "trace/trace.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 1500, FORKS = 0 }; /* the sanitizers' own locks do not survive a fork out of many threads */
#else
enum { ROUNDS = 20000, FORKS = 100 };
#endif

void setUp(void)
{
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta_stop();
}

static size_t current(void)
{
    size_t now;
    ta_get_traced_memory(&now, NULL);
    return now;
}

static struct ta_health health(void)
{
    struct ta_health now;
    ta_get_health(&now, sizeof now);
    return now;
}

/* What the leaves hold, summed: must be current when nothing moves. */
static size_t sum_over_leaves(void)
{
    size_t sum = 0;
    for (uint32_t leaf = 0; leaf < ta__leaf_count(); leaf++) {
        struct ta__source_counts counts;
        ta__counters_fold(leaf, 1, &counts);
        sum += counts.allocated_bytes - counts.freed_bytes;
    }
    return sum;
}

NOINLINE static void *at_depth(unsigned path, int depth, size_t size)
{
    void *block;
    if (depth == 0)
        block = ta_malloc(size);
    else if (path & 1)
        block = at_depth(path >> 1, depth - 1, size);
    else {
        block = at_depth(path >> 1, depth - 1, size);
        KEEP(block);
    }
    KEEP(block);
    return block;
}

/* Many different stacks: each bit of the path is another call site. */
static size_t many_stacks(unsigned first, unsigned count, void **blocks)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = at_depth(first + i, 14, 1 + i % 50);
        TEST_ASSERT_NOT_NULL(blocks[i]);
        bytes += 1 + i % 50;
    }
    return bytes;
}

/* ---- the cap on contexts ------------------------------------------------------------------------------------------
 * Runs first and in a child: the tables have the size that they were made with. */

static int in_child(int (*body)(int), int argument)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(body(argument));
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int more_stacks_than_the_cap(int unused)
{
    (void)unused;
    static void *blocks[4000];
    ta__trace_configure(&(struct ta__trace_config){.max_contexts = 1024});
    if (ta_start(100) != 0)
        return 1;
    size_t bytes = many_stacks(0, 4000, blocks);
    struct ta_health now = health();
    if (now.overflowed == 0 || now.lost != 0)
        return 2;
    if (current() != bytes || sum_over_leaves() != bytes)
        return 3;
    int of_overflow = 0;
    for (int i = 0; i < 4000; i++) {
        void *frames[100] = {NULL};
        size_t count = ta_get_object_traceback(blocks[i], frames, 100, NULL);
        if (count == 0)
            return 4; /* never empty */
        of_overflow += count == 1 && frames[0] == NULL;
        if (FORKS > 0 && count > 1 && (uintptr_t)frames[0] - (uintptr_t)at_depth > 400)
            return 5; /* never a wrong one */
    }
    if (of_overflow == 0 || (uint64_t)of_overflow != now.overflowed)
        return 6;
    for (int i = 0; i < 4000; i++)
        ta_free(blocks[i]);
    return current() == 0 && sum_over_leaves() == 0 ? 0 : 7;
}

static void test_contexts_beyond_the_cap_fall_to_overflow_and_are_counted_right(void)
{
    TEST_ASSERT_EQUAL_INT(0, in_child(more_stacks_than_the_cap, 0));
}

/* Full tables are not full for ever: when what filled them is freed, new stacks find room again. */
static int full_tables_become_free(int unused)
{
    (void)unused;
    static void *blocks[4000];
    ta__trace_configure(&(struct ta__trace_config){.max_contexts = 1024});
    if (ta_start(100) != 0)
        return 1;
    many_stacks(0, 4000, blocks);
    if (health().overflowed == 0)
        return 2;
    for (int i = 0; i < 4000; i++)
        ta_free(blocks[i]);
    ta_reset_peak();                                  /* what held the memory at the peak stays */
    for (unsigned round = 0; round < 2000; round++) { /* a few at a time, which have room if there is any */
        enum { FEW = 20 };
        void *frames[100];
        many_stacks(round * FEW, FEW, blocks);
        size_t count = ta_get_object_traceback(blocks[FEW - 1], frames, 100, NULL);
        for (int i = 0; i < FEW; i++)
            ta_free(blocks[i]);
        if (round > 300 && count > 10)
            return current() == 0 && sum_over_leaves() == 0 ? 0 : 3;
    }
    return 4;
}

static void test_tables_that_were_full_take_stacks_again(void)
{
    TEST_ASSERT_EQUAL_INT(0, in_child(full_tables_become_free, 0));
}

/* With one frame each call site is a stack: here are two thousand. */
#define ONCE       *blocks++ = ta_malloc(9);
#define TEN(of)    of of of of of of of of of of
#define MANY_SITES 2000

NOINLINE static void from_many_sites(void **blocks)
{
    TEN(TEN(TEN(ONCE)))
    TEN(TEN(TEN(ONCE)))
}

static int more_sites_than_the_cap(int unused)
{
    (void)unused;
    static void *blocks[2 * MANY_SITES];
    ta__trace_configure(&(struct ta__trace_config){.max_contexts = 1024});
    if (ta_start(1) != 0)
        return 1;
    from_many_sites(blocks);
    from_many_sites(blocks + MANY_SITES); /* the same again */
    struct ta_health now = health();
    int of_overflow = 0;
    for (int i = 0; i < 2 * MANY_SITES; i++) {
        void *frame = NULL;
        if (ta_get_object_traceback(blocks[i], &frame, 1, NULL) != 1)
            return 2;
        of_overflow += frame == NULL;
        if (FORKS > 0 && frame != NULL && (uintptr_t)frame - (uintptr_t)from_many_sites > 200000)
            return 3;
    }
    if (of_overflow < 2 * (MANY_SITES - 1024))
        return 4;
    if ((uint64_t)of_overflow != now.overflowed || now.lost != 0)
        return 5;
    if (current() != 2 * MANY_SITES * 9 || sum_over_leaves() != current())
        return 6;
    for (int i = 0; i < 2 * MANY_SITES; i++)
        ta_free(blocks[i]);
    return current() == 0 && sum_over_leaves() == 0 ? 0 : 7;
}

static void test_call_sites_beyond_the_cap_fall_to_overflow_with_one_frame_too(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("this sanitizer leaves no jumps to other functions: the return address is one of ours");
#endif
    TEST_ASSERT_EQUAL_INT(0, in_child(more_sites_than_the_cap, 0));
}

/* When so many numbers of leaves are used up that they begin anew, headers of before forget theirs, and nothing else. */
static int numbers_begin_anew(int unused)
{
    (void)unused;
    enum { KEPT = 40 };
    static char *kept[KEPT], *others[200];
    ta__trace_configure(&(struct ta__trace_config){.max_contexts = 1024});
    if (ta_start(100) != 0)
        return 1;
    for (int i = 0; i < KEPT; i++) {
        kept[i] = i % 4 == 3 ? ta_domain_aligned_alloc((uint32_t)(i % 3), 256, 1000 + (size_t)i)
                             : ta_domain_malloc((uint32_t)(i % 3), i % 8 == 0 ? 100000 : 20 + (size_t)i);
        if (kept[i] == NULL)
            return 2;
        memset(kept[i], i, 20);
    }
    uint32_t first = ta__load_relaxed(&ta__leaf_first);
    for (int round = 0; ta__load_relaxed(&ta__leaf_first) >= first; round++) {
        first = ta__load_relaxed(&ta__leaf_first);
        many_stacks((unsigned)round * 200, 200, (void **)others);
        for (int i = 0; i < 200; i++)
            ta_free(others[i]);
        ta_clear_traces();
        if (round > 100000)
            return 3;
    }
    for (int i = 0; i < KEPT; i++) {
        uint32_t domain = 77;
        size_t size = i % 4 == 3 ? 1000 + (size_t)i : i % 8 == 0 ? 100000 : 20 + (size_t)i;
        if (ta_domain_of(kept[i], &domain) != 1 || domain != (uint32_t)(i % 3) || ta_usable_size(kept[i]) != size)
            return 4;
        if (kept[i][0] != i || kept[i][19] != i || ta_get_object_traceback(kept[i], NULL, 0, NULL) != 0)
            return 5;
    }
    for (int i = 0; i < KEPT; i++)
        ta_free(kept[i]);
    return current() == 0 && health().invalid_frees == 0 ? 0 : 6;
}

static void test_numbers_of_leaves_begin_anew_and_blocks_stay_what_they_are(void)
{
    TEST_ASSERT_EQUAL_INT(0, in_child(numbers_begin_anew, 0));
}

/* ---- no memory ---------------------------------------------------------------------------------------------------- */

static void *one_thread(void *result)
{
    void *block = at_depth(5, 6, 77);
    if (block != NULL)
        memset(block, 1, 77);
    ta_free(block);
    KEEP(result);
    return block == NULL ? "no block" : NULL;
}

/* Deeper than a memo is at first. */
NOINLINE static void *far_down(int depth)
{
    void *block = depth == 0 ? ta_malloc(40) : far_down(depth - 1);
    KEEP(block);
    return block;
}

/* Tracing has begun, and there is no memory for it in this thread: that is said, not that nothing is traced. */
static int tracks_without_memory(int unused)
{
    (void)unused;
    ta_free(ta_malloc(1));
    if (ta_track(7, 4096, 100) != -2 || ta_start(30) != 0)
        return 1;
    ta__memory_inject_failure(1, 1);
    if (ta_track(7, 4096, 100) != -1 || current() != 0)
        return 2;
    ta__memory_inject_failure(0, 0);
    return 0;
}

static void test_an_address_cannot_be_tracked_without_memory(void)
{
    TEST_ASSERT_EQUAL_INT(0, in_child(tracks_without_memory, 0));
}

/* The n-th mapping of ours fails, and all later ones if sticky: what then works must work. */
static int without_memory(int argument)
{
    static void *blocks[3000];
    int sticky = argument & 1;
    ta__memory_inject_failure(argument >> 1, sticky);
    int started = ta_start(30);
    if (started != 0 && errno != ENOMEM)
        return 1;
    size_t bytes = 0;
    for (unsigned i = 0; i < 3000; i++) {
        size_t size = 1 + i % 500;
        blocks[i] = i % 7 == 0 ? ta_aligned_alloc(64, size) : at_depth(i, 13, size);
        if (blocks[i] == NULL)
            return 2;
        memset(blocks[i], 0x5a, size);
        if (ta_get_object_traceback(blocks[i], NULL, 0, NULL) != 0)
            bytes += size;
    }
    if (current() != bytes || sum_over_leaves() != bytes)
        return 3;
    if (started == 0 && bytes == 0 && health().lost == 0)
        return 4; /* untraced, and nobody says so */
    for (int i = 0; i < 3; i++) {
        void *frames[30];
        void *block = far_down(3000);
        size_t total;
        size_t count = ta_get_object_traceback(block, frames, 30, &total);
        if (block == NULL || (count != 0 && frames[0] != NULL && (count != 30 || total < 250)))
            return 11; /* a stack may be cut, but deep down */
        ta_free(block);
    }
    (void)ta_track(5, 16, 100);
    pthread_t thread;
    void *complaint;
    if (pthread_create(&thread, NULL, one_thread, NULL) != 0 || pthread_join(thread, &complaint) != 0 ||
        complaint != NULL)
        return 5;
    for (unsigned i = 0; i < 3000; i++) {
        if (i % 3 == 0 && (blocks[i] = ta_realloc(blocks[i], 700)) == NULL)
            return 6;
        if (*(unsigned char *)blocks[i] != 0x5a)
            return 7;
        ta_free(blocks[i]);
    }
    (void)ta_untrack(5, 16);
    if (current() != sum_over_leaves())
        return 8;
    ta__memory_inject_failure(0, 0);
    ta_stop();
    if (ta_start(10) != 0)
        return 9;
    void *block = at_depth(1, 3, 10);
    int is_traced = ta_get_object_traceback(block, NULL, 0, NULL) != 0;
    ta_free(block);
    return is_traced ? 0 : 10;
}

static void test_each_mapping_that_fails_leaves_the_program_running_and_the_numbers_true(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("this sanitizer wants no threads in children");
#endif
    for (int nth = 1; nth <= 24; nth++)
        for (int sticky = 0; sticky < 2; sticky++) {
            char what[80];
            snprintf(what, sizeof what, "mapping %d, sticky %d", nth, sticky);
            TEST_ASSERT_EQUAL_INT_MESSAGE(0, in_child(without_memory, nth * 2 + sticky), what);
        }
}

/* ---- little address space ----------------------------------------------------------------------------------------- */

enum { THREADS_WANTED = 24 };

static pthread_barrier_t all_there;

static void *thread_among_many(void *unused)
{
    void *block = at_depth(9, 6, 1000);
    size_t count = ta_get_object_traceback(block, NULL, 0, NULL);
    pthread_barrier_wait(&all_there);
    ta_free(block);
    return count == 0 ? "a block of a thread is untraced" : unused;
}

/* 112 MiB are left, of which the threads' stacks want 24: tracing may not have taken what they need. */
static int with_little_address_space(int unused)
{
    (void)unused;
    pthread_attr_t attributes;
    pthread_t threads[THREADS_WANTED];
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages;
    if (file == NULL || fscanf(file, "%lu", &pages) != 1 || fclose(file) != 0 || getrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    limit.rlim_cur = pages * 4096 + ((rlim_t)112 << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 2;
    if (ta_start(50) != 0)
        return 3;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 20);
    pthread_barrier_init(&all_there, NULL, THREADS_WANTED);
    alarm(60);
    for (int i = 0; i < THREADS_WANTED; i++)
        if (pthread_create(&threads[i], &attributes, thread_among_many, NULL) != 0)
            return 100 + i;
    int result = 0;
    for (int i = 0; i < THREADS_WANTED; i++) {
        void *complaint;
        if (pthread_join(threads[i], &complaint) != 0 || complaint != NULL)
            result = 4;
    }
    return result != 0 || health().lost == 0 ? result : 5;
}

static void test_little_address_space_is_shared_with_the_program(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    TEST_IGNORE_MESSAGE("the sanitizers want address space without end");
#endif
    TEST_ASSERT_EQUAL_INT(0, in_child(with_little_address_space, 0));
}

/* ---- stacks of any depth ------------------------------------------------------------------------------------------ */

NOINLINE static void to_the_bottom(long depth, const char **complaint)
{
    if (depth % 100000 == 0) {
        void *block = ta_malloc(24);
        void *frames[3];
        size_t total;
        size_t count = ta_get_object_traceback(block, frames, 3, &total);
        if (count == 0 || total == 0)
            *complaint = "a deep stack has no trace";
        /* 400000 frames above: all that counts */
        if (depth <= 600000 && (count != 50 || total != 65535 || frames[1] != frames[2]))
            *complaint = "a deep stack is cut";
        ta_free(block);
    }
    if (depth > 0)
        to_the_bottom(depth - 1, complaint);
    KEEP(&depth);
}

/* Up and down where the memo has to forget, allocating all the way. */
NOINLINE static void all_the_way(long depth, const char **complaint)
{
    void *block = NULL;
    if (depth % 16 == 0 && depth < 5900) {
        size_t total;
        block = ta_malloc(24);
        if (ta_get_object_traceback(block, NULL, 0, &total) != 50 || total < 50)
            *complaint = "a trace is too short";
    }
    if (depth > 0)
        all_the_way(depth - 1, complaint);
    if (depth % 1024 == 0) {
        size_t total;
        void *late = ta_malloc(24);
        if (ta_get_object_traceback(late, NULL, 0, &total) != 50)
            *complaint = "a trace on the way back is too short";
        ta_free(late);
    }
    ta_free(block);
    KEEP(&depth);
}

static void *deep_thread(void *unused)
{
    const char *complaint = NULL;
    (void)unused;
    to_the_bottom(1000000, &complaint);
    return (void *)(uintptr_t)complaint;
}

static void *less_deep_thread(void *unused)
{
    const char *complaint = NULL;
    (void)unused;
    all_the_way(6000, &complaint);
    return (void *)(uintptr_t)complaint;
}

static void on_large_stack(void *(*body)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *complaint;
    TEST_ASSERT_EQUAL_INT(0, pthread_attr_init(&attributes));
    TEST_ASSERT_EQUAL_INT(0, pthread_attr_setstacksize(&attributes, (size_t)1 << 30));
    TEST_ASSERT_EQUAL_INT(0, ta_start(50));
    if (pthread_create(&thread, &attributes, body, NULL) != 0)
        TEST_IGNORE_MESSAGE("no address space for a stack this large");
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &complaint));
    pthread_attr_destroy(&attributes);
    TEST_ASSERT_NULL_MESSAGE(complaint, complaint);
}

static void test_a_stack_of_a_million_frames_is_counted_to_65535(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    TEST_IGNORE_MESSAGE("the sanitizers' frames are too large");
#endif
    on_large_stack(deep_thread);
}

static void test_a_deep_recursion_that_allocates_all_the_way_has_whole_traces(void)
{
    on_large_stack(less_deep_thread);
}

/* ---- changes of mode under way ------------------------------------------------------------------------------------ */

static int over;

static void *churn(void *argument)
{
    unsigned random = (unsigned)(uintptr_t)argument;
    void *blocks[32] = {NULL};
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        for (int i = 0; i < 200; i++) {
            random = random * 1103515245 + 12345;
            unsigned at = random >> 16 & 31;
            if (random >> 30 == 0)
                blocks[at] = ta_realloc(blocks[at], 1 + (random >> 8 & 2047));
            else {
                ta_free(blocks[at]);
                blocks[at] = at_depth(random >> 4, (int)(random >> 20 & 7), random >> 8 & 1023);
            }
        }
    for (int i = 0; i < 32; i++)
        ta_free(blocks[i]);
    return NULL;
}

static void with_threads(void (*body)(void))
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    __atomic_store_n(&over, 0, __ATOMIC_RELEASE);
    for (uintptr_t i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, churn, (void *)(i + 1)));
    body();
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_join(threads[i], NULL));
}

static void start_stop_clear(void)
{
    unsigned random = 7;
    for (int i = 0; i < ROUNDS / 100; i++) {
        random = random * 1103515245 + 12345;
        size_t now;
        size_t highest;
        switch (random >> 16 & 7) {
        case 0:
        case 1:
            (void)ta_start(1 + (int)(random >> 20 & 31));
            break;
        case 2:
            ta_stop();
            break;
        case 3:
            ta_clear_traces();
            break;
        case 4:
            ta_reset_peak();
            break;
        case 5:
            (void)ta_track(random >> 20 & 3, random >> 24, 100);
            break;
        case 6:
            (void)ta_untrack(random >> 20 & 3, random >> 24);
            break;
        default:
            break;
        }
        ta_get_traced_memory(&now, &highest);
        /* Blocks are below 2 KiB and there are 8 times 32: what is more comes from a counter gone wrong. */
        if (now > 8 * 32 * 2048 + 9 * 65536 + 400 * 256 || highest < now)
            TEST_FAIL_MESSAGE("current or peak makes no sense");
    }
}

static void test_start_stop_and_clear_while_eight_threads_allocate_keep_the_sums_right(void)
{
    with_threads(start_stop_clear);
    ta_stop();
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));
    with_threads(ta_clear_traces);

    TEST_ASSERT_EQUAL_size_t(sum_over_leaves(), current());
    TEST_ASSERT_EQUAL_UINT64(0, health().invalid_frees);
    TEST_ASSERT_EQUAL_UINT64(0, health().lost);
}

/* ---- fork --------------------------------------------------------------------------------------------------------- */

static int forks_wanted = FORKS;

static int goes_on_tracing(int unused)
{
    (void)unused;
    static void *blocks[200];
    alarm(60); /* a deadlock is a failure, not a wait */
    if (!ta_is_tracing())
        return 1;
    size_t before = current();
    size_t bytes = many_stacks(0, 200, blocks);
    if (current() != before + bytes)
        return 2;
    for (int i = 0; i < 200; i++)
        ta_free(blocks[i]);
    if (current() != before)
        return 3;
    ta_clear_traces();
    return current() == 0 && sum_over_leaves() == 0 ? 0 : 4;
}

static void fork_often(void)
{
    for (int i = 0; i < forks_wanted; i++)
        TEST_ASSERT_EQUAL_INT(0, in_child(goes_on_tracing, 0));
}

static void test_children_forked_while_threads_allocate_go_on_tracing(void)
{
    if (FORKS == 0)
        TEST_IGNORE_MESSAGE("not under this sanitizer");
    TEST_ASSERT_EQUAL_INT(0, ta_start(20));
    with_threads(fork_often);
}

/* ---- early and late ----------------------------------------------------------------------------------------------- */

static void *of_constructor;

__attribute__((constructor)) static void allocate_in_constructor(void)
{
    of_constructor = ta_malloc(11);
}

static void test_a_block_of_a_constructor_is_a_good_one(void)
{
    TEST_ASSERT_NOT_NULL(of_constructor);
    TEST_ASSERT_EQUAL_INT(0, ta_start(3));
    of_constructor = ta_realloc(of_constructor, 100);
    TEST_ASSERT_EQUAL_size_t(100, current());
    ta_free(of_constructor);
    TEST_ASSERT_EQUAL_size_t(0, current());
}

static pthread_key_t late_key;
static int late_rounds;

static void late_destructor(void *value)
{
    void *block = at_depth(3, 4, 500);
    if (block != NULL && ta_get_object_traceback(block, NULL, 0, NULL) != 0)
        __atomic_add_fetch(&late_rounds, 1, __ATOMIC_RELAXED);
    ta_free(value);
    if (__atomic_load_n(&late_rounds, __ATOMIC_RELAXED) % 3 != 0)
        pthread_setspecific(late_key, block); /* once more */
    else
        ta_free(block);
}

static void *thread_with_late_destructor(void *unused)
{
    pthread_setspecific(late_key, ta_malloc(100));
    return unused;
}

static void test_allocations_in_late_destructors_of_threads_are_traced(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("this sanitizer is gone before the last destructors run");
#endif
    TEST_ASSERT_EQUAL_INT(0, pthread_key_create(&late_key, late_destructor));
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
    size_t blocks_before = current();
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, thread_with_late_destructor, NULL));
        TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
    }
    TEST_ASSERT_EQUAL_INT(60, late_rounds);
    TEST_ASSERT_LESS_THAN_size_t(blocks_before + 8192, current()); /* libc keeps a stack with its vectors */
    TEST_ASSERT_EQUAL_size_t(sum_over_leaves(), current());
    pthread_key_delete(late_key);
}

static void allocate_at_exit(void)
{
    if (ta_start(5) != 0)
        _exit(41);
    void *block = at_depth(1, 5, 123);
    if (current() != 123 || ta_track(1, 1, 1) != 0)
        _exit(42);
    ta_free(block);
    if (current() != 1)
        _exit(43);
}

static int ends_with_exit(int unused)
{
    (void)unused;
    atexit(allocate_at_exit);
    freopen("/dev/null", "w", stdout);
    exit(0);
}

static void test_allocations_in_atexit_handlers_are_traced(void)
{
#if defined(__SANITIZE_ADDRESS__)
    TEST_IGNORE_MESSAGE("the leak check would judge the child");
#endif
    TEST_ASSERT_EQUAL_INT(0, in_child(ends_with_exit, 0));
}

int main(int count, char **words)
{
    static char output[1 << 16];
    setvbuf(stdout, output, _IOFBF, sizeof output);
    if (count > 1)
        forks_wanted = atoi(words[1]);
    UNITY_BEGIN();
    RUN_TEST(test_contexts_beyond_the_cap_fall_to_overflow_and_are_counted_right);
    RUN_TEST(test_tables_that_were_full_take_stacks_again);
    RUN_TEST(test_call_sites_beyond_the_cap_fall_to_overflow_with_one_frame_too);
    RUN_TEST(test_numbers_of_leaves_begin_anew_and_blocks_stay_what_they_are);
    RUN_TEST(test_each_mapping_that_fails_leaves_the_program_running_and_the_numbers_true);
    RUN_TEST(test_an_address_cannot_be_tracked_without_memory);
    RUN_TEST(test_little_address_space_is_shared_with_the_program);
    RUN_TEST(test_a_block_of_a_constructor_is_a_good_one);
    RUN_TEST(test_a_stack_of_a_million_frames_is_counted_to_65535);
    RUN_TEST(test_a_deep_recursion_that_allocates_all_the_way_has_whole_traces);
    RUN_TEST(test_start_stop_and_clear_while_eight_threads_allocate_keep_the_sums_right);
    RUN_TEST(test_children_forked_while_threads_allocate_go_on_tracing);
    RUN_TEST(test_allocations_in_late_destructors_of_threads_are_traced);
    RUN_TEST(test_allocations_in_atexit_handlers_are_traced);
    return UNITY_END();
}
