/* arrays.c: see arrays.h. */
#include "analysis/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/analysis_domain.h"
#include "analysis/failure.h"

void *ta__new_array(size_t count, size_t item_size)
{
    TA__OWN_DOMAIN;
    void *items = calloc(count == 0 ? 1 : count, item_size);
    if (items == NULL)
        ta__fail_memory();
    return items;
}

int ta__grow(void *array_pointer, size_t *capacity, size_t needed, size_t item_size)
{
    if (needed <= *capacity)
        return 0;
    size_t wanted = *capacity < 16 ? 16 : *capacity + *capacity / 2;
    if (wanted < needed)
        wanted = needed;

    TA__OWN_DOMAIN;
    void *items, *grown;
    memcpy(&items, array_pointer, sizeof items);
    grown = reallocarray(items, wanted, item_size);
    if (grown == NULL)
        return ta__fail_memory();
    memcpy(array_pointer, &grown, sizeof grown);
    *capacity = wanted;
    return 0;
}

/* Merge sort, bottom up: stable, and no quadratic case. */
int ta__sort(void *items, size_t count, size_t item_size, int (*compare)(const void *, const void *))
{
    if (count < 2)
        return 0;
    TA__OWN_DOMAIN;
    char *spare = reallocarray(NULL, count, item_size);
    if (spare == NULL)
        return ta__fail_memory();

    char *from = items, *to = spare;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t left = start, left_end = start + width < count ? start + width : count;
            size_t right = left_end, right_end = left_end + width < count ? left_end + width : count;
            for (size_t at = start; at < right_end; at++) {
                int take_right = left == left_end ||
                                 (right < right_end && compare(from + right * item_size, from + left * item_size) < 0);
                size_t source = take_right ? right++ : left++;
                memcpy(to + at * item_size, from + source * item_size, item_size);
            }
        }
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != (char *)items)
        memcpy(items, from, count * item_size);
    free(spare);
    return 0;
}
