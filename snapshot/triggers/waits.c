/* waits.c: wait4 and waitpid as names of the library. Who waits for children of every kind (__WALL, __WCLONE), and for any of
 * them, as strace and ltrace do until there are none, would wait for the keeper, which waits for its end: for ever. So the
 * keeper goes first, and the process is recorded from within. Other waits do not see the keeper at all. */
#include <dlfcn.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomics.h"
#include "snapshot/triggers/triggers.h"
#include "tracealloc.h"

#if TRACEALLOC_OVERRIDE && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)

extern void *dlsym(void *handle, const char *name) __attribute__((weak));
extern pid_t __waitpid(pid_t process, int *status, int options);

static void make_way(pid_t process, int options)
{
    int kinds = (int)(__WALL | __WCLONE);
    if (process == -1 && (options & kinds) != 0 && (options & WNOHANG) == 0 && ta__triggers_go_alone())
        ta__watch_ends(0);
}

TA_API pid_t waitpid(pid_t process, int *status, int options)
{
    make_way(process, options);
    return __waitpid(process, status, options);
}

/* libc's has no second name; it is a place where a thread may be cancelled. */
TA_API pid_t wait4(pid_t process, int *status, int options, struct rusage *usage)
{
    static pid_t (*libcs)(pid_t, int *, int, struct rusage *);
    pid_t (*next)(pid_t, int *, int, struct rusage *) = ta__load_acquire(&libcs);
    make_way(process, options);
    if (next == NULL && dlsym != NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "wait4");
        ta__store_release(&libcs, next);
    }
    return next != NULL ? next(process, status, options, usage)
                        : (pid_t)syscall(SYS_wait4, process, status, options, usage);
}

#endif
