/* spawn.c: starts programs by vfork, posix_spawn, system and popen while other threads allocate. */
#include "way.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;
static atomic_bool stop;

static void *work(void *unused)
{
    while (!atomic_load(&stop))
        use_memory(10);
    return unused;
}

static void expect_success(pid_t child)
{
    int status = 0;
    expect(child > 0 && waitpid(child, &status, 0) == child, "WRONG: waitpid");
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "WRONG: a spawned program failed");
}

static void start_by_vfork(char **command)
{
    pid_t child = vfork();
    if (child == 0) {
        execv(command[0], command);
        _exit(9);
    }
    expect_success(child);
}

int main(int argc, char **argv)
{
    expect_ours();
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    char *command[] = {(char *)"/bin/true", NULL};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        expect(pthread_create(&threads[i], NULL, work, NULL) == 0, "WRONG: pthread_create");
    for (int i = 0; i < rounds; i++) {
        start_by_vfork(command);
        pid_t child = 0;
        expect(posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0, "WRONG: posix_spawn");
        expect_success(child);
        if (i % 4 == 0) {
            expect(system("true") == 0, "WRONG: system");
            FILE *pipe = popen("echo hello", "r");
            char line[32] = "";
            expect(pipe != NULL && fgets(line, sizeof line, pipe) != NULL, "WRONG: popen");
            expect(strcmp(line, "hello\n") == 0 && pclose(pipe) == 0, "WRONG: popen's program");
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    expect_content();
    say("all programs ended well");
    return 0;
}
