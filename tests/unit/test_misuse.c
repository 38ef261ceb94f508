/* test_misuse.c: what happens to programs that give the allocator what it did not hand out.
 *
 * Each scenario runs in a fresh process of this same executable (first argument: its name), with descriptor 2 captured.
 * Damage is one clear line and abort, or one line and a leak with on_corruption=leak; foreign pointers are ignored and
 * counted; a bad option is one line and exit status 1 before main. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tracealloc/domain.h"
#include "unity.h"
#include "tests/support/names.h"

/* Exit statuses of scenarios: everything is as it should be, or the number of what was not. */
enum { GOOD = 0, WRONG_RESULT = 41, WRONG_COUNT = 42, NOT_USABLE = 43 };

/* Misuse is told where blocks have headers: while they are traced, and always where that is asked for. */
static const char *const headers_option[] = {"TRACEALLOC_OPTIONS=headers=always", NULL};
static const char *const leak_option[] = {"TRACEALLOC_OPTIONS=headers=always,on_corruption=leak", NULL};
static const char *const remember_option[] = {"TRACEALLOC=10",
                                              "TRACEALLOC_OPTIONS=remember_frees=100,on_corruption=leak", NULL};
static const char *const remember_alone_option[] = {"TRACEALLOC_OPTIONS=remember_frees=100", NULL};
static const char *const traced_option[] = {"TRACEALLOC=10", "TRACEALLOC_OPTIONS=on_corruption=leak", NULL};
static struct child_result result;

void setUp(void)
{
}

void tearDown(void)
{
}

/* ---- scenarios, in the child ---------------------------------------------------------------------------------------
 */

static struct ta_health health(void)
{
    struct ta_health now;
    ta_get_health(&now, sizeof now);
    return now;
}

/* After a mishap that is survived: the allocator still allocates, and no block is handed out twice. */
static bool still_works(void)
{
    enum { COUNT = 2000 };
    static unsigned char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = 1 + i * 7 % 3000;
        blocks[i] = malloc(size);
        if (blocks[i] == NULL)
            return false;
        memset(blocks[i], (int)(i % 255), size);
    }
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = 1 + i * 7 % 3000;
        if (blocks[i][0] != i % 255 || memcmp(blocks[i], blocks[i] + 1, size - 1) != 0)
            return false;
        free(blocks[i]);
    }
    return true;
}

static int survive(uint64_t foreign, uint64_t invalid)
{
    if (health().foreign_frees != foreign || health().invalid_frees != invalid)
        return WRONG_COUNT;
    return still_works() ? GOOD : NOT_USABLE;
}

static int double_free_of(size_t size)
{
    void *block = malloc(opaque(size));
    free(block);
    free(opaque_pointer(block));
    return survive(0, 1);
}

static int scenario_double_free(void)
{
    return double_free_of(100);
}

static int scenario_double_free_zero(void)
{
    return double_free_of(0);
}

static int scenario_double_free_page(void)
{
    return double_free_of(20000);
}

static int scenario_double_free_large(void)
{
    return double_free_of(3u << 20);
}

static int scenario_double_free_huge(void)
{
    return double_free_of(100u << 20);
}

static int scenario_double_free_aligned(void)
{
    void *block = memalign(4096, 100);
    free(block);
    free(opaque_pointer(block));
    return survive(0, 1);
}

/* With neighbours alive and others freed in between: the block is not the last one on any list. */
static int scenario_double_free_later(void)
{
    static void *blocks[500];
    for (size_t i = 0; i < 500; i++)
        blocks[i] = malloc(48);
    void *victim = blocks[250];
    for (size_t i = 0; i < 500; i += 2)
        free(blocks[i]);
    free(opaque_pointer(victim));
    return survive(0, 1);
}

static int interior_free_at(size_t size, size_t offset)
{
    char *block = malloc(opaque(size));
    memset(opaque_pointer(block), 0x11, size);
    free(opaque_pointer(block + offset));
    return survive(0, 1);
}

static int scenario_interior_free(void)
{
    return interior_free_at(1000, 64);
}

