/* test_sample.c: the sampled mode — estimates are unbiased, and a free takes out exactly what its allocation put in.
 *
 * Seeds are fixed. Bounds are five standard errors of the estimate, which theory gives: a class of n blocks that are
 * each sampled with probability p is estimated with variance n (1 - p) / p. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "trace/sample.h"
#include "trace/unwind/modules.h"
#include "tracealloc.h"

enum { SAMPLE_BYTES = 16384 };

void setUp(void)
{
}

void tearDown(void)
{
    ta_stop();
}

static void test_intervals_between_samples_are_exponential(void)
{
    enum { DRAWS = 200000 };
    uint64_t random = 12345;
    double sum = 0;
    int below_median = 0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t interval = ta__sample_interval(&random, SAMPLE_BYTES);
        TEST_ASSERT_TRUE(interval >= 0);
        sum += (double)interval + 0.5;
        below_median += (double)interval < SAMPLE_BYTES * 0.693147;
    }
    TEST_ASSERT_DOUBLE_WITHIN(5 * SAMPLE_BYTES / sqrt(DRAWS), SAMPLE_BYTES, sum / DRAWS);
    TEST_ASSERT_DOUBLE_WITHIN(5 * 0.5 / sqrt(DRAWS), 0.5, below_median / (double)DRAWS);
}

static void test_weights_are_the_reciprocals_of_the_probabilities(void)
{
    static const size_t sizes[] = {1, 16, 1000, 8192, 16384, 32768, 100000, 10000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double probability = -expm1(-(double)sizes[i] / SAMPLE_BYTES);
        double weight = (double)ta__sample_weight(sizes[i], SAMPLE_BYTES) / TA__SAMPLE_UNIT;
        TEST_ASSERT_DOUBLE_WITHIN(1e-4 / probability, 1 / probability, weight);
    }
    TEST_ASSERT_EQUAL_UINT64(ta__sample_weight(1, SAMPLE_BYTES), ta__sample_weight(0, SAMPLE_BYTES));
}

/* What is estimated now, over all leaves. */
static struct ta__source_counts estimate(void)
{
    struct ta__source_counts sum = {0};
    for (uint32_t leaf = 1; leaf < ta__leaf_count(); leaf++) {
        struct ta__source_counts counts;
        ta__counters_fold(leaf, 1, &counts);
        sum.allocated_blocks += counts.allocated_blocks;
        sum.allocated_bytes += counts.allocated_bytes;
        sum.freed_blocks += counts.freed_blocks;
        sum.freed_bytes += counts.freed_bytes;
    }
    return sum;
}

static void seed(uint64_t number)
{
    ta__self->sample_random = number;
    ta__self->sample_left = ta__sample_interval(&ta__self->sample_random, SAMPLE_BYTES);
}

/* Blocks of each size, a third of them freed at once; live and total estimates against the truth. */
static void test_estimates_of_live_and_total_are_unbiased(void)
{
    static const size_t sizes[] = {0, 24, 100, 1008, 4000, 12000, 16384, 40000, 200000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = sizes[i];
        int count = (int)(60000000 / (size + 1500));
        void **blocks = calloc((size_t)count, sizeof *blocks);
        TEST_ASSERT_NOT_NULL(blocks);
        TEST_ASSERT_EQUAL_INT(0, ta_start(10));
        seed(1000 + i);

        int live = 0;
        for (int n = 0; n < count; n++) {
            blocks[n] = n % 4 == 3 ? ta_calloc(1, size) : ta_malloc(size);
            if (n % 3 == 0)
                ta_free(blocks[n]);
            else
                blocks[live++] = blocks[n];
        }
        struct ta__source_counts counts = estimate();
        size_t now;
        ta_get_traced_memory(&now, NULL);

        double p = -expm1(-(double)(size != 0 ? size : 1) / SAMPLE_BYTES);
        double error_total = 5 * sqrt(count * (1 - p) / p) + 2;
        double error_live = 5 * sqrt(live * (1 - p) / p) + 2;
        double live_blocks = (double)(counts.allocated_blocks - counts.freed_blocks);
        double live_bytes = (double)(counts.allocated_bytes - counts.freed_bytes);
        TEST_ASSERT_DOUBLE_WITHIN(error_total, count, (double)counts.allocated_blocks);
        TEST_ASSERT_DOUBLE_WITHIN(error_live, live, live_blocks);
        TEST_ASSERT_DOUBLE_WITHIN((error_total + 1) * (double)size + 1, count * (double)size,
                                  (double)counts.allocated_bytes);
        TEST_ASSERT_DOUBLE_WITHIN((error_live + 1) * (double)size + 1, live * (double)size, live_bytes);
        TEST_ASSERT_EQUAL_DOUBLE(live_bytes, (double)now);

        for (int n = 0; n < live; n++)
            ta_free(blocks[n]);
        counts = estimate();
        ta_get_traced_memory(&now, NULL);
        TEST_ASSERT_EQUAL_UINT64(counts.allocated_blocks, counts.freed_blocks);
        TEST_ASSERT_EQUAL_UINT64(counts.allocated_bytes, counts.freed_bytes);
        TEST_ASSERT_EQUAL_size_t(0, now);
        ta_stop();
        free(blocks);
    }
}

