/* contexts.c: interning — equal stacks become one number.
 *
 *   table        entry                                        found by
 *   contexts     (parent context, return address, module)     children index, under the lock
 *   leaves       (context, domain, depth, flags)              leaf index, by the hash of the whole stack, without lock
 *
 * A warm allocation makes one probe into the leaf index (contexts.h) and touches nothing else here. Only a stack that
 * was never seen, or was seen once, comes into this file: what is new of its path (the walk remembers the contexts of
 * the rest) is inserted frame by frame, parents before children, so that ids only grow from parent to child. Tables are
 * append-only, in reserved address space, and entries below the published counts are complete: readers need no lock.
 *
 * Hash equality is not believed at once: the second walk that meets an entry finds out its context, which is unique to
 * the path, and compares; when it agrees the entry becomes trusted. When it does not (two stacks with one 64-bit hash),
 * the newcomer gets an entry of its own behind the first, and neither is ever trusted: such stacks are compared each
 * time. */
#include "trace/contexts.h"

#include <string.h>

#include "base/lock.h"
#include "base/memory.h"
#include "trace/attribution.h"
#include "trace/modules.h"

enum { FIRST_INDEX_BITS = 11, LEAVES_MAX_DEFAULT = 1 << 22 };

struct ta__leaf_index *ta__leaf_index;

static struct {
    struct ta__lock lock; /* guards everything below except the published counts */
    struct ta__source_context *contexts;
    struct ta__source_leaf *leaves;
    uint32_t context_count; /* release after the entry; read by any, acquire */
    uint32_t leaf_count;
    uint32_t context_max, leaf_max;
    int is_full;            /* the cap is reached: new stacks go to <overflow> */
    uint32_t *children;     /* open addressing: context ids by (parent, address, module); 0 = empty */
    uint32_t *latest_child; /* by context: paths are mostly met again soon, and lie together */
    uint64_t children_mask;
    uint32_t *attributions; /* by context: whose memory it is by the rules (attribution.h); NULL: there are none */
    struct ta__leaf_index indexes[32]; /* every generation of the leaf index */
    uint32_t index_generation;
    uint64_t index_used;
    uint32_t *next_leaf;     /* by leaf: the next older one of its domain */
    uint32_t *domain_leaves; /* three per domain: untraced, overflow, newest */
    uint32_t domain_leaves_capacity;
} tables;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

uint32_t ta__context_count(void)
{
    return ta__load_acquire(&tables.context_count);
}

uint32_t ta__leaf_count(void)
{
    return ta__load_acquire(&tables.leaf_count);
}

uint32_t ta__leaf_capacity(void)
{
    return tables.leaf_max;
}

const struct ta__source_context *ta__contexts(void)
{
    return tables.contexts;
}

const struct ta__source_leaf *ta__leaves(void)
{
    return tables.leaves;
}

