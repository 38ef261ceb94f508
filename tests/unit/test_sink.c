/* test_sink.c: where the bytes of a recording go (snapshot/format/sink.h): which calls are made, what they leave behind when
 * they fail, and which name a file gets. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/format/sink.h"
#include "tests/support/descriptors.h"

static char folder[] = "/tmp/ta_sink.XXXXXX";
static char path[64], other[160];

/* ---- calls that go as a test wants ---- */

/* Calls that succeed may leave any errno, and these do. What the next calls of write do: E is interrupted, A has no room, N fails (no space), a digit takes at most so many
 * bytes; then all is taken. Of poll: E is interrupted, T times out, B fails, R is ready. Of fsync: F fails. Of renames that
 * replace nothing: V is not possible here, N finds no file, X finds the name taken, another letter happens; the last one
 * goes on. */
static const char *write_manner = "", *poll_manner = "", *fsync_manner = "", *rename_manner = "";
static int fsyncs, polls, renames, opens_refused;
static ino_t synced;      /* what was synced last */
static uid_t owner, user; /* of what is there, of the process; 0 = as it is */
static void (*before_exchange)(void);

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    char how = *write_manner;
    write_manner += how != '\0';
    if (how == 'E' || how == 'A' || how == 'N')
        return errno = how == 'E' ? EINTR : how == 'A' ? EAGAIN : ENOSPC, -1;
    size_t most = how != '\0' ? (size_t)(how - '0') : count;
    return most == 0 && count != 0 ? 0 : syscall(SYS_write, descriptor, bytes, most < count ? most : count);
}

int poll(struct pollfd *watched, nfds_t count, int milliseconds)
{
    char how = *poll_manner;
    TEST_ASSERT_EQUAL(1, count);
    TEST_ASSERT_EQUAL(POLLOUT, watched->events);
    TEST_ASSERT_EQUAL(1000, milliseconds);
    poll_manner += how != '\0';
    polls++;
    if (how == 'E' || how == 'B')
        return errno = how == 'E' ? EINTR : EBADF, -1;
    return how == 'T' ? 0 : 1;
}

int fsync(int descriptor)
{
    char how = *fsync_manner;
    fsync_manner += how != '\0';
    struct stat status;
    fsyncs++;
    synced = syscall(SYS_fstat, descriptor, &status) == 0 ? status.st_ino : 0;
    return errno = EIO, how == 'F' ? -1 : 0;
}

uid_t geteuid(void)
{
    return user != 0 ? user : getuid();
}

static int look_at(const char *name, struct stat *status, int flags)
{
    int result = fstatat(AT_FDCWD, name, status, flags);
    if (result == 0 && owner != 0)
        status->st_uid = owner;
    return result;
}

int stat(const char *name, struct stat *status)
{
    return look_at(name, status, 0);
}

int lstat(const char *name, struct stat *status)
{
    return look_at(name, status, AT_SYMLINK_NOFOLLOW);
}

/* The sink comes here only to rename. */
long syscall(long number, ...)
{
    long words[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_renameat2) {
        char how = *rename_manner;
        rename_manner += how != '\0' && rename_manner[1] != '\0';
        renames++;
        if (how == 'V' || how == 'N' || how == 'X')
            return errno = how == 'V' ? EINVAL : how == 'N' ? ENOENT : EEXIST, -1;
    }
    if (number == SYS_renameat2 && words[4] == 2 && before_exchange != NULL)
        before_exchange();
    long (*libc)(long, ...) = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    return libc(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/* Of names that end in .tmp so many are taken. */
int open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
    va_end(rest);
    if ((flags & O_CREAT) != 0 && strstr(name, ".tmp") != NULL) {
        TEST_ASSERT_EQUAL(0600, mode);
        TEST_ASSERT_EQUAL(O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, flags);
        if (opens_refused > 0 && opens_refused-- > 0)
            return errno = EEXIST, -1;
    }
    return (int)syscall(SYS_openat, (long)AT_FDCWD, name, (long)flags, (long)mode);
}

/* ---- around ---- */

static void empty_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s && mkdir -m 700 %s", folder, folder);
    TEST_ASSERT_EQUAL(0, system(command));
}

static int open_before;

void setUp(void)
{
    snprintf(path, sizeof path, "%s/x.ta", folder);
    write_manner = poll_manner = fsync_manner = rename_manner = "";
    fsyncs = polls = renames = opens_refused = 0;
    owner = user = 0;
    before_exchange = NULL;
    empty_folder();
    open_before = open_descriptors();
}

void tearDown(void)
{
    TEST_ASSERT_EQUAL(open_before, open_descriptors()); /* nothing stays open */
}

static void make(const char *name, const char *text)
{
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    TEST_ASSERT_GREATER_THAN(-1, file);
    TEST_ASSERT_EQUAL(strlen(text), syscall(SYS_write, file, text, strlen(text)));
    close(file);
}

/* NULL: there is no such file. */
static void assert_text(const char *name, const char *expected)
{
    char text[64];
    int file = open(name, O_RDONLY);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[got > 0 ? got : 0] = '\0';
    if (expected == NULL)
        TEST_ASSERT_EQUAL_MESSAGE(-1, got, name);
    else
        TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, text, name);
}

