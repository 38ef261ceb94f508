/* child.h: runs what may crash in a process of its own and tells how it ended and what it wrote on descriptor 2.
 *
 * Used by the tests of misuse and of ways in. Every child has an alarm, no core file and its own output pipe; the
 * parent never waits longer than the alarm. */
#ifndef TA_TESTS_CHILD_H
#define TA_TESTS_CHILD_H

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

enum { CHILD_TEXT_MAX = 8192, CHILD_SECONDS = 60 };

/* What goes wrong in a child ends it with its line. */
#define MUST(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            dprintf(2, "line %d: %s\n", __LINE__, #holds);                                                             \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

struct child_result {
    int exit_status; /* -1 when a signal ended it */
    int signal;      /* 0 when it exited */
    size_t lines;    /* complete or not, on descriptor 2 */
    char text[CHILD_TEXT_MAX];
};

/* Forks and calls body(argument); returning from it is exit status 0. */
void child_run(struct child_result *result, void (*body)(void *), void *argument);

/* Runs this same executable anew with one argument. `settings` are NAME=value texts added to the environment, ended by
 * NULL; may be NULL. */
void child_run_self(struct child_result *result, const char *scenario, const char *const *settings);

#endif
