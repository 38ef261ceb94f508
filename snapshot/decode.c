/* decode.c: see decode.h. The mirror of tables.c, write.c and encode.c. */
#include "snapshot/decode.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "snapshot/chunks.h"

/* A leaf as it stands in the file. */
struct leaf {
    uint32_t context, domain, thread;
    int32_t total_nframe;
    uint32_t flags;
};

/* Its counters: live = allocated - freed. */
struct counts {
    uint64_t allocated_blocks, allocated_bytes, freed_blocks, freed_bytes;
};

/* The chunk being decoded. */
struct chunk {
    const struct ta__chunk_header *header;
    struct ta__cursor at;
};

#define LEAF_FLAGS_KNOWN  ((uint64_t)(TA__FILE_LEAF_CUT_SHORT | TA__FILE_LEAF_OVERFLOW | TA__FILE_LEAF_UNTRACED))
#define TRACE_FLAGS_KNOWN ((uint64_t)(TA__TRACE_CUT_SHORT | TA__TRACE_OVERFLOW | TA__TRACE_EACH))
#define TOTAL_MAX         ((uint64_t)INT32_MAX)

/* ---- loaded ---------------------------------------------------------------------------------------------------- */

struct ta__loaded *ta__loaded_create(void)
{
    return ta__memory_map(sizeof(struct ta__loaded));
}

#define LOADED_BUFFERS(loaded)                                                                                         \
    {                                                                                                                  \
        &(loaded)->strings, &(loaded)->string_bytes, &(loaded)->modules, &(loaded)->build_ids, &(loaded)->frames,      \
            &(loaded)->contexts, &(loaded)->domains, &(loaded)->threads, &(loaded)->traces, &(loaded)->options,        \
            &(loaded)->metadata, &(loaded)->symbols, &(loaded)->symbol_ranges,                                         \
    }

void ta__loaded_destroy(struct ta__loaded *loaded)
{
    if (loaded == NULL)
        return;
    struct ta__buffer *const buffers[] = LOADED_BUFFERS(loaded);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        ta__buffer_free(buffers[i]);
    ta__memory_unmap(loaded, sizeof *loaded);
}

void ta__loaded_finish(struct ta__loaded *loaded)
{
    struct ta__view *view = &loaded->view;
    struct ta__buffer *const buffers[] = LOADED_BUFFERS(loaded);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffers[i]->budget = NULL; /* the budget belongs to the load */
    view->string_count = TA__ROW_COUNT(struct ta__view_string, loaded->strings);
    view->module_count = TA__ROW_COUNT(struct ta__view_module, loaded->modules);
    view->frame_count = TA__ROW_COUNT(struct ta__view_frame, loaded->frames);
    view->context_count = TA__ROW_COUNT(struct ta__view_context, loaded->contexts);
    view->symbol_count = TA__ROW_COUNT(struct ta__view_symbol, loaded->symbols);
    view->domain_count = TA__ROW_COUNT(struct ta__view_domain, loaded->domains);
    view->thread_count = TA__ROW_COUNT(struct ta__view_thread, loaded->threads);
    view->metadata_count = TA__ROW_COUNT(struct ta__view_pair, loaded->metadata);
    view->option_count = TA__ROW_COUNT(struct ta__view_pair, loaded->options);
    struct ta__view_string *strings = TA__ROWS(struct ta__view_string, loaded->strings);
    for (uint32_t i = 0; i < view->string_count; i++)
        strings[i].text = (const char *)loaded->string_bytes.bytes + (uintptr_t)strings[i].text;
    struct ta__view_module *modules = TA__ROWS(struct ta__view_module, loaded->modules);
    for (uint32_t i = 0; i < view->module_count; i++)
        modules[i].build_id =
            modules[i].build_id_length == 0 ? NULL : loaded->build_ids.bytes + (uintptr_t)modules[i].build_id;
    view->strings = strings;
    view->modules = modules;
    view->frames = TA__ROWS(const struct ta__view_frame, loaded->frames);
    view->contexts = TA__ROWS(const struct ta__view_context, loaded->contexts);
    view->symbols = TA__ROWS(const struct ta__view_symbol, loaded->symbols);
    view->symbol_ranges = TA__ROWS(const struct ta__view_symbol_range, loaded->symbol_ranges);
    view->traces = TA__ROWS(const struct ta__view_trace, loaded->traces);
    view->domains = TA__ROWS(const struct ta__view_domain, loaded->domains);
    view->threads = TA__ROWS(const struct ta__view_thread, loaded->threads);
    view->metadata = TA__ROWS(const struct ta__view_pair, loaded->metadata);
    view->options = TA__ROWS(const struct ta__view_pair, loaded->options);
}

/* ---- problems ------------------------------------------------------------------------------------------------------
 */

static TA_COLD int bad(struct ta__decoder *decoder, const struct chunk *chunk, const char *text)
{
    return ta__problem_begin(&decoder->problem, ta__section_name(chunk->header->kind), chunk->header->offset, text);
}

/* "leaf 77 names context 900 of 800". */
static TA_COLD int bad_reference(struct ta__decoder *decoder, const struct chunk *chunk, const char *row, uint64_t id,
                                 const char *what, uint64_t named, uint64_t count)
{
    struct ta__message *text = &decoder->problem.text;
    bad(decoder, chunk, row);
    ta__message_text(text, " ");
    ta__message_number(text, id);
    ta__message_text(text, " names ");
    ta__message_text(text, what);
    ta__message_text(text, " ");
    ta__message_number(text, named);
    ta__message_text(text, ", but there are ");
    ta__message_number(text, count);
    return -1;
}

static TA_COLD int bad_row(struct ta__decoder *decoder, const struct chunk *chunk, const char *row, uint64_t id,
                           const char *what)
{
    bad(decoder, chunk, row);
    ta__message_text(&decoder->problem.text, " ");
    ta__message_number(&decoder->problem.text, id);
    ta__message_text(&decoder->problem.text, " ");
    ta__message_text(&decoder->problem.text, what);
    return -1;
}

static TA_COLD int no_memory(struct ta__decoder *decoder, const struct chunk *chunk)
{
    if (!decoder->budget.exceeded)
        return bad(decoder, chunk, "no memory to load the recording");
    bad(decoder, chunk, "loading needs more than the limit of ");
    ta__message_size(&decoder->problem.text, decoder->budget.limit);
    return -1;
}

static int truncated(struct ta__decoder *decoder, const struct chunk *chunk)
{
    return bad(decoder, chunk, "the section ends within a row");
}

static int at_end(struct ta__decoder *decoder, const struct chunk *chunk)
{
    return chunk->at.at == chunk->at.end ? 0 : bad(decoder, chunk, "bytes are left after the last row");
}

