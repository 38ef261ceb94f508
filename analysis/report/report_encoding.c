/* report_encoding.c: a report's tables as columns of small numbers, in an order in which neighbours are alike: the tree
 * depth first, the rest after it. docs/report.md says what the page reads. See report.h. */
#include "analysis/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/exchange/json.h"
#include "analysis/exports/gzip.h"
#include "analysis/failure.h"
#include "analysis/number_sort.h"
#include "analysis/report/columns.h"

#define SOURCES_MOST (384 * 1024)

enum column {
    TEXT_LENGTH,
    FRAME_FILE,
    FRAME_FUNCTION,
    FRAME_SHORT,
    FRAME_MODULE,
    FRAME_LINE,
    FRAME_FLAGS,
    NODE_UP,
    NODE_FRAME,
    ROW_FILE,
    ROW_FUNCTION,
    ROW_SHORT,
    ROW_MODULE,
    ROW_LINE,
    ROW_GROWTH,
    ROW_CERTAINTY,
    ROW_PER_MINUTE,
    ROW_PER_CALL,
    ROW_GROWN,
    ROW_REASON,
    POINT_TIME,
    POINT_INDEX,
    POINT_RESIDENT,
    POINT_REASON,
    POINT_RESTARTS,
    TRACE_NODE,
    TRACE_SOURCE,
    TRACE_DOMAIN,
    TRACE_THREAD,
    TRACE_ROW,
    TRACE_PEAK,
    TRACE_EACH,
    TRACE_CHANGES,
    CHANGE_POINT,
    CHANGE_COUNT,
    CHANGE_CALLS,
    CHANGE_SIZE,
    CHANGE_BYTES,
    COLUMNS
};
static const char *const names[COLUMNS] = {
    "text.length",    "frame.file",   "frame.function", "frame.short",   "frame.module",   "frame.line",
    "frame.flags",    "node.up",      "node.frame",     "row.file",      "row.function",   "row.short",
    "row.module",     "row.line",     "row.growth",     "row.certainty", "row.perMinute",  "row.perCall",
    "row.grown",      "row.reason",   "point.time",     "point.index",   "point.resident", "point.reason",
    "point.restarts", "trace.node",   "trace.source",   "trace.domain",  "trace.thread",   "trace.row",
    "trace.peak",     "trace.each",   "trace.changes",  "change.point",  "change.count",   "change.calls",
    "change.size",    "change.bytes",
};

struct encoding {
    const struct ta__report *report;
    struct ta__report_tables *tables;
    struct ta__column columns[COLUMNS];
    uint32_t *node_number;  /* by node: its place in the order of the tree */
    uint32_t *frame_number; /* by frame: its place, + 1 */
    uint32_t *point_number; /* by point: its place, neighbours together */
    size_t *points_of;      /* by recording: how many places */
};

static void put(struct encoding *encoding, enum column column, uint64_t value)
{
    ta__column_put(&encoding->columns[column], value);
}

static void put_signed(struct encoding *encoding, enum column column, int64_t value)
{
    ta__column_put_signed(&encoding->columns[column], value);
}

/* ---- texts, frames, rows ---- */

/* The text of a function as people read it, 0 when it is the same. */
static int short_name(struct ta__report_tables *tables, uint32_t function, uint32_t *number)
{
    char text[512];
    const struct ta__report_text *name = &tables->texts[function];
    char *copy = ta__new_array(name->length + 1, 1);
    if (copy == NULL)
        return -1;
    memcpy(copy, tables->bytes.bytes + name->offset, name->length);
    ta_function_text(copy, text, sizeof text);
    free(copy);
    if (ta__report_text(tables, text, strlen(text), number) != 0)
        return -1;
    if (*number == function)
        *number = 0;
    return 0;
}

static int put_place(struct encoding *encoding, const struct ta__report_frame *frame, enum column first)
{
    uint32_t name;
    if (short_name(encoding->tables, frame->function, &name) != 0)
        return -1;
    put(encoding, first, frame->file);
    put(encoding, first + 1, frame->function);
    put(encoding, first + 2, name);
    put(encoding, first + 3, frame->module);
    put(encoding, first + 4, frame->line);
    return 0;
}

