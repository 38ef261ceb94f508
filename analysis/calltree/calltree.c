/* calltree.c: see calltree.h. Stacks are never expanded one by one where contexts do: top down each context of the model
 * becomes a node once. Traces are added to the node that their stack ends at, and at last each node gets what is below it.
 *
 * Folding goes back instead of down: where a function, or a circle of a few, comes again right below itself, the stack
 * goes on at the node that it has been at before. */
#include "analysis/calltree/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "analysis/model.h"
#include "analysis/own/own_keys.h"
#include "analysis/own/own_rules.h"
#include "base/bytes.h"
#include "base/hash.h"

enum { NODES_MAX = 1 << 26 }; /* a picture of more helps nobody; a damaged file may ask for it */

#define CIRCLE_MAX 12 /* functions that call each other in a circle */

struct sum {
    int64_t value;
    uint64_t count;
    const char *domain; /* NULL = none yet; "" = several */
};

/* Where a stack has come to. */
struct step {
    uint32_t node;
    uint32_t folded, times; /* the node that it came back to last, and how often it has been there */
};

/* What one call of ta_calltree_add works on. */
struct addition {
    struct ta_calltree *tree;
    const struct ta__model *model;
    int is_old;
    const char **texts;      /* memo: name of the model → text of the tree */
    const char **names;      /* memo: logical frame → name of its node */
    uint32_t *nodes;         /* by context: where its traces belong */
    unsigned char *is_start; /* FOLD, by context: nothing but what starts the program or a thread */
    unsigned char *is_lined; /* OWN, by context: a line of one's own is further out */
    struct ta__own *own;     /* OWN */
    struct sum *sums;        /* by node: what traces add to it */
};

/* ---- values ---- */

int ta__order_is_bytes(enum ta_order order)
{
    return order == TA_ORDER_DEFAULT || order == TA_ORDER_ALLOCATED_SIZE || order == TA_ORDER_PEAK;
}

const char *ta__order_words(enum ta_order order)
{
    static const char *const words[] = {
        [TA_ORDER_DEFAULT] = "live bytes",
        [TA_ORDER_COUNT] = "live blocks",
        [TA_ORDER_ALLOCATED_SIZE] = "bytes allocated",
        [TA_ORDER_ALLOCATED_COUNT] = "allocations",
        [TA_ORDER_TEMPORARY] = "blocks that came and went",
        [TA_ORDER_PEAK] = "bytes at the peak",
    };
    return words[order];
}

static uint64_t value_of(const struct ta__view_trace *trace, enum ta_order order)
{
    switch (order) {
    case TA_ORDER_COUNT:
        return trace->count;
    case TA_ORDER_ALLOCATED_SIZE:
        return trace->allocated_bytes;
    case TA_ORDER_ALLOCATED_COUNT:
        return trace->allocated_blocks;
    case TA_ORDER_TEMPORARY:
        return trace->allocated_blocks > trace->count ? trace->allocated_blocks - trace->count : 0;
    case TA_ORDER_PEAK:
        return trace->peak_bytes;
    default:
        return trace->size;
    }
}

static void add_value(int64_t *sum, uint64_t value)
{
    if (value > (uint64_t)INT64_MAX || __builtin_add_overflow(*sum, (int64_t)value, sum))
        *sum = INT64_MAX;
}

/* ---- texts, each once ---- */

static uint64_t hash_of_text(const void *tree, uint32_t row)
{
    const char *text = ((const struct ta_calltree *)tree)->texts[row];
    return ta__hash_bytes(text, strlen(text));
}

static int is_same_text(const void *tree, uint32_t row, const void *wanted)
{
    return strcmp(((const struct ta_calltree *)tree)->texts[row], wanted) == 0;
}

static const char *intern(struct ta_calltree *tree, const char *text)
{
    if (ta__index_reserve(&tree->text_index, tree->text_count, hash_of_text, tree) != 0) {
        ta__fail_memory();
        return NULL;
    }
    size_t length = strlen(text);
    uint32_t *slot = ta__index_find(&tree->text_index, ta__hash_bytes(text, length), is_same_text, tree, text);
    if (*slot == 0) {
        char *copy = ta__new_array(length + 1, 1);
        if (copy == NULL ||
            ta__grow(&tree->texts, &tree->text_capacity, tree->text_count + 1, sizeof *tree->texts) != 0) {
            free(copy);
            return NULL;
        }
        memcpy(copy, text, length + 1);
        tree->texts[tree->text_count++] = copy;
        *slot = (uint32_t)tree->text_count;
    }
    return tree->texts[*slot - 1];
}

