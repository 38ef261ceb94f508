/* cfi.c: see cfi.h. The reader of .eh_frame_hdr, CIEs and FDEs, and the interpreter of their CFA programs.
 *
 * The rows of a function are a program that must be run from its beginning. A large function is asked about at one call
 * after another, mostly in ascending order. So the state after the last question is kept, and the next one continues
 * from there.
 *
 * Only three registers of the caller are followed: frame pointer, stack pointer and return address. A damaged table may
 * lead to a wrong row, which nobody could tell; it never leads to a read outside the spans. */
#include "trace/unwind/cfi.h"

#include <stddef.h>
#include <string.h>

#include "base/atomics.h"
#include "base/attributes.h"
#include "base/bytes.h"
#include "trace/unwind/cfi_arch.h"
#include "trace/unwind/leb128.h"
#include "trace/unwind/rule.h"

/* Pointer encodings (DW_EH_PE): a form, what it is relative to, and whether it is the address of the pointer. */
enum {
    PE_ABSPTR = 0x00,
    PE_ULEB128 = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB128 = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_FORM_MASK = 0x0f,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
    PE_ALIGNED = 0x50,
    PE_BASE_MASK = 0x70,
    PE_INDIRECT = 0x80,
    PE_OMIT = 0xff,
};

/* CFA opcodes; the three "primary" ones carry an operand in their low six bits. */
enum {
    CFA_ADVANCE_LOC = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_MIPS_ADVANCE_LOC8 = 0x1d,
    CFA_AARCH64_NEGATE_RA_STATE = 0x2d, /* the same number is the register window save of SPARC */
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum {
    MAX_REMEMBERED_STATES = 8, /* compilers nest one, rarely two */
    MAX_SCANNED_FDES = 65536,  /* where there is no search table */
};

/* A common information entry. */
struct cie {
    uint64_t code_factor;
    int64_t data_factor;
    struct ta__cursor program;
    uint8_t address_encoding;
    uint8_t has_augmentation_data;
    uint8_t is_signal_frame;
};

/* A frame description entry. */
struct fde {
    struct cie cie;
    uintptr_t begin;
    uintptr_t end;
    struct ta__cursor program;
};

/* Where a CFA program runs. */
struct machine {
    struct ta__cfi_row row;
    const struct ta__cfi_row *initial; /* NULL while the CIE's own program runs */
    const struct cie *cie;
    uintptr_t location;
    uintptr_t target;
    unsigned remembered_count;
    struct ta__cfi_row remembered[MAX_REMEMBERED_STATES];
};

static struct ta__cursor cursor_in(const struct ta__cfi_span *span, const uint8_t *at)
{
    struct ta__cursor cursor = {at, span->high, at < span->low || at >= span->high};
    return cursor;
}

/* The tables of this process are in this machine's byte order: one load per number. */
static inline void get_native(struct ta__cursor *cursor, void *value, size_t bytes)
{
    if (TA_UNLIKELY(cursor->failed || (size_t)(cursor->end - cursor->at) < bytes)) {
        cursor->failed = 1;
        memset(value, 0, bytes);
        return;
    }
    memcpy(value, cursor->at, bytes);
    cursor->at += bytes;
}

static uint8_t get_u8(struct ta__cursor *cursor)
{
    uint8_t value;
    get_native(cursor, &value, sizeof value);
    return value;
}

static uint16_t get_u16(struct ta__cursor *cursor)
{
    uint16_t value;
    get_native(cursor, &value, sizeof value);
    return value;
}

static uint32_t get_u32(struct ta__cursor *cursor)
{
    uint32_t value;
    get_native(cursor, &value, sizeof value);
    return value;
}

static uint64_t get_u64(struct ta__cursor *cursor)
{
    uint64_t value;
    get_native(cursor, &value, sizeof value);
    return value;
}

/* ---- encoded pointers ---- */

static uint64_t get_form(struct ta__cursor *cursor, unsigned form)
{
    switch (form) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        return get_u64(cursor);
    case PE_ULEB128:
        return ta__get_uleb(cursor);
    case PE_UDATA2:
        return get_u16(cursor);
    case PE_UDATA4:
        return get_u32(cursor);
    case PE_SLEB128:
        return (uint64_t)ta__get_sleb(cursor);
    case PE_SDATA2:
        return (uint64_t)(int64_t)(int16_t)get_u16(cursor);
    case PE_SDATA4:
        return (uint64_t)(int64_t)(int32_t)get_u32(cursor);
    default:
        cursor->failed = 1;
        return 0;
    }
}

