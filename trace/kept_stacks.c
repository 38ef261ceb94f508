/* kept_stacks.c: which stacks are kept, and how several that begin alike are told apart. See kept_stacks.h. */
#include "trace/kept_stacks.h"

#include <string.h>

#include "trace/capture.h"

enum { ERA_STEP = TA__KEPT_NODES };

TA_COLD void ta__kept_forget(struct ta__near *near)
{
    if (near->nodes_used > 1) /* so that a new thread's tables stay untouched */
        memset(near->heads, 0, sizeof near->heads);
    memset(near->sites, 0, sizeof near->sites);
    near->nodes_used = 1;
    near->chunks_used = 0;
    near->branches_used = 0;
    near->era += ERA_STEP;
    if (near->era == 0) {
        memset(near->branches, 0, sizeof near->branches);
        near->era = ERA_STEP;
    }
}

TA_INLINE int is_branch(const struct ta__near *near, const struct ta__kept_branch *branch)
{
    return branch->fork / ERA_STEP == near->era / ERA_STEP;
}

/* The entry of a fork's branch, or the empty one where it would be. */
TA_INLINE struct ta__kept_branch *branch_at(struct ta__near *near, uint32_t fork, uint64_t word)
{
    uint32_t key = near->era | fork;
    uint64_t at = (word ^ key) * TA__GOLDEN >> 32;
    for (;; at++) {
        struct ta__kept_branch *branch = &near->branches[at & (TA__KEPT_BRANCHES - 1)];
        if ((branch->word == word && branch->fork == key) || !is_branch(near, branch))
            return branch;
    }
}

/* Where a node's words begin. */
TA_INLINE const struct ta__kept_chunk *words_at(const struct ta__kept_node *node)
{
    const char *begin = node->chunks_end + node->chunks_begin;
    return (const struct ta__kept_chunk *)(const void *)(node->is_odd ? begin + sizeof(struct ta__kept_chunk) : begin);
}

TA_INLINE uint64_t value_of(const struct ta__kept_chunk *words, uint32_t word)
{
    return words[word / TA__KEPT_CHUNK].values[word % TA__KEPT_CHUNK];
}

TA_INLINE uint32_t offset_of(const struct ta__kept_chunk *words, uint32_t word)
{
    return words[word / TA__KEPT_CHUNK].offsets[word % TA__KEPT_CHUNK];
}

/* The stack that a node's words lie in, as nodes say it. */
static uint64_t stack_of(const struct ta__thread *self, uint64_t sp)
{
    return sp >= self->own_low && sp < self->own_high ? 0 : self->stack_high;
}

static void make_recent(const struct ta__near *near, struct ta__kept_head *head, const struct ta__kept_node *path)
{
    if (path->stack_high == 0)
        head->recent = (uint32_t)((const char *)path - (const char *)near->nodes);
}

__attribute__((noinline)) TA_READS_STACKS uint32_t ta__kept_find_further(const struct ta__thread *self, uint64_t ip,
                                                                         uint64_t sp, uint64_t fp, uint32_t domain)
{
    struct ta__near *near = self->near;
    struct ta__kept_head *head = &near->heads[ta__kept_head_of(ip, sp)];
    for (uint32_t root = head->root; root != 0; root = near->nodes[root].next) {
        const struct ta__kept_node *path = &near->nodes[root];
        if (!ta__kept_has_registers(path, ip, sp, fp, domain) || path->stack_high != stack_of(self, sp))
            continue;
        while (path->leaf == 0) {
            uint64_t word = *(const uint64_t *)(sp + offset_of(words_at(path), path->fork_at));
            const struct ta__kept_branch *branch = branch_at(near, (uint32_t)(path - near->nodes), word);
            if (!is_branch(near, branch))
                return 0;
            path = &near->nodes[branch->node];
        }
        if (!ta__kept_is_unchanged(path, sp))
            return 0;
        make_recent(near, head, path);
        return path->leaf;
    }
    return 0;
}

/* ---- keeping ---- */

/* Copies the memo's words to where the next path's will be, innermost first, where changes are most likely. Answers
 * the number of chunks, or 0 when this stack cannot be kept. */
static uint32_t copy_words(struct ta__thread *self, uint64_t sp, uint64_t stack_high)
{
    struct ta__kept_chunk *chunks = &self->near->chunks[self->near->chunks_used];
    struct ta__kept_chunk *chunk = chunks;
    uint64_t room = stack_high - sp < UINT32_MAX ? stack_high - sp : UINT32_MAX;
    uint64_t highest = 0;
    const struct ta__slot *first = self->slots;
    const struct ta__slot *slot = first + self->states[self->depth - 1].slot_end;
    for (; slot > first; chunk++)
#pragma GCC unroll 4
        for (int i = 0; i < TA__KEPT_CHUNK; i++) {
            slot -= slot > first; /* the last one once more, to fill the chunk */
            uint64_t offset = (uintptr_t)slot->at - sp;
            highest = offset > highest ? offset : highest;
            chunk->values[i] = slot->value;
            chunk->offsets[i] = (uint32_t)offset;
        }
    return highest < room ? (uint32_t)(chunk - chunks) : 0; /* else it goes on in another stack, or never verifies */
}

