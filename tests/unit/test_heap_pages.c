/* test_heap_pages.c: the allocator's tables, made of arrays: which pages there are, what each is, whose an address is, and
 * that nothing is believed that cannot be. Both sides of each bound. */
#include <string.h>

#include "analysis/image/heap_pages.h"
#include "base/error.h"
#include "tests/support/made_memory.h"

#include <unity.h>

/* Where things are in the process. */
#define DATA  UINT64_C(0x10000000)
#define MAP   UINT64_C(0x20000000)
#define PART  UINT64_C(0x20010000)
#define OTHER UINT64_C(0x20020000) /* another part of the table */
#define METAS UINT64_C(0x30000000)
#define HEAP  UINT64_C(0x40000000)
enum { PART_BITS = 12, PART_WORDS = 1 << PART_BITS, HEAP_BYTES = 64 << 20, DATA_BYTES = 64 << 10 };
enum { OF_MAP = 0, OF_MAP_COUNT = 8, OF_MAIN_HEAP = 16, OF_ARENAS_COUNT = 24, OF_REGIONS_USED = 32, OF_EMERGENCY = 40 };
enum { OF_EMERGENCY_USED = 48, OF_ARENAS = 256, OF_CHUNKS = 512 };
enum { MAIN_HEAP = 0x7000, OTHER_HEAP = 0x8000, WITH_HEADERS = 4, INTERIOR = 2, SLICE = 1 << TA__SLICE_BITS };

struct description {
    uint64_t thread, free, local_free, thread_free;
    uint16_t used, capacity, reserved;
    uint64_t start, stride, heap;
};

static struct ta__layout layout;
static struct ta__heap_pages pages;

static void put_word(unsigned place, uint64_t word)
{
    made_word(DATA + place, word);
}

void setUp(void)
{
    made_begin();
    made_map(DATA, DATA_BYTES, DATA_BYTES, 0);
    made_map(MAP, 2 * 8, 2 * 8, 0);
    made_map(PART, PART_WORDS * 8, PART_WORDS * 8, 0);
    made_map(OTHER, PART_WORDS * 8, PART_WORDS * 8, 0);
    made_map(METAS, 1 << 20, 1 << 20, 0);
    made_map(HEAP, HEAP_BYTES, 1 << 20, 0);
    layout = (struct ta__layout){
        .can_trace = 1,
        .map = DATA + OF_MAP,
        .map_count = DATA + OF_MAP_COUNT,
        .map_part_bits = PART_BITS,
        .slice_bits = TA__SLICE_BITS,
        .page_bytes = 96,
        .page_thread = 80,
        .page_free = 8,
        .page_local_free = 16,
        .page_thread_free = 24,
        .page_used = 32,
        .page_capacity = 40,
        .page_reserved = 48,
        .page_offset = 56,
        .page_block_size = 64,
        .page_heap = 88, /* the last place there can be */
        .page_interior = INTERIOR,
        .main_heap = DATA + OF_MAIN_HEAP,
        .arenas = DATA + OF_ARENAS,
        .arenas_count = DATA + OF_ARENAS_COUNT,
        .arenas_most = 4,
        .arena_slices = 8,
        .arena_info_slices = 16,
        .regions_chunks = DATA + OF_CHUNKS,
        .regions_chunk = 2,
        .regions_used = DATA + OF_REGIONS_USED,
        .region_bytes = 16,
        .region_address = 0,
        .region_size = 8,
        .header_flag = WITH_HEADERS,
        .header_mark = 8,
        .header_long = 16,
        .header_long_block = 1024,
    };
    put_word(OF_MAP, MAP);
    put_word(OF_MAP_COUNT, 1);
    put_word(OF_MAIN_HEAP, MAIN_HEAP);
    made_word(MAP, PART);
    made_word(MAP + 8, OTHER);
}

void tearDown(void)
{
    ta__heap_pages_free(&pages);
    made_end();
}

static struct description usual(uint64_t start)
{
    return (struct description){
        .start = start, .stride = 64, .used = 3, .capacity = 5, .reserved = 10, .heap = OTHER_HEAP};
}

/* What stands right behind each number is not of it. */
static void describe_at(uint64_t meta, struct description page)
{
    made_word(meta + 80, page.thread);
    made_word(meta + 8, page.free);
    made_word(meta + 16, page.local_free);
    made_word(meta + 24, page.thread_free);
    made_word(meta + 32, page.used | UINT64_C(0xFFFFFFFFFFFF) << 16);
    made_word(meta + 40, page.capacity | UINT64_C(0xFFFFFFFFFFFF) << 16);
    made_word(meta + 48, page.reserved | UINT64_C(0xFFFFFFFFFFFF) << 16);
    made_word(meta + 56, (page.start - meta) / 8 | UINT64_C(0xFFFFFFFF) << 32);
    made_word(meta + 64, page.stride);
    made_word(meta + 88, page.heap);
}

/* The page is entered at `index` of the table. */
static void enter(unsigned index, uint64_t meta, struct description page)
{
    describe_at(meta, page);
    made_word(PART + index * 8, meta);
}

static void read_all(void)
{
    ta__heap_pages_free(&pages);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__heap_pages_read(&pages, made, &layout), ta__error_text());
}

