/* traceback_text.c: a traceback as lines of text, with the source lines where they can be read.
 *
 * A source that is missing, unreadable, not a regular file or too short is no error: there is just no second line. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/model.h"
#include "analysis/code_points.h"
#include "analysis/analysis_domain.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"

#define SOURCE_MAX ((off_t)256 << 20)

/* The source read last: neighbouring frames are often in one file. */
struct source {
    const char *name; /* NULL = none yet */
    char *bytes;
    size_t length;
};

static char *read_whole(int descriptor, size_t length)
{
    char *bytes = malloc(length + 1);
    size_t done = 0;
    while (bytes != NULL && done < length) {
        ssize_t got = read(descriptor, bytes + done, length - done);
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    if (bytes != NULL && done < length) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

static void source_load(struct source *source, const char *name)
{
    if (source->name != NULL && strcmp(source->name, name) == 0)
        return;
    free(source->bytes);
    *source = (struct source){.name = name};

    /* Not blocking: a name may be that of a FIFO by now. */
    int descriptor = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return;
    struct stat status;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= SOURCE_MAX) {
        source->bytes = read_whole(descriptor, (size_t)status.st_size);
        source->length = source->bytes == NULL ? 0 : (size_t)status.st_size;
    }
    close(descriptor);
}

static int is_blank(uint32_t code_point)
{
    return (code_point >= 0x09 && code_point <= 0x0D) || (code_point >= 0x1C && code_point <= 0x20) ||
           code_point == 0x85 || code_point == 0xA0 || code_point == 0x1680 ||
           (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 || code_point == 0x2029 ||
           code_point == 0x202F || code_point == 0x205F || code_point == 0x3000;
}

static void strip(const char **start, const char **end)
{
    const char *text_start = NULL, *text_end = *start;
    for (const char *at = *start; at < *end;) {
        const char *point = at;
        if (is_blank(ta__next_code_point(&at, *end)))
            continue;
        if (text_start == NULL)
            text_start = point;
        text_end = at;
    }
    *start = text_start == NULL ? *end : text_start;
    *end = text_start == NULL ? *end : text_end;
}

/* Line `number` without surrounding blanks; empty when there is none. Lines end with LF, CR LF or CR. */
static void find_line(const struct source *source, uint32_t number, const char **start, const char **end)
{
    const char *at = source->bytes, *last = source->bytes + source->length;
    *start = *end = last;
    if (source->bytes == NULL || number == 0)
        return;
    if (source->length >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0)
        at += 3;
    for (uint32_t line = 1; at < last; line++) {
        const char *stop = at;
        while (stop < last && *stop != '\n' && *stop != '\r')
            stop++;
        if (line == number) {
            *start = at;
            *end = stop;
            strip(start, end);
            return;
        }
        at = stop + (stop + 1 < last && stop[0] == '\r' && stop[1] == '\n' ? 2 : 1);
    }
}

/* Lines are collected with a NUL behind each; `count` says how many. */
static void add_frame_lines(struct ta__text *text, size_t *count, struct source *source, const struct ta_frame *frame)
{
    const char *start, *end;
    ta__text_add_string(text, "  File \"");
    ta__text_add(text, frame->filename, frame->filename_length);
    ta__text_add_format(text, "\", line %u", frame->lineno);
    ta__text_add(text, "", 1);
    ++*count;

    if (frame->lineno == 0 || frame->filename_length != strlen(frame->filename))
        return;
    source_load(source, frame->filename);
    find_line(source, frame->lineno, &start, &end);
    if (start == end)
        return;
    ta__text_add_string(text, "    ");
    ta__text_add(text, start, (size_t)(end - start));
    ta__text_add(text, "", 1);
    ++*count;
}

/* Pointers and the strings they point to in one piece. A source line may contain NUL bytes: they end it early. */
static char **pack(const struct ta__text *text, size_t count, const size_t *offsets)
{
    char **lines = malloc((count + 1) * sizeof *lines + text->length);
    if (lines == NULL) {
        ta__fail_memory();
        return NULL;
    }
    char *bytes = (char *)(lines + count + 1);
    if (text->length > 0)
        memcpy(bytes, text->bytes, text->length);
    for (size_t i = 0; i < count; i++)
        lines[i] = bytes + offsets[i];
    lines[count] = NULL;
    return lines;
}

/* Which frames are chosen does not depend on the direction in which they are listed. */
static void choose(int64_t limit, size_t count, size_t *first, size_t *end)
{
    *first = 0;
    *end = count;
    if (limit >= 0) {
        if ((uint64_t)limit < count)
            *first = count - (size_t)limit;
    } else {
        uint64_t dropped = 0 - (uint64_t)limit;
        *end = dropped < count ? count - (size_t)dropped : 0;
    }
}

char **ta_traceback_format(struct ta_traceback traceback, int64_t limit, int most_recent_first)
{
    TA__OWN_DOMAIN;
    size_t count, first, end, lines = 0;
    struct ta_frame *frames = ta__traceback_expand(traceback, &count);
    if (frames == NULL)
        return NULL;
    choose(limit, count, &first, &end);

    char **result = NULL;
    struct ta__text text = {0};
    struct source source = {0};
    size_t *offsets = ta__new_array((end - first) * 2, sizeof *offsets);
    for (size_t i = first; offsets != NULL && i < end; i++) {
        size_t before = lines, start = text.length;
        add_frame_lines(&text, &lines, &source, &frames[most_recent_first ? end - 1 - (i - first) : i]);
        offsets[before] = start;
        if (lines - before == 2 && !text.failed)
            offsets[before + 1] = start + strlen(text.bytes + start) + 1;
    }
    if (offsets != NULL && !text.failed)
        result = pack(&text, lines, offsets);
    free(source.bytes);
    free(offsets);
    free(frames);
    ta__text_free(&text);
    return result;
}
