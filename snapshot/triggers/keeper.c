/* keeper.c: see keeper.h. Runs in the traced process and in the keeper: no malloc, no stdio. */
#include "snapshot/triggers/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/lock.h"
#include "base/mappings.h"
#include "base/memory.h"
#include "base/small_file.h"
#include "snapshot/triggers/taken_signal.h"

#define NS_PER_S UINT64_C(1000000000)
#define FOR_EVER (UINT64_MAX / 4)

static void nap_ms(long milliseconds)
{
    const struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&nap, NULL);
}

void ta__keeper_is_done(struct ta__keeper *keeper)
{
    ta__store_release(&keeper->done, 1u);
    syscall(SYS_futex, &keeper->done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Where the user may have few processes only, one of ours would take the place of one of the program's. How many there
 * are is not told; no more than there are tasks at all. */
int ta__task_fits(void)
{
    enum { SPARE = 64 };
    struct rlimit limit;
    char text[64];
    if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 1;
    ta__small_file("/proc/loadavg", text, sizeof text);
    const char *slash = strchr(text, '/');
    return slash == NULL || ta__decimal_at(slash + 1) + SPARE < limit.rlim_cur;
}

int ta__namespace_is_ours(uint64_t of_run)
{
    enum { FIRST = 0xEFFFFFFC }; /* the number of the system's first one, as the kernel defines it */
    char text[64];
    ta__link_text("/proc/self/ns/pid", text, sizeof text);
    const char *number = strchr(text, '[');
    if (number == NULL)
        return 1;
    return ta__decimal_at(number + 1) == (of_run != 0 ? of_run : FIRST) && getpid() != 1;
}

/* ---- what goes wrong in the keeper alone -------------------------------------------------------------------------- */

/* On the keeper's stack, and in its thread-local storage: the program may test all else while it crashes, by writing
 * patterns into it. */
struct guard {
    struct ta__keeper *keeper;
    pid_t owner;
    uint32_t blocked_always; /* signals of faults that the owner does not want at all */
    int has_looked;
    uint64_t caught_all_s;    /* when all faults were last seen to be caught; 0 = never, or that is over */
    sigjmp_buf *volatile out; /* of the innermost trial; NULL = none */
};
static __thread struct guard *guard __attribute__((tls_model("initial-exec"))); /* NULL elsewhere */

enum { RESET_MOST_S = 300 };

static uint64_t seconds(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec + 1;
}

int ta__keeper_try(void (*function)(void))
{
    struct guard *const own = guard;
    if (own == NULL)
        return function(), 1;
    sigjmp_buf out, *outer = own->out;
    volatile int succeeded = 0;
    if (sigsetjmp(out, 0) == 0) {
        own->out = &out;
        function();
        succeeded = 1;
    }
    own->out = outer;
    return succeeded;
}

int ta__keeper_let_through(int number, void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigset_t set;
    sigfillset(&action.sa_mask);
    sigemptyset(&set);
    sigaddset(&set, number);
    return __sigaction(number, &action, NULL) == 0 && pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0 ? 0 : -1;
}

/* ---- the owner's side --------------------------------------------------------------------------------------------- */

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

enum { SYSCALL_PIDFD_OPEN = 434 };
enum { ROOM_BYTES = 1 << 20, AFTER_POINTER = 2304 /* what later members a newer libc has, nobody here reads */ };
#define BELOW_MOST ((size_t)128 << 10)

/* How far the thread-local storage of the objects loaded at the start reaches below the thread pointer. Found out once:
 * after a fork the loader's list may be locked for ever. */
static size_t below_pointer;

static int measure(struct dl_phdr_info *object, size_t size, void *pointer)
{
    (void)size;
    size_t below = (size_t)((uintptr_t)pointer - (uintptr_t)object->dlpi_tls_data);
    if (object->dlpi_tls_data != NULL && below < BELOW_MOST && below > below_pointer)
        below_pointer = below;
    return 0;
}

/* Addresses 0 and 16 of the thread's block hold its own address; the rest is the starting thread's. */
static char *copy_storage(char *room)
{
    char *pointer = __builtin_thread_pointer();
    if (below_pointer == 0)
        dl_iterate_phdr(measure, pointer);
    char *copy = room + BELOW_MOST;
    memcpy(copy - below_pointer, pointer - below_pointer, below_pointer + AFTER_POINTER);
    memcpy(copy, &copy, sizeof copy);
    memcpy(copy + 16, &copy, sizeof copy);
    return copy;
}

/* Filters of system calls that were written before Linux 5.9 refuse close_range: then one by one, from the list of those
 * that are open. `kept` is the last number there can be when nothing is kept. */
static void close_one_by_one(unsigned kept)
{
    char room[2048];
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long got; folder >= 0 && (got = syscall(SYS_getdents64, folder, room, sizeof room)) > 0;)
        for (long at = 0; at < got;) {
            struct dirent *entry = (void *)(room + at); /* with offsets of 64 bits the same */
            unsigned number = (unsigned)ta__decimal_at(entry->d_name);
            at += entry->d_reclen;
            if (*entry->d_name != '.' && number != kept && number != (unsigned)folder)
                close((int)number);
        }
    if (folder >= 0)
        close(folder);
}

static void close_all_but(unsigned kept)
{
    if ((kept > 0 && syscall(SYS_close_range, 0u, kept - 1, 0u) != 0) ||
        (kept != ~0u && syscall(SYS_close_range, kept + 1, ~0u, 0u) != 0))
        close_one_by_one(kept);
}

/* Whatever the program has arranged for itself (real time, short files) does not bind who watches. */
static void be_ordinary(void)
{
    const struct sched_param normal = {.sched_priority = 0};
    struct rlimit files;
    if (sched_getscheduler(0) != SCHED_OTHER)
        sched_setscheduler(0, SCHED_OTHER, &normal);
    if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_FSIZE, &files);
    }
}

