/* test_page_blocks.c: what stands in front of blocks, decoded in both layouts, and the live blocks of pages made of arrays:
 * with headers and without, read as a whole and from afar, damaged. */
#include <string.h>

#include "analysis/image/page_blocks.h"
#include "base/error.h"
#include "tests/support/made_memory.h"

#include <unity.h>

#define DATA UINT64_C(0x10000000)
#define HEAP UINT64_C(0x40000000)
enum { HEAP_BYTES = 4 << 20, OF_KEY = 0, OF_FIRST = 8, OF_COUNT = 16, OF_GATE = 24 };
enum { TRACED = 1, ALIGNED = 2, DOMAIN = 4, ODD = 8, FORWARD = 12, KEY = 0x12345678, LONG_SIZE = 0xFFFF };

static struct ta__marks marks;
static struct ta__heap_page page;
static struct ta__page_walk walk;
static struct ta__mark mark;

void setUp(void)
{
    made_begin();
    made_map(DATA, 4096, 4096, 0);
    made_map(HEAP, HEAP_BYTES, HEAP_BYTES, 0);
    marks = (struct ta__marks){.key = KEY, .leaf_first = 3, .leaf_count = 100, .is_tracing = 1};
    page = (struct ta__heap_page){
        .start = HEAP, .stride = 64, .slots = 4, .reserved = 8, .flags = TA__HEAP_PAGE_HEADERS, .header = 8};
    TEST_ASSERT_EQUAL_INT(0, ta__page_walk_open(&walk, made, &marks));
}

void tearDown(void)
{
    ta__page_walk_close(&walk);
    made_end();
}

/* The word in front of a block whose user's bytes begin at `user`; `size`: what stands in its upper 16 bits. */
static uint64_t word_of(uint64_t user, uint32_t kind, uint32_t leaf, uint64_t size)
{
    uint64_t check = (kind ^ user ^ KEY) & 0xFFFF;
    return marks.has_leaf_first ? leaf | check << 32 | size << 48 : check | (uint64_t)leaf << 16 | size << 48;
}

/* ---- one mark ---------------------------------------------------------------------------------------------------- */

static enum ta__mark_kind read_short(uint32_t kind, uint32_t leaf, uint64_t size, uint64_t room, int is_forwarded)
{
    uint8_t bytes[TA__MARK_BYTES] = {0};
    uint64_t word = word_of(HEAP + 8, kind, leaf, size);
    memcpy(bytes, &word, sizeof word);
    memset(&mark, 0x55, sizeof mark);
    page.header = 8;
    return ta__mark_read(&marks, &page, HEAP, bytes, room, is_forwarded, &mark);
}

static enum ta__mark_kind read_long(uint32_t kind, uint32_t leaf, uint64_t in_mark, uint64_t size, uint64_t room)
{
    uint8_t bytes[TA__MARK_BYTES] = {0};
    uint64_t word = word_of(HEAP + 16, kind, leaf, in_mark);
    memcpy(bytes, &size, sizeof size);
    memcpy(bytes + 8, &word, sizeof word);
    memset(&mark, 0x55, sizeof mark);
    page.header = 16;
    return ta__mark_read(&marks, &page, HEAP, bytes, room, 0, &mark);
}

static void in_each_layout(void (*check)(void))
{
    check();
    marks.has_leaf_first = 1;
    check();
}

static void check_kinds(void)
{
    for (uint32_t kind = 0; kind < 32; kind++) {
        int can_be = kind < 16 && kind != FORWARD && kind != (FORWARD | ALIGNED);
        int is_aligned = (kind & ALIGNED) != 0;
        enum ta__mark_kind plain = can_be && !is_aligned ? TA__MARK_LIVE
                                   : kind == FORWARD     ? TA__MARK_FORWARD
                                                         : TA__MARK_NONE;
        TEST_ASSERT_EQUAL_INT_MESSAGE(plain, read_short(kind, 2, kind == FORWARD ? 1 : 41, 64, 0), "plain");
        TEST_ASSERT_EQUAL_INT_MESSAGE(can_be && is_aligned ? TA__MARK_LIVE : TA__MARK_NONE,
                                      read_short(kind, 2, 41, 64, 1), "forwarded");
    }
}

