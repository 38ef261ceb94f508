/* test_reclaim.c: tables of stacks that are bounded by what lives (trace/reclaim.c). Programs that never repeat a stack
 * run on, their tables stay as large as they may be, and every figure is what a book kept beside says. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "base/memory.h"
#include "base/safepoint.h"
#include "trace/contexts.h"
#include "trace/interning.h"
#include "trace/trace.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")

enum { LEVELS = 20, LIVE = 1500, TABLE_KIB = 512, FRAMES = LEVELS + 32 };
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SLOWER = 6 };
#else
enum { SLOWER = 1 };
#endif

/* A block, and the path that asked for it: a bit for each level of recursion says which of two calls was taken. */
struct block {
    void *at;
    size_t size;
    uint32_t path;
};

/* What a thread has done, in all. */
struct book {
    uint64_t blocks, bytes;
    uint64_t random;
    struct block live[LIVE];
};

static uint64_t operations = 300000 / SLOWER;
static void *sites[2]; /* where the two calls return to */

void setUp(void)
{
    ta__trace_configure(&(struct ta__trace_config){.table_memory = (size_t)TABLE_KIB << 10});
    TEST_ASSERT_EQUAL(0, ta_start(TA_NFRAME_MAX));
}

void tearDown(void)
{
    ta_stop();
}

static uint64_t next_random(struct book *book)
{
    book->random = book->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return book->random >> 33;
}

/* ---- stacks without end ------------------------------------------------------------------------------------------ */

NOINLINE static void descend(struct block *block, int level)
{
    if (level == LEVELS) {
        block->at = ta_malloc(block->size);
        KEEP(block);
        return;
    }
    if ((block->path >> level & 1) == 0) {
        descend(block, level + 1);
        __asm__ volatile("nop # one call" ::: "memory");
    } else {
        descend(block, level + 1);
        __asm__ volatile("nop # the other" ::: "memory");
    }
    KEEP(block);
}

/* The path that a stack's frames say, most recent first; UINT32_MAX: none. */
static uint32_t path_of(void *const *frames, size_t count)
{
    uint32_t path = 0;
    size_t first = 0;
    while (first < count && frames[first] != sites[0] && frames[first] != sites[1])
        first++;
    if (first + LEVELS > count)
        return UINT32_MAX;
    for (int i = 0; i < LEVELS; i++) {
        const void *frame = frames[first + (size_t)i];
        if (frame != sites[0] && frame != sites[1])
            return UINT32_MAX;
        path |= (uint32_t)(frame == sites[1]) << (LEVELS - 1 - i);
    }
    return path;
}

static uint32_t path_of_block(const void *at)
{
    void *frames[FRAMES];
    size_t count = ta_get_object_traceback(at, frames, FRAMES, NULL);
    return path_of(frames, count < FRAMES ? count : FRAMES);
}

/* The outermost frame in which two stacks differ that differ in the innermost level. */
static void learn_sites(void)
{
    void *frames[2][FRAMES];
    size_t count[2];
    for (uint32_t side = 0; side < 2; side++) {
        struct block block = {.size = 1, .path = side << (LEVELS - 1)};
        descend(&block, 0);
        count[side] = ta_get_object_traceback(block.at, frames[side], FRAMES, NULL);
        TEST_ASSERT_GREATER_THAN(LEVELS, count[side]);
        TEST_ASSERT_LESS_OR_EQUAL(FRAMES, count[side]);
        ta_free(block.at);
    }
    do {
        TEST_ASSERT_GREATER_THAN(0, --count[0]);
        TEST_ASSERT_GREATER_THAN(0, --count[1]);
    } while (frames[0][count[0]] == frames[1][count[1]]);
    sites[0] = frames[0][count[0]];
    sites[1] = frames[1][count[1]];
    ta_clear_traces();
}

