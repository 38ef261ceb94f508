/* test_keeper.c: the process that shares our memory: it sees us end, and survives what is wrong with that memory. */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

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
    RUN_TEST(test_it_sees_the_owner_end_however);
    return UNITY_END();
}
