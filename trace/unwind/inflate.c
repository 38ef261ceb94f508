/* inflate.c: see inflate.h. A stream is a row of blocks; the codes of a block are looked up in tables that have an entry for
 * every pattern of bits, so that each symbol costs one look. */
#include "trace/unwind/inflate.h"

#include <string.h>

#include "base/memory.h"

enum {
    LONGEST_CODE = 15,
    LITERALS = 288,
    DISTANCES = 30,
    END_OF_BLOCK = 256,
    FIRST_LENGTH = 257,
    LAST_LENGTH = 285,
    LENGTH_CODES = 19,
    CHECKSUM_BASE = 65521,
};

/* Entries are symbol << 4 | bits of its code; 0: no code begins so. */
struct codes {
    unsigned longest;
    uint16_t entries[1 << LONGEST_CODE];
};

struct tables {
    struct codes literals, distances;
    uint8_t lengths[LITERALS + 32];
};

struct stream {
    const uint8_t *from, *from_end;
    uint8_t *start, *to, *to_end;
    uint64_t bits;
    unsigned bit_count;
    int failed;
};

static void refill(struct stream *stream)
{
    while (stream->bit_count <= 56 && stream->from < stream->from_end) {
        stream->bits |= (uint64_t)*stream->from++ << stream->bit_count;
        stream->bit_count += 8;
    }
}

static unsigned get_bits(struct stream *stream, unsigned count)
{
    refill(stream);
    if (stream->bit_count < count) {
        stream->failed = 1;
        return 0;
    }
    unsigned value = (unsigned)(stream->bits & ((1u << count) - 1));
    stream->bits >>= count;
    stream->bit_count -= count;
    return value;
}

/* ---- codes ------------------------------------------------------------------------------------------------------- */

static unsigned reversed(unsigned code, unsigned length)
{
    unsigned other = 0;
    for (; length > 0; length--, code >>= 1)
        other = other << 1 | (code & 1);
    return other;
}

/* 0 when the lengths promise more codes than there are. */
static int make_codes(struct codes *codes, const uint8_t *lengths, unsigned symbols)
{
    unsigned counts[LONGEST_CODE + 1] = {0}, next[LONGEST_CODE + 1] = {0}, code = 0;
    for (unsigned i = 0; i < symbols; i++)
        counts[lengths[i]]++;
    counts[0] = 0;
    codes->longest = 0;
    for (unsigned length = 1; length <= LONGEST_CODE; length++) {
        code = (code + counts[length - 1]) << 1;
        next[length] = code;
        if (code + counts[length] > 1u << length)
            return 0;
        if (counts[length] != 0)
            codes->longest = length;
    }
    memset(codes->entries, 0, sizeof *codes->entries << codes->longest);
    for (unsigned i = 0; i < symbols; i++) {
        unsigned length = lengths[i];
        if (length == 0)
            continue;
        for (unsigned at = reversed(next[length]++, length); at < 1u << codes->longest; at += 1u << length)
            codes->entries[at] = (uint16_t)(i << 4 | length);
    }
    return 1;
}

static unsigned get_symbol(struct stream *stream, const struct codes *codes)
{
    refill(stream);
    unsigned entry = codes->entries[stream->bits & ((1u << codes->longest) - 1)], length = entry & 15;
    if (length == 0 || length > stream->bit_count) {
        stream->failed = 1;
        return END_OF_BLOCK;
    }
    stream->bits >>= length;
    stream->bit_count -= length;
    return entry >> 4;
}

static void use_fixed_codes(struct tables *tables)
{
    for (unsigned i = 0; i < LITERALS; i++)
        tables->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_codes(&tables->literals, tables->lengths, LITERALS);
    memset(tables->lengths, 5, DISTANCES);
    make_codes(&tables->distances, tables->lengths, DISTANCES);
}

