/* analysis_domain.c: see analysis_domain.h. */
#include "analysis/analysis_domain.h"

#include <stddef.h>

#include "base/atomics.h"
#include "tracealloc/analysis.h"
#include "tracealloc/domain.h"

/* The runtime's, where there is one: analysis needs none. */
extern __typeof__(ta_domain_push) ta_domain_push __attribute__((weak));
extern __typeof__(ta_domain_pop) ta_domain_pop __attribute__((weak));
extern __typeof__(ta_domain_set_name) ta_domain_set_name __attribute__((weak));

static int is_domain_named; /* any thread, relaxed: naming it twice does no harm */

int ta__enter_own_domain(void)
{
    if (ta_domain_push == NULL || ta_domain_pop == NULL)
        return 0;
    if (!ta__load_relaxed(&is_domain_named) && ta_domain_set_name != NULL) {
        ta__store_relaxed(&is_domain_named, 1);
        ta_domain_set_name(TA_ANALYSIS_DOMAIN, "tracealloc-analysis");
    }
    ta_domain_push(TA_ANALYSIS_DOMAIN);
    return 1;
}

void ta__leave_own_domain(const int *entered)
{
    if (*entered)
        ta_domain_pop();
}
