/* test_rules_against_libdw.c: proof that our rules are what .eh_frame says.
 *
 * For every row of every FDE of real files (libc, libstdc++, libpython, libcrypto, gcc's driver and both compilers, ld.so and
 * this program), the rule of trace/unwind/cfi.c is compared with the answer of an independent reader, libdw's CFI interface.
 * The FDEs are enumerated from .eh_frame itself, so a wrong search table would be seen. Where we say UNKNOWN, libdw's
 * answer must be one that a rule cannot express; those rows are counted by reason.
 *
 * The files are mapped segment by segment as a loader would, but never run, at an address of our choice. */
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/unwind/cfi.h"
#include "trace/unwind/rule.h"
#include "unity.h"

enum { RBP = 6, RSP = 7, RIP = 16 };

/* Why a row has no rule. */
enum reason {
    EXPRESSIBLE,
    CFA_UNDEFINED,
    CFA_OTHER_REGISTER,
    CFA_OTHER_EXPRESSION,
    FP_ELSEWHERE,
    RA_ELSEWHERE,
    SP_ELSEWHERE,
    OTHER_SIGNAL_FRAME,
    DOES_NOT_FIT,
    REASONS
};

static const char *const reason_names[REASONS] = {
    [EXPRESSIBLE] = "expressible",
    [CFA_UNDEFINED] = "no CFA",
    [CFA_OTHER_REGISTER] = "CFA from another register",
    [CFA_OTHER_EXPRESSION] = "CFA by another expression",
    [FP_ELSEWHERE] = "rbp in a register or by another expression",
    [RA_ELSEWHERE] = "return address not at CFA - 8",
    [SP_ELSEWHERE] = "caller's rsp not the CFA",
    [OTHER_SIGNAL_FRAME] = "signal frame of another form",
    [DOES_NOT_FIT] = "distance no multiple of 8 or too far",
};

/* What a row says, in the terms of rule.h, but read from libdw's answers. */
struct expected {
    enum reason reason;
    enum ta__rule_kind kind;
    int saves_fp;
    int slot_from_fp;
    int64_t offset;
    int64_t slot;
};

/* A file, mapped like a loaded object. */
struct image {
    uint8_t *base; /* address of the file's address 0 */
    size_t bytes;
    uint8_t *reserved;
    uint64_t generation; /* 1, 2, 3 … in the order of mapping */
    struct ta__cfi_tables tables;
};

struct tally {
    unsigned long fdes, rows, equal, differ, unread, gaps, disorder;
    unsigned long by_kind[8];
    unsigned long unknown[REASONS];
    unsigned long cfa_register[32];
};

/* ---- libdw's answer ---- */

static int is_breg(const Dwarf_Op *op, unsigned number)
{
    return op->atom == DW_OP_breg0 + number;
}

/* Where a register is, in libdw's words: [call_frame_cfa, plus_uconst n] is "in memory at CFA + n". Expressions begin
 * with the CFA on their stack: [call_frame_cfa, breg6 n] is "in memory at rbp + n". */
enum where { UNTOUCHED, LOST, AT_CFA_PLUS, AT_BREG, IS_CFA, OTHER };

static enum where where_is(Dwarf_Frame *frame, int number, int breg, int64_t *offset)
{
    Dwarf_Op memory[3], *ops;
    size_t count;
    *offset = 0;
    if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0)
        return OTHER;
    if (count == 0)
        return ops == memory ? LOST : UNTOUCHED;
    if (ops[0].atom == DW_OP_call_frame_cfa) {
        if (count == 1)
            return AT_CFA_PLUS;
        if (count == 2 && ops[1].atom == DW_OP_plus_uconst) {
            *offset = (int64_t)ops[1].number;
            return AT_CFA_PLUS;
        }
        if (count == 2 && ops[1].atom == DW_OP_stack_value)
            return IS_CFA;
        if (count == 2 && is_breg(&ops[1], (unsigned)breg)) {
            *offset = (int64_t)ops[1].number;
            return AT_BREG;
        }
    }
    return OTHER;
}

