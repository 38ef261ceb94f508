/* test_thinning_copy.c: how a series is made shorter (snapshot/write/thinning.h), entry by entry: which stay, when it is due, and
 * that a copy is whole or is none. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/write/thinning.h"
#include "tests/support/fake_source.h"
#include "tracealloc/snapshot.h"

/* What the next calls of pread do: E is interrupted, F fails, 0 says that the file ends, a digit gives at most so many bytes. */
static const char *manner = "";

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset)
{
    char how = *manner;
    manner += how != '\0';
    if (how == 'E' || how == 'F')
        return errno = how == 'E' ? EINTR : EACCES, -1;
    size_t most = how != '\0' ? (size_t)(how - '0') : count;
    return most == 0 ? 0 : syscall(SYS_pread64, descriptor, bytes, most < count ? most : count, offset);
}

void setUp(void)
{
    manner = "";
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
}

/* ---- which stay ---- */

/* Each letter is an entry: R repeats everything (100 bytes), M is a mark that does, r is as large but relies on those before
 * it, other letters 10 bytes; `ages` of the entries in seconds, NULL: one each second. What stays, and how much that is. */
static const char *chosen(const char *entries, uint64_t budget, const unsigned *ages)
{
    static char text[120];
    static struct ta__index_row rows[64];
    uint8_t keep[64];
    uint32_t count = (uint32_t)strlen(entries);
    uint64_t at = 32;
    memset(keep, 0xee, sizeof keep);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = (struct ta__index_row){.offset = at,
                                         .time_ns = 100000 - (ages != NULL ? ages[i] : count - 1 - i),
                                         .reset = entries[i] == 'R' || entries[i] == 'M',
                                         .stays = entries[i] == 'M'};
        at += strchr("RMr", entries[i]) != NULL ? 100 : 10;
    }
    uint64_t bytes = ta__thinning_choose(rows, count, at, budget, keep);
    for (uint32_t i = 0; i < count; i++) {
        TEST_ASSERT_LESS_OR_EQUAL(1, keep[i]);
        text[i] = keep[i] ? entries[i] : '.';
    }
    sprintf(text + count, " %d", (int)bytes);
    return text;
}

#define CHOSEN(expected, entries, budget) TEST_ASSERT_EQUAL_STRING(expected, chosen(entries, budget, NULL))

static void test_the_young_stay_whole_within_three_quarters(void)
{
    CHOSEN(" 0", "", 1000);
    CHOSEN("R 100", "R", 1000);
    CHOSEN("R 100", "R", 1);
    CHOSEN("Rabc 130", "Rabc", 1);
    CHOSEN("RRRR 400", "RRRR", 536); /* three quarters are 402 */
    CHOSEN("RRRR 400", "RRRR", 400); /* all stay by their ages */
    CHOSEN("R.RR 300", "RRRR", 399); /* 297: the last two are young */
    CHOSEN("RaRa 220", "RaRa", 296); /* 222 */
    CHOSEN("R.Ra 210", "RaRa", 292); /* 219: not both stretches */
    CHOSEN("R.Ra 210", "RaRa", 210);
    CHOSEN("R.Ra 210", "RaRa", 1);       /* what cannot be less */
    CHOSEN("R..Rbc 220", "RaaRbc", 290); /* of the old stretches the first entry */
}

