/* own_calls.c: the system calls that the library makes by libc's names, under these names, for the library alone: nothing
 * outside of it sees them.
 *
 * A program may run with a library that takes such names (fakeroot, proxychains, libeatmydata …). What that does is for the
 * program: with its locks and its memory, in its threads. The process that keeps the memory of one that has ended
 * (keeper.h) must not run any of it; a lock of a dead program is held for ever. Results and errno are as libc's. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sanitizers look at what such calls read and write; elsewhere structures may differ between kernel and libc. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#define CALL(result, name, parameters, ...)                                                                            \
    __attribute__((visibility("hidden"))) result name parameters                                                       \
    {                                                                                                                  \
        return (result)syscall(__VA_ARGS__);                                                                           \
    }

CALL(int, access, (const char *path, int mode), SYS_access, path, mode)
CALL(int, close, (int file), SYS_close, file)
CALL(int, connect, (int file, const struct sockaddr *to, socklen_t length), SYS_connect, file, to, length)
CALL(int, fdatasync, (int file), SYS_fdatasync, file)
CALL(int, fstat, (int file, struct stat *status), SYS_fstat, file, status)
CALL(int, fsync, (int file), SYS_fsync, file)
CALL(int, flock, (int file, int operation), SYS_flock, file, operation)
CALL(int, ftruncate, (int file, off_t length), SYS_ftruncate, file, length)
CALL(uid_t, geteuid, (void), SYS_geteuid)
CALL(int, getsockopt, (int file, int level, int name, void *value, socklen_t *length), SYS_getsockopt, file, level,
     name, value, length)
CALL(off_t, lseek, (int file, off_t offset, int from), SYS_lseek, file, offset, from)
CALL(int, lstat, (const char *path, struct stat *status), SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW)
CALL(int, madvise, (void *start, size_t length, int advice), SYS_madvise, start, length, advice)
CALL(int, poll, (struct pollfd * files, nfds_t count, int timeout), SYS_poll, files, count, timeout)
CALL(ssize_t, pread, (int file, void *bytes, size_t count, off_t offset), SYS_pread64, file, bytes, count, offset)
CALL(ssize_t, read, (int file, void *bytes, size_t count), SYS_read, file, bytes, count)
CALL(ssize_t, readlink, (const char *path, char *text, size_t room), SYS_readlink, path, text, room)
CALL(ssize_t, recvmsg, (int file, struct msghdr *message, int flags), SYS_recvmsg, file, message, flags)
CALL(int, rename, (const char *from, const char *to), SYS_rename, from, to)
CALL(ssize_t, send, (int file, const void *bytes, size_t count, int flags), SYS_sendto, file, bytes, count, flags, NULL,
     0)
CALL(int, setsockopt, (int file, int level, int name, const void *value, socklen_t length), SYS_setsockopt, file, level,
     name, value, length)
CALL(int, shutdown, (int file, int how), SYS_shutdown, file, how)
CALL(int, socket, (int domain, int type, int protocol), SYS_socket, domain, type, protocol)
CALL(int, stat, (const char *path, struct stat *status), SYS_newfstatat, AT_FDCWD, path, status, 0)
CALL(int, unlink, (const char *path), SYS_unlink, path)
CALL(ssize_t, write, (int file, const void *bytes, size_t count), SYS_write, file, bytes, count)

static int open_at(int folder, const char *path, int flags, va_list rest)
{
    int makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = makes ? va_arg(rest, mode_t) : 0;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

__attribute__((visibility("hidden"))) int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int file = open_at(AT_FDCWD, path, flags, rest);
    va_end(rest);
    return file;
}

__attribute__((visibility("hidden"))) int openat(int folder, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int file = open_at(folder, path, flags, rest);
    va_end(rest);
    return file;
}

#endif
