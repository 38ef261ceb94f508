/* fake_live.h: what snapshot/write/live.h answers in tests without a tracer; NULL = not tracing. */
#ifndef TA_TESTS_FAKE_LIVE_H
#define TA_TESTS_FAKE_LIVE_H

#include <pthread.h>

#include "trace/source.h"

extern struct ta__source *fake_live;
extern uint64_t fake_live_failures; /* snapshots that the library said to have failed */
/* Held while it is copied: tests that change it beside a thread that takes snapshots hold it too. */
extern pthread_mutex_t fake_live_lock;

#endif
