/* heap_pages.c: see heap_pages.h. */
#include "analysis/image/heap_pages.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"

enum { PART_MOST = 1 << 16, PARTS_MOST = 1 << 20, ADDRESS_BITS = 47, METAS_MOST = 1 << 24 };
#define ADDRESS_END (UINT64_C(1) << ADDRESS_BITS)
#define PAGE_MOST   (UINT64_C(1) << 42)

struct reading {
    struct ta__heap_pages *pages;
    struct ta__target *target;
    const struct ta__layout *layout;
    uint64_t *metas; /* addresses of page descriptions */
    size_t meta_count, meta_capacity;
    uint64_t main_heap;
};

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static int add_range(struct ta__range **ranges, size_t *count, size_t *capacity, uint64_t start, uint64_t bytes)
{
    if (start == 0 || bytes == 0 || start >= ADDRESS_END || bytes > ADDRESS_END - start)
        return 0;
    if (ta__grow(ranges, capacity, *count + 1, sizeof **ranges) != 0)
        return -1;
    (*ranges)[(*count)++] = (struct ta__range){start, start + bytes};
    return 0;
}

static int add_own(struct reading *reading, uint64_t start, uint64_t bytes)
{
    struct ta__heap_pages *pages = reading->pages;
    return add_range(&pages->own, &pages->own_count, &pages->own_capacity, start, bytes);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct ta__range *left = a, *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

static int put_in_order(struct ta__range *ranges, size_t *count)
{
    if (ta__sort(ranges, *count, sizeof *ranges, compare_ranges) != 0)
        return -1;
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (kept > 0 && ranges[i].start <= ranges[kept - 1].end)
            ranges[kept - 1].end = ranges[i].end > ranges[kept - 1].end ? ranges[i].end : ranges[kept - 1].end;
        else
            ranges[kept++] = ranges[i];
    }
    *count = kept;
    return 0;
}

size_t ta__range_from(const struct ta__range *ranges, size_t count, uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int ta__range_holds(const struct ta__range *ranges, size_t count, uint64_t address)
{
    size_t at = ta__range_from(ranges, count, address);
    return at < count && ranges[at].start <= address;
}

/* ---- the table of pages ------------------------------------------------------------------------------------------ */

static int add_meta(struct reading *reading, uint64_t meta)
{
    if (reading->meta_count > 0 && reading->metas[reading->meta_count - 1] == meta)
        return 0;
    if (reading->meta_count == METAS_MOST)
        return ta__fail("the allocator's table of pages is damaged: too many pages");
    if (ta__grow(&reading->metas, &reading->meta_capacity, reading->meta_count + 1, sizeof *reading->metas) != 0)
        return -1;
    reading->metas[reading->meta_count++] = meta;
    return 0;
}

/* Calls visit for each word that is not zero. Most of the table is empty: what holds nothing is passed over at once. */
static int each_word(struct reading *reading, uint64_t address, uint64_t count,
                     int (*visit)(struct reading *reading, uint64_t word))
{
    enum { AT_ONCE = 2048, A_LITTLE = 256 };
    static const uint64_t zeros[A_LITTLE];
    uint64_t words[AT_ONCE];
    for (uint64_t done = 0; done < count; done += AT_ONCE) {
        size_t here = count - done < AT_ONCE ? (size_t)(count - done) : AT_ONCE;
        if (ta__target_read_sparse(reading->target, address + done * sizeof *words, words, here * sizeof *words) != 0)
            return ta__fail("the allocator's table of pages cannot be read at %llx", (unsigned long long)address);
        for (size_t i = 0; i < here; i++) {
            if (i % A_LITTLE == 0 && here - i >= A_LITTLE && memcmp(&words[i], zeros, sizeof zeros) == 0)
                i += A_LITTLE - 1;
            else if (words[i] != 0 && visit(reading, words[i]) != 0)
                return -1;
        }
    }
    return add_own(reading, address, count * sizeof *words);
}

static int read_part(struct reading *reading, uint64_t address)
{
    return each_word(reading, address, UINT64_C(1) << reading->layout->map_part_bits, add_meta);
}

static int read_map(struct reading *reading)
{
    const struct ta__layout *layout = reading->layout;
    uint64_t map = 0, count = 0;
    if (layout->map_part_bits > 16 || layout->slice_bits < 12 || layout->slice_bits > 24)
        return ta__fail("the allocator's table of pages has an impossible shape");
    if (ta__target_word(reading->target, layout->map, &map) != 0 ||
        ta__target_word(reading->target, layout->map_count, &count) != 0)
        return ta__fail("the allocator's table of pages is not in the memory at hand");
    if (map == 0)
        return 0; /* nothing was allocated yet */
    if (count > PARTS_MOST)
        return ta__fail("the allocator's table of pages is damaged");
    return each_word(reading, map, count, read_part);
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static uint64_t field(const uint8_t *bytes, uint64_t place, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, bytes + place, size);
    return value;
}

enum { META_MOST = 1024 };

static int check_shape(const struct ta__layout *layout)
{
    const uint64_t places[] = {layout->page_thread,      layout->page_free,       layout->page_local_free,
                               layout->page_thread_free, layout->page_used,       layout->page_capacity,
                               layout->page_reserved,    layout->page_block_size, layout->page_offset,
                               layout->page_heap};
    if (layout->page_bytes < 8 || layout->page_bytes > META_MOST)
        return -1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i] > layout->page_bytes - 8)
            return -1;
    return 0;
}

