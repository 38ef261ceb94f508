/* reach.c: see reach.h. */
#include "analysis/image/reach.h"

#include <stdlib.h>

#include "analysis/arrays.h"

int ta__slot_push(struct ta__slot_stack *stack, uint32_t slot)
{
    if (TA_UNLIKELY(stack->count == stack->capacity) &&
        ta__grow(&stack->slots, &stack->capacity, stack->count + 1, sizeof *stack->slots) != 0)
        return -1;
    stack->slots[stack->count++] = slot;
    return 0;
}

/* Blocks lie anywhere, and so does what is known of them: a walk from one to the next waits for memory each time. So
 * several are on their way at once. First the place of a block's pointers is asked for, later the pointers themselves. */
enum { ON_THE_WAY = 16 };
struct coming {
    uint32_t slots[ON_THE_WAY], ranks[ON_THE_WAY];
    uint32_t first, count;
};

static void fetch_more(const struct ta__block_graph *graph, struct ta__slot_stack *stack, struct coming *coming)
{
    while (coming->count < ON_THE_WAY && stack->count > 0) {
        uint32_t at = (coming->first + coming->count++) % ON_THE_WAY;
        coming->slots[at] = stack->slots[--stack->count];
        coming->ranks[at] = ta__graph_rank(graph, coming->slots[at]);
        __builtin_prefetch(&graph->edges_at[coming->ranks[at] / TA__EDGE_STEP]);
    }
    if (coming->count > ON_THE_WAY / 2) {
        uint32_t rank = coming->ranks[(coming->first + ON_THE_WAY / 2) % ON_THE_WAY];
        __builtin_prefetch(graph->edges + graph->edges_at[rank / TA__EDGE_STEP]);
    }
}

int ta__reach(const struct ta__block_graph *graph, struct ta__slot_stack *stack, const uint64_t *within,
              uint64_t *reached, void (*visit)(void *context, uint32_t slot), void *context)
{
    struct coming coming = {.first = 0, .count = 0};
    while (fetch_more(graph, stack, &coming), coming.count > 0) {
        uint32_t slot = coming.slots[coming.first], rank = coming.ranks[coming.first];
        struct ta__edges edges;
        struct ta__edge edge;
        coming.first = (coming.first + 1) % ON_THE_WAY;
        coming.count--;
        ta__graph_edges(graph, rank, slot, &edges);
        while (ta__graph_next(graph, &edges, &edge)) {
            if (ta__bit(reached, edge.slot) || (within != NULL && !ta__bit(within, edge.slot)))
                continue;
            ta__bit_set(reached, edge.slot);
            if (visit != NULL)
                visit(context, edge.slot);
            if (ta__slot_push(stack, edge.slot) != 0)
                return -1;
        }
    }
    return 0;
}

uint64_t *ta__reach_from_roots(const struct ta__block_graph *graph)
{
    size_t words = ta__bit_words(graph);
    struct ta__slot_stack stack = {0};
    uint64_t *reached = ta__new_array(words, sizeof *reached);
    int result = reached == NULL ? -1 : 0;
    for (size_t word = 0; word < words && result == 0; word++)
        for (uint64_t bits = graph->rooted[word] & graph->live[word]; bits != 0 && result == 0; bits &= bits - 1) {
            uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            if (ta__bit(reached, slot) ||
                (graph->passes_inner && !ta__bit(graph->rooted_first, slot) && !ta__graph_is_odd(graph, slot)))
                continue;
            ta__bit_set(reached, slot);
            result = ta__slot_push(&stack, slot);
        }
    if (result == 0)
        result = ta__reach(graph, &stack, NULL, reached, NULL, NULL);
    free(stack.slots);
    if (result == 0)
        return reached;
    free(reached);
    return NULL;
}
