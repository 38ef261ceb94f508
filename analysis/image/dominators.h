/* dominators.h: which block holds which: a block dominates another when every way to that one from outside leads through
 * it, so that the other goes when it goes. Each block has one nearest dominator; together they are a tree. */
#ifndef TA_ANALYSIS_IMAGE_DOMINATORS_H
#define TA_ANALYSIS_IMAGE_DOMINATORS_H

#include "analysis/image/reach.h"

/* The tree. Blocks that point to nothing and are pointed to once are leaves, hung on the one that points to them and found
 * by its pointers; the others have numbers from 1 in the order in which a walk from outside met them, 0 is outside. */
struct ta__dominators {
    const struct ta__block_graph *graph;
    uint64_t *reached; /* slots */
    uint64_t *leaves;  /* slots */
    uint32_t count;    /* numbers, with 0 */
    uint32_t *slots;   /* by number */
    uint32_t *nearest; /* by number: its nearest dominator, which has a smaller number */
};

/* 0, or -1 with the error set. */
TA_NODISCARD int ta__dominators_find(struct ta__dominators *dominators, const struct ta__block_graph *graph);
void ta__dominators_free(struct ta__dominators *dominators);

#endif
