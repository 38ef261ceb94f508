/* export.c: tracealloc export — a snapshot for other programs. */
#include <errno.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/exports.h"
#include "analysis/cli/output.h"

enum format { JSON, PYTHON, CSV, JSON_LINES, FOLDED, SPEEDSCOPE, PPROF, FORMATS };

static const char *const names[FORMATS] = {
    [JSON] = "json",     [PYTHON] = "python",         [CSV] = "csv",     [JSON_LINES] = "jsonl",
    [FOLDED] = "folded", [SPEEDSCOPE] = "speedscope", [PPROF] = "pprof",
};

static int choose(const struct cli_options *options, enum format *format)
{
    if (options->json + options->python + options->csv + (options->format != NULL) != 1)
        return cli_error("export: one of --json, --python, --csv and --format, please");
    *format = options->json ? JSON : options->python ? PYTHON : CSV;
    if (options->format == NULL)
        return CLI_OK;
    for (unsigned i = 0; i < FORMATS; i++)
        if (strcmp(names[i], options->format) == 0) {
            *format = i;
            return CLI_OK;
        }
    return cli_error("export: unknown format '%s' (pprof, folded, speedscope, csv, jsonl, json, python)",
                     options->format);
}

static int write_to(struct ta_snapshot *snapshot, enum format format, enum ta_order order, struct cli_output *output)
{
    switch (format) {
    case JSON:
        return ta_snapshot_export_json(snapshot, cli_output_write, output);
    case PYTHON:
        return ta_snapshot_export_python(snapshot, cli_output_write, output);
    case CSV:
        return cli_export_csv(snapshot, output->file);
    case JSON_LINES:
        return cli_export_json_lines(snapshot, output->file);
    case FOLDED:
        return cli_export_folded(snapshot, order, output->file);
    case SPEEDSCOPE:
        return cli_export_speedscope(snapshot, order, output->file);
    default:
        return cli_export_pprof(snapshot, output->file);
    }
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    struct cli_output output;
    enum format format = JSON;
    if (cli_parse(&options, &cli_export,
                  CLI_JSON | CLI_PYTHON | CLI_CSV | CLI_FORMAT | CLI_SORT | CLI_OUTPUT | CLI_FILTERS, 1, 1, argc,
                  argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (choose(&options, &format) != CLI_OK)
        return CLI_TROUBLE;
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    int status = cli_output_open(&output, options.output);
    if (status == CLI_OK) {
        int is_quiet = output.path == NULL && cli_on_terminal();
        if (!is_quiet)
            cli_progress_begin("writing");
        errno = 0;
        if (write_to(snapshot, format, options.order, &output) != 0 && !ferror(output.file))
            status = cli_library_error(options.operands[0]);
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
        "                   csv, jsonl   one line per stack with its numbers\n"
        "                   json         traces with their frames, as tracealloc import reads them\n"
        "                   python       a file for tracemalloc.Snapshot.load of Python\n"
        "  --json, --python, --csv   the same formats\n"
        "  --sort ORDER     the value of folded and speedscope: live (default), count, total, calls, temporary, peak\n"
        "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
        "  --spec FILE      only traces that a JSON list of filters keeps\n"
        "  -o FILE          write there instead of standard output\n"
        "\n"
        "  tracealloc export server.ta --format pprof -o server.pb.gz\n",
    .run = run,
};
