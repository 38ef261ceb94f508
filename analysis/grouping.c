/* grouping.c: see grouping.h.
 *
 * Every key has small dense numbers, so grouping is adding to arrays. Cumulative sums are taken on the tree of
 * contexts: what the traces below a context add up to is what each frame of that context gets, so that the depth of
 * the stacks costs nothing. */
#include "analysis/grouping.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"

#include <stdlib.h>
#include <string.h>

static const char *const key_names[] = {
    [TA__KEY_TRACEBACK] = "traceback", [TA__KEY_LINENO] = "lineno",   [TA__KEY_FILENAME] = "filename",
    [TA__KEY_FUNCTION] = "function",   [TA__KEY_MODULE] = "module",   [TA__KEY_DOMAIN] = "domain",
    [TA__KEY_THREAD] = "thread",       [TA__KEY_STACK] = "stack",     [TA__KEY_OWN] = "own",
    [TA__KEY_LINE] = "line",           [TA__KEY_PROCESS] = "process",
};

int ta__key_parse(const char *key_type, int cumulative, enum ta__key *key)
{
    size_t found = 0, count = sizeof key_names / sizeof *key_names;
    while (found < count && (key_type == NULL || strcmp(key_type, key_names[found]) != 0))
        found++;
    if (found == count)
        return ta__fail("unknown key_type: '%s'", key_type == NULL ? "" : key_type);
    *key = (enum ta__key)found;
    if (cumulative && (*key == TA__KEY_TRACEBACK || *key == TA__KEY_STACK || *key == TA__KEY_DOMAIN ||
                       *key == TA__KEY_THREAD || *key == TA__KEY_PROCESS))
        return ta__fail("cumulative mode cannot by used with key type '%s'", key_type);
    return 0;
}

