/* symbols.c: see symbols.h. Runs in an allocating thread, now and then: no malloc, no stdio, errno kept. */
#include "trace/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    const uint8_t *bytes;
    uint64_t size;
};

static int is_inside(const struct file *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->size && bytes <= file->size - offset;
}

static int map_file(const char *path, struct file *file)
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
    *file = (struct file){bytes, (uint64_t)status.st_size};
    return 1;
}

static void unmap_file(const struct file *file)
{
    munmap((void *)(uintptr_t)file->bytes, file->size);
}

struct sections {
    const Elf64_Shdr *at;
    unsigned count;
};

static int find_sections(const struct file *file, struct sections *sections)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_shoff % 8 != 0 || !is_inside(file, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)))
        return 0;
    *sections = (struct sections){(const Elf64_Shdr *)(file->bytes + header->e_shoff), header->e_shnum};
    return 1;
}

/* 1 unless the file has another build id. */
static int has_build_id(const struct file *file, const struct sections *sections, const uint8_t *build_id,
                        unsigned length)
{
    for (unsigned i = 0; i < sections->count && length != 0; i++) {
        const Elf64_Shdr *section = &sections->at[i];
        if (section->sh_type != SHT_NOTE || !is_inside(file, section->sh_offset, section->sh_size))
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

enum { NAME_MAX_BYTES = 1024 };

static void read_table(const struct file *file, const struct sections *sections, const Elf64_Shdr *table,
                       void (*take)(const char *name, uint64_t address, uint64_t size, void *context), void *context)
{
    if (table->sh_link >= sections->count || table->sh_offset % 8 != 0 ||
        !is_inside(file, table->sh_offset, table->sh_size))
        return;
    const Elf64_Shdr *names = &sections->at[table->sh_link];
    if (!is_inside(file, names->sh_offset, names->sh_size))
        return;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file->bytes + table->sh_offset);
    for (uint64_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *symbol = &symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
            symbol->st_name >= names->sh_size)
            continue;
        const char *text = (const char *)file->bytes + names->sh_offset + symbol->st_name;
        size_t room = names->sh_size - symbol->st_name;
        char name[NAME_MAX_BYTES];
        size_t length = 0;
        while (length < room && length < sizeof name - 1 && text[length] != '\0' && text[length] != '@') {
            name[length] = text[length];
            length++;
        }
        name[length] = '\0';
        if (length != 0)
            take(name, symbol->st_value, symbol->st_size, context);
    }
}

static const Elf64_Shdr *find_table(const struct sections *sections, uint32_t type)
{
    for (unsigned i = 0; i < sections->count; i++)
        if (sections->at[i].sh_type == type && sections->at[i].sh_entsize == sizeof(Elf64_Sym))
            return &sections->at[i];
    return NULL;
}

/* /usr/lib/debug/.build-id/ab/cdef….debug; 0 when there is no build id. */
static int debug_path(const uint8_t *build_id, unsigned length, char path[128])
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

/* 1 when a table of the given kind was there. */
static int read_file(const char *path, const uint8_t *build_id, unsigned length, uint32_t type,
                     void (*take)(const char *name, uint64_t address, uint64_t size, void *context), void *context)
{
    struct file file;
    struct sections sections;
    if (!map_file(path, &file))
        return 0;
    const Elf64_Shdr *table = NULL;
    if (find_sections(&file, &sections) && has_build_id(&file, &sections, build_id, length))
        table = find_table(&sections, type);
    if (table != NULL)
        read_table(&file, &sections, table, take, context);
    unmap_file(&file);
    return table != NULL;
}

int ta__symbols_read(const char *path, const uint8_t *build_id, unsigned build_id_length,
                     void (*take)(const char *name, uint64_t address, uint64_t size, void *context), void *context)
{
    int saved_errno = errno;
    char debug[128];
    int done = read_file(path, build_id, build_id_length, SHT_SYMTAB, take, context) ||
               (debug_path(build_id, build_id_length, debug) &&
                read_file(debug, build_id, build_id_length, SHT_SYMTAB, take, context)) ||
               read_file(path, build_id, build_id_length, SHT_DYNSYM, take, context);
    errno = saved_errno;
    return done;
}
