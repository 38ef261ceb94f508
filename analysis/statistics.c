/* statistics.c: the answer to "what holds the memory": groups in order, with their texts. */
#include "analysis/statistics.h"

#include <stdlib.h>

#include "analysis/number_sort.h"
#include "analysis/size_text.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"

static int compare_wide(ta__wide a, ta__wide b)
{
    return a < b ? -1 : a > b;
}

/* Size, count, key, all descending; where no sum is beyond 64 bits. */
static uint64_t default_key(const void *user, uint32_t item, unsigned k)
{
    const struct ta__group *group = &((const struct ta__groups *)user)->items[item];
    return k == 0   ? ~ta__saturate(group->sums[TA__VALUE_SIZE])
           : k == 1 ? ~ta__saturate(group->sums[TA__VALUE_COUNT])
                    : UINT32_MAX - group->rank;
}

/* The same for sums of any size: size, count, key, all descending. */
static int compare_default(const void *a, const void *b)
{
    const struct ta__group *x = *(const struct ta__group *const *)a, *y = *(const struct ta__group *const *)b;
    int order = compare_wide(y->sums[TA__VALUE_SIZE], x->sums[TA__VALUE_SIZE]);
    if (order == 0)
        order = compare_wide(y->sums[TA__VALUE_COUNT], x->sums[TA__VALUE_COUNT]);
    return order != 0 ? order : x->rank < y->rank ? 1 : x->rank > y->rank ? -1 : 0;
}

static int sort_default(struct ta_statistics *statistics)
{
    const struct ta__groups *groups = &statistics->groups;
    int saturated = 0;
    for (size_t i = 0; i < groups->count; i++) {
        const struct ta__group *group = &groups->items[i];
        saturated |= group->sums[TA__VALUE_SIZE] > UINT64_MAX || group->sums[TA__VALUE_COUNT] > UINT64_MAX;
        statistics->rows[i] = group;
    }
    if (saturated)
        return ta__sort(statistics->rows, groups->count, sizeof *statistics->rows, compare_default);
    uint32_t *order = ta__order_by_keys(groups, groups->count, 3, default_key);
    for (size_t i = 0; order != NULL && i < groups->count; i++)
        statistics->rows[i] = &groups->items[order[i]];
    free(order);
    return order == NULL ? -1 : 0;
}

static struct ta_statistics *make(const struct ta_snapshot *snapshot, const char *key_type, int cumulative,
                                  enum ta__traces which)
{
    enum ta__key key;
    struct ta__ranking ranking;
    if (ta__key_parse(key_type, cumulative, &key) != 0)
        return NULL;
    const struct ta__model *model = ta__model_of(snapshot);
    struct ta_statistics *statistics = model == NULL ? NULL : ta__new_array(1, sizeof *statistics);
    if (statistics == NULL)
        return NULL;
    if (ta__ranking_build(&ranking, key, &model, 1) != 0) {
        free(statistics);
        return NULL;
    }
    int status = ta__groups_build(&statistics->groups, model, &ranking, 0, cumulative, which);
    ta__ranking_free(&ranking);
    if (status == 0) {
        statistics->rows = ta__new_array(statistics->groups.count, sizeof *statistics->rows);
        status = statistics->rows == NULL ? -1 : ta_statistics_sort(statistics, TA_ORDER_DEFAULT);
    }
    if (status != 0) {
        ta_statistics_free(statistics);
        return NULL;
    }
    return statistics;
}

struct ta_statistics *ta_snapshot_statistics(const struct ta_snapshot *snapshot, const char *key_type, int cumulative)
{
    return make(snapshot, key_type, cumulative, TA__TRACES_LIVE);
}

struct ta_statistics *ta_snapshot_churn(const struct ta_snapshot *snapshot, const char *key_type, int cumulative)
{
    return make(snapshot, key_type, cumulative, TA__TRACES_ALL);
}

struct ta_statistics *ta_group_by_own(const struct ta_snapshot *snapshot, int with_gone)
{
    return make(snapshot, "own", 0, with_gone ? TA__TRACES_ALL : TA__TRACES_LIVE);
}

size_t ta_statistics_count(const struct ta_statistics *statistics)
{
    return statistics == NULL ? 0 : statistics->groups.count;
}

static struct ta_statistic make_row(const ta__wide *sums, struct ta_traceback traceback)
{
    ta__wide allocated = sums[TA__VALUE_ALLOCATED_COUNT], live = sums[TA__VALUE_COUNT];
    return (struct ta_statistic){
        .traceback = traceback,
        .size = ta__saturate(sums[TA__VALUE_SIZE]),
        .count = ta__saturate(live),
        .allocated_size = ta__saturate(sums[TA__VALUE_ALLOCATED_SIZE]),
        .allocated_count = ta__saturate(allocated),
        .peak_size = ta__saturate(sums[TA__VALUE_PEAK_SIZE]),
        .temporary_share = allocated > live ? (double)(allocated - live) / (double)allocated : 0,
    };
}

