/* retained.c: see retained.h.
 *
 * What a group's blocks hold one by one is what stands below them in the tree of dominators; a walk through the tree adds
 * it up, counting what stands below two of them once. What only several of them hold together is not in it: that is found
 * by taking a group out and looking what is still reached, for as many groups at once as a word has bits. */
#include "analysis/image/retained.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"

enum { EXACT_MOST = 32 };

struct summing {
    const struct ta__dominators *dominators;
    const struct ta__block_graph *graph;
    const uint32_t *group_of_trace;
    uint32_t trace_count;
    struct ta__retained_group *groups;
    uint32_t *first_child, *next_sibling; /* by number */
    uint32_t *active;                     /* by group: its blocks around the present one */
    uint64_t *begin;                      /* by group: the sum when the outermost of them was entered */
    uint64_t sum;
};

static uint32_t group_of(const struct summing *summing, uint32_t rank)
{
    uint32_t trace = summing->graph->traces[rank];
    return summing->group_of_trace[trace < summing->trace_count ? trace : summing->trace_count];
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static int link_children(struct summing *summing)
{
    const struct ta__dominators *dominators = summing->dominators;
    summing->first_child = ta__new_array((size_t)dominators->count + 1, sizeof *summing->first_child);
    summing->next_sibling = ta__new_array((size_t)dominators->count + 1, sizeof *summing->next_sibling);
    if (summing->first_child == NULL || summing->next_sibling == NULL)
        return -1;
    for (uint32_t i = dominators->count; i-- > 1;) {
        summing->next_sibling[i] = summing->first_child[dominators->nearest[i]];
        summing->first_child[dominators->nearest[i]] = i;
    }
    return 0;
}

static void add_leaf(struct summing *summing, uint32_t slot)
{
    uint32_t rank = ta__graph_rank(summing->graph, slot), group = group_of(summing, rank);
    uint64_t size = ta__graph_size(summing->graph, rank);
    struct ta__retained_group *row = &summing->groups[group];
    row->blocks++;
    row->bytes += size;
    row->least += summing->active[group] == 0 ? size : 0;
    summing->sum += size;
}

static void enter(struct summing *summing, uint32_t number)
{
    uint32_t slot = summing->dominators->slots[number], rank = ta__graph_rank(summing->graph, slot);
    uint32_t group = group_of(summing, rank);
    uint64_t size = ta__graph_size(summing->graph, rank);
    struct ta__edges edges;
    struct ta__edge edge;
    if (summing->active[group]++ == 0)
        summing->begin[group] = summing->sum;
    summing->groups[group].blocks++;
    summing->groups[group].bytes += size;
    summing->sum += size;
    ta__graph_edges(summing->graph, rank, slot, &edges);
    while (ta__graph_next(summing->graph, &edges, &edge))
        if (ta__bit(summing->dominators->leaves, edge.slot))
            add_leaf(summing, edge.slot);
}

static void leave(struct summing *summing, uint32_t number)
{
    uint32_t rank = ta__graph_rank(summing->graph, summing->dominators->slots[number]);
    uint32_t group = group_of(summing, rank);
    if (--summing->active[group] == 0)
        summing->groups[group].least += summing->sum - summing->begin[group];
}

static void sum_tree(struct summing *summing)
{
    uint32_t at = 0;
    for (;;) {
        uint32_t next = summing->first_child[at];
        while (next == 0 && at != 0) {
            next = summing->next_sibling[at];
            leave(summing, at);
            at = next != 0 ? at : summing->dominators->nearest[at];
        }
        if (next == 0)
            return;
        enter(summing, next);
        at = next;
    }
}

/* ---- without a group --------------------------------------------------------------------------------------------- */

/* A bit for each of the chosen groups: the block is still reached when that group is not there. */
struct without {
    struct summing *summing;
    uint32_t *bit_of_group; /* 0 = not chosen */
    uint32_t *masks;        /* by rank */
    uint64_t *waiting;      /* slots */
    uint32_t *queue;        /* of these, as many as there is room for */
    size_t head, count, capacity;
    int has_more; /* some wait that are not in the queue */
};

static int compare_candidates(const void *a, const void *b, void *user)
{
    const struct ta__retained_group *groups = user;
    const struct ta__retained_group *left = &groups[*(const uint32_t *)a], *right = &groups[*(const uint32_t *)b];
    uint64_t left_value = left->least > left->bytes ? left->least : left->bytes;
    uint64_t right_value = right->least > right->bytes ? right->least : right->bytes;
    if (left_value != right_value)
        return left_value < right_value ? 1 : -1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* A ring of slots: each waits at most once. What finds no room waits without a place in it. */
static void put_in_queue(struct without *without, uint32_t slot)
{
    if (ta__bit(without->waiting, slot))
        return;
    ta__bit_set(without->waiting, slot);
    if (without->count < without->capacity)
        without->queue[(without->head + without->count++) % without->capacity] = slot;
    else
        without->has_more = 1;
}

/* The ring is as long as the set of bits: looking through that costs no more than what the ring had cost before. */
static void fill_queue(struct without *without)
{
    without->has_more = 0;
    for (size_t word = 0; word < ta__bit_words(without->summing->graph); word++)
        for (uint64_t bits = without->waiting[word]; bits != 0; bits &= bits - 1) {
            if (without->count == without->capacity) {
                without->has_more = 1;
                return;
            }
            uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            without->queue[(without->head + without->count++) % without->capacity] = slot;
        }
}

static uint32_t take_from_queue(struct without *without)
{
    uint32_t slot = without->queue[without->head];
    without->head = (without->head + 1) % without->capacity;
    without->count--;
    without->waiting[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    if (without->count == 0 && without->has_more)
        fill_queue(without);
    return slot;
}

static void reach(struct without *without, uint32_t slot, uint32_t mask)
{
    uint32_t rank = ta__graph_rank(without->summing->graph, slot);
    uint32_t gained = mask & ~without->bit_of_group[group_of(without->summing, rank)] & ~without->masks[rank];
    if (gained == 0)
        return;
    without->masks[rank] |= gained;
    put_in_queue(without, slot);
}

static void spread(struct without *without)
{
    const struct ta__block_graph *graph = without->summing->graph;
    for (size_t word = 0; word < ta__bit_words(graph); word++)
        for (uint64_t bits = graph->rooted[word] & graph->live[word]; bits != 0; bits &= bits - 1)
            reach(without, (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits), UINT32_MAX);
    while (without->count > 0) {
        if (without->count > TA__EXPECT_LATER)
            ta__graph_expect(graph, without->queue[(without->head + TA__EXPECT_SOON) % without->capacity],
                             without->queue[(without->head + TA__EXPECT_LATER) % without->capacity]);
        uint32_t slot = take_from_queue(without), rank = ta__graph_rank(graph, slot), mask = without->masks[rank];
        struct ta__edges edges;
        struct ta__edge edge;
        ta__graph_edges(graph, rank, slot, &edges);
        while (ta__graph_next(graph, &edges, &edge))
            reach(without, edge.slot, mask);
    }
}

static void add_what_goes(struct without *without, const uint32_t *chosen, uint32_t count)
{
    const struct ta__block_graph *graph = without->summing->graph;
    struct ta__retained_group *groups = without->summing->groups;
    uint32_t all = count == 32 ? UINT32_MAX : (UINT32_C(1) << count) - 1;
    for (uint32_t i = 0; i < count; i++) {
        groups[chosen[i]].retained = groups[chosen[i]].retained_blocks = 0;
        groups[chosen[i]].is_exact = 1;
    }
    for (size_t word = 0; word < ta__bit_words(graph); word++)
        for (uint64_t bits = without->summing->dominators->reached[word]; bits != 0; bits &= bits - 1) {
            uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits), rank = ta__graph_rank(graph, slot);
            for (uint32_t gone = all & ~without->masks[rank]; gone != 0; gone &= gone - 1) {
                struct ta__retained_group *group = &groups[chosen[__builtin_ctz(gone)]];
                group->retained += ta__graph_size(graph, rank);
                group->retained_blocks++;
            }
        }
}

static int make_exact(struct summing *summing, uint32_t group_count)
{
    struct without without = {.summing = summing, .capacity = ta__bit_words(summing->graph) + 7};
    uint32_t *order = ta__new_array((size_t)group_count + 1, sizeof *order);
    uint32_t count = group_count < EXACT_MOST ? group_count : EXACT_MOST;
    without.bit_of_group = ta__new_array((size_t)group_count + 1, sizeof *without.bit_of_group);
    without.masks = ta__new_array((size_t)summing->graph->count + 1, sizeof *without.masks);
    without.waiting = ta__new_array(ta__bit_words(summing->graph), sizeof *without.waiting);
    without.queue = ta__new_array(without.capacity, sizeof *without.queue);
    int is_ready = order != NULL && without.bit_of_group != NULL && without.masks != NULL && without.waiting != NULL &&
                   without.queue != NULL;
    if (is_ready) {
        for (uint32_t i = 0; i < group_count; i++)
            order[i] = i;
        qsort_r(order, group_count, sizeof *order, compare_candidates, summing->groups);
        for (uint32_t i = 0; i < count; i++)
            without.bit_of_group[order[i]] = UINT32_C(1) << i;
        spread(&without);
        add_what_goes(&without, order, count);
    }
    free(order);
    free(without.bit_of_group);
    free(without.masks);
    free(without.waiting);
    free(without.queue);
    return is_ready ? 0 : -1;
}

int ta__retained_groups(const struct ta__dominators *dominators, const uint32_t *group_of_trace, uint32_t trace_count,
                        struct ta__retained_group *groups, uint32_t group_count)
{
    struct summing summing = {.dominators = dominators,
                              .graph = dominators->graph,
                              .group_of_trace = group_of_trace,
                              .trace_count = trace_count,
                              .groups = groups};
    memset(groups, 0, group_count * sizeof *groups);
    summing.active = ta__new_array((size_t)group_count + 1, sizeof *summing.active);
    summing.begin = ta__new_array((size_t)group_count + 1, sizeof *summing.begin);
    int result = summing.active == NULL || summing.begin == NULL ? -1 : link_children(&summing);
    if (result == 0)
        sum_tree(&summing);
    free(summing.first_child);
    free(summing.next_sibling);
    for (uint32_t i = 0; i < group_count && result == 0; i++)
        groups[i].retained = groups[i].least;
    if (result == 0)
        result = make_exact(&summing, group_count);
    free(summing.active);
    free(summing.begin);
    return result;
}

/* ---- single blocks ----------------------------------------------------------------------------------------------- */

static uint64_t leaf_bytes(const struct ta__dominators *dominators, uint32_t rank, uint32_t slot)
{
    struct ta__edges edges;
    struct ta__edge edge;
    uint64_t bytes = 0;
    ta__graph_edges(dominators->graph, rank, slot, &edges);
    while (ta__graph_next(dominators->graph, &edges, &edge))
        if (ta__bit(dominators->leaves, edge.slot))
            bytes += ta__graph_size(dominators->graph, ta__graph_rank(dominators->graph, edge.slot));
    return bytes;
}

/* Those that nothing but the program itself holds: what stands at the top of the tree. Kept in order while they are met. */
size_t ta__retained_blocks(const struct ta__dominators *dominators, struct ta__retained_block *blocks, size_t max)
{
    uint64_t *held = ta__new_array((size_t)dominators->count + 1, sizeof *held);
    size_t count = 0;
    for (uint32_t i = dominators->count; held != NULL && i-- > 1;) {
        uint32_t slot = dominators->slots[i], rank = ta__graph_rank(dominators->graph, slot);
        held[i] += ta__graph_size(dominators->graph, rank) + leaf_bytes(dominators, rank, slot);
        held[dominators->nearest[i]] += held[i];
        if (dominators->nearest[i] != 0 || max == 0 || (count == max && blocks[count - 1].bytes >= held[i]))
            continue;
        size_t at = count < max ? count++ : count - 1;
        for (; at > 0 && blocks[at - 1].bytes < held[i]; at--)
            blocks[at] = blocks[at - 1];
        blocks[at] = (struct ta__retained_block){slot, held[i]};
    }
    free(held);
    return count;
}
