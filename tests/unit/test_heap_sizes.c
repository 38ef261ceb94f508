/* test_heap_sizes.c: what mimalloc is asked for — how much address space at once, how long empty pages stay, and blocks of
 * which size for which request — as far as a program's memory shows it. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "tests/support/child.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

enum { MIB = 1 << 20, LARGEST_NATURAL = 4096 };

void setUp(void)
{
}

void tearDown(void)
{
    ta_stop();
}

/* ---- address space ------------------------------------------------------------------------------------------------ */

static void expect_sizes(size_t left, long reserve_kib, int are_short)
{
    ta__heap_choose_sizes(left);
    TEST_ASSERT_EQUAL_INT64(reserve_kib, mi_option_get(mi_option_arena_reserve));
    TEST_ASSERT_EQUAL_INT(are_short, _mi_pages_are_short);
}

/* Half a GiB is where an arena is no small part any more. */
static void test_the_less_is_left_the_less_is_reserved_at_once(void)
{
    expect_sizes(SIZE_MAX, 128 * 1024, 0);
    expect_sizes(SIZE_MAX - 1, 32 * 1024, 0);
    expect_sizes((size_t)512 * MIB, 32 * 1024, 0);
    expect_sizes((size_t)512 * MIB - 1, 0, 1);
    expect_sizes(0, 0, 1);
    expect_sizes(SIZE_MAX, 128 * 1024, 0);
}

/* ---- empty pages -------------------------------------------------------------------------------------------------- */

static void say_purge_delay(void)
{
    fprintf(stderr, "%ld", mi_option_get(mi_option_purge_delay));
}

static void expect_purge_delay(const char *options, const char *said)
{
    const char *const settings[] = {options, NULL};
    struct child_result result;
    child_run_self(&result, "purge_delay", settings);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
    if (said != NULL)
        TEST_ASSERT_EQUAL_STRING(said, result.text);
    else
        TEST_ASSERT_TRUE_MESSAGE(strcmp(result.text, "77") != 0 && strcmp(result.text, "-1") != 0, result.text);
}

static void test_how_long_empty_pages_stay_is_as_the_option_says(void)
{
    expect_purge_delay("TRACEALLOC_OPTIONS=purge_delay=77", "77");
    expect_purge_delay("TRACEALLOC_OPTIONS=purge_delay=0", "0");
    expect_purge_delay("TRACEALLOC_OPTIONS=purge_delay=never", "-1");
    expect_purge_delay("TRACEALLOC_OPTIONS=", NULL); /* mimalloc's own */
}

/* ---- blocks ------------------------------------------------------------------------------------------------------- */

/* A plain block of such a size stands at the alignment by itself, has room, and wastes no more than a header would. */
static void expect_natural(size_t size, size_t alignment)
{
    size_t natural = ta__heap_natural_size(size, alignment);
    if (alignment <= 16)
        TEST_ASSERT_EQUAL_size_t(size, natural);
    if (alignment <= 16 || natural == 0)
        return;
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(size, natural);
    TEST_ASSERT_EQUAL_size_t(0, natural % alignment);
    TEST_ASSERT_EQUAL_size_t(0, natural & (natural - 1));
    TEST_ASSERT_LESS_OR_EQUAL_size_t(LARGEST_NATURAL, natural);
    TEST_ASSERT_LESS_OR_EQUAL_size_t(size + alignment, natural);
}

