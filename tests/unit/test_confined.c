/* test_confined.c: programs that forbid themselves system calls which glibc's malloc does not make (seccomp). A thread that
 * is alone forks, and starts and stops tracing, without membarrier; threads begin without asking for nodes of memory. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <unity.h>

#include "base/safepoint.h"
#include "trace/reclaim.h"
#include "trace/trace.h"
#include "tracealloc.h"

#include "tests/support/child.h"

#define NOINLINE __attribute__((noinline, noclone, no_icf))
enum { NOT_HERE = 77 };

/* From here on the process ends by SIGSYS when it makes one of the two calls. */
static void forbid(long one, long other)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)one, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(NOT_HERE);
}

static void run(void (*body)(void *))
{
    struct child_result result;
    child_run(&result, body, NULL);
    if (result.exit_status == NOT_HERE)
        TEST_IGNORE_MESSAGE("no filters of system calls here");
    TEST_ASSERT_EQUAL_STRING("", result.text);
    TEST_ASSERT_EQUAL_MESSAGE(0, result.signal, "it made a system call that it had forbidden itself");
    TEST_ASSERT_EQUAL(0, result.exit_status);
}

static void allocate_a_little(void)
{
    for (size_t size = 1; size < 1000; size++)
        ta_free(ta_malloc(size));
}

/* The filter works at all: else no test here says anything. */
static void make_the_call(void *unused)
{
    (void)unused;
    forbid(SYS_membarrier, SYS_membarrier);
    syscall(SYS_membarrier, 0, 0, 0);
}

static void test_the_call_is_forbidden(void)
{
    struct child_result result;
    child_run(&result, make_the_call, NULL);
    if (result.exit_status == NOT_HERE)
        TEST_IGNORE_MESSAGE("no filters of system calls here");
    TEST_ASSERT_NOT_EQUAL(0, result.signal);
}

static void fork_alone(void *unused)
{
    (void)unused;
    allocate_a_little();
    forbid(SYS_membarrier, SYS_membarrier);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            allocate_a_little();
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child);
        MUST(status == 0);
    }
}

static void test_a_thread_that_is_alone_forks(void)
{
    run(fork_alone);
}

static void change_modes_alone(void *unused)
{
    (void)unused;
    allocate_a_little();
    forbid(SYS_membarrier, SYS_membarrier);
    MUST(ta_start(20) == 0);
    allocate_a_little();
    ta_clear_traces();
    allocate_a_little();
    ta_stop();
}

static void test_a_thread_that_is_alone_changes_modes(void)
{
    run(change_modes_alone);
}

/* One of two calls for each bit: as many stacks as there are numbers. */
static NOINLINE void at_bits(uint32_t bits);
static NOINLINE void zero(uint32_t bits)
{
    at_bits(bits);
    __asm__ volatile("");
}
static NOINLINE void one(uint32_t bits)
{
    at_bits(bits);
    __asm__ volatile("");
}
static NOINLINE void at_bits(uint32_t bits)
{
    if (bits == 1)
        ta_free(ta_malloc(40));
    else
        (bits & 1 ? one : zero)(bits >> 1);
    __asm__ volatile("");
}

static void use_tables_again(void *unused)
{
    enum { PATHS = 1 << 15 };
    (void)unused;
    ta__trace_configure(&(struct ta__trace_config){.table_memory = (size_t)512 << 10});
    MUST(ta_start(TA_NFRAME_MAX) == 0);
    forbid(SYS_membarrier, SYS_membarrier);
    uint32_t round_before = ta__reclaim_round;
    for (uint32_t path = 1; path < PATHS; path++)
        at_bits(path | PATHS);
    MUST(ta__reclaim_round != round_before);
}

static void test_a_thread_that_is_alone_uses_tables_again(void)
{
    run(use_tables_again);
}

static void *live(void *unused)
{
    allocate_a_little();
    return unused;
}

#if defined(SYS_access)
enum { LOOK = SYS_access };
#else
enum { LOOK = SYS_faccessat };
#endif

static void begin_a_thread(void *unused)
{
    (void)unused;
    allocate_a_little();
    forbid(SYS_getcpu, LOOK);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, live, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
}

static void test_a_thread_begins_without_looking_at_the_machine(void)
{
    run(begin_a_thread);
}

static void *look_from_beside(void *main_member)
{
    ta_free(ta_malloc(1));
    return ta__safepoint_is_alone(main_member) ? NULL : main_member;
}

static void test_who_is_alone_is_known(void)
{
    ta_free(ta_malloc(1));
    TEST_ASSERT_EQUAL(1, ta__safepoint_size());
    struct ta__safepoint_member *self = ta__safepoint_member(0);
    TEST_ASSERT_TRUE(ta__safepoint_is_alone(self));
    TEST_ASSERT_FALSE(ta__safepoint_is_alone(NULL));
    pthread_t thread;
    TEST_ASSERT_EQUAL(0, pthread_create(&thread, NULL, look_from_beside, self));
    void *answer = NULL;
    TEST_ASSERT_EQUAL(0, pthread_join(thread, &answer));
    TEST_ASSERT_EQUAL_PTR(self, answer);
    TEST_ASSERT_EQUAL(2, ta__safepoint_size());
    TEST_ASSERT_TRUE(ta__safepoint_is_alone(self));
    TEST_ASSERT_FALSE(ta__safepoint_is_alone(ta__safepoint_member(1)));
}

void setUp(void)
{
}

void tearDown(void)
{
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_call_is_forbidden);
    RUN_TEST(test_a_thread_that_is_alone_forks);
    RUN_TEST(test_a_thread_that_is_alone_changes_modes);
    RUN_TEST(test_a_thread_that_is_alone_uses_tables_again);
    RUN_TEST(test_a_thread_begins_without_looking_at_the_machine);
    RUN_TEST(test_who_is_alone_is_known); /* last: from here on another slot has been used */
    return UNITY_END();
}