/* TA__NO_KEY: the frame is in no group. */
static uint32_t number_of_logical(const struct ta__groups *groups, uint32_t index)
{
    const struct ta__model *model = groups->model;
    const struct ta__logical *logical = &model->logicals[index];
    switch (groups->key) {
    case TA__KEY_OWN:
    case TA__KEY_LINE:
        return groups->own->key_of_logical[index];
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

static uint32_t number_of_trace(const struct ta__groups *groups, const struct ta__view_trace *trace)
{
    enum ta__key key = groups->key;
    if (key >= TA__KEY_OWN)
        return groups->own->contexts[trace->context].key;
    if (key == TA__KEY_TRACEBACK || key == TA__KEY_STACK)
        return trace->context;
    if (key == TA__KEY_DOMAIN)
        return (uint32_t)ta__model_domain(groups->model, trace->domain);
    if (key == TA__KEY_THREAD || (key == TA__KEY_PROCESS && groups->model->has_processes))
        return trace->thread;
    if (key == TA__KEY_PROCESS)
        return 0;
    return number_of_logical(groups, ta__model_range(groups->model, trace->context).first);
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
        uint32_t number = number_of_trace(groups, trace);
        struct ta__group *group = group_of(groups, ranks[number], number);
        if (group == NULL)
            return -1;
        groups->group_of_trace[i] = (uint32_t)(group - groups->items);
        for (int value = 0; value < TA__VALUES; value++)
            group->sums[value] += value_of(trace, (enum ta__value)value);
    }
    return 0;
}

static int add_to_frames(struct ta__groups *groups, const uint32_t *ranks, struct ta__logical_range range,
                         enum ta__value value, ta__wide sum)
{
    for (uint32_t i = 0; i < range.count; i++) {
        uint32_t number = number_of_logical(groups, range.first + i);
        if (number == TA__NO_KEY)
            continue;
        struct ta__group *group = group_of(groups, ranks[number], number);
        if (group == NULL)
            return -1;
        group->sums[value] += sum;
    }
    return 0;
}

/* What a cumulative pass works with. */
struct cumulative {
    const uint32_t *ranks;
    ta__wide *sums;         /* by context: what the traces at it and below it add up to, one value at a time */
    unsigned char *reached; /* by context: there are such traces */
    /* Only when each trace counts once per group: */
    uint32_t *child, *sibling; /* by context; 0 = none */
    uint32_t *open;            /* by rank: frames on the way from the root to where the walk is */
};

/* Adds what is at a context to the groups of its frames that no frame further out is in. */
static int enter_once(struct ta__groups *groups, const struct cumulative *pass, uint32_t context, enum ta__value value)
{
    struct ta__logical_range range = ta__model_range(groups->model, context);
    for (uint32_t i = range.count; i-- > 0;) {
        uint32_t number = number_of_logical(groups, range.first + i);
        if (number == TA__NO_KEY || pass->open[pass->ranks[number]]++ > 0)
            continue;
        struct ta__group *group = group_of(groups, pass->ranks[number], number);
        if (group == NULL)
            return -1;
        group->sums[value] += pass->sums[context];
    }
    return 0;
}

static void leave_once(const struct ta__groups *groups, const struct cumulative *pass, uint32_t context)
{
    struct ta__logical_range range = ta__model_range(groups->model, context);
    for (uint32_t i = 0; i < range.count; i++) {
        uint32_t number = number_of_logical(groups, range.first + i);
        if (number != TA__NO_KEY)
            pass->open[pass->ranks[number]]--;
    }
}

/* A walk over the tree without recursion: stacks may be very deep. */
static int add_once(struct ta__groups *groups, const struct cumulative *pass, enum ta__value value)
{
    const struct ta__view *view = groups->model->view;
    uint32_t context = view->context_count > 0 ? pass->child[0] : 0;
    while (context != 0) {
        if (pass->reached[context] && enter_once(groups, pass, context, value) != 0)
            return -1;
        if (pass->reached[context] && pass->child[context] != 0) {
            context = pass->child[context];
            continue;
        }
        for (;;) {
            if (pass->reached[context])
                leave_once(groups, pass, context);
            if (pass->sibling[context] != 0) {
                context = pass->sibling[context];
                break;
            }
            context = view->contexts[context].parent;
            if (context == 0)
                break;
        }
    }
    return 0;
}

/* One value at a time: 16 bytes and one flag per context. */
static int add_cumulative(struct ta__groups *groups, const struct cumulative *pass, enum ta__value value)
{
    const uint32_t *ranks = pass->ranks;
    ta__wide *sums = pass->sums;
    unsigned char *reached = pass->reached;
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
        if (pass->open == NULL &&
            add_to_frames(groups, ranks, ta__model_range(model, context), value, sums[context]) != 0)
            return -1;
    }
    return pass->open != NULL ? add_once(groups, pass, value) : 0;
}

static int is_used(const struct ta__groups *groups, enum ta__value value)
{
    for (uint32_t i = 0; i < groups->trace_count; i++)
        if (value_of(&groups->model->view->traces[i], value) != 0)
            return 1;
    return 0;
}

/* The tree seen from above; children in the order of their numbers. */
static int prepare_once(struct cumulative *pass, const struct ta__view *view, size_t ranks)
{
    pass->child = ta__new_array((size_t)view->context_count + 1, sizeof *pass->child);
    pass->sibling = ta__new_array((size_t)view->context_count + 1, sizeof *pass->sibling);
    pass->open = ta__new_array(ranks, sizeof *pass->open);
    if (pass->child == NULL || pass->sibling == NULL || pass->open == NULL)
        return -1;
    for (uint32_t context = view->context_count; context-- > 1;) {
        uint32_t parent = view->contexts[context].parent;
        pass->sibling[context] = pass->child[parent];
        pass->child[parent] = context;
    }
    return 0;
}

