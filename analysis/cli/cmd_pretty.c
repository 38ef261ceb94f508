/* cmd_pretty.c: tracealloc pretty — the listing that the documentation of tracemalloc calls the pretty top. Python programs
 * that print it and this one print the same. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/places.h"
#include "analysis/cli/top.h"

/* The last two components: "folder/file". */
static const char *last_two(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return path;
    for (const char *at = slash - 1; at > path; at--)
        if (*at == '/')
            return at + 1;
    return *path == '/' ? path + 1 : path;
}

static void print_row(const struct ta_statistics *statistics, size_t index)
{
    struct ta_statistic statistic;
    struct ta_frame frame = {.filename = ""};
    ta_statistics_get(statistics, index, &statistic);
    ta_traceback_frame(statistic.traceback, -1, &frame);
    char *line = cli_text("#%zu: %s:%u: %.1f KiB", index + 1, last_two(frame.filename), frame.lineno,
                          (double)statistic.size / 1024);
    cli_print_line(line, strlen(line));
    char *source = cli_source_line(&frame);
    if (source != NULL) {
        fputs("    ", stdout);
        cli_print_line(source, strlen(source));
    }
    free(source);
    free(line);
}

static void print_all(const struct ta_statistics *statistics, size_t rows)
{
    size_t count = ta_statistics_count(statistics), shown = count < rows ? count : rows;
    double rest = 0, total = 0;
    printf("Top %zu lines\n", rows == SIZE_MAX ? count : rows);
    for (size_t i = 0; i < count; i++) {
        struct ta_statistic statistic;
        ta_statistics_get(statistics, i, &statistic);
        total += (double)statistic.size;
        if (i >= shown)
            rest += (double)statistic.size;
        else
            print_row(statistics, i);
    }
    if (count > shown)
        printf("%zu other: %.1f KiB\n", count - shown, rest / 1024);
    printf("Total allocated size: %.1f KiB\n", total / 1024);
}

static int print_as(const struct ta_statistics *statistics, const struct cli_options *options)
{
    size_t rows = cli_rows(options, 10);
    if (options->json)
        return cli_print_statistics_json(statistics, rows);
    if (options->csv)
        cli_print_statistics_csv(statistics, rows, 0);
    else
        print_all(statistics, rows);
    return cli_finish_output();
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_pretty, CLI_LIMIT | CLI_FILTERS | CLI_JSON | CLI_CSV, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options), *known = NULL;
    if (snapshot == NULL)
        return CLI_TROUBLE;
    const struct ta_filter unknown = {.type = TA_FILTER_FILENAME, .pattern = "<unknown>"};
    cli_progress_begin("grouping the traces");
    known = ta_snapshot_filter_traces(snapshot, &unknown, 1);
    struct ta_statistics *statistics = known == NULL ? NULL : ta_snapshot_statistics(known, "lineno", 0);
    int status;
    cli_progress_end();
    if (statistics == NULL) {
        status = cli_library_error(options.operands[0]);
    } else {
        status = print_as(statistics, &options);
    }
    ta_statistics_free(statistics);
    ta_snapshot_free(known);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_pretty = {
    .name = "pretty",
    .arguments = "FILE[@ENTRY] [-n N] [--where FILTER] [--json | --csv]",
    .summary = "print the pretty top of tracemalloc's documentation",
    .help = "  -n N             so many lines: 10 unless given, 0 = all\n"
            "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
            "  --spec FILE      only traces that a JSON list of filters keeps\n"
            "  --json, --csv    the lines for other programs\n"
            "\n"
            "  tracealloc pretty server.ta -n 3\n",
    .run = run,
};
