/* debug_section.c: see debug_section.h. */
#include "trace/unwind/debug_section.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "trace/unwind/inflate.h"

/* The second is of gABI, but younger than some elf.h. */
enum { BY_ZLIB = ELFCOMPRESS_ZLIB, BY_ZSTD = 2 };
/* What a damaged header may ask for. */
#define UNPACKED_MOST ((uint64_t)1 << 30)

int (*ta__unpack_zstd)(uint8_t *to, size_t room, const uint8_t *from, size_t length);

static int unpack(unsigned kind, uint8_t *to, size_t room, const uint8_t *from, size_t length)
{
    if (kind == BY_ZLIB)
        return ta__inflate(to, room, from, length);
    return kind == BY_ZSTD && ta__unpack_zstd != NULL && ta__unpack_zstd(to, room, from, length);
}

static void open_packed(struct ta__debug_section *section, unsigned kind, uint64_t size,
                        const struct ta__cursor *packed)
{
    uint8_t *to = !packed->failed && size != 0 && size <= UNPACKED_MOST ? ta__memory_map(size) : NULL;
    if (to == NULL)
        return;
    if (unpack(kind, to, size, packed->at, (size_t)(packed->end - packed->at)))
        *section = (struct ta__debug_section){to, size, to};
    else
        ta__memory_unmap(to, size);
}

static struct ta__cursor bytes_of(const struct ta__elf_file *file, const Elf64_Shdr *header)
{
    const uint8_t *bytes = file->bytes + header->sh_offset;
    return (struct ta__cursor){bytes, bytes + header->sh_size, 0};
}

/* Elf64_Chdr: kind, 4 unused bytes, size, alignment. */
static void open_compressed(struct ta__debug_section *section, struct ta__cursor packed)
{
    unsigned kind = (unsigned)ta__get_fixed(&packed, 4);
    ta__get_fixed(&packed, 4);
    uint64_t size = ta__get_fixed(&packed, 8);
    ta__get_fixed(&packed, 8);
    open_packed(section, kind, size, &packed);
}

/* "ZLIB" and the size, its highest byte first. */
static void open_old(const struct ta__elf_file *file, const char *name, struct ta__debug_section *section)
{
    char old[32] = ".z";
    strncat(old, name + 1, sizeof old - 3);
    const Elf64_Shdr *header = ta__elf_section(file, old);
    if (header == NULL)
        return;
    struct ta__cursor packed = bytes_of(file, header);
    const uint8_t *magic = ta__get_bytes(&packed, 4), *digits = ta__get_bytes(&packed, 8);
    uint64_t size = 0;
    for (int i = 0; i < 8 && digits != NULL; i++)
        size = size << 8 | digits[i];
    if (digits != NULL && memcmp(magic, "ZLIB", 4) == 0)
        open_packed(section, BY_ZLIB, size, &packed);
}

void ta__debug_section_open(const struct ta__elf_file *file, const char *name, struct ta__debug_section *section)
{
    const Elf64_Shdr *header = ta__elf_section(file, name);
    *section = (struct ta__debug_section){.size = 0};
    if (header == NULL)
        open_old(file, name, section);
    else if ((header->sh_flags & SHF_COMPRESSED) != 0)
        open_compressed(section, bytes_of(file, header));
    else
        *section = (struct ta__debug_section){file->bytes + header->sh_offset, header->sh_size, NULL};
}

void ta__debug_section_close(struct ta__debug_section *section)
{
    if (section->unpacked != NULL)
        ta__memory_unmap(section->unpacked, section->size);
    *section = (struct ta__debug_section){.size = 0};
}
