/* own_stack.h: work that needs more stack than whoever happens to do it has. */
#ifndef TA_BASE_OWN_STACK_H
#define TA_BASE_OWN_STACK_H

#include <stddef.h>

/* Calls function(argument) on `bytes` of fresh stack with a guard below, which is gone afterwards. 0 without memory: then
 * it was not called. The function must return, and allocates nothing by malloc. */
int ta__on_own_stack(size_t bytes, void (*function)(void *argument), void *argument);

#endif
