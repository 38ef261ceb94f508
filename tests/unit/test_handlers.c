/* test_handlers.c: what a signal handler gets that interrupted the allocator, step by step.
 *
 * The interruption is made by hand: a thread whose view is 0 is inside an operation, as far as everybody can see. The
 * same against real signals, at any moment: test_torture.c. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "base/safepoint.h"
#include "tests/support/random.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) /* they look at each byte that is copied */
enum { MANY = 64, FOR_EVER = 10000 };
#else
enum { MANY = 64, FOR_EVER = 200000 };
#endif

static uint32_t view_before;

static void interrupt(void)
{
    view_before = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
}

static void come_back(void)
{
    ta__self->safepoint.view = view_before;
}

static uint64_t invalid_frees(void)
{
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    return health.invalid_frees;
}

/* While something is traced every request looks whether its thread is inside; the thread has its structure. */
void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
    ta_free(ta_malloc(1));
}

void tearDown(void)
{
    ta_stop();
}

/* While somebody empties the tables, or makes them anew, their rows say anything. */
static void test_a_handler_learns_a_size_and_moves_a_block_without_the_tables(void)
{
    enum { BYTES = 1000 };
    void *volatile made = ta_malloc(BYTES);
    char *block = made;
    uint32_t leaf = ta__mark_leaf(ta__mark_of(block));
    struct ta__source_leaf *row = (struct ta__source_leaf *)&ta__leaves()[leaf], before = *row;
    memset(block, 7, BYTES);
    interrupt();
    memset(row, 0xff, sizeof *row);
    size_t usable = ta_usable_size(block);
    char *moved = ta_realloc(block, 3 * BYTES);
    *row = before;
    come_back();
    TEST_ASSERT_EQUAL_size_t(BYTES, usable);
    TEST_ASSERT_NOT_NULL(moved);
    TEST_ASSERT_EACH_EQUAL_HEX8(7, moved, BYTES);
    ta_free(moved);
}

/* A handler that interrupted the thread while it holds the others, perhaps to empty the tables, is told nothing; one that
 * interrupted an operation, for which that would wait, what there is. */
static void test_a_handler_is_told_of_a_block_only_what_nobody_changes(void)
{
    void *block = ta_malloc(100), *frames[4];
    uint32_t domain = 1;
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(block, &domain));
    TEST_ASSERT_GREATER_THAN(0, ta_get_object_traceback(block, frames, 4, NULL));
    interrupt();
    int is_ours_inside = ta_domain_of(block, &domain);
    size_t frames_inside = ta_get_object_traceback(block, frames, 4, NULL);
    ta__self->safepoint.view = TA__VIEW_HELD;
    int is_ours_held = ta_domain_of(block, &domain);
    size_t frames_held = ta_get_object_traceback(block, frames, 4, NULL);
    come_back();
    TEST_ASSERT_EQUAL_INT(1, is_ours_inside);
    TEST_ASSERT_GREATER_THAN(0, frames_inside);
    TEST_ASSERT_EQUAL_INT(0, is_ours_held);
    TEST_ASSERT_EQUAL_size_t(0, frames_held);
    ta_free(block);
}

/* Blocks without a byte stand wall to wall: what is written into one is the next one's. */
static void test_empty_blocks_that_a_handler_frees_damage_nobody(void)
{
    void *blocks[MANY];
    uint64_t invalid = invalid_frees();
    for (int i = 0; i < MANY; i++)
        blocks[i] = ta_malloc(0);
    interrupt();
    for (int i = 0; i < MANY; i += 2)
        ta_free(blocks[i]);
    come_back();
    for (int i = 1; i < MANY; i += 2)
        TEST_ASSERT_TRUE(ta__mark_is_live(blocks[i], ta__mark_of(blocks[i])));
    for (int i = 1; i < MANY; i += 2)
        ta_free(blocks[i]);
    ta_free(ta_aligned_alloc(64, 64)); /* the slow path frees what waits */
    TEST_ASSERT_NULL(ta__self->deferred);
    TEST_ASSERT_EQUAL_UINT64(invalid, invalid_frees());
}

static void test_what_a_handler_frees_is_freed_soon_in_a_thread_that_is_traced(void)
{
    for (int i = 0; i < 3; i++)
        ta_free(ta_malloc(100));
    void *block = ta_malloc(50000);
    size_t with, without;
    ta_get_traced_memory(&with, NULL);
    interrupt();
    ta_free(block);
    come_back();
    ta_free(ta_malloc(100)); /* no more than a request or two */
    ta_get_traced_memory(&without, NULL);
    TEST_ASSERT_EQUAL_size_t(with - 50000, without);
}

