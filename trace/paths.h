/* paths.h: the stacks that a thread met again and again, each with the words it was read from.
 *
 * The memo (capture.h) remembers one stack, the last. A program's loop mostly makes several requests in turn, from
 * stacks that differ in a few inner frames; walking those frames again each time is what tracing would cost most. So a
 * stack that is met a second time with the same registers is kept here: when all its words still hold their values, it
 * is the same stack (for the reason given in capture.c), and its leaf is the answer. Nothing else is touched.
 *
 *   near->paths     one line per stack, found by ip and sp                       ┌──────────────┐
 *   near->values    the words of all of them, one after another:  … ┌────────────┤ first, count │
 *   near->offsets   and where they are, as distances from sp        ▼            └──────────────┘
 *                                                                 … │v│v│v│v│ …   four at a time: the last is repeated
 *
 * Only the owner reads and writes. When the words fill up, or rules or limit change, all are forgotten at once: an entry
 * counts only while its era is the present one. */
#ifndef TA_TRACE_PATHS_H
#define TA_TRACE_PATHS_H

#include <stdint.h>

#include "base/hash.h"
#include "trace/capture.h"
#include "trace/rules.h"
#include "trace/thread.h"

enum { TA__PATHS = 1024, TA__PATH_WORDS = 16384, TA__PATH_WORDS_EACH = 1024 };

struct ta__path {
    _Alignas(TA_CACHE_LINE) uint64_t ip;
    uint64_t sp;
    uint64_t fp, fp_mask; /* 0 where fp does not decide what lies further out */
    uint64_t stack_high;  /* of the stack that all its words lie in */
    uint32_t leaf;
    uint32_t domain;
    uint32_t first, count;
    uint32_t era;
};

/* What is known of a stack that is not kept: how often it must be met before it is. */
struct ta__path_candidate {
    uint32_t key;
    uint16_t wait, left;
};

/* All that a thread keeps beside its memo. */
struct ta__near {
    uint64_t tag; /* the tag of the shared rules that rules and paths come from */
    uint32_t era; /* never 0: an entry that was never written does not count */
    uint32_t words_used;
    struct ta__near_rule rules[TA__NEAR_RULES];
    struct ta__near_leaf leaves[TA__NEAR_LEAVES];
    struct ta__path paths[TA__PATHS];
    struct ta__path_candidate candidates[TA__PATHS];
    uint64_t values[TA__PATH_WORDS];
    uint32_t offsets[TA__PATH_WORDS];
};

TA_INLINE uint64_t ta__path_hash(uint64_t ip, uint64_t sp)
{
    return (ip ^ sp << 20) * TA__GOLDEN;
}

TA_INLINE uint32_t ta__path_slot(uint64_t hash)
{
    return (uint32_t)(hash >> 32) & (TA__PATHS - 1);
}

/* The leaf of a stack that is kept and unchanged, or 0. */
TA_INLINE TA_READS_STACKS uint32_t ta__path_find(const struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                                 uint32_t domain)
{
    const struct ta__near *near = self->near;
    const struct ta__path *path = &near->paths[ta__path_slot(ta__path_hash(ip, sp))];
    if (((path->ip ^ ip) | (path->sp ^ sp) | ((path->fp ^ fp) & path->fp_mask) | (path->stack_high ^ self->stack_high) |
         (path->domain ^ domain) | (path->era ^ near->era)) != 0 ||
        near->tag != ta__load_relaxed(&ta__rules_tag.word))
        return 0;
    const uint64_t *value = &near->values[path->first];
    const uint32_t *offset = &near->offsets[path->first];
    const uint64_t *end = value + path->count;
    for (; value != end; value += 4, offset += 4) {
        uint64_t changed =
            (*(const uint64_t *)(sp + offset[0]) ^ value[0]) | (*(const uint64_t *)(sp + offset[1]) ^ value[1]) |
            (*(const uint64_t *)(sp + offset[2]) ^ value[2]) | (*(const uint64_t *)(sp + offset[3]) ^ value[3]);
        if (TA_UNLIKELY(changed != 0))
            return 0;
    }
    return path->leaf;
}

/* The memo holds a stack of these registers, found by walking: keeps it if it was met before. `stack_high` as the walk
 * began. */
void ta__path_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp, uint64_t stack_high,
                   uint32_t domain);

/* None counts any more. */
void ta__paths_forget(struct ta__near *near);

#endif
