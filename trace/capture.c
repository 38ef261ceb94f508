/* capture.c: the whole stack of every allocation, without walking it every time.
 *
 * Called for each traced request whose stack is not one of those that are kept (kept_stacks.h), in the requesting thread,
 * inside an operation (so: never nested, never while a stopper acts). Takes no lock, makes no call into libc on its
 * warm path, reads only memory inside the stack.
 *
 * A walk goes from state to state: (ip, sp, fp) and the rule of ip give the caller's state. Each thread remembers the
 * states of its last walk and every word they were read from (slots). A new walk stops as soon as its state equals a
 * remembered one and all remembered words further out still have their values: unwinding is a function of the registers
 * and of the words it reads, so the rest of the stack must be the same. In a program's inner loop that is the first
 * state; otherwise one to five steps. Where a return address further out has changed, and the new one's frame is laid out
 * as the old one's was, as it is when a function calls from elsewhere, the memo is corrected in place; else the walk goes
 * on to that state and beyond, and may rejoin further out.
 *
 * fp takes part only where it matters: code without frame pointers uses the register for anything, and its value is
 * irrelevant as far as the next frame that restores it from memory (TA__STATE_NEEDS_FP). A saved fp that no frame
 * further out needs is neither compared nor verified, so that most frames are verified by one word.
 *
 * Stacks are named by a rolling hash over their frames, outermost first: hash = hash * G + mix(frame). The hash of the
 * n innermost frames is then a subtraction, so that a limit costs nothing. */
#include "trace/capture.h"

#include <string.h>

#include "base/memory.h"
#include "trace/unwind/walk_check.h"
#include "trace/contexts.h"
#include "trace/reclaim.h"
#include "trace/unwind/modules.h"
#include "trace/kept_stacks.h"
#include "trace/unwind/rule_cache.h"
#include "trace/unwind/stack_bounds.h"
#include "tracealloc.h"

#define HASH_STEP  TA__GOLDEN /* odd: its powers are units, so that windows of the hash subtract cleanly */
#define HASH_START UINT64_C(0x243F6A8885A308D3)

/* ---- thread set-up (cold) ---------------------------------------------------------------------------------------- */

/* Where the parts of a memo are, in its mapping. */
struct memo_layout {
    size_t states_bytes, slots_bytes, bytes;
};

static struct memo_layout memo_layout(uint32_t window)
{
    size_t states = 2 * (size_t)window;
    struct memo_layout layout = {(states + 1) * sizeof(struct ta__state),
                                 states * TA__SLOTS_PER_STATE * sizeof(struct ta__slot), 0};
    layout.bytes = 2 * (layout.states_bytes + layout.slots_bytes);
    return layout;
}

/* The memo's outermost state has one more in front, where the mapping begins. */
static struct ta__state *memo_begin(struct ta__state *states)
{
    return states - 1;
}

/* Both halves of memo and walk in one mapping: address space only, touched as deep as stacks go. What the old one held
 * moves: `new_count` and `new_extra_count` entries of a walk, and all of the memo. */
static int memo_map(struct ta__thread *self, uint32_t window, uint32_t new_count, uint32_t new_extra_count)
{
    struct memo_layout layout = memo_layout(window);
    char *memory = ta__memory_map(layout.bytes);
    if (memory == NULL)
        return 0;
    struct ta__state *states = (struct ta__state *)memory + 1;
    struct ta__slot *slots = (struct ta__slot *)(memory + layout.states_bytes);
    struct ta__state *new_states = (struct ta__state *)(memory + layout.states_bytes + layout.slots_bytes);
    struct ta__slot *new_slots = (struct ta__slot *)(memory + 2 * layout.states_bytes + layout.slots_bytes);
    struct ta__state *old = self->states;
    if (old != NULL) {
        memcpy(memo_begin(states), memo_begin(old), (self->depth + 1) * sizeof *states);
        memcpy(slots, self->slots, old[(int64_t)self->depth - 1].slot_end * sizeof *slots);
        memcpy(new_states, self->new_states, new_count * sizeof *new_states);
        memcpy(new_slots, self->new_slots, new_extra_count * sizeof *new_slots);
    }
    self->slots = slots;
    self->new_states = new_states;
    self->new_slots = new_slots;
    ta__store_relaxed(&self->states, states); /* others may measure it */
    if (old != NULL)
        ta__memory_unmap(memo_begin(old), memo_layout(self->window).bytes);
    ta__store_relaxed(&self->window, window);
    return 1;
}

/* The stack is deeper than the memo; 0: it is as large as it ever gets, or there is no memory. */
TA_COLD static int memo_grow(struct ta__thread *self, uint32_t new_count, uint32_t new_extra_count)
{
    return self->window < TA__WINDOW && memo_map(self, self->window * 4, new_count, new_extra_count);
}

