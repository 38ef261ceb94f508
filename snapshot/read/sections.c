/* sections.c: see sections.h. */
#include "snapshot/read/sections.h"

#include "snapshot/format/chunks.h"

#define LEAF_FLAGS_KNOWN  ((uint64_t)(TA__FILE_LEAF_CUT_SHORT | TA__FILE_LEAF_OVERFLOW | TA__FILE_LEAF_UNTRACED))
#define TRACE_FLAGS_KNOWN ((uint64_t)(TA__TRACE_CUT_SHORT | TA__TRACE_OVERFLOW | TA__TRACE_EACH))
#define TOTAL_MAX         ((uint64_t)INT32_MAX)

/* ---- problems ---- */

int ta__section_bad(struct ta__decoder *decoder, const struct ta__chunk_header *header, const char *text)
{
    return ta__problem_begin(&decoder->problem, ta__section_name(header->kind), header->offset, text);
}

int ta__section_no_memory(struct ta__decoder *decoder, const struct ta__chunk_header *header)
{
    if (!decoder->budget.exceeded)
        return ta__section_bad(decoder, header, "no memory to load the recording");
    ta__section_bad(decoder, header, "loading needs more than the limit of ");
    ta__message_size(&decoder->problem.text, decoder->budget.limit);
    return -1;
}

static TA_COLD int bad(struct ta__decoder *decoder, const struct ta__section *section, const char *text)
{
    return ta__section_bad(decoder, section->header, text);
}

static TA_COLD int no_memory(struct ta__decoder *decoder, const struct ta__section *section)
{
    return ta__section_no_memory(decoder, section->header);
}

/* "leaf 77 names context 900 of 800". */
static TA_COLD int bad_reference(struct ta__decoder *decoder, const struct ta__section *section, const char *row,
                                 uint64_t id, const char *what, uint64_t named, uint64_t count)
{
    struct ta__message *text = &decoder->problem.text;
    bad(decoder, section, row);
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

static TA_COLD int bad_row(struct ta__decoder *decoder, const struct ta__section *section, const char *row, uint64_t id,
                           const char *what)
{
    bad(decoder, section, row);
    ta__message_text(&decoder->problem.text, " ");
    ta__message_number(&decoder->problem.text, id);
    ta__message_text(&decoder->problem.text, " ");
    ta__message_text(&decoder->problem.text, what);
    return -1;
}

static int truncated(struct ta__decoder *decoder, const struct ta__section *section)
{
    return bad(decoder, section, "the section ends within a row");
}

static int at_end(struct ta__decoder *decoder, const struct ta__section *section)
{
    return section->at.at == section->at.end ? 0 : bad(decoder, section, "bytes are left after the last row");
}

/* ---- rows and columns ---- */

static uint64_t varint(struct ta__section *section)
{
    return ta__get_varint(&section->at);
}

static uint64_t signed_varint(struct ta__cursor *column)
{
    return (uint64_t)ta__unzigzag(ta__get_varint(column));
}

/* Every row takes at least one byte in some column, so a section with more rows than bytes is damaged. This also bounds
 * the memory that a row count can ask for. */
static int get_row_count(struct ta__decoder *decoder, struct ta__section *section, uint64_t *first, uint32_t *rows)
{
    *first = varint(section);
    uint64_t count = varint(section);
    if (section->at.failed)
        return truncated(decoder, section);
    if (count > section->header->raw)
        return bad(decoder, section, "states more rows than it has bytes");
    *rows = (uint32_t)count;
    return 0;
}

/* Tables that only grow: the first id must be the next one. */
static int get_append(struct ta__decoder *decoder, struct ta__section *section, uint32_t have, uint32_t *rows)
{
    uint64_t first;
    if (get_row_count(decoder, section, &first, rows) != 0)
        return -1;
    if (first != have) {
        bad(decoder, section, "begins with row ");
        ta__message_number(&decoder->problem.text, first);
        ta__message_text(&decoder->problem.text, " where row ");
        ta__message_number(&decoder->problem.text, have);
        ta__message_text(&decoder->problem.text, " is due");
        return -1;
    }
    if (*rows > UINT32_MAX - 2 - have)
        return bad(decoder, section, "the table has too many rows");
    return 0;
}

static int get_columns(struct ta__decoder *decoder, struct ta__section *section, struct ta__cursor *columns,
                       unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t length = varint(section);
        const uint8_t *bytes = ta__get_bytes(&section->at, length);
        if (bytes == NULL)
            return bad(decoder, section, "a column is longer than the section");
        columns[i] = (struct ta__cursor){bytes, bytes + length, 0};
    }
    return 0;
}

