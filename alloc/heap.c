/* heap.c: see heap.h. Cold paths only. */
#include "alloc/heap.h"

#include <errno.h>
#include <pthread.h>

#include "base/memory.h"

extern pthread_key_t _mi_heap_default_key; /* mimalloc's prim/unix/prim.c */

/* The end of a thread is ours alone (thread.c). mimalloc's key would be older than those of a program that makes its keys
 * before it allocates; its destructor would then take the thread's heap from under destructors yet to come. */
static void take_key_away(void)
{
    if (_mi_heap_default_key == (pthread_key_t)-1)
        return;
    pthread_key_delete(_mi_heap_default_key);
    _mi_heap_default_key = (pthread_key_t)-1;
}

/* In KiB. A third of the memory that a heap costs by default; mimalloc wastes what is no multiple of its slices. It
 * reserves at least 64 MiB: where that is more than a small part of what is left, each page is asked of the system. */
static long arena_reserve(size_t left)
{
    enum { MIB = 1 << 20 };
    if (left == SIZE_MAX)
        return 128 * 1024;
    return left / MIB >= 512 ? 32 * 1024 : 0;
}

void ta__heap_choose_sizes(size_t left)
{
    long reserve = arena_reserve(left);
    mi_option_set(mi_option_arena_reserve, reserve);
    _mi_pages_are_short = reserve == 0; /* not 4 MiB where a program wants one block of 100 KiB */
}

void ta__mimalloc_cut_arenas(void); /* mimalloc_unit.c: what is free at their end */

void ta__heap_fit(size_t left)
{
    enum { SHORT = 64 << 20 };
    ta__heap_choose_sizes(left);
    if (left < SHORT)
        ta__mimalloc_cut_arenas();
}

int ta__heap_process_init(void)
{
    int saved_errno = errno;
    /* Free looks into the table of pages with whatever it is given: all of it must be there, also where the system
     * promises no memory twice and mimalloc would ask for it piece by piece. */
    mi_option_set(mi_option_pagemap_commit, 1);
    /* Our arenas are of no node. To ask how many there are, and in each new thread which it is on, takes system calls
     * that programs forbid themselves. */
    mi_option_set(mi_option_use_numa_nodes, 1);
    _mi_auto_process_init();
    take_key_away();
    /* Late destructors go on allocating: nothing may be torn down at exit. */
    mi_option_set(mi_option_destroy_on_exit, 2);
    mi_option_set(mi_option_visit_abandoned, 1);
    mi_option_set(mi_option_show_errors, 0);
    mi_option_set(mi_option_show_stats, 0);
    mi_option_set(mi_option_verbose, 0);
    ta__heap_choose_sizes(ta__memory_left());
    errno = saved_errno;
    return 1;
}

void *ta__heap_allocate(void *theap, size_t size, int zeroed)
{
    int saved_errno = errno;
    void *block = zeroed ? mi_theap_zalloc(theap, size) : mi_theap_malloc(theap, size);
    errno = saved_errno;
    return block;
}

void *ta__heap_refill(void *theap, size_t size)
{
    int *error = &errno;
    int saved_errno = *error;
    void *block = _mi_malloc_generic(theap, size, 0, NULL);
    *error = saved_errno;
    return block;
}

/* The class whose blocks have room for a header and `size` bytes, as mimalloc is asked for it: see the patch. */
static size_t class_with_header(size_t size)
{
    enum {
        ROOM = MI_HEADER_ROOM - TA__MARK_SIZE,     /* what a class has beyond a short header */
        UNCHANGED_MAX = MI_HEADER_CLASS_BELOW - 8, /* the largest class without more room */
        SHORT_MAX = 28 * 1024 + ROOM,              /* what the largest class with a short header holds */
    };
    if (size <= UNCHANGED_MAX - TA__MARK_SIZE)
        return size <= TA__MARK_SIZE ? 2 * TA__MARK_SIZE : size + TA__MARK_SIZE;
    if (size <= MI_HEADER_CLASS_MIN - TA__MARK_SIZE)
        return MI_HEADER_CLASS_BELOW;
    if (size <= SHORT_MAX)
        return size - ROOM >= MI_HEADER_CLASS_MIN ? size - ROOM : MI_HEADER_CLASS_MIN;
    return size <= MI_LARGE_MAX_OBJ_SIZE ? size : size + TA__LONG_HEADER;
}

void *ta__heap_pop_medium(void *theap, size_t size)
{
    mi_theap_t *part = theap;
    mi_page_t *page = mi_page_queue(part, class_with_header(size))->first;
    if (TA_UNLIKELY(page == NULL))
        return NULL;
    mi_block_t *block = page->free;
    if (block == NULL)
        return ta__heap_pop_freed_of(part, page);
    page->free = (mi_block_t *)block->next;
    page->used++;
    return block;
}

void *ta__heap_allocate_behind(void *theap, size_t size, int zeroed)
{
    int *error = &errno;
    int saved_errno = *error;
    char *block = _mi_malloc_generic(theap, class_with_header(size), zeroed != 0, NULL);
    *error = saved_errno;
    return block != NULL ? block + ta__page_header_size(ta__heap_page(block)) : NULL;
}

/* mimalloc_unit.c: mi_free of a block that is known to begin here, and what it does at last when the page has no thread. */
void ta__mimalloc_free_block(mi_page_t *page, void *block);
void ta__mimalloc_collect_abandoned(mi_page_t *page, void *block);

