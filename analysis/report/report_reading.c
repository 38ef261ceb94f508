/* report_reading.c: recordings become tables, points and changes of a report. See report.h. */
#include "analysis/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growth/changes.h"
#include "analysis/model.h"
#include "analysis/own/own_keys.h"

#define POINTS_MAX 600

/* One recording while it is read. */
struct reading {
    struct ta__report *report;
    struct ta__report_recording *recording;
    struct ta__changes changes;
    size_t first_change; /* of the report's, that is this recording's */

    /* Of the present segment. */
    const struct ta__model *model;
    struct ta__own *own;
    const uint32_t *leaf_traces; /* by leaf: the trace of the model */
    uint32_t *traces;            /* by trace of the model: the trace of the report */
};

/* The live ones, and those of which only the history is left. */
static uint32_t all_traces(const struct ta__view *view)
{
    return view->trace_count + view->gone_trace_count;
}

/* ---- a model's stacks as nodes ---- */

/* By logical frame: the report's frame. */
static uint32_t *make_frames(struct reading *reading)
{
    const struct ta__model *model = reading->model;
    uint32_t *frames = ta__new_array(model->logical_count, sizeof *frames);
    struct ta__own_judge *judge = ta__own_judge_new(model, reading->report->rules);
    int status = frames == NULL || judge == NULL ? -1 : 0;
    for (uint32_t i = 0; i < model->logical_count && status == 0; i++) {
        struct ta_frame frame;
        ta__model_frame(model, i, &frame);
        int is_own = ta__own_judge_frame(judge, &model->logicals[i]) == TA__FRAME_OWN;
        status = ta__report_frame(&reading->report->tables, &frame, is_own, &frames[i]);
    }
    ta__own_judge_free(judge);
    if (status == 0)
        return frames;
    free(frames);
    return NULL;
}

/* Marks the contexts that traces have, and those that they were called from. */
static unsigned char *find_used(const struct ta__model *model)
{
    const struct ta__view *view = model->view;
    unsigned char *used = ta__new_array((size_t)view->context_count + 1, 1);
    if (used == NULL)
        return NULL;
    for (uint32_t i = 0; i < all_traces(view); i++)
        used[view->traces[i].context] = 1;
    for (uint32_t context = view->context_count; context-- > 1;)
        if (used[context])
            used[view->contexts[context].parent] = 1;
    return used;
}

static int add_nodes(struct reading *reading, uint32_t context, const uint32_t *frames, uint32_t *node)
{
    struct ta__logical_range range = ta__model_range(reading->model, context);
    int status = 0;
    for (uint32_t i = range.count; i-- > 0 && status == 0;)
        status = ta__report_node(&reading->report->tables, *node, frames[range.first + i], node);
    return status;
}

/* By context: the report's node. */
static uint32_t *make_nodes(struct reading *reading)
{
    const struct ta__view *view = reading->model->view;
    uint32_t *frames = make_frames(reading), *nodes = ta__new_array((size_t)view->context_count + 1, sizeof *nodes);
    unsigned char *used = find_used(reading->model);
    int status = frames == NULL || nodes == NULL || used == NULL ? -1 : 0;
    if (status == 0 && used[0]) /* a trace without a stack */
        status = add_nodes(reading, 0, frames, &nodes[0]);
    for (uint32_t context = 1; context < view->context_count && status == 0; context++) {
        uint32_t parent = view->contexts[context].parent;
        nodes[context] = parent == 0 ? 0 : nodes[parent];
        if (used[context])
            status = add_nodes(reading, context, frames, &nodes[context]);
    }
    free(frames);
    free(used);
    if (status == 0)
        return nodes;
    free(nodes);
    return NULL;
}

/* ---- a model's traces ---- */

/* The row that a key of the model is; `rows` has row + 1 for those that have been asked for. */
static int row_of(struct reading *reading, uint32_t *rows, uint32_t key, uint32_t *row)
{
    if (rows[key] == 0) {
        struct ta_frame frame = {.filename = "", .function = "", .raw_name = "", .module = ""};
        ta_traceback_frame(ta__own_traceback(reading->own, key), -1, &frame);
        if (ta__report_row(&reading->report->tables, &frame, row) != 0)
            return -1;
        rows[key] = *row + 1;
    }
    *row = rows[key] - 1;
    return 0;
}

