/* top.h: what the listings of statistics share. */
#ifndef TA_ANALYSIS_CLI_TOP_H
#define TA_ANALYSIS_CLI_TOP_H

#include <stddef.h>

#include <tracealloc/analysis.h>

/* One line about the snapshot as a whole, for people. */
void cli_print_summary(struct ta_snapshot *snapshot, const char *path);
/* The source line of a frame without surrounding blanks, or NULL; for free(). */
char *cli_source_line(const struct ta_frame *frame);
/* "FILE:LINE" with the path shortened on terminals, the bare path where the line is not known. */
void cli_place_text(const struct ta_frame *frame, char *text, size_t size);

/* For a place without lines: its caller where that has lines (and its source line), else the names of the functions
 * above; NULL when nothing is known. Both for free(). */
char *cli_caller_text(struct ta_traceback traceback, char **source);
/* A note below the last row for every frame, most recent first. */
struct cli_table;
void cli_note_stack(struct cli_table *table, struct ta_traceback traceback);
/* The whole stack in one field of CSV or JSON: "FILE:LINE FUNCTION;…", most recent first. For free(). */
char *cli_stack_text(struct ta_traceback traceback);
/* The traces grouped by `key` and in the order asked for; NULL after a message. */
struct ta_statistics *cli_group(struct ta_snapshot *snapshot, const char *path, const char *key, int cumulative,
                                enum ta_order order);
/* The first rows of statistics as JSON: CLI_OK, or another status after a message. */
int cli_print_statistics_json(const struct ta_statistics *statistics, size_t rows);
/* The first rows of statistics as CSV; with their stacks if that is what they are grouped by. */
void cli_print_statistics_csv(const struct ta_statistics *statistics, size_t rows, int by_stack);

#endif
