/* safepoint.h: the handshake that holds all other threads outside the allocator for a moment.
 *
 *   a thread, per operation            a stopper (one at a time)
 *   -----------------------            ---------------------------------
 *   in_op = 1, or view = 0             gate |= PENDING
 *   compiler fence                     membarrier: every thread passes a fence
 *   read gate; PENDING? step out       wait until everybody is outside
 *   … the operation …                  … act: nobody is inside …
 *   in_op = 0, or view back (release)  gate &= ~PENDING, wake
 *
 * One pair for everybody who needs it: ta__safepoint_stop, ta__safepoint_resume. The lock it takes is the first in the
 * order of base/lock.h, and also what makes changes of mode come one at a time. docs/invariants.md, S, says what holds.
 *
 * The mark costs plain stores; the fence that the store of in_op and the load of the gate need between them is paid by
 * the stopper's membarrier(2); where the kernel has no expedited one, the stopper takes the slow one instead.
 * Threads that run outside the allocator are never disturbed.
 *
 * Not everything that a thread does with its memory is an operation. The usual request and free of what is not traced
 * take a block from, or give it to, a page that is the thread's alone, by a few plain stores of which no stopper sees
 * anything it relies on (alloc/fast_path.h): they look at no gate and leave no mark.
 *
 * The gate is also how a change of mode reaches every thread. It carries the mode and a generation; a thread compares it
 * with the value it last adapted to (`view`) and adapts on its cold path when they differ. 0: nothing is traced and nobody
 * waits. */
#ifndef TA_BASE_SAFEPOINT_H
#define TA_BASE_SAFEPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomics.h"
#include "base/facts.h"

enum {
    TA__GATE_PENDING = 1, /* somebody holds or wants to hold the others outside; also set until the process is set up */
    TA__GATE_TRACING = 2, /* every allocation captures */
    TA__GATE_SAMPLED = 4, /* with TRACING: only about one in so many bytes does */
    TA__GATE_DOMAINS = 8, /* the ambient domain of some thread is not 0, or rules decide it */
    TA__GATE_TRACKED = 16,   /* ta_track holds addresses of domain 0 that are not live blocks: no fast path */
    TA__GATE_ONE_FRAME = 32, /* the limit is one frame */
    TA__GATE_HEADERS = 64,   /* blocks have headers also where nothing is traced */
    TA__GATE_FLAGS = 0xff,   /* above: the generation */
    TA__GATE_GENERATION = 0x100,
};

extern uint32_t ta__gate;

/* Views that no gate ever has. STALE: the thread adapts before its next operation. HELD: it is outside, and must neither
 * wait nor go ahead, because it holds the others, waits for who does, or has a lock. */
#define TA__VIEW_STALE UINT32_MAX
#define TA__VIEW_HELD  (UINT32_MAX - 1)

/* What a registered thread shows to a stopper. First member of the thread structure; written by its owner alone. */
struct ta__safepoint_member {
    uint32_t in_op; /* in an operation that a handler may re-enter at its own risk: the usual ones, untraced */
    uint32_t view;  /* the gate value this thread adapted to; 0 in an operation that must not be re-entered */
};
/* in_op of a thread whose handler interrupted an operation and forks: it comes out no sooner than it may. */
enum { TA__IN_OP_FORKS = 2 };

/* Is the thread in an operation? in_op first: who goes from the one kind to the other shows both for a moment. */
TA_INLINE int ta__safepoint_is_inside(const struct ta__safepoint_member *member)
{
    return ta__load_acquire(&member->in_op) != 0 || ta__load_acquire(&member->view) == 0;
}

enum { TA__WORLD_MEMBERS_MAX = 1 << 16 };

/* Slots are numbered from 0 and reused; -1 when there is none left. A slot keeps its member pointer after leaving, so
 * that what it points to must stay mapped for ever. */
int ta__safepoint_join(struct ta__safepoint_member *member);
void ta__safepoint_leave(int slot);
/* Highest number of slots ever used, and the member in one of them (NULL: never used). */
int ta__safepoint_size(void);
struct ta__safepoint_member *ta__safepoint_member(int slot);
int ta__safepoint_is_present(int slot);
/* No thread but this one is registered. Who registers afterwards sees all that the caller has done before it asked. */
TA_NODISCARD int ta__safepoint_is_alone(const struct ta__safepoint_member *self);
extern struct ta__fact ta__facts_safepoint[];

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

enum ta__stop {
    TA__STOP_DONE = 0,
    TA__STOP_INSIDE, /* the caller is a signal handler that interrupted an operation, or a stop, of its own thread */
    TA__STOP_LATE,   /* another thread did not come out within ta__stop_patience_ms */
};
/* Who waits for a processor inside is not late: six times as long is waited for it. A thread that was late once is given
 * the short time from then on, until it is seen outside. */
extern int ta__stop_patience_ms; /* 5000; a test may say less */
enum { TA__STOP_STARVED_FACTOR = 6, TA__STOP_SHORT_PATIENCE_MS = 20 };

