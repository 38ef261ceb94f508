/* reclaim.c: which contexts and leaves hold nothing any more, found out while everybody goes on.
 *
 * The work is done in small pieces by threads that have just met a new stack: who makes the tables grow keeps them
 * small. A round begins when the rows in use take more than the limit, and goes through these phases:
 *
 *   MARK     Each leaf whose blocks are all freed, as far as the counters say at this moment, is condemned: the index
 *            finds it no more without the lock. Who meets its stack meanwhile takes the lock and restores it.
 *   FORGET   The gate gets a new generation, which makes every thread forget its memo, its kept stacks and near leaves
 *            before its next operation (ta__trace_adapt). Waits until each thread has done so, or is seen outside after
 *            a barrier: its next operation will.
 *   SETTLE   From here on a condemned leaf can only be found under the lock. If its counters say that all is freed they
 *            say so for ever: nobody can add an allocation, and the frees are all there. It is settled; others are
 *            restored.
 *   QUIET    Waits until each thread was outside, or began to intern a stack, once more: an operation that was freeing
 *            such a leaf's last block, or a list for the peak that was being written, is over.
 *   SWEEP    Settled leaves become free numbers, and with them the contexts that only they held. What they had
 *            allocated in all goes to the leaf <forgotten> of their domain. Waits while a snapshot reads the tables.
 *
 * No thread waits for a round, and no piece takes longer than some hundred rows. A leaf that holds something in the
 * list for the peak stays. */
#include "trace/reclaim.h"

#include "base/atomics.h"
#include "base/safepoint.h"
#include "trace/counters.h"
#include "trace/peak.h"
#include "trace/interning.h"

enum { ROWS_AT_ONCE = 64, ROWS_FOR_ONE_THREAD = 2048, LIMIT_LEAST = 32 << 20, SHARE_OF_LIVE = 20, PAUSE_LEAST = 1024 };

enum phase { IDLE, MARK, FORGET, SETTLE, QUIET, SWEEP };

uint32_t ta__reclaim_round;

static struct ta__tables *const tables = &ta__tables;

/* Under the lock of the tables. */
static struct {
    enum phase phase;
    uint32_t next, end;  /* leaves that the phase still has to look at */
    int next_slot;       /* threads that it still waits for */
    uint32_t generation; /* of the gate, that threads are to have adapted to */
    int peak_is_quiet;
    uint32_t freed;      /* in this round */
    uint32_t since_last; /* stacks since the last round */
    uint32_t pause;      /* so many must come before a round where the tables are full */
    size_t limit;        /* as configured; 0: by what lives */
    size_t begin_at;     /* bytes in use from which on a round is considered */
} reclaim;

void ta__reclaim_set_limit(size_t bytes)
{
    reclaim.limit = bytes;
}