static int end_columns(struct ta__decoder *decoder, struct ta__section *section, const struct ta__cursor *columns,
                       unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (columns[i].failed)
            return bad(decoder, section, "a column ends within its rows");
        if (columns[i].at != columns[i].end)
            return bad(decoder, section, "a column has more values than rows");
    }
    return at_end(decoder, section);
}

/* How tables begin, columns included. Here each row gets the next id. */
static int begin_append(struct ta__decoder *decoder, struct ta__section *section, uint32_t have,
                        struct ta__cursor *columns, unsigned count, uint32_t *rows)
{
    return get_append(decoder, section, have, rows) != 0 ? -1 : get_columns(decoder, section, columns, count);
}

/* Here the first column says which row it is. */
static int begin_named(struct ta__decoder *decoder, struct ta__section *section, struct ta__cursor *columns,
                       unsigned count, uint32_t *rows)
{
    uint64_t ignored;
    return get_row_count(decoder, section, &ignored, rows) != 0 ? -1 : get_columns(decoder, section, columns, count);
}

/* Here the first column says how many unchanged leaves are skipped, counted from behind the former row, through all
 * sections of the entry. */
static int begin_gaps(struct ta__decoder *decoder, struct ta__section *section, uint32_t next,
                      struct ta__cursor *columns, unsigned count, uint32_t *rows)
{
    uint64_t first;
    if (get_row_count(decoder, section, &first, rows) != 0)
        return -1;
    if (first != next)
        return bad(decoder, section, "does not continue the section before it");
    return get_columns(decoder, section, columns, count);
}

/* The leaf of row `i`, which a gap names. 0, or -1 where there is none. */
static int next_leaf(struct ta__decoder *decoder, const struct ta__section *section, struct ta__cursor *gaps,
                     uint32_t i, uint32_t *next, uint32_t *leaf)
{
    uint64_t gap = ta__get_varint(gaps);
    if (gaps->failed)
        return bad(decoder, section, "a column ends within its rows");
    if (gap >= TA__ROW_COUNT(struct ta__decoded_leaf, decoder->leaves) - *next)
        return bad_row(decoder, section, "row", i, "names a leaf that is not there");
    *leaf = *next + (uint32_t)gap;
    *next = *leaf + 1;
    return 0;
}

static uint32_t string_count(const struct ta__decoder *decoder)
{
    return TA__ROW_COUNT(struct ta__view_string, decoder->tables->strings);
}

/* Numbers that must fit in 32 bits are read wide and checked. */
#define CHECK_BELOW(value, count, row, id, what)                                                                       \
    do {                                                                                                               \
        if (TA_UNLIKELY((value) >= (count)))                                                                           \
            return bad_reference(decoder, section, row, id, what, value, count);                                       \
    } while (0)

/* 0 is no thread, else the number plus one. */
static int check_thread(struct ta__decoder *decoder, const struct ta__section *section, const char *row, uint64_t id,
                        uint64_t thread)
{
    uint32_t threads = TA__ROW_COUNT(struct ta__view_thread, decoder->tables->threads);
    return thread <= threads ? 0 : bad_reference(decoder, section, row, id, "thread", thread - 1, threads);
}

/* ---- one function per kind ---- */

static int get_fields(struct ta__decoder *decoder, struct ta__section *section)
{
    uint32_t seen = 0;
    memset(decoder->fields, 0, sizeof decoder->fields);
    while (section->at.at != section->at.end) {
        uint64_t field = varint(section);
        uint64_t value = varint(section);
        if (section->at.failed)
            return bad(decoder, section, "the section ends within a field");
        if (field == 0 || field > TA__FIELD_LAST)
            continue;
        if (seen >> field & 1)
            return bad_row(decoder, section, "field", field, "comes twice");
        seen |= 1u << field;
        decoder->fields[field] = value;
    }
    if (decoder->fields[TA__FIELD_TRACEBACK_LIMIT] > UINT32_MAX || decoder->fields[TA__FIELD_PID] > UINT32_MAX)
        return bad(decoder, section, "a field is out of range");
    return 0;
}

