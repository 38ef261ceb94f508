/* test_block_around.c: which block an address belongs to (ta__block_around), which pointers are blocks (ta__live_block), and
 * which blocks a walk finds (ta__blocks_visit): at both ends of everything, and with marks that no block has. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "alloc/live_block.h"
#include "base/safepoint.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

enum { BEHIND = 1 << 20 };

static const size_t sizes[] = {0, 1, 24, 100, 128, 1000, 5000, 32768, 40000, 300000, 5 << 20, 40 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
}

void tearDown(void)
{
    ta_stop();
}

/* Where the compiler does not know which sizes it has to do with: these tests look at headers. */
static char *made_at(size_t alignment, size_t size)
{
    char *block = alignment != 0 ? ta_aligned_alloc(alignment, size) : ta_malloc(size);
    __asm__ volatile("" : "+r"(block));
    return block;
}

static char *made(size_t size)
{
    return made_at(0, size);
}

static struct ta__block_around around(const void *address)
{
    struct ta__block_around found;
    memset(&found, 0xA5, sizeof found);
    TEST_ASSERT_EQUAL_INT(1, ta__block_around((uintptr_t)address, &found));
    return found;
}

static int is_within_live(const void *address)
{
    struct ta__block_around found;
    return ta__live_block_around((uintptr_t)address, &found);
}

static int belongs_to_nobody(uintptr_t address)
{
    struct ta__block_around found;
    return !ta__block_around(address, &found) && !ta__live_block_around(address, &found);
}

static void expect_of(const char *block, size_t size, int64_t offset)
{
    struct ta__block_around found = around(block + offset);
    TEST_ASSERT_EQUAL_PTR(block, (void *)found.user);
    TEST_ASSERT_EQUAL_INT64(offset, found.offset);
    TEST_ASSERT_EQUAL_size_t(size, found.size);
    TEST_ASSERT_EQUAL_size_t(ta__page_room(ta__heap_page(block), block), found.room);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(size, found.room);
    TEST_ASSERT_EQUAL_INT(1, found.is_live);
    TEST_ASSERT_EQUAL_INT(0, found.is_plain);
    TEST_ASSERT_EQUAL_INT(offset >= 0 && (size_t)offset < found.room, is_within_live(block + offset));
}

/* ---- addresses ---------------------------------------------------------------------------------------------------- */

static void test_each_byte_of_a_block_is_its_own(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        char *block = made(sizes[i]);
        uint32_t leaf = ta__mark_leaf(ta__mark_of(block));
        size_t room = ta__page_room(ta__heap_page(block), block);
        expect_of(block, sizes[i], 0);
        expect_of(block, sizes[i], 1);
        expect_of(block, sizes[i], (int64_t)sizes[i] / 2);
        expect_of(block, sizes[i], (int64_t)room - 1);
        expect_of(block, sizes[i], -1); /* its header */
        expect_of(block, sizes[i], -TA__MARK_SIZE);
        TEST_ASSERT_EQUAL_UINT32(leaf, around(block).leaf);
        TEST_ASSERT_NOT_EQUAL_UINT32(0, leaf);
        TEST_ASSERT_EQUAL_UINT32(0, around(block).domain);
        ta_free(block);
    }
}

static void test_blocks_of_an_alignment_are_found_by_what_stands_before_them(void)
{
    for (size_t alignment = 32; alignment <= 1 << 20; alignment *= 4)
        for (size_t i = 1; i < SIZES - 1; i++) {
            char *block = made_at(alignment, sizes[i]);
            expect_of(block, sizes[i], 0);
            expect_of(block, sizes[i], (int64_t)sizes[i] - 1);
            expect_of(block, sizes[i], -TA__MARK_SIZE);
            const char *begin = ta__page_block_around(ta__heap_page(block), block);
            if (alignment <= 4096)
                expect_of(block, sizes[i], begin - block);
            ta_free(block);
        }
}