static int is_plt_expression(const Dwarf_Op *ops, size_t count, int64_t *threshold)
{
    static const uint8_t tail[] = {DW_OP_lit15, DW_OP_and, 0, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
    if (count != 9 || !is_breg(&ops[0], RSP) || ops[0].number != 8 || !is_breg(&ops[1], RIP) || ops[1].number != 0)
        return 0;
    for (size_t i = 0; i < sizeof tail; i++)
        if (tail[i] != 0 && ops[i + 2].atom != tail[i])
            return 0;
    if (ops[4].atom < DW_OP_lit0 || ops[4].atom > DW_OP_lit15)
        return 0;
    *threshold = ops[4].atom - DW_OP_lit0;
    return 1;
}

static struct expected expect(Dwarf_Frame *frame, int is_signal_frame, struct tally *tally)
{
    struct expected row = {.reason = EXPRESSIBLE};
    Dwarf_Op *cfa;
    size_t cfa_count;
    int64_t slot, ra_offset, sp_offset;
    if (dwarf_frame_cfa(frame, &cfa, &cfa_count) != 0 || cfa_count == 0) {
        row.reason = CFA_UNDEFINED;
        return row;
    }

    if (is_signal_frame) {
        int64_t fp_offset, ip_offset;
        int is_kernels = cfa_count == 2 && is_breg(&cfa[0], RSP) && cfa[0].number == 160 &&
                         cfa[1].atom == DW_OP_deref && where_is(frame, RBP, RSP, &fp_offset) == AT_BREG &&
                         fp_offset == 120 && where_is(frame, RIP, RSP, &ip_offset) == AT_BREG && ip_offset == 168;
        row.kind = TA__RULE_SIGNAL;
        row.reason = is_kernels ? EXPRESSIBLE : OTHER_SIGNAL_FRAME;
        return row;
    }

    enum where ra = where_is(frame, RIP, RSP, &ra_offset);
    enum where sp = where_is(frame, RSP, RSP, &sp_offset);
    enum where fp = where_is(frame, RBP, RBP, &slot);
    if (ra == LOST) {
        row.kind = TA__RULE_END;
        return row;
    }
    if (ra != AT_CFA_PLUS || ra_offset != -8)
        row.reason = RA_ELSEWHERE;
    else if (sp != IS_CFA && sp != UNTOUCHED && sp != LOST)
        row.reason = SP_ELSEWHERE;
    else if (fp == OTHER || fp == IS_CFA)
        row.reason = FP_ELSEWHERE;
    if (row.reason != EXPRESSIBLE)
        return row;

    row.saves_fp = fp == AT_CFA_PLUS || fp == AT_BREG;
    row.slot_from_fp = fp == AT_BREG;
    row.slot = slot;
    if (cfa_count == 1 && cfa[0].atom == DW_OP_bregx) {
        row.kind = cfa[0].number == RSP ? TA__RULE_SP : TA__RULE_FP;
        row.offset = (int64_t)cfa[0].number2;
        if (cfa[0].number != RSP && cfa[0].number != RBP) {
            row.reason = CFA_OTHER_REGISTER;
            tally->cfa_register[cfa[0].number < 31 ? cfa[0].number : 31]++;
        }
    } else if (cfa_count == 2 && is_breg(&cfa[0], RBP) && cfa[1].atom == DW_OP_deref) {
        row.kind = TA__RULE_FP_DEREF;
        row.offset = (int64_t)cfa[0].number;
    } else if (is_plt_expression(cfa, cfa_count, &row.offset)) {
        row.kind = TA__RULE_PLT;
        row.offset *= 8;
    } else {
        row.reason = CFA_OTHER_EXPRESSION;
    }
    if (row.reason == EXPRESSIBLE &&
        (row.offset % 8 != 0 || row.slot % 8 != 0 || llabs(row.offset) >= 1 << 26 || llabs(row.slot) >= 1 << 18))
        row.reason = DOES_NOT_FIT;
    return row;
}

static int is_equal(uint64_t rule, const struct expected *row)
{
    if (row->reason != EXPRESSIBLE)
        return ta__rule_kind(rule) == TA__RULE_UNKNOWN;
    return ta__rule_kind(rule) == row->kind && ta__rule_saves_fp(rule) == row->saves_fp &&
           ta__rule_slot_from_fp(rule) == row->slot_from_fp && ta__rule_offset(rule) == row->offset &&
           ta__rule_slot(rule) == row->slot;
}

/* ---- files ---- */

static int map_image(Elf *elf, int descriptor, struct image *image)
{
    size_t segments;
    uint64_t bytes = 0;
    if (elf_getphdrnum(elf, &segments) != 0)
        return 0;
    for (size_t i = 0; i < segments; i++) {
        GElf_Phdr segment;
        gelf_getphdr(elf, (int)i, &segment);
        if (segment.p_type == PT_LOAD && segment.p_vaddr + segment.p_memsz > bytes)
            bytes = segment.p_vaddr + segment.p_memsz;
    }
    image->bytes = bytes + 4096;
    image->reserved = mmap(NULL, image->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image->reserved == MAP_FAILED)
        return 0;
    image->base = image->reserved;
    static uint64_t images;
    image->generation = ++images;

    const uint8_t *header = NULL;
    for (size_t i = 0; i < segments; i++) {
        GElf_Phdr segment;
        gelf_getphdr(elf, (int)i, &segment);
        if (segment.p_type == PT_GNU_EH_FRAME)
            header = image->base + segment.p_vaddr;
        if (segment.p_type != PT_LOAD || segment.p_filesz == 0)
            continue;
        uint64_t skew = segment.p_vaddr & 4095;
        void *at = mmap(image->base + segment.p_vaddr - skew, segment.p_filesz + skew, PROT_READ,
                        MAP_PRIVATE | MAP_FIXED, descriptor, (off_t)(segment.p_offset - skew));
        if (at == MAP_FAILED)
            return 0;
    }
    if (header == NULL)
        return 0;

    image->tables = ta__cfi_tables_in(header, NULL, NULL);
    for (int pass = 0; pass < 2; pass++) { /* the header's segment first: only then can it say where the frames are */
        const uint8_t *wanted = pass == 0 ? header : ta__cfi_frames(&image->tables);
        for (size_t i = 0; i < segments; i++) {
            GElf_Phdr segment;
            gelf_getphdr(elf, (int)i, &segment);
            const uint8_t *low = image->base + segment.p_vaddr;
            if (segment.p_type != PT_LOAD || wanted < low || wanted >= low + segment.p_filesz)
                continue;
            struct ta__cfi_span span = {low, low + segment.p_filesz};
            *(pass == 0 ? &image->tables.header_span : &image->tables.frame_span) = span;
        }
    }
    return image->tables.frame_span.low != NULL;
}

static Elf_Data *eh_frame_of(Elf *elf, GElf_Shdr *header)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return NULL;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section != NULL; section = elf_nextscn(elf, section)) {
        gelf_getshdr(section, header);
        const char *name = elf_strptr(elf, names, header->sh_name);
        if (name != NULL && strcmp(name, ".eh_frame") == 0)
            return elf_rawdata(section, NULL);
    }
    return NULL;
}

