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

/* The tag of generation g: bit 63, and 16 bits of g in bits 0-9 and 57-62. */
#define TAG_LIVE       (1ull << 63)
#define TAG_LOW_BITS   TA__RULE_SET_BITS
#define TAG_LOW_MASK   ((1u << TAG_LOW_BITS) - 1)
#define TAG_HIGH_BITS  6
#define TAG_HIGH_SHIFT 57

static _Alignas(4096) struct ta__rule_set first_sets[1u << TA__RULE_SET_BITS];
static struct ta__rule_table tables[TA__RULE_TABLES] = {{TAG_LOW_MASK, first_sets}};
const struct ta__rule_table *ta__rule_table = tables;
struct ta__rule_tag ta__rules_tag = {.word = TAG_LIVE};

static uint64_t stored_count; /* rules that the present table was given */
static uint32_t is_growing;   /* by the thread that made it 1 */

int ta__rule_is_beginning(const struct ta__module *module, uintptr_t ip, enum ta__cfi_address kind)
{
    struct ta__cfi_row row;
    return module->is_loader && module->tables.header != NULL &&
           !ta__cfi_row_at(&module->tables, kind == TA__CFI_RETURN_ADDRESS ? ip - 1 : ip, &row);
}

static uint64_t compute(uintptr_t ip, enum ta__cfi_address kind, uint64_t tag, int *may_store)
{
    struct ta__module scratch;
    const struct ta__module *module = ta__module_describe(kind == TA__CFI_RETURN_ADDRESS ? ip - 1 : ip, &scratch);
    *may_store = module != NULL && module->id.v != 0;
    if (module == NULL)
        return TA__RULE_UNKNOWN;
    uint64_t rule =
        module->tables.header != NULL ? ta__cfi_rule_in_order(&module->tables, ip, kind, tag) : TA__RULE_UNKNOWN;
    if (ta__rule_kind(rule) == TA__RULE_UNKNOWN && ta__rule_is_beginning(module, ip, kind))
        rule = TA__RULE_END;
    if (module->is_loader)
        rule |= TA__RULE_IN_LOADER;
    return ta__rule_with_salt(rule, module->salt);
}

/* The address of an entry. Empty entries and those of older generations yield addresses that no set has. */
static int is_used(const struct ta__rule_table *table, const struct ta__rule_entry *entry, uint64_t tag,
                   uint64_t set_number)
{
    uint64_t address = ta__load_relaxed(&entry->key) ^ ta__load_relaxed(&entry->rule) ^ tag;
    return (address & table->mask) == set_number && address >> TAG_HIGH_SHIFT == 0;
}

static void store(struct ta__rule_entry *entry, uint64_t key, uint64_t rule)
{
    ta__store_relaxed(&entry->rule, rule);
    ta__store_relaxed(&entry->key, key);
}

static void put(const struct ta__rule_table *table, uint64_t address, uint64_t rule, uint64_t tag)
{
    struct ta__rule_set *set = &table->sets[address & table->mask];
    if (is_used(table, &set->way[0], tag, address & table->mask))
        store(&set->way[1], ta__load_relaxed(&set->way[0].key), ta__load_relaxed(&set->way[0].rule));
    store(&set->way[0], address ^ rule ^ tag, rule);
}

static size_t bytes_of(const struct ta__rule_table *table)
{
    return (table->mask + 1) * sizeof *table->sets;
}

static void copy_rules(const struct ta__rule_table *to, const struct ta__rule_table *from, uint64_t tag)
{
    for (uint64_t i = 0; i <= from->mask; i++)
        for (int way = 1; way >= 0; way--) {
            const struct ta__rule_entry *entry = &from->sets[i].way[way];
            uint64_t rule = ta__load_relaxed(&entry->rule);
            uint64_t address = ta__load_relaxed(&entry->key) ^ rule ^ tag;
            if (is_used(from, entry, tag, i))
                put(to, address, rule, tag);
        }
}

/* What others store into the old table meanwhile is lost. What they find there after it went back is nothing, and what
 * they store then is never found. */
static void grow(uint64_t tag)
{
    const struct ta__rule_table *old = ta__load_relaxed(&ta__rule_table);
    struct ta__rule_table *next = &tables[old - tables + 1];
    if (next == tables + TA__RULE_TABLES || ta__load_relaxed(&stored_count) <= old->mask)
        return;
    ta__store_relaxed(&stored_count, UINT64_C(0)); /* without memory: not at once again */
    next->mask = (old->mask + 1) << TA__RULE_GROWTH_BITS;
    next->mask--;
    next->sets = ta__memory_map(bytes_of(next));
    if (next->sets == NULL)
        return;
    /* So many rules lie in nearly all of its pages. */
    ta__memory_populate(next->sets, bytes_of(next));
    copy_rules(next, old, tag);
    ta__store_release(&ta__rule_table, (const struct ta__rule_table *)next);
    ta__memory_reset(old->sets, bytes_of(old));
}

static void count_stored(const struct ta__rule_table *table, uint64_t tag)
{
    if (TA_LIKELY(__atomic_add_fetch(&stored_count, 1, __ATOMIC_RELAXED) <= table->mask) ||
        table == &tables[TA__RULE_TABLES - 1])
        return;
    uint32_t nobody = 0;
    if (!ta__cas_acq_rel(&is_growing, &nobody, 1u))
        return;
    grow(tag);
    ta__store_release(&is_growing, 0u);
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

    const struct ta__rule_table *table = ta__load_acquire(&ta__rule_table);
    put(table, return_address, rule, tag);
    count_stored(table, tag);
    return rule;
}

uint64_t ta__rule_interrupted(uintptr_t ip)
{
    int may_store;
    return compute(ip, TA__CFI_INTERRUPTED, ta__load_acquire(&ta__rules_tag.word), &may_store);
}

static uint64_t tag_after(uint64_t tag)
{
    uint64_t generation = (tag & TAG_LOW_MASK) | ((tag & ~TAG_LIVE) >> TAG_HIGH_SHIFT) << TAG_LOW_BITS;
    generation = (generation + 1) & ((1u << (TAG_LOW_BITS + TAG_HIGH_BITS)) - 1);
    return TAG_LIVE | generation >> TAG_LOW_BITS << TAG_HIGH_SHIFT | (generation & TAG_LOW_MASK);
}

void ta__rules_forget(void)
{
    uint64_t tag = ta__load_relaxed(&ta__rules_tag.word);
    uint64_t next;
    do {
        next = tag_after(tag);
        const struct ta__rule_table *table = ta__load_acquire(&ta__rule_table);
        if (next == TAG_LIVE) /* the numbers begin anew: nothing of the first round may be left */
            memset(table->sets, 0, bytes_of(table));
    } while (!ta__cas_acq_rel(&ta__rules_tag.word, &tag, next));
    ta__store_relaxed(&stored_count, UINT64_C(0));
    ta__gate_change(0, 0); /* stacks that threads keep were found by the old rules */
}

void ta__rules_after_fork(void)
{
    is_growing = 0;
}

size_t ta__rules_resident(void)
{
    size_t bytes = 0;
    for (const struct ta__rule_table *table = ta__load_acquire(&ta__rule_table); table >= tables; table--)
        bytes += ta__memory_resident(table->sets, bytes_of(table));
    return bytes;
}
