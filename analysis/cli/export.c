/* export.c: tracealloc export — a snapshot for other programs. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/cli.h"

static int write_to(const struct ta_snapshot *snapshot, const struct cli_options *options, int descriptor)
{
    return options->python ? ta_snapshot_export_python(snapshot, ta_write_to_descriptor, &descriptor)
                           : ta_snapshot_export_json(snapshot, ta_write_to_descriptor, &descriptor);
}

static int write_file(const struct ta_snapshot *snapshot, const struct cli_options *options)
{
    int descriptor = open(options->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return cli_error("%s: %s", options->output, strerror(errno));
    int status = write_to(snapshot, options, descriptor) == 0 ? CLI_OK : cli_library_error(options->output);
    if (close(descriptor) != 0 && status == CLI_OK)
        status = cli_error("%s: %s", options->output, strerror(errno));
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_export, CLI_JSON | CLI_PYTHON | CLI_OUTPUT | CLI_WHERE | CLI_SPEC, 1, 1, argc, argv) !=
        0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.json == options.python)
        return cli_error("export: one of --json and --python, please");
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    int status;
    if (options.output != NULL)
        status = write_file(snapshot, &options);
    else
        status = write_to(snapshot, &options, STDOUT_FILENO) == 0 ? CLI_OK : cli_library_error("standard output");
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_export = {
    .name = "export",
    .arguments = "FILE (--json | --python) [-o OUT] [--where FILTER]",
    .summary = "write a snapshot in another format",
    .help = "  --json           traces with their frames, as tracealloc import reads them\n"
            "  --python         a file for tracemalloc.Snapshot.load of Python\n"
            "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
            "  --spec FILE      only traces that a JSON list of filters keeps\n"
            "  -o FILE          write there instead of standard output\n",
    .run = run,
};
