/* test_domains_untraced.c: the calls of tracealloc/domain.h in the untraced build: memory and names are real, figures
 * and rules are refused. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

static void test_requests_in_domains_are_served(void)
{
    char *text = ta_domain_strdup(3, "three");
    int *zeros = ta_domain_calloc(0, 100, sizeof *zeros);
    void *aligned = ta_domain_aligned_alloc(4, 512, 100);
    TEST_ASSERT_EQUAL_STRING("three", text);
    TEST_ASSERT_EQUAL_INT(0, zeros[99]);
    TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)aligned % 512);
    text = ta_domain_realloc(4, text, 10000);
    TEST_ASSERT_EQUAL_STRING("three", text);
    ta_free(text), ta_free(zeros), ta_free(aligned);
    errno = 0;
    TEST_ASSERT_NULL(ta_domain_aligned_alloc(3, 3, 1));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

static void test_arena_is_freed_at_once(void)
{
    uint32_t arena = 0;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_create_arena(&arena));
    for (int i = 0; i < 1000; i++)
        memset(ta_domain_malloc(arena, 1000), 1, 1000);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(arena));
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_destroy(arena));
    TEST_ASSERT_EQUAL_INT(ENOENT, errno);
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_destroy(0));
}

static void test_scopes_and_names_are_remembered(void)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < 1000; i++)
        ta_domain_push(7);
    TEST_ASSERT_EQUAL_UINT32(7, ta_domain_current());
    for (uint32_t i = 0; i < 1001; i++)
        ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT32(0, ta_domain_current());
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(7, "seven"));
    TEST_ASSERT_EQUAL_INT(1, ta_domain_find("seven", &found));
    TEST_ASSERT_EQUAL_UINT32(7, found);
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_set_name(8, "seven"));
    TEST_ASSERT_EQUAL_STRING("seven", ta_domain_name(7));
    TEST_ASSERT_TRUE(ta_domain_list(NULL, 0) >= 2);
}

static void test_figures_and_rules_are_refused(void)
{
    struct ta_domain_stats stats;
    struct ta_domain_limit limit = {.hard = 1};
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_get_stats(3, &stats, sizeof stats));
    TEST_ASSERT_EQUAL_INT(ENOSYS, errno);
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_set_limit(3, &limit));
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_load_rules("rules"));
    TEST_ASSERT_EQUAL_UINT64(0, ta_domain_usable_bytes(3));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_requests_in_domains_are_served);
    RUN_TEST(test_arena_is_freed_at_once);
    RUN_TEST(test_scopes_and_names_are_remembered);
    RUN_TEST(test_figures_and_rules_are_refused);
    return UNITY_END();
}
