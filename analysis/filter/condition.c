/* condition.c: see condition.h. */
#include "analysis/own/own_keys.h"
#include "analysis/filter/condition.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

static struct ta__condition *create(enum ta__condition_kind kind)
{
    struct ta__condition *condition = ta__new_array(1, sizeof *condition);
    if (condition != NULL) {
        condition->kind = kind;
        condition->max = UINT64_MAX;
    }
    return condition;
}

struct ta__condition *ta__condition_true(void)
{
    return create(TA__CONDITION_TRUE);
}

struct ta__condition *ta__condition_join(enum ta__condition_kind kind, struct ta__condition *left,
                                         struct ta__condition *right)
{
    struct ta__condition *condition = left == NULL || right == NULL ? NULL : create(kind);
    if (condition == NULL) {
        ta__condition_free(left);
        ta__condition_free(right);
        return NULL;
    }
    condition->left = left;
    condition->right = right;
    return condition;
}

struct ta__condition *ta__condition_not(struct ta__condition *operand)
{
    struct ta__condition *condition = operand == NULL ? NULL : create(TA__CONDITION_NOT);
    if (condition == NULL)
        ta__condition_free(operand);
    else
        condition->left = operand;
    return condition;
}

static struct ta__condition *with_pattern(struct ta__condition *condition, const char *pattern, size_t length)
{
    if (condition != NULL && ta__pattern_compile(&condition->pattern, pattern, length) != 0) {
        free(condition);
        return NULL;
    }
    return condition;
}

struct ta__condition *ta__condition_frame(enum ta__field field, const char *pattern, size_t length, int any_frame)
{
    struct ta__condition *condition = create(TA__CONDITION_FRAME);
    if (condition != NULL) {
        condition->field = field;
        condition->any_frame = any_frame;
    }
    if (field == TA__FIELD_FILE)
        length = ta__pattern_normalized_length(pattern, length);
    return with_pattern(condition, pattern, length);
}

struct ta__condition *ta__condition_number(enum ta__field field, uint64_t min, uint64_t max)
{
    struct ta__condition *condition = create(TA__CONDITION_NUMBER);
    if (condition != NULL) {
        condition->field = field;
        condition->min = min;
        condition->max = max;
    }
    return condition;
}

struct ta__condition *ta__condition_domain_name(const char *pattern, size_t length)
{
    return with_pattern(create(TA__CONDITION_DOMAIN_NAME), pattern, length);
}

struct ta__condition *ta__condition_own(const char *pattern, size_t length)
{
    return with_pattern(create(TA__CONDITION_OWN), pattern, length);
}

/* Lists lean to the right and may be long, so only the left side recurses, here and below. */
void ta__condition_free(struct ta__condition *condition)
{
    while (condition != NULL) {
        struct ta__condition *right = condition->right;
        ta__condition_free(condition->left);
        ta__pattern_free(&condition->pattern);
        free(condition->answers);
        free(condition);
        condition = right;
    }
}

/* ---- answers per context ---- */

static uint32_t name_of_field(const struct ta__model *model, enum ta__field field, const struct ta__logical *logical)
{
    if (field == TA__FIELD_FUNCTION)
        return logical->function != 0 ? logical->function : model->unknown_name;
    if (field == TA__FIELD_MODULE)
        return logical->module != 0 ? logical->module : model->unknown_name;
    return model->locations[logical->location].name;
}

enum { NOT_ASKED = 0, NO = 1, YES = 2 };

static int name_matches(const struct ta__condition *condition, const struct ta__model *model, uint32_t name,
                        unsigned char *memo)
{
    if (memo[name] == NOT_ASKED) {
        const struct ta__name *text = &model->names[name];
        size_t length =
            condition->field == TA__FIELD_FILE ? ta__pattern_normalized_length(text->text, text->length) : text->length;
        memo[name] = ta__pattern_matches(&condition->pattern, text->text, length) ? YES : NO;
    }
    return memo[name] == YES;
}

static int frame_matches(const struct ta__condition *condition, const struct ta__model *model, uint32_t index,
                         unsigned char *memo)
{
    const struct ta__logical *logical = &model->logicals[index];
    uint32_t line = model->locations[logical->location].line;
    return line >= condition->min && line <= condition->max &&
           name_matches(condition, model, name_of_field(model, condition->field, logical), memo);
}

static void answer_contexts(struct ta__condition *condition, const struct ta__model *model, unsigned char *memo)
{
    const struct ta__view *view = model->view;
    condition->answers[0] = (unsigned char)frame_matches(condition, model, 0, memo);
    for (uint32_t context = 1; context < view->context_count; context++) {
        struct ta__logical_range range = ta__model_range(model, context);
        uint32_t parent = view->contexts[context].parent;
        int hit = condition->any_frame && parent != 0 && condition->answers[parent];
        uint32_t examined = condition->any_frame ? range.count : 1;
        for (uint32_t i = 0; !hit && i < examined; i++)
            hit = frame_matches(condition, model, range.first + i, memo);
        condition->answers[context] = (unsigned char)hit;
    }
}

