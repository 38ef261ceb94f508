/* malloc.c: the common case of malloc and free — small blocks, the thread's own pages — once untraced, once traced.
 *
 * Everything else is a cold call in tail position (slow.c). Between in_op = 1 and in_op = 0 a thread is "inside the
 * allocator" (base/world.h): nobody walks, forks or destroys meanwhile. The gate is read after the mark is set; it is 0
 * unless something is traced or somebody waits, so that one comparison decides. The traced halves are functions of
 * their own, entered by a jump that leaves the caller's frame as it was: its return address and registers are what is
 * captured. While they run, view is 0, which sends a signal handler's allocation to the slow path and from there to
 * emergency.c.
 *
 * Cost over the untraced build is watched by bench/counts: at most 20 instructions per malloc and free when nothing is
 * traced. Compiled with optimisation in every build: the jump must stay a jump. */
#include "alloc/alloc.h"
#include "alloc/entry.h"
#include "alloc/names.h"

#include <string.h>

#include "base/atomics.h"
#include "base/world.h"
#include "trace/paths.h"
#include "tracealloc/domain.h"

enum { SMALL_REQUEST_MAX = TA__SMALL_MAX - TA__HEADER_SIZE };

TA_INLINE void leave(struct ta__thread *self)
{
    ta__store_release(&self->world.in_op, 0u);
}

/* ---- allocation -------------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static void *malloc_slow(size_t size)
{
    return ta__allocate(&(struct ta__request){.size = size, .domain = TA__DOMAIN_AMBIENT}, TA__CALLER());
}

/* Leaf or block are missing: the rare rest of a traced allocation. */
TA_COLD static void *malloc_traced_rest(size_t size, struct ta__thread *self, uint32_t leaf, uint32_t gate)
{
    void *block = size <= SMALL_REQUEST_MAX ? ta__heap_pop_freed(self->theap, size + TA__HEADER_SIZE) : NULL;
    if (block == NULL)
        block = ta__heap_allocate(self->theap, size + TA__HEADER_SIZE, 0);
    void *user = ta__finish_allocation(self, block, size, leaf);
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
    return user;
}

/* Every allocation of a program that only grows. */
__attribute__((noinline)) static void *malloc_new_high(void *user, struct ta__thread *self, uint32_t gate)
{
    ta__counters_new_high(self);
    ta__compiler_fence();
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
    return user;
}

/* The thread is inside from here on, also for signal handlers; 0: it may not act, or has more to do first. */
TA_INLINE int begin_traced(struct ta__thread *self, uint32_t gate, size_t size)
{
    if (TA_UNLIKELY(gate != self->world.view || size > SMALL_REQUEST_MAX))
        return 0;
    ta__store_relaxed(&self->world.view, 0u);
    ta__compiler_fence();
    return 1;
}

TA_INLINE void *traced_block(struct ta__thread *self, void *block, size_t size, uint32_t leaf, uint32_t gate)
{
    void *user = ta__header_write_traced(block, leaf, size, self->epoch_bits, self->traced_check);
    if (TA_UNLIKELY(ta__count_in(self, leaf, size)))
        return malloc_new_high(user, self, gate);
    ta__compiler_fence();
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
    return user;
}

/* Whole stacks, or more than one frame of them. */
__attribute__((noinline)) static void *malloc_stack(size_t size, struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    struct ta__caller caller = TA__CALLER();
    if (TA_UNLIKELY(!begin_traced(self, gate, size)))
        return ta__allocate(&(struct ta__request){.size = size, .domain = TA__DOMAIN_AMBIENT}, caller);
    uint32_t leaf = ta__capture(self, caller.ip, caller.sp, caller.fp, 0);
    if (TA_UNLIKELY(leaf == 0))
        return malloc_traced_rest(size, self, leaf, gate);
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL))
        return malloc_traced_rest(size, self, leaf, gate);
    return traced_block(self, block, size, leaf, gate);
}

