/* paths.h: the stacks that a thread met again and again, each with the words it was read from.
 *
 * The memo (capture.h) remembers one stack, the last. A program's loop mostly makes several requests in turn, from
 * stacks that differ in a few inner frames; walking those frames again each time is what tracing would cost most. So a
 * stack that is met a second time with the same registers is kept here: when all its words still hold their values, it
 * is the same stack (for the reason given in capture.c), and its leaf is the answer. Nothing else is touched.
 *
 *   heads        by return address and sp: the node of these registers, a path or a fork; and the latest path found
 *   path         one stack: its words are values[first … first + count), innermost first, at sp + offsets[…]
 *   fork         several, equal as far as the word at sp + offset: what that word is now says which branch to take
 *   branches     (fork, word) → path or further fork
 *
 *                  ┌──────┐  word: a  ┌──────┐ word: p ┌──────┐
 *        head ────▶│ fork ├──────────▶│ fork ├────────▶│ path │ all its words are compared
 *                  │      ├────┐      │      ├────┐    └──────┘
 *                  └──────┘ b  ▼      └──────┘ q  ▼
 *
 * A fork only chooses, so that it may read anything; what is compared in the end is the whole stack. Only the owner
 * reads and writes. When there is no more room, or rules or limit change, all is forgotten at once. */
#ifndef TA_TRACE_PATHS_H
#define TA_TRACE_PATHS_H

#include <stdint.h>

#include "base/hash.h"
#include "trace/capture.h"
#include "trace/check.h"
#include "trace/rules.h"
#include "trace/thread.h"

enum {
    TA__PATH_NODES = 4096, /* the first is none */
    TA__PATH_HEADS = 4096,
    TA__PATH_BRANCHES = 8192,
    TA__PATH_CANDIDATES = 16384,
    TA__PATH_WORDS = 81920,
    TA__PATH_WORDS_EACH = 1024,
};

struct ta__path_node {
    _Alignas(TA_CACHE_LINE) uint64_t ip;
    uint64_t sp;
    uint64_t stack_high;  /* of the stack that all its words lie in */
    uint64_t fp, fp_mask; /* 0 where fp does not decide what lies further out */
    uint32_t domain;
    uint32_t leaf;         /* 0: a fork */
    uint32_t first, count; /* of a fork: of one of its paths; count is a multiple of four, by repetition */
    uint16_t next;         /* another node with the same head */
    uint32_t fork_at;      /* a fork's word, counted from the innermost */
};

struct ta__path_head {
    uint16_t root;
    uint16_t recent; /* the path found last: tried first */
};

struct ta__path_branch {
    uint64_t word;
    uint32_t fork; /* near->era | its number; an entry of another era is empty */
    uint32_t node;
};

/* All that a thread keeps beside its memo. */
struct ta__near {
    uint64_t tag; /* the tag of the shared rules that rules and paths come from */
    uint32_t nodes_used, words_used, branches_used;
    uint32_t era; /* above the bits of a node's number */
    struct ta__near_rule rules[TA__NEAR_RULES];
    struct ta__near_leaf leaves[TA__NEAR_LEAVES];
    struct ta__path_head heads[TA__PATH_HEADS];
    uint32_t candidates[TA__PATH_CANDIDATES]; /* stacks that were walked lately */
    struct ta__path_branch branches[TA__PATH_BRANCHES];
    struct ta__path_node nodes[TA__PATH_NODES];
    uint64_t values[TA__PATH_WORDS];
    uint32_t offsets[TA__PATH_WORDS];
};

TA_INLINE uint32_t ta__path_head_of(uint64_t ip, uint64_t sp)
{
    return (((uint32_t)ip ^ (uint32_t)(sp >> 4)) * UINT32_C(0x9E3779B1)) >> 20;
}
_Static_assert(TA__PATH_HEADS == 1 << 12, "as many as the number has bits");

TA_INLINE int ta__path_has_registers(const struct ta__path_node *node, const struct ta__thread *self, uint64_t ip,
                                     uint64_t sp, uint64_t fp, uint32_t domain)
{
    return node->ip == ip && node->sp == sp && node->domain == domain && node->stack_high == self->stack_high &&
           ((node->fp ^ fp) & node->fp_mask) == 0;
}

TA_INLINE TA_READS_STACKS int ta__path_is_unchanged(const struct ta__near *near, const struct ta__path_node *path,
                                                    uint64_t sp)
{
    const uint64_t *value = &near->values[path->first];
    const uint32_t *offset = &near->offsets[path->first];
    for (uint64_t i = 0; i != path->count; i += 4)
        if (*(const uint64_t *)(sp + offset[i]) != value[i] ||
            *(const uint64_t *)(sp + offset[i + 1]) != value[i + 1] ||
            *(const uint64_t *)(sp + offset[i + 2]) != value[i + 2] ||
            *(const uint64_t *)(sp + offset[i + 3]) != value[i + 3])
            return 0;
    return 1;
}

/* The same for those that are not the head's most recent one. */
uint32_t ta__path_find_further(const struct ta__thread *self, struct ta__path_head *head, uint64_t ip, uint64_t sp,
                               uint64_t fp, uint32_t domain);

/* The leaf of a stack that is kept and unchanged, or 0. */
TA_INLINE TA_READS_STACKS uint32_t ta__path_find(const struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                                 uint32_t domain)
{
    struct ta__near *near = self->near;
    struct ta__path_head *head = &near->heads[ta__path_head_of(ip, sp)];
    const struct ta__path_node *path = &near->nodes[head->recent];
    if (TA_UNLIKELY(near->tag != ta__load_relaxed(&ta__rules_tag.word)))
        return 0;
    if (TA_LIKELY(ta__path_has_registers(path, self, ip, sp, fp, domain) && ta__path_is_unchanged(near, path, sp)))
        return path->leaf;
    return ta__path_find_further(self, head, ip, sp, fp, domain);
}

/* The leaf of the stack that begins with return address `ip`, whose frame has the registers sp and fp, for an
 * allocation in `domain`. 0 when the stack cannot be recorded (counted). Called inside an operation, gate == view. */
TA_INLINE uint32_t ta__capture(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint32_t domain)
{
    uint32_t leaf = ta__path_find(self, ip, sp, fp, domain);
    if (TA_UNLIKELY(leaf == 0))
        return ta__capture_by_walk(self, ip, sp, fp, domain);
    ta__check_kept(self, ip, sp, fp, leaf);
    return leaf;
}

/* The memo holds a stack of these registers, found by walking: keeps it. `stack_high` as the walk began. */
TA_COLD void ta__path_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp, uint64_t stack_high,
                           uint32_t domain);

/* Was this stack walked before, not long ago? */
TA_INLINE int ta__path_is_met_again(struct ta__near *near, uint32_t leaf, uint64_t sp)
{
    uint32_t key = (leaf ^ (uint32_t)(sp >> 4) << 12) * UINT32_C(0x9E3779B1);
    uint32_t *candidate = &near->candidates[key >> 18];
    if (*candidate == key)
        return 1;
    *candidate = key;
    return 0;
}
_Static_assert(TA__PATH_CANDIDATES == 1 << 14, "as many as the number has bits");

/* None counts any more. */
void ta__paths_forget(struct ta__near *near);

#endif
