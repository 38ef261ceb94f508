/* shape.c: see shape.h. Rules in the order in which they are tried; the first that holds names the shape. */
#include "analysis/growth/shape.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/growing_text.h"

#define SMALL    0.05 /* of the largest size: no change worth a word */
#define LARGE    0.20 /* of the largest size: a fall that counts */
#define GONE     0.10 /* of the largest size: next to nothing is left */
#define EARLY    0.10 /* of the time: the first moments */
#define LATE     (2.0 / 3)
#define STEADILY 0.25 /* late growth against the mean: less is slowing down */
#define WATCHED  5    /* seconds of growth: what it would be in a minute is a guess below */

struct look {
    const struct ta__course *course;
    size_t last; /* point that counts as the end */
    double largest;
    double rises, falls; /* sums */
    double jump;         /* the largest rise from one point to the next */
    size_t jump_at;      /* where it arrived */
    size_t large_falls;
    int is_freed; /* at exit, after what is looked at */
};

static double size_at(const struct look *look, size_t point)
{
    return (double)look->course->sizes[point];
}

static void name_shape(struct ta__shape *shape, enum ta_growth growth, double certainty, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void name_shape(struct ta__shape *shape, enum ta_growth growth, double certainty, const char *format, ...)
{
    va_list arguments;
    shape->growth = growth;
    shape->certainty = certainty < 0 ? 0 : certainty > 0.99 ? 0.99 : certainty;
    va_start(arguments, format);
    vsnprintf(shape->reason, sizeof shape->reason, format, arguments);
    va_end(arguments);
}

/* More points, more certainty: 2 give a third, 5 two thirds, 20 nine tenths. */
static double by_points(size_t count)
{
    return count < 2 ? 0 : 1 - 2 / ((double)count + 1);
}

static double largest_of(const struct ta__course *course, size_t count)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = course->sizes[i] > largest ? course->sizes[i] : largest;
    return (double)largest;
}

/* Rises and falls. A fall is large from the share of the largest size on, counted from the last high; what follows is
 * another one only when it has risen as much in between. */
static void survey(struct look *look)
{
    double high = size_at(look, 0), low = high, large = LARGE * look->largest;
    int is_down = 0;
    for (size_t i = 1; i <= look->last; i++) {
        double size = size_at(look, i), change = size - size_at(look, i - 1);
        look->rises += change > 0 ? change : 0;
        look->falls += change < 0 ? -change : 0;
        if (change > look->jump) {
            look->jump = change;
            look->jump_at = i;
        }
        high = size > high ? size : high;
        low = size < low ? size : low;
        if (!is_down && high - size >= large) {
            look->large_falls++;
            is_down = 1;
            low = size;
        } else if (is_down && size - low >= large) {
            is_down = 0;
            high = size;
        }
    }
}

/* The last point not behind `share` of the time. */
static size_t point_at(const struct look *look, double share)
{
    const double *work = look->course->work;
    double limit = work[0] + share * (work[look->last] - work[0]);
    size_t point = 0;
    while (point < look->last && work[point + 1] <= limit + 1e-12)
        point++;
    return point;
}

/* The first point from which on the size was never again below `size`. */
static size_t reached(const struct look *look, double size)
{
    size_t point = look->last;
    while (point > 0 && size_at(look, point - 1) >= size)
        point--;
    return point;
}

static double time_share(const struct look *look, size_t point)
{
    const double *work = look->course->work;
    double span = work[look->last] - work[0];
    return span <= 0 ? 0 : (work[point] - work[0]) / span;
}

/* How well the points from `first` on lie on a line: the square of the correlation, 0 … 1. */
static double straightness(const struct look *look, size_t first)
{
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = first; i <= look->last; i++, n++) {
        double a = look->course->work[i], b = size_at(look, i) / look->largest;
        x += a, y += b, xx += a * a, yy += b * b, xy += a * b;
    }
    double spread_x = n * xx - x * x, spread_y = n * yy - y * y, both = n * xy - x * y;
    return spread_x <= 1e-12 || spread_y <= 1e-12 ? 0 : both * both / (spread_x * spread_y);
}

/* Troughs between the falls: the lowest point of each fifth of the time. They rise when each later pair is higher. */
static int troughs_rise(const struct look *look)
{
    double lows[5];
    for (size_t part = 0; part < 5; part++) {
        size_t from = part == 0 ? 0 : point_at(look, (double)part / 5), to = point_at(look, (double)(part + 1) / 5);
        lows[part] = size_at(look, from);
        for (size_t i = from; i <= to; i++)
            lows[part] = size_at(look, i) < lows[part] ? size_at(look, i) : lows[part];
    }
    return lows[2] > lows[0] && lows[3] > lows[1] && lows[4] > lows[2] && lows[4] - lows[0] > LARGE * look->largest;
}

