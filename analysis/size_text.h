/* size_text.h: sizes as people read them, exactly as tracemalloc writes them, in any locale. */
#ifndef TA_ANALYSIS_SIZE_TEXT_H
#define TA_ANALYSIS_SIZE_TEXT_H

#include "analysis/growing_text.h"
#include "analysis/wide.h"

/* `sign` = always write one. */
void ta__size_text_add(struct ta__text *text, double size, int sign);

/* size / count, rounded once: what Python's true division answers for integers of any size. count > 0. */
double ta__average(ta__wide size, ta__wide count);

#endif
