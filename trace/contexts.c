/* contexts.c: the tree of calls — equal paths become one number.
 *
 *   table        entry                                        found by
 *   contexts     (parent context, return address, module)     parent or children index, under the lock
 *   leaves       (context, domain, depth, flags)              leaf index, by the hash of the whole stack, without lock
 *
 * This file has the contexts and what concerns both tables, leaves.c the leaves, reclaim.c says what is used again.
 * A warm allocation makes one probe into the leaf index (contexts.h) and touches nothing here. Only a stack that was
 * never seen, or was seen once, comes here: what is new of its path (the walk remembers the contexts of the rest) is
 * inserted frame by frame. Tables lie in reserved address space, and rows below the published counts are complete:
 * readers need no lock. Numbers are used again, but never while somebody reads the tables as a whole
 * (ta__tables_open). */
#include "trace/contexts.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/safepoint.h"
#include "trace/attribution.h"
#include "trace/reclaim.h"
#include "trace/interning.h"
#include "trace/unwind/modules.h"

enum { FIRST_CHILDREN_BITS = 12, LEAVES_MAX_DEFAULT = 1 << 22, THREADS_FORESEEN = 16, LEAST_LEFT = 1024 };

struct ta__tables ta__tables = {.lock = {.rank = TA__RANK_CONTEXTS}};
static struct ta__tables *const tables = &ta__tables;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

uint32_t ta__context_count(void)
{
    return ta__load_acquire(&tables->context_count);
}

uint32_t ta__contexts_used(void)
{
    return ta__load_relaxed(&tables->contexts_used);
}

const struct ta__source_context *ta__contexts(void)
{
    return tables->contexts;
}

/* The reader says that it reads, then waits until nobody reuses; who reuses says so, then looks for readers: one of the
 * two sees the other. */
uint64_t ta__tables_open(void)
{
    const struct timespec moment = {0, 100000};
    int saved_errno = errno;
    __atomic_fetch_add(&tables->readers, 1, __ATOMIC_SEQ_CST);
    /* Not for ever: a signal handler may have interrupted it. Then nothing moves, and at worst a leaf that is just being
     * freed counts twice. */
    for (int patience = 1000; __atomic_load_n(&tables->is_reusing, __ATOMIC_SEQ_CST) != 0 && patience > 0; patience--)
        nanosleep(&moment, NULL);
    errno = saved_errno;
    return ta__load_acquire(&tables->generation);
}

void ta__tables_close(void)
{
    __atomic_fetch_sub(&tables->readers, 1, __ATOMIC_SEQ_CST);
}

int ta__tables_begin_reuse(void)
{
    __atomic_store_n(&tables->is_reusing, tables->is_reusing + 1, __ATOMIC_SEQ_CST);
    if (tables->is_reusing > 1 || __atomic_load_n(&tables->readers, __ATOMIC_SEQ_CST) == 0)
        return 1;
    ta__tables_end_reuse();
    return 0;
}

