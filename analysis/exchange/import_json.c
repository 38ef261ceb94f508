/* import_json.c: a snapshot from the interchange format, and filters from a specification.
 *
 * Traces are read as a stream and go straight into the tables of the snapshot: what is in memory is these tables, never
 * the text. Errors name the place in the document: "traces[3].frames[0]: …". */
#include <stdlib.h>
#include <string.h>

#include "analysis/exchange/json.h"
#include "analysis/exchange/json_stream.h"
#include "analysis/analysis_domain.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "snapshot/read/read.h"

#define SPLIT_MAX 65536 /* entries that one trace of more than 2^64 bytes may become */

struct import {
    struct ta__json_stream stream;
    struct ta__snapshot_builder *builder;
    struct place {
        uint32_t name, line;
    } * places;       /* of the present trace, in the order of the text */
    uint32_t *frames; /* their numbers, most recent first */
    size_t frame_count, place_capacity, frame_capacity, trace_count;
    uint64_t most_frames;
    int is_oldest_first, has_traces;
    struct ta__json_value limit;
};

/* What a trace says. Of a member that comes twice the last one counts, so nothing is judged before the end. */
struct trace {
    struct ta__json_value domain, size, count, total_nframe;
    size_t bad_frame; /* SIZE_MAX = none */
};

/* `*number` keeps its value when the member is missing. */
static int get_member(const struct ta__json_value *value, size_t index, const char *key, uint64_t max, uint64_t *number)
{
    if (value->kind == TA__JSON_ABSENT)
        return 0;
    if (value->kind != TA__JSON_UNSIGNED || value->number > max)
        return ta__fail("traces[%zu].%s: expected an integer from 0 to %llu", index, key, (unsigned long long)max);
    *number = value->number;
    return 0;
}

static int text_is(const struct import *import, const char *text)
{
    const struct ta__text *string = &import->stream.string;
    return string->length == strlen(text) && memcmp(string->bytes, text, string->length) == 0;
}

/* ["file", line], or something else, which is skipped: then `*is_good` says so. */
static int get_frame(struct import *import, int *is_good)
{
    struct ta__json_stream *stream = &import->stream;
    struct ta__json_value value;
    size_t count = 0;
    uint32_t name = 0;
    int more;
    *is_good = 0;
    if (ta__json_stream_peek(stream) != '[')
        return ta__json_stream_value(stream, &value);
    ta__json_stream_enter(stream, '[');
    while ((more = ta__json_stream_item(stream, &count)) == 1) {
        if (ta__json_stream_value(stream, &value) != 0)
            return -1;
        int is_name = count == 1 && value.kind == TA__JSON_STRING;
        int is_line = count == 2 && value.kind == TA__JSON_UNSIGNED && value.number <= UINT32_MAX;
        if (is_name &&
            ta__snapshot_builder_name(import->builder, stream->string.bytes, stream->string.length, &name) != 0)
            return -1;
        *is_good = is_name || (is_line && *is_good);
    }
    if (more < 0)
        return -1;
    *is_good &= count == 2;
    if (*is_good)
        import->places[import->frame_count++] = (struct place){name, (uint32_t)value.number};
    return 0;
}

/* A list of frames, or something else, which counts as an empty one. */
static int get_frames(struct import *import, struct trace *trace)
{
    struct ta__json_stream *stream = &import->stream;
    struct ta__json_value value;
    size_t count = 0;
    int more, is_good;
    import->frame_count = 0;
    trace->bad_frame = SIZE_MAX;
    if (ta__json_stream_peek(stream) != '[')
        return ta__json_stream_value(stream, &value);
    ta__json_stream_enter(stream, '[');
    while ((more = ta__json_stream_item(stream, &count)) == 1) {
        if (ta__grow(&import->places, &import->place_capacity, count, sizeof *import->places) != 0 ||
            get_frame(import, &is_good) != 0)
            return -1;
        if (!is_good && trace->bad_frame == SIZE_MAX)
            trace->bad_frame = count - 1;
    }
    return more;
}

