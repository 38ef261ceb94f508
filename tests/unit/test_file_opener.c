/* test_file_opener.c: the listening side of file_request.h: which files are opened, replaced and given numbers, for whom; what
 * is remembered of what processes tell, and the words and the index made of it. Each case is a process of its own, since a
 * run has one opener: what it prints is compared as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/file_opener.h"
#include "tests/support/said.h"

void setUp(void)
{
    said_begin();
}

void tearDown(void)
{
    said_end();
}

/* ---- the other side ---- */

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {20, 0};
    size_t length = strcspn(name, ":");
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path + 1, name, length);
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(connection, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) != 0) {
        printf("no connection: %s\n", strerror(errno));
        exit(1);
    }
    return connection;
}

static void send_text(int connection, const char *token, char kind, const char *text, size_t length)
{
    char packet[4300];
    size_t at = strlen(token);
    memcpy(packet, token, at);
    packet[at++] = kind;
    memcpy(packet + at, text, length);
    (void)!send(connection, packet, at + length, MSG_NOSIGNAL);
}

static const char *token(void)
{
    return strchr(cli_opener_name(), ':') + 1;
}

/* The errno value of the answer; -1: the connection was closed without one. */
static int answer_of(int connection, int *descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    int error = -1;
    struct iovec part = {&error, sizeof error};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    *descriptor = -1;
    if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof error)
        return -1;
    if (CMSG_FIRSTHDR(&message) != NULL)
        memcpy(descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *descriptor);
    return error;
}

static int ask(char kind, const char *text, size_t length, int *descriptor)
{
    int connection = connect_to(cli_opener_name());
    send_text(connection, token(), kind, text, length);
    int error = answer_of(connection, descriptor);
    close(connection);
    return error;
}

static const char *word_of(int error)
{
    return error < 0 ? "closed" : error == 0 ? "fine" : strerrorname_np(error);
}

/* Asks for a file and writes its name into it. */
static void try_open(char kind, const char *name)
{
    int descriptor;
    char *path = *name == '/' ? cli_text("%s", name) : cli_text("%s/%s", folder, name);
    int error = ask(kind, path, strlen(path), &descriptor);
    printf("%c %s: %s", kind, name, word_of(error));
    if (descriptor >= 0) {
        struct stat status;
        fstat(descriptor, &status);
        printf(", %o, %d bytes", (unsigned)status.st_mode & 0777, (int)status.st_size);
        (void)!write(descriptor, name, strlen(name));
        close(descriptor);
    }
    putchar('\n');
    free(path);
}

/* Says something on a connection of its own, and waits until it was taken: nothing is answered, but the connection closes. */
static void tell(char kind, const char *text)
{
    int descriptor, connection = connect_to(cli_opener_name());
    send_text(connection, token(), kind, text, strlen(text));
    int error = answer_of(connection, &descriptor);
    if (error != -1)
        printf("%c was answered: %d\n", kind, error);
    close(connection);
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    fputs(text, file);
    fclose(file);
}

static void list(void)
{
    fflush(stdout);
    if (system("for f in $(find . -type f | LC_ALL=C sort); do echo \"$f: $(sed 's/tracealloc-[-0-9a-f]*/NAME/' $f)\"; "
               "done") != 0)
        puts("no list");
}

static void start(const char *pattern)
{
    char *whole = cli_text("%s/%s", folder, pattern);
    int result = cli_opener_start(whole);
    if (result != 0)
        printf("start %d\n", result);
    free(whole);
}

static void stop(void)
{
    cli_opener_stop(getpid());
}

/* ---- names ---- */

