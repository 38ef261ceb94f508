/* programs.c: the calls by which a process becomes another program (exec), as names of the library.
 *
 * The keeper sees that its owner has left its memory, but not whether it ended or went on as another program, when that
 * is over before it looks: so the one that goes is told here. And what is about to run may be unable to carry the
 * library: a static or set-uid program, one for another machine, an environment that was emptied. Its name goes to who
 * started the run, once for each time, so that nothing is missing in silence.
 *
 * All of this may happen in a child of vfork, in whose parent's memory we are: nothing is kept there but the mark, which
 * is the owner's alone. No malloc. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "snapshot/triggers/triggers.h"
#include "snapshot/write/file_request.h"
#include "tracealloc.h"

#if TRACEALLOC_OVERRIDE

extern char **environ;

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static int has_interpreter(int file, const Elf64_Ehdr *head)
{
    Elf64_Phdr part;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        off_t at = (off_t)(head->e_phoff + (uint64_t)i * head->e_phentsize);
        if (pread(file, &part, sizeof part, at) != (ssize_t)sizeof part)
            return 1;
        if (part.p_type == PT_INTERP)
            return 1;
    }
    return 0;
}

static int carries_library(char *const *environment)
{
    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, "LD_PRELOAD=", 11) == 0 && strstr(*environment, "libtracealloc") != NULL)
            return 1;
    return 0;
}

/* Why the program cannot be recorded; NULL when it can, or is none. Scripts are looked at when their interpreter is. */
static const char *obstacle(int folder, const char *path, char *const *environment)
{
    Elf64_Ehdr head;
    struct stat status;
    const char *found = NULL;
    int file = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return NULL;
    if (fstat(file, &status) != 0 || read(file, &head, sizeof head) != (ssize_t)sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        found = NULL;
    else if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != MACHINE)
        found = "is a program for another architecture";
    else if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid())
        found = "is set-uid, so that the loader ignores the library: run it as its owner";
    else if (!has_interpreter(file, &head))
        found = "is linked statically: link it with libtracealloc.a, or dynamically";
    else if (!carries_library(environment))
        found = "was started with an environment without LD_PRELOAD: keep that variable and TRACEALLOC*";
    close(file);
    return found;
}

/* With its parent: it may not have been told of before. */
static void tell_obstacle(const char *path, const char *why)
{
    char text[PATH_MAX + 24];
    char *at = ta__put_decimal(text, (uint64_t)getppid());
    *at++ = ' ';
    size_t length = strlen(path);
    length = length < PATH_MAX ? length : PATH_MAX;
    memcpy(at, path, length);
    at[length] = '\0';
    ta__opener_tell('U', getpid(), text, why);
}

static int execute(int folder, const char *path, char *const *arguments, char *const *environment, int flags)
{
    int is_owner = ta__triggers_executes(1);
    const char *why = ta__triggers_are_told() && *path != '\0' ? obstacle(folder, path, environment) : NULL;
    if (why != NULL)
        tell_obstacle(path, why);
    long result = folder == AT_FDCWD && flags == 0 ? syscall(SYS_execve, path, arguments, environment)
                                                   : syscall(SYS_execveat, folder, path, arguments, environment, flags);
    if (is_owner)
        (void)ta__triggers_executes(0);
    return (int)result;
}

TA_API int execve(const char *path, char *const arguments[], char *const environment[])
{
    return execute(AT_FDCWD, path, arguments, environment, 0);
}

TA_API int execveat(int folder, const char *path, char *const arguments[], char *const environment[], int flags);
TA_API int execveat(int folder, const char *path, char *const arguments[], char *const environment[], int flags)
{
    return execute(folder, path, arguments, environment, flags);
}

TA_API int fexecve(int file, char *const arguments[], char *const environment[])
{
    return execute(file, "", arguments, environment, AT_EMPTY_PATH);
}

TA_API int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

/* What is no program is a script for the shell. */
static int execute_or_shell(const char *path, char *const *arguments, char *const *environment)
{
    int count = 0;
    if (execve(path, arguments, environment) == 0 || errno != ENOEXEC)
        return -1;
    while (arguments[count] != NULL)
        count++;
    if (count > INT_MAX - 2)
        return errno = E2BIG, -1;
    const char **words = __builtin_alloca((size_t)(count + 2) * sizeof *words);
    words[0] = "/bin/sh";
    words[1] = path;
    for (int i = 1; i <= count; i++)
        words[i + 1] = arguments[i];
    if (count == 0)
        words[2] = NULL;
    return execve(words[0], (char *const *)words, environment);
}

static int is_elsewhere(int error)
{
    return error == ENOENT || error == ESTALE || error == ENOTDIR || error == ENODEV || error == ETIMEDOUT;
}

TA_API int execvpe(const char *name, char *const arguments[], char *const environment[])
{
    char path[PATH_MAX];
    int denied = 0;
    size_t length = strlen(name);
    if (length == 0)
        return errno = ENOENT, -1;
    if (strchr(name, '/') != NULL)
        return execute_or_shell(name, arguments, environment);
    const char *at = getenv("PATH");
    for (at = at != NULL ? at : "/bin:/usr/bin";; at++) {
        size_t folder = strcspn(at, ":");
        if (folder + length + 2 <= sizeof path) {
            memcpy(path, at, folder);
            path[folder] = '/';
            memcpy(path + folder + (folder > 0), name, length + 1);
            (void)execute_or_shell(path, arguments, environment);
            denied |= errno == EACCES;
            if (errno != EACCES && !is_elsewhere(errno))
                return -1;
        }
        at += folder;
        if (*at == '\0')
            break;
    }
    if (denied)
        errno = EACCES;
    return -1;
}

TA_API int execvp(const char *name, char *const arguments[])
{
    return execvpe(name, arguments, environ);
}

/* The words of a call, and for execle the environment behind their end. */
#define WITH_WORDS(first, call)                                                                                        \
    va_list rest;                                                                                                      \
    size_t count = 1;                                                                                                  \
    va_start(rest, first);                                                                                             \
    while (va_arg(rest, const char *) != NULL)                                                                         \
        count++;                                                                                                       \
    va_end(rest);                                                                                                      \
    char **words = __builtin_alloca((count + 1) * sizeof *words);                                                      \
    words[0] = (char *)(uintptr_t)(first);                                                                             \
    va_start(rest, first);                                                                                             \
    for (size_t i = 1; i <= count; i++)                                                                                \
        words[i] = va_arg(rest, char *);                                                                               \
    char *const *environment __attribute__((unused)) = environ;                                                        \
    call;                                                                                                              \
    va_end(rest);                                                                                                      \
    return result

TA_API int execl(const char *path, const char *first, ...)
{
    int result;
    WITH_WORDS(first, result = execv(path, words));
}

TA_API int execlp(const char *name, const char *first, ...)
{
    int result;
    WITH_WORDS(first, result = execvp(name, words));
}

TA_API int execle(const char *path, const char *first, ...)
{
    int result;
    WITH_WORDS(first, environment = va_arg(rest, char *const *); result = execve(path, words, environment));
}

#endif
