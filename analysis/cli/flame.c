/* flame.c: tracealloc flame — the calling tree as a picture (SVG) for any browser: outermost calls at the top, width is
 * memory. With two recordings the colour tells what grew and what shrank. Needs no network and no other file. */
#include "analysis/cli/flame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/calltree.h"
#include "analysis/cli/cli.h"
#include "analysis/cli/output.h"

#define WIDTH  1200
#define ROW    18
#define ABOVE  64 /* title, search, details */
#define BELOW  10
#define NARROW 0.25 /* pixels: what is narrower is not drawn; a zoom of 400 makes it 100 */

struct picture {
    FILE *file;
    const struct cli_calltree *tree;
    int64_t *widths; /* by node: at least its value, at least its children's together */
    enum ta_order order;
    int is_difference, is_bytes;
    double smallest;
};

/* ---- text ---- */

/* Characters that XML does not allow become '?'. */
static void print_xml(FILE *file, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        size_t length = 1;
        if (*at == '&' || *at == '<' || *at == '>' || *at == '"')
            fprintf(file, "&#%d;", *at);
        else if (*at >= 0x20 && *at < 0x7F)
            putc(*at, file);
        else if (*at == '\n')
            putc('\n', file);
        else if ((length = cli_utf8_length(at, strlen((const char *)at))) > 1)
            fwrite(at, 1, length, file);
        else
            putc('?', file), length = 1;
        at += length;
    }
}

static void value_text(const struct picture *picture, int64_t value, int sign, char *text, size_t size)
{
    if (picture->is_bytes)
        ta_size_text((double)value, sign, text, size);
    else
        snprintf(text, size, sign ? "%+" PRId64 : "%" PRId64, value);
}

/* ---- colours ---- */

/* Warm tones that differ by name, so that one function looks the same everywhere. */
static void flame_color(const char *name, char *text, size_t size)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    snprintf(text, size, "hsl(%u,%u%%,%u%%)", 18 + hash % 34, 78 + hash / 64 % 16, 58 + hash / 4096 % 12);
}

/* Red for growth, blue for release, white for neither; full at half of the larger value. */
static void difference_color(const struct cli_node *node, char *text, size_t size)
{
    int64_t change = node->value - node->old_value;
    int64_t larger = node->value > node->old_value ? node->value : node->old_value;
    double share = larger > 0 ? 2 * (double)change / (double)larger : 0;
    share = share > 1 ? 1 : share < -1 ? -1 : share;
    snprintf(text, size, "hsl(%d,85%%,%d%%)", change >= 0 ? 6 : 214, 94 - (int)((share < 0 ? -share : share) * 34));
}

/* ---- frames ---- */

static void print_frame(const struct picture *picture, uint32_t index, double x, double width, unsigned depth)
{
    const struct cli_node *node = &picture->tree->nodes[index];
    const struct cli_node *root = &picture->tree->nodes[0];
    char color[48], value[32], old[32];
    if (picture->is_difference)
        difference_color(node, color, sizeof color);
    else
        flame_color(node->name, color, sizeof color);
    fprintf(picture->file, "<g class=\"f\" data-x=\"%.7g\" data-w=\"%.7g\" data-d=\"%u\"><title>", x, width, depth);
    print_xml(picture->file, node->name);
    value_text(picture, node->value, 0, value, sizeof value);
    fprintf(picture->file, "\n%s (%.1f%%)", value,
            root->value > 0 ? 100 * (double)node->value / (double)root->value : 0.0);
    if (picture->is_difference) {
        value_text(picture, node->value - node->old_value, 1, old, sizeof old);
        fprintf(picture->file, ", %s", old);
    }
    fprintf(picture->file, ", %" PRIu64 " live blocks", node->count);
    if (*node->file != '\0' || *node->module != '\0') {
        putc('\n', picture->file);
        print_xml(picture->file, *node->file != '\0' ? node->file : node->module);
        if (*node->file != '\0')
            fprintf(picture->file, ":%u", node->line);
    }
    unsigned y = ABOVE + depth * ROW;
    fprintf(picture->file, "</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>", x * WIDTH, y,
            width * WIDTH, ROW - 1, color);
    fprintf(picture->file, "<text x=\"%.2f\" y=\"%u\">", x * WIDTH + 3, y + 13);
    print_xml(picture->file, node->name);
    fputs("</text></g>\n", picture->file);
}

static int64_t larger_value(const struct cli_node *node)
{
    return node->value > node->old_value ? node->value : node->old_value;
}

