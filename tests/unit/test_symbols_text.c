/* test_symbols_text.c: interned strings, textual paths, demangling of C++ and Rust names, hostile ones included; and where
 * functions end. */
#include "analysis/symbols/symbols_text.h"
#include "analysis/symbols/symbols_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unity.h>

static struct ta__text_table table;

void setUp(void)
{
    ta__text_table_create(&table);
}

void tearDown(void)
{
    ta__text_table_destroy(&table);
}

static const char *path(const char *directory, const char *name)
{
    return table.strings[ta__text_intern_path(&table, directory, name)].text;
}

static const char *demangled(const char *raw)
{
    return table.strings[ta__text_intern_demangled(&table, raw)].text;
}

static void test_text_intern_equal_texts_get_one_number_and_others_another(void)
{
    uint32_t one = ta__text_intern_z(&table, "one");
    uint32_t two = ta__text_intern_z(&table, "two");

    TEST_ASSERT_NOT_EQUAL_UINT32(one, two);
    TEST_ASSERT_EQUAL_UINT32(one, ta__text_intern(&table, "oneself", 3));
    TEST_ASSERT_EQUAL_UINT32(0, ta__text_intern_z(&table, ""));
    TEST_ASSERT_EQUAL_UINT32(0, ta__text_intern_z(&table, NULL));
    TEST_ASSERT_EQUAL_STRING("", table.strings[0].text);
    TEST_ASSERT_EQUAL_UINT32(3, table.count);
}

static void test_text_intern_many_texts_keep_their_numbers_places_and_bytes(void)
{
    enum { COUNT = 20000 };
    static const char *places[COUNT];
    char text[64];
    for (uint32_t i = 0; i < COUNT; i++) {
        int length = snprintf(text, sizeof text, "%u%c\xff/name", i, 0);
        TEST_ASSERT_EQUAL_UINT32(i + 1, ta__text_intern(&table, text, (size_t)length));
        places[i] = table.strings[i + 1].text;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        size_t length = (size_t)snprintf(text, sizeof text, "%u%c\xff/name", i, 0);
        TEST_ASSERT_EQUAL_UINT32(i + 1, ta__text_intern(&table, text, length));
        TEST_ASSERT_EQUAL_PTR(places[i], table.strings[i + 1].text);
        TEST_ASSERT_EQUAL_UINT(length, table.strings[i + 1].length);
        TEST_ASSERT_EQUAL_MEMORY(text, table.strings[i + 1].text, length + 1);
    }
}

static void test_text_intern_text_larger_than_a_block_is_kept_whole(void)
{
    size_t length = 300000;
    char *large = malloc(length);
    memset(large, 'x', length);

    uint32_t before = ta__text_intern_z(&table, "before");
    uint32_t id = ta__text_intern(&table, large, length);
    uint32_t after = ta__text_intern_z(&table, "after");

    TEST_ASSERT_EQUAL_UINT(length, table.strings[id].length);
    TEST_ASSERT_EQUAL_UINT(length, strlen(table.strings[id].text));
    TEST_ASSERT_EQUAL_STRING("before", table.strings[before].text);
    TEST_ASSERT_EQUAL_STRING("after", table.strings[after].text);
    free(large);
}

static void test_text_path_is_joined_and_freed_of_dots_without_looking_at_the_disk(void)
{
    TEST_ASSERT_EQUAL_STRING("/a/b/c.c", path("/a/b", "c.c"));
    TEST_ASSERT_EQUAL_STRING("/a/b/c.c", path("/a/b/", "./c.c"));
    TEST_ASSERT_EQUAL_STRING("/a/c.c", path("/a/b", "../c.c"));
    TEST_ASSERT_EQUAL_STRING("/x/c.c", path("/a/b", "/x/./y/../c.c"));
    TEST_ASSERT_EQUAL_STRING("/a/b.c", path(NULL, "//a///b.c"));
    TEST_ASSERT_EQUAL_STRING("/c.c", path("/a", "../../../c.c"));
    TEST_ASSERT_EQUAL_STRING("/a/..b/.c/...", path("/a", "..b/.c/..."));
    TEST_ASSERT_EQUAL_STRING("/a/b", path("/a", "b/"));
    TEST_ASSERT_EQUAL_STRING("/", path("/a", ".."));
}

