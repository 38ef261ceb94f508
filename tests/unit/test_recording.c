/* test_recording.c: recordings looked into without being loaded: their entries, reasons and marks; and what the check says of
 * sound, unfinished and wrong ones. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "snapshot/read/follow.h"
#include "snapshot/read/read.h"
#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"

static char path[] = "/tmp/ta_recording.XXXXXX";
static struct fake_source fake;
static struct ta__writer writer;
static size_t mapped_before;
static int next_before;

/* The number that the next descriptor gets. */
static int next_descriptor(void)
{
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    return next;
}

void setUp(void)
{
    struct ta__sink sink;
    fake_open(&fake);
    fake_program(&fake, 60, 20);
    ta__sink_memory(&sink);
    TEST_ASSERT_EQUAL(0, ta__writer_open(&writer, &sink));
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta_snapshot_set_load_limit((size_t)1 << 30);
    ta__buffer_free(&writer.chunks.sink.memory);
    ta__writer_close(&writer);
    fake_close(&fake);
}

static void write_entry(const char *reason)
{
    static uint64_t time_ns = 1000;
    struct ta__facts facts = fake_facts(time_ns += 1000);
    facts.reason = reason;
    fake_activity(&fake, 4);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&writer, &fake.source, &facts), ta__error_text());
}

static void seal(void)
{
    TEST_ASSERT_EQUAL(0, ta__chunks_seal(&writer.chunks));
}

static uint8_t *bytes(void)
{
    return writer.chunks.sink.memory.bytes;
}

static size_t length(void)
{
    return writer.chunks.sink.memory.length;
}

static void save(size_t first_bytes)
{
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL(first_bytes, fwrite(bytes(), 1, first_bytes, file));
    TEST_ASSERT_EQUAL(0, fclose(file));
    mapped_before = ta__memory_mapped();
    next_before = next_descriptor();
}

static void assert_nothing_is_left(void)
{
    TEST_ASSERT_EQUAL(mapped_before, ta__memory_mapped());
    TEST_ASSERT_EQUAL(next_before, next_descriptor());
}

