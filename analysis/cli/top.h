/* top.h: what the listings of statistics share. */
#ifndef TA_ANALYSIS_CLI_TOP_H
#define TA_ANALYSIS_CLI_TOP_H

#include <stddef.h>

#include <tracealloc/analysis.h>

/* One line about the snapshot as a whole, for people. */
void cli_print_summary(struct ta_snapshot *snapshot, const char *path);
/* The traces grouped by `key` and in the order asked for; NULL after a message. `cumulative` as the library has it. */
struct ta_statistics *cli_group(struct ta_snapshot *snapshot, const char *path, const char *key, int cumulative,
                                enum ta_order order);
/* The first rows of statistics as JSON: CLI_OK, or another status after a message. */
int cli_print_statistics_json(const struct ta_statistics *statistics, size_t rows);
/* The first rows of statistics as CSV; with their stacks if that is what they are grouped by. */
void cli_print_statistics_csv(const struct ta_statistics *statistics, size_t rows, int by_stack);

#endif
