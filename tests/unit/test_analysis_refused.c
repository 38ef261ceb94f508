/* test_analysis_refused.c: what the analysis does when memory is refused. Each request of an operation is refused once,
 * the first, the second, and so on; every third with all that follow. The operation then says that it failed, or its answer
 * is the same as ever; and it keeps no memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracealloc/export.h>
#include <unity.h>

#include "tests/support/refusing_malloc.h"

/* ---- what an operation says -------------------------------------------------------------------------------------- */

static char said[4 << 20];
static size_t said_length;

static int say(void *user, const char *text, size_t length)
{
    (void)user;
    if (length >= sizeof said - said_length)
        return -1;
    memcpy(said + said_length, text, length);
    said[said_length += length] = '\0';
    return 0;
}

static void say_text(const char *text)
{
    say(NULL, text, strlen(text));
}

/* Where there is no memory to shorten a function's name it stands whole: both are right. */
static void forget_parameters(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        if (strncmp(at, "(int)", 5) == 0)
            at += 5;
        else
            *to++ = *at++;
    }
    *to = '\0';
}

/* What the operation works on. */
static const char *recording, *key, *words;
static int flags;

typedef int (*operation)(void); /* 0, or -1 when it failed */

static const char *told(const char *what, long from, long to)
{
    static char message[256];
    snprintf(message, sizeof message, "%s (requests %ld to %ld refused; recording %s, key %s, flags %d)", what, from,
             to, recording != NULL ? recording : "none", key != NULL ? key : "none", flags);
    return message;
}

/* What the operation answers while requests [from, to) are refused; what it said goes to `said`. */
static int answer(operation ask, long from, long to)
{
    long before = living;
    said_length = 0;
    said[0] = '\0';
    *(char *)(uintptr_t)ta_error_text() = '\0';
    asked = 0;
    refused_from = from;
    refused_to = to;
    int status = ask();
    refused_from = refused_to = -1;
    forget_parameters(said);
    TEST_ASSERT_EQUAL_INT64_MESSAGE(before, living, told("memory is kept", from, to));
    TEST_ASSERT_TRUE_MESSAGE(status == 0 || *ta_error_text() != '\0', told("it fails without a reason", from, to));
    return status;
}

enum { REFUSALS_MOST = 300 /* of one operation: of more requests some are left out */ };

static void stands_refusals(operation ask)
{
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, answer(ask, -1, -1), ta_error_text()); /* what is kept for good is made here */
    TEST_ASSERT_EQUAL_INT(0, answer(ask, -1, -1));
    TEST_ASSERT_TRUE(said_length > 0);
    long requests = asked, failures = 0, step = requests / REFUSALS_MOST + 1;
    char *usual = strdup(said);
    for (long number = 0; number < requests; number += step) {
        long from = number, to = number / step % 3 != 2 ? from + 1 : INT32_MAX;
        int status = answer(ask, from, to);
        failures += status != 0;
        TEST_ASSERT_TRUE_MESSAGE(status != 0 || strcmp(usual, said) == 0, told("the answer differs", from, to));
    }
    TEST_ASSERT_TRUE(failures > 0);
    TEST_ASSERT_EQUAL_INT(0, answer(ask, -1, -1));
    TEST_ASSERT_EQUAL_STRING(usual, said);
    free(usual);
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static const char newer[] =
    "{\"traceback_limit\": 9, \"traces\": ["
    "{\"size\": 10, \"count\": 2, \"frames\": [[\"a.c\", 1], [\"b.c\", 2], [\"b.c\", 2], [\"main.c\", 3]]},"
    "{\"size\": 70, \"domain\": 1, \"frames\": [[\"c.c\", 1], [\"b.c\", 7], [\"main.c\", 3]]},"
    "{\"size\": 30, \"domain\": 2, \"total_nframe\": 12, \"frames\": [[\"odd \\u00e4 \\udc80 name\", 1]]},"
    "{\"size\": 44, \"count\": 4, \"frames\": [[\"a.c\", 1], [\"b.c\", 9], [\"main.c\", 3]]}]}";
