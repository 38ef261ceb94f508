/* test_program_parts.c: parts of the program that look at files, processes, terminals and signals: each case is a process of
 * its own, whose words are compared as a whole. What a run costs, and how a snapshot is written, are played here: the linker
 * takes the __wrap_ functions instead. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cli/channel_client.h"
#include "analysis/cli/cli.h"
#include "analysis/cli/end_words.h"
#include "analysis/cli/family.h"
#include "analysis/cli/file_opener.h"
#include "analysis/cli/inside.h"
#include "analysis/cli/measured.h"
#include "analysis/cli/program.h"
#include "analysis/cli/recordings.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/watch.h"
#include "analysis/cli/whole_file.h"
#include "tests/support/said.h"
#include "tests/support/written.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

void setUp(void)
{
    said_begin();
}

void tearDown(void)
{
    said_end();
}

static void put_bytes(const char *name, const void *bytes, size_t length, unsigned mode)
{
    FILE *file = fopen(name, "w");
    fwrite(bytes, 1, length, file);
    fclose(file);
    chmod(name, mode);
}

static void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text), 0600);
}

/* "a b c" as words. */
static int call(const struct cli_command *command, const char *line)
{
    static char copy[1000], *words[40];
    int count = 0;
    printf("$ %s\n", line);
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    int status = command->run(count, words);
    fflush(stdout);
    if (status != 0)
        printf("[%d]\n", status);
    return status;
}

/* ---- programs ---- */

static void check_program(const char *name)
{
    char path[200] = "", reason[4600] = "";
    enum cli_program_state state = cli_program_check(name, path, sizeof path, reason, sizeof reason);
    printf("%s: %d %s%s\n", name, (int)state, state == CLI_PROGRAM_FINE ? path : "", reason);
}

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

/* An ELF file with a loader and dynamic names. */
struct image {
    Elf64_Ehdr header;
    Elf64_Phdr segments[4];
    Elf64_Dyn dynamic[4];
    char loader[32], names[64];
};

static struct image image_of(const char *loader, const char *names)
{
    struct image image = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                                     .e_machine = OWN_MACHINE,
                                     .e_phoff = offsetof(struct image, segments),
                                     .e_phentsize = sizeof(Elf64_Phdr),
                                     .e_phnum = 4}};
    image.segments[0] = (Elf64_Phdr){.p_type = PT_NOTE};
    image.segments[1] =
        (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = offsetof(struct image, loader), .p_filesz = strlen(loader) + 1};
    image.segments[2] =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_offset = 0, .p_vaddr = 0x1000, .p_filesz = sizeof(struct image)};
    image.segments[3] = (Elf64_Phdr){
        .p_type = PT_DYNAMIC, .p_offset = offsetof(struct image, dynamic), .p_filesz = sizeof image.dynamic};
    image.dynamic[0] = (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_ptr = 0x1000 + offsetof(struct image, names)};
    image.dynamic[1] = (Elf64_Dyn){.d_tag = DT_STRSZ, .d_un.d_val = sizeof image.names};
    strcpy(image.loader, loader);
    memcpy(image.names, names, strlen(names));
    return image;
}

static void try_image(const char *what, const struct image *image)
{
    put_bytes("program", image, sizeof *image, 0700);
    printf("%s, ", what);
    check_program("./program");
}

static void machines(void)
{
    static const unsigned numbers[] = {EM_386, EM_ARM, EM_RISCV, EM_PPC64, EM_S390, 0, 999};
    struct image image = image_of("/bin/sh", "");
    for (size_t i = 0; i < COUNT(numbers); i++) {
        image.header.e_machine = (Elf64_Half)numbers[i];
        put_bytes("program", &image, sizeof image, 0700);
        char path[200] = "", reason[600] = "";
        printf("%d ", (int)cli_program_check("./program", path, sizeof path, reason, sizeof reason));
        *strchr(reason, ',') = '\0'; /* what this machine is comes behind it */
        puts(reason);
    }
    char path[200], reason[600];
    image.header.e_machine = __builtin_bswap16(EM_S390);
    image.header.e_ident[EI_DATA] = ELFDATA2MSB;
    put_bytes("program", &image, sizeof image, 0700);
    cli_program_check("./program", path, sizeof path, reason, sizeof reason);
    *strchr(reason, ',') = '\0';
    puts(reason);
    image.header.e_machine = __builtin_bswap16(OWN_MACHINE);
    put_bytes("program", &image, sizeof image, 0700);
    printf("%d\n", (int)cli_program_check("./program", path, sizeof path, reason, sizeof reason));
    image = image_of("/bin/sh", "");
    image.header.e_ident[EI_CLASS] = ELFCLASS32;
    image.header.e_machine = EM_X86_64;
    put_bytes("program", &image, sizeof image, 0700);
    printf("%d ", (int)cli_program_check("./program", path, sizeof path, reason, sizeof reason));
    *strchr(reason, ',') = '\0';
    puts(reason);
}

static void loaders(void)
{
    struct image image = image_of("/bin/sh", "");
    try_image("fine", &image);
    image = image_of("/lib/ld-musl-x86_64.so.1", "");
    try_image("musl", &image);
    image = image_of("/nonexistent/ld.so", "");
    try_image("a loader that is not here", &image);
    image = image_of("/bin/sh", "");
    image.segments[1].p_type = PT_NOTE;
    try_image("static", &image);
    image = image_of("/bin/sh", "");
    image.header.e_phnum = 1;
    try_image("static, of one segment", &image);
    image = image_of("/bin/sh", "");
    image.header.e_phentsize++;
    try_image("segments of another size", &image);
    image = image_of("/bin/sh", "");
    image.header.e_phoff = sizeof image - sizeof(Elf64_Phdr);
    try_image("segments that are cut short", &image);
    image = image_of("/bin/sh", "");
    image.segments[1].p_offset = sizeof image;
    try_image("a loader behind the end", &image);
    image = image_of("/bin/sh", "");
    put_bytes("program", &image, sizeof image.header - 1, 0700);
    check_program("./program");
    image.header.e_ident[3] = 'G';
    try_image("no ELF file", &image);
}

static void sanitizers(void)
{
    static const char *const names[] = {"__asan_init", "__hwasan_init", "__tsan_init",
                                        "__msan_init", "__asan_inits",  "x__asan_init"};
    struct image image;
    for (size_t i = 0; i < COUNT(names); i++) {
        image = image_of("/bin/sh", names[i]);
        try_image(names[i], &image);
    }
    image = image_of("/bin/sh", "");
    memcpy(image.names + sizeof image.names - 11, "__asan_init", 11); /* its end is the end of all */
    try_image("the last name", &image);
    image = image_of("/bin/sh", "__asan_init");
    image.dynamic[1].d_un.d_val = 10;
    try_image("names cut short", &image);
    image = image_of("/bin/sh", "__asan_init");
    image.dynamic[1].d_un.d_val = sizeof image;
    try_image("names behind the end", &image);
    image = image_of("/bin/sh", "__asan_init");
    image.dynamic[1].d_un.d_val = (UINT64_C(64) << 20) + 1;
    try_image("too many names", &image);
    image = image_of("/bin/sh", "__asan_init");
    image.dynamic[0].d_tag = DT_NULL;
    try_image("nothing dynamic", &image);
    image = image_of("/bin/sh", "__asan_init");
    image.segments[3].p_type = PT_NOTE;
    try_image("no dynamic segment", &image);
    image = image_of("/bin/sh", "__asan_init");
    image.segments[2].p_filesz = offsetof(struct image, names); /* the names lie just behind */
    try_image("names that are not loaded", &image);
    image.segments[2].p_filesz++;
    try_image("names that are", &image);
    image.segments[2].p_vaddr = image.dynamic[0].d_un.d_ptr;
    image.segments[2].p_offset = offsetof(struct image, names);
    try_image("at the beginning of what is loaded", &image);
    image.segments[2].p_vaddr++;
    try_image("before it", &image);
    image = image_of("/bin/sh", "__asan_init");
    image.segments[3].p_offset = sizeof image;
    try_image("dynamic behind the end", &image);
}

static void scripts(void)
{
    char text[300];
    struct image image = image_of("/bin/sh", "");
    put_bytes("program", &image, sizeof image, 0700);
    static const char *const lines[] = {"#!%s/program\nx",
                                        "#! \t%s/program -x y\r\n",
                                        "#!%s/program\ty",
                                        "#!\n",
                                        "#! \n",
                                        "#!%s/missing -x\n",
                                        "#%s/missing",
                                        "#",
                                        ""};
    for (size_t i = 0; i < COUNT(lines); i++) {
        snprintf(text, sizeof text, lines[i], folder);
        put_bytes("script", text, strlen(text), 0700);
        check_program("./script");
    }
    for (int i = 0; i < 7; i++) {
        char name[20];
        snprintf(text, sizeof text, i == 0 ? "#!%s/program" : "#!%s/chain-%d", folder, i - 1);
        snprintf(name, sizeof name, "./chain-%d", i);
        put_bytes(name, text, strlen(text), 0700);
        check_program(name);
    }
}

static void names_of_programs(void)
{
    struct image image = image_of("/bin/sh", "");
    mkdir("bin", 0700);
    mkdir("other", 0700);
    mkdir("other/folder", 0700);
    put_bytes("other/both", &image, sizeof image, 0700);
    put_bytes("bin/both", &image, sizeof image, 0600);
    put_bytes("bin/denied", &image, sizeof image, 0600);
    put_bytes("here", &image, sizeof image, 0700);
    put_bytes("25", &image, sizeof image, 0600);
    char *path = cli_text("%s/bin:%s/other", folder, folder);
    setenv("PATH", path, 1);
    static const char *const names[] = {"both",       "denied",      "folder",    "missing", "here",
                                        "25",         "25x",         "",          "./here",  "other/folder",
                                        "bin/denied", "bin/missing", "other/both"};
    for (size_t i = 0; i < COUNT(names); i++)
        check_program(names[i]);
    setenv("PATH", ":/nonexistent", 1);
    check_program("here");
    setenv("PATH", "/nonexistent:", 1);
    check_program("here");
    setenv("PATH", "", 1);
    check_program("here");
    unsetenv("PATH");
    char found[200], reason[600];
    printf("%d ", (int)cli_program_check("sh", found, sizeof found, reason, sizeof reason));
    puts(cli_base_name(found));
}

/* A file whose group is another one, where that can be made. */
static void rights_of_programs(void)
{
    struct image image = image_of("/bin/sh", "");
    put_bytes("program", &image, sizeof image, 0700);
    chmod("program", 04755);
    check_program("./program");
    chmod("program", 02755);
    check_program("./program");
    for (int i = 0; i < 3; i++) {
        char path[200], reason[600] = "";
        if (chown("program", i == 2 ? 12345 : geteuid(), 12345) != 0) {
            puts(i != 1 ? "is set" : "./program");
            continue;
        }
        chmod("program", i == 0 ? 02755 : i == 1 ? 02745 : 04755);
        int state = (int)cli_program_check("./program", path, sizeof path, reason, sizeof reason);
        char *what = strstr(reason, "is set-"), *kind = what == NULL ? path : what + 7;
        printf("%s%s\n", state == CLI_PROGRAM_REFUSED ? "is set" : path,
               state != CLI_PROGRAM_REFUSED || strncmp(kind, i == 0 ? "gid," : "uid,", 4) == 0 ? "" : " otherwise");
    }
}

static void libraries(void)
{
    mkdir("a b", 0700);
    put("a b/lib.so", "x");
    put("a:b", "x");
    put("lib.so", "x");
    static const char *const names[] = {"lib.so", "missing.so", ".", "a b/lib.so", "a:b"};
    for (size_t i = 0; i < COUNT(names); i++) {
        pid_t child;
        int status;
        setenv("TRACEALLOC_LIBRARY", names[i], 1);
        fflush(NULL);
        if ((child = fork()) == 0) {
            puts(cli_find_library());
            exit(0);
        }
        waitpid(child, &status, 0);
        printf("%d\n", WEXITSTATUS(status));
    }
}

/* ---- what a run costs ---- */

static void measure(const struct cli_measuring *measuring)
{
    struct cli_measured m = {.status = -7};
    int result = cli_measure(measuring, &m);
    printf("%d, status %d%s%s, %s, %s, %s, %s\n", result, m.status, m.is_early ? ", early" : "",
           m.is_killed ? ", killed" : "", m.wall_seconds >= 0 && m.wall_seconds < 60 ? "in time" : "late",
           m.cpu_seconds >= 0 && m.cpu_seconds <= 60 ? "cpu" : "no cpu",
           m.peak_bytes > 100000 && m.peak_bytes < 1e10 ? "memory" : "no memory",
           isless(m.instructions, 0) ? (isgreaterequal(m.instructions, -1) ? "counted or not" : "odd")
           : m.instructions > 1000   ? "counted or not"
                                     : "odd");
}

static char *const say_environment[] = {(char[]){"sh"}, (char[]){"-c"},
                                        (char[]){"echo \"${TRACEALLOC-none} ${TRACEALLOC_OPTIONS-none} "
                                                 "${LD_PRELOAD-none}\" >said; echo out; echo error >&2"},
                                        NULL};

static void say_file(const char *name)
{
    char text[1000] = "";
    FILE *file = fopen(name, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL)
        strcpy(text, "nothing\n");
    if (file != NULL)
        fclose(file);
    fputs(text, stdout);
}

static void measured_runs(void)
{
    struct cli_measuring measuring = {.command = (char **)say_environment};
    setenv("TRACEALLOC", "5", 1);
    setenv("TRACEALLOC_OPTIONS", "x=y", 1);
    measure(&measuring);
    say_file("said");
    measuring.frames = "3";
    measuring.options = "sample=1";
    measuring.preload = "/nonexistent/a.so";
    measure(&measuring);
    say_file("said");
    setenv("LD_PRELOAD", "", 1);
    measure(&measuring);
    say_file("said");
    setenv("LD_PRELOAD", "/nonexistent/b.so", 1);
    measure(&measuring);
    say_file("said");
    measuring.preload = NULL;
    measure(&measuring);
    say_file("said");
    unsetenv("LD_PRELOAD");
    char *const fails[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 3"}, NULL};
    measure(&(struct cli_measuring){.command = (char **)fails});
    char *const dies[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"kill -9 $$"}, NULL};
    measure(&(struct cli_measuring){.command = (char **)dies});
    char *const terminated[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"kill -TERM $$"}, NULL};
    measure(&(struct cli_measuring){.command = (char **)terminated});
    char *const missing[] = {(char[]){"/nonexistent/program"}, NULL};
    measure(&(struct cli_measuring){.command = (char **)missing});
}

