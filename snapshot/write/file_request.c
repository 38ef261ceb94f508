/* file_request.c: see file_request.h. The asking side: runs in the traced process, without malloc and without stdio. */
#include "snapshot/write/file_request.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/small_file.h"

/* Two paths, and what stands before and behind them. */
enum { PATH_ROOM = 4096, PART_ROOM = 48, TEXT_ROOM = 2 * PATH_ROOM + PART_ROOM, WAIT_SECONDS = 3 };

static struct {
    char name[PART_ROOM], token[PART_ROOM]; /* "" = nobody to ask */
    int kept;                               /* a connection of the process `keeper` */
    pid_t keeper;
} opener;

void ta__opener_set(const char *text)
{
    const char *colon = text != NULL ? strchr(text, ':') : NULL;
    opener.name[0] = '\0';
    if (colon == NULL || colon == text || (size_t)(colon - text) >= PART_ROOM || strlen(colon + 1) >= PART_ROOM)
        return;
    memcpy(opener.token, colon + 1, strlen(colon + 1) + 1);
    memcpy(opener.name, text, (size_t)(colon - text));
    opener.name[colon - text] = '\0';
}

const char *ta__opener_run(void)
{
    return opener.name;
}

static int connect_to_opener(int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {WAIT_SECONDS, 0};
    size_t length = strlen(opener.name);
    if (length == 0) {
        errno = ENOTCONN;
        return -1;
    }
    memcpy(address.sun_path + 1, opener.name, length);
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    if (connection < 0)
        return -1;
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    if (connect(connection, (struct sockaddr *)&address, size) == 0)
        return connection;
    int error = errno;
    close(connection);
    errno = error;
    return -1;
}

static int send_bytes(int connection, char kind, const char *text, size_t length)
{
    struct iovec parts[] = {
        {opener.token, strlen(opener.token)}, {&kind, 1}, {(void *)(uintptr_t)text, length < TEXT_ROOM ? length : 0}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = sizeof parts / sizeof *parts};
    if (length >= TEXT_ROOM)
        return errno = ENAMETOOLONG, -1;
    return sendmsg(connection, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int send_packet(int connection, char kind, const char *text)
{
    return send_bytes(connection, kind, text, strlen(text));
}

/* The errno value of the answer, 0 when it is fine; with it perhaps a descriptor. */
static int receive_answer(int connection, int *descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    int error = 0;
    struct iovec part = {&error, sizeof error};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got;
    do
        got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    *descriptor = -1;
    if (got <= 0)
        return got < 0 ? errno : ECONNRESET;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (got == (ssize_t)sizeof error && error == 0 && header != NULL && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof *descriptor))
        memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    return got == (ssize_t)sizeof error && error >= 0 ? error : EPROTO;
}

enum { LOOK_MS = 500, PATIENCE_MS = 60000 };

/* Whether the other side will answer once the processor is its own: it is neither stopped nor gone. When that cannot be
 * seen (another namespace of processes), some seconds have to do. */
static int will_answer(int connection, int waited_ms)
{
    struct ucred other = {.pid = 0};
    socklen_t size = sizeof other;
    char text[512] = "";
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.pid > 0)
        ta__small_file_of(other.pid, "stat", text, sizeof text);
    const char *name_end = strrchr(text, ')'); /* the name may hold anything */
    if (name_end == NULL || name_end[1] == '\0')
        return waited_ms < WAIT_SECONDS * 1000;
    return strchr("TtZX", name_end[2]) == NULL && waited_ms < PATIENCE_MS;
}

/* Nothing is answered after this but what has been. */
static void await_answer(int connection)
{
    struct pollfd watched = {connection, POLLIN, 0};
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (poll(&watched, 1, LOOK_MS) <= 0) { /* signals may end it early: the clock tells how long it was */
        clock_gettime(CLOCK_MONOTONIC, &now);
        int waited_ms = (int)(now.tv_sec - began.tv_sec) * 1000 + (int)((now.tv_nsec - began.tv_nsec) / 1000000);
        if (!will_answer(connection, waited_ms)) {
            shutdown(connection, SHUT_RDWR);
            return;
        }
    }
}

