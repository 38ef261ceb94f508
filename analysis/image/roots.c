/* roots.c: see roots.h.
 *
 * What is dead must not count: of a thread's stack only what lies above its stack pointer (and the 128 bytes below it that
 * a leaf function may use); of the stacks that libc keeps for threads to come, nothing. */
#include "analysis/image/roots.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/image/memory_image.h"

enum { RED_ZONE = 128, AT_ONCE = 1 << 20 };

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

/* Where the live part of a thread's own stack begins; the region's start where it is none, or not known. Threads that run
 * on a stack of the program's making (coroutines) leave the whole mapping live. */
static uint64_t live_from(const struct ta__target *target, const struct ta__region *region)
{
    uint64_t from = UINT64_MAX;
    for (size_t i = 0; i < target->thread_count; i++) {
        const struct ta__target_thread *thread = &target->threads[i];
        int is_own =
            (region->flags & TA__REGION_STACK) != 0 || (thread->tls >= region->start && thread->tls < region->end);
        if (thread->register_count == 0 || thread->sp < region->start || thread->sp >= region->end)
            continue;
        uint64_t low = thread->sp - region->start > RED_ZONE ? thread->sp - RED_ZONE : region->start;
        from = is_own && low < from ? low : is_own ? from : region->start;
    }
    return from == UINT64_MAX ? region->start : from;
}

static int is_thread(const struct ta__target *target, uint64_t descriptor)
{
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].tls == descriptor)
            return 1;
    return 0;
}

/* libc puts a thread's descriptor at the upper end of its stack; it begins with its own address, twice. One that no
 * thread has is of a stack that libc keeps: of all that lies there it will use again the table of thread-local storage,
 * whose address is the word between. */
