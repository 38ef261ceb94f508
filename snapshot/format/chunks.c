/* chunks.c: see chunks.h. */
#include "snapshot/format/chunks.h"

#include <errno.h>

#include "base/hash.h"

static int out_of_memory(struct ta__chunks *chunks)
{
    if (chunks->sink.error == 0)
        chunks->sink.error = ENOMEM;
    return -1;
}

/* A memory sink's bytes belong to the caller. */
static void open_pool(struct ta__chunks *chunks)
{
    ta__pool_open(&chunks->pool);
    chunks->raw.pool = chunks->stored.pool = chunks->index.pool = &chunks->pool;
    if (chunks->sink.descriptor >= 0)
        chunks->sink.memory.pool = &chunks->pool;
    for (unsigned i = 0; i < TA__COLUMNS_MAX; i++)
        chunks->columns[i].pool = &chunks->pool;
}

int ta__chunks_open(struct ta__chunks *chunks, const struct ta__sink *sink, uint32_t optional_features)
{
    memset(chunks, 0, sizeof *chunks);
    chunks->sink = *sink;
    if (ta__compressor_open(&chunks->coder) != 0)
        return out_of_memory(chunks);
    open_pool(chunks);
    uint8_t header[TA__FILE_HEADER_LENGTH] = {0};
    memcpy(header, TA__FILE_MAGIC, TA__FILE_MAGIC_LENGTH);
    ta__put_u16(header + 8, TA__FILE_VERSION);
    ta__put_u16(header + 10, TA__FILE_HEADER_LENGTH);
    ta__put_u32(header + 16, optional_features);
    ta__put_u32(header + 28, (uint32_t)ta__hash_bytes(header, 28));
    return ta__sink_write(&chunks->sink, header, sizeof header) == 0 ? ta__sink_flush(&chunks->sink) : -1;
}

void ta__chunks_close(struct ta__chunks *chunks)
{
    ta__coder_close(&chunks->coder);
    ta__buffer_free(&chunks->raw);
    ta__buffer_free(&chunks->stored);
    ta__buffer_free(&chunks->index);
    if (chunks->sink.descriptor >= 0)
        ta__buffer_free(&chunks->sink.memory);
    for (unsigned i = 0; i < TA__COLUMNS_MAX; i++)
        ta__buffer_free(&chunks->columns[i]);
    ta__pool_close(&chunks->pool);
}

int ta__chunk_begin(struct ta__chunks *chunks)
{
    chunks->raw.length = 0;
    return chunks->sink.error == 0 ? 0 : -1;
}

int ta__raw_varint(struct ta__chunks *chunks, uint64_t value)
{
    if (ta__buffer_reserve(&chunks->raw, TA__VARINT_MAX) != 0)
        return out_of_memory(chunks);
    uint8_t *at = chunks->raw.bytes + chunks->raw.length;
    chunks->raw.length += (size_t)(ta__put_varint(at, value) - at);
    return 0;
}

int ta__raw_bytes(struct ta__chunks *chunks, const void *data, size_t length)
{
    return ta__buffer_put(&chunks->raw, data, length) == 0 ? 0 : out_of_memory(chunks);
}

int ta__columns_begin(struct ta__chunks *chunks, unsigned count, size_t rows)
{
    chunks->column_count = count;
    for (unsigned i = 0; i < count; i++) {
        chunks->columns[i].length = 0;
        if (ta__buffer_reserve(&chunks->columns[i], rows * TA__VARINT_MAX + 1) != 0)
            return out_of_memory(chunks);
        chunks->at[i] = chunks->columns[i].bytes;
    }
    return 0;
}

int ta__columns_end(struct ta__chunks *chunks)
{
    for (unsigned i = 0; i < chunks->column_count; i++) {
        size_t length = (size_t)(chunks->at[i] - chunks->columns[i].bytes);
        if (ta__raw_varint(chunks, length) != 0 || ta__raw_bytes(chunks, chunks->columns[i].bytes, length) != 0)
            return -1;
    }
    return 0;
}

