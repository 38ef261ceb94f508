/* test_block_graph.c: random heaps, whose graphs are small enough to try everything: what is reached, what is lost and how,
 * the shortest ways, who dominates whom, and what goes with whom. */
#include <stdlib.h>
#include <string.h>

#include "analysis/image/lost_blocks.h"
#include "analysis/image/pointer_paths.h"
#include "analysis/image/retained.h"
#include "tests/support/random.h"
#include "tracealloc/image.h"

#include <unity.h>

enum { MOST = 40, STRIDE = 112, USER = 16, WORDS = (STRIDE - USER) / 8, GROUPS = 5 };
#define START UINT64_C(0x10000010000)

static struct ta__heap_page page;
static struct ta__heap_pages pages;
static uint32_t parts[2], slices[TA__PART_SLICES];
static struct ta__block_graph graph;
static uint8_t memory[MOST * STRIDE];
static int live[MOST], rooted[MOST], edge[MOST][MOST], sizes[MOST], count;
static uint32_t group_of[MOST];

void setUp(void)
{
}

void tearDown(void)
{
    ta__graph_free(&graph);
}

static uint64_t address_of(int slot)
{
    return START + (uint64_t)slot * STRIDE + USER;
}

static void make_page(void)
{
    page = (struct ta__heap_page){.start = START,
                                  .stride = STRIDE,
                                  .slots = (uint32_t)count,
                                  .reserved = MOST,
                                  .flags = TA__HEAP_PAGE_HEADERS,
                                  .header = USER,
                                  .reciprocal = UINT64_MAX / STRIDE + 1};
    memset(slices, 0, sizeof slices);
    parts[0] = 1;
    slices[(START >> TA__SLICE_BITS) & (TA__PART_SLICES - 1)] = 1;
    pages = (struct ta__heap_pages){.items = &page,
                                    .count = 1,
                                    .slot_count = (uint32_t)((count + 63) & ~63),
                                    .low = START,
                                    .high = START + MOST * STRIDE,
                                    .parts = parts,
                                    .by_slice = slices};
}

/* A heap with about `density` pointers for each block. */
static void make_heap(uint64_t *random, unsigned density, int keeps_places)
{
    struct ta__page_block blocks[MOST];
    uint32_t traces[MOST], block_count = 0;
    uint64_t roots[MOST];
    size_t root_count = 0;
    count = (int)(random_next(random) % MOST) + 1;
    make_page();
    memset(edge, 0, sizeof edge);
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (uint8_t)random_next(random);
    for (int i = 0; i < count; i++) {
        live[i] = random_next(random) % 8 != 0;
        rooted[i] = 0;
        sizes[i] = (int)(random_next(random) % WORDS + 1) * 8;
        group_of[i] = (uint32_t)(random_next(random) % GROUPS);
        memset(memory + i * STRIDE + USER, 0, WORDS * 8);
    }
    for (int i = 0; i < count; i++) {
        if (!live[i])
            continue;
        for (unsigned k = 0; k < density; k++) {
            int to = (int)(random_next(random) % (uint64_t)count),
                word = (int)(random_next(random) % (uint64_t)(sizes[i] / 8));
            uint64_t pointer = address_of(to) + (random_next(random) % 3 == 0 ? random_next(random) % 80 : 0);
            memcpy(memory + i * STRIDE + USER + word * 8, &pointer, 8);
        }
        if (random_next(random) % 6 == 0) {
            rooted[i] = 1;
            roots[root_count++] = address_of(i);
        }
        traces[block_count] = group_of[i];
        blocks[block_count++] = (struct ta__page_block){
            .slot = (uint32_t)i, .offset = USER, .size = (uint64_t)sizes[i], .leaf = 1, .has_trace = 1};
    }
    for (int i = 0; i < count; i++)
        for (int word = 0; live[i] && word < sizes[i] / 8; word++) {
            uint64_t pointer;
            memcpy(&pointer, memory + i * STRIDE + USER + word * 8, 8);
            uint64_t offset = (pointer - START) % STRIDE, to = (pointer - START) / STRIDE;
            if (pointer >= START && to < (uint64_t)count && offset >= USER && live[to])
                edge[i][to] = 1;
        }
    TEST_ASSERT_EQUAL(0, ta__graph_open(&graph, &pages, 0, keeps_places));
    TEST_ASSERT_EQUAL(0, ta__graph_add_page(&graph, NULL, 0, blocks, traces, block_count, memory));
    TEST_ASSERT_EQUAL(0, ta__graph_add_roots(&graph, 4096, (const uint8_t *)roots, root_count * sizeof *roots));
    TEST_ASSERT_EQUAL(0, ta__graph_finish(&graph));
}