static void assert_in_folder(const char *names)
{
    char command[300];
    snprintf(command, sizeof command, "test \"$(cd %s && echo $(LC_ALL=C ls -A))\" = '%s'", folder, names);
    TEST_ASSERT_EQUAL_MESSAGE(0, system(command), command);
}

static const char *numbered(const char *end)
{
    snprintf(other, sizeof other, "%s%s", path, end);
    return other;
}

static off_t length_of(int file)
{
    struct stat status;
    TEST_ASSERT_EQUAL(0, fstat(file, &status));
    return status.st_size;
}

static struct ta__sink sink;

static int open_sink(int flags)
{
    int file = open(path, flags | O_CREAT, 0600);
    TEST_ASSERT_GREATER_THAN(-1, file);
    memset(&sink, 0xee, sizeof sink);
    ta__sink_descriptor(&sink, file);
    TEST_ASSERT_EQUAL(file, sink.descriptor);
    return file;
}

static void close_sink(void)
{
    close(sink.descriptor);
    ta__buffer_free(&sink.memory);
}

/* ---- signals ---- */

static int is_pending(int number)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, number) == 1;
}

static void test_signals_of_ours_are_taken_back_and_those_of_others_stay(void)
{
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    for (int was_pending = 0; was_pending < 4; was_pending++) {
        struct ta__quiet quiet;
        sigset_t blocked, before, after;
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGPIPE);
        sigaddset(&blocked, SIGXFSZ);
        sigaddset(&blocked, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &blocked, &before);
        for (int i = 0; i < 2; i++)
            if (was_pending >> i & 1)
                raise(numbers[i]);
        errno = 77;
        ta__quiet_begin(&quiet);
        raise(SIGPIPE);
        raise(SIGXFSZ);
        raise(SIGUSR1);
        ta__quiet_end(&quiet);
        TEST_ASSERT_EQUAL(77, errno);
        for (int i = 0; i < 2; i++)
            TEST_ASSERT_EQUAL(was_pending >> i & 1, is_pending(numbers[i]));
        TEST_ASSERT_TRUE(is_pending(SIGUSR1));
        pthread_sigmask(SIG_BLOCK, NULL, &after);
        TEST_ASSERT_EQUAL(1, sigismember(&after, SIGUSR1));
        const struct timespec now = {0, 0};
        while (sigtimedwait(&blocked, NULL, &now) > 0)
            continue;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        ta__quiet_begin(&quiet);
        pthread_sigmask(SIG_BLOCK, NULL, &after);
        TEST_ASSERT_EQUAL(1, sigismember(&after, SIGPIPE) & sigismember(&after, SIGXFSZ));
        errno = 77;
        ta__quiet_end(&quiet); /* none came */
        TEST_ASSERT_EQUAL(77, errno);
        pthread_sigmask(SIG_BLOCK, NULL, &after);
        TEST_ASSERT_EQUAL(0, sigismember(&after, SIGPIPE) | sigismember(&after, SIGXFSZ));
    }
}

/* ---- descriptors ---- */

static void test_a_descriptor_is_known_again(void)
{
    struct stat status;
    int file = open_sink(O_RDWR), null = open("/dev/null", O_RDONLY), ends[2];
    char name[160], small[8];
    errno = 77;
    TEST_ASSERT_EQUAL(0, fstat(file, &status));
    struct ta__identity identity = ta__identity_of(file), none = ta__identity_of(-1);
    TEST_ASSERT_EQUAL_UINT64(status.st_ino, identity.inode);
    TEST_ASSERT_EQUAL_UINT64(status.st_dev, identity.device);
    TEST_ASSERT_EQUAL_UINT64(0, none.inode | none.device);
    TEST_ASSERT_TRUE(ta__is_identical(file, identity));
    TEST_ASSERT_FALSE(ta__is_identical(null, identity));
    TEST_ASSERT_FALSE(ta__is_identical(-1, none));
    TEST_ASSERT_FALSE(ta__is_identical(file, (struct ta__identity){identity.device + 1, identity.inode}));
    TEST_ASSERT_FALSE(ta__is_identical(file, (struct ta__identity){identity.device, identity.inode + 1}));
    TEST_ASSERT_EQUAL(77, errno);
    TEST_ASSERT_EQUAL(0, ta__descriptor_name(file, name, sizeof name));
    TEST_ASSERT_EQUAL_STRING(path, name);
    memset(small, '#', sizeof small);
    TEST_ASSERT_EQUAL(0, ta__descriptor_name(null, small, 5));
    TEST_ASSERT_EQUAL_STRING("/dev", small);
    TEST_ASSERT_EQUAL(-1, ta__descriptor_name(-1, name, sizeof name));
    TEST_ASSERT_EQUAL_STRING("", name);
    TEST_ASSERT_EQUAL(0, pipe(ends));
    TEST_ASSERT_EQUAL(-1, ta__descriptor_name(ends[0], name, sizeof name)); /* it has no name */
    close(ends[0]);
    close(ends[1]);
    close(null);
    close_sink();
}

/* ---- bytes ---- */

