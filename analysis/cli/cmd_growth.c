/* cmd_growth.c: tracealloc growth — leak, cache or churn: the course of every place over all entries of a recording. */
#include "analysis/cli/growth.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/places.h"
#include "analysis/cli/project.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/top.h"

static const struct cli_column columns[] = {
    {"growth", "COURSE", CLI_TEXT, 0},
    {"graph", "", CLI_TEXT, CLI_PEOPLE_ONLY | CLI_GOES(2)},
    {"size", "LIVE", CLI_BYTES, CLI_GOES(3)},
    {"grown_size", "GREW", CLI_BYTES, CLI_STRONG},
    {"certainty", "SURE", CLI_SHARE, CLI_GOES(1)},
    {"count", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"peak_size", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"bytes_per_minute", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"bytes_per_call", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"key", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"line", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"function", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"reason", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"place", "WHERE", CLI_PLACE, CLI_PEOPLE_ONLY},
};
#define COLUMNS (sizeof columns / sizeof *columns)

/* ---- small graphs ---- */

#define GRAPH_MAX 32

/* The course by time: each cell has the largest value of its share, or what was there before it. */
static void course_graph(const struct ta_series *series, const uint64_t *sizes, size_t cells, char *text, size_t size)
{
    double values[GRAPH_MAX] = {0};
    struct ta_series_entry first, last, entry;
    size_t count = ta_series_entry_count(series), next = 0;
    ta_series_get_entry(series, 0, &first, sizeof first);
    ta_series_get_entry(series, count - 1, &last, sizeof last);
    double span = last.time_ns > first.time_ns ? (double)(last.time_ns - first.time_ns) : 1;
    for (size_t cell = 0; cell < cells; cell++) {
        double value = next > 0 ? (double)sizes[next - 1] : 0;
        int is_first = 1;
        for (; next < count; next++, is_first = 0) {
            ta_series_get_entry(series, next, &entry, sizeof entry);
            double at = count == 1 ? 0 : (double)(int64_t)(entry.time_ns - first.time_ns) / span;
            if (cell + 1 < cells && at * (double)cells >= (double)(cell + 1))
                break;
            value = is_first || (double)sizes[next] > value ? (double)sizes[next] : value;
        }
        values[cell] = value;
    }
    cli_graph_text(values, cells, text, size);
}

/* ---- rows ---- */

static void note_reason(struct cli_table *table, const struct ta_series_row *row)
{
    char rate[32], each[32];
    ta_size_text(row->bytes_per_minute, 0, rate, sizeof rate);
    ta_size_text(row->bytes_per_call, 0, each, sizeof each);
    if (row->growth == TA_GROWTH_UNKNOWN) /* the head says it for all */
        return;
    int has_rate = row->bytes_per_minute > 0, has_each = row->bytes_per_call > 0;
    cli_table_note(table, "%s%s%s%s%s%s%s", has_rate ? rate : "", has_rate ? "/min" : "",
                   has_rate && has_each ? ", " : "", has_each ? each : "", has_each ? " a call" : "",
                   has_rate || has_each ? ": " : "", row->reason);
}

/* Classes 0 … last that are used, as a graph with its ends. */
static void note_histogram(struct cli_table *table, const char *what, const uint64_t *classes, size_t count,
                           int is_size)
{
    size_t first = 0, last = count;
    char graph[GRAPH_MAX * 4 + 1], from[32], to[32];
    double values[GRAPH_MAX] = {0};
    while (first < count && classes[first] == 0)
        first++;
    while (last > first && classes[last - 1] == 0)
        last--;
    if (first == last)
        return;
    if (last - first > GRAPH_MAX)
        first = last - GRAPH_MAX;
    for (size_t i = first; i < last; i++)
        values[i - first] = (double)classes[i];
    cli_graph_text(values, last - first, graph, sizeof graph);
    double low = first == 0 ? 0 : (double)(UINT64_C(1) << (first - 1)),
           high = last == 1 ? 0 : (double)(UINT64_C(1) << (last - 2)) * 2;
    if (is_size) {
        ta_size_text(low, 0, from, sizeof from);
        ta_size_text(high, 0, to, sizeof to);
    } else {
        snprintf(from, sizeof from, "%.0f", low);
        snprintf(to, sizeof to, "%.0f", high);
    }
    cli_table_note(table, "%s %s |%s| %s", what, from, graph, to);
}

static void note_histograms(struct cli_table *table, const struct ta_series_row *row)
{
    note_histogram(table, "sizes", row->by_size, TA_SIZE_CLASSES, 1);
    note_histogram(table, "lifetimes in entries", row->by_life, TA_LIFE_CLASSES, 0);
    if (row->still_live > 0)
        cli_table_note(table, "never freed: %" PRIu64 " of %" PRIu64 " block%s", row->still_live, row->allocated_count,
                       cli_s(row->allocated_count));
}

