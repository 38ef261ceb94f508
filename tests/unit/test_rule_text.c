/* test_rule_text.c: files of rules, read by themselves: every word is kept, what is wrong is named by line and column. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/rule_text.h"

#include "unity.h"

static char path[] = "/tmp/ta_rules.XXXXXX";
static struct ta__rule_text rules;
static size_t mapped_before;

/* What the next calls of read do: E is interrupted, F fails, a digit gives so many bytes; then all that there is. */
static const char *manner = "";

ssize_t read(int descriptor, void *bytes, size_t count)
{
    char how = *manner;
    manner += how != '\0';
    if (how == 'E' || how == 'F')
        return errno = how == 'E' ? EINTR : EIO, -1;
    size_t most = how != '\0' ? (size_t)(how - '0') : count;
    return syscall(SYS_read, descriptor, bytes, most < count ? most : count);
}

void setUp(void)
{
    memset(&rules, 0, sizeof rules);
    mapped_before = ta__memory_mapped();
    manner = "";
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta__rule_text_close(&rules);
    TEST_ASSERT_NULL(rules.text);
    TEST_ASSERT_NULL(rules.rules);
    TEST_ASSERT_NULL(rules.objects);
    TEST_ASSERT_NULL(rules.ranges);
    TEST_ASSERT_EQUAL_size_t(mapped_before, ta__memory_mapped());
}

static int read_bytes(const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL_size_t(length, fwrite(text, 1, length, file));
    TEST_ASSERT_EQUAL_INT(0, fclose(file));
    ta__rule_text_close(&rules);
    return ta__rule_text_read(&rules, path);
}

static const char *error_text(void)
{
    static char text[TA__MESSAGE_MAX + 1];
    memcpy(text, rules.error.text, rules.error.length);
    text[rules.error.length] = '\0';
    return text;
}

static void accept_bytes(const char *text, size_t length)
{
    if (!read_bytes(text, length))
        TEST_FAIL_MESSAGE(error_text());
}

static void accept(const char *text)
{
    accept_bytes(text, strlen(text));
}

/* Behind the path. */
static void refuse_bytes(const char *text, size_t length, const char *expected)
{
    char whole[512];
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_bytes(text, length), expected);
    snprintf(whole, sizeof whole, "%s%s", path, expected);
    TEST_ASSERT_EQUAL_STRING(whole, error_text());
}

static void refuse(const char *text, const char *expected)
{
    refuse_bytes(text, strlen(text), expected);
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static void assert_patterns(const char *const *patterns, const char *first, const char *second)
{
    const char *const expected[] = {first, second, NULL};
    for (int i = 0; i < 3; i++) {
        if (expected[i] == NULL) {
            TEST_ASSERT_NULL(patterns[i]);
            return;
        }
        TEST_ASSERT_EQUAL_STRING(expected[i], patterns[i]);
    }
}

static void test_every_word_of_a_rule_is_kept(void)
{
    accept("# c\r\n\r\n  5\tparser module=a.so,\"b, c\" function=\"f(int)\" file=src/*,/x outermost # end\r\n"
           "6 net file=y innermost\n#\n5 parser function=z module=m");
    TEST_ASSERT_EQUAL_UINT32(3, rules.rule_count);
    const struct ta__rule *rule = rules.rules;
    TEST_ASSERT_EQUAL_UINT32(5, rule->number);
    TEST_ASSERT_EQUAL_STRING("parser", rule->name);
    TEST_ASSERT_EQUAL_UINT32(3, rule->line);
    TEST_ASSERT_EQUAL_UINT32(1, rule->outermost);
    assert_patterns(rule->modules, "a.so", "b, c");
    assert_patterns(rule->functions, "f(int)", NULL);
    assert_patterns(rule->files, "src/*", "/x");
}

static void test_rules_after_the_first_have_their_own(void)
{
    accept("5 parser module=a outermost\n6 net file=y innermost\n#\n5 parser function=z module=m");
    TEST_ASSERT_EQUAL_UINT32(3, rules.rule_count);
    const struct ta__rule *rule = &rules.rules[1];
    TEST_ASSERT_EQUAL_UINT32(6, rule->number);
    TEST_ASSERT_EQUAL_STRING("net", rule->name);
    TEST_ASSERT_EQUAL_UINT32(2, rule->line);
    TEST_ASSERT_EQUAL_UINT32(0, rule->outermost);
    assert_patterns(rule->modules, NULL, NULL);
    assert_patterns(rule->files, "y", NULL);
    TEST_ASSERT_EQUAL_UINT32(4, rule[1].line);
    assert_patterns(rule[1].modules, "m", NULL);
    assert_patterns(rule[1].functions, "z", NULL);
    TEST_ASSERT_EQUAL_INT(1, rules.wants_files);
    TEST_ASSERT_EQUAL_INT(0, rules.is_compiled);
    TEST_ASSERT_EQUAL_UINT32(0, rules.object_count);
    TEST_ASSERT_EQUAL_UINT32(0, rules.range_count);
    accept("4294967295 z function=f module=m\n0 y module=m\n");
    TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, rules.rules[0].number);
    TEST_ASSERT_EQUAL_INT(0, rules.wants_files);
    accept("");
    TEST_ASSERT_EQUAL_UINT32(0, rules.rule_count);
}