static int get_strings(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__loaded *tables = decoder->tables;
    struct ta__cursor lengths = {0};
    uint32_t have = string_count(decoder), rows;
    if (begin_append(decoder, section, have, &lengths, 1, &rows) != 0)
        return -1;
    if (ta__buffer_reserve(&tables->strings, rows * sizeof(struct ta__view_string)) != 0 ||
        ta__buffer_reserve(&tables->string_bytes, section->header->raw + (size_t)rows) != 0)
        return no_memory(decoder, section);
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t length = ta__get_varint(&lengths);
        const uint8_t *bytes = ta__get_bytes(&section->at, length);
        if (lengths.failed || bytes == NULL)
            return bad_row(decoder, section, "string", (uint64_t)have + i, "ends outside the section");
        struct ta__view_string row = {(const char *)tables->string_bytes.length, (size_t)length};
        if (ta__buffer_put(&tables->string_bytes, bytes, (size_t)length) != 0 ||
            ta__buffer_put(&tables->string_bytes, "", 1) != 0 ||
            ta__buffer_put(&tables->strings, &row, sizeof row) != 0)
            return no_memory(decoder, section);
    }
    if (have == 0 && rows > 0 && TA__ROWS(struct ta__view_string, tables->strings)[0].length != 0)
        return bad(decoder, section, "string 0 is not empty");
    return end_columns(decoder, section, &lengths, 1);
}

/* Rows that are named by index come in ascending order, new or changed. Answers the row of this index, made if it is
 * the next new one; NULL when it is out of order. */
static void *row_of_index(struct ta__decoder *decoder, const struct ta__section *section, struct ta__buffer *table,
                          size_t row_bytes, const char *what, uint64_t index, uint64_t *next)
{
    size_t count = table->length / row_bytes;
    if (index < *next || index > count) {
        bad_row(decoder, section, what, index, "is out of order");
        return NULL;
    }
    if (index == count && ta__buffer_add(table, row_bytes) == NULL) {
        no_memory(decoder, section);
        return NULL;
    }
    *next = index + 1;
    return table->bytes + index * row_bytes;
}

static int get_modules(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__loaded *tables = decoder->tables;
    uint64_t ignored;
    uint32_t rows;
    if (get_row_count(decoder, section, &ignored, &rows) != 0)
        return -1;
    uint64_t next = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t index = varint(section);
        uint64_t path = varint(section);
        uint64_t flags = varint(section);
        struct ta__view_module row = {.load_base = varint(section), .start = varint(section), .end = varint(section)};
        uint64_t id_length = varint(section);
        const uint8_t *id = ta__get_bytes(&section->at, id_length);
        if (section->at.failed)
            return truncated(decoder, section);
        struct ta__view_module *kept =
            row_of_index(decoder, section, &tables->modules, sizeof *kept, "module", index, &next);
        if (kept == NULL)
            return -1;
        CHECK_BELOW(path, string_count(decoder), "module", index, "string");
        if (id_length > 64)
            return bad_row(decoder, section, "module", index, "has a build id of more than 64 bytes");
        row.path = (uint32_t)path;
        row.flags = (uint32_t)flags;
        row.build_id_length = (uint32_t)id_length;
        row.build_id = (const uint8_t *)tables->build_ids.length;
        if (ta__buffer_put(&tables->build_ids, id, (size_t)id_length) != 0)
            return no_memory(decoder, section);
        *kept = row;
    }
    return at_end(decoder, section);
}

static int get_frames(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__loaded *tables = decoder->tables;
    struct ta__cursor columns[3];
    uint32_t have = TA__ROW_COUNT(struct ta__view_frame, tables->frames), rows;
    uint32_t strings = string_count(decoder);
    uint32_t modules = TA__ROW_COUNT(struct ta__view_module, tables->modules);
    if (begin_append(decoder, section, have, columns, 3, &rows) != 0)
        return -1;
    size_t last_bytes = ((size_t)modules + 1) * sizeof(uint64_t);
    while (decoder->module_last.length < last_bytes)
        if (ta__buffer_add(&decoder->module_last, sizeof(uint64_t)) == NULL)
            return no_memory(decoder, section);
    if (ta__buffer_reserve(&tables->frames, rows * sizeof(struct ta__view_frame)) != 0)
        return no_memory(decoder, section);
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
                return bad_row(decoder, section, "frame", (uint64_t)have + i, "has a line beyond 32 bits");
            frame->file = decoder->last_file = (uint32_t)file;
            frame->line = decoder->last_line = (uint32_t)line;
        } else {
            uint64_t module = tag == TA__TAG_NO_MODULE ? 0 : tag - TA__TAG_FIRST_MODULE + 1;
            if (module > modules)
                return bad_reference(decoder, section, "frame", (uint64_t)have + i, "module", module - 1, modules);
            uint64_t *last = &TA__ROWS(uint64_t, decoder->module_last)[module];
            frame->kind = TA__FRAME_ADDRESS;
            frame->module = (uint32_t)module;
            frame->address = *last += signed_varint(&columns[1]);
        }
    }
    tables->frames.length += rows * sizeof(struct ta__view_frame);
    return end_columns(decoder, section, columns, 3);
}

