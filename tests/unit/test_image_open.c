/* test_image_open.c: a core that is kept with the tests is opened after something in it was changed: what the image warns of,
 * in which words; which threads are inside the allocator; where addresses are that are nobody's.
 *
 *     test_image_open CORE */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "analysis/image/memory_image.h"
#include "analysis/image/unpack.h"
#include "base/error.h"

#include <unity.h>

enum { ALL = TA_IMAGE_BLOCKS | TA_IMAGE_MEMORY | TA_IMAGE_POINTERS | TA_IMAGE_PATHS };

static const char *packed;
static int file;
static char path[64];
static struct ta_image *image;

static void unpack(void)
{
    int original = open(packed, O_RDONLY | O_CLOEXEC);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__unpack(&original, packed), ta__error_text());
    file = original;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
}

static void reopen(unsigned wants)
{
    const struct ta_image_options options = {.wants = wants};
    ta_image_close(image);
    image = ta_image_open(path, &options, sizeof options);
    TEST_ASSERT_NOT_NULL_MESSAGE(image, ta_error_text());
}

void setUp(void)
{
    image = NULL;
    unpack();
    reopen(ALL);
}

void tearDown(void)
{
    ta_image_close(image);
    close(file);
}

/* Changes what the process had at an address. */
static void put(uint64_t address, const void *bytes, size_t length)
{
    const struct ta__region *region = ta__target_region(&image->target, address);
    TEST_ASSERT_NOT_NULL(region);
    TEST_ASSERT_TRUE(address + length <= region->start + region->stored_bytes);
    off_t place = (off_t)(region->stored + (address - region->start));
    TEST_ASSERT_EQUAL_INT((int)length, (int)pwrite(file, bytes, length, place));
}

static uint64_t word_at(uint64_t address)
{
    uint64_t word = 0;
    TEST_ASSERT_EQUAL_INT(0, ta__target_word(&image->target, address, &word));
    return word;
}

static void expect_warnings(const char *first, const char *second)
{
    TEST_ASSERT_EQUAL_STRING(first, ta_image_warning(image, 0));
    if (first != NULL)
        TEST_ASSERT_EQUAL_STRING(second, ta_image_warning(image, 1));
    TEST_ASSERT_NULL(ta_image_warning(image, 2));
}

/* ---- warnings ---------------------------------------------------------------------------------------------------- */

static char left_out[100];

/* The kernel leaves out pages that were never touched: of each core that is told. */
static void expect_one_more(const char *text)
{
    if (text == NULL)
        expect_warnings(left_out, NULL);
    else
        expect_warnings(text, left_out);
}

static void remember_what_was_left_out(void)
{
    TEST_ASSERT_NOT_NULL(ta_image_warning(image, 0));
    snprintf(left_out, sizeof left_out, "%s", ta_image_warning(image, 0));
    TEST_ASSERT_NOT_NULL(strstr(left_out, " bytes of writable memory were left out of the core"));
    expect_one_more(NULL);
}

static void test_core_that_was_cut_is_said_to_be_incomplete(void)
{
    char text[100];
    unsigned long long bytes = image->target.file_bytes;
    TEST_ASSERT_EQUAL_INT(0, ftruncate(file, (off_t)(bytes - 1)));
    snprintf(text, sizeof text, "the core is incomplete: %llu of %llu bytes are there", bytes - 1, bytes);
    reopen(TA_IMAGE_SNAPSHOT);
    expect_warnings(text, NULL); /* what was left out besides is not known */
}

static const struct ta__heap_page *plain_page(void)
{
    for (size_t i = 0; i < image->pages.count; i++)
        if ((image->pages.items[i].flags & (TA__HEAP_PAGE_HEADERS | TA__HEAP_PAGE_OWN | TA__HEAP_PAGE_SINGLE)) == 0 &&
            image->pages.items[i].slots > 0)
            return &image->pages.items[i];
    return NULL;
}

