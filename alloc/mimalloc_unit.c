/* mimalloc_unit.c: mimalloc, compiled into the library as one translation unit. Which version, how it is fetched and
 * why it is built from source: docs/decisions/0001-mimalloc-from-source.md. Adds
 * calls that mimalloc has no name for.
 *
 * mimalloc's own constructor and destructor are left out: heap.c begins when process.c says so, nothing ever ends. The
 * untraced build keeps them: until they ran mimalloc takes every page from the system and gives it back. */
#if TRACEALLOC_TRACING
#define MI_PRIM_HAS_PROCESS_ATTACH 1
/* What is set for a mimalloc of the program's own (MIMALLOC_VERBOSE, MIMALLOC_DISALLOW_OS_ALLOC …) is not for us. The
 * untraced build has no options but these. */
#define MI_NO_GETENV 1
#endif
/* Its memory is told from what the program maps itself. */
#include "base/mappings.h"
#define mmap(address, length, protection, flags, file, offset)                                                         \
    ta__mapping_make(address, length, protection, flags, file, offset, TA__MAPPED_FOR_BLOCKS)
#define munmap(address, length) ta__mapping_drop(address, length)
/* At run time it makes no system call that glibc's malloc would not, since programs allow themselves no others: names for
 * its mappings go, and the clock is one that is read from memory alone. */
#include <sys/prctl.h>
#include <time.h>
#undef PR_SET_VMA
#undef CLOCK_MONOTONIC
#define CLOCK_MONOTONIC CLOCK_MONOTONIC_COARSE
/* A weak stand-in of mimalloc's for the C++ library's function, which ours must not find in its place. */
#define _ZSt15get_new_handlerv ta__mimalloc_get_new_handler
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include <static.c>

#include "base/facts.h"

bool ta__page_map_add(mi_page_t *page, const void *address)
{
    size_t sub_index;
    size_t index = _mi_page_map_index(address, &sub_index);
    return mi_page_map_set_range(page, index, sub_index, 1);
}

void ta__mimalloc_free_block(mi_page_t *page, void *block)
{
    if ((_mi_prim_thread_id() ^ mi_page_xthread_id(page)) <= MI_PAGE_FLAG_MASK)
        mi_free_block_local(page, block, false, true, true);
    else
        mi_free_block_mt(page, block, false);
}

void ta__mimalloc_drop_page(mi_page_t *page)
{
    _mi_page_free(page, mi_page_queue_of(page));
}

void ta__mimalloc_collect_abandoned(mi_page_t *page, void *block)
{
    mi_free_try_collect_mt(page, block);
}

/* Pages that mimalloc has straight from the system are in no arena, where it looks for a heap's pages. */
static bool visit_pages_of_system(mi_theap_t *part, mi_heap_visit_info_t *visit)
{
    for (size_t bin = 0; bin <= MI_BIN_FULL; bin++) {
        for (mi_page_t *page = part->pages[bin].first; page != NULL; page = page->next) {
            if (page->memid.memkind != MI_MEM_ARENA && !mi_heap_visit_page(page, visit))
                return false;
        }
    }
    return true;
}

bool ta__mimalloc_visit(mi_heap_t *heap, bool blocks, mi_block_visit_fun *visitor, void *argument)
{
    mi_heap_visit_info_t visit = {heap, visitor, argument, blocks};
    bool goes_on = mi_heap_visit_blocks(heap, blocks, visitor, argument);
    for (mi_theap_t *part = heap->theaps; goes_on && part != NULL; part = part->hnext)
        goes_on = visit_pages_of_system(part, &visit);
    return goes_on;
}

/* From the end to the last slice in use: a slice that is claimed is nobody's, and its addresses go back. */
static void cut_arena(mi_arena_t *arena)
{
    size_t end = arena->slice_count;
    while (end > arena->info_slices && mi_bbitmap_try_clearNC(arena->slices_free, end - 1, 1))
        end--;
    if (end == arena->slice_count)
        return;
    size_t bytes = mi_size_of_slices(arena->slice_count);
    arena->slice_count = end;
    ta__mapping_cut(arena, mi_size_of_slices(end), bytes);
}

void ta__mimalloc_cut_arenas(void)
{
    for (size_t i = mi_arenas_get_count(&subproc_main); i-- > 0;) {
        mi_arena_t *arena = mi_arena_from_index(&subproc_main, i);
        if (arena != NULL && arena->parent == NULL && !arena->memid.is_pinned)
            cut_arena(arena);
    }
}

struct ta__fact ta__facts_mimalloc[] = {
    TA__FACT("mimalloc", MI_MALLOC_VERSION),
    TA__FACT_AT("map", _mi_page_map),
    TA__FACT_AT("map.count", mi_page_map_count),
    TA__FACT("map.part_bits", MI_PAGE_MAP_SUB_SHIFT),
    TA__FACT("slice.bits", MI_ARENA_SLICE_SHIFT),
    TA__FACT("page.bytes", sizeof(mi_page_t)),
    TA__FACT_FIELD("page.thread", mi_page_t, xthread_id),
    TA__FACT_FIELD("page.free", mi_page_t, free),
    TA__FACT_FIELD("page.local_free", mi_page_t, local_free),
    TA__FACT_FIELD("page.thread_free", mi_page_t, xthread_free),
    TA__FACT_FIELD("page.used", mi_page_t, used),
    TA__FACT_FIELD("page.capacity", mi_page_t, capacity),
    TA__FACT_FIELD("page.reserved", mi_page_t, reserved),
    TA__FACT_FIELD("page.block_size", mi_page_t, block_size),
    TA__FACT_FIELD("page.offset", mi_page_t, page_woffset),
    TA__FACT_FIELD("page.heap", mi_page_t, heap),
    TA__FACT("page.interior", MI_PAGE_HAS_INTERIOR_POINTERS),
    TA__FACT_AT("main_heap", subproc_main.heap_main),
    TA__FACT_AT("arenas", subproc_main.arenas),
    TA__FACT_AT("arenas.count", subproc_main.arena_count),
    TA__FACT("arenas.most", MI_MAX_ARENAS),
    TA__FACT_FIELD("arena.slices", mi_arena_t, slice_count),
    TA__FACT_FIELD("arena.info_slices", mi_arena_t, info_slices),
    TA__FACTS_END,
};
