/* test_domains.c: domains as a program sees them — who gets a block, what the figures say, limits, names. Runs stopped
 * and, with TA_TEST_FRAMES=n, traced. Uses numbers of its own in every test; the library is the shared one. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/assert.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "unity.h"

#include "tests/support/domains.h"
#include "tests/support/names.h"

#if defined(TEST_TA_NAMES) /* libc's is not ours then */
#undef strdup
#define strdup(text) ta_domain_strdup(ta_domain_current(), text)
#endif

static uint32_t home_of(const void *block)
{
    uint32_t domain = 12345;
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(block, &domain));
    return domain;
}

/* ---- who gets a block -------------------------------------------------------------------------------------------- */

static void test_malloc_without_anything_is_of_domain_0(void)
{
    void *block = malloc(10);
    TEST_ASSERT_EQUAL_UINT32(0, home_of(block));
    free(block);
}

static void test_explicit_calls_are_of_their_domain(void)
{
    void *blocks[] = {ta_domain_malloc(7, 10),
                      ta_domain_calloc(7, 3, 5),
                      ta_domain_realloc(7, NULL, 20),
                      ta_domain_reallocarray(7, NULL, 4, 5),
                      ta_domain_aligned_alloc(7, 4096, 100),
                      ta_domain_strdup(7, "seven"),
                      ta_domain_strndup(7, "seven", 3),
                      ta_domain_memdup(7, "seven", 5),
                      ta_domain_malloc(7, 300000)};
    TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)blocks[4] % 4096);
    TEST_ASSERT_EQUAL_STRING("seven", blocks[5]);
    TEST_ASSERT_EQUAL_STRING("sev", blocks[6]);
    TEST_ASSERT_EQUAL_MEMORY("seven", blocks[7], 5);
    struct ta_domain_stats stats = stats_of(7);
    TEST_ASSERT_EQUAL_UINT64(9, stats.live_blocks);
    TEST_ASSERT_EQUAL_UINT64(10 + 15 + 20 + 20 + 100 + 6 + 4 + 5 + 300000, stats.live_bytes);
    for (size_t i = 0; i < 9; i++) {
        TEST_ASSERT_EQUAL_UINT32(7, home_of(blocks[i]));
        free(blocks[i]);
    }
    stats = stats_of(7);
    TEST_ASSERT_EQUAL_UINT64(0, stats.live_blocks);
    TEST_ASSERT_EQUAL_UINT64(0, stats.live_bytes);
    TEST_ASSERT_EQUAL_UINT64(9, stats.allocated_blocks);
}

static void test_posix_memalign_in_a_domain_aligns_or_says_why(void)
{
    void *block = NULL;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_posix_memalign(8, &block, 256, 100));
    TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)block % 256);
    TEST_ASSERT_EQUAL_UINT32(8, home_of(block));
    free(block);
    TEST_ASSERT_EQUAL_INT(EINVAL, ta_domain_posix_memalign(8, &block, 24, 100));
    errno = 0;
    TEST_ASSERT_NULL(ta_domain_aligned_alloc(8, 24, 100));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

static void test_scope_takes_ambient_allocations(void)
{
    ta_domain_push(9);
    TEST_ASSERT_EQUAL_UINT32(9, ta_domain_current());
    void *inside = malloc(33);
    ta_domain_push(0xFFFFFFFF);
    void *deeper = calloc(2, 50);
    TEST_ASSERT_EQUAL_UINT32(0xFFFFFFFF, ta_domain_current());
    ta_domain_pop();
    void *again = strdup("again");
    ta_domain_pop();
    void *outside = malloc(33);
    TEST_ASSERT_EQUAL_UINT32(0, ta_domain_current());
    TEST_ASSERT_EQUAL_UINT32(9, home_of(inside));
    TEST_ASSERT_EQUAL_UINT32(0xFFFFFFFF, home_of(deeper));
    TEST_ASSERT_EQUAL_UINT32(9, home_of(again));
    TEST_ASSERT_EQUAL_UINT32(0, home_of(outside));
    TEST_ASSERT_EQUAL_UINT64(39, stats_of(9).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(100, stats_of(0xFFFFFFFF).live_bytes);
    free(inside), free(deeper), free(again), free(outside);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(9).live_bytes);
}

