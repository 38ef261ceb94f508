/* heap.h: our face of mimalloc — the only place that knows how its heaps, pages and blocks are made.
 *
 *   heap    one per domain, and one more for what has no header; any thread      mi_heap_t
 *   theap   a thread's part of a heap: owner only                                 mi_theap_t
 *   page    blocks of one size; found from any address                            mi_page_t
 *
 * Pages are of two kinds. In *plain* ones the block is what the user gets: they belong to the plain heap, which serves
 * what is not traced and of domain 0. In pages *with headers* each block begins with one (alloc/header.h); all other
 * heaps have such pages. mimalloc is patched for these (cmake/mimalloc-3.4.1.patch): their blocks begin 8 bytes later,
 * classes of 128 bytes and more have room for the header beyond their size, and the parts' tables of small pages are
 * indexed by the user's size. They always have mimalloc's flag for pointers into blocks, and plain pages never have it,
 * because plain blocks are not given out at an alignment of ours. So the comparison of a page's thread word with the
 * thread tells three things at once: mine, of that kind, and not full.
 *
 * The inline functions are mimalloc's own fast paths, spelled out so that nothing is paid twice: no look-up of the
 * thread, no test that a block of ours makes needless. They are called inside an operation (base/safepoint.h). What is
 * uncommon goes to the cold functions, which also keep errno: mimalloc's slow paths change it even when they succeed.
 */
#ifndef TA_ALLOC_HEAP_H
#define TA_ALLOC_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include <mimalloc.h>
#include <mimalloc/internal.h>
#include <mimalloc/prim.h>

#include "alloc/header.h"
#include "base/attributes.h"

/* Requests up to this many bytes are served by the inline path. */
enum { TA__SMALL_MAX = MI_SMALL_SIZE_MAX };

/* The empty part that every thread begins with: it never has a free block, so that the cold path runs. */
#define TA__THEAP_EMPTY ((void *)(uintptr_t)&_mi_theap_empty)

int ta__heap_process_init(void);

/* ---- blocks from a part: small ones ------------------------------------------------------------------------------- */

TA_INLINE mi_page_t *ta__heap_small_page(const void *theap, size_t size)
{
    return ((const mi_theap_t *)theap)->pages_free_direct[(size + sizeof(uintptr_t) - 1) / sizeof(uintptr_t)];
}

/* A block for `size` bytes of the user's with a lock-free, call-free pop; NULL: ask the cold function. */
TA_INLINE void *ta__heap_pop(void *theap, size_t size)
{
    mi_page_t *page = ta__heap_small_page(theap, size);
    mi_block_t *block = page->free;
    if (TA_UNLIKELY(block == NULL))
        return NULL;
    page->free = (mi_block_t *)block->next;
    page->used++;
    return block;
}

/* When a page has no block left: what its owner freed of it since, without a search among pages, which is what
 * mimalloc would do next. Every so often, and when there is nothing, NULL: its housekeeping must have its turn. */
