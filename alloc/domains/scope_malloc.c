/* scope_malloc.c: the common case where domains are in use: malloc in a scope, requests that name their domain, and the
 * free of a block of a domain. As in malloc.c and free.c, what is uncommon goes to slow.c.
 *
 * A thread's slot of a domain has its part of the heap, whose blocks all have headers: free finds the domain by the leaf.
 * Slot 0 stands for domain 0, whose untraced blocks are plain. */
#include "alloc/fast_path.h"

#include "alloc/domains/shared_blocks.h"
#include "alloc/entry.h"
#include "trace/capture.h"
#include "tracealloc/domain.h"

/* ---- counting ----------------------------------------------------------------------------------------------------- */

/* The thread's slot has a new highest sum: a limit may refuse the block. The arguments are in the registers where the hot
 * functions have them. */
TA_COLD static void *new_high(size_t size, struct ta__thread *self, uint32_t gate, struct ta__domain_slot *slot,
                              void *user)
{
    uint64_t mark = ta__mark_of(user);
    if (!ta__domain_new_high(self, slot, size)) {
        if ((ta__mark_kind(user, mark) & TA__KIND_TRACED) != 0)
            ta__count_undo(self, ta__mark_leaf(mark), size);
        ta__shared_block_out((uint32_t)(slot - self->domains->slots), user, size);
        ta__heap_free(ta__heap_page(user), (char *)user - TA__MARK_SIZE);
        user = NULL;
    } else if (self->headroom < 0) {
        ta__counters_new_high(self);
    }
    ta__leave_sealed(self, gate);
    ta__leave(self);
    if (self->crossed != 0)
        ta__domain_say_crossed(self);
    return user != NULL ? user : ta__out_of_memory();
}

/* From the slot of any domain, be it in use or not. */
TA_INLINE void *pop(const struct ta__domain_slot *slot, size_t size)
{
    return TA_LIKELY(slot->theap != NULL) ? ta__heap_pop(slot->theap, size) : NULL;
}

/* ---- nothing is traced -------------------------------------------------------------------------------------------- */

/* The block says its domain alone. */
TA_INLINE void *untraced_in_slot(size_t size, struct ta__thread *self, uint32_t gate, struct ta__domain_slot *slot,
                                 void *block)
{
    void *user = (char *)block + TA__MARK_SIZE;
    ta__header_write_from(user, &slot->untraced_mark, size);
    if (TA_UNLIKELY(ta__domain_count_in(slot, size)))
        return new_high(size, self, gate, slot, user);
    ta__leave(self);
    return user;
}

/* The page's list is empty. */
TA_COLD static void *refill_in_slot(size_t size, struct ta__thread *self, uint32_t gate, struct ta__domain_slot *slot)
{
    if (!ta__slot_has_part(slot))
        return ta__malloc_slow(size);
    void *block = ta__heap_pop_freed(slot->theap, size);
    if (block == NULL) {
        char *user = ta__heap_allocate_behind(slot->theap, size, 0);
        if (user == NULL)
            return ta__malloc_slow(size);
        block = user - TA__MARK_SIZE;
    }
    return untraced_in_slot(size, self, gate, slot, block);
}

/* Of domain 0, when that takes more than a pop. */
__attribute__((noinline)) static void *plain_rest(size_t size, struct ta__thread *self)
{
    void *user = ta__malloc_plain_rest(size, self);
    return TA_LIKELY(user != NULL) ? user : ta__malloc_slow(size);
}

__attribute__((noinline)) void *ta__malloc_in_scope(size_t size, struct ta__thread *self)
{
    /* Outside of an operation: the domain may be destroyed meanwhile, and then the slot has no part of a heap any more. */
    struct ta__domain_slot *slot = ta__load_relaxed(&self->scope->slot);
    if (slot == self->domains->slots) {
        void *block = TA_LIKELY(size <= TA__SMALL_REQUEST_MAX) ? ta__heap_pop(self->theap, size) : NULL;
        return TA_LIKELY(block != NULL) ? block : plain_rest(size, self);
    }
    ta__safepoint_mark(&self->safepoint);
    uint32_t gate = self->safepoint.view;
    if (TA_UNLIKELY(ta__operand_acquire(&ta__gate) != gate || size > TA__SMALL_REQUEST_MAX))
        return ta__malloc_slow(size);
    void *block = ta__heap_pop(slot->theap, size);
    if (TA_UNLIKELY(block == NULL))
        return refill_in_slot(size, self, gate, slot);
    return untraced_in_slot(size, self, gate, slot, block);
}

