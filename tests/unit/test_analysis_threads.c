/* test_analysis_threads.c: several threads ask about one snapshot, from the first question on. */
#include <pthread.h>

#include "tests/support/analysis_case.h"

void setUp(void)
{
}

void tearDown(void)
{
}

enum { THREADS = 6, ROUNDS = 3 };

struct asker {
    struct ta_snapshot *snapshot, *other;
    pthread_barrier_t *start;
    char *answers; /* everything that it was told, one after the other */
    size_t length;
};

static int collect(void *user, const char *text, size_t length)
{
    struct asker *asker = user;
    asker->answers = realloc(asker->answers, asker->length + length + 1);
    memcpy(asker->answers + asker->length, text, length);
    asker->length += length;
    asker->answers[asker->length] = '\0';
    return 0;
}

/* No assertions here: they would jump out of the thread. What fails is missing from the answers. */
static void ask_everything(struct asker *asker)
{
    static const char *const keys[] = {"traceback", "lineno", "filename", "function", "module", "domain", "thread"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct ta_statistics *statistics = ta_snapshot_statistics(asker->snapshot, keys[i], 0);
        struct ta_differences *differences = ta_snapshot_compare_to(asker->snapshot, asker->other, keys[i], 0);
        if (statistics != NULL)
            ta_statistics_export_json(statistics, SIZE_MAX, collect, asker);
        if (differences != NULL)
            ta_differences_export_json(differences, SIZE_MAX, collect, asker);
        ta_statistics_free(statistics);
        ta_differences_free(differences);
    }
    struct ta_snapshot *filtered = ta_snapshot_filter_expression(asker->snapshot, "any.module:*lib* or size>100");
    if (filtered != NULL)
        ta_snapshot_export_json(filtered, collect, asker);
    ta_snapshot_free(filtered);
    for (size_t i = 0; i < 20; i++) {
        char text[512];
        collect(asker, text,
                ta_snapshot_trace_text(asker->snapshot, i, text, sizeof text) < sizeof text ? strlen(text) : 0);
    }
}

static void *ask_in_a_thread(void *user)
{
    struct asker *asker = user;
    pthread_barrier_wait(asker->start);
    ask_everything(asker);
    return NULL;
}

static struct ta_snapshot *load(const char *name)
{
    struct ta_snapshot *snapshot = ta_snapshot_load(name);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    return snapshot;
}

/* Each round begins with snapshots that nobody has asked: decoding, symbols and the model are all made meanwhile. */
static void check(const char *name, const char *other_name)
{
    struct asker alone = {.snapshot = load(name), .other = load(other_name)};
    ask_everything(&alone);
    TEST_ASSERT_GREATER_THAN(1000, alone.length);
    for (int round = 0; round < ROUNDS; round++) {
        struct ta_snapshot *snapshot = load(name), *other = load(other_name);
        struct asker askers[THREADS] = {0};
        pthread_t threads[THREADS];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            askers[i] = (struct asker){.snapshot = snapshot, .other = other, .start = &start};
            TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, ask_in_a_thread, &askers[i]));
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) {
            TEST_ASSERT_EQUAL_size_t(alone.length, askers[i].length);
            TEST_ASSERT_EQUAL_MEMORY(alone.answers, askers[i].answers, alone.length);
            free(askers[i].answers);
        }
        pthread_barrier_destroy(&start);
        ta_snapshot_free(snapshot);
        ta_snapshot_free(other);
    }
    free(alone.answers);
    ta_snapshot_free(alone.snapshot);
    ta_snapshot_free(alone.other);
}

static void test_threads_that_ask_about_one_snapshot_are_told_the_same(void)
{
    check(TA_GOLDEN "/v1-killed.ta@0", TA_GOLDEN "/v1-killed.ta");
}

static void test_threads_that_ask_about_stored_symbols_are_told_the_same(void)
{
    check(TA_GOLDEN "/v1-symbols.ta", TA_GOLDEN "/v1-data.ta");
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_threads_that_ask_about_one_snapshot_are_told_the_same);
    RUN_TEST(test_threads_that_ask_about_stored_symbols_are_told_the_same);
    return UNITY_END();
}