/* ---- rows and columns ----------------------------------------------------------------------------------------------
 */

static uint64_t varint(struct chunk *chunk)
{
    return ta__get_varint(&chunk->at);
}

static uint64_t signed_varint(struct ta__cursor *column)
{
    return (uint64_t)ta__unzigzag(ta__get_varint(column));
}

/* Every row needs at least one byte in some column, so a row count above the payload's length is a lie; this is also
 * what bounds the memory that a count can claim. */
static int get_row_count(struct ta__decoder *decoder, struct chunk *chunk, uint64_t *first, uint32_t *rows)
{
    *first = varint(chunk);
    uint64_t count = varint(chunk);
    if (chunk->at.failed)
        return truncated(decoder, chunk);
    if (count > chunk->header->raw)
        return bad(decoder, chunk, "states more rows than it has bytes");
    *rows = (uint32_t)count;
    return 0;
}

/* Append-only tables: the first id must be the next one. */
static int get_append(struct ta__decoder *decoder, struct chunk *chunk, uint32_t have, uint32_t *rows)
{
    uint64_t first;
    if (get_row_count(decoder, chunk, &first, rows) != 0)
        return -1;
    if (first != have) {
        bad(decoder, chunk, "begins with row ");
        ta__message_number(&decoder->problem.text, first);
        ta__message_text(&decoder->problem.text, " where row ");
        ta__message_number(&decoder->problem.text, have);
        ta__message_text(&decoder->problem.text, " is due");
        return -1;
    }
    if (*rows > UINT32_MAX - 2 - have)
        return bad(decoder, chunk, "the table has too many rows");
    return 0;
}

static int get_columns(struct ta__decoder *decoder, struct chunk *chunk, struct ta__cursor *columns, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t length = varint(chunk);
        const uint8_t *bytes = ta__get_bytes(&chunk->at, length);
        if (bytes == NULL)
            return bad(decoder, chunk, "a column is longer than the section");
        columns[i] = (struct ta__cursor){bytes, bytes + length, 0};
    }
    return 0;
}

static int end_columns(struct ta__decoder *decoder, struct chunk *chunk, const struct ta__cursor *columns,
                       unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (columns[i].failed)
            return bad(decoder, chunk, "a column ends within its rows");
        if (columns[i].at != columns[i].end)
            return bad(decoder, chunk, "a column has more values than rows");
    }
    return at_end(decoder, chunk);
}

static uint32_t string_count(const struct ta__decoder *decoder)
{
    return TA__ROW_COUNT(struct ta__view_string, decoder->tables->strings);
}

/* Numbers that must fit in 32 bits are read wide and checked. */
#define CHECK_BELOW(value, count, row, id, what)                                                                       \
    do {                                                                                                               \
        if (TA_UNLIKELY((value) >= (count)))                                                                           \
            return bad_reference(decoder, chunk, row, id, what, value, count);                                         \
    } while (0)

/* ---- one function per kind
 * --------------------------------------------------------------------------------------------- */

static int get_fields(struct ta__decoder *decoder, struct chunk *chunk)
{
    uint32_t seen = 0;
    memset(decoder->fields, 0, sizeof decoder->fields);
    while (chunk->at.at != chunk->at.end) {
        uint64_t field = varint(chunk);
        uint64_t value = varint(chunk);
        if (chunk->at.failed)
            return bad(decoder, chunk, "the section ends within a field");
        if (field == 0 || field > TA__FIELD_LAST)
            continue;
        if (seen >> field & 1)
            return bad_row(decoder, chunk, "field", field, "comes twice");
        seen |= 1u << field;
        decoder->fields[field] = value;
    }
    if (decoder->fields[TA__FIELD_TRACEBACK_LIMIT] > UINT32_MAX || decoder->fields[TA__FIELD_PID] > UINT32_MAX)
        return bad(decoder, chunk, "a field is out of range");
    return 0;
}

static int get_strings(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__loaded *tables = decoder->tables;
    struct ta__cursor lengths = {0};
    uint32_t have = string_count(decoder), rows;
    if (get_append(decoder, chunk, have, &rows) != 0 || get_columns(decoder, chunk, &lengths, 1) != 0)
        return -1;
    if (ta__buffer_reserve(&tables->strings, rows * sizeof(struct ta__view_string)) != 0 ||
        ta__buffer_reserve(&tables->string_bytes, chunk->header->raw + (size_t)rows) != 0)
        return no_memory(decoder, chunk);
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t length = ta__get_varint(&lengths);
        const uint8_t *bytes = ta__get_bytes(&chunk->at, length);
        if (lengths.failed || bytes == NULL)
            return bad_row(decoder, chunk, "string", (uint64_t)have + i, "ends outside the section");
        struct ta__view_string row = {(const char *)tables->string_bytes.length, (size_t)length};
        if (ta__buffer_put(&tables->string_bytes, bytes, (size_t)length) != 0 ||
            ta__buffer_put(&tables->string_bytes, "", 1) != 0 ||
            ta__buffer_put(&tables->strings, &row, sizeof row) != 0)
            return no_memory(decoder, chunk);
    }
    if (have == 0 && rows > 0 && TA__ROWS(struct ta__view_string, tables->strings)[0].length != 0)
        return bad(decoder, chunk, "string 0 is not empty");
    return end_columns(decoder, chunk, &lengths, 1);
}

/* Rows by index, new or changed, ascending: the one of this index, which may be the next new one, or NULL. */
static void *row_of_index(struct ta__decoder *decoder, const struct chunk *chunk, struct ta__buffer *table,
                          size_t row_bytes, const char *what, uint64_t index, uint64_t *next)
{
    size_t count = table->length / row_bytes;
    if (index < *next || index > count) {
        bad_row(decoder, chunk, what, index, "is out of order");
        return NULL;
    }
    if (index == count && ta__buffer_add(table, row_bytes) == NULL) {
        no_memory(decoder, chunk);
        return NULL;
    }
    *next = index + 1;
    return table->bytes + index * row_bytes;
}