static void test_pages_that_cannot_be_believed_are_counted(void)
{
    remember_what_was_left_out();
    const struct ta__heap_page *page = plain_page(), *other = NULL;
    TEST_ASSERT_NOT_NULL(page);
    const uint64_t astray = page->start + 1, stride = 12;
    const uint64_t list = page->meta + image->layout.page_free, size = image->layout.page_block_size;
    for (size_t i = 0; i < image->pages.count; i++)
        if ((image->pages.items[i].flags & TA__HEAP_PAGE_HEADERS) != 0)
            other = &image->pages.items[i];
    TEST_ASSERT_NOT_NULL(other);
    uint64_t other_meta = other->meta;
    put(list, &astray, sizeof astray);
    reopen(ALL);
    expect_one_more("1 of the allocator's pages could not be believed: damaged, or changing");
    put(other_meta + size, &stride, sizeof stride);
    reopen(ALL);
    expect_one_more("2 of the allocator's pages could not be believed: damaged, or changing");
}

/* Threads of the program, by number in the library's table. */
static void set_inside(uint32_t member, uint32_t depth)
{
    put(word_at(image->layout.members + member * 8) + image->layout.member_in_op, &depth, sizeof depth);
}

static void test_threads_inside_the_allocator_are_counted(void)
{
    uint32_t used = 0;
    const uint8_t gone = 0;
    remember_what_was_left_out();
    TEST_ASSERT_EQUAL_INT(0, ta__target_half(&image->target, image->layout.members_used, &used));
    TEST_ASSERT_TRUE(used >= 2);
    set_inside(0, 1);
    reopen(ALL);
    expect_one_more("1 thread was inside the allocator: a block or two may be counted wrongly");
    set_inside(used - 1, 2);
    reopen(ALL);
    expect_one_more("2 threads were inside the allocator: a block or two may be counted wrongly");
    put(image->layout.members_present + used - 1, &gone, 1); /* that one has ended */
    reopen(ALL);
    expect_one_more("1 thread was inside the allocator: a block or two may be counted wrongly");
    const uint32_t most = (1 << 16) + 1;
    put(image->layout.members_used, &most, sizeof most);
    reopen(TA_IMAGE_SNAPSHOT);
    expect_one_more(NULL);
}

static void test_no_more_than_sixteen_warnings_are_kept(void)
{
    reopen(TA_IMAGE_SNAPSHOT);
    for (int i = 0; i < 30; i++)
        ta__image_warn(image, "warning %d", i);
    TEST_ASSERT_EQUAL_STRING("warning 14", ta_image_warning(image, 15));
    TEST_ASSERT_NULL(ta_image_warning(image, 16));
}

/* ---- what is known of the process -------------------------------------------------------------------------------- */

static const char *metadata(const char *key)
{
    return ta_snapshot_metadata(ta_image_snapshot(image), key);
}

/* Where the note of the first thread has its signal. */
static off_t place_of_signal(void)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    uint32_t head[3];
    TEST_ASSERT_EQUAL_INT(sizeof header, (int)pread(file, &header, sizeof header, 0));
    TEST_ASSERT_EQUAL_INT(sizeof segment, (int)pread(file, &segment, sizeof segment, (off_t)header.e_phoff));
    TEST_ASSERT_EQUAL_INT(sizeof head, (int)pread(file, head, sizeof head, (off_t)segment.p_offset));
    TEST_ASSERT_EQUAL_UINT32(NT_PRSTATUS, head[2]);
    return (off_t)(segment.p_offset + 20 + offsetof(struct elf_prstatus, pr_cursig));
}

static void test_snapshot_says_what_ended_the_process(void)
{
    struct ta_image_info info;
    char threads[16];
    TEST_ASSERT_EQUAL_INT(0, ta_image_get_info(image, &info, sizeof info));
    snprintf(threads, sizeof threads, "%d", (int)info.threads);
    TEST_ASSERT_EQUAL_STRING("", metadata("process.command"));
    TEST_ASSERT_EQUAL_STRING(threads, metadata("process.threads"));
    TEST_ASSERT_NULL(metadata("crash.signal"));
    TEST_ASSERT_NULL(metadata("crash.address"));
    TEST_ASSERT_NULL(metadata("memory.resident")); /* of a core that is a guess */
    off_t place = place_of_signal();
    short number = SIGSEGV;
    TEST_ASSERT_EQUAL_INT(sizeof number, (int)pwrite(file, &number, sizeof number, place));
    reopen(ALL);
    TEST_ASSERT_EQUAL_STRING("SIGSEGV", metadata("crash.signal"));
    TEST_ASSERT_NULL(metadata("crash.address"));
    TEST_ASSERT_EQUAL_INT(0, ta_image_get_info(image, &info, sizeof info));
    TEST_ASSERT_EQUAL_UINT32(SIGSEGV, info.signal);
    number = 1000;
    TEST_ASSERT_EQUAL_INT(sizeof number, (int)pwrite(file, &number, sizeof number, place));
    reopen(TA_IMAGE_SNAPSHOT);
    TEST_ASSERT_EQUAL_STRING("SIG?", metadata("crash.signal"));
}

