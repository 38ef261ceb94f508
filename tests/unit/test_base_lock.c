/* test_base_lock.c: locks that handlers, forks and sleeping threads meet (base/lock.h). */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "base/assert.h"
#include "base/atomics.h"
#include "base/lock.h"

static struct ta__lock lock;
static uint32_t phase; /* atomic */

void setUp(void)
{
    lock = (struct ta__lock){.rank = TA__RANK_NONE};
    ta__store_release(&phase, 0u);
}

void tearDown(void)
{
}

static void wait_for_phase(uint32_t wanted)
{
    while (ta__load_acquire(&phase) < wanted)
        sched_yield();
}

static void *holds_it(void *unused)
{
    ta__lock_acquire(&lock);
    ta__store_release(&phase, 1u);
    wait_for_phase(2);
    ta__lock_release(&lock);
    return unused;
}

static void test_a_lock_is_held_by_one_thread_which_knows_it(void)
{
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, holds_it, NULL));
    wait_for_phase(1);
    TEST_ASSERT_FALSE(ta__lock_is_mine(&lock));
    TEST_ASSERT_FALSE(ta__lock_try(&lock));
    ta__store_release(&phase, 2u);
    pthread_join(thread, NULL);
    TEST_ASSERT_TRUE(ta__lock_try(&lock));
    TEST_ASSERT_TRUE(ta__lock_is_mine(&lock));
    ta__lock_release(&lock);
    TEST_ASSERT_FALSE(ta__lock_is_mine(&lock));
}

#if !defined(__SANITIZE_THREAD__) /* its own locks do not survive a fork out of many threads */
static void test_a_lock_of_a_thread_that_the_child_lacks_is_free_there(void)
{
    pthread_t thread;
    int status;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, holds_it, NULL));
    wait_for_phase(1);
    pid_t child = fork();
    if (child == 0) {
        ta__lock_after_fork(&lock);
        _exit(ta__lock_try(&lock) ? 0 : 1);
    }
    ta__store_release(&phase, 2u);
    pthread_join(thread, NULL);
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL_INT(0, status);
}

static void test_a_lock_of_the_thread_that_forks_stays_its_own(void)
{
    int status;
    ta__lock_acquire(&lock);
    pid_t child = fork();
    if (child == 0) {
        ta__lock_after_fork(&lock);
        _exit(ta__lock_is_mine(&lock) ? 0 : 1);
    }
    ta__lock_release(&lock);
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL_INT(0, status);
}
#endif

enum { THREADS = 8, ROUNDS = 20000 };
static uint64_t guarded, other;

static void *counts(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        ta__lock_acquire(&lock);
        guarded++;
        if (i % 64 == 0)
            sched_yield(); /* so that others sleep at it */
        other = guarded;
        ta__lock_release(&lock);
    }
    return unused;
}

/* Who sleeps is woken, and who is woken wakes the next. */
static void test_many_threads_at_one_lock_all_get_their_turns(void)
{
    pthread_t threads[THREADS];
    guarded = 0;
    for (int i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, counts, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    TEST_ASSERT_EQUAL_UINT64((uint64_t)THREADS * ROUNDS, guarded);
    TEST_ASSERT_EQUAL_UINT64(guarded, other);
}

/* Neither is heard of in errno: the program's own stays. An alarm ends who would wait for ever. */
static void test_a_wait_ends_with_its_time_or_when_the_word_is_another(void)
{
    uint32_t word = 1;
    alarm(120);
    errno = 77;
    ta__futex_wait(&word, 1, 1000000);
    TEST_ASSERT_EQUAL_INT(77, errno);
    ta__futex_wait(&word, 2, 0);
    TEST_ASSERT_EQUAL_INT(77, errno);
    ta__futex_wake((uint32_t *)((uintptr_t)&word + 1), 1); /* no place for one */
    TEST_ASSERT_EQUAL_INT(77, errno);
    alarm(0);
}

/* The signal that ends a child which takes these two, the first one first; 0 when it goes on. */
static int end_of_taking(uint32_t first_rank, uint32_t second_rank)
{
    static struct ta__lock first, second;
    first = (struct ta__lock){.rank = first_rank};
    second = (struct ta__lock){.rank = second_rank};
    int status;
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        close(STDERR_FILENO);
        ta__lock_acquire(&first);
        ta__lock_acquire(&second);
        ta__lock_release(&second);
        ta__lock_release(&first);
        _exit(0);
    }
    TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* L-1: with assertions a wrong order ends the program, also when nobody waits. */
static void test_locks_are_taken_in_the_order_of_their_ranks(void)
{
    int wrong = TA_CHECKS >= 1 ? SIGABRT : 0;
    TEST_ASSERT_EQUAL(0, end_of_taking(TA__RANK_RULES, TA__RANK_STOP));
    TEST_ASSERT_EQUAL(0, end_of_taking(TA__RANK_STOP, TA__RANK_COUNTERS));
    TEST_ASSERT_EQUAL(0, end_of_taking(TA__RANK_TRACKED, TA__RANK_NONE));
    TEST_ASSERT_EQUAL(wrong, end_of_taking(TA__RANK_STOP, TA__RANK_RULES));
    TEST_ASSERT_EQUAL(wrong, end_of_taking(TA__RANK_COUNTERS, TA__RANK_TRACKED));
    TEST_ASSERT_EQUAL(wrong, end_of_taking(TA__RANK_SHARED, TA__RANK_SHARED));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_lock_is_held_by_one_thread_which_knows_it);
#if !defined(__SANITIZE_THREAD__)
    RUN_TEST(test_a_lock_of_a_thread_that_the_child_lacks_is_free_there);
    RUN_TEST(test_a_lock_of_the_thread_that_forks_stays_its_own);
#endif
    RUN_TEST(test_many_threads_at_one_lock_all_get_their_turns);
    RUN_TEST(test_a_wait_ends_with_its_time_or_when_the_word_is_another);
#if !defined(__SANITIZE_THREAD__)
    RUN_TEST(test_locks_are_taken_in_the_order_of_their_ranks);
#else
    (void)test_locks_are_taken_in_the_order_of_their_ranks;
#endif
    return UNITY_END();
}
