/* test_snapshot_live.c: snapshots of a program that really runs under the allocator, this one. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/read/read.h"
#include "snapshot/write/take.h"
#include "trace/trace.h"
#include "tracealloc/snapshot.h"

static char path[] = "/tmp/ta_live.XXXXXX";

void setUp(void)
{
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_start(64), ta_error_text());
}

void tearDown(void)
{
    ta_stop();
}

__attribute__((noinline)) static void *allocate_here(size_t size)
{
    void *volatile block = ta_malloc(size);
    memset(block, 1, size);
    return block;
}

/* Index of the trace whose size is `size`, -1 when there is none. */
static long find_size(struct ta_snapshot *snapshot, uint64_t size, struct ta_trace *trace)
{
    long count = ta_snapshot_trace_count(snapshot);
    for (long i = 0; i < count; i++) {
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(snapshot, (size_t)i, trace));
        if (trace->size == size)
            return i;
    }
    return -1;
}

/* A thread's first request after a start takes the slow path; in builds without tail calls that is one more frame. */
static void adapt_to_the_start(void)
{
    ta_free(allocate_here(1));
}

static void test_live_block_is_found_with_its_stack(void)
{
    enum { SIZE = 123457, BLOCKS = 3 };
    void *blocks[BLOCKS];
    adapt_to_the_start();
    int count = BLOCKS;
    __asm__("" : "+r"(count)); /* not unrolled: one call site */
    for (int i = 0; i < count; i++)
        blocks[i] = allocate_here(SIZE);
    struct ta_snapshot *snapshot = ta_take_snapshot();
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    void *addresses[64];
    size_t depth = ta_get_object_traceback(blocks[0], addresses, 64, NULL);
    for (int i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);

    struct ta_trace trace;
    long index = find_size(snapshot, (uint64_t)SIZE * BLOCKS, &trace);
    TEST_ASSERT_GREATER_OR_EQUAL_MESSAGE(0, index, "no such trace");
    struct ta_raw_frame frames[64];
    TEST_ASSERT_EQUAL(BLOCKS, trace.count);
    TEST_ASSERT_EQUAL(depth, trace.nframe);
    TEST_ASSERT_EQUAL(depth, ta_snapshot_trace_frames(snapshot, (size_t)index, frames, 64));
    for (size_t i = 0; i < depth; i++)
        TEST_ASSERT_EQUAL_HEX64((uint64_t)(uintptr_t)addresses[i], frames[i].address);
    TEST_ASSERT_NOT_NULL(frames[0].file);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(frames[0].file, "test_snapshot_live"), frames[0].file);
    ta_snapshot_free(snapshot);
}

