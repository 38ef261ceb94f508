/* test_suppressions.c: the lines of suppressions, what each pattern hits, and what is counted for it. */
#include <string.h>

#include <unity.h>

#include "base/error.h"
#include "tracealloc/image.h"

static struct ta_suppressions *known;
static struct ta_snapshot *snapshot;

void setUp(void)
{
    known = NULL;
    snapshot = NULL;
}

void tearDown(void)
{
    ta_suppressions_free(known);
    ta_snapshot_free(snapshot);
}

static void parse(const char *text)
{
    ta_suppressions_free(known);
    known = ta_suppressions_parse(text, strlen(text));
    TEST_ASSERT_NOT_NULL_MESSAGE(known, ta_error_text());
}

static void expect_patterns(const char *const *patterns, size_t count)
{
    uint64_t blocks, bytes;
    for (size_t i = 0; i < count; i++)
        TEST_ASSERT_EQUAL_STRING(patterns[i], ta_suppressions_get(known, i, &blocks, &bytes));
    TEST_ASSERT_NULL(ta_suppressions_get(known, count, &blocks, &bytes));
}

static void test_lines_are_patterns_or_remarks(void)
{
    static const char *const patterns[] = {"one", " two #no remark", "x", "last"};
    parse("leak:one\n# a remark\n\n  \t\r\n\t leak: two #no remark \t \r\n  # another\nleak:x\nleak:last");
    expect_patterns(patterns, 4);
    parse("");
    expect_patterns(NULL, 0);
    parse("\n");
    expect_patterns(NULL, 0);
    ta_suppressions_free(known);
    known = ta_suppressions_parse("leak:one\nleak:two\n", 8); /* no more than its length */
    expect_patterns(patterns, 1);
}

static void expect_refusal(const char *text, const char *reason)
{
    ta__error_clear();
    TEST_ASSERT_NULL(ta_suppressions_parse(text, strlen(text)));
    TEST_ASSERT_EQUAL_STRING(reason, ta_error_text());
}

static void test_line_of_another_kind_is_refused_with_its_number(void)
{
    expect_refusal("leak:a\n\n# b\nleek:c\nleak:d", "line 4 of the suppressions is not leak:PATTERN: 'leek:c'");
    expect_refusal("leak:", "line 1 of the suppressions is not leak:PATTERN: 'leak:'");
    expect_refusal(" leak:  ", "line 1 of the suppressions is not leak:PATTERN: 'leak:'");
    expect_refusal("lea", "line 1 of the suppressions is not leak:PATTERN: 'lea'");
    expect_refusal("x: 3456789 123456789 123456789 123456789 123456789 123456789 123",
                   "line 1 of the suppressions is not leak:PATTERN: "
                   "'x: 3456789 123456789 123456789 123456789 123456789 123456789'");
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static int hits(const char *pattern, const char *file)
{
    char text[400], line[200];
    snprintf(text, sizeof text, "{\"traceback_limit\": 9, \"traces\": [{\"size\": 10, \"frames\": [[\"%s\", 1]]}]}",
             file);
    ta_snapshot_free(snapshot);
    snapshot = ta_snapshot_import_json(text, strlen(text));
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    snprintf(line, sizeof line, "leak:%s", pattern);
    parse(line);
    return ta_suppressions_match(known, ta_snapshot_trace_traceback(snapshot, 0)) == 0;
}

static void test_pattern_is_looked_for_anywhere_unless_it_is_held(void)
{
    static const struct {
        const char *pattern, *text;
        int hits;
    } cases[] = {
        {"b", "abc", 1},      {"abc", "abc", 1},    {"abcd", "abc", 0},     {"^a", "abc", 1},       {"^b", "abc", 0},
        {"^abc$", "abc", 1},  {"^abc$", "abcd", 0}, {"c$", "abc", 1},       {"b$", "abc", 0},       {"a*c", "abc", 1},
        {"a*c", "ac", 1},     {"a*c$", "abcd", 0},  {"a*b*c", "a1b2c3", 1}, {"a*b*c", "a1c2b3", 0}, {"^*c", "abc", 1},
        {"^a*d", "abcd", 1},  {"^b*d", "abcd", 0},  {"*", "abc", 1},        {"a*$", "abc", 1},      {"b*$", "abc", 1},
        {"d*$", "abc", 0},    {"$", "abc", 0},      {"*$", "abc", 1},       {"ab$c", "abc", 0},     {"a**c", "abc", 1},
        {"aab", "aaab", 1},   {"^aab", "aaab", 0},  {"a*ab", "aab", 1},     {"^a*a$", "aba", 1},    {"a*a", "a", 0},
        {"abc*", "abc", 1},   {"*abc", "abc", 1},   {"^abc", "abc", 1},     {"c*", "abc", 1},       {"b*b", "abcb", 1},
        {"^ab*^", "abc^", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[100];
        snprintf(message, sizeof message, "%s in %s", cases[i].pattern, cases[i].text);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].hits, hits(cases[i].pattern, cases[i].text), message);
    }
}

static void test_first_pattern_that_hits_any_frame_counts(void)
{
    static const char text[] = "{\"traceback_limit\": 9, \"traces\": [{\"size\": 10, \"frames\": [[\"inner.c\", 1], "
                               "[\"outer.c\", 2]]}]}";
    snapshot = ta_snapshot_import_json(text, strlen(text));
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    struct ta_traceback traceback = ta_snapshot_trace_traceback(snapshot, 0);
    parse("leak:none\nleak:outer\nleak:inner\n");
    TEST_ASSERT_EQUAL_INT(1, ta_suppressions_match(known, traceback));
    parse("leak:none\n");
    TEST_ASSERT_EQUAL_INT(-1, ta_suppressions_match(known, traceback));
    parse("");
    TEST_ASSERT_EQUAL_INT(-1, ta_suppressions_match(known, traceback));
    TEST_ASSERT_EQUAL_INT(-1, ta_suppressions_match(NULL, traceback));
    parse("leak:*\n");
    TEST_ASSERT_EQUAL_INT(0, ta_suppressions_match(known, traceback));
    TEST_ASSERT_EQUAL_INT(-1, ta_suppressions_match(known, (struct ta_traceback){0}));
}

static void test_what_a_pattern_hit_is_counted(void)
{
    uint64_t blocks, bytes;
    parse("leak:one\nleak:two\n");
    ta_suppressions_note(known, 1, 3, 30);
    ta_suppressions_note(known, 1, 4, 50);
    ta_suppressions_note(known, 2, 9, 90); /* there is none */
    ta_suppressions_note(NULL, 0, 9, 90);
    TEST_ASSERT_EQUAL_STRING("one", ta_suppressions_get(known, 0, &blocks, &bytes));
    TEST_ASSERT_EQUAL_UINT64(0, blocks | bytes);
    TEST_ASSERT_EQUAL_STRING("two", ta_suppressions_get(known, 1, &blocks, &bytes));
    TEST_ASSERT_EQUAL_UINT64(7, blocks);
    TEST_ASSERT_EQUAL_UINT64(80, bytes);
    TEST_ASSERT_NULL(ta_suppressions_get(known, 2, &blocks, &bytes));
    TEST_ASSERT_NULL(ta_suppressions_get(NULL, 0, &blocks, &bytes));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_lines_are_patterns_or_remarks);
    RUN_TEST(test_line_of_another_kind_is_refused_with_its_number);
    RUN_TEST(test_pattern_is_looked_for_anywhere_unless_it_is_held);
    RUN_TEST(test_first_pattern_that_hits_any_frame_counts);
    RUN_TEST(test_what_a_pattern_hit_is_counted);
    return UNITY_END();
}
