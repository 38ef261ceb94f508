/* slow.c: every request that is not the common case — large, aligned, zeroed, in another domain, sampled, of a new
 * thread, during a change of mode, inside a signal handler.
 *
 * Each function here is complete: it would serve all requests alone. The thread may be marked (base/safepoint.h) on
 * entry; ta__begin gets it into a state in which it may act, ta__end takes it out.
 *
 *      view      meaning on entry
 *      gate      adapted: go on
 *      0         this thread is inside already — we are a signal handler: emergency.c
 *      HELD      it waits, or holds others or a lock — we are a signal handler: emergency.c
 *      other     the mode changed: adapt */
#include "alloc/alloc.h"
#include "alloc/entry.h"
#include "alloc/live_block.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "alloc/domains/shared_blocks.h"
#include "alloc/remembered_frees.h"
#include "alloc/request_limit.h"
#include "base/atomics.h"
#include "base/safepoint.h"
#include "trace/capture.h"
#include "trace/unwind/modules.h"
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
static struct ta__thread *begin(uint32_t *gate, int may_give_up)
{
    struct ta__thread *self = ta__self;
    int is_new = self == &ta__thread_none;
    if (TA_UNLIKELY(is_new)) {
        self = ta__thread_get();
        if (self == NULL)
            return NULL;
    }
    uint32_t view = ta__load_relaxed(&self->safepoint.view);
    if (TA_UNLIKELY(ta__safepoint_is_shut(view))) {
        ta__store_release(&self->safepoint.in_op, 0u); /* the mark is this request's */
        return NULL;
    }
    if (!ta__safepoint_try_enter(&self->safepoint, gate, may_give_up))
        return NULL;
    if (TA_UNLIKELY(self->late_uses != 0) && !is_new)
        self->late_uses++;
    if (*gate != view) {
        if (*gate != 0) {
            int adapted = ((*gate & TA__GATE_DOMAINS) == 0 || ta__domains_adapt(self)) && ta__trace_adapt(self, *gate);
            ta__malloc_choose(self, *gate);
            if (!adapted)
                *gate = 0; /* no memory for this mode: the operation goes untraced, the next one tries again */
        } else if (!ta__malloc_is_plain(self)) {
            ta__capture_forget(self);
            ta__malloc_choose(self, 0);
        }
    }
    if (TA_UNLIKELY(ta__load_relaxed(&self->deferred) != NULL)) {
        ta__thread_free_deferred(self);
        ta__malloc_choose(self, *gate);
    }
    return self;
}

struct ta__thread *ta__begin(uint32_t *gate)
{
    return begin(gate, 0);
}

struct ta__thread *ta__begin_request(uint32_t *gate)
{
    return begin(gate, 1);
}

void ta__end(struct ta__thread *self, uint32_t gate)
{
    ta__compiler_fence();
    if (TA_UNLIKELY(self->late_uses != 0) && ta__thread_end_late(self))
        return;
    /* When a handler freed something just now, the next request comes by here. */
    int stays_slow = gate == 0 || ta__load_relaxed(&self->deferred) != NULL;
    ta__safepoint_unseal(&self->safepoint, stays_slow ? TA__VIEW_STALE : gate);
    if (TA_UNLIKELY(self->crossed != 0))
        ta__domain_say_crossed(self);
}

int ta__look(struct ta__look *look)
{
    look->self = ta__process_is_ready() ? ta__begin(&look->gate) : NULL;
    return look->self != NULL || ta__load_relaxed(&ta__self->safepoint.view) == 0;
}

