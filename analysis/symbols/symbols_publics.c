/* symbols_publics.c: see symbols_publics.h. Jumps are looked for in the instructions of x86-64. */
#include "analysis/symbols/symbols_publics.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

enum { HIDDEN_VERSION = 0x8000 };
#define CODE_MOST (UINT64_C(64) << 20) /* more than that is not searched */

/* ---- names ---- */

static size_t underscores(const char *name)
{
    return strspn(name, "_");
}

/* By start; at one start the best name first: few leading underscores, then global before weak. */
static int compare_functions(const void *left, const void *right)
{
    const struct ta__public_function *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (underscores(a->name) != underscores(b->name))
        return underscores(a->name) < underscores(b->name) ? -1 : 1;
    if (a->is_weak != b->is_weak)
        return a->is_weak - b->is_weak;
    return strcmp(a->name, b->name);
}

static int add_symbols(struct ta__public_names *names, Elf *elf, Elf_Scn *section, Elf_Data *versions)
{
    GElf_Shdr header;
    Elf_Data *data = elf_getdata(section, NULL);
    if (data == NULL || gelf_getshdr(section, &header) == NULL || header.sh_entsize == 0)
        return 0;
    for (int i = 1; i < (int)(header.sh_size / header.sh_entsize); i++) {
        GElf_Sym symbol;
        GElf_Versym version = 0;
        if (gelf_getsym(data, i, &symbol) == NULL || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS ||
            (GELF_ST_TYPE(symbol.st_info) != STT_FUNC && GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC) ||
            GELF_ST_BIND(symbol.st_info) == STB_LOCAL ||
            (versions != NULL && gelf_getversym(versions, i, &version) != NULL && (version & HIDDEN_VERSION) != 0))
            continue;
        const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (name == NULL || *name == '\0')
            continue;
        if (ta__grow(&names->items, &names->capacity, names->count + 1, sizeof *names->items) != 0)
            return -1;
        names->items[names->count++] = (struct ta__public_function){symbol.st_value, symbol.st_value + symbol.st_size,
                                                                    name, GELF_ST_BIND(symbol.st_info) == STB_WEAK};
    }
    return 0;
}

int ta__public_names_read(struct ta__public_names *names, Elf *elf)
{
    Elf_Data *versions = NULL;
    Elf_Scn *symbols = NULL;
    names->elf = elf;
    for (Elf_Scn *section = NULL; elf != NULL && (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL)
            continue;
        if (header.sh_type == SHT_DYNSYM)
            symbols = section;
        else if (header.sh_type == SHT_GNU_versym)
            versions = elf_getdata(section, NULL);
    }
    if (symbols == NULL)
        return 0;
    if (add_symbols(names, elf, symbols, versions) != 0)
        return -1;
    if (names->count > 0)
        qsort(names->items, names->count, sizeof *names->items, compare_functions);
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++)
        if (kept == 0 || names->items[kept - 1].start != names->items[i].start)
            names->items[kept++] = names->items[i];
    names->count = kept;
    return 0;
}

void ta__public_names_free(struct ta__public_names *names)
{
    free(names->items);
    free(names->jumps);
    memset(names, 0, sizeof *names);
}

/* ---- jumps ---- */

/* A jump or call to a place that is written in the instruction, which begins at `code`; 0 = none. */
static int branch_at(const uint8_t *code, size_t left, int64_t *distance, int *is_call)
{
    size_t length = 5;
    int32_t relative;
    if (left >= 6 && code[0] == 0x0F && (code[1] & 0xF0) == 0x80)
        length = 6;
    else if (left < 5 || (code[0] != 0xE8 && code[0] != 0xE9))
        return 0;
    memcpy(&relative, code + length - 4, sizeof relative);
    *distance = (int64_t)length + relative;
    *is_call = code[0] == 0xE8;
    return 1;
}

