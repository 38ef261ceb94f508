/* clock.c: what a row looks like, on a clock that is half the time and half the allocations of the whole program. See
 * series.h.
 *
 * A program that has nothing to do leaks nothing: the idle end of a recording would make every leak a plateau. What the
 * program does at its start goes by in moments: allocations alone would make every start a long growth. */
#include "analysis/growth/series.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

#define ALL_WORK 0.999 /* of the allocations: what comes behind is idling */
#define MOMENTS  0.10  /* of the time: work that took no longer is the start, the rest is the course */
#define FLAT     0.05

/* Clocks are set back now and then. */
static double seconds_between(const struct ta_series_entry *from, const struct ta_series_entry *to)
{
    int64_t difference = (int64_t)(to->time_ns - from->time_ns);
    return difference > 0 ? (double)difference / 1e9 : 0;
}

static void set_work(const struct ta__clock *clock, double *work, size_t count)
{
    const struct ta_series_entry *points = clock->series->changes.points + clock->first;
    double time = seconds_between(&points[0], &points[count - 1]);
    double calls = count > 1 ? (double)points[count - 1].allocated_count - (double)points[0].allocated_count : 0;
    for (size_t i = 0; i < count; i++) {
        double by_time = time > 0 ? seconds_between(&points[0], &points[i]) / time : 0;
        double by_calls =
            calls > 0 ? ((double)points[i].allocated_count - (double)points[0].allocated_count) / calls : by_time;
        double by_number = count > 1 ? (double)i / (double)(count - 1) : 0;
        work[i] = time > 0 ? (by_time + by_calls) / 2 : by_number;
        if (i > 0 && work[i] < work[i - 1])
            work[i] = work[i - 1];
    }
}

/* Points until the program had done its work. */
static size_t find_idle_end(const struct ta__clock *clock)
{
    const struct ta_series_entry *points = clock->series->changes.points + clock->first;
    size_t count = clock->count, active = count;
    double begin = (double)points[0].allocated_count, calls = (double)points[count - 1].allocated_count - begin;
    double time = seconds_between(&points[0], &points[count - 1]);
    while (active > 2 && (double)points[active - 2].allocated_count - begin >= ALL_WORK * calls)
        active--;
    double used = seconds_between(&points[0], &points[active - 1]);
    return calls <= 0 || active < 4 || used <= MOMENTS * time ? count : active;
}

int ta__clock_open(struct ta__clock *clock, const struct ta_series *series)
{
    *clock = (struct ta__clock){.series = series};
    for (size_t i = 0; i < series->changes.point_count; i++)
        if (series->changes.points[i].restarts)
            clock->first = i;
    clock->count = series->changes.point_count - clock->first;
    clock->work = ta__new_array(clock->count, sizeof *clock->work);
    clock->idle_work = ta__new_array(clock->count, sizeof *clock->idle_work);
    clock->seconds = ta__new_array(clock->count, sizeof *clock->seconds);
    clock->sizes = ta__new_array(clock->count, sizeof *clock->sizes);
    clock->calls = ta__new_array(clock->count, sizeof *clock->calls);
    if (clock->work == NULL || clock->idle_work == NULL || clock->seconds == NULL || clock->sizes == NULL ||
        clock->calls == NULL) {
        ta__clock_close(clock);
        return -1;
    }
    const struct ta_series_entry *points = series->changes.points + clock->first;
    for (size_t i = 0; i < clock->count; i++)
        clock->seconds[i] = seconds_between(&points[0], &points[i]);
    clock->active = clock->count > 0 ? find_idle_end(clock) : 0;
    set_work(clock, clock->work, clock->active);
    set_work(clock, clock->idle_work, clock->count);
    return 0;
}

void ta__clock_close(struct ta__clock *clock)
{
    free(clock->work);
    free(clock->idle_work);
    free(clock->seconds);
    free(clock->sizes);
    free(clock->calls);
}

/* Whether the row did nothing while the program idled either: then that end tells nothing. */
static int is_idle_too(const struct ta__clock *clock, uint64_t peak)
{
    double before = (double)clock->sizes[clock->active - 1], after = (double)clock->sizes[clock->count - 1];
    return before - after <= FLAT * (double)peak && after - before <= FLAT * (double)peak;
}

void ta__clock_name(struct ta__clock *clock, struct ta__series_row *row)
{
    struct ta_series_row *told = &row->told;
    struct ta__shape shape;
    for (size_t i = 0; i < clock->count; i++) {
        const struct ta__series_value *value = &row->values[clock->first + i];
        clock->sizes[i] = value->size;
        clock->calls[i] = value->allocated_count;
        told->peak_size = value->size > told->peak_size ? value->size : told->peak_size;
    }
    const struct ta_series *series = clock->series;
    int idles = clock->active < clock->count && is_idle_too(clock, told->peak_size);
    const char *reason = series->changes.points[series->changes.point_count - 1].reason;
    const struct ta__course course = {.count = idles ? clock->active : clock->count,
                                      .work = idles ? clock->work : clock->idle_work,
                                      .seconds = clock->seconds,
                                      .sizes = clock->sizes,
                                      .calls = clock->calls,
                                      .ends_at_exit = !idles && strstr(reason, "exit") != NULL};
    ta__shape_of(&course, &shape);
    const struct ta__series_value *last = &row->values[series->changes.point_count - 1];
    told->frame = row->frame;
    told->growth = shape.growth;
    told->certainty = shape.certainty;
    told->bytes_per_minute = shape.bytes_per_minute;
    told->bytes_per_call = shape.bytes_per_call;
    told->grown_size = shape.grown;
    told->size = last->size;
    told->count = last->count;
    told->allocated_size = last->allocated_size;
    told->allocated_count = last->allocated_count;
    memcpy(told->reason, shape.reason, sizeof told->reason);
}