/* One frame, from another call site than last time. */
TA_COLD static void *malloc_other_site(size_t size, struct ta__thread *self, uint32_t gate, uintptr_t ip)
{
    uint32_t leaf = ta__capture_one(self, ip, 0);
    void *block = leaf != 0 ? ta__heap_pop(self->theap, size + TA__HEADER_SIZE) : NULL;
    if (TA_UNLIKELY(block == NULL))
        return malloc_traced_rest(size, self, leaf, gate);
    return traced_block(self, block, size, leaf, gate);
}

/* One frame: the call site says it all. No frame of our own, no call. */
__attribute__((noinline)) static void *malloc_one_frame(size_t size, struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(!begin_traced(self, gate, size)))
        return malloc_slow(size);
    uintptr_t ip = (uintptr_t)__builtin_return_address(0);
    if (TA_UNLIKELY(self->one_ip != ip))
        return malloc_other_site(size, self, gate, ip);
    uint32_t leaf = self->one_leaf;
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL))
        return malloc_traced_rest(size, self, leaf, gate);
    return traced_block(self, block, size, leaf, gate);
}

/* The rest of an allocation that is not traced: the page's list is empty, or the block is not small. NULL, and nothing
 * done, for very large ones and for threads that have no heap yet; or there is no memory. */
TA_INLINE void *plain_rest(size_t size, struct ta__thread *self)
{
    enum { REQUEST_MAX = 1 << 20 };
    if (TA_UNLIKELY(size > REQUEST_MAX || self->theap == TA__THEAP_EMPTY))
        return NULL;
    void *block;
    if (size > SMALL_REQUEST_MAX) {
        block = ta__heap_allocate(self->theap, size + TA__HEADER_SIZE, 0);
    } else {
        block = ta__heap_pop_freed(self->theap, size + TA__HEADER_SIZE);
        if (TA_UNLIKELY(block == NULL))
            block = ta__heap_refill(self->theap, size + TA__HEADER_SIZE);
    }
    if (TA_UNLIKELY(block == NULL))
        return NULL;
    void *user = ta__header_write_plain(block, size);
    leave(self);
    return user;
}

/* A request that is no sample, as malloc_sampled found. */
__attribute__((noinline)) static void *malloc_sampled_rest(size_t size, struct ta__thread *self)
{
    void *user = plain_rest(size, self);
    if (TA_UNLIKELY(user == NULL))
        return malloc_slow(size);
    self->sample_left -= (int64_t)size;
    return user;
}

/* Sampled: nearly every block is plain. */
__attribute__((noinline)) static void *malloc_sampled(size_t size, struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(gate != self->world.view || size == 0 || size > INT64_MAX || self->sample_left < (int64_t)size))
        return malloc_slow(size);
    if (TA_UNLIKELY(size > SMALL_REQUEST_MAX))
        return malloc_sampled_rest(size, self);
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL))
        return malloc_sampled_rest(size, self);
    self->sample_left -= (int64_t)size;
    void *user = ta__header_write_plain(block, size);
    leave(self);
    return user;
}

/* ---- allocation where domains are in use ------------------------------------------------------------------------- */

/* The thread's slot has a new highest sum: a limit may refuse the block. */
TA_COLD static void *domain_new_high(void *user, struct ta__thread *self, uint32_t gate, struct ta__domain_slot *slot)
{
    struct ta__header *header = ta__header_of(user);
    size_t size = ta__header_size(header);
    if (!ta__domain_new_high(self, slot, size)) {
        if (ta__trace_is_present(ta__header_epoch(header)))
            ta__count_undo(self, header->leaf, size);
        ta__heap_free(ta__heap_page_of(user), header);
        user = NULL;
    } else if (self->headroom < 0) {
        ta__counters_new_high(self);
    }
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
    if (self->crossed != 0)
        ta__domain_say_crossed(self);
    return user != NULL ? user : ta__out_of_memory();
}

TA_INLINE void *domain_pop(const struct ta__domain_slot *slot, size_t size)
{
    return TA_LIKELY(slot->theap != NULL) ? ta__heap_pop(slot->theap, size + TA__HEADER_SIZE) : NULL;
}

/* Nothing is traced: the block says its domain alone. */
TA_INLINE void *untraced_in_slot(size_t size, struct ta__thread *self, uint32_t gate, struct ta__domain_slot *slot,
                                 void *block)
{
    void *user = ta__header_write_traced(block, slot->leaf, size, 0, slot->untraced_check);
    if (TA_UNLIKELY(ta__domain_count_in(slot, size)))
        return domain_new_high(user, self, gate, slot);
    leave(self);
    return user;
}

