/* test_snapshot_triggers.c: snapshots for programs that know nothing of them. Waits for events, never for a time. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/triggers/file_name.h"
#include "snapshot/write/take.h"
#include "snapshot/triggers/triggers.h"
#include "tests/support/fake_live.h"
#include "tests/support/fake_source.h"

static struct fake_source fake;
static void (*fake_fold)(const struct ta__source *source, uint32_t first, uint32_t n, struct ta__source_counts *counts);
static char folder[] = "/tmp/ta_trig.XXXXXX";
static char pattern[96], series[96];

void setUp(void)
{
    fake_open(&fake);
    fake_program(&fake, 500, 50);
    fake_live = &fake.source;
    snprintf(pattern, sizeof pattern, "%s/s.%%n.ta", folder);
    snprintf(series, sizeof series, "%s/series.ta", folder);
}

static void empty_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -f %s/*", folder);
    TEST_ASSERT_EQUAL(0, system(command));
}

void tearDown(void)
{
    ta__triggers_stop();
    fake_live = NULL;
    fake_close(&fake);
    empty_folder();
}

static void nap(void)
{
    const struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
}

static void file_name(char *path, size_t room, int number)
{
    snprintf(path, room, "%s/s.%d.ta", folder, number);
}

/* Files appear under their name only when they are whole. Gives up after a minute. */
static void wait_for_file(const char *path)
{
    for (int i = 0; i < 60000 && access(path, F_OK) != 0; i++)
        nap();
    TEST_ASSERT_EQUAL_MESSAGE(0, access(path, F_OK), path);
}

static void assert_reason(const char *path, const char *reason)
{
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    struct ta_snapshot_info info;
    ta_snapshot_info(snapshot, &info, sizeof info);
    TEST_ASSERT_EQUAL_STRING(reason, info.reason);
    ta_snapshot_free(snapshot);
}

