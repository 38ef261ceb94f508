/* attribution.c: see attribution.h. Matching frames with rules; everything here runs under the lock of contexts.c.
 *
 * What a rule says of a module's path is decided once per module. Rules with function patterns are decided then too, by
 * the symbol tables of the module's file: the ranges of all functions that match, sorted; or by what was compiled for a
 * module of this build id, which also knows source files. So a new context costs a binary search at most. A module is
 * met when a stack first passes through it; that thread reads the file, others go on unless they meet a stack that was
 * never seen. */
#include "trace/attribution.h"

#include <stddef.h>
#include <string.h>

#include "base/atomics.h"
#include "base/memory.h"
#include "base/own_stack.h"
#include "trace/contexts.h"
#include "trace/unwind/modules.h"
#include "trace/unwind/function_names.h"

enum { NO_RULE = UINT32_MAX, MODULES_MAX = 1 << 14, GENERATION_SHIFT = 20, GENERATION_MASK = 0x3FF };
enum { READING_STACK = 8 << 20, READABLE_MAX = 64 << 10 }; /* pages that are not touched cost nothing */

/* A function that a rule names. */
struct range {
    uint64_t start, end;
    uint32_t rule;
};

struct module_answer {
    uint32_t is_known;
    uint32_t rule; /* the first that names the module and no function */
    struct range *ranges;
    uint32_t range_count, range_room;
};

static struct {
    const struct ta__attribution_rule *rules;
    const struct ta__rule_text *text;
    uint32_t count;
    uint32_t key;                  /* release: with it the rules are in force */
    struct module_answer *answers; /* by module id */
} attribution;

uint32_t ta__attribution_key(void)
{
    return ta__load_acquire(&attribution.key);
}

/* ---- modules ---- */

struct reading {
    const struct ta__module *module;
    struct module_answer *answer;
    char *scratch; /* READABLE_MAX bytes; NULL: names are compared as the linker has them */
};

static int make_room(struct module_answer *answer)
{
    if (answer->range_count < answer->range_room)
        return 1;
    uint32_t room = answer->range_room == 0 ? 512 : answer->range_room * 2;
    struct range *larger = ta__memory_map(room * sizeof *larger);
    if (larger == NULL)
        return 0;
    if (answer->ranges != NULL) {
        memcpy(larger, answer->ranges, answer->range_count * sizeof *larger);
        ta__memory_unmap(answer->ranges, answer->range_room * sizeof *larger);
    }
    answer->ranges = larger;
    answer->range_room = room;
    return 1;
}

static void add_range(struct module_answer *answer, uint64_t start, uint64_t end, uint32_t rule)
{
    if (make_room(answer))
        answer->ranges[answer->range_count++] = (struct range){start, end, rule};
}

static void take_symbol(const char *name, uint64_t address, uint64_t size, void *context)
{
    const struct reading *reading = context;
    uint64_t start = reading->module->bias + address;
    for (uint32_t i = 0; i < attribution.count; i++) {
        const struct ta__rule *rule = attribution.rules[i].rule;
        if (rule->functions[0] == NULL || rule->files[0] != NULL ||
            !ta__rule_names_module(rule, reading->module->path) ||
            !ta__rule_names_function(rule, name, reading->scratch, READABLE_MAX))
            continue;
        add_range(reading->answer, start, start + (size != 0 ? size : 1), i);
        return;
    }
}

/* Sorts by start. A heap sort, because it needs neither memory nor libc's qsort. */
static void sift(struct range *ranges, uint32_t root, uint32_t count)
{
    for (uint32_t child; (child = root * 2 + 1) < count; root = child) {
        if (child + 1 < count && ranges[child + 1].start > ranges[child].start)
            child++;
        if (ranges[root].start >= ranges[child].start)
            return;
        struct range other = ranges[root];
        ranges[root] = ranges[child];
        ranges[child] = other;
    }
}

static void sort(struct range *ranges, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sift(ranges, i, count);
    for (uint32_t end = count; end > 1; end--) {
        struct range largest = ranges[0];
        ranges[0] = ranges[end - 1];
        ranges[end - 1] = largest;
        sift(ranges, 0, end - 1);
    }
}

/* What was compiled for this build; NULL: nothing. */
static const struct ta__rule_object *compiled_for(const struct ta__module *module)
{
    for (uint32_t i = 0; i < attribution.text->object_count; i++) {
        const struct ta__rule_object *object = &attribution.text->objects[i];
        if (object->build_id_length == module->build_id_bytes && module->build_id_bytes != 0 &&
            memcmp(object->build_id, module->build_id, object->build_id_length) == 0)
            return object;
    }
    return NULL;
}