/* The page's list is empty. */
TA_COLD static void *refill_in_slot(size_t size, struct ta__thread *self, uint32_t gate, struct ta__domain_slot *slot)
{
    void *block = slot->theap != NULL ? ta__heap_refill(slot->theap, size + TA__HEADER_SIZE) : NULL;
    return block != NULL ? untraced_in_slot(size, self, gate, slot, block) : malloc_slow(size);
}

__attribute__((noinline)) static void *malloc_in_scope(size_t size, struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(gate != self->world.view || size > SMALL_REQUEST_MAX))
        return malloc_slow(size);
    struct ta__domain_slot *slot = self->scope->slot;
    void *block = domain_pop(slot, size);
    if (TA_UNLIKELY(block == NULL))
        return refill_in_slot(size, self, gate, slot);
    return untraced_in_slot(size, self, gate, slot, block);
}

__attribute__((noinline)) static void *malloc_sampled_in_scope(size_t size, struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(gate != self->world.view || size > SMALL_REQUEST_MAX || size == 0 ||
                    self->sample_left < (int64_t)size))
        return malloc_slow(size);
    struct ta__domain_slot *slot = self->scope->slot;
    void *block = domain_pop(slot, size);
    if (TA_UNLIKELY(block == NULL))
        return malloc_slow(size);
    self->sample_left -= (int64_t)size;
    return untraced_in_slot(size, self, gate, slot, block);
}

TA_INLINE void *traced_in_slot(size_t size, struct ta__thread *self, uint32_t leaf, uint32_t gate,
                               struct ta__domain_slot *slot, void *block)
{
    void *user = ta__header_write_traced(block, leaf, size, self->epoch_bits, self->traced_check ^ slot->traced_flip);
    if (TA_UNLIKELY((ta__count_in(self, leaf, size)) | ta__domain_count_in(slot, size)))
        return domain_new_high(user, self, gate, slot);
    ta__compiler_fence();
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
    return user;
}

/* There is no leaf, or the thread has no block or no part of the heap yet, or the scope's domain was destroyed. */
TA_COLD static void *traced_in_domain_rest(size_t size, struct ta__thread *self, uint32_t leaf, uint32_t gate)
{
    uint32_t domain = ta__leaf_domain(leaf);
    if (leaf == 0 || ta__domain_is_dead(ta__domain_at(domain))) {
        ta__store_relaxed(&self->world.view, gate);
        return malloc_slow(size);
    }
    void *theap = ta__domain_part(self, domain);
    void *block = theap != NULL ? ta__heap_refill(theap, size + TA__HEADER_SIZE) : NULL;
    if (block != NULL)
        return traced_in_slot(size, self, leaf, gate, &self->domains->slots[domain], block);
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
    return ta__out_of_memory();
}

/* The rest of a traced allocation: the leaf says the domain, be it the call's, the scope's or a rule's. */
TA_INLINE void *traced_in_domain(size_t size, struct ta__thread *self, uint32_t leaf, uint32_t gate)
{
    if (TA_UNLIKELY(leaf == 0))
        return traced_in_domain_rest(size, self, leaf, gate);
    struct ta__domain_slot *slot = &self->domains->slots[ta__leaves()[leaf].domain];
    void *block = domain_pop(slot, size);
    if (TA_UNLIKELY(block == NULL))
        return traced_in_domain_rest(size, self, leaf, gate);
    return traced_in_slot(size, self, leaf, gate, slot, block);
}

__attribute__((noinline)) static void *malloc_stack_in_scope(size_t size, struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    struct ta__caller caller = TA__CALLER();
    if (TA_UNLIKELY(!begin_traced(self, gate, size)))
        return malloc_slow(size);
    uint32_t leaf = ta__capture(self, caller.ip, caller.sp, caller.fp, self->scope->capture);
    return traced_in_domain(size, self, leaf, gate);
}

