/* series.h: a series under construction, as the files of this folder see it. */
#ifndef TA_ANALYSIS_GROWTH_SERIES_H
#define TA_ANALYSIS_GROWTH_SERIES_H

#include "analysis/growth/changes.h"
#include "analysis/growth/shape.h"
#include "analysis/ranking.h"

struct ta__series_value {
    uint64_t size, count, allocated_size, allocated_count;
};

struct ta__series_row {
    struct ta_frame frame; /* its key; texts in memory of its own */
    char *texts;
    int is_known;                    /* what a library keeps for itself, under a name */
    struct ta__series_value *values; /* by point */
    size_t capacity;
    struct ta_series_row told;
};

struct ta_series {
    enum ta__key key;
    struct ta_own_rules *rules; /* NULL = the usual ones */
    struct ta__changes changes;
    struct ta__series_row *rows;
    size_t row_count, row_capacity;
    uint32_t *slots; /* row + 1, by the hash of its frame */
    size_t slot_count;
};

/* ---- lives.c: how large the blocks of a leaf are and how long they live ---- */

struct ta__lives {
    const struct ta_series *series;
    struct ta__series_row *row;
    struct ta__birth {
        size_t point;
        uint64_t count;
    } * births; /* blocks that live, the youngest last */
    size_t birth_count, birth_capacity;
};

/* `is_known`: what was allocated up to now has been counted in an earlier segment. */
int ta__lives_add(struct ta__lives *lives, const struct ta__change *now, const struct ta__change *before, int is_known);
void ta__lives_forget(struct ta__lives *lives);
void ta__lives_end(struct ta__lives *lives);

/* ---- clock.c: what a row looks like, on a clock that stands still while the program does nothing ---- */

struct ta__clock {
    const struct ta_series *series;
    size_t first, count, active; /* points since the last restart; how many of them until the program fell idle */
    double *work, *idle_work, *seconds;
    uint64_t *sizes, *calls;
};
int ta__clock_open(struct ta__clock *clock, const struct ta_series *series);
void ta__clock_close(struct ta__clock *clock);
void ta__clock_name(struct ta__clock *clock, struct ta__series_row *row);

#endif