void ta__end_look(struct ta__look *look)
{
    if (look->self != NULL)
        ta__end(look->self, look->gate);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* 0 when `user` is no live block of ours that may be used; says so and counts it. */
static int examine(struct ta__thread *self, uint32_t gate, const char *call, void *user, struct ta__live_block *live,
                   const struct ta__caller *caller)
{
    if (!ta__live_block(user, live)) {
        if (ta__heap_page(user) == NULL && !ta__heap_reaches(user))
            ta__foreign(self, gate, user, caller);
        else if (ta__domain_stood_at(user)) /* perhaps without a page: it was given back when the block was freed */
            ta__misuse_dead(call, user);
        else
            ta__misuse(call, user);
        return 0;
    }
    if (TA_UNLIKELY(ta__domain_is_dead(ta__domain_at(live->domain)))) {
        ta__misuse_dead(call, user);
        return 0;
    }
    return 1;
}

/* The trace of a live block goes. */
static void forget_trace(struct ta__thread *self, uint32_t gate, const void *user, const struct ta__live_block *live)
{
    int may_have_record = live->has_header ? (live->kind & (TA__KIND_ODD | TA__KIND_TRACED)) == TA__KIND_ODD
                                           : (gate & TA__GATE_TRACKED) != 0;
    struct ta__tracked old;
    if ((live->kind & TA__KIND_TRACED) != 0 && ta__trace_is_present(live->leaf))
        ta__count_block_out(self, live->leaf, live->size);
    else if (may_have_record && ta__tracked_take(0, (uintptr_t)user, &old))
        ta__count_tracked_out(self, old.leaf, old.size);
}

/* An address of domain 0 that was tracked by hand is handed out as a block: the block's trace replaces it. */
static void forget_tracked_address(struct ta__thread *self, uint32_t gate, const void *user)
{
    struct ta__tracked old;
    if ((gate & TA__GATE_TRACKED) != 0 && ta__tracked_take(0, (uintptr_t)user, &old))
        ta__count_tracked_out(self, old.leaf, old.size);
}

/* A block with room for a header; what its user gets, and in *moved how far that is from where it would usually be. */
static void *obtain(void *theap, size_t size, size_t alignment, int zeroed, size_t *moved)
{
    *moved = 0;
    if (alignment <= 16)
        return ta__heap_allocate_behind(theap, size, zeroed);
    char *usual = ta__heap_allocate_behind(theap, size + alignment, zeroed);
    if (usual == NULL)
        return NULL;
    char *user = (char *)(((uintptr_t)usual + alignment - 1) & ~(alignment - 1));
    *moved = (size_t)(user - usual);
    if (*moved == 0)
        return user;
    ta__forward_write(usual, *moved);
    mi_page_t *page = ta__heap_page(usual);
    char *block = usual - ta__page_header_size(page);
    if (TA_UNLIKELY((size_t)(user - block) >= TA__PAGE_REACH) && !ta__heap_reach_further(block, user)) {
        ta__heap_free(page, block);
        return NULL;
    }
    return user;
}

/* What a block's header will say. */
struct tag {
    uint32_t leaf; /* as the mark has it */
    uint32_t kind;
    uint32_t domain; /* index */
};

static struct tag untraced_tag(uint32_t domain)
{
    if (domain == 0)
        return (struct tag){.kind = TA__KIND_PLAIN};
    return (struct tag){.leaf = domain, .kind = TA__KIND_DOMAIN, .domain = domain};
}

static struct tag traced_tag(uint32_t leaf)
{
    uint32_t domain = ta__leaf_domain(leaf);
    uint32_t kind = TA__KIND_TRACED | (domain != 0 ? TA__KIND_DOMAIN : 0);
    return (struct tag){
        .leaf = leaf, .kind = ta__trace_sample_bytes() != 0 ? kind | TA__KIND_ODD : kind, .domain = domain};
}

static int is_counted(const struct tag *tag)
{
    return (tag->kind & TA__KIND_TRACED) != 0;
}

/* Does a block with this tag go without a header? */
static int is_plain(const struct tag *tag, uint32_t gate)
{
    return tag->kind == TA__KIND_PLAIN && (gate & TA__GATE_HEADERS) == 0;
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
        /* Before it maps an object, ld.so asks for the link map, which is too large for the fast path: now is the time
         * to see that what stood there before is gone. Of its other requests most pass by unseen: at a sample it is
         * looked again. */
        int is_sample = ta__sample_this(self, size);
        if (is_sample || ta__modules_is_loader(caller->ip))
            ta__modules_check();
        if (!is_sample)
            return untraced_tag(wish->domain);
    }
    uint32_t leaf = ta__capture(self, caller->ip, caller->sp, caller->fp, wish->capture);
    if (leaf != 0)
        return traced_tag(leaf);
    ta__owner_add(&self->counted_lost, 1);
    return untraced_tag(wish->domain);
}

