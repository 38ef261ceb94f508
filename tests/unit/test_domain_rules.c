/* test_domain_rules.c: rules files, right and wrong, and whom they give a block to. The functions that rules name are
 * this program's own, found through its symbol table. */
#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "unity.h"

#define APART __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))

static char path[64];

void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(64));
}

void tearDown(void)
{
    ta_stop();
}

static void write_rules(const void *text, size_t length)
{
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL_size_t(length, fwrite(text, 1, length, file));
    TEST_ASSERT_EQUAL_INT(0, fclose(file));
}

static void load(const char *text)
{
    write_rules(text, strlen(text));
    if (ta_domain_load_rules(path) != 0)
        TEST_FAIL_MESSAGE(ta_error_text());
}

static uint32_t home_of(void *block)
{
    uint32_t domain = 12345;
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(block, &domain));
    free(block);
    return domain;
}

/* ---- whom they give a block to ----------------------------------------------------------------------------------- */

void *parse_word(void);
void *parse_all(void *(*inner)(void));
void *draw_line(void);
void *draw_all(void *(*inner)(void));

APART void *parse_word(void)
{
    void *block = malloc(30);
    __asm__ volatile("" : "+r"(block));
    return block;
}

APART void *parse_all(void *(*inner)(void))
{
    void *block = inner();
    __asm__ volatile("" : "+r"(block));
    return block;
}

APART void *draw_line(void)
{
    void *block = malloc(40);
    __asm__ volatile("" : "+r"(block));
    return block;
}

APART void *draw_all(void *(*inner)(void))
{
    void *block = inner();
    __asm__ volatile("" : "+r"(block));
    return block;
}

static APART void *nobody(void)
{
    void *block = malloc(50);
    __asm__ volatile("" : "+r"(block));
    return block;
}

static void test_function_rule_takes_what_is_asked_below_it(void)
{
    load("5 parser function=parse_*\n");
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_word()));
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_all(nobody)));
    TEST_ASSERT_EQUAL_UINT32(0, home_of(nobody()));
    TEST_ASSERT_EQUAL_UINT32(0, home_of(draw_all(nobody)));
    TEST_ASSERT_EQUAL_STRING("parser", ta_domain_name(5));
}

/* A function whose last instruction is the call: its return address is behind the function's end. */
static jmp_buf back;
static void *block_of_the_last_words;

void last_words(void) __attribute__((__noreturn__));
void parse_and_give_up(void) __attribute__((__noreturn__));

APART void last_words(void)
{
    block_of_the_last_words = malloc(60);
    longjmp(back, 1);
}

APART void parse_and_give_up(void)
{
    last_words();
}

static void test_function_that_ends_in_a_call_is_found(void)
{
    load("5 parser function=parse_and_*\n");
    if (setjmp(back) == 0)
        parse_and_give_up();
    TEST_ASSERT_EQUAL_UINT32(5, home_of(block_of_the_last_words));
}

static void test_innermost_match_decides_by_default(void)
{
    load("5 parser function=parse_*\n6 drawing function=draw_*\n");
    TEST_ASSERT_EQUAL_UINT32(6, home_of(parse_all(draw_line)));
    TEST_ASSERT_EQUAL_UINT32(5, home_of(draw_all(parse_word)));
}

static void test_outermost_match_keeps_what_is_below(void)
{
    load("5 parser function=parse_* outermost\n6 drawing function=draw_*\n");
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_all(draw_line)));
    TEST_ASSERT_EQUAL_UINT32(6, home_of(draw_line()));
}

static void test_first_rule_wins_on_one_frame(void)
{
    load("6 drawing function=parse_w?rd\n5 parser function=parse_*\n");
    TEST_ASSERT_EQUAL_UINT32(6, home_of(parse_word()));
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_all(nobody)));
    load("7 everything module=test_domain_rules\n5 parser function=parse_*\n");
    TEST_ASSERT_EQUAL_UINT32(7, home_of(parse_word()));
    load("5 parser function=parse_*\n7 everything module=test_domain_rules\n");
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_word()));
    TEST_ASSERT_EQUAL_UINT32(7, home_of(nobody()));
}

static void test_module_rule_takes_what_its_code_asks_for(void)
{
    load("7 everything module=test_domain_rules,nothing.so*\n");
    TEST_ASSERT_EQUAL_UINT32(7, home_of(nobody()));
    load("7 everything module=*/tests/test_domain_rules function=draw_*\n");
    TEST_ASSERT_EQUAL_UINT32(7, home_of(draw_line()));
    TEST_ASSERT_EQUAL_UINT32(0, home_of(nobody()));
    load("7 everything module=libother.so function=draw_*\n");
    TEST_ASSERT_EQUAL_UINT32(0, home_of(draw_line()));
}