static const char *text_of(struct addition *addition, uint32_t name)
{
    if (addition->texts[name] == NULL)
        addition->texts[name] = intern(addition->tree, addition->model->names[name].text);
    return addition->texts[name];
}

/* The function; else the module; else the line. */
static const char *name_of(struct addition *addition, uint32_t logical)
{
    const struct ta__model *model = addition->model;
    const struct ta__logical *row = &model->logicals[logical];
    const struct ta__location *location = &model->locations[row->location];
    if (addition->names[logical] != NULL)
        return addition->names[logical];
    if (row->function != 0) {
        addition->names[logical] = text_of(addition, row->function);
    } else if (row->module != 0) {
        addition->names[logical] = intern(addition->tree, ta__base_name(&model->names[row->module]));
    } else if (location->line == 0) {
        addition->names[logical] = text_of(addition, location->name);
    } else {
        struct ta__text text = {0};
        ta__text_add_string(&text, ta__base_name(&model->names[location->name]));
        ta__text_add_format(&text, ":%u", location->line);
        addition->names[logical] = text.failed ? NULL : intern(addition->tree, text.bytes);
        ta__text_free(&text);
    }
    return addition->names[logical];
}

/* ---- nodes ---- */

struct child {
    uint32_t parent;
    const char *name;
};

static uint64_t hash_child(uint32_t parent, const char *name)
{
    return ta__hash_word(ta__hash_roll(parent, (uintptr_t)name));
}

/* The root is not in the index: row 0 of the index is node 1. */
static uint64_t hash_of_child(const void *tree, uint32_t row)
{
    const struct ta_calltree_node *node = &((const struct ta_calltree *)tree)->nodes[row + 1];
    return hash_child(node->parent, node->name);
}

static int is_same_child(const void *tree, uint32_t row, const void *wanted)
{
    const struct ta_calltree_node *node = &((const struct ta_calltree *)tree)->nodes[row + 1];
    const struct child *child = wanted;
    return node->parent == child->parent && node->name == child->name;
}

static int new_child(struct addition *addition, const struct child *child, uint32_t logical)
{
    struct ta_calltree *tree = addition->tree;
    const struct ta__logical *row = &addition->model->logicals[logical];
    const struct ta__location *location = &addition->model->locations[row->location];
    const char *file = location->line > 0 ? text_of(addition, location->name) : intern(tree, "");
    const char *module = text_of(addition, row->module);
    if (tree->count >= NODES_MAX)
        return ta__fail("the calling tree has more than %u nodes", NODES_MAX);
    if (file == NULL || module == NULL ||
        ta__grow(&tree->nodes, &tree->capacity, tree->count + 1, sizeof *tree->nodes) != 0)
        return -1;
    tree->nodes[tree->count++] = (struct ta_calltree_node){.name = child->name,
                                                           .file = file,
                                                           .module = module,
                                                           .line = location->line,
                                                           .depth = tree->nodes[child->parent].depth + 1,
                                                           .times = 1,
                                                           .domain = "",
                                                           .parent = child->parent};
    return 0;
}

static int is_at(const struct addition *addition, const struct ta_calltree_node *node, uint32_t logical)
{
    const struct ta__model *model = addition->model;
    const struct ta__location *location = &model->locations[model->logicals[logical].location];
    return location->line == node->line &&
           (location->line == 0 || strcmp(model->names[location->name].text, node->file) == 0);
}

/* From *node to its child of that name; `logical` says where that is. */
static int descend(struct addition *addition, uint32_t *node, const char *name, uint32_t logical)
{
    struct ta_calltree *tree = addition->tree;
    const struct child child = {*node, name};
    if (ta__index_reserve(&tree->children, tree->count - 1, hash_of_child, tree) != 0)
        return ta__fail_memory();
    uint32_t *slot = ta__index_find(&tree->children, hash_child(child.parent, child.name), is_same_child, tree, &child);
    if (*slot == 0) {
        if (new_child(addition, &child, logical) != 0)
            return -1;
        *slot = (uint32_t)tree->count - 1;
    }
    *node = *slot;
    if (!is_at(addition, &tree->nodes[*node], logical))
        tree->nodes[*node].has_other_lines = 1;
    return 0;
}

