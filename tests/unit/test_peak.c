/* test_peak.c: the peak with threads — never less than what lived when all rested, never falling, not too much either. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "base/memory.h"
#include "tests/support/random.h"
#include "tests/support/traced_now.h"
#include "trace/peak.h"
#include "trace/trace.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

enum { THREADS_MAX = 80, BLOCKS = 200, SLACK = 70000 };

/* A crew works step by step, all at once, and rests in between. */
struct crew {
    pthread_barrier_t rest;
    int size, steps;
    void (*step)(struct crew *crew, int member, int step);
    uint64_t seed;
    struct {
        void *blocks[BLOCKS];
        size_t sizes[BLOCKS];
        uint64_t random;
        size_t holds;
    } members[THREADS_MAX];
};

static struct crew crew;

static void *member_runs(void *argument)
{
    int member = (int)(intptr_t)argument;
    ta_free(ta_malloc(1));
    for (int step = 0; step < crew.steps; step++) {
        pthread_barrier_wait(&crew.rest);
        crew.step(&crew, member, step);
        pthread_barrier_wait(&crew.rest);
        pthread_barrier_wait(&crew.rest); /* the main thread looks */
    }
    return NULL;
}

/* Answers the most that the members held together at a rest. */
static size_t run(int size, int steps, void (*step)(struct crew *, int, int), void (*at_rest)(int step, size_t held))
{
    pthread_t threads[THREADS_MAX];
    size_t most = 0;
    memset(&crew, 0, sizeof crew);
    crew.size = size;
    crew.steps = steps;
    crew.step = step;
    crew.seed = setting_number("TA_TEST_SEED", 7);
    for (int i = 0; i < size; i++)
        crew.members[i].random = random_next(&crew.seed);
    pthread_barrier_init(&crew.rest, NULL, (unsigned)size + 1);
    for (int i = 0; i < size; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, member_runs, (void *)(intptr_t)i));
    for (int at = 0; at < steps; at++) {
        pthread_barrier_wait(&crew.rest);
        pthread_barrier_wait(&crew.rest);
        size_t held = 0;
        for (int i = 0; i < size; i++)
            held += crew.members[i].holds;
        most = held > most ? held : most;
        if (at_rest != NULL)
            at_rest(at, held);
        pthread_barrier_wait(&crew.rest);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&crew.rest);
    return most;
}

static void take(struct crew *all, int member, int at, size_t size)
{
    ta_free(all->members[member].blocks[at]);
    all->members[member].holds -= all->members[member].sizes[at];
    all->members[member].blocks[at] = size != 0 ? ta_malloc(size) : NULL;
    all->members[member].sizes[at] = size;
    all->members[member].holds += size;
}

void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));
}

void tearDown(void)
{
    ta_stop();
}

static void hold_then_free(struct crew *all, int member, int step)
{
    if (step == 0)
        take(all, member, 0, 60000);
    else if (step == 1 || (step == 2 && member % 2 == 0) || step == 3)
        take(all, member, 0, 0);
}

static size_t reported;
static int below, fell; /* an assertion would leave the crew waiting */

static void read_it(int step, size_t held)
{
    (void)step;
    size_t now = peak();
    below += now < held;
    fell += now < reported;
    reported = now;
}

static void test_what_was_reported_once_does_not_fall(void)
{
    for (int size = 1; size <= 16; size *= 4) {
        ta_clear_traces();
        reported = 0;
        below = fell = 0;
        run(size, 4, hold_then_free, read_it);
        TEST_ASSERT_EQUAL_INT(0, below);
        TEST_ASSERT_EQUAL_INT(0, fell);
    }
}

static void test_what_lived_while_all_rested_counts_though_nobody_looked(void)
{
    for (int size = 1; size <= 64; size *= 4) {
        ta_clear_traces();
        size_t most = run(size, 4, hold_then_free, NULL);
        TEST_ASSERT_EQUAL_size_t((size_t)size * 60000, most);
        TEST_ASSERT_TRUE(peak() >= most);
        TEST_ASSERT_TRUE(peak() <= most + (size_t)(size + 1) * SLACK);
    }
}

static void move_about(struct crew *all, int member, int step)
{
    (void)step;
    uint64_t *random = &all->members[member].random;
    for (int i = 0; i < 20; i++) {
        size_t limit = random_below(random, 50) == 0 ? 300000 : 3000;
        take(all, member, (int)random_below(random, BLOCKS),
             random_below(random, 3) == 0 ? 0 : random_below(random, limit));
    }
}

static void test_random_work_of_several_threads(void)
{
    for (int round = 0; round < 5; round++) {
        ta_clear_traces();
        size_t most = run(8, 40, move_about, NULL);
        TEST_ASSERT_TRUE(peak() >= most);
        /* Between two rests more may have lived: never more than all that one step allocates at most. */
        TEST_ASSERT_TRUE(peak() <= most + 8 * (20 * 300000 + SLACK));
    }
}

static void test_one_thread_is_exact(void)
{
    uint64_t random = 3;
    void *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0};
    size_t held = 0, most = 0;
    size_t before = current();
    ta_reset_peak();
    for (int i = 0; i < 50000; i++) {
        size_t at = random_below(&random, BLOCKS);
        ta_free(blocks[at]);
        held -= sizes[at];
        sizes[at] = random_below(&random, i % 50 == 0 ? 400000 : 2000);
        blocks[at] = ta_malloc(sizes[at]);
        held += sizes[at];
        most = held > most ? held : most;
        if (i % 5000 == 0)
            TEST_ASSERT_EQUAL_size_t(before + most, peak());
    }
    TEST_ASSERT_EQUAL_size_t(before + most, peak());
    for (int i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);
    TEST_ASSERT_EQUAL_size_t(before + most, peak());
    ta_reset_peak();
    TEST_ASSERT_EQUAL_size_t(current(), peak());
}

