/* realloc.c: the common cases of realloc — the block is the thread's own, and stays where it is or moves to another page of
 * its own — once plain, once traced. Everything else is a cold call in tail position (ta__reallocate of slow.c).
 *
 * A traced block that stays is counted out under the stack that made it and in under the one that asks now, as one that
 * moves: a realloc is a free and a malloc. Out comes first, so that no peak has both. The old place is given back last.
 *
 * Compiled as malloc.c is: entries jump to what a mode does, so that it sees the frame of realloc's caller. */
#include "alloc/fast_path.h"

#include <string.h>

#include "alloc/entry.h"
#include "alloc/public_names.h"
#include "trace/capture.h"

enum { SMALL_REQUEST_MAX = TA__SMALL_REQUEST_MAX };

__attribute__((noinline)) static void *realloc_slow(void *user, size_t size)
{
    return ta__reallocate(user, size, TA__DOMAIN_AMBIENT, TA__CALLER());
}

TA_COLD static void *realloc_unsealed(void *user, size_t size, struct ta__thread *self, uint32_t gate)
{
    ta__leave_sealed(self, gate);
    return realloc_slow(user, size);
}

/* Does a block with this much room do for the new size, without wasting more than half? */
TA_INLINE int fits(size_t size, size_t room)
{
    return size <= room && size + TA__LONG_HEADER >= room / 2;
}

/* ---- plain -------------------------------------------------------------------------------------------------------- */

/* Of small plain blocks, which all have room for whole pairs of words; at least a byte. Without a call, and without the
 * string instructions that a copy of so few bytes is otherwise made of. */
TA_INLINE void copy_small(char *to, const char *from, size_t size)
{
    enum { PAIR = 16 };
    size_t left = (size + PAIR - 1) & ~(size_t)(PAIR - 1);
    if ((left & PAIR) != 0) {
        left -= PAIR;
        memcpy(to + left, from + left, PAIR);
    }
    while (left != 0) {
        left -= (size_t)2 * PAIR;
        __asm__("" : "+r"(left)); /* or gcc makes the loop a call again */
        memcpy(to + left, from + left, (size_t)2 * PAIR);
    }
}

/* The old block's page has none left. */
TA_COLD static void *moved_the_last(void *block, void *user, struct ta__thread *self, mi_page_t *page)
{
    ta__free_of_page(user, self, page);
    return block;
}

/* A small block moves within pages of the thread's own; `page`: the old one's. */
TA_INLINE void *move_small(void *block, size_t size, void *user, size_t room, struct ta__thread *self, mi_page_t *page)
{
    copy_small(block, user, size < room ? size : room);
    if (TA_UNLIKELY(ta__heap_push(page, user)))
        return moved_the_last(block, user, self, page);
    return block;
}

/* The same of any size. */
TA_INLINE void *move_plain(void *block, size_t size, void *user, size_t room, struct ta__thread *self)
{
    memcpy(block, user, size < room ? size : room);
    ta__free_plain(user, self);
    return block;
}

/* Nothing is traced, and the page has no block at hand, or small ones only. */
__attribute__((noinline)) static void *realloc_plain_rest(void *user, size_t size, struct ta__thread *self)
{
    mi_page_t *page = ta__heap_page(user);
    if (size == 0 || page == NULL || !ta__page_is_my_plain(page))
        return realloc_slow(user, size);
    size_t room = mi_page_usable_block_size(page);
    if (fits(size, room))
        return user;
    void *block = ta__malloc_untraced_rest(size, self);
    return TA_LIKELY(block != NULL) ? move_plain(block, size, user, room, self) : realloc_slow(user, size);
}

/* A plain block of the thread's, while nothing is traced. */
TA_INLINE void *realloc_plain(void *user, size_t size, struct ta__thread *self, mi_page_t *page)
{
    size_t room = mi_page_usable_block_size(page);
    if (fits(size, room))
        return user;
    void *block = ta__heap_pop(self->theap, size);
    return TA_LIKELY(block != NULL) ? move_small(block, size, user, room, self, page)
                                    : realloc_plain_rest(user, size, self);
}

