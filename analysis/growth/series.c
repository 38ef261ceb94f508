/* series.c: the courses of all groups of a recording, from its entries to rows with a name for what they look like.
 *
 * Between changes.c, which keeps what each leaf's counters became, and shape.c. When a segment ends, the groups of its
 * leaves are known and the steps are added up. */
#include "analysis/growth/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/grouping.h"
#include "base/bytes.h"
#include "base/hash.h"

#define POINTS_MAX 1000
#define KEPT_LEAST 0.1 /* one block in a thousand may leak as well */

/* ---- rows ---- */

/* A line is one row, whichever of its functions stands for it. */
static const char *function_of(const struct ta_frame *frame)
{
    return frame->lineno > 0 ? "" : frame->function;
}

static uint64_t hash_of_frame(const struct ta_frame *frame)
{
    uint64_t hash = ta__hash_bytes(frame->filename, frame->filename_length);
    hash = ta__hash_roll(hash, ta__hash_bytes(function_of(frame), strlen(function_of(frame))));
    return ta__hash_word(ta__hash_roll(hash, frame->lineno));
}

static int same_frame(const struct ta_frame *a, const struct ta_frame *b)
{
    return ta_frame_equal(a, b) && strcmp(function_of(a), function_of(b)) == 0;
}

static int grow_slots(struct ta_series *series)
{
    if ((series->row_count + 1) * 2 <= series->slot_count)
        return 0;
    size_t count = series->slot_count == 0 ? 256 : series->slot_count * 2;
    uint32_t *slots = ta__new_array(count, sizeof *slots);
    if (slots == NULL)
        return -1;
    for (size_t i = 0; i < series->row_count; i++) {
        size_t at = hash_of_frame(&series->rows[i].frame) & (count - 1);
        while (slots[at] != 0)
            at = (at + 1) & (count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(series->slots);
    series->slots = slots;
    series->slot_count = count;
    return 0;
}

/* The frame outlives its snapshot: one piece of memory for its texts. */
static int copy_frame(struct ta__series_row *row, const struct ta_frame *frame)
{
    size_t lengths[4] = {frame->filename_length, strlen(frame->function), strlen(frame->raw_name),
                         strlen(frame->module)};
    const char *texts[4] = {frame->filename, frame->function, frame->raw_name, frame->module};
    char *at = ta__new_array(lengths[0] + lengths[1] + lengths[2] + lengths[3] + 4, 1);
    if (at == NULL)
        return -1;
    row->texts = at;
    row->frame = *frame;
    for (int i = 0; i < 4; i++) {
        memcpy(at, texts[i], lengths[i]);
        texts[i] = at;
        at += lengths[i] + 1;
    }
    row->frame.filename = texts[0];
    row->frame.function = texts[1];
    row->frame.raw_name = texts[2];
    row->frame.module = texts[3];
    return 0;
}

/* The row of a group: one and the same in all segments. */
static int row_of(struct ta_series *series, struct ta_traceback traceback, uint32_t *number)
{
    struct ta_frame frame = {.filename = "", .function = "", .raw_name = "", .module = ""};
    ta_traceback_frame(traceback, -1, &frame);
    if (grow_slots(series) != 0)
        return -1;
    size_t at = hash_of_frame(&frame) & (series->slot_count - 1);
    for (; series->slots[at] != 0; at = (at + 1) & (series->slot_count - 1)) {
        *number = series->slots[at] - 1;
        if (same_frame(&series->rows[*number].frame, &frame))
            return 0;
    }
    if (ta__grow(&series->rows, &series->row_capacity, series->row_count + 1, sizeof *series->rows) != 0)
        return -1;
    struct ta__series_row *row = &series->rows[series->row_count];
    *row = (struct ta__series_row){0};
    row->is_known = traceback.kind == TA__TRACEBACK_KNOWN;
    if (copy_frame(row, &frame) != 0)
        return -1;
    *number = (uint32_t)series->row_count++;
    series->slots[at] = *number + 1;
    return 0;
}

/* Zeroes up to the present number of points. */
static int extend_rows(struct ta_series *series)
{
    for (size_t i = 0; i < series->row_count; i++) {
        struct ta__series_row *row = &series->rows[i];
        size_t had = row->capacity;
        if (ta__grow(&row->values, &row->capacity, series->changes.point_count, sizeof *row->values) != 0)
            return -1;
        memset(row->values + had, 0, (row->capacity - had) * sizeof *row->values);
    }
    return 0;
}

/* ---- from changes to courses ---- */

/* Until the segment has ended, values are differences from one point to the next, which add up modulo 2^64. */
static void add_difference(struct ta__series_row *row, size_t point, const struct ta__change *now,
                           const struct ta__change *before)
{
    struct ta__series_value *value = &row->values[point];
    value->size += now->size - before->size;
    value->count += now->count - before->count;
    value->allocated_size += now->allocated_bytes - before->allocated_bytes;
    value->allocated_count += now->allocated_blocks - before->allocated_blocks;
}

/* The steps of the leaves of one segment on their way into rows. */
struct adding {
    struct ta_series *series;
    const uint32_t *traces, *row_of_trace;
    struct ta__lives lives; /* of the present leaf */
};

static int add_step(void *user, const struct ta__step *step)
{
    struct adding *adding = user;
    uint32_t trace = adding->traces[step->leaf];
    if (trace == TA__NO_TRACE)
        return 0;
    struct ta__series_row *row = &adding->series->rows[adding->row_of_trace[trace]];
    if (step->is_first)
        adding->lives = (struct ta__lives){.series = adding->series, .row = row};
    add_difference(row, step->point, step->now, step->before);
    if (step->forgets) {
        ta__lives_forget(&adding->lives);
        return 0;
    }
    return ta__lives_add(&adding->lives, step->now, step->before, step->is_known);
}

static void end_leaf(void *user, uint32_t leaf)
{
    struct adding *adding = user;
    if (adding->traces[leaf] != TA__NO_TRACE)
        ta__lives_end(&adding->lives);
}

static int add_leaves(struct ta_series *series, const uint32_t *traces, const uint32_t *row_of_trace)
{
    static const struct ta__step_reader reader = {add_step, end_leaf};
    struct adding adding = {.series = series, .traces = traces, .row_of_trace = row_of_trace};
    return ta__changes_steps(&series->changes, &reader, &adding);
}

/* A snapshot that was built from data has no leaves: its traces stand at its only point. */
static int add_data(struct ta_series *series, const struct ta__view *view, const uint32_t *row_of_trace)
{
    static const struct ta__change nothing;
    for (uint32_t i = 0; i < view->trace_count; i++) {
        const struct ta__view_trace *trace = &view->traces[i];
        const struct ta__change now = {0,
                                       (uint32_t)(series->changes.point_count - 1),
                                       trace->size,
                                       trace->count,
                                       trace->allocated_bytes,
                                       trace->allocated_blocks};
        add_difference(&series->rows[row_of_trace[i]], now.point, &now, &nothing);
    }
    return 0;
}

static void add_up(struct ta_series *series)
{
    for (size_t i = 0; i < series->row_count; i++) {
        struct ta__series_value *values = series->rows[i].values;
        for (size_t p = series->changes.first_point + 1; p < series->changes.point_count; p++) {
            values[p].size += values[p - 1].size;
            values[p].count += values[p - 1].count;
            values[p].allocated_size += values[p - 1].allocated_size;
            values[p].allocated_count += values[p - 1].allocated_count;
        }
    }
}

static int add_segment(struct ta_series *series, struct ta_snapshot *snapshot, const uint32_t *traces,
                       size_t leaf_count)
{
    const struct ta__model *model = ta__model_of(snapshot);
    struct ta__ranking ranking;
    struct ta__groups groups;
    if (model == NULL || ta__ranking_build(&ranking, series->key, &model, 1) != 0)
        return -1;
    int status = ta__groups_build(&groups, model, &ranking, 0, TA__NOT_CUMULATIVE, TA__TRACES_ALL);
    ta__ranking_free(&ranking);
    if (status != 0)
        return -1;
    uint32_t *rows = ta__new_array(groups.count, sizeof *rows);
    uint32_t *row_of_trace = ta__new_array(groups.trace_count, sizeof *row_of_trace);
    status = rows == NULL || row_of_trace == NULL ? -1 : 0;
    for (size_t i = 0; i < groups.count && status == 0; i++)
        status = row_of(series, ta__group_traceback(&groups, &groups.items[i]), &rows[i]);
    for (size_t i = 0; i < groups.trace_count && status == 0; i++)
        row_of_trace[i] = rows[groups.group_of_trace[i]];
    if (status == 0)
        status = extend_rows(series);
    if (status == 0)
        status =
            leaf_count == 0 ? add_data(series, model->view, row_of_trace) : add_leaves(series, traces, row_of_trace);
    if (status == 0)
        add_up(series);
    free(rows);
    free(row_of_trace);
    ta__groups_free(&groups);
    return status;
}

static int end(void *user, struct ta_snapshot *snapshot, const uint32_t *traces, size_t leaf_count)
{
    struct ta_series *series = user;
    int status = series->rules == NULL ? 0 : ta_snapshot_set_own_rules(snapshot, series->rules);
    if (status == 0)
        status = add_segment(series, snapshot, traces, leaf_count);
    ta_snapshot_free(snapshot);
    return status;
}

/* ---- rows in order ---- */

static void total_up(struct ta_series *series)
{
    for (size_t i = 0; i < series->row_count; i++)
        for (size_t p = 0; p < series->changes.point_count; p++) {
            series->changes.points[p].size += series->rows[i].values[p].size;
            series->changes.points[p].count += series->rows[i].values[p].count;
            series->changes.points[p].allocated_count += series->rows[i].values[p].allocated_count;
        }
}

/* What it grew, weighed by how sure that is and by the share of what was asked for that stays: a place that keeps every
 * byte is a leak before one that keeps some, which may only have grown with it. */
static double leak_score(const struct ta_series_row *row)
{
    double kept = row->allocated_size > 0 ? (double)row->size / (double)row->allocated_size : 1;
    return (double)row->grown_size * row->certainty * (kept < KEPT_LEAST ? KEPT_LEAST : kept);
}

/* Growth first, then what grew until it was freed at exit, what no one can tell, and the others as they are listed. */
static int rank_of(const struct ta_series_row *row)
{
    if (row->growth <= TA_GROWTH_UNSURE)
        return 0;
    if (row->growth == TA_GROWTH_FREED && row->grown_size > 0)
        return 1;
    return row->growth == TA_GROWTH_UNKNOWN ? 2 : (int)row->growth;
}

/* Growth by its score; then the others by kind and size. */
static int compare_rows(const void *a, const void *b)
{
    const struct ta_series_row *x = &((const struct ta__series_row *)a)->told;
    const struct ta_series_row *y = &((const struct ta__series_row *)b)->told;
    int x_kind = rank_of(x), y_kind = rank_of(y);
    double x_score = leak_score(x), y_score = leak_score(y);
    if (x_kind != y_kind)
        return x_kind - y_kind;
    if (x_kind <= 1 && x_score != y_score)
        return x_score > y_score ? -1 : 1;
    if (x->peak_size != y->peak_size)
        return x->peak_size > y->peak_size ? -1 : 1;
    return ta_frame_compare(&x->frame, &y->frame);
}

static void name_row(struct ta__clock *clock, struct ta__series_row *row)
{
    ta__clock_name(clock, row);
    if (!row->is_known || row->told.growth > TA_GROWTH_PLATEAU)
        return;
    row->told.growth = TA_GROWTH_START;
    row->told.grown_size = 0;
    row->told.bytes_per_minute = row->told.bytes_per_call = 0;
    snprintf(row->told.reason, sizeof row->told.reason, "the library keeps it as long as the program runs");
}

static int name_rows(struct ta_series *series)
{
    struct ta__clock clock;
    if (ta__clock_open(&clock, series) != 0)
        return -1;
    for (size_t i = 0; i < series->row_count; i++)
        name_row(&clock, &series->rows[i]);
    ta__clock_close(&clock);
    return ta__sort(series->rows, series->row_count, sizeof *series->rows, compare_rows);
}

/* Rules that every segment shares; those that have not learned yet learn from the last entry. */
static int learn(struct ta_series *series, const char *path, struct ta_own_rules *rules)
{
    if (rules != NULL && rules->has_learned) {
        series->rules = ta__own_rules_share(rules);
        return 0;
    }
    struct ta_snapshot *last = ta_snapshot_load(path);
    if (last == NULL)
        return -1;
    series->rules = ta__own_rules_copy(rules);
    int status = series->rules == NULL ? -1 : ta_own_rules_learn(series->rules, last);
    ta_snapshot_free(last);
    return status;
}

struct ta_series *ta_series_load(const char *path, const char *key_type, struct ta_own_rules *rules)
{
    enum ta__key key;
    if (ta__key_parse(key_type, 0, &key) != 0)
        return NULL;
    if (key == TA__KEY_TRACEBACK || key == TA__KEY_STACK) {
        ta__fail("courses have no key 'traceback'");
        return NULL;
    }
    struct ta_series *series = ta__new_array(1, sizeof *series);
    if (series == NULL)
        return NULL;
    series->key = key;
    int status = key == TA__KEY_OWN ? learn(series, path, rules) : 0;
    if (status == 0)
        status = ta__changes_follow(&series->changes, path, POINTS_MAX, end, series);
    if (status == 0)
        status = extend_rows(series);
    if (status == 0) {
        total_up(series);
        status = name_rows(series);
    }
    if (status == 0)
        return series;
    ta_series_free(series);
    return NULL;
}

void ta_series_free(struct ta_series *series)
{
    if (series == NULL)
        return;
    for (size_t i = 0; i < series->row_count; i++) {
        free(series->rows[i].texts);
        free(series->rows[i].values);
    }
    ta_own_rules_free(series->rules);
    ta__changes_free(&series->changes);
    free(series->rows);
    free(series->slots);
    free(series);
}

/* ---- answers ---- */

size_t ta_series_entry_count(const struct ta_series *series)
{
    return series == NULL ? 0 : series->changes.point_count;
}

int ta_series_get_entry(const struct ta_series *series, size_t index, struct ta_series_entry *entry, size_t size)
{
    if (index >= ta_series_entry_count(series))
        return ta__fail("no entry %zu: there are %zu", index, ta_series_entry_count(series));
    ta__fill(entry, size, &series->changes.points[index], sizeof *entry);
    return 0;
}

size_t ta_series_row_count(const struct ta_series *series)
{
    return series == NULL ? 0 : series->row_count;
}

int ta_series_get_row(const struct ta_series *series, size_t index, struct ta_series_row *row, size_t size)
{
    if (index >= ta_series_row_count(series))
        return ta__fail("no row %zu: there are %zu", index, ta_series_row_count(series));
    ta__fill(row, size, &series->rows[index].told, sizeof *row);
    return 0;
}

size_t ta_series_course(const struct ta_series *series, size_t index, uint64_t *sizes, uint64_t *counts, size_t max)
{
    if (index >= ta_series_row_count(series))
        return 0;
    for (size_t i = 0; i < series->changes.point_count && i < max; i++) {
        sizes[i] = series->rows[index].values[i].size;
        if (counts != NULL)
            counts[i] = series->rows[index].values[i].count;
    }
    return series->changes.point_count;
}
