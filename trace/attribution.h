/* attribution.h: rules that say by the stack in which domain a block belongs — "what libssl asks for is domain 3".
 *
 * Every context has one answer, made from its parent's answer and its own frame when the context is made, or when other
 * rules come into force (contexts.c). So a warm allocation pays nothing: its leaf already is one of the right domain.
 *
 * Rules decide only where no call and no scope did. Those requests hand ta__capture the number of the present rules
 * (ta__attribution_key) in place of a domain; stacks seen under earlier rules are then looked up anew. */
#ifndef TA_TRACE_ATTRIBUTION_H
#define TA_TRACE_ATTRIBUTION_H

#include <stdint.h>

#include "base/attributes.h"
#include "base/rule_text.h"

/* An answer: the domain's index, and whether frames further in may change it. */
#define TA__ATTRIBUTION_INDEX  UINT32_C(0x000FFFFF)
#define TA__ATTRIBUTION_STICKY UINT32_C(0x80000000)

/* No answer yet. */
#define TA__ATTRIBUTION_UNKNOWN UINT32_MAX

/* A key is no index. */
#define TA__ATTRIBUTION_KEY UINT32_C(0x40000000)

TA_INLINE int ta__attribution_decides(uint32_t domain)
{
    return (domain & TA__ATTRIBUTION_KEY) != 0;
}

/* 0 when there are no rules: then it means domain 0. */
uint32_t ta__attribution_key(void);

/* The answer for a frame whose caller's is `outer`. Under the lock of contexts.c. */
uint32_t ta__attribution_of(uint32_t outer, uint64_t address, uint32_t module);

struct ta__attribution_rule {
    uint32_t domain; /* index */
    const struct ta__rule *rule;
};
/* Puts these rules in place of the present ones; all that they and `text` point to must stay. One caller at a time; the
 * tables of contexts exist. 0: no memory. */
int ta__attribution_set(const struct ta__attribution_rule *rules, uint32_t count, const struct ta__rule_text *text);

#endif
