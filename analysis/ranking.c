/* ranking.c: see ranking.h.
 *
 * Names are sorted first; then locations are pairs of numbers; then stacks are pairs of numbers too: a stack is its
 * parent stack and one more location. Interning these pairs over both models gives a tree whose preorder, children in
 * the order of their locations, is exactly the order of tracebacks: oldest frame first, a prefix before its
 * continuations. */
#include "analysis/ranking.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/code_points.h"
#include "analysis/number_sort.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "base/hash.h"

/* ---- ranking numbers ---- */

/* Sorts `items` by value and hands out ranks; equal values share one. */
static int rank_numbers(struct ta__ranking *ranking, struct ta__numbered *items, size_t count)
{
    if (ta__sort_numbered(items, count) != 0)
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
    return key == TA__KEY_DOMAIN                             ? model->domain_count
           : key == TA__KEY_THREAD || key == TA__KEY_PROCESS ? (size_t)model->view->thread_count + 1
                                                             : model->location_count;
}

static uint64_t key_value(enum ta__key key, const struct ta__model *model, const uint32_t *names, size_t number)
{
    if (key == TA__KEY_DOMAIN)
        return model->domain_numbers[number];
    if (key == TA__KEY_THREAD)
        return names[model->thread_names[number]];
    if (key == TA__KEY_PROCESS)
        return names[model->process_names[number]];
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
    struct ta__numbered *items = ta__new_array(total, sizeof *items);
    if (items == NULL)
        return -1;
    for (size_t m = 0; m < model_count; m++)
        for (size_t i = 0; i < key_count(key, models[m]); i++)
            items[at++] =
                (struct ta__numbered){key_value(key, models[m], names->ranks[m], i), (uint32_t)m, (uint32_t)i};
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
    uint64_t *slots; /* upper half of the hash, stack + 1; 0 = free */
    size_t mask;
    uint32_t last; /* the stack found last */
};

static uint64_t hash_of_stack(uint32_t parent, uint32_t location)
{
    return ta__hash_word((uint64_t)parent << 32 | location);
}

#define AHEAD 16 /* what is asked for that long before its use comes in time */

#define TAG_OF(hash) ((hash)&0xFFFFFFFF00000000u)

/* Room for `expected` stacks, at most half full. */
static int stacks_grow_slots(struct stacks *stacks, size_t expected)
{
    size_t slots = stacks->mask == 0 ? 1024 : stacks->mask + 1;
    while (slots < expected * 2)
        slots *= 2;
    uint64_t *bigger = ta__new_array(slots, sizeof *bigger);
    if (bigger == NULL)
        return -1;
    for (size_t i = 1; i < stacks->count; i++) {
        uint64_t hash = hash_of_stack(stacks->items[i].parent, stacks->items[i].location);
        size_t at = hash & (slots - 1);
        while (bigger[at] != 0)
            at = (at + 1) & (slots - 1);
        bigger[at] = TAG_OF(hash) | (i + 1);
    }
    free(stacks->slots);
    stacks->slots = bigger;
    stacks->mask = slots - 1;
    return 0;
}

static int is_stack(const struct stacks *stacks, size_t id, uint32_t parent, uint32_t location)
{
    return stacks->items[id].parent == parent && stacks->items[id].location == location;
}

/* Two snapshots of one program have their contexts in the same order: the stack behind the one found last comes first. */
static int intern_stack(struct stacks *stacks, uint32_t parent, uint32_t location, uint32_t *id)
{
    size_t next = (size_t)stacks->last + 1;
    if (next < stacks->count && is_stack(stacks, next, parent, location)) {
        *id = stacks->last = (uint32_t)next;
        return 0;
    }
    if (stacks->mask == 0 || stacks->count * 2 > stacks->mask)
        if (stacks_grow_slots(stacks, stacks->mask + 1) != 0)
            return -1;
    uint64_t hash = hash_of_stack(parent, location);
    size_t at = hash & stacks->mask;
    for (; stacks->slots[at] != 0; at = (at + 1) & stacks->mask) {
        size_t other = (uint32_t)stacks->slots[at] - 1u;
        if (TAG_OF(stacks->slots[at]) == TAG_OF(hash) && is_stack(stacks, other, parent, location)) {
            *id = stacks->last = (uint32_t)other;
            return 0;
        }
    }
    if (stacks->count >= UINT32_MAX - 1)
        return ta__fail("more than 2^32 stacks");
    if (ta__grow(&stacks->items, &stacks->capacity, stacks->count + 1, sizeof *stacks->items) != 0)
        return -1;
    *id = stacks->last = (uint32_t)stacks->count++;
    stacks->items[*id] = (struct stack){parent, location};
    stacks->slots[at] = TAG_OF(hash) | (*id + 1u);
    return 0;
}

