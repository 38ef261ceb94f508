/* elf_file.c: see elf_file.h. */
#include "trace/unwind/elf_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int ta__elf_is_inside(const struct ta__elf_file *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->size && bytes <= file->size - offset;
}

static int map_file(const char *path, struct ta__elf_file *file)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    struct stat status;
    void *bytes = MAP_FAILED;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= (off_t)sizeof(Elf64_Ehdr))
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (bytes == MAP_FAILED)
        return 0;
    *file = (struct ta__elf_file){.bytes = bytes, .size = (uint64_t)status.st_size};
    return 1;
}

void ta__elf_close(const struct ta__elf_file *file)
{
    munmap((void *)(uintptr_t)file->bytes, file->size);
}

static int find_sections(struct ta__elf_file *file)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_shoff % 8 != 0 || !ta__elf_is_inside(file, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)))
        return 0;
    file->sections = (const Elf64_Shdr *)(file->bytes + header->e_shoff);
    file->section_count = header->e_shnum;
    file->names = header->e_shstrndx;
    return 1;
}

/* 1 unless the file has another build id. */
static int has_build_id(const struct ta__elf_file *file, const uint8_t *build_id, unsigned length)
{
    for (unsigned i = 0; i < file->section_count && length != 0; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        if (section->sh_type != SHT_NOTE || !ta__elf_is_inside(file, section->sh_offset, section->sh_size))
            continue;
        uint64_t at = section->sh_offset;
        uint64_t end = at + section->sh_size;
        while (end - at >= sizeof(Elf64_Nhdr)) {
            Elf64_Nhdr note;
            memcpy(&note, file->bytes + at, sizeof note);
            uint64_t name = ((uint64_t)note.n_namesz + 3) & ~UINT64_C(3);
            uint64_t value = ((uint64_t)note.n_descsz + 3) & ~UINT64_C(3);
            at += sizeof note;
            if (name + value > end - at)
                break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(file->bytes + at, "GNU", 4) == 0)
                return note.n_descsz == length && memcmp(file->bytes + at + name, build_id, length) == 0;
            at += name + value;
        }
    }
    return 1;
}

int ta__elf_open(struct ta__elf_file *file, const char *path, const uint8_t *build_id, unsigned length)
{
    if (!map_file(path, file))
        return 0;
    if (find_sections(file) && has_build_id(file, build_id, length))
        return 1;
    ta__elf_close(file);
    return 0;
}

const Elf64_Shdr *ta__elf_section(const struct ta__elf_file *file, const char *name)
{
    if (file->names >= file->section_count)
        return NULL;
    const Elf64_Shdr *names = &file->sections[file->names];
    size_t room = strlen(name) + 1;
    if (!ta__elf_is_inside(file, names->sh_offset, names->sh_size))
        return NULL;
    for (unsigned i = 0; i < file->section_count; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        if (section->sh_name <= names->sh_size && names->sh_size - section->sh_name >= room &&
            memcmp(file->bytes + names->sh_offset + section->sh_name, name, room) == 0 &&
            section->sh_type != SHT_NOBITS && ta__elf_is_inside(file, section->sh_offset, section->sh_size))
            return section;
    }
    return NULL;
}

int ta__elf_debug_path(const uint8_t *build_id, unsigned length, char path[128])
{
    static const char folder[] = "/usr/lib/debug/.build-id/";
    static const char digits[] = "0123456789abcdef";
    if (length < 2 || length > 32)
        return 0;
    size_t at = sizeof folder - 1;
    memcpy(path, folder, at);
    for (unsigned i = 0; i < length; i++) {
        path[at++] = digits[build_id[i] >> 4];
        path[at++] = digits[build_id[i] & 15];
        if (i == 0)
            path[at++] = '/';
    }
    memcpy(path + at, ".debug", sizeof ".debug");
    return 1;
}
