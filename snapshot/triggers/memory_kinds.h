/* memory_kinds.h: what the process has, by kind: blocks, tracing, what the program mapped itself, stacks, libraries, files.
 *
 * One who sees a peak of 15 MiB of malloc in a process of 89 MB wants to know where the rest is. The kernel's list of
 * mappings says what is there and how much of it is resident; whose it is, base/mappings.h knows. Resident sizes cost
 * 11 ms of the processor per GiB, and stop those who map meanwhile: they are looked at when the process has grown by a
 * tenth, at most two thousandths of `busy_ns`, which counts from the beginning, and at the end. Runs in the helper. */
#ifndef TA_SNAPSHOT_TRIGGERS_MEMORY_KINDS_H
#define TA_SNAPSHOT_TRIGGERS_MEMORY_KINDS_H

#include <stdint.h>

#include "base/mappings.h"
#include "snapshot/triggers/mmap_names.h"
#include "snapshot/write/process_facts.h"

enum ta__memory_kind {
    TA__MEMORY_BLOCKS,
    TA__MEMORY_TRACING,
    TA__MEMORY_MAPPED,
    TA__MEMORY_STACKS,
    TA__MEMORY_LIBRARIES,
    TA__MEMORY_FILES,
    TA__MEMORY_SHARED,
    TA__MEMORY_KINDS
};
struct ta__memory_sums {
    uint64_t resident[TA__MEMORY_KINDS], size[TA__MEMORY_KINDS];
    uint64_t sites[TA__SITES_MOST]; /* resident, of what the program mapped; 0: nobody knows who */
};

/* What a list of the kernel's (smaps, or maps without what is resident) amounts to; `owners` ascend by address. 0 when
 * it cannot be read. */
int ta__memory_sums_of(const char *path, const struct ta__mapping *owners, size_t count, struct ta__memory_sums *sums);

/* In a child after fork: nothing was seen of it yet. */
void ta__memory_kinds_forget(void);
/* Now and then: looks whether the process has more than ever, and if so, of what. */
void ta__memory_kinds_watch(uint64_t busy_ns);
/* Adds memory.size.*; with `all` also memory.kind.*, what was found at the highest, and who mapped most. */
void ta__memory_kinds_describe(struct ta__pairs *pairs, int all);

#endif
