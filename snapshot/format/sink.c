/* sink.c: see sink.h. */
#include "snapshot/format/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h> /* rename */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

_Static_assert(sizeof(sigset_t) <= sizeof((struct ta__quiet *)0)->mask, "a signal set fits");

static void quiet_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGXFSZ);
    sigaddset(set, SIGPIPE);
}

void ta__quiet_begin(struct ta__quiet *quiet)
{
    sigset_t ours, pending, before;
    int saved_errno = errno;
    quiet_signals(&ours);
    sigpending(&pending);
    quiet->pending = (sigismember(&pending, SIGXFSZ) == 1 ? 1 : 0) | (sigismember(&pending, SIGPIPE) == 1 ? 2 : 0);
    quiet->usable = pthread_sigmask(SIG_BLOCK, &ours, &before) == 0;
    memcpy(quiet->mask, &before, sizeof before);
    errno = saved_errno;
}

/* A signal that our write raised is pending for this thread alone; one that was pending before stays. */
static void take_back(int number, int was_pending)
{
    sigset_t one;
    const struct timespec now = {0, 0};
    sigemptyset(&one);
    sigaddset(&one, number);
    if (!was_pending)
        while (sigtimedwait(&one, NULL, &now) < 0 && errno == EINTR)
            ;
}

void ta__quiet_end(struct ta__quiet *quiet)
{
    int saved_errno = errno;
    if (quiet->usable) {
        take_back(SIGXFSZ, quiet->pending & 1);
        take_back(SIGPIPE, quiet->pending & 2);
        sigset_t before;
        memcpy(&before, quiet->mask, sizeof before);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = saved_errno;
}

struct ta__identity ta__identity_of(int descriptor)
{
    int saved_errno = errno;
    struct stat status;
    struct ta__identity identity = {0, 0};
    if (fstat(descriptor, &status) == 0)
        identity = (struct ta__identity){status.st_dev, status.st_ino};
    errno = saved_errno;
    return identity;
}

int ta__is_identical(int descriptor, struct ta__identity identity)
{
    struct ta__identity present = ta__identity_of(descriptor);
    return present.device == identity.device && present.inode == identity.inode && present.inode != 0;
}

int ta__descriptor_name(int descriptor, char *path, size_t room)
{
    char link[40] = "/proc/self/fd/";
    ta__put_decimal(link + strlen(link), (uint64_t)descriptor);
    ssize_t length = readlink(link, path, room - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0 && *path == '/' ? 0 : -1;
}

void ta__sink_memory(struct ta__sink *sink)
{
    memset(sink, 0, sizeof *sink);
    sink->descriptor = -1;
}

void ta__sink_descriptor(struct ta__sink *sink, int descriptor)
{
    memset(sink, 0, sizeof *sink);
    sink->descriptor = descriptor;
    sink->identity = ta__identity_of(descriptor);
}

/* What the file has when nothing in memory has gone there in part. */
static uint64_t in_file(const struct ta__sink *sink)
{
    return sink->written - sink->memory.length;
}

int ta__sink_cut(struct ta__sink *sink, uint64_t length)
{
    uint64_t had = in_file(sink);
    int is_whole = sink->error == 0 && !sink->is_torn && length >= had;
    sink->written = length;
    sink->error = 0;
    sink->is_torn = 0;
    if (sink->descriptor < 0 || is_whole) {
        sink->memory.length = length - (sink->descriptor < 0 ? 0 : had);
        return 0;
    }
    sink->memory.length = 0;
    if (!ta__is_identical(sink->descriptor, sink->identity))
        sink->is_torn = 1; /* whoever finds the file again cuts it then */
    else if (ftruncate(sink->descriptor, (off_t)length) != 0 || lseek(sink->descriptor, (off_t)length, SEEK_SET) < 0)
        sink->error = errno;
    return sink->error == 0 ? 0 : -1;
}

/* What is no regular file was opened so that it never blocks: a pipe that nobody empties fails after this. */
enum { PATIENCE_MS = 1000 };

static int wait_for_room(int descriptor)
{
    struct pollfd wanted = {descriptor, POLLOUT, 0};
    int ready;
    do
        ready = poll(&wanted, 1, PATIENCE_MS);
    while (ready < 0 && errno == EINTR);
    return ready > 0 ? 0 : ready == 0 ? ETIMEDOUT : errno;
}

static int write_all(int descriptor, const uint8_t *at, size_t left)
{
    struct ta__quiet quiet;
    int saved_errno = errno;
    int error = 0;
    ta__quiet_begin(&quiet);
    while (left > 0 && error == 0) {
        ssize_t written = write(descriptor, at, left);
        if (written < 0) {
            error = errno == EINTR ? 0 : errno == EAGAIN ? wait_for_room(descriptor) : errno;
        } else if (written == 0) {
            error = EIO;
        } else {
            at += written;
            left -= (size_t)written;
        }
    }
    ta__quiet_end(&quiet);
    errno = saved_errno;
    return error;
}

/* More than that is not gathered. */
enum { GATHERED_MOST = 1 << 20 };

int ta__sink_write(struct ta__sink *sink, const void *data, size_t length)
{
    if (sink->error != 0)
        return -1;
    if (sink->descriptor >= 0 && sink->memory.length + length > GATHERED_MOST && ta__sink_flush(sink) != 0)
        return -1;
    if (ta__buffer_put(&sink->memory, data, length) != 0) {
        sink->error = ENOMEM;
        return -1;
    }
    sink->written += length;
    return 0;
}

int ta__sink_flush(struct ta__sink *sink)
{
    if (sink->descriptor < 0 || sink->error != 0)
        return sink->error == 0 ? 0 : -1;
    if (!ta__is_identical(sink->descriptor, sink->identity))
        sink->error = EBADF;
    else
        sink->error = write_all(sink->descriptor, sink->memory.bytes, sink->memory.length);
    if (sink->error != 0)
        return -1;
    sink->memory.length = 0;
    return 0;
}

static int failed(const char *what, const char *path)
{
    int number = errno;
    ta__error_set(what, " ", path, NULL);
    ta__error_add_errno(number);
    errno = number;
    return -1;
}

/* A link, a pipe or a device that somebody else put where we want to write is a trap; root's are not (/dev/stdout). */
static int is_trusted(const struct stat *status)
{
    return status->st_uid == geteuid() || status->st_uid == 0 || S_ISCHR(status->st_mode);
}

/* The name behind symbolic links, so that renaming replaces the file and not the link. */
static int resolve(struct ta__new_file *file, const char *path)
{
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof file->path - 32) {
        errno = length == 0 ? ENOENT : ENAMETOOLONG;
        return failed("cannot write", path);
    }
    memcpy(file->path, path, length + 1);
    struct stat status;
    if (lstat(path, &status) != 0 || !S_ISLNK(status.st_mode))
        return 0;
    if (!is_trusted(&status)) {
        errno = ELOOP;
        return failed("cannot write through another user's link", path);
    }
    int target = open(path, O_PATH | O_CLOEXEC);
    if (target < 0)
        return failed("cannot write", path);
    if (fstat(target, &status) == 0 && !S_ISREG(status.st_mode)) { /* a pipe has no other name than the link */
        close(target);
        return 0;
    }
    char link[40] = "/proc/self/fd/";
    ta__put_decimal(link + strlen(link), (uint64_t)target);
    ssize_t got = readlink(link, file->path, sizeof file->path - 32);
    close(target);
    if (got <= 0 || (size_t)got >= sizeof file->path - 32) {
        errno = ENAMETOOLONG;
        return failed("cannot write", path);
    }
    file->path[got] = '\0';
    return 0;
}

/* path + ".XXXXXXXX.tmp": never a name that a reader would take for a recording. */
static void temporary_name(struct ta__new_file *file, unsigned attempt)
{
    static uint64_t serial;
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t mixed = ta__hash_word((uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 32) ^
                     ta__hash_word(ta__add_relaxed(&serial, 1) + attempt);
    size_t length = strlen(file->path);
    memcpy(file->temporary, file->path, length);
    char *at = file->temporary + length;
    *at++ = '.';
    for (int i = 0; i < 10; i++, mixed >>= 5)
        *at++ = digits[mixed & 31];
    memcpy(at, ".tmp", 5);
}

/* A pipe or a character device, which the user named. Opening a pipe that nobody reads fails (ENXIO). */
static int open_directly(struct ta__new_file *file, const char *path, const struct stat *status)
{
    struct stat opened;
    file->direct = 1;
    if ((!S_ISFIFO(status->st_mode) && !S_ISCHR(status->st_mode)) || !is_trusted(status)) {
        errno = is_trusted(status) ? EINVAL : EACCES;
        return failed("neither a file nor a pipe or terminal of this user:", path);
    }
    file->descriptor = open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    file->identity = ta__identity_of(file->descriptor);
    if (file->descriptor >= 0 && (fstat(file->descriptor, &opened) != 0 || opened.st_ino != status->st_ino ||
                                  opened.st_dev != status->st_dev)) { /* exchanged meanwhile */
        close(file->descriptor);
        file->descriptor = -1;
        errno = EACCES;
    }
    return file->descriptor < 0 ? failed("cannot write", path) : 0;
}

int ta__new_file_open(struct ta__new_file *file, const char *path)
{
    struct stat status;
    file->descriptor = -1;
    file->direct = 0;
    file->spared_ns = 0;
    file->keeps_older = 0;
    file->is_hasty = 0;
    if (resolve(file, path) != 0)
        return -1;
    if (stat(file->path, &status) == 0 && !S_ISREG(status.st_mode))
        return open_directly(file, path, &status);
    for (unsigned attempt = 0; attempt < 16; attempt++) {
        temporary_name(file, attempt);
        file->descriptor = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        file->identity = ta__identity_of(file->descriptor);
        if (file->descriptor >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return failed("cannot create a file beside", path);
}

/* The rename itself becomes durable with its folder. A file system that cannot sync folders is no reason to fail. */
static void sync_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    memcpy(folder, path, length);
    folder[length] = '\0';
    int descriptor = open(slash == NULL ? "." : length == 0 ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
}

int ta__appeared_since(const char *path, uint64_t time_ns)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_ctim.tv_sec * 1000000000u + (uint64_t)status.st_ctim.tv_nsec > time_ns;
}

/* As the kernel numbers them: not every C library has names for them, nor for the call. */
enum { WITHOUT_REPLACING = 1, EXCHANGING = 2 };

static int rename_by(unsigned way, const char *from, const char *to)
{
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, way);
}

int ta__give_number(const char *from, char *path, size_t room)
{
    size_t length = strlen(path);
    if (length + 8 > room)
        return errno = ENAMETOOLONG, -1;
    path[length] = '.';
    for (unsigned number = 1; number < 10000; number++) {
        ta__put_decimal(path + length + 1, number);
        if (rename_by(WITHOUT_REPLACING, from, path) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    path[length] = '\0';
    return -1;
}

/* File systems that cannot rename without replacing just rename. Who has the name may be the program that this process
 * executes now, which cannot have been there before it was executed: so it is asked again when the name is taken. */
static int rename_sparing(struct ta__new_file *file)
{
    char other[sizeof file->path];
    for (int tries = 0; file->spared_ns != 0 && tries < 10; tries++) {
        if (file->yields())
            return ta__give_number(file->temporary, file->path, sizeof file->path);
        if (rename_by(WITHOUT_REPLACING, file->temporary, file->path) == 0)
            return 0;
        memcpy(other, file->path, strlen(file->path) + 1);
        if (errno != EEXIST)
            break;
        if (!ta__appeared_since(file->path, file->spared_ns)) {
            if (file->keeps_older)
                return ta__give_number(file->temporary, file->path, sizeof file->path);
            break;
        }
        if (!file->yields() && ta__give_number(file->path, other, sizeof other) != 0 && errno != ENOENT)
            break;
    }
    return rename(file->temporary, file->path);
}

int ta__new_file_commit(struct ta__new_file *file, int keep_open)
{
    int saved_errno = errno;
    if (!ta__is_identical(file->descriptor, file->identity)) {
        errno = EBADF;
        failed("cannot write", file->path);
        ta__new_file_abandon(file);
        return -1;
    }
    if (!file->is_hasty && fsync(file->descriptor) != 0 && !file->direct) {
        failed("cannot sync", file->path);
        ta__new_file_abandon(file);
        return -1;
    }
    if (!file->direct && rename_sparing(file) != 0) {
        failed("cannot replace", file->path);
        ta__new_file_abandon(file);
        return -1;
    }
    if (!file->direct && !file->is_hasty)
        sync_folder(file->path);
    if (!keep_open) {
        close(file->descriptor);
        file->descriptor = -1;
    }
    errno = saved_errno;
    return 0;
}

static int is_named(const char *path, struct ta__identity identity)
{
    struct stat status;
    return lstat(path, &status) == 0 && status.st_dev == identity.device && status.st_ino == identity.inode;
}

/* File systems that cannot exchange names just rename. */
static int take_place(const struct ta__new_file *file, struct ta__identity former)
{
    if (!is_named(file->path, former))
        return errno = EBUSY, -1;
    if (rename_by(EXCHANGING, file->temporary, file->path) != 0)
        return rename(file->temporary, file->path);
    if (!is_named(file->temporary, former)) { /* somebody was faster */
        (void)!rename_by(EXCHANGING, file->temporary, file->path);
        return errno = EBUSY, -1;
    }
    return unlink(file->temporary);
}

int ta__new_file_replace(struct ta__new_file *file, struct ta__identity former)
{
    int saved_errno = errno;
    if (fsync(file->descriptor) != 0 || take_place(file, former) != 0) {
        failed("cannot replace", file->path);
        ta__new_file_abandon(file);
        return -1;
    }
    sync_folder(file->path);
    errno = saved_errno;
    return 0;
}

void ta__new_file_abandon(struct ta__new_file *file)
{
    int saved_errno = errno;
    if (file->descriptor >= 0 && ta__is_identical(file->descriptor, file->identity))
        close(file->descriptor);
    if (!file->direct)
        unlink(file->temporary);
    file->descriptor = -1;
    errno = saved_errno;
}
