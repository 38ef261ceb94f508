/* free.c: the common case of free — small blocks of the thread's own pages — and what is next to it.
 *
 * The page says which kind a block is. A plain one of a page of the thread's own goes back at once, which is no operation
 * (base/safepoint.h); one with a header is looked at. Everything else is a cold call in tail position, in the end
 * ta__release of slow.c. The trace goes before the block can come back. */
#include "alloc/fast_path.h"

#include "alloc/entry.h"
#include "alloc/public_names.h"
#include "alloc/remembered_frees.h"

__attribute__((noinline)) static void free_slow(void *user)
{
    if (user != NULL)
        ta__release(user);
    else
        ta__leave(ta__self);
}

void ta__free_any(void *user, struct ta__thread *self)
{
    if (TA_UNLIKELY(ta__frees_are_remembered()))
        return ta__free_remembering(user, self);
    free_slow(user);
}

TA_COLD void ta__free_unsealed(void *user, struct ta__thread *self, uint32_t gate)
{
    ta__leave_sealed(self, gate);
    free_slow(user);
}

/* ---- while every block is traced, or somebody waits ---------------------------------------------------------------- */

/* What the block's going brings along: its page is empty now, or sums are due. The arguments are in the registers where the
 * hot function has them. */
__attribute__((cold, noipa)) static void free_traced_rest(void *user, struct ta__thread *self, uint32_t gate,
                                                          mi_page_t *page)
{
    (void)user;
    if (page->used == 0 && page->retire_expire == 0)
        ta__heap_page_emptied(page);
    if (ta__is_flush_due(self))
        ta__counters_flush(self);
    ta__leave_sealed(self, gate);
}

/* The usual kind of traced block: counted as freed. 0: it is another, or wrong. */
TA_INLINE int count_traced_out(struct ta__thread *self, const void *user, const mi_page_t *page)
{
    uint64_t size = ta__mark_size_if(user, self->traced_check);
    if (TA_UNLIKELY(size >= page->block_size))
        return 0;
    uint32_t leaf = ta__mark_read_leaf(user);
    if (TA_UNLIKELY(leaf < self->leaf_first))
        return 0;
    ta__count_out(self, leaf, size);
    return 1;
}

/* A plain block of the thread's own, or any block of a full page, or of one whose thread ended. */
__attribute__((cold, noipa)) static void free_sealed_rest(void *block, struct ta__thread *self, uint32_t gate,
                                                          mi_page_t *page)
{
    ta__heap_free(page, block);
    ta__leave_sealed(self, gate);
}

__attribute__((cold, noipa)) static void collect_sealed(void *block, struct ta__thread *self, uint32_t gate,
                                                        mi_page_t *page)
{
    ta__heap_collect_abandoned(page, block);
    ta__leave_sealed(self, gate);
}

/* The page is full, or another thread's, or plain. */
__attribute__((noinline, noipa)) static void free_sealed_elsewhere(void *user, struct ta__thread *self, uint32_t gate,
                                                                   mi_page_t *page)
{
    mi_threadid_t word = mi_page_xthread_id(page);
    void *block = user;
    if (TA_LIKELY((word & MI_PAGE_HAS_INTERIOR_POINTERS) != 0)) {
        if (TA_UNLIKELY(!count_traced_out(self, user, page)))
            return ta__free_in_domain(user, self, gate, page);
        block = (char *)user - TA__MARK_SIZE;
    }
    if (TA_UNLIKELY(!ta__page_is_elsewhere(word)))
        return free_sealed_rest(block, self, gate, page);
    if (TA_UNLIKELY(ta__heap_push_elsewhere(page, block)))
        return collect_sealed(block, self, gate, page);
    ta__leave_sealed(self, gate);
}

/* Counts a traced block whose header was moved up within it as freed; answers where it begins. NULL: it is something else,
 * and nothing is done. */
TA_INLINE void *count_aligned_out(struct ta__thread *self, void *user, const mi_page_t *page)
{
    uint64_t size = ta__mark_size_if(user, self->traced_check ^ TA__KIND_ALIGNED);
    uint32_t leaf = ta__mark_read_leaf(user);
    if (size >= page->block_size || leaf < self->leaf_first)
        return NULL;
    char *block = ta__page_block_around(page, user);
    size_t distance = (size_t)((char *)user - block);
    if (TA_UNLIKELY(distance <= TA__MARK_SIZE || size > page->block_size - distance))
        return NULL;
    ta__count_out(self, leaf, size);
    ta__mark_kill(user); /* the allocator's link does not reach it */
    return block;
}

/* Every block is traced; this one is none of the usual kind in any domain. */
__attribute__((noinline, noipa)) void ta__free_traced_aligned(void *user, struct ta__thread *self, uint32_t gate,
                                                              mi_page_t *page)
{
    void *block = mi_page_xthread_id(page) == self->headed_word ? count_aligned_out(self, user, page) : NULL;
    if (TA_UNLIKELY(block == NULL))
        return ta__free_in_domain(user, self, gate, page);
    if (TA_UNLIKELY(ta__heap_push(page, block) || ta__is_flush_due(self)))
        return free_traced_rest(user, self, gate, page);
    ta__leave_sealed(self, gate);
}

/* Of any epoch. That a thread were in the first one could not be known beforehand: a signal may come before the operation is
 * sealed, and its handler meet a change. */