/* What is remembered of a call site must not outlive the scope that it was asked in. */
static void test_scopes_in_turn_at_one_call_site_each_get_their_blocks(void)
{
    static const uint32_t domains[] = {7, 8, 7, 8, 0, 7, 8, 0, 0, 8};
    enum { TURNS = sizeof domains / sizeof domains[0] };
    void *blocks[TURNS];
    for (int i = 0; i < TURNS; i++) {
        ta_domain_push(domains[i]);
        blocks[i] = malloc(48);
        ta_domain_pop();
    }
    for (int i = 0; i < TURNS; i++) {
        TEST_ASSERT_EQUAL_UINT32(domains[i], home_of(blocks[i]));
        free(blocks[i]);
    }
}

static void test_call_wins_over_scope_and_scope_of_0_over_outer(void)
{
    ta_domain_push(10);
    void *called = ta_domain_malloc(11, 5);
    void *zero = ta_domain_malloc(0, 5);
    ta_domain_push(0);
    void *scoped = malloc(5);
    ta_domain_pop();
    ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT32(11, home_of(called));
    TEST_ASSERT_EQUAL_UINT32(0, home_of(zero));
    TEST_ASSERT_EQUAL_UINT32(0, home_of(scoped));
    free(called), free(zero), free(scoped);
}

static int scope_by_macro(void **block)
{
    TA_DOMAIN_SCOPE(12);
    {
        TA_DOMAIN_SCOPE(13);
        block[0] = malloc(1);
    }
    block[1] = malloc(1);
    if (block[1] != NULL)
        return 1;
    return 0;
}

static void test_scope_macro_pops_on_every_way_out(void)
{
    void *block[2];
    TEST_ASSERT_EQUAL_INT(1, scope_by_macro(block));
    TEST_ASSERT_EQUAL_UINT32(13, home_of(block[0]));
    TEST_ASSERT_EQUAL_UINT32(12, home_of(block[1]));
    TEST_ASSERT_EQUAL_UINT32(0, ta_domain_current());
    free(block[0]), free(block[1]);
}

static void allocate_one(void *context)
{
    *(void **)context = malloc(77);
}

static void test_with_hands_a_scope_to_a_callback(void)
{
    void *block = NULL;
    ta_domain_with(14, allocate_one, &block);
    TEST_ASSERT_EQUAL_UINT32(14, home_of(block));
    TEST_ASSERT_EQUAL_UINT32(0, ta_domain_current());
    free(block);
}

static void test_scopes_nest_as_deep_as_wanted(void)
{
    enum { DEPTH = 100000 };
    for (uint32_t i = 0; i < DEPTH; i++)
        ta_domain_push(20 + i % 3);
    void *block = malloc(1);
    TEST_ASSERT_TRUE(home_of(block) >= 20 && home_of(block) < 23);
    free(block);
    for (uint32_t i = 0; i < DEPTH; i++)
        ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT32(0, ta_domain_current());
    ta_domain_push(21);
    TEST_ASSERT_EQUAL_UINT32(21, ta_domain_current());
    ta_domain_pop();
}

static void *current_elsewhere(void *context)
{
    *(uint32_t *)context = ta_domain_current();
    void *block = malloc(1);
    uint32_t home = home_of(block);
    free(block);
    return (void *)(uintptr_t)home;
}

static void test_scope_is_of_its_thread_alone(void)
{
    pthread_t thread;
    uint32_t current = 99;
    void *home;
    ta_domain_push(15);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, current_elsewhere, &current));
    pthread_join(thread, &home);
    ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT32(0, current);
    TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)home);
}

static void test_realloc_keeps_the_domain_unless_told(void)
{
    char *block = ta_domain_malloc(16, 10);
    memcpy(block, "0123456789", 10);
    ta_domain_push(17);
    block = realloc(block, 12);
    TEST_ASSERT_EQUAL_UINT32(16, home_of(block));
    block = realloc(block, 100000);
    TEST_ASSERT_EQUAL_UINT32(16, home_of(block));
    ta_domain_pop();
    block = ta_domain_realloc(18, block, 50);
    TEST_ASSERT_EQUAL_UINT32(18, home_of(block));
    TEST_ASSERT_EQUAL_MEMORY("0123456789", block, 10);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(16).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(50, stats_of(18).live_bytes);
    block = ta_domain_realloc(0, block, 60);
    TEST_ASSERT_EQUAL_UINT32(0, home_of(block));
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(18).live_bytes);
    free(block);
}

