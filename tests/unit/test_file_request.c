/* test_file_request.c: what a traced process asks of the `run` that started it, and tells it, byte by byte; and which answers it
 * takes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "snapshot/write/file_request.h"

/* ---- how long is waited: the clock and what the other side does are made up where `state` says so ---- */

static const char *state; /* of the other process, as /proc/PID/stat has it; "": it cannot be read */
static int polls, poll_fails;
static uint64_t clock_ms;

int poll(struct pollfd *watched, nfds_t count, int milliseconds)
{
    if (state == NULL)
        return (int)syscall(SYS_ppoll, watched, count, NULL, NULL, 0L);
    TEST_ASSERT_EQUAL(500, milliseconds);
    TEST_ASSERT_EQUAL(POLLIN, watched->events);
    clock_ms += 500;
    polls++;
    return poll_fails ? (errno = EINTR, -1) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (state == NULL)
        return (int)syscall(SYS_clock_gettime, (long)clock, now);
    *now = (struct timespec){(time_t)(clock_ms / 1000), (long)(clock_ms % 1000 * 1000000)};
    return 0;
}

int open(const char *path, int flags, ...)
{
    char own[40];
    snprintf(own, sizeof own, "/proc/%d/stat", (int)getpid());
    if (state == NULL || strcmp(path, own) != 0)
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
    if (*state == '\0')
        return errno = ENOENT, -1;
    int file = (int)syscall(SYS_memfd_create, "x", 0);
    return syscall(SYS_pwrite64, file, state, strlen(state), 0L) < 0 ? -1 : file;
}

/* Signals end the first waits for a lock. */
static int locks, locks_interrupted;

int flock(int file, int operation)
{
    locks++;
    if (locks <= locks_interrupted)
        return errno = EINTR, -1;
    return (int)syscall(SYS_flock, file, operation);
}

static int listener = -1;
static char name[40], packet[5000];

void setUp(void)
{
    char text[80];
    static int number;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(name, sizeof name, "ta-request-%d-%d", (int)getpid(), number++);
    memcpy(address.sun_path + 1, name, strlen(name));
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 8) != 0)
        TEST_IGNORE_MESSAGE("there are no such sockets here");
    snprintf(text, sizeof text, "%s:secret", name);
    ta__opener_set(text);
}

void tearDown(void)
{
    ta__opener_set(NULL);
    close(listener);
}

/* The packet of the next connection, which stays open. */
static int receive(void)
{
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ssize_t got = connection < 0 ? -1 : recv(connection, packet, sizeof packet - 1, 0);
    packet[got > 0 ? got : 0] = '\0';
    return connection;
}

/* ---- whom ---- */

