/* test_late_threads.c: what threads allocate and free while they end, and after: in destructors of every round, and behind
 * the last of ours, as libc does with what it keeps for a thread. Nothing of such a thread stays. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <unity.h>

#include "base/safepoint.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

#if defined(__SANITIZE_THREAD__) /* its own end of a thread is in the last round: what comes behind crashes in it */
enum { ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS - 1 };
#else
enum { ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS };
#endif
enum { THREADS = 20, DOMAIN = 7 };

static pthread_key_t key, domain_key;
static int calls;     /* of the destructor, in one thread */
static int last_call; /* it asks to be called again so often */
static void *left;    /* what the last call allocated, and nobody freed yet */
static int errno_kept;

static void end_of_a_value(void *value)
{
    calls++;
    errno = 123;
    ta_free(left);
    left = ta_malloc(100);
    errno_kept &= errno == 123 && left != NULL;
    if (calls < last_call)
        pthread_setspecific(key, value);
}

static int count_present(void)
{
    int count = 0;
    for (int slot = ta__safepoint_size(); slot-- > 0;)
        count += ta__safepoint_is_present(slot);
    return count;
}

static void *allocate_first(void *value)
{
    ta_free(ta_malloc(50));
    pthread_setspecific(key, value);
    return NULL;
}

static void *allocate_at_the_end_only(void *value)
{
    pthread_setspecific(key, value);
    return NULL;
}

/* One after the other, so that they can have the same slot. */
static void run_threads(void *(*live)(void *), int rounds)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        calls = 0;
        last_call = rounds;
        errno_kept = 1;
        TEST_ASSERT_EQUAL(0, pthread_create(&thread, NULL, live, &calls));
        TEST_ASSERT_EQUAL(0, pthread_join(thread, NULL));
        TEST_ASSERT_EQUAL(rounds, calls);
        TEST_ASSERT_TRUE(errno_kept);
        TEST_ASSERT_EQUAL_MESSAGE(1, count_present(), "a thread that has ended is still known");
    }
    TEST_ASSERT_LESS_OR_EQUAL(2, ta__safepoint_size());
}

static void test_destructors_allocate_in_every_round(void)
{
    for (int rounds = 1; rounds <= ROUNDS; rounds++)
        run_threads(allocate_first, rounds);
}

/* In the last round there is nobody who could tell us of the end. */
static void test_destructors_are_the_first_to_allocate(void)
{
    for (int rounds = 1; rounds < PTHREAD_DESTRUCTOR_ITERATIONS; rounds++)
        run_threads(allocate_at_the_end_only, rounds);
}

static uint32_t ambient_between;

static void *push_at_the_end(void *value)
{
    ta_free(ta_malloc(50));
    pthread_setspecific(domain_key, value);
    return NULL;
}

/* Its domain lasts from the one to the other, whatever is allocated in between. */
static void end_in_a_domain(void *value)
{
    if (++calls < ROUNDS) {
        pthread_setspecific(domain_key, value);
        return;
    }
    ta_domain_push(DOMAIN);
    ta_free(ta_malloc(100));
    ambient_between = ta_domain_current();
    ta_domain_pop();
}

static void test_a_late_thread_stays_in_its_domain(void)
{
    pthread_t thread;
    calls = 0;
    TEST_ASSERT_EQUAL(0, pthread_create(&thread, NULL, push_at_the_end, &calls));
    TEST_ASSERT_EQUAL(0, pthread_join(thread, NULL));
    TEST_ASSERT_EQUAL(DOMAIN, ambient_between);
}

static void test_late_blocks_are_counted(void)
{
    size_t before, after, peak;
    ta_free(left);
    left = NULL;
    TEST_ASSERT_EQUAL(0, ta_start(20));
    ta_get_traced_memory(&before, &peak);
    run_threads(allocate_first, ROUNDS);
    ta_get_traced_memory(&after, &peak);
    TEST_ASSERT_EQUAL(before + 100, after);
    ta_free(left);
    left = NULL;
    ta_get_traced_memory(&after, &peak);
    TEST_ASSERT_EQUAL(before, after);
    ta_stop();
}

void setUp(void)
{
}

void tearDown(void)
{
}

int main(void)
{
    ta_free(ta_malloc(1)); /* our key before the test's: in each round our destructor runs first */
    if (pthread_key_create(&key, end_of_a_value) != 0 || pthread_key_create(&domain_key, end_in_a_domain) != 0)
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_destructors_allocate_in_every_round);
    RUN_TEST(test_destructors_are_the_first_to_allocate);
    RUN_TEST(test_late_blocks_are_counted);
    RUN_TEST(test_a_late_thread_stays_in_its_domain); /* last: its structure stays */
    return UNITY_END();
}
