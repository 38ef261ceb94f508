/* capture.c: the whole stack of every allocation, without walking it every time.
 *
 * Called by alloc for each traced request, in the requesting thread, inside an operation (so: never nested, never while
 * a stopper acts). Takes no lock, makes no call into libc on its warm path, reads only memory inside the stack.
 *
 * A walk goes from state to state: (ip, sp, fp) and the rule of ip give the caller's state. Each thread remembers the
 * states of its last walk and every word they were read from (slots). A new walk stops as soon as its state equals a
 * remembered one and all remembered words further out still have their values: unwinding is a function of the registers
 * and of the words it reads, so the rest of the stack must be the same. In a program's inner loop that is the first
 * state; otherwise one to five steps. When a word further out has changed, the states inside it are still right: the
 * walk goes on from the change and may rejoin further out.
 *
 * fp takes part in the comparison only where it matters: code without frame pointers uses the register for anything,
 * and its value is irrelevant as far as the next frame that restores it from memory (TA__STATE_NEEDS_FP).
 *
 * Stacks are named by a rolling hash over their frames, outermost first: hash = hash * G + mix(frame). The hash of the
 * n innermost frames is then a subtraction, so that a limit costs nothing. */
#include "trace/capture.h"

#include "base/memory.h"
#include "trace/check.h"
#include "trace/contexts.h"
#include "trace/modules.h"
#include "trace/rules.h"
#include "trace/stacks.h"
#include "tracealloc.h"

#define HASH_STEP  TA__GOLDEN /* odd: its powers are units, so that windows of the hash subtract cleanly */
#define HASH_START UINT64_C(0x243F6A8885A308D3)

/* ---- thread set-up (cold)
 * -------------------------------------------------------------------------------------------- */

int ta__capture_thread_init(struct ta__thread *self)
{
    if (self->states == NULL) {
        /* Both halves of memo and walk in one mapping; address space only, touched as deep as stacks go. */
        size_t states = TA__STATES_MAX * sizeof(struct ta__state);
        size_t slots = TA__SLOTS_MAX * sizeof(struct ta__slot);
        char *memory = ta__memory_map(2 * states + 2 * slots);
        if (memory == NULL)
            return 0;
        self->slots = (struct ta__slot *)(memory + states);
        self->new_states = (struct ta__state *)(memory + states + slots);
        self->new_slots = (struct ta__slot *)(memory + 2 * states + slots);
        self->states = (struct ta__state *)memory;
    }
    if (self->counts == NULL) {
        uint32_t capacity = ta__leaf_capacity();
        self->counts = ta__memory_map(capacity * sizeof *self->counts);
        if (self->counts == NULL)
            return 0;
        self->counts_capacity = capacity;
    }
    ta__capture_forget(self);
    return 1;
}

size_t ta__capture_resident(const struct ta__thread *thread)
{
    size_t bytes = 0;
    if (thread->states != NULL)
        bytes += ta__memory_resident(thread->states, 2 * TA__STATES_MAX * sizeof(struct ta__state) +
                                                         2 * TA__SLOTS_MAX * sizeof(struct ta__slot));
    if (thread->counts != NULL)
        bytes += ta__memory_resident(thread->counts, ta__leaf_count() * sizeof *thread->counts);
    return bytes;
}

void ta__capture_forget(struct ta__thread *self)
{
    self->depth = 0;
}

/* ---- one step
 * --------------------------------------------------------------------------------------------------------- */

struct walk {
    uint64_t ip, sp, fp;
    uint32_t depth;                     /* remembered states that may still be rejoined */
    uint32_t new_count, new_slot_count; /* what this walk has found, innermost first */
};

/* Appends the walk's present state; its slots are those appended since the last state. */
TA_INLINE TA_READS_STACKS struct ta__state *append_state(struct ta__thread *self, const struct walk *walk,
                                                         uint32_t flags, uint32_t salt)
{
    struct ta__state *state = &self->new_states[walk->new_count];
    state->ip = walk->ip;
    state->sp = walk->sp;
    state->fp = walk->fp;
    state->slot_end = walk->new_slot_count;
    state->flags = (uint16_t)flags;
    state->salt = (uint16_t)salt;
    return state;
}