static int get_modules(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__loaded *tables = decoder->tables;
    uint64_t ignored;
    uint32_t rows;
    if (get_row_count(decoder, chunk, &ignored, &rows) != 0)
        return -1;
    uint64_t next = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t index = varint(chunk);
        uint64_t path = varint(chunk);
        uint64_t flags = varint(chunk);
        struct ta__view_module row = {.load_base = varint(chunk), .start = varint(chunk), .end = varint(chunk)};
        uint64_t id_length = varint(chunk);
        const uint8_t *id = ta__get_bytes(&chunk->at, id_length);
        if (chunk->at.failed)
            return truncated(decoder, chunk);
        struct ta__view_module *kept =
            row_of_index(decoder, chunk, &tables->modules, sizeof *kept, "module", index, &next);
        if (kept == NULL)
            return -1;
        CHECK_BELOW(path, string_count(decoder), "module", index, "string");
        if (id_length > 64)
            return bad_row(decoder, chunk, "module", index, "has a build id of more than 64 bytes");
        row.path = (uint32_t)path;
        row.flags = (uint32_t)flags;
        row.build_id_length = (uint32_t)id_length;
        row.build_id = (const uint8_t *)tables->build_ids.length;
        if (ta__buffer_put(&tables->build_ids, id, (size_t)id_length) != 0)
            return no_memory(decoder, chunk);
        *kept = row;
    }
    return at_end(decoder, chunk);
}

static int get_frames(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__loaded *tables = decoder->tables;
    struct ta__cursor columns[3];
    uint32_t have = TA__ROW_COUNT(struct ta__view_frame, tables->frames), rows;
    uint32_t strings = string_count(decoder);
    uint32_t modules = TA__ROW_COUNT(struct ta__view_module, tables->modules);
    if (get_append(decoder, chunk, have, &rows) != 0 || get_columns(decoder, chunk, columns, 3) != 0)
        return -1;
    size_t last_bytes = ((size_t)modules + 1) * sizeof(uint64_t);
    while (decoder->module_last.length < last_bytes)
        if (ta__buffer_add(&decoder->module_last, sizeof(uint64_t)) == NULL)
            return no_memory(decoder, chunk);
    if (ta__buffer_reserve(&tables->frames, rows * sizeof(struct ta__view_frame)) != 0)
        return no_memory(decoder, chunk);
    for (uint32_t i = 0; i < rows; i++) {
        struct ta__view_frame *frame = TA__ROWS(struct ta__view_frame, tables->frames) + have + i;
        uint64_t tag = ta__get_varint(&columns[0]);
        memset(frame, 0, sizeof *frame);
        if (tag == TA__TAG_OVERFLOW) {
            frame->kind = TA__FRAME_OVERFLOW;
        } else if (tag == TA__TAG_SOURCE) {
            frame->kind = TA__FRAME_SOURCE;
            uint64_t file = decoder->last_file + signed_varint(&columns[1]);
            uint64_t line = decoder->last_line + signed_varint(&columns[2]);
            CHECK_BELOW(file, strings, "frame", (uint64_t)have + i, "string");
            if (line > UINT32_MAX)
                return bad_row(decoder, chunk, "frame", (uint64_t)have + i, "has a line beyond 32 bits");
            frame->file = decoder->last_file = (uint32_t)file;
            frame->line = decoder->last_line = (uint32_t)line;
        } else {
            uint64_t module = tag == TA__TAG_NO_MODULE ? 0 : tag - TA__TAG_FIRST_MODULE + 1;
            if (module > modules)
                return bad_reference(decoder, chunk, "frame", (uint64_t)have + i, "module", module - 1, modules);
            uint64_t *last = &TA__ROWS(uint64_t, decoder->module_last)[module];
            frame->kind = TA__FRAME_ADDRESS;
            frame->module = (uint32_t)module;
            frame->address = *last += signed_varint(&columns[1]);
        }
    }
    tables->frames.length += rows * sizeof(struct ta__view_frame);
    return end_columns(decoder, chunk, columns, 3);
}

static int add_root(struct ta__decoder *decoder)
{
    if (decoder->tables->contexts.length != 0)
        return 0;
    return ta__buffer_add(&decoder->tables->contexts, sizeof(struct ta__view_context)) == NULL ||
                   ta__buffer_add(&decoder->depths, sizeof(uint32_t)) == NULL
               ? -1
               : 0;
}

static int get_contexts(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__loaded *tables = decoder->tables;
    struct ta__predict *predict = &decoder->predict;
    struct ta__cursor columns[3];
    uint32_t frame_count = TA__ROW_COUNT(struct ta__view_frame, tables->frames), rows;
    uint32_t have = TA__ROW_COUNT(struct ta__view_context, tables->contexts);
    if (get_append(decoder, chunk, have, &rows) != 0 || get_columns(decoder, chunk, columns, 3) != 0)
        return -1;
    if (ta__predict_extend(predict, frame_count) != 0 ||
        ta__buffer_reserve(&tables->contexts, rows * sizeof(struct ta__view_context)) != 0 ||
        ta__buffer_reserve(&decoder->depths, rows * sizeof(uint32_t)) != 0)
        return no_memory(decoder, chunk);
    struct ta__view_context *contexts = TA__ROWS(struct ta__view_context, tables->contexts);
    uint32_t *depths = TA__ROWS(uint32_t, decoder->depths);
    for (uint32_t id = have; id < have + rows; id++) {
        uint64_t back = ta__get_varint(&columns[0]);
        uint64_t code = ta__get_varint(&columns[1]);
        if (back >= id)
            return bad_row(decoder, chunk, "context", id, "does not come after its parent");
        uint32_t parent = id - 1 - (uint32_t)back;
        uint32_t *list = ta__predict_list(predict, parent == 0 ? 0 : contexts[parent].frame + 1);
        uint64_t frame = 0;
        if (code < TA__PREDICT_WAYS) {
            if (list[code] == 0)
                return bad_row(decoder, chunk, "context", id, "names a rank that no frame has");
            frame = list[code] - 1;
        } else if (code == TA__CODE_NEXT) {
            frame = predict->next++;
        } else if (code == TA__CODE_OTHER) {
            frame = ta__get_varint(&columns[2]);
        } else {
            return bad_row(decoder, chunk, "context", id, "has an unknown code");
        }
        CHECK_BELOW(frame, frame_count, "context", id, "frame");
        ta__predict_move(list, (uint32_t)code, (uint32_t)frame + 1);
        contexts[id].parent = parent;
        contexts[id].frame = (uint32_t)frame;
        depths[id] = depths[parent] + 1;
    }
    tables->contexts.length += rows * sizeof(struct ta__view_context);
    decoder->depths.length += rows * sizeof(uint32_t);
    return end_columns(decoder, chunk, columns, 3);
}