static void measured_servers(void)
{
    char *const sleeps[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL};
    char *const ends[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 5"}, NULL};
    char *const ignores[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"sleep 0.2; exit 4"}, NULL};
    char *const waits[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"while [ ! -e ready ]; do sleep 0.01; done"}, NULL};
    char *const terminates[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"kill -TERM $$"}, NULL};
    measure(&(struct cli_measuring){.command = (char **)sleeps, .seconds = 0.05, .patience = 100});
    measure(&(struct cli_measuring){.command = (char **)ends, .seconds = 50, .patience = 100});
    signal(SIGTERM, SIG_IGN); /* who is started has it so */
    measure(&(struct cli_measuring){.command = (char **)ignores, .seconds = 0.05, .patience = 100});
    char *const deaf[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"while :; do sleep 0.1; done"}, NULL};
    measure(&(struct cli_measuring){.command = (char **)deaf, .seconds = 0.05, .patience = 0.1});
    signal(SIGTERM, SIG_DFL);
    measure(&(struct cli_measuring){.command = (char **)terminates, .seconds = 50, .patience = 100});
    measure(&(struct cli_measuring){
        .command = (char **)sleeps, .seconds = 50, .patience = 100, .load = "echo load >said; echo loud"});
    say_file("said");
    /* Who is still busy when the program has ended is ended, with its children. */
    const char *busy = "(trap 'echo ended >said' TERM; echo >ready; while [ -e ready ]; do sleep 0.01; done) & wait";
    measure(&(struct cli_measuring){.command = (char **)waits, .seconds = 50, .patience = 100, .load = busy});
    struct stat said;
    for (int i = 0; i < 1000 && (stat("said", &said) != 0 || said.st_size != 6); i++)
        usleep(10000);
    say_file("said");
}

/* Figures that are given: of each round and mode another one. */
static struct {
    const double *figures;
    size_t count, calls;
    int is_played, status, fails_at;
} play;

int __real_cli_measure(const struct cli_measuring *measuring, struct cli_measured *measured);
int __wrap_cli_measure(const struct cli_measuring *measuring, struct cli_measured *measured);
int __wrap_cli_measure(const struct cli_measuring *measuring, struct cli_measured *measured)
{
    if (!play.is_played)
        return __real_cli_measure(measuring, measured);
    double x = play.figures[play.calls % play.count];
    printf("%s %s %s %s %s %g\n", measuring->command[0],
           measuring->preload != NULL ? strrchr(measuring->preload, '/') : "-",
           measuring->frames != NULL ? measuring->frames : "-", measuring->options != NULL ? measuring->options : "-",
           measuring->load != NULL ? measuring->load : "-", measuring->seconds);
    play.calls++;
    *measured = (struct cli_measured){.status = play.fails_at == (int)play.calls ? play.status : 0,
                                      .wall_seconds = x > 8 ? 1.5 : x * 1.5,
                                      .cpu_seconds = x,
                                      .peak_bytes = x * 1048576,
                                      .instructions = x >= 4 ? -1 : x * 1000000};
    errno = EMFILE;
    return play.fails_at < 0 && -play.fails_at == (int)play.calls ? -1 : 0;
}

static void cost_of(const char *line, const double *figures, size_t count, int fails_at, int status)
{
    memset(&play, 0, sizeof play);
    play.figures = figures;
    play.count = count;
    play.is_played = 1;
    play.fails_at = fails_at;
    play.status = status;
    call(&cli_cost, line);
    printf("%zu runs\n", play.calls);
}

static void costs(void)
{
    static const double one[] = {1, 2}, several[] = {1, 1.1, 1.5, 1.05, 1.2, 1.6, 0.9, 1.3, 1.7},
                        far[] = {1, 1, 1.01, 1, 0.99, 1, 1, 1, 9, 1, 1.02, 1, 1.01, 1, 1, 1, 1.005, 1};
    put("lib.so", "x");
    setenv("TRACEALLOC_LIBRARY", "lib.so", 1);
    cost_of("cost -r 1 --modes own,whole sh x", one, 2, 0, 0);
    cost_of("cost -r 2 --modes own,one,whole --for 3 --load l -- sh", several, 9, 0, 0);
    cost_of("cost -r 3 --modes own,sampled --markdown sh", several, 9, 0, 0);
    cost_of("cost -r 3 --modes own,stopped,whole --json sh", several, 9, 0, 0);
    cost_of("cost -r 1 --modes whole --json sh", one, 2, 0, 0);
    cost_of("cost -r 4 --modes own,one --json sh", far, 18, 0, 0);
    cost_of("cost -r 6 --modes own,one sh", far, 18, 0, 0);
    cost_of("cost -r 7 --modes own,one --json sh", far, 18, 0, 0);
    cost_of("cost -r 20 --modes own,one sh", far, 17, 0, 0);
    cost_of("cost -r 21 --modes own,one sh", several, 9, 0, 0);
    cost_of("cost -r 22 --modes own,one sh", several, 9, 0, 0);
    cost_of("cost --modes own,untraced sh", one, 2, 0, 0);
    cost_of("cost --modes untraced sh", one, 2, 0, 0);
    put("libtracealloc-untraced.so", "x");
    cost_of("cost -r 1 --modes own,untraced sh", one, 2, 0, 0);
    cost_of("cost -r 1 sh", one, 2, 3, 7);
    cost_of("cost -r 1 sh", one, 2, 4, 129);
    cost_of("cost -r 1 sh", one, 2, 2, 128);
    cost_of("cost -r 1 sh", one, 2, -2, 0);
    cost_of("cost -r 1 --modes own missing", one, 2, 0, 0);
}

static void costs_without_counters(void)
{
    static const double high[] = {5, 5.5, 6, 0, 5};
    put("lib.so", "x");
    setenv("TRACEALLOC_LIBRARY", "lib.so", 1);
    cost_of("cost -r 1 --modes own,one sh", high, 2, 0, 0);
    cost_of("cost -r 2 --modes own,one --json sh", high, 5, 0, 0);
    cost_of("cost -r 2 --modes own,one sh", high, 5, 0, 0);
}

/* ---- a process that is steered ---- */

static int listening = -1;
static const char *const *answers;
static const void *served = "taken"; /* what is written into a descriptor */
static size_t served_length = 5;

/* Says what is asked, and gives the next answer; "" ends the connection, and a descriptor is written to. */
static void *answer_all(void *unused)
{
    for (int connection; (connection = accept(listening, NULL, NULL)) >= 0; close(connection))
        for (;;) {
            char request[500];
            union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
            } control;
            struct iovec part = {request, sizeof request - 1};
            struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
            ssize_t got = recvmsg(connection, &message, 0);
            if (got <= 0)
                break;
            request[got] = '\0';
            int descriptor = -1;
            if (CMSG_FIRSTHDR(&message) != NULL)
                memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
            printf("< %s%s\n", request, descriptor >= 0 ? " with a file" : "");
            if (descriptor >= 0) {
                (void)!write(descriptor, served, served_length);
                close(descriptor);
            }
            if (*answers == NULL || **answers == '\0') {
                answers += *answers != NULL;
                break;
            }
            (void)!send(connection, *answers, strlen(*answers), MSG_NOSIGNAL);
            answers++;
        }
    return unused;
}

/* Where the product's own processes have theirs: a folder that is this user's alone. */
static int channel_begin(char *path, size_t room)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat namespace;
    static pthread_t thread;
    char of_user[60];
    snprintf(of_user, sizeof of_user, "/tmp/tracealloc-%u", (unsigned)geteuid());
    mkdir(of_user, 0700);
    if (stat("/proc/self/ns/pid", &namespace) != 0)
        return -1;
    snprintf(path, room, "%s/%d-%llu", of_user, (int)getpid(), (unsigned long long)namespace.st_ino);
    strcpy(address.sun_path, path);
    unlink(path);
    listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(listening, 8) != 0)
        return -1;
    return pthread_create(&thread, NULL, answer_all, NULL);
}

static void steer(const char *line)
{
    char text[200];
    snprintf(text, sizeof text, line, (int)getpid());
    printf("\n");
    static char copy[300], *words[40];
    int count = 0;
    strcpy(copy, text);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    int status = cli_ctl.run(count, words);
    fflush(stdout);
    if (status != 0)
        printf("[%d]\n", status);
}

static void steering(void)
{
    char path[108];
    static const char *const all[] = {
        "+tracing=1\nframes=65535\nlive=1024\npeak=4096\ntracer=65536\nrecords=1\nrecording=/x/y.ta\n",
        "+tracing=1\nframes=1\nsample=524288\nlive=5\npeak=6\ntracer=7\nrecords=1\ninterval=1500\nlost=1\n",
        "+tracing=1\nframes=65534\nlive=5\nlost=2\nrecords=0\n",
        "+tracing=0\nrecords=0\nrecording=",
        "+tracing=1\nframes=2\nsample=3\nlive=4\npeak=5\ntracer=6\nstacks=7\nlost=8\ninterval=2500\nrecording=/a "
        "\"b\"\\\x1f\x20.ta\n",
        "+",
        "-it does not want to",
        "", /* 8: it ends */
        "+frames=65535\n",
        "+was=1\nframes=25\nsample=1024\n",
        "-already",
        "+was=1\nrecording=/x.ta\n",
        "+was=1\n",
        "+was=0\nrecording=/x.ta\n",
        "-no",
        "-no force",
        "+",
        "-not now",
        "+records=1\n",
        "+recording=/x.ta\n",
        "+records=1\n",
        "-full",
        "+records=0\n",
        "+",
        "+records=0\n",
        "+",
        "-no status",
        "+",
        "-cannot",
        "+",
        "-no mark",
        "+",
        "+",
        "+",
        "-no interval",
        "+",
        "+",
        "+",
        "-no such domain",
        NULL};
    answers = all;
    if (channel_begin(path, sizeof path) != 0) {
        puts("no channel");
        return;
    }
    steer("ctl %d");
    steer("ctl %d status");
    steer("ctl %d status");
    steer("ctl %d status");
    steer("ctl %d --json");
    steer("ctl %d status --json");
    steer("ctl %d status");
    steer("ctl %d status");
    steer("ctl %d start");
    steer("ctl %d start 25");
    steer("ctl %d start 25");
    steer("ctl %d stop");
    steer("ctl %d stop");
    steer("ctl %d stop");
    steer("ctl %d stop");
    steer("ctl %d stop --force");
    steer("ctl %d clear");
    steer("ctl %d clear");
    steer("ctl %d snapshot");
    steer("ctl %d snapshot");
    steer("ctl %d snapshot");
    char *taken = cli_text("tracealloc.%d.2.ta", (int)getpid());
    put(taken, "there already");
    steer("ctl %d snapshot");
    steer("ctl %d snapshot");
    steer("ctl %d snapshot -o named.ta");
    steer("ctl %d snapshot -o refused.ta");
    steer("ctl %d snapshot -o missing/x.ta");
    steer("ctl %d mark before the load");
    steer("ctl %d mark x");
    steer("ctl %d interval 0.01");
    steer("ctl %d interval 0");
    steer("ctl %d interval 1000000");
    steer("ctl %d interval 2.5");
    static const char *const wrong[] = {
        "interval 0.009", "interval 1000001", "interval -1", "interval x",  "interval 1x", "interval nan",
        "interval",       "interval 1 2",     "limit 7",     "limit 7 1 2", "limit 7 x",   "mark",
        "start 1 2",      "stop now",         "status now",  "clear all",   "snapshot x",  "bogus"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char line[100];
        snprintf(line, sizeof line, "ctl %%d %s", wrong[i]);
        steer(line);
    }
    steer("ctl %d limit 7 1MiB");
    steer("ctl %d limit cache 1000 --hard");
    steer("ctl %d limit 7 0");
    steer("ctl %d limit 7 5");
    unlink(path);
    steer("ctl %d");
    fflush(stdout);
    if (system("for f in $(ls); do echo \"$f: $(cat $f)\"; done | sed 's/tracealloc\\.[0-9]*/NUMBERED/'") != 0)
        puts("no list");
}

static void channels_of_nobody(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    const char *why = "?";
    printf("%d ", cli_channel_open(child, &why)); /* it has ended, and nobody has asked for its status */
    puts(why);
    waitpid(child, &status, 0);
    printf("%d ", cli_channel_open(child, &why));
    puts(why);
    printf("%d ", cli_channel_open(getpid(), &why));
    puts(why);
    printf("%d\n", cli_channel_open(getpid(), NULL));
    struct cli_channel_answer answer;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    const struct timeval patience = {0, 1000};
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    printf("%d ", cli_channel_ask(ends[0], "x", -1, &answer));
    puts(answer.text);
    (void)!send(ends[1], "+", 1, 0);
    printf("%d ", cli_channel_ask(ends[0], "x", -1, &answer));
    puts(answer.text);
    (void)!send(ends[1], "-why", 4, 0);
    printf("%d ", cli_channel_ask(ends[0], "x", -1, &answer));
    puts(answer.text);
    close(ends[1]);
    printf("%d ", cli_channel_ask(ends[0], "x", -1, &answer));
    puts(answer.text);
    printf("%d ", cli_channel_ask(-1, "x", -1, &answer));
    puts(answer.text);
    strcpy(answer.text, "a=1\nab=22\nb=\nlong=0123456789\nlast=7");
    static const char *const keys[] = {"a", "ab", "b", "long", "last", "l", "missing"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        char value[6];
        cli_channel_value(&answer, keys[i], value, sizeof value);
        printf("%s '%s' %d\n", keys[i], value, (int)cli_channel_number(&answer, keys[i]));
    }
}

/* A socket whose process is gone is removed, and nothing else. */
static void stale_channels(void)
{
    char path[108], of_user[60], stale[150], running[150], of_others[150], odd[150];
    struct stat namespace;
    snprintf(of_user, sizeof of_user, "/tmp/tracealloc-%u", (unsigned)geteuid());
    mkdir(of_user, 0700);
    if (stat("/proc/self/ns/pid", &namespace) != 0)
        return;
    unsigned long long number = namespace.st_ino;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    snprintf(stale, sizeof stale, "%s/%d-%llu", of_user, (int)child, number);
    snprintf(running, sizeof running, "%s/%d-%llu", of_user, (int)getppid(), number);
    snprintf(of_others, sizeof of_others, "%s/%d-%llu", of_user, (int)child, number + 1);
    snprintf(odd, sizeof odd, "%s/odd-%d", of_user, (int)getpid());
    const char *const all[] = {stale, running, of_others, odd};
    int was_there[COUNT(all)];
    for (size_t i = 0; i < COUNT(all); i++) {
        was_there[i] = access(all[i], F_OK) == 0; /* of a run of the product */
        if (!was_there[i])
            put(all[i], "");
    }
    snprintf(path, sizeof path, "%d", cli_channel_open(getpid(), NULL));
    for (size_t i = 0; i < COUNT(all); i++) {
        printf("%d", access(all[i], F_OK) == 0);
        if (!was_there[i])
            unlink(all[i]);
    }
    printf(" %s\n", path);
}

/* ---- whole files ---- */

static volatile sig_atomic_t seen_blocked = -1;

int __wrap_ta_snapshot_dump(struct ta_snapshot *snapshot, const char *path);
int __real_ta_snapshot_dump(struct ta_snapshot *snapshot, const char *path);
int __wrap_ta_snapshot_dump(struct ta_snapshot *snapshot, const char *path)
{
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    seen_blocked = sigismember(&now, SIGINT) * 100 + sigismember(&now, SIGTERM) * 10 + sigismember(&now, SIGHUP);
    return __real_ta_snapshot_dump(snapshot, path);
}

