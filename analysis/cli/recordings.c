/* recordings.c: see recordings.h. Runs at the end of tracealloc run, when the program has ended; opens the recordings
 * as any reader does and says what is true of them, never more. */
#include "analysis/cli/recordings.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/opener.h"

/* More than that are counted, not read. */
enum { READ_MOST = 200 };

char *cli_recordings_glob(const char *pattern, pid_t process)
{
    char *text = cli_allocate(strlen(pattern) * 16 + 16, 1), *to = text;
    for (const char *at = pattern; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] != '\0') {
            at++;
            if (*at == '%')
                *to++ = '%';
            else if (*at == 'p' && process != 0)
                to += sprintf(to, "%d", (int)process);
            else
                *to++ = '*';
        } else {
            if (strchr("*?[\\", *at) != NULL)
                *to++ = '\\';
            *to++ = *at;
        }
    }
    if (process == 0 && strstr(pattern, "%p") == NULL) /* what the runtime adds in children */
        strcpy(to, "*");
    return text;
}

char *cli_relative_path(char *path)
{
    char folder[PATH_MAX];
    if (getcwd(folder, sizeof folder) == NULL)
        return path;
    size_t length = strlen(folder);
    return length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

static int is_recent(const char *path, const struct timespec *since)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_mtim.tv_sec >= since->tv_sec - 1;
}

/* A file that holds no entry is none: a process may end before its first. */
static int read_recording(struct cli_recording *row)
{
    struct ta_entry_info info;
    struct ta_recording *recording = ta_recording_open(row->path);
    row->entries = recording == NULL ? 0 : ta_recording_entry_count(recording);
    if (row->entries > 0 && ta_recording_entry(recording, row->entries - 1, &info) == 0)
        row->live = info.current_bytes;
    ta_recording_close(recording);
    return row->entries > 0;
}

/* Processes that were started with our token in their environment and have not ended. */
static size_t count_running(void)
{
    char *wanted = cli_text("TRACEALLOC_OPENER=%s", cli_opener_name());
    size_t count = 0, length = strlen(wanted) + 1;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes != NULL && (entry = readdir(processes)) != NULL;) {
        if (*entry->d_name < '0' || *entry->d_name > '9' || atoi(entry->d_name) == getpid())
            continue;
        char *path = cli_text("/proc/%s/environ", entry->d_name);
        size_t got = 0;
        int descriptor = open(path, O_RDONLY | O_CLOEXEC);
        if (descriptor >= 0) {
            static char text[1 << 18];
            for (ssize_t more; got < sizeof text && (more = read(descriptor, text + got, sizeof text - got)) > 0;)
                got += (size_t)more;
            count += memmem(text, got, wanted, length) != NULL;
            close(descriptor);
        }
        free(path);
    }
    if (processes != NULL)
        closedir(processes);
    free(wanted);
    return count;
}

/* What a process left that was killed while it wrote. */
static void remove_pieces(const char *pattern, const struct timespec *since)
{
    char *wanted = cli_recordings_glob(pattern, 0), *pieces = cli_text("%s.*.tmp", wanted);
    glob_t names;
    if (glob(pieces, 0, NULL, &names) == 0) {
        if (count_running() == 0)
            for (size_t i = 0; i < names.gl_pathc; i++)
                if (is_recent(names.gl_pathv[i], since))
                    unlink(names.gl_pathv[i]);
        globfree(&names);
    }
    free(wanted);
    free(pieces);
}

static void add_all(struct cli_recordings *found, const char *wanted, const struct timespec *since)
{
    glob_t names;
    if (glob(wanted, 0, NULL, &names) != 0)
        return;
    found->rows = cli_enlarge(found->rows, found->count + names.gl_pathc, sizeof *found->rows);
    for (size_t i = 0; i < names.gl_pathc; i++) {
        struct cli_recording row = {.path = names.gl_pathv[i]};
        size_t length = strlen(row.path);
        if (!is_recent(row.path, since) || (length > 4 && strcmp(row.path + length - 4, ".tmp") == 0) ||
            (found->count > 0 && strcmp(found->rows[0].path, row.path) == 0) ||
            (found->count < READ_MOST && !read_recording(&row)))
            continue;
        row.path = cli_text("%s", row.path);
        found->rows[found->count++] = row;
    }
    globfree(&names);
}

