/* symbols_dwarf.h: looks many addresses of one opened module up at once; and asks libdw where memory is short. */
#ifndef TA_ANALYSIS_SYMBOLS_SYMBOLS_DWARF_H
#define TA_ANALYSIS_SYMBOLS_SYMBOLS_DWARF_H

#include "analysis/symbols/symbols_module.h"
#include "analysis/symbols/worker_symbols.h"

/* Answers `lookups`, which ascend by pc; each gets one symbol or more. `done` is counted up as it goes, and twice where
 * memory was too short for debug information: the module then has none. */
void ta__dwarf_lookup(struct ta__elf_module *module, const char *module_path, struct ta__lookup *lookups,
                      uint32_t count, struct ta__found_symbols *found, size_t *done);

enum { TA__DWARF_SHORT = -2 };

/* What `work` answers, which asks libdw about the module; or TA__DWARF_SHORT where debug information wants more memory
 * than there is. `work` may be left anywhere then: what it allocated, and the module, cannot be given back. */
int ta__dwarf_guarded(struct ta__elf_module *module, int (*work)(void *context), void *context);
/* For `work`, before each unit: libdw crashes where it has too little. */
int ta__dwarf_has_room(void);

#endif
