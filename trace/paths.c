/* paths.c: which stacks are kept, and which make room. See paths.h. */
#include "trace/paths.h"

#include <string.h>

enum { CHAIN_MAX = 16 };

TA_COLD void ta__paths_forget(struct ta__near *near)
{
    near->paths_used = 1;
    near->words_used = 0;
    memset(near->heads, 0, sizeof near->heads);
}

/* A stack that others were tried before is the first to be tried next time: loops take turns slowly. */
__attribute__((noinline)) TA_READS_STACKS uint32_t ta__path_find_further(const struct ta__thread *self, uint32_t index,
                                                                         uint64_t ip, uint64_t sp, uint64_t fp,
                                                                         uint32_t domain)
{
    struct ta__near *near = self->near;
    uint16_t *head = &near->heads[ta__path_slot(ip, sp)];
    struct ta__path *before = &near->paths[*head];
    while (index != 0) {
        struct ta__path *path = &near->paths[index];
        if (ta__path_is(path, self, ip, sp, fp, domain)) {
            before->next = path->next;
            path->next = *head;
            *head = (uint16_t)index;
            return path->leaf;
        }
        before = path;
        index = path->next;
    }
    return 0;
}

__attribute__((noinline)) void ta__path_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                             uint64_t stack_high, uint32_t domain)
{
    struct ta__near *near = self->near;
    const struct ta__state *top = &self->states[self->depth - 1];
    uint32_t leaf = top->leaf;
    uint32_t key = (leaf ^ (uint32_t)(sp >> 4) << 12) * UINT32_C(0x9E3779B1);
    uint32_t *candidate = &near->candidates[key >> 20];
    if (*candidate != key) {
        *candidate = key;
        return;
    }
    uint32_t count = top->slot_end;
    if (count == 0 || count > TA__PATH_WORDS_EACH || leaf == 0 || top->leaf_domain != domain)
        return;
    uint32_t padded = (count + 3) & ~UINT32_C(3);
    if (near->words_used + padded > TA__PATH_WORDS || near->paths_used == TA__PATHS)
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
    uint16_t *head = &near->heads[ta__path_slot(ip, sp)];
    uint32_t index = near->paths_used++;
    near->paths[index] = (struct ta__path){
        .ip = ip,
        .sp = sp,
        .stack_high = stack_high,
        .fp = fp,
        .fp_mask = (top->flags & TA__STATE_NEEDS_FP) != 0 ? UINT64_MAX : 0,
        .domain = domain,
        .leaf = leaf,
        .first = first,
        .count = padded,
        .next = *head,
    };
    *head = (uint16_t)index;
    /* A chain ends somewhere. */
    struct ta__path *path = &near->paths[index];
    for (int i = 1; i < CHAIN_MAX && path->next != 0; i++)
        path = &near->paths[path->next];
    path->next = 0;
}