static void give_up(int number)
{
    (void)number;
    if (guard != NULL && guard->out != NULL)
        siglongjmp(*guard->out, 1);
    syscall(SYS_exit, 0);
}

static void watch_own_faults(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    const struct sigaction action = {.sa_handler = give_up, .sa_flags = SA_NODEFER};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sigaddset(&set, faults[i]);
        __sigaction(faults[i], &action, NULL);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Nobody runs in this memory but the keeper. Asked there. */
static int owner_is_gone(void)
{
    return guard != NULL && ta__keeper_owner(guard->keeper) != TA__OWNER_RUNS;
}

static int keeper_main(void *argument)
{
    struct ta__keeper *keeper = argument;
    struct guard own = {.keeper = keeper, .owner = keeper->owner, .out = NULL};
    const struct rlimit none = {0, 0};
    guard = &own;
    keeper->process = (pid_t)syscall(SYS_getpid);
    close_all_but((unsigned)keeper->descriptor);
    keeper->ending = (int)syscall(SYSCALL_PIDFD_OPEN, keeper->owner, 0);
    setsid(); /* signals of the terminal and of the process group are the program's */
    prctl(PR_SET_NAME, "tracealloc");
    setrlimit(RLIMIT_CORE, &none);
    be_ordinary();
    watch_own_faults();
    keeper->work();
    ta__keeper_is_done(keeper);
    return 0;
}

/* A name that no program has a function by. */
#if defined(__GLIBC__)
extern __typeof__(clone) __clone;
#else
#define __clone clone
#endif

static int start(struct ta__keeper *keeper, void (*work)(void), int descriptor)
{
    if (access("/proc/self/statm", R_OK) != 0)
        return errno = ENOSYS, -1;
    if (!ta__task_fits())
        return errno = EAGAIN, -1;
    /* Shared, though with nobody: a program that tests its own memory when it crashes (redis) leaves it alone. */
    char *room = ta__mapping_make(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                                  -1, 0, TA__MAPPED_FOR_TABLES);
    if (room == MAP_FAILED)
        return errno = ENOMEM, -1;
    *keeper = (struct ta__keeper){.owner = getpid(),
                                  .room = room,
                                  .room_bytes = ROOM_BYTES,
                                  .work = work,
                                  .end = -1,
                                  .ending = -1,
                                  .descriptor = descriptor};
    if (syscall(SYS_gettid) == keeper->owner && prctl(PR_GET_TID_ADDRESS, &keeper->alive) != 0)
        keeper->alive = NULL;
    char *storage = copy_storage(room);
    ta__lock_guest(room, ROOM_BYTES, &keeper->present, owner_is_gone);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    /* CLONE_UNTRACED: debuggers, which follow what their process starts, do not see it and do not stop it. */
    pid_t process = __clone(keeper_main, room + ROOM_BYTES,
                            CLONE_VM | CLONE_SETTLS | CLONE_UNTRACED | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
                            keeper, &keeper->present, storage, &keeper->present);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (process < 0) {
        ta__lock_guest(NULL, 0, NULL, NULL);
        (void)ta__mapping_drop(room, ROOM_BYTES);
        return errno = error, -1;
    }
    keeper->process = process;
    return 0;
}

#else

static int start(struct ta__keeper *keeper, void (*work)(void), int descriptor)
{
    (void)keeper, (void)work, (void)descriptor;
    return errno = ENOSYS, -1;
}

#endif

int ta__keeper_start(struct ta__keeper *keeper, void (*work)(void), int descriptor)
{
    int result = start(keeper, work, descriptor), error = errno;
    if (descriptor >= 0)
        close(descriptor);
    errno = error;
    return result;
}

int ta__keeper_is_gone(const struct ta__keeper *keeper)
{
    return ta__load_acquire(&keeper->present) == 0;
}

int ta__keeper_wait(struct ta__keeper *keeper, int milliseconds)
{
    const struct timespec moment = {0, 10000000};
    int saved_errno = errno;
    for (int waited = 0; waited < milliseconds && !ta__load_acquire(&keeper->done) && !ta__keeper_is_gone(keeper);
         waited += 10)
        syscall(SYS_futex, &keeper->done, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0);
    errno = saved_errno;
    return (int)ta__load_acquire(&keeper->done);
}

/* It is reaped by its number alone: the program's waits do not see children that end without a signal. What has left our
 * memory ends a moment later; where a filter of system calls refuses the wait, init does it. The room of one that was
 * killed stays: locks may have its address. */
void ta__keeper_forget(struct ta__keeper *keeper)
{
    enum { END_PATIENCE_MS = 1000, LOOK_MS = 10 };
    const struct timespec moment = {0, LOOK_MS * 1000000};
    int saved_errno = errno;
    for (int waited = 0; waited < END_PATIENCE_MS && ta__load_acquire(&keeper->done); waited += LOOK_MS) {
        uint32_t present = ta__load_acquire(&keeper->present);
        if (present == 0)
            break;
        syscall(SYS_futex, &keeper->present, FUTEX_WAIT, present, &moment, NULL,
                0); /* as the kernel wakes: not private */
    }
    if (ta__keeper_is_gone(keeper))
        syscall(SYS_wait4, keeper->process, NULL, __WALL, NULL);
    if (ta__keeper_is_gone(keeper) && ta__load_acquire(&keeper->done)) {
        ta__lock_guest(NULL, 0, NULL, NULL);
        (void)ta__mapping_drop(keeper->room, keeper->room_bytes);
    }
    keeper->process = 0;
    errno = saved_errno;
}

/* ---- the keeper's side -------------------------------------------------------------------------------------------- */

/* As the kernel has it; libc's headers of this age do not. */
struct waited {
    uint64_t value, address;
    uint32_t flags, reserved;
};
enum { WAITED_32 = 2, SYSCALL_FUTEX_WAITV = 449 };

void ta__keeper_sleep(struct ta__keeper *keeper, uint32_t *word, uint64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t end = (uint64_t)until.tv_sec * NS_PER_S + (uint64_t)until.tv_nsec + (ns > FOR_EVER ? 0 : ns);
    until = (struct timespec){(time_t)(end / NS_PER_S), (long)(end % NS_PER_S)};
    uint32_t alive = keeper->alive != NULL ? ta__load_acquire(keeper->alive) : 0;
    const struct waited words[2] = {
        {0, (uintptr_t)word, WAITED_32 | FUTEX_PRIVATE_FLAG, 0},
        {alive, (uintptr_t)keeper->alive, WAITED_32, 0},
    };
    if (alive != 0 && (syscall(SYSCALL_FUTEX_WAITV, words, 2, 0, ns > FOR_EVER ? NULL : &until, CLOCK_MONOTONIC) >= 0 ||
                       errno != ENOSYS))
        return;
    const struct timespec tick = {0, ns < 100000000 ? (long)ns : 100000000}; /* its end is found out by looking */
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &tick, NULL, 0);
}

