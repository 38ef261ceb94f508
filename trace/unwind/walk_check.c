/* walk_check.c: the checking build — every captured stack is compared with two other walks and with what was interned.
 *
 *   fresh     the same rules, read from the tables each time: no memo, no cache, no remembered module
 *   libunwind another reader of the tables, another interpreter of them
 *   leaf      what was interned, frame by frame: the number must stand for this stack and no other
 *
 * Called by capture.c after each capture, inside the operation; only in builds with TRACEALLOC_CHECKING, which are
 * slow and never shipped. What differs is written to the file that TRACEALLOC_CHECK_LOG names (else to descriptor 2), the
 * first few with both stacks; at exit a line with the numbers, and status 86 if anything is unexplained.
 * TRACEALLOC_CHECK_DISTURB=fresh|libunwind|leaf falsifies what is compared, once: whoever relies on the comparison can
 * see that it finds something.
 *
 * What is no difference: where our walk ends because the tables do (CUT_SHORT), libunwind may go on by guessing at
 * frame pointers; the fresh walk must end there too, and such ends are counted by their reason. */
#include "trace/unwind/walk_check.h"

#if TRACEALLOC_CHECKING

#define UNW_LOCAL_ONLY
#include <errno.h>
#include <fcntl.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "trace/capture.h"
#include "trace/unwind/cfi.h"
#include "trace/contexts.h"
#include "trace/unwind/modules.h"
#include "trace/unwind/rule.h"
#include "trace/unwind/rule_cache.h"
#include "tracealloc.h"

enum { FRAMES_COMPARED = 4096, REPORTS_MAX = 4, FRAMES_SHOWN = 24 };

static struct {
    uint64_t checked, differences;
    uint64_t cut_no_module, cut_no_rule, cut_astray, libunwind_gave_up, no_leaf, kept;
    uint64_t generation; /* of modules, when libunwind's cache was last emptied */
    int log;             /* descriptor + 1 */
} check;

struct frame {
    uint64_t ip, sp, fp;
};

/* ---- the fresh walk ---- */

enum end { WALK_ON, WALK_ENDS, WALK_NO_MODULE, WALK_NO_RULE, WALK_ASTRAY };

TA_READS_STACKS static uint64_t word_at(uint64_t at)
{
    return *(const uint64_t *)at;
}

static uint64_t rule_of(uint64_t ip, enum end *end)
{
    struct ta__module scratch;
    int interrupted = ip >> 63 != 0;
    uintptr_t address = (uintptr_t)(ip & ~TA__IP_INTERRUPTED);
    const struct ta__module *module = ta__module_describe(interrupted ? address : address - 1, &scratch);
    *end = module == NULL ? WALK_NO_MODULE : WALK_NO_RULE;
    if (module == NULL || module->tables.header == NULL)
        return TA__RULE_UNKNOWN;
    enum ta__cfi_address kind = interrupted ? TA__CFI_INTERRUPTED : TA__CFI_RETURN_ADDRESS;
    uint64_t rule = ta__cfi_rule(&module->tables, address, kind);
    return ta__rule_kind(rule) == TA__RULE_UNKNOWN && ta__rule_is_beginning(module, address, kind) ? TA__RULE_END
                                                                                                   : rule;
}