static int put_rows(struct encoding *encoding)
{
    int status = 0;
    for (size_t i = 0; i < encoding->tables->row_list.count && status == 0; i++) {
        const struct ta__report_row *row = &encoding->tables->rows[i];
        status = put_place(encoding, &row->frame, ROW_FILE);
        put(encoding, ROW_GROWTH, row->growth);
        put(encoding, ROW_CERTAINTY, (uint64_t)(row->certainty * 1000));
        put(encoding, ROW_PER_MINUTE, (uint64_t)row->bytes_per_minute);
        put(encoding, ROW_PER_CALL, (uint64_t)row->bytes_per_call);
        put(encoding, ROW_GROWN, row->grown_size);
        put(encoding, ROW_REASON, row->reason);
    }
    return status;
}

static void put_texts(struct encoding *encoding)
{
    for (size_t i = 0; i < encoding->tables->text_list.count; i++)
        put(encoding, TEXT_LENGTH, encoding->tables->texts[i].length);
}

/* ---- the tree ---- */

static int put_node(struct encoding *encoding, uint32_t frame, uint32_t up)
{
    put(encoding, NODE_UP, up);
    if (encoding->frame_number[frame] != 0) {
        put(encoding, NODE_FRAME, encoding->frame_number[frame]);
        return 0;
    }
    put(encoding, NODE_FRAME, 0);
    encoding->frame_number[frame] = (uint32_t)encoding->columns[FRAME_LINE].count + 1;
    put(encoding, FRAME_FLAGS, encoding->tables->frames[frame].flags);
    return put_place(encoding, &encoding->tables->frames[frame], FRAME_FILE);
}

/* Depth first, children in the order in which they came. Their lists are made from behind. */
static int put_nodes(struct encoding *encoding)
{
    const struct ta__report_tables *tables = encoding->tables;
    size_t count = tables->node_list.count;
    uint32_t *child = ta__new_array(count, sizeof *child), *sibling = ta__new_array(count, sizeof *sibling), next = 0;
    int status = child == NULL || sibling == NULL ? -1 : 0;
    for (size_t i = count; status == 0 && i-- > 1;) {
        sibling[i] = child[tables->nodes[i].parent];
        child[tables->nodes[i].parent] = (uint32_t)i;
    }
    for (uint32_t at = 0; status == 0;) {
        uint32_t up = 0;
        if (child[at] != 0) {
            at = child[at];
        } else {
            for (; at != 0 && sibling[at] == 0; up++)
                at = tables->nodes[at].parent;
            if (at == 0)
                break;
            at = sibling[at];
            up++;
        }
        encoding->node_number[at] = ++next;
        status = put_node(encoding, tables->nodes[at].frame, up);
    }
    free(child);
    free(sibling);
    return status;
}

/* ---- time ---- */

/* Points that stand for themselves and those `factor` - 1 before them: the last one, those before the traces were
 * cleared, the highest. */
static void number_points(struct encoding *encoding, const struct ta__report_recording *recording, size_t *next,
                          unsigned factor, const uint64_t *live)
{
    const struct ta_series_entry *points = encoding->report->points;
    size_t first = recording->first_point, end = first + recording->point_count, highest = first, began = *next;
    for (size_t i = first; i < end; i++)
        highest = live[i] > live[highest] ? i : highest;
    for (size_t i = first; i < end; i++) {
        encoding->point_number[i] = (uint32_t)*next;
        if (i + 1 == end || i == highest || (i - first) % factor == factor - 1 || points[i + 1].restarts)
            ++*next;
    }
    encoding->points_of[recording - encoding->report->recordings] = *next - began;
}

/* Live bytes at each point; NULL with the error set. */
static uint64_t *live_bytes(const struct ta__report *report)
{
    uint64_t *live = ta__new_array(report->point_count, sizeof *live);
    for (size_t i = 0; i < report->change_count && live != NULL; i++)
        live[report->changes[i].point] += (uint64_t)report->changes[i].size;
    for (size_t r = 0; r < report->recording_count && live != NULL; r++)
        for (size_t i = 1; i < report->recordings[r].point_count; i++)
            live[report->recordings[r].first_point + i] += live[report->recordings[r].first_point + i - 1];
    return live;
}

