/* counters.c: what the leaves hold, summed over threads when somebody asks.
 *
 * Each thread adds to an array of its own, indexed by leaf, with plain stores (the inline functions in trace.h); a free
 * counts in the thread that frees, so a single thread's row may be negative and only the sum has meaning. Arrays are
 * reserved address space, resident where touched, and stay with their slot when the thread is gone: nothing is ever
 * folded, so nothing can be lost.
 *
 * Current and peak. A thread keeps the highest value that its part of current has had since its last flush (high), and
 * how far it is below that now (headroom); so that an allocation subtracts and looks at the sign, and a free adds.
 *
 *      current = flushed + sum of (high - headroom)            exact when threads rest
 *      peak    = highest of flushed + sum of high,             looked at before each flush, and when somebody asks
 *
 * With one thread that is exact. With more, the peak is never less than what lived at any moment at which all threads
 * rested, whether or not somebody looked then; and it is more than what ever lived at once by at most TA__FLUSH_BYTES
 * for each thread that has freed since its last flush. What was reported once stays until ta_reset_peak.
 *
 * Why never less: between that moment and the first flush after it no part of `flushed + sum of high` falls; whoever
 * flushes first looks at the sum before anything is taken out of it. */
#include "trace/counters.h"

#include <string.h>

#include "base/atomics.h"
#include "base/lock.h"
#include "base/memory.h"
#include "trace/sample.h"
#include "trace/trace.h"

int64_t ta__counters_flushed;

/* With more threads only some flushes look at the others: the peak may then be behind by TA__FLUSH_BYTES for each. */
enum { THREADS_LOOKED_AT = 64 };

/* What the leaves had that had a number before: all of it was freed, so that one number does for both. */
struct former {
    uint64_t blocks, bytes;
};

static struct {
    int64_t peak;
    uint32_t flushes;                 /* counted with more threads than that */
    struct ta__source_counts *shared; /* for threads without an array, and for ta_track: atomic additions */
    struct former *former;            /* by leaf; NULL until one is used again. Written by reclaim.c, relaxed */
    struct ta__lock lock;             /* guards the making of both */
} totals = {.lock = {.rank = TA__RANK_COUNTERS}};

static struct ta__thread *thread_at(int slot)
{
    return (struct ta__thread *)ta__safepoint_member(slot);
}

static void raise_peak(int64_t candidate)
{
    int64_t peak = ta__load_relaxed(&totals.peak);
    while (candidate > peak && !ta__cas_relaxed(&totals.peak, &peak, candidate))
        ;
}

/* The most that may have lived at once since the threads' last flushes. The flushed sum comes first: of a thread that
 * flushes meanwhile, nothing is seen twice. */
static int64_t most_since_flushes(void)
{
    int64_t most = ta__load_acquire(&ta__counters_flushed);
    int used = ta__safepoint_size();
    for (int slot = 0; slot < used; slot++)
        most += ta__load_relaxed(&thread_at(slot)->high);
    return most;
}

/* Could the others' highs, which are TA__FLUSH_BYTES at most, make a new peak? */
static int must_look_at_others(int64_t own)
{
    int64_t others = ta__safepoint_size() - 1;
    if (others <= 0 || own + others * TA__FLUSH_BYTES <= ta__load_relaxed(&totals.peak))
        return 0;
    return others < THREADS_LOOKED_AT ||
           ta__add_relaxed(&totals.flushes, 1u) % (uint64_t)(others / THREADS_LOOKED_AT) == 0;
}

/* What the thread had becomes part of the sum that all see, and the thread that completes a peak sees that it does. */
static void flush(struct ta__thread *self, const int64_t *due)
{
    int64_t high = ta__load_relaxed(&self->high);
    int64_t delta = high - ta__load_relaxed(&self->headroom);
    int64_t own = ta__load_relaxed(&ta__counters_flushed) + high;
    raise_peak(must_look_at_others(own) ? most_since_flushes() : own);
    ta__store_relaxed(&self->high, 0);
    ta__store_relaxed(&self->headroom, 0);
    int64_t before = __atomic_fetch_add(&ta__counters_flushed, delta, __ATOMIC_RELEASE);
    if (TA_UNLIKELY(before + delta >= ta__load_relaxed(due)))
        ta__peak_record(before + delta);
}

void ta__counters_flush(struct ta__thread *self)
{
    flush(self, &ta__peak_due.falling);
}

void ta__counters_due(struct ta__thread *self, int64_t high)
{
    ta__store_relaxed(&self->high, high);
    ta__store_relaxed(&self->headroom, 0);
    if (high > TA__FLUSH_BYTES)
        flush(self, &ta__peak_due.grown);
    else
        ta__peak_record(ta__load_relaxed(&ta__counters_flushed) + high);
}

static void record_if_due(int64_t current)
{
    if (current >= ta__load_relaxed(&ta__peak_due.falling))
        ta__peak_record(current);
}

