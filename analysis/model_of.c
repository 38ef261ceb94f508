/* model_of.c: where a snapshot meets its model. The only file of analysis that looks into struct ta_snapshot, and the
 * place where addresses become lines. */
#include "analysis/model.h"

#include "snapshot/object.h"

static void release(void *model)
{
    ta__model_free(model);
}

struct ta__model *ta__model_of(const struct ta_snapshot *snapshot)
{
    struct ta_snapshot *holder = (struct ta_snapshot *)(uintptr_t)snapshot; /* a cache, not a change */
    if (holder->model != NULL)
        return holder->model;
    const struct ta__view *view = ta__snapshot_view(snapshot);
    if (view == NULL)
        return NULL;
    struct ta__model_symbols symbols = {view->symbol_ranges, view->symbols, view->strings, view->string_count};
    holder->model = ta__model_build(view, &symbols);
    holder->model_free = release;
    return holder->model;
}
