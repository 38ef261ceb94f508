/* test_target_core.c: core files, made byte by byte: their headers, segments and notes, the objects that are mapped in them,
 * and what the library in one publishes of itself. Both sides of each bound, and the words of each refusal. */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#include "analysis/image/layout.h"
#include "base/error.h"
#include "base/facts.h"

#include <unity.h>

enum { PAGE = TA__TARGET_PAGE, CORE_MOST = 1 << 20, SEGMENTS = 24, NOTES_MOST = 64 << 10 };
enum { NOTES_AT = 16384, CONTENTS_AT = NOTES_AT + NOTES_MOST };

static uint8_t core[CORE_MOST], notes[NOTES_MOST];
static Elf64_Ehdr header;
static Elf64_Phdr segments[SEGMENTS];
static size_t segment_count, note_bytes, contents_end;
static struct ta__target target;
static int file;
static char path[64];
static int is_open;

static const Elf64_Ehdr usual = {
    .e_ident = {0x7F, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
    .e_type = ET_CORE,
    .e_machine = EM_X86_64,
    .e_version = 1,
    .e_phoff = sizeof(Elf64_Ehdr),
    .e_ehsize = sizeof(Elf64_Ehdr),
    .e_phentsize = sizeof(Elf64_Phdr),
};

void setUp(void)
{
    memset(core, 0, sizeof core);
    memset(segments, 0, sizeof segments);
    header = usual;
    segment_count = 1; /* the first is of the notes */
    note_bytes = 0;
    contents_end = CONTENTS_AT;
    file = memfd_create("core", MFD_CLOEXEC);
    TEST_ASSERT_TRUE(file >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
}

static void close_core(void)
{
    if (is_open)
        ta__target_close(&target);
    is_open = 0;
}

void tearDown(void)
{
    close_core();
    close(file);
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* Answers its number. `stored`: bytes of it that the core has. */
static size_t add_segment(uint64_t start, uint64_t bytes, uint64_t stored, uint32_t flags)
{
    segments[segment_count] = (Elf64_Phdr){.p_type = PT_LOAD,
                                           .p_flags = flags,
                                           .p_offset = contents_end,
                                           .p_vaddr = start,
                                           .p_filesz = stored,
                                           .p_memsz = bytes};
    contents_end += stored;
    TEST_ASSERT_TRUE(contents_end <= CORE_MOST && segment_count < SEGMENTS);
    return segment_count++;
}

static void put_at(uint64_t address, const void *bytes, size_t length)
{
    for (size_t i = 1; i < segment_count; i++)
        if (address >= segments[i].p_vaddr && address + length <= segments[i].p_vaddr + segments[i].p_filesz) {
            memcpy(core + segments[i].p_offset + (address - segments[i].p_vaddr), bytes, length);
            return;
        }
    TEST_FAIL_MESSAGE("the core has no such place");
}

static void put_word_at(uint64_t address, uint64_t word)
{
    put_at(address, &word, sizeof word);
}

static void add_note_of(const char *owner, size_t owner_bytes, uint32_t type, const void *value, size_t bytes)
{
    const Elf64_Nhdr head = {(uint32_t)owner_bytes, (uint32_t)bytes, type};
    memcpy(notes + note_bytes, &head, sizeof head);
    memcpy(notes + note_bytes + sizeof head, owner, owner_bytes);
    note_bytes += sizeof head + ((owner_bytes + 3) & ~(size_t)3);
    memcpy(notes + note_bytes, value, bytes);
    note_bytes += (bytes + 3) & ~(size_t)3;
    TEST_ASSERT_TRUE(note_bytes <= NOTES_MOST);
}

static void add_note(uint32_t type, const void *value, size_t bytes)
{
    add_note_of("CORE", 5, type, value, bytes);
}

/* The file has its first `bytes`. */
static int open_first(size_t bytes)
{
    close_core();
    if (note_bytes > 0)
        segments[0] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = NOTES_AT, .p_filesz = note_bytes};
    if (header.e_phnum == 0)
        header.e_phnum = (uint16_t)segment_count;
    memcpy(core, &header, sizeof header);
    memcpy(core + sizeof header, segments, sizeof segments);
    memcpy(core + NOTES_AT, notes, note_bytes);
    TEST_ASSERT_EQUAL_INT(0, ftruncate(file, 0));
    TEST_ASSERT_EQUAL_INT((int)bytes, (int)pwrite(file, core, bytes, 0));
    ta__error_clear();
    is_open = ta__target_open(&target, path) == 0;
    return is_open ? 0 : -1;
}

static void open_core(void)
{
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_first(contents_end), ta__error_text());
}

static void expect_refusal(size_t bytes, const char *reason)
{
    char text[300];
    snprintf(text, sizeof text, "%s: %s", path, reason);
    TEST_ASSERT_EQUAL_INT(-1, open_first(bytes));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    header = usual;
}

/* ---- headers ----------------------------------------------------------------------------------------------------- */

static void test_file_that_is_no_core_is_refused_with_what_it_is(void)
{
    static const char other[] = "is an ELF file, but no core file of a 64-bit program of this kind of machine";
    add_segment(0x1000, PAGE, PAGE, PF_R);
    open_core();
    expect_refusal(3, "is no core file");
    expect_refusal(sizeof header - 1, "is no core file");
    header.e_ident[3] = 'f';
    expect_refusal(contents_end, "is no core file");
    header.e_type = ET_EXEC;
    expect_refusal(contents_end, other);
    header.e_ident[EI_CLASS] = ELFCLASS32;
    expect_refusal(contents_end, other);
    header.e_ident[EI_DATA] = ELFDATA2MSB;
    expect_refusal(contents_end, other);
    header.e_phentsize = sizeof(Elf64_Phdr) + 1;
    expect_refusal(contents_end, other);
    open_core();
}

static void test_core_that_ends_in_its_headers_is_refused(void)
{
    add_segment(0x1000, PAGE, PAGE, PF_R);
    expect_refusal(sizeof header + 2 * sizeof *segments - 1, "is a core file that ends in its headers");
    segments[1].p_filesz = 0;
    TEST_ASSERT_EQUAL_INT(0, open_first(sizeof header + 2 * sizeof *segments));
}

static void test_core_without_memory_is_refused(void)
{
    expect_refusal(contents_end, "is a core file without memory");
    add_segment(0x1000, 0, 0, PF_R);
    expect_refusal(contents_end, "is a core file without memory");
    segments[1].p_memsz = 1;
    segments[1].p_type = PT_TLS;
    expect_refusal(contents_end, "is a core file without memory");
    segments[1].p_type = PT_LOAD;
    open_core();
}

static void test_number_of_segments_may_stand_in_the_first_section(void)
{
    Elf64_Shdr section = {.sh_info = 2};
    add_segment(0x1000, PAGE, PAGE, PF_R);
    add_segment(0x3000, PAGE, PAGE, PF_R);
    header.e_phnum = PN_XNUM;
    header.e_shoff = 8192;
    memcpy(core + 8192, &section, sizeof section);
    open_core();
    TEST_ASSERT_EQUAL_size_t(1, target.region_count); /* of the notes, and this one */
    section.sh_info = 0;
    memcpy(core + 8192, &section, sizeof section);
    header.e_phnum = PN_XNUM;
    header.e_shoff = 8192;
    expect_refusal(contents_end, "is a core file with 0 segments: damaged");
    section.sh_info = (1 << 20) + 1;
    memcpy(core + 8192, &section, sizeof section);
    header.e_phnum = PN_XNUM;
    header.e_shoff = 8192;
    expect_refusal(contents_end, "is a core file with 1048577 segments: damaged");
    section.sh_info = 1 << 20;
    memcpy(core + 8192, &section, sizeof section);
    header.e_phnum = PN_XNUM;
    header.e_shoff = 8192;
    expect_refusal(contents_end, "is a core file that ends in its headers");
    header.e_phnum = PN_XNUM;
    header.e_shoff = contents_end - sizeof section + 1;
    expect_refusal(contents_end, "is a core file with 0 segments: damaged");
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static void test_segments_become_mappings_in_order(void)
{
    add_segment(0x9000, 2 * PAGE, 2 * PAGE, PF_R | PF_W);
    add_segment(0x1000, PAGE, 0, PF_R | PF_X);
    add_segment(0x4000, 3 * PAGE, PAGE, PF_W);
    put_word_at(0x9008, 77);
    open_core();
    TEST_ASSERT_EQUAL_size_t(3, target.region_count);
    const struct ta__region *region = target.regions;
    TEST_ASSERT_EQUAL_HEX64(0x1000, region[0].start);
    TEST_ASSERT_EQUAL_HEX64(0x2000, region[0].end);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_READ | TA__REGION_EXECUTE | TA__REGION_MISSING, region[0].flags);
    TEST_ASSERT_EQUAL_UINT64(0, region[0].stored_bytes);
    TEST_ASSERT_EQUAL_HEX64(0x4000, region[1].start);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_WRITE | TA__REGION_MISSING, region[1].flags);
    TEST_ASSERT_EQUAL_UINT64(PAGE, region[1].stored_bytes);
    TEST_ASSERT_EQUAL_HEX64(0xB000, region[2].end);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_READ | TA__REGION_WRITE, region[2].flags);
    TEST_ASSERT_EQUAL_UINT64(CONTENTS_AT, region[2].stored);
    uint64_t word = 0;
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, 0x9008, &word, sizeof word));
    TEST_ASSERT_EQUAL_UINT64(77, word);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, 0x5000, &word, sizeof word));
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, 0x4FF8, &word, sizeof word));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, 0x4FF9, &word, sizeof word));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, 0x3000, &word, sizeof word));
    TEST_ASSERT_EQUAL_INT(1, target.is_core);
}