/* The lengths of a block's own codes are packed with codes themselves. */
static int read_codes(struct stream *stream, struct tables *tables)
{
    static const uint8_t order[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned literals = get_bits(stream, 5) + 257, distances = get_bits(stream, 5) + 1, given = get_bits(stream, 4) + 4;
    memset(tables->lengths, 0, LENGTH_CODES);
    for (unsigned i = 0; i < given; i++)
        tables->lengths[order[i]] = (uint8_t)get_bits(stream, 3);
    if (stream->failed || !make_codes(&tables->literals, tables->lengths, LENGTH_CODES))
        return 0;
    for (unsigned i = 0; i < literals + distances;) {
        unsigned symbol = get_symbol(stream, &tables->literals), times = 1;
        uint8_t length = 0;
        if (symbol < 16) {
            length = (uint8_t)symbol;
        } else if (symbol == 16) {
            times = 3 + get_bits(stream, 2);
            if (i == 0)
                return 0;
            length = tables->lengths[i - 1];
        } else {
            times = symbol == 17 ? 3 + get_bits(stream, 3) : 11 + get_bits(stream, 7);
        }
        if (stream->failed || times > literals + distances - i)
            return 0;
        memset(&tables->lengths[i], length, times);
        i += times;
    }
    return make_codes(&tables->literals, tables->lengths, literals) &&
           make_codes(&tables->distances, tables->lengths + literals, distances);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void copy_stored(struct stream *stream)
{
    get_bits(stream, stream->bit_count & 7);
    unsigned length = get_bits(stream, 16), inverse = get_bits(stream, 16);
    if (stream->failed || length != (~inverse & 0xffff) || length > (size_t)(stream->to_end - stream->to)) {
        stream->failed = 1;
        return;
    }
    for (; length > 0 && !stream->failed; length--)
        *stream->to++ = (uint8_t)get_bits(stream, 8);
}

/* What stands further in front is written once more; it may overlap what it becomes. */
static void copy_earlier(struct stream *stream, unsigned symbol, const struct codes *distances)
{
    unsigned code = symbol - FIRST_LENGTH, length = 3 + code, distance;
    if (symbol == LAST_LENGTH) {
        length = 258;
    } else if (code >= 8) {
        unsigned extra = (code >> 2) - 1;
        length = ((4 + (code & 3)) << extra) + 3 + get_bits(stream, extra);
    }
    code = get_symbol(stream, distances);
    distance = 1 + code;
    if (code >= 4 && code < DISTANCES) {
        unsigned extra = (code >> 1) - 1;
        distance = ((2 + (code & 1)) << extra) + 1 + get_bits(stream, extra);
    }
    if (symbol > LAST_LENGTH || code >= DISTANCES || stream->failed ||
        distance > (size_t)(stream->to - stream->start) || length > (size_t)(stream->to_end - stream->to)) {
        stream->failed = 1;
        return;
    }
    for (const uint8_t *earlier = stream->to - distance; length > 0; length--)
        *stream->to++ = *earlier++;
}

static void copy_coded(struct stream *stream, const struct tables *tables)
{
    for (;;) {
        unsigned symbol = get_symbol(stream, &tables->literals);
        if (symbol > END_OF_BLOCK)
            copy_earlier(stream, symbol, &tables->distances);
        else if (symbol == END_OF_BLOCK)
            return;
        else if (stream->to < stream->to_end)
            *stream->to++ = (uint8_t)symbol;
        else
            stream->failed = 1;
        if (stream->failed)
            return;
    }
}

static void copy_block(struct stream *stream, struct tables *tables)
{
    switch (get_bits(stream, 2)) {
    case 0:
        copy_stored(stream);
        return;
    case 1:
        use_fixed_codes(tables);
        break;
    case 2:
        if (read_codes(stream, tables))
            break;
        stream->failed = 1;
        return;
    default:
        stream->failed = 1;
        return;
    }
    copy_coded(stream, tables);
}

static uint32_t checksum(const uint8_t *bytes, size_t length)
{
    enum { WITHOUT_OVERFLOW = 5552 };
    uint32_t sum = 1, sums = 0;
    while (length > 0) {
        size_t part = length < WITHOUT_OVERFLOW ? length : WITHOUT_OVERFLOW;
        length -= part;
        for (; part > 0; part--) {
            sum += *bytes++;
            sums += sum;
        }
        sum %= CHECKSUM_BASE;
        sums %= CHECKSUM_BASE;
    }
    return sums << 16 | sum;
}

int ta__inflate(uint8_t *to, size_t room, const uint8_t *from, size_t length)
{
    struct stream stream = {.from = from, .from_end = from + length, .start = to, .to = to, .to_end = to + room};
    unsigned first = get_bits(&stream, 8), second = get_bits(&stream, 8), is_last;
    if (stream.failed || (first & 15) != 8 || (first << 8 | second) % 31 != 0 || (second & 0x20) != 0)
        return 0;
    struct tables *tables = ta__memory_map(sizeof *tables);
    if (tables == NULL)
        return 0;
    do {
        is_last = get_bits(&stream, 1);
        copy_block(&stream, tables);
    } while (!is_last && !stream.failed);
    ta__memory_unmap(tables, sizeof *tables);
    get_bits(&stream, stream.bit_count & 7);
    uint32_t stated = 0;
    for (int i = 0; i < 4; i++)
        stated = stated << 8 | get_bits(&stream, 8);
    return !stream.failed && stream.to == stream.to_end && stated == checksum(to, room);
}
