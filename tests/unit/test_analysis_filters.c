/* test_analysis_filters.c: filters as values and in words. */
#include "tests/support/analysis_case.h"

/* The numbers of kept traces are their sizes. */
static const char traces[] = "{'size': 1, 'domain': 0, 'frames': [['net/a.c', 2], ['main.c', 9]]},"
                             "{'size': 2, 'domain': 1, 'frames': [['net/b.c', 5], ['main.c', 10]]},"
                             "{'size': 3, 'domain': 2, 'frames': [['ui/a.c', 2], ['net/a.c', 7]]},"
                             "{'size': 4, 'domain': 3, 'total_nframe': 40, 'frames': [['<unknown>', 0]]},"
                             "{'size': 5000, 'count': 2, 'domain': 0, 'frames': [['odd name(x)', 1]]}";

static struct ta_snapshot *snapshot;

void setUp(void)
{
    snapshot = snapshot_of(traces);
}

void tearDown(void)
{
    ta_snapshot_free(snapshot);
}

/* "1 2 3": the sizes of single blocks in the order of the traces. */
static const char *kept(struct ta_snapshot *filtered)
{
    static char text[256];
    text[0] = '\0';
    TEST_ASSERT_NOT_NULL_MESSAGE(filtered, ta_error_text());
    for (long i = 0; i < ta_snapshot_trace_count(filtered); i++) {
        struct ta_trace trace;
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(filtered, (size_t)i, &trace));
        sprintf(text + strlen(text), "%s%d", i == 0 ? "" : " ", (int)(trace.size / trace.count));
    }
    ta_snapshot_free(filtered);
    return text;
}

static const char *kept_by_words(const char *expression)
{
    return kept(ta_snapshot_filter_expression(snapshot, expression));
}

static void refused(const char *expression, const char *error)
{
    TEST_ASSERT_NULL(ta_snapshot_filter_expression(snapshot, expression));
    TEST_ASSERT_EQUAL_STRING(error, ta_error_text());
}

static void test_filters_without_any_keep_a_copy_with_the_same_limit(void)
{
    struct ta_snapshot *copy = ta_snapshot_filter_traces(snapshot, NULL, 0);
    TEST_ASSERT_EQUAL(5, ta_snapshot_traceback_limit(copy));
    TEST_ASSERT_EQUAL_STRING("1 2 3 4 5000", kept(copy));
}

static void test_filters_of_both_directions_combine_as_any_of_and_none_of(void)
{
    struct ta_filter filters[] = {
        {.type = TA_FILTER_FILENAME, .inclusive = 1, .pattern = "net/*"},
        {.type = TA_FILTER_DOMAIN, .inclusive = 1, .domain = 3},
        {.type = TA_FILTER_FILENAME, .inclusive = 0, .pattern = "*", .has_lineno = 1, .lineno = 5},
    };
    TEST_ASSERT_EQUAL_STRING("1 4", kept(ta_snapshot_filter_traces(snapshot, filters, 3)));
}

