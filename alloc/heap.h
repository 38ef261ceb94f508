/* heap.h: our face of mimalloc — the only place that knows how its heaps, pages and blocks are made.
 *
 *   heap    one per domain; any thread                      mi_heap_t
 *   theap   a thread's part of a heap: owner only           mi_theap_t
 *   page    blocks of one size; found from any address      mi_page_t
 *
 * The inline functions are mimalloc's own fast paths, spelled out so that nothing is paid twice: no look-up of the
 * thread, no test that a block of ours makes needless. They are called inside an operation (base/world.h). What is
 * uncommon goes to the cold functions, which also keep errno: mimalloc's slow paths change it even when they succeed.
 */
#ifndef TA_ALLOC_HEAP_H
#define TA_ALLOC_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include <mimalloc.h>
#include <mimalloc/internal.h>
#include <mimalloc/prim.h>

#include "base/attributes.h"

/* Requests up to this many bytes, header included, are served by the inline path. */
enum { TA__SMALL_MAX = MI_SMALL_SIZE_MAX };

/* The empty part that every thread begins with: it never has a free block, so that the cold path runs. */
#define TA__THEAP_EMPTY ((void *)(uintptr_t)&_mi_theap_empty)

int ta__heap_process_init(void);

/* A block of `size` bytes (header included) with a lock-free, call-free pop; NULL: ask the cold function. */
TA_INLINE void *ta__heap_pop(void *theap, size_t size)
{
    mi_page_t *page = ((mi_theap_t *)theap)->pages_free_direct[(size + sizeof(uintptr_t) - 1) / sizeof(uintptr_t)];
    mi_block_t *block = page->free;
    if (TA_UNLIKELY(block == NULL))
        return NULL;
    page->free = (mi_block_t *)block->next;
    page->used++;
    return block;
}

/* When that page has no block left: what its owner freed of it since, without a search among pages, which is what
 * mimalloc would do next. Every so often, and when there is nothing, NULL: its housekeeping must have its turn. */
TA_INLINE void *ta__heap_pop_freed(void *theap, size_t size)
{
    mi_theap_t *part = theap;
    mi_page_t *page = part->pages_free_direct[(size + sizeof(uintptr_t) - 1) / sizeof(uintptr_t)];
    mi_block_t *block = page->local_free;
    if (TA_UNLIKELY(block == NULL || page->free != NULL || part->generic_count >= 1000))
        return NULL;
    part->generic_count++;
    page->free = (mi_block_t *)block->next;
    page->local_free = NULL;
    page->free_is_zero = false;
    page->used++;
    return block;
}

/* Any size; errno kept; NULL when there is no memory. */
TA_COLD void *ta__heap_allocate(void *theap, size_t size, int zeroed);

/* The same for a small block whose page has none left. */
TA_COLD void *ta__heap_refill(void *theap, size_t size);

/* The page of an address, NULL when the address is not ours. Takes any number: mimalloc's own look-up leaves its table
 * on addresses that no process can have. */
TA_INLINE mi_page_t *ta__heap_page(const void *address)
{
    uintptr_t slice = (uintptr_t)address >> MI_ARENA_SLICE_SHIFT;
    mi_submap_t part = _mi_page_map_at((slice >> MI_PAGE_MAP_SUB_SHIFT) & (MI_PAGE_MAP_COUNT - 1));
    return TA_LIKELY(part != NULL) ? part[slice & (MI_PAGE_MAP_SUB_COUNT - 1)] : NULL;
}

/* The page of a block of ours, from its user pointer: by its header, because a block of size 0 ends there, and what lies
 * behind may be another page's. */
TA_INLINE mi_page_t *ta__heap_page_of(const void *user)
{
    return ta__heap_page((const void *)((uintptr_t)user - 16));
}

/* mimalloc finds a page from addresses this far into a large block. For one further in, the header of a block
 * with a huge alignment, the table is told and must be told again before the block is freed; 0 when it has no memory. */
#define TA__PAGE_REACH (MI_LARGE_PAGE_SIZE - 2 * MI_ARENA_SLICE_SIZE)
TA_COLD int ta__heap_reach_further(const void *block, const void *header);
TA_COLD void ta__heap_reach_no_further(const void *header);

/* Whether the address lies in memory reserved for blocks, though perhaps in no page now. */
TA_COLD int ta__heap_reaches(const void *address);

/* Of another thread's page, or of one with flags. */
TA_COLD void ta__heap_free_slow(mi_page_t *page, void *block);
/* The last block of a page was freed. */
TA_COLD void ta__heap_page_emptied(mi_page_t *page);

/* A page of the calling thread's, with no flag set: the usual case. */
TA_INLINE int ta__heap_is_local(mi_page_t *page)
{
    return _mi_prim_thread_id() == mi_page_xthread_id(page);
}

/* Puts a block back onto the list of a local page; 1 when that was its last: call ta__heap_page_emptied. */
TA_INLINE int ta__heap_push(mi_page_t *page, void *freed)
{
    mi_block_t *block = freed;
    block->next = (mi_encoded_t)page->local_free;
    page->local_free = block;
    return TA_UNLIKELY(--page->used == 0) && page->retire_expire == 0;
}

TA_INLINE void ta__heap_free(mi_page_t *page, void *block)
{
    if (TA_UNLIKELY(!ta__heap_is_local(page)))
        ta__heap_free_slow(page, block);
    else if (TA_UNLIKELY(ta__heap_push(page, block)))
        ta__heap_page_emptied(page);
}

/* Bytes from the block's beginning that may be used, header included. */
TA_INLINE size_t ta__heap_block_bytes(const mi_page_t *page)
{
    return mi_page_usable_block_size(page);
}

/* ---- heaps and their parts (cold) -------------------------------------------------------------------------------- */

void *ta__heap_new(void);
/* The calling thread's part; NULL when there is no memory for it. */
void *ta__heap_part(void *heap);
/* Frees all blocks at once; the world is stopped. */
void ta__heap_destroy(void *heap);
/* Calls visit(block, block_bytes) for every live block; the world is stopped; visit must not allocate. */
void ta__heap_visit(void *heap, void (*visit)(void *block, size_t block_bytes, void *context), void *context);
/* Calls visit(start, bytes) for every page; the world is stopped. */
void ta__heap_visit_areas(void *heap, void (*visit)(uintptr_t start, size_t bytes, void *context), void *context);
/* The calling thread is about to end. */
void ta__heap_thread_done(void);
void ta__heap_trim(void);

/* Bytes in blocks of a heap, headers and rounding included; the world is stopped. */
size_t ta__heap_in_use(void *heap);

struct ta__heap_figures {
    size_t committed, reserved;
};
void ta__heap_figures(struct ta__heap_figures *figures);

#endif
