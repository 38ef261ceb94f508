/* gate.h: what the gate says, for whoever wants to say no: gate, and the end of a run. */
#ifndef TA_ANALYSIS_CLI_GATE_H
#define TA_ANALYSIS_CLI_GATE_H

#include <stdint.h>

/* Functions of one's own that hold more than `bytes` in the last entry and are not suppressed (NULL = none is), a line
 * each on standard error. CLI_OK, CLI_NO when there are some, or CLI_TROUBLE after a message. */
int cli_gate_leaks(const char *path, uint64_t bytes, char *suppressions);

#endif
