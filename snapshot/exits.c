/* exits.c: the ends of a process at which no destructor runs: _exit, _Exit and quick_exit; and, where it is asked for,
 * death by SIGINT, SIGTERM or SIGHUP, with which people and service managers end what runs for ever.
 *
 * Workers that were forked end by _exit (Python's multiprocessing, shells): without this they would leave no recording.
 * A child of vfork shares its parent's memory and must touch nothing: it is told apart by its number.
 *
 * The handler of the three signals stands where the program has the default action, and the program cannot tell:
 * sigaction and signal go through here, answer SIG_DFL for it, and put it back for SIG_DFL. After the snapshot the signal
 * is raised again with its default action, so that the process ends by it. A handler of the program's own, or that it
 * ignores the signal, is left alone. What cannot be caught stays so: other signals, and the C library's own calls. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "snapshot/triggers.h"
#include "tracealloc.h"

#if TRACEALLOC_OVERRIDE
__attribute__((constructor)) static void watch_quick_exit(void)
{
    at_quick_exit(ta__triggers_exit_now);
}

TA_API void _exit(int status);
TA_API void _exit(int status)
{
    ta__triggers_exit_now();
    for (;;)
        syscall(SYS_exit_group, status);
}

TA_API void _Exit(int status) __attribute__((alias("_exit"), copy(_exit)));

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* The C library's own names for sigaction and signal. */
extern int __sigaction(int number, const struct sigaction *action, struct sigaction *former);
extern sighandler_t ssignal(int number, sighandler_t handler);

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
static int is_watching;

static void on_end(int number)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t set;
    ta__triggers_exit_now();
    __sigaction(number, &by_default, NULL);
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
}

static struct sigaction watching(void)
{
    struct sigaction action = {.sa_handler = on_end, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    return action;
}

void ta__watch_ends(void)
{
    const struct sigaction ours = watching();
    if (getpid() == 1) /* the kernel spares init what it does not handle; our handler would not */
        return;
    is_watching = 1;
    for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction present;
        if (__sigaction(ends[i], NULL, &present) == 0 && present.sa_handler == SIG_DFL)
            __sigaction(ends[i], &ours, NULL);
    }
}

static int is_watched(int number)
{
    return is_watching && (number == SIGINT || number == SIGTERM || number == SIGHUP);
}

TA_API int sigaction(int number, const struct sigaction *action, struct sigaction *former)
{
    const struct sigaction ours = watching();
    int is_default = action != NULL && action->sa_handler == SIG_DFL && is_watched(number);
    int result = __sigaction(number, is_default ? &ours : action, former);
    if (result == 0 && former != NULL && former->sa_handler == on_end)
        *former = (struct sigaction){.sa_handler = SIG_DFL};
    return result;
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
    const struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct sigaction former;
    return sigaction(number, &action, &former) == 0 ? former.sa_handler : SIG_ERR;
}

TA_API sighandler_t signal(int number, sighandler_t handler)
{
    return is_watched(number) ? set_handler(number, handler, SA_RESTART) : ssignal(number, handler);
}

/* What signal() means under strict standards. */
TA_API sighandler_t __sysv_signal(int number, sighandler_t handler);
TA_API sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}
#else
void ta__watch_ends(void)
{
}
#endif
