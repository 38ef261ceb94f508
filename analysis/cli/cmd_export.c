/* cmd_export.c: tracealloc export — a snapshot for other programs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tracealloc/export.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/project.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"

/* The format's name; NULL after a message. */
static const char *choose(const struct cli_options *options)
{
    if (options->json + options->python + options->csv + (options->format != NULL) != 1) {
        cli_error("export: one of --json, --python, --csv and --format, please");
        return NULL;
    }
    const char *wanted = options->json ? "json" : options->python ? "python" : options->csv ? "csv" : options->format;
    struct ta_export_format format;
    for (size_t i = 0; ta_export_format_get(i, &format, sizeof format) == 0; i++)
        if (strcmp(format.name, wanted) == 0)
            return format.name;
    char *known = cli_text("%s", "");
    for (size_t i = 0; ta_export_format_get(i, &format, sizeof format) == 0; i++) {
        char *longer = cli_text("%s%s%s", known, i > 0 ? ", " : "", format.name);
        free(known);
        known = longer;
    }
    cli_error("export: unknown format '%s' (%s)", wanted, known);
    free(known);
    return NULL;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    struct cli_output output;
    if (cli_parse(&options, &cli_export,
                  CLI_JSON | CLI_PYTHON | CLI_CSV | CLI_FORMAT | CLI_SORT | CLI_OUTPUT | CLI_FILTERS, 1, 1, argc,
                  argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    const char *format = choose(&options);
    if (format == NULL)
        return CLI_TROUBLE;
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    int status = cli_use_rules(&options, snapshot, NULL); /* the label "own" */
    if (status == CLI_OK)
        status = cli_output_open(&output, options.output);
    if (status == CLI_OK) {
        int is_quiet = output.path == NULL && cli_on_terminal();
        if (!is_quiet)
            cli_progress_begin("writing");
        errno = 0;
        if (ta_snapshot_export(snapshot, format, options.order, cli_output_write, &output) != 0)
            status = cli_output_trouble(&output, options.operands[0]);
        if (!is_quiet)
            cli_progress_end();
        status = cli_output_close(&output, status);
    }
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_export = {
    .name = "export",
    .arguments = "FILE[@ENTRY] (--format FORMAT | --json | --python | --csv) [-o OUT] [--sort ORDER] [--where FILTER]",
    .summary = "write a snapshot in another format",
    .help =
        "  --format FORMAT  pprof        a compressed profile for pprof: live and total, blocks and bytes\n"
        "                   folded       one line per stack for flame graph tools\n"
        "                   speedscope   JSON for speedscope\n"
        "                   flame        a flame graph (SVG), as tracealloc flame draws it\n"
        "                   text         a report in words\n"
        "                   csv, jsonl   one line per stack with its numbers\n"
        "                   json         traces with their frames, as tracealloc import reads them\n"
        "                   python       a file for tracemalloc.Snapshot.load of Python\n"
        "  --json, --python, --csv   the same formats\n"
        "  --sort ORDER     the value of folded, speedscope and flame: live (default), count, total, calls, temporary\n"
        "                   or peak\n"
        "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
        "  --spec FILE      only traces that a JSON list of filters keeps\n"
        "  -o FILE          write there instead of standard output\n"
        "\n"
        "  tracealloc export server.ta --format pprof -o server.pb.gz\n",
    .run = run,
};