static int scenario_interior_free_header(void)
{
    return interior_free_at(1000, 16);
}

static int scenario_interior_free_large(void)
{
    return interior_free_at(5u << 20, 1u << 20);
}

static int scenario_misaligned_free(void)
{
    return interior_free_at(1000, 1);
}

static int scenario_misaligned_free_by_eight(void)
{
    return interior_free_at(1000, 8);
}

/* The words before a living block, copied into its inside: a header must not verify at another address. */
static int scenario_copied_header(void)
{
    char *block = malloc(1000);
    memcpy(opaque_pointer(block), opaque_pointer(block - 16), 16);
    free(opaque_pointer(block + 16));
    return survive(0, 1);
}

static int underrun_at(size_t distance, size_t length)
{
    char *block = malloc(100);
    memset(opaque_pointer(block - distance), 0x41, length);
    free(opaque_pointer(block));
    return survive(0, 1);
}

static int scenario_underrun(void)
{
    return underrun_at(8, 8);
}

static int scenario_underrun_one_byte(void)
{
    return underrun_at(1, 1);
}

static int scenario_underrun_whole_header(void)
{
    return underrun_at(16, 16);
}

/* Blocks of 24 bytes, one right behind the other. */
__attribute__((noinline)) static char *who_is_in_front(void)
{
    void *volatile block = malloc(opaque(24));
    return block;
}

/* Bytes written behind the end of a block: the one behind it is damaged. The one in front may be nobody's any more. */
static int overrun(size_t bytes, int value, int is_freed)
{
    enum { TRIED = 64 };
    char *blocks[TRIED];
    for (size_t i = 0; i < TRIED; i++)
        blocks[i] = who_is_in_front();
    for (size_t i = 1; i < TRIED; i++)
        if (blocks[i] == blocks[i - 1] + 32) {
            if (is_freed)
                free(blocks[i - 1]);
            memset(opaque_pointer(blocks[i - 1] + 24), value, bytes);
            free(blocks[i]);
            return survive(0, 1);
        }
    return WRONG_RESULT;
}

/* A string one too long, the most usual of all. */
static int scenario_overrun_by_nul(void)
{
    return overrun(1, 0, 0);
}

static int scenario_overrun_by_four(void)
{
    return overrun(4, 'x', 0);
}

static int scenario_overrun_by_eight(void)
{
    return overrun(8, 'x', 0);
}

static int scenario_overrun_of_a_freed_block(void)
{
    return overrun(4, 'x', 1);
}

/* What is wrong with blocks of a domain that is gone is said once, and never the end of the program. */
static int scenario_free_of_a_destroyed_domains_blocks(void)
{
    void *blocks[3] = {ta_domain_malloc(5, 100), ta_domain_malloc(5, 200), ta_domain_malloc(5, 300)};
    if (ta_domain_destroy(5) != 0)
        return WRONG_RESULT;
    free(opaque_pointer(blocks[0]));
    free(opaque_pointer(blocks[1]));
    errno = 0;
    void *moved = realloc(opaque_pointer(blocks[2]), 400);
    if (moved != NULL || errno != ENOMEM)
        return WRONG_RESULT;
    return survive(0, 3);
}

static int scenario_underrun_realloc(void)
{
    char *block = malloc(100);
    memset(opaque_pointer(block - 8), 0x41, 8);
    errno = 0;
    void *moved = realloc(opaque_pointer(block), 5000);
    if (moved != NULL || errno == 0)
        return WRONG_RESULT;
    return survive(0, 1);
}

static int scenario_double_free_by_realloc(void)
{
    void *block = malloc(100);
    free(block);
    errno = 0;
    void *moved = realloc(opaque_pointer(block), 200);
    if (moved != NULL || errno == 0)
        return WRONG_RESULT;
    return survive(0, 1);
}

static int scenario_free_after_realloc(void)
{
    void *block = malloc(100);
    void *moved = realloc(block, 100000);
    if (moved == block)
        return WRONG_RESULT;
    free(opaque_pointer(block));
    free(moved);
    return survive(0, 1);
}

