/* leaves.c: (stack, domain) pairs become the numbers that headers carry.
 *
 * Found by the hash of the whole stack, without a lock (contexts.h). Hash equality is not believed at once: the second
 * walk that meets an entry finds out its context, which is unique to the path, and compares; when it agrees the entry
 * becomes trusted. When it does not (two stacks with one 64-bit hash), the newcomer gets an entry of its own behind the
 * first, and neither is ever trusted: such stacks are compared each time.
 *
 * Each epoch takes its numbers beyond those of earlier ones (ta__leaf_first), so that a header's number tells whether
 * its trace still counts. Rows of earlier epochs are kept where they say a domain other than 0. */
#include "trace/contexts.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "trace/attribution.h"
#include "trace/counters.h"
#include "trace/reclaim.h"
#include "trace/interning.h"

enum { FIRST_INDEX_BITS = 10, SPENT_SHARE = 4, ROWS_PER_PAGE = 4096 / sizeof(struct ta__source_leaf) };

/* In the index, in place of a hash: nothing any more; searches go on behind it. 0 is nothing, hashes are odd. */
#define HASH_GONE UINT64_C(2)

struct ta__leaf_index *ta__leaf_index;
uint32_t ta__leaf_first = TA__LEAF_FIRST;
uint32_t ta__leaf_meaning;
static struct ta__tables *const tables = &ta__tables;
static uint32_t old_generations; /* a bit for each place in tables->indexes that ta__leaf_index_note_old found old */

/* ---- reading ----------------------------------------------------------------------------------------------------- */

uint32_t ta__leaf_count(void)
{
    return ta__load_acquire(&tables->leaf_count);
}

uint32_t ta__leaves_used(void)
{
    return ta__load_relaxed(&tables->leaves_used);
}

uint32_t ta__leaf_capacity(void)
{
    return tables->leaf_max;
}

const struct ta__source_leaf *ta__leaves(void)
{
    return tables->leaves;
}

size_t ta__leaf_frames(uint32_t leaf, uint64_t *addresses, size_t max)
{
    size_t count = 0;
    if (leaf >= tables->leaf_max)
        return 0;
    for (uint32_t id = tables->leaves[leaf].context; id != 0; id = tables->contexts[id].parent) {
        if (count < max)
            addresses[count] = tables->contexts[id].address;
        count++;
    }
    return count;
}

static size_t index_bytes(const struct ta__leaf_index *index)
{
    return (index->mask + 1) * sizeof *index->entries;
}

