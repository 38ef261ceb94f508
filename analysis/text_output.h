/* text_output.h: text on its way out, collected into pieces of a reasonable size. The first failure stays. */
#ifndef TA_ANALYSIS_TEXT_OUTPUT_H
#define TA_ANALYSIS_TEXT_OUTPUT_H

#include "analysis/growing_text.h"
#include "tracealloc/analysis.h"

struct ta__output {
    ta_write_function write;
    void *user;
    struct ta__text pending;
    int failed;
};

void ta__output_add(struct ta__output *output, const char *bytes, size_t length);
void ta__output_add_string(struct ta__output *output, const char *string);
/* Writes what is pending and frees it. 0, or -1 when anything failed. */
int ta__output_finish(struct ta__output *output);

#endif
