/* facts.h: what the library publishes of itself, so that a reader of the process's memory finds and understands its
 * tables: a live process or a core, seen from outside (analysis/image). Names, not headers, are what the two share.
 *
 * Each file that owns something worth reading has a list of facts: a name, and an address, a size or the place of a
 * field, which the compiler works out in the library's own build. A note section of the library leads to all lists:
 *
 *     note "tracealloc" ──► struct ta__facts_root ──► lists of struct ta__fact
 *
 * The note only says where the root is, so that it may lie in read-only memory. Root and lists lie in writable data:
 * relocation puts addresses of the process there, and kernels write such pages into cores. */
#ifndef TA_BASE_FACTS_H
#define TA_BASE_FACTS_H

#include <stddef.h>
#include <stdint.h>

#define TA__FACTS_VERSION_NUMBER 1
enum { TA__FACTS_VERSION = TA__FACTS_VERSION_NUMBER, TA__FACTS_LISTS = 16, TA__FACTS_MOST = 256, TA__FACT_NAME = 24 };
/* Type of the note, whose owner is "tracealloc". */
#define TA__FACTS_NOTE_TYPE  UINT32_C(0x54410001)
#define TA__FACTS_NOTE_OWNER "tracealloc"

struct ta__fact {
    char name[TA__FACT_NAME]; /* ends with a NUL. A leading '!' : who does not know the name must not read on */
    uint64_t value;
};

/* The note's value: 8 bytes, how far the root is from them, then the version (4 bytes). */
enum { TA__FACTS_NOTE_BYTES = 12 };

struct ta__facts_root {
    uint32_t version; /* TA__FACTS_VERSION */
    uint32_t bytes;   /* of this structure */
    uint64_t self;    /* its own address: where relocation has not come by, it is another one */
    char library[24]; /* version of the library, for messages */
    uint32_t fact_bytes;
    uint32_t lists_most;
    uint64_t lists[TA__FACTS_LISTS]; /* addresses; a list ends with an empty name, or after TA__FACTS_MOST. 0 = none */
};

/* clang-format off */
#define TA__FACT(text, number)            {text, (uint64_t)(number)}
#define TA__FACT_AT(text, object)         {text, (uint64_t)(uintptr_t)&(object)}
#define TA__FACT_FIELD(text, type, field) {text, (uint64_t)offsetof(type, field)}
#define TA__FACTS_END                     {"", 0}
/* clang-format on */

#endif