static void test_kinds_of_marks_are_those_that_there_are(void)
{
    in_each_layout(check_kinds);
}

static void check_sizes(void)
{
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(TRACED, 5, 0, 64, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 5, 1, 64, 0));
    TEST_ASSERT_EQUAL_UINT64(0, mark.size);
    TEST_ASSERT_EQUAL_UINT32(8, mark.offset);
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 5, 57, 64, 0));
    TEST_ASSERT_EQUAL_UINT64(56, mark.size);
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(TRACED, 5, 58, 64, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 5, 1, 8, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(TRACED, 5, 1, 7, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 5, LONG_SIZE - 1, 1 << 20, 0));
    TEST_ASSERT_EQUAL_UINT64(LONG_SIZE - 2, mark.size);
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(TRACED, 5, LONG_SIZE, 1 << 20, 0));
}

static void test_size_in_a_mark_is_one_less_and_fits_the_block(void)
{
    in_each_layout(check_sizes);
}

static void check_long_sizes(void)
{
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_long(TRACED, 5, LONG_SIZE, 2000, 2016));
    TEST_ASSERT_EQUAL_UINT64(2000, mark.size);
    TEST_ASSERT_EQUAL_UINT32(16, mark.offset);
    TEST_ASSERT_EQUAL_UINT32(5, mark.leaf);
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_long(TRACED, 5, LONG_SIZE, 2001, 2016));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_long(TRACED, 5, LONG_SIZE, UINT64_MAX, 2016));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_long(TRACED, 5, LONG_SIZE - 1, 2000, 2016));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_long(TRACED, 5, 1, 2000, 2016));
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_long(TRACED, 5, LONG_SIZE, 0, 16));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_long(TRACED, 5, LONG_SIZE, 0, 15));
}

static void test_long_header_has_the_size_in_front(void)
{
    in_each_layout(check_long_sizes);
}

static void check_leaves(void)
{
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 99, 9, 64, 0));
    TEST_ASSERT_EQUAL_UINT32(99, mark.leaf);
    TEST_ASSERT_EQUAL_UINT32(0, mark.domain);
    TEST_ASSERT_EQUAL_INT(1, mark.has_trace);
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 100, 9, 64, 0)); /* there is no such leaf */
    TEST_ASSERT_EQUAL_UINT32(0, mark.leaf);
    TEST_ASSERT_EQUAL_INT(0, mark.has_trace);
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 3, 9, 64, 0));
    TEST_ASSERT_EQUAL_INT(1, mark.has_trace);
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED | DOMAIN, 2, 9, 64, 0)); /* of what was cleared */
    TEST_ASSERT_EQUAL_UINT32(2, mark.leaf);
    TEST_ASSERT_EQUAL_UINT32(0, mark.domain);
    TEST_ASSERT_EQUAL_INT(0, mark.has_trace);
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(DOMAIN, 70000, 9, 64, 0));
    TEST_ASSERT_EQUAL_UINT32(0, mark.leaf);
    TEST_ASSERT_EQUAL_UINT32(70000, mark.domain);
    TEST_ASSERT_EQUAL_INT(0, mark.has_trace);
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(0, 7, 9, 64, 0));
    TEST_ASSERT_EQUAL_UINT32(0, mark.leaf | mark.domain);
    marks.leaf_first = 0;
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 0, 9, 64, 0));
    TEST_ASSERT_EQUAL_INT(0, mark.has_trace);
    marks.leaf_first = 3;
    marks.is_tracing = 0;
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 99, 9, 64, 0));
    TEST_ASSERT_EQUAL_INT(0, mark.has_trace);
    TEST_ASSERT_EQUAL_UINT32(99, mark.leaf);
    marks.is_tracing = 1;
}

static void test_leaf_or_domain_of_a_mark_is_what_its_kind_says(void)
{
    in_each_layout(check_leaves);
}