static void test_the_old_are_so_many_times_as_old_as_the_next(void)
{
    static const unsigned ages[] = {1000, 900, 99, 50, 10, 9, 1, 0};
    static const struct {
        uint64_t budget;
        const char *expected;
    } cases[] = {{800, "RRRRRRRR 800"}, {799, "RR.RRRRR 700"}, /* 100 seconds are not twice as old as 51 */
                 {699, "R..RRRRR 600"}, {600, "RR..RRRR 600"},
                 {599, "R...RRRR 500"}, {500, "RR...RRR 500"}, /* 901 is sixteen times as old as 10, 51 is not */
                 {499, "R....RRR 400"}, {1, "R......R 200"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TEST_ASSERT_EQUAL_STRING(cases[i].expected, chosen("RRRRRRRR", cases[i].budget, ages));
}

/* A stretch that is exactly so many times as old stays, one that is a second younger does not. */
static void test_ratios_are_exact(void)
{
    static const unsigned ratios[] = {2, 4, 16};
    for (size_t i = 0; i < 3; i++) {
        unsigned third = 51 * ratios[i] - 1, second = (third + 1) * ratios[i] - 2;
        const unsigned ages[] = {second + 1, second, third, 50, 10, 9, 1, 0};
        TEST_ASSERT_EQUAL_STRING("R.RRRRRR 700", chosen("RRRRRRRR", 799, ages));
    }
}

static void test_marks_stay_whatever_their_age_while_there_is_room(void)
{
    CHOSEN("M.M.MRRR 600", "MRMRMRRR", 600);
    CHOSEN("RM...RRR 500", "RMRRRRRR", 500);
    CHOSEN("R....RRR 400", "RMRRRRRR", 499);
    CHOSEN("M....RRR 400", "MRMRMRRR", 400);
}

/* ---- when ---- */

static struct ta__writer writer;

static void writer_with(const struct ta__index_row *rows, size_t count, uint64_t written)
{
    memset(&writer, 0, sizeof writer);
    TEST_ASSERT_EQUAL(0, ta__buffer_put(&writer.chunks.index, rows, count * sizeof *rows));
    writer.chunks.sink.written = written;
}

static int divides(uint64_t limit)
{
    writer.reset = 0;
    ta__writer_divide(&writer, limit);
    return writer.reset;
}

static void test_everything_is_repeated_after_an_eighth_of_the_limit(void)
{
    static const struct ta__index_row rows[] = {
        {.offset = 32, .reset = 1}, {.offset = 1032, .reset = 1}, {.offset = 1132}};
    writer_with(rows, 3, 2132); /* the last whole entry has 100 bytes, 1000 came since */
    TEST_ASSERT_EQUAL(0, divides(8000));
    TEST_ASSERT_EQUAL(1, divides(7999));
    TEST_ASSERT_EQUAL(1, divides(0));
    TEST_ASSERT_EQUAL_UINT64(500, ta__writer_least_limit(&writer));
    ta__buffer_free(&writer.chunks.index);
    writer_with(rows, 2, 1132); /* the last entry is the whole one */
    TEST_ASSERT_EQUAL(0, divides(0));
    TEST_ASSERT_EQUAL_UINT64(500, ta__writer_least_limit(&writer));
    writer.chunks.sink.written = 1232;
    TEST_ASSERT_EQUAL_UINT64(1000, ta__writer_least_limit(&writer));
    ta__buffer_free(&writer.chunks.index);
    writer_with(rows, 3, 1232); /* as much as the whole entry has came since */
    TEST_ASSERT_EQUAL(0, divides(0));
    writer.chunks.sink.written = 1233;
    TEST_ASSERT_EQUAL(1, divides(0));
    ta__buffer_free(&writer.chunks.index);
    writer_with(rows, 0, 5000);
    TEST_ASSERT_EQUAL(0, divides(0));
    TEST_ASSERT_EQUAL_UINT64(0, ta__writer_least_limit(&writer));
    ta__buffer_free(&writer.chunks.index);
}

static void test_marks_repeat_everything_and_what_was_due_stays_due(void)
{
    memset(&writer, 0, sizeof writer);
    ta__writer_set_mark(&writer, 1);
    TEST_ASSERT_EQUAL(1, writer.reset);
    TEST_ASSERT_EQUAL(1, writer.stays);
    ta__writer_set_mark(&writer, 0);
    TEST_ASSERT_EQUAL(1, writer.reset);
    TEST_ASSERT_EQUAL(0, writer.stays);
    writer.reset = 0;
    ta__writer_set_mark(&writer, 0);
    TEST_ASSERT_EQUAL(0, writer.reset);
}

static void test_it_is_due_beyond_the_limit_or_beyond_60000_entries(void)
{
    static struct ta__index_row rows[60001];
    writer_with(rows, 60000, 1000);
    TEST_ASSERT_EQUAL_UINT64(0, ta__writer_thins_to(&writer, 1000));
    TEST_ASSERT_EQUAL_UINT64(499, ta__writer_thins_to(&writer, 999));
    TEST_ASSERT_EQUAL(0, ta__buffer_put(&writer.chunks.index, rows, sizeof *rows));
    TEST_ASSERT_EQUAL_UINT64(500, ta__writer_thins_to(&writer, 1000));
    TEST_ASSERT_EQUAL_UINT64(500, ta__writer_thins_to(&writer, 5000));
    ta__buffer_free(&writer.chunks.index);
}

/* ---- a copy ---- */

static struct fake_source fake;
static char from[] = "/tmp/ta_from.XXXXXX", to[] = "/tmp/ta_to.XXXXXX";
static struct ta__sink target;
static struct ta__thinned thinned;

enum { ENTRIES = 12 };

static void open_series(void)
{
    struct ta__sink sink;
    strcpy(strrchr(from, '.') + 1, "XXXXXX");
    strcpy(strrchr(to, '.') + 1, "XXXXXX");
    fake_open(&fake);
    fake_program(&fake, 300, 50);
    ta__sink_descriptor(&sink, mkstemp(from));
    TEST_ASSERT_EQUAL(0, ta__writer_open(&writer, &sink));
    for (uint64_t i = 0; i < ENTRIES; i++) {
        struct ta__facts facts = fake_facts(1000 + i);
        fake_activity(&fake, 3);
        writer.reset = i % 3 == 0;
        TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&writer, &fake.source, &facts), ta__error_text());
    }
    ta__sink_descriptor(&target, mkstemp(to));
}

