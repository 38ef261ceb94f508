/* top.c: tracealloc top — who holds the memory: a listing for people, and the same rows for machines. */
#include "analysis/cli/top.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/calltree.h"
#include "analysis/cli/cli.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

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
    printf("%s: %s%s live%s in %" PRIu64 " block%s", name, cli_style(CLI_BOLD), live, cli_style(CLI_PLAIN), blocks,
           blocks == 1 ? "" : "s");
    if (info.peak_bytes > 0)
        printf(", peak %s", peak);
    if (*info.program != '\0')
        printf(", %s (process %u)", info.program, info.pid);
    putchar('\n');
    if (info.sample_bytes > 1)
        printf("sampled: one allocation per %" PRIu64 " bytes in the mean, numbers are estimates\n", info.sample_bytes);
}

char *cli_source_line(const struct ta_frame *frame)
{
    if (frame->lineno == 0)
        return NULL;
    char **lines = ta_traceback_format(ta_traceback_of(frame, 1, -1), 1, 0);
    char *source =
        lines != NULL && lines[0] != NULL && lines[1] != NULL ? cli_text("%s", lines[1] + strspn(lines[1], " ")) : NULL;
    free(lines);
    return source;
}

void cli_place_text(const struct ta_frame *frame, char *text, size_t size)
{
    char path[PATH_MAX];
    cli_short_path(frame->filename, path, sizeof path);
    if (frame->lineno > 0)
        snprintf(text, size, "%s:%u", path, frame->lineno);
    else
        snprintf(text, size, "%s", path);
}

/* ---- what the rows stand for ---- */

/* The largest trace of a row by line: it gives the function, and the caller where the line is not known. */
struct example {
    const char *filename;
    uint32_t lineno;
    size_t trace;
    uint64_t value;
    int is_found;
};

static size_t slot_of(const struct ta_frame *frame, size_t mask)
{
    uint64_t mixed =
        ((uint64_t)(uintptr_t)frame->filename ^ ((uint64_t)frame->lineno << 40)) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 33) & mask;
}

/* Rows by line are told apart by the address of their file's name and the line: names are kept once per snapshot. */
static void find_examples(struct ta_snapshot *snapshot, struct example *examples, size_t count, enum ta_order order)
{
    size_t mask = 15;
    while (mask < 4 * count)
        mask = mask * 2 + 1;
    size_t *slots = cli_allocate(mask + 1, sizeof *slots); /* example + 1 */
    for (size_t i = 0; i < count; i++) {
        const struct ta_frame frame = {.filename = examples[i].filename, .lineno = examples[i].lineno};
        size_t slot = slot_of(&frame, mask);
        while (slots[slot] != 0)
            slot = (slot + 1) & mask;
        slots[slot] = i + 1;
    }
    long live = ta_snapshot_trace_count(snapshot), gone = ta_snapshot_gone_trace_count(snapshot);
    long traces = cli_order_wants_gone(order) ? live + gone : live;
    for (long i = 0; i < traces; i++) {
        struct ta_frame frame;
        if (ta_traceback_frame(ta_snapshot_trace_traceback(snapshot, (size_t)i), -1, &frame) != 0)
            continue;
        for (size_t slot = slot_of(&frame, mask); slots[slot] != 0; slot = (slot + 1) & mask) {
            struct example *example = &examples[slots[slot] - 1];
            if (example->filename != frame.filename || example->lineno != frame.lineno)
                continue;
            struct ta_trace trace;
            if (ta_snapshot_trace(snapshot, (size_t)i, &trace) != 0)
                break;
            const struct ta_statistic statistic = {.size = trace.size,
                                                   .count = trace.count,
                                                   .allocated_size = trace.allocated_bytes,
                                                   .allocated_count = trace.allocated_blocks,
                                                   .peak_size = trace.peak_bytes};
            uint64_t value = cli_value(&statistic, order);
            if (!example->is_found || value > example->value)
                *example = (struct example){frame.filename, frame.lineno, (size_t)i, value, 1};
            break;
        }
    }
    free(slots);
}

