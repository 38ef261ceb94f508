/* filter.c: a snapshot with fewer traces.
 *
 * A list of filters becomes one condition: (no inclusive filter, or any of them hits) and no exclusive one hits. */
#include <stdlib.h>
#include <string.h>

#include "analysis/filter/condition.h"
#include "analysis/analysis_domain.h"
#include "analysis/arrays.h"
#include "analysis/block_sizes.h"
#include "analysis/failure.h"
#include "snapshot/read/read.h"

/* min > max: never. Numbers that no line or domain can have are allowed and hit nothing. */
static void limit_to(struct ta__condition *condition, int64_t number)
{
    if (condition == NULL)
        return;
    condition->min = number < 0 ? 1 : (uint64_t)number;
    condition->max = number < 0 ? 0 : (uint64_t)number;
}

static struct ta__condition *domain_is(int64_t number)
{
    struct ta__condition *condition = ta__condition_number(TA__FIELD_DOMAIN, 0, 0);
    limit_to(condition, number);
    return condition;
}

static struct ta__condition *hit_of(const struct ta_filter *filter, size_t index)
{
    struct ta__condition *condition;
    enum ta__field field = filter->type == TA_FILTER_FUNCTION ? TA__FIELD_FUNCTION
                           : filter->type == TA_FILTER_MODULE ? TA__FIELD_MODULE
                                                              : TA__FIELD_FILE;
    switch (filter->type) {
    case TA_FILTER_DOMAIN:
        return domain_is(filter->domain);
    case TA_FILTER_SIZE:
        condition = ta__condition_number(TA__FIELD_SIZE, filter->min_size, filter->max_size);
        break;
    case TA_FILTER_FILENAME:
    case TA_FILTER_FUNCTION:
    case TA_FILTER_MODULE:
        if (filter->pattern == NULL) {
            ta__fail("filter %zu has no pattern", index);
            return NULL;
        }
        condition = ta__condition_frame(field, filter->pattern,
                                        filter->pattern_length != 0 ? filter->pattern_length : strlen(filter->pattern),
                                        filter->all_frames);
        if (filter->has_lineno)
            limit_to(condition, filter->lineno);
        break;
    default:
        ta__fail("filter %zu is of no known type", index);
        return NULL;
    }
    return filter->has_domain ? ta__condition_join(TA__CONDITION_AND, condition, domain_is(filter->domain)) : condition;
}

/* Adds a filter to those of its direction; 0 or -1. */
static int add_filter(struct ta__condition **either, const struct ta_filter *filter, size_t index)
{
    struct ta__condition *hit = hit_of(filter, index);
    if (hit == NULL)
        return -1;
    *either = *either == NULL ? hit : ta__condition_join(TA__CONDITION_OR, hit, *either);
    return *either == NULL ? -1 : 0;
}

static struct ta__condition *condition_of(const struct ta_filter *filters, size_t count)
{
    struct ta__condition *inclusive = NULL, *exclusive = NULL;
    if (filters == NULL && count > 0) {
        ta__fail("there are no filters: NULL");
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        if (add_filter(filters[i].inclusive ? &inclusive : &exclusive, &filters[i], i) != 0) {
            ta__condition_free(inclusive);
            ta__condition_free(exclusive);
            return NULL;
        }
    if (inclusive == NULL)
        inclusive = ta__condition_true();
    return exclusive == NULL ? inclusive
                             : ta__condition_join(TA__CONDITION_AND, inclusive, ta__condition_not(exclusive));
}

struct keeping {
    const struct ta__model *model;
    const struct ta__condition *condition;
    struct ta__view view; /* what is kept */
    struct ta__view_trace *traces;
    struct ta__view_block *blocks;
    uint32_t *number; /* of a live trace: its number among those that are kept, or TA__BLOCK_UNTRACED */
    struct ta__block_sizes sizes;
    int by_block; /* whether a block is kept depends on its own size */
};

/* Of a trace of which only some blocks are kept no more is known than these. */
static int keep_some(struct keeping *keeping, uint32_t index, struct ta__view_trace *kept)
{
    const struct ta__view_trace *trace = &keeping->model->view->traces[index];
    const struct ta__blocks *kinds;
    size_t count = ta__block_sizes_of(&keeping->sizes, index, &kinds), all = 1;
    *kept = *trace;
    kept->size = kept->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (ta__condition_holds_block(keeping->condition, keeping->model, trace, kinds[i].size)) {
            kept->size += kinds[i].size * kinds[i].count;
            kept->count += kinds[i].count;
        } else {
            all = 0;
        }
    }
    if (!all) {
        kept->allocated_bytes = kept->size;
        kept->allocated_blocks = kept->count;
        kept->peak_bytes = 0;
    }
    return kept->count > 0;
}