static struct ta_recording *open_it(void)
{
    struct ta_recording *recording = ta_recording_open(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(recording, ta_error_text());
    return recording;
}

/* ---- entries, reasons, marks ------------------------------------------------------------------------------------- */

static void test_entries_say_when_and_how_much(void)
{
    write_entry("one");
    uint64_t first_end = length();
    write_entry("two");
    const struct ta__index_row *rows = TA__ROWS(const struct ta__index_row, writer.chunks.index);
    save(length());
    struct ta_recording *recording = open_it();
    TEST_ASSERT_EQUAL_STRING("", ta_recording_warning(recording));
    TEST_ASSERT_EQUAL(2, ta_recording_entry_count(recording));
    for (size_t i = 0; i < 2; i++) {
        struct ta_entry_info info;
        TEST_ASSERT_EQUAL(0, ta_recording_entry(recording, i, &info));
        TEST_ASSERT_EQUAL_UINT64(rows[i].time_ns, info.time_ns);
        TEST_ASSERT_EQUAL_UINT64(rows[i].current_bytes, info.current_bytes);
        TEST_ASSERT_EQUAL_UINT64(rows[i].peak_bytes, info.peak_bytes);
        TEST_ASSERT_EQUAL_UINT64(rows[i].traces, info.traces);
        TEST_ASSERT_EQUAL_UINT64(rows[i].offset, info.offset);
        TEST_ASSERT_EQUAL_UINT64((i == 0 ? first_end : length()) - rows[i].offset, info.length);
    }
    struct ta_entry_info info;
    TEST_ASSERT_EQUAL(-1, ta_recording_entry(recording, 2, &info));
    TEST_ASSERT_EQUAL_STRING("there is no entry of that index", ta_error_text());
    TEST_ASSERT_EQUAL_STRING("", ta_recording_reason(recording, 2));
    ta_recording_close(recording);
    ta_recording_close(NULL);
    assert_nothing_is_left();
}

/* What a load may decompress is counted anew by each question. */
static void test_entries_may_be_asked_for_ever(void)
{
    enum { TIMES = 20000 };
    write_entry("one");
    write_entry("two");
    save(length());
    ta_snapshot_set_load_limit(16 << 10);
    struct ta_recording *recording = open_it();
    for (int i = 0; i < TIMES; i++) {
        struct ta_entry_info info;
        if (ta_recording_entry(recording, 1, &info) != 0)
            TEST_FAIL_MESSAGE(ta_error_text());
    }
    ta_recording_close(recording);
    ta_snapshot_set_load_limit(64 << 10);
    recording = open_it();
    for (int i = 0; i < TIMES; i++)
        if (strcmp(ta_recording_reason(recording, 1), "two") != 0)
            TEST_FAIL_MESSAGE("the reason is gone");
    ta_recording_close(recording);
}

static void test_reasons_are_said_in_any_order(void)
{
    static const char *const reasons[] = {"one", "two", "three", "one", "five"};
    static const size_t asked[] = {0, 0, 1, 4, 4, 3, 2, 0, 1, 2, 3, 4, 0};
    for (int i = 0; i < 5; i++) {
        writer.reset = i == 2; /* strings before it are not its own */
        write_entry(reasons[i]);
    }
    save(length());
    struct ta_recording *recording = open_it();
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        TEST_ASSERT_EQUAL_STRING(reasons[asked[i]], ta_recording_reason(recording, asked[i]));
    ta_recording_close(recording);
    assert_nothing_is_left();
}

static void test_reasons_in_front_of_damage_are_said(void)
{
    write_entry("one");
    size_t second = length();
    write_entry("two");
    write_entry("three");
    memset(bytes() + second + TA__CHUNK_HEADER_LENGTH, 0x55, 8);
    save(length());
    struct ta_recording *recording = open_it();
    struct ta_entry_info info;
    TEST_ASSERT_EQUAL(-1, ta_recording_entry(recording, 1, &info));
    TEST_ASSERT_EQUAL_PTR(ta_error_text(), strstr(ta_error_text(), path));
    for (int i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_STRING("", ta_recording_reason(recording, 1));
        TEST_ASSERT_EQUAL_STRING("one", ta_recording_reason(recording, 0));
    }
    ta_recording_close(recording);
}

static void test_the_last_entry_with_a_mark_or_reason_is_found(void)
{
    static const char *const reasons[] = {"start", TA__MARK "lunch", "lunchx", TA__MARK "lunch", TA__MARK "tea",
                                          "tea",   "dark: tea",      "x"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        write_entry(reasons[i]);
    save(length());
    ta__error_clear();
    TEST_ASSERT_EQUAL(0, ta__recording_find(path, "start"));
    TEST_ASSERT_EQUAL_STRING("", ta_error_text());
    TEST_ASSERT_EQUAL(2, ta__recording_find(path, "lunchx"));
    TEST_ASSERT_EQUAL(3, ta__recording_find(path, "lunch"));
    TEST_ASSERT_EQUAL(3, ta__recording_find(path, TA__MARK "lunch"));
    TEST_ASSERT_EQUAL(5, ta__recording_find(path, "tea"));
    TEST_ASSERT_EQUAL(7, ta__recording_find(path, "x"));
    assert_nothing_is_left();
    static const char *const none[] = {"unch", "lunc", "", "mark: ", "mark: start"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char expected[256];
        snprintf(expected, sizeof expected,
                 "%s has no entry with the mark \"%s\": tracealloc list shows which there are", path, none[i]);
        TEST_ASSERT_EQUAL(-1, ta__recording_find(path, none[i]));
        TEST_ASSERT_EQUAL_STRING(expected, ta_error_text());
    }
    TEST_ASSERT_EQUAL(-1, ta__recording_find("/nowhere/x.ta", "start"));
    TEST_ASSERT_EQUAL_STRING("cannot read /nowhere/x.ta: No such file or directory", ta_error_text());
    assert_nothing_is_left();
}

/* ---- what cannot be opened --------------------------------------------------------------------------------------- */

static void test_lack_of_memory_leaves_nothing(void)
{
    write_entry("one");
    save(length());
    struct ta_recording *recording = NULL;
    for (long nth = 1; nth < 100 && recording == NULL; nth++) {
        ta__error_clear();
        ta__memory_inject_failure(nth, 0);
        recording = ta_recording_open(path);
        void *next = ta__memory_map(4096);
        ta__memory_inject_failure(0, 0);
        TEST_ASSERT_EQUAL_INT(next == NULL, recording != NULL); /* who met the failure says so */
        ta__memory_unmap(next, 4096);
        if (recording == NULL) {
            TEST_ASSERT_TRUE(ta_error_text()[0] != '\0');
            assert_nothing_is_left();
        }
    }
    TEST_ASSERT_NOT_NULL(recording);
    ta_recording_close(recording);
    assert_nothing_is_left();
}

static void test_a_torn_recording_warns_as_when_it_is_loaded(void)
{
    char expected[TA__MESSAGE_MAX + 1];
    write_entry("one");
    write_entry("two");
    save(length() - 7);
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    snprintf(expected, sizeof expected, "%s", ta_snapshot_warning(snapshot));
    ta_snapshot_free(snapshot);
    struct ta_recording *recording = open_it();
    TEST_ASSERT_EQUAL(1, ta_recording_entry_count(recording));
    TEST_ASSERT_NOT_NULL(strstr(expected, ta_recording_warning(recording)));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_recording_warning(recording), "at offset"), ta_recording_warning(recording));
    ta_recording_close(recording);
    assert_nothing_is_left();
}

