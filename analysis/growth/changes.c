/* changes.c: see changes.h. */
#include "analysis/growth/changes.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/number_sort.h"

/* ---- points and changes, while the recording is followed ---- */

static struct ta_series_entry *last_point(struct ta__changes *changes)
{
    return &changes->points[changes->point_count - 1];
}

static int begin(void *user, size_t first_entry)
{
    struct ta__changes *changes = user;
    while (changes->point_count > 0 && last_point(changes)->index >= first_entry) /* of a segment that begins anew */
        free((char *)(uintptr_t)changes->points[--changes->point_count].reason);
    changes->first_point = changes->point_count;
    changes->count = 0;
    if (changes->leaf_capacity > 0)
        memset(changes->last_of_leaf, 0, changes->leaf_capacity * sizeof *changes->last_of_leaf);
    return 0;
}

/* The point that an entry belongs to. A segment's first entry restarts every counter, and is a clearing of the traces only
 * where the epoch says so. */
static int choose_point(struct ta__changes *changes, size_t index, const struct ta__followed_entry *entry)
{
    size_t each = changes->entries_per_point;
    int is_first = changes->point_count == changes->first_point;
    int restarts = changes->point_count > 0 && ((entry->restarts && !is_first) || entry->epoch != changes->epoch);
    changes->epoch = entry->epoch;
    if (is_first || restarts || index / each != last_point(changes)->index / each ||
        last_point(changes)->index == changes->highest) {
        if (ta__grow(&changes->points, &changes->point_capacity, changes->point_count + 1, sizeof *changes->points) !=
            0)
            return -1;
        changes->points[changes->point_count++] = (struct ta_series_entry){.restarts = restarts};
    }
    struct ta_series_entry *point = last_point(changes);
    char *reason = strdup(entry->reason);
    if (reason == NULL)
        return ta__fail_memory();
    free((char *)(uintptr_t)point->reason);
    point->reason = reason;
    point->index = index;
    point->time_ns = entry->time_ns;
    point->resident = entry->resident > 0 ? entry->resident : point->resident;
    return 0;
}

static int reserve_leaf(struct ta__changes *changes, uint32_t leaf)
{
    size_t had = changes->leaf_capacity;
    if (ta__grow(&changes->last_of_leaf, &changes->leaf_capacity, (size_t)leaf + 1, sizeof *changes->last_of_leaf) != 0)
        return -1;
    memset(changes->last_of_leaf + had, 0, (changes->leaf_capacity - had) * sizeof *changes->last_of_leaf);
    return 0;
}

static int add_change(struct ta__changes *changes, const struct ta__change *state)
{
    if (reserve_leaf(changes, state->leaf) != 0)
        return -1;
    uint32_t last = changes->last_of_leaf[state->leaf];
    if (last == 0 || changes->items[last - 1].point != state->point) {
        if (ta__grow(&changes->items, &changes->capacity, changes->count + 1, sizeof *changes->items) != 0)
            return -1;
        last = changes->last_of_leaf[state->leaf] = (uint32_t)++changes->count;
    }
    changes->items[last - 1] = *state;
    return 0;
}

static int take_entry(void *user, size_t index, const struct ta__followed_entry *entry,
                      const struct ta__leaf_state *changed, size_t count)
{
    struct ta__changes *changes = user;
    if (choose_point(changes, index, entry) != 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct ta__leaf_state *leaf = &changed[i];
        const struct ta__change state = {leaf->leaf,
                                         (uint32_t)(changes->point_count - 1),
                                         leaf->size,
                                         leaf->count,
                                         leaf->allocated_bytes,
                                         leaf->allocated_blocks};
        if (add_change(changes, &state) != 0)
            return -1;
    }
    return 0;
}

static int end(void *user, struct ta_snapshot *snapshot, const uint32_t *traces, size_t leaf_count)
{
    struct ta__changes *changes = user;
    return changes->end(changes->user, snapshot, traces, leaf_count);
}