/* Some stacks come all the time, some now and then, and the rest once. */
static uint32_t some_path(struct book *book)
{
    uint64_t choice = next_random(book) % 8;
    uint32_t range = choice == 0 ? 16 : choice == 1 ? 2000 : UINT32_MAX;
    uint32_t path = (uint32_t)(next_random(book) % range);
    return path * UINT32_C(2654435761) % (1u << LEVELS);
}

/* Another block in place of an older one. */
static void replace(struct book *book, struct block *block)
{
    ta_free(block->at);
    block->path = some_path(book);
    block->size = next_random(book) % 200;
    descend(block, 0);
    book->blocks++;
    book->bytes += block->size;
}

static void free_all(struct book *book)
{
    for (int i = 0; i < LIVE; i++)
        ta_free(book->live[i].at);
    memset(book->live, 0, sizeof book->live);
}

/* ---- what the tables say ----------------------------------------------------------------------------------------- */

struct figures {
    uint64_t blocks, bytes, live_blocks, live_bytes, forgotten_blocks;
};

static struct figures look(void)
{
    struct figures sum = {0};
    ta__tables_open();
    for (uint32_t leaf = ta__load_relaxed(&ta__leaf_first); leaf < ta__leaf_count(); leaf++) {
        struct ta__source_counts counts;
        uint32_t flags = ta__leaves()[leaf].flags;
        ta__counters_fold(leaf, 1, &counts);
        sum.blocks += counts.allocated_blocks;
        sum.bytes += counts.allocated_bytes;
        sum.live_blocks += counts.allocated_blocks - counts.freed_blocks;
        sum.live_bytes += counts.allocated_bytes - counts.freed_bytes;
        if ((flags & TA__LEAF_FORGOTTEN) != 0)
            sum.forgotten_blocks += counts.allocated_blocks;
    }
    ta__tables_close();
    return sum;
}

/* What each leaf holds is what blocks of its path there are. */
static void assert_leaves_hold(const struct book *books, int count)
{
    static uint64_t held[1u << LEVELS];
    memset(held, 0, sizeof held);
    for (int b = 0; b < count; b++)
        for (int i = 0; i < LIVE; i++)
            if (books[b].live[i].at != NULL)
                held[books[b].live[i].path] += books[b].live[i].size + 1;
    ta__tables_open();
    for (uint32_t leaf = ta__load_relaxed(&ta__leaf_first); leaf < ta__leaf_count(); leaf++) {
        void *frames[FRAMES];
        struct ta__source_counts counts;
        ta__counters_fold(leaf, 1, &counts);
        uint64_t blocks = counts.allocated_blocks - counts.freed_blocks;
        if (blocks == 0)
            continue;
        size_t frame_count = ta__leaf_frames(leaf, (uint64_t *)frames, FRAMES);
        uint32_t path = path_of(frames, frame_count < FRAMES ? frame_count : FRAMES);
        TEST_ASSERT_NOT_EQUAL(UINT32_MAX, path);
        held[path] -= counts.allocated_bytes - counts.freed_bytes + blocks; /* threads have leaves of their own */
    }
    ta__tables_close();
    for (uint32_t path = 0; path < 1u << LEVELS; path++)
        if (held[path] != 0)
            TEST_ASSERT_EQUAL_UINT64(path, 0);
}

static void assert_exact(const struct book *books, int count)
{
    struct figures sum = look();
    struct figures wanted = {0};
    size_t current;
    for (int b = 0; b < count; b++) {
        wanted.blocks += books[b].blocks;
        wanted.bytes += books[b].bytes;
        for (int i = 0; i < LIVE; i++) {
            const struct block *block = &books[b].live[i];
            if (block->at == NULL)
                continue;
            wanted.live_blocks++;
            wanted.live_bytes += block->size;
            if (i % 16 == 0)
                TEST_ASSERT_EQUAL_HEX32(block->path, path_of_block(block->at));
        }
    }
    TEST_ASSERT_EQUAL_UINT64(wanted.blocks, sum.blocks);
    TEST_ASSERT_EQUAL_UINT64(wanted.bytes, sum.bytes);
    TEST_ASSERT_EQUAL_UINT64(wanted.live_blocks, sum.live_blocks);
    TEST_ASSERT_EQUAL_UINT64(wanted.live_bytes, sum.live_bytes);
    ta_get_traced_memory(&current, NULL);
    TEST_ASSERT_EQUAL_UINT64(wanted.live_bytes, current);
    assert_leaves_hold(books, count);
}

