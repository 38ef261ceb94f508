/* said.h: cases that are processes of their own in a folder of their own, and what they print, standard error too: for parts
 * of the program that end it, or that a process has once. */
#ifndef TA_TESTS_SAID_H
#define TA_TESTS_SAID_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

static char folder[64]; /* of the case at hand, and its present one */

/* For setUp and tearDown. */
static inline void said_begin(void)
{
    char name[] = "/tmp/test-said-XXXXXX", *real;
    TEST_ASSERT_NOT_NULL(mkdtemp(name));
    real = realpath(name, NULL);
    snprintf(folder, sizeof folder, "%s", real);
    free(real);
    TEST_ASSERT_EQUAL(0, chdir(folder));
}

static inline void said_end(void)
{
    char command[100];
    TEST_ASSERT_EQUAL(0, chdir("/"));
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        TEST_MESSAGE(command);
}

/* Where no digit follows. */
static inline void replace_in(char *text, const char *what, const char *with)
{
    for (char *at = text; (at = strstr(at, what)) != NULL;) {
        char *rest = at + strlen(what);
        if (*rest < '0' || *rest > '9') {
            memmove(at + strlen(with), rest, strlen(rest) + 1);
            memcpy(at, with, strlen(with));
            rest = at + strlen(with);
        }
        at = rest;
    }
}

/* The number of the case is PID, where it stands as one. */
static inline void replace_number(char *text, pid_t process)
{
    static const char *const forms[][2] = {{"\n%d: ", "\nPID: "},
                                           {"process %d", "process PID"},
                                           {"process\": %d", "process\": PID"},
                                           {"tracealloc.%d", "tracealloc.PID"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char what[60];
        snprintf(what, sizeof what, forms[i][0], (int)process);
        replace_in(text, what, forms[i][1]);
    }
}

/* With ~ for the folder. What it ended with comes last, when it is not 0. */
static inline const char *said_by(void (*one)(void))
{
    static char text[60000];
    int status;
    FILE *file = tmpfile();
    TEST_ASSERT_NOT_NULL(file);
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        dup2(fileno(file), STDOUT_FILENO);
        dup2(fileno(file), STDERR_FILENO);
        setvbuf(stdout, NULL, _IONBF, 0);
        one();
        exit(0);
    }
    TEST_ASSERT_EQUAL(process, waitpid(process, &status, 0));
    rewind(file);
    text[0] = '\n';
    size_t length = 1 + fread(text + 1, 1, sizeof text - 100, file);
    text[length] = '\0';
    fclose(file);
    if (WIFSIGNALED(status))
        sprintf(text + length, "[signal %d]\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        sprintf(text + length, "[%d]\n", WEXITSTATUS(status));
    replace_in(text, folder, "~");
    replace_number(text, process);
    return text + 1;
}

#endif
