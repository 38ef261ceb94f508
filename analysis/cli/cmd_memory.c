/* cmd_memory.c: tracealloc memory — what the resident memory of a process is, to the last page, and whose it is. */
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tracealloc/export.h>

#include "analysis/cli/inside.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"

enum { PARTS_MOST = 32 };

static const struct {
    const char *name, *words;
    enum ta_memory_measure measure;
} measures[] = {
    {"back", "bytes that would go back", TA_MEMORY_BACK}, {"resident", "resident bytes", TA_MEMORY_RESIDENT},
    {"pinned", "free bytes pinned", TA_MEMORY_PINNED},    {"asked", "bytes asked for", TA_MEMORY_ASKED},
    {"occupied", "bytes occupied", TA_MEMORY_OCCUPIED},
};
enum { MEASURES = sizeof measures / sizeof *measures };

static uint64_t value_of(const struct ta_memory_figures *figures, enum ta_memory_measure measure)
{
    const uint64_t values[] = {[TA_MEMORY_ASKED] = figures->asked,
                               [TA_MEMORY_OCCUPIED] = figures->occupied,
                               [TA_MEMORY_RESIDENT] = figures->resident,
                               [TA_MEMORY_PINNED] = figures->pinned,
                               [TA_MEMORY_BACK] = figures->back};
    return values[measure];
}

/* ---- the waterfall ----------------------------------------------------------------------------------------------- */

static uint64_t rss_of(const struct ta_memory_part *parts, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += parts[i].is_in_rss ? parts[i].bytes : 0;
    return sum;
}

static void print_part(const struct ta_memory_part *part, uint64_t rss)
{
    char size[32];
    double share = rss > 0 ? (double)part->bytes / (double)rss : 0;
    ta_size_text((double)part->bytes, 0, size, sizeof size);
    printf("  %10s", size);
    if (part->is_in_rss)
        printf("  %5.1f%%", share * 100);
    else
        printf("  %6s", "");
    fputs("  ", stdout);
    cli_print_fitted(part->words, cli_width() > 40 ? cli_width() - 22 : 18, CLI_CUT_RIGHT);
    if (part->is_in_rss && cli_has_bars() && cli_width() >= 72) {
        size_t used = 22 + cli_text_width(part->words), width = cli_width();
        printf("%*s", used < 62 ? (int)(62 - used) : 1, "");
        cli_print_bar(share, width > 64 ? (width - 64 < 40 ? width - 64 : 40) : 8);
    }
    putchar('\n');
}

/* What was asked for is more than what is in memory, where blocks were never touched or are swapped out. */
static void print_asked(const struct ta_image *image, uint64_t resident)
{
    struct ta_image_info info;
    char asked[32], there[32];
    ta_image_get_info(image, &info, sizeof info);
    ta_size_text((double)info.bytes, 0, asked, sizeof asked);
    ta_size_text((double)resident, 0, there, sizeof there);
    char *text = cli_text("%s in %" PRIu64 " live block%s, of which %s are in memory\n", asked, info.blocks,
                          cli_s(info.blocks), there);
    cli_print_wrapped(text);
    free(text);
}

static void print_parts(const struct ta_memory_part *parts, size_t count, const char *name, int is_core,
                        const struct ta_image *image)
{
    char size[32];
    uint64_t rss = rss_of(parts, count);
    ta_size_text((double)rss, 0, size, sizeof size);
    printf("%s: %s%s resident%s%s\n", name, cli_style(CLI_BOLD), size, cli_style(CLI_PLAIN),
           is_core ? ", as far as a core tells: pages of zeros count as absent" : "");
    if (image != NULL)
        print_asked(image, parts[0].bytes);
    putchar('\n');
    for (size_t i = 0; i < count; i++)
        if (parts[i].bytes != 0 || strcmp(parts[i].name, "asked") == 0)
            print_part(&parts[i], rss);
    putchar('\n');
}

