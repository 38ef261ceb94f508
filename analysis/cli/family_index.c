/* family_index.c: see family.h: the index while the run goes on. Called from the thread that listens (file_opener.c), and
 * after it has ended. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/cli/family.h"
#include "analysis/cli/file_opener.h"

char *cli_family_folder(const char *recording)
{
    size_t length = strlen(recording);
    return length > 3 && strcmp(recording + length - 3, ".ta") == 0 ? cli_text("%.*s.run", (int)(length - 3), recording)
                                                                    : cli_text("%s.run", recording);
}

char *cli_family_folder_of(const char *pattern, pid_t process)
{
    char *path = cli_allocate(strlen(pattern) * 8 + 16, 1), *to = path;
    for (const char *at = pattern; *at != '\0'; at++) {
        if (at[0] != '%' || (at[1] != 'p' && at[1] != '%' && at[1] != '\0' && strchr("nth", at[1]) == NULL))
            *to++ = *at;
        else if (*++at == 'p')
            to += sprintf(to, "%d", (int)process);
        else if (*at == '%')
            *to++ = '%';
        else
            break;
        if (*at == '\0')
            break;
    }
    if (strstr(pattern, "%n") != NULL || strstr(pattern, "%t") != NULL || strstr(pattern, "%h") != NULL) {
        free(path);
        return NULL;
    }
    char *folder = cli_family_folder(path);
    free(path);
    return folder;
}

static int is_own_folder(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

/* Before anybody else has the name. Of a former run only what is whole goes: one that still writes may be of a process
 * that goes on. */
int cli_family_make(const char *folder)
{
    size_t count;
    if (mkdir(folder, 0700) == 0)
        return 0;
    if (!is_own_folder(folder))
        return -1;
    if (!cli_family_is(folder))
        return 0;
    struct cli_family_member *rows = cli_family_members(folder, &count);
    size_t length = strlen(folder);
    for (size_t i = 0; i < count; i++)
        if (rows[i].reason != NULL && strncmp(rows[i].path, folder, length) == 0 && rows[i].path[length] == '/' &&
            strchr(rows[i].path + length + 1, '/') == NULL)
            unlink(rows[i].path);
    free(rows);
    return 0;
}

/* ---- writing ---- */

static void put_text(FILE *file, const char *text)
{
    fputc('\t', file);
    if (text == NULL || *text == '\0')
        fputc('-', file);
    for (; text != NULL && *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == '%' || *text == 0x7f)
            fprintf(file, "%%%02X", (unsigned)(unsigned char)*text);
        else
            fputc(*text, file);
}

/* What is known of the process that was started is known best by its parent. */
static const char *end_text(const struct cli_process *row, pid_t process, const int *status, char text[32])
{
    if (status == NULL || row->process != process || (row->reason != NULL && strcmp(row->reason, "exec") == 0))
        return row->end;
    if (WIFEXITED(*status))
        snprintf(text, 32, "%d", WEXITSTATUS(*status));
    else
        snprintf(text, 32, "SIG%s", sigabbrev_np(WTERMSIG(*status)) != NULL ? sigabbrev_np(WTERMSIG(*status)) : "?");
    return text;
}

/* As seen from the folder, with which it is moved. */
static char *seen_from(const char *folder, const char *path)
{
    size_t length = strlen(folder), parent = (size_t)(strrchr(folder, '/') - folder) + 1;
    if (path == NULL)
        return NULL;
    if (strncmp(path, folder, length) == 0 && path[length] == '/')
        return cli_text("%s", path + length + 1);
    return strncmp(path, folder, parent) == 0 ? cli_text("../%s", path + parent) : cli_text("%s", path);
}

static void put_row(FILE *file, const char *folder, const struct cli_process *row, pid_t process, const int *status)
{
    char text[32];
    char *path = seen_from(folder, row->path);
    fprintf(file, "%d\t%d", (int)row->process, (int)row->parent);
    put_text(file, end_text(row, process, status, text));
    put_text(file, row->reason);
    put_text(file, path);
    put_text(file, row->untraced != NULL && row->command == NULL ? row->untraced : row->command);
    put_text(file, row->why);
    fputc('\n', file);
    free(path);
}

/* Not by cli_output_open: this may be the thread that listens, and an interruption is the program's. */
int cli_family_write(const char *folder, const char *run, const struct cli_process *rows, size_t count, pid_t process,
                     const int *status)
{
    if (mkdir(folder, 0700) != 0 && !is_own_folder(folder))
        return -1;
    char *path = cli_text("%s/index", folder), *piece = cli_text("%s/index.%d.tmp", folder, (int)getpid());
    mode_t mask = umask(0077);
    FILE *file = fopen(piece, "wxe");
    umask(mask);
    int result = file == NULL ? -1 : 0;
    if (file != NULL) {
        fprintf(file, "tracealloc run 2\t%s\n", run);
        for (size_t i = 0; i < count; i++)
            put_row(file, folder, &rows[i], process, status);
        int failed = ferror(file);
        if (fclose(file) != 0 || failed || rename(piece, path) != 0) {
            unlink(piece);
            result = -1;
        }
    }
    free(path);
    free(piece);
    return result;
}
