/* buffer.c: see buffer.h. */
#include "snapshot/format/buffer.h"

#include "base/memory.h"

enum { PAGE = 4096, POOL_BYTES = 16 * PAGE, PIECE_LEAST = 256 };

void ta__pool_open(struct ta__pool *pool)
{
    pool->bytes = ta__memory_map(POOL_BYTES);
    pool->used = 0;
    pool->capacity = pool->bytes == NULL ? 0 : POOL_BYTES;
}

void ta__pool_close(struct ta__pool *pool)
{
    ta__memory_unmap(pool->bytes, pool->capacity);
    pool->bytes = NULL;
    pool->capacity = 0;
}

/* Pieces of the pool are smaller than a page, mappings are not. */
static int is_piece(const struct ta__buffer *buffer)
{
    return buffer->bytes != NULL && buffer->capacity < PAGE;
}

/* 0: it is too much for a piece, or the pool is used up. */
static int grow_in_pool(struct ta__buffer *buffer, size_t more)
{
    struct ta__pool *pool = buffer->pool;
    size_t capacity = buffer->capacity < PIECE_LEAST ? PIECE_LEAST : buffer->capacity;
    while (capacity < buffer->length + more)
        capacity *= 2;
    if (capacity >= PAGE || pool->capacity - pool->used < capacity)
        return 0;
    uint8_t *piece = pool->bytes + pool->used;
    pool->used += capacity;
    if (buffer->capacity != 0)
        memcpy(piece, buffer->bytes, buffer->capacity);
    buffer->bytes = piece;
    buffer->capacity = capacity;
    return 1;
}

static void *grown_mapping(const struct ta__buffer *buffer, size_t capacity)
{
    if (buffer->bytes != NULL && !is_piece(buffer))
        return ta__memory_grow(buffer->bytes, buffer->capacity, capacity);
    void *bytes = ta__memory_map(capacity);
    if (bytes != NULL && buffer->bytes != NULL)
        memcpy(bytes, buffer->bytes, buffer->capacity);
    return bytes;
}

int ta__buffer_grow(struct ta__buffer *buffer, size_t more)
{
    size_t capacity = buffer->capacity < PAGE ? PAGE : buffer->capacity;
    if (more > SIZE_MAX / 4 - buffer->length)
        return -1;
    if (buffer->pool != NULL && buffer->capacity < PAGE && grow_in_pool(buffer, more))
        return 0;
    while (capacity < buffer->length + more)
        capacity *= 2;
    struct ta__budget *budget = buffer->budget;
    if (budget != NULL && capacity - buffer->capacity > budget->limit - budget->used) {
        budget->exceeded = 1;
        return -1;
    }
    void *bytes = grown_mapping(buffer, capacity);
    if (bytes == NULL)
        return -1;
    if (budget != NULL)
        budget->used += capacity - buffer->capacity;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return 0;
}

void ta__buffer_free(struct ta__buffer *buffer)
{
    if (buffer->budget != NULL)
        buffer->budget->used -= buffer->capacity;
    if (!is_piece(buffer))
        ta__memory_unmap(buffer->bytes, buffer->capacity);
    buffer->bytes = NULL;
    buffer->length = buffer->capacity = 0;
}
