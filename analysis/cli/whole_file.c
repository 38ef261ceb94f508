/* whole_file.c: see whole_file.h. */
#include "analysis/cli/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"

static const char *volatile unfinished; /* what a signal has to remove */
static void (*volatile at_interruption)(void);
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

static void clean_up(int number)
{
    if (at_interruption != NULL)
        at_interruption();
    if (unfinished != NULL)
        unlink(unfinished);
    cli_progress_wipe();
    signal(number, SIG_DFL);
    raise(number);
}

void cli_watch_signals(void)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (signal(ends[i], clean_up) == SIG_IGN)
            signal(ends[i], SIG_IGN); /* nohup, or the shell's background: stays so */
}

void cli_at_interruption(void (*function)(void))
{
    at_interruption = function;
    cli_watch_signals();
}

/* The library writes beside the file and renames: an interruption waits for that, rather than to leave the pieces. */
int cli_write_snapshot(struct ta_snapshot *snapshot, const char *path)
{
    sigset_t set, before;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaddset(&set, ends[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    cli_progress_begin("writing the recording");
    int result = ta_snapshot_dump(snapshot, path);
    cli_progress_end();
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
}

int cli_put_snapshot(struct ta_snapshot *snapshot, const char *path)
{
    int status = cli_write_snapshot(snapshot, path) == 0 ? CLI_OK : cli_library_error(path);
    ta_snapshot_free(snapshot);
    return status;
}

static int open_temporary(struct cli_output *output)
{
    struct stat status;
    if (stat(output->path, &status) == 0 && !S_ISREG(status.st_mode)) {
        output->file = fopen(output->path, "we");
        return output->file != NULL ? 0 : -1;
    }
    output->temporary = cli_text("%s.XXXXXX", output->path);
    int descriptor = mkostemp(output->temporary, O_CLOEXEC);
    if (descriptor < 0)
        return -1;
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
    unfinished = output->temporary;
    cli_watch_signals();
    output->file = fdopen(descriptor, "w");
    return output->file != NULL ? 0 : -1;
}

int cli_output_open(struct cli_output *output, const char *path)
{
    *output = (struct cli_output){.file = stdout};
    if (path == NULL || strcmp(path, "-") == 0)
        return CLI_OK;
    output->path = path;
    if (open_temporary(output) == 0)
        return CLI_OK;
    int status = cli_error("%s: %s", path, strerror(errno));
    free(output->temporary);
    return status;
}

int cli_output_close(struct cli_output *output, int status)
{
    if (output->path == NULL)
        return status == CLI_OK ? cli_finish_output() : status;
    errno = 0;
    int failed = fflush(output->file) != 0 || ferror(output->file);
    if (failed && errno == 0 && write(fileno(output->file), "\n", 1) == 1) /* an earlier write's errno is lost */
        errno = EIO;
    int error = errno;
    if (fclose(output->file) != 0)
        failed = 1;
    errno = error != 0 ? error : errno;
    if (status == CLI_OK && failed)
        status = cli_error("%s: %s", output->path, strerror(errno));
    if (output->temporary != NULL) {
        if (status == CLI_OK && rename(output->temporary, output->path) != 0)
            status = cli_error("%s: %s", output->path, strerror(errno));
        if (status != CLI_OK)
            unlink(output->temporary);
        unfinished = NULL;
        free(output->temporary);
    }
    return status;
}

int cli_output_trouble(const struct cli_output *output, const char *subject)
{
    return ferror(output->file) ? CLI_OK : cli_library_error(subject);
}

int cli_output_write(void *user, const char *text, size_t length)
{
    struct cli_output *output = user;
    return fwrite(text, 1, length, output->file) == length ? 0 : -1;
}
