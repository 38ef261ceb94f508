/* opener.h: files that this process may not create itself, opened by the one that started it.
 *
 * A server that gives up its rights or changes its root cannot write where `tracealloc run` was told to. The latter
 * stays behind with the rights of the user, listens on a socket, and answers a name with an open descriptor. The
 * protocol, for both sides: a connection (AF_UNIX, SOCK_SEQPACKET, abstract name) carries one packet, the token and
 * behind it "O" and a path, or "F" and a text that says why a snapshot failed. "O" is answered by one packet: an int,
 * the errno value, and with 0 the descriptor (SCM_RIGHTS). */
#ifndef TA_SNAPSHOT_OPENER_H
#define TA_SNAPSHOT_OPENER_H

/* "NAME:TOKEN" as in the variable TRACEALLOC_OPENER; NULL: there is none. Copied. */
void ta__opener_set(const char *text);
/* A descriptor of the new, empty file; -1 with errno. Waits some seconds at most. */
int ta__opener_open(const char *path);
/* Best effort: nobody may be there. Keeps errno. */
void ta__opener_tell(const char *text);

#endif
