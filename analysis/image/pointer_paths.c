/* pointer_paths.c: see pointer_paths.h. A search in all directions from the roots, nearest blocks first: each block
 * remembers who reached it first, so that the ways are shortest ones. */
#include "analysis/image/pointer_paths.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

enum { KEPT_MOST = 1000 };
#define FROM_ROOT UINT32_MAX

static int search(struct ta__paths *paths)
{
    const struct ta__block_graph *graph = paths->graph;
    uint32_t *queue = ta__new_array((size_t)graph->count + 1, sizeof *queue);
    size_t head = 0, tail = 0;
    if (queue == NULL)
        return -1;
    for (size_t i = 0; i < graph->root_count; i++) {
        uint32_t slot = graph->roots[i].slot;
        if (slot >= graph->pages->slot_count || !ta__graph_is_live(graph, slot))
            continue;
        uint32_t *from = &paths->from[ta__graph_rank(graph, slot)];
        if (*from == FROM_ROOT) /* several roots may lead to one block, which the queue has room for once */
            continue;
        *from = FROM_ROOT;
        queue[tail++] = slot;
    }
    while (head < tail) {
        uint32_t slot = queue[head++];
        struct ta__edges edges;
        struct ta__edge edge;
        ta__graph_edges(graph, ta__graph_rank(graph, slot), slot, &edges);
        while (ta__graph_next(graph, &edges, &edge)) {
            uint32_t *from = &paths->from[ta__graph_rank(graph, edge.slot)];
            if (*from != 0)
                continue;
            *from = slot + 1;
            queue[tail++] = edge.slot;
        }
    }
    free(queue);
    return 0;
}

/* How many blocks a way to this one has. A way through the block itself is none. */
static uint32_t steps_to(const struct ta__paths *paths, uint32_t slot)
{
    uint32_t steps = 1;
    for (; slot != paths->slot && steps < UINT32_MAX; steps++) {
        uint32_t from = paths->from[ta__graph_rank(paths->graph, slot)];
        if (from == 0)
            return UINT32_MAX;
        if (from == FROM_ROOT)
            return steps;
        slot = from - 1;
    }
    return UINT32_MAX;
}

static int add_referrer(struct ta__paths *paths, const struct ta__referrer *referrer)
{
    paths->total++;
    if (paths->count == KEPT_MOST)
        return 0;
    if (ta__grow(&paths->referrers, &paths->capacity, paths->count + 1, sizeof *paths->referrers) != 0)
        return -1;
    paths->referrers[paths->count++] = *referrer;
    return 0;
}

static int find_referrers(struct ta__paths *paths)
{
    const struct ta__block_graph *graph = paths->graph;
    for (size_t i = 0; i < graph->root_count; i++)
        if (graph->roots[i].slot == paths->slot &&
            add_referrer(paths, &(struct ta__referrer){.slot = UINT32_MAX, .root = graph->roots[i]}) != 0)
            return -1;
    size_t words = ta__bit_words(graph);
    uint32_t rank = 0;
    for (size_t word = 0; word < words; word++)
        for (uint64_t bits = graph->live[word]; bits != 0; bits &= bits - 1, rank++) {
            uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            struct ta__edges edges;
            struct ta__edge edge;
            ta__graph_edges(graph, rank, slot, &edges);
            while (ta__graph_next(graph, &edges, &edge))
                if (edge.slot == paths->slot &&
                    add_referrer(paths, &(struct ta__referrer){.slot = slot, .offset = edge.offset}) != 0)
                    return -1;
        }
    return 0;
}

static int compare_referrers(const void *a, const void *b)
{
    const struct ta__referrer *left = a, *right = b;
    if (left->steps != right->steps)
        return left->steps < right->steps ? -1 : 1;
    if (left->slot != right->slot)
        return left->slot == UINT32_MAX ? -1 : right->slot == UINT32_MAX ? 1 : left->slot < right->slot ? -1 : 1;
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

int ta__paths_find(struct ta__paths *paths, const struct ta__block_graph *graph, uint32_t slot)
{
    *paths = (struct ta__paths){.graph = graph, .slot = slot};
    paths->from = ta__new_array((size_t)graph->count + 1, sizeof *paths->from);
    if (paths->from == NULL || search(paths) != 0 || find_referrers(paths) != 0)
        return -1;
    for (size_t i = 0; i < paths->count; i++) {
        struct ta__referrer *referrer = &paths->referrers[i];
        referrer->steps = referrer->slot == UINT32_MAX ? 0 : steps_to(paths, referrer->slot);
    }
    if (paths->count > 0)
        qsort(paths->referrers, paths->count, sizeof *paths->referrers, compare_referrers);
    return 0;
}

void ta__paths_free(struct ta__paths *paths)
{
    free(paths->from);
    free(paths->referrers);
    memset(paths, 0, sizeof *paths);
}

static void root_of(const struct ta__block_graph *graph, uint32_t slot, struct ta__root *root)
{
    for (size_t i = 0; i < graph->root_count; i++)
        if (graph->roots[i].slot == slot) {
            *root = graph->roots[i];
            return;
        }
}

size_t ta__paths_way(const struct ta__paths *paths, size_t index, uint32_t *slots, size_t max, struct ta__root *root)
{
    const struct ta__referrer *referrer = index < paths->count ? &paths->referrers[index] : NULL;
    if (referrer == NULL || referrer->steps == UINT32_MAX)
        return 0;
    size_t length = (size_t)referrer->steps + 1, at = length - 1;
    if (at < max)
        slots[at] = paths->slot;
    uint32_t first = paths->slot;
    for (uint32_t slot = referrer->slot; at > 0;) {
        if (--at < max)
            slots[at] = slot;
        first = slot;
        slot = paths->from[ta__graph_rank(paths->graph, slot)] - 1;
    }
    if (referrer->slot == UINT32_MAX)
        *root = referrer->root;
    else
        root_of(paths->graph, first, root);
    return length;
}

uint64_t ta__paths_offset(const struct ta__block_graph *graph, uint32_t from, uint32_t to)
{
    struct ta__edges edges;
    struct ta__edge edge;
    ta__graph_edges(graph, ta__graph_rank(graph, from), from, &edges);
    while (ta__graph_next(graph, &edges, &edge))
        if (edge.slot == to)
            return edge.offset;
    return 0;
}
