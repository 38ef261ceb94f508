/* request_limit.h: sizes that no honest request has. */
#ifndef TA_ALLOC_REQUEST_LIMIT_H
#define TA_ALLOC_REQUEST_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

/* The cold half: beyond a gibibyte, may the system grant this at all? mimalloc reserves without asking. */
TA_COLD int ta__size_is_grantable(size_t size);

TA_INLINE int ta__size_is_sane(size_t size, size_t alignment)
{
    if (TA_LIKELY((size | alignment) < UINT64_C(1) << 30))
        return 1;
    return alignment < UINT64_C(1) << 46 && size < UINT64_C(1) << 47 && ta__size_is_grantable(size + alignment);
}

#endif