char *cli_caller_text(struct ta_traceback traceback, char **source)
{
    struct ta_frame frame;
    char place[PATH_MAX + 16];
    *source = NULL;
    for (int64_t i = -2; i >= -3 && ta_traceback_frame(traceback, i, &frame) == 0; i--) {
        if (frame.lineno == 0)
            continue;
        cli_place_text(&frame, place, sizeof place);
        *source = cli_source_line(&frame);
        return cli_text("called from %s %s", place, frame.function);
    }
    char *names = NULL;
    for (int64_t i = -2; i >= -5 && ta_traceback_frame(traceback, i, &frame) == 0; i--) {
        char *longer = cli_text("%s%s%s", names != NULL ? names : "called by ", names != NULL ? " < " : "",
                                *frame.function != '\0' ? frame.function : cli_base_name(frame.module));
        free(names);
        names = longer;
    }
    return names;
}

static void note_caller(struct cli_table *table, struct ta_traceback traceback)
{
    char *source, *caller = cli_caller_text(traceback, &source);
    if (caller != NULL)
        cli_table_note(table, "%s", caller);
    if (source != NULL)
        cli_table_note(table, "  %s", source);
    free(caller);
    free(source);
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
    return ta_statistics_export_json(statistics, rows, ta_write_to_descriptor, &descriptor) == 0
               ? CLI_OK
               : cli_library_error("standard output");
}

/* ---- the listing ---- */

static const struct cli_column columns[] = {
    {"size", "LIVE", CLI_BYTES, CLI_STRONG},
    {"share", "SHARE", CLI_SHARE, CLI_WITH_BAR},
    {"count", "BLOCKS", CLI_NUMBER, 0},
    {"average", "AVERAGE", CLI_BYTES, 0},
    {"allocated_size", "TOTAL", CLI_BYTES, CLI_MACHINES_ONLY},
    {"allocated_count", "CALLS", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"temporary_share", "TEMPORARY", CLI_SHARE, CLI_MACHINES_ONLY},
    {"peak_size", "AT PEAK", CLI_BYTES, CLI_MACHINES_ONLY},
    {"key", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"line", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"function", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"source", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"stack", "", CLI_TEXT, CLI_MACHINES_ONLY | CLI_PEOPLE_ONLY}, /* by traceback: for machines */
    {"place", "WHERE", CLI_TEXT, CLI_PEOPLE_ONLY | CLI_PATH},
};
enum {
    SIZE,
    SHARE,
    COUNT,
    AVERAGE,
    ALLOCATED_SIZE,
    ALLOCATED_COUNT,
    TEMPORARY,
    PEAK_SIZE,
    KEY,
    LINE,
    FUNCTION,
    SOURCE,
    STACK,
    PLACE,
    COLUMNS
};

/* Orders by history show the columns of history. */
static void choose_columns(struct cli_column *chosen, enum ta_order order, int by_stack)
{
    memcpy(chosen, columns, sizeof columns);
    if (by_stack)
        chosen[STACK].flags = CLI_MACHINES_ONLY;
    if (!cli_order_wants_gone(order))
        return;
    chosen[ALLOCATED_SIZE].flags = chosen[ALLOCATED_COUNT].flags = chosen[TEMPORARY].flags = 0;
    chosen[AVERAGE].flags = CLI_MACHINES_ONLY;
    chosen[SIZE].flags = 0;
    switch (order) {
    case TA_ORDER_ALLOCATED_SIZE:
        chosen[ALLOCATED_SIZE].flags = CLI_STRONG;
        break;
    case TA_ORDER_ALLOCATED_COUNT:
        chosen[ALLOCATED_COUNT].flags = CLI_STRONG;
        break;
    case TA_ORDER_TEMPORARY:
        chosen[TEMPORARY].flags = CLI_STRONG;
        break;
    default:
        chosen[PEAK_SIZE].flags = CLI_STRONG;
        chosen[ALLOCATED_SIZE].flags = chosen[ALLOCATED_COUNT].flags = chosen[TEMPORARY].flags = CLI_MACHINES_ONLY;
        break;
    }
}

struct listing {
    struct ta_snapshot *snapshot;
    const struct cli_options *options;
    struct ta_statistics *statistics;
    const char *key;
    uint64_t total; /* what 100% is */
    size_t rows;
};