static void test_all_that_a_handler_frees_is_freed(void)
{
    void *blocks[MANY];
    size_t before, after;
    ta_get_traced_memory(&before, NULL);
    for (int i = 0; i < MANY; i++)
        blocks[i] = ta_malloc(1000 + (size_t)i);
    interrupt();
    for (int i = 0; i < MANY; i++)
        ta_free(blocks[i]);
    come_back();
    ta_free(ta_aligned_alloc(64, 64));
    ta_get_traced_memory(&after, NULL);
    TEST_ASSERT_EQUAL_size_t(before, after);
}

/* ---- who stops the world waits for who is inside ---- */

static uint32_t has_begun, has_left, may_leave; /* atomic */

static void *is_inside_until_somebody_waits(void *unused)
{
    ta_free(ta_malloc(1));
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0; /* in an operation, as everybody can see */
    __atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
    while ((ta__gate_read() & TA__GATE_PENDING) == 0)
        sched_yield();
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (long begun = now.tv_nsec / 1000000, gone = 0; gone < 20; gone = (now.tv_nsec / 1000000 + 1000 - begun) % 1000)
        clock_gettime(CLOCK_MONOTONIC, &now); /* who does not wait goes on meanwhile; a fork leaves sleepers behind */
    __atomic_store_n(&has_left, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ta__self->safepoint.view, view, __ATOMIC_RELEASE);
    return unused;
}

static void test_a_stop_waits_until_every_other_thread_is_outside(void)
{
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, is_inside_until_somebody_waits, NULL));
    while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST))
        sched_yield();
    TEST_ASSERT_EQUAL_INT(TA__STOP_DONE, ta__safepoint_stop(&ta__self->safepoint));
    uint32_t left = __atomic_load_n(&has_left, __ATOMIC_SEQ_CST);
    uint32_t view = ta__self->safepoint.view;
    ta__safepoint_resume(&ta__self->safepoint);
    pthread_join(thread, NULL);
    TEST_ASSERT_EQUAL_UINT32(1, left);
    TEST_ASSERT_EQUAL_UINT32(TA__VIEW_HELD, view);
}

static void *is_inside_until_told(void *unused)
{
    ta_free(ta_malloc(1));
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
    __atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&may_leave, __ATOMIC_SEQ_CST))
        usleep(1000);
    __atomic_store_n(&ta__self->safepoint.view, view, __ATOMIC_RELEASE);
    return unused;
}

/* Runs all the time, and comes out when the stop has waited for it longer than for one that sleeps. */
static void *computes_inside_for_long(void *unused)
{
    ta_free(ta_malloc(1));
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
    __atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
    while ((ta__gate_read() & TA__GATE_PENDING) == 0)
        ;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ta__stop_patience_ms + 100);
    __atomic_store_n(&has_left, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ta__self->safepoint.view, view, __ATOMIC_RELEASE);
    return unused;
}

#if !defined(__SANITIZE_THREAD__)
/* The same while it waits in the kernel, as for a page that is read from disk: for a child that has its memory. */
static void *waits_inside_for_long(void *unused)
{
    ta_free(ta_malloc(1));
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
    __atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
    while ((ta__gate_read() & TA__GATE_PENDING) == 0)
        ;
    pid_t child = vfork();
    if (child == 0) {
        usleep((useconds_t)(ta__stop_patience_ms + 100) * 1000);
        _exit(0);
    }
    __atomic_store_n(&has_left, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ta__self->safepoint.view, view, __ATOMIC_RELEASE);
    waitpid(child, NULL, 0);
    return unused;
}
#endif

static void expect_stop_waits_for(void *(*inside_for_long)(void *))
{
    pthread_t thread;
    has_begun = has_left = 0;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, inside_for_long, NULL));
    while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST))
        sched_yield();
    ta__stop_patience_ms = 1000;
    enum ta__stop outcome = ta__safepoint_stop(&ta__self->safepoint);
    uint32_t left = __atomic_load_n(&has_left, __ATOMIC_SEQ_CST);
    if (outcome == TA__STOP_DONE)
        ta__safepoint_resume(&ta__self->safepoint);
    pthread_join(thread, NULL);
    ta__stop_patience_ms = 5000;
    TEST_ASSERT_EQUAL_INT(TA__STOP_DONE, outcome);
    TEST_ASSERT_EQUAL_UINT32(1, left);
}

