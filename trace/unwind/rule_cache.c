/* rule_cache.c: see rule_cache.h. The cold side of the rule cache.
 *
 * On a miss only the row of the one address is computed: which other addresses of the function are call sites could
 * only be told by disassembling it. */
#include "trace/unwind/rule_cache.h"

#include <string.h>

#include "base/memory.h"
#include "base/safepoint.h"
#include "trace/unwind/cfi.h"
#include "trace/unwind/modules.h"

#define SET_MASK ((1u << TA__RULE_SET_BITS) - 1)

/* The tag of generation g: bit 63, and 20 bits of g in bits 0-13 and 57-62. */
#define TAG_LIVE       (1ull << 63)
#define TAG_LOW_BITS   TA__RULE_SET_BITS
#define TAG_HIGH_BITS  6
#define TAG_HIGH_SHIFT 57

/* This many rules lie in nearly as many pages; a program that has them will soon touch all pages. */
enum { POPULATE_AT = 64 };
static uint32_t missed_count;

_Alignas(4096) struct ta__rule_set ta__rule_sets[1u << TA__RULE_SET_BITS];
struct ta__rule_tag ta__rules_tag = {.word = TAG_LIVE};

static uint64_t compute(uintptr_t ip, enum ta__cfi_address kind, uint64_t tag, int *may_store)
{
    struct ta__module scratch;
    const struct ta__module *module = ta__module_describe(kind == TA__CFI_RETURN_ADDRESS ? ip - 1 : ip, &scratch);
    *may_store = module != NULL && module->id.v != 0;
    if (module == NULL)
        return TA__RULE_UNKNOWN;
    uint64_t rule =
        module->tables.header != NULL ? ta__cfi_rule_in_order(&module->tables, ip, kind, tag) : TA__RULE_UNKNOWN;
    if (module->is_loader)
        rule |= TA__RULE_IN_LOADER;
    return ta__rule_with_salt(rule, module->salt);
}

/* The address of an entry. Empty entries and those of older generations yield addresses that no set has. */
static int is_used(const struct ta__rule_entry *entry, uint64_t tag, uintptr_t set_number)
{
    uint64_t address = ta__load_relaxed(&entry->key) ^ ta__load_relaxed(&entry->rule) ^ tag;
    return (address & SET_MASK) == set_number && address >> TAG_HIGH_SHIFT == 0;
}

static void store(struct ta__rule_entry *entry, uint64_t key, uint64_t rule)
{
    ta__store_relaxed(&entry->rule, rule);
    ta__store_relaxed(&entry->key, key);
}

uint64_t ta__rule_missed(uintptr_t return_address)
{
    /* acquire: read before the modules are asked; pairs with the release in ta__rules_forget. A rule that was computed
     * across a change is stored under the old tag, where nobody finds it. */
    uint64_t tag = ta__load_acquire(&ta__rules_tag.word);
    int may_store;
    uint64_t rule = compute(return_address, TA__CFI_RETURN_ADDRESS, tag, &may_store);
    if (!may_store || return_address >> TAG_HIGH_SHIFT != 0)
        return rule;

    if (__atomic_fetch_add(&missed_count, 1, __ATOMIC_RELAXED) == POPULATE_AT)
        ta__memory_populate(ta__rule_sets, sizeof ta__rule_sets);
    struct ta__rule_set *set = &ta__rule_sets[return_address & SET_MASK];
    if (is_used(&set->way[0], tag, return_address & SET_MASK))
        store(&set->way[1], ta__load_relaxed(&set->way[0].key), ta__load_relaxed(&set->way[0].rule));
    store(&set->way[0], return_address ^ rule ^ tag, rule);
    return rule;
}

uint64_t ta__rule_interrupted(uintptr_t ip)
{
    int may_store;
    return compute(ip, TA__CFI_INTERRUPTED, ta__load_acquire(&ta__rules_tag.word), &may_store);
}

static uint64_t tag_after(uint64_t tag)
{
    uint64_t generation = (tag & SET_MASK) | ((tag & ~TAG_LIVE) >> TAG_HIGH_SHIFT) << TAG_LOW_BITS;
    generation = (generation + 1) & ((1u << (TAG_LOW_BITS + TAG_HIGH_BITS)) - 1);
    return TAG_LIVE | generation >> TAG_LOW_BITS << TAG_HIGH_SHIFT | (generation & SET_MASK);
}

void ta__rules_forget(void)
{
    uint64_t tag = ta__load_relaxed(&ta__rules_tag.word);
    uint64_t next;
    do {
        next = tag_after(tag);
        if (next == TAG_LIVE) /* the numbers begin anew: nothing of the first round may be left */
            memset(ta__rule_sets, 0, sizeof ta__rule_sets);
    } while (!ta__cas_acq_rel(&ta__rules_tag.word, &tag, next));
    ta__gate_change(0, 0); /* stacks that threads keep were found by the old rules */
}

size_t ta__rules_resident(void)
{
    uintptr_t page = 4096;
    uintptr_t begin = (uintptr_t)&ta__rule_sets & ~(page - 1);
    uintptr_t end = ((uintptr_t)&ta__rule_sets + sizeof ta__rule_sets + page - 1) & ~(page - 1);
    return ta__memory_resident((const void *)begin, end - begin);
}
