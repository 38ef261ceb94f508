/* fold.h: stacks as people read them: recursion as one item, and without what only starts programs and threads. */
#ifndef TA_ANALYSIS_FOLD_H
#define TA_ANALYSIS_FOLD_H

#include <stddef.h>

#include "tracealloc/analysis.h"

/* `functions` are `count` names, oldest first; equal ones at equal addresses, NULL or "" where there is none. Writes the
 * items, oldest first, and answers how many; there is room for `count` of them. */
size_t ta__fold(const char *const *functions, size_t count, struct ta_fold *items);

#endif
