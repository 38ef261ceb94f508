/* target_objects.c: which executable and libraries a process has mapped: by their ELF headers in its memory, or in their
 * files where a core lacks them. */
#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "analysis/arrays.h"
#include "analysis/image/target.h"

enum { HEADERS_MOST = 256, NOTES_MOST = 64 << 10 };

/* Reads from memory, or from the file at the same offset. */
struct source {
    struct ta__target *target;
    uint64_t start; /* where the file's beginning is mapped */
    int file;       /* -1 = memory */
};

static int fetch(const struct source *source, uint64_t offset, void *buffer, size_t bytes)
{
    if (source->file < 0)
        return ta__target_peek(source->target, source->start + offset, buffer, bytes);
    return pread(source->file, buffer, bytes, (off_t)offset) == (ssize_t)bytes ? 0 : -1;
}

static int is_ours(const Elf64_Ehdr *header)
{
#if defined(__x86_64__)
    const uint16_t machine = EM_X86_64;
#elif defined(__aarch64__)
    const uint16_t machine = EM_AARCH64;
#else
    const uint16_t machine = EM_NONE;
#endif
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_machine == machine &&
           (header->e_type == ET_EXEC || header->e_type == ET_DYN) && header->e_phentsize == sizeof(Elf64_Phdr) &&
           header->e_phnum > 0 && header->e_phnum <= HEADERS_MOST;
}

static void find_build_id(struct ta__object_file *object, const uint8_t *notes, size_t bytes)
{
    size_t at = 0;
    while (bytes - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note;
        uint64_t name_bytes = ((uint64_t)note.n_namesz + 3) & ~3ull,
                 value_bytes = ((uint64_t)note.n_descsz + 3) & ~3ull;
        if (name_bytes > bytes - name || value_bytes > bytes - name - name_bytes)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
            note.n_descsz <= sizeof object->build_id) {
            memcpy(object->build_id, notes + name + name_bytes, note.n_descsz);
            object->build_id_bytes = note.n_descsz;
            return;
        }
        at = name + name_bytes + value_bytes;
    }
}

static void read_notes(const struct source *source, struct ta__object_file *object, const Elf64_Phdr *header)
{
    uint8_t notes[4096];
    if (header->p_filesz > NOTES_MOST || header->p_filesz < sizeof(Elf64_Nhdr) || object->build_id_bytes != 0)
        return;
    size_t bytes = header->p_filesz < sizeof notes ? header->p_filesz : sizeof notes;
    uint64_t offset = source->file < 0 ? object->bias + header->p_vaddr - source->start : header->p_offset;
    if (fetch(source, offset, notes, bytes) == 0)
        find_build_id(object, notes, bytes);
}

/* 1 when an object begins here. */
static int describe(const struct source *source, struct ta__object_file *object)
{
    Elf64_Ehdr header;
    Elf64_Phdr headers[HEADERS_MOST];
    if (fetch(source, 0, &header, sizeof header) != 0 || !is_ours(&header) ||
        fetch(source, header.e_phoff, headers, header.e_phnum * sizeof *headers) != 0)
        return 0;
    uint64_t low = UINT64_MAX, high = 0;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        const Elf64_Phdr *segment = &headers[i];
        if (segment->p_type != PT_LOAD || segment->p_vaddr + segment->p_memsz < segment->p_vaddr)
            continue;
        uint64_t begin = segment->p_vaddr - segment->p_offset; /* of offset 0, were it mapped here */
        if (low == UINT64_MAX)
            low = begin & ~(uint64_t)(TA__TARGET_PAGE - 1);
        high = segment->p_vaddr + segment->p_memsz > high ? segment->p_vaddr + segment->p_memsz : high;
    }
    if (low == UINT64_MAX || high <= low || high - low > (UINT64_C(1) << 40))
        return 0;
    *object = (struct ta__object_file){.start = source->start,
                                       .end = source->start + (high - low),
                                       .bias = source->start - low,
                                       .phdr = source->start + header.e_phoff,
                                       .phdr_count = header.e_phnum};
    for (unsigned i = 0; i < header.e_phnum; i++)
        if (headers[i].p_type == PT_NOTE)
            read_notes(source, object, &headers[i]);
    return 1;
}

static int may_begin_object(const struct ta__target *target, const struct ta__region *region)
{
    if ((region->flags & TA__REGION_READ) == 0 || region->file_offset != 0)
        return 0;
    return (region->flags & TA__REGION_FILE) != 0 ? (region->flags & TA__REGION_SPECIAL) == 0
                                                  : strcmp(ta__target_string(target, region->name), "[vdso]") == 0;
}

int ta__target_find_objects(struct ta__target *target)
{
    target->object_count = 0;
    for (size_t i = 0; i < target->region_count; i++) {
        const struct ta__region *region = &target->regions[i];
        struct source source = {target, region->start, -1};
        struct ta__object_file object;
        if (!may_begin_object(target, region))
            continue;
        int is_one = describe(&source, &object);
        if (!is_one && target->is_core) { /* the page was left out */
            source.file = ta__target_open_file(target, ta__target_string(target, region->path));
            is_one = source.file >= 0 && describe(&source, &object);
            if (source.file >= 0)
                close(source.file);
        }
        if (!is_one)
            continue;
        object.path = region->path != 0 ? region->path : region->name;
        if (ta__grow(&target->objects, &target->object_capacity, target->object_count + 1, sizeof object) != 0)
            return -1;
        target->objects[target->object_count++] = object;
    }
    return 0;
}
