/* test_programs_told.c: what is told of a program that is about to run (snapshot/triggers/programs.c): whether it can be recorded,
 * and that the process leaves, and comes back where it cannot run. Nothing is executed here. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unity.h>

#include "snapshot/triggers/triggers.h"
#include "snapshot/write/file_request.h"

static char folder[] = "/tmp/ta_told.XXXXXX", path[64];
static char log_text[2000];
static int is_owner, is_told, result;
static uid_t user; /* 0 = as it is */

#define LOG(...) sprintf(log_text + strlen(log_text), __VA_ARGS__)

int ta__triggers_executes(int is_about_to)
{
    LOG("executes %d;", is_about_to);
    return is_owner;
}

int ta__triggers_are_told(void)
{
    return is_told;
}

void ta__opener_tell(char kind, pid_t process, const char *text, const char *more)
{
    char *rest;
    int is_parent = strtol(text, &rest, 10) == getppid() && *rest == ' ';
    LOG("%c %s %s: %s;", kind, process == getpid() && is_parent ? "it" : "?",
        strrchr(rest, '/') != NULL ? strrchr(rest, '/') : rest + 1, more);
}

uid_t geteuid(void)
{
    return user != 0 ? user : getuid();
}

long syscall(long number, ...)
{
    long words[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_execve || number == SYS_execveat) {
        LOG("%s%s;", number == SYS_execve ? "execve" : "execveat",
            number == SYS_execveat && words[4] != 0 ? " with flags" : "");
        return errno = EACCES, result;
    }
    long (*libc)(long, ...) = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    return libc(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

void setUp(void)
{
    snprintf(path, sizeof path, "%s/x", folder);
    log_text[0] = '\0';
    is_owner = is_told = 1;
    result = -1;
    user = 0;
}

void tearDown(void)
{
    unlink(path);
}

/* ---- programs ---- */

#if defined(__x86_64__)
enum { HERE = EM_X86_64 };
#else
enum { HERE = EM_AARCH64 };
#endif

struct kind {
    int class, machine, parts,
        interpreter; /* parts: program headers, of which that one is the interpreter's; -1 = none */
    size_t length;   /* of the file; 0 = whole */
    mode_t mode;
};

static void make(struct kind kind)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr parts[4];
    } file;
    memset(&file, 0, sizeof file);
    memcpy(file.head.e_ident, ELFMAG, SELFMAG);
    file.head.e_ident[EI_CLASS] = (unsigned char)kind.class;
    file.head.e_machine = (Elf64_Half)kind.machine;
    file.head.e_phoff = sizeof file.head;
    file.head.e_phentsize = sizeof *file.parts;
    file.head.e_phnum = (Elf64_Half)kind.parts;
    for (int i = 0; i < kind.parts && i < 4; i++)
        file.parts[i].p_type = i == kind.interpreter ? PT_INTERP : PT_LOAD;
    unlink(path);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    size_t length = kind.length != 0 ? kind.length : sizeof file.head + (size_t)kind.parts * sizeof *file.parts;
    TEST_ASSERT_EQUAL(length, write(descriptor, &file, length));
    TEST_ASSERT_EQUAL(0, fchmod(descriptor, 0755 | kind.mode));
    close(descriptor);
}

static char *const arguments[] = {(char *)(uintptr_t) "x", NULL};
static char *const with_library[] = {(char *)(uintptr_t) "A=1",
                                     (char *)(uintptr_t) "LD_PRELOAD=/usr/lib/libtracealloc.so", NULL};

static const char *executed(char *const *environment)
{
    log_text[0] = '\0';
    errno = 0;
    TEST_ASSERT_EQUAL(result, execve(path, arguments, environment));
    TEST_ASSERT_EQUAL(EACCES, errno);
    return log_text;
}

#define LEAVES       "executes 1;"
#define COMES_BACK   "execve;executes 0;"
#define TOLD(why)    LEAVES "U it /x: " why ";" COMES_BACK
#define ARCHITECTURE "is a program for another architecture"
#define STATIC       "is linked statically: link it with libtracealloc.a, or dynamically"
#define SET_UID      "is set-uid, so that the loader ignores the library: run it as its owner"
#define ENVIRONMENT  "was started with an environment without LD_PRELOAD: keep that variable and TRACEALLOC*"

static const struct kind usual = {ELFCLASS64, HERE, 2, 1, 0, 0};

static void test_what_can_be_recorded_or_is_no_program_is_not_told(void)
{
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library)); /* there is no such file */
    make(usual);
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library));
    make((struct kind){ELFCLASS64, HERE, 3, 0, 0, 0});
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library));
    make((struct kind){ELFCLASS32, HERE, 2, 1, sizeof(Elf64_Ehdr) - 1, 0}); /* too short to be one */
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library));
    int script = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    dprintf(script, "#!/bin/sh\n%*s\n", 100, "");
    close(script);
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(NULL));
    unlink(path);
    TEST_ASSERT_EQUAL(0, mkfifo(path, 0700)); /* looked at without waiting */
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(NULL));
}