static uint32_t outermost_place(const struct ta__model *model, uint32_t context, const uint32_t *places)
{
    struct ta__logical_range range = ta__model_range(model, context);
    return places[range.first + range.count - 1];
}

/* Stacks of one model's contexts. As long as no two contexts made one stack and no call was inlined, a context's number
 * is its stack's, and one table less is looked at. */
struct stacks_of_model {
    const struct ta__model *model;
    const uint32_t *places;
    uint32_t *stack_of;
    int is_same;
};

static uint32_t stack_of(const struct stacks_of_model *of, uint32_t context)
{
    return context == 0 || of->is_same ? context : of->stack_of[context];
}

/* Asks for the slot of a context to come; nearly every one is a cache miss. Its parent is known, unless it is nearer
 * than the look ahead. */
static void prefetch(const struct stacks *stacks, const struct stacks_of_model *of, uint32_t context, uint32_t ahead)
{
    const struct ta__view *view = of->model->view;
    if (view->context_count - context <= ahead || view->contexts[context + ahead].parent >= context)
        return;
    uint32_t parent = view->contexts[context + ahead].parent;
    if (!of->is_same && view->context_count - context > 2 * ahead)
        __builtin_prefetch(&of->stack_of[view->contexts[context + 2 * ahead].parent]);
    uint64_t hash = hash_of_stack(stack_of(of, parent), outermost_place(of->model, context + ahead, of->places));
    __builtin_prefetch(&stacks->slots[hash & stacks->mask]);
}

/* Maps each context of a model to a stack of the common tree. Context 0 is the stack of traces without frames. */
static int intern_model(struct stacks *stacks, const struct ta__model *model, const uint32_t *places, uint32_t *ids)
{
    const struct ta__view *view = model->view;
    struct stacks_of_model of = {model, places, ids, 1};
    uint32_t rootless;
    stacks->last = 0;
    if (stacks_grow_slots(stacks, stacks->count + view->context_count + 2u) != 0)
        return -1;
    for (uint32_t context = 1; context < view->context_count; context++) {
        struct ta__logical_range range = ta__model_range(model, context);
        uint32_t stack = stack_of(&of, view->contexts[context].parent);
        prefetch(stacks, &of, context, 16);
        for (uint32_t i = range.count; i-- > 0;)
            if (intern_stack(stacks, stack, places[range.first + i], &stack) != 0)
                return -1;
        ids[context] = stack;
        of.is_same &= stack == context;
    }
    if (intern_stack(stacks, 0, places[0], &rootless) != 0)
        return -1;
    ids[0] = rootless;
    return 0;
}

/* The stacks in the order of their own locations (each below `locations`). */
static uint32_t *sort_by_location(const struct stacks *stacks, size_t locations)
{
    size_t *starts = ta__new_array(locations + 1, sizeof *starts);
    uint32_t *sorted = ta__new_array(stacks->count, sizeof *sorted);
    if (starts == NULL || sorted == NULL) {
        free(starts);
        free(sorted);
        return NULL;
    }
    for (size_t i = 1; i < stacks->count; i++)
        starts[stacks->items[i].location + 1]++;
    for (size_t i = 1; i <= locations; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 1; i < stacks->count; i++)
        sorted[starts[stacks->items[i].location]++] = (uint32_t)i;
    free(starts);
    return sorted;
}

