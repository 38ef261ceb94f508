/* triggers.c: see triggers.h. */
#include "snapshot/triggers/triggers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/own_stack.h"
#include "base/message.h"
#include "base/small_file.h"
#include "snapshot/format/sink.h"
#include "snapshot/triggers/end_text.h"
#include "snapshot/triggers/file_name.h"
#include "snapshot/triggers/keeper.h"
#include "snapshot/triggers/memory_short.h"
#include "snapshot/triggers/pace.h"
#include "snapshot/triggers/taken_signal.h"
#include "snapshot/write/file_request.h"
#include "snapshot/write/process_facts.h"
#include "snapshot/write/take.h"

/* What is asked of the helper; bits in triggers.requests. */
enum request {
    ASK_SIGNAL = 1,
    ASK_PEAK = 2,
    ASK_LIMIT = 4,
    ASK_STOP = 8,
    ASK_EXIT = 16,
    ASK_END = 32,   /* the last entry: a signal is about to end the process */
    ASK_LEAVE = 64, /* what the process ends with is known now */
    ASK_LOOK = 128, /* a task has something to do */
    ASK_BEYOND = 256,
};

enum { NAME_ROOM = 4096, EXIT_PATIENCE_MS = 600000, FAULT_PATIENCE_MS = 10000, YOUNG_MS = 250 };
enum { TASKS_MOST = 4 };
#define DANGER_LOOK_NS UINT64_C(1000000000)
/* The thread-local storage of all libraries lies on the stack as well, so a process may need a larger one. */
#define STACK_LEAST ((size_t)512 << 10)
#define STACK_MOST  ((size_t)32 << 20)

static struct {
    struct ta__trigger_options options;
    char path[NAME_ROOM], series[NAME_ROOM], last_name[NAME_ROOM], family[NAME_ROOM];
    int active;         /* started and not stopped; written by start and stop */
    int ending;         /* the last snapshot is being taken */
    pid_t owner;        /* the process that this was set up in: a child of vfork is another one */
    uint32_t *original; /* 1; 0 in a copy of the process that no handler of fork knows of. NULL = cannot be told */
    int helper_missing; /* a child after fork has no helper yet */
    int forked;         /* the names are another process's */
    int is_in_family;   /* where a process that had the same number before us may have left its file */
    int forked_here;    /* nothing was executed since the fork */
    int executed;       /* it is about to become another program, or is one */
    uint32_t requests;  /* the futex that the helper sleeps on */
    uint64_t next_peak; /* a size that is worth a snapshot; UINT64_MAX while one is asked for */
    uint64_t peak_seen; /* the size that asked */
    uint64_t number;    /* of the last file */
    uint64_t peak_number;
    const char *wanted; /* what is being taken, and what came of it. Under work */
    int wants_peak, result;
    uint64_t failure_said; /* hash of the last failure's text; 0: the last snapshot was written. Under work */

    struct ta__keeper keeper;
    int keeper_runs;
    int keeper_lingers; /* it has taken the last snapshot and waits for what the process ends with */
    uint32_t ended;     /* a futex: 1 = the thread has taken the last entry */
    const char *lack;   /* why less is recorded than was asked for; NULL = nothing is missing */
    struct ta__pace pace;
    uint64_t danger_ns; /* when it was last looked whether memory is short */
    uint64_t born_ns;   /* of the helper */
    uint64_t began_ns;  /* of the process, since 1970 */
    pthread_t helper;
    int helper_runs;
    void *stack;
    size_t stack_bytes;
    struct ta_record *record;
    pthread_mutex_t work;    /* one snapshot at a time: helper, exit */
    pthread_mutex_t control; /* start, stop, poke */

    const struct ta__helper_task *tasks[TASKS_MOST];
    unsigned task_count;

    int atfork_done;
} triggers = {.work = PTHREAD_MUTEX_INITIALIZER, .control = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* When the calling process began, in ns since 1970: field 22 of its line, ticks since the boot. Executing another
 * program leaves it as it is. UINT64_MAX when that cannot be known. */
static uint64_t process_began(void)
{
    char line[1024];
    ta__small_file("/proc/self/stat", line, sizeof line);
    const char *at = strrchr(line, ')'); /* the name may hold anything */
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL)
        return UINT64_MAX;
    uint64_t ticks = ta__decimal_at(at);
    return now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME) + (ticks + 1) * (1000000000u / 100);
}