static int ask(char kind, const char *text, size_t length, int *descriptor)
{
    int error = 0, connection = connect_to_opener(0);
    if (connection < 0)
        return -1;
    if (send_bytes(connection, kind, text, length) != 0) {
        error = errno;
    } else {
        await_answer(connection);
        error = receive_answer(connection, descriptor);
    }
    close(connection);
    return error == 0 ? 0 : (errno = error, -1);
}

int ta__opener_open(const char *path, enum ta__opener_way way)
{
    int descriptor = -1;
    if (ask((char)way, path, strlen(path), &descriptor) != 0)
        return -1;
    if (descriptor < 0)
        errno = EPROTO;
    return descriptor;
}

static int ask_to_replace(const struct ta__new_file *file, struct ta__identity former)
{
    char parts[TEXT_ROOM];
    size_t first = strlen(file->temporary) + 1, second = strlen(file->path) + 1;
    int descriptor = -1;
    if (first + second + PART_ROOM > sizeof parts)
        return errno = ENAMETOOLONG, -1;
    memcpy(parts, file->temporary, first);
    memcpy(parts + first, file->path, second);
    char *at = ta__put_decimal(parts + first + second, former.device);
    *at++ = ' ';
    at = ta__put_decimal(at, former.inode);
    int result = ask('M', parts, (size_t)(at - parts), &descriptor);
    if (descriptor >= 0)
        close(descriptor);
    return result;
}

/* It has another name than it was given. */
static int has_moved(const struct ta__new_file *file)
{
    char name[sizeof file->path];
    struct stat status;
    return fstat(file->descriptor, &status) == 0 && status.st_nlink > 0 &&
           ta__descriptor_name(file->descriptor, name, sizeof name) == 0 && strcmp(name, file->temporary) != 0;
}

/* Without an answer: the other side may have done it before it ended, may be about to, or may find the request when it is
 * let go on. It does it under the lock, and not to an empty file. */
int ta__opener_replace(const struct ta__new_file *file, struct ta__identity former)
{
    if (ask_to_replace(file, former) == 0)
        return 0;
    int error = errno;
    while (flock(file->descriptor, LOCK_EX) != 0 && errno == EINTR)
        continue;
    if (has_moved(file))
        return flock(file->descriptor, LOCK_UN), 0;
    (void)!ftruncate(file->descriptor, 0);
    return errno = error, -1;
}

/* "pid text more", as far as there is room. */
static void compose(char *packet, size_t room, pid_t process, const char *text, const char *more)
{
    char *at = ta__put_decimal(packet, (uint64_t)process), *end = packet + room - 1;
    *at++ = ' ';
    for (; *text != '\0' && at < end; text++)
        *at++ = *text;
    if (*more != '\0' && at < end)
        *at++ = ' ';
    for (; *more != '\0' && at < end; more++)
        *at++ = *more;
    *at = '\0';
}

void ta__opener_tell(char kind, pid_t process, const char *text, const char *more)
{
    char packet[PATH_ROOM + 512];
    int saved_errno = errno;
    int is_keeper = opener.keeper != 0 && opener.keeper == getpid();
    int connection = is_keeper ? opener.kept : connect_to_opener(0);
    if (connection >= 0) {
        compose(packet, sizeof packet, process, text, more);
        (void)send_packet(connection, kind, packet);
        if (!is_keeper)
            close(connection);
    }
    errno = saved_errno;
}

/* Nothing waits here: when the other side is busy or stopped, the process goes unannounced. */
int ta__opener_begin(pid_t process, pid_t parent)
{
    char packet[32], text[16];
    int saved_errno = errno;
    int connection = connect_to_opener(SOCK_NONBLOCK);
    if (connection >= 0) {
        compose(text, sizeof text, parent, "", "");
        compose(packet, sizeof packet, process, text, "");
        (void)send_packet(connection, 'B', packet);
    }
    errno = saved_errno;
    return connection;
}

void ta__opener_use(int connection)
{
    opener.kept = connection;
    opener.keeper = connection >= 0 ? getpid() : 0;
}
