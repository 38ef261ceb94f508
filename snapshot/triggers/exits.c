/* exits.c: the ends of a process at which no destructor runs: _exit, _Exit and quick_exit; and, where it is asked for,
 * faults, and where no keeper outlives the process death by SIGINT, SIGTERM or SIGHUP, with which people end what runs
 * for ever.
 *
 * Workers that were forked end by _exit (Python's multiprocessing, shells): without this they would leave no recording.
 * A child of vfork shares its parent's memory and must touch nothing: it is told apart by its number.
 *
 * The handler of those signals stands where the program has the default action, and the program cannot tell:
 * sigaction and signal go through here, answer SIG_DFL for it, and put it back for SIG_DFL. After the snapshot the signal
 * is raised again with its default action, so that the process ends by it. A handler of the program's own, or that it
 * ignores the signal, is left alone. What cannot be caught stays so: other signals, and the C library's own calls. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "snapshot/triggers/crash.h"
#include "snapshot/triggers/taken_signal.h"
#include "snapshot/triggers/triggers.h"
#include "tracealloc.h"

static int exit_status = -1; /* of exit and _exit */
static int end_signal;       /* by which the process is about to end */

int ta__exit_status(void)
{
    return exit_status;
}

int ta__ending_signal(void)
{
    return end_signal;
}

#if TRACEALLOC_OVERRIDE && defined(__GLIBC__)
static void note_status(int status, void *unused)
{
    (void)unused;
    exit_status = status & 0xff;
    ta__triggers_leave();
}

extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/* libc's, behind us: standard C does not keep the name, so that a program may have a function of its own by it. */
__attribute__((constructor)) static void watch_quick_exit(void)
{
    int (*libcs)(void (*)(int, void *), void *) = NULL;
    at_quick_exit(ta__triggers_exit_now);
    if (dlsym != NULL)
        *(void **)&libcs = dlsym(RTLD_NEXT, "on_exit");
    if (libcs == NULL)
        libcs = on_exit; /* all static */
    libcs(note_status, NULL);
}

TA_API void _exit(int status);
TA_API void _exit(int status)
{
    if (ta__triggers_are_here())
        exit_status = status & 0xff;
    ta__triggers_exit_now();
    for (;;)
        syscall(SYS_exit_group, status);
}

TA_API void _Exit(int status) __attribute__((alias("_exit"), copy(_exit)));

/* ---- signals ---- */

/* The C library's own names for sigaction and signal. */
extern int __sigaction(int number, const struct sigaction *action, struct sigaction *former);
extern sighandler_t ssignal(int number, sighandler_t handler);

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
enum { FAULTS = sizeof faults / sizeof *faults, ENDS = sizeof ends / sizeof *ends };
static uint64_t watched; /* a bit for each signal */

static int is_watched(int number)
{
    return number > 0 && number < 64 && (watched >> number & 1) != 0;
}

static int is_fault(int number)
{
    for (unsigned i = 0; i < FAULTS; i++)
        if (faults[i] == number)
            return 1;
    return 0;
}

static void on_end(int number, siginfo_t *info, void *context)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t set;
    (void)info, (void)context;
    if (ta__triggers_are_here())
        end_signal = number;
    ta__triggers_exit_now();
    __sigaction(number, &by_default, NULL);
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
}

/* The same signal comes again when this returns, where it came from, and then nobody stands in its way. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    if (ta__triggers_are_here()) { /* a child of vfork has our memory */
        ta__crash_note(number, info, context);
        ta__triggers_fault();
    }
    __sigaction(number, &by_default, NULL);
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info);
}

static struct sigaction watching(int number)
{
    struct sigaction action = {.sa_flags = SA_RESTART | SA_SIGINFO};
    action.sa_sigaction = is_fault(number) ? on_fault : on_end;
    if (is_fault(number))
        action.sa_flags |= SA_ONSTACK; /* the program's, if it has one: little is needed */
    sigfillset(&action.sa_mask);
    return action;
}

static int is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && (action->sa_sigaction == on_end || action->sa_sigaction == on_fault);
}

static void watch(const int *numbers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct sigaction ours = watching(numbers[i]);
        struct sigaction present;
        watched |= UINT64_C(1) << numbers[i];
        if (__sigaction(numbers[i], NULL, &present) == 0 && present.sa_handler == SIG_DFL)
            __sigaction(numbers[i], &ours, NULL);
    }
}

/* A stack that is full has no room for a handler: the kernel would end the process with no word of where, and its core would
 * have lost the address, too. Where the main thread has no stack for handlers it gets one; a program that makes its own
 * replaces it. */
static void give_stack_for_handlers(void)
{
    enum { BYTES = 64 << 10 };
    stack_t stack;
    if (syscall(SYS_gettid) != getpid() || sigaltstack(NULL, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0)
        return;
    stack = (stack_t){.ss_sp = ta__memory_map(BYTES), .ss_size = BYTES};
    if (stack.ss_sp != NULL && sigaltstack(&stack, NULL) != 0)
        ta__memory_unmap(stack.ss_sp, BYTES);
}

void ta__watch_ends(int is_outlived)
{
    watch(faults, FAULTS);
    give_stack_for_handlers();
    if (!is_outlived &&
        getpid() != 1) /* the kernel keeps from init what it does not handle; a handler would change that */
        watch(ends, ENDS);
}

TA_API int sigaction(int number, const struct sigaction *action, struct sigaction *former)
{
    if (ta__taken_signal_is(number))
        return ta__taken_signal_exchange(action, former);
    const struct sigaction ours = watching(number);
    int is_default = action != NULL && action->sa_handler == SIG_DFL && is_watched(number);
    int result = __sigaction(number, is_default ? &ours : action, former);
    if (result == 0 && former != NULL && is_ours(former))
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
    return is_watched(number) || ta__taken_signal_is(number) ? set_handler(number, handler, SA_RESTART)
                                                             : ssignal(number, handler);
}

/* What signal() means under strict standards. */
TA_API sighandler_t __sysv_signal(int number, sighandler_t handler);
TA_API sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}
#else
void ta__watch_ends(int is_outlived)
{
    (void)is_outlived;
}
#endif
