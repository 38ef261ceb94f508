/* test_domains_inside.c: domains where something is refused or at its end — no memory for any of their tables, threads
 * without counters of their own, handlers, names, numbers and limits at both ends — and the errors that tell so. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "alloc/domains/domain_table.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/safepoint.h"
#include "tests/support/child.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

void setUp(void)
{
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta_stop();
}

static struct ta_domain_stats stats_of(uint32_t domain)
{
    struct ta_domain_stats stats;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_get_stats(domain, &stats, sizeof stats));
    return stats;
}

static uint32_t home_of(const void *block)
{
    uint32_t domain = 12345;
    TEST_ASSERT_EQUAL_INT(1, ta_domain_of(block, &domain));
    return domain;
}

static int is_known(uint32_t domain)
{
    struct ta_domain_stats stats;
    return ta_domain_get_stats(domain, &stats, sizeof stats) == 0;
}

static void expect_error(int result, int error, const char *text)
{
    int said = errno;
    TEST_ASSERT_EQUAL_INT(-1, result);
    TEST_ASSERT_EQUAL_STRING(text, ta_error_text());
    TEST_ASSERT_EQUAL_INT(error, said);
    errno = 0;
}

static uint32_t view_before;

/* In a signal handler, as everybody can see: the thread is inside an operation. */
static void interrupt(void)
{
    ta_free(ta_malloc(1));
    view_before = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
}

static void come_back(void)
{
    ta__self->safepoint.view = view_before;
}

/* ---- no memory ---------------------------------------------------------------------------------------------------- */

static void no_memory_for_more(void)
{
    ta__memory_inject_failure(1, 1);
}

static void memory_again(void)
{
    ta__memory_inject_failure(0, 0);
}

/* The first of all tests: there is no other domain, and nothing of what they need. */
static void test_the_first_domain_without_memory_is_refused_and_comes_later(void)
{
    static const struct ta_domain_limit limit = {.hard = 1000};
    uint32_t arena = 99;
    void *block = &arena;
    TEST_ASSERT_EQUAL_UINT32(1, ta__domain_count());
    ta_free(ta_malloc(1));
    no_memory_for_more();
    errno = 0;
    TEST_ASSERT_NULL(ta_domain_malloc(5, 10));
    TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
    errno = 0;
    TEST_ASSERT_NULL(ta_domain_calloc(5, 10, 10));
    TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
    TEST_ASSERT_EQUAL_INT(ENOMEM, ta_domain_posix_memalign(5, &block, 64, 10));
    TEST_ASSERT_EQUAL_PTR(&arena, block);
    TEST_ASSERT_NULL(ta_domain_strdup(5, "text"));
    TEST_ASSERT_NULL(ta_domain_memdup(5, "text", 4));
    expect_error(ta_domain_set_name(5, "five"), ENOMEM, "there is no room for another domain");
    expect_error(ta_domain_set_limit(5, &limit), ENOMEM, "there is no room for another domain");
    expect_error(ta_domain_create_arena(&arena), ENOMEM, "there is no room for another arena");
    TEST_ASSERT_EQUAL_UINT32(99, arena);
    ta_domain_push(5); /* what is allocated goes where it went before */
    void *outside = ta_malloc(10);
    ta_domain_pop();
    memory_again();
    TEST_ASSERT_NOT_NULL(outside);
    TEST_ASSERT_EQUAL_UINT32(0, home_of(outside));
    ta_free(outside);
    TEST_ASSERT_EQUAL_UINT32(1, ta__domain_count());
    TEST_ASSERT_FALSE(is_known(5));
    void *later = ta_domain_malloc(5, 10);
    TEST_ASSERT_EQUAL_UINT32(5, home_of(later));
    ta_free(later);
}

