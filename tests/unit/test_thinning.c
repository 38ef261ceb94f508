/* test_thinning.c: a series that stays within a size: which entries stay, that they are what they were, and a week of a
 * server with the time compressed.
 *
 *     test_thinning [DAYS]     so many days of the server; 1 unless given, with fewer entries than a day has */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/triggers/pace.h"
#include "snapshot/write/thinning.h"
#include "tests/support/fake_source.h"
#include "tracealloc/snapshot.h"

#define MS  UINT64_C(1000000)
#define S   (1000 * MS)
#define MIB (UINT64_C(1) << 20)

static unsigned days = 1;

void setUp(void)
{
}

void tearDown(void)
{
}

/* ---- the choice ---- */

enum { MANY = 4000, STRETCH = 100, FIRST_BYTES = 1000, OTHER_BYTES = 100 };

static struct ta__index_row rows[MANY];
static uint8_t keep[MANY];

/* One entry a second, every hundredth repeats everything. */
static uint64_t make_rows(void)
{
    uint64_t at = 32;
    for (uint32_t i = 0; i < MANY; i++) {
        rows[i] = (struct ta__index_row){.offset = at, .time_ns = i * S, .reset = i % STRETCH == 0};
        at += rows[i].reset ? FIRST_BYTES : OTHER_BYTES;
    }
    return at;
}

static uint64_t kept_bytes(uint64_t end)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < MANY; i++)
        bytes += keep[i] ? (i + 1 < MANY ? rows[i + 1].offset : end) - rows[i].offset : 0;
    return bytes;
}

static void test_what_fits_stays_whole(void)
{
    uint64_t end = make_rows();
    TEST_ASSERT_EQUAL(end - 32, ta__thinning_choose(rows, MANY, end, 2 * end, keep));
    for (uint32_t i = 0; i < MANY; i++)
        TEST_ASSERT_EQUAL(1, keep[i]);
}

static void test_the_last_minutes_stay_whole_and_before_them_fewer_and_fewer(void)
{
    uint64_t end = make_rows();
    for (uint64_t budget = end / 2; budget > 30000; budget = budget * 2 / 3) {
        uint64_t bytes = ta__thinning_choose(rows, MANY, end, budget, keep);
        uint32_t whole = MANY, last_gap = 0;
        TEST_ASSERT_EQUAL(kept_bytes(end), bytes);
        TEST_ASSERT_LESS_OR_EQUAL(budget, bytes);
        TEST_ASSERT_GREATER_THAN(budget / 3, bytes);
        TEST_ASSERT_EQUAL(1, keep[0]);
        while (whole > 0 && keep[whole - 1])
            whole--;
        TEST_ASSERT_EQUAL(0, (whole - (whole < MANY && rows[whole].reset ? 0 : 1)) % STRETCH);
        TEST_ASSERT_LESS_THAN(MANY - STRETCH, whole);
        for (uint32_t i = whole, former = whole; i-- > 0;)
            if (keep[i]) {
                TEST_ASSERT_EQUAL(1, rows[i].reset); /* it needs nothing that is gone */
                if (former != whole && i != 0)
                    TEST_ASSERT_GREATER_OR_EQUAL(last_gap / 2, former - i);
                last_gap = former - i;
                former = i;
            }
    }
}

static void test_what_cannot_be_less_stays(void)
{
    uint64_t end = make_rows();
    uint64_t bytes = ta__thinning_choose(rows, MANY, end, 1, keep);
    TEST_ASSERT_EQUAL(FIRST_BYTES + FIRST_BYTES + (STRETCH - 1) * OTHER_BYTES, bytes); /* the first, the last stretch */
    TEST_ASSERT_EQUAL(0, ta__thinning_choose(rows, 0, 32, 1, keep));
}

static void test_marks_stay_while_there_is_room(void)
{
    static const uint32_t marks[] = {700, 800, 1500, 2700};
    uint64_t end = make_rows();
    for (unsigned i = 0; i < 4; i++)
        rows[marks[i]].stays = 1;
    for (uint64_t budget = end / 2; budget > 30000; budget = budget * 2 / 3) {
        uint64_t bytes = ta__thinning_choose(rows, MANY, end, budget, keep);
        TEST_ASSERT_EQUAL(kept_bytes(end), bytes);
        TEST_ASSERT_LESS_OR_EQUAL(budget, bytes);
        for (unsigned i = 0; i < 4; i++)
            TEST_ASSERT_EQUAL(1, keep[marks[i]]);
    }
    ta__thinning_choose(rows, MANY, end, 1, keep);
    TEST_ASSERT_EQUAL(0, keep[1500]);
}

