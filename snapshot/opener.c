/* opener.c: see opener.h. The asking side: runs in the traced process, without malloc and without stdio. */
#include "snapshot/opener.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { PART_ROOM = 48, PACKET_ROOM = 4096 + PART_ROOM, WAIT_SECONDS = 3 };

static struct {
    char name[PART_ROOM], token[PART_ROOM]; /* "" = nobody to ask */
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

static int connect_to_opener(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {WAIT_SECONDS, 0};
    size_t length = strlen(opener.name);
    if (length == 0) {
        errno = ENOTCONN;
        return -1;
    }
    memcpy(address.sun_path + 1, opener.name, length);
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
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

static int send_packet(int connection, char kind, const char *text)
{
    char packet[PACKET_ROOM];
    size_t token = strlen(opener.token), length = strlen(text);
    if (length > sizeof packet - token - 1) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(packet, opener.token, token);
    packet[token] = kind;
    memcpy(packet + token + 1, text, length);
    return send(connection, packet, token + 1 + length, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int receive_descriptor(int connection)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    int error = 0, descriptor = -1;
    struct iovec part = {&error, sizeof error};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got;
    do
        got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (got == (ssize_t)sizeof error && error == 0 && header != NULL && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof descriptor))
        memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    else
        errno = got == (ssize_t)sizeof error && error > 0 ? error : EPROTO;
    return descriptor;
}

int ta__opener_open(const char *path)
{
    int connection = connect_to_opener(), descriptor = -1;
    if (connection < 0)
        return -1;
    if (send_packet(connection, 'O', path) == 0)
        descriptor = receive_descriptor(connection);
    int error = errno;
    close(connection);
    errno = error;
    return descriptor;
}

void ta__opener_tell(const char *text)
{
    int saved_errno = errno;
    int connection = connect_to_opener();
    if (connection >= 0) {
        (void)send_packet(connection, 'F', text);
        close(connection);
    }
    errno = saved_errno;
}
