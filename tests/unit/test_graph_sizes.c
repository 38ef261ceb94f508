/* test_graph_sizes.c: graphs of blocks that are many, large or oddly placed, and of rows that are more than are looked at
 * closely: what the small random heaps of test_block_graph.c do not have. */
#include <stdlib.h>
#include <string.h>

#include "analysis/image/pointer_paths.h"
#include "analysis/image/retained.h"
#include "tests/support/made_memory.h"
#include "tests/support/random.h"
#include "tracealloc/image.h"

#include <unity.h>

#define HEAP  UINT64_C(0x40000000)
#define LARGE UINT64_C(0x60000000) /* another page, of one block */
enum { MANY = 3001, STRIDE = 16, PIECE = 1 << 20, LARGE_BYTES = 3 * PIECE };

static struct ta__heap_page pages[2];
static uint32_t *parts, slices[2 * TA__PART_SLICES];
static struct ta__heap_pages heap;
static struct ta__block_graph graph;
static struct ta__page_block blocks[MANY];
static uint32_t traces[MANY];
static uint8_t bytes[MANY * STRIDE];

/* A page of many small blocks, and one of a large block. */
void setUp(void)
{
    static uint32_t two_parts[2];
    made_begin();
    memset(bytes, 0, sizeof bytes);
    memset(traces, 0, sizeof traces);
    pages[0] = (struct ta__heap_page){
        .start = HEAP, .stride = STRIDE, .slots = MANY, .reserved = MANY, .reciprocal = UINT64_MAX / STRIDE + 1};
    pages[1] = (struct ta__heap_page){.start = LARGE,
                                      .stride = LARGE_BYTES,
                                      .slots = 1,
                                      .reserved = 1,
                                      .first_slot = 3008,
                                      .reciprocal = UINT64_MAX / LARGE_BYTES + 1};
    memset(slices, 0, sizeof slices);
    for (uint64_t at = HEAP; at < HEAP + MANY * STRIDE; at += 1 << TA__SLICE_BITS)
        slices[at >> TA__SLICE_BITS & (TA__PART_SLICES - 1)] = 1;
    for (uint64_t at = LARGE; at < LARGE + LARGE_BYTES; at += 1 << TA__SLICE_BITS)
        slices[TA__PART_SLICES + (at >> TA__SLICE_BITS & (TA__PART_SLICES - 1))] = 2;
    two_parts[0] = 1;
    two_parts[1] = TA__PART_SLICES + 1;
    parts = two_parts;
    heap = (struct ta__heap_pages){.items = pages,
                                   .count = 2,
                                   .slot_count = 3072,
                                   .low = HEAP,
                                   .high = LARGE + LARGE_BYTES,
                                   .parts = parts,
                                   .by_slice = slices};
    for (uint32_t i = 0; i < MANY; i++)
        blocks[i] = (struct ta__page_block){.slot = i, .size = STRIDE};
}

void tearDown(void)
{
    ta__graph_free(&graph);
    made_end();
}

static uint64_t block(uint32_t slot)
{
    return HEAP + (uint64_t)slot * STRIDE;
}

static void open_graph(unsigned flags, int keeps_places)
{
    ta__graph_free(&graph);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_open(&graph, &heap, flags, keeps_places));
}

static void add_small(uint32_t count)
{
    TEST_ASSERT_EQUAL_INT(0, ta__graph_add_page(&graph, made, 0, blocks, traces, count, bytes));
}

