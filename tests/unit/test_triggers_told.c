/* test_triggers_told.c: what the triggers (snapshot/triggers/triggers.h) tell the `run` that started the process, packet by packet,
 * which names files get, and what is answered to those who ask. Each case has a process of its own. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/triggers/triggers.h"
#include "tests/support/fake_live.h"
#include "tests/support/fake_source.h"
#include "tracealloc/snapshot.h"

static char folder[] = "/tmp/ta_told_of.XXXXXX";
static char name[96], opener[80];
static int listener = -1;
static struct fake_source fake;

void setUp(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char own[40];
    static int number;
    snprintf(own, sizeof own, "ta-told-%d-%d", (int)getpid(), number++);
    memcpy(address.sun_path + 1, own, strlen(own));
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(own));
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 64) != 0)
        TEST_IGNORE_MESSAGE("there are no such sockets here");
    snprintf(opener, sizeof opener, "%s:", own);
    snprintf(name, sizeof name, "%s/x.ta", folder);
    fake_open(&fake);
    fake_program(&fake, 100, 20);
    fake_live = &fake.source;
}

void tearDown(void)
{
    char command[64];
    ta__triggers_stop();
    fake_live = NULL;
    fake_close(&fake);
    close(listener);
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    TEST_ASSERT_EQUAL(0, system(command));
}

/* All that was told, the folder and the process by their signs: "R# @/x.ta;". */
static const char *told(pid_t process)
{
    static char text[4000];
    char number[16], packet[2000];
    char *to = text;
    snprintf(number, sizeof number, "%d", (int)process);
    for (int connection; (connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        ssize_t got = recv(connection, packet, sizeof packet - 1, 0);
        packet[got > 0 ? got : 0] = '\0';
        close(connection);
        for (const char *at = packet; *at != '\0';)
            if (strncmp(at, folder, strlen(folder)) == 0) {
                *to++ = '@';
                at += strlen(folder);
            } else if (at == packet + 1 && strncmp(at, number, strlen(number)) == 0) {
                *to++ = '#';
                at += strlen(number);
            } else {
                *to++ = *at++;
            }
        *to++ = ';';
    }
    *to = '\0';
    return text;
}

#define TOLD(expected) TEST_ASSERT_EQUAL_STRING(expected, told(getpid()))

static void assert_files(const char *expected)
{
    char command[400];
    snprintf(command, sizeof command, "test \"$(cd %s && echo $(LC_ALL=C ls -A))\" = '%s' || { ls -A %s; false; }",
             folder, expected, folder);
    TEST_ASSERT_EQUAL_MESSAGE(0, system(command), expected);
}

static void assert_reason(const char *file, const char *expected)
{
    char path[160];
    struct ta_snapshot_info info;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    ta_snapshot_info(snapshot, &info, sizeof info);
    TEST_ASSERT_EQUAL_STRING(expected, info.reason);
    ta_snapshot_free(snapshot);
}

static void start(struct ta__trigger_options options)
{
    errno = 77;
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__triggers_start(&options), ta__error_text());
    TEST_ASSERT_EQUAL(77, errno);
}

#define START(...) start((struct ta__trigger_options){__VA_ARGS__})

/* ---- what is told ---- */

static void test_a_series_is_told_when_it_begins_and_when_it_is_whole(void)
{
    START(.series = name, .at_exit = 1, .opener = opener);
    TOLD("");
    TEST_ASSERT_EQUAL_STRING("", ta__triggers_last_name());
    TEST_ASSERT_EQUAL(0, ta__triggers_take("ctl"));
    TOLD("R# @/x.ta;");
    TEST_ASSERT_EQUAL_STRING(name, ta__triggers_last_name());
    TEST_ASSERT_EQUAL(0, ta__triggers_take("ctl"));
    TOLD("");
    errno = 77;
    ta__triggers_exit();
    TEST_ASSERT_EQUAL(77, errno);
    TOLD("E# exit @/x.ta;");
    assert_files("x.ta");
    assert_reason("x.ta", "exit");
    TEST_ASSERT_EQUAL(0, ta_recording_check(name, NULL, NULL));
    ta__triggers_exit();
    TOLD(""); /* once */
}