static void test_domains_and_epochs_of_blocks_are_told(void)
{
    char *block = ta_domain_malloc(7, 100);
    TEST_ASSERT_EQUAL_INT(ta__domain_known(7), around(block + 50).domain);
    TEST_ASSERT_NOT_EQUAL_UINT32(0, around(block).leaf);
    ta_clear_traces();
    TEST_ASSERT_EQUAL_UINT32(0, around(block).leaf); /* who asked for it is forgotten */
    expect_of(block, 100, 99);
    ta_stop();
    char *untraced = ta_domain_malloc(7, 100);
    expect_of(untraced, 100, 0);
    TEST_ASSERT_EQUAL_UINT32(0, around(untraced).leaf);
    TEST_ASSERT_EQUAL_INT(ta__domain_known(7), around(untraced).domain);
    ta_free(block);
    ta_free(untraced);
}

static void test_a_freed_block_is_told_as_such(void)
{
    char *kept = made(1000), *block = made(1000);
    size_t room = ta__page_room(ta__heap_page(block), block);
    ta_free(block);
    struct ta__block_around found = around(block + 200);
    TEST_ASSERT_EQUAL_PTR(block, (void *)found.user);
    TEST_ASSERT_EQUAL_INT64(200, found.offset);
    TEST_ASSERT_EQUAL_INT(0, found.is_live);
    TEST_ASSERT_EQUAL_INT(0, found.is_plain);
    TEST_ASSERT_EQUAL_size_t(room, found.size);
    TEST_ASSERT_EQUAL_size_t(room, found.room);
    TEST_ASSERT_EQUAL_UINT32(0, found.leaf);
    TEST_ASSERT_FALSE(is_within_live(block + 200));
    ta_free(kept);
}

static void test_a_plain_block_is_told_by_its_page(void)
{
    ta_stop();
    char *block = made(1000);
    struct ta__block_around found = around(block + 999);
    TEST_ASSERT_EQUAL_PTR(block, (void *)found.user);
    TEST_ASSERT_EQUAL_INT64(999, found.offset);
    TEST_ASSERT_EQUAL_INT(1, found.is_plain);
    TEST_ASSERT_EQUAL_INT(1, found.is_live);
    TEST_ASSERT_EQUAL_size_t(ta_usable_size(block), found.size);
    TEST_ASSERT_EQUAL_size_t(ta_usable_size(block), found.room);
    TEST_ASSERT_EQUAL_UINT32(0, found.leaf);
    TEST_ASSERT_FALSE(is_within_live(block)); /* nobody knows */
    ta_free(block);
}

/* The one with nothing of the allocator's behind it; NULL: there is none. */
static char *last_of_large_blocks(char **blocks, size_t count, size_t size)
{
    char *last = NULL;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = made(size);
        TEST_ASSERT_NOT_NULL(blocks[i]);
        last = blocks[i] > last ? blocks[i] : last;
    }
    char *end = last + ta__page_room(ta__heap_page(last), last);
    for (size_t at = MI_ARENA_SLICE_SIZE; at <= BEHIND + MI_ARENA_SLICE_SIZE; at += MI_ARENA_SLICE_SIZE)
        if (ta__heap_page(end + at) != NULL)
            return NULL;
    return last;
}

static void test_what_is_behind_a_block_has_to_do_with_it_for_a_mebibyte(void)
{
    enum { BLOCKS = 6, BYTES = 9 << 20 };
    char *blocks[BLOCKS];
    char *last = last_of_large_blocks(blocks, BLOCKS, BYTES);
    if (last != NULL) {
        int64_t room = (int64_t)ta__page_room(ta__heap_page(last), last);
        expect_of(last, BYTES, BYTES);
        expect_of(last, BYTES, room);
        expect_of(last, BYTES, room + BEHIND - 1);
        TEST_ASSERT_TRUE(belongs_to_nobody((uintptr_t)last + (uintptr_t)room + BEHIND));
    }
    for (size_t i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);
    if (last == NULL)
        TEST_IGNORE_MESSAGE("something of the allocator's is behind each block");
}

