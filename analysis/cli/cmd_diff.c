/* cmd_diff.c: tracealloc diff — what changed between two snapshots: a table for people, and the same rows for machines.
 * With --key, tracemalloc's word, a pipe gets tracemalloc's lines. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/places.h"
#include "analysis/cli/project.h"
#include "analysis/cli/row_text.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

enum field {
    SIZE_DIFF,
    SIZE,
    COUNT_DIFF,
    COUNT,
    ALLOCATED_SIZE_DIFF,
    ALLOCATED_COUNT_DIFF,
    KEY,
    LINE,
    FUNCTION,
    VIA,
    MEMBERS,
    CALLERS,
    STACK,
    PLACE,
    COLUMNS
};

static const struct cli_column columns[COLUMNS] = {
    [SIZE_DIFF] = {"size_diff", "CHANGE", CLI_BYTES_CHANGE, 0},
    [SIZE] = {"size", "LIVE", CLI_BYTES, 0},
    [COUNT_DIFF] = {"count_diff", "BLOCKS ±", CLI_NUMBER_CHANGE, 0},
    [COUNT] = {"count", "BLOCKS", CLI_NUMBER, 0},
    [ALLOCATED_SIZE_DIFF] = {"allocated_size_diff", "ALLOCATED ±", CLI_BYTES_CHANGE, CLI_MACHINES_ONLY},
    [ALLOCATED_COUNT_DIFF] = {"allocated_count_diff", "CALLS ±", CLI_NUMBER_CHANGE, CLI_MACHINES_ONLY},
    [KEY] = {"key", "", CLI_TEXT, CLI_MACHINES_ONLY},
    [LINE] = {"line", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    [FUNCTION] = {"function", "", CLI_TEXT, CLI_MACHINES_ONLY},
    [VIA] = {"via", "", CLI_TEXT, CLI_MACHINES_ONLY},
    [MEMBERS] = {"members", "", CLI_JSON_TEXT, CLI_MACHINES_ONLY},
    [CALLERS] = {"callers", "", CLI_JSON_TEXT, CLI_MACHINES_ONLY},
    [STACK] = {"stack", "", CLI_TEXT, CLI_MACHINES_ONLY},
    [PLACE] = {"place", "WHERE", CLI_PLACE, CLI_PEOPLE_ONLY},
};

struct comparison {
    struct cli_rows rows;
    struct ta_snapshot *new_snapshot;
    size_t all, most; /* rows of the direction asked for, and how many of them are listed */
    struct cli_column columns[COLUMNS];
};

/* Rows of the wrong direction are left out by --grown and --released. The order puts them last. */
static size_t rows_of(const struct ta_differences *differences, const struct cli_options *options)
{
    size_t count = ta_differences_count(differences);
    struct ta_statistic_diff diff;
    if (options->grown || options->released)
        while (count > 0 && ta_differences_get(differences, count - 1, &diff) == 0 &&
               (options->grown ? diff.size_diff <= 0 : diff.size_diff >= 0))
            count--;
    return count;
}

static void print_lines(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->most; i++) {
        size_t length = ta_differences_text(comparison->rows.differences, i, NULL, 0);
        char *text = cli_allocate(length + 1, 1);
        ta_differences_text(comparison->rows.differences, i, text, length + 1);
        cli_print_line(text, length);
        free(text);
    }
}

/* What was asked for by its change of calls or bytes is shown by it. */
static void choose_columns(struct comparison *comparison)
{
    const char *key = comparison->rows.key;
    enum ta_order order = comparison->rows.order;
    memcpy(comparison->columns, columns, sizeof columns);
    int has_members = cli_key_has_members(key);
    for (enum field field = VIA; field <= STACK; field++)
        if (field == STACK     ? !cli_key_is_stack(key)
            : field == CALLERS ? !comparison->rows.options->callers
                               : !has_members)
            comparison->columns[field].flags |= CLI_PEOPLE_ONLY; /* for nobody */
    if (order == TA_ORDER_ALLOCATED_SIZE || order == TA_ORDER_TEMPORARY)
        comparison->columns[ALLOCATED_SIZE_DIFF].flags = 0;
    if (order == TA_ORDER_ALLOCATED_COUNT || order == TA_ORDER_TEMPORARY)
        comparison->columns[ALLOCATED_COUNT_DIFF].flags = 0;
}

static void add_row(struct cli_table *table, const struct comparison *comparison, size_t index)
{
    const struct cli_rows *rows = &comparison->rows;
    struct ta_statistic_diff diff;
    struct cli_row_text row;
    ta_differences_get(rows->differences, index, &diff);
    cli_row_make(&row, rows, index);
    cli_table_add(table, (struct cli_cell[COLUMNS]){
                             [SIZE_DIFF].change = diff.size_diff,
                             [SIZE].number = diff.size,
                             [COUNT_DIFF].change = diff.count_diff,
                             [COUNT].number = diff.count,
                             [ALLOCATED_SIZE_DIFF].change = diff.allocated_size_diff,
                             [ALLOCATED_COUNT_DIFF].change = diff.allocated_count_diff,
                             [KEY].text = row.frame.filename,
                             [LINE].number = row.frame.lineno,
                             [FUNCTION].text = cli_row_function(&row, rows->key),
                             [VIA].text = row.ways.count > 0 ? row.ways.items[0].frame.function : "",
                             [MEMBERS] = {.text = row.members_json, .more = row.members_plain},
                             [CALLERS] = {.text = row.callers_json, .more = row.callers_plain},
                             [STACK].text = row.stack,
                             [PLACE] = {.text = row.place, .more = row.name, .via = row.via},
                         });
    if (!rows->options->csv)
        cli_row_note(table, &row, rows->key);
    cli_row_free(&row);
}

