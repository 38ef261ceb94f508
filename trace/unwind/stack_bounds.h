/* stack_bounds.h: which memory is stack — the bounds that keep every read of a walk inside mapped memory. */
#ifndef TA_TRACE_UNWIND_STACK_BOUNDS_H
#define TA_TRACE_UNWIND_STACK_BOUNDS_H

#include <stdint.h>

#include "trace/thread_state.h"

/* Notes the calling thread's own stack. Once per thread, cold. */
void ta__stack_learn_own(struct ta__thread *self, int is_main);

/* Makes stack_low and stack_high those of the stack that contains sp: the thread's own, or another one (an alternate
 * signal stack, a coroutine's) as the kernel's list of mappings bounds it. 0 when sp points into no readable memory.
 * A foreign stack may vanish at any time, so its bounds serve for one capture: the next asks again. */
int ta__stack_select(struct ta__thread *self, uint64_t sp);

#endif
