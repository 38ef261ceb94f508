/* test_parity_trace.c: tracing behaves as tracemalloc does — the rows 1 to 63 of docs/parity.md, one test or more each.
 *
 * Everything goes through the public header. The process has one thread except where a row is about threads, so that
 * current and peak must be exact to the byte. Where Python can say what it does (row_13, row_15, row_16 and the
 * tracking rows), it is asked: its C interface is called through ctypes, and its answers are compared with ours. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <unity.h>

#include "tests/support/traced_now.h"
#include "tracealloc.h"

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")

void setUp(void)
{
}

void tearDown(void)
{
    ta_stop();
}

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static struct ta_health health(void)
{
    struct ta_health now;
    ta_get_health(&now, sizeof now);
    return now;
}

static int is_traced(const void *block)
{
    return ta_get_object_traceback(block, NULL, 0, NULL) != 0;
}

static void *first_frame(const void *block)
{
    void *frames[1] = {NULL};
    ta_get_object_traceback(block, frames, 1, NULL);
    return frames[0];
}

/* Two callers that can be told apart: each says where it was called from. */
static void *called_from;

NOINLINE static void *site_a(size_t size)
{
    called_from = __builtin_return_address(0);
    void *block = ta_malloc(size);
    KEEP(block);
    return block;
}

NOINLINE static void *site_b(size_t size)
{
    called_from = __builtin_return_address(0);
    void *block = ta_malloc(size);
    KEEP(block);
    return block;
}

NOINLINE static void *site_realloc(void *old, size_t size)
{
    called_from = __builtin_return_address(0);
    void *block = ta_realloc(old, size);
    KEEP(block);
    return block;
}

NOINLINE static int site_track(uint32_t domain, uintptr_t address, size_t size)
{
    called_from = __builtin_return_address(0);
    int result = ta_track(domain, address, size);
    KEEP(&result);
    return result;
}

/* Was the innermost frame in this function, which is a short one? */
#define ASSERT_FRAME_IN(function, frame)                                                                               \
    do {                                                                                                               \
        TEST_ASSERT_TRUE((uintptr_t)(frame) > (uintptr_t)(function));                                                  \
        TEST_ASSERT_TRUE((uintptr_t)(frame) < (uintptr_t)(function) + 160);                                            \
    } while (0)

static void assert_allocated_by(const void *block, uintptr_t function)
{
    void *frames[2] = {NULL, NULL};
    TEST_ASSERT_TRUE(ta_get_object_traceback(block, frames, 2, NULL) >= 1);
    ASSERT_FRAME_IN(function, frames[0]);
}

/* Runs python3 and gives its one line of output. The tracer of this process is stopped meanwhile. */
static void ask_python(const char *program, char *answer, size_t room)
{
    int out[2];
    TEST_ASSERT_EQUAL_INT(0, pipe(out));
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], 1);
        unsetenv("TRACEALLOC");
        execlp("python3", "python3", "-c", program, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    size_t length = 0;
    for (ssize_t got; length + 1 < room && (got = read(out[0], answer + length, room - 1 - length)) > 0;)
        length += (size_t)got;
    close(out[0]);
    answer[length] = '\0';
    int status;
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_TRUE_MESSAGE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "python3 could not answer");
    if (length > 0 && answer[length - 1] == '\n')
        answer[length - 1] = '\0';
}

/* ---- life cycle: rows 1 to 10 ------------------------------------------------------------------------------------ */

static void test_row_09_limit_before_any_start_is_one(void)
{
    TEST_ASSERT_FALSE(ta_is_tracing());

    TEST_ASSERT_EQUAL_INT(1, ta_get_traceback_limit());
}

static void test_row_01_start_records_with_counters_at_zero(void)
{
    void *before = site_a(100);

    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    size_t at_start = current();
    size_t peak_at_start = peak();
    void *block = site_a(1000);
    size_t after = current();

    TEST_ASSERT_EQUAL_size_t(0, at_start);
    TEST_ASSERT_EQUAL_size_t(0, peak_at_start);
    TEST_ASSERT_EQUAL_size_t(1000, after);
    TEST_ASSERT_FALSE(is_traced(before));
    TEST_ASSERT_TRUE(is_traced(block));
    ta_free(block);
    ta_free(before);
}

static void test_row_02_start_outside_of_the_range_fails_and_changes_nothing(void)
{
    static const int wrong[] = {0, -1, 65536, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        TEST_ASSERT_EQUAL_INT(0, ta_start(3));
        ta_stop();
        errno = 0;
        TEST_ASSERT_EQUAL_INT(-1, ta_start(wrong[i]));
        TEST_ASSERT_EQUAL_INT(EINVAL, errno);
        TEST_ASSERT_EQUAL_STRING("the number of frames must be in range [1; 65535]", ta_error_text());
        TEST_ASSERT_FALSE(ta_is_tracing());
        TEST_ASSERT_EQUAL_INT(3, ta_get_traceback_limit());
    }
    TEST_ASSERT_EQUAL_INT(0, ta_start(65535));
    TEST_ASSERT_EQUAL_INT(65535, ta_get_traceback_limit());
}

static void test_row_03_start_while_tracing_checks_its_argument_and_does_nothing(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(2));
    void *block = site_a(500);

    int again = ta_start(7);
    int wrong = ta_start(0);

    TEST_ASSERT_EQUAL_INT(0, again);
    TEST_ASSERT_EQUAL_INT(-1, wrong);
    TEST_ASSERT_EQUAL_INT(2, ta_get_traceback_limit());
    TEST_ASSERT_EQUAL_size_t(500, current());
    TEST_ASSERT_TRUE(is_traced(block));
    ta_free(block);
}

static void test_row_04_stop_forgets_everything_but_the_limit(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));
    void *freed = site_a(100);
    void *resized = site_a(200);
    void *kept = site_a(300);
    TEST_ASSERT_EQUAL_INT(0, ta_track(7, 0x1234, 4000));

    ta_stop();
    ta_stop();

    TEST_ASSERT_FALSE(ta_is_tracing());
    TEST_ASSERT_EQUAL_size_t(0, current());
    TEST_ASSERT_EQUAL_size_t(0, peak());
    TEST_ASSERT_EQUAL_INT(5, ta_get_traceback_limit());
    TEST_ASSERT_FALSE(is_traced(kept));
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(7, 0x1234, NULL, 0, NULL));
    ta_free(freed);
    resized = ta_realloc(resized, 100000);
    TEST_ASSERT_NOT_NULL(resized);

    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    TEST_ASSERT_FALSE(is_traced(kept));
    TEST_ASSERT_FALSE(is_traced(resized));
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(7, 0x1234, NULL, 0, NULL));
    ta_free(kept);
    ta_free(resized);
    TEST_ASSERT_EQUAL_size_t(0, current());
    TEST_ASSERT_EQUAL_size_t(0, peak());
}

