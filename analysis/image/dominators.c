/* dominators.c: see dominators.h. Semidominators by the walk's numbers (Lengauer and Tarjan), from there to dominators by
 * nearest common ancestors (Georgiadis' semi-NCA): two passes over arrays of numbers, no recursion.
 *
 * A large process has as many numbers as blocks, so that each array counts. There are four at a time:
 *
 *     walk             numbers, slots
 *     sorting          numbers, slots, semi          later, pointers
 *     semidominators            slots, semi, parents, later, pointers
 *     nearest                   slots, semi, parents
 *
 * The walk's tree is kept as two bits a number, from which its parents are made whenever they are needed. */
#include "analysis/image/dominators.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"

/* A block that the walk went on from, and where its list of pointers stands. */
struct suspended {
    uint32_t number;
    uint32_t at;   /* from the beginning of its group of lists */
    uint32_t left; /* pointers */
};

struct finding {
    struct ta__dominators *result;
    const struct ta__block_graph *graph;
    uint64_t *inner;    /* slots of what has a number */
    uint32_t *inner_at; /* their ranks */
    uint32_t *numbers;  /* by rank of these */
    struct suspended *stack;
    size_t depth, stack_capacity;
    uint64_t *tree; /* the walk's: for each number as many bits 0 as steps up from the one before, then a bit 1 */
    size_t tree_at;
    uint32_t *parents; /* in the walk; later, with shortcuts, in the forest of what was dealt with */
    uint32_t *semi;    /* semidominators */
    uint32_t *later; /* pointers from blocks that were met later: where the list of each begins. What was dealt with has
                           the smallest semidominator here, of itself and the ancestors that a shortcut skips */
    uint32_t *pointers; /* the lists */
};

