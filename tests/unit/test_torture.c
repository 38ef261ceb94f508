/* test_torture.c: whoever stops the world, against signal handlers that ask for memory at any moment.
 *
 * Four workers and the main thread are each interrupted some thousand times a second by a timer of their own. The
 * handler allocates, frees, reallocates, now and then forks, and in a worker that is at a place where that is allowed
 * leaves by siglongjmp. Meanwhile the main thread calls every function that holds the others outside. Nothing may hang:
 * no call of any thread may take longer than BOUND_MS, which is less than the time after which a stopper gives up. What
 * the machine does not give does not count: how long our threads and children were ready to run and did not, and how much
 * too late a thread woke up that only sleeps.
 *
 *   test_torture [SECONDS]     how long each of the scenes lasts; a fraction of a second without it
 *
 * While nothing is traced, a handler that interrupts an allocation and allocates itself breaks the rules of C, here as
 * with every malloc: in those scenes the workers leave allocating to their handlers. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <unity.h>

#include "tests/support/random.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "tracealloc/snapshot.h"

enum { WORKERS = 4, SLOTS = 16, BOUND_MS = 4000, CHILD_ALARM_SECONDS = 120 };
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { PERIOD_US = 2000, FORK_EVERY = 0 }; /* the sanitizers' own locks do not survive a fork in a handler */
#else
enum { PERIOD_US = 200, FORK_EVERY = 60 };
#endif

/* What one thread shares with its handlers. */
struct victim {
    pthread_t thread;
    timer_t timer;
    uint64_t random;
    void *volatile kept[SLOTS]; /* blocks that handlers made; taken by exchange */
    sigjmp_buf back;
    volatile sig_atomic_t may_jump;
    _Atomic uint64_t handled, jumped, forked, rounds;
    _Atomic int32_t tid; /* 0: has not begun */
    int64_t waited_ns;   /* for a processor, as the watcher saw it last */
};

/* A call that took longer than BOUND_MS. */
struct slow_call {
    int64_t began, ended;
};

/* What the machine had kept from us up to a moment. */
struct hunger {
    int64_t at, ns;
};
enum { SLOW_MAX = 256, TICKS_MAX = 1 << 15 };

static struct victim victims[WORKERS + 1]; /* the last is the main thread */
static __thread struct victim *me;
static _Atomic int stops_now, all_are_gone, workers_allocate;
static _Atomic int64_t longest_ns;
static struct slow_call slow_calls[SLOW_MAX];
static _Atomic uint32_t slow_count;
static struct hunger ticks[TICKS_MAX]; /* the watcher's; read when it is gone */
static uint32_t tick_count;
static _Atomic int64_t *children_waited_ns; /* shared with them */
static _Atomic int failures;                /* of children, or NULL where there is memory */
static double seconds = 0.15;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void note_duration(int64_t since)
{
    int64_t now = now_ns();
    int64_t took = now - since;
    if (took >= BOUND_MS * INT64_C(1000000)) {
        uint32_t i = atomic_fetch_add(&slow_count, 1);
        if (i < SLOW_MAX)
            slow_calls[i] = (struct slow_call){since, now};
    }
    int64_t longest = atomic_load(&longest_ns);
    while (took > longest && !atomic_compare_exchange_weak(&longest_ns, &longest, took))
        ;
}

/* How long a task was ready to run and did not: the second number of its schedstat. 0: it does not say. Safe in handlers. */
static int64_t waited_ns(const char *path)
{
    char text[128] = "";
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = descriptor >= 0 ? read(descriptor, text, sizeof text - 1) : -1;
    if (descriptor >= 0)
        close(descriptor);
    const char *space = got > 0 ? strchr(text, ' ') : NULL;
    return space != NULL ? (int64_t)strtoll(space, NULL, 10) : 0;
}

/* ---- what handlers do -------------------------------------------------------------------------------------------- */

static void fill(void *block, size_t size)
{
    if (block == NULL)
        atomic_fetch_add(&failures, 1);
    else
        memset(block, 0x5a, size);
}

