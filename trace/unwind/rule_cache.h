/* rule_cache.h: the rule of an address, from a cache that is hit at every step of every walk.
 *
 * Two entries per set, chosen by the low bits of the address: neighbouring call sites never meet, and two distant
 * hot ones that do meet both stay. An entry stores rule and address ^ rule ^ tag, so that a reader needs no lock: a
 * half written entry matches nothing. The tag carries the generation of the loaded modules in bits that user addresses
 * do not have or that a set has in common; entries of an older generation therefore never match again, even if a slow
 * thread stores one late. Empty entries never match either, because bit 63 of the tag is set.
 *
 * (What remains: two threads writing different rules into one entry in the same instant could answer for a third
 * address that equals one of the two in its low 32 bits and differs above exactly as the saved-fp slots of the rules
 * do. Objects that far apart with such addresses, at that instant: accepted.)
 *
 * Only return addresses are cached. The table begins with 32 KiB, which are static, for a program that has few call sites
 * is mostly a small one, and is replaced by one four times as large as often as it has had a rule for each set, up to
 * 512 KiB. Who still looks into the old one finds nothing: its pages go back, its address space stays. Without memory it
 * stays as it is.
 */
#ifndef TA_TRACE_UNWIND_RULE_CACHE_H
#define TA_TRACE_UNWIND_RULE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomics.h"
#include "base/attributes.h"
#include "trace/unwind/cfi.h"
#include "trace/unwind/modules.h"
#include "trace/unwind/rule.h"

/* Of an address, which set it is in: in the first table, and by how many more in each further one. */
enum { TA__RULE_SET_BITS = 10, TA__RULE_GROWTH_BITS = 2, TA__RULE_TABLES = 3 };

struct ta__rule_entry {
    uint64_t key; /* address ^ rule ^ tag */
    uint64_t rule;
};

struct ta__rule_set {
    struct ta__rule_entry way[2];
};

/* Complete before ta__rule_table leads to it; then it never changes. */
struct ta__rule_table {
    uint64_t mask; /* of an address: the number of its set */
    struct ta__rule_set *sets;
};
extern const struct ta__rule_table *ta__rule_table __attribute__((visibility("hidden")));

/* Any thread reads, at every step; written when the generation changes. */
struct ta__rule_tag {
    _Alignas(TA_CACHE_LINE) uint64_t word; /* alone in its line: nobody's writes disturb the readers */
};
extern struct ta__rule_tag ta__rules_tag __attribute__((visibility("hidden")));

/* Where the loader begins nothing is said of frames: nobody called it. What it runs before main, constructors and what they
 * ask for, is whole there. */
int ta__rule_is_beginning(const struct ta__module *module, uintptr_t ip, enum ta__cfi_address kind);

/* Called when neither entry is this address's: asks the tables and remembers the answer. */
TA_COLD uint64_t ta__rule_missed(uintptr_t return_address);

/* What the table has for a return address; 0 when it has nothing. */
TA_INLINE int ta__rule_lookup(uintptr_t return_address, uint64_t *rule)
{
    const struct ta__rule_table *table = ta__load_acquire(&ta__rule_table);
    const struct ta__rule_set *set = &table->sets[return_address & table->mask];
    uint64_t tagged = return_address ^ ta__load_relaxed(&ta__rules_tag.word);
    *rule = ta__load_relaxed(&set->way[0].rule);
    if (TA_LIKELY((ta__load_relaxed(&set->way[0].key) ^ tagged) == *rule))
        return 1;
    *rule = ta__load_relaxed(&set->way[1].rule);
    return (ta__load_relaxed(&set->way[1].key) ^ tagged) == *rule;
}

/* The rule of a return address: a dozen instructions when the first entry is it. */
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

/* In the child of a fork: nobody is making a larger table. */
void ta__rules_after_fork(void);

/* Bytes of the cache that are resident. */
size_t ta__rules_resident(void);

#endif