static int get_contexts(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__loaded *tables = decoder->tables;
    struct ta__predict *predict = &decoder->predict;
    struct ta__cursor columns[3];
    uint32_t frame_count = TA__ROW_COUNT(struct ta__view_frame, tables->frames), rows;
    uint32_t have = TA__ROW_COUNT(struct ta__view_context, tables->contexts);
    if (begin_append(decoder, section, have, columns, 3, &rows) != 0)
        return -1;
    if (ta__predict_extend(predict, frame_count) != 0 ||
        ta__buffer_reserve(&tables->contexts, rows * sizeof(struct ta__view_context)) != 0 ||
        ta__buffer_reserve(&decoder->depths, rows * sizeof(uint32_t)) != 0)
        return no_memory(decoder, section);
    struct ta__view_context *contexts = TA__ROWS(struct ta__view_context, tables->contexts);
    uint32_t *depths = TA__ROWS(uint32_t, decoder->depths);
    for (uint32_t id = have; id < have + rows; id++) {
        uint64_t back = ta__get_varint(&columns[0]);
        uint64_t code = ta__get_varint(&columns[1]);
        if (back >= id)
            return bad_row(decoder, section, "context", id, "does not come after its parent");
        uint32_t parent = id - 1 - (uint32_t)back;
        uint32_t *list = ta__predict_list(predict, parent == 0 ? 0 : contexts[parent].frame + 1);
        uint64_t frame = 0;
        if (code < TA__PREDICT_WAYS) {
            if (list[code] == 0)
                return bad_row(decoder, section, "context", id, "names a rank that no frame has");
            frame = list[code] - 1;
        } else if (code == TA__CODE_NEXT) {
            frame = predict->next++;
        } else if (code == TA__CODE_OTHER) {
            frame = ta__get_varint(&columns[2]);
        } else {
            return bad_row(decoder, section, "context", id, "has an unknown code");
        }
        CHECK_BELOW(frame, frame_count, "context", id, "frame");
        ta__predict_move(list, (uint32_t)code, (uint32_t)frame + 1);
        contexts[id].parent = parent;
        contexts[id].frame = (uint32_t)frame;
        depths[id] = depths[parent] + 1;
    }
    tables->contexts.length += rows * sizeof(struct ta__view_context);
    decoder->depths.length += rows * sizeof(uint32_t);
    return end_columns(decoder, section, columns, 3);
}

/* What the rows of domains and of threads begin with. */
struct named {
    uint64_t number;
    uint32_t name, flags;
};

/* The row that the first four columns name, and what they say of it. NULL when that is wrong. */
static void *get_named(struct ta__decoder *decoder, const struct ta__section *section, struct ta__cursor columns[4],
                       struct ta__buffer *table, size_t row_bytes, const char *what, uint64_t *next,
                       struct named *named)
{
    uint64_t index = ta__get_varint(&columns[0]);
    named->number = ta__get_varint(&columns[1]);
    uint64_t name = ta__get_varint(&columns[2]);
    named->flags = (uint32_t)ta__get_varint(&columns[3]);
    void *row = row_of_index(decoder, section, table, row_bytes, what, index, next);
    if (row != NULL && name >= string_count(decoder)) {
        bad_reference(decoder, section, what, index, "string", name, string_count(decoder));
        return NULL;
    }
    named->name = (uint32_t)name;
    return row;
}

