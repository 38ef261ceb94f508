/* cmd_tree.c: tracealloc tree — the calling tree with what each branch holds, top-down or from the allocating functions up;
 * of two snapshots, with what each branch changed. Branches below a share are folded, and so are recursion and chains of
 * calls in which nothing branches off. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tracealloc/export.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/places.h"
#include "analysis/cli/project.h"
#include "analysis/cli/row_text.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

struct drawing {
    const struct ta_calltree *tree;
    struct cli_table *table;
    int64_t *moved;   /* by node: what changed in it and below it, up and down; what it holds where there is one file */
    int64_t smallest; /* below which a branch is folded */
    size_t depth, rows;
    int folds;         /* chains of calls become one line */
    const char *arrow; /* between the calls of a folded chain */
};

enum { CHANGE, VALUE, SHARE, BLOCKS, DEPTH, FUNCTION, FILE_NAME, LINE, OLD_VALUE, DRAWN, COLUMNS };

static struct ta_calltree_node node_at(const struct ta_calltree *tree, uint32_t index)
{
    struct ta_calltree_node node = {.name = "", .file = "", .module = "", .domain = "", .times = 1};
    ta_calltree_get(tree, index, &node, sizeof node);
    return node;
}

/* How many calls in a row have one child that holds everything: they become one line. */
static uint32_t last_of_chain(const struct ta_calltree *tree, uint32_t index, size_t *length)
{
    *length = 0;
    for (;;) {
        struct ta_calltree_node node = node_at(tree, index), child = node_at(tree, node.child);
        if (index == 0 || node.child == 0 || child.sibling != 0 || child.value != node.value ||
            child.old_value != node.old_value)
            return index;
        index = node.child;
        ++*length;
    }
}

static void add_row(const struct drawing *drawing, const struct ta_calltree_node *node, size_t depth, const char *drawn,
                    const char *shorter, const char *place)
{
    int64_t total = node_at(drawing->tree, 0).value;
    cli_table_add(drawing->table,
                  (struct cli_cell[COLUMNS]){[CHANGE].change = node->value - node->old_value,
                                             [VALUE].number = (uint64_t)node->value,
                                             [SHARE].share = total > 0 ? (double)node->value / (double)total : 0,
                                             [BLOCKS].number = node->count,
                                             [DEPTH].number = depth,
                                             [FUNCTION].text = node->name,
                                             [FILE_NAME].text = node->file,
                                             [LINE].number = node->line,
                                             [OLD_VALUE].number = (uint64_t)node->old_value,
                                             [DRAWN] = {.text = drawn, .more = place, .via = shorter}});
}

/* ---- words ---- */

/* "deep ×19", "odd (2 calls ×9)" where each time two calls came that end with it. */
static char *name_text(const struct ta_calltree_node *node, int is_short)
{
    int is_line = *node->file != '\0' && strrchr(node->name, ':') != NULL &&
                  strncmp(node->name, cli_base_name(node->file), strlen(cli_base_name(node->file))) == 0;
    int has_place = !is_line && (*node->file != '\0' || *node->module != '\0');
    char *name = has_place ? cli_function_name(node->name) : cli_text("%s", node->name), *text;
    if (is_short && has_place) {
        text = cli_class_and_function(name);
        free(name);
        name = text;
    }
    if (node->times <= 1)
        return name;
    text = node->circle > 1 ? cli_text("%s (%u calls ×%u)", name, node->circle, node->times)
                            : cli_text("%s ×%u", name, node->times);
    free(name);
    return text;
}

/* "list.c:12", or "list.c:12, …" where others of its lines went on, too. */
static char *place_text(const struct ta_calltree_node *node)
{
    char text[PATH_MAX + 16] = "";
    struct ta_frame frame = {.filename = *node->file != '\0' ? node->file : node->module,
                             .lineno = node->line,
                             .function = node->name,
                             .module = node->module};
    if (*frame.filename != '\0')
        cli_place_text(&frame, text, sizeof text);
    char *name = cli_function_name(node->name);
    char *place = cli_text("%s%s", strcmp(text, name) != 0 ? text : "",
                           *text != '\0' && node->line > 0 && node->has_other_lines ? ", …" : "");
    free(name);
    return place;
}

