/* suppressions.c: leaks that are known, in the syntax of LeakSanitizer: see ta_suppressions_parse in tracealloc/image.h. */
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "tracealloc/image.h"

struct ta_suppressions {
    char *text; /* the patterns, each ended by a NUL */
    struct pattern {
        const char *text;
        uint64_t blocks, bytes; /* that it suppressed */
    } * patterns;
    size_t count, capacity;
};

/* A piece of a pattern, up to the next * or $. */
static size_t piece_length(const char *pattern)
{
    return strcspn(pattern, "*$");
}

static const char *find_piece(const char *text, const char *piece, size_t length)
{
    for (; strlen(text) >= length; text++)
        if (memcmp(text, piece, length) == 0)
            return text;
    return NULL;
}

/* Anywhere in the text, unless ^ and $ hold it to beginning and end; * is anything. */
static int matches(const char *pattern, const char *text)
{
    int is_held = *pattern == '^', may_skip = 0;
    if (text == NULL || *text == '\0') /* frames of one's own may have no texts */
        return 0;
    pattern += is_held;
    while (*pattern != '\0') {
        if (*pattern == '*') {
            pattern++;
            is_held = 0;
            may_skip = 1;
            continue;
        }
        if (*pattern == '$')
            return *text == '\0' || may_skip;
        size_t length = piece_length(pattern);
        const char *found = find_piece(text, pattern, length);
        if (found == NULL || (is_held && found != text))
            return 0;
        text = found + length;
        pattern += length;
        is_held = may_skip = 0;
    }
    return 1;
}

static int add_pattern(struct ta_suppressions *suppressions, const char *text)
{
    if (ta__grow(&suppressions->patterns, &suppressions->capacity, suppressions->count + 1,
                 sizeof *suppressions->patterns) != 0)
        return -1;
    suppressions->patterns[suppressions->count++] = (struct pattern){text, 0, 0};
    return 0;
}

static int parse_line(struct ta_suppressions *suppressions, char *line, size_t number)
{
    static const char kind[] = "leak:";
    line += strspn(line, " \t");
    for (size_t end = strlen(line); end > 0 && strchr(" \t\r", line[end - 1]) != NULL; end--)
        line[end - 1] = '\0';
    if (*line == '\0' || *line == '#')
        return 0;
    if (strncmp(line, kind, sizeof kind - 1) != 0 || line[sizeof kind - 1] == '\0')
        return ta__fail("line %zu of the suppressions is not leak:PATTERN: '%.60s'", number, line);
    return add_pattern(suppressions, line + sizeof kind - 1);
}

struct ta_suppressions *ta_suppressions_parse(const char *text, size_t length)
{
    struct ta_suppressions *suppressions = ta__new_array(1, sizeof *suppressions);
    int result = suppressions == NULL ? -1 : 0;
    if (result == 0 && (suppressions->text = ta__new_array(length + 1, 1)) == NULL)
        result = -1;
    if (result == 0)
        memcpy(suppressions->text, text, length);
    size_t number = 1;
    for (char *line = result == 0 ? suppressions->text : NULL; line != NULL && result == 0; number++) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        result = parse_line(suppressions, line, number);
        line = end != NULL ? end + 1 : NULL;
    }
    if (result == 0)
        return suppressions;
    ta_suppressions_free(suppressions);
    return NULL;
}

void ta_suppressions_free(struct ta_suppressions *suppressions)
{
    if (suppressions == NULL)
        return;
    free(suppressions->text);
    free(suppressions->patterns);
    free(suppressions);
}

static int hits_frame(const char *pattern, const struct ta_frame *frame)
{
    return matches(pattern, frame->module) || matches(pattern, frame->filename) || matches(pattern, frame->function) ||
           matches(pattern, frame->raw_name);
}

long ta_suppressions_match(const struct ta_suppressions *suppressions, struct ta_traceback traceback)
{
    size_t length = ta_traceback_length(traceback);
    for (size_t i = 0; suppressions != NULL && i < suppressions->count; i++)
        for (size_t k = 0; k < length; k++) {
            struct ta_frame frame;
            if (ta_traceback_frame(traceback, (int64_t)k, &frame) == 0 &&
                hits_frame(suppressions->patterns[i].text, &frame))
                return (long)i;
        }
    return -1;
}

void ta_suppressions_note(struct ta_suppressions *suppressions, size_t index, uint64_t blocks, uint64_t bytes)
{
    if (suppressions == NULL || index >= suppressions->count)
        return;
    suppressions->patterns[index].blocks += blocks;
    suppressions->patterns[index].bytes += bytes;
}

const char *ta_suppressions_get(const struct ta_suppressions *suppressions, size_t index, uint64_t *blocks,
                                uint64_t *bytes)
{
    if (suppressions == NULL || index >= suppressions->count)
        return NULL;
    *blocks = suppressions->patterns[index].blocks;
    *bytes = suppressions->patterns[index].bytes;
    return suppressions->patterns[index].text;
}
