/* fuzz_analysis.c: what people and other programs hand to analysis — documents, filters, conditions — as any bytes.
 * libFuzzer's entry; fuzz_replay.c runs the corpus without libFuzzer.
 *
 * The first byte chooses what the rest is: i an interchange document, f a list of filters, anything else a condition.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tracealloc/export.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static int swallow(void *user, const char *text, size_t length)
{
    *(size_t *)user += length;
    return text == NULL;
}

/* An answer or an error with a text: nothing else. */
static void ask(const struct ta_snapshot *snapshot, const char *key, int cumulative)
{
    size_t written = 0;
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, key, cumulative);
    struct ta_differences *differences = ta_snapshot_compare_to(snapshot, snapshot, key, cumulative);
    MUST((statistics == NULL) == (differences == NULL));
    if (statistics == NULL) {
        MUST(*ta_error_text() != '\0');
        return;
    }
    MUST(ta_statistics_count(statistics) == ta_differences_count(differences));
    MUST(ta_statistics_export_json(statistics, SIZE_MAX, swallow, &written) == 0);
    MUST(ta_differences_export_json(differences, SIZE_MAX, swallow, &written) == 0);
    ta_statistics_free(statistics);
    ta_differences_free(differences);
}

static void import(const char *text, size_t length)
{
    static const char *const keys[] = {"traceback", "lineno", "filename", "function", "module", "domain", "thread"};
    struct ta_snapshot *snapshot = ta_snapshot_import_json(text, length);
    if (snapshot == NULL) {
        MUST(*ta_error_text() != '\0');
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        ask(snapshot, keys[i], 0);
        ask(snapshot, keys[i], 1);
    }
    struct ta_export_format format;
    for (size_t i = 0; ta_export_format_get(i, &format, sizeof format) == 0; i++) {
        size_t written = 0;
        MUST(ta_snapshot_export(snapshot, format.name, TA_ORDER_COUNT, swallow, &written) == 0);
        MUST(written > 0 || strcmp(format.name, "folded") == 0 || strcmp(format.name, "jsonl") == 0);
    }
    ta_snapshot_free(snapshot);
}

static void filter_by_words(const char *text)
{
    static const char document[] =
        "{\"traces\": [{\"size\": 10, \"count\": 3, \"frames\": [[\"a/b.c\", 1], [\"m.c\", 2]]},"
        "{\"size\": 1, \"domain\": 4, \"frames\": [[\"z\", 0]]}]}";
    struct ta_snapshot *snapshot = ta_snapshot_import_json(document, strlen(document));
    struct ta_snapshot *filtered = ta_snapshot_filter_expression(snapshot, text);
    MUST(filtered != NULL || strncmp(ta_error_text(), "filter, column ", 15) == 0);
    MUST(filtered == NULL || ta_snapshot_trace_count(filtered) <= 2);
    ta_snapshot_free(filtered);
    ta_snapshot_free(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ta_filter *filters;
    size_t count;
    if (size == 0)
        return 0;
    char *text = malloc(size);
    MUST(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (*data == 'i')
        import(text, size - 1);
    else if (*data != 'f')
        filter_by_words(text);
    else if (ta_filters_from_json(text, size - 1, &filters, &count) == 0)
        free(filters);
    else
        MUST(*ta_error_text() != '\0');
    free(text);
    return 0;
}
