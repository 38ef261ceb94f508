/* test_memory_short.c: when memory is nearly used up, from what the kernel's files say; and which files of a group of processes
 * are read. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "snapshot/triggers/memory_short.h"

#define PLENTY "MemTotal:       16384000 kB\nMemFree:          200000 kB\nMemAvailable:   12000000 kB\n"
#define LITTLE "MemTotal:       16384000 kB\nMemFree:          200000 kB\nMemAvailable:    1000000 kB\n"

/* Files that are made up: "NAME=TEXT" each. NULL: those of this machine. */
static const char *const *files;

static const char *text_of(const char *name)
{
    size_t length = strlen(name);
    for (const char *const *file = files; *file != NULL; file++)
        if (strncmp(*file, name, length) == 0 && (*file)[length] == '=')
            return *file + length + 1;
    return NULL;
}

int open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
    va_end(rest);
    if (files == NULL)
        return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
    const char *text = text_of(name);
    int file = text == NULL ? (errno = ENOENT, -1) : memfd_create("x", MFD_CLOEXEC);
    if (file >= 0 && (write(file, text, strlen(text)) != (ssize_t)strlen(text) || lseek(file, 0, SEEK_SET) != 0))
        return -1;
    return file;
}

int access(const char *name, int mode)
{
    if (files == NULL)
        return (int)syscall(SYS_faccessat, AT_FDCWD, name, mode);
    return mode == R_OK && text_of(name) != NULL ? 0 : (errno = ENOENT, -1);
}

void setUp(void)
{
}

void tearDown(void)
{
}

static void test_the_machine(void)
{
    TEST_ASSERT_NOT_EQUAL_UINT64(0, ta__memory_texts_left(PLENTY, "", ""));
    TEST_ASSERT_EQUAL_UINT64(0, ta__memory_texts_left(LITTLE, "", ""));
    TEST_ASSERT_NOT_EQUAL_UINT64(0, ta__memory_texts_left("", "", ""));
}

static void test_a_group_of_the_second_kind(void)
{
    TEST_ASSERT_NOT_EQUAL_UINT64(0, ta__memory_texts_left(PLENTY, "anon 80000000\nfile 19000000\n", "100000000\n"));
    TEST_ASSERT_EQUAL_UINT64(0, ta__memory_texts_left(PLENTY, "anon 91000000\nfile 19\n", "100000000\n"));
    TEST_ASSERT_NOT_EQUAL_UINT64(0, ta__memory_texts_left(PLENTY, "anon 91000000\nfile 19\n", "max\n"));
}

static void test_a_group_of_the_first_kind(void)
{
    TEST_ASSERT_EQUAL_UINT64(
        0, ta__memory_texts_left(PLENTY, "cache 1\nrss 3\ntotal_cache 900\ntotal_rss 91000000\n", "100000000\n"));
    TEST_ASSERT_NOT_EQUAL_UINT64(0,
                                 ta__memory_texts_left(PLENTY, "cache 1\nrss 99000000\ntotal_rss 10\n", "100000000\n"));
    TEST_ASSERT_NOT_EQUAL_UINT64(
        0, ta__memory_texts_left(PLENTY, "cache 1\ntotal_rss 91000000\n", "9223372036854771712\n")); /* no limit */
}

/* By half of it memory is looked at again, so it must be neither more nor far less than there is. */
static void test_what_is_left_is_said(void)
{
    TEST_ASSERT_EQUAL_UINT64((12000000 - 1638400 + 1) * UINT64_C(1024), ta__memory_texts_left(PLENTY, "", ""));
    TEST_ASSERT_EQUAL_UINT64(10000001, ta__memory_texts_left(PLENTY, "anon 80000000\nfile 19\n", "100000000\n"));
    TEST_ASSERT_EQUAL_UINT64(1, ta__memory_texts_left(PLENTY, "anon 90000000\nfile 19\n", "100000000\n"));
}

static void test_this_machine_answers(void)
{
    TEST_ASSERT_LESS_THAN_UINT64(UINT64_C(1) << 50, ta__memory_left_until_short()); /* of a machine's, not of none */
}

/* ---- each bound from both sides ---- */

static void test_a_tenth_of_the_machine_is_kept(void)
{
    TEST_ASSERT_EQUAL_UINT64(1024, ta__memory_texts_left("MemTotal: 1009 kB\nMemAvailable: 100 kB\n", "", ""));
    TEST_ASSERT_EQUAL_UINT64(0, ta__memory_texts_left("MemTotal: 1009 kB\nMemAvailable: 99 kB\n", "", ""));
    TEST_ASSERT_EQUAL_UINT64(2048, ta__memory_texts_left("MemTotal: 9 kB\nMemAvailable: 1 kB\n", "", ""));
    TEST_ASSERT_EQUAL_UINT64(UINT64_MAX / 4, ta__memory_texts_left("MemAvailable: 1 kB\n", "", ""));
}

