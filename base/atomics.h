/* atomics.h: C11 atomics with the memory order in the name, so that a call site shows what it relies on.
 *
 * They work on plain objects (no _Atomic types), because most counters here are written by one owner with ordinary
 * stores and only read by others. */
#ifndef TA_BASE_ATOMICS_H
#define TA_BASE_ATOMICS_H

#include "base/attributes.h"

#define ta__load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define ta__load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define ta__store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define ta__store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define ta__add_relaxed(p, v)      __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define ta__add_acq_rel(p, v)      __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define ta__exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)

/* Compare-and-swap; `expected` is updated on failure. Returns true when the swap took place. */
#define ta__cas_acq_rel(p, expected, v)                                                                                \
    __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define ta__cas_relaxed(p, expected, v)                                                                                \
    __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)

/* The compiler must not move memory accesses across this; the processor may. Its partner is membarrier(2) on the rare
 * side. */
#define ta__compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
/* Between a store and a load of another word, on cold paths. */
#if defined(__SANITIZE_THREAD__) /* knows no fences, but lets this one pass */
#define ta__full_fence() __sync_synchronize()
#else
#define ta__full_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* A counter that only its owner writes and others read at any time (relaxed). An ordinary addition to an aligned word:
 * one instruction, which nobody can see half done; spelled atomically it would be three, for the same stores. */
#if defined(__SANITIZE_THREAD__)
#define ta__owner_add(p, v) ta__store_relaxed((p), ta__load_relaxed(p) + (v))
#else
#define ta__owner_add(p, v) (*(p) += (v))
#endif

/* The same where the compiler would read the word again at once: it must not make three instructions of one. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define ta__owner_add_in_place(p, v) __asm__("addq %1, %0" : "+m"(*(p)) : "er"((int64_t)(v)) : "cc")
#else
#define ta__owner_add_in_place(p, v) ta__owner_add((p), (int64_t)(v))
#endif

/* The owner's read of an aligned word that another thread may replace at any moment (relaxed), as the operand of the
 * instruction that needs it. */
#if defined(__SANITIZE_THREAD__)
#define ta__owner_read(p) ta__load_relaxed(p)
#else
#define ta__owner_read(p) (*(p))
#endif

/* An acquire load as the operand of the instruction that needs it, where the processor's plain loads are that. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define ta__operand_acquire(p) (*(p))
#else
#define ta__operand_acquire(p) ta__load_acquire(p)
#endif

TA_INLINE void ta__cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
