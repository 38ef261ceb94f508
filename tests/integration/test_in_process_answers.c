/* test_in_process_answers.c: a program asks where its own blocks and addresses come from. */
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <tracealloc/domain.h>
#include <tracealloc/export.h>
#include <unity.h>

void setUp(void)
{
}

void tearDown(void)
{
}

#define NOINLINE __attribute__((noinline, noclone))

enum { ALLOCATE_LINE = __LINE__ + 3 };
static NOINLINE void *allocate(size_t size)
{
    void *block = malloc(size); /* this line is in the tests below */
    __asm__ volatile("" : "+r"(block));
    return block;
}

enum { INLINED_LINE = __LINE__ + 3 };
static inline __attribute__((always_inline)) void *inlined(size_t size)
{
    void *block = allocate(size);
    __asm__ volatile("" : "+r"(block));
    return block;
}

enum { OUTER_LINE = __LINE__ + 3 };
static NOINLINE void *outer(size_t size)
{
    void *block = inlined(size);
    __asm__ volatile("" : "+r"(block));
    return block;
}

static struct ta_frame frame_at(struct ta_traceback traceback, int64_t index)
{
    struct ta_frame frame = {.filename = "", .function = ""};
    TEST_ASSERT_EQUAL(0, ta_traceback_frame(traceback, index, &frame));
    return frame;
}

static void expect_frame(struct ta_traceback traceback, int64_t index, const char *function, uint32_t line,
                         int inlined_)
{
    struct ta_frame frame = frame_at(traceback, index);
    TEST_ASSERT_EQUAL_STRING(function, frame.function);
    TEST_ASSERT_EQUAL_UINT32(line, frame.lineno);
    TEST_ASSERT_EQUAL_INT(inlined_, (frame.flags & TA_FRAME_INLINED) != 0);
    TEST_ASSERT_NOT_NULL(strstr(frame.filename, "test_in_process_answers.c"));
}

static void test_who_allocated_a_block_is_told_with_inlined_calls(void)
{
    void *block = outer(100);
    struct ta_traceback traceback = ta_object_traceback(block);
    TEST_ASSERT_GREATER_OR_EQUAL(4, ta_traceback_length(traceback));
    expect_frame(traceback, -1, "allocate", ALLOCATE_LINE, 0);
    expect_frame(traceback, -2, "inlined", INLINED_LINE, 1);
    expect_frame(traceback, -3, "outer", OUTER_LINE, 0);
    TEST_ASSERT_GREATER_OR_EQUAL(4, traceback.total_nframe);
    ta_traceback_free(traceback);
    free(block);
}

static void test_format_in_one_call_shows_files_and_sources(void)
{
    void *block = outer(200);
    char **lines = ta_format_object_traceback(block, 2, 1);
    TEST_ASSERT_NOT_NULL_MESSAGE(lines, ta_error_text());
    char expected[64];
    snprintf(expected, sizeof expected, "test_in_process_answers.c\", line %d", ALLOCATE_LINE);
    TEST_ASSERT_NOT_NULL(strstr(lines[0], expected));
    TEST_ASSERT_EQUAL_STRING("    void *block = malloc(size); /* this line is in the tests below */", lines[1]);
    snprintf(expected, sizeof expected, "line %d", INLINED_LINE);
    TEST_ASSERT_NOT_NULL(strstr(lines[2], expected));
    free(lines);
    free(block);
}

static void test_blocks_without_a_trace_are_said_so(void)
{
    int local = 0;
    TEST_ASSERT_EQUAL(0, ta_traceback_length(ta_object_traceback(&local)));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "no block with a trace"));
    TEST_ASSERT_NULL(ta_format_object_traceback(NULL, TA_FORMAT_ALL, 0));
    ta_traceback_free(ta_object_traceback(NULL));
}

enum { OWN_STACK_LINE = __LINE__ + 3 };
static NOINLINE int own_stack(void **addresses, int max)
{
    int count = backtrace(addresses, max);
    __asm__ volatile("" : "+r"(count));
    return count;
}

static void test_addresses_of_backtrace_become_frames_oldest_first(void)
{
    void *addresses[64];
    int count = own_stack(addresses, 64);
    struct ta_traceback traceback = ta_symbolize(addresses, (size_t)count);
    TEST_ASSERT_GREATER_OR_EQUAL(3, ta_traceback_length(traceback));
    expect_frame(traceback, -1, "own_stack", OWN_STACK_LINE, 0);
    TEST_ASSERT_EQUAL_STRING("test_addresses_of_backtrace_become_frames_oldest_first",
                             frame_at(traceback, -2).function);
    char text[512];
    TEST_ASSERT_LESS_THAN(sizeof text, ta_address_text(addresses[0], text, sizeof text));
    TEST_ASSERT_NOT_NULL(strstr(text, "own_stack at "));
    char expected[64];
    snprintf(expected, sizeof expected, "test_in_process_answers.c:%d", OWN_STACK_LINE);
    TEST_ASSERT_NOT_NULL(strstr(text, expected));
    ta_traceback_free(traceback);
}

