/* keeper.h: a process that shares this one's memory and nothing else, and so outlives it.
 *
 * A thread would make the program multithreaded (unshare fails, libstdc++ counts with locked instructions, Python warns
 * at fork), share its descriptors, folder, root and rights, and die with it. The keeper has descriptors of its own (none
 * of the program's), the rights of the moment it began with, and every signal blocked; waitpid does not see it. When the
 * program ends in whatever way (SIGKILL, SIGSEGV, exec), its memory is as it was until the keeper has ended too: nothing
 * has to be caught in the program.
 *
 * It has thread-local storage of its own, a copy of the starting thread's; what it runs never allocates through malloc.
 * x86-64 only; elsewhere, and in sanitizer builds, start fails with ENOSYS and a thread does what it can. */
#ifndef TA_SNAPSHOT_TRIGGERS_KEEPER_H
#define TA_SNAPSHOT_TRIGGERS_KEEPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attributes.h"

struct ta__keeper {
    pid_t process, owner;
    uint32_t *alive;  /* the kernel writes 0 when the owner's first thread leaves this memory; NULL = not known */
    uint32_t present; /* the kernel writes 0 when the keeper leaves this memory, however it ends */
    uint32_t done;    /* a futex: set by the keeper when it has nothing more to do */
    void *room;       /* stack and thread-local storage */
    size_t room_bytes;
    void (*work)(void);
    uid_t user;
    gid_t group;
    int end;        /* how the owner ended, as far as the keeper has seen, as wait tells it; -1 = not known */
    int ending;     /* what tells it when the owner is gone, in the keeper alone; -1 = nothing does */
    int descriptor; /* kept open in the keeper, and there alone; -1 = none */
};

/* 1: one more process of this user does not come near what RLIMIT_NPROC allows. */
int ta__task_fits(void);
/* 1: the process is in that namespace of processes (0 = the system's first one), and not its init, with which all others
 * of the namespace end, the keeper too. */
int ta__namespace_is_ours(uint64_t number);

enum ta__owner { TA__OWNER_RUNS, TA__OWNER_ENDED, TA__OWNER_EXECUTED /* runs another program now */ };

/* work() runs in the keeper; when it returns, the keeper ends. 0, or -1 with errno. One at a time in a process. The
 * descriptor goes over to the keeper in any case. */
TA_NODISCARD int ta__keeper_start(struct ta__keeper *keeper, void (*work)(void), int descriptor);
/* By the owner: 1 when the keeper has done its work within so many milliseconds, 0 when it has not or is gone. */
int ta__keeper_wait(struct ta__keeper *keeper, int milliseconds);
/* By the owner, after wait: gives back what the keeper used, unless it is still there. */
void ta__keeper_forget(struct ta__keeper *keeper);
/* By the owner: 1 when the keeper has ended. */
int ta__keeper_is_gone(const struct ta__keeper *keeper);

/* In the keeper, before work() returns: wait has an end. */
void ta__keeper_is_done(struct ta__keeper *keeper);
/* In the keeper: 1 = the function came to its end, 0 = it faulted on memory that is damaged, or ran into a breakpoint that
 * a debugger has set for the program; what it had begun is as it was left. May be called again from in there. Elsewhere it
 * is just called. */
int ta__keeper_try(void (*function)(void));
/* In the keeper: the signal is no longer blocked, and calls `handler`; it ends ta__keeper_sleep. 0 or -1. */
int ta__keeper_let_through(int number, void (*handler)(int number));
/* In the keeper. Sleeps until *word is not 0, the owner has left, or the time is over. */
void ta__keeper_sleep(struct ta__keeper *keeper, uint32_t *word, uint64_t ns);
enum ta__owner ta__keeper_owner(struct ta__keeper *keeper);
/* In the keeper, when the owner has ended: how, as wait tells it; -1 = that cannot be known. */
int ta__keeper_end(struct ta__keeper *keeper);
/* A program that has given up its rights must not find them in a process whose memory it may write. 1: the owner has
 * others than the keeper; which, is left in the keeper until it takes them. */
int ta__keeper_rights_differ(struct ta__keeper *keeper);
/* In the keeper. 1: the owner's first thread is in a handler of its own for a fault, which may do anything to its memory:
 * nothing of that is looked at to find out. */
int ta__keeper_owner_handles_fault(void);
/* In the keeper: returns when that is over, or the owner, when *word is not 0 but below `most`, or when a signal comes. */
void ta__keeper_wait_out_fault(const uint32_t *word, uint32_t most);
void ta__keeper_take_rights(const struct ta__keeper *keeper);

#endif