/* Pointers that unwinding needs are never indirect nor relative to text or function: those fail. */
static uintptr_t get_pointer(struct ta__cursor *cursor, uint8_t encoding, const uint8_t *data_base)
{
    const uint8_t *field = cursor->at;
    uint64_t value = get_form(cursor, encoding & PE_FORM_MASK);
    switch (encoding & (PE_BASE_MASK | PE_INDIRECT)) {
    case PE_ABSPTR:
        return value;
    case PE_PCREL:
        return (uintptr_t)field + value;
    case PE_DATAREL:
        if (data_base != NULL)
            return (uintptr_t)data_base + value;
        break;
    default:
        break;
    }
    cursor->failed = 1;
    return 0;
}

/* Steps over a pointer that nobody here needs (a personality routine), whatever it is relative to. */
static void skip_pointer(struct ta__cursor *cursor, uint8_t encoding)
{
    if (encoding == PE_OMIT)
        return;
    if ((encoding & PE_BASE_MASK) == PE_ALIGNED)
        ta__get_bytes(cursor, -(uintptr_t)cursor->at & 7);
    get_form(cursor, encoding & PE_FORM_MASK);
}

/* ---- CIE and FDE ---- */

/* The contents of the record at `at`, behind its length. Fails at the terminator and on 64-bit lengths. */
static struct ta__cursor open_record(const struct ta__cfi_span *span, const uint8_t *at)
{
    struct ta__cursor record = cursor_in(span, at);
    uint64_t length = get_u32(&record);
    if (length == 0 || length >= 0xfffffff0u || length > (uint64_t)(record.end - record.at))
        record.failed = 1;
    else
        record.end = record.at + length;
    return record;
}

static int read_augmentation(struct ta__cursor *record, const char *letters, struct cie *cie)
{
    uint64_t length = ta__get_uleb(record);
    struct ta__cursor data = *record;
    if (ta__get_bytes(record, length) == NULL)
        return 0;
    data.end = record->at;
    for (; *letters != '\0'; letters++) {
        switch (*letters) {
        case 'R':
            cie->address_encoding = get_u8(&data);
            break;
        case 'P':
            skip_pointer(&data, get_u8(&data));
            break;
        case 'L':
            get_u8(&data);
            break;
        case 'S':
            cie->is_signal_frame = 1;
            break;
        case 'B': /* aarch64: return addresses are signed with the B key; stripping does not depend on the key */
            break;
        default: /* might carry data before what we need, or change the meaning of the rules */
            return 0;
        }
    }
    return !data.failed;
}

static int read_cie(const struct ta__cfi_span *span, const uint8_t *at, struct cie *cie)
{
    struct ta__cursor record = open_record(span, at);
    if (get_u32(&record) != 0 || record.failed) /* a CIE says 0 where an FDE points at its CIE */
        return 0;
    uint64_t version = get_u8(&record);
    const char *letters = (const char *)record.at;
    while (get_u8(&record) != 0)
        ;
    if (record.failed)
        return 0;
    if (letters[0] == 'e' && letters[1] == 'h' && letters[2] == '\0') { /* gcc 2: one pointer more */
        get_u64(&record);
        letters += 2;
    }
    if (version == 4) {
        uint64_t address_size = get_u8(&record);
        uint64_t segment_size = get_u8(&record);
        if (address_size != sizeof(void *) || segment_size != 0)
            return 0;
    } else if (version != 1 && version != 3) {
        return 0;
    }
    cie->code_factor = ta__get_uleb(&record);
    cie->data_factor = ta__get_sleb(&record);
    uint64_t return_column = version == 1 ? get_u8(&record) : ta__get_uleb(&record);
    if (record.failed || return_column != TA__DWARF_RA)
        return 0;

    cie->address_encoding = PE_ABSPTR;
    cie->has_augmentation_data = 0;
    cie->is_signal_frame = 0;
    if (letters[0] == 'z') {
        cie->has_augmentation_data = 1;
        if (!read_augmentation(&record, letters + 1, cie))
            return 0;
    } else if (letters[0] != '\0') {
        return 0;
    }
    cie->program = record;
    return 1;
}

