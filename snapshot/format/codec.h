/* codec.h: zstd with memory of ours. One coder serves one writer or one reader at a time.
 *
 * The contexts live in workspaces of fixed size, mapped once: zstd itself never asks for memory, so nothing reaches
 * malloc whichever thread compresses. */
#ifndef TA_SNAPSHOT_FORMAT_CODEC_H
#define TA_SNAPSHOT_FORMAT_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct ta__coder {
    void *context; /* ZSTD_CCtx or ZSTD_DCtx inside the workspace */
    void *workspace;
    size_t workspace_bytes;
    int is_short; /* its parameters are those for short inputs */
};

/* Both: 0, or -1 without memory. */
TA_NODISCARD int ta__compressor_open(struct ta__coder *coder);
TA_NODISCARD int ta__decompressor_open(struct ta__coder *coder);
void ta__coder_close(struct ta__coder *coder);

/* Room that ta__compress needs for `length` bytes. */
size_t ta__compress_bound(size_t length);
/* One frame with content size and checksum. Length of the frame, 0 on failure. */
size_t ta__compress(struct ta__coder *coder, void *to, size_t room, const void *from, size_t length);

/* Decompresses exactly one frame that must fill `from` and become exactly `raw_length` bytes. NULL when it did, else
 * what is wrong with it. */
const char *ta__decompress(struct ta__coder *coder, void *to, size_t raw_length, const void *from, size_t length);

/* Frames that others wrote, such as those of compressed sections: 1 when they became exactly `room` bytes. */
int ta__unpack_frames(uint8_t *to, size_t room, const uint8_t *from, size_t length);

#endif
