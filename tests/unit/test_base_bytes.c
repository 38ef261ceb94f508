/* test_base_bytes.c: integers in byte buffers survive the way out and in; damaged input is refused, never overrun. */
#include "base/bytes.h"

#include <unity.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static struct ta__cursor cursor_over(const uint8_t *bytes, size_t length)
{
    return (struct ta__cursor){.at = bytes, .end = bytes + length, .failed = 0};
}

static void test_varint_every_bit_width_round_trips(void)
{
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t highest = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
        uint8_t buffer[TA__VARINT_MAX + 1];
        memset(buffer, 0xee, sizeof buffer);

        uint8_t *end = ta__put_varint(buffer, highest);

        size_t length = (size_t)(end - buffer);
        TEST_ASSERT_EQUAL_size_t(bits <= 7 ? 1 : (bits + 6) / 7, length);
        TEST_ASSERT_EQUAL_HEX8(0xee, *end);
        struct ta__cursor cursor = cursor_over(buffer, length);
        TEST_ASSERT_EQUAL_HEX64(highest, ta__get_varint(&cursor));
        TEST_ASSERT_FALSE(cursor.failed);
        TEST_ASSERT_EQUAL_PTR(cursor.end, cursor.at);
    }
}

static void test_varint_takes_as_few_bytes_as_can_be(void)
{
    for (unsigned bits = 0; bits < 64; bits++) {
        uint8_t buffer[TA__VARINT_MAX];
        size_t length = (size_t)(ta__put_varint(buffer, (uint64_t)1 << bits) - buffer);
        TEST_ASSERT_EQUAL_size_t(bits / 7 + 1, length);
        struct ta__cursor cursor = cursor_over(buffer, length);
        TEST_ASSERT_EQUAL_HEX64((uint64_t)1 << bits, ta__get_varint(&cursor));
    }
}