/* Reads nothing outside [sp, high) of the thread's own stack; a foreign stack was mapped when capture looked. */
static enum end step(const struct ta__thread *self, struct frame *frame)
{
    enum end end;
    uint64_t rule = rule_of(frame->ip, &end);
    uint64_t cfa = 0;
    uint64_t high = frame->sp - self->own_low < self->own_high - self->own_low ? self->own_high : UINT64_MAX - 64;
    switch (ta__rule_kind(rule)) {
    case TA__RULE_END:
        return WALK_ENDS;
    case TA__RULE_SIGNAL: {
        uint64_t context = frame->sp;
        frame->ip = word_at(context + TA__SIGNAL_IP) | TA__IP_INTERRUPTED;
        frame->sp = word_at(context + TA__SIGNAL_SP);
        frame->fp = word_at(context + TA__SIGNAL_FP);
        return frame->ip == TA__IP_INTERRUPTED ? WALK_ASTRAY : WALK_ON;
    }
    case TA__RULE_SP:
        cfa = frame->sp + (uint64_t)ta__rule_offset(rule);
        break;
    case TA__RULE_FP:
        cfa = frame->fp + (uint64_t)ta__rule_offset(rule);
        break;
    case TA__RULE_PLT:
        cfa = ta__rule_plt_cfa(rule, (uintptr_t)(frame->ip & ~TA__IP_INTERRUPTED), frame->sp);
        break;
    case TA__RULE_FP_DEREF: {
        uint64_t at = frame->fp + (uint64_t)ta__rule_offset(rule);
        if (at < frame->sp || at >= high || (at & 7) != 0)
            return WALK_ASTRAY;
        cfa = word_at(at);
        break;
    }
    default:
        return end;
    }
    if (cfa <= frame->sp || cfa > high || (cfa & 7) != 0)
        return WALK_ASTRAY;
    if (ta__rule_saves_fp(rule)) {
        uint64_t at = (ta__rule_slot_from_fp(rule) ? frame->fp : cfa) + (uint64_t)ta__rule_slot(rule);
        if (at < frame->sp || at >= high || (at & 7) != 0)
            return WALK_ASTRAY;
        frame->fp = word_at(at);
    }
    frame->ip = word_at(cfa - 8);
    frame->sp = cfa;
    return frame->ip == 0 ? WALK_ENDS : WALK_ON;
}

/* ---- reports ---- */

static int log_descriptor(void)
{
    if (check.log == 0) {
        const char *path = getenv("TRACEALLOC_CHECK_LOG");
        int opened = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
        check.log = (opened >= 0 ? opened : 2) + 1;
    }
    return check.log - 1;
}

static void show_frame(const char *what, uint64_t number, uint64_t ip, uint64_t sp)
{
    struct ta__message line;
    struct ta__module scratch;
    const struct ta__module *module = ta__module_describe((uintptr_t)(ip & ~TA__IP_INTERRUPTED), &scratch);
    ta__message_begin_plain(&line);
    ta__message_text(&line, what);
    ta__message_number(&line, number);
    ta__message_text(&line, ip >> 63 != 0 ? " interrupted " : " ");
    ta__message_hex(&line, ip & ~TA__IP_INTERRUPTED);
    ta__message_text(&line, " sp ");
    ta__message_hex(&line, sp);
    if (module != NULL) {
        ta__message_text(&line, " in ");
        ta__message_text(&line, module->path);
        ta__message_text(&line, "+");
        ta__message_hex(&line, (ip & ~TA__IP_INTERRUPTED) - module->bias);
    }
    ta__message_send_to(&line, log_descriptor());
}

static void report(const struct ta__thread *self, const char *other, uint64_t at, const struct frame *theirs)
{
    if (__atomic_fetch_add(&check.differences, 1, __ATOMIC_RELAXED) >= REPORTS_MAX)
        return;
    struct ta__message line;
    ta__message_begin(&line);
    ta__message_text(&line, "check: DIFFERENCE from ");
    ta__message_text(&line, other);
    ta__message_text(&line, " at frame ");
    ta__message_number(&line, at);
    ta__message_text(&line, " of ");
    ta__message_number(&line, self->depth);
    ta__message_send_to(&line, log_descriptor());
    for (uint64_t i = 0; i < self->depth && i < FRAMES_SHOWN; i++)
        show_frame("  ours   #", i, self->states[self->depth - 1 - i].ip, self->states[self->depth - 1 - i].sp);
    if (theirs != NULL)
        show_frame("  theirs #", at, theirs->ip, theirs->sp);
}

