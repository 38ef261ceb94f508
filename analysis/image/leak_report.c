/* leak_report.c: what tracealloc/image.h answers about lost blocks. */
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/lost_blocks.h"
#include "analysis/image/memory_image.h"
#include "snapshot/read/read.h"

struct ta_leaks {
    struct ta_image *image;
    struct ta__lost_blocks lost;
    struct ta_leak *rows; /* those that are not suppressed come first */
    size_t count;
    struct ta_leak_totals totals;
};

static int add_rows(struct ta_leaks *leaks, enum ta__loss kind, struct ta_suppressions *suppressions)
{
    const struct ta__lost_blocks *lost = &leaks->lost;
    for (uint32_t trace = 0; trace <= lost->trace_count; trace++) {
        const struct ta__loss_figures *figures = &lost->figures[kind][trace];
        if (figures->blocks == 0)
            continue;
        struct ta_leak *row = &leaks->rows[leaks->count++];
        *row = (struct ta_leak){
            .trace = trace < lost->trace_count ? (long)trace : -1,
            .is_cycle = kind == TA__LOSS_CYCLE,
            .suppression = -1,
            .blocks = figures->blocks,
            .bytes = figures->bytes,
            .held_blocks = figures->held_blocks,
            .held_bytes = figures->held_bytes,
            .address = ta__graph_address(lost->graph, figures->largest),
            .largest_bytes = figures->largest_bytes,
        };
        if (suppressions != NULL && row->trace >= 0)
            row->suppression = ta_suppressions_match(
                suppressions, ta_snapshot_trace_traceback(leaks->image->snapshot, (size_t)row->trace));
        if (row->suppression >= 0)
            ta_suppressions_note(suppressions, (size_t)row->suppression, row->blocks + row->held_blocks,
                                 row->bytes + row->held_bytes);
    }
    return 0;
}

static int compare_leaks(const void *a, const void *b)
{
    const struct ta_leak *left = a, *right = b;
    if ((left->suppression >= 0) != (right->suppression >= 0))
        return left->suppression >= 0 ? 1 : -1;
    uint64_t left_bytes = left->bytes + left->held_bytes, right_bytes = right->bytes + right->held_bytes;
    if (left_bytes != right_bytes)
        return left_bytes < right_bytes ? 1 : -1;
    if (left->trace != right->trace)
        return left->trace < right->trace ? -1 : 1;
    return left->is_cycle - right->is_cycle;
}

/* Blocks that only pointers into the middle keep from being lost: a search that passes over those pointers. */
static int add_inner(struct ta_leaks *leaks)
{
    struct ta__block_graph *graph = leaks->image->graph;
    if (graph->passes_inner)
        return 0;
    uint64_t *any = ta__reach_from_roots(graph);
    graph->passes_inner = 1;
    uint64_t *first = any != NULL ? ta__reach_from_roots(graph) : NULL;
    graph->passes_inner = 0;
    for (size_t word = 0; first != NULL && word < ta__bit_words(graph); word++)
        for (uint64_t bits = any[word] & ~first[word]; bits != 0; bits &= bits - 1) {
            uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            leaks->totals.inner_blocks++;
            leaks->totals.inner_bytes += ta__graph_size(graph, ta__graph_rank(graph, slot));
        }
    free(any);
    free(first);
    return first != NULL ? 0 : -1;
}

static void add_totals(struct ta_leaks *leaks)
{
    struct ta_leak_totals *totals = &leaks->totals;
    totals->reachable_blocks = leaks->lost.graph->count - leaks->lost.blocks;
    for (size_t i = 0; i < leaks->count; i++) {
        const struct ta_leak *row = &leaks->rows[i];
        if (row->suppression >= 0) {
            totals->suppressed_blocks += row->blocks + row->held_blocks;
            totals->suppressed_bytes += row->bytes + row->held_bytes;
            continue;
        }
        totals->rows++;
        totals->direct_blocks += row->blocks;
        totals->direct_bytes += row->bytes;
        totals->indirect_blocks += row->held_blocks;
        totals->indirect_bytes += row->held_bytes;
        totals->cycles += row->is_cycle ? row->blocks : 0;
    }
}

struct ta_leaks *ta_image_leaks(struct ta_image *image, struct ta_suppressions *suppressions)
{
    if (image->graph == NULL) {
        ta__fail("the image was not opened for questions about pointers");
        return NULL;
    }
    uint32_t traces = ta__snapshot_view(image->snapshot)->trace_count;
    struct ta_leaks *leaks = ta__new_array(1, sizeof *leaks);
    if (leaks == NULL)
        return NULL;
    leaks->image = image;
    image->graph->passes_inner = (image->options.flags & TA_IMAGE_EXACT) != 0;
    leaks->rows = ta__new_array(((size_t)traces + 1) * TA__LOSSES, sizeof *leaks->rows);
    if (leaks->rows == NULL || ta__lost_find(&leaks->lost, image->graph, traces) != 0 || add_inner(leaks) != 0) {
        ta_leaks_free(leaks);
        return NULL;
    }
    add_rows(leaks, TA__LOSS_PLAIN, suppressions);
    add_rows(leaks, TA__LOSS_CYCLE, suppressions);
    qsort(leaks->rows, leaks->count, sizeof *leaks->rows, compare_leaks);
    add_totals(leaks);
    return leaks;
}

void ta_leaks_free(struct ta_leaks *leaks)
{
    if (leaks == NULL)
        return;
    ta__lost_free(&leaks->lost);
    free(leaks->rows);
    free(leaks);
}

void ta_leaks_totals(const struct ta_leaks *leaks, struct ta_leak_totals *totals, size_t size)
{
    memcpy(totals, &leaks->totals, size < sizeof *totals ? size : sizeof *totals);
}

size_t ta_leaks_count(const struct ta_leaks *leaks)
{
    return leaks->count;
}

int ta_leaks_get(const struct ta_leaks *leaks, size_t index, struct ta_leak *leak, size_t size)
{
    if (index >= leaks->count)
        return ta__fail("there is no leak of that index");
    memcpy(leak, &leaks->rows[index], size < sizeof *leak ? size : sizeof *leak);
    return 0;
}

size_t ta_leaks_cycle(const struct ta_leaks *leaks, size_t index, struct ta_block *blocks, size_t max)
{
    enum { STEPS_MOST = 64 };
    const struct ta__block_graph *graph = leaks->lost.graph;
    uint32_t slots[STEPS_MOST];
    if (index >= leaks->count || !leaks->rows[index].is_cycle)
        return 0;
    uint32_t start = ta__graph_slot(graph, leaks->rows[index].address);
    size_t length = start == UINT32_MAX ? 0 : ta__lost_cycle(&leaks->lost, start, slots, STEPS_MOST);
    for (size_t i = 0; i < length && i < max && i < STEPS_MOST; i++) {
        uint32_t rank = ta__graph_rank(graph, slots[i]);
        uint32_t trace = graph->traces[rank];
        blocks[i] = (struct ta_block){ta__graph_address(graph, slots[i]), ta__graph_size(graph, rank),
                                      trace < leaks->lost.trace_count ? (long)trace : -1};
    }
    return length;
}
