/* lz4_frames.c: see lz4_frames.h. A block is a row of sequences: some bytes as they are, then a copy of what came up to
 * 64 KiB before, which may reach into earlier blocks. */
#include "analysis/image/lz4_frames.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

enum { WINDOW = 64 << 10, BLOCK_MOST = 4 << 20, FRAME_MAGIC = 0x184D2204, SKIPPED_MAGIC = 0x184D2A50 };

struct work {
    size_t (*get)(void *user, uint8_t *bytes, size_t length);
    void *user;
    size_t history;         /* bytes of `out` in front of the block: at most WINDOW */
    uint8_t in[BLOCK_MOST]; /* a block as it is stored */
    uint8_t out[WINDOW + BLOCK_MOST];
};

static int take(struct work *work, uint8_t *bytes, size_t length)
{
    while (length > 0) {
        size_t got = work->get(work->user, bytes, length);
        if (got == 0)
            return 0;
        bytes += got;
        length -= got;
    }
    return 1;
}

static int take_number(struct work *work, uint32_t *number)
{
    uint8_t bytes[4];
    if (!take(work, bytes, sizeof bytes))
        return 0;
    *number = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    return 1;
}

static int skip(struct work *work, size_t length)
{
    uint8_t bytes[512];
    for (size_t part; length > 0; length -= part) {
        part = length < sizeof bytes ? length : sizeof bytes;
        if (!take(work, bytes, part))
            return 0;
    }
    return 1;
}

/* A length that did not fit its four bits goes on in bytes, as long as they are 255. */
static int longer(const uint8_t **at, const uint8_t *end, size_t *length)
{
    if (*length != 15)
        return 1;
    for (uint8_t byte = 255; byte == 255; *length += byte) {
        if (*at == end || *length > BLOCK_MOST)
            return 0;
        byte = *(*at)++;
    }
    return 1;
}

/* Unpacks `bytes` of work->in behind the history; how many bytes it became, or SIZE_MAX when it is damaged. */
static size_t unpack_block(struct work *work, size_t bytes, size_t most)
{
    const uint8_t *at = work->in, *end = work->in + bytes;
    uint8_t *to = work->out + work->history, *begin = to, *limit = to + most;
    while (at < end) {
        uint8_t token = *at++;
        size_t literals = token >> 4, copied = token & 15;
        if (!longer(&at, end, &literals) || literals > (size_t)(end - at) || literals > (size_t)(limit - to))
            return SIZE_MAX;
        memcpy(to, at, literals);
        to += literals;
        at += literals;
        if (at == end)
            return (size_t)(to - begin);
        if (end - at < 2)
            return SIZE_MAX;
        size_t back = at[0] | (size_t)at[1] << 8;
        at += 2;
        if (!longer(&at, end, &copied))
            return SIZE_MAX;
        copied += 4;
        if (back == 0 || back > (size_t)(to - work->out) || copied > (size_t)(limit - to))
            return SIZE_MAX;
        for (; copied > 0; copied--, to++) /* it may overlap */
            *to = to[-(ptrdiff_t)back];
    }
    return SIZE_MAX; /* a block ends with bytes as they are */
}

static void keep_history(struct work *work, size_t unpacked)
{
    size_t all = work->history + unpacked, kept = all < WINDOW ? all : WINDOW;
    memmove(work->out, work->out + all - kept, kept);
    work->history = kept;
}

struct frame {
    int has_block_checks, has_content_check, is_linked;
    size_t block_most;
};

static int read_header(struct work *work, struct frame *frame)
{
    uint8_t flags[2];
    if (!take(work, flags, sizeof flags) || flags[0] >> 6 != 1)
        return 0;
    unsigned size_code = flags[1] >> 4 & 7;
    *frame = (struct frame){flags[0] >> 4 & 1, flags[0] >> 2 & 1, (flags[0] >> 5 & 1) == 0,
                            size_code >= 4 ? (size_t)1 << (8 + 2 * size_code) : 0};
    size_t more = ((flags[0] & 8) != 0 ? 8u : 0u) + ((flags[0] & 1) != 0 ? 4u : 0u) + 1u;
    return frame->block_most != 0 && skip(work, more);
}

/* 1: a whole frame. 0: the end came first. Else what put answered. */
static int unpack_frame(struct work *work, int (*put)(void *user, const uint8_t *bytes, size_t length), int *result)
{
    struct frame frame;
    if (!read_header(work, &frame))
        return 0;
    work->history = 0;
    for (uint32_t head; take_number(work, &head);) {
        size_t stored = head & 0x7FFFFFFF, unpacked;
        if (head == 0)
            return !frame.has_content_check || skip(work, 4);
        if (stored > frame.block_most || !take(work, work->in, stored))
            return 0;
        if (head >> 31 != 0)
            memcpy(work->out + work->history, work->in, unpacked = stored);
        else
            unpacked = unpack_block(work, stored, frame.block_most);
        if (unpacked == SIZE_MAX)
            return 0;
        *result = put(work->user, work->out + work->history, unpacked);
        if (*result != 0 || (frame.has_block_checks && !skip(work, 4)))
            return 0;
        keep_history(work, unpacked);
        if (!frame.is_linked)
            work->history = 0;
    }
    return 0;
}

int ta__lz4_unpack(size_t (*get)(void *user, uint8_t *bytes, size_t length),
                   int (*put)(void *user, const uint8_t *bytes, size_t length), void *user)
{
    struct work *work = ta__new_array(1, sizeof *work);
    if (work == NULL)
        return -1;
    work->get = get;
    work->user = user;
    int result = 0, is_sound = 1;
    for (uint32_t magic, length; is_sound && result == 0 && take_number(work, &magic);) {
        if (magic == FRAME_MAGIC)
            is_sound = unpack_frame(work, put, &result);
        else
            is_sound = (magic & 0xFFFFFFF0) == SKIPPED_MAGIC && take_number(work, &length) && skip(work, length);
    }
    free(work);
    return result;
}
