/* tracealloc/tag.h: puts a whole translation unit into a domain.
 *
 *      cc -DTRACEALLOC_DOMAIN=3 -include tracealloc/tag.h -c parser.c
 *
 * Every malloc, calloc, realloc, aligned_alloc, posix_memalign, strdup and strndup that the source spells out becomes
 * the domain's; what is called from elsewhere (libraries, other sources) is not touched. realloc(NULL, n) allocates in
 * the domain, any other realloc keeps the block where it is. The names are macros: include this behind the system's
 * headers, or with -include, which brings them. C only: in C++ use tracealloc::domain_scope. */
#ifndef TRACEALLOC_TAG_H
#define TRACEALLOC_TAG_H

#if !defined(TRACEALLOC_DOMAIN)
#error "define TRACEALLOC_DOMAIN as the domain's number before tracealloc/tag.h"
#endif
#if defined(__cplusplus)
#error "tracealloc/tag.h is for C; in C++ use tracealloc::domain_scope of tracealloc/domain.h"
#endif

#include <stdlib.h>
#include <string.h>

#include <tracealloc/domain.h>

static inline void *ta_tag_realloc(void *block, size_t size)
{
    return block != NULL ? realloc(block, size) : ta_domain_malloc((TRACEALLOC_DOMAIN), size);
}

#undef strdup
#undef strndup
#define malloc(size)                   ta_domain_malloc((TRACEALLOC_DOMAIN), (size))
#define calloc(count, size)            ta_domain_calloc((TRACEALLOC_DOMAIN), (count), (size))
#define realloc(block, size)           ta_tag_realloc((block), (size))
#define aligned_alloc(alignment, size) ta_domain_aligned_alloc((TRACEALLOC_DOMAIN), (alignment), (size))
#define posix_memalign(block, alignment, size)                                                                         \
    ta_domain_posix_memalign((TRACEALLOC_DOMAIN), (block), (alignment), (size))
#define strdup(text)       ta_domain_strdup((TRACEALLOC_DOMAIN), (text))
#define strndup(text, max) ta_domain_strndup((TRACEALLOC_DOMAIN), (text), (max))

#endif
