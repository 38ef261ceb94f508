/* own_keys.c: see own_keys.h. */
#include "analysis/own/own_keys.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/support.h"
#include "base/atomics.h"
#include "base/hash.h"

#define POOLS_MAX 8

enum known { STDIO_BUFFERS, EMERGENCY_POOL };

const char *ta__own_known_name(uint32_t which)
{
    static const char *const names[] = {
        [STDIO_BUFFERS] = "stdio's buffers", [EMERGENCY_POOL] = "libstdc++'s emergency pool"};
    return names[which];
}

/* What is known on the way inwards. */
struct state {
    uint32_t lined;    /* the innermost own frame with a line */
    uint32_t chosen;   /* the frame that the stack is grouped under, if it ended here */
    uint32_t via;      /* what `chosen` called */
    uint32_t fallback; /* where nothing is one's own: the outermost call that does not just start something */
};

struct builder {
    struct ta__own *own;
    const struct ta__model *model;
    struct ta__own_judge *judge; /* NULL = nothing is skipped */
    struct state *states;        /* by context */
    uint32_t pools[POOLS_MAX];   /* contexts that asked once in all for as much as an emergency pool has */
    size_t pool_count;
    uint32_t *slots; /* key + 1, 0 = free */
    size_t mask;
};

static uint32_t line_of(const struct ta__model *model, uint32_t logical)
{
    return model->locations[model->logicals[logical].location].line;
}

/* ---- keys ---- */

static uint64_t hash_of(const struct ta__own_key *key)
{
    return ta__hash_word(((uint64_t)key->a << 32 | key->b) ^ ((uint64_t)key->kind << 61));
}

static int make_room(struct builder *builder)
{
    struct ta__own *own = builder->own;
    if (builder->slots != NULL && own->key_count * 2 < builder->mask)
        return 0;
    size_t slots = builder->slots == NULL ? 1024 : (builder->mask + 1) * 2;
    uint32_t *bigger = ta__new_array(slots, sizeof *bigger);
    if (bigger == NULL)
        return -1;
    free(builder->slots);
    builder->slots = bigger;
    builder->mask = slots - 1;
    for (size_t i = 0; i < own->key_count; i++) {
        size_t at = hash_of(&own->keys[i]) & builder->mask;
        while (bigger[at] != 0)
            at = (at + 1) & builder->mask;
        bigger[at] = (uint32_t)i + 1;
    }
    return 0;
}

static int intern_key(struct builder *builder, struct ta__own_key key, uint32_t *number)
{
    struct ta__own *own = builder->own;
    if (make_room(builder) != 0)
        return -1;
    size_t at = hash_of(&key) & builder->mask;
    for (; builder->slots[at] != 0; at = (at + 1) & builder->mask) {
        const struct ta__own_key *other = &own->keys[builder->slots[at] - 1];
        if (other->kind == key.kind && other->a == key.a && other->b == key.b) {
            *number = builder->slots[at] - 1;
            return 0;
        }
    }
    if (ta__grow(&own->keys, &own->key_capacity, own->key_count + 1, sizeof *own->keys) != 0)
        return -1;
    *number = (uint32_t)own->key_count++;
    own->keys[*number] = key;
    builder->slots[at] = *number + 1;
    return 0;
}

/* A line where there is one, else a function, else a module; a place that has nothing of it is a line too. */
static int key_of_frame(struct builder *builder, uint32_t index, int by_line, uint32_t *number)
{
    const struct ta__logical *logical = &builder->model->logicals[index];
    struct ta__own_key key = {TA__OWN_LINE, logical->location, 0, index};
    if ((line_of(builder->model, index) == 0 || !by_line) && logical->module != 0)
        key = (struct ta__own_key){TA__OWN_FUNCTION, logical->module, logical->function, index};
    return intern_key(builder, key, number);
}

/* ---- contexts ---- */

