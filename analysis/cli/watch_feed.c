/* watch_feed.c: where watch gets its snapshots: a recording that grows, written by the process itself, or where there is
 * none the process, which is asked through its channel, or where it has none its memory, read from outside. See watch.h. */
#include "analysis/cli/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracealloc/image.h>

#include "analysis/cli/channel_client.h"
#include "analysis/cli/cli.h"

static void set_trouble(struct cli_feed *feed, char *trouble)
{
    free(feed->trouble);
    feed->trouble = trouble;
}

/* ---- a process ---- */

static int is_number(const char *text)
{
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* All of a file of /proc, NUL-terminated; NULL when it cannot be read. */
static char *read_all(const char *path, size_t *length)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t room = 0;
    ssize_t got = 1;
    *length = 0;
    while (file >= 0 && got > 0) {
        room += 65536;
        text = cli_enlarge(text, room + 1, 1);
        while (*length < room && (got = read(file, text + *length, room - *length)) > 0)
            *length += (size_t)got;
    }
    if (file < 0)
        return NULL;
    close(file);
    text[*length] = '\0';
    return text;
}

static char *proc_file(pid_t process, const char *name, size_t *length)
{
    char *path = cli_text("/proc/%d/%s", (int)process, name), *text = read_all(path, length);
    free(path);
    return text;
}

/* The file that a process has open and that is a recording; for free(), NULL when there is none. */
static char *open_recording(pid_t process)
{
    char *folder = cli_text("/proc/%d/fd", (int)process), *found = NULL;
    DIR *files = opendir(folder);
    for (struct dirent *entry; found == NULL && files != NULL && (entry = readdir(files)) != NULL;) {
        char target[PATH_MAX], *link = cli_text("%s/%s", folder, entry->d_name);
        ssize_t length = readlink(link, target, sizeof target - 1);
        free(link);
        target[length > 0 ? length : 0] = '\0';
        struct ta_recording *recording = *target == '/' ? ta_recording_open(target) : NULL;
        if (recording != NULL)
            found = cli_text("%s", target);
        ta_recording_close(recording);
    }
    if (files != NULL)
        closedir(files);
    free(folder);
    return found;
}

/* The recording is held open by the child that keeps the memory, or by the process itself. */
static char *recording_of(pid_t process)
{
    size_t length;
    char *name = cli_text("task/%d/children", (int)process), *children = proc_file(process, name, &length);
    char *path = open_recording(process);
    for (char *at = children, *end; path == NULL && at != NULL && *at != '\0'; at = end) {
        pid_t child = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        path = open_recording(child);
    }
    free(children);
    free(name);
    return path;
}

static char *name_of(pid_t process)
{
    size_t length;
    char *command = proc_file(process, "cmdline", &length), *name;
    if (command == NULL || length == 0) {
        free(command);
        return cli_text("process %d", (int)process);
    }
    const char *slash = strrchr(command, '/');
    name = cli_text("%s", slash != NULL ? slash + 1 : command);
    free(command);
    return name;
}

static int is_alive(pid_t process)
{
    size_t length;
    char *status = process > 0 ? proc_file(process, "stat", &length) : NULL;
    char *state = status != NULL ? strrchr(status, ')') : NULL;
    int answer = state != NULL && state[1] == ' ' && state[2] != 'Z' && state[2] != 'X';
    free(status);
    return answer;
}