static void check_forwards(void)
{
    TEST_ASSERT_EQUAL_INT(TA__MARK_FORWARD, read_short(FORWARD, 3, 1, 56, 0));
    TEST_ASSERT_EQUAL_UINT32(48, mark.offset);
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(FORWARD, 3, 1, 55, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(FORWARD, 0, 1, 64, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(FORWARD, 3, 0, 64, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(FORWARD, 3, 2, 64, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(FORWARD, 3, 1, 64, 1)); /* one does not lead to another */
    TEST_ASSERT_EQUAL_INT(TA__MARK_FORWARD, read_short(FORWARD, 0x0FFFFFFF, 1, UINT64_MAX, 0));
    TEST_ASSERT_EQUAL_UINT32(0xFFFFFFF0, mark.offset);
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_short(FORWARD, 0x10000000, 1, UINT64_MAX, 0));
    TEST_ASSERT_EQUAL_INT(TA__MARK_FORWARD, read_long(FORWARD, 0x0FFFFFFE, 1, 0, UINT64_MAX));
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, read_long(FORWARD, 0x0FFFFFFF, 1, 0, UINT64_MAX));
}

static void test_forwarding_mark_leads_into_the_block_and_no_further(void)
{
    in_each_layout(check_forwards);
}

static void test_mark_of_another_place_or_process_is_none(void)
{
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, read_short(TRACED, 5, 9, 64, 0));
    marks.key ^= 0x10;
    uint64_t word = word_of(HEAP + 8, TRACED, 5, 9);
    uint8_t bytes[TA__MARK_BYTES] = {0};
    memcpy(bytes, &word, sizeof word);
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, ta__mark_read(&marks, &page, HEAP, bytes, 64, 0, &mark));
    marks.key ^= 0x10;
    TEST_ASSERT_EQUAL_INT(TA__MARK_NONE, ta__mark_read(&marks, &page, HEAP + 64, bytes, 64, 0, &mark));
    marks.key ^= 0x10000; /* 16 bits of it count */
    TEST_ASSERT_EQUAL_INT(TA__MARK_LIVE, ta__mark_read(&marks, &page, HEAP, bytes, 64, 0, &mark));
}

/* ---- what is the same for all ------------------------------------------------------------------------------------ */

static struct ta__layout layout_of(uint64_t header_layout)
{
    static struct ta__object_file object;
    object.path = ta__target_keep(made, "/lib/libtracealloc.so", strlen("/lib/libtracealloc.so"));
    return (struct ta__layout){.can_trace = 1,
                               .library = "9.8",
                               .object = &object,
                               .header_layout = header_layout,
                               .header_mark = 8,
                               .header_long = 16,
                               .header_key = DATA + OF_KEY,
                               .leaves_first = DATA + OF_FIRST,
                               .leaves_count = DATA + OF_COUNT,
                               .gate = DATA + OF_GATE,
                               .gate_tracing = 6};
}

static void test_marks_of_both_layouts_are_known(void)
{
    made_half(DATA + OF_KEY, 11);
    made_half(DATA + OF_FIRST, 22);
    made_half(DATA + OF_COUNT, 33);
    made_half(DATA + OF_GATE, 1);
    struct ta__layout layout = layout_of(3);
    TEST_ASSERT_EQUAL_INT(0, ta__marks_read(&marks, made, &layout));
    TEST_ASSERT_EQUAL_UINT32(11, marks.key);
    TEST_ASSERT_EQUAL_UINT32(22, marks.leaf_first);
    TEST_ASSERT_EQUAL_UINT32(33, marks.leaf_count);
    TEST_ASSERT_EQUAL_INT(0, marks.is_tracing);
    TEST_ASSERT_EQUAL_INT(0, marks.has_leaf_first);
    made_half(DATA + OF_GATE, 2);
    layout = layout_of(2);
    TEST_ASSERT_EQUAL_INT(0, ta__marks_read(&marks, made, &layout));
    TEST_ASSERT_EQUAL_INT(1, marks.is_tracing);
    TEST_ASSERT_EQUAL_INT(1, marks.has_leaf_first);
    made_half(DATA + OF_GATE, 4);
    TEST_ASSERT_EQUAL_INT(0, ta__marks_read(&marks, made, &layout));
    TEST_ASSERT_EQUAL_INT(1, marks.is_tracing);
}

static void expect_unknown(const struct ta__layout *layout, const char *number)
{
    char text[200];
    snprintf(text, sizeof text,
             "/lib/libtracealloc.so is of a tracealloc (9.8) whose headers (layout %s) this program does not know",
             number);
    TEST_ASSERT_EQUAL_INT(-1, ta__marks_read(&marks, made, layout));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
}

