/* block_graph.c: see block_graph.h. */
#include "analysis/image/block_graph.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "tracealloc/image.h"

#define LOW_48 ((UINT64_C(1) << 48) - 1)

int ta__graph_open(struct ta__block_graph *graph, const struct ta__heap_pages *pages, unsigned flags, int keeps_places)
{
    size_t words = (size_t)pages->slot_count / 64 + 1;
    *graph = (struct ta__block_graph){.pages = pages,
                                      .keeps_places = keeps_places,
                                      .pointer_mask = (flags & TA_IMAGE_TAGGED) != 0 ? LOW_48 : UINT64_MAX,
                                      .step = (flags & TA_IMAGE_UNALIGNED) != 0 ? 1 : 8};
    graph->live = ta__new_array(words, sizeof *graph->live);
    graph->rooted = ta__new_array(words, sizeof *graph->rooted);
    graph->rooted_first = ta__new_array(words, sizeof *graph->rooted_first);
    graph->page_offsets = ta__new_array(pages->count + 1, sizeof *graph->page_offsets);
    return graph->live == NULL || graph->rooted == NULL || graph->rooted_first == NULL || graph->page_offsets == NULL
               ? -1
               : 0;
}

void ta__graph_free(struct ta__block_graph *graph)
{
    free(graph->live);
    free(graph->rooted);
    free(graph->rooted_first);
    free(graph->rank_at);
    free(graph->page_offsets);
    free(graph->traces);
    free(graph->sizes);
    free(graph->odd);
    free(graph->edges);
    free(graph->edges_at);
    free(graph->roots);
    memset(graph, 0, sizeof *graph);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* The slot of an address that lies in a page; what points to a header points to no block. Whether it is the first of the
 * user's bytes is known of those that begin right behind the header; of others (aligned ones) when they are asked for. */
TA_INLINE uint32_t slot_in(const struct ta__heap_page *page, uint64_t address, int *is_inner)
{
    uint64_t distance = address - page->start, slot = 0;
    if (page->slots > 1)
        slot = (uint64_t)(((unsigned __int128)distance * page->reciprocal) >> 64);
    uint64_t offset = distance - slot * page->stride;
    *is_inner = offset != page->header;
    return offset < page->header ? UINT32_MAX : page->first_slot + (uint32_t)slot;
}

uint32_t ta__graph_slot(const struct ta__block_graph *graph, uint64_t address)
{
    const struct ta__heap_page *page = ta__heap_page_at(graph->pages, address & graph->pointer_mask);
    int is_inner;
    return page != NULL ? slot_in(page, address & graph->pointer_mask, &is_inner) : UINT32_MAX;
}

/* ---- filling it -------------------------------------------------------------------------------------------------- */

static int put_number(struct ta__block_graph *graph, uint64_t number)
{
    if (graph->edge_capacity - graph->edge_bytes < 16 &&
        ta__grow(&graph->edges, &graph->edge_capacity, graph->edge_bytes + 16, 1) != 0)
        return -1;
    for (; number >= 0x80; number >>= 7)
        graph->edges[graph->edge_bytes++] = (uint8_t)(number | 0x80);
    graph->edges[graph->edge_bytes++] = (uint8_t)number;
    return 0;
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* What a block's pointers are written after: the slot of the one before, and its place. */
struct pen {
    uint32_t slot;
    uint64_t place;
    uint64_t count;
    int is_inner;
};

static int put_edge(struct ta__block_graph *graph, struct pen *pen, uint32_t slot, int is_inner, uint64_t place)
{
    if (slot == pen->slot && is_inner == pen->is_inner && pen->count > 0 && !graph->keeps_places)
        return 0; /* the same block once more */
    pen->is_inner = is_inner;
    if (put_number(graph, zigzag((int64_t)slot - (int64_t)pen->slot) << 1 | (uint64_t)is_inner) != 0 ||
        (graph->keeps_places && put_number(graph, place - pen->place) != 0))
        return -1;
    pen->slot = slot;
    pen->place = place;
    pen->count++;
    return 0;
}

/* Every word that leads into a page. `place`: of the first byte in its block. */
static int scan(struct ta__block_graph *graph, const uint8_t *bytes, size_t length, uint64_t place, struct pen *pen)
{
    const struct ta__heap_pages *pages = graph->pages;
    uint64_t low = pages->low, span = pages->high - pages->low, mask = graph->pointer_mask;
    for (size_t i = 0; i + 8 <= length; i += graph->step) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        word &= mask;
        if (TA_LIKELY(word - low >= span))
            continue;
        const struct ta__heap_page *page = ta__heap_page_at(pages, word);
        int is_inner = 0;
        uint32_t slot =
            page != NULL && (page->flags & TA__HEAP_PAGE_OWN) == 0 ? slot_in(page, word, &is_inner) : UINT32_MAX;
        if (slot != UINT32_MAX && put_edge(graph, pen, slot, is_inner, place + i) != 0)
            return -1;
    }
    return 0;
}

/* A block that is not at hand is read piece by piece; pieces overlap, so that no pointer lies across a border. */
static int scan_far(struct ta__block_graph *graph, struct ta__target *target, uint64_t address, uint64_t size,
                    struct pen *pen)
{
    enum { AT_ONCE = 1 << 20 };
    uint64_t first = (address + 7) & ~UINT64_C(7);
    if (graph->step == 1)
        first = address;
    uint8_t *bytes = ta__new_array(AT_ONCE + 8, 1);
    int result = bytes == NULL ? -1 : 0;
    for (uint64_t at = first; at < address + size && result == 0; at += AT_ONCE) {
        uint64_t left = address + size - at;
        size_t length =
            left < AT_ONCE + (graph->step == 1 ? 7u : 0u) ? (size_t)left : AT_ONCE + (graph->step == 1 ? 7u : 0u);
        if (ta__target_read_sparse(target, at, bytes, length) == 0)
            result = scan(graph, bytes, length, at - address, pen);
    }
    free(bytes);
    return result;
}

static int add_rank(struct ta__block_graph *graph, const struct ta__page_block *block, uint32_t trace,
                    uint32_t usual_offset)
{
    uint32_t rank = graph->count;
    if (rank == UINT32_MAX - 1)
        return ta__fail("more than four thousand million blocks");
    if (rank == graph->rank_capacity) {
        size_t trace_capacity = rank, size_capacity = rank;
        if (ta__grow(&graph->traces, &trace_capacity, (size_t)rank + 1, sizeof *graph->traces) != 0 ||
            ta__grow(&graph->sizes, &size_capacity, (size_t)rank + 1, sizeof *graph->sizes) != 0)
            return -1;
        graph->rank_capacity = trace_capacity < size_capacity ? trace_capacity : size_capacity;
    }
    graph->traces[rank] = trace;
    graph->sizes[rank] = block->size < UINT16_MAX ? (uint16_t)block->size : UINT16_MAX;
    if (block->offset != usual_offset || block->size >= UINT16_MAX) {
        if (ta__grow(&graph->odd, &graph->odd_capacity, graph->odd_count + 1, sizeof *graph->odd) != 0)
            return -1;
        graph->odd[graph->odd_count++] = (struct ta__odd_block){rank, block->offset, block->size};
    }
    if (rank % TA__EDGE_STEP == 0) {
        if (ta__grow(&graph->edges_at, &graph->edges_at_capacity, rank / TA__EDGE_STEP + 1, sizeof *graph->edges_at) !=
            0)
            return -1;
        graph->edges_at[rank / TA__EDGE_STEP] = graph->edge_bytes;
    }
    graph->count++;
    return 0;
}

/* The number of pointers comes before them: most blocks have fewer than 128, for the others the list moves up. */
static int close_list(struct ta__block_graph *graph, size_t begin, uint64_t count)
{
    uint8_t head[10];
    size_t length = 0;
    graph->edge_count += count;
    for (; count >= 0x80; count >>= 7)
        head[length++] = (uint8_t)(count | 0x80);
    head[length++] = (uint8_t)count;
    if (length > 1) {
        for (size_t i = 1; i < length; i++)
            if (put_number(graph, 0) != 0)
                return -1;
        memmove(graph->edges + begin + length, graph->edges + begin + 1, graph->edge_bytes - begin - length);
    }
    memcpy(graph->edges + begin, head, length);
    return 0;
}

int ta__graph_add_page(struct ta__block_graph *graph, struct ta__target *target, size_t page_number,
                       const struct ta__page_block *blocks, const uint32_t *traces, uint32_t count,
                       const uint8_t *bytes)
{
    const struct ta__heap_page *page = &graph->pages->items[page_number];
    uint32_t usual = (page->flags & TA__HEAP_PAGE_SINGLE) != 0 ? (uint32_t)page->user_offset : page->header;
    graph->page_offsets[page_number] = usual;
    for (uint32_t i = 0; i < count; i++) {
        const struct ta__page_block *block = &blocks[i];
        uint32_t slot = page->first_slot + block->slot;
        size_t begin = graph->edge_bytes;
        graph->live[slot / 64] |= UINT64_C(1) << slot % 64;
        if (add_rank(graph, block, traces[i], usual) != 0 || put_number(graph, 0) != 0)
            return -1;
        struct pen pen = {.slot = slot};
        uint64_t room = page->stride - block->offset, size = block->size < room ? block->size : room;
        int result =
            bytes != NULL
                ? scan(graph, bytes + block->slot * page->stride + block->offset, (size_t)size, 0, &pen)
                : scan_far(graph, target, page->start + block->slot * page->stride + block->offset, size, &pen);
        if (result != 0 || close_list(graph, begin, pen.count) != 0)
            return -1;
    }
    return 0;
}

static int add_root(struct ta__block_graph *graph, uint64_t value, uint32_t thread, uint64_t place)
{
    const struct ta__heap_page *page = ta__heap_page_at(graph->pages, value & graph->pointer_mask);
    int is_inner = 1;
    uint32_t slot = page != NULL ? slot_in(page, value & graph->pointer_mask, &is_inner) : UINT32_MAX;
    if (slot != UINT32_MAX && !is_inner)
        graph->rooted_first[slot / 64] |= UINT64_C(1) << slot % 64;
    if (slot == UINT32_MAX ||
        ((graph->rooted[slot / 64] >> slot % 64 & 1) != 0 && !(graph->keeps_places && slot == graph->asked_slot)))
        return 0;
    graph->rooted[slot / 64] |= UINT64_C(1) << slot % 64;
    if (!graph->keeps_places)
        return 0;
    if (ta__grow(&graph->roots, &graph->root_capacity, graph->root_count + 1, sizeof *graph->roots) != 0)
        return -1;
    graph->roots[graph->root_count++] = (struct ta__root){slot, thread, place};
    return 0;
}

int ta__graph_add_roots(struct ta__block_graph *graph, uint64_t address, const uint8_t *bytes, size_t length)
{
    uint64_t low = graph->pages->low, span = graph->pages->high - graph->pages->low, mask = graph->pointer_mask;
    for (size_t i = graph->step == 8 ? (size_t)(-address & 7) : 0; i + 8 <= length; i += graph->step) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        if (TA_UNLIKELY((word & mask) - low < span) && add_root(graph, word, 0, address + i) != 0)
            return -1;
    }
    return 0;
}

