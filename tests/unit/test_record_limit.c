/* test_record_limit.c: a series within a size (snapshot/write/record.c), where the process may make files, where only the `run`
 * that started it may (snapshot/write/file_request.h), and where nobody may. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/format/format.h"
#include "snapshot/write/file_request.h"
#include "snapshot/write/take.h"
#include "tests/support/fake_live.h"
#include "tests/support/fake_source.h"
#include "tests/support/descriptors.h"

static char folder[] = "/tmp/ta_limit.XXXXXX";
static char path[64];
static struct fake_source fake;

/* ---- rights ---- */

static __thread int is_run;                  /* what follows is what the run does */
static int refused_errno, tries, sync_errno; /* the process itself may not make files; 0 = it may */

int open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
    va_end(rest);
    if (!is_run && (flags & O_CREAT) != 0 && strstr(name, ".tmp") != NULL) {
        tries++;
        if (refused_errno != 0)
            return errno = refused_errno, -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

int fdatasync(int descriptor)
{
    return sync_errno != 0 ? (errno = sync_errno, -1) : (int)syscall(SYS_fdatasync, descriptor);
}

/* ---- the run ---- */

static int listener = -1;
static pthread_t run_thread;
static char asked[16]; /* the kinds of requests, in their order */
static enum { DOES_IT, REFUSES, IS_SILENT, DOES_IT_SILENTLY } manner;

static void answer(int connection, int error, int file)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {&error, sizeof error};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        control.header =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &file, sizeof file);
    }
    sendmsg(connection, &message, MSG_NOSIGNAL);
}

/* "secretM" TEMPORARY \0 PATH \0 DEVICE " " INODE: what is asked must be the file that is there. */
static void replace(int connection, char *text)
{
    struct stat status;
    char *target = text + strlen(text) + 1, *end = target + strlen(target) + 1;
    unsigned long long device, inode;
    if (manner == IS_SILENT)
        return;
    int is_right = sscanf(end, "%llu %llu", &device, &inode) == 2 && stat(target, &status) == 0 &&
                   status.st_dev == device && status.st_ino == inode;
    int error = manner == REFUSES ? EPERM : !is_right ? ESTALE : rename(text, target) == 0 ? 0 : errno;
    if (manner != DOES_IT_SILENTLY)
        answer(connection, error, -1);
}

static void *run(void *unused)
{
    static char packet[9000];
    is_run = 1;
    for (int connection; (connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        ssize_t got = recv(connection, packet, sizeof packet - 1, 0);
        packet[got > 0 ? got : 0] = '\0';
        char kind = got > 6 && strncmp(packet, "secret", 6) == 0 ? packet[6] : '?';
        if (kind == 'q') {
            close(connection);
            return unused;
        }
        asked[strlen(asked)] = kind;
        if (kind == 'M') {
            replace(connection, packet + 7);
        } else if (kind == 'O' || kind == 'A' || kind == 'P') {
            int file = open(packet + 7, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
            answer(connection, file < 0 ? errno : 0, file);
            close(file);
        }
        close(connection);
    }
    return unused;
}

static void begin_run(void)
{
    static int number;
    char name[40], text[80];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(name, sizeof name, "ta-limit-%d-%d", (int)getpid(), number++);
    memcpy(address.sun_path + 1, name, strlen(name));
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 8) != 0)
        TEST_IGNORE_MESSAGE("there are no such sockets here");
    snprintf(text, sizeof text, "%s:secret", name);
    ta__opener_set(text);
    TEST_ASSERT_EQUAL(0, pthread_create(&run_thread, NULL, run, NULL));
}

static void end_run(void)
{
    ta__opener_tell('q', 1, "", "");
    pthread_join(run_thread, NULL);
    ta__opener_set(NULL);
    close(listener);
}

/* ---- around ---- */

static int open_before;
static size_t mapped_before;

void setUp(void)
{
    snprintf(path, sizeof path, "%s/x.ta", folder);
    fake_open(&fake);
    fake_program(&fake, 600, 50);
    fake_live = &fake.source;
    refused_errno = tries = sync_errno = 0;
    memset(asked, 0, sizeof asked);
    manner = DOES_IT;
    open_before = open_descriptors();
    mapped_before = ta__memory_mapped();
}

static int files_in_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "exit $(ls -A %s | wc -l)", folder);
    return WEXITSTATUS(system(command));
}

static void empty_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s && mkdir -m 700 %s", folder, folder);
    TEST_ASSERT_EQUAL(0, system(command));
}

void tearDown(void)
{
    fake_live = NULL;
    fake_close(&fake);
    empty_folder();
    TEST_ASSERT_EQUAL(open_before, open_descriptors());
    TEST_ASSERT_EQUAL(mapped_before, ta__memory_mapped());
}

static off_t length_of(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? status.st_size : -1;
}

