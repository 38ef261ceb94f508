/* failure.h: how a function of analysis says that it failed: it sets the thread's error text and returns -1.
 *
 * Analysis runs offline or by request of the program, so it uses malloc; a request for memory that fails is an error
 * that is passed up, never an abort. */
#ifndef TA_ANALYSIS_FAILURE_H
#define TA_ANALYSIS_FAILURE_H

#include "base/attributes.h"

/* Sets the text that ta_error_text answers. Always returns -1, so that callers may `return ta__fail(…)`. */
int ta__fail(const char *format, ...) TA_PRINTF(1, 2);
int ta__fail_memory(void);

#endif
