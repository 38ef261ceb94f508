/* test_channel.c: the socket of a process (snapshot/triggers/channel.h), asked by the process itself while its threads
 * allocate. Where there can be a keeper that answers, else a thread. Needs control=yes in TRACEALLOC_OPTIONS. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "snapshot/read/read.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "tracealloc/snapshot.h"

void setUp(void)
{
}

void tearDown(void)
{
    ta_stop();
}

/* ---- asking ---- */

static void nap(void)
{
    const struct timespec moment = {0, 10000000};
    nanosleep(&moment, NULL);
}

static int connect_once(pid_t process)
{
    static const char *const places[] = {"/run/user/%u/tracealloc", "/tmp/tracealloc-%u", "/dev/shm/tracealloc-%u",
                                         "/var/tmp/tracealloc-%u"};
    struct stat namespace;
    TEST_ASSERT_EQUAL(0, stat("/proc/self/ns/pid", &namespace));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char before[32], behind[32] = "";
        sscanf(places[i], "%31[^%]%%u%31s", before, behind);
        snprintf(address.sun_path, sizeof address.sun_path, "%s%u%s/%d-%ju", before, (unsigned)geteuid(), behind,
                 (int)process, (uintmax_t) namespace.st_ino);
        int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) == 0)
            return connection;
        close(connection);
    }
    return -1;
}

static int connect_to(pid_t process)
{
    for (int tries = 0; tries < 3000; tries++) {
        int connection = connect_once(process);
        if (connection >= 0)
            return connection;
        nap();
    }
    TEST_FAIL_MESSAGE("the channel never came");
    return -1;
}

static void send_request(int connection, const char *request, int descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {(char *)(uintptr_t)request, strlen(request)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    TEST_ASSERT_GREATER_THAN(0, sendmsg(connection, &message, MSG_NOSIGNAL));
}

static char answer[8192];

static const char *ask_with(int connection, const char *request, int descriptor)
{
    send_request(connection, request, descriptor);
    ssize_t got = recv(connection, answer, sizeof answer - 1, 0);
    answer[got > 0 ? got : 0] = '\0';
    return answer;
}

static void expect(int connection, const char *request, const char *part)
{
    if (strstr(ask_with(connection, request, -1), part) == NULL)
        TEST_FAIL_MESSAGE(answer);
}

/* ---- threads ---- */

static atomic_int is_over;

static void *allocate(void *unused)
{
    while (!atomic_load(&is_over))
        for (size_t i = 1; i < 200; i++) {
            void *volatile block = ta_malloc(i * 3);
            ta_free(block);
        }
    return unused;
}

__attribute__((noinline)) static void *keep(size_t size)
{
    void *volatile block = ta_malloc(size);
    memset(block, 1, size);
    return block;
}

/* ---- tests ---- */

static uint64_t blocks_of(struct ta_snapshot *snapshot, uint64_t size)
{
    uint64_t blocks = 0;
    struct ta_trace trace;
    for (long i = ta_snapshot_trace_count(snapshot); i-- > 0;)
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) == 0 && trace.count > 0 && trace.size == size * trace.count)
            blocks += trace.count;
    return blocks;
}

