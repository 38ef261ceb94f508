/* cmd_symbolize.c: tracealloc symbolize — stores the symbols in the file, so that it can be read without the binaries. */
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/whole_file.h"

static void report(const struct ta_snapshot *snapshot)
{
    struct ta_module_symbols module;
    for (size_t i = 0; ta_snapshot_module_symbols(snapshot, i, &module) == 0; i++)
        if (module.state != TA_MODULE_UNUSED && *module.reason != '\0')
            cli_warning("%s: %s", module.path, module.reason);
}

/* In place only where nothing else would be lost. */
static int may_replace(const char *path)
{
    struct ta_recording *recording = ta_recording_open(path);
    size_t entries = recording == NULL ? 0 : ta_recording_entry_count(recording);
    ta_recording_close(recording);
    if (entries == 1)
        return 1;
    cli_error("%s: not a file of one snapshot: say where to write with -o", path);
    return 0;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_symbolize, CLI_OUTPUT, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    const char *path = options.operands[0], *output = options.output != NULL ? options.output : path;
    struct ta_snapshot *snapshot = cli_load(path);
    if (snapshot == NULL || (options.output == NULL && !may_replace(path))) {
        ta_snapshot_free(snapshot);
        return CLI_TROUBLE;
    }
    int status = CLI_OK;
    struct ta_snapshot *symbolized = ta_snapshot_symbolize(snapshot);
    if (symbolized == NULL)
        status = cli_library_error(path);
    else if (cli_write_snapshot(symbolized, output) != 0)
        status = cli_library_error(output);
    else
        report(snapshot);
    ta_snapshot_free(symbolized);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_symbolize = {
    .name = "symbolize",
    .arguments = "FILE [-o OUT.ta]",
    .summary = "store files, lines and functions in a snapshot, so that it can be read elsewhere",
    .help = "  -o FILE   the new snapshot; without it FILE is replaced\n\n"
            "Says which modules have no lines, and why.\n"
            "\n"
            "  tracealloc symbolize server.ta -o travels.ta\n",
    .run = run,
};