static uint32_t words_of(const struct ta__kept_node *node)
{
    return ((uint32_t)-node->chunks_begin / (uint32_t)sizeof(struct ta__kept_chunk) - node->is_odd) * TA__KEPT_CHUNK;
}

TA_INLINE uint32_t least(uint32_t one, uint32_t other)
{
    return one < other ? one : other;
}

/* The first word from `from` on in which two paths differ; `end` when none before it does. */
static uint32_t first_difference(const struct ta__kept_chunk *one, const struct ta__kept_chunk *other, uint32_t from,
                                 uint32_t end)
{
    for (uint32_t i = from; i < end; i++)
        if (value_of(one, i) != value_of(other, i))
            return i;
    return end;
}

static void add_branch(struct ta__near *near, struct ta__kept_branch *branch, uint32_t fork, uint64_t word,
                       uint32_t node)
{
    *branch = (struct ta__kept_branch){.word = word, .fork = near->era | fork, .node = node};
    near->branches_used++;
}

/* Puts path number `index` among those with the same registers, of which `root` is the first node; answers which is
 * afterwards. */
static uint32_t add_to_tree(struct ta__near *near, uint32_t root, uint32_t index)
{
    const struct ta__kept_node *path = &near->nodes[index];
    const struct ta__kept_chunk *words = words_at(path);
    uint32_t count = words_of(path);
    uint32_t differs = 0; /* as far as here they are known to agree */
    uint32_t *link = &root;
    for (;;) {
        uint32_t at = *link;
        const struct ta__kept_node *like = &near->nodes[at]; /* a fork has the words of one of its paths */
        const struct ta__kept_chunk *its = words_at(like);
        uint32_t end = least(count, like->leaf == 0 ? like->fork_at : words_of(like));
        differs = first_difference(words, its, differs, end);
        if (like->leaf == 0 && like->fork_at <= differs && like->fork_at < count) {
            /* They agree as far as this fork: the path takes one of its branches, perhaps a new one. */
            uint64_t word = value_of(words, differs);
            struct ta__kept_branch *branch = branch_at(near, at, word);
            if (!is_branch(near, branch)) {
                add_branch(near, branch, at, word, index);
                return root;
            }
            link = &branch->node;
            continue;
        }
        if (differs >= count || differs >= words_of(like) || offset_of(words, differs) != offset_of(its, differs))
            return root; /* nothing tells them apart: the new one is left out */
        uint32_t number = near->nodes_used++;
        struct ta__kept_node *fork = &near->nodes[number];
        *fork = *like;
        fork->leaf = 0;
        fork->fork_at = differs & 0x7FFF;
        *link = number;
        uint64_t one = value_of(its, differs), other = value_of(words, differs);
        add_branch(near, branch_at(near, number, one), number, one, at);
        add_branch(near, branch_at(near, number, other), number, other, index);
        return root;
    }
}

TA_COLD void ta__kept_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp, uint64_t stack_high,
                           uint32_t domain)
{
    struct ta__near *near = self->near;
    const struct ta__state *top = &self->states[self->depth - 1];
    uint32_t leaf = top->leaf;
    if (top->slot_end == 0 || top->slot_end > TA__KEPT_WORDS_EACH || leaf == 0 || top->leaf_domain != domain)
        return;
    /* A path may bring a fork and two branches. */
    if (near->chunks_used + top->slot_end / TA__KEPT_CHUNK + 1 > TA__KEPT_CHUNKS ||
        near->nodes_used + 2 > TA__KEPT_NODES || near->branches_used + 2 > TA__KEPT_BRANCHES / 4 * 3)
        ta__kept_forget(near);
    uint32_t count = copy_words(self, sp, stack_high);
    if (count == 0)
        return;
    uint32_t index = near->nodes_used++;
    uint64_t fp_mask = (top->flags & TA__STATE_NEEDS_FP) != 0 ? UINT64_MAX : 0;
    near->nodes[index] =
        (struct ta__kept_node){.ip = ip,
                               .sp = sp | (domain != 0),
                               .stack_high = stack_of(self, sp) != 0 ? stack_high : 0,
                               .fp = fp,
                               .fp_mask = fp_mask,
                               .domain = domain,
                               .leaf = leaf,
                               .chunks_begin = -(int32_t)((count + count % 2) * sizeof near->chunks[0]),
                               .is_odd = count & 1,
                               .chunks_end = (const char *)&near->chunks[near->chunks_used + count]};
    near->chunks_used += count;
    struct ta__kept_head *head = &near->heads[ta__kept_head_of(ip, sp)];
    make_recent(near, head, &near->nodes[index]);
    uint16_t *link = &head->root;
    while (*link != 0 &&
           !(ta__kept_has_registers(&near->nodes[*link], ip, sp, fp, domain) &&
             near->nodes[*link].stack_high == near->nodes[index].stack_high && near->nodes[*link].fp_mask == fp_mask))
        link = &near->nodes[*link].next;
    if (*link == 0) {
        *link = (uint16_t)index;
        return;
    }
    uint16_t next = near->nodes[*link].next;
    *link = (uint16_t)add_to_tree(near, *link, index);
    near->nodes[*link].next = next;
}
