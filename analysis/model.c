/* model.c: see model.h. */
#include "analysis/model.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "analysis/symbols/snapshot_symbols.h"
#include "base/hash.h"
#include "base/index.h"

#define NONE         UINT32_MAX
#define LOGICALS_MAX (1u << 26) /* no program comes near; a file may claim it with few bytes, by sharing symbols */

struct builder {
    struct ta__model *model;
    const struct ta__view *view;
    const struct ta__model_symbols *symbols;
    struct ta__index name_index, location_index;
    uint32_t *name_of_string; /* memo: the view's string → name */
    uint32_t *name_of_symbol_string;
};

/* ---- names and locations, each once ---- */

static uint64_t hash_of_name(const void *model, uint32_t row)
{
    const struct ta__name *name = &((const struct ta__model *)model)->names[row];
    return ta__hash_bytes(name->text, name->length);
}

static int is_same_name(const void *model, uint32_t row, const void *wanted)
{
    const struct ta__name *name = &((const struct ta__model *)model)->names[row], *other = wanted;
    return name->length == other->length && memcmp(name->text, other->text, name->length) == 0;
}

static int intern_name(struct builder *builder, const char *text, size_t length, uint32_t *id)
{
    struct ta__model *model = builder->model;
    const struct ta__name name = {text, length};
    if (ta__index_reserve(&builder->name_index, model->name_count, hash_of_name, model) != 0)
        return ta__fail_memory();
    uint32_t *slot = ta__index_find(&builder->name_index, ta__hash_bytes(text, length), is_same_name, model, &name);
    if (*slot == 0) {
        if (ta__grow(&model->names, &model->name_capacity, model->name_count + 1, sizeof *model->names) != 0)
            return -1;
        model->names[model->name_count++] = name;
        *slot = (uint32_t)model->name_count;
    }
    *id = *slot - 1;
    return 0;
}

static uint64_t hash_location(struct ta__location location)
{
    return ta__hash_word((uint64_t)location.name << 32 | location.line);
}

static uint64_t hash_of_location(const void *model, uint32_t row)
{
    return hash_location(((const struct ta__model *)model)->locations[row]);
}

static int is_same_location(const void *model, uint32_t row, const void *wanted)
{
    const struct ta__location *location = &((const struct ta__model *)model)->locations[row], *other = wanted;
    return location->name == other->name && location->line == other->line;
}

static int intern_location(struct builder *builder, struct ta__location location, uint32_t *id)
{
    struct ta__model *model = builder->model;
    if (ta__index_reserve(&builder->location_index, model->location_count, hash_of_location, model) != 0)
        return ta__fail_memory();
    uint32_t *slot =
        ta__index_find(&builder->location_index, hash_location(location), is_same_location, model, &location);
    if (*slot == 0) {
        if (ta__grow(&model->locations, &model->location_capacity, model->location_count + 1,
                     sizeof *model->locations) != 0)
            return -1;
        model->locations[model->location_count++] = location;
        *slot = (uint32_t)model->location_count;
    }
    *id = *slot - 1;
    return 0;
}

static int name_of(struct builder *builder, uint32_t *memo, const struct ta__view_string *strings, uint32_t string,
                   uint32_t *id)
{
    if (memo[string] == NONE && intern_name(builder, strings[string].text, strings[string].length, &memo[string]) != 0)
        return -1;
    *id = memo[string];
    return 0;
}

static int string_name(struct builder *builder, uint32_t string, uint32_t *id)
{
    return name_of(builder, builder->name_of_string, builder->view->strings, string, id);
}

static int symbol_name(struct builder *builder, uint32_t string, uint32_t *id)
{
    return name_of(builder, builder->name_of_symbol_string, builder->symbols->strings, string, id);
}

/* A text that the model owns, as a name. */
static int intern_label(struct builder *builder, struct ta__text *text, uint32_t *id)
{
    struct ta__model *model = builder->model;
    if (text->failed ||
        ta__grow(&model->labels, &model->label_capacity, model->label_count + 1, sizeof *model->labels) != 0) {
        ta__text_free(text);
        return -1;
    }
    model->labels[model->label_count++] = text->bytes;
    int status = intern_name(builder, text->bytes, text->length, id);
    *text = (struct ta__text){0};
    return status;
}

static int add_logical(struct builder *builder, struct ta__logical logical, uint32_t file, uint32_t line)
{
    struct ta__model *model = builder->model;
    if (model->logical_count == LOGICALS_MAX)
        return ta__fail("the snapshot has more than %u frames after inlining", LOGICALS_MAX);
    if (intern_location(builder, (struct ta__location){file, line}, &logical.location) != 0 ||
        ta__grow(&model->logicals, &model->logical_capacity, model->logical_count + 1, sizeof *model->logicals) != 0)
        return -1;
    model->logicals[model->logical_count++] = logical;
    return 0;
}

