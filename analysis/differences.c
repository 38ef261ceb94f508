/* differences.c: what changed between two snapshots, group by group. */
#include <stdlib.h>

#include "analysis/number_sort.h"
#include "analysis/size_text.h"
#include "analysis/statistics.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"

ta__wide ta__difference_new(const struct ta__difference *row, enum ta__value value)
{
    return row->new_group == NULL ? 0 : row->new_group->sums[value];
}

ta__signed_wide ta__difference_signed(const struct ta__difference *row, enum ta__value value)
{
    ta__wide old_value = row->old_group == NULL ? 0 : row->old_group->sums[value];
    return (ta__signed_wide)(ta__difference_new(row, value) - old_value);
}

struct ta_traceback ta__difference_traceback(const struct ta_differences *differences, const struct ta__difference *row)
{
    return row->new_group != NULL ? ta__group_traceback(&differences->new_groups, row->new_group)
                                  : ta__group_traceback(&differences->old_groups, row->old_group);
}

static int descending(ta__signed_wide a, ta__signed_wide b)
{
    return a > b ? -1 : a < b;
}

static ta__signed_wide absolute(ta__signed_wide value)
{
    return value < 0 ? -value : value;
}

static uint32_t rank_of(const struct ta__difference *row)
{
    return row->new_group != NULL ? row->new_group->rank : row->old_group->rank;
}

/* |size_diff|, size, |count_diff|, count, key, all descending. */
static int compare_default(const void *a, const void *b)
{
    const struct ta__difference *x = a, *y = b;
    int order = descending(absolute(ta__difference_signed(x, TA__VALUE_SIZE)),
                           absolute(ta__difference_signed(y, TA__VALUE_SIZE)));
    if (order == 0)
        order = descending((ta__signed_wide)ta__difference_new(x, TA__VALUE_SIZE),
                           (ta__signed_wide)ta__difference_new(y, TA__VALUE_SIZE));
    if (order == 0)
        order = descending(absolute(ta__difference_signed(x, TA__VALUE_COUNT)),
                           absolute(ta__difference_signed(y, TA__VALUE_COUNT)));
    if (order == 0)
        order = descending((ta__signed_wide)ta__difference_new(x, TA__VALUE_COUNT),
                           (ta__signed_wide)ta__difference_new(y, TA__VALUE_COUNT));
    return order != 0 ? order : descending(rank_of(x), rank_of(y));
}

/* The same where no sum is beyond 64 bits. */
static uint64_t default_key(const void *user, uint32_t item, unsigned k)
{
    const struct ta__difference *row = &((const struct ta_differences *)user)->rows[item];
    switch (k) {
    case 0:
        return ~(uint64_t)absolute(ta__difference_signed(row, TA__VALUE_SIZE));
    case 1:
        return ~(uint64_t)ta__difference_new(row, TA__VALUE_SIZE);
    case 2:
        return ~(uint64_t)absolute(ta__difference_signed(row, TA__VALUE_COUNT));
    case 3:
        return ~(uint64_t)ta__difference_new(row, TA__VALUE_COUNT);
    default:
        return UINT32_MAX - rank_of(row);
    }
}

static int is_large(const struct ta__group *group)
{
    return group != NULL && (group->sums[TA__VALUE_SIZE] > UINT64_MAX || group->sums[TA__VALUE_COUNT] > UINT64_MAX);
}

static int sort_default(struct ta_differences *differences)
{
    for (size_t i = 0; i < differences->count; i++)
        if (is_large(differences->rows[i].new_group) || is_large(differences->rows[i].old_group))
            return ta__sort(differences->rows, differences->count, sizeof *differences->rows, compare_default);
    uint32_t *order = ta__order_by_keys(differences, differences->count, 5, default_key);
    struct ta__difference *rows = order == NULL ? NULL : ta__new_array(differences->count, sizeof *differences->rows);
    for (size_t i = 0; rows != NULL && i < differences->count; i++)
        rows[i] = differences->rows[order[i]];
    free(order);
    if (rows == NULL)
        return -1;
    free(differences->rows);
    differences->rows = rows;
    return 0;
}

static int join(struct ta_differences *differences)
{
    const struct ta__groups *new_groups = &differences->new_groups, *old_groups = &differences->old_groups;
    differences->rows = ta__new_array(new_groups->count + old_groups->count, sizeof *differences->rows);
    if (differences->rows == NULL)
        return -1;
    for (size_t i = 0; i < new_groups->count; i++) {
        const struct ta__group *group = &new_groups->items[i];
        uint32_t old = old_groups->by_rank[group->rank];
        differences->rows[differences->count++] =
            (struct ta__difference){group, old == 0 ? NULL : &old_groups->items[old - 1]};
    }
    for (size_t i = 0; i < old_groups->count; i++)
        if (new_groups->by_rank[old_groups->items[i].rank] == 0)
            differences->rows[differences->count++] = (struct ta__difference){NULL, &old_groups->items[i]};
    return ta_differences_sort(differences, TA_ORDER_DEFAULT);
}

struct ta_differences *ta_snapshot_compare_to(const struct ta_snapshot *snapshot,
                                              const struct ta_snapshot *old_snapshot, const char *key_type,
                                              int cumulative)
{
    enum ta__key key;
    struct ta__ranking ranking;
    if (ta__key_parse(key_type, cumulative, &key) != 0)
        return NULL;
    const struct ta__model *models[2] = {ta__model_of(snapshot), NULL};
    if (models[0] != NULL)
        models[1] = ta__model_of(old_snapshot);
    struct ta_differences *differences = models[1] == NULL ? NULL : ta__new_array(1, sizeof *differences);
    if (differences == NULL)
        return NULL;
    if (ta__ranking_build(&ranking, key, models, 2) != 0) {
        free(differences);
        return NULL;
    }
    int status = ta__groups_build(&differences->new_groups, models[0], &ranking, 0, cumulative, TA__TRACES_LIVE);
    if (status == 0)
        status = ta__groups_build(&differences->old_groups, models[1], &ranking, 1, cumulative, TA__TRACES_LIVE);
    ta__ranking_free(&ranking);
    if (status != 0 || join(differences) != 0) {
        ta_differences_free(differences);
        return NULL;
    }
    return differences;
}