/* Reads the word at `at` and remembers that the walk depends on it. */
TA_INLINE TA_READS_STACKS uint64_t read_slot(struct ta__thread *self, struct walk *walk, uint64_t at)
{
    struct ta__slot *slot = &self->new_slots[walk->new_slot_count++];
    slot->at = (const uint64_t *)at;
    slot->value = *slot->at;
    return slot->value;
}

TA_INLINE int is_inside(const struct ta__thread *self, uint64_t at, uint64_t sp)
{
    return at >= sp && at < self->stack_high && (at & 7) == 0;
}

enum step { STEP_ON, STEP_END, STEP_CUT };

/* The kinds of frames that are not "CFA = sp or fp + offset". */
TA_COLD TA_READS_STACKS static enum step step_rare(struct ta__thread *self, struct walk *walk, uint64_t rule)
{
    switch (ta__rule_kind(rule)) {
    case TA__RULE_END:
        append_state(self, walk, 0, ta__rule_salt(rule));
        walk->new_count++;
        return STEP_END;

    case TA__RULE_SIGNAL: {
        uint64_t context = walk->sp;
        if (!is_inside(self, context, walk->sp) || !is_inside(self, context + TA__SIGNAL_IP, walk->sp))
            break;
        uint64_t fp = read_slot(self, walk, context + TA__SIGNAL_FP);
        uint64_t sp = read_slot(self, walk, context + TA__SIGNAL_SP);
        uint64_t ip = read_slot(self, walk, context + TA__SIGNAL_IP);
        struct ta__state *state = append_state(self, walk, TA__STATE_SAVES_FP, ta__rule_salt(rule));
        walk->new_count++;
        if (ip == 0 || !ta__stack_select(self, sp)) {
            state->flags |= TA__STATE_CUT_SHORT;
            return STEP_CUT;
        }
        walk->ip = ip | TA__IP_INTERRUPTED;
        walk->sp = sp;
        walk->fp = fp;
        return STEP_ON;
    }

    case TA__RULE_PLT:
    case TA__RULE_FP_DEREF: {
        uint64_t cfa;
        uint32_t flags = 0;
        if (ta__rule_kind(rule) == TA__RULE_PLT) {
            cfa = ta__rule_plt_cfa(rule, (uintptr_t)(walk->ip & ~TA__IP_INTERRUPTED), walk->sp);
        } else {
            uint64_t at = walk->fp + (uint64_t)ta__rule_offset(rule);
            if (!is_inside(self, at, walk->sp))
                break;
            cfa = read_slot(self, walk, at);
            flags = TA__STATE_NEEDS_FP;
        }
        if (cfa <= walk->sp || !is_inside(self, cfa - 8, walk->sp))
            break;
        uint64_t ip = read_slot(self, walk, cfa - 8);
        uint64_t fp = walk->fp;
        if (ta__rule_saves_fp(rule)) {
            uint64_t at = (ta__rule_slot_from_fp(rule) ? walk->fp : cfa) + (uint64_t)ta__rule_slot(rule);
            if (!is_inside(self, at, walk->sp))
                break;
            fp = read_slot(self, walk, at);
            flags |= TA__STATE_SAVES_FP;
        }
        append_state(self, walk, flags, ta__rule_salt(rule));
        walk->new_count++;
        if (ip == 0)
            return STEP_END;
        walk->ip = ip;
        walk->sp = cfa;
        walk->fp = fp;
        return STEP_ON;
    }
    default:
        break;
    }
    /* No rule, or one that leads out of the stack. */
    walk->new_slot_count = walk->new_count > 0 ? self->new_states[walk->new_count - 1].slot_end : 0;
    append_state(self, walk, TA__STATE_CUT_SHORT, ta__rule_salt(rule));
    walk->new_count++;
    return STEP_CUT;
}

