/* trace.h: the public face of tracing inside the library — all that alloc and snapshot may know of it.
 *
 * alloc asks for a leaf and counts; control starts and stops; snapshot reads the tables. Nothing here calls alloc. */
#ifndef TA_TRACE_TRACE_H
#define TA_TRACE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/facts.h"
#include "trace/peak.h"
#include "trace/source.h"
#include "trace/thread_state.h"

/* ---- capture.c: who asks for memory ------------------------------------------------------------------------------ */

/* ta__capture, in capture.h: the leaf of a stack. This is its rest, for stacks that are not kept there. */
uint32_t ta__capture_by_walk(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint32_t domain);

/* The same when the limit is one frame: the call site alone. */
uint32_t ta__capture_one(struct ta__thread *self, uintptr_t ip, uint32_t domain);

/* Memory for the memo and the counters of a new thread; 0 when there is none: it stays untraced. */
int ta__capture_thread_init(struct ta__thread *self);
/* Resident bytes of a thread's memo and counters. */
size_t ta__capture_resident(const struct ta__thread *thread);
/* Forgets the remembered stack. */
void ta__capture_forget(struct ta__thread *self);
/* The same for the stacks that are kept, and the leaves that were noted. */
void ta__capture_forget_leaves(struct ta__thread *self);
/* No thread is inside, and none will use what it remembers: the memory goes back. */
void ta__capture_give_back(void);

/* ---- contexts.c: stacks become numbers --------------------------------------------------------------------------- */

/* One frame of a path that is to be interned. */
struct ta__path_frame {
    uint64_t address; /* a return address; one more than the address of a frame that a signal interrupted */
    uint32_t salt;    /* which occupant of the address: see modules.h */
    uint32_t context; /* out: the path from its beginning to this frame; 0 = the table is full */
};

/* With the world stopped: tables give back address space that they do not need, down to a quarter of `room`. */
void ta__contexts_fit(size_t room);
int ta__contexts_init(uint32_t max_contexts); /* 1 when they are there, also from before */
/* Where the numbers end; how many are in use. */
uint32_t ta__context_count(void);
uint32_t ta__contexts_used(void);
uint32_t ta__leaf_count(void);
uint32_t ta__leaves_used(void);
/* Of the present epoch: lower numbers in headers are of earlier ones, and no trace. In the first epoch there are none. */
enum { TA__LEAF_FIRST = 1 };
extern uint32_t ta__leaf_first;
/* Between the two no number is used again: who looks at more than what a live block holds. Not inside an operation.
 * open answers how often numbers have been used again. */
uint64_t ta__tables_open(void);
void ta__tables_close(void);
uint32_t ta__leaf_capacity(void);
const struct ta__source_context *ta__contexts(void);
const struct ta__source_leaf *ta__leaves(void);
TA_INLINE uint32_t ta__leaf_domain(uint32_t leaf)
{
    return leaf == 0 ? 0 : ta__leaves()[leaf].domain;
}
/* The frames of a leaf, most recent first: up to max are stored, the number of all is returned. */
size_t ta__leaf_frames(uint32_t leaf, uint64_t *addresses, size_t max);
/* The leaf that stands for all stacks of a domain that could not be interned. */
uint32_t ta__leaf_overflow(uint32_t domain);
/* The leaves of a domain, newest first: starts with leaf 0, ends with leaf 0. */
uint32_t ta__leaf_next(uint32_t domain, uint32_t leaf);
size_t ta__contexts_memory(void);

/* ---- counters.c: what the leaves hold ------------------------------------------------------------------------------
 */

enum { TA__FLUSH_BYTES = 64 * 1024, TA__LARGE_FALL = TA__FLUSH_BYTES / 2 };

/* What threads have flushed, live bytes: any thread, atomic. */
extern int64_t ta__counters_flushed;

/* A new high that is worth more than being remembered: see ta__counters_new_high. */
TA_COLD void ta__counters_due(struct ta__thread *self, int64_t high);
TA_COLD void ta__counters_flush(struct ta__thread *self);
/* So much is freed next that a flush would come too late to see the peak (TA__LARGE_FALL). */
TA_COLD void ta__counters_before_fall(const struct ta__thread *self);
/* A free by a thread without counters of its own: atomic. */
void ta__counters_shared_remove(uint32_t leaf, uint64_t blocks, uint64_t bytes);
/* Is all that was ever allocated under the leaf freed? True for good when nobody can allocate under it any more. */
int ta__counters_are_settled(uint32_t leaf);
/* A settled leaf's totals become another's: its own are 0 from here on. 0: no memory. */
int ta__counters_bequeath(uint32_t leaf, uint32_t heir);
/* All that a leaf holds becomes freed; the world is stopped. It is taken out of what was flushed, at once: before it, or
 * before several, somebody looks whether there is a peak. */
void ta__counters_before_drop(void);
void ta__counters_drop(uint32_t leaf);
/* counts[i] = sum over threads of leaf first + i. */
void ta__counters_fold(uint32_t first, uint32_t n, struct ta__source_counts *counts);
/* Puts what leaves hold into a list, by leaf; answers the sum. */
int64_t ta__counters_write_live(uint64_t *list, uint32_t first, uint32_t end);
void ta__counters_traced(size_t *current, size_t *peak);

/* An allocation of `size` bytes under `leaf`: the owner's plain stores. Answers whether there is a new high, which the
 * caller must then say with ta__counters_new_high. */
