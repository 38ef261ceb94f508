/* slow.c: every request that is not the common case — large, aligned, zeroed, in another domain, sampled, of a new
 * thread, during a change of mode, inside a signal handler.
 *
 * Each function here is complete: it would serve all requests alone. The entry points have set the mark of
 * base/world.h; ta__begin gets the thread into a state in which it may act, ta__end takes it out.
 *
 *      view      meaning on entry
 *      gate      adapted: go on
 *      0         this thread is inside already — we are a signal handler: emergency.c
 *      other     the mode changed: adapt */
#include "alloc/alloc.h"
#include "alloc/entry.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "alloc/limits.h"
#include "base/atomics.h"
#include "base/world.h"
#include "trace/paths.h"
#include "trace/modules.h"
#include "trace/sample.h"
#include "trace/tracked.h"

void *ta__out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *ta__invalid_alignment(void)
{
    errno = EINVAL;
    return NULL;
}

/* ---- into and out of an operation -------------------------------------------------------------------------------- */

/* The thread's structure, marked, adapted to *gate and with view 0; NULL: the request must do without. */
struct ta__thread *ta__begin(uint32_t *gate)
{
    struct ta__thread *self = ta__self;
    if (TA_UNLIKELY(self == &ta__thread_none)) {
        self = ta__thread_get();
        if (self == NULL)
            return NULL;
    }
    if (ta__load_relaxed(&self->world.view) == 0)
        return NULL; /* inside already: the mark belongs to the interrupted operation */
    *gate = ta__world_enter(&self->world);
    if (*gate != ta__load_relaxed(&self->world.view)) {
        if (*gate != 0) {
            ta__store_relaxed(&self->world.view, 0u);
            if ((*gate & TA__GATE_DOMAINS) == 0 || ta__domains_adapt(self))
                ta__trace_adapt(self, *gate);
            ta__malloc_choose(self, *gate);
            if (ta__load_relaxed(&self->world.view) == 0)
                *gate = 0; /* no memory for this mode: the operation goes untraced, the next one tries again */
        } else {
            ta__capture_forget(self);
            if (TA_UNLIKELY(self->allocate != ta__malloc_any))
                ta__malloc_choose(self, 0);
        }
    }
    ta__store_relaxed(&self->world.view, 0u);
    ta__compiler_fence();
    if (TA_UNLIKELY(self->deferred != NULL))
        ta__thread_free_deferred(self);
    return self;
}

