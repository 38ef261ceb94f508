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
#include "snapshot/read/read.h"
#include "snapshot/write/take.h"
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
    uint64_t before = fake_live_failures;
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
    TEST_ASSERT_EQUAL_UINT64((uint64_t)failures, fake_live_failures - before);
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

/* What a process that ends has mapped goes with it: to give it back first is work for nothing. */
static void test_record_at_the_end_gives_no_memory_back(void)
{
    struct ta_record *record = ta_record_open(path, 0);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    size_t before = ta__memory_mapped();
    TEST_ASSERT_EQUAL(0, ta__record_end(record));
    TEST_ASSERT_EQUAL(before, ta__memory_mapped());
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    before = ta__memory_mapped();
    TEST_ASSERT_EQUAL(0, ta__snapshot_to_file_sparing(path, "exit", &(struct ta__sparing){.is_last = 1}, NULL));
    TEST_ASSERT_GREATER_THAN(before, ta__memory_mapped());
    before = ta__memory_mapped();
    TEST_ASSERT_EQUAL(0, ta__snapshot_to_file(path, "call"));
    TEST_ASSERT_EQUAL(before, ta__memory_mapped());
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
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
    static const size_t asked[] = {3, 2, 4, 0, 2, 5}; /* backwards, too */
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        TEST_ASSERT_EQUAL_STRING(asked[i] == 2   ? "lunch"
                                 : asked[i] == 5 ? ""
                                                 : "call",
                                 ta_recording_reason(recording, asked[i]));
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

/* The same in the middle of an entry, while the counters are read. */
static void (*fold_before)(const struct ta__source *source, uint32_t first, uint32_t n,
                           struct ta__source_counts *counts);
static int taken_over, theirs = -1;
static char their_file[80];

static void fold_and_take_over(const struct ta__source *source, uint32_t first, uint32_t n,
                               struct ta__source_counts *counts)
{
    struct stat status, ours;
    fold_before(source, first, n, counts);
    for (int descriptor = 3; !taken_over && stat(path, &ours) == 0 && descriptor < 64; descriptor++)
        if (fstat(descriptor, &status) == 0 && status.st_ino == ours.st_ino && status.st_dev == ours.st_dev) {
            int other = open(their_file, O_RDWR | O_CREAT | O_TRUNC, 0600);
            theirs = dup2(other, descriptor);
            close(other);
            taken_over = 1;
        }
}

static void test_record_never_writes_into_a_descriptor_that_is_taken_over_meanwhile(void)
{
    struct stat status;
    snprintf(their_file, sizeof their_file, "%s/other", folder);
    struct ta_record *record = ta_record_open(path, 0);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, NULL));
    fold_before = fake.source.fold;
    fake.source.fold = fold_and_take_over;
    fake_activity(&fake, 4);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_record_append(record, NULL), ta_error_text());
    fake.source.fold = fold_before;
    TEST_ASSERT_TRUE(taken_over);
    TEST_ASSERT_EQUAL(0, stat(their_file, &status));
    TEST_ASSERT_EQUAL(0, status.st_size);
    close(theirs);
    unlink(their_file);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    struct ta_recording *recording = ta_recording_open(path);
    TEST_ASSERT_EQUAL(2, ta_recording_entry_count(recording));
    ta_recording_close(recording);
}

/* What stands under the name cannot be replaced any more when all is written. */
static void fold_and_make_folder(const struct ta__source *source, uint32_t first, uint32_t n,
                                 struct ta__source_counts *counts)
{
    fold_before(source, first, n, counts);
    mkdir(path, 0700);
}

static void test_a_file_that_cannot_take_its_name_leaves_nothing_behind(void)
{
    fold_before = fake.source.fold;
    fake.source.fold = fold_and_make_folder;
    TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file(path, "test"));
    fake.source.fold = fold_before;
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_error_text(), "cannot replace"), ta_error_text());
    assert_only_file_in_folder("take.ta");
    TEST_ASSERT_EQUAL(0, rmdir(path));
}