static int get_domains(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__buffer *table = &decoder->tables->domains;
    struct ta__cursor columns[10];
    uint64_t ignored, next = 0;
    uint32_t rows;
    if (get_row_count(decoder, chunk, &ignored, &rows) != 0 || get_columns(decoder, chunk, columns, 10) != 0)
        return -1;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t index = ta__get_varint(&columns[0]);
        uint64_t number = ta__get_varint(&columns[1]);
        uint64_t name = ta__get_varint(&columns[2]);
        uint64_t flags = ta__get_varint(&columns[3]);
        struct ta__view_domain *row = row_of_index(decoder, chunk, table, sizeof *row, "domain", index, &next);
        if (row == NULL)
            return -1;
        CHECK_BELOW(name, string_count(decoder), "domain", index, "string");
        if (number > UINT32_MAX)
            return bad_row(decoder, chunk, "domain", index, "has a number beyond 32 bits");
        *row = (struct ta__view_domain){
            .number = (uint32_t)number,
            .name = (uint32_t)name,
            .flags = (uint32_t)flags,
            .live_bytes = ta__get_varint(&columns[4]),
            .live_blocks = ta__get_varint(&columns[5]),
            .peak_bytes = ta__get_varint(&columns[6]),
            .allocated_bytes = ta__get_varint(&columns[7]),
            .allocated_blocks = ta__get_varint(&columns[8]),
            .limit_bytes = ta__get_varint(&columns[9]),
        };
    }
    return end_columns(decoder, chunk, columns, 10);
}

static int get_threads(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__buffer *table = &decoder->tables->threads;
    struct ta__cursor columns[4];
    uint64_t ignored, next = 0;
    uint32_t rows;
    if (get_row_count(decoder, chunk, &ignored, &rows) != 0 || get_columns(decoder, chunk, columns, 4) != 0)
        return -1;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t index = ta__get_varint(&columns[0]);
        uint64_t tid = ta__get_varint(&columns[1]);
        uint64_t name = ta__get_varint(&columns[2]);
        uint64_t flags = ta__get_varint(&columns[3]);
        struct ta__view_thread *row = row_of_index(decoder, chunk, table, sizeof *row, "thread", index, &next);
        if (row == NULL)
            return -1;
        CHECK_BELOW(name, string_count(decoder), "thread", index, "string");
        *row = (struct ta__view_thread){.tid = (uint32_t)tid, .name = (uint32_t)name, .flags = (uint32_t)flags};
    }
    return end_columns(decoder, chunk, columns, 4);
}

static void clear_from(struct ta__buffer *buffer, size_t offset)
{
    if (offset < buffer->length)
        memset(buffer->bytes + offset, 0, buffer->length - offset);
}

static int get_leaves(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__cursor columns[5];
    uint32_t have = TA__ROW_COUNT(struct leaf, decoder->leaves), rows;
    uint32_t contexts = TA__ROW_COUNT(struct ta__view_context, decoder->tables->contexts);
    uint32_t domains = TA__ROW_COUNT(struct ta__view_domain, decoder->tables->domains);
    uint32_t threads = TA__ROW_COUNT(struct ta__view_thread, decoder->tables->threads);
    const uint32_t *depths = TA__ROWS(const uint32_t, decoder->depths);
    if (get_append(decoder, chunk, have, &rows) != 0 || get_columns(decoder, chunk, columns, 5) != 0)
        return -1;
    if (ta__buffer_reserve(&decoder->leaves, rows * sizeof(struct leaf)) != 0 ||
        ta__buffer_reserve(&decoder->counts, rows * sizeof(struct counts)) != 0 ||
        ta__buffer_reserve(&decoder->peaks, rows * sizeof(uint64_t)) != 0)
        return no_memory(decoder, chunk);
    for (uint32_t id = have; id < have + rows; id++) {
        uint64_t context = decoder->last_leaf_context + signed_varint(&columns[0]);
        uint64_t domain = ta__get_varint(&columns[1]);
        uint64_t thread = ta__get_varint(&columns[2]);
        uint64_t beyond = signed_varint(&columns[3]);
        uint64_t flags = ta__get_varint(&columns[4]);
        CHECK_BELOW(context, contexts, "leaf", id, "context");
        CHECK_BELOW(domain, domains, "leaf", id, "domain");
        if (thread > threads)
            return bad_reference(decoder, chunk, "leaf", id, "thread", thread - 1, threads);
        uint64_t total = depths[context] + beyond;
        if (total > TOTAL_MAX)
            return bad_row(decoder, chunk, "leaf", id, "has an impossible depth");
        if ((flags & ~LEAF_FLAGS_KNOWN) != 0)
            return bad_row(decoder, chunk, "leaf", id, "has unknown flags");
        decoder->last_leaf_context = (uint32_t)context;
        *(struct leaf *)ta__buffer_add(&decoder->leaves, sizeof(struct leaf)) = (struct leaf){
            (uint32_t)context, (uint32_t)domain, (uint32_t)thread, (int32_t)total, (uint32_t)flags,
        };
    }
    decoder->counts.length += rows * sizeof(struct counts);
    decoder->peaks.length += rows * sizeof(uint64_t);
    clear_from(&decoder->counts, have * sizeof(struct counts));
    clear_from(&decoder->peaks, have * sizeof(uint64_t));
    return end_columns(decoder, chunk, columns, 5);
}

/* Rows that skip the unchanged: each gap counts from behind the former row, through all chunks of the entry. */
static int get_gap_start(struct ta__decoder *decoder, struct chunk *chunk, uint32_t next, uint32_t *rows)
{
    uint64_t first;
    if (get_row_count(decoder, chunk, &first, rows) != 0)
        return -1;
    return first == next ? 0 : bad(decoder, chunk, "does not continue the section before it");
}

static uint64_t usual_size(const struct counts *counts)
{
    return counts->allocated_blocks == 0 ? 0 : counts->allocated_bytes / counts->allocated_blocks;
}

static int get_counters(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__cursor columns[6];
    uint32_t leaf_count = TA__ROW_COUNT(struct leaf, decoder->leaves), rows;
    if (get_gap_start(decoder, chunk, decoder->next_counter, &rows) != 0 ||
        get_columns(decoder, chunk, columns, 6) != 0)
        return -1;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t gap = ta__get_varint(&columns[0]);
        if (columns[0].failed)
            return end_columns(decoder, chunk, columns, 6);
        if (gap >= leaf_count - decoder->next_counter)
            return bad_row(decoder, chunk, "row", i, "names a leaf that is not there");
        uint32_t id = decoder->next_counter + (uint32_t)gap;
        decoder->next_counter = id + 1;
        struct counts *counts = &TA__ROWS(struct counts, decoder->counts)[id];
        uint64_t allocated = signed_varint(&columns[1]);
        uint64_t size = allocated == 0 ? 0 : usual_size(counts) + signed_varint(&columns[2]);
        uint64_t bytes = allocated * size + ta__get_varint(&columns[3]);
        counts->allocated_blocks += allocated;
        counts->allocated_bytes += bytes;
        uint64_t live = signed_varint(&columns[4]);
        uint64_t live_bytes = live * usual_size(counts) + signed_varint(&columns[5]);
        counts->freed_blocks += allocated - live;
        counts->freed_bytes += bytes - live_bytes;
    }
    return end_columns(decoder, chunk, columns, 6);
}

