/* contexts.h: stacks become numbers — the part of interning that only trace/ needs. See contexts.c and leaves.c. */
#ifndef TA_TRACE_CONTEXTS_H
#define TA_TRACE_CONTEXTS_H

#include <stdint.h>

#include "base/atomics.h"
#include "base/hash.h"
#include "trace/trace.h"

/* One entry of the table of leaves by hash: open addressing. `leaf` and `trust` are stored before `hash` (release), so
 * that a reader who sees the hash (acquire) sees them. An entry that is no longer needed is taken for another hash: it
 * has another one first, which the reader sees when it looks at the hash again. */
struct ta__leaf_entry {
    uint64_t hash; /* 0 = empty */
    uint32_t leaf;
    uint32_t trust;
};
enum {
    TA__TRUST_NOT_YET = 0,   /* seen once */
    TA__TRUSTED = 1,         /* a second walk compared the whole stack: equal hashes are believed from now on */
    TA__TRUST_NEVER = 2,     /* two stacks have this hash: compare always */
    TA__TRUST_CONDEMNED = 4, /* beside one of these: reclaiming looks at the leaf */
};

struct ta__leaf_index {
    uint64_t mask;
    struct ta__leaf_entry *entries;
};

/* Replaced by a larger one when it is too full; an old one stays mapped, and empty, while a reader may still hold it. */
extern struct ta__leaf_index *ta__leaf_index;

/* Changes before numbers may come to mean other leaves: what a thread has noted of them is void then. */
extern uint32_t ta__leaf_meaning;

/* The hash under which a stack is looked up: of its most recent frames, of its depth and of its domain. */
TA_INLINE uint64_t ta__leaf_hash(uint64_t stack_hash, uint32_t total, uint32_t domain)
{
    uint64_t hash = ta__hash_roll(stack_hash ^ ((uint64_t)domain << 32 | total), TA__GOLDEN);
    return hash | 1; /* never the mark of an entry without a stack */
}

/* One probe: the leaf, or 0 when the stack is new, not yet trusted or condemned. Inside an operation. */
TA_INLINE uint32_t ta__leaf_find(uint64_t hash)
{
    const struct ta__leaf_index *index = ta__load_acquire(&ta__leaf_index);
    for (uint64_t at = (hash >> 7) & index->mask;; at = (at + 1) & index->mask) {
        const struct ta__leaf_entry *entry = &index->entries[at];
        uint64_t found = ta__load_acquire(&entry->hash);
        if (TA_LIKELY(found == hash)) {
            uint32_t trust = ta__load_acquire(&entry->trust);
            uint32_t leaf = ta__load_acquire(&entry->leaf); /* pairs with the release in leaves.c */
            return TA_LIKELY(trust == TA__TRUSTED && ta__load_relaxed(&entry->hash) == hash) ? leaf : 0;
        }
        if (found == 0)
            return 0;
    }
}

/* The leaf of a path (flags of trace/source.h), found or made: `base`, a context known from before or 0, and what comes
 * on top of it (outermost frame first). Cold: takes a lock. 0 when no memory can be had; the overflow leaf when the cap
 * is reached. */
uint32_t ta__leaf_intern(uint64_t hash, uint32_t base, struct ta__path_frame *path, uint32_t length, uint32_t total,
                         uint32_t domain, uint32_t flags);

/* Lets `change` put other rules in force, with no stack being interned meanwhile, and applies them to every context
 * there is. Leaves that exist keep their domain. 0: no memory; nothing was changed. */
int ta__contexts_attribute(void (*change)(void *context), void *context);

/* With the world stopped: the leaves there are belong to the past, and their memory goes back. New ones get numbers
 * beyond theirs. */
void ta__leaves_begin_epoch(void);
/* So many numbers are used up that they should begin anew... */
int ta__leaves_are_spent(void);
/* ...which they do, with the world stopped and no header that carries one but the untraced leaf of a domain. */
void ta__leaves_renumber(void);

/* After fork in the child: the lock is free again. */
void ta__contexts_after_fork(void);

#endif
