/* test_growth_shape.c: what courses of sizes look like, at and beside the borders that docs/growth.md names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "analysis/growth/shape.h"

static double apart; /* seconds from point to point */

void setUp(void)
{
    apart = 10;
}

void tearDown(void)
{
}

enum { POINTS_MOST = 32 };

struct given {
    const char *sizes; /* "100 200 …", one after the other; "100x5": five times */
    int calls;         /* of each step; the first point has as many */
    int ends_at_exit;
    const char *expected;
    const char *work; /* "0 10 …" of 100; NULL: the points are evenly apart */
};

static size_t read_sizes(const char *text, uint64_t *sizes)
{
    size_t count = 0;
    for (char *end; *text != '\0'; text = *end == ' ' ? end + 1 : end) {
        uint64_t size = strtoull(text, &end, 10);
        size_t times = *end == 'x' ? strtoull(end + 1, &end, 10) : 1;
        while (times-- > 0) {
            TEST_ASSERT_TRUE(count < POINTS_MOST);
            sizes[count++] = size;
        }
    }
    return count;
}

/* "steady 0.82: grew through 10 entries, 100% on a line; 900 bytes, 600 a minute, 10 a call" */
static const char *shape_text(const struct given *given)
{
    static char text[300];
    uint64_t sizes[POINTS_MOST], calls[POINTS_MOST], parts[POINTS_MOST];
    double work[POINTS_MOST], seconds[POINTS_MOST];
    struct ta__course course = {.count = read_sizes(given->sizes, sizes),
                                .work = work,
                                .seconds = seconds,
                                .sizes = sizes,
                                .calls = calls,
                                .ends_at_exit = given->ends_at_exit};
    if (given->work != NULL)
        TEST_ASSERT_EQUAL_size_t(course.count, read_sizes(given->work, parts));
    for (size_t i = 0; i < course.count; i++) {
        work[i] = given->work != NULL ? (double)parts[i] / 100
                  : course.count < 2  ? 0
                                      : (double)i / (double)(course.count - 1);
        seconds[i] = apart * (double)i;
        calls[i] = (uint64_t)given->calls * (i + 1);
    }
    struct ta__shape shape;
    ta__shape_of(&course, &shape);
    int length =
        snprintf(text, sizeof text, "%s %.3f: %s", ta_growth_name(shape.growth), shape.certainty, shape.reason);
    if (shape.grown != 0 || shape.bytes_per_minute != 0 || shape.bytes_per_call != 0)
        snprintf(text + length, sizeof text - (size_t)length, "; %llu bytes, %.1f a minute, %.2f a call",
                 (unsigned long long)shape.grown, shape.bytes_per_minute, shape.bytes_per_call);
    return text;
}

static void assert_shapes(const struct given *given, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TEST_ASSERT_EQUAL_STRING_MESSAGE(given[i].expected, shape_text(&given[i]), given[i].sizes);
}

#define ASSERT_SHAPES(given) assert_shapes(given, sizeof(given) / sizeof *(given))

static void test_nothing_or_a_single_entry_tells_no_course(void)
{
    static const struct given given[] = {
        {"", 0, 0, "unknown 0.000: nothing was allocated", NULL},
        {"0", 0, 0, "unknown 0.000: nothing was allocated", NULL},
        {"0x5", 0, 0, "unknown 0.000: nothing was allocated", NULL},
        {"0x5", 3, 0, "churn 0.714: never there when an entry was written", NULL},
        {"0", 3, 0, "churn 0.333: never there when an entry was written", NULL},
        {"500", 3, 0, "unknown 0.000: a single entry tells no course", NULL},
        {"500", 3, 1, "unknown 0.000: a single entry tells no course", NULL},
    };
    ASSERT_SHAPES(given);
}

