/* test_keeper_looks.c: what a keeper finds out of its owner (snapshot/triggers/keeper.h), and what is found out before there is one,
 * from files of /proc and answers of the kernel that are made up here. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "snapshot/triggers/keeper.h"

/* ---- the kernel: shared with the keeper, as all memory is ---- */

static struct {
    pid_t process, parent; /* 0 = as it is */
    int parent_lives;      /* so many questions later the parent is another; 0 = it stays */
    uid_t user;
    const char *file, *text; /* the one that can be read; NULL: each as it is */
    const char *link;
    struct rlimit limit;
    int limit_fails, naps;
    uint64_t seconds;
} kernel;

pid_t getpid(void)
{
    return kernel.process != 0 ? kernel.process : (pid_t)syscall(SYS_getpid);
}

pid_t getppid(void)
{
    if (kernel.parent_lives > 0 && --kernel.parent_lives == 0)
        kernel.parent = 1;
    return kernel.parent != 0 ? kernel.parent : (pid_t)syscall(SYS_getppid);
}

uid_t geteuid(void)
{
    return kernel.user;
}

int open(const char *name, int flags, ...)
{
    if (kernel.file == NULL)
        return (int)syscall(SYS_openat, AT_FDCWD, name, flags, 0);
    if (strcmp(name, kernel.file) != 0 || kernel.text == NULL)
        return errno = ENOENT, -1;
    int file = (int)syscall(SYS_memfd_create, "x", 0);
    if (file >= 0 && syscall(SYS_pwrite64, file, kernel.text, strlen(kernel.text), 0L) < 0)
        return -1;
    return file;
}

ssize_t readlink(const char *name, char *text, size_t room)
{
    TEST_ASSERT_EQUAL_STRING("/proc/self/ns/pid", name);
    size_t length = kernel.link == NULL ? 0 : strlen(kernel.link);
    TEST_ASSERT_LESS_THAN(room, length);
    memcpy(text, kernel.link == NULL ? "" : kernel.link, length);
    return kernel.link == NULL ? -1 : (ssize_t)length;
}

int getrlimit(__rlimit_resource_t what, struct rlimit *limit)
{
    if (what != RLIMIT_NPROC)
        return (int)syscall(SYS_prlimit64, 0, (long)what, NULL, limit);
    *limit = kernel.limit;
    return kernel.limit_fails ? -1 : 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    kernel.naps += time->tv_sec == 0 && time->tv_nsec == 1000000;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (kernel.seconds == 0)
        return (int)syscall(SYS_clock_gettime, (long)clock, now);
    *now = (struct timespec){(time_t)kernel.seconds, 0};
    return 0;
}

void setUp(void)
{
    memset(&kernel, 0, sizeof kernel);
}

void tearDown(void)
{
    memset(&kernel, 0, sizeof kernel);
}

/* ---- before there is one ---- */

static int fits(const char *load, rlim_t limit)
{
    kernel.file = "/proc/loadavg";
    kernel.text = load;
    kernel.limit = (struct rlimit){limit, RLIM_INFINITY};
    return ta__task_fits();
}

static void test_one_more_process_fits_where_64_more_would(void)
{
    kernel.user = 1000;
    TEST_ASSERT_EQUAL(1, fits("0.10 0.20 0.30 1/35 999", 100));
    TEST_ASSERT_EQUAL(0, fits("0.10 0.20 0.30 1/36 999", 100));
    TEST_ASSERT_EQUAL(1, fits("0.10 0.20 0.30 1/36 999", 101));
    TEST_ASSERT_EQUAL(1, fits("0.10 0.20 0.30 1/36 999", RLIM_INFINITY));
    TEST_ASSERT_EQUAL(1, fits("nothing", 100));
    TEST_ASSERT_EQUAL(1, fits(NULL, 100));
    kernel.limit_fails = 1;
    TEST_ASSERT_EQUAL(1, fits("0.10 0.20 0.30 1/36 999", 100));
    kernel.limit_fails = 0;
    kernel.user = 0; /* root has no such limit */
    TEST_ASSERT_EQUAL(1, fits("0.10 0.20 0.30 1/36 999", 100));
}

static int is_ours(const char *link, uint64_t of_run)
{
    kernel.link = link;
    return ta__namespace_is_ours(of_run);
}