/* What stands between a caller and the allocator because it is the allocator is nobody's way to it. */
static int is_allocator(const struct ta__model *model, uint32_t index)
{
    const struct ta__logical *logical = &model->logicals[index];
    return strncmp(ta__base_name(&model->names[logical->module]), "libtracealloc.so", 16) == 0 ||
           strncmp(model->names[logical->function].text, "ta__", 4) == 0;
}

static void step_inwards(struct builder *builder, struct state *state, uint32_t index)
{
    const struct ta__model *model = builder->model;
    enum ta__frame_class class = builder->own->classes[index];
    int is_chosen = 0;
    if (class == TA__FRAME_OWN && line_of(model, index) > 0) {
        state->lined = index;
        is_chosen = 1;
    } else if (class == TA__FRAME_OWN) { /* of another object than the lines: a plugin without any */
        is_chosen = state->lined == 0 || model->logicals[state->lined].module != model->logicals[index].module;
    } else if (class == TA__FRAME_LIBRARY) {
        is_chosen = state->lined == 0;
    }
    if (is_chosen) {
        state->chosen = index;
        state->via = 0;
    } else if (state->chosen != 0 && state->via == 0 && !is_allocator(model, index)) {
        state->via = index;
    }
    if (state->fallback == 0 && !ta__own_judge_is_start(builder->judge, &model->logicals[index]))
        state->fallback = index;
}

static int is_called(const struct ta__model *model, uint32_t index, const char *part)
{
    const struct ta__logical *logical = &model->logicals[index];
    return strstr(model->names[logical->function].text, part) != NULL ||
           strstr(model->names[logical->raw_name].text, part) != NULL;
}

static void find_pools(struct builder *builder)
{
    const struct ta__view *view = builder->model->view;
    for (uint32_t i = 0; i < view->trace_count + view->gone_trace_count && builder->pool_count < POOLS_MAX; i++) {
        const struct ta__view_trace *trace = &view->traces[i];
        int has_totals = trace->allocated_blocks > 0;
        uint64_t bytes = has_totals ? trace->allocated_bytes : trace->size;
        if ((has_totals ? trace->allocated_blocks : trace->count) == 1 && (bytes == 72704 || bytes == 73728))
            builder->pools[builder->pool_count++] = trace->context;
    }
}

/* libstdc++ linked into a program without names: a constructor before main asks once, for as much as the pool has. */
static int is_linked_pool(const struct builder *builder, uint32_t context)
{
    static const char *const callers[] = {"call_init", "__libc_start_main", "__libc_start_main_impl", "_dl_init"};
    const struct ta__model *model = builder->model;
    size_t at = 0;
    while (at < builder->pool_count && builder->pools[at] != context)
        at++;
    uint32_t parent = at == builder->pool_count ? 0 : model->view->contexts[context].parent;
    if (parent == 0 || model->names[ta__model_innermost(model, context)->raw_name].length > 0)
        return 0;
    const char *caller = model->names[ta__model_innermost(model, parent)->function].text;
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++)
        if (strcmp(caller, callers[i]) == 0)
            return 1;
    return 0;
}

/* What libraries keep for themselves as long as the program runs. `innermost` asked for the memory. */
static int find_known(struct builder *builder, uint32_t context, const struct state *state, enum known *known)
{
    const struct ta__model *model = builder->model;
    uint32_t innermost = ta__model_range(model, context).first;
    const struct ta__logical *logical = &model->logicals[innermost];
    if (is_called(model, innermost, "_IO_") && is_called(model, innermost, "doallocate")) {
        *known = STDIO_BUFFERS;
        return !ta__own_judge_insists(builder->judge, logical);
    }
    int is_library = strncmp(ta__base_name(&model->names[logical->module]), "libstdc++.so", 12) == 0;
    if ((is_library && state->chosen == 0) || is_called(model, innermost, "eh_alloc.cc") ||
        is_called(model, innermost, "__freeresEv") || is_linked_pool(builder, context)) {
        *known = EMERGENCY_POOL;
        return !ta__own_judge_insists(builder->judge, logical);
    }
    return 0;
}