int ta__chunk_end(struct ta__chunks *chunks, enum ta__chunk_kind kind, uint16_t flags)
{
    size_t length = chunks->raw.length;
    if (chunks->sink.error != 0)
        return -1;
    if (length > TA__CHUNK_RAW_MAX) {
        chunks->sink.error = EOVERFLOW;
        return -1;
    }
    size_t room = (flags & TA__CHUNK_PLAIN) ? length : ta__compress_bound(length);
    chunks->stored.length = 0;
    if (ta__buffer_reserve(&chunks->stored, TA__CHUNK_HEADER_LENGTH + room) != 0)
        return out_of_memory(chunks);
    uint8_t *header = chunks->stored.bytes;
    uint8_t *payload = header + TA__CHUNK_HEADER_LENGTH;
    size_t stored = length;
    if (flags & TA__CHUNK_PLAIN) {
        if (length > 0)
            memcpy(payload, chunks->raw.bytes, length);
    } else {
        stored = ta__compress(&chunks->coder, payload, room, chunks->raw.bytes, length);
        if (stored == 0)
            return out_of_memory(chunks);
    }
    ta__put_u32(header, TA__CHUNK_MAGIC);
    ta__put_u16(header + 4, (uint16_t)kind);
    ta__put_u16(header + 6, flags);
    ta__put_u32(header + 8, chunks->entry);
    ta__put_u32(header + 12, (uint32_t)stored);
    ta__put_u32(header + 16, (uint32_t)length);
    ta__put_u32(header + 20, 0);
    ta__put_u32(header + 24, (uint32_t)ta__hash_bytes(payload, stored));
    uint64_t hash = ta__hash_bytes(header, 28);
    ta__put_u32(header + 28, (uint32_t)hash);
    chunks->chunk_count++;
    chunks->digest = ta__hash_roll(chunks->digest, hash);
    return ta__sink_write(&chunks->sink, header, TA__CHUNK_HEADER_LENGTH + stored);
}

void ta__entry_begin(struct ta__chunks *chunks)
{
    chunks->chunk_count = 0;
    chunks->digest = 0;
    chunks->entry_offset = chunks->sink.written;
}

int ta__entry_end(struct ta__chunks *chunks, struct ta__index_row *row)
{
    uint8_t digest[8];
    row->offset = chunks->entry_offset;
    ta__put_u64(digest, chunks->digest);
    if (ta__chunk_begin(chunks) != 0 || ta__raw_bytes(chunks, digest, sizeof digest) != 0 ||
        ta__raw_varint(chunks, chunks->chunk_count) != 0 || ta__raw_varint(chunks, row->traces) != 0 ||
        ta__chunk_end(chunks, TA__KIND_END, TA__CHUNK_REQUIRED | TA__CHUNK_PLAIN) != 0 ||
        ta__sink_flush(&chunks->sink) != 0)
        return -1;
    if (ta__buffer_put(&chunks->index, row, sizeof *row) != 0)
        return out_of_memory(chunks);
    chunks->entry++;
    return 0;
}

/* A very long series keeps its index within one chunk by leaving it out: readers scan then. */
enum { INDEX_ROWS_MAX = 200000 };

int ta__chunks_seal(struct ta__chunks *chunks)
{
    const struct ta__index_row *rows = TA__ROWS(const struct ta__index_row, chunks->index);
    uint32_t count = TA__ROW_COUNT(struct ta__index_row, chunks->index);
    if (count > INDEX_ROWS_MAX)
        count = 0;
    uint64_t offset = chunks->sink.written;
    if (ta__chunk_begin(chunks) != 0 || ta__raw_varint(chunks, count) != 0 || ta__columns_begin(chunks, 6, count) != 0)
        return -1;
    struct ta__index_row last = {0};
    for (uint32_t i = 0; i < count; i++) {
        ta__column_put(chunks, 0, rows[i].offset - last.offset);
        ta__column_put_signed(chunks, 1, rows[i].time_ns - last.time_ns);
        ta__column_put_signed(chunks, 2, rows[i].current_bytes - last.current_bytes);
        ta__column_put_signed(chunks, 3, rows[i].peak_bytes - last.peak_bytes);
        ta__column_put_signed(chunks, 4, rows[i].traces - last.traces);
        ta__column_put(chunks, 5, rows[i].reset);
        last = rows[i];
    }
    if (ta__columns_end(chunks) != 0 || ta__chunk_end(chunks, TA__KIND_INDEX, 0) != 0)
        return -1;
    uint8_t trailer[TA__TRAILER_PAYLOAD];
    ta__put_u64(trailer, offset);
    ta__put_u64(trailer + 8, chunks->sink.written + TA__TRAILER_LENGTH);
    if (ta__chunk_begin(chunks) != 0 || ta__raw_bytes(chunks, trailer, sizeof trailer) != 0)
        return -1;
    return ta__chunk_end(chunks, TA__KIND_TRAILER, TA__CHUNK_PLAIN) == 0 ? ta__sink_flush(&chunks->sink) : -1;
}