void ta__counters_before_fall(const struct ta__thread *self)
{
    int64_t own = ta__load_relaxed(&self->high) - ta__load_relaxed(&self->headroom);
    record_if_due(ta__load_relaxed(&ta__counters_flushed) + own);
}

void ta__counters_before_drop(void)
{
    size_t current, peak;
    ta__counters_traced(&current, &peak);
    record_if_due((int64_t)current);
}

/* An array with a row for each leaf, made when it is first wanted; NULL: no memory. */
static void *rows_at(void **place, size_t row_bytes)
{
    void *rows = ta__load_acquire(place);
    if (TA_LIKELY(rows != NULL))
        return rows;
    ta__lock_acquire(&totals.lock);
    if (*place == NULL)
        ta__store_release(place, ta__memory_map(ta__leaf_capacity() * row_bytes));
    ta__lock_release(&totals.lock);
    return ta__load_acquire(place);
}

static struct ta__source_counts *shared_counts(void)
{
    return rows_at((void **)&totals.shared, sizeof *totals.shared);
}

void ta__counters_shared_remove(uint32_t leaf, uint64_t blocks, uint64_t bytes)
{
    struct ta__source_counts *shared = shared_counts();
    if (shared == NULL)
        return;
    ta__counters_before_drop();
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

/* The same of what is live alone: nothing of it is former. Below 0 where a block was freed by another thread. */
TA_INLINE int64_t live_in(const struct ta__source_counts *row)
{
    uint64_t freed = ta__load_relaxed(&row->freed_bytes);
    return (int64_t)(ta__load_relaxed(&row->allocated_bytes) - freed);
}

static void add_live(int64_t *sum, const struct ta__source_counts *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sum[i] += live_in(&row[i]);
}

static void subtract_former(struct ta__source_counts *counts, const struct former *former, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t blocks = ta__load_relaxed(&former[i].blocks);
        uint64_t bytes = ta__load_relaxed(&former[i].bytes);
        counts[i].allocated_blocks -= blocks;
        counts[i].freed_blocks -= blocks;
        counts[i].allocated_bytes -= bytes;
        counts[i].freed_bytes -= bytes;
    }
}

/* The arrays that counts are in, one after the other, from *at = -1 on: the one of all threads, if there is one, and each
 * thread's own. NULL: there is none left. */
static const struct ta__source_counts *next_array(int *at)
{
    const struct ta__source_counts *rows = NULL;
    int used = ta__safepoint_size();
    for (; rows == NULL && *at < used; ++*at)
        rows = *at < 0 ? ta__load_acquire(&totals.shared) : ta__load_acquire(&thread_at(*at)->counts);
    return rows;
}

/* As they were counted: in sampled mode, blocks in units. */
static void fold(uint32_t first, uint32_t n, struct ta__source_counts *counts)
{
    const struct ta__source_counts *rows;
    memset(counts, 0, n * sizeof *counts);
    for (int at = -1; (rows = next_array(&at)) != NULL;)
        add_counts(counts, rows + first, n);
    const struct former *former = ta__load_acquire(&totals.former);
    if (former != NULL)
        subtract_former(counts, former + first, n);
}

/* Leaves that hold nothing touch no memory. */
TA_INLINE int64_t write_live(uint64_t *place, int64_t live)
{
    if (*place != (uint64_t)live)
        ta__store_relaxed(place, (uint64_t)live);
    return live;
}

int64_t ta__counters_write_live(uint64_t *list, uint32_t first, uint32_t end)
{
    enum { AT_ONCE = 32 }; /* whoever allocates may have a small stack */
    int at = -1;
    const struct ta__source_counts *rows = next_array(&at);
    int64_t sum = 0;
    if (rows != NULL && next_array(&at) == NULL) { /* mostly there is one thread */
#pragma GCC unroll 4
        for (uint32_t leaf = first; leaf < end; leaf++)
            sum += write_live(&list[leaf], live_in(&rows[leaf]));
        return sum;
    }
    for (; first < end; first += AT_ONCE) {
        int64_t live[AT_ONCE] = {0};
        uint32_t n = end - first < AT_ONCE ? end - first : AT_ONCE;
        for (at = -1; (rows = next_array(&at)) != NULL;)
            add_live(live, rows + first, n);
        for (uint32_t i = 0; i < n; i++)
            sum += write_live(&list[first + i], live[i] > 0 ? live[i] : 0);
    }
    return sum;
}

int ta__counters_are_settled(uint32_t leaf)
{
    struct ta__source_counts sum;
    fold(leaf, 1, &sum);
    return sum.allocated_blocks == sum.freed_blocks && sum.allocated_bytes == sum.freed_bytes;
}

