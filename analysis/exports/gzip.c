/* gzip.c: see gzip.h. */
#include "analysis/exports/gzip.h"

#include <limits.h>
#include <stdint.h>

#include "analysis/analysis_domain.h"
#include "analysis/failure.h"

int ta__gzip_open(struct ta__gzip *gzip, ta_write_function write, void *user)
{
    TA__OWN_DOMAIN;
    *gzip = (struct ta__gzip){.write = write, .user = user};
    gzip->is_open = deflateInit2(&gzip->stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    gzip->failed = !gzip->is_open;
    return gzip->is_open ? 0 : ta__fail_memory();
}

static void compress_all(struct ta__gzip *gzip, int flush)
{
    unsigned char out[16384];
    int state = Z_OK;
    while (!gzip->failed && state != Z_STREAM_END && (gzip->stream.avail_in > 0 || flush == Z_FINISH)) {
        gzip->stream.next_out = out;
        gzip->stream.avail_out = sizeof out;
        state = deflate(&gzip->stream, flush);
        size_t got = sizeof out - gzip->stream.avail_out;
        if (state == Z_STREAM_ERROR || (got > 0 && gzip->write(gzip->user, (const char *)out, got) != 0))
            gzip->failed = 1;
    }
}

void ta__gzip_add(struct ta__gzip *gzip, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    while (length > 0 && !gzip->failed) {
        uInt piece = length > INT_MAX ? INT_MAX : (uInt)length;
        gzip->stream.next_in = (unsigned char *)(uintptr_t)at;
        gzip->stream.avail_in = piece;
        compress_all(gzip, Z_NO_FLUSH);
        at += piece;
        length -= piece;
    }
}

int ta__gzip_finish(struct ta__gzip *gzip)
{
    compress_all(gzip, Z_FINISH);
    if (gzip->is_open)
        deflateEnd(&gzip->stream);
    gzip->is_open = 0;
    return gzip->failed ? -1 : 0;
}
