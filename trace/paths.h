/* paths.h: the stacks that a thread met again and again, each with the words it was read from.
 *
 * The memo (capture.h) remembers one stack, the last. A program's loop mostly makes several requests in turn, from
 * stacks that differ in a few inner frames; walking those frames again each time is what tracing would cost most. So a
 * stack that is met a second time with the same registers is kept here: when all its words still hold their values, it
 * is the same stack (for the reason given in capture.c), and its leaf is the answer. Nothing else is touched.
 *
 *   near->heads     by ip and sp: the first of the stacks that have these in common        ┌───────┐  ┌───────┐
 *   near->paths     one line per stack, and which one to try next                       ●─▶│ path  ├─▶│ path  │
 *   near->values    the words of all of them, one after another:         … ┌───────────────┤ first │  └───────┘
 *   near->offsets   and where they are, as distances from sp               ▼               └───────┘
 *                                                                        … │v│v│v│v│ …   four at a time; the last is
 *                                                                                        repeated
 * Only the owner reads and writes. When there is no more room, or rules or limit change, all are forgotten at once. */
#ifndef TA_TRACE_PATHS_H
#define TA_TRACE_PATHS_H

#include <stdint.h>

#include "base/hash.h"
#include "trace/capture.h"
#include "trace/check.h"
#include "trace/rules.h"
#include "trace/thread.h"

enum {
    TA__PATHS = 2048, /* the first is none */
    TA__PATH_HEADS = 2048,
    TA__PATH_CANDIDATES = 4096,
    TA__PATH_WORDS = 40960,
    TA__PATH_WORDS_EACH = 1024,
};

struct ta__path {
    _Alignas(TA_CACHE_LINE) uint64_t ip;
    uint64_t sp;
    uint64_t stack_high;  /* of the stack that all its words lie in */
    uint64_t fp, fp_mask; /* 0 where fp does not decide what lies further out */
    uint32_t domain, leaf;
    uint32_t first, count;
    uint32_t next;
};

/* All that a thread keeps beside its memo. */
struct ta__near {
    uint64_t tag; /* the tag of the shared rules that rules and paths come from */
    uint32_t paths_used, words_used;
    struct ta__near_rule rules[TA__NEAR_RULES];
    struct ta__near_leaf leaves[TA__NEAR_LEAVES];
    uint16_t heads[TA__PATH_HEADS];
    struct ta__path paths[TA__PATHS];
    uint32_t candidates[TA__PATH_CANDIDATES]; /* stacks that were walked lately */
    uint64_t values[TA__PATH_WORDS];
    uint32_t offsets[TA__PATH_WORDS];
};

/* Where its stacks begin. */
TA_INLINE uint32_t ta__path_slot(uint64_t ip, uint64_t sp)
{
    return (((uint32_t)ip ^ (uint32_t)(sp >> 4)) * UINT32_C(0x9E3779B1)) >> 21;
}
_Static_assert(TA__PATH_HEADS == 1 << 11, "as many as a slot has bits");

/* Is it this stack, unchanged? */
TA_INLINE TA_READS_STACKS int ta__path_is(const struct ta__path *path, const struct ta__thread *self, uint64_t ip,
                                          uint64_t sp, uint64_t fp, uint32_t domain)
{
    if (path->ip != ip || path->sp != sp || path->domain != domain || path->stack_high != self->stack_high ||
        ((path->fp ^ fp) & path->fp_mask) != 0)
        return 0;
    const uint64_t *value = &self->near->values[path->first];
    const uint32_t *offset = &self->near->offsets[path->first];
    for (uint64_t i = 0; i != path->count; i += 4)
        if (*(const uint64_t *)(sp + offset[i]) != value[i] ||
            *(const uint64_t *)(sp + offset[i + 1]) != value[i + 1] ||
            *(const uint64_t *)(sp + offset[i + 2]) != value[i + 2] ||
            *(const uint64_t *)(sp + offset[i + 3]) != value[i + 3])
            return 0;
    return 1;
}

/* The same for those behind the first, which it may become. */
uint32_t ta__path_find_further(const struct ta__thread *self, uint32_t index, uint64_t ip, uint64_t sp, uint64_t fp,
                               uint32_t domain);

/* The leaf of a stack that is kept and unchanged, or 0. */
TA_INLINE TA_READS_STACKS uint32_t ta__path_find(const struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                                 uint32_t domain)
{
    const struct ta__near *near = self->near;
    const struct ta__path *path = &near->paths[near->heads[ta__path_slot(ip, sp)]];
    if (TA_UNLIKELY(near->tag != ta__load_relaxed(&ta__rules_tag.word)))
        return 0;
    if (TA_LIKELY(ta__path_is(path, self, ip, sp, fp, domain)))
        return path->leaf;
    return ta__path_find_further(self, path->next, ip, sp, fp, domain);
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

/* The memo holds a stack of these registers, found by walking: keeps it if it was met before. `stack_high` as the walk
 * began, 0 on a foreign stack: that may be gone at the next look. */
void ta__path_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp, uint64_t stack_high,
                   uint32_t domain);

/* None counts any more. */
void ta__paths_forget(struct ta__near *near);

#endif
