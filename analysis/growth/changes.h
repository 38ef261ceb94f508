/* changes.h: what the counters of each leaf became at each point of a recording's time. Between the reader, which tells
 * what each entry changed (snapshot/read/follow.h), and whoever adds it up: the courses of series.c, and reports.
 *
 * Changes are kept as they come, so what does not change takes no memory. When a segment ends, its last snapshot says
 * which stacks the leaves were, and the changes are read leaf by leaf, as steps from one state to the next. */
#ifndef TA_ANALYSIS_GROWTH_CHANGES_H
#define TA_ANALYSIS_GROWTH_CHANGES_H

#include "snapshot/read/follow.h"
#include "tracealloc/analysis.h"

/* The state of a leaf from a point on. */
struct ta__change {
    uint32_t leaf, point;
    uint64_t size, count, allocated_bytes, allocated_blocks;
};

/* A segment has ended; as in struct ta__follower. */
typedef int ta__segment_end(void *user, struct ta_snapshot *snapshot, const uint32_t *traces, size_t leaf_count);

/* Begins zeroed. */
struct ta__changes {
    struct ta_series_entry *points; /* of all segments so far; reasons are the array's own */
    size_t point_count, point_capacity;
    size_t entries_per_point, highest; /* the entry in which most was live: it ends its point */
    uint64_t epoch;
    ta__segment_end *end;
    void *user;

    /* Of the present segment. */
    struct ta__change *items;
    size_t count, capacity, first_point;
    uint32_t *last_of_leaf; /* item + 1 */
    size_t leaf_capacity;
};

/* Follows a recording. Of more entries than `points_max` neighbours share a point: the last one's values stay. 0, or -1
 * with the error set. */
int ta__changes_follow(struct ta__changes *changes, const char *path, size_t points_max, ta__segment_end *end,
                       void *user);
void ta__changes_free(struct ta__changes *changes);

/* One step of a leaf. Totals may only fall where it forgets. */
struct ta__step {
    const struct ta__change *now, *before;
    size_t point;
    uint32_t leaf;
    int is_first; /* of its leaf */
    int forgets;  /* the traces were cleared: `now` is nothing */
    int is_known; /* the first state in a segment that goes on from another: counted there already */
};
struct ta__step_reader {
    int (*step)(void *user, const struct ta__step *step); /* 0, or -1 with the error set, which ends it */
    void (*end_leaf)(void *user, uint32_t leaf);          /* may be NULL */
};
/* Within `end`: the steps of the segment, leaf by leaf, in the order of points. */
int ta__changes_steps(const struct ta__changes *changes, const struct ta__step_reader *reader, void *user);

#endif
