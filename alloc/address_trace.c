/* address_trace.c: the trace of one address: read (ta_get_traceback), recorded (ta_track), removed (ta_untrack).
 *
 * A block's trace is in its header. What ta_track records is in trace/tracked.c; the header of a live block of domain
 * 0 then says so by its kind, so that the free of the block finds the record. For one without a header, every free looks
 * for a record as long as there may be one (TA__GATE_TRACKED). */
#include "alloc/alloc.h"
#include "alloc/entry.h"
#include "alloc/live_block.h"

#include "trace/capture.h"
#include "trace/contexts.h"
#include "trace/sample.h"
#include "trace/tracked.h"

/* ---- looking up -------------------------------------------------------------------------------------------------- */

static size_t frames_of_leaf(uint32_t leaf, void **frames, size_t max, size_t *total)
{
    size_t count = ta__leaf_frames(leaf, (uint64_t *)frames, frames != NULL ? max : 0);
    if (total != NULL)
        *total = ta__leaves()[leaf].total_nframe;
    if (count == 0) { /* <overflow>: a trace, of a stack that nobody knows */
        if (frames != NULL && max > 0)
            frames[0] = NULL;
        count = 1;
    }
    return count;
}

/* The leaf of a live block of ours that is traced; 0: it is none. Within a look. */
static uint32_t traced_leaf(const void *block)
{
    struct ta__live_block live;
    if (block == NULL || !ta__live_block(block, &live))
        return 0;
    return (live.kind & TA__KIND_TRACED) != 0 && ta__trace_is_present(live.leaf) ? live.leaf : 0;
}

/* The leaf of what is at an address of the domain; 0: nothing that is traced. A handler leaves alone what ta_track
 * recorded: the operation that it interrupted may hold the lock. */
static uint32_t leaf_of(const struct ta__look *look, uint32_t domain, uintptr_t address)
{
    struct ta__tracked tracked;
    if (look->self != NULL && ta__tracked_find(domain, address, &tracked))
        return tracked.leaf;
    uint32_t leaf = traced_leaf((const void *)address);
    return ta__leaf_domain(leaf) == domain ? leaf : 0;
}

size_t ta_get_traceback(uint32_t domain, uintptr_t address, void **frames, size_t max, size_t *total)
{
    if (total != NULL)
        *total = 0;
    struct ta__look look;
    size_t count = 0;
    if (ta__look(&look) && ta_is_tracing()) {
        int index = ta__domain_known(domain);
        uint32_t leaf = index >= 0 ? leaf_of(&look, (uint32_t)index, address) : 0;
        count = leaf != 0 ? frames_of_leaf(leaf, frames, max, total) : 0;
    }
    ta__end_look(&look);
    return count;
}

size_t ta_get_object_traceback(const void *block, void **frames, size_t max, size_t *total)
{
    struct ta__look look;
    uint32_t leaf = ta__look(&look) && ta_is_tracing() ? traced_leaf(block) : 0;
    uint32_t number = leaf != 0 ? ta__domain_at(ta__leaf_domain(leaf))->number : 0;
    ta__end_look(&look);
    return ta_get_traceback(number, (uintptr_t)block, frames, max, total);
}

/* ---- tracking ---------------------------------------------------------------------------------------------------- */

/* A live block of domain 0 at this address, with a header that says what is done with it. */
static int find_live_block(uint32_t domain, uintptr_t address, struct ta__live_block *live)
{
    return domain == 0 && address != 0 && ta__live_block((const void *)address, live) && live->has_header &&
           live->domain == 0;
}

static void drop_trace(struct ta__thread *self, const struct ta__live_block *live)
{
    if ((live->kind & TA__KIND_TRACED) != 0 && ta__trace_is_present(live->leaf))
        ta__count_block_out(self, live->leaf, live->size);
}

/* Marks the block as having its trace in the table; what it counted goes. */
static int adopt_live_block(struct ta__thread *self, uint32_t domain, uintptr_t address)
{
    struct ta__live_block live;
    if (!find_live_block(domain, address, &live))
        return 0;
    drop_trace(self, &live);
    ta__live_block_rewrite((void *)address, &live, (live.kind & TA__KIND_ALIGNED) | TA__KIND_ODD, 0, live.size);
    return 1;
}

TA_ENTRY int ta_track(uint32_t domain, uintptr_t address, size_t size)
{
    struct ta__caller caller = TA__CALLER();
    uint32_t gate;
    struct ta__thread *self = ta__begin(&gate);
    if (self == NULL)
        return ta_is_tracing() ? -1 : -2;
    int result = gate == 0 && ta_is_tracing() ? -1 : -2; /* no memory for tracing in this thread */
    int is_watched = 1;
    if ((gate & TA__GATE_TRACING) != 0) {
        int index = ta__domain_index(domain);
        struct ta__tracked entry = {.address = address, .size = size, .domain = (uint32_t)index};
        struct ta__tracked old;
        entry.leaf =
            index >= 0 ? ta__capture(self, caller.ip, caller.sp, caller.fp, ta__domain_capture((uint32_t)index)) : 0;
        result = -1;
        if (entry.leaf != 0 && ta__tracked_put(&entry, &old)) {
            ta__store_relaxed(&ta__domain_at(entry.domain)->is_tracked, 1u);
            if (old.leaf != 0) {
                ta__count_tracked_out(self, old.leaf, old.size);
                ta__domain_discharge(self, entry.domain, old.size);
            }
            /* The memory is there already: a hard limit cannot refuse it, only count it. */
            ta__domain_note(self, entry.domain, size);
            is_watched = adopt_live_block(self, entry.domain, address) || index != 0;
            ta__count_tracked_in(self, entry.leaf, size);
            result = 0;
        }
    }
    ta__end(self, gate);
    if (!is_watched && (gate & TA__GATE_TRACKED) == 0 && !ta__trace_watch_addresses())
        return -1;
    return result;
}

int ta_untrack(uint32_t domain, uintptr_t address)
{
    uint32_t gate;
    struct ta__thread *self = ta__begin(&gate);
    if (self == NULL)
        return ta_is_tracing() ? 0 : -2;
    int result = gate == 0 && ta_is_tracing() ? 0 : -2;
    if ((gate & TA__GATE_TRACING) != 0) {
        int index = ta__domain_known(domain);
        struct ta__tracked old;
        result = 0;
        if (index >= 0 && ta__tracked_take((uint32_t)index, address, &old)) {
            ta__count_tracked_out(self, old.leaf, old.size);
            ta__domain_discharge(self, (uint32_t)index, old.size);
        }
        struct ta__live_block live; /* is hidden: from now on it has no trace */
        if (index == 0 && find_live_block(0, address, &live)) {
            drop_trace(self, &live);
            ta__live_block_rewrite((void *)address, &live, live.kind & TA__KIND_ALIGNED, 0, live.size);
        }
    }
    ta__end(self, gate);
    return result;
}
