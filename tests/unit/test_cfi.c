/* test_cfi.c: the reader of .eh_frame on tables built by hand: every opcode, every encoding, every kind of damage.
 *
 * A table is built against an inaccessible page, so that a read behind it ends the test. The code that it describes
 * does not exist: addresses are only numbers to the reader. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "trace/unwind/cfi.h"
#include "trace/unwind/rule.h"
#include "unity.h"

enum { ROOM = 8192, CODE_DISTANCE = 0x4000, CODE_BYTES = 0x2000 };

/* What a table is made of; zero means the usual. */
struct recipe {
    const char *augmentation;         /* NULL: "zR" */
    const uint8_t *augmentation_data; /* NULL: just the encoding */
    size_t augmentation_bytes;
    const uint8_t *cie_program; /* NULL: CFA = rsp + 8, return address at CFA - 8 */
    size_t cie_bytes;
    const uint8_t *fde_program;
    size_t fde_bytes;
    uint8_t version;        /* 0: 1 */
    uint8_t encoding;       /* of FDE addresses, 0: pcrel sdata4 (absptr is 0x80 here) */
    uint8_t table_encoding; /* 0: datarel sdata4; 0xff: no table */
    uint8_t address_size;   /* version 4; 0: 8 */
    uint8_t return_column;  /* 0: 16 */
    uint8_t code_factor;    /* 0: 1 */
};

enum { ABSPTR = 0x80, PCREL4 = 0x1b, DATAREL4 = 0x3b };

/* A writer into a block that may move: addresses are those of the block's final place. */
struct writer {
    uint8_t *at;
};

static uint8_t *region; /* ROOM bytes between two inaccessible pages */
static uint8_t *region_end;
static struct ta__cfi_tables tables;
static uintptr_t code;

static void put(struct writer *writer, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *writer->at++ = (uint8_t)(value >> (8 * i));
}

static void put_bytes(struct writer *writer, const void *bytes, size_t count)
{
    if (count > 0)
        memcpy(writer->at, bytes, count);
    writer->at += count;
}

