/* diff.c: tracealloc diff — what changed between two snapshots: a table on a terminal, tracemalloc's lines in a pipe. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/top.h"

static const struct cli_column columns[] = {
    {"size_diff", "CHANGE", CLI_BYTES_CHANGE, 0},
    {"size", "LIVE", CLI_BYTES, 0},
    {"count_diff", "BLOCKS ±", CLI_NUMBER_CHANGE, 0},
    {"count", "BLOCKS", CLI_NUMBER, 0},
    {"allocated_size_diff", "", CLI_BYTES_CHANGE, CLI_MACHINES_ONLY},
    {"allocated_count_diff", "", CLI_NUMBER_CHANGE, CLI_MACHINES_ONLY},
    {"key", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"line", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"stack", "", CLI_TEXT, CLI_MACHINES_ONLY | CLI_PEOPLE_ONLY}, /* by traceback: for machines */
    {"place", "WHERE", CLI_TEXT, CLI_PEOPLE_ONLY | CLI_PATH},
};
#define COLUMNS (sizeof columns / sizeof *columns)
enum { STACK = COLUMNS - 2 };

/* Rows of the wrong direction are left out by --grown and --released. The order puts them last. */
static size_t rows_of(const struct ta_differences *differences, const struct cli_options *options, size_t usual)
{
    size_t count = ta_differences_count(differences), limit = cli_rows(options, usual);
    struct ta_statistic_diff diff;
    if (options->grown || options->released)
        while (count > 0 && ta_differences_get(differences, count - 1, &diff) == 0 &&
               (options->grown ? diff.size_diff <= 0 : diff.size_diff >= 0))
            count--;
    return count < limit ? count : limit;
}

/* What the rows are about, and the same differences by whole stacks (NULL unless some row has no line). */
struct comparison {
    const struct ta_differences *differences, *stacks;
    const char *key;
    size_t rows;
};

/* A row by line that has none stands for a whole module without lines: the stack in it that changed most says more. */
static int find_stack(const struct comparison *comparison, const struct ta_frame *row, struct ta_traceback *stack,
                      struct ta_frame *innermost)
{
    size_t count = comparison->stacks != NULL && row->lineno == 0 ? ta_differences_count(comparison->stacks) : 0;
    for (size_t i = 0; i < count; i++) {
        struct ta_statistic_diff diff;
        if (ta_differences_get(comparison->stacks, i, &diff) != 0 ||
            ta_traceback_frame(diff.traceback, -1, innermost) != 0 || innermost->lineno != 0 ||
            strcmp(innermost->filename, row->filename) != 0)
            continue;
        *stack = diff.traceback;
        return *innermost->function != '\0';
    }
    return 0;
}

static void print_caller(const struct comparison *comparison, size_t row)
{
    struct ta_statistic_diff diff;
    struct ta_frame frame = {.filename = ""}, innermost;
    struct ta_traceback stack;
    char *source;
    ta_differences_get(comparison->differences, row, &diff);
    ta_traceback_frame(diff.traceback, -1, &frame);
    if (!find_stack(comparison, &frame, &stack, &innermost))
        return;
    char *caller = cli_caller_text(stack, &source);
    printf("    %s%s%s\n", innermost.function, caller != NULL ? ", " : "", caller != NULL ? caller : "");
    if (source != NULL)
        printf("      %s\n", source);
    free(caller);
    free(source);
}

static void print_lines(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->rows; i++) {
        size_t length = ta_differences_text(comparison->differences, i, NULL, 0);
        char *text = cli_allocate(length + 1, 1);
        ta_differences_text(comparison->differences, i, text, length + 1);
        cli_print_line(text, length);
        free(text);
        print_caller(comparison, i);
    }
}

static void print_table(const struct comparison *comparison, const struct cli_options *options)
{
    const struct ta_differences *differences = comparison->differences;
    const char *key = comparison->key;
    size_t rows = comparison->rows;
    struct cli_column chosen[COLUMNS];
    int is_line = strcmp(key, "lineno") == 0, is_stack = strcmp(key, "traceback") == 0;
    memcpy(chosen, columns, sizeof columns);
    if (is_stack)
        chosen[STACK].flags = CLI_MACHINES_ONLY;
    struct cli_table *table = cli_table_new(chosen, COLUMNS);
    for (size_t i = 0; i < rows; i++) {
        struct ta_statistic_diff diff;
        struct ta_frame frame = {.filename = ""};
        char place[PATH_MAX + 16];
        ta_differences_get(differences, i, &diff);
        ta_traceback_frame(diff.traceback, -1, &frame);
        cli_place_text(&frame, place, sizeof place);
        struct ta_traceback stack;
        struct ta_frame innermost;
        int has_stack = find_stack(comparison, &frame, &stack, &innermost);
        char *label = has_stack ? cli_text("%s  %s", place, innermost.function) : cli_text("%s", place);
        char *whole = is_stack ? cli_stack_text(diff.traceback) : NULL;
        cli_table_add(table, (struct cli_cell[COLUMNS]){{.change = diff.size_diff},
                                                        {.number = diff.size},
                                                        {.change = diff.count_diff},
                                                        {.number = diff.count},
                                                        {.change = diff.allocated_size_diff},
                                                        {.change = diff.allocated_count_diff},
                                                        {.text = frame.filename},
                                                        {.number = frame.lineno},
                                                        {.text = whole},
                                                        {.text = label}});
        free(whole);
        char *source = is_line ? cli_source_line(&frame) : NULL, *caller = NULL;
        if (source == NULL && has_stack && (caller = cli_caller_text(stack, &source)) != NULL)
            cli_table_note(table, "%s", caller);
        if (source != NULL)
            cli_table_note(table, caller != NULL ? "  %s" : "%s", source);
        free(label);
        free(caller);
        free(source);
        if (is_stack)
            cli_note_stack(table, diff.traceback);
    }
    cli_table_print(table, options);
    cli_table_free(table);
}

