/* taken_signal.c: see taken_signal.h. The handler runs on top of anything: no lock, no allocation. */
#include "snapshot/triggers/taken_signal.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/lock.h"

/* What the program installed. A handler reads the present one; a few more changes go by before its place is used anew. */
enum { ACTIONS = 16 };

static struct {
    int number; /* 0 = none is taken */
    pid_t owner;
    void (*asked)(void);
    struct sigaction actions[ACTIONS];
    uint32_t present;       /* release: the action is whole */
    int was_reset;          /* SA_RESETHAND has put back the default, which then happens */
    struct ta__lock lock;   /* changes of the action; taken with all signals blocked */
    const void *trampoline; /* where handlers return to, when libc says */
} taken;

static int has_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 ? action->sa_sigaction != NULL
                                                : action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static void publish(const struct sigaction *action)
{
    uint32_t next = (ta__load_relaxed(&taken.present) + 1) % ACTIONS;
    taken.actions[next] = *action;
    ta__store_release(&taken.present, next);
}

/* A handler that went around the library may call the one that it found, which is ours: that call is no signal. What
 * the kernel calls returns to a place that ends the handler. */
static int is_call_of_kernel(const void *returns_to)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    (void)returns_to;
    return 1; /* sanitizers call handlers themselves */
#elif defined(__x86_64__)
    static const uint8_t ends[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    return returns_to == taken.trampoline || memcmp(returns_to, ends, sizeof ends) == 0;
#else
    static const uint32_t ends[] = {0xd2801168, 0xd4000001};
    return returns_to == taken.trampoline || memcmp(returns_to, ends, sizeof ends) == 0;
#endif
}

static TA_THREAD_LOCAL int depth; /* in sanitizer builds only */

static void by_default(int number)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    __sigaction(number, &action, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number); /* comes when this handler has returned */
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    if (!is_call_of_kernel(__builtin_return_address(0)) || depth > 0)
        return;
    taken.asked();
    struct sigaction action = taken.actions[ta__load_acquire(&taken.present)];
    if (!has_handler(&action)) {
        if (ta__load_relaxed(&taken.was_reset))
            by_default(number);
        return;
    }
    if ((action.sa_flags & (int)SA_RESETHAND) != 0) {
        const struct sigaction reset = {.sa_handler = SIG_DFL};
        publish(&reset);
        ta__store_relaxed(&taken.was_reset, 1);
    }
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    depth++;
#endif
    if ((action.sa_flags & SA_SIGINFO) != 0)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    depth--;
#endif
    __asm__ volatile(""); /* no jump instead of the call: a handler's return address must be ours */
}

/* Ours, called under the conditions that the program wants for its own. */
static int install(const struct sigaction *program)
{
    struct sigaction ours = {.sa_flags = SA_RESTART};
    sigemptyset(&ours.sa_mask);
    if (has_handler(program))
        ours = *program;
    ours.sa_sigaction = on_signal;
    ours.sa_flags = (ours.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
    return __sigaction(taken.number, &ours, NULL);
}

static int stands(const struct sigaction *present)
{
    return (present->sa_flags & SA_SIGINFO) != 0 && present->sa_sigaction == on_signal;
}

static void learn_trampoline(void)
{
#if defined(__x86_64__)
    struct {
        const void *handler;
        unsigned long flags;
        const void *restorer;
        uint64_t mask;
    } action = {0};
    if (syscall(SYS_rt_sigaction, taken.number, NULL, &action, sizeof action.mask) == 0)
        taken.trampoline = action.restorer;
#endif
}

int ta__taken_signal_begin(int number, void (*asked)(void))
{
    struct sigaction present;
    if (__sigaction(number, NULL, &present) != 0)
        return -1;
    taken.asked = asked;
    taken.owner = getpid();
    taken.was_reset = 0;
    taken.number = number;
    if (!stands(&present)) {
        publish(&present);
        if (install(&present) != 0)
            return taken.number = 0, -1;
    }
    learn_trampoline();
    return 0;
}

void ta__taken_signal_look(void)
{
    struct sigaction present;
    if (taken.number == 0 || __sigaction(taken.number, NULL, &present) != 0 || stands(&present))
        return;
    publish(&present);
    (void)install(&present);
}

void ta__taken_signal_end(void)
{
    struct sigaction present;
    if (taken.number == 0)
        return;
    if (__sigaction(taken.number, NULL, &present) == 0 && stands(&present))
        __sigaction(taken.number, &taken.actions[taken.present], NULL);
    taken.number = 0;
}

int ta__taken_signal_is(int number)
{
    return number != 0 && number == ta__load_relaxed(&taken.number);
}

/* A child of vfork has our memory, but signals of its own. */
static int exchange_elsewhere(const struct sigaction *action, struct sigaction *former)
{
    int result = __sigaction(taken.number, action, former);
    if (result == 0 && former != NULL && stands(former))
        *former = taken.actions[ta__load_acquire(&taken.present)];
    return result;
}

int ta__taken_signal_exchange(const struct sigaction *action, struct sigaction *former)
{
    struct sigaction before, next;
    sigset_t all, mask;
    int result = 0;
    if (taken.owner != getpid())
        return exchange_elsewhere(action, former);
    if (action != NULL)
        next = *action; /* before anything is locked: it may lie anywhere */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    ta__lock_acquire(&taken.lock);
    before = taken.actions[taken.present];
    if (action != NULL) {
        publish(&next);
        ta__store_relaxed(&taken.was_reset, 0);
        result = install(&next);
    }
    ta__lock_release(&taken.lock);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (former != NULL)
        *former = before;
    return result;
}