size_t ta__leaf_frames(uint32_t leaf, uint64_t *addresses, size_t max)
{
    size_t count = 0;
    for (uint32_t id = tables.leaves[leaf].context; id != 0; id = tables.contexts[id].parent) {
        if (count < max)
            addresses[count] = tables.contexts[id].address;
        count++;
    }
    return count;
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

static int leaf_index_grow(void)
{
    uint32_t generation = tables.index_generation;
    uint64_t size = tables.index_used == 0 ? UINT64_C(1) << FIRST_INDEX_BITS : (ta__leaf_index->mask + 1) * 4;
    if (generation == sizeof tables.indexes / sizeof tables.indexes[0])
        return 0;
    struct ta__leaf_entry *entries = ta__memory_map(size * sizeof *entries);
    if (entries == NULL)
        return 0;
    const struct ta__leaf_index *old = ta__leaf_index;
    for (uint64_t i = 0; old != NULL && i <= old->mask; i++) {
        if (old->entries[i].hash == 0)
            continue;
        uint64_t at = (old->entries[i].hash >> 7) & (size - 1);
        while (entries[at].hash != 0)
            at = (at + 1) & (size - 1);
        entries[at] = old->entries[i];
    }
    struct ta__leaf_index *fresh = &tables.indexes[generation];
    fresh->mask = size - 1;
    fresh->entries = entries;
    tables.index_generation = generation + 1;
    ta__store_release(&ta__leaf_index, fresh);
    return 1;
}

/* How many entries the tables are for: as many as are asked for and, where address space is limited, no more than fit
 * into a quarter of what is left of it, with the counters of some threads. The rest is the program's. */
struct extent {
    uint32_t contexts, leaves;
};

static struct extent extent_within(uint32_t max_contexts, size_t room)
{
    enum { THREADS_FORESEEN = 16 };
    const size_t context_bytes = sizeof *tables.contexts + sizeof *tables.latest_child;
    const size_t leaf_bytes =
        sizeof *tables.leaves + sizeof *tables.next_leaf + THREADS_FORESEEN * sizeof(struct ta__source_counts);
    struct extent extent = {max_contexts, max_contexts < LEAVES_MAX_DEFAULT ? max_contexts : LEAVES_MAX_DEFAULT};
    while (extent.contexts >= 2048 && extent.contexts * context_bytes + extent.leaves * leaf_bytes > room / 4) {
        extent.contexts /= 2;
        if (extent.leaves > extent.contexts / 4)
            extent.leaves = extent.contexts / 4;
    }
    return extent;
}

static int make_tables(uint32_t max_contexts)
{
    size_t room = ta__memory_room();
    /* Less and less ambitious where address space is short. */
    for (uint32_t max = max_contexts; max >= 1024; max /= 16) {
        struct extent extent = extent_within(max, room);
        tables.contexts = ta__memory_map(extent.contexts * sizeof *tables.contexts);
        tables.leaves = ta__memory_map(extent.leaves * sizeof *tables.leaves);
        tables.next_leaf = ta__memory_map(extent.leaves * sizeof *tables.next_leaf);
        tables.latest_child = ta__memory_map(extent.contexts * sizeof *tables.latest_child);
        if (tables.contexts != NULL && tables.leaves != NULL && tables.next_leaf != NULL &&
            tables.latest_child != NULL) {
            tables.context_max = extent.contexts;
            tables.leaf_max = extent.leaves;
            break;
        }
        ta__memory_unmap(tables.contexts, extent.contexts * sizeof *tables.contexts);
        ta__memory_unmap(tables.leaves, extent.leaves * sizeof *tables.leaves);
        ta__memory_unmap(tables.next_leaf, extent.leaves * sizeof *tables.next_leaf);
        ta__memory_unmap(tables.latest_child, extent.contexts * sizeof *tables.latest_child);
        tables.contexts = NULL;
        tables.leaves = NULL;
    }
    tables.children_mask = (UINT64_C(1) << FIRST_INDEX_BITS) - 1;
    tables.children = ta__memory_map((tables.children_mask + 1) * sizeof *tables.children);
    if (tables.contexts == NULL || tables.children == NULL || !leaf_index_grow()) {
        tables.contexts = NULL;
        return 0;
    }
    tables.context_count = 1; /* the root */
    tables.leaf_count = 1;    /* leaf 0: untraced, domain 0 */
    tables.leaves[0].flags = TA__LEAF_UNTRACED;
    return 1;
}

int ta__contexts_init(uint32_t max_contexts)
{
    ta__lock_acquire(&tables.lock);
    int result = tables.contexts != NULL || make_tables(max_contexts);
    ta__lock_release(&tables.lock);
    return result;
}

size_t ta__contexts_memory(void)
{
    if (tables.contexts == NULL)
        return 0;
    size_t bytes = ta__context_count() * (sizeof *tables.contexts + sizeof *tables.latest_child) +
                   ta__leaf_count() * sizeof *tables.leaves;
    bytes += (tables.children_mask + 1) * sizeof *tables.children;
    for (uint32_t i = 0; i < tables.index_generation; i++)
        bytes += (tables.indexes[i].mask + 1) * sizeof(struct ta__leaf_entry);
    return bytes;
}

void ta__contexts_after_fork(void)
{
    tables.lock.state = 0;
}

/* ---- contexts (lock held) ---------------------------------------------------------------------------------------- */

static uint64_t child_hash(uint32_t parent, uint64_t address, uint32_t module)
{
    return ta__hash_roll(address ^ (uint64_t)module << 48, parent + TA__GOLDEN);
}

static void children_grow(void)
{
    uint64_t size = (tables.children_mask + 1) * 4;
    uint32_t *larger = ta__memory_map(size * sizeof *larger);
    if (larger == NULL)
        return; /* fuller is slower, not wrong: intern refuses before it is full */
    for (uint32_t id = 1; id < tables.context_count; id++) {
        const struct ta__source_context *context = &tables.contexts[id];
        uint64_t at = child_hash(context->parent, context->address, context->module) & (size - 1);
        while (larger[at] != 0)
            at = (at + 1) & (size - 1);
        larger[at] = id;
    }
    ta__memory_unmap(tables.children, (tables.children_mask + 1) * sizeof *tables.children);
    tables.children = larger;
    tables.children_mask = size - 1;
}

/* The child of `parent` for one frame; 0 when the tables are full. */
static uint32_t context_child(uint32_t parent, uint64_t address, uint32_t module)
{
    uint32_t latest = tables.latest_child[parent];
    if (latest != 0 && tables.contexts[latest].address == address && tables.contexts[latest].module == module)
        return latest;
    uint64_t at = child_hash(parent, address, module) & tables.children_mask;
    for (uint32_t id; (id = tables.children[at]) != 0; at = (at + 1) & tables.children_mask) {
        const struct ta__source_context *context = &tables.contexts[id];
        if (context->address == address && context->parent == parent && context->module == module)
            return tables.latest_child[parent] = id;
    }
    uint32_t id = tables.context_count;
    if (tables.is_full || id >= tables.context_max || id + (id >> 3) >= tables.children_mask)
        return 0;
    tables.contexts[id] = (struct ta__source_context){.address = address, .parent = parent, .module = module};
    tables.children[at] = id;
    tables.latest_child[parent] = id;
    if (TA_UNLIKELY(tables.attributions != NULL))
        tables.attributions[id] = ta__attribution_of(tables.attributions[parent], address, module);
    ta__store_release(&tables.context_count, id + 1);
    if ((uint64_t)id * 2 > tables.children_mask)
        children_grow();
    return id;
}

/* The path's, or 0 when the tables are full. */
static uint32_t context_of_path(uint32_t base, struct ta__path_frame *path, uint32_t length)
{
    uint32_t context = base;
    for (uint32_t i = 0; i < length; i++) {
        uint64_t address = path[i].address;
        context = context_child(context, address, ta__module_find_salted(address, path[i].salt).v);
        if (context == 0) {
            for (; i < length; i++)
                path[i].context = 0;
            return 0;
        }
        path[i].context = context;
    }
    return context;
}

/* ---- leaves (lock held) ------------------------------------------------------------------------------------------ */

enum { NEWEST = 2, CELLS = 3 };

/* What is kept for each domain; NULL when there is no memory. */
static uint32_t *domain_cell(uint32_t domain, int which)
{
    if (domain >= tables.domain_leaves_capacity) {
        uint32_t capacity = tables.domain_leaves_capacity == 0 ? 256 : tables.domain_leaves_capacity;
        while (capacity <= domain)
            capacity *= 2;
        uint32_t *larger = ta__memory_map(capacity * CELLS * sizeof *larger);
        if (larger == NULL)
            return NULL;
        if (tables.domain_leaves != NULL) {
            memcpy(larger, tables.domain_leaves, tables.domain_leaves_capacity * CELLS * sizeof *larger);
            ta__memory_unmap(tables.domain_leaves, tables.domain_leaves_capacity * CELLS * sizeof *larger);
        }
        tables.domain_leaves = larger;
        tables.domain_leaves_capacity = capacity;
    }
    return &tables.domain_leaves[domain * CELLS + (uint32_t)which];
}

/* The last part of the table is for the leaves that every domain has without a stack: stacks find an end before that. */
static uint32_t leaf_append(uint32_t context, uint32_t total, uint32_t domain, uint32_t flags)
{
    uint32_t id = tables.leaf_count;
    uint32_t max = context != 0 ? tables.leaf_max - tables.leaf_max / 16 : tables.leaf_max;
    uint32_t *newest = domain_cell(domain, NEWEST);
    if (id >= max || newest == NULL)
        return 0;
    if ((flags & TA__LEAF_UNTRACED) == 0) {
        tables.next_leaf[id] = *newest;
        *newest = id;
    }
    tables.leaves[id] = (struct ta__source_leaf){
        .context = context, .domain = domain, .total_nframe = (uint16_t)total, .flags = (uint16_t)flags};
    ta__store_release(&tables.leaf_count, id + 1);
    return id;
}

/* Contexts are unique: equal ones are equal paths. */
static int leaf_is(uint32_t leaf, uint32_t context, uint32_t total, uint32_t domain, uint32_t flags)
{
    const struct ta__source_leaf *entry = &tables.leaves[leaf];
    return entry->context == context && entry->domain == domain && entry->total_nframe == total &&
           entry->flags == flags;
}

int ta__contexts_attribute(void (*change)(void *context), void *context)
{
    ta__lock_acquire(&tables.lock);
    if (tables.attributions == NULL)
        tables.attributions = ta__memory_map(tables.context_max * sizeof *tables.attributions);
    int result = tables.attributions != NULL;
    if (result) {
        change(context);
        for (uint32_t id = 1; id < tables.context_count; id++) {
            const struct ta__source_context *node = &tables.contexts[id];
            tables.attributions[id] =
                ta__attribution_of(tables.attributions[node->parent], node->address, node->module);
        }
    }
    ta__lock_release(&tables.lock);
    return result;
}

enum { LEAF_UNTRACED, LEAF_OVERFLOW };

/* The two leaves that every domain has without a stack. */
static uint32_t domain_leaf(uint32_t domain, int which)
{
    if (domain == 0 && which == LEAF_UNTRACED)
        return 0;
    ta__lock_acquire(&tables.lock);
    uint32_t *leaf = domain_cell(domain, which);
    if (leaf != NULL && *leaf == 0)
        *leaf = leaf_append(0, 0, domain, which == LEAF_UNTRACED ? TA__LEAF_UNTRACED : TA__LEAF_OVERFLOW);
    uint32_t id = leaf != NULL ? *leaf : 0;
    ta__lock_release(&tables.lock);
    return id;
}

uint32_t ta__leaf_next(uint32_t domain, uint32_t leaf)
{
    if (leaf != 0)
        return tables.next_leaf[leaf];
    ta__lock_acquire(&tables.lock);
    leaf = domain < tables.domain_leaves_capacity ? tables.domain_leaves[domain * CELLS + NEWEST] : 0;
    ta__lock_release(&tables.lock);
    return leaf;
}

uint32_t ta__leaf_untraced(uint32_t domain)
{
    return domain_leaf(domain, LEAF_UNTRACED);
}

uint32_t ta__leaf_overflow(uint32_t domain)
{
    return domain_leaf(domain, LEAF_OVERFLOW);
}

uint32_t ta__leaf_intern(uint64_t hash, uint32_t base, struct ta__path_frame *path, uint32_t length, uint32_t total,
                         uint32_t domain, uint32_t flags)
{
    if (tables.contexts == NULL)
        return 0;
    ta__lock_acquire(&tables.lock);
    uint32_t context = context_of_path(base, path, length);
    if (TA_UNLIKELY(ta__attribution_decides(domain)))
        domain = context != 0 ? tables.attributions[context] & TA__ATTRIBUTION_INDEX : 0;
    uint64_t mask = ta__leaf_index->mask;
    uint64_t at = (hash >> 7) & mask;
    struct ta__leaf_entry *entry;
    int collision = 0;
    while ((entry = &ta__leaf_index->entries[at])->hash != 0) {
        if (entry->hash == hash) {
            if (leaf_is(entry->leaf, context, total, domain, flags)) {
                if (entry->trust == TA__TRUST_NOT_YET)
                    ta__store_relaxed(&entry->trust, (uint32_t)TA__TRUSTED);
                uint32_t leaf = entry->leaf;
                ta__lock_release(&tables.lock);
                return leaf;
            }
            /* Two stacks, one hash: this entry must not answer for both. */
            ta__store_relaxed(&entry->trust, (uint32_t)TA__TRUST_NEVER);
            collision = 1;
        }
        at = (at + 1) & mask;
    }
    uint32_t leaf = 0;
    /* An index that could not grow is used nearly to its end: there must be empty entries, at which searches stop. */
    if (context != 0 && !tables.is_full && tables.index_used + (tables.index_used >> 3) < mask)
        leaf = leaf_append(context, total, domain, flags);
    if (leaf == 0) {
        tables.is_full = 1;
    } else {
        entry->leaf = leaf;
        if (collision)
            entry->trust = TA__TRUST_NEVER;
        ta__store_release(&entry->hash, hash);
        tables.index_used++;
        if (tables.index_used * 2 > mask)
            leaf_index_grow();
    }
    ta__lock_release(&tables.lock);
    return leaf != 0 ? leaf : ta__leaf_overflow(domain);
}