static void test_call_and_scope_win_over_rules(void)
{
    load("5 parser function=parse_*\n");
    ta_domain_push(9);
    TEST_ASSERT_EQUAL_UINT32(9, home_of(parse_word()));
    ta_domain_push(0);
    TEST_ASSERT_EQUAL_UINT32(0, home_of(parse_word()));
    ta_domain_pop();
    ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_word()));
}

static void test_realloc_stays_whatever_the_rules_say(void)
{
    load("5 parser function=parse_*\n");
    TEST_ASSERT_EQUAL_UINT32(5, home_of(realloc(parse_word(), 100000)));
}

static void test_other_rules_hold_from_then_on(void)
{
    load("5 parser function=parse_*\n");
    void *before = parse_word();
    load("6 drawing function=parse_*\n");
    TEST_ASSERT_EQUAL_UINT32(6, home_of(parse_word()));
    TEST_ASSERT_EQUAL_UINT32(5, home_of(before));
    load("# no rules at all\n");
    TEST_ASSERT_EQUAL_UINT32(0, home_of(parse_word()));
}

static void test_figures_follow_the_rules(void)
{
    load("15 parser2 function=parse_*\n");
    struct ta_domain_stats stats;
    void *block = parse_word();
    TEST_ASSERT_EQUAL_INT(0, ta_domain_get_stats(15, &stats, sizeof stats));
    TEST_ASSERT_EQUAL_UINT64(30, stats.live_bytes);
    TEST_ASSERT_EQUAL_UINT64(30, stats.traced_bytes);
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_destroy(15));
    TEST_ASSERT_EQUAL_INT(EBUSY, errno);
    free(block);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_get_stats(15, &stats, sizeof stats));
    TEST_ASSERT_EQUAL_UINT64(0, stats.live_bytes);
    load("");
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(15));
}

static void test_with_one_frame_the_caller_alone_is_asked(void)
{
    load("5 parser function=parse_*\n");
    ta_stop();
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_word()));
    TEST_ASSERT_EQUAL_UINT32(0, home_of(parse_all(nobody)));
}

static void test_blanks_comments_and_line_ends_do_not_matter(void)
{
    load("4294967295 last function=parse_word\n"); /* the largest number that there is */
    TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, home_of(parse_word()));
    load("# rules\r\n\r\n   5\tparser   function=parse_word innermost # said so\r\n6 drawing function=draw_*");
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_word()));
    TEST_ASSERT_EQUAL_UINT32(6, home_of(draw_line()));
}

/* ---- wrong ones -------------------------------------------------------------------------------------------------- */

/* Behind the path: ":line:column: …". */
static void refused(const char *text, const char *expected)
{
    char whole[512];
    load("5 parser function=parse_*\n");
    write_rules(text, strlen(text));
    errno = 0;
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_load_rules(path));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
    snprintf(whole, sizeof whole, "%s%s", path, expected);
    TEST_ASSERT_EQUAL_STRING(whole, ta_error_text());
    TEST_ASSERT_EQUAL_UINT32(5, home_of(parse_word())); /* the former rules still hold */
}

static void test_wrong_lines_are_named_by_line_and_column(void)
{
    refused("3 a module=x\nseven b module=y\n", ":2:1: expected the number of a domain, found 'seven'");
    refused("3x a module=x\n", ":1:2: expected the number of a domain, found '3x'");
    refused("4294967296 a module=x\n", ":1:1: the number of a domain is at most 4294967295, found '4294967296'");
    refused("3\n", ":1:2: expected the name of the domain");
    refused("3 module=x\n", ":1:3: expected the name of the domain");
    refused("3 a\n", ":1:4: expected module=, function= or file=");
    refused("3 a innermost # module=x\n", ":1:15: expected module=, function= or file=");
    refused("3 a modul=x\n", ":1:5: expected module=, function=, file=, innermost or outermost, found 'modul=x'");
    refused("3 a module=\n", ":1:12: expected a pattern");
    refused("3 a module=x,,y\n", ":1:14: expected a pattern");
    refused("3 a module=x,\n", ":1:14: expected a pattern");
    refused("3 a function=\"a, b\n", ":1:14: the quote has no end");
    refused("3 a function=\"\"\n", ":1:14: expected a pattern");
    refused("3 a function=\"a\"b\n", ":1:17: expected a comma behind the quote");
    refused("@range 1 10 20\n", ":1:1: a range before the first object");
    refused("@object 12g4 x\n", ":1:9: expected a build id");
    refused("3 a function=x\n@object 1234\n@range 2 10 20\n", ":3:8: not a range of a rule, or not in order");
    refused("3 a function=x\n@object 1234\n@range 1 20 10\n", ":3:8: not a range of a rule, or not in order");
    refused("3 a function=x\n@object 1234\n@range 1 2z 30\n", ":3:10: expected a number");
    refused("3 a module=x module=y\n", ":1:21: given twice in one rule");
    refused("3 a module=x outermost innermost\n",
            ":1:24: only one of innermost and outermost can hold, found also 'innermost'");
    refused("\n3 a module=x\n3 b module=y\n", ":3:3: the domain has another name already: 'a'");
    refused("3 a module=x\n4 a module=y\n", ":2:1: another domain has the name already: 'a'");
    refused("3 parser module=x\n", ":1:1: another domain of the program has the name already: 'parser'");
    refused("3 a module=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n", ":1:51: more than 16 patterns in one list");
}