static void expect_error(const char *text)
{
    ta__heap_pages_free(&pages);
    ta__error_clear();
    TEST_ASSERT_EQUAL_INT(-1, ta__heap_pages_read(&pages, made, &layout));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void test_pages_stand_anywhere_in_the_table_and_count_once(void)
{
    static const unsigned places[] = {0, 255, 256, 511, 513, 2047, 2048, 2304, 4095};
    enum { PLACES = sizeof places / sizeof *places };
    for (size_t i = 0; i < PLACES; i++)
        enter(places[i], METAS + (PLACES - i) * 128, usual(HEAP + (PLACES - i) * SLICE));
    made_word(PART + 1 * 8, METAS + PLACES * 128); /* a page of two slices */
    made_word(PART + 300 * 8, METAS + PLACES * 128);
    read_all();
    TEST_ASSERT_EQUAL_size_t(PLACES, pages.count);
    TEST_ASSERT_EQUAL_size_t(0, pages.damaged);
    for (size_t i = 0; i < PLACES; i++) {
        TEST_ASSERT_EQUAL_HEX64(HEAP + (i + 1) * SLICE, pages.items[i].start);
        TEST_ASSERT_EQUAL_HEX64(METAS + (i + 1) * 128, pages.items[i].meta);
        TEST_ASSERT_EQUAL_UINT32(64 * i, pages.items[i].first_slot);
    }
    TEST_ASSERT_EQUAL_UINT32(64 * PLACES, pages.slot_count);
    TEST_ASSERT_EQUAL_HEX64(HEAP + SLICE, pages.low);
    TEST_ASSERT_EQUAL_HEX64(HEAP + PLACES * SLICE + 640, pages.high);
}

static void test_each_part_of_the_table_is_looked_at_as_far_as_it_is_counted(void)
{
    enter(7, METAS, usual(HEAP));
    describe_at(METAS + 128, usual(HEAP + SLICE));
    made_word(OTHER + 9 * 8, METAS + 128);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    put_word(OF_MAP_COUNT, 2);
    read_all();
    TEST_ASSERT_EQUAL_size_t(2, pages.count);
    made_word(MAP, 0); /* a part that was never needed */
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    TEST_ASSERT_EQUAL_HEX64(HEAP + SLICE, pages.items[0].start);
}

static void test_the_table_is_the_allocators_own_memory(void)
{
    enter(7, METAS, usual(HEAP));
    read_all();
    TEST_ASSERT_EQUAL_size_t(2, pages.own_count);
    TEST_ASSERT_EQUAL_HEX64(MAP, pages.own[0].start);
    TEST_ASSERT_EQUAL_HEX64(MAP + 8, pages.own[0].end);
    TEST_ASSERT_EQUAL_HEX64(PART, pages.own[1].start);
    TEST_ASSERT_EQUAL_HEX64(PART + PART_WORDS * 8, pages.own[1].end);
}

static void test_without_a_table_nothing_was_allocated_yet(void)
{
    put_word(OF_MAP, 0);
    put_word(OF_MAP_COUNT, UINT64_MAX);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
    TEST_ASSERT_EQUAL_UINT32(0, pages.slot_count);
    TEST_ASSERT_EQUAL_UINT64(0, pages.low);
    TEST_ASSERT_EQUAL_UINT64(0, pages.high);
    TEST_ASSERT_NULL(ta__heap_page_at(&pages, 0));
    TEST_ASSERT_NULL(ta__heap_page_search(&pages, HEAP));
    TEST_ASSERT_NULL(ta__heap_page_near(&pages, HEAP));
    TEST_ASSERT_NULL(ta__heap_page_of_slot(&pages, 0));
}

static void test_table_of_an_impossible_shape_is_refused(void)
{
    static const char *const text = "the allocator's table of pages has an impossible shape";
    layout.map_part_bits = 17;
    expect_error(text);
    layout.map_part_bits = PART_BITS;
    layout.slice_bits = 11;
    expect_error(text);
    layout.slice_bits = 25;
    expect_error(text);
    layout.slice_bits = 12;
    read_all();
    layout.slice_bits = 24;
    read_all();
}

static void test_largest_part_of_a_table_is_read_to_its_end(void)
{
    const uint64_t part = HEAP + HEAP_BYTES, bytes = UINT64_C(8) << 16;
    made_map(part, bytes, bytes, 0);
    made_word(MAP, part);
    layout.map_part_bits = 16;
    describe_at(METAS, usual(HEAP));
    made_word(part + bytes - 8, METAS);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
}

static void test_table_with_too_many_parts_is_damaged(void)
{
    const uint64_t map = HEAP + HEAP_BYTES;
    made_map(map, UINT64_C(8) << 20, TA__TARGET_PAGE, 0);
    put_word(OF_MAP, map);
    put_word(OF_MAP_COUNT, (1 << 20) + 1);
    expect_error("the allocator's table of pages is damaged");
    put_word(OF_MAP_COUNT, 1 << 20);
    read_all();
}

static void test_table_that_cannot_be_read_is_an_error(void)
{
    made_break(DATA + OF_MAIN_HEAP, DATA + DATA_BYTES);
    expect_error("the allocator's heaps are not in the memory at hand");
    made_break(MAP, MAP + 8);
    expect_error("the allocator's table of pages cannot be read at 20000000");
    made_break(PART, PART + 8);
    expect_error("the allocator's table of pages cannot be read at 20010000");
    made_break(0, 0);
    layout.map = 1;
    expect_error("the allocator's table of pages is not in the memory at hand");
    layout.map = DATA + OF_MAP;
    layout.map_count = 1;
    expect_error("the allocator's table of pages is not in the memory at hand");
}

/* ---- descriptions ------------------------------------------------------------------------------------------------ */

static void test_description_of_an_impossible_shape_is_refused(void)
{
    static const char *const text = "the allocator's pages are of a shape that cannot be";
    uint64_t *const places[] = {&layout.page_thread,      &layout.page_free,       &layout.page_local_free,
                                &layout.page_thread_free, &layout.page_used,       &layout.page_capacity,
                                &layout.page_reserved,    &layout.page_block_size, &layout.page_offset,
                                &layout.page_heap};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint64_t before = *places[i];
        *places[i] = layout.page_bytes - 7;
        expect_error(text);
        *places[i] = layout.page_bytes - 8;
        read_all();
        *places[i] = before;
    }
    layout.page_bytes = 1025;
    expect_error(text);
    layout.page_bytes = 1024;
    read_all();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        *places[i] = 0;
    layout.page_bytes = 7;
    expect_error(text);
    layout.page_bytes = 8;
    read_all();
}

static void test_page_is_what_its_description_says(void)
{
    struct description page = usual(HEAP + 4096);
    page.free = 0x111, page.local_free = 0x222, page.thread_free = 0x333;
    enter(5, METAS + 64, page);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    const struct ta__heap_page *found = &pages.items[0];
    TEST_ASSERT_EQUAL_HEX64(HEAP + 4096, found->start);
    TEST_ASSERT_EQUAL_UINT64(64, found->stride);
    TEST_ASSERT_EQUAL_HEX64(METAS + 64, found->meta);
    TEST_ASSERT_EQUAL_HEX64(OTHER_HEAP, found->heap);
    TEST_ASSERT_EQUAL_HEX64(0x111, found->lists[0]);
    TEST_ASSERT_EQUAL_HEX64(0x222, found->lists[1]);
    TEST_ASSERT_EQUAL_HEX64(0x332, found->lists[2]); /* its lowest bit is mimalloc's */
    TEST_ASSERT_EQUAL_UINT32(5, found->slots);
    TEST_ASSERT_EQUAL_UINT32(10, found->reserved);
    TEST_ASSERT_EQUAL_UINT32(3, found->used);
    TEST_ASSERT_EQUAL_UINT32(0, found->flags);
    TEST_ASSERT_EQUAL_UINT32(0, found->header);
    TEST_ASSERT_EQUAL_UINT64(UINT64_MAX / 64 + 1, found->reciprocal);
}