static void *asks_is_tracing(void *unused)
{
    (void)unused;
    return ta_is_tracing() ? "yes" : "no";
}

static void test_row_05_is_tracing_is_the_same_from_every_thread(void)
{
    for (int on = 0; on < 2; on++) {
        if (on)
            TEST_ASSERT_EQUAL_INT(0, ta_start(1));
        pthread_t thread;
        void *answer;
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, asks_is_tracing, NULL));
        TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &answer));
        TEST_ASSERT_EQUAL_STRING(on ? "yes" : "no", answer);
        TEST_ASSERT_EQUAL_INT(on, ta_is_tracing());
    }
}

static void test_row_06_clear_forgets_all_traces_and_goes_on(void)
{
    ta_clear_traces(); /* stopped: nothing */
    TEST_ASSERT_FALSE(ta_is_tracing());
    TEST_ASSERT_EQUAL_INT(0, ta_start(4));
    void *old = site_a(700);
    TEST_ASSERT_EQUAL_INT(0, ta_track(9, 16, 5000));

    ta_clear_traces();

    TEST_ASSERT_TRUE(ta_is_tracing());
    TEST_ASSERT_EQUAL_INT(4, ta_get_traceback_limit());
    TEST_ASSERT_EQUAL_size_t(0, current());
    TEST_ASSERT_EQUAL_size_t(0, peak());
    TEST_ASSERT_FALSE(is_traced(old));
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(9, 16, NULL, 0, NULL));
    void *fresh = site_a(30);
    ta_free(old);
    TEST_ASSERT_EQUAL_size_t(30, current());
    TEST_ASSERT_TRUE(is_traced(fresh));
    ta_free(fresh);
}

static void test_row_06_clear_more_often_than_headers_have_epochs_forgets_each_time(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    void *old = site_a(700);
    for (int i = 0; i < 0x10000 + 10; i++) {
        ta_clear_traces();
        if (is_traced(old))
            TEST_FAIL_MESSAGE("an old trace came back");
    }
    void *fresh = site_a(20);
    ta_free(old);
    TEST_ASSERT_EQUAL_size_t(20, current());
    ta_free(fresh);
    TEST_ASSERT_EQUAL_size_t(0, current());
}

static void test_row_07_reset_peak_sets_peak_to_current(void)
{
    ta_reset_peak();
    TEST_ASSERT_EQUAL_size_t(0, peak());
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    void *large = site_a(3000000);
    void *small = site_a(1000);
    ta_free(large);
    size_t before = peak();

    ta_reset_peak();

    TEST_ASSERT_EQUAL_size_t(3001000, before);
    TEST_ASSERT_EQUAL_size_t(1000, current());
    TEST_ASSERT_EQUAL_size_t(1000, peak());
    TEST_ASSERT_TRUE(is_traced(small));
    ta_free(small);
    TEST_ASSERT_EQUAL_size_t(1000, peak());
}

static void test_row_08_traced_memory_is_one_pair_and_zero_when_stopped(void)
{
    size_t now = 5;
    size_t highest = 5;
    ta_get_traced_memory(&now, &highest);
    TEST_ASSERT_EQUAL_size_t(0, now);
    TEST_ASSERT_EQUAL_size_t(0, highest);
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    unsigned random = 1;
    void *blocks[64] = {NULL};
    size_t sizes[64] = {0};
    size_t truth = 0;
    size_t true_peak = 0;
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        unsigned at = random >> 16 & 63;
        ta_free(blocks[at]);
        truth -= sizes[at];
        sizes[at] = (random >> 8) % (i % 100 == 0 ? 300000 : 3000);
        blocks[at] = site_a(sizes[at]);
        truth += sizes[at];
        if (truth > true_peak)
            true_peak = truth;
        ta_get_traced_memory(&now, &highest);
        if (now != truth || highest != true_peak)
            TEST_FAIL_MESSAGE("current or peak is not exact");
    }
    for (int i = 0; i < 64; i++)
        ta_free(blocks[i]);
    TEST_ASSERT_EQUAL_size_t(0, current());
    TEST_ASSERT_EQUAL_size_t(true_peak, peak());
    ta_get_traced_memory(NULL, NULL);
}

static void test_row_09_limit_stays_when_stopped(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(123));
    TEST_ASSERT_EQUAL_INT(123, ta_get_traceback_limit());
    ta_stop();
    TEST_ASSERT_EQUAL_INT(123, ta_get_traceback_limit());
}

NOINLINE static void *at_depth(int depth, size_t size)
{
    void *block = depth > 0 ? at_depth(depth - 1, size) : ta_malloc(size);
    KEEP(block);
    return block;
}

static void test_row_10_tracer_memory_grows_with_stacks_and_not_by_clear(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(1000));
    void *block = at_depth(0, 10);
    ta_free(block);
    size_t few = ta_get_tracer_memory();
    for (int depth = 0; depth < 900; depth++)
        ta_free(at_depth(depth, 10));
    size_t many = ta_get_tracer_memory();
    size_t traced = current();

    ta_clear_traces();

    TEST_ASSERT_GREATER_THAN_size_t(0, few);
    TEST_ASSERT_GREATER_THAN_size_t(few, many);
    TEST_ASSERT_EQUAL_size_t(0, traced); /* row 28: the tracer's own memory is in no trace */
    TEST_ASSERT_LESS_OR_EQUAL_size_t(many, ta_get_tracer_memory());
}

/* ---- allocation calls: rows 11 to 27 ----------------------------------------------------------------------------- */