static void test_of_segments_that_overlap_the_first_counts(void)
{
    add_segment(0x1000, 2 * PAGE, 0, PF_R);
    add_segment(0x2FFF, PAGE, 0, PF_W);
    add_segment(0x3000, PAGE, 0, PF_X);
    open_core();
    TEST_ASSERT_EQUAL_size_t(2, target.region_count);
    TEST_ASSERT_EQUAL_HEX64(0x1000, target.regions[0].start);
    TEST_ASSERT_EQUAL_HEX64(0x3000, target.regions[1].start);
}

static void test_segment_beyond_the_addresses_of_programs_is_left_out(void)
{
    add_segment(0x1000, PAGE, 0, PF_R);
    add_segment(TA__ADDRESS_END - PAGE, PAGE, 0, PF_R);
    open_core();
    TEST_ASSERT_EQUAL_size_t(2, target.region_count);
    segments[2].p_memsz++;
    open_core();
    TEST_ASSERT_EQUAL_size_t(1, target.region_count);
    segments[2].p_vaddr = 0xffffffffff600000;
    segments[2].p_memsz = PAGE;
    open_core();
    TEST_ASSERT_EQUAL_size_t(1, target.region_count);
    segments[2].p_vaddr = UINT64_MAX;
    open_core();
    TEST_ASSERT_EQUAL_size_t(1, target.region_count);
}

static void test_core_that_was_cut_has_what_is_there(void)
{
    add_segment(0x1000, PAGE, PAGE, PF_R);
    add_segment(0x3000, 2 * PAGE, 2 * PAGE, PF_R | PF_W);
    open_core();
    TEST_ASSERT_EQUAL_UINT64(contents_end, target.expected_bytes);
    TEST_ASSERT_EQUAL_UINT64(contents_end, target.file_bytes);
    TEST_ASSERT_EQUAL_UINT32(0, (target.regions[0].flags | target.regions[1].flags) & TA__REGION_MISSING);
    TEST_ASSERT_EQUAL_INT(0, open_first(contents_end - 1));
    TEST_ASSERT_EQUAL_UINT64(contents_end, target.expected_bytes);
    TEST_ASSERT_EQUAL_UINT64(contents_end - 1, target.file_bytes);
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE - 1, target.regions[1].stored_bytes);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_MISSING, target.regions[1].flags & TA__REGION_MISSING);
    TEST_ASSERT_EQUAL_INT(0, open_first(CONTENTS_AT + PAGE)); /* where the second segment would begin */
    TEST_ASSERT_EQUAL_UINT64(0, target.regions[1].stored_bytes);
    TEST_ASSERT_EQUAL_UINT64(PAGE, target.regions[0].stored_bytes);
    TEST_ASSERT_EQUAL_INT(0, open_first(CONTENTS_AT - PAGE));
    TEST_ASSERT_EQUAL_UINT64(0, target.regions[0].stored_bytes);
    segments[2].p_filesz = 3 * PAGE; /* more than its memory */
    open_core();
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, target.regions[1].stored_bytes);
    TEST_ASSERT_EQUAL_UINT64(contents_end, target.expected_bytes);
}

/* ---- notes ------------------------------------------------------------------------------------------------------- */

static void add_thread(int tid, uint64_t sp, int number)
{
    struct elf_prstatus status;
    struct user_regs_struct registers;
    memset(&status, 0, sizeof status);
    memset(&registers, 0, sizeof registers);
    status.pr_pid = tid;
    status.pr_cursig = (short)number;
#if defined(__x86_64__)
    registers.rsp = sp;
#else
    registers.sp = sp;
#endif
    memcpy(&status.pr_reg, &registers, sizeof registers);
    add_note(NT_PRSTATUS, &status, sizeof status);
}

