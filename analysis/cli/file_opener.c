/* file_opener.c: see file_opener.h. */
#include "analysis/cli/file_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/descriptor_message.h"
#include "analysis/cli/family.h"
#include "analysis/cli/recordings.h"

enum { TOKEN_LENGTH = 32, PACKET_ROOM = 2 * 4096 + TOKEN_LENGTH + 64, REASONS_MOST = 100, REASONS_SHOWN = 3 };
enum { STRANGERS_MOST = 256 };

/* What processes said of what is missing: each text once. */
struct reason {
    char *text;
    pid_t process; /* the first */
    size_t count;
};

static struct {
    char name[96]; /* NAME:TOKEN */
    const char *token;
    char *pattern;              /* for fnmatch */
    char *folder, *real_folder; /* of the pattern, as it was given and behind links; NULL = no link is in it */
    char *family;               /* the folder of the others; NULL = none */
    int family_has_recordings, is_index_old;
    time_t index_time; /* when it was last written */
    pid_t started;
    int has_suffix; /* children may add ".PID" to it */
    int listening, stop[2], is_serving;
    struct timespec since;
    int strangers[STRANGERS_MOST]; /* connections that have not said anything yet */
    size_t stranger_count;
    char **pieces; /* files that were opened under a temporary name and have no other yet */
    size_t piece_count;
    pthread_t thread;
    pid_t ended; /* whose last words are waited for; 0 = it runs */
    size_t failures, reason_count;
    struct reason reasons[REASONS_MOST];
    struct cli_process *rows;
    size_t count;
} opener = {.listening = -1};

/* A folder with percent signs, which mean something in a pattern, is taken as it was given. */
static void note_folder(const char *pattern)
{
    char *folder = cli_text("%.*s", (int)(strrchr(pattern, '/') - pattern), pattern);
    char *real = strchr(folder, '%') != NULL ? NULL : realpath(folder, NULL);
    if (real != NULL && strcmp(real, folder) != 0) {
        opener.folder = folder;
        opener.real_folder = real;
        return;
    }
    free(folder);
    free(real);
}

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
        listen(opener.listening, 4096) != 0 || pipe2(opener.stop, O_CLOEXEC) != 0) {
        opener.name[0] = '\0';
        return -1;
    }
    opener.name[length++] = ':';
    opener.token = opener.name + length;
    clock_gettime(CLOCK_REALTIME_COARSE, &opener.since); /* as times of files are told */
    for (size_t i = 0; i < TOKEN_LENGTH / 2; i++)
        length += sprintf(opener.name + length, "%02x", random[4 + i]);
    note_folder(pattern);
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

static int answer(int connection, int error, int descriptor)
{
    return cli_send_with_descriptor(connection, &error, sizeof error, descriptor);
}

void cli_opener_set_family(const char *folder, int has_recordings)
{
    opener.family = folder == NULL ? NULL : cli_text("%s", folder);
    opener.family_has_recordings = has_recordings;
}

/* FOLDER/17.ta, FOLDER/17.ta.1 */
static int is_of_family(const char *path)
{
    size_t length = opener.family == NULL || !opener.family_has_recordings ? 0 : strlen(opener.family);
    if (length == 0 || strncmp(path, opener.family, length) != 0 || path[length] != '/')
        return 0;
    return cli_family_is_recording(path + length + 1);
}