/* As a thread does that a busy machine gives no processor, or that waits for a page of its memory. */
static void test_a_stop_waits_longer_for_who_is_about_to_come_out(void)
{
    expect_stop_waits_for(computes_inside_for_long);
#if !defined(__SANITIZE_THREAD__)
    expect_stop_waits_for(waits_inside_for_long);
#endif
}

/* The look at what it does may find it outside, where it sleeps: it has come out, and is not late. The look is the opening
 * of a file, which lets it out here. */
static atomic_int lets_out, is_outside;

int open(const char *path, int flags, ...)
{
    if (strncmp(path, "/proc/self/task/", 16) == 0 && atomic_exchange(&lets_out, 0)) {
        while (!atomic_load(&is_outside))
            sched_yield();
        usleep(50000); /* until it sleeps */
    }
    va_list more;
    va_start(more, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void *leaves_when_looked_at(void *unused)
{
    ta_free(ta_malloc(1));
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
    atomic_store(&lets_out, 1);
    __atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
    while (atomic_load(&lets_out))
        sched_yield();
    __atomic_store_n(&ta__self->safepoint.view, view, __ATOMIC_RELEASE);
    atomic_store(&is_outside, 1);
    usleep(300000); /* it sleeps when its state is read */
    return unused;
}

static void test_a_stop_sees_that_who_was_looked_at_has_come_out(void)
{
    pthread_t thread;
    has_begun = 0;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, leaves_when_looked_at, NULL));
    while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST))
        sched_yield();
    ta__stop_patience_ms = 100;
    enum ta__stop outcome = ta__safepoint_stop(&ta__self->safepoint);
    if (outcome == TA__STOP_DONE)
        ta__safepoint_resume(&ta__self->safepoint);
    pthread_join(thread, NULL);
    ta__stop_patience_ms = 5000;
    TEST_ASSERT_EQUAL_INT(TA__STOP_DONE, outcome);
    TEST_ASSERT_TRUE(atomic_load(&is_outside));
}

/* Who sleeps inside is waited for five seconds (here less), and after that only a moment; nobody is held meanwhile. */
static void test_a_stop_that_somebody_misses_is_refused_and_holds_nobody(void)
{
    pthread_t thread;
    size_t before, after;
    has_begun = may_leave = 0;
    ta__stop_patience_ms = 300;
    void *block = ta_malloc(100);
    ta_get_traced_memory(&before, NULL);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, is_inside_until_told, NULL));
    while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST))
        sched_yield();
    for (int i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_INT(TA__STOP_LATE, ta__safepoint_stop(&ta__self->safepoint));
        TEST_ASSERT_EQUAL_UINT32(0, ta__gate_read() & TA__GATE_PENDING);
        TEST_ASSERT_FALSE(ta__safepoint_is_shut(ta__self->safepoint.view));
    }
    ta_clear_traces();
    ta__stop_patience_ms = 5000;
    ta_get_traced_memory(&after, NULL);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(before, after); /* refused, too */
    __atomic_store_n(&may_leave, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    TEST_ASSERT_EQUAL_INT(TA__STOP_DONE, ta__safepoint_stop(&ta__self->safepoint));
    ta__safepoint_resume(&ta__self->safepoint);
    ta_free(block);
}

enum { WAITERS = 3 };
static int32_t waiters[WAITERS]; /* thread ids */
static uint32_t is_shut;

static void *wait_at_the_gate(void *place)
{
    while (!__atomic_load_n(&is_shut, __ATOMIC_SEQ_CST))
        sched_yield();
    __atomic_store_n((int32_t *)place, (int32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    return ta__safepoint_wait(0) != 0 ? place : NULL;
}

static int is_asleep(int32_t thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    int n = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return n == 1 && state == 'S';
}

/* Each would sleep until the next stop, or for ever. */
static void test_all_who_wait_at_the_gate_go_on_when_it_opens(void)
{
    pthread_t threads[WAITERS];
    struct timespec limit;
    is_shut = 0;
    for (int i = 0; i < WAITERS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, wait_at_the_gate, &waiters[i]));
    TEST_ASSERT_EQUAL_INT(TA__STOP_DONE, ta__safepoint_stop(&ta__self->safepoint));
    __atomic_store_n(&is_shut, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < WAITERS; i++) {
        int32_t thread;
        while ((thread = __atomic_load_n(&waiters[i], __ATOMIC_SEQ_CST)) == 0 || !is_asleep(thread))
            sched_yield();
    }
    ta__safepoint_resume(&ta__self->safepoint);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    for (int i = 0; i < WAITERS; i++) {
        void *result = NULL;
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, pthread_timedjoin_np(threads[i], &result, &limit), "still at the gate");
        TEST_ASSERT_EQUAL_PTR(&waiters[i], result);
    }
}

