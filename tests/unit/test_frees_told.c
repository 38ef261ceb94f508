/* test_frees_told.c: what is known of frees afterwards — the last ones, with who freed and who had allocated
 * (alloc/remembered_frees.h), and the first of a pointer that is none of ours (ta__foreign_first). The program runs itself
 * with room for a few frees, because options are read before main. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "alloc/remembered_frees.h"
#include "base/memory.h"
#include "tests/support/child.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

#define NOINLINE __attribute__((noinline, noclone))

enum { ROOM = 5 }; /* as the option says */

void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta_stop();
}

static struct ta__remembered_free record;

static int recall(const void *address, int is_again)
{
    memset(&record, 0xA5, sizeof record);
    return ta__frees_recall(address, is_again, &record);
}

static int is_remembered(const void *address)
{
    return recall(address, 0);
}

NOINLINE static char *allocates(size_t size)
{
    char *block = ta_malloc(size);
    __asm__ volatile("" : "+r"(block));
    return block;
}

NOINLINE static void frees(void *block)
{
    ta_free(block);
    __asm__ volatile("");
}

/* Is the frame within the first instructions of this function? With a sanitizer the innermost frame is one of ours. */
static int is_in(uint64_t frame, uintptr_t function)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return frame != 0 && frame != function;
#else
    return frame > function && frame - function < 200;
#endif
}

/* ---- the last frees ----------------------------------------------------------------------------------------------- */

static void test_as_many_frees_are_remembered_as_there_is_room_for(void)
{
    enum { FREES = 3 * ROOM };
    char *blocks[FREES];
    for (size_t i = 0; i < FREES; i++)
        blocks[i] = allocates(100 + i);
    for (size_t i = 0; i < FREES; i++) {
        frees(blocks[i]);
        for (size_t other = 0; other <= i; other++)
            TEST_ASSERT_EQUAL_INT(i - other < ROOM, is_remembered(blocks[other]));
    }
    TEST_ASSERT_TRUE(is_remembered(blocks[FREES - 2]));
    TEST_ASSERT_EQUAL_UINT64(100 + FREES - 2, record.size);
}

static void test_a_record_says_who_freed_what_and_who_had_allocated_it(void)
{
    char *block = allocates(333);
    frees(block);
    TEST_ASSERT_TRUE(is_remembered(block));
    TEST_ASSERT_EQUAL_PTR(block, (void *)record.user);
    TEST_ASSERT_EQUAL_UINT64(333, record.size);
    TEST_ASSERT_EQUAL_UINT64(0, record.domain);
    TEST_ASSERT_EQUAL_UINT64(syscall(SYS_gettid), record.thread);
    TEST_ASSERT_EQUAL_UINT64(0, record.is_again);
    TEST_ASSERT_TRUE(is_in(record.allocated[0], (uintptr_t)allocates));
    TEST_ASSERT_TRUE(is_in(record.freed[0], (uintptr_t)frees));
    TEST_ASSERT_TRUE(record.allocated[1] != 0 && record.freed[1] != 0);
    block = ta_domain_malloc(7, 30);
    ta_free(block);
    TEST_ASSERT_TRUE(is_remembered(block));
    TEST_ASSERT_EQUAL_INT(ta__domain_known(7), record.domain);
}

static void test_a_block_is_known_by_each_of_its_bytes(void)
{
    char *block = allocates(100), *empty = allocates(0);
    frees(block);
    frees(empty);
    TEST_ASSERT_TRUE(is_remembered(block));
    TEST_ASSERT_TRUE(is_remembered(block + 1));
    TEST_ASSERT_TRUE(is_remembered(block + 99));
    TEST_ASSERT_FALSE(is_remembered(block + 100));
    TEST_ASSERT_FALSE(is_remembered(block - 1));
    TEST_ASSERT_TRUE(is_remembered(empty));
    TEST_ASSERT_FALSE(is_remembered(empty + 1));
}