size_t ta__leaf_rows_memory(void)
{
    size_t bytes = ta__memory_resident(tables->leaves, tables->leaf_count * sizeof *tables->leaves) +
                   (tables->leaf_count - ta__leaf_first + 1) *
                       (sizeof *tables->leaf_hashes + sizeof *tables->leaf_states + 2 * sizeof *tables->next_leaf);
    return bytes + index_bytes(ta__leaf_index);
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

static struct ta__leaf_entry *entry_from(const struct ta__leaf_index *index, uint64_t hash)
{
    return &index->entries[(hash >> 7) & index->mask];
}

static struct ta__leaf_entry *entry_behind(const struct ta__leaf_index *index, const struct ta__leaf_entry *entry)
{
    return &index->entries[(uint64_t)(entry + 1 - index->entries) & index->mask];
}

/* A new generation of this size, with the entries of `old`, if any, that are not gone. 0: no memory. */
static int index_renew(uint64_t size, const struct ta__leaf_index *old)
{
    struct ta__leaf_index *fresh = tables->indexes;
    while (fresh < tables->indexes + TA__INDEX_GENERATIONS && fresh->entries != NULL)
        fresh++;
    if (fresh == tables->indexes + TA__INDEX_GENERATIONS)
        return 0;
    struct ta__leaf_entry *entries = ta__memory_map(size * sizeof *entries);
    if (entries == NULL)
        return 0;
    *fresh = (struct ta__leaf_index){size - 1, entries};
    tables->index_used = 0;
    for (uint64_t i = 0; old != NULL && i <= old->mask; i++) {
        if ((old->entries[i].hash & 1) == 0)
            continue;
        struct ta__leaf_entry *to = entry_from(fresh, old->entries[i].hash);
        while (to->hash != 0)
            to = entry_behind(fresh, to);
        *to = old->entries[i];
        tables->index_used++;
    }
    ta__store_release(&ta__leaf_index, fresh);
    return 1;
}

/* Three of eight entries are empty, so that searches are short: one twice as large when leaves take the room, one of
 * the same size when entries do that are gone. The old one's memory goes back at once: who still searches it finds
 * nothing, and comes here for the lock. */
static void index_make_room(void)
{
    const struct ta__leaf_index *old = ta__leaf_index;
    uint64_t size = old->mask + 1;
    if (tables->index_used * 8 < size * 5)
        return;
    if (index_renew((uint64_t)tables->leaves_used * 16 < size * 5 ? size : size * 2, old))
        ta__memory_reset(old->entries, index_bytes(old));
}

static void drop_generations(uint32_t places)
{
    for (int i = 0; i < TA__INDEX_GENERATIONS; i++) {
        struct ta__leaf_index *index = &tables->indexes[i];
        if ((places >> i & 1) == 0 || index == ta__leaf_index || index->entries == NULL)
            continue;
        ta__memory_unmap(index->entries, index_bytes(index));
        index->entries = NULL;
    }
}

void ta__leaf_index_note_old(void)
{
    old_generations = 0;
    for (int i = 0; i < TA__INDEX_GENERATIONS; i++)
        if (tables->indexes[i].entries != NULL && &tables->indexes[i] != ta__leaf_index)
            old_generations |= UINT32_C(1) << i;
}

void ta__leaf_index_drop_old(void)
{
    drop_generations(old_generations);
    old_generations = 0;
}

static struct ta__leaf_entry *entry_of(uint32_t leaf)
{
    uint64_t hash = tables->leaf_hashes[leaf];
    struct ta__leaf_entry *entry = entry_from(ta__leaf_index, hash);
    for (; hash != 0 && entry->hash != 0; entry = entry_behind(ta__leaf_index, entry))
        if (entry->hash == hash && entry->leaf == leaf)
            return entry;
    return NULL;
}

#if TA_CHECKS >= 2
int ta__leaf_is_found(uint32_t leaf)
{
    return entry_of(leaf) != NULL;
}
#endif

/* Where an empty one follows, searches need not go on from here either, nor from those before that are gone. */
static void entry_remove(struct ta__leaf_entry *entry)
{
    const struct ta__leaf_index *index = ta__leaf_index;
    ta__store_release(&entry->hash, HASH_GONE);
    while (entry->hash == HASH_GONE && entry_behind(index, entry)->hash == 0) {
        ta__store_release(&entry->hash, UINT64_C(0));
        tables->index_used--;
        entry = &index->entries[(uint64_t)(entry - index->entries - 1) & index->mask];
    }
}

/* `leaf` and `trust` first: see ta__leaf_find. */
static void entry_write(struct ta__leaf_entry *entry, uint64_t hash, uint32_t leaf, uint32_t trust)
{
    tables->index_used += entry->hash == 0;
    ta__store_release(&entry->leaf, leaf);
    ta__store_release(&entry->trust, trust);
    ta__store_release(&entry->hash, hash);
    tables->leaf_hashes[leaf] = hash;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int map_rows(uint32_t max)
{
    tables->leaves = ta__memory_map(max * sizeof *tables->leaves);
    tables->leaf_hashes = ta__memory_map(max * sizeof *tables->leaf_hashes);
    tables->leaf_states = ta__memory_map(max * sizeof *tables->leaf_states);
    tables->next_leaf = ta__memory_map(max * sizeof *tables->next_leaf);
    tables->previous_leaf = ta__memory_map(max * sizeof *tables->previous_leaf);
    tables->leaf_max = max;
    return tables->leaves != NULL && tables->leaf_hashes != NULL && tables->leaf_states != NULL &&
           tables->next_leaf != NULL && tables->previous_leaf != NULL;
}

int ta__leaves_make(uint32_t max_leaves)
{
    if (map_rows(max_leaves) && index_renew(UINT64_C(1) << FIRST_INDEX_BITS, NULL)) {
        tables->leaves[0].flags = TA__LEAF_UNTRACED; /* domain 0 */
        tables->oldest_leaf = tables->rows_kept_end = 1;
        ta__store_release(&tables->leaf_count, 1u);
        return 1;
    }
    ta__memory_unmap(tables->leaves, max_leaves * sizeof *tables->leaves);
    ta__memory_unmap(tables->leaf_hashes, max_leaves * sizeof *tables->leaf_hashes);
    ta__memory_unmap(tables->leaf_states, max_leaves * sizeof *tables->leaf_states);
    ta__memory_unmap(tables->next_leaf, max_leaves * sizeof *tables->next_leaf);
    ta__memory_unmap(tables->previous_leaf, max_leaves * sizeof *tables->previous_leaf);
    return 0;
}

/* The counters first: who makes an array of them meanwhile makes it too large, not too small. */
void ta__leaves_fit(uint32_t max_leaves)
{
    size_t had = tables->leaf_max;
    ta__counters_fit((uint32_t)had, max_leaves);
    ta__memory_shrink(tables->leaves, had * sizeof *tables->leaves, max_leaves * sizeof *tables->leaves);
    ta__memory_shrink(tables->leaf_hashes, had * sizeof *tables->leaf_hashes, max_leaves * sizeof *tables->leaf_hashes);
    ta__memory_shrink(tables->leaf_states, had * sizeof *tables->leaf_states, max_leaves * sizeof *tables->leaf_states);
    ta__memory_shrink(tables->next_leaf, had * sizeof *tables->next_leaf, max_leaves * sizeof *tables->next_leaf);
    ta__memory_shrink(tables->previous_leaf, had * sizeof *tables->previous_leaf,
                      max_leaves * sizeof *tables->previous_leaf);
    tables->leaf_max = max_leaves;
}

/* One of a domain's cells; NULL when there is no memory. */
static uint32_t *domain_cell(uint32_t domain, int which)
{
    if (domain >= tables->domain_leaves_capacity) {
        uint32_t capacity = tables->domain_leaves_capacity == 0 ? 256 : tables->domain_leaves_capacity;
        while (capacity <= domain)
            capacity *= 2;
        uint32_t *larger = ta__memory_map(capacity * TA__CELLS * sizeof *larger);
        if (larger == NULL)
            return NULL;
        if (tables->domain_leaves != NULL) {
            memcpy(larger, tables->domain_leaves, tables->domain_leaves_capacity * TA__CELLS * sizeof *larger);
            ta__memory_unmap(tables->domain_leaves, tables->domain_leaves_capacity * TA__CELLS * sizeof *larger);
        }
        tables->domain_leaves = larger;
        tables->domain_leaves_capacity = capacity;
    }
    return &tables->domain_leaves[domain * TA__CELLS + (uint32_t)which];
}

/* A number for a row, which is filled in; 0: there is none left. The last part of the table is for the leaves that
 * every domain has without a stack: stacks find an end before that. */
static uint32_t new_leaf(const struct ta__source_leaf *row)
{
    uint32_t id = tables->free_leaf;
    if (id != 0 && ta__tables_begin_reuse()) {
        tables->free_leaf = tables->next_leaf[id];
        tables->leaves[id] = *row;
        ta__store_relaxed(&tables->leaf_states[id], (uint8_t)TA__LEAF_IN_USE);
        ta__tables_end_reuse();
        return id;
    }
    id = tables->leaf_count;
    if (id >= (row->context != 0 ? tables->leaf_max - tables->leaf_max / 16 : tables->leaf_max))
        return 0;
    tables->leaves[id] = *row;
    ta__store_release(&tables->leaf_count, id + 1);
    return id;
}

static void list_insert(uint32_t *newest, uint32_t leaf)
{
    tables->next_leaf[leaf] = *newest;
    tables->previous_leaf[leaf] = 0;
    if (*newest != 0)
        tables->previous_leaf[*newest] = leaf;
    *newest = leaf;
}

static void list_remove(uint32_t leaf)
{
    uint32_t next = tables->next_leaf[leaf];
    uint32_t previous = tables->previous_leaf[leaf];
    if (next != 0)
        tables->previous_leaf[next] = previous;
    if (previous != 0)
        tables->next_leaf[previous] = next;
    else
        *domain_cell(tables->leaves[leaf].domain, TA__CELL_NEWEST) = next;
}

static uint32_t leaf_make(uint32_t context, uint32_t total, uint32_t domain, uint32_t flags)
{
    uint32_t *newest = domain_cell(domain, TA__CELL_NEWEST);
    if (newest == NULL)
        return 0;
    uint32_t id = new_leaf(&(struct ta__source_leaf){
        .context = context, .domain = domain, .total_nframe = (uint16_t)total, .flags = (uint16_t)flags});
    if (id == 0)
        return 0;
    tables->leaf_hashes[id] = 0;
    list_insert(newest, id);
    if (context != 0)
        ta__context_hold(context);
    tables->has_domain_rows |= domain != 0;
    ta__store_relaxed(&tables->leaves_used, tables->leaves_used + 1);
    return id;
}

/* ---- the leaves that a domain has without a stack ---------------------------------------------------------------- */

static uint32_t domain_leaf(uint32_t domain, int which)
{
    static const uint32_t flags[] = {
        [TA__CELL_OVERFLOW] = TA__LEAF_OVERFLOW, [TA__CELL_FORGOTTEN] = TA__LEAF_FORGOTTEN};
    uint32_t *leaf = domain_cell(domain, which);
    if (leaf != NULL && *leaf == 0)
        *leaf = leaf_make(0, 0, domain, flags[which]);
    return leaf != NULL ? *leaf : 0;
}

uint32_t ta__leaf_heir(uint32_t domain)
{
    return domain_leaf(domain, TA__CELL_FORGOTTEN);
}

uint32_t ta__leaf_next(uint32_t domain, uint32_t leaf)
{
    if (leaf != 0)
        return tables->next_leaf[leaf];
    ta__lock_acquire(&tables->lock);
    leaf = domain < tables->domain_leaves_capacity ? tables->domain_leaves[domain * TA__CELLS + TA__CELL_NEWEST] : 0;
    ta__lock_release(&tables->lock);
    return leaf;
}

/* ---- reclaiming (reclaim.c) -------------------------------------------------------------------------------------- */

int ta__leaf_is_of_stack(uint32_t leaf)
{
    return (tables->leaves[leaf].flags & (TA__LEAF_OVERFLOW | TA__LEAF_FORGOTTEN)) == 0;
}

void ta__leaf_condemn(uint32_t leaf)
{
    struct ta__leaf_entry *entry = entry_of(leaf);
    if (entry != NULL)
        ta__store_release(&entry->trust, entry->trust | TA__TRUST_CONDEMNED);
    ta__store_relaxed(&tables->leaf_states[leaf], (uint8_t)TA__LEAF_CONDEMNED);
}

static void restore(uint32_t leaf, struct ta__leaf_entry *entry)
{
    ta__store_relaxed(&tables->leaf_states[leaf], (uint8_t)TA__LEAF_IN_USE);
    if (entry != NULL)
        ta__store_release(&entry->trust, entry->trust & ~(uint32_t)TA__TRUST_CONDEMNED);
}

void ta__leaf_restore(uint32_t leaf)
{
    restore(leaf, entry_of(leaf));
}

void ta__leaf_drop_old(uint32_t leaf)
{
    uint32_t context = tables->leaves[leaf].context;
    tables->leaves[leaf].context = 0;
    ta__store_relaxed(&tables->leaf_states[leaf], (uint8_t)TA__LEAF_FREE);
    ta__context_release(context);
}

void ta__leaf_free(uint32_t leaf)
{
    TA_CHECK("R-3", tables->leaf_states[leaf] == TA__LEAF_SETTLED && ta__counters_are_settled(leaf));
    struct ta__leaf_entry *entry = entry_of(leaf);
    uint32_t context = tables->leaves[leaf].context;
    if (entry != NULL)
        entry_remove(entry);
    list_remove(leaf);
    ta__store_relaxed(&tables->leaf_states[leaf], (uint8_t)TA__LEAF_FREE);
    tables->leaves[leaf].flags = TA__LEAF_FREED;
    tables->leaf_hashes[leaf] = 0;
    tables->next_leaf[leaf] = tables->free_leaf;
    tables->free_leaf = leaf;
    ta__store_relaxed(&tables->leaves_used, tables->leaves_used - 1);
    ta__context_release(context);
}

/* ---- interning --------------------------------------------------------------------------------------------------- */

/* Contexts are unique: equal ones are equal paths. */
static int leaf_is(uint32_t leaf, uint32_t context, uint32_t total, uint32_t domain, uint32_t flags)
{
    const struct ta__source_leaf *entry = &tables->leaves[leaf];
    return entry->context == context && entry->domain == domain && entry->total_nframe == total &&
           entry->flags == flags;
}

/* The leaf under this hash, or a new one; 0: the tables are full. */
static uint32_t leaf_under(uint64_t hash, uint32_t context, uint32_t total, uint32_t domain, uint32_t flags)
{
    struct ta__leaf_entry *vacant = NULL;
    uint32_t trust = TA__TRUST_NOT_YET;
    struct ta__leaf_entry *entry = entry_from(ta__leaf_index, hash);
    for (; entry->hash != 0; entry = entry_behind(ta__leaf_index, entry)) {
        if (entry->hash == HASH_GONE && vacant == NULL)
            vacant = entry;
        if (entry->hash != hash)
            continue;
        if (leaf_is(entry->leaf, context, total, domain, flags)) {
            if ((entry->trust & ~(uint32_t)TA__TRUST_CONDEMNED) == TA__TRUST_NOT_YET)
                ta__store_release(&entry->trust, (uint32_t)TA__TRUSTED);
            restore(entry->leaf, entry);
            return entry->leaf;
        }
        /* Two stacks, one hash: this entry must not answer for both. */
        trust = TA__TRUST_NEVER;
        ta__store_release(&entry->trust, trust | (entry->trust & TA__TRUST_CONDEMNED));
    }
    /* An index that could not grow is used nearly to its end: there must be empty entries, at which searches stop. */
    if (context == 0 || tables->is_full || tables->index_used + (tables->index_used >> 3) >= ta__leaf_index->mask)
        return 0;
    uint32_t leaf = leaf_make(context, total, domain, flags);
    if (leaf == 0)
        return 0;
    entry_write(vacant != NULL ? vacant : entry, hash, leaf, trust);
    index_make_room();
    return leaf;
}

/* The path's context, as the leaf that was found once by this hash has it; 0: none was, or it is another path's. */
static uint32_t context_met_once(uint64_t hash, uint32_t base, struct ta__path_frame *path, uint32_t length)
{
    const struct ta__leaf_entry *entry = entry_from(ta__leaf_index, hash);
    while (entry->hash != hash && entry->hash != 0)
        entry = entry_behind(ta__leaf_index, entry);
    if (entry->hash == 0 || (entry->trust & TA__TRUST_NEVER) != 0)
        return 0;
    uint32_t context = tables->leaves[entry->leaf].context;
    return ta__context_is_path(context, base, path, length) ? context : 0;
}

uint32_t ta__leaf_intern(uint64_t hash, uint32_t base, struct ta__path_frame *path, uint32_t length, uint32_t total,
                         uint32_t domain, uint32_t flags)
{
    if (tables->contexts == NULL)
        return 0;
    ta__lock_acquire(&tables->lock);
    uint32_t context = context_met_once(hash, base, path, length);
    if (context == 0)
        context = ta__context_of_path(base, path, length);
    if (TA_UNLIKELY(ta__attribution_decides(domain)))
        domain = context != 0 ? tables->attributions[context] & TA__ATTRIBUTION_INDEX : 0;
    uint32_t leaf = leaf_under(hash, context, total, domain, flags);
    if (TA_UNLIKELY(leaf == 0)) {
        tables->is_full = 1;
        ta__context_abandon(context, path, length);
        leaf = domain_leaf(domain, TA__CELL_OVERFLOW);
    }
    ta__reclaim_step();
    ta__lock_release(&tables->lock);
    return leaf;
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

/* Rows of the epoch that ends: no header of domain 0 is ever asked for its row again, of other domains for the domain
 * alone. */
static void drop_rows(uint32_t first, uint32_t end)
{
    int has_domain_rows = tables->has_domain_rows;
    tables->has_domain_rows = 0;
    ta__memory_reset(tables->leaf_hashes, tables->leaf_max * sizeof *tables->leaf_hashes);
    ta__memory_reset(tables->leaf_states, tables->leaf_max * sizeof *tables->leaf_states);
    ta__memory_reset(tables->next_leaf, tables->leaf_max * sizeof *tables->next_leaf);
    ta__memory_reset(tables->previous_leaf, tables->leaf_max * sizeof *tables->previous_leaf);
    if (!has_domain_rows) {
        uint32_t from = first & ~(uint32_t)(ROWS_PER_PAGE - 1); /* so that whole pages go, whoever used them last */
        from = from > tables->rows_kept_end ? from : tables->rows_kept_end;
        if (from < end)
            ta__memory_zero(&tables->leaves[from], (end - from) * sizeof *tables->leaves);
        return;
    }
    for (uint32_t leaf = first; leaf < end; leaf++) {
        tables->leaves[leaf].context = 0;
        tables->leaves[leaf].flags = 0;
    }
    tables->rows_kept_end = end > tables->rows_kept_end ? end : tables->rows_kept_end;
}

static void empty_cells(void)
{
    for (uint32_t domain = 0; domain < tables->domain_leaves_capacity; domain++) {
        uint32_t *cells = &tables->domain_leaves[domain * TA__CELLS];
        cells[TA__CELL_OVERFLOW] = cells[TA__CELL_FORGOTTEN] = cells[TA__CELL_NEWEST] = 0;
    }
}

void ta__leaves_begin_epoch(void)
{
    if (tables->contexts == NULL)
        return;
    ta__lock_acquire(&tables->lock);
    uint32_t end = tables->leaf_count;
    ta__reclaim_abandon();
    ta__store_relaxed(&ta__trace_events.cut_short, UINT64_C(0));
    ta__store_release(&ta__leaf_meaning, ta__leaf_meaning + 1);
    empty_cells();
    if (!index_renew(UINT64_C(1) << FIRST_INDEX_BITS, NULL)) {
        memset(ta__leaf_index->entries, 0, index_bytes(ta__leaf_index));
        tables->index_used = 0;
    }
    drop_generations(UINT32_MAX);
    if (ta__tables_begin_reuse()) { /* else reclaiming takes the rows later */
        ta__contexts_reset();
        drop_rows(tables->oldest_leaf, end);
        tables->oldest_leaf = end;
        ta__tables_end_reuse();
    }
    tables->free_leaf = 0;
    tables->is_full = 0;
    ta__store_relaxed(&tables->leaves_used, 0u);
    ta__store_relaxed(&ta__leaf_first, end);
    ta__store_relaxed(&tables->generation, tables->generation + 1);
    ta__lock_release(&tables->lock);
}

int ta__leaves_are_spent(void)
{
    return ta__leaf_first > tables->leaf_max / SPENT_SHARE;
}

void ta__leaves_renumber(void)
{
    ta__lock_acquire(&tables->lock);
    ta__store_relaxed(&ta__leaf_first, (uint32_t)TA__LEAF_FIRST);
    ta__store_release(&tables->leaf_count, 1u);
    tables->oldest_leaf = 1;
    ta__lock_release(&tables->lock);
}
