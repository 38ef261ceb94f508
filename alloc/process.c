/* process.c: the process's life — set-up at the first allocation, which comes before any constructor, and fork.
 *
 * Set-up order matters: our thread key before mimalloc's (so that our destructor runs first), options before the first
 * traced block, everything before the gate opens. Nothing is torn down at exit: late destructors go on allocating. */
#include "alloc/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "alloc/libc_names.h"
#include "alloc/remembered_frees.h"
#include "alloc/setup.h"
#include "alloc/world_check.h"
#include "base/lock.h"
#include "base/message.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

uint32_t ta__header_key;

enum { FRESH = 0, BUSY = 1, READY = 2 };

static uint32_t process_state; /* READY: release */
static TA_THREAD_LOCAL int sets_up_now;

int ta__process_is_ready(void)
{
    return ta__load_acquire(&process_state) == READY;
}

static uint32_t random_key(void)
{
    uint32_t key = 0;
    if (syscall(SYS_getrandom, &key, sizeof key, 1 /* GRND_NONBLOCK */) != (long)sizeof key) {
        const unsigned char *random = (const unsigned char *)(uintptr_t)getauxval(AT_RANDOM);
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (random != NULL)
            memcpy(&key, random, sizeof key);
        key ^= (uint32_t)now.tv_nsec << 4;
    }
    return (key & 0xFFF0) | TA__KIND_NONE;
}

/* ---- scrubbing, for when leaf numbers are used up ---------------------------------------------------------- */

static void scrub_block(void *user, size_t room, void *context)
{
    (void)room, (void)context;
    uint64_t mark = ta__mark_of(user);
    uint32_t kind = ta__mark_kind(user, mark);
    if (!ta__mark_is_live(user, mark) || (kind & TA__KIND_TRACED) == 0)
        return;
    uint32_t kept = kind & (TA__KIND_ALIGNED | TA__KIND_DOMAIN);
    uint32_t domain = ta__leaf_domain(ta__mark_leaf(mark));
    ta__header_write(user, mark >> TA__MARK_SIZE_BIT == TA__SIZE_ELSEWHERE, ta__check_of_kind(kept), domain,
                     ta__mark_size(user, mark));
}

static void scrub_heap(void *heap, uint32_t domain, void *context)
{
    (void)domain;
    ta__heap_visit(heap, scrub_block, context);
}

static void scrub_headers(void)
{
    ta__domain_heaps(scrub_heap, NULL);
}

static void leave_modes(void)
{
    for (int slot = ta__safepoint_size(); slot-- > 0;)
        ta__malloc_choose_any((struct ta__thread *)ta__safepoint_member(slot));
}

static void drop_record(uint32_t domain, size_t size)
{
    ta__domain_discharge(ta__self, domain, size);
}

static struct ta__thread *calling_thread(void)
{
    struct ta__thread *self = ta__thread_get();
    return self != NULL || ta__self == &ta__thread_none ? self : ta__self; /* it is shut: the stop refuses it */
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

/* A bit for each fork under way, one in the other by signal handlers of one thread: it holds the lock of the threads. */
static uint64_t holds_threads;

static struct ta__safepoint_member *forking_member(void)
{
    return ta__self != &ta__thread_none ? &ta__self->safepoint : NULL;
}

static void before_fork(void)
{
    if (calling_thread() == NULL)
        ta__thread_do_without(1);
    uint64_t bit = UINT64_C(1) << ta__safepoint_stop_for_fork(forking_member()) % 64;
    holds_threads = ta__threads_before_fork() ? holds_threads | bit : holds_threads & ~bit;
}

static void after_fork(void)
{
    uint64_t bit = UINT64_C(1) << ta__safepoint_depth() % 64;
    if ((holds_threads & bit) != 0)
        ta__threads_after_fork();
    ta__safepoint_resume_after_fork(forking_member());
    if (forking_member() == NULL)
        ta__thread_do_without(-1);
}

static void after_fork_in_child(void)
{
    struct ta__safepoint_member *member = forking_member();
    ta__safepoint_after_fork(member);
    ta__threads_after_fork_in_child();
    ta__domains_after_fork(ta__self);
    ta__domain_rules_after_fork();
    ta__trace_after_fork_in_child();
#if TA_CHECKS >= 2
    ta__check_figures_off |= ta__safepoint_fork_left_some;
#endif
    if (member != NULL)
        ta__self->tid = (int32_t)syscall(SYS_gettid);
    after_fork();
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

static void set_up(void)
{
    static const struct ta__trace_hooks hooks = {
        .self = calling_thread, .scrub_headers = scrub_headers, .leave_modes = leave_modes, .drop_record = drop_record};
    ta__header_key = random_key();
    ta__options_read();
    ta__threads_init();
    if (!ta__heap_process_init() || !ta__domains_init() || !ta__frees_remember()) {
        ta__message_line("no memory to begin with", NULL);
        _exit(127);
    }
    if (ta__options.has_purge_delay)
        ta__heap_set_purge_delay(ta__options.purge_delay);
    ta__libc_names_replace();
    ta__trace_set_hooks(&hooks);
    ta__trace_configure(&(struct ta__trace_config){.sample_bytes = ta__options.sample_bytes,
                                                   .max_contexts = ta__options.max_contexts,
                                                   .table_memory = ta__options.table_memory});
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
#if TA_CHECKS >= 2
    ta__check_world_begin();
#endif
}

void ta__process_ready(void)
{
    if (TA_LIKELY(ta__process_is_ready()) || sets_up_now)
        return;
    uint32_t fresh = FRESH;
    if (!ta__cas_acq_rel(&process_state, &fresh, (uint32_t)BUSY)) {
        while (!ta__process_is_ready())
            ta__futex_wait(&process_state, BUSY, 1000000);
        return;
    }
    int saved_errno = errno;
    sets_up_now = 1;
    set_up();
    /* The gate first: nobody stops the world before the process is ready, so that this opens nobody's stop. Until then
     * no thread has a heap, and every request waits above. */
    ta__gate_change(ta__options.has_headers || ta__frees_are_remembered() ? TA__GATE_HEADERS : 0, TA__GATE_PENDING);
    ta__store_release(&process_state, (uint32_t)READY);
    ta__futex_wake(&process_state, 1 << 30);
    ta__futex_wake(&ta__gate, 1 << 30);
    sets_up_now = 0;
    if (ta__options.rules[0] != '\0' && ta_domain_load_rules(ta__options.rules) != 0) {
        ta__message_line(ta_error_text(), NULL);
        _exit(1);
    }
    if (ta__options.nframe > 0)
        ta_start(ta__options.nframe);
    errno = saved_errno;
}

/* A program may steer the tracing, or use domains, before anything has been allocated. */
__attribute__((constructor)) static void set_up_before_main(void)
{
    ta__process_ready();
}
