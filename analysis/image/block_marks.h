/* block_marks.h: what stands in front of a block, decoded: the reader's half of alloc/header.h, and the only file of the
 * reader that knows it. */
#ifndef TA_ANALYSIS_IMAGE_BLOCK_MARKS_H
#define TA_ANALYSIS_IMAGE_BLOCK_MARKS_H

#include <stdint.h>

#include "analysis/image/heap_pages.h"

/* What is the same for all blocks of a process. */
struct ta__marks {
    uint32_t key;
    uint32_t leaf_first, leaf_count; /* leaves outside of these are no traces */
    int is_tracing;
    int has_leaf_first; /* layout 2 */
};

struct ta__mark {
    uint32_t
        offset; /* from the block's beginning to the user's bytes; of a forwarding mark, how far that beginning moves */
    uint32_t leaf;   /* 0 = none */
    uint32_t domain; /* index, where there is no leaf to tell it */
    uint64_t size;   /* as asked for; UINT64_MAX = not known */
    int has_trace;   /* the leaf's stack counts; else the leaf may still tell a domain */
};

enum ta__mark_kind {
    TA__MARK_NONE, /* no live block */
    TA__MARK_LIVE,
    TA__MARK_FORWARD, /* mark->offset bytes further on stands the real one */
};

/* Bytes of a block that tell what it is; a header is as long at most. */
enum { TA__MARK_BYTES = 16 };

TA_NODISCARD int ta__marks_read(struct ta__marks *marks, struct ta__target *target, const struct ta__layout *layout);
/* `bytes`: the first TA__MARK_BYTES from `address` on, in a page with headers: a block's beginning, or, with `is_forwarded`,
 * the place that a forwarding mark named. `room`: bytes of the block from there on. */
enum ta__mark_kind ta__mark_read(const struct ta__marks *marks, const struct ta__heap_page *page, uint64_t address,
                                 const uint8_t *bytes, uint64_t room, int is_forwarded, struct ta__mark *mark);

#endif
