/* target_core.c: a core file as a target: its segments are the memory, its notes the threads and mapped files.
 *
 * Cores are often incomplete: cut by a limit, or by kernels that leave out what a file has too. What is missing is known
 * by region (TA__REGION_MISSING), and read from the file that was mapped where that is at hand. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/elf_notes.h"
#include "analysis/image/target.h"
#include "analysis/image/unpack.h"

enum { SEGMENTS_MOST = 1 << 20, NOTES_MOST = 256 << 20 };

static size_t read_core(struct ta__target *target, uint64_t address, void *buffer, size_t bytes)
{
    const struct ta__region *region = ta__target_region(target, address);
    if (region == NULL)
        return 0;
    uint64_t offset = address - region->start;
    if (offset < region->stored_bytes) {
        uint64_t room = region->stored_bytes - offset;
        ssize_t got = pread(target->memory_descriptor, buffer, bytes < room ? bytes : (size_t)room,
                            (off_t)(region->stored + offset));
        return got > 0 ? (size_t)got : 0;
    }
    if ((region->flags & (TA__REGION_FILE | TA__REGION_WRITE)) != TA__REGION_FILE)
        return 0;
    return ta__target_read_file(target, region, address, buffer, bytes);
}

static const struct ta__target_operations operations = {read_core};

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static int compare_regions(const void *a, const void *b)
{
    const struct ta__region *left = a, *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

/* What the kernel has for itself at the top, as the page of vsyscall, holds nothing of the program. */
static int is_of_program(uint64_t start, uint64_t end)
{
    return start < end && end <= TA__ADDRESS_END;
}

static int add_segment(struct ta__target *target, const Elf64_Phdr *segment, uint64_t file_bytes)
{
    if (!is_of_program(segment->p_vaddr, segment->p_vaddr + segment->p_memsz))
        return 0;
    struct ta__region *region = ta__target_add_region(target);
    if (region == NULL)
        return -1;
    uint64_t stored = segment->p_filesz < segment->p_memsz ? segment->p_filesz : segment->p_memsz;
    uint64_t there = segment->p_offset < file_bytes ? file_bytes - segment->p_offset : 0;
    *region = (struct ta__region){
        .start = segment->p_vaddr,
        .end = segment->p_vaddr + segment->p_memsz,
        .stored = segment->p_offset,
        .stored_bytes = stored < there ? stored : there,
        .flags = ((segment->p_flags & PF_R) != 0 ? TA__REGION_READ : 0u) |
                 ((segment->p_flags & PF_W) != 0 ? TA__REGION_WRITE : 0u) |
                 ((segment->p_flags & PF_X) != 0 ? TA__REGION_EXECUTE : 0u),
    };
    if (region->stored_bytes < segment->p_memsz)
        region->flags |= TA__REGION_MISSING;
    if (segment->p_offset + stored > target->expected_bytes)
        target->expected_bytes = segment->p_offset + stored;
    return 0;
}

/* Sorted, and no two that overlap: the first one counts. */
static int put_in_order(struct ta__target *target)
{
    if (ta__sort(target->regions, target->region_count, sizeof *target->regions, compare_regions) != 0)
        return -1;
    size_t kept = 0;
    for (size_t i = 0; i < target->region_count; i++)
        if (kept == 0 || target->regions[i].start >= target->regions[kept - 1].end)
            target->regions[kept++] = target->regions[i];
    target->region_count = kept;
    return 0;
}

/* ---- notes ------------------------------------------------------------------------------------------------------- */

static void take_status(struct ta__target *target, const uint8_t *value, size_t bytes)
{
    struct elf_prstatus status;
    if (bytes < sizeof status)
        return;
    memcpy(&status, value, sizeof status);
    struct ta__target_thread *thread = ta__target_add_thread(target);
    if (thread == NULL)
        return;
    thread->tid = (uint32_t)status.pr_pid;
    ta__target_set_registers(thread, &status.pr_reg, sizeof status.pr_reg);
    if (target->thread_count == 1)
        target->signal = (uint32_t)status.pr_cursig; /* the one that died comes first */
}

static void take_information(struct ta__target *target, const uint8_t *value, size_t bytes)
{
    struct elf_prpsinfo information;
    if (bytes < sizeof information)
        return;
    memcpy(&information, value, sizeof information);
    target->pid = target->inner = (uint32_t)information.pr_pid;
    target->command =
        ta__target_keep(target, information.pr_psargs, strnlen(information.pr_psargs, sizeof information.pr_psargs));
}