uint64_t cli_feed_resident(const struct cli_feed *feed)
{
    size_t length;
    unsigned long long pages = 0;
    char *text = feed->process > 0 && !feed->is_over ? proc_file(feed->process, "statm", &length) : NULL;
    if (text != NULL && sscanf(text, "%*u %llu", &pages) != 1)
        pages = 0;
    free(text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A snapshot of its memory, which belongs to *image; NULL with ta_error_text. */
static struct ta_snapshot *read_memory(const struct cli_feed *feed, struct ta_image **image, int *is_tracing)
{
    struct ta_image_info info;
    char *what = cli_text("%d", (int)feed->process);
    *image = ta_image_open(what, NULL, 0);
    free(what);
    if (*image == NULL || ta_image_get_info(*image, &info, sizeof info) != 0)
        return NULL;
    *is_tracing = info.is_tracing;
    return info.is_tracing ? ta_image_snapshot(*image) : NULL;
}

/* The last means, and 1 when it does. */
static int is_readable(const struct cli_feed *feed)
{
    struct ta_image *image;
    int is_tracing = 0;
    (void)read_memory(feed, &image, &is_tracing);
    ta_image_close(image);
    return is_tracing;
}

static int open_process(struct cli_feed *feed, pid_t process)
{
    const char *why;
    feed->process = process;
    feed->path = recording_of(process);
    feed->channel = cli_channel_open(process, &why);
    if (feed->path == NULL && !is_alive(process))
        return cli_error("watch: there is no process %d", (int)process);
    feed->is_outside = feed->path == NULL && feed->channel < 0;
    if (feed->is_outside && !is_readable(feed))
        return cli_error("watch: process %d is not recorded and %s", (int)process, why);
    feed->name = name_of(process);
    return CLI_OK;
}

/* ---- a program of our own ---- */

/* Runs it in a session of its own, so that neither keys nor our end reach it; what it says goes to a file. */
static int start(struct cli_feed *feed, char **command)
{
    const char *slash = strrchr(command[0], '/'), *base = slash != NULL ? slash + 1 : command[0];
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    size_t count = 0;
    while (command[count] != NULL)
        count++;
    char **arguments = cli_allocate(count + 8, sizeof *arguments);
    own[length > 0 ? length : 0] = '\0';
    feed->path = cli_text("tracealloc.%s.%d.ta", base, (int)getpid());
    feed->said = cli_text("tracealloc.%s.%d.out", base, (int)getpid());
    feed->name = cli_text("%s", base);
    char *const first[] = {own,        (char[]){"run"}, (char[]){"-q"}, (char[]){"--interval=1"}, (char[]){"-o"},
                           feed->path, (char[]){"--"}};
    memcpy(arguments, first, sizeof first);
    memcpy(arguments + 7, command, count * sizeof *command);
    feed->runner = fork();
    if (feed->runner == 0) {
        int said = open(feed->said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
            nothing = open("/dev/null", O_RDONLY);
        setsid();
        if (said < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(said, STDOUT_FILENO) < 0 ||
            dup2(said, STDERR_FILENO) < 0)
            _exit(125);
        execv(own, arguments);
        _exit(125);
    }
    free(arguments);
    return feed->runner > 0 ? CLI_OK : cli_error("watch: %s", strerror(errno));
}

/* Is it a copy of this program? `run` asks the library about its options in a child of its own, and the program is one before
 * its exec. */
static int is_tracealloc(pid_t process)
{
    char *path = cli_text("/proc/%d/exe", (int)process);
    int answer = cli_is_same_file("/proc/self/exe", path);
    free(path);
    return answer;
}

/* The program is the child of `run` that is another program. (Where it is not, the first entry says who it is.) */
static void find_child(struct cli_feed *feed)
{
    char *name = cli_text("task/%d/children", (int)feed->runner);
    size_t length;
    char *children = proc_file(feed->runner, name, &length);
    for (char *at = children, *end; feed->process == 0 && at != NULL; at = end) {
        pid_t child = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        feed->process = is_tracealloc(child) ? 0 : child;
    }
    free(children);
    free(name);
}

/* ---- beginning ---- */

int cli_feed_open(struct cli_feed *feed, const char *operand, char **command)
{
    struct stat status;
    *feed = (struct cli_feed){.channel = -1, .asked = -1};
    if (command != NULL)
        return start(feed, command);
    if (is_number(operand) && stat(operand, &status) != 0)
        return open_process(feed, (pid_t)strtol(operand, NULL, 10));
    struct ta_recording *recording = ta_recording_open(operand);
    if (recording == NULL)
        return cli_error("watch: %s", ta_error_text());
    ta_recording_close(recording);
    feed->path = cli_text("%s", operand);
    const char *slash = strrchr(operand, '/');
    feed->name = cli_text("%s", slash != NULL ? slash + 1 : operand);
    return CLI_OK;
}

/* Of a recording that says whose it is the process is known as long as it lives. */
static void find_process(struct cli_feed *feed, struct ta_snapshot *snapshot)
{
    struct ta_snapshot_info info;
    char host[256] = "";
    if (feed->process != 0 || ta_snapshot_info(snapshot, &info, sizeof info) != 0 || info.pid == 0 ||
        gethostname(host, sizeof host - 1) != 0 || strcmp(host, info.host) != 0)
        return;
    char *path = recording_of((pid_t)info.pid), *ours = realpath(feed->path, NULL);
    if (path != NULL && ours != NULL && strcmp(path, ours) == 0)
        feed->process = (pid_t)info.pid;
    free(path);
    free(ours);
}

static void look_after(struct cli_feed *feed)
{
    int status;
    if (feed->runner > 0 && waitpid(feed->runner, &status, WNOHANG) == feed->runner) {
        feed->is_over = 1;
        set_trouble(feed, WIFEXITED(status) && WEXITSTATUS(status) == 0
                              ? cli_text("%s has ended", feed->name)
                              : cli_text("%s has ended: %s %d", feed->name, WIFEXITED(status) ? "status" : "signal",
                                         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
        feed->runner = 0;
    } else if (feed->runner > 0 && feed->process == 0) {
        find_child(feed);
    } else if (feed->runner == 0 && !feed->is_over && feed->process > 0 && !is_alive(feed->process)) {
        feed->is_over = 1;
        set_trouble(feed, cli_text("%s has ended", feed->name));
    }
}

/* ---- the channel ---- */

static void lose_channel(struct cli_feed *feed)
{
    close(feed->channel);
    feed->channel = -1;
}

/* A process that has just begun has none yet. */
static void ask_how_it_is(struct cli_feed *feed)
{
    struct cli_channel_answer answer;
    if (feed->channel < 0 && feed->process > 0 && !feed->is_over)
        feed->channel = cli_channel_open(feed->process, NULL);
    if (feed->channel < 0)
        return;
    if (cli_channel_ask(feed->channel, "status", -1, &answer) == CLI_OK)
        feed->rests = cli_channel_number(&answer, "tracing") == 0;
    else
        lose_channel(feed);
}

static struct ta_snapshot *load_asked(const struct cli_feed *feed)
{
    char *path = cli_text("/proc/self/fd/%d", feed->asked);
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    free(path);
    return snapshot;
}

/* The file is read by its own name, so that what is shown stays what it was until the next one is whole. */
static struct ta_snapshot *ask_for_snapshot(struct cli_feed *feed)
{
    struct cli_channel_answer answer;
    if (feed->channel < 0 || feed->rests)
        return NULL;
    int file = memfd_create("tracealloc watch", MFD_CLOEXEC);
    if (file < 0 || cli_channel_ask(feed->channel, "snapshot", file, &answer) != CLI_OK) {
        set_trouble(feed, cli_text("%s", file < 0 ? strerror(errno) : answer.text));
        if (file >= 0)
            close(file);
        return NULL;
    }
    if (feed->asked >= 0)
        close(feed->asked);
    feed->asked = file;
    return load_asked(feed);
}

/* ---- from outside ---- */

static struct ta_snapshot *look_from_outside(struct cli_feed *feed)
{
    struct ta_image *image;
    struct ta_snapshot *snapshot = NULL, *seen;
    int is_tracing = 0;
    const char *folder = getenv("TMPDIR");
    if (feed->is_over)
        return NULL;
    char *path = cli_text("%s/tracealloc.XXXXXX", folder != NULL && *folder != '\0' ? folder : "/tmp");
    int file = mkstemp(path);
    seen = read_memory(feed, &image, &is_tracing);
    feed->rests = image != NULL && !is_tracing;
    if (file >= 0 && seen != NULL && ta_snapshot_dump(seen, path) == 0) {
        close(file);
        if (feed->asked >= 0)
            close(feed->asked);
        feed->asked = file = open(path, O_RDONLY | O_CLOEXEC); /* the file is another one now */
        snapshot = load_asked(feed);
    } else {
        set_trouble(feed, cli_text("%s", file < 0      ? strerror(errno)
                                         : feed->rests ? "it is not traced"
                                                       : ta_error_text()));
        if (file >= 0)
            close(file);
    }
    unlink(path);
    free(path);
    ta_image_close(image);
    return snapshot;
}

void cli_feed_turn(struct cli_feed *feed, char *said, size_t room)
{
    struct cli_channel_answer answer;
    if (feed->channel < 0) {
        snprintf(said, room, "cannot be started or stopped from here: it has no channel");
    } else if (cli_channel_ask(feed->channel, feed->rests ? "start" : "stop", -1, &answer) != CLI_OK) {
        snprintf(said, room, "%.150s", answer.text);
    } else {
        feed->rests = cli_channel_number(&answer, "tracing") == 0;
        snprintf(said, room, "%s", feed->rests ? "no longer traced: t starts it again" : "traced from now on");
    }
}

/* ---- snapshots ---- */

struct ta_snapshot *cli_feed_again(const struct cli_feed *feed)
{
    return feed->path != NULL ? ta_snapshot_load(feed->path) : load_asked(feed);
}

/* NULL when the recording has not grown. */
static struct ta_snapshot *read_recording(struct cli_feed *feed)
{
    struct stat status;
    if (stat(feed->path, &status) != 0 || (uint64_t)status.st_size == feed->bytes)
        return NULL;
    struct ta_snapshot *snapshot = ta_snapshot_load(feed->path);
    if (snapshot != NULL)
        feed->bytes = (uint64_t)status.st_size;
    else if (!feed->is_over && feed->bytes > 0)
        set_trouble(feed, cli_text("%s", ta_error_text()));
    return snapshot;
}

struct ta_snapshot *cli_feed_next(struct cli_feed *feed)
{
    struct ta_snapshot_info info;
    look_after(feed);
    ask_how_it_is(feed);
    struct ta_snapshot *snapshot = feed->path != NULL                      ? read_recording(feed)
                                   : feed->channel < 0 && feed->is_outside ? look_from_outside(feed)
                                                                           : ask_for_snapshot(feed);
    if (snapshot == NULL || ta_snapshot_info(snapshot, &info, sizeof info) != 0) {
        ta_snapshot_free(snapshot);
        return NULL;
    }
    find_process(feed, snapshot);
    if (info.time_ns == feed->time && info.time_ns != 0) { /* what was imported has none */
        ta_snapshot_free(snapshot);
        return NULL;
    }
    feed->time = info.time_ns;
    if (!feed->is_over)
        set_trouble(feed, NULL);
    return snapshot;
}

void cli_feed_close(struct cli_feed *feed)
{
    if (feed->said != NULL) {
        fprintf(stderr, "tracealloc: recording in %s, what %s said in %s\n", feed->path, feed->name, feed->said);
        if (feed->runner > 0)
            fprintf(stderr, "tracealloc: %s goes on: process %d\n", feed->name, (int)feed->process);
    }
    if (feed->channel >= 0)
        close(feed->channel);
    if (feed->asked >= 0)
        close(feed->asked);
    free(feed->path);
    free(feed->said);
    free(feed->name);
    free(feed->trouble);
}