static void test_bytes_are_gathered_up_to_a_mebibyte(void)
{
    static char bytes[1 << 20];
    int file = open_sink(O_RDWR);
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, bytes, sizeof bytes - 1));
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, bytes, 1));
    TEST_ASSERT_EQUAL(0, length_of(file));
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "x", 1));
    TEST_ASSERT_EQUAL(1 << 20, length_of(file));
    TEST_ASSERT_EQUAL_UINT64((1 << 20) + 1, sink.written);
    TEST_ASSERT_EQUAL(1, sink.memory.length);
    TEST_ASSERT_EQUAL(0, ta__sink_flush(&sink));
    TEST_ASSERT_EQUAL((1 << 20) + 1, length_of(file));
    TEST_ASSERT_EQUAL(0, sink.memory.length);
    close_sink();
    memset(&sink, 0xee, sizeof sink);
    ta__sink_memory(&sink);
    for (int i = 0; i < 3; i++)
        TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, bytes, sizeof bytes));
    TEST_ASSERT_EQUAL(0, ta__sink_flush(&sink));
    TEST_ASSERT_EQUAL(3 << 20, sink.memory.length);
    ta__buffer_free(&sink.memory);
}

static void test_all_is_written_in_whatever_pieces_it_is_taken(void)
{
    static const char *const manners[] = {"", "1", "123", "E", "1E2EE3", "EEEE1"};
    for (size_t i = 0; i < sizeof manners / sizeof *manners; i++) {
        int file = open_sink(O_RDWR | O_TRUNC);
        TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "some bytes", 10));
        write_manner = manners[i];
        errno = 77;
        TEST_ASSERT_EQUAL(0, ta__sink_flush(&sink));
        TEST_ASSERT_EQUAL(77, errno);
        TEST_ASSERT_EQUAL(10, length_of(file));
        assert_text(path, "some bytes");
        close_sink();
    }
}

static void test_what_cannot_be_written_is_an_error_that_stays(void)
{
    static const struct {
        const char *writes, *polls;
        int error, polled;
    } cases[] = {{"N", "", ENOSPC, 0},     {"3N", "", ENOSPC, 0}, {"0", "", EIO, 0},
                 {"A", "T", ETIMEDOUT, 1}, {"A", "B", EBADF, 1},  {"A", "EET", ETIMEDOUT, 3},
                 {"A", "R", 0, 1},         {"AA", "RR", 0, 2},    {"A2A", "RER", 0, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int file = open_sink(O_RDWR | O_TRUNC);
        TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "some bytes", 10));
        write_manner = cases[i].writes;
        poll_manner = cases[i].polls;
        polls = 0;
        TEST_ASSERT_EQUAL(cases[i].error == 0 ? 0 : -1, ta__sink_flush(&sink));
        TEST_ASSERT_EQUAL(cases[i].error, sink.error);
        TEST_ASSERT_EQUAL(cases[i].polled, polls);
        if (cases[i].error == 0) {
            TEST_ASSERT_EQUAL(10, length_of(file));
        } else {
            TEST_ASSERT_EQUAL(-1, ta__sink_flush(&sink));
            TEST_ASSERT_EQUAL(-1, ta__sink_write(&sink, "x", 1));
            TEST_ASSERT_EQUAL_UINT64(10, sink.written);
        }
        close_sink();
    }
    ta__sink_memory(&sink);
    sink.error = ENOMEM;
    TEST_ASSERT_EQUAL(-1, ta__sink_flush(&sink));
    TEST_ASSERT_EQUAL(-1, ta__sink_write(&sink, "x", 1));
}

static void test_a_flush_that_a_write_needs_may_fail(void)
{
    static char bytes[1 << 20];
    open_sink(O_RDWR);
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, bytes, sizeof bytes));
    write_manner = "N";
    TEST_ASSERT_EQUAL(-1, ta__sink_write(&sink, "x", 1));
    TEST_ASSERT_EQUAL(ENOSPC, sink.error);
    TEST_ASSERT_EQUAL_UINT64(1 << 20, sink.written);
    close_sink();
}

/* A program that closed its descriptors gets 0 for the next file. */
static void test_descriptor_0_is_one_like_others(void)
{
    static char bytes[1 << 20];
    int kept = dup(0), file = open_sink(O_RDWR);
    TEST_ASSERT_EQUAL(0, dup2(file, 0));
    ta__sink_descriptor(&sink, 0);
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, bytes, sizeof bytes));
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "abc", 3));
    TEST_ASSERT_EQUAL(1 << 20, length_of(file));
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, (1 << 20) + 1));
    TEST_ASSERT_EQUAL(1, sink.memory.length);
    TEST_ASSERT_EQUAL(0, ta__sink_flush(&sink));
    TEST_ASSERT_EQUAL((1 << 20) + 1, length_of(file));
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 4));
    TEST_ASSERT_EQUAL(4, length_of(file));
    ta__buffer_free(&sink.memory);
    dup2(kept, 0);
    close(kept);
    close(file);
}

