/* domains.h: numbered address spaces. A domain's public number is any 32-bit value; inside it is a small index.
 *
 * Index 0 is domain 0, which exists from the start. Entries are never removed: a destroyed domain's number gets a new
 * index when it is used again, so that old leaves and headers keep naming the old life. */
#ifndef TA_ALLOC_DOMAINS_H
#define TA_ALLOC_DOMAINS_H

#include <stddef.h>
#include <stdint.h>

#include "trace/thread.h"

enum { TA__DOMAINS_MAX = 1 << 17, TA__DOMAIN_NONE = -1 };
#define TA__DOMAIN_AMBIENT UINT32_MAX

struct ta__domain {
    uint32_t number;
    uint32_t flags; /* TA__DOMAIN_* of trace/source.h */
    void *heap;     /* release after the heap is ready; NULL = not yet used */
    uint32_t untraced_leaf;
    uint32_t heap_index; /* the domain whose heap it shares; itself normally */
};

int ta__domains_init(void);
/* The index of a number, made if it is new; TA__DOMAIN_NONE when there is no room. */
int ta__domain_index(uint32_t number);
/* The same, but never made. */
int ta__domain_known(uint32_t number);
uint32_t ta__domain_count(void);
struct ta__domain *ta__domain_at(uint32_t index);
/* The thread's part of a domain's heap, made if needed; NULL when there is no memory. Inside an operation. */
void *ta__domain_part(struct ta__thread *self, uint32_t index);
void ta__domains_after_fork(void);

#endif
