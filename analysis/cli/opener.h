/* opener.h: opens files for traced processes that may not: they gave up their rights, or changed their root.
 *
 * tracealloc run keeps the rights of the user who started it and listens on a socket; snapshot/opener.h has the other
 * side and the protocol. Only names that the run's pattern gives are opened, only for those who know the token. */
#ifndef TA_ANALYSIS_CLI_OPENER_H
#define TA_ANALYSIS_CLI_OPENER_H

#include <stddef.h>

/* Before the program is started: the socket. 0, or -1: then programs do without. */
int cli_opener_start(const char *pattern);
/* For TRACEALLOC_OPENER; "" before start. */
const char *cli_opener_name(void);
/* In the parent, after fork: begins to answer, in a thread. */
void cli_opener_serve(void);
/* Answers what has been asked, and ends. */
void cli_opener_stop(void);
/* Says, a line each, which processes could not write their recordings, and why. Answers how many. */
size_t cli_opener_tell_failures(void);

#endif