static void close_series(void)
{
    close(writer.chunks.sink.descriptor);
    ta__writer_close(&writer);
    fake_close(&fake);
    unlink(from);
    unlink(to);
}

static off_t length_of(int file)
{
    struct stat status;
    TEST_ASSERT_EQUAL(0, fstat(file, &status));
    return status.st_size;
}

static void test_a_copy_is_a_recording_that_goes_on(void)
{
    static const char *const manners[] = {"", "1", "E", "9EE12345E"};
    for (size_t i = 0; i < sizeof manners / sizeof *manners; i++) {
        open_series();
        manner = manners[i];
        uint64_t written = writer.chunks.sink.written;
        errno = 77;
        TEST_ASSERT_EQUAL(0, ta__thinned_copy(&thinned, &writer, &target, written / 2));
        TEST_ASSERT_EQUAL(0, thinned.sink.error);
        TEST_ASSERT_EQUAL_UINT64(length_of(target.descriptor), thinned.sink.written);
        TEST_ASSERT_LESS_OR_EQUAL(written / 2 + 32, thinned.sink.written);
        TEST_ASSERT_EQUAL(written, writer.chunks.sink.written); /* that one is as it was */
        close(writer.chunks.sink.descriptor);
        ta__thinned_adopt(&thinned, &writer);
        TEST_ASSERT_EQUAL(target.descriptor, writer.chunks.sink.descriptor);
        uint32_t kept = writer.chunks.entry;
        TEST_ASSERT_GREATER_THAN(1, kept);
        TEST_ASSERT_LESS_THAN(ENTRIES, kept);
        struct ta__facts facts = fake_facts(5000);
        TEST_ASSERT_EQUAL(0, ta__writer_entry(&writer, &fake.source, &facts));
        TEST_ASSERT_EQUAL(0, ta__writer_seal(&writer));
        TEST_ASSERT_EQUAL(0, ta_recording_check(to, NULL, NULL));
        struct ta_recording *recording = ta_recording_open(to);
        TEST_ASSERT_EQUAL(kept + 1, ta_recording_entry_count(recording));
        struct ta_entry_info info;
        TEST_ASSERT_EQUAL(0, ta_recording_entry(recording, 0, &info));
        TEST_ASSERT_EQUAL_UINT64(1000, info.time_ns);
        TEST_ASSERT_EQUAL(0, ta_recording_entry(recording, kept, &info));
        TEST_ASSERT_EQUAL_UINT64(5000, info.time_ns);
        ta_recording_close(recording);
        close_series();
    }
}

static void assert_no_copy(int error)
{
    size_t mapped = ta__memory_mapped();
    errno = 0;
    TEST_ASSERT_EQUAL(-1, ta__thinned_copy(&thinned, &writer, &target, writer.chunks.sink.written / 2));
    TEST_ASSERT_EQUAL(error, errno);
    TEST_ASSERT_EQUAL(mapped, ta__memory_mapped());
}

static void test_what_cannot_be_read_is_not_copied(void)
{
    open_series();
    manner = "F";
    assert_no_copy(EACCES);
    manner = "0";
    assert_no_copy(EIO);
    manner = "99F";
    assert_no_copy(EACCES);
    manner = "99990";
    assert_no_copy(EIO);
    manner = "E0"; /* what the call before said is no reason to go on */
    assert_no_copy(EIO);
    TEST_ASSERT_EQUAL(0, length_of(target.descriptor)); /* nothing is written before all of it is read */
    close(target.descriptor);
    close_series();
}

