/* debug_section.h: the bytes of a section of debug information, unpacked where they are compressed: by zlib (SHF_COMPRESSED,
 * or .zdebug_… of older tools), or by zstd. No malloc, no lock; the memory is mapped for the moment. */
#ifndef TA_TRACE_UNWIND_DEBUG_SECTION_H
#define TA_TRACE_UNWIND_DEBUG_SECTION_H

#include <stddef.h>
#include <stdint.h>

#include "trace/unwind/elf_file.h"

struct ta__debug_section {
    const uint8_t *bytes;
    uint64_t size; /* 0: there is none, or it cannot be unpacked */
    void *unpacked;
};

/* `name` as of one that is not compressed, such as ".debug_line". */
void ta__debug_section_open(const struct ta__elf_file *file, const char *name, struct ta__debug_section *section);
void ta__debug_section_close(struct ta__debug_section *section);

/* 1: `from` became exactly `room` bytes. Who knows zstd sets this; NULL: nobody does. */
extern int (*ta__unpack_zstd)(uint8_t *to, size_t room, const uint8_t *from, size_t length);

#endif
