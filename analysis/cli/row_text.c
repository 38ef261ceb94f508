/* row_text.c: see row_text.h. */
#include "analysis/cli/row_text.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/cli/places.h"
#include "analysis/cli/terminal.h"

static int is_key(const char *key, const char *name)
{
    return strcmp(key, name) == 0;
}

int cli_key_has_members(const char *key)
{
    return is_key(key, "own") || is_key(key, "line");
}

int cli_key_is_stack(const char *key)
{
    return is_key(key, "stack") || is_key(key, "traceback");
}

/* Rows that are a place in a program; the others are names. */
static int is_place(const char *key)
{
    return cli_key_has_members(key) || is_key(key, "lineno");
}

static void make_place(struct cli_row_text *text, const char *key)
{
    if (!is_key(key, "function")) /* of that the name is all there is */
        cli_place_text(&text->frame, text->place, sizeof text->place);
}

static struct ta_traceback traceback_of(const struct cli_rows *rows, size_t index)
{
    struct ta_statistic statistic = {.traceback = {.total_nframe = -1}};
    struct ta_statistic_diff difference = {.traceback = {.total_nframe = -1}};
    if (rows->statistics != NULL) {
        ta_statistics_get(rows->statistics, index, &statistic);
        return statistic.traceback;
    }
    ta_differences_get(rows->differences, index, &difference);
    return difference.traceback;
}

static struct cli_members members(const struct cli_rows *rows, size_t index, enum ta_member what)
{
    return cli_members_of(rows->statistics, rows->differences, index, what, rows->order);
}

static void make_for_machines(struct cli_row_text *text, const struct cli_rows *rows)
{
    text->stack = cli_key_is_stack(rows->key) ? cli_stack_text(text->traceback) : NULL;
    text->members_json = cli_members_json(&text->functions);
    text->members_plain = cli_members_plain(&text->functions);
    text->callers_json = cli_members_json(&text->callers);
    text->callers_plain = cli_members_plain(&text->callers);
}

/* A line of brackets alone, which debug information names for what ends there, says nothing. */
static char *source_of(const struct ta_frame *frame)
{
    char *source = cli_source_line(frame);
    if (source != NULL && source[strspn(source, "(){}[]; ")] == '\0') {
        free(source);
        return NULL;
    }
    return source;
}

void cli_row_make(struct cli_row_text *text, const struct cli_rows *rows, size_t index)
{
    *text = (struct cli_row_text){.traceback = traceback_of(rows, index),
                                  .frame = {.filename = "", .function = "", .module = ""}};
    ta_traceback_frame(text->traceback, -1, &text->frame);
    make_place(text, rows->key);
    if (is_place(rows->key)) {
        text->functions = members(rows, index, TA_MEMBER_FUNCTION);
        text->ways = members(rows, index, TA_MEMBER_VIA);
        text->source = source_of(&text->frame);
    }
    if (rows->options->callers)
        text->callers = members(rows, index, TA_MEMBER_CALLER);
    /* Without a line the row is a function already; with one its members say which. */
    int asks_members = text->functions.count > 0 && (text->frame.lineno > 0 || is_key(rows->key, "lineno"));
    text->name = is_key(rows->key, "function") ? cli_function_name(text->frame.filename)
                 : asks_members                ? cli_members_functions(&text->functions)
                                               : cli_frame_name(&text->frame);
    text->via = cli_members_via(&text->ways);
    if (rows->options->json || rows->options->csv)
        make_for_machines(text, rows);
}

void cli_row_free(struct cli_row_text *text)
{
    cli_members_free(&text->functions);
    cli_members_free(&text->ways);
    cli_members_free(&text->callers);
    free(text->name);
    free(text->via);
    free(text->source);
    free(text->stack);
    free(text->members_json);
    free(text->members_plain);
    free(text->callers_json);
    free(text->callers_plain);
}

const char *cli_row_function(const struct cli_row_text *text, const char *key)
{
    int asks_members = text->functions.count > 0 && (text->frame.lineno > 0 || is_key(key, "lineno"));
    return asks_members ? text->functions.items[0].frame.function : text->frame.function;
}

void cli_row_note(struct cli_table *table, const struct cli_row_text *text, const char *key)
{
    if (text->source != NULL)
        cli_table_note(table, "%s", text->source);
    if (cli_key_is_stack(key))
        cli_note_stack(table, text->traceback);
    cli_members_note_callers(table, &text->callers);
}

/* ---- files that are not what ran ---- */

static int is_in_rows(const struct cli_rows *rows, size_t count, const char *module, int wants_unnamed)
{
    if (rows == NULL)
        return !wants_unnamed;
    for (size_t i = 0; i < count; i++) {
        struct ta_frame frame;
        if (ta_traceback_frame(traceback_of(rows, i), -1, &frame) == 0 && frame.lineno == 0 &&
            strcmp(frame.module, module) == 0 && (!wants_unnamed || cli_frame_is_unnamed(&frame)))
            return 1;
    }
    return 0;
}

enum lack { LACKS_NOTHING, LACKS_FILE, LACKS_NAMES, LACKS_MEMORY };

static enum lack lack_of(const struct ta_module_symbols *module)
{
    if (*module->path != '/')
        return LACKS_NOTHING;
    if (module->state == TA_MODULE_ABSENT || module->state == TA_MODULE_DIFFERS)
        return LACKS_FILE;
    if (module->state != TA_MODULE_LINES && strstr(module->reason, "memory") != NULL)
        return LACKS_MEMORY;
    return module->state == TA_MODULE_NAMES_ONLY ? LACKS_NAMES : LACKS_NOTHING;
}

void cli_rows_tell_missing(const struct cli_rows *rows, size_t count, struct ta_snapshot *snapshot)
{
    struct ta_module_symbols module;
    int tells[LACKS_MEMORY + 1] = {0}, tells_any = 0;
    for (size_t m = 0; ta_snapshot_module_symbols(snapshot, m, &module) == 0; m++) {
        enum lack lack = lack_of(&module);
        if (lack == LACKS_NOTHING || !is_in_rows(rows, count, module.path, lack == LACKS_NAMES))
            continue;
        if (!tells_any)
            putchar('\n');
        tells_any = tells[lack] = 1;
        printf("%s %s\n", module.path,
               lack == LACKS_MEMORY  ? "has lines that are not known: there is too little memory to read them"
               : lack == LACKS_NAMES ? "has no names for some of its functions"
               : module.state == TA_MODULE_DIFFERS ? "has been rebuilt since: its functions and lines are not known"
                                                   : "is gone: its functions and lines are not known");
    }
    if (tells[LACKS_FILE])
        cli_print_wrapped(
            "put back what ran, or name a folder with a copy in TRACEALLOC_SYMBOLS, or a server in DEBUGINFOD_URLS\n");
    if (tells[LACKS_NAMES])
        cli_print_wrapped("debug symbols have them: a -dbgsym package, or a server in DEBUGINFOD_URLS\n");
    if (tells[LACKS_MEMORY])
        cli_print_wrapped("look at it where there is more memory, or raise its limit: ulimit -v, ulimit -d\n");
}
