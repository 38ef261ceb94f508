/* lock.h: a small futex lock for cold paths: table growth, registration, control. Never taken by a warm malloc or free.
 *
 * Not recursive. A signal handler never waits for it: handlers that allocate while their thread is inside are served
 * by alloc/emergency.c. fork is safe because alloc/process.c holds all threads outside while it happens. */
#ifndef TA_BASE_LOCK_H
#define TA_BASE_LOCK_H

#include <stdint.h>

/* 0 free, 1 held, 2 held and somebody sleeps. */
struct ta__lock {
    uint32_t state;
};

void ta__lock_acquire(struct ta__lock *lock);
int ta__lock_try(struct ta__lock *lock); /* 1 when taken */
void ta__lock_release(struct ta__lock *lock);

/* The raw futex, for other waits of the same kind. */
void ta__futex_wait(uint32_t *word, uint32_t while_equal, long timeout_ns); /* timeout_ns 0 = no limit */
void ta__futex_wake(uint32_t *word, int how_many);

#endif
