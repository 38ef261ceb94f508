/* snapshot_symbols.c: see snapshot_symbols.h. Also the public face: symbols that travel in the file, and what became of modules.
 */
#include "analysis/symbols/snapshot_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model.h"
#include "analysis/analysis_domain.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "snapshot/read/read.h"

/* Set by the program before it asks; read when symbols are looked up. */
static struct {
    ta_progress_function function;
    void *user;
} progress;

void ta_symbols_set_progress(ta_progress_function function, void *user)
{
    progress.function = function;
    progress.user = user;
}

int ta__needs_symbols(const struct ta__view *view)
{
    for (uint32_t i = 0; view->symbol_ranges == NULL && i < view->frame_count; i++)
        if (view->frames[i].kind == TA__FRAME_ADDRESS)
            return 1;
    return 0;
}

struct ta__symbolized *ta__symbolize(const struct ta__view *view)
{
    TA__OWN_DOMAIN;
    struct ta__symbolizer_options options = {.progress = progress.function, .progress_context = progress.user};
    struct ta__symbolized *symbolized = ta__new_array(1, sizeof *symbolized);
    if (symbolized == NULL)
        return NULL;
    int error = ta__symbolize_view(view, &options, &symbolized->symbolizer, &symbolized->symbols);
    if (error != 0) {
        ta__fail("cannot look up symbols: %s%s", strerror(error), error == ENOMEM ? TA__MORE_MEMORY : "");
        ta__symbolized_free(symbolized);
        return NULL;
    }
    return symbolized;
}

void ta__symbolized_free(struct ta__symbolized *symbolized)
{
    if (symbolized == NULL)
        return;
    if (symbolized->symbolizer != NULL)
        ta__symbolizer_close(symbolized->symbolizer);
    free(symbolized);
}

/* ---- symbols that travel ---- */

/* The strings of the view, and behind them those of the symbols. */
static struct ta__view_string *join_strings(const struct ta__view *view, const struct ta__symbols *symbols)
{
    size_t count = (size_t)view->string_count + symbols->string_count;
    struct ta__view_string *strings = count > UINT32_MAX ? NULL : ta__new_array(count, sizeof *strings);
    if (strings == NULL)
        return NULL;
    memcpy(strings, view->strings, view->string_count * sizeof *strings);
    memcpy(strings + view->string_count, symbols->strings, symbols->string_count * sizeof *strings);
    return strings;
}

/* Name 0 stays 0, which means "unknown" in both. */
static uint32_t moved(uint32_t string, uint32_t by)
{
    return string == 0 ? 0 : string + by;
}

static struct ta_snapshot *with_symbols(const struct ta_snapshot *snapshot, const struct ta__view *view,
                                        const struct ta__symbols *symbols)
{
    struct ta__view joined = *view;
    struct ta_snapshot *result = NULL;
    struct ta__view_string *strings = join_strings(view, symbols);
    struct ta__view_symbol *rows = ta__new_array(symbols->symbol_count, sizeof *rows);
    struct ta__view_symbol_range *ranges = ta__new_array(view->frame_count, sizeof *ranges);
    if (strings != NULL && rows != NULL && ranges != NULL) {
        for (uint32_t i = 0; i < symbols->symbol_count; i++) {
            rows[i] = symbols->symbols[i];
            rows[i].file = moved(rows[i].file, view->string_count);
            rows[i].function = moved(rows[i].function, view->string_count);
            rows[i].raw_name = moved(rows[i].raw_name, view->string_count);
        }
        memcpy(ranges, symbols->ranges, view->frame_count * sizeof *ranges);
        joined.strings = strings;
        joined.string_count += symbols->string_count;
        joined.symbols = rows;
        joined.symbol_count = symbols->symbol_count;
        joined.symbol_ranges = ranges;
        result = ta__snapshot_from_view(&joined, snapshot);
    }
    free(strings);
    free(rows);
    free(ranges);
    return result;
}

struct ta_snapshot *ta_snapshot_symbolize(const struct ta_snapshot *snapshot)
{
    const struct ta__model *model = ta__model_of(snapshot);
    if (model == NULL)
        return NULL;
    return model->symbolized == NULL ? ta__snapshot_from_view(model->view, snapshot)
                                     : with_symbols(snapshot, model->view, &model->symbolized->symbols);
}

int ta_snapshot_module_symbols(const struct ta_snapshot *snapshot, size_t index, struct ta_module_symbols *module)
{
    const struct ta__model *model = ta__model_of(snapshot);
    if (model == NULL)
        return -1;
    if (index >= model->view->module_count)
        return ta__fail("no module %zu: the snapshot has %u", index, model->view->module_count);
    *module =
        (struct ta_module_symbols){.path = model->view->strings[model->view->modules[index].path].text,
                                   .state = model->view->symbol_ranges != NULL ? TA_MODULE_STORED : TA_MODULE_UNUSED,
                                   .reason = ""};
    if (model->symbolized != NULL)
        module->state = (enum ta_module_state)ta__symbolizer_module_state(model->symbolized->symbolizer,
                                                                          (uint32_t)index, &module->reason);
    return 0;
}

_Static_assert((int)TA_MODULE_LINES == (int)TA__MODULE_LINES && (int)TA_MODULE_ABSENT == (int)TA__MODULE_ABSENT &&
                   (int)TA_MODULE_UNREADABLE == (int)TA__MODULE_UNREADABLE,
               "the public states are the symbolizer's");
