/* paths.c: which stacks are kept, and how several that begin alike are told apart. See paths.h. */
#include "trace/paths.h"

#include <string.h>

enum { ERA_STEP = TA__PATH_NODES };

TA_COLD void ta__paths_forget(struct ta__near *near)
{
    if (near->nodes_used > 1) /* a new thread's tables stay untouched */
        memset(near->heads, 0, sizeof near->heads);
    near->nodes_used = 1;
    near->words_used = 0;
    near->branches_used = 0;
    near->era += ERA_STEP;
    if (near->era == 0) {
        memset(near->branches, 0, sizeof near->branches);
        near->era = ERA_STEP;
    }
}

TA_INLINE int is_branch(const struct ta__near *near, const struct ta__path_branch *branch)
{
    return branch->fork / ERA_STEP == near->era / ERA_STEP;
}

/* The entry of a fork's branch, or the empty one where it would be. */
TA_INLINE struct ta__path_branch *branch_at(struct ta__near *near, uint32_t fork, uint64_t word)
{
    uint32_t key = near->era | fork;
    uint64_t at = (word ^ key) * TA__GOLDEN >> 32;
    for (;; at++) {
        struct ta__path_branch *branch = &near->branches[at & (TA__PATH_BRANCHES - 1)];
        if ((branch->word == word && branch->fork == key) || !is_branch(near, branch))
            return branch;
    }
}

__attribute__((noinline)) TA_READS_STACKS uint32_t ta__path_find_further(const struct ta__thread *self,
                                                                         struct ta__path_head *head, uint64_t ip,
                                                                         uint64_t sp, uint64_t fp, uint32_t domain)
{
    struct ta__near *near = self->near;
    for (uint32_t root = head->root; root != 0; root = near->nodes[root].next) {
        const struct ta__path_node *path = &near->nodes[root];
        if (!ta__path_has_registers(path, self, ip, sp, fp, domain))
            continue;
        while (path->leaf == 0) {
            uint64_t word = *(const uint64_t *)(sp + near->offsets[path->first + path->fork_at]);
            const struct ta__path_branch *branch = branch_at(near, (uint32_t)(path - near->nodes), word);
            if (!is_branch(near, branch))
                return 0;
            path = &near->nodes[branch->node];
        }
        if (!ta__path_is_unchanged(near, path, sp))
            return 0;
        head->recent = (uint16_t)(path - near->nodes);
        return path->leaf;
    }
    return 0;
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

/* Copies the memo's words to where the next path's will be, innermost first, where changes are most likely. Answers
 * their number, or 0 when this stack cannot be kept. */
static uint32_t copy_words(struct ta__thread *self, uint64_t sp, uint64_t stack_high)
{
    struct ta__near *near = self->near;
    uint64_t *values = &near->values[near->words_used];
    uint32_t *offsets = &near->offsets[near->words_used];
    uint32_t count = self->states[self->depth - 1].slot_end;
    uint64_t room = stack_high - sp < UINT32_MAX ? stack_high - sp : UINT32_MAX;
    uint64_t highest = 0;
    const struct ta__slot *slot = &self->slots[count];
    for (uint32_t i = 0; i < count; i++) {
        slot--;
        uint64_t offset = (uintptr_t)slot->at - sp;
        highest = offset > highest ? offset : highest;
        values[i] = slot->value;
        offsets[i] = (uint32_t)offset;
    }
    if (highest >= room)
        return 0; /* it goes on in another stack, or never verifies */
    for (; count % 4 != 0; count++) {
        values[count] = values[count - 1];
        offsets[count] = offsets[count - 1];
    }
    return count;
}

/* The first word in which two paths differ; their number when none does. */
static uint32_t first_difference(const struct ta__near *near, const struct ta__path_node *one,
                                 const struct ta__path_node *other)
{
    uint32_t count = one->count < other->count ? one->count : other->count;
    for (uint32_t i = 0; i < count; i++)
        if (near->values[one->first + i] != near->values[other->first + i])
            return i;
    return count;
}

static void add_branch(struct ta__near *near, uint32_t fork, uint64_t word, uint32_t node)
{
    *branch_at(near, fork, word) = (struct ta__path_branch){.word = word, .fork = near->era | fork, .node = node};
    near->branches_used++;
}

/* Puts path number `index` among those with the same registers, of which `root` is the first node; answers which is
 * afterwards. */
static uint32_t add_to_tree(struct ta__near *near, uint32_t root, uint32_t index)
{
    const struct ta__path_node *path = &near->nodes[index];
    uint32_t *link = &root;
    for (;;) {
        uint32_t at = *link;
        const struct ta__path_node *like = &near->nodes[at]; /* a fork has the words of one of its paths */
        uint32_t differs = first_difference(near, path, like);
        if (like->leaf == 0 && like->fork_at <= differs) {
            /* They agree as far as this fork: the path takes one of its branches, perhaps a new one. */
            uint64_t word = near->values[path->first + like->fork_at];
            struct ta__path_branch *branch = branch_at(near, at, word);
            if (!is_branch(near, branch)) {
                add_branch(near, at, word, index);
                return root;
            }
            link = &branch->node;
            continue;
        }
        if (differs >= path->count || differs >= like->count ||
            near->offsets[path->first + differs] != near->offsets[like->first + differs])
            return root; /* nothing tells them apart: this one is not among them */
        uint32_t number = near->nodes_used++;
        struct ta__path_node *fork = &near->nodes[number];
        *fork = *like;
        fork->leaf = 0;
        fork->fork_at = differs;
        *link = number;
        add_branch(near, number, near->values[like->first + differs], at);
        add_branch(near, number, near->values[path->first + differs], index);
        return root;
    }
}

TA_COLD void ta__path_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp, uint64_t stack_high,
                           uint32_t domain)
{
    struct ta__near *near = self->near;
    const struct ta__state *top = &self->states[self->depth - 1];
    uint32_t leaf = top->leaf;
    if (top->slot_end == 0 || top->slot_end > TA__PATH_WORDS_EACH || leaf == 0 || top->leaf_domain != domain)
        return;
    /* A path may bring a fork and two branches. */
    if (near->words_used + top->slot_end + 3 > TA__PATH_WORDS || near->nodes_used + 2 > TA__PATH_NODES ||
        near->branches_used + 2 > TA__PATH_BRANCHES / 4 * 3)
        ta__paths_forget(near);
    uint32_t count = copy_words(self, sp, stack_high);
    if (count == 0)
        return;
    uint32_t index = near->nodes_used++;
    uint64_t fp_mask = (top->flags & TA__STATE_NEEDS_FP) != 0 ? UINT64_MAX : 0;
    near->nodes[index] = (struct ta__path_node){.ip = ip,
                                                .sp = sp,
                                                .stack_high = stack_high,
                                                .fp = fp,
                                                .fp_mask = fp_mask,
                                                .domain = domain,
                                                .leaf = leaf,
                                                .first = near->words_used,
                                                .count = count};
    near->words_used += count;
    struct ta__path_head *head = &near->heads[ta__path_head_of(ip, sp)];
    head->recent = (uint16_t)index;
    uint16_t *link = &head->root;
    while (*link != 0 && !(ta__path_has_registers(&near->nodes[*link], self, ip, sp, fp, domain) &&
                           near->nodes[*link].fp_mask == fp_mask))
        link = &near->nodes[*link].next;
    if (*link == 0) {
        *link = (uint16_t)index;
        return;
    }
    uint16_t next = near->nodes[*link].next;
    *link = (uint16_t)add_to_tree(near, *link, index);
    near->nodes[*link].next = next;
}
