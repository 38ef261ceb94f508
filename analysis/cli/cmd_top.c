/* cmd_top.c: tracealloc top — who holds the memory: a listing for people, and the same rows for machines. */
#include "analysis/cli/top.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/end_words.h"
#include "analysis/cli/places.h"
#include "analysis/cli/project.h"
#include "analysis/cli/row_text.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

/* Which program it was: as much of it as the line still holds. */
static void print_program(const struct ta_snapshot *snapshot, const struct ta_snapshot_info *info, size_t width)
{
    const char *command = ta_snapshot_metadata(snapshot, "process.command");
    int has_command = command != NULL && *command != '\0';
    const char *program = has_command ? command : info->program;
    char *name = cli_text(", %.*s", has_command ? cli_called_length(program) : (int)strlen(program), program);
    char *process = cli_text(" (process %u)", info->pid);
    width += cli_text_width(name);
    if (*program != '\0' && width <= cli_width())
        printf("%s%s", name, width + strlen(process) <= cli_width() ? process : "");
    putchar('\n');
    free(name);
    free(process);
}

/* Up to a comma or a colon, or to where the next function of a way begins ("f < g (list.c:12)"). */
static size_t part_length(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0' && (text[length] != ' ' || length == 0 ||
                                    (strchr(",:", text[length - 1]) == NULL && strncmp(text + length, " < ", 3) != 0)))
        length++;
    return length;
}

/* A sentence that lists: on a terminal it goes on in the next line from there on. */
static void print_list(const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t length = part_length(text);
        char *part = cli_text("%.*s", (int)length, text);
        size_t columns = cli_text_width(part);
        if (column > 0 && column + 1 + columns > cli_width())
            column = (size_t)printf("\n   ") - 1;
        size_t blank = column > 0;
        printf("%s%s", blank ? " " : "", part);
        column += blank + columns;
        free(part);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

void cli_print_summary(struct ta_snapshot *snapshot, const char *path)
{
    struct ta_snapshot_info info;
    struct ta_trace trace;
    uint64_t bytes = 0, blocks = 0;
    char live[32], peak[32], name[PATH_MAX];
    long count = ta_snapshot_trace_count(snapshot);
    for (long i = 0; i < count; i++)
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) == 0) {
            bytes += trace.size;
            blocks += trace.count;
        }
    if (ta_snapshot_info(snapshot, &info, sizeof info) != 0)
        return;
    ta_size_text((double)bytes, 0, live, sizeof live);
    ta_size_text((double)info.peak_bytes, 0, peak, sizeof peak);
    cli_short_path(path, name, sizeof name);
    char *blocks_text = cli_text(" in %" PRIu64 " block%s", blocks, cli_s(blocks));
    size_t width = cli_text_width(name) + strlen(": ") + strlen(live) + strlen(" live") + strlen(blocks_text);
    printf("%s: %s%s live%s%s", name, cli_style(CLI_BOLD), live, cli_style(CLI_PLAIN), blocks_text);
    free(blocks_text);
    const char *processes = ta_snapshot_metadata(snapshot, "processes");
    if (processes != NULL) {
        int is_one = strcmp(processes, "1") == 0;
        printf(" in %s process%s, %s %s\n", processes, is_one ? "" : "es", is_one ? "peak" : "peaks add up to", peak);
        return;
    }
    if (info.peak_bytes > 0)
        width += (size_t)printf(", peak %s", peak);
    print_program(snapshot, &info, width);
    char *crash = cli_crash_text(snapshot), *end = crash == NULL ? NULL : cli_text("ended by %s", crash);
    if (end != NULL)
        print_list(end);
    free(crash);
    free(end);
    char *memory = cli_memory_text(snapshot);
    if (memory != NULL)
        print_list(memory);
    const char *hint = memory != NULL ? cli_memory_hint(snapshot) : cli_unused_text(snapshot);
    if (hint != NULL) {
        char *line = cli_text("%s\n", hint);
        cli_print_wrapped(line);
        free(line);
    }
    free(memory);
    if (info.sample_bytes > 1)
        printf("sampled: one allocation per %" PRIu64 " bytes in the mean, numbers are estimates\n", info.sample_bytes);
}