static void test_threads_are_in_notes_and_the_first_has_the_signal(void)
{
    struct elf_prstatus short_one;
    memset(&short_one, 0, sizeof short_one);
    add_segment(0x1000, PAGE, 0, PF_R);
    add_thread(71, 0x5000, SIGSEGV);
    add_thread(72, 0x6000, SIGBUS);
    add_note(NT_PRSTATUS, &short_one, sizeof short_one - 1);
    add_note_of("GNU", 4, NT_PRSTATUS, &short_one, sizeof short_one);
    add_note_of("CORE!", 5, NT_PRSTATUS, &short_one, sizeof short_one);
    add_note_of("CORE", 4, NT_PRSTATUS, &short_one, sizeof short_one);
    add_thread(73, 0x7000, 0);
    open_core();
    TEST_ASSERT_EQUAL_size_t(3, target.thread_count);
    TEST_ASSERT_EQUAL_UINT32(71, target.threads[0].tid);
    TEST_ASSERT_EQUAL_UINT32(72, target.threads[1].tid);
    TEST_ASSERT_EQUAL_UINT32(73, target.threads[2].tid);
    TEST_ASSERT_EQUAL_HEX64(0x6000, target.threads[1].sp);
    TEST_ASSERT_EQUAL_UINT32(SIGSEGV, target.signal);
}

static void test_notes_end_where_one_does_not_fit(void)
{
    add_segment(0x1000, PAGE, 0, PF_R);
    add_thread(71, 0x5000, 0);
    size_t first = note_bytes;
    add_thread(72, 0x6000, 0);
    size_t both = note_bytes;
    for (size_t bytes = first; bytes <= both; bytes += 4) {
        note_bytes = bytes;
        open_core();
        TEST_ASSERT_EQUAL_size_t(bytes == both ? 2 : 1, target.thread_count);
    }
    for (size_t bytes = 0; bytes < 12; bytes++) { /* half a head behind them */
        note_bytes = both + bytes;
        memset(notes + both, 0, 12);
        open_core();
        TEST_ASSERT_EQUAL_size_t(2, target.thread_count);
    }
    const uint32_t lengths[][2] = {{UINT32_MAX, 0}, {0, UINT32_MAX}, {0, 1}, {1, 0}, {5, 0}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(notes + both, lengths[i], 8);
        note_bytes = both + 12;
        open_core();
        TEST_ASSERT_EQUAL_size_t(2, target.thread_count);
    }
}

static void test_more_notes_than_there_may_be_are_damage(void)
{
    add_segment(0x1000, PAGE, 0, PF_R);
    segments[0] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = NOTES_AT, .p_filesz = (256 << 20) + 1};
    expect_refusal(contents_end, "is a core file with 268435457 bytes of notes: damaged");
    segments[0].p_filesz = 256 << 20;
    open_core();
    segments[0].p_offset = CORE_MOST * UINT64_C(2); /* behind the end: there are none */
    open_core();
}

static void test_process_is_in_a_note(void)
{
    struct elf_prpsinfo information;
    memset(&information, 0, sizeof information);
    information.pr_pid = 4711;
    memset(information.pr_psargs, 'a', sizeof information.pr_psargs); /* without an end */
    add_segment(0x1000, PAGE, 0, PF_R);
    add_note(NT_PRPSINFO, &information, sizeof information - 1);
    open_core();
    TEST_ASSERT_EQUAL_UINT32(0, target.pid);
    note_bytes = 0;
    add_note(NT_PRPSINFO, &information, sizeof information);
    open_core();
    TEST_ASSERT_EQUAL_UINT32(4711, target.pid);
    TEST_ASSERT_EQUAL_UINT32(4711, target.inner);
    TEST_ASSERT_EQUAL_size_t(sizeof information.pr_psargs, strlen(ta__target_string(&target, target.command)));
    strcpy(information.pr_psargs, "server -x");
    note_bytes = 0;
    add_note(NT_PRPSINFO, &information, sizeof information);
    open_core();
    TEST_ASSERT_EQUAL_STRING("server -x", ta__target_string(&target, target.command));
}

static void open_core_of_signal(int number, int code, uintptr_t address, size_t missing)
{
    siginfo_t information;
    memset(&information, 0, sizeof information);
    information.si_signo = number;
    information.si_code = code;
    information.si_addr = (void *)address;
    note_bytes = 0;
    add_note(NT_SIGINFO, &information, sizeof information - missing);
    open_core();
}

static void test_address_of_a_fault_is_told_of_those_signals_that_have_one(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE};
    add_segment(0x1000, PAGE, 0, PF_R);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        open_core_of_signal(numbers[i], SEGV_MAPERR, 0x1234, 0);
        TEST_ASSERT_EQUAL_HEX64(i < 3 ? 0x1234 : 0, target.fault_address);
        TEST_ASSERT_EQUAL(i < 3, target.has_fault_address);
        open_core_of_signal(numbers[i], SEGV_MAPERR, 0x1234, 1);
        TEST_ASSERT_EQUAL_HEX64(0, target.fault_address);
        TEST_ASSERT_EQUAL(0, target.has_fault_address);
    }
}

static void test_address_of_a_fault_may_be_0(void)
{
    add_segment(0x1000, PAGE, 0, PF_R);
    open_core_of_signal(SIGSEGV, SEGV_MAPERR, 0, 0);
    TEST_ASSERT_EQUAL_HEX64(0, target.fault_address);
    TEST_ASSERT_EQUAL(1, target.has_fault_address);
}

/* What is there instead: the number of a process, or nothing at all. */
static void test_signal_that_no_access_caused_has_no_address(void)
{
    static const int codes[] = {SI_USER, SI_TKILL, SI_QUEUE, SI_KERNEL};
    add_segment(0x1000, PAGE, 0, PF_R);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        open_core_of_signal(SIGSEGV, codes[i], 0x1234, 0);
        TEST_ASSERT_EQUAL_HEX64(0, target.fault_address);
        TEST_ASSERT_EQUAL(0, target.has_fault_address);
    }
}

static void test_auxiliary_vector_is_in_a_note(void)
{
    uint64_t words[200] = {AT_PHDR, 0x1040, AT_RANDOM, 0x1500};
    add_segment(0x1000, PAGE, 0, PF_R | PF_W);
    add_note(NT_AUXV, words, 32);
    open_core();
    TEST_ASSERT_EQUAL_HEX64(0x1040, target.entry_phdr);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_STACK, target.regions[0].flags & TA__REGION_STACK);
    for (size_t i = 0; i < 200; i += 2)
        words[i] = AT_PAGESZ;
    words[126] = AT_PHDR, words[127] = 0x127;
    note_bytes = 0;
    add_note(NT_AUXV, words, sizeof words);
    open_core();
    TEST_ASSERT_EQUAL_HEX64(0x127, target.entry_phdr);
    words[126] = AT_PAGESZ, words[128] = AT_PHDR, words[129] = 0x129; /* more than there ever are */
    note_bytes = 0;
    add_note(NT_AUXV, words, sizeof words);
    open_core();
    TEST_ASSERT_EQUAL_HEX64(0, target.entry_phdr);
}