/* ---- a series ---- */

struct series {
    char path[64];
    struct ta__writer writer;
    unsigned thinnings;
    uint64_t forgotten;
};

static void open_series(struct series *series)
{
    struct ta__sink sink;
    strcpy(series->path, "/tmp/ta_thin.XXXXXX");
    series->thinnings = 0;
    series->forgotten = 0;
    int file = mkstemp(series->path);
    TEST_ASSERT_GREATER_THAN(-1, file);
    ta__sink_descriptor(&sink, file);
    TEST_ASSERT_EQUAL(0, ta__writer_open(&series->writer, &sink));
}

static void close_series(struct series *series)
{
    TEST_ASSERT_EQUAL(0, ta__writer_seal(&series->writer));
    close(series->writer.chunks.sink.descriptor);
    ta__writer_close(&series->writer);
}

/* As record.c does it. */
static void append(struct series *series, struct fake_source *fake, uint64_t time_ns, uint64_t limit)
{
    struct ta__facts facts = fake_facts(time_ns);
    struct ta__thinned thinned;
    struct ta__sink sink;
    uint64_t least = ta__writer_least_limit(&series->writer);
    limit = limit > least ? limit : least;
    ta__writer_divide(&series->writer, limit);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&series->writer, &fake->source, &facts), ta__error_text());
    uint64_t budget = ta__writer_thins_to(&series->writer, limit);
    if (budget == 0)
        return;
    int former = series->writer.chunks.sink.descriptor;
    uint64_t length = series->writer.chunks.sink.written;
    unlink(series->path);
    int file = open(series->path, O_RDWR | O_CREAT | O_EXCL, 0600);
    ta__sink_descriptor(&sink, file);
    TEST_ASSERT_EQUAL(0, ta__thinned_copy(&thinned, &series->writer, &sink, budget));
    ta__thinned_adopt(&thinned, &series->writer);
    close(former);
    series->thinnings++;
    series->forgotten += length - series->writer.chunks.sink.written;
}

static uint64_t live_in(const char *path, size_t entry, uint64_t *time_ns)
{
    char name[128];
    struct ta_snapshot_info info;
    struct ta_trace trace;
    uint64_t bytes = 0;
    snprintf(name, sizeof name, "%s@%zu", path, entry);
    struct ta_snapshot *snapshot = ta_snapshot_load(name);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
    *time_ns = info.time_ns;
    for (long i = 0; i < ta_snapshot_trace_count(snapshot); i++)
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) == 0)
            bytes += trace.size;
    ta_snapshot_free(snapshot);
    return bytes;
}

static void test_what_stays_is_what_it_was(void)
{
    enum { ENTRIES = 3000 };
    static uint64_t truth[ENTRIES];
    struct series series;
    struct fake_source fake;
    fake_open(&fake);
    fake_program(&fake, 300, 50);
    open_series(&series);
    uint64_t live = 0;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint32_t leaf = 1 + (uint32_t)fake_random(&fake, fake.source.leaf_count - 1);
        fake_malloc(&fake, leaf, 1 + i % 3, 100);
        live += (1 + i % 3) * 100;
        truth[i] = live;
        append(&series, &fake, i * S, 64 << 10);
        TEST_ASSERT_LESS_OR_EQUAL(100000, series.writer.chunks.sink.written);
    }
    close_series(&series);
    TEST_ASSERT_GREATER_THAN(3, series.thinnings);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_recording_check(series.path, NULL, NULL), ta_error_text());
    struct ta_recording *recording = ta_recording_open(series.path);
    size_t count = ta_recording_entry_count(recording);
    ta_recording_close(recording);
    uint64_t base = 0, time_ns = 0, before = 0;
    for (size_t entry = 0; entry < count; entry++) {
        uint64_t has = live_in(series.path, entry, &time_ns), number = time_ns / S;
        if (entry == 0) {
            base = has - truth[0]; /* what the made-up program began with */
            TEST_ASSERT_EQUAL(0, number);
        } else {
            TEST_ASSERT_GREATER_THAN(before, number);
        }
        TEST_ASSERT_EQUAL(truth[number], has - base);
        before = number;
    }
    TEST_ASSERT_EQUAL(ENTRIES - 1, before);
    unlink(series.path);
    fake_close(&fake);
}

