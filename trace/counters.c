/* counters.c: what the leaves hold, summed over threads when somebody asks.
 *
 * Each thread adds to an array of its own, indexed by leaf, with plain stores (the inline functions in trace.h); a free
 * counts in the thread that frees, so a single thread's row may be negative and only the sum has meaning. Arrays are
 * reserved address space, resident where touched, and stay with their slot when the thread is gone: nothing is ever
 * folded, so nothing can be lost.
 *
 * Current and peak. A thread keeps the highest value that its part of current has had since its last flush (high), and
 * how far it is below that now (headroom); so that an allocation subtracts and looks at the sign, and a free adds. With
 * one thread, current = flushed + high - headroom and peak = max(flushed peak, flushed + high): exact. With more, each
 * is behind by at most TA__FLUSH_BYTES per thread, plus at most one block. */
#include "trace/counters.h"

#include <string.h>

#include "base/atomics.h"
#include "base/lock.h"
#include "base/memory.h"
#include "trace/sample.h"
#include "trace/trace.h"

int64_t ta__counters_flushed;

static struct {
    int64_t peak;
    struct ta__source_counts *shared; /* for threads without an array, and for ta_track: atomic additions */
    struct ta__lock lock;             /* guards the making of shared */
} totals;

static struct ta__thread *thread_at(int slot)
{
    return (struct ta__thread *)ta__world_member(slot);
}

static void raise_peak(int64_t candidate)
{
    int64_t peak = ta__load_relaxed(&totals.peak);
    while (candidate > peak && !ta__cas_relaxed(&totals.peak, &peak, candidate))
        ;
}

/* What the thread had becomes part of the sum that all see, and the thread that completes a peak sees that it does. */
static void flush(struct ta__thread *self, const int64_t *due)
{
    int64_t high = ta__load_relaxed(&self->high);
    int64_t delta = high - ta__load_relaxed(&self->headroom);
    int64_t before = __atomic_fetch_add(&ta__counters_flushed, delta, __ATOMIC_RELAXED);
    raise_peak(before + high);
    ta__store_relaxed(&self->high, 0);
    ta__store_relaxed(&self->headroom, 0);
    if (TA_UNLIKELY(before + delta >= ta__load_relaxed(due)))
        ta__peak_record(before + delta);
}

void ta__counters_flush(struct ta__thread *self)
{
    flush(self, &ta__peak_due.falling);
}

void ta__counters_due(struct ta__thread *self, int64_t high)
{
    int64_t jump = high - ta__load_relaxed(&self->high);
    ta__store_relaxed(&self->high, high);
    ta__store_relaxed(&self->headroom, 0);
    /* A large block is noticed as it comes: when it goes, it is gone before anybody looks. */
    if (high > TA__FLUSH_BYTES)
        flush(self, jump > TA__FLUSH_BYTES ? &ta__peak_due.falling : &ta__peak_due.grown);
    else
        ta__peak_record(ta__load_relaxed(&ta__counters_flushed) + high);
}

static struct ta__source_counts *shared_counts(void)
{
    struct ta__source_counts *shared = ta__load_acquire(&totals.shared);
    if (TA_LIKELY(shared != NULL))
        return shared;
    ta__lock_acquire(&totals.lock);
    if (totals.shared == NULL) {
        shared = ta__memory_map(ta__leaf_capacity() * sizeof *shared);
        ta__store_release(&totals.shared, shared);
    }
    ta__lock_release(&totals.lock);
    return ta__load_acquire(&totals.shared);
}

void ta__counters_shared_remove(uint32_t leaf, uint64_t blocks, uint64_t bytes)
{
    struct ta__source_counts *shared = shared_counts();
    if (shared == NULL)
        return;
    ta__add_relaxed(&shared[leaf].freed_blocks, blocks);
    ta__add_relaxed(&shared[leaf].freed_bytes, bytes);
    __atomic_fetch_sub(&ta__counters_flushed, (int64_t)bytes, __ATOMIC_RELAXED);
}

static void add_counts(struct ta__source_counts *sum, const struct ta__source_counts *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        /* Freed first: a block that is allocated and freed between the two reads must not look freed twice. */
        sum[i].freed_blocks += ta__load_relaxed(&row[i].freed_blocks);
        sum[i].freed_bytes += ta__load_relaxed(&row[i].freed_bytes);
        sum[i].allocated_blocks += ta__load_relaxed(&row[i].allocated_blocks);
        sum[i].allocated_bytes += ta__load_relaxed(&row[i].allocated_bytes);
    }
}

