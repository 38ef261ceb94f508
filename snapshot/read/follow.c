/* follow.c: see follow.h. */
#include "snapshot/read/follow.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "snapshot/read/read.h"
#include "snapshot/read/sections.h"

struct follow {
    const char *path;
    const struct ta__follower *follower;
    void *user;
    struct ta__input input;
    struct ta__entry_list list;
    struct ta__problem problem;
};

static const struct ta__entry_place *places(const struct follow *follow)
{
    return TA__ROWS(const struct ta__entry_place, follow->list.entries);
}

static int no_memory(void)
{
    return ta__error_set("no memory to follow the recording", NULL);
}

/* Metadata stay where they are when an entry has none. */
static uint64_t resident_of(const struct ta__decoder *decoder)
{
    const struct ta__buffer *metadata = &decoder->tables->metadata;
    const struct ta__view_pair *pairs = TA__ROWS(const struct ta__view_pair, *metadata);
    if ((decoder->seen >> TA__KIND_METADATA & 1) == 0)
        return 0;
    for (uint32_t i = 0; i < TA__ROW_COUNT(struct ta__view_pair, *metadata); i++)
        if (strcmp(ta__decoder_string(decoder, pairs[i].key), "memory.resident") == 0)
            return strtoull(ta__decoder_string(decoder, pairs[i].value), NULL, 10);
    return 0;
}

static int tell_entry(struct follow *follow, struct ta__decoder *decoder, size_t index, struct ta__buffer *changed)
{
    const struct ta__decoded_counts *counts = TA__ROWS(const struct ta__decoded_counts, decoder->counts);
    const struct ta__decoded_leaf *leaves = TA__ROWS(const struct ta__decoded_leaf, decoder->leaves);
    const uint32_t *touched = TA__ROWS(const uint32_t, *decoder->touched);
    uint32_t count = TA__ROW_COUNT(uint32_t, *decoder->touched);
    changed->length = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct ta__decoded_counts *row = &counts[touched[i]];
        int64_t blocks = (int64_t)(row->allocated_blocks - row->freed_blocks);
        int64_t bytes = (int64_t)(row->allocated_bytes - row->freed_bytes);
        struct ta__leaf_state state = {.leaf = touched[i],
                                       .size = blocks > 0 && bytes > 0 ? (uint64_t)bytes : 0,
                                       .count = blocks > 0 ? (uint64_t)blocks : 0,
                                       .allocated_bytes = row->allocated_bytes,
                                       .allocated_blocks = row->allocated_blocks};
        if ((leaves[touched[i]].flags & TA__FILE_LEAF_UNTRACED) == 0 &&
            ta__buffer_put(changed, &state, sizeof state) != 0)
            return no_memory();
    }
    const struct ta__followed_entry entry = {.time_ns = decoder->fields[TA__FIELD_TIME_NS],
                                             .epoch = decoder->fields[TA__FIELD_EPOCH],
                                             .restarts = decoder->fields[TA__FIELD_COUNTERS_RESTART] != 0,
                                             .resident = resident_of(decoder),
                                             .reason = ta__decoder_string(decoder, decoder->fields[TA__FIELD_REASON])};
    return follow->follower->entry(follow->user, index, &entry, TA__ROWS(const struct ta__leaf_state, *changed),
                                   TA__ROW_COUNT(struct ta__leaf_state, *changed));
}

/* The traces stand in the order of their leaves, the live ones before the others. */
static int map_leaves(const struct ta__decoder *decoder, struct ta__buffer *map)
{
    uint32_t leaves = TA__ROW_COUNT(struct ta__decoded_leaf, decoder->leaves), next = 0;
    if (ta__buffer_reserve(map, leaves * sizeof(uint32_t)) != 0)
        return no_memory();
    map->length = leaves * sizeof(uint32_t);
    uint32_t *traces = TA__ROWS(uint32_t, *map);
    if (leaves > 0)
        memset(traces, 0xFF, map->length);
    for (int gone = 0; gone <= 1; gone++)
        for (uint32_t id = 0; id < leaves; id++) {
            struct ta__view_trace trace;
            if (ta__decoder_trace(decoder, id, &trace) && (trace.count == 0) == gone)
                traces[id] = next++;
        }
    return 0;
}

static int tell_end(struct follow *follow, struct ta__decoder *decoder, size_t last)
{
    struct ta__buffer map = {0};
    struct ta__loaded *loaded = NULL;
    int status = map_leaves(decoder, &map);
    if (status == 0) {
        loaded = ta__decoder_finish(decoder);
        status = loaded == NULL ? ta__problem_to_error(&decoder->problem, follow->path) : 0;
    }
    struct ta_snapshot *snapshot = loaded == NULL ? NULL : ta__snapshot_adopt(loaded, (uint32_t)last);
    if (snapshot != NULL)
        status =
            follow->follower->end(follow->user, snapshot, TA__ROWS(const uint32_t, map), TA__ROW_COUNT(uint32_t, map));
    ta__buffer_free(&map);
    return loaded != NULL && snapshot == NULL ? -1 : status;
}

/* Entries first … last - 1. What cannot be decoded ends it: `*whole` is then the entry that is damaged. */
static int follow_segment(struct follow *follow, size_t first, size_t last, size_t *whole)
{
    struct ta__decoder decoder;
    struct ta__buffer changed = {0}, touched = {0};
    int status = ta__decoder_open(&decoder, &follow->input, ta__snapshot_load_limit());
    *whole = last;
    if (status != 0)
        ta__problem_to_error(&decoder.problem, follow->path);
    else
        status = follow->follower->begin(follow->user, first);
    decoder.touched = &touched;
    for (size_t i = first; i < last && status == 0; i++) {
        touched.length = 0;
        decoder.raw_total = 0; /* the bound is meant for one load */
        status = ta__decoder_entry(&decoder, &places(follow)[i]);
        if (status != 0) {
            follow->problem = decoder.problem;
            *whole = i;
        } else {
            status = tell_entry(follow, &decoder, i, &changed);
        }
    }
    if (status == 0)
        status = tell_end(follow, &decoder, last - 1);
    ta__decoder_close(&decoder);
    ta__buffer_free(&changed);
    ta__buffer_free(&touched);
    return status;
}

static int follow_all(struct follow *follow)
{
    size_t count = TA__ROW_COUNT(struct ta__entry_place, follow->list.entries), whole;
    if (count == 0)
        return ta__error_set("the recording holds no whole entry", NULL);
    for (size_t first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count && !places(follow)[last].reset; last++)
            continue;
        if (follow_segment(follow, first, last, &whole) == 0)
            continue;
        if (whole == last)
            return -1;
        /* A file that was not closed may be damaged in what was not yet synced: what is whole counts. */
        if (follow->list.closed || whole == 0)
            return ta__problem_to_error(&follow->problem, follow->path);
        return whole > first ? follow_segment(follow, first, whole, &whole) : 0;
    }
    return 0;
}

int ta__recording_follow(const char *path, const struct ta__follower *follower, void *user)
{
    struct follow follow = {.path = path, .follower = follower, .user = user};
    if (ta__input_open(&follow.input, path) != 0)
        return -1;
    int status = ta__entry_list_read(&follow.list, &follow.input, NULL, &follow.problem);
    if (status != 0)
        ta__problem_to_error(&follow.problem, path);
    else
        status = follow_all(&follow);
    ta__buffer_free(&follow.list.entries);
    ta__input_close(&follow.input);
    return status;
}