static uint64_t read_sdata4_pcrel(const uint8_t *at, const Elf_Data *data, const GElf_Shdr *section)
{
    int32_t value;
    memcpy(&value, at, 4);
    return section->sh_addr + (uint64_t)(at - (const uint8_t *)data->d_buf) + (uint64_t)(int64_t)value;
}

/* The address range of an FDE. Every linker and compiler at hand writes pcrel|sdata4; another encoding fails the test.
 */
static int range_of(const Dwarf_FDE *fde, const Dwarf_CFI_Entry *cie, const Elf_Data *data, const GElf_Shdr *section,
                    uint64_t *begin, uint64_t *end)
{
    const uint8_t *augmentation = cie->cie.augmentation_data;
    int encoding = -1;
    for (const char *letter = cie->cie.augmentation; *letter != '\0'; letter++) {
        if (*letter == 'R')
            encoding = *augmentation++;
        else if (*letter == 'P')
            augmentation += 1 + ((*augmentation & 0x0f) == 0x0b || (*augmentation & 0x0f) == 0x03 ? 4 : 8);
        else if (*letter == 'L')
            augmentation++;
    }
    if (encoding != 0x1b)
        return 0;
    uint32_t length;
    memcpy(&length, fde->start + 4, 4);
    *begin = read_sdata4_pcrel(fde->start, data, section);
    *end = *begin + length;
    return 1;
}

