/* domain_destroy.c: the end of a domain — all its blocks at once — and arenas, which are made for it.
 *
 * With the world stopped nobody is inside the allocator, so that nothing of the heap is in use: its blocks become freed
 * in every counter, every thread's part is dropped, scopes that name it point to the dead slot, and the heap goes.
 * Pages of a destroyed heap are marked: a pointer into one that does not verify later is probably a block of it, which
 * is not worth an abort. */
#include <errno.h>
#include <stddef.h>

#include "alloc/alloc.h"
#include "alloc/domain_table.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/world.h"
#include "trace/tracked.h"
#include "tracealloc/domain.h"

#define table ta__domain_table

/* ---- where destroyed domains were -------------------------------------------------------------------------------- */

enum { SLICE_SHIFT = 16, ADDRESS_BITS = 47 };

/* One bit per slice of the address space; NULL until a domain is destroyed. Set with the world stopped. */
static uint8_t *ruins;

static void mark_area(uintptr_t start, size_t bytes, void *context)
{
    (void)context;
    for (uintptr_t slice = start >> SLICE_SHIFT; slice <= (start + bytes - 1) >> SLICE_SHIFT; slice++)
        if (slice < UINT64_C(1) << (ADDRESS_BITS - SLICE_SHIFT))
            ruins[slice / 8] |= (uint8_t)(1 << slice % 8);
}

static void mark_ruins(void *heap)
{
    if (ruins == NULL)
        ta__store_release(&ruins, (uint8_t *)ta__memory_map((size_t)1 << (ADDRESS_BITS - SLICE_SHIFT - 3)));
    if (ruins != NULL)
        ta__heap_visit_areas(heap, mark_area, NULL);
}

