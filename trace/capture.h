/* capture.h: whose stack asks for memory — ta__capture, and the memo of a thread's last stack, which capture.c keeps
 * between two allocations. */
#ifndef TA_TRACE_CAPTURE_H
#define TA_TRACE_CAPTURE_H

#include <stdint.h>

#include "trace/kept_stacks.h"
#include "trace/trace.h"
#include "trace/unwind/walk_check.h"

/* One frame of the remembered stack: the registers as they were when control would return to it.
 *
 *      states[-1] no frame: an end     slots: the words that were read to get from a state to its caller,
 *      states[0]  outermost            in the order of the states, so that the way from state i to the
 *      states[1]                       outermost is slots[0 … states[i].slot_end). In a walk under way,
 *        …                             slot_end counts the unusual words found so far (new_slots).
 *      states[depth - 1]  called malloc                                                                       */
struct ta__state {
    _Alignas(TA_CACHE_LINE) /* and the index of one is a shift */
        uint64_t ip;        /* return address; bit 63 = interrupted here by a signal (TA__IP_INTERRUPTED) */
    uint64_t sp;
    uint64_t fp;
    uint64_t fp_slot; /* where the caller's fp was saved, if it was */
    uint64_t hash;    /* rolling, over this state and all further out; see the thread's `hashed` */
    uint32_t slot_end;
    uint32_t leaf; /* where the hash is true: of the stack that begins here, in leaf_domain; 0 = not known */
    uint32_t leaf_domain;
    uint32_t context; /* of the path from the outermost state to this one, if it is one of the thread's `named` */
    uint16_t salt;    /* which occupant of the address */
    uint16_t flags;
};
enum {
    TA__STATE_NEEDS_FP = 1,   /* fp decides where a caller is: this frame's, or one's before a frame restores it */
    TA__STATE_SAVES_FP = 2,   /* the caller's fp was read from memory */
    TA__STATE_RETURNS = 4,    /* the usual kind: the return address lies below the caller's sp */
    TA__STATE_EXTRA = 8,      /* an unusual kind: read through other words too */
    TA__STATE_CUT_SHORT = 16, /* the walk ended here, but not because the stack did */
    TA__STATE_ODD = 32,       /* this frame or one further out is of an unusual kind */
    TA__STATE_LOADER = 64,    /* code of ld.so: its requests announce that objects come and go */
};

struct ta__slot {
    const uint64_t *at;
    uint64_t value;
};

#define TA__IP_INTERRUPTED (UINT64_C(1) << 63)

/* Deeper frames are remembered, but no stack is followed or verified further than the spec counts. The memo has room
 * for two windows; it begins small, for address space is limited here and there and threads are many, and grows with
 * the stacks. */
enum { TA__WINDOW = 65536, TA__FIRST_WINDOW = 256, TA__SLOTS_PER_STATE = 3 };

/* The leaf of a stack that ta__kept_find_expected did not find. */
TA_INLINE uint32_t ta__capture_further(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp,
                                       uint32_t domain)
{
    uint32_t leaf = ta__kept_find_further(self, ip, sp, fp, domain);
    if (leaf == 0)
        return ta__capture_by_walk(self, ip, sp, fp, domain);
    ta__check_kept(self, ip, sp, fp, leaf);
    return leaf;
}

/* The leaf of the stack that begins with return address `ip`, whose frame has the registers sp and fp, for an
 * allocation in `domain`. 0 when the stack cannot be recorded (counted). Called inside an operation, gate == view. */
TA_INLINE uint32_t ta__capture(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint32_t domain)
{
    uint32_t leaf = ta__kept_find_expected(self, ip, sp, fp, domain);
    if (TA_UNLIKELY(leaf == 0))
        return ta__capture_further(self, ip, sp, fp, domain);
    ta__check_kept(self, ip, sp, fp, leaf);
    return leaf;
}

/* The same with a limit of one frame, in domain 0. */
TA_INLINE uint32_t ta__capture_site(struct ta__thread *self, uintptr_t ip)
{
    if (TA_LIKELY(self->one_ip == ip)) {
        uint32_t leaf = ta__one_leaf(self);
        if (leaf == 0)
            __builtin_unreachable(); /* then the site is not noted */
        return leaf;
    }
    const struct ta__near_site *site = ta__near_site_of(self->near, ip);
    return TA_LIKELY(site->ip == ip && site->domain == 0) ? site->leaf : ta__capture_one(self, ip, 0);
}

/* Test face: the states of the memo after a capture, innermost last. */
TA_INLINE uint32_t ta__capture_depth(const struct ta__thread *self)
{
    return self->depth;
}

#endif
