/* child.c: see child.h. */
#include "child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct self_call {
    const char *scenario;
    const char *const *settings;
};

static void fail(const char *what)
{
    perror(what);
    _exit(99);
}

static void prepare_child(int descriptor)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (dup2(descriptor, 2) < 0)
        fail("dup2");
    close(descriptor);
    alarm(CHILD_SECONDS);
}

static void read_all(int descriptor, struct child_result *result)
{
    size_t length = 0;
    for (;;) {
        char rest[512];
        size_t room = CHILD_TEXT_MAX - 1 - length;
        ssize_t got = room > 0 ? read(descriptor, result->text + length, room) : read(descriptor, rest, sizeof rest);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (room > 0)
            length += (size_t)got;
    }
    result->text[length] = '\0';
    result->lines = 0;
    for (size_t i = 0; i < length; i++)
        result->lines += result->text[i] == '\n';
    if (length > 0 && result->text[length - 1] != '\n')
        result->lines++;
}

void child_run(struct child_result *result, void (*body)(void *), void *argument)
{
    int ends[2];
    if (pipe(ends) != 0)
        fail("pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        close(ends[0]);
        prepare_child(ends[1]);
        body(argument);
        _exit(0);
    }

    close(ends[1]);
    read_all(ends[0], result);
    close(ends[0]);
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            fail("waitpid");
    result->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void become_self(void *argument)
{
    const struct self_call *call = argument;
    for (size_t i = 0; call->settings != NULL && call->settings[i] != NULL; i++)
        putenv((char *)(size_t)call->settings[i]);
    execl("/proc/self/exe", "self", call->scenario, (char *)NULL);
    fail("exec");
}

void child_run_self(struct child_result *result, const char *scenario, const char *const *settings)
{
    struct self_call call = {scenario, settings};
    child_run(result, become_self, &call);
}
