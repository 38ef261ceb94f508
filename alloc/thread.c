/* thread.c: a thread's structure, from its first allocation to its end.
 *
 * Structures lie in mappings of their own and are never unmapped: a stopper or a snapshot may look at any of them at
 * any time. When a thread ends, its structure waits for the next new thread, counters and all. */
#include "alloc/alloc.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "alloc/setup.h"
#include "base/lock.h"
#include "base/memory.h"
#include "trace/sample.h"
#include "trace/unwind/stack_bounds.h"

struct ta__thread ta__thread_none = {.safepoint = {.view = TA__VIEW_STALE},
                                     .theap = TA__THEAP_EMPTY,
                                     .headed = TA__THEAP_EMPTY,
                                     .lined = TA__THEAP_EMPTY,
                                     .allocate = ta__malloc_any,
                                     .create = ta__new_any,
                                     .release = ta__free_any,
                                     .scope = ta__scope_none,
                                     .slot = -1};
TA_THREAD_LOCAL struct ta__thread *ta__self = &ta__thread_none;

/* While ld.so relocates, thread-local storage is still zero, so that ta__self is NULL, which the fast paths do not
 * expect. Resolvers of indirect functions run already then, and those of a program may allocate. So we have one too,
 * which runs when this library is relocated, before the program's: it puts a structure in place that is "inside" for
 * ever, whose requests are served from emergency memory. Then libc fills the storage, and it is gone. (Without ld.so
 * there is no such storage yet; no function may be called here.) */
static struct ta__thread early = {.theap = TA__THEAP_EMPTY,
                                  .headed = TA__THEAP_EMPTY,
                                  .lined = TA__THEAP_EMPTY,
                                  .allocate = ta__malloc_any,
                                  .create = ta__new_any,
                                  .release = ta__free_any,
                                  .scope = ta__scope_none,
                                  .slot = -1};

void ta__thread_stays_outside(void)
{
    ta__store_relaxed(&early.safepoint.view, 0u); /* of a child, whose parent was changing the mode */
    ta__self = &early;
}