static int put_points(struct encoding *encoding, unsigned factor)
{
    const struct ta__report *report = encoding->report;
    uint64_t *live = live_bytes(report), resident = 0;
    size_t next = 0;
    int64_t last_time = 0;
    int restarts = 0;
    if (live == NULL)
        return -1;
    for (size_t r = 0; r < report->recording_count; r++)
        number_points(encoding, &report->recordings[r], &next, factor, live);
    free(live);
    for (size_t i = 0; i < report->point_count; i++) {
        const struct ta_series_entry *point = &report->points[i];
        int64_t time = (int64_t)(point->time_ns / 1000000);
        resident = point->resident > 0 ? point->resident : resident;
        restarts |= point->restarts;
        if (i + 1 < report->point_count && encoding->point_number[i + 1] == encoding->point_number[i])
            continue;
        put_signed(encoding, POINT_TIME, time - last_time);
        put(encoding, POINT_INDEX, point->index);
        put(encoding, POINT_RESIDENT, resident);
        put(encoding, POINT_REASON, report->reasons[i]);
        put(encoding, POINT_RESTARTS, (uint64_t)restarts);
        last_time = time;
        resident = 0;
        restarts = 0;
    }
    return 0;
}

/* ---- traces and their changes ---- */

static uint64_t trace_key(const void *user, uint32_t item, unsigned k)
{
    const struct encoding *encoding = user;
    const struct ta__report_trace *trace = &encoding->tables->traces[item];
    return k == 0 ? encoding->node_number[trace->node] : k == 1 ? trace->source : trace->domain;
}

static uint64_t change_key(const void *user, uint32_t item, unsigned k)
{
    const struct ta__report_change *change = &((const struct ta__report *)user)->changes[item];
    return k == 0 ? change->trace : change->point;
}

/* The changes of one trace, those of one place in time added up, to the front of `items`; how many there are. */
static size_t join_changes(const struct encoding *encoding, const uint32_t *order, size_t count,
                           struct ta__report_change *items)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct ta__report_change change = encoding->report->changes[order[i]];
        change.point = encoding->point_number[change.point];
        if (kept == 0 || items[kept - 1].point != change.point) {
            items[kept++] = change;
            continue;
        }
        items[kept - 1].size += change.size;
        items[kept - 1].count += change.count;
        items[kept - 1].allocated_bytes += change.allocated_bytes;
        items[kept - 1].allocated_blocks += change.allocated_blocks;
    }
    return kept;
}

/* The size that every block of a trace has, as far as sums tell; 0 when there is none. */
static int64_t common_size(const struct ta__report_change *items, size_t count)
{
    int64_t each = 0;
    for (size_t i = 0; i < count && each == 0; i++)
        each = items[i].count != 0              ? items[i].size / items[i].count
               : items[i].allocated_blocks != 0 ? items[i].allocated_bytes / items[i].allocated_blocks
                                                : 0;
    for (size_t i = 0; i < count && each > 0; i++) {
        int64_t size, bytes;
        if (__builtin_mul_overflow(each, items[i].count, &size) || size != items[i].size ||
            __builtin_mul_overflow(each, items[i].allocated_blocks, &bytes) || bytes != items[i].allocated_bytes)
            return 0;
    }
    return each > 0 ? each : 0;
}

