/* safepoint.c: see safepoint.h. */
#include "base/safepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/lock.h"

/* Until alloc/process.c has set the process up, every operation takes its cold path. */
uint32_t ta__gate = TA__GATE_PENDING;
int ta__stop_patience_ms = 5000;

static struct {
    struct ta__lock stop_lock; /* held from stop to resume */
    uint32_t depth;            /* under stop_lock: stops around the present one, all of one thread */
    uint64_t opens_at_depth;   /* under stop_lock: a bit for each of them that found the gate open */
    uint32_t view_before;      /* under stop_lock: what the holder's view was, and its mark */
    uint32_t in_op_before;
    int32_t forker;            /* the thread that forks with all others held; 0: none does; FORK_IS_STUCK. Atomic */
    struct ta__lock join_lock; /* guards present and used */
    int used;                  /* slots ever used; written under join_lock, read by any, acquire */
    int barrier_state;         /* 0 unknown, 1 membarrier works, -1 it does not; under stop_lock */
    uint32_t generation;       /* guarded by stop_lock or atomic */
} safepoint = {.stop_lock = {.rank = TA__RANK_STOP}, .join_lock = {.rank = TA__RANK_JOIN}};

/* By slot. Not in the structure above, whose values stand in the file: half a MiB of zeros would, too. */
static struct {
    struct ta__safepoint_member *members[TA__WORLD_MEMBERS_MAX];
    unsigned char present[TA__WORLD_MEMBERS_MAX];
    unsigned char was_late[TA__WORLD_MEMBERS_MAX]; /* of the slot's thread, at the last stop; relaxed */
    int32_t tids[TA__WORLD_MEMBERS_MAX];           /* whose a slot is */
} slots;

struct ta__fact ta__facts_safepoint[] = {
    TA__FACT_AT("gate", ta__gate),
    TA__FACT("gate.tracing", TA__GATE_TRACING),
    TA__FACT("gate.sampled", TA__GATE_SAMPLED),
    TA__FACT_AT("members", slots.members),
    TA__FACT_AT("members.present", slots.present),
    TA__FACT_AT("members.used", safepoint.used),
    TA__FACT_AT("members.tids", slots.tids),
    TA__FACT("members.most", TA__WORLD_MEMBERS_MAX),
    TA__FACT_FIELD("member.in_op", struct ta__safepoint_member, in_op),
    TA__FACTS_END,
};

int ta__safepoint_join(struct ta__safepoint_member *member)
{
    ta__lock_acquire(&safepoint.join_lock);
    int slot = -1;
    for (int i = 0; i < safepoint.used && slot < 0; i++)
        if (slots.members[i] == member)
            slot = i;
    if (slot < 0 && safepoint.used < TA__WORLD_MEMBERS_MAX) {
        slot = safepoint.used;
        ta__store_relaxed(&slots.members[slot], member);
        ta__store_release(&safepoint.used, slot + 1);
    }
    if (slot >= 0) {
        ta__store_relaxed(&slots.tids[slot], (int32_t)syscall(SYS_gettid));
        ta__store_relaxed(&slots.was_late[slot], (unsigned char)0); /* whoever had the slot before was */
        ta__store_release(&slots.present[slot], (unsigned char)1);
        ta__full_fence(); /* pairs with ta__safepoint_is_alone: either it sees us, or we see what was done before */
    }
    ta__lock_release(&safepoint.join_lock);
    return slot;
}

void ta__safepoint_leave(int slot)
{
    if (slot >= 0)
        ta__store_release(&slots.present[slot], (unsigned char)0);
}

int ta__safepoint_size(void)
{
    return ta__load_acquire(&safepoint.used);
}

struct ta__safepoint_member *ta__safepoint_member(int slot)
{
    return ta__load_relaxed(&slots.members[slot]);
}

int ta__safepoint_is_present(int slot)
{
    return ta__load_acquire(&slots.present[slot]);
}