/* The child has a copy of the thread's memory as it was at the fork: outside, or in the middle of something for ever. */
static void test_a_fork_waits_until_every_other_thread_is_outside(void)
{
    pthread_t thread;
    int status;
    has_begun = has_left = 0;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, is_inside_until_somebody_waits, NULL));
    while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST))
        sched_yield();
    pid_t child = fork();
    if (child == 0)
        _exit((int)__atomic_load_n(&has_left, __ATOMIC_SEQ_CST));
    pthread_join(thread, NULL);
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_TRUE(WIFEXITED(status));
    TEST_ASSERT_EQUAL_INT(1, WEXITSTATUS(status));
}

static void *sleeps(void *pipe_end)
{
    char byte;
    ta_free(ta_malloc(1));
    __atomic_add_fetch(&has_begun, 1, __ATOMIC_SEQ_CST);
    if (read(*(int *)pipe_end, &byte, 1) != 0)
        return pipe_end;
    return NULL;
}

/* 0: of all slots only that of the thread that forked is taken, and it has the number that the child has. */
static int look_in_child(void)
{
    int present = 0;
    for (int slot = 0; slot < ta__safepoint_size(); slot++)
        if (ta__safepoint_is_present(slot)) {
            present++;
            if (ta__safepoint_member(slot) != &ta__self->safepoint)
                return 2;
        }
    if (present != 1)
        return 3;
    if (ta__self->tid != (int32_t)getpid())
        return 4;
    ta_clear_traces(); /* waits for nobody */
    return ta_is_tracing() ? 0 : 5;
}

static void test_a_child_after_fork_has_one_thread(void)
{
    pthread_t threads[3];
    int ends[2], status;
    has_begun = 0;
    TEST_ASSERT_EQUAL_INT(0, pipe(ends));
    for (int i = 0; i < 3; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, sleeps, &ends[0]));
    while (__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST) < 3)
        sched_yield();
    pid_t child = fork();
    if (child == 0)
        _exit(look_in_child());
    close(ends[1]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    close(ends[0]);
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL_INT(0, status);
}

/* It cannot come out before it has forked; and who waits inside for a lock that it holds, not before that. */
static void *forks_inside_once_somebody_waits(void *unused)
{
    int status = -1;
    ta_free(ta_malloc(1));
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
    __atomic_store_n(&has_begun, 2, __ATOMIC_SEQ_CST);
    while ((ta__gate_read() & TA__GATE_PENDING) == 0)
        sched_yield();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (waitpid(child, &status, 0) == child && status == 0)
        __atomic_store_n(&has_left, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&may_leave, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ta__self->safepoint.view, view, __ATOMIC_RELEASE);
    return unused;
}

static void test_a_stop_gives_way_to_a_fork_that_others_wait_for(void)
{
    pthread_t waits, forks;
    has_begun = has_left = may_leave = 0;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&waits, NULL, is_inside_until_told, NULL));
    while (__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST) != 1)
        sched_yield();
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&forks, NULL, forks_inside_once_somebody_waits, NULL));
    while (__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST) != 2)
        sched_yield();
    TEST_ASSERT_EQUAL_INT(TA__STOP_DONE, ta__safepoint_stop(&ta__self->safepoint));
    ta__safepoint_resume(&ta__self->safepoint);
    pthread_join(waits, NULL);
    pthread_join(forks, NULL);
    TEST_ASSERT_EQUAL_UINT32(1, has_left);
}

static int has_structure; /* the thread that flushes has allocated before */