static void set_rates(const struct look *look, size_t onset, struct ta__shape *shape)
{
    const struct ta__course *course = look->course;
    double grown = size_at(look, look->last) - size_at(look, onset);
    double seconds = course->seconds[look->last] - course->seconds[onset];
    double calls = (double)course->calls[look->last] - (double)course->calls[onset];
    if (grown <= 0)
        return;
    shape->grown = (uint64_t)grown;
    shape->bytes_per_minute = seconds >= WATCHED ? grown / seconds * 60 : 0;
    shape->bytes_per_call = calls > 0 ? grown / calls : 0;
}

static int try_gone(const struct look *look, struct ta__shape *shape)
{
    const struct ta__course *course = look->course;
    size_t end = course->count - 1;
    double left = (double)course->sizes[end], whole = largest_of(course, course->count);
    if (left > GONE * whole || look->large_falls > 1) /* what comes and goes may have gone just now */
        return 0;
    if (course->ends_at_exit && end > 0 && size_at(look, end - 1) > GONE * whole)
        name_shape(shape, TA_GROWTH_FREED, by_points(course->count), "freed at exit");
    else
        name_shape(shape, TA_GROWTH_FREED, by_points(course->count), "at most %.0f%% of its largest size is left",
                   100 * left / whole);
    return 1;
}

static int try_sawtooth(const struct look *look, struct ta__shape *shape)
{
    if (look->large_falls < 2 || look->falls < 0.5 * look->rises)
        return 0;
    double sure = by_points(look->last + 1) * (look->large_falls > 4 ? 1 : 0.5 + 0.1 * (double)look->large_falls);
    if (!troughs_rise(look)) {
        name_shape(shape, TA_GROWTH_SAWTOOTH, sure, "fell by a fifth or more %zu times", look->large_falls);
        return 1;
    }
    set_rates(look, 0, shape);
    name_shape(shape, TA_GROWTH_STEADY, sure * 0.7, "comes and goes, and each time more is left");
    return 1;
}

/* There before anything else happened, or reached in the first moments and kept. */
static int try_start(const struct look *look, struct ta__shape *shape)
{
    double end = size_at(look, look->last);
    size_t at = reached(look, end - SMALL * look->largest);
    if (at == 0)
        name_shape(shape, TA_GROWTH_START, by_points(look->last + 1), "as large in the first entry");
    else if (look->last >= 3 && time_share(look, at) <= EARLY)
        name_shape(shape, TA_GROWTH_START, by_points(look->last + 1), "reached in the first %.0f%% of the time",
                   ceil(100 * time_share(look, at) - 1e-9));
    else
        return 0;
    return 1;
}

static int try_one_off(const struct look *look, struct ta__shape *shape)
{
    size_t at = look->jump_at, flat = look->last + 1 - 2;
    double rest = look->rises + look->falls - look->jump;
    if (look->last < 3 || look->jump < 0.8 * look->largest || rest > 2 * SMALL * look->largest || at == look->last)
        return 0;
    name_shape(shape, TA_GROWTH_ONE_OFF, by_points(flat), "one step at %.0f%% of the time, flat before and after",
               100 * time_share(look, at));
    return 1;
}

/* The flat end must be a third of the time, or nearly half of the entries. */
static int try_plateau(const struct look *look, struct ta__shape *shape)
{
    double end = size_at(look, look->last);
    size_t at = reached(look, end - SMALL * look->largest), points = look->last - at;
    double share = 1 - time_share(look, at);
    if (points < 2 || (share < 1 - LATE && (double)points < 0.45 * (double)look->last))
        return 0;
    uint64_t calls = look->course->calls[look->last] - look->course->calls[at];
    double sure = by_points(points + 1);
    if (calls > 0)
        name_shape(shape, TA_GROWTH_PLATEAU, sure, "no growth in the last %.0f%% of the time, through %llu call%s",
                   100 * share, (unsigned long long)calls, ta__s(calls));
    else
        name_shape(shape, TA_GROWTH_PLATEAU, sure * 0.8, "no growth in the last %.0f%% of the time, and no calls",
                   100 * share);
    return 1;
}