/* 1: read; 0: not an FDE that can be read. `*next` is what follows the record, NULL at the end of the section. */
static int read_fde(const struct ta__cfi_span *span, const uint8_t *at, struct fde *fde, const uint8_t **next)
{
    struct ta__cursor record = open_record(span, at);
    *next = record.failed ? NULL : record.end;
    const uint8_t *cie_field = record.at;
    uint64_t cie_distance = get_u32(&record);
    if (record.failed || cie_distance == 0 || cie_distance > (uint64_t)(cie_field - span->low))
        return 0;
    if (!read_cie(span, cie_field - cie_distance, &fde->cie))
        return 0;
    uint8_t encoding = fde->cie.address_encoding;
    fde->begin = get_pointer(&record, encoding, NULL);
    uint64_t length = get_form(&record, encoding & PE_FORM_MASK);
    if (fde->cie.has_augmentation_data)
        ta__get_bytes(&record, ta__get_uleb(&record));
    if (record.failed || length > UINTPTR_MAX - fde->begin)
        return 0;
    fde->end = fde->begin + length;
    fde->program = record;
    return 1;
}

/* ---- the way from an address to its FDE ---- */

/* .eh_frame_hdr: version, three encodings, pointer to .eh_frame, count, then (address, FDE) pairs in order. */
struct search_table {
    const uint8_t *frames;
    struct ta__cursor entries;
    uint64_t count; /* 0: no table that can be searched */
    uint8_t encoding;
    uint8_t width;
};

static uint8_t width_of(uint8_t encoding)
{
    switch (encoding & PE_FORM_MASK) {
    case PE_UDATA2:
    case PE_SDATA2:
        return 2;
    case PE_UDATA4:
    case PE_SDATA4:
        return 4;
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        return 8;
    default:
        return 0;
    }
}

static int read_header(const struct ta__cfi_tables *tables, struct search_table *table)
{
    struct ta__cursor cursor = cursor_in(&tables->header_span, tables->header);
    uint64_t version = get_u8(&cursor);
    uint8_t frames_encoding = get_u8(&cursor);
    uint8_t count_encoding = get_u8(&cursor);
    table->encoding = get_u8(&cursor);
    table->frames = (const uint8_t *)get_pointer(&cursor, frames_encoding, tables->header);
    table->count = 0;
    if (cursor.failed || version != 1)
        return 0;

    table->width = width_of(table->encoding);
    if (count_encoding == PE_OMIT || table->encoding == PE_OMIT || table->width == 0)
        return 1;
    table->count = get_pointer(&cursor, count_encoding, tables->header);
    uint64_t room = (uint64_t)(cursor.end - cursor.at) / (2u * table->width);
    if (cursor.failed || table->count > room)
        table->count = 0;
    table->entries = cursor;
    return 1;
}

/* One half of a pair: 0 the address, 1 the FDE. */
static uintptr_t entry_at(const struct ta__cfi_tables *tables, const struct search_table *table, uint64_t index,
                          unsigned half)
{
    struct ta__cursor cursor = table->entries;
    cursor.at += (index * 2 + half) * table->width;
    uintptr_t value = get_pointer(&cursor, table->encoding, tables->header);
    return cursor.failed ? 0 : value;
}

