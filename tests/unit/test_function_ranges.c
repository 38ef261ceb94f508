/* test_function_ranges.c: where functions begin and end, read from files made here: every encoding of addresses, every
 * augmentation, entries that are cut; and which function is main, from every _start that C libraries have had. */
#include "analysis/symbols/symbols_functions.h"

#include <dwarf.h>
#include <elf.h>
#include <string.h>

#include <unity.h>

#define CODE_AT  UINT64_C(0x1000)
#define FRAME_AT UINT64_C(0x4000)

static uint8_t frame[4096], code[64];
static size_t frame_bytes, code_bytes, fde_length; /* fde_length: where the last entry says how long it is */
static uint64_t entry_at;
static unsigned code_flags, machine;
static struct ta__function_ranges ranges;

void setUp(void)
{
    frame_bytes = code_bytes = 0;
    entry_at = CODE_AT;
    code_flags = SHF_ALLOC | SHF_EXECINSTR;
    machine = EM_X86_64;
    elf_version(EV_CURRENT);
}

void tearDown(void)
{
    ta__function_ranges_free(&ranges);
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static void read_file(void)
{
    static struct {
        Elf64_Ehdr header;
        Elf64_Shdr sections[4];
        char names[32];
        uint8_t code[sizeof code], frame[sizeof frame];
    } file;
    memset(&file, 0, sizeof file);
    memcpy(file.names, "\0.text\0.eh_frame\0.shstrtab", 27);
    memcpy(file.code, code, code_bytes);
    memcpy(file.frame, frame, frame_bytes);
    file.header = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                               .e_type = ET_EXEC,
                               .e_machine = (Elf64_Half)machine,
                               .e_version = EV_CURRENT,
                               .e_entry = entry_at,
                               .e_shoff = sizeof file.header,
                               .e_ehsize = sizeof file.header,
                               .e_shentsize = sizeof *file.sections,
                               .e_shnum = 4,
                               .e_shstrndx = 3};
    uint64_t names = sizeof file.header + sizeof file.sections;
    file.sections[1] = (Elf64_Shdr){.sh_name = 1,
                                    .sh_type = SHT_PROGBITS,
                                    .sh_flags = code_flags,
                                    .sh_addr = CODE_AT,
                                    .sh_offset = names + sizeof file.names,
                                    .sh_size = code_bytes};
    file.sections[2] = (Elf64_Shdr){.sh_name = 7,
                                    .sh_type = SHT_PROGBITS,
                                    .sh_flags = SHF_ALLOC,
                                    .sh_addr = FRAME_AT,
                                    .sh_offset = names + sizeof file.names + sizeof file.code,
                                    .sh_size = frame_bytes};
    file.sections[3] =
        (Elf64_Shdr){.sh_name = 17, .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = sizeof file.names};
    Elf *elf = elf_memory((char *)&file, sizeof file);
    TEST_ASSERT_NOT_NULL(elf);
    ta__function_ranges_free(&ranges);
    TEST_ASSERT_EQUAL_INT(0, ta__function_ranges_read(&ranges, elf));
    elf_end(elf);
}

static void put(const void *bytes, size_t length)
{
    memcpy(frame + frame_bytes, bytes, length);
    frame_bytes += length;
}

static void put_number(uint64_t number, size_t width)
{
    put(&number, width);
}

static void end_entry(size_t length_at, int is_padded)
{
    while (is_padded && (frame_bytes - length_at) % 4 != 0)
        put_number(DW_CFA_nop, 1);
    uint32_t length = (uint32_t)(frame_bytes - length_at - 4);
    memcpy(frame + length_at, &length, sizeof length);
}

/* The place of a common entry with these letters, and what they say. */
static size_t put_common(const char *letters, const void *said, size_t said_bytes)
{
    size_t at = frame_bytes;
    put_number(0, 4);
    put_number(0, 4);
    put_number(1, 1); /* version */
    put(letters, strlen(letters) + 1);
    put("\x01\x78\x10", 3); /* factors, return address */
    if (*letters == 'z') {
        put_number(said_bytes, 1);
        put(said, said_bytes);
    }
    end_entry(at, 1);
    return at;
}

/* `start` as it is written; the width is the encoding's. */
static void put_function(size_t common, uint64_t start, uint64_t length, size_t width, int has_length)
{
    fde_length = frame_bytes;
    put_number(0, 4);
    put_number(frame_bytes - common, 4);
    put_number(start, width);
    put_number(length, width);
    if (has_length)
        put_number(0, 1);
    end_entry(fde_length, has_length);
}

