/* own_rules.h: whose code a frame is — patterns that are built in, patterns of the user, and wrappers of malloc that were
 * found by how they are called. Between the model's names and the choice of the own frame of each stack.
 *
 * Rules never look at stacks: each name is judged once, so that their number costs nothing per trace. */
#ifndef TA_ANALYSIS_OWN_OWN_RULES_H
#define TA_ANALYSIS_OWN_OWN_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/filter/pattern.h"
#include "analysis/model.h"

/* What a rule may be about; ANY: a function, a file or a module of that name. */
enum ta__rule_field { TA__RULE_ANY, TA__RULE_FUNCTION, TA__RULE_FILE, TA__RULE_MODULE };

struct ta__own_rule {
    enum ta__rule_field field;
    int is_own;    /* else to be skipped */
    char *literal; /* what the pattern begins with */
    size_t literal_length;
    struct ta__pattern pattern;
};

struct ta_own_rules {
    uint32_t references;
    struct ta__own_rule *items; /* of two that match the later one decides */
    size_t count, capacity;
    char **wrappers; /* functions found by structure, their plain names, sorted */
    size_t wrapper_count, wrapper_capacity;
    int has_learned;
};

struct ta_own_rules *ta__own_rules_share(struct ta_own_rules *rules);
/* Rules with the same patterns, and no wrappers. NULL = the built-in ones alone. */
struct ta_own_rules *ta__own_rules_copy(const struct ta_own_rules *rules);
/* 0, or -1 without memory; a wrapper that is known already is no error. */
int ta__own_rules_add_wrapper(struct ta_own_rules *rules, const char *function);

enum ta__frame_class {
    TA__FRAME_SKIPPED,
    TA__FRAME_LIBRARY, /* a shared library of the system: own only where nothing better is known */
    TA__FRAME_OWN,
};

/* The answers for one model; every name is judged when it first occurs. */
struct ta__own_judge;
struct ta__own_judge *ta__own_judge_new(const struct ta__model *model, const struct ta_own_rules *rules);
void ta__own_judge_free(struct ta__own_judge *judge);
enum ta__frame_class ta__own_judge_frame(struct ta__own_judge *judge, const struct ta__logical *logical);
/* Whether the user's rules name this frame as own. */
int ta__own_judge_insists(struct ta__own_judge *judge, const struct ta__logical *logical);
/* What starts programs and threads, which is nobody's call. */
int ta__own_judge_is_start(struct ta__own_judge *judge, const struct ta__logical *logical);

/* The same by the name alone, as the symbols have it. */
int ta__is_start_function(const char *function);
/* Whether a function has the usual name of an allocator. */
int ta__is_allocator(const char *function);

/* The last component of a path. */
const char *ta__base_name(const struct ta__name *name);

#endif
