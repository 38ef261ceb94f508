/* control.c: tracing on, off, cleared — the calls of tracealloc.h that change what every thread does.
 *
 * A change happens with all threads outside the allocator (base/safepoint.h): they find a new gate when they come back and
 * adapt (ta__trace_adapt) before their next operation. So no allocation is half in one mode and half in another, and
 * counters are cleared while nobody counts. Each epoch has leaf numbers of its own: what was allocated in an
 * earlier one has no trace any more, though its header still carries a number.
 *
 * Never called by alloc's hot paths; may be called from anywhere a program can call a function. */
#include "trace/trace.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "trace/contexts.h"
#include "trace/counters.h"
#include "trace/kept_stacks.h"
#include "trace/reclaim.h"
#include "trace/unwind/modules.h"
#include "trace/unwind/rule_cache.h"
#include "trace/tracked.h"
#include "tracealloc.h"

/* Samples further apart than this cost nothing worth the memory of kept stacks. */
enum { MAX_CONTEXTS_DEFAULT = 1 << 24, KEEP_BELOW = 64 << 10 };

struct ta__trace_events ta__trace_events;

/* Changed with the world stopped: who stops it holds the one lock that there is for it. */
static struct {
    struct ta__trace_hooks hooks;
    uint32_t limit;
    uint32_t max_contexts;
    uint64_t sample_bytes;
    uint64_t epochs_begun; /* never wraps: tells snapshots of different epochs apart */
} control = {.limit = 1, .max_contexts = MAX_CONTEXTS_DEFAULT};

void ta__trace_set_hooks(const struct ta__trace_hooks *hooks)
{
    control.hooks = *hooks;
}

void ta__trace_configure(const struct ta__trace_config *config)
{
    control.sample_bytes = config->sample_bytes;
    if (config->max_contexts != 0)
        control.max_contexts = config->max_contexts;
    ta__reclaim_set_limit(config->table_memory);
}

int ta__trace_tables_ready(void)
{
    return ta__contexts_init(control.max_contexts);
}

uint64_t ta__trace_epoch(void)
{
    return ta__load_relaxed(&control.epochs_begun);
}

uint64_t ta__trace_sample_bytes(void)
{
    return control.sample_bytes;
}

/* ---- changes, with the world stopped ----------------------------------------------------------------------------- */

/* Every trace is of the past. When most leaf numbers are used up, old headers are made traceless one by one. */
static void begin_epoch(void)
{
    if (ta__leaves_are_spent()) {
        control.hooks.scrub_headers();
        ta__leaves_begin_epoch();
        ta__leaves_renumber();
    }
    ta__store_relaxed(&control.epochs_begun, control.epochs_begun + 1);
    ta__leaves_begin_epoch();
    ta__counters_clear();
    ta__tracked_clear(control.hooks.drop_record);
    ta__capture_give_back();
}

/* The calling thread, with all others outside; NULL when that cannot be had, which is said and nothing is changed. */
static struct ta__thread *begin_change(void)
{
    struct ta__thread *self = control.hooks.self != NULL ? control.hooks.self() : NULL;
    if (self == NULL) {
        errno = ENOMEM;
        ta__error_set("no memory for the thread", NULL);
        return NULL;
    }
    enum ta__stop stop = ta__safepoint_stop(&self->safepoint);
    if (stop == TA__STOP_DONE)
        return self;
    ta__safepoint_refused(stop);
    return NULL;
}

static void end_change(struct ta__thread *self)
{
    ta__safepoint_resume(&self->safepoint);
}

static int is_tracing(void)
{
    return (ta__gate_read() & TA__GATE_TRACING) != 0;
}

static void begin_tracing(int nframe)
{
    begin_epoch();
    control.limit = (uint32_t)nframe;
    control.hooks.leave_modes();
    ta__gate_change(TA__GATE_TRACING | (control.sample_bytes != 0 ? TA__GATE_SAMPLED : 0) |
                        (nframe == 1 ? TA__GATE_ONE_FRAME : 0),
                    0);
}

