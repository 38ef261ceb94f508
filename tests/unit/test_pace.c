/* test_pace.c: when a series takes its next entry, with the time compressed. */
#include <unity.h>

#include "snapshot/triggers/pace.h"

#define MS  UINT64_C(1000000)
#define S   (1000 * MS)
#define MB  UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)

void setUp(void)
{
}

void tearDown(void)
{
}

/* A server: its memory goes up and down all the time, each entry has so many bytes and costs so much. */
static struct ta__pace serve(uint64_t seconds, uint64_t entry_bytes, uint64_t cost_ns, unsigned *entries)
{
    struct ta__pace pace = {0};
    *entries = 0;
    for (uint64_t now = 0, round = 0; now < seconds * S; now += 250 * MS, round++) {
        uint64_t current = 50 * MB + round * 7919 % 1000 * 1000;
        if (!ta__pace_is_due(&pace, now, current))
            continue;
        ta__pace_note(&pace, now, current, pace.written_bytes + entry_bytes, cost_ns);
        ++*entries;
    }
    return pace;
}

static void test_an_hour_and_a_week_stay_within_their_bytes(void)
{
    struct ta__pace pace = {0};
    TEST_ASSERT_LESS_THAN_UINT64(10 * MB, ta__pace_file_limit(&pace, 3600 * S));
    TEST_ASSERT_LESS_THAN_UINT64(100 * MB, ta__pace_file_limit(&pace, 7 * 86400 * S));
    TEST_ASSERT_LESS_THAN_UINT64(100 * MB, ta__pace_file_limit(&pace, 700 * 86400 * S));
    TEST_ASSERT_GREATER_THAN_UINT64(100000, ta__pace_file_limit(&pace, 0));
}

static void test_disk_and_processor_bear_it_for_weeks(void)
{
    unsigned entries;
    for (uint64_t bytes = 120; bytes <= 1200000; bytes *= 10)
        for (uint64_t cost = MS / 10; cost <= 1000 * MS; cost *= 10) {
            struct ta__pace pace = serve(86400, bytes, cost, &entries);
            TEST_ASSERT_LESS_OR_EQUAL_UINT64(86400 * 60000ul, pace.written_bytes);
            TEST_ASSERT_LESS_OR_EQUAL_UINT64(86400 * S / 100 + cost, pace.spent_ns);
            TEST_ASSERT_GREATER_THAN_UINT(500, entries);
        }
    serve(3600, 1000, MS, &entries);
    TEST_ASSERT_GREATER_OR_EQUAL(3600 * 4 - 4, entries); /* nothing is left out of an ordinary one */
}

static void test_change_is_seen_within_a_quarter_of_a_second_and_two_percent(void)
{
    struct ta__pace pace = {.begun_ns = S, .last_ns = S, .last_bytes = 100 * MB};
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, S + 30 * MS, 102 * MB));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, S + 30 * MS, 102 * MB + 1));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, S + 2 * MS, 102 * MB + 1));
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, S + 249 * MS, 100 * MB + 1));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, S + 250 * MS, 100 * MB + 1));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, S + 250 * MS, 100 * MB - 1));
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, S + 250 * MS, 100 * MB));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 6 * S, 100 * MB));
}

/* A program that takes a gigabyte in two seconds has an entry for each 2 %, if they are as cheap as they are. */
static void test_fast_growth_is_followed(void)
{
    struct ta__pace pace = {0};
    uint64_t next_look = 0;
    for (uint64_t now = 0; now < 2 * S; now += MS / 10) {
        uint64_t current = MB + now / 2; /* bytes: half a gigabyte a second */
        if (now < next_look)
            continue;
        if (ta__pace_is_due(&pace, now, current))
            ta__pace_note(&pace, now, current, pace.written_bytes + 350, MS / 10);
        next_look = now + ta__pace_nap_ns(&pace, now, current);
        if (now > 100 * MS)
            TEST_ASSERT_LESS_OR_EQUAL_UINT64(pace.last_bytes + pace.last_bytes / 25 + 64000, current);
    }
}

static void test_what_costs_much_comes_rarely_and_what_was_not_used_is_saved(void)
{
    struct ta__pace pace = {.last_bytes = 100 * MB};
    ta__pace_note(&pace, 0, 100 * MB, 1000, 300 * MS);
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 10 * S, 900 * MB));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 45 * S, 900 * MB));
    pace = (struct ta__pace){.last_bytes = 100 * MB, .last_ns = 1000 * S};
    ta__pace_note(&pace, 1000 * S, 100 * MB, 1000, 300 * MS);
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 1000 * S + 20 * MS, 900 * MB));
}

static void test_in_danger_more_may_be_spent(void)
{
    struct ta__pace pace = {.last_bytes = 100 * MB};
    ta__pace_note(&pace, S, 100 * MB, 10 * MIB, 100 * MS);
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 2 * S, 900 * MB));
    pace.is_in_danger = 1;
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 2 * S, 900 * MB));
}

/* What entries cost is foreseen: those of a program that has lived for `busy` so far, one look a millisecond. */
static struct ta__pace live(uint64_t busy, uint64_t rows_per_ms, uint64_t cost_ns)
{
    struct ta__pace pace = {0};
    for (uint64_t now = MS; now <= busy; now += MS) {
        uint64_t rows = rows_per_ms * (now / MS);
        pace.busy_ns = now;
        ta__pace_foresee(&pace, rows);
        if (ta__pace_is_due(&pace, now, now / 10)) /* 100 MB a second */
            ta__pace_note(&pace, now, now / 10, pace.written_bytes + 100, cost_ns);
    }
    return pace;
}