static void test_text_path_relative_to_nothing_keeps_what_leads_out(void)
{
    TEST_ASSERT_EQUAL_STRING("c.c", path(NULL, "./c.c"));
    TEST_ASSERT_EQUAL_STRING("../c.c", path(NULL, "../c.c"));
    TEST_ASSERT_EQUAL_STRING("../../c.c", path(NULL, "a/../../../c.c"));
    TEST_ASSERT_EQUAL_STRING("elf/c.c", path("./csu", "../elf/c.c"));
    TEST_ASSERT_EQUAL_STRING(".", path(NULL, "a/.."));
    TEST_ASSERT_EQUAL_STRING("a/b", path("", "a/b"));
}

static void test_text_path_two_spellings_of_one_file_get_one_number(void)
{
    uint32_t plain = ta__text_intern_path(&table, NULL, "/src/lib/x.c");

    TEST_ASSERT_EQUAL_UINT32(plain, ta__text_intern_path(&table, "/src/build", "../lib/x.c"));
    TEST_ASSERT_EQUAL_UINT32(plain, ta__text_intern_path(&table, "/src/", ".//lib/./x.c"));
}

static void test_text_path_that_begins_with_its_relative_folder_is_not_joined_again(void)
{
    TEST_ASSERT_EQUAL_STRING("libio/filedoalloc.c", path("./libio", "./libio/filedoalloc.c"));
    TEST_ASSERT_EQUAL_STRING("include/rtld-malloc.h", path("./malloc", "./malloc/../include/rtld-malloc.h"));
    TEST_ASSERT_EQUAL_STRING("libio/genops.c", path("./libio", "genops.c"));
    TEST_ASSERT_EQUAL_STRING("libio/libiox/genops.c", path("./libio", "libiox/genops.c"));
    TEST_ASSERT_EQUAL_STRING("/src/src/x.c", path("/src", "src/x.c"));
}

static void test_text_demangle_cxx_names_are_written_with_their_parameters(void)
{
    TEST_ASSERT_EQUAL_STRING("ns::Box<int>::put(int, char const*)", demangled("_ZN2ns3BoxIiE3putEiPKc"));
    TEST_ASSERT_EQUAL_STRING("operator new(unsigned long)", demangled("_Znwm"));
    TEST_ASSERT_EQUAL_STRING("main::{lambda(int)#1}::operator()(int) const", demangled("_ZZ4mainENKUliE_clEi"));
    TEST_ASSERT_EQUAL_STRING("f(int) [clone .part.0]", demangled("_Z1fi.part.0"));
}

static void test_text_demangle_rust_names_of_both_manglings_lose_their_hash(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "<alloc::vec::Vec<T> as core::fmt::Debug>::fmt",
        demangled("_ZN61_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789"
                  "abcdefE"));
    TEST_ASSERT_EQUAL_STRING("std::rt::lang_start", demangled("_ZN3std2rt10lang_start17h7a9b6cf2a3a8d2e1E"));
    TEST_ASSERT_EQUAL_STRING("mycrate::example", demangled("_RNvCs1234_7mycrate7example"));
}

