/* own_filter.c: which stacks are grouped under a row that a pattern names: the condition own:PATTERN of filters.
 *
 * A row is named by its function, with all of its name or without template arguments, by its file or module, from any of
 * its folders on, by FILE:LINE, or by the name of what a library keeps. */
#include <stdlib.h>
#include <string.h>

#include "analysis/own/function_name.h"
#include "analysis/own/own_keys.h"
#include "analysis/support.h"

static int path_matches(const struct ta__pattern *pattern, const char *path, size_t length)
{
    for (const char *at = path;; at++) {
        if (ta__pattern_matches(pattern, at, length - (size_t)(at - path)))
            return 1;
        at = memchr(at, '/', length - (size_t)(at - path));
        if (at == NULL)
            return 0;
    }
}

static int function_matches(const struct ta__pattern *pattern, const char *function)
{
    struct ta__span name = ta__function_name(function, strlen(function));
    struct ta__text plain = {0};
    if (*function == '\0')
        return 0;
    ta__text_add(&plain, "", 0);
    ta__function_plain(&plain, name);
    int matches = ta__pattern_matches(pattern, function, strlen(function)) ||
                  ta__pattern_matches(pattern, name.text, name.length) ||
                  (!plain.failed && ta__pattern_matches(pattern, plain.bytes, plain.length));
    ta__text_free(&plain);
    return matches;
}

/* By the place alone; a line may have several functions. */
static int place_matches(const struct ta__own *own, uint32_t key, const struct ta__pattern *pattern)
{
    struct ta_frame frame;
    struct ta__text place = {0};
    if (ta_traceback_frame(ta__own_traceback(own, key), 0, &frame) != 0)
        return 0;
    int matches = path_matches(pattern, frame.filename, frame.filename_length);
    if (!matches && frame.lineno > 0) {
        ta__text_add(&place, frame.filename, frame.filename_length);
        ta__text_add_format(&place, ":%u", frame.lineno);
        matches = !place.failed && path_matches(pattern, place.bytes, place.length);
        ta__text_free(&place);
    }
    return matches;
}

/* The function that names the row of a stack; name 0 = none. */
static uint32_t function_of(const struct ta__own *own, const struct ta__own_choice *choice)
{
    const struct ta__own_key *key = &own->keys[choice->key];
    if (choice->own != 0)
        return own->model->logicals[choice->own].function;
    return key->kind == TA__OWN_FUNCTION ? key->b : 0;
}

enum { NOT_ASKED, NO, YES };

int ta__own_answer(const struct ta__model *model, const struct ta__pattern *pattern, unsigned char *answers)
{
    struct ta__own *tables[2];
    if (ta__own_build(&model, 1, 0, tables) != 0)
        return -1;
    const struct ta__own *own = tables[0];
    unsigned char *places = ta__new_array(own->key_count, 1), *functions = ta__new_array(model->name_count, 1);
    int status = places == NULL || functions == NULL ? -1 : 0;
    for (uint32_t key = 0; status == 0 && key < own->key_count; key++)
        places[key] = (unsigned char)place_matches(own, key, pattern);
    for (uint32_t context = 0; status == 0 && (context < model->view->context_count || context == 0); context++) {
        const struct ta__own_choice *choice = &own->contexts[context];
        uint32_t function = function_of(own, choice);
        if (functions[function] == NOT_ASKED)
            functions[function] = function_matches(pattern, model->names[function].text) ? YES : NO;
        answers[context] = (unsigned char)(places[choice->key] || functions[function] == YES);
    }
    free(places);
    free(functions);
    ta__own_release(tables[0]);
    return status;
}
