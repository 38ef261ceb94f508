/* live_blocks.c: see live_blocks.h. Runs in the traced process: mapped memory only. */
#include "snapshot/write/live_blocks.h"

#include <string.h>

#include "alloc/alloc.h"
#include "base/memory.h"
#include "snapshot/format/buffer.h"

struct list {
    struct ta__buffer blocks, counts;
    int has_failed;
};

static void add_block(const struct ta__source_block *block, void *context)
{
    struct list *list = context;
    if (!list->has_failed && ta__buffer_put(&list->blocks, block, sizeof *block) != 0)
        list->has_failed = 1;
}

static void fold_kept(const struct ta__source *source, uint32_t first, uint32_t n, struct ta__source_counts *counts)
{
    const struct list *list = source->user;
    memcpy(counts, TA__ROWS(const struct ta__source_counts, list->counts) + first, n * sizeof *counts);
}

static int keep_counts(struct list *list, const struct ta__source *source)
{
    size_t bytes = source->leaf_count * sizeof(struct ta__source_counts);
    if (ta__buffer_reserve(&list->counts, bytes) != 0)
        return -1;
    list->counts.length = bytes;
    source->fold(source, 0, source->leaf_count, TA__ROWS(struct ta__source_counts, list->counts));
    return 0;
}

void ta__live_blocks_take(struct ta__source *source)
{
    struct list *list = ta__memory_map(sizeof *list);
    if (list == NULL)
        return;
    ta__blocks_visit(add_block, list);
    if (keep_counts(list, source) != 0)
        list->has_failed = 1;
    source->user = list;
    if (list->has_failed) {
        ta__live_blocks_free(source);
        return;
    }
    source->fold = fold_kept;
    source->blocks = TA__ROWS(const struct ta__source_block, list->blocks);
    source->block_count = list->blocks.length / sizeof(struct ta__source_block);
    source->has_blocks = 1;
}

void ta__live_blocks_free(struct ta__source *source)
{
    struct list *list = source->user;
    if (list == NULL)
        return;
    ta__buffer_free(&list->blocks);
    ta__buffer_free(&list->counts);
    ta__memory_unmap(list, sizeof *list);
    source->user = NULL;
}

/* Walks go through pages in ascending order, arena by arena: the list is made of few ascending runs, which are merged in
 * pairs until one is left. */
static size_t run_end(const struct ta__source_block *blocks, size_t at, size_t count)
{
    while (at + 1 < count && blocks[at].address <= blocks[at + 1].address)
        at++;
    return at + 1;
}

static void merge(const struct ta__source_block *from, size_t first, size_t middle, size_t end,
                  struct ta__source_block *to)
{
    for (size_t a = first, b = middle, at = first; at < end; at++)
        to[at] = b == end || (a < middle && from[a].address <= from[b].address) ? from[a++] : from[b++];
}

void ta__live_blocks_sort(struct ta__source *source)
{
    struct list *list = source->user;
    size_t count = (size_t)source->block_count;
    struct ta__buffer other = {0};
    if (list == NULL || count == 0 || run_end(source->blocks, 0, count) == count)
        return;
    if (ta__buffer_reserve(&other, list->blocks.length) != 0) {
        source->has_blocks = 0;
        return;
    }
    other.length = list->blocks.length;
    for (size_t runs = 0; runs != 1;) {
        struct ta__source_block *from = TA__ROWS(struct ta__source_block, list->blocks);
        struct ta__source_block *to = TA__ROWS(struct ta__source_block, other);
        runs = 0;
        for (size_t at = 0, end; at < count; at = end, runs++) {
            size_t middle = run_end(from, at, count);
            end = middle < count ? run_end(from, middle, count) : middle;
            merge(from, at, middle, end, to);
        }
        struct ta__buffer swapped = list->blocks;
        list->blocks = other;
        other = swapped;
    }
    ta__buffer_free(&other);
    source->blocks = TA__ROWS(const struct ta__source_block, list->blocks);
}
