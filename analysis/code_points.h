/* code_points.h: file and function names as sequences of code points.
 *
 * Names are bytes. Where people compare or match them they count as Unicode text; a byte that is not UTF-8 counts as
 * the code point U+DC80 + byte - 0x80, as in Python. Nothing here allocates. */
#ifndef TA_ANALYSIS_CODE_POINTS_H
#define TA_ANALYSIS_CODE_POINTS_H

#include <stddef.h>
#include <stdint.h>

/* The code point at *at (which is before `end`), moving *at behind it. */
uint32_t ta__next_code_point(const char **at, const char *end);
/* Writes one code point as UTF-8 (U+DC80 … U+DCFF as the byte they stand for); returns the number of bytes, 1 to 4. */
size_t ta__put_code_point(char out[4], uint32_t code_point);

int ta__name_is_utf8(const char *name, size_t length);
/* Order by code point; a prefix is smaller. */
int ta__name_compare(const char *a, size_t a_length, const char *b, size_t b_length);

#endif