int ta__capture_thread_init(struct ta__thread *self)
{
    if (self->near == NULL)
        ta__store_relaxed(&self->near, (struct ta__near *)ta__memory_map(ta__near_bytes(self->kept_room)));
    if (self->near == NULL)
        return 0;
    if (self->states == NULL && !memo_map(self, TA__FIRST_WINDOW, 0, 0))
        return 0;
    if (self->counts == NULL) {
        uint32_t capacity = ta__leaf_capacity();
        struct ta__source_counts *counts = ta__memory_map(capacity * sizeof *counts);
        if (counts == NULL)
            return 0;
        self->counts_capacity = capacity;
        ta__store_release(&self->counts, counts); /* a snapshot may look */
    }
    return 1;
}

size_t ta__capture_resident(const struct ta__thread *thread)
{
    struct ta__state *states = ta__load_relaxed(&thread->states);
    const struct ta__near *near = ta__load_relaxed(&thread->near);
    const struct ta__source_counts *counts = ta__load_acquire(&thread->counts);
    size_t bytes = 0;
    if (states != NULL)
        bytes += ta__memory_resident(memo_begin(states), memo_layout(ta__load_relaxed(&thread->window)).bytes);
    if (near != NULL)
        bytes += ta__memory_resident(near, ta__near_bytes(ta__load_relaxed(&thread->kept_room)));
    if (counts != NULL)
        bytes += ta__memory_resident(counts, ta__leaf_count() * sizeof *counts);
    return bytes;
}

void ta__capture_forget(struct ta__thread *self)
{
    self->depth = 0;
    self->one_ip = 0;
}

void ta__capture_forget_leaves(struct ta__thread *self)
{
    ta__kept_forget(self);
    uint32_t meaning = ta__load_acquire(&ta__leaf_meaning);
    if (self->near->leaf_meaning == meaning)
        return;
    if (self->near->tag != 0) /* before the first walk there are none */
        memset(self->near->leaves, 0, sizeof self->near->leaves);
    self->near->leaf_meaning = meaning;
}

/* Zeroed tables are empty ones; what a thread remembers it forgets before its next operation anyway. */
void ta__capture_give_back(void)
{
    int used = ta__safepoint_size();
    for (int slot = 0; slot < used; slot++) {
        struct ta__thread *thread = (struct ta__thread *)ta__safepoint_member(slot);
        ta__kept_give_back(thread);
        if (thread->states == NULL)
            continue;
        thread->depth = 0;
        ta__memory_reset(memo_begin(thread->states), memo_layout(thread->window).bytes);
    }
}

/* ---- one step ---------------------------------------------------------------------------------------------------- */

enum step {
    STEP_ON,    /* the caller is found: it is the walk's state now */
    STEP_END,   /* the outermost frame, or as many as are ever looked at */
    STEP_OTHER, /* not "CFA = sp or fp + offset" */
    STEP_ASTRAY /* the rule leads out of the stack */
};

/* A walk under way. Handed to cold functions by value, so that it stays in registers. */
struct walk {
    uint64_t ip, sp, fp;
    struct ta__state *at;                /* this remembered state and those further out may still be rejoined */
    uint32_t new_count, new_extra_count; /* what this walk has found, innermost first */
    enum step last;                      /* of a cold step: how it went */
};

TA_INLINE int is_inside(const struct ta__thread *self, uint64_t at, uint64_t sp)
{
    return at >= sp && at < self->stack_high && (at & 7) == 0;
}

TA_INLINE TA_READS_STACKS uint64_t word_at(uint64_t at)
{
    return *(const uint64_t *)at;
}

/* The word that was read as this return address: the same number, where none is signed. */
TA_INLINE TA_READS_STACKS uint64_t return_word(const uint64_t *at, uint64_t ip)
{
    return ta__rule_unsigned_ip(UINT64_MAX) == UINT64_MAX ? ip : *at;
}

/* Reads the word at `at`, which is not the return address: the walk depends on it too. */
static TA_READS_STACKS uint64_t read_extra(struct ta__thread *self, struct walk *walk, uint64_t at)
{
    struct ta__slot *slot = &self->new_slots[walk->new_extra_count++];
    slot->at = (const uint64_t *)at;
    slot->value = word_at(at);
    return slot->value;
}

/* The walk's state becomes one of those that were found. */
TA_INLINE void append_state(struct ta__thread *self, struct walk *walk, uint64_t fp_slot, uint64_t rule, uint32_t flags)
{
    struct ta__state *state = &self->new_states[walk->new_count++];
    state->ip = walk->ip;
    state->sp = walk->sp;
    state->fp = walk->fp;
    state->fp_slot = fp_slot;
    state->flags = (uint16_t)flags;
    state->salt = (uint16_t)ta__rule_salt(rule);
    state->slot_end = walk->new_extra_count;
}

/* The usual kinds of frames. Anything but STEP_ON leaves the walk where it was; STEP_END: the return
 * address, at *zero_at, is 0. */
