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

/* ---- every bound from both sides ---- */

static void test_a_file_may_grow_with_its_age(void)
{
    const struct ta__pace pace = {.begun_ns = 7 * S};
    static const struct {
        uint64_t seconds, bytes;
    } limits[] = {{0, 262144},     {1, 264144},        {3599, 7460144},    {3600, 7462144},
                  {3601, 7462284}, {429605, 67102844}, {429650, 67108864}, {429651, 67108864}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        TEST_ASSERT_EQUAL_UINT64(limits[i].bytes, ta__pace_file_limit(&pace, (7 + limits[i].seconds) * S));
    TEST_ASSERT_EQUAL_UINT64(262144, ta__pace_file_limit(&pace, 8 * S - 1));
}

static void test_what_an_entry_costs_is_foreseen(void)
{
    struct ta__pace pace = {0};
    ta__pace_foresee(&pace, 0);
    TEST_ASSERT_EQUAL_UINT64(200000, pace.next_ns);
    ta__pace_foresee(&pace, 100);
    TEST_ASSERT_EQUAL_UINT64(200000 + 100 * 80, pace.next_ns); /* all of them are new */
    TEST_ASSERT_EQUAL_UINT64(100, pace.next_rows);
    ta__pace_note(&pace, 5, 6, 7, 8);
    ta__pace_foresee(&pace, 110);
    TEST_ASSERT_EQUAL_UINT64(200000 + 110 * 20 + 10 * 60, pace.next_ns);
    ta__pace_foresee(&pace, 90);
    TEST_ASSERT_EQUAL_UINT64(200000 + 90 * 20, pace.next_ns);
}

static void test_what_was_spent_is_noted(void)
{
    struct ta__pace pace = {0};
    ta__pace_note(&pace, 5, 6, 7, 8);
    TEST_ASSERT_EQUAL_UINT64(5, pace.last_ns);
    TEST_ASSERT_EQUAL_UINT64(6, pace.last_bytes);
    TEST_ASSERT_EQUAL_UINT64(7, pace.written_bytes);
    TEST_ASSERT_EQUAL_UINT64(8, pace.spent_ns);
    TEST_ASSERT_EQUAL_UINT64(0, pace.foreseen_ns + pace.foreseen_spent_ns); /* nothing was foreseen */
    ta__pace_foresee(&pace, 1);
    ta__pace_note(&pace, 15, 16, 17, 18);
    TEST_ASSERT_EQUAL_UINT64(26, pace.spent_ns);
    TEST_ASSERT_EQUAL_UINT64(17, pace.written_bytes);
    TEST_ASSERT_EQUAL_UINT64(200080, pace.foreseen_ns);
    TEST_ASSERT_EQUAL_UINT64(18, pace.foreseen_spent_ns);
    TEST_ASSERT_EQUAL_UINT64(1, pace.last_rows);
}

/* Of a program of 143 ms, which has earned 1 ms. */
static int is_due(struct ta__pace pace, uint64_t current)
{
    pace.busy_ns = 143 * MS;
    return ta__pace_is_due(&pace, 1000 * S, current);
}

static void test_an_entry_is_due_when_it_is_earned(void)
{
    TEST_ASSERT_TRUE(is_due((struct ta__pace){.spent_ns = MS}, 1));
    TEST_ASSERT_FALSE(is_due((struct ta__pace){.spent_ns = MS + 1}, 1));
    TEST_ASSERT_TRUE(is_due((struct ta__pace){.spent_ns = MS - 300000, .next_ns = 300000}, 1));
    TEST_ASSERT_FALSE(is_due((struct ta__pace){.spent_ns = MS - 300000, .next_ns = 300001}, 1));
    /* What was foreseen cost twice as much, beside a millisecond: (1 + 3) of (1 + 1). */
    const struct ta__pace dear = {.foreseen_ns = MS, .foreseen_spent_ns = 3 * MS, .spent_ns = MS - 600000};
    struct ta__pace pace = dear;
    pace.next_ns = 300000;
    TEST_ASSERT_TRUE(is_due(pace, 1));
    pace.next_ns = 300001;
    TEST_ASSERT_FALSE(is_due(pace, 1));
}

static void test_much_memory_is_followed_on_credit_where_entries_are_cheap(void)
{
    TEST_ASSERT_TRUE(is_due((struct ta__pace){.spent_ns = 31 * MS - 250000, .next_ns = 250000}, 48 * MIB));
    TEST_ASSERT_FALSE(is_due((struct ta__pace){.spent_ns = 31 * MS - 249999, .next_ns = 250000}, 48 * MIB));
    TEST_ASSERT_FALSE(is_due((struct ta__pace){.spent_ns = 2 * MS, .next_ns = 250000}, 48 * MIB - 1));
    TEST_ASSERT_FALSE(is_due((struct ta__pace){.spent_ns = 2 * MS, .next_ns = 250001}, 48 * MIB));
}

static void test_in_danger_five_times_as_much_is_earned(void)
{
    TEST_ASSERT_TRUE(is_due((struct ta__pace){.spent_ns = 155 * MS, .next_ns = 99 * MS, .is_in_danger = 1}, 1));
    TEST_ASSERT_FALSE(is_due((struct ta__pace){.spent_ns = 155 * MS + 1, .is_in_danger = 1}, 1));
}

static void test_a_disk_bears_50_kilobytes_a_second(void)
{
    struct ta__pace pace = {.begun_ns = 990 * S};
    pace.written_bytes = 4 * MIB + 500000;
    TEST_ASSERT_TRUE(is_due(pace, 1));
    pace.written_bytes++;
    TEST_ASSERT_FALSE(is_due(pace, 1));
    pace.is_in_danger = 1;
    pace.written_bytes = 5 * (4 * MIB + 500000);
    TEST_ASSERT_TRUE(is_due(pace, 1));
    pace.written_bytes++;
    TEST_ASSERT_FALSE(is_due(pace, 1));
}

static void test_small_programs_grow_by_16_kibibytes(void)
{
    struct ta__pace pace = {.last_bytes = 819200}; /* of which 2 % are as much */
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 200 * MS, 819200 + 16384));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 200 * MS, 819200 + 16385));
    pace.last_bytes = 10;
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 200 * MS, 10 + 16384));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 200 * MS, 10 + 16385));
    pace.last_bytes = 819250;
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 200 * MS, 819250 + 16385));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 200 * MS, 819250 + 16386));
    pace.last_ns = 200 * MS;
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 202 * MS - 1, 10 * MB));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 202 * MS, 10 * MB));
    pace.last_bytes = 0; /* nothing has changed for five seconds */
    TEST_ASSERT_FALSE(ta__pace_is_due(&pace, 5200 * MS - 1, 0));
    TEST_ASSERT_TRUE(ta__pace_is_due(&pace, 5200 * MS, 0));
}