struct ta_statistics *cli_group(struct ta_snapshot *snapshot, const char *path, const char *key, int cumulative,
                                enum ta_order order)
{
    cli_progress_begin("grouping the traces");
    struct ta_statistics *statistics = cli_order_wants_gone(order) ? ta_snapshot_churn(snapshot, key, cumulative)
                                                                   : ta_snapshot_statistics(snapshot, key, cumulative);
    int is_sorted = statistics != NULL && ta_statistics_sort(statistics, order) == 0;
    cli_progress_end();
    if (is_sorted)
        return statistics;
    cli_library_error(path);
    ta_statistics_free(statistics);
    return NULL;
}

int cli_print_statistics_json(const struct ta_statistics *statistics, size_t rows)
{
    int descriptor = STDOUT_FILENO;
    cli_progress_begin_output();
    int result = ta_statistics_export_json(statistics, rows, ta_write_to_descriptor, &descriptor);
    cli_progress_end();
    return result == 0 ? CLI_OK : cli_library_error("standard output");
}

void cli_print_statistics_csv(const struct ta_statistics *statistics, size_t rows, int by_stack)
{
    const struct cli_column fields[] = {
        {"size", "", CLI_NUMBER, 0},
        {"count", "", CLI_NUMBER, 0},
        {"allocated_size", "", CLI_NUMBER, 0},
        {"allocated_count", "", CLI_NUMBER, 0},
        {"key", "", CLI_TEXT, 0},
        {"line", "", CLI_NUMBER, 0},
        {"stack", "", CLI_TEXT, by_stack ? 0 : CLI_PEOPLE_ONLY},
    };
    struct cli_table *table = cli_table_new(fields, sizeof fields / sizeof *fields);
    for (size_t i = 0; i < rows && i < ta_statistics_count(statistics); i++) {
        struct ta_statistic statistic;
        struct ta_frame frame = {.filename = ""};
        ta_statistics_get(statistics, i, &statistic);
        ta_traceback_frame(statistic.traceback, -1, &frame);
        char *stack = by_stack ? cli_stack_text(statistic.traceback) : NULL;
        cli_table_add(table, (struct cli_cell[]){{.number = statistic.size},
                                                 {.number = statistic.count},
                                                 {.number = statistic.allocated_size},
                                                 {.number = statistic.allocated_count},
                                                 {.text = frame.filename},
                                                 {.number = frame.lineno},
                                                 {.text = stack}});
        free(stack);
    }
    cli_table_print_csv(table);
    cli_table_free(table);
}

/* ---- the listing ---- */

enum field {
    SIZE,
    SHARE,
    COUNT,
    AVERAGE,
    ALLOCATED_SIZE,
    ALLOCATED_COUNT,
    TEMPORARY_SHARE,
    PEAK_SIZE,
    KEY,
    LINE,
    FUNCTION,
    SOURCE,
    VIA,
    MEMBERS,
    CALLERS,
    STACK,
    MACHINE_FIELDS,
    TEMPORARY = MACHINE_FIELDS,
    PLACE,
    FIELDS
};

static const struct cli_column fields[FIELDS] = {
    [SIZE] = {"size", "LIVE", CLI_BYTES, 0},
    [SHARE] = {"share", "SHARE", CLI_SHARE, CLI_WITH_BAR},
    [COUNT] = {"count", "BLOCKS", CLI_NUMBER, 0},
    [AVERAGE] = {"average", "AVERAGE", CLI_BYTES, 0},
    [ALLOCATED_SIZE] = {"allocated_size", "TOTAL", CLI_BYTES, 0},
    [ALLOCATED_COUNT] = {"allocated_count", "CALLS", CLI_NUMBER, 0},
    [TEMPORARY_SHARE] = {"temporary_share", "GONE", CLI_SHARE, 0},
    [PEAK_SIZE] = {"peak_size", "AT PEAK", CLI_BYTES, 0},
    [KEY] = {"key", "", CLI_TEXT, 0},
    [LINE] = {"line", "", CLI_NUMBER, 0},
    [FUNCTION] = {"function", "", CLI_TEXT, 0},
    [SOURCE] = {"source", "", CLI_TEXT, 0},
    [VIA] = {"via", "", CLI_TEXT, 0},
    [MEMBERS] = {"members", "", CLI_JSON_TEXT, 0},
    [CALLERS] = {"callers", "", CLI_JSON_TEXT, 0},
    [STACK] = {"stack", "", CLI_TEXT, 0},
    [TEMPORARY] = {"", "TEMPORARY", CLI_NUMBER, 0},
    [PLACE] = {"", "WHERE", CLI_PLACE, 0},
};

