/* heap_pages.h: the pages of mimalloc in a process: runs of memory cut into blocks of one size. Found by mimalloc's table of
 * pages, which has one entry for each slice of address space; nothing else of the heap is looked at. */
#ifndef TA_ANALYSIS_IMAGE_HEAP_PAGES_H
#define TA_ANALYSIS_IMAGE_HEAP_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/image/layout.h"

enum ta__heap_page_flags {
    TA__HEAP_PAGE_HEADERS = 1,  /* each block begins with a header of ours */
    TA__HEAP_PAGE_OWN = 2,      /* mimalloc's own heap: no block of the program's */
    TA__HEAP_PAGE_SINGLE = 4,   /* not of mimalloc at all: one block of the emergency memory */
    TA__HEAP_PAGE_INTERIOR = 8, /* pointers may lead into blocks rather than to their beginnings */
};

/* Sorted by `start`, without overlap. */
struct ta__heap_page {
    uint64_t start;  /* of the first block */
    uint64_t stride; /* from one block to the next */
    uint64_t meta;   /* mimalloc's description of the page */
    uint64_t heap;
    uint64_t lists[3]; /* the first free block of each list; 0 = none */
    uint32_t slots;    /* blocks that were ever made */
    uint32_t reserved; /* blocks that the page has room for */
    uint32_t used;     /* as mimalloc counts them */
    uint32_t flags;
    uint32_t first_slot;  /* number of its first slot among those of all pages: a multiple of 64 */
    uint32_t header;      /* bytes at the beginning of each block that are not the user's */
    uint64_t reciprocal;  /* of the stride: multiplied by a distance, the upper half is the slot */
    uint64_t user_offset; /* SINGLE: from the block to the user's bytes */
    uint64_t user_size;
};

struct ta__range {
    uint64_t start, end;
};

struct ta__heap_pages {
    struct ta__heap_page *items;
    size_t count, capacity;
    uint32_t slot_count;   /* of all pages */
    size_t damaged;        /* pages that could not be believed */
    struct ta__range *own; /* sorted, disjoint: memory of the library's and mimalloc's own */
    size_t own_count, own_capacity;
    struct ta__range *arenas; /* sorted, disjoint: where mimalloc's pages come from */
    size_t arena_count, arena_capacity;
    struct ta__range *tables; /* the same: what mimalloc keeps of an arena at its beginning */
    size_t table_count, table_capacity;
    uint64_t low, high; /* of all pages */
    uint32_t *parts; /* for each 512 MiB of address space from low on: its place in by_slice + 1; 0 = no page there */
    uint32_t *by_slice; /* page + 1 of each 64 KiB; 0 = none; TA__SLICE_MANY = to be searched */
    size_t by_slice_count, by_slice_capacity;
};
enum { TA__SLICE_BITS = 16, TA__PART_BITS = 29, TA__PART_SLICES = 1 << (TA__PART_BITS - TA__SLICE_BITS) };
#define TA__SLICE_MANY UINT32_MAX

/* 0, or -1 with the error set. */
TA_NODISCARD int ta__heap_pages_read(struct ta__heap_pages *pages, struct ta__target *target,
                                     const struct ta__layout *layout);
void ta__heap_pages_free(struct ta__heap_pages *pages);

/* The page whose blocks an address lies among, or NULL. */
const struct ta__heap_page *ta__heap_page_search(const struct ta__heap_pages *pages, uint64_t address);
TA_INLINE const struct ta__heap_page *ta__heap_page_at(const struct ta__heap_pages *pages, uint64_t address)
{
    if (address - pages->low >= pages->high - pages->low)
        return NULL;
    uint32_t part = pages->parts[(address >> TA__PART_BITS) - (pages->low >> TA__PART_BITS)];
    if (part == 0)
        return NULL;
    uint32_t found = pages->by_slice[part - 1 + ((address >> TA__SLICE_BITS) & (TA__PART_SLICES - 1))];
    if (TA_UNLIKELY(found == TA__SLICE_MANY))
        return ta__heap_page_search(pages, address);
    const struct ta__heap_page *page = &pages->items[found - 1];
    return found != 0 && address - page->start < page->stride * page->slots ? page : NULL;
}
/* The same; also where the page has no blocks yet, behind its last one. */
const struct ta__heap_page *ta__heap_page_near(const struct ta__heap_pages *pages, uint64_t address);
/* The page of a slot. */
const struct ta__heap_page *ta__heap_page_of_slot(const struct ta__heap_pages *pages, uint32_t slot);
/* Is the address in memory of ours, or of mimalloc's? Ranges must be sorted. */
int ta__range_holds(const struct ta__range *ranges, size_t count, uint64_t address);
/* The first range that ends above the address: an index. */
size_t ta__range_from(const struct ta__range *ranges, size_t count, uint64_t address);

/* Pages take whole slices of the allocator's arenas: what is left of the last one is theirs too. */
static inline struct ta__range ta__heap_page_extent(const struct ta__heap_page *page)
{
    const uint64_t slice = UINT64_C(1) << TA__SLICE_BITS;
    uint64_t reach = page->start + page->stride * page->reserved;
    if ((page->flags & TA__HEAP_PAGE_SINGLE) != 0)
        return (struct ta__range){page->start, reach};
    return (struct ta__range){page->start & ~(slice - 1), (reach + slice - 1) & ~(slice - 1)};
}

/* Whose memory an address is, as far as the library knows; *end is lowered to where that may change. */
enum ta__memory_owner {
    TA__OWNER_PROGRAM, /* nothing of the library's */
    TA__OWNER_PAGE,    /* a page of the allocator */
    TA__OWNER_ARENA,   /* the allocator's, but no page now */
    TA__OWNER_TABLES,  /* tables of the allocator, or of ours */
};
enum ta__memory_owner ta__heap_owner(const struct ta__heap_pages *pages, uint64_t address, uint64_t *end);

static inline uint64_t ta__heap_page_end(const struct ta__heap_page *page)
{
    return page->start + page->stride * page->slots;
}
static inline uint64_t ta__heap_page_reach(const struct ta__heap_page *page)
{
    return page->start + page->stride * page->reserved;
}

#endif
