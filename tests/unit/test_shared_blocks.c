/* test_shared_blocks.c: the lists of blocks of domains that share a heap (alloc/domains/shared_blocks.h): a domain's list
 * has what it has, in whatever order blocks come and go, nodes are used again, and nobody is led astray by what is written
 * behind a block. */
#include <stdint.h>
#include <string.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "alloc/domains/domain_table.h"
#include "alloc/domains/shared_blocks.h"
#include "base/memory.h"
#include "tests/support/random.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

enum { SIZE = 20, ROOM = SIZE + 8, MANY = 9000 };

static char blocks[MANY][ROOM];
static uint32_t one, another, alone;

static uint32_t made(uint32_t number, uint32_t is_shared)
{
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(number, ""));
    uint32_t index = (uint32_t)ta__domain_known(number);
    ta__domain_at(index)->is_shared = is_shared;
    return index;
}

static struct ta__shut shut; /* as in an operation: the lock of the lists wants that */

void setUp(void)
{
    shut = ta__shut();
}

void tearDown(void)
{
    ta__open(&shut);
    ta__memory_inject_failure(0, 0);
}

static uint32_t *first_of(uint32_t index)
{
    return &ta__domain_at(index)->first_block;
}

/* Takes the list apart; how many of `count` blocks were on it, each once and none else. -1: there was another. */
static int take_all(uint32_t index, int count)
{
    static char seen[MANY];
    int taken = 0;
    memset(seen, 0, sizeof seen);
    for (char *user; (user = ta__shared_take(first_of(index))) != NULL; taken++) {
        ptrdiff_t at = (user - blocks[0]) / ROOM;
        if (at < 0 || at >= count || user != blocks[at] || seen[at]++)
            return -1;
    }
    TEST_ASSERT_EQUAL_UINT32(0, *first_of(index));
    return taken;
}

static void test_only_what_shares_a_heap_is_listed(void)
{
    TEST_ASSERT_EQUAL_size_t(sizeof(uint32_t), ta__shared_extra(one));
    TEST_ASSERT_EQUAL_size_t(0, ta__shared_extra(alone));
    ta__shared_block_in(alone, blocks[0], SIZE);
    TEST_ASSERT_EQUAL_UINT32(0, *first_of(alone));
    memset(blocks[0], 7, ROOM);
    ta__shared_move(alone, blocks[0], SIZE, SIZE - 4);
    ta__shared_block_out(alone, blocks[0], SIZE);
    TEST_ASSERT_EACH_EQUAL_CHAR(7, blocks[0], ROOM);
}

static void test_each_domain_has_its_own_blocks(void)
{
    for (int i = 0; i < 100; i++)
        ta__shared_block_in(i % 3 == 0 ? another : one, blocks[i], SIZE);
    TEST_ASSERT_EQUAL_INT(34, take_all(another, 100));
    TEST_ASSERT_EQUAL_INT(66, take_all(one, 100));
    TEST_ASSERT_NULL(ta__shared_take(first_of(one)));
}

/* From the beginning of the list, from its end, from the middle, until nothing is left. */
static void take_out_by_steps_of(int step, int count)
{
    for (int i = 0; i < count; i++)
        ta__shared_block_in(one, blocks[i], SIZE);
    int left = count;
    for (int i = 0, at = 0; i < count / 2; i++, at = (at + step) % count, left--)
        ta__shared_block_out(one, blocks[at], SIZE);
    TEST_ASSERT_EQUAL_INT(left, take_all(one, count));
}

static void test_blocks_go_in_any_order(void)
{
    static const int steps[] = {1, 2, 7, 30, 59, 60}; /* of 61 */
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        take_out_by_steps_of(steps[i], 61);
    for (int i = 0; i < 5; i++)
        ta__shared_block_in(one, blocks[i], SIZE);
    for (int i = 0; i < 5; i++)
        ta__shared_block_out(one, blocks[i], SIZE);
    TEST_ASSERT_EQUAL_UINT32(0, *first_of(one));
}

