/* compile_rules.c: which code the rules of a file name (tracealloc/rules.h): for people, and as ranges of addresses.
 *
 * A frame of a running program is an address; in the file it is a function with calls inlined into it. Going inwards, the
 * last of them that a rule names decides, unless one further out is held by a rule marked outermost: as the program does
 * with whole stacks (docs/domains.md). Each function is painted on the addresses before what was inlined into it, and
 * what shows in the end are the ranges. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "analysis/rules/code_functions.h"
#include "analysis/text_output.h"
#include "base/bytes.h"
#include "base/rule_text.h"
#include "tracealloc/rules.h"

enum { NAME_ROOM = 64 << 10, GAP = 15 }; /* so far apart functions are only for their alignment */

/* ---- rules ---- */

static int read_rules(struct ta__rule_text *text, const char *path)
{
    if (ta__rule_text_read(text, path))
        return 0;
    ta__fail("%.*s", (int)text->error.length, text->error.text);
    ta__rule_text_close(text);
    return -1;
}

static struct ta_rule face_of(const struct ta__rule_text *text, size_t index)
{
    const struct ta__rule *rule = &text->rules[index];
    return (struct ta_rule){.line = rule->line,
                            .domain = rule->number,
                            .name = rule->name,
                            .wants_lines = rule->files[0] != NULL,
                            .wants_code = rule->files[0] != NULL || rule->functions[0] != NULL,
                            .is_compiled = text->is_compiled};
}

int ta_rules_get(const char *path, size_t index, struct ta_rule *rule, size_t size)
{
    static __thread char name[256];
    struct ta__rule_text text;
    if (read_rules(&text, path) != 0)
        return -1;
    int status = index < text.rule_count ? 0 : ta__fail("%s: there is no rule %zu", path, index);
    if (status == 0) {
        struct ta_rule face = face_of(&text, index);
        strncpy(name, face.name, sizeof name - 1);
        face.name = name;
        ta__fill(rule, size, &face, sizeof face);
    }
    ta__rule_text_close(&text);
    return status;
}

/* ---- matching ---- */

struct paint {
    uint64_t start, end;
    uint32_t rule;
};

struct search {
    const struct ta__rule_text *text;
    const char *object;
    char *scratch;
    int (*found)(void *user, const struct ta_rule_match *match);
    void *user;
    int is_compiling;
    struct paint *paints;
    size_t paint_count, paint_capacity;
    uint32_t outer[64]; /* by depth: the rule that holds a function and all in it, marked outermost; + 1 */
};

/* The first rule that names the function. */
static uint32_t rule_of(const struct search *search, const struct ta__code_function *function)
{
    for (uint32_t i = 0; i < search->text->rule_count; i++) {
        const struct ta__rule *rule = &search->text->rules[i];
        if (rule->functions[0] == NULL && rule->files[0] == NULL)
            continue; /* of the whole module: nothing to look for */
        if (!ta__rule_names_module(rule, search->object) ||
            (rule->files[0] != NULL && !ta__rule_names_file(rule, function->file)))
            continue;
        if (rule->functions[0] == NULL ||
            ta__rule_names_function(rule, function->raw_name, search->scratch, NAME_ROOM) ||
            (strncmp(function->raw_name, "_Z", 2) != 0 &&
             ta__rule_names_function(rule, function->function, search->scratch, NAME_ROOM)))
            return i;
    }
    return UINT32_MAX;
}

static int tell(const struct search *search, const struct ta__code_function *function, uint32_t rule)
{
    const struct ta_rule_match match = {.rule = face_of(search->text, rule),
                                        .rule_index = rule,
                                        .function = function->function,
                                        .raw_name = function->raw_name,
                                        .file = function->file,
                                        .lineno = function->line,
                                        .inlined = function->depth > 0,
                                        .start = function->spans[0].start,
                                        .end = function->spans[0].end};
    return search->found(search->user, &match);
}

/* Whether a rule marked outermost holds the function around; and what holds for those inside. */
static int is_held(struct search *search, const struct ta__code_function *function, uint32_t rule)
{
    const size_t deepest = sizeof search->outer / sizeof *search->outer - 1;
    size_t depth = function->depth < deepest ? function->depth : deepest;
    uint32_t around = depth > 0 ? search->outer[depth - 1] : 0;
    int holds = rule != UINT32_MAX && search->text->rules[rule].outermost;
    search->outer[depth] = around != 0 ? around : holds ? rule + 1 : 0;
    return around != 0;
}

static int take_function(void *context, const struct ta__code_function *function)
{
    struct search *search = context;
    uint32_t rule = rule_of(search, function);
    int held = is_held(search, function, rule);
    if (rule == UINT32_MAX)
        return 0;
    if (!search->is_compiling)
        return tell(search, function, rule);
    for (size_t i = 0; !held && i < function->span_count; i++) {
        if (ta__grow(&search->paints, &search->paint_capacity, search->paint_count + 1, sizeof *search->paints) != 0)
            return -1;
        search->paints[search->paint_count++] = (struct paint){function->spans[i].start, function->spans[i].end, rule};
    }
    return 0;
}

static int search_object(struct search *search, struct ta__code_object *object)
{
    search->scratch = ta__new_array(NAME_ROOM, 1);
    if (search->scratch == NULL)
        return -1;
    int status = ta__code_functions(search->object, object, take_function, search);
    free(search->scratch);
    return status;
}

int ta_rules_check(const char *rules, const char *object, int (*found)(void *user, const struct ta_rule_match *match),
                   void *user)
{
    struct ta__rule_text text;
    struct ta__code_object facts;
    if (read_rules(&text, rules) != 0)
        return -1;
    struct search search = {.text = &text, .object = object, .found = found, .user = user};
    int status = found == NULL ? 0 : search_object(&search, &facts);
    ta__rule_text_close(&text);
    return status;
}