static struct ta_health health(void)
{
    struct ta_health now;
    ta_get_health(&now, sizeof now);
    return now;
}

/* ---- one thread -------------------------------------------------------------------------------------------------- */

static struct book book;

static unsigned generations_of_the_index(void)
{
    unsigned generations = 0;
    for (int i = 0; i < TA__INDEX_GENERATIONS; i++)
        generations += ta__tables.indexes[i].entries != NULL;
    return generations;
}

static void test_stacks_without_end_leave_tables_small_and_figures_exact(void)
{
    unsigned most_generations = 0;
    struct ta_health most = {0};
    learn_sites();
    memset(&book, 0, sizeof book);
    for (uint64_t i = 1; i <= operations; i++) {
        replace(&book, &book.live[next_random(&book) % LIVE]);
        if (i % (operations / 20) == 0) {
            assert_exact(&book, 1);
            struct ta_health now = health();
            most.leaves = now.leaves > most.leaves ? now.leaves : most.leaves;
            most.contexts = now.contexts > most.contexts ? now.contexts : most.contexts;
            unsigned generations = generations_of_the_index();
            most_generations = generations > most_generations ? generations : most_generations;
        }
    }
    TEST_ASSERT_GREATER_THAN_UINT64(book.blocks / 2 * SLOWER / (SLOWER + 1), look().forgotten_blocks);
    /* Half as much again as what lives, and lived at the peak. */
    TEST_ASSERT_LESS_THAN_UINT64(3 * LIVE * LEVELS, most.contexts);
    TEST_ASSERT_LESS_THAN_UINT64(6 * LIVE, most.leaves);
    /* The present index, and those that somebody may still search. */
    TEST_ASSERT_LESS_OR_EQUAL_UINT(3, most_generations);
    TEST_ASSERT_EQUAL_UINT64(0, health().overflowed);
    TEST_ASSERT_EQUAL_UINT64(0, health().lost);
    free_all(&book);
    assert_exact(&book, 1);
}

/* What the list for the peak names must go on meaning what it meant. */
static void test_stacks_of_the_peak_are_kept(void)
{
    const uint64_t *live_bytes;
    uint32_t is_now;
    static uint64_t peak_sizes[1u << LEVELS];
    learn_sites();
    memset(&book, 0, sizeof book);
    for (int i = 0; i < LIVE; i++) {
        struct block *block = &book.live[i];
        *block = (struct block){.size = 10000, .path = (uint32_t)i * 601};
        descend(block, 0);
        peak_sizes[block->path] = block->size;
    }
    free_all(&book);
    book.random = 1;
    for (uint64_t i = 0; i < operations / 2; i++)
        replace(&book, &book.live[i % LIVE]);
    uint32_t count = ta__peak_open(&live_bytes, &is_now);
    TEST_ASSERT_GREATER_THAN(LIVE, count);
    uint64_t found = 0;
    for (uint32_t leaf = ta__load_relaxed(&ta__leaf_first); leaf < count; leaf++) {
        void *frames[FRAMES];
        if (live_bytes[leaf] == 0)
            continue;
        size_t frame_count = ta__leaf_frames(leaf, (uint64_t *)frames, FRAMES);
        uint32_t path = path_of(frames, frame_count < FRAMES ? frame_count : FRAMES);
        TEST_ASSERT_NOT_EQUAL(UINT32_MAX, path);
        TEST_ASSERT_EQUAL_UINT64(peak_sizes[path], live_bytes[leaf]);
        found++;
    }
    ta__peak_close();
    TEST_ASSERT_GREATER_THAN_UINT64(LIVE * 9 / 10, found);
    free_all(&book);
}