/* What a stream's own function does while libc holds the lock of all streams, which a fork wants too. */
static ssize_t allocates_while_somebody_forks(void *unused, const char *bytes, size_t size)
{
    (void)unused, (void)bytes;
    __atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
    while ((ta__gate_read() & TA__GATE_PENDING) == 0)
        sched_yield();
    char *block = ta_malloc(100);
    block = ta_realloc(block, 3000);
    if (block != NULL) {
        memset(block, 1, 3000);
        ta_free(block);
        ta_free(ta_malloc(100));
        __atomic_store_n(&has_left, 1, __ATOMIC_SEQ_CST);
    }
    return (ssize_t)size;
}

static void *flushes_all_streams(void *stream)
{
    if (has_structure)
        ta_free(ta_malloc(1));
    fputs("text", stream);
    fflush(NULL);
    return stream;
}

static void fork_beside_a_stream_that_allocates(void)
{
    pthread_t thread;
    int status;
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = allocates_while_somebody_forks});
    TEST_ASSERT_NOT_NULL(stream);
    has_begun = has_left = 0;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, flushes_all_streams, stream));
    while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST))
        sched_yield();
    pid_t child = fork();
    if (child == 0)
        _exit(ta_malloc(10) != NULL ? 0 : 1);
    pthread_join(thread, NULL);
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL_INT(0, status);
    TEST_ASSERT_EQUAL_UINT32(1, has_left);
    fclose(stream);
}

static void test_a_fork_and_a_stream_that_allocates_do_not_wait_for_each_other(void)
{
    for (has_structure = 0; has_structure < 2; has_structure++)
        fork_beside_a_stream_that_allocates();
}

static void *holds_the_lock_of_threads(void *unused)
{
    __atomic_store_n(&has_left, (uint32_t)ta__threads_before_fork(), __ATOMIC_SEQ_CST);
    __atomic_store_n(&has_begun, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&may_leave, __ATOMIC_SEQ_CST))
        usleep(1000);
    ta__threads_after_fork();
    return unused;
}

/* A thread that was interrupted with the lock of the threads, and forks, waits for another that forks. */
static void test_a_fork_does_not_wait_for_ever_for_threads_that_come_and_go(void)
{
    pthread_t thread;
    int status;
    has_begun = has_left = may_leave = 0;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, holds_the_lock_of_threads, NULL));
    while (!__atomic_load_n(&has_begun, __ATOMIC_SEQ_CST))
        sched_yield();
    pid_t child = fork();
    if (child == 0) { /* the lock is free here */
        if (!ta__threads_before_fork())
            _exit(1);
        ta__threads_after_fork();
        _exit(0);
    }
    __atomic_store_n(&may_leave, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    TEST_ASSERT_EQUAL_UINT32(1, has_left);
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL_INT(0, status);
}

static void test_handlers_may_allocate_and_free_for_ever(void)
{
    interrupt();
    for (int i = 0; i < FOR_EVER; i++) {
        void *block = ta_malloc(100000);
        TEST_ASSERT_NOT_NULL(block);
        block = ta_realloc(block, (size_t)(i % 300) * 1000 + 1);
        TEST_ASSERT_NOT_NULL(block);
        ta_free(block);
    }
    come_back();
}

static void test_memory_used_again_is_zero_where_that_was_asked_for(void)
{
    interrupt();
    for (int round = 0; round < 3; round++) {
        unsigned char *block = ta_calloc(1, 5000);
        for (int i = 0; i < 5000; i++)
            TEST_ASSERT_EQUAL_UINT8(0, block[i]);
        memset(block, 0xff, 5000);
        ta_free(block);
    }
    come_back();
}

static void test_alignment_sizes_and_contents(void)
{
    struct {
        unsigned char *block;
        size_t size;
    } kept[MANY] = {{NULL, 0}};
    uint64_t random = 5;
    interrupt();
    for (int i = 0; i < 100000; i++) {
        size_t at = random_below(&random, MANY);
        size_t size = random_below(&random, i % 100 == 0 ? 300000 : 600);
        size_t alignment = (size_t)16 << random_below(&random, 9);
        for (size_t byte = 0; byte < kept[at].size; byte += 61)
            TEST_ASSERT_EQUAL_UINT8((unsigned char)at, kept[at].block[byte]);
        ta_free(kept[at].block);
        kept[at].block = i % 3 == 0 ? ta_aligned_alloc(alignment, size) : ta_malloc(size);
        kept[at].size = size;
        TEST_ASSERT_NOT_NULL(kept[at].block);
        TEST_ASSERT_EQUAL_size_t(0, (uintptr_t)kept[at].block % (i % 3 == 0 ? alignment : 16));
        TEST_ASSERT_EQUAL_size_t(size, ta__usable(kept[at].block));
        memset(kept[at].block, (int)at, size);
    }
    come_back();
    for (int i = 0; i < MANY; i++) /* freed outside of handlers, too */
        ta_free(kept[i].block);
}

