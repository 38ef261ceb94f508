/* follow.h: the entries of a recording one after another, each with what it changed. For courses over time: loading every
 * entry on its own would replay the file once for each. Reading side; needs no runtime.
 *
 * A recording is a row of segments: one begins where an entry needs nothing before it. Within a segment a leaf (a stack
 * in a domain) has one number; a new segment numbers anew. */
#ifndef TA_SNAPSHOT_READ_FOLLOW_H
#define TA_SNAPSHOT_READ_FOLLOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "tracealloc/snapshot.h"

/* A leaf whose counters moved: as they are after the entry. */
struct ta__leaf_state {
    uint32_t leaf;
    uint64_t size, count, allocated_bytes, allocated_blocks;
};

struct ta__followed_entry {
    uint64_t time_ns;
    uint64_t epoch;
    uint64_t resident;  /* bytes of the whole process in memory; 0 = the entry does not say */
    int restarts;       /* every counter was zero before it: the traces were cleared */
    const char *reason; /* what asked for the entry; until the next one */
};

#define TA__NO_TRACE UINT32_MAX

/* Each answers 0, or -1 with the error set, which ends it all. */
struct ta__follower {
    /* A segment begins, or begins anew because its end turned out to be damaged. */
    int (*begin)(void *user, size_t first_entry);
    int (*entry)(void *user, size_t index, const struct ta__followed_entry *entry, const struct ta__leaf_state *changed,
                 size_t count);
    /* It has ended: `snapshot` is its last entry and now the callee's, `traces` says which trace a leaf became, or
     * TA__NO_TRACE. Snapshots that were built from data have traces without leaves: then `leaf_count` is 0. */
    int (*end)(void *user, struct ta_snapshot *snapshot, const uint32_t *traces, size_t leaf_count);
};

/* 0, or -1 with the error set. */
TA_NODISCARD int ta__recording_follow(const char *path, const struct ta__follower *follower, void *user);

#endif