#define ASSERT_RECORDS(bytes, expression)                                                                              \
    do {                                                                                                               \
        size_t before = current();                                                                                     \
        void *block = (expression);                                                                                    \
        size_t after = current();                                                                                      \
        TEST_ASSERT_NOT_NULL_MESSAGE(block, #expression);                                                              \
        TEST_ASSERT_EQUAL_size_t_MESSAGE((bytes), after - before, #expression);                                        \
        TEST_ASSERT_TRUE_MESSAGE(is_traced(block), #expression);                                                       \
        ta_free(block);                                                                                                \
        TEST_ASSERT_EQUAL_size_t_MESSAGE(before, current(), #expression);                                              \
    } while (0)

static void *posix_memaligned(size_t alignment, size_t size)
{
    void *block = NULL;
    return ta_posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void test_rows_11_12_24_every_call_records_once_what_was_asked_for(void)
{
    for (int nframe = 1; nframe <= 30; nframe += 29) {
        TEST_ASSERT_EQUAL_INT(0, ta_start(nframe));
        ASSERT_RECORDS(1, ta_malloc(1));
        ASSERT_RECORDS(1000, ta_malloc(1000));
        ASSERT_RECORDS(1000025, ta_malloc(1000025));
        ASSERT_RECORDS(7 * 11, ta_calloc(7, 11));
        ASSERT_RECORDS(0, ta_calloc(0, 8));
        ASSERT_RECORDS(333, ta_realloc(NULL, 333));
        ASSERT_RECORDS(5 * 9, ta_reallocarray(NULL, 5, 9));
        ASSERT_RECORDS(100, ta_aligned_alloc(64, 100));
        ASSERT_RECORDS(100, ta_memalign(4096, 100));
        ASSERT_RECORDS(100, posix_memaligned(32, 100));
        ASSERT_RECORDS(2000000, ta_aligned_alloc(1 << 20, 2000000));
        ASSERT_RECORDS(100, ta_valloc(100));
        /* pvalloc's request is for whole pages. */
        ASSERT_RECORDS((size_t)sysconf(_SC_PAGESIZE), ta_pvalloc(100));
        ta_stop();
    }
}

static void test_row_11_questions_about_a_block_have_no_effect(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    void *block = site_a(50);

    TEST_ASSERT_GREATER_OR_EQUAL_size_t(50, ta_usable_size(block));

    TEST_ASSERT_EQUAL_size_t(50, current());
    TEST_ASSERT_EQUAL_size_t(50, peak());
    ta_free(block);
}

static const char python_allocator[] =
    "import tracemalloc as t, ctypes as c\n"
    "a = c.pythonapi\n"
    "m, r, f = a.PyMem_RawMalloc, a.PyMem_RawRealloc, a.PyMem_RawFree\n"
    "m.restype = r.restype = c.c_void_p\n"
    "m.argtypes = [c.c_size_t]; r.argtypes = [c.c_void_p, c.c_size_t]; f.argtypes = [c.c_void_p]\n"
    "K, U = a.PyTraceMalloc_Track, a.PyTraceMalloc_Untrack\n"
    "K.argtypes = [c.c_uint, c.c_size_t, c.c_size_t]; U.argtypes = [c.c_uint, c.c_size_t]\n"
    "def n(*sizes): return [sum(1 for x in t.take_snapshot().traces if x.size == s) for s in sizes]\n"
    "def z(): return sum(1 for x in t.take_snapshot().traces if x.size == 0)\n"
    "def d(domain): return [x.size for x in t.take_snapshot().traces if x.domain == domain]\n";

static void assert_python_says(const char *expected, const char *program)
{
    char whole[4096];
    char answer[512];
    snprintf(whole, sizeof whole, "%s%s", python_allocator, program);
    ask_python(whole, answer, sizeof answer);
    TEST_ASSERT_EQUAL_STRING(expected, answer);
}

static void test_row_13_a_block_of_size_zero_is_a_block(void)
{
    assert_python_says("1 0", "t.start(); b = z(); p = m(0); x = z() - b; f(p); print(x, z() - b)");
    TEST_ASSERT_EQUAL_INT(0, ta_start(2));

    void *one = site_a(0);
    void *two = site_a(0);

    TEST_ASSERT_NOT_NULL(one);
    TEST_ASSERT_NOT_EQUAL(one, two);
    TEST_ASSERT_TRUE(is_traced(one));
    TEST_ASSERT_TRUE(is_traced(two));
    TEST_ASSERT_EQUAL_size_t(0, current());
    ta_free(one);
    TEST_ASSERT_FALSE(is_traced(one));
    ta_free(two);
}

/* The pointer to an empty block is its end, which may be the end of a page. */
static void test_row_13_many_blocks_of_size_zero_fill_whole_pages(void)
{
    enum { COUNT = 20000 };
    static void *blocks[COUNT];
    for (int on = 0; on < 3; on++) {
        if (on > 0)
            TEST_ASSERT_EQUAL_INT(0, ta_start(on * 5 - 4));
        for (int i = 0; i < COUNT; i++)
            blocks[i] = ta_malloc(0);
        for (int i = 0; i < COUNT; i++) {
            if (is_traced(blocks[i]) != (on > 0))
                TEST_FAIL_MESSAGE("a trace of an empty block is wrong");
            if (i % 3 == 0)
                blocks[i] = ta_realloc(blocks[i], 10);
        }
        for (int i = 0; i < COUNT; i++)
            ta_free(blocks[i]);
        TEST_ASSERT_EQUAL_size_t(0, current());
        ta_stop();
    }
    TEST_ASSERT_EQUAL_UINT64(0, health().foreign_frees);
}

static void test_row_14_a_failed_allocation_leaves_no_trace(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(2));
    void *block = site_a(10);
    volatile size_t huge = PTRDIFF_MAX;

    TEST_ASSERT_NULL(ta_malloc(huge));
    TEST_ASSERT_NULL(ta_malloc(huge * 2 + 1));
    TEST_ASSERT_NULL(ta_calloc(huge, 4));
    TEST_ASSERT_NULL(ta_calloc(1, huge));
    TEST_ASSERT_NULL(ta_realloc(NULL, huge));
    TEST_ASSERT_NULL(ta_reallocarray(NULL, huge, 16));
    TEST_ASSERT_NULL(ta_aligned_alloc(64, huge));
    void *untouched = block;
    TEST_ASSERT_EQUAL_INT(EINVAL, ta_posix_memalign(&untouched, 3, 10));
    TEST_ASSERT_EQUAL_PTR(block, untouched);

    TEST_ASSERT_EQUAL_size_t(10, current());
    TEST_ASSERT_EQUAL_size_t(10, peak());
    ta_free(block);
}

static void test_row_15_realloc_moves_attribution_to_itself(void)
{
    static const size_t sizes[] = {41, 40, 45, 5000, 3000000, 100, 1};
    assert_python_says("[1, 0] [0, 1]", "t.start(); p = m(1234567); x = n(1234567, 7654321); p = r(p, 7654321); "
                                        "print(x, n(1234567, 7654321))");
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
    void *block = site_a(40);
    assert_allocated_by(block, (uintptr_t)site_a);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *old = block;
        block = site_realloc(block, sizes[i]);
        TEST_ASSERT_NOT_NULL(block);
        TEST_ASSERT_EQUAL_size_t(sizes[i], current());
        assert_allocated_by(block, (uintptr_t)site_realloc);
        if (old != block)
            TEST_ASSERT_FALSE(is_traced(old));
    }
    ta_free(block);
    TEST_ASSERT_EQUAL_size_t(0, current());
}

static void test_row_16_realloc_of_an_untraced_block_makes_it_traced(void)
{
    assert_python_says("[0, 0] [0, 1]", "p = m(1234567); t.start(); x = n(1234567, 7654321); p = r(p, 7654321); "
                                        "print(x, n(1234567, 7654321))");
    for (int in_place = 0; in_place < 2; in_place++) {
        void *before_start = site_a(1000);
        TEST_ASSERT_EQUAL_INT(0, ta_start(10));
        void *before_clear = site_a(1000);
        ta_clear_traces();
        size_t size = in_place ? 999 : 100000;

        before_start = site_realloc(before_start, size);
        before_clear = site_realloc(before_clear, size);

        TEST_ASSERT_EQUAL_size_t(2 * size, current());
        assert_allocated_by(before_start, (uintptr_t)site_realloc);
        assert_allocated_by(before_clear, (uintptr_t)site_realloc);
        ta_free(before_start);
        ta_free(before_clear);
        TEST_ASSERT_EQUAL_size_t(0, current());
        ta_stop();
    }
}

static void test_row_17_a_failed_realloc_changes_nothing(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
    char *block = site_a(77);
    memset(block, 'x', 77);
    void *frame = first_frame(block);
    volatile size_t huge = PTRDIFF_MAX;

    TEST_ASSERT_NULL(ta_realloc(block, huge));
    TEST_ASSERT_NULL(ta_reallocarray(block, huge, 3));

    TEST_ASSERT_EQUAL_size_t(77, current());
    TEST_ASSERT_EQUAL_size_t(77, peak());
    TEST_ASSERT_EQUAL_PTR(frame, first_frame(block));
    TEST_ASSERT_EACH_EQUAL_CHAR('x', block, 77);
    ta_free(block);
    TEST_ASSERT_EQUAL_size_t(0, current());
}

static void test_row_18_realloc_to_zero_frees_and_removes_the_trace(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    void *block = site_a(77);

    TEST_ASSERT_NULL(ta_realloc(block, 0));

    TEST_ASSERT_FALSE(is_traced(block));
    TEST_ASSERT_EQUAL_size_t(0, current());
}

/* Row 19. What a removal after the release would do — the trace of the block's next life goes instead of its own — can
 * only be seen when the address is handed out again between the two. So one thread frees a block step by step, stopped
 * by the processor's trap flag before its first, second, … last instruction; each time, another thread allocates until
 * it gets that address or enough others, lets the free go on to its end, and looks: each block must still have its
 * trace. An aligned block would lose its header (ta__header_kill), a tracked one its record (ta__tracked_take): with
 * either line of release() in alloc/slow.c moved behind ta__heap_free, this test fails. */
#if defined(__x86_64__)
enum { STEPPED_MORE = 96, TRAP_FLAG = 0x100 };

static struct {
    void *block;
    int steps_left;
    int state; /* one of the following; each side waits for the other, acquire and release */
} stepped;
enum { STEPPED_IDLE, STEPPED_GIVEN, STEPPED_PAUSED, STEPPED_RESUMED, STEPPED_FREED, STEPPED_OVER };

static int stepped_state(void)
{
    return __atomic_load_n(&stepped.state, __ATOMIC_ACQUIRE);
}

static void stepped_set(int state)
{
    __atomic_store_n(&stepped.state, state, __ATOMIC_RELEASE);
}

static void on_step(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (--stepped.steps_left != 0)
        return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    stepped_set(STEPPED_PAUSED);
    /* Not for ever: the other thread may be waiting for a lock that is held here. */
    for (int patience = 0; patience < 100 && stepped_state() == STEPPED_PAUSED; patience++)
        nanosleep(&(struct timespec){0, 200000}, NULL);
}

static void *free_step_by_step(void *unused)
{
    for (;;) {
        int state;
        while ((state = stepped_state()) != STEPPED_GIVEN && state != STEPPED_OVER)
            sched_yield();
        if (state == STEPPED_OVER)
            return unused;
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
        ta_free(stepped.block);
        __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
        stepped_set(STEPPED_FREED);
    }
}

static void *stepped_block(int tracked)
{
    void *block = ta_aligned_alloc(64, 3000);
    if (tracked && ta_track(0, (uintptr_t)block, 3000) != 0)
        return NULL;
    return block;
}

/* One free, stopped before its n-th instruction. Answers whether it has that many (the second thread may have been too
 * slow to see the stop); the address may come back. */
static int free_with_a_stop(int steps, int tracked, int *came_back, const char **complaint)
{
    void *blocks[STEPPED_MORE];
    int count = 0;
    stepped.block = stepped_block(tracked);
    stepped.steps_left = steps;
    stepped_set(STEPPED_GIVEN);
    int state;
    while ((state = stepped_state()) == STEPPED_GIVEN)
        sched_yield();
    void *last = NULL;
    while (count < STEPPED_MORE && last != stepped.block)
        blocks[count++] = last = stepped_block(tracked);
    *came_back += state == STEPPED_PAUSED && last == stepped.block;
    int expected = STEPPED_PAUSED;
    __atomic_compare_exchange_n(&stepped.state, &expected, STEPPED_RESUMED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    while (stepped_state() != STEPPED_FREED)
        sched_yield();
    for (int i = 0; i < count; i++) {
        if (!is_traced(blocks[i]))
            *complaint = "a live block has no trace";
        ta_free(blocks[i]);
    }
    return stepped.steps_left <= 0;
}

static void test_row_19_the_trace_goes_before_the_block_can_be_handed_out_again(void)
{
    pthread_t thread;
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    TEST_ASSERT_EQUAL_INT(0, sigaction(SIGTRAP, &action, NULL));
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, free_step_by_step, NULL));
    const char *complaint = NULL;
    for (int tracked = 0; tracked < 2; tracked++) {
        int came_back = 0;
        /* On a busy machine a pause may end before the other thread has had its turn: then once more. */
        for (int round = 0; round < 20 && complaint == NULL && came_back == 0; round++)
            for (int steps = 1; complaint == NULL && free_with_a_stop(steps, tracked, &came_back, &complaint); steps++)
                ;
        TEST_ASSERT_NULL_MESSAGE(complaint, complaint);
        TEST_ASSERT_GREATER_THAN_INT_MESSAGE(0, came_back, "the address never came back between");
    }
    stepped_set(STEPPED_OVER);
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
    signal(SIGTRAP, SIG_DFL);
    TEST_ASSERT_EQUAL_UINT64(0, health().invalid_frees);
}
#endif

static void test_row_20_a_moving_realloc_never_shows_both_blocks(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    void *block = site_a(2000000);
    block = ta_realloc(block, 3000000);
    TEST_ASSERT_EQUAL_size_t(3000000, peak());
    TEST_ASSERT_EQUAL_size_t(3000000, current());
    block = ta_realloc(block, 10);
    TEST_ASSERT_EQUAL_size_t(3000000, peak());
    block = ta_realloc(block, 2999999);
    TEST_ASSERT_EQUAL_size_t(3000000, peak());
    TEST_ASSERT_EQUAL_size_t(2999999, current());
    ta_free(block);
}

static void test_row_21_free_of_what_is_not_traced_moves_no_counter(void)
{
    void *before_start = site_a(5000);
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    void *before_clear = site_a(6000);
    ta_clear_traces();
    void *traced = site_a(10);

    ta_free(before_start);
    ta_free(before_clear);
    ta_free(NULL);

    TEST_ASSERT_EQUAL_size_t(10, current());
    TEST_ASSERT_EQUAL_size_t(10, peak());
    ta_free(traced);
}

#if TRACEALLOC_OVERRIDE
extern void *operator_new(size_t size) __asm__("_Znwm");
extern void *operator_new_array(size_t size) __asm__("_Znam");
extern void operator_delete_sized(void *block, size_t size) __asm__("_ZdlPvm");
extern void operator_delete_array(void *block) __asm__("_ZdaPv");

NOINLINE static void *site_new(size_t size)
{
    void *block = operator_new(size);
    KEEP(block);
    return block;
}

static void test_row_22_operators_are_traced_under_their_caller(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));

    void *one = site_new(123);
    void *many = operator_new_array(77);

    TEST_ASSERT_EQUAL_size_t(200, current());
    assert_allocated_by(one, (uintptr_t)site_new);
    operator_delete_sized(one, 999); /* the claim is not used for accounting */
    operator_delete_array(many);
    TEST_ASSERT_EQUAL_size_t(0, current());
}