static void test_what_grows_on_is_steady(void)
{
    static const struct given given[] = {
        {"100 200 300 400 500 600 700 800 900 1000", 10, 0,
         "steady 0.818: grew through 10 entries, 100% on a line; 900 bytes, 600.0 a minute, 10.00 a call", NULL},
        {"0 10 20 30", 1, 0,
         "steady 0.600: grew through 4 entries, 100% on a line; 30 bytes, 60.0 a minute, 10.00 a call", NULL},
        {"0x6 100 200 300 400", 10, 0,
         "steady 0.667: grew through 5 entries, 100% on a line; 400 bytes, 600.0 a minute, 10.00 a call", NULL},
        {"100 150 140 300 290 450 440 600 590 750", 10, 0,
         "steady 0.797: grew through 10 entries, 96% on a line; 650 bytes, 433.3 a minute, 7.22 a call", NULL},
        {"0 100 200 300 400 500 600 700 800 900 1000", 0, 0,
         "steady 0.833: grew through 11 entries, 100% on a line; 1000 bytes, 600.0 a minute, 0.00 a call", NULL},
        {"100 400 500 520 700 710 1000 1100", 5, 0,
         "steady 0.755: grew through 8 entries, 95% on a line; 1000 bytes, 857.1 a minute, 28.57 a call", NULL},
        {"0 100 200 300 400", 10, 0,
         "steady 0.631: grew through 5 entries, 91% on a line; 400 bytes, 600.0 a minute, 10.00 a call",
         "0 50 60 70 100"},
    };
    ASSERT_SHAPES(given);
}

static void test_growth_of_less_than_five_seconds_has_no_rate(void)
{
    static const struct given shorter[] = {
        {"0 10 20 30 40", 1, 0,
         "steady 0.667: grew through 5 entries, 100% on a line; 40 bytes, 0.0 a minute, 10.00 a call", NULL},
        {"0x7 10 20 30 40", 1, 0,
         "steady 0.667: grew through 5 entries, 100% on a line; 40 bytes, 0.0 a minute, 10.00 a call", NULL},
    };
    static const struct given long_enough[] = {
        {"0 10 20 30 40", 1, 0,
         "steady 0.667: grew through 5 entries, 100% on a line; 40 bytes, 480.0 a minute, 10.00 a call", NULL},
    };
    apart = 1;
    ASSERT_SHAPES(shorter);
    apart = 1.25;
    ASSERT_SHAPES(long_enough);
}

static void test_what_grows_less_and_less_is_slowing(void)
{
    static const struct given given[] = {
        {"0 400 600 700 760 800 830 850 860 870 880 890 900 910 920 980 990", 10, 0,
         "steady 0.696: grew through 17 entries, 64% on a line; 990 bytes, 371.2 a minute, 6.19 a call", NULL},
        {"0 600 800 840 870 890 1000", 10, 0,
         "steady 0.613: grew through 7 entries, 70% on a line; 1000 bytes, 1000.0 a minute, 16.67 a call", NULL},
        {"0 300 500 600 650 680 700 720 740 760", 3, 0,
         "slowing 0.491: lately at 24% of its mean rate; 760 bytes, 506.7 a minute, 28.15 a call", NULL},
    };
    ASSERT_SHAPES(given);
}

static void test_few_entries_of_growth_are_unsure(void)
{
    static const struct given given[] = {
        {"100 200", 10, 0,
         "unsure 0.167: larger than before, for 1 entry only; 100 bytes, 600.0 a minute, 10.00 a call", NULL},
        {"100x6 200", 10, 0,
         "unsure 0.375: larger than before, for 1 entry only; 100 bytes, 600.0 a minute, 10.00 a call", NULL},
        {"100x6 150 200", 10, 0,
         "unsure 0.389: larger than before, for 2 entries only; 100 bytes, 300.0 a minute, 5.00 a call", NULL},
        {"100x6 150 200 250", 10, 0,
         "steady 0.600: grew through 4 entries, 100% on a line; 150 bytes, 300.0 a minute, 5.00 a call", NULL},
        {"100 100 160 200", 0, 0,
         "unsure 0.300: larger than before, for 2 entries only; 100 bytes, 300.0 a minute, 0.00 a call", NULL},
    };
    ASSERT_SHAPES(given);
}

