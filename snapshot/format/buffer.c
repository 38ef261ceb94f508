/* buffer.c: see buffer.h. */
#include "snapshot/format/buffer.h"

#include "base/memory.h"

int ta__buffer_grow(struct ta__buffer *buffer, size_t more)
{
    size_t capacity = buffer->capacity < 4096 ? 4096 : buffer->capacity;
    if (more > SIZE_MAX / 4 - buffer->length)
        return -1;
    while (capacity < buffer->length + more)
        capacity *= 2;
    struct ta__budget *budget = buffer->budget;
    if (budget != NULL && capacity - buffer->capacity > budget->limit - budget->used) {
        budget->exceeded = 1;
        return -1;
    }
    void *bytes =
        buffer->bytes == NULL ? ta__memory_map(capacity) : ta__memory_grow(buffer->bytes, buffer->capacity, capacity);
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
    ta__memory_unmap(buffer->bytes, buffer->capacity);
    buffer->bytes = NULL;
    buffer->length = buffer->capacity = 0;
}
