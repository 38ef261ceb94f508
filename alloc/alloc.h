/* alloc.h: what the files of alloc/ share, and the face through which the layers above inspect it. */
#ifndef TA_ALLOC_ALLOC_H
#define TA_ALLOC_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "alloc/domains/domains.h"
#include "alloc/header.h"
#include "alloc/heap.h"
#include "trace/trace.h"

/* ---- process.c, thread.c: life cycles ---------------------------------------------------------------------------- */

extern TA_THREAD_LOCAL struct ta__thread *ta__self;
/* What ta__self points to before a thread's first operation. */
extern struct ta__thread ta__thread_none;

/* Sets the process up, once; returns when it is done, whoever did it. */
void ta__process_ready(void);
/* The calling thread's structure, made if it has none; NULL when it cannot be had or is just being made. */
struct ta__thread *ta__thread_get(void);
int ta__process_is_ready(void);
/* The calling thread, which is none of the program's, never gets a structure: what it asks for, if anything, comes from
 * emergency memory. */
void ta__thread_stays_outside(void);
/* By it: 1, it may hold the others outside (ta_start, ta_stop, limits) and must not allocate; 0, as before. */
void ta__thread_may_stop(int may);
/* Frees what a signal handler could not. Inside an operation. */
void ta__thread_free_deferred(struct ta__thread *self);
/* Ends an operation of a thread whose end has passed, and with it the life of its structure; 0: neither. */
TA_NODISCARD int ta__thread_end_late(struct ta__thread *self);
/* 1: the calling thread gets no structure if it has none, until this is taken back with -1. */
void ta__thread_do_without(int change);
/* Around fork, also in the child; 0: there is nothing to undo. */
TA_NODISCARD int ta__threads_before_fork(void);
void ta__threads_after_fork(void);
void ta__threads_after_fork_in_child(void);

/* ---- malloc.c ------------------------------------------------------------------------------------------------------ */

/* malloc, new and free in any mode, for a thread that has not adapted to the present one. */
void *ta__malloc_any(size_t size, struct ta__thread *self);
void *ta__new_any(size_t size, struct ta__thread *self);
void ta__free_any(void *user, struct ta__thread *self);
/* Chooses what they do: in the mode that the thread has adapted to; in none. */
void ta__malloc_choose(struct ta__thread *self, uint32_t gate);
/* Are they what they would be if nothing were traced? */
int ta__malloc_is_plain(const struct ta__thread *self);
void ta__malloc_choose_any(struct ta__thread *self);

/* ---- slow.c: everything that is not the common case -------------------------------------------------------------- */

/* Who asks: the return address of the entry point, and the registers of the frame it returns to. */
struct ta__caller {
    uintptr_t ip, sp, fp;
};

/* Of the function it is used in, which must not be inlined into another. */
#if defined(__aarch64__)
#define TA__CALLER()                                                                                                   \
    ((struct ta__caller){.ip = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)),                  \
                         .sp = (uintptr_t)__builtin_dwarf_cfa(),                                                       \
                         .fp = *(const uintptr_t *)__builtin_frame_address(0)})
#else
#define TA__CALLER()                                                                                                   \
    ((struct ta__caller){.ip = (uintptr_t)__builtin_return_address(0),                                                 \
                         .sp = (uintptr_t)__builtin_frame_address(0) + 16,                                             \
                         .fp = *(const uintptr_t *)__builtin_frame_address(0)})
#endif

/* Brackets of every operation on the slow path. begin: the thread's structure, marked, adapted to *gate and not to be
 * re-entered; NULL: the request must do without. */
struct ta__thread *ta__begin(uint32_t *gate);
/* For requests, which can be served otherwise: NULL also where a fork waits for a lock that the caller may hold. */
struct ta__thread *ta__begin_request(uint32_t *gate);
void ta__end(struct ta__thread *self, uint32_t gate);

/* For calls that only look at tables: an operation of their own, or in a handler the one that it interrupted, for whose end
 * everybody waits who would empty them. 0: the thread itself may be about to empty them. ta__end_look in any case. */
struct ta__look {
    struct ta__thread *self; /* NULL: no operation of its own */
    uint32_t gate;
};
TA_NODISCARD int ta__look(struct ta__look *look);
void ta__end_look(struct ta__look *look);

/* Around locks that are taken outside of operations: see ta__safepoint_shut. */
struct ta__shut {
    struct ta__safepoint_member *member; /* NULL: the thread is shut already, or has no structure */
    uint32_t view;
};

TA_INLINE struct ta__shut ta__shut(void)
{
    struct ta__thread *self = ta__thread_get();
    if (self == NULL)
        return (struct ta__shut){NULL, 0};
    return (struct ta__shut){&self->safepoint, ta__safepoint_shut(&self->safepoint)};
}

TA_INLINE void ta__open(const struct ta__shut *shut)
{
    if (shut->member != NULL)
        ta__safepoint_open(shut->member, shut->view);
}

/* How a request differs from malloc(size). */
struct ta__request {
    size_t size;
    size_t alignment; /* 0 or 16: malloc's own */
    int zeroed;
    uint64_t domain; /* a number, or TA__DOMAIN_AMBIENT */
};

