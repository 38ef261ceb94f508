/* world_check.h: a walk over every block, for the debug-full build (base/assert.h): headers, leaves, counters, books of
 * domains and pages say the same. */
#ifndef TA_ALLOC_WORLD_CHECK_H
#define TA_ALLOC_WORLD_CHECK_H

#include "base/assert.h"

#if TA_CHECKS >= 2
/* With the world stopped. Ends the process when an invariant does not hold. */
void ta__check_world(void);
/* From now on every stop checks, as far as it is worth its time. */
void ta__check_world_begin(void);
/* A test ends operations in their middle (longjmp): what they counted is then not what they did. */
extern int ta__check_figures_off;
#endif

#endif
