/* names.h: lets one test source speak about the allocator under either of its names.
 *
 * With TEST_TA_NAMES the calls mean ta_malloc, ta_free …: for builds that do not replace malloc (sanitizers). Without,
 * they are the ordinary names, whoever defines them: our library when linked or preloaded, else libc, which is how the
 * tests themselves are checked. Include it last: it redefines ordinary words. */
#ifndef TA_TESTS_NAMES_H
#define TA_TESTS_NAMES_H

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tracealloc.h"

/* Whether our library answers the calls of this test. */
#if defined(TEST_TA_NAMES)
#define OURS 1
#else
#pragma weak ta_version
#pragma weak ta_get_health
#define OURS (ta_version != NULL)
#endif

/* Values that the compiler cannot see through: it knows malloc's rules and would decide the test at compile time. */
static inline size_t opaque(size_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

static inline void *opaque_pointer(void *value)
{
    __asm__ volatile("" : "+r"(value) : : "memory");
    return value;
}

#if defined(TEST_TA_NAMES)
#define malloc(size)                           ta_malloc(size)
#define calloc(count, size)                    ta_calloc(count, size)
#define realloc(block, size)                   ta_realloc(block, size)
#define reallocarray(block, count, size)       ta_reallocarray(block, count, size)
#define free(block)                            ta_free(block)
#define aligned_alloc(alignment, size)         ta_aligned_alloc(alignment, size)
#define memalign(alignment, size)              ta_memalign(alignment, size)
#define posix_memalign(block, alignment, size) ta_posix_memalign(block, alignment, size)
#define valloc(size)                           ta_valloc(size)
#define pvalloc(size)                          ta_pvalloc(size)
#define malloc_usable_size(block)              ta_usable_size(block)
#endif

#endif
