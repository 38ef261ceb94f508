/* mmap_names.h: memory that the program maps by itself, by who asked for it: the pools beside malloc (Python's, a garbage
 * collector's, another malloc's), buffers, stacks of coroutines. */
#ifndef TA_SNAPSHOT_TRIGGERS_MMAP_NAMES_H
#define TA_SNAPSHOT_TRIGGERS_MMAP_NAMES_H

#include <stdint.h>

enum { TA__SITE_FRAMES = 3, TA__SITES_MOST = 256 };

/* Return addresses, most recent first; 0 behind the last. Site 0 stands for those beyond TA__SITES_MOST. */
struct ta__mmap_site {
    uint64_t frames[TA__SITE_FRAMES];
};

/* NULL when there is no such site. */
const struct ta__mmap_site *ta__mmap_site(uint32_t site);

#endif