/* Preorder number of every stack. Subtree sizes come from one backward pass (parent < child). In the order of locations
 * each child begins where its elder sibling's subtree ends, counted from its parent; the last pass adds the parents'
 * own places. */
static int preorder(const struct stacks *stacks, size_t locations, uint32_t *order)
{
    uint32_t *sizes = ta__new_array(stacks->count, sizeof *sizes), *next = ta__new_array(stacks->count, sizeof *next);
    uint32_t *sorted = sort_by_location(stacks, locations);
    int status = sizes == NULL || next == NULL || sorted == NULL ? -1 : 0;
    if (status == 0) {
        const struct stack *items = stacks->items;
        for (size_t i = stacks->count; i-- > 1;) {
            __builtin_prefetch(&sizes[items[i > AHEAD ? i - AHEAD : 0].parent]);
            sizes[items[i].parent] += ++sizes[i];
        }
        for (size_t i = 0; i + 1 < stacks->count; i++) {
            size_t soon = i + 1 + AHEAD < stacks->count ? i + AHEAD : i,
                   later = soon + AHEAD < stacks->count ? soon + AHEAD : i;
            uint32_t id = sorted[i], parent = items[id].parent;
            __builtin_prefetch(&items[sorted[later]]);
            __builtin_prefetch(&sizes[sorted[later]]);
            __builtin_prefetch(&next[items[sorted[soon]].parent]);
            order[id] = 1 + next[parent];
            next[parent] += sizes[id];
        }
        for (size_t i = 1; i < stacks->count; i++) {
            __builtin_prefetch(&order[items[i + AHEAD < stacks->count ? i + AHEAD : i].parent]);
            order[i] += order[items[i].parent];
        }
    }
    free(sizes);
    free(next);
    free(sorted);
    return status;
}

/* What a stack is made of, by logical frame: the rank of its location, or for STACK of its line or function. */
static uint32_t *places_of(const struct ta__model *model, const struct ta__ranking *ranks, size_t which)
{
    uint32_t *places = ta__new_array(model->logical_count, sizeof *places);
    const struct ta__own *own = ranks->own[which];
    for (size_t i = 0; places != NULL && i < model->logical_count; i++) {
        uint32_t number = own == NULL ? model->logicals[i].location : own->key_of_logical[i];
        places[i] = ranks->ranks[which][number];
    }
    return places;
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
        uint32_t *places = status == 0 ? places_of(models[m], locations, m) : NULL;
        status = places == NULL ? -1 : intern_model(&stacks, models[m], places, ranking->ranks[m]);
        free(places);
    }
    if (status == 0) {
        free(stacks.slots); /* before more is asked for */
        stacks.slots = NULL;
        order = ta__new_array(stacks.count, sizeof *order);
        status = order == NULL ? -1 : preorder(&stacks, locations->count, order);
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

static int rank_by_lines(struct ta__ranking *ranking, const struct ta__model *const *models, size_t model_count)
{
    struct ta__ranking lines = {.key = TA__KEY_LINE};
    int status = ta__rank_own(&lines, models, model_count);
    for (size_t m = 0; status == 0 && m < model_count; m++) { /* frames are enough, and contexts are many */
        free(lines.own[m]->contexts);
        lines.own[m]->contexts = NULL;
    }
    if (status == 0)
        status = rank_stacks(ranking, models, model_count, &lines);
    ta__ranking_free(&lines);
    return status;
}

static int build(struct ta__ranking *ranking, const struct ta__model *const *models, size_t model_count)
{
    enum ta__key key = ranking->key;
    if (key == TA__KEY_OWN || key == TA__KEY_LINE)
        return ta__rank_own(ranking, models, model_count);
    if (key == TA__KEY_FILENAME || key == TA__KEY_FUNCTION || key == TA__KEY_MODULE)
        return rank_names(ranking, models, model_count);
    if (key == TA__KEY_STACK)
        return rank_by_lines(ranking, models, model_count);

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
    ta__own_release(ranking->own[0]);
    ta__own_release(ranking->own[1]);
    *ranking = (struct ta__ranking){0};
}