static int get_peak(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__cursor columns[2];
    uint32_t leaf_count = TA__ROW_COUNT(struct leaf, decoder->leaves), rows;
    if ((decoder->seen >> TA__KIND_PEAK & 1) == 0) {
        decoder->seen |= 1u << TA__KIND_PEAK;
        clear_from(&decoder->peaks, 0);
    }
    if (get_gap_start(decoder, chunk, decoder->next_peak, &rows) != 0 || get_columns(decoder, chunk, columns, 2) != 0)
        return -1;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t gap = ta__get_varint(&columns[0]);
        if (columns[0].failed)
            break;
        if (gap >= leaf_count - decoder->next_peak)
            return bad_row(decoder, chunk, "row", i, "names a leaf that is not there");
        uint32_t id = decoder->next_peak + (uint32_t)gap;
        decoder->next_peak = id + 1;
        TA__ROWS(uint64_t, decoder->peaks)[id] = ta__get_varint(&columns[1]);
    }
    return end_columns(decoder, chunk, columns, 2);
}

static int get_traces(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__cursor columns[10];
    uint32_t have = TA__ROW_COUNT(struct ta__view_trace, decoder->data_traces), rows;
    uint32_t contexts = TA__ROW_COUNT(struct ta__view_context, decoder->tables->contexts);
    uint32_t threads = TA__ROW_COUNT(struct ta__view_thread, decoder->tables->threads);
    if (get_append(decoder, chunk, have, &rows) != 0 || get_columns(decoder, chunk, columns, 10) != 0)
        return -1;
    if (ta__buffer_reserve(&decoder->data_traces, rows * sizeof(struct ta__view_trace)) != 0)
        return no_memory(decoder, chunk);
    uint64_t last_context = 0, last_domain = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t id = (uint64_t)have + i;
        uint64_t context = last_context + signed_varint(&columns[0]);
        uint64_t domain = last_domain + signed_varint(&columns[1]);
        uint64_t thread = ta__get_varint(&columns[2]);
        uint64_t flags = ta__get_varint(&columns[3]);
        uint64_t total = ta__get_varint(&columns[4]); /* plus one; 0 = unknown */
        CHECK_BELOW(context, contexts, "trace", id, "context");
        if (thread > threads)
            return bad_reference(decoder, chunk, "trace", id, "thread", thread - 1, threads);
        if (domain > UINT32_MAX)
            return bad_row(decoder, chunk, "trace", id, "has a domain beyond 32 bits");
        if ((flags & ~TRACE_FLAGS_KNOWN) != 0)
            return bad_row(decoder, chunk, "trace", id, "has unknown flags");
        if (total > TOTAL_MAX)
            return bad_row(decoder, chunk, "trace", id, "has an impossible depth");
        struct ta__view_trace row = {
            .context = (uint32_t)context,
            .domain = (uint32_t)domain,
            .thread = (uint32_t)thread,
            .flags = (uint32_t)flags,
            .total_nframe = (int32_t)total - 1,
            .size = ta__get_varint(&columns[5]),
            .count = ta__get_varint(&columns[6]),
            .allocated_bytes = ta__get_varint(&columns[7]),
            .allocated_blocks = ta__get_varint(&columns[8]),
            .peak_bytes = ta__get_varint(&columns[9]),
        };
        last_context = context;
        last_domain = domain;
        if (ta__buffer_put(&decoder->data_traces, &row, sizeof row) != 0)
            return no_memory(decoder, chunk);
    }
    return end_columns(decoder, chunk, columns, 10);
}

static int get_pairs(struct ta__decoder *decoder, struct chunk *chunk, struct ta__buffer *table)
{
    struct ta__cursor columns[2];
    uint64_t ignored;
    uint32_t rows;
    if (decoder->seen >> chunk->header->kind & 1)
        return bad(decoder, chunk, "the section comes twice in one entry");
    decoder->seen |= 1u << chunk->header->kind;
    if (get_row_count(decoder, chunk, &ignored, &rows) != 0 || get_columns(decoder, chunk, columns, 2) != 0)
        return -1;
    table->length = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t key = ta__get_varint(&columns[0]);
        uint64_t value = ta__get_varint(&columns[1]);
        CHECK_BELOW(key, string_count(decoder), "row", i, "string");
        CHECK_BELOW(value, string_count(decoder), "row", i, "string");
        struct ta__view_pair row = {(uint32_t)key, (uint32_t)value};
        if (ta__buffer_put(table, &row, sizeof row) != 0)
            return no_memory(decoder, chunk);
    }
    return end_columns(decoder, chunk, columns, 2);
}

static int get_symbols(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__buffer *table = &decoder->tables->symbols;
    struct ta__cursor columns[6];
    uint32_t have = TA__ROW_COUNT(struct ta__view_symbol, *table), rows;
    uint32_t strings = string_count(decoder);
    if (get_append(decoder, chunk, have, &rows) != 0 || get_columns(decoder, chunk, columns, 6) != 0)
        return -1;
    uint64_t last_file = 0, last_line = 0, last_function = 0, last_raw = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t id = (uint64_t)have + i;
        uint64_t file = last_file + signed_varint(&columns[0]);
        uint64_t line = last_line + signed_varint(&columns[1]);
        uint64_t function = last_function + signed_varint(&columns[2]);
        uint64_t raw_name = last_raw + signed_varint(&columns[3]);
        CHECK_BELOW(file, strings, "symbol", id, "string");
        CHECK_BELOW(function, strings, "symbol", id, "string");
        CHECK_BELOW(raw_name, strings, "symbol", id, "string");
        if (line > UINT32_MAX)
            return bad_row(decoder, chunk, "symbol", id, "has a line beyond 32 bits");
        struct ta__view_symbol row = {
            .file = (uint32_t)file,
            .line = (uint32_t)line,
            .function = (uint32_t)function,
            .raw_name = (uint32_t)raw_name,
            .offset = ta__get_varint(&columns[4]),
            .flags = (uint32_t)ta__get_varint(&columns[5]),
        };
        last_file = file;
        last_line = line;
        last_function = function;
        last_raw = raw_name;
        if (ta__buffer_put(table, &row, sizeof row) != 0)
            return no_memory(decoder, chunk);
    }
    return end_columns(decoder, chunk, columns, 6);
}