static void print_rest(const struct comparison *comparison)
{
    int64_t change = 0;
    char text[32];
    if (comparison->all <= comparison->most)
        return;
    for (size_t i = comparison->most; i < comparison->all; i++) {
        struct ta_statistic_diff diff;
        ta_differences_get(comparison->rows.differences, i, &diff);
        if (__builtin_add_overflow(change, diff.size_diff, &change))
            change = diff.size_diff < 0 ? INT64_MIN : INT64_MAX;
    }
    ta_size_text((double)change, 1, text, sizeof text);
    printf("%s… and %zu more: %s (-n 0 lists all)%s\n", cli_style(CLI_DIM), comparison->all - comparison->most, text,
           cli_style(CLI_PLAIN));
}

static void print_table(struct comparison *comparison)
{
    const struct cli_options *options = comparison->rows.options;
    choose_columns(comparison);
    struct cli_table *table = cli_table_new(comparison->columns, COLUMNS);
    for (size_t i = 0; i < comparison->most; i++)
        add_row(table, comparison, i);
    if (cli_table_count(table) == 0 && !options->csv)
        puts(options->grown      ? "nothing has grown"
             : options->released ? "nothing was released"
                                 : "there is nothing in either");
    else
        cli_table_print(table, options);
    cli_table_free(table);
    if (options->csv)
        return;
    if (!options->cumulative)
        print_rest(comparison);
    cli_rows_tell_missing(&comparison->rows, comparison->most, comparison->new_snapshot);
}

static int print(struct comparison *comparison)
{
    const struct cli_options *options = comparison->rows.options;
    int descriptor = STDOUT_FILENO;
    if (options->json) {
        cli_progress_begin_output();
        int result = ta_differences_export_json(comparison->rows.differences, comparison->most, ta_write_to_descriptor,
                                                &descriptor);
        cli_progress_end();
        return result == 0 ? CLI_OK : cli_library_error("standard output");
    }
    if (!options->csv && options->says_key && !cli_on_terminal())
        print_lines(comparison);
    else
        print_table(comparison);
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
    const char *key = options->key != NULL ? options->key : "own";
    enum ta_order order = options->grown ? TA_ORDER_GROWTH : options->released ? TA_ORDER_RELEASED : options->order;
    warn_about_limits(new_snapshot, old_snapshot);
    if (strcmp(key, "own") == 0 && cli_use_rules(options, new_snapshot, old_snapshot) != CLI_OK)
        return CLI_TROUBLE;
    cli_places_set_program(new_snapshot);
    cli_progress_begin("comparing the snapshots");
    struct ta_differences *differences = ta_snapshot_compare_to(new_snapshot, old_snapshot, key,
                                                                !options->cumulative ? 0
                                                                : options->says_key  ? 1
                                                                                     : TA_CUMULATIVE_ONCE);
    int is_sorted = differences != NULL && ta_differences_sort(differences, order) == 0;
    int status = CLI_TROUBLE;
    cli_progress_end();
    if (!is_sorted) {
        cli_library_error("diff");
    } else {
        size_t count = rows_of(differences, options);
        size_t most = cli_rows(options, options->says_key && !cli_on_terminal() ? SIZE_MAX : 10);
        struct comparison comparison = {
            .rows = {.differences = differences, .key = key, .order = order, .options = options},
            .new_snapshot = new_snapshot,
            .all = count,
            .most = count < most ? count : most,
        };
        status = print(&comparison);
    }
    ta_differences_free(differences);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_diff,
                  CLI_KEY | CLI_CUMULATIVE | CLI_LIMIT | CLI_SORT | CLI_GROWN | CLI_RELEASED | CLI_FILTERS |
                      CLI_FORMATS | CLI_OWN | CLI_CALLERS | CLI_FULL,
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
    .arguments =
        "NEW OLD [--by KEY] [--grown | --released | --sort ORDER] [-n N] [--callers] [--where FILTER] [--json | --csv]",
    .summary = "compare two snapshots group by group, largest change first",
    .help = "  --by KEY         own (default), line, function, file, module, traceback, domain, process or thread; "
            "--key instead\n"
            "                   prints tracemalloc's lines in a pipe\n"
            "  --grown          only what grew, largest growth first\n"
            "  --released       only what shrank, largest release first\n"
            "  --sort ORDER     live (default: the absolute change), growth, released, count, total, calls or peak\n"
            "  --cumulative     count a block for every place of its stack, once for each\n"
            "  -n N             the first N groups: 10 unless given, 0 = all\n"
            "  --callers        from where each row was asked, one step outwards\n" CLI_HELP_OWN CLI_HELP_FILTERS
                CLI_HELP_NAMES "  --json           a list of {frames, size, size_diff, count, count_diff, str, …}\n"
            "  --csv            the same numbers with a heading\n"
            "  --color WHEN     auto (default), always or never\n"
            "\n"
            "  tracealloc diff --grown server.ta server.ta@0\n",
    .run = run,
};
