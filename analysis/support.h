/* support.h: what every file of analysis needs — error texts, growing arrays, text under construction.
 *
 * Analysis runs offline or by request of the program, so it uses malloc; every failure to get memory is an error that
 * is passed up, never an abort. */
#ifndef TA_ANALYSIS_SUPPORT_H
#define TA_ANALYSIS_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

/* Sums of a whole snapshot: exact for any input that fits in memory. */
typedef unsigned __int128 ta__wide;
typedef __int128 ta__signed_wide;

TA_INLINE uint64_t ta__saturate(ta__wide value)
{
    return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

TA_INLINE int64_t ta__saturate_signed(ta__signed_wide value)
{
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

/* Sets the text that ta_error_text answers. Always returns -1, so that callers may `return ta__fail(…)`. */
int ta__fail(const char *format, ...) TA_PRINTF(1, 2);
int ta__fail_memory(void);

/* In a program that runs under tracealloc, what this thread allocates until the end of the enclosing block belongs to the
 * domain of analysis. Allocations below are in it anyway; this is for libraries that allocate on our behalf. */
#define TA__OWN_DOMAIN                                                                                                 \
    __attribute__((cleanup(ta__leave_own_domain), unused)) const int ta__own_domain = ta__enter_own_domain()
int ta__enter_own_domain(void);
void ta__leave_own_domain(const int *entered);

/* `count` zeroed items; NULL (and the error set) when there is no memory. Never NULL for 0 items. */
TA_NODISCARD void *ta__new_array(size_t count, size_t item_size);
/* Makes room for at least `needed` items; 0, or -1 with the array as it was. */
TA_NODISCARD int ta__grow(void *array_pointer, size_t *capacity, size_t needed, size_t item_size);

/* Text that grows; once memory fails, nothing more is added and `failed` stays. */
struct ta__text {
    char *bytes; /* NUL-terminated once anything was added */
    size_t length, capacity;
    int failed;
};
void ta__text_add(struct ta__text *text, const char *bytes, size_t length);
void ta__text_add_string(struct ta__text *text, const char *string);
void ta__text_add_format(struct ta__text *text, const char *format, ...) TA_PRINTF(2, 3);
void ta__text_add_wide(struct ta__text *text, ta__wide value);
void ta__text_free(struct ta__text *text);

/* The rule of snprintf: copies what fits and a NUL, returns the whole length; frees `text`. */
size_t ta__text_deliver(struct ta__text *text, char *out, size_t size);

/* A stable sort of `count` items. 0, or -1 when there is no memory. */
TA_NODISCARD int ta__sort(void *items, size_t count, size_t item_size, int (*compare)(const void *, const void *));

#endif
