/* aligned.c: requests with an alignment. Up to 16 they are malloc's own; above, the block is made larger and the header
 * placed so that the user pointer is aligned (header.h draws it). */
#include "alloc/alloc.h"
#include "alloc/entry.h"
#include "alloc/names.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

TA_INLINE int is_power_of_two(size_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

TA_INLINE void *allocate_aligned(size_t alignment, size_t size, struct ta__caller caller)
{
    ta__mark_entered();
    return ta__allocate(&(struct ta__request){.size = size, .alignment = alignment, .domain = TA__DOMAIN_AMBIENT},
                        caller);
}

/* glibc's aligned_alloc and memalign take any alignment; one that is no power of two is rounded up to the next. */
static size_t rounded_alignment(size_t alignment)
{
    size_t rounded = 16;
    while (rounded < alignment && rounded != 0)
        rounded *= 2;
    return rounded;
}

TA_ENTRY void *ta_memalign(size_t alignment, size_t size)
{
    if (TA_UNLIKELY(!is_power_of_two(alignment))) {
        if (alignment > SIZE_MAX / 2 + 1)
            return ta__invalid_alignment();
        alignment = rounded_alignment(alignment);
    }
    return allocate_aligned(alignment, size, TA__CALLER());
}

TA_ENTRY void *ta_aligned_alloc(size_t alignment, size_t size)
{
    if (TA_UNLIKELY(!is_power_of_two(alignment))) {
        if (alignment > SIZE_MAX / 2 + 1)
            return ta__invalid_alignment();
        alignment = rounded_alignment(alignment);
    }
    return allocate_aligned(alignment, size, TA__CALLER());
}

TA_ENTRY int ta_posix_memalign(void **block, size_t alignment, size_t size)
{
    if (TA_UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void *) != 0))
        return EINVAL;
    int saved_errno = errno;
    void *user = allocate_aligned(alignment, size, TA__CALLER());
    errno = saved_errno;
    if (TA_UNLIKELY(user == NULL))
        return ENOMEM;
    *block = user;
    return 0;
}

TA_ENTRY void *ta_valloc(size_t size)
{
    return allocate_aligned((size_t)sysconf(_SC_PAGESIZE), size, TA__CALLER());
}

TA_ENTRY void *ta_pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (TA_UNLIKELY(size > SIZE_MAX - page))
        return ta__out_of_memory();
    return allocate_aligned(page, (size + page - 1) & ~(page - 1), TA__CALLER());
}

TA_ENTRY size_t ta_usable_size(void *block)
{
    return ta__usable(block);
}

TA_ALSO_NAMED(memalign, ta_memalign)
TA_ALSO_NAMED(aligned_alloc, ta_aligned_alloc)
TA_ALSO_NAMED(posix_memalign, ta_posix_memalign)
TA_ALSO_NAMED(valloc, ta_valloc)
TA_ALSO_NAMED(pvalloc, ta_pvalloc)
TA_ALSO_NAMED(malloc_usable_size, ta_usable_size)