static const struct ta__heap_page *page_with(struct description page)
{
    enter(5, METAS, page);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    TEST_ASSERT_EQUAL_size_t(0, pages.damaged);
    return &pages.items[0];
}

static void test_kind_of_a_page_follows_from_heap_and_thread(void)
{
    struct description page = usual(HEAP);
    TEST_ASSERT_EQUAL_UINT32(0, page_with(page)->flags);
    page.heap = 0;
    TEST_ASSERT_EQUAL_UINT32(TA__HEAP_PAGE_OWN, page_with(page)->flags);
    page.heap = MAIN_HEAP;
    page.thread = WITH_HEADERS | INTERIOR;
    TEST_ASSERT_EQUAL_UINT32(TA__HEAP_PAGE_OWN, page_with(page)->flags);
    page.heap = OTHER_HEAP;
    TEST_ASSERT_EQUAL_UINT32(TA__HEAP_PAGE_HEADERS, page_with(page)->flags);
    page.thread = INTERIOR;
    TEST_ASSERT_EQUAL_UINT32(TA__HEAP_PAGE_INTERIOR, page_with(page)->flags);
    page.thread = ~(uint64_t)(WITH_HEADERS | INTERIOR);
    TEST_ASSERT_EQUAL_UINT32(0, page_with(page)->flags);
}

static void test_library_that_cannot_trace_has_no_headers_and_no_heap_of_its_own(void)
{
    struct description page = usual(HEAP);
    layout.can_trace = 0;
    page.heap = 0;
    TEST_ASSERT_EQUAL_UINT32(0, page_with(page)->flags);
    page.heap = MAIN_HEAP;
    page.thread = WITH_HEADERS;
    TEST_ASSERT_EQUAL_UINT32(0, page_with(page)->flags);
    page.thread = WITH_HEADERS | INTERIOR;
    TEST_ASSERT_EQUAL_UINT32(TA__HEAP_PAGE_INTERIOR, page_with(page)->flags);
}

static void test_header_is_long_in_pages_of_large_blocks(void)
{
    struct description page = usual(HEAP);
    page.thread = WITH_HEADERS;
    page.stride = 1024;
    TEST_ASSERT_EQUAL_UINT32(8, page_with(page)->header);
    page.stride = 1032;
    TEST_ASSERT_EQUAL_UINT32(16, page_with(page)->header);
    page.thread = 0;
    TEST_ASSERT_EQUAL_UINT32(0, page_with(page)->header);
}

static void expect_damaged(struct description page)
{
    enter(5, METAS, page);
    enter(6, METAS + 128, usual(HEAP + HEAP_BYTES - SLICE)); /* the next one is good */
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.damaged);
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    TEST_ASSERT_EQUAL_HEX64(METAS + 128, pages.items[0].meta);
    made_word(PART + 6 * 8, 0);
}

static void test_description_that_cannot_be_is_counted_as_damaged(void)
{
    struct description page = usual(HEAP);
    page.stride = 0;
    expect_damaged(page);
    page.stride = 8;
    page_with(page);
    page.stride = 12;
    expect_damaged(page);
    page = usual(HEAP);
    page.capacity = 11;
    expect_damaged(page);
    page.capacity = page.used = 10;
    page_with(page);
    page.capacity = page.used = page.reserved = 0;
    expect_damaged(page);
    page = usual(HEAP);
    page.used = 6;
    expect_damaged(page);
    page.used = 5;
    page_with(page);
    page.used = page.capacity = 0;
    page_with(page);
    page = usual(HEAP + HEAP_BYTES - 10 * 64);
    page_with(page);
    page.start += 64; /* it would end behind its mapping */
    enter(5, METAS, page);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
    TEST_ASSERT_EQUAL_size_t(1, pages.damaged);
}

static void test_page_begins_at_a_multiple_of_eight(void)
{
    enter(5, METAS + 4, usual(HEAP + 4));
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.damaged);
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
}

static void test_description_that_cannot_be_read_is_damaged(void)
{
    enter(5, METAS, usual(HEAP));
    made_word(PART + 6 * 8, 0x123456);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.damaged);
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
}

static void test_page_may_be_very_large_and_not_larger(void)
{
    const uint64_t most = UINT64_C(1) << 42;
    made_map(HEAP + HEAP_BYTES, 4 * most, 0, 0);
    struct description page = usual(HEAP + HEAP_BYTES);
    page.stride = most;
    page.used = page.capacity = page.reserved = 1;
    TEST_ASSERT_EQUAL_UINT64(most, page_with(page)->stride);
    page.stride = most + 8;
    enter(5, METAS, page);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.damaged);
    page.stride = most / 2;
    page.reserved = 2;
    TEST_ASSERT_EQUAL_UINT64(most / 2, page_with(page)->stride);
    page.reserved = 3;
    enter(5, METAS, page);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.damaged);
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
}

static void test_page_beyond_the_addresses_of_programs_is_damaged(void)
{
    const uint64_t end = UINT64_C(1) << 47;
    made_map(end - (1 << 20), 2 << 20, 1 << 20, 0);
    describe_at(end - 4096, usual(end - 1024));
    made_word(PART, end - 4096);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    describe_at(end - 4096, usual(end));
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
    TEST_ASSERT_EQUAL_size_t(1, pages.damaged);
}

static void test_of_pages_that_overlap_the_first_counts(void)
{
    enter(1, METAS, usual(HEAP));
    enter(2, METAS + 128, usual(HEAP + 639));
    enter(3, METAS + 256, usual(HEAP + 640));
    describe_at(METAS + 128, usual(HEAP + 632));
    read_all();
    TEST_ASSERT_EQUAL_size_t(2, pages.count);
    TEST_ASSERT_EQUAL_size_t(1, pages.damaged);
    TEST_ASSERT_EQUAL_HEX64(HEAP, pages.items[0].start);
    TEST_ASSERT_EQUAL_HEX64(HEAP + 640, pages.items[1].start);
    TEST_ASSERT_EQUAL_UINT32(64, pages.items[1].first_slot);
}

