/* row_members.c: what a row of statistics or differences is made of: functions, ways to the allocator, callers, and the
 * stack that holds most. Asked row by row, for the rows that somebody looks at. */
#include <stdlib.h>
#include <string.h>

#include "analysis/statistics.h"
#include "analysis/support.h"

struct member {
    uint32_t id;      /* equal for what belongs together */
    uint32_t logical; /* UINT32_MAX = none */
    ta__wide size, count, allocated_size, allocated_count;
    const char *name;
};

/* ---- the traces of a group ---- */

static int index_traces(struct ta__groups *groups)
{
    if (groups->first_trace != NULL)
        return 0;
    if (groups->group_of_trace == NULL)
        return -1;
    uint32_t *first = ta__new_array(groups->count, sizeof *first);
    groups->next_trace = ta__new_array(groups->trace_count, sizeof *groups->next_trace);
    if (first == NULL || groups->next_trace == NULL) {
        free(first);
        free(groups->next_trace);
        groups->next_trace = NULL;
        return -1;
    }
    for (uint32_t i = groups->trace_count; i-- > 0;) {
        groups->next_trace[i] = first[groups->group_of_trace[i]];
        first[groups->group_of_trace[i]] = i + 1;
    }
    groups->first_trace = first;
    return 0;
}

/* ---- what a trace belongs to ---- */

/* A place in a stack: a context and one of its own logical frames. */
struct place {
    uint32_t context, offset;
};

static uint32_t logical_at(const struct ta__model *model, struct place place)
{
    return ta__model_range(model, place.context).first + place.offset;
}

/* One frame outwards; 0 when there is none. */
static int step_outwards(const struct ta__model *model, struct place *place)
{
    if (++place->offset < ta__model_range(model, place->context).count)
        return 1;
    *place = (struct place){place->context == 0 ? 0 : model->view->contexts[place->context].parent, 0};
    return place->context != 0;
}

/* The next own frame of another function beyond the one that the row is named by. */
static uint32_t caller_of(const struct ta__groups *groups, uint32_t context)
{
    const struct ta__model *model = groups->model;
    const struct ta__own *own = groups->own;
    struct place place = {context, 0};
    if (own == NULL)
        return step_outwards(model, &place) ? logical_at(model, place) : UINT32_MAX;
    const struct ta__own_choice *choice = &own->contexts[context];
    while (choice->own != 0 && logical_at(model, place) != choice->own)
        if (!step_outwards(model, &place))
            return UINT32_MAX;
    uint32_t function = model->logicals[choice->own].function;
    while (step_outwards(model, &place)) {
        uint32_t logical = logical_at(model, place);
        if (own->key_of_logical[logical] != TA__NO_KEY && own->key_of_logical[logical] != choice->key &&
            (function == 0 || model->logicals[logical].function != function))
            return logical;
    }
    return UINT32_MAX;
}

static struct member member_of(const struct ta__groups *groups, uint32_t index, enum ta_member what)
{
    const struct ta__model *model = groups->model;
    const struct ta__view_trace *trace = &model->view->traces[index];
    struct member member = {.logical = UINT32_MAX,
                            .size = trace->size,
                            .count = trace->count,
                            .allocated_size = trace->allocated_bytes,
                            .allocated_count = trace->allocated_blocks,
                            .name = ""};
    const struct ta__own_choice *choice = groups->own != NULL ? &groups->own->contexts[trace->context] : NULL;
    if (what == TA_MEMBER_FUNCTION)
        member.logical = choice == NULL     ? ta__model_range(model, trace->context).first
                         : choice->own != 0 ? choice->own
                                            : groups->own->keys[choice->key].logical;
    else if (what == TA_MEMBER_VIA && choice != NULL && choice->via != 0)
        member.logical = choice->via;
    else if (what == TA_MEMBER_CALLER)
        member.logical = caller_of(groups, trace->context);
    if (member.logical == UINT32_MAX)
        return member;
    uint32_t function = model->logicals[member.logical].function;
    member.id =
        what == TA_MEMBER_CALLER && groups->own != NULL ? groups->own->key_of_logical[member.logical] + 1 : function;
    if (what == TA_MEMBER_CALLER && groups->own == NULL)
        member.id = model->logicals[member.logical].location + 1;
    member.name = model->names[function].text;
    return member;
}

/* ---- members ---- */

