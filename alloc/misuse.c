/* misuse.c: wrong pointers given to free and realloc.
 *
 *      the pointer is …                          what happens
 *      in no page of ours                        ignored and counted: it may belong to another allocator; where the
 *                                                first was freed is kept for who asks (tracealloc run and info say it)
 *      in our memory, but no live block          one line; then abort, or leak with on_corruption=leak
 *      a block whose header was written over     the same; the block in front of it is named, whose end it was most likely
 *      the same where a destroyed domain was      one line for the first; ignored and counted
 *
 * The line says what the pointer most likely is. With tracing on, the stack that allocated the block it points into
 * follows; of a block that was freed, with remember_frees=N, who freed it and who had allocated it. */
#include "alloc/alloc.h"
#include "alloc/describe.h"
#include "alloc/header.h"
#include "alloc/heap.h"
#include "alloc/remembered_frees.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/message.h"
#include "trace/capture.h"

static struct {
    uint32_t is_begun, is_whole;
    struct ta__foreign_free first;
} foreign;

void ta__foreign(struct ta__thread *self, uint32_t gate, const void *user, const struct ta__caller *caller)
{
    enum { FRAMES = sizeof foreign.first.frames / sizeof *foreign.first.frames };
    ta__add_relaxed(&ta__trace_events.foreign_frees, 1);
    if (ta__load_relaxed(&foreign.is_begun) != 0 || __atomic_exchange_n(&foreign.is_begun, 1, __ATOMIC_RELAXED) != 0)
        return;
    foreign.first.user = (uintptr_t)user;
    int is_traced = caller != NULL && (gate & TA__GATE_TRACING) != 0 && !self->no_trace;
    uint32_t leaf = is_traced ? ta__capture(self, caller->ip, caller->sp, caller->fp, 0) : 0;
    if ((leaf == 0 || ta__leaf_frames(leaf, foreign.first.frames, FRAMES) == 0) && caller != NULL)
        foreign.first.frames[0] = caller->ip;
    ta__store_release(&foreign.is_whole, 1u);
}

int ta__foreign_first(struct ta__foreign_free *found)
{
    if (ta__load_acquire(&foreign.is_whole) == 0)
        return 0;
    *found = foreign.first;
    return 1;
}

static void send(struct ta__message *line, void *unused)
{
    (void)unused;
    ta__message_send(line);
}

static void say_stack(const char *heading, const uint64_t *frames, size_t count)
{
    struct ta__message message;
    if (count == 0 || frames[0] == 0)
        return;
    ta__message_begin_plain(&message);
    ta__message_text(&message, heading);
    ta__message_text(&message, " (most recent call first):");
    ta__message_send(&message);
    ta__describe_frames(frames, count, send, NULL);
}

void ta__misuse_dead(const char *call, void *user)
{
    static uint32_t said;
    ta__add_relaxed(&ta__trace_events.invalid_frees, 1);
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) != 0)
        return;
    struct ta__message message;
    ta__message_begin(&message);
    ta__message_text(&message, call);
    ta__message_text(&message, "(");
    ta__message_hex(&message, (uintptr_t)user);
    ta__message_text(&message, "): a block of a domain that was destroyed, or no block; ignored from now on");
    ta__message_send(&message);
}

/* What the pointer most likely is, behind "free(0x…): ". */
static void say_interior(struct ta__message *message, const struct ta__block_around *block)
{
    ta__message_text(message, "not the start of a block, ");
    ta__message_count(message, (uint64_t)block->offset, "byte");
    ta__message_text(message, " inside one of ");
    ta__message_number(message, block->size);
    if ((ta__gate_read() & TA__GATE_TRACING) == 0)
        ta__message_text(message, "; with TRACEALLOC=100 in the environment, it would say who allocated that");
}

static void say_freed(struct ta__message *message, const struct ta__remembered_free *freed)
{
    ta__message_text(message, "double free of a block of ");
    ta__message_count(message, freed->size, "byte");
    ta__message_text(message, ", which thread ");
    ta__message_number(message, freed->thread);
    ta__message_text(message, " has freed");
    if (freed->allocated[0] == 0)
        ta__message_text(message, "; with TRACEALLOC=100 in the environment, it would say who allocated it");
}

static void say_dead(struct ta__message *message)
{
    ta__message_text(message, "double free or damaged block");
    if (!ta__frees_are_remembered())
        ta__message_text(message, "; with remember_frees=100000 in TRACEALLOC_OPTIONS, it would say who freed it");
}

/* A block whose mark is neither a live one nor a free block's link: somebody wrote over it, most often who writes behind the
 * end of the block in front. 0: it is something else. */
static int is_written_over(const void *user, struct ta__block_around *in_front)
{
    struct ta__block_around block;
    uintptr_t address = (uintptr_t)user;
    const mi_page_t *page = ta__heap_page(user);
    in_front->is_live = 0;
    if (page == NULL || !ta__block_around(address, &block) || block.offset != 0 || block.is_live || block.is_plain ||
        ta__mark_of(user) >> TA__MARK_SIZE_BIT == 0)
        return 0;
    if (!ta__live_block_around(address - ta__page_header_size(page) - 1, in_front))
        in_front->is_live = 0;
    return 1;
}

static void say_written_over(struct ta__message *message, const struct ta__block_around *in_front)
{
    ta__message_text(message, "damaged block: what is in front of it was written over");
    if (!in_front->is_live)
        return;
    ta__message_text(message, ", most likely behind the end of a block of ");
    ta__message_count(message, in_front->size, "byte");
    if ((ta__gate_read() & TA__GATE_TRACING) == 0)
        ta__message_text(message, "; with TRACEALLOC=100 in the environment, it would say who allocated that");
}

void ta__misuse(const char *call, void *user)
{
    struct ta__block_around block;
    struct ta__remembered_free freed, again;
    int is_inside = ta__live_block_around((uintptr_t)user, &block) && block.offset != 0;
    int was_freed = !is_inside && ta__frees_recall(user, 0, &freed) && freed.user == (uintptr_t)user;
    struct ta__message message;
    ta__add_relaxed(&ta__trace_events.invalid_frees, 1);
    ta__message_begin(&message);
    ta__message_text(&message, call);
    ta__message_text(&message, "(");
    ta__message_hex(&message, (uintptr_t)user);
    ta__message_text(&message, "): ");
    if (is_inside)
        say_interior(&message, &block);
    else if (was_freed)
        say_freed(&message, &freed);
    else if (is_written_over(user, &block))
        say_written_over(&message, &block);
    else
        say_dead(&message);
    ta__message_send(&message);
    if (ta__frees_recall(user, 1, &again))
        say_stack("This free is at", again.freed, TA__REMEMBERED_FRAMES);
    if (was_freed) {
        say_stack("Freed before at", freed.freed, TA__REMEMBERED_FRAMES);
        say_stack("Allocated at", freed.allocated, TA__REMEMBERED_FRAMES);
    }
    if (!was_freed && block.is_live && block.leaf != 0) {
        uint64_t frames[TA__DESCRIBED_FRAMES];
        say_stack(is_inside ? "Memory block allocated at" : "The block in front was allocated at", frames,
                  ta__leaf_frames(block.leaf, frames, TA__DESCRIBED_FRAMES));
    }
    if (!ta__options.leak_on_corruption)
        abort();
}
