/* opener.c: see opener.h. */
#include "analysis/cli/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/recordings.h"

enum { TOKEN_LENGTH = 32, PACKET_ROOM = 4096 + TOKEN_LENGTH + 1, FAILURES_SHOWN = 3 };

static struct {
    char name[96]; /* NAME:TOKEN */
    const char *token;
    char *pattern;  /* for fnmatch */
    int has_suffix; /* children may add ".PID" to it */
    int listening, stop[2], is_serving;
    pthread_t thread;
    size_t failures;
    char *texts[FAILURES_SHOWN];
} opener = {.listening = -1};

int cli_opener_start(const char *pattern)
{
    unsigned char random[TOKEN_LENGTH];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return -1;
    int length = sprintf(opener.name, "tracealloc-%d-", (int)getpid());
    for (size_t i = 0; i < 4; i++)
        length += sprintf(opener.name + length, "%02x", random[i]);
    memcpy(address.sun_path + 1, opener.name, (size_t)length);
    opener.listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (opener.listening < 0 || bind(opener.listening, (struct sockaddr *)&address, size) != 0 ||
        listen(opener.listening, 64) != 0 || pipe2(opener.stop, O_CLOEXEC) != 0) {
        opener.name[0] = '\0';
        return -1;
    }
    opener.name[length++] = ':';
    opener.token = opener.name + length;
    for (size_t i = 0; i < TOKEN_LENGTH / 2; i++)
        length += sprintf(opener.name + length, "%02x", random[4 + i]);
    opener.pattern = cli_recordings_glob(pattern, 0);
    opener.has_suffix = strstr(pattern, "%p") == NULL;
    if (opener.has_suffix) /* no star: ".PID" is looked at apart, so that no other name is opened */
        opener.pattern[strlen(opener.pattern) - 1] = '\0';
    return 0;
}

const char *cli_opener_name(void)
{
    return opener.name;
}

static void answer(int connection, int error, int descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {&error, sizeof error};
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
    (void)!sendmsg(connection, &message, MSG_NOSIGNAL);
}

/* Whether it is a name that the runtime makes of the pattern. */
static int is_ours(const char *path)
{
    if (fnmatch(opener.pattern, path, FNM_PATHNAME) == 0)
        return 1;
    const char *dot = strrchr(path, '.');
    if (!opener.has_suffix || dot == NULL || dot[1] == '\0' || dot[1 + strspn(dot + 1, "0123456789")] != '\0')
        return 0;
    char *stem = cli_text("%.*s", (int)(dot - path), path);
    int is_one = fnmatch(opener.pattern, stem, FNM_PATHNAME) == 0;
    free(stem);
    return is_one;
}

static void open_for(int connection, const char *path)
{
    int descriptor = -1;
    errno = EACCES;
    if (is_ours(path))
        descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0666);
    answer(connection, descriptor >= 0 ? 0 : errno, descriptor);
    if (descriptor >= 0)
        close(descriptor);
}

static void note_failure(int connection, const char *text)
{
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof peer;
    getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    if (opener.failures < FAILURES_SHOWN)
        opener.texts[opener.failures] = cli_text("process %d: %s", (int)peer.pid, text);
    opener.failures++;
}

static void serve_one(int connection)
{
    char packet[PACKET_ROOM + 1];
    const struct timeval wait = {1, 0};
    size_t token = strlen(opener.token);
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    ssize_t got = recv(connection, packet, PACKET_ROOM, 0);
    if (got <= (ssize_t)token || memcmp(packet, opener.token, token) != 0)
        return;
    packet[got] = '\0';
    if (packet[token] == 'O')
        open_for(connection, packet + token + 1);
    else if (packet[token] == 'F')
        note_failure(connection, packet + token + 1);
}

static void *serve(void *unused)
{
    struct pollfd watched[] = {{opener.listening, POLLIN, 0}, {opener.stop[0], POLLIN, 0}};
    for (;;) {
        if (poll(watched, 2, -1) < 0 && errno != EINTR)
            return unused;
        int connection = accept4(opener.listening, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0) {
            serve_one(connection);
            close(connection);
        } else if (watched[1].revents != 0) {
            return unused;
        }
    }
}

void cli_opener_serve(void)
{
    sigset_t all, before;
    if (*opener.name == '\0')
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the signals are the main thread's */
    opener.is_serving = pthread_create(&opener.thread, NULL, serve, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cli_opener_stop(void)
{
    if (!opener.is_serving)
        return;
    (void)!write(opener.stop[1], "", 1);
    pthread_join(opener.thread, NULL);
    opener.is_serving = 0;
    close(opener.listening);
}

size_t cli_opener_tell_failures(void)
{
    for (size_t i = 0; i < opener.failures && i < FAILURES_SHOWN; i++)
        fprintf(stderr, "tracealloc: %s\n", opener.texts[i]);
    if (opener.failures > FAILURES_SHOWN)
        fprintf(stderr, "tracealloc: and %zu more like these\n", opener.failures - FAILURES_SHOWN);
    return opener.failures;
}
