/* thread_state.h: what tracealloc keeps for one thread, in memory of its own that outlives the thread.
 *
 * Written by its owner alone; the fields marked "read by any" are read by others with relaxed loads. It is found
 * through one thread-local pointer, ta__self, which is never NULL: before a thread's first allocation it points to a
 * shared empty structure whose heap is empty, so that the fast path needs no test. After the thread's end the structure
 * goes to the next new thread together with its counters, of which only the sum over all threads has meaning. */
#ifndef TA_TRACE_THREAD_STATE_H
#define TA_TRACE_THREAD_STATE_H

#include <stdint.h>

#include "base/attributes.h"
#include "base/safepoint.h"
#include "trace/source.h"

struct ta__state;
struct ta__slot;
struct ta__scope;
struct ta__domain_parts;
struct ta__near;

struct ta__thread {
    /* -- line 0: touched by every operation -- */
    struct ta__safepoint_member safepoint;
    void *theap;                      /* alloc: this thread's part of the plain heap */
    uint64_t plain_limit;             /* alloc: requests from 1 to this many bytes may be served from it at once */
    struct ta__source_counts *counts; /* by leaf; read by any */
    int64_t headroom;                 /* bytes below the highest current since the last flush; read by any */
    /* alloc: what malloc, operator new and free do in the mode that the thread has adapted to. Together with the limit
     * also written by who changes the mode, with the world stopped */
    void *(*allocate)(size_t size, struct ta__thread *self);
    void *(*create)(size_t size, struct ta__thread *self);
    void (*release)(void *user, struct ta__thread *self);

    /* -- line 1: touched while everything is traced -- */
    _Alignas(TA_CACHE_LINE) uint64_t headed_word; /* alloc: what pages with headers of this thread have for an owner */
    uint32_t traced_check;                        /* alloc: what marks of traced blocks carry */
    uint32_t leaf_first;                          /* lower numbers are of earlier epochs */
    void *headed;                                 /* alloc: the part of the heap of blocks with headers, domain 0 */
    struct ta__near *near;   /* the thread's own small tables in front of the shared ones, and stacks met often */
    struct ta__scope *scope; /* alloc: the innermost scope; NULL: none, domain 0 */
    uint64_t one_ip;         /* with a limit of one frame: the last call site, see ta__one_site */
    struct ta__source_counts *one_row; /* its row of counts */
    uint64_t one_mark; /* its leaf, in the mark of a block of no bytes of domain 0, see ta__mark_of_site */

    /* -- capture -- */
    _Alignas(TA_CACHE_LINE) struct ta__state *states; /* the memo: the last stack, outermost first */
    struct ta__slot *slots;                           /* the words it was read from, in the same order */
    struct ta__state *new_states;                     /* a walk in progress, innermost first */
    struct ta__slot *new_slots;
    uintptr_t stack_low, stack_high; /* the stack that the memo describes: all reads lie inside */
    uint32_t depth;                  /* states in the memo */
    uint32_t limit;                  /* frames kept per stack */
    uint64_t limit_power;            /* multiplier of the rolling hash to the power of limit */
    int64_t high;    /* the highest current, counted from the flush: current = flushed + high - headroom; read by any */
    uint32_t window; /* frames that a walk may find: the memo has room for twice as many */
    uint32_t hashed; /* states of the memo, from the outermost, whose hashes are true; the innermost one's is too */
    uint32_t named;  /* those whose contexts are known */
    uint32_t one_domain; /* what one_ip was captured for */
    int64_t sample_left; /* sampled mode: bytes until the next sample */

    /* -- cold -- */
    void *lined;                      /* alloc: the part of the heap of such blocks at lines, domain 0 */
    void *deferred;                   /* alloc: blocks freed inside a signal handler, to be freed later; atomic */
    struct ta__domain_parts *domains; /* alloc: this thread's part of all other domains; read by any, acquire */
    uint32_t crossed;                 /* alloc: index of a domain whose limit was crossed; 0 = none */
    uint32_t one_slot;                /* the index of the domain that one_mark's leaf is of: a rule may have decided */
    uint32_t late_uses; /* alloc: operations under way of a thread that has ended once; 0: its end is to come */
    uintptr_t own_low, own_high;         /* the thread's own stack */
    uintptr_t foreign_low, foreign_high; /* the mapping of the last other stack it ran on */
    uint64_t sample_random;
    uint64_t counted_lost, counted_cut_short; /* read by any */
    struct ta__thread *next_idle;             /* alloc: of structures without a thread */
    int32_t slot;                             /* in base/safepoint */
    int32_t number; /* of threads, in the order of their first allocation: what a snapshot calls a thread */
    int32_t tid;
    uint32_t counts_capacity; /* leaves that counts has room for */
    uint32_t kept_room;       /* near has room for so many times as many kept stacks, as a power of two; read by any */
    uint32_t adapted;         /* generation of the gate that it last adapted to; read by reclaim.c, acquire */
    uint32_t quiet;           /* the round of reclaim.c in which it last began to intern a stack; the same */
    uint8_t is_main;
    uint8_t is_ready;     /* alloc finished its part of the set-up */
    uint8_t way;          /* alloc: enum ta__way, of requests outside of domains */
    uint8_t no_trace;     /* allocations of this thread stay untraced while set: our own helpers */
    uint8_t had_round;    /* alloc: other destructors ran since the thread began to end */
    uint8_t own_is_whole; /* all of the thread's own stack is known */
    uint64_t name[2];     /* 16 characters, as they were at its first allocation; read by any */
};

_Static_assert(__builtin_offsetof(struct ta__thread, headed_word) == 64, "the hottest fields fill one cache line");
_Static_assert(__builtin_offsetof(struct ta__thread, states) == 128, "the hot fields fill two");

/* Where a mark has leaf and size: all that trace knows of it (alloc/header.h). */
enum { TA__MARK_LEAF_BIT = 16, TA__MARK_SIZE_BIT = 48 };

/* In front of a block of no bytes that was asked for from there, but for the block's address. */
TA_INLINE uint64_t ta__mark_of_site(const struct ta__thread *self, uint32_t leaf)
{
    return UINT64_C(1) << TA__MARK_SIZE_BIT | (uint64_t)leaf << TA__MARK_LEAF_BIT | (self->traced_check & 0xFFFF);
}

TA_INLINE uint32_t ta__one_leaf(const struct ta__thread *self)
{
    struct __attribute__((packed, may_alias)) mark {
        uint16_t check;
        uint32_t leaf;
    };
    return ((const struct mark *)(const void *)&self->one_mark)->leaf; /* one load, where shifting makes two of it */
}

/* What one_ip is for a call site: never the same for requests of domain 0 and for others, so that a request of domain 0
 * need not ask which domain the last one was of. */
TA_INLINE uint64_t ta__one_site(uint64_t ip, uint32_t domain)
{
    return domain == 0 ? ip : ~ip;
}

#endif