/* ---- steps of a stack ---- */

static uint32_t outwards(const struct ta_calltree *tree, uint32_t node, uint32_t steps)
{
    while (node != 0 && steps-- > 0)
        node = tree->nodes[node].parent;
    return node;
}

/* The node that a call of `name` below `node` comes back to: it closes a circle of *length calls that came right before.
 * 0 = none. */
static uint32_t came_before(const struct ta_calltree *tree, uint32_t node, const char *name, uint32_t *length)
{
    for (*length = 1; *length <= CIRCLE_MAX; ++*length) {
        uint32_t again = outwards(tree, node, *length - 1), left = node, right = outwards(tree, again, 1);
        if (again == 0)
            return 0;
        if (tree->nodes[again].name != name)
            continue;
        uint32_t equal = 1;
        while (equal < *length && right != 0 && tree->nodes[left].name == tree->nodes[right].name) {
            left = tree->nodes[left].parent;
            right = tree->nodes[right].parent;
            equal++;
        }
        if (equal == *length)
            return again;
    }
    return 0;
}

static int take_step(struct addition *addition, struct step *step, uint32_t logical)
{
    struct ta_calltree *tree = addition->tree;
    const char *name = name_of(addition, logical);
    uint32_t length = 0, again;
    if (name == NULL)
        return -1;
    if (!(tree->flags & TA_CALLTREE_FOLD) || (again = came_before(tree, step->node, name, &length)) == 0)
        return descend(addition, &step->node, name, logical);
    step->times = step->folded == again ? step->times + 1 : 2;
    step->folded = step->node = again;
    struct ta_calltree_node *node = &tree->nodes[again];
    if (node->times < step->times) {
        node->times = step->times;
        node->circle = length;
    }
    return 0;
}

/* Libraries of the system count only where no line of one's own is further out, as in rows. */
static int is_shown(const struct addition *addition, uint32_t context, uint32_t offset)
{
    if (addition->own == NULL)
        return 1;
    struct ta__logical_range range = ta__model_range(addition->model, context);
    const unsigned char *classes = addition->own->classes + range.first;
    if (classes[offset] != TA__FRAME_LIBRARY)
        return classes[offset] == TA__FRAME_OWN;
    for (uint32_t i = offset + 1; i < range.count; i++)
        if (ta__own_is_lined(addition->own, range.first + i))
            return 0;
    return !addition->is_lined[context];
}

/* The calls of one context. */
static int enter(struct addition *addition, uint32_t context, struct step *step)
{
    struct ta__logical_range range = ta__model_range(addition->model, context);
    int from_leaves = (addition->tree->flags & TA_CALLTREE_FROM_LEAVES) != 0;
    for (uint32_t i = 0; i < range.count; i++) {
        uint32_t offset = from_leaves ? i : range.count - 1 - i;
        if (is_shown(addition, context, offset) && take_step(addition, step, range.first + offset) != 0)
            return -1;
    }
    return 0;
}

/* With OWN: what the own frames called on the way to the allocator; or, where none is one's own, the row of the stack. */
static int enter_beyond_own(struct addition *addition, uint32_t context, struct step *step)
{
    const struct ta__own_choice *choice = &addition->own->contexts[context];
    const struct ta__own_key *key = &addition->own->keys[choice->key];
    if (choice->own != 0 && choice->via != 0 && !(addition->tree->flags & TA_CALLTREE_FROM_LEAVES)) {
        const char *way = name_of(addition, choice->via);
        return way == NULL ? -1 : descend(addition, &step->node, way, choice->own); /* at the line that called it */
    }
    if (key->kind != TA__OWN_KNOWN && (choice->own != 0 || step->node != 0))
        return 0;
    if (key->kind == TA__OWN_LINE || (key->kind == TA__OWN_FUNCTION && key->b != 0))
        return take_step(addition, step, key->logical);
    const char *name =
        intern(addition->tree, key->kind == TA__OWN_KNOWN ? ta__own_known_name(key->a)
                                                          : ta__base_name(&addition->model->names[key->a]));
    return name == NULL ? -1 : descend(addition, &step->node, name, 0);
}

/* ---- where stacks belong ---- */