static void test_the_namespace_of_processes_is_that_of_the_run(void)
{
    TEST_ASSERT_EQUAL(1, is_ours("pid:[5]", 5));
    TEST_ASSERT_EQUAL(0, is_ours("pid:[6]", 5));
    TEST_ASSERT_EQUAL(1, is_ours("pid:[4026531836]", 0)); /* the system's first one */
    TEST_ASSERT_EQUAL(0, is_ours("pid:[4026531837]", 0));
    TEST_ASSERT_EQUAL(0, is_ours("pid:[4026531835]", 0));
    TEST_ASSERT_EQUAL(0, is_ours("pid:[4026531836]", 7));
    TEST_ASSERT_EQUAL(1, is_ours("none", 5));
    TEST_ASSERT_EQUAL(1, is_ours(NULL, 5));
    kernel.process = 1; /* with init all others end */
    TEST_ASSERT_EQUAL(0, is_ours("pid:[5]", 5));
}

/* ---- the owner ---- */

static uint32_t alive;

static enum ta__owner owner(struct ta__keeper *keeper, const char *statm)
{
    kernel.file = "/proc/42/statm";
    kernel.text = statm;
    return ta__keeper_owner(keeper);
}

static void test_an_owner_runs_or_has_ended_or_runs_another_program(void)
{
    struct ta__keeper keeper = {.owner = 42, .alive = &alive};
    kernel.parent = 42;
    alive = 1;
    TEST_ASSERT_EQUAL(TA__OWNER_RUNS, owner(&keeper, NULL));
    alive = 0;
    TEST_ASSERT_EQUAL(TA__OWNER_EXECUTED, owner(&keeper, "100 1 1"));
    TEST_ASSERT_EQUAL(0, kernel.naps);
    kernel.parent = 1;
    TEST_ASSERT_EQUAL(TA__OWNER_ENDED, owner(&keeper, "100 1 1"));
    alive = 1;
    TEST_ASSERT_EQUAL(TA__OWNER_ENDED, owner(&keeper, "100 1 1"));
    kernel.parent = 42;
    keeper.alive = NULL; /* it is not known whether it has left the memory */
    TEST_ASSERT_EQUAL(TA__OWNER_RUNS, owner(&keeper, "100 1 1"));
    TEST_ASSERT_EQUAL(0, kernel.naps);
}

static void test_an_owner_that_is_ending_is_waited_for(void)
{
    struct ta__keeper keeper = {.owner = 42, .alive = &alive};
    alive = 0;
    kernel.parent = 42;
    kernel.parent_lives = 50;
    TEST_ASSERT_EQUAL(TA__OWNER_ENDED, owner(&keeper, "0 0 0"));
    TEST_ASSERT_EQUAL(48, kernel.naps);
    kernel.naps = 0;
    kernel.parent = 42; /* only its first thread has ended */
    TEST_ASSERT_EQUAL(TA__OWNER_RUNS, owner(&keeper, NULL));
    TEST_ASSERT_EQUAL(200, kernel.naps);
    TEST_ASSERT_NULL(keeper.alive);
}

static int rights_differ(struct ta__keeper *keeper, const char *status)
{
    *keeper = (struct ta__keeper){.owner = 42, .user = 77, .group = 78};
    kernel.file = "/proc/42/status";
    kernel.text = status;
    return ta__keeper_rights_differ(keeper);
}

static void test_rights_that_were_given_up_are_noticed(void)
{
    struct ta__keeper keeper;
    TEST_ASSERT_EQUAL(1, rights_differ(&keeper, "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"));
    TEST_ASSERT_EQUAL(2, keeper.user);
    TEST_ASSERT_EQUAL(6, keeper.group);
    TEST_ASSERT_EQUAL(0, rights_differ(&keeper, "Name:\tx\nUid:\t1\t0\t3\t4\nGid:\t5\t6\t7\t8\n"));
    TEST_ASSERT_EQUAL(77, keeper.user);
    TEST_ASSERT_EQUAL(78, keeper.group);
    TEST_ASSERT_EQUAL(0, rights_differ(&keeper, "Name:\tx\nUid:\t1\t2\t3\t4\n"));
    TEST_ASSERT_EQUAL(0, rights_differ(&keeper, "Name:\tx\nGid:\t1\t2\t3\t4\n"));
    TEST_ASSERT_EQUAL(0, rights_differ(&keeper, "Name:\tx\nUid:\t1"));
    TEST_ASSERT_EQUAL(0, rights_differ(&keeper, NULL));
    kernel.user = 1000;
    TEST_ASSERT_EQUAL(0, rights_differ(&keeper, "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"));
}

/* ---- faults of the owner, in a keeper ---- */

enum { SEGV = 0x400, BUS = 0x40, FPE = 0x80, ILL = 0x8, ABRT = 0x20, ALL = SEGV | BUS | FPE | ILL | ABRT };
struct look {
    uint64_t seconds;
    unsigned long blocked, ignored, caught;
    int expected;
};
static const struct look *looks;
static int look_count, wrong; /* wrong: number of the first look that is, plus one */

