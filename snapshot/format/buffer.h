/* buffer.h: arrays that grow, on mapped memory: what writer and reader keep their tables in.
 *
 * Failure leaves the buffer as it was. A reader gives its buffers a budget, so that a hostile file cannot make it ask
 * for more memory than stated; a writer has none. */
#ifndef TA_SNAPSHOT_FORMAT_BUFFER_H
#define TA_SNAPSHOT_FORMAT_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attributes.h"

struct ta__budget {
    size_t limit, used;
    int exceeded; /* some request was refused because of the limit */
};

/* One mapping for the beginnings of many buffers: most stay small, and a mapping each costs more than what is in it. What
 * is taken comes back with the pool. */
struct ta__pool {
    uint8_t *bytes; /* NULL = every buffer has a mapping of its own */
    size_t used, capacity;
};
void ta__pool_open(struct ta__pool *pool);
void ta__pool_close(struct ta__pool *pool);

struct ta__buffer {
    uint8_t *bytes; /* aligned to 64 bytes, and to a page from that size on; zero beyond what was ever written */
    size_t length, capacity;
    struct ta__budget *budget; /* may be NULL */
    struct ta__pool *pool;     /* may be NULL; closed after the buffer's last use */
};

TA_NODISCARD int ta__buffer_grow(struct ta__buffer *buffer, size_t more);
void ta__buffer_free(struct ta__buffer *buffer);

/* Makes room for `more` bytes after the length. 0, or -1 without memory. */
TA_NODISCARD TA_INLINE int ta__buffer_reserve(struct ta__buffer *buffer, size_t more)
{
    return TA_LIKELY(buffer->capacity - buffer->length >= more) ? 0 : ta__buffer_grow(buffer, more);
}

/* A new zeroed row at the end, or NULL. */
TA_NODISCARD TA_INLINE void *ta__buffer_add(struct ta__buffer *buffer, size_t size)
{
    if (ta__buffer_reserve(buffer, size) != 0)
        return NULL;
    void *row = buffer->bytes + buffer->length;
    buffer->length += size;
    memset(row, 0, size);
    return row;
}

TA_NODISCARD TA_INLINE int ta__buffer_put(struct ta__buffer *buffer, const void *data, size_t size)
{
    if (ta__buffer_reserve(buffer, size) != 0)
        return -1;
    if (size != 0)
        memcpy(buffer->bytes + buffer->length, data, size);
    buffer->length += size;
    return 0;
}

TA_INLINE void ta__buffer_zero_from(struct ta__buffer *buffer, size_t offset)
{
    if (offset < buffer->length)
        memset(buffer->bytes + offset, 0, buffer->length - offset);
}

#define TA__ROWS(type, buffer)      ((type *)(void *)(buffer).bytes)
#define TA__ROW_COUNT(type, buffer) ((uint32_t)((buffer).length / sizeof(type)))

#endif
