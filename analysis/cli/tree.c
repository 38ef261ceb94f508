/* tree.c: tracealloc tree — the calling tree with what each branch holds, top-down or from the allocating functions up.
 * Branches below a share are folded, and so are chains of calls in which nothing branches off. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/calltree.h"
#include "analysis/cli/cli.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

struct drawing {
    const struct cli_calltree *tree;
    struct cli_table *table;
    int64_t smallest; /* value below which a branch is folded */
    size_t depth, rows;
    int folds;         /* chains of calls become one line */
    const char *arrow; /* between the calls of a folded chain */
};

enum { VALUE, SHARE, BLOCKS, DEPTH, FUNCTION, FILE_NAME, LINE, DRAWN, COLUMNS };

/* How many calls in a row have one child that holds everything: they become one line. */
static uint32_t last_of_chain(const struct cli_calltree *tree, uint32_t index, size_t *length)
{
    *length = 0;
    for (;;) {
        uint32_t child = tree->nodes[index].child;
        if (index == 0 || child == 0 || tree->nodes[child].sibling != 0 ||
            tree->nodes[child].value != tree->nodes[index].value)
            return index;
        index = child;
        ++*length;
    }
}

static void add_row(const struct drawing *drawing, const struct cli_node *node, size_t depth, const char *drawn)
{
    int64_t total = drawing->tree->nodes[0].value;
    cli_table_add(drawing->table,
                  (struct cli_cell[COLUMNS]){[VALUE].number = (uint64_t)node->value,
                                             [SHARE].share = total > 0 ? (double)node->value / (double)total : 0,
                                             [BLOCKS].number = node->count,
                                             [DEPTH].number = depth,
                                             [FUNCTION].text = node->name,
                                             [FILE_NAME].text = node->file,
                                             [LINE].number = node->line,
                                             [DRAWN].text = drawn});
}

static void add_node(const struct drawing *drawing, uint32_t index, size_t depth, const char *before);

static void add_children(const struct drawing *drawing, uint32_t index, size_t depth, const char *before)
{
    struct cli_node folded = {.name = "", .file = "", .module = ""};
    size_t count = 0;
    for (uint32_t child = drawing->tree->nodes[index].child; child != 0;) {
        const struct cli_node *node = &drawing->tree->nodes[child];
        if (node->value >= drawing->smallest && cli_table_count(drawing->table) < drawing->rows) {
            add_node(drawing, child, depth, before);
        } else {
            folded.value += node->value;
            folded.count += node->count;
            count++;
        }
        child = node->sibling;
    }
    if (count == 0)
        return;
    char *name = cli_text("(%zu more)", count), *drawn = cli_text("%s%s", before, name);
    folded.name = name;
    add_row(drawing, &folded, depth, drawn);
    free(drawn);
    free(name);
}

static void add_node(const struct drawing *drawing, uint32_t index, size_t depth, const char *before)
{
    size_t skipped = 0;
    uint32_t last = drawing->folds ? last_of_chain(drawing->tree, index, &skipped) : index;
    const struct cli_node *node = &drawing->tree->nodes[index];
    const char *arrow = drawing->arrow;
    char path[PATH_MAX], *place = NULL, *chain = NULL;
    const struct cli_node *placed = drawing->arrow[0] == '>' ? &drawing->tree->nodes[last] : node;
    cli_short_path(placed->file, path, sizeof path);
    place = *placed->file != '\0'     ? cli_text("  %s:%u", path, placed->line)
            : *placed->module != '\0' ? cli_text("  %s", cli_base_name(placed->module))
                                      : cli_text("%s", "");
    if (skipped > 0)
        chain = skipped == 1
                    ? cli_text(" %s %s", arrow, drawing->tree->nodes[last].name)
                    : cli_text(" %s … %zu … %s %s", arrow, skipped - 1, arrow, drawing->tree->nodes[last].name);
    char *drawn = cli_text("%s%s%s%s", before, node->name, chain != NULL ? chain : "", place);
    add_row(drawing, node, depth, drawn);
    free(drawn);
    free(chain);
    free(place);
    if (depth >= drawing->depth)
        return;
    char *deeper = cli_text("%s  ", before);
    add_children(drawing, last, depth + 1, deeper);
    free(deeper);
}

