/* build.c: snapshots that come neither from a program nor from a file: built from data, or from another view. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "snapshot/read/decode.h"
#include "snapshot/read/encode.h"
#include "snapshot/format/handle.h"
#include "snapshot/read/read.h"

/* ---- from data ---- */

/* Three tables without duplicates: strings, frames (file, line), contexts (parent, frame). */
struct ta__snapshot_builder {
    struct ta__loaded *loaded;
    struct ta__index string_index, frame_index, context_index;
    uint64_t bytes;
};

/* The row's number, which it gets when it is new. 0, or -1 without memory. */
TA_INLINE int intern(struct ta__index *index, struct ta__loaded *loaded, struct ta__buffer *rows, const void *row,
                     size_t row_bytes, uint64_t hash, ta__index_hash *hash_of, ta__index_same *is_same, uint32_t *id)
{
    uint32_t count = (uint32_t)(rows->length / row_bytes);
    if (ta__index_reserve(index, count, hash_of, loaded) != 0)
        return -1;
    uint32_t *slot = ta__index_find(index, hash, is_same, loaded, row);
    if (*slot == 0) {
        if (ta__buffer_put(rows, row, row_bytes) != 0)
            return -1;
        *slot = count + 1;
    }
    *id = *slot - 1;
    return 0;
}

static int is_same_string(const void *table, uint32_t id, const void *wanted)
{
    const struct ta__loaded *loaded = table;
    const struct ta__view_string *row = &TA__ROWS(const struct ta__view_string, loaded->strings)[id], *other = wanted;
    return row->length == other->length &&
           memcmp(ta__loaded_text(loaded, row), ta__loaded_text(loaded, other), row->length) == 0;
}

/* The bytes go behind those of the other strings, and away again when the string is known. */
static int intern_string(struct ta__snapshot_builder *builder, const char *text, size_t length, uint32_t *id)
{
    struct ta__loaded *loaded = builder->loaded;
    size_t offset = loaded->string_bytes.length;
    uint32_t known = TA__ROW_COUNT(struct ta__view_string, loaded->strings);
    const struct ta__view_string row = {(const char *)offset, length};
    if (ta__buffer_put(&loaded->string_bytes, text, length) != 0 || ta__buffer_put(&loaded->string_bytes, "", 1) != 0 ||
        intern(&builder->string_index, loaded, &loaded->strings, &row, sizeof row, ta__hash_bytes(text, length),
               ta__loaded_string_hash, is_same_string, id) != 0)
        return -1;
    if (*id < known)
        loaded->string_bytes.length = offset;
    return 0;
}

static uint64_t hash_pair(uint32_t a, uint32_t b)
{
    return ta__hash_word((uint64_t)a << 32 | b);
}

static uint64_t frame_hash(const void *loaded, uint32_t id)
{
    const struct ta__view_frame *row =
        &TA__ROWS(const struct ta__view_frame, ((const struct ta__loaded *)loaded)->frames)[id];
    return row->kind == TA__FRAME_ADDRESS ? ta__hash_word(row->address ^ (uint64_t)row->module << 48)
                                          : hash_pair(row->file, row->line);
}

static int is_same_frame(const void *loaded, uint32_t id, const void *wanted)
{
    const struct ta__view_frame *row =
        &TA__ROWS(const struct ta__view_frame, ((const struct ta__loaded *)loaded)->frames)[id];
    const struct ta__view_frame *other = wanted;
    return row->kind == other->kind && row->file == other->file && row->line == other->line &&
           row->address == other->address && row->module == other->module;
}

static uint64_t context_hash(const void *loaded, uint32_t id)
{
    const struct ta__view_context *row =
        &TA__ROWS(const struct ta__view_context, ((const struct ta__loaded *)loaded)->contexts)[id];
    return hash_pair(row->parent, row->frame);
}

static int is_same_context(const void *loaded, uint32_t id, const void *wanted)
{
    const struct ta__view_context *row =
        &TA__ROWS(const struct ta__view_context, ((const struct ta__loaded *)loaded)->contexts)[id];
    const struct ta__view_context *other = wanted;
    return id != 0 && row->parent == other->parent && row->frame == other->frame; /* 0: the root has no frame */
}