/* ---- branches ---- */

static void add_node(const struct drawing *drawing, uint32_t index, size_t depth, const char *before);

static const struct drawing *sorted;

/* What moved most comes first; the library's order, by size, holds for one file. */
static int by_movement(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (sorted->moved[x] != sorted->moved[y])
        return sorted->moved[x] > sorted->moved[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static size_t children_of(const struct drawing *drawing, uint32_t index, uint32_t **children)
{
    size_t count = 0;
    for (uint32_t child = node_at(drawing->tree, index).child; child != 0;
         child = node_at(drawing->tree, child).sibling)
        count++;
    *children = cli_allocate(count, sizeof **children);
    count = 0;
    for (uint32_t child = node_at(drawing->tree, index).child; child != 0;
         child = node_at(drawing->tree, child).sibling)
        (*children)[count++] = child;
    sorted = drawing;
    qsort(*children, count, sizeof **children, by_movement);
    return count;
}

static void add_children(const struct drawing *drawing, uint32_t index, size_t depth, const char *before)
{
    struct ta_calltree_node folded = {.name = "", .file = "", .module = "", .domain = "", .times = 1};
    uint32_t *children;
    size_t count = children_of(drawing, index, &children), left = 0;
    for (size_t i = 0; i < count; i++) {
        struct ta_calltree_node node = node_at(drawing->tree, children[i]);
        if (drawing->moved[children[i]] >= drawing->smallest && cli_table_count(drawing->table) < drawing->rows) {
            add_node(drawing, children[i], depth, before);
        } else if (node.value != 0 ||
                   node.old_value != 0) { /* what folds into a circle above it leaves nothing behind */
            folded.value += node.value;
            folded.old_value += node.old_value;
            folded.count += node.count;
            left++;
        }
    }
    free(children);
    if (left == 0)
        return;
    char *name = cli_text("(%zu more)", left), *drawn = cli_text("%s%s", before, name);
    folded.name = name;
    add_row(drawing, &folded, depth, drawn, NULL, NULL);
    free(drawn);
    free(name);
}

/* One call, two, or the first and the last of a chain with the number of those between. */
static char *chain_text(const struct ta_calltree_node *node, const struct ta_calltree_node *end, size_t skipped,
                        const char *arrow, int is_short)
{
    char *name = name_text(node, is_short), *end_name = name_text(end, is_short), *text;
    if (skipped == 0)
        text = cli_text("%s", name);
    else if (skipped == 1)
        text = cli_text("%s %s %s", name, arrow, end_name);
    else if (is_short)
        text = cli_text("%s %s … %s %s", name, arrow, arrow, end_name);
    else
        text = cli_text("%s %s … %zu … %s %s", name, arrow, skipped - 1, arrow, end_name);
    free(name);
    free(end_name);
    return text;
}

static void add_node(const struct drawing *drawing, uint32_t index, size_t depth, const char *before)
{
    size_t skipped = 0;
    uint32_t last = drawing->folds ? last_of_chain(drawing->tree, index, &skipped) : index;
    const struct ta_calltree_node node = node_at(drawing->tree, index), end = node_at(drawing->tree, last);
    char *chain = chain_text(&node, &end, skipped, drawing->arrow, 0);
    char *shorter = chain_text(&node, &end, skipped, drawing->arrow, 1);
    char *drawn = cli_text("%s%s", before, chain), *drawn_shorter = cli_text("%s%s", before, shorter);
    char *place = place_text(drawing->arrow[0] == '>' ? &end : &node);
    add_row(drawing, &node, depth, drawn, drawn_shorter, place);
    free(chain);
    free(shorter);
    free(drawn);
    free(drawn_shorter);
    free(place);
    if (depth >= drawing->depth)
        return;
    char *deeper = cli_text("%s  ", before);
    add_children(drawing, last, depth + 1, deeper);
    free(deeper);
}

/* By node: of two files the change that stacks ending there made, up or down, with all below it. */
static int64_t *measure(const struct ta_calltree *tree, int is_difference)
{
    size_t count = ta_calltree_count(tree);
    int64_t *moved = cli_allocate(count, sizeof *moved), *below = cli_allocate(count, sizeof *below);
    for (size_t i = count; i-- > 0;) { /* what is below a node comes behind it */
        struct ta_calltree_node node = node_at(tree, (uint32_t)i);
        int64_t change = node.value - node.old_value, own = change - below[i];
        moved[i] = is_difference ? moved[i] + (own < 0 ? -own : own) : node.value;
        if (i > 0 && is_difference) {
            moved[node.parent] += moved[i];
            below[node.parent] += change;
        }
    }
    free(below);
    return moved;
}

static int draw(const struct ta_calltree *tree, const struct cli_options *options)
{
    enum ta_order order = options->order;
    int is_bytes = order == TA_ORDER_DEFAULT || order == TA_ORDER_ALLOCATED_SIZE || order == TA_ORDER_PEAK;
    int is_difference = options->operand_count == 2;
    unsigned for_differences = is_difference ? 0 : CLI_MACHINES_ONLY | CLI_PEOPLE_ONLY;
    const struct cli_column columns[COLUMNS] = {
        [CHANGE] = {"change", "CHANGE", is_bytes ? CLI_BYTES_CHANGE : CLI_NUMBER_CHANGE, for_differences},
        [VALUE] = {"value",
                   order == TA_ORDER_DEFAULT          ? "LIVE"
                   : order == TA_ORDER_ALLOCATED_SIZE ? "TOTAL"
                   : order == TA_ORDER_PEAK           ? "AT PEAK"
                   : order == TA_ORDER_COUNT          ? "BLOCKS"
                   : order == TA_ORDER_TEMPORARY      ? "TEMPORARY"
                                                      : "CALLS",
                   is_bytes ? CLI_BYTES : CLI_NUMBER, is_difference ? 0 : CLI_STRONG},
        [SHARE] = {"share", "SHARE", CLI_SHARE, is_difference ? CLI_MACHINES_ONLY : CLI_WITH_BAR},
        [BLOCKS] = {"count", "BLOCKS", CLI_NUMBER, order == TA_ORDER_COUNT ? CLI_MACHINES_ONLY : 0},
        [DEPTH] = {"depth", "", CLI_NUMBER, CLI_MACHINES_ONLY},
        [FUNCTION] = {"function", "", CLI_TEXT, CLI_MACHINES_ONLY},
        [FILE_NAME] = {"file", "", CLI_TEXT, CLI_MACHINES_ONLY},
        [LINE] = {"line", "", CLI_NUMBER, CLI_MACHINES_ONLY},
        [OLD_VALUE] = {"old_value", "", CLI_NUMBER, CLI_MACHINES_ONLY | for_differences},
        [DRAWN] = {"drawn", options->bottom_up ? "ALLOCATING FUNCTION, ITS CALLERS BELOW" : "CALLS", CLI_PLACE,
                   CLI_PEOPLE_ONLY | CLI_NAME_FIRST},
    };
    double minimum = options->minimum >= 0 ? options->minimum : 1;
    struct drawing drawing = {
        .tree = tree,
        .folds = !options->json && !options->csv,
        .moved = measure(tree, is_difference),
        .arrow = options->bottom_up ? "<" : ">",
        .table = cli_table_new(columns, COLUMNS),
        .depth = options->depth == SIZE_MAX ? 64 : options->depth,
        .rows = cli_rows(&(struct cli_options){.limit = options->limit}, 1000),
    };
    drawing.smallest = (int64_t)((double)drawing.moved[0] * minimum / 100);
    if (drawing.smallest < 1)
        drawing.smallest = 1;
    add_children(&drawing, 0, 0, "");
    cli_table_print(drawing.table, options);
    cli_table_free(drawing.table);
    free(drawing.moved);
    return cli_finish_output();
}

static int add_file(struct ta_calltree *tree, struct ta_snapshot *snapshot, const char *path, int is_old)
{
    cli_progress_begin("adding up the stacks");
    int result = ta_calltree_add(tree, snapshot, is_old);
    cli_progress_end();
    return result != 0 ? cli_library_error(path) : CLI_OK;
}

static int show(const struct cli_options *options, struct ta_snapshot *snapshot, struct ta_snapshot *old)
{
    unsigned flags = options->bottom_up ? TA_CALLTREE_FROM_LEAVES : 0;
    if (options->collapse && cli_use_rules(options, snapshot, old) != CLI_OK)
        return CLI_TROUBLE;
    if (!options->json && !options->csv && !options->full)
        flags |= TA_CALLTREE_FOLD;
    flags |= options->collapse ? TA_CALLTREE_OWN : 0;
    struct ta_calltree *tree = ta_calltree_create(options->order, flags);
    int status = tree == NULL ? cli_library_error("tree") : add_file(tree, snapshot, options->operands[0], 0);
    if (status == CLI_OK && old != NULL)
        status = add_file(tree, old, options->operands[1], 1);
    cli_places_set_program(snapshot);
    if (status == CLI_OK)
        status = draw(tree, options);
    if (status == CLI_OK && !options->json && !options->csv) {
        cli_rows_tell_missing(NULL, 0, snapshot);
        status = cli_finish_output();
    }
    ta_calltree_free(tree);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_tree,
                  CLI_SORT | CLI_FILTERS | CLI_FORMATS | CLI_BOTTOM_UP | CLI_MINIMUM | CLI_DEPTH | CLI_LIMIT | CLI_OWN |
                      CLI_COLLAPSE | CLI_FULL,
                  1, 2, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.order > TA_ORDER_PEAK)
        return cli_error("tree: --sort %s: choose live, count, total, calls, temporary or peak", options.sort);
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options), *old = NULL;
    if (snapshot != NULL && options.operand_count == 2)
        old = cli_load_filtered(options.operands[1], &options);
    int status =
        snapshot == NULL || (options.operand_count == 2 && old == NULL) ? CLI_TROUBLE : show(&options, snapshot, old);
    ta_snapshot_free(snapshot);
    ta_snapshot_free(old);
    return status;
}