/* Children have larger indices than their parents, so one pass from the end suffices. */
static void measure(struct picture *picture)
{
    const struct cli_calltree *tree = picture->tree;
    picture->widths = cli_allocate(tree->count, sizeof *picture->widths);
    for (size_t i = tree->count; i-- > 0;) {
        int64_t own = larger_value(&tree->nodes[i]);
        if (picture->widths[i] < own)
            picture->widths[i] = own;
        if (i > 0)
            picture->widths[tree->nodes[i].parent] += picture->widths[i];
    }
}

/* Without recursion: stacks may be tens of thousands of calls deep. Answers the number of rows. */
static unsigned print_frames(const struct picture *picture)
{
    const struct cli_calltree *tree = picture->tree;
    double all = picture->widths[0] > 0 ? (double)picture->widths[0] : 1;
    double *lefts = cli_allocate(tree->count, sizeof *lefts);
    unsigned *depths = cli_allocate(tree->count, sizeof *depths);
    uint32_t *stack = cli_allocate(tree->count, sizeof *stack);
    size_t waiting = 1;
    unsigned rows = 0;
    while (waiting > 0) {
        uint32_t index = stack[--waiting];
        double left = lefts[index], width = (double)picture->widths[index] / all;
        print_frame(picture, index, left, width, depths[index]);
        rows = depths[index] + 1 > rows ? depths[index] + 1 : rows;
        for (uint32_t child = tree->nodes[index].child; child != 0; child = tree->nodes[child].sibling) {
            double child_width = (double)picture->widths[child] / all;
            lefts[child] = left;
            depths[child] = depths[index] + 1;
            left += child_width;
            if (child_width >= picture->smallest)
                stack[waiting++] = child;
        }
    }
    free(lefts);
    free(depths);
    free(stack);
    return rows;
}

static unsigned count_rows(const struct picture *picture)
{
    const struct cli_calltree *tree = picture->tree;
    unsigned *depths = cli_allocate(tree->count, sizeof *depths), rows = 1;
    double all = picture->widths[0] > 0 ? (double)picture->widths[0] : 1;
    for (size_t i = 1; i < tree->count; i++) {
        depths[i] = depths[tree->nodes[i].parent] + 1;
        if ((double)picture->widths[i] / all >= picture->smallest && depths[i] + 1 > rows)
            rows = depths[i] + 1;
    }
    free(depths);
    return rows;
}

static void print_picture(struct picture *picture, const char *title)
{
    unsigned height = ABOVE + count_rows(picture) * ROW + BELOW;
    FILE *file = picture->file;
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" width=\"%d\" height=\"%u\" "
            "data-width=\"%d\" data-row=\"%d\">\n<title>",
            WIDTH, height, WIDTH, height, WIDTH, ROW);
    print_xml(file, title);
    fputs("</title>\n<style>\n"
          "text { font: 12px Verdana, DejaVu Sans, sans-serif; fill: #111; pointer-events: none }\n"
          "#heading { font-size: 16px } #detail { fill: #444 } #found { fill: #a020a0 }\n"
          "g.f text { font: 11px Verdana, DejaVu Sans, sans-serif } g.f { cursor: pointer }\n"
          "g.f:hover rect { stroke: #000; stroke-width: 0.7 } g.f.above { opacity: 0.55 }\n"
          ".searching g.f:not(.hit) { opacity: 0.35 } .searching g.hit rect { fill: #c36be8 }\n"
          "#reset text { pointer-events: auto; cursor: pointer; fill: #0645ad }\n"
          "#search { width: 190px; font: 12px sans-serif; box-sizing: border-box }\n"
          "</style>\n"
          "<rect width=\"100%\" height=\"100%\" fill=\"#fdfcfa\"/>\n"
          "<text id=\"heading\" x=\"8\" y=\"24\">",
          file);
    print_xml(file, title);
    fprintf(file, "</text>\n<text id=\"detail\" x=\"8\" y=\"50\">%s</text>\n",
            picture->is_difference ? "red grew, blue shrank, pale hardly changed; as wide as the larger of both"
                                   : "a click zooms in, the pointer shows the numbers");
    fputs("<g id=\"reset\" style=\"display:none\"><text x=\"800\" y=\"24\">whole picture</text></g>\n"
          "<text id=\"found\" x=\"900\" y=\"24\"></text>\n"
          "<foreignObject x=\"1002\" y=\"8\" width=\"192\" height=\"26\"><input xmlns=\"http://www.w3.org/1999/xhtml\" "
          "id=\"search\" placeholder=\"search: a pattern\"/></foreignObject>\n",
          file);
    print_frames(picture);
    fprintf(file, "<script><![CDATA[\n%s]]></script>\n</svg>\n", cli_flame_script);
}

