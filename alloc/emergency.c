/* emergency.c: memory for requests that nothing else may serve — a signal handler that interrupted the allocator, the
 * set-up of process or thread, a thread for which no structure could be had.
 *
 * A region of address space, cut from below into blocks of fixed sizes, four for each power of two. A block keeps its
 * size for ever; when it is freed it goes to the list of that size, and is taken from there first. So a handler may
 * allocate and free for ever; what live blocks may hold together is bounded by the region.
 *
 *      block                            user pointer (aligned as asked)
 *      v 0            8       12        v
 *      +--------------+-------+-------+-----  - - -+--------+---------- - -
 *      | size or next | class | state | offset     | back   | the user's bytes
 *      +--------------+-------+-------+-----  - - -+--------+---------- - -
 *                     offset and back = user pointer - block: for who walks over blocks, and in the 8 bytes before the
 *                     user's for who has those
 *
 * No lock: a list is a stack whose head is changed by compare-and-swap. The head carries a number that each change
 * makes anew, so that a block that left and came back meanwhile is not taken for one that never left. Any thread, any
 * handler, the child of any fork: whoever is interrupted in the middle has changed nothing, or all. */
#include "alloc/alloc.h"

#include <string.h>

#include "base/assert.h"
#include "base/atomics.h"
#include "base/memory.h"

enum {
    REGION_BYTES = 64 << 20,
    GRAIN_SHIFT = 5, /* blocks begin at multiples of 32 */
    HEAD_BYTES = 32,
    FIRST_BITS = 6,                      /* the smallest block has 64 bytes */
    CLASSES = (25 - FIRST_BITS) * 4 + 1, /* … and the largest 32 MiB */
};

/* In a word of its own, far from what the user's bytes look like. */
enum { LIVE = 0x6c697665, FREE = 0x66726565 };

struct block {
    uint64_t size_or_next; /* bytes asked for; in a list: the next block's place + 1, 0 = none. Atomic */
    uint32_t class;
    uint32_t state; /* atomic: who changes it from LIVE to FREE frees the block */
    uint32_t offset;
};

static struct {
    uintptr_t start;         /* 0 = not yet mapped. Release */
    size_t used;             /* cut so far; atomic */
    uint64_t lists[CLASSES]; /* number << 32 | place of the first + 1, in grains. Acquire and release */
} region;

static uintptr_t region_start(void)
{
    uintptr_t start = ta__load_acquire(&region.start);
    if (start != 0)
        return start;
    void *fresh = ta__memory_map(REGION_BYTES);
    if (fresh == NULL)
        return 0;
    uintptr_t none = 0;
    if (ta__cas_acq_rel(&region.start, &none, (uintptr_t)fresh))
        return (uintptr_t)fresh;
    ta__memory_unmap(fresh, REGION_BYTES);
    return none;
}

/* 64, 80, 96, 112, 128, 160 … */
static size_t class_bytes(uint32_t class)
{
    return (size_t)(4 + class % 4) << (class / 4 + FIRST_BITS - 2);
}

/* The smallest class for so many bytes; they are not more than the largest has. */
static uint32_t class_for(size_t bytes)
{
    if (bytes <= (size_t)1 << FIRST_BITS)
        return 0;
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(bytes - 1);
    uint32_t quarter = (uint32_t)((bytes - 1) >> (bits - 2)) & 3;
    return (bits - FIRST_BITS) * 4 + quarter + 1;
}

static struct block *block_at(uintptr_t start, uint64_t place)
{
    return (struct block *)(start + ((place - 1) << GRAIN_SHIFT));
}

static struct block *pop(uintptr_t start, uint64_t *list)
{
    uint64_t head = ta__load_acquire(list);
    for (;;) {
        uint64_t place = (uint32_t)head;
        if (place == 0)
            return NULL;
        /* The block may be somebody else's by now: what is read then is not used, because the number has changed. */
        uint64_t next = ta__load_relaxed(&block_at(start, place)->size_or_next);
        if (ta__cas_acq_rel(list, &head, ((head >> 32) + 1) << 32 | (uint32_t)next))
            return block_at(start, place);
    }
}

static void push(uintptr_t start, uint64_t *list, struct block *block)
{
    uint64_t place = (((uintptr_t)block - start) >> GRAIN_SHIFT) + 1;
    uint64_t head = ta__load_acquire(list);
    do
        ta__store_relaxed(&block->size_or_next, (uint64_t)(uint32_t)head);
    while (!ta__cas_acq_rel(list, &head, ((head >> 32) + 1) << 32 | place));
}

static struct block *cut(uintptr_t start, uint32_t class)
{
    size_t bytes = (class_bytes(class) + (1 << GRAIN_SHIFT) - 1) & ~(((size_t)1 << GRAIN_SHIFT) - 1);
    size_t offset = ta__load_relaxed(&region.used);
    do {
        if (bytes > REGION_BYTES - offset)
            return NULL;
    } while (!ta__cas_relaxed(&region.used, &offset, offset + bytes));
    struct block *block = (struct block *)(start + offset);
    ta__store_relaxed(&block->class, class);
    return block;
}

