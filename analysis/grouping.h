/* grouping.h: traces become groups with sums — the step that statistics and differences share. */
#ifndef TA_ANALYSIS_GROUPING_H
#define TA_ANALYSIS_GROUPING_H

#include "analysis/ranking.h"
#include "analysis/growing_text.h"
#include "analysis/wide.h"

enum ta__value {
    TA__VALUE_SIZE,
    TA__VALUE_COUNT,
    TA__VALUE_ALLOCATED_SIZE,
    TA__VALUE_ALLOCATED_COUNT,
    TA__VALUE_PEAK_SIZE,
    TA__VALUES
};

struct ta__group {
    ta__wide sums[TA__VALUES];
    uint32_t rank;   /* of the key */
    uint32_t number; /* of the key in its model */
};

/* Which traces count: those with live blocks, or also those of which only the history is left. */
enum ta__traces { TA__TRACES_LIVE, TA__TRACES_ALL };

struct ta__groups {
    const struct ta__model *model;
    uint32_t trace_count; /* the first ones of the view */
    enum ta__key key;
    struct ta__group *items;
    size_t count, capacity;
    uint32_t *by_rank;                  /* group + 1, 0 = none */
    struct ta__own *own;                /* key OWN: whose frames they are */
    uint32_t *group_of_trace;           /* NULL when cumulative: a trace is then in many */
    uint32_t *first_trace, *next_trace; /* trace + 1, 0 = the end; row_members.c makes them when it is asked */
};

/* How frames that are further out count. */
enum ta__cumulative {
    TA__NOT_CUMULATIVE,
    TA__CUMULATIVE,      /* as tracemalloc: a frame that occurs twice adds its trace twice */
    TA__CUMULATIVE_ONCE, /* a trace is once in each of its groups */
};

/* Checks both as tracemalloc does: -1 with the error set. */
int ta__key_parse(const char *key_type, int cumulative, enum ta__key *key);

/* `which` = the model's place in the ranking. */
int ta__groups_build(struct ta__groups *groups, const struct ta__model *model, const struct ta__ranking *ranking,
                     size_t which, int cumulative, enum ta__traces traces);
void ta__groups_free(struct ta__groups *groups);

struct ta_traceback ta__group_traceback(const struct ta__groups *groups, const struct ta__group *group);
/* What the texts begin with: FILE:LINE of the oldest frame, or the name alone for the keys beyond tracemalloc's. */
void ta__group_add_label(struct ta__text *text, const struct ta__groups *groups, const struct ta__group *group);

#endif
