/* test_memory_parts.c: what the resident memory of a process is, mapping by mapping, and what blocks take of it. The process
 * is made of arrays. */
#include <stdio.h>
#include <string.h>

#include "analysis/image/memory_parts.h"
#include "tests/support/made_memory.h"

#include <unity.h>

#define START UINT64_C(0x40000000)
enum { PAGE = TA__TARGET_PAGE, SLICE = 1 << TA__SLICE_BITS, WRITE = TA__REGION_WRITE, TRACES = 3 };

static struct ta__memory_parts memory;
static struct ta_image *const image = &made_image;
static struct ta__object_file objects[2];

void setUp(void)
{
    made_begin();
    memory = (struct ta__memory_parts){0};
}

void tearDown(void)
{
    ta__memory_free(&memory);
    image->pages = (struct ta__heap_pages){0};
    made->objects = NULL;
    made->object_count = 0;
    made_end();
}

/* Pages of zeros are taken for absent in a core: these are there. */
static void touch(uint64_t start, uint64_t end)
{
    for (uint64_t at = start; at < end; at += PAGE)
        made_word(at + 64, 1);
}

static void look(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta__memory_look(&memory, image));
    TEST_ASSERT_EQUAL_INT(0, ta__memory_open(&memory, image, TRACES));
}

static void finish(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta__memory_finish(&memory, image));
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

/* What a mapping of one page is, by its flags and name; with no object in it. */
static enum ta__part part_of(uint32_t flags, const char *path)
{
    made_end();
    made_begin();
    ta__memory_free(&memory);
    made_map(START, PAGE, PAGE, flags);
    touch(START, START + PAGE);
    made->regions[0].path = ta__target_keep(made, path, strlen(path));
    look();
    finish();
    TEST_ASSERT_EQUAL_UINT64(PAGE, memory.parts[memory.kinds[0]]);
    TEST_ASSERT_EQUAL_UINT64(PAGE, memory.mappings[0]);
    return (enum ta__part)memory.kinds[0];
}

static void test_mapping_is_what_its_name_and_flags_say(void)
{
    enum { FILED = TA__REGION_FILE, SHARED = TA__REGION_SHARED };
    TEST_ASSERT_EQUAL_INT(TA__PART_OTHER, part_of(WRITE, ""));
    TEST_ASSERT_EQUAL_INT(TA__PART_STACKS, part_of(WRITE | TA__REGION_STACK, ""));
    TEST_ASSERT_EQUAL_INT(TA__PART_SHARED, part_of(WRITE | SHARED, ""));
    TEST_ASSERT_EQUAL_INT(TA__PART_CODE, part_of(TA__REGION_SPECIAL, ""));
    TEST_ASSERT_EQUAL_INT(TA__PART_FILES, part_of(FILED, "/var/data"));
    TEST_ASSERT_EQUAL_INT(TA__PART_FILES, part_of(FILED | SHARED, "/var/data"));
    TEST_ASSERT_EQUAL_INT(TA__PART_SHARED, part_of(FILED | SHARED, "/dev/shm/x"));
    TEST_ASSERT_EQUAL_INT(TA__PART_FILES, part_of(FILED, "/dev/shm/x"));
    TEST_ASSERT_EQUAL_INT(TA__PART_SHARED, part_of(FILED | SHARED, "/memfd:name"));
    TEST_ASSERT_EQUAL_INT(TA__PART_FILES, part_of(FILED | SHARED, "/memfd"));
    TEST_ASSERT_EQUAL_INT(TA__PART_SHARED, part_of(FILED | SHARED, "/SYSV00000001"));
    TEST_ASSERT_EQUAL_INT(TA__PART_FILES, part_of(FILED | SHARED, "/SYS"));
    TEST_ASSERT_EQUAL_INT(TA__PART_FILES, part_of(FILED | SHARED, "/device"));
}