static int choose(struct builder *builder, uint32_t context, const struct state *state)
{
    struct ta__own_choice *choice = &builder->own->contexts[context];
    uint32_t innermost = ta__model_range(builder->model, context).first;
    enum known known;
    if (builder->judge == NULL) {
        *choice = (struct ta__own_choice){.own = context != 0 ? innermost : 0};
        return key_of_frame(builder, innermost, 1, &choice->key);
    }
    *choice = (struct ta__own_choice){.own = state->chosen, .via = state->via};
    if (context != 0 && find_known(builder, context, state, &known)) {
        choice->own = choice->via = 0;
        return intern_key(builder, (struct ta__own_key){TA__OWN_KNOWN, known, 0, innermost}, &choice->key);
    }
    if (state->chosen != 0)
        return key_of_frame(builder, state->chosen, 1, &choice->key);
    if (state->fallback != 0 && builder->model->logicals[state->fallback].function != 0)
        return key_of_frame(builder, state->fallback, 0, &choice->key);
    const struct ta__logical *logical = &builder->model->logicals[innermost];
    if (logical->module == 0)
        return key_of_frame(builder, innermost, 1, &choice->key);
    return intern_key(builder, (struct ta__own_key){TA__OWN_FUNCTION, logical->module, 0, innermost}, &choice->key);
}

static int choose_all(struct builder *builder)
{
    const struct ta__model *model = builder->model;
    const struct ta__view *view = model->view;
    struct state none = {0};
    find_pools(builder);
    if (choose(builder, 0, &none) != 0)
        return -1;
    for (uint32_t context = 1; context < view->context_count; context++) {
        struct ta__logical_range range = ta__model_range(model, context);
        uint32_t parent = view->contexts[context].parent;
        struct state state = parent == 0 || builder->judge == NULL ? none : builder->states[parent];
        for (uint32_t i = range.count; builder->judge != NULL && i-- > 0;)
            step_inwards(builder, &state, range.first + i);
        if (builder->judge != NULL)
            builder->states[context] = state;
        if (choose(builder, context, &state) != 0)
            return -1;
    }
    return 0;
}

static int judge_all(struct builder *builder)
{
    const struct ta__model *model = builder->model;
    for (size_t i = 0; i < model->logical_count; i++) {
        builder->own->classes[i] = builder->judge == NULL
                                       ? TA__FRAME_OWN
                                       : (unsigned char)ta__own_judge_frame(builder->judge, &model->logicals[i]);
        builder->own->key_of_logical[i] = TA__NO_KEY;
        if ((i > 0 || builder->judge == NULL) && builder->own->classes[i] != TA__FRAME_SKIPPED &&
            key_of_frame(builder, (uint32_t)i, 1, &builder->own->key_of_logical[i]) != 0)
            return -1;
    }
    return 0;
}

static struct ta__own *build(const struct ta__model *model, const struct ta_own_rules *rules, int all_is_own)
{
    struct builder builder = {
        .model = model,
        .own = ta__new_array(1, sizeof *builder.own),
        .judge = all_is_own ? NULL : ta__own_judge_new(model, rules),
        .states = ta__new_array(all_is_own ? 1 : (size_t)model->view->context_count + 1, sizeof *builder.states),
    };
    int status = -1;
    if (builder.own != NULL) {
        builder.own->references = 1;
        builder.own->model = model;
        builder.own->contexts = ta__new_array((size_t)model->view->context_count + 1, sizeof *builder.own->contexts);
        builder.own->key_of_logical = ta__new_array(model->logical_count, sizeof *builder.own->key_of_logical);
        builder.own->classes = ta__new_array(model->logical_count, 1);
    }
    if (builder.own != NULL && (all_is_own || builder.judge != NULL) && builder.own->classes != NULL &&
        builder.states != NULL && builder.own->contexts != NULL && builder.own->key_of_logical != NULL)
        status = judge_all(&builder) != 0 ? -1 : choose_all(&builder);
    ta__own_judge_free(builder.judge);
    free(builder.states);
    free(builder.slots);
    if (status == 0)
        return builder.own;
    ta__own_release(builder.own);
    return NULL;
}

