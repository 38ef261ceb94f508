/* symbols_module.c: finds, verifies and opens the file of a module through libdwfl.
 *
 * Order of search: the folders that TRACEALLOC_SYMBOLS names; the recorded path; for the vdso our own process's copy; then, when the file is gone or another one
 * took its place, what the build-id directories (and a debuginfod server, when the user's environment names one) have
 * under the recorded build id. Whatever is opened must carry that build id. libdwfl then finds separate debug files by
 * build id or .gnu_debuglink, shared ones by .gnu_debugaltlink, and mini debug information by itself. */
#include "analysis/symbols/symbols_module.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/arrays.h"
#include "analysis/symbols/symbols_publics.h"

#define BUILD_ID_MAX 64
#define DEFAULT_PATH ":.debug:/usr/lib/debug"
#define OPEN_ROOM    ((uint64_t)4 << 20) /* for what libdwfl keeps of a file and its symbol tables */

static const char too_little_memory[] = "its debug information wants more memory than there is";

static void set_reason(struct ta__elf_module *module, enum ta__symbolizer_state state, const char *reason)
{
    module->state = state;
    snprintf(module->reason, sizeof module->reason, "%s", reason);
}

int ta__has_room(uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED && munmap(at, bytes) == 0;
}

enum match { MATCHES, DIFFERS, NO_ELF };

/* Compares the build id of an open file; recorded length 0 accepts any ELF file. */
static enum match match_build_id(int fd, const struct ta__symbolizer_module *recorded)
{
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (elf == NULL)
        return NO_ELF;
    enum match match = NO_ELF;
    if (elf_kind(elf) == ELF_K_ELF) {
        const void *id = NULL;
        ssize_t length = recorded->build_id_length > 0 ? dwelf_elf_gnu_build_id(elf, &id) : 0;
        int same = length == (ssize_t)recorded->build_id_length &&
                   (length == 0 || memcmp(id, recorded->build_id, (size_t)length) == 0);
        match = same ? MATCHES : DIFFERS;
    }
    elf_end(elf);
    return match;
}

/* Regular files only: opening a pipe or a device must neither wait nor have effects. */
static int open_regular(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

static int is_vdso(const char *path)
{
    return strncmp(path, "[vdso", 5) == 0 || strncmp(path, "linux-vdso.so", 13) == 0 ||
           strncmp(path, "linux-gate.so", 13) == 0;
}

/* The kernel maps the same image into every process, ours included. Its size is that of what its headers describe. */
static int open_own_vdso(void)
{
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (image == NULL)
        return -1;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image;
    size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(image + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset + segments[i].p_filesz > size)
            size = segments[i].p_offset + segments[i].p_filesz;
    }
    int fd = memfd_create("vdso", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, image, size) != (ssize_t)size) {
        close(fd);
        return -1;
    }
    return fd;
}

/* DIRECTORY/.build-id/ab/cdef…[.debug] for each absolute DIRECTORY of the debug path. */
static int open_by_build_id(const struct ta__symbolizer_module *recorded, const char *debug_path, char *found,
                            size_t found_size)
{
    if (recorded->build_id_length < 2 || recorded->build_id_length > BUILD_ID_MAX)
        return -1;
    char hex[2 * BUILD_ID_MAX + 1];
    for (uint32_t i = 0; i < recorded->build_id_length; i++)
        snprintf(hex + 2 * i, 3, "%02x", recorded->build_id[i]);

    static const char *const suffixes[] = {"", ".debug"};
    for (const char *at = debug_path; *at != '\0'; at += *at == ':') {
        size_t length = strcspn(at, ":");
        const char *directory = at;
        at += length;
        if (length > 0 && (*directory == '+' || *directory == '-')) {
            directory++;
            length--;
        }
        if (length == 0 || *directory != '/')
            continue;
        for (size_t i = 0; i < 2; i++) {
            int written = snprintf(found, found_size, "%.*s/.build-id/%.2s/%s%s", (int)length, directory, hex, hex + 2,
                                   suffixes[i]);
            if (written < 0 || (size_t)written >= found_size)
                continue;
            int fd = open_regular(found);
            if (fd < 0)
                continue;
            if (match_build_id(fd, recorded) == MATCHES)
                return fd;
            close(fd);
        }
    }
    return -1;
}

