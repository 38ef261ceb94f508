/* calltree.c: see calltree.h. Names are interned because two snapshots, and inlined copies, spell them apart. */
#include "analysis/cli/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"

const char *cli_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* ---- names ---- */

/* From texts to one copy each; and from the library's own pointers straight there, which is the usual case. */
struct cli_names {
    struct cli_name {
        const char *source;
        char *text;
    } * slots;
    size_t count, capacity;
    char **texts;
    size_t text_count, text_capacity;
    uint32_t *text_slots;
    size_t text_slot_count;
};

static uint64_t mix(uint64_t value)
{
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ (value >> 29);
}

static uint64_t text_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return mix(hash);
}

static char *intern_text(struct cli_names *names, const char *text)
{
    if (2 * names->text_count >= names->text_slot_count) {
        free(names->text_slots);
        names->text_slot_count = names->text_slot_count * 2 + 1024;
        names->text_slots = cli_allocate(names->text_slot_count, sizeof *names->text_slots);
        for (size_t i = 0; i < names->text_count; i++) {
            size_t at = text_hash(names->texts[i]) % names->text_slot_count;
            while (names->text_slots[at] != 0)
                at = (at + 1) % names->text_slot_count;
            names->text_slots[at] = (uint32_t)i + 1;
        }
    }
    size_t at = text_hash(text) % names->text_slot_count;
    for (; names->text_slots[at] != 0; at = (at + 1) % names->text_slot_count)
        if (strcmp(names->texts[names->text_slots[at] - 1], text) == 0)
            return names->texts[names->text_slots[at] - 1];
    if (names->text_count == names->text_capacity) {
        names->text_capacity = names->text_capacity * 2 + 256;
        names->texts = cli_enlarge(names->texts, names->text_capacity, sizeof *names->texts);
    }
    names->texts[names->text_count++] = cli_text("%s", text);
    names->text_slots[at] = (uint32_t)names->text_count;
    return names->texts[names->text_count - 1];
}

static const char *intern(struct cli_names *names, const char *source)
{
    if (2 * names->count >= names->capacity) {
        struct cli_name *old = names->slots;
        size_t old_capacity = names->capacity;
        names->capacity = names->capacity * 2 + 1024;
        names->slots = cli_allocate(names->capacity, sizeof *names->slots);
        for (size_t i = 0; i < old_capacity; i++) {
            if (old[i].source == NULL)
                continue;
            size_t at = mix((uintptr_t)old[i].source) % names->capacity;
            while (names->slots[at].source != NULL)
                at = (at + 1) % names->capacity;
            names->slots[at] = old[i];
        }
        free(old);
    }
    size_t at = mix((uintptr_t)source) % names->capacity;
    for (; names->slots[at].source != NULL; at = (at + 1) % names->capacity)
        if (names->slots[at].source == source)
            return names->slots[at].text;
    names->slots[at] = (struct cli_name){source, intern_text(names, source)};
    names->count++;
    return names->slots[at].text;
}

/* The library's pointers hold for one snapshot; what was interned stays. */
static void forget_sources(struct cli_names *names)
{
    free(names->slots);
    names->slots = NULL;
    names->count = names->capacity = 0;
}

/* ---- the tree ---- */

static size_t slot_of(const struct cli_calltree *tree, uint32_t parent, const char *name)
{
    size_t at = mix(((uint64_t)parent << 44) ^ (uintptr_t)name) % tree->slot_count;
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
        .file = frame->lineno > 0 ? intern(tree->names, frame->filename) : "",
        .module = intern(tree->names, frame->module),
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
    tree->names = cli_allocate(1, sizeof *tree->names);
    grow(tree);
    tree->nodes[tree->count++] = (struct cli_node){.name = "all", .file = "", .module = ""};
}

static const char *name_of(struct cli_calltree *tree, const struct ta_frame *frame)
{
    if (*frame->function != '\0')
        return intern(tree->names, frame->function);
    if (*frame->module == '\0')
        return intern(tree->names, frame->filename);
    return intern(tree->names, cli_base_name(frame->module));
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

int cli_calltree_add(struct cli_calltree *tree, struct ta_snapshot *snapshot, enum ta_order order,
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
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) != 0)
            continue;
        uint64_t value = trace_value(&trace, order);
        if (value == 0)
            continue;
        struct ta_traceback traceback = ta_snapshot_trace_traceback(snapshot, (size_t)i);
        size_t count = ta_traceback_frames(traceback, frames, room);
        if (count > room) {
            room = 2 * count;
            frames = cli_enlarge(frames, room, sizeof *frames);
            ta_traceback_frames(traceback, frames, room);
        }
        uint32_t node = 0;
        add_value(&tree->nodes[0], value, trace.count, is_old);
        for (size_t f = 0; f < count; f++) {
            const struct ta_frame *frame = &frames[direction == CLI_TOP_DOWN ? f : count - 1 - f];
            node = child_of(tree, node, name_of(tree, frame), frame);
            add_value(&tree->nodes[node], value, trace.count, is_old);
        }
    }
    free(frames);
    forget_sources(tree->names);
    return 0;
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
        forget_sources(tree->names);
        for (size_t i = 0; i < tree->names->text_count; i++)
            free(tree->names->texts[i]);
        free(tree->names->texts);
        free(tree->names->text_slots);
        free(tree->names);
    }
    free(tree->nodes);
    free(tree->slots);
    *tree = (struct cli_calltree){0};
}
