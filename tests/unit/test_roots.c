/* test_roots.c: which places of a process made of arrays are looked at for pointers to its blocks: mappings by their kinds,
 * stacks by what is alive of them, the library's own data not; and which of several pointers is remembered. */
#include <string.h>

#include "analysis/image/roots.h"
#include "tests/support/made_memory.h"

#include <unity.h>

#define HEAP    UINT64_C(0x40000000)
#define MAPPING UINT64_C(0x50000000)
#define SECOND  UINT64_C(0x60000000)
enum { PAGE = TA__TARGET_PAGE, SLOTS = 10, STRIDE = 64, WRITE = TA__REGION_WRITE };

static struct ta__heap_page page;
static uint32_t parts[1], slices[TA__PART_SLICES];
static struct ta__block_graph graph;
static uint8_t heap[SLOTS * STRIDE];

static uint64_t block(uint32_t slot)
{
    return HEAP + slot * STRIDE;
}

static void open_graph(void)
{
    struct ta__page_block blocks[SLOTS];
    uint32_t traces[SLOTS] = {0};
    for (uint32_t i = 0; i < SLOTS; i++)
        blocks[i] = (struct ta__page_block){.slot = i, .size = STRIDE};
    ta__graph_free(&graph);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_open(&graph, &made_image.pages, 0, 1));
    graph.asked_slot = UINT32_MAX;
    TEST_ASSERT_EQUAL_INT(0, ta__graph_add_page(&graph, made, 0, blocks, traces, SLOTS, heap));
}

void setUp(void)
{
    made_begin();
    page = (struct ta__heap_page){
        .start = HEAP, .stride = STRIDE, .slots = SLOTS, .reserved = SLOTS, .reciprocal = UINT64_MAX / STRIDE + 1};
    parts[0] = 1;
    memset(slices, 0, sizeof slices);
    slices[HEAP >> TA__SLICE_BITS & (TA__PART_SLICES - 1)] = 1;
    made_image.pages = (struct ta__heap_pages){.items = &page,
                                               .count = 1,
                                               .slot_count = 64,
                                               .low = HEAP,
                                               .high = HEAP + SLOTS * STRIDE,
                                               .parts = parts,
                                               .by_slice = slices};
}

void tearDown(void)
{
    ta__graph_free(&graph);
    made_image.pages = (struct ta__heap_pages){0};
    made->is_held = 0;
    made_end();
}

/* The blocks that a root was found for, as bits. */
static uint64_t find_roots(void)
{
    open_graph();
    TEST_ASSERT_EQUAL_INT(0, ta__roots_add(&graph, &made_image));
    return graph.rooted[0];
}

static uint64_t place_of(uint32_t slot)
{
    for (size_t i = 0; i < graph.root_count; i++)
        if (graph.roots[i].slot == slot)
            return graph.roots[i].address;
    return UINT64_MAX;
}