/* As long as it takes to earn what is missing, by a program that has had half of a processor. */
static void test_a_nap_lasts_until_an_entry_is_earned(void)
{
    static const struct {
        uint64_t missing, nap;
    } naps[] = {{0, 25 * MS},       {174825, 25 * MS},  {175000, 25025000}, {300000, 42900000},
                {699000, 99957000}, {700000, 100 * MS}, {MS, 100 * MS}};
    for (size_t i = 0; i < sizeof naps / sizeof *naps; i++) {
        struct ta__pace pace = {
            .begun_ns = S, .busy_ns = 1430 * MS, .spent_ns = 10 * MS + naps[i].missing, .last_bytes = 5};
        TEST_ASSERT_EQUAL_UINT64(naps[i].nap, ta__pace_nap_ns(&pace, 3860 * MS, 4));
        TEST_ASSERT_EQUAL_UINT64(3860 * MS, pace.looked_ns);
        TEST_ASSERT_EQUAL_UINT64(4, pace.looked_bytes);
        struct ta__pace unknown = {.begun_ns = S, .spent_ns = 20 * MS + naps[i].missing, .last_bytes = 5};
        uint64_t half = naps[i].missing * 143 / 2; /* it is taken to have had all of it */
        half = half < 25 * MS ? 25 * MS : half;
        TEST_ASSERT_EQUAL_UINT64(half, ta__pace_nap_ns(&unknown, 3860 * MS, 4));
    }
    struct ta__pace idle = {.last_ns = S, .last_bytes = 4, .spent_ns = S};
    TEST_ASSERT_EQUAL_UINT64(100 * MS, ta__pace_nap_ns(&idle, 2 * S, 4));
    TEST_ASSERT_EQUAL_UINT64(250 * MS, ta__pace_nap_ns(&idle, 2 * S + 1, 4));
    TEST_ASSERT_EQUAL_UINT64(100 * MS, ta__pace_nap_ns(&idle, 2 * S + 1, 3));
    struct ta__pace fresh = {0};
    TEST_ASSERT_EQUAL_UINT64(25 * MS, ta__pace_nap_ns(&fresh, 0, 1));
}

