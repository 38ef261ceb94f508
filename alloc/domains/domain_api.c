/* domain_api.c: the calls of tracealloc/domain.h but destruction: scopes, explicit requests, names, figures, limits.
 *
 * A scope costs a few plain instructions: push compares the number with what lies above the top of the thread's stack,
 * which is there from last time; both move one pointer. Everything else is cold. */
#include "tracealloc/domain.h"

#include <errno.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/domains/domain_table.h"
#include "alloc/entry.h"
#include "alloc/live_block.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/safepoint.h"

#define table ta__domain_table

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

/* Written so that a signal handler that pushes and pops in the middle does no harm: what it left is overwritten. */
static void fill(struct ta__scope *scope, const struct ta__scope *wanted)
{
    do {
        scope->key = TA__SCOPE_UNCACHED;
        ta__compiler_fence();
        scope->slot = wanted->slot;
        scope->number = wanted->number;
        scope->capture = wanted->capture;
        ta__compiler_fence();
        scope->key = wanted->key;
        ta__compiler_fence();
    } while (ta__load_relaxed(&scope->slot) != wanted->slot || ta__load_relaxed(&scope->number) != wanted->number);
}

/* Pushes that could not be: of signal handlers inside the allocator, and where there is no memory. */
static TA_THREAD_LOCAL uint32_t pushes_missed;

/* Its pop must leave the present scope alone. */
static void miss_push(const struct ta__thread *self)
{
    pushes_missed++;
    if (ta__owner_read(&self->scope->key) != TA__SCOPE_EDGE)
        self->scope->key = TA__SCOPE_EDGE;
}

TA_COLD static void push_slow(uint32_t number, int into_arena)
{
    uint32_t gate;
    struct ta__thread *self = ta__begin(&gate);
    if (self == NULL) {
        miss_push(ta__self);
        return;
    }
    struct ta__domain_parts *parts = NULL;
    int index = ta__domain_index(number);
    struct ta__domain_slot *slot = index >= 0 ? ta__domain_slot(self, (uint32_t)index) : NULL;
    parts = self->domains;
    if (parts != NULL) {
        struct ta__scope *top = self->scope;
        struct ta__scope *next = top + 1;
        uint32_t at = (uint32_t)(next - parts->scopes);
        if (at >= TA__SCOPES_MAX - 1) {
            parts->scopes_over++;
            top->key = TA__SCOPE_EDGE;
        } else {
            if (at >= parts->scopes_filled) {
                next[1].key = TA__SCOPE_UNCACHED;
                parts->scopes_filled = at + 1;
            }
            struct ta__scope wanted = {.slot = slot, .key = number, .number = number};
            int keeps_out =
                slot == NULL || ((ta__domain_at((uint32_t)index)->flags & TA__DOMAIN_ARENA) != 0 && !into_arena);
            if (keeps_out) {
                wanted.slot = top->slot;
                wanted.capture = top->capture;
                wanted.key = TA__SCOPE_UNCACHED;
            } else {
                wanted.capture = ta__domain_capture((uint32_t)index);
                if (into_arena)
                    wanted.key = TA__SCOPE_UNCACHED; /* a plain push of the number means something else */
            }
            fill(next, &wanted);
            ta__compiler_fence();
            self->scope = next;
        }
    } else {
        miss_push(self);
    }
    ta__end(self, gate);
}

TA_ENTRY void ta_domain_push(uint32_t domain)
{
    struct ta__thread *self = ta__self;
    struct ta__scope *next = self->scope + 1;
    if (TA_UNLIKELY(ta__owner_read(&next->key) != domain)) {
        push_slow(domain, 0);
        return;
    }
    self->scope = next;
}

TA_ENTRY void ta_domain_push_arena(uint32_t domain)
{
    push_slow(domain, 1);
}

TA_COLD static void pop_slow(struct ta__thread *self)
{
    struct ta__domain_parts *parts = self->domains;
    if (pushes_missed > 0) {
        pushes_missed--;
        return;
    }
    if (parts != NULL && parts->scopes_over > 0) {
        parts->scopes_over--;
        return;
    }
    if (parts != NULL && self->scope > parts->scopes) { /* the last entry there is */
        self->scope->key = TA__SCOPE_UNCACHED;
        self->scope--;
        return;
    }
    static uint32_t said;
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) == 0)
        ta__message_line("ta_domain_pop without ta_domain_push: ignored, here and whenever it happens again", NULL);
}