static void test_row_23_what_libc_allocates_is_traced_under_libc(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));

    char *copy = strdup("seven b");

    TEST_ASSERT_EQUAL_size_t(8, current());
    void *frames[5];
    TEST_ASSERT_TRUE(ta_get_object_traceback(copy, frames, 5, NULL) >= 2);
    Dl_info innermost;
    Dl_info libc;
    TEST_ASSERT_NOT_EQUAL(0, dladdr(frames[0], &innermost));
    TEST_ASSERT_NOT_EQUAL(0, dladdr((void *)(uintptr_t)getpid, &libc));
    TEST_ASSERT_EQUAL_STRING(libc.dli_fname, innermost.dli_fname);
    free(copy);
    TEST_ASSERT_EQUAL_size_t(0, current());
}
#endif

static void test_rows_25_26_a_stale_trace_at_a_reused_address_is_replaced(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(3));
    void *block = site_a(64);
    ta_free(block);
    TEST_ASSERT_EQUAL_INT(0,
                          ta_track(0, (uintptr_t)block, 1000)); /* a pool announces the piece; then it is handed out */
    TEST_ASSERT_EQUAL_size_t(1000, current());
    void *others[2000];
    size_t count = 0;
    void *again = NULL;
    while (count < 2000 && again != block)
        others[count++] = again = site_b(64);

    TEST_ASSERT_EQUAL_PTR_MESSAGE(block, again, "the address did not come back");
    TEST_ASSERT_EQUAL_size_t(64 * count, current());
    assert_allocated_by(again, (uintptr_t)site_b);
    while (count > 0)
        ta_free(others[--count]);
    TEST_ASSERT_EQUAL_size_t(0, current());
}

