/* cfi_x86_64.c: a row of the unwind table as a rule, on x86-64 (DWARF registers: rbp 6, rsp 7, return address 16).
 *
 * Only forms that compilers and glibc really write are expressible; everything else is UNKNOWN. */
#include "trace/unwind/cfi.h"

#include "base/attributes.h"
#include "base/bytes.h"
#include "trace/unwind/cfi_arch.h"
#include "trace/unwind/leb128.h"
#include "trace/unwind/rule.h"

#if defined(__x86_64__)

static struct ta__cursor expression(const uint8_t *bytes, uint32_t length)
{
    struct ta__cursor cursor = {bytes, bytes + length, 0};
    return cursor;
}

/* Takes the next operation if it is the given one. */
static int takes(struct ta__cursor *cursor, uint8_t operation)
{
    return ta__get_fixed(cursor, 1) == operation && !cursor->failed;
}

static int takes_register(struct ta__cursor *cursor, unsigned number, int64_t *offset)
{
    if (!takes(cursor, (uint8_t)(TA__OP_BREG0 + number)))
        return 0;
    *offset = ta__get_sleb(cursor);
    return !cursor->failed;
}

static int is_done(const struct ta__cursor *cursor)
{
    return !cursor->failed && cursor->at == cursor->end;
}

/* The whole expression is "register + offset". */
static int is_register(const uint8_t *bytes, uint32_t length, unsigned number, int64_t *offset)
{
    struct ta__cursor cursor = expression(bytes, length);
    return takes_register(&cursor, number, offset) && is_done(&cursor);
}

/* The whole expression is "the word at register + offset". */
static int is_word_at(const uint8_t *bytes, uint32_t length, unsigned number, int64_t *offset)
{
    struct ta__cursor cursor = expression(bytes, length);
    return takes_register(&cursor, number, offset) && takes(&cursor, TA__OP_DEREF) && is_done(&cursor);
}

/* Linkers describe a PLT with one expression for all of its 16-byte stubs:
 * rsp + 8 + (((rip & 15) >= threshold) << 3). */
static int is_plt(const uint8_t *bytes, uint32_t length, int64_t *threshold)
{
    struct ta__cursor cursor = expression(bytes, length);
    int64_t offset;
    if (!takes_register(&cursor, TA__DWARF_SP, &offset) || offset != 8 ||
        !takes_register(&cursor, TA__DWARF_RA, &offset) || offset != 0 || !takes(&cursor, TA__OP_LIT0 + 15) ||
        !takes(&cursor, TA__OP_AND))
        return 0;
    *threshold = (int64_t)ta__get_fixed(&cursor, 1) - TA__OP_LIT0;
    return *threshold >= 0 && *threshold <= 15 && takes(&cursor, TA__OP_GE) && takes(&cursor, TA__OP_LIT0 + 3) &&
           takes(&cursor, TA__OP_SHL) && takes(&cursor, TA__OP_PLUS) && is_done(&cursor);
}

/* The kernel's frame, and glibc's description of it: every register from the ucontext at rsp. */
static int is_signal_frame(const struct ta__cfi_row *row)
{
    const struct ta__cfi_place *fp = &row->place[TA__CFI_FP];
    const struct ta__cfi_place *ra = &row->place[TA__CFI_RA];
    int64_t sp_offset, fp_offset, ra_offset;
    return row->cfa_expression != NULL && fp->how == TA__CFI_AT_EXPRESSION && ra->how == TA__CFI_AT_EXPRESSION &&
           is_word_at(row->cfa_expression, row->cfa_expression_length, TA__DWARF_SP, &sp_offset) &&
           is_register(fp->expression, fp->expression_length, TA__DWARF_SP, &fp_offset) &&
           is_register(ra->expression, ra->expression_length, TA__DWARF_SP, &ra_offset) && sp_offset == TA__SIGNAL_SP &&
           fp_offset == TA__SIGNAL_FP && ra_offset == TA__SIGNAL_IP;
}

/* The caller's sp is the CFA, as the ABI has it, unless the row says something else. */
static int has_ordinary_sp(const struct ta__cfi_place *sp)
{
    return sp->how == TA__CFI_SAME || sp->how == TA__CFI_UNDEFINED || (sp->how == TA__CFI_CFA_VALUE && sp->offset == 0);
}

uint64_t ta__cfi_pack(const struct ta__cfi_row *row)
{
    const struct ta__cfi_place *fp = &row->place[TA__CFI_FP];
    const struct ta__cfi_place *ra = &row->place[TA__CFI_RA];

    if (row->is_signal_frame) /* also one of another form: its caller's address would need an exact look-up */
        return is_signal_frame(row) ? TA__RULE_SIGNAL : TA__RULE_UNKNOWN;
    if (ra->how == TA__CFI_UNDEFINED)
        return TA__RULE_END;
    if (ra->how != TA__CFI_AT_CFA || ra->offset != -8 || !has_ordinary_sp(&row->place[TA__CFI_SP]))
        return TA__RULE_UNKNOWN;

    /* Where the table calls the frame pointer undefined, or names no known place for it, the walk keeps the present
     * one: a caller that relies on its frame pointer would have saved it itself. A place that a rule cannot express is
     * different: the caller may rely on what lies there. */
    unsigned flags = 0;
    int64_t slot = 0;
    switch (fp->how) {
    case TA__CFI_SAME:
    case TA__CFI_UNDEFINED:
        break;
    case TA__CFI_AT_CFA:
        flags = TA__RULE_SAVES_FP;
        slot = fp->offset;
        break;
    case TA__CFI_AT_EXPRESSION:
        if (!is_register(fp->expression, fp->expression_length, TA__DWARF_FP, &slot))
            return TA__RULE_UNKNOWN;
        flags = TA__RULE_SAVES_FP | TA__RULE_SLOT_FROM_FP;
        break;
    default:
        return TA__RULE_UNKNOWN;
    }

    int64_t offset;
    if (row->cfa_expression == NULL) {
        if (row->cfa_register == TA__DWARF_SP)
            return ta__rule_encode(TA__RULE_SP, flags, row->cfa_offset, slot);
        if (row->cfa_register == TA__DWARF_FP)
            return ta__rule_encode(TA__RULE_FP, flags, row->cfa_offset, slot);
        return TA__RULE_UNKNOWN;
    }
    if (is_word_at(row->cfa_expression, row->cfa_expression_length, TA__DWARF_FP, &offset))
        return ta__rule_encode(TA__RULE_FP_DEREF, flags, offset, slot);
    if (is_plt(row->cfa_expression, row->cfa_expression_length, &offset))
        return ta__rule_encode(TA__RULE_PLT, flags, offset * 8, slot);
    return TA__RULE_UNKNOWN;
}

#endif