/* Sampled, and the page has no block at hand. */
__attribute__((noinline)) static void *realloc_sampled_rest(void *user, size_t size, struct ta__thread *self,
                                                            mi_page_t *page)
{
    void *block = ta__malloc_plain_rest(size, self);
    if (TA_UNLIKELY(block == NULL))
        return realloc_slow(user, size);
    self->sample_left -= (int64_t)size;
    return move_plain(block, size, user, mi_page_usable_block_size(page), self);
}

/* Sampled: the new size counts as a request's. What is no sample, and was none, is plain. */
__attribute__((noinline)) static void *realloc_sampled(void *user, size_t size, struct ta__thread *self)
{
    int64_t left = self->sample_left - (int64_t)size;
    mi_page_t *page = ta__heap_page(user);
    if (TA_UNLIKELY(size - 1 >= SMALL_REQUEST_MAX || left < 0 || page == NULL || !ta__page_is_my_plain(page) ||
                    ta__owner_read(&self->release) == ta__free_any))
        return realloc_slow(user, size);
    size_t room = mi_page_usable_block_size(page);
    if (fits(size, room)) {
        self->sample_left = left;
        return user;
    }
    void *block = ta__heap_pop(self->theap, size);
    if (TA_UNLIKELY(block == NULL))
        return realloc_sampled_rest(user, size, self, page);
    self->sample_left = left;
    return move_small(block, size, user, room, self, page);
}

/* ---- traced ------------------------------------------------------------------------------------------------------- */

/* What the change brings along: the sum is a new high, or due, or the old block's page, one of the thread's own, is empty.
 * Ends the operation. */
__attribute__((cold, noipa)) static void *traced_rest(void *user, struct ta__thread *self, uint32_t gate,
                                                      mi_page_t *page)
{
    if (page != NULL && page->used == 0 && page->retire_expire == 0)
        ta__heap_page_emptied(page);
    if (self->headroom < 0)
        ta__counters_new_high(self);
    else if (ta__is_flush_due(self))
        ta__counters_flush(self);
    ta__leave_sealed(self, gate);
    return user;
}

/* A block when the page of its class has none at hand, or it is not small; NULL: no memory. */
__attribute__((cold, noipa)) static void *block_from_afar(struct ta__thread *self, size_t size)
{
    if (ta__domain_part(self, 0) == NULL)
        return NULL;
    void *block =
        size <= SMALL_REQUEST_MAX ? ta__heap_pop_freed(self->headed, size) : ta__heap_pop_medium(self->headed, size);
    if (block != NULL)
        return block;
    char *user = ta__heap_allocate_behind(self->headed, size, 0);
    return user != NULL ? user - TA__MARK_SIZE : NULL;
}

/* The usual kind of traced block becomes one of another size, under another leaf. */
TA_INLINE void *change_traced(void *user, size_t size, struct ta__thread *self, uint32_t gate, mi_page_t *page,
                              uint32_t leaf)
{
    uint64_t old_size = ta__mark_size_if(user, self->traced_check);
    uint32_t old_leaf = ta__mark_read_leaf(user);
    if (TA_UNLIKELY(leaf == 0 || old_size >= page->block_size || old_leaf < self->leaf_first))
        return realloc_unsealed(user, size, self, gate);
    int is_rest = 0;
    if (fits(size, page->block_size - TA__MARK_SIZE)) {
        ta__count_out(self, old_leaf, old_size);
        user = ta__header_write_short((char *)user - TA__MARK_SIZE, self->traced_check, leaf, size);
    } else {
        void *block = TA_LIKELY(size <= SMALL_REQUEST_MAX) ? ta__heap_pop(self->headed, size) : NULL;
        if (TA_UNLIKELY(block == NULL) && (block = block_from_afar(self, size)) == NULL)
            return realloc_unsealed(user, size, self, gate);
        void *moved = ta__header_write_short(block, self->traced_check, leaf, size);
        memcpy(moved, user, size < old_size ? size : old_size);
        ta__count_out(self, old_leaf, old_size);
        void *old_block = (char *)user - TA__MARK_SIZE;
        if (TA_LIKELY(mi_page_xthread_id(page) == self->headed_word)) {
            is_rest = ta__heap_push(page, old_block);
        } else {
            ta__heap_free(page, old_block);
            page = NULL; /* it may be gone */
        }
        user = moved;
    }
    if (TA_UNLIKELY(ta__count_in(self, leaf, size) | is_rest | ta__is_flush_due(self)))
        return traced_rest(user, self, gate, page);
    ta__leave_sealed(self, gate);
    return user;
}

