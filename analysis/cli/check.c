/* check.c: tracealloc check — whether a recording is sound. */
#include <inttypes.h>

#include "analysis/cli/cli.h"

static void report(void *user, int severity, uint64_t offset, const char *section, const char *text)
{
    static const char *const words[] = {"note", "warning", "error"};
    const char *path = user;
    printf("%s: %s at byte %" PRIu64 "%s%s: %s\n", path, words[severity >= 0 && severity <= 2 ? severity : 2], offset,
           *section != '\0' ? ", " : "", section, text);
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_check, 0, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    const char *path = options.operands[0];
    long problems = ta_recording_check(path, report, options.operands[0]);
    if (problems < 0)
        return cli_error("%s", ta_error_text());
    if (problems == 0)
        printf("%s: sound\n", path);
    int status = cli_finish_output();
    return status != CLI_OK ? status : problems > 0 ? CLI_NO : CLI_OK;
}

const struct cli_command cli_check = {
    .name = "check",
    .arguments = "FILE",
    .summary = "read a whole recording and say what is wrong with it, and where",
    .help = "Exit status: 0 sound, 1 something is wrong, 2 it cannot be read at all.\n"
            "\n"
            "  tracealloc check server.ta\n",
    .run = run,
};
