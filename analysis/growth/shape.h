/* shape.h: what a course of sizes over time looks like: leak, cache, churn. Pure functions of numbers; docs/growth.md
 * states the rules for people. */
#ifndef TA_ANALYSIS_GROWTH_SHAPE_H
#define TA_ANALYSIS_GROWTH_SHAPE_H

#include "tracealloc/analysis.h"

/* Points in order of time, since the traces were last cleared. */
struct ta__course {
    size_t count;
    const double *work;    /* when, 0 … 1: half the clock, half the allocations of the whole program */
    const double *seconds; /* since the first point */
    const uint64_t *sizes;
    const uint64_t *calls; /* the group's allocations so far */
    int ends_at_exit;      /* the last point is the end of the program */
};

struct ta__shape {
    enum ta_growth growth;
    double certainty, bytes_per_minute, bytes_per_call;
    uint64_t grown;
    char reason[160];
};

void ta__shape_of(const struct ta__course *course, struct ta__shape *shape);

#endif