static void test_without_memory_nothing_is_gathered(void)
{
    open_sink(O_RDWR);
    ta__memory_inject_failure(1, 0);
    TEST_ASSERT_EQUAL(-1, ta__sink_write(&sink, "x", 1));
    ta__memory_inject_failure(0, 0);
    TEST_ASSERT_EQUAL(ENOMEM, sink.error);
    TEST_ASSERT_EQUAL_UINT64(0, sink.written);
    TEST_ASSERT_EQUAL(-1, ta__sink_write(&sink, "x", 1));
    close_sink();
}

/* Each way to cut: in memory, in the file, in both, after an error. */
static void test_what_is_behind_a_length_is_cut(void)
{
    int file = open_sink(O_RDWR);
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "0123456789", 10));
    TEST_ASSERT_EQUAL(0, ta__sink_flush(&sink));
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "abcdef", 6));
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 13));
    TEST_ASSERT_EQUAL(3, sink.memory.length);
    TEST_ASSERT_EQUAL_UINT64(13, sink.written);
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 10));
    TEST_ASSERT_EQUAL(0, sink.memory.length);
    TEST_ASSERT_EQUAL(10, length_of(file));
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "xyz", 3));
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 4));
    TEST_ASSERT_EQUAL(0, sink.memory.length);
    TEST_ASSERT_EQUAL(4, length_of(file));
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "new", 3));
    write_manner = "1N";
    TEST_ASSERT_EQUAL(-1, ta__sink_flush(&sink));
    TEST_ASSERT_EQUAL(5, length_of(file));
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 4)); /* what went there in part goes, too */
    TEST_ASSERT_EQUAL(0, sink.error);
    TEST_ASSERT_EQUAL(4, length_of(file));
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 0));
    TEST_ASSERT_EQUAL(0, length_of(file));
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "end", 3));
    TEST_ASSERT_EQUAL(0, ta__sink_flush(&sink));
    assert_text(path, "end");
    close_sink();
    ta__sink_memory(&sink);
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "0123456789", 10));
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 4));
    TEST_ASSERT_EQUAL(4, sink.memory.length);
    TEST_ASSERT_EQUAL_UINT64(4, sink.written);
    ta__buffer_free(&sink.memory);
}

static void test_what_cannot_be_cut_is_torn_or_an_error(void)
{
    int file = open_sink(O_RDWR), mine = dup(file);
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "0123456789", 10));
    TEST_ASSERT_EQUAL(0, ta__sink_flush(&sink));
    int null = open("/dev/null", O_WRONLY);
    dup2(null, file);
    close(null);
    TEST_ASSERT_EQUAL(0, ta__sink_write(&sink, "abc", 3));
    TEST_ASSERT_EQUAL(-1, ta__sink_flush(&sink));
    TEST_ASSERT_EQUAL(EBADF, sink.error);
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 4));
    TEST_ASSERT_EQUAL(1, sink.is_torn);
    TEST_ASSERT_EQUAL(10, length_of(mine));
    dup2(mine, file);
    TEST_ASSERT_EQUAL(0, ta__sink_cut(&sink, 4)); /* ours again */
    TEST_ASSERT_EQUAL(0, sink.is_torn);
    TEST_ASSERT_EQUAL(4, length_of(mine));
    close(mine);
    close_sink();
    open_sink(O_RDONLY);
    sink.written = 4;
    TEST_ASSERT_EQUAL(-1, ta__sink_cut(&sink, 2));
    TEST_ASSERT_EQUAL(EINVAL, sink.error);
    close_sink();
}

/* ---- new files ---- */

static struct ta__new_file file_made;

static void open_file(const char *text)
{
    memset(&file_made, 0xee, sizeof file_made);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__new_file_open(&file_made, path), ta__error_text());
    TEST_ASSERT_EQUAL_UINT64(0, file_made.spared_ns);
    TEST_ASSERT_EQUAL(0, file_made.keeps_older);
    TEST_ASSERT_EQUAL(0, file_made.is_hasty);
    TEST_ASSERT_EQUAL(0, file_made.direct);
    TEST_ASSERT_EQUAL(strlen(text), syscall(SYS_write, file_made.descriptor, text, strlen(text)));
}

static void test_a_new_file_has_a_name_of_its_own_until_it_is_whole(void)
{
    char first[4096];
    make(path, "old");
    open_file("new");
    size_t length = strlen(path);
    TEST_ASSERT_EQUAL_STRING(path, file_made.path);
    TEST_ASSERT_EQUAL(0, file_made.direct);
    TEST_ASSERT_EQUAL_STRING_LEN(path, file_made.temporary, length);
    TEST_ASSERT_EQUAL_CHAR('.', file_made.temporary[length]);
    TEST_ASSERT_EQUAL(10, strspn(file_made.temporary + length + 1, "0123456789abcdefghijklmnopqrstuv"));
    TEST_ASSERT_EQUAL_STRING(".tmp", file_made.temporary + length + 11);
    assert_text(path, "old");
    assert_text(file_made.temporary, "new");
    strcpy(first, file_made.temporary);
    errno = 77;
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 0));
    TEST_ASSERT_EQUAL(77, errno);
    TEST_ASSERT_EQUAL(-1, file_made.descriptor);
    TEST_ASSERT_EQUAL(2, fsyncs); /* the file, the folder */
    assert_text(path, "new");
    assert_in_folder("x.ta");
    open_file("third");
    TEST_ASSERT_NOT_EQUAL(0, strcmp(first, file_made.temporary));
    errno = 77;
    ta__new_file_abandon(&file_made);
    TEST_ASSERT_EQUAL(77, errno);
    TEST_ASSERT_EQUAL(-1, file_made.descriptor);
    assert_text(path, "new");
    assert_in_folder("x.ta");
}

