/* endless_live.c: see endless.h; the whole library, which traces this program while two threads go on allocating. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/endless.h"
#include "tracealloc.h"

enum { MARK = 333331 };

__attribute__((noinline)) static void *marked(void)
{
    void *volatile block = malloc(MARK);
    return block;
}

static int depth_of_paths = 14; /* fewer of them where the file has a limit: it grows beyond that soon */

/* Two call sites per level: ever new paths. */
__attribute__((noinline)) static void *path(unsigned which, int depth)
{
    void *volatile block;
    if (depth == 0)
        return malloc(1 + which % 2000);
    if (which >> depth & 1) {
        block = path(which, depth - 1);
        __asm__ volatile("nop");
    } else {
        block = path(which, depth - 1);
        __asm__ volatile("nop; nop");
    }
    return block;
}

static void *allocate_for_ever(void *argument)
{
    unsigned random = (unsigned)(size_t)argument;
    void *blocks[64] = {0};
    for (;;) {
        random = random * 1664525 + 1013904223;
        unsigned slot = (random >> 16) % 64;
        free(blocks[slot]);
        blocks[slot] = path(random >> 8, depth_of_paths);
    }
    return NULL;
}

int endless_write(const char *name, unsigned long limit)
{
    pthread_t thread;
    if (limit != 0)
        depth_of_paths = 4;
    if (ta_start(64) != 0)
        return 1;
    for (size_t i = 1; i <= 2; i++)
        if (pthread_create(&thread, NULL, allocate_for_ever, (void *)i) != 0)
            return 1;
    struct ta_record *record = ta_record_open(name, 0);
    if (record == NULL)
        return 1;
    ta_record_set_limit(record, limit);
    for (;;) {
        void *volatile kept = marked();
        if (kept == NULL || ta_record_append(record, "tick") != 0 || write(1, "+", 1) != 1)
            return 1;
    }
}

/* One more marked block in each entry. */
int endless_is_entry(struct ta_snapshot *snapshot, size_t number)
{
    struct ta_trace trace;
    size_t found = 0;
    long count = ta_snapshot_trace_count(snapshot);
    for (long i = 0; i < count; i++)
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) == 0 && trace.size == MARK * trace.count)
            found += trace.count;
    return found == number;
}