static void take_compiled(const struct ta__rule_object *object, const struct reading *reading)
{
    for (uint32_t i = 0; i < object->count; i++) {
        const struct ta__rule_range *range = &attribution.text->ranges[object->first + i];
        if (ta__rule_names_module(attribution.rules[range->rule].rule, reading->module->path))
            add_range(reading->answer, reading->module->bias + range->start, reading->module->bias + range->end,
                      range->rule);
    }
}

static void read_symbols(void *context)
{
    const struct reading *reading = context;
    ta__symbols_read(reading->module->path, reading->module->build_id, reading->module->build_id_bytes,
                     TA__SYMBOLS_OF_CODE, take_symbol, context);
}

static void find_functions(const struct ta__module *module, struct module_answer *answer)
{
    struct reading reading = {.module = module, .answer = answer};
    const struct ta__rule_object *object = compiled_for(module);
    if (object != NULL) {
        take_compiled(object, &reading);
    } else {
        reading.scratch = ta__memory_map(READABLE_MAX);
        if (!ta__on_own_stack(READING_STACK, read_symbols, &reading)) {
            ta__memory_unmap(reading.scratch, READABLE_MAX);
            reading.scratch = NULL;
            read_symbols(&reading);
        }
        ta__memory_unmap(reading.scratch, READABLE_MAX);
    }
    sort(answer->ranges, answer->range_count);
}

static const struct module_answer *answer_of(uint32_t id)
{
    struct module_answer *answer = &attribution.answers[id];
    if (TA_LIKELY(answer->is_known))
        return answer;
    answer->is_known = 1;
    answer->rule = NO_RULE;
    const struct ta__module *module = ta__module_at((ta__module_id){id});
    int asks_for_functions = 0;
    for (uint32_t i = attribution.count; i-- > 0;) {
        const struct ta__rule *rule = attribution.rules[i].rule;
        if (module == NULL || !ta__rule_names_module(rule, module->path))
            continue;
        if (rule->functions[0] == NULL && rule->files[0] == NULL)
            answer->rule = i;
        else
            asks_for_functions = 1;
    }
    if (asks_for_functions)
        find_functions(module, answer);
    return answer;
}

/* The rule of lowest number among the functions at this address. Aliases and nested symbols lie close together. */
static uint32_t rule_of_function(const struct module_answer *answer, uint64_t address)
{
    enum { LOOK_BACK = 32 };
    uint32_t low = 0;
    uint32_t high = answer->range_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (answer->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t rule = NO_RULE;
    for (uint32_t i = low; i > 0 && low - i < LOOK_BACK; i--)
        if (address < answer->ranges[i - 1].end && answer->ranges[i - 1].rule < rule)
            rule = answer->ranges[i - 1].rule;
    return rule;
}

uint32_t ta__attribution_of(uint32_t outer, uint64_t address, uint32_t module)
{
    if ((outer & TA__ATTRIBUTION_STICKY) != 0 || module == 0 || module >= MODULES_MAX || attribution.answers == NULL)
        return outer;
    const struct module_answer *answer = answer_of(module);
    uint32_t rule = answer->rule;
    if (answer->range_count != 0) {
        /* A return address lies behind its call, which may be the last instruction of a function. */
        uint64_t site = address >> 63 != 0 ? address & ~(UINT64_C(1) << 63) : address - 1;
        uint32_t by_function = rule_of_function(answer, site);
        rule = by_function < rule ? by_function : rule;
    }
    if (rule == NO_RULE)
        return outer;
    return attribution.rules[rule].domain | (attribution.rules[rule].rule->outermost ? TA__ATTRIBUTION_STICKY : 0);
}

/* ---- other rules ---- */

struct change {
    const struct ta__attribution_rule *rules;
    uint32_t count;
    const struct ta__rule_text *text;
};

static void apply(void *context)
{
    const struct change *change = context;
    for (uint32_t id = 0; id < MODULES_MAX && id <= ta__modules_count(); id++) {
        struct module_answer *answer = &attribution.answers[id];
        if (!answer->is_known)
            continue;
        ta__memory_unmap(answer->ranges, answer->range_room * sizeof *answer->ranges);
        memset(answer, 0, sizeof *answer);
    }
    uint32_t generation = (attribution.key >> GENERATION_SHIFT) + 1;
    attribution.rules = change->rules;
    attribution.count = change->count;
    attribution.text = change->text;
    ta__store_release(&attribution.key, TA__ATTRIBUTION_KEY | (generation & GENERATION_MASK) << GENERATION_SHIFT);
}

int ta__attribution_set(const struct ta__attribution_rule *rules, uint32_t count, const struct ta__rule_text *text)
{
    if (attribution.answers == NULL)
        attribution.answers = ta__memory_map(MODULES_MAX * sizeof *attribution.answers);
    struct change change = {rules, count, text};
    return attribution.answers != NULL && ta__contexts_attribute(apply, &change);
}
