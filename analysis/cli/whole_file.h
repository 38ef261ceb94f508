/* whole_file.h: a file that appears only when it is whole. */
#ifndef TA_ANALYSIS_CLI_WHOLE_FILE_H
#define TA_ANALYSIS_CLI_WHOLE_FILE_H

#include <stdio.h>

struct cli_output {
    FILE *file;
    const char *path; /* as given; NULL = standard output */
    char *temporary;  /* NULL = written directly: a device, a pipe */
};

/* NULL or "-" is standard output. 0, or CLI_TROUBLE after a message. A temporary file is removed when the program is
 * interrupted. */
int cli_output_open(struct cli_output *output, const char *path);
/* Puts the file in its place unless `status` is trouble; answers the status to end with. */
int cli_output_close(struct cli_output *output, int status);
/* After the library could not write: tells its error, about `subject`, and answers trouble. Where the file refused what was
 * written the library has nothing to say: that is told when the file is closed. */
int cli_output_trouble(const struct cli_output *output, const char *subject);
/* A ta_write_function; user = struct cli_output. */
int cli_output_write(void *user, const char *text, size_t length);

/* From now on an interruption removes what is unfinished and wipes the progress bar before it ends the program. */
void cli_watch_signals(void);
/* The same, and before all that calls a function, which must be one for a signal's handler. */
void cli_at_interruption(void (*function)(void));

struct ta_snapshot;
/* As ta_snapshot_dump; interruptions wait until the file is whole. */
int cli_write_snapshot(struct ta_snapshot *snapshot, const char *path);
/* The same as the last act of a command: frees the snapshot, and answers the status to end with. */
int cli_put_snapshot(struct ta_snapshot *snapshot, const char *path);

#endif
