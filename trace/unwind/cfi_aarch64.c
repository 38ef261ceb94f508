/* cfi_aarch64.c: a row of the unwind table as a rule, on aarch64 (DWARF registers: x29 29, x30 30, sp 31).
 *
 * The return address must lie beside the saved frame pointer, as a frame record has it: (x29, x30) at slot, slot + 8.
 * A leaf that keeps its return address in x30 is never the caller of anything: UNKNOWN. */
#include "trace/unwind/cfi.h"

#include <stddef.h>

#include "trace/unwind/cfi_arch.h"
#include "trace/unwind/rule.h"

#if defined(__aarch64__)

uint64_t ta__cfi_pack(const struct ta__cfi_row *row)
{
    const struct ta__cfi_place *fp = &row->place[TA__CFI_FP];
    const struct ta__cfi_place *ra = &row->place[TA__CFI_RA];
    const struct ta__cfi_place *sp = &row->place[TA__CFI_SP];

    if (row->is_signal_frame) /* the kernel's only signal frame; libc and vdso describe it in different words */
        return TA__RULE_SIGNAL;
    if (ra->how == TA__CFI_UNDEFINED)
        return TA__RULE_END;
    if (fp->how != TA__CFI_AT_CFA || ra->how != TA__CFI_AT_CFA || ra->offset != fp->offset + 8)
        return TA__RULE_UNKNOWN;
    if (sp->how != TA__CFI_SAME && !(sp->how == TA__CFI_CFA_VALUE && sp->offset == 0))
        return TA__RULE_UNKNOWN;
    if (row->cfa_expression != NULL)
        return TA__RULE_UNKNOWN;
    if (row->cfa_register == TA__DWARF_SP)
        return ta__rule_encode(TA__RULE_SP, TA__RULE_SAVES_FP, row->cfa_offset, fp->offset);
    if (row->cfa_register == TA__DWARF_FP)
        return ta__rule_encode(TA__RULE_FP, TA__RULE_SAVES_FP, row->cfa_offset, fp->offset);
    return TA__RULE_UNKNOWN;
}

#endif
