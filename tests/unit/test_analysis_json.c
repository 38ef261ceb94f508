/* test_analysis_json.c: interchange — names that are bytes, numbers at their limits, documents that are wrong. */
#include <errno.h>

#include "tests/support/analysis_case.h"

void setUp(void)
{
}

void tearDown(void)
{
}

struct collected {
    char text[4096];
    size_t length;
};

static int collect(void *user, const char *text, size_t length)
{
    struct collected *collected = user;
    if (collected->length + length >= sizeof collected->text)
        return -1;
    memcpy(collected->text + collected->length, text, length);
    collected->length += length;
    collected->text[collected->length] = '\0';
    return 0;
}

static const char *exported(const char *traces)
{
    static struct collected collected;
    collected.length = 0;
    struct ta_snapshot *snapshot = snapshot_of(traces);
    TEST_ASSERT_EQUAL(0, ta_snapshot_export_json(snapshot, collect, &collected));
    ta_snapshot_free(snapshot);
    return collected.text;
}

static void refused(const char *document, const char *error)
{
    char *text = with_double_quotes(document);
    struct ta_snapshot *snapshot = ta_snapshot_import_json(text, strlen(text));
    int was_imported = snapshot != NULL;
    ta_snapshot_free(snapshot); /* before what may fail: a failing test leaks nothing */
    free(text);
    TEST_ASSERT_FALSE_MESSAGE(was_imported, error);
    TEST_ASSERT_EQUAL_STRING(error, ta_error_text());
}

static void test_import_of_lone_surrogates_gives_bytes_and_export_gives_them_back(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 1, 'frames': [['a\\udcff\\u00e9\\ud83d\\ude00\\\\u', 1]]}");
    struct ta_frame frame;

    TEST_ASSERT_EQUAL(0, ta_traceback_frame(ta_snapshot_trace_traceback(snapshot, 0), 0, &frame));
    TEST_ASSERT_EQUAL_STRING("a\xFF\xC3\xA9\xF0\x9F\x98\x80\\u", frame.filename);
    TEST_ASSERT_NOT_NULL(strstr(exported("{'size': 1, 'frames': [['a\\udcff\\u00e9', 1]]}"), "\"a\\udcff\xC3\xA9\""));
    ta_snapshot_free(snapshot);
}

static void test_import_of_a_nul_in_a_name_keeps_it(void)
{
    TEST_ASSERT_NOT_NULL(strstr(exported("{'size': 1, 'frames': [['a\\u0000b', 1]]}"), "\"a\\u0000b\""));
}

static void test_import_fills_in_what_a_trace_leaves_out(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "{\"traceback_limit\": 5, \"frame_order\": \"most_recent_first\", \"traces\": [\n"
        "{\"domain\":0,\"size\":1,\"total_nframe\":2,\"count\":1,\"frames\":[[\"a\",1],[\"b\",2]]},\n"
        "{\"domain\":4294967295,\"size\":18446744073709551615,\"total_nframe\":null,\"count\":1,"
        "\"frames\":[[\"c\",4294967295]]}\n]}\n",
        exported("{'size': 1, 'frames': [['a', 1], ['b', 2]]},"
                 "{'domain': 4294967295, 'size': 18446744073709551615, 'total_nframe': null,"
                 " 'frames': [['c', 4294967295]]}"));
}

static void test_import_of_the_oldest_first_turns_the_frames_around(void)
{
    char *text = with_double_quotes(
        "{'frame_order': 'oldest_first', 'traces': [{'size': 1, 'frames': [['old', 1], ['new', 2]]}]}");
    struct ta_snapshot *snapshot = ta_snapshot_import_json(text, strlen(text));
    struct ta_frame frame;

    TEST_ASSERT_EQUAL(0, ta_traceback_frame(ta_snapshot_trace_traceback(snapshot, 0), -1, &frame));
    TEST_ASSERT_EQUAL_STRING("new", frame.filename);
    TEST_ASSERT_EQUAL(2, ta_snapshot_traceback_limit(snapshot));
    ta_snapshot_free(snapshot);
    free(text);
}