static uint32_t *number_of(const struct finding *finding, uint32_t slot)
{
    return &finding->numbers[ta__rank_in(finding->inner, finding->inner_at, slot)];
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

/* Blocks that nothing but one pointer of one other block leads to, and that lead nowhere. */
static int find_leaves(struct finding *finding)
{
    const struct ta__block_graph *graph = finding->graph;
    struct ta__dominators *result = finding->result;
    size_t words = ta__bit_words(graph);
    uint64_t *once = ta__new_array(words, sizeof *once), *more = ta__new_array(words, sizeof *more);
    uint64_t *leads = ta__new_array(words, sizeof *leads);
    int is_done = once != NULL && more != NULL && leads != NULL;
    uint32_t rank = 0;
    for (size_t word = 0; word < words && is_done; word++)
        for (uint64_t bits = graph->live[word]; bits != 0; bits &= bits - 1, rank++) {
            uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            struct ta__edges edges;
            struct ta__edge edge;
            if (!ta__bit(result->reached, slot))
                continue;
            ta__graph_edges(graph, rank, slot, &edges);
            while (ta__graph_next(graph, &edges, &edge)) {
                ta__bit_set(leads, slot);
                if (ta__bit(once, edge.slot))
                    ta__bit_set(more, edge.slot);
                ta__bit_set(once, edge.slot);
            }
        }
    for (size_t word = 0; word < words && is_done; word++)
        result->leaves[word] = result->reached[word] & once[word] & ~more[word] & ~leads[word] & ~graph->rooted[word];
    free(once);
    free(more);
    free(leads);
    return is_done ? 0 : -1;
}

/* What is reached and no leaf has a number. */
static int choose_inner(struct finding *finding)
{
    const struct ta__block_graph *graph = finding->graph;
    struct ta__dominators *result = finding->result;
    size_t words = ta__bit_words(graph);
    finding->inner = ta__new_array(words, sizeof *finding->inner);
    if (finding->inner == NULL)
        return -1;
    for (size_t word = 0; word < words; word++)
        finding->inner[word] = result->reached[word] & ~result->leaves[word];
    finding->inner_at = ta__graph_new_ranks(graph, finding->inner);
    if (finding->inner_at == NULL)
        return -1;
    size_t count = (size_t)finding->inner_at[graph->pages->slot_count / TA__RANK_STEP + 1] + 2;
    finding->numbers = ta__new_array(count, sizeof *finding->numbers);
    finding->tree = ta__new_array(count / 32 + 1, sizeof *finding->tree);
    result->slots = ta__new_array(count, sizeof *result->slots);
    return finding->numbers == NULL || finding->tree == NULL || result->slots == NULL ? -1 : 0;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static const uint8_t *group_of_lists(const struct ta__block_graph *graph, uint32_t slot)
{
    return graph->edges + graph->edges_at[ta__graph_rank(graph, slot) / TA__EDGE_STEP];
}

static int suspend(struct finding *finding, uint32_t number, const struct ta__edges *edges)
{
    const uint8_t *base = group_of_lists(finding->graph, finding->result->slots[number]);
    if (ta__grow(&finding->stack, &finding->stack_capacity, finding->depth + 1, sizeof *finding->stack) != 0)
        return -1;
    finding->stack[finding->depth++] = (struct suspended){number, (uint32_t)(edges->at - base), (uint32_t)edges->left};
    return 0;
}

/* Back to where `from` was met: the list goes on behind the pointer to it. */
static uint32_t resume(struct finding *finding, uint32_t from, struct ta__edges *edges)
{
    const struct ta__block_graph *graph = finding->graph;
    const struct suspended *last = &finding->stack[--finding->depth];
    *edges = (struct ta__edges){.at = group_of_lists(graph, finding->result->slots[last->number]) + last->at,
                                .end = graph->edges + graph->edge_bytes,
                                .left = last->left,
                                .slot = finding->result->slots[from],
                                .keeps_places = graph->keeps_places};
    return last->number;
}

static uint32_t meet(struct finding *finding, uint32_t slot, struct ta__edges *edges)
{
    struct ta__dominators *result = finding->result;
    uint32_t number = result->count++;
    *number_of(finding, slot) = number;
    result->slots[number] = slot;
    finding->tree[finding->tree_at / 64] |= UINT64_C(1) << finding->tree_at % 64;
    finding->tree_at++;
    ta__graph_edges(finding->graph, ta__graph_rank(finding->graph, slot), slot, edges);
    return number;
}

static int walk_from(struct finding *finding, uint32_t slot)
{
    const struct ta__block_graph *graph = finding->graph;
    struct ta__edges edges;
    uint32_t number = meet(finding, slot, &edges);
    for (;;) {
        struct ta__edge edge;
        if (!ta__graph_next(graph, &edges, &edge)) {
            finding->tree_at++;
            if (finding->depth == 0)
                return 0;
            number = resume(finding, number, &edges);
        } else if (ta__bit(finding->inner, edge.slot) && *number_of(finding, edge.slot) == 0) {
            if (suspend(finding, number, &edges) != 0)
                return -1;
            number = meet(finding, edge.slot, &edges);
        }
    }
}

static int walk(struct finding *finding)
{
    const struct ta__block_graph *graph = finding->graph;
    finding->result->count = 1;
    for (size_t word = 0; word < ta__bit_words(graph); word++)
        for (uint64_t bits = graph->rooted[word] & finding->inner[word]; bits != 0; bits &= bits - 1) {
            uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
            if (*number_of(finding, slot) == 0 && walk_from(finding, slot) != 0)
                return -1;
        }
    free(finding->stack);
    finding->stack = NULL;
    return 0;
}

/* Of each number in the walk, into a new array. */
static void put_parents(const struct finding *finding, uint32_t *parents)
{
    size_t bit = 0;
    uint32_t at = 0;
    for (uint32_t i = 1; i < finding->result->count; i++, bit++) {
        for (; (finding->tree[bit / 64] >> bit % 64 & 1) == 0; bit++)
            at = parents[at];
        parents[i] = at;
        at = i;
    }
}

/* ---- pointers by where they lead --------------------------------------------------------------------------------- */

/* Calls visit(finding, from, to) for every pointer between numbered blocks. */
static void each_pointer(struct finding *finding, void (*visit)(struct finding *finding, uint32_t from, uint32_t to))
{
    const struct ta__dominators *result = finding->result;
    for (uint32_t from = 1; from < result->count; from++) {
        uint32_t slot = result->slots[from];
        struct ta__edges edges;
        struct ta__edge edge;
        if (from + TA__EXPECT_LATER < result->count)
            ta__graph_expect(finding->graph, result->slots[from + TA__EXPECT_SOON],
                             result->slots[from + TA__EXPECT_LATER]);
        ta__graph_edges(finding->graph, ta__graph_rank(finding->graph, slot), slot, &edges);
        while (ta__graph_next(finding->graph, &edges, &edge)) {
            uint32_t to = ta__bit(finding->inner, edge.slot) ? *number_of(finding, edge.slot) : from;
            if (to != from)
                visit(finding, from, to);
        }
    }
}

/* From an earlier block the pointer says at once what it has to say. */
static void count_pointer(struct finding *finding, uint32_t from, uint32_t to)
{
    if (from > to)
        finding->later[to]++;
    else if (from < finding->semi[to])
        finding->semi[to] = from;
}

static void put_pointer(struct finding *finding, uint32_t from, uint32_t to)
{
    if (from > to)
        finding->pointers[--finding->later[to]] = from;
}

static int sort_pointers(struct finding *finding)
{
    uint32_t count = finding->result->count;
    uint64_t sum = 0;
    finding->semi = ta__new_array(count, sizeof *finding->semi);
    finding->later = ta__new_array((size_t)count + 1, sizeof *finding->later);
    if (finding->semi == NULL || finding->later == NULL)
        return -1;
    put_parents(finding, finding->semi);
    for (uint32_t i = 1; i < count; i++)
        if (ta__bit(finding->graph->rooted, finding->result->slots[i]))
            finding->semi[i] = 0;
    each_pointer(finding, count_pointer);
    for (uint32_t i = 0; i < count; i++) {
        sum += finding->later[i];
        if (sum >= UINT32_MAX)
            return ta__fail("more than four thousand million pointers");
        finding->later[i] = (uint32_t)sum;
    }
    finding->later[count] = (uint32_t)sum;
    if ((finding->pointers = ta__new_array((size_t)sum + 1, sizeof *finding->pointers)) == NULL)
        return -1;
    each_pointer(finding, put_pointer);
    return 0;
}

static void forget(uint32_t **array)
{
    free(*array);
    *array = NULL;
}

/* ---- dominators -------------------------------------------------------------------------------------------------- */

/* The smallest semidominator on the way from `number` up to what was not dealt with yet (all below `border`); the way is
 * shortened for the next question. The way up is turned around while it is gone, so that no stack is needed. */
static uint32_t evaluate(struct finding *finding, uint32_t number, uint32_t border)
{
    uint32_t *parents = finding->parents, *least = finding->later;
    uint32_t at = number, before = 0;
    if (parents[number] < border)
        return least[number];
    while (parents[at] >= border) {
        uint32_t next = parents[at];
        parents[at] = before;
        before = at;
        at = next;
    }
    uint32_t top = parents[at], best = least[at];
    while (before != 0) {
        uint32_t next = parents[before];
        if (best < least[before])
            least[before] = best;
        else
            best = least[before];
        parents[before] = top;
        before = next;
    }
    return least[number];
}

static int find_semidominators(struct finding *finding)
{
    const struct ta__dominators *result = finding->result;
    uint32_t end = finding->later[result->count];
    forget(&finding->numbers);
    finding->parents = ta__new_array(result->count, sizeof *finding->parents);
    if (finding->parents == NULL)
        return -1;
    put_parents(finding, finding->parents);
    for (uint32_t to = result->count; to-- > 1;) {
        uint32_t begin = finding->later[to];
        for (uint32_t i = begin; i < end; i++) {
            uint32_t semi = evaluate(finding, finding->pointers[i], to + 1);
            finding->semi[to] = semi < finding->semi[to] ? semi : finding->semi[to];
        }
        finding->later[to] = finding->semi[to];
        end = begin;
    }
    forget(&finding->later);
    forget(&finding->pointers);
    return 0;
}

/* Parents become nearest dominators in place: what is looked at has a smaller number, and is done. */
static void find_nearest(struct finding *finding)
{
    uint32_t *nearest = finding->result->nearest = finding->parents;
    finding->parents = NULL;
    put_parents(finding, nearest);
    for (uint32_t i = 1; i < finding->result->count; i++)
        while (nearest[i] > finding->semi[i])
            nearest[i] = nearest[nearest[i]];
}

int ta__dominators_find(struct ta__dominators *dominators, const struct ta__block_graph *graph)
{
    struct finding finding = {.result = dominators, .graph = graph};
    *dominators = (struct ta__dominators){.graph = graph};
    dominators->reached = ta__reach_from_roots(graph);
    dominators->leaves = ta__new_array(ta__bit_words(graph), sizeof *dominators->leaves);
    int result = dominators->reached == NULL || dominators->leaves == NULL || find_leaves(&finding) != 0 ||
                         choose_inner(&finding) != 0 || walk(&finding) != 0 || sort_pointers(&finding) != 0 ||
                         find_semidominators(&finding) != 0
                     ? -1
                     : 0;
    if (result == 0)
        find_nearest(&finding);
    free(finding.inner);
    free(finding.inner_at);
    free(finding.numbers);
    free(finding.stack);
    free(finding.tree);
    free(finding.parents);
    free(finding.semi);
    free(finding.later);
    free(finding.pointers);
    return result;
}

void ta__dominators_free(struct ta__dominators *dominators)
{
    free(dominators->reached);
    free(dominators->leaves);
    free(dominators->slots);
    free(dominators->nearest);
    memset(dominators, 0, sizeof *dominators);
}