static void keep_traces(struct keeping *keeping)
{
    const struct ta__view *from = keeping->model->view;
    struct ta__view *view = &keeping->view;
    for (uint32_t i = 0; i < from->trace_count + from->gone_trace_count; i++) {
        struct ta__view_trace *to = &keeping->traces[view->trace_count + view->gone_trace_count];
        int is_live = i < from->trace_count, is_kept;
        if (keeping->by_block && is_live) {
            is_kept = keep_some(keeping, i, to);
        } else {
            is_kept = ta__condition_holds(keeping->condition, keeping->model, &from->traces[i]);
            *to = from->traces[i];
        }
        if (is_live)
            keeping->number[i] = is_kept ? view->trace_count : TA__BLOCK_UNTRACED;
        view->trace_count += is_kept && is_live;
        view->gone_trace_count += is_kept && !is_live;
    }
}

static void keep_blocks(struct keeping *keeping)
{
    const struct ta__view *from = keeping->model->view;
    struct ta__view *view = &keeping->view;
    for (uint32_t i = 0; i < from->block_count; i++) {
        struct ta__view_block block = from->blocks[i];
        if (block.trace >= from->trace_count || keeping->number[block.trace] == TA__BLOCK_UNTRACED ||
            (keeping->by_block && !ta__condition_holds_block(keeping->condition, keeping->model,
                                                             &from->traces[block.trace], ta__view_block_size(&block))))
            continue;
        block.trace = keeping->number[block.trace];
        keeping->blocks[view->block_count++] = block;
    }
}

/* The view of the original with other traces: copied by whoever makes a snapshot of it. */
static struct ta_snapshot *keep(const struct ta_snapshot *snapshot, const struct ta__model *model,
                                const struct ta__condition *condition)
{
    const struct ta__view *from = model->view;
    struct keeping keeping = {.model = model,
                              .condition = condition,
                              .view = *from,
                              .by_block = ta__view_is_exact(from) && ta__condition_asks_size(condition)};
    struct ta_snapshot *filtered = NULL;
    keeping.traces = ta__new_array((size_t)from->trace_count + from->gone_trace_count + 1, sizeof *keeping.traces);
    keeping.number = ta__new_array((size_t)from->trace_count + 1, sizeof *keeping.number);
    keeping.blocks = ta__new_array((size_t)from->block_count + 1, sizeof *keeping.blocks);
    if (keeping.traces != NULL && keeping.number != NULL && keeping.blocks != NULL &&
        (!keeping.by_block || ta__block_sizes_open(&keeping.sizes, from) == 0)) {
        keeping.view.traces = keeping.traces;
        keeping.view.blocks = keeping.blocks;
        keeping.view.trace_count = keeping.view.gone_trace_count = keeping.view.block_count = 0;
        keep_traces(&keeping);
        keep_blocks(&keeping);
        filtered = ta__snapshot_from_view(&keeping.view, snapshot);
    }
    ta__block_sizes_close(&keeping.sizes);
    free(keeping.traces);
    free(keeping.number);
    free(keeping.blocks);
    return filtered;
}

static struct ta_snapshot *filter_by(const struct ta_snapshot *snapshot, struct ta__condition *condition)
{
    struct ta_snapshot *filtered = NULL;
    const struct ta__model *model = condition == NULL ? NULL : ta__model_of(snapshot);
    if (model != NULL && ta__condition_prepare(condition, model) == 0)
        filtered = keep(snapshot, model, condition);
    ta__condition_free(condition);
    return filtered;
}

struct ta_snapshot *ta_snapshot_filter_traces(const struct ta_snapshot *snapshot, const struct ta_filter *filters,
                                              size_t count)
{
    return filter_by(snapshot, condition_of(filters, count));
}

struct ta_snapshot *ta_snapshot_filter_expression(const struct ta_snapshot *snapshot, const char *expression)
{
    TA__OWN_DOMAIN;
    return filter_by(snapshot, ta__condition_parse(expression == NULL ? "" : expression));
}

int ta_pattern_matches(const char *pattern, size_t pattern_length, const char *name, size_t name_length)
{
    struct ta__pattern compiled;
    if (ta__pattern_compile(&compiled, pattern, ta__pattern_normalized_length(pattern, pattern_length)) != 0)
        return -1;
    int matches = ta__pattern_matches(&compiled, name, ta__pattern_normalized_length(name, name_length));
    ta__pattern_free(&compiled);
    return matches;
}