static void test_taking_and_writing_is_invisible_in_the_traces(void)
{
    ta_snapshot_free(ta_take_snapshot());
    TEST_ASSERT_EQUAL(0, ta__snapshot_to_file(path, "warm-up"));
    struct ta_record *record = ta_record_open(path, 0);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    uint32_t leaves = ta__leaf_count();
    struct ta__source_counts before = {0}, after = {0}, one;
    for (uint32_t i = 0; i < leaves; i++) {
        ta__counters_fold(i, 1, &one);
        before.allocated_blocks += one.allocated_blocks, before.freed_blocks += one.freed_blocks;
    }
    struct ta_snapshot *snapshot = ta_take_snapshot();
    int failed = ta_snapshot_set_metadata(snapshot, "a", "b") != 0 || ta_snapshot_dump(snapshot, path) != 0;
    ta_snapshot_free(snapshot);
    failed |= ta__snapshot_to_file(path, "again") != 0;
    failed |= ta_record_append(record, NULL) != 0;
    for (uint32_t i = 0; i < ta__leaf_count(); i++) {
        ta__counters_fold(i, 1, &one);
        after.allocated_blocks += one.allocated_blocks, after.freed_blocks += one.freed_blocks;
    }
    ta_record_close(record);
    TEST_ASSERT_EQUAL(leaves, ta__leaf_count());
    TEST_ASSERT_EQUAL_UINT64(before.allocated_blocks, after.allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(before.freed_blocks, after.freed_blocks);
    TEST_ASSERT_FALSE(failed);
}

static atomic_int go_on;

/* Two call sites that the compiler cannot make one: 2^depth stacks. */
__attribute__((noinline)) static void *recurse(int depth, size_t size)
{
    void *volatile block;
    if (depth == 0)
        return allocate_here(size);
    if (size >> depth & 1) {
        block = recurse(depth - 1, size);
        __asm__ volatile("nop");
    } else {
        block = recurse(depth - 1, size);
        __asm__ volatile("nop; nop");
    }
    return block;
}

/* Under a sanitizer, 64 threads that never sleep leave the one that takes snapshots too little time. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { THREADS = 64, SNAPSHOTS = 3, ALLOCATIONS_PER_NAP = 32 };
#else
enum { THREADS = 64, SNAPSHOTS = 12, ALLOCATIONS_PER_NAP = 0 };
#endif

static void *allocate_all_the_time(void *argument)
{
    unsigned random = (unsigned)(uintptr_t)argument * 2654435761u + 1;
    void *blocks[64] = {0};
    unsigned count = 0;
    while (atomic_load(&go_on)) {
        random = random * 1664525 + 1013904223;
        unsigned slot = (random >> 16) % 64;
        ta_free(blocks[slot]);
        blocks[slot] = recurse((int)((random >> 8) % 12), (random >> 12) % 2000);
        if (ALLOCATIONS_PER_NAP != 0 && ++count % (ALLOCATIONS_PER_NAP + 1) == 0)
            usleep(5000);
    }
    for (int i = 0; i < 64; i++)
        ta_free(blocks[i]);
    return NULL;
}

static void test_snapshots_while_64_threads_allocate_are_sound(void)
{
    pthread_t threads[THREADS];
    atomic_store(&go_on, 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, allocate_all_the_time, (void *)i));
    struct ta_record *record = ta_record_open(path, 0);
    int failed = record == NULL;
    for (int i = 0; i < SNAPSHOTS && !failed; i++) {
        failed = ta_record_append(record, NULL) != 0;
        struct ta_snapshot *snapshot = ta_take_snapshot();
        failed |= snapshot == NULL || ta__snapshot_view(snapshot) == NULL;
        ta_snapshot_free(snapshot);
    }
    atomic_store(&go_on, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    failed |= ta_record_append(record, "quiet") != 0;
    size_t current = 0;
    ta_get_traced_memory(&current, NULL);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_FALSE_MESSAGE(failed, ta_error_text());
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    struct ta_snapshot *last = ta_snapshot_load(path);
    const struct ta__view *view = ta__snapshot_view(last);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view->trace_count; i++)
        sum += view->traces[i].size;
    TEST_ASSERT_EQUAL_UINT64(view->current_bytes, sum); /* nothing moved any more */
    TEST_ASSERT_GREATER_THAN(100, view->context_count);
    ta_snapshot_free(last);
}

static void test_not_tracing_is_said(void)
{
    ta_stop();
    TEST_ASSERT_NULL(ta_take_snapshot());
    TEST_ASSERT_EQUAL_STRING("tracealloc must be tracing memory allocations to take a snapshot", ta_error_text());
}

static void test_snapshot_that_cannot_be_written_shows_in_the_health_and_in_the_next(void)
{
    struct ta_health before, after;
    ta_get_health(&before, sizeof before);
    TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file("/nowhere/x.ta", "test"));
    TEST_ASSERT_NULL(ta_record_open("/nowhere/x.ta", 0));
    ta_get_health(&after, sizeof after);
    TEST_ASSERT_EQUAL_UINT64(2, after.snapshot_errors - before.snapshot_errors);

    struct ta_snapshot *snapshot = ta_take_snapshot();
    struct ta_snapshot_info info;
    TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
    TEST_ASSERT_EQUAL_UINT64(after.snapshot_errors, info.snapshot_errors);
    ta_snapshot_free(snapshot);
}

static void test_snapshot_outlives_the_tracing(void)
{
    void *block = allocate_here(54321);
    struct ta_snapshot *snapshot = ta_take_snapshot();
    ta_free(block);
    ta_stop();
    struct ta_trace trace;
    TEST_ASSERT_GREATER_OR_EQUAL(0, find_size(snapshot, 54321, &trace));
    ta_snapshot_free(snapshot);
}