static void test_block_keeps_its_domain_when_tracing_begins_and_ends(void)
{
    ta_stop();
    void *before = ta_domain_malloc(19, 100);
    ta_start(5);
    void *during = ta_domain_malloc(19, 200);
    TEST_ASSERT_EQUAL_UINT64(300, stats_of(19).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(200, stats_of(19).traced_bytes);
    ta_clear_traces();
    TEST_ASSERT_EQUAL_UINT64(300, stats_of(19).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(19).traced_bytes);
    free(during);
    ta_stop();
    free(before);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(19).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(19).live_blocks);
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static void test_peak_of_one_thread_is_exact(void)
{
    void *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = ta_domain_malloc(30, 1000);
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    for (int i = 0; i < 10; i++)
        blocks[i] = ta_domain_malloc(30, 1000);
    struct ta_domain_stats stats = stats_of(30);
    TEST_ASSERT_EQUAL_UINT64(100000, stats.peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(10000, stats.live_bytes);
    TEST_ASSERT_EQUAL_UINT64(110, stats.allocated_blocks);
    for (int i = 0; i < 10; i++)
        free(blocks[i]);
}

static void test_usable_bytes_are_no_less_than_the_live_ones(void)
{
    void *block = ta_domain_malloc(31, 5000);
    TEST_ASSERT_TRUE(ta_domain_usable_bytes(31) >= 5016);
    free(block);
    TEST_ASSERT_EQUAL_UINT64(0, ta_domain_usable_bytes(31));
    TEST_ASSERT_EQUAL_UINT64(0, ta_domain_usable_bytes(999999));
}

/* Header and bytes fill the block, where blocks of every multiple of 16 are; and a power of two takes little more. */
static void test_blocks_are_hardly_larger_than_what_is_asked_for(void)
{
    static const struct {
        size_t asked, block;
    } sizes[] = {{1, 16},    {8, 16},    {9, 32},    {24, 32},     {40, 48},     {41, 64},
                 {56, 64},   {57, 80},   {72, 80},   {88, 96},     {104, 112},   {105, 128},
                 {112, 128}, {120, 128}, {121, 144}, {128, 144},   {136, 144},   {137, 176},
                 {160, 176}, {168, 176}, {256, 272}, {1024, 1040}, {4096, 4112}, {16384, 16400}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *blocks[20];
        for (size_t n = 0; n < 20; n++)
            blocks[n] = ta_domain_malloc(33, sizes[i].asked);
        TEST_ASSERT_EQUAL_UINT64(20 * sizes[i].block, ta_domain_usable_bytes(33));
        for (size_t n = 0; n < 20; n++)
            free(blocks[n]);
    }
}

static void test_sums_over_domains_are_the_totals(void)
{
    if (!ta_is_tracing())
        TEST_IGNORE_MESSAGE("totals are of traces");
    void *blocks[300];
    for (int i = 0; i < 300; i++)
        blocks[i] = i % 3 == 0 ? malloc((size_t)i) : ta_domain_malloc((uint32_t)(31 + i % 3), (size_t)i);
    uint32_t domains[256];
    size_t count = ta_domain_list(domains, 256);
    TEST_ASSERT_TRUE(count > 2 && count <= 256);
    for (size_t room = 0; room < count; room++) { /* no more than there is room for, and still how many there are */
        uint32_t some[256];
        memset(some, 0xA5, sizeof some);
        TEST_ASSERT_EQUAL_size_t(count, ta_domain_list(some, room));
        TEST_ASSERT_EQUAL_HEX32(UINT32_C(0xA5A5A5A5), some[room]);
        TEST_ASSERT_EQUAL_INT(0, memcmp(some, domains, room * sizeof *some));
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += stats_of(domains[i]).traced_bytes;
    size_t current;
    ta_get_traced_memory(&current, NULL);
    TEST_ASSERT_EQUAL_UINT64(current, sum);
    for (int i = 0; i < 300; i++)
        free(blocks[i]);
}

static void test_stats_of_an_unused_domain_are_refused(void)
{
    struct ta_domain_stats stats;
    errno = 0;
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_get_stats(777777, &stats, sizeof stats));
    TEST_ASSERT_EQUAL_INT(ENOENT, errno);
}

static void test_tracked_memory_counts_in_its_domain(void)
{
    if (!ta_is_tracing())
        TEST_IGNORE_MESSAGE("tracking needs tracing");
    TEST_ASSERT_EQUAL_INT(0, ta_track(32, 0x1000, 5000));
    TEST_ASSERT_EQUAL_INT(0, ta_track(32, 0x9000, 100));
    TEST_ASSERT_EQUAL_UINT64(5100, stats_of(32).live_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta_track(32, 0x1000, 4000));
    TEST_ASSERT_EQUAL_UINT64(4100, stats_of(32).live_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(32, 0x1000));
    TEST_ASSERT_EQUAL_INT(0, ta_untrack(32, 0x1000));
    TEST_ASSERT_EQUAL_UINT64(100, stats_of(32).live_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(32));
    TEST_ASSERT_EQUAL_size_t(0, ta_get_traceback(32, 0x9000, NULL, 0, NULL));
}

static void test_tracked_memory_counts_no_more_when_its_traces_go(void)
{
    if (!ta_is_tracing())
        TEST_IGNORE_MESSAGE("tracking needs tracing");
    int limit = ta_get_traceback_limit();
    char *block = ta_domain_malloc(33, 30);
    TEST_ASSERT_EQUAL_INT(0, ta_track(33, 0x1000, 5000));
    TEST_ASSERT_EQUAL_UINT64(5030, stats_of(33).live_bytes);
    ta_clear_traces();
    TEST_ASSERT_EQUAL_UINT64(30, stats_of(33).live_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta_track(33, 0x1000, 700));
    ta_stop();
    TEST_ASSERT_EQUAL_UINT64(30, stats_of(33).live_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta_start(limit));
    ta_free(block);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(33).live_blocks);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void test_names_are_kept_found_and_unique(void)
{
    uint32_t found = 0;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(40, "network"));
    TEST_ASSERT_EQUAL_STRING("network", ta_domain_name(40));
    TEST_ASSERT_EQUAL_STRING("", ta_domain_name(41));
    TEST_ASSERT_EQUAL_INT(1, ta_domain_find("network", &found));
    TEST_ASSERT_EQUAL_UINT32(40, found);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_find("nothing", &found));
    TEST_ASSERT_EQUAL_INT(0, ta_domain_find("", &found));
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(40, "network"));
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_set_name(41, "network"));
    TEST_ASSERT_EQUAL_INT(EEXIST, errno);
    struct ta_domain_stats stats;
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_get_stats(41, &stats, sizeof stats)); /* a refused name makes no domain */
    char longest[257];
    memset(longest, 'x', 256);
    longest[256] = '\0';
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_set_name(41, longest));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
    longest[255] = '\0';
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(41, longest));
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(0, "rest"));
    TEST_ASSERT_EQUAL_STRING("rest", ta_domain_name(0));
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(0, ""));
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void test_hard_limit_refuses_what_exceeds_it(void)
{
    struct ta_domain_limit limit = {.hard = 10000};
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(50, &limit));
    void *most = ta_domain_malloc(50, 9900);
    TEST_ASSERT_NOT_NULL(most);
    void *rest = ta_domain_malloc(50, 100);
    TEST_ASSERT_NOT_NULL(rest);
    errno = 0;
    TEST_ASSERT_NULL(ta_domain_malloc(50, 1));
    TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
    ta_domain_push(50);
    TEST_ASSERT_NULL(malloc(1));
    TEST_ASSERT_NULL(malloc(100000));
    TEST_ASSERT_NULL(realloc(most, 9901));
    ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT64(10000, stats_of(50).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(2, stats_of(50).live_blocks);
    most = realloc(most, 9000);
    TEST_ASSERT_NOT_NULL(most);
    void *again = ta_domain_malloc(50, 900);
    TEST_ASSERT_NOT_NULL(again);
    TEST_ASSERT_NULL(ta_domain_malloc(50, 1));
    uint64_t usable = ta_domain_usable_bytes(50);
    for (int i = 0; i < 500; i++) {
        TEST_ASSERT_NULL(ta_domain_malloc(50, (size_t)5000 << i % 5));
        TEST_ASSERT_NULL(ta_domain_aligned_alloc(50, 64, 5000));
        TEST_ASSERT_NULL(realloc(again, 5000));
    }
    TEST_ASSERT_EQUAL_UINT64(usable, ta_domain_usable_bytes(50)); /* what was refused is nobody's */
    TEST_ASSERT_EQUAL_UINT64(10000, stats_of(50).live_bytes);
    free(most), free(rest), free(again);
    limit.hard = 0;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(50, &limit));
    void *free_again = ta_domain_malloc(50, 1000000);
    TEST_ASSERT_NOT_NULL(free_again);
    free(free_again);
}

