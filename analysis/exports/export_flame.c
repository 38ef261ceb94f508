/* export_flame.c: a calling tree as a picture (SVG) for any browser: outermost calls at the top, width is memory, colours
 * are modules or domains. With two snapshots the colour tells what grew and what shrank. It holds two views of the same
 * tree where recursion makes a difference: folded, and call by call. Needs no network and no other file; without its
 * script, as in a page that shows it as an image, the first view stands as it is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/calltree/calltree.h"
#include "analysis/code_points.h"
#include "analysis/exports/flame_colors.h"
#include "analysis/exports/flame_script.h"
#include "analysis/size_text.h"
#include "analysis/text_output.h"

#define WIDTH  1200
#define ROW    18
#define ABOVE  88 /* title, search, details, legend */
#define BELOW  10
#define CELL   7    /* of a label, about */
#define LEAST  3    /* cells that are worth a label */
#define NARROW 0.25 /* pixels: what is narrower is not drawn; a zoom of 400 makes it 100 */

struct view {
    const struct ta_calltree *tree;
    int64_t *widths; /* by node: at least its value, at least its children's together */
    double *lefts;   /* by node, in shares of the whole; < 0 = not drawn */
};

struct picture {
    struct ta__output output;
    struct ta__text *text; /* the output's */
    struct view views[2];  /* the first is shown */
    size_t view_count;
    struct ta__flame_groups groups[TA__FLAME_KINDS];
    int is_difference;
    double smallest;
};

/* ---- text ---- */

/* Characters that XML does not allow become '?'. */
static void add_xml(struct ta__text *text, const char *string)
{
    for (const char *at = string, *end = string + strlen(string); at < end;) {
        const char *point = at;
        uint32_t value = ta__next_code_point(&at, end);
        if (value == '&' || value == '<' || value == '>' || value == '"')
            ta__text_add_format(text, "&#%u;", value);
        else if ((value < 0x20 && value != '\n') || value == 0x7F || (value >= 0xDC80 && value <= 0xDCFF))
            ta__text_add(text, "?", 1);
        else
            ta__text_add(text, point, (size_t)(at - point));
    }
}

/* A number that is not negative, in any locale. */
static void add_decimal(struct ta__text *text, double value, unsigned decimals)
{
    uint64_t unit = 1;
    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    uint64_t scaled = (uint64_t)(value * (double)unit + 0.5);
    ta__text_add_format(text, "%" PRIu64 ".%0*" PRIu64, scaled / unit, (int)decimals, scaled % unit);
}

static void add_value(struct picture *picture, int64_t value, int sign)
{
    if (ta__order_is_bytes(picture->views[0].tree->order))
        ta__size_text_add(picture->text, (double)value, sign);
    else
        ta__text_add_format(picture->text, sign ? "%+" PRId64 : "%" PRId64, value);
}

static void add_times(struct ta__text *text, const struct ta_calltree_node *node)
{
    if (node->times > 1 && node->circle > 1)
        ta__text_add_format(text, " (%u calls ×%u)", node->circle, node->times);
    else if (node->times > 1)
        ta__text_add_format(text, " ×%u", node->times);
}

/* The short name in so many cells, as the script cuts it: where no script runs nobody else does. */
static void add_label(struct picture *picture, const struct ta_calltree_node *node, size_t room)
{
    struct ta__text label = {0};
    char name[512];
    size_t points = 0, end = 0;
    ta_function_text(node->name, name, sizeof name);
    ta__text_add_string(&label, name);
    add_times(&label, node);
    for (size_t i = 0; i < label.length && !label.failed; i++) {
        if (((unsigned char)label.bytes[i] & 0xC0) == 0x80)
            continue;
        if (points++ + 2 == room)
            end = i;
    }
    if (!label.failed && points > room && room >= LEAST) {
        label.bytes[end] = '\0';
        add_xml(picture->text, label.bytes);
        ta__text_add(picture->text, "..", 2);
    } else if (!label.failed && points <= room) {
        add_xml(picture->text, label.bytes);
    }
    picture->text->failed |= label.failed;
    ta__text_free(&label);
}

/* ---- frames ---- */

