/* import.c: tracealloc import — a snapshot from traces in JSON. */
#include <stdlib.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/output.h"

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_import, CLI_OUTPUT, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.output == NULL)
        return cli_error("usage: tracealloc %s %s", cli_import.name, cli_import.arguments);
    size_t length;
    char *text = cli_read_file(options.operands[0], &length);
    if (text == NULL)
        return CLI_TROUBLE;
    cli_progress_begin("reading the traces");
    struct ta_snapshot *snapshot = ta_snapshot_import_json(text, length);
    cli_progress_end();
    free(text);
    if (snapshot == NULL)
        return cli_library_error(options.operands[0]);
    int status = cli_write_snapshot(snapshot, options.output) == 0 ? CLI_OK : cli_library_error(options.output);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_import = {
    .name = "import",
    .arguments = "IN.json -o OUT.ta",
    .summary = "make a snapshot from traces in JSON",
    .help = "  IN.json   {\"traceback_limit\": N, \"frame_order\": \"most_recent_first\" | \"oldest_first\", "
            "\"traces\": [\n"
            "            {\"domain\", \"size\", \"total_nframe\", \"count\", \"frames\": [[\"file\", line], …]}, …]}\n"
            "            (docs/api-analysis.md); \"-\" reads standard input\n"
            "  -o FILE   the new snapshot\n"
            "\n"
            "  tracealloc import traces.json -o traces.ta\n",
    .run = run,
};
