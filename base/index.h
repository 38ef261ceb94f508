/* index.h: finds a row of a table by its content. For the cold sides: writing, reading and analysing snapshots.
 *
 * The rows stay with their owner, who says how a row is hashed and compared; the index holds their numbers. It is open
 * addressing, at most half full, in mapped memory. One thread at a time. */
#ifndef TA_BASE_INDEX_H
#define TA_BASE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

/* Begins zeroed. */
struct ta__index {
    uint32_t *slots;   /* number of a row + 1, 0 = free */
    size_t slot_count; /* a power of two */
};

typedef uint64_t ta__index_hash(const void *table, uint32_t row);
typedef int ta__index_same(const void *table, uint32_t row, const void *wanted);

TA_NODISCARD int ta__index_grow(struct ta__index *index, size_t rows, ta__index_hash *hash_of, const void *table);
void ta__index_free(struct ta__index *index);

/* Makes room for one row more than the `rows` that the table has; all of them are in the index. 0, or -1 without memory,
 * with the index as it was. */
TA_NODISCARD TA_INLINE int ta__index_reserve(struct ta__index *index, size_t rows, ta__index_hash *hash_of,
                                             const void *table)
{
    return TA_LIKELY((rows + 1) * 2 <= index->slot_count) ? 0 : ta__index_grow(index, rows, hash_of, table);
}

/* The slot of the row that is the same as `wanted`. It holds 0 when there is none; then the number + 1 of the new row
 * belongs there. The index must have room. */
TA_INLINE uint32_t *ta__index_find(const struct ta__index *index, uint64_t hash, ta__index_same *is_same,
                                   const void *table, const void *wanted)
{
    size_t at = hash & (index->slot_count - 1);
    while (index->slots[at] != 0 && !is_same(table, index->slots[at] - 1, wanted))
        at = (at + 1) & (index->slot_count - 1);
    return &index->slots[at];
}

#endif