static void test_decimal_digits_are_put_with_their_end(void)
{
    static const struct {
        uint64_t number;
        const char *text;
    } cases[] = {{0, "0"},
                 {9, "9"},
                 {10, "10"},
                 {11, "11"},
                 {99, "99"},
                 {100, "100"},
                 {1234567890, "1234567890"},
                 {UINT64_MAX, "18446744073709551615"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char room[24];
        memset(room, 'z', sizeof room);
        char *end = ta__put_decimal(room + 1, cases[i].number);
        TEST_ASSERT_EQUAL_STRING(cases[i].text, room + 1);
        TEST_ASSERT_EQUAL_PTR(room + 1 + strlen(cases[i].text), end);
        TEST_ASSERT_EQUAL_HEX8('z', room[0]);
        TEST_ASSERT_EQUAL_HEX8('z', end[1]);
    }
}

static void test_fill_gives_what_both_know_and_zeros_behind(void)
{
    static const uint8_t ours[4] = {1, 2, 3, 4};
    static const uint8_t expected[8][10] = {{9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, {1, 9, 9, 9, 9, 9, 9, 9, 9, 9},
                                            {1, 2, 9, 9, 9, 9, 9, 9, 9, 9}, {1, 2, 3, 9, 9, 9, 9, 9, 9, 9},
                                            {1, 2, 3, 4, 9, 9, 9, 9, 9, 9}, {1, 2, 3, 4, 0, 9, 9, 9, 9, 9},
                                            {1, 2, 3, 4, 0, 0, 9, 9, 9, 9}, {1, 2, 3, 4, 0, 0, 0, 9, 9, 9}};
    for (size_t size = 0; size < 8; size++) {
        uint8_t theirs[10];
        memset(theirs, 9, sizeof theirs);
        ta__fill(theirs, size, ours, sizeof ours);
        TEST_ASSERT_EQUAL_HEX8_ARRAY(expected[size], theirs, sizeof theirs);
    }
}

static void test_varint_cut_short_fails_at_every_length(void)
{
    uint8_t buffer[TA__VARINT_MAX];
    size_t length = (size_t)(ta__put_varint(buffer, UINT64_MAX) - buffer);

    for (size_t cut = 0; cut < length; cut++) {
        struct ta__cursor cursor = cursor_over(buffer, cut);
        TEST_ASSERT_EQUAL_UINT64(0, ta__get_varint(&cursor));
        TEST_ASSERT_TRUE(cursor.failed);
    }
}

static void test_varint_beyond_64_bits_fails(void)
{
    static const uint8_t bit_64[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    static const uint8_t eleven_bytes[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01};

    struct ta__cursor cursor = cursor_over(bit_64, sizeof bit_64);
    ta__get_varint(&cursor);
    TEST_ASSERT_TRUE(cursor.failed);
    cursor = cursor_over(eleven_bytes, sizeof eleven_bytes);
    ta__get_varint(&cursor);
    TEST_ASSERT_TRUE(cursor.failed);
}

static void test_zigzag_small_magnitudes_become_small_numbers(void)
{
    TEST_ASSERT_EQUAL_UINT64(0, ta__zigzag(0));
    TEST_ASSERT_EQUAL_UINT64(1, ta__zigzag(-1));
    TEST_ASSERT_EQUAL_UINT64(2, ta__zigzag(1));
    TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, ta__zigzag(INT64_MIN));
    static const int64_t values[] = {0, 1, -1, 63, -64, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        TEST_ASSERT_EQUAL_INT64(values[i], ta__unzigzag(ta__zigzag(values[i])));
}

static void test_fixed_integers_are_little_endian_and_round_trip(void)
{
    uint8_t buffer[14];
    uint8_t *end = ta__put_u64(ta__put_u32(ta__put_u16(buffer, 0x0102), 0x03040506), 0x0708090a0b0c0d0eull);

    static const uint8_t expected[14] = {2, 1, 6, 5, 4, 3, 14, 13, 12, 11, 10, 9, 8, 7};
    TEST_ASSERT_EQUAL_PTR(buffer + sizeof buffer, end);
    TEST_ASSERT_EQUAL_HEX8_ARRAY(expected, buffer, sizeof buffer);
    struct ta__cursor cursor = cursor_over(buffer, sizeof buffer);
    TEST_ASSERT_EQUAL_HEX64(0x0102, ta__get_fixed(&cursor, 2));
    TEST_ASSERT_EQUAL_HEX64(0x03040506, ta__get_fixed(&cursor, 4));
    TEST_ASSERT_EQUAL_HEX64(0x0708090a0b0c0d0eull, ta__get_fixed(&cursor, 8));
    TEST_ASSERT_FALSE(cursor.failed);
    TEST_ASSERT_EQUAL_HEX64(0, ta__get_fixed(&cursor, 1));
    TEST_ASSERT_TRUE(cursor.failed);
    TEST_ASSERT_EQUAL_HEX32(0x0102, ta__u16_at(buffer));
    TEST_ASSERT_EQUAL_HEX32(0x03040506, ta__u32_at(buffer + 2));
    memset(buffer, 0xee, sizeof buffer);
    ta__put_u16(buffer, 0xffff);
    TEST_ASSERT_EQUAL_HEX8(0xee, buffer[2]);
    ta__put_u32(buffer, 0);
    TEST_ASSERT_EQUAL_HEX8(0xee, buffer[4]);
    ta__put_u64(buffer, 0);
    TEST_ASSERT_EQUAL_HEX8(0xee, buffer[8]);
}

static void test_cursor_once_failed_answers_nothing_more(void)
{
    static const uint8_t bytes[] = {1, 2, 3};
    struct ta__cursor cursor = cursor_over(bytes, sizeof bytes);

    TEST_ASSERT_NULL(ta__get_bytes(&cursor, 4));

    TEST_ASSERT_TRUE(cursor.failed);
    TEST_ASSERT_NULL(ta__get_bytes(&cursor, 1));
    TEST_ASSERT_EQUAL_UINT64(0, ta__get_fixed(&cursor, 1));
    TEST_ASSERT_EQUAL_UINT64(0, ta__get_varint(&cursor));
    TEST_ASSERT_EQUAL_PTR(bytes, cursor.at);
}

static void test_get_bytes_goes_on_behind_them_to_the_last(void)
{
    static const uint8_t bytes[] = {1, 2, 3};
    struct ta__cursor cursor = cursor_over(bytes, sizeof bytes);

    TEST_ASSERT_EQUAL_PTR(bytes, ta__get_bytes(&cursor, 1));
    TEST_ASSERT_EQUAL_PTR(bytes + 1, ta__get_bytes(&cursor, 2));
    TEST_ASSERT_EQUAL_PTR(bytes + 3, ta__get_bytes(&cursor, 0));
    TEST_ASSERT_FALSE(cursor.failed);
}

static void test_get_bytes_huge_length_fails_without_overflow(void)
{
    static const uint8_t bytes[] = {1, 2, 3};
    struct ta__cursor cursor = cursor_over(bytes, sizeof bytes);

    TEST_ASSERT_NULL(ta__get_bytes(&cursor, UINT64_MAX));
    TEST_ASSERT_TRUE(cursor.failed);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_varint_every_bit_width_round_trips);
    RUN_TEST(test_varint_cut_short_fails_at_every_length);
    RUN_TEST(test_varint_beyond_64_bits_fails);
    RUN_TEST(test_zigzag_small_magnitudes_become_small_numbers);
    RUN_TEST(test_fixed_integers_are_little_endian_and_round_trip);
    RUN_TEST(test_cursor_once_failed_answers_nothing_more);
    RUN_TEST(test_varint_takes_as_few_bytes_as_can_be);
    RUN_TEST(test_decimal_digits_are_put_with_their_end);
    RUN_TEST(test_fill_gives_what_both_know_and_zeros_behind);
    RUN_TEST(test_get_bytes_goes_on_behind_them_to_the_last);
    RUN_TEST(test_get_bytes_huge_length_fails_without_overflow);
    return UNITY_END();
}