static void test_pages_are_in_the_order_of_their_addresses(void)
{
    static const unsigned order[] = {3, 0, 4, 1, 2};
    for (unsigned i = 0; i < 5; i++) /* that of their descriptions is another */
        enter(i, METAS + order[i] * 128, usual(HEAP + i * SLICE));
    read_all();
    TEST_ASSERT_EQUAL_size_t(5, pages.count);
    for (unsigned i = 0; i < 5; i++) {
        TEST_ASSERT_EQUAL_HEX64(HEAP + i * SLICE, pages.items[i].start);
        TEST_ASSERT_EQUAL_HEX64(METAS + order[i] * 128, pages.items[i].meta);
        TEST_ASSERT_EQUAL_PTR(&pages.items[i], ta__heap_page_at(&pages, HEAP + i * SLICE + 5));
    }
}

static void test_slots_are_numbered_from_multiples_of_64(void)
{
    struct description page = usual(HEAP);
    page.capacity = page.reserved = 64;
    enter(1, METAS, page);
    page.start = HEAP + SLICE;
    page.capacity = page.reserved = 65;
    enter(2, METAS + 128, page);
    enter(3, METAS + 256, usual(HEAP + 2 * SLICE));
    read_all();
    TEST_ASSERT_EQUAL_UINT32(0, pages.items[0].first_slot);
    TEST_ASSERT_EQUAL_UINT32(64, pages.items[1].first_slot);
    TEST_ASSERT_EQUAL_UINT32(192, pages.items[2].first_slot);
    TEST_ASSERT_EQUAL_UINT32(256, pages.slot_count);
    TEST_ASSERT_NULL(ta__heap_page_of_slot(&pages, 256));
    TEST_ASSERT_EQUAL_PTR(&pages.items[0], ta__heap_page_of_slot(&pages, 63));
    TEST_ASSERT_EQUAL_PTR(&pages.items[1], ta__heap_page_of_slot(&pages, 64));
    TEST_ASSERT_EQUAL_PTR(&pages.items[1], ta__heap_page_of_slot(&pages, 128));
    TEST_ASSERT_NULL(ta__heap_page_of_slot(&pages, 129)); /* between two pages */
    TEST_ASSERT_EQUAL_PTR(&pages.items[2], ta__heap_page_of_slot(&pages, 192));
    TEST_ASSERT_EQUAL_PTR(&pages.items[2], ta__heap_page_of_slot(&pages, 196));
    TEST_ASSERT_NULL(ta__heap_page_of_slot(&pages, 197));
}

/* ---- by address -------------------------------------------------------------------------------------------------- */

static void expect_page_at(int index, uint64_t address)
{
    const struct ta__heap_page *expected = index < 0 ? NULL : &pages.items[index];
    TEST_ASSERT_EQUAL_PTR(expected, ta__heap_page_at(&pages, address));
    TEST_ASSERT_EQUAL_PTR(expected, ta__heap_page_search(&pages, address));
}

static void test_page_is_found_by_any_address_among_its_blocks(void)
{
    struct description large = usual(HEAP + 3 * SLICE);
    large.stride = SLICE;
    large.used = 0, large.capacity = 2, large.reserved = 3;
    enter(1, METAS, usual(HEAP + 128));             /* shares its slice */
    enter(2, METAS + 128, usual(HEAP + 128 + 640)); /* with this one */
    enter(3, METAS + 256, large);
    enter(4, METAS + 384, usual(HEAP + 8 * SLICE));
    read_all();
    TEST_ASSERT_EQUAL_size_t(4, pages.count);
    expect_page_at(-1, 0);
    expect_page_at(-1, HEAP + 127);
    expect_page_at(0, HEAP + 128);
    expect_page_at(0, HEAP + 128 + 319);
    expect_page_at(-1, HEAP + 128 + 320); /* blocks that were never made */
    expect_page_at(-1, HEAP + 128 + 639);
    expect_page_at(1, HEAP + 128 + 640);
    expect_page_at(1, HEAP + 128 + 640 + 319);
    expect_page_at(-1, HEAP + 128 + 640 + 320);
    expect_page_at(-1, HEAP + 2 * SLICE);
    expect_page_at(-1, HEAP + 3 * SLICE - 1);
    expect_page_at(2, HEAP + 3 * SLICE);
    expect_page_at(2, HEAP + 4 * SLICE);
    expect_page_at(2, HEAP + 5 * SLICE - 1);
    expect_page_at(-1, HEAP + 5 * SLICE);
    expect_page_at(-1, HEAP + 6 * SLICE);
    expect_page_at(3, HEAP + 8 * SLICE + 319);
    expect_page_at(-1, HEAP + 8 * SLICE + 320);
    expect_page_at(-1, HEAP + 8 * SLICE + 640);
    expect_page_at(-1, HEAP + 9 * SLICE);
    expect_page_at(-1, UINT64_MAX);
}

static void test_page_is_near_also_behind_its_last_block(void)
{
    enter(1, METAS, usual(HEAP));
    enter(2, METAS + 128, usual(HEAP + SLICE));
    read_all();
    TEST_ASSERT_NULL(ta__heap_page_near(&pages, HEAP - 1));
    TEST_ASSERT_EQUAL_PTR(&pages.items[0], ta__heap_page_near(&pages, HEAP));
    TEST_ASSERT_EQUAL_PTR(&pages.items[0], ta__heap_page_near(&pages, HEAP + 639));
    TEST_ASSERT_NULL(ta__heap_page_near(&pages, HEAP + 640));
    TEST_ASSERT_EQUAL_PTR(&pages.items[1], ta__heap_page_near(&pages, HEAP + SLICE));
    TEST_ASSERT_NULL(ta__heap_page_near(&pages, HEAP + SLICE + 640));
}