static void test_addresses_of_nothing_have_no_names(void)
{
    void *addresses[] = {NULL, (void *)1, (void *)UINTPTR_MAX, &(int){0}};
    struct ta_traceback traceback = ta_symbolize(addresses, 4);
    TEST_ASSERT_EQUAL(4, ta_traceback_length(traceback));
    for (int i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL_STRING("<unknown>", frame_at(traceback, i).filename);
    ta_traceback_free(traceback);
    TEST_ASSERT_EQUAL(0, ta_traceback_length(ta_symbolize(addresses, 0)));
}

static void test_libraries_are_found_too(void)
{
    void *addresses[] = {(char *)(uintptr_t)qsort + 4};
    struct ta_traceback traceback = ta_symbolize(addresses, 1);
    TEST_ASSERT_NOT_NULL(strstr(frame_at(traceback, -1).module, "libc.so"));
    TEST_ASSERT_NOT_NULL(strstr(frame_at(traceback, -1).raw_name, "qsort")); /* debug files call it __GI_qsort */
    ta_traceback_free(traceback);
}

/* A copy is a value: order and text do not ask where the frames came from. */
static void test_symbolized_tracebacks_compare_as_all_others(void)
{
    void *block = outer(300);
    void *other = outer(300);
    struct ta_traceback a = ta_object_traceback(block), b = ta_object_traceback(other);
    struct ta_frame frames[64];
    size_t count = ta_traceback_frames(a, frames, 64);
    TEST_ASSERT_FALSE(ta_traceback_equal(a, b)); /* two lines of this function */
    TEST_ASSERT_TRUE(ta_traceback_equal(a, ta_traceback_of(frames, count, -1)));
    TEST_ASSERT_EQUAL_UINT64(ta_traceback_hash(a), ta_traceback_hash(ta_traceback_of(frames, count, -1)));
    ta_traceback_free(ta_traceback_of(frames, count, -1)); /* not its own: nothing happens */
    ta_traceback_free(a);
    ta_traceback_free(b);
    free(block);
    free(other);
}

static void *ask(void *block)
{
    for (int i = 0; i < 20; i++) {
        struct ta_traceback traceback = ta_object_traceback(block);
        if (ta_traceback_length(traceback) < 3)
            return (void *)1;
        ta_traceback_free(traceback);
    }
    return NULL;
}

static void test_several_threads_may_ask_at_once(void)
{
    pthread_t threads[4];
    void *block = outer(400), *failed = NULL;
    for (int i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, ask, block));
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        TEST_ASSERT_NULL(failed);
    }
    free(block);
}

static void test_metrics_have_a_row_for_each_domain_and_one_for_arenas(void)
{
    uint32_t arenas[3];
    struct ta_buffer text = {0};
    TEST_ASSERT_EQUAL(0, ta_domain_set_name(7, "a \"b\" \\ c\nd"));
    void *block = ta_domain_malloc(7, 1000);
    for (int i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL(0, ta_domain_create_arena(&arenas[i]));
        TEST_ASSERT_NOT_NULL(ta_domain_malloc(arenas[i], 10));
    }
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_export_metrics(ta_write_to_buffer, &text), ta_error_text());
    TEST_ASSERT_NOT_NULL(
        strstr(text.bytes, "tracealloc_domain_live_bytes{domain=\"7\",name=\"a \\\"b\\\" \\\\ c\\nd\"} 1000\n"));
    TEST_ASSERT_NOT_NULL(strstr(text.bytes, "tracealloc_domain_live_blocks{domain=\"arenas\",name=\"\"} 3\n"));
    TEST_ASSERT_NULL(strstr(text.bytes, "hard_limit")); /* there is none */
    free(text.bytes);
    for (int i = 0; i < 3; i++)
        ta_domain_destroy(arenas[i]);
    ta_free(block);
}

int main(void)
{
    UNITY_BEGIN();
    ta_start(100);
    RUN_TEST(test_who_allocated_a_block_is_told_with_inlined_calls);
    RUN_TEST(test_format_in_one_call_shows_files_and_sources);
    RUN_TEST(test_blocks_without_a_trace_are_said_so);
    RUN_TEST(test_addresses_of_backtrace_become_frames_oldest_first);
    RUN_TEST(test_addresses_of_nothing_have_no_names);
    RUN_TEST(test_libraries_are_found_too);
    RUN_TEST(test_symbolized_tracebacks_compare_as_all_others);
    RUN_TEST(test_metrics_have_a_row_for_each_domain_and_one_for_arenas);
    RUN_TEST(test_several_threads_may_ask_at_once);
    return UNITY_END();
}
