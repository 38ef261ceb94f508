/* lost_blocks.h: blocks that nothing reaches any more, told apart: which were lost, which went with them, which hold each
 * other in a circle. */
#ifndef TA_ANALYSIS_IMAGE_LOST_BLOCKS_H
#define TA_ANALYSIS_IMAGE_LOST_BLOCKS_H

#include "analysis/image/reach.h"

/* How a block is lost. */
enum ta__loss {
    TA__LOSS_PLAIN, /* nothing points to it but blocks that it reaches itself, if any */
    TA__LOSS_CYCLE, /* it stands for a circle of blocks that hold each other and that nothing else points to */
    TA__LOSSES
};

/* By trace and kind. */
struct ta__loss_figures {
    uint64_t blocks, bytes;           /* lost */
    uint64_t held_blocks, held_bytes; /* that went with them: other members of the circle, and what they reach */
    uint32_t largest;                 /* slot of one that holds most; valid when blocks > 0 */
    uint64_t largest_bytes;           /* of it, with what it holds */
};

struct ta__lost_blocks {
    const struct ta__block_graph *graph;
    uint32_t trace_count;
    struct ta__loss_figures *figures[TA__LOSSES]; /* by trace; the last row: without one */
    uint64_t blocks, bytes;                       /* all that are lost */
    uint64_t *cycles;                             /* a bit for each slot that is a member of a circle */
};

/* 0, or -1 with the error set. */
TA_NODISCARD int ta__lost_find(struct ta__lost_blocks *lost, const struct ta__block_graph *graph, uint32_t trace_count);
void ta__lost_free(struct ta__lost_blocks *lost);
/* A way from a member of a circle back to itself: slots, the member first; how many there are, at most `max`. */
size_t ta__lost_cycle(const struct ta__lost_blocks *lost, uint32_t slot, uint32_t *slots, size_t max);

#endif