/* ---- weeks ---- */

/* A server: busy by day, quiet by night, a little more memory each hour; its entries as the pace wants them. */
static void test_days_of_a_server(void)
{
    struct series series;
    struct fake_source fake;
    struct ta__pace pace = {0};
    uint64_t most_in_an_hour = 0, longest_gap = 0, entries = 0, taken_at_last = 0;
    fake_open(&fake);
    fake_program(&fake, 30000, 500);
    open_series(&series);
    uint64_t current = 50 * MIB, end = days * 86400 * S, step = days > 1 ? 250 * MS : 2 * S;
    for (uint64_t now = 0; now < end; now += step) {
        int is_busy = now / (3600 * S) % 24 < 16;
        if (is_busy || now % (60 * S) == 0) {
            fake_activity(&fake, is_busy ? 4 : 100);
            current += fake_random(&fake, 3 * MIB);
            current -= current > 60 * MIB ? 9 * MIB : 0;
        }
        if (!ta__pace_is_due(&pace, now, current))
            continue;
        longest_gap = pace.last_ns != 0 && now - pace.last_ns > longest_gap ? now - pace.last_ns : longest_gap;
        append(&series, &fake, now, ta__pace_file_limit(&pace, now));
        ta__pace_note(&pace, now, current, series.writer.chunks.sink.written + series.forgotten, 300000);
        entries++;
        taken_at_last += now >= end - 300 * S;
        if (now < 3600 * S && series.writer.chunks.sink.written > most_in_an_hour)
            most_in_an_hour = series.writer.chunks.sink.written;
        TEST_ASSERT_LESS_THAN(100 * MIB, series.writer.chunks.sink.written);
    }
    uint64_t written = series.writer.chunks.sink.written, time_ns;
    close_series(&series);
    struct ta_recording *recording = ta_recording_open(series.path);
    size_t count = ta_recording_entry_count(recording);
    ta_recording_close(recording);
    printf("%u days: %llu entries taken, %zu left in %llu KiB, thinned %u times, %llu KiB in the first hour\n", days,
           (unsigned long long)entries, count, (unsigned long long)written >> 10, series.thinnings,
           (unsigned long long)most_in_an_hour >> 10);
    TEST_ASSERT_LESS_THAN(10 * MIB, most_in_an_hour);
    TEST_ASSERT_LESS_THAN(61000, count);
    TEST_ASSERT_GREATER_THAN(1, series.thinnings);
    TEST_ASSERT_LESS_OR_EQUAL(60 * S, longest_gap);
    live_in(series.path, 0, &time_ns);
    TEST_ASSERT_LESS_THAN(10 * S, time_ns);
    live_in(series.path, count - 1, &time_ns);
    TEST_ASSERT_GREATER_THAN(end - 10 * S, time_ns);
    /* The last minutes are whole. */
    struct ta_entry_info info;
    size_t recent = 0;
    recording = ta_recording_open(series.path);
    for (size_t i = 0; i < count && ta_recording_entry(recording, i, &info) == 0; i++)
        recent += info.time_ns >= end - 300 * S;
    ta_recording_close(recording);
    TEST_ASSERT_EQUAL(taken_at_last, recent);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_recording_check(series.path, NULL, NULL), ta_error_text());
    unlink(series.path);
    fake_close(&fake);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        days = (unsigned)atoi(argv[1]);
    UNITY_BEGIN();
    RUN_TEST(test_what_fits_stays_whole);
    RUN_TEST(test_the_last_minutes_stay_whole_and_before_them_fewer_and_fewer);
    RUN_TEST(test_marks_stay_while_there_is_room);
    RUN_TEST(test_what_cannot_be_less_stays);
    RUN_TEST(test_what_stays_is_what_it_was);
    RUN_TEST(test_days_of_a_server);
    return UNITY_END();
}