static void test_other_architectures_are_told(void)
{
    make((struct kind){ELFCLASS32, HERE, 2, 1, 0, 0});
    TEST_ASSERT_EQUAL_STRING(TOLD(ARCHITECTURE), executed(with_library));
    make((struct kind){ELFCLASS64, EM_ARM, 2, 1, 0, 0});
    TEST_ASSERT_EQUAL_STRING(TOLD(ARCHITECTURE), executed(with_library));
    make((struct kind){ELFCLASS64, EM_ARM, 0, -1, 0, 0}); /* whatever else is wrong with it */
    TEST_ASSERT_EQUAL_STRING(TOLD(ARCHITECTURE), executed(NULL));
}

static void test_static_programs_are_told(void)
{
    make((struct kind){ELFCLASS64, HERE, 0, -1, 0, 0});
    TEST_ASSERT_EQUAL_STRING(TOLD(STATIC), executed(with_library));
    make((struct kind){ELFCLASS64, HERE, 4, -1, 0, 0});
    TEST_ASSERT_EQUAL_STRING(TOLD(STATIC), executed(with_library));
    make((struct kind){ELFCLASS64, HERE, 4, 3, 0, 0});
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library));
    make((struct kind){ELFCLASS64, HERE, 4, -1, sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr), 0}); /* who knows */
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library));
}

static void test_set_uid_programs_of_others_are_told(void)
{
    make((struct kind){ELFCLASS64, HERE, 2, 1, 0, S_ISUID});
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library));
    user = getuid() + 1;
    TEST_ASSERT_EQUAL_STRING(TOLD(SET_UID), executed(with_library));
    make(usual);
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library));
}

static void test_environments_without_the_library_are_told(void)
{
    static const char *const without[] = {"LD_PRELOAD=", "LD_PRELOAD=/lib/x.so", "XLD_PRELOAD=libtracealloc.so",
                                          "LD_PRELOAD2=libtracealloc.so", "A=LD_PRELOAD=libtracealloc.so"};
    static const char *const with[] = {"LD_PRELOAD=libtracealloc.so", "LD_PRELOAD=/a.so:/b/libtracealloc.so.1 /c.so"};
    make(usual);
    TEST_ASSERT_EQUAL_STRING(TOLD(ENVIRONMENT), executed(NULL));
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        char *const environment[] = {(char *)(uintptr_t) "B=2", (char *)(uintptr_t)without[i], NULL};
        TEST_ASSERT_EQUAL_STRING(TOLD(ENVIRONMENT), executed(environment));
        TEST_ASSERT_EQUAL_STRING(TOLD(ENVIRONMENT), executed(environment + 2));
    }
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        char *const environment[] = {(char *)(uintptr_t) "B=2", (char *)(uintptr_t)with[i], NULL};
        TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(environment));
    }
}

static void test_nobody_is_told_who_does_not_want_to_know(void)
{
    make((struct kind){ELFCLASS64, HERE, 0, -1, 0, 0});
    is_told = 0;
    TEST_ASSERT_EQUAL_STRING(LEAVES COMES_BACK, executed(with_library));
    is_told = 1;
    is_owner = 0; /* a child of vfork: what it does is not the process's */
    TEST_ASSERT_EQUAL_STRING(LEAVES "U it /x: " STATIC ";execve;", executed(with_library));
    result = 0;
    errno = EACCES;
    is_owner = 1;
    TEST_ASSERT_EQUAL_STRING(TOLD(STATIC), executed(with_library));
}

static void test_programs_are_found_in_a_folder_or_by_a_descriptor(void)
{
    int here = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make((struct kind){ELFCLASS64, HERE, 0, -1, 0, 0});
    TEST_ASSERT_EQUAL(-1, execveat(here, "x", arguments, with_library, 0));
    TEST_ASSERT_EQUAL_STRING(LEAVES "U it x: " STATIC ";execveat;executes 0;", log_text);
    log_text[0] = '\0';
    TEST_ASSERT_EQUAL(-1, execveat(AT_FDCWD, path, arguments, with_library, AT_SYMLINK_NOFOLLOW));
    TEST_ASSERT_EQUAL_STRING(LEAVES "U it /x: " STATIC ";execveat with flags;executes 0;", log_text);
    log_text[0] = '\0';
    TEST_ASSERT_EQUAL(-1, execveat(AT_FDCWD, path, arguments, with_library, 0));
    TEST_ASSERT_EQUAL_STRING(TOLD(STATIC), log_text);
    log_text[0] = '\0';
    int file = open(path, O_RDONLY | O_CLOEXEC), next = open(path, O_RDONLY | O_CLOEXEC);
    close(next);
    TEST_ASSERT_EQUAL(-1, fexecve(file, arguments, with_library));
    TEST_ASSERT_EQUAL_STRING(LEAVES "execveat with flags;executes 0;", log_text); /* it has no name */
    int after = open(path, O_RDONLY | O_CLOEXEC);
    TEST_ASSERT_EQUAL(next, after); /* nothing stays open */
    close(after);
    close(file);
    close(here);
}

int main(void)
{
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    UNITY_BEGIN();
    RUN_TEST(test_what_can_be_recorded_or_is_no_program_is_not_told);
    RUN_TEST(test_other_architectures_are_told);
    RUN_TEST(test_static_programs_are_told);
    RUN_TEST(test_set_uid_programs_of_others_are_told);
    RUN_TEST(test_environments_without_the_library_are_told);
    RUN_TEST(test_nobody_is_told_who_does_not_want_to_know);
    RUN_TEST(test_programs_are_found_in_a_folder_or_by_a_descriptor);
    int status = UNITY_END();
    rmdir(folder);
    return status;
}
