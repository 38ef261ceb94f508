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

#include "base/atomics.h"
#include "base/world.h"

enum { SMALL_REQUEST_MAX = TA__SMALL_MAX - TA__HEADER_SIZE };

TA_INLINE void enter(struct ta__thread *self)
{
    ta__store_relaxed(&self->world.in_op, 1u);
    ta__compiler_fence(); /* pairs with the membarrier of ta__world_stop */
}

TA_INLINE void leave(struct ta__thread *self)
{
    ta__store_release(&self->world.in_op, 0u);
}

/* ---- allocation
 * ---------------------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static void *malloc_slow(size_t size)
{
    return ta__allocate(&(struct ta__request){.size = size, .domain = TA__DOMAIN_AMBIENT}, TA__CALLER());
}

/* Leaf and block are there or not: the rare rest of a traced allocation. */
TA_COLD static void *malloc_traced_rest(struct ta__thread *self, size_t size, uint32_t leaf, uint32_t gate)
{
    void *block = ta__heap_allocate(self->theap, size + TA__HEADER_SIZE, 0);
    void *user = ta__finish_allocation(self, block, size, leaf);
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
    return user;
}

__attribute__((noinline)) static void *malloc_traced(size_t size)
{
    struct ta__caller caller = TA__CALLER();
    struct ta__thread *self = ta__self;
    uint32_t gate = ta__gate_read();
    if (TA_UNLIKELY(gate != ta__load_relaxed(&self->world.view) || size > SMALL_REQUEST_MAX ||
                    (gate & TA__GATE_SAMPLED) != 0))
        return ta__allocate(&(struct ta__request){.size = size, .domain = TA__DOMAIN_AMBIENT}, caller);

    ta__store_relaxed(&self->world.view, 0u);
    ta__compiler_fence();
    uint32_t leaf = ta__capture(self, caller.ip, caller.sp, caller.fp, self->domain);
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL || leaf == 0)) {
        if (block != NULL)
            ta__heap_free(ta__heap_page(block), block);
        return malloc_traced_rest(self, size, leaf, gate);
    }
    void *user = ta__header_write(ta__header_user(block), TA__KIND_TRACED, leaf, size, self->epoch);
    ta__count_allocation(self, leaf, size);
    ta__compiler_fence();
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
    return user;
}

TA_ENTRY void *ta_malloc(size_t size)
{
    struct ta__thread *self = ta__self;
    enter(self);
    if (TA_UNLIKELY(ta__gate_read() != 0))
        return malloc_traced(size);
    if (TA_UNLIKELY(size > SMALL_REQUEST_MAX))
        return malloc_slow(size);
    void *block = ta__heap_pop(self->theap, size + TA__HEADER_SIZE);
    if (TA_UNLIKELY(block == NULL))
        return malloc_slow(size);
    void *user = ta__header_write(ta__header_user(block), TA__KIND_PLAIN, 0, size, 0);
    leave(self);
    return user;
}

/* ---- release
 * ---------------------------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static void free_slow(void *user)
{
    ta__release(user, TA__CALLER());
}

__attribute__((noinline)) static void free_traced(void *user)
{
    struct ta__thread *self = ta__self;
    uint32_t gate = ta__gate_read();
    mi_page_t *page = ta__heap_page(user);
    if (TA_UNLIKELY(gate != ta__load_relaxed(&self->world.view) || page == NULL ||
                    ta__header_kind(user) != TA__KIND_TRACED))
        return free_slow(user);
    struct ta__header *header = ta__header_of(user);
    if (TA_UNLIKELY(ta__header_epoch(header) != self->epoch))
        return free_slow(user);

    ta__store_relaxed(&self->world.view, 0u);
    ta__compiler_fence();
    ta__count_free(self, header->leaf, ta__header_size(header)); /* the trace goes before the block can come back */
    ta__heap_free(page, header);
    ta__compiler_fence();
    ta__store_relaxed(&self->world.view, gate);
    leave(self);
}

TA_ENTRY void ta_free(void *user)
{
    if (TA_UNLIKELY(user == NULL))
        return;
    struct ta__thread *self = ta__self;
    enter(self);
    if (TA_UNLIKELY(ta__gate_read() != 0))
        return free_traced(user);
    mi_page_t *page = ta__heap_page(user);
    if (TA_UNLIKELY(page == NULL || ta__header_kind(user) != TA__KIND_PLAIN ||
                    _mi_prim_thread_id() != mi_page_xthread_id(page)))
        return free_slow(user);
    ta__heap_free(page, ta__header_of(user));
    leave(self);
}

/* ---- the others: one request each, served by slow.c
 * ---------------------------------------------------------------------------- */

TA_ENTRY void *ta_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (TA_UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return ta__out_of_memory();
    ta__mark_entered();
    return ta__allocate(&(struct ta__request){.size = bytes, .zeroed = 1, .domain = TA__DOMAIN_AMBIENT}, TA__CALLER());
}

TA_ENTRY void *ta_realloc(void *user, size_t size)
{
    ta__mark_entered();
    return ta__reallocate(user, size, TA__DOMAIN_AMBIENT, TA__CALLER());
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

/* operator delete in all its forms is free; operator new is in override_new.c. */
TA_ALSO_NAMED(_ZdlPv, ta_free)
TA_ALSO_NAMED(_ZdaPv, ta_free)
