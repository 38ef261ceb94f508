/* remembered_frees.h: the last frees, each with who freed and who had allocated: what a report of a double free names.
 * Only with the option remember_frees=N; without it nothing here is called but ta__frees_recall. */
#ifndef TA_ALLOC_REMEMBERED_FREES_H
#define TA_ALLOC_REMEMBERED_FREES_H

#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "alloc/live_block.h"

enum { TA__REMEMBERED_FRAMES = 16 };

/* Words only, because they are copied one by one. */
struct ta__remembered_free {
    uint64_t turn; /* which free it was, counted from 1, twice; odd: it is being written */
    uint64_t user;
    uint64_t size;
    uint64_t domain; /* index */
    uint64_t thread;
    uint64_t is_again;                         /* the block was no live one: this is the double free */
    uint64_t allocated[TA__REMEMBERED_FRAMES]; /* return addresses, most recent first, 0 behind the last */
    uint64_t freed[TA__REMEMBERED_FRAMES];
};

/* As many as the option says; 0: no memory. Once, at set-up. */
int ta__frees_remember(void);
int ta__frees_are_remembered(void);

/* free, where frees are remembered: entered by a jump from free itself. */
void ta__free_remembering(void *user, struct ta__thread *self);
/* Inside an operation, before the block can come back: `live` is what it is, NULL when it is none. */
void ta__free_note(struct ta__thread *self, uint32_t gate, const void *user, const struct ta__live_block *live,
                   const struct ta__caller *caller);

/* The latest free of a block that held the address, or of that address again. No lock; 0: none is remembered. */
int ta__frees_recall(const void *address, int is_again, struct ta__remembered_free *found);

#endif
