/* test_usual_ways.c: realloc, calloc, aligned blocks and frees elsewhere, on the ways that are made for speed — what they
 * count is exact to the byte, and blocks are what was asked for. A process of its own: whoever once tracked an address, as
 * the tests of parity do, goes the slow way from then on. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "tests/support/random.h"
#include "tests/support/traced_now.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

#define NOINLINE __attribute__((noinline, noclone))

static const int limits[] = {1, 20};
static const size_t sizes[] = {1, 8, 24, 60, 64, 100, 120, 128, 500, 900, 1000, 1024, 1025, 4000, 16000, 20000, 40000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

void setUp(void)
{
}

void tearDown(void)
{
    ta_stop();
}

static void fill(unsigned char *block, size_t size, unsigned char first)
{
    for (size_t i = 0; i < size; i++)
        block[i] = (unsigned char)(first + i);
}

static void expect_filled(const unsigned char *block, size_t size, unsigned char first)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != (unsigned char)(first + i))
            TEST_FAIL_MESSAGE("a byte of the block is another");
}

static void *innermost(const void *block)
{
    void *frames[1] = {NULL};
    size_t total;
    TEST_ASSERT_GREATER_THAN(0, ta_get_object_traceback(block, frames, 1, &total));
    return frames[0];
}

static void for_each_limit(void (*check)(void))
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        TEST_ASSERT_EQUAL(0, ta_start(limits[i]));
        check();
        TEST_ASSERT_EQUAL(0, current());
        ta_stop();
    }
}

/* ---- epochs ---- */

static void blocks_of_two_epochs(void)
{
    enum { BLOCKS = 300 };
    void *before[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        before[i] = ta_malloc(100);
    TEST_ASSERT_EQUAL(BLOCKS * 100, current());
    ta_clear_traces();
    TEST_ASSERT_EQUAL(0, current());
    void *after = ta_malloc(50);
    for (int i = 0; i < BLOCKS; i++) {
        ta_free(before[i]);
        TEST_ASSERT_EQUAL(50, current());
    }
    ta_free(after);
}

static void test_a_block_of_an_earlier_epoch_is_not_counted_out(void)
{
    for_each_limit(blocks_of_two_epochs);
}

/* ---- realloc ---- */

NOINLINE static void *asked_here(void *block, size_t size)
{
    block = ta_realloc(block, size);
    __asm__ volatile("");
    return block;
}

static void add_in_use(void *heap, uint32_t domain, void *sum)
{
    (void)domain;
    *(size_t *)sum += ta__heap_in_use(heap);
}

static size_t held_by_heaps(void)
{
    size_t sum = ta__heap_in_use(ta__plain_heap);
    ta__domain_heaps(add_in_use, &sum);
    return sum;
}

/* Where a page has no block at hand, one is taken from what came back to it: one, and it is the one that is used. */
static void back_and_forth(void)
{
    enum { BLOCKS = 3000, ROUNDS = 40 };
    static void *blocks[BLOCKS];
    size_t before = 0;
    uint32_t random = 77;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = ta_malloc(40);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2 * BLOCKS; i++) {
            random = random * 1103515245 + 12345;
            void **place = &blocks[(random >> 8) % BLOCKS];
            *place = asked_here(*place, (random >> 28) % 2 == 0 ? 600 : 40);
        }
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = asked_here(blocks[i], 40);
        if (round == 1)
            before = held_by_heaps();
    }
    TEST_ASSERT_LESS_OR_EQUAL_size_t(before + 16384, held_by_heaps());
    for (int i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);
}

static void test_realloc_leaves_no_block_behind(void)
{
    for_each_limit(back_and_forth);
}

static void from_each_size_to_each(void)
{
    for (size_t i = 0; i < SIZES * SIZES; i++) {
        size_t from = sizes[i / SIZES], to = sizes[i % SIZES];
        unsigned char *block = ta_malloc(from);
        fill(block, from, (unsigned char)i);
        void *who = innermost(block);
        block = asked_here(block, to);
        expect_filled(block, from < to ? from : to, (unsigned char)i);
        TEST_ASSERT_EQUAL(to, ta_usable_size(block));
        TEST_ASSERT_EQUAL(to, current());
        TEST_ASSERT_NOT_EQUAL(who, innermost(block));
        TEST_ASSERT_EQUAL(0, (uintptr_t)block % 16);
        ta_free(block);
        TEST_ASSERT_EQUAL(0, current());
    }
}