/* What starts programs, whose outermost frame may have no name, and what starts threads. */
static void find_starts(struct addition *addition)
{
    const struct ta__model *model = addition->model;
    const struct ta__view *view = model->view;
    unsigned char *is_start = addition->is_start;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 1; i < view->context_count; i++) {
            struct ta__logical_range range = ta__model_range(model, i);
            uint32_t parent = view->contexts[i].parent;
            const struct ta__logical *outermost = &model->logicals[range.first + range.count - 1];
            int starts = outermost->function != 0 && ta__is_start_function(model->names[outermost->function].text);
            if (pass == 0 && starts && parent != 0 && view->contexts[parent].parent == 0)
                is_start[parent] = 1;
            else if (pass == 1)
                is_start[i] = parent == 0 ? is_start[i] || starts : starts && is_start[parent];
        }
}

static void find_lined(struct addition *addition)
{
    const struct ta__view *view = addition->model->view;
    for (uint32_t i = 1; i < view->context_count; i++) {
        uint32_t parent = view->contexts[i].parent;
        struct ta__logical_range range = ta__model_range(addition->model, parent);
        addition->is_lined[i] = parent != 0 && addition->is_lined[parent];
        for (uint32_t f = 0; parent != 0 && !addition->is_lined[i] && f < range.count; f++)
            addition->is_lined[i] = (unsigned char)ta__own_is_lined(addition->own, range.first + f);
    }
}

static int is_left_out(const struct addition *addition, uint32_t context)
{
    return addition->is_start != NULL && addition->is_start[context];
}

/* The end of a stack: what was left out all the way, and what is beyond the own frames. */
static int finish(struct addition *addition, uint32_t context, struct step *step)
{
    if (addition->own != NULL)
        return enter_beyond_own(addition, context, step);
    return step->node == 0 ? enter(addition, context, step) : 0;
}

static int place_top_down(struct addition *addition, const unsigned char *has_traces, unsigned char *is_reached)
{
    const struct ta__view *view = addition->model->view;
    struct step *steps = ta__new_array((size_t)view->context_count + 1, sizeof *steps);
    int status = steps == NULL ? -1 : 0;
    for (uint32_t i = view->context_count; i-- > 1;) { /* parents come first in the table */
        is_reached[i] |= has_traces[i];
        is_reached[view->contexts[i].parent] |= is_reached[i];
    }
    for (uint32_t i = 0; status == 0 && (i < view->context_count || i == 0); i++) {
        if (i > 0)
            steps[i] = steps[view->contexts[i].parent];
        const unsigned char *wanted = i == 0 ? has_traces : is_reached;
        if (!wanted[i])
            continue;
        struct step end = steps[i];
        if (i > 0 && !is_left_out(addition, i)) {
            status = enter(addition, i, &steps[i]);
            end = steps[i];
        }
        if (status == 0 && has_traces[i])
            status = finish(addition, i, &end);
        addition->nodes[i] = end.node;
    }
    free(steps);
    return status;
}

static int place_from_leaves(struct addition *addition, const unsigned char *has_traces)
{
    const struct ta__view *view = addition->model->view;
    for (uint32_t i = 0; i < view->context_count || i == 0; i++) {
        struct step step = {.node = 0};
        if (!has_traces[i])
            continue;
        for (uint32_t context = i; context != 0 && !is_left_out(addition, context);
             context = view->contexts[context].parent)
            if (enter(addition, context, &step) != 0)
                return -1;
        if (finish(addition, i, &step) != 0)
            return -1;
        addition->nodes[i] = step.node;
    }
    return 0;
}

/* ---- adding ---- */

static void join_domains(const char **domain, const char *other)
{
    *domain = *domain == NULL || *domain == other ? other : other == NULL ? *domain : "";
}

static int add_traces(struct addition *addition)
{
    struct ta_calltree *tree = addition->tree;
    const struct ta__model *model = addition->model;
    const struct ta__view *view = model->view;
    uint32_t count = view->trace_count + view->gone_trace_count;
    addition->sums = ta__new_array(tree->count, sizeof *addition->sums);
    if (addition->sums == NULL)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        const struct ta__view_trace *trace = &view->traces[i];
        uint64_t value = value_of(trace, tree->order);
        if (value == 0)
            continue;
        struct sum *sum = &addition->sums[addition->nodes[trace->context]];
        const char *domain = text_of(addition, model->domain_names[ta__model_domain(model, trace->domain)]);
        if (domain == NULL)
            return -1;
        add_value(&sum->value, value);
        sum->count += trace->count;
        join_domains(&sum->domain, domain);
    }
    return 0;
}