/* From a debuginfod server, when the environment names some: libdwfl asks them for the file of a build id. */
static int open_from_server(const struct ta__symbolizer_module *recorded)
{
    const char *servers = getenv("DEBUGINFOD_URLS");
    if (servers == NULL || *servers == '\0' || recorded->build_id_length == 0)
        return -1;
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
    };
    int fd = -1;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (dwfl == NULL)
        return -1;
    dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl_report_module(dwfl, "module", 0, 1);
    if (module != NULL && dwfl_module_report_build_id(module, recorded->build_id, recorded->build_id_length, 0) == 0) {
        char *name = NULL;
        Elf *elf = NULL;
        fd = dwfl_build_id_find_elf(module, NULL, "module", 0, &name, &elf);
        free(name);
    }
    dwfl_report_end(dwfl, NULL, NULL);
    dwfl_end(dwfl);
    if (fd >= 0 && match_build_id(fd, recorded) != MATCHES) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* A copy in a folder that the user names: at its whole path in there, or by its name alone. */
static int open_copy(const struct ta__symbolizer_module *recorded, char *found, size_t found_size)
{
    const char *folders = getenv("TRACEALLOC_SYMBOLS"),
               *slash = strrchr(recorded->path != NULL ? recorded->path : "", '/');
    if (folders == NULL || slash == NULL || recorded->build_id_length == 0)
        return -1;
    for (const char *at = folders; *at != '\0'; at += *at == ':') {
        size_t length = strcspn(at, ":");
        const char *const names[] = {recorded->path, slash};
        for (size_t i = 0; i < 2 && length > 0; i++) {
            int size = snprintf(found, found_size, "%.*s%s", (int)length, at, names[i]);
            int fd = size > 0 && (size_t)size < found_size ? open_regular(found) : -1;
            if (fd >= 0 && match_build_id(fd, recorded) == MATCHES)
                return fd;
            if (fd >= 0)
                close(fd);
        }
        at += length;
    }
    return -1;
}

/* Opens what may be used for the module, or -1 with the reason noted. `found` is where its companions are looked for.
 */
static int open_verified(struct ta__elf_module *module, const struct ta__symbolizer_module *recorded,
                         const char *debug_path, char *found, size_t found_size)
{
    const char *path = recorded->path != NULL ? recorded->path : "";
    int vdso = is_vdso(path);
    int fd = open_copy(recorded, found, found_size);
    if (fd >= 0)
        return fd;
    snprintf(found, found_size, "%s", path);
    fd = vdso ? open_own_vdso() : open_regular(path);
    if (fd < 0) {
        char text[sizeof module->reason];
        snprintf(text, sizeof text, "cannot be opened: %s", strerror(errno));
        set_reason(module, TA__MODULE_ABSENT, vdso ? "this kernel shows no vdso" : text);
    } else if (vdso && recorded->build_id_length == 0) {
        set_reason(module, TA__MODULE_ABSENT, "its build id was not recorded");
    } else {
        switch (match_build_id(fd, recorded)) {
        case MATCHES:
            return fd;
        case DIFFERS:
            set_reason(module, TA__MODULE_DIFFERS, "its build id is not the recorded one: the file has changed");
            break;
        case NO_ELF:
            set_reason(module, TA__MODULE_UNREADABLE, "not an ELF file");
            break;
        }
    }
    if (fd >= 0)
        close(fd);
    fd = open_by_build_id(recorded, debug_path, found, found_size);
    return fd >= 0 ? fd : open_from_server(recorded);
}