__attribute__((noinline)) void *ta__malloc_sampled_in_scope(size_t size, struct ta__thread *self)
{
    ta__safepoint_mark(&self->safepoint);
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(gate != self->safepoint.view || size - 1 >= TA__SMALL_REQUEST_MAX ||
                    self->sample_left < (int64_t)size))
        return ta__malloc_slow(size);
    struct ta__domain_slot *slot = self->scope->slot;
    int is_plain = slot == self->domains->slots;
    void *block = ta__heap_pop(is_plain ? self->theap : slot->theap, size);
    if (TA_UNLIKELY(block == NULL))
        return ta__malloc_slow(size);
    self->sample_left -= (int64_t)size;
    if (!is_plain)
        return untraced_in_slot(size, self, gate, slot, block);
    ta__leave(self);
    return block;
}

/* ---- traced ------------------------------------------------------------------------------------------------------- */

/* The thread's sum over all domains is a new highest; the slot's has not been counted. */
TA_COLD static void *new_high_of_all(size_t size, struct ta__thread *self, uint32_t gate, struct ta__domain_slot *slot,
                                     void *user)
{
    (void)!ta__domain_count_in(slot, size);
    return new_high(size, self, gate, slot, user);
}

TA_INLINE void *traced_in_slot(size_t size, struct ta__thread *self, uint32_t leaf, struct ta__source_counts *row,
                               uint32_t gate, struct ta__domain_slot *slot, uint32_t check, void *block)
{
    void *user = ta__header_write_short(block, check, leaf, size);
    if (TA_UNLIKELY(ta__count_in_row(self, row, size)))
        return new_high_of_all(size, self, gate, slot, user);
    if (TA_UNLIKELY(ta__domain_count_in(slot, size)))
        return new_high(size, self, gate, slot, user);
    ta__leave_sealed(self, gate);
    return user;
}

/* There is no leaf, or the thread has no block or no part of the heap yet, or the scope's domain was destroyed. */
TA_COLD static void *traced_rest(size_t size, struct ta__thread *self, uint32_t leaf, uint32_t gate)
{
    uint32_t domain = ta__leaf_domain(leaf);
    if (leaf == 0 || ta__domain_is_dead(ta__domain_at(domain))) {
        ta__leave_sealed(self, gate);
        return ta__malloc_slow(size);
    }
    void *theap = ta__domain_part(self, domain);
    size_t extra = ta__shared_extra(domain);
    char *user = theap != NULL ? ta__heap_allocate_behind(theap, size + extra, 0) : NULL;
    if (user != NULL) {
        ta__shared_block_in(domain, user, size);
        uint32_t kind = domain != 0 ? TA__KIND_DOMAIN | TA__KIND_TRACED : TA__KIND_TRACED;
        return traced_in_slot(size, self, leaf, &self->counts[leaf], gate, &self->domains->slots[domain],
                              ta__check_of_kind(kind), user - TA__MARK_SIZE);
    }
    ta__leave_sealed(self, gate);
    return ta__out_of_memory();
}

/* The rest of a traced allocation in the slot of its leaf's domain, be that the call's, the scope's or a rule's. */
TA_INLINE void *traced_in_row(size_t size, struct ta__thread *self, uint32_t leaf, struct ta__source_counts *row,
                              struct ta__domain_slot *slot, uint32_t gate)
{
    void *block = pop(slot, size);
    if (TA_UNLIKELY(block == NULL))
        return traced_rest(size, self, leaf, gate);
    return traced_in_slot(size, self, leaf, row, gate, slot, slot->traced_check, block);
}

TA_INLINE void *traced_in_domain(size_t size, struct ta__thread *self, uint32_t leaf, uint32_t gate)
{
    if (TA_UNLIKELY(leaf == 0))
        return traced_rest(size, self, leaf, gate);
    struct ta__domain_slot *slot = &self->domains->slots[ta__leaves()[leaf].domain];
    return traced_in_row(size, self, leaf, &self->counts[leaf], slot, gate);
}

/* Not the stack that was expected of those that begin like it. */
__attribute__((noinline, noipa)) static void *stack_in_domain_missed(size_t size, struct ta__thread *self, uintptr_t sp,
                                                                     uintptr_t ip, uintptr_t fp, uint32_t gate)
{
    return traced_in_domain(size, self, ta__capture_further(self, ip, sp, fp, self->scope->capture), gate);
}

/* Where neither a scope nor a rule says another, the domain is 0. */
__attribute__((used)) void *ta__stack_in_scope_of(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip,
                                                  uintptr_t fp)
{
    uint32_t gate;
    uint32_t domain = self->scope->capture;
    if (domain == 0)
        return ta__malloc_stack_of(size, self, sp, ip, fp);
    if (TA_UNLIKELY(!ta__begin_sealed(self, &gate, size)))
        return ta__malloc_slow(size);
    uint32_t leaf = ta__kept_find_expected(self, ip, sp, fp, domain);
    if (TA_UNLIKELY(leaf == 0))
        return stack_in_domain_missed(size, self, sp, ta__entered_from(sp, ip), fp, gate);
    ta__check_kept(self, ip, sp, fp, leaf);
    return traced_in_domain(size, self, leaf, gate);
}

