/* calltree.c: see calltree.h. Names are interned: two snapshots keep one name at two places. */
#include "analysis/cli/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/names.h"

const char *cli_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* ---- the tree ---- */

static uint64_t mix(uint64_t value)
{
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ (value >> 32);
}

static size_t slot_of(const struct cli_calltree *tree, uint32_t parent, const char *name)
{
    size_t at = mix(mix(parent + UINT64_C(1)) ^ (uintptr_t)name) % tree->slot_count;
    for (; tree->slots[at] != 0; at = (at + 1) % tree->slot_count) {
        const struct cli_node *node = &tree->nodes[tree->slots[at] - 1];
        if (node->parent == parent && node->name == name)
            break;
    }
    return at;
}

static void grow(struct cli_calltree *tree)
{
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity * 2 + 1024;
        tree->nodes = cli_enlarge(tree->nodes, tree->capacity, sizeof *tree->nodes);
    }
    if (2 * tree->count < tree->slot_count)
        return;
    free(tree->slots);
    tree->slot_count = tree->slot_count * 2 + 4096;
    tree->slots = cli_allocate(tree->slot_count, sizeof *tree->slots);
    for (uint32_t i = 1; i < tree->count; i++)
        tree->slots[slot_of(tree, tree->nodes[i].parent, tree->nodes[i].name)] = i + 1;
}

static uint32_t child_of(struct cli_calltree *tree, uint32_t parent, const char *name, const struct ta_frame *frame)
{
    size_t slot = slot_of(tree, parent, name);
    if (tree->slots[slot] != 0)
        return tree->slots[slot] - 1;
    uint32_t index = (uint32_t)tree->count++;
    tree->nodes[index] = (struct cli_node){
        .name = name,
        .file = frame->lineno > 0 ? cli_intern(tree->names, frame->filename) : "",
        .module = cli_intern(tree->names, frame->module),
        .line = frame->lineno,
        .parent = parent,
        .sibling = tree->nodes[parent].child,
    };
    tree->nodes[parent].child = index;
    tree->slots[slot] = index + 1;
    grow(tree);
    return index;
}

static void begin(struct cli_calltree *tree)
{
    if (tree->names != NULL)
        return;
    tree->names = cli_names_new();
    grow(tree);
    tree->nodes[tree->count++] = (struct cli_node){.name = "all", .file = "", .module = ""};
}

static const char *name_of(struct cli_calltree *tree, const struct ta_frame *frame)
{
    if (*frame->function != '\0')
        return cli_intern(tree->names, frame->function);
    if (*frame->module == '\0') {
        char *place = frame->lineno > 0 ? cli_text("%s:%u", cli_base_name(frame->filename), frame->lineno)
                                        : cli_text("%s", frame->filename);
        const char *name = cli_intern_text(tree->names, place);
        free(place);
        return name;
    }
    return cli_intern(tree->names, cli_base_name(frame->module));
}

static uint64_t trace_value(const struct ta_trace *trace, enum ta_order order)
{
    const struct ta_statistic statistic = {.size = trace->size,
                                           .count = trace->count,
                                           .allocated_size = trace->allocated_bytes,
                                           .allocated_count = trace->allocated_blocks,
                                           .peak_size = trace->peak_bytes};
    return cli_value(&statistic, order);
}

static void add_value(struct cli_node *node, uint64_t value, uint64_t count, int is_old)
{
    int64_t *sum = is_old ? &node->old_value : &node->value;
    if (value > (uint64_t)INT64_MAX || __builtin_add_overflow(*sum, (int64_t)value, sum))
        *sum = INT64_MAX;
    node->count += is_old ? 0 : count;
}

static int add_all(struct cli_calltree *tree, struct ta_snapshot *snapshot, enum ta_order order,
                   enum cli_direction direction, int is_old)
{
    long traces = ta_snapshot_trace_count(snapshot);
    struct ta_frame *frames = NULL;
    size_t room = 0;
    if (traces < 0)
        return -1;
    if (cli_order_wants_gone(order))
        traces += ta_snapshot_gone_trace_count(snapshot);
    begin(tree);
    for (long i = 0; i < traces; i++) {
        struct ta_trace trace;
        if (i % 1024 == 0)
            cli_progress_set(NULL, (size_t)i, (size_t)traces);
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) != 0)
            continue;
        uint64_t value = trace_value(&trace, order);
        if (value == 0)
            continue;
        struct ta_traceback traceback = ta_snapshot_trace_traceback(snapshot, (size_t)i);
        size_t count = cli_frames(traceback, &frames, &room);
        uint32_t node = 0;
        add_value(&tree->nodes[0], value, trace.count, is_old);
        for (size_t f = 0; f < count; f++) {
            const struct ta_frame *frame = &frames[direction == CLI_TOP_DOWN ? f : count - 1 - f];
            node = child_of(tree, node, name_of(tree, frame), frame);
            add_value(&tree->nodes[node], value, trace.count, is_old);
        }
    }
    free(frames);
    cli_names_forget_sources(tree->names);
    return 0;
}

int cli_calltree_add(struct cli_calltree *tree, struct ta_snapshot *snapshot, enum ta_order order,
                     enum cli_direction direction, int is_old)
{
    cli_progress_begin("adding up the stacks");
    int result = add_all(tree, snapshot, order, direction, is_old);
    cli_progress_end();
    return result;
}

static const struct cli_node *sorted_nodes;

static int by_value(const void *a, const void *b)
{
    const struct cli_node *x = &sorted_nodes[*(const uint32_t *)a], *y = &sorted_nodes[*(const uint32_t *)b];
    int64_t x_value = x->value > x->old_value ? x->value : x->old_value;
    int64_t y_value = y->value > y->old_value ? y->value : y->old_value;
    if (x_value != y_value)
        return x_value < y_value ? 1 : -1;
    return strcmp(x->name, y->name);
}

void cli_calltree_sort(struct cli_calltree *tree)
{
    uint32_t *children = cli_allocate(tree->count, sizeof *children);
    sorted_nodes = tree->nodes;
    for (size_t i = 0; i < tree->count; i++) {
        size_t count = 0;
        for (uint32_t child = tree->nodes[i].child; child != 0; child = tree->nodes[child].sibling)
            children[count++] = child;
        qsort(children, count, sizeof *children, by_value);
        uint32_t *link = &tree->nodes[i].child;
        for (size_t c = 0; c < count; c++) {
            *link = children[c];
            link = &tree->nodes[children[c]].sibling;
        }
        *link = 0;
    }
    free(children);
}

void cli_calltree_free(struct cli_calltree *tree)
{
    if (tree->names != NULL) {
        cli_names_free(tree->names);
    }
    free(tree->nodes);
    free(tree->slots);
    *tree = (struct cli_calltree){0};
}