static void writing(void)
{
    static const char text[] = "{\"traceback_limit\": 1, \"traces\": [{\"size\": 5, \"frames\": [[\"a.c\", 1]]}]}";
    sigset_t blocked;
    struct ta_snapshot *snapshot = ta_snapshot_import_json(text, sizeof text - 1);
    printf("%d, ", cli_write_snapshot(snapshot, "x.ta"));
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    printf("%d while it is written, %d afterwards\n", (int)seen_blocked, sigismember(&blocked, SIGTERM));
}

static void interrupt(int number, int is_ignored)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct cli_output output;
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        if (is_ignored)
            signal(number, SIG_IGN);
        put("out", "before");
        if (cli_output_open(&output, "out") != 0)
            _exit(9);
        cli_output_write(&output, "after", 5);
        raise(number);
        _exit(cli_output_close(&output, CLI_OK));
    }
    waitpid(child, &status, 0);
    printf("%d: %s %d, ", number, WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    fflush(stdout);
    if (system("cat out; echo; ls") != 0)
        puts("no list");
}

static void interrupted_files(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < COUNT(numbers); i++)
        interrupt(numbers[i], 0);
    interrupt(SIGHUP, 1);
    interrupt(SIGUSR2, 1);
}

static void rights_of_files(void)
{
    struct cli_output output;
    struct stat status;
    umask(027);
    if (cli_output_open(&output, "out") == 0)
        printf("%d ", cli_output_close(&output, CLI_OK));
    stat("out", &status);
    printf("%o %o\n", (unsigned)status.st_mode & 0777, (unsigned)umask(0));
    mkdir("taken", 0700);
    put("taken/file", "");
    if (cli_output_open(&output, "taken") == 0)
        printf("%d\n", cli_output_close(&output, CLI_OK));
    if (cli_output_open(&output, "replaced") == 0) {
        mkdir("replaced", 0700);
        printf("%d\n", cli_output_close(&output, CLI_OK));
    }
    fflush(stdout);
    if (system("ls") != 0)
        puts("no list");
}

/* ---- progress, on a terminal ---- */

static int terminal_of(char *name)
{
    int main_side = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (main_side < 0 || grantpt(main_side) != 0 || unlockpt(main_side) != 0 || ptsname_r(main_side, name, 60) != 0)
        return -1;
    return main_side;
}

/* What is drawn until the text has come: the line with it, as far as it. Lines before it may have been drawn several times. */
static void read_until(int terminal, const char *text)
{
    static char all[20000];
    size_t length = 0;
    ssize_t got;
    char *found, *begin;
    all[0] = '\0';
    while ((found = strstr(all, text)) == NULL && length < sizeof all - 1 &&
           (got = read(terminal, all + length, sizeof all - 1 - length)) > 0)
        all[length += (size_t)got] = '\0';
    if (found == NULL) {
        puts("it did not come");
        return;
    }
    found[strlen(text)] = '\0';
    for (begin = found; begin > all && *begin != '\r';)
        begin--;
    for (char *at = begin; *at != '\0'; at++)
        if (*at == '\r')
            printf("\\r");
        else if (*at == 033)
            printf("\\e");
        else
            putchar(*at);
    putchar('\n');
}

static void progress(void)
{
    char name[60];
    int main_side = terminal_of(name), other = main_side < 0 ? -1 : open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    int errors = dup(STDERR_FILENO);
    cli_progress_begin("unseen");
    cli_progress_set(NULL, 1, 2);
    cli_progress_end();
    if (other < 0) {
        puts("no terminal");
        return;
    }
    dup2(other, STDERR_FILENO);
    cli_progress_begin("counting");
    cli_progress_set(NULL, 7, 20);
    read_until(main_side, "7 of 20");
    cli_progress_begin("inside");
    read_until(main_side, "inside");
    cli_progress_set(NULL, 21, 20);
    read_until(main_side, "21 of 20");
    cli_progress_set(NULL, 20, 20);
    read_until(main_side, "20 of 20");
    cli_progress_end();
    read_until(main_side, "counting");
    cli_progress_set(NULL, 1, 21);
    read_until(main_side, "1 of 21");
    cli_progress_end();
    read_until(main_side, "\r\033[K");
    cli_progress_end();
    cli_progress_wipe();
    cli_progress_begin("soon over");
    cli_progress_end();
    (void)!write(other, "nothing else", 12);
    read_until(main_side, "nothing else");
    dup2(errors, STDERR_FILENO);
}

static void on_terminal(int main_side, const char *name, const char *no_color, const char *term, const char *columns,
                        unsigned short width, const char *when)
{
    const struct winsize size = {.ws_row = 24, .ws_col = width};
    int out = dup(STDOUT_FILENO), other = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    ioctl(main_side, TIOCSWINSZ, &size);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const char *const names[] = {"NO_COLOR", "TERM", "COLUMNS"}, *const values[] = {no_color, term, columns};
        for (size_t i = 0; i < COUNT(names); i++)
            if (values[i] != NULL)
                setenv(names[i], values[i], 1);
            else
                unsetenv(names[i]);
        dup2(other, STDOUT_FILENO);
        cli_set_color(when);
        dprintf(out, "%s %s %s %u %s: %s, %zd columns, %s\n", no_color != NULL ? no_color : "-",
                term != NULL ? term : "-", columns != NULL ? columns : "-", width, when,
                *cli_style(CLI_BOLD) != '\0' ? "colors" : "none", (ssize_t)cli_width(),
                cli_has_bars() ? "bars" : "no bars");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    close(other);
    close(out);
}

static void terminals(void)
{
    char name[60];
    int main_side = terminal_of(name);
    if (main_side < 0) {
        puts("no terminal");
        return;
    }
    on_terminal(main_side, name, NULL, "xterm", NULL, 80, "auto");
    on_terminal(main_side, name, "", "xterm", NULL, 80, "auto");
    on_terminal(main_side, name, "1", "xterm", NULL, 80, "auto");
    on_terminal(main_side, name, "1", "xterm", NULL, 80, "always");
    on_terminal(main_side, name, NULL, "xterm", NULL, 80, "never");
    on_terminal(main_side, name, NULL, "dumb", NULL, 80, "auto");
    on_terminal(main_side, name, NULL, "dumb", NULL, 80, "always");
    on_terminal(main_side, name, NULL, NULL, NULL, 80, "auto");
    static const unsigned short widths[] = {0, 1, 39, 40, 41, 99, 100, 101};
    for (size_t i = 0; i < COUNT(widths); i++)
        on_terminal(main_side, name, NULL, "xterm", NULL, widths[i], "auto");
    static const char *const columns[] = {"55", "0", "-5", "x", "1", "100", ""};
    for (size_t i = 0; i < COUNT(columns); i++)
        on_terminal(main_side, name, NULL, "xterm", columns[i], 77, "auto");
    close(main_side);
    on_terminal(-1, "/dev/null", NULL, "xterm", "55", 77, "auto");
    on_terminal(-1, "/dev/null", NULL, "xterm", "55", 77, "always");
    on_terminal(-1, "/dev/null", NULL, "xterm", NULL, 77, "always");
}

/* Where letters are bytes. */
static void plain_letters(void)
{
    const double values[] = {0, 1, 50, 100};
    char graph[40];
    setenv("LC_ALL", "C", 1);
    cli_set_color("always");
    setenv("COLUMNS", "60", 1);
    static const double shares[] = {0, 0.1, 0.5, 0.99, 1};
    for (size_t i = 0; i < COUNT(shares); i++) {
        cli_print_bar(shares[i], 8);
        puts("|");
    }
    cli_graph_text(values, COUNT(values), graph, sizeof graph);
    puts(graph);
    printf(" %zu\n", cli_print_path("/a/long/path/of/a/file.c", 14));
    cli_print_fitted("a_long_name_of_a_function", 10, CLI_CUT_RIGHT);
    puts("|");
    cli_print_fitted("a_long_name_of_a_function", 10, CLI_CUT_LEFT);
    puts("|");
    printf("%zu\n", cli_text_width("\303\244\303\266"));
}

/* ---- what a run leaves ---- */

static void touch(const char *name, time_t seconds)
{
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    put(name, "");
    utimensat(AT_FDCWD, name, times, 0);
}

static void pieces(void)
{
    struct cli_recordings found;
    const struct timespec since = {1000000, 500};
    mkdir("x.run", 0700);
    mkdir("y.run", 0700);
    mkdir("x.ta.folder.tmp", 0700);
    touch("x.ta.new.tmp", 1000000);
    touch("x.ta.17.new.tmp", 2000000);
    touch("x.ta.second.tmp", 999999);
    touch("x.ta.old.tmp", 999998);
    touch("x.ta.new.tmq", 1000000);
    touch("y.ta.new.tmp", 1000000);
    touch("x.run/new.tmp", 1000000);
    touch("x.run/old.tmp", 1);
    touch("x.run/new.ta", 1000000);
    touch("y.run/new.tmp", 1000000);
    cli_recordings_find(&found, cli_text("%s/x.ta", folder), 17, &since);
    printf("%zu\n", found.count);
    fflush(stdout);
    if (system("find . | LC_ALL=C sort") != 0)
        puts("no list");
    cli_recordings_find(&found, cli_text("%s/y.run/n", folder), 17, &since);
    cli_recordings_free(&found);
    fflush(stdout);
    if (system("find y* | LC_ALL=C sort") != 0)
        puts("no list");
}

/* ---- folders of families ---- */

static void family_folders(void)
{
    mkdir("x.run", 0700);
    mkdir("x.run/sub", 0700);
    char *index = cli_text("tracealloc run 2\tmine\n"
                           "1\t0\t0\texit\t../x.ta\tfirst\t-\n"
                           "2\t1\t0\texit\t2.ta\twhole\t-\n"
                           "3\t1\t-\t-\t3.ta\twrites\t-\n"
                           "4\t1\t0\texit\tsub/4.ta\tbelow\t-\n"
                           "5\t1\t0\texit\t%s/x.runs\telsewhere\t-\n"
                           "6\t1\t0\texit\tmissing.ta\tgone\t-\n",
                           folder);
    put("x.run/index", index);
    static const char *const files[] = {"x.ta", "x.run/2.ta", "x.run/3.ta", "x.run/sub/4.ta", "x.runs", "x.run/other"};
    for (size_t i = 0; i < COUNT(files); i++)
        put(files[i], "x");
    char *name = cli_text("%s/x.run", folder);
    printf("%d\n", cli_family_make(name));
    put("file.run", "");
    printf("%d", cli_family_make("file.run"));
    if (symlink("x.run", "link.run") == 0)
        printf(" %d", cli_family_make("link.run"));
    printf(" %d", cli_family_make("missing/x.run"));
    mkdir("plain.run", 0755);
    put("plain.run/note", "");
    printf(" %d", cli_family_make("plain.run"));
    struct stat status;
    printf(" %d", cli_family_make("new.run"));
    stat("new.run", &status);
    printf(" %o\n", (unsigned)status.st_mode & 0777);
    fflush(stdout);
    if (system("find . | LC_ALL=C sort") != 0)
        puts("no list");
}

static void indexes(void)
{
    static char odd[] = "a\tb%\x7f\n\x01z", empty[] = "", segv[] = "SIGSEGV", exec[] = "exec", why[] = "is static",
                program[] = "/bin/program";
    char *inside = cli_text("%s/x.run/1.ta", folder), *beside = cli_text("%s/x.ta", folder),
         *like = cli_text("%s/x.running/1.ta", folder), *elsewhere = cli_text("/elsewhere/1.ta");
    const struct cli_process rows[] = {
        {.process = 1, .parent = 0, .command = odd, .path = inside, .end = segv},
        {.process = 1, .parent = 0, .reason = exec, .path = beside, .end = segv},
        {.process = 2, .parent = 1, .command = empty, .path = like, .reason = empty},
        {.process = 3, .parent = 1, .path = elsewhere, .untraced = program, .why = why},
        {.process = 4, .parent = 1, .command = program, .untraced = odd, .why = why},
    };
    char *name = cli_text("%s/x.run", folder);
    const int statuses[] = {0, 7 << 8, SIGTERM, SIGRTMIN, 127};
    for (size_t i = 0; i < COUNT(statuses); i++) {
        printf("%d\n", cli_family_write(name, "run", rows, i == 0 ? 5 : 2, 1, i == 0 ? NULL : &statuses[i]));
        fflush(stdout);
        if (system("cat x.run/index; ls x.run") != 0)
            puts("no list");
    }
    struct stat status;
    stat("x.run/index", &status);
    printf("%o\n", (unsigned)status.st_mode & 0777);
    put("file", "");
    printf("%d", cli_family_write("/nonexistent/x.run", "run", rows, 1, 1, NULL));
    char *file = cli_text("%s/file", folder);
    printf(" %d", cli_family_write(file, "run", rows, 1, 1, NULL));
    mkdir("y.run", 0700);
    mkdir("y.run/index", 0700);
    char *blocked = cli_text("%s/y.run", folder);
    printf(" %d\n", cli_family_write(blocked, "run", rows, 1, 1, NULL));
    fflush(stdout);
    if (system("find y.run") != 0)
        puts("no list");
}

/* ---- what watch is fed with ---- */

/* Recordings of a program that consists of arrays. */
static struct written written;

static void record(uint64_t time_ns)
{
    written_open(&written);
    uint32_t app = fake_module(&written.fake, "/nonexistent/app", 0x1000, 0x2000);
    fake_malloc(&written.fake, fake_leaf(&written.fake, fake_context(&written.fake, 0, 0x1100, app), 0, 0, 1), 1, 1000);
    written.facts.time_ns = time_ns;
    written_entry(&written);
}

static void put_recording(const char *name)
{
    const struct ta__buffer *bytes = &written.writer.chunks.sink.memory;
    put_bytes(name, bytes->bytes, bytes->length, 0600);
}

static void next_of(struct cli_feed *feed)
{
    struct ta_snapshot *snapshot = cli_feed_next(feed);
    struct ta_snapshot_info info = {.time_ns = 0};
    if (snapshot != NULL)
        ta_snapshot_info(snapshot, &info, sizeof info);
    printf("%s at %d s, trouble: %s%s%s\n", snapshot != NULL ? "a snapshot" : "nothing",
           (int)(info.time_ns / 1000000000), feed->trouble != NULL ? feed->trouble : "-",
           feed->is_over ? ", it is over" : "", feed->rests ? ", it rests" : "");
    ta_snapshot_free(snapshot);
}

static void fed_by_a_recording(void)
{
    struct cli_feed feed;
    printf("%d\n", cli_feed_open(&feed, "missing.ta", NULL));
    printf("%d\n", cli_feed_open(&feed, "5000001", NULL));
    record(UINT64_C(7000000000));
    mkdir("sub", 0700);
    put_recording("sub/x.ta");
    printf("%d ", cli_feed_open(&feed, "sub/x.ta", NULL));
    printf("%s %s %d %d %d\n", feed.path, feed.name, feed.channel, feed.asked, (int)cli_feed_resident(&feed));
    next_of(&feed);
    next_of(&feed);
    written_entry(&written);
    put_recording("sub/x.ta");
    next_of(&feed);
    struct ta_snapshot *again = cli_feed_again(&feed);
    printf("%s again\n", again != NULL ? "a snapshot" : "nothing");
    ta_snapshot_free(again);
    put("sub/x.ta", "no recording any more");
    next_of(&feed);
    unlink("sub/x.ta");
    next_of(&feed);
    cli_feed_close(&feed);
    put_recording("17");
    printf("%d", cli_feed_open(&feed, "17", NULL)); /* a file of that name comes before the process */
    printf(" %s\n", feed.path);
    next_of(&feed);
    put_recording("17");
    next_of(&feed);
    char said[100];
    cli_feed_turn(&feed, said, sizeof said);
    puts(said);
    cli_feed_close(&feed);
    written_close(&written);
    record(UINT64_C(7000000000));
    put_recording("y.ta");
    printf("%d\n", cli_feed_open(&feed, "y.ta", NULL));
    next_of(&feed);
    written_close(&written);
    record(UINT64_C(7000000000)); /* longer, and of the same moment */
    written.facts.time_ns = UINT64_C(7000000000);
    written_entry(&written);
    put_recording("y.ta");
    next_of(&feed);
    cli_feed_close(&feed);
    written_close(&written);
}

