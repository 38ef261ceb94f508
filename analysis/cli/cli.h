/* cli.h: what the commands of the program share. The program sees public headers only: what it needs, users need. */
#ifndef TA_ANALYSIS_CLI_CLI_H
#define TA_ANALYSIS_CLI_CLI_H

#include <stddef.h>
#include <stdio.h>

#include <tracealloc/analysis.h>

/* Exit statuses: done; the answer is no (a check found something); trouble. `run` has its own, see cmd_run.c. */
enum { CLI_OK = 0, CLI_NO = 1, CLI_TROUBLE = 2 };

/* One command of the program: a file of its own with one of these, listed in main.c. */
struct cli_command {
    const char *name;
    const char *arguments; /* as the usage line shows them */
    const char *summary;   /* one line */
    const char *help;      /* the rest of --help, with an example; lines end with \n */
    int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_annotate, cli_biggest, cli_check, cli_cost, cli_ctl, cli_diff, cli_domains,
    cli_export, cli_filter, cli_flame, cli_gate, cli_growth, cli_import, cli_info, cli_list, cli_pretty, cli_report,
    cli_rules, cli_run, cli_stats, cli_symbolize, cli_top, cli_tree, cli_watch;

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
    CLI_SKIP = 1 << 18,      /* --skip PATTERN */
    CLI_OWN_CODE = 1 << 19,  /* --own PATTERN */
    CLI_NO_SKIP = 1 << 20,   /* --no-skip */
    CLI_CALLERS = 1 << 21,   /* --callers */
    CLI_FULL = 1 << 22,      /* --full-names */
    CLI_COLLAPSE = 1 << 23,  /* --collapse */
    CLI_HISTOGRAM = 1 << 25, /* --histogram */
    CLI_SOURCE = 1 << 26,    /* --source PATH */
    CLI_OPEN = 1 << 27,      /* --open */
    CLI_NO_SOURCE = 1 << 28, /* --no-source */
    CLI_TOGETHER = 1 << 29,  /* --together */
    CLI_BLOCKS = 1 << 24,    /* --blocks */
};
/* What every command that lists rows takes. */
#define CLI_FILTERS (CLI_WHERE | CLI_SPEC)
#define CLI_FORMATS (CLI_JSON | CLI_CSV | CLI_COLOR)
/* What every command takes that asks whose code it is. */
#define CLI_OWN (CLI_SKIP | CLI_OWN_CODE | CLI_NO_SKIP)

/* The same options have the same words everywhere. */
#define CLI_HELP_FILTERS                                                                                               \
    "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"                                    \
    "  --spec FILE      only traces that a JSON list of filters keeps\n"
#define CLI_HELP_OWN                                                                                                   \
    "  --skip PATTERN   what is not one's own: functions, files or modules; --own PATTERN: what is (docs/own.md)\n"    \
    "  --no-skip        nothing is skipped but by --skip after it: the innermost frames\n"
#define CLI_HELP_COLLAPSE                                                                                              \
    "  --collapse       one's own functions only, and what they called for the memory (docs/own.md)\n"
#define CLI_HELP_NAMES "  --full-names     functions and paths as they are, stacks with every call\n"

struct cli_options {
    const struct cli_command *command;
    const char *key, *output, *spec, *where, *format, *title, *source;
    char *rules;      /* --skip, --own, --no-skip as lines of the rules' language; NULL = none */
    const char *sort; /* the word given, or NULL */
    size_t limit;     /* SIZE_MAX = not given */
    size_t depth;     /* SIZE_MAX = not given */
    double minimum;   /* percent; < 0 = not given */
    enum ta_order order;
    int cumulative, json, csv, python, grown, released, bottom_up, histogram, callers, says_key, full, collapse, open,
        no_source, together, blocks, help;
    char **operands; /* what is no option */
    int operand_count;
};

/* 0; or -1 after one line on standard error. `allowed` is made of cli_option_flags; there must be `least` to `most`
 * operands. After --help the help is printed and `help` set: there is nothing more to do. */
int cli_parse(struct cli_options *options, const struct cli_command *command, unsigned allowed, int least, int most,
              int argc, char **argv);
/* "64KiB", "1.5 MiB", "1000": 0, or -1 after a message about the command's option. */
int cli_parse_amount(const char *command, const char *option, const char *text, uint64_t *amount);
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
/* Both are there, and are one file. */
int cli_is_same_file(const char *path, const char *other);
/* Loads a snapshot and tells what was not sound in its file; NULL after a message. */
struct ta_snapshot *cli_load(const char *path);
/* The same, filtered by --where and --spec. */
struct ta_snapshot *cli_load_filtered(const char *path, const struct cli_options *options);

/* ---- memory: no command can go on without it, so these end the program with a message ---- */

void *cli_allocate(size_t count, size_t size); /* zeroed */
void *cli_enlarge(void *array, size_t count, size_t size);
char *cli_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What makes one thing many: "%zu block%s", blocks, cli_s(blocks). */
static inline const char *cli_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- text ---- */

/* One line on standard output; on a terminal control characters are shown as \xNN. */
void cli_print_line(const char *text, size_t length);
/* The same without the line's end. */
void cli_print_text(const char *text, size_t length);
/* Flushes standard output; CLI_OK, or CLI_TROUBLE after a message when something was not written. */
int cli_finish_output(void);

/* The last component of a path. */
const char *cli_base_name(const char *path);

/* The length of the UTF-8 sequence at `text`, 0 when the bytes are none. */
size_t cli_utf8_length(const unsigned char *text, size_t room);
/* A JSON string with its quotes; bytes that are not UTF-8 become lone surrogates U+DC80 + byte - 0x80. */
void cli_print_json_string(FILE *file, const char *text, size_t length);

/* The value that an order looks at. */
uint64_t cli_value(const struct ta_statistic *statistic, enum ta_order order);
/* Churn, calls, temporaries and peak belong to groups that may have no live block. */
int cli_order_wants_gone(enum ta_order order);

#endif