/* Beyond what has been cut of a page, the last block is meant. */
static void test_what_is_behind_the_blocks_of_a_page_is_behind_the_last(void)
{
    char *block = ta_domain_malloc(8, 600); /* of a page that nobody has used */
    const mi_page_t *page = ta__heap_page(block);
    const char *start = (const char *)mi_page_start(page);
    size_t stride = mi_page_block_size(page);
    TEST_ASSERT_LESS_THAN_UINT32(page->reserved, page->capacity);
    struct ta__block_around found = around(start + page->reserved * stride - 1);
    TEST_ASSERT_EQUAL_PTR(start + (page->capacity - 1u) * stride + TA__MARK_SIZE, (void *)found.user);
    TEST_ASSERT_EQUAL_INT64(start + page->reserved * stride - 1 - (const char *)found.user, found.offset);
    found = around(start + page->capacity * stride - 1);
    TEST_ASSERT_EQUAL_PTR(start + (page->capacity - 1u) * stride + TA__MARK_SIZE, (void *)found.user);
    found = around(start + stride);
    TEST_ASSERT_EQUAL_PTR(start + stride + TA__MARK_SIZE, (void *)found.user);
    TEST_ASSERT_FALSE(found.is_live);
    TEST_ASSERT_TRUE(belongs_to_nobody((uintptr_t)start - 1));
    ta_free(block);
}

static void test_other_addresses_are_nobodys(void)
{
    int local;
    TEST_ASSERT_TRUE(belongs_to_nobody((uintptr_t)&local));
    TEST_ASSERT_TRUE(belongs_to_nobody((uintptr_t)sizes));
    static const uintptr_t addresses[] = {0,      1,          4096,        65536,          BEHIND - 1,
                                          BEHIND, BEHIND + 1, UINTPTR_MAX, 0x7fffffffffff, UINTPTR_MAX / 2};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        TEST_ASSERT_TRUE(belongs_to_nobody(addresses[i]));
}

static char described[512];

static const char *describe(const void *address)
{
    TEST_ASSERT_LESS_THAN_size_t(sizeof described, ta_describe(address, described, sizeof described));
    return described;
}

static void test_stacks_end_where_they_end(void)
{
    ta_free(ta_malloc(1));
    const char *low = (const char *)ta__self->stack_low, *high = (const char *)ta__self->stack_high;
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(describe(low), ": on the stack of thread "), described);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(describe(high - 1), ": on the stack of thread "), described);
    TEST_ASSERT_NULL_MESSAGE(strstr(describe(low - 1), ": on the stack of thread "), described);
    TEST_ASSERT_NULL_MESSAGE(strstr(describe(high), ": on the stack of thread "), described);
}

static void test_emergency_memory_is_told(void)
{
    char *block = ta__emergency_allocate(100, 16, 0);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(describe(block + 50), ": in a block that a signal handler asked for\n"),
                                 described);
    ta__emergency_free(block);
}

/* ---- marks -------------------------------------------------------------------------------------------------------- */

static struct ta__live_block live;

static int is_block(const void *user)
{
    memset(&live, 0xA5, sizeof live);
    return ta__live_block(user, &live);
}

/* Is the block one, with this in front of it? It is what it was, afterwards. */
static int is_block_with(char *block, uint32_t kind, uint32_t leaf, uint64_t size_and_one)
{
    ta__header_word *mark = (ta__header_word *)(void *)(block - TA__MARK_SIZE), before = *mark;
    *mark = ta__mark_made((uint32_t)(uintptr_t)block ^ ta__check_of_kind(kind), leaf, size_and_one);
    int answer = is_block(block);
    *mark = before;
    TEST_ASSERT_TRUE(ta__mark_is_live(block, before));
    return answer;
}

static void test_a_mark_that_says_more_than_there_is_is_none(void)
{
    char *block = made(100);
    uint32_t leaf = ta__mark_leaf(ta__mark_of(block));
    size_t room = ta__page_room(ta__heap_page(block), block);
    TEST_ASSERT_EQUAL_INT(1, is_block_with(block, TA__KIND_TRACED, leaf, room + 1));
    TEST_ASSERT_EQUAL_size_t(room, live.size);
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_TRACED, leaf, room + 2));
    TEST_ASSERT_EQUAL_INT(1, is_block_with(block, TA__KIND_TRACED, leaf, 1));
    TEST_ASSERT_EQUAL_size_t(0, live.size);
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_TRACED, leaf, 0));
    ta__header_word *longer = (ta__header_word *)(void *)block - 2, before = *longer;
    *longer = 50; /* where a long header has its size: there is none here */
    int is_believed = is_block_with(block, TA__KIND_TRACED, leaf, TA__SIZE_ELSEWHERE);
    *longer = before;
    TEST_ASSERT_EQUAL_INT(0, is_believed);
    ta_free(block);
    char *large = made(100000);
    TEST_ASSERT_EQUAL_INT(1, is_block(large));
    TEST_ASSERT_EQUAL_size_t(100000, live.size);
    TEST_ASSERT_EQUAL_INT(0, is_block_with(large, TA__KIND_TRACED, leaf, 101));
    ta_free(large);
}

