/* test_analysis_statistics.c: groups, their order, their texts; what changed between two snapshots. */
#include "tests/support/analysis_case.h"

void setUp(void)
{
}

void tearDown(void)
{
}

static void test_statistics_of_recursion_count_a_frame_once_per_occurrence(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 10, 'frames': [['a', 1], ['b', 2], ['a', 1]]}");

    TEST_ASSERT_EQUAL_STRING("a:1: size=20 B, count=2, average=10 B\nb:2: size=10 B, count=1, average=10 B\n",
                             statistics_text(snapshot, "lineno", 1));
    TEST_ASSERT_EQUAL_STRING("a:1: size=10 B, count=1, average=10 B\n", statistics_text(snapshot, "lineno", 0));
    ta_snapshot_free(snapshot);
}

static void test_statistics_of_equal_groups_list_the_greater_key_first(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 1, 'frames': [['x', 1], ['a', 1]]},"
                                               "{'size': 1, 'frames': [['w', 1], ['b', 1]]},"
                                               "{'size': 1, 'frames': [['b', 1]]}, {'size': 1, 'frames': [['a', 1]]}");
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, "traceback", 0);
    static const char *const newest[] = {"w", "b", "x", "a"};

    TEST_ASSERT_EQUAL(4, ta_statistics_count(statistics));
    for (size_t i = 0; i < 4; i++) {
        struct ta_statistic row;
        struct ta_frame frame;
        TEST_ASSERT_EQUAL(0, ta_statistics_get(statistics, i, &row));
        TEST_ASSERT_EQUAL(0, ta_traceback_frame(row.traceback, -1, &frame));
        TEST_ASSERT_EQUAL_STRING(newest[i], frame.filename);
        TEST_ASSERT_EQUAL(-1, row.traceback.total_nframe);
    }
    struct ta_statistic row;
    TEST_ASSERT_EQUAL(-1, ta_statistics_get(statistics, 4, &row));
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
}

static void test_statistics_beyond_64_bits_are_exact_in_texts_and_saturate_in_numbers(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 9223372036854775808, 'count': 2, 'frames': [['a', 1]]}");
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, "lineno", 0);
    struct ta_statistic row;

    TEST_ASSERT_EQUAL(0, ta_statistics_get(statistics, 0, &row));
    TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, row.size);
    TEST_ASSERT_EQUAL_STRING("a:1: size=16777216 TiB, count=2, average=8388608 TiB\n",
                             statistics_text(snapshot, "lineno", 0));
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
}

/* Orders compare the true sums, not what fits in 64 bits of them. */
static void test_groups_beyond_64_bits_are_in_the_order_of_their_sums(void)
{
    struct ta_snapshot *old = snapshot_of("{'size': 1, 'frames': [['c', 1]]}");
    struct ta_snapshot *snapshot = snapshot_of("{'size': 9223372036854775808, 'count': 2, 'frames': [['a', 1]]},"
                                               "{'size': 1152921504606846976, 'count': 100, 'frames': [['b', 1]]},"
                                               "{'size': 4611686018427387904, 'count': 30, 'frames': [['c', 1]]}");
    TEST_ASSERT_EQUAL_STRING("c:1: size=125829120 TiB, count=30, average=4194304 TiB\n"
                             "b:1: size=104857600 TiB, count=100, average=1048576 TiB\n"
                             "a:1: size=16777216 TiB, count=2, average=8388608 TiB\n",
                             statistics_text(snapshot, "lineno", 0));
    struct ta_differences *differences = ta_snapshot_compare_to(snapshot, old, "lineno", 0);
    static const char *const expected[] = {"c:1: ", "b:1: ", "a:1: "};
    TEST_ASSERT_EQUAL(3, ta_differences_count(differences));
    for (size_t i = 0; i < 3; i++) {
        char text[200];
        ta_differences_text(differences, i, text, sizeof text);
        TEST_ASSERT_EQUAL_STRING_LEN(expected[i], text, 5);
    }
    ta_differences_free(differences);
    ta_snapshot_free(snapshot);
    ta_snapshot_free(old);
}

