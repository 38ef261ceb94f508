/* domains.h: what the tests of domains share. They run stopped and, with TA_TEST_FRAMES=n, traced. */
#ifndef TA_TESTS_DOMAINS_H
#define TA_TESTS_DOMAINS_H

#include <stdlib.h>

#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "unity.h"

void setUp(void)
{
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
