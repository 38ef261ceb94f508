/* number_sort.h: sorts by numbers, in time proportional to how many there are. Groups by the million are ranked and put
 * in order with it. */
#ifndef TA_ANALYSIS_NUMBER_SORT_H
#define TA_ANALYSIS_NUMBER_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct ta__numbered {
    uint64_t value;
    uint32_t model, number; /* what the value belongs to; `model` is for callers that have several */
};

/* Ascending by value, stable. 0, or -1 with the error set when there is no memory. */
TA_NODISCARD int ta__sort_numbered(struct ta__numbered *items, size_t count);

/* The numbers 0 … count - 1, ordered by `key_count` keys, the first one most significant; equal ones keep their order.
 * `key` answers key number k of item i; a smaller one comes first. NULL with the error set when there is no memory. */
uint32_t *ta__order_by_keys(const void *user, size_t count, unsigned key_count,
                            uint64_t (*key)(const void *user, uint32_t item, unsigned k));

#endif
