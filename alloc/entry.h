/* entry.h: what an entry point is — exported under its ta_ name, and where malloc is replaced under malloc's own. */
#ifndef TA_ALLOC_ENTRY_H
#define TA_ALLOC_ENTRY_H

#include "alloc/alloc.h"
#include "tracealloc.h"

/* Entry points capture their caller's frame: they keep a frame of their own, or end in a jump. */
#define TA_ENTRY TA_API __attribute__((noinline, no_stack_protector, no_split_stack))

/* `return ta__out_of_memory();` — NULL, and errno says why. */
TA_COLD void *ta__out_of_memory(void);
TA_COLD void *ta__invalid_alignment(void);

/* operator new, and what it does when there is no memory: override_new.c. */
__attribute__((visibility("hidden"))) void *ta__new(size_t size);
void *ta__new_slow(size_t size, struct ta__caller caller);

/* Header and counters of a new block with room for a header, given as what its user gets (NULL: ENOMEM), under a leaf
 * (0: untraced, counted as lost). Traced mode, inside. */
void *ta__finish_allocation(struct ta__thread *self, void *user, size_t size, uint32_t leaf);

#endif