/* ---- ranges ---- */

/* By start, the larger first, so that what is inside comes later; equal ones in the order of painting. */
static int compare_paints(const void *a, const void *b)
{
    const struct paint *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

struct ranges {
    struct ta__output *output;
    struct paint last; /* not written yet; end 0 = none */
};

static void write_last(struct ranges *ranges)
{
    if (ranges->last.end == 0)
        return;
    ta__text_add_format(&ranges->output->pending, "@range %" PRIx32 " %" PRIx64 " %" PRIx64, ranges->last.rule + 1,
                        ranges->last.start, ranges->last.end);
    ta__output_add_string(ranges->output, "\n");
    ranges->last.end = 0;
}

static void add_range(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t rule)
{
    if (start >= end)
        return;
    if (ranges->last.end != 0 && ranges->last.rule == rule && start <= ranges->last.end + GAP) {
        ranges->last.end = end;
        return;
    }
    write_last(ranges);
    ranges->last = (struct paint){start, end, rule};
}

/* What shows of paints that lie over each other. `open` has room for all. */
static void flatten(const struct search *search, struct paint *open, struct ranges *ranges)
{
    size_t depth = 0;
    uint64_t at = 0;
    for (size_t i = 0; i < search->paint_count; i++) {
        const struct paint *paint = &search->paints[i];
        for (; depth > 0 && open[depth - 1].end <= paint->start; depth--) {
            add_range(ranges, at, open[depth - 1].end, open[depth - 1].rule);
            at = open[depth - 1].end > at ? open[depth - 1].end : at;
        }
        if (depth > 0)
            add_range(ranges, at, paint->start, open[depth - 1].rule);
        at = paint->start > at ? paint->start : at;
        open[depth++] = *paint;
    }
    for (; depth > 0; depth--) {
        add_range(ranges, at, open[depth - 1].end, open[depth - 1].rule);
        at = open[depth - 1].end > at ? open[depth - 1].end : at;
    }
    write_last(ranges);
}

static int write_object(struct ta__output *output, const struct search *search, const struct ta__code_object *object)
{
    struct paint *open = ta__new_array(search->paint_count, sizeof *open);
    if (open == NULL)
        return -1;
    ta__output_add_string(output, "@object ");
    for (unsigned i = 0; i < object->build_id_length; i++)
        ta__text_add_format(&output->pending, "%02x", object->build_id[i]);
    ta__output_add_string(output, " ");
    for (const char *at = search->object; *at != '\0'; at++)
        ta__text_add(&output->pending, (unsigned char)*at <= 0x20 || *at == '"' ? "?" : at, 1);
    ta__output_add_string(output, "\n");
    struct ranges ranges = {.output = output};
    flatten(search, open, &ranges);
    free(open);
    return 0;
}

static int compile_object(struct search *search, struct ta__output *output,
                          void (*note)(void *user, const char *object, const char *text), void *note_user)
{
    struct ta__code_object object;
    search->paint_count = 0;
    memset(search->outer, 0, sizeof search->outer);
    if (search_object(search, &object) != 0)
        return -1;
    if (object.build_id_length == 0)
        return ta__fail("%s has no build id, by which a program would know it: link it with -Wl,--build-id",
                        search->object);
    if (!object.has_lines && note != NULL)
        note(note_user, search->object, object.reason);
    if (ta__sort(search->paints, search->paint_count, sizeof *search->paints, compare_paints) != 0)
        return -1;
    return write_object(output, search, &object);
}

/* ---- the file ---- */

static void add_patterns(struct ta__text *text, const char *key, const char *const *patterns)
{
    for (size_t i = 0; patterns[i] != NULL; i++) {
        int is_quoted = strpbrk(patterns[i], " \t,#") != NULL;
        ta__text_add_string(text, i == 0 ? key : ",");
        ta__text_add_string(text, is_quoted ? "\"" : "");
        ta__text_add_string(text, patterns[i]);
        ta__text_add_string(text, is_quoted ? "\"" : "");
    }
}

static void write_rules(struct ta__output *output, const struct ta__rule_text *rules)
{
    struct ta__text *text = &output->pending;
    ta__output_add_string(output, "# tracealloc compiled rules 1\n");
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        const struct ta__rule *rule = &rules->rules[i];
        ta__text_add_format(text, "%" PRIu32 " ", rule->number);
        ta__text_add_string(text, rule->name);
        add_patterns(text, " module=", rule->modules);
        add_patterns(text, " function=", rule->functions);
        add_patterns(text, " file=", rule->files);
        ta__output_add_string(output, rule->outermost ? " outermost\n" : "\n");
    }
}

int ta_rules_compile(const char *rules, const char *const *objects, size_t count,
                     void (*note)(void *user, const char *object, const char *text), void *note_user,
                     ta_write_function write, void *user)
{
    struct ta__rule_text text;
    struct ta__output output = {.write = write, .user = user};
    if (read_rules(&text, rules) != 0)
        return -1;
    struct search search = {.text = &text, .is_compiling = 1};
    int status = 0;
    write_rules(&output, &text);
    for (size_t i = 0; status == 0 && i < count; i++) {
        search.object = objects[i];
        status = compile_object(&search, &output, note, note_user);
    }
    free(search.paints);
    ta__rule_text_close(&text);
    if (status != 0) /* nobody takes half of it for the whole */
        output.failed = 1;
    return ta__output_finish(&output) == 0 && status == 0 ? 0 : -1;
}