static int has_rows_without_line(const struct ta_differences *differences, size_t rows)
{
    struct ta_statistic_diff diff;
    struct ta_frame frame;
    for (size_t i = 0; i < rows; i++)
        if (ta_differences_get(differences, i, &diff) == 0 && ta_traceback_frame(diff.traceback, -1, &frame) == 0 &&
            frame.lineno == 0)
            return 1;
    return 0;
}

static int print(const struct comparison *comparison, const struct cli_options *options)
{
    int descriptor = STDOUT_FILENO;
    if (options->json)
        return ta_differences_export_json(comparison->differences, comparison->rows, ta_write_to_descriptor,
                                          &descriptor) == 0
                   ? CLI_OK
                   : cli_library_error("standard output");
    if (options->csv || cli_on_terminal())
        print_table(comparison, options);
    else
        print_lines(comparison);
    return cli_finish_output();
}

/* Allowed, but worth a word to a person: whole stacks of two lengths do not meet. */
static void warn_about_limits(struct ta_snapshot *new_snapshot, struct ta_snapshot *old_snapshot)
{
    int new_limit = ta_snapshot_traceback_limit(new_snapshot), old_limit = ta_snapshot_traceback_limit(old_snapshot);
    if (new_limit != old_limit && isatty(STDERR_FILENO))
        cli_warning("the snapshots keep %d and %d frames per stack", new_limit, old_limit);
}

static int compare(struct ta_snapshot *new_snapshot, struct ta_snapshot *old_snapshot,
                   const struct cli_options *options)
{
    const char *key = options->key != NULL ? options->key : "lineno";
    enum ta_order order = options->grown ? TA_ORDER_GROWTH : options->released ? TA_ORDER_RELEASED : options->order;
    warn_about_limits(new_snapshot, old_snapshot);
    cli_progress_begin("comparing the snapshots");
    struct ta_differences *differences = ta_snapshot_compare_to(new_snapshot, old_snapshot, key, options->cumulative);
    struct ta_differences *stacks = NULL;
    int is_sorted = differences != NULL && ta_differences_sort(differences, order) == 0;
    int status = CLI_TROUBLE;
    cli_progress_end();
    if (!is_sorted) {
        cli_library_error("diff");
    } else {
        size_t rows = rows_of(differences, options, cli_on_terminal() ? 10 : SIZE_MAX);
        if (strcmp(key, "lineno") == 0 && !options->cumulative && !options->json && !options->csv &&
            has_rows_without_line(differences, rows))
            stacks = ta_snapshot_compare_to(new_snapshot, old_snapshot, "traceback", 0);
        if (stacks != NULL)
            ta_differences_sort(stacks, order);
        status = print(&(struct comparison){differences, stacks, key, rows}, options);
    }
    ta_differences_free(stacks);
    ta_differences_free(differences);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_diff,
                  CLI_KEY | CLI_CUMULATIVE | CLI_LIMIT | CLI_SORT | CLI_GROWN | CLI_RELEASED | CLI_FILTERS |
                      CLI_FORMATS,
                  2, 2, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.grown + options.released + (options.sort != NULL) > 1)
        return cli_error("diff: one of --grown, --released and --sort, please");
    struct ta_snapshot *new_snapshot = cli_load_filtered(options.operands[0], &options), *old_snapshot = NULL;
    if (new_snapshot != NULL)
        old_snapshot = cli_load_filtered(options.operands[1], &options);
    int status = old_snapshot == NULL ? CLI_TROUBLE : compare(new_snapshot, old_snapshot, &options);
    ta_snapshot_free(new_snapshot);
    ta_snapshot_free(old_snapshot);
    return status;
}

const struct cli_command cli_diff = {
    .name = "diff",
    .arguments = "NEW OLD [--by KEY] [--grown | --released | --sort ORDER] [-n N] [--where FILTER] [--json | --csv]",
    .summary = "compare two snapshots group by group, largest change first",
    .help =
        "  --by KEY         line (default), function, file, module, traceback, domain or thread\n"
        "  --grown          only what grew, largest growth first\n"
        "  --released       only what shrank, largest release first\n"
        "  --sort ORDER     size (default: the absolute change), growth, released, count, allocated, calls or peak\n"
        "  --cumulative     count a block for every frame of its stack\n"
        "  -n N             the first N groups only: 10 on a terminal unless given, else all; 0 = all\n"
        "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
        "  --spec FILE      only traces that a JSON list of filters keeps\n"
        "  --json           a list of {frames, size, size_diff, count, count_diff, str}\n"
        "  --csv            the same numbers with a heading\n"
        "  --color WHEN     auto (default), always or never\n"
        "\n"
        "  tracealloc diff --grown server.ta server.ta@0\n",
    .run = run,
};
