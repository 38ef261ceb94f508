/* kept_stacks.c: which stacks are kept, and how several that begin alike are told apart. See kept_stacks.h. */
#include "trace/kept_stacks.h"

#include <string.h>

#include "base/memory.h"
#include "trace/capture.h"

enum { ERA_STEP = TA__KEPT_PATHS << TA__KEPT_ROOM_MOST, BRANCH_BITS = 12 };
_Static_assert(TA__KEPT_BRANCHES == 1 << BRANCH_BITS, "as many as the number has bits");
_Static_assert(ERA_STEP <= UINT16_MAX + 1, "paths are named by 16 bits");

/* Where what lies behind the paths begins. */
static void lay_out(struct ta__near *near, uint32_t room)
{
    near->paths_max = (uint32_t)TA__KEPT_PATHS << room;
    near->chunks_max = (uint32_t)TA__KEPT_CHUNKS << room;
    near->branches_max = ((uint32_t)TA__KEPT_BRANCHES << room) / 4 * 3;
    near->branch_shift = 64 - BRANCH_BITS - room;
    near->chunks = (struct ta__kept_chunk *)(void *)&near->paths[near->paths_max];
    near->branches = (struct ta__kept_branch *)(void *)&near->chunks[near->chunks_max];
}

TA_COLD void ta__kept_forget(struct ta__thread *self)
{
    struct ta__near *near = self->near;
    lay_out(near, self->kept_room);
    if (near->paths_used > 1) /* so that a new thread's tables stay untouched */
        memset(near->heads, 0, sizeof near->heads);
    if (near->has_sites)
        memset(near->sites, 0, sizeof near->sites);
    near->has_sites = 0;
    near->paths_used = 1;
    near->chunks_used = 0;
    near->branches_used = 0;
    near->kept_again = 0;
    near->missing.from = 0;
    near->era += ERA_STEP;
    if (near->era == 0) {
        memset(near->branches, 0, (sizeof *near->branches * TA__KEPT_BRANCHES) << self->kept_room);
        near->era = ERA_STEP;
    }
}

/* What the rooms of all threads have more than they began with. */
static uint64_t grown_bytes;

/* May they have so much more? Some MiB, less where tables are small because address space is short; or a small part of what
 * lives. */
static int take_bytes(uint64_t bytes)
{
    enum { FOR_EACH_LEAF = 2, SHARE_OF_LIVE = 32 };
    int64_t some = (int64_t)ta__leaf_capacity() * FOR_EACH_LEAF;
    int64_t part = ta__load_relaxed(&ta__counters_flushed) / SHARE_OF_LIVE;
    if ((int64_t)__atomic_add_fetch(&grown_bytes, bytes, __ATOMIC_RELAXED) <= (some > part ? some : part))
        return 1;
    __atomic_sub_fetch(&grown_bytes, bytes, __ATOMIC_RELAXED);
    return 0;
}

/* Twice the room, if that is worth it: most of what is kept had been kept before. What is kept is lost. */
static void grow(struct ta__thread *self)
{
    uint32_t room = self->kept_room;
    size_t had = ta__near_bytes(room), bytes = ta__near_bytes(room + 1);
    if (room == TA__KEPT_ROOM_MOST || self->near->kept_again < self->near->paths_used / 2 || !take_bytes(bytes - had))
        return;
    struct ta__near *grown = ta__memory_grow(self->near, had, bytes);
    if (grown == NULL) {
        __atomic_sub_fetch(&grown_bytes, bytes - had, __ATOMIC_RELAXED);
        return;
    }
    ta__store_relaxed(&self->near, grown); /* others may measure it */
    ta__store_relaxed(&self->kept_room, room + 1);
}

void ta__kept_give_back(struct ta__thread *thread)
{
    size_t had = ta__near_bytes(thread->kept_room), bytes = ta__near_bytes(0);
    if (thread->near == NULL)
        return;
    ta__memory_shrink(thread->near, had, bytes);
    ta__memory_reset(thread->near, bytes);
    __atomic_sub_fetch(&grown_bytes, had - bytes, __ATOMIC_RELAXED);
    thread->kept_room = 0;
}

/* The room is used up. */
TA_COLD static void begin_anew(struct ta__thread *self)
{
    grow(self);
    ta__kept_forget(self);
}

/* The entry of a branch, or the empty one where it would be, which is from elsewhere. */
TA_INLINE struct ta__kept_branch *branch_at(struct ta__near *near, uint32_t from, uint32_t number, uint64_t word)
{
    uint32_t shift = near->branch_shift;
    uint64_t at = (word ^ ((uint64_t)number << 48 | from)) * TA__GOLDEN >> shift;
    for (;; at = (at + 1) & (UINT64_MAX >> shift)) {
        struct ta__kept_branch *branch = &near->branches[at];
        if ((branch->word == word && branch->from == from && branch->number == number) ||
            branch->from / ERA_STEP != near->era / ERA_STEP)
            return branch;
    }
}
/* Where a path's words begin. */
TA_INLINE const struct ta__kept_chunk *words_at(const struct ta__kept_path *path)
{
    const char *begin = path->chunks_end + path->chunks_begin;
    return (const struct ta__kept_chunk *)(const void *)(path->is_odd ? begin + sizeof(struct ta__kept_chunk) : begin);
}

