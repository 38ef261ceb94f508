/* domains.h: numbered address spaces. A domain's public number is any 32-bit value; inside it is a small index.
 *
 *   number ──table──► index ──► struct ta__domain        one per life of a number: heap, name, limit
 *                       │
 *                       └────► struct ta__domain_slot    per thread: its part of the heap, its counters
 *
 * Index 0 is domain 0, which exists from the start and is not counted here: its figures are those of the traces. A
 * destroyed domain's number gets a new index when it is used again, so that headers and leaves keep naming the old
 * life; an index is used again only after many other domains were destroyed (RETIRED_MIN in domains.c).
 *
 * A thread's slots are written by their owner alone and stay when it ends: only sums over threads have meaning. The
 * innermost scope of a thread is self->scope, an entry of a stack of its own. All of it lies in one mapping, resident
 * where touched, which a thread gets when any domain but 0 is first used in the process. */
#ifndef TA_ALLOC_DOMAINS_DOMAINS_H
#define TA_ALLOC_DOMAINS_DOMAINS_H

#include <stddef.h>
#include <stdint.h>

#include "alloc/header.h"
#include "base/atomics.h"
#include "trace/thread_state.h"
#include "trace/trace.h"

enum { TA__DOMAINS_MAX = 1 << 17, TA__DOMAIN_NONE = -1 };
/* Where a number is expected: whatever the thread's innermost scope says. */
#define TA__DOMAIN_AMBIENT UINT64_MAX

struct ta__domain {
    uint32_t number;
    uint32_t index;
    uint32_t flags;       /* TA__DOMAIN_* of trace/source.h */
    void *heap;           /* its own; NULL: no block with a header yet, or it shares another's (heap_index) */
    uint32_t heap_index;  /* the domain whose heap it uses: itself normally; 0 = not decided; release after the heap */
    uint32_t is_shared;   /* written before heap_index */
    uint32_t first_block; /* of a shared heap: shared_blocks.h; under its lock */
    const char *name;     /* "" when it has none; lives for ever */
    int64_t current;      /* bytes, flushed by threads; atomic */
    int64_t peak;
    uint64_t soft, hard; /* limits in bytes; 0 = none */
    uint32_t is_above;   /* the soft limit was crossed and said so */
    uint32_t crossings;
    uint32_t is_ruled;   /* a rule in force names it: it cannot be destroyed */
    uint32_t is_tracked; /* ta_track recorded something in it */
    void (*callback)(uint32_t number, uint64_t live_bytes, void *context);
    void *context;
    /* What counts to no thread's slot: by threads that could not have one. Atomic. */
    uint64_t lone_allocated_blocks, lone_allocated_bytes, lone_freed_blocks, lone_freed_bytes;
};

/* One thread's part of one domain. A slot that has a part of a heap is named by the part's pages: free finds it there,
 * and compares its checks with the block's mark. Without a part they match no mark (docs/invariants.md, D-4). */
struct ta__domain_slot {
    void *theap; /* TA__THEAP_EMPTY: not yet asked for, gone, or of a shared heap; NULL: the slot is not in use */
    uint64_t allocated_blocks, allocated_bytes, freed_blocks, freed_bytes; /* read by any */
    int64_t headroom; /* bytes below the highest since the last flush; as in trace/counters.c; read by any */
    uint64_t
        untraced_mark;     /* of an untraced block of no bytes, without the address: the domain's index, the check, 1 */
    uint32_t cold;         /* index into cold; 0 = the slot is not yet in use */
    uint16_t traced_check; /* of the marks of traced blocks, without the address */
};
_Static_assert(sizeof(struct ta__domain_slot) == TA_CACHE_LINE, "the index of one is a shift");

TA_INLINE uint32_t ta__slot_index(const struct ta__domain_slot *slot)
{
    return ta__mark_leaf(slot->untraced_mark);
}

TA_INLINE uint16_t ta__slot_untraced_check(const struct ta__domain_slot *slot)
{
    return (uint16_t)slot->untraced_mark;
}

/* The owner of pages with headers that belong to no slot: its checks match no mark. */
extern struct ta__domain_slot ta__slot_none;

struct ta__domain_cold {
    int64_t high; /* highest sum since the last flush: the thread's share = high - headroom; read by any */
    uint32_t index;
};

/* An entry of a thread's stack of scopes. Entries above the top keep what they were: pushing the same again is one
 * comparison. */
struct ta__scope {
    struct ta__domain_slot *slot; /* where ambient allocations go; NULL in a thread without slots */
    uint64_t key;                 /* the number that a push compares with, or one of the marks */
    uint32_t number;
    uint32_t capture; /* what ta__capture is told */
};
#define TA__SCOPE_UNCACHED UINT64_MAX       /* equals no number */
#define TA__SCOPE_EDGE     (UINT64_MAX - 1) /* no number either; and popping it is not simple */

enum { TA__SCOPES_MAX = 1 << 16 };

struct ta__domain_parts {
    struct ta__domain_slot slots[TA__DOMAINS_MAX];
    struct ta__domain_cold cold[TA__DOMAINS_MAX]; /* of the slots in use, from 1 */
    struct ta__scope scopes[TA__SCOPES_MAX];      /* [0]: no scope */
    uint32_t cold_count;                          /* release after the slot; read by any, acquire */
    uint32_t scopes_filled;                       /* entries that may hold a slot */
    uint32_t scopes_over;                         /* pushes beyond the last entry: they change nothing */
};

