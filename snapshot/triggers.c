/* triggers.c: see triggers.h. */
#include "snapshot/triggers.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/message.h"
#include "snapshot/opener.h"
#include "snapshot/take.h"

/* What is asked of the helper; bits in triggers.requests. */
enum request { ASK_SIGNAL = 1, ASK_PEAK = 2, ASK_LIMIT = 4, ASK_STOP = 8 };

enum { NAME_ROOM = 4096 };
/* The thread-local storage of all libraries lies on the stack as well, so a process may need a larger one. */
#define STACK_LEAST ((size_t)512 << 10)
#define STACK_MOST  ((size_t)32 << 20)

static struct {
    struct ta__trigger_options options;
    char path[NAME_ROOM], series[NAME_ROOM];
    int active;         /* started and not stopped; written by start and stop */
    int ending;         /* the last snapshot is being taken */
    pid_t owner;        /* the process that this was set up in: a child of vfork is another one */
    int helper_missing; /* a child after fork has no helper yet */
    int forked;
    uint32_t requests;  /* the futex that the helper sleeps on */
    uint64_t next_peak; /* a size that is worth a snapshot; UINT64_MAX while one is asked for */
    uint64_t peak_seen; /* the size that asked */
    uint64_t number;    /* of the last file */
    uint64_t peak_number;
    uint64_t failure_said; /* hash of the last failure's text; 0: the last snapshot was written. Under work */

    pthread_t helper;
    int helper_runs;
    void *stack;
    size_t stack_bytes;
    struct ta_record *record;
    pthread_mutex_t work;    /* one snapshot at a time: helper, exit */
    pthread_mutex_t control; /* start, stop, poke */

    struct sigaction former; /* what the signal did before us */
    int signal_taken;
    int atfork_done;
} triggers = {.work = PTHREAD_MUTEX_INITIALIZER, .control = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

struct name {
    char *at, *end;
};

static void add_text(struct name *name, const char *text)
{
    while (*text != '\0' && name->at < name->end)
        *name->at++ = *text++;
}

static void add_number(struct name *name, uint64_t number, unsigned digits)
{
    char text[24];
    unsigned at = sizeof text - 1;
    text[at] = '\0';
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0 || sizeof text - 1 - at < digits);
    add_text(name, text + at);
}

/* 20261231-235959, UTC. Not by gmtime_r: that may read the time zone's file, and allocate. */
static void add_time(struct name *name)
{
    uint64_t seconds = now_ns(CLOCK_REALTIME) / 1000000000u;
    uint64_t days = seconds / 86400 + 719468; /* since 0000-03-01, so that the leap day ends a year */
    uint64_t era = days / 146097;
    uint64_t day_of_era = days % 146097;
    uint64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t month = (5 * day_of_year + 2) / 153; /* 0 = March */
    uint64_t day = day_of_year - (153 * month + 2) / 5 + 1;
    uint64_t year = year_of_era + era * 400 + (month >= 10);
    add_number(name, year, 4);
    add_number(name, month < 10 ? month + 3 : month - 9, 2);
    add_number(name, day, 2);
    add_text(name, "-");
    add_number(name, seconds / 3600 % 24, 2);
    add_number(name, seconds / 60 % 60, 2);
    add_number(name, seconds % 60, 2);
}

static void add_host(struct name *name)
{
    struct utsname system;
    if (uname(&system) != 0)
        return;
    for (char *at = system.nodename; *at != '\0'; at++)
        if (*at == '/')
            *at = '_';
    add_text(name, system.nodename);
}