static pid_t started(const char *command)
{
    int begun[2];
    fflush(NULL);
    TEST_ASSERT_EQUAL_INT(0, pipe2(begun, O_CLOEXEC));
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    siginfo_t info;
    char byte;
    close(begun[1]);
    TEST_ASSERT_EQUAL_INT(0, read(begun[0], &byte, 1)); /* now it is another program */
    close(begun[0]);
    if (strncmp(command, "sleep", 5) != 0)
        waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    return child;
}

static void fed_by_a_program_of_ours(void)
{
    static const char *const ends[] = {"exit 0", "exit 3", "kill -9 $$"};
    record(UINT64_C(7000000000));
    put_recording("x.ta");
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct cli_feed feed = {.path = cli_text("x.ta"),
                                .said = cli_text("x.out"),
                                .name = cli_text("program"),
                                .channel = -1,
                                .asked = -1,
                                .runner = started(ends[i])};
        next_of(&feed);
        printf("runner %d\n", (int)feed.runner);
        next_of(&feed);
        cli_feed_close(&feed);
    }
    struct cli_feed feed = {.path = cli_text("x.ta"),
                            .said = cli_text("x.out"),
                            .name = cli_text("program"),
                            .channel = -1,
                            .asked = -1,
                            .runner = getpid()};
    pid_t child = started("sleep 1000"); /* what the runner started */
    next_of(&feed);
    printf("%s, resident %s\n", feed.process == child ? "its child" : "another process",
           cli_feed_resident(&feed) >= 4096 && cli_feed_resident(&feed) < 1 << 30 ? "known" : "unknown");
    feed.process = 5000001;
    cli_feed_close(&feed);
    /* One that somebody else started, until it ends. */
    struct cli_feed other = {
        .path = cli_text("x.ta"), .name = cli_text("other"), .channel = -1, .asked = -1, .process = child};
    next_of(&other);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    next_of(&other);
    printf("%d\n", (int)cli_feed_resident(&other));
    put("x.ta", "no recording any more"); /* what is said stays */
    next_of(&other);
    cli_feed_close(&other);
    written_close(&written);
}

static void fed_by_a_channel(void)
{
    char path[108], number[20], said[60];
    static const char *const all[] = {"+tracing=1\n",
                                      "+",
                                      "+tracing=1\n",
                                      "+",
                                      "+tracing=1\n",
                                      "+",
                                      "+tracing=0\n",
                                      "+tracing=1\n",
                                      "-it is full",
                                      "-no status",
                                      "+tracing=1\n",
                                      "+",
                                      "+tracing=0\n",
                                      "+tracing=1\n",
                                      "-not now",
                                      "",
                                      "+tracing=1\n",
                                      "+",
                                      NULL};
    answers = all;
    record(UINT64_C(7000000000));
    const struct ta__buffer *bytes = &written.writer.chunks.sink.memory;
    served = bytes->bytes;
    served_length = bytes->length;
    if (channel_begin(path, sizeof path) != 0) {
        puts("no channel");
        return;
    }
    struct cli_feed feed;
    snprintf(number, sizeof number, "%d", (int)getpid());
    printf("%d\n", cli_feed_open(&feed, number, NULL));
    printf("%s %s %d\n", feed.path == NULL ? "no recording" : feed.path, feed.name, feed.is_outside);
    next_of(&feed);
    struct ta_snapshot *again = cli_feed_again(&feed);
    printf("%s again\n", again != NULL ? "a snapshot" : "nothing");
    ta_snapshot_free(again);
    next_of(&feed); /* of the same moment */
    written_entry(&written);
    served = bytes->bytes;
    served_length = bytes->length;
    next_of(&feed);
    next_of(&feed); /* it rests */
    next_of(&feed); /* refused */
    next_of(&feed); /* no status, and the channel is lost: the next question opens it again */
    next_of(&feed);
    cli_feed_turn(&feed, said, sizeof said);
    puts(said);
    cli_feed_turn(&feed, said, sizeof said);
    puts(said);
    cli_feed_turn(&feed, said, sizeof said);
    puts(said);
    cli_feed_turn(&feed, said, sizeof said);
    puts(said);
    unlink(path);
    cli_feed_close(&feed);
    written_close(&written);
}

static void fed_from_outside(void)
{
    struct cli_feed feed = {
        .name = cli_text("program"), .channel = -1, .asked = -1, .process = getpid(), .is_outside = 1};
    mkdir("tmp", 0700);
    setenv("TMPDIR", "tmp", 1);
    next_of(&feed);
    printf("%d\n", rmdir("tmp")); /* nothing is left in it */
    next_of(&feed);
    feed.is_over = 1;
    next_of(&feed);
    cli_feed_close(&feed);
}

/* ---- the end of a run ---- */

static void tell_end(const char *reason, int64_t age_s, int end, const struct ta__fact_pair *pairs, size_t count)
{
    struct timespec now;
    char path[] = "x.ta";
    written_open(&written);
    clock_gettime(CLOCK_REALTIME, &now);
    written.facts.time_ns = (uint64_t)((int64_t)now.tv_sec - age_s) * UINT64_C(1000000000);
    written.facts.reason = reason;
    written.facts.pairs = pairs;
    written.facts.pair_count = count;
    written_entry(&written);
    put_recording(path);
    written_close(&written);
    struct cli_recording row = {.path = path, .process = 1, .entries = 1};
    struct cli_recordings found = {.end = end, .rows = &row, .count = 1, .first = &row, .largest = &row};
    printf("-- %s, %d\n", reason, end);
    cli_recordings_tell(&found, NULL, 0, 0, 0);
}

static void ends_of_runs(void)
{
    static const char *const reasons[] = {"exit", "end", "exec", "timer"};
    static const struct ta__fact_pair crash[] = {
        {"crash.signal", "SIGSEGV"},
        {"crash.address", "0x10"},
        {"crash.access", "read"},
        {"crash.cause", "nothing is there"},
        {"crash.frame.0", "/nonexistent/app+0x123"},
        {"crash.block", "5 bytes behind a live block of 1000 bytes"},
        {"crash.block.frame.0", "/nonexistent/app+0x456"},
        {"crash.block.frame.1", "/nonexistent/app+0x789"},
    };
    for (size_t i = 0; i < COUNT(reasons); i++)
        tell_end(reasons[i], -1000, SIGKILL, NULL, 0);
    tell_end("timer", -1000, SIGTERM, NULL, 0);
    tell_end("timer", -1000, SIGRTMIN, NULL, 0);
    tell_end("timer", -1000, 1 << 8, NULL, 0);
    static const struct ta__fact_pair cause[] = {
        {"crash.signal", "SIGBUS"}, {"crash.cause", "the file is shorter"}, {"crash.sender", "99"}};
    static const struct ta__fact_pair written_to[] = {
        {"crash.signal", "SIGSEGV"}, {"crash.access", "write"}, {"crash.address", "0x20"}};
    for (size_t i = 1; i <= COUNT(crash); i++)
        tell_end("end", 1, SIGSEGV, crash, i);
    for (size_t i = 2; i <= COUNT(cause); i++)
        tell_end("end", 1, SIGBUS, cause, i);
    for (size_t i = 2; i <= COUNT(written_to); i++)
        tell_end("end", 1, SIGSEGV, written_to, i);
    tell_end("end", 1, SIGSEGV, crash + 5, 1);
}

static void an_old_entry(void)
{
    tell_end("timer", 5000, SIGKILL, NULL, 0);
}

/* How old it is says the clock. */
static void test_the_age_of_the_last_entry_is_told(void)
{
    double age = 0;
    const char *said = strstr(said_by(an_old_entry), "the last entry is ");
    TEST_ASSERT_NOT_NULL(said);
    TEST_ASSERT_EQUAL(1, sscanf(said, "the last entry is %lf s old", &age));
    TEST_ASSERT_TRUE_MESSAGE(age >= 5000 && age < 5600, said);
}

/* ---- memory besides malloc ---- */

#define MAPPING_FUNCTION __attribute__((noinline, used)) static int
static volatile int sink;

MAPPING_FUNCTION je_map(int x)
{
    sink = x + 1;
    return sink * 3;
}

MAPPING_FUNCTION own_map(int x)
{
    sink = x + 2;
    return sink * 5;
}

MAPPING_FUNCTION other_map(int x)
{
    sink = x + 3;
    return sink * 7;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uint64_t *)base = info->dlpi_addr;
    return 1;
}

static struct ta__fact_pair facts_of[40];
static size_t fact_count;

static void fact(const char *key, const char *value)
{
    facts_of[fact_count++] = (struct ta__fact_pair){key, value};
}

static void number_fact(const char *key, uint64_t value)
{
    fact(key, cli_text("%llu", (unsigned long long)value));
}

/* So many bytes that a function of this program mapped. */
static void site(int number, int (*function)(int), uint64_t bytes)
{
    char program[4096] = "";
    uint64_t base = 0;
    dl_iterate_phdr(first_object, &base);
    (void)!readlink("/proc/self/exe", program, sizeof program - 1);
    number_fact(cli_text("memory.site.%d.peak", number), bytes);
    fact(cli_text("memory.site.%d.frame.0", number),
         cli_text("%s+0x%llx", program, (unsigned long long)((uint64_t)(uintptr_t)function + 1 - base)));
}

/* What is said of a process that had so much at most, was looked at when it had so much, and mapped so much. */
static void say_memory(const char *program, uint64_t most, uint64_t seen, uint64_t mapped, uint64_t peak)
{
    written_open(&written);
    if (mapped > 0)
        number_fact("memory.peak.kind.mapped", mapped);
    number_fact("memory.resident_peak", most);
    number_fact("memory.peak.resident", seen);
    written.facts.program = program;
    written.facts.pairs = facts_of;
    written.facts.pair_count = fact_count;
    written.fake.source.peak_bytes = peak;
    struct ta_snapshot *snapshot = written_next(&written);
    char *text = cli_memory_text(snapshot);
    const char *hint = cli_memory_hint(snapshot);
    text = text != NULL ? text : cli_text("nothing");
    for (char *at; (at = strstr(text, " (/")) != NULL;) /* where the functions of this test stand */
        memmove(at, strchr(at, ')') + 1, strlen(strchr(at, ')') + 1) + 1);
    printf("%s\n  %s\n", text, hint != NULL ? hint : "-");
    free(text);
    ta_snapshot_free(snapshot);
    written_close(&written);
    fact_count = 0;
}

enum { MIB = 1 << 20 };

static void memory_besides(void)
{
    say_memory("/bin/p", 16 * MIB, 16 * MIB, 0, 1000);
    say_memory("/bin/p", 16 * MIB - 1, 16 * MIB - 1, 0, 1000);
    say_memory("/bin/p", 16 * MIB, 0, 0, 1000);
    say_memory("/bin/p", 16 * MIB, 16 * MIB, 0, 8 * MIB);
    say_memory("/bin/p", 16 * MIB, 16 * MIB, 0, 8 * MIB + 1);
    say_memory("/bin/p", 16 * MIB, 16 * MIB, 0, 0);
    say_memory("p", 22000000, 20000000, 20000000, 1000);
    say_memory("p", 22000001, 20000000, 20000000, 1000);
    number_fact("memory.peak.kind.malloc", 400000); /* the fiftieth part */
    number_fact("memory.peak.kind.tracing", 399999);
    number_fact("memory.peak.kind.stacks", 2000000);
    number_fact("memory.peak.kind.libraries", 3000000);
    number_fact("memory.peak.kind.files", 5000000);
    number_fact("memory.peak.kind.shared", 4000000);
    say_memory("/bin/p", 20000000, 20000000, 5000000, 1000);
    site(0, own_map, 5000000);
    site(1, other_map, 6000000);
    say_memory("/bin/p", 20000000, 20000000, 11000000, 1000);
    site(0, own_map, 5000000);
    site(1, other_map, 6000000);
    say_memory("/bin/p", 20000000, 20000000, 10999999, 1000);
    site(0, own_map, 5000000);
    site(1, other_map, 3000000);
    site(2, own_map, 2000000);
    site(3, own_map, 0);
    site(4, own_map, 1000000);
    site(5, other_map, 1000000);
    site(6, other_map, 9000000);
    say_memory("/bin/p", 40000000, 40000000, 35000000, 1000);
    site(0, own_map, 5000000);
    site(1, je_map, 3000000);
    say_memory("/bin/p", 20000000, 20000000, 10000000, 1000);
    site(0, own_map, 5000000);
    site(1, own_map, 3000000);
    site(2, je_map, 3000000);
    say_memory("/bin/p", 20000000, 20000000, 20000000, 1000);
    static const char *const programs[] = {"/usr/bin/python3.11", "php8",   "/x/node", "java", "luajit",
                                           "pythonless/p",        "xpython"};
    for (size_t i = 0; i < COUNT(programs); i++)
        say_memory(programs[i], 1, 1, 0, 1000);
}

/* ---- what is said to take long ---- */

static int notes = -1; /* where it is noted what begins and ends; -1 = on the terminal, as ever */
static int is_silent[100], depth;

void __real_cli_progress_begin(const char *label);
void __wrap_cli_progress_begin(const char *label);
void __wrap_cli_progress_begin(const char *label)
{
    if (notes < 0) {
        __real_cli_progress_begin(label);
        return;
    }
    is_silent[depth++] = strcmp(label, "looking up symbols") == 0; /* as often as the library likes */
    if (!is_silent[depth - 1])
        dprintf(notes, " (%s", label);
}

void __real_cli_progress_begin_output(void);
void __wrap_cli_progress_begin_output(void);
void __wrap_cli_progress_begin_output(void)
{
    if (notes < 0) {
        __real_cli_progress_begin_output();
        return;
    }
    is_silent[depth++] = 0;
    dprintf(notes, " (output");
}

void __real_cli_progress_end(void);
void __wrap_cli_progress_end(void);
void __wrap_cli_progress_end(void)
{
    if (notes < 0)
        __real_cli_progress_end();
    else if (depth == 0)
        dprintf(notes, " ends what has not begun");
    else if (!is_silent[--depth])
        dprintf(notes, ")");
}

void __real_cli_progress_set(void *user, size_t done, size_t total);
void __wrap_cli_progress_set(void *user, size_t done, size_t total);
void __wrap_cli_progress_set(void *user, size_t done, size_t total)
{
    if (notes < 0)
        __real_cli_progress_set(user, done, total);
    else if (depth > 0 && !is_silent[depth - 1])
        dprintf(notes, " %zu/%zu", done, total);
}