/* The stack that a path's words lie in, as paths say it. No path has so much room as does not fit. */
static uint32_t room_of(const struct ta__thread *self, uint64_t sp, uint64_t stack_high)
{
    if (sp >= self->own_low && sp < self->own_high)
        return 0;
    return stack_high - sp < UINT32_MAX ? (uint32_t)(stack_high - sp) : UINT32_MAX;
}

/* It was found, or kept. */
TA_INLINE void make_last(struct ta__near *near, struct ta__kept_head *head, uint32_t index)
{
    struct ta__kept_path *path = &near->paths[index];
    if (TA_UNLIKELY(path->room != 0))
        return;
    if (TA_UNLIKELY(head->last == index))
        path->turns = 0;
    else if (head->last != 0) {
        near->paths[head->last].follower = (uint16_t)index;
        near->paths[head->last].turns |= TA__KEPT_MOVES;
    }
    ta__kept_expect(near, head, index);
}

/* The path whose words are what the stack has, among those with the registers of this one; NULL: none, and near->missing
 * says where it would have been. */
TA_READS_STACKS_INLINE struct ta__kept_path *find_words(struct ta__near *near, struct ta__kept_path *path, uint64_t sp)
{
    const char *begin = (const char *)words_at(path);
    for (const char *at = begin;;) {
        const struct ta__kept_chunk *chunk = (const struct ta__kept_chunk *)(const void *)at;
        if (ta__kept_all_same(ta__kept_chunk_same(chunk, sp, TA__KEPT_SAME_AT_FIRST))) {
            at += sizeof *chunk;
            if (at == path->chunks_end)
                return path;
            continue;
        }
        uint64_t word;
        uint32_t i = 0;
        while ((word = *(const uint64_t *)(sp + chunk->offsets[i])) == chunk->values[i])
            i++;
        uint32_t number = (uint32_t)(at - begin) + i;
        int is_its_own = 1;
        for (; path->parent != 0 && path->number >= number; is_its_own = 0)
            path = &near->paths[path->parent];
        if (is_its_own || words_at(path)[(at - begin) / (ptrdiff_t)sizeof *chunk].values[i] != word) {
            uint32_t from = near->era | (uint32_t)(path - near->paths);
            struct ta__kept_branch *branch = branch_at(near, from, number, word);
            if (branch->from != from) {
                near->missing = (struct ta__kept_branch){word, from, (uint16_t)number, 0};
                near->missing_at = branch;
                return NULL;
            }
            path = &near->paths[branch->to];
        }
        at += (const char *)words_at(path) - begin;
        begin = (const char *)words_at(path);
    }
}

/* Any path of these registers: the one that was expected, or the first; NULL: there is none. */
TA_INLINE struct ta__kept_path *path_of_registers(const struct ta__thread *self, struct ta__near *near,
                                                  const struct ta__kept_head *head, uint64_t ip, uint64_t sp,
                                                  uint64_t fp, uint32_t domain)
{
    struct ta__kept_path *path = (struct ta__kept_path *)(void *)((char *)near->paths + head->expected);
    if (ta__kept_has_registers(path, ip, sp, fp, domain))
        return path;
    for (uint32_t first = head->first; first != 0; first = path->next) {
        path = &near->paths[first];
        if (ta__kept_has_registers(path, ip, sp, fp, domain) && path->room == room_of(self, sp, self->stack_high))
            return path;
    }
    return NULL;
}

__attribute__((noinline)) TA_READS_STACKS uint32_t ta__kept_search(const struct ta__thread *self,
                                                                   struct ta__kept_head *head, uint64_t ip, uint64_t sp,
                                                                   uint64_t fp, uint32_t domain)
{
    struct ta__near *near = self->near;
    struct ta__kept_path *path = path_of_registers(self, near, head, ip, sp, fp, domain);
    if (path == NULL || (path = find_words(near, path, sp)) == NULL)
        return 0;
    make_last(near, head, (uint32_t)(path - near->paths));
    return path->leaf;
}

/* ---- keeping ---- */

/* Do all of the memo's words lie where a path may have them? Else the stack goes on in another, or never verifies. */
static int are_in_reach(const struct ta__thread *self, uint64_t sp, uint64_t stack_high)
{
    const struct ta__state *top = &self->states[self->depth - 1];
    if (stack_high - sp >= UINT32_MAX)
        return 0;
    for (uint32_t i = (top->flags & TA__STATE_ODD) != 0 ? top->slot_end : 0; i-- > 0;)
        if ((uintptr_t)self->slots[i].at - sp >= stack_high - sp)
            return 0;
    return 1;
}

TA_INLINE void copy_word(struct ta__kept_chunk *chunk, int i, const struct ta__slot *slot, uint64_t sp)
{
    chunk->values[i] = slot->value;
    chunk->offsets[i] = (uint32_t)(uintptr_t)slot->at - (uint32_t)sp;
}