/* The index of addresses has parts of 512 MiB. */
static void test_page_that_lies_across_parts_of_the_index_is_found(void)
{
    const uint64_t border = UINT64_C(1) << 40, far = border + (UINT64_C(3) << TA__PART_BITS);
    made_map(border - 4 * SLICE, 8 * SLICE, 4096, 0);
    made_map(far, 2 * SLICE, 4096, 0);
    struct description page = usual(border - 2 * SLICE);
    page.stride = SLICE;
    page.used = page.capacity = 4, page.reserved = 5;
    describe_at(border - 4 * SLICE + 8, page);
    describe_at(far + 8, usual(far + SLICE));
    made_word(PART, border - 4 * SLICE + 8);
    made_word(PART + 8, far + 8);
    read_all();
    TEST_ASSERT_EQUAL_size_t(2, pages.count);
    expect_page_at(-1, border - 2 * SLICE - 1);
    for (int slice = -2; slice < 2; slice++)
        expect_page_at(0, border + (uint64_t)slice * SLICE);
    expect_page_at(0, border + 2 * SLICE - 1);
    expect_page_at(-1, border + 2 * SLICE);
    expect_page_at(-1, border + (UINT64_C(1) << TA__PART_BITS)); /* a part without pages */
    expect_page_at(-1, far + SLICE - 1);
    expect_page_at(1, far + SLICE);
    expect_page_at(1, far + SLICE + 319);
}

/* ---- memory of the library's own --------------------------------------------------------------------------------- */

static void put_arena(unsigned index, uint64_t arena, uint64_t slices, uint64_t tables)
{
    put_word(OF_ARENAS + index * 8, arena);
    if (arena == 0)
        return;
    made_word(arena + 8, slices);
    made_word(arena + 16, tables);
}

static void test_arenas_that_can_be_believed_are_known(void)
{
    put_word(OF_ARENAS_COUNT, 4);
    put_arena(0, METAS, 4, 1);
    put_arena(1, 0, 0, 0);
    put_word(OF_ARENAS + 1 * 8, 0x123);            /* cannot be read */
    put_arena(2, METAS + 0x80000, 2, 3);           /* more tables than memory */
    put_arena(3, METAS + 0x90000, 3, 3);           /* nothing but tables */
    put_arena(4, METAS + 0xF0000, UINT64_C(1), 1); /* one more than are counted */
    read_all();
    TEST_ASSERT_EQUAL_size_t(2, pages.arena_count);
    TEST_ASSERT_EQUAL_HEX64(METAS, pages.arenas[0].start);
    TEST_ASSERT_EQUAL_HEX64(METAS + 4 * SLICE, pages.arenas[0].end);
    TEST_ASSERT_EQUAL_HEX64(METAS + 0x90000, pages.arenas[1].start);
    TEST_ASSERT_EQUAL_HEX64(METAS + 0x90000 + 3 * SLICE, pages.arenas[1].end);
    TEST_ASSERT_EQUAL_size_t(2, pages.table_count);
    TEST_ASSERT_EQUAL_HEX64(METAS, pages.tables[0].start);
    TEST_ASSERT_EQUAL_HEX64(METAS + SLICE, pages.tables[0].end);
    TEST_ASSERT_EQUAL_HEX64(METAS + 0x90000 + 3 * SLICE, pages.tables[1].end);
}

static void test_arenas_without_a_number_of_them_are_all_looked_at(void)
{
    put_arena(0, 0, 0, 0);
    put_arena(3, METAS, 4, 1);
    put_word(OF_ARENAS_COUNT, 3);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.arena_count);
    put_word(OF_ARENAS_COUNT, 5);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.arena_count);
    layout.arenas_count = 1;
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.arena_count);
    layout.arenas_most = 3;
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.arena_count);
}

static void test_arenas_beyond_all_addresses_are_left_out(void)
{
    const uint64_t end = UINT64_C(1) << 47, most = end >> TA__SLICE_BITS;
    put_word(OF_ARENAS_COUNT, 2);
    put_arena(0, METAS, most + 1, 0);
    put_arena(1, METAS + 4096, most - METAS / SLICE, 0);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.arena_count); /* it begins 4096 bytes after a slice */
    put_arena(1, METAS + SLICE, most - METAS / SLICE - 1, 0);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.arena_count);
    TEST_ASSERT_EQUAL_HEX64(end, pages.arenas[0].end);
    TEST_ASSERT_EQUAL_size_t(0, pages.table_count); /* nothing is no range */
}

static void test_arenas_are_in_the_order_of_their_addresses(void)
{
    static const uint64_t places[] = {METAS + 0x50000, METAS, METAS + 0x90000};
    put_word(OF_ARENAS_COUNT, 3);
    for (unsigned i = 0; i < 3; i++)
        put_arena(i, places[i], 2, 1);
    read_all();
    TEST_ASSERT_EQUAL_size_t(3, pages.arena_count);
    TEST_ASSERT_EQUAL_HEX64(METAS, pages.arenas[0].start);
    TEST_ASSERT_EQUAL_HEX64(METAS + 0x50000, pages.arenas[1].start);
    TEST_ASSERT_EQUAL_HEX64(METAS + 0x50000, pages.tables[1].start);
    TEST_ASSERT_EQUAL_HEX64(METAS + 0x90000, pages.tables[2].start);
}

static void put_own(uint64_t chunk, unsigned row, uint64_t address, uint64_t bytes)
{
    made_word(chunk + row * layout.region_bytes, address);
    made_word(chunk + row * layout.region_bytes + 8, bytes);
}

static void test_memory_of_the_library_is_known_in_whole_pages(void)
{
    put_word(OF_MAP, 0);
    put_word(OF_CHUNKS, METAS);
    put_word(OF_CHUNKS + 8, METAS + 4096);
    put_own(METAS, 0, 0x900000, 4097);
    put_own(METAS, 1, 0, 4096); /* given back */
    put_own(METAS + 4096, 0, 0x500000, 4096);
    put_own(METAS + 4096, 1, 0x700000, 1);
    put_word(OF_REGIONS_USED, 3);
    read_all();
    TEST_ASSERT_EQUAL_size_t(2, pages.own_count);
    TEST_ASSERT_EQUAL_HEX64(0x500000, pages.own[0].start);
    TEST_ASSERT_EQUAL_HEX64(0x501000, pages.own[0].end);
    TEST_ASSERT_EQUAL_HEX64(0x900000, pages.own[1].start);
    TEST_ASSERT_EQUAL_HEX64(0x902000, pages.own[1].end);
    put_word(OF_REGIONS_USED, 4);
    read_all();
    TEST_ASSERT_EQUAL_size_t(3, pages.own_count);
    TEST_ASSERT_EQUAL_HEX64(0x701000, pages.own[1].end);
}

