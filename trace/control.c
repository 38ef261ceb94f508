/* control.c: tracing on, off, cleared — the calls of tracealloc.h that change what every thread does.
 *
 * A change happens with all threads outside the allocator (base/world.h): they find a new gate when they come back and
 * adapt (ta__trace_adapt) before their next operation. So no allocation is half in one mode and half in another, and
 * counters are cleared while nobody counts. A block remembers its epoch; what was allocated in an earlier epoch has no
 * trace any more, though its header still carries one.
 *
 * Never called by alloc's hot paths; may be called from anywhere a program can call a function. */
#include "trace/trace.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/memory.h"
#include "trace/contexts.h"
#include "trace/counters.h"
#include "trace/modules.h"
#include "trace/paths.h"
#include "trace/rules.h"
#include "trace/tracked.h"
#include "tracealloc.h"

enum { EPOCH_MAX = 0xFFFD, MAX_CONTEXTS_DEFAULT = 1 << 24 };
#define EPOCH_OF_NONE (UINT64_C(0xFFFE) << 48) /* as in headers, though none has it */

struct ta__trace_events ta__trace_events;

static struct {
    struct ta__lock lock; /* one change at a time */
    struct ta__trace_hooks hooks;
    uint32_t limit;
    uint32_t max_contexts;
    uint32_t epoch; /* written with the world stopped; read by adapting threads */
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
}

int ta__trace_tables_ready(void)
{
    return ta__contexts_init(control.max_contexts);
}

uint64_t ta__trace_epoch(void)
{
    return control.epochs_begun;
}

uint64_t ta__trace_sample_bytes(void)
{
    return control.sample_bytes;
}

/* ---- changes, with the world stopped ----------------------------------------------------------------------------- */

/* Every trace is of the past. The header has 16 bits for the epoch: when they are used up, old headers are made
 * traceless one by one. */
static void begin_epoch(void)
{
    if (control.epoch >= EPOCH_MAX) {
        control.hooks.scrub_headers();
        control.epoch = 0;
    }
    control.epoch++;
    control.epochs_begun++;
    ta__counters_clear();
    ta__tracked_clear();
}

static struct ta__thread *begin_change(void)
{
    struct ta__thread *self = control.hooks.self != NULL ? control.hooks.self() : NULL;
    ta__lock_acquire(&control.lock);
    return self;
}

static void end_change(void)
{
    ta__lock_release(&control.lock);
}

static int is_tracing(void)
{
    return (ta__gate_read() & TA__GATE_TRACING) != 0;
}

int ta_start(int nframe)
{
    if (nframe < 1 || nframe > TA_NFRAME_MAX) {
        ta__error_set("the number of frames must be in range [1; 65535]", NULL);
        errno = EINVAL;
        return -1;
    }
    struct ta__thread *self = begin_change();
    int result = 0;
    if (!is_tracing()) {
        if (self == NULL || !ta__contexts_init(control.max_contexts)) {
            ta__error_set("no memory for the tables of the tracer", NULL);
            errno = ENOMEM;
            result = -1;
        } else {
            ta__modules_begin();
            ta__world_stop(&self->world);
            begin_epoch();
            control.limit = (uint32_t)nframe;
            ta__gate_change(TA__GATE_TRACING | (control.sample_bytes != 0 ? TA__GATE_SAMPLED : 0) |
                                (nframe == 1 ? TA__GATE_ONE_FRAME : 0),
                            0);
            ta__world_resume();
        }
    }
    end_change();
    return result;
}

void ta_stop(void)
{
    struct ta__thread *self = begin_change();
    if (is_tracing()) {
        ta__world_stop(self != NULL ? &self->world : NULL);
        ta__gate_change(0, TA__GATE_TRACING | TA__GATE_SAMPLED | TA__GATE_ONE_FRAME | TA__GATE_TRACKED);
        begin_epoch();
        ta__world_resume();
    }
    end_change();
}

void ta_clear_traces(void)
{
    struct ta__thread *self = begin_change();
    if (is_tracing()) {
        ta__world_stop(self != NULL ? &self->world : NULL);
        begin_epoch();
        ta__gate_change(0, TA__GATE_TRACKED);
        ta__world_resume();
    }
    end_change();
}

void ta_reset_peak(void)
{
    struct ta__thread *self = begin_change();
    if (is_tracing()) {
        ta__world_stop(self != NULL ? &self->world : NULL);
        ta__counters_reset_peak();
        ta__world_resume();
    }
    end_change();
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

void ta__trace_adapt(struct ta__thread *self, uint32_t gate)
{
    ta__capture_forget(self);
    if ((gate & TA__GATE_TRACING) != 0) {
        self->limit = ta__load_relaxed(&control.limit);
        self->limit_power = power(TA__GOLDEN, self->limit);
        /* Weighted blocks are never freed on the fast path: an epoch that none has keeps them away. */
        self->epoch_bits = (gate & TA__GATE_SAMPLED) != 0 ? EPOCH_OF_NONE : ta__trace_epoch_bits();
        /* Without memory the thread stays on the slow path, untraced and counted. */
        if (!ta__capture_thread_init(self))
            return;
        ta__paths_forget(self->near);
    } else {
        self->epoch_bits = EPOCH_OF_NONE;
    }
    ta__store_relaxed(&self->world.view, gate);
}

uint64_t ta__trace_epoch_bits(void)
{
    return (uint64_t)ta__load_relaxed(&control.epoch) << 48;
}

int ta__trace_is_present(uint32_t epoch)
{
    return is_tracing() && epoch == ta__load_relaxed(&control.epoch);
}

void ta__trace_before_fork(void)
{
    ta__lock_acquire(&control.lock);
}

void ta__trace_after_fork_in_parent(void)
{
    ta__lock_release(&control.lock);
}

void ta__trace_after_fork_in_child(void)
{
    control.lock.state = 0;
    ta__contexts_after_fork();
    ta__counters_after_fork();
    ta__tracked_after_fork();
    ta__modules_after_fork();
}
