/* memory_report.c: what tracealloc/image.h answers about where memory goes. */
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/memory_image.h"
#include "analysis/statistics.h"
#include "snapshot/read/read.h"

static const struct {
    const char *name, *words;
} parts[TA__PARTS] = {
    [TA__PART_ASKED] = {"asked", "asked for by live blocks"},
    [TA__PART_ROUNDING] = {"rounding", "rounding up to block sizes"},
    [TA__PART_HEADERS] = {"headers", "headers of blocks"},
    [TA__PART_FREE] = {"free", "free blocks in pages in use"},
    [TA__PART_KEPT] = {"kept", "free pages kept for reuse"},
    [TA__PART_TABLES] = {"tables", "tracealloc itself: tables, code, data"},
    [TA__PART_STACKS] = {"stacks", "stacks of threads"},
    [TA__PART_CODE] = {"code", "code of the program and libraries"},
    [TA__PART_DATA] = {"data", "data of the program and libraries"},
    [TA__PART_FILES] = {"files", "files mapped"},
    [TA__PART_SHARED] = {"shared", "memory shared with others"},
    [TA__PART_OTHER] = {"other", "mapped by the program itself"},
};

size_t ta_image_memory_parts(const struct ta_image *image, struct ta_memory_part *rows, size_t max)
{
    const struct ta_memory_part beyond[] = {
        {"page_tables", "page tables (not in Rss)", image->target.page_table_bytes, 0},
        {"swap", "swapped out (not in Rss)", image->target.status_swap, 0},
    };
    if (image->memory == NULL)
        return 0;
    for (size_t i = 0; i < TA__PARTS && i < max; i++)
        rows[i] = (struct ta_memory_part){parts[i].name, parts[i].words, image->memory->parts[i], 1};
    for (size_t i = 0; i < 2 && TA__PARTS + i < max; i++)
        rows[TA__PARTS + i] = beyond[i];
    return image->target.is_core ? TA__PARTS : TA__PARTS + 2;
}

size_t ta_image_memory_mappings(const struct ta_image *image, struct ta_memory_mapping *mappings, size_t max)
{
    const struct ta__target *target = &image->target;
    if (image->memory == NULL)
        return 0;
    for (size_t i = 0; i < target->region_count && i < max; i++) {
        const struct ta__region *region = &target->regions[i];
        mappings[i] = (struct ta_memory_mapping){
            .start = region->start,
            .end = region->end,
            .rss = region->rss,
            .explained = image->memory->mappings[i],
            .swap = region->swap,
            .path = ta__target_string(target, region->path != 0 ? region->path : region->name),
            .part = parts[image->memory->kinds[i]].name,
            .rights = {(region->flags & TA__REGION_READ) != 0 ? 'r' : '-',
                       (region->flags & TA__REGION_WRITE) != 0 ? 'w' : '-',
                       (region->flags & TA__REGION_EXECUTE) != 0 ? 'x' : '-',
                       (region->flags & TA__REGION_SHARED) != 0 ? 's' : 'p', '\0'},
        };
    }
    return target->region_count;
}

/* ---- by stacks --------------------------------------------------------------------------------------------------- */

static void add_figures(struct ta_memory_figures *sum, const struct ta_memory_figures *figures)
{
    sum->blocks += figures->blocks;
    sum->asked += figures->asked;
    sum->occupied += figures->occupied;
    sum->resident += figures->resident;
    sum->pinned += figures->pinned;
}

/* A page goes back with a row when all its blocks are of that row's traces. */
static void add_pages(const struct ta__memory_parts *memory, const uint32_t *row_of_trace,
                      struct ta_memory_figures *figures)
{
    for (size_t i = 0; i < memory->page_count; i++) {
        const struct ta__used_page *page = &memory->pages[i];
        const uint32_t *traces = &memory->page_traces[page->first_trace];
        uint32_t row = row_of_trace[traces[0]], k = 1;
        while (k < page->trace_count && row_of_trace[traces[k]] == row)
            k++;
        if (k == page->trace_count)
            figures[row].back += page->resident;
    }
}

int ta_image_memory_rows(struct ta_image *image, const struct ta_statistics *statistics,
                         struct ta_memory_figures *figures)
{
    const struct ta__memory_parts *memory = image->memory;
    const struct ta__groups *groups = &statistics->groups;
    if (memory == NULL || groups->group_of_trace == NULL)
        return ta__fail(memory == NULL ? "the image was not opened for questions about memory"
                                       : "cumulative statistics have no figures of memory");
    uint32_t *row_of_group = ta__new_array(groups->count + 1, sizeof *row_of_group);
    uint32_t *row_of_trace = ta__new_array((size_t)memory->trace_count + 1, sizeof *row_of_trace);
    int result = row_of_group == NULL || row_of_trace == NULL ? -1 : 0;
    if (result == 0) {
        memset(figures, 0, (groups->count + 1) * sizeof *figures);
        for (size_t row = 0; row < groups->count; row++)
            row_of_group[statistics->rows[row] - groups->items] = (uint32_t)row;
        for (uint32_t trace = 0; trace <= memory->trace_count; trace++) {
            int has_row = trace < memory->trace_count && trace < groups->trace_count;
            row_of_trace[trace] = has_row ? row_of_group[groups->group_of_trace[trace]] : (uint32_t)groups->count;
            add_figures(&figures[row_of_trace[trace]], &memory->figures[trace]);
        }
        add_pages(memory, row_of_trace, figures);
    }
    free(row_of_group);
    free(row_of_trace);
    return result;
}

static uint64_t measured(const struct ta_memory_figures *figures, enum ta_memory_measure measure)
{
    switch (measure) {
    case TA_MEMORY_OCCUPIED:
        return figures->occupied;
    case TA_MEMORY_RESIDENT:
        return figures->resident;
    case TA_MEMORY_PINNED:
        return figures->pinned;
    case TA_MEMORY_BACK:
        return figures->back;
    default:
        return figures->asked;
    }
}

struct ta_snapshot *ta_image_memory_snapshot(struct ta_image *image, enum ta_memory_measure measure)
{
    const struct ta__view *from = ta__snapshot_view(image->snapshot);
    if (image->memory == NULL)
        ta__fail("the image was not opened for questions about memory");
    if (from == NULL || image->memory == NULL)
        return NULL;
    struct ta__view view = *from;
    struct ta__view_trace *traces = ta__new_array((size_t)view.trace_count + 1, sizeof *traces);
    if (traces == NULL)
        return NULL;
    for (uint32_t i = 0; i < view.trace_count; i++) {
        traces[i] = from->traces[i];
        traces[i].size = i < image->memory->trace_count ? measured(&image->memory->figures[i], measure) : 0;
        traces[i].count = i < image->memory->trace_count ? image->memory->figures[i].blocks : 0;
        traces[i].allocated_bytes = traces[i].allocated_blocks = traces[i].peak_bytes = 0;
    }
    view.traces = traces;
    view.gone_trace_count = view.block_count = view.has_blocks = 0;
    struct ta_snapshot *snapshot = ta__snapshot_from_view(&view, NULL);
    free(traces);
    return snapshot;
}
