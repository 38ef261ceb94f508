/* header.h: the 16 bytes in front of every user pointer. This comment is their specification.
 *
 *      block                                 user pointer (16-byte aligned)
 *      |                                     |
 *      v 0          4          8       14    v 16
 *      +-----------+----------+--------+-----+------------------ - -
 *      | leaf      | check    | size   |epoch| the user's bytes
 *      | 32 bits   | 32 bits  | 48 bits| 16  | exactly `size`, then rounding
 *      +-----------+----------+--------+-----+------------------ - -
 *
 *      leaf   who asked, and for which domain: a number of trace/contexts.c; not written in plain blocks
 *      check  low half of the user pointer ^ the process's random key ^ bytes 12-15 ^ kind; says "this is a live header,
 *             for exactly this address, and the bytes next to the user's were not overrun"
 *      size   bytes asked for, never rounded
 *      epoch  which start/clear the trace belongs to; traces of an earlier epoch are gone
 *
 * kind is in the low bits, which pointer and key leave 0:
 *      0 plain      no trace, domain 0
 *      1 leaf       the leaf tells domain and stack; whether the trace still counts, the epoch tells (0: there is none)
 *      2 aligned    the block begins `shift` bytes before the header, where a forwarding header stands (below)
 *      3 aligned, with a leaf
 *      5, 7         the same as 1 and 3 in another domain than 0: free has more to count
 *
 * An aligned block:
 *      block                              header           user pointer (aligned as asked)
 *      v                                  v                v
 *      +----------------+-----  - - -----+----------------+---------- - -
 *      | forward        | unused         | leaf check …   | user's bytes
 *      +----------------+-----  - - -----+----------------+---------- - -
 *        leaf  = shift / 16                                shift = header - block
 *        check = low half of (block + 16) ^ key ^ TA__FORWARD: a walk over blocks finds the header from here
 *        size  = the same shift, for the way back: the 8 bytes in front of the header hold it too
 *
 * The allocator links free blocks through their first 8 bytes, so that leaf and check do not survive a free: a stale
 * or doubly freed pointer fails to verify without a store of ours. A copied header fails because of its address. */
#ifndef TA_ALLOC_HEADER_H
#define TA_ALLOC_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct ta__header {
    uint32_t leaf;
    uint32_t check;
    uint64_t size_and_epoch; /* size in the low 48 bits */
};

enum { TA__HEADER_SIZE = 16, TA__SIZE_BITS = 48 };
enum { TA__KIND_PLAIN = 0, TA__KIND_TRACED = 1, TA__KIND_ALIGNED = 2, TA__KIND_DOMAIN = 4 | TA__KIND_TRACED };
enum { TA__KIND_MAX = TA__KIND_ALIGNED | TA__KIND_DOMAIN };
#define TA__SIZE_MASK ((UINT64_C(1) << TA__SIZE_BITS) - 1)
/* Turns a check into a forwarding mark; far from the kinds. */
#define TA__FORWARD 0xF0F0F0F4u

_Static_assert(sizeof(struct ta__header) == TA__HEADER_SIZE, "malloc's alignment is kept by exactly 16 bytes");

/* Random, the four low bits 0; set once before the first block. */
extern uint32_t ta__header_key;

TA_INLINE struct ta__header *ta__header_of(const void *user)
{
    return (struct ta__header *)((uintptr_t)user - TA__HEADER_SIZE);
}

TA_INLINE void *ta__header_user(struct ta__header *header)
{
    return header + 1;
}

TA_INLINE uint32_t ta__header_check(const void *user, uint32_t kind)
{
    return ((uint32_t)(uintptr_t)user ^ ta__header_key) | kind;
}

/* What is left of the check when address, key and neighbours are taken out: a kind (0 … 7), or rubbish. */
TA_INLINE uint32_t ta__header_kind(const void *user)
{
    const struct ta__header *header = ta__header_of(user);
    return header->check ^ (uint32_t)(uintptr_t)user ^ ta__header_key ^ (uint32_t)(header->size_and_epoch >> 32);
}

TA_INLINE int ta__header_verifies(const void *user)
{
    return ta__header_kind(user) <= TA__KIND_MAX;
}

