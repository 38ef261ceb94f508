/* block_age.h: when a block was asked for, as far as the recording of its process tells. */
#ifndef TA_ANALYSIS_CLI_BLOCK_AGE_H
#define TA_ANALYSIS_CLI_BLOCK_AGE_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc/snapshot.h>

struct cli_block_age {
    uint64_t earliest_ns; /* since 1970: not before that; 0 = not known */
    uint64_t latest_ns;   /* not after that: the look itself where the recording does not say */
    uint64_t now_ns;      /* when it was looked at */
    uint64_t live;        /* blocks of the same stack by then */
};

/* `trace` of a snapshot of a process or core, as the entries of the recording at `path` tell. 0, or -1 after a message. */
int cli_block_age(struct cli_block_age *age, const char *path, const struct ta_snapshot *snapshot, size_t trace);

#endif
