/* test_analysis_in_process.c: a program that analyses itself — its own lines, and nothing of the analysis among them. */
#include <stdlib.h>
#include <string.h>

#include <tracealloc/analysis.h>
#include <tracealloc/domain.h>
#include <unity.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static void *volatile kept;

static __attribute__((noinline)) void allocate(void)
{
    kept = malloc(123456); /* 21: this number is in the test below */
}

static int swallow(void *user, const char *text, size_t length)
{
    (void)user;
    (void)text;
    (void)length;
    return 0;
}

/* Every part of analysis that allocates, with results that are still alive at the end. */
static struct ta_snapshot *analyse(struct ta_snapshot *snapshot, struct ta_statistics **statistics)
{
    static const char document[] = "{\"traces\": [{\"size\": 1, \"frames\": [[\"a\", 1]]}]}";
    *statistics = ta_snapshot_statistics(snapshot, "traceback", 0);
    TEST_ASSERT_NOT_NULL_MESSAGE(*statistics, ta_error_text());
    TEST_ASSERT_EQUAL(0, ta_statistics_export_json(*statistics, SIZE_MAX, swallow, NULL));
    struct ta_snapshot *other = ta_snapshot_import_json(document, strlen(document));
    TEST_ASSERT_NOT_NULL(other);
    ta_differences_free(ta_snapshot_compare_to(snapshot, other, "lineno", 1));
    free(ta_traceback_format(ta_snapshot_trace_traceback(snapshot, 0), TA_FORMAT_ALL, 0));
    return other;
}

static void test_own_line_is_found_with_its_size(void)
{
    struct ta_frame frame;
    struct ta_statistic row;
    struct ta_snapshot *snapshot = ta_take_snapshot();
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, "lineno", 0);

    TEST_ASSERT_EQUAL(0, ta_statistics_get(statistics, 0, &row));
    TEST_ASSERT_EQUAL(0, ta_traceback_frame(row.traceback, 0, &frame));
    TEST_ASSERT_EQUAL_UINT64(123456, row.size);
    TEST_ASSERT_EQUAL(21, frame.lineno);
    TEST_ASSERT_NOT_NULL(strstr(frame.filename, "test_analysis_in_process.c"));
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
}

static void test_what_analysis_allocates_is_in_its_own_domain(void)
{
    struct ta_snapshot *snapshot = ta_take_snapshot();
    struct ta_statistics *statistics;
    struct ta_snapshot *other = analyse(snapshot, &statistics);
    struct ta_snapshot *later = ta_take_snapshot();

    struct ta_snapshot *ours = ta_snapshot_filter_expression(later, "domain:4294967040");
    TEST_ASSERT_GREATER_THAN(0, ta_snapshot_trace_count(ours));
    struct ta_snapshot *strays =
        ta_snapshot_filter_expression(later, "any.module:*libtracealloc-analysis* and not domain:4294967040");
    struct ta_statistics *stray = ta_snapshot_statistics(strays, "traceback", 0);
    char text[512] = "";
    if (ta_statistics_count(stray) > 0)
        ta_statistics_text(stray, 0, text, sizeof text);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_snapshot_trace_count(strays), text);
    TEST_ASSERT_EQUAL(0, ta_domain_current());
    TEST_ASSERT_EQUAL_STRING("tracealloc-analysis", ta_domain_name(TA_ANALYSIS_DOMAIN));

    ta_statistics_free(stray);
    ta_statistics_free(statistics);
    ta_snapshot_free(strays);
    ta_snapshot_free(ours);
    ta_snapshot_free(later);
    ta_snapshot_free(other);
    ta_snapshot_free(snapshot);
}

int main(void)
{
    UNITY_BEGIN();
    ta_start(100);
    allocate();
    RUN_TEST(test_own_line_is_found_with_its_size);
    RUN_TEST(test_what_analysis_allocates_is_in_its_own_domain);
    free(kept);
    return UNITY_END();
}
