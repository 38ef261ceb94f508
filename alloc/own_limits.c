/* own_limits.c: setrlimit, prlimit and mlockall as names of the library. What it has reserved goes back when a program limits
 * its own address space (a shell's `ulimit -v`, a service's sandbox, Python's resource.setrlimit), or wants all of it in
 * memory.
 *
 * Tables are made for their largest size, in address space that costs nothing (base/memory.h), and so are mimalloc's
 * arenas; a process that begins under a limit has smaller ones. Under a limit that comes later the program could map
 * nothing any more, no stack could grow, and it would die; locked, all of it would be resident. So before the call, with
 * the world stopped, the tables give back what they do not need, and arenas what is free at their end, where little is
 * left. The call itself is the kernel's. What another process does to this one, or a system call of the program's own,
 * does not come here. */
#include "alloc/alloc.h"
#include "alloc/entry.h"

#if TRACEALLOC_OVERRIDE && !defined(__SANITIZE_THREAD__)

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/safepoint.h"
#include "trace/trace.h"

#if defined(__GLIBC__)
typedef __rlimit_resource_t resource_type;
typedef enum __rlimit_resource process_resource_type;
#else
typedef int resource_type;
typedef int process_resource_type;
#endif

/* Of a child of vfork, which has its parent's memory and structures, the number is another. */
static struct ta__thread *calling_thread(void)
{
    struct ta__thread *self = ta__process_is_ready() ? ta__thread_get() : NULL;
    return self != NULL && (long)ta__load_relaxed(&self->tid) == syscall(SYS_gettid) ? self : NULL;
}

static size_t left_of(size_t limit, size_t used)
{
    return limit > used ? limit - used : 0;
}

/* Tables take a quarter of the room that they are given: of what is left a sixteenth, but 8 MiB where a quarter is so much. */
static size_t room_of_tables(size_t left)
{
    enum { LEAST = 32 << 20 };
    if (left / 4 >= LEAST)
        return left / 4;
    return left < LEAST ? left : LEAST;
}

/* Before the limit is lowered to `limit`. */
static void make_room(int resource, size_t limit)
{
    enum { AMPLE = 512 << 20, SHARE = 16 };
    size_t used = ta__memory_used(resource), tables = ta__memory_mapped();
    if (left_of(limit, used) >= AMPLE && tables <= limit / SHARE)
        return;
    struct ta__thread *self = calling_thread();
    if (self == NULL || ta__safepoint_stop(&self->safepoint) != TA__STOP_DONE)
        return;
    ta__heap_fit(left_of(limit, left_of(used, tables)));
    ta__contexts_fit(room_of_tables(left_of(limit, left_of(ta__memory_used(resource), tables))));
    ta__heap_choose_sizes(left_of(limit, ta__memory_used(resource)));
    ta__safepoint_resume(&self->safepoint);
}

/* Tables of a sixteenth of a GiB at most are locked; what is mapped from now on, page by page, as it is asked for. */
static void make_small(void)
{
    enum { ROOM = 256 << 20 };
    struct ta__thread *self = calling_thread();
    if (self == NULL || ta__safepoint_stop(&self->safepoint) != TA__STOP_DONE)
        return;
    ta__heap_fit(0);
    ta__contexts_fit(ROOM);
    ta__safepoint_resume(&self->safepoint);
}

/* For the kernel, too, which says so first: of a kind of limit that there is not, everything else is wrong later. */
static int is_readable(const struct rlimit *limits)
{
    enum { NO_KIND = 1000 };
    return limits != NULL && syscall(SYS_prlimit64, 0, NO_KIND, limits, NULL) == -1 && errno == EINVAL;
}

static int limit_space(int resource, const struct rlimit *limits, struct rlimit *former)
{
    struct rlimit present;
    if (!is_readable(limits) || syscall(SYS_prlimit64, 0, resource, NULL, &present) != 0)
        return (int)syscall(SYS_prlimit64, 0, resource, limits, former);
    rlim_t wanted = limits->rlim_cur;
    if (wanted < present.rlim_cur)
        make_room(resource, wanted);
    int result = (int)syscall(SYS_prlimit64, 0, resource, limits, former);
    if (result == 0 && wanted > present.rlim_cur && calling_thread() != NULL)
        ta__heap_choose_sizes(ta__memory_left());
    return result;
}

static int limit(pid_t process, int resource, const struct rlimit *limits, struct rlimit *former)
{
    int saved_errno = errno, result;
    if ((resource == RLIMIT_AS || resource == RLIMIT_DATA) && (process == 0 || (long)process == syscall(SYS_getpid)))
        result = limit_space(resource, limits, former);
    else
        result = (int)syscall(SYS_prlimit64, process, resource, limits, former);
    errno = result == 0 ? saved_errno : errno;
    return result;
}

TA_API int setrlimit(resource_type resource, const struct rlimit *limits)
{
    return limit(0, (int)resource, limits, NULL);
}

TA_API int prlimit(pid_t process, process_resource_type resource, const struct rlimit *limits, struct rlimit *former)
{
    return limit(process, (int)resource, limits, former);
}

TA_API int mlockall(int flags)
{
    int saved_errno = errno;
    make_small();
    errno = saved_errno;
    return (int)syscall(SYS_mlockall, flags);
}

#if defined(__GLIBC__) /* musl has one name for both */
TA_API int setrlimit64(resource_type resource, const struct rlimit64 *limits)
    __attribute__((alias("setrlimit"), nothrow));
TA_API int prlimit64(pid_t process, process_resource_type resource, const struct rlimit64 *limits,
                     struct rlimit64 *former) __attribute__((alias("prlimit"), nothrow));
#endif

#endif
