/* cli.h: what the commands of the program share. The program sees public headers only: what it needs, users need. */
#ifndef TA_ANALYSIS_CLI_CLI_H
#define TA_ANALYSIS_CLI_CLI_H

#include <stddef.h>

#include <tracealloc/analysis.h>

/* Exit statuses: done; the answer is no (a check found something); trouble. */
enum { CLI_OK = 0, CLI_NO = 1, CLI_TROUBLE = 2 };

/* One command of the program: a file of its own with one of these, listed in main.c. */
struct cli_command {
    const char *name;
    const char *arguments; /* as the usage line shows them */
    const char *summary;   /* one line */
    const char *help;      /* the rest of --help; lines end with \n */
    int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_diff, cli_export, cli_filter, cli_import, cli_stats, cli_symbolize;

/* ---- options ---- */

enum cli_option_flags {
    CLI_KEY = 1,        /* --key KEY */
    CLI_CUMULATIVE = 2, /* --cumulative */
    CLI_JSON = 4,       /* --json */
    CLI_OUTPUT = 8,     /* -o, --output FILE */
    CLI_SPEC = 16,      /* --spec FILE */
    CLI_WHERE = 32,     /* --where EXPRESSION */
    CLI_LIMIT = 64,     /* --limit N */
    CLI_SORT = 128,     /* --sort ORDER */
    CLI_PYTHON = 256,   /* --python */
};

struct cli_options {
    const struct cli_command *command;
    const char *key, *output, *spec, *where;
    size_t limit; /* SIZE_MAX = all */
    enum ta_order order;
    int cumulative, json, python, help;
    char **operands; /* what is no option */
    int operand_count;
};

/* 0; or -1 after one line on standard error. `allowed` is made of cli_option_flags, `operands` is their number. After
 * --help the help is printed and `help` set: there is nothing more to do. */
int cli_parse(struct cli_options *options, const struct cli_command *command, unsigned allowed, int operands, int argc,
              char **argv);

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

/* ---- progress ---- */

/* From now on, looking up symbols shows a bar on standard error when that is a terminal and it takes over a second. */
void cli_show_progress(void);

/* ---- text ---- */

/* One line on standard output; on a terminal control characters are shown as \xNN. */
void cli_print_line(const char *text, size_t length);
/* Flushes standard output; CLI_OK, or CLI_TROUBLE after a message when something was not written. */
int cli_finish_output(void);

#endif
