/* calltree.h: the stacks of snapshots as one tree of functions: what tree, flame and the folded export draw.
 *
 * Between the model and the files of analysis/exports. Nodes are kept in the order of the drawing: a node's first child
 * is the next node, so that one loop visits everything outwards in. Names are interned: two snapshots have one name at
 * two places. */
#ifndef TA_ANALYSIS_CALLTREE_CALLTREE_H
#define TA_ANALYSIS_CALLTREE_CALLTREE_H

#include "base/index.h"
#include "tracealloc/export.h"

struct ta_calltree {
    enum ta_order order;
    unsigned flags;
    struct ta_calltree_node *nodes; /* nodes[0] is the root */
    size_t count, capacity;
    struct ta__index children; /* by (parent, name); empty between two calls of ta_calltree_add */
    char **texts;              /* each once */
    size_t text_count, text_capacity;
    struct ta__index text_index;
    int has_old;
};

/* What a node holds besides its children. */
int64_t ta__calltree_own_value(const struct ta_calltree *tree, size_t index);
/* The nodes from the outermost call to `index`, without the root: at most depth of them. */
void ta__calltree_path(const struct ta_calltree *tree, size_t index, uint32_t *path);
/* The depth of the deepest node. */
uint32_t ta__calltree_depth(const struct ta_calltree *tree);
/* Whether values of this order are bytes; what they are, in words. */
int ta__order_is_bytes(enum ta_order order);
const char *ta__order_words(enum ta_order order);

#endif
