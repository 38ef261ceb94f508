/* memory.h: memory for our own tables, straight from the kernel, never from malloc.
 *
 * Mappings are reserved without commitment (MAP_NORESERVE) and become resident page by page as they are touched, so a
 * table may be declared for its largest size. Every byte mapped here is counted for ta_get_tracer_memory.
 * A failed mapping answers NULL and leaves errno as it was: callers degrade to "untraced" and count it. */
#ifndef TA_BASE_MEMORY_H
#define TA_BASE_MEMORY_H

#include <stddef.h>

#include "base/attributes.h"

/* Zeroed, page-aligned memory, or NULL. */
TA_NODISCARD void *ta__memory_map(size_t bytes);
void ta__memory_unmap(void *address, size_t bytes);
/* The mapping grows, possibly elsewhere; the new part is zeroed. NULL: it stays as it was. */
TA_NODISCARD void *ta__memory_grow(void *address, size_t old_bytes, size_t new_bytes);

/* Makes pages resident that will be written soon anyway, at the price of one call instead of a fault or two for each.
 * Older kernels (before 5.14) know no such call: nothing happens. */
void ta__memory_populate(void *address, size_t bytes);

/* The whole range reads as zero again and gives its pages back; it stays reserved. */
void ta__memory_reset(void *address, size_t bytes);

/* What may still be mapped: SIZE_MAX where neither RLIMIT_AS nor RLIMIT_DATA sets a limit. Where one does, what mappings
 * there are is asked of the kernel: not for often. */
size_t ta__memory_left(void);
/* What large tables may reserve: less than that where the kernel counts every writable mapping as used. */
size_t ta__memory_room(void);
/* The latter, as two files of /proc say it. Where memory is never promised twice (overcommit_memory is 2), what one
 * process reserves is taken from all: only a small share of what is left. SIZE_MAX elsewhere. */
size_t ta__memory_promised(const char *overcommit, const char *meminfo);

/* Bytes reserved now. */
size_t ta__memory_mapped(void);
/* Bytes of [address, address + bytes) that are resident: what a sparse table really costs. */
size_t ta__memory_resident(const void *address, size_t bytes);

/* Failure injection for tests: the n-th mapping from now fails (1 = the next), and so does every later one when
 * `sticky`. 0 switches it off. */
void ta__memory_inject_failure(long nth, int sticky);

#endif
