/* test_programs.c: the calls by which a process becomes another program, as the library has them: what the program is given, where
 * it is looked for, and what goes wrong, are as libc's. Each call is made in a child. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

extern char **environ;
int execveat(int folder, const char *path, char *const arguments[], char *const environment[], int flags);

static char folder[] = "/tmp/ta_programs.XXXXXX";
static char good[64], second[64], locked[64], loop[64];
static char said[8192];

void setUp(void)
{
}

void tearDown(void)
{
}

static void write_script(const char *place, const char *name, const char *text, mode_t mode)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", place, name);
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
    TEST_ASSERT_EQUAL(0, fclose(file));
    TEST_ASSERT_EQUAL(0, chmod(path, mode));
}

/* What is printed by the program that `call` makes of a child, or "errno N". */
static const char *in_child(void (*call)(void))
{
    int ends[2], status;
    size_t length = 0;
    TEST_ASSERT_EQUAL(0, pipe(ends));
    pid_t child = fork();
    TEST_ASSERT_TRUE(child >= 0);
    if (child == 0) {
        char text[32];
        dup2(ends[1], 1);
        close(ends[0]);
        alarm(60);
        setenv("MARK", "ours", 1);
        call();
        snprintf(text, sizeof text, "errno %d", errno);
        _exit(write(1, text, strlen(text)) < 0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)got;
    said[length] = '\0';
    close(ends[0]);
    TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    TEST_ASSERT_EQUAL(0, status);
    return said;
}

static const char *search_path, *program;
static char *const words[] = {(char *)"zero", (char *)"a b", (char *)"", (char *)"c", NULL};
static char *const theirs[] = {(char *)"MARK=theirs", NULL};

static const char *errno_is(int error)
{
    static char text[32];
    snprintf(text, sizeof text, "errno %d", error);
    return text;
}

/* ---- arguments and environment ----------------------------------------------------------------------------------- */

static char say[128], bare[128];

static void with_l(void)
{
    execl(say, "zero", "a b", "", "c", (char *)NULL);
}

static void with_v(void)
{
    execv(say, words);
}

static void with_le(void)
{
    execle(say, "zero", "a b", "", "c", (char *)NULL, theirs);
}

static void with_ve(void)
{
    execve(say, words, theirs);
}

static void with_lp(void)
{
    setenv("PATH", good, 1);
    execlp("say", "zero", "a b", "", "c", (char *)NULL);
}

static void with_vp(void)
{
    setenv("PATH", good, 1);
    execvp("say", words);
}

static void with_vpe(void)
{
    setenv("PATH", good, 1);
    execvpe("say", words, theirs);
}

static void with_f(void)
{
    fexecve(open("/bin/sh", O_RDONLY | O_CLOEXEC),
            (char *const[]){(char *)"sh", say, (char *)"a b", (char *)"", (char *)"c", NULL}, theirs);
}

static void with_veat(void)
{
    execveat(open(good, O_RDONLY | O_DIRECTORY), "say", words, theirs, 0);
}

static void with_no_more(void)
{
    execl(say, "zero", (char *)NULL);
}

static void test_arguments_and_environment_arrive(void)
{
    static const struct {
        void (*call)(void);
        const char *mark;
    } calls[] = {{with_l, "ours"},  {with_v, "ours"},     {with_le, "theirs"}, {with_ve, "theirs"},  {with_lp, "ours"},
                 {with_vp, "ours"}, {with_vpe, "theirs"}, {with_f, "theirs"},  {with_veat, "theirs"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char expected[200];
        in_child(calls[i].call);
        if (calls[i].call == with_veat) /* the kernel names the script by the descriptor */
            snprintf(expected, sizeof expected, "%.*s[a b][][c]=theirs", (int)(strchr(said, ']') - said) + 1, said);
        else
            snprintf(expected, sizeof expected, "[%s][a b][][c]=%s", say, calls[i].mark);
        TEST_ASSERT_EQUAL_STRING(expected, said);
    }
    in_child(with_no_more);
    TEST_ASSERT_NOT_NULL(strstr(said, "]=ours"));
}

/* ---- what is no program is a script for the shell ---------------------------------------------------------------- */

static void bare_by_v(void)
{
    execv(bare, words);
}

static void bare_by_vp(void)
{
    setenv("PATH", good, 1);
    execvp("bare", words);
}

static void bare_by_lp(void)
{
    execlp(bare, "zero", "a b", "", "c", (char *)NULL);
}

static void bare_with_nothing(void)
{
    execlp(bare, "zero", (char *)NULL);
}

static void bare_without_a_name(void)
{
    execvp(bare, (char *const[]){NULL});
}

static void test_script_without_its_shell_is_given_to_the_shell_where_it_was_looked_for(void)
{
    char expected[200];
    TEST_ASSERT_EQUAL_STRING(errno_is(ENOEXEC), in_child(bare_by_v));
    snprintf(expected, sizeof expected, "[%s][a b][][c]=ours", bare);
    TEST_ASSERT_EQUAL_STRING(expected, in_child(bare_by_vp));
    TEST_ASSERT_EQUAL_STRING(expected, in_child(bare_by_lp));
    snprintf(expected, sizeof expected, "[%s]=ours", bare);
    TEST_ASSERT_EQUAL_STRING(expected, in_child(bare_with_nothing));
    TEST_ASSERT_EQUAL_STRING(expected, in_child(bare_without_a_name));
}

/* ---- where it is looked for -------------------------------------------------------------------------------------- */

static void look(void)
{
    if (search_path != NULL)
        setenv("PATH", search_path, 1);
    else
        unsetenv("PATH");
    if (chdir(second) == 0)
        if (execlp(program, "zero", (char *)NULL) != -1)
            errno = 0;
}

static const char *found(const char *name, const char *format, ...)
{
    char text[10000];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    program = name;
    search_path = text;
    return in_child(look);
}

static void test_folders_are_searched_in_their_order(void)
{
    char in_good[200], in_second[200], long_one[PATH_MAX + 100];
    snprintf(in_good, sizeof in_good, "[%s]=ours", say);
    snprintf(in_second, sizeof in_second, "[%s/say]=ours", second);
    TEST_ASSERT_EQUAL_STRING(in_good, found("say", "%s:%s", good, second));
    TEST_ASSERT_EQUAL_STRING(in_second, found("say", "%s:%s", second, good));
    TEST_ASSERT_EQUAL_STRING(in_good, found("say", "/nowhere:%s/say:%s", good, good)); /* neither is a folder */
    TEST_ASSERT_EQUAL_STRING(in_good, found("say", "%s:%s", locked, good));
    TEST_ASSERT_EQUAL_STRING("[say]=ours", found("say", ":%s", good)); /* where we are */
    TEST_ASSERT_EQUAL_STRING("[say]=ours", found("say", "/nowhere:"));
    TEST_ASSERT_EQUAL_STRING("[say]=ours", found("say", "/nowhere::%s", good));
    TEST_ASSERT_EQUAL_STRING("[say]=ours", found("say", "%s", ""));
    TEST_ASSERT_EQUAL_STRING("[./say]=ours", found("./say", "%s", good)); /* it is not looked for */
#if TRACEALLOC_OVERRIDE /* else it is libc that looks, which may take less */
    for (size_t length = PATH_MAX - 8; length < PATH_MAX + 8;
         length++) { /* those that no path has room for are passed over */
        memset(long_one, '/', length);
        strcpy(long_one + length - strlen(second), second);
        found("say", "%s:%s", long_one, good);
        TEST_ASSERT_EQUAL_INT(length + strlen("/say") >= PATH_MAX, strcmp(said, in_good) == 0);
    }
#else
    (void)long_one;
#endif
}

static void test_what_is_not_found_has_its_reason(void)
{
    TEST_ASSERT_EQUAL_STRING(errno_is(ENOENT), found("", "%s", good));
    TEST_ASSERT_EQUAL_STRING(errno_is(ENOENT), found("nothing", "%s:%s", good, second));
    TEST_ASSERT_EQUAL_STRING(errno_is(EACCES), found("say", "%s", locked));
    TEST_ASSERT_EQUAL_STRING(errno_is(EACCES), found("say", "%s:/nowhere", locked));
    TEST_ASSERT_EQUAL_STRING(errno_is(ENOTDIR), found("say", "%s/say", good));
    TEST_ASSERT_EQUAL_STRING(errno_is(ELOOP), found("say", "%s:%s", loop, good)); /* nobody goes on after that */
    TEST_ASSERT_EQUAL_STRING(errno_is(ENOENT), found("./nothing", "%s", good));
}

static void look_for_true(void)
{
    unsetenv("PATH");
    execlp("true", "true", (char *)NULL);
}

static void test_without_a_path_the_usual_folders_are_searched(void)
{
    if (access("/bin/true", X_OK) != 0 && access("/usr/bin/true", X_OK) != 0)
        TEST_IGNORE_MESSAGE("there is no true");
    TEST_ASSERT_EQUAL_STRING("", in_child(look_for_true));
}

/* ---- */

static const char script[] = "printf '[%s]' \"$0\" \"$@\"\nprintf '=%s' \"$MARK\"\n";

static void make_folders(void)
{
    char text[200];
    snprintf(good, sizeof good, "%s/good", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    snprintf(locked, sizeof locked, "%s/locked", folder);
    snprintf(loop, sizeof loop, "%s/loop", folder);
    TEST_ASSERT_EQUAL(0, mkdir(good, 0700));
    TEST_ASSERT_EQUAL(0, mkdir(second, 0700));
    TEST_ASSERT_EQUAL(0, mkdir(locked, 0700));
    TEST_ASSERT_EQUAL(0, symlink("loop", loop));
    snprintf(say, sizeof say, "%s/say", good);
    snprintf(bare, sizeof bare, "%s/bare", good);
    snprintf(text, sizeof text, "#!/bin/sh\n%s", script);
    write_script(good, "say", text, 0700);
    write_script(second, "say", text, 0700);
    write_script(locked, "say", text, 0600);
    write_script(good, "bare", script, 0700);
}

static void remove_folders(void)
{
    static const char *const files[] = {"good/say", "good/bare", "second/say", "locked/say", "loop"};
    char path[128];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(good);
    rmdir(second);
    rmdir(locked);
    rmdir(folder);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    UNITY_BEGIN();
    make_folders();
    if (access(say, X_OK) == 0 && strncmp(in_child(with_v), "errno", 5) != 0) { /* else nothing may be executed there */
        RUN_TEST(test_arguments_and_environment_arrive);
        RUN_TEST(test_script_without_its_shell_is_given_to_the_shell_where_it_was_looked_for);
        RUN_TEST(test_folders_are_searched_in_their_order);
        RUN_TEST(test_what_is_not_found_has_its_reason);
        RUN_TEST(test_without_a_path_the_usual_folders_are_searched);
    }
    remove_folders();
    return UNITY_END();
}
