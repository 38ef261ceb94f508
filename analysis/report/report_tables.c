/* report_tables.c: see report_tables.h. */
#include "analysis/report/report_tables.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "base/hash.h"

struct kind {
    size_t row_size;
    ta__index_hash *hash_of;
    ta__index_same *is_same;
};

/* The number of the row that is the same as `wanted`: a new row is a copy of `row`. */
static int intern(struct ta__report_tables *tables, void *array_pointer, struct ta__report_list *list,
                  const struct kind *kind, uint64_t hash, const void *wanted, const void *row, uint32_t *number)
{
    if (ta__index_reserve(&list->index, list->count, kind->hash_of, tables) != 0)
        return ta__fail_memory();
    uint32_t *slot = ta__index_find(&list->index, hash, kind->is_same, tables, wanted);
    if (*slot == 0) {
        char *rows;
        if (ta__grow(array_pointer, &list->capacity, list->count + 1, kind->row_size) != 0)
            return -1;
        memcpy(&rows, array_pointer, sizeof rows);
        memcpy(rows + list->count * kind->row_size, row, kind->row_size);
        *slot = (uint32_t)++list->count;
    }
    *number = *slot - 1;
    return 0;
}

static uint64_t hash_of_numbers(const uint32_t *numbers, size_t count)
{
    uint64_t hash = TA__GOLDEN;
    for (size_t i = 0; i < count; i++)
        hash = ta__hash_roll(hash, numbers[i]);
    return ta__hash_word(hash);
}

/* ---- texts ---- */

static uint64_t hash_of_text(const void *table, uint32_t row)
{
    const struct ta__report_tables *tables = table;
    return ta__hash_bytes(tables->bytes.bytes + tables->texts[row].offset, tables->texts[row].length);
}

struct bytes {
    const char *text;
    size_t length;
};

static int same_text(const void *table, uint32_t row, const void *wanted)
{
    const struct ta__report_tables *tables = table;
    const struct ta__report_text *text = &tables->texts[row];
    const struct bytes *bytes = wanted;
    return text->length == bytes->length &&
           (bytes->length == 0 || memcmp(tables->bytes.bytes + text->offset, bytes->text, bytes->length) == 0);
}

int ta__report_text(struct ta__report_tables *tables, const char *text, size_t length, uint32_t *number)
{
    static const struct kind kind = {sizeof *tables->texts, hash_of_text, same_text};
    const struct bytes wanted = {text, length};
    const struct ta__report_text row = {tables->bytes.length, length};
    size_t had = tables->text_list.count;
    if (intern(tables, &tables->texts, &tables->text_list, &kind, ta__hash_bytes(text, length), &wanted, &row,
               number) != 0)
        return -1;
    if (tables->text_list.count > had)
        ta__text_add(&tables->bytes, text, length);
    return tables->bytes.failed ? ta__fail_memory() : 0;
}

/* ---- frames ---- */

static uint64_t hash_frame(const struct ta__report_frame *frame)
{
    return hash_of_numbers((const uint32_t[]){frame->file, frame->function, frame->module, frame->line, frame->flags},
                           5);
}

static uint64_t hash_of_frame(const void *table, uint32_t row)
{
    return hash_frame(&((const struct ta__report_tables *)table)->frames[row]);
}

static int same_frame(const void *table, uint32_t row, const void *wanted)
{
    return memcmp(&((const struct ta__report_tables *)table)->frames[row], wanted, sizeof(struct ta__report_frame)) ==
           0;
}

static int texts_of_frame(struct ta__report_tables *tables, const struct ta_frame *frame, struct ta__report_frame *row)
{
    row->line = frame->lineno;
    return ta__report_text(tables, frame->filename, frame->filename_length, &row->file) != 0 ||
                   ta__report_text(tables, frame->function, strlen(frame->function), &row->function) != 0 ||
                   ta__report_text(tables, frame->module, strlen(frame->module), &row->module) != 0
               ? -1
               : 0;
}

int ta__report_frame(struct ta__report_tables *tables, const struct ta_frame *frame, int is_own, uint32_t *number)
{
    static const struct kind kind = {sizeof *tables->frames, hash_of_frame, same_frame};
    struct ta__report_frame row = {.flags = is_own ? TA__REPORT_FRAME_OWN : 0};
    if ((frame->flags & TA_FRAME_INLINED) != 0)
        row.flags |= TA__REPORT_FRAME_INLINED;
    return texts_of_frame(tables, frame, &row) != 0
               ? -1
               : intern(tables, &tables->frames, &tables->frame_list, &kind, hash_frame(&row), &row, &row, number);
}

