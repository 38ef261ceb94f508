/* test_domains_destroy.c: the end of domains, arenas, and threads that go on meanwhile. Runs stopped and, with
 * TA_TEST_FRAMES=n, traced. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "unity.h"

#include "tests/support/domains.h"
#include "tests/support/names.h"

static uint64_t invalid_frees(void)
{
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    return health.invalid_frees;
}

static size_t traced(void)
{
    size_t current;
    ta_get_traced_memory(&current, NULL);
    return current;
}

static void test_destroy_frees_all_blocks_at_once(void)
{
    size_t before = traced();
    for (int i = 0; i < 10000; i++)
        TEST_ASSERT_NOT_NULL(ta_domain_malloc(7, (size_t)(i % 700)));
    TEST_ASSERT_NOT_NULL(ta_domain_malloc(7, 40 << 20));
    TEST_ASSERT_NOT_NULL(ta_domain_aligned_alloc(7, 1 << 16, 100));
    TEST_ASSERT_EQUAL_UINT64(10002, stats_of(7).live_blocks);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(7));
    TEST_ASSERT_EQUAL_UINT64(before, traced());
    struct ta_domain_stats stats;
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_get_stats(7, &stats, sizeof stats));
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_destroy(7));
    TEST_ASSERT_EQUAL_INT(ENOENT, errno);
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_destroy(0));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

static long resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Of each domain some blocks were freed before, in no order; all that is left goes with it. */
static void test_memory_of_destroyed_domains_is_used_again(void)
{
    enum { BLOCKS = 1600, BYTES = 8000, ROUNDS = 30 };
    static void *blocks[BLOCKS];
    long before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = ta_domain_malloc(77, BYTES);
            TEST_ASSERT_NOT_NULL(blocks[i]);
            memset(blocks[i], round, BYTES);
        }
        for (int i = 0; i < BLOCKS; i += 8) { /* neighbours, one after the other */
            free(blocks[i + 1]);
            free(blocks[i]);
        }
        TEST_ASSERT_EQUAL_UINT64(BLOCKS - BLOCKS / 4, stats_of(77).live_blocks);
        TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(77));
        if (round == 2)
            before = resident_bytes();
    }
    TEST_ASSERT_LESS_THAN_INT64(before + ROUNDS * BLOCKS * (int64_t)BYTES / 4, resident_bytes());
}

static void test_number_begins_a_new_life(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(8, "first"));
    struct ta_domain_limit limit = {.hard = 100};
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(8, &limit));
    void *old = ta_domain_malloc(8, 50);
    TEST_ASSERT_NOT_NULL(old);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(8));
    TEST_ASSERT_EQUAL_STRING("", ta_domain_name(8));
    void *fresh = ta_domain_malloc(8, 500);
    TEST_ASSERT_NOT_NULL(fresh);
    TEST_ASSERT_EQUAL_UINT64(500, stats_of(8).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(500, stats_of(8).peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(8).hard_limit);
    free(fresh);
}

static void test_scope_of_a_destroyed_domain_goes_on_in_the_new_life(void)
{
    ta_domain_push(9);
    void *old = malloc(10);
    TEST_ASSERT_NOT_NULL(old);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(9));
    void *fresh = malloc(20);
    uint32_t home = 0;
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(fresh, &home));
    TEST_ASSERT_EQUAL_UINT32(9, home);
    ta_domain_pop();
    ta_domain_push(9); /* what the stack of scopes remembered is of the past */
    void *again = malloc(30);
    ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT64(50, stats_of(9).live_bytes);
    free(fresh), free(again);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(9).live_bytes);
}

static void test_stale_pointers_are_counted_and_ignored(void)
{
    enum { COUNT = 100 };
    void *stale[COUNT];
    for (int i = 0; i < COUNT; i++)
        stale[i] = ta_domain_malloc(10, 40 + (size_t)i);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(10));
    uint64_t before = invalid_frees();
    for (int i = 0; i < COUNT; i++)
        free(stale[i]);
    TEST_ASSERT_EQUAL_UINT64(before + COUNT, invalid_frees());
    uint32_t home;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_of(stale[0], &home));
}

