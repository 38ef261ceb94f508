/* model_of.c: where a snapshot meets its model. The only file of analysis that looks into struct ta_snapshot, and the
 * place where addresses become lines: once per snapshot, unless the recording carries its symbols already. */
#include "analysis/model.h"

#include <stdlib.h>

#include "analysis/symbols.h"
#include "base/atomics.h"
#include "base/error.h"
#include "snapshot/object.h"
#include "snapshot/read.h"

/* What hangs on a snapshot: the model, and the symbolizer whose tables it refers to. */
struct attachment {
    struct ta__model *model;
    struct ta__symbolizer *symbolizer;
};

static void release(void *pointer)
{
    struct attachment *attachment = pointer;
    if (attachment == NULL)
        return;
    ta__model_free(attachment->model);
    ta__symbolizer_close(attachment->symbolizer);
    free(attachment);
}

static int has_addresses(const struct ta__view *view)
{
    for (uint32_t i = 0; i < view->frame_count; i++)
        if (view->frames[i].kind == TA__FRAME_ADDRESS)
            return 1;
    return 0;
}

static struct attachment *build(const struct ta__view *view)
{
    struct attachment *attachment = calloc(1, sizeof *attachment);
    if (attachment == NULL) {
        ta__error_set("no memory to look at the snapshot", NULL);
        return NULL;
    }
    struct ta__model_symbols symbols = {view->symbol_ranges, view->symbols, view->strings, view->string_count};
    if (view->symbol_ranges == NULL && has_addresses(view)) {
        struct ta__symbols found;
        if (ta__symbolize_view(view, NULL, &attachment->symbolizer, &found) == 0)
            symbols = (struct ta__model_symbols){found.ranges, found.symbols, found.strings, found.string_count};
    }
    attachment->model = ta__model_build(view, &symbols);
    if (attachment->model == NULL) {
        release(attachment);
        return NULL;
    }
    return attachment;
}

struct ta__model *ta__model_of(const struct ta_snapshot *snapshot)
{
    struct ta_snapshot *holder = (struct ta_snapshot *)(uintptr_t)snapshot; /* a cache, not a change */
    struct attachment *attachment = ta__load_acquire(&holder->attachment);
    if (attachment != NULL)
        return attachment->model;
    const struct ta__view *view = ta__snapshot_view(holder);
    if (view == NULL)
        return NULL;
    attachment = build(view);
    if (attachment == NULL)
        return NULL;

    /* release: publishes the model; pairs with acquire above. Of two threads that build one, the later gives way. */
    void *expected = NULL;
    ta__store_relaxed(&holder->attachment_release, release); /* every thread stores the same */
    if (!ta__cas_acq_rel(&holder->attachment, &expected, (void *)attachment)) {
        release(attachment);
        attachment = expected;
    }
    return attachment->model;
}