/* What is reached when some blocks are not there. */
static void reach_without(const int *gone, int *reached)
{
    int queue[MOST], head = 0, tail = 0;
    memset(reached, 0, MOST * sizeof *reached);
    for (int i = 0; i < count; i++)
        if (rooted[i] && !gone[i])
            reached[queue[tail++] = i] = 1;
    while (head < tail)
        for (int i = 0, from = queue[head++]; i < count; i++)
            if (edge[from][i] && !gone[i] && !reached[i])
                reached[queue[tail++] = i] = 1;
}

static const int none[MOST];

static void check_graph(void)
{
    uint32_t rank = 0;
    for (int i = 0; i < count; i++) {
        int found[MOST] = {0};
        struct ta__edges edges;
        struct ta__edge one;
        TEST_ASSERT_EQUAL(live[i], ta__graph_is_live(&graph, (uint32_t)i));
        if (!live[i])
            continue;
        TEST_ASSERT_EQUAL(rank, ta__graph_rank(&graph, (uint32_t)i));
        TEST_ASSERT_EQUAL(i, ta__graph_slot_of_rank(&graph, rank));
        TEST_ASSERT_EQUAL(sizes[i], ta__graph_size(&graph, rank));
        TEST_ASSERT_EQUAL_HEX64(address_of(i), ta__graph_address(&graph, (uint32_t)i));
        TEST_ASSERT_EQUAL(i, ta__graph_slot(&graph, address_of(i) + 5));
        TEST_ASSERT_EQUAL(UINT32_MAX, ta__graph_slot(&graph, address_of(i) - 1));
        ta__graph_edges(&graph, rank++, (uint32_t)i, &edges);
        while (ta__graph_next(&graph, &edges, &one))
            found[one.slot] = 1;
        TEST_ASSERT_EQUAL_INT_ARRAY(edge[i], found, MOST);
    }
    TEST_ASSERT_EQUAL(rank, graph.count);
}

static void check_reach(void)
{
    int reached[MOST];
    uint64_t *set = ta__reach_from_roots(&graph);
    reach_without(none, reached);
    TEST_ASSERT_NOT_NULL(set);
    for (int i = 0; i < count; i++)
        TEST_ASSERT_EQUAL(reached[i], ta__bit(set, (uint32_t)i));
    free(set);
}

static void test_blocks_pointers_and_what_is_reached(void)
{
    uint64_t random = 1;
    for (int round = 0; round < 3000; round++) {
        make_heap(&random, (unsigned)(round % 7), round % 2);
        check_graph();
        check_reach();
        ta__graph_free(&graph);
    }
}

/* ---- lost -------------------------------------------------------------------------------------------------------- */

static int way[MOST][MOST]; /* among what is lost: is there one? */

static void close_ways(const int *reached)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            way[i][k] = live[i] && live[k] && !reached[i] && !reached[k] && edge[i][k];
    for (int middle = 0; middle < count; middle++)
        for (int i = 0; i < count; i++)
            for (int k = 0; k < count; k++)
                way[i][k] |= way[i][middle] && way[middle][k];
}

static int is_head(const int *reached, int slot)
{
    if (!live[slot] || reached[slot])
        return 0;
    for (int k = 0; k < count; k++)
        if (k != slot && way[k][slot])
            return 0;
    return 1;
}

