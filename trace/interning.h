/* interning.h: the tables of contexts and leaves as contexts.c, leaves.c and reclaim.c share them. Nobody else looks in.
 *
 *   contexts    a row per (parent, address, module): one frame of a stack, given the frames further out
 *   leaves      a row per (context, domain): what headers carry and counters are kept by
 *
 * A context is held by its children and by the leaves that end in it; a leaf by whatever lives under it (reclaim.c). The
 * number of what nothing holds is free, and the next new context or leaf takes it. So the tables are as large as what
 * lives, not as all that ever did.
 *
 * Guarded by the lock, except where a field says how it is read. */
#ifndef TA_TRACE_INTERNING_H
#define TA_TRACE_INTERNING_H

#include <stdint.h>

#include "base/lock.h"
#include "trace/contexts.h"
#include "trace/trace.h"

/* How far reclaiming has come with a leaf. */
enum ta__leaf_state {
    TA__LEAF_IN_USE = 0,
    TA__LEAF_CONDEMNED, /* held nothing when it was looked at; is found by its hash no more, but under the lock */
    TA__LEAF_SETTLED,   /* holds nothing and cannot come to */
    TA__LEAF_FREE,      /* a number, no leaf */
};

/* The cells of a domain: leaves without a stack, and the newest of its list. */
enum { TA__CELL_OVERFLOW, TA__CELL_FORGOTTEN, TA__CELL_NEWEST, TA__CELLS };

enum { TA__INDEX_GENERATIONS = 32 };

/* Beside a latest child: there were others, and all are in the index. Most contexts have one child, which is not. */
#define TA__CONTEXT_BRANCHES (UINT32_C(1) << 31)

struct ta__tables {
    struct ta__lock lock;
    struct ta__source_context *contexts; /* by number, as all arrays here; rows below the count are complete */
    struct ta__source_leaf *leaves;
    uint32_t context_count, leaf_count;  /* numbers in use end here; release after the row; read by any, acquire */
    uint32_t contexts_used, leaves_used; /* how many of them are not free; read by any, relaxed */
    uint32_t context_max, leaf_max;
    uint32_t free_context, free_leaf; /* 0 = none; the next stands in latest_child, next_leaf */
    uint32_t oldest_leaf;             /* the first that may hold a context */
    int is_full;                      /* the cap is reached: new stacks go to <overflow> */

    uint32_t *context_holders; /* children and leaves of a context */
    uint32_t *latest_child;    /* of a context; 0 = none known. Without TA__CONTEXT_BRANCHES its only one */
    uint32_t *children; /* open addressing: children of contexts that branch, by (parent, address, module); 0 = empty */
    uint64_t children_mask;
    uint32_t children_used;
    uint32_t children_tags; /* bits that no number has: an entry has some of its hash there */
    uint32_t *attributions; /* of a context: whose memory it is by the rules (attribution.h); NULL: there are none */

    struct ta__leaf_index indexes[TA__INDEX_GENERATIONS]; /* entries NULL: a free place for the next generation */
    uint64_t index_used;                                  /* entries that are not empty, also those that are gone */
    uint8_t *leaf_states;
    uint64_t *leaf_hashes;   /* under which a leaf stands in the index; 0: it does not */
    uint32_t *next_leaf;     /* the next older one of its domain */
    uint32_t *previous_leaf; /* the next newer one; 0: it is the newest */
    uint32_t *domain_leaves; /* TA__CELLS for each domain */
    uint32_t domain_leaves_capacity;
    int has_domain_rows;    /* leaves of this epoch belong to other domains than 0 */
    uint32_t rows_kept_end; /* behind the last row of an earlier epoch that says such a domain */

    uint32_t readers;    /* who reads the tables as a whole; any thread, sequentially consistent */
    uint32_t is_reusing; /* free numbers are being taken, or made; the same */
    uint64_t generation; /* how often numbers have become free; read by any, relaxed */
};
extern struct ta__tables ta__tables;

/* All of these under the lock. */

#if TA_CHECKS >= 2
/* Does a search for it, as it would be made, end at it? (trace/table_check.c) */
int ta__context_is_found(uint32_t id);
int ta__leaf_is_found(uint32_t leaf);
#endif

/* Numbers may be made free, and taken, until ta__tables_end_reuse; 0: somebody reads. May be nested. */
int ta__tables_begin_reuse(void);
void ta__tables_end_reuse(void);
/* Bytes of the rows in use, with their counters. */
size_t ta__tables_bytes_used(void);

/* The path's context, or 0 when the tables are full. Hold it, or give it up with ta__context_release. */
uint32_t ta__context_of_path(uint32_t base, struct ta__path_frame *path, uint32_t length);
/* Is this context the path's? 0 where that cannot be said at once. Else the path's contexts are filled in. */
int ta__context_is_path(uint32_t context, uint32_t base, struct ta__path_frame *path, uint32_t length);
TA_INLINE void ta__context_hold(uint32_t context)
{
    ta__tables.context_holders[context]++;
}
/* One that held it is gone. Contexts that nobody holds go, outwards from this one. Inside a reuse. */
void ta__context_release(uint32_t context);
/* Contexts that a path made and no leaf took. */
void ta__context_abandon(uint32_t context, struct ta__path_frame *path, uint32_t length);
/* Nobody holds any context; no thread is inside. */
void ta__contexts_reset(void);

int ta__leaves_make(uint32_t max_leaves); /* maps the arrays of leaves; 0: no memory */
void ta__leaves_fit(uint32_t max_leaves); /* the arrays, and those of the counters, have no more room than that */
size_t ta__leaf_rows_memory(void);
/* Leaves that reclaiming may take: not those that a domain has without a stack. */
int ta__leaf_is_of_stack(uint32_t leaf);
/* From now on the leaf is not found by its hash without the lock; or again. */
void ta__leaf_condemn(uint32_t leaf);
void ta__leaf_restore(uint32_t leaf);
/* The leaf that reclaimed ones of this domain bequeath their counters to; 0: no memory. */
uint32_t ta__leaf_heir(uint32_t domain);
/* The row, and what only it held. Inside a reuse. */
void ta__leaf_free(uint32_t leaf);
/* The same for one of an earlier epoch, whose number nobody gets. */
void ta__leaf_drop_old(uint32_t leaf);
/* Index generations that were replaced: those of before ta__leaf_index_note_old can go once nobody can hold them. */
void ta__leaf_index_note_old(void);
void ta__leaf_index_drop_old(void);

#endif
