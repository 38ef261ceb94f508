/* analysis_case.h: snapshots for tests, written as interchange JSON with ' for ". */
#ifndef TESTS_SUPPORT_ANALYSIS_CASE_H
#define TESTS_SUPPORT_ANALYSIS_CASE_H

#include <stdlib.h>
#include <string.h>

#include <tracealloc/analysis.h>
#include <unity.h>

static inline char *with_double_quotes(const char *text)
{
    char *copy = strdup(text);
    for (char *at = copy; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    return copy;
}

/* "{'size': 10, 'frames': [['a', 1]]}, …": the traces only. */
static inline struct ta_snapshot *snapshot_of(const char *traces)
{
    char *list = with_double_quotes(traces), *text = NULL;
    TEST_ASSERT_TRUE(asprintf(&text, "{\"traceback_limit\": 5, \"traces\": [%s]}", list) > 0);
    struct ta_snapshot *snapshot = ta_snapshot_import_json(text, strlen(text));
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    free(text);
    free(list);
    return snapshot;
}

/* All rows as one text, a line end behind each. Freed by the next call. */
static inline const char *statistics_text(const struct ta_snapshot *snapshot, const char *key, int cumulative)
{
    static char text[8192];
    size_t length = 0;
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, key, cumulative);
    TEST_ASSERT_NOT_NULL_MESSAGE(statistics, ta_error_text());
    text[0] = '\0';
    for (size_t i = 0; i < ta_statistics_count(statistics); i++) {
        length += ta_statistics_text(statistics, i, text + length, sizeof text - length);
        TEST_ASSERT_TRUE(length + 2 < sizeof text);
        text[length++] = '\n';
        text[length] = '\0';
    }
    ta_statistics_free(statistics);
    return text;
}

#endif