static void test_first_stack_is_where_the_kernel_put_it(void)
{
    uint64_t words[] = {AT_RANDOM, 0x2000};
    add_segment(0x1000, PAGE, 0, PF_R | PF_W);
    add_segment(0x3000, PAGE, 0, PF_R);
    add_segment(0x4000, PAGE, 0, PF_R | PF_W);
    static const struct {
        uint64_t address;
        int stack;
    } cases[] = {{0xFFF, -1}, {0x1000, 0}, {0x1FFF, 0}, {0x2000, -1}, {0x3000, -1}, {0x4FFF, 2}, {0x5000, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        words[1] = cases[i].address;
        note_bytes = 0;
        add_note(NT_AUXV, words, sizeof words);
        open_core();
        for (int k = 0; k < 3; k++)
            TEST_ASSERT_EQUAL_INT(k == cases[i].stack, (target.regions[k].flags & TA__REGION_STACK) != 0);
    }
}

/* ---- files that were mapped -------------------------------------------------------------------------------------- */

struct mapped {
    uint64_t start, end, page;
    const char *path;
};

static void add_files(const struct mapped *files, uint64_t count, uint64_t page_bytes)
{
    uint8_t value[4096];
    size_t length = 16;
    uint64_t words[3] = {count, page_bytes};
    memcpy(value, words, 16);
    for (uint64_t i = 0; i < count; i++, length += 24) {
        memcpy(words, &files[i], 24);
        memcpy(value + length, words, 24);
    }
    for (uint64_t i = 0; i < count; i++) {
        size_t bytes = strlen(files[i].path) + 1;
        memcpy(value + length, files[i].path, bytes);
        length += bytes;
    }
    note_bytes = 0;
    add_note(NT_FILE, value, length);
}

static void expect_mapping(size_t index, uint64_t start, uint64_t end, uint64_t offset, const char *name,
                           uint32_t flags)
{
    TEST_ASSERT_TRUE(index < target.region_count);
    const struct ta__region *region = &target.regions[index];
    TEST_ASSERT_EQUAL_HEX64(start, region->start);
    TEST_ASSERT_EQUAL_HEX64(end, region->end);
    TEST_ASSERT_EQUAL_HEX64(offset, region->file_offset);
    TEST_ASSERT_EQUAL_STRING(name, ta__target_string(&target, region->path));
    TEST_ASSERT_EQUAL_UINT32(flags, region->flags);
}

static void test_files_give_mappings_their_paths_and_those_that_are_missing(void)
{
    static const struct mapped files[] = {{0x1000, 0x3000, 2, "/lib/a"},     {0x5000, 0x8000, 0, "/lib/b"},
                                          {0xA000, 0xB000, 1, "/dev/shm/s"}, {0xB000, 0xC000, 2, "/dev/shm/s"},
                                          {0xC000, 0xD000, 0, "/dev/shms"},  {0xD000, 0xD000, 0, "/empty"}};
    const uint32_t of_file = TA__REGION_FILE, missing = TA__REGION_FILE | TA__REGION_READ | TA__REGION_MISSING;
    add_segment(0x1000, PAGE, PAGE, PF_R);
    add_segment(0x2000, PAGE, PAGE, PF_R | PF_W);
    add_segment(0x6000, PAGE, PAGE, PF_W);
    add_segment(0xA000, PAGE, PAGE, PF_R);
    add_segment(0xB000, PAGE, PAGE, PF_R);
    add_files(files, 6, PAGE);
    open_core();
    TEST_ASSERT_EQUAL_size_t(8, target.region_count);
    expect_mapping(0, 0x1000, 0x2000, 0x2000, "/lib/a", of_file | TA__REGION_READ);
    expect_mapping(1, 0x2000, 0x3000, 0x3000, "/lib/a", of_file | TA__REGION_READ | TA__REGION_WRITE);
    expect_mapping(2, 0x5000, 0x6000, 0, "/lib/b", missing);
    expect_mapping(3, 0x6000, 0x7000, 0x1000, "/lib/b", of_file | TA__REGION_WRITE);
    expect_mapping(4, 0x7000, 0x8000, 0x2000, "/lib/b", missing);
    expect_mapping(5, 0xA000, 0xB000, 0x1000, "/dev/shm/s", of_file | TA__REGION_READ | TA__REGION_SHARED);
    expect_mapping(6, 0xB000, 0xC000, 0x2000, "/dev/shm/s", of_file | TA__REGION_READ | TA__REGION_SHARED);
    expect_mapping(7, 0xC000, 0xD000, 0, "/dev/shms", missing);
}

static void test_pages_of_files_may_have_another_size(void)
{
    static const struct mapped files[] = {{0x1000, 0x2000, 3, "/lib/a"}};
    static const struct {
        uint64_t bytes, offset;
    } cases[] = {{65536, 3 * 65536}, {1 << 20, 3 << 20}, {1, 3}, {0, UINT64_MAX}, {(1 << 20) + 1, UINT64_MAX}};
    add_segment(0x1000, PAGE, PAGE, PF_R);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        add_files(files, 1, cases[i].bytes);
        open_core();
        TEST_ASSERT_EQUAL_HEX64(cases[i].offset == UINT64_MAX ? 0 : cases[i].offset, target.regions[0].file_offset);
        TEST_ASSERT_EQUAL_INT(cases[i].offset != UINT64_MAX, target.regions[0].path != 0);
    }
}

static void test_list_of_files_that_is_damaged_is_read_as_far_as_it_goes(void)
{
    uint64_t words[6] = {1, PAGE, 0x1000, 0x2000, 0, 0};
    add_segment(0x1000, PAGE, PAGE, PF_R);
    add_segment(0x4000, PAGE, PAGE, PF_R);
    memcpy(&words[5], "/x", 3);
    static const struct {
        size_t bytes;
        uint64_t count;
        const char *path;
    } cases[] = {{15, 1, ""},   {16, 1, ""}, {39, 1, ""},   {40, 1, ""}, {41, 1, "/"},        {42, 1, "/x"},
                 {43, 1, "/x"}, {48, 0, ""}, {48, 1, "/x"}, {48, 2, ""}, {48, UINT64_MAX, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        words[0] = cases[i].count;
        note_bytes = 0;
        add_note(NT_FILE, words, cases[i].bytes);
        open_core();
        TEST_ASSERT_EQUAL_STRING(cases[i].path, ta__target_string(&target, target.regions[0].path));
    }
    static const struct mapped files[] = {{0x2000, 0x1000, 0, "/turned"}, {0x4000, 0x5000, 0, "/sound"}};
    add_files(files, 2, PAGE);
    open_core();
    TEST_ASSERT_EQUAL_size_t(2, target.region_count);
    TEST_ASSERT_EQUAL_STRING("/sound", ta__target_string(&target, target.regions[1].path));
}

static void test_what_a_core_lacks_of_a_file_is_read_from_it(void)
{
    char name[] = "/tmp/ta_core.XXXXXX";
    uint8_t text[3 * PAGE], bytes[2 * PAGE];
    int other = mkstemp(name);
    TEST_ASSERT_TRUE(other >= 0);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 31 >> 3);
    TEST_ASSERT_EQUAL_INT(sizeof text, (int)write(other, text, sizeof text));
    const struct mapped files[] = {{0x1000, 0x3000, 1, name}, {0x5000, 0x6000, 0, name}, {0x8000, 0x9000, 0, "/none"}};
    add_segment(0x1000, 2 * PAGE, 16, PF_R);
    add_segment(0x5000, PAGE, 0, PF_R | PF_W); /* somebody wrote there */
    memset(core + segments[1].p_offset, 'c', 16);
    add_files(files, 3, PAGE);
    open_core();
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, 0x1000, bytes, 2 * PAGE));
    TEST_ASSERT_EACH_EQUAL_HEX8('c', bytes, 16);
    TEST_ASSERT_EQUAL_MEMORY(text + PAGE + 16, bytes + 16, 2 * PAGE - 16);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, 0x2100, bytes, 10));
    TEST_ASSERT_EQUAL_MEMORY(text + 2 * PAGE + 0x100, bytes, 10);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, 0x2FFF, bytes, 2)); /* behind the mapping */
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, 0x5000, bytes, 1));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, 0x8000, bytes, 1));
    int next = open("/dev/null", O_RDONLY); /* nothing was left open */
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, 0x2100, bytes, 10));
    int after = open("/dev/null", O_RDONLY);
    TEST_ASSERT_EQUAL_INT(next + 1, after);
    close(next);
    close(after);
    close(other);
    unlink(name);
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#else
enum { MACHINE = EM_AARCH64 };
#endif