static void test_text_demangle_other_names_stay_as_they_are(void)
{
    static const char *const names[] = {"main", "_start",          "_Z",          "_R", "_Zq", "_ZN",
                                        "_RNv", "foo.constprop.0", "_ZN3fooE\xff"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        TEST_ASSERT_EQUAL_STRING(names[i], demangled(names[i]));
}

static void test_text_demangle_long_name_is_still_read(void)
{
    char raw[6000] = "_Z1f";
    for (int i = 0; i < 500; i++)
        strcat(raw, "PKc2ab");

    const char *text = demangled(raw);

    TEST_ASSERT_EQUAL_STRING_LEN("f(char const*, ab, ", text, 19);
}

/* f(p<int, int>, p<p<int, int>, p<int, int>>, …): each step doubles the text. */
static void write_doubling_name(char *raw, int steps)
{
    strcpy(raw, "_Z1f1pIiiE");
    for (int step = 0; step < steps; step++) {
        static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        char number[3] = {digits[step % 36]};
        if (step >= 36) {
            number[0] = digits[step / 36];
            number[1] = digits[step % 36];
        }
        sprintf(raw + strlen(raw), "S_IS%s_S%s_E", number, number);
    }
}

static void test_text_demangle_name_that_explodes_stays_raw(void)
{
    char raw[2000];

    write_doubling_name(raw, 2);
    TEST_ASSERT_EQUAL_STRING("f(p<int, int>, p<p<int, int>, p<int, int> >, p<p<p<int, int>, p<int, int> >, "
                             "p<p<int, int>, p<int, int> > >)",
                             demangled(raw));
    write_doubling_name(raw, 60);
    TEST_ASSERT_EQUAL_STRING(raw, demangled(raw));
}

/* Pseudo-random and truncated names: whatever comes out, the table stays whole. */
static void test_text_demangle_damaged_names_do_no_harm(void)
{
    static const char good[] =
        "_ZNSt6vectorISt4pairINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiESaIS8_EE9push_backEOS8_";
    uint64_t state = 12345;
    for (int round = 0; round < 20000; round++) {
        char name[sizeof good];
        memcpy(name, good, sizeof good);
        for (int change = 0; change < 3; change++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            name[2 + (state >> 33) % (sizeof good - 3)] = (char)(1 + (state >> 20) % 255);
        }
        if (round % 3 == 0)
            name[2 + (state >> 40) % (sizeof good - 3)] = '\0';
        if (round % 2 == 0)
            name[1] = 'R';
        uint32_t id = ta__text_intern_demangled(&table, name);
        TEST_ASSERT_LESS_THAN_UINT32(table.count, id);
        TEST_ASSERT_FALSE(table.failed);
    }
}

static void test_function_holds_its_first_byte_and_not_the_one_behind_its_last(void)
{
    struct ta__function_range items[] = {{100, 200}, {200, 210}, {300, 400}};
    const struct ta__function_ranges ranges = {.items = items, .count = 3, .capacity = 3};
    static const struct {
        uint64_t address;
        int found;
    } asked[] = {{0, -1},   {99, -1},  {100, 0}, {199, 0}, {200, 1}, {209, 1},
                 {210, -1}, {299, -1}, {300, 2}, {399, 2}, {400, -1}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const struct ta__function_range *expected = asked[i].found < 0 ? NULL : &items[asked[i].found];
        TEST_ASSERT_EQUAL_PTR(expected, ta__function_ranges_find(&ranges, asked[i].address));
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_text_intern_equal_texts_get_one_number_and_others_another);
    RUN_TEST(test_text_intern_many_texts_keep_their_numbers_places_and_bytes);
    RUN_TEST(test_text_intern_text_larger_than_a_block_is_kept_whole);
    RUN_TEST(test_text_path_is_joined_and_freed_of_dots_without_looking_at_the_disk);
    RUN_TEST(test_text_path_relative_to_nothing_keeps_what_leads_out);
    RUN_TEST(test_text_path_two_spellings_of_one_file_get_one_number);
    RUN_TEST(test_text_path_that_begins_with_its_relative_folder_is_not_joined_again);
    RUN_TEST(test_text_demangle_cxx_names_are_written_with_their_parameters);
    RUN_TEST(test_text_demangle_rust_names_of_both_manglings_lose_their_hash);
    RUN_TEST(test_text_demangle_other_names_stay_as_they_are);
    RUN_TEST(test_text_demangle_long_name_is_still_read);
    RUN_TEST(test_text_demangle_name_that_explodes_stays_raw);
    RUN_TEST(test_text_demangle_damaged_names_do_no_harm);
    RUN_TEST(test_function_holds_its_first_byte_and_not_the_one_behind_its_last);
    return UNITY_END();
}
