/* modules.h: the loaded objects that stacks have passed through, each with the facts that outlive it.
 *
 * An object enters the table when the first address inside it needs a rule; it is marked, never removed, when it is
 * gone, so that snapshots can still name it. The table only grows, lies in reserved memory, and is read without locks.
 * Objects come from _dl_find_object (glibc 2.35 or newer: no lock, no allocation); with older libraries from a list
 * that is rebuilt in ta__modules_begin and ta__modules_check.
 *
 * No rule may outlive its object. While loading an object, ld.so allocates after the unloading of an earlier one and
 * before the mapping of the new one; so whoever sees an allocation whose caller lies in ld.so calls ta__modules_check,
 * which notices what is gone and begins a new generation: cached rules no longer match, and a new generation of
 * the gate (base/safepoint.h) makes every thread forget its remembered stack. */
#ifndef TA_TRACE_UNWIND_MODULES_H
#define TA_TRACE_UNWIND_MODULES_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomics.h"
#include "base/attributes.h"
#include "base/facts.h"
#include "trace/unwind/cfi.h"

/* 1, 2, 3 … in the order in which modules were first seen; 0 = none. */
typedef struct {
    uint32_t v;
} ta__module_id;

#define TA__BUILD_ID_MAX 32

struct ta__module {
    uintptr_t start;              /* first mapped byte */
    uintptr_t end;                /* behind the last */
    uintptr_t bias;               /* run-time address minus address in the file */
    struct ta__cfi_tables tables; /* header NULL: no unwind tables */
    const void *link_map;         /* changes when the object is loaded again */
    const char *path;             /* ours, lives as long as the table; "" when it could not be kept */
    uint64_t content;             /* stands for the build id where there is none */
    ta__module_id id;
    uint32_t verified; /* in which doubt-period its identity was last looked at */
    uint16_t salt;     /* tells it from others that had some of its addresses */
    uint8_t is_loader; /* it is ld.so */
    uint8_t is_gone;   /* unloaded; any thread reads, relaxed */
    uint8_t build_id_bytes;
    uint8_t build_id[TA__BUILD_ID_MAX];
};

/* Changes whenever a module is gone. Compare for equality only. */
extern uint64_t ta__modules_generation __attribute__((visibility("hidden")));

/* Where ld.so is mapped; size 0 until it has been seen. */
extern struct ta__loader_range {
    uintptr_t start;
    uintptr_t size;
} ta__loader_range __attribute__((visibility("hidden")));

/* Is this the address of code in ld.so? For paths that look up no rule (rules carry it as a bit). */
TA_INLINE int ta__modules_is_loader(uintptr_t ip)
{
    return ip - ta__load_relaxed(&ta__loader_range.start) < ta__load_relaxed(&ta__loader_range.size);
}

/* Called each time tracing begins. What was loaded or unloaded before that went unseen, so every module is looked at
 * again and a new generation begins. Maps the table; when that fails, modules are not kept (id 0). */
void ta__modules_begin(void);

/* Called on an allocation by ld.so. Lock-free; costs one look-up per loaded module. */
TA_COLD void ta__modules_check(void);

/* Called in the child of a fork, where the thread that was writing the table may not exist. */
void ta__modules_after_fork(void);

/* The module at an address, entered into the table if it is new; NULL when no object is there. When it cannot be
 * entered now (another thread writes, the table is full or unmapped) the answer is `scratch`, with id 0. That is right
 * for the moment but must not be kept, and its path is the loader's. */
const struct ta__module *ta__module_describe(uintptr_t address, struct ta__module *scratch);

/* Looks only into the table. The module loaded at an address now, and the one that had it under a salt. */
ta__module_id ta__module_find(uintptr_t address);
ta__module_id ta__module_find_salted(uintptr_t address, unsigned salt);

/* 1 … count are valid ids at any later time too. */
uint32_t ta__modules_count(void);
const struct ta__module *ta__module_at(ta__module_id id);

/* What a reader of this process's memory is told: base/facts.h. */
extern struct ta__fact ta__facts_modules[];

#endif
