/* symbols_publics.h: the names by which other files know a file's functions. A library calls its functions by names of its
 * own: `__strdup` is what the source of strdup says, `__fopen_internal` is where fopen goes on. People write strdup and
 * fopen. Used in this folder alone. */
#ifndef TA_ANALYSIS_SYMBOLS_SYMBOLS_PUBLICS_H
#define TA_ANALYSIS_SYMBOLS_SYMBOLS_PUBLICS_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

/* A function of .dynsym in its default version. Of several names for one place the one that people write. */
struct ta__public_function {
    uint64_t start, end;
    const char *name; /* in the file's own memory */
    int is_weak;
};

/* A place that a public function jumps to, as its last call: what is asked for there was asked for by that function. */
struct ta__public_jump {
    uint64_t target;
    uint32_t from;
    int is_other; /* others jump or call there, too */
};

struct ta__public_names {
    struct ta__public_function *items; /* ascending, of distinct places */
    size_t count, capacity;
    struct ta__public_jump *jumps; /* ascending, of distinct places; found when first asked for */
    size_t jump_count, jump_capacity;
    int has_jumps;
    Elf *elf;
};

/* In addresses of the file. -1 without memory. */
TA_NODISCARD int ta__public_names_read(struct ta__public_names *names, Elf *elf);
void ta__public_names_free(struct ta__public_names *names);

/* What the function that begins at `start` is to be called instead of `name`; NULL = just that. Names without leading
 * underscores were meant to be seen. `name` may be "": the function has none. A function that is not public itself and is
 * entered by a jump from one public function, and in no other way, has the name of that: its callers called that one. */
const char *ta__public_name(struct ta__public_names *names, uint64_t start, const char *name);

#endif