/* ---- the comparison ---- */

static void complain(const char *path, uint64_t pc, uint64_t rule, const struct expected *row)
{
    printf("  %s+%#lx: rule kind %d saves_fp %d slot_from_fp %d offset %ld slot %ld; libdw: %s, kind %d saves_fp %d "
           "slot_from_fp %d offset %ld slot %ld\n",
           path, (unsigned long)pc, ta__rule_kind(rule), ta__rule_saves_fp(rule), ta__rule_slot_from_fp(rule),
           (long)ta__rule_offset(rule), (long)ta__rule_slot(rule), reason_names[row->reason], row->kind, row->saves_fp,
           row->slot_from_fp, (long)row->offset, (long)row->slot);
}

static void compare_row(const char *path, const struct image *image, uint64_t begin, uint64_t end,
                        const struct expected *row, struct tally *tally)
{
    /* First and last byte of the row, as an interrupted and as a returned-to address. */
    uintptr_t first = (uintptr_t)image->base + begin;
    uintptr_t last = (uintptr_t)image->base + end - 1;
    uint64_t rules[4] = {
        ta__cfi_rule(&image->tables, first, TA__CFI_INTERRUPTED),
        ta__cfi_rule(&image->tables, last, TA__CFI_INTERRUPTED),
        ta__cfi_rule(&image->tables, first + 1, TA__CFI_RETURN_ADDRESS),
        ta__cfi_rule(&image->tables, last + 1, TA__CFI_RETURN_ADDRESS),
    };
    tally->rows++;
    /* The quick way, in order and with a step back now and then. */
    for (int i = 0; i < 4; i++) {
        int at = tally->rows % 7 == 0 ? 3 - i : i;
        uintptr_t address = at == 0 ? first : at == 1 ? last : at == 2 ? first + 1 : last + 1;
        enum ta__cfi_address kind = at < 2 ? TA__CFI_INTERRUPTED : TA__CFI_RETURN_ADDRESS;
        if (ta__cfi_rule_in_order(&image->tables, address, kind, image->generation) != rules[at])
            tally->disorder++;
    }
    for (int i = 0; i < 4; i++) {
        if (!is_equal(rules[i], row)) {
            if (tally->differ++ < 5)
                complain(path, begin, rules[i], row);
            return;
        }
    }
    if (row->reason != EXPRESSIBLE)
        tally->unknown[row->reason]++;
    else
        tally->by_kind[row->kind]++;
    tally->equal++;
}