/* From the walk's state to its caller's. About 30 instructions on the two common kinds. */
TA_INLINE TA_READS_STACKS enum step step(struct ta__thread *self, struct walk *walk)
{
    uint64_t rule = TA_UNLIKELY(walk->ip >> 63) ? ta__rule_interrupted((uintptr_t)(walk->ip & ~TA__IP_INTERRUPTED))
                                                : ta__rule((uintptr_t)walk->ip);
    uint32_t flags;
    uint64_t cfa;
    if (TA_LIKELY(ta__rule_kind(rule) == TA__RULE_SP)) {
        cfa = walk->sp + (uint64_t)ta__rule_offset(rule);
        flags = 0;
    } else if (TA_LIKELY(ta__rule_kind(rule) == TA__RULE_FP)) {
        cfa = walk->fp + (uint64_t)ta__rule_offset(rule);
        flags = TA__STATE_NEEDS_FP;
    } else {
        return step_rare(self, walk, rule);
    }
    if (TA_UNLIKELY(cfa <= walk->sp || cfa > self->stack_high || (cfa & 7) != 0))
        return step_rare(self, walk, TA__RULE_UNKNOWN);

    uint64_t ip = read_slot(self, walk, cfa - 8);
    uint64_t fp = walk->fp;
    if (ta__rule_saves_fp(rule)) {
        uint64_t at = (TA_UNLIKELY(ta__rule_slot_from_fp(rule)) ? walk->fp : cfa) + (uint64_t)ta__rule_slot(rule);
        if (TA_UNLIKELY(!is_inside(self, at, walk->sp)))
            return step_rare(self, walk, TA__RULE_UNKNOWN);
        fp = read_slot(self, walk, at);
        flags |= TA__STATE_SAVES_FP;
    }
    flags |= (uint32_t)(rule & TA__RULE_IN_LOADER) != 0 ? TA__STATE_LOADER : 0;
    append_state(self, walk, flags, ta__rule_salt(rule));
    walk->new_count++;
    if (TA_UNLIKELY(ip == 0))
        return STEP_END;
    walk->ip = ip;
    walk->sp = cfa;
    walk->fp = fp;
    return STEP_ON;
}

/* ---- rejoining the remembered stack
 * ------------------------------------------------------------------------------------ */

/* The outermost-bound search for a changed word: slots[low … end) from the end down. Returns the index of the innermost
 * changed slot + 1, or 0 when all still hold their values. Four at a time: this loop is most of a warm capture. */
TA_INLINE TA_READS_STACKS uint32_t changed_slot(const struct ta__slot *slots, uint32_t low, uint32_t end)
{
    uint32_t left = end;
    while (left >= low + 4) {
        const struct ta__slot *four = &slots[left - 4];
        uint64_t changed = (*four[0].at ^ four[0].value) | (*four[1].at ^ four[1].value) |
                           (*four[2].at ^ four[2].value) | (*four[3].at ^ four[3].value);
        if (TA_UNLIKELY(changed != 0))
            break;
        left -= 4;
    }
    for (; left > low; left--)
        if (*slots[left - 1].at != slots[left - 1].value)
            return left;
    return 0;
}

/* A word that state `owner` was read through has changed: the states further in are right and become part of the walk,
 * which goes on from owner. Their fp is made what it is now as far as nobody restored it from memory. */
TA_COLD TA_READS_STACKS static void keep_inner_states(struct ta__thread *self, struct walk *walk, uint32_t slot)
{
    uint32_t index = walk->depth - 1;
    uint64_t fp = walk->fp;
    for (;; index--) {
        struct ta__state *state = &self->states[index];
        uint32_t slots_begin = index > 0 ? self->states[index - 1].slot_end : 0;
        if (slot > slots_begin || walk->new_count >= TA__WINDOW) {
            walk->ip = state->ip;
            walk->sp = state->sp;
            walk->fp = fp;
            walk->depth = index;
            return;
        }
        for (uint32_t i = slots_begin; i < state->slot_end; i++)
            self->new_slots[walk->new_slot_count++] = self->slots[i];
        struct ta__state *kept = &self->new_states[walk->new_count++];
        *kept = *state;
        kept->fp = fp;
        kept->slot_end = walk->new_slot_count;
        if (state->flags & TA__STATE_SAVES_FP)
            fp = self->states[index - 1].fp;
    }
}

/* ---- naming the stack
 * ---------------------------------------------------------------------------------------------------- */