static void test_import_takes_members_in_any_order_and_the_last_of_two(void)
{
    char *text =
        with_double_quotes("{'traces': [{'size': 9, 'frames': [['gone', 1]]}], 'x': [{'y': [1, 'z']}, -1.5e3],"
                           " 'traces': [{'frames': 7, 'frames': [['old', 1], ['new', 2]], 'size': 5, 'size': 1},"
                           " {'size': 2, 'frames': [['old', 1]]}], 'frame_order': 'oldest_first'}");
    struct ta_snapshot *snapshot = ta_snapshot_import_json(text, strlen(text));
    struct ta_frame frame;
    struct ta_trace trace;

    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    TEST_ASSERT_EQUAL(2, ta_snapshot_trace_count(snapshot));
    TEST_ASSERT_EQUAL(0, ta_snapshot_trace(snapshot, 0, &trace));
    TEST_ASSERT_EQUAL(1, trace.size);
    TEST_ASSERT_EQUAL(0, ta_traceback_frame(ta_snapshot_trace_traceback(snapshot, 0), -1, &frame));
    TEST_ASSERT_EQUAL_STRING("new", frame.filename);
    TEST_ASSERT_EQUAL(0, ta_traceback_frame(ta_snapshot_trace_traceback(snapshot, 1), 0, &frame));
    TEST_ASSERT_EQUAL_STRING("old", frame.filename);
    TEST_ASSERT_EQUAL(1, ta_traceback_length(ta_snapshot_trace_traceback(snapshot, 1)));
    TEST_ASSERT_EQUAL(2, ta_snapshot_traceback_limit(snapshot));
    ta_snapshot_free(snapshot);
    free(text);
}

struct dripping {
    const char *at, *end;
    int fails;
};

/* One byte at a time: every token is cut everywhere. */
static long drip(void *user, char *bytes, size_t size)
{
    struct dripping *dripping = user;
    TEST_ASSERT_GREATER_THAN(0, size);
    if (dripping->at == dripping->end) {
        errno = EIO;
        return dripping->fails ? -1 : 0;
    }
    *bytes = *dripping->at++;
    return 1;
}

static void test_import_from_a_reader_is_the_same_wherever_its_pieces_end(void)
{
    char *text =
        with_double_quotes("{ 'traces': [\n{'size': 18446744073709551615, 'total_nframe': null, 'x': [true, false],"
                           " 'frames': [['a\\udcff\\u00e9\\ud83d\\ude00\\\\u\xC3\xA9', 12]]} ] }");
    struct dripping dripping = {text, text + strlen(text), 0};
    struct ta_snapshot *whole = ta_snapshot_import_json(text, strlen(text));
    struct ta_snapshot *pieces = ta_snapshot_import_json_from(drip, &dripping);

    TEST_ASSERT_NOT_NULL_MESSAGE(pieces, ta_error_text());
    TEST_ASSERT_EQUAL(1, ta_snapshot_trace_equal(whole, 0, pieces, 0));
    ta_snapshot_free(whole);
    ta_snapshot_free(pieces);

    dripping = (struct dripping){text, text + strlen(text) - 3, 1};
    TEST_ASSERT_NULL(ta_snapshot_import_json_from(drip, &dripping));
    TEST_ASSERT_EQUAL_STRING("cannot read: Input/output error", ta_error_text());
    dripping = (struct dripping){text, text + strlen(text) - 3, 0};
    TEST_ASSERT_NULL(ta_snapshot_import_json_from(drip, &dripping));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "JSON, line 2, column "));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "unexpected end of data"));
    free(text);
}

static void test_import_of_a_wrong_document_is_refused_with_the_place(void)
{
    refused("", "JSON, line 1, column 1: unexpected end of data");
    refused("[]", "expected an object with \"traces\"");
    refused("{}", "traces: expected a list");
    refused("{'traces': [1]}", "traces[0]: expected an object");
    refused("{'traces': [{'frames': [['a', 1]]}]}", "traces[0]: \"size\" is missing");
    refused("{'traces': [{'size': 1}]}", "traces[0].frames: expected a list of at least one [file name, line]");
    refused("{'traces': [{'size': 1, 'frames': []}]}",
            "traces[0].frames: expected a list of at least one [file name, line]");
    refused("{'traces': [{'size': 1, 'frames': [['a', 1], ['a', -1]]}]}",
            "traces[0].frames[1]: expected [file name, line from 0 to 4294967295]");
    refused("{'traces': [{'size': 1, 'frames': [['a', 1, 2]]}]}",
            "traces[0].frames[0]: expected [file name, line from 0 to 4294967295]");
    refused("{'traces': [{'size': 1.5, 'frames': [['a', 1]]}]}",
            "traces[0].size: expected an integer from 0 to 18446744073709551615");
    refused("{'traces': [{'size': 1, 'domain': 4294967296, 'frames': [['a', 1]]}]}",
            "traces[0].domain: expected an integer from 0 to 4294967295");
    refused("{'traces': [{'size': 4, 'count': 18446744073709551615, 'total_nframe': 'x', 'frames': [['a', 1]]}]}",
            "traces[0].total_nframe: expected an integer from 0 to 2147483646");
    refused("{'traces': [{'size': 4, 'total_nframe': 2147483647, 'frames': [['a', 1]]}]}",
            "traces[0].total_nframe: expected an integer from 0 to 2147483646");
    refused("{'traces': [{'size': 9223372036854775808, 'count': 18446744073709551615, 'frames': [['a', 1]]}]}",
            "traces[0]: size times count is too large");
    refused("{'frame_order': 'sideways', 'traces': []}",
            "frame_order: expected \"most_recent_first\" or \"oldest_first\"");
    refused("{'traceback_limit': -1, 'traces': []}", "traceback_limit: expected an integer from 0 to 2147483647");
}

