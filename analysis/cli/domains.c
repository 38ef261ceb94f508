/* domains.c: tracealloc domains — what each domain holds. */
#include "analysis/cli/cli.h"
#include "analysis/cli/table.h"

static const struct cli_column columns[] = {
    {"domain", "DOMAIN", CLI_NUMBER, 0},
    {"live_bytes", "LIVE", CLI_BYTES, CLI_STRONG},
    {"live_blocks", "BLOCKS", CLI_NUMBER, 0},
    {"peak_bytes", "PEAK", CLI_BYTES, 0},
    {"allocated_bytes", "TOTAL", CLI_BYTES, 0},
    {"allocated_blocks", "CALLS", CLI_NUMBER, 0},
    {"limit_bytes", "LIMIT", CLI_BYTES, CLI_MACHINES_ONLY},
    {"limit", "LIMIT", CLI_TEXT, CLI_PEOPLE_ONLY},
    {"name", "NAME", CLI_TEXT, 0},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_domains, CLI_FORMATS, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load(options.operands[0]);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    struct cli_table *table = cli_table_new(columns, COLUMNS);
    struct ta_domain_info domain;
    for (size_t i = 0; ta_snapshot_domain(snapshot, i, &domain, sizeof domain) == 0; i++) {
        char limit[32] = "-";
        if (domain.limit_bytes != 0 && domain.limit_bytes != UINT64_MAX)
            ta_size_text((double)domain.limit_bytes, 0, limit, sizeof limit);
        cli_table_add(table, (struct cli_cell[COLUMNS]){{.number = domain.number},
                                                        {.number = domain.live_bytes},
                                                        {.number = domain.live_blocks},
                                                        {.number = domain.peak_bytes},
                                                        {.number = domain.allocated_bytes},
                                                        {.number = domain.allocated_blocks},
                                                        {.number = domain.limit_bytes},
                                                        {.text = limit},
                                                        {.text = domain.name}});
    }
    cli_table_print(table, &options);
    cli_table_free(table);
    ta_snapshot_free(snapshot);
    return cli_finish_output();
}

const struct cli_command cli_domains = {
    .name = "domains",
    .arguments = "FILE[@ENTRY] [--json | --csv]",
    .summary = "list the domains: live, peak, totals, limits",
    .help = "What a domain holds by line: tracealloc top FILE --where domain:NUMBER\n"
            "\n"
            "  tracealloc domains server.ta\n",
    .run = run,
};