TA_ENTRY void ta_domain_pop(void)
{
    struct ta__thread *self = ta__self;
    struct ta__scope *scope = self->scope;
    if (TA_UNLIKELY(ta__owner_read(&scope->key) == TA__SCOPE_EDGE)) {
        pop_slow(self);
        return;
    }
    self->scope = scope - 1;
}

TA_API uint32_t ta_domain_current(void)
{
    return ta__self->scope->number;
}

TA_API void ta_domain_with(uint32_t domain, void (*function)(void *context), void *context)
{
    ta_domain_push(domain);
    function(context);
    ta_domain_pop();
}

/* ---- explicit requests ------------------------------------------------------------------------------------------- */

TA_ENTRY void *ta_domain_calloc(uint32_t domain, size_t count, size_t size)
{
    size_t bytes;
    if (TA_UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return ta__out_of_memory();
    return ta__allocate(&(struct ta__request){.size = bytes, .zeroed = 1, .domain = domain}, TA__CALLER());
}

TA_ENTRY void *ta_domain_realloc(uint32_t domain, void *block, size_t size)
{
    return ta__reallocate(block, size, domain, TA__CALLER());
}

TA_ENTRY void *ta_domain_reallocarray(uint32_t domain, void *block, size_t count, size_t size)
{
    size_t bytes;
    if (TA_UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return ta__out_of_memory();
    return ta__reallocate(block, bytes, domain, TA__CALLER());
}

static int is_power_of_two(size_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

TA_ENTRY void *ta_domain_aligned_alloc(uint32_t domain, size_t alignment, size_t size)
{
    if (TA_UNLIKELY(!is_power_of_two(alignment)))
        return ta__invalid_alignment();
    return ta__allocate(&(struct ta__request){.size = size, .alignment = alignment, .domain = domain}, TA__CALLER());
}

TA_ENTRY int ta_domain_posix_memalign(uint32_t domain, void **block, size_t alignment, size_t size)
{
    if (TA_UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void *) != 0))
        return EINVAL;
    int saved_errno = errno;
    void *user =
        ta__allocate(&(struct ta__request){.size = size, .alignment = alignment, .domain = domain}, TA__CALLER());
    errno = saved_errno;
    if (TA_UNLIKELY(user == NULL))
        return ENOMEM;
    *block = user;
    return 0;
}

/* A copy with room for a byte behind it, which is 0. */
static void *duplicate(uint32_t domain, const void *data, size_t length, size_t behind, struct ta__caller caller)
{
    char *copy = ta__allocate(&(struct ta__request){.size = length + behind, .domain = domain}, caller);
    if (copy != NULL) {
        memcpy(copy, data, length);
        if (behind != 0)
            copy[length] = '\0';
    }
    return copy;
}

TA_ENTRY char *ta_domain_strdup(uint32_t domain, const char *text)
{
    return duplicate(domain, text, strlen(text), 1, TA__CALLER());
}

TA_ENTRY char *ta_domain_strndup(uint32_t domain, const char *text, size_t max)
{
    return duplicate(domain, text, strnlen(text, max), 1, TA__CALLER());
}

TA_ENTRY void *ta_domain_memdup(uint32_t domain, const void *data, size_t size)
{
    return duplicate(domain, data, size, 0, TA__CALLER());
}

TA_API int ta_domain_of(const void *block, uint32_t *domain)
{
    struct ta__live_block live;
    struct ta__look look;
    int is_live = ta__look(&look) && block != NULL && ta__live_block(block, &live);
    if (is_live) {
        const struct ta__domain *home = ta__domain_at(live.domain);
        *domain = home->number;
        is_live = !ta__domain_is_dead(home);
    }
    ta__end_look(&look);
    return is_live;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

enum { NAME_MAX_BYTES = 255, NAMES_BYTES = 1 << 20 };

/* The index of a number, made if wanted; for calls that are not operations themselves. */
static int index_of(uint32_t number, int make)
{
    uint32_t gate;
    if (number == 0)
        return ta__thread_get() != NULL ? 0 : TA__DOMAIN_NONE;
    struct ta__thread *self = ta__thread_get() != NULL ? ta__begin(&gate) : NULL;
    if (self == NULL)
        return TA__DOMAIN_NONE;
    int index = make ? ta__domain_index(number) : ta__domain_known(number);
    ta__end(self, gate);
    return index;
}

/* Under the lock. Names are never removed: "" only when there is no room. */
static const char *keep_name(const char *name)
{
    static char *names;
    static size_t used;
    static size_t size;
    size_t bytes = strlen(name) + 1;
    if (bytes > size - used) {
        char *fresh = ta__memory_map(NAMES_BYTES);
        if (fresh == NULL)
            return NULL;
        names = fresh;
        used = 0;
        size = NAMES_BYTES;
    }
    memcpy(names + used, name, bytes);
    used += bytes;
    return names + used - bytes;
}

static uint32_t find_name(const char *name)
{
    for (uint32_t index = 0; index < table.count; index++)
        if (!ta__domain_is_dead(ta__domain_at(index)) && strcmp(ta__domain_at(index)->name, name) == 0)
            return index;
    return TA__DOMAIN_DEAD;
}

static int refuse_name(int error)
{
    errno = error;
    return ta__error_set(error == EEXIST ? "another domain has this name" : "no memory for the name", NULL);
}

TA_API int ta_domain_set_name(uint32_t domain, const char *name)
{
    if (strlen(name) > NAME_MAX_BYTES) {
        errno = EINVAL;
        return ta__error_set("the name of a domain has at most 255 bytes", NULL);
    }
    uint32_t holder;
    if (ta_domain_find(name, &holder) && holder != domain) /* a refused name makes no domain */
        return refuse_name(EEXIST);
    int index = index_of(domain, 1);
    if (index < 0) {
        errno = ENOMEM;
        return ta__error_set("there is no room for another domain", NULL);
    }
    struct ta__shut shut = ta__shut();
    ta__lock_acquire(&table.lock);
    uint32_t other = *name != '\0' ? find_name(name) : TA__DOMAIN_DEAD;
    int error = 0;
    if (other == TA__DOMAIN_DEAD) {
        const char *kept = keep_name(name);
        if (kept != NULL)
            ta__store_release(&ta__domain_at((uint32_t)index)->name, kept);
        else
            error = ENOMEM;
    } else if (other != (uint32_t)index) {
        error = EEXIST;
    }
    ta__lock_release(&table.lock);
    ta__open(&shut);
    return error == 0 ? 0 : refuse_name(error);
}

TA_API const char *ta_domain_name(uint32_t domain)
{
    int index = index_of(domain, 0);
    return index >= 0 ? ta__load_acquire(&ta__domain_at((uint32_t)index)->name) : "";
}

TA_API int ta_domain_find(const char *name, uint32_t *domain)
{
    if (*name == '\0' || ta__thread_get() == NULL)
        return 0;
    struct ta__shut shut = ta__shut();
    ta__lock_acquire(&table.lock);
    uint32_t index = find_name(name);
    ta__lock_release(&table.lock);
    ta__open(&shut);
    if (index == TA__DOMAIN_DEAD)
        return 0;
    *domain = ta__domain_at(index)->number;
    return 1;
}

TA_API size_t ta_domain_list(uint32_t *domains, size_t max)
{
    size_t living = 0;
    if (ta__thread_get() == NULL)
        return 0;
    uint32_t count = ta__domain_count();
    for (uint32_t index = 0; index < count; index++) {
        if (ta__domain_is_dead(ta__domain_at(index)))
            continue;
        if (living < max)
            domains[living] = ta__domain_at(index)->number;
        living++;
    }
    return living;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static const struct ta__domain_slot *slot_of(int thread, uint32_t index, const struct ta__domain_cold **cold)
{
    const struct ta__thread *other = (const struct ta__thread *)ta__safepoint_member(thread);
    const struct ta__domain_parts *parts = ta__load_acquire(&other->domains);
    if (parts == NULL || ta__load_acquire(&parts->slots[index].cold) == 0)
        return NULL;
    *cold = &parts->cold[parts->slots[index].cold];
    return &parts->slots[index];
}

void ta__domain_sum(uint32_t index, struct ta__source_counts *sum, uint64_t *peak)
{
    const struct ta__domain *domain = ta__domain_at((uint32_t)index);
    *sum = (struct ta__source_counts){
        .allocated_blocks = ta__load_relaxed(&domain->lone_allocated_blocks),
        .allocated_bytes = ta__load_relaxed(&domain->lone_allocated_bytes),
        .freed_blocks = ta__load_relaxed(&domain->lone_freed_blocks),
        .freed_bytes = ta__load_relaxed(&domain->lone_freed_bytes),
    };
    int64_t highest = ta__load_relaxed(&domain->current);
    int64_t high = 0;
    int threads = ta__safepoint_size();
    for (int thread = 0; thread < threads; thread++) {
        const struct ta__domain_cold *cold;
        const struct ta__domain_slot *slot = slot_of(thread, index, &cold);
        if (slot == NULL)
            continue;
        /* Freed first: a block must not look freed before it was allocated. */
        sum->freed_blocks += ta__load_relaxed(&slot->freed_blocks);
        sum->freed_bytes += ta__load_relaxed(&slot->freed_bytes);
        sum->allocated_blocks += ta__load_relaxed(&slot->allocated_blocks);
        sum->allocated_bytes += ta__load_relaxed(&slot->allocated_bytes);
        int64_t own = ta__load_relaxed(&cold->high);
        high = own > high ? own : high;
    }
    highest += high;
    int64_t peak_so_far = ta__load_relaxed(&domain->peak);
    highest = highest > peak_so_far ? highest : peak_so_far;
    int64_t live = (int64_t)(sum->allocated_bytes - sum->freed_bytes);
    *peak = (uint64_t)(highest > live ? highest : live);
}

static uint64_t difference(uint64_t more, uint64_t less)
{
    return more > less ? more - less : 0;
}

uint64_t ta__domain_live_bytes(const struct ta__domain *domain)
{
    struct ta__source_counts sum;
    uint64_t peak;
    ta__domain_sum(domain->index, &sum, &peak);
    return difference(sum.allocated_bytes, sum.freed_bytes);
}

/* What the leaves of a domain hold. */
static struct ta__source_counts traced_sum(uint32_t index)
{
    struct ta__source_counts sum = {0};
    if (!ta_is_tracing())
        return sum;
    struct ta__shut shut = ta__shut();
    ta__tables_open();
    for (uint32_t leaf = ta__leaf_next(index, 0); leaf != 0; leaf = ta__leaf_next(index, leaf)) {
        struct ta__source_counts counts;
        ta__counters_fold(leaf, 1, &counts);
        sum.allocated_blocks += counts.allocated_blocks;
        sum.allocated_bytes += counts.allocated_bytes;
        sum.freed_blocks += counts.freed_blocks;
        sum.freed_bytes += counts.freed_bytes;
    }
    ta__tables_close();
    ta__open(&shut);
    return sum;
}

TA_API int ta_domain_get_stats(uint32_t domain, struct ta_domain_stats *stats, size_t size)
{
    int index = index_of(domain, 0);
    if (index < 0) {
        errno = ENOENT;
        return ta__error_set("there is no such domain", NULL);
    }
    const struct ta__domain *found = ta__domain_at((uint32_t)index);
    struct ta__source_counts traced = traced_sum((uint32_t)index);
    struct ta__source_counts sum = traced;
    uint64_t peak = 0;
    if (index != 0)
        ta__domain_sum((uint32_t)index, &sum, &peak);
    struct ta_domain_stats full = {
        .domain = domain,
        .is_arena = (ta__load_relaxed(&found->flags) & TA__DOMAIN_ARENA) != 0,
        .live_bytes = difference(sum.allocated_bytes, sum.freed_bytes),
        .live_blocks = difference(sum.allocated_blocks, sum.freed_blocks),
        .peak_bytes = peak,
        .allocated_bytes = sum.allocated_bytes,
        .allocated_blocks = sum.allocated_blocks,
        .freed_bytes = sum.freed_bytes,
        .freed_blocks = sum.freed_blocks,
        .soft_limit = ta__load_relaxed(&found->soft),
        .hard_limit = ta__load_relaxed(&found->hard),
        .crossings = ta__load_relaxed(&found->crossings),
        .traced_bytes = difference(traced.allocated_bytes, traced.freed_bytes),
        .traced_blocks = difference(traced.allocated_blocks, traced.freed_blocks),
    };
    ta__fill(stats, size, &full, sizeof full);
    return 0;
}

struct usable {
    uint32_t domain;
    uint64_t bytes;
};

static void add_usable(void *heap, uint32_t domain, void *context)
{
    struct usable *usable = context;
    if (domain == usable->domain)
        usable->bytes += ta__heap_in_use(heap);
}

TA_API uint64_t ta_domain_usable_bytes(uint32_t domain)
{
    struct ta__thread *self = ta__thread_get();
    if (self == NULL)
        return 0;
    if (ta__safepoint_stop(&self->safepoint) != TA__STOP_DONE)
        return 0;
    int index = ta__domain_known(domain);
    struct usable usable = {.domain = (uint32_t)index};
    if (index >= 0 && !ta__domain_at((uint32_t)index)->is_shared)
        ta__domain_heaps(add_usable, &usable);
    if (index == 0)
        usable.bytes += ta__heap_in_use(ta__plain_heap);
    ta__safepoint_resume(&self->safepoint);
    return usable.bytes;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* The world is stopped: no thread has room that it was given under another limit. */
static void flush_everywhere(uint32_t index)
{
    int threads = ta__safepoint_size();
    for (int thread = 0; thread < threads; thread++) {
        const struct ta__domain_cold *cold;
        struct ta__domain_slot *slot = (struct ta__domain_slot *)(uintptr_t)slot_of(thread, index, &cold);
        if (slot != NULL)
            ta__domain_flush((struct ta__thread *)ta__safepoint_member(thread), slot);
    }
}

static int are_limits(uint32_t domain, uint64_t soft, uint64_t hard)
{
    if (domain != 0 && soft <= UINT64_C(1) << 62 && hard <= UINT64_C(1) << 62)
        return 1;
    errno = EINVAL;
    ta__error_set(domain == 0 ? "domain 0 can have no limit" : "the limit is too large", NULL);
    return 0;
}

/* Holds the others; the domain, or NULL with the error set. */
static struct ta__domain *begin_limits(struct ta__thread *self, uint32_t index)
{
    enum ta__stop stop = ta__safepoint_stop(&self->safepoint);
    if (stop != TA__STOP_DONE) {
        ta__safepoint_refused(stop);
        return NULL;
    }
    flush_everywhere(index);
    return ta__domain_at(index);
}

static void end_limits(struct ta__thread *self, struct ta__domain *domain)
{
    domain->is_above = domain->soft != 0 && domain->current > (int64_t)domain->soft;
    ta__safepoint_resume(&self->safepoint);
}

TA_API int ta_domain_set_limit(uint32_t domain, const struct ta_domain_limit *limit)
{
    if (!are_limits(domain, limit->soft, limit->hard))
        return -1;
    int index = index_of(domain, 1);
    struct ta__thread *self = ta__thread_get();
    if (index < 0 || self == NULL) {
        errno = ENOMEM;
        return ta__error_set("there is no room for another domain", NULL);
    }
    struct ta__domain *found = begin_limits(self, (uint32_t)index);
    if (found == NULL)
        return -1;
    found->soft = limit->soft;
    found->hard = limit->hard;
    found->callback = limit->callback;
    found->context = limit->context;
    end_limits(self, found);
    return 0;
}

int ta__domain_limit_bytes(uint32_t domain, uint64_t soft, const uint64_t *hard)
{
    struct ta__thread *self = ta__thread_get();
    if (!are_limits(domain, soft, hard != NULL ? *hard : 0))
        return -1;
    struct ta__shut shut = ta__shut();
    int index = self != NULL ? ta__domain_known(domain) : TA__DOMAIN_NONE;
    ta__open(&shut);
    if (index < 0 || ta__domain_is_dead(ta__domain_at((uint32_t)index))) {
        errno = ENOENT;
        return ta__error_set("there is no such domain", NULL);
    }
    struct ta__domain *found = begin_limits(self, (uint32_t)index);
    if (found == NULL)
        return -1;
    found->soft = soft;
    if (hard != NULL)
        found->hard = *hard;
    end_limits(self, found);
    return 0;
}
