/* write.c: see write.h. */
#include "snapshot/write.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

_Static_assert((int)TA__LEAF_CUT_SHORT == (int)TA__FILE_LEAF_CUT_SHORT &&
                   (int)TA__LEAF_OVERFLOW == (int)TA__FILE_LEAF_OVERFLOW &&
                   (int)TA__LEAF_UNTRACED == (int)TA__FILE_LEAF_UNTRACED,
               "leaf flags travel as they are");

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
    struct ta__buffer bigger = {0};
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

static void drop_tables(struct ta__writer *writer)
{
    struct ta__buffer *const buffers[] = {
        &writer->strings,         &writer->string_bytes,  &writer->string_slots,  &writer->frames,
        &writer->frame_slots,     &writer->contexts,      &writer->depths,        &writer->counts,
        &writer->module_hashes,   &writer->domain_hashes, &writer->thread_hashes, &writer->changed_rows,
        &writer->changed_indices, &writer->fold,
    };
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        ta__buffer_free(buffers[i]);
    ta__tables_free(&writer->tables);
    writer->strings_written = writer->frames_written = writer->leaves_written = 0;
    writer->last_leaf_context = 0;
    writer->tables_hash = writer->leaves_hash = writer->peak_hash = writer->options_hash = 0;
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
    struct ta__buffer build_ids = {0};
    int result = 0;
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
        if (changed < 0 || ta__buffer_put(&build_ids, module.build_id, id_length) != 0)
            result = out_of_memory(writer);
        if (changed > 0 && result == 0) {
            row.build_id = (const uint8_t *)(build_ids.length - id_length);
            result = keep_changed(writer, &row, sizeof row, i);
        }
    }
    struct ta__view_module *rows = TA__ROWS(struct ta__view_module, writer->changed_rows);
    for (uint32_t i = 0; i < changed_count(writer) && build_ids.bytes != NULL; i++)
        rows[i].build_id = build_ids.bytes + (uintptr_t)rows[i].build_id;
    if (result == 0)
        result = put_new_strings(writer);
    if (result == 0)
        result = ta__put_modules(&writer->chunks, rows, changed_indices(writer), changed_count(writer));
    ta__buffer_free(&build_ids);
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

/* A row of a table that never changes again; part of the hash that tells whether it is still the same table. */
static uint64_t hash_context(uint64_t hash, const struct ta__source_context *row)
{
    return ta__hash_roll(ta__hash_roll(hash, row->address), (uint64_t)row->parent << 32 | row->module);
}

static uint64_t hash_leaf(uint64_t hash, const struct ta__source_leaf *row)
{
    return ta__hash_roll(ta__hash_roll(hash, row->context), (uint64_t)row->domain << 32 | row->thread);
}

static int put_contexts(struct ta__writer *writer, const struct ta__source *source, const struct cut *cut)
{
    uint32_t first = TA__ROW_COUNT(struct ta__view_context, writer->contexts);
    if (first == 0) { /* the root */
        if (ta__buffer_add(&writer->contexts, sizeof(struct ta__view_context)) == NULL ||
            ta__buffer_add(&writer->depths, sizeof(uint32_t)) == NULL)
            return out_of_memory(writer);
        first = 1;
    }
    if (cut->contexts <= first)
        return 0;
    uint32_t count = cut->contexts - first;
    if (ta__buffer_reserve(&writer->contexts, count * sizeof(struct ta__view_context)) != 0 ||
        ta__buffer_reserve(&writer->depths, count * sizeof(uint32_t)) != 0)
        return out_of_memory(writer);
    struct ta__view_context *contexts = TA__ROWS(struct ta__view_context, writer->contexts);
    uint32_t *depths = TA__ROWS(uint32_t, writer->depths);
    uint64_t hash = writer->tables_hash;
    for (uint32_t id = first; id < cut->contexts; id++) {
        const struct ta__source_context row = source->contexts[id];
        uint32_t module = row.module <= cut->modules ? row.module : 0;
        contexts[id].parent = row.parent < id ? row.parent : 0;
        depths[id] = depths[contexts[id].parent] + 1;
        hash = hash_context(hash, &row);
        if (intern_frame(writer, row.address, module, &contexts[id].frame) != 0)
            return -1;
    }
    writer->tables_hash = hash;
    writer->contexts.length += count * sizeof(struct ta__view_context);
    writer->depths.length += count * sizeof(uint32_t);
    uint32_t frame_count = TA__ROW_COUNT(struct ta__view_frame, writer->frames);
    if (ta__put_frames(&writer->chunks, &writer->tables, TA__ROWS(struct ta__view_frame, writer->frames),
                       writer->frames_written, frame_count - writer->frames_written) != 0)
        return -1;
    writer->frames_written = frame_count;
    return ta__put_contexts(&writer->chunks, &writer->tables, contexts, first, count, frame_count);
}

