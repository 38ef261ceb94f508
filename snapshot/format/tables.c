/* tables.c: see tables.h. Its mirror is snapshot/read/sections.c, which reads in the order in which this file
 * writes. */
#include "snapshot/format/tables.h"

#include <errno.h>

static int out_of_memory(struct ta__chunks *chunks)
{
    chunks->sink.error = ENOMEM;
    return -1;
}

static uint32_t rows_now(uint32_t left)
{
    return left < TA__ROWS_PER_CHUNK ? left : TA__ROWS_PER_CHUNK;
}

/* Begins a chunk that starts with the id of its first row and the number of rows. */
static int begin_rows(struct ta__chunks *chunks, uint64_t first, uint32_t rows, unsigned columns)
{
    if (ta__chunk_begin(chunks) != 0 || ta__raw_varint(chunks, first) != 0 || ta__raw_varint(chunks, rows) != 0)
        return -1;
    return columns == 0 ? 0 : ta__columns_begin(chunks, columns, rows);
}

static int end_rows(struct ta__chunks *chunks, enum ta__chunk_kind kind)
{
    return ta__columns_end(chunks) != 0 ? -1 : ta__chunk_end(chunks, kind, TA__CHUNK_REQUIRED);
}

void ta__tables_free(struct ta__tables *tables)
{
    ta__buffer_free(&tables->predict.lists);
    ta__buffer_free(&tables->module_last);
    memset(tables, 0, sizeof *tables);
}

int ta__put_fields(struct ta__chunks *chunks, const uint64_t values[TA__FIELD_LAST + 1], int reset)
{
    if (ta__chunk_begin(chunks) != 0)
        return -1;
    for (uint32_t field = 1; field <= TA__FIELD_LAST; field++)
        if (values[field] != 0)
            if (ta__raw_varint(chunks, field) != 0 || ta__raw_varint(chunks, values[field]) != 0)
                return -1;
    return ta__chunk_end(chunks, TA__KIND_ENTRY, (uint16_t)(TA__CHUNK_REQUIRED | (reset ? TA__CHUNK_RESET : 0)));
}

int ta__put_strings(struct ta__chunks *chunks, const struct ta__view_string *strings, uint32_t first, uint32_t count)
{
    while (count > 0) {
        uint32_t rows = 0;
        size_t bytes = 0;
        while (rows < rows_now(count) && (rows == 0 || bytes + strings[rows].length <= (1u << 20)))
            bytes += strings[rows++].length;
        if (begin_rows(chunks, first, rows, 1) != 0)
            return -1;
        for (uint32_t i = 0; i < rows; i++)
            ta__column_put(chunks, 0, strings[i].length);
        if (ta__columns_end(chunks) != 0)
            return -1;
        for (uint32_t i = 0; i < rows; i++)
            if (ta__raw_bytes(chunks, strings[i].text, strings[i].length) != 0)
                return -1;
        if (ta__chunk_end(chunks, TA__KIND_STRINGS, TA__CHUNK_REQUIRED) != 0)
            return -1;
        strings += rows;
        first += rows;
        count -= rows;
    }
    return 0;
}

int ta__put_modules(struct ta__chunks *chunks, const struct ta__view_module *rows, const uint32_t *indices,
                    uint32_t count)
{
    if (count == 0)
        return 0;
    if (begin_rows(chunks, 0, count, 0) != 0)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        const struct ta__view_module *row = &rows[i];
        const uint64_t numbers[] = {
            indices != NULL ? indices[i] : i,
            row->path,
            row->flags,
            row->load_base,
            row->start,
            row->end,
            row->build_id_length,
        };
        for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++)
            if (ta__raw_varint(chunks, numbers[n]) != 0)
                return -1;
        if (ta__raw_bytes(chunks, row->build_id, row->build_id_length) != 0)
            return -1;
    }
    return ta__chunk_end(chunks, TA__KIND_MODULES, TA__CHUNK_REQUIRED);
}

