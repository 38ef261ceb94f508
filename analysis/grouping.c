/* grouping.c: see grouping.h.
 *
 * Every key has small dense numbers, so grouping is adding to arrays. Cumulative sums are taken on the tree of
 * contexts: what the traces below a context add up to is what each frame of that context gets, so that the depth of
 * the stacks costs nothing. */
#include "analysis/grouping.h"

#include <stdlib.h>
#include <string.h>

static const char *const key_names[] = {
    [TA__KEY_TRACEBACK] = "traceback", [TA__KEY_LINENO] = "lineno", [TA__KEY_FILENAME] = "filename",
    [TA__KEY_FUNCTION] = "function",   [TA__KEY_MODULE] = "module", [TA__KEY_DOMAIN] = "domain",
    [TA__KEY_THREAD] = "thread",
};

int ta__key_parse(const char *key_type, int cumulative, enum ta__key *key)
{
    size_t found = 0, count = sizeof key_names / sizeof *key_names;
    while (found < count && (key_type == NULL || strcmp(key_type, key_names[found]) != 0))
        found++;
    if (found == count)
        return ta__fail("unknown key_type: '%s'", key_type == NULL ? "" : key_type);
    *key = (enum ta__key)found;
    if (cumulative && (*key == TA__KEY_TRACEBACK || *key == TA__KEY_DOMAIN || *key == TA__KEY_THREAD))
        return ta__fail("cumulative mode cannot by used with key type '%s'", key_type);
    return 0;
}

static uint32_t number_of_logical(const struct ta__model *model, enum ta__key key, const struct ta__logical *logical)
{
    switch (key) {
    case TA__KEY_LINENO:
        return logical->location;
    case TA__KEY_FILENAME:
        return model->locations[logical->location].name;
    case TA__KEY_FUNCTION:
        return logical->function != 0 ? logical->function : model->unknown_name;
    default:
        return logical->module != 0 ? logical->module : model->unknown_name;
    }
}

static uint32_t number_of_trace(const struct ta__model *model, enum ta__key key, const struct ta__view_trace *trace)
{
    if (key == TA__KEY_TRACEBACK)
        return trace->context;
    if (key == TA__KEY_DOMAIN)
        return (uint32_t)ta__model_domain(model, trace->domain);
    if (key == TA__KEY_THREAD)
        return trace->thread;
    return number_of_logical(model, key, ta__model_innermost(model, trace->context));
}

static uint64_t value_of(const struct ta__view_trace *trace, enum ta__value value)
{
    switch (value) {
    case TA__VALUE_SIZE:
        return trace->size;
    case TA__VALUE_COUNT:
        return trace->count;
    case TA__VALUE_ALLOCATED_SIZE:
        return trace->allocated_bytes;
    case TA__VALUE_ALLOCATED_COUNT:
        return trace->allocated_blocks;
    default:
        return trace->peak_bytes;
    }
}

/* The group of a key, made when it is new; NULL when out of memory. */
static struct ta__group *group_of(struct ta__groups *groups, uint32_t rank, uint32_t number)
{
    if (groups->by_rank[rank] == 0) {
        if (ta__grow(&groups->items, &groups->capacity, groups->count + 1, sizeof *groups->items) != 0)
            return NULL;
        groups->items[groups->count++] = (struct ta__group){.rank = rank, .number = number};
        groups->by_rank[rank] = (uint32_t)groups->count;
    }
    return &groups->items[groups->by_rank[rank] - 1];
}

static int add_traces(struct ta__groups *groups, const uint32_t *ranks)
{
    const struct ta__model *model = groups->model;
    for (uint32_t i = 0; i < groups->trace_count; i++) {
        const struct ta__view_trace *trace = &model->view->traces[i];
        uint32_t number = number_of_trace(model, groups->key, trace);
        struct ta__group *group = group_of(groups, ranks[number], number);
        if (group == NULL)
            return -1;
        for (int value = 0; value < TA__VALUES; value++)
            group->sums[value] += value_of(trace, (enum ta__value)value);
    }
    return 0;
}

static int add_to_frames(struct ta__groups *groups, const uint32_t *ranks, struct ta__logical_range range,
                         enum ta__value value, ta__wide sum)
{
    for (uint32_t i = 0; i < range.count; i++) {
        const struct ta__logical *logical = &groups->model->logicals[range.first + i];
        uint32_t number = number_of_logical(groups->model, groups->key, logical);
        struct ta__group *group = group_of(groups, ranks[number], number);
        if (group == NULL)
            return -1;
        group->sums[value] += sum;
    }
    return 0;
}