int ta__trigger_path(const char *pattern, uint64_t number, int forked, char *path, uint64_t room)
{
    struct name name = {path, path + room - 1};
    int has_pid = 0;
    for (const char *at = pattern; *at != '\0'; at++) {
        char one[2] = {*at, '\0'};
        if (*at != '%' || at[1] == '\0') {
            add_text(&name, one);
            continue;
        }
        switch (*++at) {
        case 'p':
            add_number(&name, (uint64_t)getpid(), 1);
            has_pid = 1;
            break;
        case 'n':
            add_number(&name, number, 1);
            break;
        case 't':
            add_time(&name);
            break;
        case 'h':
            add_host(&name);
            break;
        case '%':
            add_text(&name, "%");
            break;
        default:
            add_text(&name, one);
            one[0] = *at;
            add_text(&name, one);
        }
    }
    if (forked && !has_pid) {
        add_text(&name, ".");
        add_number(&name, (uint64_t)getpid(), 1);
    }
    if (name.at == name.end)
        return ta__error_set("the snapshot's file name is too long", NULL);
    *name.at = '\0';
    return 0;
}

static int has_number(const char *pattern)
{
    for (; *pattern != '\0'; pattern++)
        if (pattern[0] == '%' && *++pattern == 'n')
            return 1;
        else if (*pattern == '\0')
            break;
    return 0;
}

/* The next name that no file has, so that a process that executes another program keeps what it wrote before. */
static int free_path(const char *pattern, uint64_t *number, char *path)
{
    do {
        ++*number;
        if (ta__trigger_path(pattern, *number, triggers.forked, path, NAME_ROOM) != 0)
            return -1;
    } while (has_number(pattern) && access(path, F_OK) == 0);
    return 0;
}

/* ---- one snapshot --------------------------------------------------------------------------------------------------
 */

static int append_to_series(const char *reason)
{
    if (triggers.record == NULL) {
        char path[NAME_ROOM];
        uint64_t number = 0;
        if (free_path(triggers.series, &number, path) != 0)
            return -1;
        triggers.record = ta_record_open(path, triggers.options.sync ? TA_RECORD_SYNC : 0);
        if (triggers.record == NULL)
            return -1;
    }
    return ta_record_append(triggers.record, reason);
}

static int write_file(const char *reason, int is_peak)
{
    char path[NAME_ROOM];
    int is_old_peak = is_peak && triggers.peak_number != 0;
    uint64_t number = is_old_peak ? triggers.peak_number : triggers.number;
    int result = is_old_peak ? ta__trigger_path(triggers.path, number, triggers.forked, path, NAME_ROOM)
                             : free_path(triggers.path, &number, path);
    if (result == 0)
        result = ta__snapshot_to_file(path, reason);
    if (result == 0 && !is_old_peak)
        triggers.number = number;
    if (result == 0 && is_peak)
        triggers.peak_number = number;
    return result;
}

/* Said once, and again only when something else is wrong or it went well in between: a full disk fails every time. */
static void say_failure(void)
{
    uint64_t hash = ta__hash_bytes(ta__error_text(), strlen(ta__error_text())) | 1;
    if (triggers.options.loud && hash != triggers.failure_said)
        ta__message_line("no snapshot: ", ta__error_text(), (const char *)NULL);
    if (hash != triggers.failure_said)
        ta__opener_tell(ta__error_text());
    triggers.failure_said = hash;
}

static void take(const char *reason, int is_peak)
{
    int saved_errno = errno;
    pthread_mutex_lock(&triggers.work);
    int result = triggers.options.series != NULL ? append_to_series(reason) : write_file(reason, is_peak);
    if (result != 0)
        say_failure();
    else
        triggers.failure_said = 0;
    pthread_mutex_unlock(&triggers.work);
    errno = saved_errno;
}

/* ---- asking --------------------------------------------------------------------------------------------------------
 */

