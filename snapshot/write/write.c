/* write.c: see write.h. */
#include "snapshot/write/write.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

_Static_assert((int)TA__LEAF_CUT_SHORT == (int)TA__FILE_LEAF_CUT_SHORT &&
                   (int)TA__LEAF_OVERFLOW == (int)TA__FILE_LEAF_OVERFLOW &&
                   (int)TA__LEAF_UNTRACED == (int)TA__FILE_LEAF_UNTRACED,
               "leaf flags travel as they are");
enum { LEAF_FLAGS_WRITTEN = TA__LEAF_CUT_SHORT | TA__LEAF_OVERFLOW | TA__LEAF_UNTRACED };

static int out_of_memory(struct ta__writer *writer)
{
    if (writer->chunks.sink.error == 0)
        writer->chunks.sink.error = ENOMEM;
    return -1;
}

/* ---- interning: strings and frames get numbers in the order of their first use -------------------------------- */

/* Open addressing over `rows` rows; slots hold id + 1. Kept at most half full. */
static int slots_grow(struct ta__buffer *slots, uint32_t rows, uint64_t (*hash_of)(struct ta__writer *, uint32_t),
                      struct ta__writer *writer)
{
    size_t count = slots->length / sizeof(uint32_t);
    if (count > (size_t)rows * 2 + 1)
        return 0;
    struct ta__buffer bigger = {.pool = slots->pool};
    count = count == 0 ? 256 : count * 2;
    if (ta__buffer_reserve(&bigger, count * sizeof(uint32_t)) != 0)
        return out_of_memory(writer);
    bigger.length = count * sizeof(uint32_t);
    uint32_t *table = TA__ROWS(uint32_t, bigger);
    for (uint32_t id = 0; id < rows; id++) {
        size_t slot = hash_of(writer, id) & (count - 1);
        while (table[slot] != 0)
            slot = (slot + 1) & (count - 1);
        table[slot] = id + 1;
    }
    ta__buffer_free(slots);
    *slots = bigger;
    return 0;
}

static uint64_t string_hash(struct ta__writer *writer, uint32_t id)
{
    const struct ta__view_string *row = &TA__ROWS(struct ta__view_string, writer->strings)[id];
    return ta__hash_bytes(writer->string_bytes.bytes + (uintptr_t)row->text, row->length);
}

/* The id of a text; 0 for NULL and "". While building, `text` holds the offset in string_bytes. */
static int intern_string(struct ta__writer *writer, const char *text, uint32_t *id)
{
    if (text == NULL)
        text = "";
    size_t length = strlen(text);
    *id = 0;
    if (length > TA__STRING_MAX)
        length = TA__STRING_MAX;
    uint32_t rows = TA__ROW_COUNT(struct ta__view_string, writer->strings);
    if (slots_grow(&writer->string_slots, rows, string_hash, writer) != 0)
        return -1;
    uint32_t *table = TA__ROWS(uint32_t, writer->string_slots);
    size_t mask = writer->string_slots.length / sizeof(uint32_t) - 1;
    size_t slot = ta__hash_bytes(text, length) & mask;
    for (; table[slot] != 0; slot = (slot + 1) & mask) {
        const struct ta__view_string *row = &TA__ROWS(struct ta__view_string, writer->strings)[table[slot] - 1];
        if (row->length == length && memcmp(writer->string_bytes.bytes + (uintptr_t)row->text, text, length) == 0) {
            *id = table[slot] - 1;
            return 0;
        }
    }
    struct ta__view_string row = {(const char *)writer->string_bytes.length, length};
    if (ta__buffer_put(&writer->string_bytes, text, length) != 0 || ta__buffer_put(&writer->string_bytes, "", 1) != 0 ||
        ta__buffer_put(&writer->strings, &row, sizeof row) != 0)
        return out_of_memory(writer);
    table[slot] = rows + 1;
    *id = rows;
    return 0;
}

static uint64_t frame_hash_of(uint64_t address, uint32_t module)
{
    return ta__hash_word(address ^ (uint64_t)module << 48);
}

static uint64_t frame_hash(struct ta__writer *writer, uint32_t id)
{
    const struct ta__view_frame *frame = &TA__ROWS(struct ta__view_frame, writer->frames)[id];
    return frame_hash_of(frame->address, frame->module);
}