/* A snapshot that takes its time: numbers do not change their meaning under it. */
static void test_no_number_is_used_again_while_somebody_reads(void)
{
    learn_sites();
    memset(&book, 0, sizeof book);
    for (uint64_t i = 0; i < operations / 4; i++)
        replace(&book, &book.live[i % LIVE]);
    uint64_t generation = ta__tables_open();
    uint32_t count = ta__leaf_count();
    static struct ta__source_leaf before[1 << 20];
    TEST_ASSERT_LESS_THAN(1 << 20, count);
    memcpy(before, ta__leaves(), count * sizeof *before);
    for (uint64_t i = 0; i < operations / 4; i++)
        replace(&book, &book.live[i % LIVE]);
    TEST_ASSERT_EQUAL_MEMORY(before, ta__leaves(), count * sizeof *before);
    TEST_ASSERT_EQUAL_UINT64(generation, ta__tables_open());
    ta__tables_close();
    ta__tables_close();
    for (uint64_t i = 0; i < operations / 4; i++)
        replace(&book, &book.live[i % LIVE]);
    TEST_ASSERT_NOT_EQUAL(generation, ta__tables_open());
    ta__tables_close();
    assert_exact(&book, 1);
    free_all(&book);
}

static void test_memory_goes_back_after_clear_and_stop(void)
{
    size_t begun = ta_get_tracer_memory();
    learn_sites();
    for (int round = 0; round < 2; round++) {
        memset(&book, 0, sizeof book);
        for (int i = 0; i < LIVE; i++)
            replace(&book, &book.live[i]);
        TEST_ASSERT_GREATER_THAN_UINT64(begun + 200000, ta_get_tracer_memory());
        if (round == 0)
            ta_clear_traces();
        else
            ta_stop();
        TEST_ASSERT_LESS_THAN_UINT64(begun + 100000, ta_get_tracer_memory());
        TEST_ASSERT_EQUAL(0, health().contexts);
        free_all(&book); /* blocks of an epoch that is over */
    }
    TEST_ASSERT_EQUAL(0, ta_start(TA_NFRAME_MAX));
    memset(&book, 0, sizeof book);
    replace(&book, &book.live[0]);
    assert_exact(&book, 1);
    free_all(&book);
}

/* Numbers go on from epoch to epoch, until they begin anew. */
static void test_starting_and_stopping_for_ever_takes_no_memory(void)
{
    size_t after_some = 0;
    int rounds = 4000 / SLOWER;
    for (int i = 0; i < rounds; i++) {
        void *block = ta_malloc(50);
        ta_stop();
        ta_free(block);
        TEST_ASSERT_EQUAL(0, ta_start(TA_NFRAME_MAX));
        if (i == rounds / 10)
            after_some = ta_get_tracer_memory();
    }
    TEST_ASSERT_LESS_THAN_UINT64(after_some + 100000, ta_get_tracer_memory());
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 3, EXCHANGED = 256 };
static struct book books[THREADS];
static void *exchange[EXCHANGED]; /* blocks that another thread frees */
static int is_over;

/* Threads are there before, and until all is looked at: what the library allocates for them is not counted. */
static pthread_barrier_t begin, end, leave;

static void *work(void *argument)
{
    struct book *own = argument;
    uint64_t count = operations / 4;
    pthread_barrier_wait(&begin);
    for (uint64_t i = 0; i < count; i++) {
        struct block *block = &own->live[next_random(own) % LIVE];
        block->at = __atomic_exchange_n(&exchange[next_random(own) % EXCHANGED], block->at, __ATOMIC_ACQ_REL);
        replace(own, block);
    }
    pthread_barrier_wait(&end);
    pthread_barrier_wait(&leave);
    return NULL;
}