static void test_record_whose_file_vanished_says_so_and_the_program_goes_on(void)
{
    uint64_t before = fake_live_failures;
    struct ta_record *record = ta_record_open(path, 0);
    for (int descriptor = 3; descriptor < 64; descriptor++)
        close(descriptor);
    unlink(path);
    TEST_ASSERT_EQUAL(-1, ta_record_append(record, NULL));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "the file is gone"));
    TEST_ASSERT_EQUAL(-1, ta_record_close(record));
    TEST_ASSERT_EQUAL_UINT64(2, fake_live_failures - before);
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

/* Whoever can create a name in /tmp must not be able to hold up another's program. */
static void test_pipe_that_nobody_reads_or_empties_fails_and_does_not_hang(void)
{
    TEST_ASSERT_EQUAL(0, mkfifo(path, 0600));
    TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file(path, "test"));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "No such device or address"));
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    TEST_ASSERT_EQUAL(0, ta__snapshot_to_file(path, "test")); /* into the pipe's own memory */
    int writer = open(path, O_WRONLY | O_NONBLOCK);
    char block[4096] = {0};
    while (write(writer, block, sizeof block) > 0) {
    }
    TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file(path, "test"));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "timed out"));
    close(writer);
    close(reader);
    TEST_ASSERT_EQUAL(0, unlink(path));
}

static void test_neither_planted_links_nor_sockets_are_written_through(void)
{
    char target[96];
    struct stat status;
    snprintf(target, sizeof target, "%s/target.ta", folder);
    TEST_ASSERT_EQUAL(0, mknod(path, S_IFSOCK | 0600, 0));
    TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file(path, "test"));
    TEST_ASSERT_EQUAL(0, unlink(path));
    TEST_ASSERT_EQUAL(0, ta__snapshot_to_file(target, "test"));
    TEST_ASSERT_EQUAL(0, stat(target, &status));
    TEST_ASSERT_EQUAL_HEX(0600, status.st_mode & 07777);
    TEST_ASSERT_EQUAL(0, symlink(target, path));
    TEST_ASSERT_EQUAL(0, ta__snapshot_to_file(path, "test")); /* our own link */
    if (geteuid() == 0) {
        TEST_ASSERT_EQUAL(0, lchown(path, 12345, 12345));
        TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file(path, "test"));
        TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "another user's link"));
        TEST_ASSERT_EQUAL(0, unlink(path));
        TEST_ASSERT_EQUAL(0, mkfifo(path, 0666));
        TEST_ASSERT_EQUAL(0, chown(path, 12345, 12345));
        TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file(path, "test"));
    }
    TEST_ASSERT_EQUAL(0, unlink(path));
    TEST_ASSERT_EQUAL(0, unlink(target));
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
    RUN_TEST(test_record_at_the_end_gives_no_memory_back);
    RUN_TEST(test_take_decoded_by_many_threads_at_once_is_decoded_once);
    RUN_TEST(test_record_is_readable_after_each_append);
    RUN_TEST(test_record_of_a_parent_is_refused_in_the_child);
    RUN_TEST(test_record_never_writes_into_a_descriptor_that_the_program_took_over);
    RUN_TEST(test_record_never_writes_into_a_descriptor_that_is_taken_over_meanwhile);
    RUN_TEST(test_a_file_that_cannot_take_its_name_leaves_nothing_behind);
    RUN_TEST(test_record_whose_file_vanished_says_so_and_the_program_goes_on);
    RUN_TEST(test_record_with_unknown_flags_or_folder_is_refused);
    RUN_TEST(test_to_file_that_fails_leaves_the_old_file_and_no_other);
    RUN_TEST(test_pipe_that_nobody_reads_or_empties_fails_and_does_not_hang);
    RUN_TEST(test_neither_planted_links_nor_sockets_are_written_through);
    RUN_TEST(test_with_every_descriptor_closed_nothing_breaks);
    int failures = UNITY_END();
    rmdir(folder);
    return failures;
}
