/* inside.h: what the commands that look into processes and cores share: take, memory, leaks, why, retained. */
#ifndef TA_ANALYSIS_CLI_INSIDE_H
#define TA_ANALYSIS_CLI_INSIDE_H

#include <stddef.h>

#include <tracealloc/image.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/row_text.h"

extern const struct cli_command cli_take, cli_memory, cli_leaks, cli_why, cli_retained;

enum cli_inside_option {
    INSIDE_HELP = 'h',
    INSIDE_OUTPUT = 'o',
    INSIDE_LIMIT = 'n',
    INSIDE_QUIET = 'q',
    INSIDE_JSON = 256,
    INSIDE_COLOR,
    INSIDE_NO_PAUSE,
    INSIDE_NO_BLOCKS,
    INSIDE_KEY,
    INSIDE_SORT,
    INSIDE_MAPPINGS,
    INSIDE_FLAME,
    INSIDE_TAGGED,
    INSIDE_UNALIGNED,
    INSIDE_EXACT,
    INSIDE_SUPPRESSIONS,
    INSIDE_FORMAT,
    INSIDE_REGISTERS,
    INSIDE_AT,
    INSIDE_BLOCKS,
    INSIDE_BRIEF,
    INSIDE_HISTORY,
};

struct cli_inside {
    const struct cli_command *command;
    const char *output, *key, *sort, *flame, *suppressions, *format, *at, *history;
    size_t limit; /* SIZE_MAX = not given */
    int json, quiet, no_blocks, mappings, blocks, brief, help;
    struct ta_image_options image;
    char **operands;
    int operand_count;
};

/* `options`: the values of enum cli_inside_option that the command takes, ending with 0. There must be `least` to `most`
 * operands. 0, or -1 after one line on standard error; after --help `help` is set. */
int cli_inside_parse(struct cli_inside *inside, const struct cli_command *command, const int *options, int least,
                     int most, int argc, char **argv);
/* Opens what an operand names, and tells what is missing in it; NULL after a message. */
struct ta_image *cli_inside_open(const struct cli_inside *inside, const char *what, unsigned wants);
/* "1.2 GiB in 345 blocks of redis-server (process 1234)"; for free(). */
char *cli_inside_name(const struct ta_image *image);
/* How many rows to list: -n, where 0 means all; without it `usual`. */
size_t cli_inside_rows(const struct cli_inside *inside, size_t usual);
/* What rows are grouped by. */
const char *cli_inside_key(const struct cli_inside *inside);
/* A row of statistics, for cli_row_free; and as one text, "FILE:LINE  FUNCTION  via …", for free(). */
void cli_inside_row(struct cli_row_text *row, struct ta_statistics *statistics, const char *key, size_t index);
char *cli_row_words(const struct cli_row_text *row);
char *cli_row_label(struct ta_statistics *statistics, const char *key, size_t index);
/* What the row's own frame called in one of its stacks; "" where that is the allocator. For free(). */
char *cli_row_way(const struct cli_row_text *row, struct ta_traceback traceback);
/* Function and way of a row by own lines, as one of its stacks has them; unchanged where the row is about something else, as
 * stdio's buffers. */
void cli_row_narrow(struct cli_row_text *row, struct ta_traceback traceback);
/* The same for one trace, as its own stack is: "(without a stack)" for -1. `own`: the snapshot's statistics by own lines, or
 * NULL without memory. */
char *cli_trace_label(const struct ta_snapshot *snapshot, struct ta_statistics *own, long trace);
/* Notes below the last row: all frames, the most recent one too. */
struct cli_table;
void cli_note_whole_stack(struct cli_table *table, struct ta_traceback traceback);

#endif
