/* process_symbols.h: lines and functions for addresses of the running process. */
#ifndef TA_ANALYSIS_PROCESS_PROCESS_SYMBOLS_H
#define TA_ANALYSIS_PROCESS_PROCESS_SYMBOLS_H

#include "tracealloc/analysis.h"

/* Frames of the caller's own, oldest first, in one piece of memory with all their texts; NULL with the error set. */
struct ta_frame *ta__process_frames(void *const *addresses, size_t count, size_t *frame_count);

#endif
