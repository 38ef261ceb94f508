/* address_report.c: what tracealloc/image.h answers about one address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/memory_image.h"
#include "analysis/image/pointer_paths.h"
#include "snapshot/read/read.h"

struct ta_why {
    struct ta_image *image;
    struct ta_place place, neighbours[2];
    int has_neighbour[2];
    uint32_t slot; /* of the block; UINT32_MAX = it is in none */
    struct ta__paths paths;
};

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void describe_block(struct ta_image *image, uint32_t slot, struct ta_place *place)
{
    const struct ta__block_graph *graph = image->graph;
    uint32_t rank = ta__graph_rank(graph, slot), trace = graph->traces[rank];
    uint64_t word;
    place->kind = TA_PLACE_BLOCK;
    place->start = ta__graph_address(graph, slot);
    place->size = ta__graph_size(graph, rank);
    place->offset = place->address - place->start;
    place->trace = trace < ta__snapshot_view(image->snapshot)->trace_count ? (long)trace : -1;
    if (place->address < place->start)
        place->kind = TA_PLACE_HEADER;
    else if (place->offset >= (place->size > 0 ? place->size : 1))
        place->kind = TA_PLACE_BEHIND;
    if (place->size >= 8 && ta__target_word(&image->target, place->start, &word) == 0)
        ta__name_of_class(image->names, word, place->type, sizeof place->type);
}

/* Which slots of the page are in a list of free blocks, or were never used: the others are in use. */
static uint64_t *free_slots(struct ta_image *image, const struct ta__heap_page *page)
{
    uint64_t *bits = ta__new_array((size_t)page->slots / 64 + 1, sizeof *bits);
    for (size_t list = 0; list < 3 && bits != NULL; list++) {
        uint64_t block = page->lists[list];
        for (uint32_t steps = 0; block != 0 && steps < page->slots; steps++) {
            uint64_t distance = block - page->start, slot = distance / page->stride;
            if (block < page->start || slot >= page->slots || distance % page->stride != 0)
                break;
            bits[slot / 64] |= UINT64_C(1) << slot % 64;
            if (ta__target_word(&image->target, block, &block) != 0)
                break;
        }
    }
    return bits;
}

static void describe_slot(struct ta_image *image, const struct ta__heap_page *page, uint32_t number,
                          const uint64_t *unused, struct ta_place *place)
{
    uint32_t slot = page->first_slot + number;
    if (ta__graph_is_live(image->graph, slot)) {
        describe_block(image, slot, place);
        return;
    }
    int is_free = (page->flags & TA__HEAP_PAGE_HEADERS) == 0 || unused == NULL || ta__bit(unused, number);
    place->kind = is_free ? TA_PLACE_FREE : TA_PLACE_DAMAGED;
    place->start = page->start + (uint64_t)number * page->stride;
    place->size = page->stride;
    place->offset = place->address - place->start;
}

static void find_neighbours(struct ta_why *why, const struct ta__heap_page *page, uint32_t number,
                            const uint64_t *unused)
{
    for (int side = 0; side < 2; side++) {
        struct ta_place *place = &why->neighbours[side];
        for (int64_t at = (int64_t)number + (side == 0 ? -1 : 1); at >= 0 && at < page->slots;
             at += side == 0 ? -1 : 1) {
            *place = (struct ta_place){.trace = -1, .address = page->start + (uint64_t)at * page->stride};
            describe_slot(why->image, page, (uint32_t)at, unused, place);
            if (place->kind == TA_PLACE_FREE)
                continue;
            if (place->kind != TA_PLACE_DAMAGED)
                place->kind = TA_PLACE_BLOCK;
            place->address = place->start;
            place->offset = 0;
            why->has_neighbour[side] = 1;
            break;
        }
    }
}