static void compare_fde(const char *path, Dwarf_CFI *cfi, const struct image *image, uint64_t begin, uint64_t end,
                        struct tally *tally)
{
    tally->fdes++;
    for (uint64_t pc = begin; pc < end;) {
        Dwarf_Frame *frame;
        Dwarf_Addr row_begin, row_end;
        bool is_signal_frame;
        if (dwarf_cfi_addrframe(cfi, pc, &frame) != 0) {
            if (tally->unread++ < 5)
                printf("  %s+%#lx: libdw: %s\n", path, (unsigned long)pc, dwarf_errmsg(-1));
            return;
        }
        dwarf_frame_info(frame, &row_begin, &row_end, &is_signal_frame);
        TEST_ASSERT_TRUE(row_begin <= pc && row_end > pc);
        struct expected row = expect(frame, is_signal_frame, tally);
        compare_row(path, image, pc, row_end < end ? row_end : end, &row, tally);
        free(frame);
        pc = row_end;
    }

    /* Where libdw knows nothing, there is nothing: the byte behind the FDE, unless it is another's. */
    Dwarf_Frame *behind;
    if (dwarf_cfi_addrframe(cfi, end, &behind) == 0) {
        free(behind);
    } else {
        uintptr_t gap = (uintptr_t)image->base + end;
        TEST_ASSERT_EQUAL_UINT64(TA__RULE_UNKNOWN, ta__cfi_rule(&image->tables, gap, TA__CFI_INTERRUPTED));
        tally->gaps++;
    }
}

static void print_tally(const char *path, const struct tally *tally)
{
    static const char *const kinds[8] = {"", "sp", "fp", "fp-deref", "end", "signal", "plt", ""};
    printf("%s: %lu FDEs, %lu rows, %lu as libdw says, %lu different, %lu unread, %lu gaps\n  rules:", path,
           tally->fdes, tally->rows, tally->equal, tally->differ, tally->unread, tally->gaps);
    for (int kind = 1; kind < 7; kind++)
        if (tally->by_kind[kind] != 0)
            printf(" %s %lu", kinds[kind], tally->by_kind[kind]);
    printf("\n");
    for (int reason = 1; reason < REASONS; reason++)
        if (tally->unknown[reason] != 0)
            printf("  unknown: %s: %lu\n", reason_names[reason], tally->unknown[reason]);
    for (int number = 0; number < 32; number++)
        if (tally->cfa_register[number] != 0)
            printf("    CFA from DWARF register %d: %lu\n", number, tally->cfa_register[number]);
}

static struct tally compare_file(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    TEST_ASSERT_TRUE_MESSAGE(descriptor >= 0, path);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(descriptor, ELF_C_READ, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(elf, path);
    struct image image;
    TEST_ASSERT_TRUE_MESSAGE(map_image(elf, descriptor, &image), path);
    Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
    TEST_ASSERT_NOT_NULL_MESSAGE(cfi, path);
    GElf_Shdr section;
    Elf_Data *data = eh_frame_of(elf, &section);
    TEST_ASSERT_NOT_NULL_MESSAGE(data, path);

    struct tally tally = {0};
    const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
    Dwarf_Off next;
    Dwarf_CFI_Entry entry;
    for (Dwarf_Off at = 0; dwarf_next_cfi(ident, data, true, at, &next, &entry) == 0; at = next) {
        if (dwarf_cfi_cie_p(&entry))
            continue;
        Dwarf_CFI_Entry cie;
        Dwarf_Off behind;
        uint64_t begin, end;
        TEST_ASSERT_EQUAL_INT(0, dwarf_next_cfi(ident, data, true, entry.fde.CIE_pointer, &behind, &cie));
        TEST_ASSERT_TRUE(range_of(&entry.fde, &cie, data, &section, &begin, &end));
        compare_fde(path, cfi, &image, begin, end, &tally);
    }
    print_tally(path, &tally);

    dwarf_cfi_end(cfi);
    elf_end(elf);
    munmap(image.reserved, image.bytes);
    close(descriptor);
    TEST_ASSERT_TRUE_MESSAGE(tally.rows > 0, path);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, tally.differ, path);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, tally.unread, path);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, tally.disorder, path);
    return tally;
}

/* ---- which files ---- */

