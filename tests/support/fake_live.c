/* fake_live.c: snapshot/write/live.h for tests that bring no tracer: the source is whatever `fake_live` points to. */
#include "snapshot/write/live.h"

#include <errno.h>

#include "base/error.h"
#include "tests/support/fake_live.h"

struct ta__source *fake_live;
uint64_t fake_live_failures;
pthread_mutex_t fake_live_lock = PTHREAD_MUTEX_INITIALIZER;

int ta__source_open(struct ta__source *source)
{
    if (fake_live == NULL) {
        errno = EINVAL;
        return ta__error_set("tracealloc must be tracing memory allocations to take a snapshot", NULL);
    }
    pthread_mutex_lock(&fake_live_lock);
    *source = *fake_live;
    pthread_mutex_unlock(&fake_live_lock);
    return 0;
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
    return fake_live == NULL ? 0 : (uint64_t)fake_live->context_count + fake_live->leaf_count;
}

void ta__source_note_failure(void)
{
    __atomic_fetch_add(&fake_live_failures, 1, __ATOMIC_RELAXED);
}
