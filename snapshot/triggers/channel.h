/* channel.h: a socket through which the same user steers a process: tracealloc ctl, tracealloc watch.
 *
 *     FOLDER/PROCESS-NAMESPACE      a socket (AF_UNIX, SOCK_SEQPACKET) named after the process and its namespace of processes
 *     FOLDER                        tracealloc/ in /run/user/USER, else tracealloc-USER/ in /tmp, /dev/shm or /var/tmp: 0700
 *
 * A packet is a request, its answer is one packet: '+' and lines KEY=VALUE, or '-' and why not. `snapshot` comes with a
 * descriptor where the process is to write to it (SCM_RIGHTS), so that a program without a root, or without rights, can
 * answer, too. Served are the user of the process and root, by the credentials that the kernel tells.
 *
 * Runs in the helper (triggers.h) and nowhere else, so it ends with the process, begins anew in a child, and is none of
 * the program's descriptors and threads. Where the helper is a process it sleeps until somebody asks. */
#ifndef TA_SNAPSHOT_TRIGGERS_CHANNEL_H
#define TA_SNAPSHOT_TRIGGERS_CHANNEL_H

#include "base/message.h"

/* Before ta__triggers_start. */
void ta__channel_prepare(void);

/* ---- channel_requests.c: what is asked ---- */

struct ta__channel_answer {
    struct ta__message text;
    const char *path; /* the last line's value, or NULL */
    int is_refused;
};
/* `request` is one line and is taken apart; `descriptor` came with it, or -1. In the helper. */
void ta__channel_answer(struct ta__channel_answer *answer, char *request, int descriptor);

#endif
