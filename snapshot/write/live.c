/* live.c: see live.h. */
#include "snapshot/write/live.h"

#include "snapshot/write/live_blocks.h"

#include <errno.h>
#include <string.h>

#include "alloc/alloc.h"
#include "base/atomics.h"
#include "base/error.h"
#include "base/safepoint.h"
#include "trace/unwind/modules.h"
#include "trace/peak.h"
#include "trace/trace.h"
#include "tracealloc.h"

static void fold(const struct ta__source *source, uint32_t first, uint32_t n, struct ta__source_counts *counts)
{
    (void)source;
    ta__counters_fold(first, n, counts);
}

static int get_module(const struct ta__source *source, uint32_t index, struct ta__source_module *row)
{
    if (index >= source->module_count)
        return 0;
    const struct ta__module *module = ta__module_at((ta__module_id){index + 1});
    *row = (struct ta__source_module){
        .path = module->path,
        .build_id = module->build_id,
        .build_id_length = module->build_id_bytes,
        .flags = ta__load_relaxed(&module->is_gone) ? TA__MODULE_UNLOADED : 0,
        .load_base = module->bias,
        .start = module->start,
        .end = module->end,
    };
    return 1;
}

static int get_domain(const struct ta__source *source, uint32_t index, struct ta__source_domain *row)
{
    if (index >= source->domain_count)
        return 0;
    const struct ta__domain *domain = ta__domain_at(index);
    *row = (struct ta__source_domain){
        .number = domain->number,
        .flags = ta__load_relaxed(&domain->flags),
        .name = ta__load_acquire(&domain->name),
        .limit_bytes =
            ta__load_relaxed(&domain->hard) != 0 ? ta__load_relaxed(&domain->hard) : ta__load_relaxed(&domain->soft),
    };
    if (index == 0 || (row->flags & TA__DOMAIN_DESTROYED) != 0)
        return 1; /* domain 0 is what its traces say */
    struct ta__source_counts sum;
    ta__domain_sum(index, &sum, &row->peak_bytes);
    row->allocated_bytes = sum.allocated_bytes;
    row->allocated_blocks = sum.allocated_blocks;
    row->live_bytes = sum.allocated_bytes > sum.freed_bytes ? sum.allocated_bytes - sum.freed_bytes : 0;
    row->live_blocks = sum.allocated_blocks > sum.freed_blocks ? sum.allocated_blocks - sum.freed_blocks : 0;
    return 1;
}

/* Who allocated so far. Leaves are not kept per thread, so that no trace names one of these: a block may be freed by
 * another thread than its own, and only the sum over threads has a meaning. */
static int get_thread(const struct ta__source *source, uint32_t index, struct ta__source_thread *row)
{
    const struct ta__thread *thread = (const struct ta__thread *)ta__safepoint_member((int)index);
    if (index >= source->thread_count || thread == NULL)
        return 0;
    const uint64_t name[2] = {ta__load_relaxed(&thread->name[0]), ta__load_relaxed(&thread->name[1])};
    *row = (struct ta__source_thread){
        .tid = (uint32_t)ta__load_relaxed(&thread->tid),
        .flags = ta__safepoint_is_present((int)index) ? 0 : TA__THREAD_ENDED,
    };
    memcpy(row->name, name, sizeof row->name);
    return 1;
}

int ta__source_open(struct ta__source *source)
{
    size_t current, peak;
    struct ta_health health;
    if (!ta_is_tracing()) {
        errno = EINVAL;
        return ta__error_set("tracealloc must be tracing memory allocations to take a snapshot", NULL);
    }
    *source = (struct ta__source){.fold = fold, .module = get_module, .domain = get_domain, .thread = get_thread};
    source->generation = ta__tables_open();
    source->epoch = ta__trace_epoch();
    source->leaf_first = ta__load_relaxed(&ta__leaf_first);
    source->leaf_count = ta__leaf_count();
    source->domain_count = ta__domain_count();
    source->context_count = ta__context_count();
    source->module_count = ta__modules_count();
    source->thread_count = (uint32_t)ta__safepoint_size();
    source->contexts = ta__contexts();
    source->leaves = ta__leaves();
    source->traceback_limit = (uint32_t)ta_get_traceback_limit();
    source->sample_bytes = ta__trace_sample_bytes();
    source->options = ta__options.text;
    source->leaf_peak_count = ta__peak_open(&source->leaf_peak_bytes, &source->peak_is_now);
    ta_get_traced_memory(&current, &peak);
    source->current_bytes = current;
    source->peak_bytes = peak;
    ta_get_health(&health, sizeof health);
    source->lost = health.lost;
    source->overflowed = health.overflowed;
    source->cut_short = health.cut_short;
    source->foreign_frees = health.foreign_frees;
    source->invalid_frees = health.invalid_frees;
    source->snapshot_errors = health.snapshot_errors;
    return 0;
}

int ta__source_open_whole(struct ta__source *source)
{
    struct ta__thread *self = ta__options.has_blocks && ta_is_tracing() ? ta__thread_get() : NULL;
    if (self == NULL || ta__safepoint_stop(&self->safepoint) != TA__STOP_DONE)
        return ta__source_open(source);
    int result = ta__source_open(source);
    if (result == 0)
        ta__live_blocks_take(source);
    ta__safepoint_resume(&self->safepoint);
    if (result == 0)
        ta__live_blocks_sort(source);
    return result;
}

void ta__source_close(struct ta__source *source)
{
    ta__live_blocks_free(source);
    if (source->leaf_peak_count != 0)
        ta__peak_close();
    ta__tables_close();
}

uint64_t ta__source_rows(void)
{
    return (uint64_t)ta__context_count() + ta__leaf_count();
}

void ta__source_note_failure(void)
{
    ta__add_relaxed(&ta__trace_events.snapshot_errors, 1);
}