void cli_recordings_find(struct cli_recordings *found, const char *pattern, pid_t process, const struct timespec *since)
{
    *found = (struct cli_recordings){.rows = NULL};
    remove_pieces(pattern, since);
    char *own = cli_recordings_glob(pattern, process), *all = cli_recordings_glob(pattern, 0);
    add_all(found, own, since); /* first: the program's own */
    add_all(found, all, since);
    free(own);
    free(all);
    if (found->count > 0)
        found->first = found->largest = found->rows;
    for (size_t i = 1; i < found->count; i++)
        if (found->rows[i].live > found->largest->live)
            found->largest = &found->rows[i];
}

void cli_recordings_free(struct cli_recordings *found)
{
    for (size_t i = 0; i < found->count; i++)
        free(found->rows[i].path);
    free(found->rows);
    *found = (struct cli_recordings){.rows = NULL};
}

/* ---- words ---- */

/* As a shell takes it; the text itself when nothing in it needs quoting. For free(). */
static char *shell_word(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@%+=:,";
    if (*text != '-' && *text != '\0' && text[strspn(text, plain)] == '\0')
        return cli_text("%s", text);
    char *word = cli_allocate(strlen(text) * 4 + 5, 1), *to = word;
    to = stpcpy(to, *text == '-' ? "./'" : "'");
    for (; *text != '\0'; text++)
        if (*text == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *text;
    strcpy(to, "'");
    return word;
}

/* The entry that held most; the last of equal ones. */
static size_t peak_entry(const struct cli_recording *row)
{
    struct ta_recording *recording = ta_recording_open(row->path);
    struct ta_entry_info info;
    size_t entry = row->entries - 1;
    uint64_t most = row->live;
    for (size_t i = row->entries - 1; recording != NULL && i-- > 0;)
        if (ta_recording_entry(recording, i, &info) == 0 && info.current_bytes > most) {
            most = info.current_bytes;
            entry = i;
        }
    ta_recording_close(recording);
    return entry;
}

void cli_recordings_tell(const struct cli_recordings *found, int wants_peak, int has_shown_top)
{
    const struct cli_recording *first = found->first, *largest = found->largest;
    const char *path = cli_relative_path(largest->path);
    char *name = shell_word(path);
    fprintf(stderr, "tracealloc: recording in %s", cli_relative_path(first->path));
    if (first->entries > 1)
        fprintf(stderr, " (%zu entries)", first->entries);
    if (found->count > 1) {
        fprintf(stderr, " and %zu of other processes", found->count - 1);
        if (largest != first)
            fprintf(stderr, "; most memory in %s", path);
    }
    fputc('\n', stderr);
    cli_opener_tell_failures();
    fputs("tracealloc: next: tracealloc ", stderr);
    if (wants_peak && largest->entries > 1)
        fprintf(stderr, "top %s@%zu\n", name, peak_entry(largest));
    else if (largest->entries > 1)
        fprintf(stderr, "diff --grown %s %s@0\n", name, name);
    else
        fprintf(stderr, "%s %s\n", has_shown_top ? "tree" : "top", name);
    free(name);
}

void cli_recordings_tell_none(int status, int is_series)
{
    const char *hint = is_series ? "" : " (--interval=1 records on the way)";
    size_t running;
    if (cli_opener_tell_failures() > 0)
        return;
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        fprintf(stderr, "tracealloc: no recording was written: %s%s ended the program before it could%s\n",
                name != NULL ? "SIG" : "", name != NULL ? name : "a signal", hint);
    } else if ((running = count_running()) > 0)
        fprintf(stderr, "tracealloc: no recording yet: %zu process%s still run%s in the background%s\n", running,
                running > 1 ? "es" : "", running > 1 ? "" : "s", hint);
    else
        fprintf(stderr,
                "tracealloc: no recording was written: the program ended without running its exit functions%s\n", hint);
}
