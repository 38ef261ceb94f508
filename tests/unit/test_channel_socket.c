/* test_channel_socket.c: the socket of a process (snapshot/triggers/channel.c), step by step: where it is made, who may ask, who is
 * answered, and what is left in the end. The helper that looks after it is this test. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <unity.h>

#include "snapshot/triggers/channel.h"
#include "snapshot/triggers/keeper.h"
#include "snapshot/triggers/triggers.h"
#include "snapshot/write/take.h"
#include "tests/support/descriptors.h"

/* ---- the rest of the process ---- */

static const struct ta__helper_task *task;
static int added, add_fails, woken, let_through_fails;
static void (*handler)(int number);
static pid_t process; /* the owner's number, where the helper is a keeper */
static uint64_t age_ns;

int ta__triggers_add_task(const struct ta__helper_task *given)
{
    added++;
    task = given;
    return add_fails ? -1 : 0;
}

uint64_t ta__triggers_age_ns(void)
{
    return age_ns;
}

void ta__triggers_wake(void)
{
    woken++;
}

pid_t ta__snapshot_process(void)
{
    return process;
}

int ta__keeper_let_through(int number, void (*given)(int number))
{
    TEST_ASSERT_EQUAL(SIGIO, number);
    handler = given;
    return let_through_fails ? -1 : 0;
}

static char requests[3000]; /* each with what its descriptor holds */

void ta__channel_answer(struct ta__channel_answer *answer, char *request, int descriptor)
{
    char text[16] = "none";
    if (descriptor >= 0) {
        TEST_ASSERT_TRUE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
        text[pread(descriptor, text, sizeof text - 1, 0)] = '\0';
    }
    sprintf(requests + strlen(requests), "%s/%s;", request, text);
    ta__message_begin_plain(&answer->text);
    answer->is_refused = strcmp(request, "bad") == 0;
    answer->path = strcmp(request, "path") == 0 ? "/x.ta" : NULL;
    ta__message_text(&answer->text, "re ");
    ta__message_text(&answer->text, request);
}

/* ---- files and sockets: nothing outside of the test's own folder is touched ---- */

static char folder[] = "/tmp/ta_socket.XXXXXX";
static char place[64]; /* where the socket really is */
static char calls[2000];
static const char *good; /* the only folder that can be had; NULL = none */
static struct {
    uid_t owner;
    mode_t mode;
} of_folder;
static uid_t peer;
static int is_listed; /* the folders are there already */

uid_t geteuid(void)
{
    return 1234;
}

int mkdir(const char *path, mode_t mode)
{
    sprintf(calls + strlen(calls), "mkdir %s %o;", path, (unsigned)mode);
    if (good == NULL || strcmp(path, good) != 0)
        return errno = ENOENT, -1;
    return is_listed ? (errno = EEXIST, -1) : 0;
}

int lstat(const char *path, struct stat *status)
{
    memset(status, 0, sizeof *status);
    status->st_uid = of_folder.owner;
    status->st_mode = of_folder.mode;
    if (good == NULL || strcmp(path, good) != 0)
        return fstatat(AT_FDCWD, place, status, AT_SYMLINK_NOFOLLOW);
    return 0;
}

int unlink(const char *path)
{
    sprintf(calls + strlen(calls), "unlink %s;", path);
    return unlinkat(AT_FDCWD, place, 0);
}

int bind(int socket, const struct sockaddr *address, socklen_t length)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    TEST_ASSERT_EQUAL(sizeof here, length);
    TEST_ASSERT_EQUAL(AF_UNIX, address->sa_family);
    sprintf(calls + strlen(calls), "bind %s;", ((const struct sockaddr_un *)address)->sun_path);
    strcpy(here.sun_path, place);
    return (int)syscall(SYS_bind, socket, &here, sizeof here);
}

int getsockopt(int socket, int level, int option, void *value, socklen_t *length)
{
    TEST_ASSERT_EQUAL(SOL_SOCKET, level);
    TEST_ASSERT_EQUAL(SO_PEERCRED, option);
    int result = (int)syscall(SYS_getsockopt, socket, level, option, value, length);
    ((struct ucred *)value)->uid = peer;
    return result;
}

int fcntl(int file, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    long argument = command == F_GETFD || command == F_GETFL ? 0 : va_arg(rest, long);
    va_end(rest);
    if (command == F_SETOWN && (int)argument == getpid())
        strcat(calls, "own;");
    if (command == F_SETFL && (int)argument == (O_NONBLOCK | O_ASYNC))
        strcat(calls, "async;");
    return (int)syscall(SYS_fcntl, file, command, argument);
}

/* ---- around ---- */

static int open_before;

