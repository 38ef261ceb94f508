/* test_base_index.c: an index finds every row and no other, however rows collide, and survives a lack of memory. */
#include "base/index.h"

#include <string.h>

#include <unity.h>

#include "base/hash.h"
#include "base/memory.h"
#include "tests/support/random.h"

enum { ROWS_MAX = 20000 };

static uint64_t rows[ROWS_MAX];
static uint64_t hash_mask; /* few bits: many rows collide */
static struct ta__index idx;

void setUp(void)
{
    memset(&idx, 0, sizeof idx);
    hash_mask = UINT64_MAX;
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta__index_free(&idx);
}

static uint64_t hash_of(const void *table, uint32_t row)
{
    return ta__hash_word(((const uint64_t *)table)[row]) & hash_mask;
}

static int is_same(const void *table, uint32_t row, const void *wanted)
{
    return ((const uint64_t *)table)[row] == *(const uint64_t *)wanted;
}

static uint32_t *find(uint64_t value)
{
    return ta__index_find(&idx, ta__hash_word(value) & hash_mask, is_same, rows, &value);
}

/* The row of a value, which is added when it is new. */
static uint32_t intern(uint64_t value, size_t *count)
{
    TEST_ASSERT_EQUAL_INT(0, ta__index_reserve(&idx, *count, hash_of, rows));
    uint32_t *slot = find(value);
    if (*slot == 0) {
        rows[(*count)++] = value;
        *slot = (uint32_t)*count;
    }
    return *slot - 1;
}

static void check_interning(uint64_t values)
{
    uint64_t state = random_seed();
    size_t count = 0;
    for (int i = 0; i < ROWS_MAX; i++) {
        uint64_t value = random_below(&state, values);
        uint32_t row = intern(value, &count);
        TEST_ASSERT_EQUAL_UINT64(value, rows[row]);
    }
    for (size_t i = 0; i < count; i++)
        TEST_ASSERT_EQUAL_UINT32(i + 1, *find(rows[i])); /* each value has one row */
    TEST_ASSERT_EQUAL_UINT32(0, *find(values));          /* what was never added is not found */
    TEST_ASSERT_TRUE(count * 2 <= idx.slot_count);
}

static void test_index_gives_each_value_one_row(void)
{
    check_interning(5000);
    ta__index_free(&idx);
    check_interning((uint64_t)1 << 40);
}

static void test_index_with_colliding_hashes_still_tells_rows_apart(void)
{
    hash_mask = 15;
    check_interning(300);
}

static void test_index_that_cannot_grow_stays_as_it_was(void)
{
    size_t count = 0;
    while (intern(count, &count) + 1 < 512)
        continue;
    struct ta__index before = idx;
    TEST_ASSERT_EQUAL_size_t(1024, before.slot_count); /* half full, and no fuller */

    ta__memory_inject_failure(1, 1);

    TEST_ASSERT_EQUAL_INT(-1, ta__index_reserve(&idx, count, hash_of, rows));
    TEST_ASSERT_EQUAL_MEMORY(&before, &idx, sizeof idx);
    for (uint64_t value = 0; value < count; value++)
        TEST_ASSERT_EQUAL_UINT32(value + 1, *find(value));
    ta__memory_inject_failure(0, 0);
    TEST_ASSERT_EQUAL_UINT32(512, intern(UINT64_MAX, &count));
}

static void test_index_gives_all_its_memory_back(void)
{
    size_t before = ta__memory_mapped(), count = 0;
    for (uint64_t value = 0; value < 3000; value++)
        intern(value, &count);
    TEST_ASSERT_TRUE(ta__memory_mapped() > before);

    ta__index_free(&idx);

    TEST_ASSERT_EQUAL_size_t(before, ta__memory_mapped());
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_index_gives_each_value_one_row);
    RUN_TEST(test_index_with_colliding_hashes_still_tells_rows_apart);
    RUN_TEST(test_index_that_cannot_grow_stays_as_it_was);
    RUN_TEST(test_index_gives_all_its_memory_back);
    return UNITY_END();
}
