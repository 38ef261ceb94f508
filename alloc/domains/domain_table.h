/* domain_table.h: the table itself, for the three files that change it: domains.c, domain_api.c, domain_destroy.c. */
#ifndef TA_ALLOC_DOMAINS_DOMAIN_TABLE_H
#define TA_ALLOC_DOMAINS_DOMAIN_TABLE_H

#include "alloc/domains/domains.h"
#include "base/lock.h"

enum {
    TA__DOMAIN_DEAD = TA__DOMAINS_MAX - 1, /* never a domain: where scopes of destroyed ones point */
    TA__DOMAIN_HEAPS_MAX = 512,            /* domains beyond share one heap; arenas never do */
    TA__DOMAIN_CHUNK = 1024,
    RETIRED_MIN = 4096, /* so many others are destroyed before an index is used again */
};

struct ta__domain_table {
    struct ta__lock lock; /* guards everything here but published domains */
    /* By index, so many to a chunk: all at once would be more than some processes may reserve. Release after the chunk. */
    struct ta__domain *chunks[TA__DOMAINS_MAX / TA__DOMAIN_CHUNK];
    uint32_t count;  /* release after the entry */
    uint32_t *cells; /* open addressing by number: index, 0 = empty */
    uint32_t cells_size, cells_used;
    uint32_t *retired; /* a ring of destroyed indexes, oldest first; NULL until there is one */
    uint32_t retired_begin, retired_end;
    uint32_t own_heaps;
    uint32_t shared_index; /* the domain whose heap is the shared one; 0 = none yet */
    uint32_t arenas_numbered;
};
extern struct ta__domain_table ta__domain_table;

/* Under the lock: the living domain of a number, or 0; and a new one, 0 when there is no room. */
uint32_t ta__domain_find_number(uint32_t number);
uint32_t ta__domain_make(uint32_t number, uint32_t flags);
/* Live bytes, summed over all threads, now. */
uint64_t ta__domain_live_bytes(const struct ta__domain *domain);

#endif