static void test_import_of_broken_text_is_refused_with_line_and_column(void)
{
    refused("{'traces':\n  [}", "JSON, line 2, column 4: unexpected character");
    refused("{'traces': []} []", "JSON, line 1, column 16: unexpected character");
    refused("{'\xC3\xA9\\u00e9': [}", "JSON, line 1, column 15: unexpected character");
    refused("{'\\ud800': 1}",
            "JSON, line 1, column 3: a lone surrogate that stands for no byte (U+DC80 \xE2\x80\xA6 U+DCFF do)");
    refused("{'\\udc00': 1}",
            "JSON, line 1, column 3: a lone surrogate that stands for no byte (U+DC80 \xE2\x80\xA6 U+DCFF do)");
    refused("{'a': tru}", "JSON, line 1, column 10: expected true or false");
    refused("{'a': nul}", "JSON, line 1, column 10: expected null");
    refused("{'a': 1.e}", "JSON, line 1, column 9: expected a number");
    refused("[1 2]", "JSON, line 1, column 4: expected , or ] in a list");
    refused("{1: 2}", "JSON, line 1, column 2: expected a name in quotes");
    refused("{'a' 2}", "JSON, line 1, column 6: expected : behind a name");
    refused("{'a': 2 'b'}", "JSON, line 1, column 9: expected , or } in an object");
    refused("{'\\q': 2}", "JSON, line 1, column 4: a string that is not well formed");
    refused("{'a", "JSON, line 1, column 4: unexpected end of data");
    refused("{'traces': [01]}", "JSON, line 1, column 14: expected a number");
    refused("{'x': [1,]}", "JSON, line 1, column 10: unexpected character");
    refused("{'traces': [], }", "JSON, line 1, column 16: expected a name in quotes");
    refused("{'traces': [1 2]}", "traces[0]: expected an object");
    refused("{'\\u12g4': 1}", "JSON, line 1, column 3: \\u wants four hexadecimal digits");
    TEST_ASSERT_NULL(ta_snapshot_import_json("{}\0", 3));
    TEST_ASSERT_EQUAL_STRING("JSON: a NUL byte in the text", ta_error_text());
}

static void test_import_of_control_characters_in_strings_is_refused_with_the_place(void)
{
    refused("{'traces': [{'size': 1,\n\t'frames': [['a\tb', 1]]}]}",
            "JSON, line 2, column 16: a control character in a string");
}

static void test_import_of_integers_beyond_64_bits_is_refused_with_the_place(void)
{
    refused("{'traces': [{'size': 18446744073709551616, 'frames': [['a', 1]]}]}",
            "JSON, line 1, column 22: an integer beyond 18446744073709551615");
    refused("{'traces': [{'size': 1,\n'count': 99999999999999999999999, 'frames': [['a', 1]]}]}",
            "JSON, line 2, column 10: an integer beyond 18446744073709551615");
    refused("{'traces': [{'size': 1, 'domain': -18446744073709551616, 'frames': [['a', 1]]}]}",
            "JSON, line 1, column 36: an integer beyond 18446744073709551615");
    refused("{'traces': [{'size': 1.99999999999999999999999, 'frames': [['a', 1]]}]}",
            "traces[0].size: expected an integer from 0 to 18446744073709551615");

    static const char document[] =
        "{\"traces\": [{\"size\": 18446744073709551615, \"x\": 1.99999999999999999999999e+9, "
        "\"frames\": [[\"\\\"99999999999999999999999\\\\\", 1]]}]}";
    struct ta_snapshot *snapshot = ta_snapshot_import_json(document, strlen(document));
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    ta_snapshot_free(snapshot);
}

static void test_import_of_deep_nesting_is_refused(void)
{
    char text[100001];
    memset(text, '[', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    TEST_ASSERT_NULL(ta_snapshot_import_json(text, sizeof text - 1));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "nesting too deep"));
}

static void test_export_stops_when_its_reader_does(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 1, 'frames': [['a', 1]]}");
    struct collected collected = {.length = sizeof collected.text - 10};

    TEST_ASSERT_EQUAL(-1, ta_snapshot_export_json(snapshot, collect, &collected));
    ta_snapshot_free(snapshot);
}

