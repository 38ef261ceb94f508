/* export_json.c: snapshots, statistics and differences for other programs. One object per line. */
#include <stdlib.h>

#include "analysis/json.h"
#include "analysis/model.h"
#include "analysis/statistics.h"
#include "analysis/support.h"

/* Most recent first. */
static struct json_object *frames_of(struct ta_traceback traceback)
{
    size_t count;
    struct ta_frame *frames = ta__traceback_expand(traceback, &count);
    struct json_object *list = frames == NULL ? NULL : ta__json_new_array(count);
    int status = list == NULL ? -1 : 0;
    for (size_t i = count; status == 0 && i-- > 0;) {
        struct json_object *pair = ta__json_new_array(2);
        if (ta__json_append(pair, ta__json_new_bytes(frames[i].filename, frames[i].filename_length)) != 0 ||
            ta__json_append(pair, ta__json_new_wide(frames[i].lineno)) != 0) {
            json_object_put(pair);
            status = -1;
        } else {
            status = ta__json_append(list, pair);
        }
    }
    free(frames);
    if (status != 0)
        json_object_put(list);
    return status == 0 ? list : NULL;
}

/* Writes one row of a list; frees it. */
static int write_row(struct ta__output *output, struct json_object *row, int status, int is_first)
{
    if (status != 0)
        ta__fail_memory();
    if (status == 0) {
        ta__output_add_string(output, is_first ? "\n" : ",\n");
        status = ta__json_write(output, row);
    }
    json_object_put(row);
    return status == 0 && !output->failed ? 0 : -1;
}

static int finish(struct ta__output *output, int status)
{
    return ta__output_finish(output) == 0 && status == 0 ? 0 : -1;
}

static struct json_object *text_of(struct ta__text *text)
{
    struct json_object *object = text->failed ? NULL : ta__json_new_bytes(text->bytes, text->length);
    ta__text_free(text);
    return object;
}

int ta_statistics_export_json(const struct ta_statistics *statistics, size_t limit, ta_write_function write, void *user)
{
    struct ta__output output = {.write = write, .user = user};
    int status = 0;
    ta__output_add_string(&output, "[");
    for (size_t i = 0; status == 0 && i < limit && i < statistics->groups.count; i++) {
        const struct ta__group *group = statistics->rows[i];
        struct json_object *row = ta__json_new_object();
        struct ta__text text = {0};
        ta__statistics_add_text(&text, statistics, i);
        int failed = ta__json_add(row, "frames", frames_of(ta__group_traceback(&statistics->groups, group))) |
                     ta__json_add(row, "size", ta__json_new_wide(group->sums[TA__VALUE_SIZE])) |
                     ta__json_add(row, "count", ta__json_new_wide(group->sums[TA__VALUE_COUNT])) |
                     ta__json_add(row, "str", text_of(&text));
        status = write_row(&output, row, failed, i == 0);
    }
    ta__output_add_string(&output, "\n]\n");
    return finish(&output, status);
}

int ta_differences_export_json(const struct ta_differences *differences, size_t limit, ta_write_function write,
                               void *user)
{
    struct ta__output output = {.write = write, .user = user};
    int status = 0;
    ta__output_add_string(&output, "[");
    for (size_t i = 0; status == 0 && i < limit && i < differences->count; i++) {
        const struct ta__difference *difference = &differences->rows[i];
        struct json_object *row = ta__json_new_object();
        struct ta__text text = {0};
        ta__differences_add_text(&text, differences, i);
        int failed =
            ta__json_add(row, "frames", frames_of(ta__difference_traceback(differences, difference))) |
            ta__json_add(row, "size", ta__json_new_wide(ta__difference_new(difference, TA__VALUE_SIZE))) |
            ta__json_add(row, "size_diff", ta__json_new_signed(ta__difference_signed(difference, TA__VALUE_SIZE))) |
            ta__json_add(row, "count", ta__json_new_wide(ta__difference_new(difference, TA__VALUE_COUNT))) |
            ta__json_add(row, "count_diff", ta__json_new_signed(ta__difference_signed(difference, TA__VALUE_COUNT))) |
            ta__json_add(row, "str", text_of(&text));
        status = write_row(&output, row, failed, i == 0);
    }
    ta__output_add_string(&output, "\n]\n");
    return finish(&output, status);
}

static int write_trace(struct ta__output *output, const struct ta__model *model, const struct ta__view_trace *trace,
                       uint64_t size, uint64_t count, int is_first)
{
    struct json_object *row = ta__json_new_object();
    struct json_object *frames = frames_of(ta__traceback(model, TA__TRACEBACK_CONTEXT, trace->context));
    int failed = ta__json_add(row, "domain", ta__json_new_wide(trace->domain)) |
                 ta__json_add(row, "size", ta__json_new_wide(size));
    if (trace->total_nframe >= 0)
        failed |= ta__json_add(row, "total_nframe", ta__json_new_signed(trace->total_nframe));
    else
        failed |= ta__json_add_null(row, "total_nframe");
    failed |= ta__json_add(row, "count", ta__json_new_wide(count)) | ta__json_add(row, "frames", frames);
    return write_row(output, row, failed, is_first);
}

int ta_snapshot_export_json(const struct ta_snapshot *snapshot, ta_write_function write, void *user)
{
    const struct ta__model *model = ta__model_of(snapshot);
    if (model == NULL)
        return -1;
    struct ta__output output = {.write = write, .user = user};
    struct ta__text head = {0};
    int status = 0, is_first = 1;
    ta__text_add_format(&head, "{\"traceback_limit\": %u, \"frame_order\": \"most_recent_first\", \"traces\": [",
                        model->view->traceback_limit);
    ta__output_add(&output, head.bytes, head.length);
    ta__text_free(&head);
    for (uint32_t i = 0; status == 0 && i < model->view->trace_count; i++) {
        const struct ta__view_trace *trace = &model->view->traces[i];
        struct ta__blocks blocks[2];
        int kinds = ta__trace_blocks(trace, blocks);
        for (int k = 0; status == 0 && k < kinds; k++) {
            status = write_trace(&output, model, trace, blocks[k].size, blocks[k].count, is_first);
            is_first = 0;
        }
    }
    ta__output_add_string(&output, "\n]}\n");
    return finish(&output, status);
}