static void put_uleb(struct writer *writer, uint64_t value)
{
    do {
        *writer->at++ = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
}

static void put_sleb(struct writer *writer, int64_t value)
{
    for (;;) {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        if ((value == 0 && (byte & 0x40) == 0) || (value == -1 && (byte & 0x40) != 0)) {
            *writer->at++ = byte;
            return;
        }
        *writer->at++ = byte | 0x80;
    }
}

static void put_encoded(struct writer *writer, uint8_t encoding, uintptr_t value, const uint8_t *data_base)
{
    switch (encoding & 0x70) {
    case 0x10:
        value -= (uintptr_t)writer->at;
        break;
    case 0x30:
        value -= (uintptr_t)data_base;
        break;
    default:
        break;
    }
    switch (encoding & 0x0f) {
    case 0x01:
        put_uleb(writer, value);
        break;
    case 0x09:
        put_sleb(writer, (int64_t)value);
        break;
    case 0x02:
    case 0x0a:
        put(writer, value, 2);
        break;
    case 0x03:
    case 0x0b:
        put(writer, value, 4);
        break;
    default:
        put(writer, value, 8);
        break;
    }
}

static void close_record(uint8_t *length_field, struct writer *writer)
{
    while ((writer->at - length_field) % 4 != 0)
        *writer->at++ = 0;
    struct writer length = {length_field};
    put(&length, (uint64_t)(writer->at - length_field - 4), 4);
}

/* Lays header, CIE, FDE and terminator out from `base`; returns the end. */
static uint8_t *lay_out(const struct recipe *recipe, uint8_t *base)
{
    static const uint8_t usual_program[] = {0x0c, 7, 8, 0x80 | 16, 1};
    uint8_t encoding = recipe->encoding == 0 ? PCREL4 : recipe->encoding == ABSPTR ? 0 : recipe->encoding;
    uint8_t table_encoding = recipe->table_encoding == 0        ? DATAREL4
                             : recipe->table_encoding == ABSPTR ? 0
                                                                : recipe->table_encoding;
    uint8_t version = recipe->version == 0 ? 1 : recipe->version;
    const char *augmentation = recipe->augmentation == NULL ? "zR" : recipe->augmentation;
    uintptr_t begin = (uintptr_t)base + CODE_DISTANCE;

    struct writer header = {base};
    put(&header, 1, 1);
    put(&header, PCREL4, 1);
    put(&header, table_encoding == 0xff ? 0xff : 0x03, 1);
    put(&header, table_encoding, 1);
    unsigned table_bytes = table_encoding == 0xff ? 0 : (table_encoding & 0x07) == 4 || table_encoding == 0 ? 16 : 8;
    if ((table_encoding & 0x07) == 2)
        table_bytes = 4;
    uint8_t *frames = base + 12 + table_bytes;
    put_encoded(&header, PCREL4, (uintptr_t)frames, base);

    struct writer writer = {frames};
    uint8_t *cie = writer.at;
    put(&writer, 0, 4);
    put(&writer, 0, 4);
    put(&writer, version, 1);
    put_bytes(&writer, augmentation, strlen(augmentation) + 1);
    if (strcmp(augmentation, "eh") == 0)
        put(&writer, 0x1234, 8);
    if (version == 4) {
        put(&writer, recipe->address_size == 0 ? 8 : recipe->address_size, 1);
        put(&writer, 0, 1);
    }
    put_uleb(&writer, recipe->code_factor == 0 ? 1 : recipe->code_factor);
    put_sleb(&writer, -8);
    put(&writer, recipe->return_column == 0 ? 16 : recipe->return_column, 1);
    if (recipe->augmentation_data != NULL) {
        put_uleb(&writer, recipe->augmentation_bytes);
        put_bytes(&writer, recipe->augmentation_data, recipe->augmentation_bytes);
    } else if (augmentation[0] == 'z') {
        put_uleb(&writer, 1);
        put(&writer, encoding, 1);
    }
    if (recipe->cie_program != NULL)
        put_bytes(&writer, recipe->cie_program, recipe->cie_bytes);
    else
        put_bytes(&writer, usual_program, sizeof usual_program);
    close_record(cie, &writer);

    uint8_t *fde = writer.at;
    put(&writer, 0, 4);
    put(&writer, (uint64_t)(writer.at - cie), 4);
    put_encoded(&writer, encoding, begin, base);
    put_encoded(&writer, encoding & 0x0f, CODE_BYTES, base);
    if (augmentation[0] == 'z')
        put_uleb(&writer, 0);
    put_bytes(&writer, recipe->fde_program, recipe->fde_bytes);
    close_record(fde, &writer);
    put(&writer, 0, 4);

    if (table_encoding != 0xff) {
        put(&header, 1, 4);
        put_encoded(&header, table_encoding, begin, base);
        put_encoded(&header, table_encoding, (uintptr_t)fde, base);
    }
    return writer.at;
}

/* Builds the table so that it ends where the inaccessible page begins. */
static void build(const struct recipe *recipe)
{
    static uint8_t scratch[ROOM];
    size_t bytes = (size_t)(lay_out(recipe, scratch) - scratch);
    uint8_t *base = region_end - bytes;
    memset(region, 0, ROOM);
    TEST_ASSERT_EQUAL_PTR(region_end, lay_out(recipe, base));
    tables = ta__cfi_tables_in(base, base, region_end);
    code = (uintptr_t)base + CODE_DISTANCE;
}

/* The rule at an offset into the code, as an interrupted address. */
static uint64_t rule_at(unsigned offset)
{
    return ta__cfi_rule(&tables, code + offset, TA__CFI_INTERRUPTED);
}

static void assert_rule(enum ta__rule_kind kind, unsigned flags, int64_t offset, int64_t slot, uint64_t rule)
{
    TEST_ASSERT_EQUAL_HEX64(ta__rule_encode(kind, flags, offset, slot), rule);
}

#define PROGRAM(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* A table with this FDE program and otherwise as usual. */
static void build_program(const uint8_t *program, size_t bytes)
{
    build(&(struct recipe){.fde_program = program, .fde_bytes = bytes});
}

void setUp(void)
{
    uint8_t *all = mmap(NULL, ROOM + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(all != MAP_FAILED);
    region = all + 4096;
    region_end = region + ROOM;
    TEST_ASSERT_EQUAL_INT(0, mprotect(region, ROOM, PROT_READ | PROT_WRITE));
}

void tearDown(void)
{
    munmap(region - 4096, ROOM + 2 * 4096);
}

/* ---- rows ---- */

static void test_cfi_without_program_uses_the_initial_row(void)
{
    build_program(NULL, 0);

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(CODE_BYTES - 1));
}

static void test_cfi_address_outside_the_function_is_unknown(void)
{
    build_program(NULL, 0);

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(CODE_BYTES));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__cfi_rule(&tables, code - 1, TA__CFI_INTERRUPTED));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__cfi_rule(&tables, 0, TA__CFI_INTERRUPTED));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__cfi_rule(&tables, 0, TA__CFI_RETURN_ADDRESS));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__cfi_rule(&tables, UINTPTR_MAX, TA__CFI_INTERRUPTED));
}

