/* trace.h: the public face of tracing inside the library — all that alloc and snapshot may know of it.
 *
 * alloc asks for a leaf and counts; control starts and stops; snapshot reads the tables. Nothing here calls alloc. */
#ifndef TA_TRACE_TRACE_H
#define TA_TRACE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "trace/peak.h"
#include "trace/source.h"
#include "trace/thread.h"

/* ---- capture.c: who asks for memory ------------------------------------------------------------------------------ */

/* ta__capture, in paths.h: the leaf of a stack. This is its rest, for stacks that are not kept there. */
uint32_t ta__capture_by_walk(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint32_t domain);

/* The same when the limit is one frame: the call site alone. */
uint32_t ta__capture_one(struct ta__thread *self, uintptr_t ip, uint32_t domain);

/* Memory for the memo and the counters of a new thread; 0 when there is none: it stays untraced. */
int ta__capture_thread_init(struct ta__thread *self);
/* Resident bytes of a thread's memo and counters. */
size_t ta__capture_resident(const struct ta__thread *thread);
/* Forgets the remembered stack. */
void ta__capture_forget(struct ta__thread *self);

/* ---- contexts.c: stacks become numbers --------------------------------------------------------------------------- */

/* One frame of a path that is to be interned. */
struct ta__path_frame {
    uint64_t address; /* a return address; one more than the address of a frame that a signal interrupted */
    uint32_t salt;    /* which occupant of the address: see modules.h */
    uint32_t context; /* out: the path from its beginning to this frame; 0 = the table is full */
};

int ta__contexts_init(uint32_t max_contexts); /* 1 when they are there, also from before */
uint32_t ta__context_count(void);
uint32_t ta__leaf_count(void);
uint32_t ta__leaf_capacity(void);
const struct ta__source_context *ta__contexts(void);
const struct ta__source_leaf *ta__leaves(void);
TA_INLINE uint32_t ta__leaf_domain(uint32_t leaf)
{
    return leaf == 0 ? 0 : ta__leaves()[leaf].domain;
}
/* The frames of a leaf, most recent first: up to max are stored, the number of all is returned. */
size_t ta__leaf_frames(uint32_t leaf, uint64_t *addresses, size_t max);
/* The leaf that stands for all stacks of a domain that could not be interned, and the one for untraced blocks of it. */
uint32_t ta__leaf_overflow(uint32_t domain);
uint32_t ta__leaf_untraced(uint32_t domain);
/* The leaves of a domain but the untraced one, newest first: starts with leaf 0, ends with leaf 0. */
uint32_t ta__leaf_next(uint32_t domain, uint32_t leaf);
size_t ta__contexts_memory(void);

/* ---- counters.c: what the leaves hold ------------------------------------------------------------------------------
 */

enum { TA__FLUSH_BYTES = 64 * 1024 };

/* What threads have flushed, live bytes: any thread, atomic. */
extern int64_t ta__counters_flushed;

/* A new high that is worth more than being remembered: see ta__counters_new_high. */
TA_COLD void ta__counters_due(struct ta__thread *self, int64_t high);
TA_COLD void ta__counters_flush(struct ta__thread *self);
/* A free by a thread without counters of its own: atomic. */
void ta__counters_shared_remove(uint32_t leaf, uint64_t blocks, uint64_t bytes);
/* All that a leaf holds becomes freed; the world is stopped. */
void ta__counters_drop(uint32_t leaf);
/* counts[i] = sum over threads of leaf first + i. */
void ta__counters_fold(uint32_t first, uint32_t n, struct ta__source_counts *counts);
void ta__counters_traced(size_t *current, size_t *peak);

/* An allocation of `size` bytes under `leaf`: the owner's plain stores. Answers whether there is a new high, which the
 * caller must then say with ta__counters_new_high. */
TA_NODISCARD TA_INLINE int ta__count_in(struct ta__thread *self, uint32_t leaf, size_t size)
{
    struct ta__source_counts *counts = &self->counts[leaf];
    ta__owner_add(&counts->allocated_blocks, 1);
    ta__owner_add(&counts->allocated_bytes, size);
    ta__owner_add(&self->headroom, -(int64_t)size);
    return self->headroom < 0;
}

/* The headroom is negative: current has a new highest value. Flushes when it is high enough. */
TA_INLINE void ta__counters_new_high(struct ta__thread *self)
{
    int64_t high = self->high - self->headroom;
    if (TA_UNLIKELY(high > TA__FLUSH_BYTES ||
                    ta__load_relaxed(&ta__counters_flushed) + high >= ta__load_relaxed(&ta__peak_due.grown))) {
        ta__counters_due(self, high);
        return;
    }
    ta__store_relaxed(&self->high, high);
    ta__store_relaxed(&self->headroom, 0);
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
    ta__owner_add(&self->headroom, (int64_t)size);
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
};

/* The gate changed since this thread looked: adopts mode, limit and epoch. Called outside of pending stops. */
void ta__trace_adapt(struct ta__thread *self, uint32_t gate);
/* The tables of leaves, also while nothing is traced; 0: no memory. */
int ta__trace_tables_ready(void);
void ta__trace_configure(const struct ta__trace_config *config);
uint64_t ta__trace_epoch(void);
uint64_t ta__trace_sample_bytes(void);
/* The present epoch where headers have it. */
uint64_t ta__trace_epoch_bits(void);
/* Do headers with this epoch carry a trace that still counts? Inside an operation. */
int ta__trace_is_present(uint32_t epoch);
/* An epoch that none ever is: the block's trace is what ta_track recorded for its address. */
enum { TA__EPOCH_TRACKED = 0xFFFF };
/* Around fork: no change of mode is under way; in the child every lock is free again. */
void ta__trace_before_fork(void);
void ta__trace_after_fork_in_parent(void);
void ta__trace_after_fork_in_child(void);

/* Events that belong to no leaf; any thread. */
struct ta__trace_events {
    uint64_t lost, overflowed, cut_short, foreign_frees, invalid_frees, snapshot_errors;
};
extern struct ta__trace_events ta__trace_events;

/* ---- what control needs from the module above, given at set-up --------------------------------------------------- */

struct ta__trace_hooks {
    struct ta__thread *(*self)(void); /* the calling thread's structure, set up; NULL when it cannot be had */
    /* Walks all blocks with the world stopped and takes the traces of the given epoch out of their headers. */
    void (*scrub_headers)(void);
};
void ta__trace_set_hooks(const struct ta__trace_hooks *hooks);

#endif