static void add_row(struct cli_table *table, const struct ta_series *series, size_t index, int wants_histograms)
{
    struct ta_series_row row;
    size_t count = ta_series_entry_count(series), cells = cli_width() >= 120 ? 24 : 12;
    uint64_t *sizes = cli_allocate(count, sizeof *sizes);
    char graph[GRAPH_MAX * 4 + 1], place[PATH_MAX + 16];
    ta_series_get_row(series, index, &row, sizeof row);
    ta_series_course(series, index, sizes, NULL, count);
    course_graph(series, sizes, cells, graph, sizeof graph);
    cli_place_text(&row.frame, place, sizeof place);
    char *name = cli_frame_name(&row.frame);
    cli_table_add(table, (struct cli_cell[COLUMNS]){{.text = ta_growth_name(row.growth)},
                                                    {.text = graph},
                                                    {.number = row.size},
                                                    {.number = row.grown_size},
                                                    {.share = row.certainty},
                                                    {.number = row.count},
                                                    {.number = row.peak_size},
                                                    {.number = (uint64_t)row.bytes_per_minute},
                                                    {.number = (uint64_t)row.bytes_per_call},
                                                    {.text = row.frame.filename},
                                                    {.number = row.frame.lineno},
                                                    {.text = row.frame.function},
                                                    {.text = row.reason},
                                                    {.text = place, .more = name}});
    free(name);
    note_reason(table, &row);
    if (wants_histograms)
        note_histograms(table, &row);
    free(sizes);
}

static void print_heading(const struct ta_series *series, const char *path)
{
    struct ta_series_entry first, last;
    char live[32], name[PATH_MAX];
    size_t count = ta_series_entry_count(series);
    ta_series_get_entry(series, 0, &first, sizeof first);
    ta_series_get_entry(series, count - 1, &last, sizeof last);
    ta_size_text((double)last.size, 0, live, sizeof live);
    cli_short_path(path, name, sizeof name);
    char *text =
        cli_text("%s: %" PRIu64 " %s over %.1f s, %s live in the last\n", name, last.index + 1,
                 last.index == 0 ? "entry" : "entries", (double)(int64_t)(last.time_ns - first.time_ns) / 1e9, live);
    cli_print_wrapped(text);
    free(text);
    if (last.index + 1 < 4)
        printf("few entries tell little: tracealloc run --interval=SECONDS records a course\n");
    putchar('\n');
}

/* What the table does not have: how many places, and what they hold in the last entry. */
static void print_rest(const struct ta_series *series, size_t rows)
{
    size_t count = ta_series_row_count(series);
    uint64_t live = 0;
    char text[32];
    if (count <= rows)
        return;
    for (size_t i = rows; i < count; i++) {
        struct ta_series_row row;
        ta_series_get_row(series, i, &row, sizeof row);
        live = row.size > UINT64_MAX - live ? UINT64_MAX : live + row.size;
    }
    ta_size_text((double)live, 0, text, sizeof text);
    printf("%s… and %zu more: %s live (-n 0 lists all)%s\n", cli_style(CLI_DIM), count - rows, text,
           cli_style(CLI_PLAIN));
}

/* ---- JSON ---- */

static void print_numbers(const char *name, const uint64_t *numbers, size_t count)
{
    while (count > 0 && numbers[count - 1] == 0)
        count--;
    printf(", \"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%" PRIu64, i > 0 ? ", " : "", numbers[i]);
    putchar(']');
}

static void print_string(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    cli_print_json_string(stdout, text, strlen(text));
}

static void print_json_row(const struct ta_series *series, size_t index)
{
    struct ta_series_row row;
    size_t count = ta_series_entry_count(series);
    uint64_t *sizes = cli_allocate(count, sizeof *sizes), *counts = cli_allocate(count, sizeof *counts);
    ta_series_get_row(series, index, &row, sizeof row);
    ta_series_course(series, index, sizes, counts, count);
    printf("{\"growth\": \"%s\", \"certainty\": %.3f, \"size\": %" PRIu64 ", \"count\": %" PRIu64
           ", \"peak_size\": %" PRIu64 ", \"grown_size\": %" PRIu64 ", \"bytes_per_minute\": %.1f, "
           "\"bytes_per_call\": %.1f, \"allocated_size\": %" PRIu64 ", \"allocated_count\": %" PRIu64,
           ta_growth_name(row.growth), row.certainty, row.size, row.count, row.peak_size, row.grown_size,
           row.bytes_per_minute, row.bytes_per_call, row.allocated_size, row.allocated_count);
    print_string("key", row.frame.filename);
    printf(", \"line\": %" PRIu32, row.frame.lineno);
    print_string("function", row.frame.function);
    print_string("reason", row.reason);
    print_numbers("sizes", sizes, count);
    print_numbers("counts", counts, count);
    print_numbers("blocks_by_size", row.by_size, TA_SIZE_CLASSES);
    print_numbers("blocks_by_lifetime", row.by_life, TA_LIFE_CLASSES);
    printf(", \"never_freed\": %" PRIu64 "}", row.still_live);
    free(sizes);
    free(counts);
}

