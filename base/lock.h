/* lock.h: a small futex lock for cold paths: table growth, registration, control. Never taken by a warm malloc or free.
 *
 * Not recursive. A signal handler never waits for a lock that its own thread holds: locks are taken inside operations,
 * or with the thread shut (base/safepoint.h), and then its handlers are served by alloc/emergency.c. fork is safe
 * because alloc/process.c holds all threads outside while it happens.
 *
 * Locks are taken in the order of their ranks: who holds one may only wait for one of a higher rank. Builds with
 * assertions check that. The lock of the world (safepoint.h: stop) is one of them and comes first. */
#ifndef TA_BASE_LOCK_H
#define TA_BASE_LOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

/* The order of all locks of the runtime: docs/invariants.md, L-1. */
enum ta__rank {
    TA__RANK_NONE,     /* of tests, and of the build without tracing */
    TA__RANK_RULES,    /* alloc/domains/domain_rules.c: one file of rules at a time */
    TA__RANK_STOP,     /* base/safepoint.c: who holds the world */
    TA__RANK_THREADS,  /* alloc/thread.c: structures that wait for a thread */
    TA__RANK_JOIN,     /* base/safepoint.c: slots */
    TA__RANK_DOMAINS,  /* alloc/domains: the table */
    TA__RANK_SHARED,   /* alloc/domains/shared_blocks.c: lists of blocks */
    TA__RANK_CONTEXTS, /* trace/contexts.c: contexts and leaves */
    TA__RANK_TRACKED,  /* trace/tracked.c: one shard */
    TA__RANK_COUNTERS, /* trace/counters.c: the making of the shared row */
};

/* 0: free. Else whose it is: an address that only that thread has; the lowest bit says that somebody sleeps. */
struct ta__lock {
    uint64_t state;
    uint32_t rank;
};

void ta__lock_acquire(struct ta__lock *lock);
int ta__lock_try(struct ta__lock *lock); /* 1 when taken; in any order */
void ta__lock_release(struct ta__lock *lock);
/* Does the calling thread hold it? In a signal handler: did what it interrupted take it? */
int ta__lock_is_mine(const struct ta__lock *lock);
#if TA_CHECKS >= 2
/* May the calling thread wait for a lock that operations want? (L-3) NULL: nobody says. */
extern int (*ta__lock_is_guarded)(void);
#endif
/* A process that shares this memory may be killed with a lock: when *present is 0, locks are free whose holder's
 * thread-local storage lies here. It only reads what they guard. And it may be left alone with a lock that a thread had when
 * the process ended: where that is so, which it alone is asked, it gets all locks. */
void ta__lock_guest(const void *storage, size_t bytes, const uint32_t *present, int (*is_alone)(void));
/* In the child of a fork: a lock whose holder does not exist here is free. */
void ta__lock_after_fork(struct ta__lock *lock);

/* The raw futex, for other waits of the same kind. */
void ta__futex_wait(uint32_t *word, uint32_t while_equal, long timeout_ns); /* timeout_ns 0 = no limit */
void ta__futex_wake(uint32_t *word, int how_many);

#endif