static int scenario_foreign_frees(void)
{
    static char data[256];
    char local[256];
    char *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *gone = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 1 << 20);
    void *const foreign[] = {data + 64,
                             local + 64,
                             "text",
                             mapped,
                             mapped + 4096,
                             gone + 4096,
                             (void *)16,
                             (void *)0x1230,
                             (void *)(uintptr_t)scenario_foreign_frees,
                             (void *)0x00007ffffffff000,
                             (void *)0x0000800000000000,
                             (void *)0xdeadbeefdeadbee0,
                             (void *)UINTPTR_MAX};
    errno = 4242;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        free(opaque_pointer(foreign[i]));
    if (errno != 4242)
        return WRONG_RESULT;
    return survive(sizeof foreign / sizeof *foreign, 0);
}

static int scenario_foreign_realloc(void)
{
    static char data[256];
    errno = 0;
    void *moved = realloc(opaque_pointer(data + 64), 1000);
    if (moved != NULL || errno == 0)
        return WRONG_RESULT;
    return survive(1, 0);
}

static int scenario_foreign_usable_size(void)
{
    static char data[256];
    if (malloc_usable_size(opaque_pointer(data + 64)) != 0)
        return WRONG_RESULT;
    if (malloc_usable_size((void *)0xdeadbeefdeadbee0) != 0)
        return WRONG_RESULT;
    return still_works() ? GOOD : NOT_USABLE;
}

static int scenario_many_double_frees(void)
{
    for (int i = 0; i < 5; i++) {
        void *block = malloc(64);
        free(block);
        free(opaque_pointer(block));
    }
    return survive(0, 5);
}

/* Freed by another function than the one that frees again, and other frees in between. */
__attribute__((noipa)) static void *who_allocates(size_t size)
{
    return opaque_pointer(malloc(opaque(size)));
}

__attribute__((noipa)) static void who_frees(void *block)
{
    free(block);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noipa)) static void who_frees_again(void *block)
{
    free(opaque_pointer(block));
    __asm__ volatile("" ::: "memory");
}

static int scenario_freed_by_two(void)
{
    void *block = who_allocates(100), *others[50];
    for (size_t i = 0; i < 50; i++)
        others[i] = malloc(100);
    who_frees(block);
    for (size_t i = 0; i < 50; i++)
        free(others[i]);
    who_frees_again(block);
    return survive(0, 1);
}

/* More frees than are remembered: nobody knows any more. */
static int scenario_freed_long_ago(void)
{
    void *block = who_allocates(100);
    who_frees(block);
    for (size_t i = 0; i < 200; i++)
        free(opaque_pointer(malloc(2000)));
    who_frees_again(block);
    return survive(0, 1);
}

/* realloc frees what it moves. */
static int scenario_moved_and_freed(void)
{
    void *block = who_allocates(100);
    void *moved = realloc(block, opaque(5000));
    who_frees_again(block);
    free(moved);
    return survive(0, 1);
}

static int scenario_signal_handler_sees_abort(void);

static int scenario_nothing(void)
{
    void *block = malloc(10);
    free(block);
    return GOOD;
}

static void leave_with_seventeen(int signal_number)
{
    (void)signal_number;
    _exit(17);
}

static int scenario_signal_handler_sees_abort(void)
{
    signal(SIGABRT, leave_with_seventeen);
    return double_free_of(100);
}

static int scenario_closed_descriptor(void)
{
    close(2);
    return double_free_of(100);
}

#define SCENARIO(name)                                                                                                 \
    {                                                                                                                  \
#name, scenario_##name                                                                                         \
    }
