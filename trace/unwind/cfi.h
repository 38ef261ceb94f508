/* cfi.h: from an object's .eh_frame tables and an address in it to the unwind rule that holds there.
 *
 * Called by rule_cache.c when its cache misses; a test calls it on files that are mapped but never run. Answers are pure
 * functions of the tables: no allocation, no lock, no libc call, safe in signal handlers. The tables are distrusted: every read
 * stays inside the spans that the caller vouches for, every loop is bounded, and what is damaged or cannot be said
 * by rule.h is UNKNOWN. */
#ifndef TA_TRACE_UNWIND_CFI_H
#define TA_TRACE_UNWIND_CFI_H

#include <stdint.h>

/* Readable bytes [low, high). */
struct ta__cfi_span {
    const uint8_t *low;
    const uint8_t *high;
};

/* Where one object's unwind tables are. Both spans are usually the same segment. */
struct ta__cfi_tables {
    const uint8_t *header;           /* .eh_frame_hdr */
    struct ta__cfi_span header_span; /* the readable segment around it */
    struct ta__cfi_span frame_span;  /* the readable segment around .eh_frame */
};

/* What an address stands for: one that a call will return to belongs to the call before it; one at which a signal
 * arrived is where execution goes on. */
enum ta__cfi_address { TA__CFI_RETURN_ADDRESS, TA__CFI_INTERRUPTED };

/* Where a register of the caller is. */
enum ta__cfi_how {
    TA__CFI_SAME = 0,         /* untouched, or not mentioned */
    TA__CFI_UNDEFINED,        /* lost; for the return address: there is no caller */
    TA__CFI_AT_CFA,           /* in memory, at CFA + offset */
    TA__CFI_CFA_VALUE,        /* it is CFA + offset */
    TA__CFI_IN_REGISTER,      /* in another register */
    TA__CFI_AT_EXPRESSION,    /* in memory, at the address that the expression yields */
    TA__CFI_EXPRESSION_VALUE, /* it is what the expression yields */
};

struct ta__cfi_place {
    const uint8_t *expression;
    int64_t offset;
    uint32_t expression_length;
    uint8_t how; /* enum ta__cfi_how */
};

enum ta__cfi_register { TA__CFI_FP, TA__CFI_SP, TA__CFI_RA, TA__CFI_REGISTERS };

/* One row of the table that the CFI program describes, as far as a walk needs it. */
struct ta__cfi_row {
    int64_t cfa_offset;
    const uint8_t *cfa_expression; /* NULL: the CFA is cfa_register + cfa_offset */
    uint32_t cfa_expression_length;
    uint32_t cfa_register;   /* DWARF number */
    uint8_t has_cfa;         /* 0 until the program has said anything */
    uint8_t is_signal_frame; /* augmentation 'S' */
    struct ta__cfi_place place[TA__CFI_REGISTERS];
};

/* The spans of a table that lies within one readable range. */
struct ta__cfi_tables ta__cfi_tables_in(const void *header, const void *low, const void *high);

/* The address of .eh_frame as the header says, or NULL; unchecked beyond the reading of the header itself. */
const uint8_t *ta__cfi_frames(const struct ta__cfi_tables *tables);

/* The rule at `address`, without salt and loader bit; UNKNOWN where none can be had. */
uint64_t ta__cfi_rule(const struct ta__cfi_tables *tables, uintptr_t address, enum ta__cfi_address kind);

/* The same, quicker when the questions about a function come in ascending order. `generation` (not 0) changes when other
 * tables may lie where these do. Like the other it waits for nobody. */
uint64_t ta__cfi_rule_in_order(const struct ta__cfi_tables *tables, uintptr_t address, enum ta__cfi_address kind,
                               uint64_t generation);
/* In the child of a fork. */
void ta__cfi_after_fork(void);

/* The two halves of a rule: the row at a pc (0 = none), and the row as a rule of this architecture (cfi_<arch>.c). */
int ta__cfi_row_at(const struct ta__cfi_tables *tables, uintptr_t pc, struct ta__cfi_row *row);
uint64_t ta__cfi_pack(const struct ta__cfi_row *row);

#endif