static void test_realloc_is_a_free_and_a_malloc(void)
{
    for_each_limit(from_each_size_to_each);
}

/* So many that pages fill up and empty. */
static void change_many(void)
{
    enum { BLOCKS = 5000, CHANGES = 40000 };
    static unsigned char *blocks[BLOCKS];
    static size_t held[BLOCKS];
    size_t sum = 0;
    uint64_t random = 7;
    memset(blocks, 0, sizeof blocks);
    memset(held, 0, sizeof held);
    for (int i = 0; i < CHANGES; i++) {
        size_t at = (size_t)(random_next(&random) % BLOCKS);
        size_t size = (size_t)(random_next(&random) % 300) + 1;
        blocks[at] = ta_realloc(blocks[at], size);
        expect_filled(blocks[at], held[at] < size ? held[at] : size, (unsigned char)at);
        fill(blocks[at], size, (unsigned char)at);
        sum += size - held[at];
        held[at] = size;
        TEST_ASSERT_EQUAL(sum, current());
    }
    for (int i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);
}

static void test_many_blocks_change(void)
{
    for_each_limit(change_many);
}

static void move_once(void)
{
    void *block = ta_malloc(600);
    ta_reset_peak();
    block = ta_realloc(block, 1000);
    TEST_ASSERT_EQUAL(1000, peak());
    ta_free(block);
}

static void test_a_move_is_no_peak_of_both(void)
{
    for_each_limit(move_once);
}

/* ---- others' blocks ---- */

/* What the C library has for the thread is counted, too. */
struct handed {
    void *blocks[100];
    int is_right;
};

static void *grow_and_free(void *argument)
{
    struct handed *handed = argument;
    size_t others = current() - 100 * 64;
    for (int i = 0; i < 100; i++)
        handed->blocks[i] = ta_realloc(handed->blocks[i], i % 2 == 0 ? 60 : 700);
    handed->is_right = current() - others == 50 * 60 + 50 * 700;
    for (int i = 0; i < 100; i++)
        ta_free(handed->blocks[i]);
    handed->is_right &= current() == others;
    return NULL;
}

static void test_another_thread_changes_and_frees(void)
{
    for (size_t limit = 0; limit < sizeof limits / sizeof limits[0]; limit++) {
        struct handed handed;
        pthread_t thread;
        TEST_ASSERT_EQUAL(0, ta_start(limits[limit]));
        for (int i = 0; i < 100; i++)
            handed.blocks[i] = i % 3 == 0 ? ta_aligned_alloc(64, 64) : ta_malloc(64);
        TEST_ASSERT_EQUAL(0, pthread_create(&thread, NULL, grow_and_free, &handed));
        TEST_ASSERT_EQUAL(0, pthread_join(thread, NULL));
        TEST_ASSERT_TRUE(handed.is_right);
        ta_stop();
    }
}

/* ---- aligned, zeroed ---- */

static void align_each(void)
{
    for (size_t alignment = 8; alignment <= 2048; alignment *= 2)
        for (int i = 0; i < SIZES; i++) {
            unsigned char *blocks[3] = {ta_aligned_alloc(alignment, sizes[i]), ta_memalign(alignment, sizes[i]), NULL};
            TEST_ASSERT_EQUAL(0, ta_posix_memalign((void **)&blocks[2], alignment, sizes[i]));
            TEST_ASSERT_EQUAL(3 * sizes[i], current());
            for (int each = 0; each < 3; each++) {
                TEST_ASSERT_EQUAL(0, (uintptr_t)blocks[each] % alignment);
                TEST_ASSERT_EQUAL(sizes[i], ta_usable_size(blocks[each]));
                fill(blocks[each], sizes[i], (unsigned char)each);
            }
            for (int each = 0; each < 3; each++) {
                expect_filled(blocks[each], sizes[i], (unsigned char)each);
                ta_free(blocks[each]);
                TEST_ASSERT_EQUAL((size_t)(2 - each) * sizes[i], current());
            }
        }
}

static void test_aligned_blocks_are_counted_and_freed(void)
{
    for_each_limit(align_each);
}

/* ---- small aligned ones with a header, which stand at lines ---- */

enum { LINED = 3000 };
static void *lined[LINED];

static size_t lined_size(int i)
{
    return (size_t)(i * 37 % 1030);
}

