/* decode.c: see decode.h. */
#include "snapshot/read/decode.h"

#include "base/hash.h"
#include "snapshot/read/sections.h"

/* ---- chunks ---- */

/* How much may be decompressed for one load, as a multiple of the memory limit. A long series stays below it, a
 * decompression bomb does not. */
enum { RAW_TOTAL_FACTOR = 16 };

const uint8_t *ta__decoder_payload(struct ta__decoder *decoder, const struct ta__chunk_header *header)
{
    const uint8_t *stored = ta__input_at(decoder->input, header->offset + TA__CHUNK_HEADER_LENGTH, header->stored);
    if (stored == NULL) {
        ta__section_bad(decoder, header, ta__input_why(decoder->input, "the section cannot be read"));
        return NULL;
    }
    if ((uint32_t)ta__hash_bytes(stored, header->stored) != header->check) {
        ta__section_bad(decoder, header, "the section has a wrong checksum");
        return NULL;
    }
    if (header->flags & TA__CHUNK_PLAIN)
        return stored;
    decoder->raw_total += header->raw;
    if (decoder->raw_total / RAW_TOTAL_FACTOR > decoder->budget.limit) {
        ta__section_bad(decoder, header, "the recording decompresses to more than 16 times the limit of ");
        ta__message_size(&decoder->problem.text, decoder->budget.limit);
        return NULL;
    }
    decoder->raw.length = 0;
    if (ta__buffer_reserve(&decoder->raw, header->raw + 1) != 0) {
        ta__section_no_memory(decoder, header);
        return NULL;
    }
    const char *wrong = ta__decompress(&decoder->coder, decoder->raw.bytes, header->raw, stored, header->stored);
    if (wrong != NULL) {
        ta__section_bad(decoder, header, "the section ");
        ta__message_text(&decoder->problem.text, wrong);
        return NULL;
    }
    return decoder->raw.bytes;
}

/* ---- entries ---- */

static int add_root(struct ta__decoder *decoder)
{
    if (decoder->tables->contexts.length != 0)
        return 0;
    return ta__buffer_add(&decoder->tables->contexts, sizeof(struct ta__view_context)) == NULL ||
                   ta__buffer_add(&decoder->depths, sizeof(uint32_t)) == NULL
               ? -1
               : 0;
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
    ta__buffer_free(&decoder->block_sizes);
    decoder->predict.next = 0;
    decoder->last_file = decoder->last_line = decoder->last_leaf_context = 0;
    decoder->tables = ta__loaded_create();
    if (decoder->tables == NULL)
        return -1;
    ta__loaded_set_budget(decoder->tables, &decoder->budget);
    return add_root(decoder);
}

int ta__decoder_open(struct ta__decoder *decoder, struct ta__input *input, size_t memory_limit)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->input = input;
    decoder->budget.limit = memory_limit;
    struct ta__buffer *const buffers[] = {
        &decoder->raw,    &decoder->predict.lists, &decoder->module_last, &decoder->depths,      &decoder->leaves,
        &decoder->counts, &decoder->peaks,         &decoder->data_traces, &decoder->block_sizes,
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
    ta__buffer_free(&decoder->block_sizes);
}

