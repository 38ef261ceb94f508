/* test_snapshot_take.c: the public calls of the writing side, on a source made of arrays. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/read.h"
#include "snapshot/take.h"
#include "tests/support/fake_live.h"
#include "tests/support/fake_source.h"

static struct fake_source fake;
static char folder[] = "/tmp/ta_take.XXXXXX";
static char path[64];

void setUp(void)
{
    snprintf(path, sizeof path, "%s/take.ta", folder);
    fake_open(&fake);
    fake_program(&fake, 3000, 200);
    fake_live = &fake.source;
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    fake_live = NULL;
    fake_close(&fake);
    unlink(path);
}

static void assert_only_file_in_folder(const char *name)
{
    char command[128];
    snprintf(command, sizeof command, "test \"$(ls -A %s)\" = '%s'", folder, name);
    TEST_ASSERT_EQUAL_MESSAGE(0, system(command), command);
}

static void test_take_while_not_tracing_fails_with_the_text(void)
{
    fake_live = NULL;
    TEST_ASSERT_NULL(ta_take_snapshot());
    TEST_ASSERT_EQUAL_STRING("tracealloc must be tracing memory allocations to take a snapshot", ta_error_text());
}

static void test_take_is_independent_of_what_happens_later(void)
{
    struct ta_snapshot *snapshot = ta_take_snapshot();
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    uint32_t live = 0;
    for (uint32_t i = 1; i < fake.source.leaf_count; i++)
        live += fake.counts[i].allocated_blocks > fake.counts[i].freed_blocks;
    uint64_t current = fake.source.current_bytes;
    fake_activity(&fake, 1);
    fake_program(&fake, 5000, 200);
    fake_live = NULL;
    TEST_ASSERT_EQUAL(live, ta_snapshot_trace_count(snapshot));
    struct ta_snapshot_info info;
    TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
    TEST_ASSERT_EQUAL_UINT64(current, info.current_bytes);
    TEST_ASSERT_EQUAL(getpid(), info.pid);
    TEST_ASSERT_NOT_NULL(strstr(info.program, "test_snapshot_take"));
    TEST_ASSERT_EQUAL_STRING("call", info.reason);
    TEST_ASSERT_GREATER_THAN_UINT64(1700000000000000000u, info.time_ns);
    TEST_ASSERT_EQUAL(64, ta_snapshot_traceback_limit(snapshot));
    ta_snapshot_free(snapshot);
}

static void test_take_metadata_are_dumped_and_the_snapshot_stays_usable(void)
{
    struct ta_snapshot *snapshot = ta_take_snapshot();
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "phase", "start-up"));
    for (int round = 0; round < 2; round++) {
        TEST_ASSERT_EQUAL_MESSAGE(0, ta_snapshot_dump(snapshot, path), ta_error_text());
        TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
        struct ta_snapshot *loaded = ta_snapshot_load(path);
        TEST_ASSERT_NOT_NULL_MESSAGE(loaded, ta_error_text());
        TEST_ASSERT_EQUAL_STRING("start-up", ta_snapshot_metadata(loaded, "phase"));
        TEST_ASSERT_EQUAL(ta_snapshot_trace_count(snapshot), ta_snapshot_trace_count(loaded));
        ta_snapshot_free(loaded);
    }
    assert_only_file_in_folder("take.ta");
    ta_snapshot_free(snapshot);
}

static void test_take_without_memory_fails_and_is_counted(void)
{
    uint64_t before = ta__snapshot_error_count();
    int failures = 0;
    for (long nth = 1;; nth++) {
        ta__memory_inject_failure(nth, 1);
        struct ta_snapshot *snapshot = ta_take_snapshot();
        ta__memory_inject_failure(0, 0);
        ta_snapshot_free(snapshot);
        if (snapshot != NULL)
            break;
        TEST_ASSERT_NOT_EQUAL('\0', ta_error_text()[0]);
        failures++;
    }
    TEST_ASSERT_GREATER_THAN(5, failures);
    TEST_ASSERT_EQUAL_UINT64((uint64_t)failures, ta__snapshot_error_count() - before);
}

static void test_take_gives_all_its_memory_back(void)
{
    ta_snapshot_free(ta_take_snapshot());
    size_t before = ta__memory_mapped();
    struct ta_snapshot *snapshot = ta_take_snapshot();
    TEST_ASSERT_NOT_NULL(ta__snapshot_view(snapshot));
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, path));
    ta_snapshot_free(snapshot);
    TEST_ASSERT_EQUAL(0, ta__snapshot_to_file(path, "test"));
    struct ta_record *record = ta_record_open(path, 0);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    ta_snapshot_free(ta_snapshot_load(path));
    TEST_ASSERT_EQUAL(before, ta__memory_mapped());
}

static void *read_traces(void *snapshot)
{
    long count = ta_snapshot_trace_count(snapshot);
    return (void *)count;
}

static void test_take_decoded_by_many_threads_at_once_is_decoded_once(void)
{
    enum { THREADS = 8 };
    size_t before = ta__memory_mapped();
    struct ta_snapshot *snapshot = ta_take_snapshot();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, read_traces, snapshot));
    for (int i = 0; i < THREADS; i++) {
        void *count;
        pthread_join(threads[i], &count);
        TEST_ASSERT_EQUAL(ta_snapshot_trace_count(snapshot), (long)count);
    }
    ta_snapshot_free(snapshot);
    TEST_ASSERT_EQUAL(before, ta__memory_mapped());
}

/* ---- series
 * ----------------------------------------------------------------------------------------------------------- */