static void begin_work(pthread_t *threads, int count)
{
    memset(books, 0, sizeof books);
    memset(exchange, 0, sizeof exchange);
    is_over = 0;
    pthread_barrier_init(&begin, NULL, (unsigned)count + 1);
    pthread_barrier_init(&end, NULL, (unsigned)count + 1);
    pthread_barrier_init(&leave, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        books[i].random = (uint64_t)i;
        TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, work, &books[i]));
    }
}

static void end_work(const pthread_t *threads, int count)
{
    pthread_barrier_wait(&leave);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Snapshots come and go, also long ones. */
static void *read_again_and_again(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        struct figures sum = look();
        const uint64_t *live_bytes;
        uint32_t is_now;
        TEST_ASSERT_LESS_THAN_INT64(INT64_C(1) << 40, (int64_t)sum.live_bytes);
        ta__tables_open();
        if (ta__peak_open(&live_bytes, &is_now) != 0)
            ta__peak_close();
        ta__tables_close();
        ta_get_health(&(struct ta_health){0}, sizeof(struct ta_health));
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    return unused;
}

static void test_threads_free_each_others_blocks_and_figures_are_exact(void)
{
    pthread_t threads[THREADS], reader;
    begin_work(threads, THREADS);
    TEST_ASSERT_EQUAL(0, pthread_create(&reader, NULL, read_again_and_again, NULL));
    learn_sites();
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&end);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < EXCHANGED; i++)
        ta_free(exchange[i]);
    assert_exact(books, THREADS);
    TEST_ASSERT_GREATER_THAN_UINT64(1000, look().forgotten_blocks);
    for (int i = 0; i < THREADS; i++)
        free_all(&books[i]);
    assert_exact(books, THREADS);
    end_work(threads, THREADS);
    pthread_join(reader, NULL);
}

/* Traces are cleared under way: nothing of before is counted, nothing of afterwards lost. */
static void *clear_again_and_again(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        ta_clear_traces();
        for (int i = 0; i < 2000; i++)
            ta_free(ta_malloc(9));
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return unused;
}

static void test_clearing_meanwhile_leaves_only_what_came_after(void)
{
    pthread_t worker, reader, clearer;
    learn_sites();
    begin_work(&worker, 1);
    TEST_ASSERT_EQUAL(0, pthread_create(&reader, NULL, read_again_and_again, NULL));
    TEST_ASSERT_EQUAL(0, pthread_create(&clearer, NULL, clear_again_and_again, NULL));
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&end);
    end_work(&worker, 1);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    pthread_join(clearer, NULL);
    pthread_join(reader, NULL);
    ta_clear_traces();
    struct figures sum = look();
    TEST_ASSERT_EQUAL_UINT64(0, sum.blocks);
    for (int i = 0; i < EXCHANGED; i++)
        ta_free(exchange[i]);
    free_all(&books[0]);
    memset(&books[0], 0, sizeof books[0]);
    for (int i = 0; i < LIVE; i++)
        replace(&books[0], &books[0].live[i]);
    assert_exact(books, 1);
    free_all(&books[0]);
}

/* ---- a thread in the middle of an operation ---- */

static uint32_t stands_inside, may_leave; /* atomic */