void ta__end(struct ta__thread *self, uint32_t gate)
{
    ta__compiler_fence();
    /* With addresses of domain 0 tracked by hand, every allocation must pass by here. */
    int stays_slow = gate == 0 || (gate & TA__GATE_TRACKED) != 0;
    ta__store_relaxed(&self->world.view, stays_slow ? TA__VIEW_STALE : gate);
    ta__store_release(&self->world.in_op, 0u);
    if (TA_UNLIKELY(self->crossed != 0))
        ta__domain_say_crossed(self);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* A live block as its header tells. */
struct live_block {
    void *block; /* what mimalloc knows */
    mi_page_t *page;
    struct ta__header *header;
    size_t size;
    uint32_t kind;
    uint32_t leaf;
    uint32_t domain; /* index */
    int is_counted;  /* its trace is of this epoch */
};

/* 0 when `user` is no live block of ours; says so and counts it. */
static int examine(const char *call, void *user, struct live_block *live)
{
    live->page = ta__heap_page_of(user);
    int is_header = live->page != NULL && ((uintptr_t)user & 15) == 0 && ta__header_verifies(user);
    if (!is_header && ta__heap_page(user) == NULL && !ta__heap_reaches(user)) {
        ta__foreign(user);
        return 0;
    }
    /* Without a page: it was given back when the block was freed. */
    if (!is_header) {
        if (ta__domain_stood_at(user))
            ta__misuse_dead(call, user);
        else
            ta__misuse(call, user);
        return 0;
    }
    live->kind = ta__header_kind(user);
    live->header = ta__header_of(user);
    live->leaf = ta__header_leaf(live->header, live->kind);
    live->size = ta__header_size(live->header);
    live->block = (live->kind & TA__KIND_ALIGNED) != 0 ? ta__aligned_block(user) : live->header;
    live->domain = (live->kind & TA__KIND_DOMAIN) == TA__KIND_DOMAIN ? ta__leaf_domain(live->leaf) : 0;
    if (TA_UNLIKELY(ta__domain_is_dead(ta__domain_at(live->domain)))) {
        ta__misuse_dead(call, user);
        return 0;
    }
    live->is_counted = (live->kind & TA__KIND_TRACED) != 0 && ta__trace_is_present(ta__header_epoch(live->header));
    return 1;
}

/* The trace of a live block goes. */
static void forget_trace(struct ta__thread *self, const struct live_block *live)
{
    if (live->is_counted) {
        ta__count_block_out(self, live->leaf, live->size);
    } else if (ta__header_epoch(live->header) == TA__EPOCH_TRACKED) {
        struct ta__tracked old;
        if (ta__tracked_take(0, (uintptr_t)ta__header_user(live->header), &old))
            ta__count_tracked_out(self, old.leaf, old.size);
    }
}

/* An address of domain 0 that was tracked by hand is handed out as a block: the block's trace replaces it. */
static void forget_tracked_address(struct ta__thread *self, uint32_t gate, const void *user)
{
    struct ta__tracked old;
    if ((gate & TA__GATE_TRACKED) != 0 && ta__tracked_take(0, (uintptr_t)user, &old))
        ta__count_tracked_out(self, old.leaf, old.size);
}

/* A block for `size` bytes, aligned; its header's place in *header, TA__KIND_ALIGNED in *kind when it was shifted. */
static void *obtain(void *theap, size_t size, size_t alignment, int zeroed, struct ta__header **header, uint32_t *kind)
{
    *kind = 0;
    if (alignment <= TA__HEADER_SIZE) {
        size_t bytes = size + TA__HEADER_SIZE;
        void *block = bytes <= TA__SMALL_MAX && !zeroed ? ta__heap_pop(theap, bytes) : NULL;
        if (block == NULL)
            block = ta__heap_allocate(theap, bytes, zeroed);
        return *header = block;
    }
    void *block = ta__heap_allocate(theap, size + alignment + TA__HEADER_SIZE, zeroed);
    if (block == NULL)
        return *header = NULL;
    uintptr_t first = (uintptr_t)block + TA__HEADER_SIZE;
    uintptr_t aligned = (first + alignment - 1) & ~(alignment - 1);
    size_t shift = aligned - first;
    if (shift != 0) {
        ta__forward_write(block, shift);
        *kind = TA__KIND_ALIGNED;
        if (TA_UNLIKELY(shift >= TA__PAGE_REACH) &&
            !ta__heap_reach_further(block, (void *)(aligned - TA__HEADER_SIZE))) {
            ta__heap_free(ta__heap_page(block), block);
            return *header = NULL;
        }
    }
    *header = (struct ta__header *)(aligned - TA__HEADER_SIZE);
    return block;
}

/* What a block's header will say. */
struct tag {
    uint32_t leaf;
    uint32_t kind;
    uint32_t domain; /* index */
    uint64_t epoch_bits;
    int is_counted;
};

static struct tag untraced_tag(uint32_t domain)
{
    if (domain == 0)
        return (struct tag){.kind = TA__KIND_PLAIN};
    return (struct tag){.leaf = ta__domain_at(domain)->untraced_leaf, .kind = TA__KIND_DOMAIN, .domain = domain};
}

static struct tag traced_tag(uint32_t leaf)
{
    uint32_t domain = ta__leaf_domain(leaf);
    return (struct tag){.leaf = leaf,
                        .kind = domain == 0 ? (uint32_t)TA__KIND_TRACED : (uint32_t)TA__KIND_DOMAIN,
                        .domain = domain,
                        .epoch_bits = ta__trace_epoch_bits(),
                        .is_counted = 1};
}

/* Where a request goes if no rule decides: an index, and what capture is told. */
struct wish {
    uint32_t domain;
    uint32_t capture;
};

static struct wish ambient_wish(struct ta__thread *self)
{
    uint32_t domain = ta__domain_ambient(self);
    return (struct wish){domain, self->domains != NULL ? self->scope->capture : 0};
}

/* 0 when there is no room for another domain. */
static int resolve(struct ta__thread *self, uint64_t domain, struct wish *wish)
{
    if (TA_LIKELY(domain == TA__DOMAIN_AMBIENT)) {
        *wish = ambient_wish(self);
        return 1;
    }
    int index = ta__domain_index((uint32_t)domain);
    if (index < 0)
        return 0;
    *wish = (struct wish){(uint32_t)index, ta__domain_capture((uint32_t)index)};
    return 1;
}

/* For a request: of its stack when this one is traced. */
static struct tag tag_for(struct ta__thread *self, uint32_t gate, size_t size, const struct wish *wish,
                          const struct ta__caller *caller)
{
    if ((gate & TA__GATE_TRACING) == 0 || self->no_trace) {
        /* Without memory for tracing, ta__begin leaves the gate at 0. */
        if (TA_UNLIKELY((ta__gate_read() & TA__GATE_TRACING) != 0 && !self->no_trace))
            ta__owner_add(&self->counted_lost, 1);
        return untraced_tag(wish->domain);
    }
    if ((gate & TA__GATE_SAMPLED) != 0) {
        if (!ta__sample_this(self, size))
            return untraced_tag(wish->domain);
        /* Requests of ld.so mostly pass by unseen: what it did since the last sample is looked for now. */
        ta__modules_check();
    }
    uint32_t leaf = ta__capture(self, caller->ip, caller->sp, caller->fp, wish->capture);
    if (leaf != 0)
        return traced_tag(leaf);
    ta__owner_add(&self->counted_lost, 1);
    return untraced_tag(wish->domain);
}

static void write_tag(void *user, uint32_t aligned, const struct tag *tag, size_t size)
{
    ta__header_write(user, tag->kind | aligned, tag->leaf, size, tag->epoch_bits);
}

void *ta__finish_allocation(struct ta__thread *self, void *block, size_t size, uint32_t leaf)
{
    if (block == NULL)
        return ta__out_of_memory();
    struct tag tag = leaf != 0 ? traced_tag(leaf) : untraced_tag(0);
    void *user = ta__header_user(block);
    write_tag(user, 0, &tag, size);
    if (tag.is_counted)
        ta__count_allocation(self, leaf, size);
    else
        ta__owner_add(&self->counted_lost, 1);
    return user;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void *allocate_without_thread(const struct ta__request *request)
{
    void *user = ta__emergency_allocate(request->size, request->alignment);
    return user != NULL ? user : ta__out_of_memory();
}

void *ta__allocate(const struct ta__request *request, struct ta__caller caller)
{
    uint32_t gate;
    struct ta__thread *self = ta__begin(&gate);
    if (TA_UNLIKELY(self == NULL))
        return allocate_without_thread(request);

    void *user = NULL;
    struct wish wish;
    if (TA_LIKELY(ta__size_is_sane(request->size, request->alignment) && resolve(self, request->domain, &wish))) {
        struct tag tag = tag_for(self, gate, request->size, &wish, &caller);
        void *theap = ta__domain_part(self, tag.domain);
        struct ta__header *header;
        uint32_t shifted;
        if (theap == NULL || !ta__domain_charge(self, tag.domain, request->size)) {
            /* no memory, or more than the domain may have */
        } else if (obtain(theap, request->size, request->alignment, request->zeroed, &header, &shifted) == NULL) {
            ta__domain_uncharge(self, tag.domain, request->size);
        } else {
            user = ta__header_user(header);
            write_tag(user, shifted, &tag, request->size);
            forget_tracked_address(self, gate, user);
            if (tag.is_counted)
                ta__count_block_in(self, tag.leaf, request->size);
        }
    }
    ta__end(self, gate);
    return user != NULL ? user : ta__out_of_memory();
}

/* The header of an aligned block stops to verify before the block is freed: the allocator's link does not reach it. */
static void bury(void *user, const struct live_block *live)
{
    if (TA_LIKELY(live->block == live->header))
        return;
    ta__header_kill(user);
    if (TA_UNLIKELY((size_t)((char *)live->header - (char *)live->block) >= TA__PAGE_REACH))
        ta__heap_reach_no_further(live->header);
}

/* Inside a signal handler, or without a structure: the block waits until its thread is in order. */
static void release_without_thread(void *user)
{
    struct ta__thread *self = ta__self;
    if (ta__heap_page_of(user) == NULL || !ta__header_verifies(user) || self == &ta__thread_none)
        return; /* a leak is better than a guess */
    void *old = ta__load_relaxed(&self->deferred);
    do
        *(void **)user = old;
    while (!ta__cas_relaxed(&self->deferred, &old, user));
}

static void release(struct ta__thread *self, void *user)
{
    struct live_block live;
    if (!examine("free", user, &live))
        return;
    ta__domain_discharge(self, live.domain, live.size);
    forget_trace(self, &live);
    bury(user, &live);
    ta__heap_free(live.page, live.block);
}

void ta__release(void *user, struct ta__caller caller)
{
    (void)caller;
    if (ta__emergency_owns(user)) {
        if (ta__load_relaxed(&ta__self->world.view) != 0)
            ta__store_release(&ta__self->world.in_op, 0u);
        return;
    }
    uint32_t gate;
    struct ta__thread *self = ta__begin(&gate);
    if (TA_UNLIKELY(self == NULL)) {
        release_without_thread(user);
        return;
    }
    release(self, user);
    ta__end(self, gate);
}

void ta__thread_free_deferred(struct ta__thread *self)
{
    void *user = __atomic_exchange_n(&self->deferred, NULL, __ATOMIC_ACQ_REL);
    while (user != NULL) {
        void *next = *(void **)user;
        release(self, user);
        user = next;
    }
}

static void *reallocate_elsewhere(void *user, size_t old_size, size_t size)
{
    void *fresh = allocate_without_thread(&(struct ta__request){.size = size});
    if (fresh != NULL)
        memcpy(fresh, user, old_size < size ? old_size : size);
    return fresh;
}

/* Grows or shrinks where it stands when that wastes at most half. */
static int fits_in_place(const struct live_block *live, size_t size)
{
    size_t room = ta__heap_block_bytes(live->page) - (size_t)((char *)(live->header + 1) - (char *)live->block);
    return size <= room && size + TA__HEADER_SIZE >= room / 2;
}

void *ta__reallocate(void *user, size_t size, uint64_t domain, struct ta__caller caller)
{
    if (user == NULL)
        return ta__allocate(&(struct ta__request){.size = size, .domain = domain}, caller);
    if (size == 0) {
        ta__release(user, caller);
        return NULL;
    }
    uint32_t gate;
    struct ta__thread *self = ta__begin(&gate);
    if (ta__emergency_owns(user)) {
        if (self != NULL)
            ta__end(self, gate);
        size_t old_size = ta__emergency_size(user);
        void *moved = self == NULL ? allocate_without_thread(&(struct ta__request){.size = size})
                                   : ta__allocate(&(struct ta__request){.size = size, .domain = domain}, caller);
        if (moved != NULL)
            memcpy(moved, user, old_size < size ? old_size : size);
        return moved;
    }
    if (TA_UNLIKELY(self == NULL)) {
        if (ta__heap_page_of(user) == NULL || !ta__header_verifies(user))
            return ta__out_of_memory();
        void *moved = reallocate_elsewhere(user, ta__header_size(ta__header_of(user)), size);
        if (moved != NULL)
            release_without_thread(user);
        return moved;
    }

    struct live_block live;
    void *result = NULL;
    if (examine("realloc", user, &live) && ta__size_is_sane(size, 0)) {
        /* Without a word from the caller the block stays where it is, whatever the scope or the rules say now. */
        struct wish wish = {live.domain, ta__domain_capture(live.domain)};
        if (domain != TA__DOMAIN_AMBIENT && !resolve(self, domain, &wish))
            wish.domain = live.domain;
        int stays = wish.domain == live.domain && fits_in_place(&live, size);
        struct tag tag = tag_for(self, gate, size, &wish, &caller);
        /* What the block had is free for what it becomes. */
        ta__domain_discharge(self, live.domain, live.size);
        struct ta__header *header;
        uint32_t shifted;
        void *theap = stays ? NULL : ta__domain_part(self, tag.domain);
        int is_granted = ta__domain_charge(self, tag.domain, size);
        if (!is_granted) {
            ta__domain_recharge(self, live.domain, live.size);
        } else if (stays) {
            forget_trace(self, &live);
            write_tag(user, live.kind & TA__KIND_ALIGNED, &tag, size);
            result = user;
        } else if (theap == NULL || obtain(theap, size, 0, 0, &header, &shifted) == NULL) {
            ta__domain_uncharge(self, tag.domain, size);
            ta__domain_recharge(self, live.domain, live.size);
        } else {
            result = ta__header_user(header);
            memcpy(result, user, live.size < size ? live.size : size);
            /* Old out, new in, and only then may the old address be handed out again. */
            forget_trace(self, &live);
            write_tag(result, 0, &tag, size);
            forget_tracked_address(self, gate, result);
            bury(user, &live);
        }
        if (result != NULL && tag.is_counted)
            ta__count_block_in(self, tag.leaf, size);
        if (result != NULL && !stays)
            ta__heap_free(live.page, live.block);
    }
    ta__end(self, gate);
    return result != NULL ? result : ta__out_of_memory();
}

size_t ta__usable(void *user)
{
    if (user == NULL)
        return 0;
    if (ta__emergency_owns(user))
        return ta__emergency_size(user);
    if (!ta__process_is_ready() || ta__heap_page_of(user) == NULL || !ta__header_verifies(user))
        return 0;
    return ta__header_size(ta__header_of(user));
}
