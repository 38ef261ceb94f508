/* measure.c: runs one command and says what it cost.
 *
 *     measure RESULT [NAME=VALUE…] -- COMMAND [ARG…]
 *
 * A small process of its own, so that the peak memory of the command is not that of whoever starts it, and so that
 * LD_PRELOAD reaches the command alone. It writes one line to RESULT: exit status (128 + signal), wall, user and system
 * seconds, peak resident KiB, minor and major faults, and the monotonic time at which the command ended. User and
 * system time include the command's own children as far as it waited for them; the peak is that of the largest. SIGTERM
 * and SIGINT are passed on. It never interprets what the command prints. How it is measured is what `tracealloc cost` does
 * (analysis/cli/measured.c). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analysis/cli/measured.h"

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
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
    action.sa_handler = cli_measure_pass_on;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    FILE *result = fopen(argv[1], "we");
    argv[dashes] = NULL; /* the settings end here */
    struct cli_measuring measuring = {.command = argv + dashes + 1, .settings = argv + 2, .is_loud = 1};
    struct cli_measured cost;
    if (result == NULL || cli_measure(&measuring, &cost) != 0) {
        fprintf(stderr, "measure: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    fprintf(result, "%d %.6f %.6f %.6f %ld %ld %ld %.6f\n", cost.status, cost.wall_seconds,
            seconds_of(cost.usage.ru_utime), seconds_of(cost.usage.ru_stime), cost.usage.ru_maxrss,
            cost.usage.ru_minflt, cost.usage.ru_majflt, cost.end);
    fclose(result);
    return 0;
}
