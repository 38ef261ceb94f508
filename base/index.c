/* index.c: see index.h. */
#include "base/index.h"

#include "base/memory.h"

enum { SLOTS_MIN = 1024 }; /* one page */

int ta__index_grow(struct ta__index *index, size_t rows, ta__index_hash *hash_of, const void *table)
{
    size_t count = index->slot_count < SLOTS_MIN ? SLOTS_MIN : index->slot_count;
    while (count < (rows + 1) * 2)
        count *= 2;
    uint32_t *slots = ta__memory_map(count * sizeof *slots);
    if (slots == NULL)
        return -1;
    for (uint32_t row = 0; row < rows; row++) {
        size_t at = hash_of(table, row) & (count - 1);
        while (slots[at] != 0)
            at = (at + 1) & (count - 1);
        slots[at] = row + 1;
    }
    ta__index_free(index);
    *index = (struct ta__index){slots, count};
    return 0;
}

void ta__index_free(struct ta__index *index)
{
    if (index->slots != NULL)
        ta__memory_unmap(index->slots, index->slot_count * sizeof *index->slots);
    *index = (struct ta__index){NULL, 0};
}
