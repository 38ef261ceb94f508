/* columns.h: tables of numbers on their way into a page: each column as varints, all of them compressed as one stream
 * (exports/gzip.h) and written as base64. What the page reads back is described in docs/report.md. */
#ifndef TA_ANALYSIS_REPORT_COLUMNS_H
#define TA_ANALYSIS_REPORT_COLUMNS_H

#include <stdint.h>

#include "analysis/growing_text.h"
#include "analysis/text_output.h"

/* Begins zeroed. */
struct ta__column {
    struct ta__text bytes;
    size_t count;
};

/* Seven bits a byte, the lowest first; the high bit says that more follow. */
void ta__column_put(struct ta__column *column, uint64_t value);
/* 0, -1, 1, -2 … become 0, 1, 2, 3 … */
void ta__column_put_signed(struct ta__column *column, int64_t value);

void ta__output_add_base64(struct ta__output *output, const char *bytes, size_t length);

#endif