static void test_row_27_blocks_of_before_the_start_are_freed_and_resized(void)
{
    void *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = i % 2 ? site_a((size_t)i * 50) : ta_aligned_alloc(128, (size_t)i * 50);
    TEST_ASSERT_EQUAL_INT(0, ta_start(3));
    size_t traced = 0;
    for (int i = 0; i < 100; i += 3) {
        blocks[i] = ta_realloc(blocks[i], 1 + (size_t)i * 70);
        traced += 1 + (size_t)i * 70;
    }
    TEST_ASSERT_EQUAL_size_t(traced, current());
    for (int i = 0; i < 100; i++)
        ta_free(blocks[i]);
    TEST_ASSERT_EQUAL_size_t(0, current());
}

/* ---- capturing: rows 31 to 48 ------------------------------------------------------------------------------------ */

static void test_row_31_the_first_frame_is_the_caller_and_none_is_ours(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(40));
    void *block = site_b(8);
    void *frames[40];
    size_t count = ta_get_object_traceback(block, frames, 40, NULL);

    TEST_ASSERT_TRUE(count >= 2);
    ASSERT_FRAME_IN(site_b, frames[0]);
    TEST_ASSERT_EQUAL_PTR(called_from, frames[1]);
    ta_free(block);
}

static void test_rows_32_33_the_most_recent_frames_are_kept_and_all_are_counted(void)
{
    void *whole[200];
    size_t total;
    TEST_ASSERT_EQUAL_INT(0, ta_start(200));
    void *block = at_depth(30, 8);
    size_t depth = ta_get_object_traceback(block, whole, 200, &total);
    TEST_ASSERT_TRUE(depth > 30);
    TEST_ASSERT_EQUAL_size_t(depth, total);
    TEST_ASSERT_EQUAL_PTR_ARRAY(whole + 2, whole + 1, 29); /* the recursion's return address again and again */
    ta_free(block);
    ta_stop();

    static const int limits[] = {2, 3, 7, 31, 32, 199};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        void *frames[200];
        TEST_ASSERT_EQUAL_INT(0, ta_start(limits[i]));
        block = at_depth(30, 8);
        size_t kept = ta_get_object_traceback(block, frames, 200, &total);
        TEST_ASSERT_EQUAL_size_t((size_t)limits[i] < depth ? (size_t)limits[i] : depth, kept);
        TEST_ASSERT_EQUAL_size_t(depth, total);
        TEST_ASSERT_EQUAL_PTR(whole[0], frames[0]);
        ta_free(block);
        ta_stop();
    }
}

/* Rows 34 and 35: code without unwind tables, as a just-in-time compiler makes it. */
static void test_rows_34_35_code_without_tables_ends_the_stack_which_is_never_empty(void)
{
    static const unsigned char call_it[] = {0x48, 0x83, 0xec, 0x08,        /* sub  rsp, 8  */
                                            0x48, 0x89, 0xf8,              /* mov  rax, rdi */
                                            0x48, 0x89, 0xf7,              /* mov  rdi, rsi */
                                            0xff, 0xd0,                    /* call rax     */
                                            0x48, 0x83, 0xc4, 0x08, 0xc3}; /* add rsp, 8; ret */
    enum { RETURN_ADDRESS_AT = 12 };
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        TEST_IGNORE_MESSAGE("no executable memory here");
    memcpy(code, call_it, sizeof call_it);
    void *(*thunk)(void *(*function)(size_t), size_t size) = (void *(*)(void *(*)(size_t), size_t))(uintptr_t)code;
    for (int nframe = 1; nframe <= 20; nframe += 19) {
        TEST_ASSERT_EQUAL_INT(0, ta_start(nframe));

        void *bare = thunk(ta_malloc, 9);
        void *behind = thunk(site_a, 9);

        void *frames[20];
        size_t total;
        TEST_ASSERT_EQUAL_size_t(1, ta_get_object_traceback(bare, frames, 20, &total));
        TEST_ASSERT_EQUAL_PTR(code + RETURN_ADDRESS_AT, frames[0]);
        TEST_ASSERT_EQUAL_size_t(nframe == 1 ? 0 : 1, total); /* with a limit of one, the depth is not looked for */
        size_t count = ta_get_object_traceback(behind, frames, 20, &total);
        TEST_ASSERT_EQUAL_size_t(nframe == 1 ? 1 : 2, count);
        ASSERT_FRAME_IN(site_a, frames[0]);
        if (nframe > 1) {
            TEST_ASSERT_EQUAL_PTR(code + RETURN_ADDRESS_AT, frames[1]);
            TEST_ASSERT_EQUAL_UINT64(2, health().cut_short);
        }
        ta_free(bare);
        ta_free(behind);
        ta_stop();
    }
    munmap(code, 4096);
}