static int intern_frame(struct ta__writer *writer, uint64_t address, uint32_t module, uint32_t *id)
{
    uint32_t rows = TA__ROW_COUNT(struct ta__view_frame, writer->frames);
    if (slots_grow(&writer->frame_slots, rows, frame_hash, writer) != 0)
        return -1;
    uint32_t *table = TA__ROWS(uint32_t, writer->frame_slots);
    size_t mask = writer->frame_slots.length / sizeof(uint32_t) - 1;
    size_t slot = frame_hash_of(address, module) & mask;
    for (; table[slot] != 0; slot = (slot + 1) & mask) {
        const struct ta__view_frame *frame = &TA__ROWS(struct ta__view_frame, writer->frames)[table[slot] - 1];
        if (frame->address == address && frame->module == module) {
            *id = table[slot] - 1;
            return 0;
        }
    }
    struct ta__view_frame *frame = ta__buffer_add(&writer->frames, sizeof *frame);
    if (frame == NULL)
        return out_of_memory(writer);
    frame->address = address;
    frame->module = module;
    frame->kind = TA__FRAME_ADDRESS;
    table[slot] = rows + 1;
    *id = rows;
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

/* Empty ones, whose beginnings are in the pool. */
static void drop_tables(struct ta__writer *writer)
{
    struct ta__buffer *const buffers[] = {
        &writer->strings,         &writer->string_bytes,  &writer->string_slots,  &writer->frames,
        &writer->frame_slots,     &writer->contexts,      &writer->depths,        &writer->counts,
        &writer->module_hashes,   &writer->domain_hashes, &writer->thread_hashes, &writer->changed_rows,
        &writer->changed_indices, &writer->fold,          &writer->context_map,   &writer->leaf_map,
        &writer->leaf_sources,    &writer->path,          &writer->blocks,        &writer->build_ids,
    };
    ta__tables_free(&writer->tables);
    writer->tables.predict.lists.pool = writer->tables.module_last.pool = &writer->chunks.pool;
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        ta__buffer_free(buffers[i]);
        buffers[i]->pool = &writer->chunks.pool;
    }
    writer->strings_written = writer->frames_written = writer->contexts_written = writer->leaves_written = 0;
    writer->last_leaf_context = writer->forgotten_context = 0;
    writer->peak_hash = writer->options_hash = 0;
}

int ta__writer_open(struct ta__writer *writer, const struct ta__sink *sink)
{
    memset(writer, 0, sizeof *writer);
    writer->reset = 1;
    if (ta__chunks_open(&writer->chunks, sink, 0) != 0) {
        int number = writer->chunks.sink.error;
        ta__writer_close(writer);
        ta__error_set("cannot begin the recording", NULL);
        return ta__error_add_errno(number);
    }
    return 0;
}

void ta__writer_close(struct ta__writer *writer)
{
    drop_tables(writer);
    ta__chunks_close(&writer->chunks);
}

/* ---- the tables of one entry ------------------------------------------------------------------------------------ */

/* How much of the source this entry covers; ids beyond are left for the next one. */
struct cut {
    uint32_t contexts, leaves, modules, domains, threads;
};

/* Compares a row's hash with the one written last. 1: the row is new or changed. */
static int row_changed(struct ta__buffer *hashes, uint32_t index, const void *row, size_t size, uint64_t more)
{
    uint64_t hash = (ta__hash_bytes(row, size) ^ ta__hash_word(more)) | 1;
    while (hashes->length / sizeof(uint64_t) <= index)
        if (ta__buffer_add(hashes, sizeof(uint64_t)) == NULL)
            return -1;
    uint64_t *last = &TA__ROWS(uint64_t, *hashes)[index];
    if (*last == hash)
        return 0;
    *last = hash;
    return 1;
}

static int keep_changed(struct ta__writer *writer, const void *row, size_t size, uint32_t index)
{
    if (ta__buffer_put(&writer->changed_rows, row, size) != 0 ||
        ta__buffer_put(&writer->changed_indices, &index, sizeof index) != 0)
        return out_of_memory(writer);
    return 0;
}

static void forget_changed(struct ta__writer *writer)
{
    writer->changed_rows.length = writer->changed_indices.length = 0;
}

static const uint32_t *changed_indices(const struct ta__writer *writer)
{
    return TA__ROWS(const uint32_t, writer->changed_indices);
}

static uint32_t changed_count(const struct ta__writer *writer)
{
    return TA__ROW_COUNT(uint32_t, writer->changed_indices);
}

static int keep_if_changed(struct ta__writer *writer, struct ta__buffer *hashes, uint32_t index, const void *row,
                           size_t size)
{
    int changed = row_changed(hashes, index, row, size, 0);
    if (changed < 0)
        return out_of_memory(writer);
    return changed > 0 ? keep_changed(writer, row, size, index) : 0;
}

/* Strings must be written before the rows that name them, so rows are gathered first. */
static int put_new_strings(struct ta__writer *writer)
{
    uint32_t count = TA__ROW_COUNT(struct ta__view_string, writer->strings);
    struct ta__view_string *rows = TA__ROWS(struct ta__view_string, writer->strings);
    uint32_t first = writer->strings_written;
    for (uint32_t i = first; i < count; i++)
        rows[i].text = (const char *)writer->string_bytes.bytes + (uintptr_t)rows[i].text;
    int result = ta__put_strings(&writer->chunks, rows + first, first, count - first);
    for (uint32_t i = first; i < count; i++)
        rows[i].text = (const char *)(uintptr_t)(rows[i].text - (const char *)writer->string_bytes.bytes);
    writer->strings_written = count;
    return result;
}