static void test_a_file_may_stay_open_and_need_not_wait_for_the_disk(void)
{
    open_file("new");
    file_made.is_hasty = 1;
    int descriptor = file_made.descriptor;
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 1));
    TEST_ASSERT_EQUAL(0, fsyncs);
    TEST_ASSERT_EQUAL(descriptor, file_made.descriptor);
    TEST_ASSERT_EQUAL(3, length_of(descriptor));
    close(descriptor);
}

/* The folder is synced after the file, by whatever name it was called. */
static void test_the_folder_is_synced_last(void)
{
    struct stat status;
    char before[200];
    TEST_ASSERT_EQUAL(0, stat(folder, &status));
    open_file("new");
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 0));
    TEST_ASSERT_EQUAL_UINT64(status.st_ino, synced);
    TEST_ASSERT_NOT_NULL(getcwd(before, sizeof before));
    TEST_ASSERT_EQUAL(0, chdir(folder));
    strcpy(path, "x.ta");
    synced = 0;
    open_file("new");
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 0));
    TEST_ASSERT_EQUAL_UINT64(status.st_ino, synced);
    TEST_ASSERT_EQUAL(0, chdir(before));
}

static void test_descriptor_0_may_be_that_of_a_file(void)
{
    int kept = dup(0);
    close(0);
    open_file("new");
    int descriptor = file_made.descriptor;
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 0));
    open_file("newer");
    ta__new_file_abandon(&file_made);
    int is_closed = fcntl(0, F_GETFD) < 0;
    TEST_ASSERT_EQUAL(0, unlink(path));
    TEST_ASSERT_EQUAL(0, symlink("/dev/null", path));
    int opened = ta__new_file_open(&file_made, path), of_device = file_made.descriptor;
    ta__new_file_abandon(&file_made);
    dup2(kept, 0);
    close(kept);
    TEST_ASSERT_EQUAL(0, descriptor);
    TEST_ASSERT_TRUE(is_closed);
    TEST_ASSERT_EQUAL(0, opened);
    TEST_ASSERT_EQUAL(0, of_device);
}

static void test_abandoned_keeps_errno_whatever_is_gone(void)
{
    open_file("new");
    unlink(file_made.temporary);
    errno = 77;
    ta__new_file_abandon(&file_made);
    TEST_ASSERT_EQUAL(77, errno);
}

/* A link, a pipe or a device of somebody else may be a trap; those of root are not. */
static void test_only_what_is_trusted_is_written_through(void)
{
    snprintf(other, sizeof other, "%s/link", folder);
    make(path, "old");
    TEST_ASSERT_EQUAL(0, symlink("x.ta", other));
    user = 1000;
    owner = 1001;
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, other));
    TEST_ASSERT_EQUAL(ELOOP, errno);
    TEST_ASSERT_EQUAL(-1, file_made.descriptor);
    TEST_ASSERT_EQUAL_STRING_LEN("cannot write through another user's link /tmp/", ta__error_text(), 46);
    owner = 1000;
    TEST_ASSERT_EQUAL(0, ta__new_file_open(&file_made, other));
    ta__new_file_abandon(&file_made);
    TEST_ASSERT_EQUAL(0, unlink(path));
    TEST_ASSERT_EQUAL(0, mkfifo(path, 0600));
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    TEST_ASSERT_EQUAL(0, ta__new_file_open(&file_made, path));
    ta__new_file_abandon(&file_made);
    owner = 1001;
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, path));
    TEST_ASSERT_EQUAL(EACCES, errno);
    TEST_ASSERT_EQUAL(0, ta__new_file_open(&file_made, "/dev/null"));
    ta__new_file_abandon(&file_made);
    if (getuid() == 0) {
        owner = 0;
        TEST_ASSERT_EQUAL(0, ta__new_file_open(&file_made, path));
        ta__new_file_abandon(&file_made);
    }
    close(reader);
}

static void test_sixteen_names_are_tried(void)
{
    opens_refused = 15;
    open_file("new");
    ta__new_file_abandon(&file_made);
    opens_refused = 16;
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, path));
    TEST_ASSERT_EQUAL(EEXIST, errno);
    snprintf(other, sizeof other, "cannot create a file beside %s: File exists", path);
    TEST_ASSERT_EQUAL_STRING(other, ta__error_text());
    snprintf(path, sizeof path, "%s/no/x.ta", folder);
    opens_refused = 1;
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, path));
    TEST_ASSERT_EQUAL(ENOENT, errno);
    TEST_ASSERT_EQUAL(-1, file_made.descriptor);
    opens_refused = 0;
}

