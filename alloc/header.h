/* header.h: what stands in front of the user's bytes. This comment is its specification.
 *
 * Blocks of plain pages have nothing in front: what is not traced and belongs to domain 0 (alloc/heap.h says which page
 * is which). A block of a page with headers begins with one:
 *
 *      small blocks                              blocks of more than TA__LONG_BLOCK bytes
 *
 *      block        user pointer                 block                    user pointer
 *      v            v                            v            v           v
 *      +------------+---------- - -              +------------+-----------+---------- - -
 *      | mark       | user's bytes               | size       | mark      | user's bytes
 *      +------------+---------- - -              +------------+-----------+---------- - -
 *
 * User pointers are multiples of 16; pages begin their small blocks 8 bytes later for that. The mark:
 *
 *      bit 0         16                 48           63
 *      +-------------+------------------+------------+
 *      | check, kind | leaf             | size + 1   |
 *      +-------------+------------------+------------+
 *
 *      check  low half of the user pointer's low word ^ the process's random key ^ kind. It comes first: who writes behind
 *             the end of the block in front writes over it
 *      leaf   who asked, and for which domain: a number of trace/leaves.c. Numbers below ta__leaf_first are of an earlier
 *             start or clear: their traces are gone. Of a block without a trace, the index of its domain
 *      size   bytes asked for, never rounded, plus one; with a long header always TA__SIZE_ELSEWHERE. Never 0, and not
 *             mixed with anything: the first word of a free block is mimalloc's link, whose upper bits are 0, so
 *             that a freed block of this kind is told with certainty
 *
 * kind is in the low four bits of the check, where the pointer is 0 and the key TA__KIND_NONE, so that a byte 0 is no kind:
 * a sum of
 *      1 traced   the leaf's counters count the block
 *      2 aligned  the header was moved up within the block, for an alignment of more than 16 that the page does not have
 *      4 domain   another domain than 0
 *      8 odd      with 1: counted with a weight (trace/sample.h); without: its trace is in trace/tracked.c
 *
 * Where the header was moved up, its usual place has a mark too, of kind TA__KIND_FORWARD, whose leaf is the distance in
 * units of 16: a walk over blocks finds the header by it. The way back goes by the page: it knows where its blocks begin.
 *
 * A copied header fails because of its address; what each kind of misuse has for a chance to pass is in
 * docs/decisions/0013-eight-bytes.md. */
#ifndef TA_ALLOC_HEADER_H
#define TA_ALLOC_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/attributes.h"
#include "trace/thread_state.h"

enum {
    TA__MARK_SIZE = 8,
    TA__LONG_HEADER = 16,
    TA__LONG_BLOCK = 32 * 1024,  /* larger blocks have the long header */
    TA__SIZE_ELSEWHERE = 0xFFFF, /* in place of size + 1; negative as a number of 16 bits, as no size is */
};

enum {
    TA__KIND_PLAIN = 0,
    TA__KIND_TRACED = 1,
    TA__KIND_ALIGNED = 2,
    TA__KIND_DOMAIN = 4,
    TA__KIND_ODD = 8,
    TA__KIND_FORWARD = TA__KIND_DOMAIN | TA__KIND_ODD,   /* no block's */
    TA__KIND_NONE = TA__KIND_FORWARD | TA__KIND_ALIGNED, /* no mark's */
    TA__KIND_MASK = 15,
    TA__KIND_NEVER = 1 << 15 | TA__KIND_NONE, /* the same, also of a mark whose first byte was made 0 */
};

/* Random, 16 bits, the four low ones TA__KIND_NONE; set once before the first block. */
extern uint32_t ta__header_key;

/* Marks lie among the user's bytes, which are of any type. */
typedef uint64_t __attribute__((may_alias)) ta__header_word;
struct __attribute__((packed, may_alias)) ta__mark_parts {
    uint16_t check;
    uint32_t leaf;
    uint16_t size_and_one;
};

/* ---- reading: the whole mark at once ----------------------------------------------------------------------------- */

/* Whoever goes on to use what a mark says reads it as one word: the block may be of a domain whose destruction gives it
 * back just now. The thread sanitizer need not see that read: what it races with is mimalloc's link, and a mark that
 * was read before or after the link decides rightly. */
TA_MAY_RACE uint64_t ta__mark_of(const void *user)
{
    return ((const volatile ta__header_word *)user)[-1];
}

TA_INLINE uint32_t ta__mark_leaf(uint64_t mark)
{
    return (uint32_t)(mark >> TA__MARK_LEAF_BIT);
}

/* What is left of the check when address and key are taken out: a kind, or rubbish above it. */
TA_INLINE uint32_t ta__mark_kind(const void *user, uint64_t mark)
{
    return ((uint32_t)mark ^ (uint32_t)(uintptr_t)user ^ ta__header_key) & 0xFFFF;
}

/* Is it the mark of a live block at this address? */
TA_INLINE int ta__mark_is_live(const void *user, uint64_t mark)
{
    enum { KINDS = 0xAFFF }; /* a bit for each that a block can have: 4 and 8 exclude each other without 1 */
    uint32_t kind = ta__mark_kind(user, mark);
    return mark >> TA__MARK_SIZE_BIT != 0 && kind <= TA__KIND_MASK && (KINDS >> kind & 1) != 0;
}