TA_INLINE TA_READS_STACKS enum step step_usual(struct ta__thread *self, struct walk *walk, uint64_t rule,
                                               uint64_t *zero_at)
{
    uint32_t flags = TA__STATE_RETURNS;
    uint64_t cfa, caller_fp = walk->fp, fp_slot = 0;
    if (TA_LIKELY(ta__rule_kind(rule) == TA__RULE_SP)) {
        cfa = walk->sp + (uint64_t)ta__rule_offset(rule);
    } else if (TA_LIKELY(ta__rule_kind(rule) == TA__RULE_FP)) {
        cfa = walk->fp + (uint64_t)ta__rule_offset(rule);
        flags |= TA__STATE_NEEDS_FP;
    } else {
        return STEP_OTHER;
    }
    if (TA_UNLIKELY(cfa <= walk->sp || cfa > self->stack_high || (cfa & 7) != 0))
        return STEP_ASTRAY;
    if (ta__rule_saves_fp(rule)) {
        fp_slot = cfa;
        if (TA_UNLIKELY(ta__rule_slot_from_fp(rule))) {
            fp_slot = walk->fp;
            flags |= TA__STATE_NEEDS_FP;
        }
        fp_slot += (uint64_t)ta__rule_slot(rule);
        if (TA_UNLIKELY(!is_inside(self, fp_slot, walk->sp)))
            return STEP_ASTRAY;
        caller_fp = word_at(fp_slot);
        flags |= TA__STATE_SAVES_FP;
    }
    uint64_t return_at = ta__rule_return_slot(cfa, fp_slot);
    uint64_t caller_ip = ta__rule_unsigned_ip(word_at(return_at));
    if (TA_UNLIKELY(caller_ip == 0)) {
        *zero_at = return_at;
        return STEP_END;
    }
    if (TA_UNLIKELY(ta__rule_in_loader(rule)))
        flags |= TA__STATE_LOADER;
    append_state(self, walk, fp_slot, rule, flags);
    walk->ip = caller_ip;
    walk->sp = cfa;
    walk->fp = caller_fp;
    return STEP_ON;
}

/* ---- the steps that are not usual (cold) ------------------------------------------------------------------------- */

/* A slot of this value never verifies: what was found through it must be found anew. */
static const uint64_t never_equal;

/* A thread or coroutine that was started without a caller: the return address is 0. The walk depends on that word. */
TA_COLD static struct walk end_at_zero(struct ta__thread *self, struct walk walk, uint64_t rule, uint64_t at)
{
    uint32_t flags = ta__rule_kind(rule) == TA__RULE_FP ? TA__STATE_NEEDS_FP : 0;
    read_extra(self, &walk, at);
    append_state(self, &walk, 0, rule, TA__STATE_EXTRA | flags);
    return walk;
}

/* As many frames were found as are ever counted, or as there is memory for. The rest of the stack is not followed; when
 * so many of these frames have returned that it would count, the slot sees to it that the walk goes on from the last
 * one. */
TA_COLD static void end_at_window(struct ta__thread *self, const struct walk *walk)
{
    struct ta__state *last = &self->new_states[walk->new_count - 1];
    self->new_slots[walk->new_extra_count] = (struct ta__slot){&never_equal, ~never_equal};
    last->flags = self->window < TA__WINDOW ? TA__STATE_EXTRA | TA__STATE_CUT_SHORT : TA__STATE_EXTRA;
    last->slot_end = walk->new_extra_count + 1;
}

/* No rule, or one that leads out of the stack by the registers or by what it has read: the stack ends here for us. */
TA_COLD static struct walk end_cut_short(struct ta__thread *self, struct walk walk, uint64_t rule)
{
    uint32_t flags = TA__STATE_CUT_SHORT;
    if (ta__rule_kind(rule) != TA__RULE_UNKNOWN)
        flags |= TA__STATE_EXTRA | TA__STATE_NEEDS_FP;
    append_state(self, &walk, 0, rule, flags);
    walk.last = STEP_END;
    return walk;
}

/* The frame that a signal interrupted: the kernel wrote down its registers. */
TA_COLD static struct walk step_signal(struct ta__thread *self, struct walk walk, uint64_t rule)
{
    uint64_t context = walk.sp;
    if (!is_inside(self, context, walk.sp) || !is_inside(self, context + TA__SIGNAL_IP, walk.sp))
        return end_cut_short(self, walk, rule);
    uint64_t fp = read_extra(self, &walk, context + TA__SIGNAL_FP);
    uint64_t sp = read_extra(self, &walk, context + TA__SIGNAL_SP);
    uint64_t ip = read_extra(self, &walk, context + TA__SIGNAL_IP);
    if (ip == 0 || !ta__stack_select(self, sp))
        return end_cut_short(self, walk, rule);
    append_state(self, &walk, 0, rule, TA__STATE_EXTRA | TA__STATE_SAVES_FP);
    walk.ip = ip | TA__IP_INTERRUPTED;
    walk.sp = sp;
    walk.fp = fp;
    walk.last = STEP_ON;
    return walk;
}

