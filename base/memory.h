/* memory.h: memory for our own tables, straight from the kernel, never from malloc.
 *
 * Mappings are reserved without commitment (MAP_NORESERVE) and become resident page by page as they are touched, so a
 * table may be declared for its largest size. Every byte mapped here is counted for ta_get_tracer_memory.
 * A failed mapping answers NULL and leaves errno as it was: callers degrade to "untraced" and count it. */
#ifndef TA_BASE_MEMORY_H
#define TA_BASE_MEMORY_H

#include <stddef.h>

#include "base/attributes.h"
#include "base/facts.h"

/* Zeroed, page-aligned memory, or NULL. */
TA_NODISCARD void *ta__memory_map(size_t bytes);
void ta__memory_unmap(void *address, size_t bytes);
/* The mapping grows, possibly elsewhere; the new part is zeroed. NULL: it stays as it was. */
TA_NODISCARD void *ta__memory_grow(void *address, size_t old_bytes, size_t new_bytes);

/* The mapping's first `bytes` stay, up to the end of a page; the rest goes back, address space too. */
void ta__memory_shrink(void *address, size_t old_bytes, size_t bytes);

/* Makes pages resident that will be written soon anyway, at the price of one call instead of a fault or two for each.
 * Older kernels (before 5.14) know no such call: nothing happens. */
void ta__memory_populate(void *address, size_t bytes);

/* The whole range reads as zero again and gives its pages back; it stays reserved. */
void ta__memory_reset(void *address, size_t bytes);

/* The same for a range that may begin and end within pages. */
void ta__memory_zero(void *address, size_t bytes);

/* How many bytes may still be mapped; SIZE_MAX where neither RLIMIT_AS nor RLIMIT_DATA sets a limit. Where one does,
 * the kernel is asked for all mappings: too slow to be called often. */
size_t ta__memory_left(void);
/* How much a limit of that kind (RLIMIT_AS, RLIMIT_DATA) counts as used; 0 where the kernel does not say. */
size_t ta__memory_used(int resource);
/* Is address space limited to less than this? Asks for no more than the limits, and takes little stack. */
int ta__memory_is_limited_to(size_t bytes);
/* How many bytes large tables may reserve. This is less than ta__memory_left where the kernel counts every writable
 * mapping as used. */
size_t ta__memory_room(void);
/* The kernel's part of ta__memory_room, from the two files of /proc that say it. With overcommit_memory 2 whatever one
 * process reserves is taken from all others, so the answer is a small share of what is left. SIZE_MAX in the other
 * modes. */
size_t ta__memory_promised(const char *overcommit, const char *meminfo);

/* Bytes reserved now. */
size_t ta__memory_mapped(void);
/* Where all of it is, for who looks from outside. */
extern struct ta__fact ta__facts_memory[];
/* Bytes of [address, address + bytes) that are resident: what a sparse table really costs. */
size_t ta__memory_resident(const void *address, size_t bytes);

/* Failure injection for tests: the n-th mapping from now fails (1 = the next), and so does every later one when
 * `sticky`. 0 switches it off. */
void ta__memory_inject_failure(long nth, int sticky);

#endif