static void test_name_that_is_too_long_is_refused(void)
{
    char text[400] = "3 ";
    memset(text + 2, 'n', 256);
    strcpy(text + 258, " module=x\n");
    refused(text, ":1:3: the name of a domain has at most 255 bytes");
}

static void test_binary_file_is_refused(void)
{
    char whole[128];
    write_rules("3 a module=x\n4 b\0module=y\n", 26);
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_load_rules(path));
    snprintf(whole, sizeof whole, "%s:2:4: a zero byte: this is no text", path);
    TEST_ASSERT_EQUAL_STRING(whole, ta_error_text());
}

static void test_file_that_is_not_there_or_no_file_is_refused(void)
{
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_load_rules("/nonexistent/rules"));
    TEST_ASSERT_EQUAL_STRING("/nonexistent/rules: No such file or directory", ta_error_text());
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_load_rules("/"));
    TEST_ASSERT_EQUAL_STRING("/: Is a directory", ta_error_text());
}

static void test_file_beyond_all_measure_is_refused(void)
{
    char whole[128];
    static char text[(1 << 20) + 10];
    memset(text, '#', sizeof text);
    write_rules(text, sizeof text);
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_load_rules(path));
    snprintf(whole, sizeof whole, "%s: longer than 1 MiB", path);
    TEST_ASSERT_EQUAL_STRING(whole, ta_error_text());
    size_t used = 0;
    for (int i = 0; i <= 1024; i++)
        used += (size_t)sprintf(text + used, "%d n%d module=x\n", 1000 + i, i);
    write_rules(text, used);
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_load_rules(path));
    snprintf(whole, sizeof whole, "%s:1025:1: more than 1024 rules", path);
    TEST_ASSERT_EQUAL_STRING(whole, ta_error_text());
}

/* The option: a program whose rules are wrong does not start. */
static void test_program_with_wrong_rules_refuses_to_start(void)
{
    int pipes[2];
    char said[256] = "";
    char expected[256];
    write_rules("3 a modul=x\n", 12);
    TEST_ASSERT_EQUAL_INT(0, pipe(pipes));
    pid_t child = fork();
    if (child == 0) {
        char option[128];
        snprintf(option, sizeof option, "rules=%s", path);
        setenv("TRACEALLOC_OPTIONS", option, 1);
        dup2(pipes[1], 2);
        execl("/proc/self/exe", "test_domain_rules", "--nothing", (char *)NULL);
        _exit(99);
    }
    close(pipes[1]);
    int status;
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_TRUE(read(pipes[0], said, sizeof said - 1) > 0);
    close(pipes[0]);
    snprintf(expected, sizeof expected,
             "tracealloc: %s:1:5: expected module=, function=, file=, innermost or outermost, found 'modul=x'\n", path);
    TEST_ASSERT_EQUAL_STRING(expected, said);
    TEST_ASSERT_TRUE(WIFEXITED(status));
    TEST_ASSERT_EQUAL_INT(1, WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--nothing") == 0)
        return 0;
    snprintf(path, sizeof path, "/tmp/test_domain_rules.%d", (int)getpid());
    UNITY_BEGIN();
    RUN_TEST(test_function_rule_takes_what_is_asked_below_it);
    RUN_TEST(test_function_that_ends_in_a_call_is_found);
    RUN_TEST(test_innermost_match_decides_by_default);
    RUN_TEST(test_outermost_match_keeps_what_is_below);
    RUN_TEST(test_first_rule_wins_on_one_frame);
    RUN_TEST(test_module_rule_takes_what_its_code_asks_for);
    RUN_TEST(test_call_and_scope_win_over_rules);
    RUN_TEST(test_realloc_stays_whatever_the_rules_say);
    RUN_TEST(test_other_rules_hold_from_then_on);
    RUN_TEST(test_figures_follow_the_rules);
    RUN_TEST(test_with_one_frame_the_caller_alone_is_asked);
    RUN_TEST(test_blanks_comments_and_line_ends_do_not_matter);
    RUN_TEST(test_wrong_lines_are_named_by_line_and_column);
    RUN_TEST(test_name_that_is_too_long_is_refused);
    RUN_TEST(test_binary_file_is_refused);
    RUN_TEST(test_file_that_is_not_there_or_no_file_is_refused);
    RUN_TEST(test_file_beyond_all_measure_is_refused);
    RUN_TEST(test_program_with_wrong_rules_refuses_to_start);
    unlink(path);
    return UNITY_END();
}