/* Whether it is a name that the runtime makes of the pattern. */
static int is_given(const char *path)
{
    if (is_of_family(path))
        return 1;
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

/* The same, for the name that the kernel has for a file behind links. */
static int is_ours(const char *path)
{
    size_t length = opener.real_folder == NULL ? 0 : strlen(opener.real_folder);
    if (is_given(path))
        return 1;
    if (length == 0 || strncmp(path, opener.real_folder, length) != 0 || path[length] != '/')
        return 0;
    char *given = cli_text("%s%s", opener.folder, path + length);
    int is_one = is_given(given);
    free(given);
    return is_one;
}

enum { PIECE_SUFFIX = 15 }; /* ".XXXXXXXXXX.tmp" */

/* A name that such a file has while it is being made. */
static int is_piece_of_ours(const char *path)
{
    size_t length = strlen(path);
    if (length <= PIECE_SUFFIX || path[length - PIECE_SUFFIX] != '.' || strcmp(path + length - 4, ".tmp") != 0)
        return 0;
    char *stem = cli_text("%.*s", (int)(length - PIECE_SUFFIX), path);
    int is_one = is_ours(stem);
    free(stem);
    return is_one;
}

static int is_plain_file_of_mine(const char *path, struct stat *status)
{
    return lstat(path, status) == 0 && S_ISREG(status->st_mode) && status->st_uid == geteuid() && status->st_nlink == 1;
}

/* ---- files under a temporary name ---- */

/* Of each file there is one at a time: what there was has been given up. Not new: it has a name of its own now. */
static void note_piece(const char *path, int is_new)
{
    size_t stem = strlen(path) - PIECE_SUFFIX;
    struct stat status;
    for (size_t i = 0; i < opener.piece_count; i++) {
        char *piece = opener.pieces[i];
        if (strlen(piece) != stem + PIECE_SUFFIX || strncmp(piece, path, stem) != 0)
            continue;
        if (strcmp(piece, path) != 0 && is_plain_file_of_mine(piece, &status))
            unlink(piece);
        free(piece);
        opener.pieces[i--] = opener.pieces[--opener.piece_count];
    }
    if (!is_new)
        return;
    opener.pieces = cli_enlarge(opener.pieces, opener.piece_count + 1, sizeof *opener.pieces);
    opener.pieces[opener.piece_count++] = cli_text("%s", path);
}

static void drop_pieces(void)
{
    struct stat status;
    for (size_t i = 0; i < opener.piece_count; i++) {
        if (is_plain_file_of_mine(opener.pieces[i], &status))
            unlink(opener.pieces[i]);
        free(opener.pieces[i]);
    }
    free(opener.pieces);
    opener.pieces = NULL;
    opener.piece_count = 0;
}

static int is_file(const char *path, const char *described)
{
    struct stat status;
    char *end;
    uintmax_t device = strtoumax(described, &end, 10), inode = strtoumax(end, NULL, 10);
    return is_plain_file_of_mine(path, &status) && status.st_dev == device && status.st_ino == inode;
}

/* File systems that cannot exchange names just rename. */
static int take_place(const char *from, const char *to, const char *former)
{
    errno = EBUSY;
    if (!is_file(to, former))
        return -1;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) != 0)
        return rename(from, to);
    if (is_file(from, former))
        return unlink(from);
    (void)!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE); /* somebody was faster */
    return errno = EBUSY, -1;
}

/* Who asked has the lock, or has emptied the file, when it waits no longer. */
static int replace_by(const char *from, const char *to, const char *former)
{
    struct stat status;
    errno = EACCES;
    if (!is_piece_of_ours(from) || !is_ours(to) || !is_plain_file_of_mine(from, &status))
        return -1;
    int piece = open(from, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), result = -1;
    if (piece < 0 || flock(piece, LOCK_EX | LOCK_NB) != 0)
        result = -1;
    else if (fstat(piece, &status) == 0 && status.st_size == 0)
        errno = ECANCELED;
    else
        result = take_place(from, to, former);
    int error = errno;
    if (piece >= 0)
        close(piece);
    note_piece(from, 0);
    errno = error;
    if (result != 0 && is_plain_file_of_mine(from, &status))
        unlink(from);
    return errno = error, result;
}

static void rename_for(int connection, const char *from, const char *end)
{
    const char *to = from + strlen(from) + 1;
    const char *former = to < end ? to + strlen(to) + 1 : end;
    int result = former < end ? replace_by(from, to, former) : (errno = EPROTO, -1);
    (void)answer(connection, result == 0 ? 0 : errno, -1);
}

/* ---- new files ---- */

static int has_appeared(const struct stat *status)
{
    const struct timespec *changed = &status->st_ctim, *since = &opener.since;
    return changed->tv_sec != since->tv_sec ? changed->tv_sec > since->tv_sec : changed->tv_nsec >= since->tv_nsec;
}

enum { NUMBERS_MOST = 10000 };

static int create_new(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
}