static size_t find_highest(struct ta_recording *recording)
{
    struct ta_entry_info info;
    uint64_t most = 0;
    size_t highest = SIZE_MAX;
    for (size_t i = 0; i < ta_recording_entry_count(recording); i++)
        if (ta_recording_entry(recording, i, &info) == 0 && info.current_bytes > most) {
            most = info.current_bytes;
            highest = i;
        }
    return highest;
}

int ta__changes_follow(struct ta__changes *changes, const char *path, size_t points_max, ta__segment_end *segment_end,
                       void *user)
{
    static const struct ta__follower follower = {begin, take_entry, end};
    struct ta_recording *recording = ta_recording_open(path);
    if (recording == NULL)
        return -1;
    changes->entries_per_point = ta_recording_entry_count(recording) / points_max + 1;
    changes->highest = find_highest(recording);
    changes->end = segment_end;
    changes->user = user;
    ta_recording_close(recording);
    return ta__recording_follow(path, &follower, changes);
}

void ta__changes_free(struct ta__changes *changes)
{
    for (size_t i = 0; i < changes->point_count; i++)
        free((char *)(uintptr_t)changes->points[i].reason);
    free(changes->points);
    free(changes->items);
    free(changes->last_of_leaf);
    *changes = (struct ta__changes){0};
}

/* ---- steps ---- */

static const struct ta__change nothing;

/* A leaf on its way through time. */
struct walk {
    const struct ta__changes *changes;
    const struct ta__step_reader *reader;
    void *user;
    struct ta__step step;
};

static int take_step(struct walk *walk, const struct ta__change *now, size_t point)
{
    walk->step.now = now;
    walk->step.point = point;
    walk->step.forgets = now == &nothing;
    if (walk->reader->step(walk->user, &walk->step) != 0)
        return -1;
    walk->step.is_first = 0;
    walk->step.is_known = 0;
    walk->step.before = now;
    return 0;
}

/* All it had is forgotten where the traces were cleared, up to the point `last`. */
static int forget(struct walk *walk, size_t last)
{
    size_t restart = walk->step.before->point;
    if (walk->step.before == &nothing)
        return 0;
    while (++restart < walk->changes->point_count && !walk->changes->points[restart].restarts)
        continue;
    return restart <= last && restart < walk->changes->point_count ? take_step(walk, &nothing, restart) : 0;
}

static int walk_leaf(struct walk *walk, const struct ta__numbered *items, size_t count)
{
    const struct ta__changes *changes = walk->changes;
    int goes_on = changes->first_point > 0 && !changes->points[changes->first_point].restarts, status = 0;
    walk->step = (struct ta__step){.before = &nothing, .leaf = (uint32_t)items[0].value, .is_first = 1};
    for (size_t i = 0; i < count && status == 0; i++) {
        const struct ta__change *now = &changes->items[items[i].number];
        status = forget(walk, now->point);
        walk->step.is_known = goes_on && now->point == changes->first_point;
        if (status == 0)
            status = take_step(walk, now, now->point);
    }
    if (status == 0)
        status = forget(walk, SIZE_MAX);
    if (walk->reader->end_leaf != NULL)
        walk->reader->end_leaf(walk->user, (uint32_t)items[0].value);
    return status;
}

int ta__changes_steps(const struct ta__changes *changes, const struct ta__step_reader *reader, void *user)
{
    struct walk walk = {.changes = changes, .reader = reader, .user = user};
    struct ta__numbered *items = ta__new_array(changes->count, sizeof *items);
    if (items == NULL)
        return -1;
    for (size_t i = 0; i < changes->count; i++)
        items[i] = (struct ta__numbered){changes->items[i].leaf, 0, (uint32_t)i};
    int status = ta__sort_numbered(items, changes->count);
    for (size_t i = 0, next; i < changes->count && status == 0; i = next) {
        for (next = i + 1; next < changes->count && items[next].value == items[i].value; next++)
            continue;
        status = walk_leaf(&walk, items + i, next - i);
    }
    free(items);
    return status;
}
