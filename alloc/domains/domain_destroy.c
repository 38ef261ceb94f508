/* domain_destroy.c: the end of a domain — all its blocks at once — and arenas, which are made for it.
 *
 * With the world stopped nobody is inside the allocator, so that nothing of the heap is in use: its blocks become freed
 * in every counter, every thread's part is dropped, scopes that name it point to the dead slot, and the heap goes. What
 * takes time in proportion to the domain is done afterwards: blocks that stand in a shared heap are freed some thousand at
 * a time, records of ta_track are taken out.
 * Pages of a destroyed heap are marked: a pointer into one that does not verify later is probably a block of it, which
 * is not worth an abort. */
#include <errno.h>
#include <stddef.h>

#include "alloc/alloc.h"
#include "alloc/domains/domain_table.h"
#include "alloc/domains/shared_blocks.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/safepoint.h"
#include "trace/tracked.h"
#include "tracealloc/domain.h"

#define table ta__domain_table

/* ---- where destroyed domains were ---- */

enum { SLICE_SHIFT = 16, ADDRESS_BITS = 47 };

/* One bit per slice of the address space; NULL until a domain is destroyed, and where there is no memory for it. */
static uint8_t *ruins;

static void mark_area(uintptr_t start, size_t bytes, void *context)
{
    (void)context;
    for (uintptr_t slice = start >> SLICE_SHIFT; slice <= (start + bytes - 1) >> SLICE_SHIFT; slice++)
        if (slice < UINT64_C(1) << (ADDRESS_BITS - SLICE_SHIFT))
            __atomic_fetch_or(&ruins[slice / 8], (uint8_t)(1 << slice % 8), __ATOMIC_RELAXED);
}

/* Under the table's lock. */
static void prepare_ruins(void)
{
    if (ruins == NULL)
        ta__store_release(&ruins, (uint8_t *)ta__memory_map((size_t)1 << (ADDRESS_BITS - SLICE_SHIFT - 3)));
}

int ta__domain_stood_at(const void *address)
{
    const uint8_t *marks = ta__load_acquire(&ruins);
    uintptr_t slice = (uintptr_t)address >> SLICE_SHIFT;
    return marks != NULL && slice < UINT64_C(1) << (ADDRESS_BITS - SLICE_SHIFT) &&
           (ta__load_relaxed(&marks[slice / 8]) >> slice % 8 & 1) != 0;
}

/* ---- the end ---- */

static void ignore_entry(const struct ta__tracked *entry, void *context)
{
    (void)entry, (void)context;
}

/* Counts all that was live as freed, and every trace of it with that. */
static void fold_counters(uint32_t index)
{
    ta__counters_before_drop();
    for (uint32_t leaf = ta__leaf_next(index, 0); leaf != 0; leaf = ta__leaf_next(index, leaf))
        ta__counters_drop(leaf);
}

/* Takes the domain's part from the thread. Its scopes learn at their next use what the number means then. */
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
        parts->slots[TA__DOMAIN_DEAD].theap = TA__THEAP_EMPTY;
        ta__store_relaxed(&scope->slot, &parts->slots[TA__DOMAIN_DEAD]);
    }
    if (slot->cold == 0)
        return;
    ta__store_relaxed(&parts->cold[slot->cold].high, 0);
    ta__slot_lose_part(slot);
    slot->allocated_blocks = slot->allocated_bytes = slot->freed_blocks = slot->freed_bytes = 0;
    slot->headroom = 0;
}

/* What is left to do when the others run again. */
struct remains {
    uint32_t index;
    uint32_t first_block; /* of a shared heap: all that the domain had */
    int is_tracked;
};

/* The caller has stopped the world and holds the table's lock. */
static int end_life(uint32_t index, struct remains *remains)
{
    struct ta__domain *domain = ta__domain_at(index);
    if (ta__load_relaxed(&domain->is_ruled))
        return EBUSY;
    fold_counters(index);
    int threads = ta__safepoint_size();
    for (int thread = 0; thread < threads; thread++)
        drop_part((struct ta__thread *)ta__safepoint_member(thread), index);
    prepare_ruins();
    if (!domain->is_shared && domain->heap != NULL) {
        if (ruins != NULL)
            ta__heap_visit_areas(domain->heap, mark_area, NULL);
        ta__heap_destroy(domain->heap);
        domain->heap = NULL;
        table.own_heaps--;
    }
    *remains = (struct remains){index, domain->first_block, (int)domain->is_tracked};
    domain->first_block = 0;
    ta__store_relaxed(&domain->flags, domain->flags | TA__DOMAIN_DESTROYED);
    ta__store_relaxed(&ta__domain_cache[domain->number % TA__DOMAIN_CACHE], (uint64_t)0);
    return 0;
}

/* The blocks of a dead domain are free for nobody else yet: until each is freed here, free refuses it. While nobody is
 * inside, because whoever frees such a block at the same moment has looked at it already; so many at a time that nobody
 * waits for long. 0: a thread does not come out, and what is left is lost. */
static int free_blocks(struct ta__thread *self, uint32_t index, uint32_t first)
{
    enum { AT_ONCE = 4096 };
    void *user = NULL;
    do {
        if (ta__safepoint_stop(&self->safepoint) != TA__STOP_DONE)
            return 0;
        for (int i = 0; i < AT_ONCE && (user = ta__shared_take(&first)) != NULL; i++) {
            if (ruins != NULL)
                mark_area((uintptr_t)user, 1, NULL);
            ta__release_dead(user, index);
        }
        ta__safepoint_resume(&self->safepoint);
    } while (user != NULL);
    return 1;
}

/* Then the index may be used again (without memory to note it, it is lost). That of the domain whose heap is the shared one
 * never is: the heap outlives it. */
static void bury(struct ta__thread *self, const struct remains *remains)
{
    uint32_t gate;
    if (remains->first_block != 0 && !free_blocks(self, remains->index, remains->first_block))
        return; /* its index, too */
    self = ta__begin(&gate);
    if (self == NULL)
        return;
    if (remains->is_tracked)
        ta__tracked_take_domain(remains->index, ignore_entry, NULL);
    ta__lock_acquire(&table.lock);
    if (table.retired == NULL)
        table.retired = ta__memory_map(TA__DOMAINS_MAX * sizeof *table.retired);
    if (remains->index != table.shared_index && table.retired != NULL)
        table.retired[table.retired_end++ % TA__DOMAINS_MAX] = remains->index;
    ta__lock_release(&table.lock);
    ta__end(self, gate);
}

TA_API int ta_domain_destroy(uint32_t number)
{
    struct ta__thread *self = ta__thread_get();
    if (number == 0 || self == NULL) {
        errno = EINVAL;
        return ta__error_set(number == 0 ? "domain 0 cannot be destroyed" : "not from inside the allocator", NULL);
    }
    struct remains remains;
    enum ta__stop stop = ta__safepoint_stop(&self->safepoint);
    if (stop != TA__STOP_DONE)
        return ta__safepoint_refused(stop);
    int index = ta__domain_known(number);
    int error = ENOENT;
    if (index > 0) {
        ta__lock_acquire(&table.lock);
        error = end_life((uint32_t)index, &remains);
        ta__lock_release(&table.lock);
    }
    ta__safepoint_resume(&self->safepoint);
    if (error == 0) {
        bury(self, &remains);
        return 0;
    }
    errno = error;
    return ta__error_set(error == ENOENT ? "there is no such domain" : "a rule in force names the domain", NULL);
}

/* ---- arenas ---- */

enum { FIRST_ARENA = 0x40000000 }; /* beyond the numbers that people choose */

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