/* `page`: where the block begins, from which very far into it no page is found. */
static void write_tag(void *user, const mi_page_t *page, uint32_t aligned, const struct tag *tag, size_t size)
{
    int is_long = ta__page_header_size(page) == TA__LONG_HEADER;
    ta__header_write(user, is_long, ta__check_of_kind(tag->kind | aligned), tag->leaf, size);
}

void *ta__finish_allocation(struct ta__thread *self, void *user, size_t size, uint32_t leaf)
{
    if (user == NULL)
        return ta__out_of_memory();
    struct tag tag = leaf != 0 ? traced_tag(leaf) : untraced_tag(0);
    write_tag(user, ta__heap_page(user), 0, &tag, size);
    if (is_counted(&tag))
        ta__count_allocation(self, leaf, size);
    else
        ta__owner_add(&self->counted_lost, 1);
    return user;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void *allocate_without_thread(const struct ta__request *request)
{
    void *user = ta__emergency_allocate(request->size, request->alignment, request->zeroed);
    return user != NULL ? user : ta__out_of_memory();
}

/* A block for the request, with its header if it has one. */
static void *block_for(struct ta__thread *self, uint32_t gate, const struct ta__request *request, const struct tag *tag)
{
    size_t natural = is_plain(tag, gate) ? ta__heap_natural_size(request->size, request->alignment) : 0;
    if (natural != 0 || (is_plain(tag, gate) && request->alignment <= 16))
        return ta__heap_allocate(self->theap, natural, request->zeroed);
    void *theap = ta__domain_part(self, tag->domain);
    size_t extra = ta__shared_extra(tag->domain);
    size_t moved;
    char *user =
        theap != NULL ? obtain(theap, request->size + extra, request->alignment, request->zeroed, &moved) : NULL;
    if (user == NULL)
        return NULL;
    write_tag(user, ta__heap_page(user - moved), moved != 0 ? TA__KIND_ALIGNED : 0, tag, request->size);
    ta__shared_block_in(tag->domain, user, request->size);
    return user;
}

/* A mark that the allocator's link will not reach stops to verify before the block is freed. */
static void bury(void *user, const struct ta__live_block *live)
{
    size_t distance = (size_t)((char *)user - (char *)live->block);
    if (TA_LIKELY(distance <= TA__MARK_SIZE))
        return;
    ta__mark_kill(user);
    if (TA_UNLIKELY(distance >= TA__PAGE_REACH))
        ta__heap_reach_no_further(user);
}

/* A block that was counted nowhere yet. */
static void give_back(uint32_t domain, void *user, size_t size)
{
    struct ta__live_block live;
    if (!ta__live_block(user, &live))
        return;
    ta__shared_block_out(domain, user, size);
    bury(user, &live);
    ta__heap_free(live.page, live.block);
}

void *ta__allocate(const struct ta__request *request, struct ta__caller caller)
{
    uint32_t gate;
    struct ta__thread *self = ta__begin_request(&gate);
    if (TA_UNLIKELY(self == NULL))
        return allocate_without_thread(request);

    void *user = NULL;
    struct wish wish;
    if (TA_LIKELY(ta__size_is_sane(request->size, request->alignment) && resolve(self, request->domain, &wish))) {
        struct tag tag = tag_for(self, gate, request->size, &wish, &caller);
        user = block_for(self, gate, request, &tag);
        if (user != NULL && !ta__domain_charge(self, tag.domain, request->size)) {
            give_back(tag.domain, user, request->size); /* it is more than the domain may have */
            user = NULL;
        }
        if (user != NULL) {
            forget_tracked_address(self, gate, user);
            if (is_counted(&tag))
                ta__count_block_in(self, tag.leaf, request->size);
        }
    }
    ta__end(self, gate);
    return user != NULL ? user : ta__out_of_memory();
}

/* A block that a signal handler freed while its thread was inside. In emergency memory, because the block itself may
 * have no byte to spare. */
struct deferred {
    struct deferred *next;
    void *user;
};

/* Inside a signal handler, or without a structure: the block waits until its thread is in order. */
static void release_without_thread(void *user)
{
    struct ta__thread *self = ta__self;
    struct ta__live_block block;
    if (!ta__block_alone(user, &block) || self == &ta__thread_none)
        return; /* a leak is better than a guess */
    struct deferred *deferred = ta__emergency_allocate(sizeof *deferred, 0, 0);
    if (deferred == NULL)
        return;
    deferred->user = user;
    void *old = ta__load_relaxed(&self->deferred);
    do
        deferred->next = old;
    while (!ta__cas_acq_rel(&self->deferred, &old, (void *)deferred));
    ta__malloc_choose_any(self); /* the slow path, which looks for such blocks, has the next request */
}

void ta__release_dead(void *user, uint32_t domain)
{
    struct ta__live_block live;
    if (!ta__live_block(user, &live) || live.domain != domain)
        return;
    bury(user, &live);
    ta__heap_free(live.page, live.block);
}

/* A sample is alone in its page, mostly, and all sizes have samples: pages that they leave would be most of what sampling
 * costs. */
static void free_block(const struct ta__live_block *live)
{
    enum { SAMPLE = TA__KIND_TRACED | TA__KIND_ODD };
    if ((live->kind & SAMPLE) == SAMPLE && live->domain == 0)
        ta__heap_free_rare(live->page, live->block);
    else
        ta__heap_free(live->page, live->block);
}

static void release(struct ta__thread *self, uint32_t gate, void *user, const struct ta__caller *caller)
{
    struct ta__live_block live;
    if (!examine(self, gate, "free", user, &live, caller))
        return;
    uint32_t domain = live.domain;
    ta__domain_discharge(self, domain, live.size);
    ta__shared_block_out(domain, user, live.size);
    forget_trace(self, gate, user, &live);
    bury(user, &live);
    free_block(&live);
}

void ta__release_for(void *user, const struct ta__caller *caller)
{
    if (ta__emergency_owns(user)) {
        ta__emergency_free(user);
        ta__store_release(&ta__self->safepoint.in_op, 0u);
        return;
    }
    uint32_t gate;
    struct ta__thread *self = ta__begin_request(&gate);
    if (TA_UNLIKELY(self == NULL)) {
        release_without_thread(user);
        return;
    }
    release(self, gate, user, caller);
    ta__end(self, gate);
}

/* Entered by jumps from free itself. */
__attribute__((noinline)) void ta__release(void *user)
{
    struct ta__caller caller = TA__CALLER();
    ta__release_for(user, &caller);
}

void ta__thread_free_deferred(struct ta__thread *self)
{
    uint32_t gate = ta__gate_read();
    struct deferred *deferred = __atomic_exchange_n(&self->deferred, NULL, __ATOMIC_ACQ_REL);
    while (deferred != NULL) {
        struct deferred *next = deferred->next;
        release(self, gate, deferred->user, NULL);
        ta__emergency_free(deferred);
        deferred = next;
    }
}

/* ---- realloc ------------------------------------------------------------------------------------------------------ */

/* Grows or shrinks where it stands when that wastes at most half, and the block has a header if it needs one. A small block
 * that needs none any more, which was a sample, goes to where the next change finds it sooner. */
static int fits_in_place(const struct ta__live_block *live, const void *user, const struct tag *tag, uint32_t gate,
                         size_t size)
{
    int needs_header = !is_plain(tag, gate);
    if (needs_header ? !live->has_header : live->has_header && size <= TA__SMALL_MAX)
        return 0;
    size_t room = ta__page_room(live->page, user);
    return size <= room && size + TA__LONG_HEADER >= room / 2;
}

/* A block of emergency memory, or a request that must do without a thread's structure. */
static void *reallocate_emergency(void *user, size_t size, struct ta__thread *self, uint64_t domain,
                                  struct ta__caller caller)
{
    struct ta__live_block live;
    int is_emergency = ta__emergency_owns(user);
    if (!is_emergency && !ta__block_alone(user, &live))
        return ta__out_of_memory();
    size_t old_size = is_emergency ? ta__emergency_size(user) : live.size;
    struct ta__request request = {.size = size, .domain = domain};
    void *moved = self == NULL ? allocate_without_thread(&request) : ta__allocate(&request, caller);
    if (moved == NULL)
        return NULL;
    memcpy(moved, user, old_size < size ? old_size : size);
    if (is_emergency)
        ta__emergency_free(user);
    else
        release_without_thread(user);
    return moved;
}

/* What stands where the block stands; the domain has been charged. */
static void change_in_place(struct ta__thread *self, uint32_t gate, void *user, const struct ta__live_block *live,
                            const struct tag *tag, size_t size)
{
    forget_trace(self, gate, user, live);
    if (live->has_header) {
        ta__shared_move(tag->domain, user, live->size, size);
        write_tag(user, live->page, live->kind & TA__KIND_ALIGNED, tag, size);
    }
}

/* Old out, new in, and only then may the old address be handed out again. */
static void change_place(struct ta__thread *self, uint32_t gate, void *user, const struct ta__live_block *live,
                         void *moved, size_t size)
{
    memcpy(moved, user, live->size < size ? live->size : size);
    forget_trace(self, gate, user, live);
    ta__shared_block_out(live->domain, user, live->size);
    forget_tracked_address(self, gate, moved);
    bury(user, live);
}

static void *reallocate(struct ta__thread *self, uint32_t gate, void *user, size_t size, uint64_t domain,
                        const struct ta__caller *caller)
{
    struct ta__live_block live;
    if (!examine(self, gate, "realloc", user, &live, caller) || !ta__size_is_sane(size, 0))
        return NULL;
    uint32_t home = live.domain;
    /* Without a word from the caller the block stays where it is, whatever the scope or the rules say now. */
    struct wish wish = {home, ta__domain_capture(home)};
    if (domain != TA__DOMAIN_AMBIENT && !resolve(self, domain, &wish))
        wish.domain = home;
    struct tag tag = tag_for(self, gate, size, &wish, caller);
    int stays = wish.domain == home && fits_in_place(&live, user, &tag, gate, size + ta__shared_extra(home));
    void *result = stays ? user : block_for(self, gate, &(struct ta__request){.size = size}, &tag);
    if (result == NULL)
        return NULL;
    ta__domain_discharge(self, home, live.size); /* what the block had is free for what it becomes */
    if (!ta__domain_charge(self, tag.domain, size)) {
        ta__domain_recharge(self, home, live.size);
        if (!stays)
            give_back(tag.domain, result, size);
        return NULL;
    }
    if (!stays && ta__frees_are_remembered())
        ta__free_note(self, gate, user, &live, caller);
    if (stays)
        change_in_place(self, gate, user, &live, &tag, size);
    else
        change_place(self, gate, user, &live, result, size);
    if (is_counted(&tag))
        ta__count_block_in(self, tag.leaf, size);
    if (!stays)
        free_block(&live);
    return result;
}

void *ta__reallocate(void *user, size_t size, uint64_t domain, struct ta__caller caller)
{
    if (user == NULL)
        return ta__allocate(&(struct ta__request){.size = size, .domain = domain}, caller);
    if (size == 0) {
        ta__release_for(user, &caller);
        return NULL;
    }
    uint32_t gate;
    struct ta__thread *self = ta__begin_request(&gate);
    if (TA_UNLIKELY(self == NULL || ta__emergency_owns(user))) {
        if (self != NULL)
            ta__end(self, gate);
        return reallocate_emergency(user, size, self, domain, caller);
    }
    void *result = reallocate(self, gate, user, size, domain, &caller);
    ta__end(self, gate);
    return result != NULL ? result : ta__out_of_memory();
}

size_t ta__usable(void *user)
{
    struct ta__live_block live;
    if (user == NULL)
        return 0;
    if (ta__emergency_owns(user))
        return ta__emergency_size(user);
    return ta__process_is_ready() && ta__block_alone(user, &live) ? live.size : 0;
}
