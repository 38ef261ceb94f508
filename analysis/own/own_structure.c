/* own_structure.c: which functions are allocators, whatever they are called.
 *
 * A function through which many callers allocate and below which there is nearly never another function of the program
 * hands out memory, it does not want it: nine tenths of all its appearances are innermost, and twelve or more different
 * functions call it. So does a function that has a helper of its own for it, as a pool has one that gets the next chunk:
 * nine tenths of its appearances are innermost but for a helper that hardly anybody else calls, and that gets blocks of
 * several sizes or large ones: a constructor of small things that a container calls wants them. And so does what only
 * allocators of known names call. Appearances are counted
 * over distinct stacks, not over blocks, so that no single leak decides; instances of a template are one function. */
#include <stdlib.h>
#include <string.h>

#include "analysis/own/own_keys.h"
#include "analysis/own/same_names.h"
#include "analysis/support.h"

#define CALLERS      12
#define NO_CANDIDATE UINT32_MAX
#define APPEARANCES  12 /* fewer stacks cannot have so many callers */
#define SIZES        3
#define CHUNK        2048

struct function {
    uint64_t appearances, innermost;
    uint64_t above;        /* appearances right above the innermost function */
    uint32_t caller;       /* of the innermost appearances, if one function has more than half of them */
    uint64_t by_caller;    /* how many it has */
    uint64_t sizes[SIZES]; /* different ones of its blocks, in the mean of a stack; 0 = not so many */
    uint32_t candidate;    /* NO_CANDIDATE, or its callers' place */
    uint32_t is_inside;    /* only allocators call it */
};

struct callers {
    uint32_t names[CALLERS];
    uint32_t count;
};

struct structure {
    const struct ta__model *model;
    struct ta__own_judge *judge;
    struct ta__same_names names;
    struct function *functions; /* by row of `names` */
    uint32_t *leaves;           /* by context: distinct stacks at it and below it */
    uint32_t *innermost;        /* by context: the innermost function that is not skipped, 0 = none */
    uint32_t *above;            /* by context: the next other one outwards */
    unsigned char *is_stack;    /* by context: stacks end here */
    unsigned char *has_child;   /* by context */
    struct callers *callers;
    size_t caller_count, caller_capacity;
};

static uint32_t row_of(const struct structure *structure, uint32_t logical)
{
    return structure->names.rows[structure->model->logicals[logical].function];
}

static uint32_t candidate_function(struct structure *structure, uint32_t logical)
{
    const struct ta__logical *frame = &structure->model->logicals[logical];
    if (frame->function == 0 || ta__own_judge_frame(structure->judge, frame) == TA__FRAME_SKIPPED)
        return 0;
    return structure->names.rows[frame->function];
}

/* By majority vote: the caller that is left is the one with more than half, if there is one. */
static void note_innermost(struct structure *structure, uint32_t context)
{
    struct function *function = &structure->functions[structure->innermost[context]];
    uint32_t above = structure->above[context];
    function->innermost++;
    structure->functions[above].above++;
    if (function->by_caller == 0)
        function->caller = above;
    function->by_caller = function->caller == above ? function->by_caller + 1 : function->by_caller - 1;
}

static void note_size(struct function *function, uint64_t size)
{
    for (size_t i = 0; i < SIZES; i++) {
        if (function->sizes[i] == size)
            return;
        if (function->sizes[i] == 0) {
            function->sizes[i] = size;
            return;
        }
    }
}

static void note_sizes(struct structure *structure)
{
    const struct ta__view *view = structure->model->view;
    size_t traces = (size_t)view->trace_count + view->gone_trace_count;
    for (size_t i = 0; i < traces; i++) {
        const struct ta__view_trace *trace = &view->traces[i];
        uint64_t blocks = trace->allocated_blocks > 0 ? trace->allocated_blocks : trace->count;
        uint64_t bytes = trace->allocated_blocks > 0 ? trace->allocated_bytes : trace->size;
        if (blocks > 0 && bytes / blocks > 0)
            note_size(&structure->functions[structure->innermost[trace->context]], bytes / blocks);
    }
}