static int get_symbol_ranges(struct ta__decoder *decoder, struct chunk *chunk)
{
    struct ta__buffer *table = &decoder->tables->symbol_ranges;
    struct ta__cursor columns[2];
    uint32_t have = TA__ROW_COUNT(struct ta__view_symbol_range, *table), rows;
    uint32_t frames = TA__ROW_COUNT(struct ta__view_frame, decoder->tables->frames);
    uint64_t symbols = TA__ROW_COUNT(struct ta__view_symbol, decoder->tables->symbols);
    if (get_append(decoder, chunk, have, &rows) != 0 || get_columns(decoder, chunk, columns, 2) != 0)
        return -1;
    if (rows > frames - have)
        return bad(decoder, chunk, "describes more frames than there are");
    uint64_t next = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t first = next + signed_varint(&columns[0]);
        uint64_t count = ta__get_varint(&columns[1]);
        if (first > symbols || count > symbols - first)
            return bad_row(decoder, chunk, "frame", (uint64_t)have + i, "names symbols that are not there");
        struct ta__view_symbol_range row = {(uint32_t)first, (uint32_t)count};
        next = first + count;
        if (ta__buffer_put(table, &row, sizeof row) != 0)
            return no_memory(decoder, chunk);
    }
    return end_columns(decoder, chunk, columns, 2);
}

static int get_end(struct ta__decoder *decoder, struct chunk *chunk)
{
    uint64_t digest = ta__get_fixed(&chunk->at, 8);
    uint64_t chunk_count = varint(chunk);
    varint(chunk); /* number of traces, for lists of entries */
    if (chunk->at.failed)
        return truncated(decoder, chunk);
    if (chunk_count != decoder->chunk_count || digest != decoder->digest)
        return bad(decoder, chunk, "the sections of the entry are not those that were written");
    static const uint32_t string_fields[] = {TA__FIELD_PROGRAM, TA__FIELD_HOST, TA__FIELD_REASON};
    uint32_t strings = string_count(decoder);
    for (unsigned i = 0; i < sizeof string_fields / sizeof *string_fields; i++)
        CHECK_BELOW(decoder->fields[string_fields[i]], strings + (strings == 0), "field", string_fields[i], "string");
    return at_end(decoder, chunk);
}

/* ---- chunks and entries -------------------------------------------------------------------------------------------
 */

/* What may be decompressed for one load, as a multiple of the memory limit: long series pass, bombs do not. */
enum { RAW_TOTAL_FACTOR = 16 };

const uint8_t *ta__decoder_payload(struct ta__decoder *decoder, const struct ta__chunk_header *header)
{
    struct chunk chunk = {header, {0}};
    const uint8_t *stored = ta__input_at(decoder->input, header->offset + TA__CHUNK_HEADER_LENGTH, header->stored);
    if (stored == NULL) {
        bad(decoder, &chunk, "the section cannot be read");
        return NULL;
    }
    if ((uint32_t)ta__hash_bytes(stored, header->stored) != header->check) {
        bad(decoder, &chunk, "the section has a wrong checksum");
        return NULL;
    }
    if (header->flags & TA__CHUNK_PLAIN)
        return stored;
    decoder->raw_total += header->raw;
    if (decoder->raw_total / RAW_TOTAL_FACTOR > decoder->budget.limit) {
        bad(decoder, &chunk, "the recording decompresses to more than 16 times the limit of ");
        ta__message_size(&decoder->problem.text, decoder->budget.limit);
        return NULL;
    }
    decoder->raw.length = 0;
    if (ta__buffer_reserve(&decoder->raw, header->raw + 1) != 0) {
        no_memory(decoder, &chunk);
        return NULL;
    }
    const char *wrong = ta__decompress(&decoder->coder, decoder->raw.bytes, header->raw, stored, header->stored);
    if (wrong != NULL) {
        bad(decoder, &chunk, "the section ");
        ta__message_text(&decoder->problem.text, wrong);
        return NULL;
    }
    return decoder->raw.bytes;
}

static int known_kind(uint32_t kind)
{
    return (kind >= TA__KIND_ENTRY && kind <= TA__KIND_SYMBOL_RANGES) || kind == TA__KIND_END;
}

static int get_chunk(struct ta__decoder *decoder, const struct ta__chunk_header *header)
{
    struct chunk chunk = {header, {0}};
    if (!known_kind(header->kind)) {
        if ((header->flags & TA__CHUNK_REQUIRED) == 0)
            return 0;
        bad(decoder, &chunk, "the recording requires section kind ");
        ta__message_number(&decoder->problem.text, header->kind);
        ta__message_text(&decoder->problem.text, ", which this library does not know");
        return -1;
    }
    const uint8_t *payload = ta__decoder_payload(decoder, header);
    if (payload == NULL)
        return -1;
    chunk.at = (struct ta__cursor){payload, payload + header->raw, 0};
    switch (header->kind) {
    case TA__KIND_ENTRY:
        return get_fields(decoder, &chunk);
    case TA__KIND_STRINGS:
        return get_strings(decoder, &chunk);
    case TA__KIND_MODULES:
        return get_modules(decoder, &chunk);
    case TA__KIND_FRAMES:
        return get_frames(decoder, &chunk);
    case TA__KIND_CONTEXTS:
        return get_contexts(decoder, &chunk);
    case TA__KIND_DOMAINS:
        return get_domains(decoder, &chunk);
    case TA__KIND_THREADS:
        return get_threads(decoder, &chunk);
    case TA__KIND_LEAVES:
        return get_leaves(decoder, &chunk);
    case TA__KIND_COUNTERS:
        return get_counters(decoder, &chunk);
    case TA__KIND_PEAK:
        return get_peak(decoder, &chunk);
    case TA__KIND_TRACES:
        return get_traces(decoder, &chunk);
    case TA__KIND_OPTIONS:
        return get_pairs(decoder, &chunk, &decoder->tables->options);
    case TA__KIND_METADATA:
        return get_pairs(decoder, &chunk, &decoder->tables->metadata);
    case TA__KIND_SYMBOLS:
        return get_symbols(decoder, &chunk);
    case TA__KIND_SYMBOL_RANGES:
        return get_symbol_ranges(decoder, &chunk);
    default:
        return get_end(decoder, &chunk);
    }
}

static int new_tables(struct ta__decoder *decoder)
{
    ta__loaded_destroy(decoder->tables);
    ta__buffer_free(&decoder->predict.lists);
    ta__buffer_free(&decoder->module_last);
    ta__buffer_free(&decoder->depths);
    ta__buffer_free(&decoder->leaves);
    ta__buffer_free(&decoder->counts);
    ta__buffer_free(&decoder->peaks);
    ta__buffer_free(&decoder->data_traces);
    decoder->predict.next = 0;
    decoder->last_file = decoder->last_line = decoder->last_leaf_context = 0;
    decoder->tables = ta__loaded_create();
    if (decoder->tables == NULL)
        return -1;
    struct ta__buffer *const buffers[] = LOADED_BUFFERS(decoder->tables);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffers[i]->budget = &decoder->budget;
    return add_root(decoder);
}

