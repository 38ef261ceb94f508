/* lz4_frames.h: reads files that lz4 wrote: frames of blocks, as its frame format describes them. */
#ifndef TA_ANALYSIS_IMAGE_LZ4_FRAMES_H
#define TA_ANALYSIS_IMAGE_LZ4_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

/* get: up to `length` bytes of input, 0 at its end. put: what was unpacked; not 0 ends it. An end before its time, and
 * what is no frame, end it like the input's end. 0, or what `put` answered, or -1 without memory. Checksums are passed over. */
TA_NODISCARD int ta__lz4_unpack(size_t (*get)(void *user, uint8_t *bytes, size_t length),
                                int (*put)(void *user, const uint8_t *bytes, size_t length), void *user);

#endif
