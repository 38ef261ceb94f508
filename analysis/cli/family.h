/* family.h: a run of several processes: a folder NAME.run beside the recording NAME.ta of the process that was started, with
 * the recordings of the others (PROCESS.ta) and an index: who they were, how they ended, which recording is whose.
 *
 * tracealloc run writes the index while it goes on, at most once a second, and at its end. Whoever reads the family (list
 * the processes, the others their sum) completes it from the recordings themselves, which have the name of the run: those
 * of processes that went on after the run, and all of them when run was killed.
 *
 * The index is a text: the line "tracealloc run 2" and the name of the run, then a line for each program that a process was,
 * its columns separated by tabs: process, parent, end (a status or a signal), reason of the last entry, file (from the folder
 * on), command, what is to be said of it besides (why it was not recorded). Bytes below the blank and % are %XX; - is
 * nothing. */
#ifndef TA_ANALYSIS_CLI_FAMILY_H
#define TA_ANALYSIS_CLI_FAMILY_H

#include <stdint.h>
#include <sys/types.h>

#include "analysis/cli/cli.h"

/* ---- of the run that goes on (family_index.c) ---- */

struct cli_process;

/* "x.run" for "x.ta". For free(). */
char *cli_family_folder(const char *recording);
/* The same for a pattern of recordings in which nothing but the process's number is open; NULL for others. */
char *cli_family_folder_of(const char *pattern, pid_t process);
/* The folder, this user's alone, without what a former run of that name left there. -1: something else has that name, or it
 * cannot be made. */
int cli_family_make(const char *folder);
/* What the processes have told. `process` was started, and ended with *status unless NULL. 0, or -1 when it cannot be written. */
int cli_family_write(const char *folder, const char *run, const struct cli_process *rows, size_t count, pid_t process,
                     const int *status);

/* ---- of one to be read (family.c) ---- */

/* A program that a process was. Texts stay for good; what is not known is NULL or 0. */
struct cli_family_member {
    char *path; /* of its recording */
    char *command, *end, *reason, *why;
    uint32_t process, parent;
};

/* 1: 17.ta or 17.ta.1, as children call theirs in the folder. */
int cli_family_is_recording(const char *name);
/* 1: the folder of a run, or its index. */
int cli_family_is(const char *path);
/* All of them, or those that left a recording. In the order of the index; for free(). */
struct cli_family_member *cli_family_all(const char *path, size_t *count);
struct cli_family_member *cli_family_members(const char *path, size_t *count);
/* The last entries of all processes as one snapshot; NULL after a message. */
struct ta_snapshot *cli_family_load(const char *path);
/* family_list.c: the tree of processes; the status to end with. */
int cli_family_list(const char *path, const struct cli_options *options);

#endif
