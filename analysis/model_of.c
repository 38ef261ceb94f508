/* model_of.c: where a snapshot meets its model: built on the first question, once per snapshot. The only file of analysis
 * that looks into struct ta_snapshot. */
#include "analysis/model.h"

#include "analysis/failure.h"
#include "analysis/symbols/snapshot_symbols.h"
#include "base/atomics.h"
#include "snapshot/format/handle.h"
#include "snapshot/read/read.h"

static void release(void *model)
{
    ta__model_free(model);
}

/* Addresses become lines here, unless the recording carries its symbols already. */
static struct ta__model *build(const struct ta__view *view)
{
    struct ta__model_symbols symbols = {view->symbol_ranges, view->symbols, view->strings, view->string_count};
    struct ta__symbolized *symbolized = NULL;
    if (ta__needs_symbols(view)) {
        symbolized = ta__symbolize(view);
        if (symbolized == NULL)
            return NULL;
        symbols = (struct ta__model_symbols){symbolized->symbols.ranges, symbolized->symbols.symbols,
                                             symbolized->symbols.strings, symbolized->symbols.string_count};
    }
    struct ta__model *model = ta__model_build(view, &symbols);
    if (model == NULL)
        ta__symbolized_free(symbolized);
    else
        model->symbolized = symbolized;
    return model;
}

struct ta__model *ta__model_of(const struct ta_snapshot *snapshot)
{
    struct ta_snapshot *holder = (struct ta_snapshot *)(uintptr_t)snapshot; /* a cache, not a change */
    if (holder == NULL) {
        ta__fail("there is no snapshot: NULL");
        return NULL;
    }
    struct ta__model *model = ta__load_acquire(&holder->attachment);
    if (model != NULL)
        return model;
    const struct ta__view *view = ta__snapshot_view(holder);
    if (view == NULL)
        return NULL;
    model = build(view);
    if (model == NULL)
        return NULL;

    /* release: publishes the model; pairs with acquire above. Of two threads that build one, the later gives way. */
    void *expected = NULL;
    ta__store_relaxed(&holder->attachment_release, release); /* every thread stores the same */
    if (!ta__cas_acq_rel(&holder->attachment, &expected, (void *)model)) {
        ta__model_free(model);
        model = expected;
    }
    return model;
}
