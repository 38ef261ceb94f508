/* program.c: see program.h. Reads the first bytes of the file as the kernel would, and the headers that decide whether
 * the loader preloads anything. What cannot be read is left to the kernel to refuse. */
#include "analysis/cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "analysis/cli/sanitizer.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#endif

/* How many interpreters may stand behind one another, as in the kernel. */
#define INTERPRETERS_MAX 5

struct check {
    char *reason;
    size_t reason_size;
};

static enum cli_program_state refuse(const struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static enum cli_program_state refuse(const struct check *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->reason, check->reason_size, format, arguments);
    va_end(arguments);
    return CLI_PROGRAM_REFUSED;
}

/* ---- finding it ---- */

static int is_program(const char *path, int *is_denied)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    if (access(path, X_OK) == 0)
        return 1;
    *is_denied = 1;
    return 0;
}

static enum cli_program_state find(const char *name, char *path, size_t size, const struct check *check)
{
    int is_denied = 0;
    if (*name == '\0')
        return refuse(check, "the program's name is empty"), CLI_PROGRAM_MISSING;
    if (strchr(name, '/') != NULL) {
        struct stat status;
        snprintf(path, size, "%s", name);
        if (is_program(path, &is_denied))
            return CLI_PROGRAM_FINE;
        if (stat(path, &status) != 0)
            return refuse(check, "%s: %s", name, strerror(errno)), CLI_PROGRAM_MISSING;
        if (S_ISDIR(status.st_mode))
            return refuse(check, "%s: is a folder, not a program", name);
        return refuse(check, "%s: is not executable (chmod +x it, or name its interpreter before it)", name);
    }
    const char *folders = getenv("PATH");
    for (const char *at = folders != NULL ? folders : "/usr/bin:/bin"; *at != '\0';) {
        size_t length = strcspn(at, ":");
        snprintf(path, size, "%.*s%s%s", (int)length, at, length > 0 ? "/" : "./", name);
        if (is_program(path, &is_denied))
            return CLI_PROGRAM_FINE;
        at += length + (at[length] == ':');
    }
    char *end;
    unsigned long frames = strtoul(name, &end, 10);
    if (*end == '\0')
        return refuse(check, "%s: no such program in PATH (a number of frames is given as --nframe=%lu)", name, frames),
               CLI_PROGRAM_MISSING;
    if (is_program(name, &is_denied))
        return refuse(check, "%s: no such program in PATH (for the one in this folder say ./%s)", name, name),
               CLI_PROGRAM_MISSING;
    return refuse(check, "%s: %s", name, is_denied ? "permission denied" : "no such program in PATH"),
           CLI_PROGRAM_MISSING;
}

/* ---- looking at it ---- */

static const char *machine_name(unsigned machine)
{
    static char other[32];
    switch (machine) {
    case EM_386:
        return "32-bit x86";
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "64-bit ARM";
    case EM_ARM:
        return "32-bit ARM";
    case EM_RISCV:
        return "RISC-V";
    case EM_PPC64:
        return "64-bit POWER";
    case EM_S390:
        return "S/390";
    default:
        snprintf(other, sizeof other, "machine number %u", machine);
        return other;
    }
}

/* The loader that the program names; "" when it names none. -1 when the headers make no sense. */
static int read_interpreter(int descriptor, const Elf64_Ehdr *header, char *loader, size_t size)
{
    *loader = '\0';
    if (header->e_phentsize != sizeof(Elf64_Phdr))
        return -1;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (pread(descriptor, &segment, sizeof segment, (off_t)(header->e_phoff + i * sizeof segment)) !=
            (ssize_t)sizeof segment)
            return -1;
        if (segment.p_type != PT_INTERP)
            continue;
        size_t length = segment.p_filesz < size - 1 ? (size_t)segment.p_filesz : size - 1;
        if (pread(descriptor, loader, length, (off_t)segment.p_offset) != (ssize_t)length)
            return -1;
        loader[length] = '\0';
        return 0;
    }
    return 0;
}

