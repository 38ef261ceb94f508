/* walk_check.h: in the checking build, every captured stack is compared with a walk that remembers nothing and with
 * libunwind's. In other builds these are empty. */
#ifndef TA_TRACE_UNWIND_WALK_CHECK_H
#define TA_TRACE_UNWIND_WALK_CHECK_H

#include "trace/trace.h"

#if TRACEALLOC_CHECKING
/* Compares the memo with fresh walks; a difference is reported and counted (walk_check.c). */
void ta__check_capture(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp);
/* The same for the leaf of a kept stack (kept_stacks.h). The memo is left alone: it is out of date and stays so. */
void ta__check_kept(const struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint32_t leaf);
#else
TA_INLINE void ta__check_capture(const struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp)
{
    (void)self, (void)ip, (void)sp, (void)fp;
}
TA_INLINE void ta__check_kept(const struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint32_t leaf)
{
    (void)self, (void)ip, (void)sp, (void)fp, (void)leaf;
}
#endif

#endif
