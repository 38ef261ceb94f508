/* report_tables.h: what a report is made of, merged from all its recordings: every text, frame, node of the tree of calls
 * and row once. Between the models and the encoder. Frames are equal when people cannot tell them apart: addresses are
 * left out.
 *
 *     model of a recording: trace ─► context ─► …        report: trace ─► node ─► parent …
 *                                       │                          │        │
 *                                    logical                      row     frame ─► texts            */
#ifndef TA_ANALYSIS_REPORT_REPORT_TABLES_H
#define TA_ANALYSIS_REPORT_REPORT_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/growing_text.h"
#include "base/index.h"
#include "tracealloc/analysis.h"

struct ta__report_text {
    size_t offset, length;
};

enum { TA__REPORT_FRAME_OWN = 1, TA__REPORT_FRAME_INLINED = 2 };
struct ta__report_frame {
    uint32_t file, function, module; /* texts; the file as in struct ta_frame */
    uint32_t line;
    uint32_t flags;
};

/* Node 0 is the root; parents come before children. */
struct ta__report_node {
    uint32_t parent, frame;
};

/* What one's own code is grouped by: a line, else a function. */
struct ta__report_row {
    struct ta__report_frame frame;
    uint32_t growth; /* enum ta_growth */
    uint32_t reason; /* text */
    uint64_t grown_size;
    double certainty, bytes_per_minute, bytes_per_call;
};

struct ta__report_trace {
    uint32_t source, node, domain, thread, row;
    uint64_t peak; /* bytes at the recording's peak */
};

/* How many rows an array has, and where equal ones are found. */
struct ta__report_list {
    size_t count, capacity;
    struct ta__index index;
};

/* Begins zeroed. */
struct ta__report_tables {
    struct ta__text bytes; /* of all texts */
    struct ta__report_text *texts;
    struct ta__report_frame *frames;
    struct ta__report_node *nodes;
    struct ta__report_row *rows;
    struct ta__report_trace *traces;
    struct ta__report_list text_list, frame_list, node_list, row_list, trace_list;
};

/* Text 0 is "", node 0 the root. 0, or -1 with the error set, as all of these. */
int ta__report_tables_open(struct ta__report_tables *tables);
void ta__report_tables_close(struct ta__report_tables *tables);

int ta__report_text(struct ta__report_tables *tables, const char *text, size_t length, uint32_t *number);
int ta__report_frame(struct ta__report_tables *tables, const struct ta_frame *frame, int is_own, uint32_t *number);
int ta__report_node(struct ta__report_tables *tables, uint32_t parent, uint32_t frame, uint32_t *number);
int ta__report_row(struct ta__report_tables *tables, const struct ta_frame *frame, uint32_t *number);
/* Of `wanted` all but the peak says which it is; a new one begins with a peak of 0. */
int ta__report_trace(struct ta__report_tables *tables, const struct ta__report_trace *wanted, uint32_t *number);

#endif