/* Frames whose CFA the stack says, not a register alone: PLT stubs and functions that realign their stack. */
TA_COLD static struct walk step_to_odd_cfa(struct ta__thread *self, struct walk walk, uint64_t rule)
{
    uint64_t cfa;
    uint32_t flags = TA__STATE_EXTRA;
    if (ta__rule_kind(rule) == TA__RULE_PLT) {
        cfa = ta__rule_plt_cfa(rule, (uintptr_t)(walk.ip & ~TA__IP_INTERRUPTED), walk.sp);
    } else {
        uint64_t at = walk.fp + (uint64_t)ta__rule_offset(rule);
        if (!is_inside(self, at, walk.sp))
            return end_cut_short(self, walk, rule);
        cfa = read_extra(self, &walk, at);
        flags |= TA__STATE_NEEDS_FP;
    }
    if (cfa <= walk.sp || !is_inside(self, cfa - 8, walk.sp))
        return end_cut_short(self, walk, rule);
    uint64_t ip = ta__rule_unsigned_ip(read_extra(self, &walk, cfa - 8));
    uint64_t fp = walk.fp;
    if (ta__rule_saves_fp(rule)) {
        uint64_t at = (ta__rule_slot_from_fp(rule) ? walk.fp : cfa) + (uint64_t)ta__rule_slot(rule);
        if (!is_inside(self, at, walk.sp))
            return end_cut_short(self, walk, rule);
        fp = read_extra(self, &walk, at);
        flags |= TA__STATE_SAVES_FP;
    }
    append_state(self, &walk, 0, rule, flags);
    walk.last = STEP_END;
    if (ip == 0)
        return walk;
    walk.ip = ip;
    walk.sp = cfa;
    walk.fp = fp;
    walk.last = STEP_ON;
    return walk;
}

TA_COLD static struct walk step_other(struct ta__thread *self, struct walk walk, uint64_t rule)
{
    switch (ta__rule_kind(rule)) {
    case TA__RULE_END:
        append_state(self, &walk, 0, rule, 0);
        walk.last = STEP_END;
        return walk;
    case TA__RULE_SIGNAL:
        return step_signal(self, walk, rule);
    case TA__RULE_PLT:
    case TA__RULE_FP_DEREF:
        return step_to_odd_cfa(self, walk, rule);
    default:
        return end_cut_short(self, walk, rule);
    }
}

/* ---- rejoining the remembered stack ------------------------------------------------------------------------------ */

/* Searches slots[low … end) from the end down: the index of the first changed one + 1, or 0 when all still hold their
 * values. Eight at a time: this loop is most of a walk that rejoins. */
TA_INLINE TA_READS_STACKS uint32_t changed_slot(const struct ta__slot *slots, uint32_t low, uint32_t end)
{
    const struct ta__slot *bottom = slots + low;
    const struct ta__slot *at = slots + end;
    while (at - bottom >= 8) {
        uint64_t changed = (*at[-1].at ^ at[-1].value) | (*at[-2].at ^ at[-2].value) | (*at[-3].at ^ at[-3].value) |
                           (*at[-4].at ^ at[-4].value) | (*at[-5].at ^ at[-5].value) | (*at[-6].at ^ at[-6].value) |
                           (*at[-7].at ^ at[-7].value) | (*at[-8].at ^ at[-8].value);
        if (TA_UNLIKELY(changed != 0))
            break;
        at -= 8;
    }
    for (; at > bottom; at--)
        if (TA_UNLIKELY(*at[-1].at != at[-1].value))
            return (uint32_t)(at - slots);
    return 0;
}

TA_INLINE uint32_t lowest_slot(const struct ta__thread *self, uint32_t depth)
{
    return TA_LIKELY(depth < TA__WINDOW) ? 0 : self->states[depth - TA__WINDOW].slot_end;
}

/* Does the walk's state equal this remembered one in all that decides what lies further out? */
TA_INLINE int is_same(const struct ta__state *state, uint64_t ip, uint64_t sp, uint64_t fp)
{
    return state->sp == sp && state->ip == ip && (state->fp == fp || (state->flags & TA__STATE_NEEDS_FP) == 0);
}

/* ---- naming the stack -------------------------------------------------------------------------------------------- */

TA_INLINE uint64_t frame_hash(uint64_t ip, uint32_t salt)
{
    uint64_t mixed = (ip ^ (uint64_t)salt << 47) * UINT64_C(0xD6E8FEB86659FD93);
    return mixed ^ (mixed >> 32);
}

