/* line_numbers.h: source lines of addresses, from the line programs of a module's file (.debug_line of DWARF 2 to 5): for
 * reports that the process writes about itself, where nothing else may be called. No malloc; every offset is checked. */
#ifndef TA_TRACE_UNWIND_LINE_NUMBERS_H
#define TA_TRACE_UNWIND_LINE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

struct ta__line_number {
    uint64_t address; /* in the file: what is asked for */
    uint32_t line;    /* 0 as long as it is not known */
    char file[256];   /* from the folder of the compilation, where it is below it */
};

/* Fills in what the file, or the debug file of its build id, knows; debug_section.h says which compressed ones are
 * read. */
void ta__lines_read(const char *path, const uint8_t *build_id, unsigned build_id_length, struct ta__line_number **lines,
                    size_t count);

#endif
