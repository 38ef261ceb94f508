/* measured.h: runs a command once and says what it cost. */
#ifndef TA_ANALYSIS_CLI_MEASURED_H
#define TA_ANALYSIS_CLI_MEASURED_H

struct cli_measuring {
    char **command;
    const char *preload;          /* put before what is preloaded already; NULL = nothing */
    const char *frames, *options; /* TRACEALLOC and TRACEALLOC_OPTIONS; NULL = not set */
    const char *load;             /* for the shell, beside the command; NULL = none */
    double seconds;               /* ended with SIGTERM after so long; 0 = it ends by itself */
};

struct cli_measured {
    int status; /* 128 + signal; SIGTERM that was sent by us counts as 0 */
    double wall_seconds, cpu_seconds, peak_bytes;
    double instructions; /* in user space, children included; -1 where they cannot be counted */
};

/* 0, or -1 after a message. */
int cli_measure(const struct cli_measuring *measuring, struct cli_measured *measured);

#endif
