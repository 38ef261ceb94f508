/* recordings.c: see recordings.h. Runs at the end of tracealloc run, when the program has ended; opens the recordings
 * as any reader does and says what is true of them, never more. */
#include "analysis/cli/recordings.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/end_words.h"
#include "analysis/cli/file_opener.h"
#include "analysis/cli/run_output.h"

/* Fewer entries tell no course (docs/growth.md). */
enum { COURSE_LEAST = 4 };
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
        row->live = info.current_bytes, row->peak = info.peak_bytes;
    ta_recording_close(recording);
    return row->entries > 0;
}

/* What a process left that was killed while it wrote. */
static void remove_pieces_of(char *pieces, const struct timespec *since)
{
    glob_t names;
    if (glob(pieces, 0, NULL, &names) == 0) {
        if (cli_opener_running() == 0)
            for (size_t i = 0; i < names.gl_pathc; i++)
                if (is_recent(names.gl_pathv[i], since))
                    unlink(names.gl_pathv[i]);
        globfree(&names);
    }
    free(pieces);
}

static void remove_pieces(const char *pattern, const struct timespec *since)
{
    char *wanted = cli_recordings_glob(pattern, 0);
    remove_pieces_of(cli_text("%s.*.tmp", wanted), since);
    size_t length = strlen(wanted);
    while (length > 0 && wanted[length - 1] == '*')
        length--;
    if (length > 3 && strncmp(wanted + length - 3, ".ta", 3) == 0)
        remove_pieces_of(cli_text("%.*s.run/*.tmp", (int)length - 3, wanted), since);
    free(wanted);
}

static void add_one(struct cli_recordings *found, const struct cli_process *process)
{
    struct cli_recording row = {.path = process->path, .process = process->process};
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->rows[i].path, row.path) == 0)
            return;
    if (found->count < READ_MOST && !read_recording(&row))
        return;
    found->rows = cli_enlarge(found->rows, found->count + 1, sizeof *found->rows);
    row.path = cli_text("%s", row.path);
    found->rows[found->count++] = row;
}

void cli_recordings_find(struct cli_recordings *found, const char *pattern, pid_t process, const struct timespec *since)
{
    size_t count;
    const struct cli_process *processes = cli_opener_processes(&count);
    *found = (struct cli_recordings){.rows = NULL};
    remove_pieces(pattern, since);
    for (size_t i = count; i-- > 0;) /* first: what the program itself was at last */
        if (processes[i].path != NULL && processes[i].process == process)
            add_one(found, &processes[i]);
    for (size_t i = 0; i < count; i++)
        if (processes[i].path != NULL && processes[i].process != process)
            add_one(found, &processes[i]);
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

static void tell_memory(struct ta_snapshot *snapshot)
{
    char *text = cli_memory_text(snapshot);
    if (text != NULL)
        fprintf(stderr, "tracealloc: %s\n", text);
    const char *hint = text != NULL ? cli_memory_hint(snapshot) : cli_unused_text(snapshot);
    if (hint != NULL)
        fprintf(stderr, "tracealloc: %s\n", hint);
    free(text);
}

static void tell_crash(struct ta_snapshot *snapshot, const char *name)
{
    char *text = cli_crash_text(snapshot), *block = cli_crash_block_text(snapshot);
    if (text != NULL)
        fprintf(stderr, "tracealloc: %s\n", text);
    if (block != NULL)
        fprintf(stderr, "tracealloc: that is %s\n", block);
    if (text != NULL)
        fprintf(stderr, "tracealloc: the whole stack: tracealloc info %s\n", name);
    free(text);
    free(block);
}

static void tell_foreign(struct ta_snapshot *snapshot)
{
    char *text = cli_foreign_text(snapshot);
    if (text != NULL)
        fprintf(stderr, "tracealloc: %s\n", text);
    free(text);
}

/* Large ones are left to who asks for them. */
enum { FACTS_FILE_MOST = 100 << 20 };

/* Who writes the last entry was killed, too, or found what it reads in pieces: then there is none. */
static void tell_sudden_end(struct ta_snapshot *snapshot, int end)
{
    static const char *const last[] = {"exit", "end", "exec"};
    struct ta_snapshot_info info;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!WIFSIGNALED(end) || ta_snapshot_info(snapshot, &info, sizeof info) != 0)
        return;
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        if (strcmp(info.reason, last[i]) == 0)
            return;
    double age = (double)now.tv_sec - (double)info.time_ns / 1e9 + (double)now.tv_nsec / 1e9;
    const char *name = sigabbrev_np(WTERMSIG(end));
    if (WTERMSIG(end) == SIGKILL)
        fputs("tracealloc: killed together with the process that watches it, as the kernel does when memory runs out",
              stderr);
    else
        fprintf(stderr, "tracealloc: ended by SIG%s while what it held could not be read", name != NULL ? name : "NAL");
    fprintf(stderr, ": the last entry is %.1f s old\n", age > 0 ? age : 0);
}

static void tell_facts(const struct cli_recording *row, int end)
{
    struct stat status;
    if (stat(row->path, &status) != 0 || status.st_size > FACTS_FILE_MOST)
        return;
    struct ta_snapshot *snapshot = ta_snapshot_load(row->path);
    char *name = shell_word(cli_relative_path(row->path));
    if (snapshot != NULL) {
        tell_sudden_end(snapshot, end);
        tell_crash(snapshot, name);
        tell_foreign(snapshot);
        tell_memory(snapshot);
    }
    ta_snapshot_free(snapshot);
    free(name);
}

