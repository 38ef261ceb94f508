/* test_emergency.c: emergency memory by itself — how large blocks are, which requests it refuses, what is used again, what
 * a walk finds. What handlers get of it: test_handlers.c. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "base/memory.h"
#include "tracealloc.h"

enum { HEAD = 32, GRAIN = 32, SMALLEST = 64, LARGEST = 32 << 20, REGION = 64 << 20 };

void setUp(void)
{
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta_stop();
}

static uint64_t fact(const char *name)
{
    for (const struct ta__fact *at = ta__facts_emergency; at->name[0] != '\0'; at++)
        if (strcmp(at->name, name) == 0)
            return at->value;
    TEST_FAIL_MESSAGE(name);
    return 0;
}

static uintptr_t region(void)
{
    return *(const uintptr_t *)(uintptr_t)fact("emergency.start");
}

/* Bytes cut into blocks so far. */
static size_t used(void)
{
    return *(const size_t *)(uintptr_t)fact("emergency.used");
}

static void *get(size_t size)
{
    return ta__emergency_allocate(size, 16, 0);
}

static void expect_bytes(const unsigned char *block, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != value)
            TEST_FAIL_MESSAGE("a byte of the block is another's");
}

static void count(const struct ta__source_block *block, void *found)
{
    (void)block;
    ++*(size_t *)found;
}

static size_t visited(void)
{
    size_t found = 0;
    ta__emergency_visit(count, &found);
    return found;
}

/* ---- no memory ---------------------------------------------------------------------------------------------------- */

/* The first of all tests: nothing has been mapped. */
static void test_without_memory_requests_are_refused_until_there_is_some(void)
{
    static char somewhere[64];
    TEST_ASSERT_EQUAL_size_t(0, visited());
    TEST_ASSERT_FALSE(ta__emergency_owns(somewhere));
    TEST_ASSERT_FALSE(ta__emergency_owns((void *)64));
    if (region() != 0)
        TEST_IGNORE_MESSAGE("something has asked for it before main");
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    ta_free(ta_malloc(1)); /* the thread is known */
    ta__memory_inject_failure(1, 1);
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
    errno = 0;
    void *refused = ta_malloc(100);
    int error = errno;
    void *zeroed = ta_calloc(3, 100), *aligned = ta_aligned_alloc(64, 100);
    ta__self->safepoint.view = view;
    ta__memory_inject_failure(0, 0);
    TEST_ASSERT_NULL(refused);
    TEST_ASSERT_EQUAL_INT(ENOMEM, error);
    TEST_ASSERT_NULL(zeroed);
    TEST_ASSERT_NULL(aligned);
    TEST_ASSERT_EQUAL_size_t(0, visited());
    void *block = get((size_t)3 << 20); /* a size that no other test has */
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_TRUE(ta__emergency_owns(block));
    ta__emergency_free(block);
}

/* ---- sizes -------------------------------------------------------------------------------------------------------- */

/* A block of this many bytes, which is the first of its size; what was cut for it. */
static size_t cut_for(unsigned char **block, size_t size, unsigned char value)
{
    size_t before = used();
    *block = get(size);
    TEST_ASSERT_NOT_NULL(*block);
    TEST_ASSERT_EQUAL_size_t(size, ta__emergency_size(*block));
    TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)*block % 16);
    memset(*block, value, size);
    return used() - before;
}

/* Head and bytes fit, and no more than a quarter is wasted, but what makes whole grains. */
static void expect_cut(size_t cut, size_t size)
{
    size_t needed = HEAD + size > SMALLEST ? HEAD + size : SMALLEST;
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(needed, cut);
    TEST_ASSERT_LESS_THAN_size_t(needed + needed / 4 + GRAIN, cut);
    TEST_ASSERT_EQUAL_size_t(0, cut % GRAIN);
}