static const char *core_path;

/* Descriptors that are open, and files of this folder and cores that are mapped. */
static int opened_now(void)
{
    int count = 0;
    char line[5000];
    for (int i = 0; i < 200; i++)
        count += fcntl(i, F_GETFD) >= 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, folder) != NULL || strstr(line, ".core.zst") != NULL;
    if (maps != NULL)
        fclose(maps);
    return count;
}

static void note(const struct cli_command *command, const char *line)
{
    int before = opened_now();
    dprintf(notes, "%s:", line);
    call(command, line);
    fflush(stdout);
    int more = opened_now() - before;
    if (more != 0)
        dprintf(notes, " and leaves %d open", more);
    dprintf(notes, depth == 0 ? "\n" : " and goes on\n");
    depth = 0;
}

/* What has begun ends, in every command: else a line would stay on the terminal. */
static void long_parts(void)
{
    static const struct {
        const struct cli_command *command;
        const char *line;
    } all[] = {
        {&cli_top, "top x.ta"},
        {&cli_top, "top x.ta --where own:* --spec spec.json --json"},
        {&cli_top, "top x.ta --where size>=1 --csv --by function"},
        {&cli_top, "top x.ta --by bogus"},
        {&cli_top, "top missing.ta"},
        {&cli_top, "top x.ta --spec missing"},
        {&cli_top, "top x.run"},
        {&cli_diff, "diff x.ta y.ta"},
        {&cli_diff, "diff x.ta y.ta --json"},
        {&cli_diff, "diff x.ta missing.ta"},
        {&cli_tree, "tree x.ta"},
        {&cli_tree, "tree x.ta y.ta --bottom-up --collapse"},
        {&cli_flame, "flame x.ta -o f.svg"},
        {&cli_flame, "flame x.ta y.ta"},
        {&cli_flame, "flame x.ta -o missing/f.svg"},
        {&cli_export, "export x.ta --format folded"},
        {&cli_export, "export x.ta --format csv -o x.csv"},
        {&cli_export, "export x.ta --format jsonl"},
        {&cli_export, "export x.ta --json"},
        {&cli_export, "export x.ta --python"},
        {&cli_export, "export x.ta --format speedscope"},
        {&cli_export, "export x.ta --format pprof"},
        {&cli_export, "export x.ta --format folded -o missing/x"},
        {&cli_growth, "growth x.ta"},
        {&cli_growth, "growth x.ta y.ta --json"},
        {&cli_report, "report x.ta -o r.html"},
        {&cli_report, "report x.ta y.ta -o r.html"},
        {&cli_report, "report x.run -o r.html"},
        {&cli_annotate, "annotate x.ta"},
        {&cli_biggest, "biggest x.ta"},
        {&cli_check, "check x.ta"},
        {&cli_check, "check missing.ta"},
        {&cli_list, "list x.ta"},
        {&cli_list, "list x.run"},
        {&cli_info, "info x.ta"},
        {&cli_domains, "domains x.ta"},
        {&cli_pretty, "pretty x.ta"},
        {&cli_stats, "stats x.ta"},
        {&cli_symbolize, "symbolize x.ta -o s.ta"},
        {&cli_filter, "filter x.ta --where size>=1 -o f.ta"},
        {&cli_import, "import x.json -o i.ta"},
        {&cli_import, "import missing.json -o i.ta"},
        {&cli_gate, "gate x.ta y.ta"},
        {&cli_rules, "rules check rules x.ta"},
        {&cli_rules, "rules compile rules x.ta -o c.rules"},
        {&cli_leaks, "leaks core"},
        {&cli_memory, "memory core --flame m.svg"},
        {&cli_retained, "retained core"},
        {&cli_retained, "retained core --blocks"},
        {&cli_why, "why 0x569368d01b0 core"},
        {&cli_take, "take core -o t.ta"},
        {&cli_leaks, "leaks missing"},
        {&cli_leaks, "leaks core --suppressions known"},
        {&cli_leaks, "leaks core core --json"},
        {&cli_memory, "memory x.ta core y.ta"},
        {&cli_memory, "memory missing"},
        {&cli_retained, "retained core --by bogus"},
        {&cli_why, "why core"},
        {&cli_why, "why 0x569368d01b0 core --history x.ta"},
        {&cli_why, "why 0x569368d01b0 core --history missing"},
        {&cli_take, "take core core -o missing/%p"},
        {&cli_symbolize, "symbolize s.ta"},
        {&cli_symbolize, "symbolize y.ta"},
        {&cli_annotate, "annotate x.ta --source a.c"},
        {&cli_gate, "gate x.ta -o base.txt"},
        {&cli_gate, "gate x.ta --baseline base.txt --suppressions known --no-leaks"},
        {&cli_rules, "rules check rules core_path"},
    };
    record(UINT64_C(7000000000));
    put_recording("x.ta");
    written_entry(&written);
    put_recording("y.ta");
    written_close(&written);
    put("spec.json", "[]");
    put("x.json", "{\"traceback_limit\": 1, \"traces\": [{\"size\": 5, \"frames\": [[\"a.c\", 1]]}]}");
    put("rules", "7 seven function=f*\n");
    put("known", "leak:app\n");
    mkdir("x.run", 0700);
    put("x.run/index", "tracealloc run 2\tmine\n1\t0\t0\texit\t../x.ta\tfirst\t-\n2\t1\t0\texit\t../y.ta\tsecond\t-\n");
    if (symlink(core_path, "core") != 0)
        puts("no core");
    fflush(NULL);
    notes = dup(STDOUT_FILENO);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    for (size_t i = 0; i < COUNT(all); i++)
        note(all[i].command, all[i].line);
}

/* ---- all of them ---- */

static void test_programs_of_other_machines_are_named(void)
{
    TEST_ASSERT_EQUAL_STRING("2 ./program: is a program for 32-bit x86\n"
                             "2 ./program: is a program for 32-bit ARM\n"
                             "2 ./program: is a program for RISC-V\n"
                             "2 ./program: is a program for 64-bit POWER\n"
                             "2 ./program: is a program for S/390\n"
                             "2 ./program: is a program for machine number 0\n"
                             "2 ./program: is a program for machine number 999\n"
                             "./program: is a program for S/390\n"
                             "2\n"
                             "2 ./program: is a program for 32-bit x86-64\n",
                             said_by(machines));
}

static void test_what_the_loader_is_decides(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "fine, ./program: 0 ./program\n"
        "musl, ./program: 2 ./program: uses the C library musl, and libtracealloc is built for glibc: build tracealloc "
        "there\n"
        "a loader that is not here, ./program: 2 ./program: wants the loader /nonexistent/ld.so, which is not here: "
        "install the C library that it belongs to\n"
        "static, ./program: 2 ./program: is linked statically, so nothing can be preloaded: link it dynamically, or "
        "link libtracealloc.a into it and set TRACEALLOC=65535 and TRACEALLOC_OPTIONS=output=FILE.ta\n"
        "static, of one segment, ./program: 2 ./program: is linked statically, so nothing can be preloaded: link it "
        "dynamically, or link libtracealloc.a into it and set TRACEALLOC=65535 and TRACEALLOC_OPTIONS=output=FILE.ta\n"
        "segments of another size, ./program: 2 ./program: is a damaged ELF file\n"
        "segments that are cut short, ./program: 2 ./program: is a damaged ELF file\n"
        "a loader behind the end, ./program: 2 ./program: is a damaged ELF file\n"
        "./program: 0 ./program\n"
        "no ELF file, ./program: 0 ./program\n",
        said_by(loaders));
}

static void test_sanitizers_are_found_by_their_names(void)
{
    TEST_ASSERT_EQUAL_STRING("__asan_init, ./program: 2 ./program: is built with -fsanitize=address, which brings an "
                             "allocator of its own: trace a build without it\n"
                             "__hwasan_init, ./program: 2 ./program: is built with -fsanitize=hwaddress, which brings "
                             "an allocator of its own: trace a build without it\n"
                             "__tsan_init, ./program: 2 ./program: is built with -fsanitize=thread, which brings an "
                             "allocator of its own: trace a build without it\n"
                             "__msan_init, ./program: 2 ./program: is built with -fsanitize=memory, which brings an "
                             "allocator of its own: trace a build without it\n"
                             "__asan_inits, ./program: 0 ./program\n"
                             "x__asan_init, ./program: 2 ./program: is built with -fsanitize=address, which brings an "
                             "allocator of its own: trace a build without it\n"
                             "the last name, ./program: 2 ./program: is built with -fsanitize=address, which brings an "
                             "allocator of its own: trace a build without it\n"
                             "names cut short, ./program: 0 ./program\n"
                             "names behind the end, ./program: 0 ./program\n"
                             "too many names, ./program: 0 ./program\n"
                             "nothing dynamic, ./program: 0 ./program\n"
                             "no dynamic segment, ./program: 0 ./program\n"
                             "names that are not loaded, ./program: 0 ./program\n"
                             "names that are, ./program: 2 ./program: is built with -fsanitize=address, which brings "
                             "an allocator of its own: trace a build without it\n"
                             "at the beginning of what is loaded, ./program: 2 ./program: is built with "
                             "-fsanitize=address, which brings an allocator of its own: trace a build without it\n"
                             "before it, ./program: 0 ./program\n"
                             "dynamic behind the end, ./program: 0 ./program\n",
                             said_by(sanitizers));
}

static void test_scripts_lead_to_their_interpreters(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "./script: 0 ./script\n"
        "./script: 0 ./script\n"
        "./script: 0 ./script\n"
        "./script: 2 ./script: its first line names no interpreter\n"
        "./script: 2 ./script: its first line names no interpreter\n"
        "./script: 2 ./script: its interpreter ~/missing is not here: install it, or correct the first line\n"
        "./script: 0 ./script\n"
        "./script: 0 ./script\n"
        "./script: 0 ./script\n"
        "./chain-0: 0 ./chain-0\n"
        "./chain-1: 0 ./chain-1\n"
        "./chain-2: 0 ./chain-2\n"
        "./chain-3: 0 ./chain-3\n"
        "./chain-4: 0 ./chain-4\n"
        "./chain-5: 2 ~/chain-0: too many interpreters behind one another\n"
        "./chain-6: 2 ~/chain-1: too many interpreters behind one another\n",
        said_by(scripts));
}

static void test_programs_are_found_as_execvp_does(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "both: 0 ~/other/both\n"
        "denied: 1 denied: permission denied\n"
        "folder: 1 folder: no such program in PATH\n"
        "missing: 1 missing: no such program in PATH\n"
        "here: 1 here: no such program in PATH (for the one in this folder say ./here)\n"
        "25: 1 25: no such program in PATH (a number of frames is given as --nframe=25)\n"
        "25x: 1 25x: no such program in PATH\n"
        ": 1 the program's name is empty\n"
        "./here: 0 ./here\n"
        "other/folder: 2 other/folder: is a folder, not a program\n"
        "bin/denied: 2 bin/denied: is not executable (chmod +x it, or name its interpreter before it)\n"
        "bin/missing: 1 bin/missing: No such file or directory\n"
        "other/both: 0 other/both\n"
        "here: 0 ./here\n"
        "here: 1 here: no such program in PATH (for the one in this folder say ./here)\n"
        "here: 1 here: no such program in PATH (for the one in this folder say ./here)\n"
        "0 sh\n",
        said_by(names_of_programs));
}

static void test_programs_with_other_rights_are_refused(void)
{
    TEST_ASSERT_EQUAL_STRING("./program: 0 ./program\n"
                             "./program: 0 ./program\n"
                             "is set\n"
                             "./program\n"
                             "is set\n",
                             said_by(rights_of_programs));
}

static void test_a_library_that_is_given_must_be_one(void)
{
    TEST_ASSERT_EQUAL_STRING("~/lib.so\n"
                             "0\n"
                             "tracealloc: run: TRACEALLOC_LIBRARY: missing.so: No such file or directory\n"
                             "125\n"
                             "tracealloc: run: TRACEALLOC_LIBRARY: .: is no file\n"
                             "125\n"
                             "tracealloc: run: ~/a b/lib.so: the loader cannot preload a path with a blank or a colon: "
                             "name a copy elsewhere in TRACEALLOC_LIBRARY\n"
                             "125\n"
                             "tracealloc: run: ~/a:b: the loader cannot preload a path with a blank or a colon: name a "
                             "copy elsewhere in TRACEALLOC_LIBRARY\n"
                             "125\n",
                             said_by(libraries));
}

static void test_runs_are_measured_in_their_environment(void)
{
    TEST_ASSERT_EQUAL_STRING("0, status 0, in time, cpu, memory, counted or not\n"
                             "none none none\n"
                             "0, status 0, in time, cpu, memory, counted or not\n"
                             "3 sample=1 /nonexistent/a.so\n"
                             "0, status 0, in time, cpu, memory, counted or not\n"
                             "3 sample=1 /nonexistent/a.so\n"
                             "0, status 0, in time, cpu, memory, counted or not\n"
                             "3 sample=1 /nonexistent/a.so:/nonexistent/b.so\n"
                             "0, status 0, in time, cpu, memory, counted or not\n"
                             "3 sample=1 /nonexistent/b.so\n"
                             "0, status 3, in time, cpu, memory, counted or not\n"
                             "0, status 137, in time, cpu, memory, counted or not\n"
                             "0, status 143, in time, cpu, memory, counted or not\n"
                             "0, status 127, in time, cpu, memory, counted or not\n",
                             said_by(measured_runs));
}

static void test_servers_are_ended(void)
{
    TEST_ASSERT_EQUAL_STRING("0, status 0, in time, cpu, memory, counted or not\n"
                             "0, status 5, early, in time, cpu, memory, counted or not\n"
                             "0, status 4, in time, cpu, memory, counted or not\n"
                             "0, status 137, killed, in time, cpu, memory, counted or not\n"
                             "0, status 143, early, in time, cpu, memory, counted or not\n"
                             "0, status 0, in time, cpu, memory, counted or not\n"
                             "load\n"
                             "0, status 0, early, in time, cpu, memory, counted or not\n"
                             "ended\n",
                             said_by(measured_servers));
}

