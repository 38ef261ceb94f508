/* biggest.c: tracealloc biggest — the stack that holds most, frame by frame with its source lines. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/top.h"

/* As tracemalloc writes it; where the line is not known, the function's name says more than the line 0. */
static int print_frame(const struct ta_frame *frame)
{
    char **lines = ta_traceback_format(ta_traceback_of(frame, 1, -1), TA_FORMAT_ALL, 0);
    if (lines == NULL)
        return -1;
    for (size_t i = 0; lines[i] != NULL; i++) {
        cli_print_text(lines[i], strlen(lines[i]));
        if (i == 0 && frame->lineno == 0 && *frame->function != '\0') {
            fputs(", in ", stdout);
            cli_print_text(frame->function, strlen(frame->function));
        }
        putchar('\n');
    }
    free(lines);
    return 0;
}

static int print_stack(const struct ta_statistics *statistics, size_t index)
{
    struct ta_statistic statistic;
    ta_statistics_get(statistics, index, &statistic);
    printf("%" PRIu64 " memory blocks: %.1f KiB\n", statistic.count, (double)statistic.size / 1024);
    size_t length = ta_traceback_length(statistic.traceback);
    for (size_t i = 0; i < length; i++) {
        struct ta_frame frame;
        if (ta_traceback_frame(statistic.traceback, (int64_t)i, &frame) != 0 || print_frame(&frame) != 0)
            return -1;
    }
    return 0;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_biggest, CLI_LIMIT | CLI_SORT | CLI_FILTERS | CLI_JSON | CLI_CSV, 1, 1, argc, argv) !=
        0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    struct ta_statistics *statistics = cli_group(snapshot, options.operands[0], "traceback", 0, options.order);
    int status = statistics != NULL ? CLI_OK : CLI_TROUBLE;
    size_t rows = cli_rows(&(struct cli_options){.limit = options.limit}, 1);
    if (status == CLI_OK && options.json)
        status = cli_print_statistics_json(statistics, rows);
    else if (status == CLI_OK && options.csv)
        cli_print_statistics_csv(statistics, rows, 1);
    else
        for (size_t i = 0; status == CLI_OK && i < rows && i < ta_statistics_count(statistics); i++)
            status = print_stack(statistics, i) == 0 ? CLI_OK : cli_library_error(options.operands[0]);
    if (status == CLI_OK)
        status = cli_finish_output();
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_biggest = {
    .name = "biggest",
    .arguments = "FILE[@ENTRY] [-n N] [--sort ORDER] [--where FILTER] [--json | --csv]",
    .summary = "show the stack that holds most memory, with its source lines",
    .help = "  -n N             the N largest stacks: 1 unless given, 0 = all\n"
            "  --sort ORDER     live (default), count, total, calls, temporary or peak\n"
            "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
            "  --spec FILE      only traces that a JSON list of filters keeps\n"
            "  --json           a list of {frames, size, count, str}\n"
            "  --csv            the same numbers with a heading, the stack in one field\n"
            "\n"
            "  tracealloc biggest server.ta\n",
    .run = run,
};