static int files_in_folder(void)
{
    int count = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

static int own_threads; /* a sanitizer may have one too */

static int threads_now(void)
{
    int count = -own_threads;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void test_path_marks_are_replaced(void)
{
    char path[200], expected[200], host[100];
    TEST_ASSERT_EQUAL(0, ta__trigger_path("a.%p.%n.%%.%q%", 17, 0, path, sizeof path));
    snprintf(expected, sizeof expected, "a.%d.17.%%.%%q%%", getpid());
    TEST_ASSERT_EQUAL_STRING(expected, path);
    TEST_ASSERT_EQUAL(0, ta__trigger_path("%h", 1, 0, path, sizeof path));
    gethostname(host, sizeof host);
    TEST_ASSERT_EQUAL_STRING(host, path);
    TEST_ASSERT_EQUAL(0, ta__trigger_path("x", 1, 1, path, sizeof path));
    snprintf(expected, sizeof expected, "x.%d", getpid());
    TEST_ASSERT_EQUAL_STRING(expected, path);
    TEST_ASSERT_EQUAL(0, ta__trigger_path("x.%p", 1, 1, path, sizeof path));
    TEST_ASSERT_EQUAL_STRING(expected, path);
    TEST_ASSERT_EQUAL(-1, ta__trigger_path("abcdefgh", 1, 0, path, 8));
}

static void test_path_time_is_that_of_gmtime(void)
{
    char path[64], before[64], after[64];
    struct timespec now; /* not time(): its clock is a tick behind */
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(before, sizeof before, "%Y%m%d-%H%M%S", gmtime(&now.tv_sec));
    TEST_ASSERT_EQUAL(0, ta__trigger_path("%t", 1, 0, path, sizeof path));
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(after, sizeof after, "%Y%m%d-%H%M%S", gmtime(&now.tv_sec));
    TEST_ASSERT_TRUE_MESSAGE(strcmp(before, path) <= 0 && strcmp(path, after) <= 0, path);
}

static void test_exit_writes_one_file_and_needs_no_thread(void)
{
    char path[96];
    const struct ta__trigger_options options = {.path = pattern, .at_exit = 1};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    TEST_ASSERT_EQUAL(0, threads_now());
    ta__triggers_exit();
    file_name(path, sizeof path, 1);
    assert_reason(path, "exit");
    TEST_ASSERT_EQUAL(1, files_in_folder());
    ta__triggers_exit();
    TEST_ASSERT_EQUAL(1, files_in_folder());
}

static volatile sig_atomic_t program_saw;
static volatile int program_value;

static void programs_handler(int number)
{
    program_saw = number;
}

static void programs_info_handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    program_saw = number;
    program_value = info->si_value.sival_int;
}

static void test_signal_takes_a_snapshot_and_the_programs_handler_runs_too(void)
{
    char path[96];
    signal(SIGUSR1, programs_handler);
    const struct ta__trigger_options options = {.path = pattern, .signal_number = SIGUSR1};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    program_saw = 0;
    errno = 77;
    raise(SIGUSR1);
    TEST_ASSERT_EQUAL(77, errno);
    TEST_ASSERT_EQUAL(SIGUSR1, program_saw);
    file_name(path, sizeof path, 1);
    wait_for_file(path);
    assert_reason(path, "signal");
    ta__triggers_stop();
    struct sigaction present;
    sigaction(SIGUSR1, NULL, &present);
    TEST_ASSERT_EQUAL_PTR(programs_handler, present.sa_handler);
    signal(SIGUSR1, SIG_DFL);
}

static void test_signal_handler_installed_later_is_called_and_ours_comes_back(void)
{
    char path[96];
    const struct ta__trigger_options options = {
        .path = pattern, .signal_number = SIGUSR1, .interval_ns = UINT64_C(3600000000000)};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    struct sigaction theirs = {.sa_sigaction = programs_info_handler, .sa_flags = SA_SIGINFO}, present, ours;
    sigaction(SIGUSR1, &theirs, &ours); /* the program keeps what it found, as well-behaved ones do */
    do {
        nap();
        sigaction(SIGUSR1, NULL, &present);
    } while (present.sa_sigaction == programs_info_handler);
    program_saw = program_value = 0;
    TEST_ASSERT_EQUAL(0, sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 42}));
    for (int i = 0; i < 60000 && program_saw == 0; i++) /* the thread sanitizer holds signals back */
        nap();
    TEST_ASSERT_EQUAL(SIGUSR1, program_saw);
    TEST_ASSERT_EQUAL(42, program_value);
    file_name(path, sizeof path, 1);
    wait_for_file(path);
    ta__triggers_stop();
    signal(SIGUSR1, SIG_DFL);
}

static void test_signal_in_a_thread_is_served(void)
{
    char path[96];
    const struct ta__trigger_options options = {.path = pattern, .signal_number = SIGUSR2};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    for (int i = 1; i <= 3; i++) {
        kill(getpid(), SIGUSR2);
        file_name(path, sizeof path, i);
        wait_for_file(path);
    }
}

/* Looks at the thread of that name; 0 when there is none (it names itself, a moment after it began). */
static int blocks_all_signals(void)
{
    int seen = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char name[300], line[300];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "/proc/self/task/%s/status", entry->d_name);
        FILE *status = fopen(name, "r");
        int is_helper = 0;
        while (fgets(line, sizeof line, status) != NULL) {
            if (strcmp(line, "Name:\ttracealloc\n") == 0)
                is_helper = 1;
            if (!is_helper || strncmp(line, "SigBlk:", 7) != 0)
                continue;
            unsigned long blocked = strtoul(line + 7, NULL, 16);
            for (int number = 1; number < 32; number++)
                if (number != SIGKILL && number != SIGSTOP)
                    TEST_ASSERT_TRUE(blocked >> (number - 1) & 1);
            seen++;
        }
        fclose(status);
    }
    closedir(tasks);
    return seen;
}

static void test_helper_blocks_every_signal(void)
{
    const struct ta__trigger_options options = {.path = pattern, .interval_ns = UINT64_C(3600000000000)};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    TEST_ASSERT_EQUAL(1, threads_now());
    int seen = 0;
    for (int i = 0; i < 60000 && seen == 0; i++, nap())
        seen = blocks_all_signals();
    TEST_ASSERT_EQUAL(1, seen);
    ta__triggers_stop();
    TEST_ASSERT_EQUAL(0, threads_now());
}