int ta__put_domains(struct ta__chunks *chunks, const struct ta__view_domain *rows, const uint32_t *indices,
                    uint32_t count)
{
    for (uint32_t first = 0; first < count; first += rows_now(count - first)) {
        uint32_t now = rows_now(count - first);
        if (begin_rows(chunks, 0, now, 10) != 0)
            return -1;
        for (uint32_t i = first; i < first + now; i++) {
            ta__column_put(chunks, 0, indices != NULL ? indices[i] : i);
            ta__column_put(chunks, 1, rows[i].number);
            ta__column_put(chunks, 2, rows[i].name);
            ta__column_put(chunks, 3, rows[i].flags);
            ta__column_put(chunks, 4, rows[i].live_bytes);
            ta__column_put(chunks, 5, rows[i].live_blocks);
            ta__column_put(chunks, 6, rows[i].peak_bytes);
            ta__column_put(chunks, 7, rows[i].allocated_bytes);
            ta__column_put(chunks, 8, rows[i].allocated_blocks);
            ta__column_put(chunks, 9, rows[i].limit_bytes);
        }
        if (end_rows(chunks, TA__KIND_DOMAINS) != 0)
            return -1;
    }
    return 0;
}

int ta__put_threads(struct ta__chunks *chunks, const struct ta__view_thread *rows, const uint32_t *indices,
                    uint32_t count)
{
    for (uint32_t first = 0; first < count; first += rows_now(count - first)) {
        uint32_t now = rows_now(count - first);
        if (begin_rows(chunks, 0, now, 4) != 0)
            return -1;
        for (uint32_t i = first; i < first + now; i++) {
            ta__column_put(chunks, 0, indices != NULL ? indices[i] : i);
            ta__column_put(chunks, 1, rows[i].tid);
            ta__column_put(chunks, 2, rows[i].name);
            ta__column_put(chunks, 3, rows[i].flags);
        }
        if (end_rows(chunks, TA__KIND_THREADS) != 0)
            return -1;
    }
    return 0;
}

int ta__put_pairs(struct ta__chunks *chunks, enum ta__chunk_kind kind, const struct ta__view_pair *pairs,
                  uint32_t count)
{
    if (begin_rows(chunks, 0, count, 2) != 0)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        ta__column_put(chunks, 0, pairs[i].key);
        ta__column_put(chunks, 1, pairs[i].value);
    }
    return end_rows(chunks, kind);
}

int ta__put_frames(struct ta__chunks *chunks, struct ta__tables *tables, const struct ta__view_frame *frames,
                   uint32_t first, uint32_t count)
{
    while (count > 0) {
        uint32_t rows = rows_now(count);
        if (begin_rows(chunks, first, rows, 3) != 0)
            return -1;
        for (const struct ta__view_frame *frame = frames + first; frame < frames + first + rows; frame++) {
            if (frame->kind == TA__FRAME_OVERFLOW) {
                ta__column_put(chunks, 0, TA__TAG_OVERFLOW);
            } else if (frame->kind == TA__FRAME_SOURCE) {
                ta__column_put(chunks, 0, TA__TAG_SOURCE);
                ta__column_put_signed(chunks, 1, (uint64_t)frame->file - tables->last_file);
                ta__column_put_signed(chunks, 2, (uint64_t)frame->line - tables->last_line);
                tables->last_file = frame->file;
                tables->last_line = frame->line;
            } else {
                size_t needed = ((size_t)frame->module + 1) * sizeof(uint64_t);
                while (tables->module_last.length < needed)
                    if (ta__buffer_add(&tables->module_last, sizeof(uint64_t)) == NULL)
                        return out_of_memory(chunks);
                uint64_t *last = &TA__ROWS(uint64_t, tables->module_last)[frame->module];
                ta__column_put(chunks, 0,
                               frame->module == 0 ? TA__TAG_NO_MODULE
                                                  : (uint64_t)frame->module - 1 + TA__TAG_FIRST_MODULE);
                ta__column_put_signed(chunks, 1, frame->address - *last);
                *last = frame->address;
            }
        }
        if (end_rows(chunks, TA__KIND_FRAMES) != 0)
            return -1;
        first += rows;
        count -= rows;
    }
    return 0;
}

