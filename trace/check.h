/* check.h: in the checking build, every captured stack is compared with a walk that remembers nothing and with
 * libunwind's. In other builds these are empty. */
#ifndef TA_TRACE_CHECK_H
#define TA_TRACE_CHECK_H

#include "trace/trace.h"

#if TRACEALLOC_CHECKING
/* Compares the memo with fresh walks; a difference is reported on descriptor 2 and counted (check.c). */
void ta__check_capture(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp);
/* A difference that the caller found; the memo holds our stack. */
void ta__check_failed(const struct ta__thread *self, const char *other);
#else
TA_INLINE void ta__check_capture(const struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp)
{
    (void)self, (void)ip, (void)sp, (void)fp;
}
#endif

#endif