enum { CRASHED_SHOWN = 3 };

void cli_recordings_tell_crashed(const struct cli_process *rows, size_t count, pid_t first)
{
    static const char *const crashes[] = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS"};
    size_t crashed = 0;
    for (size_t i = 0; i < count; i++) {
        int is_crash = 0;
        for (size_t j = 0; rows[i].end != NULL && j < sizeof crashes / sizeof *crashes; j++)
            is_crash |= strcmp(rows[i].end, crashes[j]) == 0;
        if (!is_crash || rows[i].process == first || rows[i].path == NULL || crashed++ >= CRASHED_SHOWN)
            continue;
        const char *command = rows[i].command != NULL ? rows[i].command : "?";
        char *name = shell_word(cli_relative_path(rows[i].path));
        fprintf(stderr, "tracealloc: process %d (%.40s%s) was ended by %s: tracealloc info %s\n", (int)rows[i].process,
                command, strlen(command) > 40 ? "…" : "", rows[i].end, name);
        free(name);
    }
    if (crashed > CRASHED_SHOWN)
        fprintf(stderr, "tracealloc: and %zu other%s\n", crashed - CRASHED_SHOWN, cli_s(crashed - CRASHED_SHOWN));
}

void cli_recordings_tell(const struct cli_recordings *found, const char *index, int wants_peak, int is_series,
                         int has_shown_top)
{
    const struct cli_recording *first = found->first, *largest = found->largest;
    const char *path = cli_relative_path(largest->path);
    char *name = shell_word(path);
    size_t count;
    fprintf(stderr, "tracealloc: recording in %s", cli_relative_path(first->path));
    if (first->entries > 1)
        fprintf(stderr, " (%zu entries)", first->entries);
    if (found->count > 1) {
        fprintf(stderr, found->count == 2 ? " and %zu of another process" : " and %zu of other processes",
                found->count - 1);
        if (index != NULL)
            fprintf(stderr, " in %s", cli_relative_path((char *)(uintptr_t)index));
        if (largest != first)
            fprintf(stderr, "; most memory in %s", path);
    }
    fputc('\n', stderr);
    tell_facts(first, found->end);
    const struct cli_process *processes = cli_opener_processes(&count);
    cli_recordings_tell_crashed(processes, count, first->process);
    cli_opener_tell_failures();
    size_t running = cli_opener_running();
    if (running > 0)
        fprintf(stderr,
                "tracealloc: %zu process%s still run%s in the background and will leave a recording of %s own\n",
                running, running > 1 ? "es" : "", running > 1 ? "" : "s", running > 1 ? "their" : "its");
    char *of_run = index != NULL ? shell_word(cli_relative_path((char *)(uintptr_t)index)) : NULL;
    if (of_run != NULL)
        fprintf(stderr, "tracealloc: processes: tracealloc list %s\n", of_run);
    fputs("tracealloc: next: tracealloc ", stderr);
    if (wants_peak && largest->entries > 1)
        fprintf(stderr, "top %s@%zu\n", name, peak_entry(largest));
    else if (is_series && largest->entries >= COURSE_LEAST)
        fprintf(stderr, "growth %s\n", name);
    else if (is_series && largest->entries > 1)
        fprintf(stderr, "diff --grown %s %s@0\n", name, name);
    else if (of_run != NULL && found->count > 1)
        fprintf(stderr, "%s %s\n", has_shown_top ? "tree" : "top", of_run);
    else if (!has_shown_top && cli_is_nearly_gone(largest->live, largest->peak))
        fprintf(stderr, "top --sort peak %s\n", name);
    else
        fprintf(stderr, "%s %s\n", has_shown_top ? "tree" : "top", name);
    free(name);
    free(of_run);
}

/* A process has said where it wrote. */
static int is_written(void)
{
    size_t count;
    const struct cli_process *processes = cli_opener_processes(&count);
    for (size_t i = 0; i < count; i++)
        if (processes[i].path != NULL)
            return 1;
    return 0;
}

/* The library was there and has announced the process. */
static int is_announced(pid_t process)
{
    size_t count;
    const struct cli_process *processes = cli_opener_processes(&count);
    for (size_t i = 0; i < count; i++)
        if (processes[i].process == process && processes[i].untraced == NULL)
            return 1;
    return 0;
}

void cli_recordings_tell_none(const char *pattern, pid_t process, int status, int is_quiet)
{
    size_t running = cli_opener_running();
    int is_piped = cli_run_output_is_pipe(pattern) && is_written();
    if ((is_quiet && (is_piped || running > 0)) || cli_opener_tell_failures() > 0)
        return;
    if (is_piped)
        fprintf(stderr, "tracealloc: the recording went into the pipe %s: who reads it there has it\n",
                cli_relative_path((char *)(uintptr_t)pattern));
    else if (running > 0)
        fprintf(stderr, "tracealloc: no recording yet: %zu process%s still run%s in the background\n", running,
                running > 1 ? "es" : "", running > 1 ? "" : "s");
    else if (WIFSIGNALED(status))
        fprintf(stderr, "tracealloc: no recording was written: signal %d ended the program before tracing began\n",
                WTERMSIG(status));
    else if (is_announced(process))
        fputs("tracealloc: no recording was written: tracing was off when the program ended: it stopped it itself "
              "(ta_stop), or tracealloc ctl did\n",
              stderr);
    else
        fputs("tracealloc: no recording was written: the program ended before tracing began, removed the library from "
              "its environment, or stopped tracing itself (ta_stop)\n",
              stderr);
}
