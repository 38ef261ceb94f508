/* test_snapshot_data.c: snapshots built from data, metadata, dump and load, entries of a recording. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/read/read.h"
#include "tracealloc/snapshot.h"

static char folder[] = "/tmp/ta_data.XXXXXX";
static char path[64];

void setUp(void)
{
    snprintf(path, sizeof path, "%s/one.ta", folder);
}

void tearDown(void)
{
    unlink(path);
}

/* Writes it, frees it, loads it again. */
static struct ta_snapshot *through_a_file(struct ta_snapshot *snapshot)
{
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_snapshot_dump(snapshot, path), ta__error_text());
    ta_snapshot_free(snapshot);
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    snapshot = ta_snapshot_load(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    TEST_ASSERT_EQUAL_STRING("", ta_snapshot_warning(snapshot));
    return snapshot;
}

static void assert_traces(struct ta_snapshot *snapshot, const struct ta_trace_data *traces, size_t count)
{
    TEST_ASSERT_EQUAL(count, ta_snapshot_trace_count(snapshot));
    for (size_t i = 0; i < count; i++) {
        struct ta_trace trace;
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(snapshot, i, &trace));
        TEST_ASSERT_EQUAL_UINT32(traces[i].domain, trace.domain);
        TEST_ASSERT_EQUAL_UINT64(traces[i].size, trace.size);
        TEST_ASSERT_EQUAL_UINT64(traces[i].count == 0 ? 1 : traces[i].count, trace.count);
        TEST_ASSERT_EQUAL_INT64(traces[i].total_nframe, trace.total_nframe);
        TEST_ASSERT_EQUAL(TA_TRACE_EACH, trace.flags);
        TEST_ASSERT_EQUAL(traces[i].nframe, trace.nframe);
        struct ta_raw_frame *frames = calloc(trace.nframe + 1, sizeof *frames);
        TEST_ASSERT_EQUAL(trace.nframe, ta_snapshot_trace_frames(snapshot, i, frames, trace.nframe));
        for (size_t f = 0; f < trace.nframe; f++) {
            const struct ta_frame_data *frame = &traces[i].frames[f];
            size_t length = frame->file_length == TA_NUL_TERMINATED ? strlen(frame->file) : frame->file_length;
            TEST_ASSERT_EQUAL(length, frames[f].file_length);
            if (length != 0)
                TEST_ASSERT_EQUAL_MEMORY(frame->file, frames[f].file, length);
            TEST_ASSERT_EQUAL(0, frames[f].file[length]);
            TEST_ASSERT_EQUAL_UINT32(frame->line, frames[f].line);
        }
        free(frames);
    }
}

static void test_data_every_field_comes_back_in_the_same_order(void)
{
    const struct ta_frame_data frames[] = {
        {"a.c", TA_NUL_TERMINATED, 1},
        {"\xff\xfe not utf-8 \x80", TA_NUL_TERMINATED, 0},
        {"nul\0inside", 10, UINT32_MAX},
        {"", TA_NUL_TERMINATED, 7},
        {"a.c", 3, 1},
    };
    const struct ta_trace_data traces[] = {
        {.domain = 0, .size = 10, .total_nframe = 5, .frames = frames, .nframe = 5},
        {.domain = UINT32_MAX,
         .size = UINT64_MAX,
         .count = UINT64_MAX,
         .total_nframe = -1,
         .frames = frames + 1,
         .nframe = 2},
        {.domain = 3, .size = 0, .count = 2, .total_nframe = 0},
        {.domain = 0, .size = 10, .total_nframe = 5, .frames = frames, .nframe = 5},
        {.domain = 0, .size = 5, .total_nframe = 2147483646, .frames = frames, .nframe = 1},
    };
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(traces, 5, 4096);
    TEST_ASSERT_NOT_NULL(snapshot);
    assert_traces(snapshot, traces, 5);
    snapshot = through_a_file(snapshot);
    assert_traces(snapshot, traces, 5);
    TEST_ASSERT_EQUAL(4096, ta_snapshot_traceback_limit(snapshot));
    ta_snapshot_free(snapshot);
}

