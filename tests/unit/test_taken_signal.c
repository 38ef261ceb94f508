/* test_taken_signal.c: a signal that is taken for snapshots (snapshot/triggers/taken_signal.h), and that the program cannot tell:
 * which actions stand in the kernel's table, which is made up here, and which the program is told. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unity.h>

#include "snapshot/triggers/taken_signal.h"

static struct sigaction kernel[65];
static int calls, fails_at; /* the n-th call fails; 0 = none does */
static pid_t process;

int __sigaction(int number, const struct sigaction *action, struct sigaction *former)
{
    if (++calls == fails_at)
        return errno = EINVAL, -1;
    struct sigaction before = kernel[number];
    if (action != NULL)
        kernel[number] = *action;
    if (former != NULL)
        *former = before;
    return 0;
}

pid_t getpid(void)
{
    return process;
}

static int asked;

static void ask(void)
{
    asked++;
}

static void one(int number)
{
    (void)number;
}

static void two(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
}

static struct sigaction plain(void (*handler)(int number), int flags, int masked)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    if (masked != 0)
        sigaddset(&action.sa_mask, masked);
    return action;
}

static struct sigaction with_info(int flags)
{
    struct sigaction action = {.sa_flags = flags | SA_SIGINFO};
    action.sa_sigaction = two;
    sigemptyset(&action.sa_mask);
    return action;
}

enum { NUMBER = SIGUSR1 };

void setUp(void)
{
    process = 100;
    calls = fails_at = asked = 0;
    for (int i = 0; i < 65; i++)
        kernel[i] = plain(SIG_DFL, 0, 0);
}

void tearDown(void)
{
    fails_at = 0;
    ta__taken_signal_end();
}

/* Ours stands with these flags and that signal in its mask; 0 = none. */
static void assert_ours(int flags, int masked)
{
    TEST_ASSERT_EQUAL_HEX(flags | SA_SIGINFO, kernel[NUMBER].sa_flags);
    TEST_ASSERT_TRUE(kernel[NUMBER].sa_sigaction != two && (void *)kernel[NUMBER].sa_sigaction != (void *)one &&
                     kernel[NUMBER].sa_handler != SIG_DFL && kernel[NUMBER].sa_handler != SIG_IGN);
    for (int i = 1; i < 32; i++)
        TEST_ASSERT_EQUAL(i == masked, sigismember(&kernel[NUMBER].sa_mask, i));
}

static void assert_same(struct sigaction expected, const struct sigaction *found)
{
    TEST_ASSERT_EQUAL_HEX(expected.sa_flags, found->sa_flags);
    TEST_ASSERT_EQUAL_PTR(expected.sa_handler, found->sa_handler);
    TEST_ASSERT_EQUAL_MEMORY(&expected.sa_mask, &found->sa_mask, sizeof(long));
}

static void begin(struct sigaction program)
{
    kernel[NUMBER] = program;
    TEST_ASSERT_EQUAL(0, ta__taken_signal_begin(NUMBER, ask));
}

/* ---- tests ---- */

static void test_ours_stands_under_the_conditions_of_the_programs(void)
{
    begin(plain(SIG_DFL, SA_NODEFER, SIGUSR2));
    assert_ours(SA_RESTART, 0); /* no handler has no conditions */
    ta__taken_signal_end();
    begin(plain(SIG_IGN, 0, SIGUSR2));
    assert_ours(SA_RESTART, 0);
    ta__taken_signal_end();
    begin(plain(one, SA_NODEFER | (int)SA_RESETHAND, SIGUSR2));
    assert_ours(SA_NODEFER, SIGUSR2); /* ours is not reset */
    ta__taken_signal_end();
    begin(with_info(SA_ONSTACK));
    assert_ours(SA_ONSTACK, 0);
    struct sigaction none = with_info(SA_ONSTACK);
    none.sa_sigaction = NULL;
    ta__taken_signal_end();
    begin(none);
    assert_ours(SA_RESTART, 0);
}

static void test_it_is_taken_from_the_beginning_to_the_end(void)
{
    TEST_ASSERT_FALSE(ta__taken_signal_is(NUMBER));
    TEST_ASSERT_FALSE(ta__taken_signal_is(0));
    begin(plain(one, SA_NODEFER, SIGUSR2));
    TEST_ASSERT_TRUE(ta__taken_signal_is(NUMBER));
    TEST_ASSERT_FALSE(ta__taken_signal_is(SIGUSR2));
    TEST_ASSERT_FALSE(ta__taken_signal_is(0));
    ta__taken_signal_end();
    TEST_ASSERT_FALSE(ta__taken_signal_is(NUMBER));
    assert_same(plain(one, SA_NODEFER, SIGUSR2), &kernel[NUMBER]); /* the program's is back */
    calls = 0;
    ta__taken_signal_end();
    ta__taken_signal_look();
    TEST_ASSERT_EQUAL(0, calls);
    begin(plain(one, 0, 0));
    kernel[NUMBER] = with_info(0); /* put there by other ways: it stays */
    ta__taken_signal_end();
    assert_same(with_info(0), &kernel[NUMBER]);
}