static int get_domains(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__buffer *table = &decoder->tables->domains;
    struct ta__cursor columns[10];
    struct named named;
    uint64_t next = 0;
    uint32_t rows;
    if (begin_named(decoder, section, columns, 10, &rows) != 0)
        return -1;
    for (uint32_t i = 0; i < rows; i++) {
        struct ta__view_domain *row = get_named(decoder, section, columns, table, sizeof *row, "domain", &next, &named);
        if (row == NULL)
            return -1;
        if (named.number > UINT32_MAX)
            return bad_row(decoder, section, "domain", next - 1, "has a number beyond 32 bits");
        *row = (struct ta__view_domain){
            .number = (uint32_t)named.number,
            .name = named.name,
            .flags = named.flags,
            .live_bytes = ta__get_varint(&columns[4]),
            .live_blocks = ta__get_varint(&columns[5]),
            .peak_bytes = ta__get_varint(&columns[6]),
            .allocated_bytes = ta__get_varint(&columns[7]),
            .allocated_blocks = ta__get_varint(&columns[8]),
            .limit_bytes = ta__get_varint(&columns[9]),
        };
    }
    return end_columns(decoder, section, columns, 10);
}

static int get_threads(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__cursor columns[4];
    uint32_t rows = 0;
    if (begin_named(decoder, section, columns, 4, &rows) != 0)
        return -1;
    uint64_t next = 0;
    for (; rows > 0; rows--) {
        struct named named;
        struct ta__view_thread *row =
            get_named(decoder, section, columns, &decoder->tables->threads, sizeof *row, "thread", &next, &named);
        if (row == NULL)
            return -1;
        *row = (struct ta__view_thread){.tid = (uint32_t)named.number, .name = named.name, .flags = named.flags};
    }
    return end_columns(decoder, section, columns, 4);
}

static int get_leaves(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__cursor columns[5];
    uint32_t have = TA__ROW_COUNT(struct ta__decoded_leaf, decoder->leaves), rows;
    uint32_t contexts = TA__ROW_COUNT(struct ta__view_context, decoder->tables->contexts);
    uint32_t domains = TA__ROW_COUNT(struct ta__view_domain, decoder->tables->domains);
    const uint32_t *depths = TA__ROWS(const uint32_t, decoder->depths);
    if (begin_append(decoder, section, have, columns, 5, &rows) != 0)
        return -1;
    if (ta__buffer_reserve(&decoder->leaves, rows * sizeof(struct ta__decoded_leaf)) != 0 ||
        ta__buffer_reserve(&decoder->counts, rows * sizeof(struct ta__decoded_counts)) != 0 ||
        ta__buffer_reserve(&decoder->peaks, rows * sizeof(uint64_t)) != 0)
        return no_memory(decoder, section);
    for (uint32_t id = have; id < have + rows; id++) {
        uint64_t context = decoder->last_leaf_context + signed_varint(&columns[0]);
        uint64_t domain = ta__get_varint(&columns[1]);
        uint64_t thread = ta__get_varint(&columns[2]);
        uint64_t beyond = signed_varint(&columns[3]);
        uint64_t flags = ta__get_varint(&columns[4]);
        CHECK_BELOW(context, contexts, "leaf", id, "context");
        CHECK_BELOW(domain, domains, "leaf", id, "domain");
        if (check_thread(decoder, section, "leaf", id, thread) != 0)
            return -1;
        uint64_t total = depths[context] + beyond;
        if (total > TOTAL_MAX)
            return bad_row(decoder, section, "leaf", id, "has an impossible depth");
        if ((flags & ~LEAF_FLAGS_KNOWN) != 0)
            return bad_row(decoder, section, "leaf", id, "has unknown flags");
        decoder->last_leaf_context = (uint32_t)context;
        *(struct ta__decoded_leaf *)ta__buffer_add(&decoder->leaves, sizeof(struct ta__decoded_leaf)) =
            (struct ta__decoded_leaf){
                (uint32_t)context, (uint32_t)domain, (uint32_t)thread, (int32_t)total, (uint32_t)flags,
            };
    }
    decoder->counts.length += rows * sizeof(struct ta__decoded_counts);
    decoder->peaks.length += rows * sizeof(uint64_t);
    ta__buffer_zero_from(&decoder->counts, have * sizeof(struct ta__decoded_counts));
    ta__buffer_zero_from(&decoder->peaks, have * sizeof(uint64_t));
    return end_columns(decoder, section, columns, 5);
}

static uint64_t usual_size(const struct ta__decoded_counts *counts)
{
    return counts->allocated_blocks == 0 ? 0 : counts->allocated_bytes / counts->allocated_blocks;
}

