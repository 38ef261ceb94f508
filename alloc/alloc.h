/* alloc.h: what the files of alloc/ share, and the face through which the layers above inspect it. */
#ifndef TA_ALLOC_ALLOC_H
#define TA_ALLOC_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "alloc/domains.h"
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
/* Frees what a signal handler could not. Inside an operation. */
void ta__thread_free_deferred(struct ta__thread *self);
void ta__threads_before_fork(void);
void ta__threads_after_fork_in_parent(void);
void ta__thread_after_fork(struct ta__thread *self);

/* ---- malloc.c ------------------------------------------------------------------------------------------------------ */

void ta__malloc_init(void);
/* malloc in any mode, for a thread that has not adapted to the present one. */
void *ta__malloc_any(size_t size, struct ta__thread *self);
/* Chooses what malloc does in the mode that the thread has adapted to. */
void ta__malloc_choose(struct ta__thread *self, uint32_t gate);

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
void ta__end(struct ta__thread *self, uint32_t gate);

/* How a request differs from malloc(size). */
struct ta__request {
    size_t size;
    size_t alignment; /* 0 or 16: malloc's own */
    int zeroed;
    uint64_t domain; /* a number, or TA__DOMAIN_AMBIENT */
};

/* Serves any request in any mode and state of thread and process. NULL with errno ENOMEM when it cannot. */
void *ta__allocate(const struct ta__request *request, struct ta__caller caller);
void ta__release(void *user, struct ta__caller caller);
/* TA__DOMAIN_AMBIENT: the block keeps its domain. */
void *ta__reallocate(void *user, size_t size, uint64_t domain, struct ta__caller caller);
size_t ta__usable(void *user);

/* ---- emergency.c: when nothing else can be used ------------------------------------------------------------------ */

/* Memory that is never given back, for requests that arrive while the thread is inside the allocator or cannot have a
 * structure: zeroed, aligned as asked (a power of two), or NULL. */
void *ta__emergency_allocate(size_t size, size_t alignment);
/* The size of such a block; its address tells. */
int ta__emergency_owns(const void *user);
size_t ta__emergency_size(const void *user);

/* ---- misuse.c: what is wrong is said once, clearly --------------------------------------------------------------- */

/* `user` is in our range but its header does not verify. Reports; aborts or returns as the option says. */
void ta__misuse(const char *call, void *user);
/* `user` is, or most likely was, a block of a domain that was destroyed. Reported once, counted always, ignored. */
void ta__misuse_dead(const char *call, void *user);
/* `user` is none of ours: counted. */
void ta__foreign(void *user);

/* ---- options.c --------------------------------------------------------------------------------------------------- */

struct ta__options {
    int nframe; /* 0 = do not trace */
    uint64_t sample_bytes;
    uint32_t max_contexts;
    int leak_on_corruption;
    char text[512]; /* as given */

    /* For snapshot/autostart.c: snapshots that the program knows nothing of. */
    char output[256]; /* file name pattern; "" = none */
    int is_series;    /* all snapshots as entries of one file */
    int no_exit_snapshot;
    int watches_ends; /* the snapshot at exit also when SIGINT, SIGTERM or SIGHUP ends the process */
    int signal_number;
    uint64_t interval_ns;
    int at_peak, peak_percent;
    int at_limit;
    int is_loud;
    int process;   /* the one that the user started, 0 = not known: others share its variables */
    int no_follow; /* those others are not traced */

    int domains_at_exit;
    char rules[256]; /* path of a file; "" = none */
};
extern struct ta__options ta__options;
/* Reads the environment; ends the process with status 1 when a value is wrong. */
void ta__options_read(void);
/* A variable of the environment the process was started with; NULL when absent, and in set-uid programs. */
const char *ta__environment(const char *name);

#endif