/* Less is recorded than was asked for: said once, to who started the run, and in every entry. */
static void note_lack(const char *text)
{
    if (triggers.lack == text)
        return;
    triggers.lack = text;
    ta__opener_tell('N', ta__snapshot_process(), text, "");
}

/* ---- one snapshot --------------------------------------------------------------------------------------------------
 */

/* The name is told once, and again when it is another one. */
static void note_name(const char *path)
{
    if (strcmp(path, triggers.last_name) == 0)
        return;
    memcpy(triggers.last_name, path, strlen(path) + 1);
    ta__opener_tell('R', ta__snapshot_process(), path, "");
}

/* Whether the owner has left for another program is its word: it may be over before we look. */
static enum ta__owner owner_now(void)
{
    enum ta__owner owner = ta__keeper_owner(&triggers.keeper);
    return owner == TA__OWNER_ENDED && ta__load_acquire(&triggers.executed) ? TA__OWNER_EXECUTED : owner;
}

/* What is there already and has appeared since this process began is of the program that the process executed before,
 * most often: it becomes NAME.1, NAME.2 …, and so does the former program's where the new one was faster. */
static int is_former(void)
{
    return ta__snapshot_process() != getpid() && owner_now() == TA__OWNER_EXECUTED;
}

/* A run that ends takes the folder of its family along when nobody had put anything into it: a child that had just been
 * born, and goes on, makes it anew. */
static int family_is_made_again(void)
{
    return errno == ENOENT && triggers.is_in_family && mkdir(triggers.family, 0700) == 0;
}

static int append_to_series(const char *reason)
{
    if (triggers.record == NULL && ta__snapshot_is_possible() != 0)
        return -1;
    if (triggers.record == NULL) {
        char path[NAME_ROOM];
        uint64_t number = 0;
        if (ta__free_path(triggers.series, &number, triggers.forked, path, sizeof path) != 0)
            return -1;
        const struct ta__sparing sparing = {.since_ns = triggers.began_ns,
                                            .yields = is_former,
                                            .is_hasty = !triggers.options.sync,
                                            .keeps_older = triggers.is_in_family};
        unsigned flags = triggers.options.sync ? TA_RECORD_SYNC : 0;
        triggers.record = ta__record_open_sparing(path, flags, &sparing);
        if (triggers.record == NULL && family_is_made_again())
            triggers.record = ta__record_open_sparing(path, flags, &sparing);
        if (triggers.record == NULL)
            return -1;
        if (ta__record_name(triggers.record, path, sizeof path) == 0)
            note_name(path);
    }
    return ta_record_append(triggers.record, reason);
}

static int write_file(const char *reason, int is_peak)
{
    char path[NAME_ROOM];
    int is_old_peak = is_peak && triggers.peak_number != 0;
    uint64_t number = is_old_peak ? triggers.peak_number : triggers.number;
    int result = is_old_peak ? ta__trigger_path(triggers.path, number, triggers.forked, path, NAME_ROOM)
                             : ta__free_path(triggers.path, &number, triggers.forked, path, NAME_ROOM);
    int is_first = triggers.last_name[0] == '\0';
    const struct ta__sparing sparing = {.since_ns = is_first ? triggers.began_ns : 0,
                                        .yields = is_former,
                                        .is_last = triggers.ending,
                                        .keeps_older = triggers.is_in_family};
    if (result == 0)
        result = ta__snapshot_to_file_sparing(path, reason, &sparing, path);
    if (result != 0 && family_is_made_again())
        result = ta__snapshot_to_file_sparing(path, reason, &sparing, path);
    if (result == 0)
        note_name(path);
    if (result == 0 && !is_old_peak)
        triggers.number = number;
    if (result == 0 && is_peak)
        triggers.peak_number = number;
    return result;
}

