/* model_of.c: where a snapshot meets its model. The only file of analysis that looks into struct ta_snapshot, and the
 * place where addresses become lines. */
#include "analysis/model.h"

#include "base/atomics.h"
#include "snapshot/object.h"
#include "snapshot/read.h"

static void release(void *model)
{
    ta__model_free(model);
}

struct ta__model *ta__model_of(const struct ta_snapshot *snapshot)
{
    struct ta_snapshot *holder = (struct ta_snapshot *)(uintptr_t)snapshot; /* a cache, not a change */
    struct ta__model *model = ta__load_acquire(&holder->model);
    if (model != NULL)
        return model;
    const struct ta__view *view = ta__snapshot_view(holder);
    if (view == NULL)
        return NULL;
    struct ta__model_symbols symbols = {view->symbol_ranges, view->symbols, view->strings, view->string_count};
    model = ta__model_build(view, &symbols);
    if (model == NULL)
        return NULL;

    /* release: publishes the model; pairs with acquire above. Of two threads that build one, the later gives way. */
    void *expected = NULL;
    ta__store_relaxed(&holder->model_release, release); /* every thread stores the same */
    if (!ta__cas_acq_rel(&holder->model, &expected, (void *)model)) {
        ta__model_free(model);
        model = expected;
    }
    return model;
}