static void print_parts_json(const struct ta_memory_part *parts, size_t count)
{
    printf("\"rss\": %" PRIu64 ", \"parts\": {", rss_of(parts, count));
    for (size_t i = 0; i < count; i++)
        printf("%s\"%s\": %" PRIu64, i == 0 ? "" : ", ", parts[i].name, parts[i].bytes);
    putchar('}');
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

static const struct cli_column mapping_columns[] = {
    {"start", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"end", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"addresses", "ADDRESSES", CLI_TEXT, CLI_PEOPLE_ONLY},
    {"rights", "", CLI_TEXT, CLI_GOES(1)},
    {"rss", "RSS", CLI_BYTES, CLI_STRONG},
    {"explained", "EXPLAINED", CLI_BYTES, CLI_GOES(2)},
    {"swap", "SWAP", CLI_BYTES, CLI_MACHINES_ONLY},
    {"part", "MOSTLY", CLI_TEXT, CLI_GOES(3)},
    {"path", "OF", CLI_TEXT, CLI_PATH},
};

static void print_mappings(const struct ta_image *image, int as_json)
{
    size_t count = ta_image_memory_mappings(image, NULL, 0);
    struct ta_memory_mapping *rows = cli_allocate(count, sizeof *rows);
    struct cli_table *table = cli_table_new(mapping_columns, sizeof mapping_columns / sizeof *mapping_columns);
    ta_image_memory_mappings(image, rows, count);
    for (size_t i = 0; i < count; i++) {
        char start[32], end[32], both[64];
        if (rows[i].rss == 0 && rows[i].explained == 0)
            continue;
        snprintf(start, sizeof start, "0x%" PRIx64, rows[i].start);
        snprintf(end, sizeof end, "0x%" PRIx64, rows[i].end);
        snprintf(both, sizeof both, "%" PRIx64 "-%" PRIx64, rows[i].start, rows[i].end);
        cli_table_add(table, (struct cli_cell[]){{.text = start},
                                                 {.text = end},
                                                 {.text = both},
                                                 {.text = rows[i].rights},
                                                 {.number = rows[i].rss},
                                                 {.number = rows[i].explained},
                                                 {.number = rows[i].swap},
                                                 {.text = rows[i].part},
                                                 {.text = rows[i].path}});
    }
    if (as_json) {
        cli_table_print_json(table);
    } else {
        cli_table_print_text(table);
        putchar('\n');
    }
    cli_table_free(table);
    free(rows);
}

/* ---- by own lines, or another key -------------------------------------------------------------------------------- */

static const struct cli_column row_columns[] = {
    {"back", "GOES BACK", CLI_BYTES, 0},
    {"resident", "RESIDENT", CLI_BYTES, CLI_GOES(4)},
    {"pinned", "PINNED", CLI_BYTES, CLI_GOES(2)},
    {"asked", "ASKED", CLI_BYTES, CLI_GOES(3)},
    {"occupied", "", CLI_BYTES, CLI_MACHINES_ONLY},
    {"blocks", "BLOCKS", CLI_NUMBER, CLI_GOES(1)},
    {"where", "", CLI_TEXT, CLI_MACHINES_ONLY},
    {"place", "WHERE", CLI_PLACE, CLI_PEOPLE_ONLY},
};
enum { ROW_COLUMNS = sizeof row_columns / sizeof *row_columns };

struct order {
    const struct ta_memory_figures *figures;
    enum ta_memory_measure measure;
};

static int compare_rows(const void *a, const void *b, void *user)
{
    const struct order *order = user;
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    uint64_t left_value = value_of(&order->figures[left], order->measure);
    uint64_t right_value = value_of(&order->figures[right], order->measure);
    if (left_value != right_value)
        return left_value < right_value ? 1 : -1;
    uint64_t left_rest = order->figures[left].resident, right_rest = order->figures[right].resident;
    if (left_rest != right_rest)
        return left_rest < right_rest ? 1 : -1;
    return left < right ? -1 : left > right;
}

static void add_row(struct cli_table *table, const struct ta_memory_figures *row, const char *label,
                    const struct cli_row_text *text)
{
    cli_table_add(table, (struct cli_cell[]){
                             {.number = row->back},
                             {.number = row->resident},
                             {.number = row->pinned},
                             {.number = row->asked},
                             {.number = row->occupied},
                             {.number = row->blocks},
                             {.text = label},
                             text != NULL ? (struct cli_cell){.text = text->place, .more = text->name, .via = text->via}
                                          : (struct cli_cell){.text = label}});
}

static void print_rows(struct ta_statistics *statistics, const struct ta_memory_figures *figures,
                       enum ta_memory_measure measure, const struct cli_inside *inside)
{
    struct cli_column columns[ROW_COLUMNS];
    size_t count = ta_statistics_count(statistics), rows = cli_inside_rows(inside, 10);
    size_t *order = cli_allocate(count + 1, sizeof *order);
    struct order by = {figures, measure};
    memcpy(columns, row_columns, sizeof columns);
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (strcmp(columns[i].name, inside->sort != NULL ? inside->sort : "back") == 0)
            columns[i] =
                (struct cli_column){columns[i].name, columns[i].heading[0] != '\0' ? columns[i].heading : "OCCUPIED",
                                    CLI_BYTES, CLI_STRONG};
    struct cli_table *table = cli_table_new(columns, ROW_COLUMNS);
    for (size_t i = 0; i <= count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, compare_rows, &by);
    for (size_t i = 0; i < count && i < rows; i++) {
        struct cli_row_text text;
        char *label = cli_row_label(statistics, cli_inside_key(inside), order[i]);
        cli_inside_row(&text, statistics, cli_inside_key(inside), order[i]);
        add_row(table, &figures[order[i]], label, &text);
        cli_row_free(&text);
        free(label);
    }
    if (figures[count].blocks > 0)
        add_row(table, &figures[count], "(without a stack)", NULL);
    if (inside->json)
        cli_table_print_json(table);
    else
        cli_table_print_text(table);
    cli_table_free(table);
    if (count > rows && !inside->json)
        printf("… and %zu more (-n 0 lists all)\n", count - rows);
    free(order);
}

static int draw_flame(struct ta_image *image, const struct cli_inside *inside, size_t measure)
{
    struct cli_output output;
    struct ta_snapshot *snapshot = ta_image_memory_snapshot(image, measures[measure].measure);
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, 0);
    char *name = cli_inside_name(image), *title = cli_text("%s: %s", name, measures[measure].words);
    const struct ta_flame_options options = {.title = title};
    int status = snapshot == NULL || tree == NULL || ta_calltree_add(tree, snapshot, 0) != 0
                     ? cli_library_error("memory")
                     : CLI_OK;
    if (status == CLI_OK)
        status = cli_output_open(&output, inside->flame);
    if (status == CLI_OK) {
        if (ta_calltree_export_flame(tree, &options, sizeof options, cli_output_write, &output) != 0)
            status = cli_output_trouble(&output, inside->flame);
        status = cli_output_close(&output, status);
    }
    ta_calltree_free(tree);
    ta_snapshot_free(snapshot);
    free(title);
    free(name);
    return status;
}