static void test_info_is_as_long_as_who_asks_knows_it(void)
{
    struct ta_image_info info;
    memset(&info, 0x55, sizeof info);
    TEST_ASSERT_EQUAL_INT(0, ta_image_get_info(image, &info, offsetof(struct ta_image_info, is_tracing)));
    TEST_ASSERT_EQUAL_INT(1, info.is_core);
    TEST_ASSERT_EQUAL_INT(1, info.can_trace);
    TEST_ASSERT_EQUAL_INT(0x55555555, info.is_tracing);
}

static void test_image_without_options_has_the_snapshot(void)
{
    ta_image_close(image);
    image = ta_image_open(path, NULL, 0);
    TEST_ASSERT_NOT_NULL_MESSAGE(image, ta_error_text());
    TEST_ASSERT_TRUE(ta_snapshot_trace_count(ta_image_snapshot(image)) > 0);
    TEST_ASSERT_EQUAL_INT(-1, (int)ta_snapshot_block_count(ta_image_snapshot(image)));
    ta_image_close(NULL);
    TEST_ASSERT_NULL(ta_image_open("/nowhere", NULL, 0));
    TEST_ASSERT_EQUAL_STRING("/nowhere: No such file or directory", ta_error_text());
}

static void sum_blocks_of(uint32_t domain, uint64_t *blocks, uint64_t *bytes)
{
    struct ta_trace trace;
    *blocks = *bytes = 0;
    for (size_t i = 0; ta_snapshot_trace(ta_image_snapshot(image), i, &trace) == 0; i++)
        if (trace.domain == domain && trace.count > 0) {
            *blocks += trace.count;
            *bytes += trace.size;
        }
}

/* Blocks of a domain are in it also when nothing is traced: leaves and marks tell. */
static void test_blocks_belong_to_their_domains_without_tracing(void)
{
    uint64_t blocks, bytes, all_blocks, all_bytes;
    struct ta_image_info info;
    uint32_t gate = 0;
    sum_blocks_of(7, &blocks, &bytes);
    TEST_ASSERT_TRUE(blocks > 0);
    TEST_ASSERT_EQUAL_INT(0, ta__target_half(&image->target, image->layout.gate, &gate));
    gate &= ~(uint32_t)image->layout.gate_tracing;
    put(image->layout.gate, &gate, sizeof gate);
    reopen(ALL);
    TEST_ASSERT_EQUAL_INT(0, ta_image_get_info(image, &info, sizeof info));
    TEST_ASSERT_EQUAL_INT(0, info.is_tracing);
    TEST_ASSERT_EQUAL_UINT64(info.blocks, info.untraced_blocks);
    sum_blocks_of(7, &all_blocks, &all_bytes);
    TEST_ASSERT_EQUAL_UINT64(blocks, all_blocks);
    TEST_ASSERT_EQUAL_UINT64(bytes, all_bytes);
    sum_blocks_of(0, &all_blocks, &all_bytes);
    TEST_ASSERT_EQUAL_UINT64(info.blocks, blocks + all_blocks);
    TEST_ASSERT_EQUAL_UINT64(info.bytes, bytes + all_bytes);
}

/* ---- questions that cannot be answered --------------------------------------------------------------------------- */

static void expect_error(const char *text)
{
    TEST_ASSERT_EQUAL_STRING(text, ta_error_text());
    ta__error_clear();
}

