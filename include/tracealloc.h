/* tracealloc.h: control of tracing, and the allocator under names of its own.
 *
 * tracealloc replaces malloc; a program needs this header only when it wants to steer the tracing itself. Everything
 * here may be called from any thread, in any order, before main and during exit. Behaviour follows Python's
 * tracemalloc; docs/api.md explains each call and its differences.
 *
 * A program that need not be linked with tracealloc defines TRACEALLOC_WEAK first (tracealloc/api.h) and tests the
 * address of what it calls:
 *     if (ta_is_tracing && ta_is_tracing()) … */
#ifndef TRACEALLOC_H
#define TRACEALLOC_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc/api.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- tracing on and off ------------------------------------------------------------------------------------------ */

#define TA_NFRAME_MAX 65535

/* Begins to record every allocation with its `nframe` most recent frames (1 … 65535).
 * 0 on success, also when tracing already (then nothing changes); -1 with errno EINVAL when nframe is out of range,
 * with errno ENOMEM when the tables cannot be had. The text of the last error of this thread: ta_error_text. */
TA_API int ta_start(int nframe);
/* Stops, forgets every trace, keeps the limit. Blocks stay valid. */
TA_API void ta_stop(void);
TA_API int ta_is_tracing(void);
/* Forgets every trace and goes on recording. */
TA_API void ta_clear_traces(void);
/* The peak becomes the current size. */
TA_API void ta_reset_peak(void);
/* Bytes in traced blocks of all domains, now and at most since start, clear or reset. (0, 0) when stopped.
 * Exact in a process of one thread; with more, at most 64 KiB per thread behind. */
TA_API void ta_get_traced_memory(size_t *current, size_t *peak);
/* The limit last set, 1 if there was none; also when stopped. */
TA_API int ta_get_traceback_limit(void);
/* Bytes of memory that the tracer itself uses: tables, stacks, per-thread counters. */
TA_API size_t ta_get_tracer_memory(void);

/* What the last failed call of this thread wants to say; never NULL. */
TA_API const char *ta_error_text(void);

/* ---- looking up one block ---------------------------------------------------------------------------------------- */

/* The stack that allocated the block: `frames` receives at most `max` return addresses, most recent first.
 * Returns the number of frames stored in the trace (it may exceed max), 0 when the pointer is not a traced block.
 * *total, unless NULL, receives the depth of the whole stack, 0 with a limit of one frame, where nobody walks it.
 * `block` is what malloc returned, not an inner address. */
TA_API size_t ta_get_object_traceback(const void *block, void **frames, size_t max, size_t *total);
/* The same for any domain, also for what ta_track recorded there. */
TA_API size_t ta_get_traceback(uint32_t domain, uintptr_t address, void **frames, size_t max, size_t *total);

/* Whose memory is this? In words, for crash handlers and debuggers: no malloc, no lock, errno kept. Lines, each with its
 * end: what the pointer is (a live block or the inside of one, a freed one where remember_frees=N is in
 * TRACEALLOC_OPTIONS, a stack, a variable or function), then the stack that allocated it, most recent call first, with
 * names and lines from the files. Like snprintf: at most `room` bytes with a final zero, answers how long the
 * whole text is. */
TA_API size_t ta_describe(const void *pointer, char *buffer, size_t room);

/* ---- memory that tracealloc did not allocate --------------------------------------------------------------------- */

/* Records `size` bytes at `address` (any value) in `domain`, with the caller's stack; a known (domain, address) is
 * replaced. 0; -1 no memory for the record; -2 not tracing. */
TA_API int ta_track(uint32_t domain, uintptr_t address, size_t size);
/* 0, whether it was known or not; -2 not tracing. */
TA_API int ta_untrack(uint32_t domain, uintptr_t address);

/* ---- health ------------------------------------------------------------------------------------------------------ */

struct ta_health {
    uint64_t lost;            /* allocations that could not be traced: no memory for tables */
    uint64_t overflowed;      /* allocations counted under <overflow>: the cap on contexts was reached */
    uint64_t cut_short;       /* stacks that ended before the outermost frame */
    uint64_t foreign_frees;   /* pointers to free or realloc that are not ours: ignored */
    uint64_t invalid_frees;   /* double frees and damaged headers */
    uint64_t contexts;        /* nodes in the calling-context tree */
    uint64_t leaves;          /* distinct (context, domain) pairs */
    uint64_t modules;         /* loaded objects seen on stacks */
    uint64_t snapshot_errors; /* snapshots that could not be written */
};
/* Fills the first `size` bytes of *health (pass sizeof *health), so that old callers meet newer libraries. */
TA_API void ta_get_health(struct ta_health *health, size_t size);

/* ---- the allocator under its own names --------------------------------------------------------------------------- */

/* The same functions as malloc, free …: for builds that do not replace them, and for tests. */
TA_API void *ta_malloc(size_t size) __attribute__((malloc, alloc_size(1), warn_unused_result));
TA_API void *ta_calloc(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2), warn_unused_result));
TA_API void *ta_realloc(void *block, size_t size) __attribute__((alloc_size(2), warn_unused_result));
TA_API void *ta_reallocarray(void *block, size_t count, size_t size)
    __attribute__((alloc_size(2, 3), warn_unused_result));
TA_API void ta_free(void *block);
TA_API void *ta_aligned_alloc(size_t alignment, size_t size) __attribute__((alloc_size(2), warn_unused_result));
TA_API void *ta_memalign(size_t alignment, size_t size) __attribute__((alloc_size(2), warn_unused_result));
TA_API int ta_posix_memalign(void **block, size_t alignment, size_t size) __attribute__((warn_unused_result));
TA_API void *ta_valloc(size_t size) __attribute__((alloc_size(1), warn_unused_result));
TA_API void *ta_pvalloc(size_t size) __attribute__((warn_unused_result));
TA_API size_t ta_usable_size(void *block);

TA_API const char *ta_version(void);

#if defined(__cplusplus)
}
#endif

#endif