static void expect_one(uint64_t start, uint64_t end, const char *what)
{
    TEST_ASSERT_EQUAL_MESSAGE(1, ranges.count, what);
    TEST_ASSERT_EQUAL_HEX64_MESSAGE(start, ranges.items[0].start, what);
    TEST_ASSERT_EQUAL_HEX64_MESSAGE(end, ranges.items[0].end, what);
}

/* ---- encodings --------------------------------------------------------------------------------------------------- */

static void test_functions_are_read_in_every_encoding_that_compilers_write(void)
{
    static const struct {
        uint8_t encoding;
        size_t width;
    } known[] = {{DW_EH_PE_absptr, 8}, {DW_EH_PE_udata2, 2}, {DW_EH_PE_udata4, 4}, {DW_EH_PE_udata8, 8},
                 {DW_EH_PE_sdata2, 2}, {DW_EH_PE_sdata4, 4}, {DW_EH_PE_sdata8, 8}, {DW_EH_PE_signed, 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int is_relative = 0; is_relative < 2; is_relative++)
            for (int is_before = 0; is_before < 2; is_before++) {
                uint8_t encoding = (uint8_t)(known[i].encoding | (is_relative ? DW_EH_PE_pcrel : 0));
                size_t width = known[i].width;
                if (is_relative && is_before && !(encoding & DW_EH_PE_signed) && width < 8)
                    continue; /* cannot be written */
                setUp();
                size_t common = put_common("zR", &encoding, 1);
                uint64_t start = is_before ? 0x1234 : 0x5678, place = FRAME_AT + frame_bytes + 8;
                put_function(common, is_relative ? start - place : start, 0x90, width, 1);
                read_file();
                expect_one(start, start + 0x90, "in this encoding");
            }
}

static void test_starts_are_signed_where_the_encoding_is_and_lengths_never(void)
{
    static const struct {
        uint8_t encoding;
        size_t width;
        uint64_t start, length, is_start;
    } cases[] = {
        {DW_EH_PE_sdata2, 2, 0xFFF0, 8, UINT64_MAX - 15}, {DW_EH_PE_sdata4, 4, 0xFFFFFFF0, 8, UINT64_MAX - 15},
        {DW_EH_PE_udata2, 2, 0xFFF0, 8, 0xFFF0},          {DW_EH_PE_udata4, 4, 0xFFFFFFF0, 8, 0xFFFFFFF0},
        {DW_EH_PE_sdata2, 2, 0x7FFF, 0x8000, 0x7FFF},     {DW_EH_PE_sdata4, 4, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFF}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setUp();
        put_function(put_common("zR", &cases[i].encoding, 1), cases[i].start, cases[i].length, cases[i].width, 1);
        read_file();
        expect_one(cases[i].is_start, cases[i].is_start + cases[i].length, "signed");
    }
}

static void test_functions_in_other_encodings_are_left_out(void)
{
    static const uint8_t unknown[] = {DW_EH_PE_uleb128,
                                      DW_EH_PE_sleb128,
                                      DW_EH_PE_textrel | DW_EH_PE_udata4,
                                      DW_EH_PE_datarel | DW_EH_PE_sdata4,
                                      DW_EH_PE_funcrel | DW_EH_PE_sdata4,
                                      DW_EH_PE_aligned,
                                      DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4,
                                      DW_EH_PE_indirect,
                                      DW_EH_PE_omit};
    for (size_t i = 0; i < sizeof unknown; i++) {
        setUp();
        put_function(put_common("zR", &unknown[i], 1), 0x1000, 0x10, 8, 1);
        uint8_t usual = DW_EH_PE_udata4;
        put_function(put_common("zR", &usual, 1), 0x2000, 0x10, 4, 1);
        read_file();
        expect_one(0x2000, 0x2010, "only the other one");
    }
}

static void test_functions_of_no_bytes_or_beyond_the_address_space_are_left_out(void)
{
    static const uint64_t kept[] = {1, 4};
    size_t common = put_common("", NULL, 0);
    put_function(common, 0x1000, 0, 8, 0);
    put_function(common, UINT64_MAX - 3, kept[0], 8, 0);
    put_function(common, UINT64_MAX - 3, 3, 8, 0);
    put_function(common, UINT64_MAX - 3, 4, 8, 0);
    put_function(common, UINT64_MAX - 3, 100, 8, 0);
    read_file();
    TEST_ASSERT_EQUAL_size_t(2, ranges.count);
    TEST_ASSERT_EQUAL_HEX64(UINT64_MAX - 2, ranges.items[0].end);
    TEST_ASSERT_EQUAL_HEX64(UINT64_MAX, ranges.items[1].end);
}

/* ---- augmentations ----------------------------------------------------------------------------------------------- */

static void test_the_encoding_is_found_behind_whatever_stands_before_it(void)
{
    static const struct {
        const char *letters, *said;
        size_t said_bytes, width; /* 0: it is not known */
    } cases[] = {
        {"", "", 0, 8},
        {"z", "", 0, 8},
        {"zR", "\x03", 1, 4},
        {"zRS", "\x03", 1, 4},
        {"zSR", "\x03", 1, 4},
        {"zBR", "\x03", 1, 4},
        {"zLR", "\x1b\x03", 2, 4},
        {"zPLR", "\x9b----\x1b\x03", 7, 4},
        {"zPR", "\x00--------\x03", 10, 4},
        {"zPR", "\x02--\x03", 4, 4},
        {"zPLR", "\x0c--------\x1b\x02", 11, 2},
        {"zL", "\x1b", 1, 8},
        {"zP", "\x9b----", 5, 8},
        {"zR", "", 0, 0},           /* says nothing of what it promises */
        {"zPLR", "\x9b----", 5, 0}, /* ends before it */
        {"zPLR", "\x9b--", 3, 0},
        {"zPR", "\x01-\x03", 3, 0}, /* nobody knows how long that is */
        {"zPR", "\x50--------\x03", 10, 0},
        {"zXR", "\x00\x03", 2, 0},
        {"eh", "", 0, 0},
        {"R", "", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setUp();
        size_t width = cases[i].width;
        put_function(put_common(cases[i].letters, cases[i].said, cases[i].said_bytes), 0x1000, 0x20,
                     width != 0 ? width : 8, *cases[i].letters == 'z');
        read_file();
        if (width != 0)
            expect_one(0x1000, 0x1020, cases[i].letters);
        else
            TEST_ASSERT_EQUAL_MESSAGE(0, ranges.count, cases[i].letters);
    }
}

static void test_each_function_is_read_as_its_own_common_entry_says(void)
{
    uint8_t narrow = DW_EH_PE_udata2, wide = DW_EH_PE_udata8, unknown = DW_EH_PE_uleb128;
    size_t first = put_common("zR", &narrow, 1), second = put_common("zR", &wide, 1),
           third = put_common("zR", &unknown, 1);
    put_function(first, 0x3000, 1, 2, 1);
    put_function(second, 0x2000, 2, 8, 1);
    put_function(third, 0x1800, 2, 8, 1);
    put_function(first, 0x1000, 3, 2, 1);
    put_function(second, 0x1000, 2, 8, 1);
    read_file();
    static const struct ta__function_range expected[] = {
        {0x1000, 0x1002}, {0x1000, 0x1003}, {0x2000, 0x2002}, {0x3000, 0x3001}};
    TEST_ASSERT_EQUAL_size_t(4, ranges.count);
    for (size_t i = 0; i < 4; i++) { /* ascending */
        TEST_ASSERT_EQUAL_HEX64(expected[i].start, ranges.items[i].start);
        TEST_ASSERT_EQUAL_HEX64(expected[i].end, ranges.items[i].end);
    }
}

/* Without letters two numbers are enough, and a byte less is not. */
static void test_an_entry_that_ends_within_its_numbers_is_left_out(void)
{
    for (size_t missing = 0; missing <= 16; missing++) {
        setUp();
        put_function(put_common("", NULL, 0), 0x1000, 0x20, 8, 0);
        uint32_t length = (uint32_t)(20 - missing);
        memcpy(frame + fde_length, &length, sizeof length);
        frame_bytes -= missing;
        read_file();
        if (missing == 0)
            expect_one(0x1000, 0x1020, "whole");
        else
            TEST_ASSERT_EQUAL_size_t(0, ranges.count);
    }
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

struct piece {
    const char *bytes;
    size_t length;
    const char *fixed; /* 'x' where another byte makes it another code */
};

static const struct piece heads[] = {{"", 0, ""}, {"\xf3\x0f\x1e\xfa", 4, "xxxx"}};
static const struct piece middle = {"\x31\xed\x49\x89\xd1\x5e\x48\x89\xe2\x48\x83\xe4\xf0\x50\x54", 15,
                                    "xxxxxxxxxxxxxxx"};
static const struct piece hooks[] = {
    {"\x45\x31\xc0\x31\xc9", 5, "xxxxx"},
    {"\x49\xc7\xc0\x10\x20\x30\x00\x48\xc7\xc1\x40\x50\x60\x00", 14, "x......x......"},
    {"\x4c\x8d\x05\x10\x20\x30\x00\x48\x8d\x0d\x40\x50\x60\x00", 14, "x......x......"}};
static const struct piece loads[] = {{"\x48\x8d\x3d\xf0\xff\xff\xff", 7, "xxx...."},
                                     {"\x48\xc7\xc7\xf0\x00\x40\x80", 7, "xxx...."}};
static const struct piece calls[] = {{"\xff\x15", 2, "xx"}, {"\x67\xe8", 2, "xx"}, {"\xe8\x77", 2, "x."}};

static void add_piece(const struct piece *piece, char *fixed)
{
    memcpy(code + code_bytes, piece->bytes, piece->length);
    memcpy(fixed + code_bytes, piece->fixed, piece->length);
    code_bytes += piece->length;
}

/* Every code as it is, cut anywhere, and with each byte that matters changed. */
static void check_start(const struct piece *head, const struct piece *hook, int is_relative, const struct piece *call)
{
    char fixed[sizeof code];
    setUp();
    add_piece(head, fixed);
    add_piece(&middle, fixed);
    add_piece(hook, fixed);
    add_piece(&loads[!is_relative], fixed);
    uint64_t expected = is_relative ? CODE_AT + code_bytes - 16 : UINT64_C(0x804000F0);
    add_piece(call, fixed);
    size_t whole = code_bytes;
    for (code_bytes = 1; code_bytes <= whole; code_bytes++) {
        read_file();
        TEST_ASSERT_EQUAL_HEX64(code_bytes == whole ? expected : 0, ranges.main);
    }
    code_bytes = whole;
    for (size_t i = 0; i < whole; i++) {
        code[i] ^= 1;
        read_file();
        if (fixed[i] == 'x')
            TEST_ASSERT_EQUAL_HEX64(0, ranges.main);
        else
            TEST_ASSERT_NOT_EQUAL(0, ranges.main);
        code[i] ^= 1;
    }
}

static void test_main_is_found_in_every_start_and_in_nothing_else(void)
{
    for (size_t head = 0; head < 2; head++)
        for (size_t hook = 0; hook < 3; hook++)
            for (int is_relative = 0; is_relative < 2; is_relative++)
                for (size_t call = 0; call < 3; call++)
                    check_start(&heads[head], &hooks[hook], is_relative, &calls[call]);
}

static void test_main_is_looked_for_where_the_program_begins(void)
{
    char fixed[sizeof code];
    const size_t before = 3;
    code_bytes = before;
    add_piece(&middle, fixed);
    add_piece(&hooks[0], fixed);
    add_piece(&loads[1], fixed);
    add_piece(&calls[0], fixed);
    entry_at = CODE_AT + before;
    read_file();
    TEST_ASSERT_EQUAL_HEX64(0x804000F0, ranges.main);
    static const uint64_t elsewhere[] = {0, CODE_AT, CODE_AT - 1, FRAME_AT, UINT64_MAX};
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        entry_at = elsewhere[i];
        read_file();
        TEST_ASSERT_EQUAL_HEX64(0, ranges.main);
    }
    entry_at = CODE_AT + before;
    code_flags = SHF_ALLOC; /* no code */
    read_file();
    TEST_ASSERT_EQUAL_HEX64(0, ranges.main);
    code_flags |= SHF_EXECINSTR;
    machine = EM_AARCH64;
    read_file();
    TEST_ASSERT_EQUAL_HEX64(0, ranges.main);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_functions_are_read_in_every_encoding_that_compilers_write);
    RUN_TEST(test_starts_are_signed_where_the_encoding_is_and_lengths_never);
    RUN_TEST(test_functions_in_other_encodings_are_left_out);
    RUN_TEST(test_functions_of_no_bytes_or_beyond_the_address_space_are_left_out);
    RUN_TEST(test_the_encoding_is_found_behind_whatever_stands_before_it);
    RUN_TEST(test_each_function_is_read_as_its_own_common_entry_says);
    RUN_TEST(test_an_entry_that_ends_within_its_numbers_is_left_out);
    RUN_TEST(test_main_is_found_in_every_start_and_in_nothing_else);
    RUN_TEST(test_main_is_looked_for_where_the_program_begins);
    return UNITY_END();
}