/* Serves any request in any mode and state of thread and process. NULL with errno ENOMEM when it cannot. */
void *ta__allocate(const struct ta__request *request, struct ta__caller caller);
/* aligned.c: the same for what has no other wishes than a power of two, which small blocks get without more ado. */
void *ta__allocate_aligned(size_t alignment, size_t size, struct ta__caller caller);
void ta__release(void *user);
void ta__release_for(void *user, const struct ta__caller *caller);
/* Inside an operation: a block of a destroyed domain goes, if it is still one. */
void ta__release_dead(void *user, uint32_t domain);
/* TA__DOMAIN_AMBIENT: the block keeps its domain. */
void *ta__reallocate(void *user, size_t size, uint64_t domain, struct ta__caller caller);
size_t ta__usable(void *user);

/* ---- emergency.c: when nothing else can be used ------------------------------------------------------------------ */

/* Memory for requests that arrive while the thread is inside the allocator or cannot have a structure: aligned as asked
 * (a power of two), or NULL. */
void *ta__emergency_allocate(size_t size, size_t alignment, int zeroed);
void ta__emergency_free(void *user);
/* The size of such a block, 0 when it is not live; its address tells. */
int ta__emergency_owns(const void *user);
size_t ta__emergency_size(const void *user);

void ta__emergency_visit(void (*visit)(const struct ta__source_block *block, void *context), void *context);
extern struct ta__fact ta__facts_emergency[];

/* ---- block_walk.c: with the world stopped ------------------------------------------------------------------------ */

/* Every live block with a header, traced or not, and what ta_track recorded; in no order. visit must not allocate. */
void ta__blocks_visit(void (*visit)(const struct ta__source_block *block, void *context), void *context);

/* ---- misuse.c: what is wrong is said once, clearly --------------------------------------------------------------- */

/* `user` is in our range but its header does not verify. Reports; aborts or returns as the option says. */
void ta__misuse(const char *call, void *user);
/* `user` is, or most likely was, a block of a domain that was destroyed. Reported once, counted always, ignored. */
void ta__misuse_dead(const char *call, void *user);
/* `user` is none of ours: counted; the first is noted, inside an operation. `caller`: who freed it; NULL = not known. */
void ta__foreign(struct ta__thread *self, uint32_t gate, const void *user, const struct ta__caller *caller);
struct ta__foreign_free {
    uint64_t user;
    uint64_t frames[8]; /* return addresses, most recent first, 0 behind the last */
};
/* The first such; 0: there was none. */
int ta__foreign_first(struct ta__foreign_free *found);

/* ---- block_around.c ---------------------------------------------------------------------------------------------- */

struct ta__block_around {
    uintptr_t user;
    size_t size, room; /* asked for; what there is, the same when the block is free */
    int64_t offset;    /* of the address, from user; may be behind the end */
    uint32_t leaf;     /* who asked; 0 = not known */
    uint32_t domain;   /* index; of a live block with a header */
    int is_live;       /* of a plain block: perhaps */
    int is_plain;      /* without a header: nobody knows who asked, nor whether it was freed */
};
/* The block in which an address lies, or behind which it does; 0 when it has nothing to do with our memory. */
int ta__block_around(uintptr_t address, struct ta__block_around *found);
/* The live block with a header in which it lies; 0 when there is none. */
int ta__live_block_around(uintptr_t address, struct ta__block_around *found);

/* ---- options.c --------------------------------------------------------------------------------------------------- */

struct ta__options {
    int nframe; /* 0 = do not trace */
    uint64_t sample_bytes;
    uint32_t max_contexts;
    uint64_t table_memory; /* bytes; 0 = by what lives */
    int leak_on_corruption;
    uint32_t remember_frees; /* so many, with who freed and who had allocated */
    int has_headers;         /* blocks that are not traced, too */
    int has_purge_delay;
    int32_t purge_delay; /* of memory that holds no block any more: milliseconds until it goes back; -1: never */
    char text[512];      /* as given */

    /* For snapshot/triggers/autostart.c: snapshots that the program knows nothing of. */
    char output[4096];   /* file name pattern; "" = none */
    int is_series;       /* all snapshots as entries of one file */
    uint64_t file_limit; /* bytes of that file; 0 = none was given */
    int is_paced;        /* by growth and time, as many as a long run can bear */
    int no_exit_snapshot;
    int watches_ends; /* the snapshot at exit also when SIGINT, SIGTERM or SIGHUP ends the process */
    int signal_number;
    uint64_t interval_ns;
    int at_peak, peak_percent;
    int at_limit;
    int is_loud;
    int has_blocks;             /* snapshots have every live block */
    int has_channel;            /* others of the user may steer it: tracealloc ctl */
    int process;                /* the one that the user started, 0 = not known: others share its variables */
    char family[4096];          /* pattern of the folder in which those others have PID.ta; "" = beside the output */
    uint64_t process_namespace; /* of processes, that of who started it; 0 = not known */
    int no_follow;              /* those others are not traced */

    int domains_at_exit;
    int only_checks;  /* whoever asks wants to know whether they are right */
    char rules[4096]; /* path of a file; "" = none */
};
extern struct ta__options ta__options;
/* Reads the environment; ends the process with status 1 when a value is wrong. */
void ta__options_read(void);
/* A variable of the environment the process was started with; NULL when absent, and in set-uid programs. */
const char *ta__environment(const char *name);

#endif