void setUp(void)
{
    snprintf(place, sizeof place, "%s/socket", folder);
    unlinkat(AT_FDCWD, place, 0);
    process = getpid();
    age_ns = 50000000;
    good = "/tmp/tracealloc-1234";
    of_folder.owner = peer = 1234;
    of_folder.mode = S_IFDIR | 0700;
    is_listed = let_through_fails = woken = 0;
    calls[0] = requests[0] = '\0';
    open_before = open_descriptors();
    ta__channel_prepare();
    task->begin();
}

void tearDown(void)
{
    task->end();
    TEST_ASSERT_EQUAL(open_before, open_descriptors());
}

static int connect_here(void)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    strcpy(here.sun_path, place);
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(connection, (struct sockaddr *)&here, sizeof here) == 0)
        return connection;
    close(connection);
    return -1;
}

static void ask(int connection, const char *request, int descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {(char *)(uintptr_t)request, strlen(request)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof descriptor), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    TEST_ASSERT_EQUAL(strlen(request), sendmsg(connection, &message, MSG_NOSIGNAL));
}

/* "nothing" where nothing came, "end" where the connection is closed. */
static const char *answer(int connection)
{
    static char text[2000];
    ssize_t got = recv(connection, text, sizeof text - 1, MSG_DONTWAIT);
    text[got > 0 ? got : 0] = '\0';
    return got < 0 ? "nothing" : got == 0 ? "end" : text;
}

/* With the number of the namespace as the kernel has it. */
static void assert_calls(const char *expected)
{
    char text[64], all[2000] = "", *to = all;
    ssize_t got = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    char *number = strchr(text, '[');
    TEST_ASSERT_NOT_NULL(number);
    number[strlen(number) - 1] = '\0';
    for (const char *at = expected; *at != '\0'; at++)
        if (*at == '#')
            to += sprintf(to, "%d-%s", (int)process, number + 1);
        else
            *to++ = *at;
    *to = '\0';
    TEST_ASSERT_EQUAL_STRING(all, calls);
    calls[0] = '\0';
}

/* ---- where ---- */

#define NOWHERE_ELSE                                                                                                   \
    "mkdir /run/user/1234/tracealloc 700;mkdir /tmp/tracealloc-1234 700;mkdir /dev/shm/tracealloc-1234 700;mkdir "     \
    "/var/tmp/tracealloc-1234 700;"

static void test_places_are_tried_one_after_the_other(void)
{
    static const struct {
        const char *folder, *expected;
    } places[] = {{"/run/user/1234/tracealloc",
                   "mkdir /run/user/1234/tracealloc 700;unlink /run/user/1234/tracealloc/#;bind "
                   "/run/user/1234/tracealloc/#;"},
                  {"/tmp/tracealloc-1234", "mkdir /run/user/1234/tracealloc 700;mkdir /tmp/tracealloc-1234 700;unlink "
                                           "/tmp/tracealloc-1234/#;bind /tmp/tracealloc-1234/#;"},
                  {"/var/tmp/tracealloc-1234",
                   NOWHERE_ELSE "unlink /var/tmp/tracealloc-1234/#;bind /var/tmp/tracealloc-1234/#;"}};
    for (size_t i = 0; i < 3; i++)
        for (is_listed = 0; is_listed <= 1; is_listed++) {
            good = places[i].folder;
            task->look();
            assert_calls(places[i].expected);
            TEST_ASSERT_EQUAL_UINT64(100000000, task->period_ns); /* nobody wakes a thread */
            int connection = connect_here();
            TEST_ASSERT_GREATER_THAN(-1, connection);
            close(connection);
            task->look();
            TEST_ASSERT_EQUAL_STRING("", calls); /* once */
            task->end();
            TEST_ASSERT_NOT_NULL(strstr(calls, "unlink "));
            TEST_ASSERT_EQUAL(-1, connect_here());
            TEST_ASSERT_EQUAL_UINT64(50000000, task->period_ns);
            calls[0] = '\0';
        }
    good = NULL;
    task->look();
    assert_calls(NOWHERE_ELSE);
    TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, task->period_ns);
    task->look();
    TEST_ASSERT_EQUAL_STRING("", calls); /* never again */
    task->end();
    TEST_ASSERT_EQUAL_STRING("", calls);
}

static void test_a_folder_that_others_may_look_into_is_none(void)
{
    static const struct {
        uid_t owner;
        mode_t mode;
        int is_good;
    } folders[] = {{1234, S_IFDIR | 0700, 1}, {1235, S_IFDIR | 0700, 0}, {0, S_IFDIR | 0700, 0},
                   {1234, S_IFREG | 0700, 0}, {1234, S_IFLNK | 0700, 0}, {1234, S_IFDIR | 0701, 0},
                   {1234, S_IFDIR | 0710, 0}, {1234, S_IFDIR | 0702, 0}, {1234, S_IFDIR | 0740, 0}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        of_folder.owner = folders[i].owner;
        of_folder.mode = folders[i].mode;
        task->look();
        TEST_ASSERT_EQUAL(folders[i].is_good, strstr(calls, "bind") != NULL);
        task->end();
        calls[0] = '\0';
    }
}

