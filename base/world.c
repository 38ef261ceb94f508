/* world.c: see world.h. */
#include "base/world.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"

/* Until alloc/process.c has set the process up, every operation takes its cold path. */
uint32_t ta__gate = TA__GATE_PENDING;
uint64_t ta__gate_size;
static uint64_t open_size;

/* Brings ta__gate_size in line with the gate. Of two that do so at once, one that saw 0 looks again after its store: if
 * the other closed the gate meanwhile, either that look or the other's store closes this too. */
static void follow_gate(void)
{
    if (__atomic_load_n(&ta__gate, __ATOMIC_SEQ_CST) == 0) {
        __atomic_store_n(&ta__gate_size, open_size, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&ta__gate, __ATOMIC_SEQ_CST) == 0)
            return;
    }
    __atomic_store_n(&ta__gate_size, 0, __ATOMIC_SEQ_CST);
}

void ta__gate_set_size(uint64_t size)
{
    open_size = size;
    follow_gate();
}

static struct {
    struct ta__lock stop_lock; /* held from stop to resume */
    struct ta__lock join_lock; /* guards present and used */
    int used;                  /* slots ever used; written under join_lock, read by any, acquire */
    int barrier_state;         /* 0 unknown, 1 membarrier works, -1 it does not */
    uint32_t generation;       /* guarded by stop_lock or atomic */
    struct ta__world_member *members[TA__WORLD_MEMBERS_MAX];
    unsigned char present[TA__WORLD_MEMBERS_MAX];
} world;

int ta__world_join(struct ta__world_member *member)
{
    ta__lock_acquire(&world.join_lock);
    int slot = -1;
    for (int i = 0; i < world.used && slot < 0; i++)
        if (world.members[i] == member)
            slot = i;
    if (slot < 0 && world.used < TA__WORLD_MEMBERS_MAX) {
        slot = world.used;
        ta__store_relaxed(&world.members[slot], member);
        ta__store_release(&world.used, slot + 1);
    }
    if (slot >= 0)
        ta__store_release(&world.present[slot], (unsigned char)1);
    ta__lock_release(&world.join_lock);
    return slot;
}

void ta__world_leave(int slot)
{
    if (slot >= 0)
        ta__store_release(&world.present[slot], (unsigned char)0);
}

int ta__world_size(void)
{
    return ta__load_acquire(&world.used);
}

struct ta__world_member *ta__world_member(int slot)
{
    return ta__load_relaxed(&world.members[slot]);
}

int ta__world_is_present(int slot)
{
    return ta__load_acquire(&world.present[slot]);
}

/* Makes every running thread of the process pass a full fence. */
static void barrier_everywhere(void)
{
    int saved_errno = errno;
    if (world.barrier_state == 0) {
        long registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
        world.barrier_state = registered == 0 ? 1 : -1;
    }
    if (world.barrier_state > 0 && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
        errno = saved_errno;
        return;
    }
    /* No expedited barrier: the slow one, then a pause that any store buffer outlives. */
    world.barrier_state = -1;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) {
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
    }
    errno = saved_errno;
}

/* 0 when the thread left, 1 when it would not within the time. */
static int wait_until_outside(const struct ta__world_member *member, int *patience_ms)
{
    for (int spin = 0; spin < 2000; spin++) {
        if (ta__load_acquire(&member->in_op) == 0)
            return 0;
        ta__cpu_pause();
    }
    int saved_errno = errno;
    while (ta__load_acquire(&member->in_op) != 0) {
        if ((*patience_ms)-- <= 0) {
            errno = saved_errno;
            return 1;
        }
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    errno = saved_errno;
    return 0;
}

int ta__world_stop(const struct ta__world_member *self)
{
    ta__lock_acquire(&world.stop_lock);
    __atomic_fetch_or(&ta__gate, (uint32_t)TA__GATE_PENDING, __ATOMIC_SEQ_CST);
    follow_gate();
    barrier_everywhere();
    int patience_ms = 5000;
    int stragglers = 0;
    int used = ta__world_size();
    for (int slot = 0; slot < used; slot++) {
        const struct ta__world_member *member = ta__world_member(slot);
        if (member != self && ta__world_is_present(slot))
            stragglers += wait_until_outside(member, &patience_ms);
    }
    return stragglers;
}

void ta__world_resume(void)
{
    __atomic_fetch_and(&ta__gate, ~(uint32_t)TA__GATE_PENDING, __ATOMIC_SEQ_CST);
    follow_gate();
    ta__futex_wake(&ta__gate, 1 << 30);
    ta__lock_release(&world.stop_lock);
}

void ta__world_wait(void)
{
    for (;;) {
        uint32_t gate = ta__load_acquire(&ta__gate);
        if ((gate & TA__GATE_PENDING) == 0)
            return;
        ta__futex_wait(&ta__gate, gate, 0);
    }
}

uint32_t ta__world_enter(struct ta__world_member *self)
{
    uint32_t gate;
    ta__world_mark(self);
    while (((gate = ta__gate_read()) & TA__GATE_PENDING) != 0) {
        ta__store_release(&self->in_op, 0u);
        ta__world_wait();
        ta__world_mark(self);
    }
    return gate;
}

void ta__world_after_fork(const struct ta__world_member *self)
{
    for (int slot = 0; slot < world.used; slot++)
        world.present[slot] = world.members[slot] == self;
    world.join_lock.state = 0;
}

void ta__gate_change(uint32_t set, uint32_t clear)
{
    uint32_t old = ta__load_relaxed(&ta__gate);
    uint32_t generation = __atomic_add_fetch(&world.generation, TA__GATE_GENERATION, __ATOMIC_RELAXED);
    uint32_t changed;
    do {
        uint32_t flags = ((old & TA__GATE_FLAGS) | set) & ~clear;
        uint32_t modes = flags & ~(uint32_t)TA__GATE_PENDING;
        /* With no mode the generation goes too: 0 is what the fast path compares with. */
        changed = modes == 0 ? (flags & TA__GATE_PENDING) : (flags | generation);
    } while (!ta__cas_acq_rel(&ta__gate, &old, changed));
    follow_gate();
}
