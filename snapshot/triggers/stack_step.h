/* stack_step.h: from one place on a stack to its caller's, where nobody walks for an allocation: a fault, a mapping. One word of
 * the stack at a time, as the caller of this reads it. */
#ifndef TA_SNAPSHOT_TRIGGERS_STACK_STEP_H
#define TA_SNAPSHOT_TRIGGERS_STACK_STEP_H

#include <stdint.h>

#include "base/message.h"

struct ta__place {
    uint64_t ip, sp, fp;
    int is_interrupted; /* the instruction at ip has not run; else ip is a return address */
};

/* 0: the word cannot be read. */
typedef int (*ta__word_reader)(uint64_t address, uint64_t *word);

/* To the caller; 0 where the stack or what is known of it ends. */
int ta__place_step(struct ta__place *place, ta__word_reader read);
/* "PATH+0x1234", which addr2line takes; an address alone where no module is. Of the instruction, not of a return address. */
void ta__place_text(struct ta__message *message, uint64_t ip);

#endif