static void test_processes_that_end_soon_have_none(void)
{
    age_ns = 49999999;
    task->look();
    TEST_ASSERT_EQUAL_STRING("", calls);
    age_ns = 50000000;
    task->look();
    TEST_ASSERT_NOT_NULL(strstr(calls, "bind"));
}

static void test_it_is_prepared_once(void)
{
    int before = added;
    ta__channel_prepare();
    ta__channel_prepare();
    TEST_ASSERT_EQUAL(before, added);
    TEST_ASSERT_EQUAL(1, before);
}

/* In a keeper the kernel says when somebody asks. */
static void test_a_keeper_is_woken(void)
{
    process = getpid() + 1;
    task->look();
    TEST_ASSERT_NOT_NULL(strstr(calls, "own;async;"));
    TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, task->period_ns);
    handler(SIGIO);
    TEST_ASSERT_EQUAL(1, woken);
    signal(SIGIO, SIG_IGN);
    calls[0] = '\0';
    int connection = connect_here();
    task->look();
    TEST_ASSERT_EQUAL_STRING("own;async;", calls);
    close(connection);
    task->end();
    let_through_fails = 1;
    task->look();
    TEST_ASSERT_EQUAL_UINT64(100000000, task->period_ns);
    signal(SIGIO, SIG_DFL);
}

/* ---- who asks ---- */

static void test_each_request_has_its_answer(void)
{
    int next = open_descriptors();
    task->look();
    int one = connect_here(), two = connect_here();
    task->look();
    TEST_ASSERT_EQUAL_STRING("nothing", answer(one));
    ask(one, "first", -1);
    ask(one, "path", -1);
    ask(two, "bad", -1);
    task->look();
    TEST_ASSERT_EQUAL_STRING("first/none;path/none;bad/none;", requests);
    TEST_ASSERT_EQUAL_STRING("+re first", answer(one));
    TEST_ASSERT_EQUAL_STRING("+re path/x.ta", answer(one));
    TEST_ASSERT_EQUAL_STRING("nothing", answer(one));
    TEST_ASSERT_EQUAL_STRING("-re bad", answer(two));
    int before = open_descriptors();
    close(one);
    task->look();
    TEST_ASSERT_EQUAL(before - 2, open_descriptors()); /* its other end is closed, too */
    ask(two, "again", -1);
    task->look();
    TEST_ASSERT_EQUAL_STRING("+re again", answer(two));
    close(two);
    task->look();
    task->end();
    TEST_ASSERT_EQUAL(next, open_descriptors());
}

static void test_a_descriptor_comes_along_and_is_closed(void)
{
    task->look();
    int connection = connect_here(), file = memfd_create("x", MFD_CLOEXEC);
    TEST_ASSERT_EQUAL(4, write(file, "text", 4));
    ask(connection, "one", file);
    ask(connection, "two", -1);
    close(file);
    task->look();
    TEST_ASSERT_EQUAL_STRING("one/text;two/none;", requests);
    close(connection);
}

static void test_long_requests_are_cut(void)
{
    char request[1200];
    task->look();
    int connection = connect_here();
    memset(request, 'x', sizeof request);
    request[1023] = '\0';
    ask(connection, request, -1);
    task->look();
    TEST_ASSERT_EQUAL(1023 + strlen("/none;"), strlen(requests));
    request[1023] = 'x';
    request[1024] = '\0';
    requests[0] = '\0';
    ask(connection, request, -1);
    task->look();
    TEST_ASSERT_EQUAL(1023 + strlen("/none;"), strlen(requests));
    close(connection);
}

static void test_only_the_same_user_and_root_may_ask(void)
{
    static const uid_t users[] = {1234, 0, 1235, 1};
    task->look();
    for (size_t i = 0; i < 4; i++) {
        peer = users[i];
        int connection = connect_here(), before = open_descriptors();
        ask(connection, "x", -1);
        task->look();
        TEST_ASSERT_EQUAL_STRING(i < 2 ? "x/none;" : "", requests);
        TEST_ASSERT_EQUAL(before + (i < 2), open_descriptors());
        if (i < 2)
            TEST_ASSERT_EQUAL_STRING("+re x", answer(connection));
        requests[0] = '\0';
        close(connection);
        task->look();
    }
    int refused = connect_here(); /* in front of one that may ask */
    peer = 1235;
    int allowed = connect_here();
    ask(refused, "no", -1);
    ask(allowed, "no", -1);
    task->look();
    TEST_ASSERT_EQUAL_STRING("", requests);
    close(refused);
    close(allowed);
}