/* Heads come in the order of slots; what two of them hold goes with the first. */
static void check_heads(const struct ta__lost_blocks *lost, const int *reached)
{
    struct ta__loss_figures expected[GROUPS] = {0};
    int claimed[MOST] = {0};
    for (int i = 0; i < count; i++) {
        if (!is_head(reached, i))
            continue;
        struct ta__loss_figures *figures = &expected[group_of[i]];
        uint64_t bytes = (uint64_t)sizes[i];
        figures->blocks++;
        figures->bytes += bytes;
        for (int k = 0; k < count; k++) {
            if (k == i || !way[i][k] || claimed[k])
                continue;
            claimed[k] = 1;
            figures->held_blocks++;
            figures->held_bytes += (uint64_t)sizes[k];
            bytes += (uint64_t)sizes[k];
        }
        if (bytes > figures->largest_bytes) {
            figures->largest = (uint32_t)i;
            figures->largest_bytes = bytes;
        }
    }
    for (uint32_t trace = 0; trace < GROUPS; trace++) {
        const struct ta__loss_figures *figures = &lost->figures[TA__LOSS_PLAIN][trace];
        TEST_ASSERT_EQUAL_UINT64(expected[trace].blocks, figures->blocks);
        TEST_ASSERT_EQUAL_UINT64(expected[trace].bytes, figures->bytes);
        TEST_ASSERT_EQUAL_UINT64(expected[trace].held_blocks, figures->held_blocks);
        TEST_ASSERT_EQUAL_UINT64(expected[trace].held_bytes, figures->held_bytes);
        TEST_ASSERT_EQUAL_UINT64(expected[trace].largest_bytes, figures->largest_bytes);
        if (figures->blocks > 0)
            TEST_ASSERT_EQUAL_UINT32(expected[trace].largest, figures->largest);
    }
}

/* A circle has all its members, and no more than it leads to. */
static void check_circle(const struct ta__loss_figures *figures)
{
    int slot = (int)figures->largest;
    uint64_t members = (uint64_t)sizes[slot], all = members;
    for (int k = 0; k < count; k++) {
        members += k != slot && way[slot][k] && way[k][slot] ? (uint64_t)sizes[k] : 0;
        all += k != slot && way[slot][k] ? (uint64_t)sizes[k] : 0;
    }
    TEST_ASSERT_TRUE(figures->largest_bytes >= members && figures->largest_bytes <= all);
    TEST_ASSERT_TRUE(figures->largest_bytes <= figures->bytes + figures->held_bytes);
}

static void check_lost(void)
{
    struct ta__lost_blocks lost;
    int reached[MOST];
    uint64_t blocks = 0, bytes = 0, heads = 0, circles = 0, sum = 0, plain = 0, cycles = 0, sum_bytes = 0;
    uint64_t members = 0, apart = 0; /* of circles; and of those that nothing else points to */
    reach_without(none, reached);
    close_ways(reached);
    for (int i = 0; i < count; i++) {
        if (!live[i] || reached[i])
            continue;
        blocks++;
        bytes += (uint64_t)sizes[i];
        int is_first = 1, has_source = 0, is_member = 0;
        for (int k = 0; k < count; k++) {
            if (k == i || !way[k][i])
                continue;
            is_member |= way[i][k];
            has_source |= !way[i][k];
            is_first &= !(way[i][k] && k < i);
        }
        members |= (uint64_t)is_member << i;
        apart |= (uint64_t)(is_member && !has_source) << i;
        heads += !is_member && !has_source;
        circles += is_member && !has_source && is_first;
    }
    TEST_ASSERT_EQUAL(0, ta__lost_find(&lost, &graph, GROUPS));
    TEST_ASSERT_EQUAL_HEX64(0, lost.cycles[0] & ~members);
    TEST_ASSERT_EQUAL_HEX64(apart, lost.cycles[0] & apart);
    TEST_ASSERT_EQUAL_UINT64(blocks, lost.blocks);
    TEST_ASSERT_EQUAL_UINT64(bytes, lost.bytes);
    for (uint32_t trace = 0; trace <= GROUPS; trace++) {
        plain += lost.figures[TA__LOSS_PLAIN][trace].blocks;
        cycles += lost.figures[TA__LOSS_CYCLE][trace].blocks;
        for (int kind = 0; kind < TA__LOSSES; kind++) {
            const struct ta__loss_figures *figures = &lost.figures[kind][trace];
            sum += figures->blocks + figures->held_blocks;
            sum_bytes += figures->bytes + figures->held_bytes;
            uint32_t slots[MOST];
            size_t length = kind == TA__LOSS_CYCLE && figures->blocks > 0
                                ? ta__lost_cycle(&lost, figures->largest, slots, MOST)
                                : 0;
            for (size_t i = 0; i < length; i++)
                TEST_ASSERT_EQUAL(1, edge[slots[i]][slots[(i + 1) % length]]);
            TEST_ASSERT_EQUAL(kind == TA__LOSS_CYCLE && figures->blocks > 0, length > 0);
            if (length > 0)
                check_circle(figures);
        }
    }
    TEST_ASSERT_EQUAL_UINT64(blocks, sum);
    TEST_ASSERT_EQUAL_UINT64(bytes, sum_bytes);
    TEST_ASSERT_EQUAL_UINT64(heads, plain);
    TEST_ASSERT_EQUAL_UINT64(circles, cycles);
    check_heads(&lost, reached);
    ta__lost_free(&lost);
}

