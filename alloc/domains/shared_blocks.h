/* shared_blocks.h: which blocks belong to a domain that has no heap of its own.
 *
 * Domains beyond the first few hundred share one heap (TA__DOMAIN_HEAPS_MAX). Its pages do not say whose a block is, so
 * each such domain has a list of its blocks: what it costs to destroy the domain is what the domain holds.
 *
 *      struct ta__domain              nodes (one table for all)                the block
 *      first_block ──────────────►  { user, next, previous } ──────────────►  [ header | size bytes | node's number ]
 *
 * The number behind the user's bytes leads back from a block to its node; a node that does not name the block in return
 * was overrun and is left alone. A thread's slot of such a domain never has a part of the heap, so that every request
 * and every free takes the slow path, which calls what is here, inside an operation. */
#ifndef TA_ALLOC_DOMAINS_SHARED_BLOCKS_H
#define TA_ALLOC_DOMAINS_SHARED_BLOCKS_H

#include "alloc/domains/domains.h"

/* Bytes that a block of the domain needs behind the user's. Valid once the domain's part was asked for. */
TA_INLINE size_t ta__shared_extra(uint32_t index)
{
    return TA_UNLIKELY(ta__load_relaxed(&ta__domain_at(index)->is_shared) != 0) ? sizeof(uint32_t) : 0;
}

/* A block came, goes, or changed its size where it stands. Nothing happens in a domain with a heap of its own. Where
 * there is no memory for a node, the block is not listed and outlives the domain's end as memory that is lost. */
TA_COLD void ta__shared_list(uint32_t index, void *user, size_t size);
TA_COLD void ta__shared_unlist(uint32_t index, void *user, size_t size);
TA_COLD void ta__shared_move(uint32_t index, void *user, size_t old_size, size_t size);

TA_INLINE void ta__shared_block_in(uint32_t index, void *user, size_t size)
{
    if (ta__shared_extra(index) != 0)
        ta__shared_list(index, user, size);
}

TA_INLINE void ta__shared_block_out(uint32_t index, void *user, size_t size)
{
    if (ta__shared_extra(index) != 0)
        ta__shared_unlist(index, user, size);
}

/* Takes one off a list that no domain has any more; NULL when it is empty. */
void *ta__shared_take(uint32_t *first);

void ta__shared_after_fork(void);

#endif