static void wait_for_entries(size_t count)
{
    size_t have = 0;
    for (int i = 0; i < 60000 && have < count; i++) {
        struct ta_recording *recording = ta_recording_open(series);
        have = recording == NULL ? 0 : ta_recording_entry_count(recording);
        ta_recording_close(recording);
        nap();
    }
    TEST_ASSERT_GREATER_OR_EQUAL(count, have);
}

static void test_interval_makes_a_series_that_exit_closes(void)
{
    const struct ta__trigger_options options = {.series = series, .interval_ns = 5000000, .at_exit = 1};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    wait_for_entries(4);
    ta__triggers_exit();
    TEST_ASSERT_EQUAL(0, ta_recording_check(series, NULL, NULL));
    assert_reason(series, "exit");
    TEST_ASSERT_EQUAL(1, files_in_folder());
}

static void set_current(uint64_t bytes)
{
    pthread_mutex_lock(&fake_live_lock);
    fake.source.current_bytes = bytes;
    pthread_mutex_unlock(&fake_live_lock);
}

static void test_peak_takes_one_at_each_growth_and_keeps_the_last(void)
{
    char path[96];
    const struct ta__trigger_options options = {.path = pattern, .at_peak = 1, .peak_least = 1000, .peak_percent = 10};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    ta__triggers_note_size(900);
    file_name(path, sizeof path, 1);
    TEST_ASSERT_NOT_EQUAL(0, access(path, F_OK));
    set_current(2000);
    ta__triggers_note_size(2000);
    wait_for_file(path);
    struct stat first, second;
    TEST_ASSERT_EQUAL(0, stat(path, &first));
    second = first;
    for (int i = 0; i < 60000 && second.st_ino == first.st_ino; i++) {
        ta__triggers_note_size(2100); /* grown by 5 %: not enough */
        set_current(5000);
        ta__triggers_note_size(5000); /* the helper may still be busy with the one before */
        nap();
        if (stat(path, &second) != 0)
            second = first;
    }
    TEST_ASSERT_NOT_EQUAL(first.st_ino, second.st_ino);
    ta__triggers_stop();
    assert_reason(path, "peak");
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    struct ta_snapshot_info info;
    ta_snapshot_info(snapshot, &info, sizeof info);
    TEST_ASSERT_EQUAL_UINT64(5000, info.current_bytes);
    ta_snapshot_free(snapshot);
    TEST_ASSERT_EQUAL(1, files_in_folder());
}

static uint64_t polled(void)
{
    return fake.source.current_bytes;
}

static void test_peak_is_found_by_asking_where_nobody_tells(void)
{
    char path[96];
    const struct ta__trigger_options options = {
        .path = pattern, .at_peak = 1, .peak_least = 1, .current_bytes = polled, .poll_ns = 1000000};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    file_name(path, sizeof path, 1);
    wait_for_file(path);
}

static void test_limit_takes_a_snapshot(void)
{
    char path[96];
    const struct ta__trigger_options options = {.path = pattern, .at_limit = 1};
    ta__triggers_note_limit(3); /* before: nothing listens */
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    ta__triggers_note_limit(3);
    file_name(path, sizeof path, 1);
    wait_for_file(path);
    assert_reason(path, "limit");
}

static void test_number_skips_files_that_are_there(void)
{
    char path[96];
    const struct ta__trigger_options options = {.path = pattern, .at_exit = 1};
    file_name(path, sizeof path, 1);
    FILE *old = fopen(path, "w");
    fputs("old", old);
    fclose(old);
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    ta__triggers_exit();
    file_name(path, sizeof path, 2);
    assert_reason(path, "exit");
}