static int get_counters(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__cursor columns[6];
    uint32_t rows, id;
    if (begin_gaps(decoder, section, decoder->next_counter, columns, 6, &rows) != 0)
        return -1;
    for (uint32_t i = 0; i < rows; i++) {
        if (next_leaf(decoder, section, &columns[0], i, &decoder->next_counter, &id) != 0)
            return -1;
        struct ta__decoded_counts *counts = &TA__ROWS(struct ta__decoded_counts, decoder->counts)[id];
        uint64_t allocated = signed_varint(&columns[1]);
        uint64_t size = allocated == 0 ? 0 : usual_size(counts) + signed_varint(&columns[2]);
        uint64_t bytes = allocated * size + ta__get_varint(&columns[3]);
        counts->allocated_blocks += allocated;
        counts->allocated_bytes += bytes;
        uint64_t live = signed_varint(&columns[4]);
        uint64_t live_bytes = live * usual_size(counts) + signed_varint(&columns[5]);
        counts->freed_blocks += allocated - live;
        counts->freed_bytes += bytes - live_bytes;
        if (decoder->touched != NULL && ta__buffer_put(decoder->touched, &id, sizeof id) != 0)
            return ta__section_no_memory(decoder, section->header);
    }
    return end_columns(decoder, section, columns, 6);
}

static int get_peak(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__cursor columns[2];
    uint32_t rows, id;
    if ((decoder->seen >> TA__KIND_PEAK & 1) == 0) {
        decoder->seen |= 1u << TA__KIND_PEAK;
        ta__buffer_zero_from(&decoder->peaks, 0);
    }
    if (begin_gaps(decoder, section, decoder->next_peak, columns, 2, &rows) != 0)
        return -1;
    for (uint32_t i = 0; i < rows; i++) {
        if (next_leaf(decoder, section, &columns[0], i, &decoder->next_peak, &id) != 0)
            return -1;
        TA__ROWS(uint64_t, decoder->peaks)[id] = ta__get_varint(&columns[1]);
    }
    return end_columns(decoder, section, columns, 2);
}

static int get_traces(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__cursor columns[10];
    uint32_t have = TA__ROW_COUNT(struct ta__view_trace, decoder->data_traces), rows;
    uint32_t contexts = TA__ROW_COUNT(struct ta__view_context, decoder->tables->contexts);
    if (begin_append(decoder, section, have, columns, 10, &rows) != 0)
        return -1;
    if (ta__buffer_reserve(&decoder->data_traces, rows * sizeof(struct ta__view_trace)) != 0)
        return no_memory(decoder, section);
    uint64_t last_context = 0, last_domain = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t id = (uint64_t)have + i;
        uint64_t context = last_context + signed_varint(&columns[0]);
        uint64_t domain = last_domain + signed_varint(&columns[1]);
        uint64_t thread = ta__get_varint(&columns[2]);
        uint64_t flags = ta__get_varint(&columns[3]);
        uint64_t total = ta__get_varint(&columns[4]); /* plus one; 0 = unknown */
        CHECK_BELOW(context, contexts, "trace", id, "context");
        if (check_thread(decoder, section, "trace", id, thread) != 0)
            return -1;
        if (domain > UINT32_MAX)
            return bad_row(decoder, section, "trace", id, "has a domain beyond 32 bits");
        if ((flags & ~TRACE_FLAGS_KNOWN) != 0)
            return bad_row(decoder, section, "trace", id, "has unknown flags");
        if (total > TOTAL_MAX)
            return bad_row(decoder, section, "trace", id, "has an impossible depth");
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
            return no_memory(decoder, section);
    }
    return end_columns(decoder, section, columns, 10);
}

/* The first section of an entry begins the table anew. */
static int begin_blocks(struct ta__decoder *decoder, struct ta__section *section, uint64_t owners)
{
    if (decoder->seen >> TA__KIND_BLOCKS & 1)
        return 0;
    decoder->seen |= 1u << TA__KIND_BLOCKS;
    decoder->last_address = decoder->last_owner = 0;
    decoder->block_sizes.length = 0;
    if (ta__buffer_reserve(&decoder->block_sizes, (owners + 1) * sizeof(uint64_t)) != 0)
        return no_memory(decoder, section);
    decoder->block_sizes.length = (owners + 1) * sizeof(uint64_t);
    ta__buffer_zero_from(&decoder->block_sizes, 0);
    return 0;
}