void ta__reclaim_abandon(void)
{
    reclaim.phase = IDLE;
    reclaim.begin_at = 0;
    reclaim.since_last = 0;
    reclaim.pause = 0;
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

static size_t limit_now(void)
{
    size_t live, peak;
    if (reclaim.limit != 0)
        return reclaim.limit;
    ta__counters_traced(&live, &peak);
    return live / SHARE_OF_LIVE > LIMIT_LEAST ? live / SHARE_OF_LIVE : LIMIT_LEAST;
}

/* What is in use after a round is what lives: the next one is worth it when half as much again has come. */
static void plan_next(void)
{
    size_t limit = limit_now();
    size_t grown = ta__tables_bytes_used() / 2 * 3;
    reclaim.begin_at = grown > limit ? grown : limit;
    reclaim.pause = tables->leaves_used / 2 + PAUSE_LEAST;
    reclaim.since_last = 0;
}

static int is_due(void)
{
    reclaim.since_last++;
    if (tables->is_full)
        return reclaim.since_last > reclaim.pause;
    if (ta__tables_bytes_used() <= reclaim.begin_at)
        return 0;
    size_t limit = limit_now();
    if (reclaim.begin_at < limit)
        reclaim.begin_at = limit;
    return ta__tables_bytes_used() > reclaim.begin_at;
}

/* ---- phases ------------------------------------------------------------------------------------------------------ */

static void enter(enum phase phase)
{
    reclaim.phase = phase;
    reclaim.next = tables->oldest_leaf;
    reclaim.next_slot = 0;
}

static void begin_forget(void)
{
    enter(FORGET);
    ta__leaf_index_note_old();
    ta__store_release(&ta__leaf_meaning, ta__leaf_meaning + 1);
    reclaim.generation = ta__gate_change(0, 0);
    ta__safepoint_barrier();
}

static void begin_quiet(void)
{
    enter(QUIET);
    reclaim.peak_is_quiet = 0;
    ta__store_release(&ta__reclaim_round, ta__reclaim_round + 1);
}

static void end_round(void)
{
    reclaim.phase = IDLE;
    if (reclaim.freed != 0)
        tables->is_full = 0;
    plan_next();
}

static void condemn_if_empty(uint32_t leaf)
{
    if (tables->leaf_states[leaf] == TA__LEAF_IN_USE && ta__leaf_is_of_stack(leaf) && ta__counters_are_settled(leaf))
        ta__leaf_condemn(leaf);
}

static void settle(uint32_t leaf)
{
    if (tables->leaf_states[leaf] != TA__LEAF_CONDEMNED)
        return;
    if (ta__counters_are_settled(leaf))
        ta__store_relaxed(&tables->leaf_states[leaf], (uint8_t)TA__LEAF_SETTLED);
    else
        ta__leaf_restore(leaf);
}

static int bequeath(uint32_t leaf, uint32_t heir)
{
    struct ta__source_counts counts;
    ta__counters_fold(leaf, 1, &counts);
    if (!ta__counters_bequeath(leaf, heir))
        return 0;
    if ((tables->leaves[leaf].flags & TA__LEAF_CUT_SHORT) != 0)
        ta__add_relaxed(&ta__trace_events.cut_short, counts.allocated_blocks);
    return 1;
}

static void sweep(uint32_t leaf)
{
    if (tables->leaf_states[leaf] != TA__LEAF_SETTLED)
        return;
    int is_old = leaf < ta__leaf_first;
    uint32_t heir = is_old ? 0 : ta__leaf_heir(tables->leaves[leaf].domain);
    if ((heir == 0 && !is_old) || ta__peak_of(leaf) != 0) {
        ta__leaf_restore(leaf);
        return;
    }
    if (reclaim.freed++ == 0)
        ta__store_relaxed(&tables->generation, tables->generation + 1);
    if (is_old)
        ta__leaf_drop_old(leaf);
    else if (bequeath(leaf, heir))
        ta__leaf_free(leaf);
    else
        ta__leaf_restore(leaf);
}

/* Some more leaves; 1: that was the last. */
static int go_through(void (*look)(uint32_t leaf))
{
    int threads = ta__safepoint_size() + 1;
    uint32_t rows = ROWS_FOR_ONE_THREAD / (uint32_t)threads;
    rows = rows > ROWS_AT_ONCE ? ROWS_AT_ONCE : rows + 1;
    for (; rows > 0 && reclaim.next < reclaim.end; rows--)
        look(reclaim.next++);
    return reclaim.next >= reclaim.end;
}

static int has_forgotten(const struct ta__thread *thread)
{
    int32_t ahead = (int32_t)((ta__load_acquire(&thread->adapted) - reclaim.generation) << 8); /* of 24 bits */
    return ahead >= 0;
}

static int was_quiet(const struct ta__thread *thread)
{
    return ta__load_acquire(&thread->quiet) == ta__reclaim_round;
}

/* Has every thread been seen outside, or done this? Each is looked at until it has. */
static int is_true_of_all(int (*has_done)(const struct ta__thread *thread))
{
    int used = ta__safepoint_size();
    for (; reclaim.next_slot < used; reclaim.next_slot++) {
        const struct ta__safepoint_member *member = ta__safepoint_member(reclaim.next_slot);
        if (ta__safepoint_is_present(reclaim.next_slot) && ta__safepoint_is_inside(member) &&
            !has_done((const struct ta__thread *)member))
            return 0;
    }
    return 1;
}

static int is_quiet(void)
{
    reclaim.peak_is_quiet |= !ta__peak_is_being_written();
    return is_true_of_all(was_quiet) && reclaim.peak_is_quiet;
}

void ta__reclaim_step(void)
{
    switch (reclaim.phase) {
    case IDLE:
        if (is_due()) {
            enter(MARK);
            reclaim.end = tables->leaf_count;
            reclaim.freed = 0;
        }
        break;
    case MARK:
        if (go_through(condemn_if_empty))
            begin_forget();
        break;
    case FORGET:
        if (is_true_of_all(has_forgotten)) {
            ta__leaf_index_drop_old();
            enter(SETTLE);
        }
        break;
    case SETTLE:
        if (go_through(settle))
            begin_quiet();
        break;
    case QUIET:
        if (is_quiet())
            enter(SWEEP);
        break;
    case SWEEP:
        if (!ta__tables_begin_reuse())
            break;
        if (go_through(sweep))
            end_round();
        ta__tables_end_reuse();
        break;
    }
}
