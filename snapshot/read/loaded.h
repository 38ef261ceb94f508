/* loaded.h: a view with the memory behind it. Reading side; needs no runtime. */
#ifndef TA_SNAPSHOT_READ_LOADED_H
#define TA_SNAPSHOT_READ_LOADED_H

#include "snapshot/format/buffer.h"
#include "snapshot/format/view.h"

/* Rows are appended to the buffers while a recording is decoded or a snapshot is built. Until ta__loaded_finish a string
 * and a build id hold their offset instead of their address, because buffers move. */
struct ta__loaded {
    struct ta__view view;
    struct ta__buffer strings, string_bytes, modules, build_ids, frames, contexts, domains, threads, traces, options,
        metadata, symbols, symbol_ranges, blocks;
};

/* NULL without memory. */
TA_NODISCARD struct ta__loaded *ta__loaded_create(void);
void ta__loaded_destroy(struct ta__loaded *loaded);
/* What its buffers ask for counts against the budget; NULL: there is none. */
void ta__loaded_set_budget(struct ta__loaded *loaded, struct ta__budget *budget);
/* Of a string whose text is an offset still; the hash is a base/index.h's, of the string's number in a struct ta__loaded. */
const char *ta__loaded_text(const struct ta__loaded *loaded, const struct ta__view_string *row);
uint64_t ta__loaded_string_hash(const void *table, uint32_t id);
/* Points the view at the buffers, which must not grow any more, and ends the budget. */
void ta__loaded_finish(struct ta__loaded *loaded);

#endif