/* Holds all other registered threads outside until ta__safepoint_resume; takes the lock that is first in the order of
 * base/lock.h. The caller is outside. Meanwhile its signal handlers get emergency memory. When the answer is not
 * TA__STOP_DONE nobody is held, and the caller must leave undone what it wanted. */
TA_NODISCARD enum ta__stop ta__safepoint_stop(struct ta__safepoint_member *self);
void ta__safepoint_resume(struct ta__safepoint_member *self);
#if TA_CHECKS >= 2
/* Looks at everything, at the beginning and at the end of every stop that is done. */
extern void (*ta__safepoint_inspect)(void);
/* A fork that did not wait for all: its child lacks what they were about to do. */
extern int ta__safepoint_fork_left_some;
#endif
/* The error that a refusal is: sets errno and the text, answers -1. */
int ta__safepoint_refused(enum ta__stop why);

/* The same for fork, which cannot be refused. It may be called in a handler that interrupted an operation, or a stop:
 * that goes on in both processes. `self` may be NULL: then no handler of the thread may allocate until the resume.
 * Answers how many stops of this thread are around this one. Threads that could not be waited for are in the child in
 * the middle of what they did, for ever. */
TA_NODISCARD uint32_t ta__safepoint_stop_for_fork(struct ta__safepoint_member *self);
uint32_t ta__safepoint_depth(void); /* the same number, until the resume */
void ta__safepoint_resume_after_fork(struct ta__safepoint_member *self);

/* Stops nobody: operations that begin after this see the gate as it was before; who is in one shows it (in_op). Called
 * inside an operation. */
void ta__safepoint_barrier(void);
/* A thread that found PENDING waits here, outside, until the gate is open. 0, where the caller may give up: a fork holds
 * the others and waits for a lock of libc, perhaps the caller's. */
TA_NODISCARD int ta__safepoint_wait(int may_give_up);

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Inside an operation from here on, if the gate that is read next says so. */
TA_INLINE void ta__safepoint_mark(struct ta__safepoint_member *self)
{
    ta__store_relaxed(&self->in_op, 1u);
    ta__compiler_fence(); /* pairs with the membarrier of ta__safepoint_stop */
}

/* Inside an operation that must not be re-entered, of a thread that has adapted to the gate, which is then *gate. 0: it
 * has not, or is inside already, or somebody waits; the view is as it was. The mark is not needed, and a handler that
 * allocates takes it away. */
TA_NODISCARD TA_INLINE int ta__safepoint_seal(struct ta__safepoint_member *self, uint32_t *gate)
{
    *gate = ta__owner_read(&self->view);
    ta__store_relaxed(&self->view, 0u);
    ta__compiler_fence(); /* pairs with the membarrier of ta__safepoint_stop */
    if (ta__operand_acquire(&ta__gate) == *gate)
        return 1;
    ta__store_relaxed(&self->view, *gate);
    return 0;
}

/* Its end. */
TA_INLINE void ta__safepoint_unseal(struct ta__safepoint_member *self, uint32_t gate)
{
    ta__store_release(&self->view, gate);
}

/* Inside an operation that must not be re-entered (view is 0), which must not be one already; waits outside for who
 * holds the others. Answers the gate. */
uint32_t ta__safepoint_enter(struct ta__safepoint_member *self);
/* The same. 0: the wait was given up, and the thread is as before. */
TA_NODISCARD int ta__safepoint_try_enter(struct ta__safepoint_member *self, uint32_t *gate, int may_give_up);

TA_INLINE int ta__safepoint_is_shut(uint32_t view)
{
    return view == 0 || view == TA__VIEW_HELD;
}

/* Around locks that are taken outside of operations: between the two, handlers of this thread get emergency memory,
 * because they might want the same lock. Inside an operation it changes nothing. */
TA_INLINE uint32_t ta__safepoint_shut(struct ta__safepoint_member *self)
{
    uint32_t view = ta__load_relaxed(&self->view);
    if (!ta__safepoint_is_shut(view))
        ta__store_relaxed(&self->view, TA__VIEW_HELD);
    ta__compiler_fence();
    return view;
}

TA_INLINE void ta__safepoint_open(struct ta__safepoint_member *self, uint32_t view)
{
    ta__compiler_fence();
    ta__store_relaxed(&self->view, view);
}

/* In the child of a fork, with the world stopped by the parent: only `self` remains present. */
void ta__safepoint_after_fork(const struct ta__safepoint_member *self);

/* Changes mode bits of the gate and gives it a new generation; the caller has stopped the world, or does not care when
 * the others notice. Answers the generation (24 bits): who sees it, or a later one, sees all that was done before. */
uint32_t ta__gate_change(uint32_t set, uint32_t clear);

/* Acquire: what a stopper did is seen by operations that begin after it; pairs with ta__safepoint_resume. */
TA_INLINE uint32_t ta__gate_read(void)
{
    return ta__load_acquire(&ta__gate);
}

#endif