/* What people see, by order: SHARE stands beside what it is a share of. */
static const enum field shown[][6] = {
    [TA_ORDER_DEFAULT] = {SIZE, SHARE, COUNT, AVERAGE, PLACE},
    [TA_ORDER_COUNT] = {COUNT, SHARE, SIZE, AVERAGE, PLACE},
    [TA_ORDER_ALLOCATED_SIZE] = {ALLOCATED_SIZE, SHARE, ALLOCATED_COUNT, TEMPORARY_SHARE, SIZE, PLACE},
    [TA_ORDER_ALLOCATED_COUNT] = {ALLOCATED_COUNT, SHARE, ALLOCATED_SIZE, TEMPORARY_SHARE, SIZE, PLACE},
    [TA_ORDER_TEMPORARY] = {TEMPORARY, SHARE, TEMPORARY_SHARE, ALLOCATED_SIZE, SIZE, PLACE},
    [TA_ORDER_PEAK] = {PEAK_SIZE, SHARE, SIZE, COUNT, PLACE},
};

struct listing {
    struct ta_snapshot *snapshot;
    struct cli_rows rows;
    uint64_t total; /* what 100% is */
    size_t most;    /* rows to be listed */
    int by_stack, has_members, for_people;
    enum field chosen[MACHINE_FIELDS + 6];
    struct cli_column columns[MACHINE_FIELDS + 6];
    size_t column_count;
};

static int has_field(const struct listing *listing, enum field field)
{
    if (field == STACK)
        return listing->by_stack;
    if (field == VIA || field == MEMBERS)
        return listing->has_members;
    return field != CALLERS || listing->rows.options->callers;
}

static void add_column(struct listing *listing, enum field field, unsigned flags)
{
    listing->chosen[listing->column_count] = field;
    listing->columns[listing->column_count] = fields[field];
    listing->columns[listing->column_count++].flags |= flags;
}

static void choose_columns(struct listing *listing)
{
    for (enum field field = 0; field < MACHINE_FIELDS; field++)
        if (has_field(listing, field))
            add_column(listing, field, CLI_MACHINES_ONLY);
    const enum field *people = shown[listing->rows.order];
    for (size_t i = 0; i == 0 || people[i - 1] != PLACE; i++)
        add_column(listing, people[i], CLI_PEOPLE_ONLY | (i == 0 ? CLI_STRONG : 0));
}

static struct cli_cell cell_of(const struct listing *listing, const struct ta_statistic *statistic,
                               const struct cli_row_text *row, enum field field)
{
    switch (field) {
    case SIZE:
        return (struct cli_cell){.number = statistic->size};
    case SHARE:
        return (struct cli_cell){.share = listing->total == 0 ? 0
                                                              : (double)cli_value(statistic, listing->rows.order) /
                                                                    (double)listing->total};
    case COUNT:
        return (struct cli_cell){.number = statistic->count};
    case AVERAGE:
        return (struct cli_cell){.number = statistic->count > 0 ? statistic->size / statistic->count : 0};
    case ALLOCATED_SIZE:
        return (struct cli_cell){.number = statistic->allocated_size};
    case ALLOCATED_COUNT:
        return (struct cli_cell){.number = statistic->allocated_count};
    case TEMPORARY_SHARE:
        return (struct cli_cell){.share = statistic->temporary_share};
    case PEAK_SIZE:
        return (struct cli_cell){.number = statistic->peak_size};
    case KEY:
        return (struct cli_cell){.text = row->frame.filename};
    case LINE:
        return (struct cli_cell){.number = row->frame.lineno};
    case FUNCTION:
        return (struct cli_cell){.text = cli_row_function(row, listing->rows.key)};
    case SOURCE:
        return (struct cli_cell){.text = row->source};
    case VIA:
        return (struct cli_cell){.text = row->ways.count > 0 ? row->ways.items[0].frame.function : ""};
    case MEMBERS:
        return (struct cli_cell){.text = row->members_json, .more = row->members_plain};
    case CALLERS:
        return (struct cli_cell){.text = row->callers_json, .more = row->callers_plain};
    case STACK:
        return (struct cli_cell){.text = row->stack};
    case TEMPORARY:
        return (struct cli_cell){.number = cli_value(statistic, TA_ORDER_TEMPORARY)};
    default:
        return (struct cli_cell){.text = row->place, .more = row->name, .via = row->via};
    }
}