int ta__domain_stood_at(const void *address)
{
    const uint8_t *marks = ta__load_acquire(&ruins);
    uintptr_t slice = (uintptr_t)address >> SLICE_SHIFT;
    return marks != NULL && slice < UINT64_C(1) << (ADDRESS_BITS - SLICE_SHIFT) &&
           (marks[slice / 8] >> slice % 8 & 1) != 0;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void ignore_entry(const struct ta__tracked *entry, void *context)
{
    (void)entry, (void)context;
}

/* What was live counts as freed, and every trace of it with that. */
static void fold_counters(uint32_t index)
{
    for (uint32_t leaf = ta__leaf_next(index, 0); leaf != 0; leaf = ta__leaf_next(index, leaf))
        ta__counters_drop(leaf);
    ta__tracked_take_domain(index, ignore_entry, NULL);
}

/* The thread forgets its part. Its scopes learn at their next use what the number means then. */
static void drop_part(struct ta__thread *thread, uint32_t index)
{
    struct ta__domain_parts *parts = thread->domains;
    if (parts == NULL)
        return;
    struct ta__domain_slot *slot = &parts->slots[index];
    for (uint32_t i = 0; i < parts->scopes_filled; i++) {
        struct ta__scope *scope = &parts->scopes[i];
        if (scope->slot != slot)
            continue;
        if (scope->key != TA__SCOPE_EDGE)
            ta__store_relaxed(&scope->key, TA__SCOPE_UNCACHED);
        ta__store_relaxed(&scope->slot, &parts->slots[TA__DOMAIN_DEAD]);
    }
    if (slot->cold == 0)
        return;
    ta__store_relaxed(&parts->cold[slot->cold].high, 0);
    slot->theap = NULL;
    slot->allocated_blocks = slot->allocated_bytes = slot->freed_blocks = slot->freed_bytes = 0;
    slot->headroom = 0;
}

struct gathering {
    uint32_t index;
    void **blocks;
    size_t count, room;
};

/* A block of the shared heap: is it the domain's? */
static void gather(void *block, size_t block_bytes, void *context)
{
    (void)block_bytes;
    struct gathering *gathering = context;
    struct ta__header *header = ta__header_in_block(block);
    const void *user = ta__header_user(header);
    uint32_t kind = ta__header_kind(user);
    if (kind > TA__KIND_MAX || (kind & TA__KIND_DOMAIN) != TA__KIND_DOMAIN ||
        ta__leaf_domain(header->leaf) != gathering->index)
        return;
    if (gathering->count < gathering->room)
        gathering->blocks[gathering->count] = block;
    gathering->count++;
}

/* Domains that share a heap: each of the blocks is freed by itself. 0: no memory to list them, they stay. */
static int free_one_by_one(uint32_t index, void *heap)
{
    struct gathering gathering = {.index = index};
    ta__heap_visit(heap, gather, &gathering);
    if (gathering.count == 0)
        return 1;
    size_t bytes = gathering.count * sizeof(void *);
    gathering.room = gathering.count;
    gathering.blocks = ta__memory_map(bytes);
    if (gathering.blocks == NULL)
        return 0;
    gathering.count = 0;
    ta__heap_visit(heap, gather, &gathering);
    for (size_t i = 0; i < gathering.count; i++) {
        struct ta__header *header = ta__header_in_block(gathering.blocks[i]);
        ta__header_kill(ta__header_user(header));
        ta__heap_free(ta__heap_page(gathering.blocks[i]), gathering.blocks[i]);
    }
    ta__memory_unmap(gathering.blocks, bytes);
    return 1;
}

/* The world is stopped and the table locked. */
static int destroy(uint32_t index)
{
    struct ta__domain *domain = &table.domains[index];
    struct ta__domain *owner = &table.domains[domain->heap_index];
    int is_shared = table.shared_index != 0 && domain->heap_index == table.shared_index;
    if (ta__load_relaxed(&domain->is_ruled))
        return EBUSY;
    struct ta__source_counts sum;
    uint64_t peak;
    ta__domain_sum(index, &sum, &peak);
    if (is_shared && owner->heap != NULL && sum.allocated_blocks != sum.freed_blocks &&
        !free_one_by_one(index, owner->heap))
        return ENOMEM;
    fold_counters(index);
    int threads = ta__world_size();
    for (int thread = 0; thread < threads; thread++)
        drop_part((struct ta__thread *)ta__world_member(thread), index);
    if (!is_shared) {
        if (domain->heap != NULL) {
            mark_ruins(domain->heap);
            ta__heap_destroy(domain->heap);
            domain->heap = NULL;
        }
        table.own_heaps--;
    }
    /* The shared heap outlives the domain that it is named after; its index is never used again. */
    ta__store_relaxed(&domain->flags, domain->flags | TA__DOMAIN_DESTROYED);
    ta__store_relaxed(&ta__domain_cache[domain->number % TA__DOMAIN_CACHE], (uint64_t)0);
    if (index != table.shared_index)
        table.retired[table.retired_end++ % TA__DOMAINS_MAX] = index;
    return 0;
}

TA_API int ta_domain_destroy(uint32_t number)
{
    struct ta__thread *self = ta__thread_get();
    if (number == 0 || self == NULL) {
        errno = EINVAL;
        return ta__error_set(number == 0 ? "domain 0 cannot be destroyed" : "not from inside the allocator", NULL);
    }
    ta__domain_stop(self);
    int index = ta__domain_known(number);
    int error = ENOENT;
    if (index > 0) {
        ta__lock_acquire(&table.lock);
        error = destroy((uint32_t)index);
        ta__lock_release(&table.lock);
    }
    ta__domain_resume(self);
    if (error == 0)
        return 0;
    errno = error;
    return ta__error_set(error == ENOENT  ? "there is no such domain"
                         : error == EBUSY ? "a rule in force names the domain"
                                          : "no memory to list the domain's blocks",
                         NULL);
}

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

enum { FIRST_ARENA = 0x40000000 }; /* numbers that people do not choose */

TA_API int ta_domain_create_arena(uint32_t *number)
{
    uint32_t gate;
    struct ta__thread *self = ta__thread_get() != NULL ? ta__begin(&gate) : NULL;
    uint32_t index = 0;
    if (self != NULL) {
        ta__lock_acquire(&table.lock);
        uint32_t candidate;
        do
            candidate = FIRST_ARENA + (table.arenas_numbered++ & 0x3FFFFFFF);
        while (ta__domain_find_number(candidate) != 0);
        index = ta__domain_make(candidate, TA__DOMAIN_ARENA);
        ta__lock_release(&table.lock);
        if (index != 0 && (ta__gate_read() & TA__GATE_DOMAINS) == 0)
            ta__gate_change(TA__GATE_DOMAINS, 0);
        if (index != 0)
            *number = candidate;
        ta__end(self, gate);
    }
    if (index != 0)
        return 0;
    errno = ENOMEM;
    return ta__error_set("there is no room for another arena", NULL);
}
