/* block_walk.c: every live block with a header, for a snapshot that has them one by one. With the world stopped.
 *
 * Plain pages are left out: threads take blocks from theirs also while the world is stopped (base/safepoint.h), and
 * nothing in them has a trace. Who looks from outside, with all threads held, sees those too. */
#include "alloc/alloc.h"

#include "alloc/heap.h"
#include "trace/tracked.h"

struct walk {
    void (*visit)(const struct ta__source_block *block, void *context);
    void *context;
};

/* ta_track recorded it in its own domain: that is its trace, and its row. */
static int is_tracked_instead(const void *user, uint32_t kind)
{
    struct ta__tracked entry;
    return (kind & (TA__KIND_ODD | TA__KIND_TRACED)) == TA__KIND_ODD && ta__tracked_find(0, (uintptr_t)user, &entry);
}

static void visit_block(void *user, size_t room, void *context)
{
    const struct walk *walk = context;
    uint64_t mark = ta__mark_of(user);
    size_t size = ta__mark_size(user, mark);
    if (!ta__mark_is_live(user, mark) || size > room)
        return;
    uint32_t leaf = ta__mark_leaf(mark), kind = ta__mark_kind(user, mark);
    if (is_tracked_instead(user, kind))
        return;
    if ((kind & TA__KIND_TRACED) == 0 || !ta__trace_is_present(leaf))
        leaf = 0;
    const struct ta__source_block row = {(uintptr_t)user, size, leaf};
    walk->visit(&row, walk->context);
}

static int visit_tracked(const struct ta__tracked *entry, void *context)
{
    const struct walk *walk = context;
    const struct ta__source_block row = {entry->address, entry->size, entry->leaf};
    walk->visit(&row, walk->context);
    return 1;
}

static void visit_heap(void *heap, uint32_t domain, void *context)
{
    (void)domain;
    ta__heap_visit(heap, visit_block, context);
}

void ta__blocks_visit(void (*visit)(const struct ta__source_block *block, void *context), void *context)
{
    struct walk walk = {visit, context};
    ta__domain_heaps(visit_heap, &walk);
    ta__emergency_visit(visit, context);
    ta__tracked_visit(visit_tracked, &walk);
}
