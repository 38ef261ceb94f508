/* live_block.c: see live_block.h. */
#include "alloc/live_block.h"

#include "alloc/domains/domains.h"
#include "trace/trace.h"

static int plain_block(const void *user, mi_page_t *page, struct ta__live_block *live)
{
    size_t distance = (uintptr_t)user - (uintptr_t)mi_page_start(page);
    if (distance % page->block_size != 0 || distance / page->block_size >= page->reserved)
        return 0;
    *live = (struct ta__live_block){.page = page,
                                    .block = (void *)(uintptr_t)user,
                                    .size = mi_page_usable_block_size(page),
                                    .kind = TA__KIND_PLAIN};
    return 1;
}

/* The page of a pointer that is not in front of its blocks; or NULL. */
static mi_page_t *page_with(const void *user)
{
    mi_page_t *page = ta__heap_page(user);
    return page != NULL && (const uint8_t *)user >= mi_page_start(page) ? page : NULL;
}

/* In a page with headers. 0: no live block begins there. */
static uint64_t live_mark(const void *user, const mi_page_t *page)
{
    if (((uintptr_t)user & 15) != 0 || (const uint8_t *)user < mi_page_start(page) + ta__page_header_size(page))
        return 0;
    uint64_t mark = ta__mark_of(user);
    return ta__mark_is_live(user, mark) ? mark : 0;
}

/* What needs no table; *marked is 0 where the page has no headers. */
static int look(const void *user, struct ta__live_block *live, uint64_t *marked)
{
    mi_page_t *page = page_with(user);
    *marked = 0;
    if (page == NULL)
        return 0;
    if (!ta__page_has_headers(page))
        return plain_block(user, page, live);
    size_t header = ta__page_header_size(page);
    uint64_t mark = live_mark(user, page);
    if (mark == 0)
        return 0;
    char *block = ta__page_block_around(page, user);
    uint32_t kind = ta__mark_kind(user, mark);
    size_t size = ta__mark_size(user, mark);
    size_t moved = (size_t)((const char *)user - block) - header;
    size_t room = mi_page_usable_block_size(page) - header - moved;
    if (size > room || (moved != 0) != ((kind & TA__KIND_ALIGNED) != 0) ||
        (mark >> TA__MARK_SIZE_BIT == TA__SIZE_ELSEWHERE) != (header == TA__LONG_HEADER))
        return 0;
    *live = (struct ta__live_block){.page = page, .block = block, .size = size, .kind = kind, .has_header = 1};
    *marked = mark;
    return 1;
}

int ta__block_alone(const void *user, struct ta__live_block *block)
{
    uint64_t mark;
    return look(user, block, &mark);
}

int ta__live_block(const void *user, struct ta__live_block *live)
{
    uint64_t mark;
    if (!look(user, live, &mark))
        return 0;
    uint32_t leaf = (live->kind & TA__KIND_TRACED) != 0 ? ta__mark_leaf(mark) : 0;
    if (leaf >= ta__leaf_capacity() && leaf != 0)
        return 0;
    uint32_t domain = leaf != 0 ? ta__leaf_domain(leaf) : (live->kind & TA__KIND_DOMAIN) != 0 ? ta__mark_leaf(mark) : 0;
    if (domain >= ta__domain_count())
        return 0;
    live->leaf = leaf;
    live->domain = domain;
    return 1;
}

void ta__live_block_rewrite(void *user, const struct ta__live_block *live, uint32_t kind, uint32_t leaf, size_t size)
{
    ta__header_write(user, ta__page_header_size(live->page) == TA__LONG_HEADER, ta__check_of_kind(kind), leaf, size);
}
