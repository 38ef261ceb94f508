/* pointer_paths.h: who points to a block, and the shortest ways to it from outside. */
#ifndef TA_ANALYSIS_IMAGE_POINTER_PATHS_H
#define TA_ANALYSIS_IMAGE_POINTER_PATHS_H

#include "analysis/image/reach.h"

/* A pointer to the block: from another one, at an offset; or from outside. */
struct ta__referrer {
    uint32_t slot; /* UINT32_MAX = from outside */
    uint64_t offset;
    struct ta__root root;
    uint32_t steps; /* from a root to the block by this way; UINT32_MAX = there is none */
};

struct ta__paths {
    const struct ta__block_graph *graph;
    uint32_t slot;
    uint32_t *from; /* by rank: the slot that it was reached from + 1; 0 = not reached, FROM_ROOT = from outside */
    struct ta__referrer *referrers; /* those by which ways lead here first, shortest way first */
    size_t count, capacity;
    uint64_t total; /* of pointers, also those that are not kept */
};

/* The graph must keep places. 0, or -1 with the error set. */
TA_NODISCARD int ta__paths_find(struct ta__paths *paths, const struct ta__block_graph *graph, uint32_t slot);
void ta__paths_free(struct ta__paths *paths);
/* The slots of the way by a referrer: the first is pointed to from outside, by *root; the last is the block itself.
 * Copies at most `max`; how many there are, 0 = nothing leads to that referrer. */
size_t ta__paths_way(const struct ta__paths *paths, size_t referrer, uint32_t *slots, size_t max,
                     struct ta__root *root);
/* Where in block `from` the pointer to `to` stands. */
uint64_t ta__paths_offset(const struct ta__block_graph *graph, uint32_t from, uint32_t to);

#endif