static void add_details(struct picture *picture, const struct view *view, const struct ta_calltree_node *node)
{
    int64_t all = view->tree->nodes[0].value;
    struct ta__text *text = picture->text;
    add_xml(text, node->name);
    add_times(text, node);
    ta__text_add(text, "\n", 1);
    add_value(picture, node->value, 0);
    ta__text_add(text, " (", 2);
    add_decimal(text, all > 0 ? 100 * (double)node->value / (double)all : 0, 1);
    ta__text_add(text, "%)", 2);
    if (picture->is_difference) {
        ta__text_add(text, ", ", 2);
        add_value(picture, node->value - node->old_value, 1);
    }
    ta__text_add_format(text, ", %" PRIu64 " live block%s", node->count, ta__s(node->count));
    if (*node->file != '\0' || *node->module != '\0') {
        ta__text_add(text, "\n", 1);
        add_xml(text, *node->file != '\0' ? node->file : node->module);
        if (*node->file != '\0')
            ta__text_add_format(text, ":%u", node->line);
    }
    if (picture->groups[TA__FLAME_DOMAINS].count > 1) {
        ta__text_add(text, "\n", 1);
        add_xml(text, *node->domain != '\0' ? node->domain : "several domains");
    }
}

static void add_colors(struct picture *picture, const struct ta_calltree_node *node)
{
    struct ta__text *text = picture->text;
    unsigned module = ta__flame_color_of(&picture->groups[TA__FLAME_MODULES], node->module);
    if (picture->is_difference) {
        ta__flame_add_difference(text, node);
        return;
    }
    ta__flame_add_color(text, module, node->name);
    ta__text_add_format(text, "\" data-c=\"%u", module);
    if (picture->groups[TA__FLAME_DOMAINS].count > 1)
        ta__text_add_format(text, ",%u", ta__flame_color_of(&picture->groups[TA__FLAME_DOMAINS], node->domain));
}

static void add_frame(struct picture *picture, const struct view *view, const struct ta_calltree_node *node,
                      double left, double width)
{
    struct ta__text *text = picture->text;
    unsigned y = ABOVE + node->depth * ROW;
    ta__text_add_string(text, "<g class=\"f\" data-x=\"");
    add_decimal(text, left, 9);
    ta__text_add_string(text, "\" data-w=\"");
    add_decimal(text, width, 9);
    ta__text_add_format(text, "\" data-d=\"%u\" data-n=\"", node->depth);
    add_label(picture, node, SIZE_MAX);
    ta__text_add_string(text, "\"><title>");
    add_details(picture, view, node);
    ta__text_add_string(text, "</title><rect x=\"");
    add_decimal(text, left * WIDTH, 2);
    ta__text_add_format(text, "\" y=\"%u\" width=\"", y);
    add_decimal(text, width * WIDTH, 2);
    ta__text_add_format(text, "\" height=\"%d\" fill=\"", ROW - 1);
    add_colors(picture, node);
    ta__text_add_string(text, "\"/><text x=\"");
    add_decimal(text, left * WIDTH + 3, 2);
    ta__text_add_format(text, "\" y=\"%u\">", y + 13);
    add_label(picture, node, width * WIDTH > 6 ? (size_t)((width * WIDTH - 6) / CELL) : 0);
    ta__output_add_string(&picture->output, "</text></g>\n");
}

static double share(const struct view *view, size_t index)
{
    return view->widths[0] > 0 ? (double)view->widths[index] / (double)view->widths[0] : 0;
}

/* Parents come before their children, so one pass from the end gives widths, and one from the start places. */
static int measure(struct picture *picture, struct view *view, const struct ta_calltree *tree)
{
    view->tree = tree;
    view->widths = ta__new_array(tree->count, sizeof *view->widths);
    view->lefts = ta__new_array(tree->count, sizeof *view->lefts);
    if (view->widths == NULL || view->lefts == NULL)
        return -1;
    for (size_t i = tree->count; i-- > 0;) {
        const struct ta_calltree_node *node = &tree->nodes[i];
        int64_t own = node->value > node->old_value ? node->value : node->old_value;
        if (view->widths[i] < own)
            view->widths[i] = own;
        if (i > 0 && __builtin_add_overflow(view->widths[node->parent], view->widths[i], &view->widths[node->parent]))
            view->widths[node->parent] = INT64_MAX;
    }
    for (size_t i = 0; i < tree->count; i++) {
        double left = view->lefts[i];
        for (uint32_t child = tree->nodes[i].child; child != 0; child = tree->nodes[child].sibling) {
            int is_drawn = left >= 0 && share(view, child) >= picture->smallest;
            view->lefts[child] = is_drawn ? left : -1;
            left += left >= 0 ? share(view, child) : 0;
        }
    }
    return 0;
}

