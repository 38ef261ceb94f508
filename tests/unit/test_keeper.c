/* test_keeper.c: the process that shares our memory: it sees us end, and survives what is wrong with that memory. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "base/atomics.h"
#include "base/lock.h"
#include "snapshot/triggers/keeper.h"

void setUp(void)
{
}

void tearDown(void)
{
}

static struct ta__keeper keeper;
static volatile int results[4], is_whole;
static uint32_t never;
static volatile int *volatile nowhere = NULL;

static void fault(void)
{
    *nowhere = 1;
}

static void breakpoint(void)
{
#if defined(__x86_64__)
    __asm__ volatile("int3");
#else
    fault();
#endif
}

static void succeed(void)
{
    is_whole = 1;
}

static void try_all(void)
{
    results[0] = ta__keeper_try(fault);
    results[1] = ta__keeper_try(breakpoint);
    results[2] = ta__keeper_try(succeed);
    results[3] = ta__keeper_try(fault);
}

/* 0: there can be none here. */
static int start(void (*work)(void))
{
    return ta__keeper_start(&keeper, work, -1) == 0;
}

static void test_what_faults_is_given_up_and_nothing_else(void)
{
    for (int i = 0; i < 4; i++)
        results[i] = -1;
    if (!start(try_all))
        TEST_IGNORE_MESSAGE("no keeper here");
    TEST_ASSERT_EQUAL(1, ta__keeper_wait(&keeper, 60000));
    ta__keeper_forget(&keeper);
    TEST_ASSERT_EQUAL(0, results[0]);
    TEST_ASSERT_EQUAL(0, results[1]);
    TEST_ASSERT_EQUAL(1, results[2]);
    TEST_ASSERT_EQUAL(1, is_whole);
    TEST_ASSERT_EQUAL(0, results[3]);
}

static void test_elsewhere_it_is_called_and_that_is_all(void)
{
    is_whole = 0;
    TEST_ASSERT_EQUAL(1, ta__keeper_try(succeed));
    TEST_ASSERT_EQUAL(1, is_whole);
}

/* What it faults on outside of a trial ends it alone, and in silence. */
static void test_its_own_end_is_nobodys_business(void)
{
    siginfo_t info = {.si_pid = 0};
    if (!start(fault))
        TEST_IGNORE_MESSAGE("no keeper here");
    TEST_ASSERT_EQUAL(0, ta__keeper_wait(&keeper, 60000));
    TEST_ASSERT_EQUAL(-1, waitid(P_ALL, 0, &info, WEXITED | WNOHANG)); /* no child that wait would see */
    ta__keeper_forget(&keeper);
}

/* A filter of system calls that refuses this one; 0: there can be none here. */
static int refuse(unsigned number)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void take_a_while(void)
{
    usleep(100000);
    is_whole = 1;
}

/* That the owner may not ask whether its child has ended does not mean that it has. */
static void test_it_is_waited_for_where_waitid_is_refused(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (!refuse(SYS_waitid) || !start(take_a_while))
            _exit(77);
        int is_done = ta__keeper_wait(&keeper, 60000);
        ta__keeper_forget(&keeper);
        _exit(is_done && is_whole ? 0 : 1);
    }
    TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        TEST_IGNORE_MESSAGE("no keeper or no filters here");
    TEST_ASSERT_EQUAL(0, status);
}

static struct ta__lock lock = {.rank = TA__RANK_NONE};
static uint32_t has_lock;

static void hold_a_lock_for_ever(void)
{
    ta__lock_acquire(&lock);
    ta__store_release(&has_lock, 1u);
    for (;;)
        syscall(SYS_pause);
}

/* Nobody can give back what it held but who waits for it. */
static void test_killed_it_holds_no_lock(void)
{
    if (!start(hold_a_lock_for_ever))
        TEST_IGNORE_MESSAGE("no keeper here");
    while (!ta__load_acquire(&has_lock))
        usleep(1000);
    TEST_ASSERT_FALSE(ta__keeper_is_gone(&keeper));
    TEST_ASSERT_EQUAL(0, kill(keeper.process, SIGKILL));
    alarm(60);
    ta__lock_acquire(&lock);
    alarm(0);
    ta__lock_release(&lock);
    TEST_ASSERT_TRUE(ta__keeper_is_gone(&keeper));
    ta__keeper_forget(&keeper);
}

static void tell_owner(void)
{
    while (ta__keeper_owner(&keeper) == TA__OWNER_RUNS)
        ta__keeper_sleep(&keeper, &never, UINT64_MAX);
    results[0] = (int)ta__keeper_owner(&keeper);
    syscall(SYS_write, keeper.descriptor, (const char *)results, sizeof results[0]);
}

static void test_it_sees_the_owner_end_however(void)
{
    for (int how = 0; how < 3; how++) {
        int ends[2], seen = -1;
        TEST_ASSERT_EQUAL(0, pipe(ends));
        pid_t child = fork();
        if (child == 0) {
            if (ta__keeper_start(&keeper, tell_owner, ends[1]) != 0)
                _exit(77);
            if (how == 0)
                _exit(0);
            if (how == 1)
                execlp("true", "true", (char *)NULL);
            raise(SIGKILL);
        }
        close(ends[1]);
        ssize_t got = read(ends[0], &seen, sizeof seen);
        close(ends[0]);
        int status;
        TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            TEST_IGNORE_MESSAGE("no keeper here");
        TEST_ASSERT_EQUAL(sizeof seen, got);
        TEST_ASSERT_NOT_EQUAL(TA__OWNER_RUNS, seen);
        if (how != 1) /* an exec may be over before it looks */
            TEST_ASSERT_EQUAL(TA__OWNER_ENDED, seen);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_what_faults_is_given_up_and_nothing_else);
    RUN_TEST(test_elsewhere_it_is_called_and_that_is_all);
    RUN_TEST(test_its_own_end_is_nobodys_business);
    RUN_TEST(test_it_is_waited_for_where_waitid_is_refused);
    RUN_TEST(test_killed_it_holds_no_lock);
    RUN_TEST(test_it_sees_the_owner_end_however);
    return UNITY_END();
}