static int make_traces(struct reading *reading)
{
    const struct ta__view *view = reading->model->view;
    struct ta__report_tables *tables = &reading->report->tables;
    uint32_t *nodes = make_nodes(reading), *rows = ta__new_array(reading->own->key_count, sizeof *rows);
    reading->traces = ta__new_array(all_traces(view), sizeof *reading->traces);
    int status = nodes == NULL || rows == NULL || reading->traces == NULL ? -1 : 0;
    for (uint32_t i = 0; i < all_traces(view) && status == 0; i++) {
        const struct ta__view_trace *trace = &view->traces[i];
        struct ta__report_trace wanted = {
            .source = (uint32_t)(reading->recording - reading->report->recordings),
            .node = nodes[trace->context],
            .domain = trace->domain,
            .thread = trace->thread == 0 ? 0 : view->threads[trace->thread - 1].tid,
        };
        status = row_of(reading, rows, reading->own->contexts[trace->context].key, &wanted.row);
        if (status == 0)
            status = ta__report_trace(tables, &wanted, &reading->traces[i]);
        if (status == 0)
            tables->traces[reading->traces[i]].peak += trace->peak_bytes;
    }
    free(nodes);
    free(rows);
    return status;
}

/* ---- changes ---- */

static int add_change(struct reading *reading, uint32_t trace, size_t point, const struct ta__change *now,
                      const struct ta__change *before)
{
    struct ta__report *report = reading->report;
    if (ta__grow(&report->changes, &report->change_capacity, report->change_count + 1, sizeof *report->changes) != 0)
        return -1;
    report->changes[report->change_count++] = (struct ta__report_change){
        .trace = reading->traces[trace],
        .point = (uint32_t)(reading->recording->first_point + point),
        .size = (int64_t)(now->size - before->size),
        .count = (int64_t)(now->count - before->count),
        .allocated_bytes = (int64_t)(now->allocated_bytes - before->allocated_bytes),
        .allocated_blocks = (int64_t)(now->allocated_blocks - before->allocated_blocks),
    };
    return 0;
}

static int take_step(void *user, const struct ta__step *step)
{
    struct reading *reading = user;
    uint32_t trace = reading->leaf_traces[step->leaf];
    return trace == TA__NO_TRACE ? 0 : add_change(reading, trace, step->point, step->now, step->before);
}

/* A snapshot without leaves, built from data or a single entry: all its traces come at one point. */
static int take_traces(struct reading *reading)
{
    static const struct ta__change nothing;
    const struct ta__view *view = reading->model->view;
    size_t point = reading->changes.point_count - 1;
    for (uint32_t i = 0; i < all_traces(view); i++) {
        const struct ta__view_trace *trace = &view->traces[i];
        const struct ta__change now = {.size = trace->size,
                                       .count = trace->count,
                                       .allocated_bytes = trace->allocated_bytes,
                                       .allocated_blocks = trace->allocated_blocks};
        if (add_change(reading, i, point, &now, &nothing) != 0)
            return -1;
    }
    return 0;
}

static int read_segment(struct reading *reading, struct ta_snapshot *snapshot, size_t leaf_count)
{
    static const struct ta__step_reader reader = {take_step, NULL};
    struct ta__own *tables[2] = {NULL, NULL};
    reading->traces = NULL;
    if (ta_snapshot_set_own_rules(snapshot, reading->report->rules) != 0)
        return -1;
    reading->model = ta__model_of(snapshot);
    int status = ta__own_build(&reading->model, 1, 0, tables);
    reading->own = tables[0];
    if (status == 0)
        status = make_traces(reading);
    if (status == 0)
        status = leaf_count == 0 ? take_traces(reading) : ta__changes_steps(&reading->changes, &reader, reading);
    if (status == 0) {
        reading->recording->facts.length = 0; /* those of the last segment stay */
        status = ta__report_facts(&reading->recording->facts, snapshot);
    }
    ta__own_release(reading->own);
    free(reading->traces);
    return status;
}

/* Another segment says again what there is: what the one before it said ends where it begins. */
static int end_former(struct reading *reading)
{
    struct ta__report *report = reading->report;
    size_t traces = report->tables.trace_list.count, first = reading->first_change, last = report->change_count;
    struct ta__report_change *sums = ta__new_array(traces, sizeof *sums);
    if (sums == NULL)
        return -1;
    for (size_t i = first; i < last; i++) {
        const struct ta__report_change *change = &report->changes[i];
        struct ta__report_change *sum = &sums[change->trace];
        sum->size -= change->size;
        sum->count -= change->count;
        sum->allocated_bytes -= change->allocated_bytes;
        sum->allocated_blocks -= change->allocated_blocks;
        report->tables.traces[change->trace].peak = 0;
    }
    int status = ta__grow(&report->changes, &report->change_capacity, last + traces, sizeof *report->changes);
    for (size_t i = 0; i < traces && status == 0; i++) {
        sums[i].trace = (uint32_t)i;
        sums[i].point = (uint32_t)(reading->recording->first_point + reading->changes.first_point);
        if (sums[i].size != 0 || sums[i].count != 0 || sums[i].allocated_bytes != 0 || sums[i].allocated_blocks != 0)
            report->changes[report->change_count++] = sums[i];
    }
    free(sums);
    return status;
}

