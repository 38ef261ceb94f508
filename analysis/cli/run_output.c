/* run_output.c: see run_output.h. */
#include "analysis/cli/run_output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/cli/cli.h"

/* What the kernel takes, and what the runtime adds: ".PID", ".NUMBER" and the end of a temporary name (sink.c). */
enum { PATH_BYTES_MOST = PATH_MAX - 1, PART_BYTES_MOST = NAME_MAX, ADDED_BYTES = 32 };
/* What stands for %p, %n and %t at most. */
enum { PROCESS_DIGITS = 7, NUMBER_DIGITS = 6, TIME_DIGITS = 15 };

int cli_run_output_is_pipe(const char *pattern)
{
    struct stat status;
    return stat(pattern, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* ---- how long a name becomes ---- */

static size_t host_bytes(void)
{
    char host[256] = "";
    return gethostname(host, sizeof host - 1) == 0 ? strlen(host) : sizeof host;
}

/* Of the bytes at `at`, which `*taken` are read of the pattern. */
static size_t bytes_of(const char *at, size_t *taken)
{
    *taken = at[0] == '%' && at[1] != '\0' ? 2 : 1;
    switch (*taken == 2 ? at[1] : '\0') {
    case 'p':
        return PROCESS_DIGITS;
    case 'n':
        return NUMBER_DIGITS;
    case 't':
        return TIME_DIGITS;
    case 'h':
        return host_bytes();
    case '%':
        return 1;
    default:
        return *taken;
    }
}

/* The whole, its longest part but the last, and the last. */
struct lengths {
    size_t whole, longest, last;
};

static struct lengths measure(const char *pattern)
{
    struct lengths lengths = {0, 0, 0};
    for (size_t taken; *pattern != '\0'; pattern += taken) {
        size_t bytes = bytes_of(pattern, &taken);
        lengths.whole += bytes;
        lengths.last += bytes;
        if (*pattern == '/') {
            lengths.longest = lengths.last - 1 > lengths.longest ? lengths.last - 1 : lengths.longest;
            lengths.last = 0;
        }
    }
    return lengths;
}

static int is_short_enough(const char *name)
{
    struct lengths lengths = measure(name);
    if (lengths.longest > PART_BYTES_MOST)
        return cli_error("run: --output: a folder's name in it has %zu bytes, %d is the most", lengths.longest,
                         PART_BYTES_MOST),
               0;
    if (lengths.last > PART_BYTES_MOST - ADDED_BYTES)
        return cli_error(
                   "run: --output: the file's name has %zu bytes, %d is the most: of %d, %d are for names beside it",
                   lengths.last, PART_BYTES_MOST - ADDED_BYTES, PART_BYTES_MOST, ADDED_BYTES),
               0;
    if (lengths.whole > PATH_BYTES_MOST - ADDED_BYTES)
        return cli_error(
                   "run: --output: the whole path has %zu bytes, %d is the most: of %d, %d are for names beside it",
                   lengths.whole, PATH_BYTES_MOST - ADDED_BYTES, PATH_BYTES_MOST, ADDED_BYTES),
               0;
    return 1;
}

int cli_run_output_fits_folder(const char *folder)
{
    return strlen(folder) + sizeof "/1234567.ta" + ADDED_BYTES <= PATH_BYTES_MOST;
}

/* ---- the name ---- */

/* In the present folder, whose percent signs mean themselves. */
static char *absolute(char *name)
{
    char folder[PATH_MAX];
    if (*name == '/')
        return name;
    if (getcwd(folder, sizeof folder) == NULL) {
        cli_error("run: the present folder: %s: name an absolute file with --output", strerror(errno));
        free(name);
        return NULL;
    }
    char *whole = cli_allocate(2 * strlen(folder) + strlen(name) + 2, 1), *to = whole;
    for (const char *from = folder; *from != '\0'; from++) {
        *to++ = *from;
        if (*from == '%')
            *to++ = '%';
    }
    sprintf(to, "/%s", name);
    free(name);
    return whole;
}

/* What is there already, unless it is a file. A pipe is written to as it is: its folder need not allow more. */
static int can_be_written(char *name)
{
    struct stat status;
    int is_there = stat(name, &status) == 0 && !S_ISREG(status.st_mode);
    if (is_there && S_ISDIR(status.st_mode))
        return cli_error("run: %s: is a folder: name a file in it with --output", name), 0;
    if (is_there && S_ISFIFO(status.st_mode))
        return 1;
    if (is_there)
        return cli_error("run: %s: is a %s, no file: it keeps no recording", name,
                         S_ISSOCK(status.st_mode) ? "socket" : "device"),
               0;
    char *slash = strrchr(name, '/');
    *slash = '\0';
    int is_open = strchr(name, '%') != NULL || access(*name != '\0' ? name : "/", W_OK | X_OK) == 0;
    if (!is_open)
        cli_error("run: %s: %s: no recording can be written there", name, strerror(errno));
    *slash = '/';
    return is_open;
}

char *cli_run_output(const char *given, const char *program)
{
    char *name =
        absolute(given != NULL ? cli_text("%s", given) : cli_text("tracealloc.%s.%%p.ta", cli_base_name(program)));
    if (name == NULL)
        return NULL;
    int is_fine = strchr(name, ',') == NULL;
    if (!is_fine)
        cli_error("run: %s: a name with a comma cannot be passed on: choose another with --output", name);
    if (is_fine && is_short_enough(name) && can_be_written(name))
        return name;
    free(name);
    return NULL;
}
