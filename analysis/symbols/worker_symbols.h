/* worker_symbols.h: where a worker's answers go: its own strings and symbols, merged with those of the others at the end.
 * Used in this folder alone. */
#ifndef TA_ANALYSIS_SYMBOLS_WORKER_SYMBOLS_H
#define TA_ANALYSIS_SYMBOLS_WORKER_SYMBOLS_H

#include "analysis/symbols/symbols_text.h"

/* One address of a module, in addresses of the file. */
struct ta__lookup {
    uint64_t pc;           /* what is looked up: one byte before a return address */
    uint64_t address;      /* what was recorded: offsets are counted to it */
    uint32_t first, count; /* the answer: symbols of struct ta__found_symbols */
};

struct ta__found_symbols {
    struct ta__text_table text;
    struct ta__view_symbol *symbols;
    uint32_t count, capacity;
    uint32_t *demangled; /* by the number of the raw name: number of the readable one + 1 */
    uint32_t demangled_count;
    int failed; /* out of memory */
};

void ta__found_symbols_create(struct ta__found_symbols *found);
void ta__found_symbols_destroy(struct ta__found_symbols *found);
void ta__found_symbols_add(struct ta__found_symbols *found, struct ta__lookup *lookup, struct ta__view_symbol symbol);

/* The demangled form of an interned name; each is demangled once. */
uint32_t ta__found_symbols_readable(struct ta__found_symbols *found, uint32_t raw_name);

/* Makes room for one more element of a growing array: 0, or -1 and `failed` without memory. */
TA_NODISCARD int ta__found_symbols_reserve(struct ta__found_symbols *found, void **array, uint32_t count,
                                           uint32_t *capacity, size_t element);

#endif
