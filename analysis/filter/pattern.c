/* pattern.c: see pattern.h. */
#include "analysis/filter/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/code_points.h"
#include "analysis/arrays.h"

enum element_kind { LITERAL, ANY_ONE, ANY_RUN, SET, NEGATED_SET };

struct ta__pattern_element {
    enum element_kind kind;
    uint32_t code_point; /* LITERAL */
    size_t ranges_from;  /* sets: ranges[from … to) */
    size_t ranges_to;
};

struct ta__pattern_range {
    uint32_t first, last;
};

size_t ta__pattern_normalized_length(const char *name, size_t length)
{
    return length >= 4 && memcmp(name + length - 4, ".pyc", 4) == 0 ? length - 1 : length;
}

static int add_element(struct ta__pattern *pattern, struct ta__pattern_element element)
{
    if (ta__grow(&pattern->elements, &pattern->element_capacity, pattern->element_count + 1,
                 sizeof *pattern->elements) != 0)
        return -1;
    pattern->elements[pattern->element_count++] = element;
    return 0;
}

static int add_range(struct ta__pattern *pattern, uint32_t first, uint32_t last)
{
    if (ta__grow(&pattern->ranges, &pattern->range_capacity, pattern->range_count + 1, sizeof *pattern->ranges) != 0)
        return -1;
    pattern->ranges[pattern->range_count++] = (struct ta__pattern_range){first, last};
    return 0;
}

/* The `]` that closes a set whose members begin at `at`; NULL when there is none. A `]` in first place is a member. */
static const char *closing_bracket(const char *at, const char *end)
{
    if (at < end && *at == '!')
        at++;
    if (at < end && *at == ']')
        at++;
    return at < end ? memchr(at, ']', (size_t)(end - at)) : NULL;
}

/* Reads the members in [at, close): ranges X-Y and single characters, from left to right. A wrong-way range is empty.
 */
static int compile_set(struct ta__pattern *pattern, const char *at, const char *close)
{
    struct ta__pattern_element set = {.kind = SET, .ranges_from = pattern->range_count};
    if (*at == '!') {
        set.kind = NEGATED_SET;
        at++;
    }
    while (at < close) {
        uint32_t first = ta__next_code_point(&at, close), last = first;
        if (close - at >= 2 && *at == '-') {
            at++;
            last = ta__next_code_point(&at, close);
        }
        if (first <= last && add_range(pattern, first, last) != 0)
            return -1;
    }
    set.ranges_to = pattern->range_count;
    return add_element(pattern, set);
}

int ta__pattern_compile(struct ta__pattern *pattern, const char *text, size_t length)
{
    *pattern = (struct ta__pattern){0};
    const char *at = text, *end = text + length;
    while (at < end) {
        int status = 0;
        uint32_t code_point = ta__next_code_point(&at, end);
        const char *close = code_point == '[' ? closing_bracket(at, end) : NULL;
        if (close != NULL) {
            status = compile_set(pattern, at, close);
            at = close + 1;
        } else if (code_point == '?') {
            status = add_element(pattern, (struct ta__pattern_element){.kind = ANY_ONE});
        } else if (code_point != '*') {
            status = add_element(pattern, (struct ta__pattern_element){.kind = LITERAL, .code_point = code_point});
        } else if (pattern->element_count == 0 || pattern->elements[pattern->element_count - 1].kind != ANY_RUN) {
            status = add_element(pattern, (struct ta__pattern_element){.kind = ANY_RUN});
        }
        if (status != 0) {
            ta__pattern_free(pattern);
            return -1;
        }
    }
    return 0;
}

static int element_matches(const struct ta__pattern *pattern, const struct ta__pattern_element *element,
                           uint32_t code_point)
{
    if (element->kind == LITERAL)
        return element->code_point == code_point;
    if (element->kind == ANY_ONE)
        return 1;
    for (size_t i = element->ranges_from; i < element->ranges_to; i++)
        if (code_point >= pattern->ranges[i].first && code_point <= pattern->ranges[i].last)
            return element->kind == SET;
    return element->kind == NEGATED_SET;
}

/* Only the last star must ever be tried again: a longer run for an earlier one could not help. */
int ta__pattern_matches(const struct ta__pattern *pattern, const char *name, size_t length)
{
    const char *at = name, *end = name + length, *retry_at = NULL;
    size_t element = 0, retry_element = 0;
    for (;;) {
        if (element < pattern->element_count && pattern->elements[element].kind == ANY_RUN) {
            retry_element = ++element;
            retry_at = at;
            if (element == pattern->element_count)
                return 1;
            continue;
        }
        if (at == end && element == pattern->element_count)
            return 1;
        if (at < end && element < pattern->element_count) {
            const char *next = at;
            if (element_matches(pattern, &pattern->elements[element], ta__next_code_point(&next, end))) {
                at = next;
                element++;
                continue;
            }
        }
        if (retry_at == NULL || retry_at == end)
            return 0;
        ta__next_code_point(&retry_at, end);
        at = retry_at;
        element = retry_element;
    }
}

void ta__pattern_free(struct ta__pattern *pattern)
{
    free(pattern->elements);
    free(pattern->ranges);
    *pattern = (struct ta__pattern){0};
}