/* Emulators take the limit and do not keep it. */
static int limits_are_kept(void)
{
    struct rlimit before, little;
    getrlimit(RLIMIT_AS, &before);
    little = before;
    little.rlim_cur = 1;
    setrlimit(RLIMIT_AS, &little);
    void *mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    setrlimit(RLIMIT_AS, &before);
    if (mapped != MAP_FAILED)
        munmap(mapped, 4096);
    return mapped == MAP_FAILED;
}

/* Requests that the domain may have, and the machine does not give. */
static void test_requests_that_fail_leave_the_figures_as_they_were(void)
{
    static const size_t too_much[] = {(size_t)1 << 46, ((size_t)1 << 47) - 4096, SIZE_MAX / 2};
    struct rlimit before, little;
    if (!limits_are_kept())
        TEST_IGNORE_MESSAGE("limits of memory are not kept here");
    char *block = ta_domain_malloc(52, 5000);
    void *other = ta_domain_malloc(52, 100);
    TEST_ASSERT_TRUE(block != NULL && other != NULL);
    memset(block, 77, 5000);
    struct ta_domain_stats stats = stats_of(52), after;
    size_t current, peak, current_after, peak_after;
    ta_get_traced_memory(&current, &peak);
    TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_AS, &before));
    little = before;
    little.rlim_cur = 1; /* nothing more can be mapped */
    TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_AS, &little));
    void *failed[] = {ta_domain_malloc(52, (size_t)512 << 20), ta_domain_calloc(52, 3, (size_t)256 << 20),
                      ta_domain_aligned_alloc(52, 4096, (size_t)512 << 20), realloc(block, (size_t)512 << 20),
                      ta_domain_realloc(53, block, (size_t)512 << 20)};
    TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_AS, &before));
    for (size_t i = 0; i < sizeof failed / sizeof failed[0]; i++)
        TEST_ASSERT_NULL(failed[i]);
    for (size_t i = 0; i < sizeof too_much / sizeof too_much[0]; i++) {
        TEST_ASSERT_NULL(ta_domain_malloc(52, too_much[i]));
        TEST_ASSERT_NULL(ta_domain_realloc(52, block, too_much[i]));
    }
    after = stats_of(52);
    TEST_ASSERT_EQUAL_MEMORY(&stats, &after, sizeof stats);
    ta_get_traced_memory(&current_after, &peak_after);
    TEST_ASSERT_EQUAL_size_t(current, current_after);
    TEST_ASSERT_EQUAL_size_t(peak, peak_after);
    TEST_ASSERT_EQUAL_UINT32(52, home_of(block));
    TEST_ASSERT_EACH_EQUAL_CHAR(77, block, 5000);
    free(block), free(other);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(52).live_bytes);
}

