/* memory_short.h: whether the process may soon be killed because memory has run out, on the machine or in its cgroup. */
#ifndef TA_SNAPSHOT_TRIGGERS_MEMORY_SHORT_H
#define TA_SNAPSHOT_TRIGGERS_MEMORY_SHORT_H

#include <stdint.h>

/* 0: less than a tenth is left of what the machine, or what the cgroup may use, has; else how many bytes can be used until
 * then. Files that the kernel could drop do not count. Some tens of microseconds. */
uint64_t ta__memory_left_until_short(void);
/* The same for the texts of /proc/meminfo, memory.stat and the limit's file; "" = there is none. For tests. */
uint64_t ta__memory_texts_left(const char *meminfo, const char *stat, const char *limit);

#endif
