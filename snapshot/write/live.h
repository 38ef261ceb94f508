/* live.h: the running process as a source of snapshots.
 *
 * The only file of the writing side that looks at trace and alloc is live.c; everything else sees a struct ta__source.
 */
#ifndef TA_SNAPSHOT_WRITE_LIVE_H
#define TA_SNAPSHOT_WRITE_LIVE_H

#include "base/attributes.h"
#include "trace/source.h"

/* 0; or -1 with ta__error_set when the program is not being traced. The counts in it are read in an order that leaves
 * no id dangling: leaves first, then the tables that leaves name, then the tables that those name. */
TA_NODISCARD int ta__source_open(struct ta__source *source);
/* The same; where the option `blocks` says so, with every live block: then the counters and the blocks are of one moment,
 * in which all other threads were held outside of the allocator. */
TA_NODISCARD int ta__source_open_whole(struct ta__source *source);
void ta__source_close(struct ta__source *source);
/* How many rows of contexts and leaves a source would have: what a snapshot costs grows with them. */
uint64_t ta__source_rows(void);
/* A snapshot could not be taken or written: ta_get_health says so. */
void ta__source_note_failure(void);

#endif
