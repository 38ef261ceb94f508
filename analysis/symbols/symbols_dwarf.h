/* symbols_dwarf.h: looks many addresses of one opened module up at once. Used in this folder alone. */
#ifndef TA_ANALYSIS_SYMBOLS_SYMBOLS_DWARF_H
#define TA_ANALYSIS_SYMBOLS_SYMBOLS_DWARF_H

#include "analysis/symbols/symbols_module.h"
#include "analysis/symbols/worker_symbols.h"

/* Answers `lookups`, which ascend by pc; each gets one symbol or more. `done` is counted up as it goes, and twice where
 * memory was too short for debug information: the module then has none. */
void ta__dwarf_lookup(struct ta__elf_module *module, const char *module_path, struct ta__lookup *lookups,
                      uint32_t count, struct ta__found_symbols *found, size_t *done);

#endif
