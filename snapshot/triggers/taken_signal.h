/* taken_signal.h: the signal that takes a snapshot, and the program's own handler of it, which stays in effect.
 *
 * Our handler stands in the kernel; what the program asks of sigaction and signal is answered with its own, and what it
 * installs is called from ours with the mask and the flags that it wanted (SA_NODEFER, SA_RESETHAND, SA_ONSTACK …). It may
 * leave by siglongjmp: nothing is remembered between calls. */
#ifndef TA_SNAPSHOT_TRIGGERS_TAKEN_SIGNAL_H
#define TA_SNAPSHOT_TRIGGERS_TAKEN_SIGNAL_H

#include <signal.h>

#include "base/attributes.h"

/* The C library's own name: sigaction may be a name of ours. */
#if defined(__GLIBC__)
extern int __sigaction(int number, const struct sigaction *action, struct sigaction *former);
#else
#define __sigaction sigaction /* where ours is not in its place */
#endif

/* `asked` runs in the handler. 0, or -1 with errno. */
TA_NODISCARD int ta__taken_signal_begin(int number, void (*asked)(void));
/* Where the program went around the library and ours does not stand any more: again. */
void ta__taken_signal_look(void);
void ta__taken_signal_end(void);
/* 1: sigaction of that number is for ta__taken_signal_exchange. */
int ta__taken_signal_is(int number);
/* What sigaction does, as the program sees it. */
int ta__taken_signal_exchange(const struct sigaction *action, struct sigaction *former);

#endif