TA_COLD static void *malloc_other_site_in_scope(size_t size, struct ta__thread *self, uint32_t gate, uintptr_t ip)
{
    return traced_in_domain(size, self, ta__capture_one(self, ip, self->scope->capture), gate);
}

__attribute__((noinline)) static void *malloc_one_frame_in_scope(size_t size, struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(!begin_traced(self, gate, size)))
        return malloc_slow(size);
    uintptr_t ip = (uintptr_t)__builtin_return_address(0);
    if (TA_UNLIKELY(self->one_ip != ip || self->one_domain != self->scope->capture))
        return malloc_other_site_in_scope(size, self, gate, ip);
    return traced_in_domain(size, self, self->one_leaf, gate);
}

/* The rest of an untraced allocation while nothing is traced. NULL: there is more to do than that, or no memory. */
__attribute__((noinline)) static void *untraced_rest(size_t size, struct ta__thread *self)
{
    return TA_LIKELY(ta__gate_read() == 0) ? plain_rest(size, self) : NULL;
}

void *ta__malloc_any(size_t size, struct ta__thread *self)
{
    void *user = untraced_rest(size, self);
    return TA_LIKELY(user != NULL) ? user : malloc_slow(size);
}

/* ---- which of them ----------------------------------------------------------------------------------------------- */

void ta__malloc_init(void)
{
    ta__gate_set_size(SMALL_REQUEST_MAX + 1);
}

void ta__malloc_choose(struct ta__thread *self, uint32_t gate)
{
    self->traced_check = ta__header_traced_check(self->epoch_bits);
    int in_scope = (gate & TA__GATE_DOMAINS) != 0;
    if (in_scope && self->domains == NULL)
        self->allocate = ta__malloc_any;
    else if ((gate & TA__GATE_TRACING) == 0 || self->no_trace)
        self->allocate = in_scope ? malloc_in_scope : ta__malloc_any;
    else if ((gate & TA__GATE_SAMPLED) != 0)
        self->allocate = in_scope ? malloc_sampled_in_scope : malloc_sampled;
    else if ((gate & TA__GATE_ONE_FRAME) != 0)
        self->allocate = in_scope ? malloc_one_frame_in_scope : malloc_one_frame;
    else
        self->allocate = in_scope ? malloc_stack_in_scope : malloc_stack;
}

/* Ends in a jump in whoever it is part of: the caller's frame stays what is captured. */
TA_INLINE void *malloc_here(size_t size)
{
    struct ta__thread *self = ta__self;
    ta__world_mark(&self->world);
    TA__GO_IF_GATED_OR_LARGE(size, other);
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL))
        return ta__malloc_any(size, self);
    void *user = ta__header_write_plain(block, size);
    leave(self);
    return user;

other: /* whatever a thread's way of allocating is, it first compares the mode it is made for with the present one */
    return self->allocate(size, self);
}

TA_ENTRY void *ta_malloc(size_t size)
{
    return malloc_here(size);
}

/* ---- zeroed blocks, and C++'s new: more is to be done with the block, so that no jump can end it ------------------ */

/* The block of a small request in the modes that are made for speed; NULL and nothing done when it takes the slow path.
 */
TA_INLINE void *gated_block(size_t size, struct ta__thread *self, struct ta__caller caller)
{
    uint32_t gate = ta__gate_read();
    if (TA_LIKELY(self->allocate == malloc_stack || self->allocate == malloc_one_frame)) {
        if (TA_UNLIKELY(!begin_traced(self, gate, size)))
            return NULL;
        uint32_t leaf = TA_LIKELY(self->allocate == malloc_stack)
                            ? ta__capture(self, caller.ip, caller.sp, caller.fp, 0)
                            : ta__capture_by_walk(self, caller.ip, caller.sp, caller.fp, 0);
        void *block = TA_LIKELY(leaf != 0) ? ta__heap_pop(self->theap, size + TA__HEADER_SIZE) : NULL;
        if (TA_LIKELY(block != NULL))
            return traced_block(self, block, size, leaf, gate);
        ta__store_relaxed(&self->world.view, gate);
        return NULL;
    }
    if (gate != self->world.view || size > SMALL_REQUEST_MAX || size == 0 || self->allocate != malloc_sampled ||
        self->sample_left < (int64_t)size)
        return NULL;
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL))
        return NULL;
    self->sample_left -= (int64_t)size;
    void *user = ta__header_write_plain(block, size);
    leave(self);
    return user;
}