TA__ENTERED_WITH_CALLER(extern, ta__malloc_stack_in_scope, ta__stack_in_scope_of)

TA_COLD static void *other_site_in_scope(size_t size, struct ta__thread *self, uint32_t gate, uintptr_t ip)
{
    return traced_in_domain(size, self, ta__capture_one(self, ip, self->scope->capture), gate);
}

__attribute__((noinline)) void *ta__malloc_one_frame_in_scope(size_t size, struct ta__thread *self)
{
    uint32_t gate;
    uint32_t domain = self->scope->capture;
    if (domain == 0)
        return ta__malloc_one_frame(size, self);
    if (TA_UNLIKELY(!ta__begin_sealed(self, &gate, size)))
        return ta__malloc_slow(size);
    uintptr_t ip = (uintptr_t)__builtin_return_address(0);
    if (TA_UNLIKELY(self->one_ip != ta__one_site(ip, domain) || self->one_domain != domain))
        return other_site_in_scope(size, self, gate, ip);
    return traced_in_row(size, self, ta__one_leaf(self), self->one_row, &self->domains->slots[self->one_slot], gate);
}

/* ---- requests that name their domain ------------------------------------------------------------------------------- */

__attribute__((noinline)) static void *domain_malloc_slow(uint32_t domain, size_t size)
{
    return ta__allocate(&(struct ta__request){.size = size, .domain = domain}, TA__CALLER());
}

/* The thread's slot of a number used before; NULL when that takes longer to find out. */
TA_INLINE struct ta__domain_slot *known_slot(const struct ta__thread *self, uint32_t domain)
{
    uint64_t cached = ta__load_acquire(&ta__domain_cache[domain % TA__DOMAIN_CACHE]);
    return TA_LIKELY(cached >> 32 == domain) ? &self->domains->slots[(uint32_t)cached] : NULL;
}

__attribute__((noinline)) static void *domain_malloc_traced(uint32_t domain, size_t size, struct ta__thread *self)
{
    uint32_t gate;
    struct ta__caller caller = TA__CALLER();
    struct ta__domain_slot *slot = known_slot(self, domain);
    if (TA_UNLIKELY(slot == NULL || !ta__seal_marked(self, &gate, size)))
        return domain_malloc_slow(domain, size);
    uint32_t leaf = ta__capture(self, caller.ip, caller.sp, caller.fp, (uint32_t)(slot - self->domains->slots));
    if (TA_UNLIKELY(leaf == 0)) {
        ta__leave_sealed(self, gate);
        return domain_malloc_slow(domain, size);
    }
    return traced_in_domain(size, self, leaf, gate);
}

TA_ENTRY void *ta_domain_malloc(uint32_t domain, size_t size)
{
    struct ta__thread *self = ta__self;
    ta__safepoint_mark(&self->safepoint);
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(gate != self->safepoint.view || self->domains == NULL || (gate & TA__GATE_HEADERS) != 0))
        return domain_malloc_slow(domain, size);
    if ((gate & TA__GATE_TRACING) != 0)
        return (gate & TA__GATE_SAMPLED) != 0 || self->no_trace ? domain_malloc_slow(domain, size)
                                                                : domain_malloc_traced(domain, size, self);
    struct ta__domain_slot *slot = known_slot(self, domain);
    if (TA_UNLIKELY(slot == NULL || size > TA__SMALL_REQUEST_MAX))
        return domain_malloc_slow(domain, size);
    int is_plain = slot == self->domains->slots;
    void *block = is_plain ? ta__heap_pop(self->theap, size) : pop(slot, size);
    if (TA_UNLIKELY(block == NULL))
        return domain_malloc_slow(domain, size);
    if (!is_plain)
        return untraced_in_slot(size, self, gate, slot, block);
    ta__leave(self);
    return block;
}

/* ---- free ---------------------------------------------------------------------------------------------------------- */

/* This thread's slot of a domain; NULL when the slow path must decide: the slot has no part of the heap (it is the
 * thread's first block of the domain, or the domain is gone), or there is no such domain. */
TA_INLINE struct ta__domain_slot *slot_of(const struct ta__thread *self, uint32_t domain)
{
    if (TA_UNLIKELY(self->domains == NULL))
        return NULL;
    struct ta__domain_slot *slot = &self->domains->slots[domain % TA__DOMAINS_MAX];
    return TA_LIKELY(ta__slot_has_part(slot)) ? slot : NULL;
}