static void test_as_many_as_there_may_be_are_taken(void)
{
    static char text[1 << 16];
    size_t used = 0;
    accept("3 a module=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n");
    TEST_ASSERT_EQUAL_STRING("16", rules.rules[0].modules[15]);
    TEST_ASSERT_NULL(rules.rules[0].modules[16]);
    refuse("3 a module=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n", ":1:51: more than 16 patterns in one list");
    for (int i = 0; i < 1024; i++)
        used += (size_t)sprintf(text + used, "%d n%d module=x\n", 1000 + i, i);
    accept(text);
    TEST_ASSERT_EQUAL_UINT32(1024, rules.rule_count);
    TEST_ASSERT_EQUAL_STRING("n1023", rules.rules[1023].name);
    sprintf(text + used, "7 m module=x\n");
    refuse(text, ":1025:1: more than 1024 rules");
    strcpy(text, "3 ");
    memset(text + 2, 'n', 255);
    strcpy(text + 257, " module=x\n");
    accept(text);
    memset(text + 2, 'n', 256);
    strcpy(text + 258, " module=x\n");
    refuse(text, ":1:3: the name of a domain has at most 255 bytes");
}

static void test_wrong_lines_are_named_by_line_and_column(void)
{
    refuse("3 a module=x\nseven b module=y\n", ":2:1: expected the number of a domain, found 'seven'");
    refuse("3x a module=x\n", ":1:2: expected the number of a domain, found '3x'");
    refuse("3/ a module=x\n", ":1:2: expected the number of a domain, found '3/'");
    refuse("3: a module=x\n", ":1:2: expected the number of a domain, found '3:'");
    refuse("4294967296 a module=x\n", ":1:1: the number of a domain is at most 4294967295, found '4294967296'");
    refuse("  3\n", ":1:4: expected the name of the domain");
    refuse("3 module=x\n", ":1:3: expected the name of the domain");
    refuse("3 a\n", ":1:4: expected module=, function= or file=");
    refuse("3 a innermost # module=x\n", ":1:15: expected module=, function= or file=");
    refuse("3 a modul=x\n", ":1:5: expected module=, function=, file=, innermost or outermost, found 'modul=x'");
    refuse("3 a module=\n", ":1:12: expected a pattern");
    refuse("3 a module=x,,y\n", ":1:14: expected a pattern");
    refuse("3 a file=x,\n", ":1:12: expected a pattern");
    refuse("3 a function=\"a, b\n", ":1:14: the quote has no end");
    refuse("3 a function=x,\"\"\n", ":1:16: expected a pattern");
    refuse("3 a function=\"a\"b\n", ":1:17: expected a comma behind the quote");
    refuse("3 a module=x module=y\n", ":1:21: given twice in one rule");
    refuse("3 a module=x outermost innermost\n",
           ":1:24: only one of innermost and outermost can hold, found also 'innermost'");
    refuse("3 a module=x innermost innermost\n",
           ":1:24: only one of innermost and outermost can hold, found also 'innermost'");
    refuse("\n3 a module=x\n3 b module=y\n", ":3:3: the domain has another name already: 'a'");
    refuse("3 a module=x\n4 a module=y\n", ":2:1: another domain has the name already: 'a'");
    refuse("3 a module=x\n5 c module=x\n  4 c module=y\n", ":3:3: another domain has the name already: 'c'");
    refuse_bytes("3 a module=x\n4 b\0module=y\n", 26, ":2:4: a zero byte: this is no text");
    refuse_bytes("\0", 1, ":1:1: a zero byte: this is no text");
}

/* ---- what was compiled ------------------------------------------------------------------------------------------- */