__attribute__((noinline)) static void *calloc_gated(size_t size, struct ta__thread *self)
{
    struct ta__caller caller = TA__CALLER();
    void *user = gated_block(size, self, caller);
    if (user == NULL && size <= SMALL_REQUEST_MAX)
        user = untraced_rest(size, self);
    if (TA_LIKELY(user != NULL))
        return memset(user, 0, size);
    return ta__allocate(&(struct ta__request){.size = size, .zeroed = 1, .domain = TA__DOMAIN_AMBIENT}, caller);
}

TA_ENTRY void *ta_calloc(size_t count, size_t each)
{
    size_t size;
    if (TA_UNLIKELY(__builtin_mul_overflow(count, each, &size)))
        return ta__out_of_memory();
    struct ta__thread *self = ta__self;
    ta__world_mark(&self->world);
    TA__GO_IF_GATED_OR_LARGE(size, other);
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL))
        goto other;
    void *user = ta__header_write_plain(block, size);
    leave(self);
    return memset(user, 0, size);

other:
    return calloc_gated(size, self);
}

#if TRACEALLOC_OVERRIDE
__attribute__((noinline)) static void *new_gated(size_t size, struct ta__thread *self)
{
    struct ta__caller caller = TA__CALLER();
    void *user = gated_block(size, self, caller);
    if (user == NULL)
        user = untraced_rest(size, self);
    return TA_LIKELY(user != NULL) ? user : ta__new_slow(size, caller);
}

__attribute__((noinline, no_stack_protector)) void *ta__new(size_t size)
{
    struct ta__thread *self = ta__self;
    ta__world_mark(&self->world);
    TA__GO_IF_GATED_OR_LARGE(size, other);
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL))
        goto other;
    void *user = ta__header_write_plain(block, size);
    leave(self);
    return user;

other:
    return new_gated(size, self);
}
#endif

/* ---- allocation in a domain that the call names ------------------------------------------------------------------ */

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
    uint32_t gate = ta__gate_read();
    struct ta__caller caller = TA__CALLER();
    struct ta__domain_slot *slot = known_slot(self, domain);
    if (TA_UNLIKELY(slot == NULL || !begin_traced(self, gate, size)))
        return domain_malloc_slow(domain, size);
    uint32_t leaf = ta__capture(self, caller.ip, caller.sp, caller.fp, (uint32_t)(slot - self->domains->slots));
    if (TA_UNLIKELY(leaf == 0)) {
        ta__store_relaxed(&self->world.view, gate);
        return domain_malloc_slow(domain, size);
    }
    return traced_in_domain(size, self, leaf, gate);
}

TA_ENTRY void *ta_domain_malloc(uint32_t domain, size_t size)
{
    struct ta__thread *self = ta__self;
    ta__world_mark(&self->world);
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(gate != self->world.view || self->domains == NULL))
        return domain_malloc_slow(domain, size);
    if ((gate & TA__GATE_TRACING) != 0)
        return (gate & TA__GATE_SAMPLED) != 0 || self->no_trace ? domain_malloc_slow(domain, size)
                                                                : domain_malloc_traced(domain, size, self);
    struct ta__domain_slot *slot = known_slot(self, domain);
    if (TA_UNLIKELY(slot == NULL || size > SMALL_REQUEST_MAX))
        return domain_malloc_slow(domain, size);
    void *block = domain_pop(slot, size);
    if (TA_UNLIKELY(block == NULL))
        return domain_malloc_slow(domain, size);
    return untraced_in_slot(size, self, gate, slot, block);
}

/* ---- release ----------------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static void free_slow(void *user)
{
    if (user != NULL) {
        ta__release(user, TA__CALLER());
        return;
    }
    struct ta__thread *self = ta__self;
    if (ta__load_relaxed(&self->world.view) != 0)
        leave(self);
}

/* The page's last block went. */
TA_COLD static void free_emptied(mi_page_t *page, struct ta__thread *self)
{
    ta__heap_page_emptied(page);
    leave(self);
}

