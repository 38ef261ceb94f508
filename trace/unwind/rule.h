/* rule.h: one unwind rule, packed into one word. How to get from a frame to its caller.
 *
 * Written by cfi.c (from .eh_frame), kept by rule_cache.c (per address), read by the stack walk at every step. A rule is a
 * pure value: it refers to no memory and stays meaningful after its module is gone.
 *
 *   63            48 47            32 31                     8 7 6 5 4 3 2     0
 *  ┌────────────────┬────────────────┬────────────────────────┬─┬─┬─┬─┬─┬───────┐
 *  │ salt           │ fp slot / 8    │ CFA offset / 8         │·│·│F│L│S│ kind  │
 *  │ unsigned       │ signed         │ signed                 │ │ │ │ │ │       │
 *  └────────────────┴────────────────┴────────────────────────┴─┴─┴─┴─┴─┴───────┘
 *   S  the caller's fp was saved; it lies at CFA + slot (or, with F, at fp + slot)
 *   L  the address belongs to the dynamic loader
 *   F  the slot is counted from this frame's fp
 *   salt tells apart the modules that occupied one address range one after another; 0 = the first.
 *
 * In this file sp and fp are those of the frame whose rule it is. The caller's sp is the CFA; the return address is at
 * CFA - 8 on x86-64, at the fp slot + 8 on aarch64 (a frame record); rules that say otherwise are UNKNOWN. */
#ifndef TA_TRACE_UNWIND_RULE_H
#define TA_TRACE_UNWIND_RULE_H

#include <stdint.h>

#include "base/attributes.h"

enum ta__rule_kind {
    TA__RULE_UNKNOWN = 0,  /* no table, a damaged one, or a rule that this word cannot say */
    TA__RULE_SP = 1,       /* CFA = sp + offset */
    TA__RULE_FP = 2,       /* CFA = fp + offset */
    TA__RULE_FP_DEREF = 3, /* CFA = the word at fp + offset: functions that realign their stack */
    TA__RULE_END = 4,      /* the outermost frame: it has no caller */
    TA__RULE_SIGNAL = 5,   /* the registers of the interrupted frame are in the ucontext at sp */
    TA__RULE_PLT = 6,      /* CFA = sp + 8, and 8 more from the threshold's byte of a PLT stub onwards */
};

#define TA__RULE_KIND_MASK    0x07u
#define TA__RULE_SAVES_FP     0x08u /* S */
#define TA__RULE_IN_LOADER    0x10u /* L */
#define TA__RULE_SLOT_FROM_FP 0x20u /* F */

#define TA__RULE_OFFSET_SHIFT 8
#define TA__RULE_SLOT_SHIFT   32
#define TA__RULE_SALT_SHIFT   48
#define TA__RULE_SALT_MAX     0xffffu

/* Largest distances in bytes that fit (inclusive, both signs are checked against them; the lowest value is left out).
 */
#define TA__RULE_OFFSET_MAX (0x7fffffll * 8)
#define TA__RULE_SLOT_MAX   (0x7fffll * 8)

/* Linux signal frames: distances from sp, which points at the ucontext when the handler has returned. */
#if defined(__x86_64__)
#define TA__SIGNAL_FP 120 /* uc_mcontext.gregs[REG_RBP] */
#define TA__SIGNAL_SP 160 /* uc_mcontext.gregs[REG_RSP] */
#define TA__SIGNAL_IP 168 /* uc_mcontext.gregs[REG_RIP] */
#elif defined(__aarch64__)
#define TA__SIGNAL_FP (128 + 176 + 8 + 8 * 29) /* siginfo, then uc_mcontext.regs[29] */
#define TA__SIGNAL_SP (128 + 176 + 8 + 8 * 31)
#define TA__SIGNAL_IP (128 + 176 + 8 + 8 * 32)
#endif

TA_INLINE enum ta__rule_kind ta__rule_kind(uint64_t rule)
{
    return (enum ta__rule_kind)(rule & TA__RULE_KIND_MASK);
}

TA_INLINE int ta__rule_saves_fp(uint64_t rule)
{
    return (rule & TA__RULE_SAVES_FP) != 0;
}

TA_INLINE int ta__rule_slot_from_fp(uint64_t rule)
{
    return (rule & TA__RULE_SLOT_FROM_FP) != 0;
}

TA_INLINE int ta__rule_in_loader(uint64_t rule)
{
    return (rule & TA__RULE_IN_LOADER) != 0;
}

/* In bytes. */
TA_INLINE int64_t ta__rule_offset(uint64_t rule)
{
    return (int64_t)((int32_t)(uint32_t)rule >> TA__RULE_OFFSET_SHIFT) * 8;
}

/* In bytes. */
TA_INLINE int64_t ta__rule_slot(uint64_t rule)
{
    return (int64_t)(int16_t)(uint16_t)(rule >> TA__RULE_SLOT_SHIFT) * 8;
}

TA_INLINE unsigned ta__rule_salt(uint64_t rule)
{
    return (unsigned)(rule >> TA__RULE_SALT_SHIFT);
}

TA_INLINE uint64_t ta__rule_with_salt(uint64_t rule, unsigned salt)
{
    return (rule & ((1ull << TA__RULE_SALT_SHIFT) - 1)) | (uint64_t)salt << TA__RULE_SALT_SHIFT;
}

/* The CFA of a PLT frame; `ip` is the interrupted address itself. */
TA_INLINE uintptr_t ta__rule_plt_cfa(uint64_t rule, uintptr_t ip, uintptr_t sp)
{
    uintptr_t threshold = (uintptr_t)ta__rule_offset(rule) / 8;
    return sp + 8 + ((ip & 15) >= threshold ? 8 : 0);
}

/* Where a frame keeps its return address, and what it says: aarch64 has it beside the saved fp, perhaps signed. */
TA_INLINE uint64_t ta__rule_return_slot(uint64_t cfa, uint64_t fp_slot)
{
#if defined(__aarch64__)
    return (void)cfa, fp_slot + 8;
#else
    return (void)fp_slot, cfa - 8;
#endif
}

TA_INLINE uint64_t ta__rule_unsigned_ip(uint64_t ip)
{
#if defined(__aarch64__)
    return ip & ((UINT64_C(1) << 48) - 1);
#else
    return ip;
#endif
}

/* Distances in bytes. What does not fit (too far, or no multiple of 8) is UNKNOWN: never a wrong rule. */
TA_INLINE uint64_t ta__rule_encode(enum ta__rule_kind kind, unsigned flags, int64_t offset, int64_t slot)
{
    if (offset % 8 != 0 || slot % 8 != 0 || offset > TA__RULE_OFFSET_MAX || offset < -TA__RULE_OFFSET_MAX ||
        slot > TA__RULE_SLOT_MAX || slot < -TA__RULE_SLOT_MAX)
        return TA__RULE_UNKNOWN;
    return (uint64_t)kind | flags | (uint64_t)((uint32_t)(int32_t)(offset / 8) << TA__RULE_OFFSET_SHIFT) |
           (uint64_t)(uint16_t)(int16_t)(slot / 8) << TA__RULE_SLOT_SHIFT;
}

#endif