static int add_symbols(struct builder *builder, const struct ta__view_symbol_range *range, uint32_t module,
                       uint64_t address)
{
    for (uint32_t i = 0; i < range->count; i++) {
        const struct ta__view_symbol *symbol = &builder->symbols->symbols[range->first + i];
        struct ta__logical logical = {.module = module, .offset = symbol->offset, .address = address};
        uint32_t file;
        if (symbol_name(builder, symbol->file, &file) != 0 ||
            symbol_name(builder, symbol->function, &logical.function) != 0 ||
            symbol_name(builder, symbol->raw_name, &logical.raw_name) != 0)
            return -1;
        logical.flags = (symbol->flags & TA__SYMBOL_INLINED ? TA_FRAME_INLINED : 0u) |
                        (symbol->flags & TA__SYMBOL_NO_LINES ? TA_FRAME_NO_LINES : 0u);
        if (add_logical(builder, logical, file, symbol->line) != 0)
            return -1;
    }
    return 0;
}

static int add_address(struct builder *builder, uint32_t index)
{
    const struct ta__view_frame *frame = &builder->view->frames[index];
    uint32_t module = 0;
    if (frame->module != 0 && string_name(builder, builder->view->modules[frame->module - 1].path, &module) != 0)
        return -1;
    if (builder->symbols->ranges != NULL && builder->symbols->ranges[index].count > 0)
        return add_symbols(builder, &builder->symbols->ranges[index], module, frame->address);

    struct ta__logical logical = {.module = module, .address = frame->address, .flags = TA_FRAME_NO_LINES};
    return add_logical(builder, logical, module != 0 ? module : builder->model->unknown_name, 0);
}