/* ---- one process ------------------------------------------------------------------------------------------------- */

struct family {
    struct ta_memory_part parts[PARTS_MOST];
    size_t part_count;
    size_t members;
};

static int list_rows(struct ta_image *image, const struct cli_inside *inside, size_t measure)
{
    struct ta_statistics *statistics = ta_snapshot_statistics(ta_image_snapshot(image), cli_inside_key(inside), 0);
    if (statistics == NULL)
        return cli_library_error("memory");
    struct ta_memory_figures *figures = cli_allocate(ta_statistics_count(statistics) + 1, sizeof *figures);
    int status = ta_image_memory_rows(image, statistics, figures) == 0 ? CLI_OK : cli_library_error("memory");
    if (status == CLI_OK)
        print_rows(statistics, figures, measures[measure].measure, inside);
    free(figures);
    ta_statistics_free(statistics);
    return status;
}

static int show(struct ta_image *image, const struct cli_inside *inside, size_t measure, struct family *family)
{
    struct ta_memory_part parts[PARTS_MOST];
    struct ta_image_info info;
    size_t count = ta_image_memory_parts(image, parts, PARTS_MOST);
    char *name = cli_inside_name(image);
    int status = CLI_OK;
    ta_image_get_info(image, &info, sizeof info);
    for (size_t i = 0; i < count; i++) {
        uint64_t before = i < family->part_count ? family->parts[i].bytes : 0;
        family->parts[i] = parts[i];
        family->parts[i].bytes += before;
    }
    family->part_count = count > family->part_count ? count : family->part_count;
    if (inside->json) {
        printf("%s\n{\"process\": %u, \"program\": ", family->members > 0 ? "," : "", info.pid);
        cli_print_json_string(stdout, info.program, strlen(info.program));
        printf(", \"held_ns\": %" PRIu64 ", ", info.held_ns);
        print_parts_json(parts, count);
        fputs(", \"rows\": ", stdout);
        status = list_rows(image, inside, measure);
        fputs(", \"mappings\": ", stdout);
        print_mappings(image, 1);
        putchar('}');
    } else {
        print_parts(parts, count, name, info.is_core, image);
        if (inside->mappings)
            print_mappings(image, 0);
        status = list_rows(image, inside, measure);
    }
    family->members++;
    free(name);
    return status == CLI_OK && inside->flame != NULL ? draw_flame(image, inside, measure) : status;
}