/* 1 when what the description says can be. */
static int describe(const struct reading *reading, uint64_t meta, const uint8_t *bytes, struct ta__heap_page *page)
{
    const struct ta__layout *layout = reading->layout;
    *page = (struct ta__heap_page){
        .start = meta + field(bytes, layout->page_offset, 4) * 8,
        .stride = field(bytes, layout->page_block_size, 8),
        .meta = meta,
        .heap = field(bytes, layout->page_heap, 8),
        .lists = {field(bytes, layout->page_free, 8), field(bytes, layout->page_local_free, 8),
                  field(bytes, layout->page_thread_free, 8) & ~UINT64_C(1)},
        .slots = (uint32_t)field(bytes, layout->page_capacity, 2),
        .reserved = (uint32_t)field(bytes, layout->page_reserved, 2),
        .used = (uint32_t)field(bytes, layout->page_used, 2),
    };
    if (page->stride < 8 || page->stride % 8 != 0 || page->stride > PAGE_MOST || page->start % 8 != 0 ||
        page->slots > page->reserved || page->reserved == 0 || page->start >= ADDRESS_END ||
        page->stride * page->reserved > PAGE_MOST || page->used > page->slots)
        return 0;
    uint64_t thread = field(bytes, layout->page_thread, 8);
    if (layout->can_trace && (page->heap == 0 || page->heap == reading->main_heap))
        page->flags |= TA__HEAP_PAGE_OWN;
    else if (layout->can_trace && (thread & layout->header_flag) != 0)
        page->flags |= TA__HEAP_PAGE_HEADERS;
    else if ((thread & layout->page_interior) != 0)
        page->flags |= TA__HEAP_PAGE_INTERIOR;
    if ((page->flags & TA__HEAP_PAGE_HEADERS) != 0)
        page->header = (uint32_t)(page->stride > layout->header_long_block ? layout->header_long : layout->header_mark);
    return ta__target_is_mapped(reading->target, page->start, ta__heap_page_reach(page));
}

static int add_page(struct ta__heap_pages *pages, const struct ta__heap_page *page)
{
    if (ta__grow(&pages->items, &pages->capacity, pages->count + 1, sizeof *pages->items) != 0)
        return -1;
    pages->items[pages->count++] = *page;
    return 0;
}

