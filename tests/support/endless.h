/* endless.h: a program that writes a series without end, to be killed: of made-up tables, or of its own allocations. */
#ifndef TA_TESTS_ENDLESS_H
#define TA_TESTS_ENDLESS_H

#include <stddef.h>

#include "tracealloc/snapshot.h"

/* Writes one byte to standard output after each entry, whose reason is "tick". The file stays about `limit` bytes long; 0 =
 * grows. Returns only on failure, with 1. */
int endless_write(const char *path, unsigned long limit);
/* Is it what the entry of this number (from 1) holds? */
int endless_is_entry(struct ta_snapshot *snapshot, size_t number);

#endif