/* Copies the memo's words to where the next path's will be, innermost first, where changes are most likely. Answers
 * the number of chunks. */
TA_INLINE uint32_t copy_words(const struct ta__thread *self, uint64_t sp)
{
    struct ta__kept_chunk *chunks = &self->near->chunks[self->near->chunks_used];
    struct ta__kept_chunk *chunk = chunks;
    const struct ta__slot *first = self->slots;
    const struct ta__slot *slot = first + self->states[self->depth - 1].slot_end;
    for (; slot - first >= TA__KEPT_CHUNK; chunk++)
#pragma GCC unroll 4
        for (int i = 0; i < TA__KEPT_CHUNK; i++)
            copy_word(chunk, i, --slot, sp);
    if (slot > first) {
        for (int i = 0; i < TA__KEPT_CHUNK; i++) {
            slot -= slot > first; /* the last one once more, to fill the chunk */
            copy_word(chunk, i, slot, sp);
        }
        chunk++;
    }
    return (uint32_t)(chunk - chunks);
}

/* Are the first words of both chunks in one place, up to this one? */
TA_INLINE int are_in_place(const struct ta__kept_chunk *one, const struct ta__kept_chunk *other, uint32_t last)
{
#if defined(__SSE2__)
    const __m128i *a = (const void *)one->offsets, *b = (const void *)other->offsets;
    uint32_t differ = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(*a, *b)) ^ 0xFFFF;
    return differ << (28 - 4 * last) == 0;
#else
    while (one->offsets[last] == other->offsets[last] && last > 0)
        last--;
    return one->offsets[last] == other->offsets[last];
#endif
}

/* Is this path's word `number` the one that the search missed, and are the words before it the other's? What they are both
 * were found to be a moment ago, so that only their places are compared: there might be more or fewer, where a frame further
 * out decides which words matter. */
static int follows(const struct ta__kept_chunk *words, uint32_t chunks, const struct ta__kept_path *other,
                   uint32_t number)
{
    const struct ta__kept_chunk *its = words_at(other);
    if (number >= chunks * sizeof *words)
        return 0;
    for (; number >= sizeof *words; number -= (uint32_t)sizeof *words, words++, its++)
        if (!are_in_place(words, its, TA__KEPT_CHUNK - 1))
            return 0;
    return are_in_place(words, its, number);
}

/* Where the path will be found: by a branch from where the search for it ended, or as the first of its registers. 0: it
 * would not be. */
static int make_findable(struct ta__near *near, struct ta__kept_head *head, uint32_t index, uint32_t chunks)
{
    struct ta__kept_path *path = &near->paths[index];
    struct ta__kept_branch missing = near->missing;
    path->follower = 0;
    path->turns = 0;
    path->parent = (uint16_t)(missing.from % ERA_STEP);
    if (missing.from == 0) {
        path->next = head->first;
        head->first = (uint16_t)index;
        return 1;
    }
    const struct ta__kept_path *other = &near->paths[path->parent];
    if (other->fp_mask != path->fp_mask || other->room != path->room ||
        !follows(words_at(path), chunks, other, missing.number))
        return 0;
    path->number = missing.number;
    missing.to = (uint16_t)index;
    *near->missing_at = missing;
    near->branches_used++;
    return 1;
}

__attribute__((noinline)) void ta__kept_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                             uint64_t stack_high, uint32_t domain, enum ta__met met)
{
    struct ta__near *near = self->near;
    const struct ta__state *top = &self->states[self->depth - 1];
    uint32_t leaf = top->leaf;
    if (top->slot_end == 0 || top->slot_end > TA__KEPT_WORDS_EACH || leaf == 0 || top->leaf_domain != domain ||
        !are_in_reach(self, sp, stack_high))
        return;
    if (near->chunks_used + top->slot_end / TA__KEPT_CHUNK + 1 > near->chunks_max ||
        near->paths_used == near->paths_max || near->branches_used == near->branches_max) {
        begin_anew(self);
        near = self->near;
    }
    uint32_t chunks = copy_words(self, sp);
    uint64_t fp_mask = (top->flags & TA__STATE_NEEDS_FP) != 0 ? UINT64_MAX : 0;
    struct ta__kept_path *path = &near->paths[near->paths_used];
    path->ip = ip;
    path->sp = sp | (domain != 0);
    path->fp = fp;
    path->fp_mask = fp_mask;
    path->chunks_end = (const char *)&near->chunks[near->chunks_used + chunks];
    path->chunks_begin = -(int32_t)((chunks + chunks % 2) * sizeof near->chunks[0]);
    path->leaf = leaf;
    path->domain = domain;
    path->is_odd = chunks & 1;
    path->room = room_of(self, sp, stack_high);
    struct ta__kept_head *head = &near->heads[ta__kept_head_of(ip, sp)];
    if (!make_findable(near, head, near->paths_used, chunks))
        return;
    make_last(near, head, near->paths_used);
    near->chunks_used += chunks;
    near->paths_used++;
    near->kept_again += met == TA__MET_AND_KEPT;
}