static void *line_up(void *bytes)
{
    for (int i = 0; i < LINED; i++) {
        lined[i] = ta_aligned_alloc(i % 2 == 0 ? 64 : 32, lined_size(i));
        *(size_t *)bytes += lined_size(i);
    }
    return NULL;
}

static void count_lined(const struct ta__source_block *block, void *found)
{
    for (int i = 0; i < LINED; i += 100)
        *(int *)found += block->address == (uintptr_t)lined[i] && block->size == lined_size(i);
}

static int walk_finds(void)
{
    int found = 0;
    TEST_ASSERT_EQUAL(TA__STOP_DONE, ta__safepoint_stop(&ta__self->safepoint));
    ta__blocks_visit(count_lined, &found);
    ta__safepoint_resume(&ta__self->safepoint);
    return found;
}

static void free_lined(void)
{
    for (int i = 0; i < LINED; i++)
        ta_free(lined[i]);
}

static void see_lined(void)
{
    size_t bytes = 0;
    uint64_t before = ta_domain_usable_bytes(0);
    line_up(&bytes);
    TEST_ASSERT_EQUAL(bytes, current());
    TEST_ASSERT_GREATER_OR_EQUAL_UINT64(before + bytes, ta_domain_usable_bytes(0));
    TEST_ASSERT_EQUAL(LINED / 100, walk_finds());
    for (int i = 0; i < LINED; i++) {
        TEST_ASSERT_EQUAL(0, (uintptr_t)lined[i] % (i % 2 == 0 ? 64 : 32));
        TEST_ASSERT_EQUAL(lined_size(i), ta_usable_size(lined[i]));
        fill(lined[i], lined_size(i), (unsigned char)i);
    }
    for (int i = 0; i < LINED; i++)
        expect_filled(lined[i], lined_size(i), (unsigned char)i);
    free_lined();
    TEST_ASSERT_EQUAL(0, current());
}

static void test_small_aligned_blocks_stand_at_lines(void)
{
    for_each_limit(see_lined);
}

/* Behind one that ended, and after the end of the tracing. */
static void test_lines_that_a_thread_left(void)
{
    for (size_t limit = 0; limit < sizeof limits / sizeof limits[0]; limit++)
        for (int stops = 0; stops < 2; stops++) {
            size_t bytes = 0;
            pthread_t thread;
            TEST_ASSERT_EQUAL(0, ta_start(limits[limit]));
            size_t before = current();
            TEST_ASSERT_EQUAL(0, pthread_create(&thread, NULL, line_up, &bytes));
            TEST_ASSERT_EQUAL(0, pthread_join(thread, NULL));
            TEST_ASSERT_EQUAL(LINED / 100, walk_finds());
            if (stops)
                ta_stop();
            else
                TEST_ASSERT_GREATER_OR_EQUAL(before + bytes, current());
            uint64_t had = ta_domain_usable_bytes(0);
            free_lined();
            TEST_ASSERT_LESS_OR_EQUAL_UINT64(had - bytes, ta_domain_usable_bytes(0));
            ta_stop();
        }
}

static void zero_each(void)
{
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < SIZES; i++) {
            unsigned char *block = ta_calloc(1, sizes[i]);
            for (size_t at = 0; at < sizes[i]; at++)
                TEST_ASSERT_EQUAL(0, block[at]);
            TEST_ASSERT_EQUAL(sizes[i], current());
            memset(block, 0xFF, sizes[i]);
            ta_free(block);
        }
}

static void test_calloc_is_zero_and_counted(void)
{
    for_each_limit(zero_each);
}

/* ---- every size, from several sites in any order ---- */

enum { HELD = 300, CALLS = 3, PLACES = 3 * CALLS };
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) /* they look at each byte */
enum { ROUNDS = 5 };
#else
enum { ROUNDS = 40 };
#endif

/* By malloc, calloc or realloc; the three are told apart by where they are called. */
TA_INLINE void *ask(unsigned call, size_t size)
{
    void *block;
    if (call == 0) {
        block = ta_malloc(size);
        __asm__ volatile("nop # one");
    } else if (call == 1) {
        block = ta_calloc(size, 1);
        __asm__ volatile("nop # another");
    } else {
        block = ta_realloc(ta_malloc(size / 2 + 1), size);
        __asm__ volatile("nop # the third");
    }
    return block;
}

