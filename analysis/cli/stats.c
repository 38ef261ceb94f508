/* stats.c: tracealloc stats — what holds the memory, by line, file, stack, function … */
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/top.h"

static int print_text(const struct ta_statistics *statistics, size_t limit)
{
    size_t count = ta_statistics_count(statistics);
    for (size_t i = 0; i < count && i < limit; i++) {
        size_t length = ta_statistics_text(statistics, i, NULL, 0);
        char *text = malloc(length + 1);
        if (text == NULL)
            return cli_error("out of memory");
        ta_statistics_text(statistics, i, text, length + 1);
        cli_print_line(text, length);
        free(text);
    }
    return cli_finish_output();
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_stats,
                  CLI_KEY | CLI_CUMULATIVE | CLI_JSON | CLI_CSV | CLI_LIMIT | CLI_SORT | CLI_WHERE | CLI_SPEC, 1, 1,
                  argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;

    const char *key = options.key != NULL ? options.key : "lineno";
    struct ta_statistics *statistics = cli_group(snapshot, options.operands[0], key, options.cumulative, options.order);
    int status = CLI_TROUBLE;
    if (statistics != NULL && options.csv) {
        cli_print_statistics_csv(statistics, options.limit, strcmp(key, "traceback") == 0);
        status = cli_finish_output();
    } else if (statistics != NULL) {
        status =
            options.json ? cli_print_statistics_json(statistics, options.limit) : print_text(statistics, options.limit);
    }
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_stats = {
    .name = "stats",
    .arguments = "FILE [--key KEY] [--cumulative] [--sort ORDER] [--limit N] [--where FILTER] [--json | --csv]",
    .summary = "group the live memory of a snapshot and list the groups, largest first",
    .help = "  --key KEY        traceback, lineno (default), filename, function, module, domain or thread\n"
            "  --cumulative     count a block for every frame of its stack\n"
            "  --sort ORDER     size (default), count, allocated, calls, temporary or peak\n"
            "  --limit N        the first N groups only\n"
            "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
            "  --spec FILE      only traces that a JSON list of filters keeps\n"
            "  --json           a list of {frames, size, count, str}, frames most recent first\n"
            "  --csv            the same numbers with a heading; by traceback the stack in one field\n"
            "\n"
            "  tracealloc stats server.ta --key filename --limit 10\n",
    .run = run,
};
