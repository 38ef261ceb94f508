/* fast_path.h: what the usual cases of malloc, free and realloc share: how an operation begins and ends, and blocks of
 * traced requests.
 *
 * A thread's structure says what malloc, operator new and free do in the mode it has adapted to (allocate, create,
 * release). The entry points jump there, so that the frame these functions see is that of malloc's caller: its return
 * address and registers are what is captured. Who changes the mode sets all threads to functions that fit any.
 *
 * What is not traced is taken from and given to plain pages of the thread's own without more ado: between any two of the
 * few stores a page is good for its owner, if it goes on, and nobody else looks. (It may be missing, or have too many, of
 * its blocks when a process is forked in between: the child never uses the pages of threads that it does not have.) All
 * else is an operation, marked (ta__safepoint_mark … ta__leave) or, when a signal handler must not re-enter it, sealed
 * (ta__begin_sealed … ta__leave_sealed). */
#ifndef TA_ALLOC_FAST_PATH_H
#define TA_ALLOC_FAST_PATH_H

#include "alloc/alloc.h"
#include "base/atomics.h"
#include "base/safepoint.h"
#include "trace/trace.h"

enum { TA__SMALL_REQUEST_MAX = TA__SMALL_MAX };

/* Defines a function that is entered by a jump from malloc or new, and goes on in `target` with who asks in registers: sp
 * and fp as they are for the caller, and the address it will return to. A frame of our own would cost as much as the rest. */