static int put_modules(struct ta__writer *writer, const struct ta__source *source, uint32_t count)
{
    struct ta__buffer *build_ids = &writer->build_ids;
    int result = 0;
    build_ids->length = 0;
    forget_changed(writer);
    for (uint32_t i = 0; i < count && result == 0; i++) {
        struct ta__source_module module = {0};
        if (!source->module(source, i, &module))
            module = (struct ta__source_module){.path = ""};
        uint32_t id_length = module.build_id == NULL ? 0 : module.build_id_length < 64 ? module.build_id_length : 64;
        struct ta__view_module row;
        memset(&row, 0, sizeof row); /* with its padding: rows are compared by hash */
        result = intern_string(writer, module.path, &row.path);
        row.flags = module.flags;
        row.load_base = module.load_base;
        row.start = module.start;
        row.end = module.end;
        row.build_id_length = id_length;
        int changed =
            row_changed(&writer->module_hashes, i, &row, sizeof row, ta__hash_bytes(module.build_id, id_length));
        if (changed < 0 || ta__buffer_put(build_ids, module.build_id, id_length) != 0)
            result = out_of_memory(writer);
        if (changed > 0 && result == 0) {
            row.build_id = (const uint8_t *)(build_ids->length - id_length);
            result = keep_changed(writer, &row, sizeof row, i);
        }
    }
    struct ta__view_module *rows = TA__ROWS(struct ta__view_module, writer->changed_rows);
    for (uint32_t i = 0; i < changed_count(writer) && build_ids->bytes != NULL; i++)
        rows[i].build_id = build_ids->bytes + (uintptr_t)rows[i].build_id;
    if (result == 0)
        result = put_new_strings(writer);
    if (result == 0)
        result = ta__put_modules(&writer->chunks, rows, changed_indices(writer), changed_count(writer));
    return result;
}

static int put_domains(struct ta__writer *writer, const struct ta__source *source, uint32_t count)
{
    forget_changed(writer);
    for (uint32_t i = 0; i < count; i++) {
        struct ta__source_domain domain = {0};
        if (!source->domain(source, i, &domain))
            domain = (struct ta__source_domain){.number = i};
        struct ta__view_domain row;
        memset(&row, 0, sizeof row); /* with its padding: rows are compared by hash */
        if (intern_string(writer, domain.name, &row.name) != 0)
            return -1;
        row.number = domain.number;
        row.flags = domain.flags;
        row.live_bytes = domain.live_bytes;
        row.live_blocks = domain.live_blocks;
        row.peak_bytes = domain.peak_bytes;
        row.allocated_bytes = domain.allocated_bytes;
        row.allocated_blocks = domain.allocated_blocks;
        row.limit_bytes = domain.limit_bytes;
        if (keep_if_changed(writer, &writer->domain_hashes, i, &row, sizeof row) != 0)
            return -1;
    }
    if (put_new_strings(writer) != 0)
        return -1;
    return ta__put_domains(&writer->chunks, TA__ROWS(struct ta__view_domain, writer->changed_rows),
                           changed_indices(writer), changed_count(writer));
}

static int put_threads(struct ta__writer *writer, const struct ta__source *source, uint32_t count)
{
    forget_changed(writer);
    for (uint32_t i = 0; i < count; i++) {
        struct ta__source_thread thread = {0};
        if (!source->thread(source, i, &thread))
            thread = (struct ta__source_thread){0};
        char name[sizeof thread.name + 1] = "";
        memcpy(name, thread.name, sizeof thread.name);
        struct ta__view_thread row;
        memset(&row, 0, sizeof row); /* with its padding: rows are compared by hash */
        if (intern_string(writer, name, &row.name) != 0)
            return -1;
        row.tid = thread.tid;
        row.flags = thread.flags;
        if (keep_if_changed(writer, &writer->thread_hashes, i, &row, sizeof row) != 0)
            return -1;
    }
    if (put_new_strings(writer) != 0)
        return -1;
    return ta__put_threads(&writer->chunks, TA__ROWS(struct ta__view_thread, writer->changed_rows),
                           changed_indices(writer), changed_count(writer));
}

/* Source numbers get numbers of the recording's own in the order in which entries need them: rows of leaves that are
 * not in use are left out, and a context's parent comes before it. */
static int leaf_is_written(const struct ta__source *source, uint32_t id)
{
    const struct ta__source_leaf *leaf = &source->leaves[id];
    return id == 0 || ((leaf->flags & TA__LEAF_FREED) == 0 && (leaf->context != 0 || leaf->flags != 0));
}

/* The first number behind `id` that may be one: rows below leaf_first are of the past, but for the first. */
static uint32_t next_leaf(const struct ta__source *source, uint32_t id)
{
    return id + 1 < source->leaf_first ? source->leaf_first : id + 1;
}

/* So many bytes, the new ones 0 as a buffer's are. */
static int reach(struct ta__writer *writer, struct ta__buffer *buffer, size_t wanted)
{
    if (buffer->length >= wanted)
        return 0;
    if (ta__buffer_reserve(buffer, wanted - buffer->length) != 0)
        return out_of_memory(writer);
    buffer->length = wanted;
    return 0;
}

