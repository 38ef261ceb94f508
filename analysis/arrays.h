/* arrays.h: arrays that are made zeroed, grow, and are sorted. They come from malloc, in the domain of analysis. */
#ifndef TA_ANALYSIS_ARRAYS_H
#define TA_ANALYSIS_ARRAYS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attributes.h"

/* `count` zeroed items; NULL (and the error set) when there is no memory. Never NULL for 0 items. */
TA_NODISCARD void *ta__new_array(size_t count, size_t item_size);
/* Makes room for at least `needed` items; 0, or -1 with the array as it was. */
TA_NODISCARD int ta__grow(void *array_pointer, size_t *capacity, size_t needed, size_t item_size);

/* A stable sort of `count` items. 0, or -1 when there is no memory. */
TA_NODISCARD int ta__sort(void *items, size_t count, size_t item_size, int (*compare)(const void *, const void *));

/* How many items begin at or before the address: each starts with its first address as uint64_t, and they ascend by it. */
TA_INLINE size_t ta__begun_by(const void *items, size_t count, size_t item_size, uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t start;
        memcpy(&start, (const char *)items + middle * item_size, sizeof start);
        if (start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