/* Calls visit() for each branch in the sections with code: -1 when that does. */
static int each_branch(struct ta__public_names *names,
                       int (*visit)(struct ta__public_names *names, uint64_t from, uint64_t to, int is_call))
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(names->elf, section)) != NULL;) {
        GElf_Shdr header;
        Elf_Data *data;
        if (gelf_getshdr(section, &header) == NULL || (header.sh_flags & SHF_EXECINSTR) == 0 ||
            header.sh_type != SHT_PROGBITS || (data = elf_rawdata(section, NULL)) == NULL || data->d_buf == NULL)
            continue;
        const uint8_t *code = data->d_buf;
        for (size_t i = 0; i < data->d_size; i++) {
            int64_t distance;
            int is_call;
            uint64_t from = header.sh_addr + i;
            if (branch_at(code + i, data->d_size - i, &distance, &is_call) &&
                visit(names, from, from + (uint64_t)distance, is_call) != 0)
                return -1;
        }
    }
    return 0;
}

static uint64_t code_bytes(Elf *elf)
{
    uint64_t bytes = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL && (header.sh_flags & SHF_EXECINSTR) != 0)
            bytes += header.sh_size;
    }
    return bytes;
}

/* The public function that holds the address, or NULL. */
static const struct ta__public_function *function_at(const struct ta__public_names *names, uint64_t address)
{
    size_t behind = ta__begun_by(names->items, names->count, sizeof *names->items, address);
    return behind > 0 && address < names->items[behind - 1].end ? &names->items[behind - 1] : NULL;
}

static int add_jump(struct ta__public_names *names, uint64_t from, uint64_t to, int is_call)
{
    const struct ta__public_function *function = is_call ? NULL : function_at(names, from);
    if (function == NULL || (to >= function->start && to < function->end))
        return 0;
    if (ta__grow(&names->jumps, &names->jump_capacity, names->jump_count + 1, sizeof *names->jumps) != 0)
        return -1;
    names->jumps[names->jump_count++] = (struct ta__public_jump){to, (uint32_t)(function - names->items), 0};
    return 0;
}

static struct ta__public_jump *jump_to(const struct ta__public_names *names, uint64_t target)
{
    size_t behind = ta__begun_by(names->jumps, names->jump_count, sizeof *names->jumps, target);
    return behind > 0 && names->jumps[behind - 1].target == target ? &names->jumps[behind - 1] : NULL;
}

static int note_other(struct ta__public_names *names, uint64_t from, uint64_t to, int is_call)
{
    struct ta__public_jump *jump = jump_to(names, to);
    if (jump != NULL && (is_call || function_at(names, from) != &names->items[jump->from]))
        jump->is_other = 1;
    return 0;
}

static int compare_jumps(const void *left, const void *right)
{
    const struct ta__public_jump *a = left, *b = right;
    if (a->target != b->target)
        return a->target < b->target ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* First the jumps of public functions, then who else goes where they lead. Without memory there are none. */
static void find_jumps(struct ta__public_names *names)
{
    GElf_Ehdr header;
    names->has_jumps = 1;
    if (names->count == 0 || gelf_getehdr(names->elf, &header) == NULL || header.e_machine != EM_X86_64 ||
        code_bytes(names->elf) > CODE_MOST)
        return;
    if (each_branch(names, add_jump) != 0)
        names->jump_count = 0;
    if (names->jump_count == 0)
        return;
    qsort(names->jumps, names->jump_count, sizeof *names->jumps, compare_jumps);
    size_t kept = 0;
    for (size_t i = 0; i < names->jump_count; i++)
        if (kept == 0 || names->jumps[kept - 1].target != names->jumps[i].target)
            names->jumps[kept++] = names->jumps[i];
    names->jump_count = kept;
    each_branch(names, note_other);
}

/* ---- asking ---- */

static int is_mangled(const char *name)
{
    return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

const char *ta__public_name(struct ta__public_names *names, uint64_t start, const char *name)
{
    if ((*name != '\0' && *name != '_') || is_mangled(name) || names->count == 0)
        return NULL;
    const struct ta__public_function *function = function_at(names, start);
    if (function != NULL && function->start == start)
        return *name == '\0' || underscores(function->name) < underscores(name) ? function->name : NULL;
    if (*name != '\0' && underscores(name) < 2)
        return NULL;
    if (!names->has_jumps)
        find_jumps(names);
    const struct ta__public_jump *jump = jump_to(names, start);
    return jump != NULL && !jump->is_other ? names->items[jump->from].name : NULL;
}