static void test_statistics_of_an_empty_snapshot_are_empty_and_still_check_the_key(void)
{
    struct ta_snapshot *snapshot = snapshot_of("");

    TEST_ASSERT_EQUAL_STRING("", statistics_text(snapshot, "traceback", 0));
    TEST_ASSERT_NULL(ta_snapshot_statistics(snapshot, "bogus", 1));
    TEST_ASSERT_EQUAL_STRING("unknown key_type: 'bogus'", ta_error_text());
    TEST_ASSERT_NULL(ta_snapshot_statistics(snapshot, "traceback", 1));
    TEST_ASSERT_EQUAL_STRING("cumulative mode cannot by used with key type 'traceback'", ta_error_text());
    TEST_ASSERT_NULL(ta_snapshot_compare_to(snapshot, snapshot, NULL, 0));
    ta_snapshot_free(snapshot);
}

static void refused(int is_refused)
{
    TEST_ASSERT_TRUE(is_refused);
    TEST_ASSERT_EQUAL_STRING("there is no snapshot: NULL", ta_error_text());
    ta_snapshot_filter_expression(NULL, "(");
    TEST_ASSERT_NOT_EQUAL(0, strcmp("there is no snapshot: NULL", ta_error_text()));
}

static void test_questions_about_no_snapshot_are_refused(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 10, 'frames': [['a', 1]]}");
    struct ta_module_symbols module;
    char text[10];

    refused(ta_snapshot_statistics(NULL, "lineno", 0) == NULL);
    refused(ta_snapshot_churn(NULL, "lineno", 0) == NULL);
    refused(ta_snapshot_compare_to(snapshot, NULL, "lineno", 0) == NULL);
    refused(ta_snapshot_compare_to(NULL, snapshot, "lineno", 0) == NULL);
    refused(ta_snapshot_filter_traces(NULL, NULL, 0) == NULL);
    refused(ta_snapshot_filter_expression(NULL, "file:a") == NULL);
    refused(ta_snapshot_symbolize(NULL) == NULL);
    refused(ta_snapshot_module_symbols(NULL, 0, &module) == -1);
    refused(ta_snapshot_export_json(NULL, ta_write_to_descriptor, NULL) == -1);
    refused(ta_snapshot_export_python(NULL, ta_write_to_descriptor, NULL) == -1);
    refused(ta_traceback_length(ta_snapshot_trace_traceback(NULL, 0)) == 0);
    refused(ta_snapshot_trace_equal(NULL, 0, snapshot, 0) == 0);
    refused(ta_snapshot_trace_text(NULL, 0, text, sizeof text) == 0);
    struct ta_statistic row;
    struct ta_statistic_diff difference;
    TEST_ASSERT_EQUAL(0, ta_statistics_count(NULL));
    TEST_ASSERT_EQUAL(0, ta_differences_count(NULL));
    TEST_ASSERT_EQUAL(-1, ta_statistics_get(NULL, 0, &row));
    TEST_ASSERT_EQUAL(-1, ta_differences_get(NULL, 0, &difference));
    TEST_ASSERT_NULL(ta_snapshot_filter_traces(snapshot, NULL, 3));
    TEST_ASSERT_EQUAL_STRING("there are no filters: NULL", ta_error_text());
    TEST_ASSERT_NULL(ta_snapshot_filter_expression(snapshot, NULL));
    ta_snapshot_free(snapshot);
}

static void test_orders_that_do_not_fit_are_refused(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 10, 'frames': [['a', 1]]}");
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, "lineno", 0);
    struct ta_differences *differences = ta_snapshot_compare_to(snapshot, snapshot, "lineno", 0);

    TEST_ASSERT_EQUAL(-1, ta_statistics_sort(statistics, TA_ORDER_GROWTH));
    TEST_ASSERT_EQUAL_STRING("this order is for differences only", ta_error_text());
    TEST_ASSERT_EQUAL(-1, ta_differences_sort(differences, TA_ORDER_TEMPORARY));
    TEST_ASSERT_EQUAL_STRING("this order is for statistics only", ta_error_text());
    TEST_ASSERT_EQUAL(-1, ta_statistics_sort(statistics, (enum ta_order)99));
    TEST_ASSERT_EQUAL_STRING("unknown order: 99", ta_error_text());
    TEST_ASSERT_EQUAL(-1, ta_differences_sort(differences, (enum ta_order)99));
    TEST_ASSERT_EQUAL_STRING("unknown order: 99", ta_error_text());

    ta_differences_free(differences);
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
}

