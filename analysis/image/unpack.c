/* unpack.c: see unpack.h. What is unpacked is written page by page; pages of zeros become holes. */
#include "analysis/image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/lz4_frames.h"

enum { INPUT_BYTES = 1 << 20, OUTPUT_BYTES = 1 << 20, HOLE = 4096 };

struct unpacking {
    int from, to;
    uint64_t written;
    uint8_t input[INPUT_BYTES], output[OUTPUT_BYTES];
};

static int is_zero(const uint8_t *bytes, size_t length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static int put(struct unpacking *work, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        size_t part = HOLE - work->written % HOLE < length ? HOLE - (size_t)(work->written % HOLE) : length;
        if (!is_zero(bytes, part)) {
            size_t whole = part; /* with what follows of the kind, in one call */
            while (whole < length && !is_zero(bytes + whole, length - whole < HOLE ? length - whole : HOLE))
                whole += length - whole < HOLE ? length - whole : HOLE;
            ssize_t done = pwrite(work->to, bytes, whole, (off_t)work->written);
            if (done <= 0)
                return ta__fail("cannot unpack the core: %s (TMPDIR says where to)",
                                strerror(done < 0 ? errno : ENOSPC));
            part = (size_t)done;
        }
        bytes += part;
        length -= part;
        work->written += part;
    }
    return 0;
}

static size_t next_input(struct unpacking *work)
{
    ssize_t got = read(work->from, work->input, INPUT_BYTES);
    return got > 0 ? (size_t)got : 0;
}

/* In each of these, an end before its time is none of their business: the core is then incomplete. */
static int unpack_gzip(struct unpacking *work)
{
    z_stream stream = {0};
    if (inflateInit2(&stream, 15 + 16) != Z_OK)
        return ta__fail_memory();
    int result = 0, code = Z_OK;
    while (result == 0 && (stream.avail_in = (uInt)next_input(work)) > 0) {
        stream.next_in = work->input;
        do {
            if (code == Z_STREAM_END && inflateReset(&stream) != Z_OK) /* another member follows */
                break;
            stream.next_out = work->output;
            stream.avail_out = OUTPUT_BYTES;
            code = inflate(&stream, Z_NO_FLUSH);
            result = put(work, work->output, OUTPUT_BYTES - stream.avail_out);
        } while (result == 0 && (code == Z_OK || code == Z_STREAM_END) &&
                 (stream.avail_in > 0 || stream.avail_out == 0));
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            break;
    }
    if (code == Z_MEM_ERROR)
        result = ta__fail_memory();
    inflateEnd(&stream);
    return result;
}

static int unpack_zstd(struct unpacking *work)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (stream == NULL)
        return ta__fail_memory();
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, 31);
    int result = 0, is_sound = 1;
    for (ZSTD_inBuffer in;
         result == 0 && is_sound && (in = (ZSTD_inBuffer){work->input, next_input(work), 0}).size > 0;)
        for (int is_more = 1; result == 0 && is_sound && (in.pos < in.size || is_more);) {
            ZSTD_outBuffer out = {work->output, OUTPUT_BYTES, 0};
            size_t code = ZSTD_decompressStream(stream, &out, &in);
            is_sound = !ZSTD_isError(code);
            is_more = out.pos == out.size;
            result = ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation ? ta__fail_memory()
                                                                             : put(work, work->output, out.pos);
        }
    ZSTD_freeDStream(stream);
    return result;
}

static int put_lz4(void *user, const uint8_t *bytes, size_t length)
{
    return put(user, bytes, length);
}

static size_t get_lz4(void *user, uint8_t *bytes, size_t length)
{
    struct unpacking *work = user;
    ssize_t got = read(work->from, bytes, length);
    return got > 0 ? (size_t)got : 0;
}

static int unpack_lz4(struct unpacking *work)
{
    return ta__lz4_unpack(get_lz4, put_lz4, work);
}

static int open_nameless(void)
{
    const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char name[4096];
        if (folders[i] == NULL || strlen(folders[i]) > sizeof name - 32)
            continue;
        int descriptor = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (descriptor >= 0)
            return descriptor;
        stpcpy(stpcpy(name, folders[i]), "/tracealloc.XXXXXX");
        descriptor = mkostemp(name, O_CLOEXEC);
        if (descriptor >= 0) {
            unlink(name);
            return descriptor;
        }
    }
    return ta__fail("cannot unpack the core: no folder for a temporary file (TMPDIR)");
}

int ta__unpack(int *descriptor, const char *path)
{
    uint8_t magic[4] = {0};
    if (pread(*descriptor, magic, sizeof magic, 0) != sizeof magic)
        return ta__fail("%s: is no core file", path);
    int (*unpack)(struct unpacking *) = NULL;
    if (magic[0] == 0x1F && magic[1] == 0x8B)
        unpack = unpack_gzip;
    else if (memcmp(magic, "\x28\xB5\x2F\xFD", 4) == 0)
        unpack = unpack_zstd;
    else if (memcmp(magic, "\x04\x22\x4D\x18", 4) == 0)
        unpack = unpack_lz4;
    if (unpack == NULL)
        return 0;
    struct unpacking *work = ta__new_array(1, sizeof *work);
    if (work == NULL)
        return -1;
    work->from = *descriptor;
    work->to = open_nameless();
    int result = work->to < 0 ? -1 : unpack(work);
    if (result == 0 && ftruncate(work->to, (off_t)work->written) != 0)
        result = ta__fail("cannot unpack the core: %s", strerror(errno));
    if (result == 0) {
        close(*descriptor);
        *descriptor = work->to;
    } else if (work->to >= 0) {
        close(work->to);
    }
    free(work);
    return result;
}