static void test_data_no_traces_at_all_is_a_snapshot(void)
{
    struct ta_snapshot *snapshot = through_a_file(ta_snapshot_from_traces(NULL, 0, 1));
    struct ta_trace trace;
    TEST_ASSERT_EQUAL(0, ta_snapshot_trace_count(snapshot));
    TEST_ASSERT_EQUAL(1, ta_snapshot_traceback_limit(snapshot));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_trace(snapshot, 0, &trace));
    TEST_ASSERT_EQUAL_STRING("there is no trace of that index", ta_error_text());
    ta_snapshot_free(snapshot);
}

static void test_data_65535_frames_come_back(void)
{
    enum { DEPTH = 65535 };
    struct ta_frame_data *frames = malloc(DEPTH * sizeof *frames);
    for (uint32_t i = 0; i < DEPTH; i++)
        frames[i] = (struct ta_frame_data){i % 3 == 0 ? "deep.c" : "other.c", TA_NUL_TERMINATED, i / 2};
    const struct ta_trace_data trace = {.size = 1, .total_nframe = DEPTH, .frames = frames, .nframe = DEPTH};
    struct ta_snapshot *snapshot = through_a_file(ta_snapshot_from_traces(&trace, 1, DEPTH));
    assert_traces(snapshot, &trace, 1);
    ta_snapshot_free(snapshot);
    free(frames);
}

static void test_data_many_random_traces_come_back(void)
{
    enum { COUNT = 5000, DEPTH = 12 };
    static struct ta_frame_data frames[COUNT][DEPTH];
    static struct ta_trace_data traces[COUNT];
    static char names[200][16];
    uint32_t random = 1;
    for (int i = 0; i < 200; i++)
        snprintf(names[i], sizeof names[i], "dir/f%d.c", i * i);
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525 + 1013904223;
        size_t depth = (random >> 16) % (DEPTH + 1);
        for (size_t f = 0; f < depth; f++) {
            random = random * 1664525 + 1013904223;
            frames[i][f] = (struct ta_frame_data){names[(random >> 16) % 200], TA_NUL_TERMINATED, random >> 20};
        }
        traces[i] = (struct ta_trace_data){
            .domain = random % 3, .size = random, .total_nframe = (int64_t)depth, .frames = frames[i], .nframe = depth};
    }
    struct ta_snapshot *snapshot = through_a_file(ta_snapshot_from_traces(traces, COUNT, 7));
    assert_traces(snapshot, traces, COUNT);
    ta_snapshot_free(snapshot);
}

static void test_data_impossible_depth_is_refused(void)
{
    const struct ta_trace_data low = {.total_nframe = -2};
    const struct ta_trace_data high = {.total_nframe = 2147483647};
    TEST_ASSERT_NULL(ta_snapshot_from_traces(&low, 1, 1));
    TEST_ASSERT_EQUAL_STRING("trace 0: total_nframe is out of range", ta_error_text());
    TEST_ASSERT_NULL(ta_snapshot_from_traces(&high, 1, 1));
}

static void test_metadata_is_kept_replaced_and_removed(void)
{
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(NULL, 0, 1);
    TEST_ASSERT_NULL(ta_snapshot_metadata(snapshot, "commit"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "commit", "abc"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "gone", "x"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "empty", ""));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "commit", "defg"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "gone", NULL));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "never there", NULL));
    snapshot = through_a_file(snapshot);
    TEST_ASSERT_EQUAL(2, ta_snapshot_metadata_count(snapshot));
    TEST_ASSERT_EQUAL_STRING("defg", ta_snapshot_metadata(snapshot, "commit"));
    TEST_ASSERT_EQUAL_STRING("", ta_snapshot_metadata(snapshot, "empty"));
    TEST_ASSERT_NULL(ta_snapshot_metadata(snapshot, "gone"));
    const char *key, *value;
    size_t key_length, value_length;
    TEST_ASSERT_EQUAL(0, ta_snapshot_metadata_at(snapshot, 0, &key, &key_length, &value, &value_length));
    TEST_ASSERT_EQUAL_STRING("commit", key);
    TEST_ASSERT_EQUAL(6, key_length);
    TEST_ASSERT_EQUAL(4, value_length);
    TEST_ASSERT_EQUAL(-1, ta_snapshot_metadata_at(snapshot, 2, NULL, NULL, NULL, NULL));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "more", "1"));
    snapshot = through_a_file(snapshot);
    TEST_ASSERT_EQUAL(3, ta_snapshot_metadata_count(snapshot));
    ta_snapshot_free(snapshot);
}

