/* malloc.c: the common case of malloc and operator new — small blocks from the thread's own pages — once plain, once traced.
 *
 * Everything else is a cold call in tail position (slow.c). What is not traced and of domain 0 comes from the plain heap,
 * as it is: the pop from a page of the thread's own is no operation, see base/safepoint.h. A traced request is one; view
 * is 0 meanwhile, which sends a signal handler's allocation to the slow path and from there to emergency.c.
 *
 * Cost over the untraced build is watched by bench/counts. Compiled with optimisation in every build: the jumps of
 * fast_path.h must stay jumps. */
#include "alloc/fast_path.h"

#include <string.h>

#include "alloc/entry.h"
#include "alloc/public_names.h"
#include "alloc/remembered_frees.h"
#include "trace/capture.h"

enum { SMALL_REQUEST_MAX = TA__SMALL_REQUEST_MAX };

/* Who asks: malloc answers NULL when there is no memory, new asks the program's handler and throws; calloc's block is zeroed. */
enum asks { MALLOC, NEW, CALLOC };

/* A new block under this leaf, by mimalloc's own ways; NULL: no memory. */
static void *fresh_under(uint32_t leaf, size_t size, struct ta__thread *self, int zeroed)
{
    void *user = ta__domain_part(self, 0) != NULL ? ta__heap_allocate_behind(self->headed, size, zeroed) : NULL;
    return ta__finish_allocation(self, user, size, leaf);
}

/* A block of medium size where every request is traced, in domain 0. NULL: the slow path must be taken. */
TA_INLINE void *medium(size_t size, int zeroed, struct ta__caller caller)
{
    struct ta__thread *self = ta__self;
    uint32_t gate;
    int has_stack = ta__owner_read(&self->allocate) == ta__malloc_stack;
    if (size - SMALL_REQUEST_MAX - 1 >= TA__MEDIUM_MAX - SMALL_REQUEST_MAX ||
        (!has_stack && ta__owner_read(&self->allocate) != ta__malloc_one_frame) ||
        !ta__safepoint_seal(&self->safepoint, &gate))
        return NULL;
    uint32_t leaf =
        has_stack ? ta__capture(self, caller.ip, caller.sp, caller.fp, 0) : ta__capture_site(self, caller.ip);
    void *user = leaf != 0 ? ta__heap_pop_medium(self->headed, size) : NULL;
    if (user != NULL) {
        user = ta__traced_block(self, user, size, leaf, gate);
        return zeroed ? memset(user, 0, size) : user;
    }
    if (leaf != 0)
        user = fresh_under(leaf, size, self, zeroed);
    ta__leave_sealed(self, gate);
    return user;
}

__attribute__((noinline)) void *ta__malloc_slow(size_t size)
{
    struct ta__caller caller = TA__CALLER();
    void *user = medium(size, 0, caller);
    return user != NULL ? user
                        : ta__allocate(&(struct ta__request){.size = size, .domain = TA__DOMAIN_AMBIENT}, caller);
}

__attribute__((noinline)) static void *new_slow(size_t size)
{
#if TRACEALLOC_OVERRIDE
    struct ta__caller caller = TA__CALLER();
    void *user = medium(size, 0, caller);
    return user != NULL ? user : ta__new_slow(size, caller);
#else
    return ta__malloc_slow(size);
#endif
}

__attribute__((noinline)) static void *calloc_slow(size_t size)
{
    struct ta__caller caller = TA__CALLER();
    void *user = medium(size, 1, caller);
    return user != NULL
               ? user
               : ta__allocate(&(struct ta__request){.size = size, .zeroed = 1, .domain = TA__DOMAIN_AMBIENT}, caller);
}

TA_INLINE void *slow(size_t size, enum asks asks)
{
    if (asks == CALLOC)
        return calloc_slow(size);
    return asks == NEW ? new_slow(size) : ta__malloc_slow(size);
}

/* ---- traced ------------------------------------------------------------------------------------------------------- */

__attribute__((noipa)) void *ta__malloc_new_high(void *user, struct ta__thread *self, uint32_t gate)
{
    ta__counters_new_high(self);
    ta__leave_sealed(self, gate);
    return user;
}