static void ask(enum request request)
{
    int saved_errno = errno;
    if ((__atomic_fetch_or(&triggers.requests, (uint32_t)request, __ATOMIC_ACQ_REL) & request) == 0)
        syscall(SYS_futex, &triggers.requests, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved_errno;
}

void ta__triggers_note_size(uint64_t current_bytes)
{
    uint64_t next = ta__load_relaxed(&triggers.next_peak);
    if (TA_LIKELY(next == 0 || current_bytes < next))
        return;
    if (next != UINT64_MAX && ta__cas_acq_rel(&triggers.next_peak, &next, UINT64_MAX)) {
        ta__store_relaxed(&triggers.peak_seen, current_bytes);
        ask(ASK_PEAK);
    }
}

void ta__triggers_note_limit(uint32_t domain)
{
    (void)domain; /* the snapshot has the live bytes and the limit of every domain */
    if (ta__load_relaxed(&triggers.active) && triggers.options.at_limit)
        ask(ASK_LIMIT);
}

/* In the handler nothing of ours runs but this. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    static TA_THREAD_LOCAL int inside;
    ask(ASK_SIGNAL);
    if (inside) /* the program's handler calls the one that it found, which is this */
        return;
    inside = 1;
    const struct sigaction *former = &triggers.former;
    if (former->sa_flags & SA_SIGINFO) {
        if (former->sa_sigaction != NULL)
            former->sa_sigaction(number, info, context);
    } else if (former->sa_handler != SIG_DFL && former->sa_handler != SIG_IGN) {
        former->sa_handler(number);
    }
    inside = 0;
}

/* Takes the signal, or takes it again after the program has installed a handler of its own, which is then called from
 * ours with the mask and the flags that it asked for. */
static int adopt_signal(void)
{
    struct sigaction present;
    int number = triggers.options.signal_number;
    if (number == 0 || sigaction(number, NULL, &present) != 0)
        return number == 0 ? 0 : -1;
    if ((present.sa_flags & SA_SIGINFO) && present.sa_sigaction == on_signal)
        return 0;
    struct sigaction ours = present;
    int has_handler =
        (present.sa_flags & SA_SIGINFO) || (present.sa_handler != SIG_DFL && present.sa_handler != SIG_IGN);
    if (!has_handler) {
        memset(&ours, 0, sizeof ours);
        sigemptyset(&ours.sa_mask);
        ours.sa_flags = SA_RESTART;
    }
    ours.sa_sigaction = on_signal;
    ours.sa_flags = (ours.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
    triggers.former = present;
    if (sigaction(number, &ours, NULL) != 0)
        return -1;
    triggers.signal_taken = 1;
    return 0;
}

static void give_signal_back(void)
{
    struct sigaction present;
    if (!triggers.signal_taken)
        return;
    if (sigaction(triggers.options.signal_number, NULL, &present) == 0 && (present.sa_flags & SA_SIGINFO) &&
        present.sa_sigaction == on_signal)
        sigaction(triggers.options.signal_number, &triggers.former, NULL);
    triggers.signal_taken = 0;
}

/* ---- the helper
 * ------------------------------------------------------------------------------------------------------ */

static uint64_t grown(uint64_t size)
{
    uint64_t percent = triggers.options.peak_percent == 0 ? 5 : triggers.options.peak_percent;
    uint64_t next = size + size / 100 * percent + 1;
    return next < triggers.options.peak_least ? triggers.options.peak_least : next;
}

/* A peak's snapshot is taken a moment after the peak; the next one is due when the size grows beyond what it saw. */
static void take_peak(void)
{
    take("peak", 1);
    uint64_t size = ta__load_relaxed(&triggers.peak_seen);
    ta__store_relaxed(&triggers.next_peak, grown(size));
}

/* How long the helper may sleep. The signal is looked after once a second: a program may install its own handler. */
static uint64_t nap_ns(uint64_t next_interval)
{
    const struct ta__trigger_options *options = &triggers.options;
    uint64_t nap = UINT64_MAX;
    if (options->interval_ns != 0) {
        uint64_t now = now_ns(CLOCK_MONOTONIC);
        nap = next_interval > now ? next_interval - now : 0;
    }
    if (options->signal_number != 0 && nap > 1000000000u)
        nap = 1000000000u;
    if (options->at_peak && options->current_bytes != NULL) {
        uint64_t poll = options->poll_ns == 0 ? 10000000u : options->poll_ns;
        nap = nap < poll ? nap : poll;
    }
    return nap;
}

static void *helper_main(void *unused)
{
    const struct ta__trigger_options *options = &triggers.options;
    uint64_t next_interval = now_ns(CLOCK_MONOTONIC) + options->interval_ns;
    pthread_setname_np(pthread_self(), "tracealloc");
    for (;;) {
        uint64_t nap = nap_ns(next_interval);
        if (ta__load_acquire(&triggers.requests) == 0 && nap != 0) {
            struct timespec wait = {(time_t)(nap / 1000000000u), (long)(nap % 1000000000u)};
            syscall(SYS_futex, &triggers.requests, FUTEX_WAIT_PRIVATE, 0, nap == UINT64_MAX ? NULL : &wait, NULL, 0);
        }
        uint32_t asked = ta__exchange_acq_rel(&triggers.requests, 0);
        if (asked & ASK_STOP)
            return unused;
        if (asked & ASK_SIGNAL)
            take("signal", 0);
        if (asked & ASK_LIMIT)
            take("limit", 0);
        if (options->at_peak && options->current_bytes != NULL)
            ta__triggers_note_size(options->current_bytes());
        if (asked & ASK_PEAK)
            take_peak();
        if (options->interval_ns != 0 && now_ns(CLOCK_MONOTONIC) >= next_interval) {
            take("interval", 0);
            next_interval += options->interval_ns;
            uint64_t now = now_ns(CLOCK_MONOTONIC);
            if (next_interval < now) /* a snapshot took longer than the interval: skip, do not pile up */
                next_interval = now + options->interval_ns;
        }
        adopt_signal();
    }
}

static int create_with_stack(size_t bytes)
{
    pthread_attr_t attributes;
    void *stack = ta__memory_map(bytes);
    if (stack == NULL)
        return ENOMEM;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, bytes);
    int error = pthread_create(&triggers.helper, &attributes, helper_main, NULL);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        ta__memory_unmap(stack, bytes);
        return error;
    }
    triggers.stack = stack;
    triggers.stack_bytes = bytes;
    return 0;
}

