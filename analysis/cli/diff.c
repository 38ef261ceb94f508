/* diff.c: tracealloc diff — what changed between two snapshots. */
#include <stdlib.h>
#include <unistd.h>

#include "analysis/cli/cli.h"

static int print_text(const struct ta_differences *differences, size_t limit)
{
    size_t count = ta_differences_count(differences);
    for (size_t i = 0; i < count && i < limit; i++) {
        size_t length = ta_differences_text(differences, i, NULL, 0);
        char *text = malloc(length + 1);
        if (text == NULL)
            return cli_error("out of memory");
        ta_differences_text(differences, i, text, length + 1);
        cli_print_line(text, length);
        free(text);
    }
    return cli_finish_output();
}

static int print_json(const struct ta_differences *differences, size_t limit)
{
    int descriptor = STDOUT_FILENO;
    if (ta_differences_export_json(differences, limit, ta_write_to_descriptor, &descriptor) != 0)
        return cli_library_error("standard output");
    return CLI_OK;
}

/* Allowed, but worth a word to a person: whole stacks of two lengths do not meet. */
static void warn_about_limits(struct ta_snapshot *new_snapshot, struct ta_snapshot *old_snapshot)
{
    int new_limit = ta_snapshot_traceback_limit(new_snapshot), old_limit = ta_snapshot_traceback_limit(old_snapshot);
    if (new_limit != old_limit && isatty(STDERR_FILENO))
        cli_warning("the snapshots keep %d and %d frames per stack", new_limit, old_limit);
}

static int compare(struct ta_snapshot *new_snapshot, struct ta_snapshot *old_snapshot,
                   const struct cli_options *options)
{
    const char *key = options->key != NULL ? options->key : "lineno";
    warn_about_limits(new_snapshot, old_snapshot);
    struct ta_differences *differences = ta_snapshot_compare_to(new_snapshot, old_snapshot, key, options->cumulative);
    int status = CLI_TROUBLE;
    if (differences == NULL || ta_differences_sort(differences, options->order) != 0)
        cli_library_error("diff");
    else
        status = options->json ? print_json(differences, options->limit) : print_text(differences, options->limit);
    ta_differences_free(differences);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_diff,
                  CLI_KEY | CLI_CUMULATIVE | CLI_JSON | CLI_LIMIT | CLI_SORT | CLI_WHERE | CLI_SPEC, 2, 2, argc,
                  argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *new_snapshot = cli_load_filtered(options.operands[0], &options), *old_snapshot = NULL;
    if (new_snapshot != NULL)
        old_snapshot = cli_load_filtered(options.operands[1], &options);
    int status = old_snapshot == NULL ? CLI_TROUBLE : compare(new_snapshot, old_snapshot, &options);
    ta_snapshot_free(new_snapshot);
    ta_snapshot_free(old_snapshot);
    return status;
}

const struct cli_command cli_diff = {
    .name = "diff",
    .arguments = "NEW OLD [--key KEY] [--cumulative] [--sort ORDER] [--limit N] [--where FILTER] [--json]",
    .summary = "compare two snapshots group by group, largest change first",
    .help =
        "  --key KEY        traceback, lineno (default), filename, function, module, domain or thread\n"
        "  --cumulative     count a block for every frame of its stack\n"
        "  --sort ORDER     size (default: the absolute change), growth, released, count, allocated, calls or peak\n"
        "  --limit N        the first N groups only\n"
        "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
        "  --spec FILE      only traces that a JSON list of filters keeps\n"
        "  --json           a list of {frames, size, size_diff, count, count_diff, str}\n",
    .run = run,
};