static void add_row(struct cli_table *table, const struct listing *listing, size_t index)
{
    struct ta_statistic statistic;
    struct cli_row_text row;
    struct cli_cell cells[MACHINE_FIELDS + 6];
    ta_statistics_get(listing->rows.statistics, index, &statistic);
    cli_row_make(&row, &listing->rows, index);
    for (size_t c = 0; c < listing->column_count; c++)
        cells[c] = cell_of(listing, &statistic, &row, listing->chosen[c]);
    cli_table_add(table, cells);
    if (listing->for_people)
        cli_row_note(table, &row, listing->rows.key);
    cli_row_free(&row);
}

static void print_rest(const struct listing *listing)
{
    enum ta_order order = listing->rows.order;
    size_t count = ta_statistics_count(listing->rows.statistics);
    uint64_t value = 0, blocks = 0;
    char text[32];
    if (count <= listing->most)
        return;
    for (size_t i = listing->most; i < count; i++) {
        struct ta_statistic statistic;
        ta_statistics_get(listing->rows.statistics, i, &statistic);
        value += order == TA_ORDER_COUNT ? statistic.size : cli_value(&statistic, order);
        blocks += statistic.count;
    }
    printf("%s… and %zu more: ", cli_style(CLI_DIM), count - listing->most);
    ta_size_text((double)value, 0, text, sizeof text);
    if (order == TA_ORDER_DEFAULT || order == TA_ORDER_COUNT)
        printf("%s live in %" PRIu64 " block%s", text, blocks, cli_s(blocks));
    else if (order == TA_ORDER_ALLOCATED_SIZE || order == TA_ORDER_PEAK)
        printf("%s %s", text, order == TA_ORDER_PEAK ? "at the peak" : "allocated");
    else
        printf("%" PRIu64 " %s", value, order == TA_ORDER_TEMPORARY ? "blocks that came and went" : "calls");
    printf(" (-n 0 lists all)%s\n", cli_style(CLI_PLAIN));
}

/* Does a filter look at the frame that asked for the memory, which rows are mostly not named by? */
static int filters_innermost(const char *where)
{
    static const char *const innermost[] = {"file", "function", "line", "at"};
    int is_quoted = 0, is_start = 1;
    for (const char *at = where; at != NULL && *at != '\0'; at++) {
        for (size_t i = 0; is_start && !is_quoted && i < sizeof innermost / sizeof *innermost; i++) {
            size_t length = strlen(innermost[i]);
            if (strncmp(at, innermost[i], length) == 0 && at[length] != '\0' && strchr(":=!<>", at[length]) != NULL)
                return 1;
        }
        is_quoted ^= *at == '"';
        is_start = *at == ' ' || *at == '(';
    }
    return 0;
}

static int print_filter_hint(const struct listing *listing)
{
    int is_wanted = strcmp(listing->rows.key, "own") == 0 && filters_innermost(listing->rows.options->where);
    if (is_wanted)
        printf("%sown: filters by these rows; file:, function:, line: by the frame that asked%s\n", cli_style(CLI_DIM),
               cli_style(CLI_PLAIN));
    return is_wanted;
}

static void print_hint(const struct listing *listing)
{
    struct ta_snapshot_info info;
    struct ta_statistic total;
    char size[32];
    ta_statistics_total(listing->rows.statistics, &total);
    if (listing->rows.order != TA_ORDER_DEFAULT || ta_snapshot_info(listing->snapshot, &info, sizeof info) != 0 ||
        !cli_is_nearly_gone(total.size, info.peak_bytes))
        return;
    ta_size_text((double)info.peak_bytes, 0, size, sizeof size);
    printf("%s--sort peak says who held the %s of the peak, --sort total who asked for most%s\n", cli_style(CLI_DIM),
           size, cli_style(CLI_PLAIN));
}

static void print_listing(struct listing *listing)
{
    size_t count = ta_statistics_count(listing->rows.statistics);
    count = count < listing->most ? count : listing->most;
    choose_columns(listing);
    struct cli_table *table = cli_table_new(listing->columns, listing->column_count);
    cli_progress_begin("naming the rows");
    for (size_t i = 0; i < count; i++) {
        cli_progress_set(NULL, i, count);
        add_row(table, listing, i);
    }
    cli_progress_end();
    cli_table_print(table, listing->rows.options);
    if (listing->for_people) {
        if (!listing->rows.options->cumulative) /* rows overlap */
            print_rest(listing);
        if (!print_filter_hint(listing))
            print_hint(listing);
        cli_rows_tell_missing(&listing->rows, count, listing->snapshot);
    }
    cli_table_free(table);
}