/* A block of a domain, not local or not of the usual kind, in a sealed operation. */
__attribute__((cold, noipa)) void ta__free_in_domain(void *user, struct ta__thread *self, uint32_t gate,
                                                     mi_page_t *page)
{
    uint64_t size = ta__mark_size_if(user, self->traced_check ^ (TA__KIND_DOMAIN | TA__KIND_TRACED));
    struct ta__domain_slot *slot = size < page->block_size ? slot_of(self, ta__mark_read_leaf(user)) : NULL;
    if (slot == NULL)
        return ta__free_unsealed(user, self, gate); /* traced, aligned, weighted, large, of another epoch, or wrong */
    ta__domain_count_out(slot, size);
    ta__heap_free(page, (char *)user - TA__MARK_SIZE);
    if (ta__domain_is_flush_due(slot))
        ta__domain_flush(self, slot);
    ta__leave_sealed(self, gate);
}

/* What the block's going brings along: its page is empty now, or sums are due. The arguments are in the registers where the
 * hot functions have them. */
__attribute__((cold, noipa)) static void in_domain_rest(void *user, struct ta__thread *self, uint32_t check,
                                                        mi_page_t *page, uint32_t gate, struct ta__domain_slot *slot)
{
    (void)user, (void)check;
    if (page->used == 0 && page->retire_expire == 0)
        ta__heap_page_emptied(page);
    if (ta__domain_is_flush_due(slot))
        ta__domain_flush(self, slot);
    if (ta__is_flush_due(self))
        ta__counters_flush(self);
    ta__leave_sealed(self, gate);
}

/* Does the page's owner stand for the domain of this block, in this thread? */
TA_INLINE int is_slot_of(const struct ta__domain_slot *slot, const struct ta__thread *self, uint32_t domain)
{
    return slot == &self->domains->slots[domain] && ta__slot_index(slot) == domain;
}

/* Every block is traced, and this one, of a page of the thread's own with headers, is not of the usual kind in domain 0. */
__attribute__((noipa)) void ta__free_traced_in_domain(void *user, struct ta__thread *self, uint32_t check,
                                                      mi_page_t *page, uint32_t gate)
{
    struct ta__domain_slot *slot = ta__page_owner(page);
    if (TA_UNLIKELY((uint16_t)check != slot->traced_check))
        return ta__free_traced_aligned(user, self, gate, page);
    uint64_t size = ta__mark_short_size(user);
    uint32_t leaf = ta__mark_read_leaf(user);
    if (TA_UNLIKELY(size >= page->block_size || leaf < self->leaf_first))
        return ta__free_unsealed(user, self, gate);
    TA_CHECK("D-4", is_slot_of(slot, self, ta__leaf_domain(leaf)));
    ta__count_out(self, leaf, size);
    ta__domain_count_out(slot, size);
    if (TA_UNLIKELY(ta__heap_push(page, (char *)user - TA__MARK_SIZE) || ta__is_flush_due(self) ||
                    ta__domain_is_flush_due(slot)))
        return in_domain_rest(user, self, check, page, gate, slot);
    ta__leave_sealed(self, gate);
}

/* The page with headers is not the thread's, or full, or was destroyed with its domain just now. */
TA_COLD static void beside_domains_elsewhere(void *user, struct ta__thread *self, uint32_t gate)
{
    ta__leave_sealed(self, gate);
    mi_page_t *page = ta__heap_page(user);
    if (page != NULL)
        ta__free_of_page(user, self, page);
    else
        ta__free_any(user, self);
}

/* Not every block is traced, and the thread has used domains. */
__attribute__((noinline)) void ta__free_beside_domains(void *user, struct ta__thread *self)
{
    uint32_t gate;
    mi_page_t *page = ta__heap_page(user);
    if (TA_UNLIKELY(page == NULL))
        return ta__free_any(user, self);
    if (!ta__page_seems_headed(page)) {
        if (TA_UNLIKELY(!ta__page_is_my_plain(page) || ta__heap_push(page, user)))
            ta__free_of_page(user, self, page);
        return;
    }
    if (TA_UNLIKELY(!ta__begin_sealed(self, &gate, 0)))
        return ta__free_any(user, self);
    if (TA_UNLIKELY(mi_page_xthread_id(page) != self->headed_word))
        return beside_domains_elsewhere(user, self, gate);
    struct ta__domain_slot *slot = ta__page_owner(page);
    uint64_t size = ta__mark_size_if(user, ta__slot_untraced_check(slot));
    if (TA_UNLIKELY(size >= page->block_size))
        return ta__free_in_domain(user, self, gate, page);
    TA_CHECK("D-4", is_slot_of(slot, self, ta__mark_read_leaf(user)));
    ta__domain_count_out(slot, size);
    if (TA_UNLIKELY(ta__heap_push(page, (char *)user - TA__MARK_SIZE) || ta__domain_is_flush_due(slot)))
        return in_domain_rest(user, self, 0, page, gate, slot);
    ta__leave_sealed(self, gate);
}