/* Leaf or block are missing: the rare rest of a traced allocation. */
__attribute__((cold, noipa)) static void *traced_rest(size_t size, struct ta__thread *self, uint32_t leaf,
                                                      uint32_t gate, enum asks asks)
{
    char *block = ta__heap_pop_freed(self->headed, size);
    void *user;
    if (block == NULL) {
        user = fresh_under(leaf, size, self, asks == CALLOC);
    } else {
        user = ta__finish_allocation(self, block + TA__MARK_SIZE, size, leaf);
        if (asks == CALLOC)
            memset(user, 0, size);
    }
    ta__leave_sealed(self, gate);
    return user != NULL ? user : slow(size, asks);
}

__attribute__((cold, noipa)) static void *calloc_new_high(void *user, size_t size, struct ta__thread *self,
                                                          uint32_t gate)
{
    return memset(ta__malloc_new_high(user, self, gate), 0, size);
}

/* As ta__traced_block; what is zeroed is nobody else's, so that the operation may be over. */
TA_INLINE void *zeroed_block(struct ta__thread *self, void *block, size_t size, uint32_t leaf, uint32_t gate)
{
    void *user = ta__header_write_short(block, self->traced_check, leaf, size);
    if (TA_UNLIKELY(ta__count_in(self, leaf, size)) && TA_UNLIKELY(!ta__counters_raise(self)))
        return calloc_new_high(user, size, self, gate);
    ta__leave_sealed(self, gate);
    return memset(user, 0, size);
}

/* The block of a stack that has this leaf, or 0 for none. */
TA_INLINE void *block_under(uint32_t leaf, size_t size, struct ta__thread *self, uint32_t gate, enum asks asks)
{
    void *block = TA_LIKELY(leaf != 0) ? ta__heap_pop(self->headed, size) : NULL;
    if (TA_UNLIKELY(block == NULL))
        return traced_rest(size, self, leaf, gate, asks);
    return asks == CALLOC ? zeroed_block(self, block, size, leaf, gate)
                          : ta__traced_block(self, block, size, leaf, gate);
}

/* Whole stacks, or more than one frame of them, in three functions for each who asks, of which one goes on in the next by a
 * jump. The first looks at the stack that is expected and calls nothing, so that it needs no frame. */
#define STACK_STEP(name, of, asks)                                                                                     \
    __attribute__((noinline, noipa)) static void *name(size_t size, struct ta__thread *self, uintptr_t sp,             \
                                                       uintptr_t ip, uintptr_t fp, uint32_t gate)                      \
    {                                                                                                                  \
        return of(size, self, sp, ip, fp, gate, asks);                                                                 \
    }
