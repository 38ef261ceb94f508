/* domains.h: what the tests of domains share. They run stopped and, with TA_TEST_FRAMES=n, traced. */
#ifndef TA_TESTS_DOMAINS_H
#define TA_TESTS_DOMAINS_H

#include <stdlib.h>

#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "unity.h"

/* With TA_TEST_SHARED no heap is left: the domains of the test share one. */
static void take_all_heaps(void)
{
    enum { HEAPS = 512, FIRST = 5000000 };
    static int taken;
    for (uint32_t i = 0; !taken && i < HEAPS; i++)
        TEST_ASSERT_NOT_NULL(ta_domain_malloc(FIRST + i, 1));
    taken = 1;
}

void setUp(void)
{
    if (getenv("TA_TEST_SHARED") != NULL)
        take_all_heaps();
    const char *frames = getenv("TA_TEST_FRAMES");
    if (frames != NULL)
        TEST_ASSERT_EQUAL_INT(0, ta_start(atoi(frames)));
}

void tearDown(void)
{
    ta_stop();
}

static struct ta_domain_stats stats_of(uint32_t domain)
{
    struct ta_domain_stats stats;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_get_stats(domain, &stats, sizeof stats));
    return stats;
}

#endif