__attribute__((destructor)) static void summary(void)
{
    if (check.checked == 0)
        return;
    struct ta__message line;
    ta__message_begin(&line);
    ta__message_text(&line, "check: stacks ");
    ta__message_number(&line, check.checked);
    ta__message_text(&line, " differences ");
    ta__message_number(&line, check.differences);
    ta__message_text(&line, "; ended early: no module ");
    ta__message_number(&line, check.cut_no_module);
    ta__message_text(&line, ", no rule ");
    ta__message_number(&line, check.cut_no_rule);
    ta__message_text(&line, ", astray ");
    ta__message_number(&line, check.cut_astray);
    ta__message_text(&line, "; libunwind gave up ");
    ta__message_number(&line, check.libunwind_gave_up);
    ta__message_text(&line, "; without a leaf ");
    ta__message_number(&line, check.no_leaf);
    ta__message_text(&line, "; kept ");
    ta__message_number(&line, check.kept);
    ta__message_send_to(&line, log_descriptor());
    if (check.differences != 0)
        _exit(86);
}

/* ---- the comparisons ---- */

/* Is this the one comparison that must be falsified? It is made once some stacks are remembered. */
static int is_disturbed(const char *what)
{
    const char *wanted = getenv("TRACEALLOC_CHECK_DISTURB");
    return wanted != NULL && __atomic_load_n(&check.checked, __ATOMIC_RELAXED) == 60 && strcmp(wanted, what) == 0;
}

static const struct ta__state *state_at(const struct ta__thread *self, uint64_t number)
{
    return &self->states[self->depth - 1 - number];
}

static void compare_with_fresh(const struct ta__thread *self, struct frame frame)
{
    uint64_t last = self->depth - 1;
    frame.ip += (uint64_t)is_disturbed("fresh");
    for (uint64_t i = 0;; i++) {
        const struct ta__state *state = state_at(self, i);
        if (state->ip != frame.ip || state->sp != frame.sp) {
            report(self, "a fresh walk", i, &frame);
            return;
        }
        if (i + 1 >= TA__WINDOW)
            return;
        enum end end = step(self, &frame);
        int is_cut = (state->flags & TA__STATE_CUT_SHORT) != 0;
        if (i == last) {
            if (end == WALK_ON || is_cut != (end > WALK_ENDS))
                report(self, "a fresh walk, which does not end", i, &frame);
            else if (is_cut)
                __atomic_fetch_add(end == WALK_NO_MODULE ? &check.cut_no_module
                                   : end == WALK_NO_RULE ? &check.cut_no_rule
                                                         : &check.cut_astray,
                                   1, __ATOMIC_RELAXED);
            return;
        }
        if (end != WALK_ON) {
            report(self, "a fresh walk, which ends", i, &frame);
            return;
        }
    }
}

static void compare_with_libunwind(const struct ta__thread *self)
{
    unw_context_t context;
    unw_cursor_t cursor;
    if (ta__load_relaxed(&ta__modules_generation) != check.generation) {
        check.generation = ta__load_relaxed(&ta__modules_generation);
        unw_flush_cache(unw_local_addr_space, 0, 0);
    }
    if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) {
        report(self, "libunwind, which does not begin", 0, NULL);
        return;
    }
    int is_false = is_disturbed("libunwind");
    const struct ta__state *first = state_at(self, 0);
    struct frame frame = {0, 0, 0};
    /* Steps over our own frames, down to the one that called malloc. */
    for (int i = 0; i < 64 && (frame.ip != first->ip || frame.sp != first->sp); i++) {
        unw_word_t ip, sp;
        if (unw_step(&cursor) <= 0)
            break;
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        unw_get_reg(&cursor, UNW_REG_SP, &sp);
        frame = (struct frame){ip, sp, 0};
    }
    if (frame.ip != first->ip || frame.sp != first->sp) {
        report(self, "libunwind, which never meets the caller", 0, &frame);
        return;
    }
    uint64_t last = self->depth - 1;
    for (uint64_t i = 1; i < FRAMES_COMPARED; i++) {
        int more = unw_step(&cursor);
        unw_word_t ip = 0;
        unw_word_t sp = 0;
        if (more > 0) {
            unw_get_reg(&cursor, UNW_REG_IP, &ip);
            unw_get_reg(&cursor, UNW_REG_SP, &sp);
        }
        frame = (struct frame){ip + (uint64_t)is_false, sp, 0};
        if (i > last) {
            int is_cut = (state_at(self, last)->flags & TA__STATE_CUT_SHORT) != 0;
            if (more > 0 && ip != 0 && !is_cut && self->depth < TA__WINDOW)
                report(self, "libunwind, which goes on", i, &frame);
            return;
        }
        const struct ta__state *state = state_at(self, i);
        if (more <= 0) {
            /* Our walk goes on by a rule that the tables state, and the fresh walk agrees. */
            __atomic_fetch_add(&check.libunwind_gave_up, 1, __ATOMIC_RELAXED);
            return;
        }
        if ((state->ip & ~TA__IP_INTERRUPTED) != frame.ip || state->sp != sp) {
            report(self, "libunwind", i, &frame);
            return;
        }
    }
}