static int compare_words(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static int compare_pages(const void *a, const void *b)
{
    const struct ta__heap_page *left = a, *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

/* A page that was asked of the system alone has its description right in front; of others it is in an arena's tables. */
static int add_description(struct reading *reading, const struct ta__heap_page *page)
{
    const uint64_t slice = UINT64_C(1) << TA__SLICE_BITS;
    uint64_t start = page->meta & ~(slice - 1), end = page->start & ~(slice - 1);
    return start < end && end - start <= 16 * slice ? add_own(reading, start, end - start) : 0;
}

static int read_pages(struct reading *reading)
{
    uint8_t bytes[META_MOST];
    uint64_t last = 0;
    if (ta__sort(reading->metas, reading->meta_count, sizeof *reading->metas, compare_words) != 0)
        return -1;
    for (size_t i = 0; i < reading->meta_count; i++) {
        struct ta__heap_page page;
        uint64_t meta = reading->metas[i];
        if (meta == last)
            continue;
        last = meta;
        if (ta__target_peek(reading->target, meta, bytes, (size_t)reading->layout->page_bytes) != 0 ||
            !describe(reading, meta, bytes, &page))
            reading->pages->damaged++;
        else if (add_page(reading->pages, &page) != 0 || add_description(reading, &page) != 0)
            return -1;
    }
    return 0;
}

/* ---- memory of ours ---------------------------------------------------------------------------------------------- */

static int read_arenas(struct reading *reading)
{
    const struct ta__layout *layout = reading->layout;
    struct ta__heap_pages *pages = reading->pages;
    uint64_t count = 0, arena, slices;
    if (ta__target_word(reading->target, layout->arenas_count, &count) != 0 || count > layout->arenas_most)
        count = layout->arenas_most;
    for (uint64_t i = 0; i < count && i < 1024; i++) {
        uint64_t tables;
        if (ta__target_word(reading->target, layout->arenas + i * 8, &arena) != 0 || arena == 0 ||
            ta__target_word(reading->target, arena + layout->arena_slices, &slices) != 0 ||
            slices > ADDRESS_END >> layout->slice_bits ||
            ta__target_word(reading->target, arena + layout->arena_info_slices, &tables) != 0 || tables > slices)
            continue;
        if (add_range(&pages->arenas, &pages->arena_count, &pages->arena_capacity, arena,
                      slices << layout->slice_bits) != 0 ||
            add_range(&pages->tables, &pages->table_count, &pages->table_capacity, arena,
                      tables << layout->slice_bits) != 0)
            return -1;
    }
    return 0;
}

/* What base/memory.c of the library has mapped. */
static int read_regions(struct reading *reading)
{
    const struct ta__layout *layout = reading->layout;
    uint32_t used = 0;
    uint64_t address, bytes;
    if (layout->region_bytes < 16 || layout->region_bytes > 64 || layout->regions_chunk == 0 ||
        ta__target_half(reading->target, layout->regions_used, &used) != 0 || used > 1 << 20)
        return 0;
    for (uint32_t i = 0; i < used; i++) {
        uint64_t row;
        if (ta__target_word(reading->target, layout->regions_chunks + i / layout->regions_chunk * 8, &row) != 0)
            return 0;
        row += i % layout->regions_chunk * layout->region_bytes;
        if (ta__target_word(reading->target, row + layout->region_address, &address) != 0 ||
            ta__target_word(reading->target, row + layout->region_size, &bytes) != 0)
            return 0;
        uint64_t whole = (bytes + TA__TARGET_PAGE - 1) & ~(uint64_t)(TA__TARGET_PAGE - 1);
        if (address != 0 && add_own(reading, address, whole) != 0)
            return -1;
    }
    return 0;
}

/* ---- emergency memory -------------------------------------------------------------------------------------------- */

/* Its blocks begin at multiples of 32 and say their class, from which their size follows; so they can be walked from the
 * beginning (alloc/emergency.c). 0: no class has so large blocks. */
static uint64_t class_bytes(const struct ta__layout *layout, uint32_t class)
{
    enum { BITS_MOST = 40 };
    if (class / 4 + layout->emergency_first_bits > BITS_MOST)
        return 0;
    uint64_t bytes = (uint64_t)(4 + class % 4) << (class / 4 + layout->emergency_first_bits - 2);
    return (bytes + layout->emergency_grain - 1) / layout->emergency_grain * layout->emergency_grain;
}

/* Where the user's bytes begin. Blocks of earlier libraries say it in front of those bytes alone, where it is looked for at
 * the usual alignments; without one they follow the head. */
static uint64_t user_of(struct reading *reading, uint64_t block, uint64_t bytes)
{
    const struct ta__layout *layout = reading->layout;
    uint64_t back;
    uint32_t said;
    if (layout->emergency_offset != 0)
        return ta__target_half(reading->target, block + layout->emergency_offset, &said) == 0 &&
                       said >= layout->emergency_head && said < bytes
                   ? said
                   : layout->emergency_head;
    for (uint64_t offset = layout->emergency_head; offset <= 4096 && offset < bytes; offset *= 2) {
        uint64_t user = block + offset;
        if (ta__target_word(reading->target, user - 8, &back) == 0 && back == offset)
            return offset;
    }
    return layout->emergency_head;
}

static int read_emergency(struct reading *reading)
{
    const struct ta__layout *layout = reading->layout;
    uint64_t start = 0, used = 0, bytes;
    if (layout->emergency_start == 0 || layout->emergency_grain == 0 || layout->emergency_grain > TA__TARGET_PAGE ||
        layout->emergency_classes > 1024 || layout->emergency_first_bits < 2 || layout->emergency_first_bits > 16 ||
        layout->emergency_head < 16 || ta__target_word(reading->target, layout->emergency_start, &start) != 0 ||
        start == 0 || start >= ADDRESS_END || ta__target_word(reading->target, layout->emergency_used, &used) != 0 ||
        used > layout->emergency_bytes || used > UINT32_MAX)
        return 0;
    for (uint64_t at = 0; at < used; at += bytes) {
        uint32_t class, state;
        uint64_t size;
        if (ta__target_half(reading->target, start + at + layout->emergency_class, &class) != 0 ||
            class >= layout->emergency_classes ||
            ta__target_half(reading->target, start + at + layout->emergency_state, &state) != 0 ||
            ta__target_word(reading->target, start + at + layout->emergency_size, &size) != 0)
            return 0;
        bytes = class_bytes(layout, class);
        if (bytes == 0)
            return 0;
        if (state != layout->emergency_live || size > bytes)
            continue;
        uint64_t offset = user_of(reading, start + at, bytes);
        struct ta__heap_page page = {.start = start + at,
                                     .stride = bytes,
                                     .slots = 1,
                                     .reserved = 1,
                                     .used = 1,
                                     .flags = TA__HEAP_PAGE_SINGLE,
                                     .user_offset = offset,
                                     .user_size = size < bytes - offset ? size : bytes - offset};
        if (add_page(reading->pages, &page) != 0)
            return -1;
    }
    return 0;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int number_slots(struct ta__heap_pages *pages)
{
    size_t kept = 0;
    uint64_t slots = 0;
    for (size_t i = 0; i < pages->count; i++) {
        struct ta__heap_page *page = &pages->items[i];
        if (kept > 0 && page->start < ta__heap_page_reach(&pages->items[kept - 1])) {
            pages->damaged++;
            continue;
        }
        if (slots + page->slots > UINT32_MAX - 64)
            return ta__fail("more than four thousand million blocks");
        page->first_slot = (uint32_t)slots;
        page->reciprocal = UINT64_MAX / page->stride + 1;
        slots = (slots + page->slots + 63) & ~UINT64_C(63);
        pages->items[kept++] = *page;
    }
    pages->count = kept;
    pages->slot_count = (uint32_t)slots;
    pages->low = kept > 0 ? pages->items[0].start : 0;
    pages->high = kept > 0 ? ta__heap_page_reach(&pages->items[kept - 1]) : 0;
    return 0;
}

/* ---- by address -------------------------------------------------------------------------------------------------- */

static int enter_page(struct ta__heap_pages *pages, uint32_t number)
{
    const struct ta__heap_page *page = &pages->items[number];
    uint64_t base = pages->low >> TA__PART_BITS;
    for (uint64_t at = page->start >> TA__SLICE_BITS; at <= (ta__heap_page_reach(page) - 1) >> TA__SLICE_BITS; at++) {
        uint32_t *part = &pages->parts[(at >> (TA__PART_BITS - TA__SLICE_BITS)) - base];
        if (*part == 0) {
            if (pages->by_slice_count > UINT32_MAX - 2 * TA__PART_SLICES ||
                ta__grow(&pages->by_slice, &pages->by_slice_capacity, pages->by_slice_count + TA__PART_SLICES,
                         sizeof *pages->by_slice) != 0)
                return -1;
            memset(pages->by_slice + pages->by_slice_count, 0, TA__PART_SLICES * sizeof *pages->by_slice);
            *part = (uint32_t)pages->by_slice_count + 1;
            pages->by_slice_count += TA__PART_SLICES;
        }
        uint32_t *slice = &pages->by_slice[*part - 1 + (at & (TA__PART_SLICES - 1))];
        *slice = *slice == 0 ? number + 1 : TA__SLICE_MANY;
    }
    return 0;
}

static int enter_pages(struct ta__heap_pages *pages)
{
    size_t parts = (size_t)((pages->high >> TA__PART_BITS) - (pages->low >> TA__PART_BITS)) + 1;
    pages->parts = ta__new_array(parts, sizeof *pages->parts);
    if (pages->parts == NULL)
        return -1;
    for (size_t i = 0; i < pages->count; i++)
        if (enter_page(pages, (uint32_t)i) != 0)
            return -1;
    return 0;
}

int ta__heap_pages_read(struct ta__heap_pages *pages, struct ta__target *target, const struct ta__layout *layout)
{
    struct reading reading = {pages, target, layout, NULL, 0, 0, 0};
    memset(pages, 0, sizeof *pages);
    if (check_shape(layout) != 0)
        return ta__fail("the allocator's pages are of a shape that cannot be");
    int result = ta__target_word(target, layout->main_heap, &reading.main_heap) != 0
                     ? ta__fail("the allocator's heaps are not in the memory at hand")
                     : 0;
    if (result == 0)
        result = read_map(&reading);
    if (result == 0)
        result = read_pages(&reading);
    if (result == 0)
        result = read_emergency(&reading);
    if (result == 0)
        result = read_arenas(&reading);
    if (result == 0)
        result = read_regions(&reading);
    free(reading.metas);
    if (result == 0)
        result = ta__sort(pages->items, pages->count, sizeof *pages->items, compare_pages);
    if (result == 0)
        result = put_in_order(pages->own, &pages->own_count);
    if (result == 0)
        result = put_in_order(pages->arenas, &pages->arena_count);
    if (result == 0)
        result = put_in_order(pages->tables, &pages->table_count);
    if (result == 0)
        result = number_slots(pages);
    return result == 0 ? enter_pages(pages) : -1;
}

void ta__heap_pages_free(struct ta__heap_pages *pages)
{
    free(pages->items);
    free(pages->own);
    free(pages->arenas);
    free(pages->tables);
    free(pages->parts);
    free(pages->by_slice);
    memset(pages, 0, sizeof *pages);
}

/* The first page that reaches beyond the address. */
static size_t page_from(const struct ta__heap_pages *pages, uint64_t address)
{
    size_t low = 0, high = pages->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ta__heap_page_reach(&pages->items[middle]) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct ta__heap_page *ta__heap_page_search(const struct ta__heap_pages *pages, uint64_t address)
{
    size_t low = page_from(pages, address);
    const struct ta__heap_page *page = &pages->items[low];
    return low < pages->count && page->start <= address && address < ta__heap_page_end(page) ? page : NULL;
}

const struct ta__heap_page *ta__heap_page_of_slot(const struct ta__heap_pages *pages, uint32_t slot)
{
    size_t low = 0, high = pages->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pages->items[middle].first_slot + pages->items[middle].slots <= slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low < pages->count && pages->items[low].first_slot <= slot ? &pages->items[low] : NULL;
}

/* ---- whose an address is ----------------------------------------------------------------------------------------- */

static void cut_by_pages(const struct ta__heap_pages *pages, uint64_t at, enum ta__memory_owner *owner, uint64_t *end)
{
    size_t low = 0, high = pages->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ta__heap_page_extent(&pages->items[middle]).end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == pages->count)
        return;
    struct ta__range extent = ta__heap_page_extent(&pages->items[low]);
    uint64_t border = extent.start <= at ? extent.end : extent.start;
    *owner = extent.start <= at ? TA__OWNER_PAGE : *owner;
    *end = border < *end ? border : *end;
}

static void cut_by_ranges(const struct ta__range *ranges, size_t count, enum ta__memory_owner what, uint64_t at,
                          enum ta__memory_owner *owner, uint64_t *end)
{
    size_t i = ta__range_from(ranges, count, at);
    if (i == count)
        return;
    uint64_t border = ranges[i].start <= at ? ranges[i].end : ranges[i].start;
    if (ranges[i].start <= at && *owner == TA__OWNER_PROGRAM)
        *owner = what;
    *end = border < *end ? border : *end;
}

enum ta__memory_owner ta__heap_owner(const struct ta__heap_pages *pages, uint64_t address, uint64_t *end)
{
    enum ta__memory_owner owner = TA__OWNER_PROGRAM;
    cut_by_pages(pages, address, &owner, end);
    cut_by_ranges(pages->tables, pages->table_count, TA__OWNER_TABLES, address, &owner, end);
    cut_by_ranges(pages->arenas, pages->arena_count, TA__OWNER_ARENA, address, &owner, end);
    cut_by_ranges(pages->own, pages->own_count, TA__OWNER_TABLES, address, &owner, end);
    return owner;
}

const struct ta__heap_page *ta__heap_page_near(const struct ta__heap_pages *pages, uint64_t address)
{
    size_t low = page_from(pages, address);
    return low < pages->count && pages->items[low].start <= address ? &pages->items[low] : NULL;
}