static void test_a_block_freed_twice_is_counted_and_not_handed_out_twice(void)
{
    uint64_t invalid = invalid_frees();
    interrupt();
    void *block = ta_malloc(777);
    ta_free(block);
    ta_free(block);
    void *one = ta_malloc(777);
    void *two = ta_malloc(777);
    TEST_ASSERT_TRUE(one != two);
    ta_free((char *)one + 16);
    come_back();
    TEST_ASSERT_EQUAL_UINT64(invalid + 2, invalid_frees());
    ta_free(one);
    ta_free(two);
}

static void test_too_much_at_once_is_refused_and_the_rest_goes_on(void)
{
    interrupt();
    errno = 0;
    TEST_ASSERT_NULL(ta_malloc((size_t)1 << 40));
    TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
    void *large[4];
    int count = 0;
    while (count < 4 && (large[count] = ta_malloc(20 << 20)) != NULL)
        count++;
    TEST_ASSERT_TRUE(count > 0 && count < 4);
    void *small = ta_malloc(100);
    TEST_ASSERT_NOT_NULL(small);
    ta_free(small);
    while (count > 0)
        ta_free(large[--count]);
    for (int i = 0; i < 100; i++) { /* a size that was never asked for: it gets one of the large blocks */
        void *block = ta_malloc(3 << 20);
        TEST_ASSERT_NOT_NULL(block);
        ta_free(block);
    }
    come_back();
}

static void *take_and_give(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    ta_free(ta_malloc(1));
    ta__self->safepoint.view = 0;
    void *wrong = NULL;
    for (int i = 0; i < 30000; i++) {
        uint64_t *blocks[8];
        for (int k = 0; k < 8; k++) {
            blocks[k] = ta_malloc(8 + random_below(&random, 200));
            if (blocks[k] == NULL)
                return argument;
            *blocks[k] = (uint64_t)(uintptr_t)argument + (uint64_t)k;
        }
        for (int k = 0; k < 8; k++) {
            if (*blocks[k] != (uint64_t)(uintptr_t)argument + (uint64_t)k)
                wrong = argument;
            ta_free(blocks[k]);
        }
    }
    ta__self->safepoint.view = TA__VIEW_STALE;
    return wrong;
}

static void test_threads_share_it_without_a_lock(void)
{
    pthread_t threads[4];
    void *wrong;
    for (uintptr_t i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, take_and_give, (void *)((i + 1) * 1000)));
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        TEST_ASSERT_NULL(wrong);
    }
}

/* An operation is inside, for handlers and for stoppers, before it looks at the gate: what a handler does in between
 * changes nothing about that. */
static void test_an_operation_seals_itself_whatever_a_handler_did_to_its_mark(void)
{
    struct ta__safepoint_member member = {.view = ta__gate_read()};
    uint32_t gate = 0;
    ta__safepoint_mark(&member);
    member.in_op = 0; /* as the end of a handler's operation does */
    TEST_ASSERT_TRUE(ta__safepoint_seal(&member, &gate));
    TEST_ASSERT_EQUAL_UINT32(ta__gate_read(), gate);
    TEST_ASSERT_TRUE(ta__safepoint_is_inside(&member));
    member.in_op = 0;
    TEST_ASSERT_TRUE(ta__safepoint_is_inside(&member));
    member.view = TA__VIEW_HELD;
    TEST_ASSERT_FALSE(ta__safepoint_seal(&member, &gate));
    TEST_ASSERT_EQUAL_UINT32(TA__VIEW_HELD, member.view);
}