/* ---- following it ------------------------------------------------------------------------------------------------ */

static char told[4000];
static const struct ta__fact_pair facts_of_memory[] = {{"memory.other", "7"}, {"memory.resident", "8192"}};

static void write_resident(const char *reason, uint32_t pairs)
{
    struct ta__facts facts = fake_facts(5000);
    facts.reason = reason;
    facts.pairs = facts_of_memory;
    facts.pair_count = pairs;
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&writer, &fake.source, &facts), ta__error_text());
}

static int tell_begin(void *user, size_t first)
{
    TEST_ASSERT_EQUAL_PTR(&writer, user);
    sprintf(told + strlen(told), "begin %zu;", first);
    return 0;
}

static int tell_entry(void *user, size_t index, const struct ta__followed_entry *entry,
                      const struct ta__leaf_state *changed, size_t count)
{
    TEST_ASSERT_EQUAL_PTR(&writer, user);
    sprintf(told + strlen(told), "%zu %s resident %lu changed", index, entry->reason, (unsigned long)entry->resident);
    for (size_t i = 0; i < count; i++)
        sprintf(told + strlen(told), " %u:%lu/%lu/%lu/%lu", changed[i].leaf, (unsigned long)changed[i].size,
                (unsigned long)changed[i].count, (unsigned long)changed[i].allocated_bytes,
                (unsigned long)changed[i].allocated_blocks);
    strcat(told, ";");
    return strcmp(entry->reason, "refuse") == 0 ? ta__error_set("refused", NULL) : 0;
}

static int tell_end(void *user, struct ta_snapshot *snapshot, const uint32_t *traces, size_t leaf_count)
{
    struct ta_snapshot_info info;
    TEST_ASSERT_EQUAL_PTR(&writer, user);
    TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
    sprintf(told + strlen(told), "end %s", info.reason);
    for (size_t i = 0; i < leaf_count; i++)
        sprintf(told + strlen(told), " %d", (int)traces[i]);
    strcat(told, "\n");
    ta_snapshot_free(snapshot);
    return 0;
}

static int follow(void)
{
    static const struct ta__follower follower = {tell_begin, tell_entry, tell_end};
    told[0] = '\0';
    ta__error_clear();
    int status = ta__recording_follow(path, &follower, &writer);
    TEST_ASSERT_EQUAL(status != 0, ta_error_text()[0] != '\0');
    assert_nothing_is_left();
    return status;
}

