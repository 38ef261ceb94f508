/* test_live_blocks.c: the list of every live block (snapshot/write/live_blocks.h), from walks that meet the blocks in any order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "alloc/alloc.h"
#include "base/memory.h"
#include "snapshot/write/live_blocks.h"
#include "tests/support/random.h"

/* ---- what the walk meets, and the counters of that moment ---- */

enum { MANY = 5000, LEAVES = 700 };

static struct ta__source_block walked[MANY];
static size_t walked_count;
static struct ta__source_counts counted[LEAVES];
static uint64_t random_state;

void ta__blocks_visit(void (*visit)(const struct ta__source_block *block, void *context), void *context)
{
    for (size_t i = 0; i < walked_count; i++)
        visit(&walked[i], context);
}

static void fold(const struct ta__source *source, uint32_t first, uint32_t n, struct ta__source_counts *counts)
{
    (void)source;
    memcpy(counts, counted + first, n * sizeof *counts);
}

static struct ta__source source;

static void open_source(void)
{
    source = (struct ta__source){.fold = fold, .leaf_count = LEAVES};
}

void setUp(void)
{
    random_state = 4711;
    walked_count = 0;
    open_source();
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta__live_blocks_free(&source);
}

/* The size tells blocks of one address apart. */
static void walk(const uint64_t *addresses, size_t count)
{
    walked_count = count;
    for (size_t i = 0; i < count; i++)
        walked[i] = (struct ta__source_block){.address = addresses[i], .size = i + 1, .leaf = (uint32_t)i % 7};
}

static int by_address(const void *one, const void *other)
{
    const struct ta__source_block *a = one, *b = other;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->size < b->size ? -1 : a->size > b->size; /* those that came first come first */
}

/* What was walked is listed, whole and in the order of addresses. */
static void assert_sorted(const char *what)
{
    static struct ta__source_block expected[MANY];
    open_source();
    memcpy(expected, walked, sizeof expected);
    qsort(expected, walked_count, sizeof *expected, by_address);
    ta__live_blocks_take(&source);
    TEST_ASSERT_EQUAL_MESSAGE(1, source.has_blocks, what);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(walked_count, source.block_count, what);
    ta__live_blocks_sort(&source);
    TEST_ASSERT_EQUAL_MESSAGE(1, source.has_blocks, what);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(walked_count, source.block_count, what);
    for (size_t i = 0; i < walked_count; i++) {
        TEST_ASSERT_EQUAL_HEX64_MESSAGE(expected[i].address, source.blocks[i].address, what);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(expected[i].size, source.blocks[i].size, what);
        TEST_ASSERT_EQUAL_UINT32_MESSAGE(expected[i].leaf, source.blocks[i].leaf, what);
    }
    ta__live_blocks_free(&source);
    TEST_ASSERT_NULL_MESSAGE(source.user, what);
}

/* ---- tests ---- */

/* Every order of few blocks, among them those with two of one address. */
static void test_every_order_of_few_blocks_is_sorted(void)
{
    enum { MOST = 6 };
    for (size_t count = 0; count <= MOST; count++) {
        unsigned all = 1;
        for (size_t i = 0; i < count; i++)
            all *= (unsigned)count;
        for (unsigned order = 0; order < all; order++) {
            uint64_t addresses[MOST];
            char what[64];
            unsigned rest = order;
            for (size_t i = 0; i < count; i++, rest /= (unsigned)count)
                addresses[i] = 0x1000 + rest % (unsigned)count * 0x10;
            snprintf(what, sizeof what, "order %u of %zu", order, count);
            walk(addresses, count);
            assert_sorted(what);
            if (count == MOST)
                order += 6; /* not all of 46656 */
        }
    }
}

/* As walks of several arenas meet them: each ascending, the arenas in any order. */
static void test_runs_of_any_number_and_length_are_merged(void)
{
    static uint64_t addresses[MANY];
    for (size_t runs = 1; runs <= 33; runs++) {
        char what[32];
        size_t count = 0;
        for (size_t run = 0; run < runs; run++) {
            uint64_t address = 0x10000 + random_below(&random_state, 50) * 0x1000;
            size_t length = 1 + random_below(&random_state, 40);
            for (size_t i = 0; i < length; i++, address += 16 + random_below(&random_state, 4096))
                addresses[count++] = address;
        }
        snprintf(what, sizeof what, "%zu runs", runs);
        walk(addresses, count);
        assert_sorted(what);
    }
    for (size_t i = 0; i < MANY; i++)
        addresses[i] = 0x100000 - 16 * i;
    walk(addresses, MANY);
    assert_sorted("descending");
}