/* Under `control`. */
static int start_helper(void)
{
    const struct ta__trigger_options *options = &triggers.options;
    if (options->signal_number == 0 && options->interval_ns == 0 && !options->at_peak && !options->at_limit)
        return 0;
    sigset_t all, before;
    int error = EINVAL;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t bytes = STACK_LEAST; error == EINVAL && bytes <= STACK_MOST; bytes *= 4)
        error = create_with_stack(bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    triggers.helper_runs = error == 0;
    errno = error;
    return error == 0 ? 0 : -1;
}

static void stop_helper(void)
{
    if (!triggers.helper_runs)
        return;
    ask(ASK_STOP);
    pthread_join(triggers.helper, NULL);
    triggers.helper_runs = 0;
    ta__store_relaxed(&triggers.requests, 0u);
    ta__memory_unmap(triggers.stack, triggers.stack_bytes);
    triggers.stack = NULL;
}

/* The child has one thread and no helper. What the parent's helper was doing does not go on here: its file and its
 * tables are left alone, the locks are new. */
static void in_child(void)
{
    if (!triggers.active)
        return;
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    triggers.work = unlocked;
    triggers.control = unlocked;
    ta__record_forget(triggers.record);
    triggers.record = NULL;
    triggers.owner = getpid();
    triggers.ending = 0;
    triggers.forked = 1;
    if (triggers.options.no_children)
        triggers.active = 0;
    triggers.number = triggers.peak_number = triggers.failure_said = 0;
    triggers.stack = NULL; /* the copy of the parent's stays mapped: half a mebibyte, untouched */
    ta__store_relaxed(&triggers.requests, 0u);
    if (triggers.next_peak == UINT64_MAX)
        triggers.next_peak = 1;
    ta__store_release(&triggers.helper_missing, triggers.helper_runs);
    triggers.helper_runs = 0;
}

