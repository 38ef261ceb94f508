/* json.h: json-c, with names that are bytes.
 *
 * JSON text is Unicode, our names are not always. Lone surrogates U+DC80 … U+DCFF stand for the bytes 0x80 … 0xFF;
 * json-c (like most libraries) replaces or refuses them. So text on its way in is rewritten first: every byte of a
 * string that is not ASCII becomes an escape of its own, \u0080 … \u00FF, and ta__json_bytes undoes that. Large
 * documents come through json_stream.h instead, and text on its way out is written by ta__json_add_string. */
#ifndef TA_ANALYSIS_EXCHANGE_JSON_H
#define TA_ANALYSIS_EXCHANGE_JSON_H

#include <json-c/json.h>

#include "analysis/growing_text.h"

/* NULL with the error set, which names line and column. What is refused and the words for it do not depend on json-c's
 * version: integers beyond 2^64-1 and control characters in strings are found here. */
struct json_object *ta__json_parse(const char *text, size_t length);

/* The bytes of a parsed string, written to `out` (room for json_object_get_string_len) and NUL-terminated beyond. */
size_t ta__json_bytes(const struct json_object *string, char *out);

/* A string with its quotes, as json-c would write it; bytes that are not UTF-8 become lone surrogates. */
void ta__json_add_string(struct ta__text *text, const char *bytes, size_t length);

#endif