static void test_clear_between_two_entries_shows_in_the_second_only(void)
{
    struct ta_record *record = ta_record_open(path, 0);
    void *block = allocate_here(77777);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    ta_clear_traces();
    void *other = allocate_here(88888);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    ta_free(block);
    ta_free(other);
    struct ta_trace trace;
    char entry[64];
    snprintf(entry, sizeof entry, "%s@0", path);
    struct ta_snapshot *first = ta_snapshot_load(entry);
    struct ta_snapshot *second = ta_snapshot_load(path);
    TEST_ASSERT_GREATER_OR_EQUAL(0, find_size(first, 77777, &trace));
    TEST_ASSERT_EQUAL(-1, find_size(second, 77777, &trace));
    TEST_ASSERT_GREATER_OR_EQUAL(0, find_size(second, 88888, &trace));
    ta_snapshot_free(first);
    ta_snapshot_free(second);
}

/* What traces of this much held at the peak: the sum, so that the size tells call sites apart. */
static uint64_t at_peak(struct ta_snapshot *snapshot, uint64_t least, uint64_t most)
{
    struct ta_trace trace;
    uint64_t sum = 0;
    long count = ta_snapshot_trace_count(snapshot) + ta_snapshot_gone_trace_count(snapshot);
    for (long i = 0; i < count; i++) {
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(snapshot, (size_t)i, &trace));
        if (trace.peak_bytes >= least && trace.peak_bytes <= most)
            sum += trace.peak_bytes;
    }
    return sum;
}

__attribute__((noinline)) static void *allocate_there(size_t size)
{
    void *volatile block = ta_malloc(size);
    memset(block, 1, 1);
    return block;
}

static void test_blocks_alive_at_the_peak_are_found_after_they_were_freed(void)
{
    enum { LARGE = 30 << 20, MEDIUM = 9 << 20 };
    adapt_to_the_start();
    void *large = allocate_here(LARGE);
    void *medium = allocate_there(MEDIUM);
    ta_free(large);
    ta_free(medium);
    void *later = allocate_there(2 << 20);
    struct ta_snapshot *snapshot = ta_take_snapshot();
    ta_free(later);
    TEST_ASSERT_EQUAL_UINT64(LARGE, at_peak(snapshot, LARGE, LARGE));
    TEST_ASSERT_EQUAL_UINT64(MEDIUM, at_peak(snapshot, MEDIUM, MEDIUM));
    TEST_ASSERT_EQUAL_UINT64(0, at_peak(snapshot, 2 << 20, 2 << 20));
    ta_snapshot_free(snapshot);
}

/* However the program grows and shrinks, what is written down is close to its peak, and so is a small program's. */
static void test_recorded_peak_is_within_a_twentieth_of_the_peak(void)
{
    static void *blocks[20000];
    unsigned random = 12345;
    adapt_to_the_start();
    for (int round = 0; round < 16; round++) {
        ta_clear_traces();
        int count = 20 + (int)((random >> 8) % (round < 8 ? 200 : 20000 - 20));
        for (int i = 0; i < count; i++) {
            random = random * 1664525 + 1013904223;
            blocks[i] = i % 2 ? allocate_here(1 + (random >> 12) % 900) : allocate_there(1 + (random >> 12) % 3000);
        }
        for (int i = 0; i < count; i++)
            ta_free(blocks[i]);
        struct ta_snapshot *snapshot = ta_take_snapshot();
        struct ta_snapshot_info info;
        TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
        uint64_t recorded = at_peak(snapshot, 0, UINT64_MAX);
        TEST_ASSERT_LESS_OR_EQUAL(info.peak_bytes, recorded);
        TEST_ASSERT_GREATER_OR_EQUAL(info.peak_bytes - info.peak_bytes / 20 - 4096, recorded);
        ta_snapshot_free(snapshot);
    }
}

