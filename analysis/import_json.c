/* import_json.c: a snapshot from the interchange format, and filters from a specification.
 *
 * Errors name the place in the document: "traces[3].frames[0]: …". */
#include <stdlib.h>
#include <string.h>

#include "analysis/json.h"
#include "analysis/support.h"

#define SPLIT_MAX 65536 /* entries that one trace of more than 2^64 bytes may become */

struct import {
    struct ta_trace_data *traces;
    size_t trace_count, trace_capacity;
    struct ta_frame_data *frames;
    size_t frame_count, frame_capacity;
    char *names, *names_end; /* one piece for all names: never longer than the document */
    int oldest_first;
};

static struct json_object *member(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    return json_object_object_get_ex(object, key, &value) ? value : NULL;
}

/* An integer in [0, max]. */
static int get_unsigned(struct json_object *value, uint64_t max, uint64_t *number)
{
    if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
        return -1;
    *number = json_object_get_uint64(value);
    return *number <= max ? 0 : -1;
}

/* `*number` keeps its value when the member is missing. */
static int get_member(struct json_object *object, const char *where, size_t index, const char *key, uint64_t max,
                      uint64_t *number)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(object, key, &value) || get_unsigned(value, max, number) == 0)
        return 0;
    return ta__fail("%s[%zu].%s: expected an integer from 0 to %llu", where, index, key, (unsigned long long)max);
}

static int add_frame(struct import *import, struct json_object *frame, size_t trace, size_t index)
{
    struct json_object *file = NULL, *line = NULL;
    uint64_t number;
    if (json_object_is_type(frame, json_type_array) && json_object_array_length(frame) == 2) {
        file = json_object_array_get_idx(frame, 0);
        line = json_object_array_get_idx(frame, 1);
    }
    if (!json_object_is_type(file, json_type_string) || get_unsigned(line, UINT32_MAX, &number) != 0)
        return ta__fail("traces[%zu].frames[%zu]: expected [file name, line from 0 to 4294967295]", trace, index);
    size_t length = ta__json_bytes(file, import->names_end);
    import->frames[import->frame_count++] = (struct ta_frame_data){import->names_end, length, (uint32_t)number};
    import->names_end += length + 1;
    return 0;
}