static void look_all(void)
{
    static char name[40], text[200];
    snprintf(name, sizeof name, "/proc/%d/status", (int)syscall(SYS_getppid));
    for (int i = 0; i < look_count && wrong == 0; i++) {
        snprintf(text, sizeof text, "Name:\tx\nSigPnd:\t%016lx\nSigBlk:\t%016lx\nSigIgn:\t%016lx\nSigCgt:\t%016lx\n",
                 ~0ul, looks[i].blocked, looks[i].ignored, looks[i].caught);
        kernel.seconds = looks[i].seconds;
        kernel.text = text;
        kernel.file = name;
        if (ta__keeper_owner_handles_fault() != looks[i].expected)
            wrong = i + 1;
    }
    kernel.file = NULL;
    kernel.seconds = 0;
}

static void assert_looks(const struct look *given, int count)
{
    static struct ta__keeper keeper;
    looks = given;
    look_count = count;
    wrong = 0;
    if (ta__keeper_start(&keeper, look_all, -1) != 0)
        TEST_IGNORE_MESSAGE("no keeper here");
    int is_done = ta__keeper_wait(&keeper, 60000);
    ta__keeper_forget(&keeper);
    TEST_ASSERT_EQUAL(1, is_done);
    TEST_ASSERT_EQUAL_MESSAGE(0, wrong, "the first look that is wrong, plus one");
}

static void test_a_blocked_fault_is_a_handler_at_work(void)
{
    static const struct look given[] = {{9, 0, 0, ALL, 0},    {9, SEGV, 0, ALL, 1},       {9, 0, 0, ALL, 0},
                                        {9, BUS, 0, ALL, 1},  {9, FPE, 0, ALL, 1},        {9, ILL, 0, ALL, 1},
                                        {9, ABRT, 0, ALL, 1}, {9, ALL, 0, ALL, 1},        {9, 0x10000, 0, ALL, 0},
                                        {9, 0x1, 0, ALL, 0},  {9, 0xfffffb17, 0, ALL, 0}, {9, 0xf0000000, 0, ALL, 0},
                                        {9, SEGV, 0, 0, 1}};
    assert_looks(given, sizeof given / sizeof *given);
}

/* Who blocks a fault from the beginning does not want it; not so one that was free once. */
static void test_a_fault_that_was_always_blocked_says_nothing(void)
{
    static const struct look given[] = {{9, SEGV, 0, 0, 0},       {9, SEGV, 0, 0, 0}, {9, SEGV | BUS, 0, 0, 1},
                                        {9, SEGV, 0, 0, 0},       {9, 0, 0, 0, 0},    {9, SEGV, 0, 0, 1},
                                        {9, SEGV | BUS, 0, 0, 1}, {9, 0, 0, 0, 0}};
    assert_looks(given, sizeof given / sizeof *given);
}

static void test_a_handler_that_was_reset_is_at_work_for_five_minutes(void)
{
    static const struct look given[] = {{9, 0, 0, ALL & ~SEGV, 0}, /* not all were ever caught */
                                        {10, 0, 0, ALL, 0},          {11, 0, 0, ALL & ~SEGV, 1},
                                        {310, 0, 0, ALL & ~ABRT, 1}, {310, 0, SEGV, ALL & ~SEGV, 0}, /* it is ignored */
                                        {310, 0, 0, 0, 0}, /* another program catches none */
                                        {310, 0, 0, ALL & ~SEGV, 1}, {310, 0, 0, ALL, 0}, /* from here on anew */
                                        {610, 0, 0, ALL & ~SEGV, 1}, {611, 0, 0, ALL & ~SEGV, 1},
                                        {611, 0, 0, ALL & ~SEGV, 0}, /* that is how it shall be */
                                        {612, 0, 0, ALL & ~SEGV, 0}};
    assert_looks(given, sizeof given / sizeof *given);
}

static void test_elsewhere_nothing_is_said_of_faults(void)
{
    TEST_ASSERT_EQUAL(0, ta__keeper_owner_handles_fault());
    uint32_t word = 0;
    ta__keeper_wait_out_fault(&word, 5); /* comes back */
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_one_more_process_fits_where_64_more_would);
    RUN_TEST(test_the_namespace_of_processes_is_that_of_the_run);
    RUN_TEST(test_an_owner_runs_or_has_ended_or_runs_another_program);
    RUN_TEST(test_an_owner_that_is_ending_is_waited_for);
    RUN_TEST(test_rights_that_were_given_up_are_noticed);
    RUN_TEST(test_a_blocked_fault_is_a_handler_at_work);
    RUN_TEST(test_a_fault_that_was_always_blocked_says_nothing);
    RUN_TEST(test_a_handler_that_was_reset_is_at_work_for_five_minutes);
    RUN_TEST(test_elsewhere_nothing_is_said_of_faults);
    return UNITY_END();
}