/* glibc's own fork waits for itself when a handler that interrupted it forks. */
static __thread volatile sig_atomic_t forks_now;

static void fork_here(void)
{
    forks_now = 1;
    pid_t child = fork();
    forks_now = 0;
    if (child == 0) {
        alarm(CHILD_ALARM_SECONDS);
        void *block = ta_malloc(100);
        ta_free(block);
        atomic_fetch_add(children_waited_ns, waited_ns("/proc/self/schedstat"));
        _exit(block == NULL);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        atomic_fetch_add(&failures, 1);
    atomic_fetch_add(&me->forked, 1);
}

static void swap_block(uint64_t choice)
{
    size_t size = choice % 5 == 0 ? 100000 : choice / 8 % 400;
    void *fresh = ta_malloc(size);
    fill(fresh, size);
    void *old = __atomic_exchange_n(&me->kept[choice / 4096 % SLOTS], fresh, __ATOMIC_ACQ_REL);
    if (choice & 4) {
        size = choice / 16 % 3000;
        old = ta_realloc(old, size + 1);
        fill(old, size + 1);
    }
    ta_free(old);
}

/* Anew after each handler: a timer that did not wait for slow handlers (forks, a loaded machine) would let nothing
 * else run, with any malloc. */
static void next_timer(struct victim *victim)
{
    struct itimerspec once = {.it_value = {0, PERIOD_US * 1000L}};
    if (timer_settime(victim->timer, 0, &once, NULL) != 0)
        atomic_fetch_add(&failures, 1);
}

static void on_timer(int signal_number)
{
    (void)signal_number;
    int saved_errno = errno;
    int64_t began = now_ns();
    uint64_t choice = random_next(&me->random);
    uint64_t handled = atomic_fetch_add(&me->handled, 1);
    if (FORK_EVERY != 0 && !forks_now && handled % (FORK_EVERY + 1) == FORK_EVERY)
        fork_here();
    else
        swap_block(choice);
    note_duration(began);
    next_timer(me);
    errno = saved_errno;
    if (me->may_jump && choice % 7 == 0) {
        me->may_jump = 0;
        atomic_fetch_add(&me->jumped, 1);
        siglongjmp(me->back, 1);
    }
}

static void begin_to_be_interrupted(struct victim *victim)
{
    me = victim;
    atomic_store(&victim->tid, (int32_t)syscall(SYS_gettid));
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &victim->timer) != 0)
        atomic_fetch_add(&failures, 1);
    next_timer(victim);
}

static void no_longer(struct victim *victim)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL); /* what is under way stays pending, for ever */
    timer_delete(victim->timer);
    for (int i = 0; i < SLOTS; i++)
        ta_free(__atomic_exchange_n(&victim->kept[i], NULL, __ATOMIC_ACQ_REL));
}

/* ---- what threads do --------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static void *deep(int depth, size_t size)
{
    void *block = depth == 0 ? ta_malloc(size) : deep(depth - 1, size);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}

static void allocate_something(uint64_t *random)
{
    void *blocks[8];
    for (int i = 0; i < 8; i++) {
        size_t size = random_below(random, i == 0 ? 200000 : 500);
        blocks[i] = deep((int)random_below(random, 12), size);
        fill(blocks[i], size);
    }
    ta_domain_push(7);
    blocks[0] = ta_realloc(blocks[0], 3000);
    void *in_domain = ta_calloc(10, 10);
    ta_domain_pop();
    for (int i = 0; i < 8; i++)
        ta_free(blocks[i]);
    ta_free(in_domain);
}

/* Where a handler may leave without coming back: in no call of ours. */
static void spin_a_little(struct victim *self)
{
    if (sigsetjmp(self->back, 1) != 0)
        return;
    self->may_jump = 1;
    for (volatile int i = 0; i < 3000; i++)
        ;
    self->may_jump = 0;
}

