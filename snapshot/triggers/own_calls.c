/* own_calls.c: the system calls that the library makes by libc's names, under these names, for the library alone: nothing
 * outside of it sees them.
 *
 * A program may run with a library that takes such names (fakeroot, proxychains, libeatmydata …). What that does is for the
 * program: with its locks and its memory, in its threads. The process that keeps the memory of one that has ended
 * (keeper.h) must not run any of it; a lock of a dead program is held for ever. And a program may have functions of its own
 * with such a name, which mean something else (lzop's sysinfo), and would be called before its main. Results and errno are
 * as libc's.
 *
 * What standard C has names for is taken from libc: nobody else may have them. So is the clock, which is read without a
 * system call. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Sanitizers look at what such calls read and write; elsewhere structures may differ between kernel and libc. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#define CALL(result, name, parameters, ...)                                                                            \
    __attribute__((visibility("hidden"))) result name parameters                                                       \
    {                                                                                                                  \
        return (result)syscall(__VA_ARGS__);                                                                           \
    }

#if defined(__GLIBC__)
typedef __rlimit_resource_t limit_type;
typedef __rusage_who_t usage_type;
#else
typedef int limit_type;
typedef int usage_type;
#endif

/* Six words, as far as the call has any: more are read than were given, and the kernel does not look at them. */
__attribute__((visibility("hidden"))) long syscall(long number, ...)
{
    va_list rest;
    va_start(rest, number);
    long words[6];
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(rest, long);
    va_end(rest);
    register long d __asm__("r10") = words[3];
    register long e __asm__("r8") = words[4];
    register long f __asm__("r9") = words[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(d), "r"(e), "r"(f)
                     : "rcx", "r11", "memory");
    if (result < 0 && result >= -4095)
        return errno = (int)-result, -1;
    return result;
}

CALL(int, accept4, (int file, struct sockaddr *from, socklen_t *length, int flags), SYS_accept4, file, from, length,
     flags)
CALL(int, access, (const char *path, int mode), SYS_access, path, mode)
CALL(int, bind, (int file, const struct sockaddr *name, socklen_t length), SYS_bind, file, name, length)
CALL(int, close, (int file), SYS_close, file)
CALL(int, connect, (int file, const struct sockaddr *to, socklen_t length), SYS_connect, file, to, length)
CALL(int, fdatasync, (int file), SYS_fdatasync, file)
CALL(int, fstat, (int file, struct stat *status), SYS_fstat, file, status)
CALL(int, fsync, (int file), SYS_fsync, file)
CALL(int, flock, (int file, int operation), SYS_flock, file, operation)
CALL(int, ftruncate, (int file, off_t length), SYS_ftruncate, file, length)
CALL(uid_t, geteuid, (void), SYS_geteuid)
CALL(pid_t, getpid, (void), SYS_getpid)
CALL(pid_t, getppid, (void), SYS_getppid)
CALL(int, getrlimit, (limit_type resource, struct rlimit *limit), SYS_prlimit64, 0, (int)resource, NULL, limit)
CALL(int, getrusage, (usage_type who, struct rusage *usage), SYS_getrusage, (int)who, usage)
CALL(int, getsockopt, (int file, int level, int name, void *value, socklen_t *length), SYS_getsockopt, file, level,
     name, value, length)
CALL(int, listen, (int file, int waiting), SYS_listen, file, waiting)
CALL(off_t, lseek, (int file, off_t offset, int from), SYS_lseek, file, offset, from)
CALL(int, lstat, (const char *path, struct stat *status), SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW)
CALL(int, madvise, (void *start, size_t length, int advice), SYS_madvise, start, length, advice)
CALL(int, mincore, (void *start, size_t length, unsigned char *pages), SYS_mincore, start, length, pages)
CALL(int, mkdir, (const char *path, mode_t mode), SYS_mkdir, path, mode)
CALL(int, mprotect, (void *start, size_t length, int protection), SYS_mprotect, start, length, protection)
CALL(int, nanosleep, (const struct timespec *time, struct timespec *left), SYS_nanosleep, time, left)
CALL(int, poll, (struct pollfd * files, nfds_t count, int timeout), SYS_poll, files, count, timeout)
CALL(ssize_t, pread, (int file, void *bytes, size_t count, off_t offset), SYS_pread64, file, bytes, count, offset)
CALL(ssize_t, process_vm_readv,
     (pid_t process, const struct iovec *to, unsigned long to_count, const struct iovec *from, unsigned long from_count,
      unsigned long flags),
     SYS_process_vm_readv, process, to, to_count, from, from_count, flags)
CALL(ssize_t, read, (int file, void *bytes, size_t count), SYS_read, file, bytes, count)
CALL(ssize_t, readlink, (const char *path, char *text, size_t room), SYS_readlink, path, text, room)
CALL(ssize_t, recvmsg, (int file, struct msghdr *message, int flags), SYS_recvmsg, file, message, flags)
CALL(int, rename, (const char *from, const char *to), SYS_rename, from, to)
CALL(int, sched_getscheduler, (pid_t process), SYS_sched_getscheduler, process)
CALL(int, sched_setscheduler, (pid_t process, int policy, const struct sched_param *how), SYS_sched_setscheduler,
     process, policy, how)
CALL(ssize_t, send, (int file, const void *bytes, size_t count, int flags), SYS_sendto, file, bytes, count, flags, NULL,
     0)
CALL(ssize_t, sendmsg, (int file, const struct msghdr *message, int flags), SYS_sendmsg, file, message, flags)
CALL(pid_t, setsid, (void), SYS_setsid)
CALL(int, setsockopt, (int file, int level, int name, const void *value, socklen_t length), SYS_setsockopt, file, level,
     name, value, length)
CALL(int, shutdown, (int file, int how), SYS_shutdown, file, how)
CALL(int, sigaltstack, (const stack_t *stack, stack_t *former), SYS_sigaltstack, stack, former)
CALL(int, sigpending, (sigset_t * set), SYS_rt_sigpending, set, _NSIG / 8)
CALL(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *time), SYS_rt_sigtimedwait, set,
     info, time, _NSIG / 8)
CALL(int, socket, (int domain, int type, int protocol), SYS_socket, domain, type, protocol)
CALL(int, stat, (const char *path, struct stat *status), SYS_newfstatat, AT_FDCWD, path, status, 0)
CALL(int, sysinfo, (struct sysinfo * info), SYS_sysinfo, info)
CALL(int, uname, (struct utsname * names), SYS_uname, names)
CALL(int, unlink, (const char *path), SYS_unlink, path)
CALL(ssize_t, write, (int file, const void *bytes, size_t count), SYS_write, file, bytes, count)

__attribute__((visibility("hidden"))) int fcntl(int file, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    long argument = va_arg(rest, long);
    va_end(rest);
    return (int)syscall(SYS_fcntl, file, command, argument);
}

__attribute__((visibility("hidden"))) int prctl(int option, ...)
{
    va_list rest;
    va_start(rest, option);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long), d = va_arg(rest, long);
    va_end(rest);
    return (int)syscall(SYS_prctl, option, a, b, c, d);
}

/* Mimalloc waits for others so. */
__attribute__((visibility("hidden"))) unsigned sleep(unsigned seconds)
{
    const struct timespec time = {.tv_sec = seconds};
    syscall(SYS_nanosleep, &time, NULL);
    return 0;
}

/* All that the library asks for. */
__attribute__((visibility("hidden"))) long sysconf(int what)
{
    return what == _SC_PAGESIZE ? (long)getauxval(AT_PAGESZ) : (errno = EINVAL, -1);
}

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