/* The last entry not above pc. */
static uint64_t search(const struct ta__cfi_tables *tables, const struct search_table *table, uintptr_t pc)
{
    uint64_t low = 0, high = table->count; /* it is in [low, high) */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (entry_at(tables, table, middle, 0) <= pc)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The same for the one encoding that linkers write: signed words, counted from the header. */
static uint64_t search_words(const struct ta__cfi_tables *tables, const struct search_table *table, uintptr_t pc)
{
    int64_t wanted = (int64_t)(pc - (uintptr_t)tables->header);
    uint64_t low = 0, high = table->count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        int32_t distance;
        memcpy(&distance, table->entries.at + middle * 8, sizeof distance);
        if (distance <= wanted)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int find_by_table(const struct ta__cfi_tables *tables, const struct search_table *table, uintptr_t pc,
                         struct fde *fde)
{
    uint64_t low = TA_LIKELY(table->encoding == (PE_DATAREL | PE_SDATA4)) ? search_words(tables, table, pc)
                                                                          : search(tables, table, pc);
    const uint8_t *next;
    return read_fde(&tables->frame_span, (const uint8_t *)entry_at(tables, table, low, 1), fde, &next) &&
           pc >= fde->begin && pc < fde->end;
}

static int find_by_scan(const struct ta__cfi_tables *tables, const uint8_t *frames, uintptr_t pc, struct fde *fde)
{
    const uint8_t *at = frames;
    for (unsigned i = 0; i < MAX_SCANNED_FDES && at != NULL; i++) {
        const uint8_t *next;
        if (read_fde(&tables->frame_span, at, fde, &next) && pc >= fde->begin && pc < fde->end)
            return 1;
        at = next;
    }
    return 0;
}

static int find_fde(const struct ta__cfi_tables *tables, uintptr_t pc, struct fde *fde)
{
    struct search_table table;
    if (!read_header(tables, &table))
        return 0;
    if (table.count > 0)
        return find_by_table(tables, &table, pc, fde);
    return find_by_scan(tables, table.frames, pc, fde);
}

/* ---- the CFA program ---- */

static struct ta__cfi_place *place_of(struct ta__cfi_row *row, uint64_t number)
{
    switch (number) {
    case TA__DWARF_FP:
        return &row->place[TA__CFI_FP];
    case TA__DWARF_SP:
        return &row->place[TA__CFI_SP];
    case TA__DWARF_RA:
        return &row->place[TA__CFI_RA];
    default:
        return NULL;
    }
}

static void set_place(struct machine *machine, uint64_t number, enum ta__cfi_how how, int64_t offset)
{
    struct ta__cfi_place *place = place_of(&machine->row, number);
    if (place != NULL)
        *place = (struct ta__cfi_place){.how = (uint8_t)how, .offset = offset};
}

static void set_expression(struct machine *machine, struct ta__cursor *program, enum ta__cfi_how how)
{
    struct ta__cfi_place *place = place_of(&machine->row, ta__get_uleb(program));
    uint64_t length = ta__get_uleb(program);
    const uint8_t *expression = ta__get_bytes(program, length);
    if (place != NULL && expression != NULL)
        *place = (struct ta__cfi_place){
            .how = (uint8_t)how, .expression = expression, .expression_length = (uint32_t)length};
}

static int restore_place(struct machine *machine, uint64_t number)
{
    if (machine->initial == NULL)
        return 0;
    struct ta__cfi_place *place = place_of(&machine->row, number);
    if (place != NULL)
        *place = machine->initial->place[place - machine->row.place];
    return 1;
}

static void set_cfa(struct machine *machine, uint64_t number, int64_t offset)
{
    machine->row.has_cfa = 1;
    machine->row.cfa_expression = NULL;
    machine->row.cfa_register = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    machine->row.cfa_offset = offset;
}

/* Products of two numbers from the table: an overflow is a damaged table. */
static int64_t scaled(struct ta__cursor *program, int64_t value, int64_t factor)
{
    int64_t product;
    if (__builtin_mul_overflow(value, factor, &product)) {
        program->failed = 1;
        return 0;
    }
    return product;
}

static int64_t get_scaled_uleb(struct machine *machine, struct ta__cursor *program)
{
    uint64_t value = ta__get_uleb(program);
    if (value > INT64_MAX)
        program->failed = 1;
    return scaled(program, (int64_t)value, machine->cie->data_factor);
}

static int64_t get_scaled_sleb(struct machine *machine, struct ta__cursor *program)
{
    return scaled(program, ta__get_sleb(program), machine->cie->data_factor);
}

/* The row ends where the next one begins: true when that is beyond the target. */
static int advance(struct machine *machine, uint64_t delta)
{
    uint64_t distance;
    if (__builtin_mul_overflow(delta, machine->cie->code_factor, &distance) ||
        __builtin_add_overflow(machine->location, distance, &machine->location)) {
        machine->location = UINTPTR_MAX; /* damaged: nothing lies behind this row */
        return 1;
    }
    return machine->location > machine->target;
}

enum step { STEP_ON, STEP_ROW_ENDS, STEP_DAMAGED };

static enum step step_extended(struct machine *machine, struct ta__cursor *program, uint8_t opcode)
{
    struct ta__cfi_row *row = &machine->row;
    uint64_t number;
    switch (opcode) {
    case CFA_NOP:
        return STEP_ON;
    case CFA_SET_LOC:
        machine->location = get_pointer(program, machine->cie->address_encoding, NULL);
        return machine->location > machine->target ? STEP_ROW_ENDS : STEP_ON;
    case CFA_ADVANCE_LOC1:
        return advance(machine, get_u8(program)) ? STEP_ROW_ENDS : STEP_ON;
    case CFA_ADVANCE_LOC2:
        return advance(machine, get_u16(program)) ? STEP_ROW_ENDS : STEP_ON;
    case CFA_ADVANCE_LOC4:
        return advance(machine, get_u32(program)) ? STEP_ROW_ENDS : STEP_ON;
    case CFA_MIPS_ADVANCE_LOC8:
        return advance(machine, get_u64(program)) ? STEP_ROW_ENDS : STEP_ON;
    case CFA_OFFSET_EXTENDED:
        number = ta__get_uleb(program);
        set_place(machine, number, TA__CFI_AT_CFA, get_scaled_uleb(machine, program));
        return STEP_ON;
    case CFA_OFFSET_EXTENDED_SF:
        number = ta__get_uleb(program);
        set_place(machine, number, TA__CFI_AT_CFA, get_scaled_sleb(machine, program));
        return STEP_ON;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        number = ta__get_uleb(program);
        set_place(machine, number, TA__CFI_AT_CFA, scaled(program, get_scaled_uleb(machine, program), -1));
        return STEP_ON;
    case CFA_VAL_OFFSET:
        number = ta__get_uleb(program);
        set_place(machine, number, TA__CFI_CFA_VALUE, get_scaled_uleb(machine, program));
        return STEP_ON;
    case CFA_VAL_OFFSET_SF:
        number = ta__get_uleb(program);
        set_place(machine, number, TA__CFI_CFA_VALUE, get_scaled_sleb(machine, program));
        return STEP_ON;
    case CFA_RESTORE_EXTENDED:
        return restore_place(machine, ta__get_uleb(program)) ? STEP_ON : STEP_DAMAGED;
    case CFA_UNDEFINED:
        set_place(machine, ta__get_uleb(program), TA__CFI_UNDEFINED, 0);
        return STEP_ON;
    case CFA_SAME_VALUE:
        set_place(machine, ta__get_uleb(program), TA__CFI_SAME, 0);
        return STEP_ON;
    case CFA_REGISTER:
        number = ta__get_uleb(program);
        set_place(machine, number, TA__CFI_IN_REGISTER, (int64_t)ta__get_uleb(program));
        return STEP_ON;
    case CFA_REMEMBER_STATE:
        if (machine->remembered_count == MAX_REMEMBERED_STATES)
            return STEP_DAMAGED;
        machine->remembered[machine->remembered_count++] = *row;
        return STEP_ON;
    case CFA_RESTORE_STATE:
        if (machine->remembered_count == 0)
            return STEP_DAMAGED;
        *row = machine->remembered[--machine->remembered_count];
        return STEP_ON;
    case CFA_DEF_CFA:
        number = ta__get_uleb(program);
        set_cfa(machine, number, (int64_t)ta__get_uleb(program));
        return STEP_ON;
    case CFA_DEF_CFA_SF:
        number = ta__get_uleb(program);
        set_cfa(machine, number, get_scaled_sleb(machine, program));
        return STEP_ON;
    case CFA_DEF_CFA_REGISTER:
        if (!row->has_cfa || row->cfa_expression != NULL)
            return STEP_DAMAGED;
        set_cfa(machine, ta__get_uleb(program), row->cfa_offset);
        return STEP_ON;
    case CFA_DEF_CFA_OFFSET:
        if (!row->has_cfa || row->cfa_expression != NULL)
            return STEP_DAMAGED;
        row->cfa_offset = (int64_t)ta__get_uleb(program);
        return STEP_ON;
    case CFA_DEF_CFA_OFFSET_SF:
        if (!row->has_cfa || row->cfa_expression != NULL)
            return STEP_DAMAGED;
        row->cfa_offset = get_scaled_sleb(machine, program);
        return STEP_ON;
    case CFA_DEF_CFA_EXPRESSION:
        number = ta__get_uleb(program); /* its length */
        row->cfa_expression = ta__get_bytes(program, number);
        row->cfa_expression_length = (uint32_t)number;
        row->has_cfa = 1;
        return row->cfa_expression != NULL ? STEP_ON : STEP_DAMAGED;
    case CFA_EXPRESSION:
        set_expression(machine, program, TA__CFI_AT_EXPRESSION);
        return STEP_ON;
    case CFA_VAL_EXPRESSION:
        set_expression(machine, program, TA__CFI_EXPRESSION_VALUE);
        return STEP_ON;
    case CFA_GNU_ARGS_SIZE: /* matters to landing pads, not to callers */
        ta__get_uleb(program);
        return STEP_ON;
#if defined(__aarch64__)
    case CFA_AARCH64_NEGATE_RA_STATE: /* the reader of the address strips its signature, signed or not */
        return STEP_ON;
#endif
    default:
        return STEP_DAMAGED;
    }
}

/* Runs a program until it ends or its next row lies beyond the target; 0 when it is damaged. `rest` is what is left. */
static int run(struct machine *machine, struct ta__cursor program, struct ta__cursor *rest)
{
    while (program.at < program.end) {
        uint8_t opcode = *program.at++;
        uint8_t operand = opcode & 0x3f;
        enum step step = STEP_ON;
        switch (opcode & 0xc0) {
        case CFA_ADVANCE_LOC:
            step = advance(machine, operand) ? STEP_ROW_ENDS : STEP_ON;
            break;
        case CFA_OFFSET:
            set_place(machine, operand, TA__CFI_AT_CFA, get_scaled_uleb(machine, &program));
            break;
        case CFA_RESTORE:
            step = restore_place(machine, operand) ? STEP_ON : STEP_DAMAGED;
            break;
        default:
            step = step_extended(machine, &program, opcode);
            break;
        }
        if (TA_UNLIKELY(program.failed || step == STEP_DAMAGED))
            return 0;
        if (step == STEP_ROW_ENDS)
            break;
    }
    *rest = program;
    return 1;
}

/* The program of one function, and how far it has been run. */
struct passage {
    struct fde fde;
    struct ta__cfi_row initial;
    struct machine machine;
    struct ta__cursor program; /* what is left of it */
};

/* Runs to the row at the beginning of the function. */
static int passage_begin(struct passage *passage)
{
    struct machine *machine = &passage->machine; /* never initialised as a whole: the remembered states are large */
    struct ta__cursor rest;
    memset(&machine->row, 0, sizeof machine->row);
    machine->row.is_signal_frame = passage->fde.cie.is_signal_frame;
    machine->initial = NULL;
    machine->cie = &passage->fde.cie;
    machine->remembered_count = 0;
    machine->location = 0;
    machine->target = UINTPTR_MAX; /* a CIE's program describes no rows of its own */
    if (!run(machine, passage->fde.cie.program, &rest))
        return 0;
    passage->initial = machine->row;
    machine->initial = &passage->initial;
    machine->location = machine->target = passage->fde.begin;
    passage->program = passage->fde.program;
    return 1;
}

/* Runs on to the row at pc, which must not lie before the last one. */
static int passage_reach(struct passage *passage, uintptr_t pc)
{
    struct machine *machine = &passage->machine;
    machine->target = pc;
    if (machine->location <= pc && !run(machine, passage->program, &passage->program))
        return 0;
    return machine->row.has_cfa;
}

/* ---- the face ---- */

struct ta__cfi_tables ta__cfi_tables_in(const void *header, const void *low, const void *high)
{
    struct ta__cfi_span span = {low, high};
    struct ta__cfi_tables tables = {header, span, span};
    return tables;
}

const uint8_t *ta__cfi_frames(const struct ta__cfi_tables *tables)
{
    struct search_table table;
    return read_header(tables, &table) ? table.frames : NULL;
}

int ta__cfi_row_at(const struct ta__cfi_tables *tables, uintptr_t pc, struct ta__cfi_row *row)
{
    struct passage passage;
    if (!find_fde(tables, pc, &passage.fde) || !passage_begin(&passage) || !passage_reach(&passage, pc))
        return 0;
    *row = passage.machine.row;
    return 1;
}

static uintptr_t pc_of(uintptr_t address, enum ta__cfi_address kind)
{
    return kind == TA__CFI_RETURN_ADDRESS ? address - 1 : address;
}

uint64_t ta__cfi_rule(const struct ta__cfi_tables *tables, uintptr_t address, enum ta__cfi_address kind)
{
    struct ta__cfi_row row;
    return ta__cfi_row_at(tables, pc_of(address, kind), &row) ? ta__cfi_pack(&row) : TA__RULE_UNKNOWN;
}

/* ---- questions in ascending order ---- */

/* The function that was asked about last, run as far as the last question went. A thread that finds it busy runs the
 * program from its beginning, in memory of its own. */
static struct {
    uint32_t is_busy;
    uint64_t generation; /* 0: there is none */
    struct passage passage;
} last;

static int is_on_the_way(const struct fde *fde, uintptr_t pc, uint64_t generation)
{
    return last.generation == generation && last.passage.fde.program.at == fde->program.at &&
           last.passage.fde.begin == fde->begin && last.passage.machine.target <= pc;
}

static uint64_t rule_on_the_way(const struct ta__cfi_tables *tables, uintptr_t pc, uint64_t generation)
{
    struct fde fde;
    if (!find_fde(tables, pc, &fde))
        return TA__RULE_UNKNOWN;
    if (!is_on_the_way(&fde, pc, generation)) {
        last.passage.fde = fde;
        last.generation = passage_begin(&last.passage) ? generation : 0;
    }
    if (last.generation == 0 || !passage_reach(&last.passage, pc)) {
        last.generation = 0;
        return TA__RULE_UNKNOWN;
    }
    return ta__cfi_pack(&last.passage.machine.row);
}

uint64_t ta__cfi_rule_in_order(const struct ta__cfi_tables *tables, uintptr_t address, enum ta__cfi_address kind,
                               uint64_t generation)
{
    if (ta__exchange_acq_rel(&last.is_busy, 1) != 0)
        return ta__cfi_rule(tables, address, kind);
    uint64_t rule = rule_on_the_way(tables, pc_of(address, kind), generation);
    ta__store_release(&last.is_busy, 0);
    return rule;
}

void ta__cfi_after_fork(void)
{
    last.generation = 0; /* the thread that used it may not exist here */
    ta__store_release(&last.is_busy, 0);
}