static int is_stack_in_waiting(struct ta__target *target, const struct ta__region *region, uint64_t *table)
{
    enum { LOOKED_AT = 16 << 10 };
    uint64_t words[LOOKED_AT / 8];
    int knows_threads = target->thread_count > 0 && target->threads[0].tls != 0;
    if (!knows_threads ||
        (region->flags & (TA__REGION_FILE | TA__REGION_SHARED | TA__REGION_WRITE)) != TA__REGION_WRITE ||
        region->end - region->start < LOOKED_AT ||
        ta__target_read(target, region->end - LOOKED_AT, words, LOOKED_AT) != 0)
        return 0;
    for (size_t i = 0; i + 2 < LOOKED_AT / 8; i += 8) {
        uint64_t address = region->end - LOOKED_AT + i * 8;
        if (words[i] == address && words[i + 2] == address) {
            *table = words[i + 1];
            return !is_thread(target, address);
        }
    }
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int may_hold_pointers(const struct ta__target *target, const struct ta__region *region)
{
    if ((region->flags & TA__REGION_READ) == 0 || (region->flags & TA__REGION_SPECIAL) != 0 ||
        (!target->is_core && region->rss == 0 && region->swap == 0))
        return 0;
    return (region->flags & (TA__REGION_SHARED | TA__REGION_WRITE)) != TA__REGION_SHARED;
}

/* The library's own data are no roots where it is a file of its own. What the program maps right behind them is one
 * mapping with them. */
static enum ta__memory_owner owner_of(const struct ta_image *image, uint64_t address, uint64_t *end)
{
    const struct ta__object_file *library = image->layout.object;
    if (library == NULL || address >= library->end ||
        ta__target_object(&image->target, image->target.entry_phdr) == library)
        return ta__heap_owner(&image->pages, address, end);
    uint64_t edge = address < library->start ? library->start : library->end;
    *end = edge < *end ? edge : *end;
    return edge == library->end ? TA__OWNER_TABLES : ta__heap_owner(&image->pages, address, end);
}

struct piece {
    struct ta__block_graph *graph;
    struct ta__target *target;
    uint8_t *bytes;
    int is_private_file; /* its pages are the file's as long as nobody wrote them */
};

/* Pages that are there, run by run. */
static int add_piece(const struct piece *piece, uint64_t start, uint64_t end)
{
    uint8_t states[AT_ONCE / TA__TARGET_PAGE + 1];
    uint64_t first = start & ~(uint64_t)(TA__TARGET_PAGE - 1);
    size_t pages = (size_t)((end - first + TA__TARGET_PAGE - 1) / TA__TARGET_PAGE);
    ta__target_pages(piece->target, first, pages, states);
    for (size_t i = 0, run; i < pages; i += run) {
        int is_wanted = states[i] != 0 && !(piece->is_private_file && (states[i] & TA__PAGE_FILE) != 0);
        for (run = 1; i + run < pages; run++) {
            uint8_t state = states[i + run];
            if ((state != 0 && !(piece->is_private_file && (state & TA__PAGE_FILE) != 0)) != is_wanted)
                break;
        }
        uint64_t from = first + i * TA__TARGET_PAGE, to = from + run * TA__TARGET_PAGE;
        from = from > start ? from : start;
        to = to < end ? to : end;
        if (is_wanted && ta__target_read(piece->target, from, piece->bytes, (size_t)(to - from)) == 0 &&
            ta__graph_add_roots(piece->graph, from, piece->bytes, (size_t)(to - from)) != 0)
            return -1;
    }
    return 0;
}

static int add_region(struct ta__block_graph *graph, struct ta_image *image, const struct ta__region *region,
                      uint8_t *bytes)
{
    const struct piece piece = {graph, &image->target, bytes,
                                (region->flags & TA__REGION_FILE) != 0 && (region->flags & TA__REGION_SHARED) == 0};
    uint64_t limit = image->target.is_core ? region->start + region->stored_bytes : region->end;
    for (uint64_t at = live_from(&image->target, region), end; at < limit; at = end) {
        end = limit;
        enum ta__memory_owner owner = owner_of(image, at, &end);
        if (owner != TA__OWNER_PROGRAM)
            continue;
        for (uint64_t from = at, to; from < end; from = to) {
            to = (from & ~(uint64_t)(AT_ONCE - 1)) + AT_ONCE;
            to = to < end ? to : end;
            if (add_piece(&piece, from, to) != 0)
                return -1;
        }
    }
    return 0;
}

/* In what order roots are added: of several that point to one block the first is remembered. Variables say most, registers
 * least. */
enum turn { DATA, MAPPINGS, STACKS, TURNS };

static enum turn turn_of(const struct ta__target *target, const struct ta__region *region)
{
    if (ta__target_object(target, region->start) != NULL)
        return DATA;
    return live_from(target, region) != region->start || (region->flags & TA__REGION_STACK) != 0 ? STACKS : MAPPINGS;
}

static int add_in_turn(struct ta__block_graph *graph, struct ta_image *image, enum turn turn, uint8_t *bytes)
{
    const struct ta__target *target = &image->target;
    int result = 0;
    for (size_t i = 0; i < target->region_count && result == 0; i++) {
        const struct ta__region *region = &target->regions[i];
        uint64_t table = 0;
        if (!may_hold_pointers(target, region) || turn_of(target, region) != turn)
            continue;
        if (is_stack_in_waiting(&image->target, region, &table))
            result = ta__graph_add_roots(graph, region->start, (const uint8_t *)&table, sizeof table);
        else
            result = add_region(graph, image, region, bytes);
    }
    return result;
}

int ta__roots_add(struct ta__block_graph *graph, struct ta_image *image)
{
    const struct ta__target *target = &image->target;
    uint8_t *bytes = ta__new_array(AT_ONCE, 1);
    int result = bytes == NULL ? -1 : 0;
    for (enum turn turn = DATA; turn < TURNS && result == 0; turn++)
        result = add_in_turn(graph, image, turn, bytes);
    for (size_t i = 0; i < target->thread_count && result == 0; i++)
        for (uint32_t k = 0; k < target->threads[i].register_count && result == 0; k++)
            result = ta__graph_add_register(graph, (uint32_t)i, k, target->threads[i].registers[k]);
    free(bytes);
    return result;
}