static int get_blocks(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__cursor columns[3];
    struct ta__buffer *blocks = &decoder->tables->blocks;
    uint32_t have = TA__ROW_COUNT(struct ta__view_block, *blocks), rows;
    uint64_t owners = (uint64_t)TA__ROW_COUNT(struct ta__decoded_leaf, decoder->leaves) +
                      TA__ROW_COUNT(struct ta__view_trace, decoder->data_traces);
    if (begin_blocks(decoder, section, owners) != 0 || begin_append(decoder, section, have, columns, 3, &rows) != 0)
        return -1;
    if (ta__buffer_reserve(blocks, rows * sizeof(struct ta__view_block)) != 0)
        return no_memory(decoder, section);
    uint64_t *sizes = TA__ROWS(uint64_t, decoder->block_sizes);
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t id = (uint64_t)have + i;
        uint64_t gap = ta__get_varint(&columns[0]);
        uint64_t owner = decoder->last_owner + signed_varint(&columns[1]);
        CHECK_BELOW(owner, owners + 1, "block", id, "owner");
        uint64_t size = sizes[owner] + signed_varint(&columns[2]);
        uint64_t address = decoder->last_address + gap;
        if ((gap | address | size) >> TA__VIEW_BLOCK_BITS != 0)
            return bad_row(decoder, section, "block", id, "has an address or a size beyond 48 bits");
        struct ta__view_block row = ta__view_block(address, size, (uint32_t)owner); /* 0 = none, until the end */
        if (ta__buffer_put(blocks, &row, sizeof row) != 0)
            return no_memory(decoder, section);
        decoder->last_address = address;
        decoder->last_owner = owner;
        sizes[owner] = size;
    }
    return end_columns(decoder, section, columns, 3);
}

static int get_pairs(struct ta__decoder *decoder, struct ta__section *section, struct ta__buffer *table)
{
    struct ta__cursor columns[2];
    uint32_t rows;
    if (decoder->seen >> section->header->kind & 1)
        return bad(decoder, section, "the section comes twice in one entry");
    decoder->seen |= 1u << section->header->kind;
    if (begin_named(decoder, section, columns, 2, &rows) != 0)
        return -1;
    table->length = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t key = ta__get_varint(&columns[0]);
        uint64_t value = ta__get_varint(&columns[1]);
        CHECK_BELOW(key, string_count(decoder), "row", i, "string");
        CHECK_BELOW(value, string_count(decoder), "row", i, "string");
        struct ta__view_pair row = {(uint32_t)key, (uint32_t)value};
        if (ta__buffer_put(table, &row, sizeof row) != 0)
            return no_memory(decoder, section);
    }
    return end_columns(decoder, section, columns, 2);
}

static int get_symbols(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__buffer *table = &decoder->tables->symbols;
    struct ta__cursor columns[6];
    uint32_t have = TA__ROW_COUNT(struct ta__view_symbol, *table), rows;
    uint32_t strings = string_count(decoder);
    if (begin_append(decoder, section, have, columns, 6, &rows) != 0)
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
            return bad_row(decoder, section, "symbol", id, "has a line beyond 32 bits");
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
            return no_memory(decoder, section);
    }
    return end_columns(decoder, section, columns, 6);
}

static int get_symbol_ranges(struct ta__decoder *decoder, struct ta__section *section)
{
    struct ta__buffer *table = &decoder->tables->symbol_ranges;
    struct ta__cursor columns[2];
    uint32_t have = TA__ROW_COUNT(struct ta__view_symbol_range, *table), rows;
    uint32_t frames = TA__ROW_COUNT(struct ta__view_frame, decoder->tables->frames);
    uint64_t symbols = TA__ROW_COUNT(struct ta__view_symbol, decoder->tables->symbols);
    if (begin_append(decoder, section, have, columns, 2, &rows) != 0)
        return -1;
    if (rows > frames - have)
        return bad(decoder, section, "describes more frames than there are");
    uint64_t next = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t first = next + signed_varint(&columns[0]);
        uint64_t count = ta__get_varint(&columns[1]);
        if (first > symbols || count > symbols - first)
            return bad_row(decoder, section, "frame", (uint64_t)have + i, "names symbols that are not there");
        struct ta__view_symbol_range row = {(uint32_t)first, (uint32_t)count};
        next = first + count;
        if (ta__buffer_put(table, &row, sizeof row) != 0)
            return no_memory(decoder, section);
    }
    return end_columns(decoder, section, columns, 2);
}

