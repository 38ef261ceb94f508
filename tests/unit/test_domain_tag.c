/* test_domain_tag.c: compiled with -DTRACEALLOC_DOMAIN=3 -include tracealloc/tag.h: what it spells out is domain 3's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tracealloc/domain.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

static uint32_t home_of(void *block)
{
    uint32_t domain = 12345;
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(block, &domain));
    free(block);
    return domain;
}

static void test_requests_of_a_tagged_source_are_of_its_domain(void)
{
    void *aligned = NULL;
    TEST_ASSERT_EQUAL_INT(0, posix_memalign(&aligned, 64, 100));
    TEST_ASSERT_EQUAL_UINT32(3, home_of(aligned));
    TEST_ASSERT_EQUAL_UINT32(3, home_of(malloc(10)));
    TEST_ASSERT_EQUAL_UINT32(3, home_of(calloc(2, 10)));
    TEST_ASSERT_EQUAL_UINT32(3, home_of(realloc(NULL, 10)));
    TEST_ASSERT_EQUAL_UINT32(3, home_of(realloc(malloc(10), 100000)));
    TEST_ASSERT_EQUAL_UINT32(3, home_of(aligned_alloc(64, 64)));
    TEST_ASSERT_EQUAL_UINT32(3, home_of(strdup("text")));
    TEST_ASSERT_EQUAL_UINT32(3, home_of(strndup("text", 2)));
}

static void test_blocks_from_elsewhere_stay_where_they_are(void)
{
    TEST_ASSERT_EQUAL_UINT32(5, home_of(realloc(ta_domain_malloc(5, 10), 20000)));
    TEST_ASSERT_EQUAL_UINT32(0, home_of((malloc)(10)));
    TEST_ASSERT_EQUAL_UINT32(0, home_of(realpath("/", NULL))); /* libc's own request */
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_requests_of_a_tagged_source_are_of_its_domain);
    RUN_TEST(test_blocks_from_elsewhere_stay_where_they_are);
    return UNITY_END();
}