/* The object that has an address now is the one that the context names. */
static int is_module_of(uint64_t address, uint32_t id)
{
    struct ta__module scratch;
    const struct ta__module *now = ta__module_describe((uintptr_t)address - 1, &scratch);
    return id == (now != NULL ? now->id.v : 0);
}

static void compare_with_leaf(const struct ta__thread *self)
{
    uint32_t leaf = state_at(self, 0)->leaf;
    if (leaf == 0 || (ta__leaves()[leaf].flags & TA__LEAF_OVERFLOW) != 0) {
        __atomic_fetch_add(&check.no_leaf, 1, __ATOMIC_RELAXED);
        return;
    }
    if (is_disturbed("leaf"))
        leaf = leaf > 1 ? leaf - 1 : leaf + 1;
    const struct ta__source_leaf *stored = &ta__leaves()[leaf];
    int is_cut = (self->states[0].flags & TA__STATE_CUT_SHORT) != 0;
    uint32_t total = self->depth < TA_NFRAME_MAX ? self->depth : TA_NFRAME_MAX;
    uint32_t kept = self->depth < self->limit ? self->depth : self->limit;
    uint32_t context = stored->context;
    for (uint32_t i = 0; i < kept; i++, context = ta__contexts()[context].parent) {
        uint64_t ip = state_at(self, i)->ip;
        uint64_t address = ip >> 63 != 0 ? (ip & ~TA__IP_INTERRUPTED) + 1 : ip;
        const struct ta__source_context *node = &ta__contexts()[context];
        if (context == 0 || node->address != address || !is_module_of(address, node->module)) {
            struct frame theirs = {node->address, 0, 0};
            report(self, "the leaf", i, &theirs);
            return;
        }
    }
    if (context != 0 || stored->total_nframe != total || ((stored->flags & TA__LEAF_CUT_SHORT) != 0) != is_cut)
        report(self, "the leaf's end", kept, NULL);
}

void ta__check_kept(const struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint32_t leaf)
{
    int saved_errno = errno;
    __atomic_fetch_add(&check.kept, 1, __ATOMIC_RELAXED);
    const struct ta__source_leaf *stored = &ta__leaves()[leaf];
    struct frame frame = {ip, sp, fp};
    enum end end = WALK_ON;
    uint32_t context = stored->context;
    for (uint32_t i = 0; i < self->limit && end == WALK_ON; i++, context = ta__contexts()[context].parent) {
        uint64_t address = frame.ip >> 63 != 0 ? (frame.ip & ~TA__IP_INTERRUPTED) + 1 : frame.ip;
        const struct ta__source_context *node = &ta__contexts()[context];
        if (context == 0 || node->address != address || !is_module_of(address, node->module)) {
            report(self, "a fresh walk, by a stack that was kept,", i, &frame);
            break;
        }
        end = step(self, &frame);
    }
    if (context != 0 || (end != WALK_ON && ((stored->flags & TA__LEAF_CUT_SHORT) != 0) != (end > WALK_ENDS)))
        report(self, "a fresh walk, at the end of a stack that was kept,", 0, &frame);
    errno = saved_errno;
}

void ta__check_capture(struct ta__thread *self, uintptr_t ip, uintptr_t sp, uintptr_t fp)
{
    if (self->depth == 0)
        return; /* on a stack of no thread */
    int saved_errno = errno;
    __atomic_fetch_add(&check.checked, 1, __ATOMIC_RELAXED);
    compare_with_fresh(self, (struct frame){ip, sp, fp});
    compare_with_libunwind(self);
    compare_with_leaf(self);
    errno = saved_errno;
}

#endif