static void test_headers_of_another_layout_are_refused(void)
{
    struct ta__layout layout = layout_of(1);
    expect_unknown(&layout, "1");
    layout = layout_of(4);
    expect_unknown(&layout, "4");
    layout = layout_of(3);
    layout.header_mark = 16;
    expect_unknown(&layout, "3");
    layout = layout_of(2);
    layout.header_long = 24;
    expect_unknown(&layout, "2");
    layout.can_trace = 0;
    TEST_ASSERT_EQUAL_INT(0, ta__marks_read(&marks, made, &layout));
    TEST_ASSERT_EQUAL_UINT32(0, marks.key);
    TEST_ASSERT_EQUAL_UINT32(0, marks.leaf_count);
}

static void test_data_that_are_not_there_are_an_error(void)
{
    struct ta__layout layout = layout_of(3);
    uint64_t *const places[] = {&layout.header_key, &layout.leaves_first, &layout.leaves_count, &layout.gate};
    for (size_t i = 0; i < 4; i++) {
        uint64_t before = *places[i];
        *places[i] = 1;
        ta__error_clear();
        TEST_ASSERT_EQUAL_INT(-1, ta__marks_read(&marks, made, &layout));
        TEST_ASSERT_EQUAL_STRING("the library's data are not in the memory at hand", ta__error_text());
        *places[i] = before;
    }
    TEST_ASSERT_EQUAL_INT(0, ta__marks_read(&marks, made, &layout));
}

/* ---- pages with headers ------------------------------------------------------------------------------------------ */

static uint64_t slot_at(uint32_t slot)
{
    return page.start + slot * page.stride;
}

/* A block whose header begins `shift` bytes into the slot. */
static void put_mark(uint32_t slot, uint64_t shift, uint32_t kind, uint32_t leaf, uint64_t size)
{
    uint64_t user = slot_at(slot) + shift + page.header;
    int is_long = page.header == 16 && kind != FORWARD;
    made_word(user - 8, word_of(user, kind, leaf, is_long ? LONG_SIZE : size));
    if (is_long)
        made_word(user - 16, size);
}

static void expect_block(uint32_t index, uint32_t slot, uint32_t offset, uint64_t size, uint32_t leaf, uint32_t domain)
{
    TEST_ASSERT_TRUE(index < walk.block_count);
    const struct ta__page_block *block = &walk.blocks[index];
    TEST_ASSERT_EQUAL_UINT32(slot, block->slot);
    TEST_ASSERT_EQUAL_UINT32(offset, block->offset);
    TEST_ASSERT_EQUAL_UINT64(size, block->size);
    TEST_ASSERT_EQUAL_UINT32(leaf, block->leaf);
    TEST_ASSERT_EQUAL_UINT32(domain, block->domain);
    TEST_ASSERT_EQUAL_UINT8(leaf >= marks.leaf_first, block->has_trace);
    TEST_ASSERT_EQUAL_HEX64(slot_at(slot) + offset, ta__page_block_address(&page, block));
}

static void walk_page(uint32_t blocks)
{
    TEST_ASSERT_EQUAL_INT(0, ta__page_walk(&walk, &page));
    TEST_ASSERT_EQUAL_UINT32(blocks, walk.block_count);
}

static void test_blocks_with_headers_are_those_whose_marks_verify(void)
{
    put_mark(0, 0, TRACED, 5, 41);
    put_mark(2, 0, DOMAIN, 6, 1);
    put_mark(3, 0, TRACED, 7, 58); /* larger than its block */
    put_mark(4, 0, TRACED, 7, 9);  /* a slot that was never used */
    walk_page(2);
    TEST_ASSERT_EQUAL_INT(1, walk.is_whole);
    expect_block(0, 0, 8, 40, 5, 0);
    expect_block(1, 2, 8, 0, 0, 6);
    TEST_ASSERT_EQUAL_UINT8(1, walk.blocks[1].is_size_known);
    TEST_ASSERT_EQUAL_INT(0, walk.is_damaged);
}

static void test_aligned_block_is_found_behind_its_forwarding_mark(void)
{
    put_mark(1, 0, FORWARD, 3, 1); /* as far as there is room for a header */
    put_mark(1, 48, TRACED | ALIGNED, 5, 9);
    put_mark(2, 0, FORWARD, 1, 1);
    put_mark(2, 16, TRACED | ALIGNED, 5, 41);
    put_mark(3, 0, FORWARD, 1, 1);
    put_mark(3, 16, TRACED, 5, 9); /* not aligned */
    walk_page(2);
    expect_block(0, 1, 56, 8, 5, 0);
    expect_block(1, 2, 24, 40, 5, 0);
}