static void test_a_mark_of_what_there_is_not_is_none(void)
{
    char *block = made(100), *aligned = made_at(1024, 100);
    uint32_t leaf = ta__mark_leaf(ta__mark_of(block)), domains = ta__domain_count();
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_TRACED | TA__KIND_ALIGNED, leaf, 101));
    TEST_ASSERT_EQUAL_INT(0, is_block_with(aligned, TA__KIND_TRACED, leaf, 101));
    TEST_ASSERT_EQUAL_INT(1, is_block_with(aligned, TA__KIND_TRACED | TA__KIND_ALIGNED, leaf, 101));
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_TRACED, ta__leaf_capacity(), 101));
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_TRACED, UINT32_MAX, 101));
    TEST_ASSERT_EQUAL_INT(1, is_block_with(block, TA__KIND_PLAIN, UINT32_MAX, 101)); /* says nothing there */
    TEST_ASSERT_EQUAL_UINT32(0, live.leaf);
    TEST_ASSERT_EQUAL_UINT32(0, live.domain);
    TEST_ASSERT_EQUAL_INT(1, is_block_with(block, TA__KIND_DOMAIN, domains - 1, 101));
    TEST_ASSERT_EQUAL_UINT32(domains - 1, live.domain);
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_DOMAIN, domains, 101));
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_FORWARD, 0, 101));
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_NONE, leaf, 101));
    TEST_ASSERT_EQUAL_INT(0, is_block_with(block, TA__KIND_NEVER, leaf, 101));
    ta_free(block);
    ta_free(aligned);
}

static void test_a_pointer_where_no_block_begins_is_none(void)
{
    char *block = made(100);
    const mi_page_t *page = ta__heap_page(block);
    char *start = (char *)mi_page_start(page);
    for (size_t inside = 1; inside < 100; inside++) {
        memset(block, 0, 100);
        TEST_ASSERT_EQUAL_INT(0, is_block(block + inside));
    }
    TEST_ASSERT_EQUAL_INT(0, is_block(start));
    TEST_ASSERT_EQUAL_INT(0, is_block(start - 8)); /* among what the page says of itself */
    ta_free(block);
    TEST_ASSERT_EQUAL_INT(0, is_block(block));
    TEST_ASSERT_EQUAL_INT(0, is_block(&live));
    ta_stop();
    char *plain = made(100);
    page = ta__heap_page(plain);
    start = (char *)mi_page_start(page);
    TEST_ASSERT_EQUAL_INT(1, is_block(plain));
    TEST_ASSERT_EQUAL_INT(0, live.has_header);
    TEST_ASSERT_EQUAL_size_t(ta_usable_size(plain), live.size);
    TEST_ASSERT_EQUAL_INT(0, is_block(plain + 16));
    TEST_ASSERT_EQUAL_INT(1, is_block(start));
    TEST_ASSERT_EQUAL_INT(1, is_block(start + (page->reserved - 1u) * page->block_size));
    TEST_ASSERT_EQUAL_INT(0, is_block(start + page->reserved * page->block_size));
    TEST_ASSERT_EQUAL_INT(0, is_block(start - page->block_size));
    ta_free(plain);
}

static void test_without_a_look_at_tables_who_asked_is_not_told(void)
{
    char *block = ta_domain_malloc(7, 77);
    TEST_ASSERT_EQUAL_INT(1, is_block(block));
    TEST_ASSERT_NOT_EQUAL_UINT32(0, live.leaf);
    TEST_ASSERT_EQUAL_INT(ta__domain_known(7), live.domain);
    memset(&live, 0xA5, sizeof live);
    TEST_ASSERT_EQUAL_INT(1, ta__block_alone(block, &live));
    TEST_ASSERT_EQUAL_UINT32(0, live.leaf + live.domain);
    TEST_ASSERT_EQUAL_size_t(77, live.size);
    TEST_ASSERT_EQUAL_PTR(block - TA__MARK_SIZE, live.block);
    TEST_ASSERT_EQUAL_INT(0, ta__block_alone(block + 16, &live));
    ta_free(block);
}