static void *work(void *argument)
{
    struct victim *self = argument;
    uint64_t random = self->random ^ 77;
    begin_to_be_interrupted(self);
    while (!atomic_load(&stops_now)) {
        spin_a_little(self);
        int64_t began = now_ns();
        if (atomic_load(&workers_allocate))
            allocate_something(&random);
        note_duration(began);
        atomic_fetch_add(&self->rounds, 1);
    }
    no_longer(self);
    return NULL;
}

/* ---- scenes ------------------------------------------------------------------------------------------------------ */

/* What the machine keeps from us: grows by the time that any of our tasks is ready and does not run. */
static void note_hunger(int64_t overslept_ns)
{
    static int64_t overslept;
    overslept += overslept_ns;
    int64_t sum = overslept + atomic_load(children_waited_ns);
    for (int i = 0; i <= WORKERS; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", atomic_load(&victims[i].tid));
        int64_t waited = waited_ns(path);
        victims[i].waited_ns = waited > victims[i].waited_ns ? waited : victims[i].waited_ns; /* it may be gone */
        sum += victims[i].waited_ns;
    }
    if (tick_count < TICKS_MAX)
        ticks[tick_count++] = (struct hunger){now_ns(), sum};
}

/* How much of that was while a call lasted; in ticks, so rather too much. */
static int64_t hunger_during(const struct slow_call *call)
{
    int64_t before = 0, after = 0;
    for (uint32_t i = 0; i < tick_count; i++) {
        if (ticks[i].at <= call->began)
            before = ticks[i].ns;
        after = ticks[i].ns;
        if (ticks[i].at >= call->ended)
            break;
    }
    return after - before;
}

/* Ends the process when nothing moves any more: a hang must not wait for ctest. */
static void *watch(void *argument)
{
    const char *scene = argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    uint64_t last = 0;
    for (int still = 0; !atomic_load(&all_are_gone); still++) {
        uint64_t sum = 0;
        int64_t began = now_ns();
        usleep(100000);
        note_hunger(now_ns() - began - 100000000);
        for (int i = 0; i <= WORKERS; i++)
            sum += atomic_load(&victims[i].rounds);
        if (sum != last)
            still = 0;
        last = sum;
        if (still > 400) {
            fprintf(stderr, "%s: nothing moves for 40 s\n", scene);
            abort();
        }
    }
    return NULL;
}

/* The longest slow call, without what the machine kept from us meanwhile. */
static int64_t longest_wait_ns(void)
{
    int64_t longest = 0;
    for (uint32_t i = 0; i < atomic_load(&slow_count) && i < SLOW_MAX; i++) {
        int64_t took = slow_calls[i].ended - slow_calls[i].began - hunger_during(&slow_calls[i]);
        longest = took > longest ? took : longest;
    }
    return longest;
}

static void play(const char *scene, void (*stopper)(void), int allocating)
{
    struct victim *main_victim = &victims[WORKERS];
    pthread_t watcher;
    memset(victims, 0, sizeof victims);
    uint64_t seed = random_seed();
    atomic_store(&stops_now, 0);
    atomic_store(&all_are_gone, 0);
    atomic_store(&longest_ns, 0);
    atomic_store(&slow_count, 0);
    tick_count = 0;
    atomic_store(&failures, 0);
    atomic_store(&workers_allocate, allocating);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&watcher, NULL, watch, (void *)(uintptr_t)scene));
    for (int i = 0; i <= WORKERS; i++)
        victims[i].random = random_next(&seed);
    for (int i = 0; i < WORKERS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&victims[i].thread, NULL, work, &victims[i]));
    begin_to_be_interrupted(main_victim);

    int64_t end = now_ns() + (int64_t)(seconds * 1e9);
    while (now_ns() < end) {
        int64_t began = now_ns();
        stopper();
        note_duration(began);
        atomic_fetch_add(&main_victim->rounds, 1);
    }

    sigset_t nothing;
    no_longer(main_victim);
    atomic_store(&stops_now, 1);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(victims[i].thread, NULL);
    atomic_store(&all_are_gone, 1);
    pthread_join(watcher, NULL);
    signal(SIGRTMIN, SIG_IGN);
    sigemptyset(&nothing);
    pthread_sigmask(SIG_SETMASK, &nothing, NULL);
    uint64_t handled = 0, jumped = 0, forked = 0;
    for (int i = 0; i <= WORKERS; i++) {
        handled += victims[i].handled;
        jumped += victims[i].jumped;
        forked += victims[i].forked;
    }
    printf("%-12s %7llu times; %llu handlers, %llu jumps, %llu forks; longest call %.1f ms\n", scene,
           (unsigned long long)main_victim->rounds, (unsigned long long)handled, (unsigned long long)jumped,
           (unsigned long long)forked, (double)atomic_load(&longest_ns) / 1e6);
    fflush(stdout);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, atomic_load(&failures), scene);
    TEST_ASSERT_TRUE_MESSAGE(longest_wait_ns() < BOUND_MS * INT64_C(1000000), scene);
    TEST_ASSERT_TRUE_MESSAGE(handled > 0, scene);
}