/* As they were counted: in sampled mode, blocks in units. */
static void fold(uint32_t first, uint32_t n, struct ta__source_counts *counts)
{
    memset(counts, 0, n * sizeof *counts);
    const struct ta__source_counts *shared = ta__load_acquire(&totals.shared);
    if (shared != NULL)
        add_counts(counts, shared + first, n);
    int used = ta__world_size();
    for (int slot = 0; slot < used; slot++) {
        const struct ta__source_counts *own = ta__load_acquire(&thread_at(slot)->counts);
        if (own != NULL)
            add_counts(counts, own + first, n);
    }
}

void ta__counters_fold(uint32_t first, uint32_t n, struct ta__source_counts *counts)
{
    fold(first, n, counts);
    if (ta__trace_sample_bytes() == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        counts[i].allocated_blocks = (counts[i].allocated_blocks + TA__SAMPLE_UNIT / 2) / TA__SAMPLE_UNIT;
        counts[i].freed_blocks = (counts[i].freed_blocks + TA__SAMPLE_UNIT / 2) / TA__SAMPLE_UNIT;
    }
}

void ta__counters_traced(size_t *current, size_t *peak)
{
    int64_t now = ta__load_relaxed(&ta__counters_flushed);
    int64_t highest = ta__load_relaxed(&totals.peak);
    int64_t deltas = 0;
    int64_t highs = 0;
    int used = ta__world_size();
    for (int slot = 0; slot < used; slot++) {
        const struct ta__thread *thread = thread_at(slot);
        int64_t high = ta__load_relaxed(&thread->high);
        deltas += high - ta__load_relaxed(&thread->headroom);
        if (high > highs)
            highs = high;
    }
    if (now + highs > highest)
        highest = now + highs;
    now += deltas;
    if (now < 0)
        now = 0;
    if (highest < now)
        highest = now;
    *current = (size_t)now;
    *peak = (size_t)highest;
}

void ta__counters_drop(uint32_t leaf)
{
    struct ta__source_counts sum;
    struct ta__source_counts *shared = shared_counts();
    if (shared == NULL)
        return;
    fold(leaf, 1, &sum);
    uint64_t bytes = sum.allocated_bytes - sum.freed_bytes;
    ta__add_relaxed(&shared[leaf].freed_blocks, sum.allocated_blocks - sum.freed_blocks);
    ta__add_relaxed(&shared[leaf].freed_bytes, bytes);
    __atomic_fetch_sub(&ta__counters_flushed, (int64_t)bytes, __ATOMIC_RELAXED);
}

/* ---- for control.c, with the world stopped ----------------------------------------------------------------------- */

void ta__counters_clear(void)
{
    size_t bytes = ta__leaf_capacity() * sizeof(struct ta__source_counts);
    int used = ta__world_size();
    for (int slot = 0; slot < used; slot++) {
        struct ta__thread *thread = thread_at(slot);
        ta__store_relaxed(&thread->high, 0);
        ta__store_relaxed(&thread->headroom, 0);
        if (thread->counts != NULL)
            ta__memory_reset(thread->counts, bytes);
    }
    if (totals.shared != NULL)
        ta__memory_reset(totals.shared, bytes);
    ta__store_relaxed(&ta__counters_flushed, 0);
    ta__store_relaxed(&totals.peak, 0);
    ta__peak_clear();
}

void ta__counters_reset_peak(void)
{
    int64_t current = ta__load_relaxed(&ta__counters_flushed);
    int used = ta__world_size();
    for (int slot = 0; slot < used; slot++) {
        struct ta__thread *thread = thread_at(slot);
        current += thread->high - thread->headroom;
        ta__store_relaxed(&thread->high, 0);
        ta__store_relaxed(&thread->headroom, 0);
    }
    ta__store_relaxed(&ta__counters_flushed, current);
    ta__store_relaxed(&totals.peak, current);
    ta__peak_clear();
}

void ta__counters_after_fork(void)
{
    totals.lock.state = 0;
    ta__peak_after_fork();
}
