/* world_check.c: see world_check.h. Empty but in the debug-full build. */
#include "alloc/world_check.h"

#if TA_CHECKS >= 2
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/domains/domains.h"
#include "alloc/live_block.h"
#include "base/lock.h"
#include "base/safepoint.h"
#include "trace/contexts.h"
#include "trace/table_check.h"
#include "trace/tracked.h"

int ta__check_figures_off;

/* What the blocks themselves say, summed. */
struct book {
    uint64_t blocks, bytes;
};

static struct {
    struct book *leaves, *domains;
    uint32_t leaf_count, domain_count;
    uint32_t heap_domain; /* whose heap is being walked */
    uint64_t blocks;
} walk;

static void enter(struct book *book, size_t size)
{
    book->blocks++;
    book->bytes += size;
}

/* What a dead domain had is counted as freed at once; its blocks and records go bit by bit. */
static void visit_block(void *user, size_t room, void *context)
{
    struct ta__live_block live;
    (void)context;
    walk.blocks++;
    TA_CHECK("O-3", ta__live_block(user, &live) && live.has_header && live.size <= room);
    TA_CHECK("D-1", ta__domain_at(live.domain)->heap_index == walk.heap_domain);
    TA_CHECK("D-2", ((live.kind & TA__KIND_DOMAIN) != 0) == (live.domain != 0));
    if (ta__domain_is_dead(ta__domain_at(live.domain)))
        return;
    enter(&walk.domains[live.domain], live.size);
    if (live.leaf != 0 && live.leaf >= ta__leaf_first) {
        TA_CHECK("O-5", live.leaf < walk.leaf_count);
        TA_CHECK("R-3", (ta__leaves()[live.leaf].flags & TA__LEAF_FREED) == 0);
        enter(&walk.leaves[live.leaf], live.size);
    }
}

/* What a page names, of a thread that is there: a slot with this part, or one that matches no mark. */
static void visit_page(uintptr_t start, size_t bytes, void *context)
{
    const mi_page_t *page = ta__heap_page((const void *)start);
    (void)bytes, (void)context;
    if (page == NULL || mi_page_is_abandoned(page))
        return;
    const struct ta__domain_slot *slot = ta__page_owner(page);
    if (ta__slot_has_part(slot))
        TA_CHECK("D-4", slot->theap == page->theap && ta__slot_index(slot) == walk.heap_domain);
    else
        TA_CHECK("D-4", ta__slot_untraced_check(slot) == (uint16_t)ta__check_of_kind(TA__KIND_NEVER) &&
                            slot->traced_check == ta__slot_untraced_check(slot));
}

static int visit_tracked(const struct ta__tracked *entry, void *context)
{
    (void)context;
    if (ta__domain_is_dead(ta__domain_at(entry->domain)))
        return 1;
    enter(&walk.leaves[entry->leaf], entry->size);
    enter(&walk.domains[entry->domain], entry->size);
    return 1;
}

static void visit_heap(void *heap, uint32_t domain, void *context)
{
    walk.heap_domain = domain;
    if (ta__domain_at(domain)->heap_index != domain)
        return;
    ta__heap_visit(heap, visit_block, context);
    ta__heap_visit_areas(heap, visit_page, context);
}

static void walk_blocks(void)
{
    ta__domain_heaps(visit_heap, NULL);
    ta__tracked_visit(visit_tracked, NULL);
}

/* In sampled mode a block counts for several: then only the tables can be compared. */
static int leaves_agree(void)
{
    struct ta__source_counts sum;
    int64_t live = 0;
    if (ta__trace_sample_bytes() != 0)
        return 1;
    for (uint32_t leaf = ta__leaf_first; leaf < walk.leaf_count; leaf++) {
        ta__counters_fold(leaf, 1, &sum);
        if (sum.allocated_blocks - sum.freed_blocks != walk.leaves[leaf].blocks ||
            sum.allocated_bytes - sum.freed_bytes != walk.leaves[leaf].bytes)
            return 0;
        live += (int64_t)walk.leaves[leaf].bytes;
    }
    int64_t current = ta__load_relaxed(&ta__counters_flushed);
    for (int slot = ta__safepoint_size(); slot-- > 0;) {
        const struct ta__thread *thread = (const struct ta__thread *)ta__safepoint_member(slot);
        current += thread != NULL ? thread->high - thread->headroom : 0;
    }
    return current == live;
}

static int domains_agree(void)
{
    struct ta__source_counts sum;
    uint64_t peak;
    for (uint32_t index = 1; index < walk.domain_count; index++) {
        ta__domain_sum(index, &sum, &peak);
        if (!ta__domain_is_dead(ta__domain_at(index)) &&
            (sum.allocated_blocks - sum.freed_blocks != walk.domains[index].blocks ||
             sum.allocated_bytes - sum.freed_bytes != walk.domains[index].bytes))
            return 0;
    }
    return 1;
}

/* Threads without a structure are not held by a stop: what they free meanwhile is counted a moment later. */
static void check_figures(void)
{
    enum { TRIES = 50 };
    size_t leaf_bytes = (walk.leaf_count + 1) * sizeof *walk.leaves;
    size_t domain_bytes = (walk.domain_count + 1) * sizeof *walk.domains;
    int do_leaves = 0;
    int do_domains = 0;
    for (int i = 0; i < TRIES && !(do_leaves && do_domains); i++) {
        walk.leaves = ta__check_notes(leaf_bytes);
        walk.domains = ta__check_notes(domain_bytes);
        walk.blocks = 0;
        walk_blocks();
        do_leaves = ta__check_figures_off || leaves_agree();
        do_domains = ta__check_figures_off || domains_agree();
        ta__check_notes_free(walk.leaves, leaf_bytes);
        ta__check_notes_free(walk.domains, domain_bytes);
    }
    TA_CHECK("P-1", do_leaves);
    TA_CHECK("D-3", do_domains);
}

void ta__check_world(void)
{
    ta__check_tables();
    walk.leaf_count = ta__leaf_count();
    walk.domain_count = ta__domain_count();
    check_figures();
}

/* A program that stops often with much in its tables would do nothing else: after a walk so many stops go unchecked. */
static void inspect(void)
{
    enum { BLOCKS_FOR_ONE_STOP = 500 };
    static uint64_t stops_to_go;
    if (stops_to_go > 0) {
        stops_to_go--;
        return;
    }
    ta__check_world();
    stops_to_go = (walk.blocks + ta__contexts_used() + walk.leaf_count) / BLOCKS_FOR_ONE_STOP;
}

/* L-3: inside an operation, shut or a stopper; or no structure, then handlers have none either. */
static int is_guarded(void)
{
    const struct ta__thread *self = ta__self;
    return self == &ta__thread_none || ta__safepoint_is_inside(&self->safepoint) ||
           ta__safepoint_is_shut(ta__load_relaxed(&self->safepoint.view));
}

void ta__check_world_begin(void)
{
    ta__lock_is_guarded = is_guarded;
    ta__safepoint_inspect = inspect;
}
#endif