static void *deep_recursion(void *unused)
{
    (void)unused;
    return at_depth(70000, 8);
}

static void test_rows_33_46_a_stack_deeper_than_65535_is_stored_and_counted_up_to_there(void)
{
    enum { MOST = 65535 };
    static void *frames[MOST + 1];
    pthread_attr_t attributes;
    pthread_t thread;
    void *block;
    size_t total;
    TEST_ASSERT_EQUAL_INT(0, pthread_attr_init(&attributes));
    TEST_ASSERT_EQUAL_INT(0, pthread_attr_setstacksize(&attributes, 64 << 20));
    TEST_ASSERT_EQUAL_INT(0, ta_start(MOST));
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, &attributes, deep_recursion, NULL));
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &block));

    size_t count = ta_get_object_traceback(block, frames, MOST + 1, &total);

    TEST_ASSERT_EQUAL_size_t(MOST, count);
    TEST_ASSERT_EQUAL_size_t(MOST, total);
    for (int i = 2; i < MOST; i++)
        if (frames[i] != frames[1])
            TEST_FAIL_MESSAGE("a frame of the recursion is wrong");
    ta_free(block);
    pthread_attr_destroy(&attributes);
}

static sigjmp_buf *leave_handler;

static void *block_of_handler;

static void allocate_in_handler(int number)
{
    (void)number;
    block_of_handler = ta_malloc(31);
    if (leave_handler != NULL)
        siglongjmp(*leave_handler, 1);
}

NOINLINE static void raise_here(void)
{
    raise(SIGUSR1);
    __asm__ volatile("");
}

static void test_row_47_a_handler_on_another_stack_is_followed_into_what_it_interrupted(void)
{
    static char alternate[65536];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    stack_t old;
    struct sigaction action = {.sa_handler = allocate_in_handler, .sa_flags = SA_ONSTACK};
    TEST_ASSERT_EQUAL_INT(0, sigaltstack(&stack, &old));
    TEST_ASSERT_EQUAL_INT(0, sigaction(SIGUSR1, &action, NULL));
    TEST_ASSERT_EQUAL_INT(0, ta_start(100));
    for (int jumps = 0; jumps < 2; jumps++) {
        sigjmp_buf place;
        leave_handler = jumps ? &place : NULL;
        if (sigsetjmp(place, 1) == 0)
            raise_here();
        void *frames[100];
        size_t count = ta_get_object_traceback(block_of_handler, frames, 100, NULL);
        int found = 0;
        for (size_t i = 0; i < count; i++)
            found += (uintptr_t)frames[i] > (uintptr_t)raise_here && (uintptr_t)frames[i] < (uintptr_t)raise_here + 40;
        TEST_ASSERT_EQUAL_INT(1, found);
        TEST_ASSERT_EQUAL_UINT64(0, health().cut_short);
        ta_free(block_of_handler);
        void *block = site_a(5); /* and afterwards all is as before */
        TEST_ASSERT_TRUE(ta_get_object_traceback(block, frames, 100, NULL) < count);
        ASSERT_FRAME_IN(site_a, frames[0]);
        TEST_ASSERT_EQUAL_PTR(called_from, frames[1]);
        ta_free(block);
    }
    signal(SIGUSR1, SIG_DFL);
    sigaltstack(&old, NULL);
}

static void test_row_48_equal_stacks_are_stored_once(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(50));
    for (int i = 0; i < 3; i++)
        ta_free(at_depth(20, 8));
    struct ta_health before = health();
    for (int i = 0; i < 1000; i++)
        ta_free(at_depth(20, 8));
    struct ta_health after = health();
    TEST_ASSERT_EQUAL_UINT64(before.leaves + 1, after.leaves); /* the loop's own call site */
    TEST_ASSERT_TRUE(after.contexts <= before.contexts + 30);
    TEST_ASSERT_EQUAL_UINT64(0, after.lost);
}

/* ---- domains and tracking: rows 49 to 57 ------------------------------------------------------------------------- */

static void test_row_50_track_accepts_any_domain_address_and_size(void)
{
    assert_python_says(
        "-2 -2 0 [7] [0] 0 []",
        "a_, b_ = K(5, 1, 2), U(5, 1); t.start(); c_ = K(4294967295, 0, 7); x = d(4294967295); "
        "K(77, 2**64-1, 0); y = d(77); z_ = U(4294967295, 0); print(a_, b_, c_, x, y, z_, d(4294967295))");
    TEST_ASSERT_EQUAL_INT(-2, ta_track(5, 1, 2));
    TEST_ASSERT_EQUAL_INT(-2, ta_untrack(5, 1));
    TEST_ASSERT_EQUAL_INT(0, ta_start(3));

    TEST_ASSERT_EQUAL_INT(0, site_track(UINT32_MAX, 0, 7));
    TEST_ASSERT_EQUAL_INT(0, site_track(77, UINTPTR_MAX, 0));
    TEST_ASSERT_EQUAL_INT(0, site_track(77, 1, SIZE_MAX >> 16));

    void *frames[3];
    TEST_ASSERT_TRUE(ta_get_traceback(UINT32_MAX, 0, frames, 3, NULL) >= 2);
    ASSERT_FRAME_IN(site_track, frames[0]);
    TEST_ASSERT_TRUE(ta_get_traceback(77, UINTPTR_MAX, frames, 3, NULL) >= 2);
    TEST_ASSERT_EQUAL_size_t(7 + (SIZE_MAX >> 16), current());
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(UINT32_MAX, 0));
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(77, 1));
    TEST_ASSERT_EQUAL_size_t(0, current());
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(UINT32_MAX, 0, frames, 3, NULL));
}