/* The new states, reversed, on top of the first `depth` remembered ones. */
TA_INLINE void push_new_states(struct ta__thread *self, uint32_t depth, uint32_t new_count)
{
    struct ta__state *state = &self->states[depth];
    struct ta__slot *slot = self->slots + state[-1].slot_end;
    uint64_t hash = state[-1].hash;
    uint32_t caller_needs_fp = state[-1].flags & TA__STATE_NEEDS_FP;
    uint32_t odd = state[-1].flags & TA__STATE_ODD;
    const struct ta__state *from = &self->new_states[new_count];
    for (uint32_t i = new_count; i-- > 0; state++) {
        from--;
        uint32_t flags = from->flags;
        if (TA_LIKELY((flags & TA__STATE_RETURNS) != 0)) {
            slot->at = (const uint64_t *)ta__rule_return_slot(state[-1].sp, from->fp_slot);
            slot->value = return_word(slot->at, state[-1].ip);
            slot++;
            if (TA_UNLIKELY((caller_needs_fp != 0) & ((flags & TA__STATE_SAVES_FP) != 0))) {
                slot->at = (const uint64_t *)from->fp_slot;
                slot->value = state[-1].fp;
                slot++;
            }
        } else if ((flags & TA__STATE_EXTRA) != 0) {
            odd = TA__STATE_ODD;
            for (uint32_t extra = i > 0 ? from[-1].slot_end : 0; extra < from->slot_end; extra++)
                *slot++ = self->new_slots[extra];
        }
        if ((flags & TA__STATE_SAVES_FP) == 0)
            flags |= caller_needs_fp;
        caller_needs_fp = flags & TA__STATE_NEEDS_FP;
        state->ip = from->ip;
        state->sp = from->sp;
        state->fp = from->fp;
        state->fp_slot = from->fp_slot;
        hash = hash * HASH_STEP + frame_hash(from->ip, from->salt);
        state->hash = hash;
        state->slot_end = (uint32_t)(slot - self->slots);
        state->leaf = 0;
        state->salt = from->salt;
        state->flags = (uint16_t)(flags | odd);
    }
    self->depth = depth + new_count;
    if (self->hashed >= depth)
        self->hashed = self->depth;
    if (self->named > depth)
        self->named = depth;
}

/* The innermost of the first `depth` states becomes the memo's innermost: its hash must be true, and was not. */
TA_COLD static void hash_states(struct ta__thread *self, uint32_t depth)
{
    struct ta__state *state = &self->states[self->hashed];
    uint64_t hash = state[-1].hash;
    for (const struct ta__state *end = &self->states[depth]; state < end; state++) {
        hash = hash * HASH_STEP + frame_hash(state->ip, state->salt);
        state->hash = hash;
        state->leaf = 0;
    }
    self->hashed = depth;
}

TA_INLINE uint32_t total_frames(uint32_t depth)
{
    return depth < TA_NFRAME_MAX ? depth : TA_NFRAME_MAX;
}

/* The flags of the leaf of a memo whose outermost state is this. */
TA_INLINE uint32_t leaf_flags(const struct ta__state *outermost)
{
    return (outermost->flags & TA__STATE_CUT_SHORT) != 0 ? TA__LEAF_CUT_SHORT : 0;
}

/* What else tells leaves of equal frames apart: depth and flags in one word, for the hash. */
TA_INLINE uint32_t leaf_kind(uint32_t total, uint32_t flags)
{
    return total | flags << 16;
}

/* The hash of the `limit` most recent of `depth` states. */
TA_INLINE uint64_t window_hash(struct ta__thread *self, uint32_t depth)
{
    uint64_t hash = self->states[depth - 1].hash;
    if (TA_UNLIKELY(depth > self->limit)) {
        if (depth > self->hashed)
            hash_states(self, depth);
        hash -= self->states[depth - 1 - self->limit].hash * self->limit_power;
    }
    return hash;
}

/* Not found by its hash, or not yet trusted. */
TA_COLD static uint32_t leaf_of_new_stack(struct ta__thread *self, uint64_t hash, uint32_t domain)
{
    uint32_t depth = self->depth;
    uint32_t begin = depth < self->limit ? 0 : depth - self->limit;
    uint32_t base = 0;
    /* Where nothing is cut off, paths begin at the outermost state, and an earlier request may have named this one's
     * beginning. */
    if (TA_LIKELY(begin == 0 && self->named != 0)) {
        begin = self->named < depth ? self->named : depth;
        base = self->states[begin - 1].context;
    }
    /* The walk is over: its buffer serves for the path. */
    struct ta__path_frame *path = (struct ta__path_frame *)self->new_slots;
    struct ta__state *first = &self->states[begin];
    uint32_t length = depth - begin;
    for (uint32_t i = 0; i < length; i++) {
        /* As of a return address: readers look one byte before it. */
        uint64_t ip = first[i].ip;
        uint64_t address = ip >> 63 != 0 ? (ip & ~TA__IP_INTERRUPTED) + 1 : ip;
        path[i] = (struct ta__path_frame){.address = address, .salt = first[i].salt};
    }
    uint32_t flags = leaf_flags(&self->states[0]);
    ta__store_release(&self->quiet, ta__load_acquire(&ta__reclaim_round));
    uint32_t leaf = ta__leaf_intern(hash, base, path, length, total_frames(depth), domain, flags);
    if (TA_UNLIKELY(depth > self->limit || (length > 0 && path[0].context == 0))) /* the tables are full */
        return leaf;
    for (uint32_t i = 0; i < length; i++)
        first[i].context = path[i].context;
    self->named = depth;
    return leaf;
}