static void test_a_name_and_a_token_say_whom(void)
{
    static const char long_part[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; /* 48 */
    char text[120];
    static const char *const none[] = {NULL, "", "name", ":token"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ta__opener_set("a:b");
        TEST_ASSERT_EQUAL_STRING("a", ta__opener_run());
        ta__opener_set(none[i]);
        TEST_ASSERT_EQUAL_STRING("", ta__opener_run());
    }
    snprintf(text, sizeof text, "%s:b", long_part);
    ta__opener_set(text);
    TEST_ASSERT_EQUAL_STRING("", ta__opener_run());
    ta__opener_set(text + 1);
    TEST_ASSERT_EQUAL_STRING(long_part + 1, ta__opener_run());
    snprintf(text, sizeof text, "a:%s", long_part);
    ta__opener_set(text);
    TEST_ASSERT_EQUAL_STRING("", ta__opener_run());
    snprintf(text, sizeof text, "a:%s", long_part + 1);
    ta__opener_set(text);
    TEST_ASSERT_EQUAL_STRING("a", ta__opener_run());
    ta__opener_set(NULL);
    errno = 77;
    ta__opener_tell('E', 1, "nobody", "");
    TEST_ASSERT_EQUAL_INT(77, errno);
    TEST_ASSERT_EQUAL_INT(-1, ta__opener_open("/x", TA__OPEN_INSTEAD));
    TEST_ASSERT_EQUAL_INT(ENOTCONN, errno);
}

/* ---- what is told ---- */

static void assert_told(const char *expected)
{
    int connection = receive();
    TEST_ASSERT_EQUAL_STRING(expected, packet);
    TEST_ASSERT_EQUAL_INT(0, recv(connection, packet, sizeof packet, 0)); /* it is closed */
    close(connection);
}

static void test_what_is_told_has_its_kind_and_process(void)
{
    char large[5000];
    errno = 77;
    ta__opener_tell('E', 4711, "exit", "x.ta");
    assert_told("secretE4711 exit x.ta");
    ta__opener_tell('X', 1, "exit", "");
    assert_told("secretX1 exit");
    ta__opener_tell('X', 1, "", "");
    assert_told("secretX1 ");
    memset(large, 'l', sizeof large);
    large[4999] = '\0';
    ta__opener_tell('E', 22, large, "more");
    int connection = receive();
    TEST_ASSERT_EQUAL(strlen("secretE") + 4096 + 511, strlen(packet));
    close(connection);
    ta__opener_tell('E', 22, "a", large);
    connection = receive();
    TEST_ASSERT_EQUAL(strlen("secretE") + 4096 + 511, strlen(packet));
    close(connection);
    TEST_ASSERT_EQUAL_INT(77, errno);
}

static void test_a_keeper_tells_on_the_connection_that_was_kept(void)
{
    int kept = ta__opener_begin(4711, 42);
    TEST_ASSERT_TRUE(kept >= 0);
    int connection = receive();
    TEST_ASSERT_EQUAL_STRING("secretB4711 42 ", packet);
    ta__opener_use(kept);
    ta__opener_tell('E', 4711, "end", "");
    TEST_ASSERT_EQUAL_INT(15, recv(connection, packet, sizeof packet, 0));
    TEST_ASSERT_EQUAL_MEMORY("secretE4711 end", packet, 15);
    ta__opener_use(-1);
    ta__opener_tell('E', 4711, "other", "");
    assert_told("secretE4711 other");
    close(kept);
    close(connection);
}

/* ---- what is asked ---- */

struct reply {
    int error, is_short, has_descriptor, has_end;
};

static void *answer(void *argument)
{
    const struct reply *reply = argument;
    int connection = receive(), file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    int error = reply->error;
    struct iovec part = {&error, reply->is_short ? 1 : sizeof error};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (reply->has_descriptor) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        control.header =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &file, sizeof file);
    }
    if (!reply->has_end)
        sendmsg(connection, &message, MSG_NOSIGNAL);
    close(file);
    close(connection);
    return NULL;
}

static int ask(struct reply reply, const char *path)
{
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, answer, &reply));
    errno = 0;
    int result = ta__opener_open(path, TA__OPEN_INSTEAD), error = errno;
    pthread_join(thread, NULL);
    errno = error;
    return result;
}

static void test_a_descriptor_or_a_reason_is_the_answer(void)
{
    struct stat ours, null;
    char expected[64];
    int next = open("/dev/null", O_RDONLY);
    close(next);
    int file = ask((struct reply){.has_descriptor = 1}, "/some/x.ta");
    TEST_ASSERT_TRUE(file >= 0);
    snprintf(expected, sizeof expected, "secret%c/some/x.ta", TA__OPEN_INSTEAD);
    TEST_ASSERT_EQUAL_STRING(expected, packet);
    TEST_ASSERT_EQUAL_INT(0, fstat(file, &ours));
    TEST_ASSERT_EQUAL_INT(0, stat("/dev/null", &null));
    TEST_ASSERT_TRUE(ours.st_ino == null.st_ino && ours.st_dev == null.st_dev);
    TEST_ASSERT_TRUE(fcntl(file, F_GETFD) & FD_CLOEXEC);
    close(file);
    static const struct {
        struct reply reply;
        int error;
    } cases[] = {{{.error = ENOSPC}, ENOSPC},
                 {{.error = 0}, EPROTO},
                 {{.error = -3}, EPROTO},
                 {{.error = 0, .is_short = 1}, EPROTO},
                 {{.error = EACCES, .is_short = 1}, EPROTO},
                 {{.has_end = 1}, ECONNRESET}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TEST_ASSERT_EQUAL_INT(-1, ask(cases[i].reply, "/x"));
        TEST_ASSERT_EQUAL_INT(cases[i].error, errno);
    }
    file = open("/dev/null", O_RDONLY);
    close(file);
    TEST_ASSERT_EQUAL_INT(next, file); /* nothing stays open */
}