static Elf64_Ehdr object_header(uint16_t count)
{
    Elf64_Ehdr object = usual;
    object.e_type = ET_DYN;
    object.e_machine = MACHINE;
    object.e_phnum = count;
    return object;
}

enum { OBJECT = 0x10000, OBJECT_PAGES = 4 };
static Elf64_Phdr loads[4];

/* A library at OBJECT: two segments, and a note at 0x400. */
static void add_object(const void *note, size_t bytes)
{
    static const struct mapped files[] = {{OBJECT, OBJECT + OBJECT_PAGES * PAGE, 0, "/lib/object"}};
    Elf64_Ehdr object = object_header(3);
    loads[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x3000, .p_offset = 0, .p_memsz = PAGE};
    loads[1] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x5000, .p_offset = 0x2000, .p_memsz = PAGE + 7};
    loads[2] = (Elf64_Phdr){.p_type = PT_NOTE, .p_vaddr = 0x3400, .p_offset = 0x400, .p_filesz = bytes};
    add_segment(OBJECT, OBJECT_PAGES * PAGE, OBJECT_PAGES * PAGE, PF_R);
    put_at(OBJECT, &object, sizeof object);
    put_at(OBJECT + sizeof object, loads, sizeof loads);
    put_at(OBJECT + 0x400, note, bytes);
    add_files(files, 1, PAGE);
}

static void find_objects(size_t count)
{
    open_core();
    TEST_ASSERT_EQUAL_INT(0, ta__target_find_objects(&target));
    TEST_ASSERT_EQUAL_size_t(count, target.object_count);
}

static const uint8_t build_id[] = {4,   0,   0,   0,   20,  0,   0,   0,   3,   0,   0,   0,
                                   'G', 'N', 'U', 0,   'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h',
                                   'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't'};

static void test_object_is_found_by_its_header(void)
{
    add_object(build_id, sizeof build_id);
    find_objects(1);
    const struct ta__object_file *object = &target.objects[0];
    TEST_ASSERT_EQUAL_HEX64(OBJECT, object->start);
    TEST_ASSERT_EQUAL_HEX64(OBJECT + 0x3007, object->end);
    TEST_ASSERT_EQUAL_HEX64(OBJECT - 0x3000, object->bias);
    TEST_ASSERT_EQUAL_HEX64(OBJECT + sizeof(Elf64_Ehdr), object->phdr);
    TEST_ASSERT_EQUAL_UINT32(3, object->phdr_count);
    TEST_ASSERT_EQUAL_STRING("/lib/object", ta__target_string(&target, object->path));
    TEST_ASSERT_EQUAL_UINT32(20, object->build_id_bytes);
    TEST_ASSERT_EQUAL_MEMORY("abcdefghijklmnopqrst", object->build_id, 20);
}

static void test_object_of_another_kind_is_none(void)
{
    static const struct {
        size_t place, bytes;
        uint64_t value;
        int is_object;
    } cases[] = {
        {offsetof(Elf64_Ehdr, e_ident), 1, 'x', 0},
        {offsetof(Elf64_Ehdr, e_ident) + EI_CLASS, 1, ELFCLASS32, 0},
        {offsetof(Elf64_Ehdr, e_ident) + EI_DATA, 1, ELFDATA2MSB, 0},
        {offsetof(Elf64_Ehdr, e_machine), 2, EM_386, 0},
        {offsetof(Elf64_Ehdr, e_type), 2, ET_EXEC, 1},
        {offsetof(Elf64_Ehdr, e_type), 2, ET_CORE, 0},
        {offsetof(Elf64_Ehdr, e_type), 2, ET_REL, 0},
        {offsetof(Elf64_Ehdr, e_phentsize), 2, 55, 0},
        {offsetof(Elf64_Ehdr, e_phnum), 2, 0, 0},
        {offsetof(Elf64_Ehdr, e_phnum), 2, 256, 1},
        {offsetof(Elf64_Ehdr, e_phnum), 2, 257, 0},
        {offsetof(Elf64_Ehdr, e_phoff), 8, OBJECT_PAGES * PAGE - 3 * sizeof(Elf64_Phdr) + 1, 0},
    };
    add_object(build_id, sizeof build_id);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Elf64_Ehdr object = object_header(3);
        memcpy((uint8_t *)&object + cases[i].place, &cases[i].value, cases[i].bytes);
        put_at(OBJECT, &object, sizeof object);
        find_objects((size_t)cases[i].is_object);
    }
}

static void put_loads(void)
{
    put_at(OBJECT + sizeof(Elf64_Ehdr), loads, sizeof loads);
}

static void test_object_of_an_impossible_extent_is_none(void)
{
    add_object(build_id, sizeof build_id);
    loads[1].p_memsz = (UINT64_C(1) << 40) - 0x2000; /* the first begins at 0x3000 */
    put_loads();
    find_objects(1);
    loads[1].p_memsz++;
    put_loads();
    find_objects(0);
    loads[1].p_memsz = UINT64_MAX; /* beyond all addresses: that one does not count */
    put_loads();
    find_objects(1);
    TEST_ASSERT_EQUAL_HEX64(OBJECT + PAGE, target.objects[0].end);
    loads[0].p_type = loads[1].p_type = PT_TLS;
    put_loads();
    find_objects(0);
    loads[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x3000, .p_memsz = 0};
    put_loads();
    find_objects(0);
    loads[0].p_memsz = 1;
    put_loads();
    find_objects(1);
    TEST_ASSERT_EQUAL_HEX64(OBJECT + 1, target.objects[0].end);
    loads[0].p_vaddr = 0x3010; /* it begins somewhere in a page, as its place in the file does */
    loads[0].p_offset = 0x10;
    put_loads();
    find_objects(1);
    TEST_ASSERT_EQUAL_HEX64(OBJECT + 0x11, target.objects[0].end);
    TEST_ASSERT_EQUAL_HEX64(OBJECT - 0x3000, target.objects[0].bias);
}

