/* test_snapshot_kill.c: a program that writes a series is killed at random moments; what it wrote is there.
 *
 *     test_snapshot_kill [SEED]             the seed of the moments is printed
 *     test_snapshot_kill --write FILE LIMIT the program that is killed: a series without end, one byte on standard
 *                                           output for each whole entry; see support/endless.h */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "tests/support/endless.h"
#include "tracealloc/snapshot.h"

#ifndef KILLS
#define KILLS 200
#endif

static char folder[] = "/tmp/ta_kill.XXXXXX";
static uint32_t seed = 1;

void setUp(void)
{
}

void tearDown(void)
{
}

static uint32_t random_below(uint32_t below)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
}

/* Runs the writer, kills it a random time after its first entry. Answers how many entries it had announced. */
static size_t write_and_kill(const char *path, int at_once, const char *limit, uint32_t most_ms)
{
    int ends[2];
    TEST_ASSERT_EQUAL(0, pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execl("/proc/self/exe", "test_snapshot_kill", "--write", path, limit, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t announced = 0;
    char bytes[4096];
    if (!at_once) {
        TEST_ASSERT_EQUAL_MESSAGE(1, read(ends[0], bytes, 1), "the writer does not write");
        announced = 1;
    }
    const struct timespec moment = {0, (long)random_below(most_ms * 1000000)};
    nanosleep(&moment, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (ssize_t got; (got = read(ends[0], bytes, sizeof bytes)) > 0;)
        announced += (size_t)got;
    close(ends[0]);
    return announced;
}

static void test_series_of_a_killed_program_loses_at_most_the_last_entry(void)
{
    char path[128];
    size_t entries = 0, torn = 0;
    snprintf(path, sizeof path, "%s/series.ta", folder);
    for (int i = 0; i < KILLS; i++) {
        unlink(path);
        size_t announced = write_and_kill(path, 0, "0", 20);
        struct ta_recording *recording = ta_recording_open(path);
        TEST_ASSERT_NOT_NULL_MESSAGE(recording, ta_error_text());
        size_t have = ta_recording_entry_count(recording);
        torn += ta_recording_warning(recording)[0] != '\0';
        ta_recording_close(recording);
        TEST_ASSERT_GREATER_OR_EQUAL(announced, have); /* the one after may have become whole unannounced */
        TEST_ASSERT_LESS_OR_EQUAL(announced + 1, have);
        struct ta_snapshot *snapshot = ta_snapshot_load(path);
        TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
        struct ta_snapshot_info info;
        TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
        TEST_ASSERT_EQUAL_STRING("tick", info.reason);
        TEST_ASSERT_TRUE_MESSAGE(endless_is_entry(snapshot, have), "the entry is not the one that it claims to be");
        ta_snapshot_free(snapshot);
        entries += have;
    }
    printf("%d kills, %zu entries, %zu files with a torn end\n", KILLS, entries, torn);
    TEST_ASSERT_GREATER_THAN(KILLS, entries);
}

static void test_kill_before_the_first_entry_leaves_nothing_that_looks_like_data(void)
{
    char path[128], command[128];
    snprintf(path, sizeof path, "%s/early.ta", folder);
    for (int i = 0; i < 50; i++) {
        write_and_kill(path, 1, "0", 4);
        DIR *entries = opendir(folder);
        for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
            size_t length = strlen(entry->d_name);
            if (length > 3 && strcmp(entry->d_name + length - 3, ".ta") == 0)
                continue; /* this one is whole, or says what it lacks */
            if (entry->d_name[0] != '.')
                TEST_ASSERT_EQUAL_STRING(".tmp", entry->d_name + length - 4);
        }
        closedir(entries);
        struct ta_snapshot *snapshot = ta_snapshot_load(path);
        if (snapshot == NULL)
            TEST_ASSERT_TRUE_MESSAGE(strstr(ta_error_text(), "no whole entry") != NULL ||
                                         strstr(ta_error_text(), "No such file") != NULL,
                                     ta_error_text());
        ta_snapshot_free(snapshot);
        snprintf(command, sizeof command, "rm -f %s/*", folder);
        TEST_ASSERT_EQUAL(0, system(command));
    }
}

static size_t number_of(struct ta_snapshot *snapshot, size_t most)
{
    size_t number = most;
    while (number > 0 && !endless_is_entry(snapshot, number))
        number--;
    return number;
}

static int errors;

static void count_errors(void *unused, int severity, uint64_t offset, const char *section, const char *text)
{
    (void)unused, (void)offset, (void)section, (void)text;
    errors += severity == TA_CHECK_ERROR;
}

/* While a shorter file takes the place of the longer one, too: the last entry is there, the first, and all between are what
 * they were, in their order. */
static void test_series_that_is_thinned_loses_at_most_the_last_entry(void)
{
    char path[128], name[160];
    size_t thinned = 0;
    snprintf(path, sizeof path, "%s/thin.ta", folder);
    for (int i = 0; i < KILLS / 2; i++) {
        unlink(path);
        size_t announced = write_and_kill(path, 0, "1", 400);
        struct ta_recording *recording = ta_recording_open(path);
        TEST_ASSERT_NOT_NULL_MESSAGE(recording, ta_error_text());
        size_t have = ta_recording_entry_count(recording), before = 0;
        ta_recording_close(recording);
        TEST_ASSERT_EQUAL(0, ta_recording_check(path, count_errors, NULL) < 0);
        TEST_ASSERT_EQUAL(0, errors);
        thinned += have < announced;
        for (size_t entry = 0; entry < have; entry += entry + 1 < have && have > 40 ? have / 20 : 1) {
            snprintf(name, sizeof name, "%s@%zu", path, entry);
            struct ta_snapshot *snapshot = ta_snapshot_load(name);
            TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
            size_t number = number_of(snapshot, announced + 1);
            ta_snapshot_free(snapshot);
            TEST_ASSERT_GREATER_THAN(before, number);
            TEST_ASSERT_TRUE(entry != 0 || number == 1);
            before = number;
        }
        struct ta_snapshot *last = ta_snapshot_load(path);
        TEST_ASSERT_NOT_NULL_MESSAGE(last, ta_error_text());
        TEST_ASSERT_GREATER_OR_EQUAL(announced, number_of(last, announced + 1));
        ta_snapshot_free(last);
    }
    TEST_ASSERT_GREATER_THAN(KILLS / 20, thinned);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--write") == 0)
        return endless_write(argv[2], strtoul(argv[3], NULL, 10));
    if (mkdtemp(folder) == NULL)
        return 2;
    seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : (uint32_t)time(NULL);
    printf("seed %u\n", seed);
    UNITY_BEGIN();
    RUN_TEST(test_series_of_a_killed_program_loses_at_most_the_last_entry);
    RUN_TEST(test_series_that_is_thinned_loses_at_most_the_last_entry);
    RUN_TEST(test_kill_before_the_first_entry_leaves_nothing_that_looks_like_data);
    int failures = UNITY_END();
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        return 1;
    return failures;
}
