/* readable_name.h: names of C++ functions as people know them, without malloc. */
#ifndef TA_BASE_READABLE_NAME_H
#define TA_BASE_READABLE_NAME_H

#include <stddef.h>

/* Writes the demangled name, `with_parameters` or without them and the type of the result, NUL-terminated. Its length;
 * 0 when the name is not mangled or does not fit. Needs a stack of some hundred KiB for long names (base/own_stack.h). */
size_t ta__readable_name(const char *name, int with_parameters, char *text, size_t room);

#endif