/* Until the next step is reached, as fast as it has grown since the last look. */
static void test_fast_growth_shortens_a_nap(void)
{
    static const struct {
        uint64_t grown, passed, nap;
    } naps[] = {{0, MS, 25 * MS},        {1024, MS, 25 * MS} /* a sixteenth of a step */,
                {1025, MS, 15984390},    {2048, MS, 8 * MS},
                {16384, 3 * MS, 3 * MS}, {16384, 2 * MS + 1, 2 * MS + 1},
                {16384, 2 * MS, 2 * MS}, {16384, 2 * MS - 1, 2 * MS},
                {2048, 0, 25 * MS},      {2048, 4 * MS, 25 * MS}};
    for (size_t i = 0; i < sizeof naps / sizeof *naps; i++) {
        struct ta__pace pace = {.looked_bytes = 10, .looked_ns = 1000 * S - naps[i].passed, .last_bytes = 10};
        TEST_ASSERT_EQUAL_UINT64(naps[i].grown == 0 ? 250 * MS : naps[i].nap,
                                 ta__pace_nap_ns(&pace, 1000 * S, 10 + naps[i].grown));
    }
    struct ta__pace shrunk = {.looked_bytes = 1000 * MB, .looked_ns = 999 * S, .last_bytes = 10};
    TEST_ASSERT_EQUAL_UINT64(25 * MS, ta__pace_nap_ns(&shrunk, 1000 * S, 11));
}

/* Where no entry can be afforded only the next look whether memory is short counts. */
static void test_danger_is_looked_for_in_time(void)
{
    for (unsigned beyond = 0; beyond <= 1; beyond++) {
        struct ta__pace pace = {.looked_ns = 999 * S, .last_bytes = 10, .spent_ns = 100 * S};
        pace.danger_bytes = 16384 + 16384 + beyond; /* a step behind what there is, or a byte more */
        pace.looked_ns = 1000 * S - 5 * MS;
        TEST_ASSERT_EQUAL_UINT64(5 * MS + beyond * 5 * MS / 16384, ta__pace_nap_ns(&pace, 1000 * S, 16384));
    }
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
    RUN_TEST(test_a_file_may_grow_with_its_age);
    RUN_TEST(test_what_an_entry_costs_is_foreseen);
    RUN_TEST(test_what_was_spent_is_noted);
    RUN_TEST(test_an_entry_is_due_when_it_is_earned);
    RUN_TEST(test_much_memory_is_followed_on_credit_where_entries_are_cheap);
    RUN_TEST(test_in_danger_five_times_as_much_is_earned);
    RUN_TEST(test_a_disk_bears_50_kilobytes_a_second);
    RUN_TEST(test_small_programs_grow_by_16_kibibytes);
    RUN_TEST(test_a_nap_lasts_until_an_entry_is_earned);
    RUN_TEST(test_fast_growth_shortens_a_nap);
    RUN_TEST(test_danger_is_looked_for_in_time);
    return UNITY_END();
}
