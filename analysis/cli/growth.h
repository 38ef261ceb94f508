/* growth.h: leak, cache or churn, for whoever wants to say it: growth, and the end of a run. */
#ifndef TA_ANALYSIS_CLI_GROWTH_H
#define TA_ANALYSIS_CLI_GROWTH_H

#include <stddef.h>

#include "analysis/cli/cli.h"

/* The first `rows` courses of a recording, the most leak-like first, as a table. CLI_OK, or another status after a
 * message. */
int cli_growth_print(const char *path, const struct cli_options *options, size_t rows);

#endif