static void test_cfi_return_address_belongs_to_the_call_before_it(void)
{
    build_program(PROGRAM(0x40 | 4, 0x0e, 16));

    assert_rule(TA__RULE_SP, 0, 8, 0, ta__cfi_rule(&tables, code + 4, TA__CFI_RETURN_ADDRESS));
    assert_rule(TA__RULE_SP, 0, 16, 0, ta__cfi_rule(&tables, code + 4, TA__CFI_INTERRUPTED));
    assert_rule(TA__RULE_SP, 0, 16, 0, ta__cfi_rule(&tables, code + CODE_BYTES, TA__CFI_RETURN_ADDRESS));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__cfi_rule(&tables, code, TA__CFI_RETURN_ADDRESS));
}

static void test_cfi_advances_begin_rows_at_their_sums(void)
{
    build_program(PROGRAM(0x40 | 1, 0x0e, 16, 0x02, 0xff, 0x0e, 24, 0x03, 0x00, 0x02, 0x0e, 32, 0x04, 0x00, 0x04, 0, 0,
                          0x0e, 40, 0x1d, 0x00, 0x08, 0, 0, 0, 0, 0, 0, 0x0e, 48));

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
    assert_rule(TA__RULE_SP, 0, 16, 0, rule_at(1));
    assert_rule(TA__RULE_SP, 0, 16, 0, rule_at(0xff));
    assert_rule(TA__RULE_SP, 0, 24, 0, rule_at(0x100));
    assert_rule(TA__RULE_SP, 0, 24, 0, rule_at(0x2ff));
    assert_rule(TA__RULE_SP, 0, 32, 0, rule_at(0x300));
    assert_rule(TA__RULE_SP, 0, 32, 0, rule_at(0x6ff));
    assert_rule(TA__RULE_SP, 0, 40, 0, rule_at(0x700));
    assert_rule(TA__RULE_SP, 0, 40, 0, rule_at(0xeff));
    assert_rule(TA__RULE_SP, 0, 48, 0, rule_at(0xf00));
}

static void test_cfi_advance_is_multiplied_by_the_code_factor(void)
{
    static const uint8_t program[] = {0x40 | 2, 0x0e, 16};
    build(&(struct recipe){.code_factor = 4, .fde_program = program, .fde_bytes = sizeof program});

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(7));
    assert_rule(TA__RULE_SP, 0, 16, 0, rule_at(8));
}

static void test_cfi_advance_beyond_the_address_space_ends_the_row(void)
{
    build_program(PROGRAM(0x40 | 1, 0x0e, 16, 0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0e, 24));

    assert_rule(TA__RULE_SP, 0, 16, 0, rule_at(CODE_BYTES - 1));
}

static void test_cfi_set_loc_begins_a_row_at_an_address(void)
{
    uint8_t program[1 + 8 + 2] = {0x01};
    build(&(struct recipe){.encoding = ABSPTR, .fde_program = program, .fde_bytes = sizeof program});
    uint64_t target = code + 0x123;
    memcpy(program + 1, &target, 8);
    memcpy(program + 9, (uint8_t[]){0x0e, 64}, 2);
    build(&(struct recipe){.encoding = ABSPTR, .fde_program = program, .fde_bytes = sizeof program});

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0x122));
    assert_rule(TA__RULE_SP, 0, 64, 0, rule_at(0x123));
}

static void test_cfi_def_cfa_in_all_forms_sets_register_and_offset(void)
{
    build_program(PROGRAM(0x0c, 6, 16, 0x40 | 1, 0x0d, 7, 0x40 | 1, 0x12, 6, 0x7c, 0x40 | 1, 0x13, 0x7e, 0x40 | 1, 0x0e,
                          0x80, 0x20));

    assert_rule(TA__RULE_FP, 0, 16, 0, rule_at(0));
    assert_rule(TA__RULE_SP, 0, 16, 0, rule_at(1));
    assert_rule(TA__RULE_FP, 0, 32, 0, rule_at(2));
    assert_rule(TA__RULE_FP, 0, 16, 0, rule_at(3));
    assert_rule(TA__RULE_FP, 0, 4096, 0, rule_at(4));
}

static void test_cfi_cfa_from_another_register_is_unknown(void)
{
    build_program(PROGRAM(0x0c, 10, 0, 0x40 | 1, 0x0c, 6, 16));

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    assert_rule(TA__RULE_FP, 0, 16, 0, rule_at(1));
}