static void test_statistics_by_domain_name_the_domain(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 1, 'domain': 7, 'frames': [['a', 1]]},"
                                               "{'size': 2, 'frames': [['a', 1]]}");

    TEST_ASSERT_EQUAL_STRING("domain 0: size=2 B, count=1, average=2 B\ndomain 7: size=1 B, count=1, average=1 B\n",
                             statistics_text(snapshot, "domain", 0));
    ta_snapshot_free(snapshot);
}

static void test_size_text_that_does_not_fit_is_cut_and_says_its_length(void)
{
    char text[5] = "????";
    TEST_ASSERT_EQUAL(8, ta_size_text(10240, 0, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("10.0", text);
    TEST_ASSERT_EQUAL(9, ta_size_text(10240, 1, NULL, 0));
}

static const char *differences_text(const char *new_traces, const char *old_traces, enum ta_order order)
{
    static char text[8192];
    size_t length = 0;
    struct ta_snapshot *new_snapshot = snapshot_of(new_traces), *old_snapshot = snapshot_of(old_traces);
    struct ta_differences *differences = ta_snapshot_compare_to(new_snapshot, old_snapshot, "lineno", 0);
    TEST_ASSERT_NOT_NULL(differences);
    TEST_ASSERT_EQUAL(0, ta_differences_sort(differences, order));
    text[0] = '\0';
    for (size_t i = 0; i < ta_differences_count(differences); i++) {
        length += ta_differences_text(differences, i, text + length, sizeof text - length);
        text[length++] = '\n';
        text[length] = '\0';
    }
    ta_differences_free(differences);
    ta_snapshot_free(new_snapshot);
    ta_snapshot_free(old_snapshot);
    return text;
}

static const char old_traces[] = "{'size': 10, 'frames': [['a', 1]]}, {'size': 5, 'frames': [['gone', 1]]},"
                                 "{'size': 7, 'frames': [['same', 1]]},"
                                 "{'size': 3, 'count': 2, 'frames': [['x', 1]]}";
static const char new_traces[] = "{'size': 15, 'frames': [['a', 1]]}, {'size': 5, 'frames': [['new', 1]]},"
                                 "{'size': 7, 'frames': [['same', 1]]}, {'size': 6, 'frames': [['x', 1]]}";

static void test_differences_order_by_absolute_change_and_keep_unchanged_groups(void)
{
    TEST_ASSERT_EQUAL_STRING("a:1: size=15 B (+5 B), count=1 (+0), average=15 B\n"
                             "new:1: size=5 B (+5 B), count=1 (+1), average=5 B\n"
                             "gone:1: size=0 B (-5 B), count=0 (-1)\n"
                             "same:1: size=7 B (+0 B), count=1 (+0), average=7 B\n"
                             "x:1: size=6 B (+0 B), count=1 (-1), average=6 B\n",
                             differences_text(new_traces, old_traces, TA_ORDER_DEFAULT));
}

static void test_differences_sorted_by_release_begin_with_the_largest_one(void)
{
    TEST_ASSERT_EQUAL_STRING_LEN("gone:1:", differences_text(new_traces, old_traces, TA_ORDER_RELEASED), 7);
    TEST_ASSERT_EQUAL_STRING_LEN("a:1:", differences_text(new_traces, old_traces, TA_ORDER_GROWTH), 4);
}

/* Many rows are put in order by their bytes, few by comparing: thousands show what dozens do not. */
static struct ta_snapshot *snapshot_of_many(uint64_t seed, size_t count)
{
    static const uint64_t sizes[] = {0, 1, 255, 256, 70000, UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX};
    struct ta_trace_data *traces = calloc(count, sizeof *traces);
    struct ta_frame_data *frames = calloc(count, sizeof *frames);
    for (size_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        frames[i] = (struct ta_frame_data){seed >> 40 & 1 ? "a" : "b", TA_NUL_TERMINATED, (uint32_t)i * 7919};
        traces[i] = (struct ta_trace_data){.size = seed >> 60 > 3 ? seed >> 44 & 0x3FF : sizes[seed >> 50 & 7],
                                           .count = 1 + (seed >> 33 & 3),
                                           .frames = &frames[i],
                                           .nframe = 1};
    }
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(traces, count, 1);
    free(traces);
    free(frames);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    return snapshot;
}

static int order_of_numbers(uint64_t a, uint64_t b)
{
    return a > b ? -1 : a < b;
}

static void test_statistics_of_thousands_are_in_the_order_of_dozens(void)
{
    struct ta_snapshot *snapshot = snapshot_of_many(1, 5000);
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, "lineno", 0);
    struct ta_statistic row, before = {0};

    TEST_ASSERT_EQUAL(5000, ta_statistics_count(statistics));
    for (size_t i = 0; i < 5000; i++, before = row) {
        TEST_ASSERT_EQUAL(0, ta_statistics_get(statistics, i, &row));
        if (i == 0)
            continue;
        int order = order_of_numbers(before.size, row.size);
        if (order == 0)
            order = order_of_numbers(before.count, row.count);
        if (order == 0)
            order = -ta_traceback_compare(before.traceback, row.traceback);
        TEST_ASSERT_EQUAL(-1, order);
    }
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void test_differences_of_thousands_are_in_the_order_of_dozens(void)
{
    struct ta_snapshot *new_snapshot = snapshot_of_many(1, 5000), *old_snapshot = snapshot_of_many(2, 4000);
    struct ta_differences *differences = ta_snapshot_compare_to(new_snapshot, old_snapshot, "traceback", 0);
    struct ta_statistic_diff row, before = {0};
    size_t count = ta_differences_count(differences);

    TEST_ASSERT_GREATER_THAN(5000, count);
    for (size_t i = 0; i < count; i++, before = row) {
        TEST_ASSERT_EQUAL(0, ta_differences_get(differences, i, &row));
        TEST_ASSERT_TRUE(row.size_diff != INT64_MAX || row.size >= INT64_MAX); /* saturated, not wrapped */
        if (i == 0 || row.size_diff == INT64_MAX || row.size_diff == INT64_MIN || before.size_diff == INT64_MIN)
            continue; /* not told apart here */
        int order = order_of_numbers(distance((uint64_t)before.size_diff + (UINT64_C(1) << 63), UINT64_C(1) << 63),
                                     distance((uint64_t)row.size_diff + (UINT64_C(1) << 63), UINT64_C(1) << 63));
        if (order == 0)
            order = order_of_numbers(before.size, row.size);
        if (order == 0)
            order = order_of_numbers((uint64_t)llabs(before.count_diff), (uint64_t)llabs(row.count_diff));
        if (order == 0)
            order = order_of_numbers(before.count, row.count);
        if (order == 0)
            order = -ta_traceback_compare(before.traceback, row.traceback);
        TEST_ASSERT_EQUAL(-1, order);
    }
    ta_differences_free(differences);
    ta_snapshot_free(new_snapshot);
    ta_snapshot_free(old_snapshot);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_statistics_of_thousands_are_in_the_order_of_dozens);
    RUN_TEST(test_differences_of_thousands_are_in_the_order_of_dozens);
    RUN_TEST(test_statistics_of_recursion_count_a_frame_once_per_occurrence);
    RUN_TEST(test_statistics_of_equal_groups_list_the_greater_key_first);
    RUN_TEST(test_statistics_beyond_64_bits_are_exact_in_texts_and_saturate_in_numbers);
    RUN_TEST(test_groups_beyond_64_bits_are_in_the_order_of_their_sums);
    RUN_TEST(test_statistics_of_an_empty_snapshot_are_empty_and_still_check_the_key);
    RUN_TEST(test_questions_about_no_snapshot_are_refused);
    RUN_TEST(test_orders_that_do_not_fit_are_refused);
    RUN_TEST(test_statistics_by_domain_name_the_domain);
    RUN_TEST(test_size_text_that_does_not_fit_is_cut_and_says_its_length);
    RUN_TEST(test_differences_order_by_absolute_change_and_keep_unchanged_groups);
    RUN_TEST(test_differences_sorted_by_release_begin_with_the_largest_one);
    return UNITY_END();
}