/* ---- recordings: what they say of the process -------------------------------------------------------------------- */

static int is_recording(const char *path)
{
    unsigned char magic[8] = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return strchr(path, '@') != NULL;
    size_t length = fread(magic, 1, sizeof magic, file);
    fclose(file);
    return length == sizeof magic && memcmp(magic, "\x89TAR\r\n\x1a\n", sizeof magic) == 0;
}

static uint64_t number_of(const struct ta_snapshot *snapshot, const char *key)
{
    const char *text = ta_snapshot_metadata(snapshot, key);
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* What take has written down; else what the process itself knew when it took the snapshot. */
static size_t recorded_parts(struct ta_snapshot *snapshot, struct ta_memory_part *parts)
{
    static const struct ta_memory_part whole[] = {
        {"asked", "asked for by live blocks", 0, 1},
        {"rounding", "rounding up to block sizes", 0, 1},
        {"headers", "headers of blocks", 0, 1},
        {"free", "free blocks in pages in use", 0, 1},
        {"kept", "free pages kept for reuse", 0, 1},
        {"tables", "tracealloc itself: tables, code, data", 0, 1},
        {"stacks", "stacks of threads", 0, 1},
        {"code", "code of the program and libraries", 0, 1},
        {"data", "data of the program and libraries", 0, 1},
        {"files", "files mapped", 0, 1},
        {"shared", "memory shared with others", 0, 1},
        {"other", "mapped by the program itself", 0, 1},
        {"page_tables", "page tables (not in Rss)", 0, 0},
        {"swap", "swapped out (not in Rss)", 0, 0},
    };
    size_t count = sizeof whole / sizeof *whole, found = 0;
    memcpy(parts, whole, sizeof whole);
    for (size_t i = 0; i < count; i++) {
        char *key = cli_text("memory.part.%s", whole[i].name);
        found += ta_snapshot_metadata(snapshot, key) != NULL;
        parts[i].bytes = number_of(snapshot, key);
        free(key);
    }
    if (found > 0)
        return count;
    if (ta_snapshot_metadata(snapshot, "memory.resident") == NULL)
        return 0;
    struct ta_snapshot_info info;
    ta_snapshot_info(snapshot, &info, sizeof info);
    uint64_t anonymous = number_of(snapshot, "memory.anonymous"), tracer = number_of(snapshot, "memory.tracer");
    uint64_t live = info.current_bytes < anonymous ? info.current_bytes : anonymous;
    tracer = tracer < anonymous - live ? tracer : anonymous - live;
    const struct ta_memory_part coarse[] = {
        {"asked", "asked for by live blocks (as far as touched)", live, 1},
        {"tables", "tables of tracealloc", tracer, 1},
        {"anonymous", "other anonymous memory", anonymous - live - tracer, 1},
        {"files", "files mapped: code, libraries, data", number_of(snapshot, "memory.file"), 1},
        {"shared", "memory shared with others", number_of(snapshot, "memory.shared"), 1},
        {"swap", "swapped out (not in Rss)", number_of(snapshot, "memory.swapped"), 0},
    };
    memcpy(parts, coarse, sizeof coarse);
    return sizeof coarse / sizeof *coarse;
}

/* What is asked for and a recording does not have. */
static void warn_of_options(const char *path, const struct cli_inside *inside)
{
    const struct {
        const char *name;
        int is_given;
    } options[] = {{"--by", inside->key != NULL},
                   {"--sort", inside->sort != NULL},
                   {"-n", inside->limit != SIZE_MAX},
                   {"--mappings", inside->mappings},
                   {"--flame", inside->flame != NULL}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].is_given)
            cli_warning("%s: %s is for a process or a core: a recording has the parts alone", path, options[i].name);
}