#define MARK  "# tracealloc compiled rules 1\n"
#define HEAD  MARK "1 a function=f\n2 b function=g\n"
#define ID_32 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"

static void test_objects_and_ranges_are_kept(void)
{
    static const uint8_t id[] = {0x00, 0xff, 0x1a, 0x9f};
    accept(HEAD "@object 00ff1a9f /lib/a.so\n@range 1 10 20\n@range 2 10 ffffffffffffffff\n"
                "@object 12\n@range 2 0 1\n@object " ID_32 " x\n");
    TEST_ASSERT_EQUAL_INT(1, rules.is_compiled);
    TEST_ASSERT_EQUAL_UINT32(3, rules.object_count);
    TEST_ASSERT_EQUAL_UINT32(3, rules.range_count);
    const struct ta__rule_object *object = rules.objects;
    TEST_ASSERT_EQUAL_STRING("/lib/a.so", object->path);
    TEST_ASSERT_EQUAL_UINT32(0, object->first);
    TEST_ASSERT_EQUAL_UINT32(2, object->count);
    TEST_ASSERT_EQUAL_UINT32(4, object->build_id_length);
    TEST_ASSERT_EQUAL_HEX8_ARRAY(id, object->build_id, 4);
    object++;
    TEST_ASSERT_EQUAL_STRING("", object->path);
    TEST_ASSERT_EQUAL_UINT32(2, object->first);
    TEST_ASSERT_EQUAL_UINT32(1, object->count);
    object++;
    TEST_ASSERT_EQUAL_UINT32(3, object->first);
    TEST_ASSERT_EQUAL_UINT32(0, object->count);
    TEST_ASSERT_EQUAL_UINT32(32, object->build_id_length);
    TEST_ASSERT_EQUAL_HEX8(0xff, object->build_id[31]);
    TEST_ASSERT_EQUAL_HEX8(0x1e, object->build_id[30]);
    static const struct ta__rule_range expected[] = {{0x10, 0x20, 0}, {0x10, UINT64_MAX, 1}, {0, 1, 1}};
    for (int i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_HEX64(expected[i].start, rules.ranges[i].start);
        TEST_ASSERT_EQUAL_HEX64(expected[i].end, rules.ranges[i].end);
        TEST_ASSERT_EQUAL_UINT32(expected[i].rule, rules.ranges[i].rule);
    }
}

static void test_wrong_objects_and_ranges_are_refused(void)
{
    static const char *const ids[] = {"", "1", "123", "0g", "g0", "0:", "0/", "0`", "0A", ID_32 "00"};
    char text[256];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        snprintf(text, sizeof text, "@object %s\n", ids[i]);
        refuse(text, ":1:9: expected a build id");
    }
    refuse("@range 1 10 20\n", ":1:1: a range before the first object");
    static const char *const ranges[] = {"0 10 20", "3 10 20", "1 20 10", "1 10 10", "1 2z 30"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(text, sizeof text, HEAD "@object 12\n@range %s\n", ranges[i]);
        refuse(text, ":5:8: not a range of a rule, or not in order");
    }
    refuse(HEAD "@object 12\n@range 1 20 30\n@range 1 1f 40\n", ":6:8: not a range of a rule, or not in order");
    refuse(HEAD "@object 12\n@range 1 20 30\n@range 1 40 50\n@range 1 30 60\n",
           ":7:8: not a range of a rule, or not in order");
    accept(HEAD "@object 12\n@range 1 20 30\n@range 1 20 40\n@object 34\n@range 1 1f 40\n");
    refuse(HEAD "@object 12\n@range 1 2z 30\n", ":5:10: expected a number");
    refuse(HEAD "@object 12\n@range 1 20\n", ":5:12: expected a number");
    refuse(HEAD "@object 12\n@range 1 0 10000000000000000\n", ":5:12: expected a number");
}