/* However long that goes on, nothing more is mapped than the most at once took. */
static void test_nodes_are_used_again(void)
{
    for (int i = 0; i < MANY; i++)
        ta__shared_block_in(one, blocks[i], SIZE);
    size_t mapped = ta__memory_mapped();
    uint64_t random = 3;
    for (int round = 0; round < 20 * MANY; round++) {
        char *block = blocks[random_below(&random, MANY)];
        ta__shared_block_out(one, block, SIZE);
        ta__shared_block_in(one, block, SIZE);
    }
    TEST_ASSERT_EQUAL_INT(MANY, take_all(one, MANY));
    for (int i = 0; i < MANY; i++)
        ta__shared_block_in(another, blocks[i], SIZE);
    TEST_ASSERT_EQUAL_INT(MANY, take_all(another, MANY));
    TEST_ASSERT_EQUAL_size_t(mapped, ta__memory_mapped());
}

static void test_a_block_that_changes_its_size_is_still_found(void)
{
    for (int i = 0; i < 10; i++)
        ta__shared_block_in(one, blocks[i], SIZE);
    ta__shared_move(one, blocks[3], SIZE, SIZE - 9);
    memset(blocks[3] + SIZE, 0, 4); /* what stood there is the user's by now */
    ta__shared_move(one, blocks[4], SIZE, SIZE + 3);
    memset(blocks[4], 0xFF, SIZE + 3);
    ta__shared_block_out(one, blocks[3], SIZE - 9);
    ta__shared_block_out(one, blocks[4], SIZE + 3);
    TEST_ASSERT_EQUAL_INT(8, take_all(one, 10));
}

/* Who writes behind the end of a block damages no list. */
static void test_a_number_that_was_written_over_is_not_believed(void)
{
    enum { BLOCKS = 10 };
    for (int i = 0; i < BLOCKS; i++)
        ta__shared_block_in(one, blocks[i], SIZE);
    static const uint32_t numbers[] = {0, UINT32_MAX, 1 << 30, 4096, 4095};
    uint32_t of_first;
    memcpy(&of_first, blocks[1] + SIZE, sizeof of_first);
    for (int i = 0; i < 5; i++) {
        memcpy(blocks[0] + SIZE, &numbers[i], sizeof numbers[i]);
        ta__shared_block_out(one, blocks[0], SIZE);
    }
    memcpy(blocks[0] + SIZE, &of_first, sizeof of_first); /* another block's */
    ta__shared_block_out(one, blocks[0], SIZE);
    TEST_ASSERT_EQUAL_INT(BLOCKS, take_all(one, BLOCKS));
}

/* A block that no node is found for is listed nowhere; it goes as any other. */
static void test_without_memory_blocks_are_not_listed(void)
{
    int listed = 0;
    ta__memory_inject_failure(1, 1);
    for (int i = 0; i < MANY; i++)
        ta__shared_block_in(one, blocks[i], SIZE);
    ta__memory_inject_failure(0, 0);
    for (int i = 0; i < MANY; i++) {
        uint32_t number;
        memcpy(&number, blocks[i] + SIZE, sizeof number);
        listed += number != 0;
    }
    TEST_ASSERT_LESS_THAN_INT(MANY, listed);
    ta__shared_block_out(one, blocks[MANY - 1], SIZE);
    TEST_ASSERT_EQUAL_INT(listed, take_all(one, MANY));
    ta__shared_block_in(one, blocks[0], SIZE); /* and there is memory again */
    TEST_ASSERT_EQUAL_INT(1, take_all(one, MANY));
}

int main(void)
{
    UNITY_BEGIN();
    one = made(1, 1);
    another = made(2, 1);
    alone = made(3, 0);
    RUN_TEST(test_without_memory_blocks_are_not_listed); /* first: there is nothing yet */
    RUN_TEST(test_only_what_shares_a_heap_is_listed);
    RUN_TEST(test_each_domain_has_its_own_blocks);
    RUN_TEST(test_blocks_go_in_any_order);
    RUN_TEST(test_a_block_that_changes_its_size_is_still_found);
    RUN_TEST(test_a_number_that_was_written_over_is_not_believed);
    RUN_TEST(test_nodes_are_used_again);
    return UNITY_END();
}