static const struct scenario {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    SCENARIO(double_free),
    SCENARIO(double_free_zero),
    SCENARIO(double_free_page),
    SCENARIO(double_free_large),
    SCENARIO(double_free_huge),
    SCENARIO(double_free_aligned),
    SCENARIO(double_free_later),
    SCENARIO(interior_free),
    SCENARIO(interior_free_header),
    SCENARIO(interior_free_large),
    SCENARIO(misaligned_free),
    SCENARIO(misaligned_free_by_eight),
    SCENARIO(copied_header),
    SCENARIO(underrun),
    SCENARIO(underrun_one_byte),
    SCENARIO(underrun_whole_header),
    SCENARIO(overrun_by_nul),
    SCENARIO(overrun_by_four),
    SCENARIO(overrun_by_eight),
    SCENARIO(overrun_of_a_freed_block),
    SCENARIO(free_of_a_destroyed_domains_blocks),
    SCENARIO(underrun_realloc),
    SCENARIO(double_free_by_realloc),
    SCENARIO(free_after_realloc),
    SCENARIO(foreign_frees),
    SCENARIO(foreign_realloc),
    SCENARIO(foreign_usable_size),
    SCENARIO(many_double_frees),
    SCENARIO(nothing),
    SCENARIO(signal_handler_sees_abort),
    SCENARIO(closed_descriptor),
    SCENARIO(freed_by_two),
    SCENARIO(freed_long_ago),
    SCENARIO(moved_and_freed),
};

static int run_scenario(const char *name)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return scenarios[i].run();
    fprintf(stderr, "no scenario %s\n", name);
    return 98;
}

/* ---- expectations, in the parent ----------------------------------------------------------------------------------
 */

static void expect_line(const char *start, const char *within)
{
    TEST_ASSERT_EQUAL_STRING_LEN_MESSAGE(start, result.text, strlen(start), result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(result.text, within), result.text);
}

/* One line that says what and where, then abort; with on_corruption=leak the same line, and the program goes on. */
static void expect_report(const char *scenario, const char *start, const char *within)
{
    child_run_self(&result, scenario, traced_option);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, result.signal, scenario);
    TEST_ASSERT_EQUAL_INT_MESSAGE(GOOD, result.exit_status, scenario);
    expect_line(start, within);

    child_run_self(&result, scenario, headers_option);
    TEST_ASSERT_EQUAL_INT_MESSAGE(SIGABRT, result.signal, scenario);
    TEST_ASSERT_EQUAL_size_t_MESSAGE(1, result.lines, result.text);
    expect_line(start, within);

    child_run_self(&result, scenario, leak_option);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, result.signal, scenario);
    TEST_ASSERT_EQUAL_INT_MESSAGE(GOOD, result.exit_status, scenario);
    TEST_ASSERT_EQUAL_size_t_MESSAGE(1, result.lines, result.text);
    expect_line(start, within);
}

static void expect_damage_reported(const char *scenario, const char *start)
{
    expect_report(
        scenario, start,
        "): double free or damaged block; with remember_frees=100000 in TRACEALLOC_OPTIONS, it would say who freed "
        "it\n");
}

static void expect_written_over(const char *scenario, const char *start)
{
    expect_report(scenario, start, "): damaged block: what is in front of it was written over");
}

/* The line says where in which block the pointer points. */
static void expect_interior_reported(const char *scenario, const char *place)
{
    expect_report(scenario, "tracealloc: free(0x", "): not the start of a block, ");
    expect_line("tracealloc: free(0x", place);
    expect_line("tracealloc: free(0x", "; with TRACEALLOC=100 in the environment");
}

static void expect_silence(const char *scenario)
{
    child_run_self(&result, scenario, NULL);
    TEST_ASSERT_EQUAL_STRING("", result.text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, result.signal, scenario);
    TEST_ASSERT_EQUAL_INT_MESSAGE(GOOD, result.exit_status, scenario);
}

static void test_double_free_of_any_size_is_reported(void)
{
    expect_damage_reported("double_free", "tracealloc: free(0x");
    expect_damage_reported("double_free_zero", "tracealloc: free(0x");
    expect_damage_reported("double_free_page", "tracealloc: free(0x");
    expect_damage_reported("double_free_large", "tracealloc: free(0x");
    expect_damage_reported("double_free_huge", "tracealloc: free(0x");
}

static void test_double_free_of_an_aligned_block_is_reported(void)
{
    expect_damage_reported("double_free_aligned", "tracealloc: free(0x");
}

