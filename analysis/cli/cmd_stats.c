/* cmd_stats.c: tracealloc stats — what holds the memory, by line, file, stack, function … */
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/project.h"
#include "analysis/cli/row_text.h"
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
                  CLI_KEY | CLI_CUMULATIVE | CLI_JSON | CLI_CSV | CLI_LIMIT | CLI_SORT | CLI_FILTERS | CLI_OWN, 1, 1,
                  argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;

    const char *key = options.key != NULL ? options.key : "lineno";
    int status = strcmp(key, "own") == 0 ? cli_use_rules(&options, snapshot, NULL) : CLI_OK;
    struct ta_statistics *statistics =
        status == CLI_OK ? cli_group(snapshot, options.operands[0], key, options.cumulative, options.order) : NULL;
    size_t rows = cli_rows(&options, SIZE_MAX);
    status = CLI_TROUBLE;
    if (statistics != NULL && options.csv) {
        cli_print_statistics_csv(statistics, rows, cli_key_is_stack(key));
        status = cli_finish_output();
    } else if (statistics != NULL) {
        status = options.json ? cli_print_statistics_json(statistics, rows) : print_text(statistics, rows);
    }
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_stats = {
    .name = "stats",
    .arguments = "FILE [--by KEY] [--cumulative] [--sort ORDER] [-n N] [--where FILTER] [--json | --csv]",
    .summary = "list the groups of live memory as tracemalloc prints them, largest first",
    .help =
        "  --by KEY         lineno (default), filename, traceback as tracemalloc has them; own, line, function, file,\n"
        "                   module, domain or thread as top has them; --key is the same option\n"
        "  --cumulative     count a block for every frame of its stack; as in CPython once for each time that the\n"
        "                   frame occurs in it (top --cumulative counts it once)\n"
        "  --sort ORDER     live (default), count, total, calls, temporary (blocks that came and went) or peak\n"
        "  -n N             the first N groups: all unless given; --limit is the same option\n" CLI_HELP_OWN
            CLI_HELP_FILTERS "  --json           a list of {frames, size, count, str}, frames most recent first\n"
        "  --csv            the same numbers with a heading; by traceback the stack in one field\n"
        "\n"
        "  tracealloc stats server.ta --by filename -n 10\n",
    .run = run,
};