static int create_numbered(const char *path, char **name)
{
    int descriptor = -1;
    for (unsigned number = 1; number < NUMBERS_MOST && descriptor < 0; number++) {
        free(*name);
        *name = cli_text("%s.%u", path, number);
        descriptor = create_new(*name);
        if (descriptor < 0 && errno != EEXIST)
            break;
    }
    return descriptor;
}

static int give_number(const char *path)
{
    int result = -1;
    for (unsigned number = 1; number < NUMBERS_MOST && result != 0; number++) {
        char *other = cli_text("%s.%u", path, number);
        result = renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_NOREPLACE);
        free(other);
        if (result != 0 && errno != EEXIST)
            break;
    }
    return result;
}

/* New, or instead of a file of this user that has no other name; nothing else is touched. `spares`: of this run it is
 * another program's, and still being written perhaps: it gets a number. */
static int create(const char *path, int spares)
{
    struct stat status;
    if (lstat(path, &status) == 0) {
        errno = EEXIST;
        if (!is_plain_file_of_mine(path, &status))
            return -1;
        if ((!spares || !has_appeared(&status) || give_number(path) != 0) && unlink(path) != 0 && errno != ENOENT)
            return -1;
    }
    return create_new(path);
}

static void open_for(int connection, char way, const char *path)
{
    int descriptor = -1;
    char *name = cli_text("%s", path);
    errno = EACCES;
    if (way != 'O' && is_ours(path))
        descriptor = way == 'P' ? create_numbered(path, &name) : create(path, 1);
    else if (way == 'O' && (is_ours(path) || is_piece_of_ours(path)))
        descriptor = create(path, 0);
    int error = descriptor >= 0 ? 0 : errno;
    if (descriptor >= 0 && is_piece_of_ours(path))
        note_piece(path, 1);
    if (answer(connection, error, descriptor) != 0 && descriptor >= 0)
        unlink(name); /* nobody waits for it any more */
    if (descriptor >= 0)
        close(descriptor);
    free(name);
}

static void note_reason(pid_t process, const char *text)
{
    size_t i = 0;
    while (i < opener.reason_count && strcmp(opener.reasons[i].text, text) != 0)
        i++;
    if (i == REASONS_MOST)
        return;
    if (i == opener.reason_count)
        opener.reasons[opener.reason_count++] = (struct reason){.text = cli_text("%s", text), .process = process};
    opener.reasons[i].count++;
}

static struct cli_process *add_row(pid_t process, pid_t parent, int connection)
{
    opener.rows = cli_enlarge(opener.rows, opener.count + 1, sizeof *opener.rows);
    opener.rows[opener.count] = (struct cli_process){.process = process, .parent = parent, .connection = connection};
    return &opener.rows[opener.count++];
}

/* The present program of a process: its latest row. */
static struct cli_process *row_of(pid_t process)
{
    for (size_t i = opener.count; i-- > 0;)
        if (opener.rows[i].process == process)
            return &opener.rows[i];
    return add_row(process, 0, -1);
}

static void replace(char **text, const char *with)
{
    free(*text);
    *text = cli_text("%s", with);
}

static struct cli_process *row_at(int connection)
{
    for (size_t i = opener.count; connection >= 0 && i-- > 0;)
        if (opener.rows[i].connection == connection)
            return &opener.rows[i];
    return NULL;
}

/* As the recordings have it. */
static const char *run_name(void)
{
    static char name[sizeof opener.name];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(opener.name, ":"), opener.name);
    return name;
}

static int write_index(const int *status)
{
    int result = opener.family == NULL || opener.count < 2
                     ? -1
                     : cli_family_write(opener.family, run_name(), opener.rows, opener.count, opener.started, status);
    opener.is_index_old = 0;
    opener.index_time = time(NULL);
    return result;
}

