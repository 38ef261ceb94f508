/* cmd_check.c: tracealloc check — whether a recording is sound. */
#include <inttypes.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/table.h"

static const struct cli_column columns[] = {
    {"severity", "", CLI_TEXT, 0},
    {"offset", "", CLI_NUMBER, 0},
    {"section", "", CLI_TEXT, 0},
    {"text", "", CLI_TEXT, 0},
};
#define COLUMNS (sizeof columns / sizeof *columns)

struct listing {
    const char *path;
    struct cli_table *table; /* NULL: printed as they come */
};

static void report(void *user, int severity, uint64_t offset, const char *section, const char *text)
{
    static const char *const words[] = {"note", "warning", "error"};
    const struct listing *listing = user;
    const char *word = words[severity >= 0 && severity <= 2 ? severity : 2];
    cli_progress_wipe();
    if (listing->table != NULL)
        cli_table_add(listing->table, (struct cli_cell[COLUMNS]){
                                          {.text = word}, {.number = offset}, {.text = section}, {.text = text}});
    else
        printf("%s: %s at byte %" PRIu64 "%s%s: %s\n", listing->path, word, offset, *section != '\0' ? ", " : "",
               section, text);
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_check, CLI_JSON | CLI_CSV, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct listing listing = {options.operands[0], NULL};
    if (options.json || options.csv)
        listing.table = cli_table_new(columns, COLUMNS);
    cli_progress_begin("checking the recording");
    long problems = ta_recording_check(listing.path, report, &listing);
    cli_progress_end();
    if (problems >= 0 && listing.table != NULL)
        cli_table_print(listing.table, &options);
    else if (problems == 0)
        printf("%s: sound\n", listing.path);
    cli_table_free(listing.table);
    if (problems < 0)
        return cli_error("%s", ta_error_text());
    int status = cli_finish_output();
    return status != CLI_OK ? status : problems > 0 ? CLI_NO : CLI_OK;
}

const struct cli_command cli_check = {
    .name = "check",
    .arguments = "FILE [--json | --csv]",
    .summary = "read a whole recording and say what is wrong with it, and where",
    .help = "  --json, --csv    a list of severity, offset, section and text; empty when nothing is to be said\n"
            "\n"
            "Exit status: 0 sound, 1 something is wrong, 2 it cannot be read at all.\n"
            "\n"
            "  tracealloc check server.ta\n",
    .run = run,
};