/* Whether the owner has memory: none once it has left the old and while it is ending. */
static int owner_has_memory(const struct ta__keeper *keeper)
{
    char text[8];
    ta__small_file_of(keeper->owner, "statm", text, sizeof text);
    return *text != '\0' && *text != '0';
}

/* The second number of a line such as "Uid:	0	0	0	0": the effective one. */
static int effective(const char *text, const char *line, uint32_t *number)
{
    const char *at = ta__behind(text, line);
    if (at != NULL)
        at = strchr(at, '\t');
    *number = at == NULL ? 0 : (uint32_t)ta__decimal_at(at + 1);
    return at != NULL;
}

int ta__keeper_rights_differ(struct ta__keeper *keeper)
{
    char text[1024];
    uint32_t user, group;
    if (geteuid() != 0)
        return 0;
    ta__small_file_of(keeper->owner, "status", text, sizeof text);
    if (!effective(text, "\nUid:\t", &user) || !effective(text, "\nGid:\t", &group) || user == 0)
        return 0;
    keeper->user = user;
    keeper->group = group;
    return 1;
}

/* Sixteen hexadecimal digits, of which the last eight count: the first 32 signals. */
static uint32_t set_at(const char *text)
{
    uint32_t set = 0;
    for (int i = 0; i < 16 && *text != '\0'; i++, text++)
        set = set << 4 | (uint32_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
    return set;
}

static uint32_t signals_at(const char *text, const char *line)
{
    const char *at = ta__behind(text, line);
    return at == NULL ? 0 : set_at(at);
}

/* While a handler of a fault runs, that signal is blocked; before, it was not. Or it is no longer caught (SA_RESETHAND) where
 * all faults were, by us; another program does not catch any at first. Five minutes later that is how it shall be. */
int ta__keeper_owner_handles_fault(void)
{
    enum {
        FAULTS = 1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1) | 1 << (SIGFPE - 1) | 1 << (SIGILL - 1) | 1 << (SIGABRT - 1)
    };
    char text[2048];
    struct guard *const own = guard;
    if (own == NULL || getppid() != own->owner)
        return 0;
    ta__small_file_of(own->owner, "status", text, sizeof text);
    uint32_t blocked = signals_at(text, "\nSigBlk:\t") & FAULTS, caught = signals_at(text, "\nSigCgt:\t") & FAULTS;
    if (blocked == 0 || !own->has_looked)
        own->blocked_always = blocked;
    own->has_looked = 1;
    int is_reset =
        own->caught_all_s != 0 && caught != 0 && ((caught | signals_at(text, "\nSigIgn:\t")) & FAULTS) != FAULTS;
    uint64_t now = seconds();
    if (caught == FAULTS || (is_reset && now - own->caught_all_s > RESET_MOST_S))
        own->caught_all_s = caught == FAULTS ? now : 0;
    return is_reset || (blocked & ~own->blocked_always) != 0;
}