static void test_python_export_of_more_blocks_than_python_holds_is_refused(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 0, 'count': 18446744073709551615, 'frames': [['a', 1]]}");
    struct collected collected = {.length = 0};

    TEST_ASSERT_EQUAL(-1, ta_snapshot_export_python(snapshot, collect, &collected));
    TEST_ASSERT_EQUAL_STRING("more than 1073741824 blocks: too many for Python to hold", ta_error_text());
    ta_snapshot_free(snapshot);
}

static void filters_refused(const char *document, const char *error)
{
    struct ta_filter *filters;
    size_t count;
    char *text = with_double_quotes(document);
    int result = ta_filters_from_json(text, strlen(text), &filters, &count);
    int is_null = filters == NULL;
    free(filters);
    free(text);
    TEST_ASSERT_EQUAL_MESSAGE(-1, result, error);
    TEST_ASSERT_EQUAL_STRING(error, ta_error_text());
    TEST_ASSERT_TRUE(is_null);
}

static void test_filters_from_json_read_every_member(void)
{
    struct ta_filter *filters;
    size_t count;
    char *text =
        with_double_quotes("[{'type': 'filter', 'inclusive': true, 'filename_pattern': '*\\udcff', 'lineno': 0,"
                           " 'all_frames': true, 'domain': null},"
                           "{'type': 'domain', 'inclusive': false, 'domain': 7}]");

    TEST_ASSERT_EQUAL(0, ta_filters_from_json(text, strlen(text), &filters, &count));
    TEST_ASSERT_EQUAL(2, count);
    TEST_ASSERT_EQUAL_STRING("*\xFF", filters[0].pattern);
    TEST_ASSERT_TRUE(filters[0].inclusive && filters[0].all_frames && filters[0].has_lineno && !filters[0].has_domain);
    TEST_ASSERT_EQUAL(TA_FILTER_DOMAIN, filters[1].type);
    TEST_ASSERT_EQUAL(7, filters[1].domain);
    free(filters);
    free(text);
}

static void test_filters_from_json_that_are_none_are_refused(void)
{
    filters_refused("[{'lineno': 18446744073709551616}]",
                    "JSON, line 1, column 13: an integer beyond 18446744073709551615");
    filters_refused("[{'type': 'filter',\n 'inclusive': true, 'filename_pattern': 'a\tb'}]",
                    "JSON, line 2, column 43: a control character in a string");
    filters_refused("{}", "filters must be a list of filters");
    filters_refused("[{'inclusive': true}]", "filters[0]: expected an object with \"type\": \"filter\" or \"domain\"");
    filters_refused("[{'type': 'x', 'inclusive': true}]", "filters[0]: expected the type \"filter\" or \"domain\"");
    filters_refused("[{'type': 'filter', 'inclusive': true}]", "filters[0].filename_pattern: expected a text");
    filters_refused("[{'type': 'filter'}]", "filters[0]: \"inclusive\" is missing");
    filters_refused("[{'type': 'filter', 'inclusive': 1}]", "filters[0].inclusive: expected true or false");
    filters_refused("[{'type': 'domain', 'inclusive': true}]", "filters[0]: \"domain\" is missing");
    filters_refused("[{'type': 'domain', 'inclusive': true, 'domain': 'x'}]",
                    "filters[0].domain: expected an integer or null");
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_import_of_lone_surrogates_gives_bytes_and_export_gives_them_back);
    RUN_TEST(test_import_of_a_nul_in_a_name_keeps_it);
    RUN_TEST(test_import_fills_in_what_a_trace_leaves_out);
    RUN_TEST(test_import_of_the_oldest_first_turns_the_frames_around);
    RUN_TEST(test_import_takes_members_in_any_order_and_the_last_of_two);
    RUN_TEST(test_import_from_a_reader_is_the_same_wherever_its_pieces_end);
    RUN_TEST(test_import_of_a_wrong_document_is_refused_with_the_place);
    RUN_TEST(test_import_of_broken_text_is_refused_with_line_and_column);
    RUN_TEST(test_import_of_control_characters_in_strings_is_refused_with_the_place);
    RUN_TEST(test_import_of_integers_beyond_64_bits_is_refused_with_the_place);
    RUN_TEST(test_import_of_deep_nesting_is_refused);
    RUN_TEST(test_export_stops_when_its_reader_does);
    RUN_TEST(test_python_export_of_more_blocks_than_python_holds_is_refused);
    RUN_TEST(test_filters_from_json_read_every_member);
    RUN_TEST(test_filters_from_json_that_are_none_are_refused);
    return UNITY_END();
}
