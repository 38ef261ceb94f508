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

int ta__heap_process_init(void)
{
    int saved_errno = errno;
    /* Free looks into the table of pages with whatever it is given: all of it must be there, also where the system
     * promises no memory twice and mimalloc would ask for it piece by piece. */
    mi_option_set(mi_option_pagemap_commit, 1);
    _mi_auto_process_init();
    take_key_away();
    /* Late destructors go on allocating: nothing may be torn down at exit. */
    mi_option_set(mi_option_destroy_on_exit, 2);
    mi_option_set(mi_option_visit_abandoned, 1);
    mi_option_set(mi_option_show_errors, 0);
    mi_option_set(mi_option_show_stats, 0);
    mi_option_set(mi_option_verbose, 0);
    /* A third of the memory that a heap costs by default; less where there is little. In KiB; mimalloc wastes what is
     * no multiple of its slices. */
    mi_option_set(mi_option_arena_reserve, (ta__memory_left() == SIZE_MAX ? 128 : 32) * 1024);
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

void ta__heap_free_slow(mi_page_t *page, void *block)
{
    (void)page;
    int saved_errno = errno;
    mi_free(block);
    errno = saved_errno;
}

void ta__heap_page_emptied(mi_page_t *page)
{
    int saved_errno = errno;
    _mi_page_retire(page);
    errno = saved_errno;
}

bool ta__page_map_add(mi_page_t *page, const void *address); /* mimalloc_unit.c */

int ta__heap_reach_further(const void *block, const void *header)
{
    int saved_errno = errno;
    int added = ta__page_map_add(ta__heap_page(block), header);
    errno = saved_errno;
    return added;
}

void ta__heap_reach_no_further(const void *header)
{
    int saved_errno = errno;
    ta__page_map_add(NULL, header);
    errno = saved_errno;
}

int ta__heap_reaches(const void *address)
{
    return _mi_arenas_contain(address);
}

void *ta__heap_new(void)
{
    int saved_errno = errno;
    void *heap = mi_heap_new();
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

void ta__heap_destroy(void *heap)
{
    int saved_errno = errno;
    mi_heap_destroy(heap);
    errno = saved_errno;
}

struct visit_request {
    void (*visit)(void *block, size_t block_bytes, void *context);
    void *context;
};

static bool visit_block(const mi_heap_t *heap, const mi_heap_area_t *area, void *block, size_t block_bytes, void *arg)
{
    (void)heap, (void)area;
    const struct visit_request *request = arg;
    if (block != NULL)
        request->visit(block, block_bytes, request->context);
    return true;
}

void ta__heap_visit(void *heap, void (*visit)(void *block, size_t block_bytes, void *context), void *context)
{
    int saved_errno = errno;
    struct visit_request request = {visit, context};
    mi_heap_visit_blocks(heap, true, visit_block, &request);
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
    mi_heap_visit_blocks(heap, false, visit_area, &request);
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
    mi_heap_visit_blocks(heap, false, add_area, &bytes);
    errno = saved_errno;
    return bytes;
}