static int say_entry(void *user, size_t index, const struct ta__followed_entry *entry,
                     const struct ta__leaf_state *changed, size_t count)
{
    (void)user, (void)changed, (void)count;
    sprintf(told + strlen(told), "%zu %s;", index, entry->reason);
    return 0;
}

static int say_end(void *user, struct ta_snapshot *snapshot, const uint32_t *traces, size_t leaf_count)
{
    struct ta_snapshot_info info;
    (void)user, (void)traces, (void)leaf_count;
    int status = ta_snapshot_info(snapshot, &info, sizeof info);
    sprintf(told + strlen(told), "end %s\n", info.reason);
    ta_snapshot_free(snapshot);
    return status;
}

static int follow_quietly(void)
{
    static const struct ta__follower follower = {tell_begin, say_entry, say_end};
    return ta__recording_follow(path, &follower, &writer);
}

/* Four leaves, whose last is not traced; the second one's blocks go. */
static void begin_few(void)
{
    fake_close(&fake);
    fake_open(&fake);
    uint32_t context = fake_context(&fake, 0, 0x100, 0);
    for (int i = 0; i < 4; i++)
        fake_leaf(&fake, fake_context(&fake, context, 0x200 + (uint64_t)i, 0), 0, 0, 2);
    fake.leaves[fake.source.leaf_count - 1].flags |= TA__LEAF_UNTRACED;
}

static void test_what_is_followed_is_told_entry_by_entry(void)
{
    begin_few();
    uint32_t first = fake.source.leaf_count - 4;
    for (uint32_t i = 0; i < 4; i++)
        fake_malloc(&fake, first + i, i + 1, 10);
    write_resident("one", 2);
    fake_free(&fake, first + 1, 2, 10);
    write_resident("two", 0);
    fake_malloc(&fake, first + 2, 1, 7);
    write_resident("three", 1);
    save(length());
    TEST_ASSERT_EQUAL(0, follow());
    char expected[600];
    uint32_t a = 0;
    TEST_ASSERT_EQUAL(1, sscanf(strstr(told, "changed"), "changed %u:", &a));
    snprintf(expected, sizeof expected,
             "begin 0;0 one resident 8192 changed %u:10/1/10/1 %u:20/2/20/2 %u:30/3/30/3;"
             "1 two resident 0 changed %u:0/0/20/2;2 three resident 0 changed %u:37/4/37/4;end three",
             a, a + 1, a + 2, a + 1, a + 2);
    for (uint32_t i = 0; i < a; i++)
        strcat(expected, " -1");
    strcat(expected, " 0 2 1 -1\n");
    TEST_ASSERT_EQUAL_STRING(expected, told);
}

/* "begin …", reasons and ends only. */
static const char *course(void)
{
    static char text[400];
    size_t used = 0;
    int skips = 0;
    for (const char *at = told; *at != '\0'; at++) {
        skips =
            (skips || strncmp(at, " resident", 9) == 0 || strncmp(at, " 0 ", 3) == 0 || strncmp(at, " -1", 3) == 0) &&
            *at != ';' && *at != '\n';
        if (!skips)
            text[used++] = *at;
    }
    text[used] = '\0';
    return text;
}

