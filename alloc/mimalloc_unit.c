/* mimalloc_unit.c: mimalloc, compiled into the library as one translation unit. Which version, how it is fetched and
 * why it is built from source: docs/decisions/0001-mimalloc-from-source.md. Defines nothing of ours.
 *
 * mimalloc's own constructor and destructor are left out: heap.c begins when process.c says so, nothing ever ends. */
#define MI_PRIM_HAS_PROCESS_ATTACH 1
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <static.c>