static void test_mapping_that_a_thread_stands_on_is_a_stack(void)
{
    static const struct {
        uint64_t sp;
        uint32_t flags;
        enum ta__part part;
    } cases[] = {{START - 1, WRITE, TA__PART_OTHER},
                 {START, WRITE, TA__PART_STACKS},
                 {START + PAGE - 1, WRITE, TA__PART_STACKS},
                 {START + PAGE, WRITE, TA__PART_OTHER},
                 {START + 8, WRITE | TA__REGION_SHARED, TA__PART_SHARED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ta__memory_free(&memory);
        made_end();
        made_begin();
        made_map(START, PAGE, PAGE, cases[i].flags);
        touch(START, START + PAGE);
        ta__target_add_thread(made)->sp = 1;
        ta__target_add_thread(made)->sp = cases[i].sp;
        look();
        finish();
        TEST_ASSERT_EQUAL_INT(cases[i].part, memory.kinds[0]);
    }
}

/* A program and the library, three pages each, the second one writable; what follows them is one mapping with them. */
static void make_objects(void)
{
    const uint64_t library = START + 16 * PAGE;
    uint32_t paths[2] = {ta__target_keep(made, "/app", 4), ta__target_keep(made, "/lib", 4)};
    for (int i = 0; i < 2; i++) {
        uint64_t at = i == 0 ? START : library;
        made_map(at, PAGE, PAGE, 0);
        made_map(at + PAGE, 3 * PAGE, 3 * PAGE, WRITE);
        touch(at, at + 4 * PAGE);
        objects[i] = (struct ta__object_file){.start = at, .end = at + 2 * PAGE, .path = paths[i]};
        made->regions[2 * i].path = made->regions[2 * i + 1].path = paths[i];
        made->regions[2 * i].flags |= TA__REGION_FILE;
    }
    made->objects = objects;
    made->object_count = 2;
    made->entry_phdr = START + 64;
    image->layout.object = &objects[1];
}

static void test_objects_are_code_and_data_and_the_library_is_tables(void)
{
    make_objects();
    look();
    finish();
    TEST_ASSERT_EQUAL_UINT64(PAGE, memory.parts[TA__PART_CODE]);
    TEST_ASSERT_EQUAL_UINT64(PAGE, memory.parts[TA__PART_DATA]);
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, memory.parts[TA__PART_TABLES]);
    TEST_ASSERT_EQUAL_UINT64(4 * PAGE, memory.parts[TA__PART_OTHER]); /* behind the objects' ends */
    TEST_ASSERT_EQUAL_INT(TA__PART_CODE, memory.kinds[0]);
    TEST_ASSERT_EQUAL_INT(TA__PART_OTHER, memory.kinds[1]);
    TEST_ASSERT_EQUAL_INT(TA__PART_TABLES, memory.kinds[2]);
    TEST_ASSERT_EQUAL_UINT64(3 * PAGE, memory.mappings[1]);
}

static void test_library_that_the_program_is_linked_with_is_code_and_data(void)
{
    make_objects();
    made->entry_phdr = objects[1].start + 64;
    look();
    finish();
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, memory.parts[TA__PART_CODE]);
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, memory.parts[TA__PART_DATA]);
    TEST_ASSERT_EQUAL_UINT64(0, memory.parts[TA__PART_TABLES]);
}

/* Another file that is mapped where an object seems to reach is not the object's. */
static void test_another_file_within_an_object_is_that_file(void)
{
    make_objects();
    made->regions[1].path = ta__target_keep(made, "/data", 5);
    made->regions[1].flags |= TA__REGION_FILE;
    look();
    finish();
    TEST_ASSERT_EQUAL_UINT64(0, memory.parts[TA__PART_DATA]);
    TEST_ASSERT_EQUAL_UINT64(3 * PAGE, memory.parts[TA__PART_FILES]);
    ta__memory_free(&memory);
    made->regions[1].path = ta__target_keep(made, "/app", 4); /* the same name, kept twice */
    look();
    finish();
    TEST_ASSERT_EQUAL_UINT64(PAGE, memory.parts[TA__PART_DATA]);
    ta__memory_free(&memory);
    made->regions[1].path = 0;
    made->regions[1].flags &= ~(uint32_t)TA__REGION_FILE;
    look();
    finish();
    TEST_ASSERT_EQUAL_UINT64(PAGE, memory.parts[TA__PART_DATA]);
}

