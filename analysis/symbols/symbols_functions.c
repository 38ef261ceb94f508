/* symbols_functions.c: see symbols_functions.h. libdw splits the section into its entries; the two numbers of each entry
 * are read here, in the encodings that compilers write. */
#include "analysis/symbols/symbols_functions.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

#define ENCODING_UNKNOWN 0xFF

struct section {
    const unsigned char *ident;
    Elf_Data *data;
    uint64_t address;
    Dwarf_Off common; /* the common entry that was read last, and its encoding of addresses */
    uint8_t encoding;
};

static size_t width_of(uint8_t encoding)
{
    switch (encoding & 0x07) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
        return 8;
    case DW_EH_PE_udata4:
        return 4;
    case DW_EH_PE_udata2:
        return 2;
    default:
        return 0;
    }
}

/* A number of the section's own byte order, which is this machine's: other files are not read. */
static uint64_t number_at(const uint8_t *bytes, uint8_t encoding)
{
    uint64_t number = 0;
    size_t width = width_of(encoding);
    memcpy(&number, bytes, width);
    if ((encoding & DW_EH_PE_signed) && width < 8 && (number >> (8 * width - 1)) != 0)
        number |= UINT64_MAX << (8 * width);
    return number;
}

/* How the entries that refer to this common one write addresses: what its letter 'R' says. */
static uint8_t encoding_of(const Dwarf_CIE *common)
{
    const char *letters = common->augmentation;
    const uint8_t *at = common->augmentation_data, *end = at + common->augmentation_data_size;
    if (*letters == '\0')
        return DW_EH_PE_absptr;
    if (*letters != 'z' || at == NULL)
        return ENCODING_UNKNOWN;
    for (letters++; *letters != '\0' && at < end; letters++) {
        if (*letters == 'R')
            return *at;
        if (*letters == 'L') {
            at++;
        } else if (*letters == 'P') {
            size_t width = width_of(*at);
            if (width == 0 || (*at & 0x70) == DW_EH_PE_aligned)
                return ENCODING_UNKNOWN;
            at += 1 + width;
        } else if (*letters != 'S' && *letters != 'B') {
            return ENCODING_UNKNOWN;
        }
    }
    return strchr(letters, 'R') != NULL ? ENCODING_UNKNOWN : DW_EH_PE_absptr;
}

static uint8_t encoding_at(struct section *section, Dwarf_Off common)
{
    Dwarf_CFI_Entry entry;
    Dwarf_Off next;
    if (section->common == common)
        return section->encoding;
    section->common = common;
    section->encoding = ENCODING_UNKNOWN;
    if (dwarf_next_cfi(section->ident, section->data, true, common, &next, &entry) == 0 && dwarf_cfi_cie_p(&entry))
        section->encoding = encoding_of(&entry.cie);
    return section->encoding;
}

static int add_entry(struct ta__function_ranges *ranges, struct section *section, const Dwarf_FDE *entry)
{
    uint8_t encoding = encoding_at(section, entry->CIE_pointer);
    size_t width = encoding == ENCODING_UNKNOWN ? 0 : width_of(encoding);
    uint8_t base = encoding & 0x70;
    if (width == 0 || (encoding & DW_EH_PE_indirect) || (base != DW_EH_PE_absptr && base != DW_EH_PE_pcrel) ||
        (size_t)(entry->end - entry->start) < 2 * width)
        return 0;
    uint64_t start = number_at(entry->start, encoding);
    uint64_t length = number_at(entry->start + width, encoding & 0x07);
    if (base == DW_EH_PE_pcrel)
        start += section->address + (uint64_t)(entry->start - (const uint8_t *)section->data->d_buf);
    if (length == 0 || start + length < start)
        return 0;
    if (ta__grow(&ranges->items, &ranges->capacity, ranges->count + 1, sizeof *ranges->items) != 0)
        return -1;
    ranges->items[ranges->count++] = (struct ta__function_range){start, start + length};
    return 0;
}

static int read_section(struct ta__function_ranges *ranges, struct section *section)
{
    Dwarf_CFI_Entry entry;
    Dwarf_Off at = 0, next;
    int status;
    /* 1: the end; -1: an entry that is damaged, behind which there may be others if it says where it ends. */
    while ((status = dwarf_next_cfi(section->ident, section->data, true, at, &next, &entry)) != 1) {
        if (status == 0 && !dwarf_cfi_cie_p(&entry) && add_entry(ranges, section, &entry.fde) != 0)
            return -1;
        if (next <= at)
            break;
        at = next;
    }
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct ta__function_range *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->end == b->end ? 0 : a->end < b->end ? -1 : 1;
}