/* ---- the command ---- */

static int has_threads(struct ta_snapshot *snapshot)
{
    struct ta_trace trace;
    long count = ta_snapshot_trace_count(snapshot) + ta_snapshot_gone_trace_count(snapshot);
    for (long i = 0; i < count; i++)
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) == 0 && trace.thread != 0)
            return 1;
    return count <= 0;
}

/* Files need not hold what was asked for, or hold it as of another moment than the reader thinks. */
static void say_what_it_holds(const struct listing *listing)
{
    const char *path = listing->rows.options->operands[0];
    struct ta_snapshot_info info;
    char size[32];
    if (strcmp(listing->rows.key, "thread") == 0 && !has_threads(listing->snapshot))
        cli_warning("%s: its traces do not say which thread allocated", path);
    if (listing->rows.order != TA_ORDER_PEAK)
        return;
    if (listing->total == 0)
        cli_warning("%s: it does not say what was live at the peak", path);
    else if (listing->for_people && !listing->rows.options->cumulative &&
             ta_snapshot_info(listing->snapshot, &info, sizeof info) == 0 && listing->total < info.peak_bytes) {
        ta_size_text((double)listing->total, 0, size, sizeof size);
        printf("the values at the peak were written down when %s were live\n", size);
    }
}

static void print(struct listing *listing)
{
    struct ta_statistic total;
    ta_statistics_total(listing->rows.statistics, &total);
    listing->total = cli_value(&total, listing->rows.order);
    if (listing->for_people)
        cli_print_summary(listing->snapshot, listing->rows.options->operands[0]);
    say_what_it_holds(listing);
    if (listing->for_people)
        putchar('\n');
    print_listing(listing);
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_top,
                  CLI_KEY | CLI_CUMULATIVE | CLI_LIMIT | CLI_SORT | CLI_FILTERS | CLI_FORMATS | CLI_OWN | CLI_CALLERS |
                      CLI_FULL,
                  1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    const char *key = options.key != NULL ? options.key : "own";
    int status = strcmp(key, "own") == 0 ? cli_use_rules(&options, snapshot, NULL) : CLI_OK;
    struct listing listing = {
        .snapshot = snapshot,
        .rows = {.key = key, .order = options.order, .options = &options},
        .by_stack = cli_key_is_stack(key),
        .has_members = cli_key_has_members(key),
        .for_people = !options.json && !options.csv,
        .most = cli_rows(&options, 10),
    };
    cli_places_set_program(snapshot);
    if (status == CLI_OK)
        listing.rows.statistics =
            cli_group(snapshot, options.operands[0], key, options.cumulative ? TA_CUMULATIVE_ONCE : 0, options.order);
    if (listing.rows.statistics == NULL) {
        status = CLI_TROUBLE;
    } else {
        print(&listing);
        status = cli_finish_output();
    }
    ta_statistics_free(listing.rows.statistics);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_top = {
    .name = "top",
    .arguments = "FILE[@ENTRY] [--by KEY] [--sort ORDER] [-n N] [--callers] [--where FILTER] [--json | --csv]",
    .summary = "list who holds the memory, largest first",
    .help = "  --by KEY         own (default), line, function, file, module, traceback, domain, process or thread\n"
            "  --sort ORDER     live (default), count, total, calls, temporary (blocks that came and went) or peak\n"
            "  -n N             the first N rows: 10 unless given, 0 = all\n"
            "  --cumulative     count a block for every place of its stack, once for each\n"
            "  --callers        from where each row was asked, one step outwards\n" CLI_HELP_OWN CLI_HELP_FILTERS
                CLI_HELP_NAMES "  --json, --csv    the rows for other programs, all of them unless -n is given\n"
            "  --color WHEN     auto (default), always or never; NO_COLOR is respected\n"
            "\n"
            "A row is the innermost line of one's own code: what the libraries of the language and the system, and\n"
            "functions that only hand out memory, did on its behalf stands behind \"via\". docs/own.md has the rules.\n"
            "\n"
            "  tracealloc top server.ta --by function --sort calls -n 5\n",
    .run = run,
};