/* The oldest frame gets the first number: contexts are made in that order too, and files are smaller for it. */
static int number_frames(struct import *import)
{
    size_t count = import->frame_count;
    if (ta__grow(&import->frames, &import->frame_capacity, count, sizeof *import->frames) != 0)
        return -1;
    for (size_t i = count; i-- > 0;) {
        const struct place *place = &import->places[import->is_oldest_first ? count - 1 - i : i];
        if (ta__snapshot_builder_frame(import->builder, place->name, place->line, &import->frames[i]) != 0)
            return -1;
    }
    return 0;
}

/* What is wrong with a trace, in the order in which people are told. */
static int judge(struct import *import, const struct trace *trace, struct ta__built_trace *built, uint64_t *size)
{
    size_t index = import->trace_count;
    uint64_t domain = 0, total = import->frame_count;
    built->count = 1;
    if (trace->size.kind == TA__JSON_ABSENT || trace->size.kind == TA__JSON_NULL)
        return ta__fail("traces[%zu]: \"size\" is missing", index);
    if (get_member(&trace->domain, index, "domain", UINT32_MAX, &domain) != 0 ||
        get_member(&trace->size, index, "size", UINT64_MAX, size) != 0 ||
        get_member(&trace->count, index, "count", UINT64_MAX, &built->count) != 0)
        return -1;
    if (trace->bad_frame != SIZE_MAX)
        return ta__fail("traces[%zu].frames[%zu]: expected [file name, line from 0 to 4294967295]", index,
                        trace->bad_frame);
    if (import->frame_count == 0)
        return ta__fail("traces[%zu].frames: expected a list of at least one [file name, line]", index);
    int is_known = trace->total_nframe.kind != TA__JSON_NULL;
    if (is_known && get_member(&trace->total_nframe, index, "total_nframe", INT32_MAX - 1, &total) != 0)
        return -1;
    built->domain = (uint32_t)domain;
    built->total_nframe = is_known ? (int32_t)total : -1;
    return 0;
}

/* One entry, or several when count times size is more than one entry can say. */
static int add_trace(struct import *import, const struct trace *trace)
{
    struct ta__built_trace built = {.nframe = import->frame_count};
    uint64_t size = 0;
    if (judge(import, trace, &built, &size) != 0)
        return -1;
    uint64_t most = size == 0 ? UINT64_MAX : UINT64_MAX / size, left = built.count;
    if (left / most >= SPLIT_MAX)
        return ta__fail("traces[%zu]: size times count is too large", import->trace_count);
    if (number_frames(import) != 0)
        return -1;
    built.frames = import->frames;
    for (; left > 0; left -= built.count) {
        built.count = left < most ? left : most;
        built.size = size * built.count;
        if (ta__snapshot_builder_add(import->builder, &built) != 0)
            return -1;
        if (built.nframe > import->most_frames)
            import->most_frames = built.nframe;
    }
    return 0;
}

static int get_trace(struct import *import)
{
    struct ta__json_stream *stream = &import->stream;
    struct trace trace = {.bad_frame = SIZE_MAX};
    size_t count = 0;
    int more;
    if (ta__json_stream_peek(stream) != '{') {
        struct ta__json_value value;
        return ta__json_stream_value(stream, &value) != 0
                   ? -1
                   : ta__fail("traces[%zu]: expected an object", import->trace_count);
    }
    ta__json_stream_enter(stream, '{');
    import->frame_count = 0;
    while ((more = ta__json_stream_member(stream, &count)) == 1) {
        struct ta__json_value other, *value = text_is(import, "size")           ? &trace.size
                                              : text_is(import, "count")        ? &trace.count
                                              : text_is(import, "domain")       ? &trace.domain
                                              : text_is(import, "total_nframe") ? &trace.total_nframe
                                                                                : &other;
        if ((value == &other && text_is(import, "frames") ? get_frames(import, &trace)
                                                          : ta__json_stream_value(stream, value)) != 0)
            return -1;
    }
    return more < 0 ? -1 : add_trace(import, &trace);
}

