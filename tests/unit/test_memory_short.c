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
    TEST_ASSERT_NOT_EQUAL_UINT64(0, ta__memory_texts_left(PLENTY, "", ""));
    TEST_ASSERT_EQUAL_UINT64(0, ta__memory_texts_left(LITTLE, "", ""));
    TEST_ASSERT_NOT_EQUAL_UINT64(0, ta__memory_texts_left("", "", ""));
}

static void test_a_group_of_the_second_kind(void)
{
    TEST_ASSERT_NOT_EQUAL_UINT64(0, ta__memory_texts_left(PLENTY, "anon 80000000\nfile 19000000\n", "100000000\n"));
    TEST_ASSERT_EQUAL_UINT64(0, ta__memory_texts_left(PLENTY, "anon 91000000\nfile 19\n", "100000000\n"));
    TEST_ASSERT_NOT_EQUAL_UINT64(0, ta__memory_texts_left(PLENTY, "anon 91000000\nfile 19\n", "max\n"));
}

static void test_a_group_of_the_first_kind(void)
{
    TEST_ASSERT_EQUAL_UINT64(
        0, ta__memory_texts_left(PLENTY, "cache 1\nrss 3\ntotal_cache 900\ntotal_rss 91000000\n", "100000000\n"));
    TEST_ASSERT_NOT_EQUAL_UINT64(0,
                                 ta__memory_texts_left(PLENTY, "cache 1\nrss 99000000\ntotal_rss 10\n", "100000000\n"));
    TEST_ASSERT_NOT_EQUAL_UINT64(
        0, ta__memory_texts_left(PLENTY, "cache 1\ntotal_rss 91000000\n", "9223372036854771712\n")); /* no limit */
}

/* By half of it memory is looked at again, so it must be neither more nor far less than there is. */
static void test_what_is_left_is_said(void)
{
    TEST_ASSERT_EQUAL_UINT64((12000000 - 1638400 + 1) * UINT64_C(1024), ta__memory_texts_left(PLENTY, "", ""));
    TEST_ASSERT_EQUAL_UINT64(10000001, ta__memory_texts_left(PLENTY, "anon 80000000\nfile 19\n", "100000000\n"));
    TEST_ASSERT_EQUAL_UINT64(1, ta__memory_texts_left(PLENTY, "anon 90000000\nfile 19\n", "100000000\n"));
}

static void test_this_machine_answers(void)
{
    TEST_ASSERT_LESS_THAN_UINT64(UINT64_C(1) << 50, ta__memory_left_until_short()); /* of a machine's, not of none */
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_machine);
    RUN_TEST(test_a_group_of_the_second_kind);
    RUN_TEST(test_a_group_of_the_first_kind);
    RUN_TEST(test_what_is_left_is_said);
    RUN_TEST(test_this_machine_answers);
    return UNITY_END();
}
