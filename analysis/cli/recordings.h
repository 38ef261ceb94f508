/* recordings.h: which recordings a run has left, and the words about them. */
#ifndef TA_ANALYSIS_CLI_RECORDINGS_H
#define TA_ANALYSIS_CLI_RECORDINGS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct cli_recording {
    char *path;
    pid_t process;
    size_t entries;
    uint64_t live, peak; /* bytes, in the last entry */
};

struct cli_recordings {
    int end; /* of the program, as wait says it */
    struct cli_recording *rows;
    size_t count;
    const struct cli_recording *first;   /* of the process that was started, or any */
    const struct cli_recording *largest; /* whose process held most: what is worth a look */
};

/* What processes of this run have told (file_opener.h). Removes what those that were killed left half written: files
 * of the pattern (as TRACEALLOC_OPTIONS has it) that were changed since then. */
void cli_recordings_find(struct cli_recordings *found, const char *pattern, pid_t process,
                         const struct timespec *since);
void cli_recordings_free(struct cli_recordings *found);
/* On standard error: where they are and what to type next. `index` (family.h) may be NULL. */
void cli_recordings_tell(const struct cli_recordings *found, const char *index, int wants_peak, int is_series,
                         int has_shown_top);
struct cli_process;
/* The same for processes other than the first that were ended as no one ends them on purpose. */
void cli_recordings_tell_crashed(const struct cli_process *rows, size_t count, pid_t first);
/* Why there is none that could be read; `status` as waitpid gave it. Quiet: only where there ought to be one. */
void cli_recordings_tell_none(const char *pattern, pid_t process, int status, int is_quiet);

/* The pattern as glob and fnmatch want it, the number of the process put in (0 = any). To be freed. */
char *cli_recordings_glob(const char *pattern, pid_t process);
/* The path without the present folder where it lies below. */
char *cli_relative_path(char *path);

#endif