const struct cli_command cli_tree = {
    .name = "tree",
    .arguments = "FILE[@ENTRY] [OLD[@ENTRY]] [--bottom-up] [--collapse] [--sort ORDER] [--min PERCENT] [--depth N] "
                 "[--where FILTER] [--json | --csv]",
    .summary = "show the calling tree with what each branch holds; with two files what it changed",
    .help = "  --bottom-up      begin with the functions that asked for the memory, callers below\n" CLI_HELP_COLLAPSE
            "  --sort ORDER     live (default), count, total, calls, temporary (blocks that came and went) or peak\n"
            "  --min PERCENT    fold branches with less: 1 unless given; with two files less of all change\n"
            "  --depth N        levels below the first: 64 unless given\n"
            "  -n N             rows at most: 1000 unless given, 0 = all\n" CLI_HELP_OWN CLI_HELP_FILTERS
            "  --full-names     names and paths as they are, recursion call by call, and what starts the program\n"
            "  --json, --csv    the rows for other programs, recursion call by call\n"
            "  --color WHEN     auto (default), always or never\n"
            "\n"
            "A line followed by \", …\" is one of several of its function that the branch holds.\n"
            "\n"
            "  tracealloc tree server.ta --bottom-up --min 5\n"
            "  tracealloc tree server.ta server.ta@0 --collapse\n",
    .run = run,
};
