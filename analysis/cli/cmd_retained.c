/* cmd_retained.c: tracealloc retained — for each place the memory that would go if its blocks went. */
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/inside.h"
#include "analysis/cli/places.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

struct order {
    const struct ta_retained_row *rows;
};

static int compare_rows(const void *a, const void *b, void *user)
{
    const struct order *order = user;
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    const struct ta_retained_row *left_row = &order->rows[left], *right_row = &order->rows[right];
    if (left_row->retained != right_row->retained)
        return left_row->retained < right_row->retained ? 1 : -1;
    if (left_row->bytes != right_row->bytes)
        return left_row->bytes < right_row->bytes ? 1 : -1;
    return left < right ? -1 : left > right;
}

/* ---- by place ---------------------------------------------------------------------------------------------------- */

static const struct cli_column columns[] = {
    {"retained", "RETAINED", CLI_BYTES, CLI_STRONG},
    {"is_exact", "", CLI_NUMBER, CLI_MACHINES_ONLY},
    {"bytes", "OWN", CLI_BYTES, 0},
    {"blocks", "BLOCKS", CLI_NUMBER, 0},
    {"where", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"place", "WHERE", CLI_PLACE, CLI_PEOPLE_ONLY},
};

static void add_row(struct cli_table *table, const struct ta_retained_row *row, const char *label,
                    const struct cli_row_text *text)
{
    cli_table_add(table, (struct cli_cell[]){
                             {.number = row->retained},
                             {.number = (uint64_t)row->is_exact},
                             {.number = row->bytes},
                             {.number = row->blocks},
                             {.text = label},
                             text != NULL ? (struct cli_cell){.text = text->place, .more = text->name, .via = text->via}
                                          : (struct cli_cell){.text = label}});
}

static void print_rows(struct ta_statistics *statistics, const struct ta_retained_row *rows,
                       const struct cli_inside *inside)
{
    size_t count = ta_statistics_count(statistics), most = cli_inside_rows(inside, 10);
    size_t *numbers = cli_allocate(count + 1, sizeof *numbers);
    struct order order = {rows};
    struct cli_table *table = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i <= count; i++)
        numbers[i] = i;
    qsort_r(numbers, count, sizeof *numbers, compare_rows, &order);
    for (size_t i = 0; i < count && i < most && rows[numbers[i]].blocks > 0; i++) {
        struct cli_row_text text;
        char *label = cli_row_label(statistics, cli_inside_key(inside), numbers[i]);
        cli_inside_row(&text, statistics, cli_inside_key(inside), numbers[i]);
        add_row(table, &rows[numbers[i]], label, &text);
        cli_row_free(&text);
        free(label);
    }
    if (rows[count].blocks > 0)
        add_row(table, &rows[count], "(without a stack)", NULL);
    if (inside->json)
        cli_table_print_json(table);
    else
        cli_table_print_text(table);
    cli_table_free(table);
    while (count > 0 && rows[numbers[count - 1]].blocks == 0) /* those that hold nothing come last */
        count--;
    if (count > most && !inside->json)
        printf("… and %zu more (-n 0 lists all)\n", count - most);
    free(numbers);
}

static int list_rows(struct ta_image *image, const struct cli_inside *inside)
{
    struct ta_statistics *statistics = ta_snapshot_statistics(ta_image_snapshot(image), cli_inside_key(inside), 0);
    if (statistics == NULL)
        return cli_library_error("retained");
    struct ta_retained_row *rows = cli_allocate(ta_statistics_count(statistics) + 1, sizeof *rows);
    cli_progress_begin("looking who holds what");
    int status = ta_image_retained_rows(image, statistics, rows) == 0 ? CLI_OK : CLI_TROUBLE;
    cli_progress_end();
    if (status == CLI_OK)
        print_rows(statistics, rows, inside);
    else
        cli_library_error("retained");
    free(rows);
    ta_statistics_free(statistics);
    return status;
}

/* ---- single blocks ----------------------------------------------------------------------------------------------- */

static const struct cli_column block_columns[] = {
    {"retained", "RETAINED", CLI_BYTES, CLI_STRONG},
    {"bytes", "OWN", CLI_BYTES, 0},
    {"address", "ADDRESS", CLI_TEXT, 0},
    {"type", "TYPE", CLI_TEXT, 0},
    {"where", "WHERE", CLI_TEXT, 0},
};

enum { TYPE = 3 };

static int has_types(const struct ta_retained_block *blocks, long count)
{
    for (long i = 0; i < count; i++)
        if (*blocks[i].type != '\0')
            return 1;
    return 0;
}

