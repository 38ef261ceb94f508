/* live_blocks.h: the part of live.c that lists every live block. */
#ifndef TA_SNAPSHOT_WRITE_LIVE_BLOCKS_H
#define TA_SNAPSHOT_WRITE_LIVE_BLOCKS_H

#include "trace/source.h"

/* With the world stopped: lists the blocks, and keeps the counters of this moment for the source. Without memory the
 * source stays as it was: a snapshot without blocks. */
void ta__live_blocks_take(struct ta__source *source);
/* The world goes on. */
void ta__live_blocks_sort(struct ta__source *source);
void ta__live_blocks_free(struct ta__source *source);

#endif
