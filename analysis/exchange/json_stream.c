/* json_stream.c: see json_stream.h. */
#include "analysis/exchange/json_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/code_points.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"

#define PIECE     ((size_t)1 << 18)
#define DEPTH_MAX 32

/* ---- bytes ---- */

static uint64_t offset_of(const struct ta__json_stream *stream)
{
    return stream->read_before_end - (uint64_t)(stream->end - stream->at);
}

static TA_COLD int fail_at(struct ta__json_stream *stream, uint64_t offset, const char *message)
{
    if (!stream->failed)
        ta__fail("JSON, line %llu, column %llu: %s", (unsigned long long)stream->line,
                 (unsigned long long)(offset - stream->line_start + 1), message);
    stream->failed = 1;
    return -1;
}

static TA_COLD int fail_here(struct ta__json_stream *stream, const char *message)
{
    return fail_at(stream, offset_of(stream), message);
}

static TA_COLD int fail_memory(struct ta__json_stream *stream)
{
    stream->failed = 1;
    return ta__fail_memory();
}

/* Nothing of what was read is left: reads more. 1, 0 at the end of the text, -1 on failure. */
static int fill(struct ta__json_stream *stream)
{
    if (stream->failed)
        return -1;
    long got = stream->read(stream->user, stream->buffer, PIECE);
    if (got < 0 || (size_t)got > PIECE) {
        stream->failed = 1;
        return ta__fail("cannot read: %s", strerror(errno));
    }
    stream->at = stream->buffer;
    stream->end = stream->buffer + got;
    stream->read_before_end += (uint64_t)got;
    return got > 0;
}

/* The next byte, which stays; -1 at the end and after a failure. */
static inline int look(struct ta__json_stream *stream)
{
    if (TA_UNLIKELY(stream->at == stream->end) && fill(stream) <= 0)
        return -1;
    return (unsigned char)*stream->at;
}

static TA_COLD int fail_unexpected(struct ta__json_stream *stream, const char *message)
{
    int byte = look(stream);
    if (byte < 0)
        return fail_here(stream, "unexpected end of data");
    if (byte == 0 && !stream->failed) {
        stream->failed = 1;
        return ta__fail("JSON: a NUL byte in the text");
    }
    return fail_here(stream, message);
}

static void new_line(struct ta__json_stream *stream)
{
    stream->line++;
    stream->line_start = offset_of(stream) + 1;
}

int ta__json_stream_peek(struct ta__json_stream *stream)
{
    for (;;) {
        int byte = look(stream);
        if (byte != ' ' && byte != '\n' && byte != '\t' && byte != '\r')
            return byte;
        if (byte == '\n')
            new_line(stream);
        stream->at++;
    }
}

/* ---- strings ---- */

/* The four digits behind \u. */
static int get_escape(struct ta__json_stream *stream, uint64_t start, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = look(stream);
        int nibble = digit >= '0' && digit <= '9'   ? digit - '0'
                     : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                     : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                    : -1;
        if (nibble < 0)
            return fail_at(stream, start, "\\u wants four hexadecimal digits");
        *value = *value * 16 + (uint32_t)nibble;
        stream->at++;
    }
    return 0;
}

static int add_code_point(struct ta__json_stream *stream, uint64_t start, uint32_t value)
{
    char bytes[4];
    if (value >= 0xD800 && value < 0xE000 && (value < 0xDC80 || value > 0xDCFF))
        return fail_at(stream, start, "a lone surrogate that stands for no byte (U+DC80 … U+DCFF do)");
    ta__text_add(&stream->string, bytes, ta__put_code_point(bytes, value));
    return 0;
}

/* Behind a backslash at `start`. A high surrogate and the low one behind it are one code point; what follows a high one
 * that has none is a string of its own again. */
static int add_escape(struct ta__json_stream *stream, uint64_t start)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    int byte = look(stream);
    const char *name = byte > 0 ? strchr(names, byte) : NULL;
    uint32_t value, low;
    if (name != NULL) {
        stream->at++;
        ta__text_add(&stream->string, &bytes[name - names], 1);
        return 0;
    }
    if (byte != 'u')
        return fail_unexpected(stream, "a string that is not well formed");
    stream->at++;
    if (get_escape(stream, start, &value) != 0)
        return -1;
    if (value < 0xD800 || value >= 0xDC00)
        return add_code_point(stream, start, value);
    uint64_t second = offset_of(stream);
    if (look(stream) == '\\') {
        stream->at++;
        if (look(stream) == 'u') {
            stream->at++;
            if (get_escape(stream, second, &low) != 0)
                return -1;
            if (low >= 0xDC00 && low < 0xE000)
                return add_code_point(stream, start, 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00));
        }
    }
    return add_code_point(stream, start, value); /* alone: refused */
}

static int get_string(struct ta__json_stream *stream)
{
    stream->string.length = 0;
    ta__text_add(&stream->string, "", 0);
    stream->at++;
    for (;;) {
        if (stream->at == stream->end && fill(stream) <= 0)
            return fail_unexpected(stream, "");
        const char *start = stream->at, *at = start;
        while (at < stream->end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20)
            at++;
        if (at > start)
            ta__text_add(&stream->string, start, (size_t)(at - start));
        stream->at = at;
        if (at == stream->end)
            continue;
        if (*at == '\0')
            return fail_unexpected(stream, "");
        if (*at != '"' && *at != '\\')
            return fail_here(stream, "a control character in a string");
        stream->at++;
        if (*at == '"')
            break;
        if (add_escape(stream, offset_of(stream) - 1) != 0)
            return -1;
    }
    return stream->string.failed ? fail_memory(stream) : 0;
}

/* ---- numbers and words ---- */

static int is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}