static enum cli_program_state check_elf(int descriptor, const char *path, const Elf64_Ehdr *header,
                                        const struct check *check)
{
    char loader[PATH_MAX];
    const unsigned char *identity = header->e_ident;
    unsigned machine = identity[EI_DATA] == ELFDATA2MSB ? __builtin_bswap16(header->e_machine) : header->e_machine;
    if (identity[EI_CLASS] != ELFCLASS64 || identity[EI_DATA] != ELFDATA2LSB || machine != OWN_MACHINE)
        return refuse(check,
                      "%s: is a program for %s%s, and this tracealloc traces %s: build tracealloc for it, or run a "
                      "native build of the program",
                      path, identity[EI_CLASS] == ELFCLASS32 && machine == EM_X86_64 ? "32-bit " : "",
                      machine_name(machine), machine_name(OWN_MACHINE));
    if (read_interpreter(descriptor, header, loader, sizeof loader) != 0)
        return refuse(check, "%s: is a damaged ELF file", path);
    if (*loader == '\0')
        return refuse(check,
                      "%s: is linked statically, so nothing can be preloaded: link it dynamically, or link "
                      "libtracealloc.a into it and set TRACEALLOC=65535 and TRACEALLOC_OPTIONS=output=FILE.ta",
                      path);
    if (strstr(loader, "ld-musl") != NULL)
        return refuse(
            check, "%s: uses the C library musl, and libtracealloc is built for glibc: build tracealloc there", path);
    if (access(loader, X_OK) != 0)
        return refuse(check, "%s: wants the loader %s, which is not here: install the C library that it belongs to",
                      path, loader);
    const char *sanitizer = cli_sanitizer_of(descriptor, header);
    if (sanitizer != NULL)
        return refuse(check,
                      "%s: is built with -fsanitize=%s, which brings an allocator of its own: trace a build without it",
                      path, sanitizer);
    return CLI_PROGRAM_FINE;
}

/* The kernel hides LD_PRELOAD from programs that run with other rights than the caller's. */
static enum cli_program_state check_rights(int descriptor, const char *path, const struct check *check)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return CLI_PROGRAM_FINE;
    const char *what = NULL;
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
        what = "set-uid";
    else if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getgid())
        what = "set-gid";
    else if (getuid() != 0 && fgetxattr(descriptor, "security.capability", NULL, 0) > 0)
        what = "with capabilities of its own";
    if (what == NULL)
        return CLI_PROGRAM_FINE;
    return refuse(check,
                  "%s: is %s, so the loader ignores what is preloaded: trace a copy of it (cp drops the bit), or run "
                  "tracealloc as the user that it switches to",
                  path, what);
}

static enum cli_program_state check_file(const char *path, const struct check *check, int depth);

static enum cli_program_state check_script(const char *path, char *line, const struct check *check, int depth)
{
    line[strcspn(line, "\r\n")] = '\0';
    char *interpreter = line + 2 + strspn(line + 2, " \t");
    interpreter[strcspn(interpreter, " \t")] = '\0';
    if (*interpreter == '\0')
        return refuse(check, "%s: its first line names no interpreter", path);
    if (access(interpreter, F_OK) != 0)
        return refuse(check, "%s: its interpreter %s is not here: install it, or correct the first line", path,
                      interpreter);
    if (depth == 0)
        return refuse(check, "%s: too many interpreters behind one another", path);
    return check_file(interpreter, check, depth - 1);
}

static enum cli_program_state check_file(const char *path, const struct check *check, int depth)
{
    union {
        Elf64_Ehdr header;
        char text[256];
    } start;
    memset(&start, 0, sizeof start);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return errno == EACCES && access(path, X_OK) == 0 ? CLI_PROGRAM_FINE
                                                          : refuse(check, "%s: %s", path, strerror(errno));
    enum cli_program_state state = CLI_PROGRAM_FINE;
    ssize_t got = read(descriptor, &start, sizeof start - 1);
    if (got >= (ssize_t)sizeof start.header && memcmp(start.text, ELFMAG, SELFMAG) == 0) {
        state = check_elf(descriptor, path, &start.header, check);
        if (state == CLI_PROGRAM_FINE)
            state = check_rights(descriptor, path, check);
    } else if (got >= 2 && memcmp(start.text, "#!", 2) == 0) {
        state = check_script(path, start.text, check, depth);
    }
    close(descriptor);
    return state;
}

enum cli_program_state cli_program_check(const char *name, char *path, size_t path_size, char *reason,
                                         size_t reason_size)
{
    const struct check check = {reason, reason_size};
    *reason = '\0';
    enum cli_program_state state = find(name, path, path_size, &check);
    return state == CLI_PROGRAM_FINE ? check_file(path, &check, INTERPRETERS_MAX) : state;
}
