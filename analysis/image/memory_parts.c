/* memory_parts.c: see memory_parts.h. */
#include "analysis/image/memory_parts.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/image/memory_image.h"

int ta__memory_look(struct ta__memory_parts *memory, struct ta_image *image)
{
    return ta__resident_read(&memory->resident, &image->target);
}

int ta__memory_open(struct ta__memory_parts *memory, struct ta_image *image, uint32_t trace_count)
{
    memory->trace_count = trace_count;
    memory->figures = ta__new_array((size_t)trace_count + 1, sizeof *memory->figures);
    memory->pinned = ta__new_array((size_t)trace_count + 1, sizeof *memory->pinned);
    memory->seen = ta__new_array((size_t)trace_count + 1, sizeof *memory->seen);
    memory->mappings = ta__new_array(image->target.region_count + 1, sizeof *memory->mappings);
    memory->kinds = ta__new_array(image->target.region_count + 1, sizeof *memory->kinds);
    return memory->figures == NULL || memory->pinned == NULL || memory->seen == NULL || memory->mappings == NULL ||
                   memory->kinds == NULL
               ? -1
               : 0;
}

void ta__memory_free(struct ta__memory_parts *memory)
{
    free(memory->figures);
    free(memory->pinned);
    free(memory->seen);
    free(memory->mappings);
    free(memory->kinds);
    free(memory->pages);
    free(memory->page_traces);
    ta__resident_free(&memory->resident);
    memset(memory, 0, sizeof *memory);
}

/* ---- pages of the allocator -------------------------------------------------------------------------------------- */

static int note_trace(struct ta__memory_parts *memory, struct ta__used_page *page, uint32_t trace)
{
    uint32_t stamp = (uint32_t)memory->page_count + 1;
    if (memory->seen[trace] == stamp)
        return 0;
    memory->seen[trace] = stamp;
    if (ta__grow(&memory->page_traces, &memory->page_trace_capacity, memory->page_trace_count + 1,
                 sizeof *memory->page_traces) != 0)
        return -1;
    memory->page_traces[memory->page_trace_count++] = trace;
    page->trace_count++;
    return 0;
}

/* What of a block is in memory; answers all of it. */
static uint64_t add_block(struct ta__memory_parts *memory, const struct ta__heap_page *page,
                          const struct ta__page_block *block, struct ta_memory_figures *figures, int is_whole)
{
    uint64_t start = page->start + block->slot * page->stride, user = start + block->offset;
    uint64_t room = page->stride - block->offset, size = block->size < room ? block->size : room;
    uint64_t header = block->offset, asked = size, rest = room - size;
    if (!is_whole) {
        header = ta__resident_bytes(&memory->resident, start, user);
        asked = ta__resident_bytes(&memory->resident, user, user + size);
        rest = ta__resident_bytes(&memory->resident, user + size, start + page->stride);
    }
    memory->parts[TA__PART_HEADERS] += header;
    memory->parts[TA__PART_ASKED] += asked;
    memory->parts[TA__PART_ROUNDING] += rest;
    figures->blocks++;
    figures->asked += block->size;
    figures->occupied += page->stride;
    figures->resident += header + asked + rest;
    return header + asked + rest;
}

int ta__memory_add_page(struct ta__memory_parts *memory, struct ta_image *image, const struct ta__heap_page *page,
                        const struct ta__page_block *blocks, const uint32_t *traces, uint32_t count)
{
    (void)image;
    struct ta__range extent = ta__heap_page_extent(page);
    uint64_t resident = ta__resident_bytes(&memory->resident, extent.start, extent.end), used = 0;
    if (count == 0) {
        memory->parts[(page->flags & TA__HEAP_PAGE_OWN) != 0 ? TA__PART_TABLES : TA__PART_KEPT] += resident;
        return 0;
    }
    if (ta__grow(&memory->pages, &memory->page_capacity, memory->page_count + 1, sizeof *memory->pages) != 0)
        return -1;
    struct ta__used_page *row = &memory->pages[memory->page_count];
    *row = (struct ta__used_page){.resident = resident, .first_trace = (uint32_t)memory->page_trace_count};
    int is_whole = resident == extent.end - extent.start;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t trace = traces[i] < memory->trace_count ? traces[i] : memory->trace_count;
        used += add_block(memory, page, &blocks[i], &memory->figures[trace], is_whole);
        if (note_trace(memory, row, trace) != 0)
            return -1;
    }
    uint64_t unused = resident > used ? resident - used : 0;
    memory->parts[TA__PART_FREE] += unused;
    double share = (double)unused / count;
    for (uint32_t i = 0; i < count; i++)
        memory->pinned[traces[i] < memory->trace_count ? traces[i] : memory->trace_count] += share;
    memory->page_count++;
    return 0;
}