int ta__counters_bequeath(uint32_t leaf, uint32_t heir)
{
    struct ta__source_counts sum;
    struct ta__source_counts *shared = shared_counts();
    struct former *former = rows_at((void **)&totals.former, sizeof *former);
    if (shared == NULL || former == NULL)
        return 0;
    fold(leaf, 1, &sum);
    ta__store_relaxed(&former[leaf].blocks, former[leaf].blocks + sum.allocated_blocks);
    ta__store_relaxed(&former[leaf].bytes, former[leaf].bytes + sum.allocated_bytes);
    ta__add_relaxed(&shared[heir].allocated_blocks, sum.allocated_blocks);
    ta__add_relaxed(&shared[heir].allocated_bytes, sum.allocated_bytes);
    ta__add_relaxed(&shared[heir].freed_blocks, sum.freed_blocks);
    ta__add_relaxed(&shared[heir].freed_bytes, sum.freed_bytes);
    return 1;
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
    int64_t now = ta__load_acquire(&ta__counters_flushed);
    int used = ta__safepoint_size();
    for (int slot = 0; slot < used; slot++) {
        const struct ta__thread *thread = thread_at(slot);
        /* Below 0 for a moment: the high that it is below is about to grow by as much. */
        int64_t headroom = ta__load_acquire(&thread->headroom);
        now += ta__load_relaxed(&thread->high) - (headroom > 0 ? headroom : 0);
    }
    int64_t most = most_since_flushes();
    raise_peak(most > now ? most : now);
    *current = (size_t)(now > 0 ? now : 0);
    *peak = (size_t)ta__load_relaxed(&totals.peak);
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
    int used = ta__safepoint_size();
    for (int slot = 0; slot < used; slot++) {
        struct ta__thread *thread = thread_at(slot);
        ta__store_relaxed(&thread->high, 0);
        ta__store_relaxed(&thread->headroom, 0);
        if (thread->counts != NULL)
            ta__memory_reset(thread->counts, bytes);
    }
    if (totals.shared != NULL)
        ta__memory_reset(totals.shared, bytes);
    if (totals.former != NULL)
        ta__memory_reset(totals.former, ta__leaf_capacity() * sizeof *totals.former);
    ta__store_relaxed(&ta__counters_flushed, 0);
    ta__store_relaxed(&totals.peak, 0);
    ta__peak_clear();
}

static void fit_rows(void *rows, uint32_t had, uint32_t max, size_t row_bytes)
{
    ta__memory_shrink(rows, had * row_bytes, max * row_bytes);
}

void ta__counters_fit(uint32_t had, uint32_t max)
{
    int used = ta__safepoint_size();
    for (int slot = 0; slot < used; slot++) {
        struct ta__thread *thread = thread_at(slot);
        fit_rows(thread->counts, thread->counts_capacity, max, sizeof *thread->counts);
        if (thread->counts_capacity > max)
            thread->counts_capacity = max;
    }
    ta__lock_acquire(&totals.lock);
    fit_rows(totals.shared, had, max, sizeof *totals.shared);
    fit_rows(totals.former, had, max, sizeof *totals.former);
    ta__lock_release(&totals.lock);
    ta__peak_fit(had, max);
}

void ta__counters_reset_peak(void)
{
    int64_t current = ta__load_relaxed(&ta__counters_flushed);
    int used = ta__safepoint_size();
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
    ta__lock_after_fork(&totals.lock);
    ta__peak_after_fork();
}

/* ---- for readers from outside ------------------------------------------------------------------------------------ */

struct ta__fact ta__facts_counters[] = {
    TA__FACT_AT("counts.flushed", ta__counters_flushed),
    TA__FACT_AT("counts.peak", totals.peak),
    TA__FACT_AT("counts.shared", totals.shared),
    TA__FACT_AT("counts.former", totals.former),
    TA__FACT("counts.bytes", sizeof(struct ta__source_counts)),
    TA__FACT_FIELD("counts.in_blocks", struct ta__source_counts, allocated_blocks),
    TA__FACT_FIELD("counts.in_bytes", struct ta__source_counts, allocated_bytes),
    TA__FACT_FIELD("counts.out_blocks", struct ta__source_counts, freed_blocks),
    TA__FACT_FIELD("counts.out_bytes", struct ta__source_counts, freed_bytes),
    TA__FACT("former.bytes", sizeof(struct former)),
    TA__FACT_FIELD("former.blocks", struct former, blocks),
    TA__FACT_FIELD("former.size", struct former, bytes),
    TA__FACT("sample.unit", TA__SAMPLE_UNIT),
    TA__FACT("thread.bytes", sizeof(struct ta__thread)),
    TA__FACT_FIELD("thread.counts", struct ta__thread, counts),
    TA__FACT_FIELD("thread.headroom", struct ta__thread, headroom),
    TA__FACT_FIELD("thread.high", struct ta__thread, high),
    TA__FACT_FIELD("thread.domains", struct ta__thread, domains),
    TA__FACT_FIELD("thread.lost", struct ta__thread, counted_lost),
    TA__FACT_FIELD("thread.tid", struct ta__thread, tid),
    TA__FACT_FIELD("thread.name", struct ta__thread, name),
    TA__FACTS_END,
};