static void test_names_have_1_to_4063_bytes(void)
{
    char name[4200];
    file_made.descriptor = 5;
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, ""));
    TEST_ASSERT_EQUAL(ENOENT, errno);
    TEST_ASSERT_EQUAL(-1, file_made.descriptor);
    memset(name, '/', sizeof name);
    snprintf(name + 4063 - strlen(path), sizeof path, "%s", path);
    TEST_ASSERT_EQUAL(4063, strlen(name));
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__new_file_open(&file_made, name), ta__error_text());
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 0));
    assert_in_folder("x.ta");
    memmove(name + 1, name, 4064);
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, name));
    TEST_ASSERT_EQUAL(ENAMETOOLONG, errno);
}

static void test_a_link_stays_and_what_it_points_to_is_replaced(void)
{
    make(path, "old");
    snprintf(other, sizeof other, "%s/link", folder);
    TEST_ASSERT_EQUAL(0, symlink("x.ta", other));
    memset(&file_made, 0xee, sizeof file_made);
    TEST_ASSERT_EQUAL(0, ta__new_file_open(&file_made, other));
    TEST_ASSERT_EQUAL_STRING(path, file_made.path);
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 0));
    assert_text(path, "");
    assert_in_folder("link x.ta");
    unlink(path);
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, other));
    TEST_ASSERT_EQUAL(ENOENT, errno);
    TEST_ASSERT_EQUAL_STRING_LEN("cannot write /tmp/", ta__error_text(), 18);
    unlink(other);
    TEST_ASSERT_EQUAL(0, symlink("/dev/null", other));
    TEST_ASSERT_EQUAL(0, ta__new_file_open(&file_made, other));
    TEST_ASSERT_EQUAL(1, file_made.direct);
    TEST_ASSERT_EQUAL_STRING(other, file_made.path);
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 0));
    assert_in_folder("link");
}

static void test_pipes_and_devices_are_written_directly_and_nothing_else(void)
{
    TEST_ASSERT_EQUAL(0, mkfifo(path, 0600));
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, path));
    TEST_ASSERT_EQUAL(ENXIO, errno); /* nobody reads it */
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    TEST_ASSERT_EQUAL(0, ta__new_file_open(&file_made, path));
    TEST_ASSERT_EQUAL(1, file_made.direct);
    TEST_ASSERT_TRUE(fcntl(file_made.descriptor, F_GETFL) & O_NONBLOCK);
    TEST_ASSERT_TRUE(fcntl(file_made.descriptor, F_GETFD) & FD_CLOEXEC);
    fsync_manner = "F"; /* pipes cannot be synced */
    TEST_ASSERT_EQUAL(0, ta__new_file_commit(&file_made, 0));
    TEST_ASSERT_EQUAL(1, fsyncs);
    TEST_ASSERT_EQUAL(0, ta__new_file_open(&file_made, path));
    ta__new_file_abandon(&file_made);
    assert_in_folder("x.ta");
    close(reader);
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, folder));
    TEST_ASSERT_EQUAL(EINVAL, errno);
    snprintf(other, sizeof other, "neither a file nor a pipe or terminal of this user: %s: Invalid argument", folder);
    TEST_ASSERT_EQUAL_STRING(other, ta__error_text());
    unlink(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    TEST_ASSERT_EQUAL(0, bind(listener, (struct sockaddr *)&address, sizeof address));
    TEST_ASSERT_EQUAL(-1, ta__new_file_open(&file_made, path));
    TEST_ASSERT_EQUAL(EINVAL, errno);
    close(listener);
}

static void test_a_file_that_is_not_synced_or_not_ours_any_more_is_none(void)
{
    make(path, "old");
    open_file("new");
    fsync_manner = "F";
    TEST_ASSERT_EQUAL(-1, ta__new_file_commit(&file_made, 0));
    TEST_ASSERT_EQUAL(EIO, errno);
    snprintf(other, sizeof other, "cannot sync %s: Input/output error", path);
    TEST_ASSERT_EQUAL_STRING(other, ta__error_text());
    assert_text(path, "old");
    assert_in_folder("x.ta");
    open_file("new");
    int null = open("/dev/null", O_WRONLY), taken = file_made.descriptor;
    dup2(null, taken);
    TEST_ASSERT_EQUAL(-1, ta__new_file_commit(&file_made, 0));
    TEST_ASSERT_EQUAL(EBADF, errno);
    snprintf(other, sizeof other, "cannot write %s: Bad file descriptor", path);
    TEST_ASSERT_EQUAL_STRING(other, ta__error_text());
    TEST_ASSERT_EQUAL(0, fcntl(taken, F_GETFD)); /* it is the program's */
    assert_text(path, "old");
    assert_in_folder("x.ta");
    close(taken);
    close(null);
    unlink(path);
    open_file("new");
    TEST_ASSERT_EQUAL(0, mkdir(path, 0700));
    TEST_ASSERT_EQUAL(-1, ta__new_file_commit(&file_made, 0));
    TEST_ASSERT_EQUAL(EISDIR, errno);
    TEST_ASSERT_EQUAL_STRING_LEN("cannot replace /tmp/", ta__error_text(), 20);
    assert_in_folder("x.ta");
}

/* ---- names that are spared ---- */

static int does_yield;

static int yields(void)
{
    return does_yield;
}

static void commit_sparing(uint64_t since_ns, int keeps_older)
{
    open_file("new");
    file_made.spared_ns = since_ns;
    file_made.keeps_older = keeps_older;
    file_made.yields = yields;
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__new_file_commit(&file_made, 0), ta__error_text());
}