/* An empty block is as likely a sample as one of a byte: else a program that asks for nothing but those has none. */
static void test_empty_blocks_are_sampled_as_those_of_one_byte(void)
{
    enum { SAMPLES = 200 };
    const double count = (double)SAMPLES * SAMPLE_BYTES, error = 5 * sqrt(SAMPLES) * SAMPLE_BYTES;
    for (int way = 0; way < 2; way++) {
        TEST_ASSERT_EQUAL_INT(0, ta_start(10));
        seed(5 + (uint64_t)way);
        for (int i = 0; i < SAMPLES * SAMPLE_BYTES; i++)
            ta_free(way == 0 ? ta_malloc(0) : ta_calloc(0, 1));
        struct ta__source_counts counts = estimate();
        TEST_ASSERT_DOUBLE_WITHIN(error, count, (double)counts.allocated_blocks);
        TEST_ASSERT_EQUAL_UINT64(counts.allocated_blocks, counts.freed_blocks);
        TEST_ASSERT_EQUAL_UINT64(0, counts.allocated_bytes);
        ta_stop();
    }
}

/* The largest request that is served from the list of small pages, and its neighbours: that list has an end. */
static void test_requests_beside_the_largest_small_one_have_their_room(void)
{
    enum { EACH = 20 };
    static char *blocks[3 * EACH];
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
    seed(7);
    for (size_t size = TA__SMALL_MAX - 9; size < TA__SMALL_MAX + 20; size++) {
        for (int i = 0; i < EACH; i++) {
            blocks[3 * i] = ta_malloc(size);
            blocks[3 * i + 1] = ta_calloc(1, size);
            blocks[3 * i + 2] = ta_realloc(ta_malloc(1), size);
        }
        for (int i = 0; i < 3 * EACH; i++) {
            TEST_ASSERT_NOT_NULL(blocks[i]);
            memset(blocks[i], i, size);
        }
        for (int i = 0; i < 3 * EACH; i++) {
            TEST_ASSERT_EACH_EQUAL_HEX8((uint8_t)i, blocks[i], size);
            ta_free(blocks[i]);
        }
    }
}

static void test_realloc_and_tracking_take_out_what_was_put_in(void)
{
    enum { COUNT = 3000 };
    static void *blocks[COUNT];
    TEST_ASSERT_EQUAL_INT(0, ta_start(10));
    seed(77);
    for (unsigned n = 0; n < COUNT; n++)
        blocks[n] = ta_malloc(n * 13 % 9000);
    for (unsigned n = 0; n < COUNT; n++)
        if (n % 2)
            blocks[n] = ta_realloc(blocks[n], 1 + n * 17 % 20000);
        else if (n % 4 == 0)
            TEST_ASSERT_EQUAL_INT(0, ta_track(0, (uintptr_t)blocks[n], 5));
        else if (n % 6 == 0)
            TEST_ASSERT_EQUAL_INT(0, ta_untrack(0, (uintptr_t)blocks[n]));
    TEST_ASSERT_EQUAL_INT(0, ta_track(3, 1, 50));
    TEST_ASSERT_EQUAL_INT(0, ta_track(3, 1, 60));
    for (int n = 0; n < COUNT; n++)
        ta_free(blocks[n]);

    struct ta__source_counts counts = estimate();
    size_t now;
    ta_get_traced_memory(&now, NULL);
    TEST_ASSERT_EQUAL_size_t(60, now);
    TEST_ASSERT_EQUAL_UINT64(60, counts.allocated_bytes - counts.freed_bytes);
    TEST_ASSERT_EQUAL_UINT64(1, counts.allocated_blocks - counts.freed_blocks);
}

/* ---- plugins that take turns at one address ---------------------------------------------------------------------- */

static size_t plugin_asks_for;