/* One more context of the recording: its parent has a number already. */
static int add_context(struct ta__writer *writer, const struct ta__source_context *row, uint32_t parent,
                       uint32_t module_count)
{
    struct ta__view_context context = {.parent = parent};
    uint32_t depth = TA__ROWS(const uint32_t, writer->depths)[parent] + 1;
    uint32_t module = row->module <= module_count ? row->module : 0;
    if (intern_frame(writer, row->address, module, &context.frame) != 0)
        return -1;
    if (ta__buffer_put(&writer->contexts, &context, sizeof context) != 0 ||
        ta__buffer_put(&writer->depths, &depth, sizeof depth) != 0)
        return out_of_memory(writer);
    return 0;
}

/* Gives a context and those further out their numbers. */
static int add_path(struct ta__writer *writer, const struct ta__source *source, uint32_t id, uint32_t module_count)
{
    uint32_t *map = TA__ROWS(uint32_t, writer->context_map);
    writer->path.length = 0;
    for (; id != 0 && map[id] == 0; id = source->contexts[id].parent)
        if (ta__buffer_put(&writer->path, &id, sizeof id) != 0)
            return out_of_memory(writer);
    const uint32_t *path = TA__ROWS(const uint32_t, writer->path);
    for (uint32_t i = TA__ROW_COUNT(uint32_t, writer->path); i-- > 0;) {
        const struct ta__source_context row = source->contexts[path[i]];
        uint32_t number = TA__ROW_COUNT(struct ta__view_context, writer->contexts);
        if (add_context(writer, &row, map[row.parent], module_count) != 0)
            return -1;
        map[path[i]] = number;
    }
    return 0;
}

/* Stacks that nobody knows any more have one frame that says so. */
static int add_forgotten(struct ta__writer *writer)
{
    struct ta__view_frame frame = {.kind = TA__FRAME_SOURCE};
    struct ta__view_context context = {.frame = TA__ROW_COUNT(struct ta__view_frame, writer->frames)};
    uint32_t depth = 1;
    if (writer->forgotten_context != 0)
        return 0;
    if (intern_string(writer, "<forgotten>", &frame.file) != 0 || put_new_strings(writer) != 0)
        return -1;
    writer->forgotten_context = TA__ROW_COUNT(struct ta__view_context, writer->contexts);
    if (ta__buffer_put(&writer->frames, &frame, sizeof frame) != 0 ||
        ta__buffer_put(&writer->contexts, &context, sizeof context) != 0 ||
        ta__buffer_put(&writer->depths, &depth, sizeof depth) != 0)
        return out_of_memory(writer);
    return 0;
}

static int add_root(struct ta__writer *writer)
{
    if (writer->contexts.length != 0)
        return 0;
    if (ta__buffer_add(&writer->contexts, sizeof(struct ta__view_context)) == NULL ||
        ta__buffer_add(&writer->depths, sizeof(uint32_t)) == NULL)
        return out_of_memory(writer);
    writer->contexts_written = 1;
    return 0;
}

/* The leaves that this entry adds, and the contexts that they need, get their numbers. */
static int number_leaves(struct ta__writer *writer, const struct ta__source *source, const struct cut *cut)
{
    if (reach(writer, &writer->context_map, cut->contexts * sizeof(uint32_t)) != 0 ||
        reach(writer, &writer->leaf_map, cut->leaves * sizeof(uint32_t)) != 0 || add_root(writer) != 0)
        return -1;
    uint32_t *map = TA__ROWS(uint32_t, writer->leaf_map);
    for (uint32_t id = 0; id < cut->leaves; id = next_leaf(source, id)) {
        if (map[id] != 0 || !leaf_is_written(source, id))
            continue;
        if (source->leaves[id].context != 0 && add_path(writer, source, source->leaves[id].context, cut->modules) != 0)
            return -1;
        if ((source->leaves[id].flags & TA__LEAF_FORGOTTEN) != 0 && add_forgotten(writer) != 0)
            return -1;
        if (ta__buffer_put(&writer->leaf_sources, &id, sizeof id) != 0)
            return out_of_memory(writer);
        map[id] = TA__ROW_COUNT(uint32_t, writer->leaf_sources);
    }
    return 0;
}

static int put_contexts(struct ta__writer *writer, const struct ta__source *source, const struct cut *cut)
{
    if (number_leaves(writer, source, cut) != 0)
        return -1;
    uint32_t first = writer->contexts_written;
    uint32_t count = TA__ROW_COUNT(struct ta__view_context, writer->contexts) - first;
    if (count == 0)
        return 0;
    uint32_t frame_count = TA__ROW_COUNT(struct ta__view_frame, writer->frames);
    if (ta__put_frames(&writer->chunks, &writer->tables, TA__ROWS(struct ta__view_frame, writer->frames),
                       writer->frames_written, frame_count - writer->frames_written) != 0)
        return -1;
    writer->frames_written = frame_count;
    writer->contexts_written = first + count;
    return ta__put_contexts(&writer->chunks, &writer->tables, TA__ROWS(struct ta__view_context, writer->contexts),
                            first, count, frame_count);
}

