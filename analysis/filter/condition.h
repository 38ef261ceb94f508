/* condition.h: a question about one trace, answered yes or no — what filters and the filter language compile to.
 *
 * A condition is a tree of and, or, not over leaves. A leaf about frames is answered once per context before the traces
 * are looked at; each trace then costs a few loads. */
#ifndef TA_ANALYSIS_FILTER_CONDITION_H
#define TA_ANALYSIS_FILTER_CONDITION_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/model.h"
#include "analysis/filter/pattern.h"

enum ta__condition_kind {
    TA__CONDITION_AND,
    TA__CONDITION_OR,
    TA__CONDITION_NOT, /* left only */
    TA__CONDITION_TRUE,
    TA__CONDITION_FRAME,  /* a frame whose `field` matches `pattern` and whose line is in [min, max] */
    TA__CONDITION_NUMBER, /* `field` in [min, max] */
    TA__CONDITION_DOMAIN_NAME,
    TA__CONDITION_OWN, /* the row of the key "own" is named by `pattern` */
};

enum ta__field {
    TA__FIELD_FILE,
    TA__FIELD_FUNCTION,
    TA__FIELD_MODULE,
    TA__FIELD_LINE, /* FRAME with the pattern "*" */
    TA__FIELD_DOMAIN,
    TA__FIELD_THREAD,
    TA__FIELD_SIZE,  /* bytes of one block */
    TA__FIELD_TOTAL, /* bytes of all blocks of the trace */
    TA__FIELD_COUNT,
    TA__FIELD_OWN,
    TA__FIELD_DEPTH, /* frames of the whole stack; the stored ones where it is not known */
};

struct ta__condition {
    enum ta__condition_kind kind;
    enum ta__field field;
    int any_frame;     /* FRAME: any stored frame, not only the most recent one */
    uint64_t min, max; /* NUMBER: of the field; FRAME: of the line */
    struct ta__pattern pattern;
    struct ta__condition *left, *right;
    unsigned char *answers; /* while prepared: by context, or by domain */
};

/* Each answers NULL with the error set when out of memory, or when given NULL: calls may be nested. They own what they
 * are given. */
struct ta__condition *ta__condition_true(void);
struct ta__condition *ta__condition_join(enum ta__condition_kind kind, struct ta__condition *left,
                                         struct ta__condition *right);
struct ta__condition *ta__condition_not(struct ta__condition *condition);
/* Any line; set min and max for a certain one. */
struct ta__condition *ta__condition_frame(enum ta__field field, const char *pattern, size_t length, int any_frame);
struct ta__condition *ta__condition_number(enum ta__field field, uint64_t min, uint64_t max);
struct ta__condition *ta__condition_domain_name(const char *pattern, size_t length);
struct ta__condition *ta__condition_own(const char *pattern, size_t length);
void ta__condition_free(struct ta__condition *condition);

int ta__condition_prepare(struct ta__condition *condition, const struct ta__model *model);
int ta__condition_holds(const struct ta__condition *condition, const struct ta__model *model,
                        const struct ta__view_trace *trace);
/* The same for one block of the trace, whose size is known. */
int ta__condition_holds_block(const struct ta__condition *condition, const struct ta__model *model,
                              const struct ta__view_trace *trace, uint64_t size);
/* Does it look at the sizes of blocks? */
int ta__condition_asks_size(const struct ta__condition *condition);

/* filter_language.c: the condition that an expression describes; NULL with the error (and its column) set. */
struct ta__condition *ta__condition_parse(const char *expression);

#endif