int ta__decoder_open(struct ta__decoder *decoder, struct ta__input *input, size_t memory_limit)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->input = input;
    decoder->budget.limit = memory_limit;
    struct ta__buffer *const buffers[] = {
        &decoder->raw,    &decoder->predict.lists, &decoder->module_last, &decoder->depths,
        &decoder->leaves, &decoder->counts,        &decoder->peaks,       &decoder->data_traces,
    };
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffers[i]->budget = &decoder->budget;
    if (ta__decompressor_open(&decoder->coder) != 0 || new_tables(decoder) != 0)
        return ta__problem_begin(&decoder->problem, "", 0,
                                 decoder->budget.exceeded ? "the memory limit is too small to load anything"
                                                          : "no memory to load the recording");
    return 0;
}

void ta__decoder_close(struct ta__decoder *decoder)
{
    ta__loaded_destroy(decoder->tables);
    decoder->tables = NULL;
    ta__coder_close(&decoder->coder);
    ta__buffer_free(&decoder->raw);
    ta__buffer_free(&decoder->predict.lists);
    ta__buffer_free(&decoder->module_last);
    ta__buffer_free(&decoder->depths);
    ta__buffer_free(&decoder->leaves);
    ta__buffer_free(&decoder->counts);
    ta__buffer_free(&decoder->peaks);
    ta__buffer_free(&decoder->data_traces);
}

/* The entry was taken at the peak. */
static void peak_is_now(struct ta__decoder *decoder)
{
    const struct counts *counts = TA__ROWS(const struct counts, decoder->counts);
    uint64_t *peaks = TA__ROWS(uint64_t, decoder->peaks);
    for (uint32_t id = 0; id < TA__ROW_COUNT(struct leaf, decoder->leaves); id++) {
        int64_t live = (int64_t)(counts[id].allocated_bytes - counts[id].freed_bytes);
        peaks[id] = live > 0 ? (uint64_t)live : 0;
    }
}

int ta__decoder_entry(struct ta__decoder *decoder, const struct ta__entry_place *place)
{
    decoder->digest = 0;
    decoder->chunk_count = 0;
    decoder->next_counter = decoder->next_peak = 0;
    decoder->seen = 0;
    decoder->data_traces.length = 0;
    if (place->reset && new_tables(decoder) != 0)
        return ta__problem_begin(&decoder->problem, "entry", place->offset, "no memory to load the recording");
    for (uint64_t offset = place->offset; offset < place->end;) {
        struct ta__chunk_header header;
        if (ta__input_chunk(decoder->input, offset, &header, &decoder->problem) != 0 ||
            get_chunk(decoder, &header) != 0)
            return -1;
        if (header.kind == TA__KIND_ENTRY && decoder->fields[TA__FIELD_COUNTERS_RESTART]) {
            clear_from(&decoder->counts, 0);
            clear_from(&decoder->peaks, 0);
        }
        decoder->chunk_count++;
        decoder->digest = ta__hash_roll(decoder->digest, header.hash);
        offset += TA__CHUNK_HEADER_LENGTH + header.stored;
    }
    if (decoder->fields[TA__FIELD_PEAK_IS_NOW])
        peak_is_now(decoder);
    return 0;
}

int ta__decoder_summary(struct ta__decoder *decoder, const struct ta__entry_place *place, uint64_t *traces)
{
    struct ta__chunk_header header;
    struct chunk chunk = {&header, {0}};
    if (ta__input_chunk(decoder->input, place->offset, &header, &decoder->problem) != 0)
        return -1;
    const uint8_t *payload = ta__decoder_payload(decoder, &header);
    if (payload == NULL)
        return -1;
    chunk.at = (struct ta__cursor){payload, payload + header.raw, 0};
    if (get_fields(decoder, &chunk) != 0 ||
        ta__input_chunk(decoder->input, place->last, &header, &decoder->problem) != 0)
        return -1;
    payload = ta__decoder_payload(decoder, &header);
    if (payload == NULL)
        return -1;
    chunk.at = (struct ta__cursor){payload, payload + header.raw, 0};
    ta__get_fixed(&chunk.at, 8);
    varint(&chunk);
    *traces = varint(&chunk);
    return chunk.at.failed ? truncated(decoder, &chunk) : 0;
}

int ta__decoder_index(struct ta__decoder *decoder, const struct ta__chunk_header *header, struct ta__buffer *rows)
{
    struct chunk chunk = {header, {0}};
    struct ta__cursor columns[6];
    const uint8_t *payload = ta__decoder_payload(decoder, header);
    if (payload == NULL)
        return -1;
    chunk.at = (struct ta__cursor){payload, payload + header->raw, 0};
    uint64_t count = varint(&chunk);
    if (chunk.at.failed || count > header->raw)
        return bad(decoder, &chunk, "states more rows than it has bytes");
    if (get_columns(decoder, &chunk, columns, 6) != 0)
        return -1;
    struct ta__index_row row = {0};
    for (uint64_t i = 0; i < count; i++) {
        row.offset += ta__get_varint(&columns[0]);
        row.time_ns += signed_varint(&columns[1]);
        row.current_bytes += signed_varint(&columns[2]);
        row.peak_bytes += signed_varint(&columns[3]);
        row.traces += signed_varint(&columns[4]);
        row.reset = (uint32_t)ta__get_varint(&columns[5]);
        if (ta__buffer_put(rows, &row, sizeof row) != 0)
            return no_memory(decoder, &chunk);
    }
    return end_columns(decoder, &chunk, columns, 6);
}

/* ---- the view ------------------------------------------------------------------------------------------------------
 */

/* With a limit of one frame nobody walks the stack, and its depth is written as 0: not known. A stack of which no frame
 * could be found counts as the one frame that stands for it. */
static int32_t depth_of(const struct leaf *leaf)
{
    if (leaf->total_nframe != 0)
        return leaf->total_nframe;
    return leaf->context == 0 && (leaf->flags & TA__TRACE_OVERFLOW) == 0 ? 1 : -1;
}

/* What a leaf's counters say now. A snapshot reads them while they move: a free may have been seen before its malloc.
 */
