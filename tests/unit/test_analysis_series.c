/* test_analysis_series.c: courses, ages and sizes of blocks over the entries of a recording, against numbers worked out by
 * hand. The recording is made by the product's writer from a program that consists of arrays. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracealloc/analysis.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"

static struct fake_source fake;
static struct ta__writer writer;
static char path[] = "/tmp/test-series-XXXXXX.ta";
static uint32_t leaks, caches, churns, gone, other, app;
static uint64_t now_ns;

/* Five leaves in five functions without names: module + offset tells them apart. */
void setUp(void)
{
    struct ta__sink sink;
    fake_open(&fake);
    app = fake_module(&fake, "/nonexistent/app", 0x1000, 0x2000);
    uint32_t domain = fake_domain(&fake, 0, "");
    uint32_t *const leaves[] = {&leaks, &caches, &churns, &gone, &other};
    for (uint32_t i = 0; i < 5; i++)
        *leaves[i] = fake_leaf(&fake, fake_context(&fake, 0, 0x1100 + 0x100 * i, app), domain, 0, 1);
    ta__sink_memory(&sink);
    TEST_ASSERT_EQUAL(0, ta__writer_open(&writer, &sink));
    now_ns = 1000000000;
}

void tearDown(void)
{
    ta__buffer_free(&writer.chunks.sink.memory);
    ta__writer_close(&writer);
    fake_close(&fake);
}

static void write_entry(void)
{
    struct ta__facts facts = fake_facts(now_ns);
    now_ns += 10000000000; /* ten seconds */
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&writer, &fake.source, &facts), ta__error_text());
}

