/* triggers.h: snapshots for programs that know nothing of us: at exit, on a signal, every N seconds, at each new peak,
 * when a domain crosses its limit.
 *
 * One helper thread with all signals blocked does the work; it is created when the first trigger needs it and again in
 * a child after fork. Who asks (a signal handler, an allocating thread) only sets a bit and wakes it: no lock, no
 * allocation, errno kept. */
#ifndef TA_SNAPSHOT_TRIGGERS_H
#define TA_SNAPSHOT_TRIGGERS_H

#include <stdint.h>

#include "base/attributes.h"

/* File names may contain %p (pid), %n (first free number from 1), %t (UTC time), %h (host), %% (percent sign). A child
 * that was forked gets ".PID" behind a name without %p, so that it leaves its parent's file alone. */
struct ta__trigger_options {
    const char *path;                /* every snapshot a file of its own; the peak has one file that is replaced */
    const char *series;              /* or all as entries of one recording; NULL = single files */
    int at_exit;                     /* also closes the series */
    int signal_number;               /* 0 = none */
    uint64_t interval_ns;            /* 0 = none */
    int at_peak;                     /* when the current size exceeds the last snapshot's by peak_percent */
    unsigned peak_percent;           /* 0 = 5 */
    uint64_t peak_least;             /* no peak snapshot below this many bytes */
    int at_limit;                    /* ta__triggers_note_limit takes one */
    int sync;                        /* every entry of a series is synced */
    int forked;                      /* the names belong to another process: as in a child after fork */
    int no_children;                 /* a child after fork takes none */
    const char *opener;              /* ta__opener_set; copied */
    int loud;                        /* a snapshot that cannot be written is reported on descriptor 2 */
    uint64_t (*current_bytes)(void); /* unless NULL: asked every poll_ns for at_peak, where nobody calls note_size */
    uint64_t poll_ns;                /* 0 = 10 ms */
};

/* 0, or -1 with ta__error_set. The texts are copied. Stops the former triggers first. */
TA_NODISCARD int ta__triggers_start(const struct ta__trigger_options *options);
/* Ends the helper, gives the signal back, closes the series; takes no snapshot. */
void ta__triggers_stop(void);
/* At the end of the process: the snapshot at exit if wanted, then as stop. */
void ta__triggers_exit(void);

/* The same where no destructor runs (_exit); answers at once in a child of vfork and on an alternate signal stack. */
void ta__triggers_exit_now(void);
/* From now on SIGINT, SIGTERM and SIGHUP, where their action is the default one, do that before they end the process
 * (exits.c). */
void ta__watch_ends(void);

/* From any thread, as often as wanted: two loads when there is nothing to do. */
void ta__triggers_note_size(uint64_t current_bytes);
void ta__triggers_note_limit(uint32_t domain);
/* From some uncommon path: creates the helper again in a child after fork. */
void ta__triggers_poke(void);

/* The name that a pattern gives now. `number` replaces %n. 0, or -1 when it does not fit. */
TA_NODISCARD int ta__trigger_path(const char *pattern, uint64_t number, int forked, char *path, uint64_t room);

#endif