static int find_groups(struct picture *picture)
{
    const struct view *view = &picture->views[picture->view_count - 1];
    for (int kind = 0; kind < TA__FLAME_KINDS; kind++) {
        struct ta__flame_groups *groups = &picture->groups[kind];
        for (size_t i = 1; i < view->tree->count; i++)
            if (view->lefts[i] >= 0 &&
                ta__flame_groups_add(groups, ta__flame_group_of(&view->tree->nodes[i], (enum ta__flame_kind)kind),
                                     share(view, i)) != 0)
                return -1;
        if (ta__flame_groups_sort(groups) != 0)
            return -1;
    }
    return 0;
}

static unsigned count_rows(const struct view *view)
{
    unsigned rows = 1;
    for (size_t i = 1; i < view->tree->count; i++)
        if (view->lefts[i] >= 0 && view->tree->nodes[i].depth >= rows)
            rows = view->tree->nodes[i].depth + 1;
    return rows;
}

static int has_recursion(const struct ta_calltree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].times > 1)
            return 1;
    return 0;
}

/* ---- the picture ---- */

static void add_title(struct picture *picture, const char *title)
{
    const struct ta_calltree *tree = picture->views[0].tree;
    if (title != NULL) {
        add_xml(picture->text, title);
        return;
    }
    ta__text_add_format(picture->text, "%s, ", ta__order_words(tree->order));
    add_value(picture, tree->nodes[0].value, 0);
    if (picture->is_difference) {
        ta__text_add(picture->text, " (", 2);
        add_value(picture, tree->nodes[0].value - tree->nodes[0].old_value, 1);
        ta__text_add(picture->text, ")", 1);
    }
}

static void add_style(struct ta__text *text)
{
    ta__text_add_string(text, "<style>\n"
                              "text { font: 12px Verdana, DejaVu Sans, sans-serif; fill: #111; pointer-events: none }\n"
                              "#heading { font-size: 16px } #detail { fill: #444 } #found { fill: #a020a0 }\n"
                              "g.f text { font: 11px Verdana, DejaVu Sans, sans-serif } g.f { cursor: pointer }\n"
                              "g.f:hover rect { stroke: #000; stroke-width: 0.7 } g.f.above { opacity: 0.55 }\n"
                              ".searching g.f:not(.hit) { opacity: 0.35 } .searching g.hit rect { fill: #c36be8 }\n"
                              "g.link text { pointer-events: auto; cursor: pointer; fill: #0645ad }\n"
                              "#search { width: 190px; font: 12px sans-serif; box-sizing: border-box }\n"
                              "</style>\n");
}

/* The boxes of one kind of groups, in a row; "others" where not all have a colour. */
static void add_legend(struct picture *picture, enum ta__flame_kind kind)
{
    static const char *const ids[] = {[TA__FLAME_MODULES] = "modules", [TA__FLAME_DOMAINS] = "domains"};
    const struct ta__flame_groups *groups = &picture->groups[kind];
    struct ta__text *text = picture->text;
    unsigned x = 8;
    ta__text_add_format(text, "<g id=\"%s\"%s>", ids[kind], kind == TA__FLAME_MODULES ? "" : " style=\"display:none\"");
    for (size_t i = 0; i < groups->count && i <= TA__FLAME_COLORS; i++) {
        const char *name = groups->items[i].name, *slash = strrchr(name, '/');
        name = i == TA__FLAME_COLORS ? "others" : slash != NULL && slash[1] != '\0' ? slash + 1 : name;
        ta__text_add_format(text, "<rect x=\"%u\" y=\"64\" width=\"11\" height=\"11\" fill=\"", x);
        ta__flame_add_color(text, (unsigned)i, "");
        ta__text_add_format(text, "\"/><text x=\"%u\" y=\"74\">", x + 15);
        add_xml(text, name);
        ta__text_add_string(text, "</text>");
        x += 34 + 7 * (unsigned)strlen(name);
    }
    ta__text_add_string(text, "</g>\n");
}

