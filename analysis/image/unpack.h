/* unpack.h: core files as systems keep them: compressed by gzip, zstd or lz4. */
#ifndef TA_ANALYSIS_IMAGE_UNPACK_H
#define TA_ANALYSIS_IMAGE_UNPACK_H

#include "base/attributes.h"

/* When the file is compressed, *descriptor becomes one of its contents, in a file without a name in TMPDIR (or /var/tmp,
 * or /tmp); else it stays. What is cut short is unpacked as far as it goes. 0, or -1 with the error set. */
TA_NODISCARD int ta__unpack(int *descriptor, const char *path);

#endif