static int add_frames(struct builder *builder)
{
    struct ta__model *model = builder->model;
    const struct ta__view *view = builder->view;
    uint32_t overflow;
    if (add_logical(builder, (struct ta__logical){.flags = TA_FRAME_NO_LINES}, model->unknown_name, 0) != 0 ||
        intern_name(builder, "<overflow>", strlen("<overflow>"), &overflow) != 0)
        return -1;

    for (uint32_t i = 0; i < view->frame_count; i++) {
        const struct ta__view_frame *frame = &view->frames[i];
        uint32_t file;
        int status;
        model->frames[i].first = (uint32_t)model->logical_count;
        if (frame->kind == TA__FRAME_ADDRESS)
            status = add_address(builder, i);
        else if (frame->kind == TA__FRAME_SOURCE)
            status = string_name(builder, frame->file, &file) != 0
                         ? -1
                         : add_logical(builder, (struct ta__logical){0}, file, frame->line);
        else
            status = add_logical(builder, (struct ta__logical){.flags = TA_FRAME_NO_LINES}, overflow, 0);
        if (status != 0)
            return -1;
        model->frames[i].count = (uint32_t)model->logical_count - model->frames[i].first;
    }
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static const char *name_of_domain(const struct ta__view *view, uint32_t number)
{
    for (uint32_t i = 0; i < view->domain_count; i++)
        if (view->domains[i].number == number)
            return view->strings[view->domains[i].name].text;
    return "";
}

static int add_domains(struct builder *builder)
{
    struct ta__model *model = builder->model;
    const struct ta__view *view = builder->view;
    size_t capacity = 0, traces = (size_t)view->trace_count + view->gone_trace_count;
    for (size_t i = 0; i < traces; i++) {
        uint32_t number = view->traces[i].domain;
        if (i > 0 && number == view->traces[i - 1].domain)
            continue;
        if (ta__grow(&model->domain_numbers, &capacity, model->domain_count + 1, sizeof *model->domain_numbers) != 0)
            return -1;
        model->domain_numbers[model->domain_count++] = number;
    }
    if (ta__sort(model->domain_numbers, model->domain_count, sizeof *model->domain_numbers, compare_numbers) != 0)
        return -1;
    size_t distinct = 0;
    for (size_t i = 0; i < model->domain_count; i++)
        if (i == 0 || model->domain_numbers[i] != model->domain_numbers[distinct - 1])
            model->domain_numbers[distinct++] = model->domain_numbers[i];
    model->domain_count = distinct;

    model->domain_names = ta__new_array(distinct, sizeof *model->domain_names);
    if (model->domain_names == NULL)
        return -1;
    for (size_t i = 0; i < distinct; i++) {
        struct ta__text text = {0};
        const char *name = name_of_domain(view, model->domain_numbers[i]);
        ta__text_add_format(&text, "domain %u", model->domain_numbers[i]);
        if (*name != '\0') {
            ta__text_add_string(&text, " ");
            ta__text_add_string(&text, name);
        }
        if (intern_label(builder, &text, &model->domain_names[i]) != 0)
            return -1;
    }
    return 0;
}

/* "make[123]", as people write it. */
static int add_process(struct builder *builder, uint32_t pid, const struct ta__view_string *name, uint32_t *label)
{
    struct ta__text text = {0};
    const char *slash = memrchr(name->text, '/', strcspn(name->text, " "));
    const char *start = slash == NULL ? name->text : slash + 1;
    size_t length = name->length - (size_t)(start - name->text);
    while (length > 0 && start[length - 1] == ' ') /* a command line that was cut */
        length--;
    ta__text_add(&text, start, length);
    ta__text_add_format(&text, "[%u]", pid);
    return intern_label(builder, &text, label);
}

static int add_threads(struct builder *builder)
{
    struct ta__model *model = builder->model;
    const struct ta__view *view = builder->view;
    model->thread_names = ta__new_array((size_t)view->thread_count + 1, sizeof *model->thread_names);
    model->process_names = ta__new_array((size_t)view->thread_count + 1, sizeof *model->process_names);
    if (model->thread_names == NULL || model->process_names == NULL ||
        add_process(builder, view->pid, &view->strings[view->program], &model->process_names[0]) != 0)
        return -1;
    model->thread_names[0] = model->unknown_name;
    for (uint32_t i = 0; i < view->thread_count; i++) {
        struct ta__text text = {0};
        const struct ta__view_string *name = &view->strings[view->threads[i].name];
        if (add_process(builder, view->threads[i].tid, name, &model->process_names[i + 1]) != 0)
            return -1;
        if ((view->threads[i].flags & TA__THREAD_IS_PROCESS) != 0) {
            model->has_processes = 1;
            model->thread_names[i + 1] = model->process_names[i + 1];
            continue;
        }
        ta__text_add_format(&text, "thread %u", view->threads[i].tid);
        if (name->length > 0) {
            ta__text_add_string(&text, " ");
            ta__text_add(&text, name->text, name->length);
        }
        if (intern_label(builder, &text, &model->thread_names[i + 1]) != 0)
            return -1;
    }
    return 0;
}

static uint32_t *new_memo(uint32_t count)
{
    uint32_t *memo = ta__new_array(count, sizeof *memo);
    if (memo != NULL)
        memset(memo, 0xFF, (size_t)count * sizeof *memo);
    return memo;
}

static int build(struct builder *builder)
{
    struct ta__model *model = builder->model;
    uint32_t empty;
    builder->name_of_string = new_memo(builder->view->string_count);
    builder->name_of_symbol_string = new_memo(builder->symbols->string_count);
    model->frames = ta__new_array(builder->view->frame_count, sizeof *model->frames);
    if (model->frames == NULL || builder->name_of_string == NULL || builder->name_of_symbol_string == NULL ||
        intern_name(builder, "", 0, &empty) != 0 ||
        intern_name(builder, "<unknown>", strlen("<unknown>"), &model->unknown_name) != 0)
        return -1;
    if (add_frames(builder) != 0 || add_domains(builder) != 0)
        return -1;
    return add_threads(builder);
}

struct ta__model *ta__model_build(const struct ta__view *view, const struct ta__model_symbols *symbols)
{
    struct ta__model *model = ta__new_array(1, sizeof *model);
    if (model == NULL)
        return NULL;
    model->view = view;
    struct builder builder = {.model = model, .view = view, .symbols = symbols};
    int status = build(&builder);
    free(builder.name_of_string);
    free(builder.name_of_symbol_string);
    ta__index_free(&builder.name_index);
    ta__index_free(&builder.location_index);
    if (status != 0) {
        ta__model_free(model);
        return NULL;
    }
    return model;
}

void ta__model_free(struct ta__model *model)
{
    if (model == NULL)
        return;
    for (size_t i = 0; i < model->label_count; i++)
        free(model->labels[i]);
    free(model->labels);
    free(model->names);
    free(model->locations);
    free(model->logicals);
    free(model->frames);
    free(model->domain_numbers);
    free(model->domain_names);
    free(model->thread_names);
    free(model->process_names);
    ta_own_rules_free(model->own_rules);
    ta__symbolized_free(model->symbolized);
    free(model);
}

size_t ta__model_domain(const struct ta__model *model, uint32_t number)
{
    size_t low = 0, high = model->domain_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (model->domain_numbers[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void ta__model_frame(const struct ta__model *model, uint32_t index, struct ta_frame *frame)
{
    const struct ta__logical *logical = &model->logicals[index];
    const struct ta__location *location = &model->locations[logical->location];
    *frame = (struct ta_frame){
        .filename = model->names[location->name].text,
        .filename_length = model->names[location->name].length,
        .lineno = location->line,
        .flags = logical->flags,
        .function = model->names[logical->function].text,
        .raw_name = model->names[logical->raw_name].text,
        .module = model->names[logical->module].text,
        .offset = logical->offset,
        .address = logical->address,
    };
}