/* The word is the program's as well: what makes no sense there is not for us. */
void ta__keeper_wait_out_fault(const uint32_t *word, uint32_t most)
{
    enum { LOOK_MS = 10 };
    const struct timespec moment = {0, LOOK_MS * 1000000};
    while (ta__keeper_owner_handles_fault()) {
        uint32_t present = ta__load_acquire(word);
        if (present != 0 && present < most)
            return;
        int error = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0) == 0 ? 0 : errno;
        if (error == EINTR) /* what was let through: somebody asks for something */
            return;
        if (error == EAGAIN)
            syscall(SYS_nanosleep, &moment, NULL);
    }
}

/* By system calls: libc's would ask all threads that it knows of, which are the program's. */
void ta__keeper_take_rights(const struct ta__keeper *keeper)
{
    gid_t group = keeper->group;
    uid_t user = keeper->user;
    syscall(SYS_setgroups, 0, NULL);
    syscall(SYS_setresgid, group, group, group);
    syscall(SYS_setresuid, user, user, user);
}

/* Field 52 of its line: there as soon as it is ending, and until somebody has waited for it. 0 means nothing before it has
 * ended. */
static void note_end(struct ta__keeper *keeper)
{
    char text[1024];
    ta__small_file_of(keeper->owner, "stat", text, sizeof text);
    const char *behind = strrchr(text, ')'), *at = behind; /* the name may hold anything */
    for (int field = 2; at != NULL && field < 52; field++)
        at = strchr(at + 1, ' ');
    if (at != NULL && (ta__decimal_at(at) != 0 || behind[2] == 'Z'))
        keeper->end = (int)ta__decimal_at(at);
}

