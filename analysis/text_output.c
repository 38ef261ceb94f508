/* text_output.c: see text_output.h. */
#include "analysis/text_output.h"

#include "analysis/failure.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PIECE 65536

int ta_write_to_descriptor(void *user, const char *text, size_t length)
{
    int descriptor = *(const int *)user;
    while (length > 0) {
        ssize_t written = write(descriptor, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return ta__fail("cannot write: %s", strerror(errno));
        text += written;
        length -= (size_t)written;
    }
    return 0;
}

static void flush(struct ta__output *output)
{
    if (!output->failed && output->pending.failed) {
        ta__fail_memory();
        output->failed = 1;
    }
    if (!output->failed && output->pending.length > 0 &&
        output->write(output->user, output->pending.bytes, output->pending.length) != 0)
        output->failed = 1;
    output->pending.length = 0;
}

void ta__output_add(struct ta__output *output, const char *bytes, size_t length)
{
    if (output->failed)
        return;
    ta__text_add(&output->pending, bytes, length);
    if (output->pending.length >= PIECE || output->pending.failed)
        flush(output);
}

void ta__output_add_string(struct ta__output *output, const char *string)
{
    ta__output_add(output, string, strlen(string));
}

int ta__output_finish(struct ta__output *output)
{
    flush(output);
    ta__text_free(&output->pending);
    return output->failed ? -1 : 0;
}
