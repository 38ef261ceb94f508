/* triggers.h: snapshots for programs that know nothing of us: at exit, on a signal, every N seconds, at each new peak,
 * when a domain crosses its limit.
 *
 * One helper with all signals blocked does the work: where it can be, a process that shares the memory (keeper.h), which
 * also takes the last snapshot when the program ends in a way that it knows nothing of; else a thread. It begins when
 * the first trigger needs it and again in a child after fork. Who asks (a signal handler, an allocating thread) only sets a bit and wakes it: no lock, no
 * allocation, errno kept. */
#ifndef TA_SNAPSHOT_TRIGGERS_TRIGGERS_H
#define TA_SNAPSHOT_TRIGGERS_TRIGGERS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/attributes.h"

/* File names may contain %p (pid), %n (first free number from 1), %t (UTC time), %h (host), %% (percent sign). A child
 * that was forked gets ".PID" behind a name without %p, so that it leaves its parent's file alone. */
struct ta__trigger_options {
    const char *path;        /* every snapshot a file of its own; the peak has one file that is replaced */
    const char *series;      /* or all as entries of one recording; NULL = single files */
    int at_exit;             /* also closes the series */
    int signal_number;       /* 0 = none */
    uint64_t interval_ns;    /* 0 = none */
    int at_peak;             /* when the current size exceeds the last snapshot's by peak_percent */
    unsigned peak_percent;   /* 0 = 5 */
    uint64_t peak_least;     /* no peak snapshot below this many bytes */
    int at_limit;            /* ta__triggers_note_limit takes one */
    int is_paced;            /* entries of the series by growth and time, as pace.h says */
    uint64_t file_limit;     /* bytes of the series: older entries are thinned; 0 = as pace.h says, or none */
    int may_rest;            /* where nothing is traced there is nothing to take, and that is no failure */
    int has_keeper;          /* the helper is a process, and takes the last snapshot however the program ends */
    int dies_with_us;        /* that process cannot outlive this one: what ends it is made to wait */
    void (*in_keeper)(void); /* unless NULL: runs first in that process */
    void (*end_of)(char *text, uint64_t room); /* unless NULL: in it, what the process ended with, "" = not known */
    int sync;                                  /* every entry of a series is synced */
    int forked;                                /* the names belong to another process: as in a child after fork */
    const char *family;                        /* pattern of a folder: forked ones are PID.ta in it; NULL = none */
    int no_children;                           /* a child after fork takes none */
    const char *opener;                        /* ta__opener_set; copied */
    int loud;                                  /* a snapshot that cannot be written is reported on descriptor 2 */
    void (*watch)(uint64_t busy_ns);           /* unless NULL: by the helper of a paced series, at every look */
    uint64_t (*current_bytes)(void);           /* unless NULL: asked by the helper, where nobody calls note_size */
    uint64_t poll_ns;                          /* 0 = 10 ms */
};

/* 0, or -1 with ta__error_set. The texts are copied. Stops the former triggers first. */
TA_NODISCARD int ta__triggers_start(const struct ta__trigger_options *options);
/* Ends the helper, gives the signal back, closes the series; takes no snapshot. */
void ta__triggers_stop(void);
/* Something else that the helper does while it waits, such as serving a socket:
 *
 *     static const struct ta__helper_task task = {.begin = open_socket, .period_ns = 100000000, .look = serve_socket};
 *     ta__triggers_add_task(&task);              (in a constructor, before ta__triggers_start)
 *
 * All four run in the helper and nowhere else. In a keeper that means: the program's memory, but descriptors, root, folder
 * and rights of its own, no malloc, no stdio, no thread. `look` never blocks (sockets are opened so) and does a little at
 * a time: while it runs no entry is taken. It may call ta__triggers_take. A child after fork has a helper of its own, in
 * which the task begins anew; its first descriptor is closed there already. */
struct ta__helper_task {
    void (*begin)(void); /* may be NULL */
    uint64_t period_ns;  /* `look` is called at least so often */
    void (*look)(void);
    void (*end)(void); /* the last entry is written, or the helper stops; may be NULL */
};
/* Once; four tasks at most: -1 beyond that. The structure stays. */
TA_NODISCARD int ta__triggers_add_task(const struct ta__helper_task *task);
/* In the helper: an entry now, into the series or a file of its own. 0, or -1 with ta__error_set. */
int ta__triggers_take(const char *reason);
/* For a task: how long the helper has been there; that it looks at once, also from a signal handler. */
uint64_t ta__triggers_age_ns(void);
void ta__triggers_wake(void);
/* In the helper: entries every so often from now on, 0 = none; entries at limits, too. */
void ta__triggers_set_interval(uint64_t ns);
uint64_t ta__triggers_interval(void);
void ta__triggers_take_at_limits(void);
/* In the helper: where the last entry went, "" = there is none yet. */
const char *ta__triggers_last_name(void);

/* At the end of the process: the snapshot at exit if wanted, then as stop. */
void ta__triggers_exit(void);

/* The same where no destructor runs (_exit); answers at once in a child of vfork and on an alternate signal stack. */
void ta__triggers_exit_now(void);
/* After ta__triggers_exit, when nothing but the end can come: what the process ends with is known (end_of). */
void ta__triggers_leave(void);
/* In the handler of a signal that ends the process: the last entry, where nobody else can take it later. Has an end. */
void ta__triggers_fault(void);
/* Why less is recorded than was asked for; NULL when nothing is missing. */
const char *ta__triggers_lack(void);
/* 1: the last snapshot is taken however the process ends; nothing needs to be caught. */
int ta__triggers_outlive(void);
/* No process watches this one any more: it is about to wait for children of every kind. From now on it is recorded at ends
 * that can be caught. 0: there was none. */
int ta__triggers_go_alone(void);
/* 1: the process executes another program now, 0: it could not. Answers whether it is the one that is recorded; in
 * a child of vfork it is not. */
int ta__triggers_executes(int is_about_to);
/* 1: the calling process is the one that is recorded: not a child of vfork. A copy of it that was made behind libc's back
 * (a clone by system call) becomes one of its own here. */
int ta__triggers_are_here(void);
/* What the process ends with; -1 = not known (exits.c). */
int ta__exit_status(void);
/* That a handler of ours has seen, and by which it ends in a moment; 0 = none. */
int ta__ending_signal(void);
/* 1: somebody wants to know what cannot be recorded. */
int ta__triggers_are_told(void);
/* From now on, where the action is the default one (exits.c): faults are noted, and unless the last snapshot is taken
 * after the end anyway, they and SIGINT, SIGTERM and SIGHUP take it before they end the process. */
void ta__watch_ends(int is_outlived);

/* From any thread, as often as wanted: two loads when there is nothing to do. */
void ta__triggers_note_size(uint64_t current_bytes);
void ta__triggers_note_limit(uint32_t domain);
/* From some uncommon path: creates the helper again in a child after fork. */
void ta__triggers_poke(void);

#endif
