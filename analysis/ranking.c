/* ranking.c: see ranking.h.
 *
 * Names are sorted first; then locations are pairs of numbers; then stacks are pairs of numbers too: a stack is its
 * parent stack and one more location. Interning these pairs over both models gives a tree whose preorder, children in
 * the order of their locations, is exactly the order of tracebacks: oldest frame first, a prefix before its
 * continuations. */
#include "analysis/ranking.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/names.h"
#include "analysis/support.h"
#include "base/hash.h"

/* ---- ranking numbers ---- */

struct numbered {
    uint64_t value;
    uint32_t model, number;
};

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* A byte at a time from the lowest; bytes that are equal everywhere are skipped. */
static int sort_numbered(struct numbered *items, size_t count)
{
    if (count < 4096)
        return ta__sort(items, count, sizeof *items, compare_numbered);
    struct numbered *spare = ta__new_array(count, sizeof *spare), *from = items, *to = spare;
    if (spare == NULL)
        return -1;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t starts[256] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++)
            starts[from[i].value >> shift & 0xFF]++;
        if (starts[from[0].value >> shift & 0xFF] == count)
            continue;
        for (size_t i = 0; i < 256; i++) {
            size_t size = starts[i];
            starts[i] = sum;
            sum += size;
        }
        for (size_t i = 0; i < count; i++)
            to[starts[from[i].value >> shift & 0xFF]++] = from[i];
        struct numbered *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
    free(spare);
    return 0;
}

/* Sorts `items` by value and hands out ranks; equal values share one. */
static int rank_numbers(struct ta__ranking *ranking, struct numbered *items, size_t count)
{
    if (sort_numbered(items, count) != 0)
        return -1;
    ranking->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || items[i].value != items[i - 1].value)
            ranking->count++;
        ranking->ranks[items[i].model][items[i].number] = (uint32_t)ranking->count - 1;
    }
    return 0;
}

static int allocate_ranks(struct ta__ranking *ranking, size_t model, size_t count)
{
    ranking->ranks[model] = ta__new_array(count, sizeof *ranking->ranks[model]);
    return ranking->ranks[model] == NULL ? -1 : 0;
}

/* ---- names ---- */

struct named {
    const struct ta__name *name;
    uint32_t model, number;
};

static int compare_named(const void *a, const void *b)
{
    const struct ta__name *x = ((const struct named *)a)->name, *y = ((const struct named *)b)->name;
    return ta__name_compare(x->text, x->length, y->text, y->length);
}

static int rank_names(struct ta__ranking *ranking, const struct ta__model *const *models, size_t model_count)
{
    size_t total = 0, at = 0;
    for (size_t m = 0; m < model_count; m++) {
        total += models[m]->name_count;
        if (allocate_ranks(ranking, m, models[m]->name_count) != 0)
            return -1;
    }
    struct named *names = ta__new_array(total, sizeof *names);
    if (names == NULL)
        return -1;
    for (size_t m = 0; m < model_count; m++)
        for (size_t i = 0; i < models[m]->name_count; i++)
            names[at++] = (struct named){&models[m]->names[i], (uint32_t)m, (uint32_t)i};
    int status = ta__sort(names, total, sizeof *names, compare_named);
    ranking->count = 0;
    for (size_t i = 0; status == 0 && i < total; i++) {
        if (i == 0 || compare_named(&names[i], &names[i - 1]) != 0)
            ranking->count++;
        ranking->ranks[names[i].model][names[i].number] = (uint32_t)ranking->count - 1;
    }
    free(names);
    return status;
}

/* ---- keys whose value is one number made from the ranks of names ---- */

static size_t key_count(enum ta__key key, const struct ta__model *model)
{
    return key == TA__KEY_DOMAIN   ? model->domain_count
           : key == TA__KEY_THREAD ? (size_t)model->view->thread_count + 1
                                   : model->location_count;
}

static uint64_t key_value(enum ta__key key, const struct ta__model *model, const uint32_t *names, size_t number)
{
    if (key == TA__KEY_DOMAIN)
        return model->domain_numbers[number];
    if (key == TA__KEY_THREAD)
        return names[model->thread_names[number]];
    return (uint64_t)names[model->locations[number].name] << 32 | model->locations[number].line;
}