void ta__tables_end_reuse(void)
{
    ta__store_release(&tables->is_reusing, tables->is_reusing - 1);
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

enum { CONTEXT_BYTES = sizeof(struct ta__source_context) + 2 * sizeof(uint32_t) };

/* How many entries the tables are for: as many as are asked for and, where address space is limited, no more than fit
 * into a quarter of what is left of it, with the counters of some threads. The rest is the program's. */
struct extent {
    uint32_t contexts, leaves;
};

static struct extent extent_within(uint32_t max_contexts, size_t room)
{
    const size_t leaf_bytes = sizeof *tables->leaves + sizeof *tables->leaf_hashes + sizeof *tables->leaf_states +
                              2 * sizeof *tables->next_leaf + THREADS_FORESEEN * sizeof(struct ta__source_counts);
    struct extent extent = {max_contexts, max_contexts < LEAVES_MAX_DEFAULT ? max_contexts : LEAVES_MAX_DEFAULT};
    while (extent.contexts >= 2048 && extent.contexts * (size_t)CONTEXT_BYTES + extent.leaves * leaf_bytes > room / 4) {
        extent.contexts /= 2;
        if (extent.leaves > extent.contexts / 4)
            extent.leaves = extent.contexts / 4;
    }
    return extent;
}

static int map_contexts(uint32_t max)
{
    tables->contexts = ta__memory_map(max * sizeof *tables->contexts);
    tables->context_holders = ta__memory_map(max * sizeof *tables->context_holders);
    tables->latest_child = ta__memory_map(max * sizeof *tables->latest_child);
    tables->context_max = max;
    return tables->contexts != NULL && tables->context_holders != NULL && tables->latest_child != NULL;
}

static void unmap_contexts(void)
{
    ta__memory_unmap(tables->contexts, tables->context_max * sizeof *tables->contexts);
    ta__memory_unmap(tables->context_holders, tables->context_max * sizeof *tables->context_holders);
    ta__memory_unmap(tables->latest_child, tables->context_max * sizeof *tables->latest_child);
    tables->contexts = NULL;
}

static int make_children(void)
{
    tables->children_mask = (UINT64_C(1) << FIRST_CHILDREN_BITS) - 1;
    tables->children_tags = UINT32_MAX << (32 - __builtin_clz(tables->context_max - 1));
    tables->children = ta__memory_map((tables->children_mask + 1) * sizeof *tables->children);
    return tables->children != NULL;
}

static int make_tables(uint32_t max_contexts)
{
    size_t room = ta__memory_room();
    /* Less and less ambitious where address space is short. */
    for (uint32_t max = max_contexts; max >= 1024; max /= 16) {
        struct extent extent = extent_within(max, room);
        if (map_contexts(extent.contexts)) {
            if (make_children()) {
                if (ta__leaves_make(extent.leaves)) {
                    ta__store_release(&tables->context_count, 1u); /* the root */
                    return 1;
                }
                ta__memory_unmap(tables->children, (tables->children_mask + 1) * sizeof *tables->children);
            }
        }
        unmap_contexts();
    }
    return 0;
}

int ta__contexts_init(uint32_t max_contexts)
{
    ta__lock_acquire(&tables->lock);
    int result = tables->contexts != NULL || make_tables(max_contexts);
    ta__lock_release(&tables->lock);
    return result;
}

/* Tables of at most a quarter of `room`, in which they are themselves, and of what they hold and a quarter more. */
static struct extent extent_to_keep(size_t room)
{
    struct extent extent = extent_within(tables->context_max, room);
    uint32_t contexts = tables->context_count + tables->context_count / 4 + LEAST_LEFT;
    uint32_t leaves = tables->leaf_count + tables->leaf_count / 4 + LEAST_LEFT;
    extent.contexts = extent.contexts > contexts ? extent.contexts : contexts;
    extent.leaves = extent.leaves > leaves ? extent.leaves : leaves;
    extent.contexts = extent.contexts < tables->context_max ? extent.contexts : tables->context_max;
    extent.leaves = extent.leaves < tables->leaf_max ? extent.leaves : tables->leaf_max;
    return extent;
}

void ta__contexts_fit(size_t room)
{
    ta__lock_acquire(&tables->lock);
    if (tables->contexts != NULL) {
        struct extent extent = extent_to_keep(room);
        size_t had = tables->context_max;
        ta__memory_shrink(tables->contexts, had * sizeof *tables->contexts, extent.contexts * sizeof *tables->contexts);
        ta__memory_shrink(tables->context_holders, had * sizeof *tables->context_holders,
                          extent.contexts * sizeof *tables->context_holders);
        ta__memory_shrink(tables->latest_child, had * sizeof *tables->latest_child,
                          extent.contexts * sizeof *tables->latest_child);
        ta__memory_shrink(tables->attributions, had * sizeof *tables->attributions,
                          extent.contexts * sizeof *tables->attributions);
        tables->context_max = extent.contexts;
        ta__leaves_fit(extent.leaves);
    }
    ta__lock_release(&tables->lock);
}

/* A signal handler may ask that interrupted who has the lock. */
size_t ta__contexts_memory(void)
{
    int is_ours = ta__lock_is_mine(&tables->lock);
    size_t bytes = 0;
    if (!is_ours)
        ta__lock_acquire(&tables->lock);
    if (tables->contexts != NULL)
        bytes = ta__context_count() * (size_t)CONTEXT_BYTES + ta__leaf_rows_memory() +
                (tables->children_mask + 1) * sizeof *tables->children;
    if (!is_ours)
        ta__lock_release(&tables->lock);
    return bytes;
}

size_t ta__tables_bytes_used(void)
{
    enum { INDEX_SHARE = 3 }; /* entries of an index that is a third to five eighths full */
    int threads = ta__safepoint_size();
    threads = threads > THREADS_FORESEEN ? THREADS_FORESEEN : threads;
    size_t leaf_bytes = sizeof *tables->leaves + sizeof *tables->leaf_hashes + 2 * sizeof *tables->next_leaf + 1 +
                        INDEX_SHARE * sizeof(struct ta__leaf_entry) +
                        (size_t)threads * sizeof(struct ta__source_counts);
    return tables->contexts_used * (size_t)CONTEXT_BYTES +
           tables->children_used * INDEX_SHARE * sizeof *tables->children + tables->leaves_used * leaf_bytes;
}

void ta__contexts_after_fork(void)
{
    ta__lock_after_fork(&tables->lock);
    tables->readers = 0;
    tables->is_reusing = 0;
}

/* ---- contexts (lock held) ---------------------------------------------------------------------------------------- */

static uint64_t child_hash(uint32_t parent, uint64_t address, uint32_t module)
{
    return ta__hash_roll(address ^ (uint64_t)module << 48, parent + TA__GOLDEN);
}

static int is_child(uint32_t id, uint32_t parent, uint64_t address, uint32_t module)
{
    const struct ta__source_context *row = &tables->contexts[id];
    return row->address == address && row->parent == parent && row->module == module;
}

static uint64_t hash_of(uint32_t id)
{
    const struct ta__source_context *context = &tables->contexts[id];
    return child_hash(context->parent, context->address, context->module);
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32) & tables->children_tags;
}