/* As the kernel has it since 6.15; libc's headers of this age do not. */
struct process_facts {
    uint64_t mask, cgroup;
    uint32_t numbers[11]; /* of processes, users and groups */
    int32_t end;
};
enum { PIDFD_FACTS = 11, WANTS_END = 8 };

/* From when somebody has waited for it. */
static void note_former_end(struct ta__keeper *keeper)
{
    struct process_facts facts = {.mask = WANTS_END};
    if (keeper->ending >= 0 &&
        syscall(SYS_ioctl, keeper->ending, _IOWR(0xFF, PIDFD_FACTS, struct process_facts), &facts) == 0 &&
        (facts.mask & WANTS_END) != 0)
        keeper->end = facts.end;
}

int ta__keeper_end(struct ta__keeper *keeper)
{
    enum { LOOKS = 20, LOOK_MS = 2 };
    for (int i = 0; i < LOOKS && keeper->end < 0; i++) {
        if (i > 0)
            nap_ms(LOOK_MS);
        note_end(keeper);
        note_former_end(keeper);
    }
    return keeper->end;
}

/* Children lose their parent when its last thread has ended: nobody runs in this memory from then on. */
enum ta__owner ta__keeper_owner(struct ta__keeper *keeper)
{
    if (keeper->alive != NULL && ta__load_acquire(keeper->alive) == 0)
        note_end(keeper);
    if (getppid() != keeper->owner)
        return TA__OWNER_ENDED;
    if (keeper->alive == NULL || ta__load_acquire(keeper->alive) != 0)
        return TA__OWNER_RUNS;
    for (int tries = 0; tries < 200; tries++) {
        if (getppid() != keeper->owner)
            return TA__OWNER_ENDED;
        if (owner_has_memory(keeper))
            return TA__OWNER_EXECUTED;
        nap_ms(1);
    }
    keeper->alive = NULL; /* only the first thread has ended */
    return TA__OWNER_RUNS;
}
