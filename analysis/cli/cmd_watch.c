/* cmd_watch.c: tracealloc watch — what a program holds while it runs, in a terminal. The parts are in watch.h. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/processes.h"
#include "analysis/cli/watch.h"

static const struct option long_options[] = {
    {"delay", required_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* 0, or 1 when help was printed, or -1 after a message. */
static int parse(double *seconds, int argc, char **argv)
{
    int option;
    char *end;
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:d:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            printf("usage: tracealloc watch %s\n%s\n\n%s", cli_watch.arguments, cli_watch.summary, cli_watch.help);
            return 1;
        }
        if (option != 'd')
            return cli_error("watch: unknown option '%s' (see tracealloc watch --help)", argv[optind - 1]), -1;
        *seconds = strtod(optarg, &end);
        if (end == optarg || *end != '\0' || !(*seconds >= 0.1 && *seconds <= 3600))
            return cli_error("watch: -d: expected seconds from 0.1 to 3600, not '%s'", optarg), -1;
    }
    return 0;
}

static int run(int argc, char **argv)
{
    double seconds = 1;
    struct cli_watch watch = {.order = CLI_BY_LIVE};
    struct cli_feed feed;
    int parsed = parse(&seconds, argc, argv);
    if (parsed != 0)
        return parsed < 0 ? CLI_TROUBLE : cli_finish_output();
    int is_program = optind > 0 && optind < argc && strcmp(argv[optind - 1], "--") == 0;
    if (!is_program)
        argc = optind + cli_processes_meant(argv + optind, argc - optind);
    if (optind >= argc || (!is_program && optind + 1 != argc))
        return cli_error("usage: tracealloc watch %s", cli_watch.arguments);
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return cli_error("watch: needs a terminal; tracealloc top FILE says what a recording holds now");
    int status = cli_feed_open(&feed, argv[optind], is_program ? argv + optind : NULL);
    if (status == CLI_OK) {
        if (feed.path != NULL)
            cli_watch_recall(&watch, feed.path);
        status = cli_watch_show(&watch, &feed, seconds);
        cli_feed_close(&feed);
    }
    cli_watch_free(&watch);
    return status;
}

const struct cli_command cli_watch = {
    .name = "watch",
    .arguments = "[-d SECONDS] PID | FILE | -- PROGRAM [ARGUMENT …]",
    .summary = "watch in the terminal what a program holds, while it runs",
    .help = "  PID            a process that is recorded (tracealloc run), or has a channel (tracealloc ctl),\n"
            "                 or else is traced: then its memory is read from outside\n"
            "  FILE           a recording that grows\n"
            "  -- PROGRAM     start it under tracealloc run with an entry a second; what it says goes to a file\n"
            "  -d SECONDS     between two looks: 1 unless given\n"
            "\n"
            "Totals, rates, the table of one's own code with growth since a mark, the tree of calls, the domains.\n"
            "Tab changes the view, s the order, / filters, m marks, space freezes, w writes a snapshot, t stops and\n"
            "starts tracing, ? lists the keys. q leaves, and the program goes on as it is.\n"
            "\n"
            "  tracealloc watch -- redis-server --port 7000\n"
            "  tracealloc watch $(pidof redis-server)\n",
    .run = run,
};
