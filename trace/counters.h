/* counters.h: the part of counters.c that only control.c calls, with the world stopped. */
#ifndef TA_TRACE_COUNTERS_H
#define TA_TRACE_COUNTERS_H

#include "base/facts.h"

void ta__counters_clear(void);
void ta__counters_reset_peak(void);
/* Arrays that were for `had` leaves are for `max`. */
void ta__counters_fit(uint32_t had, uint32_t max);
void ta__counters_after_fork(void);

/* What a reader of this process's memory is told: base/facts.h. */
extern struct ta__fact ta__facts_counters[];

#endif
