/* number_sort.c: see number_sort.h. A byte at a time from the lowest; bytes that are equal everywhere are skipped. */
#include "analysis/number_sort.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

static int compare_numbered(const void *a, const void *b)
{
    const struct ta__numbered *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* One byte of all values: 1 when the items now stand in `to`, 0 when nothing had to be done. */
static int sort_by_byte(const struct ta__numbered *from, struct ta__numbered *to, size_t count, unsigned shift)
{
    size_t starts[256] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++)
        starts[from[i].value >> shift & 0xFF]++;
    if (starts[from[0].value >> shift & 0xFF] == count)
        return 0;
    for (size_t i = 0; i < 256; i++) {
        size_t size = starts[i];
        starts[i] = sum;
        sum += size;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i].value >> shift & 0xFF]++] = from[i];
    return 1;
}

/* What differs between any two values, so that no byte is counted in vain. */
static uint64_t differing_bits(const struct ta__numbered *items, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 1; i < count; i++)
        bits |= items[i].value ^ items[0].value;
    return bits;
}

int ta__sort_numbered(struct ta__numbered *items, size_t count)
{
    if (count < 256)
        return ta__sort(items, count, sizeof *items, compare_numbered);
    uint64_t bits = differing_bits(items, count);
    if (bits == 0)
        return 0;
    struct ta__numbered *spare = ta__new_array(count, sizeof *spare), *from = items, *to = spare;
    if (spare == NULL)
        return -1;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((bits >> shift & 0xFF) == 0 || !sort_by_byte(from, to, count, shift))
            continue;
        struct ta__numbered *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
    free(spare);
    return 0;
}

uint32_t *ta__order_by_keys(const void *user, size_t count, unsigned key_count,
                            uint64_t (*key)(const void *user, uint32_t item, unsigned k))
{
    struct ta__numbered *items = ta__new_array(count, sizeof *items);
    uint32_t *order = ta__new_array(count, sizeof *order);
    int status = items == NULL || order == NULL ? -1 : 0;
    for (size_t i = 0; status == 0 && i < count; i++)
        items[i].number = (uint32_t)i;
    for (unsigned k = key_count; status == 0 && k-- > 0;) {
        for (size_t i = 0; i < count; i++)
            items[i].value = key(user, items[i].number, k);
        status = ta__sort_numbered(items, count);
    }
    for (size_t i = 0; status == 0 && i < count; i++)
        order[i] = items[i].number;
    free(items);
    if (status == 0)
        return order;
    free(order);
    return NULL;
}