static void test_cfi_cfa_offset_off_the_word_is_unknown(void)
{
    build_program(PROGRAM(0x0e, 12));

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
}

static void test_cfi_row_without_cfa_is_unknown(void)
{
    static const uint8_t nothing[] = {0x80 | 16, 1};
    build(&(struct recipe){.cie_program = nothing, .cie_bytes = sizeof nothing});

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
}

static void test_cfi_saved_fp_in_all_forms_sets_the_slot(void)
{
    build_program(PROGRAM(0x80 | 6, 2, 0x40 | 1, 0x05, 6, 3, 0x40 | 1, 0x11, 6, 0x7c, 0x40 | 1, 0x2f, 6, 5));

    assert_rule(TA__RULE_SP, TA__RULE_SAVES_FP, 8, -16, rule_at(0));
    assert_rule(TA__RULE_SP, TA__RULE_SAVES_FP, 8, -24, rule_at(1));
    assert_rule(TA__RULE_SP, TA__RULE_SAVES_FP, 8, 32, rule_at(2));
    assert_rule(TA__RULE_SP, TA__RULE_SAVES_FP, 8, 40, rule_at(3));
}

static void test_cfi_fp_restored_or_untouched_is_not_saved(void)
{
    build_program(PROGRAM(0x86, 2, 0x40 | 1, 0xc0 | 6, 0x40 | 1, 0x86, 2, 0x40 | 1, 0x06, 6, 0x40 | 1, 0x86, 2,
                          0x40 | 1, 0x08, 6, 0x40 | 1, 0x86, 2, 0x40 | 1, 0x07, 6));

    for (unsigned offset = 0; offset < 8; offset++) {
        if (offset % 2 == 0)
            assert_rule(TA__RULE_SP, TA__RULE_SAVES_FP, 8, -16, rule_at(offset));
        else
            assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(offset));
    }
}

static void test_cfi_restore_brings_back_the_initial_place(void)
{
    static const uint8_t initial[] = {0x0c, 7, 8, 0x80 | 16, 1, 0x80 | 6, 4};
    static const uint8_t program[] = {0x07, 6, 0x40 | 1, 0xc0 | 6};
    build(&(struct recipe){
        .cie_program = initial, .cie_bytes = sizeof initial, .fde_program = program, .fde_bytes = sizeof program});

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
    assert_rule(TA__RULE_SP, TA__RULE_SAVES_FP, 8, -32, rule_at(1));
}

static void test_cfi_other_registers_do_not_matter(void)
{
    build_program(PROGRAM(0x83, 2, 0x05, 12, 3, 0x07, 13, 0x09, 14, 15, 0x10, 15, 1, 0x96, 0x16, 3, 1, 0x96, 0xc3, 0x06,
                          12, 0x14, 3, 1, 0x15, 3, 1, 0x08, 0x80, 0x80, 0x04));

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
}

static void test_cfi_fp_elsewhere_is_unknown(void)
{
    build_program(PROGRAM(0x09, 6, 3, 0x40 | 1, 0x14, 6, 2, 0x40 | 1, 0x15, 6, 2, 0x40 | 1, 0x16, 6, 2, 0x77, 8,
                          0x40 | 1, 0x10, 6, 2, 0x77, 8, 0x40 | 1, 0x10, 6, 3, 0x76, 8, 0x06, 0x40 | 1, 0x10, 6, 0));

    for (unsigned offset = 0; offset < 7; offset++)
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(offset));
}

static void test_cfi_return_address_undefined_is_the_end(void)
{
    build_program(PROGRAM(0x07, 16));

    assert_rule(TA__RULE_END, 0, 0, 0, rule_at(0));
}

static void test_cfi_return_address_elsewhere_is_unknown(void)
{
    build_program(PROGRAM(0x80 | 16, 2, 0x40 | 1, 0x09, 16, 2, 0x40 | 1, 0x08, 16, 0x40 | 1, 0x10, 16, 2, 0x77, 0,
                          0x40 | 1, 0x14, 16, 1, 0x40 | 1, 0xc0 | 16));

    for (unsigned offset = 0; offset < 5; offset++)
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(offset));
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(5));
}

static void test_cfi_caller_sp_must_be_the_cfa(void)
{
    build_program(PROGRAM(0x14, 7, 0, 0x40 | 1, 0x14, 7, 1, 0x40 | 1, 0x87, 2, 0x40 | 1, 0x08, 7));

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(1));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(2));
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(3));
}