static uint32_t leaf_from_afar(struct ta__thread *self, struct ta__near_leaf *near, uint64_t hash, uint32_t domain)
{
    uint32_t leaf = ta__leaf_find(hash);
    if (TA_UNLIKELY(leaf == 0))
        return leaf_of_new_stack(self, hash, domain);
    near->hash = hash;
    near->leaf = leaf;
    return leaf;
}

/* An allocation by ld.so itself: objects may have gone, and nothing may be remembered across it. */
TA_COLD static void note_loader(struct ta__thread *self)
{
    ta__modules_check();
    self->states[self->depth - 1].leaf_domain = UINT32_MAX;
}

TA_INLINE uint32_t leaf_of_memo(struct ta__thread *self, uint32_t domain)
{
    struct ta__state *top = &self->states[self->depth - 1];
    uint32_t kind = leaf_kind(total_frames(self->depth), leaf_flags(&self->states[0]));
    uint64_t hash = ta__leaf_hash(window_hash(self, self->depth), kind, domain);
    struct ta__near_leaf *near = &self->near->leaves[hash >> 7 & (TA__NEAR_LEAVES - 1)];
    uint32_t leaf = TA_LIKELY(near->hash == hash) ? (uint32_t)near->leaf : leaf_from_afar(self, near, hash, domain);
    top->leaf = leaf;
    top->leaf_domain = domain;
    if (TA_UNLIKELY((top->flags & TA__STATE_LOADER) != 0))
        note_loader(self);
    return leaf;
}

/* One frame: no walk. Equal call sites are one leaf; the depth of the stack stays unknown (0). */
static uint32_t leaf_of_one_frame(struct ta__thread *self, uintptr_t ip, uint32_t domain, uint32_t flags)
{
    uint64_t rule = ta__rule(ip); /* for the salt, and to learn about ld.so */
    uint32_t salt = ta__rule_salt(rule);
    uint64_t hash = ta__leaf_hash(frame_hash(ip, salt), leaf_kind(0, flags), domain);
    uint32_t leaf = ta__leaf_find(hash);
    if (TA_UNLIKELY(leaf == 0)) {
        struct ta__path_frame path = {.address = ip, .salt = salt};
        ta__store_release(&self->quiet, ta__load_acquire(&ta__reclaim_round));
        leaf = ta__leaf_intern(hash, 0, &path, 1, 0, domain, flags);
    }
    self->one_ip = leaf != 0 ? ta__one_site(ip, domain) : 0;
    self->one_mark = ta__mark_of_site(self, leaf);
    self->one_slot = ta__leaves()[leaf].domain;
    self->one_row = &self->counts[leaf];
    self->one_domain = domain;
    if (TA_UNLIKELY(ta__rule_in_loader(rule))) {
        ta__modules_check();
        self->one_ip = 0;
    } else if (TA_LIKELY(leaf != 0 && flags == 0)) {
        *ta__near_site_of(self->near, ip) =
            (struct ta__near_site){.ip = ip, .row = self->one_row, .leaf = leaf, .domain = domain};
        self->near->has_sites = 1;
    }
    return leaf;
}

uint32_t ta__capture_one(struct ta__thread *self, uintptr_t ip, uint32_t domain)
{
    return leaf_of_one_frame(self, ip, domain, 0);
}