static void test_files_are_told_one_by_one(void)
{
    char pattern[120];
    snprintf(pattern, sizeof pattern, "%s/s.%%n.ta", folder);
    START(.path = pattern, .at_exit = 1, .opener = opener);
    TEST_ASSERT_EQUAL(0, ta__triggers_take("one"));
    TEST_ASSERT_EQUAL(0, ta__triggers_take("two"));
    TOLD("R# @/s.1.ta;R# @/s.2.ta;");
    ta__triggers_exit();
    TOLD("R# @/s.3.ta;E# exit @/s.3.ta;");
    assert_files("s.1.ta s.2.ta s.3.ta");
    assert_reason("s.2.ta", "two");
}

#define NOT_TRACING "F# tracealloc must be tracing memory allocations to take a snapshot;"

static void test_a_failure_is_told_once_and_no_end_after_it(void)
{
    START(.series = name, .at_exit = 1, .opener = opener);
    fake_live = NULL;
    TEST_ASSERT_EQUAL(-1, ta__triggers_take("ctl"));
    TOLD(NOT_TRACING);
    TEST_ASSERT_EQUAL(-1, ta__triggers_take("ctl"));
    TOLD("");
    fake_live = &fake.source;
    TEST_ASSERT_EQUAL(0, ta__triggers_take("ctl"));
    TOLD("R# @/x.ta;");
    fake_live = NULL;
    TEST_ASSERT_EQUAL(-1, ta__triggers_take("ctl")); /* it went well in between */
    TOLD(NOT_TRACING);
    ta__triggers_exit();
    TOLD("");
    assert_reason("x.ta", "ctl");
}

static void test_without_an_exit_nothing_is_taken_then(void)
{
    START(.series = name, .opener = opener);
    ta__triggers_exit();
    TOLD("");
    assert_files("");
    START(.series = name, .opener = opener);
    TEST_ASSERT_EQUAL(0, ta__triggers_take("ctl"));
    ta__triggers_exit();
    assert_reason("x.ta", "ctl");
    TEST_ASSERT_EQUAL(0, ta_recording_check(name, NULL, NULL)); /* but it is closed */
}

static void test_where_nothing_is_traced_there_may_be_nothing_to_take(void)
{
    fake_live = NULL;
    START(.series = name, .at_exit = 1, .may_rest = 1, .opener = opener);
    TEST_ASSERT_EQUAL(-1, ta__triggers_take("ctl"));
    ta__triggers_exit();
    TOLD("");
    START(.series = name, .at_exit = 1, .opener = opener);
    TEST_ASSERT_EQUAL(-1, ta__triggers_take("ctl"));
    TOLD(NOT_TRACING);
    assert_files("");
}

/* ---- names ---- */

static void test_names_have_room_for_4095_bytes(void)
{
    static char text[4097];
    memset(text, 'n', sizeof text - 1);
    for (int which = 0; which < 3; which++)
        for (int length = 4095; length <= 4096; length++) {
            text[length] = '\0';
            const struct ta__trigger_options options = {.path = which == 0 ? text : NULL,
                                                        .series = which == 1 ? text : NULL,
                                                        .family = which == 2 ? text : NULL};
            errno = 0;
            TEST_ASSERT_EQUAL(length == 4095 ? 0 : -1, ta__triggers_start(&options));
            if (length == 4096) {
                TEST_ASSERT_EQUAL(ENAMETOOLONG, errno);
                TEST_ASSERT_EQUAL_STRING("the snapshot's file name is too long", ta__error_text());
            }
            text[length] = 'n';
        }
}

