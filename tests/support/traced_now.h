/* traced_now.h: what is traced now, and what was at the most. */
#ifndef TA_TESTS_TRACED_NOW_H
#define TA_TESTS_TRACED_NOW_H

#include <stddef.h>

#include <tracealloc.h>

static inline size_t current(void)
{
    size_t now;
    ta_get_traced_memory(&now, NULL);
    return now;
}

static inline size_t peak(void)
{
    size_t highest;
    ta_get_traced_memory(NULL, &highest);
    return highest;
}

#endif
