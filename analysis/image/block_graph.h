/* block_graph.h: all live blocks of a process and the pointers between them, in as few bytes as possible.
 *
 * A block has two numbers: its slot, which an address leads to by arithmetic; and its rank among live blocks, which arrays
 * are indexed by. A bit for each slot says whether it is live; ranks are counted from it.
 *
 *     address ─► page ─► slot ──bits before it──► rank ─► trace, size
 *                                                  └──► its pointers: slots, as differences in bytes of 7 bits
 *
 * Pointers are written down as memory goes by, before it is known which slots are live; whoever follows them asks. */
#ifndef TA_ANALYSIS_IMAGE_BLOCK_GRAPH_H
#define TA_ANALYSIS_IMAGE_BLOCK_GRAPH_H

#include "analysis/image/page_blocks.h"

enum { TA__RANK_STEP = 512, TA__EDGE_STEP = 8 };

/* What is not as usual, by rank. */
struct ta__odd_block {
    uint32_t rank, offset; /* user's bytes begin so far into the slot */
    uint64_t size;
};

/* A pointer from outside of all blocks. */
struct ta__root {
    uint32_t slot;
    uint32_t thread;  /* registers: thread + 1; 0 = memory */
    uint64_t address; /* where it stands; registers: its number */
};

struct ta__block_graph {
    const struct ta__heap_pages *pages;
    uint64_t *live;         /* a bit for each slot */
    uint32_t *rank_at;      /* of every TA__RANK_STEP-th slot */
    uint32_t *page_offsets; /* by page: the usual offset of the user's bytes */
    uint32_t count;
    uint32_t *traces; /* by rank */
    uint16_t *sizes;  /* by rank; UINT16_MAX: it is in `odd` */
    size_t rank_capacity;
    struct ta__odd_block *odd; /* ascending by rank */
    size_t odd_count, odd_capacity;
    uint8_t *edges;
    size_t edge_bytes, edge_capacity;
    uint64_t *edges_at; /* of every TA__EDGE_STEP-th rank */
    size_t edges_at_capacity;
    uint64_t edge_count;
    uint64_t *rooted;       /* a bit for each slot: something outside points to it */
    uint64_t *rooted_first; /* the same: to the first of the user's bytes */
    struct ta__root *roots; /* where wanted: one for each slot that has one */
    size_t root_count, root_capacity;
    uint32_t asked_slot; /* all roots that lead there are kept */
    int keeps_places;    /* edges carry the offset of the pointer in its block, and roots are kept */
    uint64_t pointer_mask;
    unsigned step;    /* between places where pointers may stand */
    int passes_inner; /* pointers into the middle of blocks are passed over, as if they were none */
};

struct ta__edge {
    uint32_t slot;
    uint64_t offset; /* of the pointer in its block; 0 unless places are kept */
    int is_inner;    /* it leads into the middle of the other */
};

/* 0, or -1 with the error set. `pages` must outlive it. */
TA_NODISCARD int ta__graph_open(struct ta__block_graph *graph, const struct ta__heap_pages *pages, unsigned flags,
                                int keeps_places);
void ta__graph_free(struct ta__block_graph *graph);

/* The blocks of a page, with the contents of each: pages in ascending order. `bytes`: the page from its first slot on, or
 * NULL, then each block is read from the target. */
TA_NODISCARD int ta__graph_add_page(struct ta__block_graph *graph, struct ta__target *target, size_t page_number,
                                    const struct ta__page_block *blocks, const uint32_t *traces, uint32_t count,
                                    const uint8_t *bytes);
/* Memory that is no block: what it points to is reachable. */
TA_NODISCARD int ta__graph_add_roots(struct ta__block_graph *graph, uint64_t address, const uint8_t *bytes,
                                     size_t length);
TA_NODISCARD int ta__graph_add_register(struct ta__block_graph *graph, uint32_t thread, uint32_t number,
                                        uint64_t value);
/* After the last page. */
TA_NODISCARD int ta__graph_finish(struct ta__block_graph *graph);

/* The slot that an address lies in, whatever is there: UINT32_MAX = none. */
uint32_t ta__graph_slot(const struct ta__block_graph *graph, uint64_t address);
TA_INLINE int ta__graph_is_live(const struct ta__block_graph *graph, uint32_t slot)
{
    return (graph->live[slot / 64] >> slot % 64 & 1) != 0;
}
/* Ranks among the slots of any set of bits. A new array, for free(): of every TA__RANK_STEP-th slot, and, last, how many
 * there are; NULL with the error set. */
uint32_t *ta__graph_new_ranks(const struct ta__block_graph *graph, const uint64_t *bits);
TA_INLINE uint32_t ta__rank_in(const uint64_t *bits, const uint32_t *rank_at, uint32_t slot)
{
    uint32_t word = slot / 64, rank = rank_at[slot / TA__RANK_STEP];
    for (uint32_t i = slot / TA__RANK_STEP * (TA__RANK_STEP / 64); i < word; i++)
        rank += (uint32_t)__builtin_popcountll(bits[i]);
    return rank + (uint32_t)__builtin_popcountll(bits[word] & ((UINT64_C(1) << slot % 64) - 1));
}
/* Of a live slot. */
TA_INLINE uint32_t ta__graph_rank(const struct ta__block_graph *graph, uint32_t slot)
{
    return ta__rank_in(graph->live, graph->rank_at, slot);
}
uint32_t ta__graph_slot_of_rank(const struct ta__block_graph *graph, uint32_t rank);
/* A live block that does not begin where most do: pointers to its beginning look like inner ones. */
int ta__graph_is_odd(const struct ta__block_graph *graph, uint32_t slot);
uint64_t ta__graph_size(const struct ta__block_graph *graph, uint32_t rank);
/* Of the user's bytes. */
uint64_t ta__graph_address(const struct ta__block_graph *graph, uint32_t slot);

/* The pointers of a block, one after another. */
struct ta__edges {
    const uint8_t *at, *end;
    uint64_t left;
    uint32_t slot;
    uint64_t offset;
    int keeps_places;
};
void ta__graph_edges(const struct ta__block_graph *graph, uint32_t rank, uint32_t slot, struct ta__edges *edges);
/* Walks go from block to block anywhere in memory: what is asked for in time is there when its turn comes. */
enum { TA__EXPECT_SOON = 8, TA__EXPECT_LATER = 16 };
TA_INLINE void ta__graph_expect(const struct ta__block_graph *graph, uint32_t soon, uint32_t later)
{
    __builtin_prefetch(&graph->edges_at[ta__graph_rank(graph, later) / TA__EDGE_STEP]);
    __builtin_prefetch(graph->edges + graph->edges_at[ta__graph_rank(graph, soon) / TA__EDGE_STEP]);
}
/* 0 after the last. Slots that are not live are passed over. */
int ta__graph_next(const struct ta__block_graph *graph, struct ta__edges *edges, struct ta__edge *edge);

#endif
