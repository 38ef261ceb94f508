/* export_rows.c: a line per stack with its numbers: CSV and JSON lines. The stacks are read from the model, innermost
 * call first. */
#include <string.h>

#include "analysis/exchange/json.h"
#include "analysis/model.h"
#include "analysis/own/own_keys.h"
#include "analysis/text_output.h"
#include "tracealloc/export.h"

typedef void add_row(struct ta__text *text, const struct ta__own *own, const struct ta__view_trace *trace);
typedef void add_frame(struct ta__text *text, const struct ta_frame *frame, int is_first);

static uint32_t thread_of(const struct ta__model *model, const struct ta__view_trace *trace)
{
    return trace->thread == 0 ? 0 : model->view->threads[trace->thread - 1].tid;
}

static void add_stack(struct ta__text *text, const struct ta__model *model, uint32_t context, add_frame *add)
{
    int is_first = 1;
    do {
        struct ta__logical_range range = ta__model_range(model, context);
        for (uint32_t i = 0; i < range.count; i++, is_first = 0) {
            struct ta_frame frame;
            ta__model_frame(model, range.first + i, &frame);
            add(text, &frame, is_first);
        }
        context = context == 0 ? 0 : model->view->contexts[context].parent;
    } while (context != 0);
}

static int each_trace(const struct ta_snapshot *snapshot, const char *heading, add_row *add, ta_write_function write,
                      void *user)
{
    const struct ta__model *model = ta__model_of(snapshot);
    struct ta__output output = {.write = write, .user = user};
    if (model == NULL)
        return -1;
    struct ta__own *tables[2];
    if (ta__own_build(&model, 1, 0, tables) != 0)
        return -1;
    ta__output_add_string(&output, heading);
    uint32_t count = model->view->trace_count + model->view->gone_trace_count;
    for (uint32_t i = 0; i < count && !output.failed; i++) {
        add(&output.pending, tables[0], &model->view->traces[i]);
        ta__output_add(&output, "\n", 1);
    }
    ta__own_release(tables[0]);
    return ta__output_finish(&output);
}

static void add_number(struct ta__text *text, const char *before, uint64_t number)
{
    ta__text_add_string(text, before);
    ta__text_add_wide(text, number);
}

/* ---- CSV ---- */

/* Within a quoted field: quotes are doubled. */
static void add_quoted(struct ta__text *text, const char *name, size_t length)
{
    for (const char *quote; (quote = memchr(name, '"', length)) != NULL;) {
        size_t before = (size_t)(quote - name) + 1;
        ta__text_add(text, name, before);
        ta__text_add(text, "\"", 1);
        name += before;
        length -= before;
    }
    ta__text_add(text, name, length);
}

static void add_csv_frame(struct ta__text *text, const struct ta_frame *frame, int is_first)
{
    int has_function = *frame->function != '\0';
    if (!is_first)
        ta__text_add(text, ";", 1);
    if (has_function) {
        add_quoted(text, frame->function, strlen(frame->function));
        ta__text_add(text, " (", 2);
    }
    add_quoted(text, frame->filename, frame->filename_length);
    add_number(text, ":", frame->lineno);
    if (has_function)
        ta__text_add(text, ")", 1);
}

static void add_csv(struct ta__text *text, const struct ta__own *own, const struct ta__view_trace *trace)
{
    const struct ta__model *model = own->model;
    struct ta__text label = {0};
    ta__own_add_label(&label, own, own->contexts[trace->context].key);
    add_number(text, "", trace->domain);
    add_number(text, ",", thread_of(model, trace));
    add_number(text, ",", trace->size);
    add_number(text, ",", trace->count);
    add_number(text, ",", trace->allocated_bytes);
    add_number(text, ",", trace->allocated_blocks);
    add_number(text, ",", trace->peak_bytes);
    ta__text_add(text, ",\"", 2);
    add_quoted(text, label.bytes != NULL ? label.bytes : "", label.length);
    ta__text_add(text, "\",\"", 3);
    add_stack(text, model, trace->context, add_csv_frame);
    ta__text_add(text, "\"", 1);
    text->failed |= label.failed;
    ta__text_free(&label);
}

int ta_snapshot_export_csv(const struct ta_snapshot *snapshot, ta_write_function write, void *user)
{
    return each_trace(snapshot, "domain,thread,size,count,allocated_size,allocated_count,peak_size,own,stack\n",
                      add_csv, write, user);
}

/* ---- JSON lines ---- */

static void add_json_frame(struct ta__text *text, const struct ta_frame *frame, int is_first)
{
    ta__text_add_string(text, is_first ? "{\"file\": " : ", {\"file\": ");
    ta__json_add_string(text, frame->filename, frame->filename_length);
    add_number(text, ", \"line\": ", frame->lineno);
    ta__text_add_string(text, ", \"function\": ");
    ta__json_add_string(text, frame->function, strlen(frame->function));
    ta__text_add_string(text, ", \"module\": ");
    ta__json_add_string(text, frame->module, strlen(frame->module));
    add_number(text, ", \"address\": ", frame->address);
    ta__text_add_string(text, frame->flags & TA_FRAME_INLINED ? ", \"inlined\": true}" : ", \"inlined\": false}");
}

static void add_json(struct ta__text *text, const struct ta__own *own, const struct ta__view_trace *trace)
{
    const struct ta__model *model = own->model;
    struct ta__text label = {0};
    ta__own_add_label(&label, own, own->contexts[trace->context].key);
    add_number(text, "{\"domain\": ", trace->domain);
    add_number(text, ", \"thread\": ", thread_of(model, trace));
    add_number(text, ", \"size\": ", trace->size);
    add_number(text, ", \"count\": ", trace->count);
    add_number(text, ", \"allocated_size\": ", trace->allocated_bytes);
    add_number(text, ", \"allocated_count\": ", trace->allocated_blocks);
    add_number(text, ", \"peak_size\": ", trace->peak_bytes);
    if (trace->total_nframe >= 0)
        add_number(text, ", \"total_nframe\": ", (uint64_t)trace->total_nframe);
    else
        ta__text_add_string(text, ", \"total_nframe\": null");
    ta__text_add_string(text, ", \"own\": ");
    ta__json_add_string(text, label.bytes != NULL ? label.bytes : "", label.length);
    ta__text_add_string(text, ", \"frames\": [");
    add_stack(text, model, trace->context, add_json_frame);
    ta__text_add_string(text, "]}");
    text->failed |= label.failed;
    ta__text_free(&label);
}

int ta_snapshot_export_jsonl(const struct ta_snapshot *snapshot, ta_write_function write, void *user)
{
    return each_trace(snapshot, "", add_json, write, user);
}