static void test_costs_are_told_as_they_were_measured(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "$ cost -r 1 --modes own,whole sh x\n"
        "sh - - - - 0\n"
        "sh /lib.so 65535 - - 0\n"
        "sh /lib.so 65535 - - 0\n"
        "sh - - - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          2.000 s    3.000 s  2048 KiB  1.000                  1.000                  1.000                "
        "  1.000\n"
        "whole        1.000 s    1.500 s  1024 KiB  0.500                  0.500                  0.500                "
        "  0.500\n"
        "\n"
        "1 round in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds; too few "
        "rounds for intervals.\n"
        "4 runs\n"
        "$ cost -r 2 --modes own,one,whole --for 3 --load l -- sh\n"
        "sh - - - l 3\n"
        "sh /lib.so 1 - l 3\n"
        "sh /lib.so 65535 - l 3\n"
        "sh /lib.so 1 - l 3\n"
        "sh /lib.so 65535 - l 3\n"
        "sh - - - l 3\n"
        "sh /lib.so 65535 - l 3\n"
        "sh - - - l 3\n"
        "sh /lib.so 1 - l 3\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          1.450 s    2.175 s  1485 KiB  1.000                  1.000                  1.000                "
        "  1.000\n"
        "one          1.375 s    2.062 s  1408 KiB  0.926                  0.926                  0.926                "
        "  0.926\n"
        "whole        1.050 s    1.575 s  1075 KiB  0.721                  0.721                  0.721                "
        "  0.721\n"
        "\n"
        "2 rounds in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds; too few "
        "rounds for intervals.\n"
        "9 runs\n"
        "$ cost -r 3 --modes own,sampled --markdown sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 65535 sample=512K - 0\n"
        "sh /lib.so 65535 sample=512K - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 65535 sample=512K - 0\n"
        "sh /lib.so 65535 sample=512K - 0\n"
        "sh - - - - 0\n"
        "| mode | cpu | wall | peak memory | cpu ratio | wall ratio | memory ratio | instructions ratio |\n"
        "|---|---|---|---|---|---|---|---|\n"
        "| own       |    1.200 s |    1.800 s |  1229 KiB | 1.000 | 1.000 | 1.000 | 1.000 |\n"
        "| sampled   |    1.500 s |    2.250 s |  1536 KiB | 1.097 [0.406, 2.961] | 1.097 [0.406, 2.961] | 1.097 "
        "[0.406, 2.961] | 1.097 [0.406, 2.961] |\n"
        "\n"
        "3 rounds in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds with 95 % "
        "intervals.\n"
        "8 runs\n"
        "$ cost -r 3 --modes own,stopped,whole --json sh\n"
        "sh - - - - 0\n"
        "sh /lib.so - - - 0\n"
        "sh /lib.so 65535 - - 0\n"
        "sh /lib.so - - - 0\n"
        "sh /lib.so 65535 - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 65535 - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so - - - 0\n"
        "sh /lib.so 65535 - - 0\n"
        "{\"rounds\": 3, \"base\": \"own\", \"modes\": [\n"
        " {\"mode\": \"own\", \"cpu\": {\"median\": 1.3, \"ratio\": 1.00000, \"low\": 1.00000, \"high\": 1.00000, "
        "\"outliers\": 0, \"runs\": [1.6, 1.3, 1]}, \"wall\": {\"median\": 1.95, \"ratio\": 1.00000, \"low\": 1.00000, "
        "\"high\": 1.00000, \"outliers\": 0, \"runs\": [2.4, 1.95, 1.5]}, \"memory\": {\"median\": 1.36315e+06, "
        "\"ratio\": 1.00000, \"low\": 1.00000, \"high\": 1.00000, \"outliers\": 0, \"runs\": [1.67772e+06, "
        "1.36315e+06, 1.04858e+06]}, \"instructions\": {\"median\": 1.3e+06, \"ratio\": 1.00000, \"low\": 1.00000, "
        "\"high\": 1.00000, \"outliers\": 0, \"runs\": [1.6e+06, 1.3e+06, 1e+06]}},\n"
        " {\"mode\": \"stopped\", \"cpu\": {\"median\": 1.1, \"ratio\": 0.98097, \"low\": 0.40236, \"high\": 2.39163, "
        "\"outliers\": 0, \"runs\": [1.05, 1.7, 1.1]}, \"wall\": {\"median\": 1.65, \"ratio\": 0.98097, \"low\": "
        "0.40236, \"high\": 2.39163, \"outliers\": 0, \"runs\": [1.575, 2.55, 1.65]}, \"memory\": {\"median\": "
        "1.15343e+06, \"ratio\": 0.98097, \"low\": 0.40236, \"high\": 2.39163, \"outliers\": 0, \"runs\": [1.101e+06, "
        "1.78258e+06, 1.15343e+06]}, \"instructions\": {\"median\": 1.1e+06, \"ratio\": 0.98097, \"low\": 0.40236, "
        "\"high\": 2.39163, \"outliers\": 0, \"runs\": [1.05e+06, 1.7e+06, 1.1e+06]}},\n"
        " {\"mode\": \"whole\", \"cpu\": {\"median\": 1.2, \"ratio\": 0.92006, \"low\": 0.31994, \"high\": 2.64583, "
        "\"outliers\": 0, \"runs\": [1.2, 0.9, 1.5]}, \"wall\": {\"median\": 1.8, \"ratio\": 0.92006, \"low\": "
        "0.31994, \"high\": 2.64583, \"outliers\": 0, \"runs\": [1.8, 1.35, 2.25]}, \"memory\": {\"median\": "
        "1.25829e+06, \"ratio\": 0.92006, \"low\": 0.31994, \"high\": 2.64583, \"outliers\": 0, \"runs\": "
        "[1.25829e+06, 943718, 1.57286e+06]}, \"instructions\": {\"median\": 1.2e+06, \"ratio\": 0.92006, \"low\": "
        "0.31994, \"high\": 2.64583, \"outliers\": 0, \"runs\": [1.2e+06, 900000, 1.5e+06]}}\n"
        "]}\n"
        "12 runs\n"
        "$ cost -r 1 --modes whole --json sh\n"
        "sh /lib.so 65535 - - 0\n"
        "sh /lib.so 65535 - - 0\n"
        "{\"rounds\": 1, \"base\": \"whole\", \"modes\": [\n"
        " {\"mode\": \"whole\", \"cpu\": {\"median\": 2, \"ratio\": 1.00000, \"outliers\": 0, \"runs\": [2]}, "
        "\"wall\": {\"median\": 3, \"ratio\": 1.00000, \"outliers\": 0, \"runs\": [3]}, \"memory\": {\"median\": "
        "2.09715e+06, \"ratio\": 1.00000, \"outliers\": 0, \"runs\": [2.09715e+06]}, \"instructions\": {\"median\": "
        "2e+06, \"ratio\": 1.00000, \"outliers\": 0, \"runs\": [2e+06]}}\n"
        "]}\n"
        "2 runs\n"
        "$ cost -r 4 --modes own,one --json sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "{\"rounds\": 4, \"base\": \"own\", \"modes\": [\n"
        " {\"mode\": \"own\", \"cpu\": {\"median\": 1, \"ratio\": 1.00000, \"low\": 1.00000, \"high\": 1.00000, "
        "\"outliers\": 0, \"runs\": [1, 0.99, 1, 9]}, \"wall\": {\"median\": 1.5, \"ratio\": 1.00000, \"low\": "
        "1.00000, \"high\": 1.00000, \"outliers\": 0, \"runs\": [1.5, 1.485, 1.5, 1.5]}, \"memory\": {\"median\": "
        "1.04858e+06, \"ratio\": 1.00000, \"low\": 1.00000, \"high\": 1.00000, \"outliers\": 0, \"runs\": "
        "[1.04858e+06, 1.03809e+06, 1.04858e+06, 9.43718e+06]}},\n"
        " {\"mode\": \"one\", \"cpu\": {\"median\": 1, \"ratio\": 0.58024, \"low\": 0.10051, \"high\": 3.34982, "
        "\"outliers\": 0, \"runs\": [1.01, 1, 1, 1]}, \"wall\": {\"median\": 1.5, \"ratio\": 1.00501, \"low\": "
        "0.99582, \"high\": 1.01429, \"outliers\": 0, \"runs\": [1.515, 1.5, 1.5, 1.5]}, \"memory\": {\"median\": "
        "1.04858e+06, \"ratio\": 0.58024, \"low\": 0.10051, \"high\": 3.34982, \"outliers\": 0, \"runs\": "
        "[1.05906e+06, 1.04858e+06, 1.04858e+06, 1.04858e+06]}}\n"
        "]}\n"
        "10 runs\n"
        "$ cost -r 6 --modes own,one sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          1.000 s    1.500 s  1024 KiB  1.000                  1.000                  1.000                "
        "  -\n"
        "one          1.000 s    1.500 s  1024 KiB  0.697 [0.271, 1.791]   1.005 [0.994, 1.016]   0.697 [0.271, 1.791] "
        "  -\n"
        "\n"
        "6 rounds in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds with 95 % "
        "intervals.\n"
        "1 outlier among the times: something else was running, or the program varies.\n"
        "14 runs\n"
        "$ cost -r 7 --modes own,one --json sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "{\"rounds\": 7, \"base\": \"own\", \"modes\": [\n"
        " {\"mode\": \"own\", \"cpu\": {\"median\": 1, \"ratio\": 1.00000, \"low\": 1.00000, \"high\": 1.00000, "
        "\"outliers\": 0, \"runs\": [1, 0.99, 1, 9, 1, 1.01, 1]}, \"wall\": {\"median\": 1.5, \"ratio\": 1.00000, "
        "\"low\": 1.00000, \"high\": 1.00000, \"outliers\": 0, \"runs\": [1.5, 1.485, 1.5, 1.5, 1.5, 1.515, 1.5]}, "
        "\"memory\": {\"median\": 1.04858e+06, \"ratio\": 1.00000, \"low\": 1.00000, \"high\": 1.00000, \"outliers\": "
        "0, \"runs\": [1.04858e+06, 1.03809e+06, 1.04858e+06, 9.43718e+06, 1.04858e+06, 1.05906e+06, 1.04858e+06]}},\n"
        " {\"mode\": \"one\", \"cpu\": {\"median\": 1, \"ratio\": 0.73372, \"low\": 0.33977, \"high\": 1.58447, "
        "\"outliers\": 0, \"runs\": [1.01, 1, 1, 1, 1.02, 1, 1]}, \"wall\": {\"median\": 1.5, \"ratio\": 1.00427, "
        "\"low\": 0.99531, \"high\": 1.01332, \"outliers\": 0, \"runs\": [1.515, 1.5, 1.5, 1.5, 1.53, 1.5, 1.5]}, "
        "\"memory\": {\"median\": 1.04858e+06, \"ratio\": 0.73372, \"low\": 0.33977, \"high\": 1.58447, \"outliers\": "
        "0, \"runs\": [1.05906e+06, 1.04858e+06, 1.04858e+06, 1.04858e+06, 1.06955e+06, 1.04858e+06, 1.04858e+06]}}\n"
        "]}\n"
        "16 runs\n"
        "$ cost -r 20 --modes own,one sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          1.000 s    1.500 s  1024 KiB  1.000                  1.000                  1.000                "
        "  -\n"
        "one          1.000 s    1.500 s  1024 KiB  0.999 [0.716, 1.395]   0.999 [0.995, 1.003]   0.999 [0.716, 1.395] "
        "  -\n"
        "\n"
        "20 rounds in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds with 95 % "
        "intervals.\n"
        "42 runs\n"
        "$ cost -r 21 --modes own,one sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          1.200 s    1.800 s  1229 KiB  1.000                  1.000                  1.000                "
        "  1.000\n"
        "one          1.200 s    1.800 s  1229 KiB  1.013 [0.859, 1.196]   1.013 [0.859, 1.196]   1.013 [0.859, 1.196] "
        "  1.013 [0.859, 1.196]\n"
        "\n"
        "21 rounds in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds with 95 % "
        "intervals.\n"
        "44 runs\n"
        "$ cost -r 22 --modes own,one sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          1.200 s    1.800 s  1229 KiB  1.000                  1.000                  1.000                "
        "  1.000\n"
        "one          1.200 s    1.800 s  1229 KiB  0.989 [0.838, 1.166]   0.989 [0.838, 1.166]   0.989 [0.838, 1.166] "
        "  0.989 [0.838, 1.166]\n"
        "\n"
        "22 rounds in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds with 95 % "
        "intervals.\n"
        "46 runs\n"
        "$ cost --modes own,untraced sh\n"
        "tracealloc: warning: ~/libtracealloc-untraced.so is not there: without \"untraced\"\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          2.000 s    3.000 s  2048 KiB  1.000                  1.000                  1.000                "
        "  1.000\n"
        "\n"
        "5 rounds in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds with 95 % "
        "intervals.\n"
        "6 runs\n"
        "$ cost --modes untraced sh\n"
        "tracealloc: warning: ~/libtracealloc-untraced.so is not there: without \"untraced\"\n"
        "[2]\n"
        "0 runs\n"
        "$ cost -r 1 --modes own,untraced sh\n"
        "sh - - - - 0\n"
        "sh /libtracealloc-untraced.so - - - 0\n"
        "sh /libtracealloc-untraced.so - - - 0\n"
        "sh - - - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          2.000 s    3.000 s  2048 KiB  1.000                  1.000                  1.000                "
        "  1.000\n"
        "untraced     1.000 s    1.500 s  1024 KiB  0.500                  0.500                  0.500                "
        "  0.500\n"
        "\n"
        "1 round in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds; too few "
        "rounds for intervals.\n"
        "4 runs\n"
        "$ cost -r 1 sh\n"
        "sh - - - - 0\n"
        "sh /libtracealloc-untraced.so - - - 0\n"
        "sh /lib.so - - - 0\n"
        "tracealloc: cost: sh failed under \"stopped\": status 7 (-i measures it all the same)\n"
        "[2]\n"
        "3 runs\n"
        "$ cost -r 1 sh\n"
        "sh - - - - 0\n"
        "sh /libtracealloc-untraced.so - - - 0\n"
        "sh /lib.so - - - 0\n"
        "sh /lib.so 65535 sample=512K - 0\n"
        "tracealloc: cost: sh failed under \"sampled\": signal 1\n"
        "[2]\n"
        "4 runs\n"
        "$ cost -r 1 sh\n"
        "sh - - - - 0\n"
        "sh /libtracealloc-untraced.so - - - 0\n"
        "tracealloc: cost: sh failed under \"untraced\": status 128 (-i measures it all the same)\n"
        "[2]\n"
        "2 runs\n"
        "$ cost -r 1 sh\n"
        "sh - - - - 0\n"
        "sh /libtracealloc-untraced.so - - - 0\n"
        "tracealloc: cost: Too many open files\n"
        "[2]\n"
        "2 runs\n"
        "$ cost -r 1 --modes own missing\n"
        "tracealloc: cost: missing: no such program in PATH\n"
        "[2]\n"
        "0 runs\n",
        said_by(costs));
}

static void test_what_is_not_counted_is_not_told(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "$ cost -r 1 --modes own,one sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          5.500 s    8.250 s  5632 KiB  1.000                  1.000                  1.000                "
        "  -\n"
        "one          5.000 s    7.500 s  5120 KiB  0.909                  0.909                  0.909                "
        "  -\n"
        "\n"
        "1 round in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds; too few "
        "rounds "
        "for intervals.\n"
        "Instructions are not counted here: the kernel or the machine does not let them be; --instructions asks "
        "valgrind.\n"
        "4 runs\n"
        "$ cost -r 2 --modes own,one --json sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "{\"rounds\": 2, \"base\": \"own\", \"modes\": [\n"
        " {\"mode\": \"own\"},\n"
        " {\"mode\": \"one\"}\n"
        "]}\n"
        "6 runs\n"
        "$ cost -r 2 --modes own,one sh\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "sh - - - - 0\n"
        "sh - - - - 0\n"
        "sh /lib.so 1 - - 0\n"
        "MODE             CPU       WALL    MEMORY  CPU TIMES              WALL TIMES             MEMORY TIMES         "
        "  INSTRUCTIONS TIMES\n"
        "own          2.500 s    3.750 s  2560 KiB  -                      -                      -                    "
        "  -\n"
        "one          5.500 s    8.250 s  5632 KiB  -                      -                      -                    "
        "  -\n"
        "\n"
        "2 rounds in turns after a warm-up; medians, and ratios to \"own\" as geometric means of the rounds; too few "
        "rounds "
        "for intervals.\n"
        "6 runs\n",
        said_by(costs_without_counters));
}

static void test_a_process_is_asked_and_its_answers_are_told(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "\n"
        "< status\n"
        "PID: tracing, whole stacks; 1024 B live, peak 4096 B, tables 64.0 KiB\n"
        "recording in /x/y.ta\n"
        "\n"
        "< status\n"
        "PID: tracing, 1 frame, one block in 512 KiB; 5 B live, peak 6 B, tables 7 B\n"
        "it has written no entry yet\n"
        "an entry every 1.5 s\n"
        "1 allocation was not traced for want of memory\n"
        "\n"
        "< status\n"
        "PID: tracing, 65534 frames; 5 B live, peak 0 B, tables 0 B\n"
        "it has no recording: snapshot -o FILE takes one\n"
        "2 allocations were not traced for want of memory\n"
        "\n"
        "< status\n"
        "PID: not tracing\n"
        "it has no recording: snapshot -o FILE takes one\n"
        "\n"
        "< status\n"
        "{\"process\": PID, \"tracing\": true, \"frames\": 2, \"sample\": 3, \"live\": 4, \"peak\": 5, \"tracer\": 6, "
        "\"stacks\": 7, \"lost\": 8, \"interval\": 2.5, \"recording\": \"/a \\\"b\\\"\\\\\\u001f .ta\"}\n"
        "\n"
        "< status\n"
        "{\"process\": PID, \"tracing\": false, \"frames\": 0, \"sample\": 0, \"live\": 0, \"peak\": 0, \"tracer\": 0, "
        "\"stacks\": 0, \"lost\": 0, \"interval\": 0, \"recording\": null}\n"
        "\n"
        "< status\n"
        "tracealloc: ctl: process PID: it does not want to\n"
        "[2]\n"
        "\n"
        "< status\n"
        "tracealloc: ctl: process PID: it has ended\n"
        "[2]\n"
        "\n"
        "< start \n"
        "PID: tracing, whole stacks\n"
        "\n"
        "< start 25\n"
        "PID: is tracing already, 25 frames, one block in 1024 B\n"
        "\n"
        "< start 25\n"
        "tracealloc: ctl: process PID: already\n"
        "[2]\n"
        "\n"
        "< stop\n"
        "PID: no longer tracing; recording in /x.ta\n"
        "\n"
        "< stop\n"
        "PID: no longer tracing\n"
        "\n"
        "< stop\n"
        "PID: is not tracing\n"
        "\n"
        "< stop\n"
        "tracealloc: ctl: process PID: no\n"
        "tracealloc: ctl: it is traced as before: take what it holds with snapshot -o FILE, or lose it with stop "
        "--force\n"
        "[2]\n"
        "\n"
        "< stop force\n"
        "tracealloc: ctl: process PID: no force\n"
        "[2]\n"
        "\n"
        "< clear\n"
        "PID: traces forgotten, tracing goes on\n"
        "\n"
        "< clear\n"
        "tracealloc: ctl: process PID: not now\n"
        "[2]\n"
        "\n"
        "< status\n"
        "< snapshot\n"
        "PID: one more entry in /x.ta\n"
        "\n"
        "< status\n"
        "< snapshot\n"
        "tracealloc: ctl: process PID: full\n"
        "[2]\n"
        "\n"
        "< status\n"
        "< snapshot with a file\n"
        "PID: snapshot in tracealloc.PID.1.ta\n"
        "\n"
        "< status\n"
        "< snapshot with a file\n"
        "PID: snapshot in tracealloc.PID.3.ta\n"
        "\n"
        "< status\n"
        "tracealloc: ctl: process PID: no status\n"
        "[2]\n"
        "\n"
        "< snapshot with a file\n"
        "PID: snapshot in named.ta\n"
        "\n"
        "< snapshot with a file\n"
        "tracealloc: ctl: process PID: cannot\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: missing/x.ta: No such file or directory\n"
        "[2]\n"
        "\n"
        "< mark before the load\n"
        "PID: marked\n"
        "\n"
        "< mark x\n"
        "tracealloc: ctl: process PID: no mark\n"
        "[2]\n"
        "\n"
        "< interval 10\n"
        "PID: an entry every 0.01 s\n"
        "\n"
        "< interval 0\n"
        "PID: no entries by interval\n"
        "\n"
        "< interval 1000000000\n"
        "PID: an entry every 1000000 s\n"
        "\n"
        "< interval 2500\n"
        "tracealloc: ctl: process PID: no interval\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: interval: expected seconds, at least 0.01, or 0, not '0.009'\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: interval: expected seconds, at least 0.01, or 0, not '1000001'\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: unknown option '-1' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: interval: expected seconds, at least 0.01, or 0, not 'x'\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: interval: expected seconds, at least 0.01, or 0, not '1x'\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: interval: expected seconds, at least 0.01, or 0, not 'nan'\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'interval' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'interval' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'limit' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'limit' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: limit: expected a number with B, KiB, MiB or GiB, not 'x'\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'mark' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'start' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'stop' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'status' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'clear' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: too few or too many words behind 'snapshot' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: there is no 'bogus' (see tracealloc ctl --help)\n"
        "[2]\n"
        "\n"
        "< limit 7 1048576\n"
        "PID: domain 7: an entry at 1024 KiB\n"
        "\n"
        "< limit cache 1000 1000\n"
        "PID: domain cache: no more memory at 1000 B\n"
        "\n"
        "< limit 7 0\n"
        "PID: domain 7 has no limit\n"
        "\n"
        "< limit 7 5\n"
        "tracealloc: ctl: process PID: no such domain\n"
        "[2]\n"
        "\n"
        "tracealloc: ctl: process PID has no channel: start it with tracealloc run, or with control=yes in "
        "TRACEALLOC_OPTIONS\n"
        "[2]\n"
        "named.ta: taken\n"
        "NUMBERED.1.ta: taken\n"
        "NUMBERED.2.ta: there already\n"
        "NUMBERED.3.ta: taken\n",
        said_by(steering));
}