static void patterns_with_a_number(void)
{
    printf("'%s'\n", cli_opener_name());
    start("a.%p.ta");
    const char *name = cli_opener_name();
    char *begin = cli_text("tracealloc-%d-", (int)getpid());
    printf("name %d and %zu of hex, token %zu, of hex %zu\n", strncmp(name, begin, strlen(begin)),
           strspn(name + strlen(begin), "0123456789abcdef"), strlen(token()), strspn(token(), "0123456789abcdef"));
    cli_opener_serve();
    static const char *const names[] = {"a.17.ta",
                                        "a.x.ta",
                                        "a..ta",
                                        "a.17.tb",
                                        "b.17.ta",
                                        "sub/a.17.ta",
                                        "a.1/a.17.ta",
                                        "a.17.ta.1",
                                        "a.17.ta.ABCDEFGHIJ.tmp",
                                        "a.17.ta.ABCDEFGHI.tmp",
                                        "a.17.ta.ABCDEFGHIJK.tmp",
                                        "a.17.ta.ABCDEFGHIJ.tmq",
                                        "a.17.taxABCDEFGHIJ.tmp",
                                        "b.17.ta.ABCDEFGHIJ.tmp",
                                        ".ABCDEFGHIJ.tmp",
                                        "/etc/a.17.ta",
                                        "/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        try_open('O', names[i]);
    try_open('A', "a.18.ta");
    try_open('P', "a.18.ta");
    try_open('A', "a.17.ta.ABCDEFGHIJ.tmp");
    try_open('P', "a.17.ta.ABCDEFGHIJ.tmp");
    try_open('A', "b");
    try_open('P', "b");
    stop();
    list();
}

static void patterns_without_a_number(void)
{
    start("b.ta");
    cli_opener_serve();
    static const char *const names[] = {"b.ta",  "b.ta.17", "b.ta.", "b.ta.x",  "b.ta.17x",
                                        "b.tax", "c.ta.17", "b",     "b.ta.1.2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        try_open('O', names[i]);
    try_open('O', "b.ta.17.ABCDEFGHIJ.tmp");
    stop();
    list();
}

static void patterns_with_signs(void)
{
    mkdir("50%", 0700);
    mkdir("x[1]", 0700);
    start("50%%/x[1]*.%p.ta");
    cli_opener_serve();
    try_open('O', "50%/x[1]*.7.ta");
    try_open('O', "50%/x1z.7.ta");
    try_open('O', "50%%/x[1]*.7.ta");
    stop();
    list();
}

static void folder_behind_a_link(void)
{
    mkdir("real", 0700);
    mkdir("realer", 0700);
    if (symlink("real", "link") != 0)
        puts("no link");
    start("link/a.ta");
    cli_opener_serve();
    static const char *const names[] = {"link/a.ta", "real/a.ta.5", "realer/a.ta", "real/b.ta", "a.ta"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        try_open('O', names[i]);
    stop();
    list();
}

static void folders_of_families(void)
{
    char *family = cli_text("%s/x.run", folder);
    start("x.ta");
    cli_opener_set_family(family, 1);
    cli_opener_serve();
    mkdir("x.run", 0700);
    mkdir("x.runner", 0700);
    static const char *const names[] = {"x.run/17.ta", "x.run/17.ta.2",  "x.run/17.tb",
                                        "x.run/x.ta",  "x.runner/17.ta", "x.run/17.ta.ABCDEFGHIJ.tmp",
                                        "x.run"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        try_open('O', names[i]);
    stop();
    list();
}

static void folders_of_others(void)
{
    char *family = cli_text("%s/x.run", folder);
    mkdir("x.run", 0700);
    start("x.ta");
    cli_opener_set_family(family, 0);
    cli_opener_serve();
    try_open('O', "x.run/17.ta");
    stop();
    list();
}

/* ---- files that are there ---- */

/* Until the clock that files are dated by is in another second: what is made before is older in each of its parts. */
static void wait_for_another_second(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    for (time_t before = now.tv_sec; now.tv_sec == before; clock_gettime(CLOCK_REALTIME_COARSE, &now))
        usleep(1000);
}

static void files_that_are_there(void)
{
    static const char *const all[] = {"a.1.ta", "a.2.ta", "a.3.ta", "a.4.ta", "a.5.ta"};
    put("a.1.ta", "old");
    put("a.5.ta", "old");
    wait_for_another_second();
    start("a.%p.ta");
    cli_opener_serve();
    put("a.2.ta", "new");
    put("a.3.ta", "new");
    put("a.3.ta.1", "first");
    put("a.4.ta", "new");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        try_open(i == 3 || i == 4 ? 'O' : 'A', all[i]);
    try_open('A', "a.2.ta");
    stop();
    list();
}

static void new_numbers(void)
{
    put("a.1.ta", "old");
    put("a.2.ta.1", "old");
    start("a.%p.ta");
    cli_opener_serve();
    for (int i = 0; i < 2; i++) {
        try_open('P', "a.1.ta");
        try_open('P', "a.2.ta");
    }
    rename("a.2.ta.1", "elsewhere");
    try_open('P', "a.2.ta");
    stop();
    list();
}

static void files_that_stay(void)
{
    start("a.%p.ta");
    cli_opener_serve();
    put("kept", "kept");
    mkdir("a.1.ta", 0700);
    if (symlink("kept", "a.2.ta") != 0 || link("kept", "a.3.ta") != 0 || mkfifo("a.4.ta", 0600) != 0)
        puts("no links");
    put("a.5.ta", "of others");
    if (geteuid() != 0)
        unlink("a.5.ta"), mkdir("a.5.ta", 0700);
    else if (chown("a.5.ta", 12345, 12345) != 0)
        puts("not given away");
    static const char *const all[] = {"a.1.ta", "a.2.ta", "a.3.ta", "a.4.ta", "a.5.ta"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        try_open('O', all[i]);
        try_open('A', all[i]);
    }
    stop();
    unlink("a.5.ta");
    list();
}

static void folders_that_are_not(void)
{
    start("missing/a.%p.ta");
    cli_opener_serve();
    try_open('O', "missing/a.1.ta");
    try_open('P', "missing/a.1.ta");
    stop();
}

/* ---- files that take another's place ---- */

static char *description(const char *path, int more_device, int more_inode)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return cli_text("0 0");
    return cli_text("%ju %ju", (uintmax_t)status.st_dev + (uintmax_t)more_device,
                    (uintmax_t)status.st_ino + (uintmax_t)more_inode);
}

static void try_replace(const char *from, const char *to, const char *former)
{
    char text[600];
    int descriptor;
    int length = sprintf(text, "%s/%s", folder, from) + 1;
    length += sprintf(text + length, "%s/%s", folder, to) + 1;
    length += sprintf(text + length, "%s", former);
    printf("%s -> %s: %s\n", from, to, word_of(ask('M', text, (size_t)length, &descriptor)));
}

/* A new one, with what was asked for in it. */
#define PIECE "a.1.ta.ABCDEFGHIJ.tmp"

static void places_of_others(void)
{
    char *former;
    int descriptor;
    start("a.%p.ta");
    cli_opener_serve();
    put("a.1.ta", "before");
    try_open('O', PIECE);
    try_replace(PIECE, "a.1.ta", description("a.1.ta", 0, 0));
    list();
    try_open('O', PIECE);
    try_replace(PIECE, "a.1.ta", description("a.1.ta", 0, 1));
    list();
    try_open('O', PIECE);
    try_replace(PIECE, "a.1.ta", description("a.1.ta", 1, 0));
    try_open('O', PIECE);
    try_replace(PIECE, "b.1.ta", description("a.1.ta", 0, 0));
    try_replace("b.1.ta.ABCDEFGHIJ.tmp", "a.1.ta", description("a.1.ta", 0, 0));
    try_replace("a.1.ta", "a.1.ta", description("a.1.ta", 0, 0));
    try_replace("a.2.ta.ABCDEFGHIJ.tmp", "a.1.ta", description("a.1.ta", 0, 0));
    list();
    try_open('O', PIECE);
    put(PIECE, "");
    try_replace(PIECE, "a.1.ta", description("a.1.ta", 0, 0));
    list();
    try_open('O', PIECE);
    descriptor = open(PIECE, O_RDWR | O_CLOEXEC);
    flock(descriptor, LOCK_EX);
    try_replace(PIECE, "a.1.ta", description("a.1.ta", 0, 0));
    close(descriptor);
    list();
    try_open('O', PIECE);
    former = cli_text("%s/%s", folder, PIECE);
    printf("no other name: %s\n", word_of(ask('M', former, strlen(former), &descriptor)));
    char two[500];
    int length = sprintf(two, "%s/%s", folder, PIECE) + 1;
    length += sprintf(two + length, "%s/a.1.ta", folder);
    printf("no description: %s\n", word_of(ask('M', two, (size_t)length, &descriptor)));
    list();
    stop();
    list();
}

static void unfinished_files(void)
{
    start("a.%p.ta");
    cli_opener_serve();
    try_open('O', "a.1.ta.ABCDEFGHIJ.tmp");
    try_open('O', "a.2.ta.ABCDEFGHIJ.tmp");
    list();
    try_open('O', "a.1.ta.ZBCDEFGHIJ.tmp"); /* of one file there is one at a time */
    try_open('O', "a.3.ta.ABCDEFGHIJ.tmp");
    list();
    try_open('O', "a.1.ta");
    try_replace("a.1.ta.ZBCDEFGHIJ.tmp", "a.1.ta", description("a.1.ta", 0, 0));
    try_open('O', "a.1.ta.ZBCDEFGHIJ.tmp");
    unlink("a.3.ta.ABCDEFGHIJ.tmp");
    mkdir("a.3.ta.ABCDEFGHIJ.tmp", 0700);
    stop();
    list();
}

/* ---- strangers ---- */

static void try_packet(const char *text, const char *then)
{
    int descriptor, connection = connect_to(cli_opener_name());
    (void)!send(connection, text, strlen(text), MSG_NOSIGNAL);
    printf("%s: %s\n", then, word_of(answer_of(connection, &descriptor)));
    close(connection);
}

static void other_tokens(void)
{
    start("a.%p.ta");
    cli_opener_serve();
    char *wrong = cli_text("%s", token());
    wrong[31] = wrong[31] == 'a' ? 'b' : 'a';
    try_packet(cli_text("%sO%s/a.1.ta", wrong, folder), "the last letter of the token");
    wrong[31] = '\0';
    try_packet(cli_text("%sO%s/a.1.ta", wrong, folder), "a token cut short");
    try_packet(token(), "a token alone");
    try_packet("O", "no token");
    try_packet(cli_text("%sO", token()), "no name");
    try_packet(cli_text("%sO%s/a.1.ta", token(), folder), "all of it");
    stop();
    list();
}

/* Who connects and says nothing takes no place from who does. */
static void many_strangers(void)
{
    enum { MANY = 300 };
    int connections[MANY], descriptor, closed = 0;
    start("a.%p.ta");
    cli_opener_serve();
    for (int i = 0; i < MANY; i++)
        connections[i] = connect_to(cli_opener_name());
    try_open('O', "a.1.ta");
    send_text(connections[MANY - 1], token(), 'P', cli_text("%s/a.2.ta", folder), strlen(folder) + 7);
    printf("the last: %s\n", word_of(answer_of(connections[MANY - 1], &descriptor)));
    try_open('O', "a.3.ta");
    for (int i = 0; i < MANY - 1; i++) {
        char byte;
        closed += recv(connections[i], &byte, 1, MSG_DONTWAIT) == 0;
    }
    printf("closed: %s\n", closed >= MANY - 257 && closed < MANY - 200 ? "the oldest" : cli_text("%d", closed));
    stop();
    list();
}

/* ---- what processes tell ---- */

static void say_rows(void)
{
    size_t count;
    const struct cli_process *rows = cli_opener_processes(&count);
    for (size_t i = 0; i < count; i++)
        printf("%d of %d: command %s, path %s, reason %s, end %s, untraced %s, why %s, %s\n", (int)rows[i].process,
               (int)rows[i].parent, rows[i].command, rows[i].path, rows[i].reason, rows[i].end, rows[i].untraced,
               rows[i].why, rows[i].connection < 0 ? "closed" : "open");
    printf("%zu, %zu run\n", count, cli_opener_running());
}

static void tell_on(int connection, char kind, const char *text)
{
    send_text(connection, token(), kind, text, strlen(text));
}

static void what_is_told(void)
{
    char *family = cli_text("%s/x.run", folder);
    start("x.ta");
    cli_opener_set_family(family, 1);
    cli_opener_serve();
    int first = connect_to(cli_opener_name()), second = connect_to(cli_opener_name());
    tell_on(first, 'B', "5000001 5000000");
    tell_on(first, 'C', "5000001 a program --with words");
    tell_on(first, 'R', cli_text("5000001 %s/x.ta", folder));
    tell_on(first, 'E', cli_text("5000001 timer %s/x y.ta", folder));
    tell_on(second, 'B', "5000002 5000001");
    tell_on(second, 'R', cli_text("5000002 %s/x.run/5000002.ta", folder));
    tell_on(second, 'X', "5000002 SIGSEGV");
    tell_on(second, 'N', "5000002 less");
    tell_on(second, 'F', "5000002 failed");
    close(second);
    tell('C', "5000003 alone");
    tell('C', "5000003 again alone");
    tell('E', "5000003 nothing");
    tell('E', "5000003 exit z.ta");
    tell('U', "5000004 5000001 /bin/static");
    tell('U', "5000004 5000001 /bin/static is static");
    tell('U', "5000003 5000001 /bin/other is odd");
    tell('C', "5000003 the other");
    tell('X', "5000006 0");
    tell('E', "5000006 exec x.ta");
    tell('Q', "5000005 what");
    close(first);
    stop();
    say_rows();
    printf("%d\n", cli_opener_write_index(5000001, 3 << 8));
    list();
    printf("%d\n", cli_opener_write_index(5000001, SIGTERM));
    list();
    printf("%d\n", cli_opener_write_index(5000006, 1 << 8)); /* what it was before has ended otherwise */
    list();
    printf("failures %zu\n", cli_opener_tell_failures());
}

static void one_process(void)
{
    char *family = cli_text("%s/x.run", folder);
    start("x.ta");
    cli_opener_set_family(family, 1);
    cli_opener_serve();
    tell('C', "5000001 alone");
    stop();
    say_rows();
    printf("%d %zu\n", cli_opener_write_index(5000001, 0), cli_opener_tell_failures());
    list();
}

static void no_family(void)
{
    start("x.%p.ta");
    cli_opener_set_family(NULL, 1);
    cli_opener_serve();
    tell('C', "5000001 one");
    tell('C', "5000002 two");
    stop();
    printf("%d\n", cli_opener_write_index(5000001, 0));
    list();
}

static void failures_of(int kinds, int each)
{
    start("x.%p.ta");
    cli_opener_serve();
    for (int kind = 0; kind < kinds; kind++)
        for (int i = 0; i < each; i++)
            tell(kind == 1 ? 'N' : 'F', cli_text("%d reason %d", 5000001 + kind * 10 + i, kind));
    stop();
    printf("%zu\n", cli_opener_tell_failures());
}

static void three_failures(void)
{
    failures_of(3, 1);
}

static void four_failures(void)
{
    failures_of(4, 2);
}

static void many_failures(void)
{
    failures_of(101, 1);
}

static void untraced(int programs)
{
    start("x.%p.ta");
    cli_opener_serve();
    for (int i = 0; i < programs; i++) {
        tell('U', cli_text("%d 5000001 /bin/program-%d is static", 5000001 + i, i));
        tell('U', cli_text("%d 5000001 /bin/program-%d is static", 5000101 + i, i));
    }
    stop();
    printf("%zu\n", cli_opener_tell_failures());
}

static void three_untraced(void)
{
    untraced(3);
}

static void four_untraced(void)
{
    untraced(4);
}

static void five_untraced(void)
{
    untraced(5);
}

/* ---- the end ---- */

static int late;
static pid_t child;

static void *say_late(void *unused)
{
    usleep(300000);
    tell_on(late, 'E', cli_text("%d exit late.ta", (int)child));
    close(late);
    return unused;
}

static void last_words(int says)
{
    pthread_t thread;
    int other = -1, status;
    start("x.%p.ta");
    cli_opener_serve();
    child = fork();
    if (child == 0)
        _exit(0);
    late = connect_to(cli_opener_name());
    tell_on(late, 'B', cli_text("%d 1", (int)child));
    other = connect_to(cli_opener_name());
    tell_on(other, 'B', cli_text("%d 1", (int)getpid())); /* it goes on: nobody waits for it */
    tell('C', "5000001 both are known");
    waitpid(child, &status, 0);
    printf("%zu run\n", cli_opener_running());
    pthread_create(&thread, NULL, say_late, NULL);
    cli_opener_stop(says ? child : 5000001);
    size_t count;
    const struct cli_process *rows = cli_opener_processes(&count);
    for (size_t i = 0; i < count; i++)
        if (rows[i].process == child)
            printf("its last words: %s %s\n", rows[i].reason, rows[i].path);
    printf("%zu run\n", cli_opener_running());
    pthread_join(thread, NULL);
    close(other);
}

static void last_words_of_the_first(void)
{
    last_words(1);
}

static void last_words_of_others(void)
{
    last_words(0);
}

static void nothing_is_served(void)
{
    cli_opener_serve();
    cli_opener_stop(1);
    size_t count = 7;
    cli_opener_processes(&count);
    printf("%zu %zu %d %zu\n", count, cli_opener_running(), cli_opener_write_index(1, 0), cli_opener_tell_failures());
}

/* ---- all of them ---- */

static void test_names_that_the_pattern_gives_are_opened(void)
{
    TEST_ASSERT_EQUAL_STRING("''\n"
                             "name 0 and 8 of hex, token 32, of hex 32\n"
                             "O a.17.ta: fine, 600, 0 bytes\n"
                             "O a.x.ta: fine, 600, 0 bytes\n"
                             "O a..ta: fine, 600, 0 bytes\n"
                             "O a.17.tb: EACCES\n"
                             "O b.17.ta: EACCES\n"
                             "O sub/a.17.ta: EACCES\n"
                             "O a.1/a.17.ta: EACCES\n"
                             "O a.17.ta.1: EACCES\n"
                             "O a.17.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "O a.17.ta.ABCDEFGHI.tmp: EACCES\n"
                             "O a.17.ta.ABCDEFGHIJK.tmp: EACCES\n"
                             "O a.17.ta.ABCDEFGHIJ.tmq: EACCES\n"
                             "O a.17.taxABCDEFGHIJ.tmp: EACCES\n"
                             "O b.17.ta.ABCDEFGHIJ.tmp: EACCES\n"
                             "O .ABCDEFGHIJ.tmp: EACCES\n"
                             "O /etc/a.17.ta: EACCES\n"
                             "O /: EACCES\n"
                             "A a.18.ta: fine, 600, 0 bytes\n"
                             "P a.18.ta: fine, 600, 0 bytes\n"
                             "A a.17.ta.ABCDEFGHIJ.tmp: EACCES\n"
                             "P a.17.ta.ABCDEFGHIJ.tmp: EACCES\n"
                             "A b: EACCES\n"
                             "P b: EACCES\n"
                             "./a..ta: a..ta\n"
                             "./a.17.ta: a.17.ta\n"
                             "./a.18.ta: a.18.ta\n"
                             "./a.18.ta.1: a.18.ta\n"
                             "./a.x.ta: a.x.ta\n",
                             said_by(patterns_with_a_number));
}

static void test_a_pattern_without_a_number_gives_names_with_one_behind(void)
{
    TEST_ASSERT_EQUAL_STRING("O b.ta: fine, 600, 0 bytes\n"
                             "O b.ta.17: fine, 600, 0 bytes\n"
                             "O b.ta.: EACCES\n"
                             "O b.ta.x: EACCES\n"
                             "O b.ta.17x: EACCES\n"
                             "O b.tax: EACCES\n"
                             "O c.ta.17: EACCES\n"
                             "O b: EACCES\n"
                             "O b.ta.1.2: EACCES\n"
                             "O b.ta.17.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "./b.ta: b.ta\n"
                             "./b.ta.17: b.ta.17\n",
                             said_by(patterns_without_a_number));
}

static void test_signs_in_a_pattern_mean_themselves(void)
{
    TEST_ASSERT_EQUAL_STRING("O 50%/x[1]*.7.ta: fine, 600, 0 bytes\n"
                             "O 50%/x1z.7.ta: EACCES\n"
                             "O 50%%/x[1]*.7.ta: EACCES\n"
                             "./50%/x[1]*.7.ta: 50%/x[1]*.7.ta\n",
                             said_by(patterns_with_signs));
}

static void test_a_folder_behind_a_link_has_two_names(void)
{
    TEST_ASSERT_EQUAL_STRING("O link/a.ta: fine, 600, 0 bytes\n"
                             "O real/a.ta.5: fine, 600, 0 bytes\n"
                             "O realer/a.ta: EACCES\n"
                             "O real/b.ta: EACCES\n"
                             "O a.ta: EACCES\n"
                             "./real/a.ta: link/a.ta\n"
                             "./real/a.ta.5: real/a.ta.5\n",
                             said_by(folder_behind_a_link));
}

static void test_recordings_of_a_family_are_opened_in_its_folder(void)
{
    TEST_ASSERT_EQUAL_STRING("O x.run/17.ta: fine, 600, 0 bytes\n"
                             "O x.run/17.ta.2: fine, 600, 0 bytes\n"
                             "O x.run/17.tb: EACCES\n"
                             "O x.run/x.ta: EACCES\n"
                             "O x.runner/17.ta: EACCES\n"
                             "O x.run/17.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "O x.run: EACCES\n"
                             "./x.run/17.ta: x.run/17.ta\n"
                             "./x.run/17.ta.2: x.run/17.ta.2\n",
                             said_by(folders_of_families));
}

static void test_a_family_without_recordings_has_none_opened(void)
{
    TEST_ASSERT_EQUAL_STRING("O x.run/17.ta: EACCES\n", said_by(folders_of_others));
}

static void test_what_has_appeared_since_the_beginning_gets_a_number(void)
{
    TEST_ASSERT_EQUAL_STRING("A a.1.ta: fine, 600, 0 bytes\n"
                             "A a.2.ta: fine, 600, 0 bytes\n"
                             "A a.3.ta: fine, 600, 0 bytes\n"
                             "O a.4.ta: fine, 600, 0 bytes\n"
                             "O a.5.ta: fine, 600, 0 bytes\n"
                             "A a.2.ta: fine, 600, 0 bytes\n"
                             "./a.1.ta: a.1.ta\n"
                             "./a.2.ta: a.2.ta\n"
                             "./a.2.ta.1: new\n"
                             "./a.2.ta.2: a.2.ta\n"
                             "./a.3.ta: a.3.ta\n"
                             "./a.3.ta.1: first\n"
                             "./a.3.ta.2: new\n"
                             "./a.4.ta: a.4.ta\n"
                             "./a.5.ta: a.5.ta\n",
                             said_by(files_that_are_there));
}

static void test_further_programs_get_the_next_number(void)
{
    TEST_ASSERT_EQUAL_STRING("P a.1.ta: fine, 600, 0 bytes\n"
                             "P a.2.ta: fine, 600, 0 bytes\n"
                             "P a.1.ta: fine, 600, 0 bytes\n"
                             "P a.2.ta: fine, 600, 0 bytes\n"
                             "P a.2.ta: fine, 600, 0 bytes\n"
                             "./a.1.ta: old\n"
                             "./a.1.ta.1: a.1.ta\n"
                             "./a.1.ta.2: a.1.ta\n"
                             "./a.2.ta.1: a.2.ta\n"
                             "./a.2.ta.2: a.2.ta\n"
                             "./a.2.ta.3: a.2.ta\n"
                             "./elsewhere: old\n",
                             said_by(new_numbers));
}

static void test_nothing_but_plain_files_of_this_user_is_replaced(void)
{
    TEST_ASSERT_EQUAL_STRING("O a.1.ta: EEXIST\n"
                             "A a.1.ta: EEXIST\n"
                             "O a.2.ta: EEXIST\n"
                             "A a.2.ta: EEXIST\n"
                             "O a.3.ta: EEXIST\n"
                             "A a.3.ta: EEXIST\n"
                             "O a.4.ta: EEXIST\n"
                             "A a.4.ta: EEXIST\n"
                             "O a.5.ta: EEXIST\n"
                             "A a.5.ta: EEXIST\n"
                             "./a.3.ta: kept\n"
                             "./kept: kept\n",
                             said_by(files_that_stay));
}

static void test_a_folder_that_is_missing_is_an_error(void)
{
    TEST_ASSERT_EQUAL_STRING("O missing/a.1.ta: ENOENT\n"
                             "P missing/a.1.ta: ENOENT\n",
                             said_by(folders_that_are_not));
}

static void test_a_file_takes_the_place_of_the_described_one_only(void)
{
    TEST_ASSERT_EQUAL_STRING("O a.1.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "a.1.ta.ABCDEFGHIJ.tmp -> a.1.ta: fine\n"
                             "./a.1.ta: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "O a.1.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "a.1.ta.ABCDEFGHIJ.tmp -> a.1.ta: EBUSY\n"
                             "./a.1.ta: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "O a.1.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "a.1.ta.ABCDEFGHIJ.tmp -> a.1.ta: EBUSY\n"
                             "O a.1.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "a.1.ta.ABCDEFGHIJ.tmp -> b.1.ta: EACCES\n"
                             "b.1.ta.ABCDEFGHIJ.tmp -> a.1.ta: EACCES\n"
                             "a.1.ta -> a.1.ta: EACCES\n"
                             "a.2.ta.ABCDEFGHIJ.tmp -> a.1.ta: ENOENT\n"
                             "./a.1.ta: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "./a.1.ta.ABCDEFGHIJ.tmp: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "O a.1.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "a.1.ta.ABCDEFGHIJ.tmp -> a.1.ta: ECANCELED\n"
                             "./a.1.ta: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "O a.1.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "a.1.ta.ABCDEFGHIJ.tmp -> a.1.ta: EAGAIN\n"
                             "./a.1.ta: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "O a.1.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "no other name: EPROTO\n"
                             "no description: EPROTO\n"
                             "./a.1.ta: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "./a.1.ta.ABCDEFGHIJ.tmp: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "./a.1.ta: a.1.ta.ABCDEFGHIJ.tmp\n",
                             said_by(places_of_others));
}

static void test_unfinished_files_go(void)
{
    TEST_ASSERT_EQUAL_STRING("O a.1.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "O a.2.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "./a.1.ta.ABCDEFGHIJ.tmp: a.1.ta.ABCDEFGHIJ.tmp\n"
                             "./a.2.ta.ABCDEFGHIJ.tmp: a.2.ta.ABCDEFGHIJ.tmp\n"
                             "O a.1.ta.ZBCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "O a.3.ta.ABCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "./a.1.ta.ZBCDEFGHIJ.tmp: a.1.ta.ZBCDEFGHIJ.tmp\n"
                             "./a.2.ta.ABCDEFGHIJ.tmp: a.2.ta.ABCDEFGHIJ.tmp\n"
                             "./a.3.ta.ABCDEFGHIJ.tmp: a.3.ta.ABCDEFGHIJ.tmp\n"
                             "O a.1.ta: fine, 600, 0 bytes\n"
                             "a.1.ta.ZBCDEFGHIJ.tmp -> a.1.ta: fine\n"
                             "O a.1.ta.ZBCDEFGHIJ.tmp: fine, 600, 0 bytes\n"
                             "./a.1.ta: a.1.ta.ZBCDEFGHIJ.tmp\n",
                             said_by(unfinished_files));
}

static void test_nobody_is_served_without_the_token(void)
{
    TEST_ASSERT_EQUAL_STRING("the last letter of the token: closed\n"
                             "a token cut short: closed\n"
                             "a token alone: closed\n"
                             "no token: closed\n"
                             "no name: EACCES\n"
                             "all of it: fine\n"
                             "./a.1.ta: \n",
                             said_by(other_tokens));
}

static void test_who_says_nothing_makes_room(void)
{
    TEST_ASSERT_EQUAL_STRING("O a.1.ta: fine, 600, 0 bytes\n"
                             "the last: fine\n"
                             "O a.3.ta: fine, 600, 0 bytes\n"
                             "closed: the oldest\n"
                             "./a.1.ta: a.1.ta\n"
                             "./a.2.ta.1: \n"
                             "./a.3.ta: a.3.ta\n",
                             said_by(many_strangers));
}

static void test_what_is_told_stands_in_rows_and_index(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "5000001 of 5000000: command a program --with words, path ~/x y.ta, reason timer, end (null), untraced (null), "
        "why (null), closed\n"
        "5000002 of 5000001: command (null), path ~/x.run/5000002.ta, reason (null), end SIGSEGV, untraced (null), why "
        "(null), closed\n"
        "5000003 of 5000001: command again alone, path z.ta, reason exit, end (null), untraced (null), why (null), "
        "closed\n"
        "5000004 of 5000001: command (null), path (null), reason (null), end (null), untraced /bin/static, why is "
        "static, "
        "closed\n"
        "5000003 of 5000001: command the other, path (null), reason (null), end (null), untraced /bin/other, why is "
        "odd, "
        "closed\n"
        "5000006 of 0: command (null), path x.ta, reason exec, end 0, untraced (null), why (null), closed\n"
        "5000005 of 0: command (null), path (null), reason (null), end (null), untraced (null), why (null), closed\n"
        "7, 0 run\n"
        "1\n"
        "./x.run/index: tracealloc run 2\tNAME\n"
        "5000001\t5000000\t3\ttimer\t../x y.ta\ta program --with words\t-\n"
        "5000002\t5000001\tSIGSEGV\t-\t5000002.ta\t-\t-\n"
        "5000003\t5000001\t-\texit\tz.ta\tagain alone\t-\n"
        "5000004\t5000001\t-\t-\t-\t/bin/static\tis static\n"
        "5000003\t5000001\t-\t-\t-\tthe other\tis odd\n"
        "5000006\t0\t0\texec\tx.ta\t-\t-\n"
        "5000005\t0\t-\t-\t-\t-\t-\n"
        "1\n"
        "./x.run/index: tracealloc run 2\tNAME\n"
        "5000001\t5000000\tSIGTERM\ttimer\t../x y.ta\ta program --with words\t-\n"
        "5000002\t5000001\tSIGSEGV\t-\t5000002.ta\t-\t-\n"
        "5000003\t5000001\t-\texit\tz.ta\tagain alone\t-\n"
        "5000004\t5000001\t-\t-\t-\t/bin/static\tis static\n"
        "5000003\t5000001\t-\t-\t-\tthe other\tis odd\n"
        "5000006\t0\t0\texec\tx.ta\t-\t-\n"
        "5000005\t0\t-\t-\t-\t-\t-\n"
        "1\n"
        "./x.run/index: tracealloc run 2\tNAME\n"
        "5000001\t5000000\t-\ttimer\t../x y.ta\ta program --with words\t-\n"
        "5000002\t5000001\tSIGSEGV\t-\t5000002.ta\t-\t-\n"
        "5000003\t5000001\t-\texit\tz.ta\tagain alone\t-\n"
        "5000004\t5000001\t-\t-\t-\t/bin/static\tis static\n"
        "5000003\t5000001\t-\t-\t-\tthe other\tis odd\n"
        "5000006\t0\t0\texec\tx.ta\t-\t-\n"
        "5000005\t0\t-\t-\t-\t-\t-\n"
        "tracealloc: process 5000002: less\n"
        "tracealloc: process 5000002: failed\n"
        "tracealloc: process 5000004 was not recorded: /bin/static is static\n"
        "tracealloc: process 5000003 was not recorded: /bin/other is odd\n"
        "failures 1\n",
        said_by(what_is_told));
}

static void test_one_process_has_no_index(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "5000001 of 0: command alone, path (null), reason (null), end (null), untraced (null), why (null), closed\n"
        "1, 0 run\n"
        "0 0\n",
        said_by(one_process));
}

static void test_without_a_family_there_is_no_index(void)
{
    TEST_ASSERT_EQUAL_STRING("0\n", said_by(no_family));
}

static void test_three_failures_are_told(void)
{
    TEST_ASSERT_EQUAL_STRING("tracealloc: process 5000001: reason 0\n"
                             "tracealloc: process 5000011: reason 1\n"
                             "tracealloc: process 5000021: reason 2\n"
                             "2\n",
                             said_by(three_failures));
}

static void test_a_fourth_failure_is_counted(void)
{
    TEST_ASSERT_EQUAL_STRING("tracealloc: 2 processes: reason 0\n"
                             "tracealloc: 2 processes: reason 1\n"
                             "tracealloc: 2 processes: reason 2\n"
                             "tracealloc: and 1 more like these\n"
                             "6\n",
                             said_by(four_failures));
}

static void test_a_hundred_failures_are_remembered(void)
{
    TEST_ASSERT_EQUAL_STRING("tracealloc: process 5000001: reason 0\n"
                             "tracealloc: process 5000011: reason 1\n"
                             "tracealloc: process 5000021: reason 2\n"
                             "tracealloc: and 97 more like these\n"
                             "100\n",
                             said_by(many_failures));
}

static void test_three_untraced_programs_are_told(void)
{
    TEST_ASSERT_EQUAL_STRING("tracealloc: process 5000001 was not recorded: /bin/program-0 is static\n"
                             "tracealloc: process 5000002 was not recorded: /bin/program-1 is static\n"
                             "tracealloc: process 5000003 was not recorded: /bin/program-2 is static\n"
                             "0\n",
                             said_by(three_untraced));
}

static void test_a_fourth_untraced_program_is_counted(void)
{
    TEST_ASSERT_EQUAL_STRING("tracealloc: process 5000001 was not recorded: /bin/program-0 is static\n"
                             "tracealloc: process 5000002 was not recorded: /bin/program-1 is static\n"
                             "tracealloc: process 5000003 was not recorded: /bin/program-2 is static\n"
                             "tracealloc: and 1 other program\n"
                             "0\n",
                             said_by(four_untraced));
}

static void test_more_untraced_programs_are_counted(void)
{
    TEST_ASSERT_EQUAL_STRING("tracealloc: process 5000001 was not recorded: /bin/program-0 is static\n"
                             "tracealloc: process 5000002 was not recorded: /bin/program-1 is static\n"
                             "tracealloc: process 5000003 was not recorded: /bin/program-2 is static\n"
                             "tracealloc: and 2 other programs\n"
                             "0\n",
                             said_by(five_untraced));
}

static void test_the_last_words_of_the_first_process_are_waited_for(void)
{
    TEST_ASSERT_EQUAL_STRING("2 run\n"
                             "its last words: exit late.ta\n"
                             "1 run\n",
                             said_by(last_words_of_the_first));
}

static void test_the_last_words_of_a_process_that_ended_are_waited_for(void)
{
    TEST_ASSERT_EQUAL_STRING("2 run\n"
                             "its last words: exit late.ta\n"
                             "1 run\n",
                             said_by(last_words_of_others));
}

static void test_an_opener_that_was_not_started_does_nothing(void)
{
    TEST_ASSERT_EQUAL_STRING("0 0 0 0\n", said_by(nothing_is_served));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_names_that_the_pattern_gives_are_opened);
    RUN_TEST(test_a_pattern_without_a_number_gives_names_with_one_behind);
    RUN_TEST(test_signs_in_a_pattern_mean_themselves);
    RUN_TEST(test_a_folder_behind_a_link_has_two_names);
    RUN_TEST(test_recordings_of_a_family_are_opened_in_its_folder);
    RUN_TEST(test_a_family_without_recordings_has_none_opened);
    RUN_TEST(test_what_has_appeared_since_the_beginning_gets_a_number);
    RUN_TEST(test_further_programs_get_the_next_number);
    RUN_TEST(test_nothing_but_plain_files_of_this_user_is_replaced);
    RUN_TEST(test_a_folder_that_is_missing_is_an_error);
    RUN_TEST(test_a_file_takes_the_place_of_the_described_one_only);
    RUN_TEST(test_unfinished_files_go);
    RUN_TEST(test_nobody_is_served_without_the_token);
    RUN_TEST(test_who_says_nothing_makes_room);
    RUN_TEST(test_what_is_told_stands_in_rows_and_index);
    RUN_TEST(test_one_process_has_no_index);
    RUN_TEST(test_without_a_family_there_is_no_index);
    RUN_TEST(test_three_failures_are_told);
    RUN_TEST(test_a_fourth_failure_is_counted);
    RUN_TEST(test_a_hundred_failures_are_remembered);
    RUN_TEST(test_three_untraced_programs_are_told);
    RUN_TEST(test_a_fourth_untraced_program_is_counted);
    RUN_TEST(test_more_untraced_programs_are_counted);
    RUN_TEST(test_the_last_words_of_the_first_process_are_waited_for);
    RUN_TEST(test_the_last_words_of_a_process_that_ended_are_waited_for);
    RUN_TEST(test_an_opener_that_was_not_started_does_nothing);
    return UNITY_END();
}
