/* pattern.h: the pattern language of filters — Unix shell style as Python has it, which is not C's fnmatch(3).
 *
 * A pattern is compiled once and matched against whole names, code point by code point. Matching takes time in
 * proportion to pattern length times name length at worst, whatever the number of stars. */
#ifndef TA_ANALYSIS_FILTER_PATTERN_H
#define TA_ANALYSIS_FILTER_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct ta__pattern {
    struct ta__pattern_element *elements;
    size_t element_count, element_capacity;
    struct ta__pattern_range *ranges; /* members of all sets */
    size_t range_count, range_capacity;
};

/* As Python's Filter: a final ".pyc" becomes ".py". The length that counts: the "c" is the last byte. */
size_t ta__pattern_normalized_length(const char *name, size_t length);

/* 0, or -1 when out of memory. Pattern and names are normalised by the caller where that is wanted. */
int ta__pattern_compile(struct ta__pattern *pattern, const char *text, size_t length);
int ta__pattern_matches(const struct ta__pattern *pattern, const char *name, size_t length);
void ta__pattern_free(struct ta__pattern *pattern);

#endif