static void test_who_has_no_channel_is_told_so(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "-1 is not there\n"
        "-1 is not there\n"
        "-1 has no channel: start it with tracealloc run, or with control=yes in TRACEALLOC_OPTIONS\n"
        "-1\n"
        "2 it does not answer\n"
        "0 \n"
        "1 why\n"
        "2 it has ended\n"
        "2 Bad file descriptor\n"
        "a '1' 1\n"
        "ab '22' 22\n"
        "b '' 0\n"
        "long '01234' 123456789\n"
        "last '7' 7\n"
        "l '' 0\n"
        "missing '' 0\n",
        said_by(channels_of_nobody));
}

static void test_sockets_of_the_dead_are_removed(void)
{
    TEST_ASSERT_EQUAL_STRING("0111 -1\n", said_by(stale_channels));
}

static void test_interruptions_wait_until_a_snapshot_is_written(void)
{
    TEST_ASSERT_EQUAL_STRING("0, 111 while it is written, 0 afterwards\n", said_by(writing));
}

static void test_an_interruption_leaves_no_pieces(void)
{
    TEST_ASSERT_EQUAL_STRING("2: signal 2, before\n"
                             "out\n"
                             "15: signal 15, before\n"
                             "out\n"
                             "1: signal 1, before\n"
                             "out\n"
                             "1: status 0, after\n"
                             "out\n"
                             "12: status 0, after\n"
                             "out\n",
                             said_by(interrupted_files));
}

static void test_new_files_have_usual_rights(void)
{
    TEST_ASSERT_EQUAL_STRING("0 640 27\n"
                             "tracealloc: taken: Is a directory\n"
                             "tracealloc: replaced: Is a directory\n"
                             "2\n"
                             "out\n"
                             "replaced\n"
                             "taken\n",
                             said_by(rights_of_files));
}

static void test_progress_is_drawn_on_a_terminal_only(void)
{
    TEST_ASSERT_EQUAL_STRING("\\rcounting [#######.............] 7 of 20\n"
                             "\\rinside\n"
                             "\\rinside [####################] 21 of 20\n"
                             "\\rinside [####################] 20 of 20\n"
                             "\\rcounting\n"
                             "\\rcounting [....................] 1 of 21\n"
                             "\\r\\e[K\n"
                             "nothing else\n",
                             said_by(progress));
}

static void test_pieces_of_this_run_are_removed(void)
{
    TEST_ASSERT_EQUAL_STRING("0\n"
                             ".\n"
                             "./x.run\n"
                             "./x.run/new.ta\n"
                             "./x.run/old.tmp\n"
                             "./x.ta.folder.tmp\n"
                             "./x.ta.new.tmq\n"
                             "./x.ta.old.tmp\n"
                             "./y.run\n"
                             "./y.run/new.tmp\n"
                             "./y.ta.new.tmp\n"
                             "y.run\n"
                             "y.run/new.tmp\n"
                             "y.ta.new.tmp\n",
                             said_by(pieces));
}

static void test_a_former_family_goes_as_far_as_it_is_whole(void)
{
    TEST_ASSERT_EQUAL_STRING("tracealloc: warning: ~/x.run/missing.ta: cannot be read: left out\n"
                             "0\n"
                             "-1 -1 -1 0 0 700\n"
                             ".\n"
                             "./file.run\n"
                             "./link.run\n"
                             "./new.run\n"
                             "./plain.run\n"
                             "./plain.run/note\n"
                             "./x.run\n"
                             "./x.run/3.ta\n"
                             "./x.run/index\n"
                             "./x.run/other\n"
                             "./x.run/sub\n"
                             "./x.run/sub/4.ta\n"
                             "./x.runs\n"
                             "./x.ta\n",
                             said_by(family_folders));
}

static void test_an_index_has_a_line_for_each_program(void)
{
    TEST_ASSERT_EQUAL_STRING("0\n"
                             "tracealloc run 2\trun\n"
                             "1\t0\tSIGSEGV\t-\t1.ta\ta%09b%25%7F%0A%01z\t-\n"
                             "1\t0\tSIGSEGV\texec\t../x.ta\t-\t-\n"
                             "2\t1\t-\t-\t../x.running/1.ta\t-\t-\n"
                             "3\t1\t-\t-\t/elsewhere/1.ta\t/bin/program\tis static\n"
                             "4\t1\t-\t-\t-\t/bin/program\tis static\n"
                             "index\n"
                             "0\n"
                             "tracealloc run 2\trun\n"
                             "1\t0\t7\t-\t1.ta\ta%09b%25%7F%0A%01z\t-\n"
                             "1\t0\tSIGSEGV\texec\t../x.ta\t-\t-\n"
                             "index\n"
                             "0\n"
                             "tracealloc run 2\trun\n"
                             "1\t0\tSIGTERM\t-\t1.ta\ta%09b%25%7F%0A%01z\t-\n"
                             "1\t0\tSIGSEGV\texec\t../x.ta\t-\t-\n"
                             "index\n"
                             "0\n"
                             "tracealloc run 2\trun\n"
                             "1\t0\tSIG?\t-\t1.ta\ta%09b%25%7F%0A%01z\t-\n"
                             "1\t0\tSIGSEGV\texec\t../x.ta\t-\t-\n"
                             "index\n"
                             "0\n"
                             "tracealloc run 2\trun\n"
                             "1\t0\tSIG?\t-\t1.ta\ta%09b%25%7F%0A%01z\t-\n"
                             "1\t0\tSIGSEGV\texec\t../x.ta\t-\t-\n"
                             "index\n"
                             "600\n"
                             "-1 -1 -1\n"
                             "y.run\n"
                             "y.run/index\n",
                             said_by(indexes));
}

static void test_watch_is_fed_by_a_recording_that_grows(void)
{
    TEST_ASSERT_EQUAL_STRING("tracealloc: watch: cannot read missing.ta: No such file or directory\n"
                             "2\n"
                             "tracealloc: watch: there is no process 5000001\n"
                             "2\n"
                             "0 sub/x.ta x.ta -1 -1 0\n"
                             "a snapshot at 7 s, trouble: -\n"
                             "nothing at 0 s, trouble: -\n"
                             "a snapshot at 17 s, trouble: -\n"
                             "a snapshot again\n"
                             "nothing at 0 s, trouble: sub/x.ta: this is not a tracealloc recording\n"
                             "nothing at 0 s, trouble: sub/x.ta: this is not a tracealloc recording\n"
                             "0 17\n"
                             "a snapshot at 17 s, trouble: -\n"
                             "nothing at 0 s, trouble: -\n"
                             "cannot be started or stopped from here: it has no channel\n"
                             "0\n"
                             "a snapshot at 7 s, trouble: -\n"
                             "nothing at 0 s, trouble: -\n",
                             said_by(fed_by_a_recording));
}

static void test_watch_notices_how_a_program_ended(void)
{
    TEST_ASSERT_EQUAL_STRING("a snapshot at 7 s, trouble: program has ended, it is over\n"
                             "runner 0\n"
                             "nothing at 0 s, trouble: program has ended, it is over\n"
                             "tracealloc: recording in x.ta, what program said in x.out\n"
                             "a snapshot at 7 s, trouble: program has ended: status 3, it is over\n"
                             "runner 0\n"
                             "nothing at 0 s, trouble: program has ended: status 3, it is over\n"
                             "tracealloc: recording in x.ta, what program said in x.out\n"
                             "a snapshot at 7 s, trouble: program has ended: signal 9, it is over\n"
                             "runner 0\n"
                             "nothing at 0 s, trouble: program has ended: signal 9, it is over\n"
                             "tracealloc: recording in x.ta, what program said in x.out\n"
                             "a snapshot at 7 s, trouble: -\n"
                             "its child, resident known\n"
                             "tracealloc: recording in x.ta, what program said in x.out\n"
                             "tracealloc: program goes on: process 5000001\n"
                             "a snapshot at 7 s, trouble: -\n"
                             "nothing at 0 s, trouble: other has ended, it is over\n"
                             "0\n"
                             "nothing at 0 s, trouble: other has ended, it is over\n",
                             said_by(fed_by_a_program_of_ours));
}

static void test_watch_asks_a_process_that_has_a_channel(void)
{
    TEST_ASSERT_EQUAL_STRING("0\n"
                             "no recording test_program_parts 0\n"
                             "< status\n"
                             "< snapshot with a file\n"
                             "a snapshot at 7 s, trouble: -\n"
                             "a snapshot again\n"
                             "< status\n"
                             "< snapshot with a file\n"
                             "nothing at 0 s, trouble: -\n"
                             "< status\n"
                             "< snapshot with a file\n"
                             "a snapshot at 17 s, trouble: -\n"
                             "< status\n"
                             "nothing at 0 s, trouble: -, it rests\n"
                             "< status\n"
                             "< snapshot with a file\n"
                             "nothing at 0 s, trouble: it is full\n"
                             "< status\n"
                             "nothing at 0 s, trouble: it is full\n"
                             "< status\n"
                             "< snapshot with a file\n"
                             "nothing at 0 s, trouble: it is full\n"
                             "< stop\n"
                             "no longer traced: t starts it again\n"
                             "< start\n"
                             "traced from now on\n"
                             "< stop\n"
                             "not now\n"
                             "< stop\n"
                             "it has ended\n",
                             said_by(fed_by_a_channel));
}