/* 1: the connection stays open. */
static int take_packet(int connection, char kind, char *text, const char *end)
{
    char *rest = text;
    pid_t process = (pid_t)strtol(text, &rest, 10);
    rest += *rest == ' ';
    if (kind == 'O' || kind == 'A' || kind == 'P') {
        open_for(connection, kind, text);
        return 0;
    }
    if (kind == 'M') {
        rename_for(connection, text, end);
        return 0;
    }
    if (kind == 'F' || kind == 'N') {
        opener.failures += kind == 'F';
        note_reason(process, rest);
        return row_at(connection) != NULL;
    }
    opener.is_index_old = 1;
    if (kind == 'B') {
        add_row(process, (pid_t)strtol(rest, NULL, 10), connection);
        return 1;
    }
    struct cli_process *row = row_at(connection) != NULL ? row_at(connection) : row_of(process);
    if (kind == 'U') {
        pid_t parent = (pid_t)strtol(rest, &rest, 10);
        row->parent = row->parent == 0 ? parent : row->parent;
        rest += *rest == ' ';
    }
    char *second = strchr(rest, ' ');
    if (second != NULL)
        *second++ = '\0';
    if (kind == 'C') {
        if (second != NULL)
            second[-1] = ' ';
        replace(&row->command, rest);
    } else if (kind == 'X') {
        replace(&row->end, rest);
    } else if (kind == 'R') {
        if (second != NULL)
            second[-1] = ' ';
        replace(&row->path, rest);
    } else if (kind == 'E' && second != NULL) {
        replace(&row->reason, rest);
        replace(&row->path, second);
    } else if (kind == 'U' && second != NULL) {
        pid_t parent = row->parent;
        if (row->connection >= 0 || row->path != NULL) /* the program that it was before */
            row = add_row(process, parent, -1);
        replace(&row->untraced, rest);
        replace(&row->why, second);
    }
    return row->connection == connection;
}

