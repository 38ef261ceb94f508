/* output.c: see output.h. */
#include "analysis/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/cli/cli.h"

static const char *volatile unfinished; /* what a signal has to remove */

static void remove_unfinished(int number)
{
    if (unfinished != NULL)
        unlink(unfinished);
    signal(number, SIG_DFL);
    raise(number);
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
    signal(SIGINT, remove_unfinished);
    signal(SIGTERM, remove_unfinished);
    signal(SIGHUP, remove_unfinished);
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
    int failed = ferror(output->file);
    if (fclose(output->file) != 0)
        failed = 1;
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

int cli_output_write(void *user, const char *text, size_t length)
{
    struct cli_output *output = user;
    return fwrite(text, 1, length, output->file) == length ? 0 : -1;
}