static int get_digits(struct ta__json_stream *stream)
{
    if (!is_digit(look(stream)))
        return fail_unexpected(stream, "expected a number");
    while (is_digit(look(stream)))
        stream->at++;
    return 0;
}

/* What may follow the digits; 1 when something did: then the number is no integer. */
static int get_fraction(struct ta__json_stream *stream)
{
    int byte = look(stream), is_fraction = 0;
    if (byte == '.') {
        stream->at++;
        is_fraction = 1;
        if (get_digits(stream) != 0)
            return -1;
        byte = look(stream);
    }
    if (byte != 'e' && byte != 'E')
        return is_fraction;
    stream->at++;
    byte = look(stream);
    if (byte == '+' || byte == '-')
        stream->at++;
    return get_digits(stream) != 0 ? -1 : 1;
}

static int get_number(struct ta__json_stream *stream, struct ta__json_value *value)
{
    int is_negative = look(stream) == '-', byte, is_large = 0;
    uint64_t number = 0;
    if (is_negative)
        stream->at++;
    uint64_t start = offset_of(stream);
    int is_zero_first = look(stream) == '0';
    if (!is_digit(look(stream)))
        return fail_unexpected(stream, "expected a number");
    for (; is_digit(byte = look(stream)); stream->at++) {
        if (is_zero_first && offset_of(stream) > start)
            return fail_here(stream, "expected a number");
        is_large |= __builtin_mul_overflow(number, (uint64_t)10, &number);
        is_large |= __builtin_add_overflow(number, (uint64_t)(byte - '0'), &number);
    }
    int is_fraction = get_fraction(stream);
    if (is_fraction < 0)
        return -1;
    if (!is_fraction && is_large)
        return fail_at(stream, start, "an integer beyond 18446744073709551615");
    *value = is_fraction || (is_negative && number > 0) ? (struct ta__json_value){TA__JSON_OTHER, 0}
                                                        : (struct ta__json_value){TA__JSON_UNSIGNED, number};
    return 0;
}

static int get_word(struct ta__json_stream *stream, const char *word, const char *message)
{
    for (; *word != '\0'; word++) {
        if (look(stream) != *word)
            return fail_unexpected(stream, message);
        stream->at++;
    }
    return 0;
}

/* ---- objects and lists ---- */

int ta__json_stream_enter(struct ta__json_stream *stream, char bracket)
{
    if (ta__json_stream_peek(stream) != bracket)
        return fail_unexpected(stream, "unexpected character");
    if (++stream->depth >= DEPTH_MAX)
        return fail_here(stream, "nesting too deep");
    stream->at++;
    return 0;
}

/* The comma before the next element, or the end. */
static int next(struct ta__json_stream *stream, size_t *count, char end, const char *message)
{
    int byte = ta__json_stream_peek(stream);
    if (byte == end) {
        stream->at++;
        stream->depth--;
        return 0;
    }
    if ((*count)++ == 0)
        return 1;
    if (byte != ',')
        return fail_unexpected(stream, message);
    stream->at++;
    return 1;
}

int ta__json_stream_item(struct ta__json_stream *stream, size_t *count)
{
    return next(stream, count, ']', "expected , or ] in a list");
}

int ta__json_stream_member(struct ta__json_stream *stream, size_t *count)
{
    int more = next(stream, count, '}', "expected , or } in an object");
    if (more != 1)
        return more;
    if (ta__json_stream_peek(stream) != '"')
        return fail_unexpected(stream, "expected a name in quotes");
    if (get_string(stream) != 0)
        return -1;
    if (ta__json_stream_peek(stream) != ':')
        return fail_unexpected(stream, "expected : behind a name");
    stream->at++;
    return 1;
}

/* Depth is bounded, so is the recursion. */
static int skip(struct ta__json_stream *stream, char bracket)
{
    struct ta__json_value value;
    size_t count = 0;
    int more;
    if (ta__json_stream_enter(stream, bracket) != 0)
        return -1;
    while ((more = bracket == '{' ? ta__json_stream_member(stream, &count) : ta__json_stream_item(stream, &count)) == 1)
        if (ta__json_stream_value(stream, &value) != 0)
            return -1;
    return more;
}

int ta__json_stream_value(struct ta__json_stream *stream, struct ta__json_value *value)
{
    int byte = ta__json_stream_peek(stream);
    *value = (struct ta__json_value){.kind = TA__JSON_OTHER};
    switch (byte) {
    case '"':
        value->kind = TA__JSON_STRING;
        return get_string(stream);
    case '{':
    case '[':
        return skip(stream, (char)byte);
    case 't':
        return get_word(stream, "true", "expected true or false");
    case 'f':
        return get_word(stream, "false", "expected true or false");
    case 'n':
        value->kind = TA__JSON_NULL;
        return get_word(stream, "null", "expected null");
    default:
        if (byte == '-' || is_digit(byte))
            return get_number(stream, value);
        return fail_unexpected(stream, "unexpected character");
    }
}

int ta__json_stream_finish(struct ta__json_stream *stream)
{
    if (stream->failed)
        return -1;
    return ta__json_stream_peek(stream) < 0 && !stream->failed ? 0 : fail_unexpected(stream, "unexpected character");
}

/* ---- open and close ---- */

int ta__json_stream_open(struct ta__json_stream *stream, ta_read_function read, void *user)
{
    *stream = (struct ta__json_stream){.read = read, .user = user, .line = 1};
    stream->buffer = ta__new_array(PIECE, 1);
    stream->at = stream->end = stream->buffer;
    stream->failed = stream->buffer == NULL;
    return stream->failed ? -1 : 0;
}

void ta__json_stream_close(struct ta__json_stream *stream)
{
    ta__text_free(&stream->string);
    free(stream->buffer);
    stream->buffer = NULL;
}