static int list_blocks(struct ta_image *image, const struct cli_inside *inside)
{
    enum { JSON_ROWS = 1000 };
    size_t most = cli_inside_rows(inside, 10);
    most = most < JSON_ROWS ? most : JSON_ROWS;
    struct ta_retained_block *blocks = cli_allocate(most, sizeof *blocks);
    cli_progress_begin("looking who holds what");
    long count = ta_image_retained_blocks(image, blocks, most);
    cli_progress_end();
    struct ta_statistics *own = ta_snapshot_statistics(ta_image_snapshot(image), "own", 0);
    struct cli_column shown[sizeof block_columns / sizeof *block_columns];
    memcpy(shown, block_columns, sizeof shown);
    shown[TYPE].flags |= has_types(blocks, count) ? 0u : CLI_MACHINES_ONLY;
    struct cli_table *table = cli_table_new(shown, sizeof shown / sizeof *shown);
    for (long i = 0; i < count && (size_t)i < most; i++) {
        char address[32];
        char *label = cli_trace_label(ta_image_snapshot(image), own, blocks[i].block.trace);
        snprintf(address, sizeof address, "0x%" PRIx64, blocks[i].block.address);
        cli_table_add(table, (struct cli_cell[]){{.number = blocks[i].retained},
                                                 {.number = blocks[i].block.size},
                                                 {.text = address},
                                                 {.text = blocks[i].type},
                                                 {.text = label}});
        free(label);
    }
    if (count >= 0 && inside->json)
        cli_table_print_json(table);
    else if (count >= 0)
        cli_table_print_text(table);
    cli_table_free(table);
    ta_statistics_free(own);
    free(blocks);
    return count >= 0 ? CLI_OK : cli_library_error("retained");
}

/* ---- what nothing holds ---- */

/* Nothing reaches it, so no row has it. */
static void say_lost(struct ta_image *image, const struct cli_inside *inside)
{
    unsigned flags = inside->image.flags;
    struct ta_leaks *leaks = ta_image_leaks(image, NULL);
    struct ta_leak_totals totals = {0};
    char size[32];
    if (leaks == NULL)
        return;
    ta_leaks_totals(leaks, &totals, sizeof totals);
    ta_leaks_free(leaks);
    uint64_t blocks = totals.direct_blocks + totals.indirect_blocks;
    ta_size_text((double)(totals.direct_bytes + totals.indirect_bytes), 0, size, sizeof size);
    if (blocks > 0)
        printf("%s in %" PRIu64 " block%s %s lost, nothing holds %s: tracealloc leaks %s%s%s\n", size, blocks,
               cli_s(blocks), blocks == 1 ? "is" : "are", blocks == 1 ? "it" : "them", inside->operands[0],
               (flags & TA_IMAGE_TAGGED) != 0 ? " --tagged" : "",
               (flags & TA_IMAGE_UNALIGNED) != 0 ? " --unaligned" : "");
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
    static const int options[] = {INSIDE_KEY,    INSIDE_LIMIT,     INSIDE_JSON,   INSIDE_COLOR,     INSIDE_NO_PAUSE,
                                  INSIDE_TAGGED, INSIDE_UNALIGNED, INSIDE_BLOCKS, INSIDE_REGISTERS, 0};
    struct cli_inside inside;
    if (cli_inside_parse(&inside, &cli_retained, options, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (inside.help)
        return cli_finish_output();
    struct ta_image *image = cli_inside_open(&inside, inside.operands[0], TA_IMAGE_POINTERS);
    if (image == NULL)
        return CLI_TROUBLE;
    if (!inside.json) {
        struct ta_image_info info;
        char size[32], *name = cli_inside_name(image);
        ta_image_get_info(image, &info, sizeof info);
        ta_size_text((double)info.bytes, 0, size, sizeof size);
        printf("%s: %s in %" PRIu64 " live block%s\n\n", name, size, info.blocks, cli_s(info.blocks));
        free(name);
    }
    int status = inside.blocks ? list_blocks(image, &inside) : list_rows(image, &inside);
    if (status == CLI_OK && !inside.json)
        say_lost(image, &inside);
    ta_image_close(image);
    int output = cli_finish_output();
    return status > output ? status : output;
}

const struct cli_command cli_retained = {
    .name = "retained",
    .arguments = "PID|CORE [--by KEY | --blocks] [-n N] [--json]",
    .summary = "for each place the memory that would go if its blocks went",
    .help =
        "  --by KEY         own (default), line, function, file, module, stack or domain\n"
        "  --blocks         the single blocks that hold most instead\n"
        "  -n N             the first N rows: 10 unless given, 0 = all\n"
        "  --tagged         the upper 16 bits of pointers may be anything\n"
        "  --unaligned      pointers may stand anywhere, not only at multiples of 8\n"
        "  --no-pause       do not hold the process still\n"
        "  --registers TID=SP,IP,TLS,…;…  the threads, where a debugger holds the process\n"
        "  --json           [{retained, is_exact, bytes, blocks, where}, …]\n"
        "  --color WHEN     auto (default), always or never\n"
        "\n"
        "RETAINED is the row's blocks and all that only they hold: what nothing else would reach if they were not\n"
        "there. The 32 rows that hold most are exact, of others it is the least that goes with them. Rows overlap:\n"
        "what one holds may hold itself. What is lost is in no row; the last line says how much that is.\n"
        "docs/inside.md says how it is found.\n"
        "\n"
        "  tracealloc retained 1234\n"
        "  tracealloc retained core.1234 --blocks\n",
    .run = run,
};
