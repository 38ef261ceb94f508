/* loaded.c: see loaded.h. */
#include "snapshot/read/loaded.h"

#include "base/hash.h"
#include "base/memory.h"

#define LOADED_BUFFERS(loaded)                                                                                         \
    {                                                                                                                  \
        &(loaded)->strings, &(loaded)->string_bytes, &(loaded)->modules, &(loaded)->build_ids, &(loaded)->frames,      \
            &(loaded)->contexts, &(loaded)->domains, &(loaded)->threads, &(loaded)->traces, &(loaded)->options,        \
            &(loaded)->metadata, &(loaded)->symbols, &(loaded)->symbol_ranges, &(loaded)->blocks,                      \
    }

struct ta__loaded *ta__loaded_create(void)
{
    return ta__memory_map(sizeof(struct ta__loaded));
}

void ta__loaded_set_budget(struct ta__loaded *loaded, struct ta__budget *budget)
{
    struct ta__buffer *const buffers[] = LOADED_BUFFERS(loaded);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffers[i]->budget = budget;
}

void ta__loaded_destroy(struct ta__loaded *loaded)
{
    if (loaded == NULL)
        return;
    struct ta__buffer *const buffers[] = LOADED_BUFFERS(loaded);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        ta__buffer_free(buffers[i]);
    ta__memory_unmap(loaded, sizeof *loaded);
}

void ta__loaded_finish(struct ta__loaded *loaded)
{
    struct ta__view *view = &loaded->view;
    ta__loaded_set_budget(loaded, NULL); /* it belongs to the load, which ends */
    view->string_count = TA__ROW_COUNT(struct ta__view_string, loaded->strings);
    view->module_count = TA__ROW_COUNT(struct ta__view_module, loaded->modules);
    view->frame_count = TA__ROW_COUNT(struct ta__view_frame, loaded->frames);
    view->context_count = TA__ROW_COUNT(struct ta__view_context, loaded->contexts);
    view->symbol_count = TA__ROW_COUNT(struct ta__view_symbol, loaded->symbols);
    view->domain_count = TA__ROW_COUNT(struct ta__view_domain, loaded->domains);
    view->thread_count = TA__ROW_COUNT(struct ta__view_thread, loaded->threads);
    view->metadata_count = TA__ROW_COUNT(struct ta__view_pair, loaded->metadata);
    view->option_count = TA__ROW_COUNT(struct ta__view_pair, loaded->options);
    struct ta__view_string *strings = TA__ROWS(struct ta__view_string, loaded->strings);
    for (uint32_t i = 0; i < view->string_count; i++)
        strings[i].text = (const char *)loaded->string_bytes.bytes + (uintptr_t)strings[i].text;
    struct ta__view_module *modules = TA__ROWS(struct ta__view_module, loaded->modules);
    for (uint32_t i = 0; i < view->module_count; i++)
        modules[i].build_id =
            modules[i].build_id_length == 0 ? NULL : loaded->build_ids.bytes + (uintptr_t)modules[i].build_id;
    view->strings = strings;
    view->modules = modules;
    view->frames = TA__ROWS(const struct ta__view_frame, loaded->frames);
    view->contexts = TA__ROWS(const struct ta__view_context, loaded->contexts);
    view->symbols = TA__ROWS(const struct ta__view_symbol, loaded->symbols);
    view->symbol_ranges = TA__ROWS(const struct ta__view_symbol_range, loaded->symbol_ranges);
    view->traces = TA__ROWS(const struct ta__view_trace, loaded->traces);
    view->block_count = TA__ROW_COUNT(struct ta__view_block, loaded->blocks);
    view->blocks = TA__ROWS(const struct ta__view_block, loaded->blocks);
    view->domains = TA__ROWS(const struct ta__view_domain, loaded->domains);
    view->threads = TA__ROWS(const struct ta__view_thread, loaded->threads);
    view->metadata = TA__ROWS(const struct ta__view_pair, loaded->metadata);
    view->options = TA__ROWS(const struct ta__view_pair, loaded->options);
}

const char *ta__loaded_text(const struct ta__loaded *loaded, const struct ta__view_string *row)
{
    return (const char *)loaded->string_bytes.bytes + (uintptr_t)row->text;
}

uint64_t ta__loaded_string_hash(const void *table, uint32_t id)
{
    const struct ta__loaded *loaded = table;
    const struct ta__view_string *row = &TA__ROWS(const struct ta__view_string, loaded->strings)[id];
    return ta__hash_bytes(ta__loaded_text(loaded, row), row->length);
}