static void test_arena_is_reached_only_by_those_who_ask(void)
{
    uint32_t arena = 0;
    uint32_t home = 99;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_create_arena(&arena));
    TEST_ASSERT_TRUE(stats_of(arena).is_arena);
    ta_domain_push(11);
    ta_domain_push(arena);
    TEST_ASSERT_EQUAL_UINT32(arena, ta_domain_current());
    void *ambient = malloc(10);
    void *asked = ta_domain_malloc(ta_domain_current(), 10);
    ta_domain_push_arena(arena);
    void *deep = malloc(10);
    ta_domain_pop();
    ta_domain_pop();
    ta_domain_pop();
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(ambient, &home));
    TEST_ASSERT_EQUAL_UINT32(11, home);
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(asked, &home));
    TEST_ASSERT_EQUAL_UINT32(arena, home);
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(deep, &home));
    TEST_ASSERT_EQUAL_UINT32(arena, home);
    TEST_ASSERT_EQUAL_UINT64(20, stats_of(arena).live_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(arena));
    free(ambient);
}

enum { ARENAS = TA_CHECKS >= 2 ? 8000 : 20000, DOMAINS = ARENAS / 2 }; /* walks over all tables take time */

static void test_arenas_one_after_another_use_indexes_again(void)
{
    for (int i = 0; i < ARENAS; i++) {
        uint32_t arena = 0;
        TEST_ASSERT_EQUAL_INT(0, ta_domain_create_arena(&arena));
        for (int block = 0; block < 5; block++)
            TEST_ASSERT_NOT_NULL(ta_domain_malloc(arena, 100));
        TEST_ASSERT_EQUAL_UINT64(500, stats_of(arena).live_bytes);
        TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(arena));
    }
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    TEST_ASSERT_TRUE(health.leaves < ARENAS); /* and so leaves, too; from the 4097th on */
}

/* Not one arena after another but domains at once, of which most share a heap. */
static void test_thousands_of_domains_at_once(void)
{
    enum { COUNT = DOMAINS, FIRST = 100000 };
    size_t before = traced();
    for (uint32_t i = 0; i < COUNT; i++)
        TEST_ASSERT_NOT_NULL(ta_domain_malloc(FIRST + i, 1 + i % 1000));
    for (uint32_t i = 0; i < COUNT; i++) {
        TEST_ASSERT_EQUAL_UINT64(1 + i % 1000, stats_of(FIRST + i).live_bytes);
        TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(FIRST + i));
    }
    TEST_ASSERT_EQUAL_UINT64(before, traced());
}

enum { NEIGHBOURS = 64, NEIGHBOUR_BYTES = 16000 };

/* What lies between neighbours that stand side by side, their headers with it. Answers how many pairs there are. */
static int protect_between(char *const *blocks, int protection)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int pairs = 0;
    for (int i = 0; i + 1 < NEIGHBOURS; i++) {
        uintptr_t first = (uintptr_t)blocks[i], next = (uintptr_t)blocks[i + 1];
        if (next < first || next - first > 2 * NEIGHBOUR_BYTES)
            continue;
        uintptr_t start = (first + page - 1) / page * page, end = (next + NEIGHBOUR_BYTES) / page * page;
        if (mprotect((void *)start, end - start, protection) != 0)
            return 0;
        pairs++;
    }
    return pairs;
}

/* What it takes to destroy a domain is what that domain holds: of blocks of others in the heap that it shares, destroy
 * reads nothing. Here it could not: these cannot be read. */