struct ta__regions {
    struct ta__region *items;
    size_t count, capacity;
};

static struct ta__region *region_at(struct ta__target *target, uint64_t address)
{
    size_t at = ta__target_region_from(target, address);
    return at < target->region_count && target->regions[at].start <= address ? &target->regions[at] : NULL;
}

/* A mapping of a file: gives its regions their path; where the core has no region at all, as gdb writes them, makes one
 * without contents. 0, or -1 without memory. */
static int take_file(struct ta__target *target, const uint64_t row[3], uint64_t page_bytes, uint32_t path,
                     struct ta__regions *missing)
{
    uint32_t shared = strncmp(ta__target_string(target, path), "/dev/shm/", 9) == 0 ? TA__REGION_SHARED : 0;
    for (uint64_t at = row[0]; at < row[1];) {
        struct ta__region *region = region_at(target, at);
        size_t next = ta__target_region_from(target, at);
        uint64_t end =
            next < target->region_count && target->regions[next].start < row[1] ? target->regions[next].start : row[1];
        if (region == NULL) {
            if (ta__grow(&missing->items, &missing->capacity, missing->count + 1, sizeof *missing->items) != 0)
                return -1;
            region = &missing->items[missing->count++];
            *region = (struct ta__region){.start = at, .end = end, .flags = TA__REGION_READ | TA__REGION_MISSING};
        }
        region->path = path;
        region->flags |= TA__REGION_FILE | shared;
        region->file_offset = row[2] * page_bytes + (region->start - row[0]);
        at = region->end;
    }
    return 0;
}

static int add_missing(struct ta__target *target, const struct ta__regions *missing)
{
    for (size_t i = 0; i < missing->count; i++) {
        struct ta__region *region = ta__target_add_region(target);
        if (region == NULL)
            return -1;
        *region = missing->items[i];
    }
    return missing->count > 0 ? put_in_order(target) : 0;
}

/* NT_FILE: count, size of a page, count triples (start, end, offset in pages), then the names. */
static void take_files(struct ta__target *target, const uint8_t *value, size_t bytes)
{
    uint64_t head[2], row[3];
    struct ta__regions missing = {0};
    if (bytes < sizeof head)
        return;
    memcpy(head, value, sizeof head);
    if (head[0] > (bytes - sizeof head) / sizeof row || head[1] == 0 || head[1] > (1 << 20))
        return;
    const char *name = (const char *)value + sizeof head + head[0] * sizeof row, *end = (const char *)value + bytes;
    const char *last = NULL;
    uint32_t last_text = 0;
    for (uint64_t i = 0; i < head[0] && name < end; i++) {
        size_t length = strnlen(name, (size_t)(end - name));
        memcpy(row, value + sizeof head + i * sizeof row, sizeof row);
        if (last == NULL || strlen(last) != length || memcmp(last, name, length) != 0)
            last_text = ta__target_keep(target, name, length);
        last = ta__target_string(target, last_text); /* texts move */
        if (is_of_program(row[0], row[1]) && take_file(target, row, head[1], last_text, &missing) != 0)
            break;
        name += length + 1;
    }
    if (add_missing(target, &missing) != 0)
        last = NULL; /* without memory they stay unknown */
    free(missing.items);
}

static void take_note(struct ta__target *target, uint32_t type, const uint8_t *value, size_t bytes)
{
    uint64_t words[128];
    siginfo_t signal;
    switch (type) {
    case NT_PRSTATUS:
        take_status(target, value, bytes);
        break;
    case NT_PRPSINFO:
        take_information(target, value, bytes);
        break;
    case NT_AUXV:
        memcpy(words, value, bytes < sizeof words ? bytes : sizeof words);
        ta__target_set_auxiliary(target, words, (bytes < sizeof words ? bytes : sizeof words) / 8);
        break;
    case NT_FILE:
        take_files(target, value, bytes);
        break;
    case NT_SIGINFO:
        if (bytes < sizeof signal)
            break;
        memcpy(&signal, value, sizeof signal);
        /* What another process sent has its number there, and a fault of no certain place has nothing. */
        target->has_fault_address =
            (signal.si_signo == SIGSEGV || signal.si_signo == SIGBUS || signal.si_signo == SIGILL) &&
            signal.si_code > 0 && signal.si_code != SI_KERNEL;
        if (target->has_fault_address)
            target->fault_address = (uint64_t)(uintptr_t)signal.si_addr;
        break;
    default:
        break;
    }
}