static void test_memory_of_the_library_is_known_up_to_what_cannot_be_read(void)
{
    put_word(OF_MAP, 0);
    put_word(OF_CHUNKS, METAS);
    put_word(OF_CHUNKS + 8, 0x123);
    put_own(METAS, 0, 0x900000, 4096);
    put_word(OF_REGIONS_USED, 4);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.own_count);
    layout.regions_chunks = 1;
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.own_count);
}

static void test_memory_of_the_library_in_rows_of_an_impossible_shape_is_not_known(void)
{
    static const struct {
        uint64_t bytes, chunk;
        uint32_t used;
        size_t known;
    } cases[] = {{15, 2, 1, 0}, {16, 2, 1, 1}, {64, 2, 1, 1}, {65, 2, 1, 0}, {16, 0, 1, 0}, {16, 1, 1, 1}};
    put_word(OF_MAP, 0);
    put_word(OF_CHUNKS, METAS);
    put_own(METAS, 0, 0x900000, 4096);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layout.region_bytes = cases[i].bytes;
        layout.regions_chunk = cases[i].chunk;
        put_word(OF_REGIONS_USED, cases[i].used);
        read_all();
        TEST_ASSERT_EQUAL_size_t(cases[i].known, pages.own_count);
    }
    layout.region_bytes = 16;
    layout.regions_chunk = 1 << 20;
    made_map(HEAP + HEAP_BYTES, 32 << 20, 16 << 20, 0);
    put_word(OF_CHUNKS, HEAP + HEAP_BYTES);
    put_own(HEAP + HEAP_BYTES, 0, 0x900000, 4096);
    put_word(OF_REGIONS_USED, 1 << 20);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.own_count);
    put_word(OF_REGIONS_USED, (1 << 20) + 1);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.own_count);
    layout.regions_used = 1;
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.own_count);
}

static void test_ranges_are_sorted_and_joined(void)
{
    static const uint64_t rows[][2] = {{0x908000, 4096}, {0x900000, 8192},  {0x902000, 4096}, {0x900000, 4096},
                                       {0x904000, 4096}, {0x901000, 0x800}, {0x904000, 8192}};
    put_word(OF_MAP, 0);
    put_word(OF_CHUNKS, METAS);
    layout.regions_chunk = 16;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        put_own(METAS, i, rows[i][0], rows[i][1]);
    put_word(OF_REGIONS_USED, sizeof rows / sizeof *rows);
    read_all();
    TEST_ASSERT_EQUAL_size_t(3, pages.own_count);
    TEST_ASSERT_EQUAL_HEX64(0x900000, pages.own[0].start);
    TEST_ASSERT_EQUAL_HEX64(0x903000, pages.own[0].end);
    TEST_ASSERT_EQUAL_HEX64(0x904000, pages.own[1].start);
    TEST_ASSERT_EQUAL_HEX64(0x906000, pages.own[1].end);
    TEST_ASSERT_EQUAL_HEX64(0x908000, pages.own[2].start);
    TEST_ASSERT_EQUAL_INT(0, ta__range_holds(pages.own, 3, 0x8FFFFF));
    TEST_ASSERT_EQUAL_INT(1, ta__range_holds(pages.own, 3, 0x900000));
    TEST_ASSERT_EQUAL_INT(1, ta__range_holds(pages.own, 3, 0x902FFF));
    TEST_ASSERT_EQUAL_INT(0, ta__range_holds(pages.own, 3, 0x903000));
    TEST_ASSERT_EQUAL_INT(1, ta__range_holds(pages.own, 3, 0x908FFF));
    TEST_ASSERT_EQUAL_INT(0, ta__range_holds(pages.own, 3, 0x909000));
    TEST_ASSERT_EQUAL_size_t(0, ta__range_from(pages.own, 3, 0));
    TEST_ASSERT_EQUAL_size_t(1, ta__range_from(pages.own, 3, 0x903000));
    TEST_ASSERT_EQUAL_size_t(3, ta__range_from(pages.own, 3, 0x909000));
}