static void test_limit_below_an_earlier_peak_holds_at_once(void)
{
    free(ta_domain_malloc(51, 60000));
    struct ta_domain_limit limit = {.hard = 1000};
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(51, &limit));
    TEST_ASSERT_NULL(ta_domain_malloc(51, 1001));
    void *block = ta_domain_malloc(51, 1000);
    TEST_ASSERT_NOT_NULL(block);
    free(block);
}

struct crossing {
    int count;
    uint32_t domain;
    uint64_t live;
    void *allocated;
};

static void on_crossing(uint32_t domain, uint64_t live_bytes, void *context)
{
    struct crossing *crossing = context;
    crossing->count++;
    crossing->domain = domain;
    crossing->live = live_bytes;
    crossing->allocated = malloc(10); /* a callback may */
}

static void test_soft_limit_calls_back_once_per_crossing(void)
{
    struct crossing crossing = {0};
    struct ta_domain_limit limit = {.soft = 5000, .callback = on_crossing, .context = &crossing};
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(52, &limit));
    void *blocks[10];
    for (int i = 0; i < 10; i++)
        blocks[i] = ta_domain_malloc(52, 1000);
    TEST_ASSERT_EQUAL_INT(1, crossing.count);
    TEST_ASSERT_EQUAL_UINT32(52, crossing.domain);
    TEST_ASSERT_EQUAL_UINT64(6000, crossing.live);
    free(crossing.allocated);
    for (int i = 0; i < 10; i++)
        free(blocks[i]);
    free(ta_domain_malloc(52, 200000)); /* a fall is noticed when 64 KiB have been freed */
    TEST_ASSERT_EQUAL_INT(1, crossing.count);
    crossing.count = 0;
    void *big = ta_domain_malloc(52, 300000);
    TEST_ASSERT_EQUAL_INT(1, crossing.count);
    free(crossing.allocated);
    free(big);
    TEST_ASSERT_EQUAL_UINT64(2, stats_of(52).crossings);
    limit.soft = 0;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(52, &limit));
}

