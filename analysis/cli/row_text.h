/* row_text.h: a row of statistics or differences in words: where, who, by what way, from whom. What top and diff print
 * beside their numbers. */
#ifndef TA_ANALYSIS_CLI_ROW_TEXT_H
#define TA_ANALYSIS_CLI_ROW_TEXT_H

#include <limits.h>

#include <tracealloc/analysis.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/members.h"
#include "analysis/cli/table.h"

/* What the rows are about; one of the first two is NULL. */
struct cli_rows {
    struct ta_statistics *statistics;
    struct ta_differences *differences;
    const char *key;
    enum ta_order order;
    const struct cli_options *options;
};

struct cli_row_text {
    struct ta_traceback traceback;
    struct ta_frame frame; /* the most recent one of the key */
    struct cli_members functions, ways, callers;
    char place[PATH_MAX + 16];
    char *name, *via, *source; /* source may be NULL */
    /* For machines, else NULL. */
    char *stack, *members_json, *members_plain, *callers_json, *callers_plain;
};

/* Keys whose rows are places with members: "own" and "line". */
int cli_key_has_members(const char *key);
/* Keys whose rows are whole stacks. */
int cli_key_is_stack(const char *key);

void cli_row_make(struct cli_row_text *text, const struct cli_rows *rows, size_t index);
void cli_row_free(struct cli_row_text *text);
/* The function of the row, or of most of it, as the symbols have it. */
const char *cli_row_function(const struct cli_row_text *text, const char *key);
/* What stands below the row. */
void cli_row_note(struct cli_table *table, const struct cli_row_text *text, const char *key);

/* For people, below the rows: which files on disk are not those that ran, so that lines and names are missing in the
 * first `count` rows, and what helps. Without rows: which are not those that ran, wherever they matter. */
void cli_rows_tell_missing(const struct cli_rows *rows, size_t count, struct ta_snapshot *snapshot);

#endif