/* Is the block one that the thread may look at, in a page with headers? Then the thread is inside a sealed operation. */
TA_INLINE mi_page_t *begin_traced(const void *user, size_t size, struct ta__thread *self, uint32_t *gate)
{
    mi_page_t *page = ta__heap_page(user);
    int is_usual = size - 1 < TA__MEDIUM_MAX && page != NULL && ta__owner_read(&self->release) != ta__free_any;
    if (TA_UNLIKELY(!is_usual || !ta__page_has_headers(page) || !ta__safepoint_seal(&self->safepoint, gate)))
        return NULL;
    return page;
}

__attribute__((noinline)) static void *realloc_one_frame(void *user, size_t size, struct ta__thread *self)
{
    uint32_t gate;
    mi_page_t *page = begin_traced(user, size, self, &gate);
    if (TA_UNLIKELY(page == NULL))
        return realloc_slow(user, size);
    uint32_t leaf = ta__capture_site(self, (uintptr_t)__builtin_return_address(0));
    return change_traced(user, size, self, gate, page, leaf);
}

__attribute__((noinline)) static void *realloc_stack(void *user, size_t size, struct ta__thread *self)
{
    struct ta__caller caller = TA__CALLER();
    uint32_t gate;
    mi_page_t *page = begin_traced(user, size, self, &gate);
    if (TA_UNLIKELY(page == NULL))
        return ta__reallocate(user, size, TA__DOMAIN_AMBIENT, caller);
    uint32_t leaf = ta__capture(self, caller.ip, caller.sp, caller.fp, 0);
    return change_traced(user, size, self, gate, page, leaf);
}

/* ---- the entries -------------------------------------------------------------------------------------------------- */

/* More is to be done than to look at the block, or it is not small. */
__attribute__((noinline)) static void *realloc_gated(void *user, size_t size, struct ta__thread *self)
{
    switch (self->way) {
    case TA__WAY_STACK:
        return realloc_stack(user, size, self);
    case TA__WAY_ONE_FRAME:
        return realloc_one_frame(user, size, self);
    case TA__WAY_SAMPLED:
        return realloc_sampled(user, size, self);
    case TA__WAY_PLAIN:
        return ta__owner_read(&self->plain_limit) != 0 ? realloc_plain_rest(user, size, self)
                                                       : realloc_slow(user, size);
    default:
        return realloc_slow(user, size);
    }
}

TA_INLINE void *reallocate(void *user, size_t size)
{
    struct ta__thread *self = ta__self;
    if (user == NULL)
        return ta__owner_read(&self->allocate)(size, self);
    if (TA_UNLIKELY(size - 1 >= ta__owner_read(&self->plain_limit)))
        return realloc_gated(user, size, self);
    mi_page_t *page = ta__heap_page(user);
    return TA_LIKELY(page != NULL && ta__page_is_my_plain(page)) ? realloc_plain(user, size, self, page)
                                                                 : realloc_slow(user, size);
}

TA_ENTRY void *ta_realloc(void *user, size_t size)
{
    return reallocate(user, size);
}

TA_ENTRY void *ta_reallocarray(void *user, size_t count, size_t size)
{
    size_t bytes;
    if (TA_UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return ta__out_of_memory();
    return reallocate(user, bytes);
}

TA_ALSO_NAMED(realloc, ta_realloc)
TA_ALSO_NAMED(reallocarray, ta_reallocarray)
TA_ALSO_LIBCS(realloc, alloc_size(2))