static int add_frames(struct import *import, struct json_object *frames, size_t trace)
{
    size_t count = json_object_is_type(frames, json_type_array) ? json_object_array_length(frames) : 0;
    if (count == 0)
        return ta__fail("traces[%zu].frames: expected a list of at least one [file name, line]", trace);
    if (ta__grow(&import->frames, &import->frame_capacity, import->frame_count + count, sizeof *import->frames) != 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (add_frame(import, json_object_array_get_idx(frames, import->oldest_first ? count - 1 - i : i), trace, i) !=
            0)
            return -1;
    return 0;
}

/* One entry, or several when count times size is more than one entry can say. */
static int add_entries(struct import *import, struct ta_trace_data entry, uint64_t size, uint64_t count, size_t trace)
{
    uint64_t most = size == 0 ? UINT64_MAX : UINT64_MAX / size;
    if (count / most >= SPLIT_MAX)
        return ta__fail("traces[%zu]: size times count is too large", trace);
    while (count > 0) {
        if (ta__grow(&import->traces, &import->trace_capacity, import->trace_count + 1, sizeof *import->traces) != 0)
            return -1;
        entry.count = count < most ? count : most;
        entry.size = size * entry.count;
        import->traces[import->trace_count++] = entry;
        count -= entry.count;
    }
    return 0;
}

static int add_trace(struct import *import, struct json_object *trace, size_t index)
{
    uint64_t domain = 0, size = 0, count = 1, total;
    if (!json_object_is_type(trace, json_type_object))
        return ta__fail("traces[%zu]: expected an object", index);
    if (member(trace, "size") == NULL)
        return ta__fail("traces[%zu]: \"size\" is missing", index);
    size_t before = import->frame_count;
    if (get_member(trace, "traces", index, "domain", UINT32_MAX, &domain) != 0 ||
        get_member(trace, "traces", index, "size", UINT64_MAX, &size) != 0 ||
        get_member(trace, "traces", index, "count", UINT64_MAX, &count) != 0 ||
        add_frames(import, member(trace, "frames"), index) != 0)
        return -1;

    total = import->frame_count - before;
    struct json_object *total_nframe = NULL;
    int is_known = !json_object_object_get_ex(trace, "total_nframe", &total_nframe) || total_nframe != NULL;
    if (is_known && get_member(trace, "traces", index, "total_nframe", INT32_MAX - 1, &total) != 0)
        return -1;
    /* `frames` still moves as it grows: the number of the first one stands in until all are there. */
    struct ta_trace_data entry = {.domain = (uint32_t)domain,
                                  .total_nframe = is_known ? (int64_t)total : -1,
                                  .frames = (const struct ta_frame_data *)before,
                                  .nframe = import->frame_count - before};
    return add_entries(import, entry, size, count, index);
}

static int get_order(struct import *import, struct json_object *document)
{
    struct json_object *order = NULL;
    if (!json_object_object_get_ex(document, "frame_order", &order))
        return 0;
    const char *text = json_object_is_type(order, json_type_string) ? json_object_get_string(order) : "";
    import->oldest_first = strcmp(text, "oldest_first") == 0;
    return import->oldest_first || strcmp(text, "most_recent_first") == 0
               ? 0
               : ta__fail("frame_order: expected \"most_recent_first\" or \"oldest_first\"");
}

static int get_limit(const struct import *import, struct json_object *document, uint64_t *limit)
{
    struct json_object *value = NULL;
    *limit = 1;
    for (size_t i = 0; i < import->trace_count; i++)
        if (import->traces[i].nframe > *limit)
            *limit = import->traces[i].nframe;
    if (!json_object_object_get_ex(document, "traceback_limit", &value) || get_unsigned(value, INT32_MAX, limit) == 0)
        return 0;
    return ta__fail("traceback_limit: expected an integer from 0 to 2147483647");
}

static struct ta_snapshot *import_document(struct import *import, struct json_object *document)
{
    if (!json_object_is_type(document, json_type_object)) {
        ta__fail("expected an object with \"traces\"");
        return NULL;
    }
    struct json_object *traces = member(document, "traces");
    if (!json_object_is_type(traces, json_type_array)) {
        ta__fail("traces: expected a list");
        return NULL;
    }
    if (get_order(import, document) != 0)
        return NULL;
    for (size_t i = 0; i < json_object_array_length(traces); i++)
        if (add_trace(import, json_object_array_get_idx(traces, i), i) != 0)
            return NULL;

    uint64_t limit;
    if (get_limit(import, document, &limit) != 0)
        return NULL;
    for (size_t i = 0; i < import->trace_count; i++)
        import->traces[i].frames = import->frames + (uintptr_t)import->traces[i].frames;
    return ta_snapshot_from_traces(import->traces, import->trace_count, (uint32_t)limit);
}

struct ta_snapshot *ta_snapshot_import_json(const char *text, size_t length)
{
    TA__OWN_DOMAIN;
    struct import import = {0};
    struct ta_snapshot *snapshot = NULL;
    struct json_object *document = ta__json_parse(text, length);
    /* A name of n bytes takes at least n + 2 in the document, so names and their NULs fit into its length. Escapes that
     * json-c keeps as UTF-8 need no more while they are decoded. */
    if (document != NULL && ta__json_check_integers(text, length) == 0)
        import.names = ta__new_array(length + 1, 1);
    import.names_end = import.names;
    if (import.names != NULL)
        snapshot = import_document(&import, document);
    json_object_put(document);
    free(import.names);
    free(import.frames);
    free(import.traces);
    return snapshot;
}

/* ---- filters ---- */

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