NOINLINE static void *ask_there(unsigned call, size_t size)
{
    return ask(call, size);
}

NOINLINE static void *ask_elsewhere(unsigned call, size_t size)
{
    void *block = ask_there(call, size);
    __asm__ volatile("nop # a frame more");
    return block;
}

struct held {
    unsigned char *block;
    size_t size;
    unsigned char first;
};

static int is_zero(const unsigned char *block, size_t size)
{
    while (size > 0 && block[size - 1] == 0)
        size--;
    return size == 0;
}

/* Answers what it has now. */
static struct held get_another(uint64_t *random, void **places)
{
    static const size_t limits_of_sizes[] = {300, 1500, 1500, 17000, 70000};
    size_t limit = limits_of_sizes[random_below(random, sizeof limits_of_sizes / sizeof *limits_of_sizes)];
    struct held held = {.size = random_below(random, limit) + 1, .first = (unsigned char)random_below(random, 256)};
    unsigned place = (unsigned)random_below(random, PLACES), call = place % CALLS;
    if (place < CALLS)
        held.block = ask(call, held.size);
    else
        held.block = place < 2 * CALLS ? ask_there(call, held.size) : ask_elsewhere(call, held.size);
    void *who = innermost(held.block);
    unsigned known = place < CALLS ? place : CALLS + call; /* of the two last kinds, the innermost frame is the same */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* there the innermost frame is one of ours */
    TEST_ASSERT_TRUE(places[known] == NULL || places[known] == who);
#endif
    places[known] = who;
    TEST_ASSERT_EQUAL(0, (uintptr_t)held.block % 16);
    TEST_ASSERT_EQUAL(held.size, ta_usable_size(held.block));
    TEST_ASSERT_TRUE(call != 1 || is_zero(held.block, held.size));
    fill(held.block, held.size, held.first);
    return held;
}

static void ask_for_everything(void)
{
    static struct held all[HELD];
    void *places[2 * CALLS] = {NULL};
    uint64_t random = 11;
    size_t sum = 0;
    memset(all, 0, sizeof all);
    for (int i = 0; i < ROUNDS * HELD; i++) {
        struct held *one = &all[random_below(&random, HELD)];
        expect_filled(one->block, one->size, one->first);
        ta_free(one->block);
        sum -= one->size;
        *one = get_another(&random, places);
        sum += one->size;
        TEST_ASSERT_EQUAL(sum, current());
    }
    for (int i = 0; i < HELD; i++)
        ta_free(all[i].block);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    for (int i = 0; i < 2 * CALLS; i++)
        for (int other = 0; other < i; other++)
            TEST_ASSERT_TRUE(places[i] != NULL && places[i] != places[other]);
#endif
}

static void test_every_size_is_right_from_everywhere(void)
{
    for_each_limit(ask_for_everything);
}

/* ---- and what that counts as a peak ---- */

static void grow_and_fall(void)
{
    enum { ROWS = 40 };
    void *blocks[ROWS][CALLS];
    size_t most = 0;
    for (int i = 0; i < ROWS; i++)
        for (unsigned call = 0; call < 2; call++) {
            blocks[i][call] = ask(call, 100 + (size_t)i * 200);
            most += 100 + (size_t)i * 200;
            TEST_ASSERT_EQUAL(most, peak());
            TEST_ASSERT_TRUE(call != 1 || is_zero(blocks[i][call], 100 + (size_t)i * 200));
            memset(blocks[i][call], 0xFF, 100 + (size_t)i * 200);
        }
    for (int i = 0; i < ROWS; i++)
        for (unsigned call = 0; call < 2; call++)
            ta_free(blocks[i][call]);
    ta_free(ask(1, most - 1));
    TEST_ASSERT_EQUAL(most, peak());
}

static void grow_and_fall_again(void)
{
    for (int round = 0; round < 3; round++) { /* blocks are used again */
        grow_and_fall();
        ta_reset_peak();
    }
}

static void test_each_new_high_is_seen(void)
{
    for_each_limit(grow_and_fall_again);
}