static int get_end(struct ta__decoder *decoder, struct ta__section *section)
{
    uint64_t digest = ta__get_fixed(&section->at, 8);
    uint64_t chunk_count = varint(section);
    varint(section); /* number of traces, for lists of entries */
    if (section->at.failed)
        return truncated(decoder, section);
    if (chunk_count != decoder->chunk_count || digest != decoder->digest)
        return bad(decoder, section, "the sections of the entry are not those that were written");
    static const uint32_t string_fields[] = {TA__FIELD_PROGRAM, TA__FIELD_HOST, TA__FIELD_REASON};
    uint32_t strings = string_count(decoder);
    for (unsigned i = 0; i < sizeof string_fields / sizeof *string_fields; i++)
        CHECK_BELOW(decoder->fields[string_fields[i]], strings + (strings == 0), "field", string_fields[i], "string");
    return at_end(decoder, section);
}

/* ---- sections ---- */

static int open_section(struct ta__decoder *decoder, const struct ta__chunk_header *header, struct ta__section *section)
{
    const uint8_t *payload = ta__decoder_payload(decoder, header);
    if (payload == NULL)
        return -1;
    *section = (struct ta__section){header, {payload, payload + header->raw, 0}};
    return 0;
}

static int known_kind(uint32_t kind)
{
    return (kind >= TA__KIND_ENTRY && kind <= TA__KIND_BLOCKS) || kind == TA__KIND_END;
}

int ta__section_decode(struct ta__decoder *decoder, const struct ta__chunk_header *header)
{
    struct ta__section section;
    if (!known_kind(header->kind)) {
        if ((header->flags & TA__CHUNK_REQUIRED) == 0)
            return 0;
        ta__section_bad(decoder, header, "the recording requires section kind ");
        ta__message_number(&decoder->problem.text, header->kind);
        ta__message_text(&decoder->problem.text, ", which this library does not know");
        return -1;
    }
    if (open_section(decoder, header, &section) != 0)
        return -1;
    switch (header->kind) {
    case TA__KIND_ENTRY:
        return get_fields(decoder, &section);
    case TA__KIND_STRINGS:
        return get_strings(decoder, &section);
    case TA__KIND_MODULES:
        return get_modules(decoder, &section);
    case TA__KIND_FRAMES:
        return get_frames(decoder, &section);
    case TA__KIND_CONTEXTS:
        return get_contexts(decoder, &section);
    case TA__KIND_DOMAINS:
        return get_domains(decoder, &section);
    case TA__KIND_THREADS:
        return get_threads(decoder, &section);
    case TA__KIND_LEAVES:
        return get_leaves(decoder, &section);
    case TA__KIND_COUNTERS:
        return get_counters(decoder, &section);
    case TA__KIND_PEAK:
        return get_peak(decoder, &section);
    case TA__KIND_TRACES:
        return get_traces(decoder, &section);
    case TA__KIND_OPTIONS:
        return get_pairs(decoder, &section, &decoder->tables->options);
    case TA__KIND_METADATA:
        return get_pairs(decoder, &section, &decoder->tables->metadata);
    case TA__KIND_SYMBOLS:
        return get_symbols(decoder, &section);
    case TA__KIND_SYMBOL_RANGES:
        return get_symbol_ranges(decoder, &section);
    case TA__KIND_BLOCKS:
        return get_blocks(decoder, &section);
    default:
        return get_end(decoder, &section);
    }
}

int ta__section_fields(struct ta__decoder *decoder, const struct ta__chunk_header *header)
{
    struct ta__section section;
    return open_section(decoder, header, &section) != 0 ? -1 : get_fields(decoder, &section);
}

int ta__section_end_traces(struct ta__decoder *decoder, const struct ta__chunk_header *header, uint64_t *traces)
{
    struct ta__section section;
    if (open_section(decoder, header, &section) != 0)
        return -1;
    ta__get_fixed(&section.at, 8);
    varint(&section);
    *traces = varint(&section);
    return section.at.failed ? truncated(decoder, &section) : 0;
}

int ta__section_index(struct ta__decoder *decoder, const struct ta__chunk_header *header, struct ta__buffer *rows)
{
    struct ta__section section;
    struct ta__cursor columns[6];
    if (open_section(decoder, header, &section) != 0)
        return -1;
    uint64_t count = varint(&section);
    if (section.at.failed || count > header->raw)
        return bad(decoder, &section, "states more rows than it has bytes");
    if (get_columns(decoder, &section, columns, 6) != 0)
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
            return no_memory(decoder, &section);
    }
    return end_columns(decoder, &section, columns, 6);
}
