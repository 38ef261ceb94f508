/* memory_parts.h: what every resident byte of a process is: of which kind, and for whose blocks. */
#ifndef TA_ANALYSIS_IMAGE_MEMORY_PARTS_H
#define TA_ANALYSIS_IMAGE_MEMORY_PARTS_H

#include "analysis/image/page_blocks.h"
#include "analysis/image/resident.h"
#include "tracealloc/image.h"

enum ta__part {
    TA__PART_ASKED,    /* by the live blocks */
    TA__PART_ROUNDING, /* up to the sizes of the allocator's blocks */
    TA__PART_HEADERS,
    TA__PART_FREE,   /* in pages of the allocator that have live blocks */
    TA__PART_KEPT,   /* pages without live blocks, kept for reuse */
    TA__PART_TABLES, /* tracealloc's, and the allocator's own */
    TA__PART_STACKS, /* of threads */
    TA__PART_CODE,   /* of the program and its libraries: as it is in their files */
    TA__PART_DATA,   /* of the same: written */
    TA__PART_FILES,  /* other files that are mapped */
    TA__PART_SHARED, /* with other processes */
    TA__PART_OTHER,  /* mapped or asked of the system by the program itself */
    TA__PARTS
};

/* A page of the allocator with live blocks: whose they are, and what it holds. */
struct ta__used_page {
    uint64_t resident;
    uint32_t first_trace, trace_count; /* in ta__memory_parts.page_traces */
};

struct ta__memory_parts {
    uint64_t parts[TA__PARTS];
    uint64_t *mappings;                /* by region of the target: bytes explained */
    uint8_t *kinds;                    /* by region: the part that most of it is */
    struct ta_memory_figures *figures; /* by trace; the last row: blocks without one */
    uint32_t trace_count;
    struct ta__resident resident;
    struct ta__used_page *pages;
    size_t page_count, page_capacity;
    uint32_t *page_traces;
    size_t page_trace_count, page_trace_capacity;
    uint32_t *seen; /* by trace: the page + 1 in which it was met last */
    double *pinned; /* by trace: figures are whole bytes only in the end */
};

struct ta_image;
/* Residency, of zeroed parts, before anything else is read: what is read of a mapped file becomes resident by that, and
 * would be more than the Rss that is to be explained. 0, or -1 with the error set. */
TA_NODISCARD int ta__memory_look(struct ta__memory_parts *memory, struct ta_image *image);
/* Afterwards. */
TA_NODISCARD int ta__memory_open(struct ta__memory_parts *memory, struct ta_image *image, uint32_t trace_count);
/* A page with its blocks; `traces`: of each block, TA__NO_TRACE = none. */
TA_NODISCARD int ta__memory_add_page(struct ta__memory_parts *memory, struct ta_image *image,
                                     const struct ta__heap_page *page, const struct ta__page_block *blocks,
                                     const uint32_t *traces, uint32_t count);
/* The rest of the process. */
TA_NODISCARD int ta__memory_finish(struct ta__memory_parts *memory, struct ta_image *image);
void ta__memory_free(struct ta__memory_parts *memory);

#endif
