/* json.c: see json.h. */
#include "analysis/json.h"

#include <string.h>

#include "analysis/names.h"

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
    *message = error == json_tokener_continue ? "the text ends too early" : json_tokener_error_desc(error);
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
    ta__text_add(&reader.ascii, "", 0);
    if (rewrite(&reader) == 0) {
        size_t offset;
        const char *message;
        if (memchr(reader.ascii.bytes, '\0', reader.ascii.length) != NULL)
            ta__fail("JSON: a NUL byte in the text");
        else if ((object = parse_ascii(&reader.ascii, &offset, &message)) == NULL)
            fail_at(text, original_offset(text, length, offset), message);
    }
    ta__text_free(&reader.ascii);
    return object;
}

int ta__json_check_integers(const char *text, size_t length)
{
    static const char largest[] = "18446744073709551615";
    const char *end = text + length;
    int in_string = 0;
    for (const char *at = text; at < end; at++) {
        if (in_string && *at == '\\') {
            at++;
        } else if (*at == '"') {
            in_string = !in_string;
        } else if (!in_string && is_digit(*at)) {
            const char *start = at;
            while (at < end && is_digit(*at))
                at++;
            size_t digits = (size_t)(at - start), most = sizeof largest - 1;
            int is_integer = at == end || (*at != '.' && *at != 'e' && *at != 'E');
            if (is_integer && (digits > most || (digits == most && memcmp(start, largest, most) > 0)))
                return fail_at(text, (size_t)(start - text), "an integer beyond 18446744073709551615");
            while (at < end && (is_digit(*at) || memchr(".eE+-", *at, 5) != NULL))
                at++;
            at--;
        }
    }
    return 0;
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

struct json_object *ta__json_new_object(void)
{
    TA__OWN_DOMAIN;
    return json_object_new_object();
}

struct json_object *ta__json_new_array(size_t expected)
{
    TA__OWN_DOMAIN;
    return json_object_new_array_ext(expected > 32 ? 32 : (int)expected + 1);
}

struct json_object *ta__json_new_bytes(const char *bytes, size_t length)
{
    TA__OWN_DOMAIN;
    if (length > INT32_MAX)
        return NULL;
    return json_object_new_string_len(bytes, (int)length);
}

struct json_object *ta__json_new_wide(ta__wide value)
{
    TA__OWN_DOMAIN;
    if (value <= UINT64_MAX)
        return json_object_new_uint64((uint64_t)value);
    struct ta__text digits = {0};
    ta__text_add_wide(&digits, value);
    struct json_object *object = digits.failed ? NULL : json_object_new_double_s(0, digits.bytes);
    ta__text_free(&digits);
    return object;
}

struct json_object *ta__json_new_signed(ta__signed_wide value)
{
    TA__OWN_DOMAIN;
    if (value >= 0)
        return ta__json_new_wide((ta__wide)value);
    if (value >= INT64_MIN)
        return json_object_new_int64((int64_t)value);
    struct ta__text digits = {0};
    ta__text_add_string(&digits, "-");
    ta__text_add_wide(&digits, (ta__wide)-value);
    struct json_object *object = digits.failed ? NULL : json_object_new_double_s(0, digits.bytes);
    ta__text_free(&digits);
    return object;
}

int ta__json_add(struct json_object *object, const char *key, struct json_object *value)
{
    TA__OWN_DOMAIN;
    if (value == NULL || object == NULL || json_object_object_add(object, key, value) != 0) {
        json_object_put(value);
        return -1;
    }
    return 0;
}

int ta__json_add_null(struct json_object *object, const char *key)
{
    TA__OWN_DOMAIN;
    return object == NULL ? -1 : json_object_object_add(object, key, NULL);
}

int ta__json_append(struct json_object *array, struct json_object *value)
{
    TA__OWN_DOMAIN;
    if (value == NULL || array == NULL || json_object_array_add(array, value) != 0) {
        json_object_put(value);
        return -1;
    }
    return 0;
}

static const char *serialize(struct json_object *object, size_t *length)
{
    TA__OWN_DOMAIN;
    return json_object_to_json_string_length(object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, length);
}

int ta__json_write(struct ta__output *output, struct json_object *object)
{
    size_t length = 0;
    const char *text = serialize(object, &length);
    if (text == NULL)
        return ta__fail_memory();
    const char *at = text, *end = text + length, *sound = text;
    while (at < end) {
        const char *point = at;
        uint32_t code_point = ta__next_code_point(&at, end);
        if (code_point < 0xDC80 || code_point > 0xDCFF)
            continue;
        char escape[8] = "\\udc00";
        escape[4] = "0123456789abcdef"[code_point >> 4 & 15];
        escape[5] = "0123456789abcdef"[code_point & 15];
        ta__output_add(output, sound, (size_t)(point - sound));
        ta__output_add(output, escape, 6);
        sound = at;
    }
    ta__output_add(output, sound, (size_t)(end - sound));
    return 0;
}
