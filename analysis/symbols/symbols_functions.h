/* symbols_functions.h: where the functions of a file begin and end, whether or not they have names: every function that
 * can be unwound through says so in .eh_frame, which no strip takes away, and which of them is main says the code that the
 * kernel starts. Used in this folder alone. */
#ifndef TA_ANALYSIS_SYMBOLS_SYMBOLS_FUNCTIONS_H
#define TA_ANALYSIS_SYMBOLS_SYMBOLS_FUNCTIONS_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct ta__function_range {
    uint64_t start, end;
};

struct ta__function_ranges {
    struct ta__function_range *items; /* ascending */
    size_t count, capacity;
    uint64_t main; /* where main begins, as the program's first instructions say; 0 = they say nothing */
};

/* In addresses of the file. What is damaged or written in an encoding that nobody uses is left out; -1 without memory. */
TA_NODISCARD int ta__function_ranges_read(struct ta__function_ranges *ranges, Elf *elf);
void ta__function_ranges_free(struct ta__function_ranges *ranges);
/* The function that holds `address`, or NULL. */
const struct ta__function_range *ta__function_ranges_find(const struct ta__function_ranges *ranges, uint64_t address);

#endif