static void test_question_that_it_was_not_opened_for_is_refused(void)
{
    struct ta_memory_figures figures[4];
    struct ta_retained_row rows[4];
    struct ta_retained_block blocks[2];
    struct ta_memory_part parts[2];
    reopen(TA_IMAGE_BLOCKS);
    struct ta_statistics *statistics = ta_snapshot_statistics(ta_image_snapshot(image), "domain", 0);
    TEST_ASSERT_NOT_NULL_MESSAGE(statistics, ta_error_text());
    TEST_ASSERT_EQUAL_INT(-1, ta_image_memory_rows(image, statistics, figures));
    expect_error("the image was not opened for questions about memory");
    TEST_ASSERT_NULL(ta_image_memory_snapshot(image, TA_MEMORY_ASKED));
    expect_error("the image was not opened for questions about memory");
    TEST_ASSERT_EQUAL_INT(-1, ta_image_retained_rows(image, statistics, rows));
    expect_error("the image was not opened for questions about pointers");
    TEST_ASSERT_EQUAL_INT(-1, (int)ta_image_retained_blocks(image, blocks, 2));
    expect_error("the image was not opened for questions about pointers");
    TEST_ASSERT_NULL(ta_image_leaks(image, NULL));
    expect_error("the image was not opened for questions about pointers");
    TEST_ASSERT_NULL(ta_image_why(image, 0));
    expect_error("the image was not opened for questions about addresses");
    TEST_ASSERT_EQUAL_size_t(0, ta_image_memory_parts(image, parts, 2));
    TEST_ASSERT_EQUAL_size_t(0, ta_image_memory_mappings(image, NULL, 0));
    ta_statistics_free(statistics);
    reopen(TA_IMAGE_POINTERS);
    TEST_ASSERT_NULL(ta_image_why(image, 0)); /* places of pointers are not kept */
    expect_error("the image was not opened for questions about addresses");
}

static void test_cumulative_statistics_have_no_figures_of_memory(void)
{
    static struct ta_memory_figures figures[2000];
    static struct ta_retained_row rows[2000];
    struct ta_statistics *statistics = ta_snapshot_statistics(ta_image_snapshot(image), "filename", TA_CUMULATIVE_ONCE);
    TEST_ASSERT_NOT_NULL_MESSAGE(statistics, ta_error_text());
    TEST_ASSERT_EQUAL_INT(-1, ta_image_memory_rows(image, statistics, figures));
    expect_error("cumulative statistics have no figures of memory");
    TEST_ASSERT_EQUAL_INT(-1, ta_image_retained_rows(image, statistics, rows));
    expect_error("cumulative statistics do not say what holds what");
    ta_statistics_free(statistics);
}

static void test_row_that_there_is_not_is_an_error(void)
{
    struct ta_leak leak;
    struct ta_block members[2];
    struct ta_place place;
    struct ta_leaks *leaks = ta_image_leaks(image, NULL);
    TEST_ASSERT_NOT_NULL(leaks);
    size_t count = ta_leaks_count(leaks);
    TEST_ASSERT_TRUE(count > 0);
    TEST_ASSERT_EQUAL_INT(0, ta_leaks_get(leaks, count - 1, &leak, sizeof leak));
    TEST_ASSERT_EQUAL_INT(-1, ta_leaks_get(leaks, count, &leak, sizeof leak));
    expect_error("there is no leak of that index");
    TEST_ASSERT_EQUAL_size_t(0, ta_leaks_cycle(leaks, count, members, 2));
    struct ta_why *why = ta_image_why(image, 0);
    TEST_ASSERT_NOT_NULL(why);
    TEST_ASSERT_EQUAL_INT(-1, ta_why_referrer(why, 0, &place));
    TEST_ASSERT_EQUAL_INT(-1, ta_why_neighbour(why, -1, &place));
    TEST_ASSERT_EQUAL_INT(-1, ta_why_neighbour(why, 1, &place));
    TEST_ASSERT_EQUAL_size_t(0, ta_why_path(why, 0, &place, 1));
    ta_why_free(why);
    ta_why_free(NULL);
    ta_leaks_free(leaks);
    ta_leaks_free(NULL);
}

