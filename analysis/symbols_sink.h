/* symbols_sink.h: where a worker's answers go: its own strings and symbols, merged with those of the others at the end.
 * Used by symbols*.c alone. */
#ifndef TA_ANALYSIS_SYMBOLS_SINK_H
#define TA_ANALYSIS_SYMBOLS_SINK_H

#include "analysis/symbols_text.h"

/* One address of a module, in addresses of the file. */
struct ta__lookup {
    uint64_t pc;           /* what is looked up: one byte before a return address */
    uint64_t address;      /* what was recorded: offsets are counted to it */
    uint32_t first, count; /* the answer: symbols of the sink */
};

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

/* The demangled form of an interned name; each is demangled once. */
uint32_t ta__symbol_sink_readable(struct ta__symbol_sink *sink, uint32_t raw_name);

/* Makes room for one more element of a growing array; false, and `failed`, when memory is short. */
bool ta__symbol_sink_reserve(struct ta__symbol_sink *sink, void **array, uint32_t count, uint32_t *capacity,
                             size_t element);

#endif