static void test_double_free_among_other_frees_is_reported(void)
{
    expect_damage_reported("double_free_later", "tracealloc: free(0x");
}

static void test_free_of_an_interior_pointer_is_reported(void)
{
    expect_interior_reported("interior_free", ", 64 bytes inside one of 1000;");
    expect_interior_reported("interior_free_header", ", 16 bytes inside one of 1000;");
    expect_interior_reported("interior_free_large", ", 1048576 bytes inside one of 5242880;");
}

static void test_free_of_a_misaligned_pointer_is_reported(void)
{
    expect_interior_reported("misaligned_free", ", 1 byte inside one of 1000;");
    expect_interior_reported("misaligned_free_by_eight", ", 8 bytes inside one of 1000;");
}

static void test_header_copied_to_another_address_does_not_verify(void)
{
    expect_interior_reported("copied_header", ", 16 bytes inside one of 1000;");
}

static void test_free_after_an_underrun_is_reported(void)
{
    expect_written_over("underrun", "tracealloc: free(0x");
    expect_written_over("underrun_one_byte", "tracealloc: free(0x");
    expect_written_over("underrun_whole_header", "tracealloc: free(0x");
}

static void expect_overrun_names_the_block_in_front(const char *scenario)
{
    expect_written_over(scenario, "tracealloc: free(0x");
    expect_line("tracealloc: free(0x",
                ", most likely behind the end of a block of 24 bytes; with TRACEALLOC=100 in the");

    child_run_self(&result, scenario, traced_option);
    expect_line("tracealloc: free(0x",
                ", most likely behind the end of a block of 24 bytes\n"
                "The block in front was allocated at (most recent call first):\n  who_is_in_front ");
}

static void test_free_behind_an_overrun_names_the_block_in_front(void)
{
    expect_overrun_names_the_block_in_front("overrun_by_nul");
    expect_overrun_names_the_block_in_front("overrun_by_four");
    expect_overrun_names_the_block_in_front("overrun_by_eight");
}

/* Behind whose end was written is not made up. */
static void test_free_behind_a_freed_block_names_nobody(void)
{
    expect_report("overrun_of_a_freed_block", "tracealloc: free(0x",
                  "): damaged block: what is in front of it was written over\n");
}

static void test_frees_of_a_destroyed_domains_blocks_are_told_once(void)
{
    static const char *const *const settings[] = {traced_option, headers_option, leak_option, NULL};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        child_run_self(&result, "free_of_a_destroyed_domains_blocks", settings[i]);
        TEST_ASSERT_EQUAL_INT(0, result.signal);
        TEST_ASSERT_EQUAL_INT(GOOD, result.exit_status);
        TEST_ASSERT_EQUAL_size_t_MESSAGE(1, result.lines, result.text);
        expect_line("tracealloc: free(0x",
                    "): a block of a domain that was destroyed, or no block; ignored from now on\n");
    }
}

static void test_realloc_of_a_damaged_or_freed_block_is_reported(void)
{
    expect_written_over("underrun_realloc", "tracealloc: realloc(0x");
    expect_damage_reported("double_free_by_realloc", "tracealloc: realloc(0x");
}

static void test_free_of_a_block_that_realloc_moved_is_reported(void)
{
    expect_damage_reported("free_after_realloc", "tracealloc: free(0x");
}

static void test_frees_of_foreign_pointers_are_ignored_and_counted(void)
{
    expect_silence("foreign_frees");
}

static void test_realloc_of_a_foreign_pointer_fails_and_is_counted(void)
{
    expect_silence("foreign_realloc");
}

static void test_usable_size_of_a_foreign_pointer_is_zero(void)
{
    expect_silence("foreign_usable_size");
}

static void test_repeated_damage_with_leak_writes_a_line_each_time(void)
{
    child_run_self(&result, "many_double_frees", leak_option);

    TEST_ASSERT_EQUAL_INT(GOOD, result.exit_status);
    TEST_ASSERT_EQUAL_size_t_MESSAGE(5, result.lines, result.text);
}

