/* lock.c: see lock.h. */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/atomics.h"

#define SOMEBODY_SLEEPS UINT64_C(1)

/* Its address is the thread's mark in locks. In builds with assertions: a bit for the rank of each lock it holds. */
static TA_THREAD_LOCAL uint64_t held_ranks;

static uint64_t mark_of_thread(void)
{
    return (uint64_t)(uintptr_t)&held_ranks;
}

void ta__futex_wait(uint32_t *word, uint32_t while_equal, long timeout_ns)
{
    int saved_errno = errno;
    struct timespec limit = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_equal, timeout_ns != 0 ? &limit : NULL, NULL, 0);
    errno = saved_errno;
}

void ta__futex_wake(uint32_t *word, int how_many)
{
    int saved_errno = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, how_many, NULL, NULL, 0);
    errno = saved_errno;
}

/* The half of the state that the kernel looks at: it has the bit. */
static uint32_t *futex_word(struct ta__lock *lock)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lower half comes first");
    return (uint32_t *)(void *)&lock->state;
}

static int take(struct ta__lock *lock, uint64_t bits)
{
    uint64_t nobody = 0;
    return ta__cas_acq_rel(&lock->state, &nobody, mark_of_thread() | bits);
}

#if TA_CHECKS >= 1
static void note_taken(const struct ta__lock *lock)
{
    held_ranks |= UINT64_C(1) << lock->rank;
}

static void note_given(const struct ta__lock *lock)
{
    TA_CHECK("L-2", ta__lock_is_mine(lock));
    held_ranks &= ~(UINT64_C(1) << lock->rank);
}

#if TA_CHECKS >= 2
int (*ta__lock_is_guarded)(void);
#endif

static void check_order(const struct ta__lock *lock)
{
#if TA_CHECKS >= 2
    TA_CHECK("L-3", lock->rank < TA__RANK_DOMAINS || ta__lock_is_guarded == NULL || ta__lock_is_guarded());
#endif
    TA_CHECK("L-2", !ta__lock_is_mine(lock));
    TA_CHECK("L-1", lock->rank == TA__RANK_NONE || held_ranks >> lock->rank == 0);
}
#else
static void note_taken(const struct ta__lock *lock)
{
    (void)lock;
}

static void note_given(const struct ta__lock *lock)
{
    (void)lock;
}

static void check_order(const struct ta__lock *lock)
{
    (void)lock;
}
#endif

void ta__lock_after_fork(struct ta__lock *lock)
{
    if (!ta__lock_is_mine(lock))
        lock->state = 0;
}

int ta__lock_is_mine(const struct ta__lock *lock)
{
    return (ta__load_relaxed(&lock->state) & ~SOMEBODY_SLEEPS) == mark_of_thread();
}

int ta__lock_try(struct ta__lock *lock)
{
    int taken = take(lock, 0);
    if (taken)
        note_taken(lock);
    return taken;
}

static struct {
    uintptr_t storage;
    size_t bytes; /* 0: there is none; release */
    const uint32_t *present;
    int (*is_alone)(void);
} guest;

void ta__lock_guest(const void *storage, size_t bytes, const uint32_t *present, int (*is_alone)(void))
{
    ta__store_release(&guest.bytes, (size_t)0);
    ta__store_release(&guest.storage, (uintptr_t)storage);
    ta__store_release(&guest.present, present);
    ta__store_release(&guest.is_alone, is_alone);
    ta__store_release(&guest.bytes, bytes);
}

static int is_of_guest(uint64_t state)
{
    size_t bytes = ta__load_acquire(&guest.bytes);
    return (uintptr_t)state - ta__load_acquire(&guest.storage) < bytes;
}

/* By the guest that ended, or by a thread of the process that the guest has outlived. */
static int is_left_behind(uint64_t state)
{
    if (is_of_guest(state))
        return ta__load_acquire(ta__load_acquire(&guest.present)) == 0;
    return state != 0 && is_of_guest(mark_of_thread()) && ta__load_acquire(&guest.is_alone)();
}

void ta__lock_acquire(struct ta__lock *lock)
{
    enum { LOOK_NS = 100000000 }; /* nobody is woken by the end of a guest, or of a process */
    check_order(lock);
    for (int spin = 0; spin < 100; spin++) {
        if (ta__lock_try(lock))
            return;
        ta__cpu_pause();
    }
    while (!take(lock, SOMEBODY_SLEEPS)) { /* others may sleep too: who wakes one of them is told to wake the next */
        uint64_t seen = ta__load_relaxed(&lock->state);
        if (is_left_behind(seen)) {
            (void)ta__cas_acq_rel(&lock->state, &seen, (uint64_t)0);
            continue;
        }
        if (seen != 0 &&
            ((seen & SOMEBODY_SLEEPS) != 0 || ta__cas_relaxed(&lock->state, &seen, seen | SOMEBODY_SLEEPS)))
            ta__futex_wait(futex_word(lock), (uint32_t)(seen | SOMEBODY_SLEEPS),
                           ta__load_relaxed(&guest.bytes) != 0 ? LOOK_NS : 0);
    }
    note_taken(lock);
}

void ta__lock_release(struct ta__lock *lock)
{
    note_given(lock);
    if ((ta__exchange_acq_rel(&lock->state, 0u) & SOMEBODY_SLEEPS) != 0)
        ta__futex_wake(futex_word(lock), 1);
}