int ta__put_contexts(struct ta__chunks *chunks, struct ta__tables *tables, const struct ta__view_context *contexts,
                     uint32_t first, uint32_t count, uint32_t frame_count)
{
    struct ta__predict *predict = &tables->predict;
    if (count > 0 && ta__predict_extend(predict, frame_count) != 0)
        return out_of_memory(chunks);
    while (count > 0) {
        uint32_t rows = rows_now(count);
        if (begin_rows(chunks, first, rows, 3) != 0)
            return -1;
        for (uint32_t id = first; id < first + rows; id++) {
            uint32_t parent = contexts[id].parent;
            uint32_t frame = contexts[id].frame;
            uint32_t *list = ta__predict_list(predict, parent == 0 ? 0 : contexts[parent].frame + 1);
            uint32_t rank = ta__predict_find(list, frame + 1);
            ta__column_put(chunks, 0, id - parent - 1);
            if (rank < TA__PREDICT_WAYS) {
                ta__column_put(chunks, 1, rank);
            } else if (frame == predict->next) {
                ta__column_put(chunks, 1, TA__CODE_NEXT);
                predict->next++;
            } else {
                ta__column_put(chunks, 1, TA__CODE_OTHER);
                ta__column_put(chunks, 2, frame);
            }
            ta__predict_move(list, rank, frame + 1);
        }
        if (end_rows(chunks, TA__KIND_CONTEXTS) != 0)
            return -1;
        first += rows;
        count -= rows;
    }
    return 0;
}

/* Most blocks are as large as the one before of the same owner. */
static void put_block(struct ta__chunks *chunks, const struct ta__view_block *row, uint64_t *last, uint64_t *sizes,
                      uint64_t *last_owner)
{
    uint64_t owner = row->trace == TA__BLOCK_UNTRACED ? 0 : (uint64_t)row->trace + 1;
    uint64_t size = ta__view_block_size(row);
    ta__column_put(chunks, 0, row->address - *last);
    ta__column_put_signed(chunks, 1, owner - *last_owner);
    ta__column_put_signed(chunks, 2, size - sizes[owner]);
    *last = row->address;
    *last_owner = owner;
    sizes[owner] = size;
}

int ta__put_blocks(struct ta__chunks *chunks, const struct ta__view_block *rows, uint32_t count, uint32_t owners)
{
    struct ta__buffer sizes = {0};
    size_t bytes = ((size_t)owners + 1) * sizeof(uint64_t);
    if (ta__buffer_reserve(&sizes, bytes) != 0) {
        chunks->sink.error = chunks->sink.error != 0 ? chunks->sink.error : ENOMEM;
        return -1;
    }
    memset(sizes.bytes, 0, bytes);
    uint64_t address = 0, owner = 0;
    uint32_t first = 0;
    int result = 0;
    do {
        uint32_t now = count - first < TA__ROWS_PER_CHUNK ? count - first : TA__ROWS_PER_CHUNK;
        result = ta__chunk_begin(chunks) != 0 || ta__raw_varint(chunks, first) != 0 ||
                         ta__raw_varint(chunks, now) != 0 || ta__columns_begin(chunks, 3, now) != 0
                     ? -1
                     : 0;
        for (uint32_t i = first; i < first + now && result == 0; i++)
            put_block(chunks, &rows[i], &address, (uint64_t *)(void *)sizes.bytes, &owner);
        if (result == 0)
            result = ta__columns_end(chunks) != 0 || ta__chunk_end(chunks, TA__KIND_BLOCKS, 0) != 0 ? -1 : 0;
        first += now;
    } while (result == 0 && first < count);
    ta__buffer_free(&sizes);
    return result;
}