/* What the vote left is counted. */
static void count_main_callers(struct structure *structure)
{
    for (size_t name = 0; name < structure->names.count; name++)
        structure->functions[name].by_caller = 0;
    for (uint32_t context = 1; context < structure->model->view->context_count; context++) {
        struct function *function = &structure->functions[structure->innermost[context]];
        if (structure->is_stack[context] && structure->innermost[context] != 0 &&
            function->caller == structure->above[context])
            function->by_caller++;
    }
}

/* Children come after their parents: one pass inwards finds the innermost functions, one outwards adds up. */
static void count(struct structure *structure)
{
    const struct ta__model *model = structure->model;
    const struct ta__view *view = model->view;
    size_t traces = (size_t)view->trace_count + view->gone_trace_count;
    for (size_t i = 0; i < traces; i++)
        structure->is_stack[view->traces[i].context] = 1;
    for (uint32_t context = view->context_count; context-- > 1;) { /* filters take traces away, not contexts */
        structure->is_stack[context] |= !structure->has_child[context];
        structure->has_child[view->contexts[context].parent] = 1;
    }
    for (uint32_t context = 1; context < view->context_count; context++) {
        struct ta__logical_range range = ta__model_range(model, context);
        uint32_t parent = view->contexts[context].parent, found = 0;
        structure->innermost[context] = parent != 0 ? structure->innermost[parent] : 0;
        structure->above[context] = parent != 0 ? structure->above[parent] : 0;
        for (uint32_t i = range.count; i-- > 0;) {
            found = candidate_function(structure, range.first + i);
            if (found == 0 || found == structure->innermost[context])
                continue;
            structure->above[context] = structure->innermost[context];
            structure->innermost[context] = found;
        }
        if (structure->is_stack[context] && structure->innermost[context] != 0)
            note_innermost(structure, context);
    }
    for (uint32_t context = view->context_count; context-- > 1;) {
        struct ta__logical_range range = ta__model_range(model, context);
        structure->leaves[context] += structure->is_stack[context];
        structure->leaves[view->contexts[context].parent] += structure->leaves[context];
        for (uint32_t i = 0; i < range.count; i++)
            structure->functions[row_of(structure, range.first + i)].appearances += structure->leaves[context];
    }
}

static int find_candidates(struct structure *structure)
{
    for (uint32_t name = 1; name < structure->names.count; name++) {
        struct function *function = &structure->functions[name];
        function->candidate = NO_CANDIDATE;
        if (function->appearances == 0 || (function->innermost + function->above) * 10 < function->appearances * 9 ||
            strcmp(structure->names.plain[name], "main") == 0)
            continue;
        if (ta__grow(&structure->callers, &structure->caller_capacity, structure->caller_count + 1,
                     sizeof *structure->callers) != 0)
            return -1;
        function->candidate = (uint32_t)structure->caller_count;
        structure->callers[structure->caller_count++] = (struct callers){.count = 0};
    }
    structure->functions[0].candidate = NO_CANDIDATE;
    return 0;
}

static void note_caller(struct structure *structure, uint32_t function, uint32_t caller)
{
    uint32_t candidate = structure->functions[function].candidate;
    if (candidate == NO_CANDIDATE || caller == function)
        return;
    struct callers *callers = &structure->callers[candidate];
    for (uint32_t i = 0; i < callers->count; i++)
        if (callers->names[i] == caller)
            return;
    if (callers->count < CALLERS)
        callers->names[callers->count++] = caller;
}

static void note_callers(struct structure *structure)
{
    const struct ta__model *model = structure->model;
    const struct ta__view *view = model->view;
    for (uint32_t context = 1; context < view->context_count; context++) {
        struct ta__logical_range range = ta__model_range(model, context);
        uint32_t parent = view->contexts[context].parent;
        if (structure->leaves[context] == 0)
            continue;
        for (uint32_t i = 0; i < range.count; i++) {
            uint32_t function = row_of(structure, range.first + i);
            if (i + 1 < range.count)
                note_caller(structure, function, row_of(structure, range.first + i + 1));
            else if (parent != 0)
                note_caller(structure, function, row_of(structure, ta__model_range(model, parent).first));
        }
    }
}

static int is_innermost(const struct function *function)
{
    return function->innermost * 10 >= function->appearances * 9;
}

