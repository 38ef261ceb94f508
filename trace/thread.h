/* thread.h: what tracealloc keeps for one thread, in memory of its own that outlives the thread.
 *
 * Written by its owner alone; the fields marked "read by any" are read by others with relaxed loads. It is found
 * through one thread-local pointer, ta__self, which is never NULL: before a thread's first allocation it points to a
 * shared empty structure whose heap is empty, so that the fast path needs no test. After the thread's end the structure
 * goes to the next new thread together with its counters, of which only the sum over all threads has meaning. */
#ifndef TA_TRACE_THREAD_H
#define TA_TRACE_THREAD_H

#include <stdint.h>

#include "base/attributes.h"
#include "base/world.h"
#include "trace/source.h"

struct ta__state;
struct ta__slot;
struct ta__scope;
struct ta__domain_parts;
struct ta__near_rule;
struct ta__near_leaf;

struct ta__thread {
    /* -- line 0: touched by every operation -- */
    struct ta__world_member world;
    void *theap;                      /* alloc: this thread's part of the heap of domain 0 */
    struct ta__source_counts *counts; /* by leaf; read by any */
    int64_t headroom;                 /* bytes below the highest current since the last flush; read by any */
    int64_t high;                     /* that highest, counted from the flush: current = flushed + high - headroom */
    uint64_t epoch_bits;              /* the epoch where headers have it: blocks of others have no trace any more */
    void *(*allocate)(size_t size, struct ta__thread *self); /* alloc: what malloc does while something is traced */
    uint64_t one_ip;                                         /* with a limit of one frame: the last call site */

    /* -- line 1: capture -- */
    _Alignas(TA_CACHE_LINE) struct ta__state *states; /* the memo: the last stack, outermost first */
    struct ta__slot *slots;                           /* the words it was read from, in the same order */
    struct ta__state *new_states;                     /* a walk in progress, innermost first */
    struct ta__slot *new_slots;
    struct ta__scope *scope;         /* alloc: the innermost scope; NULL: none, domain 0 */
    uint32_t one_leaf;               /* of one_ip */
    uint32_t traced_check;           /* alloc: what headers of this epoch carry */
    uint32_t depth;                  /* states in the memo */
    uint32_t limit;                  /* frames kept per stack */
    uint64_t limit_power;            /* multiplier of the rolling hash to the power of limit */
    uintptr_t stack_low, stack_high; /* the stack that the memo describes: all reads lie inside */
    uint32_t one_domain;             /* of one_leaf */
    int64_t sample_left;             /* sampled mode: bytes until the next sample */
    struct ta__near_rule *near_rules;
    struct ta__near_leaf *near_leaves;
    uint64_t near_tag; /* the tag of the shared rules that they are copies of */

    /* -- cold -- */
    void *deferred;                      /* alloc: blocks freed inside a signal handler, to be freed later */
    struct ta__domain_parts *domains;    /* alloc: this thread's part of all other domains; read by any, acquire */
    uint32_t crossed;                    /* alloc: index of a domain whose limit was crossed; 0 = none */
    uintptr_t own_low, own_high;         /* the thread's own stack */
    uintptr_t foreign_low, foreign_high; /* the mapping of the last other stack it ran on */
    uint64_t sample_random;
    uint64_t counted_lost, counted_cut_short; /* read by any */
    int32_t slot;                             /* in base/world */
    int32_t number; /* of threads, in the order of their first allocation: what a snapshot calls a thread */
    int32_t tid;
    uint32_t counts_capacity; /* leaves that counts has room for */
    uint32_t state_capacity;
    uint8_t is_main;
    uint8_t is_ready; /* alloc finished its part of the set-up */
    uint8_t no_trace; /* allocations of this thread stay untraced while set: our own helpers */
    uint64_t name[2]; /* 16 characters, as they were at its first allocation; read by any */
};

_Static_assert(__builtin_offsetof(struct ta__thread, states) == 64, "the hot fields fill one cache line");

#endif
