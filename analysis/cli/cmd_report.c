/* cmd_report.c: tracealloc report — one page of HTML to look at: a recording, the processes of a run, or two recordings
 * compared. The library writes it (tracealloc/export.h); here files are named, and a browser is asked to show it. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracealloc/export.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/family.h"
#include "analysis/cli/project.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"

struct report {
    struct ta_report_file *files;
    size_t count;
    int has_family;
};

/* ---- files ---- */

static void add_file(struct report *report, const struct ta_report_file *file)
{
    report->files = cli_enlarge(report->files, report->count + 1, sizeof *report->files);
    report->files[report->count++] = *file;
}

static int add_operand(struct report *report, char *path)
{
    if (!cli_family_is(path)) {
        add_file(report, &(struct ta_report_file){.path = path});
        return CLI_OK;
    }
    size_t count;
    struct cli_family_member *members = cli_family_members(path, &count);
    for (size_t i = 0; i < count; i++)
        add_file(report, &(struct ta_report_file){.path = members[i].path,
                                                  .name = members[i].command,
                                                  .process = members[i].process,
                                                  .parent = members[i].parent,
                                                  .end = members[i].end});
    report->has_family = 1;
    free(members); /* its texts stay */
    return count > 0 ? CLI_OK : cli_error("%s: none of its processes left a recording", path);
}

/* "server.ta@3" → "server.html", in the working directory. */
static char *name_output(const char *path)
{
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path, *dot = strrchr(base, '.');
    size_t length = dot != NULL && dot != base ? (size_t)(dot - base) : strcspn(base, "@");
    return cli_text("%.*s.html", (int)length, base);
}

/* ---- a browser ---- */

static int show(const char *path)
{
    static const char *const names[] = {NULL, "xdg-open", "sensible-browser", "open"};
    char *folder = realpath(path, NULL);
    int status = -1;
    pid_t child = folder != NULL ? fork() : -1;
    if (child == 0) {
        const char *browser = getenv("BROWSER");
        if (browser != NULL && *browser != '\0')
            execlp(browser, browser, folder, (char *)NULL);
        for (size_t i = 1; i < sizeof names / sizeof *names; i++)
            execlp(names[i], names[i], folder, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    free(folder);
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CLI_OK;
    return cli_error("report: no browser could be started (BROWSER, xdg-open); the page is in %s", path);
}

/* ---- the command ---- */

static void tell(const char *path)
{
    struct stat status;
    char size[32];
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    ta_size_text((double)status.st_size, 0, size, sizeof size);
    fprintf(stderr, "tracealloc: report in %s (%s)\n", path, size);
}

static int write_report(const struct report *report, const struct cli_options *options, const char *path)
{
    struct ta_report_options how = {.title = options->title,
                                    .compares = report->count == 2 && !report->has_family && !options->together,
                                    .without_sources = options->no_source};
    struct cli_output output;
    int status = cli_project_rules(options, &how.rules);
    if (status == CLI_OK)
        status = cli_output_open(&output, path);
    if (status != CLI_OK) {
        ta_own_rules_free(how.rules);
        return status;
    }
    cli_progress_begin("reading the recordings");
    if (ta_report_write(report->files, report->count, &how, sizeof how, cli_output_write, &output) != 0)
        status = cli_output_trouble(&output, "report");
    cli_progress_end();
    ta_own_rules_free(how.rules);
    return cli_output_close(&output, status);
}

static int run(int argc, char **argv)
{
    struct report report = {.count = 0};
    struct cli_options options;
    int status = CLI_OK;
    if (cli_parse(&options, &cli_report, CLI_OUTPUT | CLI_TITLE | CLI_OWN | CLI_OPEN | CLI_NO_SOURCE | CLI_TOGETHER, 1,
                  INT_MAX, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    for (int i = 0; i < options.operand_count && status == CLI_OK; i++)
        status = add_operand(&report, options.operands[i]);
    char *path = options.output != NULL ? cli_text("%s", options.output) : name_output(options.operands[0]);
    if (status == CLI_OK)
        status = write_report(&report, &options, path);
    if (status == CLI_OK && strcmp(path, "-") != 0) {
        tell(path);
        status = options.open ? show(path) : CLI_OK;
    }
    free(report.files);
    free(path);
    return status;
}

const struct cli_command cli_report = {
    .name = "report",
    .arguments = "FILE[@ENTRY]… | RUN.run | NEW OLD [-o PAGE.html] [--open] [--title TEXT] [--no-source] [--together]",
    .summary = "make a page to look at: sizes over time, who holds the memory, flame graph, sources",
    .help =
        "  -o FILE        the page: named after the recording, in this folder, unless given; - is standard output\n"
        "  --open         show it in a browser ($BROWSER, xdg-open)\n"
        "  --title TEXT   the heading\n"
        "  --no-source    leave out the lines of the sources\n"
        "  --skip PATTERN what is not one's own: functions, files or modules; --own PATTERN: what is (docs/own.md)\n"
        "  --no-skip      nothing is skipped but by --skip after it: the innermost frames\n"
        "  --together     two files are two processes of one run: without it the first is compared with the second\n"
        "\n"
        "One file that needs no other and no network, to keep and to send. Of the index of a run (NAME.run), or of\n"
        "more than two recordings, it shows the processes together. Dragging over the curve selects a range of time\n"
        "that everything else then answers for; ? shows the keys; the address keeps what one sees. docs/report.md\n"
        "says more.\n"
        "\n"
        "  tracealloc report server.ta --open\n"
        "  tracealloc report new.ta old.ta -o growth.html\n",
    .run = run,
};