int ta__graph_add_register(struct ta__block_graph *graph, uint32_t thread, uint32_t number, uint64_t value)
{
    return add_root(graph, value, thread + 1, number);
}

uint32_t *ta__graph_new_ranks(const struct ta__block_graph *graph, const uint64_t *bits)
{
    size_t steps = (size_t)graph->pages->slot_count / TA__RANK_STEP + 2;
    uint32_t rank = 0, *rank_at = ta__new_array(steps, sizeof *rank_at);
    for (size_t word = 0; rank_at != NULL && word <= graph->pages->slot_count / 64; word++) {
        if (word % (TA__RANK_STEP / 64) == 0)
            rank_at[word / (TA__RANK_STEP / 64)] = rank;
        rank += (uint32_t)__builtin_popcountll(bits[word]);
    }
    if (rank_at != NULL)
        rank_at[steps - 1] = rank;
    return rank_at;
}

int ta__graph_finish(struct ta__block_graph *graph)
{
    graph->rank_at = ta__graph_new_ranks(graph, graph->live);
    return graph->rank_at == NULL ? -1 : 0;
}

/* ---- asking it --------------------------------------------------------------------------------------------------- */

static const struct ta__odd_block *odd_of(const struct ta__block_graph *graph, uint32_t rank)
{
    size_t low = 0, high = graph->odd_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (graph->odd[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < graph->odd_count && graph->odd[low].rank == rank ? &graph->odd[low] : NULL;
}

int ta__graph_is_odd(const struct ta__block_graph *graph, uint32_t slot)
{
    const struct ta__heap_page *page = ta__heap_page_of_slot(graph->pages, slot);
    const struct ta__odd_block *odd = odd_of(graph, ta__graph_rank(graph, slot));
    return page != NULL &&
           (odd != NULL ? odd->offset : graph->page_offsets[page - graph->pages->items]) != page->header;
}

uint64_t ta__graph_size(const struct ta__block_graph *graph, uint32_t rank)
{
    if (graph->sizes[rank] != UINT16_MAX)
        return graph->sizes[rank];
    const struct ta__odd_block *odd = odd_of(graph, rank);
    return odd != NULL ? odd->size : UINT16_MAX;
}

uint64_t ta__graph_address(const struct ta__block_graph *graph, uint32_t slot)
{
    const struct ta__heap_page *page = ta__heap_page_of_slot(graph->pages, slot);
    if (page == NULL)
        return 0;
    uint64_t start = page->start + (slot - page->first_slot) * page->stride;
    const struct ta__odd_block *odd =
        ta__graph_is_live(graph, slot) ? odd_of(graph, ta__graph_rank(graph, slot)) : NULL;
    return start + (odd != NULL ? odd->offset : graph->page_offsets[page - graph->pages->items]);
}

uint32_t ta__graph_slot_of_rank(const struct ta__block_graph *graph, uint32_t rank)
{
    size_t low = 0, high = (size_t)graph->pages->slot_count / TA__RANK_STEP + 1;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (graph->rank_at[middle] <= rank)
            low = middle;
        else
            high = middle;
    }
    uint32_t left = rank - graph->rank_at[low];
    for (size_t word = low * (TA__RANK_STEP / 64); word <= graph->pages->slot_count / 64; word++) {
        uint64_t bits = graph->live[word];
        uint32_t here = (uint32_t)__builtin_popcountll(bits);
        if (left >= here) {
            left -= here;
            continue;
        }
        for (; left > 0; left--)
            bits &= bits - 1;
        return (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
    }
    return UINT32_MAX;
}

TA_INLINE uint64_t get_number(const uint8_t **at, const uint8_t *end)
{
    uint64_t number = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            break;
    }
    return number;
}

/* Lists before this one are passed over: a byte below 0x80 ends a number. */
static const uint8_t *pass_over(const uint8_t *at, const uint8_t *end, uint64_t numbers)
{
    for (; numbers > 0 && at < end; at++)
        numbers -= *at < 0x80;
    return at;
}

void ta__graph_edges(const struct ta__block_graph *graph, uint32_t rank, uint32_t slot, struct ta__edges *edges)
{
    const uint8_t *at = graph->edges + graph->edges_at[rank / TA__EDGE_STEP], *end = graph->edges + graph->edge_bytes;
    for (uint32_t i = rank % TA__EDGE_STEP; i > 0; i--) {
        uint64_t count = get_number(&at, end);
        at = pass_over(at, end, graph->keeps_places ? count * 2 : count);
    }
    uint64_t count = get_number(&at, end);
    *edges = (struct ta__edges){at, end, count, slot, 0, graph->keeps_places};
}

int ta__graph_next(const struct ta__block_graph *graph, struct ta__edges *edges, struct ta__edge *edge)
{
    while (edges->left > 0 && edges->at < edges->end) {
        uint64_t difference = get_number(&edges->at, edges->end);
        edges->left--;
        int is_inner = difference & 1;
        difference >>= 1;
        edges->slot += (uint32_t)(difference >> 1 ^ -(difference & 1));
        if (edges->keeps_places)
            edges->offset += get_number(&edges->at, edges->end);
        if (edges->slot >= graph->pages->slot_count || !ta__graph_is_live(graph, edges->slot) ||
            (is_inner && graph->passes_inner && !ta__graph_is_odd(graph, edges->slot)))
            continue;
        *edge = (struct ta__edge){edges->slot, edges->offset, is_inner};
        return 1;
    }
    return 0;
}