/* The stack that sp points into is nobody's: only the caller is known. */
TA_COLD static uint32_t capture_unknown_stack(struct ta__thread *self, uintptr_t ip, uint32_t domain)
{
    uint32_t leaf = leaf_of_one_frame(self, ip, domain, TA__LEAF_CUT_SHORT);
    ta__capture_forget(self);
    return leaf;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

TA_COLD static void forget_near_rules(struct ta__thread *self, uint64_t tag)
{
    if (self->near->tag != 0)
        memset(self->near->rules, 0, sizeof self->near->rules);
    ta__kept_forget(self);
    self->near->tag = tag;
}

TA_INLINE struct ta__near_rule *near_rule(struct ta__near_rule *rules, uint64_t ip)
{
    return &rules[(ip ^ ip >> 10) & (TA__NEAR_RULES - 1)];
}

/* What the shared table has is copied; what it may not keep is asked again each time. */
static uint64_t rule_from_afar(struct ta__near_rule *near, uint64_t ip)
{
    if (TA_UNLIKELY(ip >> 63))
        return ta__rule_interrupted((uintptr_t)(ip & ~TA__IP_INTERRUPTED));
    uint64_t rule;
    if (TA_LIKELY(ta__rule_lookup((uintptr_t)ip, &rule))) {
        near->ip = ip;
        near->rule = rule;
        return rule;
    }
    return ta__rule_missed((uintptr_t)ip);
}

/* Another stack than last time, or one of which nothing is known but that it is mapped now: it may be gone at the next
 * capture, so that no word of it may be remembered as a place to look at. (The bounds of a foreign stack are left empty
 * by ta__stack_select, which brings the next capture here again.) */
TA_COLD static int enter_other_stack(struct ta__thread *self, uintptr_t sp)
{
    ta__capture_forget(self);
    return ta__stack_select(self, sp);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

TA_INLINE uint64_t rule_of(struct ta__thread *self, uint64_t ip)
{
    struct ta__near_rule *near = near_rule(self->near->rules, ip);
    return TA_LIKELY(near->ip == ip) ? near->rule : rule_from_afar(near, ip);
}

/* A remembered frame returns to `ip` now, and sp and fp are what they were: puts it in the place of what the state had, if
 * all else is as before, the frame's caller above all. 0: it is not; nothing was changed. */
TA_INLINE int replace_ip(struct ta__thread *self, struct ta__state *state, uint64_t ip)
{
    const uint32_t old = state->flags, caller_needs_fp = state[-1].flags & TA__STATE_NEEDS_FP;
    uint64_t rule = rule_of(self, ip);
    uint32_t flags = TA__STATE_RETURNS | (old & TA__STATE_ODD) | (ta__rule_in_loader(rule) ? TA__STATE_LOADER : 0);
    uint64_t cfa = state->sp + (uint64_t)ta__rule_offset(rule), fp_slot = 0;
    if (ta__rule_kind(rule) == TA__RULE_FP) {
        cfa += state->fp - state->sp;
        flags |= TA__STATE_NEEDS_FP;
    } else if (ta__rule_kind(rule) != TA__RULE_SP) {
        return 0;
    }
    if (ta__rule_saves_fp(rule)) {
        fp_slot = cfa + (uint64_t)ta__rule_slot(rule);
        flags |= TA__STATE_SAVES_FP;
        if (ta__rule_slot_from_fp(rule) || !is_inside(self, fp_slot, state->sp))
            return 0;
    } else {
        flags |= caller_needs_fp;
    }
    /* A frame that needs fp has the true one remembered; where the caller's is needed, it is read from where it was. */
    if ((old & TA__STATE_RETURNS) == 0 || cfa != state[-1].sp || ((flags ^ old) & TA__STATE_NEEDS_FP) != 0 ||
        (caller_needs_fp != 0 && fp_slot != state->fp_slot) ||
        ta__rule_return_slot(cfa, fp_slot) != ta__rule_return_slot(cfa, state->fp_slot))
        return 0;
    state->ip = ip;
    state->fp_slot = fp_slot;
    state->salt = (uint16_t)ta__rule_salt(rule);
    state->flags = (uint16_t)flags;
    return 1;
}

/* The walk met the remembered stack, but for a word further out (of number `changed` - 1). Return addresses are replaced; 1:
 * then the memo is true again. 0: the walk must go on to the frame that cannot be, without looking at what is remembered
 * further in. */
__attribute__((noinline)) TA_READS_STACKS static int rejoin_changed(struct ta__thread *self, struct walk *walk,
                                                                    uint32_t changed)
{
    struct ta__state *top = walk->at, *state = top;
    const uint32_t depth = (uint32_t)(top + 1 - self->states);
    uint64_t more = 0, power = 1; /* what the hash has more, by how far in the top is of the state */
    do {
        struct ta__slot *slot = &self->slots[changed - 1];
        for (; state[-1].slot_end >= changed; state--)
            power *= HASH_STEP;
        uint64_t word = *slot->at, ip = ta__rule_unsigned_ip(word);
        if ((state->flags & TA__STATE_RETURNS) == 0 || state[-1].slot_end != changed - 1) {
            walk->at = state - 1;
            return 0;
        }
        state--;
        power *= HASH_STEP;
        uint64_t hash = frame_hash(state->ip, state->salt);
        if (ip == 0 || ip >> 63 != 0 || !replace_ip(self, state, ip)) {
            walk->at = state - 1;
            return 0;
        }
        slot->value = word;
        more += (frame_hash(ip, state->salt) - hash) * power;
        changed = changed_slot(self->slots, lowest_slot(self, depth), changed - 1);
    } while (changed != 0);
    uint32_t outermost = (uint32_t)(state - self->states);
    if (depth <= self->hashed || depth == self->depth) {
        top->hash += more;
        top->leaf = 0;
        self->depth = depth; /* its innermost hash is true */
    }
    if (self->hashed > outermost)
        self->hashed = outermost;
    if (self->named > outermost)
        self->named = outermost;
    return 1;
}

/* Remembered states that may still be rejoined. */
TA_INLINE uint32_t depth_left(const struct ta__thread *self, const struct walk *walk)
{
    return (uint32_t)(walk->at + 1 - self->states);
}

/* Has the walk met the remembered stack, which is true from here on outwards? */
TA_INLINE int rejoins(struct ta__thread *self, struct walk *walk)
{
    struct ta__state *at = walk->at;
    while (at->sp < walk->sp) /* the end's is not */
        at--;
    walk->at = at;
    if (!is_same(at, walk->ip, walk->sp, walk->fp))
        return 0;
    uint32_t changed = changed_slot(self->slots, lowest_slot(self, depth_left(self, walk)), at->slot_end);
    return TA_LIKELY(changed == 0) || rejoin_changed(self, walk, changed);
}

/* One frame further out; STEP_END: there is none. */
TA_INLINE enum step step(struct ta__thread *self, struct walk *walk)
{
    uint64_t rule = rule_of(self, walk->ip);
    uint64_t zero_at = 0;
    enum step how = step_usual(self, walk, rule, &zero_at);
    if (TA_LIKELY(how == STEP_ON))
        return how;
    if (how == STEP_END) {
        *walk = end_at_zero(self, *walk, rule, zero_at);
        return how;
    }
    *walk = how == STEP_OTHER ? step_other(self, *walk, rule) : end_cut_short(self, *walk, rule);
    return walk->last;
}

static uint32_t walk_and_remember(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp, uint32_t domain);

/* The same for a walk under way, whose remembered state moves too. */
TA_COLD static int walk_grow(struct ta__thread *self, struct walk *walk)
{
    uint32_t depth = depth_left(self, walk);
    int has_grown = memo_grow(self, walk->new_count, walk->new_extra_count);
    walk->at = &self->states[(int64_t)depth - 1];
    return has_grown;
}

/* The memo has no room for what was found on top of it. */
TA_COLD static uint32_t walk_anew(struct ta__thread *self, uint32_t domain)
{
    struct ta__state first = self->new_states[0];
    ta__capture_forget(self);
    return walk_and_remember(self, first.ip, first.sp, first.fp, domain);
}

/* Walks until it rejoins the memo, or to the end; what it found becomes the memo. */
__attribute__((noinline)) TA_READS_STACKS static uint32_t walk_and_remember(struct ta__thread *self, uint64_t ip,
                                                                            uint64_t sp, uint64_t fp, uint32_t domain)
{
    struct walk walk = {.ip = ip, .sp = sp, .fp = fp, .at = &self->states[(int64_t)self->depth - 1]};
    uint64_t tag = ta__load_relaxed(&ta__rules_tag.word);
    if (TA_UNLIKELY(self->near->tag != tag))
        forget_near_rules(self, tag);
    if (TA_UNLIKELY(self->depth == 0)) /* no walk gets further out */
        self->states[-1] = (struct ta__state){.sp = UINT64_MAX, .hash = HASH_START};
    while (!rejoins(self, &walk)) {
        if (TA_UNLIKELY(walk.new_count >= self->window) && !walk_grow(self, &walk)) {
            end_at_window(self, &walk);
            walk.at = &self->states[-1];
            break;
        }
        if (TA_UNLIKELY(step(self, &walk) == STEP_END)) {
            walk.at = &self->states[-1];
            break;
        }
    }
    const uint32_t depth = depth_left(self, &walk);
    if (TA_UNLIKELY(depth > self->hashed && depth != self->depth))
        hash_states(self, depth);
    if (walk.new_count == 0) {
        self->depth = depth;
        const struct ta__state *top = walk.at;
        return TA_LIKELY(top->leaf != 0 && top->leaf_domain == domain) ? top->leaf : leaf_of_memo(self, domain);
    }
    if (TA_UNLIKELY(depth + walk.new_count > 2 * self->window) && !walk_grow(self, &walk))
        return walk_anew(self, domain);
    push_new_states(self, depth, walk.new_count);
    return leaf_of_memo(self, domain);
}

TA_READS_STACKS uint32_t ta__capture_by_walk(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp,
                                             uint32_t domain)
{
    if (TA_UNLIKELY(self->limit == 1))
        return self->one_ip == ta__one_site(ip, domain) && self->one_domain == domain
                   ? ta__one_leaf(self)
                   : ta__capture_one(self, ip, domain);
    if (TA_UNLIKELY(sp - self->stack_low >= self->stack_high - self->stack_low) && !enter_other_stack(self, sp))
        return capture_unknown_stack(self, ip, domain);
    /* A foreign stack may be gone at the next look, which must ask the system first. */
    uintptr_t stack_high = self->stack_high != self->stack_low ? self->stack_high : 0;
    uint32_t leaf = walk_and_remember(self, ip, sp, fp, domain);
    ta__check_capture(self, ip, sp, fp);
    enum ta__met met = ta__kept_meet(self->near, leaf, sp);
    if (met != TA__MET_FIRST && stack_high != 0)
        ta__kept_keep(self, ip, sp, fp, stack_high, domain, met);
    return leaf;
}