/* A freed block of the size; one that is cut; a larger one, which stays as large as it is. */
static struct block *obtain_block(uintptr_t start, uint32_t class)
{
    struct block *block = pop(start, &region.lists[class]);
    if (block == NULL)
        block = cut(start, class);
    for (uint32_t larger = class + 1; block == NULL && larger < CLASSES; larger++)
        block = pop(start, &region.lists[larger]);
    return block;
}

void *ta__emergency_allocate(size_t size, size_t alignment, int zeroed)
{
    uintptr_t start = region_start();
    size_t slack = alignment > 16 ? alignment : 0;
    if (start == 0 || size > REGION_BYTES / 2 || slack > REGION_BYTES / 2 ||
        HEAD_BYTES + slack + size > class_bytes(CLASSES - 1))
        return NULL;
    struct block *block = obtain_block(start, class_for(HEAD_BYTES + slack + size));
    if (block == NULL)
        return NULL;
    TA_CHECK("E-1", HEAD_BYTES + slack + size <= class_bytes(ta__load_relaxed(&block->class)));
    TA_CHECK("E-2", ta__load_relaxed(&block->state) != LIVE);
    ta__store_relaxed(&block->size_or_next, (uint64_t)size);
    uintptr_t user = (uintptr_t)block + HEAD_BYTES;
    if (slack != 0)
        user = (user + alignment - 1) & ~(alignment - 1);
    ta__store_relaxed(&block->offset, (uint32_t)(user - (uintptr_t)block));
    ((uint64_t *)user)[-1] = user - (uintptr_t)block;
    ta__store_release(&block->state, (uint32_t)LIVE);
    return zeroed ? memset((void *)user, 0, size) : (void *)user;
}

int ta__emergency_owns(const void *user)
{
    uintptr_t start = ta__load_relaxed(&region.start);
    return start != 0 && (uintptr_t)user - start < REGION_BYTES;
}

/* The block of a user pointer; NULL when there is none that is live. */
static struct block *live_block(const void *user)
{
    uintptr_t address = (uintptr_t)user;
    if ((address & 15) != 0 || address - region.start < HEAD_BYTES)
        return NULL;
    uint64_t back = ((const uint64_t *)user)[-1];
    if (back < HEAD_BYTES || back > address - region.start || ((address - back - region.start) & 31) != 0)
        return NULL;
    struct block *block = (struct block *)(address - back);
    return ta__load_acquire(&block->state) == LIVE && ta__load_relaxed(&block->class) < CLASSES ? block : NULL;
}

void ta__emergency_free(void *user)
{
    struct block *block = live_block(user);
    uint32_t state = LIVE;
    if (block != NULL && ta__cas_acq_rel(&block->state, &state, (uint32_t)FREE))
        push(region.start, &region.lists[block->class], block);
    else
        ta__add_relaxed(&ta__trace_events.invalid_frees, 1); /* a leak is better than a guess */
}

size_t ta__emergency_size(const void *user)
{
    const struct block *block = live_block(user);
    return block != NULL ? (size_t)ta__load_relaxed(&block->size_or_next) : 0;
}

void ta__emergency_visit(void (*visit)(const struct ta__source_block *block, void *context), void *context)
{
    uintptr_t start = ta__load_acquire(&region.start);
    size_t used = start != 0 ? ta__load_relaxed(&region.used) : 0;
    const size_t grain = (size_t)1 << GRAIN_SHIFT;
    for (size_t at = 0; at < used;) {
        const struct block *block = (const struct block *)(start + at);
        size_t bytes = (class_bytes(ta__load_relaxed(&block->class)) + grain - 1) & ~(grain - 1);
        if (ta__load_acquire(&block->state) == LIVE) {
            const struct ta__source_block row = {(uintptr_t)block + ta__load_relaxed(&block->offset),
                                                 ta__load_relaxed(&block->size_or_next), 0};
            visit(&row, context);
        }
        at += bytes;
    }
}

struct ta__fact ta__facts_emergency[] = {
    TA__FACT_AT("emergency.start", region.start),
    TA__FACT_AT("emergency.used", region.used),
    TA__FACT("emergency.bytes", REGION_BYTES),
    TA__FACT("emergency.grain", 1 << GRAIN_SHIFT),
    TA__FACT("emergency.head", HEAD_BYTES),
    TA__FACT("emergency.first_bits", FIRST_BITS),
    TA__FACT("emergency.classes", CLASSES),
    TA__FACT_FIELD("emergency.size", struct block, size_or_next),
    TA__FACT_FIELD("emergency.class", struct block, class),
    TA__FACT_FIELD("emergency.state", struct block, state),
    TA__FACT_FIELD("emergency.offset", struct block, offset),
    TA__FACT("emergency.live", LIVE),
    TA__FACTS_END,
};
