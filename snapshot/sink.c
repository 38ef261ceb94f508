/* sink.c: see sink.h. */
#include "snapshot/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h> /* rename */
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
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

int ta__sink_cut(struct ta__sink *sink, uint64_t length)
{
    sink->written = length;
    sink->error = 0;
    sink->is_torn = 0;
    if (sink->descriptor < 0)
        sink->memory.length = length;
    else if (!ta__is_identical(sink->descriptor, sink->identity))
        sink->is_torn = 1; /* whoever finds the file again cuts it then */
    else if (ftruncate(sink->descriptor, (off_t)length) != 0 || lseek(sink->descriptor, (off_t)length, SEEK_SET) < 0)
        sink->error = errno;
    return sink->error == 0 ? 0 : -1;
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
            error = errno == EINTR ? 0 : errno;
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

int ta__sink_write(struct ta__sink *sink, const void *data, size_t length)
{
    if (sink->error != 0)
        return -1;
    if (sink->descriptor < 0)
        sink->error = ta__buffer_put(&sink->memory, data, length) == 0 ? 0 : ENOMEM;
    else if (!ta__is_identical(sink->descriptor, sink->identity))
        sink->error = EBADF;
    else
        sink->error = write_all(sink->descriptor, data, length);
    if (sink->error != 0)
        return -1;
    sink->written += length;
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
    int target = open(path, O_PATH | O_CLOEXEC);
    if (target < 0)
        return failed("cannot write", path);
    char link[32] = "/proc/self/fd/";
    size_t at = strlen(link);
    char digits[12];
    size_t count = 0;
    for (unsigned rest = (unsigned)target; count == 0 || rest != 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    while (count > 0)
        link[at++] = digits[--count];
    link[at] = '\0';
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

int ta__new_file_open(struct ta__new_file *file, const char *path)
{
    struct stat status;
    file->descriptor = -1;
    file->direct = 0;
    if (resolve(file, path) != 0)
        return -1;
    if (stat(file->path, &status) == 0 && !S_ISREG(status.st_mode)) {
        file->direct = 1;
        file->descriptor = open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        file->identity = ta__identity_of(file->descriptor);
        return file->descriptor < 0 ? failed("cannot write", path) : 0;
    }
    for (unsigned attempt = 0; attempt < 16; attempt++) {
        temporary_name(file, attempt);
        file->descriptor = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
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

int ta__new_file_commit(struct ta__new_file *file, int keep_open)
{
    int saved_errno = errno;
    if (!ta__is_identical(file->descriptor, file->identity)) {
        errno = EBADF;
        failed("cannot write", file->path);
        ta__new_file_abandon(file);
        return -1;
    }
    if (fsync(file->descriptor) != 0 && !file->direct) {
        failed("cannot sync", file->path);
        ta__new_file_abandon(file);
        return -1;
    }
    if (!file->direct && rename(file->temporary, file->path) != 0) {
        failed("cannot replace", file->path);
        ta__new_file_abandon(file);
        return -1;
    }
    if (!file->direct)
        sync_folder(file->path);
    if (!keep_open) {
        close(file->descriptor);
        file->descriptor = -1;
    }
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