static void test_one_step_is_one_off(void)
{
    static const struct given given[] = {
        {"0x4 1000x5", 10, 0, "one-off 0.750: one step at 50% of the time, flat before and after", NULL},
        {"0x4 1000 1000", 10, 0, "one-off 0.600: one step at 80% of the time, flat before and after", NULL},
        {"0x8 1000", 10, 0,
         "unsure 0.400: larger than before, for 1 entry only; 1000 bytes, 6000.0 a minute, 100.00 a call", NULL},
        {"0x3 200 1000x4", 10, 0, "plateau 0.600: no growth in the last 43% of the time, through 30 calls", NULL},
        {"0x3 201 1000x4", 10, 0, "plateau 0.600: no growth in the last 43% of the time, through 30 calls", NULL},
        {"0 1000", 5, 0,
         "unsure 0.167: larger than before, for 1 entry only; 1000 bytes, 6000.0 a minute, 200.00 a call", NULL},
        {"100x4 1000x2 1050x3", 2, 0, "one-off 0.750: one step at 50% of the time, flat before and after", NULL},
    };
    ASSERT_SHAPES(given);
}

static void test_what_stops_growing_is_a_plateau(void)
{
    static const struct given given[] = {
        {"0 200 400 600 800 1000 1000 1000 1000", 10, 0,
         "plateau 0.600: no growth in the last 38% of the time, through 30 calls", NULL},
        {"0 200 400 600 800 1000 1000 1000 1000", 0, 0,
         "plateau 0.480: no growth in the last 38% of the time, and no calls", NULL},
        {"0 100 200 300 400 500 600 950 1000 1000", 10, 0,
         "steady 0.801: grew through 10 entries, 97% on a line; 1000 bytes, 666.7 a minute, 11.11 a call", NULL},
        {"0 200 400 600 800 1000 960 980 1000 1000", 4, 0,
         "plateau 0.667: no growth in the last 44% of the time, through 16 calls", NULL},
        {"0 250 500 750 1000 1000 1000", 10, 0,
         "plateau 0.500: no growth in the last 60% of the time, through 20 calls", "0 10 20 30 40 50 100"},
        {"0 250 500 750 1000 1000 1000", 10, 0,
         "steady 0.741: grew through 7 entries, 98% on a line; 1000 bytes, 1000.0 a minute, 16.67 a call",
         "0 20 40 80 90 95 100"},
    };
    ASSERT_SHAPES(given);
}

static void test_what_comes_and_goes_is_a_sawtooth(void)
{
    static const struct given given[] = {
        {"0 1000 100 1000 100 1000 100 1000 100", 10, 0, "sawtooth 0.720: fell by a fifth or more 4 times", NULL},
        {"1000 800 1000 800 1000", 10, 0, "sawtooth 0.467: fell by a fifth or more 2 times", NULL},
        {"1000 801 1000 801 1000", 10, 0, "sawtooth 0.333: no larger than in the first entry", NULL},
        {"0 1000 800 1000 800 1000 800 1000 800 1000 800 1000", 10, 0,
         "sawtooth 0.846: fell by a fifth or more 5 times", NULL},
        {"0 500 200 700 400 900 600 1100 800 1300 1000 1500", 10, 0,
         "steady 0.592: comes and goes, and each time more is left; 1500 bytes, 818.2 a minute, 13.64 a call", NULL},
        {"1000 900 400 300 500", 10, 0, "sawtooth 0.333: no larger than in the first entry", NULL},
        {"500 600 450 400 490", 7, 0, "sawtooth 0.333: no larger than in the first entry", NULL},
        {"0 500 100 500 100 500 100 500 100 500 100 500 100", 1, 0, "sawtooth 0.857: fell by a fifth or more 6 times",
         NULL},
    };
    ASSERT_SHAPES(given);
}

