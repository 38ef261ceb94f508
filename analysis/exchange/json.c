/* json.c: see json.h. */
#include "analysis/exchange/json.h"

#include <string.h>

#include "analysis/code_points.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"

/* ---- in ---- */

struct reader {
    const char *text, *at, *end;
    struct ta__text ascii;
};

static int fail_at(const char *text, size_t offset, const char *message)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < offset; i++) {
        column = text[i] == '\n' ? 1 : column + 1;
        line += text[i] == '\n';
    }
    return ta__fail("JSON, line %zu, column %zu: %s", line, column, message);
}

static int is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* The value of \uXXXX at `at`; -1 when it is none. */
static int32_t escape_at(const char *at, const char *end)
{
    int32_t value = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        char digit = at[i];
        int nibble = digit >= '0' && digit <= '9'   ? digit - '0'
                     : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                     : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                    : -1;
        if (nibble < 0)
            return -1;
        value = value * 16 + nibble;
    }
    return value;
}

static void add_byte(struct reader *reader, unsigned char byte)
{
    ta__text_add_format(&reader->ascii, "\\u%04x", byte);
}

/* \uXXXX, or two of them that make one code point. Escapes of ASCII stay as they are. */
static int rewrite_escape(struct reader *reader)
{
    int32_t value = escape_at(reader->at, reader->end);
    const char *start = reader->at;
    char bytes[4];
    if (value < 0)
        return fail_at(reader->text, (size_t)(start - reader->text), "\\u wants four hexadecimal digits");
    reader->at += 6;
    if (value < 0x80) {
        ta__text_add(&reader->ascii, start, 6);
        return 0;
    }
    int32_t low = value >= 0xD800 && value < 0xDC00 ? escape_at(reader->at, reader->end) : -1;
    if (low >= 0xDC00 && low < 0xE000) {
        value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
        reader->at += 6;
    }
    if (value >= 0xD800 && value < 0xE000 && (value < 0xDC80 || value > 0xDCFF))
        return fail_at(reader->text, (size_t)(start - reader->text),
                       "a lone surrogate that stands for no byte (U+DC80 … U+DCFF do)");
    size_t length = ta__put_code_point(bytes, (uint32_t)value);
    for (size_t i = 0; i < length; i++)
        add_byte(reader, (unsigned char)bytes[i]);
    return 0;
}

static int rewrite(struct reader *reader)
{
    while (reader->at < reader->end) {
        const char *start = reader->at;
        while (reader->at < reader->end && *reader->at != '\\' && (unsigned char)*reader->at < 0x80)
            reader->at++;
        if (reader->at > start)
            ta__text_add(&reader->ascii, start, (size_t)(reader->at - start));
        if (reader->at == reader->end)
            break;
        if (*reader->at != '\\') {
            add_byte(reader, (unsigned char)*reader->at++);
        } else if (reader->end - reader->at >= 2 && reader->at[1] == 'u') {
            if (rewrite_escape(reader) != 0)
                return -1;
        } else {
            size_t length = reader->end - reader->at >= 2 ? 2 : 1;
            ta__text_add(&reader->ascii, reader->at, length);
            reader->at += length;
        }
    }
    return reader->ascii.failed ? ta__fail_memory() : 0;
}

/* Where in the original text an offset of the rewritten one lies: rewriting again, up to there. */
static size_t original_offset(const char *text, size_t length, size_t offset)
{
    struct reader reader = {.text = text, .at = text, .end = text + length};
    size_t original = 0, low = 0, high = length;
    while (low <= high && high <= length) {
        size_t middle = low + (high - low) / 2;
        reader.at = text;
        reader.end = text + middle;
        reader.ascii.length = 0;
        rewrite(&reader);
        if (reader.ascii.length <= offset) {
            original = middle;
            low = middle + 1;
        } else {
            if (middle == 0)
                break;
            high = middle - 1;
        }
    }
    ta__text_free(&reader.ascii);
    return original;
}

/* The number at `at`, which is a digit; *end is where it ends. */
static int check_number(const char *text, const char *at, const char *text_end, const char **end)
{
    static const char largest[] = "18446744073709551615";
    const char *start = at;
    while (at < text_end && is_digit(*at))
        at++;
    size_t digits = (size_t)(at - start), most = sizeof largest - 1;
    int is_integer = at == text_end || (*at != '.' && *at != 'e' && *at != 'E');
    if (is_integer && (digits > most || (digits == most && memcmp(start, largest, most) > 0)))
        return fail_at(text, (size_t)(start - text), "an integer beyond 18446744073709551615");
    while (at < text_end && (is_digit(*at) || memchr(".eE+-", *at, 5) != NULL))
        at++;
    *end = at;
    return 0;
}

/* What json-c judges differently from version to version: integers that are too large, which it makes the largest one
 * or calls no number, and control characters in strings. */