/* The keeper has no descriptor of the program's, lest somebody wait for it to be closed: it opens that one anew. */
static void say(const char *text)
{
    struct ta__message message;
    char path[48] = "/proc/";
    int descriptor = STDERR_FILENO;
    if (ta__snapshot_process() != getpid()) {
        strcpy(ta__put_decimal(path + strlen(path), (uint64_t)triggers.owner), "/fd/2");
        descriptor = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    ta__message_begin(&message);
    ta__message_text(&message, "no snapshot: ");
    ta__message_text(&message, text);
    if (descriptor >= 0)
        ta__message_send_to(&message, descriptor);
    if (descriptor > STDERR_FILENO)
        close(descriptor);
}

/* Said once, and again only when something else is wrong or it went well in between: a full disk fails every time. */
static void say_failure(void)
{
    uint64_t hash = ta__hash_bytes(ta__error_text(), strlen(ta__error_text())) | 1;
    if (triggers.options.loud && hash != triggers.failure_said)
        say(ta__error_text());
    if (hash != triggers.failure_said)
        ta__opener_tell('F', ta__snapshot_process(), ta__error_text(), "");
    triggers.failure_said = hash;
}

static void take_wanted(void)
{
    triggers.result = triggers.options.series != NULL ? append_to_series(triggers.wanted)
                                                      : write_file(triggers.wanted, triggers.wants_peak);
}

static int take(const char *reason, int is_peak)
{
    int saved_errno = errno;
    if (triggers.options.may_rest && ta__snapshot_is_possible() != 0)
        return -1;
    if (ta__snapshot_process() != getpid()) /* the keeper alone has it: what the lock says is of a test of memory */
        pthread_mutex_init(&triggers.work, NULL);
    pthread_mutex_lock(&triggers.work);
    triggers.wanted = reason;
    triggers.wants_peak = is_peak;
    if (!ta__keeper_try(take_wanted)) {
        ta__keeper_wait_out_fault(&triggers.requests, ASK_BEYOND);
        ta__record_recover(triggers.record);
        triggers.result =
            ta__error_set("the tables of the process are damaged, or a debugger has a breakpoint in them", NULL);
    }
    int result = triggers.result;
    if (result != 0)
        say_failure();
    else
        triggers.failure_said = 0;
    pthread_mutex_unlock(&triggers.work);
    errno = saved_errno;
    return result;
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
static void note_signal(void)
{
    ask(ASK_SIGNAL);
}

static int adopt_signal(void)
{
    int number = triggers.options.signal_number;
    return number == 0 ? 0 : ta__taken_signal_begin(number, note_signal);
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
    (void)take("peak", 1);
    uint64_t size = ta__load_relaxed(&triggers.peak_seen);
    ta__store_relaxed(&triggers.next_peak, grown(size));
}

int ta__triggers_take(const char *reason)
{
    return take(reason, 0);
}

uint64_t ta__triggers_age_ns(void)
{
    return now_ns(CLOCK_MONOTONIC) - triggers.born_ns;
}

void ta__triggers_wake(void)
{
    ask(ASK_LOOK);
}

void ta__triggers_set_interval(uint64_t ns)
{
    triggers.options.interval_ns = ns;
}

uint64_t ta__triggers_interval(void)
{
    return triggers.options.interval_ns;
}

void ta__triggers_take_at_limits(void)
{
    triggers.options.at_limit = 1;
}

const char *ta__triggers_last_name(void)
{
    return triggers.last_name;
}

/* ---- tasks of others ---- */

int ta__triggers_add_task(const struct ta__helper_task *task)
{
    if (triggers.task_count == TASKS_MOST)
        return errno = ENOSPC, -1;
    triggers.tasks[triggers.task_count++] = task;
    return 0;
}

static void begin_tasks(void)
{
    for (unsigned i = 0; i < triggers.task_count; i++)
        if (triggers.tasks[i]->begin != NULL)
            triggers.tasks[i]->begin();
}

static void look_after_tasks(void)
{
    for (unsigned i = 0; i < triggers.task_count; i++)
        triggers.tasks[i]->look();
}

static void end_tasks(void)
{
    for (unsigned i = 0; i < triggers.task_count; i++)
        if (triggers.tasks[i]->end != NULL)
            triggers.tasks[i]->end();
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
    for (unsigned i = 0; i < triggers.task_count; i++)
        nap = nap < triggers.tasks[i]->period_ns ? nap : triggers.tasks[i]->period_ns;
    if (options->is_paced) {
        uint64_t pace = ta__pace_nap_ns(&triggers.pace, now_ns(CLOCK_MONOTONIC), options->current_bytes());
        nap = nap < pace ? nap : pace;
    }
    return nap;
}

static void helper_sleeps(uint64_t ns)
{
    if (ta__load_acquire(&triggers.requests) != 0 || ns == 0)
        return;
    if (triggers.keeper_runs) {
        ta__keeper_sleep(&triggers.keeper, &triggers.requests, ns);
        return;
    }
    struct timespec wait = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    syscall(SYS_futex, &triggers.requests, FUTEX_WAIT_PRIVATE, 0, ns == UINT64_MAX ? NULL : &wait, NULL, 0);
}

/* The file's limit grows with the time that it covers; an option may say less. What it cannot be held to is said once. */
static void limit_file(uint64_t now)
{
    uint64_t limit = triggers.options.file_limit;
    if (triggers.options.is_paced) {
        uint64_t by_time = ta__pace_file_limit(&triggers.pace, now);
        limit = limit == 0 || by_time < limit ? by_time : limit;
    }
    if (triggers.record == NULL || limit == 0)
        return;
    ta_record_set_limit(triggers.record, limit);
    if (ta__record_obstacle(triggers.record) != 0)
        note_lack("older entries cannot be thinned, so the file grows: the folder does not allow a new file in it (any "
                  "more)");
}

/* A share of what the program itself takes of the processors, or it would be slowed down where others take them, too. One
 * that waits most of the time is not: there it is a share of a quarter of the time. */
static uint64_t busy_ns(void)
{
    uint64_t time = now_ns(CLOCK_MONOTONIC) - triggers.born_ns;
    uint64_t used = now_ns((clockid_t)(~(unsigned)triggers.owner << 3 | 2)); /* as clock_getcpuclockid says it */
    return used > time / 4 ? used : time / 4;
}

/* Again when half of what is left may have been used by this process, and once a second for what others use. */
static void look_for_danger(uint64_t now, uint64_t current)
{
    if (current < triggers.pace.danger_bytes && now - triggers.danger_ns <= DANGER_LOOK_NS)
        return;
    uint64_t left = ta__memory_left_until_short(), least = current / 50 + 1;
    triggers.danger_ns = now;
    triggers.pace.is_in_danger = left == 0;
    triggers.pace.danger_bytes = current + (left / 2 > least ? left / 2 : least);
}

static void take_paced(void)
{
    uint64_t now = now_ns(CLOCK_MONOTONIC), before = now_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t current = triggers.options.current_bytes();
    look_for_danger(now, current);
    ta__pace_foresee(&triggers.pace, ta__snapshot_rows());
    if (!ta__pace_is_due(&triggers.pace, now, current) || ta__snapshot_is_possible() != 0 ||
        ta__keeper_owner_handles_fault())
        return;
    limit_file(now);
    (void)take("pace", 0);
    ta__pace_note(&triggers.pace, now_ns(CLOCK_MONOTONIC), current, ta__record_written(triggers.record),
                  now_ns(CLOCK_THREAD_CPUTIME_ID) - before);
}

/* What is due now; `asked` are requests. */
static void serve(uint32_t asked, uint64_t *next_interval)
{
    const struct ta__trigger_options *options = &triggers.options;
    look_after_tasks();
    if (asked & ASK_SIGNAL)
        (void)take("signal", 0);
    if (asked & ASK_LIMIT)
        (void)take("limit", 0);
    if (options->at_peak && options->current_bytes != NULL)
        ta__triggers_note_size(options->current_bytes());
    if (asked & ASK_PEAK)
        take_peak();
    if (options->is_paced)
        triggers.pace.busy_ns = busy_ns();
    if (options->is_paced && options->watch != NULL)
        options->watch(triggers.pace.busy_ns);
    if (options->is_paced)
        take_paced();
    if (options->interval_ns != 0 && now_ns(CLOCK_MONOTONIC) >= *next_interval) {
        limit_file(now_ns(CLOCK_MONOTONIC));
        (void)take("interval", 0);
        *next_interval += options->interval_ns;
        uint64_t now = now_ns(CLOCK_MONOTONIC);
        if (*next_interval < now) /* a snapshot took longer than the interval: skip, do not pile up */
            *next_interval = now + options->interval_ns;
    }
}

static void begin_helping(void)
{
    triggers.born_ns = now_ns(CLOCK_MONOTONIC);
    triggers.pace = (struct ta__pace){.begun_ns = triggers.born_ns, .last_ns = triggers.born_ns};
    begin_tasks();
}

/* The last words have been written: whose they are, and where. */
static void tell_end(const char *reason)
{
    if (triggers.last_name[0] != '\0' && triggers.failure_said == 0)
        ta__opener_tell('E', ta__snapshot_process(), reason, triggers.last_name);
}

static void close_record(void)
{
    if (triggers.record != NULL)
        (void)ta_record_close(triggers.record);
    triggers.record = NULL;
}

/* The process is about to end. */
static void end_record(void)
{
    if (triggers.record != NULL)
        (void)ta__record_end(triggers.record);
    triggers.record = NULL;
}

/* The program that is executed now takes over the name; it may have done so already, and given the file another. */
static void make_way(void)
{
    char present[NAME_ROOM];
    if (triggers.record == NULL || ta__record_name(triggers.record, present, sizeof present) != 0)
        return;
    if (strcmp(present, triggers.last_name) == 0)
        (void)ta__give_number(triggers.last_name, present, sizeof present);
    memcpy(triggers.last_name, present, strlen(present) + 1);
}

static void take_exit(void)
{
    (void)take("exit", 0);
    end_record();
    tell_end("exit");
}

/* The program has ended, or executes another one, without a word: what it leaves is all that there is to see. Nothing of
 * a child that was forked only to execute another program. */
static void take_last(enum ta__owner owner)
{
    int is_young = now_ns(CLOCK_MONOTONIC) - triggers.born_ns < (uint64_t)YOUNG_MS * 1000000;
    if (!triggers.options.at_exit ||
        (owner == TA__OWNER_EXECUTED && triggers.forked_here && triggers.record == NULL && is_young))
        return;
    if (owner == TA__OWNER_EXECUTED)
        make_way();
    const char *reason = owner == TA__OWNER_EXECUTED ? "exec" : "end";
    (void)take(reason, 0);
    end_record();
    tell_end(reason);
}

/* A signal is about to end the process, which waits for this. */
static void take_end(void)
{
    if (triggers.options.at_exit)
        (void)take("end", 0);
    end_record();
    tell_end("end");
}

static void *helper_main(void *unused)
{
    begin_helping();
    uint64_t next_interval = triggers.born_ns + triggers.options.interval_ns;
    pthread_setname_np(pthread_self(), "tracealloc");
    for (;;) {
        helper_sleeps(nap_ns(next_interval));
        uint32_t asked = ta__exchange_acq_rel(&triggers.requests, 0);
        if (asked & ASK_STOP)
            return end_tasks(), unused;
        if (asked & ASK_END) {
            take_end();
            ta__store_release(&triggers.ended, 1u);
            syscall(SYS_futex, &triggers.ended, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        }
        serve(asked, &next_interval);
        ta__taken_signal_look();
    }
}

static void tell_command(void)
{
    char command[1024];
    ta__process_command(command, sizeof command);
    if (*ta__opener_run() != '\0' && *command != '\0')
        ta__opener_tell('C', ta__snapshot_process(), command, "");
}

enum { END_PATIENCE_MS = 10000 };

/* Destructors and what else comes after the last snapshot: the status is known when they have run, or the process has
 * ended. */
static void tell_status(enum ta__owner owner)
{
    char text[24] = "";
    if (triggers.options.end_of == NULL)
        return;
    triggers.options.end_of(text, sizeof text);
    for (int waited = 0; owner == TA__OWNER_RUNS && *text == '\0' && waited < END_PATIENCE_MS; waited += 10) {
        ta__keeper_sleep(&triggers.keeper, &triggers.requests, 10000000);
        ta__exchange_acq_rel(&triggers.requests, 0);
        owner = owner_now();
        triggers.options.end_of(text, sizeof text);
    }
    if (*text == '\0' && owner == TA__OWNER_ENDED)
        ta__end_text(text, ta__keeper_end(&triggers.keeper));
    if (owner != TA__OWNER_EXECUTED && *text != '\0')
        ta__opener_tell('X', ta__snapshot_process(), text, "");
}

enum { RIGHTS_LOOK_MS = 1000 };

/* Before the rights are gone, the series has its file; what else is to be opened, the one that started it opens. */
static void follow_rights(uint64_t *next_look)
{
    uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (now < *next_look)
        return;
    *next_look = now + (uint64_t)RIGHTS_LOOK_MS * 1000000;
    if (!ta__keeper_rights_differ(&triggers.keeper))
        return;
    if (triggers.options.series != NULL && triggers.record == NULL)
        (void)take("rights", 0);
    ta__keeper_take_rights(&triggers.keeper);
}

/* In thread-local storage, so that it is the keeper's own (keeper.c). */
static __thread struct {
    uint64_t next_interval, next_look;
    int is_over;
} keeping __attribute__((tls_model("initial-exec")));

static void watch_once(void)
{
    uint64_t nap = nap_ns(keeping.next_interval), look = (uint64_t)RIGHTS_LOOK_MS * 1000000;
    helper_sleeps(geteuid() == 0 && nap > look ? look : nap);
    ta__keeper_wait_out_fault(&triggers.requests, ASK_BEYOND);
    enum ta__owner owner = owner_now();
    if (owner != TA__OWNER_RUNS && ta__keeper_owner_handles_fault()) /* what says so is being tested */
        return;
    uint32_t asked = ta__exchange_acq_rel(&triggers.requests, 0);
    if (asked >= ASK_BEYOND) /* it is not ours what stands there */
        asked = 0;
    if (asked & ASK_EXIT)
        take_exit();
    else if (asked & ASK_END)
        take_end();
    else if (owner != TA__OWNER_RUNS)
        take_last(owner);
    keeping.is_over = owner != TA__OWNER_RUNS || (asked & (ASK_EXIT | ASK_END | ASK_STOP)) != 0;
    if (keeping.is_over) {
        close_record();
        end_tasks();
        ta__keeper_is_done(&triggers.keeper);
        if ((asked & ASK_STOP) == 0)
            tell_status(owner);
        return;
    }
    follow_rights(&keeping.next_look);
    serve(asked, &keeping.next_interval);
}

static void keep_watching(void)
{
    while (!keeping.is_over)
        watch_once();
}

enum { FAULTS_MOST = 1000 };

/* In the process of its own. A program may test its memory when it crashes, by writing patterns into all of it and back
 * (redis): then what is looked at here is rubbish for a moment, and what is written here disturbs the test, so nothing is
 * while such a handler is seen to run. It alone takes the snapshots, so that no lock is left behind by one that was killed. */
static void keep(void)
{
    const struct timespec moment = {0, 10000000};
    keeping.next_look = 0;
    keeping.is_over = 0;
    if (triggers.options.in_keeper != NULL)
        triggers.options.in_keeper();
    ta__snapshot_set_keeper(triggers.keeper.process, triggers.keeper.owner);
    ta__opener_use(triggers.keeper.descriptor);
    tell_command();
    begin_helping();
    keeping.next_interval = triggers.born_ns + triggers.options.interval_ns;
    for (int faults = 0; !keeping.is_over && faults < FAULTS_MOST; faults++)
        if (!ta__keeper_try(keep_watching))
            nanosleep(&moment, NULL);
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

static int create_thread(void)
{
    sigset_t all, before;
    int error = EINVAL;
    if (!ta__task_fits())
        return EAGAIN;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t bytes = STACK_LEAST; error == EINVAL && bytes <= STACK_MOST; bytes *= 4)
        error = create_with_stack(bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static const char *lack_of_helper(int error)
{
    return error == EAGAIN
               ? "there was no room for a process that watches it (ulimit -u, pids.max): it is recorded at "
                 "ends that can be caught, and at no other moment; raise the limit"
               : "a process that watches it could not be started (a filter of system calls?): it is recorded "
                 "at ends that can be caught, and at no other moment";
}

/* Under `control`. Without a helper there still is the snapshot at exit. */
static int start_helper(void)
{
    const struct ta__trigger_options *options = &triggers.options;
    int error = 0;
    triggers.lack = NULL;
    if (options->has_keeper) {
        triggers.keeper_runs = 1; /* it looks at once */
        if (ta__keeper_start(&triggers.keeper, keep, ta__opener_begin(getpid(), getppid())) == 0)
            return 0;
        triggers.keeper_runs = 0;
        error = errno;
    }
    if (options->signal_number == 0 && options->interval_ns == 0 && !options->at_peak && !options->at_limit &&
        !options->is_paced && triggers.task_count == 0)
        return 0;
    error = error == EAGAIN ? error : create_thread();
    triggers.helper_runs = error == 0;
    if (error == 0)
        return 0;
    if (options->at_exit) {
        note_lack(lack_of_helper(error));
        return 0;
    }
    errno = error;
    return -1;
}

/* What a keeper that was killed had open is not to be touched, and what it held it will not give back. */
static void leave_behind(void)
{
    pthread_mutex_init(&triggers.work, NULL);
    triggers.record = NULL;
}

/* 1: the keeper has done it. 0: there is none, or it was killed. */
static int ask_keeper(enum request request)
{
    if (!triggers.keeper_runs)
        return 0;
    ask(request);
    int is_done = ta__keeper_wait(&triggers.keeper, EXIT_PATIENCE_MS);
    triggers.keeper_runs = 0;
    triggers.keeper_lingers = request == ASK_EXIT && is_done;
    if (!triggers.keeper_lingers)
        ta__keeper_forget(&triggers.keeper);
    if (!is_done)
        leave_behind();
    return is_done;
}

static void stop_helper(void)
{
    (void)ask_keeper(ASK_STOP);
    if (!triggers.helper_runs)
        return;
    ask(ASK_STOP);
    pthread_join(triggers.helper, NULL);
    triggers.helper_runs = 0;
    ta__store_relaxed(&triggers.requests, 0u);
    ta__memory_unmap(triggers.stack, triggers.stack_bytes);
    triggers.stack = NULL;
}

/* A page that the kernel gives no copy of to children with memory of their own. */
static void mark_original(void)
{
    enum { WIPED_ON_FORK = 18, PAGE = 4096 };
    uint32_t *page = triggers.original;
    if (page == NULL && ((page = ta__memory_map(PAGE)) == NULL || madvise(page, PAGE, WIPED_ON_FORK) != 0))
        return; /* unknown to kernels before 4.14 */
    *page = 1;
    triggers.original = page;
}

/* In the folder of the family, if there is one. */
static void name_as_child(void)
{
    size_t length = strlen(triggers.family);
    if (length == 0 || length + sizeof "/%p.ta" > NAME_ROOM)
        return;
    char *name = triggers.options.series != NULL ? triggers.series : triggers.path;
    memcpy(name, triggers.family, length);
    memcpy(name + length, "/%p.ta", sizeof "/%p.ta");
    triggers.is_in_family = 1;
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
    mark_original();
    triggers.began_ns = now_ns(CLOCK_REALTIME);
    ta__process_begins();
    triggers.ending = 0;
    triggers.forked = triggers.forked_here = 1;
    name_as_child();
    triggers.executed = 0;
    if (triggers.options.signal_number != 0)
        (void)adopt_signal(); /* it stands: the number of the process is another */
    if (triggers.options.no_children)
        triggers.active = 0;
    triggers.number = triggers.peak_number = triggers.failure_said = 0;
    triggers.last_name[0] = '\0';
    triggers.stack = NULL; /* the copy of the parent's stays mapped: half a mebibyte, untouched */
    ta__snapshot_set_keeper(0, 0);
    ta__opener_use(-1);
    ta__store_relaxed(&triggers.requests, 0u);
    if (triggers.next_peak == UINT64_MAX)
        triggers.next_peak = 1;
    ta__store_release(&triggers.helper_missing, triggers.helper_runs || triggers.keeper_runs);
    triggers.helper_runs = triggers.keeper_runs = triggers.keeper_lingers = 0;
}

/* Of a clone that libc did not make. */
static void notice_copy(void)
{
    if (triggers.original != NULL && ta__load_relaxed(triggers.original) == 0)
        in_child();
}

int ta__triggers_are_here(void)
{
    notice_copy();
    return ta__load_acquire(&triggers.active) && triggers.owner == getpid();
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
    ta__taken_signal_end();
    triggers.helper_missing = 0;
    ta__store_relaxed(&triggers.next_peak, (uint64_t)0);
    close_record();
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
    if (result == 0)
        result = copy_name(triggers.family, options->family);
    if (result == 0) {
        triggers.options = *options;
        triggers.owner = getpid();
        mark_original();
        triggers.ending = 0;
        ta__opener_set(options->opener);
        ta__snapshot_remember_program();
        ta__process_begins();
        triggers.options.path = triggers.path;
        triggers.options.series = options->series == NULL ? NULL : triggers.series;
        triggers.forked = options->forked;
        triggers.is_in_family = 0;
        if (triggers.forked)
            name_as_child();
        triggers.forked_here = triggers.executed = 0;
        triggers.began_ns = process_began();
        triggers.number = triggers.peak_number = triggers.failure_said = 0;
        triggers.last_name[0] = '\0';
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

int ta__triggers_outlive(void)
{
    return triggers.keeper_runs && !triggers.options.dies_with_us;
}

int ta__triggers_go_alone(void)
{
    int saved_errno = errno, is_alone = 0;
    if (triggers.keeper_runs && ta__triggers_are_here() && pthread_mutex_trylock(&triggers.control) == 0) {
        is_alone = ask_keeper(ASK_STOP);
        if (is_alone) {
            triggers.record = NULL; /* the keeper has closed it */
            note_lack("it waits for children of every kind, as debuggers do, so no process watches it: it is recorded "
                      "at ends that can be caught, and at no other moment");
        }
        pthread_mutex_unlock(&triggers.control);
    }
    errno = saved_errno;
    return is_alone;
}

const char *ta__triggers_lack(void)
{
    return triggers.lack;
}

int ta__triggers_executes(int is_about_to)
{
    if (!ta__triggers_are_here())
        return 0;
    ta__store_release(&triggers.executed, is_about_to);
    return 1;
}

int ta__triggers_are_told(void)
{
    return ta__load_relaxed(&triggers.active) && triggers.options.opener != NULL && !triggers.options.no_children;
}

void ta__triggers_stop(void)
{
    pthread_mutex_lock(&triggers.control);
    if (triggers.active)
        stop_locked();
    pthread_mutex_unlock(&triggers.control);
}

void ta__triggers_leave(void)
{
    if (!triggers.keeper_lingers)
        return;
    triggers.keeper_lingers = 0;
    ask(ASK_LEAVE);
    ta__keeper_forget(&triggers.keeper);
}

/* Under `control`, with all signals blocked: one that would end the process waits until the file is whole. */
static void exit_locked(void)
{
    char text[24] = "";
    if (!triggers.active)
        return;
    ta__store_release(&triggers.ending, 1);
    int is_done = ask_keeper(triggers.options.at_exit ? ASK_EXIT : ASK_STOP);
    stop_helper();
    ta__taken_signal_end();
    if (triggers.options.at_exit && !is_done)
        take_exit();
    stop_locked();
    if (triggers.options.end_of != NULL)
        triggers.options.end_of(text, sizeof text);
    if (*text != '\0')
        ta__triggers_leave();
}

void ta__triggers_exit(void)
{
    int saved_errno = errno;
    sigset_t all, before;
    sigfillset(&all);
    notice_copy(); /* a child of vfork does not come here; the number is not asked for, which a program may have forbidden */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&triggers.control);
    exit_locked();
    pthread_mutex_unlock(&triggers.control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved_errno;
}

/* ---- a signal ends the process ------------------------------------------------------------------------------------ */

/* By the thread that takes the snapshots. A moment at a time: it may be gone. */
static void wait_for_thread(void)
{
    const struct timespec moment = {0, 10000000};
    for (int waited = 0; waited < FAULT_PATIENCE_MS && !ta__load_acquire(&triggers.ended); waited += 10)
        syscall(SYS_futex, &triggers.ended, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0);
}

/* Nobody else can: on a stack of its own, since that of the interrupted code may be full. A lock that this code holds is
 * waited for a second. */
static void take_end_here(void *unused)
{
    (void)unused;
    const struct timespec nap = {0, 1000000};
    for (int tries = 0; tries < 1000; tries++) {
        if (pthread_mutex_trylock(&triggers.work) == 0) {
            pthread_mutex_unlock(&triggers.work);
            take_end();
            return;
        }
        nanosleep(&nap, NULL);
    }
}

void ta__triggers_fault(void)
{
    static uint32_t is_first = 1; /* of several threads that fault at once, the others wait for their end */
    int saved_errno = errno;
    if (!ta__triggers_are_here())
        return;
    if (triggers.keeper_runs) {
        if (triggers.options.dies_with_us) {
            ask(ASK_END);
            ta__keeper_wait(&triggers.keeper, FAULT_PATIENCE_MS);
        }
    } else if (triggers.helper_runs) {
        ask(ASK_END);
        wait_for_thread();
    } else if (ta__exchange_acq_rel(&is_first, 0)) {
        ta__on_own_stack(STACK_LEAST, take_end_here, NULL);
    }
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
    if (!ta__triggers_are_here() || (sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0))
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
