/* file_request.h: files that this process may not create itself, opened by the one that started it.
 *
 * A server that gives up its rights or changes its root cannot write where `tracealloc run` was told to. The latter
 * stays behind with the rights of the user, listens on a socket, and answers a name with an open descriptor. The
 * protocol, for both sides: a connection (AF_UNIX, SOCK_SEQPACKET, abstract name) carries packets, each the token, a
 * letter and a text:
 *
 *     O path                a file instead of what has that name; the answer is one packet: an int, the errno value, and
 *                           with 0 the descriptor (SCM_RIGHTS)
 *     A path                the same, but what has appeared there since the run began gets a number: PATH.1, PATH.2 …
 *     P path                the new file gets one: the process is another program by now, and the name is of that
 *     M from to file        the file that was opened under a temporary name takes the other one, as long as that is of the
 *                           file described (device and number); an answer as to O, with no descriptor (the parts are
 *                           separated by zeros). Done under a lock (flock) of the former, and not when it is empty: so who
 *                           waits no longer, or has lost its answer, knows by name and lock whether it was or will be done
 *     N pid text            less is recorded than was asked for, and why
 *     F pid text            a snapshot could not be taken, and why
 *     B pid parent          a process begins to be recorded; the connection stays open as long as it or its keeper is
 *     C pid command         its command line
 *     R pid path            its recording has this name now
 *     E pid reason path     its last snapshot is whole
 *     X pid end             what it ended with: a status, or the name of a signal
 *     U pid parent path text   it executes a program that cannot be recorded, and why
 *
 * So the other side knows whose recording is whose, which are whole, and who still runs; by the token, never by names. */
#ifndef TA_SNAPSHOT_WRITE_FILE_REQUEST_H
#define TA_SNAPSHOT_WRITE_FILE_REQUEST_H

#include <sys/types.h>

#include "snapshot/format/sink.h"

/* "NAME:TOKEN" as in the variable TRACEALLOC_OPENER; NULL: there is none. Copied. */
void ta__opener_set(const char *text);
/* The name of the run, which is no secret; "" = there is none. */
const char *ta__opener_run(void);
enum ta__opener_way { TA__OPEN_INSTEAD = 'O', TA__OPEN_SPARING = 'A', TA__OPEN_NUMBERED = 'P' };
/* A descriptor of the new, empty file; -1 with errno. Who does not answer is waited for as long as it runs, a minute at
 * most; no longer than a moment when it is stopped. */
int ta__opener_open(const char *path, enum ta__opener_way way);
/* A file that was opened so under a temporary name takes the place of another. 0, or -1 with errno: then it will not. */
int ta__opener_replace(const struct ta__new_file *file, struct ta__identity former);
/* Best effort: nobody may be there. Keeps errno. `process` is put before the text. */
void ta__opener_tell(char kind, pid_t process, const char *text, const char *more);
/* Tells that the process begins, on a connection that stays open: its descriptor, or -1. By the process itself. */
int ta__opener_begin(pid_t process, pid_t parent);
/* What is told from here on goes through that connection: by the keeper, which has it alone. */
void ta__opener_use(int connection);

#endif