/* From the sections, or from the segments of a file without any. */
static int read_code_ranges(struct ta__elf_module *module, Elf *elf)
{
    size_t sections = 0, segments = 0;
    if (elf == NULL || elf_getshdrnum(elf, &sections) != 0 || elf_getphdrnum(elf, &segments) != 0)
        return 0;
    module->code = malloc((sections + segments + 1) * sizeof *module->code);
    if (module->code == NULL)
        return -1;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL && (header.sh_flags & SHF_EXECINSTR) &&
            (header.sh_flags & SHF_ALLOC))
            module->code[module->code_count++] =
                (struct ta__code_range){header.sh_addr, header.sh_addr + header.sh_size};
    }
    for (size_t i = 0; i < segments && sections == 0; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) != NULL && segment.p_type == PT_LOAD && (segment.p_flags & PF_X))
            module->code[module->code_count++] =
                (struct ta__code_range){segment.p_vaddr, segment.p_vaddr + segment.p_memsz};
    }
    return 0;
}

const struct ta__code_range *ta__elf_module_code(const struct ta__elf_module *module, uint64_t address)
{
    for (size_t i = 0; i < module->code_count; i++) {
        if (address >= module->code[i].start && address < module->code[i].end)
            return &module->code[i];
    }
    return NULL;
}

/* Of several names for one place the one that people write: not local, few leading underscores, then global before weak
 * and functions before labels. */
static uint32_t rank_symbol(const GElf_Sym *symbol, const char *name)
{
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    size_t underscores = strspn(name, "_");
    uint32_t rank = binding == STB_LOCAL;
    rank = rank * 16 + (uint32_t)(underscores < 15 ? underscores : 15);
    rank = rank * 2 + (binding == STB_WEAK);
    return rank * 2 + (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE);
}

/* By start; what is at one start from the longest to the shortest, the preferred name last: a search from behind finds
 * the best name of the smallest symbol first. */
static int compare_symbols(const void *left, const void *right)
{
    const struct ta__elf_symbol *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    return -strcmp(a->name, b->name);
}

static int read_symbols(struct ta__elf_module *module, Dwfl_Module *dwfl_module)
{
    int count = dwfl_module_getsymtab(dwfl_module);
    if (count <= 1)
        return 0;
    module->symbols = malloc((size_t)count * sizeof *module->symbols);
    module->symbol_reach = malloc((size_t)count * sizeof *module->symbol_reach);
    if (module->symbols == NULL || module->symbol_reach == NULL)
        return -1;

    size_t used = 0;
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        GElf_Word section;
        const char *name = dwfl_module_getsym_info(dwfl_module, i, &symbol, &address, &section, NULL, NULL);
        unsigned type = GELF_ST_TYPE(symbol.st_info);
        int code = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
        if (name == NULL || *name == '\0' || !code || section == SHN_UNDEF || section == SHN_ABS)
            continue;
        if (ta__elf_module_code(module, address) == NULL)
            continue;
        uint64_t end = address + symbol.st_size;
        module->symbols[used++] = (struct ta__elf_symbol){
            .start = address, .end = end < address ? address : end, .name = name, .rank = rank_symbol(&symbol, name)};
    }
    qsort(module->symbols, used, sizeof *module->symbols, compare_symbols);

    uint64_t next = UINT64_MAX; /* start of the symbol behind, a different place */
    for (size_t i = used; i-- > 0;) {
        struct ta__elf_symbol *symbol = &module->symbols[i];
        if (i + 1 < used && module->symbols[i + 1].start != symbol->start)
            next = module->symbols[i + 1].start;
        if (symbol->end == symbol->start) {
            uint64_t code_end = ta__elf_module_code(module, symbol->start)->end;
            symbol->end = next < code_end ? next : code_end;
        }
    }
    uint64_t reach = 0;
    for (size_t i = 0; i < used; i++) {
        reach = module->symbols[i].end > reach ? module->symbols[i].end : reach;
        module->symbol_reach[i] = reach;
    }
    module->symbol_count = used;
    return 0;
}