static void test_a_tenth_of_the_group_is_kept(void)
{
#define MACHINE "MemTotal: 1000 kB\nMemAvailable: 900 kB\n"
    TEST_ASSERT_EQUAL_UINT64(801 * 1024, ta__memory_texts_left(MACHINE, "anon 0\n", "0\n"));
    TEST_ASSERT_EQUAL_UINT64(801 * 1024,
                             ta__memory_texts_left(MACHINE, "anon 5\n", "1025024\n")); /* beyond the machine */
    TEST_ASSERT_EQUAL_UINT64(801 * 1024,
                             ta__memory_texts_left(MACHINE, "anon 5\n", "1025023\n")); /* the machine has less */
    TEST_ASSERT_EQUAL_UINT64(0, ta__memory_texts_left(MACHINE, "anon 922522\n", "1025023\n"));
    TEST_ASSERT_EQUAL_UINT64(1, ta__memory_texts_left(MACHINE, "anon 922521\n", "1025023\n"));
    TEST_ASSERT_EQUAL_UINT64(801 * 1024, ta__memory_texts_left(MACHINE, "anon 922521\n", "1025024\n"));
    TEST_ASSERT_EQUAL_UINT64(91, ta__memory_texts_left(MACHINE, "anon 0\n", "100\n"));
    TEST_ASSERT_EQUAL_UINT64(1, ta__memory_texts_left(MACHINE, "anon 90\n", "100\n"));
    TEST_ASSERT_EQUAL_UINT64(0, ta__memory_texts_left(MACHINE, "anon 91\n", "100\n"));
    TEST_ASSERT_EQUAL_UINT64(51, ta__memory_texts_left(MACHINE, "file 7\nanon 40\n", "100\n"));
    TEST_ASSERT_EQUAL_UINT64(41,
                             ta__memory_texts_left(MACHINE, "anon 40\ntotal_rss 50\n", "100\n")); /* of all below it */
    TEST_ASSERT_EQUAL_UINT64(91, ta__memory_texts_left(MACHINE, "canon 40\n", "100\n"));
}

/* The files are looked for once, so each case has a process of its own. */
static uint64_t left_with(const char *const *given)
{
    uint64_t *left = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t child = fork();
    if (child == 0) {
        files = given;
        *left = ta__memory_left_until_short();
        _exit(ta__memory_left_until_short() == *left ? 0 : 1);
    }
    TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL(0, status);
    uint64_t result = *left;
    munmap(left, 4096);
    return result;
}

#define LEFT(expected, ...) TEST_ASSERT_EQUAL_UINT64(expected, left_with((const char *const[]){__VA_ARGS__, NULL}))
#define INFO                "/proc/meminfo=" MACHINE
#define SECOND              "/proc/self/cgroup=0::/a/b\n"
#define FIRST               "/proc/self/cgroup=12:cpu:/c\n5:memory:/m\n0::/a/b\n"

static void test_the_files_of_the_group_are_found(void)
{
    LEFT(801 * 1024, INFO);
    LEFT(801 * 1024, INFO, SECOND);
    LEFT(801 * 1024, INFO, "/sys/fs/cgroup/memory.max=100\n", "/sys/fs/cgroup/memory.stat=anon 40\n"); /* in no group */
    LEFT(51, INFO, SECOND, "/sys/fs/cgroup/a/b/memory.max=100\n", "/sys/fs/cgroup/a/b/memory.stat=anon 40\n",
         "/sys/fs/cgroup/memory.max=200\n", "/sys/fs/cgroup/memory.stat=anon 10\n");
    LEFT(171, INFO, SECOND, "/sys/fs/cgroup/memory.max=200\n",
         "/sys/fs/cgroup/memory.stat=anon 10\n");                          /* a container */
    LEFT(801 * 1024, INFO, SECOND, "/sys/fs/cgroup/a/b/memory.max=100\n"); /* half of it is none */
    LEFT(61, INFO, FIRST, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes=100\n",
         "/sys/fs/cgroup/memory/m/memory.stat=cache 1\ntotal_rss 30\n", "/sys/fs/cgroup/a/b/memory.max=100\n",
         "/sys/fs/cgroup/a/b/memory.stat=anon 40\n");
    LEFT(51, INFO, FIRST, "/sys/fs/cgroup/a/b/memory.max=100\n", "/sys/fs/cgroup/a/b/memory.stat=anon 40\n");
}

static void test_names_of_groups_beyond_all_measure_are_passed_over(void)
{
    char group[700], limit[700], stat[700];
    for (int more = 0; more <= 1; more++) {
        int length = 512 - (int)strlen("/sys/fs/cgroup") - (int)strlen("memory.max") - 2 + more;
        char name[600];
        memset(name, 'g', sizeof name);
        name[0] = '/';
        name[length] = '\0';
        snprintf(group, sizeof group, "/proc/self/cgroup=0::%s\n", name);
        snprintf(limit, sizeof limit, "/sys/fs/cgroup%s/memory.max=100\n", name);
        snprintf(stat, sizeof stat, "/sys/fs/cgroup/memory.stat=anon 40\n");
        LEFT(more ? 141 : 51, INFO, group, limit, stat, "/sys/fs/cgroup/memory.max=200\n");
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_machine);
    RUN_TEST(test_a_group_of_the_second_kind);
    RUN_TEST(test_a_group_of_the_first_kind);
    RUN_TEST(test_what_is_left_is_said);
    RUN_TEST(test_a_tenth_of_the_machine_is_kept);
    RUN_TEST(test_a_tenth_of_the_group_is_kept);
    RUN_TEST(test_the_files_of_the_group_are_found);
    RUN_TEST(test_names_of_groups_beyond_all_measure_are_passed_over);
    RUN_TEST(test_this_machine_answers); /* last: the files are found once */
    return UNITY_END();
}