void ta__triggers_poke(void)
{
    if (TA_LIKELY(!ta__load_relaxed(&triggers.helper_missing)))
        return;
    int saved_errno = errno;
    if (pthread_mutex_trylock(&triggers.control) == 0) {
        if (triggers.helper_missing && triggers.active) {
            triggers.helper_missing = 0; /* before: creating a thread allocates, and that may lead here again */
            start_helper();
        }
        pthread_mutex_unlock(&triggers.control);
    }
    errno = saved_errno;
}

/* ---- start and stop
 * ---------------------------------------------------------------------------------------------------- */

static int copy_name(char *to, const char *from)
{
    size_t length = from == NULL ? 0 : strlen(from);
    if (length >= NAME_ROOM) {
        errno = ENAMETOOLONG;
        return ta__error_set("the snapshot's file name is too long", NULL);
    }
    memcpy(to, from == NULL ? "" : from, length + 1);
    return 0;
}

static void stop_locked(void)
{
    stop_helper(); /* first: it would take the signal again */
    give_signal_back();
    triggers.helper_missing = 0;
    ta__store_relaxed(&triggers.next_peak, (uint64_t)0);
    if (triggers.record != NULL)
        (void)ta_record_close(triggers.record);
    triggers.record = NULL;
    ta__store_release(&triggers.active, 0);
}

int ta__triggers_start(const struct ta__trigger_options *options)
{
    int saved_errno = errno;
    pthread_mutex_lock(&triggers.control);
    if (triggers.active)
        stop_locked();
    int result = copy_name(triggers.path, options->path != NULL ? options->path : "tracealloc.%p.%n.ta");
    if (result == 0)
        result = copy_name(triggers.series, options->series);
    if (result == 0) {
        triggers.options = *options;
        triggers.owner = getpid();
        triggers.ending = 0;
        ta__opener_set(options->opener);
        ta__snapshot_remember_program();
        triggers.options.path = triggers.path;
        triggers.options.series = options->series == NULL ? NULL : triggers.series;
        triggers.forked = options->forked;
        triggers.number = triggers.peak_number = triggers.failure_said = 0;
        if (!triggers.atfork_done)
            triggers.atfork_done = pthread_atfork(NULL, NULL, in_child) == 0;
        ta__store_relaxed(&triggers.next_peak, options->at_peak ? grown(options->peak_least) : 0);
        ta__store_release(&triggers.active, 1);
        if (adopt_signal() != 0 || start_helper() != 0) {
            int number = errno;
            stop_locked();
            ta__error_set("cannot start the snapshot triggers", NULL);
            result = ta__error_add_errno(number);
        }
    }
    pthread_mutex_unlock(&triggers.control);
    if (result == 0)
        errno = saved_errno;
    return result;
}

void ta__triggers_stop(void)
{
    pthread_mutex_lock(&triggers.control);
    if (triggers.active)
        stop_locked();
    pthread_mutex_unlock(&triggers.control);
}

/* Under `control`, with all signals blocked: one that would end the process waits until the file is whole. */
static void exit_locked(void)
{
    if (!triggers.active)
        return;
    ta__store_release(&triggers.ending, 1);
    stop_helper();
    give_signal_back();
    if (triggers.options.at_exit)
        take("exit", 0);
    stop_locked();
}

void ta__triggers_exit(void)
{
    int saved_errno = errno;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&triggers.control);
    exit_locked();
    pthread_mutex_unlock(&triggers.control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved_errno;
}

/* Possibly in a signal handler, on top of anything: no room on an alternate stack, no endless wait for a lock whose
 * holder may be the interrupted code; a minute for another thread that takes the last snapshot. */
void ta__triggers_exit_now(void)
{
    const struct timespec nap = {0, 1000000};
    int saved_errno = errno;
    stack_t stack;
    sigset_t all, before;
    if (!ta__load_acquire(&triggers.active) || triggers.owner != getpid() ||
        (sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int tries = 0; tries < (ta__load_acquire(&triggers.ending) ? 60000 : 1000); tries++) {
        if (pthread_mutex_trylock(&triggers.control) == 0) {
            exit_locked();
            pthread_mutex_unlock(&triggers.control);
            break;
        }
        nanosleep(&nap, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved_errno;
}