static void test_tables_have_room_for_all_that_is_there(void)
{
    enum { OBJECTS = 3000 };
    static char text[OBJECTS * 100];
    size_t used = (size_t)sprintf(text, HEAD);
    for (unsigned i = 0; i < OBJECTS; i++)
        used += (size_t)sprintf(text + used, "@object %04x /o@%x\n@range 1 %x %x\n@range 2 %x %x\n", i, i, i, i + 1, i,
                                i + 2);
    accept(text);
    TEST_ASSERT_EQUAL_UINT32(OBJECTS, rules.object_count);
    TEST_ASSERT_EQUAL_UINT32(2 * OBJECTS, rules.range_count);
    TEST_ASSERT_TRUE(rules.objects_bytes >= OBJECTS * sizeof *rules.objects);
    TEST_ASSERT_TRUE(rules.ranges_bytes >= 2 * OBJECTS * sizeof *rules.ranges);
    TEST_ASSERT_TRUE(rules.objects_bytes < 2 * OBJECTS * sizeof *rules.objects);
    TEST_ASSERT_EQUAL_STRING("/o@bb7", rules.objects[OBJECTS - 1].path);
    TEST_ASSERT_EQUAL_UINT32(2 * OBJECTS - 2, rules.objects[OBJECTS - 1].first);
    TEST_ASSERT_EQUAL_HEX64(OBJECTS + 1, rules.ranges[2 * OBJECTS - 1].end);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void test_file_is_read_whatever_the_pieces_it_comes_in(void)
{
    manner = "E1EE35";
    accept("5 parser module=a.so\n6 net module=b\n");
    TEST_ASSERT_EQUAL_UINT32(2, rules.rule_count);
    TEST_ASSERT_EQUAL_STRING("net", rules.rules[1].name);
    manner = "1F";
    refuse("5 parser module=a.so\n", ": Input/output error");
}

static void test_file_that_is_not_there_or_no_file_is_refused(void)
{
    int next = open("/dev/null", O_RDONLY);
    close(next);
    TEST_ASSERT_EQUAL_INT(0, ta__rule_text_read(&rules, "/nonexistent/rules"));
    TEST_ASSERT_EQUAL_STRING("/nonexistent/rules: No such file or directory", error_text());
    TEST_ASSERT_EQUAL_INT(0, ta__rule_text_read(&rules, "/"));
    TEST_ASSERT_EQUAL_STRING("/: Is a directory", error_text());
    accept("5 parser module=a.so\n");
    ta__rule_text_close(&rules);
    int kept = dup(0);
    close(0); /* daemons have often closed it: the file gets that number */
    int result = ta__rule_text_read(&rules, path);
    if (kept >= 0) {
        dup2(kept, 0);
        close(kept);
    }
    TEST_ASSERT_EQUAL_INT(1, result);
    int after = open("/dev/null", O_RDONLY);
    close(after);
    TEST_ASSERT_EQUAL_INT(next, after);
}

static void test_only_what_was_compiled_may_be_longer_than_a_mebibyte(void)
{
    static char text[(1 << 20) + 5000];
    memset(text, '#', sizeof text);
    accept_bytes(text, 1 << 20);
    refuse_bytes(text, (1 << 20) + 1, ": longer than 1 MiB");
    refuse_bytes(text, sizeof text, ": longer than 1 MiB");
    memcpy(text, MARK, strlen(MARK));
    text[sizeof text - 20] = '\n';
    strcpy(text + sizeof text - 19, "5 parser module=ab");
    accept_bytes(text, sizeof text - 1);
    TEST_ASSERT_EQUAL_STRING("ab", rules.rules[0].modules[0]);
    accept(MARK);
    TEST_ASSERT_EQUAL_INT(1, rules.is_compiled);
    accept_bytes(MARK, strlen(MARK) - 1);
    TEST_ASSERT_EQUAL_INT(0, rules.is_compiled);
    accept("# tracealloc compiled rules 2\n5 parser module=a.so\n");
    TEST_ASSERT_EQUAL_INT(0, rules.is_compiled);
}

static void test_lack_of_memory_is_said_and_leaves_nothing(void)
{
    for (long nth = 1; nth <= 4; nth++) {
        ta__memory_inject_failure(nth, 0);
        refuse("5 parser module=a.so\n", ": no memory to read it");
        ta__rule_text_close(&rules);
        TEST_ASSERT_EQUAL_size_t(mapped_before, ta__memory_mapped());
    }
    ta__memory_inject_failure(5, 0);
    accept("5 parser module=a.so\n");
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static void test_patterns_stand_for_what_they_say(void)
{
    static const char *const right[][2] = {
        {"", ""},           {"*", ""},   {"a*", "a"},       {"*a", "ba"},        {"*ab", "aab"},
        {"a*b*c", "aXbYc"}, {"**", "x"}, {"a?c", "abc"},    {"*.so*", "x.so.1"}, {"*aab", "aaaab"},
        {"a**", "a"},       {"?", "x"},  {"*b*d", "abcbcd"}};
    static const char *const wrong[][2] = {{"", "a"},      {"?", ""},          {"a", ""},     {"a*b*c", "aXbY"},
                                           {"*?", ""},     {"*.so", "x.so.1"}, {"ab", "abc"}, {"abc", "ab"},
                                           {"*a*", "bcd"}, {"a*?", "a"},       {"ab", "aab"}};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        TEST_ASSERT_EQUAL_INT_MESSAGE(1, ta__rule_matches(right[i][0], right[i][1]), right[i][0]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__rule_matches(wrong[i][0], wrong[i][1]), wrong[i][0]);
}

static void test_modules_are_matched_by_their_last_part_or_whole(void)
{
    struct ta__rule rule = {.modules = {NULL}};
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_module(&rule, "/any/thing"));
    rule.modules[0] = "no.so";
    rule.modules[1] = "libx.so*";
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_module(&rule, "/usr/lib/libx.so.1"));
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_module(&rule, "libx.so.1"));
    TEST_ASSERT_EQUAL_INT(0, ta__rule_names_module(&rule, "/usr/libx.so/y"));
    rule.modules[1] = "lib/*";
    TEST_ASSERT_EQUAL_INT(0, ta__rule_names_module(&rule, "/usr/lib/libx.so.1"));
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_module(&rule, "lib/libx.so.1"));
    rule.modules[1] = "/usr/*";
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_module(&rule, "/usr/lib/libx.so.1"));
}