const struct ta__elf_symbol *ta__elf_module_symbol(const struct ta__elf_module *module, uint64_t address)
{
    size_t low = ta__begun_by(module->symbols, module->symbol_count, sizeof *module->symbols, address);
    for (size_t i = low; i-- > 0 && module->symbol_reach[i] > address;) {
        if (module->symbols[i].end > address)
            return &module->symbols[i];
    }
    return NULL;
}

/* How much there is to read. libdw has already decompressed what was compressed, and the headers say so; but then the
 * sections are together larger than the file. */
static uint64_t debug_bytes(Elf *elf)
{
    size_t names, file_bytes = 0;
    if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0 || elf_rawfile(elf, &file_bytes) == NULL)
        return 0;
    uint64_t bytes = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) != NULL ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name != NULL && strncmp(name, ".debug_", 7) == 0 && !(header.sh_flags & SHF_COMPRESSED))
            bytes += header.sh_size;
    }
    return bytes < file_bytes ? bytes : 0;
}

void ta__elf_module_open(struct ta__elf_module *module, const struct ta__symbolizer_module *recorded,
                         const char *debug_path)
{
    memset(module, 0, sizeof *module);
    debug_path = debug_path != NULL ? debug_path : DEFAULT_PATH;
    elf_version(EV_CURRENT);
    if (!ta__has_room(OPEN_ROOM)) {
        set_reason(module, TA__MODULE_UNREADABLE, too_little_memory);
        return;
    }

    char found[4096];
    int fd = open_verified(module, recorded, debug_path, found, sizeof found);
    if (fd < 0)
        return;

    module->debug_path = strdup(debug_path);
    module->callbacks = (Dwfl_Callbacks){
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &module->debug_path,
    };
    module->dwfl = module->debug_path != NULL ? dwfl_begin(&module->callbacks) : NULL;
    Dwfl_Module *dwfl_module = NULL;
    if (module->dwfl != NULL) {
        dwfl_report_begin(module->dwfl);
        dwfl_module = dwfl_report_elf(module->dwfl, found, found, fd, 0, true);
        dwfl_report_end(module->dwfl, NULL, NULL);
    }
    if (dwfl_module == NULL) {
        set_reason(module, TA__MODULE_UNREADABLE, module->debug_path != NULL ? dwfl_errmsg(-1) : "out of memory");
        close(fd);
        return;
    }

    GElf_Addr bias = 0;
    Elf *elf = dwfl_module_getelf(dwfl_module, &bias);
    module->dwarf = dwfl_module_getdwarf(dwfl_module, &module->dwarf_bias);
    if (module->dwarf != NULL) {
        set_reason(module, TA__MODULE_LINES, "");
        module->debug_bytes = debug_bytes(dwarf_getelf(module->dwarf));
    } else {
        set_reason(module, TA__MODULE_NAMES_ONLY, dwfl_errmsg(-1));
    }
    module->elf = elf;
    module->publics = ta__new_array(1, sizeof *module->publics);
    if (read_code_ranges(module, elf) != 0 || read_symbols(module, dwfl_module) != 0 || module->publics == NULL ||
        ta__public_names_read(module->publics, elf) != 0)
        module->no_memory = 1;
}

void ta__elf_module_forget_lines(struct ta__elf_module *module)
{
    module->dwarf = NULL;
    set_reason(module, TA__MODULE_NAMES_ONLY, too_little_memory);
}

void ta__elf_module_close(struct ta__elf_module *module)
{
    if (module->dwfl != NULL && !module->is_given_up)
        dwfl_end(module->dwfl);
    free(module->debug_path);
    free(module->code);
    free(module->symbols);
    free(module->symbol_reach);
    if (module->publics != NULL)
        ta__public_names_free(module->publics);
    free(module->publics);
    memset(module, 0, sizeof *module);
}
