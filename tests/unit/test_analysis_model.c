/* test_analysis_model.c: snapshots of programs — addresses, inlined calls, modules, functions, threads, what is gone.
 *
 * The view below is what a reader delivers for a small program:
 *
 *     context 1  main         app+0x10   (main.c:3)
 *     context 2  ├ parse      app+0x20   (parse.c:7, with the inlined grow at buffer.h:40)
 *     context 3  │ └ ?        lib+0x30   (no lines: /lib/libx.so:0)
 *     context 4  └ ?          nowhere
 *     context 5  main         app+0x11   the same line as context 1 at another address */
#include "analysis/model.h"
#include "snapshot/read/read.h"
#include "tests/support/analysis_case.h"
#include "tests/support/random.h"

enum { APP = 1, LIB, MAIN_C, PARSE_C, BUFFER_H, MAIN, PARSE, GROW, WORKER, NET, DO_LIB, STRINGS };

static const struct ta__view_string strings[] = {
    [0] = {"", 0},
    [APP] = {"/bin/app", 8},
    [LIB] = {"/lib/libx.so", 12},
    [MAIN_C] = {"/s/main.c", 9},
    [PARSE_C] = {"/s/parse.c", 10},
    [BUFFER_H] = {"/s/buffer.h", 11},
    [MAIN] = {"main", 4},
    [PARSE] = {"parse", 5},
    [GROW] = {"grow", 4},
    [WORKER] = {"worker", 6},
    [NET] = {"net", 3},
    [DO_LIB] = {"do_lib", 6},
};
static const struct ta__view_module modules[] = {{.path = APP}, {.path = LIB}};
static const struct ta__view_frame frames[] = {
    {.address = 0x10, .module = 1}, {.address = 0x20, .module = 1}, {.address = 0x30, .module = 2}, {.address = 0x40},
    {.address = 0x11, .module = 1},
};
static const struct ta__view_context contexts[] = {{0, 0}, {0, 0}, {1, 1}, {2, 2}, {1, 3}, {0, 4}};
static const struct ta__view_symbol_range ranges[] = {{0, 1}, {1, 2}, {3, 1}, {0, 0}, {4, 1}};
static const struct ta__view_symbol symbols[] = {
    {.file = MAIN_C, .line = 3, .function = MAIN},
    {.file = BUFFER_H, .line = 40, .function = GROW, .flags = TA__SYMBOL_INLINED},
    {.file = PARSE_C, .line = 7, .function = PARSE},
    {.file = LIB, .line = 0, .function = DO_LIB, .offset = 5, .flags = TA__SYMBOL_NO_LINES},
    {.file = MAIN_C, .line = 3, .function = MAIN},
};
static const struct ta__view_domain domains[] = {{.number = 3, .name = NET}};
static const struct ta__view_thread threads[] = {{.tid = 77, .name = WORKER}};
static const struct ta__view_trace traces[] = {
    {.context = 2,
     .size = 100,
     .count = 4,
     .allocated_bytes = 400,
     .allocated_blocks = 16,
     .total_nframe = 2,
     .thread = 1},
    {.context = 3,
     .size = 50,
     .count = 1,
     .allocated_bytes = 50,
     .allocated_blocks = 1,
     .total_nframe = 3,
     .domain = 3},
    {.context = 4, .size = 10, .count = 1, .allocated_bytes = 10, .allocated_blocks = 1, .total_nframe = -1},
    {.context = 1, .size = 1, .count = 1, .allocated_bytes = 1, .allocated_blocks = 1, .total_nframe = 1},
    {.context = 5, .size = 1, .count = 1, .allocated_bytes = 1, .allocated_blocks = 1, .total_nframe = 1},
    {.context = 0, .size = 7, .count = 1, .allocated_bytes = 7, .allocated_blocks = 1, .total_nframe = -1},
    {.context = 5, .allocated_bytes = 9000, .allocated_blocks = 9, .total_nframe = 1},
};