/* ---- addresses of nobody ----------------------------------------------------------------------------------------- */

static struct ta_place place_at(uint64_t address)
{
    struct ta_place place;
    struct ta_why *why = ta_image_why(image, address);
    TEST_ASSERT_NOT_NULL_MESSAGE(why, ta_error_text());
    ta_why_place(why, &place);
    TEST_ASSERT_EQUAL_UINT64(0, ta_why_referrer_count(why));
    TEST_ASSERT_EQUAL_INT(0, ta_why_is_reached(why));
    ta_why_free(why);
    return place;
}

static void test_address_is_a_null_pointer_or_in_no_mapping(void)
{
    static const char null[] = "a null pointer, or a member of what it should point to";
    struct ta_place place = place_at(0);
    TEST_ASSERT_EQUAL_INT(TA_PLACE_NOTHING, place.kind);
    TEST_ASSERT_EQUAL_STRING(null, place.name);
    TEST_ASSERT_EQUAL_STRING(null, place_at(65535).name);
    TEST_ASSERT_EQUAL_INT(TA_PLACE_NOTHING, place_at(65536).kind);
    TEST_ASSERT_EQUAL_STRING("", place_at(65536).name);
}

static void test_address_on_a_stack_and_below_it(void)
{
    char text[100];
    struct ta__target *target = &image->target;
    size_t found = 0;
    for (size_t i = 0; i < target->thread_count; i++) {
        const struct ta__target_thread *thread = &target->threads[i];
        const struct ta__region *region = ta__target_region(target, thread->sp);
        struct ta_place place = place_at(thread->sp);
        TEST_ASSERT_EQUAL_INT(TA_PLACE_STACK, place.kind);
        TEST_ASSERT_EQUAL_UINT32(thread->tid, place.thread);
        TEST_ASSERT_EQUAL_HEX64(region->start, place.start);
        TEST_ASSERT_EQUAL_UINT64(region->end - region->start, place.size);
        TEST_ASSERT_EQUAL_UINT64(thread->sp - region->start, place.offset);
        snprintf(text, sizeof text, "just below the stack of thread %u: too deep a recursion?", thread->tid);
        struct ta__region *before = &target->regions[region - target->regions - 1];
        if (region->start - (before - 1)->end < 4 << 20)
            continue;             /* other things lie below it */
        before->start -= 2 << 20; /* the core has a stack in two parts: make room between them */
        before->end -= 2 << 20;
        TEST_ASSERT_EQUAL_INT(TA_PLACE_NOTHING, place_at(region->start - 1).kind);
        TEST_ASSERT_EQUAL_STRING(text, place_at(region->start - 1).name);
        TEST_ASSERT_EQUAL_STRING(text, place_at(region->start - (1 << 20) + 1).name);
        TEST_ASSERT_EQUAL_STRING("", place_at(region->start - (1 << 20)).name);
        found++;
    }
    TEST_ASSERT_TRUE(found > 0);
}

int main(int argc, char **argv)
{
    packed = argc > 1 ? argv[1] : "image.core.zst";
    UNITY_BEGIN();
    RUN_TEST(test_core_that_was_cut_is_said_to_be_incomplete);
    RUN_TEST(test_pages_that_cannot_be_believed_are_counted);
    RUN_TEST(test_threads_inside_the_allocator_are_counted);
    RUN_TEST(test_no_more_than_sixteen_warnings_are_kept);
    RUN_TEST(test_snapshot_says_what_ended_the_process);
    RUN_TEST(test_info_is_as_long_as_who_asks_knows_it);
    RUN_TEST(test_image_without_options_has_the_snapshot);
    RUN_TEST(test_blocks_belong_to_their_domains_without_tracing);
    RUN_TEST(test_question_that_it_was_not_opened_for_is_refused);
    RUN_TEST(test_cumulative_statistics_have_no_figures_of_memory);
    RUN_TEST(test_row_that_there_is_not_is_an_error);
    RUN_TEST(test_address_is_a_null_pointer_or_in_no_mapping);
    RUN_TEST(test_address_on_a_stack_and_below_it);
    return UNITY_END();
}