TA_INLINE uint64_t frame_hash(const struct ta__state *state)
{
    uint64_t mixed = (state->ip ^ (uint64_t)state->salt << 47) * UINT64_C(0xD6E8FEB86659FD93);
    return mixed ^ (mixed >> 32);
}

/* The new states, reversed, on top of the remembered ones. */
TA_INLINE void push_new_states(struct ta__thread *self, const struct walk *walk)
{
    uint32_t depth = walk->depth;
    uint64_t hash = HASH_START;
    uint32_t slot_end = 0;
    uint16_t needs_fp = 0;
    if (depth > 0) {
        const struct ta__state *joined = &self->states[depth - 1];
        hash = joined->hash;
        slot_end = joined->slot_end;
        needs_fp = joined->flags & TA__STATE_NEEDS_FP;
    }
    for (uint32_t i = walk->new_count; i-- > 0;) {
        const struct ta__state *from = &self->new_states[i];
        struct ta__state *state = &self->states[depth++];
        uint32_t begin = i > 0 ? self->new_states[i - 1].slot_end : 0;
        for (uint32_t slot = begin; slot < from->slot_end; slot++)
            self->slots[slot_end++] = self->new_slots[slot];
        state->ip = from->ip;
        state->sp = from->sp;
        state->fp = from->fp;
        state->salt = from->salt;
        state->slot_end = slot_end;
        state->leaf = 0;
        hash = hash * HASH_STEP + frame_hash(from);
        state->hash = hash;
        if ((from->flags & (TA__STATE_NEEDS_FP | TA__STATE_SAVES_FP)) == 0)
            state->flags = from->flags | needs_fp;
        else
            state->flags = from->flags;
        needs_fp = state->flags & TA__STATE_NEEDS_FP;
    }
    self->depth = depth;
}

TA_INLINE uint32_t total_frames(uint32_t depth)
{
    return depth < TA_NFRAME_MAX ? depth : TA_NFRAME_MAX;
}

/* The hash of the `limit` most recent of `depth` states. */
TA_INLINE uint64_t window_hash(const struct ta__thread *self, uint32_t depth)
{
    uint64_t hash = self->states[depth - 1].hash;
    if (TA_UNLIKELY(depth > self->limit))
        hash -= self->states[depth - 1 - self->limit].hash * self->limit_power;
    return hash;
}

/* Not found by its hash, or not yet trusted. */
TA_COLD static uint32_t leaf_of_new_stack(struct ta__thread *self, uint64_t hash, uint32_t domain)
{
    uint32_t depth = self->depth;
    uint32_t length = depth < self->limit ? depth : self->limit;
    /* The walk is over: its buffer serves for the path. */
    struct ta__path_frame *path = (struct ta__path_frame *)self->new_slots;
    for (uint32_t i = 0; i < length; i++) {
        const struct ta__state *state = &self->states[depth - length + i];
        path[i] = (struct ta__path_frame){.address = state->ip, .salt = state->salt};
    }
    uint32_t flags = self->states[0].flags & TA__STATE_CUT_SHORT ? TA__LEAF_CUT_SHORT : 0;
    return ta__leaf_intern(hash, path, length, total_frames(depth), domain, flags);
}

TA_INLINE uint32_t leaf_of_memo(struct ta__thread *self, uint32_t domain)
{
    struct ta__state *top = &self->states[self->depth - 1];
    uint32_t kind = total_frames(self->depth) | (uint32_t)(self->states[0].flags & TA__STATE_CUT_SHORT) << 16;
    uint64_t hash = ta__leaf_hash(window_hash(self, self->depth), kind, domain);
    uint32_t leaf = ta__leaf_find(hash);
    if (TA_UNLIKELY(leaf == 0))
        leaf = leaf_of_new_stack(self, hash, domain);
    top->leaf = leaf;
    top->leaf_domain = domain;
    return leaf;
}

/* An allocation by ld.so itself: objects may have gone, and nothing may be remembered across it. */
TA_COLD static void note_loader(struct ta__thread *self)
{
    ta__modules_check();
    self->states[self->depth - 1].leaf_domain = UINT32_MAX;
}