/* The page is another thread's, or has flags. */
TA_COLD static void free_elsewhere(mi_page_t *page, void *block, struct ta__thread *self)
{
    ta__heap_free_slow(page, block);
    leave(self);
}

/* Either, in a traced operation. */
TA_COLD static void free_traced_rest(mi_page_t *page, void *block, struct ta__thread *self, uint32_t gate)
{
    if (block != NULL)
        ta__heap_free(page, block);
    else
        ta__heap_page_emptied(page);
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
}

TA_COLD static void free_flush(struct ta__thread *self, uint32_t gate)
{
    ta__counters_flush(self);
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
}

/* What is left of the free of a block of a domain: it is not local, or its page was emptied, or sums are due. */
TA_COLD static void free_in_domain_rest(mi_page_t *page, void *block, struct ta__thread *self, uint32_t gate,
                                        struct ta__domain_slot *slot)
{
    if (block != NULL)
        ta__heap_free(page, block);
    else if (page != NULL)
        ta__heap_page_emptied(page);
    if (ta__domain_is_flush_due(slot))
        ta__domain_flush(self, slot);
    if (ta__is_flush_due(self))
        ta__counters_flush(self);
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
}

TA_INLINE void put_back(mi_page_t *page, struct ta__header *header, struct ta__thread *self, uint32_t gate,
                        struct ta__domain_slot *slot)
{
    if (TA_UNLIKELY(!ta__heap_is_local(page)))
        return free_in_domain_rest(page, header, self, gate, slot);
    if (TA_UNLIKELY(ta__heap_push(page, header)))
        return free_in_domain_rest(page, NULL, self, gate, slot);
    if (TA_UNLIKELY(ta__domain_is_flush_due(slot)))
        return free_in_domain_rest(NULL, NULL, self, gate, slot);
    ta__compiler_fence();
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
}

/* This thread's slot of the block's domain; no part of the heap in it: the thread's first of the domain, or it is gone.
 */
TA_INLINE struct ta__domain_slot *slot_of_block(const struct ta__thread *self, const struct ta__header *header)
{
    return &self->domains->slots[ta__leaves()[header->leaf].domain];
}

/* A block of another domain than 0, or one that the slow path understands. */
__attribute__((noinline)) static void free_in_domain(void *user, struct ta__thread *self, mi_page_t *page,
                                                     uint32_t gate)
{
    struct ta__header *header = ta__header_of(user);
    uint32_t check = header->check ^ (uint32_t)(uintptr_t)user;
    if (check == (ta__header_key | TA__KIND_DOMAIN)) {
        uint64_t size = header->size_and_epoch; /* without a trace: the epoch is 0 */
        if (TA_UNLIKELY(size >> 32 != 0 || self->domains == NULL))
            return free_slow(user);
        struct ta__domain_slot *slot = slot_of_block(self, header);
        if (TA_UNLIKELY(slot->theap == NULL))
            return free_slow(user);
        ta__domain_count_out(slot, size);
        return put_back(page, header, self, gate, slot);
    }
    uint64_t size = header->size_and_epoch ^ self->epoch_bits;
    if (TA_UNLIKELY(check != (self->traced_check ^ (TA__KIND_TRACED ^ TA__KIND_DOMAIN)) || size >> 32 != 0 ||
                    self->domains == NULL))
        return free_slow(user); /* of another epoch, aligned, weighted, huge, or wrong */
    struct ta__domain_slot *slot = slot_of_block(self, header);
    if (TA_UNLIKELY(slot->theap == NULL))
        return free_slow(user);
    ta__store_relaxed(&self->world.view, 0u);
    ta__compiler_fence();
    ta__count_out(self, header->leaf, size);
    ta__domain_count_out(slot, size);
    if (TA_UNLIKELY(ta__is_flush_due(self)))
        return free_in_domain_rest(page, header, self, gate, slot);
    put_back(page, header, self, gate, slot);
}