/* Of an entry; 0: it is empty. */
static uint32_t number_in(uint32_t entry)
{
    return entry & ~tables->children_tags;
}

static void children_grow(void)
{
    uint64_t old_size = tables->children_mask + 1;
    uint64_t size = old_size * 2;
    uint32_t *larger = ta__memory_map(size * sizeof *larger);
    if (larger == NULL)
        return;
    for (uint64_t i = 0; i < old_size; i++) {
        if (tables->children[i] == 0)
            continue;
        uint64_t at = hash_of(number_in(tables->children[i])) & (size - 1);
        while (larger[at] != 0)
            at = (at + 1) & (size - 1);
        larger[at] = tables->children[i];
    }
    ta__memory_unmap(tables->children, old_size * sizeof *tables->children);
    tables->children = larger;
    tables->children_mask = size - 1;
}

/* Takes a context out of the index; those behind it that it kept from their place move up. */
static void children_remove(uint32_t id)
{
    uint64_t mask = tables->children_mask;
    uint64_t hole = hash_of(id) & mask;
    while (number_in(tables->children[hole]) != id)
        hole = (hole + 1) & mask;
    for (uint64_t at = (hole + 1) & mask; tables->children[at] != 0; at = (at + 1) & mask) {
        uint64_t home = hash_of(number_in(tables->children[at])) & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        tables->children[hole] = tables->children[at];
        hole = at;
    }
    tables->children[hole] = 0;
    tables->children_used--;
}

/* There is room (children_have_room). */
static void children_insert(uint32_t id)
{
    uint64_t hash = hash_of(id), at = hash & tables->children_mask;
    while (tables->children[at] != 0)
        at = (at + 1) & tables->children_mask;
    tables->children[at] = id | tag_of(hash);
    tables->children_used++;
}

/* For two more. Fuller than it should be is slower, not wrong, where there is no memory for a larger one. */
static int children_have_room(void)
{
    if ((uint64_t)tables->children_used * 8 > tables->children_mask * 5)
        children_grow();
    return tables->children_used + (tables->children_used >> 3) + 2 < tables->children_mask;
}

static uint32_t children_find(uint32_t parent, uint64_t address, uint32_t module)
{
    uint64_t hash = child_hash(parent, address, module), at = hash & tables->children_mask;
    uint32_t tag = tag_of(hash);
    for (uint32_t entry; (entry = tables->children[at]) != 0; at = (at + 1) & tables->children_mask) {
        uint32_t id = entry ^ tag;
        if ((id & tables->children_tags) == 0 && is_child(id, parent, address, module))
            return id;
    }
    return 0;
}

#if TA_CHECKS >= 2
int ta__context_is_found(uint32_t id)
{
    uint32_t latest = tables->latest_child[tables->contexts[id].parent];
    if ((latest & TA__CONTEXT_BRANCHES) == 0)
        return latest == id;
    uint64_t at = hash_of(id) & tables->children_mask;
    uint32_t entry = id | tag_of(hash_of(id));
    while (tables->children[at] != 0 && tables->children[at] != entry)
        at = (at + 1) & tables->children_mask;
    return tables->children[at] == entry;
}
#endif