/* With tracing on, the line about an interior pointer is followed by the stack that allocated the block. */
static void test_damage_with_tracing_on_names_the_stack_of_the_block(void)
{
    child_run_self(&result, "interior_free", traced_option);

    TEST_ASSERT_EQUAL_INT_MESSAGE(GOOD, result.exit_status, result.text);
    expect_line("tracealloc: free(0x",
                ", 64 bytes inside one of 1000\nMemory block allocated at (most recent call first):\n");
    TEST_ASSERT_GREATER_OR_EQUAL_size_t_MESSAGE(4, result.lines, result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(result.text, "test_misuse"), result.text);
}

/* The texts follow each other in the report. */
static void expect_in_turn(const char *const *texts)
{
    const char *at = result.text;
    for (; *texts != NULL; texts++) {
        at = strstr(at, *texts);
        TEST_ASSERT_NOT_NULL_MESSAGE(at, *texts);
        at += strlen(*texts);
    }
}

static void test_remembered_frees_name_who_freed_and_who_allocated(void)
{
    static const char *const told[] = {"tracealloc: free(0x",
                                       "): double free of a block of 100 bytes, which thread ",
                                       " has freed\nThis free is at (most recent call first):\n  who_frees_again ",
                                       "scenario_freed_by_two ",
                                       "\nFreed before at (most recent call first):\n  who_frees ",
                                       "\nAllocated at (most recent call first):\n  who_allocates ",
                                       "scenario_freed_by_two ",
                                       NULL};
    child_run_self(&result, "freed_by_two", remember_option);
    TEST_ASSERT_EQUAL_INT_MESSAGE(GOOD, result.exit_status, result.text);
    expect_in_turn(told);

    static const char *const moved[] = {"This free is at (most recent call first):\n  who_frees_again ",
                                        "Freed before at (most recent call first):\n  scenario_moved_and_freed ",
                                        "Allocated at (most recent call first):\n  who_allocates ", NULL};
    child_run_self(&result, "moved_and_freed", remember_option);
    TEST_ASSERT_EQUAL_INT_MESSAGE(GOOD, result.exit_status, result.text);
    expect_in_turn(moved);
}

/* Without tracing nobody knows stacks, but each free knows its caller. */
static void test_remembered_frees_without_tracing_name_the_callers(void)
{
    static const char *const told[] = {" has freed; with TRACEALLOC=100 in the environment, it would say who",
                                       "This free is at (most recent call first):\n  who_frees_again ",
                                       "Freed before at (most recent call first):\n  who_frees ", NULL};
    child_run_self(&result, "freed_by_two", remember_alone_option);
    TEST_ASSERT_EQUAL_INT(SIGABRT, result.signal);
    TEST_ASSERT_EQUAL_size_t_MESSAGE(5, result.lines, result.text);
    expect_in_turn(told);
}

static void test_a_free_that_was_too_long_ago_is_not_made_up(void)
{
    child_run_self(&result, "freed_long_ago", remember_option);
    TEST_ASSERT_EQUAL_INT_MESSAGE(GOOD, result.exit_status, result.text);
    expect_line("tracealloc: free(0x", "): double free or damaged block\nThis free is at");
    TEST_ASSERT_NULL_MESSAGE(strstr(result.text, "Freed before"), result.text);
}

static void test_abort_reaches_a_handler_of_the_program(void)
{
    child_run_self(&result, "signal_handler_sees_abort", headers_option);

    TEST_ASSERT_EQUAL_INT(17, result.exit_status);
    TEST_ASSERT_EQUAL_size_t(1, result.lines);
}

static void test_damage_with_a_closed_descriptor_still_aborts(void)
{
    child_run_self(&result, "closed_descriptor", headers_option);

    TEST_ASSERT_EQUAL_INT(SIGABRT, result.signal);
    TEST_ASSERT_EQUAL_STRING("", result.text);
}

static void expect_options_refused(const char *setting, const char *named)
{
    const char *const settings[] = {setting, NULL};
    child_run_self(&result, "nothing", settings);
    TEST_ASSERT_EQUAL_INT_MESSAGE(1, result.exit_status, setting);
    TEST_ASSERT_EQUAL_size_t_MESSAGE(1, result.lines, result.text);
    expect_line("tracealloc: ", named);
}