static void test_segments_begin_where_everything_is_repeated(void)
{
    write_entry("a");
    write_entry("b");
    writer.reset = 1;
    write_entry("c");
    writer.reset = 1;
    size_t fourth = length();
    write_entry("d");
    size_t fifth = length();
    write_entry("e");
    save(length());
    TEST_ASSERT_EQUAL(0, follow());
    TEST_ASSERT_EQUAL_STRING("begin 0;0 a;1 b;end b\nbegin 2;2 c;end c\nbegin 3;3 d;4 e;end e\n", course());
    memset(bytes() + fifth + TA__CHUNK_HEADER_LENGTH, 0x55, 8); /* what is whole counts */
    save(length());
    TEST_ASSERT_EQUAL(0, follow());
    TEST_ASSERT_EQUAL_STRING("begin 0;0 a;1 b;end b\nbegin 2;2 c;end c\nbegin 3;3 d;begin 3;3 d;end d\n", course());
    memset(bytes() + fourth + TA__CHUNK_HEADER_LENGTH, 0x55, 8);
    save(length());
    TEST_ASSERT_EQUAL(0, follow());
    TEST_ASSERT_EQUAL_STRING("begin 0;0 a;1 b;end b\nbegin 2;2 c;end c\nbegin 3;", course());
    seal(); /* nothing may be missing of what was closed */
    save(length());
    TEST_ASSERT_EQUAL(-1, follow());
    TEST_ASSERT_EQUAL_PTR(ta_error_text(), strstr(ta_error_text(), path));
}

static void test_what_cannot_be_followed_says_why(void)
{
    save(length());
    TEST_ASSERT_EQUAL(-1, follow());
    TEST_ASSERT_EQUAL_STRING("the recording holds no whole entry", ta_error_text());
    size_t first = length();
    write_entry("a");
    write_entry("refuse");
    write_entry("c");
    save(length());
    TEST_ASSERT_EQUAL(-1, follow());
    TEST_ASSERT_EQUAL_STRING("begin 0;0 a;1 refuse;", course());
    TEST_ASSERT_EQUAL_STRING("refused", ta_error_text());
    memset(bytes() + first + TA__CHUNK_HEADER_LENGTH, 0x55, 8);
    save(length());
    TEST_ASSERT_EQUAL(-1, follow());
    TEST_ASSERT_EQUAL_PTR(ta_error_text(), strstr(ta_error_text(), path));
    bytes()[0] = 'x';
    save(length());
    TEST_ASSERT_EQUAL(-1, follow());
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "this is not a tracealloc recording"));
    unlink(path);
    TEST_ASSERT_EQUAL(-1, follow());
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "No such file"));
}

/* The n-th request for memory is refused, for every n: all is told, or why not. */
static void test_lack_of_memory_ends_what_is_followed(void)
{
    fake_program(&fake, 2000, 100);
    write_resident("a", 2);
    for (unsigned i = 0; i < 3; i++) {
        fake_activity(&fake, 2);
        write_resident("b", 0);
    }
    save(length());
    static char whole[sizeof told];
    unsigned refused = 0;
    for (long nth = 1;; nth++) {
        told[0] = '\0';
        ta__memory_inject_failure(nth, 0);
        int status = follow_quietly();
        ta__memory_inject_failure(0, 0);
        assert_nothing_is_left();
        if (status == 0)
            break;
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_error_text(), "no memory"), ta_error_text());
        refused++;
    }
    strcpy(whole, told);
    TEST_ASSERT_GREATER_THAN(10, refused);
    TEST_ASSERT_EQUAL_STRING("begin 0;0 a;1 b;2 b;3 b;end b\n", whole);
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

static char said[2000];

static void note(void *user, int severity, uint64_t offset, const char *section, const char *text)
{
    TEST_ASSERT_EQUAL_PTR(&writer, user);
    sprintf(said + strlen(said), "%d@%lu %s: %s\n", severity, (unsigned long)offset, section, text);
}

static long check(void)
{
    said[0] = '\0';
    long count = ta_recording_check(path, note, &writer);
    assert_nothing_is_left();
    TEST_ASSERT_EQUAL(count, ta_recording_check(path, NULL, NULL));
    return count;
}

static void assert_said(const char *format, size_t offset)
{
    char expected[500];
    snprintf(expected, sizeof expected, format, (unsigned long)offset);
    TEST_ASSERT_EQUAL_STRING(expected, said);
}

#define NOT_CLOSED "0@%lu : the recording was not closed: it has no index\n"
#define NO_ENTRY   "1@0 : the recording holds no whole entry\n"