/* In an operation, as everybody can see; has forgotten what it knew of leaves, but may still count in one. */
static void *stays_inside(void *unused)
{
    ta_free(ta_malloc(1));
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
    while (!__atomic_load_n(&may_leave, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&ta__self->adapted, ta__gate_read() / TA__GATE_GENERATION, __ATOMIC_SEQ_CST);
        __atomic_store_n(&stands_inside, 1, __ATOMIC_SEQ_CST);
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    __atomic_store_n(&ta__self->safepoint.view, view, __ATOMIC_RELEASE);
    return unused;
}

static void test_no_number_becomes_free_before_each_thread_was_outside(void)
{
    pthread_t thread;
    learn_sites();
    memset(&book, 0, sizeof book);
    for (uint64_t i = 0; i < operations / 4; i++) /* rounds are under way */
        replace(&book, &book.live[i % LIVE]);
    stands_inside = may_leave = 0;
    TEST_ASSERT_EQUAL(0, pthread_create(&thread, NULL, stays_inside, NULL));
    while (!__atomic_load_n(&stands_inside, __ATOMIC_SEQ_CST))
        nanosleep(&(struct timespec){0, 100000}, NULL);
    for (uint64_t i = 0; i < operations / 4; i++) /* the one that was being swept ends */
        replace(&book, &book.live[i % LIVE]);
    uint64_t before = ta__tables_open();
    ta__tables_close();
    for (uint64_t i = 0; i < operations / 2; i++)
        replace(&book, &book.live[i % LIVE]);
    uint64_t inside = ta__tables_open();
    ta__tables_close();
    __atomic_store_n(&may_leave, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    for (uint64_t i = 0; i < operations / 2; i++)
        replace(&book, &book.live[i % LIVE]);
    uint64_t after = ta__tables_open();
    ta__tables_close();
    TEST_ASSERT_EQUAL_UINT64(before, inside);
    TEST_ASSERT_GREATER_THAN_UINT64(inside, after);
    free_all(&book);
}

/* ---- two stacks with one hash ---- */

static uint32_t intern(uint64_t hash, uint64_t outer, uint64_t address)
{
    struct ta__path_frame path[2] = {{.address = outer}, {.address = address}};
    uint32_t gate;
    struct ta__thread *self = ta__begin(&gate);
    uint32_t leaf = ta__leaf_intern(hash, 0, path, 2, 2, 0, 0);
    ta__end(self, gate);
    uint32_t context = ta__leaves()[leaf].context;
    TEST_ASSERT_EQUAL_UINT32(context, path[1].context);
    TEST_ASSERT_EQUAL_UINT32(ta__contexts()[context].parent, path[0].context);
    return leaf;
}

/* Which of them a hash without the whole stack means nobody can say: it is never found without being compared. */
static void tell_apart(uint64_t hash, const uint64_t (*path)[2])
{
    uint32_t one = intern(hash, path[0][0], path[0][1]);
    TEST_ASSERT_EQUAL_UINT32(0, ta__leaf_find(hash)); /* seen once */
    uint32_t two = intern(hash, path[1][0], path[1][1]);
    TEST_ASSERT_TRUE(one != 0 && two != 0 && one != two);
    for (int i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_UINT32(0, ta__leaf_find(hash));
        TEST_ASSERT_EQUAL_UINT32(one, intern(hash, path[0][0], path[0][1]));
        TEST_ASSERT_EQUAL_UINT32(0, ta__leaf_find(hash));
        TEST_ASSERT_EQUAL_UINT32(two, intern(hash, path[1][0], path[1][1]));
    }
    uint32_t three = intern(hash, path[2][0], path[2][1]);
    TEST_ASSERT_TRUE(three != one && three != two);
    TEST_ASSERT_EQUAL_UINT32(0, ta__leaf_find(hash));
}

static void test_stacks_with_one_hash_are_told_apart_and_never_believed(void)
{
    const uint64_t hash = ta__leaf_hash(0x1234567, 2, 0), other = ta__leaf_hash(0x7654321, 2, 0);
    const uint64_t within = (uintptr_t)&intern; /* an object that is loaded, and addresses that belong to none */
    const uint64_t inner[3][2] = {{77, 1000}, {77, 2000}, {77, 3000}};
    const uint64_t loaded_inner[3][2] = {{within, within + 1}, {within, within + 2}, {within, within + 3}};
    const uint64_t loaded_outer[3][2] = {{within + 1, within}, {within + 2, within}, {within + 3, within}};
    const uint64_t any[3][2] = {{within, 1000}, {1000, within}, {1000, 2000}};
    TEST_ASSERT_EQUAL(0, ta_start(10));
    ta_free(ta_malloc(1)); /* the tables are there */
    tell_apart(hash, inner);
    tell_apart(hash ^ 2, loaded_inner);
    tell_apart(hash ^ 4, loaded_outer);
    tell_apart(hash ^ 8, any);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t address = i == 0 ? 1000 : within + 1;
        uint32_t alone = intern(other ^ 2 * i, 77, address);
        TEST_ASSERT_EQUAL_UINT32(alone, intern(other ^ 2 * i, 77, address)); /* compared: from now on it is believed */
        TEST_ASSERT_EQUAL_UINT32(alone, ta__leaf_find(other ^ 2 * i));
    }
    ta_stop();
}

/* A stack that was met once is compared with what is interned: as far as the beginning that is known, and no further. */
static void test_a_stack_met_again_is_the_same_where_it_goes_on_from_another_one(void)
{
    const uint64_t hash = ta__leaf_hash(0x1234567, 3, 0), within = (uintptr_t)&intern;
    TEST_ASSERT_EQUAL(0, ta_start(10));
    ta_free(ta_malloc(1));
    uint32_t ways[2];
    for (uint64_t i = 0; i < 2; i++) /* two beginnings */
        ways[i] = ta__leaves()[intern(ta__leaf_hash(i, 2, 0), within + i, within)].context;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            struct ta__path_frame path = {.address = within + 9};
            uint32_t gate;
            struct ta__thread *self = ta__begin(&gate);
            uint32_t leaf = ta__leaf_intern(hash, ways[i], &path, 1, 3, 0, 0);
            ta__end(self, gate);
            TEST_ASSERT_EQUAL_UINT32(path.context, ta__leaves()[leaf].context);
            TEST_ASSERT_EQUAL_UINT32(ways[i], ta__contexts()[path.context].parent);
        }
    ta_stop();
}