static void test_description_in_front_of_a_page_is_the_allocators_own(void)
{
    const uint64_t base = HEAP + HEAP_BYTES;
    made_map(base, 40 * SLICE, 40 * SLICE, 0);
    static const struct {
        unsigned meta, start, slices;
    } cases[] = {{0, 1, 1}, {0, 16, 16}, {0, 17, 0}, {1, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t meta = base + cases[i].meta * SLICE;
        describe_at(meta + 64, usual(base + cases[i].start * SLICE + 2048));
        made_word(PART, meta + 64);
        read_all();
        TEST_ASSERT_EQUAL_size_t(1, pages.count);
        TEST_ASSERT_EQUAL_size_t(2 + (cases[i].slices > 0), pages.own_count);
        if (cases[i].slices == 0)
            continue;
        TEST_ASSERT_EQUAL_HEX64(base, pages.own[2].start);
        TEST_ASSERT_EQUAL_HEX64(base + cases[i].slices * SLICE, pages.own[2].end);
    }
}

/* ---- whose an address is ----------------------------------------------------------------------------------------- */

static void expect_owner(enum ta__memory_owner owner, uint64_t end, uint64_t address)
{
    uint64_t found = UINT64_MAX;
    TEST_ASSERT_EQUAL_INT(owner, ta__heap_owner(&pages, address, &found));
    TEST_ASSERT_EQUAL_HEX64(end, found);
    found = address + 1;
    TEST_ASSERT_EQUAL_INT(owner, ta__heap_owner(&pages, address, &found));
    TEST_ASSERT_EQUAL_HEX64(address + 1, found);
}

static void test_owner_of_an_address_and_where_that_ends(void)
{
    made_map(HEAP + HEAP_BYTES, 16 * SLICE, 16 * SLICE, 0);
    const uint64_t arena = HEAP + HEAP_BYTES;
    put_word(OF_ARENAS_COUNT, 1);
    put_arena(0, arena, 8, 2);
    describe_at(arena + 128, usual(arena + 3 * SLICE + 64));
    made_word(PART, arena + 128);
    put_word(OF_CHUNKS, METAS);
    put_own(METAS, 0, arena + 7 * SLICE, 4096); /* an arena knows better */
    put_own(METAS, 1, arena + 12 * SLICE, 4096);
    put_word(OF_REGIONS_USED, 2);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    expect_owner(TA__OWNER_PROGRAM, MAP, DATA);
    expect_owner(TA__OWNER_TABLES, MAP + 8, MAP);
    expect_owner(TA__OWNER_PROGRAM, PART, MAP + 8);
    expect_owner(TA__OWNER_TABLES, PART + PART_WORDS * 8, PART + 5);
    expect_owner(TA__OWNER_PROGRAM, arena, HEAP);
    expect_owner(TA__OWNER_TABLES, arena + 2 * SLICE, arena);
    expect_owner(TA__OWNER_TABLES, arena + 2 * SLICE, arena + 2 * SLICE - 1);
    expect_owner(TA__OWNER_ARENA, arena + 3 * SLICE, arena + 2 * SLICE);
    expect_owner(TA__OWNER_PAGE, arena + 4 * SLICE, arena + 3 * SLICE);
    expect_owner(TA__OWNER_PAGE, arena + 4 * SLICE, arena + 4 * SLICE - 1);
    expect_owner(TA__OWNER_ARENA, arena + 7 * SLICE, arena + 4 * SLICE);
    expect_owner(TA__OWNER_ARENA, arena + 7 * SLICE + 4096, arena + 7 * SLICE);
    expect_owner(TA__OWNER_PROGRAM, arena + 12 * SLICE, arena + 8 * SLICE);
    expect_owner(TA__OWNER_TABLES, arena + 12 * SLICE + 4096, arena + 12 * SLICE);
    expect_owner(TA__OWNER_PROGRAM, UINT64_MAX, arena + 12 * SLICE + 4096);
}

/* ---- emergency memory -------------------------------------------------------------------------------------------- */

/* Blocks begin with class (4), state (4), size (8); multiples of 32; classes from 64 bytes on, four to each doubling. */
enum { GRAIN = 32, HEAD = 16, LIVE = 77, CLASSES = 40 };
#define EMERGENCY UINT64_C(0x50000000)

static void make_emergency(void)
{
    put_word(OF_MAP, 0);
    made_map(EMERGENCY, 1 << 20, 1 << 20, 0);
    put_word(OF_EMERGENCY, EMERGENCY);
    layout.emergency_start = DATA + OF_EMERGENCY;
    layout.emergency_used = DATA + OF_EMERGENCY_USED;
    layout.emergency_bytes = 1 << 20;
    layout.emergency_grain = GRAIN;
    layout.emergency_head = HEAD;
    layout.emergency_first_bits = 6;
    layout.emergency_classes = CLASSES;
    layout.emergency_class = 0;
    layout.emergency_state = 4;
    layout.emergency_size = 8;
    layout.emergency_live = LIVE;
}

/* Answers where the next one begins. */
static uint64_t put_block(uint64_t at, uint32_t class, uint32_t state, uint64_t size, uint64_t offset)
{
    static const uint64_t bytes[] = {64, 96, 96, 128, 128, 160, 192, 224, 256};
    made_half(at, class);
    made_half(at + 4, state);
    made_word(at + 8, size);
    if (offset != 0)
        made_word(at + offset - 8, offset);
    put_word(OF_EMERGENCY_USED, at + bytes[class] - EMERGENCY);
    return at + bytes[class];
}

static void expect_single(size_t index, uint64_t start, uint64_t stride, uint64_t offset, uint64_t size)
{
    TEST_ASSERT_TRUE(index < pages.count);
    const struct ta__heap_page *page = &pages.items[index];
    TEST_ASSERT_EQUAL_HEX64(start, page->start);
    TEST_ASSERT_EQUAL_UINT64(stride, page->stride);
    TEST_ASSERT_EQUAL_UINT32(1, page->slots);
    TEST_ASSERT_EQUAL_UINT32(1, page->reserved);
    TEST_ASSERT_EQUAL_UINT32(1, page->used);
    TEST_ASSERT_EQUAL_UINT32(TA__HEAP_PAGE_SINGLE, page->flags);
    TEST_ASSERT_EQUAL_UINT64(offset, page->user_offset);
    TEST_ASSERT_EQUAL_UINT64(size, page->user_size);
}

static void test_emergency_blocks_are_walked_by_their_classes(void)
{
    make_emergency();
    uint64_t at = EMERGENCY;
    for (uint32_t class = 0; class <= 8; class ++)
        at = put_block(at, class, class == 4 ? LIVE + 1 : LIVE, class + 1, 0);
    read_all();
    TEST_ASSERT_EQUAL_size_t(8, pages.count);
    expect_single(0, EMERGENCY, 64, HEAD, 1);
    expect_single(1, EMERGENCY + 64, 96, HEAD, 2); /* 80, in grains */
    expect_single(2, EMERGENCY + 160, 96, HEAD, 3);
    expect_single(3, EMERGENCY + 256, 128, HEAD, 4); /* 112, in grains */
    expect_single(4, EMERGENCY + 512, 160, HEAD, 6); /* one that is free lies between */
    expect_single(7, EMERGENCY + 1088, 256, HEAD, 9);
    struct ta__range extent = ta__heap_page_extent(&pages.items[1]);
    TEST_ASSERT_EQUAL_HEX64(EMERGENCY + 64, extent.start);
    TEST_ASSERT_EQUAL_HEX64(EMERGENCY + 160, extent.end);
}

static void test_emergency_block_of_an_alignment_begins_where_it_says(void)
{
    make_emergency();
    uint64_t at = put_block(EMERGENCY, 8, LIVE, 100, 64);
    at = put_block(at, 8, LIVE, 100, 32);
    at = put_block(at, 8, LIVE, 300, 128); /* more than there is room for: not believed */
    at = put_block(at, 8, LIVE, 256, 128);
    put_block(at, 8, LIVE, 100, 48); /* no power of two */
    read_all();
    TEST_ASSERT_EQUAL_size_t(4, pages.count);
    expect_single(0, EMERGENCY, 256, 64, 100);
    expect_single(1, EMERGENCY + 256, 256, 32, 100);
    expect_single(2, EMERGENCY + 768, 256, 128, 128);
    expect_single(3, EMERGENCY + 1024, 256, HEAD, 100);
}

/* Whatever stands where the bytes of another alignment would begin. */
static void test_emergency_block_says_in_its_head_where_it_begins(void)
{
    enum { LARGER_HEAD = 32, OF_OFFSET = 16 };
    static const uint32_t said[] = {32, 48, 224, 255, 256, 31, 0, UINT32_MAX};
    static const uint64_t offsets[] = {32, 48, 224, 255, 32, 32, 32, 32};
    make_emergency();
    layout.emergency_head = LARGER_HEAD;
    layout.emergency_offset = OF_OFFSET;
    uint64_t at = EMERGENCY;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        made_half(at + OF_OFFSET, said[i]);
        at = put_block(at, 8, LIVE, 20, 64);
    }
    read_all();
    TEST_ASSERT_EQUAL_size_t(sizeof said / sizeof *said, pages.count);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        expect_single(i, EMERGENCY + 256 * i, 256, offsets[i], offsets[i] == 255 ? 1 : 20);
}

