/* health.c: what the library says of itself: what tracing lost or could not do, the memory it uses, its version.
 *
 * The numbers are read while other threads go on, so they may be a moment apart. Nothing here waits or allocates. */
#include "alloc/alloc.h"

#include "base/bytes.h"

#include <string.h>

#include "trace/capture.h"
#include "trace/contexts.h"
#include "trace/counters.h"
#include "trace/peak.h"
#include "trace/unwind/modules.h"
#include "trace/unwind/rule_cache.h"
#include "tracealloc.h"

void ta_get_health(struct ta_health *health, size_t size)
{
    struct ta_health full = {0};
    full.lost = ta__load_relaxed(&ta__trace_events.lost);
    full.cut_short = ta__load_relaxed(&ta__trace_events.cut_short);
    full.foreign_frees = ta__load_relaxed(&ta__trace_events.foreign_frees);
    full.invalid_frees = ta__load_relaxed(&ta__trace_events.invalid_frees);
    full.snapshot_errors = ta__load_relaxed(&ta__trace_events.snapshot_errors);
    int used = ta__safepoint_size();
    for (int slot = 0; slot < used; slot++) {
        const struct ta__thread *thread = (const struct ta__thread *)ta__safepoint_member(slot);
        full.lost += ta__load_relaxed(&thread->counted_lost);
    }
    ta__tables_open();
    uint32_t leaves = ta__leaf_count();
    for (uint32_t leaf = ta__load_relaxed(&ta__leaf_first); leaf < leaves; leaf++) {
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
    ta__tables_close();
    full.contexts = ta__contexts_used();
    full.leaves = ta__leaves_used();
    full.modules = ta__modules_count();
    ta__fill(health, size, &full, sizeof full);
}

size_t ta_get_tracer_memory(void)
{
    struct ta__shut shut = ta__shut();
    size_t bytes = ta__contexts_memory() + ta__rules_resident() + ta__peak_memory();
    ta__open(&shut);
    int used = ta__safepoint_size();
    for (int slot = 0; slot < used; slot++) {
        const struct ta__thread *thread = (const struct ta__thread *)ta__safepoint_member(slot);
        bytes += sizeof *thread + ta__capture_resident(thread);
    }
    return bytes;
}

const char *ta_version(void)
{
    return TRACEALLOC_VERSION;
}
