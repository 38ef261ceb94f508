/* fold.c: see fold.h. Recursion is a sequence of functions that comes again at once: one function, or a circle of a few
 * that call each other. */
#include "analysis/fold.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/own/own_rules.h"

/* The longest circle that is noticed. */
#define CIRCLE_MAX 12
/* No more frames than that come before main or a thread's function. */
#define START_MAX 8

static int is_same(const char *const *functions, size_t a, size_t b)
{
    return functions[a] == functions[b] && functions[a] != NULL && functions[a][0] != '\0';
}

/* How often the `length` functions at `at` follow each other, once at least. */
static size_t times_of(const char *const *functions, size_t count, size_t at, size_t length)
{
    size_t equal = 0;
    while (at + length + equal < count && is_same(functions, at + equal, at + length + equal))
        equal++;
    return 1 + equal / length;
}

/* How many of the oldest frames start the program or the thread; the outermost may have no name in a stripped file. */
static size_t start_length(const char *const *functions, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < START_MAX && i + 1 < count; i++) {
        if (functions[i] != NULL && ta__is_start_function(functions[i]))
            length = i + 1;
        else if (i > 0)
            break;
    }
    return length;
}

size_t ta__fold(const char *const *functions, size_t count, struct ta_fold *items)
{
    size_t used = 0;
    for (size_t at = start_length(functions, count); at < count;) {
        struct ta_fold item = {.first = at, .length = 1, .times = 1};
        for (size_t length = 1; length <= CIRCLE_MAX && at + 2 * length <= count && item.times == 1; length++) {
            size_t times = times_of(functions, count, at, length);
            if (times > 1)
                item = (struct ta_fold){.first = at, .length = length, .times = times};
        }
        items[used++] = item;
        at += item.length * item.times;
    }
    return used;
}

size_t ta_traceback_fold(struct ta_traceback traceback, struct ta_fold *items, size_t max)
{
    size_t count = ta_traceback_length(traceback), used = 0;
    struct ta_frame *frames = ta__new_array(count, sizeof *frames);
    const char **functions = ta__new_array(count, sizeof *functions);
    struct ta_fold *all = ta__new_array(count, sizeof *all);
    if (frames != NULL && functions != NULL && all != NULL) {
        ta_traceback_frames(traceback, frames, count);
        for (size_t i = 0; i < count; i++)
            functions[i] = frames[i].function;
        used = ta__fold(functions, count, all);
        if (max > 0)
            memcpy(items, all, (used < max ? used : max) * sizeof *all);
    }
    free(frames);
    free(functions);
    free(all);
    return used;
}