static int has_many_callers(const struct structure *structure, const struct function *function)
{
    return function->candidate != NO_CANDIDATE && structure->callers[function->candidate].count == CALLERS;
}

/* Whether it is a helper of an allocator: called by that and hardly by anybody else. */
static int is_helper(const struct structure *structure, const struct function *function)
{
    return function->candidate != NO_CANDIDATE && function->appearances >= APPEARANCES && is_innermost(function) &&
           function->caller != 0 && function->by_caller * 10 >= function->innermost * 9 &&
           (function->sizes[SIZES - 1] != 0 || function->sizes[0] >= CHUNK) &&
           has_many_callers(structure, &structure->functions[function->caller]);
}

/* Whether none but allocators call it, or what they call. */
static int is_inside(const struct structure *structure, const struct function *function)
{
    if (function->candidate == NO_CANDIDATE)
        return 0;
    const struct callers *callers = &structure->callers[function->candidate];
    uint32_t at = 0;
    while (at < callers->count && (structure->functions[callers->names[at]].is_inside ||
                                   ta__is_allocator(structure->names.plain[callers->names[at]])))
        at++;
    return at > 0 && at == callers->count && at < CALLERS;
}

static void find_inside(struct structure *structure)
{
    for (int has_found = 1; has_found;) {
        has_found = 0;
        for (uint32_t name = 1; name < structure->names.count; name++) {
            struct function *function = &structure->functions[name];
            if (function->is_inside || !is_inside(structure, function))
                continue;
            function->is_inside = 1;
            has_found = 1;
        }
    }
}

static int add_wrapper(const struct structure *structure, struct ta_own_rules *rules, uint32_t name)
{
    return ta__own_rules_add_wrapper(rules, structure->names.plain[name]);
}

static int add_wrappers(const struct structure *structure, struct ta_own_rules *rules)
{
    for (uint32_t name = 1; name < structure->names.count; name++) {
        const struct function *function = &structure->functions[name];
        int is_wrapper = function->is_inside || (has_many_callers(structure, function) && is_innermost(function));
        if (is_wrapper && add_wrapper(structure, rules, name) != 0)
            return -1;
        if (is_helper(structure, function) &&
            (add_wrapper(structure, rules, name) != 0 || add_wrapper(structure, rules, function->caller) != 0))
            return -1;
    }
    return 0;
}

int ta__own_learn(struct ta_own_rules *rules, const struct ta__model *model)
{
    size_t contexts = (size_t)model->view->context_count + 1;
    struct ta_own_rules *patterns = ta__own_rules_copy(rules); /* what was found elsewhere must not decide here */
    struct ta__same_names names;
    if (patterns == NULL || ta__same_names_open(&names, model) != 0) {
        ta_own_rules_free(patterns);
        return -1;
    }
    struct structure structure = {
        .names = names,
        .model = model,
        .judge = ta__own_judge_new(model, patterns),
        .functions = ta__new_array(names.count, sizeof *structure.functions),
        .leaves = ta__new_array(contexts, sizeof *structure.leaves),
        .innermost = ta__new_array(contexts, sizeof *structure.innermost),
        .above = ta__new_array(contexts, sizeof *structure.above),
        .is_stack = ta__new_array(contexts, 1),
        .has_child = ta__new_array(contexts, 1),
    };
    int status = -1;
    if (structure.judge != NULL && structure.functions != NULL && structure.leaves != NULL &&
        structure.innermost != NULL && structure.above != NULL && structure.is_stack != NULL &&
        structure.has_child != NULL) {
        count(&structure);
        count_main_callers(&structure);
        note_sizes(&structure);
        status = find_candidates(&structure);
        if (status == 0) {
            note_callers(&structure);
            find_inside(&structure);
            status = add_wrappers(&structure, rules);
        }
    }
    rules->has_learned = 1;
    ta__own_judge_free(structure.judge); /* before its rules */
    free(structure.functions);
    free(structure.leaves);
    free(structure.innermost);
    free(structure.above);
    free(structure.is_stack);
    free(structure.has_child);
    ta_own_rules_free(patterns);
    free(structure.callers);
    ta__same_names_close(&structure.names);
    return status;
}
