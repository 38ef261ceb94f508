/* assert.h: what must hold, checked where it pays for itself. Each check names its number in docs/invariants.md.
 *
 *   TA_CHECKS 0   release builds: nothing is evaluated, nothing is in the text
 *             1   debug and sanitizer builds: comparisons that are cheap where they stand
 *             2   the debug-full build: walks over all tables too, whenever the world is stopped (alloc/world_check.c)
 *
 * A broken invariant ends the process with one line: going on would hand out somebody's memory twice. */
#ifndef TA_BASE_ASSERT_H
#define TA_BASE_ASSERT_H

#include "base/attributes.h"

#ifndef TA_CHECKS
#define TA_CHECKS 0
#endif

/* Says which invariant does not hold and where; aborts. */
TA_COLD void ta__assert_failed(const char *number, const char *what, const char *where) __attribute__((__noreturn__));

#define TA__ASSERT_TEXT_(line) #line
#define TA__ASSERT_TEXT(line)  TA__ASSERT_TEXT_(line)
#define TA__ASSERT_HERE        __FILE__ ":" TA__ASSERT_TEXT(__LINE__)

#if TA_CHECKS >= 1
#define TA_CHECK(number, condition)                                                                                    \
    (TA_LIKELY(condition) ? (void)0 : ta__assert_failed(number, #condition, TA__ASSERT_HERE))
#else
#define TA_CHECK(number, condition) ((void)sizeof(condition))
#endif

#if TA_CHECKS >= 2
#include <stddef.h>

/* What a walker keeps notes in: zeroed, and not counted as memory of ours. Ends the process when there is none. */
void *ta__check_notes(size_t bytes);
void ta__check_notes_free(void *notes, size_t bytes);
#endif

#endif
