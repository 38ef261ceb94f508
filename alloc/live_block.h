/* live_block.h: what page and header tell of a pointer: is it a live block of ours, and which. For everything that is
 * not the common case. */
#ifndef TA_ALLOC_LIVE_BLOCK_H
#define TA_ALLOC_LIVE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "alloc/heap.h"

struct ta__live_block {
    mi_page_t *page;
    void *block; /* what mimalloc knows */
    size_t size; /* as asked for; of a plain block, what it has room for */
    uint32_t kind;
    uint32_t leaf;   /* 0: none */
    uint32_t domain; /* index */
    int has_header;
};

/* 0 when `user` is no live block, as far as that can be told: a plain block that was freed looks like a live one. */
int ta__live_block(const void *user, struct ta__live_block *live);

/* The same without a look at tables, which outside of operations may be emptied at the same moment: leaf and domain are 0. */
int ta__block_alone(const void *user, struct ta__live_block *block);

/* The header says something else from now on. */
void ta__live_block_rewrite(void *user, const struct ta__live_block *live, uint32_t kind, uint32_t leaf, size_t size);

#endif