static const char older[] = "{\"traceback_limit\": 9, \"traces\": ["
                            "{\"size\": 5, \"frames\": [[\"a.c\", 1], [\"b.c\", 2], [\"b.c\", 2], [\"main.c\", 3]]},"
                            "{\"size\": 900, \"frames\": [[\"gone.c\", 1]]}]}";

static const char *golden; /* the folder of the recordings */

static struct ta_snapshot *load(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", golden, recording);
    return ta_snapshot_load(path);
}

static struct ta_snapshot *import(const char *text)
{
    return ta_snapshot_import_json(text, strlen(text));
}

static int finish(struct ta_snapshot *snapshot, int status)
{
    ta_snapshot_free(snapshot);
    return status;
}

static int import_and_export(void)
{
    struct ta_snapshot *snapshot = import(newer);
    return snapshot == NULL ? -1 : finish(snapshot, ta_snapshot_export_json(snapshot, say, NULL));
}

static int import_and_pickle(void)
{
    struct ta_snapshot *snapshot = import(newer);
    return snapshot == NULL ? -1 : finish(snapshot, ta_snapshot_export_python(snapshot, say, NULL));
}

static int load_and_export(void)
{
    struct ta_snapshot *snapshot = load();
    return snapshot == NULL ? -1 : finish(snapshot, ta_snapshot_export(snapshot, key, TA_ORDER_DEFAULT, say, NULL));
}

static int load_and_report(void)
{
    struct ta_snapshot *snapshot = load();
    return snapshot == NULL ? -1 : finish(snapshot, ta_snapshot_export_text(snapshot, 5, say, NULL));
}

static int count_by_key(void)
{
    struct ta_snapshot *snapshot = recording != NULL ? load() : import(newer);
    struct ta_statistics *statistics = snapshot == NULL ? NULL : ta_snapshot_statistics(snapshot, key, flags);
    int status = statistics == NULL ? -1 : ta_statistics_export_json(statistics, SIZE_MAX, say, NULL);
    ta_statistics_free(statistics);
    return finish(snapshot, status);
}

static int churn_by_own(void)
{
    struct ta_own_rules *rules = ta_own_rules_create();
    struct ta_snapshot *snapshot = rules == NULL ? NULL : load();
    struct ta_statistics *statistics = NULL;
    if (snapshot != NULL && ta_own_rules_add(rules, words) == 0 && ta_own_rules_learn(rules, snapshot) == 0 &&
        ta_snapshot_set_own_rules(snapshot, rules) == 0)
        statistics = ta_group_by_own(snapshot, 1);
    int status = statistics == NULL || ta_statistics_sort(statistics, TA_ORDER_ALLOCATED_SIZE) != 0
                     ? -1
                     : ta_statistics_export_json(statistics, SIZE_MAX, say, NULL);
    ta_statistics_free(statistics);
    ta_own_rules_free(rules);
    return finish(snapshot, status);
}

static int compare(void)
{
    struct ta_snapshot *now = import(newer), *before = now == NULL ? NULL : import(older);
    struct ta_differences *differences = before == NULL ? NULL : ta_snapshot_compare_to(now, before, key, flags);
    int status = differences == NULL ? -1 : ta_differences_export_json(differences, SIZE_MAX, say, NULL);
    ta_differences_free(differences);
    ta_snapshot_free(before);
    return finish(now, status);
}

static int filter_by_words(void)
{
    struct ta_snapshot *snapshot = import(newer);
    struct ta_snapshot *kept = snapshot == NULL ? NULL : ta_snapshot_filter_expression(snapshot, words);
    int status = kept == NULL ? -1 : ta_snapshot_export_json(kept, say, NULL);
    ta_snapshot_free(kept);
    return finish(snapshot, status);
}