static void test_a_file_has_appeared_when_it_was_changed_later(void)
{
    struct stat status;
    make(path, "old");
    TEST_ASSERT_EQUAL(0, stat(path, &status));
    uint64_t changed = (uint64_t)status.st_ctim.tv_sec * 1000000000u + (uint64_t)status.st_ctim.tv_nsec;
    TEST_ASSERT_EQUAL(1, ta__appeared_since(path, changed - 1));
    TEST_ASSERT_EQUAL(0, ta__appeared_since(path, changed));
    TEST_ASSERT_EQUAL(0, ta__appeared_since(path, UINT64_MAX));
    TEST_ASSERT_EQUAL(0, ta__appeared_since(folder, 1));
    unlink(path);
    TEST_ASSERT_EQUAL(0, ta__appeared_since(path, 1));
}

static void test_what_is_older_is_replaced_or_kept(void)
{
    does_yield = 0;
    make(path, "old");
    commit_sparing(UINT64_MAX, 0);
    assert_text(path, "new");
    assert_in_folder("x.ta");
    make(path, "old");
    commit_sparing(UINT64_MAX, 1);
    assert_text(path, "old");
    assert_text(numbered(".1"), "new");
    TEST_ASSERT_EQUAL_STRING(other, file_made.path);
    assert_in_folder("x.ta x.ta.1");
}

static void test_what_appeared_meanwhile_gets_a_number(void)
{
    does_yield = 0;
    make(path, "old");
    make(numbered(".1"), "one");
    commit_sparing(1, 0);
    assert_text(path, "new");
    assert_text(numbered(".1"), "one");
    assert_text(numbered(".2"), "old");
    TEST_ASSERT_EQUAL_STRING(path, file_made.path);
    assert_in_folder("x.ta x.ta.1 x.ta.2");
    unlink(path);
    commit_sparing(1, 0);
    assert_text(path, "new");
    assert_in_folder("x.ta x.ta.1 x.ta.2");
}

static void test_who_yields_gets_a_number(void)
{
    does_yield = 1;
    make(path, "old");
    commit_sparing(1, 0);
    assert_text(path, "old");
    assert_text(numbered(".1"), "new");
    TEST_ASSERT_EQUAL_STRING(other, file_made.path);
    assert_in_folder("x.ta x.ta.1");
    commit_sparing(0, 0); /* nothing is spared */
    assert_text(path, "new");
}

static void test_file_systems_that_cannot_spare_just_rename(void)
{
    does_yield = 0;
    make(path, "old");
    rename_manner = "V";
    commit_sparing(1, 1);
    assert_text(path, "new");
    assert_in_folder("x.ta");
}

static void test_who_cannot_be_given_a_number_is_replaced(void)
{
    does_yield = 0;
    make(path, "old");
    rename_manner = ".V"; /* the name is taken, and numbers cannot be given */
    commit_sparing(1, 0);
    assert_text(path, "new");
    assert_in_folder("x.ta");
    make(path, "old");
    rename_manner = ".N."; /* the other one was gone for a moment */
    commit_sparing(1, 0);
    assert_text(path, "new");
    assert_text(numbered(".1"), "old");
    make(path, "old");
    renames = 0;
    rename_manner = "XNXNXNXNXNXNXNXNXNXNXNXN";
    commit_sparing(1, 0);
    TEST_ASSERT_EQUAL(20, renames); /* ten times, not for ever */
    assert_text(path, "new");
}

static void test_numbers_end_at_9999(void)
{
    char name[80];
    make(path, "it");
    strcpy(name, path);
    rename_manner = "X";
    TEST_ASSERT_EQUAL(-1, ta__give_number(path, name, sizeof name));
    TEST_ASSERT_EQUAL(EEXIST, errno);
    TEST_ASSERT_EQUAL(9999, renames);
    TEST_ASSERT_EQUAL_STRING(path, name);
}

static void test_the_first_free_number_is_given(void)
{
    char name[80];
    make(path, "it");
    make(numbered(".1"), "one");
    make(numbered(".3"), "three");
    snprintf(name, sizeof name, "%s", path);
    TEST_ASSERT_EQUAL(0, ta__give_number(path, name, strlen(path) + 8));
    assert_text(numbered(".2"), "it");
    TEST_ASSERT_EQUAL_STRING(other, name);
    strcpy(name, path);
    TEST_ASSERT_EQUAL(-1, ta__give_number(numbered(".3"), name, strlen(path) + 7));
    TEST_ASSERT_EQUAL(ENAMETOOLONG, errno);
    TEST_ASSERT_EQUAL(-1, ta__give_number(path, name, sizeof name));
    TEST_ASSERT_EQUAL(ENOENT, errno);
    TEST_ASSERT_EQUAL_STRING(path, name);
    assert_in_folder("x.ta.1 x.ta.2 x.ta.3");
}

/* ---- in the place of another ---- */

static struct ta__identity identity_at(const char *name)
{
    int file = open(name, O_RDONLY);
    struct ta__identity identity = ta__identity_of(file);
    close(file);
    return identity;
}

