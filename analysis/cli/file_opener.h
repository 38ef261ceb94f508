/* file_opener.h: opens files for traced processes that may not: they gave up their rights, or changed their root.
 *
 * tracealloc run keeps the rights of the user who started it and listens on a socket; snapshot/write/file_request.h has the other
 * side and the protocol. Only names that the run's pattern gives are opened, only for those who know the token. */
#ifndef TA_ANALYSIS_CLI_FILE_OPENER_H
#define TA_ANALYSIS_CLI_FILE_OPENER_H

#include <stddef.h>
#include <sys/types.h>

/* Where the processes that are not the one that was started leave theirs (family.h), and their index; NULL = beside it, as
 * the pattern says, and no index. Before serve. */
void cli_opener_set_family(const char *folder, int has_recordings);
/* Before the program is started: the socket. 0, or -1: then programs do without. */
int cli_opener_start(const char *pattern);
/* For TRACEALLOC_OPENER; "" before start. */
const char *cli_opener_name(void);
/* In the parent, after fork: begins to answer, in a thread. */
void cli_opener_serve(void);
/* The process has ended: waits for its last words (some seconds), and ends. Those of others are waited
 * for only where they have ended too. */
void cli_opener_stop(pid_t process);
/* Says, a line each, which processes could not write their recordings, and which programs could not be recorded, and
 * why. Answers how many of the former. */
size_t cli_opener_tell_failures(void);

/* What processes have told. One that executes another program has a row for each. */
struct cli_process {
    pid_t process, parent;
    char *command;
    char *path;           /* of its recording; NULL = none yet */
    char *reason;         /* of the last entry; NULL = not whole */
    char *end;            /* a status, or the name of a signal; NULL = not known */
    char *untraced, *why; /* the program that it executed and that cannot be recorded */
    int connection;       /* -1 = closed: it has ended, or has no keeper */
};
/* After stop. */
const struct cli_process *cli_opener_processes(size_t *count);
/* Writes the index for the last time: `process` ended with that status. 1 when there is one. */
int cli_opener_write_index(pid_t process, int status);
/* Those whose last words have not come. */
size_t cli_opener_running(void);

#endif