static void test_destroy_looks_at_no_block_of_others(void)
{
    enum { COUNT = 20, FIRST = 300000, NEIGHBOUR = 299999 };
    static char *blocks[NEIGHBOURS];
    if (getenv("TA_TEST_SHARED") == NULL)
        TEST_IGNORE_MESSAGE("here each domain has a heap of its own");
    if (TA_CHECKS >= 2)
        TEST_IGNORE_MESSAGE("this build walks over all blocks whenever the world stops");
    for (int i = 0; i < NEIGHBOURS; i++) {
        blocks[i] = ta_domain_malloc(NEIGHBOUR, NEIGHBOUR_BYTES);
        TEST_ASSERT_NOT_NULL(blocks[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        for (size_t block = 0; block < 10; block++)
            TEST_ASSERT_NOT_NULL(ta_domain_malloc(FIRST + i, 100));
    int pairs = protect_between(blocks, PROT_NONE), destroyed = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        destroyed += ta_domain_destroy(FIRST + i) == 0;
    protect_between(blocks, PROT_READ | PROT_WRITE);
    TEST_ASSERT_EQUAL_INT(COUNT, destroyed);
    for (int i = 0; i < NEIGHBOURS; i++)
        memset(blocks[i], 1, NEIGHBOUR_BYTES);
    TEST_ASSERT_EQUAL_UINT64(NEIGHBOURS, stats_of(NEIGHBOUR).live_blocks);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(NEIGHBOUR));
    if (pairs == 0)
        TEST_IGNORE_MESSAGE("nothing could be made unreadable here");
}

static void test_scopes_in_which_nothing_is_allocated_take_no_heap(void)
{
    enum { COUNT = 600, FIRST = 200000 };
    if (getenv("TA_TEST_SHARED") != NULL)
        TEST_IGNORE_MESSAGE("no heap is left here");
    for (uint32_t i = 0; i < COUNT; i++) {
        ta_domain_push(FIRST + i);
        ta_domain_pop();
    }
    free(ta_domain_malloc(FIRST + COUNT, 100));
    void *block = ta_domain_malloc(FIRST + COUNT, 100);
    TEST_ASSERT_GREATER_THAN_UINT64(99, ta_domain_usable_bytes(FIRST + COUNT)); /* 0 where heaps are shared */
    free(block);
    for (uint32_t i = 0; i <= COUNT; i++)
        TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(FIRST + i));
}

/* Whatever blocks go through, the domain's end finds those that are left, and nobody else's. */
static void test_destroy_finds_what_is_left_of_many_blocks(void)
{
    enum { COUNT = 2000 };
    static void *blocks[COUNT];
    uint32_t seed = 1;
    char *other = ta_domain_malloc(15, 100);
    memset(other, 7, 100);
    for (int step = 0; step < 40000; step++) {
        seed = seed * 1664525 + 1013904223;
        void **block = &blocks[(seed >> 4) % COUNT];
        size_t size = (seed >> 8) % ((seed >> 30) == 0 ? 100000 : 500);
        uint32_t action = (seed >> 20) % 4;
        if (*block == NULL && action == 0)
            TEST_ASSERT_EQUAL_INT(0, ta_domain_posix_memalign(14, block, (size_t)16 << (seed >> 16) % 5, size));
        else if (action == 1)
            free(*block), *block = NULL;
        else if (action == 2)
            *block = ta_domain_realloc((seed >> 24) % 8 == 0 ? 15 : 14, *block, size + 1);
        else if (*block == NULL)
            *block = ta_domain_malloc(14, size);
        else
            *block = realloc(*block, size + 1);
    }
    size_t left[2] = {0, 0};
    for (int i = 0; i < COUNT; i++) {
        uint32_t home = 0;
        if (blocks[i] != NULL) {
            TEST_ASSERT_EQUAL_INT(1, ta_domain_of(blocks[i], &home));
            left[home == 15]++;
        }
    }
    TEST_ASSERT_EQUAL_UINT64(left[0], stats_of(14).live_blocks);
    TEST_ASSERT_EQUAL_UINT64(left[1] + 1, stats_of(15).live_blocks);
    uint64_t invalid = invalid_frees();
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(14));
    for (int i = 0; i < COUNT; i++) {
        uint32_t home;
        if (blocks[i] != NULL && ta_domain_of(blocks[i], &home))
            free(blocks[i]);
        blocks[i] = NULL;
    }
    TEST_ASSERT_EQUAL_UINT64(invalid, invalid_frees());
    TEST_ASSERT_EQUAL_UINT64(1, stats_of(15).live_blocks);
    for (int i = 0; i < 100; i++)
        TEST_ASSERT_EQUAL_INT(7, other[i]);
    free(other);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 6, ROUNDS = 20000, BOX = 256 };

