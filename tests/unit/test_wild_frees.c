/* test_wild_frees.c: how many wrong pointers look like blocks, out of ten million of each kind.
 *
 * The header is asked, as free asks it; nothing is freed, because what passes would do harm. docs/decisions/0013 says what
 * the chances are, this says that they hold: of those that are certain not one may pass. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "tests/support/random.h"
#include "tracealloc.h"

enum { TRIED = 10000000, BLOCK = 320 };

static uint64_t random_state = 20261119;
static struct {
    _Alignas(64) uint64_t words[1 << 16];
} memory;

void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));
    ta_free(ta_malloc(1));
}

void tearDown(void)
{
    ta_stop();
}

/* Would the usual free of a traced block take it, in a page of blocks of so many bytes? */
static int passes(const void *user)
{
    return ta__mark_size_if(user, ta__self->traced_check) < BLOCK && ta__mark_read_leaf(user) >= ta__self->leaf_first;
}

static void *somewhere(void)
{
    return &memory.words[2 + 2 * (random_next(&random_state) % ((1 << 15) - 1))];
}

static long count(uint64_t (*word)(const void *user))
{
    long passed = 0;
    for (long i = 0; i < TRIED; i++) {
        char *user = somewhere();
        uint64_t bytes = word(user);
        memcpy(user - sizeof bytes, &bytes, sizeof bytes);
        passed += passes(user);
    }
    return passed;
}

static uint64_t any_bytes(const void *user)
{
    (void)user;
    return random_next(&random_state);
}

static uint64_t a_pointer(const void *user)
{
    (void)user;
    return random_next(&random_state) >> 17 & ~UINT64_C(7);
}

static uint64_t a_small_number(const void *user)
{
    (void)user;
    return random_next(&random_state) >> 32;
}

static uint64_t text(const void *user)
{
    (void)user;
    return (random_next(&random_state) & UINT64_C(0x1F1F1F1F1F1F1F1F)) | UINT64_C(0x6060606060606060);
}

/* The mark of a live block of this kind, found at another address. */
static uint64_t copied_mark(const void *user)
{
    char *other = somewhere();
    while (other == user)
        other = somewhere();
    ta__header_write(other, 0, ta__self->traced_check, ta__self->leaf_first + 3, 100);
    return ta__mark_of(other);
}

/* A live block one byte of whose mark was overwritten from behind. */
static uint64_t overrun_by_one(const void *user)
{
    ta__header_write((void *)(uintptr_t)user, 0, ta__self->traced_check, ta__self->leaf_first + 3, 100);
    uint64_t mark = ta__mark_of(user);
    return (mark & ~(UINT64_C(0xFF) << 56)) | (random_next(&random_state) % 255 + 1) << 56;
}

/* The same, the first byte: from the end of the block in front. */
static uint64_t overrun_from_in_front(const void *user)
{
    ta__header_write((void *)(uintptr_t)user, 0, ta__self->traced_check, ta__self->leaf_first + 3, 100);
    return ta__mark_of(user) ^ (random_next(&random_state) % 255 + 1);
}

static void expect_at_most(const char *what, uint64_t (*word)(const void *user), long most)
{
    long passed = count(word);
    printf("%-34s %8ld of %d pass\n", what, passed, TRIED);
    TEST_ASSERT_LESS_OR_EQUAL_INT64_MESSAGE(most, passed, what);
}

/* A chance of 2^-16 for the check, times what sizes a block can have: 320 of 2^16. */
static void test_rubbish_hardly_ever_passes(void)
{
    expect_at_most("any eight bytes", any_bytes, 8);
    expect_at_most("letters", text, 0);
}

static void test_what_free_memory_holds_never_passes(void)
{
    expect_at_most("pointers, as a free block's link", a_pointer, 0);
    expect_at_most("numbers below 2^32", a_small_number, 0);
}

/* The same in 12 bits of 16 of the address: a chance of 2^-12. */
static void test_copied_marks_pass_only_where_addresses_are_alike(void)
{
    expect_at_most("a live block's mark, elsewhere", copied_mark, TRIED / 4096 * 12 / 10);
}

/* It makes the size larger than the block: of a block of less than 256 bytes, whatever the byte is, if it is not 0. */
static void test_bytes_written_in_front_are_mostly_seen(void)
{
    expect_at_most("a byte written in front of a block", overrun_by_one, 0);
}

/* Of whatever kind the block is: a string that is one byte too long makes its first byte 0. */
static void test_a_byte_written_from_the_block_in_front_is_always_seen(void)
{
    expect_at_most("a byte written behind a block", overrun_from_in_front, 0);
    for (int i = 0; i < 100000; i++) {
        char *user = somewhere();
        ta__header_write(user, 0, ta__check_of_kind((uint32_t)i & TA__KIND_MASK), ta__self->leaf_first + 3, 100);
        user[-TA__MARK_SIZE] = 0;
        uint64_t mark = ta__mark_of(user);
        TEST_ASSERT_FALSE(ta__mark_is_live(user, mark));
        TEST_ASSERT_NOT_EQUAL_UINT16(ta__check_of_kind(TA__KIND_NEVER), ta__mark_check(user));
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_rubbish_hardly_ever_passes);
    RUN_TEST(test_what_free_memory_holds_never_passes);
    RUN_TEST(test_copied_marks_pass_only_where_addresses_are_alike);
    RUN_TEST(test_bytes_written_in_front_are_mostly_seen);
    RUN_TEST(test_a_byte_written_from_the_block_in_front_is_always_seen);
    return UNITY_END();
}