/* How many threads are registered, besides one. */
static int count_besides(const struct ta__safepoint_member *self)
{
    int count = 0;
    ta__full_fence(); /* pairs with ta__safepoint_join */
    for (int slot = ta__safepoint_size(); slot-- > 0;)
        count += ta__safepoint_is_present(slot) && ta__safepoint_member(slot) != self;
    return count;
}

int ta__safepoint_is_alone(const struct ta__safepoint_member *self)
{
    return count_besides(self) == 0;
}

/* Makes every running thread of the process pass a full fence. */
static void barrier_everywhere(void)
{
    int saved_errno = errno;
    if (safepoint.barrier_state == 0) {
        long registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
        safepoint.barrier_state = registered == 0 ? 1 : -1;
    }
    if (safepoint.barrier_state > 0 && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
        errno = saved_errno;
        return;
    }
    /* No expedited barrier: the slow one, then a pause that any store buffer outlives. */
    safepoint.barrier_state = -1;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) {
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
    }
    errno = saved_errno;
}

void ta__safepoint_barrier(void)
{
    if (count_besides(NULL) > 1)
        barrier_everywhere();
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_a_little(void)
{
    struct timespec moment = {0, 200000};
    nanosleep(&moment, NULL); /* a signal may end it early: patience is counted in time, not in pauses */
}

/* What the thread does, as the kernel sees it: R runs or waits for a processor, D waits for a page of memory, S sleeps …
 * No answer is 0. */
static char state_of(int32_t thread)
{
    char path[64] = "/proc/self/task/";
    char digits[16];
    char text[256];
    size_t length = strlen(path);
    size_t count = 0;
    for (uint32_t tid = (uint32_t)thread; tid != 0; tid /= 10)
        digits[count++] = (char)('0' + tid % 10);
    while (count > 0)
        path[length++] = digits[--count];
    memcpy(path + length, "/stat", sizeof "/stat");
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = descriptor >= 0 ? read(descriptor, text, sizeof text) : -1;
    if (descriptor >= 0)
        close(descriptor);
    const char *name_end = got > 0 ? memrchr(text, ')', (size_t)got) : NULL; /* "17 (a name) S …" */
    return name_end != NULL && name_end + 2 < text + got ? name_end[2] : '\0';
}

enum outcome { OUTSIDE, LATE, FORKS };

/* How long a stopper waits for others. */
struct patience {
    int64_t limit_ms; /* a moment, as now_ms tells it */
    int forks;        /* the caller can neither be refused nor give way */
};

/* A fork waits no longer for who sleeps inside: it is in a handler that waits for something, perhaps for this fork. */
enum { SLEEPER_PATIENCE_MS = 100, SLEEPER_CHECK_MS = 10, STARVED_CHECK_MS = 100 };

/* Does any thread show that it forks inside? It cannot come out before it has forked, and no more can those that wait
 * for a lock that it holds: they show nothing. */
static int somebody_forks(void)
{
    for (int slot = ta__safepoint_size(); slot-- > 0;)
        if (ta__safepoint_is_present(slot) && ta__load_acquire(&ta__safepoint_member(slot)->in_op) == TA__IN_OP_FORKS)
            return 1;
    return 0;
}

/* Has any other thread that is inside only no processor, or no memory yet? Others sleep until it is done. */
static int somebody_starves(void)
{
    int32_t self = (int32_t)syscall(SYS_gettid);
    for (int slot = ta__safepoint_size(); slot-- > 0;) {
        int32_t thread = ta__load_relaxed(&slots.tids[slot]);
        const struct ta__safepoint_member *member = ta__safepoint_member(slot);
        if (!ta__safepoint_is_present(slot) || thread == self || !ta__safepoint_is_inside(member))
            continue;
        char state = state_of(thread);
        if (state == 'R' || state == 'D' || !ta__safepoint_is_inside(member)) /* what it does outside says nothing */
            return 1;
    }
    return 0;
}

/* The moment until which is waited on, when `now` is beyond the limit. */
static int64_t prolonged(const struct patience *patience, int64_t now)
{
    int64_t last = patience->limit_ms + (TA__STOP_STARVED_FACTOR - 1) * (int64_t)ta__stop_patience_ms;
    return now < last && somebody_starves() ? now + STARVED_CHECK_MS : now;
}

static enum outcome wait_until_outside(int slot, const struct patience *patience)
{
    const struct ta__safepoint_member *member = ta__safepoint_member(slot);
    int64_t began = now_ms();
    int64_t look_next = began + SLEEPER_PATIENCE_MS;
    int64_t limit = patience->limit_ms;
    if (ta__load_relaxed(&slots.was_late[slot]) && began + TA__STOP_SHORT_PATIENCE_MS < limit)
        limit = began + TA__STOP_SHORT_PATIENCE_MS;
    for (int spin = 0;; spin++) {
        if (ta__load_acquire(&member->in_op) == TA__IN_OP_FORKS)
            return FORKS;
        if (!ta__safepoint_is_inside(member))
            return OUTSIDE;
        if (spin < 2000) {
            ta__cpu_pause();
            continue;
        }
        int64_t now = now_ms();
        if (!patience->forks && somebody_forks())
            return FORKS;
        if (now >= limit && (limit < patience->limit_ms || (limit = prolonged(patience, now)) <= now))
            return LATE;
        if (patience->forks && now >= look_next) {
            look_next = now + SLEEPER_CHECK_MS;
            if (state_of(ta__load_relaxed(&slots.tids[slot])) == 'S')
                return FORKS;
        }
        pause_a_little();
    }
}

/* What became of the wait for all others: LATE before FORKS before OUTSIDE. */
static enum outcome wait_for_others(const struct ta__safepoint_member *self, const struct patience *patience)
{
    enum outcome all = OUTSIDE;
    int used = ta__safepoint_size();
    for (int slot = 0; slot < used; slot++) {
        if (ta__safepoint_member(slot) == self || !ta__safepoint_is_present(slot))
            continue;
        enum outcome one = wait_until_outside(slot, patience);
        ta__store_relaxed(&slots.was_late[slot], (unsigned char)(one == LATE));
        if (one == FORKS && !patience->forks)
            return FORKS;
        if (one == LATE || all == OUTSIDE)
            all = one;
    }
    return all;
}

/* The barrier is for the others: a program of one thread may have forbidden itself that system call. */
static void close_gate(const struct ta__safepoint_member *self)
{
    __atomic_fetch_or(&ta__gate, (uint32_t)TA__GATE_PENDING, __ATOMIC_SEQ_CST);
    if (!ta__safepoint_is_alone(self))
        barrier_everywhere();
}

static void open_gate(void)
{
    __atomic_fetch_and(&ta__gate, ~(uint32_t)TA__GATE_PENDING, __ATOMIC_SEQ_CST);
    ta__futex_wake(&ta__gate, 1 << 30);
}

/* The caller's view is HELD. Between two tries the world goes on: a thread that forks inside an operation cannot come
 * out before it has forked. */
static enum outcome hold_the_world(const struct ta__safepoint_member *self)
{
    int saved_errno = errno;
    const struct patience patience = {.limit_ms = now_ms() + ta__stop_patience_ms};
    enum outcome outcome;
    for (;;) {
        ta__lock_acquire(&safepoint.stop_lock);
        close_gate(self);
        outcome = wait_for_others(self, &patience);
        if (outcome == OUTSIDE)
            break;
        open_gate();
        ta__lock_release(&safepoint.stop_lock);
        int64_t now = now_ms();
        if (outcome == LATE || (now >= patience.limit_ms && prolonged(&patience, now) <= now))
            break;
        pause_a_little();
    }
    errno = saved_errno;
    return outcome;
}

#if TA_CHECKS >= 2
void (*ta__safepoint_inspect)(void);
int ta__safepoint_fork_left_some;
#endif

static void inspect(void)
{
#if TA_CHECKS >= 2
    if (ta__safepoint_inspect != NULL)
        ta__safepoint_inspect();
#endif
}

static void note_outcome(int is_clean)
{
#if TA_CHECKS >= 2
    ta__safepoint_fork_left_some = !is_clean;
#else
    (void)is_clean;
#endif
}

enum ta__stop ta__safepoint_stop(struct ta__safepoint_member *self)
{
    /* The mark without a shut view: a handler interrupted an operation at its very beginning, or an untraced one. */
    uint32_t view = !ta__safepoint_is_inside(self) ? ta__safepoint_shut(self) : 0;
    if (ta__safepoint_is_shut(view))
        return TA__STOP_INSIDE;
    if (hold_the_world(self) != OUTSIDE) {
        ta__safepoint_open(self, view);
        return TA__STOP_LATE;
    }
    safepoint.view_before = view;
    inspect();
    return TA__STOP_DONE;
}

void ta__safepoint_resume(struct ta__safepoint_member *self)
{
    TA_CHECK("S-1", ta__lock_is_mine(&safepoint.stop_lock) && ta__load_relaxed(&self->view) == TA__VIEW_HELD);
    inspect();
    uint32_t view = safepoint.view_before;
    open_gate();
    ta__lock_release(&safepoint.stop_lock);
    ta__safepoint_open(self, view);
}

int ta__safepoint_refused(enum ta__stop why)
{
    errno = why == TA__STOP_INSIDE ? EDEADLK : EBUSY;
    return ta__error_set(why == TA__STOP_INSIDE ? "not from a signal handler that interrupted the allocator"
                                                : "a thread is stuck inside the allocator",
                         NULL);
}

/* Whoever holds the world waits for us, if we are inside: it must see that we cannot come out. A handler of a handler
 * takes the mark away: it is set again and again. */
static void take_stop_lock_for_fork(struct ta__safepoint_member *self, uint32_t in_op)
{
    int is_inside = self != NULL && (in_op != 0 || ta__load_relaxed(&self->view) == 0);
    while (!ta__lock_try(&safepoint.stop_lock)) {
        if (is_inside)
            ta__store_release(&self->in_op, (uint32_t)TA__IN_OP_FORKS);
        pause_a_little();
    }
    safepoint.in_op_before = in_op;
}

uint32_t ta__safepoint_stop_for_fork(struct ta__safepoint_member *self)
{
    int saved_errno = errno;
    if (ta__lock_is_mine(&safepoint.stop_lock)) {
        safepoint.depth++; /* the stop that the handler interrupted may be at any point of its way */
    } else {
        uint32_t in_op = self != NULL ? ta__load_relaxed(&self->in_op) : 0;
        uint32_t view = self != NULL ? ta__safepoint_shut(self) : TA__VIEW_HELD;
        take_stop_lock_for_fork(self, in_op);
        safepoint.view_before = view;
    }
    uint64_t bit = UINT64_C(1) << safepoint.depth % 64;
    if ((ta__gate_read() & TA__GATE_PENDING) == 0)
        safepoint.opens_at_depth |= bit;
    else
        safepoint.opens_at_depth &= ~bit;
    close_gate(self);
    enum outcome outcome = wait_for_others(self, &(struct patience){now_ms() + ta__stop_patience_ms, 1});
    note_outcome(outcome == OUTSIDE && safepoint.depth == 0 && safepoint.in_op_before == 0 &&
                 safepoint.view_before != 0);
    ta__store_release(&safepoint.forker, (int32_t)syscall(SYS_gettid));
    errno = saved_errno;
    return safepoint.depth;
}

uint32_t ta__safepoint_depth(void)
{
    return safepoint.depth;
}

void ta__safepoint_resume_after_fork(struct ta__safepoint_member *self)
{
    ta__store_release(&safepoint.forker, 0);
    if ((safepoint.opens_at_depth >> safepoint.depth % 64 & 1) != 0)
        open_gate();
    if (safepoint.depth > 0) {
        safepoint.depth--;
        return;
    }
    uint32_t view = safepoint.view_before;
    if (self != NULL) /* the interrupted operation goes on with the mark that it had */
        ta__store_release(&self->in_op, safepoint.in_op_before);
    ta__lock_release(&safepoint.stop_lock);
    if (self != NULL)
        ta__safepoint_open(self, view);
}

/* ---- waiting at the gate ----------------------------------------------------------------------------------------- */

/* Who forks holds all others, and then takes locks of libc. One who has such a lock and comes to the gate must not wait
 * for that fork. It is known by its sleep: what else a fork does, however long, it does awake. */
enum { FORK_IS_STUCK = -1, FORKER_CHECK_MS = 100, FORKER_CHECKS = 5 };

/* Seen asleep so many times in turn; whoever finds that out says it to all others. */
static int fork_is_stuck(int *times_asleep, int64_t *look_next)
{
    int32_t forker = ta__load_acquire(&safepoint.forker);
    if (forker == FORK_IS_STUCK)
        return 1;
    int64_t now = now_ms();
    if (forker == 0 || now < *look_next)
        return 0;
    *look_next = now + FORKER_CHECK_MS;
    *times_asleep = state_of(forker) == 'S' ? *times_asleep + 1 : 0;
    return *times_asleep >= FORKER_CHECKS && ta__cas_acq_rel(&safepoint.forker, &forker, (int32_t)FORK_IS_STUCK);
}

int ta__safepoint_wait(int may_give_up)
{
    int saved_errno = errno;
    int times_asleep = 0;
    int64_t look_next = 0;
    for (;;) {
        uint32_t gate = ta__load_acquire(&ta__gate);
        int is_stuck = (gate & TA__GATE_PENDING) != 0 && may_give_up && fork_is_stuck(&times_asleep, &look_next);
        if ((gate & TA__GATE_PENDING) == 0 || is_stuck) {
            errno = saved_errno;
            return !is_stuck;
        }
        ta__futex_wait(&ta__gate, gate, may_give_up ? FORKER_CHECK_MS * 1000000L : 0);
    }
}

int ta__safepoint_try_enter(struct ta__safepoint_member *self, uint32_t *gate, int may_give_up)
{
    uint32_t view = ta__owner_read(&self->view);
    ta__store_relaxed(&self->view, 0u);
    ta__compiler_fence();
    ta__store_release(&self->in_op, 0u); /* the view says the same, and to handlers too */
    while (((*gate = ta__gate_read()) & TA__GATE_PENDING) != 0) {
        ta__store_release(&self->view, TA__VIEW_HELD);
        if (!ta__safepoint_wait(may_give_up)) {
            ta__store_release(&self->view, view);
            return 0;
        }
        ta__store_relaxed(&self->view, 0u);
        ta__compiler_fence();
    }
    return 1;
}

uint32_t ta__safepoint_enter(struct ta__safepoint_member *self)
{
    uint32_t gate;
    while (!ta__safepoint_try_enter(self, &gate, 0))
        ;
    return gate;
}

void ta__safepoint_after_fork(const struct ta__safepoint_member *self)
{
    for (int slot = 0; slot < safepoint.used; slot++) {
        slots.present[slot] = slots.members[slot] == self;
        slots.was_late[slot] = 0;
        if (slots.present[slot])
            slots.tids[slot] = (int32_t)syscall(SYS_gettid);
    }
    ta__lock_after_fork(&safepoint.join_lock);
}

uint32_t ta__gate_change(uint32_t set, uint32_t clear)
{
    uint32_t old = ta__load_relaxed(&ta__gate);
    uint32_t generation = __atomic_add_fetch(&safepoint.generation, TA__GATE_GENERATION, __ATOMIC_ACQ_REL);
    uint32_t changed;
    do {
        uint32_t flags = ((old & TA__GATE_FLAGS) | set) & ~clear;
        uint32_t modes = flags & ~(uint32_t)TA__GATE_PENDING;
        /* With no mode the generation goes too: 0 is what the fast path compares with. */
        changed = modes == 0 ? (flags & TA__GATE_PENDING) : (flags | generation);
    } while (!ta__cas_acq_rel(&ta__gate, &old, changed));
    return generation / TA__GATE_GENERATION;
}