static struct ta_snapshot *snapshot;

void setUp(void)
{
    struct ta__view view = {
        .strings = strings,
        .modules = modules,
        .frames = frames,
        .contexts = contexts,
        .symbol_ranges = ranges,
        .symbols = symbols,
        .traces = traces,
        .domains = domains,
        .threads = threads,
        .string_count = STRINGS,
        .module_count = 2,
        .frame_count = 5,
        .context_count = 6,
        .symbol_count = 5,
        .trace_count = 6,
        .gone_trace_count = 1,
        .domain_count = 1,
        .thread_count = 1,
        .traceback_limit = 30,
    };
    snapshot = ta__snapshot_from_view(&view, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
}

void tearDown(void)
{
    ta_snapshot_free(snapshot);
}

static void test_lines_of_inlined_calls_count_as_frames_of_their_own(void)
{
    struct ta_frame frame;
    struct ta_traceback traceback = ta_snapshot_trace_traceback(snapshot, 0);

    TEST_ASSERT_EQUAL(3, ta_traceback_length(traceback));
    TEST_ASSERT_EQUAL(0, ta_traceback_frame(traceback, -1, &frame));
    TEST_ASSERT_EQUAL_STRING("/s/buffer.h", frame.filename);
    TEST_ASSERT_EQUAL_STRING("grow", frame.function);
    TEST_ASSERT_EQUAL(TA_FRAME_INLINED, frame.flags);
    TEST_ASSERT_EQUAL(0, ta_traceback_frame(traceback, 1, &frame));
    TEST_ASSERT_EQUAL_STRING("/s/parse.c", frame.filename);
    TEST_ASSERT_EQUAL_STRING("/bin/app", frame.module);
    TEST_ASSERT_EQUAL(-1, ta_traceback_frame(traceback, 3, &frame));
    TEST_ASSERT_EQUAL(-1, ta_traceback_frame(traceback, -4, &frame));
}

static void test_two_addresses_of_one_line_are_one_group(void)
{
    TEST_ASSERT_EQUAL_STRING("/s/buffer.h:40: size=100 B, count=4, average=25 B\n"
                             "/lib/libx.so:0: size=50 B, count=1, average=50 B\n"
                             "<unknown>:0: size=17 B, count=2, average=8 B\n"
                             "/s/main.c:3: size=2 B, count=2, average=1 B\n",
                             statistics_text(snapshot, "lineno", 0));
}

static void test_whole_stacks_that_read_the_same_are_one_group(void)
{
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, "traceback", 0);
    TEST_ASSERT_EQUAL(5, ta_statistics_count(statistics));
    ta_statistics_free(statistics);
}

static void test_cumulative_functions_count_inlined_ones_and_callers(void)
{
    TEST_ASSERT_EQUAL_STRING("main: size=162 B, count=8, average=20 B\n"
                             "parse: size=150 B, count=5, average=30 B\n"
                             "grow: size=150 B, count=5, average=30 B\n"
                             "do_lib: size=50 B, count=1, average=50 B\n"
                             "<unknown>: size=17 B, count=2, average=8 B\n",
                             statistics_text(snapshot, "function", 1));
}

static void test_modules_domains_and_threads_are_keys(void)
{
    TEST_ASSERT_EQUAL_STRING("/bin/app: size=102 B, count=6, average=17 B\n"
                             "/lib/libx.so: size=50 B, count=1, average=50 B\n"
                             "<unknown>: size=17 B, count=2, average=8 B\n",
                             statistics_text(snapshot, "module", 0));
    TEST_ASSERT_EQUAL_STRING("domain 0: size=119 B, count=8, average=15 B\n"
                             "domain 3 net: size=50 B, count=1, average=50 B\n",
                             statistics_text(snapshot, "domain", 0));
    TEST_ASSERT_EQUAL_STRING("thread 77 worker: size=100 B, count=4, average=25 B\n"
                             "<unknown>: size=69 B, count=5, average=14 B\n",
                             statistics_text(snapshot, "thread", 0));
}