static int rank_simple(struct ta__ranking *ranking, enum ta__key key, const struct ta__model *const *models,
                       size_t model_count, const struct ta__ranking *names)
{
    size_t total = 0, at = 0;
    for (size_t m = 0; m < model_count; m++) {
        total += key_count(key, models[m]);
        if (allocate_ranks(ranking, m, key_count(key, models[m])) != 0)
            return -1;
    }
    struct numbered *items = ta__new_array(total, sizeof *items);
    if (items == NULL)
        return -1;
    for (size_t m = 0; m < model_count; m++)
        for (size_t i = 0; i < key_count(key, models[m]); i++)
            items[at++] = (struct numbered){key_value(key, models[m], names->ranks[m], i), (uint32_t)m, (uint32_t)i};
    int status = rank_numbers(ranking, items, total);
    free(items);
    return status;
}

/* ---- stacks ---- */

/* A node of the tree of all stacks; 0 is the empty stack. */
struct stack {
    uint32_t parent;
    uint32_t location; /* rank */
};

struct stacks {
    struct stack *items;
    size_t count, capacity;
    uint32_t *slots; /* stack + 1, 0 = free */
    size_t mask;
};

static uint64_t hash_of_stack(uint32_t parent, uint32_t location)
{
    return ta__hash_word((uint64_t)parent << 32 | location);
}

/* Room for `expected` stacks, at most half full. */
static int stacks_grow_slots(struct stacks *stacks, size_t expected)
{
    size_t slots = stacks->mask == 0 ? 1024 : stacks->mask + 1;
    while (slots < expected * 2)
        slots *= 2;
    uint32_t *bigger = ta__new_array(slots, sizeof *bigger);
    if (bigger == NULL)
        return -1;
    for (size_t i = 1; i < stacks->count; i++) {
        size_t at = hash_of_stack(stacks->items[i].parent, stacks->items[i].location) & (slots - 1);
        while (bigger[at] != 0)
            at = (at + 1) & (slots - 1);
        bigger[at] = (uint32_t)i + 1;
    }
    free(stacks->slots);
    stacks->slots = bigger;
    stacks->mask = slots - 1;
    return 0;
}

static int intern_stack(struct stacks *stacks, uint32_t parent, uint32_t location, uint32_t *id)
{
    if (stacks->mask == 0 || stacks->count * 2 > stacks->mask)
        if (stacks_grow_slots(stacks, stacks->mask + 1) != 0)
            return -1;
    size_t at = hash_of_stack(parent, location) & stacks->mask;
    for (; stacks->slots[at] != 0; at = (at + 1) & stacks->mask) {
        const struct stack *other = &stacks->items[stacks->slots[at] - 1];
        if (other->parent == parent && other->location == location) {
            *id = stacks->slots[at] - 1;
            return 0;
        }
    }
    if (stacks->count >= UINT32_MAX - 1)
        return ta__fail("more than 2^32 stacks");
    if (ta__grow(&stacks->items, &stacks->capacity, stacks->count + 1, sizeof *stacks->items) != 0)
        return -1;
    *id = (uint32_t)stacks->count++;
    stacks->items[*id] = (struct stack){parent, location};
    stacks->slots[at] = *id + 1;
    return 0;
}

static uint32_t outermost_location(const struct ta__model *model, uint32_t context, const uint32_t *locations)
{
    struct ta__logical_range range = ta__model_range(model, context);
    return locations[model->logicals[range.first + range.count - 1].location];
}

/* Asks for the slot of a context to come; nearly every one is a cache miss. Its parent is known, unless it is nearer
 * than the look ahead. */
static void prefetch(const struct stacks *stacks, const struct ta__model *model, const uint32_t *locations,
                     const uint32_t *stack_of, uint32_t context, uint32_t ahead)
{
    const struct ta__view *view = model->view;
    if (view->context_count - context <= ahead || view->contexts[context + ahead].parent >= context)
        return;
    uint32_t parent = view->contexts[context + ahead].parent, stack = parent == 0 ? 0 : stack_of[parent];
    uint64_t hash = hash_of_stack(stack, outermost_location(model, context + ahead, locations));
    __builtin_prefetch(&stacks->slots[hash & stacks->mask]);
}

/* Maps each context of a model to a stack of the common tree. Context 0 is the stack of traces without frames. */
static int intern_model(struct stacks *stacks, const struct ta__model *model, const uint32_t *locations,
                        uint32_t *stack_of)
{
    const struct ta__view *view = model->view;
    if (stacks_grow_slots(stacks, stacks->count + view->context_count + 2u) != 0)
        return -1;
    if (intern_stack(stacks, 0, locations[model->logicals[0].location], &stack_of[0]) != 0)
        return -1;
    for (uint32_t context = 1; context < view->context_count; context++) {
        struct ta__logical_range range = ta__model_range(model, context);
        uint32_t parent = view->contexts[context].parent;
        uint32_t stack = parent == 0 ? 0 : stack_of[parent];
        prefetch(stacks, model, locations, stack_of, context, 12);
        for (uint32_t i = range.count; i-- > 0;)
            if (intern_stack(stacks, stack, locations[model->logicals[range.first + i].location], &stack) != 0)
                return -1;
        stack_of[context] = stack;
    }
    return 0;
}