static void put_leaf(struct ta__writer *writer, const struct ta__source_leaf *leaf)
{
    struct ta__chunks *chunks = &writer->chunks;
    int is_forgotten = (leaf->flags & TA__LEAF_FORGOTTEN) != 0;
    uint32_t context =
        is_forgotten ? writer->forgotten_context : TA__ROWS(const uint32_t, writer->context_map)[leaf->context];
    uint32_t depth = TA__ROWS(const uint32_t, writer->depths)[context];
    uint64_t total = is_forgotten ? depth : leaf->total_nframe;
    ta__column_put_signed(chunks, 0, (uint64_t)context - writer->last_leaf_context);
    ta__column_put(chunks, 1, leaf->domain);
    ta__column_put(chunks, 2, leaf->thread);
    ta__column_put_signed(chunks, 3, total - depth);
    ta__column_put(chunks, 4, leaf->flags & LEAF_FLAGS_WRITTEN);
    writer->last_leaf_context = context;
}

static int put_leaves(struct ta__writer *writer, const struct ta__source *source)
{
    struct ta__chunks *chunks = &writer->chunks;
    const uint32_t *sources = TA__ROWS(const uint32_t, writer->leaf_sources);
    uint32_t count = TA__ROW_COUNT(uint32_t, writer->leaf_sources);
    while (writer->leaves_written < count) {
        uint32_t first = writer->leaves_written;
        uint32_t rows = count - first < TA__ROWS_PER_CHUNK ? count - first : TA__ROWS_PER_CHUNK;
        if (ta__chunk_begin(chunks) != 0 || ta__raw_varint(chunks, first) != 0 || ta__raw_varint(chunks, rows) != 0 ||
            ta__columns_begin(chunks, 5, rows) != 0)
            return -1;
        for (uint32_t i = first; i < first + rows; i++)
            put_leaf(writer, &source->leaves[sources[i]]);
        if (ta__columns_end(chunks) != 0 || ta__chunk_end(chunks, TA__KIND_LEAVES, TA__CHUNK_REQUIRED) != 0)
            return -1;
        writer->leaves_written += rows;
    }
    return 0;
}

/* Average size of the blocks allocated so far: what the next ones will most likely have. */
static uint64_t usual_size(const struct ta__source_counts *counts)
{
    return counts->allocated_blocks == 0 ? 0 : counts->allocated_bytes / counts->allocated_blocks;
}

/* One changed leaf. Most columns are zero when a call site asks for one size: the bytes follow from the blocks. */
static void put_counts(struct ta__chunks *chunks, const struct ta__source_counts *was,
                       const struct ta__source_counts *now)
{
    uint64_t allocated = now->allocated_blocks - was->allocated_blocks;
    uint64_t bytes = now->allocated_bytes - was->allocated_bytes;
    uint64_t size = allocated == 0 ? 0 : bytes / allocated;
    ta__column_put_signed(chunks, 1, allocated);
    if (allocated != 0)
        ta__column_put_signed(chunks, 2, size - usual_size(was));
    ta__column_put(chunks, 3, bytes - allocated * size);
    uint64_t live = allocated - (now->freed_blocks - was->freed_blocks);
    uint64_t live_bytes = bytes - (now->freed_bytes - was->freed_bytes);
    ta__column_put_signed(chunks, 4, live);
    ta__column_put_signed(chunks, 5, live_bytes - live * usual_size(now));
}

/* The counters of some leaves of the recording. Neighbours there are mostly neighbours in the source. */
static void fold_leaves(const struct ta__writer *writer, const struct ta__source *source, uint32_t first, uint32_t rows,
                        struct ta__source_counts *counts)
{
    const uint32_t *sources = TA__ROWS(const uint32_t, writer->leaf_sources) + first;
    for (uint32_t at = 0, run; at < rows; at += run) {
        for (run = 1; at + run < rows && sources[at + run] == sources[at] + run;)
            run++;
        source->fold(source, sources[at], run, counts + at);
    }
}

/* As many leaves as are looked at together: what is summed over the threads stays in the cache. */
enum { FOLDED_ROWS = 1024 };

/* Puts those that have changed into the columns; answers how many. `next`: the gap column counts from here. */
static uint32_t put_changed(struct ta__writer *writer, uint32_t first, uint32_t rows, uint32_t *next)
{
    struct ta__source_counts *last = TA__ROWS(struct ta__source_counts, writer->counts) + first;
    const struct ta__source_counts *now = TA__ROWS(const struct ta__source_counts, writer->fold);
    uint32_t changed = 0;
    for (uint32_t i = 0; i < rows; i++) {
        if (memcmp(&now[i], &last[i], sizeof now[i]) == 0)
            continue;
        ta__column_put(&writer->chunks, 0, first + i - *next);
        *next = first + i + 1;
        put_counts(&writer->chunks, &last[i], &now[i]);
        last[i] = now[i];
        changed++;
    }
    return changed;
}