/* Of three stacks, the second branches off in its innermost call, the third in the one that is further out. */
NOINLINE static void three_stacks(struct block *blocks)
{
    static const uint32_t paths[3] = {0, UINT32_C(1) << (LEVELS - 1), UINT32_C(1) << (LEVELS - 2)};
    for (int i = 0; i < 3; i++) {
        blocks[i] = (struct block){.size = 1, .path = paths[i]};
        descend(&blocks[i], 0);
    }
    KEEP(blocks);
}

/* An only child is found by its parent, others in the index, and each is found again: the same stacks in another domain
 * have the same contexts. */
static void test_only_children_are_in_no_index_and_none_is_made_twice(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    TEST_IGNORE_MESSAGE(
        "sanitizers leave no jumps to other functions: another domain's request has another frame of ours");
#endif
    struct block blocks[2][3];
    uint32_t indexed[2], used[2];
    for (volatile uint32_t i = 0; i < 2; i++) { /* one call for both */
        ta_domain_push(7 * i);
        three_stacks(blocks[i]);
        ta_domain_pop();
        indexed[i] = ta__tables.children_used;
        used[i] = ta__contexts_used();
    }
    TEST_ASSERT_EQUAL_UINT32(used[0], used[1]);
    TEST_ASSERT_EQUAL_UINT32(indexed[0], indexed[1]);
    TEST_ASSERT_GREATER_OR_EQUAL_UINT32(4, indexed[0]);
    TEST_ASSERT_LESS_THAN_UINT32(used[0] / 2, indexed[0]);
    for (int i = 0; i < 6; i++) {
        const struct block *block = &blocks[i / 3][i % 3];
        TEST_ASSERT_EQUAL_UINT32(block->path, path_of_block(block->at));
        ta_free(block->at);
    }
}

NOINLINE static void *through(void *(*ask)(size_t size))
{
    void *block = ask(1);
    KEEP(block);
    return block;
}

static uint32_t context_of(const void *block)
{
    return ta__leaves()[ta__mark_leaf(ta__mark_of(block))].context;
}

NOINLINE static void *further_in(size_t size)
{
    void *block = ta_malloc(size);
    KEEP(block);
    return block;
}

