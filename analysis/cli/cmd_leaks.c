/* cmd_leaks.c: tracealloc leaks — blocks of a process that nothing reaches any more. */
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/inside.h"
#include "analysis/cli/markup.h"
#include "analysis/cli/members.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/places.h"

enum { STEPS_MOST = 8 };

/* Leaks of one row: of an own line, or of another key; circles apart. */
struct row {
    long place; /* in the statistics; -1 = without a stack */
    int is_cycle;
    uint64_t blocks, bytes, held_blocks, held_bytes;
    size_t largest; /* the leak that holds most */
    size_t leaks;
    long trace; /* of all of them; -1 = they have several, or none */
};

struct listing {
    const struct cli_inside *inside;
    struct ta_image *image;
    struct ta_snapshot *snapshot;
    struct ta_leaks *leaks;
    struct ta_suppressions *suppressions;
    struct ta_statistics *statistics, *own; /* by the key; by own lines */
    const char *key;
    struct ta_leak_totals totals;
    struct ta_image_info info;
    struct row *rows;
    size_t count;
};

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static struct row *row_of(struct listing *listing, long place, int is_cycle)
{
    for (size_t i = 0; i < listing->count; i++)
        if (listing->rows[i].place == place && listing->rows[i].is_cycle == is_cycle)
            return &listing->rows[i];
    struct row *row = &listing->rows[listing->count++];
    *row = (struct row){.place = place, .is_cycle = is_cycle, .largest = SIZE_MAX};
    return row;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    uint64_t left_bytes = left->bytes + left->held_bytes, right_bytes = right->bytes + right->held_bytes;
    if (left_bytes != right_bytes)
        return left_bytes < right_bytes ? 1 : -1;
    return left->largest < right->largest ? -1 : left->largest > right->largest;
}

/* Leaks come in the order of what they hold, so that the first of a row is its largest. */
static void make_rows(struct listing *listing)
{
    listing->rows = cli_allocate(ta_leaks_count(listing->leaks) + 1, sizeof *listing->rows);
    for (size_t i = 0; i < listing->totals.rows; i++) {
        struct ta_leak leak;
        if (ta_leaks_get(listing->leaks, i, &leak, sizeof leak) != 0)
            break;
        long place = leak.trace >= 0 ? ta_statistics_row_of(listing->statistics, (size_t)leak.trace) : -1;
        struct row *row = row_of(listing, place, leak.is_cycle);
        row->blocks += leak.blocks;
        row->bytes += leak.bytes;
        row->held_blocks += leak.held_blocks;
        row->held_bytes += leak.held_bytes;
        row->largest = row->largest == SIZE_MAX ? i : row->largest;
        row->trace = row->leaks++ == 0 || row->trace == leak.trace ? leak.trace : -1;
    }
    qsort(listing->rows, listing->count, sizeof *listing->rows, compare_rows);
}

/* What is lost of the place has one stack: that tells more than the place, whose other blocks may have others. */
static int is_one_stack(const struct listing *listing, const struct row *row)
{
    return row->trace >= 0 && strcmp(listing->key, "own") == 0;
}

static struct ta_traceback stack_of(const struct listing *listing, long trace)
{
    return trace >= 0 ? ta_snapshot_trace_traceback(listing->snapshot, (size_t)trace) : ta_traceback_of(NULL, 0, -1);
}

/* The way of what is lost: the place has blocks that are not, which may have come by others. */
static void choose_way(const struct listing *listing, const struct row *row, struct cli_row_text *text)
{
    struct cli_members ways = {.items = cli_allocate(row->leaks, sizeof *ways.items)};
    for (size_t i = 0; i < listing->totals.rows && ways.count < row->leaks; i++) {
        struct ta_leak leak;
        if (ta_leaks_get(listing->leaks, i, &leak, sizeof leak) != 0 || leak.is_cycle != row->is_cycle ||
            leak.trace < 0 || ta_statistics_row_of(listing->statistics, (size_t)leak.trace) != row->place)
            continue;
        ways.items[ways.count++] = (struct cli_member){.frame = text->frame,
                                                       .name = cli_row_way(text, stack_of(listing, leak.trace)),
                                                       .value = leak.bytes,
                                                       .allocated_size = leak.bytes,
                                                       .instances = 1};
        ways.total += leak.bytes;
    }
    cli_members_join(&ways, TA_MEMBER_VIA);
    free(text->via);
    text->via = cli_members_via(&ways);
    cli_members_free(&ways);
}