/* A thread of its own: the limited domain is the first that it uses. */
static void *exceed_after_ambient_allocations(void *context)
{
    (void)context;
    void *blocks[200], *ambient = NULL;
    size_t granted = 0;
    ta_free(ta_domain_malloc(61, 10)); /* so that the thread has slots */
    for (int i = 0; i < 100; i++) {    /* and new highs of all its memory, in domain 0 */
        void *more = malloc(500);
        memcpy(more, &ambient, sizeof ambient);
        ambient = more;
    }
    while (granted < 200 && (blocks[granted] = ta_domain_malloc(61, 1000)) != NULL)
        granted++;
    for (size_t i = 0; i < granted; i++)
        ta_free(blocks[i]);
    while (ambient != NULL) {
        void *next;
        memcpy(&next, ambient, sizeof next);
        free(ambient);
        ambient = next;
    }
    return (void *)granted;
}

static void test_limit_holds_whatever_is_allocated_outside(void)
{
    const struct ta_domain_limit limit = {.hard = 50000};
    pthread_t thread;
    void *granted;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(61, &limit));
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, exceed_after_ambient_allocations, NULL));
    pthread_join(thread, &granted);
    TEST_ASSERT_EQUAL_UINT64(50, (size_t)granted);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(61).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(50000, stats_of(61).peak_bytes);
}

static void test_new_high_of_the_thread_leaves_the_peak_of_a_domain_alone(void)
{
    void *first = ta_domain_malloc(62, 30000);
    ta_free(first);
    void *outside = malloc(60000); /* more than the thread ever had */
    void *second = ta_domain_malloc(62, 100);
    TEST_ASSERT_EQUAL_UINT64(30000, stats_of(62).peak_bytes);
    ta_free(second);
    free(outside);
    TEST_ASSERT_EQUAL_UINT64(30000, stats_of(62).peak_bytes);
}

static void test_limits_that_cannot_be_are_refused(void)
{
    struct ta_domain_limit limit = {.hard = 1};
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_set_limit(0, &limit));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
    limit.hard = UINT64_MAX;
    TEST_ASSERT_EQUAL_INT(-1, ta_domain_set_limit(53, &limit));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

enum { LIMIT_THREADS = 4, LIMIT_BYTES = 1 << 20 };

static void *allocate_until_refused(void *context)
{
    (void)context;
    void **last = NULL;
    for (;;) {
        void **block = ta_domain_malloc(54, 512);
        if (block == NULL)
            return last;
        *block = last;
        last = block;
    }
}