static void test_churn_counts_what_is_gone_and_statistics_do_not(void)
{
    struct ta_statistics *churn = ta_snapshot_churn(snapshot, "lineno", 0);
    struct ta_statistic row;

    TEST_ASSERT_EQUAL(0, ta_statistics_sort(churn, TA_ORDER_ALLOCATED_SIZE));
    TEST_ASSERT_EQUAL(0, ta_statistics_get(churn, 0, &row));
    TEST_ASSERT_EQUAL_UINT64(9002, row.allocated_size);
    TEST_ASSERT_EQUAL_UINT64(11, row.allocated_count);
    TEST_ASSERT_EQUAL_UINT64(2, row.count);
    TEST_ASSERT_TRUE(row.temporary_share == 9.0 / 11.0);
    ta_statistics_total(churn, &row);
    TEST_ASSERT_EQUAL_UINT64(169, row.size);
    TEST_ASSERT_EQUAL_UINT64(9469, row.allocated_size);
    TEST_ASSERT_EQUAL(-1, ta_statistics_sort(churn, TA_ORDER_GROWTH));
    ta_statistics_free(churn);
}

static void test_filters_by_function_module_and_domain_name_keep_the_right_traces(void)
{
    struct {
        const char *words;
        long count;
    } cases[] = {
        {"function:grow", 1},      {"any.function:grow", 2},  {"module:*/libx.so", 1},    {"domain:n*", 1},
        {"thread:77", 1},          {"function:<unknown>", 2}, {"any.module:/bin/app", 5}, {"not any.function:main", 1},
        {"any.file:/s/parse.c", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ta_snapshot *filtered = ta_snapshot_filter_expression(snapshot, cases[i].words);
        TEST_ASSERT_NOT_NULL(filtered);
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].count, ta_snapshot_trace_count(filtered), cases[i].words);
        ta_snapshot_free(filtered);
    }
}

static void test_differences_join_models_whose_numbers_differ(void)
{
    struct ta_snapshot *old = snapshot_of("{'size': 90, 'frames': [['/s/buffer.h', 40], ['/s/parse.c', 7],"
                                          "['/s/main.c', 3]]}, {'size': 3, 'frames': [['zzz', 1]]}");
    struct ta_differences *differences = ta_snapshot_compare_to(snapshot, old, "traceback", 0);
    struct ta_statistic_diff row;
    int found = 0;

    TEST_ASSERT_EQUAL(6, ta_differences_count(differences));
    for (size_t i = 0; i < 6; i++) {
        TEST_ASSERT_EQUAL(0, ta_differences_get(differences, i, &row));
        found += row.size == 100 && row.size_diff == 10 && row.count_diff == 3;
    }
    TEST_ASSERT_EQUAL(1, found);
    ta_differences_free(differences);
    ta_snapshot_free(old);
}

static void test_export_of_sums_keeps_count_and_total(void)
{
    struct ta__view_trace trace = {.size = 10, .count = 4};
    struct ta__blocks blocks[2];
    TEST_ASSERT_EQUAL(2, ta__trace_blocks(&trace, blocks));
    TEST_ASSERT_EQUAL_UINT64(4, blocks[0].count + blocks[1].count);
    TEST_ASSERT_EQUAL_UINT64(10, blocks[0].count * blocks[0].size + blocks[1].count * blocks[1].size);
}

