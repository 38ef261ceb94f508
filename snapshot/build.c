/* build.c: snapshots that come neither from a program nor from a file: built from data, or from another view. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "snapshot/decode.h"
#include "snapshot/encode.h"
#include "snapshot/object.h"
#include "snapshot/read.h"

/* ---- from data -----------------------------------------------------------------------------------------------------
 */

/* Three tables without duplicates: strings, frames (file, line), contexts (parent, frame). Slots hold id + 1. */
struct builder {
    struct ta__loaded *loaded;
    struct ta__buffer string_slots, frame_slots, context_slots;
};

static uint64_t hash_pair(uint32_t a, uint32_t b)
{
    return ta__hash_word((uint64_t)a << 32 | b);
}

static uint64_t string_hash(const struct builder *builder, uint32_t id)
{
    const struct ta__view_string *row = &TA__ROWS(const struct ta__view_string, builder->loaded->strings)[id];
    return ta__hash_bytes(builder->loaded->string_bytes.bytes + (uintptr_t)row->text, row->length);
}

static uint64_t frame_hash(const struct builder *builder, uint32_t id)
{
    const struct ta__view_frame *row = &TA__ROWS(const struct ta__view_frame, builder->loaded->frames)[id];
    return hash_pair(row->file, row->line);
}

static uint64_t context_hash(const struct builder *builder, uint32_t id)
{
    const struct ta__view_context *row = &TA__ROWS(const struct ta__view_context, builder->loaded->contexts)[id];
    return hash_pair(row->parent, row->frame);
}

/* Room for one more row, at most half full. */
static int slots_ready(struct builder *builder, struct ta__buffer *slots, uint32_t rows,
                       uint64_t (*hash)(const struct builder *, uint32_t))
{
    size_t count = slots->length / sizeof(uint32_t);
    if (count > (size_t)rows * 2 + 1)
        return 0;
    struct ta__buffer bigger = {0};
    count = count == 0 ? 64 : count * 2;
    if (ta__buffer_reserve(&bigger, count * sizeof(uint32_t)) != 0)
        return -1;
    bigger.length = count * sizeof(uint32_t);
    uint32_t *table = TA__ROWS(uint32_t, bigger);
    for (uint32_t id = 0; id < rows; id++) {
        size_t slot = hash(builder, id) & (count - 1);
        while (table[slot] != 0)
            slot = (slot + 1) & (count - 1);
        table[slot] = id + 1;
    }
    ta__buffer_free(slots);
    *slots = bigger;
    return 0;
}

static int intern_string(struct builder *builder, const char *text, size_t length, uint32_t *id)
{
    struct ta__loaded *loaded = builder->loaded;
    uint32_t rows = TA__ROW_COUNT(struct ta__view_string, loaded->strings);
    if (slots_ready(builder, &builder->string_slots, rows, string_hash) != 0)
        return -1;
    uint32_t *table = TA__ROWS(uint32_t, builder->string_slots);
    size_t mask = builder->string_slots.length / sizeof(uint32_t) - 1;
    size_t slot = ta__hash_bytes(text, length) & mask;
    for (; table[slot] != 0; slot = (slot + 1) & mask) {
        const struct ta__view_string *row = &TA__ROWS(struct ta__view_string, loaded->strings)[table[slot] - 1];
        if (row->length == length && memcmp(loaded->string_bytes.bytes + (uintptr_t)row->text, text, length) == 0) {
            *id = table[slot] - 1;
            return 0;
        }
    }
    struct ta__view_string row = {(const char *)loaded->string_bytes.length, length};
    if (ta__buffer_put(&loaded->string_bytes, text, length) != 0 || ta__buffer_put(&loaded->string_bytes, "", 1) != 0 ||
        ta__buffer_put(&loaded->strings, &row, sizeof row) != 0)
        return -1;
    table[slot] = *id = rows;
    table[slot]++;
    return 0;
}