/* A row for a new context, filled in; 0: the table is full. */
static uint32_t new_context(const struct ta__source_context *row)
{
    uint32_t id = tables->free_context;
    if (id != 0 && ta__tables_begin_reuse()) {
        tables->free_context = tables->latest_child[id];
        tables->contexts[id] = *row;
        ta__tables_end_reuse();
    } else {
        id = tables->context_count;
        if (id >= tables->context_max)
            return 0;
        tables->contexts[id] = *row;
        ta__store_release(&tables->context_count, id + 1);
    }
    tables->latest_child[id] = 0;
    tables->context_holders[id] = 0;
    ta__store_relaxed(&tables->contexts_used, tables->contexts_used + 1);
    return id;
}

/* Where a search will find it: behind `latest`, what its parent said before. */
static void put_child(uint32_t id, uint32_t parent, uint32_t latest)
{
    uint32_t branches = latest != 0 ? TA__CONTEXT_BRANCHES : 0;
    if (branches != 0 && (latest & TA__CONTEXT_BRANCHES) == 0)
        children_insert(latest);
    if (branches != 0)
        children_insert(id);
    tables->latest_child[parent] = id | branches;
}

/* The child of `parent` for one frame; 0 when the tables are full. */
static uint32_t context_child(uint32_t parent, uint64_t address, uint32_t module)
{
    uint32_t latest = tables->latest_child[parent], id = latest & ~TA__CONTEXT_BRANCHES;
    if (id != 0 && is_child(id, parent, address, module))
        return id;
    if ((latest & TA__CONTEXT_BRANCHES) != 0 && (id = children_find(parent, address, module)) != 0) {
        tables->latest_child[parent] = id | TA__CONTEXT_BRANCHES;
        return id;
    }
    if (tables->is_full || (latest != 0 && !children_have_room()))
        return 0;
    id = new_context(&(struct ta__source_context){.address = address, .parent = parent, .module = module});
    if (id == 0)
        return 0;
    ta__context_hold(parent);
    put_child(id, parent, latest);
    if (TA_UNLIKELY(tables->attributions != NULL))
        tables->attributions[id] = ta__attribution_of(tables->attributions[parent], address, module);
    return id;
}

/* The module of a frame, which mostly is that of the one before: no two have both the address and the salt. */
TA_INLINE const struct ta__module *module_of(const struct ta__path_frame *frame, const struct ta__module *before)
{
    if (TA_LIKELY(before != NULL && frame->address - before->start < before->end - before->start &&
                  frame->salt == before->salt))
        return before;
    return ta__module_at(ta__module_find_salted(frame->address, frame->salt));
}

uint32_t ta__context_of_path(uint32_t base, struct ta__path_frame *path, uint32_t length)
{
    const struct ta__module *module = NULL;
    uint32_t context = base;
    for (uint32_t i = 0; i < length; i++) {
        module = module_of(&path[i], module);
        uint32_t child = context_child(context, path[i].address, module != NULL ? module->id.v : 0);
        path[i].context = child;
        if (child == 0) {
            ta__context_abandon(context, path, i);
            for (; i < length; i++)
                path[i].context = 0;
            return 0;
        }
        context = child;
    }
    return context;
}

int ta__context_is_path(uint32_t context, uint32_t base, struct ta__path_frame *path, uint32_t length)
{
    uint32_t module = 0, salt = 0; /* of the frame before */
    for (uint32_t i = length; i-- > 0;) {
        const struct ta__source_context *row = &tables->contexts[context];
        /* What belonged to no module may since belong to one. */
        if (row->address != path[i].address || row->module == 0)
            return 0;
        if (row->module != module) {
            module = row->module;
            salt = ta__module_at((ta__module_id){module})->salt;
        }
        if (salt != path[i].salt)
            return 0;
        path[i].context = context;
        context = row->parent;
    }
    return context == base;
}

static void free_context(uint32_t id)
{
    uint32_t parent = tables->contexts[id].parent, branches = tables->latest_child[parent] & TA__CONTEXT_BRANCHES;
    if (branches != 0)
        children_remove(id);
    if (tables->latest_child[parent] == (id | branches))
        tables->latest_child[parent] = branches;
    tables->latest_child[id] = tables->free_context;
    tables->free_context = id;
    ta__store_relaxed(&tables->contexts_used, tables->contexts_used - 1);
}

void ta__context_release(uint32_t context)
{
    TA_CHECK("R-5", tables->is_reusing != 0);
    TA_CHECK("R-6", context == 0 || tables->context_holders[context] != 0);
    while (context != 0 && --tables->context_holders[context] == 0) {
        uint32_t parent = tables->contexts[context].parent;
        free_context(context);
        context = parent;
    }
}