/* Of a known domain: what its blocks stand in cannot be made. realloc into it leaves the block where it is. */
static void test_a_move_into_a_domain_that_cannot_be_made_fails_and_leaves_the_block(void)
{
    char *block = ta_domain_malloc(5, 100);
    memset(block, 7, 100);
    struct ta_domain_stats before = stats_of(5), after;
    uint32_t number = 1000000;
    while (ta__domain_count() % TA__DOMAIN_CHUNK != 0) /* the next one needs another chunk */
        TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(number++, ""));
    no_memory_for_more();
    void *refused = ta_domain_malloc(6, 10);
    void *moved = ta_domain_realloc(6, block, 90);
    memory_again();
    TEST_ASSERT_NULL(refused);
    TEST_ASSERT_NOT_NULL(moved); /* there is room where it is */
    TEST_ASSERT_EQUAL_UINT32(5, home_of(moved));
    TEST_ASSERT_EACH_EQUAL_CHAR(7, (char *)moved, 90);
    TEST_ASSERT_FALSE(is_known(6));
    ta_free(moved);
    after = stats_of(5);
    TEST_ASSERT_EQUAL_UINT64(before.live_bytes - 100, after.live_bytes);
    void *later = ta_domain_malloc(6, 10);
    TEST_ASSERT_EQUAL_UINT32(6, home_of(later));
    ta_free(later);
}

static void test_names_without_memory_are_refused_and_come_later(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(5, "five"));
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    ta__memory_inject_failure(1, 1);
    int i = 0, result = 0;
    while (i < 5000 && (result = ta_domain_set_name(5, name)) == 0) { /* until what there is for names is used up */
        snprintf(name, 11, "%010d", i++);
        name[10] = 'n';
    }
    ta__memory_inject_failure(0, 0);
    TEST_ASSERT_TRUE(i > 4000 && i < 4097); /* a mebibyte of them */
    expect_error(result, ENOMEM, "no memory for the name");
    TEST_ASSERT_EQUAL_size_t(255, strlen(ta_domain_name(5))); /* the former */
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(5, name));
    TEST_ASSERT_EQUAL_STRING(name, ta_domain_name(5));
}

/* ---- threads without counters of their own ------------------------------------------------------------------------ */

enum { HELD = 20 };
static void *held[HELD];
static void *answer;

static void *frees_what_others_have(void *unused)
{
    no_memory_for_more(); /* for this thread there are no slots */
    for (int i = 0; i < HELD / 2; i++)
        ta_free(held[i]);
    answer = ta_domain_malloc(50, 10);
    held[HELD - 1] = ta_realloc(held[HELD - 1], 90); /* stays where it is */
    memory_again();
    return unused;
}

/* A thread that no memory is found for counts what it frees with nobody, and nothing is lost of it. */
static void test_what_a_thread_without_slots_frees_and_changes_is_counted(void)
{
    pthread_t thread;
    for (int i = 0; i < HELD; i++)
        held[i] = ta_domain_malloc(50, 100);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, frees_what_others_have, NULL));
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
    struct ta_domain_stats stats = stats_of(50);
    TEST_ASSERT_NULL(answer);
    TEST_ASSERT_EQUAL_UINT64(HELD / 2, stats.live_blocks);
    TEST_ASSERT_EQUAL_UINT64(HELD / 2 * 100 - 10, stats.live_bytes);
    TEST_ASSERT_EQUAL_UINT64(HELD / 2 + 1, stats.freed_blocks);
    TEST_ASSERT_EQUAL_UINT64(HELD / 2 * 100 + 100, stats.freed_bytes);
    TEST_ASSERT_EQUAL_UINT64(HELD + 1, stats.allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(HELD * 100 + 90, stats.allocated_bytes);
    TEST_ASSERT_EQUAL_UINT32(50, home_of(held[HELD - 1]));
    for (int i = HELD / 2; i < HELD; i++)
        ta_free(held[i]);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(50).live_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(50).live_blocks);
}

/* ---- handlers ----------------------------------------------------------------------------------------------------- */

/* Whatever a handler does with scopes, the thread is in its own afterwards. */
static void test_scopes_of_a_handler_end_with_it(void)
{
    ta_domain_push(20);
    ta_domain_push(21);
    ta_domain_pop();
    interrupt();
    ta_domain_push(21); /* what the stack remembers */
    ta_domain_pop();
    uint32_t after_known = ta_domain_current();
    ta_domain_push(22); /* what it does not */
    ta_domain_pop();
    uint32_t after_unknown = ta_domain_current();
    come_back();
    TEST_ASSERT_EQUAL_UINT32(20, after_known);
    TEST_ASSERT_EQUAL_UINT32(20, after_unknown);
    TEST_ASSERT_EQUAL_UINT32(20, ta_domain_current());
    void *block = ta_malloc(10);
    TEST_ASSERT_EQUAL_UINT32(20, home_of(block));
    ta_free(block);
    ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT32(0, ta_domain_current());
}