static int filter_by_list(void)
{
    struct ta_filter filters[] = {
        {.type = TA_FILTER_FILENAME, .pattern = "[ax]*.c"},
        {.type = TA_FILTER_DOMAIN, .inclusive = 1, .domain = 1},
        {.type = TA_FILTER_FILENAME,
         .inclusive = 1,
         .pattern = "?dd*",
         .has_lineno = 1,
         .lineno = 1,
         .has_domain = 1,
         .domain = 2},
        {.type = TA_FILTER_FUNCTION, .pattern = "f", .all_frames = 1},
        {.type = TA_FILTER_SIZE, .inclusive = 1, .max_size = 2},
    };
    struct ta_snapshot *snapshot = import(newer);
    struct ta_snapshot *kept = snapshot == NULL ? NULL : ta_snapshot_filter_traces(snapshot, filters, 5);
    int status = kept == NULL ? -1 : ta_snapshot_export_json(kept, say, NULL);
    ta_snapshot_free(kept);
    return finish(snapshot, status);
}

static int filter_recording(void)
{
    struct ta_snapshot *snapshot = load();
    struct ta_snapshot *kept = snapshot == NULL ? NULL : ta_snapshot_filter_expression(snapshot, words);
    int status = kept == NULL ? -1 : ta_snapshot_export_json(kept, say, NULL);
    ta_snapshot_free(kept);
    return finish(snapshot, status);
}

static int dump_and_load(void)
{
    char path[] = "/tmp/test-refused-XXXXXX.ta";
    struct ta_snapshot *snapshot = load(), *again = NULL;
    int file = mkstemps(path, 3), status = -1;
    if (snapshot != NULL && ta_snapshot_set_metadata(snapshot, "who", "somebody") == 0 &&
        ta_snapshot_dump(snapshot, path) == 0)
        again = ta_snapshot_load(path);
    close(file);
    unlink(path);
    if (again != NULL)
        status = ta_snapshot_export_json(again, say, NULL);
    ta_snapshot_free(again);
    return finish(snapshot, status);
}

static int sizes_over_time(void)
{
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/%s", golden, recording);
    struct ta_series *series = ta_series_load(path, key, NULL);
    if (series == NULL)
        return -1;
    for (size_t i = 0; i < ta_series_row_count(series); i++) {
        uint64_t sizes[16] = {0};
        size_t points = ta_series_course(series, i, sizes, NULL, 16);
        for (size_t point = 0; point < points && point < 16; point++) {
            snprintf(line, sizeof line, "%zu %llu\n", i, (unsigned long long)sizes[point]);
            say_text(line);
        }
    }
    snprintf(line, sizeof line, "%zu entries\n", ta_series_entry_count(series));
    say_text(line);
    ta_series_free(series);
    return 0;
}

static int draw_tree(void)
{
    struct ta_snapshot *now = load(), *before = now == NULL ? NULL : import(older);
    struct ta_calltree *tree = before == NULL ? NULL : ta_calltree_create(TA_ORDER_DEFAULT, (unsigned)flags);
    int status = -1;
    if (tree != NULL && ta_calltree_add(tree, now, 0) == 0 && ta_calltree_add(tree, before, 1) == 0)
        status = ta_calltree_export_folded(tree, say, NULL) != 0 ||
                         ta_calltree_export_speedscope(tree, say, NULL) != 0 ||
                         ta_calltree_export_flame(tree, NULL, sizeof(struct ta_flame_options), say, NULL) != 0
                     ? -1
                     : 0;
    ta_calltree_free(tree);
    ta_snapshot_free(before);
    return finish(now, status);
}

static int write_report(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", golden, recording);
    struct ta_report_file file = {.path = path};
    return ta_report_write(&file, 1, NULL, sizeof(struct ta_report_options), say, NULL);
}