static void test_cfi_remembered_states_come_back_in_order(void)
{
    build_program(PROGRAM(0x0a, 0x0e, 16, 0x86, 2, 0x0a, 0x40 | 1, 0x0c, 6, 32, 0x40 | 1, 0x0b, 0x40 | 1, 0x0b));

    assert_rule(TA__RULE_SP, TA__RULE_SAVES_FP, 16, -16, rule_at(0));
    assert_rule(TA__RULE_FP, TA__RULE_SAVES_FP, 32, -16, rule_at(1));
    assert_rule(TA__RULE_SP, TA__RULE_SAVES_FP, 16, -16, rule_at(2));
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(3));
}

static void test_cfi_states_remembered_too_deeply_are_unknown(void)
{
    build_program(PROGRAM(0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x40 | 1, 0x0a));

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(1));
}

static void test_cfi_state_never_remembered_is_unknown(void)
{
    build_program(PROGRAM(0x0b));

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
}

static void test_cfi_args_size_and_nop_change_nothing(void)
{
    build_program(PROGRAM(0x2e, 16, 0x00, 0x00));

    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
}

static void test_cfi_unknown_opcodes_are_unknown_from_there_on(void)
{
    for (unsigned opcode = 0x17; opcode < 0x40; opcode++) {
        if (opcode == 0x1d || opcode == 0x2e || opcode == 0x2f)
            continue;
        build_program(PROGRAM(0x40 | 1, (uint8_t)opcode, 0, 0, 0, 0));
        assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(1));
    }
}

static void test_cfi_offset_change_of_an_expression_is_unknown(void)
{
    build_program(PROGRAM(0x0f, 3, 0x76, 0x78, 0x06, 0x40 | 1, 0x0a, 0x0e, 16, 0x40 | 1));

    assert_rule(TA__RULE_FP_DEREF, 0, -8, 0, rule_at(0));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(1));

    build_program(PROGRAM(0x0f, 3, 0x76, 0x78, 0x06, 0x40 | 1, 0x0d, 7));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(1));
}

/* ---- expressions ---- */

static void test_cfi_realigned_frame_is_fp_deref(void)
{
    build_program(PROGRAM(0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0));

    assert_rule(TA__RULE_FP_DEREF, TA__RULE_SAVES_FP | TA__RULE_SLOT_FROM_FP, -8, 0, rule_at(0));
}

static void test_cfi_plt_expression_is_plt(void)
{
    build_program(PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22));

    assert_rule(TA__RULE_PLT, 0, 11 * 8, 0, rule_at(0));
}

static void test_cfi_almost_plt_expression_is_unknown(void)
{
    static const uint8_t plt[] = {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    for (size_t i = 2; i < sizeof plt; i++) {
        uint8_t program[sizeof plt];
        memcpy(program, plt, sizeof plt);
        program[i] ^= i == 8 ? 0x40 : 0x01;
        build_program(program, sizeof program);
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    }
}

static void test_cfi_other_cfa_expressions_are_unknown(void)
{
    build_program(PROGRAM(0x0f, 3, 0x77, 0x10, 0x06, 0x40 | 1, 0x0f, 2, 0x76, 0x10, 0x40 | 1, 0x0f, 4, 0x76, 0x78, 0x06,
                          0x06, 0x40 | 1, 0x0f, 0, 0x40 | 1, 0x0f, 1, 0x76));

    for (unsigned offset = 0; offset < 5; offset++)
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(offset));
}

/* glibc's words for the kernel's signal frame: everything from the ucontext at rsp. */
static const uint8_t signal_program[] = {0x0f, 4,    0x77, 0xa0, 0x01, 0x06, 0x10, 6,    3,   0x77,
                                         0xf8, 0x00, 0x10, 16,   3,    0x77, 0xa8, 0x01, 0x00};

static void test_cfi_signal_frame_of_the_kernel_is_signal(void)
{
    build(&(struct recipe){.augmentation = "zRS", .fde_program = signal_program, .fde_bytes = sizeof signal_program});

    assert_rule(TA__RULE_SIGNAL, 0, 0, 0, rule_at(0));
}

static void test_cfi_signal_frame_of_another_form_is_unknown(void)
{
    build(&(struct recipe){.augmentation = "zRS"});
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));

    uint8_t program[sizeof signal_program];
    memcpy(program, signal_program, sizeof program);
    program[3] = 0xa8; /* rsp from where rip is */
    build(&(struct recipe){.augmentation = "zRS", .fde_program = program, .fde_bytes = sizeof program});
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
}

/* ---- CIE ---- */