/* Preorder number of every stack. Subtree sizes come from one backward pass (parent < child), places from one pass in
 * the order of locations: sorted by (parent, location), each child starts where its elder sibling's subtree ends. */
static int preorder(const struct stacks *stacks, uint32_t *order)
{
    uint32_t *sizes = ta__new_array(stacks->count, sizeof *sizes), *next = ta__new_array(stacks->count, sizeof *next);
    struct numbered *items = ta__new_array(stacks->count, sizeof *items);
    int status = sizes == NULL || next == NULL || items == NULL ? -1 : 0;
    if (status == 0) {
        for (size_t i = stacks->count; i-- > 1;)
            sizes[stacks->items[i].parent] += ++sizes[i];
        for (size_t i = 1; i < stacks->count; i++)
            items[i - 1] =
                (struct numbered){(uint64_t)stacks->items[i].parent << 32 | stacks->items[i].location, 0, (uint32_t)i};
        status = sort_numbered(items, stacks->count - 1);
    }
    /* Parents have smaller numbers than their children, so a parent's place is known before its children come. */
    for (size_t i = 0; status == 0 && i + 1 < stacks->count; i++) {
        uint32_t id = items[i].number, parent = stacks->items[id].parent;
        order[id] = order[parent] + 1 + next[parent];
        next[parent] += sizes[id];
    }
    free(sizes);
    free(next);
    free(items);
    return status;
}

static int rank_stacks(struct ta__ranking *ranking, const struct ta__model *const *models, size_t model_count,
                       const struct ta__ranking *locations)
{
    struct stacks stacks = {0};
    uint32_t *order = NULL;
    int status = ta__grow(&stacks.items, &stacks.capacity, 1, sizeof *stacks.items);
    if (status == 0)
        stacks.items[stacks.count++] = (struct stack){0, 0};
    for (size_t m = 0; status == 0 && m < model_count; m++) {
        status = allocate_ranks(ranking, m, models[m]->view->context_count + 1u);
        if (status == 0)
            status = intern_model(&stacks, models[m], locations->ranks[m], ranking->ranks[m]);
    }
    if (status == 0) {
        order = ta__new_array(stacks.count, sizeof *order);
        status = order == NULL ? -1 : preorder(&stacks, order);
    }
    for (size_t m = 0; status == 0 && m < model_count; m++)
        for (size_t i = 0; i < models[m]->view->context_count || i == 0; i++)
            ranking->ranks[m][i] = order[ranking->ranks[m][i]];
    ranking->count = stacks.count;
    free(order);
    free(stacks.items);
    free(stacks.slots);
    return status;
}

static int build(struct ta__ranking *ranking, const struct ta__model *const *models, size_t model_count)
{
    enum ta__key key = ranking->key;
    if (key == TA__KEY_FILENAME || key == TA__KEY_FUNCTION || key == TA__KEY_MODULE)
        return rank_names(ranking, models, model_count);

    struct ta__ranking names = {.key = TA__KEY_FILENAME}, locations = {.key = TA__KEY_LINENO};
    int status = rank_names(&names, models, model_count);
    if (status == 0 && key != TA__KEY_TRACEBACK)
        status = rank_simple(ranking, key, models, model_count, &names);
    if (status == 0 && key == TA__KEY_TRACEBACK)
        status = rank_simple(&locations, TA__KEY_LINENO, models, model_count, &names);
    if (status == 0 && key == TA__KEY_TRACEBACK)
        status = rank_stacks(ranking, models, model_count, &locations);
    ta__ranking_free(&names);
    ta__ranking_free(&locations);
    return status;
}

int ta__ranking_build(struct ta__ranking *ranking, enum ta__key key, const struct ta__model *const *models,
                      size_t model_count)
{
    *ranking = (struct ta__ranking){.key = key};
    int status = build(ranking, models, model_count);
    if (status != 0)
        ta__ranking_free(ranking);
    return status;
}

void ta__ranking_free(struct ta__ranking *ranking)
{
    free(ranking->ranks[0]);
    free(ranking->ranks[1]);
    *ranking = (struct ta__ranking){0};
}