int ta_statistics_get(const struct ta_statistics *statistics, size_t index, struct ta_statistic *statistic)
{
    if (index >= ta_statistics_count(statistics))
        return ta__fail("no statistic %zu: there are %zu", index, ta_statistics_count(statistics));
    const struct ta__group *group = statistics->rows[index];
    *statistic = make_row(group->sums, ta__group_traceback(&statistics->groups, group));
    return 0;
}

long ta_statistics_row_of(const struct ta_statistics *statistics, size_t trace)
{
    const struct ta__groups *groups = &statistics->groups;
    if (groups->group_of_trace == NULL || trace >= groups->trace_count)
        return -1;
    const struct ta__group *group = &groups->items[groups->group_of_trace[trace]];
    for (size_t row = 0; row < groups->count; row++)
        if (statistics->rows[row] == group)
            return (long)row;
    return -1;
}

void ta_statistics_total(const struct ta_statistics *statistics, struct ta_statistic *total)
{
    const struct ta__view *view = statistics->groups.model->view;
    ta__wide sums[TA__VALUES] = {0};
    for (uint32_t i = 0; i < statistics->groups.trace_count; i++) {
        sums[TA__VALUE_SIZE] += view->traces[i].size;
        sums[TA__VALUE_COUNT] += view->traces[i].count;
        sums[TA__VALUE_ALLOCATED_SIZE] += view->traces[i].allocated_bytes;
        sums[TA__VALUE_ALLOCATED_COUNT] += view->traces[i].allocated_blocks;
        sums[TA__VALUE_PEAK_SIZE] += view->traces[i].peak_bytes;
    }
    *total = make_row(sums, (struct ta_traceback){.total_nframe = -1, .kind = TA__TRACEBACK_EMPTY});
}

void ta__statistics_add_text(struct ta__text *text, const struct ta_statistics *statistics, size_t index)
{
    const struct ta__group *group = statistics->rows[index];
    ta__wide size = group->sums[TA__VALUE_SIZE], count = group->sums[TA__VALUE_COUNT];
    ta__group_add_label(text, &statistics->groups, group);
    ta__text_add_string(text, ": size=");
    ta__size_text_add(text, (double)size, 0);
    ta__text_add_string(text, ", count=");
    ta__text_add_wide(text, count);
    if (count != 0) {
        ta__text_add_string(text, ", average=");
        ta__size_text_add(text, ta__average(size, count), 0);
    }
}

size_t ta_statistics_text(const struct ta_statistics *statistics, size_t index, char *out, size_t size)
{
    struct ta__text text = {0};
    if (index < statistics->groups.count)
        ta__statistics_add_text(&text, statistics, index);
    return ta__text_deliver(&text, out, size);
}

/* ---- other orders ---- */

static int descending_by(const void *a, const void *b, enum ta__value value)
{
    const struct ta__group *x = *(const struct ta__group *const *)a, *y = *(const struct ta__group *const *)b;
    return compare_wide(y->sums[value], x->sums[value]);
}

static int compare_count(const void *a, const void *b)
{
    return descending_by(a, b, TA__VALUE_COUNT);
}

static int compare_allocated_size(const void *a, const void *b)
{
    return descending_by(a, b, TA__VALUE_ALLOCATED_SIZE);
}

static int compare_allocated_count(const void *a, const void *b)
{
    return descending_by(a, b, TA__VALUE_ALLOCATED_COUNT);
}

static int compare_peak(const void *a, const void *b)
{
    return descending_by(a, b, TA__VALUE_PEAK_SIZE);
}

static ta__wide temporary(const struct ta__group *group)
{
    ta__wide allocated = group->sums[TA__VALUE_ALLOCATED_COUNT], live = group->sums[TA__VALUE_COUNT];
    return allocated > live ? allocated - live : 0;
}

static int compare_temporary(const void *a, const void *b)
{
    return compare_wide(temporary(*(const struct ta__group *const *)b), temporary(*(const struct ta__group *const *)a));
}

int ta_statistics_sort(struct ta_statistics *statistics, enum ta_order order)
{
    static int (*const by_order[TA_ORDER_RELEASED + 1])(const void *, const void *) = {
        [TA_ORDER_COUNT] = compare_count,
        [TA_ORDER_ALLOCATED_SIZE] = compare_allocated_size,
        [TA_ORDER_ALLOCATED_COUNT] = compare_allocated_count,
        [TA_ORDER_TEMPORARY] = compare_temporary,
        [TA_ORDER_PEAK] = compare_peak,
    };
    if (order == TA_ORDER_DEFAULT)
        return sort_default(statistics);
    if ((unsigned)order > TA_ORDER_RELEASED)
        return ta__fail("unknown order: %d", (int)order);
    if (by_order[order] == NULL)
        return ta__fail("this order is for differences only");
    return ta__sort(statistics->rows, statistics->groups.count, sizeof *statistics->rows, by_order[order]);
}

void ta_statistics_free(struct ta_statistics *statistics)
{
    if (statistics == NULL)
        return;
    ta__groups_free(&statistics->groups);
    free(statistics->rows);
    free(statistics);
}
