/* cmd_import.c: tracealloc import — a snapshot from traces in JSON. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"

struct source {
    int descriptor;
    size_t done, total; /* bytes; total 0 = not known */
};

static int open_source(struct source *source, const char *path)
{
    struct stat status;
    *source = (struct source){.descriptor = STDIN_FILENO};
    if (strcmp(path, "-") != 0)
        source->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (source->descriptor < 0)
        return cli_error("%s: %s", path, strerror(errno));
    if (fstat(source->descriptor, &status) == 0 && S_ISREG(status.st_mode))
        source->total = (size_t)status.st_size;
    return CLI_OK;
}

static long read_source(void *user, char *bytes, size_t size)
{
    struct source *source = user;
    ssize_t got;
    do
        got = read(source->descriptor, bytes, size);
    while (got < 0 && errno == EINTR);
    source->done += got > 0 ? (size_t)got : 0;
    if (source->total > 0)
        cli_progress_set(NULL, source->done >> 20, source->total >> 20);
    return got;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_import, CLI_OUTPUT, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.output == NULL)
        return cli_error("usage: tracealloc %s %s", cli_import.name, cli_import.arguments);
    struct source source;
    if (open_source(&source, options.operands[0]) != CLI_OK)
        return CLI_TROUBLE;
    cli_progress_begin("reading the traces (MiB)");
    struct ta_snapshot *snapshot = ta_snapshot_import_json_from(read_source, &source);
    cli_progress_end();
    if (source.descriptor != STDIN_FILENO)
        close(source.descriptor);
    if (snapshot == NULL)
        return cli_library_error(options.operands[0]);
    return cli_put_snapshot(snapshot, options.output);
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