void ta__heap_collect_abandoned(mi_page_t *page, void *block)
{
    int saved_errno = errno;
    ta__mimalloc_collect_abandoned(page, block);
    errno = saved_errno;
}

void ta__heap_free_slow(mi_page_t *page, void *block)
{
    int saved_errno = errno;
    ta__mimalloc_free_block(page, block);
    errno = saved_errno;
}

void ta__mimalloc_drop_page(mi_page_t *page); /* mimalloc_unit.c: it goes back at once */

void ta__heap_free_rare(mi_page_t *page, void *block)
{
    if (!ta__page_is_mine_with_headers(page)) {
        ta__heap_free_slow(page, block);
    } else if (ta__heap_push(page, block)) {
        int saved_errno = errno;
        ta__mimalloc_drop_page(page);
        errno = saved_errno;
    }
}

void ta__heap_page_emptied(mi_page_t *page)
{
    int saved_errno = errno;
    _mi_page_retire(page);
    errno = saved_errno;
}

bool ta__page_map_add(mi_page_t *page, const void *address); /* mimalloc_unit.c */

int ta__heap_reach_further(const void *block, const void *user)
{
    int saved_errno = errno;
    int added = ta__page_map_add(ta__heap_page(block), user);
    errno = saved_errno;
    return added;
}

void ta__heap_reach_no_further(const void *user)
{
    int saved_errno = errno;
    ta__page_map_add(NULL, user);
    errno = saved_errno;
}

int ta__heap_reaches(const void *address)
{
    return _mi_arenas_contain(address);
}

void *ta__heap_new(void *no_owner, int is_lined)
{
    int saved_errno = errno;
    mi_heap_t *heap = mi_heap_new();
    if (heap != NULL) { /* no part has been made */
        heap->has_headers = no_owner != NULL;
        heap->is_lined = is_lined != 0;
        heap->no_owner = no_owner;
    }
    errno = saved_errno;
    return heap;
}

void *ta__heap_part(void *heap)
{
    int saved_errno = errno;
    mi_theap_t *part = mi_heap_theap(heap);
    errno = saved_errno;
    return mi_theap_is_initialized(part) ? part : NULL;
}

void ta__heap_part_owned_by(void *part, void *owner)
{
    mi_theap_t *theap = part;
    TA_CHECK("D-4", theap->page_count == 0);
    theap->owner = owner;
}

void ta__heap_destroy(void *heap)
{
    int saved_errno = errno;
    mi_heap_destroy(heap);
    errno = saved_errno;
}

/* mimalloc_unit.c: all pages of a heap, wherever they are, and their blocks; the world is stopped. */
bool ta__mimalloc_visit(mi_heap_t *heap, bool blocks, mi_block_visit_fun *visitor, void *argument);

struct visit_request {
    void (*visit)(void *user, size_t room, void *context);
    void *context;
};

static bool visit_block(const mi_heap_t *heap, const mi_heap_area_t *area, void *block, size_t block_bytes, void *arg)
{
    (void)area;
    const struct visit_request *request = arg;
    char *user = block;
    if (block != NULL && heap->has_headers)
        user = ta__forward_follow(user + ta__page_header_size(ta__heap_page(block)));
    if (block != NULL)
        request->visit(user, block_bytes - (size_t)(user - (char *)block), request->context);
    return true;
}

void ta__heap_visit(void *heap, void (*visit)(void *user, size_t room, void *context), void *context)
{
    int saved_errno = errno;
    struct visit_request request = {visit, context};
    ta__mimalloc_visit(heap, true, visit_block, &request);
    errno = saved_errno;
}

struct area_request {
    void (*visit)(uintptr_t start, size_t bytes, void *context);
    void *context;
};

static bool visit_area(const mi_heap_t *heap, const mi_heap_area_t *area, void *block, size_t block_bytes, void *arg)
{
    (void)heap, (void)block, (void)block_bytes;
    const struct area_request *request = arg;
    request->visit((uintptr_t)area->blocks, area->reserved, request->context);
    return true;
}

void ta__heap_visit_areas(void *heap, void (*visit)(uintptr_t start, size_t bytes, void *context), void *context)
{
    int saved_errno = errno;
    struct area_request request = {visit, context};
    ta__mimalloc_visit(heap, false, visit_area, &request);
    errno = saved_errno;
}

void ta__heap_thread_done(void)
{
    int saved_errno = errno;
    mi_thread_done();
    errno = saved_errno;
}

void ta__heap_trim(void)
{
    int saved_errno = errno;
    mi_collect(true);
    errno = saved_errno;
}

void ta__heap_set_purge_delay(long milliseconds)
{
    mi_option_set(mi_option_purge_delay, milliseconds);
}

void ta__heap_figures(struct ta__heap_figures *figures)
{
    int saved_errno = errno;
    size_t commit = 0;
    size_t peak_commit = 0;
    size_t rss = 0;
    mi_process_info(NULL, NULL, NULL, &rss, NULL, &commit, &peak_commit, NULL);
    figures->committed = commit;
    figures->reserved = rss;
    errno = saved_errno;
}

static bool add_area(const mi_heap_t *heap, const mi_heap_area_t *area, void *block, size_t block_bytes, void *arg)
{
    (void)heap, (void)block, (void)block_bytes;
    *(size_t *)arg += area->used * area->full_block_size;
    return true;
}

size_t ta__heap_in_use(void *heap)
{
    int saved_errno = errno;
    size_t bytes = 0;
    ta__mimalloc_visit(heap, false, add_area, &bytes);
    errno = saved_errno;
    return bytes;
}
