/* measured.c: see measured.h. Time and memory are those of the command and of all it waited for, from wait4; instructions
 * come from a counter that is inherited and begins with exec. */
#include "analysis/cli/measured.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
    volatile pid_t program, load; /* 0 = none */
} running;

void cli_measure_pass_on(int signal_number)
{
    if (running.program > 0)
        kill(running.program, signal_number);
    if (running.load > 0)
        kill(-running.load, signal_number);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void doze(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

static int open_counter(pid_t process)
{
    struct perf_event_attr wanted = {.type = PERF_TYPE_HARDWARE,
                                     .size = sizeof wanted,
                                     .config = PERF_COUNT_HW_INSTRUCTIONS,
                                     .disabled = 1,
                                     .inherit = 1,
                                     .exclude_kernel = 1,
                                     .exclude_hv = 1,
                                     .enable_on_exec = 1};
    return (int)syscall(SYS_perf_event_open, &wanted, process, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void set_or_unset(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void preload(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *both = NULL;
    if (others != NULL && *others != '\0' && asprintf(&both, "%s:%s", library, others) < 0)
        _exit(127);
    setenv("LD_PRELOAD", both != NULL ? both : library, 1);
}

static void become(const struct cli_measuring *measuring, const int go[2])
{
    char byte;
    close(go[1]); /* or it would wait for itself */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (measuring->input > 0)
        dup2(measuring->input, STDIN_FILENO);
    int nowhere = measuring->is_loud ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
    }
    set_or_unset("TRACEALLOC", measuring->frames);
    set_or_unset("TRACEALLOC_OPTIONS", measuring->options);
    if (measuring->preload != NULL)
        preload(measuring->preload);
    for (char **setting = measuring->settings; setting != NULL && *setting != NULL; setting++)
        putenv(*setting);
    while (read(go[0], &byte, 1) < 0 && errno == EINTR)
        continue;
    execvp(measuring->command[0], measuring->command);
    if (measuring->is_loud)
        perror(measuring->command[0]);
    _exit(127);
}

static pid_t start_load(const char *command)
{
    pid_t load = fork();
    if (load != 0) {
        setpgid(load, load); /* here, too: whoever is first */
        return load;
    }
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* Has it ended? It can be waited for afterwards, too. */
static int has_ended(pid_t process)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == process;
}

static int ends_until(pid_t process, double end)
{
    int ended;
    while ((ended = has_ended(process)) == 0 && now() < end)
        doze(0.01);
    return ended;
}

static int status_of(pid_t process, struct rusage *usage)
{
    int status = 0;
    while (wait4(process, &status, 0, usage) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Until the load has ended, or the time is over, or the program has ended; then for as long as a load may take that has just
 * ended the program. */
static void serve_load(const struct cli_measuring *measuring, pid_t program, double end, struct cli_measured *measured)
{
    enum { BEFORE_LOAD_MS = 500, AFTER_PROGRAM = 1 };
    struct rusage usage;
    if (ends_until(program, now() + BEFORE_LOAD_MS / 1000.0)) {
        measured->is_early = 1;
        return;
    }
    running.load = start_load(measuring->load);
    while (running.load > 0 && !has_ended(running.load) && !has_ended(program) && now() < end)
        doze(0.01);
    if (running.load > 0 &&
        (has_ended(running.load) || (has_ended(program) && ends_until(running.load, now() + AFTER_PROGRAM)))) {
        measured->load_status = status_of(running.load, &usage);
    } else if (running.load > 0) {
        measured->is_early = has_ended(program);
        kill(-running.load, SIGTERM);
        status_of(running.load, &usage);
    }
    running.load = 0;
}

/* Ends the program when it has served for long enough. 1: it was we who ended it. */
static int serve(const struct cli_measuring *measuring, pid_t program, struct cli_measured *measured)
{
    double end = now() + measuring->seconds;
    if (measuring->load != NULL)
        serve_load(measuring, program, end, measured);
    else
        measured->is_early = ends_until(program, end);
    if (has_ended(program) || kill(program, SIGTERM) != 0)
        return 0;
    if (!ends_until(program, now() + measuring->patience)) {
        measured->is_killed = 1;
        kill(program, SIGKILL);
    }
    return 1;
}

/* Its number, or -1. It waits for a byte in `go`, or for its end. */
static pid_t start_program(const struct cli_measuring *measuring, const int go[2])
{
    pid_t program = fork();
    if (program == 0)
        become(measuring, go);
    running.program = program > 0 ? program : 0;
    int error = errno;
    close(go[0]);
    errno = error;
    return program;
}

int cli_measure(const struct cli_measuring *measuring, struct cli_measured *measured)
{
    int go[2], was_ended = 0;
    if (pipe2(go, O_CLOEXEC) != 0)
        return -1;
    pid_t program = start_program(measuring, go);
    int counter = program > 0 ? open_counter(program) : -1, error = errno;
    double start = now();
    close(go[1]); /* now it may go */
    errno = error;
    if (program < 0)
        return -1;
    *measured = (struct cli_measured){0};
    if (measuring->seconds > 0)
        was_ended = serve(measuring, program, measured);
    measured->status = status_of(program, &measured->usage);
    running.program = 0;
    measured->end = now();
    measured->wall_seconds = measured->end - start;
    measured->cpu_seconds = (double)(measured->usage.ru_utime.tv_sec + measured->usage.ru_stime.tv_sec) +
                            (double)(measured->usage.ru_utime.tv_usec + measured->usage.ru_stime.tv_usec) / 1e6;
    measured->peak_bytes = (double)measured->usage.ru_maxrss * 1024;
    uint64_t count = 0;
    int is_counted = counter >= 0 && read(counter, &count, sizeof count) == sizeof count && count > 0;
    measured->instructions = is_counted ? (double)count : -1;
    if (counter >= 0)
        close(counter);
    if (was_ended && measured->status == 128 + SIGTERM)
        measured->status = 0;
    return 0;
}

/* Of everything that was counted, each process has a line. -1: there is none. */
static double sum_of_counts(FILE *said)
{
    static const char word[] = "Collected : ";
    char line[1000];
    double sum = -1;
    while (fgets(line, sizeof line, said) != NULL) {
        const char *count = strstr(line, word);
        if (count != NULL && isdigit((unsigned char)count[sizeof word - 1]))
            sum = (sum < 0 ? 0 : sum) + strtod(count + sizeof word - 1, NULL);
    }
    return sum;
}

int cli_measure_by_valgrind(const struct cli_measuring *measuring, struct cli_measured *measured)
{
    enum { WORDS = 5 };
    size_t count = 0;
    while (measuring->command[count] != NULL)
        count++;
    char **command = calloc(count + WORDS + 1, sizeof *command), said_in[30];
    int said = memfd_create("valgrind", 0); /* it is to have it, too */
    FILE *file = said >= 0 ? fdopen(said, "r") : NULL;
    int result = -1;
    if (command != NULL && file != NULL) {
        snprintf(said_in, sizeof said_in, "--log-fd=%d", said);
        char *const words[WORDS] = {(char[]){"valgrind"}, (char[]){"--tool=callgrind"},
                                    (char[]){"--trace-children=yes"}, (char[]){"--callgrind-out-file=/dev/null"},
                                    said_in};
        memcpy(command, words, sizeof words);
        memcpy(command + WORDS, measuring->command, count * sizeof *command);
        struct cli_measuring counting = *measuring;
        counting.command = command;
        result = cli_measure(&counting, measured);
        rewind(file);
        measured->instructions = result == 0 ? sum_of_counts(file) : -1;
    }
    if (file != NULL)
        fclose(file);
    else if (said >= 0)
        close(said);
    free(command);
    return result;
}