int ta_start(int nframe)
{
    if (nframe < 1 || nframe > TA_NFRAME_MAX) {
        ta__error_set("the number of frames must be in range [1; 65535]", NULL);
        errno = EINVAL;
        return -1;
    }
    if (is_tracing())
        return 0;
    ta__modules_begin(); /* before the stop: the loader's lock may be held by a thread that waits for us */
    struct ta__thread *self = begin_change();
    if (self == NULL)
        return -1;
    int result = 0;
    if (!is_tracing()) {
        if (ta__contexts_init(control.max_contexts)) {
            begin_tracing(nframe);
        } else {
            ta__error_set("no memory for the tables of the tracer", NULL);
            errno = ENOMEM;
            result = -1;
        }
    }
    end_change(self);
    return result;
}

void ta_stop(void)
{
    struct ta__thread *self = is_tracing() ? begin_change() : NULL;
    if (self == NULL)
        return;
    if (is_tracing()) {
        control.hooks.leave_modes();
        ta__gate_change(0, TA__GATE_TRACING | TA__GATE_SAMPLED | TA__GATE_ONE_FRAME | TA__GATE_TRACKED);
        begin_epoch();
    }
    end_change(self);
}

void ta_clear_traces(void)
{
    struct ta__thread *self = is_tracing() ? begin_change() : NULL;
    if (self == NULL)
        return;
    if (is_tracing()) {
        begin_epoch();
        ta__gate_change(0, TA__GATE_TRACKED);
    }
    end_change(self);
}

void ta_reset_peak(void)
{
    struct ta__thread *self = is_tracing() ? begin_change() : NULL;
    if (self == NULL)
        return;
    if (is_tracing())
        ta__counters_reset_peak();
    end_change(self);
}

int ta__trace_watch_addresses(void)
{
    struct ta__thread *self = begin_change();
    if (self == NULL)
        return 0;
    if (is_tracing()) {
        control.hooks.leave_modes();
        ta__gate_change(TA__GATE_TRACKED, 0);
    }
    end_change(self);
    return 1;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

int ta_is_tracing(void)
{
    return is_tracing();
}

int ta_get_traceback_limit(void)
{
    return (int)ta__load_relaxed(&control.limit);
}

void ta_get_traced_memory(size_t *current, size_t *peak)
{
    size_t now = 0;
    size_t highest = 0;
    if (is_tracing())
        ta__counters_traced(&now, &highest);
    if (current != NULL)
        *current = now;
    if (peak != NULL)
        *peak = highest;
}

/* ---- a thread meets the change ----------------------------------------------------------------------------------- */

static uint64_t power(uint64_t base, uint32_t exponent)
{
    uint64_t result = 1;
    for (; exponent != 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

int ta__trace_adapt(struct ta__thread *self, uint32_t gate)
{
    ta__capture_forget(self);
    if ((gate & TA__GATE_TRACING) != 0) {
        self->limit = ta__load_relaxed(&control.limit);
        self->limit_power = power(TA__GOLDEN, self->limit);
        self->leaf_first = ta__leaf_first;
        /* Without memory the thread stays on the slow path, untraced and counted. */
        if (!ta__capture_thread_init(self))
            return 0;
        ta__capture_forget_leaves(self);
        self->near->keeps_none = control.sample_bytes >= KEEP_BELOW;
    }
    ta__store_release(&self->adapted, gate / TA__GATE_GENERATION); /* what was forgotten is forgotten before */
    return 1;
}

int ta__trace_is_present(uint32_t leaf)
{
    return is_tracing() && leaf >= ta__load_relaxed(&ta__leaf_first);
}

void ta__trace_after_fork_in_child(void)
{
    ta__contexts_after_fork();
    ta__counters_after_fork();
    ta__tracked_after_fork();
    ta__modules_after_fork();
    ta__rules_after_fork();
}

/* ---- for readers from outside ------------------------------------------------------------------------------------ */

struct ta__fact ta__facts_control[] = {
    TA__FACT_AT("control.limit", control.limit),
    TA__FACT_AT("control.epochs_begun", control.epochs_begun),
    TA__FACT_AT("control.sample_bytes", control.sample_bytes),
    TA__FACT_AT("events.lost", ta__trace_events.lost),
    TA__FACT_AT("events.foreign_frees", ta__trace_events.foreign_frees),
    TA__FACT_AT("events.invalid_frees", ta__trace_events.invalid_frees),
    TA__FACT_AT("events.snapshots", ta__trace_events.snapshot_errors),
    TA__FACTS_END,
};
