/* remembered_frees.c: see remembered_frees.h. A ring of records: a counter deals out the places, a record's turn says
 * whether it is whole. Frames are copied, because the leaf of a freed block may soon stand for another stack. */
#include "alloc/remembered_frees.h"

#include "base/atomics.h"
#include "base/memory.h"
#include "trace/capture.h"

static struct {
    struct ta__remembered_free *records;
    uint64_t capacity;
    uint64_t count; /* of all frees */
} ring;

int ta__frees_remember(void)
{
    size_t bytes = (size_t)ta__options.remember_frees * sizeof *ring.records;
    if (bytes == 0)
        return 1;
    ring.records = ta__memory_map(bytes);
    ring.capacity = ring.records != NULL ? ta__options.remember_frees : 0;
    return ring.records != NULL;
}

int ta__frees_are_remembered(void)
{
    return ring.capacity != 0;
}

static void copy_words(uint64_t *to, const uint64_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        ta__store_release(&to[i], ta__load_relaxed(&from[i])); /* not before the turn that says it is written */
}

/* A record that another thread is just writing, a whole round late, stays its. */
static void put(struct ta__remembered_free *record)
{
    uint64_t number = ta__add_relaxed(&ring.count, 1);
    struct ta__remembered_free *place = &ring.records[number % ring.capacity];
    uint64_t before = ta__load_relaxed(&place->turn);
    if ((before & 1) != 0 || !ta__cas_acq_rel(&place->turn, &before, 2 * number + 3))
        return;
    copy_words(&place->user, &record->user, sizeof *record - sizeof record->turn);
    ta__store_release(&place->turn, 2 * number + 2);
}

void ta__free_note(struct ta__thread *self, uint32_t gate, const void *user, const struct ta__live_block *live,
                   const struct ta__caller *caller)
{
    struct ta__remembered_free record = {.user = (uintptr_t)user, .thread = (uint64_t)self->tid, .is_again = 1};
    if (live != NULL) {
        record.is_again = 0;
        record.size = live->size;
        record.domain = live->domain;
        if ((live->kind & TA__KIND_TRACED) != 0 && ta__trace_is_present(live->leaf))
            ta__leaf_frames(live->leaf, record.allocated, TA__REMEMBERED_FRAMES);
    }
    int is_traced = (gate & TA__GATE_TRACING) != 0 && !self->no_trace;
    uint32_t leaf = is_traced ? ta__capture(self, caller->ip, caller->sp, caller->fp, 0) : 0;
    if (leaf == 0 || ta__leaf_frames(leaf, record.freed, TA__REMEMBERED_FRAMES) == 0)
        record.freed[0] = caller->ip;
    put(&record);
}

__attribute__((noinline)) void ta__free_remembering(void *user, struct ta__thread *self)
{
    (void)self;
    struct ta__caller caller = TA__CALLER();
    uint32_t gate;
    struct ta__thread *inside = user != NULL && !ta__emergency_owns(user) ? ta__begin(&gate) : NULL;
    if (inside != NULL) {
        struct ta__live_block live;
        int is_live = ta__live_block(user, &live);
        if (is_live || ta__heap_page(user) != NULL || ta__heap_reaches(user))
            ta__free_note(inside, gate, user, is_live ? &live : NULL, &caller);
        ta__end(inside, gate);
    }
    if (user != NULL)
        ta__release_for(user, &caller);
}

static int is_of(const struct ta__remembered_free *record, uintptr_t address, int is_again)
{
    uint64_t user = ta__load_relaxed(&record->user), size = ta__load_relaxed(&record->size);
    return (ta__load_relaxed(&record->is_again) != 0) == is_again && address >= user &&
           address - user <= size - (size > 0);
}

int ta__frees_recall(const void *address, int is_again, struct ta__remembered_free *found)
{
    uint64_t count = ta__load_acquire(&ring.count);
    for (uint64_t back = 0; back < count && back < ring.capacity; back++) {
        uint64_t number = count - 1 - back;
        struct ta__remembered_free *record = &ring.records[number % ring.capacity];
        if (ta__load_acquire(&record->turn) != 2 * number + 2 || !is_of(record, (uintptr_t)address, is_again))
            continue;
        copy_words(&found->turn, &record->turn, sizeof *record);
        /* adds nothing: its release half keeps the reads above from moving behind it */
        if (ta__add_acq_rel(&record->turn, 0) == 2 * number + 2)
            return 1;
    }
    return 0;
}