/* How many of those in `fold` have blocks. */
static uint64_t traces_in_fold(const struct ta__writer *writer, const struct ta__source *source, uint32_t first,
                               uint32_t rows)
{
    const struct ta__source_counts *now = TA__ROWS(const struct ta__source_counts, writer->fold);
    const uint32_t *sources = TA__ROWS(const uint32_t, writer->leaf_sources) + first;
    uint64_t traces = 0;
    for (uint32_t i = 0; i < rows; i++)
        traces += now[i].allocated_blocks > now[i].freed_blocks &&
                  (source->leaves[sources[i]].flags & TA__LEAF_UNTRACED) == 0;
    return traces;
}

/* One chunk, or none where nothing has changed. */
static int put_counters_chunk(struct ta__writer *writer, const struct ta__source *source, uint32_t first, uint32_t end,
                              uint32_t *next, uint64_t *traces)
{
    struct ta__chunks *chunks = &writer->chunks;
    uint32_t changed = 0, begin = *next;
    if (ta__chunk_begin(chunks) != 0 || ta__columns_begin(chunks, 6, end - first) != 0)
        return -1;
    for (uint32_t at = first; at < end; at += FOLDED_ROWS) {
        uint32_t rows = end - at < FOLDED_ROWS ? end - at : FOLDED_ROWS;
        fold_leaves(writer, source, at, rows, TA__ROWS(struct ta__source_counts, writer->fold));
        *traces += traces_in_fold(writer, source, at, rows);
        changed += put_changed(writer, at, rows, next);
    }
    if (changed == 0)
        return 0;
    if (ta__raw_varint(chunks, begin) != 0 || ta__raw_varint(chunks, changed) != 0 || ta__columns_end(chunks) != 0)
        return -1;
    return ta__chunk_end(chunks, TA__KIND_COUNTERS, TA__CHUNK_REQUIRED);
}

static int put_counters(struct ta__writer *writer, const struct ta__source *source, uint64_t *traces)
{
    uint32_t count = writer->leaves_written, folded = count < FOLDED_ROWS ? count : FOLDED_ROWS, next = 0;
    writer->fold.length = 0;
    if (ta__buffer_reserve(&writer->fold, folded * sizeof(struct ta__source_counts)) != 0)
        return out_of_memory(writer);
    if (reach(writer, &writer->counts, count * sizeof(struct ta__source_counts)) != 0)
        return -1;
    for (uint32_t first = 0, end; first < count; first = end) {
        end = count - first < TA__ROWS_PER_CHUNK ? count : first + TA__ROWS_PER_CHUNK;
        if (put_counters_chunk(writer, source, first, end, &next, traces) != 0)
            return -1;
    }
    return 0;
}

static uint64_t peak_of(const struct ta__writer *writer, const struct ta__source *source, uint32_t leaf)
{
    uint32_t id = TA__ROWS(const uint32_t, writer->leaf_sources)[leaf];
    return id < source->leaf_peak_count ? source->leaf_peak_bytes[id] : 0;
}

/* The values at the peak replace those of earlier entries. */
static int put_peak(struct ta__writer *writer, const struct ta__source *source)
{
    struct ta__chunks *chunks = &writer->chunks;
    uint32_t count = source->leaf_peak_bytes == NULL || source->leaf_peak_count == 0 ? 0 : writer->leaves_written;
    if (source->peak_is_now) {
        writer->peak_hash = 0; /* what comes next replaces what the reader takes from this entry */
        return 0;
    }
    uint64_t hash = 1;
    uint32_t present = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = peak_of(writer, source, i);
        hash = bytes != 0 ? ta__hash_roll(ta__hash_roll(hash, i), bytes) : hash;
        present += bytes != 0;
    }
    if (count == 0 || hash == writer->peak_hash)
        return 0;
    writer->peak_hash = hash;
    uint32_t at = 0, next = 0;
    for (int first_chunk = 1; present > 0 || first_chunk; first_chunk = 0) {
        uint32_t rows = present < TA__ROWS_PER_CHUNK ? present : TA__ROWS_PER_CHUNK;
        if (ta__chunk_begin(chunks) != 0 || ta__raw_varint(chunks, next) != 0 || ta__raw_varint(chunks, rows) != 0 ||
            ta__columns_begin(chunks, 2, rows) != 0)
            return -1;
        for (uint32_t put = 0; put < rows; at++) {
            uint64_t bytes = peak_of(writer, source, at);
            if (bytes == 0)
                continue;
            ta__column_put(chunks, 0, at - next);
            ta__column_put(chunks, 1, bytes);
            next = at + 1;
            put++;
        }
        if (ta__columns_end(chunks) != 0 || ta__chunk_end(chunks, TA__KIND_PEAK, 0) != 0)
            return -1;
        present -= rows;
    }
    return 0;
}