static void test_unknown_option_is_one_line_and_exit_status_one(void)
{
    expect_options_refused("TRACEALLOC_OPTIONS=on_coruption=leak", "on_coruption");
    expect_options_refused("TRACEALLOC_OPTIONS=nonsense", "nonsense");
    expect_options_refused("TRACEALLOC_OPTIONS=on_corruption=leak,nonsense=1", "nonsense");
}

static void test_unknown_value_of_an_option_is_one_line_and_exit_status_one(void)
{
    expect_options_refused("TRACEALLOC_OPTIONS=on_corruption=maybe", "maybe");
    expect_options_refused("TRACEALLOC_OPTIONS=remember_frees=4194305", "a number up to 4194304");
    expect_options_refused("TRACEALLOC_OPTIONS=on_corruption=", "on_corruption");
    expect_options_refused("TRACEALLOC_OPTIONS=on_corruption", "on_corruption");
}

static void test_empty_and_valid_options_are_accepted_in_silence(void)
{
    static const char *const accepted[] = {"TRACEALLOC_OPTIONS=",
                                           "TRACEALLOC_OPTIONS=on_corruption=leak",
                                           "TRACEALLOC_OPTIONS=remember_frees=0",
                                           "TRACEALLOC_OPTIONS=headers=always",
                                           "TRACEALLOC_OPTIONS=headers=traced",
                                           "TRACEALLOC_OPTIONS=on_corruption=abort"};
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        const char *const settings[] = {accepted[i], NULL};
        child_run_self(&result, "nothing", settings);
        TEST_ASSERT_EQUAL_STRING("", result.text);
        TEST_ASSERT_EQUAL_INT(GOOD, result.exit_status);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_scenario(argv[1]);
    UNITY_BEGIN();
    RUN_TEST(test_double_free_of_any_size_is_reported);
    RUN_TEST(test_double_free_of_an_aligned_block_is_reported);
    RUN_TEST(test_double_free_among_other_frees_is_reported);
    RUN_TEST(test_free_of_an_interior_pointer_is_reported);
    RUN_TEST(test_free_of_a_misaligned_pointer_is_reported);
    RUN_TEST(test_header_copied_to_another_address_does_not_verify);
    RUN_TEST(test_free_after_an_underrun_is_reported);
    RUN_TEST(test_free_behind_an_overrun_names_the_block_in_front);
    RUN_TEST(test_free_behind_a_freed_block_names_nobody);
    RUN_TEST(test_frees_of_a_destroyed_domains_blocks_are_told_once);
    RUN_TEST(test_realloc_of_a_damaged_or_freed_block_is_reported);
    RUN_TEST(test_free_of_a_block_that_realloc_moved_is_reported);
    RUN_TEST(test_frees_of_foreign_pointers_are_ignored_and_counted);
    RUN_TEST(test_realloc_of_a_foreign_pointer_fails_and_is_counted);
    RUN_TEST(test_usable_size_of_a_foreign_pointer_is_zero);
    RUN_TEST(test_repeated_damage_with_leak_writes_a_line_each_time);
    RUN_TEST(test_damage_with_tracing_on_names_the_stack_of_the_block);
    RUN_TEST(test_remembered_frees_name_who_freed_and_who_allocated);
    RUN_TEST(test_remembered_frees_without_tracing_name_the_callers);
    RUN_TEST(test_a_free_that_was_too_long_ago_is_not_made_up);
    RUN_TEST(test_abort_reaches_a_handler_of_the_program);
    RUN_TEST(test_damage_with_a_closed_descriptor_still_aborts);
    RUN_TEST(test_unknown_option_is_one_line_and_exit_status_one);
    RUN_TEST(test_unknown_value_of_an_option_is_one_line_and_exit_status_one);
    RUN_TEST(test_empty_and_valid_options_are_accepted_in_silence);
    return UNITY_END();
}