static void make_text(const struct listing *listing, const struct row *row, struct cli_row_text *text)
{
    cli_inside_row(text, listing->statistics, listing->key, (size_t)row->place);
    if (is_one_stack(listing, row))
        cli_row_narrow(text, stack_of(listing, row->trace));
    else if (strcmp(listing->key, "own") == 0)
        choose_way(listing, row, text);
}

static char *label_of(const struct listing *listing, const struct row *row)
{
    struct cli_row_text text;
    if (row->place < 0)
        return cli_text("(without a stack)");
    make_text(listing, row, &text);
    char *label = cli_row_words(&text);
    cli_row_free(&text);
    return label;
}

/* The steps of the row's largest circle, by the places that made them. */
static size_t cycle_of(const struct listing *listing, const struct row *row, struct ta_block *steps)
{
    size_t length = row->is_cycle ? ta_leaks_cycle(listing->leaks, row->largest, steps, STEPS_MOST) : 0;
    return length;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static const struct cli_column columns[] = {
    {"bytes", "LOST", CLI_BYTES, CLI_STRONG},
    {"blocks", "BLOCKS", CLI_NUMBER, 0},
    {"held_bytes", "WITH THEM", CLI_BYTES, 0},
    {"where", "WHERE", CLI_PLACE, 0},
};

static void note_cycle(struct cli_table *table, const struct listing *listing, const struct row *row)
{
    struct ta_block steps[STEPS_MOST];
    size_t length = cycle_of(listing, row, steps);
    if (length == 0)
        return;
    cli_table_note(table, "a circle of %zu block%s, each held by the one before:", length, cli_s(length));
    for (size_t i = 0; i < length && i < STEPS_MOST; i++) {
        char *label = cli_trace_label(listing->snapshot, listing->own, steps[i].trace);
        cli_table_note(table, "  0x%" PRIx64 "  %" PRIu64 " byte%s  %s", steps[i].address, steps[i].size,
                       cli_s(steps[i].size), label);
        free(label);
    }
    if (length > STEPS_MOST)
        cli_table_note(table, "  …");
}

static void print_table(const struct listing *listing)
{
    struct cli_table *table = cli_table_new(columns, sizeof columns / sizeof *columns);
    size_t rows = cli_inside_rows(listing->inside, 10);
    for (size_t i = 0; i < listing->count && i < rows; i++) {
        const struct row *row = &listing->rows[i];
        struct cli_row_text text = {0};
        struct ta_leak leak;
        if (row->place >= 0)
            make_text(listing, row, &text);
        cli_table_add(table, (struct cli_cell[]){{.number = row->bytes},
                                                 {.number = row->blocks},
                                                 {.number = row->held_bytes},
                                                 {.text = row->place >= 0 ? text.place : "(without a stack)",
                                                  .more = text.name,
                                                  .via = text.via}});
        note_cycle(table, listing, row);
        if (ta_leaks_get(listing->leaks, row->largest, &leak, sizeof leak) == 0 && leak.trace >= 0)
            cli_note_whole_stack(table, stack_of(listing, leak.trace));
        if (row->place >= 0)
            cli_row_free(&text);
    }
    cli_table_print_text(table);
    cli_table_free(table);
    if (listing->count > rows)
        printf("… and %zu more (-n 0 lists all)\n", listing->count - rows);
}

static void print_suppressed(const struct listing *listing)
{
    const char *pattern;
    uint64_t blocks, bytes;
    for (size_t i = 0; (pattern = ta_suppressions_get(listing->suppressions, i, &blocks, &bytes)) != NULL; i++) {
        char size[32];
        ta_size_text((double)bytes, 0, size, sizeof size);
        if (blocks > 0)
            printf("suppressed by leak:%s: %s in %" PRIu64 " block%s\n", pattern, size, blocks, cli_s(blocks));
    }
}

static void print_text(const struct listing *listing)
{
    const struct ta_leak_totals *totals = &listing->totals;
    char all[32], indirect[32], *name = cli_inside_name(listing->image);
    uint64_t blocks = totals->direct_blocks + totals->indirect_blocks;
    ta_size_text((double)(totals->direct_bytes + totals->indirect_bytes), 0, all, sizeof all);
    ta_size_text((double)totals->indirect_bytes, 0, indirect, sizeof indirect);
    if (blocks == 0) {
        printf("%s: nothing is lost: all %" PRIu64 " block%s%s can be reached\n", name, totals->reachable_blocks,
               cli_s(totals->reachable_blocks), totals->suppressed_blocks > 0 ? " that are not suppressed" : "");
    } else {
        printf("%s: %s%s in %" PRIu64 " block%s lost%s\n", name, cli_style(CLI_BOLD), all, blocks, cli_s(blocks),
               cli_style(CLI_PLAIN));
        if (totals->indirect_blocks > 0)
            printf("%s of that went with others%s", indirect, totals->cycles > 0 ? "; " : "\n");
        if (totals->cycles > 0)
            printf("%" PRIu64 " circle%s\n", totals->cycles, cli_s(totals->cycles));
        putchar('\n');
        print_table(listing);
    }
    if (totals->inner_blocks > 0) {
        ta_size_text((double)totals->inner_bytes, 0, all, sizeof all);
        printf("only pointers into the middle reach %s in %" PRIu64 " block%s (see --exact)\n", all,
               totals->inner_blocks, cli_s(totals->inner_blocks));
    }
    print_suppressed(listing);
    if (!listing->info.is_tracing)
        printf("nothing is traced in the process: where blocks were asked for is not known\n");
    free(name);
}

/* ---- for machines ------------------------------------------------------------------------------------------------ */

static void print_stack_json(struct ta_traceback traceback)
{
    size_t length = ta_traceback_length(traceback);
    putchar('[');
    for (size_t i = 0; i < length; i++) {
        struct ta_frame frame;
        if (ta_traceback_frame(traceback, -1 - (int64_t)i, &frame) != 0)
            break;
        fputs(i == 0 ? "{\"file\": " : ", {\"file\": ", stdout);
        cli_print_json_string(stdout, frame.filename, frame.filename_length);
        printf(", \"line\": %" PRIu32 ", \"function\": ", frame.lineno);
        cli_print_json_string(stdout, frame.function, strlen(frame.function));
        fputs(", \"module\": ", stdout);
        cli_print_json_string(stdout, frame.module, strlen(frame.module));
        putchar('}');
    }
    putchar(']');
}

static void print_row_json(const struct listing *listing, const struct row *row)
{
    struct ta_block steps[STEPS_MOST];
    size_t length = cycle_of(listing, row, steps);
    char *label = label_of(listing, row);
    struct ta_leak leak = {.trace = -1};
    ta_leaks_get(listing->leaks, row->largest, &leak, sizeof leak);
    printf("\n  {\"where\": ");
    cli_print_json_string(stdout, label, strlen(label));
    printf(", \"kind\": \"%s\", \"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"held_blocks\": %" PRIu64
           ", \"held_bytes\": %" PRIu64 ", \"address\": \"0x%" PRIx64 "\", \"stack\": ",
           row->is_cycle ? "cycle" : "lost", row->blocks, row->bytes, row->held_blocks, row->held_bytes, leak.address);
    print_stack_json(stack_of(listing, leak.trace));
    fputs(", \"cycle\": [", stdout);
    for (size_t i = 0; i < length && i < STEPS_MOST; i++) {
        char *step = cli_trace_label(listing->snapshot, listing->own, steps[i].trace);
        printf("%s{\"address\": \"0x%" PRIx64 "\", \"size\": %" PRIu64 ", \"where\": ", i == 0 ? "" : ", ",
               steps[i].address, steps[i].size);
        cli_print_json_string(stdout, step, strlen(step));
        putchar('}');
        free(step);
    }
    fputs("]}", stdout);
    free(label);
}

static void print_json(const struct listing *listing, int is_first)
{
    const struct ta_leak_totals *totals = &listing->totals;
    const char *pattern;
    uint64_t blocks, bytes;
    printf("%s\n{\"process\": %u, \"program\": ", is_first ? "" : ",", listing->info.pid);
    cli_print_json_string(stdout, listing->info.program, strlen(listing->info.program));
    printf(", \"held_ns\": %" PRIu64, listing->info.held_ns);
    printf(", \"direct_blocks\": %" PRIu64 ", \"direct_bytes\": %" PRIu64 ", \"indirect_blocks\": %" PRIu64
           ", \"indirect_bytes\": %" PRIu64 ", \"cycles\": %" PRIu64 ", \"suppressed_blocks\": %" PRIu64
           ", \"suppressed_bytes\": %" PRIu64 ", \"reachable_blocks\": %" PRIu64 ", \"inner_blocks\": %" PRIu64
           ", \"inner_bytes\": %" PRIu64 ",\n \"leaks\": [",
           totals->direct_blocks, totals->direct_bytes, totals->indirect_blocks, totals->indirect_bytes, totals->cycles,
           totals->suppressed_blocks, totals->suppressed_bytes, totals->reachable_blocks, totals->inner_blocks,
           totals->inner_bytes);
    for (size_t i = 0; i < listing->count && i < cli_inside_rows(listing->inside, SIZE_MAX); i++) {
        fputs(i == 0 ? "" : ",", stdout);
        print_row_json(listing, &listing->rows[i]);
    }
    fputs("],\n \"suppressions\": [", stdout);
    for (size_t i = 0; (pattern = ta_suppressions_get(listing->suppressions, i, &blocks, &bytes)) != NULL; i++) {
        fputs(i == 0 ? "{\"pattern\": " : ", {\"pattern\": ", stdout);
        cli_print_json_string(stdout, pattern, strlen(pattern));
        printf(", \"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", blocks, bytes);
    }
    fputs("]}", stdout);
}

static void print_junit(const struct listing *listing)
{
    char *name = cli_inside_name(listing->image);
    printf("<testsuite name=\"");
    cli_print_xml(name);
    printf("\" tests=\"%zu\" failures=\"%zu\">\n", listing->count > 0 ? listing->count : 1, listing->count);
    for (size_t i = 0; i < listing->count; i++) {
        const struct row *row = &listing->rows[i];
        char *label = label_of(listing, row);
        struct ta_leak leak = {.trace = -1};
        ta_leaks_get(listing->leaks, row->largest, &leak, sizeof leak);
        printf("<testcase classname=\"tracealloc leaks\" name=\"");
        cli_print_xml(label);
        printf("\"><failure message=\"%" PRIu64 " byte%s in %" PRIu64 " block%s lost%s, and %" PRIu64
               " byte%s with %s\">",
               row->bytes, cli_s(row->bytes), row->blocks, cli_s(row->blocks), row->is_cycle ? " in circles" : "",
               row->held_bytes, cli_s(row->held_bytes), row->blocks == 1 ? "it" : "them");
        char *stack = cli_stack_text(stack_of(listing, leak.trace));
        cli_print_xml(stack);
        printf("</failure></testcase>\n");
        free(stack);
        free(label);
    }
    if (listing->count == 0)
        printf("<testcase classname=\"tracealloc leaks\" name=\"nothing is lost\"/>\n");
    printf("</testsuite>\n");
    free(name);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static struct ta_suppressions *read_suppressions(const char *path)
{
    size_t length;
    char *text = cli_read_file(path, &length);
    if (text == NULL)
        return NULL;
    struct ta_suppressions *suppressions = ta_suppressions_parse(text, length);
    free(text);
    if (suppressions == NULL)
        cli_library_error(path);
    return suppressions;
}

static int tell(struct listing *listing, int is_first)
{
    listing->key = cli_inside_key(listing->inside);
    listing->snapshot = ta_image_snapshot(listing->image);
    ta_image_get_info(listing->image, &listing->info, sizeof listing->info);
    cli_progress_begin("looking for what is lost");
    listing->leaks = ta_image_leaks(listing->image, listing->suppressions);
    cli_progress_end();
    listing->statistics = listing->leaks != NULL ? ta_snapshot_statistics(listing->snapshot, listing->key, 0) : NULL;
    if (listing->statistics == NULL)
        return cli_library_error("leaks");
    listing->own = ta_snapshot_statistics(listing->snapshot, "own", 0);
    ta_leaks_totals(listing->leaks, &listing->totals, sizeof listing->totals);
    make_rows(listing);
    if (listing->inside->json)
        print_json(listing, is_first);
    else if (listing->inside->format != NULL)
        print_junit(listing);
    else
        print_text(listing);
    return listing->totals.rows > 0 ? CLI_NO : CLI_OK;
}

static int one(const struct cli_inside *inside, struct ta_suppressions *suppressions, const char *what, int is_first)
{
    struct listing listing = {.inside = inside, .suppressions = suppressions};
    listing.image = cli_inside_open(inside, what, TA_IMAGE_POINTERS);
    if (listing.image == NULL)
        return CLI_TROUBLE;
    int status = tell(&listing, is_first);
    free(listing.rows);
    ta_statistics_free(listing.statistics);
    ta_statistics_free(listing.own);
    ta_leaks_free(listing.leaks);
    ta_image_close(listing.image);
    return status;
}

static int run(int argc, char **argv)
{
    static const int options[] = {INSIDE_KEY,          INSIDE_LIMIT,  INSIDE_JSON,      INSIDE_COLOR,
                                  INSIDE_NO_PAUSE,     INSIDE_TAGGED, INSIDE_UNALIGNED, INSIDE_EXACT,
                                  INSIDE_SUPPRESSIONS, INSIDE_FORMAT, INSIDE_REGISTERS, 0};
    struct cli_inside inside;
    struct ta_suppressions *suppressions = NULL;
    if (cli_inside_parse(&inside, &cli_leaks, options, 1, INT_MAX, argc, argv) != 0)
        return CLI_TROUBLE;
    if (inside.help)
        return cli_finish_output();
    if (inside.format != NULL && strcmp(inside.format, "json") == 0)
        inside.json = 1;
    else if (inside.format != NULL && strcmp(inside.format, "text") == 0)
        inside.format = NULL;
    else if (inside.format != NULL && strcmp(inside.format, "junit") != 0)
        return cli_error("leaks: --format: expected text, json or junit, not '%s'", inside.format);
    if (inside.suppressions != NULL && (suppressions = read_suppressions(inside.suppressions)) == NULL)
        return CLI_TROUBLE;
    int status = CLI_OK;
    const char *first = inside.json             ? "["
                        : inside.format != NULL ? "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
                                                : "";
    const char *last = inside.json ? "\n]\n" : inside.format != NULL ? "</testsuites>\n" : "";
    fputs(first, stdout);
    for (int i = 0; i < inside.operand_count; i++) {
        int result = one(&inside, suppressions, inside.operands[i], i == 0);
        status = result > status ? result : status;
    }
    fputs(last, stdout);
    ta_suppressions_free(suppressions);
    int output = cli_finish_output();
    return status > output ? status : output;
}

const struct cli_command cli_leaks = {
    .name = "leaks",
    .arguments = "PID|CORE… [--by KEY] [-n N] [--suppressions FILE] [--tagged] [--format FORMAT] [--json]",
    .summary = "find blocks of a process that nothing points to any more",
    .help = "  --by KEY         own (default), line, function, file, module, stack or domain\n"
            "  -n N             the first N rows: 10 unless given, 0 = all\n"
            "  --suppressions FILE  leaks that are known: lines of leak:PATTERN, as for LeakSanitizer\n"
            "  --tagged         the upper 16 bits of pointers may be anything\n"
            "  --unaligned      pointers may stand anywhere, not only at multiples of 8\n"
            "  --exact          pointers into the middle of a block do not count as pointers to it\n"
            "  --no-pause       do not hold the process still: then registers are not known, and stacks count whole\n"
            "  --registers TID=SP,IP,TLS,…;…  the threads, where a debugger holds the process\n"
            "  --format FORMAT  text (default), json or junit\n"
            "  --json           [{process, direct_bytes, indirect_bytes, cycles, leaks, …}, …]\n"
            "  --color WHEN     auto (default), always or never\n"
            "\n"
            "A block counts as reached when a register, a stack, thread-local storage, data, a mapping that is not\n"
            "malloc's, or a reached block has a pointer to it or into it. Blocks that hold each other in a circle and\n"
            "that nothing else reaches are told apart. WITH THEM is what only the lost blocks hold.\n"
            "The exit status is 0 when nothing is lost, 1 when something is, 2 when that cannot be told.\n"
            "\n"
            "  tracealloc leaks 1234\n"
            "  tracealloc leaks core.1234 --suppressions known.txt\n",
    .run = run,
};