static int show_recording(const char *path, const struct cli_inside *inside, int is_first)
{
    struct ta_memory_part parts[PARTS_MOST];
    struct ta_snapshot *snapshot = cli_load(path);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    size_t count = recorded_parts(snapshot, parts);
    if (count == 0) {
        ta_snapshot_free(snapshot);
        return cli_error("%s: it does not say what the process had in memory", path);
    }
    warn_of_options(path, inside);
    if (inside->json) {
        fputs(is_first ? "\n{\"file\": " : ",\n{\"file\": ", stdout);
        cli_print_json_string(stdout, path, strlen(path));
        fputs(", ", stdout);
        print_parts_json(parts, count);
        putchar('}');
    } else {
        print_parts(parts, count, path, 0, NULL);
        if (strcmp(parts[2].name, "anonymous") == 0)
            cli_print_wrapped(
                "A process itself does not know more: tracealloc memory PID, or take, tells the rest apart.\n");
    }
    ta_snapshot_free(snapshot);
    return CLI_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int one(const struct cli_inside *inside, const char *what, size_t measure, struct family *family)
{
    if (is_recording(what))
        return show_recording(what, inside, family->members++ == 0);
    struct ta_image *image = cli_inside_open(inside, what, TA_IMAGE_MEMORY);
    if (image == NULL)
        return CLI_TROUBLE;
    if (family->members > 0 && !inside->json)
        putchar('\n');
    int status = show(image, inside, measure, family);
    ta_image_close(image);
    return status;
}

static int run(int argc, char **argv)
{
    static const int options[] = {INSIDE_KEY,      INSIDE_SORT,     INSIDE_LIMIT,
                                  INSIDE_JSON,     INSIDE_COLOR,    INSIDE_FLAME,
                                  INSIDE_MAPPINGS, INSIDE_NO_PAUSE, 0};
    struct cli_inside inside;
    struct family family = {.part_count = 0};
    size_t measure = 0;
    if (cli_inside_parse(&inside, &cli_memory, options, 1, INT_MAX, argc, argv) != 0)
        return CLI_TROUBLE;
    if (inside.help)
        return cli_finish_output();
    while (inside.sort != NULL && measure < MEASURES && strcmp(measures[measure].name, inside.sort) != 0)
        measure++;
    if (measure == MEASURES)
        return cli_error("memory: --sort: unknown measure '%s' (back, resident, pinned, asked, occupied)", inside.sort);
    int status = CLI_OK;
    fputs(inside.json ? "[" : "", stdout);
    for (int i = 0; i < inside.operand_count; i++) {
        int result = one(&inside, inside.operands[i], measure, &family);
        status = result > status ? result : status;
    }
    fputs(inside.json ? "\n]\n" : "", stdout);
    if (family.members > 1 && family.part_count > 0 && !inside.json) {
        char *name = cli_text("all %zu processes", family.members);
        putchar('\n');
        print_parts(family.parts, family.part_count, name, 0, NULL);
        free(name);
    }
    int output = cli_finish_output();
    return status > output ? status : output;
}

const struct cli_command cli_memory = {
    .name = "memory",
    .arguments = "PID|CORE|FILE… [--by KEY] [--sort MEASURE] [-n N] [--mappings] [--flame OUT.svg] [--json]",
    .summary = "say what the resident memory of a process is, to the last page",
    .help =
        "  --by KEY         own (default), line, function, file, module, stack or domain\n"
        "  --sort MEASURE   back (default): what would go back to the system if the blocks went;\n"
        "                   resident: what of them is in memory; pinned: free bytes that cannot go back\n"
        "                   because of them; asked: bytes asked for; occupied: with rounding and headers\n"
        "  -n N             the first N rows: 10 unless given, 0 = all\n"
        "  --mappings       what is resident of each mapping, and how much of that is explained\n"
        "  --flame OUT.svg  a flame graph by the measure\n"
        "  --no-pause       do not hold the process still: figures may be a moment apart\n"
        "  --json           [{process, program, rss, parts, rows, mappings}, …]\n"
        "  --color WHEN     auto (default), always or never\n"
        "\n"
        "The parts add up to the Rss of the process. Of a recording it tells the parts that are written in it: all\n"
        "of them when tracealloc take made it, fewer when the process itself did. Rows and mappings are told of a\n"
        "process or a core. Several processes: each, and their sum. docs/inside.md has the meaning of each line.\n"
        "\n"
        "  tracealloc memory 1234\n"
        "  tracealloc memory 1234 --sort pinned --flame pinned.svg\n",
    .run = run,
};
