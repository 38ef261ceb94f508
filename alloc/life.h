/* life.h: set-up and life cycle, shared by process.c and thread.c only. */
#ifndef TA_ALLOC_LIFE_H
#define TA_ALLOC_LIFE_H

#include "trace/thread.h"

void ta__threads_init(void);

#endif
