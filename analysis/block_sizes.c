/* block_sizes.c: see block_sizes.h. */
#include "analysis/block_sizes.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

static int compare_sizes(const void *a, const void *b)
{
    uint64_t left = ((const struct ta__blocks *)a)->size, right = ((const struct ta__blocks *)b)->size;
    return left < right ? -1 : left > right;
}

/* Equal sizes of one trace become one kind. Answers how many kinds there are. */
static size_t join_equal(struct ta__blocks *kinds, size_t count)
{
    size_t kept = 0;
    qsort(kinds, count, sizeof *kinds, compare_sizes);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && kinds[kept - 1].size == kinds[i].size)
            kinds[kept - 1].count++;
        else
            kinds[kept++] = kinds[i];
    }
    return kept;
}

static void join_all(struct ta__block_sizes *sizes)
{
    size_t to = 0;
    for (uint32_t trace = 0; trace < sizes->view->trace_count; trace++) {
        size_t first = sizes->first[trace], count = join_equal(sizes->kinds + first, sizes->first[trace + 1] - first);
        memmove(sizes->kinds + to, sizes->kinds + first, count * sizeof *sizes->kinds);
        sizes->first[trace] = to;
        to += count;
    }
    sizes->first[sizes->view->trace_count] = to;
}

/* Counts the blocks of each trace, which gives each its place; then puts them there. */
static void distribute(struct ta__block_sizes *sizes)
{
    const struct ta__view *view = sizes->view;
    size_t *first = sizes->first;
    for (uint32_t i = 0; i < view->block_count; i++)
        if (view->blocks[i].trace < view->trace_count)
            first[view->blocks[i].trace + 1]++;
    for (uint32_t trace = 0; trace < view->trace_count; trace++)
        first[trace + 1] += first[trace];
    for (uint32_t i = view->block_count; i-- > 0;)
        if (view->blocks[i].trace < view->trace_count)
            sizes->kinds[--first[view->blocks[i].trace + 1]] =
                (struct ta__blocks){ta__view_block_size(&view->blocks[i]), 1};
    /* first[t + 1] has come down to where t begins. */
    size_t end = 0;
    for (uint32_t i = 0; i < view->block_count; i++)
        end += view->blocks[i].trace < view->trace_count;
    memmove(first, first + 1, view->trace_count * sizeof *first);
    first[view->trace_count] = end;
}

int ta__block_sizes_open(struct ta__block_sizes *sizes, const struct ta__view *view)
{
    *sizes = (struct ta__block_sizes){.view = view};
    if (!ta__view_is_exact(view))
        return 0;
    sizes->first = ta__new_array((size_t)view->trace_count + 1, sizeof *sizes->first);
    sizes->kinds = ta__new_array((size_t)view->block_count + 1, sizeof *sizes->kinds);
    if (sizes->first == NULL || sizes->kinds == NULL) {
        ta__block_sizes_close(sizes);
        return -1;
    }
    distribute(sizes);
    join_all(sizes);
    return 0;
}

void ta__block_sizes_close(struct ta__block_sizes *sizes)
{
    free(sizes->first);
    free(sizes->kinds);
    *sizes = (struct ta__block_sizes){0};
}

size_t ta__block_sizes_of(struct ta__block_sizes *sizes, uint32_t trace, const struct ta__blocks **kinds)
{
    if (sizes->first == NULL) {
        *kinds = sizes->guessed;
        return (size_t)ta__trace_blocks(&sizes->view->traces[trace], sizes->guessed);
    }
    *kinds = sizes->kinds + sizes->first[trace];
    return sizes->first[trace + 1] - sizes->first[trace];
}