static void test_what_was_there_first_is_start(void)
{
    static const struct given given[] = {
        {"1000x6", 10, 0, "start 0.714: as large in the first entry", NULL},
        {"960 1000 1000 1000 1000", 10, 0, "start 0.667: as large in the first entry", NULL},
        {"949 960 1000 1000 1000 1000", 10, 0, "plateau 0.667: no growth in the last 80% of the time, through 40 calls",
         NULL},
        {"0 1000x10", 10, 0, "start 0.833: reached in the first 10% of the time", NULL},
        {"0 0 1000x9", 10, 0, "one-off 0.800: one step at 20% of the time, flat before and after", NULL},
        {"0 1000x9", 10, 0, "one-off 0.778: one step at 11% of the time, flat before and after", NULL},
        {"0 1000 1000 1000", 10, 0, "start 0.600: reached in the first 5% of the time", "0 5 50 100"},
        {"0 1000 1000", 10, 0,
         "unsure 0.250: larger than before, for 2 entries only; 1000 bytes, 3000.0 a minute, 50.00 a call", "0 5 100"},
    };
    ASSERT_SHAPES(given);
}

static void test_what_is_gone_was_freed(void)
{
    static const struct given given[] = {
        {"0 1000 1000 100", 10, 0, "freed 0.600: at most 10% of its largest size is left", NULL},
        {"0 1000 1000 101", 10, 0, "plateau 0.500: no growth in the last 67% of the time, through 20 calls", NULL},
        {"1000 1000 1000 0", 10, 0, "freed 0.600: at most 0% of its largest size is left", NULL},
        {"1000 1000 1000 0", 10, 1, "freed 0.600: freed at exit", NULL},
        {"0 1000 0 1000 0", 10, 0, "sawtooth 0.467: fell by a fifth or more 2 times", NULL},
        {"1000 0", 10, 1, "freed 0.333: freed at exit", NULL},
        {"1000 50 0", 10, 1, "freed 0.500: at most 0% of its largest size is left", NULL},
        {"0 1000 50 40 0", 10, 1, "freed 0.667: at most 0% of its largest size is left", NULL},
    };
    ASSERT_SHAPES(given);
}

static void test_growth_until_the_exit_that_frees_it_is_told(void)
{
    static const struct given given[] = {
        {"100 200 300 400 500 600 700 800 900 1000 0", 10, 1,
         "freed 0.818: grew until freed at exit, 100% on a line; 900 bytes, 600.0 a minute, 10.00 a call", NULL},
        {"100 200 300 400 500 600 700 800 900 1000 0", 10, 0, "freed 0.833: at most 0% of its largest size is left",
         NULL},
        {"100 200 300 400 500 600 700 800 900 1000 500", 10, 1,
         "steady 0.818: grew through 10 entries, 100% on a line; 900 bytes, 600.0 a minute, 10.00 a call", NULL},
        {"1000x8 0", 10, 1, "freed 0.800: freed at exit", NULL},
        {"100x6 200 0", 10, 1, "freed 0.778: freed at exit", NULL},
        {"0 400 600 700 760 800 830 850 860 870 880 890 900 910 920 980 990 0", 10, 1,
         "freed 0.696: grew until freed at exit, 64% on a line; 990 bytes, 371.2 a minute, 6.19 a call", NULL},
    };
    ASSERT_SHAPES(given);
}

static void test_names_are_known_and_others_are_unknown(void)
{
    TEST_ASSERT_EQUAL_STRING("steady", ta_growth_name(TA_GROWTH_STEADY));
    TEST_ASSERT_EQUAL_STRING("unknown", ta_growth_name(TA_GROWTH_UNKNOWN));
    TEST_ASSERT_EQUAL_STRING("unknown", ta_growth_name((enum ta_growth)10));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_nothing_or_a_single_entry_tells_no_course);
    RUN_TEST(test_what_grows_on_is_steady);
    RUN_TEST(test_growth_of_less_than_five_seconds_has_no_rate);
    RUN_TEST(test_what_grows_less_and_less_is_slowing);
    RUN_TEST(test_few_entries_of_growth_are_unsure);
    RUN_TEST(test_one_step_is_one_off);
    RUN_TEST(test_what_stops_growing_is_a_plateau);
    RUN_TEST(test_what_comes_and_goes_is_a_sawtooth);
    RUN_TEST(test_what_was_there_first_is_start);
    RUN_TEST(test_what_is_gone_was_freed);
    RUN_TEST(test_growth_until_the_exit_that_frees_it_is_told);
    RUN_TEST(test_names_are_known_and_others_are_unknown);
    return UNITY_END();
}
