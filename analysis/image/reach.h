/* reach.h: which blocks can be reached from others, by sets of bits over slots. */
#ifndef TA_ANALYSIS_IMAGE_REACH_H
#define TA_ANALYSIS_IMAGE_REACH_H

#include "analysis/image/block_graph.h"

TA_INLINE int ta__bit(const uint64_t *bits, uint32_t slot)
{
    return (bits[slot / 64] >> slot % 64 & 1) != 0;
}
TA_INLINE void ta__bit_set(uint64_t *bits, uint32_t slot)
{
    bits[slot / 64] |= UINT64_C(1) << slot % 64;
}
/* Words of a set. */
static inline size_t ta__bit_words(const struct ta__block_graph *graph)
{
    return (size_t)graph->pages->slot_count / 64 + 1;
}

/* Slots that wait for their turn. */
struct ta__slot_stack {
    uint32_t *slots;
    size_t count, capacity;
};
TA_NODISCARD int ta__slot_push(struct ta__slot_stack *stack, uint32_t slot);

/* Adds to `reached` what can be reached from the slots on the stack, which are in it already, inside of `within` (NULL =
 * anywhere). `visit`, unless NULL, is called for each slot that is added. 0, or -1 with the error set. */
TA_NODISCARD int ta__reach(const struct ta__block_graph *graph, struct ta__slot_stack *stack, const uint64_t *within,
                           uint64_t *reached, void (*visit)(void *context, uint32_t slot), void *context);
/* All that can be reached from outside. A new set, for free(); NULL with the error set. */
uint64_t *ta__reach_from_roots(const struct ta__block_graph *graph);

#endif