static int check_text(const char *text, size_t length)
{
    const char *end = text + length;
    int in_string = 0;
    for (const char *at = text; at < end;) {
        if (!in_string && is_digit(*at)) {
            if (check_number(text, at, end, &at) != 0)
                return -1;
            continue;
        }
        if (in_string && (unsigned char)*at < ' ')
            return fail_at(text, (size_t)(at - text), "a control character in a string");
        if (in_string && *at == '\\')
            at++;
        else if (*at == '"')
            in_string = !in_string;
        at++;
    }
    return 0;
}

/* json-c's own words change with its version. */
static const char *words_for(enum json_tokener_error error)
{
    switch ((int)error) {
    case json_tokener_continue:
        return "the text ends too early";
    case json_tokener_error_depth:
        return "nesting too deep";
    case json_tokener_error_parse_eof:
        return "unexpected end of data";
    case json_tokener_error_parse_null:
        return "expected null";
    case json_tokener_error_parse_boolean:
        return "expected true or false";
    case json_tokener_error_parse_number:
        return "expected a number";
    case json_tokener_error_parse_array:
        return "expected , or ] in a list";
    case json_tokener_error_parse_object_key_name:
        return "expected a name in quotes";
    case json_tokener_error_parse_object_key_sep:
        return "expected : behind a name";
    case json_tokener_error_parse_object_value_sep:
        return "expected , or } in an object";
    case json_tokener_error_parse_string:
        return "a string that is not well formed";
    case json_tokener_error_size:
        return "longer than can be read";
    default:
        return "unexpected character";
    }
}

static struct json_object *parse_ascii(const struct ta__text *ascii, size_t *offset, const char **message)
{
    struct json_tokener *tokener = json_tokener_new();
    *message = "out of memory";
    *offset = 0;
    if (tokener == NULL)
        return NULL;
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *object = NULL;
    size_t done = 0;
    enum json_tokener_error error;
    /* The parser takes int lengths. The NUL at the end tells it that a number may end there. */
    do {
        size_t room = ascii->length + 1 - done;
        int piece = room > 1 << 30 ? 1 << 30 : (int)room;
        object = json_tokener_parse_ex(tokener, ascii->bytes + done, piece);
        error = json_tokener_get_error(tokener);
        done += json_tokener_get_parse_end(tokener);
    } while (error == json_tokener_continue && done <= ascii->length);
    *offset = done;
    *message = words_for(error);
    while (error == json_tokener_success && done < ascii->length && strchr(" \t\r\n", ascii->bytes[done]) != NULL)
        done++;
    if (error == json_tokener_success && done < ascii->length) {
        *message = "something follows the value";
        json_object_put(object);
        object = NULL;
        error = json_tokener_error_parse_unexpected;
    } else if (error == json_tokener_success && object == NULL) {
        *message = "null is nothing to work with";
    }
    json_tokener_free(tokener);
    return error == json_tokener_success ? object : NULL;
}

struct json_object *ta__json_parse(const char *text, size_t length)
{
    struct reader reader = {.text = text, .at = text, .end = text + length};
    struct json_object *object = NULL;
    if (memchr(text, '\0', length) != NULL) {
        ta__fail("JSON: a NUL byte in the text");
        return NULL;
    }
    if (check_text(text, length) != 0)
        return NULL;
    ta__text_add(&reader.ascii, "", 0);
    if (rewrite(&reader) == 0) {
        size_t offset;
        const char *message;
        if ((object = parse_ascii(&reader.ascii, &offset, &message)) == NULL)
            fail_at(text, original_offset(text, length, offset), message);
    }
    ta__text_free(&reader.ascii);
    return object;
}

size_t ta__json_bytes(const struct json_object *string, char *out)
{
    struct json_object *object = (struct json_object *)(uintptr_t)string; /* json-c's getters are not const */
    const char *at = json_object_get_string(object), *end = at + json_object_get_string_len(object);
    char *start = out;
    while (at < end)
        *out++ = (char)ta__next_code_point(&at, end);
    *out = '\0';
    return (size_t)(out - start);
}

/* ---- out ---- */

void ta__json_add_string(struct ta__text *text, const char *bytes, size_t length)
{
    static const char names[] = "\"\\bfnrt", named[] = "\"\\\b\f\n\r\t", digits[] = "0123456789abcdef";
    const char *at = bytes, *end = bytes + length, *sound = bytes;
    ta__text_add(text, "\"", 1);
    while (at < end) {
        if ((unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' && *at != '\\') {
            at++;
            continue;
        }
        const char *point = at;
        uint32_t value = ta__next_code_point(&at, end);
        const char *name = value < 0x80 && value != 0 ? strchr(named, (int)value) : NULL;
        if (name == NULL && value >= 0x20 && (value < 0xDC80 || value > 0xDCFF))
            continue;
        int is_byte = value >= 0xDC80;
        char escape[6] = {
            '\\', 'u', is_byte ? 'd' : '0', is_byte ? 'c' : '0', digits[value >> 4 & 15], digits[value & 15]};
        if (name != NULL)
            escape[1] = names[name - named];
        ta__text_add(text, sound, (size_t)(point - sound));
        ta__text_add(text, escape, name != NULL ? 2 : 6);
        sound = at;
    }
    ta__text_add(text, sound, (size_t)(end - sound));
    ta__text_add(text, "\"", 1);
}