/* One value at a time: 16 bytes and one flag per context. */
static int add_cumulative(struct ta__groups *groups, const uint32_t *ranks, enum ta__value value, ta__wide *sums,
                          unsigned char *reached)
{
    const struct ta__model *model = groups->model;
    const struct ta__view *view = model->view;
    memset(sums, 0, (size_t)view->context_count * sizeof *sums);
    for (uint32_t i = 0; i < groups->trace_count; i++) {
        uint32_t context = view->traces[i].context;
        uint64_t amount = value_of(&view->traces[i], value);
        if (context == 0 && add_to_frames(groups, ranks, ta__model_range(model, 0), value, amount) != 0)
            return -1;
        if (context != 0)
            sums[context] += amount;
        reached[context] = 1;
    }
    /* Children come after their parents, so each sum is complete when its turn comes. */
    for (uint32_t context = view->context_count; context-- > 1;) {
        if (!reached[context])
            continue;
        uint32_t parent = view->contexts[context].parent;
        sums[parent] += sums[context];
        reached[parent] = 1;
        if (add_to_frames(groups, ranks, ta__model_range(model, context), value, sums[context]) != 0)
            return -1;
    }
    return 0;
}

static int is_used(const struct ta__groups *groups, enum ta__value value)
{
    for (uint32_t i = 0; i < groups->trace_count; i++)
        if (value_of(&groups->model->view->traces[i], value) != 0)
            return 1;
    return 0;
}

static int add_all_cumulative(struct ta__groups *groups, const uint32_t *ranks)
{
    uint32_t contexts = groups->model->view->context_count;
    ta__wide *sums = ta__new_array(contexts, sizeof *sums);
    unsigned char *reached = ta__new_array(contexts, 1);
    int status = sums == NULL || reached == NULL ? -1 : 0;
    for (int value = 0; status == 0 && value < TA__VALUES; value++)
        if (value == TA__VALUE_SIZE || is_used(groups, (enum ta__value)value)) /* the size pass makes the groups */
            status = add_cumulative(groups, ranks, (enum ta__value)value, sums, reached);
    free(sums);
    free(reached);
    return status;
}

int ta__groups_build(struct ta__groups *groups, const struct ta__model *model, const struct ta__ranking *ranking,
                     size_t which, int cumulative, enum ta__traces traces)
{
    *groups = (struct ta__groups){.model = model, .key = ranking->key, .trace_count = model->view->trace_count};
    if (traces == TA__TRACES_ALL)
        groups->trace_count += model->view->gone_trace_count;
    groups->by_rank = ta__new_array(ranking->count, sizeof *groups->by_rank);
    int status = groups->by_rank == NULL ? -1 : 0;
    if (status == 0)
        status =
            cumulative ? add_all_cumulative(groups, ranking->ranks[which]) : add_traces(groups, ranking->ranks[which]);
    if (status != 0)
        ta__groups_free(groups);
    return status;
}

void ta__groups_free(struct ta__groups *groups)
{
    free(groups->items);
    free(groups->by_rank);
    *groups = (struct ta__groups){0};
}

struct ta_traceback ta__group_traceback(const struct ta__groups *groups, const struct ta__group *group)
{
    const struct ta__model *model = groups->model;
    switch (groups->key) {
    case TA__KEY_TRACEBACK:
        return ta__traceback(model, TA__TRACEBACK_CONTEXT, group->number);
    case TA__KEY_LINENO:
        return ta__traceback(model, TA__TRACEBACK_LOCATION, group->number);
    case TA__KEY_DOMAIN:
        return ta__traceback(model, TA__TRACEBACK_NAME, model->domain_names[group->number]);
    case TA__KEY_THREAD:
        return ta__traceback(model, TA__TRACEBACK_NAME, model->thread_names[group->number]);
    default:
        return ta__traceback(model, TA__TRACEBACK_NAME, group->number);
    }
}

void ta__group_add_label(struct ta__text *text, const struct ta__groups *groups, const struct ta__group *group)
{
    struct ta_frame frame;
    if (ta_traceback_frame(ta__group_traceback(groups, group), 0, &frame) != 0)
        return;
    ta__text_add(text, frame.filename, frame.filename_length);
    if (groups->key <= TA__KEY_FILENAME)
        ta__text_add_format(text, ":%u", frame.lineno);
}
