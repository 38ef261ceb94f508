/* elf_file.h: the file of a loaded object, mapped for the moment: what function_names.c and line_numbers.c read. No malloc;
 * every offset in it is to be checked. */
#ifndef TA_TRACE_UNWIND_ELF_FILE_H
#define TA_TRACE_UNWIND_ELF_FILE_H

#include <elf.h>
#include <stdint.h>

struct ta__elf_file {
    const uint8_t *bytes;
    uint64_t size;
    const Elf64_Shdr *sections;
    unsigned section_count, names;
};

/* 0 when it is not there, no file of this machine, or has another build id (length 0: believe it). */
int ta__elf_open(struct ta__elf_file *file, const char *path, const uint8_t *build_id, unsigned length);
void ta__elf_close(const struct ta__elf_file *file);
int ta__elf_is_inside(const struct ta__elf_file *file, uint64_t offset, uint64_t bytes);
/* A section whose bytes are all there, perhaps compressed; NULL: none. */
const Elf64_Shdr *ta__elf_section(const struct ta__elf_file *file, const char *name);
/* Where the debug file is installed: /usr/lib/debug/.build-id/ab/cdef….debug; 0 when there is no build id. */
int ta__elf_debug_path(const uint8_t *build_id, unsigned length, char path[128]);

#endif
