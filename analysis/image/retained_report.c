/* retained_report.c: what tracealloc/image.h answers about who holds what. */
#include "analysis/image/retained.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/memory_image.h"
#include "analysis/statistics.h"
#include "snapshot/read/read.h"

static const struct ta__dominators *dominators_of(struct ta_image *image)
{
    if (image->graph == NULL) {
        ta__fail("the image was not opened for questions about pointers");
        return NULL;
    }
    if (image->dominators != NULL)
        return image->dominators;
    struct ta__dominators *dominators = ta__new_array(1, sizeof *dominators);
    if (dominators == NULL)
        return NULL;
    if (ta__dominators_find(dominators, image->graph) == 0)
        return image->dominators = dominators;
    ta__dominators_free(dominators);
    free(dominators);
    return NULL;
}

/* The group of each trace of the snapshot; the last one is of blocks without a stack. */
static uint32_t *groups_of(const struct ta__groups *groups, uint32_t traces)
{
    uint32_t *group_of_trace = ta__new_array((size_t)traces + 1, sizeof *group_of_trace);
    for (uint32_t trace = 0; group_of_trace != NULL && trace <= traces; trace++)
        group_of_trace[trace] =
            trace < traces && trace < groups->trace_count ? groups->group_of_trace[trace] : (uint32_t)groups->count;
    return group_of_trace;
}

static void put_rows(const struct ta_statistics *statistics, const struct ta__retained_group *found,
                     struct ta_retained_row *rows)
{
    const struct ta__groups *groups = &statistics->groups;
    for (size_t row = 0; row <= groups->count; row++) {
        size_t number = row < groups->count ? (size_t)(statistics->rows[row] - groups->items) : row;
        rows[row] = (struct ta_retained_row){found[number].blocks, found[number].bytes, found[number].retained,
                                             found[number].is_exact};
    }
}

int ta_image_retained_rows(struct ta_image *image, const struct ta_statistics *statistics, struct ta_retained_row *rows)
{
    const struct ta__groups *groups = &statistics->groups;
    const struct ta__dominators *dominators = dominators_of(image);
    uint32_t traces = ta__snapshot_view(image->snapshot)->trace_count;
    if (dominators == NULL)
        return -1;
    if (groups->group_of_trace == NULL)
        return ta__fail("cumulative statistics do not say what holds what");
    uint32_t *group_of_trace = groups_of(groups, traces);
    struct ta__retained_group *found = ta__new_array(groups->count + 1, sizeof *found);
    int result =
        group_of_trace == NULL || found == NULL ||
                ta__retained_groups(dominators, group_of_trace, traces, found, (uint32_t)groups->count + 1) != 0
            ? -1
            : 0;
    if (result == 0)
        put_rows(statistics, found, rows);
    free(group_of_trace);
    free(found);
    return result;
}

long ta_image_retained_blocks(struct ta_image *image, struct ta_retained_block *blocks, size_t max)
{
    const struct ta__dominators *dominators = dominators_of(image);
    struct ta__retained_block *found = dominators != NULL ? ta__new_array(max + 1, sizeof *found) : NULL;
    if (found == NULL)
        return -1;
    size_t count = ta__retained_blocks(dominators, found, max);
    uint32_t traces = ta__snapshot_view(image->snapshot)->trace_count;
    for (size_t i = 0; i < count; i++) {
        uint32_t rank = ta__graph_rank(image->graph, found[i].slot), trace = image->graph->traces[rank];
        uint64_t word;
        blocks[i] = (struct ta_retained_block){
            .block = {ta__graph_address(image->graph, found[i].slot), ta__graph_size(image->graph, rank),
                      trace < traces ? (long)trace : -1},
            .retained = found[i].bytes,
        };
        if (image->names != NULL && blocks[i].block.size >= 8 &&
            ta__target_word(&image->target, blocks[i].block.address, &word) == 0)
            ta__name_of_class(image->names, word, blocks[i].type, sizeof blocks[i].type);
    }
    free(found);
    return (long)count;
}
