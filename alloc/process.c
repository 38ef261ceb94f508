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

#include "alloc/life.h"
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
    return key & ~15u;
}

/* ---- scrubbing, for the epoch that comes after the last ---------------------------------------------------------- */

static void scrub_block(void *block, size_t block_bytes, void *context)
{
    (void)block_bytes, (void)context;
    struct ta__header *header = ta__header_in_block(block);
    void *user = ta__header_user(header);
    uint32_t kind = ta__header_kind(user);
    if (kind > TA__KIND_MAX || (kind & TA__KIND_TRACED) == 0)
        return;
    uint32_t kept = (kind & TA__KIND_DOMAIN) == TA__KIND_DOMAIN ? kind : kind & TA__KIND_ALIGNED;
    ta__header_write(user, kept, ta__domain_at(ta__leaf_domain(header->leaf))->untraced_leaf, ta__header_size(header),
                     0);
}

static void scrub_headers(void)
{
    for (uint32_t i = 0; i < ta__domain_count(); i++)
        if (ta__domain_at(i)->heap != NULL)
            ta__heap_visit(ta__domain_at(i)->heap, scrub_block, NULL);
}

static struct ta__thread *calling_thread(void)
{
    return ta__thread_get();
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    struct ta__thread *self = ta__thread_get();
    ta__trace_before_fork();
    ta__world_stop(self != NULL ? &self->world : NULL);
    ta__threads_before_fork();
}

static void after_fork_in_parent(void)
{
    ta__threads_after_fork_in_parent();
    ta__world_resume();
    ta__trace_after_fork_in_parent();
}

static void after_fork_in_child(void)
{
    struct ta__thread *self = ta__self != &ta__thread_none ? ta__self : NULL;
    ta__world_after_fork(self != NULL ? &self->world : NULL);
    ta__domains_after_fork();
    ta__domain_rules_after_fork();
    ta__thread_after_fork(self);
    ta__world_resume();
    ta__trace_after_fork_in_child();
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

static void set_up(void)
{
    static const struct ta__trace_hooks hooks = {.self = calling_thread, .scrub_headers = scrub_headers};
    ta__header_key = random_key();
    ta__options_read();
    ta__threads_init();
    ta__malloc_init();
    if (!ta__heap_process_init() || !ta__domains_init()) {
        ta__message_line("no memory to begin with", NULL);
        _exit(127);
    }
    ta__trace_set_hooks(&hooks);
    ta__trace_configure(
        &(struct ta__trace_config){.sample_bytes = ta__options.sample_bytes, .max_contexts = ta__options.max_contexts});
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
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
    ta__store_release(&process_state, (uint32_t)READY);
    ta__gate_change(0, TA__GATE_PENDING);
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
