/* symbols_dwarf.h: looks many addresses of one opened module up at once. Used by symbols*.c alone. */
#ifndef TA_ANALYSIS_SYMBOLS_DWARF_H
#define TA_ANALYSIS_SYMBOLS_DWARF_H

#include "analysis/symbols_module.h"
#include "analysis/symbols_text.h"

/* One address of a module, in addresses of the file. */
struct ta__lookup {
    uint64_t pc;           /* what is looked up: one byte before a return address */
    uint64_t address;      /* what was recorded: offsets are counted to it */
    uint32_t first, count; /* the answer: symbols of the sink */
};

/* Where answers go: a worker's own strings and symbols, merged with those of the others at the end. */
struct ta__symbol_sink {
    struct ta__text_table text;
    struct ta__view_symbol *symbols;
    uint32_t count, capacity;
    uint32_t *demangled; /* by the number of the raw name: number of the readable one + 1 */
    uint32_t demangled_count;
    bool failed; /* out of memory */
};

void ta__symbol_sink_create(struct ta__symbol_sink *sink);
void ta__symbol_sink_destroy(struct ta__symbol_sink *sink);
void ta__symbol_sink_add(struct ta__symbol_sink *sink, struct ta__lookup *lookup, struct ta__view_symbol symbol);

/* Answers `lookups`, which ascend by pc; each gets one symbol or more. `done` is counted up as it goes. */
void ta__dwarf_lookup(const struct ta__elf_module *module, const char *module_path, struct ta__lookup *lookups,
                      uint32_t count, struct ta__symbol_sink *sink, size_t *done);

#endif
