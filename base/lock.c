/* lock.c: see lock.h. */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"

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

int ta__lock_try(struct ta__lock *lock)
{
    uint32_t expected = 0;
    return ta__cas_acq_rel(&lock->state, &expected, 1u);
}

void ta__lock_acquire(struct ta__lock *lock)
{
    for (int spin = 0; spin < 100; spin++) {
        if (ta__lock_try(lock))
            return;
        ta__cpu_pause();
    }
    while (ta__exchange_acq_rel(&lock->state, 2u) != 0)
        ta__futex_wait(&lock->state, 2, 0);
}

void ta__lock_release(struct ta__lock *lock)
{
    if (ta__exchange_acq_rel(&lock->state, 0u) == 2)
        ta__futex_wake(&lock->state, 1);
}
