/* cmd_list.c: tracealloc list — the entries of a recording, or the processes of a run. */
#include "analysis/cli/cli.h"
#include "analysis/cli/family.h"
#include "analysis/cli/table.h"

static const struct cli_column columns[] = {
    {"entry", "@", CLI_NUMBER, 0},
    {"time_ns", "TIME", CLI_TIME, CLI_GOES(1)},
    {"", "AFTER", CLI_TEXT, CLI_PEOPLE_ONLY},
    {"seconds", "", CLI_SHARE, CLI_MACHINES_ONLY},
    {"current_bytes", "LIVE", CLI_BYTES, 0},
    {"peak_bytes", "PEAK", CLI_BYTES, CLI_GOES(4)},
    {"traces", "TRACES", CLI_NUMBER, CLI_GOES(3)},
    {"file_bytes", "BYTES", CLI_BYTES, CLI_GOES(2)},
    {"reason", "REASON", CLI_TEXT, 0},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_list, CLI_FORMATS, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (cli_family_is(options.operands[0]))
        return cli_family_list(options.operands[0], &options);
    struct ta_recording *recording = ta_recording_open(options.operands[0]);
    if (recording == NULL)
        return cli_error("%s", ta_error_text());
    if (*ta_recording_warning(recording) != '\0')
        cli_warning("%s: %s", options.operands[0], ta_recording_warning(recording));
    struct cli_table *table = cli_table_new(columns, COLUMNS);
    struct ta_entry_info entry;
    uint64_t first = 0;
    for (size_t i = 0; ta_recording_entry(recording, i, &entry) == 0; i++) {
        char seconds[32];
        first = i == 0 ? entry.time_ns : first;
        double since = (double)(int64_t)(entry.time_ns - first) / 1e9;
        snprintf(seconds, sizeof seconds, "%+.3f", since);
        cli_table_add(table, (struct cli_cell[COLUMNS]){{.number = i},
                                                        {.number = entry.time_ns},
                                                        {.text = seconds},
                                                        {.share = since},
                                                        {.number = entry.current_bytes},
                                                        {.number = entry.peak_bytes},
                                                        {.number = entry.traces},
                                                        {.number = entry.length},
                                                        {.text = ta_recording_reason(recording, i)}});
    }
    cli_table_print(table, &options);
    cli_table_free(table);
    ta_recording_close(recording);
    return cli_finish_output();
}

const struct cli_command cli_list = {
    .name = "list",
    .arguments = "FILE [--json | --csv]",
    .summary = "list the entries of a recording, or the processes of a run",
    .help =
        "  --json, --csv    the entries for other programs\n"
        "  --color WHEN     auto (default), always or never; NO_COLOR is respected\n"
        "\n"
        "Other commands take one of them as FILE@ENTRY; FILE alone is the last.\n"
        "\n"
        "Of the folder that tracealloc run leaves for several processes (NAME.run) it lists these as a tree: parent,\n"
        "status or signal, reason of the last entry, recording, command. One that executed another program has a\n"
        "row for each; what could not be recorded stands there with the reason. Other commands take the folder as\n"
        "the sum of all processes.\n"
        "\n"
        "  tracealloc list server.ta\n"
        "  tracealloc list server.run\n",
    .run = run,
};