static struct {
    pthread_mutex_t lock;
    void *blocks[BOX];
} box = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Puts a block of one domain into a box and frees what it finds there, most often another thread's of another domain.
 */
static void *hand_over(void *context)
{
    uint32_t seed = (uint32_t)(uintptr_t)context * 2654435761u + 1;
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t domain = 20 + (seed >> 8) % 5;
        char *block = ta_domain_malloc(domain, 16 + (seed >> 12) % 300);
        block[0] = (char)domain;
        if ((seed >> 20) % 4 == 0)
            block = realloc(block, 16 + (seed >> 10) % 900);
        if (block[0] != (char)domain)
            return (void *)1;
        pthread_mutex_lock(&box.lock);
        char *found = box.blocks[seed % BOX];
        box.blocks[seed % BOX] = block;
        pthread_mutex_unlock(&box.lock);
        free(found);
    }
    return NULL;
}

static void test_blocks_handed_between_threads_and_domains_add_up(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, hand_over, (void *)(uintptr_t)i));
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        TEST_ASSERT_NULL(result);
    }
    for (int i = 0; i < BOX; i++) {
        free(box.blocks[i]);
        box.blocks[i] = NULL;
    }
    uint64_t allocated = 0;
    for (uint32_t domain = 20; domain < 25; domain++) {
        struct ta_domain_stats stats = stats_of(domain);
        TEST_ASSERT_EQUAL_UINT64(0, stats.live_blocks);
        TEST_ASSERT_EQUAL_UINT64(0, stats.live_bytes);
        TEST_ASSERT_EQUAL_UINT64(0, stats.traced_bytes);
        allocated += stats.allocated_blocks;
    }
    TEST_ASSERT_TRUE(allocated >= THREADS * ROUNDS);
}

static int done;
static unsigned lives;

/* Allocates in a domain that is destroyed again and again. Frees nothing: a pointer that may be stale by now could be
 * another thread's live block, and freeing that is nobody's right. Never looks into a block. In each life of the domain
 * a thread asks for so many blocks at most: three that never pause would give each life more than the one before, since
 * in a shared heap the others run on while blocks are freed one by one. */
static void *allocate_in_what_is_destroyed(void *context)
{
    (void)context;
    enum { EACH_LIFE = 300 };
    uintptr_t failed = 0;
    unsigned life = 0, asked = 0;
    for (unsigned i = 0; !__atomic_load_n(&done, __ATOMIC_RELAXED); i++) {
        unsigned now = __atomic_load_n(&lives, __ATOMIC_RELAXED);
        asked = now == life ? asked + 1 : 0;
        life = now;
        if (asked > EACH_LIFE) {
            sched_yield();
            continue;
        }
        failed += ta_domain_malloc(30, 24 + i % 500) == NULL;
        ta_domain_push(30);
        failed += malloc(i % 3000) == NULL;
        ta_domain_pop();
        free(malloc(i % 200));
    }
    return (void *)failed;
}