/* epoch_bits: the epoch in its place, above the size. */
TA_INLINE void *ta__header_write(void *user, uint32_t kind, uint32_t leaf, size_t size, uint64_t epoch_bits)
{
    struct ta__header *header = ta__header_of(user);
    uint64_t size_and_epoch = size | epoch_bits;
    header->leaf = leaf;
    header->check = ta__header_check(user, kind) ^ (uint32_t)(size_and_epoch >> 32);
    header->size_and_epoch = size_and_epoch;
    return user;
}

TA_INLINE size_t ta__header_size(const struct ta__header *header)
{
    return header->size_and_epoch & TA__SIZE_MASK;
}

/* 0 for plain blocks: untraced, domain 0. */
TA_INLINE uint32_t ta__header_leaf(const struct ta__header *header, uint32_t kind)
{
    return (kind & TA__KIND_TRACED) != 0 ? header->leaf : 0;
}

TA_INLINE uint32_t ta__header_epoch(const struct ta__header *header)
{
    return (uint32_t)(header->size_and_epoch >> TA__SIZE_BITS);
}

/* The two common cases. The user pointer takes the block's register: an instruction less than keeping both. */
TA_INLINE void *ta__user_in_place(void *block)
{
    char *user = (char *)block + TA__HEADER_SIZE;
    __asm__("" : "+r"(user));
    return user;
}

TA_INLINE void *ta__header_write_plain(void *block, size_t size)
{
    void *user = ta__user_in_place(block);
    struct ta__header *header = ta__header_of(user);
    header->check = (uint32_t)(uintptr_t)user ^ ta__header_key;
    header->size_and_epoch = size;
    return user;
}

/* What the check of a traced block of less than 4 GiB is without its address: constant during an epoch. */
TA_INLINE uint32_t ta__header_traced_check(uint64_t epoch_bits)
{
    return (ta__header_key | TA__KIND_TRACED) ^ (uint32_t)(epoch_bits >> 32);
}

TA_INLINE void *ta__header_write_traced(void *block, uint32_t leaf, size_t size, uint64_t epoch_bits,
                                        uint32_t traced_check)
{
    void *user = ta__user_in_place(block);
    struct ta__header *header = ta__header_of(user);
    header->leaf = leaf;
    header->check = (uint32_t)(uintptr_t)user ^ traced_check;
    header->size_and_epoch = size | epoch_bits;
    return user;
}

TA_INLINE int ta__header_is_plain(const void *user)
{
    const struct ta__header *header = ta__header_of(user);
    return ((uint32_t)(uintptr_t)user ^ header->check ^ (uint32_t)(header->size_and_epoch >> 32)) == ta__header_key;
}

/* A traced block of this epoch and of less than 4 GiB; its size in *size. */
TA_INLINE int ta__header_is_traced(const void *user, uint32_t traced_check, uint64_t epoch_bits, uint64_t *size)
{
    const struct ta__header *header = ta__header_of(user);
    if (TA_UNLIKELY(((uint32_t)(uintptr_t)user ^ header->check) != traced_check))
        return 0;
    *size = header->size_and_epoch ^ epoch_bits;
    return *size >> 32 == 0;
}

/* Makes the header not verify: for blocks whose memory the allocator does not link at once. */
TA_INLINE void ta__header_kill(void *user)
{
    struct ta__header *header = ta__header_of(user);
    header->check = ~(ta__header_check(user, 0) ^ (uint32_t)(header->size_and_epoch >> 32));
}

/* ---- aligned blocks ---------------------------------------------------------------------------------------------- */

TA_INLINE void ta__forward_write(void *block, size_t shift)
{
    struct ta__header *forward = block;
    forward->leaf = (uint32_t)(shift / 16);
    forward->check = ta__header_check(ta__header_user(forward), 0) ^ TA__FORWARD;
    forward->size_and_epoch = shift;
    ((uint64_t *)((uintptr_t)block + shift))[-1] = shift;
}

/* The block's beginning, for a user pointer whose header is of an aligned kind. */
TA_INLINE void *ta__aligned_block(const void *user)
{
    uint64_t shift = ((const uint64_t *)ta__header_of(user))[-1];
    return (void *)((uintptr_t)user - TA__HEADER_SIZE - shift);
}

/* From the block's beginning to its header, through the forwarding mark if there is one. */
TA_INLINE struct ta__header *ta__header_in_block(void *block)
{
    struct ta__header *first = block;
    if (first->check != (ta__header_check(ta__header_user(first), 0) ^ TA__FORWARD))
        return first;
    return (struct ta__header *)((uintptr_t)block + (uintptr_t)first->leaf * 16);
}

#endif