static int get_traces(struct import *import)
{
    struct ta__json_stream *stream = &import->stream;
    size_t count = 0;
    int more;
    if (ta__json_stream_peek(stream) != '[') {
        struct ta__json_value value;
        return ta__json_stream_value(stream, &value) != 0 ? -1 : ta__fail("traces: expected a list");
    }
    if (import->has_traces) { /* of two lists the last counts */
        ta__snapshot_builder_destroy(import->builder);
        import->builder = ta__snapshot_builder_create();
        import->most_frames = 0;
    }
    import->has_traces = 1;
    if (import->builder == NULL)
        return -1;
    ta__json_stream_enter(stream, '[');
    while ((more = ta__json_stream_item(stream, &count)) == 1) {
        import->trace_count = count - 1;
        if (get_trace(import) != 0)
            return -1;
    }
    return more;
}

/* May come behind the traces, which were then taken to be in the other order. */
static int get_order(struct import *import)
{
    struct ta__json_value value;
    int was_oldest_first = import->is_oldest_first;
    if (ta__json_stream_value(&import->stream, &value) != 0)
        return -1;
    int is_text = value.kind == TA__JSON_STRING;
    import->is_oldest_first = is_text && text_is(import, "oldest_first");
    if (!import->is_oldest_first && !(is_text && text_is(import, "most_recent_first")))
        return ta__fail("frame_order: expected \"most_recent_first\" or \"oldest_first\"");
    return import->has_traces && was_oldest_first != import->is_oldest_first
               ? ta__snapshot_builder_turn_around(import->builder)
               : 0;
}

static int get_document(struct import *import)
{
    struct ta__json_stream *stream = &import->stream;
    struct ta__json_value ignored;
    size_t count = 0;
    int more;
    if (ta__json_stream_peek(stream) != '{')
        return ta__json_stream_value(stream, &ignored) != 0 || ta__json_stream_finish(stream) != 0
                   ? -1
                   : ta__fail("expected an object with \"traces\"");
    ta__json_stream_enter(stream, '{');
    while ((more = ta__json_stream_member(stream, &count)) == 1) {
        int status = text_is(import, "traces")            ? get_traces(import)
                     : text_is(import, "frame_order")     ? get_order(import)
                     : text_is(import, "traceback_limit") ? ta__json_stream_value(stream, &import->limit)
                                                          : ta__json_stream_value(stream, &ignored);
        if (status != 0)
            return -1;
    }
    if (more < 0 || ta__json_stream_finish(stream) != 0)
        return -1;
    return import->has_traces ? 0 : ta__fail("traces: expected a list");
}

static struct ta_snapshot *finish(struct import *import)
{
    uint64_t limit = import->most_frames > 0 ? import->most_frames : 1;
    if (import->limit.kind != TA__JSON_ABSENT) {
        limit = import->limit.number;
        if (import->limit.kind != TA__JSON_UNSIGNED || limit > INT32_MAX) {
            ta__fail("traceback_limit: expected an integer from 0 to 2147483647");
            return NULL;
        }
    }
    struct ta_snapshot *snapshot = ta__snapshot_builder_finish(import->builder, (uint32_t)limit);
    import->builder = NULL;
    return snapshot;
}

struct ta_snapshot *ta_snapshot_import_json_from(ta_read_function read, void *user)
{
    TA__OWN_DOMAIN;
    struct import import = {.builder = ta__snapshot_builder_create()};
    struct ta_snapshot *snapshot = NULL;
    if (ta__json_stream_open(&import.stream, read, user) == 0 && import.builder != NULL && get_document(&import) == 0)
        snapshot = finish(&import);
    ta__json_stream_close(&import.stream);
    ta__snapshot_builder_destroy(import.builder);
    free(import.places);
    free(import.frames);
    return snapshot;
}

struct memory {
    const char *at, *end;
};

static long read_memory(void *user, char *bytes, size_t size)
{
    struct memory *memory = user;
    size_t left = (size_t)(memory->end - memory->at), length = left < size ? left : size;
    memcpy(bytes, memory->at, length);
    memory->at += length;
    return (long)length;
}

