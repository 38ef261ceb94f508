/* function_names.h: the functions that a module's file names, for rules. Reads .symtab, else .dynsym; where the file was
 * stripped and its debug file is installed under its build id, that one's .symtab. No malloc: the file is mapped for
 * the moment, and every offset in it is checked. */
#ifndef TA_TRACE_UNWIND_FUNCTION_NAMES_H
#define TA_TRACE_UNWIND_FUNCTION_NAMES_H

#include <stdint.h>

enum { TA__SYMBOLS_OF_CODE = 1, TA__SYMBOLS_OF_DATA = 2 };

/* Calls take(name, address in the file, size, context) for every function, or variable, with a name, as `kinds` says;
 * versions ("@…") are cut off.
 * The build id tells whether the file still is what was loaded (length 0: believe it). 0 when nothing could be read. */
int ta__symbols_read(const char *path, const uint8_t *build_id, unsigned build_id_length, unsigned kinds,
                     void (*take)(const char *name, uint64_t address, uint64_t size, void *context), void *context);

#endif