static void put_pointer(uint32_t slot, uint32_t place, uint64_t to)
{
    memcpy(bytes + slot * STRIDE + place, &to, sizeof to);
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

static void test_ranks_and_slots_of_many_blocks_belong_together(void)
{
    uint64_t random = 3;
    static uint32_t slot_of[MANY];
    for (uint32_t one_in = 1; one_in <= 700; one_in = one_in * 5 + 2) {
        uint32_t count = 0;
        for (uint32_t slot = 0; slot < MANY; slot++)
            if (random_next(&random) % one_in == 0 || slot == MANY - 1) {
                slot_of[count] = slot;
                traces[count] = slot % 77;
                blocks[count++] = (struct ta__page_block){.slot = slot, .size = slot % 17};
            }
        for (uint32_t i = 0; i < count; i++) {
            put_pointer(slot_of[i], 0, block(slot_of[(i + 1) % count]));
            put_pointer(slot_of[i], 8, block(slot_of[(i + 7) % count]) + 3);
        }
        for (uint32_t i = 0; i < count; i++)
            blocks[i].size = STRIDE;
        open_graph(0, (int)(one_in & 1));
        add_small(count);
        TEST_ASSERT_EQUAL_INT(0, ta__graph_finish(&graph));
        TEST_ASSERT_EQUAL_UINT32(count, graph.count);
        for (uint32_t rank = 0; rank < count; rank++) {
            struct ta__edges edges;
            struct ta__edge edge;
            TEST_ASSERT_EQUAL_UINT32(slot_of[rank], ta__graph_slot_of_rank(&graph, rank));
            TEST_ASSERT_EQUAL_UINT32(rank, ta__graph_rank(&graph, slot_of[rank]));
            TEST_ASSERT_EQUAL_UINT32(slot_of[rank] % 77, graph.traces[rank]);
            ta__graph_edges(&graph, rank, slot_of[rank], &edges);
            TEST_ASSERT_EQUAL_INT(1, ta__graph_next(&graph, &edges, &edge));
            TEST_ASSERT_EQUAL_UINT32(slot_of[(rank + 1) % count], edge.slot);
            TEST_ASSERT_EQUAL_INT(0, edge.is_inner);
            TEST_ASSERT_EQUAL_INT(1, ta__graph_next(&graph, &edges, &edge));
            TEST_ASSERT_EQUAL_UINT32(slot_of[(rank + 7) % count], edge.slot);
            TEST_ASSERT_EQUAL_INT(1, edge.is_inner);
            TEST_ASSERT_EQUAL_UINT64(graph.keeps_places ? 8 : 0, edge.offset);
            TEST_ASSERT_EQUAL_INT(0, ta__graph_next(&graph, &edges, &edge));
        }
        TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, ta__graph_slot_of_rank(&graph, count));
        TEST_ASSERT_EQUAL_UINT64(2 * count, graph.edge_count);
    }
}

/* ---- odd sizes and places ---------------------------------------------------------------------------------------- */

static void test_sizes_and_places_that_are_not_usual(void)
{
    static const uint64_t sizes[] = {0, 1, 65534, 65535, 65536, UINT64_C(1) << 33};
    pages[0].stride = 1 << 20;
    pages[0].slots = 6;
    pages[0].header = 8;
    for (uint64_t at = HEAP; at < HEAP + 6 * pages[0].stride; at += 1 << TA__SLICE_BITS)
        slices[at >> TA__SLICE_BITS & (TA__PART_SLICES - 1)] = 1;
    pages[0].reciprocal = UINT64_MAX / pages[0].stride + 1;
    for (uint32_t i = 0; i < 6; i++)
        blocks[i] = (struct ta__page_block){.slot = i, .offset = i == 4 ? 32 : 8, .size = sizes[i]};
    open_graph(0, 0);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_add_page(&graph, made, 0, blocks, traces, 6, NULL));
    pages[1].flags = TA__HEAP_PAGE_SINGLE;
    pages[1].user_offset = 48;
    blocks[0] = (struct ta__page_block){.offset = 48, .size = 5};
    TEST_ASSERT_EQUAL_INT(0, ta__graph_add_page(&graph, made, 1, blocks, traces, 1, NULL));
    TEST_ASSERT_EQUAL_INT(0, ta__graph_finish(&graph));
    TEST_ASSERT_EQUAL_size_t(3, graph.odd_count);
    for (uint32_t i = 0; i < 6; i++) {
        TEST_ASSERT_EQUAL_UINT64(sizes[i], ta__graph_size(&graph, i));
        TEST_ASSERT_EQUAL_HEX64(HEAP + i * pages[0].stride + (i == 4 ? 32 : 8), ta__graph_address(&graph, i));
        TEST_ASSERT_EQUAL_INT(i == 4, ta__graph_is_odd(&graph, i));
    }
    TEST_ASSERT_EQUAL_HEX64(HEAP + 7, ta__graph_address(&graph, 0) - 1);
    TEST_ASSERT_EQUAL_HEX64(LARGE + 48, ta__graph_address(&graph, 3008));
    TEST_ASSERT_EQUAL_INT(1, ta__graph_is_odd(&graph, 3008));     /* pointers to it look like inner ones */
    TEST_ASSERT_EQUAL_UINT64(0, ta__graph_address(&graph, 3009)); /* of no page */
    TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, ta__graph_slot(&graph, HEAP + 7));
    TEST_ASSERT_EQUAL_UINT32(0, ta__graph_slot(&graph, HEAP + 8));
    TEST_ASSERT_EQUAL_UINT32(5, ta__graph_slot(&graph, HEAP + 6 * pages[0].stride - 1));
    TEST_ASSERT_EQUAL_UINT32(UINT32_MAX, ta__graph_slot(&graph, HEAP + 6 * pages[0].stride));
}