static void test_row_51_track_again_replaces_size_and_traceback(void)
{
    assert_python_says("[10] [30] [4]", "t.start(); K(3, 99, 10); x = d(3); K(3, 99, 30); y = d(3); K(3, 99, 4); "
                                        "print(x, y, d(3))");
    TEST_ASSERT_EQUAL_INT(0, ta_start(3));
    TEST_ASSERT_EQUAL_INT(0, ta_track(3, 99, 2000000));
    TEST_ASSERT_EQUAL_INT(0, site_track(3, 99, 3000000));
    TEST_ASSERT_EQUAL_size_t(3000000, current());
    TEST_ASSERT_EQUAL_size_t(3000000, peak());
    void *frames[3];
    TEST_ASSERT_TRUE(ta_get_traceback(3, 99, frames, 3, NULL) >= 2);
    ASSERT_FRAME_IN(site_track, frames[0]);
    TEST_ASSERT_EQUAL_INT(0, ta_track(3, 99, 1));
    TEST_ASSERT_EQUAL_size_t(1, current());
    TEST_ASSERT_EQUAL_size_t(3000000, peak());
}

static void test_row_52_untrack_answers_zero_whether_known_or_not(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    TEST_ASSERT_EQUAL_INT(0, ta_track(1, 5, 10));
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(1, 5));
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(1, 5));
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(1234567, 5));
    TEST_ASSERT_EQUAL_size_t(0, current());
    ta_stop();
    TEST_ASSERT_EQUAL_INT(-2, ta_untrack(1, 5));
}

static void test_row_53_one_address_in_two_domains_is_two_traces(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    TEST_ASSERT_EQUAL_INT(0, ta_track(1, 5, 10));
    TEST_ASSERT_EQUAL_INT(0, ta_track(2, 5, 20));
    TEST_ASSERT_EQUAL_size_t(30, current());
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(1, 5));
    TEST_ASSERT_EQUAL_size_t(20, current());
    TEST_ASSERT_EQUAL_size_t(1, ta_get_traceback(2, 5, NULL, 0, NULL));
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(1, 5, NULL, 0, NULL));
}

static void test_row_54_allocator_calls_leave_other_domains_alone(void)
{
    assert_python_says("[11] [11]",
                       "t.start(); p = m(1000); K(6, p, 11); q = r(p, 2000000); x = d(6); f(q); print(x, d(6))");
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    void *block = site_a(100);
    uintptr_t address = (uintptr_t)block;
    TEST_ASSERT_EQUAL_INT(0, ta_track(6, address, 11));

    block = ta_realloc(block, 2000000);
    TEST_ASSERT_EQUAL_size_t(2000011, current());
    ta_free(block);

    TEST_ASSERT_EQUAL_size_t(11, current());
    TEST_ASSERT_EQUAL_size_t(1, ta_get_traceback(6, address, NULL, 0, NULL));
}

static void test_row_55_domain_zero_can_be_overridden_and_hidden(void)
{
    assert_python_says("[0, 1] [0, 0] [1, 0] [0, 0]",
                       "t.start(); p = m(1234567); K(0, p, 7654321); x = n(1234567, 7654321); f(p); "
                       "y = n(1234567, 7654321); p = m(1234567); w = n(1234567, 7654321); U(0, p); "
                       "print(x, y, w, n(1234567, 7654321))");
    static const size_t sizes[] = {100, 1234567};
    for (size_t i = 0; i < 2; i++) {
        TEST_ASSERT_EQUAL_INT(0, ta_start(3));
        void *block = site_a(sizes[i]);
        TEST_ASSERT_EQUAL_INT(0, site_track(0, (uintptr_t)block, 55));
        TEST_ASSERT_EQUAL_size_t(55, current());
        assert_allocated_by(block, (uintptr_t)site_track);
        TEST_ASSERT_EQUAL_INT(0, site_track(0, (uintptr_t)block, 66));
        TEST_ASSERT_EQUAL_size_t(66, current());
        ta_free(block);
        TEST_ASSERT_EQUAL_size_t(0, current());

        block = site_a(sizes[i]);
        TEST_ASSERT_EQUAL_INT(0, site_track(0, (uintptr_t)block, 55));
        block = site_realloc(block, 10); /* the realloc has the last word */
        TEST_ASSERT_EQUAL_size_t(10, current());
        assert_allocated_by(block, (uintptr_t)site_realloc);
        ta_free(block);
        TEST_ASSERT_EQUAL_size_t(0, current());

        block = site_a(sizes[i]);
        TEST_ASSERT_EQUAL_INT(0, ta_untrack(0, (uintptr_t)block));
        TEST_ASSERT_EQUAL_size_t(0, current());
        TEST_ASSERT_FALSE(is_traced(block));
        ta_free(block);
        TEST_ASSERT_EQUAL_size_t(0, current());

        block = ta_aligned_alloc(256, sizes[i]);
        TEST_ASSERT_EQUAL_INT(0, ta_track(0, (uintptr_t)block, 3));
        TEST_ASSERT_EQUAL_size_t(3, current());
        TEST_ASSERT_EQUAL_INT(0, ta_untrack(0, (uintptr_t)block));
        TEST_ASSERT_EQUAL_size_t(0, current());
        ta_free(block);
        ta_stop();
    }
}

static void test_row_56_lookup_is_by_exact_address(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(3));
    char *block = site_a(1000);
    TEST_ASSERT_EQUAL_INT(0, ta_track(4, 1000, 100));
    TEST_ASSERT_FALSE(is_traced(block + 16));
    TEST_ASSERT_FALSE(is_traced(block + 1));
    TEST_ASSERT_FALSE(is_traced(NULL));
    TEST_ASSERT_FALSE(is_traced(&block));
    TEST_ASSERT_FALSE(is_traced((void *)UINTPTR_MAX));
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(4, 1001, NULL, 0, NULL));
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(4, (uintptr_t)block, NULL, 0, NULL));
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(5, 1000, NULL, 0, NULL));
    ta_free(block);
}

static void test_row_57_object_traceback_fills_no_more_than_asked_for(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(50));
    void *block = at_depth(10, 8);
    void *mark = &mark;
    void *frames[4] = {mark, mark, mark, mark};
    size_t total = 0;
    size_t count = ta_get_object_traceback(block, frames, 3, &total);
    TEST_ASSERT_TRUE(count > 10);
    TEST_ASSERT_EQUAL_size_t(count, total);
    TEST_ASSERT_EQUAL_PTR(mark, frames[3]);
    TEST_ASSERT_TRUE(frames[2] != mark);
    TEST_ASSERT_EQUAL_size_t(count, ta_get_object_traceback(block, NULL, 0, NULL));
    ta_free(block);
}

/* ---- accounting, threads, processes: rows 58 to 65 --------------------------------------------------------------- */

