/* thinning.c: see thinning.h. Runs in the traced process: no malloc, no stdio. */
#include "snapshot/write/thinning.h"

#include <errno.h>
#include <unistd.h>

#include "base/hash.h"

/* ---- what stays ---- */

#define LAST_RATIO 1e18

struct choice {
    const struct ta__index_row *rows;
    uint32_t count;
    uint64_t end;
};

static uint64_t length_of(const struct choice *choice, uint32_t first, uint32_t last)
{
    return (last < choice->count ? choice->rows[last].offset : choice->end) - choice->rows[first].offset;
}

/* Where the stretch begins that ends before entry `last`. */
static uint32_t stretch_before(const struct choice *choice, uint32_t last)
{
    while (last > 0 && !choice->rows[--last].reset)
        continue;
    return last;
}

/* Each is so many times as old as the next younger one that stays, measured from the beginning of what stays whole. Marks
 * stay whatever their age, unless there is no room for them: then the last ratio comes, and goes for them, too. */
static uint64_t keep_firsts(const struct choice *choice, uint32_t whole, double ratio, uint8_t *keep)
{
    uint64_t bytes = 0, now = choice->rows[choice->count - 1].time_ns;
    uint64_t age = now - choice->rows[whole].time_ns + 1;
    memset(keep, 0, whole);
    for (uint32_t at = whole; at > 0;) {
        uint32_t first = stretch_before(choice, at);
        uint64_t its_age = now - choice->rows[first].time_ns + 1;
        if (first == 0 || (double)its_age >= (double)age * ratio) {
            keep[first] = 1;
            bytes += length_of(choice, first, first + 1);
            age = its_age;
        } else if (choice->rows[first].stays && ratio < LAST_RATIO) {
            keep[first] = 1;
            bytes += length_of(choice, first, first + 1);
        }
        at = first;
    }
    return bytes;
}

uint64_t ta__thinning_choose(const struct ta__index_row *rows, uint32_t count, uint64_t end, uint64_t budget,
                             uint8_t *keep)
{
    static const double ratios[] = {1, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 4, 16, LAST_RATIO};
    const struct choice choice = {rows, count, end};
    if (count == 0)
        return 0;
    memset(keep, 1, count);
    uint32_t whole = stretch_before(&choice, count);
    for (uint32_t before; whole > 0; whole = before) {
        before = stretch_before(&choice, whole);
        if (length_of(&choice, before, count) > budget / 4 * 3)
            break;
    }
    uint64_t young = length_of(&choice, whole, count), old = 0;
    for (unsigned i = 0; whole > 0 && i < sizeof ratios / sizeof *ratios; i++) {
        old = keep_firsts(&choice, whole, ratios[i], keep);
        if (young + old <= budget)
            break;
    }
    return young + old;
}

/* ---- stretches ---- */

static uint64_t last_reset(const struct ta__writer *writer, uint64_t *length)
{
    const struct ta__index_row *rows = TA__ROWS(const struct ta__index_row, writer->chunks.index);
    uint32_t count = TA__ROW_COUNT(struct ta__index_row, writer->chunks.index), at = count;
    while (at > 0 && !rows[--at].reset)
        continue;
    if (count == 0)
        return *length = 0;
    *length = (at + 1 < count ? rows[at + 1].offset : writer->chunks.sink.written) - rows[at].offset;
    return rows[at].offset;
}

enum { STRETCHES = 8, LEAST_ENTRIES = 5, ENTRIES_MOST = 60000 };

void ta__writer_divide(struct ta__writer *writer, uint64_t limit)
{
    uint64_t length, offset = last_reset(writer, &length);
    uint64_t enough = length > limit / STRETCHES ? length : limit / STRETCHES;
    if (length != 0 && writer->chunks.sink.written - offset - length > enough)
        writer->reset = 1;
}

void ta__writer_set_mark(struct ta__writer *writer, int is_mark)
{
    writer->stays = is_mark;
    writer->reset |= is_mark;
}

uint64_t ta__writer_least_limit(const struct ta__writer *writer)
{
    uint64_t length;
    (void)last_reset(writer, &length);
    return length * LEAST_ENTRIES;
}

uint64_t ta__writer_thins_to(const struct ta__writer *writer, uint64_t limit)
{
    uint64_t length = writer->chunks.sink.written;
    if (length > limit)
        return limit / 2;
    return TA__ROW_COUNT(struct ta__index_row, writer->chunks.index) > ENTRIES_MOST ? length / 2 : 0;
}

/* ---- copying ---- */