static void test_view_with_symbols_comes_back(void)
{
    static const struct ta__view_string strings[] = {{"", 0}, {"/bin/x", 6}, {"x.c", 3}, {"f", 1}, {"g", 1}};
    static const struct ta__view_module module = {.path = 1, .start = 0x1000, .end = 0x2000};
    static const struct ta__view_frame frames[] = {{.address = 0x1010, .module = 1}, {.address = 0x1500, .module = 1}};
    static const struct ta__view_context contexts[] = {{0, 0}, {0, 1}, {1, 0}};
    static const struct ta__view_symbol symbols[] = {
        {2, 10, 3, 3, 4, TA__SYMBOL_INLINED}, {2, 20, 4, 4, 0x10, 0}, {1, 0, 0, 0, 0, TA__SYMBOL_NO_LINES}};
    static const struct ta__view_symbol_range ranges[] = {{0, 2}, {2, 1}};
    static const struct ta__view_trace traces[] = {
        {.context = 2, .size = 5, .count = 1, .total_nframe = 2},
        {.context = 1, .allocated_blocks = 3, .allocated_bytes = 9, .total_nframe = 1}};
    const struct ta__view view = {
        .strings = strings,
        .string_count = 5,
        .modules = &module,
        .module_count = 1,
        .frames = frames,
        .frame_count = 2,
        .contexts = contexts,
        .context_count = 3,
        .symbols = symbols,
        .symbol_count = 3,
        .symbol_ranges = ranges,
        .traces = traces,
        .trace_count = 1,
        .gone_trace_count = 1,
        .traceback_limit = 9,
    };
    struct ta_snapshot *snapshot = through_a_file(ta__snapshot_from_view(&view, NULL));
    const struct ta__view *got = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL(3, got->symbol_count);
    for (int i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL(symbols[i].file, got->symbols[i].file);
        TEST_ASSERT_EQUAL(symbols[i].line, got->symbols[i].line);
        TEST_ASSERT_EQUAL(symbols[i].function, got->symbols[i].function);
        TEST_ASSERT_EQUAL(symbols[i].raw_name, got->symbols[i].raw_name);
        TEST_ASSERT_EQUAL_UINT64(symbols[i].offset, got->symbols[i].offset);
        TEST_ASSERT_EQUAL(symbols[i].flags, got->symbols[i].flags);
    }
    TEST_ASSERT_EQUAL(2, got->symbol_ranges[1].first);
    TEST_ASSERT_EQUAL(1, got->symbol_ranges[1].count);
    TEST_ASSERT_EQUAL(1, got->trace_count);
    TEST_ASSERT_EQUAL(1, got->gone_trace_count);
    TEST_ASSERT_EQUAL_UINT64(9, got->traces[1].allocated_bytes);
    ta_snapshot_free(snapshot);
}

/* ---- names and files
 * ------------------------------------------------------------------------------------------------- */

static void test_dump_replaces_a_file_and_leaves_nothing_beside_it(void)
{
    ta_snapshot_free(through_a_file(ta_snapshot_from_traces(NULL, 0, 1)));
    ta_snapshot_free(through_a_file(ta_snapshot_from_traces(NULL, 0, 2)));
    char command[256];
    snprintf(command, sizeof command, "test \"$(ls -A %s)\" = one.ta", folder);
    TEST_ASSERT_EQUAL(0, system(command));
}