static void test_forwarding_mark_to_the_end_of_the_block_is_none(void)
{
    page.stride = 56;
    put_mark(0, 0, FORWARD, 3, 1);
    put_mark(0, 48, TRACED | ALIGNED, 5, 1);
    walk_page(0);
    page.stride = 72;
    put_mark(0, 48, TRACED | ALIGNED, 5, 1);
    walk_page(1);
    expect_block(0, 0, 56, 0, 5, 0);
}

/* Pages of more than 1 MiB are not read: only the beginnings of their blocks. */
static void make_large(void)
{
    page.stride = (1 << 20) / 4;
    page.header = 16;
}

static void test_blocks_of_a_large_page_are_the_same_as_of_a_small_one(void)
{
    make_large();
    for (uint32_t slots = 4; slots <= 5; slots++) {
        page.slots = slots;
        put_mark(0, 0, TRACED, 5, 100000);
        put_mark(1, 0, FORWARD, 6250, 1);
        put_mark(1, 100000, DOMAIN | ALIGNED, 8, 5000);
        put_mark(3, 0, TRACED, 6, page.stride - 16);
        if (slots == 5)
            put_mark(4, 0, TRACED, 7, page.stride - 15);
        walk_page(3);
        TEST_ASSERT_EQUAL_INT(slots == 4, walk.is_whole);
        expect_block(0, 0, 16, 100000, 5, 0);
        expect_block(1, 1, 100016, 5000, 0, 8);
        expect_block(2, 3, 16, page.stride - 16, 6, 0);
    }
}

static void test_block_that_cannot_be_read_is_left_out_of_a_large_page(void)
{
    make_large();
    page.slots = 5;
    put_mark(0, 0, TRACED, 5, 100);
    put_mark(1, 0, TRACED, 5, 100);
    put_mark(2, 0, FORWARD, 6250, 1);
    put_mark(2, 100000, TRACED | ALIGNED, 8, 5000);
    walk_page(3);
    made_break(slot_at(1), slot_at(1) + 100);
    walk_page(2);
    expect_block(0, 0, 16, 100, 5, 0);
    made_break(slot_at(2) + 100000, slot_at(2) + 100016);
    walk_page(2);
    made_break(HEAP, HEAP + HEAP_BYTES);
    walk_page(0);
}

static void test_page_that_is_not_there_has_no_blocks(void)
{
    put_mark(0, 0, TRACED, 5, 41);
    made_break(HEAP, HEAP + 8);
    walk_page(0);
    made_break(0, 0);
    walk_page(1);
    made->regions[1].stored_bytes = 0;
    walk_page(0);
}

/* ---- pages without headers --------------------------------------------------------------------------------------- */

static void make_plain(void)
{
    page.flags = 0;
    page.header = 0;
}

static void expect_slots(uint32_t bits)
{
    walk_page((uint32_t)__builtin_popcount(bits));
    uint32_t index = 0;
    for (uint32_t slot = 0; slot < page.slots; slot++) {
        if ((bits >> slot & 1) == 0)
            continue;
        TEST_ASSERT_EQUAL_UINT8(0, walk.blocks[index].is_size_known);
        TEST_ASSERT_EQUAL_UINT8(0, walk.blocks[index].has_trace);
        expect_block(index++, slot, 0, page.stride, 0, 0);
    }
}

static void test_blocks_without_headers_are_those_on_no_list(void)
{
    make_plain();
    expect_slots(0xF);
    page.lists[0] = slot_at(1);
    expect_slots(0xD);
    made_word(slot_at(1), slot_at(3));
    expect_slots(0x5);
    page.lists[1] = slot_at(0);
    expect_slots(0x4);
    page.lists[2] = slot_at(2);
    expect_slots(0);
    TEST_ASSERT_EQUAL_INT(0, walk.is_damaged);
}