/* ---- the command ---- */

static char *make_title(const struct picture *picture, const struct cli_options *options)
{
    static const char *const what[] = {
        [TA_ORDER_DEFAULT] = "live bytes",
        [TA_ORDER_COUNT] = "live blocks",
        [TA_ORDER_ALLOCATED_SIZE] = "bytes allocated",
        [TA_ORDER_ALLOCATED_COUNT] = "allocations",
        [TA_ORDER_TEMPORARY] = "blocks that came and went",
        [TA_ORDER_PEAK] = "bytes at the peak",
    };
    const struct cli_node *root = &picture->tree->nodes[0];
    char value[32], change[32];
    if (options->title != NULL)
        return cli_text("%s", options->title);
    value_text(picture, root->value, 0, value, sizeof value);
    value_text(picture, root->value - root->old_value, 1, change, sizeof change);
    if (picture->is_difference)
        return cli_text("%s against %s: %s, %s (%s)", cli_base_name(options->operands[0]),
                        cli_base_name(options->operands[1]), what[picture->order], value, change);
    return cli_text("%s: %s, %s", cli_base_name(options->operands[0]), what[picture->order], value);
}

static int add_file(struct cli_calltree *tree, const char *path, const struct cli_options *options, int is_old)
{
    struct ta_snapshot *snapshot = cli_load_filtered(path, options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    int status = CLI_OK;
    enum cli_direction direction = options->bottom_up ? CLI_FROM_LEAVES : CLI_TOP_DOWN;
    if (cli_calltree_add(tree, snapshot, options->order, direction, is_old) != 0)
        status = cli_library_error(path);
    ta_snapshot_free(snapshot);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_flame, CLI_OUTPUT | CLI_SORT | CLI_FILTERS | CLI_BOTTOM_UP | CLI_TITLE | CLI_MINIMUM,
                  1, 2, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.order > TA_ORDER_PEAK)
        return cli_error(
            "flame: --sort %s: for two files the colours tell what grew; choose live, count, total, calls, "
            "temporary or peak",
            options.sort);
    struct cli_calltree tree = {0};
    struct cli_output output;
    int status = add_file(&tree, options.operands[0], &options, 0);
    if (status == CLI_OK && options.operand_count == 2)
        status = add_file(&tree, options.operands[1], &options, 1);
    if (status == CLI_OK)
        status = cli_output_open(&output, options.output);
    if (status == CLI_OK) {
        struct picture picture = {
            .file = output.file,
            .tree = &tree,
            .order = options.order,
            .is_difference = options.operand_count == 2,
            .is_bytes = options.order == TA_ORDER_DEFAULT || options.order == TA_ORDER_ALLOCATED_SIZE ||
                        options.order == TA_ORDER_PEAK,
            .smallest = options.minimum >= 0 ? options.minimum / 100 : NARROW / WIDTH,
        };
        cli_calltree_sort(&tree);
        measure(&picture);
        char *title = make_title(&picture, &options);
        print_picture(&picture, title);
        free(title);
        free(picture.widths);
        status = cli_output_close(&output, CLI_OK);
    }
    cli_calltree_free(&tree);
    return status;
}

const struct cli_command cli_flame = {
    .name = "flame",
    .arguments = "FILE[@ENTRY] [OLD[@ENTRY]] [-o OUT.svg] [--sort ORDER] [--where FILTER]",
    .summary = "draw a flame graph (SVG) for a browser; with two files one of the differences",
    .help = "  -o FILE          the picture; standard output unless given\n"
            "  --sort ORDER     what the widths are: live (default), count, total, calls, temporary or peak\n"
            "  --bottom-up      begin with the functions that asked for the memory\n"
            "  --min PERCENT    leave out what is narrower: 0.02 unless given\n"
            "  --title TEXT     the heading\n"
            "  --where FILTER   only traces for which the filter holds (docs/filters.md)\n"
            "  --spec FILE      only traces that a JSON list of filters keeps\n"
            "\n"
            "In the browser: a click zooms, the field searches, Esc shows the whole picture again.\n"
            "\n"
            "  tracealloc flame server.ta server.ta@0 -o growth.svg\n",
    .run = run,
};