enum { LIMIT = 40000 };

static struct ta_record *open_limited(void)
{
    struct ta_record *record = ta_record_open(path, 0);
    TEST_ASSERT_NOT_NULL_MESSAGE(record, ta_error_text());
    ta_record_set_limit(record, LIMIT);
    tries = 0;
    return record;
}

/* So many entries. All that was ever written grows by each; errno is kept. */
static void append(struct ta_record *record, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t before = ta__record_written(record);
        fake_activity(&fake, 3);
        errno = 77;
        TEST_ASSERT_EQUAL_MESSAGE(0, ta_record_append(record, "pace"), ta_error_text());
        TEST_ASSERT_EQUAL(77, errno);
        TEST_ASSERT_GREATER_THAN_UINT64(before, ta__record_written(record));
        TEST_ASSERT_LESS_OR_EQUAL_UINT64(before + 20000, ta__record_written(record));
    }
}

static size_t entries_of(const char *name)
{
    struct ta_recording *recording = ta_recording_open(name);
    TEST_ASSERT_NOT_NULL_MESSAGE(recording, ta_error_text());
    size_t count = ta_recording_entry_count(recording);
    ta_recording_close(recording);
    return count;
}

/* ---- tests ---- */

static void test_a_series_stays_within_its_limit(void)
{
    struct ta_record *record = open_limited();
    for (int i = 0; i < 100; i++) {
        append(record, 5);
        TEST_ASSERT_LESS_OR_EQUAL(LIMIT + 8000, length_of(path));
        TEST_ASSERT_EQUAL_UINT64(length_of(path), ta__record_length(record));
        TEST_ASSERT_EQUAL(0, ta__record_obstacle(record));
    }
    TEST_ASSERT_GREATER_THAN(3, tries);
    TEST_ASSERT_GREATER_THAN_UINT64(3 * LIMIT, ta__record_written(record));
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    TEST_ASSERT_LESS_THAN(400, entries_of(path));
    TEST_ASSERT_EQUAL(1, files_in_folder());
}

static void test_without_a_limit_everything_stays(void)
{
    struct ta_record *record = open_limited();
    ta_record_set_limit(record, 0);
    append(record, 200);
    TEST_ASSERT_EQUAL(0, tries);
    TEST_ASSERT_EQUAL_UINT64(length_of(path), ta__record_length(record));
    TEST_ASSERT_EQUAL_UINT64(length_of(path), ta__record_written(record));
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(200, entries_of(path));
    TEST_ASSERT_GREATER_THAN(LIMIT, length_of(path));
}

/* A mark repeats everything, so that it can stay alone. */
static void test_marks_stay_when_others_go(void)
{
    struct ta_record *record = open_limited();
    append(record, 3);
    TEST_ASSERT_EQUAL(0, ta_record_append(record, TA__MARK "noon"));
    TEST_ASSERT_EQUAL(0, ta_record_append(record, "mark"));
    append(record, 150);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    char name[80];
    snprintf(name, sizeof name, "%s@noon", path);
    struct ta_snapshot *snapshot = ta_snapshot_load(name);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    ta_snapshot_free(snapshot);
    snprintf(name, sizeof name, "%s@mark", path);
    TEST_ASSERT_NULL(ta_snapshot_load(name));
}

static void test_a_file_that_is_gone_grows_on(void)
{
    struct ta_record *record = open_limited();
    append(record, 2);
    unlink(path);
    append(record, 400);
    TEST_ASSERT_EQUAL(ENOENT, ta__record_obstacle(record));
    TEST_ASSERT_EQUAL(0, tries);
    TEST_ASSERT_EQUAL_UINT64(ta__record_length(record), ta__record_written(record));
    TEST_ASSERT_GREATER_THAN_UINT64(2 * LIMIT, ta__record_length(record));
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, files_in_folder());
}

/* A try costs as much as a copy: the next one comes after a sixteenth of the limit. */
static void test_what_nobody_may_make_shorter_grows_and_is_rarely_tried(void)
{
    struct ta_record *record = open_limited();
    refused_errno = EACCES;
    append(record, 400);
    TEST_ASSERT_EQUAL(EACCES, ta__record_obstacle(record));
    off_t beyond = length_of(path) - LIMIT;
    TEST_ASSERT_GREATER_THAN(LIMIT, beyond);
    TEST_ASSERT_LESS_OR_EQUAL(beyond / (LIMIT / 16) + 1, tries);
    TEST_ASSERT_GREATER_OR_EQUAL(beyond / (LIMIT / 16) / 4, tries);
    refused_errno = 0;
    append(record, 20);
    TEST_ASSERT_EQUAL(0, ta__record_obstacle(record)); /* it can now */
    TEST_ASSERT_LESS_OR_EQUAL(LIMIT + 8000, length_of(path));
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
}

