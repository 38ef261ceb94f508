/* world.h: the handshake that holds all other threads outside the allocator for a moment.
 *
 *   a thread, per operation            a stopper (one at a time)
 *   -----------------------            ---------------------------------
 *   in_op = 1                          gate |= PENDING
 *   compiler fence                     membarrier: every thread passes a fence
 *   read gate; PENDING? step out       wait until every in_op is 0
 *   … the operation …                  … act: nobody is inside …
 *   in_op = 0 (release)                gate &= ~PENDING, wake
 *
 * The mark costs plain stores; the fence that the store of in_op and the load of the gate need between them is paid by
 * the stopper's membarrier(2); where the kernel has no expedited one, the stopper takes the slow one instead.
 * Threads that run outside the allocator are never disturbed.
 *
 * The gate is also how a change of mode reaches every thread: it is 0 when nothing is traced and nobody waits, so that
 * one comparison keeps the fast path fast. A nonzero gate carries the mode and a generation; a thread compares it with
 * the value it last adapted to (`view`) and adapts on its cold path when they differ. */
#ifndef TA_BASE_WORLD_H
#define TA_BASE_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomics.h"

enum {
    TA__GATE_PENDING = 1, /* somebody holds or wants to hold the others outside; also set until the process is set up */
    TA__GATE_TRACING = 2, /* every allocation captures */
    TA__GATE_SAMPLED = 4, /* with TRACING: only about one in so many bytes does */
    TA__GATE_DOMAINS = 8, /* the ambient domain of some thread is not 0, or rules decide it */
    TA__GATE_TRACKED = 16,   /* ta_track holds addresses of domain 0 that are not live blocks: no fast path */
    TA__GATE_ONE_FRAME = 32, /* the limit is one frame */
    TA__GATE_FLAGS = 0xff,   /* above: the generation */
    TA__GATE_GENERATION = 0x100,
};

extern uint32_t ta__gate;

/* The same, for requests that have a size: those below this number may take the fast path. 0 whenever the gate is not
 * 0, so that one comparison asks both "is it small?" and "may I?". */
extern uint64_t ta__gate_size;
/* Its value while the gate is 0; from then on. */
void ta__gate_set_size(uint64_t size);

/* A view that no gate ever has. */
#define TA__VIEW_STALE UINT32_MAX

/* What a registered thread shows to a stopper. First member of the thread structure; written by its owner alone. */
struct ta__world_member {
    uint32_t in_op; /* inside the allocator: relaxed store, release when leaving; read by stoppers, acquire */
    uint32_t view;  /* the gate value this thread adapted to; 0 while an operation runs that must not be re-entered */
};

enum { TA__WORLD_MEMBERS_MAX = 1 << 16 };

/* Slots are numbered from 0 and reused; -1 when there is none left. A slot keeps its member pointer after leaving, so
 * that what it points to must stay mapped for ever. */
int ta__world_join(struct ta__world_member *member);
void ta__world_leave(int slot);
/* Highest number of slots ever used, and the member in one of them (NULL: never used). */
int ta__world_size(void);
struct ta__world_member *ta__world_member(int slot);
int ta__world_is_present(int slot);

/* Holds all other registered threads outside. The caller must not be inside an operation. Returns the number of threads
 * that could not be waited for (descheduled or stopped inside for more than some seconds): 0 normally. */
int ta__world_stop(const struct ta__world_member *self);
void ta__world_resume(void);
/* A thread that found PENDING waits here, outside. */
void ta__world_wait(void);

/* Inside an operation from here on, if the gate that is read next says so. */
TA_INLINE void ta__world_mark(struct ta__world_member *self)
{
    ta__store_relaxed(&self->in_op, 1u);
    ta__compiler_fence(); /* pairs with the membarrier of ta__world_stop */
}

/* Inside an operation from here on, which must not be one already; waits outside for who holds the others. Answers the
 * gate. */
uint32_t ta__world_enter(struct ta__world_member *self);

/* In the child of a fork, with the world stopped by the parent: only `self` remains present. */
void ta__world_after_fork(const struct ta__world_member *self);

/* Changes mode bits of the gate and gives it a new generation; the caller has stopped the world, or does not care when
 * the others notice. */
void ta__gate_change(uint32_t set, uint32_t clear);

/* Acquire: what a stopper did is seen by operations that begin after it; pairs with ta__world_resume. */
TA_INLINE uint32_t ta__gate_read(void)
{
    return ta__load_acquire(&ta__gate);
}

/* Goes to the label unless nothing is traced and nobody waits. Spelled in assembly where it pays: gcc makes three
 * instructions of an atomic load and a comparison, the processor has two. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TA__GO_IF_GATED_OR_LARGE(size, label)                                                                          \
    __asm__ goto("cmpq %0, %1\n\tjae %l[" #label "]" : : "m"(ta__gate_size), "r"(size) : "cc", "memory" : label)
#define TA__GO_IF_GATED(label)                                                                                         \
    __asm__ goto("cmpl $0, %0\n\tjne %l[" #label "]" : : "m"(ta__gate) : "cc", "memory" : label)
#else
#define TA__GO_IF_GATED_OR_LARGE(size, label)                                                                          \
    do {                                                                                                               \
        if (TA_UNLIKELY((size) >= ta__load_acquire(&ta__gate_size)))                                                   \
            goto label;                                                                                                \
    } while (0)
#define TA__GO_IF_GATED(label)                                                                                         \
    do {                                                                                                               \
        if (TA_UNLIKELY(ta__gate_read() != 0))                                                                         \
            goto label;                                                                                                \
    } while (0)
#endif

#endif
