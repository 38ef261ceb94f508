/* peak.c: see peak.h. */
#include "trace/peak.h"

#include <errno.h>
#include <time.h>

#include "base/atomics.h"
#include "base/memory.h"
#include "base/safepoint.h"
#include "trace/trace.h"

enum { STEP_LEAST = 1024, PARTS_MOST = 100, PARTS_LEAST = 25, FEW_ROWS = 1 << 13 };

struct ta__peak_due ta__peak_due = {STEP_LEAST, STEP_LEAST};

static struct {
    int32_t users;        /* how many read the list; -1: it is being written. Acquire and release */
    uint64_t *live_bytes; /* of each leaf; reserved for as many as there can be */
    uint32_t count;       /* leaves covered */
    int64_t current;      /* the sum that it is of */
    uint64_t epoch;       /* of the counters that it was made from */
    int32_t was_missed;   /* somebody had something to write down while it was in use */
} list;

static int64_t step(int64_t size, int64_t parts)
{
    return size / parts > STEP_LEAST ? size / parts : STEP_LEAST;
}

/* Passes over many rows are worth it less often; and growth alone where falls may go unseen. */
static void set_due(int64_t size, uint32_t leaves)
{
    int64_t threads = ta__safepoint_size(), rows = leaves * threads;
    int64_t parts = rows > FEW_ROWS ? (int64_t)PARTS_MOST * FEW_ROWS / rows : PARTS_MOST;
    parts = parts > PARTS_LEAST ? parts : PARTS_LEAST;
    int64_t growth = step(size, parts / 5);
    ta__store_relaxed(&ta__peak_due.grown, growth < threads * TA__FLUSH_BYTES ? size + growth : INT64_MAX);
    ta__store_relaxed(&ta__peak_due.falling, size + step(size, parts));
}

static int64_t current_now(void)
{
    size_t current, peak;
    ta__counters_traced(&current, &peak);
    return (int64_t)current;
}

static int was_missed(void)
{
    return ta__load_relaxed(&list.was_missed) && ta__exchange_acq_rel(&list.was_missed, 0);
}

static int begin_writing(void)
{
    int32_t nobody = 0;
    return ta__cas_acq_rel(&list.users, &nobody, -1);
}

static void write_down(int64_t current)
{
    uint64_t epoch = ta__trace_epoch();
    uint32_t count = ta__leaf_count();
    int64_t sum = ta__counters_write_live(list.live_bytes, ta__load_relaxed(&ta__leaf_first), count);
    ta__store_relaxed(&list.count, count);
    list.epoch = epoch;
    list.current = sum > current ? sum : current;
    set_due(list.current, count);
}

void ta__peak_record(int64_t current)
{
    int saved_errno = errno;
    while (current >= ta__load_relaxed(&ta__peak_due.falling)) { /* not since another thread did it */
        if (!begin_writing()) {
            ta__store_relaxed(&list.was_missed, 1);
            break;
        }
        if (list.live_bytes == NULL)
            ta__store_release(&list.live_bytes,
                              (uint64_t *)ta__memory_map(ta__leaf_capacity() * sizeof *list.live_bytes));
        if (list.live_bytes == NULL)
            ta__peak_due = (struct ta__peak_due){INT64_MAX, INT64_MAX};
        else
            write_down(current);
        ta__store_release(&list.users, 0);
        current = was_missed() ? current_now() : INT64_MIN;
    }
    errno = saved_errno;
}

/* A snapshot waits for a thread that writes, but not for ever: it might be one that its own signal interrupted. */
static int begin_reading(void)
{
    const struct timespec moment = {0, 100000};
    int saved_errno = errno;
    int32_t users = ta__load_relaxed(&list.users);
    for (int patience = 10000; patience > 0;) {
        if (users < 0) {
            nanosleep(&moment, NULL);
            patience--;
            users = ta__load_relaxed(&list.users);
        } else if (ta__cas_acq_rel(&list.users, &users, users + 1)) {
            errno = saved_errno;
            return 1;
        }
    }
    errno = saved_errno;
    return 0;
}

uint32_t ta__peak_open(const uint64_t **live_bytes, uint32_t *is_now)
{
    int64_t current = current_now();
    ta__peak_record(current); /* the peak may be now, or a moment ago */
    *is_now = 0;
    if (!begin_reading())
        return 0;
    *live_bytes = list.live_bytes;
    uint32_t count = ta__load_relaxed(&list.count); /* a clear may be under way */
    *is_now = count != 0 && current >= list.current;
    if (list.live_bytes != NULL && count != 0 && list.epoch == ta__trace_epoch())
        return count;
    ta__peak_close();
    return 0;
}

void ta__peak_close(void)
{
    __atomic_fetch_sub(&list.users, 1, __ATOMIC_RELEASE);
    if (was_missed())
        ta__peak_record(current_now());
}

int ta__peak_is_being_written(void)
{
    return ta__load_acquire(&list.users) < 0;
}

uint64_t ta__peak_of(uint32_t leaf)
{
    const uint64_t *live_bytes = ta__load_acquire(&list.live_bytes);
    return live_bytes != NULL ? ta__load_relaxed(&live_bytes[leaf]) : 0;
}

/* A snapshot may be reading, or writing from outside the allocator: what it gets is told by the epoch. */
void ta__peak_clear(void)
{
    ta__store_relaxed(&list.count, 0u);
    set_due(0, 0);
    if (list.live_bytes != NULL)
        ta__memory_reset(list.live_bytes, ta__leaf_capacity() * sizeof *list.live_bytes);
}

void ta__peak_fit(uint32_t had, uint32_t max)
{
    ta__memory_shrink(list.live_bytes, had * sizeof *list.live_bytes, max * sizeof *list.live_bytes);
}

void ta__peak_after_fork(void)
{
    if (list.users < 0)
        ta__peak_clear(); /* half written by a thread that does not exist here */
    list.users = 0;
}

size_t ta__peak_memory(void)
{
    return list.live_bytes == NULL ? 0
                                   : ta__memory_resident(list.live_bytes, ta__leaf_count() * sizeof *list.live_bytes);
}

struct ta__fact ta__facts_peak[] = {
    TA__FACT_AT("peak.list", list.live_bytes), TA__FACT_AT("peak.count", list.count),
    TA__FACT_AT("peak.current", list.current), TA__FACT_AT("peak.epoch", list.epoch),
    TA__FACT_AT("peak.users", list.users),     TA__FACTS_END,
};