/* All sizes up to some hundred, and at both sides of where classes end: four in each doubling. */
static void test_blocks_have_room_and_waste_little(void)
{
    enum { SMALL = 600, STEPS = 5, SHIFTS = 9 };
    static unsigned char *blocks[SMALL + 1 + SHIFTS * STEPS * 3];
    static size_t sizes[sizeof blocks / sizeof *blocks];
    size_t n = 0;
    for (size_t size = 0; size <= SMALL; size++)
        sizes[n++] = size;
    for (size_t shift = 0; shift < SHIFTS; shift++)
        for (size_t quarter = 4; quarter < 4 + STEPS; quarter++)
            for (size_t more = 0; more < 3; more++)
                sizes[n++] = (quarter << (shift + 8)) - HEAD + more - 1;
    for (size_t i = 0; i < n; i++)
        expect_cut(cut_for(&blocks[i], sizes[i], (unsigned char)i), sizes[i]);
    size_t before = used();
    for (size_t i = 0; i < n; i++)
        expect_bytes(blocks[i], sizes[i], (unsigned char)i); /* nobody has what is another's */
    TEST_ASSERT_EQUAL_size_t(n, visited());
    for (size_t i = 0; i < n; i++)
        ta__emergency_free(blocks[i]);
    TEST_ASSERT_EQUAL_size_t(0, visited());
    for (size_t i = 0; i < n; i++)
        TEST_ASSERT_NOT_NULL(blocks[i] = get(sizes[n - 1 - i]));
    TEST_ASSERT_EQUAL_size_t(before, used()); /* what was freed is used again */
    for (size_t i = 0; i < n; i++)
        ta__emergency_free(blocks[i]);
}

/* Who was freed last is the first to come again, and with what it had in it but where zeroes were asked for. */
static void test_a_freed_block_is_the_next_of_its_size(void)
{
    unsigned char *one = get(5000), *other = get(5000);
    memset(one, 1, 5000);
    memset(other, 2, 5000);
    ta__emergency_free(one);
    ta__emergency_free(other);
    unsigned char *zeroed = ta__emergency_allocate(4900, 0, 1);
    TEST_ASSERT_EQUAL_PTR(other, zeroed);
    expect_bytes(zeroed, 4900, 0);
    TEST_ASSERT_EQUAL_PTR(one, get(4900));
    ta__emergency_free(zeroed);
    ta__emergency_free(one);
}

static void test_the_region_has_an_end(void)
{
    void *block = get(1);
    TEST_ASSERT_TRUE(ta__emergency_owns((void *)region()));
    TEST_ASSERT_TRUE(ta__emergency_owns((void *)(region() + REGION - 1)));
    TEST_ASSERT_FALSE(ta__emergency_owns((void *)(region() - 1)));
    TEST_ASSERT_FALSE(ta__emergency_owns((void *)(region() + REGION)));
    ta__emergency_free(block);
}

/* ---- alignments --------------------------------------------------------------------------------------------------- */

struct found {
    uint64_t address, size;
    int times, has_leaf;
};

static void look_for(const struct ta__source_block *block, void *wanted)
{
    struct found *found = wanted;
    if (block->address != found->address)
        return;
    found->times++;
    found->size = block->size;
    found->has_leaf = block->leaf != 0;
}

static void expect_visited(const void *block, size_t size, int times)
{
    struct found found = {.address = (uintptr_t)block};
    ta__emergency_visit(look_for, &found);
    TEST_ASSERT_EQUAL_INT(times, found.times);
    TEST_ASSERT_EQUAL_UINT64(times != 0 ? size : 0, found.size);
    TEST_ASSERT_FALSE(found.has_leaf);
}

/* Wherever within the block the alignment puts the user's bytes; also where another's bytes began before. */
static void test_a_walk_finds_each_live_block_where_its_user_has_it(void)
{
    enum { ALIGNMENTS = 11, ROUNDS = 6, BLOCKS = ALIGNMENTS * ROUNDS };
    unsigned char *blocks[BLOCKS];
    for (size_t pass = 0; pass < 3; pass++) { /* of the sizes that were there in the pass before, in another order */
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t alignment = (size_t)4 << (i * (pass + 1)) % ALIGNMENTS;
            blocks[i] = ta__emergency_allocate(100 + i, alignment, 0);
            TEST_ASSERT_NOT_NULL(blocks[i]);
            TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)blocks[i] % alignment);
            TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)blocks[i] % 16);
            memset(blocks[i], (int)i, 100 + i);
        }
        TEST_ASSERT_EQUAL_size_t(BLOCKS, visited());
        for (size_t i = 0; i < BLOCKS; i++) {
            expect_visited(blocks[i], 100 + i, 1);
            expect_bytes(blocks[i], 100 + i, (unsigned char)i);
            TEST_ASSERT_EQUAL_size_t(100 + i, ta__emergency_size(blocks[i]));
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            ta__emergency_free(blocks[i]);
            expect_visited(blocks[i], 0, 0);
        }
    }
}