/* Who asks stands in a frame that asks itself, so that it stays when the only one further in is gone. */
static void test_an_only_child_whose_number_is_free_is_no_child_any_more(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("this sanitizer leaves no jumps to other functions: the return address is one of ours");
#endif
    void *(*volatile asks[])(size_t size) = {ta_malloc, further_in};
    void *blocks[2];
    for (volatile int i = 0; i < 2; i++) /* one call for both */
        blocks[i] = through(asks[i]);
    uint32_t context = context_of(blocks[0]);
    TEST_ASSERT_EQUAL_UINT32(context_of(blocks[1]), ta__tables.latest_child[context]);
    TEST_ASSERT_EQUAL_UINT32(context, ta__contexts()[context_of(blocks[1])].parent);
    ta_free(blocks[1]);
    for (uint32_t path = 0; path < 200000 && ta__tables.latest_child[context] != 0; path++) {
        struct block block = {.size = 1, .path = path};
        descend(&block, 0);
        ta_free(block.at);
    }
    TEST_ASSERT_EQUAL_UINT32(0, ta__tables.latest_child[context]);
    ta_free(blocks[0]);
}

/* Indexes are as large as what they index, and of those that they replaced nothing is left. */
static void test_indexes_that_grew_leave_no_memory_behind(void)
{
    enum { STACKS = 3000 };
    static struct block blocks[STACKS];
    ta_stop();
    ta__trace_configure(&(struct ta__trace_config){.table_memory = 64 << 20});
    TEST_ASSERT_EQUAL_INT(0, ta_start(TA_NFRAME_MAX));
    uint64_t before = ta__leaf_index->mask;
    for (uint32_t i = 0; i < STACKS; i++) {
        blocks[i] = (struct block){.size = 1, .path = i};
        descend(&blocks[i], 0);
    }

    TEST_ASSERT_TRUE(ta__leaf_index->mask > before);
    TEST_ASSERT_TRUE(ta__leaf_index->mask < 4 * (uint64_t)ta__leaves_used());
    TEST_ASSERT_TRUE(ta__tables.children_mask < 4 * (uint64_t)ta__contexts_used());
    for (int i = 0; i < TA__INDEX_GENERATIONS; i++) {
        const struct ta__leaf_index *index = &ta__tables.indexes[i];
        size_t bytes = (index->mask + 1) * sizeof *index->entries;
        if (index->entries != NULL && index != ta__leaf_index)
            TEST_ASSERT_EQUAL_size_t(0, ta__memory_resident(index->entries, bytes));
    }
    for (uint32_t i = 0; i < STACKS; i++)
        ta_free(blocks[i].at);
}

int main(int count, char **arguments)
{
    if (count > 1)
        operations = strtoull(arguments[1], NULL, 10);
    static char text[BUFSIZ];
    setvbuf(stdout, text, _IOLBF, sizeof text); /* what is printed is not counted */
    UNITY_BEGIN();
    RUN_TEST(test_indexes_that_grew_leave_no_memory_behind); /* first: one of them never shrinks */
    RUN_TEST(test_stacks_without_end_leave_tables_small_and_figures_exact);
    RUN_TEST(test_stacks_of_the_peak_are_kept);
    RUN_TEST(test_no_number_is_used_again_while_somebody_reads);
    RUN_TEST(test_memory_goes_back_after_clear_and_stop);
    RUN_TEST(test_starting_and_stopping_for_ever_takes_no_memory);
    RUN_TEST(test_threads_free_each_others_blocks_and_figures_are_exact);
    RUN_TEST(test_clearing_meanwhile_leaves_only_what_came_after);
    RUN_TEST(test_no_number_becomes_free_before_each_thread_was_outside);
    RUN_TEST(test_stacks_with_one_hash_are_told_apart_and_never_believed);
    RUN_TEST(test_a_stack_met_again_is_the_same_where_it_goes_on_from_another_one);
    RUN_TEST(test_only_children_are_in_no_index_and_none_is_made_twice);
    RUN_TEST(test_an_only_child_whose_number_is_free_is_no_child_any_more);
    return UNITY_END();
}