static void test_the_run_makes_it_shorter_where_the_process_may_not(void)
{
    begin_run();
    refused_errno = EACCES;
    struct ta_record *record = open_limited();
    TEST_ASSERT_EQUAL_STRING("O", asked);
    for (int manners = 0; manners < 2; manners++) {
        memset(asked, 0, sizeof asked);
        manner = manners == 0 ? DOES_IT : DOES_IT_SILENTLY; /* it did it, and then ended */
        while (asked[1] == '\0' && ta__record_length(record) < 4 * LIMIT)
            append(record, 1);
        TEST_ASSERT_EQUAL_STRING("OM", asked);
        TEST_ASSERT_EQUAL(0, ta__record_obstacle(record));
        TEST_ASSERT_LESS_OR_EQUAL(LIMIT, length_of(path));
        TEST_ASSERT_EQUAL_UINT64(length_of(path), ta__record_length(record));
        TEST_ASSERT_EQUAL(1, files_in_folder());
    }
    append(record, 3);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    end_run();
}

static void test_what_the_run_does_not_do_is_no_loss(void)
{
    static const struct {
        int manner, error;
    } cases[] = {{REFUSES, EPERM}, {IS_SILENT, ECONNRESET}};
    for (size_t i = 0; i < 2; i++) {
        begin_run();
        refused_errno = EACCES;
        struct ta_record *record = open_limited();
        memset(asked, 0, sizeof asked);
        manner = cases[i].manner;
        while (asked[1] == '\0' && ta__record_length(record) < 4 * LIMIT)
            append(record, 1);
        TEST_ASSERT_EQUAL_STRING("OM", asked);
        TEST_ASSERT_EQUAL(cases[i].error, ta__record_obstacle(record));
        TEST_ASSERT_EQUAL_UINT64(ta__record_length(record), ta__record_written(record));
        append(record, 1);
        TEST_ASSERT_EQUAL(0, ta_record_close(record));
        TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
        TEST_ASSERT_GREATER_THAN(LIMIT, length_of(path));
        TEST_ASSERT_EQUAL(2, files_in_folder()); /* the empty one is the run's to remove */
        end_run();
        empty_folder();
    }
}

static int does_yield;

static int yields(void)
{
    return does_yield;
}

/* In place of what is there, beside it, or as one with a number. */
static void test_a_file_is_asked_for_as_it_shall_be_named(void)
{
    static const struct {
        uint64_t since_ns;
        int keeps_older, is_there, does_yield;
        const char *asked;
    } cases[] = {{0, 0, 1, 1, "O"},          {1, 0, 0, 0, "A"}, {1, 0, 0, 1, "P"},         {UINT64_MAX, 1, 1, 0, "P"},
                 {UINT64_MAX, 1, 0, 0, "A"}, {1, 1, 1, 0, "A"}, {UINT64_MAX, 0, 1, 0, "A"}};
    begin_run();
    refused_errno = EACCES;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ta__sparing sparing = {
            .since_ns = cases[i].since_ns, .yields = yields, .keeps_older = cases[i].keeps_older};
        does_yield = cases[i].does_yield;
        empty_folder();
        is_run = 1;
        if (cases[i].is_there)
            close(open(path, O_WRONLY | O_CREAT, 0600));
        is_run = 0;
        memset(asked, 0, sizeof asked);
        char name[4096] = "";
        TEST_ASSERT_EQUAL_MESSAGE(0, ta__snapshot_to_file_sparing(path, "end", &sparing, name), ta_error_text());
        TEST_ASSERT_EQUAL_STRING(cases[i].asked, asked);
        TEST_ASSERT_EQUAL_STRING(path, name);
        TEST_ASSERT_EQUAL(1, entries_of(path));
    }
    end_run();
    uint64_t failures = fake_live_failures;
    TEST_ASSERT_EQUAL(-1, ta__snapshot_to_file(path, "end")); /* nobody there any more */
    TEST_ASSERT_EQUAL(EACCES, errno);
    TEST_ASSERT_EQUAL_UINT64(failures + 1, fake_live_failures);
    TEST_ASSERT_NULL(ta_record_open(path, 0));
    TEST_ASSERT_EQUAL_UINT64(failures + 2, fake_live_failures);
}

static void test_a_series_that_is_given_up_goes_on(void)
{
    struct ta_record *record = open_limited();
    append(record, 3);
    off_t length = length_of(path);
    uint64_t failures = fake_live_failures;
    ta__record_recover(record);
    TEST_ASSERT_EQUAL_UINT64(failures + 1, fake_live_failures);
    TEST_ASSERT_EQUAL(length, length_of(path));
    append(record, 3);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    TEST_ASSERT_EQUAL(6, entries_of(path));
    ta__record_recover(NULL);
    TEST_ASSERT_EQUAL_UINT64(failures + 2, fake_live_failures);
}

