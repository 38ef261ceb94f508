/* growing_text.h: text under construction. */
#ifndef TA_ANALYSIS_GROWING_TEXT_H
#define TA_ANALYSIS_GROWING_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/wide.h"
#include "base/attributes.h"

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

/* What makes one thing many: "%u block%s", blocks, ta__s(blocks). */
static inline const char *ta__s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* The rule of snprintf: copies what fits and a NUL, returns the whole length; frees `text`. */
size_t ta__text_deliver(struct ta__text *text, char *out, size_t size);

#endif