/* ---- the rest of the process ------------------------------------------------------------------------------------- */

static int is_stack(const struct ta__target *target, const struct ta__region *region)
{
    if ((region->flags & TA__REGION_STACK) != 0)
        return 1;
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].sp >= region->start && target->threads[i].sp < region->end)
            return (region->flags & TA__REGION_FILE) == 0;
    return 0;
}

/* What a mapping is at an address where nothing of ours is in it. */
static enum ta__part kind_at(const struct ta_image *image, const struct ta__region *region, uint64_t address)
{
    const struct ta__target *target = &image->target;
    const struct ta__object_file *library = image->layout.object;
    const struct ta__object_file *object = ta__target_object(target, address);
    int is_object = object != NULL &&
                    (region->path == 0 || object->path == region->path ||
                     strcmp(ta__target_string(target, object->path), ta__target_string(target, region->path)) == 0);
    int is_library = object != NULL && object == library && ta__target_object(target, target->entry_phdr) != library;
    /* Where the library is a file of its own, all that it has is ours. */
    if (is_object && is_library)
        return TA__PART_TABLES;
    if (is_object)
        return (region->flags & TA__REGION_WRITE) != 0 ? TA__PART_DATA : TA__PART_CODE;
    if ((region->flags & TA__REGION_SPECIAL) != 0)
        return TA__PART_CODE;
    if ((region->flags & TA__REGION_FILE) != 0) {
        const char *path = ta__target_string(target, region->path);
        int is_memory =
            strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/SYSV", 5) == 0;
        return is_memory && (region->flags & TA__REGION_SHARED) != 0 ? TA__PART_SHARED : TA__PART_FILES;
    }
    if ((region->flags & TA__REGION_SHARED) != 0)
        return TA__PART_SHARED;
    return is_stack(target, region) ? TA__PART_STACKS : TA__PART_OTHER;
}

static int part_of(enum ta__memory_owner owner, enum ta__part own)
{
    switch (owner) {
    case TA__OWNER_PAGE:
        return -1; /* its parts are known */
    case TA__OWNER_ARENA:
        return TA__PART_KEPT;
    case TA__OWNER_TABLES:
        return TA__PART_TABLES;
    default:
        return (int)own;
    }
}

static void explain_region(struct ta__memory_parts *memory, const struct ta_image *image, size_t number)
{
    const struct ta__region *region = &image->target.regions[number];
    uint64_t by_part[TA__PARTS + 1] = {0}, most = 0;
    for (uint64_t at = region->start; at < region->end;) {
        /* What the program maps right behind an object's data is one mapping with them. */
        const struct ta__object_file *object = ta__target_object(&image->target, at);
        uint64_t end = object != NULL && object->end < region->end ? object->end : region->end;
        int part = part_of(ta__heap_owner(&image->pages, at, &end), kind_at(image, region, at));
        uint64_t bytes = ta__resident_bytes(&memory->resident, at, end);
        if (part >= 0)
            memory->parts[part] += bytes;
        by_part[part < 0 ? TA__PARTS : part] += bytes;
        memory->mappings[number] += bytes;
        at = end;
    }
    memory->kinds[number] = (uint8_t)kind_at(image, region, region->start);
    for (int i = 0; i <= TA__PARTS; i++)
        if (by_part[i] > most) {
            most = by_part[i];
            memory->kinds[number] = (uint8_t)(i == TA__PARTS ? TA__PART_ASKED : i);
        }
}

int ta__memory_finish(struct ta__memory_parts *memory, struct ta_image *image)
{
    for (size_t i = 0; i < image->target.region_count; i++)
        if (image->target.regions[i].rss != 0)
            explain_region(memory, image, i);
    for (size_t i = 0; i < memory->page_count; i++) {
        const struct ta__used_page *page = &memory->pages[i];
        if (page->trace_count == 1)
            memory->figures[memory->page_traces[page->first_trace]].back += page->resident;
    }
    for (uint32_t i = 0; i <= memory->trace_count; i++)
        memory->figures[i].pinned = (uint64_t)(memory->pinned[i] + 0.5);
    free(memory->seen);
    free(memory->pinned);
    memory->seen = NULL;
    memory->pinned = NULL;
    ta__resident_free(&memory->resident);
    return 0;
}