static void test_calls_of_a_handler_inside_the_allocator_are_refused(void)
{
    static const struct ta_domain_limit limit = {.hard = 1000};
    uint32_t number = 99;
    void *kept = ta_malloc(10);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(30, "thirty"));
    TEST_ASSERT_GREATER_THAN_UINT64(0, ta_domain_usable_bytes(0));
    interrupt();
    int found = ta_domain_find("thirty", &number);
    size_t listed = ta_domain_list(NULL, 0);
    uint64_t usable = ta_domain_usable_bytes(0);
    errno = 0;
    int destroyed = ta_domain_destroy(30), destroy_errno = errno;
    int created = ta_domain_create_arena(&number);
    int limited = ta_domain_set_limit(30, &limit);
    int named = ta_domain_set_name(31, "other");
    int figures = is_known(30);
    const char *name = ta_domain_name(30);
    int rules = ta_domain_load_rules("/nonexistent"), rules_errno = errno;
    come_back();
    TEST_ASSERT_EQUAL_INT(0, found);
    TEST_ASSERT_EQUAL_size_t(0, listed);
    TEST_ASSERT_EQUAL_UINT64(0, usable);
    TEST_ASSERT_EQUAL_INT(-1, destroyed);
    TEST_ASSERT_EQUAL_INT(EINVAL, destroy_errno);
    TEST_ASSERT_EQUAL_INT(-1, created);
    TEST_ASSERT_EQUAL_INT(-1, limited);
    TEST_ASSERT_EQUAL_INT(-1, named);
    TEST_ASSERT_EQUAL_INT(0, figures);
    TEST_ASSERT_EQUAL_STRING("", name);
    TEST_ASSERT_EQUAL_INT(-1, rules);
    TEST_ASSERT_EQUAL_INT(EAGAIN, rules_errno);
    TEST_ASSERT_EQUAL_UINT32(99, number);
    TEST_ASSERT_EQUAL_STRING("thirty", ta_domain_name(30));
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(30).hard_limit);
    TEST_ASSERT_FALSE(is_known(31));
    interrupt();
    expect_error(ta_domain_destroy(30), EINVAL, "not from inside the allocator");
    expect_error(ta_domain_load_rules("/"), EAGAIN, "not from inside the allocator");
    come_back();
    ta_free(kept);
}

/* ---- scopes ------------------------------------------------------------------------------------------------------- */

/* One number in each depth, as far as the stack of scopes reaches: beyond that a push changes nothing. */
static void test_each_scope_is_left_for_the_one_around_it(void)
{
    enum { DEEPEST = TA__SCOPES_MAX - 2, PUSHED = TA__SCOPES_MAX + 5 };
    for (uint32_t depth = 1; depth <= PUSHED; depth++) {
        ta_domain_push(40 + depth % 7);
        TEST_ASSERT_EQUAL_UINT32(40 + (depth < DEEPEST ? depth : DEEPEST) % 7, ta_domain_current());
    }
    void *block = ta_malloc(10);
    TEST_ASSERT_EQUAL_UINT32(40 + DEEPEST % 7, home_of(block));
    ta_free(block);
    for (uint32_t depth = PUSHED; depth >= 1; depth--) {
        TEST_ASSERT_EQUAL_UINT32(40 + (depth < DEEPEST ? depth : DEEPEST) % 7, ta_domain_current());
        ta_domain_pop();
    }
    TEST_ASSERT_EQUAL_UINT32(0, ta_domain_current());
    ta_domain_push(41);
    block = ta_malloc(10);
    TEST_ASSERT_EQUAL_UINT32(41, home_of(block));
    ta_free(block);
    ta_domain_pop();
    TEST_ASSERT_EQUAL_UINT32(0, ta_domain_current());
}

static void pops_too_often(void *unused)
{
    (void)unused;
    ta_domain_pop(); /* before the thread has anything of domains */
    ta_domain_push(40);
    ta_domain_pop();
    ta_domain_pop();
    ta_domain_pop();
    ta_domain_push(41);
    void *block = ta_malloc(10);
    uint32_t home = 0;
    _exit(ta_domain_of(block, &home) && home == 41 ? 0 : 1);
}