static void test_objects_begin_at_the_beginning_of_a_file(void)
{
    struct mapped file_at = {OBJECT, OBJECT + OBJECT_PAGES * PAGE, 1, "/lib/object"};
    add_object(build_id, sizeof build_id);
    add_files(&file_at, 1, PAGE);
    find_objects(0);
    file_at.page = 0;
    add_files(&file_at, 1, PAGE);
    find_objects(1);
    segments[1].p_flags = PF_W;
    find_objects(0);
    segments[1].p_flags = PF_R;
    note_bytes = 0; /* nobody says that it is of a file */
    segments[0].p_type = PT_NULL;
    find_objects(0);
    open_core();
    target.regions[0].name = ta__target_keep(&target, "[vdso]", 6);
    TEST_ASSERT_EQUAL_INT(0, ta__target_find_objects(&target));
    TEST_ASSERT_EQUAL_size_t(1, target.object_count);
    TEST_ASSERT_EQUAL_STRING("[vdso]", ta__target_string(&target, target.objects[0].path));
    target.regions[0].flags |= TA__REGION_FILE | TA__REGION_SPECIAL;
    TEST_ASSERT_EQUAL_INT(0, ta__target_find_objects(&target));
    TEST_ASSERT_EQUAL_size_t(0, target.object_count);
}

static uint32_t id_bytes(const void *note, size_t bytes)
{
    segment_count = 1;
    contents_end = CONTENTS_AT;
    add_object(note, bytes);
    find_objects(1);
    return target.objects[0].build_id_bytes;
}

static void put_id(uint8_t *to, uint32_t owner_bytes, uint32_t bytes, uint32_t type, const char *owner)
{
    const uint32_t head[] = {owner_bytes, bytes, type};
    memcpy(to, head, 12);
    memcpy(to + 12, owner, 4);
}

static void test_build_id_is_in_one_of_the_notes(void)
{
    uint8_t note[200] = {0};
    memcpy(note, build_id, sizeof build_id);
    TEST_ASSERT_EQUAL_UINT32(20, id_bytes(note, 36));
    TEST_ASSERT_EQUAL_UINT32(0, id_bytes(note, 35));
    TEST_ASSERT_EQUAL_UINT32(0, id_bytes(note, 11));
    put_id(note, 4, 20, NT_GNU_BUILD_ID, "GNV");
    TEST_ASSERT_EQUAL_UINT32(0, id_bytes(note, 36));
    put_id(note, 3, 20, NT_GNU_BUILD_ID, "GNU");
    TEST_ASSERT_EQUAL_UINT32(0, id_bytes(note, 36));
    put_id(note, 4, 20, NT_GNU_ABI_TAG, "GNU");
    TEST_ASSERT_EQUAL_UINT32(0, id_bytes(note, 36));
    memcpy(note + 36, build_id, sizeof build_id); /* the second one */
    TEST_ASSERT_EQUAL_UINT32(20, id_bytes(note, 72));
    put_id(note, 4, 17, NT_GNU_ABI_TAG, "GNU"); /* lengths are filled up to multiples of 4 */
    TEST_ASSERT_EQUAL_UINT32(20, id_bytes(note, 72));
    put_id(note, UINT32_MAX, 20, NT_GNU_ABI_TAG, "GNU");
    TEST_ASSERT_EQUAL_UINT32(0, id_bytes(note, 72));
    put_id(note, 4, UINT32_MAX, NT_GNU_ABI_TAG, "GNU");
    TEST_ASSERT_EQUAL_UINT32(0, id_bytes(note, 72));
    put_id(note, 4, 64, NT_GNU_BUILD_ID, "GNU");
    TEST_ASSERT_EQUAL_UINT32(64, id_bytes(note, 80));
    put_id(note, 4, 65, NT_GNU_BUILD_ID, "GNU");
    TEST_ASSERT_EQUAL_UINT32(0, id_bytes(note, 84));
}

static void test_notes_of_an_object_may_be_larger_than_what_is_looked_at(void)
{
    uint8_t note[PAGE] = {0};
    memcpy(note, build_id, sizeof build_id);
    add_object(note, PAGE / 2);
    loads[2].p_filesz = 64 << 10;
    put_loads();
    find_objects(1);
    TEST_ASSERT_EQUAL_UINT32(20, target.objects[0].build_id_bytes);
    loads[2].p_filesz++;
    put_loads();
    find_objects(1);
    TEST_ASSERT_EQUAL_UINT32(0, target.objects[0].build_id_bytes);
}

static void test_object_whose_page_a_core_lacks_is_found_by_its_file(void)
{
    char name[] = "/tmp/ta_core.XXXXXX";
    int other = mkstemp(name);
    TEST_ASSERT_TRUE(other >= 0);
    struct mapped file_at = {OBJECT, OBJECT + OBJECT_PAGES * PAGE, 0, name};
    add_object(build_id, sizeof build_id);
    TEST_ASSERT_EQUAL_INT(OBJECT_PAGES * PAGE, (int)pwrite(other, core + segments[1].p_offset, OBJECT_PAGES * PAGE, 0));
    segments[1].p_filesz = 0;
    segments[1].p_flags = PF_R | PF_W; /* so that nothing is read from the file as memory */
    add_files(&file_at, 1, PAGE);
    find_objects(1);
    TEST_ASSERT_EQUAL_HEX64(OBJECT + 0x3007, target.objects[0].end);
    TEST_ASSERT_EQUAL_UINT32(20, target.objects[0].build_id_bytes);
    TEST_ASSERT_EQUAL_STRING(name, ta__target_string(&target, target.objects[0].path));
    int next = open("/dev/null", O_RDONLY);
    TEST_ASSERT_EQUAL_INT(0, ta__target_find_objects(&target));
    int after = open("/dev/null", O_RDONLY);
    TEST_ASSERT_EQUAL_INT(next + 1, after); /* nothing was left open */
    close(next);
    close(after);
    target.is_core = 0;
    TEST_ASSERT_EQUAL_INT(0, ta__target_find_objects(&target));
    TEST_ASSERT_EQUAL_size_t(0, target.object_count);
    target.is_core = 1;
    close(other);
    unlink(name);
    find_objects(0);
}

static void test_program_is_the_file_of_its_headers(void)
{
    uint64_t words[] = {AT_PHDR, OBJECT + 64};
    add_object(build_id, sizeof build_id);
    add_note(NT_AUXV, words, sizeof words);
    open_core();
    TEST_ASSERT_EQUAL_STRING("/lib/object", ta__target_string(&target, target.program));
}