static void test_an_entry_that_is_not_synced_is_a_failure(void)
{
    uint64_t failures = fake_live_failures;
    struct ta_record *record = ta_record_open(path, TA_RECORD_SYNC);
    append(record, 1);
    sync_errno = EIO;
    TEST_ASSERT_EQUAL(-1, ta_record_append(record, NULL));
    char expected[100];
    snprintf(expected, sizeof expected, "cannot sync %s: Input/output error", path);
    TEST_ASSERT_EQUAL_STRING(expected, ta_error_text());
    TEST_ASSERT_EQUAL_UINT64(failures + 1, fake_live_failures);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    record = ta_record_open(path, 0); /* this one does not wait for the disk */
    append(record, 1);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
}

static void test_nothing_is_done_without_a_series(void)
{
    uint64_t failures = fake_live_failures;
    TEST_ASSERT_EQUAL(0, ta_record_close(NULL));
    TEST_ASSERT_EQUAL(0, ta__record_end(NULL));
    ta__record_forget(NULL);
    TEST_ASSERT_EQUAL_UINT64(0, ta__record_length(NULL));
    TEST_ASSERT_EQUAL_UINT64(0, ta__record_written(NULL));
    TEST_ASSERT_EQUAL_UINT64(failures, fake_live_failures);
    errno = 0;
    TEST_ASSERT_EQUAL(-1, ta_record_append(NULL, "x"));
    TEST_ASSERT_EQUAL(EINVAL, errno);
    TEST_ASSERT_EQUAL_STRING("cannot append: the recording belongs to another process", ta_error_text());
    TEST_ASSERT_EQUAL_UINT64(failures + 1, fake_live_failures);
    for (unsigned flags = 2; flags != 0; flags <<= 1) {
        TEST_ASSERT_NULL(ta_record_open(path, flags));
        TEST_ASSERT_EQUAL_STRING("cannot begin a recording: unknown flags", ta_error_text());
    }
    TEST_ASSERT_EQUAL(0, files_in_folder());
}

/* The n-th request for memory is refused, for every n. */
static void test_without_memory_there_is_no_series_and_no_file(void)
{
    for (long nth = 1;; nth++) {
        ta__memory_inject_failure(nth, 0);
        struct ta_record *record = ta_record_open(path, 0);
        ta__memory_inject_failure(0, 0);
        if (record != NULL) {
            TEST_ASSERT_GREATER_THAN(2, nth);
            TEST_ASSERT_EQUAL(0, ta_record_close(record));
            return;
        }
        TEST_ASSERT_EQUAL_STRING(nth == 1 ? "no memory for a recording"
                                          : "cannot begin the recording: Cannot allocate memory",
                                 ta_error_text());
        TEST_ASSERT_EQUAL(0, files_in_folder());
        TEST_ASSERT_EQUAL(open_before, open_descriptors());
        TEST_ASSERT_EQUAL(mapped_before, ta__memory_mapped());
    }
}

static void test_a_series_is_found_again_by_its_name_or_left(void)
{
    int taken = open("/dev/null", O_WRONLY);
    close(taken);
    struct ta_record *record = open_limited();
    append(record, 2);
    int null = open("/dev/null", O_WRONLY);
    TEST_ASSERT_EQUAL(taken, dup2(null, taken)); /* the descriptor of the series is the program's now */
    append(record, 1);
    TEST_ASSERT_EQUAL(0, ta_record_close(record));
    TEST_ASSERT_EQUAL(3, entries_of(path));
    TEST_ASSERT_EQUAL(0, fcntl(taken, F_GETFD));
    close(taken);
    close(null);
}

int main(void)
{
    alarm(300); /* nobody is waited for so long */
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    UNITY_BEGIN();
    RUN_TEST(test_a_series_stays_within_its_limit);
    RUN_TEST(test_without_a_limit_everything_stays);
    RUN_TEST(test_marks_stay_when_others_go);
    RUN_TEST(test_a_file_that_is_gone_grows_on);
    RUN_TEST(test_what_nobody_may_make_shorter_grows_and_is_rarely_tried);
    RUN_TEST(test_the_run_makes_it_shorter_where_the_process_may_not);
    RUN_TEST(test_what_the_run_does_not_do_is_no_loss);
    RUN_TEST(test_a_file_is_asked_for_as_it_shall_be_named);
    RUN_TEST(test_a_series_that_is_given_up_goes_on);
    RUN_TEST(test_an_entry_that_is_not_synced_is_a_failure);
    RUN_TEST(test_nothing_is_done_without_a_series);
    RUN_TEST(test_without_memory_there_is_no_series_and_no_file);
    RUN_TEST(test_a_series_is_found_again_by_its_name_or_left);
    int result = UNITY_END();
    rmdir(folder);
    return result;
}