static int by_id(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_value(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->allocated_size != y->allocated_size)
        return x->allocated_size > y->allocated_size ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : by_id(a, b);
}

/* One item for equal ids; how many there are. */
static size_t merge(struct member *items, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && items[kept - 1].id == items[i].id) {
            struct member *sum = &items[kept - 1];
            sum->size += items[i].size;
            sum->count += items[i].count;
            sum->allocated_size += items[i].allocated_size;
            sum->allocated_count += items[i].allocated_count;
        } else {
            items[kept++] = items[i];
        }
    }
    return kept;
}

static size_t members(struct ta__groups *groups, const struct ta__group *group, enum ta_member what,
                      struct ta_row_member *out, size_t max)
{
    struct member *items = NULL;
    size_t count = 0, capacity = 0;
    if (index_traces(groups) != 0)
        return 0;
    for (uint32_t i = groups->first_trace[group - groups->items]; i != 0; i = groups->next_trace[i - 1]) {
        if (ta__grow(&items, &capacity, count + 1, sizeof *items) != 0) {
            free(items);
            return 0;
        }
        items[count++] = member_of(groups, i - 1, what);
    }
    if (ta__sort(items, count, sizeof *items, by_id) != 0)
        count = 0;
    count = merge(items, count);
    if (ta__sort(items, count, sizeof *items, by_value) != 0)
        count = 0;
    for (size_t i = 0; i < count && i < max; i++) {
        out[i] = (struct ta_row_member){.frame = {.filename = "", .function = "", .raw_name = "", .module = ""},
                                        .size = ta__saturate(items[i].size),
                                        .count = ta__saturate(items[i].count),
                                        .allocated_size = ta__saturate(items[i].allocated_size),
                                        .allocated_count = ta__saturate(items[i].allocated_count)};
        if (items[i].logical != UINT32_MAX)
            ta__model_frame(groups->model, items[i].logical, &out[i].frame);
    }
    free(items);
    return count;
}

static struct ta_traceback largest(struct ta__groups *groups, const struct ta__group *group)
{
    const struct ta__view_trace *best = NULL;
    if (index_traces(groups) != 0)
        return (struct ta_traceback){.total_nframe = -1};
    for (uint32_t i = groups->first_trace[group - groups->items]; i != 0; i = groups->next_trace[i - 1]) {
        const struct ta__view_trace *trace = &groups->model->view->traces[i - 1];
        if (best == NULL || trace->size > best->size ||
            (trace->size == best->size && trace->allocated_bytes > best->allocated_bytes))
            best = trace;
    }
    return best == NULL ? (struct ta_traceback){.total_nframe = -1}
                        : ta__traceback(groups->model, TA__TRACEBACK_CONTEXT, best->context);
}

size_t ta_statistics_members(struct ta_statistics *statistics, size_t index, enum ta_member what,
                             struct ta_row_member *out, size_t max)
{
    return index < ta_statistics_count(statistics)
               ? members(&statistics->groups, statistics->rows[index], what, out, max)
               : 0;
}

struct ta_traceback ta_statistics_largest(struct ta_statistics *statistics, size_t index)
{
    return index < ta_statistics_count(statistics) ? largest(&statistics->groups, statistics->rows[index])
                                                   : (struct ta_traceback){.total_nframe = -1};
}

/* The side of a difference that says more: the new one, where the row is in it. */
static struct ta__groups *side_of(struct ta_differences *differences, size_t index, const struct ta__group **group)
{
    const struct ta__difference *row = &differences->rows[index];
    *group = row->new_group != NULL ? row->new_group : row->old_group;
    return row->new_group != NULL ? &differences->new_groups : &differences->old_groups;
}

size_t ta_differences_members(struct ta_differences *differences, size_t index, enum ta_member what,
                              struct ta_row_member *out, size_t max)
{
    const struct ta__group *group;
    if (index >= ta_differences_count(differences))
        return 0;
    struct ta__groups *groups = side_of(differences, index, &group);
    return members(groups, group, what, out, max);
}

struct ta_traceback ta_differences_largest(struct ta_differences *differences, size_t index)
{
    const struct ta__group *group;
    if (index >= ta_differences_count(differences))
        return (struct ta_traceback){.total_nframe = -1};
    struct ta__groups *groups = side_of(differences, index, &group);
    return largest(groups, group);
}