/* ---- what the library publishes ---------------------------------------------------------------------------------- */

enum { ROOT = OBJECT + 0x1000, LIST = OBJECT + 0x1800, OTHER_LIST = OBJECT + 0x3000 };

static struct ta__layout layout;
static struct ta__facts_root root;

static void add_library(uint32_t type, uint32_t version, size_t bytes)
{
    uint8_t note[64] = {0};
    const uint32_t head[] = {sizeof TA__FACTS_NOTE_OWNER, (uint32_t)bytes, type};
    uint64_t distance = ROOT - (OBJECT + 0x400 + 24);
    memcpy(note, head, 12);
    memcpy(note + 12, TA__FACTS_NOTE_OWNER, sizeof TA__FACTS_NOTE_OWNER);
    memcpy(note + 24, &distance, 8);
    memcpy(note + 32, &version, 4);
    segment_count = 1;
    contents_end = CONTENTS_AT;
    add_object(note, 24 + ((bytes + 3) & ~(size_t)3));
    root = (struct ta__facts_root){.version = TA__FACTS_VERSION,
                                   .bytes = sizeof root,
                                   .self = ROOT,
                                   .library = "1.2 \x01\x7F"
                                              "~",
                                   .fact_bytes = sizeof(struct ta__fact),
                                   .lists_most = TA__FACTS_LISTS,
                                   .lists = {[3] = LIST, [TA__FACTS_LISTS - 1] = OTHER_LIST}};
    put_at(ROOT, &root, sizeof root);
}

/* All that there must be: the first half of them in one list, the others in another. The values are places in the list. */
static const char *const always[] = {
#define ROW(member, name)  name,
#define NONE(member, name) /* nothing */
    TA__LAYOUT(ROW, NONE, NONE)};
static const char *const to_trace[] = {TA__LAYOUT(NONE, ROW, NONE)};
enum { ALWAYS = sizeof always / sizeof *always, TO_TRACE = sizeof to_trace / sizeof *to_trace };

static uint64_t put_facts(uint64_t at, const char *const *names, size_t count, uint64_t value)
{
    for (size_t i = 0; i < count; i++, at += sizeof(struct ta__fact)) {
        struct ta__fact fact = {.value = value + i};
        snprintf(fact.name, sizeof fact.name, "%s", names[i]);
        put_at(at, &fact, sizeof fact);
    }
    const struct ta__fact end = {.name = ""};
    put_at(at, &end, sizeof end);
    return at;
}

static int read_layout(void)
{
    open_core();
    TEST_ASSERT_EQUAL_INT(0, ta__target_find_objects(&target));
    ta__error_clear();
    return ta__layout_read(&layout, &target);
}

static void expect_error(const char *text)
{
    TEST_ASSERT_EQUAL_INT(-1, read_layout());
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
}

static void make_library(void)
{
    add_library(TA__FACTS_NOTE_TYPE, TA__FACTS_VERSION, TA__FACTS_NOTE_BYTES);
    put_facts(LIST, always, ALWAYS / 2, 1000);
    put_facts(OTHER_LIST, always + ALWAYS / 2, ALWAYS - ALWAYS / 2, 2000);
}

static void test_library_says_where_its_tables_are(void)
{
    make_library();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_layout(), ta__error_text());
    TEST_ASSERT_EQUAL_UINT64(1000, layout.mimalloc);
    TEST_ASSERT_EQUAL_UINT64(1001, layout.map);
    TEST_ASSERT_EQUAL_UINT64(2000 + ALWAYS - ALWAYS / 2 - 1, layout.region_size);
    TEST_ASSERT_EQUAL_UINT64(0, layout.gate);
    TEST_ASSERT_EQUAL_INT(0, layout.can_trace);
    TEST_ASSERT_EQUAL_UINT32(TA__FACTS_VERSION, layout.version);
    TEST_ASSERT_EQUAL_STRING("1.2???~", layout.library);
    TEST_ASSERT_EQUAL_PTR(&target.objects[0], layout.object);
}

static void test_library_that_leaves_something_out_is_refused_by_its_name(void)
{
    make_library();
    put_facts(OTHER_LIST, always + ALWAYS / 2, ALWAYS - ALWAYS / 2 - 1, 2000);
    expect_error("/lib/object (tracealloc 1.2???~) does not say 'region.size': use tracealloc 1.2???~ to look at it");
    make_library();
    put_facts(LIST + (ALWAYS / 2) * sizeof(struct ta__fact), to_trace, 1, 5);
    expect_error("/lib/object (tracealloc 1.2???~) does not say 'gate.tracing': use tracealloc 1.2???~ to look at it");
}

static void test_library_that_can_trace_says_more(void)
{
    static const char *const more[] = {"unknown", "!page.bytes", "peak.list"};
    make_library();
    add_segment(0x100000, 64 << 10, 64 << 10, PF_R);
    root.lists[0] = 0x100000;
    put_at(ROOT, &root, sizeof root);
    uint64_t end = put_facts(0x100000, to_trace, TO_TRACE, 3000);
    put_facts(end, more, 3, 7);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_layout(), ta__error_text());
    TEST_ASSERT_EQUAL_INT(1, layout.can_trace);
    TEST_ASSERT_EQUAL_UINT64(3000, layout.gate);
    TEST_ASSERT_EQUAL_UINT64(3000 + TO_TRACE - 1, layout.cold_index);
    TEST_ASSERT_EQUAL_UINT64(9, layout.peak_list);
    TEST_ASSERT_EQUAL_UINT64(0, layout.peak_count);
}

static void test_fact_that_must_be_known_is_refused_when_it_is_not(void)
{
    static const char *const strange[] = {"!strange"};
    make_library();
    put_facts(OTHER_LIST, strange, 1, 7);
    expect_error(
        "/lib/object (tracealloc 1.2???~) publishes 'strange', which this program does not know: use tracealloc "
        "1.2???~");
}

static void test_facts_that_cannot_be_read_are_an_error(void)
{
    make_library();
    struct ta__fact fact;
    memset(&fact, 'x', sizeof fact);
    put_at(LIST, &fact, sizeof fact);
    expect_error("/lib/object: what the library publishes of itself is damaged");
    make_library();
    root.lists[5] = 0x700000;
    put_at(ROOT, &root, sizeof root);
    expect_error("/lib/object: what the library publishes of itself cannot be read");
    make_library();
    put_word_at(OBJECT + 0x400 + 24, 0x700000);
    expect_error(
        "/lib/object: what the library publishes of itself is not in the memory at hand (an incomplete core?)");
}

