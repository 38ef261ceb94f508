/* live_untraced.c: live.h in the untraced build, where there is nothing to take a snapshot of. */
#include "snapshot/write/live.h"

#include <errno.h>

#include "base/error.h"

int ta__source_open(struct ta__source *source)
{
    (void)source;
    errno = EINVAL;
    return ta__error_set("tracealloc must be tracing memory allocations to take a snapshot", NULL);
}

int ta__source_open_whole(struct ta__source *source)
{
    return ta__source_open(source);
}

void ta__source_close(struct ta__source *source)
{
    (void)source;
}

uint64_t ta__source_rows(void)
{
    return 0;
}

void ta__source_note_failure(void)
{
}
