/* rule_cache.h: the rule of an address, from a cache that is hit at every step of every walk.
 *
 * Two entries per set, chosen by the low 14 bits of the address: neighbouring call sites never meet, and two distant
 * hot ones that do meet both stay. An entry stores rule and address ^ rule ^ tag, so that a reader needs no lock: a
 * half written entry matches nothing. The tag carries the generation of the loaded modules in bits that user addresses
 * do not have or that a set has in common; entries of an older generation therefore never match again, even if a slow
 * thread stores one late. Empty entries never match either, because bit 63 of the tag is set.
 *
 * (What remains: two threads writing different rules into one entry in the same instant could answer for a third
 * address that equals one of the two in its low 32 bits and differs above exactly as the saved-fp slots of the rules
 * do. Objects that far apart with such addresses, at that instant: accepted.)
 *
 * Only return addresses are cached. The table is static and zero: 512 KiB, touched page by page by small programs and
 * made resident at once for others (a page that is read before it is written costs two faults); nothing to fail.
 */
#ifndef TA_TRACE_UNWIND_RULE_CACHE_H
#define TA_TRACE_UNWIND_RULE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomics.h"
#include "base/attributes.h"
#include "trace/unwind/rule.h"

#define TA__RULE_SET_BITS 14

struct ta__rule_entry {
    uint64_t key; /* address ^ rule ^ tag */
    uint64_t rule;
};

struct ta__rule_set {
    struct ta__rule_entry way[2];
};

extern struct ta__rule_set ta__rule_sets[1u << TA__RULE_SET_BITS] __attribute__((visibility("hidden")));

/* Any thread reads, at every step; written when the generation changes. */
struct ta__rule_tag {
    _Alignas(TA_CACHE_LINE) uint64_t word; /* alone in its line: nobody's writes disturb the readers */
};
extern struct ta__rule_tag ta__rules_tag __attribute__((visibility("hidden")));

/* Called when neither entry is this address's: asks the tables and remembers the answer. */
TA_COLD uint64_t ta__rule_missed(uintptr_t return_address);

/* What the table has for a return address; 0 when it has nothing. */
TA_INLINE int ta__rule_lookup(uintptr_t return_address, uint64_t *rule)
{
    const struct ta__rule_set *set = &ta__rule_sets[return_address & ((1u << TA__RULE_SET_BITS) - 1)];
    uint64_t tagged = return_address ^ ta__load_relaxed(&ta__rules_tag.word);
    *rule = ta__load_relaxed(&set->way[0].rule);
    if (TA_LIKELY((ta__load_relaxed(&set->way[0].key) ^ tagged) == *rule))
        return 1;
    *rule = ta__load_relaxed(&set->way[1].rule);
    return (ta__load_relaxed(&set->way[1].key) ^ tagged) == *rule;
}

/* The rule of a return address: nine instructions when the first entry is it, beside the table's own address, which a
 * loop keeps in a register. */
TA_INLINE uint64_t ta__rule(uintptr_t return_address)
{
    uint64_t rule;
    return TA_LIKELY(ta__rule_lookup(return_address, &rule)) ? rule : ta__rule_missed(return_address);
}

/* The rule at an address where a signal arrived. Not cached: the same address may also be returned to, and then has
 * another rule. */
TA_COLD uint64_t ta__rule_interrupted(uintptr_t ip);

/* Makes every cached rule void: the tag moves to the next generation. Called by modules.c. */
void ta__rules_forget(void);

/* Bytes of the cache that are resident. */
size_t ta__rules_resident(void);

#endif
