/* main.c: the program tracealloc — finds the command and runs it. To add a command, write its file and list it here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/inside.h"

static const struct cli_command *const commands[] = {
    &cli_run,
    &cli_top,
    &cli_diff,
    &cli_tree,
    &cli_annotate,
    &cli_cost,
    &cli_ctl,
    &cli_growth,
    &cli_gate,
    &cli_report,
    &cli_watch,
    &cli_flame,
    &cli_biggest,
    &cli_list,
    &cli_info,
    &cli_domains,
    &cli_pretty,
    &cli_stats,
    &cli_filter,
    &cli_symbolize,
    &cli_check,
    &cli_rules,
    &cli_import,
    &cli_export,
    /* Processes and cores, from outside. */
    &cli_take,
    &cli_memory,
    &cli_leaks,
    &cli_why,
    &cli_retained,
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static int print_usage(void)
{
    puts("usage: tracealloc COMMAND [ARGUMENT …]\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    puts("\nTo begin with: tracealloc run --top -- PROGRAM [ARGUMENT …]\n"
         "tracealloc COMMAND --help says more. FILE may name one entry of a series: FILE@0 is the first, FILE@-1 the "
         "last, FILE@TEXT the last with the mark TEXT.");
    return cli_finish_output();
}

static int unknown(const char *word)
{
    char *names = cli_text("%s", "");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char *longer = cli_text("%s%s%s", names, i > 0 ? ", " : "", commands[i]->name);
        free(names);
        names = longer;
    }
    cli_error("unknown command '%s' (%s)", word, names);
    free(names);
    return CLI_TROUBLE;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return cli_error("a command is missing (see tracealloc --help)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return print_usage();
    if (strcmp(argv[1], "--version") == 0) {
        puts("tracealloc " TRACEALLOC_VERSION);
        return cli_finish_output();
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            return commands[i]->run(argc - 1, argv + 1);
    return unknown(argv[1]);
}