static void test_child_after_fork_writes_files_of_its_own_and_gets_a_helper(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("the thread sanitizer knows no threads in a child");
#endif
    char path[128];
    const struct ta__trigger_options options = {.series = series, .interval_ns = 5000000, .at_exit = 1};
    TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
    wait_for_entries(2);
    pid_t child = fork();
    if (child == 0) {
        int without = threads_now();
        ta__triggers_poke();
        int with = threads_now();
        snprintf(series + strlen(series), 20, ".%d", getpid());
        wait_for_entries(3);
        ta__triggers_exit();
        _exit(with == without + 1 ? 7 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    TEST_ASSERT_TRUE(WIFEXITED(status));
    TEST_ASSERT_EQUAL(7, WEXITSTATUS(status));
    snprintf(path, sizeof path, "%s.%d", series, child);
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    struct ta_snapshot_info info;
    ta_snapshot_info(snapshot, &info, sizeof info);
    TEST_ASSERT_EQUAL(child, info.pid);
    ta_snapshot_free(snapshot);
    ta__triggers_exit();
    TEST_ASSERT_EQUAL(0, ta_recording_check(series, NULL, NULL));
    snapshot = ta_snapshot_load(series);
    ta_snapshot_info(snapshot, &info, sizeof info);
    TEST_ASSERT_EQUAL(getpid(), info.pid);
    ta_snapshot_free(snapshot);
}

static void test_failure_is_one_line_when_asked_for_and_silent_otherwise(void)
{
    for (int loud = 0; loud < 2; loud++) {
        char text[600] = "";
        int ends[2];
        TEST_ASSERT_EQUAL(0, pipe(ends));
        int saved = dup(2);
        dup2(ends[1], 2);
        const struct ta__trigger_options options = {.path = "/nowhere/x.ta", .at_exit = 1, .loud = loud};
        int result = ta__triggers_start(&options);
        ta__triggers_exit();
        dup2(saved, 2);
        close(saved);
        close(ends[1]);
        TEST_ASSERT_EQUAL(0, result);
        TEST_ASSERT_GREATER_OR_EQUAL(0, read(ends[0], text, sizeof text - 1));
        close(ends[0]);
        TEST_ASSERT_EQUAL_STRING(
            loud ? "tracealloc: no snapshot: cannot create a file beside /nowhere/x.ta: No such file "
                   "or directory\n"
                 : "",
            text);
    }
}

/* A full disk fails every time, and is said once; when it was well in between, it is news. */
static void test_a_failure_is_said_again_when_it_went_well_in_between(void)
{
    char text[2000] = "", deep[128];
    int ends[2], times = 0;
    snprintf(deep, sizeof deep, "%s/below/x.ta", folder); /* one name: so the failure is the same */
    TEST_ASSERT_EQUAL(0, pipe(ends));
    int saved = dup(2);
    dup2(ends[1], 2);
    const struct ta__trigger_options options = {.path = deep, .loud = 1};
    int result = ta__triggers_start(&options);
    for (int i = 0; i < 3; i++)
        ta__triggers_take("first");
    deep[strlen(deep) - strlen("/x.ta")] = '\0';
    int made = mkdir(deep, 0700);
    ta__triggers_take("well");
    char file[160];
    snprintf(file, sizeof file, "%s/x.ta", deep);
    int removed = unlink(file) != 0 || rmdir(deep) != 0 ? -1 : 0;
    for (int i = 0; i < 3; i++)
        ta__triggers_take("again");
    dup2(saved, 2);
    close(saved);
    close(ends[1]);
    TEST_ASSERT_EQUAL(0, result | made | removed);
    TEST_ASSERT_GREATER_OR_EQUAL(0, read(ends[0], text, sizeof text - 1));
    close(ends[0]);
    for (const char *at = text; (at = strstr(at, "no snapshot: cannot create a file")) != NULL; at++)
        times++;
    TEST_ASSERT_EQUAL_MESSAGE(2, times, text);
}

static void test_bad_signal_number_is_refused(void)
{
    const struct ta__trigger_options options = {.path = pattern, .signal_number = SIGKILL};
    TEST_ASSERT_EQUAL(-1, ta__triggers_start(&options));
    TEST_ASSERT_EQUAL_STRING("cannot start the snapshot triggers: Invalid argument", ta_error_text());
    TEST_ASSERT_EQUAL(0, threads_now());
}

static void *do_nothing(void *argument)
{
    return argument;
}

/* Seen from here because the helper, thread or process, has our memory. */
static uint32_t task_begun, task_looks, task_ended;

static void task_begin(void)
{
    __atomic_add_fetch(&task_begun, 1, __ATOMIC_SEQ_CST);
}

static void task_look(void)
{
    if (__atomic_add_fetch(&task_looks, 1, __ATOMIC_SEQ_CST) == 3)
        ta__triggers_take("task");
}

static void task_end(void)
{
    __atomic_add_fetch(&task_ended, 1, __ATOMIC_SEQ_CST);
}

static pid_t owner;

/* Of the process that watches, which then has all that a snapshot holds. */
static void die_elsewhere(const struct ta__source *source, uint32_t first, uint32_t n, struct ta__source_counts *counts)
{
    if (syscall(SYS_getpid) != owner)
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    fake_fold(source, first, n, counts);
}

static int is_written_with_a_keeper_that_is_killed(void)
{
    const struct ta__trigger_options options = {.series = series, .at_exit = 1, .has_keeper = 1};
    owner = getpid();
    fake_fold = fake.source.fold;
    fake.source.fold = die_elsewhere;
    if (ta__triggers_start(&options) != 0)
        return 0;
    ta__triggers_exit();
    return 1;
}

/* In a child, which the parent does not wait for without end. */
static void test_the_last_entry_is_written_although_the_keeper_is_killed_at_it(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(is_written_with_a_keeper_that_is_killed() ? 0 : 1);
    for (int i = 0; i < 60000 && waitpid(child, &status, WNOHANG) == 0; i++)
        nap();
    kill(child, SIGKILL);
    TEST_ASSERT_EQUAL_MESSAGE(-1, waitpid(child, &status, 0), "it does not end");
    TEST_ASSERT_EQUAL(0, status);
    assert_reason(series, "exit");
}

/* Stays, so this is the last test. */
static void test_tasks_of_others_run_in_the_helper(void)
{
    static const struct ta__helper_task task = {
        .begin = task_begin, .period_ns = 1000000, .look = task_look, .end = task_end};
    TEST_ASSERT_EQUAL(0, ta__triggers_add_task(&task));
    for (int has_keeper = 0; has_keeper <= 1; has_keeper++) {
        const struct ta__trigger_options options = {.series = series, .at_exit = 1, .has_keeper = has_keeper};
        task_begun = task_looks = task_ended = 0;
        TEST_ASSERT_EQUAL(0, ta__triggers_start(&options));
        wait_for_entries(1);
        assert_reason(series, "task");
        ta__triggers_exit();
        TEST_ASSERT_EQUAL(1, task_begun);
        TEST_ASSERT_EQUAL(1, task_ended);
        assert_reason(series, "exit");
        TEST_ASSERT_EQUAL(0, unlink(series));
    }
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    pthread_t first;
    if (pthread_create(&first, NULL, do_nothing, NULL) != 0 || pthread_join(first, NULL) != 0)
        return 1;
    own_threads = threads_now();
    UNITY_BEGIN();
    RUN_TEST(test_path_marks_are_replaced);
    RUN_TEST(test_path_time_is_that_of_gmtime);
    RUN_TEST(test_exit_writes_one_file_and_needs_no_thread);
    RUN_TEST(test_signal_takes_a_snapshot_and_the_programs_handler_runs_too);
    RUN_TEST(test_signal_handler_installed_later_is_called_and_ours_comes_back);
    RUN_TEST(test_signal_in_a_thread_is_served);
    RUN_TEST(test_helper_blocks_every_signal);
    RUN_TEST(test_interval_makes_a_series_that_exit_closes);
    RUN_TEST(test_peak_takes_one_at_each_growth_and_keeps_the_last);
    RUN_TEST(test_peak_is_found_by_asking_where_nobody_tells);
    RUN_TEST(test_limit_takes_a_snapshot);
    RUN_TEST(test_number_skips_files_that_are_there);
    RUN_TEST(test_child_after_fork_writes_files_of_its_own_and_gets_a_helper);
    RUN_TEST(test_failure_is_one_line_when_asked_for_and_silent_otherwise);
    RUN_TEST(test_a_failure_is_said_again_when_it_went_well_in_between);
    RUN_TEST(test_bad_signal_number_is_refused);
    RUN_TEST(test_the_last_entry_is_written_although_the_keeper_is_killed_at_it);
    RUN_TEST(test_tasks_of_others_run_in_the_helper);
    int failures = UNITY_END();
    rmdir(folder);
    return failures;
}