size_t ta_differences_count(const struct ta_differences *differences)
{
    return differences == NULL ? 0 : differences->count;
}

int ta_differences_get(const struct ta_differences *differences, size_t index, struct ta_statistic_diff *diff)
{
    if (index >= ta_differences_count(differences))
        return ta__fail("no difference %zu: there are %zu", index, ta_differences_count(differences));
    const struct ta__difference *row = &differences->rows[index];
    *diff = (struct ta_statistic_diff){
        .traceback = ta__difference_traceback(differences, row),
        .size = ta__saturate(ta__difference_new(row, TA__VALUE_SIZE)),
        .count = ta__saturate(ta__difference_new(row, TA__VALUE_COUNT)),
        .size_diff = ta__saturate_signed(ta__difference_signed(row, TA__VALUE_SIZE)),
        .count_diff = ta__saturate_signed(ta__difference_signed(row, TA__VALUE_COUNT)),
        .allocated_size = ta__saturate(ta__difference_new(row, TA__VALUE_ALLOCATED_SIZE)),
        .allocated_count = ta__saturate(ta__difference_new(row, TA__VALUE_ALLOCATED_COUNT)),
        .allocated_size_diff = ta__saturate_signed(ta__difference_signed(row, TA__VALUE_ALLOCATED_SIZE)),
        .allocated_count_diff = ta__saturate_signed(ta__difference_signed(row, TA__VALUE_ALLOCATED_COUNT)),
    };
    return 0;
}

static void add_signed(struct ta__text *text, ta__signed_wide value)
{
    ta__text_add_string(text, value < 0 ? "-" : "+");
    ta__text_add_wide(text, (ta__wide)absolute(value));
}

void ta__differences_add_text(struct ta__text *text, const struct ta_differences *differences, size_t index)
{
    const struct ta__difference *row = &differences->rows[index];
    ta__wide size = ta__difference_new(row, TA__VALUE_SIZE), count = ta__difference_new(row, TA__VALUE_COUNT);
    if (row->new_group != NULL)
        ta__group_add_label(text, &differences->new_groups, row->new_group);
    else
        ta__group_add_label(text, &differences->old_groups, row->old_group);
    ta__text_add_string(text, ": size=");
    ta__size_text_add(text, (double)size, 0);
    ta__text_add_string(text, " (");
    ta__size_text_add(text, (double)ta__difference_signed(row, TA__VALUE_SIZE), 1);
    ta__text_add_string(text, "), count=");
    ta__text_add_wide(text, count);
    ta__text_add_string(text, " (");
    add_signed(text, ta__difference_signed(row, TA__VALUE_COUNT));
    ta__text_add_string(text, ")");
    if (count != 0) {
        ta__text_add_string(text, ", average=");
        ta__size_text_add(text, ta__average(size, count), 0);
    }
}

size_t ta_differences_text(const struct ta_differences *differences, size_t index, char *out, size_t size)
{
    struct ta__text text = {0};
    if (index < differences->count)
        ta__differences_add_text(&text, differences, index);
    return ta__text_deliver(&text, out, size);
}

/* ---- other orders ---- */

static int by_new(const void *a, const void *b, enum ta__value value)
{
    return descending((ta__signed_wide)ta__difference_new(a, value), (ta__signed_wide)ta__difference_new(b, value));
}

static int compare_count(const void *a, const void *b)
{
    return by_new(a, b, TA__VALUE_COUNT);
}

static int compare_allocated_size(const void *a, const void *b)
{
    return by_new(a, b, TA__VALUE_ALLOCATED_SIZE);
}

static int compare_allocated_count(const void *a, const void *b)
{
    return by_new(a, b, TA__VALUE_ALLOCATED_COUNT);
}

static int compare_peak(const void *a, const void *b)
{
    return by_new(a, b, TA__VALUE_PEAK_SIZE);
}

static int compare_growth(const void *a, const void *b)
{
    return descending(ta__difference_signed(a, TA__VALUE_SIZE), ta__difference_signed(b, TA__VALUE_SIZE));
}

static int compare_released(const void *a, const void *b)
{
    return compare_growth(b, a);
}

int ta_differences_sort(struct ta_differences *differences, enum ta_order order)
{
    static int (*const by_order[])(const void *, const void *) = {
        [TA_ORDER_COUNT] = compare_count,
        [TA_ORDER_ALLOCATED_SIZE] = compare_allocated_size,
        [TA_ORDER_ALLOCATED_COUNT] = compare_allocated_count,
        [TA_ORDER_PEAK] = compare_peak,
        [TA_ORDER_GROWTH] = compare_growth,
        [TA_ORDER_RELEASED] = compare_released,
    };
    if (order == TA_ORDER_DEFAULT)
        return sort_default(differences);
    if ((unsigned)order > TA_ORDER_RELEASED)
        return ta__fail("unknown order: %d", (int)order);
    if (by_order[order] == NULL)
        return ta__fail("this order is for statistics only");
    return ta__sort(differences->rows, differences->count, sizeof *differences->rows, by_order[order]);
}

void ta_differences_free(struct ta_differences *differences)
{
    if (differences == NULL)
        return;
    ta__groups_free(&differences->new_groups);
    ta__groups_free(&differences->old_groups);
    free(differences->rows);
    free(differences);
}
