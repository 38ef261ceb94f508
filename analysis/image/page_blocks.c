/* page_blocks.c: see page_blocks.h. */
#include "analysis/image/page_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"

int ta__page_walk_open(struct ta__page_walk *walk, struct ta__target *target, const struct ta__marks *marks)
{
    *walk = (struct ta__page_walk){.target = target, .marks = marks, .room = TA__PAGE_WHOLE};
    walk->bytes = ta__new_array(walk->room, 1);
    walk->in_list = ta__new_array(TA__PAGE_BLOCKS_MOST / 64, sizeof *walk->in_list);
    walk->blocks = ta__new_array(TA__PAGE_BLOCKS_MOST, sizeof *walk->blocks);
    if (walk->bytes != NULL && walk->in_list != NULL && walk->blocks != NULL)
        return 0;
    ta__page_walk_close(walk);
    return -1;
}

void ta__page_walk_close(struct ta__page_walk *walk)
{
    free(walk->bytes);
    free(walk->in_list);
    free(walk->blocks);
    memset(walk, 0, sizeof *walk);
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

/* 1 when the page's memory is at hand. */
static int load(struct ta__page_walk *walk, const struct ta__heap_page *page)
{
    uint64_t bytes = page->stride * page->slots;
    if (ta__target_stored(walk->target, page->start, page->start + bytes) == 0)
        return 0;
    walk->is_whole = bytes <= TA__PAGE_WHOLE;
    if (walk->is_whole)
        return ta__target_read_sparse(walk->target, page->start, walk->bytes, (size_t)bytes) == 0;
    int any = 0;
    for (uint32_t i = 0; i < page->slots; i++) {
        uint8_t *head = walk->bytes + (size_t)i * TA__MARK_BYTES;
        if (ta__target_read(walk->target, page->start + i * page->stride, head, TA__MARK_BYTES) == 0)
            any = 1;
        else
            memset(head, 0, TA__MARK_BYTES);
    }
    return any;
}

static const uint8_t *head_of(const struct ta__page_walk *walk, const struct ta__heap_page *page, uint32_t slot)
{
    return walk->bytes + (walk->is_whole ? slot * page->stride : (uint64_t)slot * TA__MARK_BYTES);
}

/* ---- pages without headers: what is in no list is in use --------------------------------------------------------- */

static void follow_list(struct ta__page_walk *walk, const struct ta__heap_page *page, uint64_t block)
{
    for (uint32_t steps = 0; block != 0; steps++) {
        uint64_t distance = block - page->start, next;
        uint32_t slot = (uint32_t)(distance / page->stride);
        if (block < page->start || distance >= page->stride * page->slots || distance % page->stride != 0 ||
            steps >= page->slots) {
            walk->is_damaged = 1;
            return;
        }
        walk->in_list[slot / 64] |= UINT64_C(1) << slot % 64;
        memcpy(&next, head_of(walk, page, slot), sizeof next);
        block = next;
    }
}

static void find_plain(struct ta__page_walk *walk, const struct ta__heap_page *page)
{
    memset(walk->in_list, 0, (page->slots + 63) / 64 * sizeof *walk->in_list);
    for (size_t i = 0; i < 3; i++)
        follow_list(walk, page, page->lists[i]);
    for (uint32_t slot = 0; slot < page->slots; slot++)
        if ((walk->in_list[slot / 64] >> slot % 64 & 1) == 0)
            walk->blocks[walk->block_count++] = (struct ta__page_block){.slot = slot, .size = page->stride};
}

/* ---- pages with headers: what has a mark that verifies is in use ------------------------------------------------- */

static enum ta__mark_kind read_mark(struct ta__page_walk *walk, const struct ta__heap_page *page, uint32_t slot,
                                    struct ta__mark *mark)
{
    uint64_t address = page->start + slot * page->stride;
    enum ta__mark_kind kind =
        ta__mark_read(walk->marks, page, address, head_of(walk, page, slot), page->stride, 0, mark);
    if (kind != TA__MARK_FORWARD)
        return kind;
    uint8_t bytes[TA__MARK_BYTES];
    uint32_t shift = mark->offset;
    if (shift > page->stride - TA__MARK_BYTES)
        return TA__MARK_NONE;
    if (walk->is_whole)
        memcpy(bytes, head_of(walk, page, slot) + shift, sizeof bytes);
    else if (ta__target_read(walk->target, address + shift, bytes, sizeof bytes) != 0)
        return TA__MARK_NONE;
    kind = ta__mark_read(walk->marks, page, address + shift, bytes, page->stride - shift, 1, mark);
    mark->offset += shift;
    return kind;
}

static void find_marked(struct ta__page_walk *walk, const struct ta__heap_page *page)
{
    for (uint32_t slot = 0; slot < page->slots; slot++) {
        struct ta__mark mark;
        if (read_mark(walk, page, slot, &mark) != TA__MARK_LIVE)
            continue;
        int is_known = mark.size != UINT64_MAX;
        walk->blocks[walk->block_count++] = (struct ta__page_block){
            .slot = slot,
            .offset = mark.offset,
            .size = is_known ? mark.size : page->stride - mark.offset,
            .leaf = mark.leaf,
            .domain = mark.domain,
            .has_trace = (uint8_t)mark.has_trace,
            .is_size_known = (uint8_t)is_known,
        };
    }
}

int ta__page_walk(struct ta__page_walk *walk, const struct ta__heap_page *page)
{
    walk->block_count = 0;
    walk->is_damaged = 0;
    if ((page->flags & TA__HEAP_PAGE_OWN) != 0)
        return 0;
    if ((page->flags & TA__HEAP_PAGE_SINGLE) != 0) {
        walk->is_whole = 0;
        walk->blocks[walk->block_count++] =
            (struct ta__page_block){.offset = (uint32_t)page->user_offset, .size = page->user_size, .is_size_known = 1};
        return 0;
    }
    if (!load(walk, page))
        return 0;
    if ((page->flags & TA__HEAP_PAGE_HEADERS) != 0)
        find_marked(walk, page);
    else
        find_plain(walk, page);
    return 0;
}
