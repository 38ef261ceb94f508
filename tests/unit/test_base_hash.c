/* test_base_hash.c: the mixers spread what differs, and the rolling one depends on order. */
#include "base/hash.h"

#include <stdlib.h>

#include <unity.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static void test_hash_word_one_changed_bit_changes_about_half_of_the_result(void)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        unsigned changed = 0;
        for (uint64_t word = 1; word <= 256; word++) {
            uint64_t mixed = ta__hash_word(word * TA__GOLDEN);
            uint64_t neighbour = ta__hash_word((word * TA__GOLDEN) ^ ((uint64_t)1 << bit));
            changed += (unsigned)__builtin_popcountll(mixed ^ neighbour);
        }
        TEST_ASSERT_UINT_WITHIN(2 * 256, 32 * 256, changed);
    }
}

static void test_hash_roll_depends_on_order_and_on_length(void)
{
    uint64_t one_two = ta__hash_roll(ta__hash_roll(0, 1), 2);
    uint64_t two_one = ta__hash_roll(ta__hash_roll(0, 2), 1);

    TEST_ASSERT_NOT_EQUAL_UINT64(one_two, two_one);
    TEST_ASSERT_NOT_EQUAL_UINT64(one_two, ta__hash_roll(one_two, 0));
    TEST_ASSERT_EQUAL_HEX64(one_two, ta__hash_roll(ta__hash_roll(0, 1), 2));
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void test_hash_roll_neighbouring_stacks_never_collide(void)
{
    enum { SIDE = 256, COUNT = SIDE * SIDE };
    static uint64_t hashes[COUNT];
    for (unsigned outer = 0; outer < SIDE; outer++)
        for (unsigned inner = 0; inner < SIDE; inner++)
            hashes[outer * SIDE + inner] = ta__hash_roll(ta__hash_roll(0, 0x400000 + outer), 0x400000 + inner * 4);

    qsort(hashes, COUNT, sizeof hashes[0], by_value);

    for (unsigned i = 1; i < COUNT; i++)
        TEST_ASSERT_NOT_EQUAL_UINT64(hashes[i - 1], hashes[i]);
}

static void test_hash_bytes_differs_by_content_and_by_length(void)
{
    static const char text[] = "libssl.so.3\0\0";

    uint64_t whole = ta__hash_bytes(text, 11);

    TEST_ASSERT_EQUAL_HEX64(whole, ta__hash_bytes("libssl.so.3", 11));
    TEST_ASSERT_NOT_EQUAL_UINT64(whole, ta__hash_bytes(text, 12));
    TEST_ASSERT_NOT_EQUAL_UINT64(whole, ta__hash_bytes(text, 10));
    TEST_ASSERT_NOT_EQUAL_UINT64(whole, ta__hash_bytes("libssl.so.1", 11));
    TEST_ASSERT_NOT_EQUAL_UINT64(ta__hash_bytes("", 0), ta__hash_bytes("\0", 1));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_hash_word_one_changed_bit_changes_about_half_of_the_result);
    RUN_TEST(test_hash_roll_depends_on_order_and_on_length);
    RUN_TEST(test_hash_roll_neighbouring_stacks_never_collide);
    RUN_TEST(test_hash_bytes_differs_by_content_and_by_length);
    return UNITY_END();
}