static int draw(const struct cli_calltree *tree, const struct cli_options *options)
{
    enum ta_order order = options->order;
    int is_bytes = order == TA_ORDER_DEFAULT || order == TA_ORDER_ALLOCATED_SIZE || order == TA_ORDER_PEAK;
    const struct cli_column columns[COLUMNS] = {
        [VALUE] = {"value",
                   order == TA_ORDER_DEFAULT          ? "LIVE"
                   : order == TA_ORDER_ALLOCATED_SIZE ? "TOTAL"
                   : order == TA_ORDER_PEAK           ? "AT PEAK"
                   : order == TA_ORDER_COUNT          ? "BLOCKS"
                   : order == TA_ORDER_TEMPORARY      ? "TEMPORARY"
                                                      : "CALLS",
                   is_bytes ? CLI_BYTES : CLI_NUMBER, CLI_STRONG},
        [SHARE] = {"share", "SHARE", CLI_SHARE, CLI_WITH_BAR},
        [BLOCKS] = {"count", "BLOCKS", CLI_NUMBER, order == TA_ORDER_COUNT ? CLI_MACHINES_ONLY : 0},
        [DEPTH] = {"depth", "", CLI_NUMBER, CLI_MACHINES_ONLY},
        [FUNCTION] = {"function", "", CLI_TEXT, CLI_MACHINES_ONLY},
        [FILE_NAME] = {"file", "", CLI_TEXT, CLI_MACHINES_ONLY},
        [LINE] = {"line", "", CLI_NUMBER, CLI_MACHINES_ONLY},
        [DRAWN] = {"drawn", options->bottom_up ? "ALLOCATING FUNCTION, ITS CALLERS BELOW" : "CALLS", CLI_TEXT,
                   CLI_PEOPLE_ONLY},
    };
    double minimum = options->minimum >= 0 ? options->minimum : 1;
    struct drawing drawing = {
        .tree = tree,
        .folds = !options->json && !options->csv,
        .arrow = options->bottom_up ? "<" : ">",
        .table = cli_table_new(columns, COLUMNS),
        .smallest = (int64_t)((double)tree->nodes[0].value * minimum / 100),
        .depth = options->depth == SIZE_MAX ? 64 : options->depth,
        .rows = cli_rows(&(struct cli_options){.limit = options->limit}, 1000),
    };
    if (drawing.smallest < 1)
        drawing.smallest = 1;
    add_children(&drawing, 0, 0, "");
    cli_table_print(drawing.table, options);
    cli_table_free(drawing.table);
    return cli_finish_output();
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_tree,
                  CLI_SORT | CLI_FILTERS | CLI_FORMATS | CLI_BOTTOM_UP | CLI_MINIMUM | CLI_DEPTH | CLI_LIMIT, 1, 1,
                  argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    struct cli_calltree tree = {0};
    int status;
    if (cli_calltree_add(&tree, snapshot, options.order, options.bottom_up ? CLI_FROM_LEAVES : CLI_TOP_DOWN, 0) != 0) {
        status = cli_library_error(options.operands[0]);
    } else {
        cli_calltree_sort(&tree);
        status = draw(&tree, &options);
    }
    cli_calltree_free(&tree);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_tree = {
    .name = "tree",
    .arguments =
        "FILE[@ENTRY] [--bottom-up] [--sort ORDER] [--min PERCENT] [--depth N] [--where FILTER] [--json | --csv]",
    .summary = "show the calling tree with what each branch holds",
    .help = "  --bottom-up      begin with the functions that asked for the memory, callers below\n"
            "  --sort ORDER     live (default), count, total, calls, temporary or peak\n"
            "  --min PERCENT    fold branches with less: 1 unless given\n"
            "  --depth N        levels below the first: 64 unless given\n"
            "  -n N             rows at most: 1000 unless given, 0 = all\n"
            "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
            "  --spec FILE      only traces that a JSON list of filters keeps\n"
            "  --json, --csv    the rows for other programs\n"
            "  --color WHEN     auto (default), always or never\n"
            "\n"
            "  tracealloc tree server.ta --bottom-up --min 5\n",
    .run = run,
};
