/* symbols_module.h: one module's file, opened and verified: DWARF and a sorted symbol table. Used in this folder alone.
 *
 * Everything is in addresses of the file (load base 0). Nothing in it is shared: libdw is not safe for two threads at
 * once on one Dwfl, so each worker opens its own. */
#ifndef TA_ANALYSIS_SYMBOLS_SYMBOLS_MODULE_H
#define TA_ANALYSIS_SYMBOLS_SYMBOLS_MODULE_H

#include <elfutils/libdwfl.h>

#include "analysis/symbols/symbols.h"

/* A function (or code label) of the symbol tables. Without a size, `end` is the start of the next symbol. */
struct ta__elf_symbol {
    uint64_t start, end;
    const char *name; /* in the file's own memory */
    uint32_t rank;    /* which of several names of one address: lowest first */
};

struct ta__code_range {
    uint64_t start, end;
};

struct ta__elf_module {
    enum ta__symbolizer_state state;
    char reason[160];
    int no_memory;
    int is_given_up; /* libdw found no memory and stopped halfway: what it has is not touched any more */
    Dwfl *dwfl;
    Dwfl_Callbacks callbacks; /* libdwfl keeps a pointer to them, and they to the path */
    char *debug_path;
    Elf *elf;                    /* the file itself, for what is in no symbol table; NULL when there is none */
    Dwarf *dwarf;                /* NULL without debug information */
    uint64_t dwarf_bias;         /* address in the file = address in DWARF + bias */
    uint64_t debug_bytes;        /* in uncompressed sections; 0 when they are compressed */
    struct ta__code_range *code; /* where the file has instructions, ascending */
    size_t code_count;
    struct ta__elf_symbol *symbols;
    uint64_t *symbol_reach; /* largest end of symbols[0 … i] */
    size_t symbol_count;
    struct ta__public_names *publics; /* what other files call its functions */
};

/* Always leaves *module fit for ta__elf_module_close; `state` says how far it came. `debug_path` may be NULL. */
void ta__elf_module_open(struct ta__elf_module *module, const struct ta__symbolizer_module *recorded,
                         const char *debug_path);
void ta__elf_module_close(struct ta__elf_module *module);
/* From now on it is as one without debug information, for want of memory. */
void ta__elf_module_forget_lines(struct ta__elf_module *module);
/* Whether so much memory can be had now. */
int ta__has_room(uint64_t bytes);

/* The range of instructions that holds `address`, or NULL: DWARF also describes what the linker threw away. */
const struct ta__code_range *ta__elf_module_code(const struct ta__elf_module *module, uint64_t address);

/* The innermost symbol that covers `address`, or NULL. */
const struct ta__elf_symbol *ta__elf_module_symbol(const struct ta__elf_module *module, uint64_t address);

#endif