static void walk_notes(struct ta__target *target, const uint8_t *notes, size_t bytes)
{
    struct ta__elf_note note;
    for (size_t at = 0; ta__elf_note_next(notes, bytes, &at, &note);)
        if (ta__elf_note_is_of(&note, "CORE", sizeof "CORE"))
            take_note(target, note.type, note.value, note.value_bytes);
}

static int read_notes(struct ta__target *target, const char *path, const Elf64_Phdr *segment)
{
    if (segment->p_filesz == 0)
        return 0;
    if (segment->p_filesz > NOTES_MOST)
        return ta__fail("%s: is a core file with %llu bytes of notes: damaged", path,
                        (unsigned long long)segment->p_filesz);
    uint8_t *notes = ta__new_array((size_t)segment->p_filesz, 1);
    if (notes == NULL)
        return -1;
    ssize_t got = pread(target->memory_descriptor, notes, (size_t)segment->p_filesz, (off_t)segment->p_offset);
    if (got > 0)
        walk_notes(target, notes, (size_t)got);
    free(notes);
    return 0;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* With 65535 segments and more the number stands in the first section header. */
static uint64_t segment_count(const struct ta__target *target, const Elf64_Ehdr *header)
{
    Elf64_Shdr section;
    if (header->e_phnum != PN_XNUM)
        return header->e_phnum;
    return pread(target->memory_descriptor, &section, sizeof section, (off_t)header->e_shoff) == sizeof section
               ? section.sh_info
               : 0;
}

static int read_segments(struct ta__target *target, const char *path, const Elf64_Ehdr *header)
{
    uint64_t count = segment_count(target, header);
    if (count == 0 || count > SEGMENTS_MOST)
        return ta__fail("%s: is a core file with %llu segments: damaged", path, (unsigned long long)count);
    Elf64_Phdr *segments = ta__new_array((size_t)count, sizeof *segments);
    if (segments == NULL)
        return -1;
    size_t bytes = (size_t)count * sizeof *segments;
    int result = 0;
    if (pread(target->memory_descriptor, segments, bytes, (off_t)header->e_phoff) != (ssize_t)bytes)
        result = ta__fail("%s: is a core file that ends in its headers", path);
    for (uint64_t i = 0; i < count && result == 0; i++)
        if (segments[i].p_type == PT_LOAD)
            result = add_segment(target, &segments[i], target->file_bytes);
    if (result == 0)
        result = put_in_order(target);
    for (uint64_t i = 0; i < count && result == 0; i++)
        if (segments[i].p_type == PT_NOTE)
            result = read_notes(target, path, &segments[i]);
    free(segments);
    return result;
}

/* What a live process's list of mappings says by a name. */
static void find_first_stack(struct ta__target *target)
{
    struct ta__region *region = region_at(target, target->on_first_stack);
    if (region != NULL && target->on_first_stack < region->end && (region->flags & TA__REGION_WRITE) != 0)
        region->flags |= TA__REGION_STACK;
}

static void find_program(struct ta__target *target)
{
    const struct ta__region *region = ta__target_region(target, target->entry_phdr);
    if (region != NULL)
        target->program = region->path;
}

int ta__target_open_core(struct ta__target *target, const char *path)
{
    struct stat status;
    Elf64_Ehdr header;
    target->operations = &operations;
    target->is_core = 1;
    target->memory_descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (target->memory_descriptor < 0)
        return ta__fail("%s: %s", path, strerror(errno));
    if (fstat(target->memory_descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        return ta__fail("%s: is neither a core file nor the number of a process", path);
    target->time_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
    if (ta__unpack(&target->memory_descriptor, path) != 0 || fstat(target->memory_descriptor, &status) != 0)
        return -1;
    target->file_bytes = (uint64_t)status.st_size;
    if (pread(target->memory_descriptor, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return ta__fail("%s: is no core file", path);
    if (header.e_type != ET_CORE || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return ta__fail("%s: is an ELF file, but no core file of a 64-bit program of this kind of machine", path);
    if (read_segments(target, path, &header) != 0)
        return -1;
    if (target->region_count == 0)
        return ta__fail("%s: is a core file without memory", path);
    find_program(target);
    find_first_stack(target);
    return 0;
}