static int add_all_cumulative(struct ta__groups *groups, const struct ta__ranking *ranking, size_t which, int mode)
{
    size_t contexts = (size_t)groups->model->view->context_count + 1;
    struct cumulative pass = {.ranks = ranking->ranks[which],
                              .sums = ta__new_array(contexts, sizeof *pass.sums),
                              .reached = ta__new_array(contexts, 1)};
    int status = pass.sums == NULL || pass.reached == NULL ? -1 : 0;
    if (status == 0 && mode == TA__CUMULATIVE_ONCE)
        status = prepare_once(&pass, groups->model->view, ranking->count);
    for (int value = 0; status == 0 && value < TA__VALUES; value++)
        if (value == TA__VALUE_SIZE || is_used(groups, (enum ta__value)value)) /* the size pass makes the groups */
            status = add_cumulative(groups, &pass, (enum ta__value)value);
    free(pass.sums);
    free(pass.reached);
    free(pass.child);
    free(pass.sibling);
    free(pass.open);
    return status;
}

int ta__groups_build(struct ta__groups *groups, const struct ta__model *model, const struct ta__ranking *ranking,
                     size_t which, int cumulative, enum ta__traces traces)
{
    *groups = (struct ta__groups){.model = model, .key = ranking->key, .trace_count = model->view->trace_count};
    if (traces == TA__TRACES_ALL)
        groups->trace_count += model->view->gone_trace_count;
    groups->own = ta__own_share(ranking->own[which]);
    groups->by_rank = ta__new_array(ranking->count, sizeof *groups->by_rank);
    if (!cumulative)
        groups->group_of_trace = ta__new_array(groups->trace_count, sizeof *groups->group_of_trace);
    int status = groups->by_rank == NULL || (!cumulative && groups->group_of_trace == NULL) ? -1 : 0;
    if (status == 0)
        status = cumulative ? add_all_cumulative(groups, ranking, which, cumulative)
                            : add_traces(groups, ranking->ranks[which]);
    if (status != 0)
        ta__groups_free(groups);
    return status;
}

void ta__groups_free(struct ta__groups *groups)
{
    free(groups->items);
    free(groups->by_rank);
    free(groups->group_of_trace);
    free(groups->first_trace);
    free(groups->next_trace);
    ta__own_release(groups->own);
    *groups = (struct ta__groups){0};
}

struct ta_traceback ta__group_traceback(const struct ta__groups *groups, const struct ta__group *group)
{
    const struct ta__model *model = groups->model;
    switch (groups->key) {
    case TA__KEY_TRACEBACK:
    case TA__KEY_STACK:
        return ta__traceback(model, TA__TRACEBACK_CONTEXT, group->number);
    case TA__KEY_LINENO:
        return ta__traceback(model, TA__TRACEBACK_LOCATION, group->number);
    case TA__KEY_OWN:
    case TA__KEY_LINE:
        return ta__own_traceback(groups->own, group->number);
    case TA__KEY_DOMAIN:
        return ta__traceback(model, TA__TRACEBACK_NAME, model->domain_names[group->number]);
    case TA__KEY_THREAD:
        return ta__traceback(model, TA__TRACEBACK_NAME, model->thread_names[group->number]);
    case TA__KEY_PROCESS:
        return ta__traceback(model, TA__TRACEBACK_NAME, model->process_names[group->number]);
    default:
        return ta__traceback(model, TA__TRACEBACK_NAME, group->number);
    }
}

void ta__group_add_label(struct ta__text *text, const struct ta__groups *groups, const struct ta__group *group)
{
    struct ta_frame frame;
    if (groups->key >= TA__KEY_OWN) {
        ta__own_add_label(text, groups->own, group->number);
        return;
    }
    if (ta_traceback_frame(ta__group_traceback(groups, group), 0, &frame) != 0)
        return;
    ta__text_add(text, frame.filename, frame.filename_length);
    if (groups->key <= TA__KEY_FILENAME || groups->key == TA__KEY_STACK)
        ta__text_add_format(text, ":%u", frame.lineno);
}