static void test_a_pop_too_many_is_told_once_and_ignored(void)
{
    struct child_result result;
    child_run(&result, pops_too_often, NULL);
    TEST_ASSERT_EQUAL_STRING(
        "tracealloc: ta_domain_pop without ta_domain_push: ignored, here and whenever it happens again\n", result.text);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

/* A plain push of an arena's number means something else than one that asks for it, whatever the stack remembers. */
static void test_an_arena_is_entered_by_those_who_ask_each_time(void)
{
    uint32_t arena = 0;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_create_arena(&arena));
    for (int i = 0; i < 6; i++) {
        if (i % 3 == 0)
            ta_domain_push_arena(arena);
        else
            ta_domain_push(arena);
        TEST_ASSERT_EQUAL_UINT32(arena, ta_domain_current());
        void *block = ta_malloc(10);
        TEST_ASSERT_EQUAL_UINT32(i % 3 == 0 ? arena : 0, home_of(block));
        ta_free(block);
        ta_domain_pop();
    }
    ta_domain_push(42);
    ta_domain_push(arena); /* what is around it goes on */
    void *block = ta_malloc(10);
    TEST_ASSERT_EQUAL_UINT32(42, home_of(block));
    ta_free(block);
    ta_domain_pop();
    ta_domain_pop();
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(arena));
}

/* ---- numbers and names -------------------------------------------------------------------------------------------- */

/* Arenas pass by numbers that somebody has chosen. */
static void test_an_arena_gets_a_number_that_nobody_uses(void)
{
    uint32_t first = 0, next = 0;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_create_arena(&first));
    TEST_ASSERT_GREATER_OR_EQUAL_UINT32(0x40000000, first);
    ta_free(ta_domain_malloc(first + 1, 10));
    ta_free(ta_domain_malloc(first + 2, 10));
    TEST_ASSERT_EQUAL_INT(0, ta_domain_create_arena(&next));
    TEST_ASSERT_EQUAL_UINT32(first + 3, next);
    TEST_ASSERT_EQUAL_UINT32(1, stats_of(first).is_arena);
    TEST_ASSERT_EQUAL_UINT32(0, stats_of(first + 1).is_arena);
    for (uint32_t i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(first + i));
}

/* More names than one piece of memory holds: all of them stay what they were. */
static void test_many_names_stay_readable(void)
{
    enum { NAMES = 1500, FIRST = 2000000 };
    char name[256];
    memset(name, 'm', 255);
    name[255] = '\0';
    for (uint32_t i = 0; i < NAMES; i++) {
        snprintf(name, 11, "%010u", i);
        name[10] = 'm';
        TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(FIRST + i, name));
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        snprintf(name, 11, "%010u", i);
        name[10] = 'm';
        TEST_ASSERT_EQUAL_STRING(name, ta_domain_name(FIRST + i));
    }
    for (uint32_t i = 0; i < NAMES; i += 500) {
        uint32_t number = 0;
        TEST_ASSERT_EQUAL_INT(1, ta_domain_find(ta_domain_name(FIRST + i), &number));
        TEST_ASSERT_EQUAL_UINT32(FIRST + i, number);
    }
    for (uint32_t i = 0; i < NAMES; i++)
        TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(FIRST + i));
}

static void test_names_that_cannot_be_are_told_why(void)
{
    char longest[257];
    memset(longest, 'x', 256);
    longest[256] = '\0';
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(60, "sixty"));
    expect_error(ta_domain_set_name(61, "sixty"), EEXIST, "another domain has this name");
    expect_error(ta_domain_set_name(61, longest), EINVAL, "the name of a domain has at most 255 bytes");
    TEST_ASSERT_FALSE(is_known(61));
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(61, "")); /* no name: any number of domains has none */
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(62, ""));
    TEST_ASSERT_TRUE(is_known(62));
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(60));
    uint32_t number = 99;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_find("sixty", &number)); /* it went with its domain */
    TEST_ASSERT_EQUAL_UINT32(99, number);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(61, "sixty"));
    TEST_ASSERT_EQUAL_INT(1, ta_domain_find("sixty", &number));
    TEST_ASSERT_EQUAL_UINT32(61, number);
}

static void test_what_cannot_be_destroyed_is_told_why(void)
{
    expect_error(ta_domain_destroy(0), EINVAL, "domain 0 cannot be destroyed");
    expect_error(ta_domain_destroy(777), ENOENT, "there is no such domain");
    TEST_ASSERT_FALSE(is_known(777));
    struct ta_domain_stats stats;
    expect_error(ta_domain_get_stats(777, &stats, sizeof stats), ENOENT, "there is no such domain");
}

