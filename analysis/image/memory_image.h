/* memory_image.h: struct ta_image — a process as tracealloc/image.h shows it, with all that was gathered of it. */
#ifndef TA_ANALYSIS_IMAGE_MEMORY_IMAGE_H
#define TA_ANALYSIS_IMAGE_MEMORY_IMAGE_H

#include "analysis/image/block_graph.h"
#include "analysis/image/dominators.h"
#include "analysis/image/heap_pages.h"
#include "analysis/image/layout.h"
#include "analysis/image/memory_parts.h"
#include "analysis/image/page_blocks.h"
#include "analysis/image/place_names.h"
#include "analysis/image/target.h"
#include "tracealloc/image.h"

enum { TA__WARNINGS_MOST = 16 };

struct ta_image {
    struct ta_image_options options;
    struct ta__target target;
    struct ta__layout layout;
    struct ta__marks marks;
    struct ta__heap_pages pages;
    struct ta_snapshot *snapshot;
    /* By number of a leaf: its trace in the snapshot, TA__NO_TRACE = none; and its domain's index. */
    uint32_t *trace_of_leaf, *domain_of_leaf;
    uint32_t leaf_count;
    uint64_t blocks, bytes, untraced_blocks, untraced_bytes;
    struct ta__memory_parts *memory;   /* NULL: not asked for */
    struct ta__block_graph *graph;     /* the same */
    struct ta__names *names;           /* the same */
    struct ta__dominators *dominators; /* found when they are first asked for */
    char *warnings[TA__WARNINGS_MOST];
    size_t warning_count;
};
#define TA__NO_TRACE UINT32_MAX

void ta__image_warn(struct ta_image *image, const char *format, ...) TA_PRINTF(2, 3);

/* ---- table_snapshot.c: the library's tables become a snapshot ---------------------------------------------------- */

struct ta__table_reading;
/* Copies the tables; fills in image->trace_of_leaf and domain_of_leaf. 0, or -1 with the error set. */
TA_NODISCARD int ta__table_read(struct ta_image *image, struct ta__table_reading **reading);
/* How many traces there may be in the end. */
uint32_t ta__table_traces(const struct ta__table_reading *reading);
/* A live block of the program. Answers its trace; where nothing is traced the snapshot gets one for each domain. */
uint32_t ta__table_count(struct ta__table_reading *reading, const struct ta__page_block *block, uint32_t domain);
/* The block is in the snapshot. 0, or -1 with the error set. */
TA_NODISCARD int ta__table_add(struct ta__table_reading *reading, uint64_t address, uint64_t size, uint32_t trace);
/* Makes image->snapshot. 0, or -1 with the error set; the reading is freed in any case. */
TA_NODISCARD int ta__table_finish(struct ta__table_reading *reading);
void ta__table_free(struct ta__table_reading *reading); /* NULL is allowed */

#endif
