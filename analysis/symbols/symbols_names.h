/* symbols_names.h: names of functions as DWARF knows them. Used in this folder alone. */
#ifndef TA_ANALYSIS_SYMBOLS_SYMBOLS_NAMES_H
#define TA_ANALYSIS_SYMBOLS_SYMBOLS_NAMES_H

#include <elfutils/libdw.h>
#include <stdint.h>

#include "analysis/symbols/worker_symbols.h"

#define TA__INLINED_NAMES 512

/* For some units: where the named entries are in their trees, found when a name needs it. And the names of the inlined
 * functions that were asked for lately, by the entry that all copies of a function refer to. Begins as zeros. */
struct ta__name_maps {
    struct ta__name_map *first;
    struct {
        const void *origin;
        uint32_t function, raw_name;
    } inlined[TA__INLINED_NAMES];
};

/* Frees the maps; the names stay. */
void ta__name_maps_forget(struct ta__name_maps *maps);

/* The name of a function or inlined call. With a linkage name: that one, and what it says when demangled. Without (C;
 * C++ functions that are local to a file): the name with the namespaces and classes around it, without parameters. */
void ta__name_of(struct ta__name_maps *maps, struct ta__found_symbols *found, Dwarf_Die *die, uint32_t *function,
                 uint32_t *raw_name);

#endif
