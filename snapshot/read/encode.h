/* encode.h: writes a view as a recording of one entry. Reading side: for loaded, filtered and built snapshots. */
#ifndef TA_SNAPSHOT_READ_ENCODE_H
#define TA_SNAPSHOT_READ_ENCODE_H

#include "snapshot/format/handle.h"

/* What ta_snapshot_dump and ta_snapshot_free call for snapshots that have a view. */
extern const struct ta__snapshot_operations ta__view_operations;

#endif
