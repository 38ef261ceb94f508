/* function_names.c: see function_names.h. Runs in an allocating thread, now and then: no malloc, no stdio, errno kept. */
#include "trace/unwind/function_names.h"

#include <errno.h>
#include <string.h>

#include "trace/unwind/elf_file.h"

enum { NAME_MAX_BYTES = 2048 };

static int is_of_kind(unsigned type, unsigned kinds)
{
    return (type == STT_FUNC && (kinds & TA__SYMBOLS_OF_CODE) != 0) ||
           (type == STT_OBJECT && (kinds & TA__SYMBOLS_OF_DATA) != 0);
}

static void read_table(const struct ta__elf_file *file, const Elf64_Shdr *table, unsigned kinds,
                       void (*take)(const char *name, uint64_t address, uint64_t size, void *context), void *context)
{
    if (table->sh_link >= file->section_count || table->sh_offset % 8 != 0 ||
        !ta__elf_is_inside(file, table->sh_offset, table->sh_size))
        return;
    const Elf64_Shdr *names = &file->sections[table->sh_link];
    if (!ta__elf_is_inside(file, names->sh_offset, names->sh_size))
        return;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file->bytes + table->sh_offset);
    for (uint64_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *symbol = &symbols[i];
        if (!is_of_kind(ELF64_ST_TYPE(symbol->st_info), kinds) || symbol->st_shndx == SHN_UNDEF ||
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

static const Elf64_Shdr *find_table(const struct ta__elf_file *file, uint32_t type)
{
    for (unsigned i = 0; i < file->section_count; i++)
        if (file->sections[i].sh_type == type && file->sections[i].sh_entsize == sizeof(Elf64_Sym))
            return &file->sections[i];
    return NULL;
}

/* 1 when a table of the given kind was there. */
static int read_file(const char *path, const uint8_t *build_id, unsigned length, uint32_t type, unsigned kinds,
                     void (*take)(const char *name, uint64_t address, uint64_t size, void *context), void *context)
{
    struct ta__elf_file file;
    if (!ta__elf_open(&file, path, build_id, length))
        return 0;
    const Elf64_Shdr *table = find_table(&file, type);
    if (table != NULL)
        read_table(&file, table, kinds, take, context);
    ta__elf_close(&file);
    return table != NULL;
}

int ta__symbols_read(const char *path, const uint8_t *build_id, unsigned build_id_length, unsigned kinds,
                     void (*take)(const char *name, uint64_t address, uint64_t size, void *context), void *context)
{
    int saved_errno = errno;
    char debug[128];
    int done = read_file(path, build_id, build_id_length, SHT_SYMTAB, kinds, take, context) ||
               (ta__elf_debug_path(build_id, build_id_length, debug) &&
                read_file(debug, build_id, build_id_length, SHT_SYMTAB, kinds, take, context)) ||
               read_file(path, build_id, build_id_length, SHT_DYNSYM, kinds, take, context);
    errno = saved_errno;
    return done;
}
