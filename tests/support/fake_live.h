/* fake_live.h: what snapshot/live.h answers in tests without a tracer; NULL = not tracing. */
#ifndef TA_TESTS_FAKE_LIVE_H
#define TA_TESTS_FAKE_LIVE_H

#include "trace/source.h"

extern struct ta__source *fake_live;

#endif
