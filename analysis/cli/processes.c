/* processes.c: see processes.h. */
#include "analysis/cli/processes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"

/* Of /proc/PID/stat what stands behind the name. */
struct told {
    char name[64];
    int parent, session, exit_signal;
};

static int look_at(struct told *told, pid_t process)
{
    char *path = cli_text("/proc/%d/stat", (int)process), line[1024];
    FILE *file = fopen(path, "r");
    free(path);
    if (file == NULL)
        return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    char *begin = strchr(line, '('), *end = strrchr(line, ')');
    if (begin == NULL || end == NULL || end < begin)
        return 0;
    snprintf(told->name, sizeof told->name, "%.*s", (int)(end - begin - 1), begin + 1);
    /* Behind the session stand 31 numbers that are of no use here. */
    return sscanf(end + 1,
                  " %*c %d %*s %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                  " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
                  &told->parent, &told->session, &told->exit_signal) == 3;
}

/* It is named so, leads a session of its own, and was cloned so that its end sends no signal. The kernel gives a signal to
 * all that are forked, that execute a program, or that have lost their parent. */
pid_t cli_process_meant(pid_t process)
{
    struct told told;
    int watches = look_at(&told, process) && strcmp(told.name, "tracealloc") == 0 && told.session == process &&
                  told.exit_signal == 0 && told.parent > 0;
    return watches ? (pid_t)told.parent : process;
}

/* 0: it names no process. */
static pid_t number_in(const char *operand)
{
    size_t digits = strspn(operand, "0123456789");
    unsigned long number = strtoul(operand, NULL, 10);
    return digits == 0 || operand[digits] != '\0' || number > INT_MAX ? 0 : (pid_t)number;
}

static int is_named(char **operands, int count, int but, pid_t process)
{
    for (int i = 0; i < count; i++)
        if (i != but && number_in(operands[i]) == process)
            return 1;
    return 0;
}

int cli_processes_meant(char **operands, int count)
{
    for (int i = 0; i < count;) {
        pid_t process = number_in(operands[i]), meant = process > 0 ? cli_process_meant(process) : process;
        if (meant != process && is_named(operands, count, i, meant)) {
            memmove(operands + i, operands + i + 1, (size_t)(count - i - 1) * sizeof *operands);
            count--;
            continue;
        }
        if (meant != process)
            operands[i] = cli_text("%d", (int)meant);
        i++;
    }
    return count;
}
