/* hash.h: the two mixers used by every table. Not cryptographic: keys come from our own process. */
#ifndef TA_BASE_HASH_H
#define TA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

#define TA__GOLDEN 0x9E3779B97F4A7C15ull

/* Full avalanche of one word. */
TA_INLINE uint64_t ta__hash_word(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    x ^= x >> 32;
    return x;
}

/* One step of a rolling hash: the order of the words matters. */
TA_INLINE uint64_t ta__hash_roll(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * TA__GOLDEN;
    return hash ^ (hash >> 32);
}

TA_INLINE uint64_t ta__hash_bytes(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint64_t hash = TA__GOLDEN ^ length;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 0x100000001B3ull;
    return ta__hash_word(hash);
}

#endif