static void test_inner_pointers_are_passed_over_when_that_is_asked_for(void)
{
    struct ta__edges edges;
    struct ta__edge edge;
    blocks[2].offset = 8; /* that one begins there */
    blocks[2].size = 8;
    put_pointer(0, 0, block(1) + 1);
    put_pointer(0, 8, block(2) + 8);
    open_graph(0, 0);
    add_small(3);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_finish(&graph));
    ta__graph_edges(&graph, 0, 0, &edges);
    TEST_ASSERT_EQUAL_INT(1, ta__graph_next(&graph, &edges, &edge));
    TEST_ASSERT_EQUAL_UINT32(1, edge.slot);
    graph.passes_inner = 1;
    ta__graph_edges(&graph, 0, 0, &edges);
    TEST_ASSERT_EQUAL_INT(1, ta__graph_next(&graph, &edges, &edge));
    TEST_ASSERT_EQUAL_UINT32(2, edge.slot);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_next(&graph, &edges, &edge));
}

/* ---- large blocks ------------------------------------------------------------------------------------------------ */

/* The slots that the large block points to, in order. */
static size_t pointers_of_large(uint32_t *slots, uint64_t *places, size_t most)
{
    struct ta__edges edges;
    struct ta__edge edge;
    size_t count = 0;
    ta__graph_edges(&graph, graph.count - 1, 3008, &edges);
    for (; ta__graph_next(&graph, &edges, &edge); count++)
        if (count < most) {
            slots[count] = edge.slot;
            places[count] = edge.offset;
        }
    return count;
}

static void add_large(uint64_t offset, uint64_t size)
{
    const struct ta__page_block large = {.offset = (uint32_t)offset, .size = size};
    add_small(MANY);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_add_page(&graph, made, 1, &large, traces, 1, NULL));
    TEST_ASSERT_EQUAL_INT(0, ta__graph_finish(&graph));
}

static void test_block_that_is_not_at_hand_is_read_piece_by_piece(void)
{
    static const uint64_t places[] = {0, 8, PIECE - 8, PIECE, 2 * PIECE - 8, 2 * PIECE, LARGE_BYTES - 8};
    uint32_t slots[8];
    uint64_t found[8];
    made_map(LARGE, LARGE_BYTES, LARGE_BYTES, 0);
    for (uint32_t i = 0; i < 7; i++)
        made_word(LARGE + places[i], block(10 + i));
    made_word(LARGE + 100, block(50)); /* at no multiple of 8 */
    open_graph(0, 1);
    add_large(0, LARGE_BYTES);
    TEST_ASSERT_EQUAL_size_t(7, pointers_of_large(slots, found, 8));
    for (uint32_t i = 0; i < 7; i++) {
        TEST_ASSERT_EQUAL_UINT32(10 + i, slots[i]);
        TEST_ASSERT_EQUAL_UINT64(places[i], found[i]);
    }
    open_graph(0, 1);
    add_large(4, 16); /* its words stand at multiples of 8 all the same; the last one ends behind it */
    TEST_ASSERT_EQUAL_size_t(1, pointers_of_large(slots, found, 8));
    TEST_ASSERT_EQUAL_UINT32(11, slots[0]);
    TEST_ASSERT_EQUAL_UINT64(4, found[0]);
    made_break(LARGE + PIECE, LARGE + 2 * PIECE); /* what cannot be read holds nothing up */
    open_graph(0, 1);
    add_large(0, LARGE_BYTES);
    TEST_ASSERT_EQUAL_size_t(5, pointers_of_large(slots, found, 8));
    TEST_ASSERT_EQUAL_UINT64(2 * PIECE, found[3]);
}

