/* test_analysis_filters.c: filters as values and in words. */
#include "tests/support/whole_case.h"

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
    TEST_ASSERT_NULL(ta_snapshot_filter_traces(snapshot, NULL, 2));
    TEST_ASSERT_EQUAL_STRING("there are no filters: NULL", ta_error_text());
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

/* Lists may be long; only what is nested is limited. */
static void test_words_take_as_many_terms_as_are_given(void)
{
    static char text[300000];
    for (int count = 200; count < 10000; count += 3000) {
        size_t length = 0;
        for (int i = 0; i < count; i++)
            length += (size_t)sprintf(text + length, "domain:%d or ", i + 100);
        strcpy(text + length, "domain:3");
        TEST_ASSERT_EQUAL_STRING("4", kept_by_words(text));
        length = 0;
        for (int i = 0; i < count; i++)
            length += (size_t)sprintf(text + length, "size>%d ", i % 2);
        strcpy(text + length, "domain:1");
        TEST_ASSERT_EQUAL_STRING("2", kept_by_words(text));
    }
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
    TEST_ASSERT_EQUAL_STRING("", kept_by_words("file:\"\"")); /* no file has that name */
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
    refused("fil:x",
            "filter, column 1: unknown field 'fil' (own, file, function, module, at, line, domain, thread, size, "
            "total, count, depth)");
}

static void test_words_nested_too_deeply_are_refused(void)
{
    char text[10001];
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refused(text, "filter, column 201: nested too deeply");
}

/* "60/3 40/2 blocks 5": live bytes and blocks of what is kept of the whole snapshot, how many stacks hold nothing any
 * more, and the single blocks. */
static const char *whole_kept(const char *expression)
{
    static char text[256];
    struct ta_snapshot *whole = whole_snapshot();
    struct ta_snapshot *filtered = ta_snapshot_filter_expression(whole, expression);
    TEST_ASSERT_NOT_NULL_MESSAGE(filtered, ta_error_text());
    size_t length = 0;
    for (long i = 0; i < ta_snapshot_trace_count(filtered); i++) {
        struct ta_trace trace;
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(filtered, (size_t)i, &trace));
        length += (size_t)sprintf(text + length, "%d/%d ", (int)trace.size, (int)trace.count);
    }
    length += (size_t)sprintf(text + length, "gone %ld blocks", ta_snapshot_gone_trace_count(filtered));
    for (long i = 0; i < ta_snapshot_block_count(filtered); i++) {
        struct ta_block block;
        struct ta_trace trace;
        TEST_ASSERT_EQUAL(0, ta_snapshot_block(filtered, (size_t)i, &block));
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(filtered, (size_t)block.trace, &trace));
        length += (size_t)sprintf(text + length, " %d@%d", (int)block.size, (int)trace.size);
    }
    ta_snapshot_free(filtered);
    ta_snapshot_free(whole);
    return text;
}

static void test_words_about_functions_modules_threads_and_domains(void)
{
    TEST_ASSERT_EQUAL_STRING("60/3 40/2 gone 0 blocks 8@60 20@40 20@60 32@60 20@40", whole_kept("function:take"));
    TEST_ASSERT_EQUAL_STRING("40/2 gone 0 blocks 20@40 20@40", whole_kept("any.function:par*"));
    TEST_ASSERT_EQUAL_STRING("7/1 gone 1 blocks 7@7", whole_kept("module:/bin/*"));
    TEST_ASSERT_EQUAL_STRING("60/3 gone 1 blocks 8@60 20@60 32@60", whole_kept("thread:100"));
    TEST_ASSERT_EQUAL_STRING("40/2 gone 0 blocks 20@40 20@40", whole_kept("thread:101"));
    TEST_ASSERT_EQUAL_STRING("7/1 gone 0 blocks 7@7", whole_kept("thread:0"));
    TEST_ASSERT_EQUAL_STRING("40/2 gone 0 blocks 20@40 20@40", whole_kept("domain:cache"));
    TEST_ASSERT_EQUAL_STRING("40/2 7/1 gone 0 blocks 20@40 7@7 20@40", whole_kept("domain:*o* or domain:[c]*"));
    TEST_ASSERT_EQUAL_STRING("60/3 40/2 gone 1 blocks 8@60 20@40 20@60 32@60 20@40", whole_kept("domain!=pool"));
    TEST_ASSERT_EQUAL_STRING("gone 0 blocks", whole_kept("domain:none"));
    TEST_ASSERT_EQUAL_STRING("60/3 gone 1 blocks 8@60 20@60 32@60", whole_kept("depth=2"));
    TEST_ASSERT_EQUAL_STRING("40/2 gone 0 blocks 20@40 20@40", whole_kept("any.file:main.c line:4 count<3"));
}

