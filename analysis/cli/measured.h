/* measured.h: runs a command once and says what it cost. The benchmarks (bench/programs/measure.c) do it with the same code. */
#ifndef TA_ANALYSIS_CLI_MEASURED_H
#define TA_ANALYSIS_CLI_MEASURED_H

#include <sys/resource.h>

struct cli_measuring {
    char **command;
    const char *preload;          /* put before what is preloaded already; NULL = nothing */
    const char *frames, *options; /* TRACEALLOC and TRACEALLOC_OPTIONS; NULL = not set */
    char **settings;              /* more of the environment, NAME=VALUE; the last one is NULL, or all of it */
    const char *load;             /* for the shell, beside the command; NULL = none */
    double seconds;               /* ended with SIGTERM after so long; 0 = it ends by itself */
    double patience;              /* seconds until it is killed when it does not heed that */
    int is_loud;                  /* what it prints is not thrown away */
    int input;                    /* a descriptor that it reads from; 0 = our own input */
};

struct cli_measured {
    int status; /* 128 + signal; SIGTERM that was sent by us counts as 0 */
    double wall_seconds, cpu_seconds, peak_bytes;
    double instructions; /* in user space, children included; -1 where they cannot be counted */
    double end;          /* on the monotonic clock */
    struct rusage usage; /* of the command and of all it waited for */
    int load_status;     /* as status; 0 also where there is none, or we ended it */
    int is_early;        /* it was to be ended, and ended by itself before that, or before the load */
    int is_killed;       /* SIGTERM was not enough */
};

/* 0, or -1 with errno. */
int cli_measure(const struct cli_measuring *measuring, struct cli_measured *measured);
/* The same under valgrind, which counts instructions on every machine, and takes some fifty times as long: only they and the
 * status mean anything. */
int cli_measure_by_valgrind(const struct cli_measuring *measuring, struct cli_measured *measured);

/* For a signal's handler: whatever runs here, and its load, get that signal. */
void cli_measure_pass_on(int signal_number);

#endif