static void test_plain_blocks_of_powers_of_two_are_aligned_by_themselves(void)
{
    for (size_t alignment = 1; alignment <= 4 * LARGEST_NATURAL; alignment *= 2)
        for (size_t size = 0; size <= 2 * LARGEST_NATURAL; size++)
            expect_natural(size, alignment);
    static const struct {
        size_t size, alignment, natural;
    } known[] = {{1, 32, 32},      {32, 32, 32},       {33, 32, 64},    {64, 32, 64},       {65, 32, 0},
                 {96, 32, 128},    {100, 32, 128},     {95, 32, 0},     {0, 64, 64},        {4096, 4096, 4096},
                 {4095, 64, 4096}, {4096, 64, 4096},   {4097, 64, 0},   {1, 4096, 4096},    {1, 8192, 0},
                 {4097, 4096, 0},  {2049, 2048, 4096}, {3000, 1024, 0}, {3072, 1024, 4096}, {2000, 1024, 2048}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        TEST_ASSERT_EQUAL_size_t(known[i].natural, ta__heap_natural_size(known[i].size, known[i].alignment));
}

static void test_lines_have_room_for_a_header(void)
{
    for (size_t size = 0; size <= 1024; size++) {
        size_t bytes = ta__heap_lines(size);
        TEST_ASSERT_EQUAL_size_t(0, bytes % TA__LINE);
        TEST_ASSERT_GREATER_OR_EQUAL_size_t(size + TA__MARK_SIZE, bytes);
        TEST_ASSERT_LESS_THAN_size_t(size + TA__MARK_SIZE + TA__LINE, bytes);
    }
}

/* Of each size up to where pages are of one block: the room behind the header, and that not much of it is wasted. */
static void test_blocks_with_headers_have_room_and_waste_little(void)
{
    enum { MOST = 600000 };
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    for (size_t size = 0; size <= MOST; size += size < 5000 ? 1 : size < 70000 ? 61 : 4099) {
        char *block = ta_malloc(size);
        const mi_page_t *page = ta__heap_page(block);
        size_t header = ta__page_header_size(page), room = ta__page_room(page, block);
        TEST_ASSERT_EQUAL_size_t(0, (uintptr_t)block % 16);
        TEST_ASSERT_EQUAL_size_t(size, ta_usable_size(block));
        TEST_ASSERT_GREATER_OR_EQUAL_size_t(size, room);
        TEST_ASSERT_EQUAL_size_t(mi_page_usable_block_size(page), room + header);
        TEST_ASSERT_EQUAL_INT(page->block_size > TA__LONG_BLOCK, header == TA__LONG_HEADER);
        if (size >= 64 && size <= (28 << 10))
            TEST_ASSERT_LESS_THAN_size_t(size + size / 4 + 48, room);
        memset(block, 1, size);
        ta_free(block);
    }
}

/* mimalloc's own calls change errno also when they succeed: ours do not. */
static void test_looks_and_changes_keep_errno(void)
{
    size_t count = 0;
    struct ta__heap_figures figures;
    char *block = ta_malloc(100000);
    errno = 77;
    ta__heap_trim();
    ta__heap_figures(&figures);
    count += ta__heap_in_use(ta__plain_heap);
    ta__heap_choose_sizes(SIZE_MAX);
    TEST_ASSERT_EQUAL_INT(77, errno);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(100000, count);
    TEST_ASSERT_GREATER_THAN_size_t(0, figures.committed);
    TEST_ASSERT_GREATER_THAN_size_t(0, figures.reserved);
    ta_free(block);
}

static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL_INT(1, fscanf(file, "%*u %lu", &pages));
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_a_trim_gives_back_what_is_empty(void)
{
    enum { BLOCKS = 3000, BYTES = 9000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = ta_malloc(BYTES);
        memset(blocks[i], 1, BYTES);
    }
    size_t full = resident_bytes();
    for (int i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);
    ta__heap_trim();
    TEST_ASSERT_LESS_THAN_size_t(full - (size_t)BLOCKS * BYTES / 2, resident_bytes());
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "purge_delay") == 0) {
        say_purge_delay();
        return 0;
    }
    UNITY_BEGIN();
    RUN_TEST(test_the_less_is_left_the_less_is_reserved_at_once);
    RUN_TEST(test_how_long_empty_pages_stay_is_as_the_option_says);
    RUN_TEST(test_plain_blocks_of_powers_of_two_are_aligned_by_themselves);
    RUN_TEST(test_lines_have_room_for_a_header);
    RUN_TEST(test_blocks_with_headers_have_room_and_waste_little);
    RUN_TEST(test_looks_and_changes_keep_errno);
    RUN_TEST(test_a_trim_gives_back_what_is_empty);
    return UNITY_END();
}