static void test_forked_ones_are_numbered_or_in_the_family(void)
{
    char family[120], expected[160];
    snprintf(family, sizeof family, "%s/family", folder);
    TEST_ASSERT_EQUAL(0, mkdir(family, 0700));
    START(.series = name, .at_exit = 1, .forked = 1);
    ta__triggers_exit();
    snprintf(expected, sizeof expected, "family x.ta.%d", (int)getpid());
    assert_files(expected);
    START(.series = name, .at_exit = 1, .forked = 1, .family = family);
    ta__triggers_exit();
    snprintf(expected, sizeof expected, "family/%d.ta", (int)getpid());
    assert_reason(expected, "exit");
    START(.path = name, .at_exit = 1, .forked = 1, .family = family); /* what is there already stays */
    ta__triggers_exit();
    snprintf(expected, sizeof expected, "family/%d.ta.1", (int)getpid());
    assert_reason(expected, "exit");
    START(.series = name, .at_exit = 1, .family = family); /* this one is not forked */
    ta__triggers_exit();
    assert_reason("x.ta", "exit");
}

/* ---- children ---- */

static int wait_for(pid_t child)
{
    int status;
    TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_a_child_has_its_own_file_and_leaves_the_parents_alone(void)
{
    char expected[200];
    START(.series = name, .at_exit = 1, .opener = opener);
    TEST_ASSERT_EQUAL(0, ta__triggers_take("ctl"));
    TOLD("R# @/x.ta;");
    pid_t child = fork();
    if (child == 0) {
        int is_new = ta__triggers_last_name()[0] == '\0';
        ta__triggers_exit();
        _exit(is_new ? 0 : 1);
    }
    TEST_ASSERT_EQUAL(0, wait_for(child));
    snprintf(expected, sizeof expected, "R# @/x.ta.%d;E# exit @/x.ta.%d;", (int)child, (int)child);
    TEST_ASSERT_EQUAL_STRING(expected, told(child));
    ta__triggers_exit();
    TOLD("E# exit @/x.ta;");
    struct ta_recording *recording = ta_recording_open(name);
    TEST_ASSERT_EQUAL(2, ta_recording_entry_count(recording));
    ta_recording_close(recording);
}

static void test_children_take_none_where_they_shall_not(void)
{
    START(.series = name, .at_exit = 1, .no_children = 1, .opener = opener);
    pid_t child = fork();
    if (child == 0) {
        int is_here = ta__triggers_are_here();
        ta__triggers_exit();
        _exit(is_here);
    }
    TEST_ASSERT_EQUAL(0, wait_for(child));
    assert_files("");
    TOLD("");
}

static void test_a_child_of_vfork_is_nobody(void)
{
    START(.series = name, .at_exit = 1);
    TEST_ASSERT_EQUAL(1, ta__triggers_are_here());
    TEST_ASSERT_EQUAL(1, ta__triggers_executes(1));
    TEST_ASSERT_EQUAL(1, ta__triggers_executes(0));
    static volatile int answers[2];
    pid_t child = vfork();
    if (child == 0) {
        answers[0] = ta__triggers_are_here();
        answers[1] = ta__triggers_executes(1);
        ta__triggers_exit_now();
        _exit(0);
    }
    TEST_ASSERT_EQUAL(0, wait_for(child));
    TEST_ASSERT_EQUAL(0, answers[0]);
    TEST_ASSERT_EQUAL(0, answers[1]);
    assert_files("");
    ta__triggers_exit_now();
    assert_reason("x.ta", "exit");
    TEST_ASSERT_EQUAL(0, ta__triggers_are_here()); /* it is over */
    TEST_ASSERT_EQUAL(0, ta__triggers_executes(1));
}

/* ---- ends by a signal ---- */

/* Once in a process. */
static void test_a_fault_takes_the_last_entry_with_and_without_a_helper(void)
{
    for (int has_helper = 0; has_helper <= 1; has_helper++)
        for (int at_exit = 0; at_exit <= 1; at_exit++) {
            pid_t child = fork();
            if (child == 0) {
                const struct ta__trigger_options options = {.series = name,
                                                            .at_exit = at_exit,
                                                            .opener = opener,
                                                            .interval_ns = has_helper ? UINT64_C(3600000000000) : 0};
                int failed = ta__triggers_start(&options) != 0 || ta__triggers_take("ctl") != 0;
                errno = 77;
                ta__triggers_fault();
                _exit(failed || errno != 77);
            }
            TEST_ASSERT_EQUAL(0, wait_for(child));
            TEST_ASSERT_EQUAL_STRING("R# @/x.ta;E# end @/x.ta;", told(child));
            assert_reason("x.ta", at_exit ? "end" : "ctl");
            TEST_ASSERT_EQUAL(0, ta_recording_check(name, NULL, NULL));
            TEST_ASSERT_EQUAL(0, unlink(name));
        }
}

static void exit_on_a_signal(int number)
{
    (void)number;
    ta__triggers_exit_now();
}

/* There is no room on an alternate stack. */
static void test_nothing_is_taken_on_an_alternate_stack(void)
{
    for (int alternate = 0; alternate <= 1; alternate++) {
        pid_t child = fork();
        if (child == 0) {
            struct sigaction action = {.sa_handler = exit_on_a_signal, .sa_flags = alternate ? SA_ONSTACK : 0};
            stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
            const struct ta__trigger_options options = {.series = name, .at_exit = 1};
            int failed = ta__triggers_start(&options) != 0 || sigaltstack(&stack, NULL) != 0 ||
                         sigaction(SIGUSR1, &action, NULL) != 0;
            raise(SIGUSR1);
            _exit(failed);
        }
        TEST_ASSERT_EQUAL(0, wait_for(child));
        assert_files(alternate ? "" : "x.ta");
        unlink(name);
    }
}

/* ---- answers ---- */

static void test_what_is_asked_is_answered(void)
{
    START(.series = name, .opener = opener, .interval_ns = 5);
    TEST_ASSERT_EQUAL(1, ta__triggers_are_told());
    TEST_ASSERT_NULL(ta__triggers_lack());
    TEST_ASSERT_EQUAL(0, ta__triggers_outlive()); /* no keeper */
    TEST_ASSERT_EQUAL_UINT64(5, ta__triggers_interval());
    ta__triggers_set_interval(UINT64_C(3600000000000));
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(3600000000000), ta__triggers_interval());
    ta__triggers_stop();
    TEST_ASSERT_EQUAL(0, ta__triggers_are_told());
    START(.series = name);
    TEST_ASSERT_EQUAL(0, ta__triggers_are_told());
    START(.series = name, .opener = opener, .no_children = 1);
    TEST_ASSERT_EQUAL(0, ta__triggers_are_told());
}

