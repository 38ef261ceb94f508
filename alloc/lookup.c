/* lookup.c: the traces of single addresses — get_object_traceback, ta_track and ta_untrack — and the health report.
 *
 * A block's trace is in its header. What ta_track records is in trace/tracked.c; for a live block of domain 0 the
 * header then says so by its epoch, so that the free of the block finds the record. */
#include "alloc/alloc.h"
#include "alloc/entry.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "trace/contexts.h"
#include "trace/modules.h"
#include "trace/peak.h"
#include "trace/rules.h"
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

/* The header of a live traced block of ours, or NULL. */
static struct ta__header *traced_header(const void *block)
{
    if (block == NULL || ((uintptr_t)block & 15) != 0 || !ta__process_is_ready() || ta__heap_page_of(block) == NULL)
        return NULL;
    if (!ta__header_verifies(block) || (ta__header_kind(block) & TA__KIND_TRACED) == 0)
        return NULL;
    return ta__header_of(block);
}

size_t ta_get_traceback(uint32_t domain, uintptr_t address, void **frames, size_t max, size_t *total)
{
    if (total != NULL)
        *total = 0;
    if (!ta_is_tracing())
        return 0;
    int index = ta__domain_known(domain);
    if (index < 0)
        return 0;
    struct ta__tracked tracked;
    if (ta__tracked_find((uint32_t)index, address, &tracked))
        return frames_of_leaf(tracked.leaf, frames, max, total);
    const struct ta__header *header = traced_header((const void *)address);
    if (header == NULL || !ta__trace_is_present(ta__header_epoch(header)) ||
        ta__leaf_domain(header->leaf) != (uint32_t)index)
        return 0;
    return frames_of_leaf(header->leaf, frames, max, total);
}

size_t ta_get_object_traceback(const void *block, void **frames, size_t max, size_t *total)
{
    uint32_t number = 0;
    const struct ta__header *header = ta_is_tracing() ? traced_header(block) : NULL;
    if (header != NULL)
        number = ta__domain_at(ta__leaf_domain(header->leaf))->number;
    return ta_get_traceback(number, (uintptr_t)block, frames, max, total);
}

/* ---- tracking ---------------------------------------------------------------------------------------------------- */

/* Marks a live block of domain 0 as having its trace in the table; what it counted goes. */
static int adopt_live_block(struct ta__thread *self, uint32_t domain, uintptr_t address)
{
    if (domain != 0 || address == 0 || (address & 15) != 0 || ta__heap_page_of((const void *)address) == NULL)
        return 0;
    void *user = (void *)address;
    if (!ta__header_verifies(user))
        return 0;
    struct ta__header *header = ta__header_of(user);
    uint32_t kind = ta__header_kind(user);
    size_t size = ta__header_size(header);
    if ((kind & TA__KIND_DOMAIN) == TA__KIND_DOMAIN)
        return 0;
    if ((kind & TA__KIND_TRACED) != 0 && ta__trace_is_present(ta__header_epoch(header)))
        ta__count_block_out(self, header->leaf, size);
    ta__header_write(user, (kind & TA__KIND_ALIGNED) | TA__KIND_TRACED, ta__header_leaf(header, kind), size,
                     (uint64_t)TA__EPOCH_TRACKED << TA__SIZE_BITS);
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
    if ((gate & TA__GATE_TRACING) != 0) {
        int index = ta__domain_index(domain);
        struct ta__tracked entry = {.address = address, .size = size, .domain = (uint32_t)index};
        struct ta__tracked old;
        entry.leaf =
            index >= 0 ? ta__capture(self, caller.ip, caller.sp, caller.fp, ta__domain_capture((uint32_t)index)) : 0;
        result = -1;
        if (entry.leaf != 0 && ta__tracked_put(&entry, &old)) {
            if (old.leaf != 0) {
                ta__count_tracked_out(self, old.leaf, old.size);
                ta__domain_discharge(self, entry.domain, old.size);
            }
            /* The memory is there already: a hard limit cannot refuse it, only count it. */
            ta__domain_note(self, entry.domain, size);
            if (!adopt_live_block(self, entry.domain, address) && index == 0)
                ta__gate_change(TA__GATE_TRACKED, 0);
            ta__count_tracked_in(self, entry.leaf, size);
            result = 0;
        }
    }
    ta__end(self, gate);
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
        if (index == 0) {
            /* A live block is hidden: from now on it has no trace. */
            struct ta__header *header = traced_header((const void *)address);
            if (header != NULL && (ta__header_kind((void *)address) & TA__KIND_DOMAIN) != TA__KIND_DOMAIN) {
                if (ta__trace_is_present(ta__header_epoch(header)))
                    ta__count_block_out(self, header->leaf, ta__header_size(header));
                ta__header_write((void *)address, ta__header_kind((void *)address) & TA__KIND_ALIGNED, 0,
                                 ta__header_size(header), 0);
            }
        }
    }
    ta__end(self, gate);
    return result;
}

/* ---- health ------------------------------------------------------------------------------------------------------ */

void ta_get_health(struct ta_health *health, size_t size)
{
    struct ta_health full = {0};
    full.lost = ta__load_relaxed(&ta__trace_events.lost);
    full.foreign_frees = ta__load_relaxed(&ta__trace_events.foreign_frees);
    full.invalid_frees = ta__load_relaxed(&ta__trace_events.invalid_frees);
    full.snapshot_errors = ta__load_relaxed(&ta__trace_events.snapshot_errors);
    int used = ta__world_size();
    for (int slot = 0; slot < used; slot++) {
        const struct ta__thread *thread = (const struct ta__thread *)ta__world_member(slot);
        full.lost += ta__load_relaxed(&thread->counted_lost);
    }
    uint32_t leaves = ta__leaf_count();
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        uint32_t flags = ta__leaves()[leaf].flags;
        if ((flags & (TA__LEAF_OVERFLOW | TA__LEAF_CUT_SHORT)) == 0)
            continue;
        struct ta__source_counts counts;
        ta__counters_fold(leaf, 1, &counts);
        if (flags & TA__LEAF_OVERFLOW)
            full.overflowed += counts.allocated_blocks;
        else
            full.cut_short += counts.allocated_blocks;
    }
    full.contexts = ta__context_count() > 0 ? ta__context_count() - 1 : 0;
    full.leaves = leaves > 0 ? leaves - 1 : 0;
    full.modules = ta__modules_count();
    memcpy(health, &full, size < sizeof full ? size : sizeof full);
}

size_t ta_get_tracer_memory(void)
{
    size_t bytes = ta__contexts_memory() + ta__rules_resident() + ta__peak_memory();
    int used = ta__world_size();
    for (int slot = 0; slot < used; slot++) {
        const struct ta__thread *thread = (const struct ta__thread *)ta__world_member(slot);
        bytes += sizeof *thread + ta__capture_resident(thread);
    }
    return bytes;
}

const char *ta_version(void)
{
    return TRACEALLOC_VERSION;
}
