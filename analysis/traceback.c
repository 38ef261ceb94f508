/* traceback.c: frames, tracebacks and traces as values: order, equality, text.
 *
 * A traceback is a handle; its frames are read from the model when somebody asks. */
#include "analysis/model.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/code_points.h"
#include "analysis/own/own_keys.h"
#include "analysis/size_text.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "base/hash.h"

int ta_frame_compare(const struct ta_frame *a, const struct ta_frame *b)
{
    int order = ta__name_compare(a->filename, a->filename_length, b->filename, b->filename_length);
    if (order != 0)
        return order;
    return a->lineno < b->lineno ? -1 : a->lineno > b->lineno;
}

int ta_frame_equal(const struct ta_frame *a, const struct ta_frame *b)
{
    return a->lineno == b->lineno && a->filename_length == b->filename_length &&
           memcmp(a->filename, b->filename, a->filename_length) == 0;
}

uint64_t ta_frame_hash(const struct ta_frame *frame)
{
    return ta__hash_roll(ta__hash_bytes(frame->filename, frame->filename_length), frame->lineno);
}

static void add_frame_text(struct ta__text *text, const struct ta_frame *frame)
{
    ta__text_add(text, frame->filename, frame->filename_length);
    ta__text_add_format(text, ":%u", frame->lineno);
}

size_t ta_frame_text(const struct ta_frame *frame, char *out, size_t size)
{
    struct ta__text text = {0};
    add_frame_text(&text, frame);
    return ta__text_deliver(&text, out, size);
}

struct ta_traceback ta_traceback_of(const struct ta_frame *frames, size_t count, int64_t total_nframe)
{
    return (struct ta_traceback){.total_nframe = total_nframe,
                                 .owner = frames,
                                 .kind = TA__TRACEBACK_FRAMES,
                                 .index = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count};
}

static uint32_t parent_of(const struct ta__model *model, uint32_t context)
{
    return model->view->contexts[context].parent;
}

static size_t context_length(const struct ta__model *model, uint32_t context)
{
    size_t length = ta__model_range(model, context).count;
    if (context == 0)
        return length;
    for (context = parent_of(model, context); context != 0; context = parent_of(model, context))
        length += ta__model_range(model, context).count;
    return length;
}

size_t ta_traceback_length(struct ta_traceback traceback)
{
    switch (traceback.kind) {
    case TA__TRACEBACK_FRAMES:
    case TA__TRACEBACK_OWNED:
        return traceback.index;
    case TA__TRACEBACK_CONTEXT:
        return context_length(traceback.owner, traceback.index);
    case TA__TRACEBACK_LOCATION:
    case TA__TRACEBACK_NAME:
    case TA__TRACEBACK_LOGICAL:
    case TA__TRACEBACK_FUNCTION:
    case TA__TRACEBACK_MODULE:
    case TA__TRACEBACK_KNOWN:
        return 1;
    default:
        return 0;
    }
}

/* Frame number `back` counted from the most recent one (0). */
static int context_frame(const struct ta__model *model, uint32_t context, size_t back, struct ta_frame *frame)
{
    for (;;) {
        struct ta__logical_range range = ta__model_range(model, context);
        if (back < range.count) {
            ta__model_frame(model, range.first + (uint32_t)back, frame);
            return 0;
        }
        back -= range.count;
        if (context == 0 || (context = parent_of(model, context)) == 0)
            return -1;
    }
}

static void single_frame(struct ta_traceback traceback, struct ta_frame *frame)
{
    const struct ta__model *model = traceback.owner;
    struct ta__location location = {traceback.index, 0};
    if (traceback.kind == TA__TRACEBACK_LOGICAL) {
        ta__model_frame(model, traceback.index, frame);
        return;
    }
    if (traceback.kind == TA__TRACEBACK_FUNCTION) {
        const struct ta__name *module = &model->names[model->logicals[traceback.index].module];
        ta__model_frame(model, traceback.index, frame);
        frame->filename = module->text;
        frame->filename_length = module->length;
        frame->lineno = 0;
        return;
    }
    if (traceback.kind == TA__TRACEBACK_LOCATION)
        location = model->locations[traceback.index];
    if (traceback.kind == TA__TRACEBACK_MODULE)
        location.name = model->logicals[traceback.index].module;
    struct ta__name name = {NULL, 0};
    if (traceback.kind == TA__TRACEBACK_KNOWN)
        name = (struct ta__name){ta__own_known_name(traceback.index), strlen(ta__own_known_name(traceback.index))};
    else
        name = model->names[location.name];
    *frame = (struct ta_frame){.filename = name.text,
                               .filename_length = name.length,
                               .lineno = location.line,
                               .function = "",
                               .raw_name = "",
                               .module = traceback.kind == TA__TRACEBACK_MODULE ? name.text : ""};
}

/* The oldest frame, in one walk to the root. */
static void oldest_frame(const struct ta__model *model, uint32_t context, struct ta_frame *frame)
{
    while (context != 0 && parent_of(model, context) != 0)
        context = parent_of(model, context);
    struct ta__logical_range range = ta__model_range(model, context);
    ta__model_frame(model, range.first + range.count - 1, frame);
}

int ta_traceback_frame(struct ta_traceback traceback, int64_t index, struct ta_frame *frame)
{
    if (traceback.kind == TA__TRACEBACK_CONTEXT && index == -1)
        return context_frame(traceback.owner, traceback.index, 0, frame);
    if (traceback.kind == TA__TRACEBACK_CONTEXT && index == 0) {
        oldest_frame(traceback.owner, traceback.index, frame);
        return 0;
    }
    int64_t length = (int64_t)ta_traceback_length(traceback);
    if (index < 0)
        index += length;
    if (index < 0 || index >= length)
        return -1;
    if (ta__traceback_has_frames(traceback))
        *frame = ((const struct ta_frame *)traceback.owner)[index];
    else if (traceback.kind == TA__TRACEBACK_CONTEXT)
        return context_frame(traceback.owner, traceback.index, (size_t)(length - 1 - index), frame);
    else
        single_frame(traceback, frame);
    return 0;
}