static void test_memory_of_the_allocator_has_its_own_parts(void)
{
    struct ta__range arena = {START + PAGE, START + 6 * PAGE}, tables = {START + PAGE, START + 2 * PAGE},
                     own = {START + 7 * PAGE, START + 9 * PAGE};
    made_map(START, 10 * PAGE, 10 * PAGE, WRITE);
    touch(START, START + 8 * PAGE);
    image->pages.arenas = &arena;
    image->pages.tables = &tables;
    image->pages.own = &own;
    image->pages.arena_count = image->pages.table_count = image->pages.own_count = 1;
    look();
    finish();
    TEST_ASSERT_EQUAL_UINT64(4 * PAGE, memory.parts[TA__PART_KEPT]);
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, memory.parts[TA__PART_TABLES]); /* the last two are not there */
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, memory.parts[TA__PART_OTHER]);
    TEST_ASSERT_EQUAL_INT(TA__PART_KEPT, memory.kinds[0]);
    TEST_ASSERT_EQUAL_UINT64(8 * PAGE, memory.mappings[0]);
    TEST_ASSERT_EQUAL_UINT64(8 * PAGE, made->regions[0].rss);
}

static void test_mapping_of_which_nothing_is_there_is_explained_by_nothing(void)
{
    made_map(START, PAGE, PAGE, WRITE);
    made_map(START + 4 * PAGE, PAGE, PAGE, WRITE);
    touch(START + 4 * PAGE, START + 5 * PAGE);
    look();
    finish();
    TEST_ASSERT_EQUAL_UINT64(0, memory.mappings[0]);
    TEST_ASSERT_EQUAL_UINT64(PAGE, memory.mappings[1]);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static const struct ta__heap_page *make_page(uint64_t stride, uint32_t slots, uint32_t header)
{
    static struct ta__heap_page page;
    page =
        (struct ta__heap_page){.start = START, .stride = stride, .slots = slots, .reserved = slots, .header = header};
    image->pages = (struct ta__heap_pages){.items = &page, .count = 1};
    return &page;
}

static void expect_figures(uint32_t trace, uint64_t blocks, uint64_t asked, uint64_t occupied, uint64_t resident,
                           uint64_t pinned, uint64_t back)
{
    const struct ta_memory_figures *figures = &memory.figures[trace];
    TEST_ASSERT_EQUAL_UINT64(blocks, figures->blocks);
    TEST_ASSERT_EQUAL_UINT64(asked, figures->asked);
    TEST_ASSERT_EQUAL_UINT64(occupied, figures->occupied);
    TEST_ASSERT_EQUAL_UINT64(resident, figures->resident);
    TEST_ASSERT_EQUAL_UINT64(pinned, figures->pinned);
    TEST_ASSERT_EQUAL_UINT64(back, figures->back);
}

static void test_blocks_of_a_page_that_is_all_there(void)
{
    static const struct ta__page_block blocks[] = {{.slot = 0, .offset = 8, .size = 1000},
                                                   {.slot = 2, .offset = 8, .size = 500},
                                                   {.slot = 3, .offset = 24, .size = 7}};
    static const uint32_t traces[] = {1, 1, 7}; /* the last one has none */
    made_map(START, SLICE, SLICE, WRITE);
    touch(START, START + SLICE);
    look();
    const struct ta__heap_page *page = make_page(1024, 64, 8);
    TEST_ASSERT_EQUAL_INT(0, ta__memory_add_page(&memory, image, page, blocks, traces, 3));
    finish();
    TEST_ASSERT_EQUAL_UINT64(40, memory.parts[TA__PART_HEADERS]);
    TEST_ASSERT_EQUAL_UINT64(1507, memory.parts[TA__PART_ASKED]);
    TEST_ASSERT_EQUAL_UINT64(3 * 1024 - 40 - 1507, memory.parts[TA__PART_ROUNDING]);
    TEST_ASSERT_EQUAL_UINT64(SLICE - 3 * 1024, memory.parts[TA__PART_FREE]);
    uint64_t share = (SLICE - 3 * 1024) / 3;
    expect_figures(0, 0, 0, 0, 0, 0, 0);
    expect_figures(1, 2, 1500, 2048, 2048, 41643 /* rounded */, 0);
    expect_figures(TRACES, 1, 7, 1024, 1024, share, 0);
    TEST_ASSERT_EQUAL_INT(TA__PART_ASKED, memory.kinds[0]);
    TEST_ASSERT_EQUAL_UINT64(SLICE, memory.mappings[0]);
}

static void test_page_of_one_stack_would_go_back_with_it(void)
{
    static const struct ta__page_block blocks[] = {{.slot = 0, .size = 1024}, {.slot = 1, .size = 1024}};
    static const uint32_t same[] = {2, 2}, other[] = {2, 0};
    made_map(START, SLICE, SLICE, WRITE);
    touch(START, START + SLICE);
    look();
    const struct ta__heap_page *page = make_page(1024, 64, 0);
    TEST_ASSERT_EQUAL_INT(0, ta__memory_add_page(&memory, image, page, blocks, same, 2));
    TEST_ASSERT_EQUAL_INT(0, ta__memory_add_page(&memory, image, page, blocks, other, 2));
    TEST_ASSERT_EQUAL_INT(0, ta__memory_add_page(&memory, image, page, blocks, other, 1));
    finish();
    TEST_ASSERT_EQUAL_UINT64(2 * SLICE, memory.figures[2].back);
    TEST_ASSERT_EQUAL_UINT64(0, memory.figures[0].back);
}

/* Of 16 pages of the system the second and the third are there. */
static void test_of_blocks_counts_what_is_there(void)
{
    static const struct ta__page_block blocks[] = {
        {.slot = 0, .offset = 16, .size = 5000},
        {.slot = 1, .offset = 16, .size = 90000}}; /* more than it has room for */
    static const uint32_t traces[] = {0, 1};
    made_map(START, SLICE, SLICE, WRITE);
    touch(START + PAGE, START + 3 * PAGE);
    look();
    const struct ta__heap_page *page = make_page(2 * PAGE, 2, 16);
    TEST_ASSERT_EQUAL_INT(0, ta__memory_add_page(&memory, image, page, blocks, traces, 2));
    finish();
    TEST_ASSERT_EQUAL_UINT64(16, memory.parts[TA__PART_HEADERS]); /* the first one's is not there */
    TEST_ASSERT_EQUAL_UINT64(5016 - PAGE + PAGE - 16, memory.parts[TA__PART_ASKED]);
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE - 5016, memory.parts[TA__PART_ROUNDING]);
    TEST_ASSERT_EQUAL_UINT64(0, memory.parts[TA__PART_FREE]);
    expect_figures(0, 1, 5000, 2 * PAGE, PAGE, 0, 0);
    expect_figures(1, 1, 90000, 2 * PAGE, PAGE, 0, 0);
}