#define THREE_WAYS(asks, name, ...)                                                                                    \
    ((asks) == NEW      ? new_##name(__VA_ARGS__)                                                                      \
     : (asks) == CALLOC ? calloc_##name(__VA_ARGS__)                                                                   \
                        : malloc_##name(__VA_ARGS__))

/* Neither of the two stacks that are looked at first. */
TA_INLINE void *stack_missed(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip, uintptr_t fp,
                             uint32_t gate, enum asks asks)
{
    return block_under(ta__capture_further(self, ip, sp, fp, 0), size, self, gate, asks);
}

STACK_STEP(malloc_stack_missed, stack_missed, MALLOC)
STACK_STEP(new_stack_missed, stack_missed, NEW)
STACK_STEP(calloc_stack_missed, stack_missed, CALLOC)

/* Not the stack that was expected of those that begin like it: perhaps the other one that came behind the last. Calls
 * nothing. */
TA_INLINE void *stack_other(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip, uintptr_t fp,
                            uint32_t gate, enum asks asks)
{
    uint32_t leaf = ta__kept_find_other(self, ip, sp, fp, 0);
    if (TA_UNLIKELY(leaf == 0)) {
        ip = ta__entered_from(sp, ip);
        return THREE_WAYS(asks, stack_missed, size, self, sp, ip, fp, gate);
    }
    ta__check_kept(self, ip, sp, fp, leaf);
    return block_under(leaf, size, self, gate, asks);
}

STACK_STEP(malloc_stack_other, stack_other, MALLOC)
STACK_STEP(new_stack_other, stack_other, NEW)
STACK_STEP(calloc_stack_other, stack_other, CALLOC)

TA_INLINE void *whole_stack(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip, uintptr_t fp,
                            enum asks asks)
{
    uint32_t gate;
    if (TA_UNLIKELY(!ta__begin_sealed(self, &gate, size)))
        return slow(size, asks);
    uint32_t leaf = ta__kept_find_expected(self, ip, sp, fp, 0);
    if (TA_UNLIKELY(leaf == 0)) {
        ip = ta__entered_from(sp, ip);
        return THREE_WAYS(asks, stack_other, size, self, sp, ip, fp, gate);
    }
    ta__check_kept(self, ip, sp, fp, leaf);
    return block_under(leaf, size, self, gate, asks);
}

__attribute__((used)) void *ta__malloc_stack_of(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip,
                                                uintptr_t fp)
{
    return whole_stack(size, self, sp, ip, fp, MALLOC);
}

__attribute__((used)) void *ta__new_stack_of(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip,
                                             uintptr_t fp)
{
    return whole_stack(size, self, sp, ip, fp, NEW);
}

__attribute__((used)) void *ta__calloc_stack_of(size_t size, struct ta__thread *self, uintptr_t sp, uintptr_t ip,
                                                uintptr_t fp)
{
    return whole_stack(size, self, sp, ip, fp, CALLOC);
}

TA__ENTERED_WITH_CALLER(extern, ta__malloc_stack, ta__malloc_stack_of)
TA__ENTERED_WITH_CALLER(static, new_stack, ta__new_stack_of)
TA__ENTERED_WITH_CALLER(static, calloc_stack, ta__calloc_stack_of)

/* One frame, from a call site that is not known. */
__attribute__((cold, noipa)) static void *new_site(size_t size, struct ta__thread *self, uintptr_t ip, uint32_t gate,
                                                   enum asks asks)
{
    return block_under(ta__capture_one(self, ip, 0), size, self, gate, asks);
}

/* From another one than the last that was new. */
__attribute__((noinline, noipa)) static void *other_site(size_t size, struct ta__thread *self, uintptr_t ip,
                                                         uint32_t gate, enum asks asks)
{
    const struct ta__near_site *site = ta__near_site_of(self->near, ip);
    if (TA_UNLIKELY(site->ip != ip || site->domain != 0))
        return new_site(size, self, ip, gate, asks);
    void *block = ta__heap_pop(self->headed, size);
    if (TA_UNLIKELY(block == NULL))
        return traced_rest(size, self, site->leaf, gate, asks);
    return ta__traced_block_in_row(self, block, size, site->leaf, site->row, gate);
}

/* One frame: the return address is the whole stack, so that nothing is walked and no frame of ours is made. */
TA_INLINE void *one_frame(size_t size, struct ta__thread *self, enum asks asks)
{
    uint32_t gate;
    if (TA_UNLIKELY(!ta__begin_sealed(self, &gate, size)))
        return slow(size, asks);
    uintptr_t ip = (uintptr_t)__builtin_return_address(0);
    if (TA_UNLIKELY(self->one_ip != ip))
        return other_site(size, self, ip, gate, asks);
    void *block = ta__heap_pop(self->headed, size);
    if (TA_UNLIKELY(block == NULL))
        return traced_rest(size, self, ta__one_leaf(self), gate, asks);
    return ta__traced_block_of_site(self, block, size, gate);
}

/* ---- plain -------------------------------------------------------------------------------------------------------- */

/* The rest of an allocation that is not traced, marked: the page's list is empty, or the block is not small. NULL, and
 * nothing done, for very large ones and for threads that have no heap yet; or there is no memory. */
TA_INLINE void *plain_rest(size_t size, struct ta__thread *self)
{
    enum { REQUEST_MAX = 1 << 20 };
    if (TA_UNLIKELY(size > REQUEST_MAX || self->theap == TA__THEAP_EMPTY))
        return NULL;
    void *block;
    if (size > SMALL_REQUEST_MAX) {
        block = ta__heap_allocate(self->theap, size, 0);
    } else {
        block = ta__heap_pop_freed(self->theap, size);
        if (TA_UNLIKELY(block == NULL))
            block = ta__heap_refill(self->theap, size);
    }
    if (TA_UNLIKELY(block == NULL))
        return NULL;
    ta__leave(self);
    return block;
}

__attribute__((noinline)) void *ta__malloc_untraced_rest(size_t size, struct ta__thread *self)
{
    ta__safepoint_mark(&self->safepoint);
    return TA_LIKELY(ta__gate_read() == 0) ? plain_rest(size, self) : NULL;
}

TA_INLINE void *any(size_t size, struct ta__thread *self, enum asks asks)
{
    void *user = ta__malloc_untraced_rest(size, self);
    return TA_LIKELY(user != NULL) ? user : slow(size, asks);
}

__attribute__((noinline)) void *ta__malloc_any(size_t size, struct ta__thread *self)
{
    return any(size, self, MALLOC);
}

__attribute__((noinline)) void *ta__new_any(size_t size, struct ta__thread *self)
{
    return any(size, self, NEW);
}

/* Nothing is traced. */
TA_INLINE void *plain(size_t size, struct ta__thread *self, enum asks asks)
{
    void *block = TA_LIKELY(size <= SMALL_REQUEST_MAX) ? ta__heap_pop(self->theap, size) : NULL;
    if (TA_UNLIKELY(block == NULL))
        return asks == NEW ? ta__new_any(size, self) : ta__malloc_any(size, self);
    return block;
}

__attribute__((noinline)) void *ta__malloc_plain_rest(size_t size, struct ta__thread *self)
{
    ta__safepoint_mark(&self->safepoint);
    return TA_LIKELY(ta__gate_read() == self->safepoint.view) ? plain_rest(size, self) : NULL;
}

/* A request that is no sample, as `sampled` found. */
TA_INLINE void *sampled_rest(size_t size, struct ta__thread *self, enum asks asks)
{
    void *user = ta__malloc_plain_rest(size, self);
    if (TA_UNLIKELY(user == NULL))
        return slow(size, asks);
    self->sample_left -= (int64_t)size;
    return user;
}

__attribute__((noinline)) static void *malloc_sampled_rest(size_t size, struct ta__thread *self)
{
    return sampled_rest(size, self, MALLOC);
}

__attribute__((noinline)) static void *new_sampled_rest(size_t size, struct ta__thread *self)
{
    return sampled_rest(size, self, NEW);
}

/* Sampled: nearly every block is plain. */
TA_INLINE void *sampled(size_t size, struct ta__thread *self, enum asks asks)
{
    int64_t left = self->sample_left - (int64_t)size;
    if (TA_UNLIKELY(left < 0))
        return slow(size, asks);
    if (TA_UNLIKELY(size - 1 >= SMALL_REQUEST_MAX)) { /* an empty one weighs as much as one byte */
        if (size - 1 >= INT64_MAX)
            return slow(size, asks);
        return asks == NEW ? new_sampled_rest(size, self) : malloc_sampled_rest(size, self);
    }
    void *block = ta__heap_pop(self->theap, size);
    if (TA_UNLIKELY(block == NULL))
        return asks == NEW ? new_sampled_rest(size, self) : malloc_sampled_rest(size, self);
    self->sample_left = left;
    return block;
}

/* Nothing is traced, but blocks have headers. */
TA_INLINE void *with_header(size_t size, struct ta__thread *self, enum asks asks)
{
    ta__safepoint_mark(&self->safepoint);
    if (TA_UNLIKELY(size > SMALL_REQUEST_MAX || ta__operand_acquire(&ta__gate) != self->safepoint.view))
        return slow(size, asks);
    void *block = ta__heap_pop(self->headed, size);
    if (TA_UNLIKELY(block == NULL))
        return slow(size, asks);
    void *user = ta__header_write_short(block, ta__check_of_kind(TA__KIND_PLAIN), 0, size);
    ta__leave(self);
    return user;
}

/* ---- the ways, and which is taken --------------------------------------------------------------------------------- */

#define WAY(name, of, asks)                                                                                            \
    __attribute__((noinline)) static void *name(size_t size, struct ta__thread *self)                                  \
    {                                                                                                                  \
        return of(size, self, asks);                                                                                   \
    }

WAY(malloc_plain, plain, MALLOC)
WAY(malloc_sampled, sampled, MALLOC)
WAY(malloc_with_header, with_header, MALLOC)
WAY(new_plain, plain, NEW)
WAY(new_one_frame, one_frame, NEW)
WAY(new_sampled, sampled, NEW)
WAY(new_with_header, with_header, NEW)

__attribute__((noinline)) void *ta__malloc_one_frame(size_t size, struct ta__thread *self)
{
    return one_frame(size, self, MALLOC);
}

void ta__malloc_choose_any(struct ta__thread *self)
{
    ta__store_relaxed(&self->plain_limit, UINT64_C(0));
    ta__store_relaxed(&self->allocate, ta__malloc_any);
    ta__store_relaxed(&self->create, ta__new_any);
    ta__store_relaxed(&self->release, ta__free_any);
}

static enum ta__way way_of(const struct ta__thread *self, uint32_t gate)
{
    int is_traced = (gate & TA__GATE_TRACING) != 0 && !self->no_trace;
    int is_sampled = (gate & TA__GATE_SAMPLED) != 0;
    if ((gate & TA__GATE_TRACKED) != 0)
        return TA__WAY_ANY;
    if ((gate & TA__GATE_HEADERS) != 0 && (!is_traced || is_sampled))
        return is_traced ? TA__WAY_ANY : TA__WAY_HEADER;
    if (!is_traced)
        return TA__WAY_PLAIN;
    if (is_sampled)
        return TA__WAY_SAMPLED;
    return (gate & TA__GATE_ONE_FRAME) != 0 ? TA__WAY_ONE_FRAME : TA__WAY_STACK;
}

static void (*release_of(const struct ta__thread *self, uint32_t gate))(void *user, struct ta__thread *self)
{
    if ((gate & TA__GATE_TRACKED) != 0 || ta__frees_are_remembered())
        return ta__free_any;
    if ((gate & (TA__GATE_TRACING | TA__GATE_SAMPLED)) == TA__GATE_TRACING)
        return ta__free_traced;
    return self->domains != NULL ? ta__free_beside_domains : ta__free_plain;
}

void ta__malloc_choose(struct ta__thread *self, uint32_t gate)
{
    typedef void *(*function)(size_t size, struct ta__thread * self);
    static const struct {
        function allocate, create, in_scope;
    } ways[] = {
        [TA__WAY_ANY] = {ta__malloc_any, ta__new_any, ta__malloc_any},
        [TA__WAY_PLAIN] = {malloc_plain, new_plain, ta__malloc_in_scope},
        [TA__WAY_HEADER] = {malloc_with_header, new_with_header, ta__malloc_any},
        [TA__WAY_SAMPLED] = {malloc_sampled, new_sampled, ta__malloc_sampled_in_scope},
        [TA__WAY_ONE_FRAME] = {ta__malloc_one_frame, new_one_frame, ta__malloc_one_frame_in_scope},
        [TA__WAY_STACK] = {ta__malloc_stack, new_stack, ta__malloc_stack_in_scope},
    };
    int in_scope = (gate & TA__GATE_DOMAINS) != 0;
    enum ta__way way = in_scope && self->domains == NULL ? TA__WAY_ANY : way_of(self, gate);
    self->traced_check = ta__check_of_kind(TA__KIND_TRACED);
    self->way = in_scope ? TA__WAY_ANY : (uint8_t)way;
    int is_plain = self->way == TA__WAY_PLAIN && !ta__frees_are_remembered();
    ta__store_relaxed(&self->plain_limit, is_plain ? SMALL_REQUEST_MAX : UINT64_C(0));
    ta__store_relaxed(&self->allocate, in_scope ? ways[way].in_scope : ways[way].allocate);
    ta__store_relaxed(&self->create, in_scope ? ta__new_any : ways[way].create);
    ta__store_relaxed(&self->release, release_of(self, gate));
}

int ta__malloc_is_plain(const struct ta__thread *self)
{
    return self->way == TA__WAY_PLAIN && self->plain_limit != 0 && self->release == release_of(self, 0);
}

TA_ENTRY void *ta_malloc(size_t size)
{
    struct ta__thread *self = ta__self;
    return ta__owner_read(&self->allocate)(size, self);
}

#if TRACEALLOC_OVERRIDE
__attribute__((noinline, no_stack_protector)) void *ta__new(size_t size)
{
    struct ta__thread *self = ta__self;
    return ta__owner_read(&self->create)(size, self);
}

TA_ALSO_NAMED(_Znwm, ta__new)
TA_ALSO_NAMED(_Znam, ta__new)
#endif

/* ---- zeroed blocks: more is to be done with the block, so that no jump can end it ---------------------------------- */

/* From another call site than the one that asked last. */
__attribute__((noinline, noipa)) static void *calloc_other_site(size_t size, struct ta__thread *self, uintptr_t ip,
                                                                uint32_t gate)
{
    return block_under(ta__capture_site(self, ip), size, self, gate, CALLOC);
}

__attribute__((noinline)) static void *calloc_one_frame(size_t size, struct ta__thread *self)
{
    uint32_t gate;
    if (TA_UNLIKELY(!ta__begin_sealed(self, &gate, size)))
        return calloc_slow(size);
    uintptr_t ip = (uintptr_t)__builtin_return_address(0);
    if (TA_UNLIKELY(self->one_ip != ip))
        return calloc_other_site(size, self, ip, gate);
    return block_under(ta__one_leaf(self), size, self, gate, CALLOC);
}

__attribute__((noinline)) static void *calloc_sampled(size_t size, struct ta__thread *self)
{
    int64_t left = self->sample_left - (int64_t)size;
    if (TA_UNLIKELY(size - 1 >= SMALL_REQUEST_MAX || left < 0 || ta__owner_read(&self->allocate) == ta__malloc_any))
        return calloc_slow(size);
    void *block = ta__heap_pop(self->theap, size);
    if (TA_UNLIKELY(block == NULL) && (block = ta__malloc_plain_rest(size, self)) == NULL)
        return calloc_slow(size);
    self->sample_left = left;
    return memset(block, 0, size);
}

__attribute__((noinline)) static void *calloc_gated(size_t size, struct ta__thread *self)
{
    if (self->way == TA__WAY_ONE_FRAME)
        return calloc_one_frame(size, self);
    if (self->way == TA__WAY_STACK)
        return calloc_stack(size, self);
    if (self->way == TA__WAY_SAMPLED)
        return calloc_sampled(size, self);
    void *user = size <= SMALL_REQUEST_MAX ? ta__malloc_untraced_rest(size, self) : NULL;
    return TA_LIKELY(user != NULL) ? memset(user, 0, size) : calloc_slow(size);
}

TA_ENTRY void *ta_calloc(size_t count, size_t each)
{
    size_t size;
    if (TA_UNLIKELY(__builtin_mul_overflow(count, each, &size)))
        return ta__out_of_memory();
    struct ta__thread *self = ta__self;
    if (TA_UNLIKELY(size - 1 >= ta__owner_read(&self->plain_limit)))
        return calloc_gated(size, self);
    void *block = ta__heap_pop(self->theap, size);
    return TA_LIKELY(block != NULL) ? memset(block, 0, size) : calloc_gated(size, self);
}

TA_ALSO_NAMED(malloc, ta_malloc)
TA_ALSO_NAMED(calloc, ta_calloc)
TA_ALSO_LIBCS(malloc, malloc, alloc_size(1))
TA_ALSO_LIBCS(calloc, malloc, alloc_size(1, 2))
