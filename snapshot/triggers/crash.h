/* crash.h: what is known of the fault that ends the program: signal, address, registers.
 *
 * Only noted in the program: a handler that stands where the program has none copies a few words, puts the default back
 * and sends itself the same signal with the same words, so that what follows (core dump, status, a debugger) is as if it
 * had not been there. Everything else is found out by the keeper from the memory that the process leaves. */
#ifndef TA_SNAPSHOT_TRIGGERS_CRASH_H
#define TA_SNAPSHOT_TRIGGERS_CRASH_H

#include <signal.h>

#include "snapshot/write/process_facts.h"

void ta__crash_note(int number, siginfo_t *info, void *context);
int ta__crash_is_noted(void);
/* "SIGSEGV"; "" when there was none. */
const char *ta__crash_name(void);
/* The pairs crash.signal, crash.address, crash.block, crash.thread and crash.frame.0 … In the keeper. */
void ta__crash_describe(struct ta__pairs *pairs);

#endif
