/* json.h: json-c, with names that are bytes.
 *
 * JSON text is Unicode, our names are not always. Lone surrogates U+DC80 … U+DCFF stand for the bytes 0x80 … 0xFF;
 * json-c (like most libraries) replaces or refuses them. So text on its way in is rewritten first: every byte of a
 * string that is not ASCII becomes an escape of its own, \u0080 … \u00FF, and ta__json_bytes undoes that. Text on its
 * way out is completed behind json-c, which passes bytes through. */
#ifndef TA_ANALYSIS_JSON_H
#define TA_ANALYSIS_JSON_H

#include <json-c/json.h>

#include "analysis/output.h"

/* NULL with the error set, which names line and column. */
struct json_object *ta__json_parse(const char *text, size_t length);

/* 0, or -1 with the error set when a text that parses has an integer beyond 2^64-1, which json-c would silently make the
 * largest one. */
int ta__json_check_integers(const char *text, size_t length);

/* The bytes of a parsed string, written to `out` (room for json_object_get_string_len) and NUL-terminated beyond. */
size_t ta__json_bytes(const struct json_object *string, char *out);

/* Objects that json-c writes as they are; NULL when out of memory. */
struct json_object *ta__json_new_object(void);
struct json_object *ta__json_new_array(size_t expected);
struct json_object *ta__json_new_bytes(const char *bytes, size_t length);
struct json_object *ta__json_new_wide(ta__wide value);
struct json_object *ta__json_new_signed(ta__signed_wide value);
/* Adds to an object; frees `value` and answers -1 on failure, also when value is NULL. */
int ta__json_add(struct json_object *object, const char *key, struct json_object *value);
int ta__json_add_null(struct json_object *object, const char *key);
/* Adds to an array likewise. */
int ta__json_append(struct json_object *array, struct json_object *value);

/* Writes the object in one line; -1 when out of memory. */
int ta__json_write(struct ta__output *output, struct json_object *object);

#endif
