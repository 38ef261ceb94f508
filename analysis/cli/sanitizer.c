/* sanitizer.c: see sanitizer.h. Compilers make the program call the sanitizer's start, whose name stands among the dynamic
 * ones: as what is wanted of a library (gcc), or as what the program itself offers (clang). */
#include "analysis/cli/sanitizer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_MAX    ((uint64_t)64 << 20)
#define SEGMENTS_MAX 256
#define ENTRIES_MAX  1024

static int read_at(int descriptor, void *to, size_t length, uint64_t offset)
{
    return offset <= INT64_MAX && pread(descriptor, to, length, (off_t)offset) == (ssize_t)length ? 0 : -1;
}

/* Where in the file an address lies; 0 when nowhere. */
static uint64_t offset_of(const Elf64_Phdr *segments, unsigned count, uint64_t address)
{
    for (unsigned i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr &&
            address - segments[i].p_vaddr < segments[i].p_filesz)
            return segments[i].p_offset + (address - segments[i].p_vaddr);
    return 0;
}

/* The dynamic names: one after another, each with its NUL, and one NUL more. To be freed; NULL: there are none. */
static char *read_names(int descriptor, const Elf64_Phdr *segments, unsigned count, size_t *length)
{
    uint64_t address = 0, bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        Elf64_Dyn entry;
        if (segments[i].p_type != PT_DYNAMIC)
            continue;
        for (unsigned k = 0; k < ENTRIES_MAX; k++) {
            if (read_at(descriptor, &entry, sizeof entry, segments[i].p_offset + k * sizeof entry) != 0 ||
                entry.d_tag == DT_NULL)
                break;
            address = entry.d_tag == DT_STRTAB ? entry.d_un.d_ptr : address;
            bytes = entry.d_tag == DT_STRSZ ? entry.d_un.d_val : bytes;
        }
    }
    uint64_t offset = offset_of(segments, count, address);
    char *names = offset != 0 && bytes > 0 && bytes <= NAMES_MAX ? calloc(1, bytes + 1) : NULL;
    if (names != NULL && read_at(descriptor, names, bytes, offset) != 0) {
        free(names);
        return NULL;
    }
    *length = bytes;
    return names;
}

const char *cli_sanitizer_of(int descriptor, const Elf64_Ehdr *header)
{
    static const struct {
        const char *start, *name;
    } known[] = {{"__asan_init", "address"},
                 {"__hwasan_init", "hwaddress"},
                 {"__tsan_init", "thread"},
                 {"__msan_init", "memory"}};
    Elf64_Phdr segments[SEGMENTS_MAX];
    unsigned count = header->e_phnum < SEGMENTS_MAX ? header->e_phnum : SEGMENTS_MAX;
    size_t length = 0;
    if (header->e_phentsize != sizeof *segments ||
        read_at(descriptor, segments, count * sizeof *segments, header->e_phoff) != 0)
        return NULL;
    char *names = read_names(descriptor, segments, count, &length);
    const char *found = NULL;
    for (size_t i = 0; names != NULL && found == NULL && i < sizeof known / sizeof *known; i++)
        if (memmem(names, length + 1, known[i].start, strlen(known[i].start) + 1) != NULL)
            found = known[i].name;
    free(names);
    return found;
}