TA_INLINE void *ta__heap_pop_freed_of(mi_theap_t *part, mi_page_t *page)
{
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

TA_INLINE void *ta__heap_pop_freed(void *theap, size_t size)
{
    return ta__heap_pop_freed_of(theap, ta__heap_small_page(theap, size));
}

/* A block behind a header for a request that is not small, of at most TA__MEDIUM_MAX bytes; NULL: ask the cold function. */
enum { TA__MEDIUM_MAX = TA__LONG_BLOCK / 2 };
void *ta__heap_pop_medium(void *theap, size_t size);

/* The size of a plain block that stands at a multiple of `alignment` by itself: pages of powers of two up to 4 KiB begin
 * at one. 0: there is none that wastes less than a header and an alignment would. */
TA_INLINE size_t ta__heap_natural_size(size_t size, size_t alignment)
{
    enum { NATURAL_MAX = 4096 };
    if (alignment <= 16)
        return size;
    if (alignment >= size)
        return alignment <= NATURAL_MAX ? alignment : 0;
    if (size > NATURAL_MAX)
        return 0;
    size_t rounded = (size_t)1 << (64 - __builtin_clzll(size - 1));
    return rounded <= size + alignment ? rounded : 0;
}

/* Bytes of whole lines for a header and `size` bytes. */
enum { TA__LINE = MI_HEADER_LINE };
TA_INLINE size_t ta__heap_lines(size_t size)
{
    return (size + TA__MARK_SIZE + TA__LINE - 1) & ~(size_t)(TA__LINE - 1);
}

/* ---- blocks of any size (cold) ------------------------------------------------------------------------------------ */

/* From the plain heap: the block. errno is kept; NULL when there is no memory. */
TA_COLD void *ta__heap_allocate(void *theap, size_t size, int zeroed);
/* The same for a small block whose page has none left. */
TA_COLD void *ta__heap_refill(void *theap, size_t size);
/* From a heap with headers: where the user's bytes are, the header is for the caller to write. */
TA_COLD void *ta__heap_allocate_behind(void *theap, size_t size, int zeroed);

/* ---- pages --------------------------------------------------------------------------------------------------------- */

/* The page of an address, NULL when the address is not ours. Takes any number: mimalloc's own look-up leaves its table
 * on addresses that no process can have. The page of a live block stays; of another address it may just be coming or
 * going. The first part of the table that was made is looked at without the table: it covers 4 GiB, and mappings stand
 * close together. */
TA_MAY_RACE mi_page_t *ta__heap_page(const void *address)
{
    uintptr_t slice = (uintptr_t)address >> MI_ARENA_SLICE_SHIFT;
    uintptr_t within = slice - mi_atomic_load_acquire(&_mi_page_window.first);
    if (TA_LIKELY(within < MI_PAGE_MAP_SUB_COUNT))
        return mi_atomic_load_relaxed(&_mi_page_window.sub)[within];
    mi_submap_t part = _mi_page_map_at((slice >> MI_PAGE_MAP_SUB_SHIFT) & (MI_PAGE_MAP_COUNT - 1));
    return part != NULL ? part[slice & (MI_PAGE_MAP_SUB_COUNT - 1)] : NULL;
}

TA_INLINE int ta__page_has_headers(const mi_page_t *page)
{
    return (mi_page_xthread_id(page) & MI_PAGE_HAS_INTERIOR_POINTERS) != 0;
}

/* The same of a page that may be going, for who looks again when it cannot: one instruction. */
TA_MAY_RACE int ta__page_seems_headed(const mi_page_t *page)
{
    return (*(const uint8_t *)(const void *)&page->xthread_id & MI_PAGE_HAS_INTERIOR_POINTERS) != 0;
}

/* The calling thread's, of that kind, and with a place in a queue of pages that have room. */
TA_INLINE int ta__page_is_my_plain(const mi_page_t *page)
{
    return _mi_prim_thread_id() == mi_page_xthread_id(page);
}

TA_INLINE int ta__page_is_mine_with_headers(const mi_page_t *page)
{
    return (_mi_prim_thread_id() | MI_PAGE_HAS_INTERIOR_POINTERS) == mi_page_xthread_id(page);
}

/* Of a thread that is another one, or gone; `word` is the page's, read once. */
TA_INLINE int ta__page_is_elsewhere(mi_threadid_t word)
{
    return (_mi_prim_thread_id() ^ word) > MI_PAGE_FLAG_MASK;
}

/* Of a page with headers that is the calling thread's: what its part says. */
TA_INLINE void *ta__page_owner(const mi_page_t *page)
{
    return page->owner;
}

/* Bytes in front of the user's. */
TA_INLINE size_t ta__page_header_size(const mi_page_t *page)
{
    return page->block_size > TA__LONG_BLOCK ? TA__LONG_HEADER : TA__MARK_SIZE;
}

/* The block of any address in a page, and the number of it. */
TA_INLINE void *ta__page_block_around(const mi_page_t *page, const void *address)
{
    size_t distance = (uintptr_t)address - (uintptr_t)mi_page_start(page);
    return (void *)((uintptr_t)address - distance % page->block_size);
}

/* Bytes of the user's at an address that the block was given out as. */
TA_INLINE size_t ta__page_room(const mi_page_t *page, const void *user)
{
    const char *block = ta__page_block_around(page, user);
    return (size_t)(block + mi_page_usable_block_size(page) - (const char *)user);
}

/* mimalloc finds a page from addresses this far into a large block. For one further in, what the user of a block
 * with a huge alignment gets, the table is told and must be told again before the block is freed; 0 when it has no memory. */
#define TA__PAGE_REACH (MI_LARGE_PAGE_SIZE - 2 * MI_ARENA_SLICE_SIZE)
TA_COLD int ta__heap_reach_further(const void *block, const void *user);
TA_COLD void ta__heap_reach_no_further(const void *user);

/* Whether the address lies in memory reserved for blocks, though perhaps in no page now. */
TA_COLD int ta__heap_reaches(const void *address);

/* ---- freeing ------------------------------------------------------------------------------------------------------ */

/* Any block: of another thread's page, of a full one … */
TA_COLD void ta__heap_free_slow(mi_page_t *page, void *block);
/* The last block of a page was freed. */
TA_COLD void ta__heap_page_emptied(mi_page_t *page);

/* A page whose thread is gone has a block on its list: perhaps nobody uses it any more. */
TA_COLD void ta__heap_collect_abandoned(mi_page_t *page, void *block);

/* Puts a block onto the list that a page elsewhere has for others; 1 when the page had no thread: call
 * ta__heap_collect_abandoned. */
TA_INLINE int ta__heap_push_elsewhere(mi_page_t *page, void *freed)
{
    mi_block_t *block = freed;
    mi_thread_free_t old = mi_atomic_load_relaxed(&page->xthread_free);
    do
        block->next = (mi_encoded_t)mi_tf_block(old);
    while (!mi_atomic_cas_weak_acq_rel(&page->xthread_free, &old, mi_tf_create(block, true)));
    return !mi_tf_is_owned(old);
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
    if (TA_UNLIKELY(!ta__page_is_my_plain(page) && !ta__page_is_mine_with_headers(page)))
        ta__heap_free_slow(page, block);
    else if (TA_UNLIKELY(ta__heap_push(page, block)))
        ta__heap_page_emptied(page);
}

/* A block with a header of a class that is seldom asked for: an empty page of it is not kept for the next. */
TA_COLD void ta__heap_free_rare(mi_page_t *page, void *block);

/* ---- heaps and their parts (cold) -------------------------------------------------------------------------------- */

/* With headers, if its pages name an owner: this one, until a part says another. Of such a heap the users' bytes may stand
 * at lines of TA__LINE bytes: its parts are asked, by a pop or a refill, for ta__heap_lines(size), and nothing larger. */
void *ta__heap_new(void *no_owner, int is_lined);
/* The calling thread's part; NULL when there is no memory for it. */
void *ta__heap_part(void *heap);
/* What the pages name that the part will have; it has none yet. */
void ta__heap_part_owned_by(void *part, void *owner);
/* Frees all blocks at once; the world is stopped. */
void ta__heap_destroy(void *heap);
/* Calls visit(user, room) for every live block; the world is stopped; visit must not allocate. */
void ta__heap_visit(void *heap, void (*visit)(void *user, size_t room, void *context), void *context);
/* Calls visit(start, bytes) for every page; the world is stopped. */
void ta__heap_visit_areas(void *heap, void (*visit)(uintptr_t start, size_t bytes, void *context), void *context);
/* The calling thread is about to end. */
void ta__heap_thread_done(void);
void ta__heap_trim(void);
/* How much is mapped at once from now on, where so many bytes of address space are left (SIZE_MAX: no limit). */
void ta__heap_choose_sizes(size_t left);
/* The same; and with the world stopped, where little is left, what is mapped and not needed goes back. */
void ta__heap_fit(size_t left);
/* Milliseconds until pages without a block go back to the system; -1: never. */
void ta__heap_set_purge_delay(long milliseconds);

/* Bytes in blocks of a heap, headers and rounding included; the world is stopped. */
size_t ta__heap_in_use(void *heap);

struct ta__heap_figures {
    size_t committed, reserved;
};
void ta__heap_figures(struct ta__heap_figures *figures);

#endif
