/* mimalloc_unit.c: mimalloc, compiled into the library as one translation unit. Which version, how it is fetched and
 * why it is built from source: docs/decisions/0001-mimalloc-from-source.md. Adds one
 * look into its page table, which mimalloc has no name for.
 *
 * mimalloc's own constructor and destructor are left out: heap.c begins when process.c says so, nothing ever ends. The
 * untraced build keeps them: until they ran mimalloc takes every page from the system and gives it back. */
#if TRACEALLOC_TRACING
#define MI_PRIM_HAS_PROCESS_ATTACH 1
#endif
/* A weak stand-in of mimalloc's for the C++ library's function, which ours must not find in its place. */
#define _ZSt15get_new_handlerv ta__mimalloc_get_new_handler
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include <static.c>

bool ta__page_map_add(mi_page_t *page, const void *address)
{
    size_t sub_index;
    size_t index = _mi_page_map_index(address, &sub_index);
    return mi_page_map_set_range(page, index, sub_index, 1);
}