static void test_pointers_across_the_borders_of_pieces_are_found(void)
{
    static const uint64_t places[] = {1, PIECE - 9, PIECE - 1, PIECE + 8, 2 * PIECE - 7, LARGE_BYTES - 8};
    uint32_t slots[8];
    uint64_t found[8];
    made_map(LARGE, LARGE_BYTES, LARGE_BYTES, 0);
    for (uint32_t i = 0; i < 6; i++)
        made_word(LARGE + places[i], block(10 + i) | UINT64_C(0xAB) << 48);
    open_graph(TA_IMAGE_UNALIGNED | TA_IMAGE_TAGGED, 1);
    add_large(0, LARGE_BYTES);
    size_t count = pointers_of_large(slots, found, 8), at = 0;
    for (size_t i = 0; i < 6; i++) { /* shifted bytes of one may look like another */
        while (at < count && found[at] != places[i])
            at++;
        TEST_ASSERT_TRUE(at < count);
        TEST_ASSERT_EQUAL_UINT32(10 + i, slots[at]);
    }
    open_graph(TA_IMAGE_UNALIGNED, 1);
    made_word(LARGE + 3, block(20));
    add_large(3, 8);
    TEST_ASSERT_EQUAL_size_t(1, pointers_of_large(slots, found, 8));
    TEST_ASSERT_EQUAL_UINT32(20, slots[0]);
    TEST_ASSERT_EQUAL_UINT64(0, found[0]);
}

/* The number of pointers is written in front of them, in one byte or more. */
static void test_blocks_may_have_any_number_of_pointers(void)
{
    static const uint32_t numbers[] = {0, 1, 127, 128, 129, 2999};
    made_map(LARGE, LARGE_BYTES, LARGE_BYTES, 0);
    static uint32_t slots[MANY];
    static uint64_t found[MANY];
    for (int keeps = 0; keeps < 2; keeps++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            for (uint32_t i = 0; i < 3000; i++)
                made_word(LARGE + i * 800, i < numbers[k] ? block(i * 7 % MANY) : 0);
            open_graph(0, keeps);
            add_large(0, LARGE_BYTES);
            TEST_ASSERT_EQUAL_size_t(numbers[k], pointers_of_large(slots, found, MANY));
            for (uint32_t i = 0; i < numbers[k]; i++) {
                TEST_ASSERT_EQUAL_UINT32(i * 7 % MANY, slots[i]);
                TEST_ASSERT_EQUAL_UINT64(keeps ? i * 800 : 0, found[i]);
            }
        }
}

static void test_block_that_is_pointed_to_twice_in_a_row_counts_once(void)
{
    struct ta__edges edges;
    struct ta__edge edge;
    for (int keeps = 0; keeps < 2; keeps++) {
        put_pointer(0, 0, block(2));
        put_pointer(0, 8, block(2));
        put_pointer(1, 0, block(1)); /* to itself, first of all */
        open_graph(0, keeps);
        add_small(3);
        TEST_ASSERT_EQUAL_INT(0, ta__graph_finish(&graph));
        TEST_ASSERT_EQUAL_UINT64(keeps ? 3 : 2, graph.edge_count);
        ta__graph_edges(&graph, 1, 1, &edges);
        TEST_ASSERT_EQUAL_INT(1, ta__graph_next(&graph, &edges, &edge));
        TEST_ASSERT_EQUAL_UINT32(1, edge.slot);
    }
}