static void test_any_pattern_of_a_list_may_match(void)
{
    char scratch[200];
    struct ta__rule rule = {.files = {"y/*", "src/*"}, .functions = {"no", "shop::*"}};
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_file(&rule, "/home/me/src/http.cpp"));
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_file(&rule, "y/x"));
    TEST_ASSERT_EQUAL_INT(0, ta__rule_names_file(&rule, "/home/me/http.cpp"));
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_function(&rule, "_ZN4shop4takeEi", scratch, sizeof scratch));
    TEST_ASSERT_EQUAL_INT(0, ta__rule_names_function(&rule, "_ZN4shop4takeEi", scratch, 10));
    TEST_ASSERT_EQUAL_INT(0, ta__rule_names_function(&rule, "_ZN4shop4takeEi", NULL, 0));
    TEST_ASSERT_EQUAL_INT(1, ta__rule_names_function(&rule, "no", NULL, 0));
    TEST_ASSERT_EQUAL_INT(0, ta__rule_names_function(&rule, "yes", scratch, sizeof scratch));
}

static void test_names_of_any_length_are_matched(void)
{
    char name[100], pattern[100], scratch[200];
    for (int length = 1; length < 80; length++) {
        int digits = sprintf(name, "_Z%d", length);
        memset(name + digits, 'n', (size_t)length);
        strcpy(name + digits + length, "v");
        memset(pattern, 'n', (size_t)length);
        strcpy(pattern + length, "(*");
        const struct ta__rule rule = {.functions = {pattern}};
        TEST_ASSERT_EQUAL_INT(1, ta__rule_names_function(&rule, name, scratch, sizeof scratch));
        pattern[length - 1] = 'm';
        TEST_ASSERT_EQUAL_INT(0, ta__rule_names_function(&rule, name, scratch, sizeof scratch));
    }
}

int main(void)
{
    close(mkstemp(path));
    UNITY_BEGIN();
    RUN_TEST(test_every_word_of_a_rule_is_kept);
    RUN_TEST(test_rules_after_the_first_have_their_own);
    RUN_TEST(test_as_many_as_there_may_be_are_taken);
    RUN_TEST(test_wrong_lines_are_named_by_line_and_column);
    RUN_TEST(test_objects_and_ranges_are_kept);
    RUN_TEST(test_wrong_objects_and_ranges_are_refused);
    RUN_TEST(test_tables_have_room_for_all_that_is_there);
    RUN_TEST(test_file_is_read_whatever_the_pieces_it_comes_in);
    RUN_TEST(test_file_that_is_not_there_or_no_file_is_refused);
    RUN_TEST(test_only_what_was_compiled_may_be_longer_than_a_mebibyte);
    RUN_TEST(test_lack_of_memory_is_said_and_leaves_nothing);
    RUN_TEST(test_patterns_stand_for_what_they_say);
    RUN_TEST(test_modules_are_matched_by_their_last_part_or_whole);
    RUN_TEST(test_any_pattern_of_a_list_may_match);
    RUN_TEST(test_names_of_any_length_are_matched);
    unlink(path);
    return UNITY_END();
}