static void test_hard_limit_holds_within_its_bound_with_threads(void)
{
    struct ta_domain_limit limit = {.hard = LIMIT_BYTES};
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(54, &limit));
    pthread_t threads[LIMIT_THREADS];
    void *chains[LIMIT_THREADS];
    for (int i = 0; i < LIMIT_THREADS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, allocate_until_refused, NULL));
    for (int i = 0; i < LIMIT_THREADS; i++)
        pthread_join(threads[i], &chains[i]);
    uint64_t live = stats_of(54).live_bytes;
    TEST_ASSERT_TRUE(live <= LIMIT_BYTES + LIMIT_THREADS * (65536 + 512));
    TEST_ASSERT_TRUE(live >= LIMIT_BYTES - LIMIT_THREADS * 65536);
    for (int i = 0; i < LIMIT_THREADS; i++)
        for (void **block = chains[i], **next; block != NULL; block = next) {
            next = *block;
            free(block);
        }
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(54).live_bytes);
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

static void test_thousands_of_domains_keep_their_blocks_apart(void)
{
    enum { COUNT = TA_CHECKS > 0 ? 2000 : 10000, LAST = COUNT - 1000 }; /* assertions take time */
    static void *blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        blocks[i] = ta_domain_malloc(100000 + i * 7, 100 + i % 50);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct ta_domain_stats stats = stats_of(100000 + i * 7);
        TEST_ASSERT_EQUAL_UINT64(100 + i % 50, stats.live_bytes);
        TEST_ASSERT_EQUAL_UINT64(1, stats.live_blocks);
        TEST_ASSERT_EQUAL_UINT32(100000 + i * 7, home_of(blocks[i]));
    }
    TEST_ASSERT_TRUE(ta_domain_list(NULL, 0) >= COUNT);
    /* One of those that share a heap goes, and only its block with it. */
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(100000 + LAST * 7));
    for (uint32_t i = 0; i < COUNT; i++)
        if (i != LAST) {
            TEST_ASSERT_EQUAL_UINT32(100000 + i * 7, home_of(blocks[i]));
            free(blocks[i]);
        }
    for (uint32_t i = 0; i < COUNT; i++)
        TEST_ASSERT_EQUAL_INT(i == LAST ? -1 : 0, ta_domain_destroy(100000 + i * 7));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_malloc_without_anything_is_of_domain_0);
    RUN_TEST(test_explicit_calls_are_of_their_domain);
    RUN_TEST(test_posix_memalign_in_a_domain_aligns_or_says_why);
    RUN_TEST(test_scope_takes_ambient_allocations);
    RUN_TEST(test_scopes_in_turn_at_one_call_site_each_get_their_blocks);
    RUN_TEST(test_call_wins_over_scope_and_scope_of_0_over_outer);
    RUN_TEST(test_scope_macro_pops_on_every_way_out);
    RUN_TEST(test_with_hands_a_scope_to_a_callback);
    RUN_TEST(test_scopes_nest_as_deep_as_wanted);
    RUN_TEST(test_scope_is_of_its_thread_alone);
    RUN_TEST(test_realloc_keeps_the_domain_unless_told);
    RUN_TEST(test_block_keeps_its_domain_when_tracing_begins_and_ends);
    RUN_TEST(test_peak_of_one_thread_is_exact);
    RUN_TEST(test_usable_bytes_are_no_less_than_the_live_ones);
    RUN_TEST(test_blocks_are_hardly_larger_than_what_is_asked_for);
    RUN_TEST(test_sums_over_domains_are_the_totals);
    RUN_TEST(test_stats_of_an_unused_domain_are_refused);
    RUN_TEST(test_tracked_memory_counts_in_its_domain);
    RUN_TEST(test_tracked_memory_counts_no_more_when_its_traces_go);
    RUN_TEST(test_names_are_kept_found_and_unique);
    RUN_TEST(test_hard_limit_refuses_what_exceeds_it);
    RUN_TEST(test_requests_that_fail_leave_the_figures_as_they_were);
    RUN_TEST(test_limit_below_an_earlier_peak_holds_at_once);
    RUN_TEST(test_soft_limit_calls_back_once_per_crossing);
    RUN_TEST(test_limit_holds_whatever_is_allocated_outside);
    RUN_TEST(test_new_high_of_the_thread_leaves_the_peak_of_a_domain_alone);
    RUN_TEST(test_limits_that_cannot_be_are_refused);
    RUN_TEST(test_hard_limit_holds_within_its_bound_with_threads);
    RUN_TEST(test_thousands_of_domains_keep_their_blocks_apart);
    return UNITY_END();
}