static void test_cfi_versions_1_3_and_4_are_read(void)
{
    for (unsigned version = 0; version < 8; version++) {
        build(&(struct recipe){.version = (uint8_t)version});
        if (version == 0 || version == 1 || version == 3 || version == 4)
            assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
        else
            TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    }
}

static void test_cfi_version_4_with_other_address_size_is_unknown(void)
{
    build(&(struct recipe){.version = 4, .address_size = 4});

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
}

static void test_cfi_other_return_column_is_unknown(void)
{
    build(&(struct recipe){.return_column = 17});

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
}

static void test_cfi_augmentations_that_compilers_write_are_read(void)
{
    static const uint8_t plr[] = {0x9b, 1, 2, 3, 4, 0x1b, PCREL4};
    build(&(struct recipe){.augmentation = "zPLR", .augmentation_data = plr, .augmentation_bytes = sizeof plr});
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));

    static const uint8_t p8[] = {0x00, 1, 2, 3, 4, 5, 6, 7, 8, PCREL4};
    build(&(struct recipe){.augmentation = "zPR", .augmentation_data = p8, .augmentation_bytes = sizeof p8});
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));

    static const uint8_t p_omitted[] = {0xff, PCREL4, 0, 0};
    build(&(struct recipe){
        .augmentation = "zPRB", .augmentation_data = p_omitted, .augmentation_bytes = sizeof p_omitted});
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));

    build(&(struct recipe){.augmentation = "", .encoding = ABSPTR});
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));

    build(&(struct recipe){.augmentation = "eh", .encoding = ABSPTR});
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
}

static void test_cfi_absurd_augmentations_are_unknown(void)
{
    static const char *const absurd[] = {"zRX", "zXR", "R", "zR ", "armcc+", "ehz", "zRR"};
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        build(&(struct recipe){.augmentation = absurd[i]});
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    }

    static const uint8_t cut[] = {0x9b, 1, 2};
    build(&(struct recipe){.augmentation = "zPLR", .augmentation_data = cut, .augmentation_bytes = sizeof cut});
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
}

/* ---- encodings ---- */

static void test_cfi_function_addresses_are_read_in_every_encoding(void)
{
    static const uint8_t encodings[] = {ABSPTR, 0x01, 0x04, 0x09, 0x0c, 0x10, 0x11,
                                        0x12,   0x13, 0x14, 0x19, 0x1a, 0x1b, 0x1c};
    static const uint8_t program[] = {0x40 | 4, 0x0e, 16};
    for (size_t i = 0; i < sizeof encodings; i++) {
        build(&(struct recipe){.encoding = encodings[i], .fde_program = program, .fde_bytes = sizeof program});
        assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(3));
        assert_rule(TA__RULE_SP, 0, 16, 0, rule_at(4));
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(CODE_BYTES));
    }
}

static void test_cfi_function_addresses_without_known_base_are_unknown(void)
{
    static const uint8_t encodings[] = {0x2b, 0x3b, 0x4b, 0x5b, 0x6b, 0x7b, 0x9b, 0x05, 0x0d, 0x0f, 0xff};
    for (size_t i = 0; i < sizeof encodings; i++) {
        build(&(struct recipe){.encoding = encodings[i]});
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    }
}

static void test_cfi_search_table_is_read_in_every_encoding(void)
{
    static const uint8_t encodings[] = {ABSPTR, 0x04, 0x0c, 0x32, 0x33, 0x34, 0x3a, 0x3b, 0x3c, 0x1b, 0x1c};
    for (size_t i = 0; i < sizeof encodings; i++) {
        build(&(struct recipe){.table_encoding = encodings[i]});
        assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
    }
}

static void test_cfi_without_search_table_scans_the_frames(void)
{
    build(&(struct recipe){.table_encoding = 0xff});
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(CODE_BYTES));

    build(&(struct recipe){0}); /* a count that does not fit counts as no table */
    memset((uint8_t *)tables.header + 8, 0xff, 4);
    assert_rule(TA__RULE_SP, 0, 8, 0, rule_at(0));
}

static void test_cfi_header_of_another_version_is_unknown(void)
{
    build(&(struct recipe){0});
    *(uint8_t *)tables.header = 2;

    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    TEST_ASSERT_NULL(ta__cfi_frames(&tables));
}

static void test_cfi_header_outside_its_span_is_unknown(void)
{
    build(&(struct recipe){0});
    struct ta__cfi_tables outside = tables;
    outside.header = tables.header_span.high;
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__cfi_rule(&outside, code, TA__CFI_INTERRUPTED));
    outside.header = tables.header_span.low - 1;
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__cfi_rule(&outside, code, TA__CFI_INTERRUPTED));
    outside.header = NULL;
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, ta__cfi_rule(&outside, code, TA__CFI_INTERRUPTED));
}