/* What was freed since the highest point does not come back with a reset. */
static void test_after_a_reset_the_peak_is_what_lives(void)
{
    void *blocks[3] = {ta_malloc(3000), ta_malloc(5000), ta_malloc(40000)};
    ta_free(blocks[1]);
    ta_free(blocks[2]);
    size_t held = current();
    ta_reset_peak();
    TEST_ASSERT_EQUAL_size_t(held, current());
    TEST_ASSERT_EQUAL_size_t(held, peak());
    ta_free(ta_malloc(700));
    TEST_ASSERT_EQUAL_size_t(held + 700, peak());
    ta_free(blocks[0]);
    TEST_ASSERT_EQUAL_size_t(held - 3000, current());
}

/* ---- what the leaves held then ---- */

static size_t listed(void)
{
    const uint64_t *live;
    uint32_t is_now, count = ta__peak_open(&live, &is_now);
    size_t sum = 0;
    for (uint32_t leaf = 0; leaf < count; leaf++)
        sum += live[leaf];
    if (count != 0)
        ta__peak_close();
    return sum;
}

enum { SMALL = 500, FEW = 8, LARGE = 300000, DOMAIN = 77 };
static void *small[20000], *large[FEW];

static void get(void **blocks, int count, size_t size)
{
    for (int i = 0; i < count; i++)
        blocks[i] = ta_malloc(size);
}

static void release(void **blocks, int count)
{
    for (int i = 0; i < count; i++)
        ta_free(blocks[i]);
}

static void small_ones_grow_and_go(void)
{
    get(small, 20000, SMALL);
    release(small, 20000);
}

static void a_large_one_goes_at_once(void)
{
    get(large, 1, (size_t)30 * LARGE);
    get(small, 2000, SMALL);
    release(large, 1);
    release(small, 2000);
}

static void large_ones_go_one_by_one(void)
{
    get(large, FEW, LARGE);
    release(large, FEW);
}

static void a_large_one_shrinks(void)
{
    get(large, 1, (size_t)20 * LARGE);
    large[0] = ta_realloc(large[0], SMALL);
    ta_free(large[0]);
}

static void what_is_tracked_goes(void)
{
    ta_track(DOMAIN, (uintptr_t)small, (size_t)9 * LARGE);
    ta_untrack(DOMAIN, (uintptr_t)small);
}

static void a_domain_goes_with_all_that_it_holds(void)
{
    for (int i = 0; i < 3000; i++)
        small[i] = ta_domain_malloc(DOMAIN, SMALL);
    ta_domain_destroy(DOMAIN);
}

static int had_counters;

static void *free_without_counters(void *block)
{
    ta__memory_inject_failure(1, 1);
    ta_free(block);
    ta__memory_inject_failure(0, 0);
    had_counters = ta__self->counts != NULL;
    return NULL;
}

/* By a thread that finds no memory for counters. */
static void another_thread_frees(void)
{
    pthread_t thread;
    get(large, 1, 40000);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, free_without_counters, large[0]));
    pthread_join(thread, NULL);
    TEST_ASSERT_FALSE(had_counters);
}

/* Less than a thread flushes. */
static void few_bytes_come_and_go(void)
{
    get(small, 60, SMALL);
    release(small, 60);
}

static void test_list_of_the_peak_is_of_the_peak_however_it_ends(void)
{
    static const struct {
        const char *name;
        void (*happens)(void);
        size_t unseen; /* what falls before anybody looks, and a step of what may grow before that */
    } falls[] = {
        {"small ones", small_ones_grow_and_go, TA__FLUSH_BYTES + 4096},
        {"a large one", a_large_one_goes_at_once, 0},
        {"large ones", large_ones_go_one_by_one, 0},
        {"one that shrinks", a_large_one_shrinks, 0},
        {"tracked memory", what_is_tracked_goes, 0},
        {"a domain", a_domain_goes_with_all_that_it_holds, 0},
        {"a block that another thread frees", another_thread_frees, 0},
        {"few bytes", few_bytes_come_and_go, 1024 + SMALL},
    };
    for (size_t i = 0; i < sizeof falls / sizeof *falls; i++) {
        ta_clear_traces();
        size_t before = current();
        falls[i].happens();
        size_t highest = peak();
        TEST_ASSERT_TRUE_MESSAGE(highest > before + 60 * SMALL - 1 && current() < highest, falls[i].name);
        TEST_ASSERT_TRUE_MESSAGE(listed() + highest / 100 + falls[i].unseen >= highest, falls[i].name);
        TEST_ASSERT_TRUE_MESSAGE(listed() <= highest, falls[i].name);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_list_of_the_peak_is_of_the_peak_however_it_ends); /* while there is one thread */
    RUN_TEST(test_what_was_reported_once_does_not_fall);
    RUN_TEST(test_what_lived_while_all_rested_counts_though_nobody_looked);
    RUN_TEST(test_random_work_of_several_threads);
    RUN_TEST(test_one_thread_is_exact);
    RUN_TEST(test_after_a_reset_the_peak_is_what_lives);
    return UNITY_END();
}