/* Nobody has seen their numbers: they can go at once, unless the tables are read as a whole. Then they stay, held by
 * nobody, until a leaf holds them. */
void ta__context_abandon(uint32_t context, struct ta__path_frame *path, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        path[i].context = 0;
    if (context == 0 || tables->context_holders[context] != 0 || !ta__tables_begin_reuse())
        return;
    ta__context_hold(context);
    ta__context_release(context);
    ta__tables_end_reuse();
}

void ta__contexts_reset(void)
{
    uint32_t used = tables->context_count;
    ta__memory_reset(tables->contexts, used * sizeof *tables->contexts);
    ta__memory_reset(tables->context_holders, used * sizeof *tables->context_holders);
    ta__memory_reset(tables->latest_child, used * sizeof *tables->latest_child);
    if (tables->attributions != NULL)
        ta__memory_reset(tables->attributions, used * sizeof *tables->attributions);
    ta__memory_reset(tables->children, (tables->children_mask + 1) * sizeof *tables->children);
    tables->children_used = 0;
    ta__store_release(&tables->context_count, 1u);
    ta__store_relaxed(&tables->contexts_used, 0u);
    tables->free_context = 0;
    tables->is_full = 0;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

enum { PATH_MAX_FRAMES = 1 << 16 };

/* From the outermost context whose answer is not known to this one. A parent's number may be the larger one. */
static void attribute_path(uint32_t id, uint32_t *unknown)
{
    uint32_t count = 0;
    for (; tables->attributions[id] == TA__ATTRIBUTION_UNKNOWN && count < PATH_MAX_FRAMES;
         id = tables->contexts[id].parent)
        unknown[count++] = id;
    while (count > 0) {
        const struct ta__source_context *node = &tables->contexts[unknown[--count]];
        tables->attributions[unknown[count]] =
            ta__attribution_of(tables->attributions[node->parent], node->address, node->module);
    }
}

int ta__contexts_attribute(void (*change)(void *context), void *context)
{
    uint32_t *unknown = ta__memory_map(PATH_MAX_FRAMES * sizeof *unknown);
    ta__lock_acquire(&tables->lock);
    if (tables->attributions == NULL)
        tables->attributions = ta__memory_map(tables->context_max * sizeof *tables->attributions);
    int result = tables->attributions != NULL && unknown != NULL;
    if (result) {
        change(context);
        for (uint32_t id = 1; id < tables->context_count; id++)
            tables->attributions[id] = TA__ATTRIBUTION_UNKNOWN;
        for (uint32_t id = 1; id < tables->context_count; id++)
            attribute_path(id, unknown);
    }
    ta__lock_release(&tables->lock);
    ta__memory_unmap(unknown, PATH_MAX_FRAMES * sizeof *unknown);
    return result;
}

/* ---- for readers from outside ------------------------------------------------------------------------------------ */

struct ta__fact ta__facts_interning[] = {
    TA__FACT_AT("contexts", ta__tables.contexts),
    TA__FACT_AT("contexts.count", ta__tables.context_count),
    TA__FACT_AT("leaves", ta__tables.leaves),
    TA__FACT_AT("leaves.count", ta__tables.leaf_count),
    TA__FACT_AT("leaves.first", ta__leaf_first),
    TA__FACT("context.bytes", sizeof(struct ta__source_context)),
    TA__FACT_FIELD("context.address", struct ta__source_context, address),
    TA__FACT_FIELD("context.parent", struct ta__source_context, parent),
    TA__FACT_FIELD("context.module", struct ta__source_context, module),
    TA__FACT("leaf.bytes", sizeof(struct ta__source_leaf)),
    TA__FACT_FIELD("leaf.context", struct ta__source_leaf, context),
    TA__FACT_FIELD("leaf.domain", struct ta__source_leaf, domain),
    TA__FACT_FIELD("leaf.depth", struct ta__source_leaf, total_nframe),
    TA__FACT_FIELD("leaf.flags", struct ta__source_leaf, flags),
    TA__FACT("leaf.cut_short", TA__LEAF_CUT_SHORT),
    TA__FACT("leaf.overflow", TA__LEAF_OVERFLOW),
    TA__FACT("leaf.untraced", TA__LEAF_UNTRACED),
    TA__FACT("leaf.forgotten", TA__LEAF_FORGOTTEN),
    TA__FACT("leaf.freed", TA__LEAF_FREED),
    TA__FACTS_END,
};