static void test_paths_of_any_length_that_there_is_room_for_are_asked(void)
{
    static char path[8300];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = '\0';
    TEST_ASSERT_EQUAL_INT(-1, ta__opener_open(path, TA__OPEN_INSTEAD));
    TEST_ASSERT_EQUAL_INT(ENAMETOOLONG, errno);
    int connection = receive();
    TEST_ASSERT_EQUAL_STRING("", packet);
    close(connection);
    path[4096] = '\0';
    TEST_ASSERT_EQUAL_INT(-1, ask((struct reply){.error = ENOENT}, path));
    TEST_ASSERT_EQUAL_INT(ENOENT, errno);
    TEST_ASSERT_EQUAL_STRING(path, packet + strlen("secret") + 1);
}

/* One that runs may be slow, for a minute; one that is stopped or has ended will not answer. */
static void test_who_does_not_answer_is_waited_for_while_it_runs(void)
{
    static const struct {
        const char *state;
        int polls;
    } cases[] = {{"1 (a) R 1", 120}, {"1 (a) S 1", 120}, {"1 (T) D) D 1", 120}, {"1 (a) T 1", 1},
                 {"1 (a) t 1", 1},   {"1 (a) Z 1", 1},   {"1 (R) S) X 1", 1},   {"", 6},
                 {"nothing", 6},     {"1 (a)", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (poll_fails = 0; poll_fails <= 1; poll_fails++) { /* signals end it early, and the clock tells */
            polls = 0;
            clock_ms = 700;
            state = cases[i].state;
            errno = 0;
            int result = ta__opener_open("/x", TA__OPEN_INSTEAD), error = errno;
            state = NULL;
            TEST_ASSERT_EQUAL_INT(-1, result);
            TEST_ASSERT_EQUAL_INT(ECONNRESET, error);
            TEST_ASSERT_EQUAL_INT(cases[i].polls, polls);
            close(receive());
        }
}

/* The file is emptied under the lock alone, however often the wait for it is interrupted: who has it may be at work. */
static void test_a_file_that_nobody_replaces_is_emptied_under_the_lock(void)
{
    ta__opener_set(NULL);
    for (locks_interrupted = 0; locks_interrupted <= 2; locks_interrupted++) {
        struct ta__new_file file = {.descriptor = memfd_create("x", MFD_CLOEXEC), .path = "/x", .temporary = "/x.tmp"};
        TEST_ASSERT_EQUAL_INT(3, write(file.descriptor, "abc", 3));
        locks = 0;
        TEST_ASSERT_EQUAL_INT(-1, ta__opener_replace(&file, (struct ta__identity){0}));
        TEST_ASSERT_EQUAL_INT(locks_interrupted + 1, locks);
        TEST_ASSERT_EQUAL_INT(0, lseek(file.descriptor, 0, SEEK_END));
        close(file.descriptor);
    }
}

int main(void)
{
    alarm(300); /* nobody is waited for so long */
    UNITY_BEGIN();
    RUN_TEST(test_a_name_and_a_token_say_whom);
    RUN_TEST(test_what_is_told_has_its_kind_and_process);
    RUN_TEST(test_a_keeper_tells_on_the_connection_that_was_kept);
    RUN_TEST(test_a_descriptor_or_a_reason_is_the_answer);
    RUN_TEST(test_who_does_not_answer_is_waited_for_while_it_runs);
    RUN_TEST(test_paths_of_any_length_that_there_is_room_for_are_asked);
    RUN_TEST(test_a_file_that_nobody_replaces_is_emptied_under_the_lock);
    return UNITY_END();
}
