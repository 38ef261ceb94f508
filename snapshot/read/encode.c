/* encode.c: see encode.h. Its mirror is sections.c. */
#include "snapshot/read/encode.h"

#include <errno.h>

#include "snapshot/read/decode.h"
#include "snapshot/format/tables.h"

static uint32_t rows_now(uint32_t left)
{
    return left < TA__ROWS_PER_CHUNK ? left : TA__ROWS_PER_CHUNK;
}

static int begin(struct ta__chunks *chunks, uint32_t first, uint32_t rows, unsigned columns)
{
    return ta__chunk_begin(chunks) != 0 || ta__raw_varint(chunks, first) != 0 || ta__raw_varint(chunks, rows) != 0
               ? -1
               : ta__columns_begin(chunks, columns, rows);
}

static int end(struct ta__chunks *chunks, enum ta__chunk_kind kind, uint16_t flags)
{
    return ta__columns_end(chunks) != 0 ? -1 : ta__chunk_end(chunks, kind, flags);
}

static int put_traces(struct ta__chunks *chunks, const struct ta__view *view)
{
    uint32_t count = view->trace_count + view->gone_trace_count;
    for (uint32_t first = 0; first < count; first += rows_now(count - first)) {
        uint32_t rows = rows_now(count - first);
        if (begin(chunks, first, rows, 10) != 0)
            return -1;
        uint64_t last_context = 0, last_domain = 0;
        for (const struct ta__view_trace *row = view->traces + first; row < view->traces + first + rows; row++) {
            ta__column_put_signed(chunks, 0, row->context - last_context);
            ta__column_put_signed(chunks, 1, row->domain - last_domain);
            ta__column_put(chunks, 2, row->thread);
            ta__column_put(chunks, 3, row->flags);
            ta__column_put(chunks, 4, row->total_nframe < 0 ? 0 : (uint64_t)row->total_nframe + 1);
            ta__column_put(chunks, 5, row->size);
            ta__column_put(chunks, 6, row->count);
            ta__column_put(chunks, 7, row->allocated_bytes);
            ta__column_put(chunks, 8, row->allocated_blocks);
            ta__column_put(chunks, 9, row->peak_bytes);
            last_context = row->context;
            last_domain = row->domain;
        }
        if (end(chunks, TA__KIND_TRACES, TA__CHUNK_REQUIRED) != 0)
            return -1;
    }
    return 0;
}

static int put_symbols(struct ta__chunks *chunks, const struct ta__view *view)
{
    if (view->symbol_ranges == NULL)
        return 0;
    for (uint32_t first = 0; first < view->symbol_count; first += rows_now(view->symbol_count - first)) {
        uint32_t rows = rows_now(view->symbol_count - first);
        if (begin(chunks, first, rows, 6) != 0)
            return -1;
        struct ta__view_symbol last = {0};
        for (const struct ta__view_symbol *row = view->symbols + first; row < view->symbols + first + rows; row++) {
            ta__column_put_signed(chunks, 0, (uint64_t)row->file - last.file);
            ta__column_put_signed(chunks, 1, (uint64_t)row->line - last.line);
            ta__column_put_signed(chunks, 2, (uint64_t)row->function - last.function);
            ta__column_put_signed(chunks, 3, (uint64_t)row->raw_name - last.raw_name);
            ta__column_put(chunks, 4, row->offset);
            ta__column_put(chunks, 5, row->flags);
            last = *row;
        }
        if (end(chunks, TA__KIND_SYMBOLS, 0) != 0)
            return -1;
    }
    for (uint32_t first = 0; first < view->frame_count; first += rows_now(view->frame_count - first)) {
        uint32_t rows = rows_now(view->frame_count - first);
        if (begin(chunks, first, rows, 2) != 0)
            return -1;
        uint64_t next = 0;
        for (uint32_t i = first; i < first + rows; i++) {
            const struct ta__view_symbol_range *row = &view->symbol_ranges[i];
            ta__column_put_signed(chunks, 0, row->first - next);
            ta__column_put(chunks, 1, row->count);
            next = (uint64_t)row->first + row->count;
        }
        if (end(chunks, TA__KIND_SYMBOL_RANGES, 0) != 0)
            return -1;
    }
    return 0;
}

static int put_view(struct ta__chunks *chunks, struct ta__tables *tables, const struct ta_snapshot *snapshot)
{
    const struct ta__view *view = &snapshot->loaded->view;
#define GET(field, member) [TA__FIELD_##field] = view->member,
    const uint64_t fields[TA__FIELD_LAST + 1] = {[TA__FIELD_COUNTERS_RESTART] = 1, TA__VIEW_FIELDS(GET)};
#undef GET
    ta__entry_begin(chunks);
    if (ta__put_fields(chunks, fields, 1) != 0 || ta__put_strings(chunks, view->strings, 0, view->string_count) != 0 ||
        ta__put_modules(chunks, view->modules, NULL, view->module_count) != 0 ||
        ta__put_frames(chunks, tables, view->frames, 0, view->frame_count) != 0 ||
        ta__put_contexts(chunks, tables, view->contexts, 1, view->context_count - 1, view->frame_count) != 0 ||
        ta__put_domains(chunks, view->domains, NULL, view->domain_count) != 0 ||
        ta__put_threads(chunks, view->threads, NULL, view->thread_count) != 0 || put_traces(chunks, view) != 0 ||
        (view->option_count > 0 && ta__put_pairs(chunks, TA__KIND_OPTIONS, view->options, view->option_count) != 0) ||
        put_symbols(chunks, view) != 0 ||
        (view->has_blocks &&
         ta__put_blocks(chunks, view->blocks, view->block_count, view->trace_count + view->gone_trace_count) != 0) ||
        ta__object_put_metadata(snapshot, chunks, view->string_count) != 0)
        return -1;
    struct ta__index_row row = {
        .time_ns = view->time_ns,
        .current_bytes = view->current_bytes,
        .peak_bytes = view->peak_bytes,
        .traces = view->trace_count,
        .reset = 1,
    };
    return ta__entry_end(chunks, &row) != 0 ? -1 : ta__chunks_seal(chunks);
}

static int encode(const struct ta_snapshot *snapshot, struct ta__sink *sink)
{
    struct ta__chunks chunks;
    struct ta__tables tables;
    memset(&tables, 0, sizeof tables);
    uint32_t features = snapshot->loaded->view.symbol_ranges != NULL ? TA__FEATURE_SYMBOLS : 0;
    int result = ta__chunks_open(&chunks, sink, features) != 0 ? -1 : put_view(&chunks, &tables, snapshot);
    *sink = chunks.sink;
    ta__tables_free(&tables);
    ta__chunks_close(&chunks);
    return result;
}

const struct ta__snapshot_operations ta__view_operations = {encode, ta__loaded_destroy};