static struct ta_series *load_with(const char *key, struct ta_own_rules *rules, int learns)
{
    strcpy(strrchr(path, '-') + 1, "XXXXXX.ta");
    int file = mkstemps(path, 3);
    TEST_ASSERT_EQUAL(writer.chunks.sink.memory.length,
                      write(file, writer.chunks.sink.memory.bytes, writer.chunks.sink.memory.length));
    close(file);
    struct ta_snapshot *last = learns ? ta_snapshot_load(path) : NULL;
    if (learns)
        TEST_ASSERT_EQUAL_MESSAGE(0, ta_own_rules_learn(rules, last), ta_error_text());
    ta_snapshot_free(last);
    struct ta_series *series = ta_series_load(path, key, rules);
    unlink(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(series, ta_error_text());
    return series;
}

static struct ta_series *load(const char *key)
{
    return load_with(key, NULL, 0);
}

static void add_classes(char *text, const char *name, const uint64_t *classes, size_t count)
{
    sprintf(text + strlen(text), ", %s", name);
    for (size_t i = 0; i < count; i++)
        if (classes[i] != 0)
            sprintf(text + strlen(text), " %zu:%llu", i, (unsigned long long)classes[i]);
}

/* "app+0x1ff steady 600+600 of 6: 100 200 …, sizes 7:6, lives , live 6" for the row of that name. */
static const char *row_text(const struct ta_series *series, const char *name)
{
    static char text[1000];
    for (size_t i = 0; i < ta_series_row_count(series); i++) {
        struct ta_series_row row;
        uint64_t sizes[32], counts[32];
        TEST_ASSERT_EQUAL_INT(0, ta_series_get_row(series, i, &row, sizeof row));
        if (strcmp(row.frame.filename, name) != 0 && strcmp(row.frame.function, name) != 0)
            continue;
        size_t points = ta_series_course(series, i, sizes, counts, 32);
        sprintf(text, "%s %llu in %llu, peak %llu, grown %llu, all %llu in %llu:", ta_growth_name(row.growth),
                (unsigned long long)row.size, (unsigned long long)row.count, (unsigned long long)row.peak_size,
                (unsigned long long)row.grown_size, (unsigned long long)row.allocated_size,
                (unsigned long long)row.allocated_count);
        for (size_t point = 0; point < points; point++)
            sprintf(text + strlen(text), " %llu/%llu", (unsigned long long)sizes[point],
                    (unsigned long long)counts[point]);
        add_classes(text, "sizes", row.by_size, TA_SIZE_CLASSES);
        add_classes(text, "lives", row.by_life, TA_LIFE_CLASSES);
        sprintf(text + strlen(text), ", live %llu", (unsigned long long)row.still_live);
        return text;
    }
    return "no such row";
}

static const char *entries_text(const struct ta_series *series)
{
    static char text[1000];
    text[0] = '\0';
    for (size_t i = 0; i < ta_series_entry_count(series); i++) {
        struct ta_series_entry entry;
        TEST_ASSERT_EQUAL_INT(0, ta_series_get_entry(series, i, &entry, sizeof entry));
        sprintf(text + strlen(text), "%s%llu@%llu:%llu/%llu of %llu%s", i > 0 ? " " : "",
                (unsigned long long)entry.index, (unsigned long long)(entry.time_ns / 1000000000),
                (unsigned long long)entry.size, (unsigned long long)entry.count,
                (unsigned long long)entry.allocated_count, entry.restarts ? " anew" : "");
    }
    return text;
}

/* Six entries: one leaf leaks 100 bytes each time, one fills up, one comes and goes between the entries, one is freed. */
static void write_six(void)
{
    fake_malloc(&fake, gone, 4, 1000);
    for (int i = 0; i < 6; i++) {
        fake_malloc(&fake, leaks, 1, 100);
        if (i < 2)
            fake_malloc(&fake, caches, 2, 64);
        fake_malloc(&fake, churns, 10, 8);
        fake_free(&fake, churns, 10, 8);
        if (i == 2)
            fake_free(&fake, gone, 1, 1000);
        if (i == 5)
            fake_free(&fake, gone, 3, 1000);
        write_entry();
    }
}

static void test_rows_have_their_courses_sizes_and_lives(void)
{
    write_six();
    struct ta_series *series = load("function");
    TEST_ASSERT_EQUAL_size_t(4, ta_series_row_count(series));
    TEST_ASSERT_EQUAL_STRING(
        "steady 600 in 6, peak 600, grown 500, all 600 in 6: 100/1 200/2 300/3 400/4 500/5 600/6, sizes 7:6, "
        "lives, live 6",
        row_text(series, "app+0x100"));
    TEST_ASSERT_EQUAL_STRING(
        "plateau 256 in 4, peak 256, grown 0, all 256 in 4: 128/2 256/4 256/4 256/4 256/4 256/4, sizes 7:4, "
        "lives, live 4",
        row_text(series, "app+0x200"));
    TEST_ASSERT_EQUAL_STRING(
        "churn 0 in 0, peak 0, grown 0, all 480 in 60: 0/0 0/0 0/0 0/0 0/0 0/0, sizes 4:60, lives 0:60, live 0",
        row_text(series, "app+0x300"));
    TEST_ASSERT_EQUAL_STRING(
        "freed 0 in 0, peak 4000, grown 0, all 4000 in 4: 4000/4 4000/4 3000/3 3000/3 3000/3 0/0, sizes 10:4, "
        "lives 2:1 3:3, live 0",
        row_text(series, "app+0x400"));
    struct ta_series_row first;
    TEST_ASSERT_EQUAL_INT(0, ta_series_get_row(series, 0, &first, sizeof first)); /* the most leak-like */
    TEST_ASSERT_EQUAL_STRING("app+0x100", first.frame.filename);
    TEST_ASSERT_EQUAL_DOUBLE(600, first.bytes_per_minute);
    TEST_ASSERT_EQUAL_DOUBLE(100, first.bytes_per_call);
    TEST_ASSERT_EQUAL_INT(-1, ta_series_get_row(series, 4, &first, sizeof first));
    ta_series_free(series);
}

static void test_entries_have_the_sums_of_all_rows(void)
{
    write_six();
    struct ta_series *series = load("function");
    struct ta_series_entry entry;
    TEST_ASSERT_EQUAL_STRING(
        "0@1:4228/7 of 17 1@11:4456/10 of 30 2@21:3556/10 of 41 3@31:3656/11 of 52 4@41:3756/12 of 63 "
        "5@51:856/10 of 74",
        entries_text(series));
    TEST_ASSERT_EQUAL_INT(-1, ta_series_get_entry(series, 6, &entry, sizeof entry));
    ta_series_free(series);
}

static void test_leaves_of_one_group_are_one_row(void)
{
    write_six();
    struct ta_series *series = load("module");
    TEST_ASSERT_EQUAL_size_t(1, ta_series_row_count(series));
    TEST_ASSERT_EQUAL_size_t(6, ta_series_course(series, 0, NULL, NULL, 0));
    uint64_t sizes[6] = {0};
    TEST_ASSERT_EQUAL_size_t(6, ta_series_course(series, 0, sizes, NULL, 3)); /* no more than asked for */
    TEST_ASSERT_EQUAL_UINT64(4228, sizes[0]);
    TEST_ASSERT_EQUAL_UINT64(3556, sizes[2]);
    TEST_ASSERT_EQUAL_UINT64(0, sizes[3]);
    struct ta_series_row row;
    TEST_ASSERT_EQUAL_INT(0, ta_series_get_row(series, 0, &row, sizeof row));
    TEST_ASSERT_EQUAL_UINT64(856, row.size);
    TEST_ASSERT_EQUAL_UINT64(10, row.count);
    TEST_ASSERT_EQUAL_UINT64(4456, row.peak_size);
    TEST_ASSERT_EQUAL_UINT64(60, row.by_life[0]);
    TEST_ASSERT_EQUAL_UINT64(10, row.still_live);
    ta_series_free(series);
}

/* The youngest blocks of a stack are taken to go first. */
static void test_lives_count_the_youngest_first(void)
{
    fake_malloc(&fake, leaks, 3, 16);
    write_entry();
    fake_malloc(&fake, leaks, 5, 17);
    write_entry();
    write_entry();
    fake_free(&fake, leaks, 6, 16);
    write_entry();
    write_entry();
    fake_free(&fake, leaks, 1, 16);
    write_entry();
    struct ta_series *series = load("function");
    TEST_ASSERT_EQUAL_STRING(
        "start 21 in 1, peak 133, grown 0, all 133 in 8: 48/3 133/8 133/8 37/2 37/2 21/1, sizes 5:8, lives 2:6 3:1, "
        "live 1",
        row_text(series, "app+0x100"));
    ta_series_free(series);
}

/* At its end the program has nothing to do. What lives on is judged by what was before; what goes back then, by all. */
static void test_what_goes_back_while_the_program_idles_is_no_leak(void)
{
    for (int i = 0; i < 12; i++) {
        if (i < 6) {
            fake_malloc(&fake, leaks, 1, 100);
            fake_malloc(&fake, caches, 1, 100);
        } else if (i == 8) {
            fake_free(&fake, caches, 6, 100);
        }
        write_entry();
    }
    struct ta_series *series = load("function");
    TEST_ASSERT_EQUAL_STRING_LEN("steady 600 in 6", row_text(series, "app+0x100"), 15);
    TEST_ASSERT_EQUAL_STRING_LEN("freed 0 in 0, peak 600", row_text(series, "app+0x200"), 22);
    ta_series_free(series);
}

/* Cleared traces begin anew: what was before is nobody's growth. */
static void test_courses_begin_anew_when_the_traces_are_cleared(void)
{
    write_six();
    fake.source.epoch++;
    fake.source.leaf_first = fake.source.leaf_count;
    memset(fake.counts, 0, fake.source.leaf_count * sizeof *fake.counts);
    fake.source.current_bytes = fake.source.peak_bytes = 0;
    uint32_t context = fake.leaves[leaks].context;
    uint32_t again = fake_leaf(&fake, context, 0, 0, 1);
    for (int i = 0; i < 4; i++) {
        fake_malloc(&fake, again, 1, 50);
        write_entry();
    }
    struct ta_series *series = load("function");
    TEST_ASSERT_EQUAL_STRING("steady 200 in 4, peak 200, grown 150, all 200 in 4: 100/1 200/2 300/3 400/4 500/5 600/6 "
                             "50/1 100/2 150/3 200/4, "
                             "sizes 6:4 7:6, lives, live 10",
                             row_text(series, "app+0x100"));
    TEST_ASSERT_NOT_NULL(strstr(entries_text(series), "5@51:856/10 of 74 6@61:50/1 of 1 anew 7@71:100/2 of 2 8@81"));
    ta_series_free(series);
}

static void test_what_is_no_recording_or_no_key_is_refused(void)
{
    write_six();
    ta_series_free(load("own"));
    TEST_ASSERT_NULL(ta_series_load("/nonexistent/x.ta", "function", NULL));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "/nonexistent/x.ta"));
    TEST_ASSERT_NULL(ta_series_load("/nonexistent/x.ta", "nothing", NULL));
    ta_series_free(NULL);
}