TA_NODISCARD TA_INLINE int ta__count_in_row(struct ta__thread *self, struct ta__source_counts *row, size_t size)
{
    ta__owner_add(&row->allocated_blocks, 1);
    ta__owner_add(&row->allocated_bytes, size);
    ta__owner_add(&self->headroom, -(int64_t)size);
    return self->headroom < 0;
}

TA_NODISCARD TA_INLINE int ta__count_in(struct ta__thread *self, uint32_t leaf, size_t size)
{
    return ta__count_in_row(self, &self->counts[leaf], size);
}

/* The headroom is negative: current has a new highest value, which is remembered. 0: it is so high that
 * ta__counters_new_high must do more. */
TA_NODISCARD TA_INLINE int ta__counters_raise(struct ta__thread *self)
{
    int64_t high = self->high - ta__load_relaxed(&self->headroom); /* read again, so that it is kept for nobody else */
    if (TA_UNLIKELY(high > TA__FLUSH_BYTES ||
                    ta__load_relaxed(&ta__counters_flushed) + high >= ta__load_relaxed(&ta__peak_due.grown)))
        return 0;
    ta__store_relaxed(&self->high, high);
    ta__store_relaxed(&self->headroom, 0);
    return 1;
}

/* The same; flushes when it is high enough. */
TA_INLINE void ta__counters_new_high(struct ta__thread *self)
{
    if (TA_UNLIKELY(!ta__counters_raise(self)))
        ta__counters_due(self, self->high - self->headroom);
}

/* An allocation that came to nothing. */
TA_INLINE void ta__count_undo(struct ta__thread *self, uint32_t leaf, size_t size)
{
    struct ta__source_counts *counts = &self->counts[leaf];
    ta__owner_add(&counts->allocated_blocks, (uint64_t)-1);
    ta__owner_add(&counts->allocated_bytes, -(uint64_t)size);
    ta__owner_add(&self->headroom, (int64_t)size);
}

/* A free. Afterwards the caller looks whether so much was freed that ta__counters_flush is due. */
TA_INLINE void ta__count_out(struct ta__thread *self, uint32_t leaf, size_t size)
{
    struct ta__source_counts *counts = &self->counts[leaf];
    ta__owner_add(&counts->freed_blocks, 1);
    ta__owner_add(&counts->freed_bytes, size);
    ta__owner_add_in_place(&self->headroom, size);
}

TA_INLINE int ta__is_flush_due(const struct ta__thread *self)
{
    return self->headroom > TA__FLUSH_BYTES;
}

/* The same where speed does not matter. */
TA_INLINE void ta__count_allocation(struct ta__thread *self, uint32_t leaf, size_t size)
{
    if (ta__count_in(self, leaf, size))
        ta__counters_new_high(self);
}

TA_INLINE void ta__count_free(struct ta__thread *self, uint32_t leaf, size_t size)
{
    ta__count_out(self, leaf, size);
    if (ta__is_flush_due(self))
        ta__counters_flush(self);
}

/* ---- control.c: on, off, clear --------------------------------------------------------------------------------------
 */

struct ta__trace_config {
    uint32_t limit;
    uint64_t sample_bytes; /* 0 = every allocation */
    uint32_t max_contexts;
    uint64_t table_memory; /* bytes; 0 = by what lives */
};

/* The gate changed since this thread looked: it adopts mode, limit and epoch. Inside an operation. 0: there is no memory
 * for tracing in this thread. */
TA_NODISCARD int ta__trace_adapt(struct ta__thread *self, uint32_t gate);
/* The tables of leaves, also while nothing is traced; 0: no memory. */
int ta__trace_tables_ready(void);
void ta__trace_configure(const struct ta__trace_config *config);
/* From now on every request and free of domain 0 looks whether its address has a record of ta_track (TA__GATE_TRACKED).
 * Not inside an operation. 0: that could not be had; the error says why. */
int ta__trace_watch_addresses(void);
uint64_t ta__trace_epoch(void);
uint64_t ta__trace_sample_bytes(void);
/* Does a block's leaf stand for a trace that still counts? Inside an operation. */
int ta__trace_is_present(uint32_t leaf);
/* In the child of a fork: every lock that a vanished thread held is free again. */
void ta__trace_after_fork_in_child(void);

/* Events that belong to no leaf; any thread. */
struct ta__trace_events {
    uint64_t lost, overflowed, cut_short, foreign_frees, invalid_frees, snapshot_errors;
};
extern struct ta__trace_events ta__trace_events;

/* ---- what control needs from the module above, given at set-up --------------------------------------------------- */

struct ta__trace_hooks {
    struct ta__thread *(*self)(void); /* the calling thread's structure, made if it has none; NULL: no memory */
    /* With the world stopped: walks all blocks and takes the traces out of their headers. */
    void (*scrub_headers)(void);
    /* With the world stopped: no thread goes on in the mode that it has adapted to. */
    void (*leave_modes)(void);
    /* The same: what ta_track recorded in a domain is recorded no more. */
    void (*drop_record)(uint32_t domain, size_t size);
};
void ta__trace_set_hooks(const struct ta__trace_hooks *hooks);

/* What a reader of this process's memory is told: base/facts.h. */
extern struct ta__fact ta__facts_control[], ta__facts_interning[];

#endif
