/* symbols_dwarf.h: looks many addresses of one opened module up at once. Used by symbols*.c alone. */
#ifndef TA_ANALYSIS_SYMBOLS_DWARF_H
#define TA_ANALYSIS_SYMBOLS_DWARF_H

#include "analysis/symbols_module.h"
#include "analysis/symbols_sink.h"

/* Answers `lookups`, which ascend by pc; each gets one symbol or more. `done` is counted up as it goes. */
void ta__dwarf_lookup(const struct ta__elf_module *module, const char *module_path, struct ta__lookup *lookups,
                      uint32_t count, struct ta__symbol_sink *sink, size_t *done);

#endif