/* The entry was taken at the peak. */
static void peak_is_now(struct ta__decoder *decoder)
{
    const struct ta__decoded_counts *counts = TA__ROWS(const struct ta__decoded_counts, decoder->counts);
    uint64_t *peaks = TA__ROWS(uint64_t, decoder->peaks);
    for (uint32_t id = 0; id < TA__ROW_COUNT(struct ta__decoded_leaf, decoder->leaves); id++) {
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
    decoder->tables->blocks.length = 0;
    if (place->reset && new_tables(decoder) != 0)
        return ta__problem_begin(&decoder->problem, "entry", place->offset, "no memory to load the recording");
    for (uint64_t offset = place->offset; offset < place->end;) {
        struct ta__chunk_header header;
        if (ta__input_chunk(decoder->input, offset, &header, &decoder->problem) != 0 ||
            ta__section_decode(decoder, &header) != 0)
            return -1;
        if (header.kind == TA__KIND_ENTRY && decoder->fields[TA__FIELD_COUNTERS_RESTART]) {
            ta__buffer_zero_from(&decoder->counts, 0);
            ta__buffer_zero_from(&decoder->peaks, 0);
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
    struct ta__chunk_header first, last;
    if (ta__input_chunk(decoder->input, place->offset, &first, &decoder->problem) != 0 ||
        ta__section_fields(decoder, &first) != 0 ||
        ta__input_chunk(decoder->input, place->last, &last, &decoder->problem) != 0)
        return -1;
    return ta__section_end_traces(decoder, &last, traces);
}

int ta__decoder_strings(struct ta__decoder *decoder, const struct ta__entry_place *place)
{
    decoder->raw_total = 0;
    if (place->reset && new_tables(decoder) != 0)
        return ta__problem_begin(&decoder->problem, "entry", place->offset, "no memory to load the recording");
    for (uint64_t offset = place->offset; offset < place->end;) {
        struct ta__chunk_header header;
        if (ta__input_chunk(decoder->input, offset, &header, &decoder->problem) != 0 ||
            (header.kind == TA__KIND_STRINGS && ta__section_decode(decoder, &header) != 0))
            return -1;
        offset += TA__CHUNK_HEADER_LENGTH + header.stored;
    }
    return 0;
}

const char *ta__decoder_string(const struct ta__decoder *decoder, uint64_t id)
{
    const struct ta__loaded *tables = decoder->tables;
    if (id >= TA__ROW_COUNT(struct ta__view_string, tables->strings))
        return "";
    const struct ta__view_string *row = &TA__ROWS(const struct ta__view_string, tables->strings)[id];
    return (const char *)tables->string_bytes.bytes + (uintptr_t)row->text;
}

/* ---- the view ---- */

/* With a limit of one frame nobody walks the stack, and its depth is written as 0: not known. A stack of which no frame
 * could be found counts as the one frame that stands for it. */
static int32_t depth_of(const struct ta__decoded_leaf *leaf)
{
    if (leaf->total_nframe != 0)
        return leaf->total_nframe;
    return leaf->context == 0 && (leaf->flags & TA__TRACE_OVERFLOW) == 0 ? 1 : -1;
}

/* What a leaf's counters say now. A snapshot reads them while they move: a free may have been seen before its malloc.
 */
int ta__decoder_trace(const struct ta__decoder *decoder, uint32_t id, struct ta__view_trace *trace)
{
    const struct ta__decoded_leaf *leaf = &TA__ROWS(const struct ta__decoded_leaf, decoder->leaves)[id];
    const struct ta__decoded_counts *counts = &TA__ROWS(const struct ta__decoded_counts, decoder->counts)[id];
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

/* Blocks name leaves and traces of the file; from here on the traces of the view. `map` has the latter by the former. */
static void name_owners(struct ta__decoder *decoder, const uint32_t *map)
{
    struct ta__view_block *blocks = TA__ROWS(struct ta__view_block, decoder->tables->blocks);
    uint32_t count = TA__ROW_COUNT(struct ta__view_block, decoder->tables->blocks);
    for (uint32_t i = 0; i < count; i++)
        blocks[i].trace = blocks[i].trace == 0 ? TA__BLOCK_UNTRACED : map[blocks[i].trace - 1];
}

/* Appends the traces with live blocks (gone = 0) or without (gone = 1). */
static int gather(struct ta__decoder *decoder, int gone, uint32_t *map)
{
    struct ta__buffer *traces = &decoder->tables->traces;
    uint32_t leaf_count = TA__ROW_COUNT(struct ta__decoded_leaf, decoder->leaves);
    for (uint32_t id = 0; id < leaf_count; id++) {
        struct ta__view_trace trace;
        if (!ta__decoder_trace(decoder, id, &trace) || (trace.count == 0) != gone)
            continue;
        if (map != NULL)
            map[id] = TA__ROW_COUNT(struct ta__view_trace, *traces);
        if (ta__buffer_put(traces, &trace, sizeof trace) != 0)
            return -1;
    }
    const struct ta__view_trace *data = TA__ROWS(const struct ta__view_trace, decoder->data_traces);
    uint32_t data_count = TA__ROW_COUNT(struct ta__view_trace, decoder->data_traces);
    for (uint32_t i = 0; i < data_count; i++) {
        if ((data[i].count == 0) != gone)
            continue;
        if (map != NULL)
            map[leaf_count + i] = TA__ROW_COUNT(struct ta__view_trace, *traces);
        if (ta__buffer_put(traces, &data[i], sizeof data[i]) != 0)
            return -1;
    }
    return 0;
}

/* The view's traces; and its blocks, where the last entry has some. */
static int gather_all(struct ta__decoder *decoder)
{
    struct ta__view *view = &decoder->tables->view;
    struct ta__buffer map = {.budget = &decoder->budget};
    size_t owners = (size_t)TA__ROW_COUNT(struct ta__decoded_leaf, decoder->leaves) +
                    TA__ROW_COUNT(struct ta__view_trace, decoder->data_traces);
    view->has_blocks = decoder->seen >> TA__KIND_BLOCKS & 1;
    if (view->has_blocks) {
        if (ta__buffer_reserve(&map, owners * sizeof(uint32_t) + 1) != 0)
            return -1;
        memset(map.bytes, 0xFF, owners * sizeof(uint32_t));
    }
    int result = gather(decoder, 0, TA__ROWS(uint32_t, map));
    view->trace_count = TA__ROW_COUNT(struct ta__view_trace, decoder->tables->traces);
    if (result == 0)
        result = gather(decoder, 1, TA__ROWS(uint32_t, map));
    if (result == 0 && view->has_blocks)
        name_owners(decoder, TA__ROWS(const uint32_t, map));
    ta__buffer_free(&map);
    return result;
}

/* The traces of the overflow leaf have no stack: they get one of a single frame, which says so. */
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

/* The ranges of symbols must cover every frame or none. */
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
    int failed = complete_ranges(loaded) != 0 || gather_all(decoder) != 0 || give_overflow_a_frame(decoder) != 0;
    view->gone_trace_count = TA__ROW_COUNT(struct ta__view_trace, loaded->traces) - view->trace_count;
    if (!failed && loaded->strings.length == 0) { /* index 0 is always there */
        struct ta__view_string empty = {NULL, 0};
        failed = ta__buffer_put(&loaded->string_bytes, "", 1) != 0 ||
                 ta__buffer_put(&loaded->strings, &empty, sizeof empty) != 0;
    }
    if (failed) {
        const struct ta__chunk_header nowhere = {.kind = TA__KIND_TRACES};
        ta__section_no_memory(decoder, &nowhere);
        decoder->problem.section = "";
        return NULL;
    }
#define SET(field, member) view->member = (__typeof__(view->member))decoder->fields[TA__FIELD_##field];
    TA__VIEW_FIELDS(SET)
#undef SET
    ta__loaded_finish(loaded);
    decoder->tables = NULL;
    return loaded;
}