static int read_all(int descriptor, uint8_t *to, size_t length, uint64_t offset)
{
    while (length > 0) {
        ssize_t got = pread(descriptor, to, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return errno = got == 0 ? EIO : errno, -1;
        to += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return 0;
}

/* The sections of one entry get its new number, and END the sum of their new heads. 0 when it is no whole entry. */
static int renumber(uint8_t *bytes, size_t length, uint32_t number)
{
    uint64_t digest = 0;
    for (size_t at = 0; length - at >= TA__CHUNK_HEADER_LENGTH;) {
        uint8_t *header = bytes + at, *payload = header + TA__CHUNK_HEADER_LENGTH;
        uint32_t stored = ta__u32_at(header + 12);
        int is_end = ta__u16_at(header + 4) == TA__KIND_END;
        if (ta__u32_at(header) != TA__CHUNK_MAGIC || stored > length - at - TA__CHUNK_HEADER_LENGTH)
            return 0;
        ta__put_u32(header + 8, number);
        if (is_end) {
            ta__put_u64(payload, digest);
            ta__put_u32(header + 24, (uint32_t)ta__hash_bytes(payload, stored));
        }
        uint64_t hash = ta__hash_bytes(header, 28);
        ta__put_u32(header + 28, (uint32_t)hash);
        digest = ta__hash_roll(digest, hash);
        at += TA__CHUNK_HEADER_LENGTH + stored;
        if (is_end)
            return at == length;
    }
    return 0;
}

struct copy {
    const struct ta__chunks *from;
    struct ta__thinned *to;
    struct ta__buffer bytes, keep;
};

static int copy_entry(struct copy *copy, const struct ta__index_row *row, uint64_t length)
{
    uint32_t number = TA__ROW_COUNT(struct ta__index_row, copy->to->index);
    struct ta__index_row moved = *row;
    copy->bytes.length = 0;
    if (ta__buffer_reserve(&copy->bytes, length) != 0)
        return errno = ENOMEM, -1;
    if (read_all(copy->from->sink.descriptor, copy->bytes.bytes, length, row->offset) != 0)
        return -1;
    if (!renumber(copy->bytes.bytes, length, number))
        return errno = EIO, -1;
    moved.offset = copy->to->sink.written;
    if (ta__sink_write(&copy->to->sink, copy->bytes.bytes, length) != 0)
        return errno = copy->to->sink.error, -1;
    return ta__buffer_put(&copy->to->index, &moved, sizeof moved) == 0 ? 0 : (errno = ENOMEM, -1);
}

static int copy_all(struct copy *copy, uint64_t budget)
{
    const struct ta__index_row *rows = TA__ROWS(const struct ta__index_row, copy->from->index);
    uint32_t count = TA__ROW_COUNT(struct ta__index_row, copy->from->index);
    uint64_t end = copy->from->sink.written;
    uint8_t header[TA__FILE_HEADER_LENGTH];
    if (ta__buffer_reserve(&copy->keep, count + 1) != 0)
        return errno = ENOMEM, -1;
    ta__thinning_choose(rows, count, end, budget, copy->keep.bytes);
    if (read_all(copy->from->sink.descriptor, header, sizeof header, 0) != 0)
        return -1;
    if (ta__sink_write(&copy->to->sink, header, sizeof header) != 0)
        return errno = copy->to->sink.error, -1;
    for (uint32_t i = 0; i < count; i++)
        if (copy->keep.bytes[i] &&
            copy_entry(copy, &rows[i], (i + 1 < count ? rows[i + 1].offset : end) - rows[i].offset) != 0)
            return -1;
    return ta__sink_flush(&copy->to->sink) == 0 ? 0 : (errno = copy->to->sink.error, -1);
}

int ta__thinned_copy(struct ta__thinned *thinned, const struct ta__writer *writer, const struct ta__sink *to,
                     uint64_t budget)
{
    *thinned = (struct ta__thinned){.sink = *to};
    struct copy copy = {.from = &writer->chunks, .to = thinned};
    int result = copy_all(&copy, budget), error = errno;
    ta__buffer_free(&copy.bytes);
    ta__buffer_free(&copy.keep);
    if (result != 0)
        ta__thinned_drop(thinned);
    errno = error;
    return result;
}

void ta__thinned_drop(struct ta__thinned *thinned)
{
    ta__buffer_free(&thinned->index);
    ta__buffer_free(&thinned->sink.memory);
}

void ta__thinned_adopt(struct ta__thinned *thinned, struct ta__writer *writer)
{
    ta__buffer_free(&writer->chunks.index);
    ta__buffer_free(&writer->chunks.sink.memory);
    writer->chunks.index = thinned->index;
    writer->chunks.sink = thinned->sink;
    writer->chunks.entry = TA__ROW_COUNT(struct ta__index_row, thinned->index);
}