static void look(void)
{
}

static void test_there_is_room_for_four_tasks(void)
{
    static const struct ta__helper_task task = {.period_ns = UINT64_MAX, .look = look};
    for (int i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL(0, ta__triggers_add_task(&task));
    errno = 0;
    TEST_ASSERT_EQUAL(-1, ta__triggers_add_task(&task));
    TEST_ASSERT_EQUAL(ENOSPC, errno);
}

int main(void)
{
    alarm(300); /* nobody is waited for so long */
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    UNITY_BEGIN();
    RUN_TEST(test_a_series_is_told_when_it_begins_and_when_it_is_whole);
    RUN_TEST(test_files_are_told_one_by_one);
    RUN_TEST(test_a_failure_is_told_once_and_no_end_after_it);
    RUN_TEST(test_without_an_exit_nothing_is_taken_then);
    RUN_TEST(test_where_nothing_is_traced_there_may_be_nothing_to_take);
    RUN_TEST(test_names_have_room_for_4095_bytes);
    RUN_TEST(test_forked_ones_are_numbered_or_in_the_family);
    RUN_TEST(test_a_child_has_its_own_file_and_leaves_the_parents_alone);
    RUN_TEST(test_children_take_none_where_they_shall_not);
    RUN_TEST(test_a_child_of_vfork_is_nobody);
    RUN_TEST(test_a_fault_takes_the_last_entry_with_and_without_a_helper);
    RUN_TEST(test_nothing_is_taken_on_an_alternate_stack);
    RUN_TEST(test_what_is_asked_is_answered);
    RUN_TEST(test_there_is_room_for_four_tasks);
    int result = UNITY_END();
    rmdir(folder);
    return result;
}