void ta__thread_may_stop(int may)
{
    if (ta__self == &early)
        ta__store_relaxed(&early.safepoint.view, may ? TA__VIEW_STALE : 0u);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && defined(__GLIBC__)
extern struct r_debug _r_debug __attribute__((weak));

static void nothing(void)
{
}

static void (*serve_early_requests(void))(void)
{
    if (&_r_debug != NULL && _r_debug.r_ldbase != 0 && ta__self == NULL)
        ta__self = &early;
    return nothing;
}

static void resolved_early(void) __attribute__((ifunc("serve_early_requests")));
static void (*const volatile resolved_here)(void) __attribute__((used)) = resolved_early;
#endif

static struct {
    struct ta__lock lock;    /* guards the list and the numbering */
    struct ta__thread *idle; /* structures that wait for a thread */
    int32_t numbered;
    pthread_key_t end_key;
    int has_end_key;
    int reserve_used;
} threads = {.lock = {.rank = TA__RANK_THREADS}};

/* The thread gets its structure, gives it back, or must do without one: requests of signal handlers in the middle of
 * that are served from emergency memory. */
static TA_THREAD_LOCAL int does_without;
/* Nobody is told of the thread's end any more. */
static TA_THREAD_LOCAL int is_late;

void ta__thread_do_without(int change)
{
    does_without += change;
    ta__compiler_fence();
}

/* For threads that find no memory mapped for them: without a structure they could not even allocate untraced. */
enum { RESERVE = 64 };
static struct ta__thread reserve[RESERVE];

/* A fork has it with the gate shut, and may wait for a lock of libc that this thread holds: 0, as at the gate. */
static int lock_threads(void)
{
    const struct timespec moment = {0, 100000};
    for (int spin = 0; !ta__lock_try(&threads.lock); spin++) {
        if (!ta__safepoint_wait(1))
            return 0;
        if (spin < 100)
            ta__cpu_pause();
        else
            nanosleep(&moment, NULL);
    }
    return 1;
}

static struct ta__thread *take_structure(void)
{
    struct ta__thread *self = NULL;
    if (!lock_threads())
        return NULL;
    if (threads.idle != NULL) { /* whole at every moment: a child may be without the thread that was here */
        self = threads.idle;
        ta__store_release(&threads.idle, self->next_idle);
    }
    ta__lock_release(&threads.lock);
    if (self == NULL) {
        self = ta__memory_map(sizeof *self);
        if (self == NULL) {
            int next = __atomic_fetch_add(&threads.reserve_used, 1, __ATOMIC_RELAXED);
            if (next >= RESERVE) {
                ta__store_relaxed(&threads.reserve_used, RESERVE);
                return NULL;
            }
            self = &reserve[next];
        }
        self->slot = -1;
    }
    self->scope = ta__scope_none;
    return self;
}

static void give_structure(struct ta__thread *self)
{
    if (!lock_threads())
        return; /* it is lost */
    self->next_idle = threads.idle;
    ta__store_release(&threads.idle, self);
    ta__lock_release(&threads.lock);
}

static void learn_name(struct ta__thread *self)
{
    uint64_t name[2] = {0};
    ta__store_relaxed(&self->tid, (int32_t)syscall(SYS_gettid));
    self->is_main = self->tid == getpid();
    pthread_getname_np(pthread_self(), (char *)name, sizeof name);
    ta__store_relaxed(&self->name[0], name[0]);
    ta__store_relaxed(&self->name[1], name[1]);
}

/* What a structure says of its thread, from the first request to the last. */
static void begin_life(struct ta__thread *self)
{
    learn_name(self);
    if (threads.has_end_key && !is_late)
        pthread_setspecific(threads.end_key, self);
    self->had_round = 0;
    self->late_uses = (uint32_t)is_late;
    ta__stack_learn_own(self, self->is_main);
    self->depth = 0;
    self->no_trace = 0;
    self->foreign_low = self->foreign_high = 0;
    self->number = __atomic_fetch_add(&threads.numbered, 1, __ATOMIC_RELAXED);
    self->sample_random = (uint64_t)(uint32_t)self->number << 32 | ta__header_key;
    if (ta__trace_sample_bytes() != 0)
        self->sample_left = ta__sample_interval(&self->sample_random, ta__trace_sample_bytes());
}

/* Inside an operation, which this ends. Afterwards the thread has no structure. */
static void leave_structure(struct ta__thread *self)
{
    ta__thread_do_without(1);
    ta__self = &ta__thread_none;
    ta__safepoint_leave(self->slot);
    ta__safepoint_unseal(&self->safepoint, TA__VIEW_STALE);
    give_structure(self);
    ta__thread_do_without(-1);
}

static struct ta__thread *make_structure(void)
{
    struct ta__thread *self = take_structure();
    if (self == NULL)
        return NULL;
    /* Allocations of the calls below (keys, names) find a thread that is inside, and go to emergency memory. */
    ta__store_relaxed(&self->safepoint.view, 0u);
    self->theap = self->headed = self->lined = TA__THEAP_EMPTY;
    ta__malloc_choose_any(self);
    self->headed_word = _mi_prim_thread_id() | MI_PAGE_HAS_INTERIOR_POINTERS;
    ta__self = self;
    self->slot = ta__safepoint_join(&self->safepoint);
    void *theap = NULL;
    uint32_t gate;
    if (ta__safepoint_try_enter(&self->safepoint, &gate, 1)) {
        begin_life(self);
        theap = self->slot >= 0 ? ta__heap_part(ta__plain_heap) : NULL;
    }
    if (theap == NULL) {
        leave_structure(self);
        return NULL;
    }
    self->theap = theap;
    self->is_ready = 1;
    ta__safepoint_unseal(&self->safepoint, TA__VIEW_STALE);
    return self;
}

struct ta__thread *ta__thread_get(void)
{
    struct ta__thread *self = ta__self;
    if (TA_LIKELY(self != &ta__thread_none))
        return ta__safepoint_is_shut(ta__load_relaxed(&self->safepoint.view)) ? NULL : self;
    if (does_without != 0)
        return NULL;
    ta__process_ready();
    if (ta__self != &ta__thread_none) /* the process set-up made it */
        return ta__thread_get();
    if (!ta__process_is_ready())
        return NULL; /* called from within the set-up */

    int saved_errno = errno;
    ta__thread_do_without(1);
    self = ta__self == &ta__thread_none ? make_structure() : NULL;
    ta__thread_do_without(-1);
    errno = saved_errno;
    return self != NULL || ta__self == &ta__thread_none ? self : ta__thread_get(); /* or a handler made it just now */
}

/* Inside an operation, which this ends. The thread can begin another life. */
static void end_life(struct ta__thread *self)
{
    if (self->deferred != NULL)
        ta__thread_free_deferred(self);
    ta__counters_flush(self);
    ta__domains_thread_done(self);
    ta__heap_thread_done();
    self->theap = self->headed = self->lined = TA__THEAP_EMPTY;
    self->is_ready = 0;
    leave_structure(self);
}

/* Runs as a thread-specific destructor, mostly before the program's, which go on allocating: the life ends when they had a
 * round to do so. How many rounds are left nobody knows. What comes after, from more destructors and from libc, which at
 * the very end frees what it keeps for the thread, has nobody to end it: ta__thread_end_late. */
static void thread_ends(void *value)
{
    struct ta__thread *self = value;
    if (ta__self != self)
        return;
    if (!self->had_round && pthread_setspecific(threads.end_key, self) == 0) {
        self->had_round = 1;
        return;
    }
    is_late = 1;
    ta__safepoint_enter(&self->safepoint);
    end_life(self);
}

/* Some have more to do: who is in a domain, and who is alone, perhaps to run all that is to be done at exit. */
static int must_live_on(const struct ta__thread *self)
{
    return self->crossed != 0 || (self->domains != NULL && self->scope > self->domains->scopes) ||
           ta__safepoint_is_alone(&self->safepoint);
}

/* The operation that had the structure made is the one that ends it; a handler may have begun others in front of it. Where no
 * operation had it made, or it lived on once, it stays: it is one that nobody else can have. */
TA_COLD int ta__thread_end_late(struct ta__thread *self)
{
    if (self->late_uses > 1 || must_live_on(self)) {
        self->late_uses--;
        return 0;
    }
    int saved_errno = errno;
    end_life(self);
    errno = saved_errno;
    return 1;
}

void ta__threads_init(void)
{
    threads.has_end_key = pthread_key_create(&threads.end_key, thread_ends) == 0;
}

/* Threads come and go outside of operations too. 0: the handler that forks interrupted this thread at that, or another
 * thread does not get on with it: it may be in a handler that forks, and waits for us. */
int ta__threads_before_fork(void)
{
    enum { TRIES = 1000 };
    const struct timespec moment = {0, 100000};
    int saved_errno = errno;
    int tries = ta__lock_is_mine(&threads.lock) ? 0 : TRIES;
    int is_taken = 0;
    while (tries-- > 0 && !(is_taken = ta__lock_try(&threads.lock))) /* in any order: a handler may have interrupted who
                                                                        holds others */
        nanosleep(&moment, NULL);
    errno = saved_errno;
    return is_taken;
}

void ta__threads_after_fork(void)
{
    ta__lock_release(&threads.lock);
}

/* In a child that has not got the lock its holder is not there. */
void ta__threads_after_fork_in_child(void)
{
    ta__lock_after_fork(&threads.lock);
}