static void test_peak_of_a_growing_program_is_now(void)
{
    adapt_to_the_start();
    void *first = allocate_here(5 << 20);
    void *second = allocate_here(100 << 10); /* less than a twentieth more */
    struct ta_snapshot *snapshot = ta_take_snapshot();
    ta_free(first);
    ta_free(second);
    TEST_ASSERT_EQUAL_UINT64((5 << 20) + (100 << 10),
                             at_peak(snapshot, 1 << 10, 5 << 20) + at_peak(snapshot, (5 << 20) + 1, UINT64_MAX));
    ta_snapshot_free(snapshot);
}

enum { AT_ONCE = 4, EACH = 800000 };
static pthread_barrier_t together;

static void *allocate_together(void *unused)
{
    pthread_barrier_wait(&together);
    void *block = allocate_there(EACH);
    pthread_barrier_wait(&together);
    ta_free(block);
    return unused;
}

static void test_peak_that_threads_make_together_is_seen(void)
{
    pthread_t threads[AT_ONCE];
    pthread_barrier_init(&together, NULL, AT_ONCE);
    for (int round = 0; round < 20; round++) {
        ta_clear_traces();
        for (int i = 0; i < AT_ONCE; i++)
            TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, allocate_together, NULL));
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
        struct ta_snapshot *snapshot = ta_take_snapshot();
        TEST_ASSERT_EQUAL_UINT64(AT_ONCE * EACH, at_peak(snapshot, EACH, UINT64_MAX));
        ta_snapshot_free(snapshot);
    }
    pthread_barrier_destroy(&together);
}

static void test_threads_that_allocated_are_listed(void)
{
    struct ta_snapshot *snapshot = ta_take_snapshot();
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_NOT_NULL(view);
    uint32_t found = 0, ended = 0;
    for (uint32_t i = 0; i < view->thread_count; i++) {
        found += view->threads[i].tid == (uint32_t)getpid() && view->threads[i].flags == 0;
        ended += (view->threads[i].flags & TA__THREAD_ENDED) != 0;
    }
    TEST_ASSERT_EQUAL(1, found);
    TEST_ASSERT_GREATER_OR_EQUAL(AT_ONCE, ended); /* those of the tests before */
    ta_snapshot_free(snapshot);
}

static void test_reset_and_clear_forget_the_recorded_peak(void)
{
    adapt_to_the_start();
    ta_free(allocate_here(40 << 20));
    ta_reset_peak();
    void *block = allocate_there(6 << 20);
    struct ta_snapshot *snapshot = ta_take_snapshot();
    TEST_ASSERT_EQUAL_UINT64(0, at_peak(snapshot, 40 << 20, 40 << 20));
    TEST_ASSERT_EQUAL_UINT64(6 << 20, at_peak(snapshot, 6 << 20, 6 << 20));
    ta_snapshot_free(snapshot);
    ta_clear_traces();
    snapshot = ta_take_snapshot();
    ta_free(block);
    TEST_ASSERT_EQUAL_UINT64(0, at_peak(snapshot, 6 << 20, 6 << 20));
    ta_snapshot_free(snapshot);
}

int main(void)
{
    close(mkstemp(path));
    ta_free(allocate_here(1)); /* sets the allocator up */
    UNITY_BEGIN();
    RUN_TEST(test_live_block_is_found_with_its_stack);
    RUN_TEST(test_taking_and_writing_is_invisible_in_the_traces);
    RUN_TEST(test_not_tracing_is_said);
    RUN_TEST(test_snapshot_that_cannot_be_written_shows_in_the_health_and_in_the_next);
    RUN_TEST(test_snapshot_outlives_the_tracing);
    RUN_TEST(test_clear_between_two_entries_shows_in_the_second_only);
    RUN_TEST(test_blocks_alive_at_the_peak_are_found_after_they_were_freed);
    RUN_TEST(test_recorded_peak_is_within_a_twentieth_of_the_peak);
    RUN_TEST(test_peak_of_a_growing_program_is_now);
    RUN_TEST(test_peak_that_threads_make_together_is_seen);
    RUN_TEST(test_threads_that_allocated_are_listed);
    RUN_TEST(test_reset_and_clear_forget_the_recorded_peak);
    RUN_TEST(test_snapshots_while_64_threads_allocate_are_sound);
    int failures = UNITY_END();
    unlink(path);
    return failures;
}