static int end_segment(void *user, struct ta_snapshot *snapshot, const uint32_t *traces, size_t leaf_count)
{
    struct reading *reading = user;
    reading->leaf_traces = traces;
    int status = reading->changes.first_point == 0 ? 0 : end_former(reading);
    if (status == 0)
        status = read_segment(reading, snapshot, leaf_count);
    ta_snapshot_free(snapshot);
    return status;
}

/* ---- recordings ---- */

/* "path@2": one entry, as one point. */
static int read_entry(struct reading *reading, const char *path)
{
    struct ta__changes *changes = &reading->changes;
    struct ta_snapshot_info info;
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    if (snapshot == NULL)
        return -1;
    const char *resident = ta_snapshot_metadata(snapshot, "memory.resident");
    int status = ta_snapshot_info(snapshot, &info, sizeof info);
    if (status == 0)
        status = ta__grow(&changes->points, &changes->point_capacity, 1, sizeof *changes->points);
    if (status == 0) {
        char *reason = strdup(info.reason);
        changes->points[changes->point_count++] = (struct ta_series_entry){
            .time_ns = info.time_ns, .reason = reason, .resident = resident == NULL ? 0 : strtoull(resident, NULL, 10)};
        status = reason == NULL ? ta__fail_memory() : read_segment(reading, snapshot, 0);
    }
    ta_snapshot_free(snapshot);
    return status;
}

static int keep_points(struct reading *reading)
{
    struct ta__report *report = reading->report;
    const struct ta__changes *changes = &reading->changes;
    size_t count = report->point_count + changes->point_count;
    if (ta__grow(&report->points, &report->point_capacity, count, sizeof *report->points) != 0 ||
        ta__grow(&report->reasons, &report->reason_capacity, count, sizeof *report->reasons) != 0)
        return -1;
    for (size_t i = 0; i < changes->point_count; i++) {
        const char *reason = changes->points[i].reason;
        if (ta__report_text(&report->tables, reason, strlen(reason), &report->reasons[report->point_count]) != 0)
            return -1;
        report->points[report->point_count] = changes->points[i];
        report->points[report->point_count++].reason = NULL;
    }
    reading->recording->point_count = changes->point_count;
    return 0;
}

/* A series can be followed; "path@2" is no name of a file. */
static int is_file(const char *path)
{
    struct ta_recording *recording = ta_recording_open(path);
    ta_recording_close(recording);
    return recording != NULL;
}

static int read_recording(struct ta__report *report, struct ta__report_recording *recording)
{
    struct reading reading = {.report = report, .recording = recording, .first_change = report->change_count};
    recording->first_point = report->point_count;
    int status = is_file(recording->file->path)
                     ? ta__changes_follow(&reading.changes, recording->file->path, POINTS_MAX, end_segment, &reading)
                     : read_entry(&reading, recording->file->path);
    if (status == 0)
        status = keep_points(&reading);
    ta__changes_free(&reading.changes);
    return status;
}

/* Rules that all recordings share learn from all of them. */
static int learn(struct ta__report *report)
{
    struct ta_own_rules *given = report->options.rules;
    int has_learned = given != NULL && given->has_learned, status = 0;
    report->rules = has_learned ? ta__own_rules_share(given) : ta__own_rules_copy(given);
    if (report->rules == NULL)
        return -1;
    for (size_t i = 0; i < report->recording_count && !has_learned && status == 0; i++) {
        struct ta_snapshot *snapshot = ta_snapshot_load(report->recordings[i].file->path);
        status = snapshot == NULL ? -1 : ta_own_rules_learn(report->rules, snapshot);
        ta_snapshot_free(snapshot);
    }
    return status;
}

int ta__report_read(struct ta__report *report)
{
    int status = learn(report);
    for (size_t i = 0; i < report->recording_count && status == 0; i++)
        status = read_recording(report, &report->recordings[i]);
    return status;
}