/* ---- damage ---- */

/* Asks everywhere; the answers do not matter, only that there are any. */
static void ask_everywhere(void)
{
    static const unsigned offsets[] = {0, 1, 4, 0x100, CODE_BYTES - 1, CODE_BYTES};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        rule_at(offsets[i]);
        ta__cfi_rule(&tables, code + offsets[i], TA__CFI_RETURN_ADDRESS);
    }
    ta__cfi_rule(&tables, 0, TA__CFI_INTERRUPTED);
    ta__cfi_rule(&tables, UINTPTR_MAX, TA__CFI_INTERRUPTED);
}

/* A table with many different things in it. */
static const uint8_t rich_program[] = {0x0a, 0x41, 0x0e, 16,   0x86, 2,    0x02, 3, 0x0c, 6, 16, 0x0f, 3,
                                       0x76, 0x78, 0x06, 0x10, 6,    2,    0x76, 0, 0x03, 0, 1,  0x0b, 0x2e,
                                       4,    0x41, 0x05, 6,    2,    0x14, 7,    0, 0x16, 3, 1,  0x30};
static const uint8_t rich_augmentation[] = {0x9b, 1, 2, 3, 4, 0x1b, PCREL4};

static void build_rich(uint8_t table_encoding)
{
    build(&(struct recipe){.augmentation = "zPLR",
                           .augmentation_data = rich_augmentation,
                           .augmentation_bytes = sizeof rich_augmentation,
                           .table_encoding = table_encoding,
                           .fde_program = rich_program,
                           .fde_bytes = sizeof rich_program});
}

static void test_cfi_table_cut_anywhere_is_never_read_beyond(void)
{
    build_rich(0);
    size_t bytes = (size_t)(tables.header_span.high - tables.header_span.low);
    uint8_t whole[ROOM];
    memcpy(whole, tables.header, bytes);
    uintptr_t distance = code - (uintptr_t)tables.header;

    for (size_t kept = 0; kept < bytes; kept++) {
        uint8_t *base = region_end - kept;
        memcpy(base, whole, kept);
        tables = ta__cfi_tables_in(base, base, region_end);
        code = (uintptr_t)base + distance;
        ask_everywhere();
    }
}

static void test_cfi_table_with_any_byte_changed_is_never_read_beyond(void)
{
    static const uint8_t table_encodings[] = {0, 0xff};
    for (size_t t = 0; t < sizeof table_encodings; t++) {
        build_rich(table_encodings[t]);
        size_t bytes = (size_t)(tables.header_span.high - tables.header_span.low);
        uint8_t *base = region_end - bytes;
        for (size_t i = 0; i < bytes; i++) {
            uint8_t kept = base[i];
            for (unsigned value = 0; value < 256; value++) {
                base[i] = (uint8_t)value;
                ask_everywhere();
            }
            base[i] = kept;
        }
    }
}

static void test_cfi_table_with_random_damage_is_never_read_beyond(void)
{
    uint64_t state = 12345;
    for (unsigned round = 0; round < 20000; round++) {
        build_rich(round % 2 == 0 ? 0 : 0xff);
        size_t bytes = (size_t)(tables.header_span.high - tables.header_span.low);
        uint8_t *base = region_end - bytes;
        for (unsigned change = 0; change < 4; change++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            base[(state >> 33) % bytes] = (uint8_t)(state >> 24);
        }
        ask_everywhere();
    }
}

static void test_cfi_wild_lengths_are_unknown(void)
{
    static const uint32_t lengths[] = {0, 1, 3, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        build(&(struct recipe){0}); /* header and table take 20 bytes, then comes the CIE's length */
        memcpy((uint8_t *)tables.header + 20, &lengths[i], 4);
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    }
}

static void test_cfi_wild_cie_pointers_are_unknown(void)
{
    static const uint32_t distances[] = {0, 4, 0x7fffffff, 0xffffffff, 0xfffffff8};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        build(&(struct recipe){0});
        uint32_t cie_length;
        memcpy(&cie_length, tables.header + 20, 4);
        memcpy((uint8_t *)tables.header + 20 + 4 + cie_length + 4, &distances[i], 4);
        TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    }
}