static void test_is_started_asked_and_stopped_while_threads_allocate(void)
{
    enum { THREADS = 2, ROUNDS = 12, SIZE = 12345, BLOCKS = 7 };
    pthread_t threads[THREADS];
    void *blocks[BLOCKS];
    int connection = connect_to(getpid());
    for (int i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, allocate, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        expect(connection, round % 2 ? "start 20" : "start", "+was=0\n");
        TEST_ASSERT_TRUE(ta_is_tracing());
        expect(connection, "start", "+was=1\n");
        if (round % 3 == 0)
            expect(connection, "clear", "tracing=1\n");
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = keep(SIZE);
        int file = memfd_create("snapshot", MFD_CLOEXEC);
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        TEST_ASSERT_EQUAL('+', *ask_with(connection, "snapshot", file));
        struct ta_snapshot *snapshot = ta_snapshot_load(path);
        TEST_ASSERT_NOT_NULL(snapshot);
        TEST_ASSERT_EQUAL(BLOCKS, blocks_of(snapshot, SIZE));
        ta_snapshot_free(snapshot);
        close(file);
        for (int i = 0; i < BLOCKS; i++)
            ta_free(blocks[i]);
        expect(connection, "stop", "+was=1\n");
        TEST_ASSERT_FALSE(ta_is_tracing());
    }
    atomic_store(&is_over, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    close(connection);
}

static void test_what_makes_no_sense_is_refused_and_the_next_is_answered(void)
{
    static const char *const wrong[] = {" ",        "begin",      "start 0",       "start 65536",  "start -1",
                                        "start 3x", "snapshot",   "mark",          "mark again",   "clear",
                                        "interval", "interval 5", "interval soon", "interval 100", "limit",
                                        "limit 4",  "limit 4 x",  "limit 0 10",    "limit 77 10",  "limit nobody 10"};
    int connection = connect_to(getpid());
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (*ask_with(connection, wrong[i], -1) != '-')
            TEST_FAIL_MESSAGE(wrong[i]);
    static char flood[60000];
    memset(flood, 'x', sizeof flood - 1);
    expect(connection, flood, "-");
    expect(connection, "snapshot", "-nothing is traced");
    expect(connection, "  status  ", "process=");
    close(connection);
}

static int calls;

static void count_call(uint32_t domain, uint64_t live_bytes, void *context)
{
    (void)live_bytes;
    TEST_ASSERT_EQUAL(6, domain);
    TEST_ASSERT_EQUAL_PTR(&calls, context);
    calls++;
}

static void test_a_limit_keeps_the_callback(void)
{
    struct ta_domain_limit limit = {.soft = 1 << 20, .callback = count_call, .context = &calls};
    struct ta_domain_stats stats;
    int connection = connect_to(getpid());
    TEST_ASSERT_EQUAL(0, ta_domain_set_limit(6, &limit));
    TEST_ASSERT_EQUAL(0, ta_domain_set_name(6, "images"));
    expect(connection, "limit images 1000 5000", "+domain=6\nsoft=1000\n");
    void *block = ta_domain_malloc(6, 2000);
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_EQUAL(1, calls);
    TEST_ASSERT_NULL(ta_domain_malloc(6, 4000));
    expect(connection, "limit 6 3000", "+domain=6\nsoft=3000\n");
    TEST_ASSERT_EQUAL(0, ta_domain_get_stats(6, &stats, sizeof stats));
    TEST_ASSERT_EQUAL(3000, stats.soft_limit);
    TEST_ASSERT_EQUAL(5000, stats.hard_limit);
    ta_free(block);
    close(connection);
}

static void test_the_oldest_of_many_gives_way_and_children_have_their_own(void)
{
    enum { MANY = 30 };
    int connections[MANY];
    for (int i = 0; i < MANY; i++) {
        connections[i] = connect_to(getpid());
        expect(connections[i], "status", "process=");
    }
    expect(connections[MANY - 1], "status", "process=");
    for (int i = 0; i < MANY; i++)
        close(connections[i]);
#if !defined(__SANITIZE_THREAD__) /* which ends children that start threads */
    int go[2];
    TEST_ASSERT_EQUAL(0, pipe(go));
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(go[1]);
        _exit((int)read(go[0], &byte, 1));
    }
    close(go[0]);
    char own[32];
    int connection = connect_to(child), status;
    snprintf(own, sizeof own, "\nprocess=%d\n", (int)child);
    expect(connection, "status", own);
    close(go[1]);
    TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL(0, status);
    TEST_ASSERT_EQUAL(0, recv(connection, answer, sizeof answer, 0));
    close(connection);
#endif
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_is_started_asked_and_stopped_while_threads_allocate);
    RUN_TEST(test_what_makes_no_sense_is_refused_and_the_next_is_answered);
    RUN_TEST(test_a_limit_keeps_the_callback);
    RUN_TEST(test_the_oldest_of_many_gives_way_and_children_have_their_own);
    return UNITY_END();
}