/* ---- pointers to one block ----------------------------------------------------------------------------------------- */

/* More pointers of the program's own than there are blocks: all are kept for the block that is asked about. */
static void test_block_may_have_more_roots_than_there_are_blocks(void)
{
    enum { ROOTS = 5000, KEPT = 1000 };
    static uint64_t roots[ROOTS];
    struct ta__paths paths;
    struct ta__root root = {0};
    for (uint32_t i = 0; i < ROOTS; i++)
        roots[i] = block(0);
    open_graph(0, 1);
    graph.asked_slot = 0;
    add_small(1);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_add_roots(&graph, 4096, (const uint8_t *)roots, sizeof roots));
    TEST_ASSERT_EQUAL_INT(0, ta__graph_finish(&graph));
    TEST_ASSERT_EQUAL_INT(0, ta__paths_find(&paths, &graph, 0));
    TEST_ASSERT_EQUAL_UINT64(ROOTS, paths.total);
    TEST_ASSERT_EQUAL_size_t(KEPT, paths.count);
    for (uint32_t i = 0; i < KEPT; i++) {
        uint32_t slot = UINT32_MAX;
        TEST_ASSERT_EQUAL_size_t(1, ta__paths_way(&paths, i, &slot, 1, &root));
        TEST_ASSERT_EQUAL_UINT32(0, slot);
        TEST_ASSERT_EQUAL_UINT32(0, root.slot);
    }
    ta__paths_free(&paths);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Of each row one block: the first of them hold least. */
static void test_rows_that_hold_most_are_exact(void)
{
    enum { ROWS = 40 };
    struct ta__dominators dominators = {0};
    struct ta__retained_group groups[ROWS];
    uint32_t group_of_trace[ROWS + 1];
    uint64_t roots[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        traces[i] = group_of_trace[i] = i;
        blocks[i].size = i / 2 == 3 ? 8 : i % 16 + 1; /* with ties */
        roots[i] = block(i);
    }
    group_of_trace[ROWS] = 0;
    open_graph(0, 0);
    add_small(ROWS);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_add_roots(&graph, 4096, (const uint8_t *)roots, sizeof roots));
    TEST_ASSERT_EQUAL_INT(0, ta__graph_finish(&graph));
    TEST_ASSERT_EQUAL_INT(0, ta__dominators_find(&dominators, &graph));
    TEST_ASSERT_EQUAL_INT(0, ta__retained_groups(&dominators, group_of_trace, ROWS, groups, ROWS));
    uint32_t exact = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        TEST_ASSERT_EQUAL_UINT64(1, groups[i].blocks);
        TEST_ASSERT_EQUAL_UINT64(blocks[i].size, groups[i].retained);
        exact += (uint32_t)groups[i].is_exact;
        for (uint32_t k = 0; k < ROWS; k++) /* no row that holds less goes before; of equal ones the first does */
            if (groups[i].is_exact && !groups[k].is_exact)
                TEST_ASSERT_TRUE(blocks[i].size > blocks[k].size || (blocks[i].size == blocks[k].size && i < k));
    }
    TEST_ASSERT_EQUAL_UINT32(32, exact);
    ta__dominators_free(&dominators);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_ranks_and_slots_of_many_blocks_belong_together);
    RUN_TEST(test_sizes_and_places_that_are_not_usual);
    RUN_TEST(test_inner_pointers_are_passed_over_when_that_is_asked_for);
    RUN_TEST(test_block_that_is_not_at_hand_is_read_piece_by_piece);
    RUN_TEST(test_pointers_across_the_borders_of_pieces_are_found);
    RUN_TEST(test_blocks_may_have_any_number_of_pointers);
    RUN_TEST(test_block_that_is_pointed_to_twice_in_a_row_counts_once);
    RUN_TEST(test_block_may_have_more_roots_than_there_are_blocks);
    RUN_TEST(test_rows_that_hold_most_are_exact);
    return UNITY_END();
}