static struct tally compare_library(const char *name)
{
    void *handle = dlopen(name, RTLD_LAZY);
    TEST_ASSERT_NOT_NULL_MESSAGE(handle, name);
    struct link_map *map;
    TEST_ASSERT_EQUAL_INT(0, dlinfo(handle, RTLD_DI_LINKMAP, &map));
    return compare_file(map->l_name);
}

static void compare_tool(const char *question)
{
    char path[4096] = "";
    FILE *answer = popen(question, "r");
    TEST_ASSERT_NOT_NULL(answer);
    TEST_ASSERT_NOT_NULL_MESSAGE(fgets(path, sizeof path, answer), question);
    pclose(answer);
    path[strcspn(path, "\n")] = '\0';
    compare_file(path);
}

/* A function that realigns its stack and keeps its CFA in memory, which the libraries do not happen to contain. */
static __attribute__((noinline)) int realigned(int count)
{
    _Alignas(64) volatile char aligned[64];
    volatile char *variable = __builtin_alloca((size_t)count + 1);
    aligned[0] = variable[0] = (char)count;
    return ((uintptr_t)aligned & 63) == 0 && aligned[0] == variable[0];
}

static void test_rules_of_this_program_equal_libdw(void)
{
    TEST_ASSERT_TRUE(realigned(100));
    struct tally tally = compare_file("/proc/self/exe");
    TEST_ASSERT_TRUE(tally.by_kind[TA__RULE_FP_DEREF] > 0);
    TEST_ASSERT_TRUE(tally.by_kind[TA__RULE_END] > 0);
    TEST_ASSERT_TRUE(tally.by_kind[TA__RULE_PLT] > 0);
}

static void test_rules_of_libc_equal_libdw(void)
{
    struct tally tally = compare_library("libc.so.6");
    TEST_ASSERT_TRUE(tally.by_kind[TA__RULE_SIGNAL] > 0);
    TEST_ASSERT_TRUE(tally.by_kind[TA__RULE_END] > 0);
}

static void test_rules_of_the_loader_equal_libdw(void)
{
    compare_library("ld-linux-x86-64.so.2");
}

static void test_rules_of_libstdcxx_equal_libdw(void)
{
    compare_library("libstdc++.so.6");
}

static void test_rules_of_libcrypto_equal_libdw(void)
{
    compare_library("libcrypto.so.3");
}

static void test_rules_of_libpython_equal_libdw(void)
{
    static const char *const names[] = {"libpython3.11.so.1.0", "libpython3.13.so.1.0", "libpython3.12.so.1.0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (dlopen(names[i], RTLD_LAZY) != NULL) {
            compare_library(names[i]);
            return;
        }
    }
    compare_tool(
        "PATH=/usr/bin:/bin python3 -c 'import sys; print(sys.executable)'"); /* Debian's contains the library */
}

static void test_rules_of_the_gcc_driver_equal_libdw(void)
{
    compare_tool("command -v gcc");
}

static void test_rules_of_the_c_compiler_equal_libdw(void)
{
    compare_tool("gcc -print-prog-name=cc1");
}

static void test_rules_of_the_cxx_compiler_equal_libdw(void)
{
    compare_tool("gcc -print-prog-name=cc1plus");
}

void setUp(void)
{
}

void tearDown(void)
{
    fflush(stdout);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_rules_of_this_program_equal_libdw);
    RUN_TEST(test_rules_of_the_loader_equal_libdw);
    RUN_TEST(test_rules_of_libc_equal_libdw);
    RUN_TEST(test_rules_of_libstdcxx_equal_libdw);
    RUN_TEST(test_rules_of_libcrypto_equal_libdw);
    RUN_TEST(test_rules_of_libpython_equal_libdw);
    RUN_TEST(test_rules_of_the_gcc_driver_equal_libdw);
    RUN_TEST(test_rules_of_the_c_compiler_equal_libdw);
    RUN_TEST(test_rules_of_the_cxx_compiler_equal_libdw);
    return UNITY_END();
}