static void test_cfi_numbers_that_overflow_are_unknown(void)
{
    build_program(PROGRAM(0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    build_program(PROGRAM(0x13, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    build_program(PROGRAM(0x86, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
    build_program(PROGRAM(0x12, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40));
    TEST_ASSERT_EQUAL_HEX64(TA__RULE_UNKNOWN, rule_at(0));
}

static void test_cfi_padded_numbers_are_read(void)
{
    build_program(PROGRAM(0x0e, 0x90, 0x80, 0x80, 0x00, 0x40 | 1, 0x13, 0xfd, 0xff, 0x7f));

    assert_rule(TA__RULE_SP, 0, 16, 0, rule_at(0));
    assert_rule(TA__RULE_SP, 0, 24, 0, rule_at(1));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_cfi_without_program_uses_the_initial_row);
    RUN_TEST(test_cfi_address_outside_the_function_is_unknown);
    RUN_TEST(test_cfi_return_address_belongs_to_the_call_before_it);
    RUN_TEST(test_cfi_advances_begin_rows_at_their_sums);
    RUN_TEST(test_cfi_advance_is_multiplied_by_the_code_factor);
    RUN_TEST(test_cfi_advance_beyond_the_address_space_ends_the_row);
    RUN_TEST(test_cfi_set_loc_begins_a_row_at_an_address);
    RUN_TEST(test_cfi_def_cfa_in_all_forms_sets_register_and_offset);
    RUN_TEST(test_cfi_cfa_from_another_register_is_unknown);
    RUN_TEST(test_cfi_cfa_offset_off_the_word_is_unknown);
    RUN_TEST(test_cfi_row_without_cfa_is_unknown);
    RUN_TEST(test_cfi_saved_fp_in_all_forms_sets_the_slot);
    RUN_TEST(test_cfi_fp_restored_or_untouched_is_not_saved);
    RUN_TEST(test_cfi_restore_brings_back_the_initial_place);
    RUN_TEST(test_cfi_other_registers_do_not_matter);
    RUN_TEST(test_cfi_fp_elsewhere_is_unknown);
    RUN_TEST(test_cfi_return_address_undefined_is_the_end);
    RUN_TEST(test_cfi_return_address_elsewhere_is_unknown);
    RUN_TEST(test_cfi_caller_sp_must_be_the_cfa);
    RUN_TEST(test_cfi_remembered_states_come_back_in_order);
    RUN_TEST(test_cfi_states_remembered_too_deeply_are_unknown);
    RUN_TEST(test_cfi_state_never_remembered_is_unknown);
    RUN_TEST(test_cfi_args_size_and_nop_change_nothing);
    RUN_TEST(test_cfi_unknown_opcodes_are_unknown_from_there_on);
    RUN_TEST(test_cfi_offset_change_of_an_expression_is_unknown);
    RUN_TEST(test_cfi_realigned_frame_is_fp_deref);
    RUN_TEST(test_cfi_plt_expression_is_plt);
    RUN_TEST(test_cfi_almost_plt_expression_is_unknown);
    RUN_TEST(test_cfi_other_cfa_expressions_are_unknown);
    RUN_TEST(test_cfi_signal_frame_of_the_kernel_is_signal);
    RUN_TEST(test_cfi_signal_frame_of_another_form_is_unknown);
    RUN_TEST(test_cfi_versions_1_3_and_4_are_read);
    RUN_TEST(test_cfi_version_4_with_other_address_size_is_unknown);
    RUN_TEST(test_cfi_other_return_column_is_unknown);
    RUN_TEST(test_cfi_augmentations_that_compilers_write_are_read);
    RUN_TEST(test_cfi_absurd_augmentations_are_unknown);
    RUN_TEST(test_cfi_function_addresses_are_read_in_every_encoding);
    RUN_TEST(test_cfi_function_addresses_without_known_base_are_unknown);
    RUN_TEST(test_cfi_search_table_is_read_in_every_encoding);
    RUN_TEST(test_cfi_without_search_table_scans_the_frames);
    RUN_TEST(test_cfi_header_of_another_version_is_unknown);
    RUN_TEST(test_cfi_header_outside_its_span_is_unknown);
    RUN_TEST(test_cfi_table_cut_anywhere_is_never_read_beyond);
    RUN_TEST(test_cfi_table_with_any_byte_changed_is_never_read_beyond);
    RUN_TEST(test_cfi_table_with_random_damage_is_never_read_beyond);
    RUN_TEST(test_cfi_wild_lengths_are_unknown);
    RUN_TEST(test_cfi_wild_cie_pointers_are_unknown);
    RUN_TEST(test_cfi_numbers_that_overflow_are_unknown);
    RUN_TEST(test_cfi_padded_numbers_are_read);
    return UNITY_END();
}
