/* wide.h: sums of a whole snapshot, exact for any input that fits in memory. */
#ifndef TA_ANALYSIS_WIDE_H
#define TA_ANALYSIS_WIDE_H

#include <stdint.h>

#include "base/attributes.h"

typedef unsigned __int128 ta__wide;
typedef __int128 ta__signed_wide;

TA_INLINE uint64_t ta__saturate(ta__wide value)
{
    return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

TA_INLINE int64_t ta__saturate_signed(ta__signed_wide value)
{
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

#endif
