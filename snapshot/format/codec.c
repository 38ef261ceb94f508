/* codec.c: see codec.h. The only file that knows zstd. */
#include "snapshot/format/codec.h"

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include "base/memory.h"

/* Level 3 for inputs of about a mebibyte: long chunks are that long, and a larger window would only cost memory. Most are
 * short: there the tables of level 3 would be cleared, and at first touched, for longer than is compressed. */
enum { LEVEL = 3, TYPICAL_LENGTH = 1 << 20, SHORT_LEVEL = 1, SHORT_LENGTH = 16 << 10, SHORT_TABLE_LOG = 12 };

static ZSTD_compressionParameters parameters(int is_short)
{
    ZSTD_compressionParameters chosen =
        ZSTD_getCParams(is_short ? SHORT_LEVEL : LEVEL, is_short ? SHORT_LENGTH : TYPICAL_LENGTH, 0);
    if (is_short)
        chosen.hashLog = chosen.chainLog = SHORT_TABLE_LOG;
    return chosen;
}

static int set_parameters(struct ta__coder *coder, int is_short)
{
    ZSTD_compressionParameters chosen = parameters(is_short);
    ZSTD_CCtx *context = coder->context;
    coder->is_short = is_short;
    return ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, is_short ? SHORT_LEVEL : LEVEL)) ||
                   ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, (int)chosen.windowLog)) ||
                   ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, (int)chosen.hashLog)) ||
                   ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_chainLog, (int)chosen.chainLog))
               ? -1
               : 0;
}

static int workspace_open(struct ta__coder *coder, size_t bytes)
{
    coder->workspace_bytes = (bytes + 4095) & ~(size_t)4095;
    coder->workspace = ta__memory_map(coder->workspace_bytes);
    return coder->workspace == NULL ? -1 : 0;
}

int ta__compressor_open(struct ta__coder *coder)
{
    if (workspace_open(coder, ZSTD_estimateCCtxSize_usingCParams(parameters(0))) != 0)
        return -1;
    /* A static context begins with everything zero, not with zstd's defaults. */
    ZSTD_CCtx *context = ZSTD_initStaticCCtx(coder->workspace, coder->workspace_bytes);
    coder->context = context;
    if (context == NULL || set_parameters(coder, 0) != 0 ||
        ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1))) {
        ta__coder_close(coder);
        return -1;
    }
    return 0;
}

int ta__decompressor_open(struct ta__coder *coder)
{
    if (workspace_open(coder, ZSTD_estimateDCtxSize()) != 0)
        return -1;
    coder->context = ZSTD_initStaticDCtx(coder->workspace, coder->workspace_bytes);
    if (coder->context == NULL) {
        ta__coder_close(coder);
        return -1;
    }
    return 0;
}

void ta__coder_close(struct ta__coder *coder)
{
    ta__memory_unmap(coder->workspace, coder->workspace_bytes);
    coder->workspace = NULL;
    coder->context = NULL;
}

size_t ta__compress_bound(size_t length)
{
    return ZSTD_compressBound(length);
}

size_t ta__compress(struct ta__coder *coder, void *to, size_t room, const void *from, size_t length)
{
    if (coder->is_short != (length <= SHORT_LENGTH) && set_parameters(coder, length <= SHORT_LENGTH) != 0)
        return 0;
    size_t written = ZSTD_compress2(coder->context, to, room, from, length);
    return ZSTD_isError(written) ? 0 : written;
}

const char *ta__decompress(struct ta__coder *coder, void *to, size_t raw_length, const void *from, size_t length)
{
    ZSTD_frameHeader header;
    if (ZSTD_getFrameHeader(&header, from, length) != 0 || header.frameType != ZSTD_frame)
        return "is not a zstd frame";
    if (header.checksumFlag == 0)
        return "carries no checksum";
    if (header.dictID != 0)
        return "needs a dictionary";
    if (header.frameContentSize != raw_length)
        return "states another length than its chunk";
    if (ZSTD_findFrameCompressedSize(from, length) != length)
        return "does not fill its chunk";
    size_t got = ZSTD_decompressDCtx(coder->context, to, raw_length, from, length);
    if (ZSTD_isError(got))
        return ZSTD_getErrorCode(got) == ZSTD_error_checksum_wrong ? "has a wrong checksum" : "cannot be decompressed";
    return got == raw_length ? NULL : "has another length than stated";
}

int ta__unpack_frames(uint8_t *to, size_t room, const uint8_t *from, size_t length)
{
    struct ta__coder coder;
    if (ta__decompressor_open(&coder) != 0)
        return 0;
    size_t got = ZSTD_decompressDCtx(coder.context, to, room, from, length);
    ta__coder_close(&coder);
    return !ZSTD_isError(got) && got == room;
}