/* What is in order already is neither copied nor moved. */
static void test_blocks_in_order_stay_where_they_are(void)
{
    static const uint64_t ascending[] = {0x10, 0x20, 0x20, 0x40};
    walk(ascending, 4);
    ta__live_blocks_take(&source);
    const struct ta__source_block *before = source.blocks;
    ta__memory_inject_failure(1, 1000); /* none is asked for */
    ta__live_blocks_sort(&source);
    TEST_ASSERT_EQUAL_PTR(before, source.blocks);
    TEST_ASSERT_EQUAL(1, source.has_blocks);
}

static void test_the_counters_stay_those_of_the_moment(void)
{
    struct ta__source_counts seen[LEAVES];
    static const uint64_t one[] = {0x10};
    for (uint32_t i = 0; i < LEAVES; i++)
        counted[i] = (struct ta__source_counts){.allocated_blocks = i, .allocated_bytes = 100 * i};
    walk(one, 1);
    ta__live_blocks_take(&source);
    memset(counted, 0xee, sizeof counted);
    memset(seen, 0, sizeof seen);
    source.fold(&source, 0, LEAVES, seen);
    for (uint32_t i = 0; i < LEAVES; i++)
        TEST_ASSERT_EQUAL_UINT64(100 * i, seen[i].allocated_bytes);
    memset(seen, 0, sizeof seen);
    source.fold(&source, 50, 3, seen);
    TEST_ASSERT_EQUAL_UINT64(50, seen[0].allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(5200, seen[2].allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, seen[3].allocated_blocks);
}

/* The n-th request for memory is refused, for every n: then there are no blocks, or all, and nothing stays mapped. */
static void test_without_memory_there_are_no_blocks(void)
{
    static uint64_t addresses[MANY];
    unsigned long refused = 0, sorted = 0;
    for (size_t i = 0; i < MANY; i++)
        addresses[i] = 0x10000 + i * 7919 % MANY * 16;
    walk(addresses, MANY);
    for (long failing = 1;; failing++) {
        uint64_t mapped = ta__memory_mapped();
        ta__memory_inject_failure(failing, 0);
        ta__live_blocks_take(&source);
        if (!source.has_blocks) {
            refused++;
            TEST_ASSERT_TRUE(source.fold == fold);
            TEST_ASSERT_NULL(source.user);
            TEST_ASSERT_EQUAL_UINT64(0, source.block_count);
        } else {
            ta__live_blocks_sort(&source);
            sorted += source.has_blocks == 0;
        }
        int is_whole = source.has_blocks;
        ta__live_blocks_free(&source);
        ta__memory_inject_failure(0, 0);
        TEST_ASSERT_EQUAL_UINT64(mapped, ta__memory_mapped());
        open_source();
        if (is_whole)
            break;
    }
    TEST_ASSERT_GREATER_THAN(2, refused); /* for itself, for blocks, for counters */
    TEST_ASSERT_EQUAL(1, sorted);         /* for the second list */
}

static void test_nothing_taken_is_nothing_to_sort_or_free(void)
{
    ta__live_blocks_sort(&source);
    ta__live_blocks_free(&source);
    TEST_ASSERT_EQUAL(0, source.has_blocks);
    open_source();
    ta__live_blocks_take(&source);
    ta__live_blocks_sort(&source);
    TEST_ASSERT_EQUAL(1, source.has_blocks);
    TEST_ASSERT_EQUAL_UINT64(0, source.block_count);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_every_order_of_few_blocks_is_sorted);
    RUN_TEST(test_runs_of_any_number_and_length_are_merged);
    RUN_TEST(test_blocks_in_order_stay_where_they_are);
    RUN_TEST(test_the_counters_stay_those_of_the_moment);
    RUN_TEST(test_without_memory_there_are_no_blocks);
    RUN_TEST(test_nothing_taken_is_nothing_to_sort_or_free);
    return UNITY_END();
}