/* Whether or not they have learned before. */
static void test_rows_of_ones_own_are_as_the_rules_say(void)
{
    uint32_t wrap = fake_module(&fake, "/nonexistent/wrap", 0x5000, 0x6000);
    uint32_t caller = fake_context(&fake, 0, 0x1900, app), inner = fake_context(&fake, caller, 0x5100, wrap);
    uint32_t leaf = fake_leaf(&fake, inner, 0, 0, 1);
    for (int i = 0; i < 3; i++) {
        fake_malloc(&fake, leaf, 1, 100);
        write_entry();
    }
    struct ta_series *series = load("own");
    TEST_ASSERT_NOT_NULL(strstr(row_text(series, "wrap+0x100"), "300 in 3"));
    ta_series_free(series);
    for (int learns = 0; learns < 2; learns++) {
        struct ta_own_rules *rules = ta_own_rules_create();
        TEST_ASSERT_EQUAL(0, ta_own_rules_add(rules, "skip module:*wrap\n"));
        series = load_with("own", rules, learns);
        TEST_ASSERT_NOT_NULL(strstr(row_text(series, "app+0x900"), "300 in 3"));
        TEST_ASSERT_EQUAL_STRING("no such row", row_text(series, "wrap+0x100"));
        ta_series_free(series);
        ta_own_rules_free(rules);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_rows_have_their_courses_sizes_and_lives);
    RUN_TEST(test_entries_have_the_sums_of_all_rows);
    RUN_TEST(test_leaves_of_one_group_are_one_row);
    RUN_TEST(test_lives_count_the_youngest_first);
    RUN_TEST(test_what_goes_back_while_the_program_idles_is_no_leak);
    RUN_TEST(test_courses_begin_anew_when_the_traces_are_cleared);
    RUN_TEST(test_what_is_no_recording_or_no_key_is_refused);
    RUN_TEST(test_rows_of_ones_own_are_as_the_rules_say);
    return UNITY_END();
}