/* Each node is older than what is below it: one pass from the end. */
static void add_up(struct addition *addition)
{
    struct ta_calltree *tree = addition->tree;
    for (size_t i = tree->count; i-- > 0;) {
        struct sum *sum = &addition->sums[i];
        struct ta_calltree_node *node = &tree->nodes[i];
        if (i > 0 && sum->domain != NULL) {
            struct sum *parent = &addition->sums[node->parent];
            add_value(&parent->value, (uint64_t)sum->value);
            parent->count += sum->count;
            join_domains(&parent->domain, sum->domain);
        }
        add_value(addition->is_old ? &node->old_value : &node->value, (uint64_t)sum->value);
        node->count += addition->is_old ? 0 : sum->count;
        if (sum->domain != NULL)
            node->domain = *node->domain == '\0' && node->value + node->old_value == sum->value ? sum->domain
                           : node->domain == sum->domain                                        ? node->domain
                                                                                                : "";
    }
}

static int place_all(struct addition *addition)
{
    const struct ta__view *view = addition->model->view;
    size_t contexts = (size_t)view->context_count + 1;
    unsigned char *has_traces = ta__new_array(contexts, 1), *is_reached = ta__new_array(contexts, 1);
    int status = has_traces == NULL || is_reached == NULL ? -1 : 0;
    for (uint32_t i = 0; status == 0 && i < view->trace_count + view->gone_trace_count; i++)
        has_traces[view->traces[i].context] |= value_of(&view->traces[i], addition->tree->order) > 0;
    if (status == 0)
        status = addition->tree->flags & TA_CALLTREE_FROM_LEAVES ? place_from_leaves(addition, has_traces)
                                                                 : place_top_down(addition, has_traces, is_reached);
    free(has_traces);
    free(is_reached);
    return status;
}

/* What the flags ask for beyond the stacks. */
static int prepare(struct addition *addition)
{
    const struct ta__model *model = addition->model;
    size_t contexts = (size_t)model->view->context_count + 1;
    struct ta__own *tables[2];
    addition->texts = ta__new_array(model->name_count, sizeof *addition->texts);
    addition->names = ta__new_array(model->logical_count, sizeof *addition->names);
    addition->nodes = ta__new_array(contexts, sizeof *addition->nodes);
    if (addition->texts == NULL || addition->names == NULL || addition->nodes == NULL)
        return -1;
    if (addition->tree->flags & TA_CALLTREE_OWN) {
        addition->is_lined = ta__new_array(contexts, 1);
        if (addition->is_lined == NULL || ta__own_build(&model, 1, 0, tables) != 0)
            return -1;
        addition->own = tables[0];
        find_lined(addition);
    }
    if (addition->tree->flags & TA_CALLTREE_FOLD) {
        addition->is_start = ta__new_array(contexts, 1);
        if (addition->is_start == NULL)
            return -1;
        find_starts(addition);
    }
    return 0;
}

static void release(struct addition *addition)
{
    free(addition->texts);
    free(addition->names);
    free(addition->nodes);
    free(addition->is_start);
    free(addition->is_lined);
    free(addition->sums);
    ta__own_release(addition->own);
}

/* ---- the order of the drawing ---- */

struct place {
    uint32_t parent, index;
    int64_t larger;
    const char *name;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->larger != y->larger)
        return x->larger < y->larger ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Links each node to its first child and its next sibling, the larger of both values first, then by name. */
static int link_children(struct ta_calltree *tree)
{
    size_t count = tree->count - 1;
    struct place *places = ta__new_array(count, sizeof *places);
    if (places == NULL)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct ta_calltree_node *node = &tree->nodes[i + 1];
        places[i] = (struct place){node->parent, (uint32_t)i + 1,
                                   node->value > node->old_value ? node->value : node->old_value, node->name};
    }
    int status = ta__sort(places, count, sizeof *places, compare_places);
    for (size_t i = 0; i < tree->count; i++)
        tree->nodes[i].child = tree->nodes[i].sibling = 0;
    for (size_t i = count; i-- > 0;) {
        struct ta_calltree_node *parent = &tree->nodes[places[i].parent];
        tree->nodes[places[i].index].sibling = parent->child;
        parent->child = places[i].index;
    }
    free(places);
    return status;
}

