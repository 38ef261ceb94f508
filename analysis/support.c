/* support.c: see support.h. */
#include "analysis/support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "base/error.h"
#include "tracealloc/analysis.h"
#include "tracealloc/domain.h"

/* The runtime's, where there is one: analysis needs none. */
extern __typeof__(ta_domain_push) ta_domain_push __attribute__((weak));
extern __typeof__(ta_domain_pop) ta_domain_pop __attribute__((weak));
extern __typeof__(ta_domain_set_name) ta_domain_set_name __attribute__((weak));

static int is_domain_named; /* any thread, relaxed: naming it twice does no harm */

int ta__enter_own_domain(void)
{
    if (ta_domain_push == NULL || ta_domain_pop == NULL)
        return 0;
    if (!ta__load_relaxed(&is_domain_named) && ta_domain_set_name != NULL) {
        ta__store_relaxed(&is_domain_named, 1);
        ta_domain_set_name(TA_ANALYSIS_DOMAIN, "tracealloc-analysis");
    }
    ta_domain_push(TA_ANALYSIS_DOMAIN);
    return 1;
}

void ta__leave_own_domain(const int *entered)
{
    if (*entered)
        ta_domain_pop();
}

int ta__fail(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ta__error_set(text, NULL);
    return -1;
}

int ta__fail_memory(void)
{
    return ta__fail("out of memory");
}

void *ta__new_array(size_t count, size_t item_size)
{
    TA__OWN_DOMAIN;
    void *items = calloc(count == 0 ? 1 : count, item_size);
    if (items == NULL)
        ta__fail_memory();
    return items;
}

int ta__grow(void *array_pointer, size_t *capacity, size_t needed, size_t item_size)
{
    if (needed <= *capacity)
        return 0;
    size_t wanted = *capacity < 16 ? 16 : *capacity + *capacity / 2;
    if (wanted < needed)
        wanted = needed;

    TA__OWN_DOMAIN;
    void *items, *grown;
    memcpy(&items, array_pointer, sizeof items);
    grown = reallocarray(items, wanted, item_size);
    if (grown == NULL)
        return ta__fail_memory();
    memcpy(array_pointer, &grown, sizeof grown);
    *capacity = wanted;
    return 0;
}

void ta__text_add(struct ta__text *text, const char *bytes, size_t length)
{
    if (text->failed || ta__grow(&text->bytes, &text->capacity, text->length + length + 1, 1) != 0) {
        text->failed = 1;
        return;
    }
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

/* Merge sort, bottom up: stable, and no quadratic case. */
int ta__sort(void *items, size_t count, size_t item_size, int (*compare)(const void *, const void *))
{
    if (count < 2)
        return 0;
    TA__OWN_DOMAIN;
    char *spare = reallocarray(NULL, count, item_size);
    if (spare == NULL)
        return ta__fail_memory();

    char *from = items, *to = spare;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t left = start, left_end = start + width < count ? start + width : count;
            size_t right = left_end, right_end = left_end + width < count ? left_end + width : count;
            for (size_t at = start; at < right_end; at++) {
                int take_right = left == left_end ||
                                 (right < right_end && compare(from + right * item_size, from + left * item_size) < 0);
                size_t source = take_right ? right++ : left++;
                memcpy(to + at * item_size, from + source * item_size, item_size);
            }
        }
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != (char *)items)
        memcpy(items, from, count * item_size);
    free(spare);
    return 0;
}