__attribute__((noinline)) static void allocate_some(void)
{
    for (int i = 0; i < 400; i++) {
        void *block = ta_malloc(plugin_asks_for);
        __asm__ volatile("" : : "r"(block) : "memory");
    }
}

/* Loads the plugin, calls through it, unloads it; answers where it stood. */
static uintptr_t through_plugin(const char *path, size_t size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    TEST_ASSERT_NOT_NULL(handle);
    void (*call)(void (*callback)(void)) = (void (*)(void (*)(void)))(uintptr_t)dlsym(handle, "plugin_call");
    plugin_asks_for = size;
    call(allocate_some);
    dlclose(handle);
    return (uintptr_t)call;
}

/* What is live of stacks through a module. */
static struct ta__source_counts estimate_through(const char *path)
{
    struct ta__source_counts sum = {0};
    for (uint32_t leaf = 1; leaf < ta__leaf_count(); leaf++) {
        struct ta__source_counts counts;
        int is_there = 0;
        for (uint32_t at = ta__leaves()[leaf].context; at != 0; at = ta__contexts()[at].parent) {
            const struct ta__module *module = ta__module_at((ta__module_id){ta__contexts()[at].module});
            is_there |= module != NULL && strcmp(module->path, path) == 0;
        }
        ta__counters_fold(leaf, 1, &counts);
        sum.allocated_blocks += is_there ? counts.allocated_blocks : 0;
        sum.allocated_bytes += is_there ? counts.allocated_bytes : 0;
    }
    return sum;
}

static void each_plugin_is_charged_with_its_own(const char *one, const char *other, uint64_t sample_bytes)
{
    ta__trace_configure(&(struct ta__trace_config){.sample_bytes = sample_bytes});
    TEST_ASSERT_EQUAL_INT(0, ta_start(20));
    int together = 0;
    for (int round = 0; round < 10; round++)
        together += through_plugin(one, 1000) == through_plugin(other, 3000);
    TEST_ASSERT_TRUE(together > 0); /* else there was nothing to tell apart */
    struct ta__source_counts of_one = estimate_through(one);
    struct ta__source_counts of_other = estimate_through(other);
    TEST_ASSERT_TRUE(of_one.allocated_blocks > 1000 && of_other.allocated_blocks > 1000);
    TEST_ASSERT_DOUBLE_WITHIN(1, 1000, (double)of_one.allocated_bytes / (double)of_one.allocated_blocks);
    TEST_ASSERT_DOUBLE_WITHIN(1, 3000, (double)of_other.allocated_bytes / (double)of_other.allocated_blocks);
}

static void test_samples_through_plugins_that_follow_each_other_at_one_address(void)
{
    each_plugin_is_charged_with_its_own(PLUGIN_SMALL, PLUGIN_LARGE, SAMPLE_BYTES);
}

static void test_the_same_without_build_ids(void)
{
    each_plugin_is_charged_with_its_own(PLUGIN_SMALL_BARE, PLUGIN_LARGE_BARE, SAMPLE_BYTES);
}

static void test_the_same_where_every_block_is_traced(void)
{
    each_plugin_is_charged_with_its_own(PLUGIN_SMALL, PLUGIN_LARGE, 0);
    ta_stop();
    each_plugin_is_charged_with_its_own(PLUGIN_SMALL_BARE, PLUGIN_LARGE_BARE, 0);
}

int main(void)
{
    static char output[1 << 16];
    setvbuf(stdout, output, _IOFBF, sizeof output);
    ta__process_ready();
    ta__trace_configure(&(struct ta__trace_config){.sample_bytes = SAMPLE_BYTES});
    UNITY_BEGIN();
    RUN_TEST(test_intervals_between_samples_are_exponential);
    RUN_TEST(test_weights_are_the_reciprocals_of_the_probabilities);
    RUN_TEST(test_estimates_of_live_and_total_are_unbiased);
    RUN_TEST(test_empty_blocks_are_sampled_as_those_of_one_byte);
    RUN_TEST(test_requests_beside_the_largest_small_one_have_their_room);
    RUN_TEST(test_realloc_and_tracking_take_out_what_was_put_in);
#if TRACEALLOC_OVERRIDE
    RUN_TEST(test_samples_through_plugins_that_follow_each_other_at_one_address);
    RUN_TEST(test_the_same_without_build_ids);
    RUN_TEST(test_the_same_where_every_block_is_traced);
#else
    (void)test_samples_through_plugins_that_follow_each_other_at_one_address; /* the loader asks another malloc here */
    (void)test_the_same_without_build_ids;
    (void)test_the_same_where_every_block_is_traced;
#endif
    return UNITY_END();
}