static void test_lost_blocks_are_counted_once_and_circles_found(void)
{
    uint64_t random = 2;
    for (int round = 0; round < 3000; round++) {
        make_heap(&random, (unsigned)(round % 4), 0);
        check_lost();
        ta__graph_free(&graph);
    }
}

/* ---- ways -------------------------------------------------------------------------------------------------------- */

static void check_ways(int target)
{
    struct ta__paths paths;
    int depth[MOST], queue[MOST], head = 0, tail = 0;
    for (int i = 0; i < count; i++)
        depth[i] = live[i] && rooted[i] && i != target ? depth[queue[tail++] = i] = 1 : 0;
    while (head < tail)
        for (int i = 0, from = queue[head++]; i < count; i++)
            if (edge[from][i] && depth[i] == 0 && i != target)
                depth[queue[tail++] = i] = depth[from] + 1;
    int shortest = rooted[target] ? 0 : MOST;
    for (int i = 0; i < count; i++)
        shortest = edge[i][target] && depth[i] != 0 && depth[i] < shortest ? depth[i] : shortest;
    TEST_ASSERT_EQUAL(0, ta__paths_find(&paths, &graph, (uint32_t)target));
    int is_reached = paths.count > 0 && paths.referrers[0].steps != UINT32_MAX;
    TEST_ASSERT_EQUAL(shortest != MOST, is_reached);
    if (is_reached) {
        uint32_t slots[MOST + 1];
        struct ta__root root;
        TEST_ASSERT_EQUAL(shortest, paths.referrers[0].steps);
        size_t length = ta__paths_way(&paths, 0, slots, MOST + 1, &root);
        TEST_ASSERT_EQUAL(shortest + 1, length);
        TEST_ASSERT_EQUAL(target, slots[length - 1]);
        TEST_ASSERT_EQUAL(1, rooted[slots[0]]);
        TEST_ASSERT_EQUAL(slots[0], root.slot);
        for (size_t i = 0; i + 1 < length; i++) {
            uint64_t offset = ta__paths_offset(&graph, slots[i], slots[i + 1]), pointer;
            TEST_ASSERT_EQUAL(1, edge[slots[i]][slots[i + 1]]);
            memcpy(&pointer, memory + slots[i] * STRIDE + USER + offset, 8);
            TEST_ASSERT_EQUAL(slots[i + 1], (pointer - START) / STRIDE);
        }
    }
    ta__paths_free(&paths);
}

static void test_ways_are_shortest_and_lead_there(void)
{
    uint64_t random = 3;
    for (int round = 0; round < 1000; round++) {
        make_heap(&random, (unsigned)(round % 5), 1);
        for (int i = 0; i < count; i += 3)
            if (live[i])
                check_ways(i);
        ta__graph_free(&graph);
    }
}

/* ---- dominators -------------------------------------------------------------------------------------------------- */

/* The nearest dominator by taking out one block after another: of those without which it is not reached, the one that all
 * the others dominate; -1 = outside. */
static int nearest_of(int target, int lacking[MOST][MOST])
{
    int nearest = -1;
    for (int i = 0; i < count; i++)
        if (i != target && lacking[i][target] && (nearest == -1 || lacking[nearest][i]))
            nearest = i;
    return nearest;
}