/* One frame: no walk. Equal call sites are one leaf; the depth of the stack stays unknown (0). */
TA_INLINE uint32_t capture_one_frame(struct ta__thread *self, uintptr_t ip, uint32_t domain, uint32_t flags)
{
    struct ta__state *top = &self->states[0];
    if (TA_LIKELY(self->depth == 1 && top->ip == ip && top->leaf_domain == domain))
        return top->leaf;
    uint64_t rule = ta__rule(ip); /* for the salt, and to learn about ld.so */
    top->ip = ip;
    top->salt = (uint16_t)ta__rule_salt(rule);
    top->flags = 0;
    self->depth = 1;
    uint64_t hash = ta__leaf_hash(frame_hash(top), flags << 18, domain);
    uint32_t leaf = ta__leaf_find(hash);
    if (TA_UNLIKELY(leaf == 0)) {
        struct ta__path_frame path = {.address = ip, .salt = top->salt};
        leaf = ta__leaf_intern(hash, &path, 1, 0, domain, flags);
    }
    top->leaf = leaf;
    top->leaf_domain = domain;
    if (TA_UNLIKELY(ta__rule_in_loader(rule)))
        note_loader(self);
    return leaf;
}

/* The stack that sp points into is nobody's: only the caller is known. */
TA_COLD static uint32_t capture_unknown_stack(struct ta__thread *self, uintptr_t ip, uint32_t domain)
{
    self->depth = 0;
    uint32_t leaf = capture_one_frame(self, ip, domain, TA__LEAF_CUT_SHORT);
    self->depth = 0;
    return leaf;
}

/* ---- the walk
 * ---------------------------------------------------------------------------------------------------------------- */

TA_READS_STACKS uint32_t ta__capture(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint32_t domain)
{
    if (self->limit == 1)
        return capture_one_frame(self, ip, domain, 0);
    if (TA_UNLIKELY(sp - self->stack_low >= self->stack_high - self->stack_low) && !ta__stack_select(self, sp))
        return capture_unknown_stack(self, ip, domain);

    struct walk walk = {.ip = ip, .sp = sp, .fp = fp, .depth = self->depth};
    for (;;) {
        while (walk.depth > 0 && self->states[walk.depth - 1].sp < walk.sp)
            walk.depth--;
        if (walk.depth > 0) {
            const struct ta__state *candidate = &self->states[walk.depth - 1];
            if (candidate->sp == walk.sp && candidate->ip == walk.ip &&
                (candidate->fp == walk.fp || (candidate->flags & TA__STATE_NEEDS_FP) == 0)) {
                uint32_t low = 0;
                if (TA_UNLIKELY(walk.depth > TA__WINDOW))
                    low = self->states[walk.depth - TA__WINDOW].slot_end;
                uint32_t changed = changed_slot(self->slots, low, candidate->slot_end);
                if (TA_LIKELY(changed == 0))
                    break;
                keep_inner_states(self, &walk, changed);
            }
        }
        if (TA_UNLIKELY(walk.new_count >= TA__WINDOW)) {
            self->new_states[walk.new_count - 1].flags |= TA__STATE_CUT_SHORT;
            walk.depth = 0;
            break;
        }
        if (TA_UNLIKELY(step(self, &walk) != STEP_ON)) {
            walk.depth = 0;
            break;
        }
    }

    if (walk.new_count == 0) {
        self->depth = walk.depth;
        const struct ta__state *top = &self->states[walk.depth - 1];
        if (TA_LIKELY(top->leaf_domain == domain && top->leaf != 0)) {
            ta__check_capture(self, ip, sp, fp);
            return top->leaf;
        }
    } else {
        if (TA_UNLIKELY(walk.depth + walk.new_count > TA__STATES_MAX)) {
            self->new_states[walk.new_count - 1].flags |= TA__STATE_CUT_SHORT;
            walk.depth = 0;
        }
        push_new_states(self, &walk);
    }
    uint32_t leaf = leaf_of_memo(self, domain);
    if (TA_UNLIKELY(self->states[self->depth - 1].flags & TA__STATE_LOADER))
        note_loader(self);
    ta__check_capture(self, ip, sp, fp);
    return leaf;
}
