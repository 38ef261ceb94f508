/* calltree.h: the stacks of a snapshot as one tree of functions — what tree, flame and the folded export draw. */
#ifndef TA_ANALYSIS_CLI_CALLTREE_H
#define TA_ANALYSIS_CLI_CALLTREE_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc/analysis.h>

struct cli_node {
    const char *
        name; /* function, or the module's name where it is not known, or file and line; interned: equal names, equal pointers */
    const char *file;   /* of one frame of this node, "" when not known */
    const char *module; /* "" when not known */
    uint32_t line;
    int64_t value;                   /* with all below; a difference may be negative */
    int64_t old_value;               /* of the second snapshot; 0 when there is one snapshot only */
    uint64_t count;                  /* live blocks, with all below */
    uint32_t parent, child, sibling; /* indices; 0 = none (the root is 0) */
};

struct cli_calltree {
    struct cli_node *nodes; /* nodes[0] is the root, named "all" */
    size_t count, capacity;
    uint32_t *slots; /* open addressing by (parent, name); node index + 1 */
    size_t slot_count;
    struct cli_names *names;
};

enum cli_direction { CLI_TOP_DOWN, CLI_FROM_LEAVES };

/* Adds all stacks of the snapshot by the value of `order` (live, count, total, calls, peak, temporary). `is_old`: to
 * old_value. Several snapshots may be added to one tree that began zeroed; 0, or -1 when the snapshot cannot be read. */
int cli_calltree_add(struct cli_calltree *tree, struct ta_snapshot *snapshot, enum ta_order order,
                     enum cli_direction direction, int is_old);
/* Children by descending value (the larger of both), then name: the same input gives the same picture. */
void cli_calltree_sort(struct cli_calltree *tree);
void cli_calltree_free(struct cli_calltree *tree);

/* The last component of a path. */
const char *cli_base_name(const char *path);

#endif