static void test_more_than_64_blocks_without_headers_are_told_apart(void)
{
    make_plain();
    page.slots = page.reserved = 130;
    page.lists[0] = slot_at(64);
    made_word(slot_at(64), slot_at(129));
    walk_page(128);
    expect_block(63, 63, 0, 64, 0, 0);
    expect_block(64, 65, 0, 64, 0, 0);
    expect_block(127, 128, 0, 64, 0, 0);
}

static void expect_astray(uint64_t first)
{
    page.lists[1] = first;
    walk_page(4);
    TEST_ASSERT_EQUAL_INT(1, walk.is_damaged);
    page.lists[1] = 0;
    walk_page(4);
    TEST_ASSERT_EQUAL_INT(0, walk.is_damaged);
}

static void test_list_of_free_blocks_that_leads_astray_is_damaged(void)
{
    make_plain();
    expect_astray(HEAP - 64);
    expect_astray(slot_at(4));
    expect_astray(slot_at(1) + 8);
    page.lists[0] = slot_at(2);
    made_word(slot_at(2), slot_at(2)); /* round and round */
    walk_page(3);
    TEST_ASSERT_EQUAL_INT(1, walk.is_damaged);
    page.lists[0] = slot_at(3);
    for (uint32_t slot = 0; slot < 4; slot++)
        made_word(slot_at(slot), slot == 0 ? 0 : slot_at(slot - 1));
    walk_page(0); /* all of them, and an end */
    TEST_ASSERT_EQUAL_INT(0, walk.is_damaged);
    made_word(slot_at(0), slot_at(3));
    walk_page(0);
    TEST_ASSERT_EQUAL_INT(1, walk.is_damaged);
}

static void test_lists_of_a_large_page_are_followed_too(void)
{
    make_large();
    make_plain();
    page.slots = 5;
    page.lists[0] = slot_at(4);
    made_word(slot_at(4), slot_at(1));
    expect_slots(0xD);
    TEST_ASSERT_EQUAL_INT(0, walk.is_whole);
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

static void test_page_of_the_allocators_own_has_no_blocks(void)
{
    put_mark(0, 0, TRACED, 5, 41);
    page.flags |= TA__HEAP_PAGE_OWN;
    walk_page(0);
}

static void test_emergency_page_is_one_block(void)
{
    page.flags = TA__HEAP_PAGE_SINGLE;
    page.slots = 1;
    page.user_offset = 32;
    page.user_size = 19;
    walk_page(1);
    expect_block(0, 0, 32, 19, 0, 0);
    TEST_ASSERT_EQUAL_UINT8(1, walk.blocks[0].is_size_known);
    TEST_ASSERT_EQUAL_INT(0, walk.is_whole);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_kinds_of_marks_are_those_that_there_are);
    RUN_TEST(test_size_in_a_mark_is_one_less_and_fits_the_block);
    RUN_TEST(test_long_header_has_the_size_in_front);
    RUN_TEST(test_leaf_or_domain_of_a_mark_is_what_its_kind_says);
    RUN_TEST(test_forwarding_mark_leads_into_the_block_and_no_further);
    RUN_TEST(test_mark_of_another_place_or_process_is_none);
    RUN_TEST(test_marks_of_both_layouts_are_known);
    RUN_TEST(test_headers_of_another_layout_are_refused);
    RUN_TEST(test_data_that_are_not_there_are_an_error);
    RUN_TEST(test_blocks_with_headers_are_those_whose_marks_verify);
    RUN_TEST(test_aligned_block_is_found_behind_its_forwarding_mark);
    RUN_TEST(test_forwarding_mark_to_the_end_of_the_block_is_none);
    RUN_TEST(test_blocks_of_a_large_page_are_the_same_as_of_a_small_one);
    RUN_TEST(test_block_that_cannot_be_read_is_left_out_of_a_large_page);
    RUN_TEST(test_page_that_is_not_there_has_no_blocks);
    RUN_TEST(test_blocks_without_headers_are_those_on_no_list);
    RUN_TEST(test_more_than_64_blocks_without_headers_are_told_apart);
    RUN_TEST(test_list_of_free_blocks_that_leads_astray_is_damaged);
    RUN_TEST(test_lists_of_a_large_page_are_followed_too);
    RUN_TEST(test_page_of_the_allocators_own_has_no_blocks);
    RUN_TEST(test_emergency_page_is_one_block);
    return UNITY_END();
}
