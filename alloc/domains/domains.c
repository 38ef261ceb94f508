/* domains.c: the table of domains, and what each thread keeps of them. See domains.h. The public calls are in
 * domain_api.c, destruction is in domain_destroy.c. */
#include "alloc/domains/domains.h"

#include "alloc/domains/domain_table.h"
#include "alloc/domains/shared_blocks.h"
#include "alloc/header.h"
#include "alloc/heap.h"
#include "base/hash.h"
#include "base/memory.h"
#include "trace/attribution.h"

struct ta__domain_table ta__domain_table = {.lock = {.rank = TA__RANK_DOMAINS}};
uint64_t ta__domain_cache[TA__DOMAIN_CACHE];
void *ta__plain_heap;
static void *lined_heap; /* NULL until something asks for it; release */
struct ta__domain_slot ta__slot_none;
void (*ta__domain_on_limit)(uint32_t number);

/* Read, never written: a push finds no match, a pop an edge. */
struct ta__scope ta__scope_none[2] = {{.key = TA__SCOPE_EDGE}, {.key = TA__SCOPE_UNCACHED}};

#define table ta__domain_table

static struct ta__domain dead = {.flags = TA__DOMAIN_DESTROYED, .name = ""};

/* Room for the domain of this index; 0 when there is no memory. */
static int make_chunk(uint32_t index)
{
    struct ta__domain **chunk = &table.chunks[index / TA__DOMAIN_CHUNK];
    if (*chunk == NULL)
        ta__store_release(chunk, (struct ta__domain *)ta__memory_map(TA__DOMAIN_CHUNK * sizeof **chunk));
    return *chunk != NULL;
}

