/* tracked.h: traces of memory that tracealloc did not allocate — ta_track and ta_untrack.
 *
 * A sharded hash table keyed by (domain, address): the one place where an event takes a lock. Counting is done by the
 * caller with the leaf and size that these functions hand back. */
#ifndef TA_TRACE_TRACKED_H
#define TA_TRACE_TRACKED_H

#include <stdint.h>

#include "base/facts.h"
#include "trace/source.h"

struct ta__tracked {
    uint64_t address;
    uint64_t size;
    uint32_t domain; /* index */
    uint32_t leaf;
};

/* 1: stored; *old is what was there before (leaf 0: nothing). 0: no memory. */
int ta__tracked_put(const struct ta__tracked *entry, struct ta__tracked *old);
/* 1 and *old when it was there. */
int ta__tracked_take(uint32_t domain, uint64_t address, struct ta__tracked *old);
int ta__tracked_find(uint32_t domain, uint64_t address, struct ta__tracked *found);
/* Calls visit for every entry, shard by shard, under the shard's lock: it must not track. Stops when visit answers 0.
 */
void ta__tracked_visit(int (*visit)(const struct ta__tracked *entry, void *context), void *context);
/* Takes out all entries of a domain and reports each. */
void ta__tracked_take_domain(uint32_t domain, void (*taken)(const struct ta__tracked *entry, void *context),
                             void *context);
/* Drops all entries and reports each. */
void ta__tracked_clear(void (*dropped)(uint32_t domain, size_t size));
uint64_t ta__tracked_count(void);
void ta__tracked_after_fork(void);

/* What a reader of this process's memory is told: base/facts.h. */
extern struct ta__fact ta__facts_tracked[];

#endif
