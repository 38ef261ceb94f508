/* paths.c: which stacks are kept, and which make room. See paths.h. Called once per walk. */
#include "trace/paths.h"

#include <string.h>

enum { WAIT_MAX = 256 };

TA_COLD void ta__paths_forget(struct ta__near *near)
{
    near->words_used = 0;
    if (++near->era == 0) {
        memset(near->paths, 0, sizeof near->paths);
        near->era = 1;
    }
}

/* Is it time? A stack that changes further out each time it is met is asked for less and less often. */
static int is_due(struct ta__path_candidate *candidate, uint32_t key)
{
    if (candidate->key != key) {
        *candidate = (struct ta__path_candidate){.key = key, .wait = 1};
        return 0;
    }
    if (candidate->left > 0) {
        candidate->left--;
        return 0;
    }
    candidate->left = candidate->wait;
    if (candidate->wait < WAIT_MAX)
        candidate->wait *= 2;
    return 1;
}

__attribute__((noinline)) void ta__path_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                             uint64_t stack_high, uint32_t domain)
{
    struct ta__near *near = self->near;
    uint64_t hash = ta__path_hash(ip, sp);
    uint32_t at = ta__path_slot(hash);
    if (!is_due(&near->candidates[at], (uint32_t)hash))
        return;
    const struct ta__state *top = &self->states[self->depth - 1];
    uint32_t count = top->slot_end;
    if (count == 0 || count > TA__PATH_WORDS_EACH || top->leaf == 0 || top->leaf_domain != domain)
        return;
    uint32_t padded = (count + 3) & ~UINT32_C(3);
    if (near->words_used + padded > TA__PATH_WORDS)
        ta__paths_forget(near);
    uint32_t first = near->words_used;
    for (uint32_t i = 0; i < padded; i++) {
        /* Innermost first, where changes are most likely. */
        const struct ta__slot *slot = &self->slots[i < count ? count - 1 - i : 0];
        uint64_t offset = (uintptr_t)slot->at - sp;
        if (offset >= stack_high - sp || offset > UINT32_MAX)
            return; /* it goes on in another stack, or never verifies */
        near->values[first + i] = slot->value;
        near->offsets[first + i] = (uint32_t)offset;
    }
    near->words_used += padded;
    near->paths[at] = (struct ta__path){
        .ip = ip,
        .sp = sp,
        .fp = fp,
        .fp_mask = (top->flags & TA__STATE_NEEDS_FP) != 0 ? UINT64_MAX : 0,
        .stack_high = stack_high,
        .leaf = top->leaf,
        .domain = domain,
        .first = first,
        .count = padded,
        .era = near->era,
    };
}