static int intern_frame(struct builder *builder, uint32_t file, uint32_t line, uint32_t *id)
{
    struct ta__buffer *frames = &builder->loaded->frames;
    uint32_t rows = TA__ROW_COUNT(struct ta__view_frame, *frames);
    if (slots_ready(builder, &builder->frame_slots, rows, frame_hash) != 0)
        return -1;
    uint32_t *table = TA__ROWS(uint32_t, builder->frame_slots);
    size_t mask = builder->frame_slots.length / sizeof(uint32_t) - 1;
    size_t slot = hash_pair(file, line) & mask;
    for (; table[slot] != 0; slot = (slot + 1) & mask) {
        const struct ta__view_frame *row = &TA__ROWS(struct ta__view_frame, *frames)[table[slot] - 1];
        if (row->file == file && row->line == line) {
            *id = table[slot] - 1;
            return 0;
        }
    }
    struct ta__view_frame row = {.file = file, .line = line, .kind = TA__FRAME_SOURCE};
    if (ta__buffer_put(frames, &row, sizeof row) != 0)
        return -1;
    table[slot] = rows + 1;
    *id = rows;
    return 0;
}

static int intern_context(struct builder *builder, uint32_t parent, uint32_t frame, uint32_t *id)
{
    struct ta__buffer *contexts = &builder->loaded->contexts;
    uint32_t rows = TA__ROW_COUNT(struct ta__view_context, *contexts);
    if (slots_ready(builder, &builder->context_slots, rows, context_hash) != 0)
        return -1;
    uint32_t *table = TA__ROWS(uint32_t, builder->context_slots);
    size_t mask = builder->context_slots.length / sizeof(uint32_t) - 1;
    size_t slot = hash_pair(parent, frame) & mask;
    for (; table[slot] != 0; slot = (slot + 1) & mask) {
        const struct ta__view_context *row = &TA__ROWS(struct ta__view_context, *contexts)[table[slot] - 1];
        if (table[slot] != 1 && row->parent == parent && row->frame == frame) { /* the root is no context of anything */
            *id = table[slot] - 1;
            return 0;
        }
    }
    struct ta__view_context row = {parent, frame};
    if (ta__buffer_put(contexts, &row, sizeof row) != 0)
        return -1;
    table[slot] = rows + 1;
    *id = rows;
    return 0;
}

static int no_memory(void)
{
    errno = ENOMEM;
    return ta__error_set("no memory for the snapshot", NULL);
}

static int bad_trace(size_t index, const char *what)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    ta__message_text(&message, "trace ");
    ta__message_number(&message, index);
    ta__message_text(&message, what);
    errno = EINVAL;
    return ta__error_take(&message);
}

static int add_trace(struct builder *builder, const struct ta_trace_data *trace, size_t index)
{
    if (trace->total_nframe < -1 || trace->total_nframe > INT32_MAX - 1)
        return bad_trace(index, ": total_nframe is out of range");
    uint32_t context = 0;
    for (size_t i = trace->nframe; i-- > 0;) { /* the oldest is nearest to the root */
        const struct ta_frame_data *frame = &trace->frames[i];
        const char *file = frame->file == NULL ? "" : frame->file;
        size_t length = frame->file_length == TA_NUL_TERMINATED ? strlen(file) : frame->file_length;
        uint32_t file_id, frame_id;
        if (length > TA__STRING_MAX)
            return bad_trace(index, ": a file name is longer than 8 MiB");
        if (intern_string(builder, file, length, &file_id) != 0 ||
            intern_frame(builder, file_id, frame->line, &frame_id) != 0 ||
            intern_context(builder, context, frame_id, &context) != 0)
            return no_memory();
    }
    struct ta__view_trace row = {
        .context = context,
        .domain = trace->domain,
        .flags = TA__TRACE_EACH,
        .total_nframe = (int32_t)trace->total_nframe,
        .size = trace->size,
        .count = trace->count == 0 ? 1 : trace->count,
    };
    return ta__buffer_put(&builder->loaded->traces, &row, sizeof row) != 0 ? no_memory() : 0;
}

static struct ta_snapshot *wrap(struct ta__loaded *loaded)
{
    struct ta_snapshot *snapshot = ta__object_create();
    if (snapshot == NULL) {
        ta__loaded_destroy(loaded);
        return NULL;
    }
    snapshot->loaded = loaded;
    snapshot->operations = &ta__view_operations;
    return snapshot;
}