/* A list ends after so many, also without its end. */
static void test_list_of_facts_has_an_end(void)
{
    const struct ta__fact fact = {.name = "unknown"}, strange = {.name = "!strange"};
    make_library();
    add_segment(0x100000, 64 << 10, 64 << 10, PF_R);
    root.lists[0] = 0x100000;
    put_at(ROOT, &root, sizeof root);
    for (unsigned i = 0; i < TA__FACTS_MOST; i++)
        put_at(0x100000 + i * sizeof fact, &fact, sizeof fact);
    put_at(0x100000 + TA__FACTS_MOST * sizeof fact, &strange, sizeof strange);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_layout(), ta__error_text());
    put_at(0x100000 + (TA__FACTS_MOST - 1) * sizeof fact, &strange, sizeof strange);
    TEST_ASSERT_EQUAL_INT(-1, read_layout());
}

static void test_root_that_cannot_be_is_refused(void)
{
    static const char damaged[] =
        "/lib/object: what the library publishes of itself is damaged, or the process has not begun yet";
    make_library();
    root.self++;
    put_at(ROOT, &root, sizeof root);
    expect_error(damaged);
    make_library();
    root.bytes--;
    put_at(ROOT, &root, sizeof root);
    expect_error(damaged);
    make_library();
    root.fact_bytes++;
    put_at(ROOT, &root, sizeof root);
    expect_error(damaged);
    make_library();
    root.lists_most++;
    put_at(ROOT, &root, sizeof root);
    expect_error(damaged);
    make_library();
    root.version++;
    memset(root.library, 'v', sizeof root.library); /* without an end */
    put_at(ROOT, &root, sizeof root);
    expect_error(
        "/lib/object (tracealloc vvvvvvvvvvvvvvvvvvvvvvv) publishes its tables in version 2; this program knows "
        "version 1");
}

static void test_note_of_another_kind_or_version_is_refused(void)
{
    add_library(TA__FACTS_NOTE_TYPE, TA__FACTS_VERSION + 4, TA__FACTS_NOTE_BYTES);
    expect_error("/lib/object: publishes its tables in version 5; this program knows version 1");
    add_library(TA__FACTS_NOTE_TYPE + 1, TA__FACTS_VERSION, TA__FACTS_NOTE_BYTES);
    expect_error("/lib/object: is of a tracealloc whose note (type 54410002) this program does not know");
    add_library(TA__FACTS_NOTE_TYPE, TA__FACTS_VERSION, TA__FACTS_NOTE_BYTES - 1);
    expect_error("/lib/object: is of a tracealloc whose note (type 54410001) this program does not know");
}

static void test_program_without_the_library_is_told_so(void)
{
    add_object(build_id, sizeof build_id);
    expect_error("the program of this core was not started with tracealloc (tracealloc run, LD_PRELOAD, or linked), or "
                 "what says so is missing from the core");
    target.is_core = 0;
    target.pid = 55;
    TEST_ASSERT_EQUAL_INT(-1, ta__layout_read(&layout, &target));
    TEST_ASSERT_EQUAL_STRING("process 55 was not started with tracealloc (tracealloc run, LD_PRELOAD, or linked)",
                             ta__error_text());
    target.is_core = 1;
    target.object_count = 0;
    TEST_ASSERT_EQUAL_INT(-1, ta__layout_read(&layout, &target));
}

static void test_note_that_a_core_lacks_is_read_from_the_file(void)
{
    char name[] = "/tmp/ta_core.XXXXXX";
    int other = mkstemp(name);
    TEST_ASSERT_TRUE(other >= 0);
    make_library();
    struct mapped file_at = {OBJECT, OBJECT + PAGE, 0, name};
    TEST_ASSERT_EQUAL_INT(OBJECT_PAGES * PAGE, (int)pwrite(other, core + segments[1].p_offset, OBJECT_PAGES * PAGE, 0));
    segments[1].p_vaddr += PAGE; /* the first page is missing */
    segments[1].p_offset += PAGE;
    segments[1].p_filesz -= PAGE;
    segments[1].p_memsz -= PAGE;
    add_segment(OBJECT, PAGE, 0, PF_R | PF_W);
    add_files(&file_at, 1, PAGE);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_layout(), ta__error_text());
    TEST_ASSERT_EQUAL_UINT64(1001, layout.map);
    close(other);
    unlink(name);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_file_that_is_no_core_is_refused_with_what_it_is);
    RUN_TEST(test_core_that_ends_in_its_headers_is_refused);
    RUN_TEST(test_core_without_memory_is_refused);
    RUN_TEST(test_number_of_segments_may_stand_in_the_first_section);
    RUN_TEST(test_segments_become_mappings_in_order);
    RUN_TEST(test_of_segments_that_overlap_the_first_counts);
    RUN_TEST(test_segment_beyond_the_addresses_of_programs_is_left_out);
    RUN_TEST(test_core_that_was_cut_has_what_is_there);
    RUN_TEST(test_threads_are_in_notes_and_the_first_has_the_signal);
    RUN_TEST(test_notes_end_where_one_does_not_fit);
    RUN_TEST(test_more_notes_than_there_may_be_are_damage);
    RUN_TEST(test_process_is_in_a_note);
    RUN_TEST(test_address_of_a_fault_is_told_of_those_signals_that_have_one);
    RUN_TEST(test_address_of_a_fault_may_be_0);
    RUN_TEST(test_signal_that_no_access_caused_has_no_address);
    RUN_TEST(test_auxiliary_vector_is_in_a_note);
    RUN_TEST(test_first_stack_is_where_the_kernel_put_it);
    RUN_TEST(test_files_give_mappings_their_paths_and_those_that_are_missing);
    RUN_TEST(test_pages_of_files_may_have_another_size);
    RUN_TEST(test_list_of_files_that_is_damaged_is_read_as_far_as_it_goes);
    RUN_TEST(test_what_a_core_lacks_of_a_file_is_read_from_it);
    RUN_TEST(test_object_is_found_by_its_header);
    RUN_TEST(test_object_of_another_kind_is_none);
    RUN_TEST(test_object_of_an_impossible_extent_is_none);
    RUN_TEST(test_objects_begin_at_the_beginning_of_a_file);
    RUN_TEST(test_build_id_is_in_one_of_the_notes);
    RUN_TEST(test_notes_of_an_object_may_be_larger_than_what_is_looked_at);
    RUN_TEST(test_object_whose_page_a_core_lacks_is_found_by_its_file);
    RUN_TEST(test_program_is_the_file_of_its_headers);
    RUN_TEST(test_library_says_where_its_tables_are);
    RUN_TEST(test_library_that_leaves_something_out_is_refused_by_its_name);
    RUN_TEST(test_library_that_can_trace_says_more);
    RUN_TEST(test_fact_that_must_be_known_is_refused_when_it_is_not);
    RUN_TEST(test_facts_that_cannot_be_read_are_an_error);
    RUN_TEST(test_list_of_facts_has_an_end);
    RUN_TEST(test_root_that_cannot_be_is_refused);
    RUN_TEST(test_note_of_another_kind_or_version_is_refused);
    RUN_TEST(test_program_without_the_library_is_told_so);
    RUN_TEST(test_note_that_a_core_lacks_is_read_from_the_file);
    return UNITY_END();
}