/* S-3: whatever a handler's request ends in, the thread is inside afterwards by its view alone. */
static void test_what_a_handler_does_leaves_no_mark(void)
{
    struct ta__safepoint_member *self = &ta__self->safepoint;
    void *usual = ta_malloc(50), *wild = NULL;
    interrupt();
    char *block = ta_malloc(20);
    TEST_ASSERT_EQUAL_UINT32(0, self->in_op);
    block = ta_realloc(block, 300);
    TEST_ASSERT_EQUAL_UINT32(0, self->in_op);
    TEST_ASSERT_TRUE(ta_usable_size(block) >= 300);
    TEST_ASSERT_EQUAL_UINT32(0, self->in_op);
    ta_free(block);
    TEST_ASSERT_EQUAL_UINT32(0, self->in_op);
    ta_free(usual);
    TEST_ASSERT_EQUAL_UINT32(0, self->in_op);
    ta_free(wild);
    TEST_ASSERT_EQUAL_UINT32(0, self->in_op);
    block = ta_calloc(3, 7);
    TEST_ASSERT_EQUAL_UINT32(0, self->in_op);
    come_back();
    TEST_ASSERT_FALSE(ta__safepoint_is_inside(self));
    ta_free(block); /* emergency memory, freed by the program itself */
    TEST_ASSERT_FALSE(ta__safepoint_is_inside(self));
}

/* Nobody may stop the world out of the middle of an operation of his own; he is told, at once, and nobody is held. */
static void test_changes_from_inside_are_refused_with_an_error(void)
{
    ta_stop();
    ta_free(ta_malloc(1));
    interrupt();
    errno = 0;
    TEST_ASSERT_EQUAL_INT(-1, ta_start(5));
    TEST_ASSERT_EQUAL_INT(EDEADLK, errno);
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "signal handler"));
    come_back();
    TEST_ASSERT_FALSE(ta_is_tracing());
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));
    void *block = ta_malloc(100);
    size_t before, after;
    ta_get_traced_memory(&before, NULL);
    interrupt();
    ta_clear_traces();
    ta_stop();
    come_back();
    TEST_ASSERT_TRUE(ta_is_tracing());
    ta_get_traced_memory(&after, NULL);
    TEST_ASSERT_EQUAL_size_t(before, after);
    ta_free(block);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_empty_blocks_that_a_handler_frees_damage_nobody);
    RUN_TEST(test_a_handler_learns_a_size_and_moves_a_block_without_the_tables);
    RUN_TEST(test_a_handler_is_told_of_a_block_only_what_nobody_changes);
    RUN_TEST(test_what_a_handler_frees_is_freed_soon_in_a_thread_that_is_traced);
    RUN_TEST(test_all_that_a_handler_frees_is_freed);
    RUN_TEST(test_a_stop_waits_until_every_other_thread_is_outside);
    RUN_TEST(test_all_who_wait_at_the_gate_go_on_when_it_opens);
    RUN_TEST(test_a_stop_waits_longer_for_who_is_about_to_come_out);
    RUN_TEST(test_a_stop_sees_that_who_was_looked_at_has_come_out);
    RUN_TEST(test_a_stop_that_somebody_misses_is_refused_and_holds_nobody);
#if !defined(__SANITIZE_THREAD__) /* its own locks do not survive a fork out of many threads */
    RUN_TEST(test_a_fork_waits_until_every_other_thread_is_outside);
    RUN_TEST(test_a_child_after_fork_has_one_thread);
    RUN_TEST(test_a_stop_gives_way_to_a_fork_that_others_wait_for);
    RUN_TEST(test_a_fork_and_a_stream_that_allocates_do_not_wait_for_each_other);
    RUN_TEST(test_a_fork_does_not_wait_for_ever_for_threads_that_come_and_go);
#else
    (void)test_a_fork_waits_until_every_other_thread_is_outside;
    (void)test_a_child_after_fork_has_one_thread;
    (void)test_a_stop_gives_way_to_a_fork_that_others_wait_for;
    (void)test_a_fork_and_a_stream_that_allocates_do_not_wait_for_each_other;
    (void)test_a_fork_does_not_wait_for_ever_for_threads_that_come_and_go;
#endif
    RUN_TEST(test_handlers_may_allocate_and_free_for_ever);
    RUN_TEST(test_memory_used_again_is_zero_where_that_was_asked_for);
    RUN_TEST(test_alignment_sizes_and_contents);
    RUN_TEST(test_a_block_freed_twice_is_counted_and_not_handed_out_twice);
    RUN_TEST(test_too_much_at_once_is_refused_and_the_rest_goes_on);
    RUN_TEST(test_threads_share_it_without_a_lock);
    RUN_TEST(test_an_operation_seals_itself_whatever_a_handler_did_to_its_mark);
    RUN_TEST(test_what_a_handler_does_leaves_no_mark);
    RUN_TEST(test_changes_from_inside_are_refused_with_an_error);
    return UNITY_END();
}