static void test_emergency_blocks_end_where_one_cannot_be(void)
{
    make_emergency();
    uint64_t second = put_block(EMERGENCY, 0, LIVE, 5, 0), third = put_block(second, 0, LIVE, 6, 0);
    put_block(third, 0, LIVE, 7, 0);
    read_all();
    TEST_ASSERT_EQUAL_size_t(3, pages.count);
    made_half(second, CLASSES);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    made_half(second, CLASSES - 1);
    put_word(OF_EMERGENCY_USED, 65);
    read_all();
    TEST_ASSERT_EQUAL_size_t(2, pages.count);
    layout.emergency_classes = 1024;
    made_half(second, 4 * (40 - 6)); /* 2 to the power of 40 */
    read_all();
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(1) << 40, pages.items[1].stride);
    made_half(second, 4 * (41 - 6));
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    made_half(second, 0);
    put_word(OF_EMERGENCY_USED, 64);
    read_all();
    TEST_ASSERT_EQUAL_size_t(1, pages.count);
    made_break(EMERGENCY, EMERGENCY + 64);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
}

static size_t count_with(uint64_t *member, uint64_t value)
{
    uint64_t before = *member;
    *member = value;
    read_all();
    *member = before;
    return pages.count;
}

static void test_emergency_memory_of_an_impossible_shape_is_not_looked_at(void)
{
    make_emergency();
    put_block(EMERGENCY, 4, LIVE, 5, 0);
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_start, 0));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_start, 1));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_used, 1));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_grain, 0));
    TEST_ASSERT_EQUAL_size_t(1, count_with(&layout.emergency_grain, TA__TARGET_PAGE));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_grain, TA__TARGET_PAGE + 1));
    TEST_ASSERT_EQUAL_size_t(1, count_with(&layout.emergency_classes, 1024));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_classes, 1025));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_first_bits, 1));
    TEST_ASSERT_EQUAL_size_t(1, count_with(&layout.emergency_first_bits, 2));
    TEST_ASSERT_EQUAL_size_t(1, count_with(&layout.emergency_first_bits, 16));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_first_bits, 17));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_head, 15));
    TEST_ASSERT_EQUAL_size_t(1, count_with(&layout.emergency_head, 16));
    TEST_ASSERT_EQUAL_size_t(1, count_with(&layout.emergency_bytes, 128));
    TEST_ASSERT_EQUAL_size_t(0, count_with(&layout.emergency_bytes, 127));
    put_word(OF_EMERGENCY, 0);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
    put_word(OF_EMERGENCY, UINT64_C(1) << 47);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
    put_word(OF_EMERGENCY, EMERGENCY);
    layout.emergency_bytes = UINT64_MAX;
    put_word(OF_EMERGENCY_USED, UINT64_C(1) << 32);
    read_all();
    TEST_ASSERT_EQUAL_size_t(0, pages.count);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_pages_stand_anywhere_in_the_table_and_count_once);
    RUN_TEST(test_each_part_of_the_table_is_looked_at_as_far_as_it_is_counted);
    RUN_TEST(test_the_table_is_the_allocators_own_memory);
    RUN_TEST(test_without_a_table_nothing_was_allocated_yet);
    RUN_TEST(test_table_of_an_impossible_shape_is_refused);
    RUN_TEST(test_largest_part_of_a_table_is_read_to_its_end);
    RUN_TEST(test_table_with_too_many_parts_is_damaged);
    RUN_TEST(test_table_that_cannot_be_read_is_an_error);
    RUN_TEST(test_description_of_an_impossible_shape_is_refused);
    RUN_TEST(test_page_is_what_its_description_says);
    RUN_TEST(test_kind_of_a_page_follows_from_heap_and_thread);
    RUN_TEST(test_library_that_cannot_trace_has_no_headers_and_no_heap_of_its_own);
    RUN_TEST(test_header_is_long_in_pages_of_large_blocks);
    RUN_TEST(test_description_that_cannot_be_is_counted_as_damaged);
    RUN_TEST(test_page_begins_at_a_multiple_of_eight);
    RUN_TEST(test_description_that_cannot_be_read_is_damaged);
    RUN_TEST(test_page_may_be_very_large_and_not_larger);
    RUN_TEST(test_page_beyond_the_addresses_of_programs_is_damaged);
    RUN_TEST(test_of_pages_that_overlap_the_first_counts);
    RUN_TEST(test_pages_are_in_the_order_of_their_addresses);
    RUN_TEST(test_slots_are_numbered_from_multiples_of_64);
    RUN_TEST(test_page_is_found_by_any_address_among_its_blocks);
    RUN_TEST(test_page_is_near_also_behind_its_last_block);
    RUN_TEST(test_page_that_lies_across_parts_of_the_index_is_found);
    RUN_TEST(test_arenas_that_can_be_believed_are_known);
    RUN_TEST(test_arenas_without_a_number_of_them_are_all_looked_at);
    RUN_TEST(test_arenas_beyond_all_addresses_are_left_out);
    RUN_TEST(test_arenas_are_in_the_order_of_their_addresses);
    RUN_TEST(test_memory_of_the_library_is_known_in_whole_pages);
    RUN_TEST(test_memory_of_the_library_is_known_up_to_what_cannot_be_read);
    RUN_TEST(test_memory_of_the_library_in_rows_of_an_impossible_shape_is_not_known);
    RUN_TEST(test_ranges_are_sorted_and_joined);
    RUN_TEST(test_description_in_front_of_a_page_is_the_allocators_own);
    RUN_TEST(test_owner_of_an_address_and_where_that_ends);
    RUN_TEST(test_emergency_blocks_are_walked_by_their_classes);
    RUN_TEST(test_emergency_block_of_an_alignment_begins_where_it_says);
    RUN_TEST(test_emergency_block_says_in_its_head_where_it_begins);
    RUN_TEST(test_emergency_blocks_end_where_one_cannot_be);
    RUN_TEST(test_emergency_memory_of_an_impossible_shape_is_not_looked_at);
    return UNITY_END();
}
