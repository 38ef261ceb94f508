/* read.h: the reading face — how analysis gets at a snapshot, and makes new ones.
 *
 * Needs no runtime: works on files, on memory, and on snapshots taken by the runtime in the same process. */
#ifndef TA_SNAPSHOT_READ_H
#define TA_SNAPSHOT_READ_H

#include "base/attributes.h"
#include "snapshot/view.h"
#include "tracealloc/snapshot.h"

/* The snapshot's tables, decoded on the first call; any thread. Valid as long as the snapshot. NULL with
 * ta__error_set. */
const struct ta__view *ta__snapshot_view(struct ta_snapshot *snapshot);

/* A snapshot of its own from any view that obeys view.h (parents before children, ids in range, string 0 ""): a deep
 * copy. `like`, unless NULL, gives its metadata; view->metadata is not looked at. For filtered and symbolised
 * snapshots. NULL with ta__error_set. */
TA_NODISCARD struct ta_snapshot *ta__snapshot_from_view(const struct ta__view *view, const struct ta_snapshot *like);

/* What ta_snapshot_set_load_limit set. */
size_t ta__snapshot_load_limit(void);

#endif