static void test_entries_of_short_programs_take_their_share_too(void)
{
    for (uint64_t busy = 5 * MS; busy <= 400 * MS; busy *= 2)
        for (uint64_t rows_per_ms = 10; rows_per_ms <= 1000; rows_per_ms *= 10) {
            struct ta__pace pace = live(busy, rows_per_ms, 300 * MS / 1000 + rows_per_ms * 400);
            TEST_ASSERT_LESS_OR_EQUAL_UINT64(busy / 100, pace.spent_ns);
        }
    TEST_ASSERT_EQUAL_UINT64(0, live(20 * MS, 10, MS / 10).spent_ns); /* none yet, however cheap */
    TEST_ASSERT_GREATER_THAN_UINT64(0, live(300 * MS, 10, MS / 10).spent_ns);
}

/* A machine that is three times as slow, or stacks that are three times as long as usual. */
static void test_what_entries_cost_corrects_what_is_foreseen(void)
{
    struct ta__pace pace = {.begun_ns = 0, .busy_ns = 40 * S};
    ta__pace_foresee(&pace, 100000);
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 40 * S, 10 * MB));
    ta__pace_note(&pace, 40 * S, 10 * MB, 1000, 3 * pace.next_ns);
    ta__pace_foresee(&pace, 400000);
    pace.busy_ns = (pace.spent_ns + 2 * pace.next_ns) * 143;
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 80 * S, 20 * MB));
    pace.busy_ns = (pace.spent_ns + 3 * pace.next_ns) * 143;
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 80 * S, 20 * MB));
}

/* It need not wait for what it costs while the process may be killed at any moment. */
static void test_the_first_entry_comes_at_once_in_danger(void)
{
    struct ta__pace pace = {.is_in_danger = 1, .busy_ns = 3 * MS};
    ta__pace_foresee(&pace, 1000000);
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 3 * MS, 10 * MB));
    pace.is_in_danger = 0;
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 3 * MS, 10 * MB));
}

/* Nothing can be taken for long, so nothing needs to be looked at, but for whether memory is short. */
static void test_looks_are_few_while_no_entry_can_be_afforded(void)
{
    struct ta__pace pace = {.last_bytes = 20 * MB,
                            .looked_ns = 99 * MS,
                            .looked_bytes = 19 * MB,
                            .busy_ns = 100 * MS,
                            .danger_bytes = 900 * MB};
    ta__pace_foresee(&pace, 1000000);
    struct ta__pace again = pace, near = pace, slow = pace;
    TEST_ASSERT_EQUAL_UINT64(100 * MS, ta__pace_nap_ns(&pace, 100 * MS, 20 * MB));
    again.busy_ns = 100 * S;
    TEST_ASSERT_EQUAL_UINT64(2 * MS, ta__pace_nap_ns(&again, 100 * MS, 20 * MB));
    slow.looked_bytes = 20 * MB; /* it gets a tenth of the processor, and earns as slowly */
    slow.next_ns = 2 * MS;
    slow.busy_ns = 200 * MS;
    TEST_ASSERT_LESS_THAN_UINT64(50 * MS, ta__pace_nap_ns(&slow, 200 * MS, 20 * MB));
    TEST_ASSERT_EQUAL_UINT64(100 * MS, ta__pace_nap_ns(&slow, 2000 * MS, 20 * MB + 1));
    near.danger_bytes = 30 * MB;
    TEST_ASSERT_EQUAL_UINT64(10 * MS, ta__pace_nap_ns(&near, 100 * MS, 20 * MB));
}

static void test_looks_are_few_when_nothing_happens(void)
{
    struct ta__pace pace = {.last_ns = S, .last_bytes = 100 * MB, .looked_ns = S, .looked_bytes = 100 * MB};
    TEST_ASSERT_EQUAL_UINT64(25 * MS, ta__pace_nap_ns(&pace, S + 100 * MS, 100 * MB));
    TEST_ASSERT_EQUAL_UINT64(250 * MS, ta__pace_nap_ns(&pace, 3 * S, 100 * MB));
    TEST_ASSERT_EQUAL_UINT64(25 * MS, ta__pace_nap_ns(&pace, 3 * S + 25 * MS, 99 * MB));
    TEST_ASSERT_LESS_THAN_UINT64(10 * MS, ta__pace_nap_ns(&pace, 3 * S + 50 * MS, 109 * MB));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_an_hour_and_a_week_stay_within_their_bytes);
    RUN_TEST(test_disk_and_processor_bear_it_for_weeks);
    RUN_TEST(test_change_is_seen_within_a_quarter_of_a_second_and_two_percent);
    RUN_TEST(test_fast_growth_is_followed);
    RUN_TEST(test_what_costs_much_comes_rarely_and_what_was_not_used_is_saved);
    RUN_TEST(test_in_danger_more_may_be_spent);
    RUN_TEST(test_entries_of_short_programs_take_their_share_too);
    RUN_TEST(test_what_entries_cost_corrects_what_is_foreseen);
    RUN_TEST(test_the_first_entry_comes_at_once_in_danger);
    RUN_TEST(test_looks_are_few_while_no_entry_can_be_afforded);
    RUN_TEST(test_looks_are_few_when_nothing_happens);
    return UNITY_END();
}