/* A program that closed its descriptors has 0 for the socket, for a connection, or for what came along. */
static void test_descriptor_0_is_one_like_others(void)
{
    int kept = dup(0), file = memfd_create("x", MFD_CLOEXEC);
    char told[3][200];
    for (int what = 0; what < 3; what++) {
        if (what == 0)
            close(0);
        task->look();
        int connection = connect_here();
        if (what == 1)
            close(0);
        task->look();
        ask(connection, "a", file);
        if (what == 2)
            close(0);
        task->look();
        ask(connection, "b", -1);
        task->look();
        strcpy(told[what], answer(connection));
        strcat(told[what], answer(connection));
        strcat(told[what], fcntl(0, F_GETFD) >= 0 ? " open" : "");
        close(connection);
        task->look();
        task->end();
        strcat(told[what], fcntl(0, F_GETFD) >= 0 ? " open" : "");
        dup2(kept, 0);
    }
    close(kept);
    close(file);
    TEST_ASSERT_EQUAL_STRING("+re a+re b open", told[0]);
    TEST_ASSERT_EQUAL_STRING("+re a+re b open", told[1]);
    TEST_ASSERT_EQUAL_STRING("+re a+re b", told[2]);
}

/* Eight are served; each more takes the place of another, in turn. */
static void test_the_oldest_of_more_than_eight_give_way(void)
{
    int connections[11];
    task->look();
    for (int i = 0; i < 8; i++)
        connections[i] = connect_here();
    task->look();
    for (int i = 0; i < 8; i++)
        ask(connections[i], "x", -1);
    task->look();
    for (int i = 0; i < 8; i++)
        TEST_ASSERT_EQUAL_STRING("+re x", answer(connections[i]));
    for (int i = 8; i < 11; i++)
        connections[i] = connect_here();
    task->look();
    for (int i = 0; i < 11; i++)
        TEST_ASSERT_EQUAL_STRING(i < 3 ? "end" : "nothing", answer(connections[i]));
    for (int i = 3; i < 11; i++)
        ask(connections[i], "y", -1);
    task->look();
    for (int i = 3; i < 11; i++)
        TEST_ASSERT_EQUAL_STRING("+re y", answer(connections[i]));
    for (int i = 0; i < 11; i++)
        close(connections[i]);
}

/* ---- ends ---- */

static void test_the_file_of_another_process_stays(void)
{
    task->look();
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    char former[80];
    snprintf(former, sizeof former, "%s/former", folder);
    TEST_ASSERT_EQUAL(0, rename(place, former)); /* so that its number is not used again */
    strcpy(here.sun_path, place);
    int other = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    TEST_ASSERT_EQUAL(0, syscall(SYS_bind, other, &here, sizeof here));
    calls[0] = '\0';
    task->end();
    TEST_ASSERT_EQUAL_STRING("", calls);
    TEST_ASSERT_EQUAL(0, access(place, F_OK));
    unlinkat(AT_FDCWD, former, 0);
    close(other);
}

/* A thread's descriptors are the child's, too; those of a keeper are not. */
static void test_a_child_begins_without_any(void)
{
    task->look();
    int connection = connect_here();
    task->look();
    calls[0] = '\0';
    task->begin();
    TEST_ASSERT_EQUAL_STRING("end", answer(connection));
    TEST_ASSERT_EQUAL_STRING("", calls); /* the file is the parent's */
    TEST_ASSERT_EQUAL(0, access(place, F_OK));
    close(connection);
    TEST_ASSERT_EQUAL(open_before, open_descriptors());
    process = getpid() + 1;
    task->look();
    task->begin();
    TEST_ASSERT_EQUAL(open_before + 1, open_descriptors()); /* the socket is still open */
    for (int file = 199; file >= 0; file--)
        if (fcntl(file, F_GETFD) >= 0) {
            close(file);
            break;
        }
}

int main(void)
{
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    UNITY_BEGIN();
    RUN_TEST(test_places_are_tried_one_after_the_other);
    RUN_TEST(test_a_folder_that_others_may_look_into_is_none);
    RUN_TEST(test_processes_that_end_soon_have_none);
    RUN_TEST(test_it_is_prepared_once);
    RUN_TEST(test_a_keeper_is_woken);
    RUN_TEST(test_each_request_has_its_answer);
    RUN_TEST(test_a_descriptor_comes_along_and_is_closed);
    RUN_TEST(test_long_requests_are_cut);
    RUN_TEST(test_only_the_same_user_and_root_may_ask);
    RUN_TEST(test_descriptor_0_is_one_like_others);
    RUN_TEST(test_the_oldest_of_more_than_eight_give_way);
    RUN_TEST(test_the_file_of_another_process_stays);
    RUN_TEST(test_a_child_begins_without_any);
    int result = UNITY_END();
    unlinkat(AT_FDCWD, place, 0);
    rmdir(folder);
    return result;
}