/* Each byte that the copy looks at. */
static void test_what_is_no_entry_is_not_copied(void)
{
    uint8_t byte;
    open_series();
    const struct ta__index_row *rows = TA__ROWS(const struct ta__index_row, writer.chunks.index);
    uint64_t length = rows[ENTRIES - 1].offset; /* the last entry stays in any case */
    static const unsigned places[] = {0, 3, 12, 13, 15};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        off_t at = (off_t)(length + places[i]);
        TEST_ASSERT_EQUAL(1, pread(writer.chunks.sink.descriptor, &byte, 1, at));
        byte ^= 0x41;
        TEST_ASSERT_EQUAL(1, pwrite(writer.chunks.sink.descriptor, &byte, 1, at));
        assert_no_copy(EIO);
        byte ^= 0x41;
        TEST_ASSERT_EQUAL(1, pwrite(writer.chunks.sink.descriptor, &byte, 1, at));
    }
    uint8_t header[TA__CHUNK_HEADER_LENGTH];
    off_t end = (off_t)length;
    for (off_t next = end; (uint64_t)next < writer.chunks.sink.written;
         next += (off_t)(sizeof header + ta__u32_at(header + 12))) {
        TEST_ASSERT_EQUAL(sizeof header, pread(writer.chunks.sink.descriptor, header, sizeof header, next));
        end = next;
    }
    for (int more = -1; more <= 1; more += 2) { /* the last section is too long, or something is behind it */
        uint8_t stored = (uint8_t)(header[12] + more);
        TEST_ASSERT_EQUAL(1, pwrite(writer.chunks.sink.descriptor, &stored, 1, end + 12));
        assert_no_copy(EIO);
    }
    TEST_ASSERT_EQUAL(1, pwrite(writer.chunks.sink.descriptor, header + 12, 1, end + 12));
    uint64_t written = writer.chunks.sink.written;
    writer.chunks.sink.written = written - 1; /* the last entry ends too early */
    assert_no_copy(EIO);
    writer.chunks.sink.written = (uint64_t)end; /* or without its end */
    assert_no_copy(EIO);
    writer.chunks.sink.written = written;
    TEST_ASSERT_EQUAL(0, ta__thinned_copy(&thinned, &writer, &target, 1));
    ta__thinned_drop(&thinned);
    close(target.descriptor);
    close_series();
}

static void test_without_room_or_memory_there_is_no_copy(void)
{
    open_series();
    struct ta__sink full;
    int device = open("/dev/full", O_WRONLY);
    TEST_ASSERT_GREATER_THAN(-1, device);
    ta__sink_descriptor(&full, device);
    int file = target.descriptor;
    target = full;
    assert_no_copy(ENOSPC);
    close(device);
    unsigned refused = 0;
    for (long nth = 1;; nth++) {
        ta__sink_descriptor(&target, file);
        TEST_ASSERT_EQUAL(0, ftruncate(file, 0));
        TEST_ASSERT_EQUAL(0, lseek(file, 0, SEEK_SET));
        size_t mapped = ta__memory_mapped();
        ta__memory_inject_failure(nth, 0);
        int result = ta__thinned_copy(&thinned, &writer, &target, writer.chunks.sink.written / 2), error = errno;
        ta__memory_inject_failure(0, 0);
        if (result == 0)
            break;
        TEST_ASSERT_EQUAL(ENOMEM, error);
        TEST_ASSERT_EQUAL(mapped, ta__memory_mapped());
        refused++;
    }
    TEST_ASSERT_GREATER_THAN(3, refused); /* the choice, an entry, the file's bytes, the index */
    ta__thinned_drop(&thinned);
    close(file);
    close_series();
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_young_stay_whole_within_three_quarters);
    RUN_TEST(test_the_old_are_so_many_times_as_old_as_the_next);
    RUN_TEST(test_ratios_are_exact);
    RUN_TEST(test_marks_stay_whatever_their_age_while_there_is_room);
    RUN_TEST(test_everything_is_repeated_after_an_eighth_of_the_limit);
    RUN_TEST(test_marks_repeat_everything_and_what_was_due_stays_due);
    RUN_TEST(test_it_is_due_beyond_the_limit_or_beyond_60000_entries);
    RUN_TEST(test_a_copy_is_a_recording_that_goes_on);
    RUN_TEST(test_what_cannot_be_read_is_not_copied);
    RUN_TEST(test_what_is_no_entry_is_not_copied);
    RUN_TEST(test_without_room_or_memory_there_is_no_copy);
    return UNITY_END();
}
