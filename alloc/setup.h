/* setup.h: set-up and life cycle, shared by process.c and thread.c only. */
#ifndef TA_ALLOC_SETUP_H
#define TA_ALLOC_SETUP_H

#include "trace/thread_state.h"

void ta__threads_init(void);

#endif