void cli_note_stack(struct cli_table *table, struct ta_traceback traceback)
{
    size_t length = ta_traceback_length(traceback);
    for (size_t i = 0; i < length; i++) {
        struct ta_frame frame;
        char place[PATH_MAX + 16];
        if (ta_traceback_frame(traceback, -1 - (int64_t)i, &frame) != 0)
            return;
        cli_place_text(&frame, place, sizeof place);
        cli_table_note(table, "%s%s%s", place, *frame.function != '\0' ? " " : "", frame.function);
    }
}

char *cli_stack_text(struct ta_traceback traceback)
{
    char *text = NULL;
    size_t size = 0, length = ta_traceback_length(traceback);
    FILE *stream = open_memstream(&text, &size);
    struct ta_frame frame;
    if (stream == NULL)
        return cli_text("%s", "");
    for (size_t i = 0; i < length && ta_traceback_frame(traceback, -1 - (int64_t)i, &frame) == 0; i++)
        fprintf(stream, "%s%s:%u%s%s", i > 0 ? ";" : "", frame.filename, frame.lineno,
                *frame.function != '\0' ? " " : "", frame.function);
    fclose(stream);
    return text;
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

static void add_row(struct cli_table *table, const struct listing *listing, size_t index, const struct example *example)
{
    struct ta_statistic statistic;
    struct ta_frame frame = {.filename = "", .function = "", .module = ""};
    int is_line = strcmp(listing->key, "lineno") == 0, is_stack = strcmp(listing->key, "traceback") == 0;
    if (ta_statistics_get(listing->statistics, index, &statistic) != 0)
        return;
    ta_traceback_frame(statistic.traceback, -1, &frame);
    struct ta_traceback largest = {.total_nframe = -1};
    const char *function = is_stack ? frame.function : "";
    if (example != NULL && example->is_found) {
        struct ta_frame innermost;
        largest = ta_snapshot_trace_traceback(listing->snapshot, example->trace);
        if (ta_traceback_frame(largest, -1, &innermost) == 0)
            function = innermost.function;
    }
    char place[PATH_MAX + 16];
    if (is_line || is_stack)
        cli_place_text(&frame, place, sizeof place);
    else
        cli_short_path(frame.filename, place, sizeof place);
    char *label = *function != '\0' ? cli_text("%s  %s", place, function) : cli_text("%s", place);
    char *source = is_line ? cli_source_line(&frame) : NULL;
    char *stack = is_stack ? cli_stack_text(statistic.traceback) : NULL;
    struct cli_cell cells[COLUMNS] = {
        [SIZE].number = statistic.size,
        [SHARE].share =
            listing->total > 0 ? (double)cli_value(&statistic, listing->options->order) / (double)listing->total : 0,
        [COUNT].number = statistic.count,
        [AVERAGE].number = statistic.count > 0 ? statistic.size / statistic.count : 0,
        [ALLOCATED_SIZE].number = statistic.allocated_size,
        [ALLOCATED_COUNT].number = statistic.allocated_count,
        [TEMPORARY].share = statistic.temporary_share,
        [PEAK_SIZE].number = statistic.peak_size,
        [KEY].text = frame.filename,
        [LINE].number = frame.lineno,
        [FUNCTION].text = function,
        [SOURCE].text = source,
        [STACK].text = stack,
        [PLACE].text = label,
    };
    cli_table_add(table, cells);
    if (source != NULL)
        cli_table_note(table, "%s", source);
    else if (is_line && frame.lineno == 0 && example != NULL && example->is_found)
        note_caller(table, largest);
    if (is_stack)
        cli_note_stack(table, statistic.traceback);
    free(stack);
    free(source);
    free(label);
}

static void print_rest(const struct listing *listing)
{
    size_t count = ta_statistics_count(listing->statistics);
    uint64_t size = 0, blocks = 0;
    char text[32];
    if (count <= listing->rows)
        return;
    for (size_t i = listing->rows; i < count; i++) {
        struct ta_statistic statistic;
        ta_statistics_get(listing->statistics, i, &statistic);
        size += statistic.size;
        blocks += statistic.count;
    }
    ta_size_text((double)size, 0, text, sizeof text);
    printf("%s… and %zu more: %s live in %" PRIu64 " block%s (-n 0 lists all)%s\n", cli_style(CLI_DIM),
           count - listing->rows, text, blocks, blocks == 1 ? "" : "s", cli_style(CLI_PLAIN));
}

static void print_listing(const struct listing *listing)
{
    struct cli_column chosen[COLUMNS];
    choose_columns(chosen, listing->options->order, strcmp(listing->key, "traceback") == 0);
    struct cli_table *table = cli_table_new(chosen, COLUMNS);
    size_t count = ta_statistics_count(listing->statistics);
    count = count < listing->rows ? count : listing->rows;
    struct example *examples = NULL;
    if (strcmp(listing->key, "lineno") == 0 && !listing->options->cumulative) {
        examples = cli_allocate(count, sizeof *examples);
        for (size_t i = 0; i < count; i++) {
            struct ta_statistic statistic;
            struct ta_frame frame = {.filename = ""};
            ta_statistics_get(listing->statistics, i, &statistic);
            ta_traceback_frame(statistic.traceback, -1, &frame);
            examples[i] = (struct example){.filename = frame.filename, .lineno = frame.lineno};
        }
        cli_progress_begin("looking at the traces");
        find_examples(listing->snapshot, examples, count, listing->options->order);
        cli_progress_end();
    }
    for (size_t i = 0; i < count; i++)
        add_row(table, listing, i, examples != NULL ? &examples[i] : NULL);
    cli_table_print(table, listing->options);
    if (!listing->options->json && !listing->options->csv)
        print_rest(listing);
    free(examples);
    cli_table_free(table);
}

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
static void say_what_it_holds(const struct listing *listing, int for_people)
{
    const char *path = listing->options->operands[0];
    struct ta_snapshot_info info;
    char size[32];
    if (strcmp(listing->key, "thread") == 0 && !has_threads(listing->snapshot))
        cli_warning("%s: its traces do not say which thread allocated", path);
    if (listing->options->order != TA_ORDER_PEAK)
        return;
    if (listing->total == 0)
        cli_warning("%s: it does not say what was live at the peak", path);
    else if (for_people && !listing->options->cumulative &&
             ta_snapshot_info(listing->snapshot, &info, sizeof info) == 0 && listing->total < info.peak_bytes) {
        ta_size_text((double)listing->total, 0, size, sizeof size);
        printf("the values at the peak were written down when %s were live\n", size);
    }
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_top, CLI_KEY | CLI_CUMULATIVE | CLI_LIMIT | CLI_SORT | CLI_FILTERS | CLI_FORMATS, 1, 1,
                  argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    struct listing listing = {.snapshot = snapshot,
                              .options = &options,
                              .key = options.key != NULL ? options.key : "lineno",
                              .rows = cli_rows(&options, 10)};
    listing.statistics = cli_group(snapshot, options.operands[0], listing.key, options.cumulative, options.order);
    int status = CLI_TROUBLE;
    if (listing.statistics != NULL) {
        struct ta_statistic total;
        ta_statistics_total(listing.statistics, &total);
        listing.total = cli_value(&total, options.order);
        int for_people = !options.json && !options.csv;
        if (for_people)
            cli_print_summary(snapshot, options.operands[0]);
        say_what_it_holds(&listing, for_people);
        if (for_people)
            putchar('\n');
        print_listing(&listing);
        status = cli_finish_output();
    }
    ta_statistics_free(listing.statistics);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_top = {
    .name = "top",
    .arguments = "FILE[@ENTRY] [--by KEY] [--sort ORDER] [-n N] [--where FILTER] [--json | --csv]",
    .summary = "list who holds the memory, largest first",
    .help = "  --by KEY         line (default), function, file, module, traceback, domain or thread\n"
            "  --sort ORDER     live (default), count, total, calls, temporary or peak\n"
            "  -n N             the first N rows: 10 unless given, 0 = all\n"
            "  --cumulative     count a block for every frame of its stack\n"
            "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
            "  --spec FILE      only traces that a JSON list of filters keeps\n"
            "  --json, --csv    the rows for other programs, all of them unless -n is given\n"
            "  --color WHEN     auto (default), always or never; NO_COLOR is respected\n"
            "\n"
            "  tracealloc top server.ta --by function --sort calls -n 5\n",
    .run = run,
};
