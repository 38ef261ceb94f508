/* measure.c: runs one command and says what it cost.
 *
 *     measure RESULT [NAME=VALUE…] -- COMMAND [ARG…]
 *
 * A small process of its own, so that the peak memory of the command is not that of whoever starts it, and so that
 * LD_PRELOAD reaches the command alone. It writes one line to RESULT: exit status (128 + signal), wall, user and system
 * seconds, peak resident KiB, minor and major faults, and the monotonic time at which the command ended. User and
 * system time include the command's own children as far as it waited for them; the peak is that of the largest. SIGTERM
 * and SIGINT are passed on. It never interprets what the command prints. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile pid_t child;

static void pass_on(int signal)
{
    if (child > 0)
        kill(child, signal);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    int dashes = 2;
    while (dashes < argc && strcmp(argv[dashes], "--") != 0)
        dashes++;
    if (dashes + 1 >= argc) {
        fprintf(stderr, "usage: measure RESULT [NAME=VALUE…] -- COMMAND [ARG…]\n");
        return 2;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = pass_on;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    FILE *result = fopen(argv[1], "we");
    if (result == NULL) {
        fprintf(stderr, "measure: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }

    double begin = now();
    child = fork();
    if (child < 0) {
        fprintf(stderr, "measure: fork: %s\n", strerror(errno));
        return 2;
    }
    if (child == 0) {
        for (int i = 2; i < dashes; i++)
            putenv(argv[i]);
        execvp(argv[dashes + 1], argv + dashes + 1);
        fprintf(stderr, "measure: %s: %s\n", argv[dashes + 1], strerror(errno));
        _exit(127);
    }
    int status;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR)
            return 2;
    double end = now();
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    fprintf(result, "%d %.6f %.6f %.6f %ld %ld %ld %.6f\n", code, end - begin, seconds_of(usage.ru_utime),
            seconds_of(usage.ru_stime), usage.ru_maxrss, usage.ru_minflt, usage.ru_majflt, end);
    fclose(result);
    return 0;
}
