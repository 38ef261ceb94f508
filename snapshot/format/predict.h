/* predict.h: which frame follows which — the model that writer and reader of contexts share.
 *
 * Calling-context trees repeat themselves: what was called from a call site once is called from there again under
 * other parents. For each frame the model keeps the 16 frames that followed it most recently; a context is then written
 * as a rank in that list, mostly 0 or 1. Both sides make the same moves, so the lists never travel.
 *
 *     list of frame p:  [ most recent | … | least recent ]      id + 1, 0 = empty
 *                         rank 0            rank 15 */
#ifndef TA_SNAPSHOT_FORMAT_PREDICT_H
#define TA_SNAPSHOT_FORMAT_PREDICT_H

#include "snapshot/format/buffer.h"
#include "snapshot/format/format.h"

struct ta__predict {
    struct ta__buffer lists; /* of uint32_t[TA__PREDICT_WAYS]; index 0 = the root, frame f = f + 1 */
    uint32_t next;           /* lowest frame that no context used: every frame below it was used */
};

/* Lists for all frames below `frame_count`. 0, or -1 without memory. */
TA_NODISCARD TA_INLINE int ta__predict_extend(struct ta__predict *predict, uint32_t frame_count)
{
    size_t wanted = ((size_t)frame_count + 1) * TA__PREDICT_WAYS * sizeof(uint32_t);
    if (wanted <= predict->lists.length)
        return 0;
    if (ta__buffer_reserve(&predict->lists, wanted - predict->lists.length) != 0)
        return -1;
    predict->lists.length = wanted; /* fresh pages read as zero */
    return 0;
}

TA_INLINE uint32_t *ta__predict_list(struct ta__predict *predict, uint32_t parent_list)
{
    return TA__ROWS(uint32_t, predict->lists) + (size_t)parent_list * TA__PREDICT_WAYS;
}

/* `entry` (frame + 1) moves from `rank` to the front; TA__PREDICT_WAYS = it was not in the list. */
TA_INLINE void ta__predict_move(uint32_t *list, uint32_t rank, uint32_t entry)
{
    for (uint32_t i = rank < TA__PREDICT_WAYS ? rank : TA__PREDICT_WAYS - 1; i > 0; i--)
        list[i] = list[i - 1];
    list[0] = entry;
}

TA_INLINE uint32_t ta__predict_find(const uint32_t *list, uint32_t entry)
{
    uint32_t rank = 0;
    while (rank < TA__PREDICT_WAYS && list[rank] != entry)
        rank++;
    return rank;
}

#endif