static int put_leaves(struct ta__writer *writer, const struct ta__source *source, const struct cut *cut)
{
    struct ta__chunks *chunks = &writer->chunks;
    const uint32_t *depths = TA__ROWS(const uint32_t, writer->depths);
    while (writer->leaves_written < cut->leaves) {
        uint32_t first = writer->leaves_written;
        uint32_t rows = cut->leaves - first < TA__ROWS_PER_CHUNK ? cut->leaves - first : TA__ROWS_PER_CHUNK;
        if (ta__chunk_begin(chunks) != 0 || ta__raw_varint(chunks, first) != 0 || ta__raw_varint(chunks, rows) != 0 ||
            ta__columns_begin(chunks, 5, rows) != 0)
            return -1;
        for (uint32_t id = first; id < first + rows; id++) {
            const struct ta__source_leaf leaf = source->leaves[id];
            ta__column_put_signed(chunks, 0, (uint64_t)leaf.context - writer->last_leaf_context);
            ta__column_put(chunks, 1, leaf.domain);
            ta__column_put(chunks, 2, leaf.thread);
            ta__column_put_signed(chunks, 3, (uint64_t)leaf.total_nframe - depths[leaf.context]);
            ta__column_put(chunks, 4, leaf.flags);
            writer->last_leaf_context = leaf.context;
            writer->leaves_hash = hash_leaf(writer->leaves_hash, &leaf);
        }
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

static int put_counters(struct ta__writer *writer, const struct ta__source *source, uint32_t leaf_count,
                        uint64_t *traces)
{
    struct ta__chunks *chunks = &writer->chunks;
    if (writer->fold.capacity == 0 &&
        ta__buffer_reserve(&writer->fold, TA__ROWS_PER_CHUNK * sizeof(struct ta__source_counts)) != 0)
        return out_of_memory(writer);
    size_t needed = leaf_count * sizeof(struct ta__source_counts);
    while (writer->counts.length < needed) {
        size_t more = needed - writer->counts.length;
        if (ta__buffer_reserve(&writer->counts, more) != 0)
            return out_of_memory(writer);
        memset(writer->counts.bytes + writer->counts.length, 0, more);
        writer->counts.length += more;
    }
    struct ta__source_counts *last = TA__ROWS(struct ta__source_counts, writer->counts);
    struct ta__source_counts *now = TA__ROWS(struct ta__source_counts, writer->fold);
    uint32_t next = 0; /* the gap column counts from here */
    for (uint32_t first = 0; first < leaf_count; first += TA__ROWS_PER_CHUNK) {
        uint32_t rows = leaf_count - first < TA__ROWS_PER_CHUNK ? leaf_count - first : TA__ROWS_PER_CHUNK;
        source->fold(source, first, rows, now);
        uint32_t changed = 0;
        for (uint32_t i = 0; i < rows; i++) {
            changed += memcmp(&now[i], &last[first + i], sizeof now[i]) != 0;
            *traces += now[i].allocated_blocks > now[i].freed_blocks &&
                       (source->leaves[first + i].flags & TA__LEAF_UNTRACED) == 0;
        }
        if (changed == 0)
            continue;
        if (ta__chunk_begin(chunks) != 0 || ta__raw_varint(chunks, next) != 0 || ta__raw_varint(chunks, changed) != 0 ||
            ta__columns_begin(chunks, 6, changed) != 0)
            return -1;
        for (uint32_t i = 0; i < rows; i++) {
            if (memcmp(&now[i], &last[first + i], sizeof now[i]) == 0)
                continue;
            ta__column_put(chunks, 0, first + i - next);
            next = first + i + 1;
            put_counts(chunks, &last[first + i], &now[i]);
            last[first + i] = now[i];
        }
        if (ta__columns_end(chunks) != 0 || ta__chunk_end(chunks, TA__KIND_COUNTERS, TA__CHUNK_REQUIRED) != 0)
            return -1;
    }
    return 0;
}

/* The values at the peak replace those of earlier entries. */
static int put_peak(struct ta__writer *writer, const struct ta__source *source, uint32_t leaf_count)
{
    struct ta__chunks *chunks = &writer->chunks;
    uint32_t count = source->leaf_peak_bytes == NULL ? 0 : source->leaf_peak_count;
    if (source->peak_is_now) {
        writer->peak_hash = 0; /* what comes next replaces what the reader takes from this entry */
        return 0;
    }
    if (count > leaf_count)
        count = leaf_count;
    uint64_t hash = count;
    uint32_t present = 0;
    for (uint32_t i = 0; i < count; i++) {
        hash = ta__hash_roll(hash, source->leaf_peak_bytes[i]);
        present += source->leaf_peak_bytes[i] != 0;
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
            if (source->leaf_peak_bytes[at] == 0)
                continue;
            ta__column_put(chunks, 0, at - next);
            ta__column_put(chunks, 1, source->leaf_peak_bytes[at]);
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
    for (uint32_t id = writer->leaves_written; id < cut.leaves; id++) {
        const struct ta__source_leaf *leaf = &source->leaves[id];
        if ((leaf->context >= cut.contexts && leaf->context != 0) || leaf->domain >= cut.domains ||
            leaf->thread > cut.threads)
            cut.leaves = id;
    }
    return cut;
}

/* Tables are append-only while tracing goes on; a restart may begin them anew. Only then, compare all of them. */
static int same_tables(const struct ta__writer *writer, const struct ta__source *source)
{
    uint32_t contexts = TA__ROW_COUNT(struct ta__view_context, writer->contexts);
    if (source->context_count < contexts || source->leaf_count < writer->leaves_written)
        return 0;
    if (source->epoch == writer->epoch)
        return 1;
    uint64_t contexts_hash = 0, leaves_hash = 0;
    for (uint32_t id = 1; id < contexts; id++)
        contexts_hash = hash_context(contexts_hash, &source->contexts[id]);
    for (uint32_t id = 0; id < writer->leaves_written; id++)
        leaves_hash = hash_leaf(leaves_hash, &source->leaves[id]);
    return contexts_hash == writer->tables_hash && leaves_hash == writer->leaves_hash;
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

    struct ta__chunks *chunks = &writer->chunks;
    ta__entry_begin(chunks);
    if (ta__put_fields(chunks, fields, writer->reset) != 0 || put_new_strings(writer) != 0 ||
        put_modules(writer, source, cut.modules) != 0 || put_contexts(writer, source, &cut) != 0 ||
        put_domains(writer, source, cut.domains) != 0 || put_threads(writer, source, cut.threads) != 0 ||
        put_leaves(writer, source, &cut) != 0 || put_counters(writer, source, cut.leaves, &row->traces) != 0 ||
        put_peak(writer, source, cut.leaves) != 0 || put_options(writer, source) != 0)
        return -1;
    row->time_ns = facts->time_ns;
    row->current_bytes = source->current_bytes;
    row->peak_bytes = source->peak_bytes;
    row->reset = (uint32_t)writer->reset;
    return 0;
}

/* The file is cut to what it was; when even that fails, what follows would be unreadable, so nothing may follow. */
static void take_back(struct ta__writer *writer)
{
    struct ta__sink *sink = &writer->chunks.sink;
    int number = sink->error;
    if (ta__sink_cut(sink, writer->chunks.entry_offset) != 0)
        sink->error = number;
    writer->reset = 1;
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
        if (put_entry(writer, source, facts) == 0 && (!with_end || ta__entry_end(&writer->chunks, &writer->row) == 0)) {
            writer->reset = 0;
            errno = saved_errno;
            return 0;
        }
        number = writer->chunks.sink.error;
        take_back(writer);
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