static void test_traceback_of_own_frames_compares_with_those_of_snapshots(void)
{
    const struct ta_frame own[] = {{.filename = "/s/main.c", .filename_length = 9, .lineno = 3},
                                   {.filename = "/s/parse.c", .filename_length = 10, .lineno = 7},
                                   {.filename = "/s/buffer.h", .filename_length = 11, .lineno = 40}};
    struct ta_traceback recorded = ta_snapshot_trace_traceback(snapshot, 0);
    char text[64];

    TEST_ASSERT_TRUE(ta_traceback_equal(ta_traceback_of(own, 3, 99), recorded));
    TEST_ASSERT_EQUAL_UINT64(ta_traceback_hash(ta_traceback_of(own, 3, 99)), ta_traceback_hash(recorded));
    TEST_ASSERT_LESS_THAN(0, ta_traceback_compare(ta_traceback_of(own, 2, -1), recorded));
    TEST_ASSERT_EQUAL(11, ta_traceback_text(recorded, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("/s/main.c:3", text);
    TEST_ASSERT_EQUAL(0, ta_traceback_text(ta_traceback_of(NULL, 0, 0), text, sizeof text));
}

/* ---- orders: many rows with many ties, against a sort of the test's own ------------------------------------------- */

enum { ROWS = 40 };

static struct ta_snapshot *made_snapshot(uint64_t seed)
{
    struct ta__view view = *ta__snapshot_view(snapshot);
    struct ta__view_trace made[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        made[i] = (struct ta__view_trace){.context = 2,
                                          .size = 1 + random_below(&seed, 5),
                                          .count = 1 + random_below(&seed, 5),
                                          .peak_bytes = random_below(&seed, 6),
                                          .allocated_bytes = 10 + random_below(&seed, 5),
                                          .domain = i + 1,
                                          .total_nframe = 2};
        made[i].allocated_blocks = made[i].count + random_below(&seed, 4);
    }
    view.traces = made;
    view.trace_count = ROWS;
    view.gone_trace_count = 0;
    struct ta_snapshot *result = ta__snapshot_from_view(&view, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(result, ta_error_text());
    return result;
}

struct row {
    char domain[32];
    int64_t values[TA_ORDER_RELEASED + 1]; /* by order: the largest comes first */
};

static void name_row(struct row *row, struct ta_traceback traceback)
{
    struct ta_frame frame;
    TEST_ASSERT_EQUAL(0, ta_traceback_frame(traceback, -1, &frame));
    snprintf(row->domain, sizeof row->domain, "%s", frame.filename);
}

static void statistics_row(void *rows, size_t index, struct row *row)
{
    struct ta_statistic one;
    TEST_ASSERT_EQUAL(0, ta_statistics_get(rows, index, &one));
    name_row(row, one.traceback);
    row->values[TA_ORDER_COUNT] = (int64_t)one.count;
    row->values[TA_ORDER_ALLOCATED_SIZE] = (int64_t)one.allocated_size;
    row->values[TA_ORDER_ALLOCATED_COUNT] = (int64_t)one.allocated_count;
    row->values[TA_ORDER_TEMPORARY] = (int64_t)(one.allocated_count - one.count);
    row->values[TA_ORDER_PEAK] = (int64_t)one.peak_size;
}

static int64_t peaks[ROWS]; /* of the new snapshot, which rows of differences do not show */

static void differences_row(void *rows, size_t index, struct row *row)
{
    struct ta_statistic_diff one;
    TEST_ASSERT_EQUAL(0, ta_differences_get(rows, index, &one));
    name_row(row, one.traceback);
    row->values[TA_ORDER_COUNT] = (int64_t)one.count;
    row->values[TA_ORDER_ALLOCATED_SIZE] = (int64_t)one.allocated_size;
    row->values[TA_ORDER_ALLOCATED_COUNT] = (int64_t)one.allocated_count;
    row->values[TA_ORDER_PEAK] = peaks[atoi(row->domain + strcspn(row->domain, "0123456789")) - 1];
    row->values[TA_ORDER_GROWTH] = one.size_diff;
    row->values[TA_ORDER_RELEASED] = -one.size_diff;
}

/* `answers`: a bit for each order that fits these rows; `other` is what is said of those that do not. */
static void check_orders(void *rows, int (*sort)(void *, enum ta_order), void (*get)(void *, size_t, struct row *),
                         unsigned answers, const char *other)
{
    static struct row expected[ROWS], got;
    for (unsigned order = TA_ORDER_COUNT; order <= TA_ORDER_RELEASED + 1; order++) {
        TEST_ASSERT_EQUAL(0, sort(rows, TA_ORDER_DEFAULT));
        if ((answers >> order & 1) == 0) {
            TEST_ASSERT_EQUAL(-1, sort(rows, (enum ta_order)order));
            TEST_ASSERT_EQUAL_STRING(order > TA_ORDER_RELEASED ? "unknown order: 8" : other, ta_error_text());
            continue;
        }
        for (size_t i = 0; i < ROWS; i++) {
            get(rows, i, &got);
            size_t at = i;
            for (; at > 0 && expected[at - 1].values[order] < got.values[order]; at--)
                expected[at] = expected[at - 1];
            expected[at] = got;
        }
        TEST_ASSERT_EQUAL(0, sort(rows, (enum ta_order)order));
        for (size_t i = 0; i < ROWS; i++) {
            get(rows, i, &got);
            TEST_ASSERT_EQUAL_INT64(expected[i].values[order], got.values[order]);
            TEST_ASSERT_EQUAL_STRING(expected[i].domain, got.domain); /* of equal ones, the one that was first */
        }
    }
}

static int sort_statistics(void *rows, enum ta_order order)
{
    return ta_statistics_sort(rows, order);
}

static int sort_differences(void *rows, enum ta_order order)
{
    return ta_differences_sort(rows, order);
}

static void test_each_order_is_that_of_its_column_and_ties_stay(void)
{
    struct ta_snapshot *now = made_snapshot(1), *old = made_snapshot(2);
    struct ta_statistics *statistics = ta_snapshot_churn(now, "domain", 0);
    struct ta_differences *differences = ta_snapshot_compare_to(now, old, "domain", 0);
    for (size_t i = 0; i < ROWS; i++)
        peaks[i] = (int64_t)ta__snapshot_view(now)->traces[i].peak_bytes;
    TEST_ASSERT_EQUAL(ROWS, ta_statistics_count(statistics));
    TEST_ASSERT_EQUAL(ROWS, ta_differences_count(differences));
    const unsigned both = 1u << TA_ORDER_COUNT | 1u << TA_ORDER_ALLOCATED_SIZE | 1u << TA_ORDER_ALLOCATED_COUNT;
    check_orders(statistics, sort_statistics, statistics_row, both | 1u << TA_ORDER_TEMPORARY | 1u << TA_ORDER_PEAK,
                 "this order is for differences only");
    check_orders(differences, sort_differences, differences_row,
                 both | 1u << TA_ORDER_PEAK | 1u << TA_ORDER_GROWTH | 1u << TA_ORDER_RELEASED,
                 "this order is for statistics only");
    ta_differences_free(differences);
    ta_statistics_free(statistics);
    ta_snapshot_free(now);
    ta_snapshot_free(old);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_lines_of_inlined_calls_count_as_frames_of_their_own);
    RUN_TEST(test_two_addresses_of_one_line_are_one_group);
    RUN_TEST(test_whole_stacks_that_read_the_same_are_one_group);
    RUN_TEST(test_cumulative_functions_count_inlined_ones_and_callers);
    RUN_TEST(test_modules_domains_and_threads_are_keys);
    RUN_TEST(test_churn_counts_what_is_gone_and_statistics_do_not);
    RUN_TEST(test_each_order_is_that_of_its_column_and_ties_stay);
    RUN_TEST(test_filters_by_function_module_and_domain_name_keep_the_right_traces);
    RUN_TEST(test_differences_join_models_whose_numbers_differ);
    RUN_TEST(test_export_of_sums_keeps_count_and_total);
    RUN_TEST(test_traceback_of_own_frames_compares_with_those_of_snapshots);
    return UNITY_END();
}