static void check_dominators(void)
{
    static int lacking[MOST][MOST];
    int reached[MOST], again[MOST];
    uint32_t numbers[MOST] = {0};
    struct ta__dominators dominators;
    reach_without(none, reached);
    for (int i = 0; i < count; i++) {
        int gone[MOST] = {0};
        gone[i] = 1;
        reach_without(gone, again);
        for (int k = 0; k < count; k++)
            lacking[i][k] = reached[k] && !again[k] && reached[i];
    }
    TEST_ASSERT_EQUAL(0, ta__dominators_find(&dominators, &graph));
    for (uint32_t number = 1; number < dominators.count; number++)
        numbers[dominators.slots[number]] = number;
    for (int i = 0; i < count; i++) {
        if (!live[i] || !reached[i])
            continue;
        int wanted = nearest_of(i, lacking);
        uint32_t number = numbers[i];
        if (ta__bit(dominators.leaves, (uint32_t)i)) {
            TEST_ASSERT_NOT_EQUAL(-1, wanted);
            TEST_ASSERT_EQUAL(1, edge[wanted][i]);
            continue;
        }
        TEST_ASSERT_NOT_EQUAL(0, number);
        uint32_t nearest = dominators.nearest[number];
        TEST_ASSERT_EQUAL(wanted, nearest == 0 ? -1 : (int)dominators.slots[nearest]);
    }
    ta__dominators_free(&dominators);
}

static void check_retained(void)
{
    static const uint32_t groups_of_traces[GROUPS + 1] = {0, 1, 2, 3, 4, GROUPS};
    struct ta__retained_group groups[GROUPS + 1];
    struct ta__dominators dominators;
    int reached[MOST], again[MOST];
    reach_without(none, reached);
    TEST_ASSERT_EQUAL(0, ta__dominators_find(&dominators, &graph));
    TEST_ASSERT_EQUAL(0, ta__retained_groups(&dominators, groups_of_traces, GROUPS, groups, GROUPS + 1));
    for (uint32_t group = 0; group < GROUPS; group++) {
        int gone[MOST];
        uint64_t bytes = 0, blocks = 0, own = 0;
        for (int i = 0; i < count; i++)
            gone[i] = group_of[i] == group;
        reach_without(gone, again);
        for (int i = 0; i < count; i++) {
            bytes += reached[i] && !again[i] ? (uint64_t)sizes[i] : 0;
            blocks += reached[i] && !again[i];
            own += reached[i] && group_of[i] == group;
        }
        TEST_ASSERT_EQUAL_UINT64(bytes, groups[group].retained);
        TEST_ASSERT_EQUAL_UINT64(blocks, groups[group].retained_blocks);
        TEST_ASSERT_EQUAL_UINT64(own, groups[group].blocks);
        TEST_ASSERT_TRUE(groups[group].least <= bytes && groups[group].least >= groups[group].bytes);
    }
    ta__dominators_free(&dominators);
}

/* What a single block holds: all that is lacking without it. */
static void check_blocks(void)
{
    struct ta__retained_block blocks[MOST];
    struct ta__dominators dominators;
    int reached[MOST], again[MOST];
    reach_without(none, reached);
    TEST_ASSERT_EQUAL(0, ta__dominators_find(&dominators, &graph));
    size_t found = ta__retained_blocks(&dominators, blocks, MOST);
    for (size_t i = 0; i < found; i++) {
        int gone[MOST] = {0};
        uint64_t bytes = 0;
        gone[blocks[i].slot] = 1;
        reach_without(gone, again);
        for (int k = 0; k < count; k++)
            bytes += reached[k] && !again[k] ? (uint64_t)sizes[k] : 0;
        TEST_ASSERT_EQUAL_UINT64(bytes, blocks[i].bytes);
        TEST_ASSERT_TRUE(i == 0 || blocks[i - 1].bytes >= blocks[i].bytes);
    }
    ta__dominators_free(&dominators);
}

static void test_dominators_are_those_of_taking_out_each_block(void)
{
    uint64_t random = 4;
    for (int round = 0; round < 3000; round++) {
        make_heap(&random, (unsigned)(round % 6), 0);
        check_dominators();
        ta__graph_free(&graph);
    }
}

static void test_retained_is_what_goes_without_the_group(void)
{
    uint64_t random = 5;
    for (int round = 0; round < 3000; round++) {
        make_heap(&random, (unsigned)(round % 6), 0);
        check_retained();
        check_blocks();
        ta__graph_free(&graph);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_blocks_pointers_and_what_is_reached);
    RUN_TEST(test_lost_blocks_are_counted_once_and_circles_found);
    RUN_TEST(test_ways_are_shortest_and_lead_there);
    RUN_TEST(test_dominators_are_those_of_taking_out_each_block);
    RUN_TEST(test_retained_is_what_goes_without_the_group);
    return UNITY_END();
}
