/* read.h: the reading face — how analysis gets at a snapshot, and makes new ones.
 *
 * Needs no runtime: works on files, on memory, and on snapshots taken by the runtime in the same process. */
#ifndef TA_SNAPSHOT_READ_READ_H
#define TA_SNAPSHOT_READ_READ_H

#include "base/attributes.h"
#include "snapshot/format/view.h"
#include "tracealloc/snapshot.h"

/* The snapshot's tables, decoded on the first call; any thread. Valid as long as the snapshot. NULL with
 * ta__error_set. */
const struct ta__view *ta__snapshot_view(const struct ta_snapshot *snapshot);

/* A snapshot of tables that are finished, which it takes over, also when it fails. NULL with ta__error_set. */
struct ta__loaded;
TA_NODISCARD struct ta_snapshot *ta__snapshot_wrap(struct ta__loaded *loaded);

/* A snapshot of its own from any view that obeys view.h (parents before children, ids in range, string 0 ""): a deep
 * copy. `like`, unless NULL, gives its metadata; view->metadata is not looked at. For filtered and symbolised
 * snapshots. NULL with ta__error_set. */
TA_NODISCARD struct ta_snapshot *ta__snapshot_from_view(const struct ta__view *view, const struct ta_snapshot *like);

/* A snapshot built trace by trace. Names and frames are numbered as they come, equal ones alike; all that fail set the
 * error. `finish` ends the builder, whatever it answers; NULL may be destroyed. */
struct ta__snapshot_builder;
struct ta__built_trace {
    uint32_t domain;
    int32_t total_nframe;   /* -1 = unknown */
    uint64_t size, count;   /* of all blocks; at least 1 */
    const uint32_t *frames; /* most recent first */
    size_t nframe;
};
struct ta__snapshot_builder *ta__snapshot_builder_create(void);
void ta__snapshot_builder_destroy(struct ta__snapshot_builder *builder);
TA_NODISCARD int ta__snapshot_builder_name(struct ta__snapshot_builder *builder, const char *file, size_t length,
                                           uint32_t *name);
TA_NODISCARD int ta__snapshot_builder_frame(struct ta__snapshot_builder *builder, uint32_t name, uint32_t line,
                                            uint32_t *frame);
TA_NODISCARD int ta__snapshot_builder_add(struct ta__snapshot_builder *builder, const struct ta__built_trace *trace);
/* What was taken for the most recent frame of each trace is its oldest. */
TA_NODISCARD int ta__snapshot_builder_turn_around(struct ta__snapshot_builder *builder);
struct ta_snapshot *ta__snapshot_builder_finish(struct ta__snapshot_builder *builder, uint32_t traceback_limit);

/* The same for what was read of a process: rows as they stand in a view, whose strings are names of the builder. Traces
 * with live blocks come first; view->gone_trace_count says how many are not. */
struct ta__buffer;
TA_NODISCARD int ta__snapshot_builder_address(struct ta__snapshot_builder *builder, uint64_t address, uint32_t module,
                                              uint32_t *frame);
TA_NODISCARD int ta__snapshot_builder_overflow(struct ta__snapshot_builder *builder, uint32_t *frame);
TA_NODISCARD int ta__snapshot_builder_context(struct ta__snapshot_builder *builder, uint32_t parent, uint32_t frame,
                                              uint32_t *context);
TA_NODISCARD int ta__snapshot_builder_module(struct ta__snapshot_builder *builder,
                                             const struct ta__view_module *module);
TA_NODISCARD int ta__snapshot_builder_domain(struct ta__snapshot_builder *builder,
                                             const struct ta__view_domain *domain);
TA_NODISCARD int ta__snapshot_builder_thread(struct ta__snapshot_builder *builder,
                                             const struct ta__view_thread *thread);
TA_NODISCARD int ta__snapshot_builder_option(struct ta__snapshot_builder *builder, const struct ta__view_pair *option);
TA_NODISCARD int ta__snapshot_builder_trace(struct ta__snapshot_builder *builder, const struct ta__view_trace *trace);
/* Facts of the entry are written here; the blocks, struct ta__view_block, there. */
struct ta__view *ta__snapshot_builder_view(struct ta__snapshot_builder *builder);
struct ta__buffer *ta__snapshot_builder_blocks(struct ta__snapshot_builder *builder);
struct ta_snapshot *ta__snapshot_builder_finish_live(struct ta__snapshot_builder *builder);

/* The last entry with this mark, or this reason; -1 with the error when there is none. */
long ta__recording_find(const char *path, const char *text);
/* What ta_snapshot_set_load_limit set. */
size_t ta__snapshot_load_limit(void);

#endif
