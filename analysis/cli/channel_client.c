/* channel_client.c: see channel_client.h. */
#include "analysis/cli/channel_client.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/descriptor_message.h"

enum { PATIENCE_S = 30 };

/* ---- where the socket is ------------------------------------------------------------------------------------------ */

/* A process as others see it, and as it sees itself in its namespace. */
struct seen {
    pid_t process;
    unsigned long long own_number, namespace;
    unsigned user;
};

static int look_at(struct seen *seen, pid_t process)
{
    char *path = cli_text("/proc/%d/status", (int)process), line[256];
    FILE *status = fopen(path, "r");
    struct stat facts = {.st_ino = 0};
    *seen = (struct seen){.process = process, .own_number = (unsigned long long)process};
    free(path);
    if (status == NULL)
        return 0;
    int is_alive = 1;
    while (fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "State:\tZ", 8) == 0)
            is_alive = 0;
        if (strncmp(line, "NSpid:", 6) == 0 && strrchr(line, '\t') != NULL)
            seen->own_number = strtoull(strrchr(line, '\t'), NULL, 10);
        if (strncmp(line, "Uid:", 4) == 0)
            sscanf(line + 4, "%*u %u", &seen->user);
    }
    fclose(status);
    path = cli_text("/proc/%d/ns/pid", (int)process);
    if (stat(path, &facts) == 0)
        seen->namespace = facts.st_ino;
    free(path);
    return is_alive;
}

/* A folder that others could have made is not trusted. */
static int is_of(const char *folder, unsigned user)
{
    struct stat status;
    return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == user &&
           (status.st_mode & 077) == 0;
}

/* Sockets of processes that were killed together with who serves them. */
static void sweep(const char *folder, unsigned long long namespace)
{
    struct stat own;
    DIR *files = opendir(folder);
    if (stat("/proc/self/ns/pid", &own) != 0 || own.st_ino != namespace)
    namespace = 0;
    for (struct dirent *entry; files != NULL && namespace != 0 && (entry = readdir(files)) != NULL;) {
        int process = 0;
        unsigned long long of = 0;
        if (sscanf(entry->d_name, "%d-%llu", &process, &of) == 2 && process > 0 && of == namespace &&
            kill(process, 0) != 0 && errno == ESRCH)
            unlinkat(dirfd(files), entry->d_name, 0);
    }
    if (files != NULL)
        closedir(files);
}

/* A connection, or -1 with errno. */
static int connect_in(const char *folder, const struct seen *seen)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {PATIENCE_S, 0};
    int length =
        snprintf(address.sun_path, sizeof address.sun_path, "%s/%llu-%llu", folder, seen->own_number, seen->namespace);
    if (length >= (int)sizeof address.sun_path)
        return errno = ENAMETOOLONG, -1;
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0)
        return -1;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) == 0)
        return connection;
    int error = errno;
    close(connection);
    return errno = error, -1;
}

/* The process may have another root, or another /tmp, than we have. */
static int connect_as(const struct seen *seen, unsigned user)
{
    static const struct {
        const char *before, *behind;
    } places[] = {{"/run/user/", "/tracealloc"},
                  {"/tmp/tracealloc-", ""},
                  {"/dev/shm/tracealloc-", ""},
                  {"/var/tmp/tracealloc-", ""}};
    int connection = -1;
    for (size_t i = 0; i < 2 * sizeof places / sizeof *places && connection < 0; i++) {
        char *root = i % 2 == 0 ? cli_text("/proc/%d/root", (int)seen->process) : cli_text("%s", "");
        char *folder = cli_text("%s%s%u%s", root, places[i / 2].before, user, places[i / 2].behind);
        int is_trusted = is_of(folder, user);
        connection = is_trusted ? connect_in(folder, seen) : -1;
        if (connection < 0 && is_trusted && user == geteuid())
            sweep(folder, seen->namespace);
        free(folder);
        free(root);
    }
    return connection;
}

int cli_channel_open(pid_t process, const char **why)
{
    struct seen seen;
    const char *reason = "is not there";
    int connection = -1;
    if (look_at(&seen, process)) {
        reason = "has no channel: start it with tracealloc run, or with control=yes in TRACEALLOC_OPTIONS";
        const unsigned users[] = {seen.user, geteuid(), 0}; /* it may have given up rights after it had begun */
        for (size_t i = 0; i < sizeof users / sizeof *users && connection < 0; i++)
            connection = connect_as(&seen, users[i]);
        if (connection < 0 && seen.user != geteuid() && geteuid() != 0)
            reason = "belongs to somebody else";
    }
    if (why != NULL)
        *why = reason;
    return connection;
}

/* ---- asking ------------------------------------------------------------------------------------------------------- */

int cli_channel_ask(int channel, const char *request, int descriptor, struct cli_channel_answer *answer)
{
    char packet[sizeof answer->text];
    ssize_t got = -1;
    if (cli_send_with_descriptor(channel, request, strlen(request), descriptor) == 0)
        do
            got = recv(channel, packet, sizeof packet - 1, 0);
        while (got < 0 && errno == EINTR);
    if (got <= 0) {
        snprintf(answer->text, sizeof answer->text, "%s",
                 got == 0 || errno == EPIPE || errno == ECONNRESET ? "it has ended"
                 : errno == EAGAIN                                 ? "it does not answer"
                                                                   : strerror(errno));
        return CLI_TROUBLE;
    }
    packet[got] = '\0';
    memcpy(answer->text, packet + 1, (size_t)got);
    return *packet == '+' ? CLI_OK : CLI_NO;
}

void cli_channel_value(const struct cli_channel_answer *answer, const char *key, char *value, size_t room)
{
    size_t length = strlen(key);
    *value = '\0';
    for (const char *line = answer->text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            const char *text = line + length + 1;
            snprintf(value, room, "%.*s", end != NULL ? (int)(end - text) : (int)strlen(text), text);
            return;
        }
        line = end != NULL ? end + 1 : NULL;
    }
}

uint64_t cli_channel_number(const struct cli_channel_answer *answer, const char *key)
{
    char text[32];
    cli_channel_value(answer, key, text, sizeof text);
    return strtoull(text, NULL, 10);
}