#if defined(__x86_64__)
#define TA__ENTERED_WITH_CALLER(scope, name, target)                                                                   \
    scope __attribute__((naked, noinline, used)) void *name(__attribute__((unused)) size_t size,                       \
                                                            __attribute__((unused)) struct ta__thread *self)           \
    {                                                                                                                  \
        __asm__("leaq 8(%rsp), %rdx\n\tmovq (%rsp), %rcx\n\tmovq %rbp, %r8\n\tjmp " #target);                          \
    }
#else
#define TA__ENTERED_WITH_CALLER(scope, name, target)                                                                   \
    scope __attribute__((noinline)) void *name(size_t size, struct ta__thread *self)                                   \
    {                                                                                                                  \
        struct ta__caller caller = TA__CALLER();                                                                       \
        return target(size, self, caller.sp, caller.ip, caller.fp);                                                    \
    }
#endif
/* The address that such a function returns to, once more, where registers are dearer than a load. */
TA_READS_STACKS_INLINE uintptr_t ta__entered_from(uintptr_t sp, uintptr_t ip)
{
#if defined(__x86_64__)
    (void)ip;
    return ((const uintptr_t *)sp)[-1];
#else
    (void)sp;
    return ip;
#endif
}
void *ta__malloc_stack_of(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip, uintptr_t fp);
void *ta__new_stack_of(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip, uintptr_t fp);
void *ta__calloc_stack_of(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip, uintptr_t fp);
void *ta__aligned_stack_of(size_t alignment, size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip,
                           uintptr_t fp);
void *ta__stack_in_scope_of(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip, uintptr_t fp);

/* How requests of domain 0 are served; the later, the more is traced. */
enum ta__way { TA__WAY_ANY, TA__WAY_PLAIN, TA__WAY_HEADER, TA__WAY_SAMPLED, TA__WAY_ONE_FRAME, TA__WAY_STACK };

TA_INLINE void ta__leave(struct ta__thread *self)
{
    ta__store_release(&self->safepoint.in_op, 0u);
}

TA_INLINE void ta__leave_sealed(struct ta__thread *self, uint32_t gate)
{
    ta__compiler_fence();
    ta__safepoint_unseal(&self->safepoint, gate);
}

/* The thread is inside from here on, also for signal handlers; 0: it may not act, or has more to do first. */
TA_INLINE int ta__begin_sealed(struct ta__thread *self, uint32_t *gate, size_t size)
{
    return TA_LIKELY(size <= TA__SMALL_REQUEST_MAX) && TA_LIKELY(ta__safepoint_seal(&self->safepoint, gate));
}

/* The same in an operation that is marked. */
TA_INLINE int ta__seal_marked(struct ta__thread *self, uint32_t *gate, size_t size)
{
    if (TA_UNLIKELY(!ta__begin_sealed(self, gate, size)))
        return 0;
    ta__leave(self);
    return 1;
}

/* malloc.c: every allocation of a program that only grows. Ends the operation. */
void *ta__malloc_new_high(void *user, struct ta__thread *self, uint32_t gate);

/* A traced block that has its header is counted, in its leaf's row. Ends the operation. */
TA_INLINE void *ta__count_in_and_leave(struct ta__thread *self, void *user, size_t size, struct ta__source_counts *row,
                                       uint32_t gate)
{
    if (TA_UNLIKELY(ta__count_in_row(self, row, size)) && TA_UNLIKELY(!ta__counters_raise(self)))
        return ta__malloc_new_high(user, self, gate);
    ta__leave_sealed(self, gate);
    return user;
}

/* The same, with the header. */
TA_INLINE void *ta__traced_block_in_row(struct ta__thread *self, void *block, size_t size, uint32_t leaf,
                                        struct ta__source_counts *row, uint32_t gate)
{
    void *user = ta__header_write_short(block, self->traced_check, leaf, size);
    return ta__count_in_and_leave(self, user, size, row, gate);
}

/* The same of the call site that asked last, with a limit of one frame. */
TA_INLINE void *ta__traced_block_of_site(struct ta__thread *self, void *block, size_t size, uint32_t gate)
{
    char *user = (char *)block + TA__MARK_SIZE;
    __asm__("" : "+r"(user)); /* in the block's register: an instruction less than keeping both */
    ta__header_write_from(user, &self->one_mark, size);
    return ta__count_in_and_leave(self, user, size, self->one_row, gate);
}

TA_INLINE void *ta__traced_block(struct ta__thread *self, void *block, size_t size, uint32_t leaf, uint32_t gate)
{
    return ta__traced_block_in_row(self, block, size, leaf, &self->counts[leaf], gate);
}

/* malloc.c: a plain block when the page's list is empty, in a mode that the thread has adapted to. NULL: none, and the
 * slow path must be taken. */
void *ta__malloc_plain_rest(size_t size, struct ta__thread *self);
/* The same while nothing is traced, adapted or not. Afterwards the thread is marked if it is NULL. */
void *ta__malloc_untraced_rest(size_t size, struct ta__thread *self);
/* malloc.c: the slow path of malloc, entered by a jump. */
void *ta__malloc_slow(size_t size);
/* free.c: a free where every block is traced, and of none; the slow path of all, in whatever state
 * the operation is. */
void ta__free_traced(void *user, struct ta__thread *self);
void ta__free_plain(void *user, struct ta__thread *self);
/* The rest of the latter: the page is not the thread's, or it has headers; or it is, and its last block went back. */
void ta__free_of_page(void *user, struct ta__thread *self, mi_page_t *page);
void ta__free_unsealed(void *user, struct ta__thread *self, uint32_t gate);
/* Every block is traced; inside a sealed operation, which it ends: perhaps the block was aligned. */
void ta__free_traced_aligned(void *user, struct ta__thread *self, uint32_t gate, mi_page_t *page);

/* malloc.c: the usual ways of traced requests. */
void *ta__malloc_stack(size_t size, struct ta__thread *self);
void *ta__malloc_one_frame(size_t size, struct ta__thread *self);

/* domains/scope_malloc.c: the ways of allocating and freeing where domains are in use; and the free of a block of a domain,
 * inside a sealed operation, which it ends. */
void ta__free_beside_domains(void *user, struct ta__thread *self);
void *ta__malloc_in_scope(size_t size, struct ta__thread *self);
void *ta__malloc_sampled_in_scope(size_t size, struct ta__thread *self);
void *ta__malloc_stack_in_scope(size_t size, struct ta__thread *self);
void *ta__malloc_one_frame_in_scope(size_t size, struct ta__thread *self);
void ta__free_in_domain(void *user, struct ta__thread *self, uint32_t gate, mi_page_t *page);
/* The same while every block is traced, of a page of the thread's own; `check`: the mark's, in its
 * lower half. */
void ta__free_traced_in_domain(void *user, struct ta__thread *self, uint32_t check, mi_page_t *page, uint32_t gate);

#endif