/* "key=value:key=value", as it was given, under the key "options". */
static int put_options(struct ta__writer *writer, const struct ta__source *source)
{
    const char *options = source->options == NULL ? "" : source->options;
    uint64_t hash = ta__hash_bytes(options, strlen(options)) | 1;
    if (hash == writer->options_hash)
        return 0;
    writer->options_hash = hash;
    struct ta__view_pair pair;
    if (intern_string(writer, "options", &pair.key) != 0 || intern_string(writer, options, &pair.value) != 0 ||
        put_new_strings(writer) != 0)
        return -1;
    return ta__put_pairs(&writer->chunks, TA__KIND_OPTIONS, &pair, options[0] != '\0');
}

/* Leaves that the recording does not have leave their blocks without one. */
static int put_blocks(struct ta__writer *writer, const struct ta__source *source)
{
    const uint32_t *map = TA__ROWS(const uint32_t, writer->leaf_map);
    uint32_t mapped = TA__ROW_COUNT(uint32_t, writer->leaf_map);
    if (!source->has_blocks)
        return 0;
    writer->blocks.length = 0;
    for (uint64_t i = 0; i < source->block_count && i < UINT32_MAX; i++) {
        const struct ta__source_block *block = &source->blocks[i];
        uint32_t leaf = block->leaf != 0 && block->leaf < mapped ? map[block->leaf] : 0;
        struct ta__view_block row =
            ta__view_block(block->address, block->size, leaf != 0 ? leaf - 1 : TA__BLOCK_UNTRACED);
        if (ta__buffer_put(&writer->blocks, &row, sizeof row) != 0)
            return out_of_memory(writer);
    }
    int result = ta__put_blocks(&writer->chunks, TA__ROWS(const struct ta__view_block, writer->blocks),
                                TA__ROW_COUNT(struct ta__view_block, writer->blocks), writer->leaves_written);
    ta__buffer_free(&writer->blocks);
    return result;
}

/* Once per entry: they replace those before. */
static int put_metadata(struct ta__writer *writer, const struct ta__facts *facts)
{
    forget_changed(writer);
    for (uint32_t i = 0; i < facts->pair_count; i++) {
        struct ta__view_pair pair;
        if (intern_string(writer, facts->pairs[i].key, &pair.key) != 0 ||
            intern_string(writer, facts->pairs[i].value, &pair.value) != 0 ||
            keep_changed(writer, &pair, sizeof pair, i) != 0)
            return -1;
    }
    if (put_new_strings(writer) != 0)
        return -1;
    return ta__put_pairs(&writer->chunks, TA__KIND_METADATA, TA__ROWS(struct ta__view_pair, writer->changed_rows),
                         facts->pair_count);
}

/* ---- one entry ----------------------------------------------------------------------------------------------------
 */

/* Leaves must not name what this entry does not hold: the first one that does ends the cut. */
static struct cut cut_of(const struct ta__writer *writer, const struct ta__source *source)
{
    struct cut cut = {
        .contexts = source->context_count,
        .leaves = source->leaf_count,
        .modules = source->module_count,
        .domains = source->domain_count,
        .threads = source->thread_count,
    };
    const uint32_t *map = TA__ROWS(const uint32_t, writer->leaf_map);
    uint32_t mapped = TA__ROW_COUNT(uint32_t, writer->leaf_map);
    for (uint32_t id = 0; id < cut.leaves; id = next_leaf(source, id)) {
        const struct ta__source_leaf *leaf = &source->leaves[id];
        if ((id < mapped && map[id] != 0) || !leaf_is_written(source, id))
            continue;
        if ((leaf->context >= cut.contexts && leaf->context != 0) || leaf->domain >= cut.domains ||
            leaf->thread > cut.threads)
            cut.leaves = id;
    }
    return cut;
}

/* Do the source's numbers still mean what they did in the last entry? */
static int same_tables(const struct ta__writer *writer, const struct ta__source *source)
{
    return source->epoch == writer->epoch && source->generation == writer->generation;
}