static void test_destroying_while_others_allocate_is_defined(void)
{
    pthread_t threads[3];
    done = 0;
    for (int i = 0; i < 3; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, allocate_in_what_is_destroyed, NULL));
    int destroyed = 0;
    for (int i = 0; i < 2000; i++) {
        TEST_ASSERT_NOT_NULL(ta_domain_malloc(30, 100));
        destroyed += ta_domain_destroy(30) == 0;
        __atomic_store_n(&lives, (unsigned)i + 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        TEST_ASSERT_NULL(failed);
    }
    TEST_ASSERT_EQUAL_INT(2000, destroyed);
    ta_domain_destroy(30);
    void *block = ta_domain_malloc(30, 100);
    TEST_ASSERT_EQUAL_UINT64(100, stats_of(30).live_bytes);
    free(block);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(30).live_bytes);
}

enum { FREEING_THREADS = 3, FREEING_ROUNDS = 200, HELD = 500 };
static pthread_barrier_t phase;

static void *free_what_is_destroyed(void *context)
{
    (void)context;
    static __thread void *held[HELD];
    for (int round = 0; round < FREEING_ROUNDS; round++) {
        for (int i = 0; i < HELD; i++)
            held[i] = ta_domain_malloc(32, 16 + (size_t)(i % 300));
        pthread_barrier_wait(&phase);
        for (int i = 0; i < HELD; i++)
            free(held[i]);
        pthread_barrier_wait(&phase);
    }
    return NULL;
}

static void test_destroying_while_others_free_is_defined(void)
{
    pthread_t threads[FREEING_THREADS];
    pthread_barrier_init(&phase, NULL, FREEING_THREADS + 1);
    for (int i = 0; i < FREEING_THREADS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, free_what_is_destroyed, NULL));
    int destroyed = 0;
    for (int round = 0; round < FREEING_ROUNDS; round++) {
        pthread_barrier_wait(&phase);
        destroyed += ta_domain_destroy(32) == 0;
        pthread_barrier_wait(&phase);
    }
    for (int i = 0; i < FREEING_THREADS; i++)
        pthread_join(threads[i], NULL);
    TEST_ASSERT_EQUAL_INT(FREEING_ROUNDS, destroyed);
}

static void *fill_and_leave(void *context)
{
    (void)context;
    for (int i = 0; i < 1000; i++)
        if (ta_domain_malloc(31, 100) == NULL)
            return (void *)1;
    return NULL;
}

static void test_blocks_of_threads_that_are_gone_are_destroyed_too(void)
{
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, fill_and_leave, NULL));
        pthread_join(thread, NULL);
    }
    TEST_ASSERT_EQUAL_UINT64(3000, stats_of(31).live_blocks);
    TEST_ASSERT_EQUAL_UINT64(300000, stats_of(31).live_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(31));
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, fill_and_leave, NULL));
    pthread_join(thread, NULL);
    TEST_ASSERT_EQUAL_UINT64(100000, stats_of(31).live_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(31));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_destroy_frees_all_blocks_at_once);
    RUN_TEST(test_memory_of_destroyed_domains_is_used_again);
    RUN_TEST(test_number_begins_a_new_life);
    RUN_TEST(test_scope_of_a_destroyed_domain_goes_on_in_the_new_life);
    RUN_TEST(test_stale_pointers_are_counted_and_ignored);
    RUN_TEST(test_arena_is_reached_only_by_those_who_ask);
    RUN_TEST(test_arenas_one_after_another_use_indexes_again);
    RUN_TEST(test_thousands_of_domains_at_once);
    RUN_TEST(test_destroy_looks_at_no_block_of_others);
    RUN_TEST(test_scopes_in_which_nothing_is_allocated_take_no_heap);
    RUN_TEST(test_destroy_finds_what_is_left_of_many_blocks);
    RUN_TEST(test_blocks_handed_between_threads_and_domains_add_up);
    RUN_TEST(test_destroying_while_others_allocate_is_defined);
    RUN_TEST(test_destroying_while_others_free_is_defined);
    RUN_TEST(test_blocks_of_threads_that_are_gone_are_destroyed_too);
    return UNITY_END();
}