size_t ta_traceback_frames(struct ta_traceback traceback, struct ta_frame *frames, size_t max)
{
    size_t length = ta_traceback_length(traceback);
    if (ta__traceback_has_frames(traceback)) {
        if (length > 0 && max > 0)
            memcpy(frames, traceback.owner, (length < max ? length : max) * sizeof *frames);
        return length;
    }
    if (traceback.kind != TA__TRACEBACK_CONTEXT) {
        if (length > 0 && max > 0)
            single_frame(traceback, frames);
        return length;
    }
    const struct ta__model *model = traceback.owner;
    size_t place = length;
    for (uint32_t context = traceback.index; place > 0; context = parent_of(model, context)) {
        struct ta__logical_range range = ta__model_range(model, context);
        for (uint32_t i = 0; i < range.count; i++)
            if (--place < max)
                ta__model_frame(model, range.first + i, &frames[place]);
    }
    return length;
}

struct ta_frame *ta__traceback_expand(struct ta_traceback traceback, size_t *count)
{
    *count = ta_traceback_length(traceback);
    struct ta_frame *frames = ta__new_array(*count, sizeof *frames);
    if (frames != NULL)
        ta_traceback_frames(traceback, frames, *count);
    return frames;
}

int ta_traceback_compare(struct ta_traceback a, struct ta_traceback b)
{
    size_t a_count, b_count;
    struct ta_frame *a_frames = ta__traceback_expand(a, &a_count), *b_frames = ta__traceback_expand(b, &b_count);
    int order = 0;
    for (size_t i = 0; order == 0 && a_frames != NULL && b_frames != NULL && (i < a_count || i < b_count); i++)
        order = i == a_count ? -1 : i == b_count ? 1 : ta_frame_compare(&a_frames[i], &b_frames[i]);
    free(a_frames);
    free(b_frames);
    return order;
}

int ta_traceback_equal(struct ta_traceback a, struct ta_traceback b)
{
    if (a.owner == b.owner && a.kind == b.kind && a.index == b.index)
        return 1;
    return ta_traceback_length(a) == ta_traceback_length(b) && ta_traceback_compare(a, b) == 0;
}

uint64_t ta_traceback_hash(struct ta_traceback traceback)
{
    size_t count;
    struct ta_frame *frames = ta__traceback_expand(traceback, &count);
    uint64_t hash = TA__GOLDEN;
    for (size_t i = 0; frames != NULL && i < count; i++)
        hash = ta__hash_roll(hash, ta_frame_hash(&frames[i]));
    free(frames);
    return hash;
}

size_t ta_traceback_text(struct ta_traceback traceback, char *out, size_t size)
{
    struct ta__text text = {0};
    struct ta_frame oldest;
    if (ta_traceback_frame(traceback, 0, &oldest) == 0)
        add_frame_text(&text, &oldest);
    return ta__text_deliver(&text, out, size);
}

static const struct ta__view_trace *find_trace(const struct ta_snapshot *snapshot, size_t index,
                                               const struct ta__model **model)
{
    *model = ta__model_of(snapshot);
    if (*model == NULL)
        return NULL;
    if (index >= (size_t)(*model)->view->trace_count + (*model)->view->gone_trace_count) {
        ta__fail("no trace %zu: the snapshot has %u", index, (*model)->view->trace_count);
        return NULL;
    }
    return &(*model)->view->traces[index];
}

static struct ta_traceback trace_traceback(const struct ta__model *model, const struct ta__view_trace *trace)
{
    struct ta_traceback traceback = ta__traceback(model, TA__TRACEBACK_CONTEXT, trace->context);
    traceback.total_nframe = trace->total_nframe;
    return traceback;
}

struct ta_traceback ta_snapshot_trace_traceback(const struct ta_snapshot *snapshot, size_t index)
{
    const struct ta__model *model;
    const struct ta__view_trace *trace = find_trace(snapshot, index, &model);
    return trace == NULL ? (struct ta_traceback){.total_nframe = -1} : trace_traceback(model, trace);
}

int ta_snapshot_trace_equal(const struct ta_snapshot *a, size_t a_index, const struct ta_snapshot *b, size_t b_index)
{
    const struct ta__model *a_model, *b_model;
    const struct ta__view_trace *x = find_trace(a, a_index, &a_model), *y = find_trace(b, b_index, &b_model);
    return x != NULL && y != NULL && x->domain == y->domain && x->size == y->size && x->count == y->count &&
           x->total_nframe == y->total_nframe &&
           ta_traceback_equal(trace_traceback(a_model, x), trace_traceback(b_model, y));
}

size_t ta_snapshot_trace_text(const struct ta_snapshot *snapshot, size_t index, char *out, size_t size)
{
    const struct ta__model *model;
    const struct ta__view_trace *trace = find_trace(snapshot, index, &model);
    struct ta__text text = {0};
    struct ta_frame oldest;
    if (trace != NULL && ta_traceback_frame(trace_traceback(model, trace), 0, &oldest) == 0) {
        add_frame_text(&text, &oldest);
        ta__text_add_string(&text, ": ");
        ta__size_text_add(&text, (double)(trace->flags & TA__TRACE_EACH ? trace->size / trace->count : trace->size), 0);
    }
    return ta__text_deliver(&text, out, size);
}