static void test_record_is_readable_after_each_append(void)
{
    struct ta_record *record = ta_record_open(path, TA_RECORD_SYNC);
    TEST_ASSERT_NOT_NULL_MESSAGE(record, ta_error_text());
    TEST_ASSERT_NULL(ta_snapshot_load(path));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "the recording holds no whole entry"));
    for (int i = 0; i < 5; i++) {
        fake_activity(&fake, 4);
        TEST_ASSERT_EQUAL_MESSAGE(0, ta_record_append(record, i == 2 ? "lunch" : NULL), ta_error_text());
        struct ta_snapshot *snapshot = ta_snapshot_load(path);
        TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
        struct ta_snapshot_info info;
        ta_snapshot_info(snapshot, &info, sizeof info);
        TEST_ASSERT_EQUAL_UINT64(fake.source.current_bytes, info.current_bytes);
        TEST_ASSERT_EQUAL_STRING(i == 2 ? "lunch" : "call", info.reason);
        ta_snapshot_free(snapshot);
    }
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    struct ta_recording *recording = ta_recording_open(path);
    TEST_ASSERT_EQUAL(5, ta_recording_entry_count(recording));
    struct ta_entry_info info;
    TEST_ASSERT_EQUAL(0, ta_recording_entry(recording, 4, &info));
    TEST_ASSERT_EQUAL_UINT64(fake.source.current_bytes, info.current_bytes);
    TEST_ASSERT_EQUAL(-1, ta_recording_entry(recording, 5, &info));
    ta_recording_close(recording);
    assert_only_file_in_folder("take.ta");
}

static void test_record_of_a_parent_is_refused_in_the_child(void)
{
    struct ta_record *record = ta_record_open(path, 0);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    pid_t child = fork();
    if (child == 0)
        _exit(ta_record_append(record, NULL) == -1 && strstr(ta_error_text(), "belongs to another process") != NULL &&
                      ta_record_close(record) == -1
                  ? 7
                  : 1);
    int status;
    waitpid(child, &status, 0);
    TEST_ASSERT_EQUAL(7, WEXITSTATUS(status));
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
}

