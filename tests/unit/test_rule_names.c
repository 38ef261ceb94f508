/* test_rule_names.c: what rules for domains call functions, files and modules: C++ names as people know them; and the
 * stack of its own that makes them readable. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/own_stack.h"
#include "base/readable_name.h"
#include "base/rule_text.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

static int matches(const char *pattern, const char *name)
{
    static char scratch[4096];
    const struct ta__rule rule = {.functions = {pattern}};
    return ta__rule_names_function(&rule, name, scratch, sizeof scratch);
}

/* parser::Lexer::next(std::string const&), parser::Table<int>::add(int), operator new(unsigned long, ta::domain),
 * main::{lambda(int)#1}::operator()(int) const, (anonymous namespace)::hidden() */
#define NEXT   "_ZN6parser5Lexer4nextERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define ADD    "_ZN6parser5TableIiE3addEi"
#define NEW    "_ZnwmN2ta6domainE"
#define LAMBDA "_ZZ4mainENKUliE_clEi"
#define HIDDEN "_ZN12_GLOBAL__N_16hiddenEv"

static void test_cxx_functions_are_matched_by_what_people_call_them(void)
{
    TEST_ASSERT_TRUE(matches("parser::*", NEXT));
    TEST_ASSERT_TRUE(matches("parser::Lexer::next", NEXT));
    TEST_ASSERT_TRUE(matches("*::next", NEXT));
    TEST_ASSERT_TRUE(matches("parser::*", ADD));
    TEST_ASSERT_TRUE(matches("parser::Table<int>::add", ADD));
    TEST_ASSERT_TRUE(matches("parser::Table<*>::*", ADD));
    TEST_ASSERT_TRUE(matches("operator new", NEW));
    TEST_ASSERT_TRUE(matches("operator*", NEW));
    TEST_ASSERT_TRUE(matches("main::*", LAMBDA));
    TEST_ASSERT_TRUE(matches("(anonymous namespace)::hidden*", HIDDEN));
    TEST_ASSERT_FALSE(matches("parser", NEXT));
    TEST_ASSERT_FALSE(matches("Lexer::*", NEXT));
    TEST_ASSERT_FALSE(matches("lexer::*", NEXT));
    TEST_ASSERT_FALSE(matches("parser::Table::add", ADD));
}

static void test_parameters_count_where_the_pattern_has_a_parenthesis(void)
{
    TEST_ASSERT_TRUE(matches("parser::Table<int>::add(int)", ADD));
    TEST_ASSERT_TRUE(matches("*::add(*)", ADD));
    TEST_ASSERT_FALSE(matches("*::add(long)", ADD));
    TEST_ASSERT_TRUE(matches("operator new(unsigned long, ta::domain)", NEW));
}

static void test_names_of_the_linker_go_on_to_match(void)
{
    TEST_ASSERT_TRUE(matches("_ZN6parser*", NEXT));
    TEST_ASSERT_TRUE(matches("parse_*", "parse_line"));
    TEST_ASSERT_FALSE(matches("parse_*", "reparse_line"));
    TEST_ASSERT_FALSE(matches("parser::*", "_ZN6parser")); /* no name at all */
}

/* Every literal of a pattern stands in the mangled name, unless mangling has an abbreviation for it. */
static void test_abbreviated_names_are_found(void)
{
    TEST_ASSERT_TRUE(matches("std::*", "_ZNSt6vectorIiSaIiEE9push_backERKi"));
    TEST_ASSERT_TRUE(matches("std::vector<*>::push_back", "_ZNSt6vectorIiSaIiEE9push_backERKi"));
    TEST_ASSERT_TRUE(matches("std::*string*::append", "_ZNSs6appendEPKc"));
    TEST_ASSERT_TRUE(matches("std::*ostream*::write", "_ZNSo5writeEPKcl"));
}

static void test_source_files_are_matched_from_any_folder_on(void)
{
    struct ta__rule rule = {.files = {"src/net/*"}};
    TEST_ASSERT_TRUE(ta__rule_names_file(&rule, "/home/me/project/src/net/http.cpp"));
    TEST_ASSERT_TRUE(ta__rule_names_file(&rule, "/home/me/project/src/net/tls/session.cpp"));
    TEST_ASSERT_TRUE(ta__rule_names_file(&rule, "src/net/http.cpp"));
    TEST_ASSERT_FALSE(ta__rule_names_file(&rule, "/home/me/mysrc/net/http.cpp"));
    TEST_ASSERT_FALSE(ta__rule_names_file(&rule, "/home/me/src/network/http.cpp"));
    rule.files[0] = "/usr/include/*";
    TEST_ASSERT_TRUE(ta__rule_names_file(&rule, "/usr/include/c++/12/vector"));
    TEST_ASSERT_FALSE(ta__rule_names_file(&rule, "/opt/usr/include/c++/12/vector"));
    rule.files[0] = "http.cpp";
    TEST_ASSERT_TRUE(ta__rule_names_file(&rule, "/x/http.cpp"));
}

static void test_names_that_do_not_fit_are_not_readable(void)
{
    char text[64], name[4096];
    TEST_ASSERT_EQUAL_size_t(strlen("parser::Table<int>::add"), ta__readable_name(ADD, 0, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("parser::Table<int>::add", text);
    TEST_ASSERT_EQUAL_size_t(0, ta__readable_name(ADD, 0, text, strlen("parser::Table<int>::add")));
    TEST_ASSERT_EQUAL_size_t(0, ta__readable_name("malloc", 0, text, sizeof text));
    TEST_ASSERT_EQUAL_size_t(0, ta__readable_name("_Z", 0, text, sizeof text));
    TEST_ASSERT_EQUAL_size_t(0, ta__readable_name("_ZN", 0, text, sizeof text));
    memset(name, 'P', sizeof name);
    memcpy(name, "_Z1f", 4);
    name[4000] = '\0'; /* a pointer to a pointer to … */
    TEST_ASSERT_EQUAL_size_t(0, ta__readable_name(name, 1, text, sizeof text));
}

/* ---- the stack ---- */

struct visit {
    uintptr_t place;
    int depth;
};

static int deep(int levels)
{
    volatile char frame[1024];
    memset((char *)frame, levels, sizeof frame);
    return levels == 0 ? 0 : 1 + deep(levels - 1) + (frame[7] - frame[9]);
}

static void visit(void *argument)
{
    struct visit *visited = argument;
    visited->place = (uintptr_t)__builtin_frame_address(0);
    visited->depth = deep(visited->depth);
}

static void test_work_is_done_on_a_stack_of_its_own(void)
{
    struct visit visited = {.depth = 6000}; /* six MiB and more */
    double kept = 1.5;
    TEST_ASSERT_EQUAL_INT(1, ta__on_own_stack(16 << 20, visit, &visited));
    TEST_ASSERT_EQUAL_INT(6000, visited.depth);
    TEST_ASSERT_TRUE(kept == 1.5);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    TEST_ASSERT_TRUE(visited.place > here + (8 << 20) || visited.place + (8 << 20) < here);
#endif
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_cxx_functions_are_matched_by_what_people_call_them);
    RUN_TEST(test_parameters_count_where_the_pattern_has_a_parenthesis);
    RUN_TEST(test_names_of_the_linker_go_on_to_match);
    RUN_TEST(test_abbreviated_names_are_found);
    RUN_TEST(test_source_files_are_matched_from_any_folder_on);
    RUN_TEST(test_names_that_do_not_fit_are_not_readable);
    RUN_TEST(test_work_is_done_on_a_stack_of_its_own);
    return UNITY_END();
}