static int intern_context(struct ta__snapshot_builder *builder, uint32_t parent, uint32_t frame, uint32_t *id)
{
    const struct ta__view_context row = {parent, frame};
    return intern(&builder->context_index, builder->loaded, &builder->loaded->contexts, &row, sizeof row,
                  hash_pair(parent, frame), context_hash, is_same_context, id);
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

struct ta_snapshot *ta__snapshot_wrap(struct ta__loaded *loaded)
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

struct ta__snapshot_builder *ta__snapshot_builder_create(void)
{
    struct ta__snapshot_builder *builder = ta__memory_map(sizeof *builder);
    uint32_t empty;
    if (builder != NULL && (builder->loaded = ta__loaded_create()) != NULL &&
        intern_string(builder, "", 0, &empty) == 0 &&
        ta__buffer_add(&builder->loaded->contexts, sizeof(struct ta__view_context)) != NULL)
        return builder;
    ta__snapshot_builder_destroy(builder);
    no_memory();
    return NULL;
}

void ta__snapshot_builder_destroy(struct ta__snapshot_builder *builder)
{
    if (builder == NULL)
        return;
    ta__loaded_destroy(builder->loaded);
    ta__index_free(&builder->string_index);
    ta__index_free(&builder->frame_index);
    ta__index_free(&builder->context_index);
    ta__memory_unmap(builder, sizeof *builder);
}

int ta__snapshot_builder_name(struct ta__snapshot_builder *builder, const char *file, size_t length, uint32_t *name)
{
    if (length > TA__STRING_MAX)
        return bad_trace(TA__ROW_COUNT(struct ta__view_trace, builder->loaded->traces),
                         ": a file name is longer than 8 MiB");
    return intern_string(builder, file, length, name) != 0 ? no_memory() : 0;
}

int ta__snapshot_builder_frame(struct ta__snapshot_builder *builder, uint32_t name, uint32_t line, uint32_t *frame)
{
    const struct ta__view_frame row = {.file = name, .line = line, .kind = TA__FRAME_SOURCE};
    return intern(&builder->frame_index, builder->loaded, &builder->loaded->frames, &row, sizeof row,
                  hash_pair(name, line), frame_hash, is_same_frame, frame) != 0
               ? no_memory()
               : 0;
}

int ta__snapshot_builder_address(struct ta__snapshot_builder *builder, uint64_t address, uint32_t module,
                                 uint32_t *frame)
{
    const struct ta__view_frame row = {.address = address, .module = module, .kind = TA__FRAME_ADDRESS};
    return intern(&builder->frame_index, builder->loaded, &builder->loaded->frames, &row, sizeof row,
                  ta__hash_word(address ^ (uint64_t)module << 48), frame_hash, is_same_frame, frame) != 0
               ? no_memory()
               : 0;
}

int ta__snapshot_builder_overflow(struct ta__snapshot_builder *builder, uint32_t *frame)
{
    const struct ta__view_frame row = {.kind = TA__FRAME_OVERFLOW};
    *frame = TA__ROW_COUNT(struct ta__view_frame, builder->loaded->frames);
    return ta__buffer_put(&builder->loaded->frames, &row, sizeof row) != 0 ? no_memory() : 0;
}

int ta__snapshot_builder_context(struct ta__snapshot_builder *builder, uint32_t parent, uint32_t frame,
                                 uint32_t *context)
{
    return intern_context(builder, parent, frame, context) != 0 ? no_memory() : 0;
}

int ta__snapshot_builder_module(struct ta__snapshot_builder *builder, const struct ta__view_module *module)
{
    struct ta__view_module row = *module;
    row.build_id = (const uint8_t *)builder->loaded->build_ids.length;
    return ta__buffer_put(&builder->loaded->build_ids, module->build_id, module->build_id_length) != 0 ||
                   ta__buffer_put(&builder->loaded->modules, &row, sizeof row) != 0
               ? no_memory()
               : 0;
}

int ta__snapshot_builder_domain(struct ta__snapshot_builder *builder, const struct ta__view_domain *domain)
{
    return ta__buffer_put(&builder->loaded->domains, domain, sizeof *domain) != 0 ? no_memory() : 0;
}

int ta__snapshot_builder_thread(struct ta__snapshot_builder *builder, const struct ta__view_thread *thread)
{
    return ta__buffer_put(&builder->loaded->threads, thread, sizeof *thread) != 0 ? no_memory() : 0;
}

int ta__snapshot_builder_option(struct ta__snapshot_builder *builder, const struct ta__view_pair *option)
{
    return ta__buffer_put(&builder->loaded->options, option, sizeof *option) != 0 ? no_memory() : 0;
}

int ta__snapshot_builder_trace(struct ta__snapshot_builder *builder, const struct ta__view_trace *trace)
{
    struct ta__buffer *traces = &builder->loaded->traces;
    if (TA__ROW_COUNT(struct ta__view_trace, *traces) >= UINT32_MAX - 1)
        return ta__error_set("a snapshot holds at most 4294967294 traces", NULL);
    return ta__buffer_put(traces, trace, sizeof *trace) != 0 ? no_memory() : 0;
}

struct ta__view *ta__snapshot_builder_view(struct ta__snapshot_builder *builder)
{
    return &builder->loaded->view;
}

struct ta__buffer *ta__snapshot_builder_blocks(struct ta__snapshot_builder *builder)
{
    return &builder->loaded->blocks;
}

struct ta_snapshot *ta__snapshot_builder_finish_live(struct ta__snapshot_builder *builder)
{
    struct ta__loaded *loaded = builder->loaded;
    builder->loaded = NULL;
    ta__snapshot_builder_destroy(builder);
    loaded->view.trace_count = TA__ROW_COUNT(struct ta__view_trace, loaded->traces) - loaded->view.gone_trace_count;
    ta__loaded_finish(loaded);
    return ta__snapshot_wrap(loaded);
}

int ta__snapshot_builder_add(struct ta__snapshot_builder *builder, const struct ta__built_trace *trace)
{
    struct ta__buffer *traces = &builder->loaded->traces;
    uint32_t context = 0;
    if (TA__ROW_COUNT(struct ta__view_trace, *traces) >= UINT32_MAX - 1)
        return ta__error_set("a snapshot holds at most 4294967294 traces", NULL);
    for (size_t i = trace->nframe; i-- > 0;) /* the oldest is nearest to the root */
        if (intern_context(builder, context, trace->frames[i], &context) != 0)
            return no_memory();
    struct ta__view_trace row = {
        .context = context,
        .domain = trace->domain,
        .flags = TA__TRACE_EACH,
        .total_nframe = trace->total_nframe,
        .size = trace->size,
        .count = trace->count,
    };
    builder->bytes += trace->size;
    return ta__buffer_put(traces, &row, sizeof row) != 0 ? no_memory() : 0;
}

/* Every stack is added again, from its other end; then the tables change places. */
int ta__snapshot_builder_turn_around(struct ta__snapshot_builder *builder)
{
    struct ta__buffer *contexts = &builder->loaded->contexts, former = *contexts;
    const struct ta__view_context *old = TA__ROWS(const struct ta__view_context, former);
    struct ta__view_trace *traces = TA__ROWS(struct ta__view_trace, builder->loaded->traces);
    uint32_t count = TA__ROW_COUNT(struct ta__view_trace, builder->loaded->traces);
    *contexts = (struct ta__buffer){0};
    ta__index_free(&builder->context_index);
    int result = ta__buffer_add(contexts, sizeof *old) == NULL ? -1 : 0;
    for (uint32_t i = 0; i < count && result == 0; i++) {
        uint32_t context = 0;
        for (uint32_t at = traces[i].context; at != 0 && result == 0; at = old[at].parent)
            result = intern_context(builder, context, old[at].frame, &context);
        traces[i].context = context;
    }
    ta__buffer_free(&former);
    return result != 0 ? no_memory() : 0;
}

struct ta_snapshot *ta__snapshot_builder_finish(struct ta__snapshot_builder *builder, uint32_t traceback_limit)
{
    struct ta__loaded *loaded = builder->loaded;
    struct ta__view *view = &loaded->view;
    builder->loaded = NULL;
    view->traceback_limit = traceback_limit;
    view->trace_count = TA__ROW_COUNT(struct ta__view_trace, loaded->traces);
    view->current_bytes = builder->bytes;
    ta__snapshot_builder_destroy(builder);
    ta__loaded_finish(loaded);
    return ta__snapshot_wrap(loaded);
}

static int add_trace(struct ta__snapshot_builder *builder, const struct ta_trace_data *trace, size_t index,
                     struct ta__buffer *frames)
{
    if (trace->total_nframe < -1 || trace->total_nframe > INT32_MAX - 1)
        return bad_trace(index, ": total_nframe is out of range");
    frames->length = 0;
    if (ta__buffer_reserve(frames, trace->nframe * sizeof(uint32_t)) != 0)
        return no_memory();
    uint32_t *ids = TA__ROWS(uint32_t, *frames), name;
    for (size_t i = trace->nframe; i-- > 0;) {
        const struct ta_frame_data *frame = &trace->frames[i];
        const char *file = frame->file == NULL ? "" : frame->file;
        size_t length = frame->file_length == TA_NUL_TERMINATED ? strlen(file) : frame->file_length;
        if (ta__snapshot_builder_name(builder, file, length, &name) != 0 ||
            ta__snapshot_builder_frame(builder, name, frame->line, &ids[i]) != 0)
            return -1;
    }
    return ta__snapshot_builder_add(
        builder, &(struct ta__built_trace){trace->domain, (int32_t)trace->total_nframe, trace->size,
                                           trace->count == 0 ? 1 : trace->count, ids, trace->nframe});
}

struct ta_snapshot *ta_snapshot_from_traces(const struct ta_trace_data *traces, size_t count, uint32_t traceback_limit)
{
    struct ta__snapshot_builder *builder = ta__snapshot_builder_create();
    struct ta__buffer frames = {0};
    int result = builder == NULL ? -1 : 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = add_trace(builder, &traces[i], i, &frames);
    ta__buffer_free(&frames);
    if (result == 0)
        return ta__snapshot_builder_finish(builder, traceback_limit);
    ta__snapshot_builder_destroy(builder);
    return NULL;
}

/* ---- from a view ---- */

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
        copy_rows(&loaded->blocks, view->blocks, view->block_count, sizeof *view->blocks) != 0 ||
        copy_rows(&loaded->symbols, view->symbols, view->symbol_count, sizeof *view->symbols) != 0 ||
        copy_rows(&loaded->symbol_ranges, view->symbol_ranges, view->frame_count, sizeof *view->symbol_ranges) != 0) {
        ta__loaded_destroy(loaded);
        no_memory();
        return NULL;
    }
    loaded->view = *view;
    ta__loaded_finish(loaded);
    struct ta_snapshot *snapshot = ta__snapshot_wrap(loaded);
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