/* Where every single block is known, a filter of sizes keeps some blocks of a stack. */
static void test_words_about_sizes_look_at_each_block(void)
{
    TEST_ASSERT_EQUAL_STRING("20/1 40/2 gone 0 blocks 20@40 20@20 20@40", whole_kept("size:20"));
    TEST_ASSERT_EQUAL_STRING("28/2 7/1 gone 1 blocks 8@28 20@28 7@7", whole_kept("size<=20 and not domain:5"));
    TEST_ASSERT_EQUAL_STRING("32/1 gone 0 blocks 32@32", whole_kept("not (size<21 or domain:6)"));
    TEST_ASSERT_EQUAL_STRING("8/1 7/1 gone 1 blocks 8@8 7@7", whole_kept("file:x or size<20"));
    TEST_ASSERT_EQUAL_STRING("60/3 gone 0 blocks 8@60 20@60 32@60", whole_kept("total:60"));
    TEST_ASSERT_EQUAL_STRING("40/2 gone 0 blocks 20@40 20@40", whole_kept("total=40 size=20"));
}

static void test_figures_of_a_stack_of_which_a_part_is_kept_are_those_of_the_part(void)
{
    struct ta_snapshot *whole = whole_snapshot();
    struct ta_snapshot *part = ta_snapshot_filter_expression(whole, "size>8");
    struct ta_snapshot *all = ta_snapshot_filter_expression(whole, "size<100");
    const struct ta__view_trace *trace = &ta__snapshot_view(part)->traces[0];
    TEST_ASSERT_EQUAL_UINT64(52, trace->size);
    TEST_ASSERT_EQUAL_UINT64(52, trace->allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(2, trace->allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(0, trace->peak_bytes);
    trace = &ta__snapshot_view(all)->traces[0];
    TEST_ASSERT_EQUAL_UINT64(100, trace->allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(4, trace->allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(60, trace->peak_bytes);
    ta_snapshot_free(all);
    ta_snapshot_free(part);
    ta_snapshot_free(whole);
}

static void test_filters_take_numbers_that_no_domain_and_no_line_has(void)
{
    struct ta_filter filter = {.type = TA_FILTER_DOMAIN, .inclusive = 1, .domain = 0};
    TEST_ASSERT_EQUAL_STRING("1 5000", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
    filter.domain = -1;
    TEST_ASSERT_EQUAL_STRING("", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
    filter =
        (struct ta_filter){.type = TA_FILTER_FILENAME, .inclusive = 1, .pattern = "*", .has_lineno = 1, .lineno = 0};
    TEST_ASSERT_EQUAL_STRING("4", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
    filter.lineno = -2;
    TEST_ASSERT_EQUAL_STRING("", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
    filter =
        (struct ta_filter){.type = TA_FILTER_FILENAME, .inclusive = 1, .pattern = "net/a.cpp", .pattern_length = 7};
    TEST_ASSERT_EQUAL_STRING("1", kept(ta_snapshot_filter_traces(snapshot, &filter, 1)));
}

static void test_words_at_the_borders_of_what_they_may_be(void)
{
    char text[500];
    TEST_ASSERT_EQUAL_STRING("1", kept_by_words("size<2"));
    TEST_ASSERT_EQUAL_STRING("1 2", kept_by_words("size<=2"));
    TEST_ASSERT_EQUAL_STRING("3 4 5000", kept_by_words("size>2"));
    TEST_ASSERT_EQUAL_STRING("2 3 4 5000", kept_by_words("size!=1"));
    TEST_ASSERT_EQUAL_STRING("1 2 3 4 5000", kept_by_words("size>=0"));
    TEST_ASSERT_EQUAL_STRING("", kept_by_words("size>18446744073709551615"));
    TEST_ASSERT_EQUAL_STRING("1 2 3 4 5000", kept_by_words("size<=18446744073709551615"));
    TEST_ASSERT_EQUAL_STRING("1 2 3 4", kept_by_words("size!=10-6K"));
    TEST_ASSERT_EQUAL_STRING("5000", kept_by_words("size:4KiB-5K"));
    TEST_ASSERT_EQUAL_STRING("3", kept_by_words("size:3B"));
    TEST_ASSERT_EQUAL_STRING("4", kept_by_words("depth:40"));
    TEST_ASSERT_EQUAL_STRING("1 2 3", kept_by_words("depth:2"));
    TEST_ASSERT_EQUAL_STRING("1 4", kept_by_words("\tsize:1\r\nor\tsize:4\n"));
    refused("size:3BiB", "filter, column 6: expected a size such as 4096, 64K or 1MiB");
    refused("size:18446744073709551616", "filter, column 6: expected a size such as 4096, 64K or 1MiB");
    refused("size:16777216T", "filter, column 6: expected a size such as 4096, 64K or 1MiB");
    refused("size:", "filter, column 6: a value is missing");
    refused("size:-3", "filter, column 6: expected a size such as 4096, 64K or 1MiB");
    refused("size:3-", "filter, column 6: expected a size such as 4096, 64K or 1MiB");
    refused("line:1K", "filter, column 6: expected a number");
    refused("size<1-2", "filter, column 6: a range goes with \":\" only");
    refused("own<x", "filter, column 4: names are compared with : = or !=");
    refused("any.:x", "filter, column 1: unknown field 'any.' (own, file, function, module, at, line, domain, thread, "
                      "size, total, count, depth)");
    refused("Zz:x",
            "filter, column 1: unknown field 'Zz' (own, file, function, module, at, line, domain, thread, size, "
            "total, count, depth)");
    refused("AZaz09_:x", "filter, column 1: unknown field 'AZaz09_' (own, file, function, module, at, line, domain, "
                         "thread, size, total, count, depth)");
    for (int depth = 199; depth <= 200; depth++) {
        memset(text, '(', (size_t)depth);
        strcpy(text + depth, "size:1");
        memset(text + depth + 6, ')', (size_t)depth);
        text[2 * depth + 6] = '\0';
        if (depth == 199)
            TEST_ASSERT_EQUAL_STRING("1", kept_by_words(text));
        else
            refused(text, "filter, column 201: nested too deeply");
    }
}

/* As many conditions as are searched safely, and one more. */
static void test_words_take_ten_thousand_conditions(void)
{
    static char text[200000];
    size_t length = 0;
    for (int i = 0; i < 10000; i++)
        length += (size_t)sprintf(text + length, i == 0 ? "size:4" : " or size:4");
    TEST_ASSERT_EQUAL_STRING("4", kept_by_words(text));
    strcpy(text + length, " or size:4");
    char error[80];
    sprintf(error, "filter, column %zu: too many conditions", length + 5);
    refused(text, error);
}

static void test_patterns_at_the_end_of_their_text(void)
{
    TEST_ASSERT_EQUAL(1, ta_pattern_matches(".pyc", 4, ".py", 3));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("a.pyc", 5, "a.py", 4));
    TEST_ASSERT_EQUAL(0, ta_pattern_matches("pyc", 3, "py", 2));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("[a]]", 1, "[", 1)); /* what stands behind its end is not looked at */
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("[!]]", 2, "[!", 2));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("[]]", 2, "[]", 2));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("[]]", 3, "]", 1));
    TEST_ASSERT_EQUAL(0, ta_pattern_matches("[]]", 3, "", 0));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("[a-c]", 5, "b", 1));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("[a-]", 4, "-", 1));
    TEST_ASSERT_EQUAL(0, ta_pattern_matches("[a-]", 4, "b", 1));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("[-a]", 4, "-", 1));
    TEST_ASSERT_EQUAL(0, ta_pattern_matches("[ab]", 4, "]", 1));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("*ab*c", 5, "aabxabc", 7));
    TEST_ASSERT_EQUAL(0, ta_pattern_matches("*ab*c", 5, "aabxab", 6));
    TEST_ASSERT_EQUAL(1, ta_pattern_matches("a**b", 4, "ab", 2));
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
    RUN_TEST(test_words_take_as_many_terms_as_are_given);
    RUN_TEST(test_words_about_any_frame_look_at_the_whole_stack);
    RUN_TEST(test_words_about_numbers_take_operators_ranges_and_units);
    RUN_TEST(test_words_take_values_with_parentheses_and_quotes);
    RUN_TEST(test_words_with_an_error_are_refused_with_its_column);
    RUN_TEST(test_words_nested_too_deeply_are_refused);
    RUN_TEST(test_words_about_functions_modules_threads_and_domains);
    RUN_TEST(test_words_about_sizes_look_at_each_block);
    RUN_TEST(test_figures_of_a_stack_of_which_a_part_is_kept_are_those_of_the_part);
    RUN_TEST(test_filters_take_numbers_that_no_domain_and_no_line_has);
    RUN_TEST(test_words_at_the_borders_of_what_they_may_be);
    RUN_TEST(test_words_take_ten_thousand_conditions);
    RUN_TEST(test_patterns_at_the_end_of_their_text);
    return UNITY_END();
}