void setUp(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_timer;
    action.sa_flags = SA_RESTART;
    sigaction(SIGRTMIN, &action, NULL);
}

void tearDown(void)
{
    ta_stop();
}

static void start_and_stop(void)
{
    ta_start(20);
    ta_stop();
}

static void fork_and_wait(void)
{
    fork_here();
}

static void take_snapshot(void)
{
    struct ta_snapshot *snapshot = ta_take_snapshot();
    if (snapshot == NULL)
        atomic_fetch_add(&failures, 1);
    ta_snapshot_free(snapshot);
}

static void destroy_domain(void)
{
    for (int i = 0; i < 20; i++)
        fill(ta_domain_malloc(99, 1000), 1000);
    if (ta_domain_destroy(99) != 0)
        atomic_fetch_add(&failures, 1);
}

static void ask_domains(void)
{
    struct ta_domain_stats stats;
    uint32_t number;
    struct ta_domain_limit limit = {.hard = UINT64_C(1) << 40};
    void *block = ta_malloc(10);
    void *frames[4];
    ta_domain_set_name(7, "seven");
    ta_domain_find("seven", &number);
    ta_domain_get_stats(7, &stats, sizeof stats);
    ta_domain_usable_bytes(7);
    ta_domain_set_limit(8, &limit);
    ta_track(9, 0x1000, 10);
    ta_get_traceback(9, 0x1000, frames, 4, NULL);
    ta_get_object_traceback(block, frames, 4, NULL);
    ta_untrack(9, 0x1000);
    ta_free(block);
}

static void test_start_and_stop(void)
{
    play("start, stop", start_and_stop, 0);
}

static void test_clear(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(20));
    play("clear", ta_clear_traces, 1);
}

static void test_reset_peak(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    play("reset_peak", ta_reset_peak, 1);
}

static void test_fork_traced(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(20));
    play("fork", fork_and_wait, 1);
}

static void test_fork_untraced(void)
{
    play("fork, plain", fork_and_wait, 0);
}

static void test_destroy_domain(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(20));
    play("destroy", destroy_domain, 1);
}

static void test_ask_domains(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(20));
    play("domains", ask_domains, 1);
}

static void test_snapshot(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(20));
    play("snapshot", take_snapshot, 1);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static void ask_mallinfo(void)
{
    struct mallinfo2 info = mallinfo2();
    __asm__ volatile("" : : "r"(&info) : "memory");
}

static void test_mallinfo(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(20));
    play("mallinfo2", ask_mallinfo, 1);
}
#endif

int main(int argc, char **argv)
{
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    children_waited_ns =
        mmap(NULL, sizeof *children_waited_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (children_waited_ns == MAP_FAILED)
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_clear);
    RUN_TEST(test_reset_peak);
    RUN_TEST(test_fork_traced);
    RUN_TEST(test_fork_untraced);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    RUN_TEST(test_mallinfo);
#endif
    RUN_TEST(test_destroy_domain);
    RUN_TEST(test_ask_domains);
    RUN_TEST(test_snapshot);
    RUN_TEST(test_start_and_stop);
    return UNITY_END();
}
