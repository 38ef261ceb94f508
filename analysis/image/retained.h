/* retained.h: how much memory would go if some blocks went: those, and all that only they hold. */
#ifndef TA_ANALYSIS_IMAGE_RETAINED_H
#define TA_ANALYSIS_IMAGE_RETAINED_H

#include "analysis/image/dominators.h"

struct ta__retained_group {
    uint64_t blocks, bytes; /* of the group itself, reached ones */
    uint64_t least;         /* what goes with the group because one of its blocks alone holds it */
    uint64_t retained;      /* what goes when all of its blocks go: least, or exact */
    uint64_t retained_blocks;
    int is_exact;
};

struct ta__retained_block {
    uint32_t slot;
    uint64_t bytes; /* that go with it */
};

/* `group_of_trace`: of each trace and, last, of blocks without one; below group_count. Fills in `groups`. 0, or -1 with the
 * error set. The groups that hold most are exact; how many, is a constant. */
TA_NODISCARD int ta__retained_groups(const struct ta__dominators *dominators, const uint32_t *group_of_trace,
                                     uint32_t trace_count, struct ta__retained_group *groups, uint32_t group_count);
/* The blocks that hold most, of those that no single block holds. Answers how many. */
size_t ta__retained_blocks(const struct ta__dominators *dominators, struct ta__retained_block *blocks, size_t max);

#endif