/* ---- the table (any thread; takes a lock when the number is not in its cache) ------------------------------------ */

int ta__domains_init(void);
/* The heap of what is not traced and of domain 0. */
extern void *ta__plain_heap;
/* With the world stopped: visit(heap, index of the domain, context) for each of all others. */
void ta__domain_heaps(void (*visit)(void *heap, uint32_t domain, void *context), void *context);
/* The index of a number, made if it is new or destroyed; TA__DOMAIN_NONE when there is no room. Inside an operation. */
int ta__domain_index(uint32_t number);
/* The same, but never made. */
int ta__domain_known(uint32_t number);
uint32_t ta__domain_count(void);
struct ta__domain *ta__domain_at(uint32_t index);
/* In the child; `self`: the thread that forked. */
void ta__domains_after_fork(const struct ta__thread *self);
void ta__domain_rules_after_fork(void);
/* What all threads counted in a domain other than 0, summed now. */
void ta__domain_sum(uint32_t index, struct ta__source_counts *sum, uint64_t *peak);
/* Did a domain that was destroyed have blocks near this address? */
int ta__domain_stood_at(const void *address);
/* Changes the soft limit of a domain that there is, and the hard one unless `hard` is NULL; the callback stays. */
int ta__domain_limit_bytes(uint32_t domain, uint64_t soft, const uint64_t *hard);
/* Set by the module above: a soft limit was crossed. Called outside the allocator, by the thread that allocated. */
extern void (*ta__domain_on_limit)(uint32_t number);

TA_INLINE int ta__domain_is_dead(const struct ta__domain *domain)
{
    return (ta__load_relaxed(&domain->flags) & TA__DOMAIN_DESTROYED) != 0;
}

/* Recently used numbers: number << 32 | index; 0 = none, for number 0 never asks. */
enum { TA__DOMAIN_CACHE = 1 << 12 };
extern uint64_t ta__domain_cache[TA__DOMAIN_CACHE];

/* ---- a thread's part (inside an operation) ----------------------------------------------------------------------- */

/* A stack of scopes with nothing on it, for threads without slots. */
extern struct ta__scope ta__scope_none[2];

/* The gate says that domains are in use: the thread gets its mapping, and scopes learn about rules. 0: no memory. */
int ta__domains_adapt(struct ta__thread *self);
/* The thread's slot; NULL when there is no memory. */
struct ta__domain_slot *ta__domain_slot(struct ta__thread *self, uint32_t index);
/* The thread has a part of the heap that is the domain's alone; or it has none any more. */
void ta__slot_take_part(struct ta__domain_slot *slot, void *part);
void ta__slot_lose_part(struct ta__domain_slot *slot);
int ta__slot_has_part(const struct ta__domain_slot *slot);
/* Its part of the domain's heap of blocks with headers, made if needed; NULL when there is no memory. */
void *ta__domain_part(struct ta__thread *self, uint32_t index);
/* Its part of the heap of small blocks of domain 0 that have headers and stand at lines, the same. */
void *ta__lined_part(struct ta__thread *self);
/* The index that ambient allocations go to. */
uint32_t ta__domain_ambient(struct ta__thread *self);
/* What ta__capture is to be told for an explicit index. */
uint32_t ta__domain_capture(uint32_t index);
void ta__domains_thread_done(struct ta__thread *self);

/* Counts a block that is about to be handed out; 0: the limit refuses it. Index 0 is not counted. */
TA_NODISCARD int ta__domain_charge(struct ta__thread *self, uint32_t index, size_t size);
/* The same for memory that is there already: no limit can refuse it. */
void ta__domain_note(struct ta__thread *self, uint32_t index, size_t size);
/* A block goes. */
void ta__domain_discharge(struct ta__thread *self, uint32_t index, size_t size);
/* A discharge that came to nothing: as if it had not been. */
void ta__domain_recharge(struct ta__thread *self, uint32_t index, size_t size);
/* After ta__end: calls back when a limit was crossed in the operation. May run the program's code. */
TA_COLD void ta__domain_say_crossed(struct ta__thread *self);

/* The slot's headroom is negative: a new highest. 0: the limit refuses, and the count is taken back. */
TA_COLD int ta__domain_new_high(struct ta__thread *self, struct ta__domain_slot *slot, size_t size);
TA_COLD void ta__domain_flush(struct ta__thread *self, struct ta__domain_slot *slot);

/* The owner's plain stores. Answers whether ta__domain_new_high must decide. */
TA_NODISCARD TA_INLINE int ta__domain_count_in(struct ta__domain_slot *slot, size_t size)
{
    ta__owner_add(&slot->allocated_blocks, 1);
    ta__owner_add(&slot->allocated_bytes, size);
    ta__owner_add(&slot->headroom, -(int64_t)size);
    return slot->headroom < 0;
}

TA_INLINE void ta__domain_count_out(struct ta__domain_slot *slot, size_t size)
{
    ta__owner_add(&slot->freed_blocks, 1);
    ta__owner_add(&slot->freed_bytes, size);
    ta__owner_add_in_place(&slot->headroom, size);
}

TA_INLINE int ta__domain_is_flush_due(const struct ta__domain_slot *slot)
{
    return slot->headroom > TA__FLUSH_BYTES;
}

#endif