/* An address that was a block's twice: the later one is meant. */
static void test_the_latest_free_of_an_address_is_told(void)
{
    char *block = allocates(100), *again;
    frees(block);
    for (int tries = 0; (again = allocates(90)) != block; tries++)
        TEST_ASSERT_LESS_THAN_INT(100000, tries);
    frees(again);
    TEST_ASSERT_TRUE(is_remembered(block));
    TEST_ASSERT_EQUAL_UINT64(90, record.size);
}

static void test_what_realloc_moves_was_freed(void)
{
    char *block = allocates(100), *moved = ta_realloc(block, 9000);
    TEST_ASSERT_NOT_EQUAL(block, moved);
    TEST_ASSERT_TRUE(is_remembered(block));
    TEST_ASSERT_EQUAL_UINT64(100, record.size);
    char *same = ta_realloc(moved, 9001); /* stays, and is no free */
    TEST_ASSERT_EQUAL_PTR(moved, same);
    TEST_ASSERT_FALSE(is_remembered(moved));
    ta_free(moved);
}

static void test_a_block_freed_again_is_told_apart(void)
{
    char *block = allocates(100);
    frees(block);
    TEST_ASSERT_FALSE(recall(block, 1));
    ta_free(block); /* one line on descriptor 2 */
    TEST_ASSERT_TRUE(recall(block, 1));
    TEST_ASSERT_EQUAL_UINT64(1, record.is_again);
    TEST_ASSERT_EQUAL_UINT64(0, record.size + record.domain + record.allocated[0]);
    TEST_ASSERT_NOT_EQUAL_UINT64(0, record.freed[0]);
    TEST_ASSERT_TRUE(is_remembered(block));
    TEST_ASSERT_EQUAL_UINT64(100, record.size);
}

static void test_who_allocated_before_the_traces_went_is_not_told(void)
{
    char *block = allocates(100), *of_7 = ta_domain_malloc(7, 101);
    ta_clear_traces();
    frees(block);
    frees(of_7);
    TEST_ASSERT_TRUE(is_remembered(block));
    TEST_ASSERT_EQUAL_UINT64(100, record.size);
    TEST_ASSERT_EQUAL_UINT64(0, record.allocated[0]);
    TEST_ASSERT_NOT_EQUAL_UINT64(0, record.freed[0]);
    TEST_ASSERT_TRUE(is_remembered(of_7));
    TEST_ASSERT_EQUAL_UINT64(0, record.allocated[0]);
    TEST_ASSERT_EQUAL_INT(ta__domain_known(7), record.domain);
}

/* Nothing is traced: then who freed is the caller alone. */
static void test_without_tracing_the_caller_is_told(void)
{
    ta_stop();
    char *block = allocates(100), *of_7 = ta_domain_malloc(7, 101);
    frees(block);
    frees(of_7);
    TEST_ASSERT_TRUE(is_remembered(block));
    TEST_ASSERT_EQUAL_UINT64(100, record.size);
    TEST_ASSERT_EQUAL_UINT64(0, record.allocated[0]);
    TEST_ASSERT_EQUAL_UINT64(0, record.freed[1]);
    TEST_ASSERT_TRUE(is_in(record.freed[0], (uintptr_t)frees));
    TEST_ASSERT_TRUE(is_remembered(of_7));
    TEST_ASSERT_EQUAL_UINT64(0, record.allocated[0]);
}

static void test_what_is_no_block_of_ours_is_not_remembered(void)
{
    static char data[64];
    char *block = allocates(100), *of_handler = ta__emergency_allocate(40, 0, 0);
    frees(block);
    for (int i = 0; i < 2 * ROOM; i++) {
        ta_free(data + 32);
        ta_free(NULL);
    }
    ta_free(of_handler);
    TEST_ASSERT_FALSE(is_remembered(data + 32));
    TEST_ASSERT_FALSE(recall(data + 32, 1));
    TEST_ASSERT_FALSE(is_remembered(of_handler));
    TEST_ASSERT_TRUE(is_remembered(block)); /* no record went to them */
}