__attribute__((noinline)) static void free_gated(void *user, struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(gate != self->world.view))
        return free_slow(user);
    mi_page_t *page = ta__heap_page_of(user);
    if (TA_UNLIKELY(page == NULL))
        return free_slow(user);
    struct ta__header *header = ta__header_of(user);
    uint64_t size;
    if (TA_LIKELY(ta__header_is_traced(user, self->traced_check, self->epoch_bits, &size))) {
        ta__store_relaxed(&self->world.view, 0u);
        ta__compiler_fence();
        ta__count_out(self, header->leaf, size); /* the trace goes before the block can come back */
    } else if (!ta__header_is_plain(user)) {
        return free_in_domain(user, self, page, gate);
    }
    if (TA_UNLIKELY(!ta__heap_is_local(page)))
        return free_traced_rest(page, header, self, gate);
    if (TA_UNLIKELY(ta__heap_push(page, header)))
        return free_traced_rest(page, NULL, self, gate);
    if (TA_UNLIKELY(ta__is_flush_due(self)))
        return free_flush(self, gate);
    ta__compiler_fence();
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
}

TA_ENTRY void ta_free(void *user)
{
    struct ta__thread *self = ta__self;
    ta__world_mark(&self->world);
    TA__GO_IF_GATED(gated);
    mi_page_t *page = ta__heap_page_of(user);
    if (TA_UNLIKELY(page == NULL || !ta__header_is_plain(user)))
        return free_slow(user);
    if (TA_UNLIKELY(!ta__heap_is_local(page)))
        return self->theap != TA__THEAP_EMPTY ? free_elsewhere(page, ta__header_of(user), self) : free_slow(user);
    if (TA_UNLIKELY(ta__heap_push(page, ta__header_of(user))))
        return free_emptied(page, self);
    leave(self);
    return;

gated:
    free_gated(user, self);
}

/* ---- the others: one request each, served by slow.c -------------------------------------------------------------- */

__attribute__((noinline)) static void *realloc_block(void *user, size_t size)
{
    ta__mark_entered();
    return ta__reallocate(user, size, TA__DOMAIN_AMBIENT, TA__CALLER());
}

TA_ENTRY void *ta_realloc(void *user, size_t size)
{
    if (user == NULL)
        return malloc_here(size);
    return realloc_block(user, size);
}

TA_ENTRY void *ta_reallocarray(void *user, size_t count, size_t size)
{
    size_t bytes;
    if (TA_UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return ta__out_of_memory();
    ta__mark_entered();
    return ta__reallocate(user, bytes, TA__DOMAIN_AMBIENT, TA__CALLER());
}

TA_ALSO_NAMED(malloc, ta_malloc)
TA_ALSO_NAMED(free, ta_free)
TA_ALSO_NAMED(calloc, ta_calloc)
TA_ALSO_NAMED(realloc, ta_realloc)
TA_ALSO_NAMED(reallocarray, ta_reallocarray)

/* operator delete in all its forms is free; the other forms of new are in override_new.c. */
TA_ALSO_NAMED(_Znwm, ta__new)
TA_ALSO_NAMED(_Znam, ta__new)
TA_ALSO_NAMED(_ZdlPv, ta_free)
TA_ALSO_NAMED(_ZdaPv, ta_free)
/* Sizes, alignments and tags say nothing that the header does not know: the further arguments are not looked at. */
TA_ALSO_NAMED(_ZdlPvm, ta_free)
TA_ALSO_NAMED(_ZdaPvm, ta_free)
TA_ALSO_NAMED(_ZdlPvSt11align_val_t, ta_free)
TA_ALSO_NAMED(_ZdaPvSt11align_val_t, ta_free)
TA_ALSO_NAMED(_ZdlPvmSt11align_val_t, ta_free)
TA_ALSO_NAMED(_ZdaPvmSt11align_val_t, ta_free)
TA_ALSO_NAMED(_ZdlPvRKSt9nothrow_t, ta_free)
TA_ALSO_NAMED(_ZdaPvRKSt9nothrow_t, ta_free)
TA_ALSO_NAMED(_ZdlPvSt11align_val_tRKSt9nothrow_t, ta_free)
TA_ALSO_NAMED(_ZdaPvSt11align_val_tRKSt9nothrow_t, ta_free)
TA_ALSO_NAMED(cfree, ta_free)
TA_ALSO_NAMED(free_sized, ta_free)
TA_ALSO_NAMED(free_aligned_sized, ta_free)
