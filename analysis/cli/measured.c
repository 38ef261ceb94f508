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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
    if (load != 0)
        return load;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    setpgid(0, 0);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* Waits for the load or the time, whichever is first, and ends the program. 1 when it was we who ended it. */
static int serve(const struct cli_measuring *measuring, pid_t program)
{
    double end = now() + measuring->seconds;
    pid_t load = -1;
    siginfo_t ended = {0};
    if (measuring->load != NULL) {
        doze(0.5);
        load = start_load(measuring->load);
    }
    while (now() < end) {
        if (load > 0 && waitpid(load, NULL, WNOHANG) == load) {
            load = -1;
            break;
        }
        if (waitid(P_PID, (id_t)program, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == program)
            break;
        doze(0.02);
    }
    if (load > 0) {
        kill(-load, SIGTERM);
        waitpid(load, NULL, 0);
    }
    return ended.si_pid != program && kill(program, SIGTERM) == 0;
}

int cli_measure(const struct cli_measuring *measuring, struct cli_measured *measured)
{
    int go[2], status, was_ended = 0;
    struct rusage usage;
    if (pipe2(go, O_CLOEXEC) != 0)
        return -1;
    pid_t program = fork();
    if (program < 0) {
        int error = errno;
        close(go[0]);
        close(go[1]);
        errno = error;
        return -1;
    }
    if (program == 0)
        become(measuring, go);
    if (measuring->process != NULL)
        *measuring->process = program;
    int counter = open_counter(program);
    close(go[0]);
    double start = now();
    close(go[1]); /* now it may go */
    if (measuring->seconds > 0)
        was_ended = serve(measuring, program);
    while (wait4(program, &status, 0, &usage) < 0 && errno == EINTR)
        continue;
    double end = now();
    uint64_t instructions = 0;
    int is_counted =
        counter >= 0 && read(counter, &instructions, sizeof instructions) == sizeof instructions && instructions > 0;
    if (counter >= 0)
        close(counter);
    *measured = (struct cli_measured){
        .status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
        .wall_seconds = end - start,
        .cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
        .peak_bytes = (double)usage.ru_maxrss * 1024,
        .instructions = is_counted ? (double)instructions : -1,
        .end = end,
        .usage = usage,
    };
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
