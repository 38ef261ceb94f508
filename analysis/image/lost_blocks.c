/* lost_blocks.c: see lost_blocks.h.
 *
 * Of the lost blocks those that no other lost one points to are the heads: they were lost first, what they reach went with
 * them. What is left then belongs to circles, or is reached from circles only: there strongly connected components are
 * looked for (Tarjan's walk, without recursion), which are few and small in practice. */
#include "analysis/image/lost_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

struct finding {
    struct ta__lost_blocks *lost;
    const struct ta__block_graph *graph;
    uint64_t *all;     /* lost */
    uint64_t *pointed; /* lost, and another lost one points to it */
    uint64_t *claimed; /* counted already */
    struct ta__slot_stack stack;
    struct ta__loss_figures *owner; /* whose held blocks are being counted */
    uint64_t held_bytes;            /* by the present head */
};

static uint32_t trace_of(const struct ta__lost_blocks *lost, uint32_t rank)
{
    uint32_t trace = lost->graph->traces[rank];
    return trace < lost->trace_count ? trace : lost->trace_count;
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

#define FOR_EACH_SLOT(graph, set, slot)                                                                                \
    for (size_t word_ = 0; word_ < ta__bit_words(graph); word_++)                                                      \
        for (uint64_t bits_ = (set)[word_]; bits_ != 0; bits_ &= bits_ - 1)                                            \
            for (uint32_t slot = (uint32_t)(word_ * 64) + (uint32_t)__builtin_ctzll(bits_), once_ = 1; once_; once_ = 0)

static int find_lost(struct finding *finding)
{
    const struct ta__block_graph *graph = finding->graph;
    uint64_t *reached = ta__reach_from_roots(graph);
    if (reached == NULL)
        return -1;
    for (size_t i = 0; i < ta__bit_words(graph); i++)
        reached[i] = graph->live[i] & ~reached[i];
    finding->all = reached;
    FOR_EACH_SLOT(graph, finding->all, slot)
    {
        uint32_t rank = ta__graph_rank(graph, slot);
        struct ta__edges edges;
        struct ta__edge edge;
        finding->lost->blocks++;
        finding->lost->bytes += ta__graph_size(graph, rank);
        ta__graph_edges(graph, rank, slot, &edges);
        while (ta__graph_next(graph, &edges, &edge))
            if (edge.slot != slot)
                ta__bit_set(finding->pointed, edge.slot);
    }
    return 0;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void count_held(void *context, uint32_t slot)
{
    struct finding *finding = context;
    uint64_t size = ta__graph_size(finding->graph, ta__graph_rank(finding->graph, slot));
    finding->owner->held_blocks++;
    finding->owner->held_bytes += size;
    finding->held_bytes += size;
}

/* A head, or a circle's member that stands for it, and all that goes with it. */
static int claim(struct finding *finding, uint32_t slot, enum ta__loss kind)
{
    uint32_t rank = ta__graph_rank(finding->graph, slot);
    struct ta__loss_figures *figures = &finding->lost->figures[kind][trace_of(finding->lost, rank)];
    uint64_t size = ta__graph_size(finding->graph, rank);
    finding->owner = figures;
    finding->held_bytes = 0;
    figures->blocks++;
    figures->bytes += size;
    ta__bit_set(finding->claimed, slot);
    if (ta__slot_push(&finding->stack, slot) != 0 ||
        ta__reach(finding->graph, &finding->stack, finding->all, finding->claimed, count_held, finding) != 0)
        return -1;
    if (figures->blocks == 1 || size + finding->held_bytes > figures->largest_bytes) {
        figures->largest = slot;
        figures->largest_bytes = size + finding->held_bytes;
    }
    return 0;
}

static int claim_heads(struct finding *finding)
{
    FOR_EACH_SLOT(finding->graph, finding->all, slot)
    if (!ta__bit(finding->pointed, slot) && claim(finding, slot, TA__LOSS_PLAIN) != 0)
        return -1;
    return 0;
}

/* ---- circles ----------------------------------------------------------------------------------------------------- */

/* What is left, numbered from 0 in the order of slots. */
struct rest {
    uint64_t *set;
    uint32_t *rank_at; /* of each word */
    uint32_t count;
    uint32_t *slots;     /* by number */
    uint32_t *index;     /* Tarjan's, from 1; 0 = not met yet */
    uint32_t *low;       /* and his other one; afterwards the number of the component */
    uint32_t *component; /* by number; UINT32_MAX while it is open */
    uint32_t components;
    struct ta__slot_stack open;
};

static uint32_t number_of(const struct rest *rest, uint32_t slot)
{
    return rest->rank_at[slot / 64] +
           (uint32_t)__builtin_popcountll(rest->set[slot / 64] & ((UINT64_C(1) << slot % 64) - 1));
}

static int make_rest(struct finding *finding, struct rest *rest)
{
    size_t words = ta__bit_words(finding->graph);
    rest->set = ta__new_array(words, sizeof *rest->set);
    rest->rank_at = ta__new_array(words, sizeof *rest->rank_at);
    if (rest->set == NULL || rest->rank_at == NULL)
        return -1;
    for (size_t i = 0; i < words; i++) {
        rest->rank_at[i] = rest->count;
        rest->set[i] = finding->all[i] & ~finding->claimed[i];
        rest->count += (uint32_t)__builtin_popcountll(rest->set[i]);
    }
    size_t count = (size_t)rest->count + 1;
    rest->slots = ta__new_array(count, sizeof *rest->slots);
    rest->index = ta__new_array(count, sizeof *rest->index);
    rest->low = ta__new_array(count, sizeof *rest->low);
    rest->component = ta__new_array(count, sizeof *rest->component);
    if (rest->slots == NULL || rest->index == NULL || rest->low == NULL || rest->component == NULL)
        return -1;
    memset(rest->component, 0xFF, count * sizeof *rest->component);
    uint32_t number = 0;
    FOR_EACH_SLOT(finding->graph, rest->set, slot)
    rest->slots[number++] = slot;
    return 0;
}

static void free_rest(struct rest *rest)
{
    free(rest->set);
    free(rest->rank_at);
    free(rest->slots);
    free(rest->index);
    free(rest->low);
    free(rest->component);
    free(rest->open.slots);
}

/* A block whose pointers are being followed. */
struct visit {
    uint32_t number;
    struct ta__edges edges;
};

static void close_component(struct rest *rest, uint32_t number)
{
    uint32_t member;
    do {
        member = rest->open.slots[--rest->open.count];
        rest->component[member] = rest->components;
    } while (member != number);
    rest->components++;
}

static int begin_visit(const struct finding *finding, struct rest *rest, struct visit *visit, uint32_t number,
                       uint32_t *next_index)
{
    uint32_t slot = rest->slots[number];
    rest->index[number] = rest->low[number] = ++*next_index;
    visit->number = number;
    ta__graph_edges(finding->graph, ta__graph_rank(finding->graph, slot), slot, &visit->edges);
    return ta__slot_push(&rest->open, number);
}

static int find_components(const struct finding *finding, struct rest *rest)
{
    struct visit *visits = NULL;
    size_t depth, capacity = 0;
    uint32_t next_index = 0;
    int result = 0;
    for (uint32_t first = 0; first < rest->count && result == 0; first++) {
        if (rest->index[first] != 0)
            continue;
        depth = 1;
        result = ta__grow(&visits, &capacity, depth, sizeof *visits) != 0
                     ? -1
                     : begin_visit(finding, rest, &visits[0], first, &next_index);
        while (depth > 0 && result == 0) {
            struct visit *visit = &visits[depth - 1];
            uint32_t number = visit->number;
            struct ta__edge edge;
            if (!ta__graph_next(finding->graph, &visit->edges, &edge)) {
                if (rest->low[number] == rest->index[number])
                    close_component(rest, number);
                depth--;
                if (depth > 0 && rest->low[number] < rest->low[visits[depth - 1].number])
                    rest->low[visits[depth - 1].number] = rest->low[number];
                continue;
            }
            if (!ta__bit(rest->set, edge.slot))
                continue;
            uint32_t other = number_of(rest, edge.slot);
            if (rest->index[other] == 0) {
                result = ta__grow(&visits, &capacity, depth + 1, sizeof *visits);
                if (result == 0)
                    result = begin_visit(finding, rest, &visits[depth++], other, &next_index);
            } else if (rest->component[other] == UINT32_MAX && rest->index[other] < rest->low[number]) {
                rest->low[number] = rest->index[other];
            }
        }
    }
    free(visits);
    return result;
}

/* Circles that no other circle reaches stand for themselves: by the member of the first trace, so that equal circles
 * count together. */
static int claim_cycles(struct finding *finding, struct rest *rest)
{
    uint8_t *is_reached = ta__new_array((size_t)rest->components + 1, 1);
    uint32_t *chosen = ta__new_array((size_t)rest->components + 1, sizeof *chosen), *size = rest->low;
    int result = is_reached == NULL || chosen == NULL ? -1 : 0;
    memset(size, 0, rest->count * sizeof *size);
    for (uint32_t i = 0; i < rest->count && result == 0; i++) {
        uint32_t component = rest->component[i], rank = ta__graph_rank(finding->graph, rest->slots[i]);
        struct ta__edges edges;
        struct ta__edge edge;
        if (size[component]++ == 0 ||
            trace_of(finding->lost, rank) <
                trace_of(finding->lost, ta__graph_rank(finding->graph, rest->slots[chosen[component]])))
            chosen[component] = i;
        ta__graph_edges(finding->graph, rank, rest->slots[i], &edges);
        while (ta__graph_next(finding->graph, &edges, &edge))
            if (ta__bit(rest->set, edge.slot) && rest->component[number_of(rest, edge.slot)] != component)
                is_reached[rest->component[number_of(rest, edge.slot)]] = 1;
    }
    for (uint32_t i = 0; i < rest->count && result == 0; i++)
        if (size[rest->component[i]] > 1)
            ta__bit_set(finding->lost->cycles, rest->slots[i]);
    for (uint32_t component = rest->components; component-- > 0 && result == 0;)
        if (!is_reached[component])
            result =
                claim(finding, rest->slots[chosen[component]], size[component] > 1 ? TA__LOSS_CYCLE : TA__LOSS_PLAIN);
    free(is_reached);
    free(chosen);
    return result;
}

int ta__lost_find(struct ta__lost_blocks *lost, const struct ta__block_graph *graph, uint32_t trace_count)
{
    struct finding finding = {.lost = lost, .graph = graph};
    struct rest rest = {0};
    size_t words = ta__bit_words(graph);
    *lost = (struct ta__lost_blocks){.graph = graph, .trace_count = trace_count};
    for (int i = 0; i < TA__LOSSES; i++)
        lost->figures[i] = ta__new_array((size_t)trace_count + 1, sizeof *lost->figures[i]);
    lost->cycles = ta__new_array(words, sizeof *lost->cycles);
    finding.pointed = ta__new_array(words, sizeof *finding.pointed);
    finding.claimed = ta__new_array(words, sizeof *finding.claimed);
    int result = lost->figures[0] == NULL || lost->figures[1] == NULL || lost->cycles == NULL ||
                         finding.pointed == NULL || finding.claimed == NULL || find_lost(&finding) != 0 ||
                         claim_heads(&finding) != 0 || make_rest(&finding, &rest) != 0 ||
                         find_components(&finding, &rest) != 0 || claim_cycles(&finding, &rest) != 0
                     ? -1
                     : 0;
    free_rest(&rest);
    free(finding.all);
    free(finding.pointed);
    free(finding.claimed);
    free(finding.stack.slots);
    return result;
}

void ta__lost_free(struct ta__lost_blocks *lost)
{
    for (int i = 0; i < TA__LOSSES; i++)
        free(lost->figures[i]);
    free(lost->cycles);
    memset(lost, 0, sizeof *lost);
}

/* ---- a way around a circle --------------------------------------------------------------------------------------- */

struct step {
    uint32_t slot, from; /* from: the step that led here */
};

/* Step by step in all directions, so that the way is a shortest one. Large circles are given up. */
size_t ta__lost_cycle(const struct ta__lost_blocks *lost, uint32_t start, uint32_t *slots, size_t max)
{
    enum { STEPS_MOST = 100000 };
    struct step *steps = NULL;
    size_t count = 0, capacity = 0, length = 0;
    uint64_t *met = ta__new_array(ta__bit_words(lost->graph), sizeof *met);
    if (met == NULL || ta__grow(&steps, &capacity, 1, sizeof *steps) != 0) {
        free(met);
        return 0;
    }
    steps[count++] = (struct step){start, UINT32_MAX};
    for (size_t at = 0; at < count && length == 0 && count < STEPS_MOST; at++) {
        struct ta__edges edges;
        struct ta__edge edge;
        ta__graph_edges(lost->graph, ta__graph_rank(lost->graph, steps[at].slot), steps[at].slot, &edges);
        while (length == 0 && ta__graph_next(lost->graph, &edges, &edge)) {
            if (edge.slot == start) {
                for (size_t i = at; i != UINT32_MAX; i = steps[i].from)
                    length++;
                size_t place = length;
                for (size_t i = at; i != UINT32_MAX; i = steps[i].from)
                    if (--place < max)
                        slots[place] = steps[i].slot;
            } else if (!ta__bit(met, edge.slot) && ta__bit(lost->cycles, edge.slot)) {
                ta__bit_set(met, edge.slot);
                if (ta__grow(&steps, &capacity, count + 1, sizeof *steps) != 0)
                    break;
                steps[count++] = (struct step){edge.slot, (uint32_t)at};
            }
        }
    }
    free(steps);
    free(met);
    return length;
}