/* Numbers the nodes anew, each before what is below it. */
static int renumber(struct ta_calltree *tree)
{
    struct ta_calltree_node *nodes = ta__new_array(tree->count, sizeof *nodes);
    uint32_t *numbers = ta__new_array(tree->count, sizeof *numbers), next = 0;
    if (nodes == NULL || numbers == NULL) {
        free(nodes);
        free(numbers);
        return -1;
    }
    for (uint32_t at = 0;;) {
        numbers[at] = next++;
        if (tree->nodes[at].child != 0) {
            at = tree->nodes[at].child;
            continue;
        }
        while (at != 0 && tree->nodes[at].sibling == 0)
            at = tree->nodes[at].parent;
        if (at == 0)
            break;
        at = tree->nodes[at].sibling;
    }
    for (size_t i = 0; i < tree->count; i++) {
        struct ta_calltree_node *node = &nodes[numbers[i]];
        *node = tree->nodes[i];
        node->parent = numbers[node->parent];
        node->child = numbers[node->child];
        node->sibling = numbers[node->sibling];
    }
    free(numbers);
    free(tree->nodes);
    tree->nodes = nodes;
    tree->capacity = tree->count;
    return 0;
}

/* ---- the whole ---- */

struct ta_calltree *ta_calltree_create(enum ta_order order, unsigned flags)
{
    const unsigned known = TA_CALLTREE_FROM_LEAVES | TA_CALLTREE_FOLD | TA_CALLTREE_OWN;
    if (order > TA_ORDER_PEAK || (flags & ~known) != 0) {
        ta__fail("a calling tree has no such order or flag: order %d, flags %#x", (int)order, flags);
        return NULL;
    }
    struct ta_calltree *tree = ta__new_array(1, sizeof *tree);
    if (tree == NULL)
        return NULL;
    tree->order = order;
    tree->flags = flags;
    struct ta_calltree_node root = {.name = intern(tree, "all"), .file = intern(tree, ""), .times = 1, .domain = ""};
    root.module = root.file;
    if (root.name == NULL || root.file == NULL || ta__grow(&tree->nodes, &tree->capacity, 1, sizeof root) != 0) {
        ta_calltree_free(tree);
        return NULL;
    }
    tree->nodes[tree->count++] = root;
    return tree;
}

int ta_calltree_add(struct ta_calltree *tree, const struct ta_snapshot *snapshot, int is_old)
{
    const struct ta__model *model = ta__model_of(snapshot);
    if (model == NULL)
        return -1;
    struct addition addition = {.tree = tree, .model = model, .is_old = is_old};
    int status = prepare(&addition);
    if (status == 0)
        status = place_all(&addition);
    if (status == 0)
        status = add_traces(&addition);
    if (status == 0)
        add_up(&addition);
    release(&addition);
    ta__index_free(&tree->children);
    tree->has_old = tree->has_old || is_old;
    if (link_children(tree) != 0 || renumber(tree) != 0)
        status = -1;
    return status;
}

size_t ta_calltree_count(const struct ta_calltree *tree)
{
    return tree == NULL ? 0 : tree->count;
}

int ta_calltree_get(const struct ta_calltree *tree, size_t index, struct ta_calltree_node *node, size_t size)
{
    if (index >= ta_calltree_count(tree))
        return ta__fail("the calling tree has no node %zu", index);
    ta__fill(node, size, &tree->nodes[index], sizeof *node);
    return 0;
}

void ta_calltree_free(struct ta_calltree *tree)
{
    if (tree == NULL)
        return;
    for (size_t i = 0; i < tree->text_count; i++)
        free(tree->texts[i]);
    free(tree->texts);
    free(tree->nodes);
    ta__index_free(&tree->text_index);
    ta__index_free(&tree->children);
    free(tree);
}

int64_t ta__calltree_own_value(const struct ta_calltree *tree, size_t index)
{
    int64_t value = tree->nodes[index].value;
    for (uint32_t child = tree->nodes[index].child; child != 0; child = tree->nodes[child].sibling)
        value -= tree->nodes[child].value;
    return value;
}

void ta__calltree_path(const struct ta_calltree *tree, size_t index, uint32_t *path)
{
    for (uint32_t at = (uint32_t)index; at != 0; at = tree->nodes[at].parent)
        path[tree->nodes[at].depth - 1] = at;
}

uint32_t ta__calltree_depth(const struct ta_calltree *tree)
{
    uint32_t depth = 0;
    for (size_t i = 0; i < tree->count; i++)
        depth = tree->nodes[i].depth > depth ? tree->nodes[i].depth : depth;
    return depth;
}