static void test_check_of_what_is_sound_or_unfinished(void)
{
    save(length());
    TEST_ASSERT_EQUAL(1, check());
    assert_said(NOT_CLOSED NO_ENTRY, length());
    size_t begin = length();
    write_entry("one");
    size_t one = length();
    save(length());
    TEST_ASSERT_EQUAL(0, check());
    assert_said(NOT_CLOSED, length());
    save(one - 1);
    TEST_ASSERT_EQUAL(2, check());
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, "1@"), said);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, NO_ENTRY), said);
    save(begin + 40);
    TEST_ASSERT_EQUAL(2, check());
    write_entry("two");
    save(length() - 1);
    TEST_ASSERT_EQUAL(1, check());
    struct ta_recording *recording = open_it();
    *strchr(said, '\n') = '\0';
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_recording_warning(recording), strstr(said, ": ") + 2), said);
    TEST_ASSERT_TRUE_MESSAGE(strlen(strstr(said, ": ")) > 10, said);
    TEST_ASSERT_EQUAL_INT('1', said[0]);
    ta_recording_close(recording);
    seal();
    save(length());
    TEST_ASSERT_EQUAL(0, check());
    TEST_ASSERT_EQUAL_STRING("", said);
    said[0] = '\0';
    TEST_ASSERT_EQUAL(-1, ta_recording_check("/nowhere/x.ta", note, &writer));
    TEST_ASSERT_EQUAL_STRING("", said);
}

static void test_check_of_an_empty_one_that_was_closed(void)
{
    seal();
    save(length());
    TEST_ASSERT_EQUAL(1, check());
    TEST_ASSERT_EQUAL_STRING(NO_ENTRY, said);
}

static void test_check_stops_at_an_entry_that_is_wrong(void)
{
    write_entry("one");
    size_t second = length();
    write_entry("two");
    write_entry("three");
    seal();
    memset(bytes() + second + TA__CHUNK_HEADER_LENGTH, 0x55, 8);
    save(length());
    TEST_ASSERT_EQUAL(1, check());
    TEST_ASSERT_EQUAL_INT('2', said[0]);
}

static void test_check_of_sections_that_are_not_there(void)
{
    write_entry("one");
    size_t second = length();
    write_entry("two");
    bytes()[40] ^= 1; /* within the first entry */
    save(length() - 1);
    TEST_ASSERT_EQUAL_MESSAGE(2, check(), said);
    bytes()[40] ^= 1;
    seal();
    bytes()[second] ^= 1; /* nothing may be missing of what was closed */
    save(length());
    TEST_ASSERT_EQUAL_MESSAGE(1, check(), said);
    TEST_ASSERT_EQUAL_INT('2', said[0]);
}

/* Each place of a header that may be wrong is named; `number` is written there, in so many bytes. */
static void check_header_with(unsigned place, unsigned width, uint32_t number, int is_rechecked, const char *expected)
{
    uint8_t before[TA__FILE_HEADER_LENGTH];
    memcpy(before, bytes(), sizeof before);
    for (unsigned i = 0; i < width; i++)
        bytes()[place + i] = (uint8_t)(number >> 8 * i);
    if (is_rechecked)
        ta__put_u32(bytes() + 28, (uint32_t)ta__hash_bytes(bytes(), 28));
    save(length());
    (void)check();
    *strchr(said, '\n') = '\0';
    TEST_ASSERT_EQUAL_STRING(expected, said);
    memcpy(bytes(), before, sizeof before);
}

static void test_check_says_where_a_header_is_wrong(void)
{
    write_entry("one");
    seal();
    check_header_with(0, 1, 'x', 1, "2@0 : this is not a tracealloc recording");
    check_header_with(8, 2, 0, 1, "2@8 : format version 0 is not supported; this library reads version 1");
    check_header_with(8, 2, 2, 0, "2@8 : format version 2 is not supported; this library reads version 1");
    check_header_with(10, 2, 31, 1, "2@10 : the file header has a wrong length");
    check_header_with(10, 2, 33, 1, "2@10 : the file header has a wrong length");
    check_header_with(10, 2, 33, 0, "2@28 : the file header is damaged: wrong check");
    check_header_with(12, 4, 1, 1, "2@12 : the recording requires feature bit 0, which this library does not know");
    check_header_with(12, 4, 0x80000000u, 1,
                      "2@12 : the recording requires feature bit 31, which this library does not know");
    check_header_with(31, 1, 1u + bytes()[31], 0, "2@28 : the file header is damaged: wrong check");
}