TA_MAY_RACE size_t ta__mark_size(const void *user, uint64_t mark)
{
    size_t field = mark >> TA__MARK_SIZE_BIT;
    return TA_LIKELY(field != TA__SIZE_ELSEWHERE) ? field - 1 : ((const volatile ta__header_word *)user)[-2];
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* What a mark's check is without its address. */
TA_INLINE uint32_t ta__check_of_kind(uint32_t kind)
{
    return ta__header_key ^ kind;
}

/* A mark with this check, the address in it or not. */
TA_INLINE uint64_t ta__mark_made(uint32_t check, uint32_t leaf, uint64_t size_and_one)
{
    return size_and_one << TA__MARK_SIZE_BIT | (uint64_t)leaf << TA__MARK_LEAF_BIT | (check & 0xFFFF);
}

/* The header of any block. */
TA_INLINE void ta__header_write(void *user, int is_long, uint32_t check, uint32_t leaf, size_t size)
{
    uint64_t field = size + 1;
    TA_CHECK("H-1", is_long || size < TA__SIZE_ELSEWHERE - 1);
    if (TA_UNLIKELY(is_long)) {
        ((ta__header_word *)user)[-2] = size;
        field = TA__SIZE_ELSEWHERE;
    }
    ((ta__header_word *)user)[-1] = ta__mark_made((uint32_t)(uintptr_t)user ^ check, leaf, field);
}

/* The header of a block of at most TA__LONG_BLOCK bytes, in three parts, as they come, so that nothing is shifted. Answers
 * what the user gets: that takes the block's register, an instruction less than keeping both. */
TA_INLINE void *ta__header_write_short(void *block, uint32_t check, uint32_t leaf, size_t size)
{
    char *user = (char *)block + TA__MARK_SIZE;
    TA_CHECK("H-1", size < TA__SIZE_ELSEWHERE - 1 && ((uintptr_t)user & 15) == 0);
    __asm__("" : "+r"(user));
    struct ta__mark_parts *mark = (struct ta__mark_parts *)(void *)(user - TA__MARK_SIZE);
    mark->check = (uint16_t)((uint32_t)(uintptr_t)user ^ check);
    mark->leaf = leaf;
    mark->size_and_one = (uint16_t)(size + 1);
    return user;
}

/* The same from the mark of a block of no bytes without its address, where that stands in memory. */
TA_INLINE void ta__header_write_from(void *user, const uint64_t *mark, size_t size)
{
    TA_CHECK("H-1", size < TA__SIZE_ELSEWHERE - 1 && ((uintptr_t)user & 15) == 0);
    ((ta__header_word *)user)[-1] = *mark;
    struct ta__mark_parts *parts = (struct ta__mark_parts *)(void *)((char *)user - TA__MARK_SIZE);
#if defined(__x86_64__)
    __asm__("xorw %w1, %0" : "+m"(parts->check) : "r"(user) : "cc");
    __asm__("addw %w1, %0" : "+m"(parts->size_and_one) : "r"(size) : "cc");
#else
    parts->check ^= (uint16_t)(uintptr_t)user;
    parts->size_and_one = (uint16_t)(parts->size_and_one + size);
#endif
}

/* Makes the mark not verify: for blocks whose mark the allocator's link does not reach. */
TA_INLINE void ta__mark_kill(void *user)
{
    ((ta__header_word *)user)[-1] = 0;
}

/* ---- the usual free, without reading the whole mark -------------------------------------------------------------- */

/* Its check without the address, in the lower half. */
TA_MAY_RACE uint32_t ta__mark_check(const void *user)
{
    const struct ta__mark_parts *mark = (const struct ta__mark_parts *)((const char *)user - TA__MARK_SIZE);
    return mark->check ^ (uint32_t)(uintptr_t)user;
}

/* Of a block with a short header, the size; something larger than any block where it has another, is free, or damaged. */
TA_MAY_RACE uint64_t ta__mark_short_size(const void *user)
{
    const struct ta__mark_parts *mark = (const struct ta__mark_parts *)((const char *)user - TA__MARK_SIZE);
    return (uint64_t)(int64_t)(int16_t)mark->size_and_one - 1;
}

/* The same of a block with exactly this check; of any other, something larger than a block, too. */
TA_INLINE uint64_t ta__mark_size_if(const void *user, uint32_t check)
{
    if (TA_UNLIKELY((uint16_t)ta__mark_check(user) != (uint16_t)check))
        return UINT64_MAX;
    return ta__mark_short_size(user);
}

TA_MAY_RACE uint32_t ta__mark_read_leaf(const void *user)
{
    return ((const struct ta__mark_parts *)((const char *)user - TA__MARK_SIZE))->leaf;
}

/* ---- headers that were moved up ---------------------------------------------------------------------------------- */

/* `usual` is what the user pointer would be without the alignment. */
TA_INLINE void ta__forward_write(void *usual, size_t distance)
{
    ta__header_write(usual, 0, ta__check_of_kind(TA__KIND_FORWARD), (uint32_t)(distance / 16), 0);
}

/* From the usual user pointer of a block to the one that was given out. */
TA_INLINE void *ta__forward_follow(void *usual)
{
    uint64_t mark = ta__mark_of(usual);
    if (mark >> TA__MARK_SIZE_BIT != 1 || ta__mark_kind(usual, mark) != TA__KIND_FORWARD)
        return usual;
    return (char *)usual + (uint64_t)ta__mark_leaf(mark) * 16;
}

#endif