static void test_page_without_blocks_is_kept_or_the_allocators_own(void)
{
    made_map(START, SLICE, SLICE, WRITE);
    touch(START, START + 5 * PAGE);
    look();
    struct ta__heap_page page = *make_page(1024, 64, 0);
    TEST_ASSERT_EQUAL_INT(0, ta__memory_add_page(&memory, image, &page, NULL, NULL, 0));
    TEST_ASSERT_EQUAL_UINT64(5 * PAGE, memory.parts[TA__PART_KEPT]);
    page.flags = TA__HEAP_PAGE_OWN;
    TEST_ASSERT_EQUAL_INT(0, ta__memory_add_page(&memory, image, &page, NULL, NULL, 0));
    TEST_ASSERT_EQUAL_UINT64(5 * PAGE, memory.parts[TA__PART_TABLES]);
    TEST_ASSERT_EQUAL_UINT64(5 * PAGE, memory.parts[TA__PART_KEPT]);
    TEST_ASSERT_EQUAL_size_t(0, memory.page_count);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_mapping_is_what_its_name_and_flags_say);
    RUN_TEST(test_mapping_that_a_thread_stands_on_is_a_stack);
    RUN_TEST(test_objects_are_code_and_data_and_the_library_is_tables);
    RUN_TEST(test_library_that_the_program_is_linked_with_is_code_and_data);
    RUN_TEST(test_another_file_within_an_object_is_that_file);
    RUN_TEST(test_memory_of_the_allocator_has_its_own_parts);
    RUN_TEST(test_mapping_of_which_nothing_is_there_is_explained_by_nothing);
    RUN_TEST(test_blocks_of_a_page_that_is_all_there);
    RUN_TEST(test_page_of_one_stack_would_go_back_with_it);
    RUN_TEST(test_of_blocks_counts_what_is_there);
    RUN_TEST(test_page_without_blocks_is_kept_or_the_allocators_own);
    return UNITY_END();
}
