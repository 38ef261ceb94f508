/* program.h: whether a program can be traced from outside, found out before it is started. */
#ifndef TA_ANALYSIS_CLI_PROGRAM_H
#define TA_ANALYSIS_CLI_PROGRAM_H

#include <stddef.h>

enum cli_program_state { CLI_PROGRAM_FINE, CLI_PROGRAM_MISSING, CLI_PROGRAM_REFUSED };

/* Looks for `name` as execvp does. FINE: `path` receives the file. Otherwise `reason` receives one line that says what
 * is wrong and what to do instead. */
enum cli_program_state cli_program_check(const char *name, char *path, size_t path_size, char *reason,
                                         size_t reason_size);

/* The library to preload: TRACEALLOC_LIBRARY, or what lies beside this program, installed or in the build tree. To be
 * freed; where there is none the program ends with a message. */
char *cli_find_library(void);

#endif
