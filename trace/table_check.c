/* table_check.c: see table_check.h. Everything that the tables say twice must agree: each row's holders with who holds
 * it, each index with the rows, each list with the states. Empty but in the debug-full build. */
#include "trace/table_check.h"

#include "base/assert.h"

#if TA_CHECKS >= 2
#include "base/safepoint.h"
#include "trace/interning.h"
#include "trace/thread_state.h"

static const struct ta__tables *const tables = &ta__tables;

/* What a walk notes of a context: how many hold it, and whether its number is free. */
struct note {
    uint32_t holders;
    uint32_t is_free;
};

static void note_free_contexts(struct note *notes)
{
    uint32_t count = 0;
    for (uint32_t id = tables->free_context; id != 0; id = tables->latest_child[id]) {
        TA_CHECK("R-7", id < tables->context_count && !notes[id].is_free);
        notes[id].is_free = 1;
        count++;
    }
    TA_CHECK("R-7", tables->contexts_used + count + 1 == tables->context_count);
}

static void note_holders(struct note *notes)
{
    for (uint32_t id = 1; id < tables->context_count; id++) {
        if (notes[id].is_free)
            continue;
        uint32_t parent = tables->contexts[id].parent;
        TA_CHECK("R-6", parent < tables->context_count && !notes[parent].is_free);
        notes[parent].holders++;
    }
    /* Rows of an earlier epoch hold theirs as long as somebody read the tables when it ended. */
    for (uint32_t leaf = tables->oldest_leaf; leaf < tables->leaf_count; leaf++) {
        uint32_t context = tables->leaves[leaf].context;
        if (tables->leaf_states[leaf] == TA__LEAF_FREE || context == 0)
            continue;
        TA_CHECK("R-6", context < tables->context_count && !notes[context].is_free);
        notes[context].holders++;
    }
}

static void check_children(const struct note *notes)
{
    uint32_t indexed = 0;
    for (uint64_t at = 0; at <= tables->children_mask; at++)
        indexed += tables->children[at] != 0;
    TA_CHECK("R-8", indexed == tables->children_used);
    for (uint32_t id = 1; id < tables->context_count; id++) {
        if (notes[id].is_free)
            continue;
        TA_CHECK("R-8", ta__context_is_found(id));
        indexed -= (tables->latest_child[tables->contexts[id].parent] & TA__CONTEXT_BRANCHES) != 0;
    }
    TA_CHECK("R-8", indexed == 0);
}

static void check_contexts(void)
{
    size_t bytes = tables->context_count * sizeof(struct note);
    struct note *notes = ta__check_notes(bytes);
    note_free_contexts(notes);
    note_holders(notes);
    for (uint32_t id = 1; id < tables->context_count; id++)
        TA_CHECK("R-6", notes[id].is_free || tables->context_holders[id] == notes[id].holders);
    check_children(notes);
    ta__check_notes_free(notes, bytes);
}

static void check_leaf_entries(void)
{
    const struct ta__leaf_index *index = ta__leaf_index;
    uint32_t entries = 0;
    uint32_t hashed = 0;
    for (uint64_t at = 0; at <= index->mask; at++) {
        const struct ta__leaf_entry *entry = &index->entries[at];
        if ((entry->hash & 1) == 0)
            continue;
        TA_CHECK("R-8", entry->leaf >= ta__leaf_first && entry->leaf < tables->leaf_count);
        TA_CHECK("R-8", tables->leaf_hashes[entry->leaf] == entry->hash);
        int is_condemned = (entry->trust & TA__TRUST_CONDEMNED) != 0;
        TA_CHECK("R-1", is_condemned == (tables->leaf_states[entry->leaf] != TA__LEAF_IN_USE));
        entries++;
    }
    for (uint32_t leaf = ta__leaf_first; leaf < tables->leaf_count; leaf++) {
        TA_CHECK("R-8", tables->leaf_hashes[leaf] == 0 || ta__leaf_is_found(leaf));
        hashed += tables->leaf_hashes[leaf] != 0;
    }
    TA_CHECK("R-8", entries == hashed);
}

static void check_leaf_lists(void)
{
    uint32_t free = 0;
    uint32_t listed = 0;
    for (uint32_t leaf = tables->free_leaf; leaf != 0; leaf = tables->next_leaf[leaf], free++)
        TA_CHECK("R-7", leaf >= ta__leaf_first && leaf < tables->leaf_count &&
                            tables->leaf_states[leaf] == TA__LEAF_FREE && free < tables->leaf_count);
    for (uint32_t domain = 0; domain < tables->domain_leaves_capacity; domain++) {
        uint32_t previous = 0;
        uint32_t leaf = tables->domain_leaves[domain * TA__CELLS + TA__CELL_NEWEST];
        for (; leaf != 0; previous = leaf, leaf = tables->next_leaf[leaf], listed++) {
            TA_CHECK("R-7", tables->leaf_states[leaf] != TA__LEAF_FREE && tables->leaves[leaf].domain == domain);
            TA_CHECK("R-7", tables->previous_leaf[leaf] == previous && listed < tables->leaf_count);
        }
    }
    TA_CHECK("R-7", listed == tables->leaves_used);
    TA_CHECK("R-7", ta__leaf_first + free + listed == tables->leaf_count);
}

/* A thread that is outside has no more unsaid than it may. One that interns at its leisure is not looked at. */
static void check_threads(void)
{
    for (int slot = ta__safepoint_size(); slot-- > 0;) {
        const struct ta__thread *thread = (const struct ta__thread *)ta__safepoint_member(slot);
        TA_CHECK("P-2", thread == NULL || (thread->high <= TA__FLUSH_BYTES && thread->headroom >= 0));
    }
}

void ta__check_tables(void)
{
    check_threads();
    /* Held by a thread that works outside of operations: then its rows are in motion. */
    struct ta__lock *lock = (struct ta__lock *)&tables->lock;
    if (tables->contexts == NULL || !ta__lock_try(lock))
        return;
    if (tables->is_reusing == 0) {
        check_contexts();
        check_leaf_entries();
        check_leaf_lists();
    }
    ta__lock_release(lock);
}
#endif