static void check_section_with(unsigned place, uint32_t number, const char *expected)
{
    uint8_t *header = bytes() + TA__FILE_HEADER_LENGTH, before[TA__CHUNK_HEADER_LENGTH];
    memcpy(before, header, sizeof before);
    if (place < 8)
        ta__put_u16(header + place, (uint16_t)number);
    else
        ta__put_u32(header + place, number);
    ta__put_u32(header + 28, (uint32_t)ta__hash_bytes(header, 28));
    save(length());
    (void)check();
    *strchr(said, '\n') = '\0';
    TEST_ASSERT_EQUAL_STRING(expected, said);
    memcpy(header, before, sizeof before);
}

static void test_check_says_what_of_a_section_is_wrong(void)
{
    enum { MOST = 16 << 20, MOST_STORED = MOST + (64 << 10) };
    char expected[200];
    write_entry("one");
    seal();
    uint8_t *header = bytes() + TA__FILE_HEADER_LENGTH;
    uint64_t left = length() - TA__FILE_HEADER_LENGTH - TA__CHUNK_HEADER_LENGTH;
    check_section_with(6, 8 | ta__u16_at(header + 6),
                       "2@32 entry: the section has flags that this library does not know");
    check_section_with(16, MOST + 1,
                       "2@32 entry: the section states 16777217 bytes, more than the 16 MiB a section may have");
    check_section_with(12, MOST_STORED + 1,
                       "2@32 entry: the section states 16842753 bytes, more than the 16 MiB a section may have");
    snprintf(expected, sizeof expected, "2@32 entry: the file ends within the section: %u bytes expected, %lu there",
             MOST_STORED, (unsigned long)left);
    check_section_with(12, MOST_STORED, expected);
    snprintf(expected, sizeof expected, "2@32 entry: the file ends within the section: %lu bytes expected, %lu there",
             (unsigned long)left + 1, (unsigned long)left);
    check_section_with(12, (uint32_t)left + 1, expected);
    check_section_with(16, MOST, "2@32 entry: the section states another length than its chunk");
    check_section_with(6, 4 | ta__u16_at(header + 6), "2@32 entry: a plain section states two different lengths");
    check_section_with(8, 1, "2@32 entry: the section belongs to another entry");
    check_section_with(6, ta__u16_at(header + 6) & ~2u, "2@32 entry: the first entry relies on one before it");
    check_section_with(4, 2, "2@32 strings: the section stands outside any entry");
    check_section_with(4, TA__KIND_END, "2@32 end: the section stands outside any entry");
    check_section_with(4, 17, "2@32 unknown section: the section stands outside any entry");
}

/* Two entries, closed, with an index that says something else of the second one. */
static void check_index_with(void (*change)(struct ta__index_row *second), const char *expected)
{
    write_entry("one");
    write_entry("two");
    struct ta__index_row *rows = TA__ROWS(struct ta__index_row, writer.chunks.index);
    size_t place = length();
    change(&rows[1]);
    seal();
    save(length());
    TEST_ASSERT_EQUAL_MESSAGE(expected[0] != '\0', check(), said);
    assert_said(expected, place);
    tearDown();
    setUp();
}

static void change_offset(struct ta__index_row *row)
{
    row->offset++;
}

static void change_reset(struct ta__index_row *row)
{
    row->reset = !row->reset;
}

static void change_time(struct ta__index_row *row)
{
    row->time_ns--;
}

static void change_traces(struct ta__index_row *row)
{
    row->traces++;
}

static void change_current(struct ta__index_row *row)
{
    row->current_bytes++;
}

