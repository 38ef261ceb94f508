/* chunks.h: writes a recording chunk by chunk — headers, columns, entries, the index.
 *
 * Knows the frame of the format (format.h), not what stands in the tables: snapshot/format/tables.h does. Errors are sticky:
 * after the first one every call answers -1, `sink.error` says why, and the caller undoes the entry. */
#ifndef TA_SNAPSHOT_FORMAT_CHUNKS_H
#define TA_SNAPSHOT_FORMAT_CHUNKS_H

#include "base/bytes.h"
#include "snapshot/format/buffer.h"
#include "snapshot/format/codec.h"
#include "snapshot/format/format.h"
#include "snapshot/format/sink.h"

#define TA__COLUMNS_MAX 10

/* What the index says about an entry. */
struct ta__index_row {
    uint64_t offset, time_ns, current_bytes, peak_bytes, traces;
    uint32_t reset;
    uint32_t stays; /* a mark that somebody set: not in the file, for thinning */
};

struct ta__chunks {
    struct ta__sink sink;
    struct ta__coder coder;
    struct ta__buffer raw, stored;
    struct ta__buffer columns[TA__COLUMNS_MAX];
    uint8_t *at[TA__COLUMNS_MAX]; /* where the next value of a column goes */
    unsigned column_count;
    struct ta__buffer index; /* of struct ta__index_row */
    uint32_t entry;          /* number of the entry being written, or of the next one */
    uint32_t chunk_count;    /* in this entry */
    uint64_t digest;         /* of the headers of this entry's chunks */
    uint64_t entry_offset;
    struct ta__pool pool; /* of all these buffers, and of a writer's */
};

/* Takes over the sink (memory or descriptor). Writes the file header. 0, or -1. */
TA_NODISCARD int ta__chunks_open(struct ta__chunks *chunks, const struct ta__sink *sink, uint32_t optional_features);
/* Frees everything but a memory sink's bytes, which the caller has taken, and the descriptor. */
void ta__chunks_close(struct ta__chunks *chunks);

TA_NODISCARD int ta__chunk_begin(struct ta__chunks *chunks);
TA_NODISCARD int ta__chunk_end(struct ta__chunks *chunks, enum ta__chunk_kind kind, uint16_t flags);
TA_NODISCARD int ta__raw_varint(struct ta__chunks *chunks, uint64_t value);
TA_NODISCARD int ta__raw_bytes(struct ta__chunks *chunks, const void *data, size_t length);

/* `count` columns with room for `rows` numbers each; values go to chunks->at[i] by ta__put_varint. The end appends them
 * to the raw payload, each after its length. */
TA_NODISCARD int ta__columns_begin(struct ta__chunks *chunks, unsigned count, size_t rows);
TA_NODISCARD int ta__columns_end(struct ta__chunks *chunks);

TA_INLINE void ta__column_put(struct ta__chunks *chunks, unsigned column, uint64_t value)
{
    chunks->at[column] = ta__put_varint(chunks->at[column], value);
}

TA_INLINE void ta__column_put_signed(struct ta__chunks *chunks, unsigned column, uint64_t difference)
{
    ta__column_put(chunks, column, ta__zigzag((int64_t)difference));
}

void ta__entry_begin(struct ta__chunks *chunks);
/* Writes END: from here on the entry counts. `row` goes to the index (its offset is filled in here). */
TA_NODISCARD int ta__entry_end(struct ta__chunks *chunks, struct ta__index_row *row);
/* INDEX and TRAILER. */
TA_NODISCARD int ta__chunks_seal(struct ta__chunks *chunks);

#endif