static void test_what_is_too_large_is_refused(void)
{
    TEST_ASSERT_NULL(get(SIZE_MAX));
    TEST_ASSERT_NULL(get(SIZE_MAX - HEAD));
    TEST_ASSERT_NULL(get(LARGEST - HEAD + 1));
    TEST_ASSERT_NULL(ta__emergency_allocate(1, (size_t)LARGEST, 0));
    TEST_ASSERT_NULL(ta__emergency_allocate(1, (size_t)1 << 63, 0));
    TEST_ASSERT_NULL(ta__emergency_allocate(SIZE_MAX / 2, (size_t)1 << 63, 0));
    TEST_ASSERT_NULL(ta__emergency_allocate((size_t)16 << 20, (size_t)16 << 20, 0));
    unsigned char *block = ta__emergency_allocate(((size_t)16 << 20) - HEAD, (size_t)16 << 20, 0);
    TEST_ASSERT_NOT_NULL(block); /* the largest of all */
    TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)block % ((size_t)16 << 20));
    block[((size_t)16 << 20) - HEAD - 1] = 1;
    ta__emergency_free(block);
    block = get(LARGEST - HEAD);
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_NULL(get(LARGEST - HEAD)); /* there is not another one */
    ta__emergency_free(block);
}

/* ---- what is no block --------------------------------------------------------------------------------------------- */

static uint64_t invalid_frees(void)
{
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    return health.invalid_frees;
}

static void expect_no_block(void *address, uint64_t back)
{
    uint64_t before = invalid_frees();
    if (back != UINT64_MAX)
        memcpy((char *)address - 8, &back, sizeof back);
    TEST_ASSERT_EQUAL_size_t(0, ta__emergency_size(address));
    ta__emergency_free(address);
    TEST_ASSERT_EQUAL_UINT64(before + 1, invalid_frees());
}

/* Whatever stands in front of an address: a block is freed by its own alone, once. */
static void test_only_a_live_block_is_freed(void)
{
    char *first = get(1000), *block = get(1000);
    memset(block, 0, 1000);
    expect_no_block((void *)region(), UINT64_MAX);
    expect_no_block((void *)(region() + 16), UINT64_MAX);
    expect_no_block(block + 8, (uint64_t)(HEAD + 8));
    expect_no_block(block + 16, (uint64_t)(HEAD + 16 + 16));
    expect_no_block(block + 64, (uint64_t)(block + 64 - (char *)region() + 64));
    expect_no_block(block + 64, UINT64_MAX - 63);
    expect_no_block(block + 64, 0);
    expect_no_block(block + 64, 16);
    expect_no_block(block + 64, 64); /* of bytes that are no head */
    TEST_ASSERT_EQUAL_size_t(1000, ta__emergency_size(block));
    ta__emergency_free(block);
    expect_no_block(block, UINT64_MAX);
    TEST_ASSERT_EQUAL_size_t(1000, ta__emergency_size(first));
    ta__emergency_free(first);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_without_memory_requests_are_refused_until_there_is_some);
    RUN_TEST(test_blocks_have_room_and_waste_little);
    RUN_TEST(test_a_freed_block_is_the_next_of_its_size);
    RUN_TEST(test_the_region_has_an_end);
    RUN_TEST(test_a_walk_finds_each_live_block_where_its_user_has_it);
    RUN_TEST(test_only_a_live_block_is_freed);
    RUN_TEST(test_what_is_too_large_is_refused);
    return UNITY_END();
}
