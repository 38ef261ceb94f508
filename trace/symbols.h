/* symbols.h: the functions that a module's file names, for rules. Reads .symtab, else .dynsym; where the file was
 * stripped and its debug file is installed under its build id, that one's .symtab. No malloc: the file is mapped for
 * the moment, and every offset in it is checked. */
#ifndef TA_TRACE_SYMBOLS_H
#define TA_TRACE_SYMBOLS_H

#include <stdint.h>

/* Calls take(name, address in the file, size, context) for every function with a name; versions ("@…") are cut off.
 * The build id tells whether the file still is what was loaded (length 0: believe it). 0 when nothing could be read. */
int ta__symbols_read(const char *path, const uint8_t *build_id, unsigned build_id_length,
                     void (*take)(const char *name, uint64_t address, uint64_t size, void *context), void *context);

#endif
