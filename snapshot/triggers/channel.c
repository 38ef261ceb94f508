/* channel.c: see channel.h. The socket; what is asked is done in channel_requests.c. No malloc, no stdio. */
#include "snapshot/triggers/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/small_file.h"
#include "snapshot/triggers/keeper.h"
#include "snapshot/triggers/triggers.h"
#include "snapshot/write/take.h"

enum { CONNECTIONS = 8, REQUEST_ROOM = 1024, PATH_ROOM = sizeof((struct sockaddr_un *)0)->sun_path };

/* Processes that end sooner, such as those of a shell script, have no socket. */
#define YOUNG_NS UINT64_C(50000000)
#define TICK_NS  UINT64_C(100000000) /* of a thread, which nobody wakes */

static struct {
    int listener;
    int connections[CONNECTIONS];
    unsigned next; /* that gives way when there are too many */
    int is_open;
    char path[PATH_ROOM];
    ino_t number; /* of the socket's file */
} channel;

static struct ta__helper_task task;

static int is_in_keeper(void)
{
    return ta__snapshot_process() != getpid();
}

/* ---- where the socket is ------------------------------------------------------------------------------------------ */

/* Nobody else may have made it, and nobody else may look into it. */
static int is_private(const char *folder)
{
    struct stat status;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return 0;
    return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0;
}

static char *put(char *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length + 1);
    return at + length;
}

/* FOLDER/1234-4026531836 */
static void name_socket(char *at)
{
    char text[64];
    at = ta__put_decimal(put(at, "/"), (uint64_t)ta__snapshot_process());
    ta__link_text("/proc/self/ns/pid", text, sizeof text);
    const char *number = strchr(text, '[');
    ta__put_decimal(put(at, "-"), number != NULL ? ta__decimal_at(number + 1) : 0);
}

static int bind_in(char *path, int socket)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (!is_private(path))
        return 0;
    name_socket(path + strlen(path));
    memcpy(address.sun_path, path, PATH_ROOM);
    unlink(path); /* of a process that was killed together with its keeper, or that this one was before */
    if (bind(socket, (struct sockaddr *)&address, sizeof address) != 0 || lstat(path, &status) != 0)
        return 0;
    channel.number = status.st_ino;
    return 1;
}

static int bind_somewhere(int socket)
{
    static const char *const folders[] = {"/tmp", "/dev/shm", "/var/tmp"};
    char *end = ta__put_decimal(put(channel.path, "/run/user/"), geteuid());
    put(end, "/tracealloc");
    if (bind_in(channel.path, socket))
        return 1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        ta__put_decimal(put(put(channel.path, folders[i]), "/tracealloc-"), geteuid());
        if (bind_in(channel.path, socket))
            return 1;
    }
    return 0;
}

/* ---- being woken -------------------------------------------------------------------------------------------------- */

static void wake(int number)
{
    (void)number;
    ta__triggers_wake();
}

/* The keeper has handlers of its own, which are the program's at first, and every signal blocked. From here on one is let
 * through: by it the kernel says that somebody asks. */
static void let_wake(int descriptor)
{
    if (!is_in_keeper())
        return;
    fcntl(descriptor, F_SETOWN, getpid());
    fcntl(descriptor, F_SETFL, O_NONBLOCK | O_ASYNC);
}

static void begin_to_be_woken(void)
{
    task.period_ns = is_in_keeper() && ta__keeper_let_through(SIGIO, wake) == 0 ? UINT64_MAX : TICK_NS;
}

static void open_channel(void)
{
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    channel.is_open = 1;
    task.period_ns = UINT64_MAX; /* unless it can be opened */
    if (listener < 0)
        return;
    if (!bind_somewhere(listener)) {
        close(listener);
        return;
    }
    begin_to_be_woken();
    let_wake(listener);
    if (listen(listener, CONNECTIONS) == 0)
        channel.listener = listener;
}

/* ---- who asks ----------------------------------------------------------------------------------------------------- */

static int may_ask(int connection)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void accept_all(void)
{
    for (int connection; (connection = accept4(channel.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
        if (!may_ask(connection)) {
            close(connection);
            continue;
        }
        let_wake(connection);
        unsigned at = 0;
        while (at < CONNECTIONS && channel.connections[at] >= 0)
            at++;
        if (at == CONNECTIONS)
            close(channel.connections[at = channel.next++ % CONNECTIONS]);
        channel.connections[at] = connection;
    }
}

static void reply(int connection, const struct ta__channel_answer *answer)
{
    struct iovec parts[] = {
        {(char *)(uintptr_t)(answer->is_refused ? "-" : "+"), 1},
        {(char *)(uintptr_t)answer->text.text, answer->text.length},
        {(char *)(uintptr_t)answer->path, answer->path != NULL ? strlen(answer->path) : 0},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = sizeof parts / sizeof *parts};
    (void)!sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The descriptor that came along, or -1; every one is taken, lest it stay open here. */
static int descriptor_of(struct msghdr *message)
{
    int descriptor = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof descriptor))
        memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}

/* 1: a request was answered; 0: there is none now; -1: nobody is there any more. */
static int serve(int connection)
{
    char request[REQUEST_ROOM];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))]; /* for one: the kernel closes what does not fit */
    } control;
    struct iovec part = {request, sizeof request - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    request[got] = '\0';
    int descriptor = descriptor_of(&message);
    struct ta__channel_answer answer;
    ta__channel_answer(&answer, request, descriptor);
    if (descriptor >= 0)
        close(descriptor);
    reply(connection, &answer);
    return 1;
}

/* ---- the task ----------------------------------------------------------------------------------------------------- */

static void close_all(void)
{
    if (channel.listener >= 0)
        close(channel.listener);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        if (channel.connections[i] >= 0)
            close(channel.connections[i]);
}

static void forget_all(void)
{
    channel.listener = -1;
    for (unsigned i = 0; i < CONNECTIONS; i++)
        channel.connections[i] = -1;
    channel.is_open = 0;
    task.period_ns = YOUNG_NS;
}

/* In a child what is remembered is the parent's; of a thread's descriptors the child has copies. */
static void begin(void)
{
    if (channel.is_open && !is_in_keeper())
        close_all();
    forget_all();
}

static void look(void)
{
    if (!channel.is_open && ta__triggers_age_ns() >= YOUNG_NS)
        open_channel();
    if (channel.listener < 0)
        return;
    accept_all();
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        int served = 1;
        while (channel.connections[i] >= 0 && served > 0)
            served = serve(channel.connections[i]);
        if (served < 0) {
            close(channel.connections[i]);
            channel.connections[i] = -1;
        }
    }
}

/* The program that is executed now may have one of the same name already. */
static void end(void)
{
    struct stat status;
    if (channel.listener >= 0 && lstat(channel.path, &status) == 0 && status.st_ino == channel.number)
        unlink(channel.path);
    close_all();
    forget_all();
}

void ta__channel_prepare(void)
{
    static int is_prepared;
    task = (struct ta__helper_task){.begin = begin, .period_ns = YOUNG_NS, .look = look, .end = end};
    forget_all();
    if (!is_prepared)
        is_prepared = ta__triggers_add_task(&task) == 0;
}
