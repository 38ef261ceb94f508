/* growing_text.c: see growing_text.h. */
#include "analysis/growing_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

void ta__text_add(struct ta__text *text, const char *bytes, size_t length)
{
    if (text->failed || ta__grow(&text->bytes, &text->capacity, text->length + length + 1, 1) != 0) {
        text->failed = 1;
        return;
    }
    if (length > 0) /* nothing may stand nowhere */
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void ta__text_add_string(struct ta__text *text, const char *string)
{
    ta__text_add(text, string, strlen(string));
}

void ta__text_add_format(struct ta__text *text, const char *format, ...)
{
    char piece[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length > 0)
        ta__text_add(text, piece, (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1);
}

void ta__text_add_wide(struct ta__text *text, ta__wide value)
{
    char digits[40];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value != 0);
    ta__text_add(text, digits + at, sizeof digits - at);
}

void ta__text_free(struct ta__text *text)
{
    free(text->bytes);
    *text = (struct ta__text){0};
}

size_t ta__text_deliver(struct ta__text *text, char *out, size_t size)
{
    size_t length = text->length;
    if (size > 0) {
        size_t copied = length < size ? length : size - 1;
        if (copied > 0)
            memcpy(out, text->bytes, copied);
        out[copied] = '\0';
    }
    ta__text_free(text);
    return length;
}
