/* test_base_message.c: a line on a descriptor is whole, bounded, and leaves errno alone. */
#include "base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <unity.h>

static int reading_end;
static int writing_end;

/* What the next calls of write do: E is interrupted, 0 takes nothing, a digit takes so many bytes; then all. */
static const char *manner = "";
static int writes;

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    char how = *manner;
    writes++;
    if (how == '\0')
        return syscall(SYS_write, descriptor, bytes, count);
    manner++;
    if (how == 'E')
        return errno = EINTR, -1;
    return how == '0' ? 0 : syscall(SYS_write, descriptor, bytes, (size_t)(how - '0'));
}

void setUp(void)
{
    int ends[2];
    TEST_ASSERT_EQUAL_INT(0, pipe(ends));
    reading_end = ends[0];
    writing_end = ends[1];
}

void tearDown(void)
{
    close(reading_end);
    close(writing_end);
}

/* What arrived on the pipe, as text. */
static const char *received(void)
{
    static char text[2 * TA__MESSAGE_MAX];
    ssize_t length = read(reading_end, text, sizeof text - 1);
    TEST_ASSERT_GREATER_THAN_INT(0, (int)length);
    text[length] = '\0';
    return text;
}

static void test_message_parts_make_one_line(void)
{
    struct ta__message message;
    ta__message_begin(&message);
    ta__message_text(&message, "block ");
    ta__message_hex(&message, 0xbeef00);
    ta__message_text(&message, " of ");
    ta__message_number(&message, 1234567890123ull);
    ta__message_text(&message, " and ");
    ta__message_signed(&message, -5);
    ta__message_span(&message, " bytes!!", 6);

    ta__message_send_to(&message, writing_end);

    TEST_ASSERT_EQUAL_STRING("tracealloc: block 0xbeef00 of 1234567890123 and -5 bytes\n", received());
}

static void test_message_extreme_numbers_are_exact(void)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    ta__message_number(&message, 0);
    ta__message_text(&message, " ");
    ta__message_number(&message, UINT64_MAX);
    ta__message_text(&message, " ");
    ta__message_signed(&message, INT64_MIN);
    ta__message_text(&message, " ");
    ta__message_hex(&message, UINT64_MAX);

    ta__message_send_to(&message, writing_end);

    TEST_ASSERT_EQUAL_STRING("0 18446744073709551615 -9223372036854775808 0xffffffffffffffff\n", received());
}

static void test_message_too_long_is_cut_and_still_one_line(void)
{
    struct ta__message message;
    ta__message_begin(&message);
    for (int i = 0; i < 200; i++)
        ta__message_text(&message, "0123456789");

    ta__message_send_to(&message, writing_end);

    const char *text = received();
    TEST_ASSERT_EQUAL_size_t(TA__MESSAGE_MAX, strlen(text));
    TEST_ASSERT_EQUAL_PTR(text + TA__MESSAGE_MAX - 1, strchr(text, '\n'));
}

static void test_message_is_sent_on_whatever_becomes_of_its_pieces(void)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    ta__message_text(&message, "abcdefgh");
    errno = 55;
    manner = "E3EE1";
    writes = 0;
    ta__message_send_to(&message, writing_end);
    TEST_ASSERT_EQUAL_STRING("abcdefgh\n", received());
    TEST_ASSERT_EQUAL_INT(6, writes);
    manner = "2E0";
    writes = 0;
    ta__message_send_to(&message, writing_end);
    TEST_ASSERT_EQUAL_STRING("ab", received()); /* who takes nothing is not asked for ever */
    TEST_ASSERT_EQUAL_INT(3, writes);
    TEST_ASSERT_EQUAL_INT(55, errno);
}

static void test_message_begins_anew_and_counts_things(void)
{
    struct ta__message message;
    ta__message_begin(&message);
    ta__message_begin_plain(&message);
    for (uint64_t number = 0; number < 3; number++) {
        ta__message_count(&message, number, "leak");
        ta__message_text(&message, ", ");
    }
    ta__message_signed(&message, 0);

    ta__message_send_to(&message, writing_end);

    TEST_ASSERT_EQUAL_STRING("0 leaks, 1 leak, 2 leaks, 0\n", received());
}

static void test_message_size_is_written_as_tracemalloc_does(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B\n"},
        {999, "999 B\n"},
        {10239, "10239 B\n"},
        {10240, "10.0 KiB\n"},
        {12902, "12.6 KiB\n"},
        {10240 + 51, "10.0 KiB\n"},
        {10240 + 55, "10.1 KiB\n"},
        {1024 * 100, "100 KiB\n"},
        {1024 * 100 + 511, "100 KiB\n"},
        {1024 * 100 + 512, "101 KiB\n"},
        {1024 * 10240 - 1, "10240 KiB\n"},
        {1024 * 10240, "10.0 MiB\n"},
        {(uint64_t)5 << 40, "5120 GiB\n"},
        {(uint64_t)20 << 40, "20.0 TiB\n"},
        {(uint64_t)20000 << 40, "20000 TiB\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ta__message message;
        ta__message_begin_plain(&message);
        ta__message_size(&message, cases[i].bytes);
        ta__message_send_to(&message, writing_end);
        TEST_ASSERT_EQUAL_STRING(cases[i].text, received());
    }
}

static void test_message_to_closed_descriptor_is_dropped_and_keeps_errno(void)
{
    struct ta__message message;
    ta__message_begin(&message);
    errno = 55;

    ta__message_send_to(&message, -1);

    TEST_ASSERT_EQUAL_INT(55, errno);
}

static void test_message_line_joins_its_texts_on_descriptor_2(void)
{
    int real_descriptor_2 = dup(2);
    TEST_ASSERT_EQUAL_INT(2, dup2(writing_end, 2));
    ta__message_line("option ", "depth", ": not a number", NULL);
    TEST_ASSERT_EQUAL_INT(2, dup2(real_descriptor_2, 2));
    close(real_descriptor_2);

    TEST_ASSERT_EQUAL_STRING("tracealloc: option depth: not a number\n", received());
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_message_parts_make_one_line);
    RUN_TEST(test_message_extreme_numbers_are_exact);
    RUN_TEST(test_message_too_long_is_cut_and_still_one_line);
    RUN_TEST(test_message_is_sent_on_whatever_becomes_of_its_pieces);
    RUN_TEST(test_message_begins_anew_and_counts_things);
    RUN_TEST(test_message_size_is_written_as_tracemalloc_does);
    RUN_TEST(test_message_to_closed_descriptor_is_dropped_and_keeps_errno);
    RUN_TEST(test_message_line_joins_its_texts_on_descriptor_2);
    return UNITY_END();
}