/* Rules that all models share and that have learned already, or new ones that learn from all of them. */
static struct ta_own_rules *common_rules(const struct ta__model *const *models, size_t model_count)
{
    struct ta_own_rules *rules = models[0]->own_rules;
    for (size_t i = 1; i < model_count; i++)
        if (models[i]->own_rules != rules)
            rules = rules == NULL ? models[i]->own_rules : rules;
    if (rules != NULL && rules->has_learned)
        return ta__own_rules_share(rules);
    rules = ta__own_rules_copy(rules);
    for (size_t i = 0; rules != NULL && i < model_count; i++)
        if (ta__own_learn(rules, models[i]) != 0) {
            ta_own_rules_free(rules);
            return NULL;
        }
    return rules;
}

int ta__own_build(const struct ta__model *const *models, size_t model_count, int all_is_own, struct ta__own *tables[2])
{
    struct ta_own_rules *rules = all_is_own ? NULL : common_rules(models, model_count);
    tables[0] = tables[1] = NULL;
    int status = rules == NULL && !all_is_own ? -1 : 0;
    for (size_t i = 0; status == 0 && i < model_count; i++) {
        tables[i] = build(models[i], rules, all_is_own);
        status = tables[i] == NULL ? -1 : 0;
    }
    ta_own_rules_free(rules);
    if (status != 0) {
        ta__own_release(tables[0]);
        ta__own_release(tables[1]);
        tables[0] = tables[1] = NULL;
    }
    return status;
}

int ta__own_is_lined(const struct ta__own *own, uint32_t logical)
{
    return own->classes[logical] == TA__FRAME_OWN && line_of(own->model, logical) > 0;
}

struct ta__own *ta__own_share(struct ta__own *own)
{
    if (own != NULL)
        ta__add_relaxed(&own->references, 1);
    return own;
}

void ta__own_release(struct ta__own *own)
{
    /* acquire: the last one out sees what the others did before they left; pairs with their release. */
    if (own == NULL || ta__add_acq_rel(&own->references, (uint32_t)-1) != 1)
        return;
    free(own->keys);
    free(own->contexts);
    free(own->key_of_logical);
    free(own->classes);
    free(own);
}

struct ta_traceback ta__own_traceback(const struct ta__own *own, uint32_t number)
{
    const struct ta__own_key *key = &own->keys[number];
    if (key->kind == TA__OWN_KNOWN)
        return ta__traceback(own->model, TA__TRACEBACK_KNOWN, key->a);
    if (key->kind == TA__OWN_FUNCTION && key->b == 0)
        return ta__traceback(own->model, TA__TRACEBACK_MODULE, key->logical);
    return ta__traceback(own->model, key->kind == TA__OWN_LINE ? TA__TRACEBACK_LOGICAL : TA__TRACEBACK_FUNCTION,
                         key->logical);
}

void ta__own_add_label(struct ta__text *text, const struct ta__own *own, uint32_t key)
{
    struct ta_frame frame;
    if (ta_traceback_frame(ta__own_traceback(own, key), 0, &frame) != 0)
        return;
    ta__text_add(text, frame.filename, frame.filename_length);
    if (frame.lineno > 0)
        ta__text_add_format(text, ":%u", frame.lineno);
    else if (*frame.function != '\0')
        ta__text_add_format(text, " %s", frame.function);
}

/* ---- rules of a snapshot ---- */

int ta_own_rules_learn(struct ta_own_rules *rules, const struct ta_snapshot *snapshot)
{
    const struct ta__model *model = ta__model_of(snapshot);
    if (model == NULL)
        return -1;
    return rules == NULL ? ta__fail("there are no rules: NULL") : ta__own_learn(rules, model);
}

int ta_snapshot_set_own_rules(struct ta_snapshot *snapshot, struct ta_own_rules *rules)
{
    struct ta__model *model = ta__model_of(snapshot);
    if (model == NULL)
        return -1;
    struct ta_own_rules *old = model->own_rules;
    model->own_rules = ta__own_rules_share(rules);
    ta_own_rules_free(old);
    return 0;
}