static int trace_of_leaf(const struct ta__decoder *decoder, uint32_t id, struct ta__view_trace *trace)
{
    const struct leaf *leaf = &TA__ROWS(const struct leaf, decoder->leaves)[id];
    const struct counts *counts = &TA__ROWS(const struct counts, decoder->counts)[id];
    uint64_t peak = TA__ROWS(const uint64_t, decoder->peaks)[id];
    if ((leaf->flags & TA__FILE_LEAF_UNTRACED) != 0 || (counts->allocated_blocks == 0 && peak == 0))
        return 0;
    int64_t blocks = (int64_t)(counts->allocated_blocks - counts->freed_blocks);
    int64_t bytes = (int64_t)(counts->allocated_bytes - counts->freed_bytes);
    *trace = (struct ta__view_trace){
        .context = leaf->context,
        .domain = TA__ROWS(const struct ta__view_domain, decoder->tables->domains)[leaf->domain].number,
        .thread = leaf->thread,
        .flags = leaf->flags & (TA__TRACE_CUT_SHORT | TA__TRACE_OVERFLOW),
        .total_nframe = depth_of(leaf),
        .count = blocks > 0 ? (uint64_t)blocks : 0,
        .size = blocks > 0 && bytes > 0 ? (uint64_t)bytes : 0,
        .allocated_bytes = counts->allocated_bytes,
        .allocated_blocks = counts->allocated_blocks,
        .peak_bytes = peak,
    };
    return 1;
}

/* Appends the traces with live blocks (gone = 0) or without (gone = 1). */
static int gather(struct ta__decoder *decoder, int gone)
{
    struct ta__buffer *traces = &decoder->tables->traces;
    uint32_t leaf_count = TA__ROW_COUNT(struct leaf, decoder->leaves);
    for (uint32_t id = 0; id < leaf_count; id++) {
        struct ta__view_trace trace;
        if (trace_of_leaf(decoder, id, &trace) && (trace.count == 0) == gone &&
            ta__buffer_put(traces, &trace, sizeof trace) != 0)
            return -1;
    }
    const struct ta__view_trace *data = TA__ROWS(const struct ta__view_trace, decoder->data_traces);
    uint32_t data_count = TA__ROW_COUNT(struct ta__view_trace, decoder->data_traces);
    for (uint32_t i = 0; i < data_count; i++)
        if ((data[i].count == 0) == gone && ta__buffer_put(traces, &data[i], sizeof data[i]) != 0)
            return -1;
    return 0;
}

/* Traces of the overflow leaf get a stack of one frame that says so. */
static int give_overflow_a_frame(struct ta__decoder *decoder)
{
    struct ta__loaded *tables = decoder->tables;
    struct ta__view_trace *traces = TA__ROWS(struct ta__view_trace, tables->traces);
    uint32_t trace_count = TA__ROW_COUNT(struct ta__view_trace, tables->traces);
    uint32_t context = 0;
    for (uint32_t i = 0; i < trace_count; i++) {
        if ((traces[i].flags & TA__TRACE_OVERFLOW) == 0 || traces[i].context != 0)
            continue;
        if (context == 0) {
            context = TA__ROW_COUNT(struct ta__view_context, tables->contexts);
            struct ta__view_context node = {0, TA__ROW_COUNT(struct ta__view_frame, tables->frames)};
            struct ta__view_frame frame = {.kind = TA__FRAME_OVERFLOW};
            struct ta__view_symbol_range none = {0, 0};
            if (ta__buffer_put(&tables->contexts, &node, sizeof node) != 0 ||
                ta__buffer_put(&tables->frames, &frame, sizeof frame) != 0 ||
                (tables->symbol_ranges.length != 0 && ta__buffer_put(&tables->symbol_ranges, &none, sizeof none) != 0))
                return -1;
        }
        traces[i].context = context;
    }
    return 0;
}

/* Ranges cover every frame or none. */
static int complete_ranges(struct ta__loaded *tables)
{
    size_t wanted = TA__ROW_COUNT(struct ta__view_frame, tables->frames) * sizeof(struct ta__view_symbol_range);
    while (tables->symbol_ranges.length != 0 && tables->symbol_ranges.length < wanted)
        if (ta__buffer_add(&tables->symbol_ranges, sizeof(struct ta__view_symbol_range)) == NULL)
            return -1;
    return 0;
}

struct ta__loaded *ta__decoder_finish(struct ta__decoder *decoder)
{
    struct ta__loaded *loaded = decoder->tables;
    struct ta__view *view = &loaded->view;
    const uint64_t *fields = decoder->fields;
    int failed = complete_ranges(loaded) != 0 || gather(decoder, 0) != 0;
    view->trace_count = TA__ROW_COUNT(struct ta__view_trace, loaded->traces);
    failed = failed || gather(decoder, 1) != 0 || give_overflow_a_frame(decoder) != 0;
    view->gone_trace_count = TA__ROW_COUNT(struct ta__view_trace, loaded->traces) - view->trace_count;
    if (!failed && loaded->strings.length == 0) { /* index 0 is always there */
        struct ta__view_string empty = {NULL, 0};
        failed = ta__buffer_put(&loaded->string_bytes, "", 1) != 0 ||
                 ta__buffer_put(&loaded->strings, &empty, sizeof empty) != 0;
    }
    if (failed) {
        struct ta__chunk_header nowhere = {.kind = TA__KIND_TRACES};
        no_memory(decoder, &(struct chunk){&nowhere, {0}});
        decoder->problem.section = "";
        return NULL;
    }
    view->traceback_limit = (uint32_t)fields[TA__FIELD_TRACEBACK_LIMIT];
    view->pid = (uint32_t)fields[TA__FIELD_PID];
    view->program = (uint32_t)fields[TA__FIELD_PROGRAM];
    view->host = (uint32_t)fields[TA__FIELD_HOST];
    view->reason = (uint32_t)fields[TA__FIELD_REASON];
    view->time_ns = fields[TA__FIELD_TIME_NS];
    view->start_time_ns = fields[TA__FIELD_START_TIME_NS];
    view->epoch = fields[TA__FIELD_EPOCH];
    view->current_bytes = fields[TA__FIELD_CURRENT_BYTES];
    view->peak_bytes = fields[TA__FIELD_PEAK_BYTES];
    view->sample_bytes = fields[TA__FIELD_SAMPLE_BYTES];
    view->lost = fields[TA__FIELD_LOST];
    view->overflowed = fields[TA__FIELD_OVERFLOWED];
    view->cut_short = fields[TA__FIELD_CUT_SHORT];
    view->foreign_frees = fields[TA__FIELD_FOREIGN_FREES];
    view->invalid_frees = fields[TA__FIELD_INVALID_FREES];
    view->snapshot_errors = fields[TA__FIELD_SNAPSHOT_ERRORS];
    ta__loaded_finish(loaded);
    decoder->tables = NULL;
    return loaded;
}
