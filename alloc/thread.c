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
#include <unistd.h>

#include "alloc/life.h"
#include "base/lock.h"
#include "base/memory.h"
#include "trace/sample.h"
#include "trace/stacks.h"

struct ta__thread ta__thread_none = {.world = {.view = TA__VIEW_STALE},
                                     .theap = TA__THEAP_EMPTY,
                                     .allocate = ta__malloc_any,
                                     .scope = ta__scope_none,
                                     .slot = -1};
TA_THREAD_LOCAL struct ta__thread *ta__self = &ta__thread_none;

/* While ld.so relocates, thread-local storage is still zero, so that ta__self is NULL, which the fast paths do not
 * expect. Resolvers of indirect functions run already then, and those of a program may allocate. So we have one too,
 * which runs when this library is relocated, before the program's: it puts a structure in place that is "inside" for
 * ever, whose requests are served from emergency memory. Then libc fills the storage, and it is gone. (Without ld.so
 * there is no such storage yet; no function may be called here.) */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
extern struct r_debug _r_debug __attribute__((weak));

static struct ta__thread early = {
    .theap = TA__THEAP_EMPTY, .allocate = ta__malloc_any, .scope = ta__scope_none, .slot = -1};

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
    struct ta__lock lock; /* guards the list and the numbering */
    struct ta__thread *idle[TA__WORLD_MEMBERS_MAX];
    int idle_count;
    int32_t numbered;
    pthread_key_t end_key;
    int has_end_key;
    int reserve_used;
} threads;

/* For threads that find no memory mapped for them: without a structure they could not even allocate untraced. */
enum { RESERVE = 64 };
static struct ta__thread reserve[RESERVE];

static struct ta__thread *take_structure(void)
{
    struct ta__thread *self = NULL;
    ta__lock_acquire(&threads.lock);
    if (threads.idle_count > 0)
        self = threads.idle[--threads.idle_count];
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
    ta__lock_acquire(&threads.lock);
    if (threads.idle_count < TA__WORLD_MEMBERS_MAX)
        threads.idle[threads.idle_count++] = self;
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

struct ta__thread *ta__thread_get(void)
{
    struct ta__thread *self = ta__self;
    if (TA_LIKELY(self != &ta__thread_none))
        return ta__load_relaxed(&self->world.view) == 0 ? NULL : self;
    ta__process_ready();
    if (ta__self != &ta__thread_none) /* the process set-up made it */
        return ta__thread_get();
    if (!ta__process_is_ready())
        return NULL; /* called from within the set-up */

    int saved_errno = errno;
    self = take_structure();
    if (self == NULL)
        return NULL;
    /* Allocations of the calls below (keys, names) find a thread that is inside, and go to emergency memory. */
    ta__store_relaxed(&self->world.view, 0u);
    self->theap = TA__THEAP_EMPTY;
    self->allocate = ta__malloc_any;
    ta__self = self;
    self->slot = ta__world_join(&self->world);
    ta__world_enter(&self->world);
    learn_name(self);
    if (threads.has_end_key)
        pthread_setspecific(threads.end_key, self);
    ta__stack_learn_own(self, self->is_main);
    self->depth = 0;
    self->no_trace = 0;
    self->foreign_low = self->foreign_high = 0;
    self->number = __atomic_fetch_add(&threads.numbered, 1, __ATOMIC_RELAXED);
    self->sample_random = (uint64_t)(uint32_t)self->number << 32 | ta__header_key;
    if (ta__trace_sample_bytes() != 0)
        self->sample_left = ta__sample_interval(&self->sample_random, ta__trace_sample_bytes());
    void *theap = self->slot >= 0 ? ta__heap_part(ta__domain_at(0)->heap) : NULL;
    if (theap == NULL) {
        ta__self = &ta__thread_none;
        ta__world_leave(self->slot);
        ta__store_relaxed(&self->world.view, TA__VIEW_STALE);
        ta__store_release(&self->world.in_op, 0u);
        give_structure(self);
        errno = saved_errno;
        return NULL;
    }
    self->theap = theap;
    self->is_ready = 1;
    ta__store_relaxed(&self->world.view, TA__VIEW_STALE);
    ta__store_release(&self->world.in_op, 0u);
    errno = saved_errno;
    return self;
}

/* Runs as a thread-specific destructor, before mimalloc's own (its key is younger). What other destructors allocate
 * later makes the thread known again and brings this back, as often as pthreads allows. */
static void thread_ends(void *value)
{
    struct ta__thread *self = value;
    if (ta__self != self)
        return;
    ta__world_enter(&self->world);
    ta__store_relaxed(&self->world.view, 0u);
    if (self->deferred != NULL)
        ta__thread_free_deferred(self);
    ta__counters_flush(self);
    ta__domains_thread_done(self);
    ta__heap_thread_done();
    self->theap = TA__THEAP_EMPTY;
    self->is_ready = 0;
    ta__self = &ta__thread_none;
    ta__world_leave(self->slot);
    ta__store_relaxed(&self->world.view, TA__VIEW_STALE);
    ta__store_release(&self->world.in_op, 0u);
    give_structure(self);
}

void ta__threads_init(void)
{
    threads.has_end_key = pthread_key_create(&threads.end_key, thread_ends) == 0;
}

void ta__threads_before_fork(void)
{
    ta__lock_acquire(&threads.lock); /* threads come and go outside of operations too */
}

void ta__threads_after_fork_in_parent(void)
{
    ta__lock_release(&threads.lock);
}

void ta__thread_after_fork(struct ta__thread *self)
{
    threads.lock.state = 0;
    if (self != NULL)
        self->tid = (int32_t)syscall(SYS_gettid);
}
