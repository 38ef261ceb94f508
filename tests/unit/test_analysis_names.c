/* test_analysis_names.c: names as code points, and the patterns that match them. */
#include "analysis/code_points.h"
#include "analysis/filter/pattern.h"

#include <string.h>

#include <unity.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static int order(const char *a, const char *b)
{
    return ta__name_compare(a, strlen(a), b, strlen(b));
}

static int matches(const char *pattern, const char *name)
{
    struct ta__pattern compiled;
    TEST_ASSERT_EQUAL(0, ta__pattern_compile(&compiled, pattern, strlen(pattern)));
    int result = ta__pattern_matches(&compiled, name, strlen(name));
    ta__pattern_free(&compiled);
    return result;
}

static void test_name_of_valid_text_orders_by_code_point(void)
{
    TEST_ASSERT_LESS_THAN(0, order("B", "a"));
    TEST_ASSERT_LESS_THAN(0, order("a", "\xC3\xA9"));
    TEST_ASSERT_LESS_THAN(0, order("\xC3\xA9", "\xEF\xAC\x81"));
    TEST_ASSERT_LESS_THAN(0, order("\xEF\xAC\x81", "\xF0\x9F\x98\x80"));
    TEST_ASSERT_LESS_THAN(0, order("a", "ab"));
    TEST_ASSERT_EQUAL(0, order("ab", "ab"));
}

static void test_name_with_a_byte_that_is_no_text_orders_as_its_surrogate(void)
{
    /* 0xFF counts as U+DCFF: below U+E000, though the byte is the greatest of all. */
    TEST_ASSERT_LESS_THAN(0, order("\xFF", "\xEE\x80\x80"));
    TEST_ASSERT_GREATER_THAN(0, order("\xFF", "\xED\x9F\xBF"));
    /* Where the difference lies inside a sequence, both are read from its start. */
    TEST_ASSERT_LESS_THAN(0, order("x\xE2\x82\xAC", "x\xE2\x82"));
}

static void test_next_code_point_refuses_overlong_and_surrogate_sequences(void)
{
    static const char *const broken[] = {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x80"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const char *at = broken[i];
        uint32_t expected = 0xDC00u + (unsigned char)*at;
        TEST_ASSERT_EQUAL_HEX32(expected, ta__next_code_point(&at, broken[i] + strlen(broken[i])));
        TEST_ASSERT_EQUAL_PTR(broken[i] + 1, at);
        TEST_ASSERT_FALSE(ta__name_is_utf8(broken[i], strlen(broken[i])));
    }
}

static void test_put_code_point_undoes_next_code_point(void)
{
    static const char text[] = "a\xC3\xA9\xEF\xAC\x81\xF0\x9F\x98\x80\xFF\x80";
    char copy[sizeof text], *end = copy;
    for (const char *at = text; at < text + sizeof text - 1;)
        end += ta__put_code_point(end, ta__next_code_point(&at, text + sizeof text - 1));
    *end = '\0';
    TEST_ASSERT_EQUAL_STRING(text, copy);
}

static void test_pattern_star_and_question_mark_match_any_character(void)
{
    TEST_ASSERT_TRUE(matches("*", ""));
    TEST_ASSERT_TRUE(matches("a*c", "a/.\nc"));
    TEST_ASSERT_TRUE(matches("*.c", "/src/.c"));
    TEST_ASSERT_TRUE(matches("?", "\xF0\x9F\x98\x80"));
    TEST_ASSERT_TRUE(matches("?", "\xFF"));
    TEST_ASSERT_FALSE(matches("?", ""));
    TEST_ASSERT_FALSE(matches("a", "a\n"));
}

static void test_pattern_set_reads_ranges_from_left_to_right(void)
{
    TEST_ASSERT_TRUE(matches("[a-c]", "b"));
    TEST_ASSERT_FALSE(matches("[!a-c]", "b"));
    TEST_ASSERT_TRUE(matches("[a-c-e]", "-"));
    TEST_ASSERT_FALSE(matches("[a-c-e]", "d"));
    TEST_ASSERT_TRUE(matches("[]]", "]"));
    TEST_ASSERT_TRUE(matches("[!]]", "x"));
    TEST_ASSERT_FALSE(matches("[c-a]", "b"));
    TEST_ASSERT_TRUE(matches("[!c-a]", "b"));
    TEST_ASSERT_TRUE(matches("[^a]", "^"));
    TEST_ASSERT_TRUE(matches("[", "["));
    /* A range the wrong way round is empty, and what follows keeps its place. */
    TEST_ASSERT_TRUE(matches("[b-a!x]", "!"));
    TEST_ASSERT_FALSE(matches("[b-a!x]", "y"));
}

static void test_pattern_with_many_stars_ends_in_reasonable_time(void)
{
    char name[2001], pattern[1001];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < sizeof pattern - 1; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[sizeof pattern - 2] = 'b';
    pattern[sizeof pattern - 1] = '\0';
    TEST_ASSERT_FALSE(matches(pattern, name));
}

static void test_normalized_length_drops_the_c_of_pyc_only(void)
{
    TEST_ASSERT_EQUAL(4, ta__pattern_normalized_length("a.pyc", 5));
    TEST_ASSERT_EQUAL(5, ta__pattern_normalized_length("a.pyo", 5));
    TEST_ASSERT_EQUAL(5, ta__pattern_normalized_length("a.PYC", 5));
    TEST_ASSERT_EQUAL(3, ta__pattern_normalized_length("pyc", 3));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_name_of_valid_text_orders_by_code_point);
    RUN_TEST(test_name_with_a_byte_that_is_no_text_orders_as_its_surrogate);
    RUN_TEST(test_next_code_point_refuses_overlong_and_surrogate_sequences);
    RUN_TEST(test_put_code_point_undoes_next_code_point);
    RUN_TEST(test_pattern_star_and_question_mark_match_any_character);
    RUN_TEST(test_pattern_set_reads_ranges_from_left_to_right);
    RUN_TEST(test_pattern_with_many_stars_ends_in_reasonable_time);
    RUN_TEST(test_normalized_length_drops_the_c_of_pyc_only);
    return UNITY_END();
}