/* Two call sites that no other test has: what the tables hold grows by their stacks. */
static void see_health(void)
{
    struct ta_health before, after;
    ta_get_health(&before, sizeof before);
    void *volatile one = ta_malloc(1);
    void *volatile other = ta_malloc(2);
    ta_get_health(&after, sizeof after);
    TEST_ASSERT_EQUAL_UINT64(before.leaves + 2, after.leaves);
    TEST_ASSERT_GREATER_OR_EQUAL_UINT64(before.contexts + 2, after.contexts);
    TEST_ASSERT_TRUE(after.modules >= 1 && after.modules < 100);
    ta_free(one);
    ta_free(other);
    TEST_ASSERT_EQUAL_UINT64(0, after.lost + after.overflowed + after.foreign_frees + after.invalid_frees);
    TEST_ASSERT_EQUAL_UINT64(0, after.snapshot_errors);
    for (size_t size = 0; size <= sizeof after; size += 8) { /* older callers have less room */
        struct ta_health part;
        memset(&part, 0xA5, sizeof part);
        ta_get_health(&part, size);
        for (size_t at = size; at < sizeof part; at++)
            TEST_ASSERT_EQUAL_HEX8(0xA5, ((unsigned char *)&part)[at]);
        if (size >= offsetof(struct ta_health, snapshot_errors))
            TEST_ASSERT_EQUAL_UINT64(after.modules, part.modules);
    }
}

static void test_health_has_what_the_tables_hold_as_far_as_there_is_room(void)
{
    ta_start(20);
    see_health();
}

/* ---- what is freed ------------------------------------------------------------------------------------------------ */

static void test_emergency_memory_is_freed_by_its_own_address_alone(void)
{
    uint64_t *block = ta__emergency_allocate(100, 16, 0);
    TEST_ASSERT_NOT_NULL(block);
    block[0] = block[-1] + 8; /* what stands in front of a block, eight bytes further on */
    TEST_ASSERT_EQUAL_size_t(0, ta__emergency_size(block + 1));
    ta__emergency_free(block + 1);
    TEST_ASSERT_EQUAL_size_t(100, ta__emergency_size(block));
    ta__emergency_free(block);
    TEST_ASSERT_EQUAL_size_t(0, ta__emergency_size(block));
}

static void count_area(uintptr_t start, size_t bytes, void *count)
{
    (void)start, (void)bytes;
    ++*(size_t *)count;
}

static void count_areas_of_2(void *heap, uint32_t domain, void *count)
{
    if (domain == (uint32_t)ta__domain_known(2))
        ta__heap_visit_areas(heap, count_area, count);
}

static size_t areas_of_2(void)
{
    size_t count = 0;
    ta__domain_heaps(count_areas_of_2, &count);
    return count;
}

/* A page whose last block is freed goes back, without anybody looking for it. */
static void emptied_pages(void)
{
    enum { BLOCKS = 20000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = ta_domain_malloc(2, 200);
    size_t full = areas_of_2();
    for (int i = 0; i < BLOCKS; i++)
        ta_free(blocks[i]);
    for (int i = 0; i < 1000; i++) /* what is retired waits for requests to come by */
        ta_free(ta_domain_malloc(2, 100000 + (size_t)i));
    TEST_ASSERT_GREATER_THAN_size_t(20, full);
    TEST_ASSERT_LESS_THAN_size_t(full / 4, areas_of_2());
}

static void test_emptied_pages_of_a_domain_go_back(void)
{
    for_each_limit(emptied_pages);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_block_of_an_earlier_epoch_is_not_counted_out);
    RUN_TEST(test_realloc_is_a_free_and_a_malloc);
    RUN_TEST(test_many_blocks_change);
    RUN_TEST(test_a_move_is_no_peak_of_both);
    RUN_TEST(test_another_thread_changes_and_frees);
    RUN_TEST(test_aligned_blocks_are_counted_and_freed);
    RUN_TEST(test_small_aligned_blocks_stand_at_lines);
    RUN_TEST(test_lines_that_a_thread_left);
    RUN_TEST(test_realloc_leaves_no_block_behind);
    RUN_TEST(test_calloc_is_zero_and_counted);
    RUN_TEST(test_every_size_is_right_from_everywhere);
    RUN_TEST(test_each_new_high_is_seen);
    RUN_TEST(test_health_has_what_the_tables_hold_as_far_as_there_is_room);
    RUN_TEST(test_emergency_memory_is_freed_by_its_own_address_alone); /* counted as misuse */
    RUN_TEST(test_emptied_pages_of_a_domain_go_back);                  /* who has used a domain takes other ways */
    RUN_TEST(test_every_size_is_right_from_everywhere);
    return UNITY_END();
}