static void change_peak(struct ta__index_row *row)
{
    row->peak_bytes--;
}

static void change_count(struct ta__index_row *row)
{
    (void)row;
    writer.chunks.index.length -= sizeof *row;
}

static void forget_all(struct ta__index_row *row)
{
    (void)row;
    writer.chunks.index.length = 0;
}

static void change_nothing(struct ta__index_row *row)
{
    (void)row;
}

static void test_check_compares_the_index_with_the_entries(void)
{
    static const char places[] = "2@%lu index: the index names places where no entry begins\n";
    static const char contradicts[] = "2@%lu index: the index contradicts an entry\n";
    check_index_with(change_nothing, "");
    check_index_with(forget_all, "");
    check_index_with(change_offset, places);
    check_index_with(change_reset, places);
    check_index_with(change_time, contradicts);
    check_index_with(change_traces, contradicts);
    check_index_with(change_current, contradicts);
    check_index_with(change_peak, contradicts);
    check_index_with(change_count, "2@%lu index: the index lists another number of entries\n");
}

/* The trailer says that the index is elsewhere. */
static void point_trailer_to(uint64_t place)
{
    uint8_t *header = bytes() + length() - TA__TRAILER_LENGTH, *payload = header + TA__CHUNK_HEADER_LENGTH;
    ta__put_u64(payload, place);
    ta__put_u32(header + 24, (uint32_t)ta__hash_bytes(payload, TA__TRAILER_PAYLOAD));
    ta__put_u32(header + 28, (uint32_t)ta__hash_bytes(header, 28));
    save(length());
}

static void test_check_follows_the_trailer_to_the_index(void)
{
    size_t first = length();
    write_entry("one");
    seal();
    point_trailer_to(first);
    TEST_ASSERT_EQUAL(1, check());
    assert_said("2@%lu entry: the trailer does not point to the index\n", first);
    point_trailer_to(first + 1);
    TEST_ASSERT_EQUAL(1, check());
    TEST_ASSERT_EQUAL_INT('2', said[0]);
}

static void test_check_reads_the_whole_index(void)
{
    write_entry("one");
    size_t place = length();
    seal();
    bytes()[place + TA__CHUNK_HEADER_LENGTH + 5] ^= 0x55;
    save(length());
    TEST_ASSERT_EQUAL(1, check());
    TEST_ASSERT_EQUAL_INT('2', said[0]);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, "index"), said);
}

int main(void)
{
    close(mkstemp(path));
    UNITY_BEGIN();
    RUN_TEST(test_entries_say_when_and_how_much);
    RUN_TEST(test_entries_may_be_asked_for_ever);
    RUN_TEST(test_reasons_are_said_in_any_order);
    RUN_TEST(test_reasons_in_front_of_damage_are_said);
    RUN_TEST(test_the_last_entry_with_a_mark_or_reason_is_found);
    RUN_TEST(test_lack_of_memory_leaves_nothing);
    RUN_TEST(test_a_torn_recording_warns_as_when_it_is_loaded);
    RUN_TEST(test_what_is_followed_is_told_entry_by_entry);
    RUN_TEST(test_segments_begin_where_everything_is_repeated);
    RUN_TEST(test_what_cannot_be_followed_says_why);
    RUN_TEST(test_lack_of_memory_ends_what_is_followed);
    RUN_TEST(test_check_of_what_is_sound_or_unfinished);
    RUN_TEST(test_check_of_an_empty_one_that_was_closed);
    RUN_TEST(test_check_stops_at_an_entry_that_is_wrong);
    RUN_TEST(test_check_of_sections_that_are_not_there);
    RUN_TEST(test_check_says_where_a_header_is_wrong);
    RUN_TEST(test_check_says_what_of_a_section_is_wrong);
    RUN_TEST(test_check_compares_the_index_with_the_entries);
    RUN_TEST(test_check_follows_the_trailer_to_the_index);
    RUN_TEST(test_check_reads_the_whole_index);
    unlink(path);
    return UNITY_END();
}
