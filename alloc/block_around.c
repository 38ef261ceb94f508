/* block_around.c: which block an address belongs to, for reports of what went wrong there (misuse.c, describe.c,
 * snapshot/triggers/crash.c). Looks at pages and headers alone; what they hold may be damaged, and then the answer is, or the look itself faults: who
 * cannot bear that looks first. */
#include "alloc/alloc.h"
#include "alloc/live_block.h"

/* How far behind a block an address still has to do with it, most likely. */
enum { BEHIND_MOST = 1 << 20 };

static int describe(const mi_page_t *page, uintptr_t address, struct ta__block_around *found)
{
    uintptr_t start = (uintptr_t)mi_page_start(page);
    size_t bytes = mi_page_block_size(page);
    if (address < start || bytes == 0 || page->capacity == 0)
        return 0;
    size_t index = (address - start) / bytes, last = page->capacity - 1u;
    uintptr_t block = start + (index < last ? index : last) * bytes, end = block + mi_page_usable_block_size(page);
    int has_header = ta__page_has_headers(page);
    uintptr_t usual = block + (has_header ? ta__page_header_size(page) : 0);
    uintptr_t user = has_header ? (uintptr_t)ta__forward_follow((void *)usual) : usual;
    struct ta__live_block live = {.leaf = 0};
    int is_live = user >= usual && user < end && ta__live_block((const void *)user, &live);
    if (!is_live)
        user = usual;
    *found = (struct ta__block_around){.user = user, .room = end - user, .is_live = is_live, .is_plain = !has_header};
    found->size = is_live ? live.size : found->room;
    if (is_live && (live.kind & TA__KIND_TRACED) != 0 && ta__trace_is_present(live.leaf))
        found->leaf = live.leaf;
    found->domain = live.domain;
    found->offset = (int64_t)(address - user);
    return found->offset < (int64_t)(found->room + BEHIND_MOST);
}

int ta__block_around(uintptr_t address, struct ta__block_around *found)
{
    enum { STEPS_MOST = 1 << 20 };
    uintptr_t slice = address & ~(uintptr_t)(MI_ARENA_SLICE_SIZE - 1);
    if (!ta__process_is_ready())
        return 0;
    const mi_page_t *page = ta__heap_page((const void *)address);
    if (page == NULL && address > BEHIND_MOST && !ta__heap_reaches((const void *)address) &&
        !ta__heap_reaches((const void *)(address - BEHIND_MOST)))
        return 0;
    /* Far inside of a large block, or behind one. */
    for (int steps = 0; page == NULL && slice >= MI_ARENA_SLICE_SIZE && steps < STEPS_MOST; steps++) {
        slice -= MI_ARENA_SLICE_SIZE;
        page = ta__heap_page((const void *)slice);
    }
    return page != NULL && describe(page, address, found);
}

int ta__live_block_around(uintptr_t address, struct ta__block_around *found)
{
    return ta__block_around(address, found) && found->is_live && !found->is_plain && found->offset >= 0 &&
           (size_t)found->offset < found->room;
}