static void test_dump_through_a_link_replaces_what_it_points_to(void)
{
    char link[80];
    snprintf(link, sizeof link, "%s/link.ta", folder);
    ta_snapshot_free(through_a_file(ta_snapshot_from_traces(NULL, 0, 1)));
    TEST_ASSERT_EQUAL(0, symlink("one.ta", link));
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(NULL, 0, 99);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_snapshot_dump(snapshot, link), ta_error_text());
    ta_snapshot_free(snapshot);
    struct stat status;
    TEST_ASSERT_EQUAL(0, lstat(link, &status));
    TEST_ASSERT_TRUE(S_ISLNK(status.st_mode));
    snapshot = ta_snapshot_load(path);
    TEST_ASSERT_EQUAL(99, ta_snapshot_traceback_limit(snapshot));
    ta_snapshot_free(snapshot);
    unlink(link);
}

static void test_dump_to_a_device_writes_into_it(void)
{
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(NULL, 0, 1);
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, "/dev/null"));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_dump(snapshot, "/dev/full"));
    TEST_ASSERT_EQUAL_STRING("cannot write /dev/full: No space left on device", ta_error_text());
    struct stat status;
    TEST_ASSERT_EQUAL(0, stat("/dev/full", &status));
    TEST_ASSERT_TRUE(S_ISCHR(status.st_mode));
    ta_snapshot_free(snapshot);
}

static void test_dump_into_a_folder_that_is_not_there_says_so(void)
{
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(NULL, 0, 1);
    TEST_ASSERT_EQUAL(-1, ta_snapshot_dump(snapshot, "/nowhere/x.ta"));
    TEST_ASSERT_EQUAL_STRING("cannot create a file beside /nowhere/x.ta: No such file or directory", ta_error_text());
    TEST_ASSERT_EQUAL(-1, ta_snapshot_dump(snapshot, "/proc/x.ta"));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_dump(snapshot, ""));
    ta_snapshot_free(snapshot);
}

static void test_load_of_what_cannot_be_read_says_why(void)
{
    char text[200];
    TEST_ASSERT_NULL(ta_snapshot_load("/nowhere/x.ta"));
    TEST_ASSERT_EQUAL_STRING("cannot read /nowhere/x.ta: No such file or directory", ta_error_text());
    TEST_ASSERT_NULL(ta_snapshot_load(folder));
    snprintf(text, sizeof text, "cannot read %s: Is a directory", folder);
    TEST_ASSERT_EQUAL_STRING(text, ta_error_text());
    TEST_ASSERT_NULL(ta_snapshot_load("/dev/null"));
    TEST_ASSERT_EQUAL_STRING("cannot read /dev/null: it is not a regular file", ta_error_text());
}

/* The number that the next descriptor gets. */
static int next_descriptor(void)
{
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    TEST_ASSERT_TRUE(next >= 0);
    close(next);
    return next;
}

static void test_load_leaves_no_descriptor_whatever_comes_of_it(void)
{
    char fifo[200], text[200], damaged[200];
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    snprintf(text, sizeof text, "%s/text", folder);
    snprintf(damaged, sizeof damaged, "%s/damaged", folder);
    TEST_ASSERT_EQUAL(0, mkfifo(fifo, 0600));
    FILE *file = fopen(text, "w");
    fputs("this is no recording, but long enough to be one: it is read until that is clear", file);
    fclose(file);
    char whole[200];
    snprintf(whole, sizeof whole, "%s/whole", folder);
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(NULL, 0, 1);
    TEST_ASSERT_NOT_NULL(snapshot);
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, whole));
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, damaged));
    ta_snapshot_free(snapshot);
    TEST_ASSERT_EQUAL(0, truncate(damaged, 20));
    const char *const paths[] = {"/nowhere/x.ta", folder, "/dev/null", fifo, text, damaged, whole};
    int next = next_descriptor();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snapshot = ta_snapshot_load(paths[i]);
        TEST_ASSERT_EQUAL_MESSAGE(paths[i] == whole, snapshot != NULL, paths[i]);
        ta_snapshot_free(snapshot);
        TEST_ASSERT_EQUAL_MESSAGE(next, next_descriptor(), paths[i]);
    }
    for (size_t i = 3; i < sizeof paths / sizeof *paths; i++)
        unlink(paths[i]);
}

