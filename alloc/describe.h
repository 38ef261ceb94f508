/* describe.h: addresses in words, anywhere: in a signal handler, after a crash, inside a report of misuse. No malloc, no
 * lock, errno kept. */
#ifndef TA_ALLOC_DESCRIBE_H
#define TA_ALLOC_DESCRIBE_H

#include <stddef.h>
#include <stdint.h>

#include "base/message.h"

enum { TA__DESCRIBED_FRAMES = 32 };

/* One line for each of at most TA__DESCRIBED_FRAMES return addresses: "  function file:line (path+0x12f4)", as far as the
 * files know: the function from their symbol tables, the line, which is that of the innermost inlined call, from their
 * line programs. Not on the caller's stack: names of C++ need more than that may have. */
void ta__describe_frames(const uint64_t *addresses, size_t count, void (*take)(struct ta__message *line, void *context),
                         void *context);

#endif
