/* protobuf.c: see protobuf.h. */
#include "analysis/exports/protobuf.h"

#include "base/bytes.h"

enum wire_type { VARINT = 0, LENGTH_DELIMITED = 2 };

static void add_varint(struct ta__text *text, uint64_t value)
{
    uint8_t bytes[TA__VARINT_MAX];
    ta__text_add(text, (const char *)bytes, (size_t)(ta__put_varint(bytes, value) - bytes));
}

void ta__protobuf_number(struct ta__text *message, unsigned field, uint64_t value)
{
    if (value == 0)
        return;
    add_varint(message, (uint64_t)field << 3 | VARINT);
    add_varint(message, value);
}

static void begin_bytes(struct ta__text *message, unsigned field, size_t length)
{
    add_varint(message, (uint64_t)field << 3 | LENGTH_DELIMITED);
    add_varint(message, length);
}

void ta__protobuf_bytes(struct ta__text *message, unsigned field, const void *bytes, size_t length)
{
    begin_bytes(message, field, length);
    if (length > 0)
        ta__text_add(message, bytes, length);
}

void ta__protobuf_message(struct ta__text *message, unsigned field, struct ta__text *inner)
{
    if (inner->failed)
        message->failed = 1;
    ta__protobuf_bytes(message, field, inner->bytes, inner->length);
    inner->length = 0;
}

void ta__protobuf_list(struct ta__text *message, unsigned field, const uint64_t *values, size_t count)
{
    uint8_t bytes[TA__VARINT_MAX];
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += (size_t)(ta__put_varint(bytes, values[i]) - bytes);
    begin_bytes(message, field, length);
    for (size_t i = 0; i < count; i++)
        add_varint(message, values[i]);
}
