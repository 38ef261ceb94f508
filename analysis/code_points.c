/* code_points.c: see code_points.h. */
#include "analysis/code_points.h"

#include <string.h>

/* The length of the well-formed sequence at `at`, 0 when there is none: no overlong forms, no surrogates, nothing above
 * U+10FFFF. */
static size_t sequence_length(const unsigned char *at, size_t room)
{
    unsigned char first = at[0];
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;

    size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (room < length)
        return 0;
    unsigned char low = 0x80, high = 0xBF; /* of the second byte */
    if (first == 0xE0)
        low = 0xA0;
    else if (first == 0xED)
        high = 0x9F;
    else if (first == 0xF0)
        low = 0x90;
    else if (first == 0xF4)
        high = 0x8F;
    if (at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (at[i] < 0x80 || at[i] > 0xBF)
            return 0;
    return length;
}

uint32_t ta__next_code_point(const char **at, const char *end)
{
    const unsigned char *bytes = (const unsigned char *)*at;
    size_t length = sequence_length(bytes, (size_t)(end - *at));
    *at += length == 0 ? 1 : length;
    switch (length) {
    case 0:
        return 0xDC00u + bytes[0];
    case 1:
        return bytes[0];
    case 2:
        return (bytes[0] & 0x1Fu) << 6 | (bytes[1] & 0x3Fu);
    case 3:
        return (bytes[0] & 0x0Fu) << 12 | (bytes[1] & 0x3Fu) << 6 | (bytes[2] & 0x3Fu);
    default:
        return (bytes[0] & 0x07u) << 18 | (bytes[1] & 0x3Fu) << 12 | (bytes[2] & 0x3Fu) << 6 | (bytes[3] & 0x3Fu);
    }
}

size_t ta__put_code_point(char out[4], uint32_t code_point)
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point >= 0xDC80 && code_point <= 0xDCFF) {
        out[0] = (char)(code_point - 0xDC00);
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xC0 | code_point >> 6);
        out[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xE0 | code_point >> 12);
        out[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code_point >> 18);
    out[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

int ta__name_is_utf8(const char *name, size_t length)
{
    const unsigned char *at = (const unsigned char *)name, *end = at + length;
    while (at < end) {
        size_t step = sequence_length(at, (size_t)(end - at));
        if (step == 0)
            return 0;
        at += step;
    }
    return 1;
}

int ta__name_compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t common = a_length < b_length ? a_length : b_length, same = 0;
    while (same < common && a[same] == b[same])
        same++;
    if (same == common && a_length == b_length)
        return 0;

    /* Step back behind the start of a sequence that the difference may lie in, also where one name merely ends: a sequence
     * that is cut off there is read as single bytes. Should this be the middle of an earlier sequence, its rest is read as
     * single bytes in both names alike. */
    size_t back = same < 3 ? 0 : same - 3;
    const char *a_at = a + back, *b_at = b + back, *a_end = a + a_length, *b_end = b + b_length;
    while (a_at < a_end && b_at < b_end) {
        uint32_t a_point = ta__next_code_point(&a_at, a_end), b_point = ta__next_code_point(&b_at, b_end);
        if (a_point != b_point)
            return a_point < b_point ? -1 : 1;
    }
    return a_at < a_end ? 1 : b_at < b_end ? -1 : 0;
}