static void describe_page_address(struct ta_why *why, const struct ta__heap_page *page)
{
    struct ta_image *image = why->image;
    struct ta_place *place = &why->place;
    uint32_t number = (uint32_t)((place->address - page->start) / page->stride);
    place->kind = TA_PLACE_ALLOCATOR;
    place->start = page->start;
    place->size = page->stride * page->reserved;
    place->offset = place->address - page->start;
    if (number >= page->slots || (page->flags & TA__HEAP_PAGE_OWN) != 0)
        return;
    uint64_t *unused = free_slots(image, page);
    describe_slot(image, page, number, unused, place);
    find_neighbours(why, page, number, unused);
    if (place->kind == TA_PLACE_BLOCK || place->kind == TA_PLACE_BEHIND || place->kind == TA_PLACE_HEADER)
        why->slot = page->first_slot + number;
    free(unused);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static size_t thread_of_stack(const struct ta__target *target, const struct ta__region *region)
{
    if ((region->flags & TA__REGION_FILE) != 0)
        return SIZE_MAX;
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].sp >= region->start && target->threads[i].sp < region->end)
            return i;
    return SIZE_MAX;
}

static void describe_nothing(const struct ta__target *target, struct ta_place *place)
{
    size_t next = ta__target_region_from(target, place->address);
    place->kind = TA_PLACE_NOTHING;
    if (place->address < 65536)
        snprintf(place->name, sizeof place->name, "a null pointer, or a member of what it should point to");
    else if (next < target->region_count && target->regions[next].start - place->address < (1 << 20) &&
             thread_of_stack(target, &target->regions[next]) != SIZE_MAX)
        snprintf(place->name, sizeof place->name, "just below the stack of thread %u: too deep a recursion?",
                 target->threads[thread_of_stack(target, &target->regions[next])].tid);
}

static void describe_address(struct ta_image *image, struct ta_place *place)
{
    struct ta__target *target = &image->target;
    const struct ta__region *region = ta__target_region(target, place->address);
    const struct ta__object_file *object = ta__target_object(target, place->address);
    if (region == NULL || (region->flags & (TA__REGION_READ | TA__REGION_WRITE | TA__REGION_EXECUTE)) == 0) {
        describe_nothing(target, place);
        return;
    }
    size_t thread = thread_of_stack(target, region);
    const char *path = ta__target_string(target, region->path != 0 ? region->path : region->name);
    place->start = region->start;
    place->size = region->end - region->start;
    place->offset = place->address - region->start;
    place->kind = TA_PLACE_MAPPING;
    snprintf(place->name, sizeof place->name, "%.250s", path);
    if (object != NULL) {
        char symbol[200];
        place->kind = (region->flags & TA__REGION_EXECUTE) != 0 ? TA_PLACE_CODE : TA_PLACE_DATA;
        place->start = object->start;
        place->size = object->end - object->start;
        place->offset = place->address - object->start;
        ta__name_of_address(image->names, place->address, symbol, sizeof symbol);
        const char *file = ta__target_string(target, object->path), *slash = strrchr(file, '/');
        file = slash != NULL ? slash + 1 : file;
        if (symbol[0] != '\0')
            snprintf(place->name, sizeof place->name, "%s (%.40s)", symbol, file);
        else
            snprintf(place->name, sizeof place->name, "%.40s+0x%llx", file, (unsigned long long)place->offset);
    } else if (thread != SIZE_MAX) {
        place->kind = TA_PLACE_STACK;
        place->thread = target->threads[thread].tid;
        ta__name_of_frame(image->names, thread, place->address, place->name, sizeof place->name);
    }
}

static void describe(struct ta_why *why)
{
    struct ta_image *image = why->image;
    struct ta_place *place = &why->place;
    uint64_t end = UINT64_MAX;
    const struct ta__heap_page *page = NULL;
    switch (ta__heap_owner(&image->pages, place->address, &end)) {
    case TA__OWNER_PAGE:
        page = ta__heap_page_near(&image->pages, place->address);
        place->kind = TA_PLACE_ALLOCATOR;
        if (page != NULL)
            describe_page_address(why, page);
        break;
    case TA__OWNER_ARENA:
        place->kind = TA_PLACE_ALLOCATOR;
        break;
    case TA__OWNER_TABLES:
        place->kind = TA_PLACE_TABLES;
        break;
    default:
        describe_address(image, place);
        break;
    }
}