struct ta_snapshot *ta_snapshot_from_traces(const struct ta_trace_data *traces, size_t count, uint32_t traceback_limit)
{
    struct builder builder = {.loaded = ta__loaded_create()};
    uint32_t empty;
    int result = 0;
    if (builder.loaded == NULL || intern_string(&builder, "", 0, &empty) != 0 ||
        ta__buffer_add(&builder.loaded->contexts, sizeof(struct ta__view_context)) == NULL)
        result = no_memory();
    for (size_t i = 0; i < count && result == 0; i++)
        result = add_trace(&builder, &traces[i], i);
    if (result == 0 && count >= UINT32_MAX)
        result = ta__error_set("a snapshot holds at most 4294967294 traces", NULL);
    ta__buffer_free(&builder.string_slots);
    ta__buffer_free(&builder.frame_slots);
    ta__buffer_free(&builder.context_slots);
    if (result != 0) {
        ta__loaded_destroy(builder.loaded);
        return NULL;
    }
    struct ta__view *view = &builder.loaded->view;
    view->traceback_limit = traceback_limit;
    view->trace_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        view->current_bytes += traces[i].size;
    ta__loaded_finish(builder.loaded);
    return wrap(builder.loaded);
}

/* ---- from a view
 * ----------------------------------------------------------------------------------------------------- */

static int copy_rows(struct ta__buffer *buffer, const void *rows, size_t count, size_t size)
{
    return rows == NULL ? 0 : ta__buffer_put(buffer, rows, count * size);
}

static int copy_texts(struct ta__loaded *loaded, const struct ta__view *view)
{
    for (uint32_t i = 0; i < view->string_count; i++) {
        const struct ta__view_string *text = &view->strings[i];
        struct ta__view_string row = {(const char *)loaded->string_bytes.length, text->length};
        if (ta__buffer_put(&loaded->string_bytes, text->text, text->length) != 0 ||
            ta__buffer_put(&loaded->string_bytes, "", 1) != 0 ||
            ta__buffer_put(&loaded->strings, &row, sizeof row) != 0)
            return -1;
    }
    for (uint32_t i = 0; i < view->module_count; i++) {
        struct ta__view_module row = view->modules[i];
        row.build_id = (const uint8_t *)loaded->build_ids.length;
        if (ta__buffer_put(&loaded->build_ids, view->modules[i].build_id, row.build_id_length) != 0 ||
            ta__buffer_put(&loaded->modules, &row, sizeof row) != 0)
            return -1;
    }
    return 0;
}

struct ta_snapshot *ta__snapshot_from_view(const struct ta__view *view, const struct ta_snapshot *like)
{
    struct ta__loaded *loaded = ta__loaded_create();
    if (loaded == NULL) {
        no_memory();
        return NULL;
    }
    size_t traces = (size_t)view->trace_count + view->gone_trace_count;
    if (copy_texts(loaded, view) != 0 ||
        copy_rows(&loaded->frames, view->frames, view->frame_count, sizeof *view->frames) != 0 ||
        copy_rows(&loaded->contexts, view->contexts, view->context_count, sizeof *view->contexts) != 0 ||
        copy_rows(&loaded->domains, view->domains, view->domain_count, sizeof *view->domains) != 0 ||
        copy_rows(&loaded->threads, view->threads, view->thread_count, sizeof *view->threads) != 0 ||
        copy_rows(&loaded->traces, view->traces, traces, sizeof *view->traces) != 0 ||
        copy_rows(&loaded->options, view->options, view->option_count, sizeof *view->options) != 0 ||
        copy_rows(&loaded->symbols, view->symbols, view->symbol_count, sizeof *view->symbols) != 0 ||
        copy_rows(&loaded->symbol_ranges, view->symbol_ranges, view->frame_count, sizeof *view->symbol_ranges) != 0) {
        ta__loaded_destroy(loaded);
        no_memory();
        return NULL;
    }
    loaded->view = *view;
    ta__loaded_finish(loaded);
    struct ta_snapshot *snapshot = wrap(loaded);
    for (size_t i = 0; snapshot != NULL && like != NULL && i < ta_snapshot_metadata_count(like); i++) {
        const char *key, *value;
        size_t key_length, value_length;
        ta_snapshot_metadata_at(like, i, &key, &key_length, &value, &value_length);
        if (ta__object_add_metadata(snapshot, key, key_length, value, value_length) != 0) {
            ta_snapshot_free(snapshot);
            return NULL;
        }
    }
    return snapshot;
}