static void test_null_is_refused(void)
{
    TEST_ASSERT_NULL(ta_snapshot_load(NULL));
    TEST_ASSERT_EQUAL_STRING("there is no path: NULL", ta_error_text());
    TEST_ASSERT_EQUAL(-1, ta_snapshot_trace_count(NULL));
    TEST_ASSERT_EQUAL_STRING("there is no snapshot: NULL", ta_error_text());
}

static void test_load_entry_suffix_counts_from_both_ends(void)
{
    char name[96];
    ta_snapshot_free(through_a_file(ta_snapshot_from_traces(NULL, 0, 1)));
    static const char *const good[] = {"@0", "@-1"};
    static const char *const bad[] = {"@1", "@-2"};
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", path, good[i]);
        struct ta_snapshot *snapshot = ta_snapshot_load(name);
        TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
        ta_snapshot_free(snapshot);
        snprintf(name, sizeof name, "%s%s", path, bad[i]);
        TEST_ASSERT_NULL(ta_snapshot_load(name));
        TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), i == 0 ? "there is no entry 1; the recording has 1"
                                                            : "there is no entry -2; the recording has 1"));
    }
    static const char *const no_number[] = {"x", "1x", "-", "99999999999999999999"}; /* texts of marks, then */
    for (int i = 0; i < 4; i++) {
        char expected[64];
        snprintf(name, sizeof name, "%s@%s", path, no_number[i]);
        snprintf(expected, sizeof expected, "one.ta has no entry with the mark \"%s\"", no_number[i]);
        TEST_ASSERT_NULL(ta_snapshot_load(name));
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_error_text(), expected), ta_error_text());
    }
    snprintf(name, sizeof name, "%s@", path);
    TEST_ASSERT_NULL(ta_snapshot_load(name));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_error_text(), "No such file"), ta_error_text());
}

static void test_load_file_whose_name_ends_like_an_entry_is_that_file(void)
{
    char name[96];
    snprintf(name, sizeof name, "%s@7", path);
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(NULL, 0, 31);
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, name));
    ta_snapshot_free(snapshot);
    snapshot = ta_snapshot_load(name);
    TEST_ASSERT_EQUAL(31, ta_snapshot_traceback_limit(snapshot));
    ta_snapshot_free(snapshot);
    unlink(name);
}

static void test_load_limit_refuses_more_memory(void)
{
    enum { COUNT = 20000 };
    static struct ta_trace_data traces[COUNT];
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(traces, COUNT, 1);
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, path));
    ta_snapshot_free(snapshot);
    ta_snapshot_set_load_limit(1 << 20);
    snapshot = ta_snapshot_load(path);
    ta_snapshot_set_load_limit((size_t)1 << 30);
    TEST_ASSERT_NULL(snapshot);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_error_text(), "loading needs more than the limit of 1024 KiB"),
                                 ta_error_text());
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_data_every_field_comes_back_in_the_same_order);
    RUN_TEST(test_data_no_traces_at_all_is_a_snapshot);
    RUN_TEST(test_data_65535_frames_come_back);
    RUN_TEST(test_data_many_random_traces_come_back);
    RUN_TEST(test_data_impossible_depth_is_refused);
    RUN_TEST(test_metadata_is_kept_replaced_and_removed);
    RUN_TEST(test_view_with_symbols_comes_back);
    RUN_TEST(test_dump_replaces_a_file_and_leaves_nothing_beside_it);
    RUN_TEST(test_dump_through_a_link_replaces_what_it_points_to);
    RUN_TEST(test_dump_to_a_device_writes_into_it);
    RUN_TEST(test_dump_into_a_folder_that_is_not_there_says_so);
    RUN_TEST(test_load_of_what_cannot_be_read_says_why);
    RUN_TEST(test_load_leaves_no_descriptor_whatever_comes_of_it);
    RUN_TEST(test_null_is_refused);
    RUN_TEST(test_load_entry_suffix_counts_from_both_ends);
    RUN_TEST(test_load_file_whose_name_ends_like_an_entry_is_that_file);
    RUN_TEST(test_load_limit_refuses_more_memory);
    int failures = UNITY_END();
    rmdir(folder);
    return failures;
}