/* Everything of an entry but its END. */
static int put_entry(struct ta__writer *writer, const struct ta__source *source, const struct ta__facts *facts)
{
    struct ta__index_row *row = &writer->row;
    struct cut cut = cut_of(writer, source);
    uint64_t fields[TA__FIELD_LAST + 1] = {
        [TA__FIELD_TIME_NS] = facts->time_ns,
        [TA__FIELD_START_TIME_NS] = source->start_time_ns,
        [TA__FIELD_EPOCH] = source->epoch,
        [TA__FIELD_COUNTERS_RESTART] = writer->reset || source->epoch != writer->epoch,
        [TA__FIELD_TRACEBACK_LIMIT] = source->traceback_limit,
        [TA__FIELD_PID] = facts->pid,
        [TA__FIELD_CURRENT_BYTES] = source->current_bytes,
        [TA__FIELD_PEAK_BYTES] = source->peak_bytes,
        [TA__FIELD_SAMPLE_BYTES] = source->sample_bytes,
        [TA__FIELD_LOST] = source->lost,
        [TA__FIELD_OVERFLOWED] = source->overflowed,
        [TA__FIELD_CUT_SHORT] = source->cut_short,
        [TA__FIELD_FOREIGN_FREES] = source->foreign_frees,
        [TA__FIELD_INVALID_FREES] = source->invalid_frees,
        [TA__FIELD_SNAPSHOT_ERRORS] = source->snapshot_errors,
        [TA__FIELD_PEAK_IS_NOW] = source->peak_is_now,
    };
    uint32_t program, host, reason, empty;
    if (intern_string(writer, "", &empty) != 0 || intern_string(writer, facts->program, &program) != 0 ||
        intern_string(writer, facts->host, &host) != 0 || intern_string(writer, facts->reason, &reason) != 0)
        return -1;
    fields[TA__FIELD_PROGRAM] = program;
    fields[TA__FIELD_HOST] = host;
    fields[TA__FIELD_REASON] = reason;
    if (fields[TA__FIELD_COUNTERS_RESTART]) {
        if (writer->counts.length != 0)
            memset(writer->counts.bytes, 0, writer->counts.length);
        writer->peak_hash = 0;
    }
    writer->epoch = source->epoch;
    writer->generation = source->generation;

    struct ta__chunks *chunks = &writer->chunks;
    ta__entry_begin(chunks);
    if (ta__put_fields(chunks, fields, writer->reset) != 0 || put_new_strings(writer) != 0 ||
        put_modules(writer, source, cut.modules) != 0 || put_contexts(writer, source, &cut) != 0 ||
        put_domains(writer, source, cut.domains) != 0 || put_threads(writer, source, cut.threads) != 0 ||
        put_leaves(writer, source) != 0 || put_counters(writer, source, &row->traces) != 0 ||
        put_peak(writer, source) != 0 || put_options(writer, source) != 0 ||
        (facts->pair_count != 0 && put_metadata(writer, facts) != 0) || put_blocks(writer, source) != 0)
        return -1;
    row->time_ns = facts->time_ns;
    row->current_bytes = source->current_bytes;
    row->peak_bytes = source->peak_bytes;
    row->reset = (uint32_t)writer->reset;
    row->stays = (uint32_t)writer->stays;
    return 0;
}

/* The file is cut to what it was; when even that fails, what follows would be unreadable, so nothing may follow. */
void ta__writer_take_back(struct ta__writer *writer)
{
    struct ta__sink *sink = &writer->chunks.sink;
    writer->reset = 1;
    if (!writer->is_under_way)
        return;
    writer->is_under_way = 0;
    int number = sink->error;
    if (ta__sink_cut(sink, writer->chunks.entry_offset) != 0)
        sink->error = number;
}

static int write_entry(struct ta__writer *writer, const struct ta__source *source, const struct ta__facts *facts,
                       int with_end)
{
    int saved_errno = errno;
    int number = writer->chunks.sink.error;
    if (number == 0) {
        if (!writer->reset && !same_tables(writer, source))
            writer->reset = 1;
        if (writer->reset)
            drop_tables(writer);
        memset(&writer->row, 0, sizeof writer->row);
        writer->chunks.entry_offset = writer->chunks.sink.written;
        writer->is_under_way = 1;
        if (put_entry(writer, source, facts) == 0 && (!with_end || ta__entry_end(&writer->chunks, &writer->row) == 0)) {
            writer->reset = writer->is_under_way = 0;
            errno = saved_errno;
            return 0;
        }
        number = writer->chunks.sink.error;
        ta__writer_take_back(writer);
    }
    ta__error_set("cannot write the snapshot", NULL);
    ta__error_add_errno(number);
    errno = number;
    return -1;
}

int ta__writer_entry(struct ta__writer *writer, const struct ta__source *source, const struct ta__facts *facts)
{
    return write_entry(writer, source, facts, 1);
}

int ta__writer_image(struct ta__writer *writer, const struct ta__source *source, const struct ta__facts *facts,
                     struct ta__image *image)
{
    if (write_entry(writer, source, facts, 0) != 0)
        return -1;
    image->bytes = writer->chunks.sink.memory;
    memset(&writer->chunks.sink.memory, 0, sizeof writer->chunks.sink.memory);
    image->digest = writer->chunks.digest;
    image->chunk_count = writer->chunks.chunk_count;
    image->string_count = TA__ROW_COUNT(struct ta__view_string, writer->strings);
    image->row = writer->row;
    return 0;
}

int ta__writer_seal(struct ta__writer *writer)
{
    int saved_errno = errno;
    int result = ta__chunks_seal(&writer->chunks);
    errno = saved_errno;
    if (result == 0)
        return 0;
    ta__error_set("cannot close the recording", NULL);
    return ta__error_add_errno(writer->chunks.sink.error);
}