static struct ta__target_thread *add_thread(uint64_t sp, uint64_t tls, uint32_t registers)
{
    struct ta__target_thread *thread = ta__target_add_thread(made);
    TEST_ASSERT_NOT_NULL(thread);
    *thread = (struct ta__target_thread){.tid = 1, .sp = sp, .tls = tls, .register_count = registers};
    return thread;
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

static void test_any_aligned_word_may_be_a_pointer(void)
{
    made_map(MAPPING, PAGE, PAGE, WRITE);
    made_word(MAPPING, block(1));
    made_word(MAPPING + 16, block(2) + STRIDE - 1);
    made_word(MAPPING + 28, block(3)); /* not at a multiple of 8 */
    made_word(MAPPING + PAGE - 8, block(4));
    made_word(MAPPING + 40, block(SLOTS));
    made_word(MAPPING + 48, HEAP - 1);
    TEST_ASSERT_EQUAL_HEX64(1 << 1 | 1 << 2 | 1 << 4, find_roots());
    TEST_ASSERT_EQUAL_HEX64(MAPPING, place_of(1));
    TEST_ASSERT_EQUAL_HEX64(MAPPING + 16, place_of(2));
    TEST_ASSERT_EQUAL_HEX64(MAPPING + PAGE - 8, place_of(4));
}

static void test_mappings_that_may_hold_pointers(void)
{
    static const struct {
        uint32_t flags;
        int is_looked_at;
    } cases[] = {{0, 1},
                 {WRITE, 1},
                 {TA__REGION_SHARED, 0}, /* nobody here can have put them there */
                 {TA__REGION_SHARED | WRITE, 1},
                 {TA__REGION_SPECIAL | WRITE, 0},
                 {TA__REGION_FILE | WRITE, 1},
                 {TA__REGION_EXECUTE, 1}};
    made_map(MAPPING, PAGE, PAGE, 0);
    made_word(MAPPING + 8, block(1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made->regions[0].flags = TA__REGION_READ | cases[i].flags;
        TEST_ASSERT_EQUAL_HEX64((uint64_t)cases[i].is_looked_at << 1, find_roots());
    }
    made->regions[0].flags = WRITE;
    TEST_ASSERT_EQUAL_HEX64(0, find_roots());
}

static void test_mapping_of_which_nothing_is_resident_is_passed_over(void)
{
    made_map(MAPPING, PAGE, PAGE, WRITE);
    made_word(MAPPING + 8, block(1));
    made->is_core = 0;
    TEST_ASSERT_EQUAL_HEX64(0, find_roots());
    made->regions[0].rss = 1;
    TEST_ASSERT_EQUAL_HEX64(2, find_roots());
    made->regions[0].rss = 0;
    made->regions[0].swap = 1;
    TEST_ASSERT_EQUAL_HEX64(2, find_roots());
}

static void test_core_is_looked_at_as_far_as_it_goes(void)
{
    made_map(MAPPING, 4 * PAGE, PAGE, WRITE);
    made_map(SECOND, 4 * PAGE, 0, WRITE);
    made_word(MAPPING + PAGE - 8, block(1));
    TEST_ASSERT_EQUAL_HEX64(2, find_roots());
}

/* Pages of a private mapping of a file are the file's as long as nobody wrote them. */
static void test_pages_as_the_file_has_them_hold_no_pointers(void)
{
    made_map(MAPPING, 8 * PAGE, 8 * PAGE, WRITE);
    for (uint32_t i = 0; i < 8; i++)
        made_word(MAPPING + i * PAGE + 8, block(i));
    made->is_core = 0;
    made->is_held = 1;
    made->regions[0].rss = PAGE;
    made->states.first = MAPPING / PAGE;
    made->states.count = TA__STATES_AHEAD;
    static const uint8_t states[] = {TA__PAGE_PRESENT,
                                     TA__PAGE_PRESENT | TA__PAGE_FILE,
                                     0,
                                     TA__PAGE_SWAPPED,
                                     TA__PAGE_FILE | 1,
                                     TA__PAGE_PRESENT,
                                     1,
                                     0};
    memcpy(made->states.states, states, sizeof states);
    TEST_ASSERT_EQUAL_HEX64(0x7B, find_roots()); /* of all that are there */
    made->regions[0].flags |= TA__REGION_FILE;
    TEST_ASSERT_EQUAL_HEX64(0x69, find_roots());
    made->regions[0].flags |= TA__REGION_SHARED;
    TEST_ASSERT_EQUAL_HEX64(0x7B, find_roots());
}

static void test_large_mapping_is_looked_at_piece_by_piece(void)
{
    enum { PIECE = 1 << 20 };
    const uint64_t start = MAPPING + 3 * PAGE;
    static const uint64_t places[] = {MAPPING + PIECE - 8,        MAPPING + PIECE,     MAPPING + 2 * PIECE - 8,
                                      MAPPING + 2 * PIECE + PAGE, MAPPING + 3 * PIECE, MAPPING + 3 * PIECE + PAGE - 8};
    made_map(start, 3 * PIECE - 2 * PAGE, 3 * PIECE - 2 * PAGE, WRITE);
    for (uint32_t i = 0; i < 6; i++)
        made_word(places[i], block(i));
    TEST_ASSERT_EQUAL_HEX64(0x3F, find_roots());
    for (uint32_t i = 0; i < 6; i++)
        TEST_ASSERT_EQUAL_HEX64(places[i], place_of(i));
    made_break(MAPPING + PIECE, MAPPING + 2 * PIECE); /* what cannot be read holds nothing up */
    TEST_ASSERT_EQUAL_HEX64(0x39, find_roots());
}

/* ---- whose memory it is ------------------------------------------------------------------------------------------ */

static void test_memory_of_the_allocator_and_the_library_is_no_root(void)
{
    struct ta__range own = {MAPPING + PAGE, MAPPING + 2 * PAGE};
    made_map(HEAP, PAGE, PAGE, WRITE);
    made_map(MAPPING, 4 * PAGE, 4 * PAGE, WRITE);
    made_word(HEAP + 8, block(0));
    made_word(MAPPING + PAGE - 8, block(1));
    made_word(MAPPING + PAGE, block(2));
    made_word(MAPPING + 2 * PAGE - 8, block(3));
    made_word(MAPPING + 2 * PAGE, block(4));
    made_image.pages.own = &own;
    made_image.pages.own_count = 1;
    TEST_ASSERT_EQUAL_HEX64(1 << 1 | 1 << 4, find_roots());
}

static void test_data_of_the_library_are_none_where_it_is_a_file_of_its_own(void)
{
    struct ta__object_file objects[2] = {{.start = SECOND, .end = SECOND + PAGE},
                                         {.start = MAPPING + PAGE, .end = MAPPING + 2 * PAGE}};
    made_map(MAPPING, 4 * PAGE, 4 * PAGE, WRITE);
    made_map(SECOND, PAGE, PAGE, WRITE);
    made->objects = objects;
    made->object_count = 2;
    made_image.layout.object = &objects[1];
    made->entry_phdr = SECOND + 64;
    made_word(MAPPING + PAGE - 8, block(1));
    made_word(MAPPING + PAGE, block(2));
    made_word(MAPPING + 2 * PAGE - 8, block(3));
    made_word(MAPPING + 2 * PAGE, block(4)); /* the program mapped it right behind */
    made_word(SECOND, block(5));
    TEST_ASSERT_EQUAL_HEX64(0x32, find_roots());
    made->entry_phdr = MAPPING + PAGE; /* the program is linked with it */
    TEST_ASSERT_EQUAL_HEX64(0x3E, find_roots());
    made_image.layout.object = NULL;
    made->entry_phdr = SECOND + 64;
    TEST_ASSERT_EQUAL_HEX64(0x3E, find_roots());
    made->objects = NULL;
    made->object_count = 0;
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

/* A pointer in each page, and around the stack pointer. */
static void make_stack(uint64_t sp, uint32_t flags)
{
    made_map(MAPPING, 4 * PAGE, 4 * PAGE, WRITE | flags);
    made_word(MAPPING + 8, block(0));
    made_word(sp - 136, block(1));
    made_word(sp - 128, block(2));
    made_word(sp, block(3));
    made_word(MAPPING + 4 * PAGE - 8, block(4));
}

static void test_stack_below_its_pointer_is_dead(void)
{
    const uint64_t sp = MAPPING + PAGE + 512;
    make_stack(sp, TA__REGION_STACK);
    struct ta__target_thread *thread = add_thread(sp, 0, 16);
    TEST_ASSERT_EQUAL_HEX64(0x1C, find_roots());
    thread->register_count = 0; /* then it is not known */
    TEST_ASSERT_EQUAL_HEX64(0x1F, find_roots());
    thread->register_count = 16;
    made->regions[0].flags &= ~(uint32_t)TA__REGION_STACK; /* on memory of the program's own: a coroutine */
    TEST_ASSERT_EQUAL_HEX64(0x1F, find_roots());
    thread->tls = MAPPING + 4 * PAGE - 64; /* libc puts a thread's descriptor on its own stack */
    TEST_ASSERT_EQUAL_HEX64(0x1C, find_roots());
    thread->tls = MAPPING + 4 * PAGE;
    TEST_ASSERT_EQUAL_HEX64(0x1F, find_roots());
    thread->tls = MAPPING;
    TEST_ASSERT_EQUAL_HEX64(0x1C, find_roots());
    thread->sp = MAPPING + 4 * PAGE; /* it runs elsewhere */
    TEST_ASSERT_EQUAL_HEX64(0x1F, find_roots());
    thread->sp = MAPPING + 4 * PAGE - 8;
    TEST_ASSERT_EQUAL_HEX64(0x10, find_roots());
}

static void test_stack_that_is_almost_full_is_alive_from_its_beginning(void)
{
    make_stack(MAPPING + 512, TA__REGION_STACK);
    struct ta__target_thread *thread = add_thread(MAPPING + 128 + 8, 0, 16);
    TEST_ASSERT_EQUAL_HEX64(0x1F, find_roots());
    thread->sp = MAPPING + 128 + 16;
    TEST_ASSERT_EQUAL_HEX64(0x1E, find_roots());
    thread->sp = MAPPING;
    TEST_ASSERT_EQUAL_HEX64(0x1F, find_roots());
}

static void test_of_two_threads_on_one_stack_the_lower_counts(void)
{
    const uint64_t sp = MAPPING + PAGE + 512;
    make_stack(sp, TA__REGION_STACK);
    add_thread(MAPPING + 2 * PAGE, 0, 16);
    TEST_ASSERT_EQUAL_HEX64(0x10, find_roots());
    add_thread(sp, 0, 16);
    TEST_ASSERT_EQUAL_HEX64(0x1C, find_roots());
    add_thread(MAPPING + 3 * PAGE, 0, 16);
    TEST_ASSERT_EQUAL_HEX64(0x1C, find_roots());
}

enum { DESCRIPTOR = 4 * PAGE - 640 };

/* A stack that libc keeps, with a thread's descriptor in it. */
static void make_waiting_stack(void)
{
    made_map(MAPPING, 4 * PAGE, 4 * PAGE, WRITE);
    made_word(MAPPING + 8, block(0));
    made_word(MAPPING + DESCRIPTOR, MAPPING + DESCRIPTOR);
    made_word(MAPPING + DESCRIPTOR + 8, block(1)); /* the table of thread-local storage */
    made_word(MAPPING + DESCRIPTOR + 16, MAPPING + DESCRIPTOR);
    made_word(MAPPING + DESCRIPTOR + 24, block(2));
}

static void test_stack_that_waits_for_a_thread_holds_its_table_only(void)
{
    make_waiting_stack();
    TEST_ASSERT_EQUAL_HEX64(7, find_roots()); /* threads are not known */
    struct ta__target_thread *thread = add_thread(SECOND, 0, 16);
    TEST_ASSERT_EQUAL_HEX64(7, find_roots());
    thread->tls = SECOND;
    TEST_ASSERT_EQUAL_HEX64(2, find_roots());
    TEST_ASSERT_EQUAL_HEX64(MAPPING, place_of(1));
    add_thread(SECOND, MAPPING + DESCRIPTOR, 16); /* somebody has it */
    TEST_ASSERT_EQUAL_HEX64(7, find_roots());
    made->thread_count = 1;
    for (size_t i = 0; i < 3; i++) {
        static const uint32_t flags[] = {TA__REGION_FILE | WRITE, TA__REGION_SHARED | WRITE, 0};
        made->regions[0].flags = TA__REGION_READ | flags[i];
        TEST_ASSERT_EQUAL_HEX64(7, find_roots());
    }
    made->regions[0].flags = TA__REGION_READ | WRITE;
    made_word(MAPPING + DESCRIPTOR + 16, MAPPING + DESCRIPTOR + 64);
    TEST_ASSERT_EQUAL_HEX64(7, find_roots());
    made_word(MAPPING + DESCRIPTOR + 16, MAPPING + DESCRIPTOR);
    made_word(MAPPING + DESCRIPTOR, MAPPING);
    TEST_ASSERT_EQUAL_HEX64(7, find_roots());
}

static void test_descriptor_is_looked_for_at_the_upper_end_of_a_stack(void)
{
    make_waiting_stack();
    add_thread(SECOND, SECOND, 16);
    made->regions[0].start += 8; /* smaller than what is looked at */
    TEST_ASSERT_EQUAL_HEX64(7, find_roots());
    made_end();
    tearDown();
    setUp();
    made_map(MAPPING, 8 * PAGE, 8 * PAGE, WRITE);
    made_word(MAPPING + 8, block(0));
    add_thread(SECOND, SECOND, 16);
    made_word(MAPPING + 4 * PAGE, MAPPING + 4 * PAGE); /* the first place */
    made_word(MAPPING + 4 * PAGE + 16, MAPPING + 4 * PAGE);
    TEST_ASSERT_EQUAL_HEX64(0, find_roots());
    made_word(MAPPING + 4 * PAGE, 0);
    TEST_ASSERT_EQUAL_HEX64(1, find_roots());
    made_word(MAPPING + 4 * PAGE - 64, MAPPING + 4 * PAGE - 64); /* too far down */
    made_word(MAPPING + 4 * PAGE - 48, MAPPING + 4 * PAGE - 64);
    TEST_ASSERT_EQUAL_HEX64(1, find_roots());
    made_word(MAPPING + 8 * PAGE - 64, MAPPING + 8 * PAGE - 64); /* the last one */
    made_word(MAPPING + 8 * PAGE - 48, MAPPING + 8 * PAGE - 64);
    TEST_ASSERT_EQUAL_HEX64(0, find_roots());
}

/* ---- which one is remembered ------------------------------------------------------------------------------------- */

static void test_registers_are_roots(void)
{
    made_map(MAPPING, PAGE, PAGE, WRITE);
    add_thread(SECOND, 0, 3);
    struct ta__target_thread *thread = add_thread(SECOND, 0, 2);
    made->threads[0].registers[2] = block(1);
    made->threads[0].registers[3] = block(2); /* one that is not known */
    thread->registers[0] = block(3) + 5;
    TEST_ASSERT_EQUAL_HEX64(1 << 1 | 1 << 3, find_roots());
    TEST_ASSERT_EQUAL_size_t(2, graph.root_count);
    TEST_ASSERT_EQUAL_UINT32(1, graph.roots[0].thread);
    TEST_ASSERT_EQUAL_UINT64(2, graph.roots[0].address);
    TEST_ASSERT_EQUAL_UINT32(2, graph.roots[1].thread);
    TEST_ASSERT_EQUAL_UINT64(0, graph.roots[1].address);
}

static void test_variables_are_remembered_first_then_mappings_stacks_and_registers(void)
{
    const uint64_t third = SECOND + 16 * PAGE;
    struct ta__object_file object = {.start = third, .end = third + PAGE};
    made_map(MAPPING, 4 * PAGE, 4 * PAGE, WRITE | TA__REGION_STACK);
    made_map(SECOND, PAGE, PAGE, WRITE);
    made_map(third, PAGE, PAGE, WRITE);
    made->objects = &object;
    made->object_count = 1;
    struct ta__target_thread *thread = add_thread(MAPPING + PAGE, 0, 1);
    thread->registers[0] = block(1);
    TEST_ASSERT_EQUAL_HEX64(2, find_roots());
    TEST_ASSERT_EQUAL_UINT32(1, graph.roots[0].thread);
    made_word(MAPPING + 2 * PAGE, block(1));
    find_roots();
    TEST_ASSERT_EQUAL_HEX64(MAPPING + 2 * PAGE, place_of(1));
    made_word(SECOND + 8, block(1));
    find_roots();
    TEST_ASSERT_EQUAL_HEX64(SECOND + 8, place_of(1));
    made_word(third + 16, block(1));
    find_roots();
    TEST_ASSERT_EQUAL_HEX64(third + 16, place_of(1));
    TEST_ASSERT_EQUAL_size_t(1, graph.root_count);
    made->regions[0].flags &= ~(uint32_t)TA__REGION_STACK; /* a thread's stack, by what is dead of it */
    thread->tls = MAPPING + 4 * PAGE - 8;
    made_word(SECOND + 8, 0);
    made_word(third + 16, 0);
    made_word(SECOND + 16, block(1));
    find_roots();
    TEST_ASSERT_EQUAL_HEX64(SECOND + 16, place_of(1));
    made->objects = NULL;
    made->object_count = 0;
}

static void test_all_pointers_to_the_block_that_is_asked_about_are_kept(void)
{
    made_map(MAPPING, PAGE, PAGE, WRITE);
    for (uint32_t i = 0; i < 3; i++) {
        made_word(MAPPING + i * 16, block(1));
        made_word(MAPPING + i * 16 + 8, block(2));
    }
    open_graph();
    graph.asked_slot = 2;
    TEST_ASSERT_EQUAL_INT(0, ta__roots_add(&graph, &made_image));
    TEST_ASSERT_EQUAL_size_t(4, graph.root_count);
    ta__graph_free(&graph);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_open(&graph, &made_image.pages, 0, 0));
    TEST_ASSERT_EQUAL_INT(0, ta__roots_add(&graph, &made_image));
    TEST_ASSERT_EQUAL_size_t(0, graph.root_count); /* nobody asks where they stand */
    TEST_ASSERT_EQUAL_HEX64(6, graph.rooted[0]);
    TEST_ASSERT_EQUAL_HEX64(6, graph.rooted_first[0]);
    made_word(MAPPING, block(5) + 1);
    TEST_ASSERT_EQUAL_INT(0, ta__roots_add(&graph, &made_image));
    TEST_ASSERT_EQUAL_HEX64(0x26, graph.rooted[0]);
    TEST_ASSERT_EQUAL_HEX64(6, graph.rooted_first[0]);
}

static void test_pointers_may_stand_anywhere_and_carry_tags_where_that_is_asked_for(void)
{
    made_map(MAPPING, PAGE, PAGE, WRITE);
    made_word(MAPPING + 3, block(1));
    made_word(MAPPING + 16, block(2) | UINT64_C(0xABCD) << 48);
    made_word(MAPPING + 32, block(3) | UINT64_C(1) << 47);
    TEST_ASSERT_EQUAL_HEX64(0, find_roots());
    ta__graph_free(&graph);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_open(&graph, &made_image.pages, TA_IMAGE_UNALIGNED, 0));
    TEST_ASSERT_EQUAL_INT(0, ta__roots_add(&graph, &made_image));
    TEST_ASSERT_EQUAL_HEX64(2, graph.rooted[0]);
    ta__graph_free(&graph);
    made_word(MAPPING + 3, 0);
    TEST_ASSERT_EQUAL_INT(0, ta__graph_open(&graph, &made_image.pages, TA_IMAGE_TAGGED, 0));
    TEST_ASSERT_EQUAL_INT(0, ta__roots_add(&graph, &made_image));
    TEST_ASSERT_EQUAL_HEX64(4, graph.rooted[0]);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_any_aligned_word_may_be_a_pointer);
    RUN_TEST(test_mappings_that_may_hold_pointers);
    RUN_TEST(test_mapping_of_which_nothing_is_resident_is_passed_over);
    RUN_TEST(test_core_is_looked_at_as_far_as_it_goes);
    RUN_TEST(test_pages_as_the_file_has_them_hold_no_pointers);
    RUN_TEST(test_large_mapping_is_looked_at_piece_by_piece);
    RUN_TEST(test_memory_of_the_allocator_and_the_library_is_no_root);
    RUN_TEST(test_data_of_the_library_are_none_where_it_is_a_file_of_its_own);
    RUN_TEST(test_stack_below_its_pointer_is_dead);
    RUN_TEST(test_stack_that_is_almost_full_is_alive_from_its_beginning);
    RUN_TEST(test_of_two_threads_on_one_stack_the_lower_counts);
    RUN_TEST(test_stack_that_waits_for_a_thread_holds_its_table_only);
    RUN_TEST(test_descriptor_is_looked_for_at_the_upper_end_of_a_stack);
    RUN_TEST(test_registers_are_roots);
    RUN_TEST(test_variables_are_remembered_first_then_mappings_stacks_and_registers);
    RUN_TEST(test_all_pointers_to_the_block_that_is_asked_about_are_kept);
    RUN_TEST(test_pointers_may_stand_anywhere_and_carry_tags_where_that_is_asked_for);
    return UNITY_END();
}
