/* tables.h: how each table becomes chunks — shared by the writer of running programs and the writer of loaded
 * snapshots.
 *
 * Each call writes as many chunks as the rows need and nothing when there are none. The rows are those of view.h. */
#ifndef TA_SNAPSHOT_FORMAT_TABLES_H
#define TA_SNAPSHOT_FORMAT_TABLES_H

#include "snapshot/format/chunks.h"
#include "snapshot/format/predict.h"
#include "snapshot/format/view.h"

/* What later rows are written relative to; begins zeroed, lives as long as the series. */
struct ta__tables {
    struct ta__predict predict;
    struct ta__buffer module_last; /* uint64_t per tag: last address written */
    uint32_t last_file, last_line;
    uint32_t last_leaf_context;
};
void ta__tables_free(struct ta__tables *tables);

TA_NODISCARD int ta__put_fields(struct ta__chunks *chunks, const uint64_t values[TA__FIELD_LAST + 1], int reset);
/* strings[0] gets the id `first`. */
TA_NODISCARD int ta__put_strings(struct ta__chunks *chunks, const struct ta__view_string *strings, uint32_t first,
                                 uint32_t count);
/* rows[i] has the index indices[i], or i when `indices` is NULL. */
TA_NODISCARD int ta__put_modules(struct ta__chunks *chunks, const struct ta__view_module *rows, const uint32_t *indices,
                                 uint32_t count);
TA_NODISCARD int ta__put_domains(struct ta__chunks *chunks, const struct ta__view_domain *rows, const uint32_t *indices,
                                 uint32_t count);
TA_NODISCARD int ta__put_threads(struct ta__chunks *chunks, const struct ta__view_thread *rows, const uint32_t *indices,
                                 uint32_t count);
TA_NODISCARD int ta__put_pairs(struct ta__chunks *chunks, enum ta__chunk_kind kind, const struct ta__view_pair *pairs,
                               uint32_t count);
/* `frames` and `contexts` are the whole tables; rows first … first + count - 1 are written. */
TA_NODISCARD int ta__put_frames(struct ta__chunks *chunks, struct ta__tables *tables,
                                const struct ta__view_frame *frames, uint32_t first, uint32_t count);
TA_NODISCARD int ta__put_contexts(struct ta__chunks *chunks, struct ta__tables *tables,
                                  const struct ta__view_context *contexts, uint32_t first, uint32_t count,
                                  uint32_t frame_count);

/* `rows` ascend by address. `owners`: how many leaves and traces the entry has, which row->trace is a number of. Also
 * without rows a section is written: the entry says which blocks it has. */
TA_NODISCARD int ta__put_blocks(struct ta__chunks *chunks, const struct ta__view_block *rows, uint32_t count,
                                uint32_t owners);

#endif