static int format_stack(void)
{
    struct ta_snapshot *snapshot = import(newer);
    struct ta_traceback stack = {0};
    if (snapshot != NULL)
        stack = ta_snapshot_trace_traceback(snapshot, 0);
    char **lines = ta_traceback_length(stack) > 0 ? ta_traceback_format(stack, 3, flags) : NULL;
    for (size_t i = 0; lines != NULL && lines[i] != NULL; i++)
        say_text(lines[i]);
    int status = lines != NULL ? 0 : -1;
    free(lines);
    return finish(snapshot, status);
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

void setUp(void)
{
    recording = key = words = NULL;
    flags = 0;
}

void tearDown(void)
{
}

static void test_interchange_stands_refusals(void)
{
    stands_refusals(import_and_export);
    stands_refusals(import_and_pickle);
}

static void test_exports_stand_refusals(void)
{
    struct ta_export_format format;
    recording = "v1-symbols.ta";
    for (size_t i = 0; ta_export_format_get(i, &format, sizeof format) == 0; i++) {
        key = format.name;
        stands_refusals(load_and_export);
    }
    stands_refusals(load_and_report);
}

static void test_statistics_stand_refusals(void)
{
    static const char *const keys[] = {"filename", "lineno", "traceback", "function", "module",
                                       "domain",   "thread", "own",       "line",     "stack"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        key = keys[i];
        recording = NULL;
        stands_refusals(count_by_key);
        recording = "v1-symbols.ta";
        stands_refusals(count_by_key);
    }
    key = "filename";
    flags = TA_CUMULATIVE_ONCE;
    stands_refusals(count_by_key);
}

static void test_own_rules_stand_refusals(void)
{
    recording = "v1-symbols.ta";
    words = "skip function:alloc*\nown module:/usr/lib/*\n# a remark\nskip file:/usr/[ix]*\n";
    stands_refusals(churn_by_own);
}

static void test_differences_stand_refusals(void)
{
    key = "lineno";
    stands_refusals(compare);
    key = "traceback";
    stands_refusals(compare);
    key = "filename";
    flags = 1;
    stands_refusals(compare);
}

static void test_filters_stand_refusals(void)
{
    words = "file:[!x]*.c and not (at:c.c:1 or any.line:9 or domain:\"no\\\\ne\") or size>=30 own:*";
    stands_refusals(filter_by_words);
    stands_refusals(filter_by_list);
    recording = "v1-data.ta";
    words = "size>8 and not domain:none*";
    stands_refusals(filter_recording);
}

static void test_dumps_stand_refusals(void)
{
    static const char *const names[] = {"v1-data.ta", "v1-symbols.ta", "v1-series.ta"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        recording = names[i];
        stands_refusals(dump_and_load);
    }
}

static void test_series_stand_refusals(void)
{
    recording = "v1-series.ta";
    key = "function";
    stands_refusals(sizes_over_time);
    key = "own";
    stands_refusals(sizes_over_time);
}

static void test_trees_stand_refusals(void)
{
    recording = "v1-symbols.ta";
    stands_refusals(draw_tree);
    flags = TA_CALLTREE_FROM_LEAVES | TA_CALLTREE_FOLD | TA_CALLTREE_OWN;
    stands_refusals(draw_tree);
}

static void test_reports_stand_refusals(void)
{
    recording = "v1-series.ta";
    stands_refusals(write_report);
}

static void test_formatted_stacks_stand_refusals(void)
{
    stands_refusals(format_stack);
}

int main(int argc, char **argv)
{
    golden = argc > 1 ? argv[1] : ".";
    setvbuf(stdout, NULL, _IONBF, 0);
    UNITY_BEGIN();
    RUN_TEST(test_interchange_stands_refusals);
    RUN_TEST(test_exports_stand_refusals);
    RUN_TEST(test_statistics_stand_refusals);
    RUN_TEST(test_own_rules_stand_refusals);
    RUN_TEST(test_differences_stand_refusals);
    RUN_TEST(test_filters_stand_refusals);
    RUN_TEST(test_dumps_stand_refusals);
    RUN_TEST(test_series_stand_refusals);
    RUN_TEST(test_trees_stand_refusals);
    RUN_TEST(test_reports_stand_refusals);
    RUN_TEST(test_formatted_stacks_stand_refusals);
    return UNITY_END();
}