static void add_links(struct picture *picture)
{
    struct ta__text *text = picture->text;
    ta__text_add_string(text, "<g id=\"right\">"
                              "<g id=\"reset\" class=\"link\" style=\"display:none\"><text x=\"800\" y=\"24\">whole "
                              "picture</text></g>");
    if (picture->view_count > 1)
        ta__text_add_string(text,
                            "<g id=\"fold\" class=\"link\"><text x=\"1002\" y=\"50\">recursion: folded</text></g>");
    if (!picture->is_difference && picture->groups[TA__FLAME_DOMAINS].count > 1)
        ta__text_add_string(text,
                            "<g id=\"color\" class=\"link\"><text x=\"1002\" y=\"74\">colours: modules</text></g>");
    ta__text_add_string(text, "<text id=\"found\" x=\"900\" y=\"24\"></text>\n"
                              "<foreignObject x=\"1002\" y=\"8\" width=\"192\" height=\"26\"><input "
                              "xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" placeholder=\"search: a pattern\"/>"
                              "</foreignObject></g>\n");
}

static void add_head(struct picture *picture, const char *title)
{
    unsigned height = ABOVE + count_rows(&picture->views[0]) * ROW + BELOW;
    struct ta__text *text = picture->text;
    ta__text_add_string(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    ta__text_add_format(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" ", WIDTH, height);
    ta__text_add_format(text,
                        "width=\"%d\" height=\"%u\" data-width=\"%d\" data-row=\"%d\" data-above=\"%d\">\n<title>",
                        WIDTH, height, WIDTH, ROW, ABOVE);
    add_title(picture, title);
    ta__text_add_string(text, "</title>\n");
    add_style(text);
    ta__text_add_string(text, "<rect width=\"100%\" height=\"100%\" fill=\"#fdfcfa\"/>\n"
                              "<text id=\"heading\" x=\"8\" y=\"24\">");
    add_title(picture, title);
    ta__text_add_string(text, "</text>\n<text id=\"detail\" x=\"8\" y=\"50\">");
    ta__text_add_string(text, picture->is_difference
                                  ? "red grew, blue shrank, pale hardly changed; as wide as the larger of both"
                                  : "a click zooms in, the pointer shows the numbers");
    ta__text_add_string(text, "</text>\n");
    for (int kind = 0; kind < TA__FLAME_KINDS && !picture->is_difference; kind++)
        add_legend(picture, (enum ta__flame_kind)kind);
    add_links(picture);
}

static void add_view(struct picture *picture, size_t index)
{
    const struct view *view = &picture->views[index];
    ta__output_add_string(&picture->output,
                          index == 0 ? "<g class=\"view\">\n" : "<g class=\"view\" style=\"display:none\">\n");
    for (size_t i = 0; i < view->tree->count && !picture->output.failed; i++)
        if (view->lefts[i] >= 0)
            add_frame(picture, view, &view->tree->nodes[i], view->lefts[i], share(view, i));
    ta__output_add_string(&picture->output, "</g>\n");
}

static int prepare(struct picture *picture, const struct ta_calltree *tree, const struct ta_calltree *folded)
{
    picture->text = &picture->output.pending;
    picture->is_difference = tree->has_old;
    if (folded != NULL && has_recursion(folded) &&
        measure(picture, &picture->views[picture->view_count++], folded) != 0)
        return -1;
    if (measure(picture, &picture->views[picture->view_count++], tree) != 0)
        return -1;
    return find_groups(picture);
}

int ta_calltree_export_flame(const struct ta_calltree *tree, const struct ta_flame_options *given, size_t size,
                             ta_write_function write, void *user)
{
    struct ta_flame_options options = {0};
    if (given != NULL)
        memcpy(&options, given, size < sizeof options ? size : sizeof options);
    struct picture picture = {.output = {.write = write, .user = user},
                              .smallest = options.minimum == 0 ? NARROW / WIDTH : options.minimum};
    int status = prepare(&picture, tree, options.folded);
    if (status == 0) {
        add_head(&picture, options.title);
        for (size_t i = 0; i < picture.view_count; i++)
            add_view(&picture, i);
        ta__output_add_string(&picture.output, "<script><![CDATA[\n");
        ta__output_add_string(&picture.output, ta__flame_script);
        ta__output_add_string(&picture.output, "]]></script>\n</svg>\n");
    }
    for (size_t i = 0; i < 2; i++) {
        free(picture.views[i].widths);
        free(picture.views[i].lefts);
    }
    for (size_t i = 0; i < TA__FLAME_KINDS; i++)
        ta__flame_groups_free(&picture.groups[i]);
    return ta__output_finish(&picture.output) == 0 && status == 0 ? 0 : -1;
}