struct ta_snapshot *ta_snapshot_import_json(const char *text, size_t length)
{
    struct memory memory = {text, text + length};
    return ta_snapshot_import_json_from(read_memory, &memory);
}

/* ---- filters ---- */

static struct json_object *member(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    return json_object_object_get_ex(object, key, &value) ? value : NULL;
}

static int get_flag(struct json_object *filter, size_t index, const char *key, int *flag)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(filter, key, &value))
        return 0;
    if (!json_object_is_type(value, json_type_boolean))
        return ta__fail("filters[%zu].%s: expected true or false", index, key);
    *flag = json_object_get_boolean(value);
    return 0;
}

/* Any integer or null; what fits no line or domain is kept as -1, which hits nothing. */
static int get_number(struct json_object *filter, size_t index, const char *key, int *has, int64_t *number)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(filter, key, &value) || value == NULL)
        return 0;
    if (!json_object_is_type(value, json_type_int))
        return ta__fail("filters[%zu].%s: expected an integer or null", index, key);
    *has = 1;
    *number = json_object_get_int64(value);
    return 0;
}

static int get_filter(struct json_object *value, size_t index, struct ta_filter *filter, char **names)
{
    struct json_object *type = NULL, *pattern = NULL;
    int has_domain = 0;
    if (!json_object_is_type(value, json_type_object) || !json_object_object_get_ex(value, "type", &type) ||
        !json_object_is_type(type, json_type_string))
        return ta__fail("filters[%zu]: expected an object with \"type\": \"filter\" or \"domain\"", index);
    if (member(value, "inclusive") == NULL)
        return ta__fail("filters[%zu]: \"inclusive\" is missing", index);
    if (get_flag(value, index, "inclusive", &filter->inclusive) != 0 ||
        get_flag(value, index, "all_frames", &filter->all_frames) != 0 ||
        get_number(value, index, "lineno", &filter->has_lineno, &filter->lineno) != 0 ||
        get_number(value, index, "domain", &has_domain, &filter->domain) != 0)
        return -1;
    filter->has_domain = has_domain;
    if (strcmp(json_object_get_string(type), "domain") == 0) {
        filter->type = TA_FILTER_DOMAIN;
        return has_domain ? 0 : ta__fail("filters[%zu]: \"domain\" is missing", index);
    }
    if (strcmp(json_object_get_string(type), "filter") != 0)
        return ta__fail("filters[%zu]: expected the type \"filter\" or \"domain\"", index);
    if (!json_object_object_get_ex(value, "filename_pattern", &pattern) ||
        !json_object_is_type(pattern, json_type_string))
        return ta__fail("filters[%zu].filename_pattern: expected a text", index);
    filter->type = TA_FILTER_FILENAME;
    filter->pattern = *names;
    filter->pattern_length = ta__json_bytes(pattern, *names);
    *names += filter->pattern_length + 1;
    return 0;
}

int ta_filters_from_json(const char *text, size_t length, struct ta_filter **filters, size_t *count)
{
    TA__OWN_DOMAIN;
    struct json_object *document = ta__json_parse(text, length);
    int status = document == NULL ? -1 : 0;
    if (status == 0 && !json_object_is_type(document, json_type_array))
        status = ta__fail("filters must be a list of filters");
    *filters = NULL;
    *count = 0;
    if (status == 0) {
        *count = json_object_array_length(document);
        *filters = ta__new_array(1, *count * sizeof **filters + length + 1);
        status = *filters == NULL ? -1 : 0;
    }
    char *names = status == 0 ? (char *)(*filters + *count) : NULL;
    for (size_t i = 0; status == 0 && i < *count; i++)
        status = get_filter(json_object_array_get_idx(document, i), i, &(*filters)[i], &names);
    json_object_put(document);
    if (status != 0) {
        free(*filters);
        *filters = NULL;
        *count = 0;
    }
    return status;
}