struct sum {
    size_t live;
};

static void *allocate_some(void *argument)
{
    struct sum *sum = argument;
    void *blocks[200];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 200; i++)
            blocks[i] = at_depth(i % 20, (size_t)i * 7);
        for (int i = 0; i < 200; i++)
            if (round < 49 || i % 2 == 0)
                ta_free(blocks[i]);
            else
                sum->live += (size_t)i * 7;
    }
    return NULL;
}

static void test_rows_58_59_60_current_at_rest_is_the_sum_over_all_threads_and_domains(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct sum sums[THREADS] = {{0}};
    size_t live = 0;
    TEST_ASSERT_EQUAL_INT(0, ta_start(25));
    TEST_ASSERT_EQUAL_INT(0, ta_track(5, 1, 1000));
    void *stacks[THREADS];
    (void)stacks;
    size_t before = current();
    for (int i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, allocate_some, &sums[i]));
    for (int i = 0; i < THREADS; i++) {
        TEST_ASSERT_EQUAL_INT(0, pthread_join(threads[i], NULL));
        live += sums[i].live;
    }
    size_t now;
    size_t highest;
    ta_get_traced_memory(&now, &highest);
    TEST_ASSERT_EQUAL_size_t(1000, before);
    /* libc keeps the stacks of ended threads, and allocates their thread vectors: a few hundred bytes each. */
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(before + live, now);
    TEST_ASSERT_LESS_OR_EQUAL_size_t(before + live + 4096 * THREADS, now);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(now, highest);
}

static void test_rows_62_63_a_forked_child_goes_on_with_what_it_inherited(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(6));
    void *block = site_a(400);
    TEST_ASSERT_EQUAL_INT(0, ta_track(8, 8, 100));
    pid_t child = fork();
    if (child == 0) {
        int good = ta_is_tracing() && ta_get_traceback_limit() == 6 && current() == 500 && is_traced(block) &&
                   ta_get_traceback(8, 8, NULL, 0, NULL) != 0;
        void *own = site_a(7000);
        good = good && current() == 7500 && is_traced(own);
        ta_free(block);
        good = good && current() == 7100 && peak() == 7500;
        ta_clear_traces();
        good = good && current() == 0;
        _exit(good ? 0 : 1);
    }
    int status;
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_TRUE(WIFEXITED(status));
    TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
    TEST_ASSERT_EQUAL_size_t(500, current());
    TEST_ASSERT_TRUE(is_traced(block));
    ta_free(block);
}

int main(void)
{
    static char output[1 << 16];
    setvbuf(stdout, output, _IOFBF, sizeof output); /* Unity's output allocates nothing */
    UNITY_BEGIN();
    RUN_TEST(test_row_09_limit_before_any_start_is_one);
    RUN_TEST(test_row_01_start_records_with_counters_at_zero);
    RUN_TEST(test_row_02_start_outside_of_the_range_fails_and_changes_nothing);
    RUN_TEST(test_row_03_start_while_tracing_checks_its_argument_and_does_nothing);
    RUN_TEST(test_row_04_stop_forgets_everything_but_the_limit);
    RUN_TEST(test_row_05_is_tracing_is_the_same_from_every_thread);
    RUN_TEST(test_row_06_clear_forgets_all_traces_and_goes_on);
    RUN_TEST(test_row_06_clear_more_often_than_headers_have_epochs_forgets_each_time);
    RUN_TEST(test_row_07_reset_peak_sets_peak_to_current);
    RUN_TEST(test_row_08_traced_memory_is_one_pair_and_zero_when_stopped);
    RUN_TEST(test_row_09_limit_stays_when_stopped);
    RUN_TEST(test_row_10_tracer_memory_grows_with_stacks_and_not_by_clear);
    RUN_TEST(test_rows_11_12_24_every_call_records_once_what_was_asked_for);
    RUN_TEST(test_row_11_questions_about_a_block_have_no_effect);
    RUN_TEST(test_row_13_a_block_of_size_zero_is_a_block);
    RUN_TEST(test_row_13_many_blocks_of_size_zero_fill_whole_pages);
    RUN_TEST(test_row_14_a_failed_allocation_leaves_no_trace);
    RUN_TEST(test_row_15_realloc_moves_attribution_to_itself);
    RUN_TEST(test_row_16_realloc_of_an_untraced_block_makes_it_traced);
    RUN_TEST(test_row_17_a_failed_realloc_changes_nothing);
    RUN_TEST(test_row_18_realloc_to_zero_frees_and_removes_the_trace);
#if defined(__x86_64__)
    RUN_TEST(test_row_19_the_trace_goes_before_the_block_can_be_handed_out_again);
#endif
    RUN_TEST(test_row_20_a_moving_realloc_never_shows_both_blocks);
    RUN_TEST(test_row_21_free_of_what_is_not_traced_moves_no_counter);
#if TRACEALLOC_OVERRIDE
    RUN_TEST(test_row_22_operators_are_traced_under_their_caller);
    RUN_TEST(test_row_23_what_libc_allocates_is_traced_under_libc);
#endif
    RUN_TEST(test_rows_25_26_a_stale_trace_at_a_reused_address_is_replaced);
    RUN_TEST(test_row_27_blocks_of_before_the_start_are_freed_and_resized);
    RUN_TEST(test_row_31_the_first_frame_is_the_caller_and_none_is_ours);
    RUN_TEST(test_rows_32_33_the_most_recent_frames_are_kept_and_all_are_counted);
    RUN_TEST(test_rows_34_35_code_without_tables_ends_the_stack_which_is_never_empty);
    RUN_TEST(test_rows_33_46_a_stack_deeper_than_65535_is_stored_and_counted_up_to_there);
    RUN_TEST(test_row_47_a_handler_on_another_stack_is_followed_into_what_it_interrupted);
    RUN_TEST(test_row_48_equal_stacks_are_stored_once);
    RUN_TEST(test_row_50_track_accepts_any_domain_address_and_size);
    RUN_TEST(test_row_51_track_again_replaces_size_and_traceback);
    RUN_TEST(test_row_52_untrack_answers_zero_whether_known_or_not);
    RUN_TEST(test_row_53_one_address_in_two_domains_is_two_traces);
    RUN_TEST(test_row_54_allocator_calls_leave_other_domains_alone);
    RUN_TEST(test_row_55_domain_zero_can_be_overridden_and_hidden);
    RUN_TEST(test_row_56_lookup_is_by_exact_address);
    RUN_TEST(test_row_57_object_traceback_fills_no_more_than_asked_for);
    RUN_TEST(test_rows_58_59_60_current_at_rest_is_the_sum_over_all_threads_and_domains);
    RUN_TEST(test_rows_62_63_a_forked_child_goes_on_with_what_it_inherited);
    return UNITY_END();
}