static void test_a_file_takes_the_place_of_ours_alone(void)
{
    make(path, "ours");
    struct ta__identity ours = identity_at(path);
    open_file("new");
    errno = 77;
    TEST_ASSERT_EQUAL(0, ta__new_file_replace(&file_made, ours));
    TEST_ASSERT_EQUAL(77, errno);
    TEST_ASSERT_EQUAL(2, fsyncs);
    TEST_ASSERT_EQUAL(3, length_of(file_made.descriptor)); /* it stays open */
    close(file_made.descriptor);
    assert_text(path, "new");
    assert_in_folder("x.ta");
    open_file("newer");
    TEST_ASSERT_EQUAL(-1, ta__new_file_replace(&file_made, ours));
    TEST_ASSERT_EQUAL(EBUSY, errno);
    snprintf(other, sizeof other, "cannot replace %s: Device or resource busy", path);
    TEST_ASSERT_EQUAL_STRING(other, ta__error_text());
    TEST_ASSERT_EQUAL(-1, file_made.descriptor);
    assert_text(path, "new");
    assert_in_folder("x.ta");
    struct ta__identity elsewhere = identity_at(path);
    elsewhere.device++;
    open_file("newer");
    TEST_ASSERT_EQUAL(-1, ta__new_file_replace(&file_made, elsewhere));
    open_file("newer");
    fsync_manner = "F";
    TEST_ASSERT_EQUAL(-1, ta__new_file_replace(&file_made, identity_at(path)));
    TEST_ASSERT_EQUAL(EIO, errno);
    assert_text(path, "new");
    assert_in_folder("x.ta");
}

static void test_without_exchanging_it_is_renamed(void)
{
    make(path, "ours");
    struct ta__identity ours = identity_at(path);
    open_file("new");
    rename_manner = "V";
    TEST_ASSERT_EQUAL(0, ta__new_file_replace(&file_made, ours));
    close(file_made.descriptor);
    assert_text(path, "new");
    assert_in_folder("x.ta");
}

static void be_faster(void)
{
    before_exchange = NULL;
    unlink(path);
    make(path, "another's");
}

static void test_who_was_faster_keeps_the_name(void)
{
    make(path, "ours");
    int held = open(path, O_RDONLY); /* or its number may be used again */
    struct ta__identity ours = identity_at(path);
    open_file("new");
    before_exchange = be_faster;
    TEST_ASSERT_EQUAL(-1, ta__new_file_replace(&file_made, ours));
    TEST_ASSERT_EQUAL(EBUSY, errno);
    assert_text(path, "another's");
    assert_in_folder("x.ta");
    close(held);
}

int main(void)
{
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    UNITY_BEGIN();
    RUN_TEST(test_signals_of_ours_are_taken_back_and_those_of_others_stay);
    RUN_TEST(test_a_descriptor_is_known_again);
    RUN_TEST(test_bytes_are_gathered_up_to_a_mebibyte);
    RUN_TEST(test_all_is_written_in_whatever_pieces_it_is_taken);
    RUN_TEST(test_what_cannot_be_written_is_an_error_that_stays);
    RUN_TEST(test_a_flush_that_a_write_needs_may_fail);
    RUN_TEST(test_descriptor_0_is_one_like_others);
    RUN_TEST(test_without_memory_nothing_is_gathered);
    RUN_TEST(test_what_is_behind_a_length_is_cut);
    RUN_TEST(test_what_cannot_be_cut_is_torn_or_an_error);
    RUN_TEST(test_a_new_file_has_a_name_of_its_own_until_it_is_whole);
    RUN_TEST(test_a_file_may_stay_open_and_need_not_wait_for_the_disk);
    RUN_TEST(test_the_folder_is_synced_last);
    RUN_TEST(test_descriptor_0_may_be_that_of_a_file);
    RUN_TEST(test_abandoned_keeps_errno_whatever_is_gone);
    RUN_TEST(test_only_what_is_trusted_is_written_through);
    RUN_TEST(test_sixteen_names_are_tried);
    RUN_TEST(test_names_have_1_to_4063_bytes);
    RUN_TEST(test_a_link_stays_and_what_it_points_to_is_replaced);
    RUN_TEST(test_pipes_and_devices_are_written_directly_and_nothing_else);
    RUN_TEST(test_a_file_that_is_not_synced_or_not_ours_any_more_is_none);
    RUN_TEST(test_a_file_has_appeared_when_it_was_changed_later);
    RUN_TEST(test_what_is_older_is_replaced_or_kept);
    RUN_TEST(test_what_appeared_meanwhile_gets_a_number);
    RUN_TEST(test_who_yields_gets_a_number);
    RUN_TEST(test_file_systems_that_cannot_spare_just_rename);
    RUN_TEST(test_who_cannot_be_given_a_number_is_replaced);
    RUN_TEST(test_numbers_end_at_9999);
    RUN_TEST(test_the_first_free_number_is_given);
    RUN_TEST(test_a_file_takes_the_place_of_ours_alone);
    RUN_TEST(test_without_exchanging_it_is_renamed);
    RUN_TEST(test_who_was_faster_keeps_the_name);
    int result = UNITY_END();
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? result : 1;
}