static void test_filter_of_all_frames_sees_older_frames_and_its_domain(void)
{
    struct ta_filter filter = {.inclusive = 1, .pattern = "net/a.c", .all_frames = 1};
    TEST_ASSERT_EQUAL_STRING("1 3", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
    filter.has_domain = 1;
    filter.domain = 2;
    TEST_ASSERT_EQUAL_STRING("3", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
    filter.inclusive = 0;
    TEST_ASSERT_EQUAL_STRING("1 2 4 5000", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
}

static void test_filter_of_size_sees_one_block(void)
{
    struct ta_filter filter = {.type = TA_FILTER_SIZE, .inclusive = 1, .min_size = 3, .max_size = 5000};
    TEST_ASSERT_EQUAL_STRING("3 4 5000", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
}

static void test_filter_without_pattern_or_type_is_refused(void)
{
    struct ta_filter filters[] = {{.type = TA_FILTER_DOMAIN}, {.type = TA_FILTER_MODULE}};
    TEST_ASSERT_NULL(ta_snapshot_filter_traces(snapshot, filters, 2));
    TEST_ASSERT_EQUAL_STRING("filter 1 has no pattern", ta_error_text());
    filters[1].type = (enum ta_filter_type)77;
    TEST_ASSERT_NULL(ta_snapshot_filter_traces(snapshot, filters, 2));
    TEST_ASSERT_EQUAL_STRING("filter 1 is of no known type", ta_error_text());
}

static void test_words_combine_with_and_or_not_and_parentheses(void)
{
    TEST_ASSERT_EQUAL_STRING("1 2", kept_by_words("file:net/*"));
    TEST_ASSERT_EQUAL_STRING("2", kept_by_words("file:net/* line:5"));
    TEST_ASSERT_EQUAL_STRING("2", kept_by_words("file:net/* and not line:2"));
    TEST_ASSERT_EQUAL_STRING("1 2 4", kept_by_words("file:net/* or domain:3"));
    TEST_ASSERT_EQUAL_STRING("1 4", kept_by_words("not (file:net/b.c or file:ui/*) and size<5"));
    TEST_ASSERT_EQUAL_STRING("3 4 5000", kept_by_words("not not not file:net/*"));
}

static void test_words_bind_and_closer_than_or(void)
{
    TEST_ASSERT_EQUAL_STRING("1 4", kept_by_words("domain:3 or file:net/* line:2"));
    TEST_ASSERT_EQUAL_STRING("1", kept_by_words("(domain:3 or file:net/*) line:2"));
}

static void test_words_about_any_frame_look_at_the_whole_stack(void)
{
    TEST_ASSERT_EQUAL_STRING("1 3", kept_by_words("any.file:net/a.c"));
    TEST_ASSERT_EQUAL_STRING("3", kept_by_words("any.at:net/a.c:7"));
    TEST_ASSERT_EQUAL_STRING("1 2", kept_by_words("any.at:main.c:9-10"));
    TEST_ASSERT_EQUAL_STRING("", kept_by_words("at:main.c:9"));
}

static void test_words_about_numbers_take_operators_ranges_and_units(void)
{
    TEST_ASSERT_EQUAL_STRING("2 3 4 5000", kept_by_words("size>=2"));
    TEST_ASSERT_EQUAL_STRING("1 2 3 4", kept_by_words("size!=5000"));
    TEST_ASSERT_EQUAL_STRING("5000", kept_by_words("total>9K count=2"));
    TEST_ASSERT_EQUAL_STRING("1 2 5000", kept_by_words("domain:0-1"));
    TEST_ASSERT_EQUAL_STRING("4", kept_by_words("depth>10"));
    TEST_ASSERT_EQUAL_STRING("", kept_by_words("size<0"));
    TEST_ASSERT_EQUAL_STRING("", kept_by_words("size>1TiB"));
}

static void test_words_take_values_with_parentheses_and_quotes(void)
{
    TEST_ASSERT_EQUAL_STRING("5000", kept_by_words("(file:\"odd name(x)\")"));
    TEST_ASSERT_EQUAL_STRING("5000", kept_by_words("(file:odd?name(x))"));
    TEST_ASSERT_EQUAL_STRING("", kept_by_words("file:\"a\\\"b\\\\\""));
}

static void test_words_with_an_error_are_refused_with_its_column(void)
{
    refused("", "filter, column 1: a condition is missing");
    refused("file:x and", "filter, column 11: a condition is missing");
    refused("domain:3 (file:x", "filter, column 10: a parenthesis that is not closed");
    refused("domain:3)", "filter, column 9: a parenthesis that was not opened");
    refused("file x", "filter, column 5: expected one of : = != < <= > >= after the field");
    refused("file<x", "filter, column 5: names are compared with : = or !=");
    refused("size:12Q", "filter, column 6: expected a size such as 4096, 64K or 1MiB");
    refused("line:x", "filter, column 6: expected a number");
    refused("size:99999999999999999999", "filter, column 6: expected a size such as 4096, 64K or 1MiB");
    refused("size>1-2", "filter, column 6: a range goes with \":\" only");
    refused("file:", "filter, column 6: a value is missing");
    refused("file:\"x", "filter, column 6: a quotation that does not end");
    refused("any.domain:1", "filter, column 1: \"any.\" goes with file, function, module, at and line only");
    refused("at:file", "filter, column 4: \"at\" wants FILE:LINE");
    refused("%", "filter, column 1: expected a condition");
    refused("fil:x", "filter, column 1: unknown field 'fil' (file, function, module, at, line, domain, thread, size, "
                     "total, count, depth)");
}

static void test_words_nested_too_deeply_are_refused(void)
{
    char text[10001];
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refused(text, "filter, column 201: nested too deeply");
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_filters_without_any_keep_a_copy_with_the_same_limit);
    RUN_TEST(test_filters_of_both_directions_combine_as_any_of_and_none_of);
    RUN_TEST(test_filter_of_all_frames_sees_older_frames_and_its_domain);
    RUN_TEST(test_filter_of_size_sees_one_block);
    RUN_TEST(test_filter_without_pattern_or_type_is_refused);
    RUN_TEST(test_words_combine_with_and_or_not_and_parentheses);
    RUN_TEST(test_words_bind_and_closer_than_or);
    RUN_TEST(test_words_about_any_frame_look_at_the_whole_stack);
    RUN_TEST(test_words_about_numbers_take_operators_ranges_and_units);
    RUN_TEST(test_words_take_values_with_parentheses_and_quotes);
    RUN_TEST(test_words_with_an_error_are_refused_with_its_column);
    RUN_TEST(test_words_nested_too_deeply_are_refused);
    return UNITY_END();
}