static int prepare_frame(struct ta__condition *condition, const struct ta__model *model)
{
    unsigned char *memo = ta__new_array(model->name_count, 1);
    condition->answers = ta__new_array((size_t)model->view->context_count + 1, 1);
    int status = memo == NULL || condition->answers == NULL ? -1 : 0;
    if (status == 0)
        answer_contexts(condition, model, memo);
    free(memo);
    return status;
}

static int prepare_domain(struct ta__condition *condition, const struct ta__model *model)
{
    const struct ta__view *view = model->view;
    condition->answers = ta__new_array(model->domain_count, 1);
    if (condition->answers == NULL)
        return -1;
    for (size_t i = 0; i < model->domain_count; i++)
        for (uint32_t d = 0; d < view->domain_count; d++)
            if (view->domains[d].number == model->domain_numbers[i]) {
                const struct ta__view_string *name = &view->strings[view->domains[d].name];
                condition->answers[i] =
                    (unsigned char)ta__pattern_matches(&condition->pattern, name->text, name->length);
            }
    return 0;
}

static int prepare_own(struct ta__condition *condition, const struct ta__model *model)
{
    condition->answers = ta__new_array((size_t)model->view->context_count + 1, 1);
    return condition->answers == NULL ? -1 : ta__own_answer(model, &condition->pattern, condition->answers);
}

int ta__condition_prepare(struct ta__condition *condition, const struct ta__model *model)
{
    for (; condition != NULL; condition = condition->right) {
        free(condition->answers);
        condition->answers = NULL;
        if (condition->kind == TA__CONDITION_FRAME && prepare_frame(condition, model) != 0)
            return -1;
        if (condition->kind == TA__CONDITION_DOMAIN_NAME && prepare_domain(condition, model) != 0)
            return -1;
        if (condition->kind == TA__CONDITION_OWN && prepare_own(condition, model) != 0)
            return -1;
        if (condition->left != NULL && ta__condition_prepare(condition->left, model) != 0)
            return -1;
    }
    return 0;
}

/* ---- one trace ---- */

static uint64_t number_of(enum ta__field field, const struct ta__model *model, const struct ta__view_trace *trace,
                          uint64_t size)
{
    switch (field) {
    case TA__FIELD_DOMAIN:
        return trace->domain;
    case TA__FIELD_THREAD:
        return trace->thread == 0 ? 0 : model->view->threads[trace->thread - 1].tid;
    case TA__FIELD_SIZE:
        return size;
    case TA__FIELD_TOTAL:
        return trace->size;
    case TA__FIELD_COUNT:
        return trace->count;
    default:
        return trace->total_nframe >= 0
                   ? (uint64_t)trace->total_nframe
                   : ta_traceback_length(ta__traceback(model, TA__TRACEBACK_CONTEXT, trace->context));
    }
}

int ta__condition_holds_block(const struct ta__condition *condition, const struct ta__model *model,
                              const struct ta__view_trace *trace, uint64_t size)
{
    for (;;) {
        uint64_t number;
        switch (condition->kind) {
        case TA__CONDITION_AND:
            if (!ta__condition_holds_block(condition->left, model, trace, size))
                return 0;
            condition = condition->right;
            continue;
        case TA__CONDITION_OR:
            if (ta__condition_holds_block(condition->left, model, trace, size))
                return 1;
            condition = condition->right;
            continue;
        case TA__CONDITION_NOT:
            return !ta__condition_holds_block(condition->left, model, trace, size);
        case TA__CONDITION_FRAME:
        case TA__CONDITION_OWN:
            return condition->answers[trace->context];
        case TA__CONDITION_DOMAIN_NAME:
            return condition->answers[ta__model_domain(model, trace->domain)];
        case TA__CONDITION_NUMBER:
            number = number_of(condition->field, model, trace, size);
            return number >= condition->min && number <= condition->max;
        default:
            return 1;
        }
    }
}

int ta__condition_holds(const struct ta__condition *condition, const struct ta__model *model,
                        const struct ta__view_trace *trace)
{
    return ta__condition_holds_block(condition, model, trace, trace->count == 0 ? 0 : trace->size / trace->count);
}

int ta__condition_asks_size(const struct ta__condition *condition)
{
    for (; condition != NULL; condition = condition->right)
        if ((condition->kind == TA__CONDITION_NUMBER && condition->field == TA__FIELD_SIZE) ||
            ta__condition_asks_size(condition->left))
            return 1;
    return 0;
}