__attribute__((noinline)) void ta__free_traced(void *user, struct ta__thread *self)
{
    uint32_t gate;
    if (TA_UNLIKELY(!ta__safepoint_seal(&self->safepoint, &gate)))
        return free_slow(user);
    mi_page_t *page = ta__heap_page(user);
    if (TA_UNLIKELY(page == NULL))
        return ta__free_unsealed(user, self, gate);
    if (TA_UNLIKELY(mi_page_xthread_id(page) != self->headed_word))
        return free_sealed_elsewhere(user, self, gate, page);
    uint32_t check = ta__mark_check(user);
    if (TA_UNLIKELY((uint16_t)check != (uint16_t)self->traced_check))
        return ta__free_traced_in_domain(user, self, check, page, gate);
    uint64_t size = ta__mark_short_size(user);
    uint32_t leaf = ta__mark_read_leaf(user);
    if (TA_UNLIKELY(size >= page->block_size || leaf < self->leaf_first))
        return ta__free_unsealed(user, self, gate);
    ta__count_out(self, leaf, size);
    if (TA_UNLIKELY(ta__heap_push(page, (char *)user - TA__MARK_SIZE) || ta__is_flush_due(self)))
        return free_traced_rest(user, self, gate, page);
    ta__leave_sealed(self, gate);
}

/* ---- the usual ----------------------------------------------------------------------------------------------------- */

/* Marked, and nobody waits; 0: it could not be had, and the slow path must be taken. */
TA_INLINE int begin_marked(struct ta__thread *self)
{
    ta__safepoint_mark(&self->safepoint);
    if (TA_LIKELY((ta__gate_read() & TA__GATE_PENDING) == 0 && self->theap != TA__THEAP_EMPTY))
        return 1;
    ta__leave(self);
    return 0;
}

/* The page's last block went. */
TA_COLD static void free_emptied(mi_page_t *page, struct ta__thread *self)
{
    uint32_t gate;
    if (begin_marked(self)) {
        ta__heap_page_emptied(page);
        ta__leave(self);
    } else if (ta__begin_request(&gate) != NULL) {
        if (page->used == 0 && page->retire_expire == 0)
            ta__heap_page_emptied(page);
        ta__end(self, gate);
    } /* else in a signal handler, and the page stays as it is: it may be used again */
}

/* 0: not a plain block, or one that must take the slow path. Marked before it is looked at: another thread may destroy the
 * page with its domain. */
TA_INLINE int free_plain_with_header(void *user, struct ta__thread *self, mi_page_t *page)
{
    if (TA_UNLIKELY(!begin_marked(self)))
        return 0;
    int is_plain = ta__mark_size_if(user, ta__check_of_kind(TA__KIND_PLAIN)) < page->block_size;
    if (is_plain)
        ta__heap_free(page, (char *)user - TA__MARK_SIZE);
    ta__leave(self);
    return is_plain;
}

/* Not every block is traced: the header is there because the block is of a domain, or headers are always there, or it is
 * one of the few. */
__attribute__((noinline)) static void free_with_header(void *user, struct ta__thread *self, mi_page_t *page)
{
    uint32_t gate;
    if (free_plain_with_header(user, self, page))
        return;
    if (self->domains != NULL && ta__begin_sealed(self, &gate, 0)) {
        ta__free_in_domain(user, self, gate, page);
    } else {
        free_slow(user);
    }
}

TA_COLD static void free_of_full_page(void *user, struct ta__thread *self, mi_page_t *page)
{
    if (TA_UNLIKELY(!begin_marked(self)))
        return free_slow(user);
    ta__heap_free_slow(page, user);
    ta__leave(self);
}

TA_COLD static void free_shut(void *user, struct ta__thread *self)
{
    ta__leave(self);
    free_slow(user);
}

TA_COLD static void collect_marked(void *block, struct ta__thread *self, mi_page_t *page)
{
    ta__heap_collect_abandoned(page, block);
    ta__leave(self);
}

/* The page is another thread's, or full, or has headers. A thread without a heap has no such way of freeing. */
__attribute__((noinline)) static void free_elsewhere(void *user, struct ta__thread *self, mi_page_t *page)
{
    mi_threadid_t word = mi_page_xthread_id(page);
    if ((word & MI_PAGE_HAS_INTERIOR_POINTERS) != 0)
        return free_with_header(user, self, page);
    if (TA_UNLIKELY(!ta__page_is_elsewhere(word)))
        return free_of_full_page(user, self, page);
    ta__safepoint_mark(&self->safepoint);
    if (TA_UNLIKELY((ta__operand_acquire(&ta__gate) & TA__GATE_PENDING) != 0))
        return free_shut(user, self);
    if (TA_UNLIKELY(ta__heap_push_elsewhere(page, user)))
        return collect_marked(user, self, page);
    ta__leave(self);
}

__attribute__((noinline)) void ta__free_of_page(void *user, struct ta__thread *self, mi_page_t *page)
{
    if (!ta__page_is_my_plain(page))
        free_elsewhere(user, self, page);
    else
        free_emptied(page, self);
}

__attribute__((noinline)) void ta__free_plain(void *user, struct ta__thread *self)
{
    mi_page_t *page = ta__heap_page(user);
    if (TA_UNLIKELY(page == NULL))
        return free_slow(user);
    if (TA_UNLIKELY(!ta__page_is_my_plain(page)))
        return free_elsewhere(user, self, page);
    if (TA_UNLIKELY(ta__heap_push(page, user)))
        free_emptied(page, self);
}

TA_ENTRY void ta_free(void *user)
{
    struct ta__thread *self = ta__self;
    ta__owner_read (&self->release)(user, self);
}

TA_ALSO_NAMED(free, ta_free)
TA_ALSO_LIBCS(free, nothrow)

/* operator delete in all its forms is free; the other forms of new are in override_new.c. Sizes, alignments and tags say
 * nothing that page and header do not know: the further arguments are not looked at. */
TA_ALSO_NAMED(_ZdlPv, ta_free)
TA_ALSO_NAMED(_ZdaPv, ta_free)
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