/* 1: the connection stays open. */
static int serve_one(int connection)
{
    char packet[PACKET_ROOM + 1];
    size_t token = strlen(opener.token);
    ssize_t got = recv(connection, packet, PACKET_ROOM, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 1;
    if (got <= (ssize_t)token || memcmp(packet, opener.token, token) != 0)
        return 0;
    packet[got] = '\0';
    return take_packet(connection, packet[token], packet + token + 1, packet + got);
}

static void close_connection(int connection)
{
    struct cli_process *row = row_at(connection);
    if (row != NULL)
        row->connection = -1;
    close(connection);
}

/* Who has connected may not have the processor before it can say what it wants: nobody waits for it, it comes again when
 * it has. */
static void accept_all(void)
{
    int connection;
    if (opener.stranger_count == STRANGERS_MOST) { /* none of them had anything to say */
        close(opener.strangers[0]);
        memmove(opener.strangers, opener.strangers + 1, --opener.stranger_count * sizeof *opener.strangers);
    }
    while (opener.stranger_count < STRANGERS_MOST &&
           (connection = accept4(opener.listening, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        opener.strangers[opener.stranger_count++] = connection;
}

/* `watched` are the first of the strangers. Who stays has a row. */
static void serve_strangers(const struct pollfd *watched, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < opener.stranger_count; i++) {
        int connection = opener.strangers[i];
        if (i >= count || watched[i].revents == 0)
            opener.strangers[kept++] = connection;
        else if (!serve_one(connection))
            close_connection(connection);
        else if (row_at(connection) == NULL)
            opener.strangers[kept++] = connection;
    }
    opener.stranger_count = kept;
}

/* It has no memory any more: it has ended, whether or not its parent has asked for its status. */
static int has_ended(pid_t process)
{
    char first = '0';
    char *path = cli_text("/proc/%d/statm", (int)process);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (descriptor >= 0) {
        (void)!read(descriptor, &first, 1);
        close(descriptor);
    }
    return first == '0';
}

static int waits_for_last_words(void)
{
    for (size_t i = 0; i < opener.count; i++)
        if (opener.rows[i].connection >= 0 &&
            (opener.rows[i].process == opener.ended || has_ended(opener.rows[i].process)))
            return 1;
    return 0;
}

enum { INDEX_MS = 1000 };

static size_t watch(struct pollfd *watched)
{
    size_t count = 0;
    watched[count++] = (struct pollfd){opener.listening, POLLIN, 0};
    watched[count++] = (struct pollfd){opener.ended == 0 ? opener.stop[0] : -1, POLLIN, 0};
    for (size_t i = 0; i < opener.stranger_count; i++)
        watched[count++] = (struct pollfd){opener.strangers[i], POLLIN, 0};
    for (size_t i = 0; i < opener.count; i++)
        if (opener.rows[i].connection >= 0)
            watched[count++] = (struct pollfd){opener.rows[i].connection, POLLIN, 0};
    return count;
}

/* What there is to hear now, or within so many milliseconds; 0 = nothing. Who has connected is heard the next time. */
static int listen_once(int timeout_ms)
{
    if (opener.is_index_old && opener.count > 1 && time(NULL) != opener.index_time)
        (void)write_index(NULL);
    if (opener.is_index_old && opener.count > 1 && (timeout_ms < 0 || timeout_ms > INDEX_MS))
        timeout_ms = INDEX_MS;
    struct pollfd *watched = cli_allocate(2 + opener.stranger_count + opener.count, sizeof *watched);
    size_t strangers = opener.stranger_count, count = watch(watched);
    int heard = poll(watched, count, timeout_ms);
    if (heard > 0) {
        for (size_t i = 2 + strangers; i < count; i++)
            if (watched[i].revents != 0 && !serve_one(watched[i].fd))
                close_connection(watched[i].fd);
        serve_strangers(watched + 2, strangers);
        if (watched[0].revents != 0)
            accept_all();
        if (watched[1].revents != 0 && read(opener.stop[0], &opener.ended, sizeof opener.ended) < 0)
            opener.ended = -1;
    }
    free(watched);
    return heard;
}

enum { LAST_WORDS_S = 60, OTHERS_MS = 50 };

static void *serve(void *unused)
{
    while (opener.ended == 0)
        (void)listen_once(-1);
    time_t end = time(NULL) + LAST_WORDS_S;
    while (listen_once(0) > 0 && time(NULL) < end) /* who ended has begun before */
        continue;
    for (int others = 0; time(NULL) < end && (waits_for_last_words() || others < 2); others++)
        if (cli_opener_running() > 0)
            (void)listen_once(OTHERS_MS);
    drop_pieces();
    return unused;
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

void cli_opener_stop(pid_t process)
{
    if (!opener.is_serving)
        return;
    (void)!write(opener.stop[1], &process, sizeof process);
    pthread_join(opener.thread, NULL);
    opener.is_serving = 0;
    close(opener.listening);
}

int cli_opener_write_index(pid_t process, int status)
{
    opener.started = process;
    return write_index(&status) == 0;
}

const struct cli_process *cli_opener_processes(size_t *count)
{
    *count = opener.count;
    return opener.rows;
}

size_t cli_opener_running(void)
{
    size_t count = 0;
    for (size_t i = 0; i < opener.count; i++)
        count += opener.rows[i].connection >= 0;
    return count;
}

/* Each program once. */
static int is_told(size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (opener.rows[i].untraced != NULL && strcmp(opener.rows[i].untraced, opener.rows[row].untraced) == 0)
            return 1;
    return 0;
}

static void tell_untraced(void)
{
    size_t count = 0;
    for (size_t i = 0; i < opener.count; i++) {
        const struct cli_process *row = &opener.rows[i];
        if (row->untraced == NULL || is_told(i))
            continue;
        if (count++ < REASONS_SHOWN)
            fprintf(stderr, "tracealloc: process %d was not recorded: %s %s\n", (int)row->process, row->untraced,
                    row->why);
    }
    if (count > REASONS_SHOWN)
        fprintf(stderr, "tracealloc: and %zu other program%s\n", count - REASONS_SHOWN, cli_s(count - REASONS_SHOWN));
}

size_t cli_opener_tell_failures(void)
{
    for (size_t i = 0; i < opener.reason_count && i < REASONS_SHOWN; i++)
        if (opener.reasons[i].count > 1)
            fprintf(stderr, "tracealloc: %zu processes: %s\n", opener.reasons[i].count, opener.reasons[i].text);
        else
            fprintf(stderr, "tracealloc: process %d: %s\n", (int)opener.reasons[i].process, opener.reasons[i].text);
    if (opener.reason_count > REASONS_SHOWN)
        fprintf(stderr, "tracealloc: and %zu more like these\n", opener.reason_count - REASONS_SHOWN);
    tell_untraced();
    return opener.failures;
}