int ta__domains_init(void)
{
    if (table.count != 0)
        return 1;
    if (!make_chunk(0))
        return 0;
    ta__slot_none.theap = TA__THEAP_EMPTY;
    ta__slot_lose_part(&ta__slot_none);
    ta__plain_heap = ta__heap_new(NULL, 0);
    ta__domain_at(0)->name = "";
    table.count = 1;
    return ta__plain_heap != NULL;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Under the lock: the cell of a number, or the empty one where it would go. Cells of indexes that have another number
 * by now are passed over. */
static uint32_t *find_cell(uint32_t number)
{
    uint32_t mask = table.cells_size - 1;
    for (uint32_t at = (uint32_t)ta__hash_word(number) & mask;; at = (at + 1) & mask) {
        uint32_t found = table.cells[at];
        if (found == 0 || ta__domain_at(found)->number == number)
            return &table.cells[at];
    }
}

/* Keeps at least half of the cells empty; stale ones go. */
static int make_room(void)
{
    if (table.cells_size != 0 && table.cells_used * 2 < table.cells_size)
        return 1;
    uint32_t size = table.cells_size == 0 ? 1024 : table.cells_size;
    uint32_t living = 0;
    for (uint32_t index = 1; index < table.count; index++)
        living += !ta__domain_is_dead(ta__domain_at(index));
    while (size < living * 4)
        size *= 2;
    uint32_t *cells = ta__memory_map(size * sizeof *cells);
    if (cells == NULL)
        return table.cells_used + 1 < table.cells_size;
    ta__memory_unmap(table.cells, table.cells_size * sizeof *cells);
    table.cells = cells;
    table.cells_size = size;
    table.cells_used = 0;
    for (uint32_t index = 1; index < table.count; index++)
        if (!ta__domain_is_dead(ta__domain_at(index))) {
            *find_cell(ta__domain_at(index)->number) = index;
            table.cells_used++;
        }
    return 1;
}

static uint64_t *cache_of(uint32_t number)
{
    return &ta__domain_cache[number % TA__DOMAIN_CACHE];
}

uint32_t ta__domain_find_number(uint32_t number)
{
    uint32_t index = table.cells_size != 0 ? *find_cell(number) : 0;
    return index != 0 && !ta__domain_is_dead(ta__domain_at(index)) ? index : 0;
}

/* An index that names no living domain: a fresh one, or the one that has been out of use for longest. */
static uint32_t take_index(void)
{
    uint32_t waiting = table.retired_end - table.retired_begin;
    if (waiting > RETIRED_MIN || (table.count >= TA__DOMAIN_DEAD && waiting > 0))
        return table.retired[table.retired_begin++ % TA__DOMAINS_MAX];
    return table.count < TA__DOMAIN_DEAD ? table.count : 0;
}

uint32_t ta__domain_make(uint32_t number, uint32_t flags)
{
    if (!make_room())
        return 0;
    uint32_t index = take_index();
    if (index == 0 || !make_chunk(index))
        return 0;
    struct ta__domain *domain = ta__domain_at(index);
    *domain = (struct ta__domain){.number = number, .index = index, .flags = flags, .name = ""};
    if (index == table.count)
        ta__store_release(&table.count, index + 1);
    uint32_t *cell = find_cell(number);
    table.cells_used += *cell == 0;
    *cell = index;
    return index;
}

int ta__domain_known(uint32_t number)
{
    if (number == 0)
        return 0;
    uint64_t cached = ta__load_acquire(cache_of(number));
    if (cached >> 32 == number)
        return (int)(uint32_t)cached;
    ta__lock_acquire(&table.lock);
    uint32_t index = ta__domain_find_number(number);
    ta__lock_release(&table.lock);
    return index != 0 ? (int)index : TA__DOMAIN_NONE;
}

int ta__domain_index(uint32_t number)
{
    if (number == 0)
        return 0;
    uint64_t cached = ta__load_acquire(cache_of(number));
    if (cached >> 32 == number)
        return (int)(uint32_t)cached;
    ta__lock_acquire(&table.lock);
    uint32_t index = ta__domain_find_number(number);
    int is_new = index == 0;
    if (is_new)
        index = ta__domain_make(number, 0);
    if (index != 0)
        ta__store_release(cache_of(number), (uint64_t)number << 32 | index);
    ta__lock_release(&table.lock);
    if (is_new && index != 0 && (ta__gate_read() & TA__GATE_DOMAINS) == 0)
        ta__gate_change(TA__GATE_DOMAINS, 0);
    return index != 0 ? (int)index : TA__DOMAIN_NONE;
}

uint32_t ta__domain_count(void)
{
    return ta__load_acquire(&table.count);
}

struct ta__domain *ta__domain_at(uint32_t index)
{
    if (index == TA__DOMAIN_DEAD)
        return &dead;
    return &ta__load_acquire(&table.chunks[index / TA__DOMAIN_CHUNK])[index % TA__DOMAIN_CHUNK];
}

/* Its threads are gone, but a new one may be where one of them was: their pages are then its own, their slots not. */
static void lose_parts_of_others(const struct ta__thread *self)
{
    for (int i = ta__safepoint_size(); i-- > 0;) {
        const struct ta__thread *thread = (const struct ta__thread *)ta__safepoint_member(i);
        struct ta__domain_parts *parts = thread != NULL && thread != self ? thread->domains : NULL;
        for (uint32_t cold = 1; parts != NULL && cold < parts->cold_count; cold++)
            ta__slot_lose_part(&parts->slots[parts->cold[cold].index]);
    }
}

void ta__domains_after_fork(const struct ta__thread *self)
{
    lose_parts_of_others(self);
    ta__lock_after_fork(&table.lock);
    ta__shared_after_fork();
}

/* ---- a thread's slots -------------------------------------------------------------------------------------------- */

uint32_t ta__domain_capture(uint32_t index)
{
    return index; /* an explicit domain 0 is not for rules to change */
}

int ta__domains_adapt(struct ta__thread *self)
{
    struct ta__domain_parts *parts = self->domains;
    if (parts == NULL) {
        parts = ta__memory_map(sizeof *parts);
        if (parts == NULL)
            return 0;
        parts->slots[0].headroom = INT64_MAX / 2; /* domain 0 is not counted here: it never has a new high */
        parts->slots[0].traced_check = (uint16_t)ta__check_of_kind(TA__KIND_TRACED);
        parts->slots[0].cold = parts->cold_count = 1;
        parts->scopes[0] = (struct ta__scope){.slot = &parts->slots[0], .key = TA__SCOPE_EDGE};
        parts->scopes_filled = 1;
        parts->scopes[1].key = TA__SCOPE_UNCACHED;
        ta__store_release(&self->domains, parts);
    }
    parts->slots[0].theap = self->headed;
    parts->scopes[0].capture = ta__attribution_key();
    if (self->scope == ta__scope_none)
        self->scope = parts->scopes;
    return 1;
}

static void set_checks(struct ta__domain_slot *slot, uint32_t untraced_kind, uint32_t traced_kind)
{
    slot->untraced_mark = ta__mark_made(ta__check_of_kind(untraced_kind), ta__slot_index(slot), 1);
    slot->traced_check = (uint16_t)ta__check_of_kind(traced_kind);
}

void ta__slot_take_part(struct ta__domain_slot *slot, void *part)
{
    ta__heap_part_owned_by(part, slot);
    set_checks(slot, TA__KIND_DOMAIN, TA__KIND_DOMAIN | TA__KIND_TRACED);
    slot->theap = part;
}

void ta__slot_lose_part(struct ta__domain_slot *slot)
{
    slot->theap = TA__THEAP_EMPTY;
    set_checks(slot, TA__KIND_NEVER, TA__KIND_NEVER);
}

int ta__slot_has_part(const struct ta__domain_slot *slot)
{
    return slot->theap != NULL && slot->theap != TA__THEAP_EMPTY;
}

struct ta__domain_slot *ta__domain_slot(struct ta__thread *self, uint32_t index)
{
    if (TA_UNLIKELY(self->domains == NULL) && !ta__domains_adapt(self))
        return NULL;
    struct ta__domain_parts *parts = self->domains;
    struct ta__domain_slot *slot = &parts->slots[index];
    if (TA_UNLIKELY(slot->cold == 0)) {
        uint32_t cold = parts->cold_count;
        parts->cold[cold] = (struct ta__domain_cold){.index = index};
        slot->untraced_mark = ta__mark_made(0, index, 0);
        ta__slot_lose_part(slot);
        slot->cold = cold;
        ta__store_release(&parts->cold_count, cold + 1);
    }
    return slot;
}

/* Whose heap the domain uses is decided by its first block: a scope in which nothing is allocated takes none. Answers
 * the index of the heap's domain, 0 when there is no memory. */
TA_COLD static uint32_t settle_heap(uint32_t index)
{
    struct ta__domain *domain = ta__domain_at(index);
    ta__lock_acquire(&table.lock);
    if (domain->heap_index == 0) {
        int is_shared = (domain->flags & TA__DOMAIN_ARENA) == 0 && table.own_heaps >= TA__DOMAIN_HEAPS_MAX;
        uint32_t owner = is_shared && table.shared_index != 0 ? table.shared_index : index;
        struct ta__domain *holder = ta__domain_at(owner);
        if (holder->heap == NULL)
            holder->heap = ta__heap_new(&ta__slot_none, 0);
        if (holder->heap != NULL) {
            if (is_shared)
                table.shared_index = owner;
            table.own_heaps += !is_shared;
            ta__store_relaxed(&domain->is_shared, (uint32_t)is_shared);
            ta__store_release(&domain->heap_index, owner);
        }
    }
    uint32_t owner = domain->heap_index;
    ta__lock_release(&table.lock);
    return owner;
}

/* The thread's first block of domain 0 that has a header. */
TA_COLD static void *make_headed_part(struct ta__thread *self)
{
    struct ta__domain *domain = ta__domain_at(0);
    ta__lock_acquire(&table.lock);
    if (domain->heap == NULL)
        ta__store_release(&domain->heap, ta__heap_new(&ta__slot_none, 0));
    ta__lock_release(&table.lock);
    void *part = domain->heap != NULL ? ta__heap_part(domain->heap) : NULL;
    if (part == NULL)
        return NULL;
    self->headed = part;
    if (self->domains != NULL)
        self->domains->slots[0].theap = part;
    return part;
}

void *ta__lined_part(struct ta__thread *self)
{
    if (TA_LIKELY(self->lined != TA__THEAP_EMPTY))
        return self->lined;
    ta__lock_acquire(&table.lock);
    if (lined_heap == NULL)
        ta__store_release(&lined_heap, ta__heap_new(&ta__slot_none, 1));
    ta__lock_release(&table.lock);
    void *part = lined_heap != NULL ? ta__heap_part(lined_heap) : NULL;
    if (part != NULL)
        self->lined = part;
    return part;
}

void *ta__domain_part(struct ta__thread *self, uint32_t index)
{
    if (index == 0)
        return TA_LIKELY(self->headed != TA__THEAP_EMPTY) ? self->headed : make_headed_part(self);
    struct ta__domain_slot *slot = ta__domain_slot(self, index);
    if (slot == NULL)
        return NULL;
    if (ta__slot_has_part(slot))
        return slot->theap;
    const struct ta__domain *domain = ta__domain_at(index);
    uint32_t owner = ta__load_acquire(&domain->heap_index);
    if (owner == 0 && (owner = settle_heap(index)) == 0)
        return NULL;
    void *part = ta__heap_part(ta__domain_at(owner)->heap);
    if (part != NULL && !ta__load_relaxed(&domain->is_shared))
        ta__slot_take_part(slot, part);
    return part;
}

uint32_t ta__domain_ambient(struct ta__thread *self)
{
    if (TA_LIKELY(self->domains == NULL))
        return 0;
    struct ta__scope *scope = self->scope;
    if (scope->slot == NULL)
        return 0;
    uint32_t index = (uint32_t)(scope->slot - self->domains->slots);
    if (TA_LIKELY(!ta__domain_is_dead(ta__domain_at(index))))
        return index;
    /* Its domain was destroyed: the scope goes on in the number's next life. */
    int fresh = ta__domain_index(scope->number);
    struct ta__domain_slot *slot = fresh >= 0 ? ta__domain_slot(self, (uint32_t)fresh) : NULL;
    if (slot == NULL)
        return 0;
    scope->slot = slot;
    scope->capture = ta__domain_capture((uint32_t)fresh);
    return (uint32_t)fresh;
}

void ta__domain_heaps(void (*visit)(void *heap, uint32_t domain, void *context), void *context)
{
    void *lined = ta__load_acquire(&lined_heap);
    if (lined != NULL)
        visit(lined, 0, context);
    for (uint32_t index = 0; index < ta__domain_count(); index++)
        if (ta__domain_at(index)->heap != NULL)
            visit(ta__domain_at(index)->heap, index, context);
}

void ta__domains_thread_done(struct ta__thread *self)
{
    struct ta__domain_parts *parts = self->domains;
    self->scope = ta__scope_none;
    self->crossed = 0;
    if (parts == NULL)
        return;
    for (uint32_t cold = 1; cold < parts->cold_count; cold++) {
        struct ta__domain_slot *slot = &parts->slots[parts->cold[cold].index];
        if (slot->cold == cold) {
            ta__domain_flush(self, slot);
            ta__slot_lose_part(slot);
        }
    }
    parts->slots[0].theap = TA__THEAP_EMPTY;
    for (uint32_t i = 1; i < parts->scopes_filled; i++)
        parts->scopes[i].key = TA__SCOPE_UNCACHED;
    parts->scopes_over = 0;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void raise_peak(struct ta__domain *domain, int64_t candidate)
{
    int64_t peak = ta__load_relaxed(&domain->peak);
    while (candidate > peak && !ta__cas_relaxed(&domain->peak, &peak, candidate))
        ;
}

void ta__domain_flush(struct ta__thread *self, struct ta__domain_slot *slot)
{
    struct ta__domain *domain = ta__domain_at((uint32_t)(slot - self->domains->slots));
    struct ta__domain_cold *cold = &self->domains->cold[slot->cold];
    int64_t delta = cold->high - slot->headroom;
    int64_t before = __atomic_fetch_add(&domain->current, delta, __ATOMIC_RELAXED);
    raise_peak(domain, before + cold->high);
    ta__store_relaxed(&cold->high, 0);
    ta__store_relaxed(&slot->headroom, 0);
    if (TA_UNLIKELY(ta__load_relaxed(&domain->is_above) != 0) && (uint64_t)(before + delta) <= domain->soft)
        ta__store_relaxed(&domain->is_above, 0u);
}

static int new_high(struct ta__thread *self, struct ta__domain_slot *slot, size_t size, int may_refuse)
{
    uint32_t index = (uint32_t)(slot - self->domains->slots);
    struct ta__domain *domain = ta__domain_at(index);
    struct ta__domain_cold *cold = &self->domains->cold[slot->cold];
    int64_t high = cold->high - slot->headroom;
    int64_t live = ta__load_relaxed(&domain->current) + high;
    uint64_t hard = ta__load_relaxed(&domain->hard);
    if (TA_UNLIKELY(hard != 0 && live > (int64_t)hard && may_refuse)) {
        ta__owner_add(&slot->allocated_blocks, (uint64_t)-1);
        ta__owner_add(&slot->allocated_bytes, -(uint64_t)size);
        ta__owner_add(&slot->headroom, (int64_t)size);
        return 0;
    }
    ta__store_relaxed(&cold->high, high);
    ta__store_relaxed(&slot->headroom, 0);
    uint64_t soft = ta__load_relaxed(&domain->soft);
    if (TA_UNLIKELY(soft != 0 && live > (int64_t)soft)) {
        uint32_t below = 0;
        if (ta__cas_relaxed(&domain->is_above, &below, 1u)) {
            ta__add_relaxed(&domain->crossings, 1);
            self->crossed = index;
        }
    }
    if (high > TA__FLUSH_BYTES)
        ta__domain_flush(self, slot);
    return 1;
}

int ta__domain_new_high(struct ta__thread *self, struct ta__domain_slot *slot, size_t size)
{
    if (slot->headroom >= 0) /* it was the thread's sum over all domains that is new */
        return 1;
    return new_high(self, slot, size, 1);
}

enum lone { ALLOCATED, FREED };

/* For a thread that has no slot of the domain. */
static void count_lone(uint32_t index, enum lone what, uint64_t sign, size_t size)
{
    struct ta__domain *domain = ta__domain_at(index);
    ta__add_relaxed(what == FREED ? &domain->lone_freed_blocks : &domain->lone_allocated_blocks, sign);
    ta__add_relaxed(what == FREED ? &domain->lone_freed_bytes : &domain->lone_allocated_bytes, sign * size);
}

int ta__domain_charge(struct ta__thread *self, uint32_t index, size_t size)
{
    if (TA_LIKELY(index == 0))
        return 1;
    struct ta__domain_slot *slot = ta__domain_slot(self, index);
    if (slot != NULL)
        return !ta__domain_count_in(slot, size) || ta__domain_new_high(self, slot, size);
    count_lone(index, ALLOCATED, 1, size);
    return 1;
}

void ta__domain_note(struct ta__thread *self, uint32_t index, size_t size)
{
    if (index == 0)
        return;
    struct ta__domain_slot *slot = ta__domain_slot(self, index);
    if (slot == NULL)
        count_lone(index, ALLOCATED, 1, size);
    else if (ta__domain_count_in(slot, size))
        new_high(self, slot, size, 0);
}

void ta__domain_discharge(struct ta__thread *self, uint32_t index, size_t size)
{
    if (TA_LIKELY(index == 0))
        return;
    struct ta__domain_slot *slot = ta__domain_slot(self, index);
    if (slot == NULL) {
        count_lone(index, FREED, 1, size);
        return;
    }
    ta__domain_count_out(slot, size);
    if (ta__domain_is_flush_due(slot))
        ta__domain_flush(self, slot);
}

void ta__domain_recharge(struct ta__thread *self, uint32_t index, size_t size)
{
    if (TA_LIKELY(index == 0))
        return;
    struct ta__domain_slot *slot = ta__domain_slot(self, index);
    if (slot == NULL) {
        count_lone(index, FREED, (uint64_t)-1, size);
        return;
    }
    ta__owner_add(&slot->freed_blocks, (uint64_t)-1);
    ta__owner_add(&slot->freed_bytes, -(uint64_t)size);
    ta__owner_add(&slot->headroom, -(int64_t)size); /* below 0: the next allocation finds a new high */
}

void ta__domain_say_crossed(struct ta__thread *self)
{
    struct ta__domain *domain = ta__domain_at(self->crossed);
    self->crossed = 0;
    if (ta__domain_on_limit != NULL)
        ta__domain_on_limit(domain->number);
    void (*callback)(uint32_t, uint64_t, void *) = ta__load_acquire(&domain->callback);
    if (callback != NULL)
        callback(domain->number, ta__domain_live_bytes(domain), ta__load_relaxed(&domain->context));
}