static void test_record_never_writes_into_a_descriptor_that_the_program_took_over(void)
{
    char other[80];
    snprintf(other, sizeof other, "%s/other", folder);
    struct ta_record *record = ta_record_open(path, 0);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    for (int descriptor = 3; descriptor < 64; descriptor++) /* as daemons do */
        close(descriptor);
    int theirs[8];
    for (int i = 0; i < 8; i++)
        theirs[i] = open(other, O_RDWR | O_CREAT, 0600);
    fake_activity(&fake, 4);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_record_append(record, NULL), ta_error_text());
    struct stat status;
    TEST_ASSERT_EQUAL(0, stat(other, &status));
    TEST_ASSERT_EQUAL(0, status.st_size);
    for (int i = 0; i < 8; i++)
        close(theirs[i]);
    unlink(other);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    struct ta_recording *recording = ta_recording_open(path);
    TEST_ASSERT_EQUAL(2, ta_recording_entry_count(recording));
    ta_recording_close(recording);
}

static void test_record_whose_file_vanished_says_so_and_the_program_goes_on(void)
{
    uint64_t before = ta__snapshot_error_count();
    struct ta_record *record = ta_record_open(path, 0);
    for (int descriptor = 3; descriptor < 64; descriptor++)
        close(descriptor);
    unlink(path);
    TEST_ASSERT_EQUAL(-1, ta_record_append(record, NULL));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "the file is gone"));
    TEST_ASSERT_EQUAL(-1, ta_record_close(record));
    TEST_ASSERT_EQUAL_UINT64(2, ta__snapshot_error_count() - before);
}

static void test_record_with_unknown_flags_or_folder_is_refused(void)
{
    TEST_ASSERT_NULL(ta_record_open(path, 64));
    TEST_ASSERT_NULL(ta_record_open("/nowhere/x.ta", 0));
    TEST_ASSERT_EQUAL_STRING("cannot create a file beside /nowhere/x.ta: No such file or directory", ta_error_text());
    TEST_ASSERT_EQUAL(0, ta_record_close(NULL));
    TEST_ASSERT_EQUAL(-1, ta_record_append(NULL, NULL));
}

static void test_to_file_that_fails_leaves_the_old_file_and_no_other(void)
{
    TEST_ASSERT_EQUAL(0, ta__snapshot_to_file(path, "first"));
    ta__memory_inject_failure(3, 1);
    TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file(path, "second"));
    ta__memory_inject_failure(0, 0);
    assert_only_file_in_folder("take.ta");
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    struct ta_snapshot_info info;
    ta_snapshot_info(snapshot, &info, sizeof info);
    TEST_ASSERT_EQUAL_STRING("first", info.reason);
    ta_snapshot_free(snapshot);
}

static void test_with_every_descriptor_closed_nothing_breaks(void)
{
    pid_t child = fork();
    if (child == 0) {
        for (int descriptor = 0; descriptor < 64; descriptor++)
            close(descriptor);
        int good = ta__snapshot_to_file(path, "closed") == 0 && ta__snapshot_to_file("/nowhere/x", "closed") == -1;
        _exit(good ? 7 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    TEST_ASSERT_TRUE(WIFEXITED(status));
    TEST_ASSERT_EQUAL(7, WEXITSTATUS(status));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_take_while_not_tracing_fails_with_the_text);
    RUN_TEST(test_take_is_independent_of_what_happens_later);
    RUN_TEST(test_take_metadata_are_dumped_and_the_snapshot_stays_usable);
    RUN_TEST(test_take_without_memory_fails_and_is_counted);
    RUN_TEST(test_take_gives_all_its_memory_back);
    RUN_TEST(test_take_decoded_by_many_threads_at_once_is_decoded_once);
    RUN_TEST(test_record_is_readable_after_each_append);
    RUN_TEST(test_record_of_a_parent_is_refused_in_the_child);
    RUN_TEST(test_record_never_writes_into_a_descriptor_that_the_program_took_over);
    RUN_TEST(test_record_whose_file_vanished_says_so_and_the_program_goes_on);
    RUN_TEST(test_record_with_unknown_flags_or_folder_is_refused);
    RUN_TEST(test_to_file_that_fails_leaves_the_old_file_and_no_other);
    RUN_TEST(test_with_every_descriptor_closed_nothing_breaks);
    int failures = UNITY_END();
    rmdir(folder);
    return failures;
}
