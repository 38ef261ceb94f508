/* own_keys.h: for each stack of a model the frame that is one's own, as a small number to group by.
 *
 * Between the rules and grouping. A key is a line, a function where there is no line, or a name for what libraries keep
 * for themselves. It is found once per context, from the outermost frame inwards, so that neither depth nor the number
 * of traces costs anything:
 *
 *     main.c:9 main ─► std::make_shared ─► operator new        own frame main.c:9, via std::make_shared */
#ifndef TA_ANALYSIS_OWN_OWN_KEYS_H
#define TA_ANALYSIS_OWN_OWN_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/growing_text.h"
#include "analysis/model.h"
#include "analysis/own/own_rules.h"

#define TA__NO_KEY UINT32_MAX

enum ta__own_kind {
    TA__OWN_LINE,     /* a = location of the model */
    TA__OWN_FUNCTION, /* a = name of the module, b = name of the function; 0 = none known */
    TA__OWN_KNOWN,    /* a = which of ta__own_known_name */
};

struct ta__own_key {
    enum ta__own_kind kind;
    uint32_t a, b;
    uint32_t logical; /* a frame of it */
};

/* What one context is grouped under. */
struct ta__own_choice {
    uint32_t key;
    uint32_t own; /* logical; 0 = no frame of the stack is one's own */
    uint32_t via; /* logical: what the own frame called, 0 = the allocator itself */
};

struct ta__own {
    uint32_t references;
    const struct ta__model *model;
    struct ta__own_key *keys;
    size_t key_count, key_capacity;
    struct ta__own_choice *contexts; /* by context */
    uint32_t *key_of_logical;        /* TA__NO_KEY: not one's own */
    unsigned char *classes;          /* by logical: enum ta__frame_class */
};

/* Tables of one or two models that agree on what is skipped: with the rules that the snapshots share, or with the usual
 * ones and the wrappers that are found in all of them. With `all_is_own` nothing is skipped, whatever the rules. 0, or -1 with the error set and nothing to release. */
int ta__own_build(const struct ta__model *const *models, size_t model_count, int all_is_own, struct ta__own *tables[2]);
/* Whether a frame is one's own and has a line. */
int ta__own_is_lined(const struct ta__own *own, uint32_t logical);
struct ta__own *ta__own_share(struct ta__own *own);
void ta__own_release(struct ta__own *own); /* NULL is allowed */

const char *ta__own_known_name(uint32_t which);
/* "FILE:LINE", "MODULE FUNCTION", or the name of what a library keeps: as in texts of statistics. */
void ta__own_add_label(struct ta__text *text, const struct ta__own *own, uint32_t key);
/* A key as one frame. */
struct ta_traceback ta__own_traceback(const struct ta__own *own, uint32_t key);

/* own_filter.c: for each context whether the pattern names its row; there is room for context 0. 0, or -1. */
int ta__own_answer(const struct ta__model *model, const struct ta__pattern *pattern, unsigned char *answers);

/* own_structure.c: adds to the rules the functions of the model that are allocators by how they are called. */
int ta__own_learn(struct ta_own_rules *rules, const struct ta__model *model);

#endif