static void name_growth(const struct look *look, struct ta__shape *shape)
{
    double begin = size_at(look, 0), end = size_at(look, look->last), low = begin + SMALL * (end - begin);
    size_t onset = look->last, points;
    while (onset > 0 && size_at(look, onset - 1) > low)
        onset--;
    onset = onset > 0 ? onset - 1 : 0; /* the last point before it rose */
    points = look->last - onset + 1;
    set_rates(look, onset, shape);
    if (points < 4) {
        name_shape(shape, TA_GROWTH_UNSURE, 0.5 * by_points(look->last + 1), "larger than before, for %zu %s only",
                   points - 1, points == 2 ? "entry" : "entries");
        return;
    }
    size_t late = point_at(look, time_share(look, onset) + LATE * (1 - time_share(look, onset)));
    double span = 1 - time_share(look, onset), late_span = 1 - time_share(look, late);
    double mean = span > 0 ? (end - size_at(look, onset)) / span : 0;
    double recent = late_span > 0 ? (end - size_at(look, late)) / late_span : mean;
    double line = straightness(look, onset), share = mean > 0 ? recent / mean : 0;
    if (share < STEADILY) {
        name_shape(shape, TA_GROWTH_SLOWING, by_points(points) * 0.6, "lately at %.0f%% of its mean rate", 100 * share);
        return;
    }
    double sure = by_points(points) * (0.4 + 0.6 * line) * (look->falls > 0.2 * look->rises ? 0.8 : 1);
    if (look->is_freed)
        name_shape(shape, TA_GROWTH_STEADY, sure, "grew until freed at exit, %.0f%% on a line", 100 * line);
    else
        name_shape(shape, TA_GROWTH_STEADY, sure, "grew through %zu entries, %.0f%% on a line", points, 100 * line);
}

/* What the points up to the last one look like, when not all is gone. */
static void name_course(const struct look *look, struct ta__shape *shape)
{
    if (try_sawtooth(look, shape) || try_start(look, shape) || try_one_off(look, shape) || try_plateau(look, shape))
        return;
    if (size_at(look, look->last) <= size_at(look, 0))
        name_shape(shape, TA_GROWTH_SAWTOOTH, 0.5 * by_points(look->last + 1), "no larger than in the first entry");
    else
        name_growth(look, shape);
}

/* What grew until the program's end and was freed there is no leak to a leak checker, and needed as much memory. */
static void add_growth_before_exit(const struct look *look, struct ta__shape *shape)
{
    struct ta__shape before = {0};
    struct look until = *look;
    until.is_freed = 1;
    name_course(&until, &before);
    if (before.growth > TA_GROWTH_SLOWING)
        return;
    *shape = before;
    shape->growth = TA_GROWTH_FREED;
    if (strstr(before.reason, "freed at exit") == NULL)
        snprintf(shape->reason, sizeof shape->reason, "%.130s, freed at exit", before.reason);
}

void ta__shape_of(const struct ta__course *course, struct ta__shape *shape)
{
    *shape = (struct ta__shape){.growth = TA_GROWTH_UNKNOWN};
    struct look look = {.course = course, .last = course->count - 1};
    double whole = course->count == 0 ? 0 : largest_of(course, course->count);
    if (course->count == 0 || (whole == 0 && course->calls[course->count - 1] == 0)) {
        name_shape(shape, TA_GROWTH_UNKNOWN, 0, "nothing was allocated");
        return;
    }
    if (whole == 0) {
        name_shape(shape, TA_GROWTH_CHURN, by_points(course->count + 1), "never there when an entry was written");
        return;
    }
    if (course->count == 1) {
        name_shape(shape, TA_GROWTH_UNKNOWN, 0, "a single entry tells no course");
        return;
    }
    /* What the end of the program frees says nothing of the course before. */
    if (course->ends_at_exit && look.last > 1 && course->sizes[look.last] < course->sizes[look.last - 1])
        look.last--;
    look.largest = largest_of(course, look.last + 1);
    survey(&look);
    if (look.largest == 0)
        return;
    if (!try_gone(&look, shape))
        name_course(&look, shape);
    else if (look.last + 1 < course->count)
        add_growth_before_exit(&look, shape);
}

const char *ta_growth_name(enum ta_growth growth)
{
    static const char *const names[] = {"steady",   "slowing", "unsure", "one-off", "plateau",
                                        "sawtooth", "start",   "freed",  "churn",   "unknown"};
    return (unsigned)growth < sizeof names / sizeof *names ? names[growth] : "unknown";
}
