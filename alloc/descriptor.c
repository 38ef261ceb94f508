/* descriptor.c: the note by which a reader of this process's memory finds our tables (base/facts.h), and the facts of
 * alloc. Never read by the library itself. */
#include "base/facts.h"

#include "base/memory.h"
#include "tracealloc.h"

extern struct ta__fact ta__facts_mimalloc[]; /* mimalloc_unit.c */

#if TRACEALLOC_TRACING
#include "alloc/alloc.h"
#include "alloc/domains/domain_table.h"
#include "alloc/heap.h"
#include "trace/counters.h"
#include "trace/tracked.h"
#include "trace/unwind/modules.h"

static struct ta__fact facts[] = {
    TA__FACT_AT("options", ta__options.text),
    TA__FACT("options.room", sizeof ta__options.text),
    TA__FACT("header.layout", 3), /* alloc/header.h */
    TA__FACT("header.flag", MI_PAGE_HAS_INTERIOR_POINTERS),
    TA__FACT("header.mark", TA__MARK_SIZE),
    TA__FACT("header.long", TA__LONG_HEADER),
    TA__FACT("header.long_block", TA__LONG_BLOCK),
    TA__FACT_AT("header.key", ta__header_key),
    TA__FACT_AT("domains.chunks", ta__domain_table.chunks),
    TA__FACT_AT("domains.count", ta__domain_table.count),
    TA__FACT("domains.chunk", TA__DOMAIN_CHUNK),
    TA__FACT("domain.bytes", sizeof(struct ta__domain)),
    TA__FACT_FIELD("domain.number", struct ta__domain, number),
    TA__FACT_FIELD("domain.flags", struct ta__domain, flags),
    TA__FACT("domain.destroyed", TA__DOMAIN_DESTROYED),
    TA__FACT_FIELD("domain.heap", struct ta__domain, heap),
    TA__FACT_FIELD("domain.name", struct ta__domain, name),
    TA__FACT_FIELD("domain.current", struct ta__domain, current),
    TA__FACT_FIELD("domain.peak", struct ta__domain, peak),
    TA__FACT_FIELD("domain.soft", struct ta__domain, soft),
    TA__FACT_FIELD("domain.hard", struct ta__domain, hard),
    TA__FACT_FIELD("domain.in_blocks", struct ta__domain, lone_allocated_blocks),
    TA__FACT_FIELD("domain.in_bytes", struct ta__domain, lone_allocated_bytes),
    TA__FACT_FIELD("domain.out_blocks", struct ta__domain, lone_freed_blocks),
    TA__FACT_FIELD("domain.out_bytes", struct ta__domain, lone_freed_bytes),
    TA__FACT_FIELD("slots", struct ta__domain_parts, slots),
    TA__FACT("slot.bytes", sizeof(struct ta__domain_slot)),
    TA__FACT_FIELD("slot.in_blocks", struct ta__domain_slot, allocated_blocks),
    TA__FACT_FIELD("slot.in_bytes", struct ta__domain_slot, allocated_bytes),
    TA__FACT_FIELD("slot.out_blocks", struct ta__domain_slot, freed_blocks),
    TA__FACT_FIELD("slot.out_bytes", struct ta__domain_slot, freed_bytes),
    TA__FACT_FIELD("slot.cold", struct ta__domain_slot, cold),
    TA__FACT_FIELD("colds", struct ta__domain_parts, cold),
    TA__FACT_FIELD("colds.count", struct ta__domain_parts, cold_count),
    TA__FACT("cold.bytes", sizeof(struct ta__domain_cold)),
    TA__FACT_FIELD("cold.high", struct ta__domain_cold, high),
    TA__FACT_FIELD("cold.index", struct ta__domain_cold, index),
    TA__FACTS_END,
};
#define LISTS                                                                                                          \
    {                                                                                                                  \
        (uintptr_t) facts, (uintptr_t)ta__facts_mimalloc, (uintptr_t)ta__facts_memory, (uintptr_t)ta__facts_safepoint, \
            (uintptr_t)ta__facts_counters, (uintptr_t)ta__facts_control, (uintptr_t)ta__facts_interning,               \
            (uintptr_t)ta__facts_peak, (uintptr_t)ta__facts_tracked, (uintptr_t)ta__facts_modules,                     \
            (uintptr_t)ta__facts_emergency,                                                                            \
    }
#else
#define LISTS                                                                                                          \
    {                                                                                                                  \
        (uintptr_t) ta__facts_mimalloc, (uintptr_t)ta__facts_memory                                                    \
    }
#endif

static struct ta__facts_root root __asm__("ta__facts_root") __attribute__((used)) = {
    .version = TA__FACTS_VERSION,
    .bytes = sizeof(struct ta__facts_root),
    .self = (uintptr_t)&root,
    .library = TRACEALLOC_VERSION,
    .fact_bytes = sizeof(struct ta__fact),
    .lists_most = TA__FACTS_LISTS,
    .lists = LISTS,
};

/* How far one thing is from another only the assembler can write. This file is compiled without link-time optimisation,
 * so that it finds the name here. */
#define TEXT(x)  #x
#define VALUE(x) TEXT(x)
__asm__(".pushsection .note.tracealloc, \"a\", %note\n\t"
        ".balign 4\n\t"
        ".4byte 11, 12, 0x54410001\n\t"
        ".asciz \"" TA__FACTS_NOTE_OWNER "\"\n\t"
        ".balign 4\n"
        ".Lta_note_value:\n\t"
        ".8byte ta__facts_root - .Lta_note_value\n\t"
        ".4byte " VALUE(TA__FACTS_VERSION_NUMBER) "\n\t"
                                                  ".popsection");
_Static_assert(TA__FACTS_NOTE_TYPE == 0x54410001 && sizeof TA__FACTS_NOTE_OWNER == 11 && TA__FACTS_NOTE_BYTES == 12 &&
                   TA__FACTS_VERSION == TA__FACTS_VERSION_NUMBER,
               "the note is written twice");