/* ---- main ---- */

#define START_MOST 42 /* bytes of _start that are looked at: the longest one, up to the call */

static int begins_with(const uint8_t **at, const uint8_t *end, const char *bytes, size_t length)
{
    if ((size_t)(end - *at) < length || memcmp(*at, bytes, length) != 0)
        return 0;
    *at += length;
    return 1;
}

/* The first argument of __libc_start_main is main. Every C library's crt1.o has this code and no other: it clears the
 * outermost frame, takes the arguments, aligns the stack, clears or loads init and fini, loads main, and calls. */
static uint64_t main_of_start(const uint8_t *start, size_t length, uint64_t address)
{
    const uint8_t *at = start, *end = start + length;
    int32_t number;
    begins_with(&at, end, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
    if (!begins_with(&at, end, "\x31\xed\x49\x89\xd1\x5e\x48\x89\xe2\x48\x83\xe4\xf0\x50\x54", 15))
        return 0;
    if (!begins_with(&at, end, "\x45\x31\xc0\x31\xc9", 5)) { /* before glibc 2.34 */
        if (end - at < 14 || !((at[0] == 0x49 && at[7] == 0x48) || (at[0] == 0x4c && at[7] == 0x48)))
            return 0;
        at += 14;
    }
    int is_relative = begins_with(&at, end, "\x48\x8d\x3d", 3);
    if ((!is_relative && !begins_with(&at, end, "\x48\xc7\xc7", 3)) || end - at < 6)
        return 0;
    memcpy(&number, at, sizeof number);
    at += sizeof number;
    if (!(at[0] == 0xff && at[1] == 0x15) && !(at[0] == 0x67 && at[1] == 0xe8) && at[0] != 0xe8)
        return 0;
    return is_relative ? address + (uint64_t)(at - start) + (uint64_t)(int64_t)number : (uint64_t)(uint32_t)number;
}

static uint64_t read_main(Elf *elf)
{
    GElf_Ehdr file;
    if (gelf_getehdr(elf, &file) == NULL || file.e_machine != EM_X86_64 || file.e_entry == 0)
        return 0;
    for (Elf_Scn *scanned = NULL; (scanned = elf_nextscn(elf, scanned)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(scanned, &header) == NULL || header.sh_type != SHT_PROGBITS ||
            file.e_entry - header.sh_addr >= header.sh_size || !(header.sh_flags & SHF_EXECINSTR))
            continue;
        Elf_Data *data = elf_rawdata(scanned, NULL);
        size_t offset = file.e_entry - header.sh_addr;
        if (data == NULL || data->d_buf == NULL || offset >= data->d_size)
            return 0;
        size_t length = data->d_size - offset < START_MOST ? data->d_size - offset : START_MOST;
        return main_of_start((const uint8_t *)data->d_buf + offset, length, file.e_entry);
    }
    return 0;
}

int ta__function_ranges_read(struct ta__function_ranges *ranges, Elf *elf)
{
    size_t names;
    const char *ident = elf == NULL ? NULL : elf_getident(elf, NULL);
    if (ident == NULL || ident[EI_DATA] != (BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB) ||
        ident[EI_CLASS] != ELFCLASS64 || elf_getshdrstrndx(elf, &names) != 0)
        return 0;
    for (Elf_Scn *scanned = NULL; (scanned = elf_nextscn(elf, scanned)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(scanned, &header) == NULL || header.sh_type == SHT_NOBITS)
            continue;
        const char *name = elf_strptr(elf, names, header.sh_name);
        Elf_Data *data = name != NULL && strcmp(name, ".eh_frame") == 0 ? elf_rawdata(scanned, NULL) : NULL;
        if (data == NULL || data->d_buf == NULL)
            continue;
        struct section section = {
            .ident = (const unsigned char *)ident, .data = data, .address = header.sh_addr, .common = (Dwarf_Off)-1};
        if (read_section(ranges, &section) != 0)
            return -1;
    }
    if (ranges->count > 0)
        qsort(ranges->items, ranges->count, sizeof *ranges->items, compare);
    ranges->main = read_main(elf);
    return 0;
}

void ta__function_ranges_free(struct ta__function_ranges *ranges)
{
    free(ranges->items);
    *ranges = (struct ta__function_ranges){0};
}

const struct ta__function_range *ta__function_ranges_find(const struct ta__function_ranges *ranges, uint64_t address)
{
    size_t low = ta__begun_by(ranges->items, ranges->count, sizeof *ranges->items, address);
    return low > 0 && ranges->items[low - 1].end > address ? &ranges->items[low - 1] : NULL;
}
