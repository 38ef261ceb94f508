/* libc_names.c: see libc_names.h.
 *
 * The loader resolves a name to the address that the symbol table of the object says, added to where the object lies.
 * So it is enough to write other values into libc's table, which is this process's own copy once it is written to. An
 * object is read as the loader reads it: program headers, dynamic section, hash table. */
#include "alloc/libc_names.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attributes.h"
#include "tracealloc.h"

#if TRACEALLOC_OVERRIDE

/* A loaded object as far as its names go. */
struct names {
    uintptr_t base;
    ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash, *hash; /* either may be NULL */
    const char *soname;
    int protection; /* of the segment in which the symbols lie */
};

struct search {
    int is_ours; /* the first object that defines malloc is this one */
    int is_decided;
    struct names libc;
};

static const struct {
    const char *name;
    uintptr_t target;
} replaced[] = {
#define NAME(name)                                                                                                     \
    {                                                                                                                  \
#name, (uintptr_t)ta_##name                                                                                    \
    }
#define BOTH_NAMES(name)                                                                                               \
    NAME(name),                                                                                                        \
    {                                                                                                                  \
        "__libc_" #name, (uintptr_t)ta_##name                                                                          \
    }
    BOTH_NAMES(malloc),
    BOTH_NAMES(free),
    BOTH_NAMES(calloc),
    BOTH_NAMES(realloc),
    NAME(reallocarray),
    BOTH_NAMES(memalign),
    NAME(aligned_alloc),
    NAME(posix_memalign),
    BOTH_NAMES(valloc),
    BOTH_NAMES(pvalloc),
    {"malloc_usable_size", (uintptr_t)ta_usable_size},
#undef BOTH_NAMES
#undef NAME
};

/* ---- one object ---- */

static int protection_at(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
                   (segment->p_flags & PF_X ? PROT_EXEC : 0);
    }
    return -1;
}

/* 0 when the object has no names to look up. */
static int read_names(const struct dl_phdr_info *info, struct names *names)
{
    const ElfW(Dyn) *entry = NULL;
    uintptr_t soname = 0;
    memset(names, 0, sizeof *names);
    names->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        /* The loader adds the base in place where the section can be written. */
        uintptr_t value = entry->d_un.d_ptr < names->base ? names->base + entry->d_un.d_ptr : entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB:
            names->symbols = (ElfW(Sym) *)value;
            break;
        case DT_STRTAB:
            names->strings = (const char *)value;
            break;
        case DT_GNU_HASH:
            names->gnu_hash = (const uint32_t *)value;
            break;
        case DT_HASH:
            names->hash = (const uint32_t *)value;
            break;
        case DT_SONAME:
            soname = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    if (names->symbols == NULL || names->strings == NULL)
        return 0;
    names->soname = soname != 0 ? names->strings + soname : "";
    names->protection = protection_at(info, (uintptr_t)names->symbols);
    return 1;
}

static ElfW(Sym) * if_defines(const struct names *names, uint32_t at, const char *name)
{
    ElfW(Sym) *symbol = &names->symbols[at];
    int is_function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC || ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE;
    int is_there = symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS && symbol->st_value != 0;
    return is_function && is_there && strcmp(names->strings + symbol->st_name, name) == 0 ? symbol : NULL;
}

/* The definition of a function, or NULL. */
static ElfW(Sym) * find_definition(const struct names *names, const char *name)
{
    ElfW(Sym) *found = NULL;
    if (names->gnu_hash == NULL) {
        for (uint32_t at = 1; names->hash != NULL && at < names->hash[1] && found == NULL; at++)
            found = if_defines(names, at, name);
        return found;
    }
    const uint32_t *table = names->gnu_hash; /* buckets, first symbol, words of the filter, shift */
    const uint32_t *buckets = table + 4 + table[2] * sizeof(ElfW(Addr)) / sizeof *table;
    const uint32_t *chains = buckets + table[0];
    uint32_t hash = 5381;
    for (const char *byte = name; *byte != '\0'; byte++)
        hash = hash * 33 + (unsigned char)*byte;
    uint32_t at = buckets[hash % table[0]];
    while (at != 0 && found == NULL) {
        uint32_t link = chains[at - table[1]];
        if ((link | 1) == (hash | 1))
            found = if_defines(names, at, name);
        at = (link & 1) != 0 ? 0 : at + 1;
    }
    return found;
}

/* ---- all of them ---- */

static int look_at(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct search *search = argument;
    struct names names;
    if (!read_names(info, &names))
        return 0;
    if (!search->is_decided && find_definition(&names, "malloc") != NULL) {
        search->is_decided = 1;
        search->is_ours = protection_at(info, (uintptr_t)replaced) >= 0;
    }
    if (strcmp(names.soname, "libc.so.6") != 0)
        return 0;
    search->libc = names;
    return 1;
}

static void write_values(const struct names *libc)
{
    ElfW(Sym) * found[sizeof replaced / sizeof *replaced];
    uintptr_t first = UINTPTR_MAX, last = 0;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
        found[i] = find_definition(libc, replaced[i].name);
        if (found[i] == NULL)
            continue;
        uintptr_t address = (uintptr_t)found[i];
        first = address < first ? address : first;
        last = address + sizeof *found[i] > last ? address + sizeof *found[i] : last;
    }
    if (last == 0)
        return;
    first &= ~(page - 1);
    if (mprotect((void *)first, last - first, libc->protection | PROT_WRITE) != 0)
        return;
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (found[i] != NULL)
            __atomic_store_n(&found[i]->st_value, replaced[i].target - libc->base, __ATOMIC_RELAXED);
    mprotect((void *)first, last - first, libc->protection);
}

void ta__libc_names_replace(void)
{
    if (getauxval(AT_BASE) == 0)
        return; /* no loader, no look-ups */
    int saved_errno = errno;
    struct search search = {0};
    dl_iterate_phdr(look_at, &search);
    if (search.is_ours && search.libc.symbols != NULL && search.libc.protection >= 0)
        write_values(&search.libc);
    errno = saved_errno;
}

#else

void ta__libc_names_replace(void)
{
}

#endif