static void test_what_the_kernel_refuses_is_not_taken(void)
{
    fails_at = 1;
    TEST_ASSERT_EQUAL(-1, ta__taken_signal_begin(NUMBER, ask));
    TEST_ASSERT_FALSE(ta__taken_signal_is(NUMBER));
    calls = 0;
    fails_at = 2;
    TEST_ASSERT_EQUAL(-1, ta__taken_signal_begin(NUMBER, ask));
    TEST_ASSERT_FALSE(ta__taken_signal_is(NUMBER));
}

static void test_the_program_is_told_its_own_actions(void)
{
    struct sigaction former, next = plain(one, SA_NODEFER | (int)SA_RESETHAND, SIGUSR2);
    begin(plain(SIG_IGN, 0, 0));
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, &former));
    assert_same(plain(SIG_IGN, 0, 0), &former);
    assert_ours(SA_RESTART, 0);
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(&next, &former));
    assert_same(plain(SIG_IGN, 0, 0), &former);
    assert_ours(SA_NODEFER, SIGUSR2);
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, &former));
    assert_same(next, &former);
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(&former, &former)); /* in and out at one place */
    assert_same(next, &former);
    for (int i = 0; i < 40; i++) { /* more than are remembered */
        struct sigaction given =
            i % 2 ? plain(one, i % 3 ? SA_NODEFER : 0, 1 + i % 8) : with_info(i % 5 ? SA_ONSTACK : 0);
        TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(&given, NULL));
        TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, &former));
        assert_same(given, &former);
    }
    calls = 0;
    fails_at = 1;
    TEST_ASSERT_EQUAL(-1, ta__taken_signal_exchange(&next, NULL));
    ta__taken_signal_end();
}

static void test_signals_are_as_they_were_after_an_exchange(void)
{
    sigset_t mask, before, after;
    struct sigaction next = plain(one, 0, 0);
    begin(plain(SIG_DFL, 0, 0));
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(&next, NULL));
    pthread_sigmask(SIG_SETMASK, &before, &after);
    for (int i = 1; i < 32; i++)
        TEST_ASSERT_EQUAL(i == SIGUSR2, sigismember(&after, i));
}

/* A program that goes around the library is noticed at the next look. */
static void test_what_went_around_is_taken_again(void)
{
    struct sigaction former;
    begin(plain(SIG_DFL, 0, 0));
    kernel[NUMBER] = plain(one, SA_NODEFER, SIGUSR2);
    ta__taken_signal_look();
    assert_ours(SA_NODEFER, SIGUSR2);
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, &former));
    assert_same(plain(one, SA_NODEFER, SIGUSR2), &former);
    struct sigaction standing = kernel[NUMBER];
    calls = 0;
    ta__taken_signal_look();
    TEST_ASSERT_EQUAL(1, calls); /* it only looks */
    assert_same(standing, &kernel[NUMBER]);
}

/* In the child of a fork ours stands already, above what the program had. */
static void test_a_child_takes_it_over(void)
{
    struct sigaction former;
    begin(plain(one, SA_NODEFER, 0));
    process = 101;
    TEST_ASSERT_EQUAL(0, ta__taken_signal_begin(NUMBER, ask));
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, &former));
    assert_same(plain(one, SA_NODEFER, 0), &former);
    assert_ours(SA_NODEFER, 0);
}

/* One of vfork has our memory, but signals of its own. */
static void test_elsewhere_actions_are_exchanged_with_the_kernel(void)
{
    struct sigaction former, next = with_info(SA_ONSTACK);
    begin(plain(one, SA_NODEFER, 0));
    process = 101;
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, &former));
    assert_same(plain(one, SA_NODEFER, 0), &former); /* not ours, which stands there */
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(&next, &former));
    assert_same(plain(one, SA_NODEFER, 0), &former);
    assert_same(next, &kernel[NUMBER]);
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, &former));
    assert_same(next, &former);
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, NULL));
    calls = 0;
    fails_at = 1;
    TEST_ASSERT_EQUAL(-1, ta__taken_signal_exchange(&next, &former));
    process = 100;
    TEST_ASSERT_EQUAL(0, ta__taken_signal_exchange(NULL, &former));
    assert_same(plain(one, SA_NODEFER, 0), &former); /* the parent's is what it was */
}

/* A handler that found ours may call it: that is no signal. */
static void test_a_call_by_the_program_asks_for_nothing(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    begin(plain(SIG_DFL, 0, 0));
    kernel[NUMBER].sa_sigaction(NUMBER, NULL, NULL);
    TEST_ASSERT_EQUAL(0, asked);
#else
    TEST_IGNORE_MESSAGE("sanitizers call handlers themselves");
#endif
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_ours_stands_under_the_conditions_of_the_programs);
    RUN_TEST(test_it_is_taken_from_the_beginning_to_the_end);
    RUN_TEST(test_what_the_kernel_refuses_is_not_taken);
    RUN_TEST(test_the_program_is_told_its_own_actions);
    RUN_TEST(test_signals_are_as_they_were_after_an_exchange);
    RUN_TEST(test_what_went_around_is_taken_again);
    RUN_TEST(test_a_child_takes_it_over);
    RUN_TEST(test_elsewhere_actions_are_exchanged_with_the_kernel);
    RUN_TEST(test_a_call_by_the_program_asks_for_nothing);
    return UNITY_END();
}
