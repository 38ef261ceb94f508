/* source.h: what a snapshot is made from — the one face through which a writer sees the running process.
 *
 * The writer pulls: it asks for a source, reads the tables while they grow, and never holds anything against an
 * allocation. All arrays are tables that other threads may be appending to: the counts below were read with acquire
 * order, entries below the counts are complete and do not change while the source is open (except the counters, which
 * move). Between two sources, numbers that held nothing may have been given to others: then `generation` differs.
 * The live process fills it in snapshot/write/live.c; tests fill it from arrays of their own. */
#ifndef TA_TRACE_SOURCE_H
#define TA_TRACE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/* A node of the calling-context tree; id = index, 0 is the root "no stack". */
struct ta__source_context {
    uint64_t address; /* the return address as it was in the process; 0 in the root */
    uint32_t parent;
    uint32_t module; /* index into modules + 1; 0 = in no module */
};

/* One (stack, domain) pair; id = index, the number in block headers. 0 = untraced in domain 0. */
struct ta__source_leaf {
    uint32_t context; /* the most recent frame's node; following parents gives the stack. 0 = none */
    uint32_t domain;  /* index into domains */
    uint32_t thread;  /* index into threads + 1 when leaves are kept per thread, else 0 */
    uint16_t total_nframe;
    uint16_t flags;
};
enum {
    TA__LEAF_CUT_SHORT = 1, /* the walk ended before the outermost frame */
    TA__LEAF_OVERFLOW = 2,  /* stands for all stacks beyond the cap on contexts */
    TA__LEAF_UNTRACED = 4,  /* blocks without a trace; never part of a snapshot's traces */
    TA__LEAF_FORGOTTEN = 8, /* what reclaimed stacks had allocated in all */
    TA__LEAF_FREED = 16,    /* a number that is not in use */
};

/* Running totals of a leaf since the last clear: live = allocated - freed. */
struct ta__source_counts {
    uint64_t allocated_blocks;
    uint64_t allocated_bytes;
    uint64_t freed_blocks;
    uint64_t freed_bytes;
};

struct ta__source_module {
    const char *path;
    const uint8_t *build_id;
    uint32_t build_id_length; /* 0 when there is none */
    uint32_t flags;
    uint64_t load_base; /* address in the process - load_base = address in the file */
    uint64_t start, end;
};
enum { TA__MODULE_UNLOADED = 1 };

struct ta__source_domain {
    uint32_t number; /* the domain's public number */
    uint32_t flags;
    const char *name; /* "" when it has none */
    uint64_t live_bytes, live_blocks, peak_bytes, allocated_bytes, allocated_blocks, limit_bytes;
};
enum { TA__DOMAIN_DESTROYED = 1, TA__DOMAIN_ARENA = 2 };

struct ta__source_thread {
    uint32_t tid;
    uint32_t flags;
    char name[16];
};
enum { TA__THREAD_ENDED = 1 };

/* What ta_track recorded: one trace each. */
struct ta__source_tracked {
    uint32_t domain; /* public number */
    uint32_t leaf;
    uint64_t size;
};

/* A live block, or what ta_track recorded. */
struct ta__source_block {
    uint64_t address, size;
    uint32_t leaf; /* 0 = it has no trace */
};

struct ta__source {
    void *user;
    uint32_t leaf_first; /* rows of leaves below are of the past, but for row 0 */
    uint32_t context_count, leaf_count, module_count, domain_count, thread_count;
    const struct ta__source_context *contexts;
    const struct ta__source_leaf *leaves;
    /* counts[0 … n) := the counters of leaves first … first + n - 1, summed over all threads. */
    void (*fold)(const struct ta__source *source, uint32_t first, uint32_t n, struct ta__source_counts *counts);
    /* Copies out one entry; 0 when there is none of that index. */
    int (*module)(const struct ta__source *source, uint32_t index, struct ta__source_module *module);
    int (*domain)(const struct ta__source *source, uint32_t index, struct ta__source_domain *domain);
    int (*thread)(const struct ta__source *source, uint32_t index, struct ta__source_thread *thread);
    uint32_t traceback_limit;
    uint64_t epoch;      /* changes with every start and clear: counters of two epochs are not comparable */
    uint64_t generation; /* changes when numbers of contexts and leaves were used again: they mean others now */
    uint64_t current_bytes, peak_bytes;
    const uint64_t *leaf_peak_bytes; /* live bytes of each leaf when peak_bytes was reached; NULL when not kept */
    uint32_t leaf_peak_count;
    uint32_t peak_is_now;                  /* no more than now was live then: the counters say what there is to say */
    const struct ta__source_block *blocks; /* each of them, ascending by address, where the snapshot has them */
    uint64_t block_count;
    uint32_t has_blocks;
    uint64_t start_time_ns; /* since 1970, when tracing began */
    uint64_t sample_bytes;  /* mean bytes between samples; 0 = every allocation was traced */
    uint64_t lost, overflowed, cut_short, foreign_frees, invalid_frees, snapshot_errors;
    const char *options; /* as given, for the record */
};

#endif
