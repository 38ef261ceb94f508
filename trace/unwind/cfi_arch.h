/* cfi_arch.h: DWARF numbers that differ between the architectures; the rest of what differs is in cfi_<arch>.c. */
#ifndef TA_TRACE_UNWIND_CFI_ARCH_H
#define TA_TRACE_UNWIND_CFI_ARCH_H

#if defined(__x86_64__)
#define TA__DWARF_FP 6  /* rbp */
#define TA__DWARF_SP 7  /* rsp */
#define TA__DWARF_RA 16 /* the return address column */
#elif defined(__aarch64__)
#define TA__DWARF_FP 29
#define TA__DWARF_SP 31
#define TA__DWARF_RA 30
#else
#error "tracealloc knows the unwind tables of x86-64 and aarch64"
#endif

/* Opcodes of the expressions that are recognised. */
enum {
    TA__OP_DEREF = 0x06,
    TA__OP_AND = 0x1a,
    TA__OP_PLUS = 0x22,
    TA__OP_SHL = 0x24,
    TA__OP_GE = 0x2a,
    TA__OP_LIT0 = 0x30,
    TA__OP_BREG0 = 0x70,
};

#endif
