/* cmd_domains.c: tracealloc domains — what each domain holds. Live and total figures are the sums of its traces, so that they
 * agree with every other command; peak, limit and name are what the program knew. */
#include <stdlib.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/table.h"

static const struct cli_column columns[] = {
    {"domain", "DOMAIN", CLI_NUMBER, 0},
    {"live_bytes", "LIVE", CLI_BYTES, CLI_STRONG},
    {"live_blocks", "BLOCKS", CLI_NUMBER, CLI_GOES(4)},
    {"peak_bytes", "PEAK", CLI_BYTES, CLI_MACHINES_ONLY},
    {"peak", "PEAK", CLI_TEXT, CLI_PEOPLE_ONLY},
    {"allocated_bytes", "TOTAL", CLI_BYTES, CLI_GOES(2)},
    {"allocated_blocks", "CALLS", CLI_NUMBER, CLI_GOES(1)},
    {"limit_bytes", "LIMIT", CLI_BYTES, CLI_MACHINES_ONLY},
    {"limit", "LIMIT", CLI_TEXT, CLI_PEOPLE_ONLY | CLI_GOES(3)},
    {"name", "NAME", CLI_TEXT, 0},
};
#define COLUMNS (sizeof columns / sizeof *columns)

struct rows {
    struct ta_domain_info *items; /* live and total figures are sums */
    size_t count, capacity, last;
};

static struct ta_domain_info *add_row(struct rows *rows, const struct ta_domain_info *domain)
{
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity * 2 + 16;
        rows->items = cli_enlarge(rows->items, rows->capacity, sizeof *rows->items);
    }
    rows->items[rows->count] = *domain;
    return &rows->items[rows->count++];
}

/* Neighbouring traces are mostly of one domain. Domains that only traces know, as in imported snapshots, get a row. */
static struct ta_domain_info *find_row(struct rows *rows, uint32_t number)
{
    for (size_t i = 0; i < rows->count; i++) {
        size_t at = (rows->last + i) % rows->count;
        if (rows->items[at].number == number) {
            rows->last = at;
            return &rows->items[at];
        }
    }
    return add_row(rows, &(struct ta_domain_info){.number = number, .name = ""});
}

static void collect(struct ta_snapshot *snapshot, struct rows *rows)
{
    struct ta_domain_info domain;
    for (size_t i = 0; ta_snapshot_domain(snapshot, i, &domain, sizeof domain) == 0; i++) {
        domain.live_bytes = domain.live_blocks = domain.allocated_bytes = domain.allocated_blocks = 0;
        add_row(rows, &domain);
    }
    long count = ta_snapshot_trace_count(snapshot) + ta_snapshot_gone_trace_count(snapshot);
    for (long i = 0; i < count; i++) {
        struct ta_trace trace;
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) != 0)
            continue;
        struct ta_domain_info *sums = find_row(rows, trace.domain);
        sums->live_bytes += trace.size;
        sums->live_blocks += trace.count;
        sums->allocated_bytes += trace.allocated_bytes;
        sums->allocated_blocks += trace.allocated_blocks;
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = ((const struct ta_domain_info *)a)->number, y = ((const struct ta_domain_info *)b)->number;
    return (x > y) - (x < y);
}

static void add_to_table(struct cli_table *table, const struct ta_domain_info *domain)
{
    char limit[32] = "-", peak[32] = "-";
    if (domain->limit_bytes != 0 && domain->limit_bytes != UINT64_MAX)
        ta_size_text((double)domain->limit_bytes, 0, limit, sizeof limit);
    if (domain->peak_bytes != 0)
        ta_size_text((double)domain->peak_bytes, 0, peak, sizeof peak);
    cli_table_add(table, (struct cli_cell[COLUMNS]){{.number = domain->number},
                                                    {.number = domain->live_bytes},
                                                    {.number = domain->live_blocks},
                                                    {.number = domain->peak_bytes},
                                                    {.text = peak},
                                                    {.number = domain->allocated_bytes},
                                                    {.number = domain->allocated_blocks},
                                                    {.number = domain->limit_bytes},
                                                    {.text = limit},
                                                    {.text = domain->name}});
}

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
    struct rows rows = {0};
    collect(snapshot, &rows);
    if (rows.count > 0)
        qsort(rows.items, rows.count, sizeof *rows.items, by_number);
    struct ta_snapshot_info info; /* who is alone has had what all have had */
    if (rows.count == 1 && rows.items[0].peak_bytes == 0 && ta_snapshot_info(snapshot, &info, sizeof info) == 0)
        rows.items[0].peak_bytes = info.peak_bytes;
    struct cli_table *table = cli_table_new(columns, COLUMNS);
    for (size_t i = 0; i < rows.count; i++)
        add_to_table(table, &rows.items[i]);
    cli_table_print(table, &options);
    cli_table_free(table);
    free(rows.items);
    ta_snapshot_free(snapshot);
    return cli_finish_output();
}

const struct cli_command cli_domains = {
    .name = "domains",
    .arguments = "FILE[@ENTRY] [--json | --csv]",
    .summary = "list the domains: live, peak, totals, limits",
    .help = "  --json, --csv    the domains for other programs\n"
            "  --color WHEN     auto (default), always or never; NO_COLOR is respected\n"
            "\n"
            "What a domain holds by line: tracealloc top FILE --where domain:NUMBER\n"
            "\n"
            "  tracealloc domains server.ta\n",
    .run = run,
};
