/* cli.h: what the commands of the program share. The program sees public headers only: what it needs, users need. */
#ifndef TA_ANALYSIS_CLI_CLI_H
#define TA_ANALYSIS_CLI_CLI_H

#include <stddef.h>
#include <stdio.h>

#include <tracealloc/analysis.h>

/* Exit statuses: done; the answer is no (a check found something); trouble. `run` has its own, see run.c. */
enum { CLI_OK = 0, CLI_NO = 1, CLI_TROUBLE = 2 };

/* One command of the program: a file of its own with one of these, listed in main.c. */
struct cli_command {
    const char *name;
    const char *arguments; /* as the usage line shows them */
    const char *summary;   /* one line */
    const char *help;      /* the rest of --help, with an example; lines end with \n */
    int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_biggest, cli_check, cli_diff, cli_domains, cli_export, cli_filter, cli_flame,
    cli_import, cli_info, cli_list, cli_pretty, cli_run, cli_stats, cli_symbolize, cli_top, cli_tree;

/* ---- options ---- */

enum cli_option_flags {
    CLI_KEY = 1 << 0,        /* --key KEY, --by KEY: what to group by */
    CLI_CUMULATIVE = 1 << 1, /* --cumulative */
    CLI_JSON = 1 << 2,       /* --json */
    CLI_OUTPUT = 1 << 3,     /* -o, --output FILE */
    CLI_SPEC = 1 << 4,       /* --spec FILE */
    CLI_WHERE = 1 << 5,      /* --where EXPRESSION */
    CLI_LIMIT = 1 << 6,      /* -n, --limit N */
    CLI_SORT = 1 << 7,       /* --sort ORDER */
    CLI_PYTHON = 1 << 8,     /* --python */
    CLI_CSV = 1 << 9,        /* --csv */
    CLI_COLOR = 1 << 10,     /* --color WHEN */
    CLI_GROWN = 1 << 11,     /* --grown */
    CLI_RELEASED = 1 << 12,  /* --released */
    CLI_FORMAT = 1 << 13,    /* --format NAME */
    CLI_BOTTOM_UP = 1 << 14, /* --bottom-up */
    CLI_MINIMUM = 1 << 15,   /* --min PERCENT */
    CLI_DEPTH = 1 << 16,     /* --depth N */
    CLI_TITLE = 1 << 17,     /* --title TEXT */
};
/* What every command that lists rows takes. */
#define CLI_FILTERS (CLI_WHERE | CLI_SPEC)
#define CLI_FORMATS (CLI_JSON | CLI_CSV | CLI_COLOR)

struct cli_options {
    const struct cli_command *command;
    const char *key, *output, *spec, *where, *format, *title;
    const char *sort; /* the word given, or NULL */
    size_t limit;     /* SIZE_MAX = not given */
    size_t depth;     /* SIZE_MAX = not given */
    double minimum;   /* percent; < 0 = not given */
    enum ta_order order;
    int cumulative, json, csv, python, grown, released, bottom_up, help;
    char **operands; /* what is no option */
    int operand_count;
};

/* 0; or -1 after one line on standard error. `allowed` is made of cli_option_flags; there must be `least` to `most`
 * operands. After --help the help is printed and `help` set: there is nothing more to do. */
int cli_parse(struct cli_options *options, const struct cli_command *command, unsigned allowed, int least, int most,
              int argc, char **argv);
/* How many rows to list: -n, where 0 means all; without it `usual` for people and all for machines. */
size_t cli_rows(const struct cli_options *options, size_t usual);

/* ---- messages: one line each, "tracealloc: …" ---- */

/* Answers CLI_TROUBLE. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "tracealloc: SUBJECT: what the library says". Answers CLI_TROUBLE. */
int cli_library_error(const char *subject);
void cli_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- files ---- */

/* The whole file, "-" = standard input, NUL-terminated beyond its length; NULL after a message. */
char *cli_read_file(const char *path, size_t *length);
/* Loads a snapshot and tells what was not sound in its file; NULL after a message. */
struct ta_snapshot *cli_load(const char *path);
/* The same, filtered by --where and --spec. */
struct ta_snapshot *cli_load_filtered(const char *path, const struct cli_options *options);

/* ---- memory: no command can go on without it, so these end the program with a message ---- */

void *cli_allocate(size_t count, size_t size); /* zeroed */
void *cli_enlarge(void *array, size_t count, size_t size);
/* The frames of a traceback in an array that is enlarged when it must be; their number. */
size_t cli_frames(struct ta_traceback traceback, struct ta_frame **frames, size_t *room);
char *cli_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- text ---- */

/* One line on standard output; on a terminal control characters are shown as \xNN. */
void cli_print_line(const char *text, size_t length);
/* The same without the line's end. */
void cli_print_text(const char *text, size_t length);
/* Flushes standard output; CLI_OK, or CLI_TROUBLE after a message when something was not written. */
int cli_finish_output(void);

/* The length of the UTF-8 sequence at `text`, 0 when the bytes are none. */
size_t cli_utf8_length(const unsigned char *text, size_t room);
/* A JSON string with its quotes; bytes that are not UTF-8 become lone surrogates U+DC80 + byte - 0x80. */
void cli_print_json_string(FILE *file, const char *text, size_t length);

/* Names for the orders of --sort, and the value that an order looks at. */
uint64_t cli_value(const struct ta_statistic *statistic, enum ta_order order);
const char *cli_order_name(enum ta_order order);
/* Churn, calls, temporaries and peak belong to groups that may have no live block. */
int cli_order_wants_gone(enum ta_order order);

#endif