static void frees_cannot_be_remembered(void *unused)
{
    (void)unused;
    ta__memory_inject_failure(1, 1);
    int without_memory = ta__frees_remember();
    ta__memory_inject_failure(0, 0);
    ta__options.remember_frees = 0;
    _exit(without_memory == 0 && !ta__frees_are_remembered() && ta__frees_remember() == 1 ? 0 : 1);
}

static void test_without_memory_for_it_that_is_said(void)
{
    struct child_result result;
    child_run(&result, frees_cannot_be_remembered, NULL);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

/* ---- the first foreign pointer ------------------------------------------------------------------------------------ */

static char foreign[128];

/* Bits of what was wrong. */
static void free_foreign_ones(void *traces)
{
    struct ta__foreign_free found;
    int wrong = ta__foreign_first(&found);
    if (traces == NULL)
        ta_stop();
    frees(foreign + 16);
    frees(foreign + 64);
    memset(&found, 0xA5, sizeof found);
    wrong |= (!ta__foreign_first(&found)) << 1;
    wrong |= (found.user != (uintptr_t)foreign + 16) << 2;
    wrong |= !is_in(found.frames[0], (uintptr_t)frees) << 3;
    wrong |= ((found.frames[1] != 0) != (traces != NULL)) << 4;
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    wrong |= (health.foreign_frees != 2) << 5;
    _exit(wrong);
}

static void test_the_first_foreign_pointer_is_kept_with_who_freed_it(void)
{
    struct child_result result;
    child_run(&result, free_foreign_ones, NULL);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
    child_run(&result, free_foreign_ones, foreign);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

/* Who asked is not known of what a handler freed. */
static void free_foreign_one_of_nobody(void *unused)
{
    (void)unused;
    struct ta__foreign_free found;
    uint32_t gate;
    ta_free(ta_malloc(1));
    struct ta__thread *self = ta__begin(&gate);
    ta__foreign(self, gate, foreign + 32, NULL);
    ta__end(self, gate);
    int is_kept = ta__foreign_first(&found);
    _exit(is_kept && found.user == (uintptr_t)foreign + 32 && found.frames[0] == 0 ? 0 : 1);
}

static void test_a_foreign_pointer_that_nobody_is_known_to_have_freed_is_kept_alone(void)
{
    struct child_result result;
    child_run(&result, free_foreign_one_of_nobody, NULL);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

int main(int argc, char **argv)
{
    const char *options = getenv("TRACEALLOC_OPTIONS");
    (void)argc;
    if (options == NULL || strstr(options, "remember_frees=5,") == NULL) {
        setenv("TRACEALLOC_OPTIONS", "remember_frees=5,on_corruption=leak", 1);
        execv("/proc/self/exe", argv);
    }
    UNITY_BEGIN();
    RUN_TEST(test_the_first_foreign_pointer_is_kept_with_who_freed_it); /* before there is one */
    RUN_TEST(test_a_foreign_pointer_that_nobody_is_known_to_have_freed_is_kept_alone);
    RUN_TEST(test_as_many_frees_are_remembered_as_there_is_room_for);
    RUN_TEST(test_a_record_says_who_freed_what_and_who_had_allocated_it);
    RUN_TEST(test_a_block_is_known_by_each_of_its_bytes);
    RUN_TEST(test_the_latest_free_of_an_address_is_told);
    RUN_TEST(test_what_realloc_moves_was_freed);
    RUN_TEST(test_a_block_freed_again_is_told_apart);
    RUN_TEST(test_who_allocated_before_the_traces_went_is_not_told);
    RUN_TEST(test_without_tracing_the_caller_is_told);
    RUN_TEST(test_what_is_no_block_of_ours_is_not_remembered);
    RUN_TEST(test_without_memory_for_it_that_is_said);
    return UNITY_END();
}
