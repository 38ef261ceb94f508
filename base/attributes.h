/* attributes.h: the compiler hints used everywhere, one name each.
 *
 * Bottom of the flow: includes nothing, is included by all. */
#ifndef TA_BASE_ATTRIBUTES_H
#define TA_BASE_ATTRIBUTES_H

#define TA_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define TA_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Out of line and away from the hot text: what a hot path calls when something uncommon happens. */
#define TA_COLD   __attribute__((cold, noinline))
#define TA_INLINE static inline __attribute__((always_inline))
/* Thread-local storage that never calls malloc: fixed offsets from the thread pointer. */
#define TA_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#define TA_NODISCARD    __attribute__((warn_unused_result))
#define TA_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TA_CACHE_LINE   64

/* Functions that read the stacks of running code word by word: sanitizers would object to every red zone they cross. */
#define TA_READS_STACKS __attribute__((no_sanitize("address", "thread", "undefined")))
/* Such a function where it is to be inlined: into functions that sanitizers look at, it cannot be. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TA_READS_STACKS_INLINE __attribute__((noinline, unused)) TA_READS_STACKS static
#else
#define TA_READS_STACKS_INLINE TA_INLINE
#endif

/* Functions whose reads may race with writes that they do not mind: the thread sanitizer need not see them. */
#if defined(__SANITIZE_THREAD__)
#define TA_MAY_RACE __attribute__((noinline, unused, no_sanitize("thread"))) static
#else
#define TA_MAY_RACE TA_INLINE
#endif

#endif
