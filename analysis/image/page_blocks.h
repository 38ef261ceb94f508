/* page_blocks.h: the live blocks of one page: which of its slots are in use, and what each of them is. */
#ifndef TA_ANALYSIS_IMAGE_PAGE_BLOCKS_H
#define TA_ANALYSIS_IMAGE_PAGE_BLOCKS_H

#include "analysis/image/block_marks.h"

struct ta__page_block {
    uint32_t slot;   /* within the page */
    uint32_t offset; /* of the user's bytes from the slot's beginning */
    uint64_t size;   /* asked for; where that is not known, what the block has room for */
    uint32_t leaf;
    uint32_t domain; /* index; what a leaf says goes before it */
    uint8_t has_trace, is_size_known;
};

/* Pages of up to so many bytes are read as a whole; of others only what tells their blocks. */
enum { TA__PAGE_WHOLE = 1 << 20, TA__PAGE_BLOCKS_MOST = 1 << 16 };

struct ta__page_walk {
    struct ta__target *target;
    const struct ta__marks *marks;
    uint8_t *bytes; /* the page from its first slot to its last, when `is_whole`; else the heads of its slots */
    size_t room;
    uint64_t *in_list;             /* a bit for each slot that is free */
    struct ta__page_block *blocks; /* live, ascending */
    uint32_t block_count;
    int is_whole;
    int is_damaged; /* a list of free blocks led astray: the page's blocks may be wrong */
};

/* 0, or -1 with the error set: no memory. */
TA_NODISCARD int ta__page_walk_open(struct ta__page_walk *walk, struct ta__target *target,
                                    const struct ta__marks *marks);
void ta__page_walk_close(struct ta__page_walk *walk);
/* Fills in blocks, and bytes. What cannot be read has no blocks. 0, or -1 without memory. */
TA_NODISCARD int ta__page_walk(struct ta__page_walk *walk, const struct ta__heap_page *page);

static inline uint64_t ta__page_block_address(const struct ta__heap_page *page, const struct ta__page_block *block)
{
    return page->start + page->stride * block->slot + block->offset;
}

#endif