/* ---- walks -------------------------------------------------------------------------------------------------------- */

struct wanted {
    const void *address;
    size_t size;
    int has_leaf, times;
};

static struct wanted wanted[12];
static size_t wanted_count;

static void want(const void *address, size_t size, int has_leaf)
{
    wanted[wanted_count++] = (struct wanted){address, size, has_leaf, 0};
}

static void see(const struct ta__source_block *block, void *unexpected)
{
    for (size_t i = 0; i < wanted_count; i++)
        if (block->address == (uintptr_t)wanted[i].address) {
            wanted[i].times++;
            *(int *)unexpected += block->size != wanted[i].size || (block->leaf != 0) != wanted[i].has_leaf;
        }
}

static void expect_walk_sees_each_once(void)
{
    int unexpected = 0;
    for (size_t i = 0; i < wanted_count; i++)
        wanted[i].times = 0;
    TEST_ASSERT_EQUAL(TA__STOP_DONE, ta__safepoint_stop(&ta__self->safepoint));
    ta__blocks_visit(see, &unexpected);
    ta__safepoint_resume(&ta__self->safepoint);
    TEST_ASSERT_EQUAL_INT(0, unexpected);
    for (size_t i = 0; i < wanted_count; i++)
        TEST_ASSERT_EQUAL_INT_MESSAGE(1, wanted[i].times, i < 10 ? "one of the first" : "one of the last");
}

static void test_a_walk_sees_every_block_and_record_once(void)
{
    char *earlier = made(60), *earlier_of_7 = ta_domain_malloc(7, 61);
    ta_clear_traces();
    ta_stop();
    char *untraced_of_7 = ta_domain_malloc(7, 62);
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
    char *traced = made(63), *large = made(64 << 10), *moved = made_at(256, 65), *lined = made_at(64, 66),
         *recorded = made(67), *of_handler = ta__emergency_allocate(68, 64, 0);
    TEST_ASSERT_EQUAL_INT(0, ta_track(0, (uintptr_t)recorded, 1000)); /* its trace, and its row */
    TEST_ASSERT_EQUAL_INT(0, ta_track(7, 0x7000, 2000));
    wanted_count = 0;
    want(earlier, 60, 0);
    want(earlier_of_7, 61, 0);
    want(untraced_of_7, 62, 0);
    want(traced, 63, 1);
    want(large, 64 << 10, 1);
    want(moved, 65, 1);
    want(lined, 66, 1);
    want(recorded, 1000, 1);
    want(of_handler, 68, 0);
    want((void *)0x7000, 2000, 1);
    expect_walk_sees_each_once();
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(0, (uintptr_t)recorded));
    wanted[7] = (struct wanted){recorded, 67, 0, 0}; /* without its record it has no trace */
    expect_walk_sees_each_once();
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(7, 0x7000));
    ta__emergency_free(of_handler);
    char *blocks[] = {earlier, earlier_of_7, untraced_of_7, traced, large, moved, lined, recorded};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        ta_free(blocks[i]);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_each_byte_of_a_block_is_its_own);
    RUN_TEST(test_blocks_of_an_alignment_are_found_by_what_stands_before_them);
    RUN_TEST(test_domains_and_epochs_of_blocks_are_told);
    RUN_TEST(test_a_freed_block_is_told_as_such);
    RUN_TEST(test_a_plain_block_is_told_by_its_page);
    RUN_TEST(test_what_is_behind_a_block_has_to_do_with_it_for_a_mebibyte);
    RUN_TEST(test_what_is_behind_the_blocks_of_a_page_is_behind_the_last);
    RUN_TEST(test_other_addresses_are_nobodys);
    RUN_TEST(test_stacks_end_where_they_end);
    RUN_TEST(test_emergency_memory_is_told);
    RUN_TEST(test_a_mark_that_says_more_than_there_is_is_none);
    RUN_TEST(test_a_mark_of_what_there_is_not_is_none);
    RUN_TEST(test_a_pointer_where_no_block_begins_is_none);
    RUN_TEST(test_without_a_look_at_tables_who_asked_is_not_told);
    RUN_TEST(test_a_walk_sees_every_block_and_record_once);
    return UNITY_END();
}