static void put_trace(struct encoding *encoding, const struct ta__report_trace *trace,
                      const struct ta__report_trace *before, const struct ta__report_change *items, size_t count)
{
    int64_t each = common_size(items, count);
    uint64_t live = 0;
    uint32_t last = 0;
    put(encoding, TRACE_NODE, encoding->node_number[trace->node] - encoding->node_number[before->node]);
    put(encoding, TRACE_SOURCE, trace->source);
    put(encoding, TRACE_DOMAIN, trace->domain);
    put(encoding, TRACE_THREAD, trace->thread);
    put_signed(encoding, TRACE_ROW, (int64_t)trace->row - before->row);
    put(encoding, TRACE_EACH, (uint64_t)each);
    put(encoding, TRACE_CHANGES, count);
    for (size_t i = 0; i < count; i++) {
        const struct ta__report_change *change = &items[i];
        put(encoding, CHANGE_POINT, change->point - last);
        put_signed(encoding, CHANGE_COUNT, change->count);
        put_signed(encoding, CHANGE_CALLS, change->allocated_blocks);
        if (each == 0) {
            put_signed(encoding, CHANGE_SIZE, change->size);
            put_signed(encoding, CHANGE_BYTES, change->allocated_bytes);
        }
        last = change->point;
        live += (uint64_t)change->size;
    }
    put_signed(encoding, TRACE_PEAK, (int64_t)(trace->peak - live));
}

/* `order` has the changes of all traces one after another, `begin` where each trace's begin. */
static void put_all_traces(struct encoding *encoding, const uint32_t *traces, const uint32_t *order,
                           const size_t *begin, struct ta__report_change *items)
{
    static const struct ta__report_trace none;
    const struct ta__report_trace *before = &none;
    for (size_t i = 0; i < encoding->tables->trace_list.count; i++) {
        const struct ta__report_trace *trace = &encoding->tables->traces[traces[i]];
        size_t first = begin[traces[i]];
        size_t count = join_changes(encoding, order + first, begin[traces[i] + 1] - first, items);
        put_trace(encoding, trace, before, items, count);
        before = trace;
    }
}

static int put_traces(struct encoding *encoding)
{
    const struct ta__report *report = encoding->report;
    size_t count = encoding->tables->trace_list.count;
    uint32_t *traces = ta__order_by_keys(encoding, count, 3, trace_key);
    uint32_t *order = ta__order_by_keys(report, report->change_count, 2, change_key);
    size_t *begin = ta__new_array(count + 2, sizeof *begin);
    struct ta__report_change *items = ta__new_array(report->change_count, sizeof *items);
    int status = traces == NULL || order == NULL || begin == NULL || items == NULL ? -1 : 0;
    for (size_t i = 0; i < report->change_count && status == 0; i++)
        begin[report->changes[i].trace + 1]++;
    for (size_t i = 0; i < count && status == 0; i++)
        begin[i + 1] += begin[i];
    if (status == 0)
        put_all_traces(encoding, traces, order, begin, items);
    free(traces);
    free(order);
    free(begin);
    free(items);
    return status;
}

/* ---- all of it ---- */

static void add_file(struct ta__text *json, const struct encoding *encoding, size_t index)
{
    const struct ta__report_recording *recording = &encoding->report->recordings[index];
    const struct ta_report_file *file = recording->file;
    ta__text_add_format(json, "%s{\"points\":%zu,\"process\":%u,\"parent\":%u,\"path\":", index > 0 ? "," : "",
                        encoding->points_of[index], file->process, file->parent);
    ta__json_add_string(json, file->path, strlen(file->path));
    ta__text_add_string(json, ",\"name\":");
    ta__json_add_string(json, file->name != NULL ? file->name : "", file->name != NULL ? strlen(file->name) : 0);
    ta__text_add_string(json, ",\"end\":");
    ta__json_add_string(json, file->end != NULL ? file->end : "", file->end != NULL ? strlen(file->end) : 0);
    ta__text_add_string(json, ",\"about\":");
    ta__text_add(json, recording->facts.bytes, recording->facts.length);
    ta__text_add_string(json, "}");
}

