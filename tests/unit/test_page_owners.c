/* test_page_owners.c: which slot the pages of a domain's heap name (docs/invariants.md, D-4): where the page is made, where
 * another thread takes it over, when the domain goes, and in the child of a fork. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "unity.h"

#include "tests/support/child.h"
#include "tests/support/domains.h"

enum { BLOCKS = 4000, BYTES = 100 };
static void *blocks[BLOCKS];

static const struct ta__domain_slot *owner_of(const void *block)
{
    return ta__page_owner(ta__heap_page(block));
}

static const struct ta__domain_slot *slot_of(uint32_t number)
{
    return &ta__self->domains->slots[ta__domain_known(number)];
}

/* The owner of this thread's pages of the domain. */
static const struct ta__domain_slot *expected(uint32_t number)
{
    return ta__domain_at((uint32_t)ta__domain_known(number))->is_shared ? &ta__slot_none : slot_of(number);
}

static int matches_no_mark(const struct ta__domain_slot *slot)
{
    uint16_t none = (uint16_t)ta__check_of_kind(TA__KIND_NEVER);
    return ta__slot_untraced_check(slot) == none && slot->traced_check == none;
}

static void test_a_page_names_the_slot_of_the_thread_that_made_it(void)
{
    void *block = ta_domain_malloc(2, BYTES);
    void *other = ta_domain_malloc(3, BYTES);
    void *large = ta_domain_malloc(3, 100000);
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_EQUAL_PTR(expected(2), owner_of(block));
    TEST_ASSERT_EQUAL_PTR(expected(3), owner_of(other));
    TEST_ASSERT_EQUAL_PTR(expected(3), owner_of(large));
    TEST_ASSERT_TRUE(matches_no_mark(&ta__slot_none));
    ta_free(block), ta_free(other), ta_free(large);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(2).live_blocks);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(3).live_bytes);
}

static void test_blocks_of_domain_0_belong_to_no_slot(void)
{
    if (getenv("TA_TEST_FRAMES") == NULL)
        TEST_IGNORE_MESSAGE("they have no header");
    void *block = ta_malloc(BYTES);
    TEST_ASSERT_EQUAL_PTR(&ta__slot_none, owner_of(block));
    ta_free(block);
}

static void fill(uint32_t domain)
{
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = ta_domain_malloc(domain, BYTES);
}

static void *fill_domain_4(void *unused)
{
    fill(4);
    return unused;
}

static int is_mine(const void *block)
{
    return ta__page_is_mine_with_headers(ta__heap_page(block));
}

/* What a thread left behind is taken over by who asks for blocks of that size, and by who frees in it. */
static void test_a_page_that_changes_its_thread_changes_its_owner(void)
{
    static void *more[BLOCKS];
    pthread_t thread;
    int taken = 0;
    void *first = ta_domain_malloc(4, BYTES);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, fill_domain_4, NULL));
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
    TEST_ASSERT_NOT_EQUAL(expected(4), owner_of(blocks[0]));
    for (int i = 0; i < BLOCKS; i += 2)
        ta_free(blocks[i]);
    for (int i = 0; i < BLOCKS; i++)
        more[i] = ta_domain_malloc(4, BYTES);
    for (int i = 1; i < BLOCKS; i += 2) {
        taken += is_mine(blocks[i]);
        if (is_mine(blocks[i]))
            TEST_ASSERT_EQUAL_PTR(expected(4), owner_of(blocks[i]));
        ta_free(blocks[i]);
    }
    TEST_ASSERT_GREATER_THAN_INT(0, taken);
    TEST_ASSERT_EQUAL_UINT64(BLOCKS + 1, stats_of(4).live_blocks);
    for (int i = 0; i < BLOCKS; i++)
        ta_free(more[i]);
    ta_free(first);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(4).live_blocks);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(4).live_bytes);
}

static void test_the_slot_of_a_destroyed_domain_matches_nothing(void)
{
    void *old = ta_domain_malloc(5, BYTES);
    TEST_ASSERT_NOT_NULL(old);
    const struct ta__domain_slot *slot = slot_of(5);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(5));
    TEST_ASSERT_FALSE(ta__slot_has_part(slot));
    TEST_ASSERT_TRUE(matches_no_mark(slot));
    void *fresh = ta_domain_malloc(5, BYTES);
    TEST_ASSERT_EQUAL_PTR(expected(5), owner_of(fresh));
    TEST_ASSERT_NOT_EQUAL(slot, owner_of(fresh));
    ta_free(fresh);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(5).live_blocks);
}

/* ---- a thread of the child that stands where one of the parent's stood ---- */

static pthread_t former;
static int ready[2], finish[2];

static void *fill_and_wait(void *unused)
{
    char word = 0;
    fill(6);
    if (write(ready[1], &word, 1) != 1 || read(finish[0], &word, 1) != 1)
        return NULL;
    for (int i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);
    return unused;
}

static void *free_what_the_former_left(void *stood)
{
    if (!pthread_equal(pthread_self(), former))
        return NULL;
    *(int *)stood = 1;
    void *own = ta_domain_malloc(6, BYTES);
    for (int i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);
    ta_free(own);
    return NULL;
}

/* Exit status 2: no thread of the child stands there. */
static void in_the_child(void *unused)
{
    (void)unused;
    pthread_t thread;
    int stands = 0;
    if (pthread_create(&thread, NULL, free_what_the_former_left, &stands) != 0 || pthread_join(thread, NULL) != 0 ||
        !stands)
        _exit(2);
    struct ta_domain_stats stats;
    int known = ta_domain_get_stats(6, &stats, sizeof stats);
    _exit(known == 0 && stats.live_blocks == 0 && stats.live_bytes == 0 ? 0 : 1);
}

static void test_pages_of_a_thread_that_a_fork_left_behind(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("the sanitizers do not expect threads in the child of threads");
#endif
    struct child_result result;
    char word = 0;
    void *own = ta_domain_malloc(6, BYTES);
    ta_free(own);
    TEST_ASSERT_EQUAL_INT(0, pipe(ready) | pipe(finish));
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&former, NULL, fill_and_wait, NULL));
    TEST_ASSERT_EQUAL_INT(1, read(ready[0], &word, 1));
    child_run(&result, in_the_child, NULL);
    TEST_ASSERT_EQUAL_INT(1, write(finish[1], &word, 1));
    TEST_ASSERT_EQUAL_INT(0, pthread_join(former, NULL));
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(6).live_blocks);
    if (result.exit_status == 2)
        TEST_IGNORE_MESSAGE("no thread of the child stands where the parent's stood");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, result.signal, result.text);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_page_names_the_slot_of_the_thread_that_made_it);
    RUN_TEST(test_blocks_of_domain_0_belong_to_no_slot);
    RUN_TEST(test_a_page_that_changes_its_thread_changes_its_owner);
    RUN_TEST(test_the_slot_of_a_destroyed_domain_matches_nothing);
    RUN_TEST(test_pages_of_a_thread_that_a_fork_left_behind);
    return UNITY_END();
}