static void test_watch_leaves_nothing_of_what_it_saw_from_outside(void)
{
    TEST_ASSERT_EQUAL_STRING("nothing at 0 s, trouble: process PID is this program itself\n"
                             "0\n"
                             "nothing at 0 s, trouble: No such file or directory\n"
                             "nothing at 0 s, trouble: No such file or directory, it is over\n",
                             said_by(fed_from_outside));
}

static void test_a_sudden_end_and_a_crash_are_told(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "-- exit, 9\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 9\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- exec, 9\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- timer, 9\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: killed together with the process that watches it, as the kernel does when memory runs out: the "
        "last entry is 0.0 s old\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- timer, 15\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: ended by SIGTERM while what it held could not be read: the last entry is 0.0 s old\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- timer, 34\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: ended by SIGNAL while what it held could not be read: the last entry is 0.0 s old\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- timer, 256\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV: 0x10\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV: read of 0x10\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV: read of 0x10, nothing is there\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV: read of 0x10, nothing is there\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV: read of 0x10, nothing is there\n"
        "tracealloc: that is 5 bytes behind a live block of 1000 bytes\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV: read of 0x10, nothing is there, in app\n"
        "tracealloc: that is 5 bytes behind a live block of 1000 bytes, asked for in app\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV: read of 0x10, nothing is there, in app\n"
        "tracealloc: that is 5 bytes behind a live block of 1000 bytes, asked for in app\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 7\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGBUS: the file is shorter\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 7\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGBUS: the file is shorter, sent by process 99\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGVwrite to \n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: SIGSEGV: write to 0x20\n"
        "tracealloc: the whole stack: tracealloc info x.ta\n"
        "tracealloc: next: tracealloc top x.ta\n"
        "-- end, 11\n"
        "tracealloc: recording in x.ta\n"
        "tracealloc: that is 5 bytes behind a live block of 1000 bytes\n"
        "tracealloc: next: tracealloc top x.ta\n",
        said_by(ends_of_runs));
}

static void test_what_takes_long_begins_and_ends(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "top x.ta: (reading the recording) (filtering the traces) (grouping the traces) (naming the rows 0/1)\n"
        "top x.ta --where own:* --spec spec.json --json: (reading the recording) (filtering the traces) (grouping the "
        "traces) (naming the rows 0/1)\n"
        "top x.ta --where size>=1 --csv --by function: (reading the recording) (filtering the traces) (grouping the "
        "traces) (naming the rows 0/1)\n"
        "top x.ta --by bogus:\n"
        "top missing.ta: (reading the recording) (filtering the traces)\n"
        "top x.ta --spec missing: (reading the recording) (filtering the traces)\n"
        "top x.run: (reading the recordings 0/2 1/2) (filtering the traces) (grouping the traces) (naming the rows "
        "0/1)\n"
        "diff x.ta y.ta: (reading the recording) (filtering the traces) (reading the recording) (filtering the traces) "
        "(comparing the snapshots)\n"
        "diff x.ta y.ta --json: (reading the recording) (filtering the traces) (reading the recording) (filtering the "
        "traces) (comparing the snapshots) (output)\n"
        "diff x.ta missing.ta: (reading the recording) (filtering the traces) (reading the recording) (filtering the "
        "traces)\n"
        "tree x.ta: (reading the recording) (filtering the traces) (adding up the stacks)\n"
        "tree x.ta y.ta --bottom-up --collapse: (reading the recording) (filtering the traces) (reading the recording) "
        "(filtering the traces) (adding up the stacks) (adding up the stacks)\n"
        "flame x.ta -o f.svg: (reading the recording) (filtering the traces) (adding up the stacks)\n"
        "flame x.ta y.ta: (reading the recording) (filtering the traces) (reading the recording) (filtering the "
        "traces) (adding up the stacks) (adding up the stacks)\n"
        "flame x.ta -o missing/f.svg: (reading the recording) (filtering the traces) (adding up the stacks)\n"
        "export x.ta --format folded: (reading the recording) (filtering the traces) (writing)\n"
        "export x.ta --format csv -o x.csv: (reading the recording) (filtering the traces) (writing)\n"
        "export x.ta --format jsonl: (reading the recording) (filtering the traces) (writing)\n"
        "export x.ta --json: (reading the recording) (filtering the traces) (writing)\n"
        "export x.ta --python: (reading the recording) (filtering the traces) (writing)\n"
        "export x.ta --format speedscope: (reading the recording) (filtering the traces) (writing)\n"
        "export x.ta --format pprof: (reading the recording) (filtering the traces) (writing)\n"
        "export x.ta --format folded -o missing/x: (reading the recording) (filtering the traces)\n"
        "growth x.ta: (following the recording)\n"
        "growth x.ta y.ta --json: (following the recording) (following the recording)\n"
        "report x.ta -o r.html: (reading the recordings)\n"
        "report x.ta y.ta -o r.html: (reading the recordings)\n"
        "report x.run -o r.html: (reading the recordings)\n"
        "annotate x.ta: (reading the recording) (filtering the traces) (grouping)\n"
        "biggest x.ta: (reading the recording) (filtering the traces) (grouping the traces)\n"
        "check x.ta: (checking the recording)\n"
        "check missing.ta: (checking the recording)\n"
        "list x.ta:\n"
        "list x.run:\n"
        "info x.ta: (reading the recording)\n"
        "domains x.ta: (reading the recording)\n"
        "pretty x.ta: (reading the recording) (filtering the traces) (grouping the traces)\n"
        "stats x.ta: (reading the recording) (filtering the traces) (grouping the traces)\n"
        "symbolize x.ta -o s.ta: (reading the recording) (writing the recording)\n"
        "filter x.ta --where size>=1 -o f.ta: (reading the recording) (filtering the traces) (writing the recording)\n"
        "import x.json -o i.ta: (reading the traces (MiB) 0/0 0/0) (writing the recording)\n"
        "import missing.json -o i.ta:\n"
        "gate x.ta y.ta: (reading the recording) (grouping the traces) (reading the recording) (grouping the traces)\n"
        "rules check rules x.ta: (reading the functions)\n"
        "rules compile rules x.ta -o c.rules: (reading the functions)\n"
        "leaks core: (reading the memory) (looking for what is lost)\n"
        "memory core --flame m.svg: (reading the memory)\n"
        "retained core: (reading the memory) (looking who holds what)\n"
        "retained core --blocks: (reading the memory) (looking who holds what)\n"
        "why 0x569368d01b0 core: (reading the memory)\n"
        "take core -o t.ta: (reading the memory)\n"
        "leaks missing: (reading the memory)\n"
        "leaks core --suppressions known: (reading the memory) (looking for what is lost)\n"
        "leaks core core --json: (reading the memory) (looking for what is lost) (reading the memory) (looking for "
        "what is lost)\n"
        "memory x.ta core y.ta: (reading the recording) (reading the memory) (reading the recording)\n"
        "memory missing: (reading the memory)\n"
        "retained core --by bogus: (reading the memory)\n"
        "why core:\n"
        "why 0x569368d01b0 core --history x.ta: (reading the memory)\n"
        "why 0x569368d01b0 core --history missing: (reading the memory)\n"
        "take core core -o missing/%p: (reading the memory) (reading the memory)\n"
        "symbolize s.ta: (reading the recording) (writing the recording)\n"
        "symbolize y.ta: (reading the recording)\n"
        "annotate x.ta --source a.c: (reading the recording) (filtering the traces) (grouping)\n"
        "gate x.ta -o base.txt: (reading the recording) (grouping the traces)\n"
        "gate x.ta --baseline base.txt --suppressions known --no-leaks: (reading the recording) (grouping the traces)\n"
        "rules check rules core_path: (reading the functions)\n",
        said_by(long_parts));
}

static void test_memory_besides_malloc_is_told_by_who_mapped_it(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "the process had 16.0 MiB at most\n"
        "  -\n"
        "nothing\n"
        "  -\n"
        "nothing\n"
        "  -\n"
        "the process had 16.0 MiB at most\n"
        "  -\n"
        "nothing\n"
        "  -\n"
        "the process had 16.0 MiB at most\n"
        "  nobody asked this malloc for memory: the program seems to have one of its own\n"
        "the process had 21.0 MiB at most: 19.1 MiB mapped by others\n"
        "  -\n"
        "the process had 21.0 MiB at most, and was looked at when it had 19.1 MiB: 19.1 MiB mapped by others\n"
        "  -\n"
        "the process had 19.1 MiB at most: 4883 KiB mapped files, 4883 KiB mapped by others, 3906 KiB shared memory, "
        "2930 KiB libraries, 1953 KiB stacks, 391 KiB malloc\n"
        "  -\n"
        "the process had 19.1 MiB at most: 5859 KiB mapped by other_map, 4883 KiB mapped by own_map\n"
        "  -\n"
        "the process had 19.1 MiB at most: 5859 KiB mapped by others, 4883 KiB mapped by own_map\n"
        "  -\n"
        "the process had 38.1 MiB at most: 21.9 MiB mapped by others, 7812 KiB mapped by own_map, 3906 KiB mapped by "
        "other_map\n"
        "  -\n"
        "the process had 19.1 MiB at most: 4883 KiB mapped by own_map, 2930 KiB mapped by je_map, 1953 KiB mapped by "
        "others\n"
        "  the program has a malloc of its own (jemalloc): build or start it without\n"
        "the process had 19.1 MiB at most: 8789 KiB mapped by others, 7812 KiB mapped by own_map, 2930 KiB mapped by "
        "je_map\n"
        "  -\n"
        "nothing\n"
        "  PYTHONMALLOC=malloc in the environment shows what is in Python's pools\n"
        "nothing\n"
        "  USE_ZEND_ALLOC=0 in the environment shows what is in PHP's pools\n"
        "nothing\n"
        "  V8 has a heap of its own: node --heap-prof shows it\n"
        "nothing\n"
        "  the JVM has a heap of its own: -XX:NativeMemoryTracking=summary shows it\n"
        "nothing\n"
        "  LuaJIT has a heap of its own: collectgarbage(\"count\") tells its size\n"
        "nothing\n"
        "  -\n"
        "nothing\n"
        "  -\n",
        said_by(memory_besides));
}

static void test_colors_and_widths_are_those_of_the_terminal(void)
{
    TEST_ASSERT_EQUAL_STRING("- xterm - 80 auto: colors, 80 columns, no bars\n"
                             " xterm - 80 auto: colors, 80 columns, no bars\n"
                             "1 xterm - 80 auto: none, 80 columns, no bars\n"
                             "1 xterm - 80 always: colors, 80 columns, no bars\n"
                             "- xterm - 80 never: none, 80 columns, no bars\n"
                             "- dumb - 80 auto: none, 80 columns, no bars\n"
                             "- dumb - 80 always: colors, 80 columns, no bars\n"
                             "- - - 80 auto: colors, 80 columns, no bars\n"
                             "- xterm - 0 auto: colors, 80 columns, no bars\n"
                             "- xterm - 1 auto: colors, 40 columns, no bars\n"
                             "- xterm - 39 auto: colors, 40 columns, no bars\n"
                             "- xterm - 40 auto: colors, 40 columns, no bars\n"
                             "- xterm - 41 auto: colors, 41 columns, no bars\n"
                             "- xterm - 99 auto: colors, 99 columns, no bars\n"
                             "- xterm - 100 auto: colors, 100 columns, bars\n"
                             "- xterm - 101 auto: colors, 101 columns, bars\n"
                             "- xterm 55 77 auto: colors, 55 columns, no bars\n"
                             "- xterm 0 77 auto: colors, 77 columns, no bars\n"
                             "- xterm -5 77 auto: colors, 77 columns, no bars\n"
                             "- xterm x 77 auto: colors, 77 columns, no bars\n"
                             "- xterm 1 77 auto: colors, 40 columns, no bars\n"
                             "- xterm 100 77 auto: colors, 100 columns, bars\n"
                             "- xterm  77 auto: colors, 77 columns, no bars\n"
                             "- xterm 55 77 auto: none, -1 columns, no bars\n"
                             "- xterm 55 77 always: colors, 55 columns, no bars\n"
                             "- xterm - 77 always: colors, 80 columns, no bars\n",
                             said_by(terminals));
}

static void test_without_unicode_letters_are_plain(void)
{
    TEST_ASSERT_EQUAL_STRING("\033[36m\033[0m        |\n"
                             "\033[36m\033[0m        |\n"
                             "\033[36m####\033[0m    |\n"
                             "\033[36m#######\033[0m |\n"
                             "\033[36m########\033[0m|\n"
                             " _~#\n"
                             ".../a/file.c 2\n"
                             "a_long_...|\n"
                             "...unction|\n"
                             "2\n",
                             said_by(plain_letters));
}

int main(int argc, char **argv)
{
    core_path = argc > 1 ? argv[1] : "";
    UNITY_BEGIN();
    RUN_TEST(test_programs_of_other_machines_are_named);
    RUN_TEST(test_what_the_loader_is_decides);
    RUN_TEST(test_sanitizers_are_found_by_their_names);
    RUN_TEST(test_scripts_lead_to_their_interpreters);
    RUN_TEST(test_programs_are_found_as_execvp_does);
    RUN_TEST(test_programs_with_other_rights_are_refused);
    RUN_TEST(test_a_library_that_is_given_must_be_one);
    RUN_TEST(test_runs_are_measured_in_their_environment);
    RUN_TEST(test_servers_are_ended);
    RUN_TEST(test_costs_are_told_as_they_were_measured);
    RUN_TEST(test_what_is_not_counted_is_not_told);
    RUN_TEST(test_a_process_is_asked_and_its_answers_are_told);
    RUN_TEST(test_who_has_no_channel_is_told_so);
    RUN_TEST(test_sockets_of_the_dead_are_removed);
    RUN_TEST(test_interruptions_wait_until_a_snapshot_is_written);
    RUN_TEST(test_an_interruption_leaves_no_pieces);
    RUN_TEST(test_new_files_have_usual_rights);
    RUN_TEST(test_progress_is_drawn_on_a_terminal_only);
    RUN_TEST(test_pieces_of_this_run_are_removed);
    RUN_TEST(test_a_former_family_goes_as_far_as_it_is_whole);
    RUN_TEST(test_an_index_has_a_line_for_each_program);
    RUN_TEST(test_watch_is_fed_by_a_recording_that_grows);
    RUN_TEST(test_watch_notices_how_a_program_ended);
    RUN_TEST(test_watch_asks_a_process_that_has_a_channel);
    RUN_TEST(test_watch_leaves_nothing_of_what_it_saw_from_outside);
    RUN_TEST(test_a_sudden_end_and_a_crash_are_told);
    RUN_TEST(test_what_takes_long_begins_and_ends);
    RUN_TEST(test_memory_besides_malloc_is_told_by_who_mapped_it);
    RUN_TEST(test_colors_and_widths_are_those_of_the_terminal);
    RUN_TEST(test_without_unicode_letters_are_plain);
    RUN_TEST(test_the_age_of_the_last_entry_is_told);
    return UNITY_END();
}