static int add_head(struct ta__text *json, const struct encoding *encoding)
{
    const struct ta__report *report = encoding->report;
    const char *title = report->options.title != NULL ? report->options.title : "";
    ta__text_add_format(json, "{\"format\":1,\"compares\":%d,\"title\":", report->options.compares != 0);
    ta__json_add_string(json, title, strlen(title));
    ta__text_add_string(json, ",\"growth\":[");
    for (int i = 0; i <= TA_GROWTH_UNKNOWN; i++)
        ta__text_add_format(json, "%s\"%s\"", i > 0 ? "," : "", ta_growth_name((enum ta_growth)i));
    ta__text_add_string(json, "],\"files\":[");
    for (size_t i = 0; i < report->recording_count; i++)
        add_file(json, encoding, i);
    ta__text_add_string(json, "],\"columns\":[");
    for (int i = 0; i < COLUMNS; i++)
        ta__text_add_format(json, "%s[\"%s\",%zu,%zu]", i > 0 ? "," : "", names[i], encoding->columns[i].count,
                            encoding->columns[i].bytes.length);
    ta__text_add_format(json, "],\"texts\":%zu,\"sources\":", encoding->tables->bytes.length);
    if (report->options.without_sources)
        ta__text_add_string(json, "{}");
    else if (ta__report_sources(json, report, SOURCES_MOST) != 0)
        return -1;
    ta__text_add_string(json, "}");
    return json->failed ? ta__fail_memory() : 0;
}

/* Length of the JSON (four bytes, the lowest first), the JSON, all columns, all texts. */
static int add_all(struct ta__text *whole, const struct encoding *encoding)
{
    struct ta__text json = {0};
    int status = add_head(&json, encoding);
    if (status == 0) {
        uint32_t length = (uint32_t)json.length;
        ta__text_add(whole, (char[]){(char)length, (char)(length >> 8), (char)(length >> 16), (char)(length >> 24)}, 4);
        ta__text_add(whole, json.bytes, json.length);
        for (int i = 0; i < COLUMNS; i++) {
            if (encoding->columns[i].bytes.failed)
                whole->failed = 1;
            ta__text_add(whole, encoding->columns[i].bytes.bytes, encoding->columns[i].bytes.length);
        }
        ta__text_add(whole, encoding->tables->bytes.bytes, encoding->tables->bytes.length);
        status = whole->failed ? ta__fail_memory() : 0;
    }
    ta__text_free(&json);
    return status;
}

static int put_everything(struct encoding *encoding, unsigned factor)
{
    const struct ta__report *report = encoding->report;
    encoding->node_number = ta__new_array(encoding->tables->node_list.count, sizeof *encoding->node_number);
    encoding->frame_number = ta__new_array(encoding->tables->frame_list.count, sizeof *encoding->frame_number);
    encoding->point_number = ta__new_array(report->point_count, sizeof *encoding->point_number);
    encoding->points_of = ta__new_array(report->recording_count, sizeof *encoding->points_of);
    if (encoding->node_number == NULL || encoding->frame_number == NULL || encoding->point_number == NULL ||
        encoding->points_of == NULL || put_points(encoding, factor) != 0 || put_nodes(encoding) != 0 ||
        put_rows(encoding) != 0 || put_traces(encoding) != 0)
        return -1;
    put_texts(encoding); /* last: short names are added on the way */
    return 0;
}

static void close_encoding(struct encoding *encoding)
{
    for (int i = 0; i < COLUMNS; i++)
        ta__text_free(&encoding->columns[i].bytes);
    free(encoding->node_number);
    free(encoding->frame_number);
    free(encoding->point_number);
    free(encoding->points_of);
}

static int write_to_text(void *user, const char *bytes, size_t length)
{
    struct ta__text *text = user;
    ta__text_add(text, bytes, length);
    return text->failed ? ta__fail_memory() : 0;
}

static int compress_text(struct ta__text *to, const struct ta__text *from)
{
    struct ta__gzip gzip;
    int status = ta__gzip_open(&gzip, write_to_text, to);
    if (status == 0)
        ta__gzip_add(&gzip, from->bytes, from->length);
    return ta__gzip_finish(&gzip) != 0 ? -1 : status;
}

int ta__report_encode(struct ta__text *data, struct ta__report *report, size_t most_bytes)
{
    int status = 0;
    for (unsigned factor = 1;; factor *= 2) {
        struct encoding encoding = {.report = report, .tables = &report->tables};
        struct ta__text whole = {0};
        data->length = 0;
        status = put_everything(&encoding, factor);
        if (status == 0)
            status = add_all(&whole, &encoding);
        if (status == 0)
            status = compress_text(data, &whole);
        close_encoding(&encoding);
        ta__text_free(&whole);
        if (status != 0 || data->length <= most_bytes || factor >= report->point_count)
            return status;
    }
}
