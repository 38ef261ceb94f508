/* library_options.c: see library_options.h. The library alone has the rules (alloc/options.c): it is preloaded into a
 * process of ours that says nothing else and ends before its main. */
#include "analysis/cli/library_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/cli/cli.h"

#define FIRST_WORDS "tracealloc: TRACEALLOC_OPTIONS: "

static void __attribute__((noreturn)) ask(int said, const char *library, const char *options)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
        dup2(said, STDERR_FILENO) >= 0 && setenv("LD_PRELOAD", library, 1) == 0 && unsetenv("TRACEALLOC") == 0 &&
        setenv("TRACEALLOC_OPTIONS", cli_text("check=yes,%s", options), 1) == 0)
        execl("/proc/self/exe", "tracealloc", "--version", (char *)NULL);
    _exit(0);
}

/* What cannot be asked is not refused: the program itself will say it. */
char *cli_library_refuses(const char *library, const char *options)
{
    int said[2];
    char text[4096];
    size_t length = 0;
    if (*options == '\0' || pipe2(said, O_CLOEXEC) != 0)
        return NULL;
    pid_t process = fork();
    if (process == 0)
        ask(said[1], library, options);
    close(said[1]);
    for (ssize_t got = 1; process > 0 && got > 0 && length < sizeof text - 1;) {
        got = read(said[0], text + length, sizeof text - 1 - length);
        if (got > 0)
            length += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    close(said[0]);
    text[length] = '\0';
    while (process > 0 && waitpid(process, NULL, 0) < 0 && errno == EINTR)
        continue;
    text[strcspn(text, "\n")] = '\0';
    int is_refused = strncmp(text, FIRST_WORDS, sizeof FIRST_WORDS - 1) == 0;
    return is_refused ? cli_text("%s", text + sizeof FIRST_WORDS - 1) : NULL;
}