static void describe_root(struct ta_image *image, const struct ta__root *root, struct ta_place *place)
{
    static const char *const registers[] = {"r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10",
                                            "r9",  "r8",  "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax"};
    *place = (struct ta_place){.address = root->address, .trace = -1};
    if (root->thread == 0) {
        describe_address(image, place);
        return;
    }
    place->kind = TA_PLACE_REGISTER;
    place->thread = image->target.threads[root->thread - 1].tid;
    if (root->address < sizeof registers / sizeof *registers)
        snprintf(place->name, sizeof place->name, "%s", registers[root->address]);
}

/* ---- the answers ------------------------------------------------------------------------------------------------- */

struct ta_why *ta_image_why(struct ta_image *image, uint64_t address)
{
    if (image->graph == NULL || !image->graph->keeps_places || image->names == NULL) {
        ta__fail("the image was not opened for questions about addresses");
        return NULL;
    }
    struct ta_why *why = ta__new_array(1, sizeof *why);
    if (why == NULL)
        return NULL;
    why->image = image;
    why->slot = UINT32_MAX;
    why->place = (struct ta_place){.address = address, .trace = -1};
    describe(why);
    if (why->slot != UINT32_MAX && ta__paths_find(&why->paths, image->graph, why->slot) != 0) {
        ta_why_free(why);
        return NULL;
    }
    return why;
}

void ta_why_free(struct ta_why *why)
{
    if (why == NULL)
        return;
    ta__paths_free(&why->paths);
    free(why);
}

void ta_why_place(const struct ta_why *why, struct ta_place *place)
{
    *place = why->place;
}

int ta_why_neighbour(const struct ta_why *why, int side, struct ta_place *place)
{
    int index = side > 0;
    if (!why->has_neighbour[index])
        return -1;
    *place = why->neighbours[index];
    return 0;
}

uint64_t ta_why_referrer_count(const struct ta_why *why)
{
    return why->paths.total;
}

static void describe_pointer(const struct ta_why *why, uint32_t slot, uint64_t offset, struct ta_place *place)
{
    *place = (struct ta_place){.address = ta__graph_address(why->image->graph, slot) + offset, .trace = -1};
    describe_block(why->image, slot, place);
}

int ta_why_referrer(const struct ta_why *why, size_t index, struct ta_place *place)
{
    if (index >= why->paths.count)
        return -1;
    const struct ta__referrer *referrer = &why->paths.referrers[index];
    if (referrer->slot == UINT32_MAX)
        describe_root(why->image, &referrer->root, place);
    else
        describe_pointer(why, referrer->slot, referrer->offset, place);
    return 0;
}

int ta_why_is_reached(const struct ta_why *why)
{
    return why->paths.count > 0 && why->paths.referrers[0].steps != UINT32_MAX;
}

size_t ta_why_path(const struct ta_why *why, size_t index, struct ta_place *steps, size_t max)
{
    struct ta__root root = {0};
    size_t length = ta__paths_way(&why->paths, index, NULL, 0, &root);
    uint32_t *slots = ta__new_array(length + 1, sizeof *slots);
    if (length == 0 || slots == NULL) {
        free(slots);
        return 0;
    }
    ta__paths_way(&why->paths, index, slots, length, &root);
    if (max > 0)
        describe_root(why->image, &root, &steps[0]);
    for (size_t i = 0; i < length && i + 1 < max; i++) {
        int is_last = i + 1 == length;
        int by_referrer = i + 2 == length;
        uint64_t offset = is_last       ? 0
                          : by_referrer ? why->paths.referrers[index].offset
                                        : ta__paths_offset(why->image->graph, slots[i], slots[i + 1]);
        describe_pointer(why, slots[i], offset, &steps[i + 1]);
    }
    free(slots);
    return length + 1;
}
