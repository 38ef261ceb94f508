/* bytes.h: little-endian and variable-length integers in byte buffers.
 *
 * Writing: the caller guarantees room (TA__VARINT_MAX per number). Reading: through a cursor that never goes past its
 * end and remembers that it failed, so that a decoder checks once per record instead of once per field. */
#ifndef TA_BASE_BYTES_H
#define TA_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attributes.h"

#define TA__VARINT_MAX 10

TA_INLINE uint8_t *ta__put_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Decimal digits and a final zero, in up to 21 bytes; answers where the zero is. */
TA_INLINE char *ta__put_decimal(char *at, uint64_t number)
{
    unsigned count = 1;
    for (uint64_t rest = number / 10; rest != 0; rest /= 10)
        count++;
    at[count] = '\0';
    for (unsigned i = count; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    return at + count;
}

/* Signed numbers near zero become small unsigned ones: 0, -1, 1, -2 → 0, 1, 2, 3. */
TA_INLINE uint64_t ta__zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

TA_INLINE int64_t ta__unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

TA_INLINE uint8_t *ta__put_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

TA_INLINE uint8_t *ta__put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (8 * i));
    return at + 4;
}

TA_INLINE uint8_t *ta__put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> (8 * i));
    return at + 8;
}

/* For callers that say how large their structure is: as much of `ours` as they know, and zeros behind what we know. */
TA_INLINE void ta__fill(void *theirs, size_t size, const void *ours, size_t our_size)
{
    memcpy(theirs, ours, size < our_size ? size : our_size);
    if (size > our_size)
        memset((char *)theirs + our_size, 0, size - our_size);
}

TA_INLINE uint32_t ta__u16_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

TA_INLINE uint32_t ta__u32_at(const uint8_t *bytes)
{
    return ta__u16_at(bytes) | ta__u16_at(bytes + 2) << 16;
}

/* A reader of [at, end). After `failed` is set every further get answers 0. */
struct ta__cursor {
    const uint8_t *at;
    const uint8_t *end;
    int failed;
};

TA_INLINE uint64_t ta__get_fixed(struct ta__cursor *cursor, unsigned bytes)
{
    if (cursor->failed || (size_t)(cursor->end - cursor->at) < bytes) {
        cursor->failed = 1;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)cursor->at[i] << (8 * i);
    cursor->at += bytes;
    return value;
}

/* Accepts only the form that ta__put_varint writes: at most 10 bytes, no bits above 64. */
TA_INLINE uint64_t ta__get_varint(struct ta__cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (cursor->failed || cursor->at == cursor->end)
            break;
        uint8_t byte = *cursor->at++;
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
    cursor->failed = 1;
    return 0;
}

TA_INLINE const uint8_t *ta__get_bytes(struct ta__cursor *cursor, uint64_t length)
{
    if (cursor->failed || (uint64_t)(cursor->end - cursor->at) < length) {
        cursor->failed = 1;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += length;
    return bytes;
}

#endif
