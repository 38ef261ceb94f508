/* test_memory_short.c: when memory is nearly used up, from what the kernel's files say. */
#include <unity.h>

#include "snapshot/triggers/memory_short.h"

#define PLENTY "MemTotal:       16384000 kB\nMemFree:          200000 kB\nMemAvailable:   12000000 kB\n"
#define LITTLE "MemTotal:       16384000 kB\nMemFree:          200000 kB\nMemAvailable:    1000000 kB\n"

void setUp(void)
{
}

void tearDown(void)
{
}

static void test_the_machine(void)
{
    TEST_ASSERT_FALSE(ta__memory_texts_are_short(PLENTY, "", ""));
    TEST_ASSERT_TRUE(ta__memory_texts_are_short(LITTLE, "", ""));
    TEST_ASSERT_FALSE(ta__memory_texts_are_short("", "", ""));
}

static void test_a_group_of_the_second_kind(void)
{
    TEST_ASSERT_FALSE(ta__memory_texts_are_short(PLENTY, "anon 80000000\nfile 19000000\n", "100000000\n"));
    TEST_ASSERT_TRUE(ta__memory_texts_are_short(PLENTY, "anon 91000000\nfile 19\n", "100000000\n"));
    TEST_ASSERT_FALSE(ta__memory_texts_are_short(PLENTY, "anon 91000000\nfile 19\n", "max\n"));
}

static void test_a_group_of_the_first_kind(void)
{
    TEST_ASSERT_TRUE(
        ta__memory_texts_are_short(PLENTY, "cache 1\nrss 3\ntotal_cache 900\ntotal_rss 91000000\n", "100000000\n"));
    TEST_ASSERT_FALSE(ta__memory_texts_are_short(PLENTY, "cache 1\nrss 99000000\ntotal_rss 10\n", "100000000\n"));
    TEST_ASSERT_FALSE(
        ta__memory_texts_are_short(PLENTY, "cache 1\ntotal_rss 91000000\n", "9223372036854771712\n")); /* no limit */
}

static void test_this_machine_answers(void)
{
    int now = ta__memory_is_short();
    TEST_ASSERT_TRUE(now == 0 || now == 1);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_machine);
    RUN_TEST(test_a_group_of_the_second_kind);
    RUN_TEST(test_a_group_of_the_first_kind);
    RUN_TEST(test_this_machine_answers);
    return UNITY_END();
}