/* ---- figures ------------------------------------------------------------------------------------------------------ */

static void *holds_in_70(void *unused)
{
    void *block = ta_domain_malloc(70, 3000);
    ta_free(block);
    answer = ta_domain_malloc(70, 1000);
    return unused;
}

static void test_figures_of_several_threads_are_summed(void)
{
    pthread_t thread;
    void *first = ta_domain_malloc(70, 500);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, holds_in_70, NULL));
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
    struct ta_domain_stats stats = stats_of(70);
    TEST_ASSERT_EQUAL_UINT32(70, stats.domain);
    TEST_ASSERT_EQUAL_UINT32(0, stats.is_arena);
    TEST_ASSERT_EQUAL_UINT64(1500, stats.live_bytes);
    TEST_ASSERT_EQUAL_UINT64(2, stats.live_blocks);
    TEST_ASSERT_EQUAL_UINT64(4500, stats.allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(3, stats.allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(3000, stats.freed_bytes);
    TEST_ASSERT_EQUAL_UINT64(1, stats.freed_blocks);
    TEST_ASSERT_GREATER_OR_EQUAL_UINT64(3000, stats.peak_bytes);
    TEST_ASSERT_LESS_OR_EQUAL_UINT64(3500, stats.peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, stats.traced_bytes + stats.traced_blocks);
    ta_free(first);
    ta_free(answer);
}

static void test_figures_of_domain_0_are_those_of_its_traces(void)
{
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(0).allocated_blocks); /* nothing is traced */
    TEST_ASSERT_EQUAL_INT(0, ta_start(3));
    void *block = ta_malloc(100), *other = ta_malloc(50), *of_71 = ta_domain_malloc(71, 30);
    ta_free(other);
    struct ta_domain_stats stats = stats_of(0);
    TEST_ASSERT_EQUAL_UINT64(100, stats.live_bytes);
    TEST_ASSERT_EQUAL_UINT64(1, stats.live_blocks);
    TEST_ASSERT_EQUAL_UINT64(150, stats.allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(2, stats.allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(50, stats.freed_bytes);
    TEST_ASSERT_EQUAL_UINT64(1, stats.freed_blocks);
    TEST_ASSERT_EQUAL_UINT64(100, stats.traced_bytes);
    TEST_ASSERT_EQUAL_UINT64(1, stats.traced_blocks);
    TEST_ASSERT_EQUAL_UINT64(0, stats.peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(30, stats_of(71).traced_bytes);
    TEST_ASSERT_EQUAL_UINT64(1, stats_of(71).traced_blocks);
    ta_free(block);
    ta_free(of_71);
}

static void test_figures_are_filled_as_far_as_there_is_room(void)
{
    struct ta_domain_stats whole = stats_of(70), part;
    for (size_t size = 0; size <= sizeof whole; size += 4) {
        memset(&part, 0xA5, sizeof part);
        TEST_ASSERT_EQUAL_INT(0, ta_domain_get_stats(70, &part, size));
        TEST_ASSERT_EQUAL_INT(0, memcmp(&part, &whole, size));
        for (size_t at = size; at < sizeof part; at++)
            TEST_ASSERT_EQUAL_HEX8(0xA5, ((unsigned char *)&part)[at]);
    }
}

/* ---- limits ------------------------------------------------------------------------------------------------------- */

static struct {
    int times;
    uint32_t domain;
    uint64_t live;
} crossed;

static int context_of_limit;

static void on_crossing(uint32_t domain, uint64_t live, void *context)
{
    TEST_ASSERT_EQUAL_PTR(&context_of_limit, context);
    crossed.times++;
    crossed.domain = domain;
    crossed.live = live;
}

static void set_limits(uint32_t domain, uint64_t soft, uint64_t hard)
{
    struct ta_domain_limit limit = {soft, hard, on_crossing, &context_of_limit};
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(domain, &limit));
    memset(&crossed, 0, sizeof crossed);
}

static void test_limits_that_cannot_be_are_told_why(void)
{
    static const uint64_t most = UINT64_C(1) << 62;
    struct ta_domain_limit limit = {.soft = 1};
    expect_error(ta_domain_set_limit(0, &limit), EINVAL, "domain 0 can have no limit");
    limit.soft = most + 1;
    expect_error(ta_domain_set_limit(80, &limit), EINVAL, "the limit is too large");
    limit = (struct ta_domain_limit){.hard = most + 1};
    expect_error(ta_domain_set_limit(80, &limit), EINVAL, "the limit is too large");
    TEST_ASSERT_FALSE(is_known(80));
    limit = (struct ta_domain_limit){.soft = most, .hard = most};
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_limit(80, &limit));
    TEST_ASSERT_EQUAL_UINT64(most, stats_of(80).soft_limit);
    TEST_ASSERT_EQUAL_UINT64(most, stats_of(80).hard_limit);
    expect_error(ta__domain_limit_bytes(0, 1, NULL), EINVAL, "domain 0 can have no limit");
    expect_error(ta__domain_limit_bytes(80, most + 1, NULL), EINVAL, "the limit is too large");
    expect_error(ta__domain_limit_bytes(778, 1, NULL), ENOENT, "there is no such domain");
    TEST_ASSERT_FALSE(is_known(778));
}

static void test_limits_in_bytes_leave_the_rest_as_it_was(void)
{
    static const uint64_t hard = 9000;
    set_limits(81, 5000, 7000);
    TEST_ASSERT_EQUAL_INT(0, ta__domain_limit_bytes(81, 1000, NULL));
    TEST_ASSERT_EQUAL_UINT64(1000, stats_of(81).soft_limit);
    TEST_ASSERT_EQUAL_UINT64(7000, stats_of(81).hard_limit);
    void *block = ta_domain_malloc(81, 1001); /* who was to be called still is */
    TEST_ASSERT_EQUAL_INT(1, crossed.times);
    TEST_ASSERT_EQUAL_UINT32(81, crossed.domain);
    TEST_ASSERT_EQUAL_UINT64(1001, crossed.live);
    TEST_ASSERT_EQUAL_INT(0, ta__domain_limit_bytes(81, 0, &hard));
    TEST_ASSERT_EQUAL_UINT64(0, stats_of(81).soft_limit);
    TEST_ASSERT_EQUAL_UINT64(9000, stats_of(81).hard_limit);
    ta_free(block);
    TEST_ASSERT_EQUAL_INT(0, ta_domain_destroy(81));
    expect_error(ta__domain_limit_bytes(81, 1, NULL), ENOENT, "there is no such domain");
}

/* A limit that is exceeded already when it is set is not crossed; what falls below it and rises is. */
static void test_a_limit_is_crossed_from_below(void)
{
    void *block = ta_domain_malloc(82, 6000);
    set_limits(82, 5000, 0);
    void *more = ta_domain_malloc(82, 100);
    TEST_ASSERT_EQUAL_INT(0, crossed.times);
    ta_free(block);
    set_limits(82, 5000, 0); /* 100 bytes live */
    block = ta_domain_malloc(82, 4900);
    TEST_ASSERT_EQUAL_INT(0, crossed.times); /* reached, not crossed */
    void *last = ta_domain_malloc(82, 1);
    TEST_ASSERT_EQUAL_INT(1, crossed.times);
    TEST_ASSERT_EQUAL_UINT64(5001, crossed.live);
    TEST_ASSERT_EQUAL_UINT64(1, stats_of(82).crossings);
    ta_free(block), ta_free(more), ta_free(last);
}

/* The module above is told first, and outside of the allocator. */
static uint32_t told_first;

static void on_limit(uint32_t number)
{
    told_first = crossed.times == 0 && !ta__safepoint_is_inside(&ta__self->safepoint) ? number : 0;
}

static void test_whoever_takes_snapshots_is_told_of_a_crossing(void)
{
    void (*before)(uint32_t) = ta__domain_on_limit;
    set_limits(83, 1000, 0);
    ta__domain_on_limit = on_limit;
    void *block = ta_domain_malloc(83, 2000);
    ta__domain_on_limit = before;
    TEST_ASSERT_EQUAL_UINT32(83, told_first);
    TEST_ASSERT_EQUAL_INT(1, crossed.times);
    ta_free(block);
}

/* ---- the lock of the table ---------------------------------------------------------------------------------------- */

static int is_done;

static void look_up_known(void)
{
    memset(ta__domain_cache, 0, sizeof ta__domain_cache);
    (void)ta_domain_name(90);
}

static void look_up_new(void)
{
    ta_free(ta_domain_malloc(91, 10));
}

static void first_block_of_90(void)
{
    ta_free(ta_domain_malloc(90, 10));
}

static void look_for_name(void)
{
    uint32_t number;
    (void)ta_domain_find("ninety", &number);
}

static void give_name(void)
{
    (void)ta_domain_set_name(90, "");
}

static void make_arena(void)
{
    uint32_t number;
    if (ta_domain_create_arena(&number) == 0)
        ta_domain_destroy(number);
}

static void destroy_92(void)
{
    ta_domain_destroy(92);
}

static void first_block_with_a_header(void)
{
    ta_free(ta_malloc(10));
}

static void first_block_at_a_line(void)
{
    ta_free(ta_aligned_alloc(64, 10));
}

static void *does_it(void *what)
{
    void (*const *function)(void) = what;
    ta_free(ta_malloc(0)); /* the thread is known */
    (*function)();
    __atomic_store_n(&is_done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Who needs the table waits for whoever holds it. The lowest bit of its lock says that somebody sleeps. */
static void expect_waits_for_the_table(void (*function)(void))
{
    pthread_t thread;
    ta_free(ta_malloc(1));
    struct ta__shut shut = ta__shut();
    ta__lock_acquire(&ta__domain_table.lock);
    __atomic_store_n(&is_done, 0, __ATOMIC_SEQ_CST);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, does_it, &function));
    while (!__atomic_load_n(&is_done, __ATOMIC_SEQ_CST) && (ta__load_relaxed(&ta__domain_table.lock.state) & 1) == 0)
        sched_yield();
    int went_ahead = __atomic_load_n(&is_done, __ATOMIC_SEQ_CST), is_mine = ta__lock_is_mine(&ta__domain_table.lock);
    if (is_mine)
        ta__lock_release(&ta__domain_table.lock);
    ta__open(&shut);
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
    TEST_ASSERT_FALSE(went_ahead);
    TEST_ASSERT_TRUE(is_mine);
}

static void test_who_needs_the_table_waits_for_whoever_changes_it(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(90, "ninety")); /* no block yet */
    ta_free(ta_domain_malloc(92, 10));
    expect_waits_for_the_table(look_up_known);
    expect_waits_for_the_table(look_up_new);
    (void)ta_domain_name(90);
    expect_waits_for_the_table(first_block_of_90);
    expect_waits_for_the_table(look_for_name);
    expect_waits_for_the_table(give_name);
    expect_waits_for_the_table(make_arena);
    expect_waits_for_the_table(destroy_92);
    TEST_ASSERT_EQUAL_INT(0, ta_start(1));
    expect_waits_for_the_table(first_block_with_a_header);
    expect_waits_for_the_table(first_block_at_a_line);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_first_domain_without_memory_is_refused_and_comes_later);
    RUN_TEST(test_a_move_into_a_domain_that_cannot_be_made_fails_and_leaves_the_block);
    RUN_TEST(test_names_without_memory_are_refused_and_come_later);
    RUN_TEST(test_what_a_thread_without_slots_frees_and_changes_is_counted);
    RUN_TEST(test_scopes_of_a_handler_end_with_it);
    RUN_TEST(test_calls_of_a_handler_inside_the_allocator_are_refused);
    RUN_TEST(test_each_scope_is_left_for_the_one_around_it);
    RUN_TEST(test_a_pop_too_many_is_told_once_and_ignored);
    RUN_TEST(test_an_arena_is_entered_by_those_who_ask_each_time);
    RUN_TEST(test_an_arena_gets_a_number_that_nobody_uses);
    RUN_TEST(test_many_names_stay_readable);
    RUN_TEST(test_names_that_cannot_be_are_told_why);
    RUN_TEST(test_what_cannot_be_destroyed_is_told_why);
    RUN_TEST(test_figures_of_several_threads_are_summed);
    RUN_TEST(test_figures_of_domain_0_are_those_of_its_traces);
    RUN_TEST(test_figures_are_filled_as_far_as_there_is_room);
    RUN_TEST(test_limits_that_cannot_be_are_told_why);
    RUN_TEST(test_limits_in_bytes_leave_the_rest_as_it_was);
    RUN_TEST(test_a_limit_is_crossed_from_below);
    RUN_TEST(test_whoever_takes_snapshots_is_told_of_a_crossing);
    RUN_TEST(test_who_needs_the_table_waits_for_whoever_changes_it);
    return UNITY_END();
}