static void print_json(const struct ta_series *series, const char *path, size_t rows)
{
    printf("{\"file\": ");
    cli_print_json_string(stdout, path, strlen(path));
    printf(", \"entries\": [");
    for (size_t i = 0; i < ta_series_entry_count(series); i++) {
        struct ta_series_entry entry;
        ta_series_get_entry(series, i, &entry, sizeof entry);
        printf("%s\n {\"entry\": %" PRIu64 ", \"time_ns\": %" PRIu64 ", \"size\": %" PRIu64 ", \"restarts\": %s",
               i > 0 ? "," : "", entry.index, entry.time_ns, entry.size, entry.restarts ? "true" : "false");
        print_string("reason", entry.reason);
        putchar('}');
    }
    printf("],\n\"rows\": [");
    for (size_t i = 0; i < rows; i++) {
        fputs(i > 0 ? ",\n " : "\n ", stdout);
        print_json_row(series, i);
    }
    printf("]}");
}

/* ---- the command ---- */

/* Its executable is called what it was called by. */
static void name_program(const char *path)
{
    struct ta_snapshot *last = ta_snapshot_load(path);
    if (last != NULL)
        cli_places_set_program(last);
    ta_snapshot_free(last);
}

int cli_growth_print(const char *path, const struct cli_options *options, size_t rows)
{
    const char *key = options->key != NULL ? options->key : "own";
    struct ta_own_rules *rules;
    if (cli_project_rules(options, &rules) != CLI_OK)
        return CLI_TROUBLE;
    if (!options->json && !options->csv)
        name_program(path);
    cli_progress_begin("following the recording");
    struct ta_series *series = ta_series_load(path, key, rules);
    cli_progress_end();
    ta_own_rules_free(rules);
    if (series == NULL)
        return cli_error("%s", ta_error_text());
    if (rows > ta_series_row_count(series))
        rows = ta_series_row_count(series);
    if (options->json) {
        print_json(series, path, rows);
    } else {
        struct cli_table *table = cli_table_new(columns, COLUMNS);
        for (size_t i = 0; i < rows; i++)
            add_row(table, series, i, options->histogram);
        if (!options->csv)
            print_heading(series, path);
        cli_table_print(table, options);
        cli_table_free(table);
        if (!options->csv)
            print_rest(series, rows);
    }
    ta_series_free(series);
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    int status = CLI_OK;
    if (cli_parse(&options, &cli_growth, CLI_KEY | CLI_LIMIT | CLI_FORMATS | CLI_HISTOGRAM | CLI_OWN | CLI_FULL, 1,
                  INT_MAX, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.json)
        putchar('[');
    for (int i = 0; i < options.operand_count && status == CLI_OK; i++) {
        if (i > 0)
            puts(options.json ? "," : "");
        status = cli_growth_print(options.operands[i], &options, cli_rows(&options, 10));
    }
    if (options.json)
        puts("]");
    return status == CLI_OK ? cli_finish_output() : status;
}

const struct cli_command cli_growth = {
    .name = "growth",
    .arguments = "FILE… [--by KEY] [-n N] [--histogram] [--json | --csv]",
    .summary = "tell leaks from caches and churn: the course of every place over time",
    .help = "  --by KEY         own (default), line, function, file, module, domain or thread\n"
            "  -n N             the first N places of each file: 10 unless given; 0 = all\n"
            "  --histogram      also how large their blocks are, and how many entries they live\n" CLI_HELP_OWN
                CLI_HELP_NAMES "  --json           entries, rows and courses\n"
            "  --csv            the rows\n"
            "  --color WHEN     auto (default), always or never\n"
            "\n"
            "The most leak-like come first. A course is\n"
            "  steady     it grows on and on: a leak, or something that never ends\n"
            "  slowing    it grows, less and less\n"
            "  unsure     it is larger than it was, and too few entries tell more\n"
            "  one-off    one step, flat before and after\n"
            "  plateau    it grew and stopped: a cache that is full, a pool\n"
            "  sawtooth   it comes and goes\n"
            "  start      it was there from the first moments\n"
            "  churn      allocated and freed between the entries\n"
            "  freed      it was there and is gone\n"
            "docs/growth.md has the rules. SURE says how much the entries tell, not how much memory is at stake.\n"
            "\n"
            "  tracealloc run --interval=0.5 --output=server.ta -- ./server\n"
            "  tracealloc growth server.ta\n",
    .run = run,
};
