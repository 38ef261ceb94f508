/* cmd_filter.c: tracealloc filter — a snapshot with fewer traces, as a new file. */
#include "analysis/cli/cli.h"
#include "analysis/cli/whole_file.h"

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_filter, CLI_SPEC | CLI_WHERE | CLI_OUTPUT, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.output == NULL || (options.spec == NULL && options.where == NULL))
        return cli_error("usage: tracealloc %s %s", cli_filter.name, cli_filter.arguments);
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    return cli_put_snapshot(snapshot, options.output);
}

const struct cli_command cli_filter = {
    .name = "filter",
    .arguments = "FILE (--where FILTER | --spec FILTERS.json) -o OUT.ta",
    .summary = "write a snapshot that keeps only some of the traces",
    .help = "  --where FILTER   keep traces for which the filter holds, such as\n"
            "                   'file:*/net/* and not function:*_init domain:3' (docs/filters.md)\n"
            "  --spec FILE      keep what a JSON list of filters keeps: {\"type\": \"filter\", \"inclusive\",\n"
            "                   \"filename_pattern\", \"lineno\", \"all_frames\", \"domain\"} or\n"
            "                   {\"type\": \"domain\", \"inclusive\", \"domain\"}; \"-\" reads standard input\n"
            "  -o FILE          the new snapshot\n"
            "\n"
            "  tracealloc filter server.ta --where 'not file:*/vendor/*' -o own.ta\n",
    .run = run,
};