/* ---- nodes ---- */

static uint64_t hash_node(const struct ta__report_node *node)
{
    return hash_of_numbers((const uint32_t[]){node->parent, node->frame}, 2);
}

static uint64_t hash_of_node(const void *table, uint32_t row)
{
    return hash_node(&((const struct ta__report_tables *)table)->nodes[row]);
}

static int same_node(const void *table, uint32_t row, const void *wanted)
{
    const struct ta__report_node *node = &((const struct ta__report_tables *)table)->nodes[row], *other = wanted;
    return node->parent == other->parent && node->frame == other->frame;
}

int ta__report_node(struct ta__report_tables *tables, uint32_t parent, uint32_t frame, uint32_t *number)
{
    static const struct kind kind = {sizeof *tables->nodes, hash_of_node, same_node};
    const struct ta__report_node row = {parent, frame};
    return intern(tables, &tables->nodes, &tables->node_list, &kind, hash_node(&row), &row, &row, number);
}

/* ---- rows ---- */

/* A line is a line, whatever function and module its first frame had; what has none is its function. */
static uint64_t hash_row(const struct ta__report_frame *frame)
{
    return hash_of_numbers((const uint32_t[]){frame->file, frame->line > 0 ? 0 : frame->function, frame->line}, 3);
}

static uint64_t hash_of_row(const void *table, uint32_t row)
{
    return hash_row(&((const struct ta__report_tables *)table)->rows[row].frame);
}

static int same_row(const void *table, uint32_t row, const void *wanted)
{
    const struct ta__report_frame *frame = &((const struct ta__report_tables *)table)->rows[row].frame;
    const struct ta__report_frame *other = &((const struct ta__report_row *)wanted)->frame;
    return frame->file == other->file && frame->line == other->line &&
           (frame->line > 0 || frame->function == other->function);
}

int ta__report_row(struct ta__report_tables *tables, const struct ta_frame *frame, uint32_t *number)
{
    static const struct kind kind = {sizeof *tables->rows, hash_of_row, same_row};
    struct ta__report_row row = {.growth = TA_GROWTH_UNKNOWN};
    return texts_of_frame(tables, frame, &row.frame) != 0
               ? -1
               : intern(tables, &tables->rows, &tables->row_list, &kind, hash_row(&row.frame), &row, &row, number);
}

/* ---- traces ---- */

static uint64_t hash_trace(const struct ta__report_trace *trace)
{
    return hash_of_numbers((const uint32_t[]){trace->source, trace->node, trace->domain, trace->thread, trace->row}, 5);
}

static uint64_t hash_of_trace(const void *table, uint32_t row)
{
    return hash_trace(&((const struct ta__report_tables *)table)->traces[row]);
}

static int same_trace(const void *table, uint32_t row, const void *wanted)
{
    const struct ta__report_trace *trace = &((const struct ta__report_tables *)table)->traces[row], *other = wanted;
    return trace->node == other->node && trace->source == other->source && trace->domain == other->domain &&
           trace->thread == other->thread && trace->row == other->row;
}

int ta__report_trace(struct ta__report_tables *tables, const struct ta__report_trace *wanted, uint32_t *number)
{
    static const struct kind kind = {sizeof *tables->traces, hash_of_trace, same_trace};
    struct ta__report_trace row = *wanted;
    row.peak = 0;
    return intern(tables, &tables->traces, &tables->trace_list, &kind, hash_trace(&row), &row, &row, number);
}

/* ---- all of them ---- */

int ta__report_tables_open(struct ta__report_tables *tables)
{
    uint32_t number;
    return ta__report_text(tables, "", 0, &number) != 0 || ta__report_node(tables, 0, UINT32_MAX, &number) != 0 ? -1
                                                                                                                : 0;
}

void ta__report_tables_close(struct ta__report_tables *tables)
{
    ta__text_free(&tables->bytes);
    free(tables->texts);
    free(tables->frames);
    free(tables->nodes);
    free(tables->rows);
    free(tables->traces);
    ta__index_free(&tables->text_list.index);
    ta__index_free(&tables->frame_list.index);
    ta__index_free(&tables->node_list.index);
    ta__index_free(&tables->row_list.index);
    ta__index_free(&tables->trace_list.index);
}
