/* inflate.h: zlib's streams (RFC 1950, RFC 1951), as compressed sections hold them, unpacked where nothing may be called: no
 * malloc, no lock. Every byte is distrusted. */
#ifndef TA_TRACE_UNWIND_INFLATE_H
#define TA_TRACE_UNWIND_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* 1: the stream became exactly `room` bytes, and their checksum is right. */
int ta__inflate(uint8_t *to, size_t room, const uint8_t *from, size_t length);

#endif
