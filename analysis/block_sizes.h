/* block_sizes.h: how large the blocks of each trace are: exactly, where the snapshot has them one by one, else as equal as
 * their sum allows. For whoever needs single blocks: Python's format, interchange, conditions on sizes. */
#ifndef TA_ANALYSIS_BLOCK_SIZES_H
#define TA_ANALYSIS_BLOCK_SIZES_H

#include "analysis/model.h"
#include "base/attributes.h"

struct ta__block_sizes {
    const struct ta__view *view;
    size_t *first;            /* by trace: where its kinds begin; NULL: only sums are known */
    struct ta__blocks *kinds; /* ascending by size */
    struct ta__blocks guessed[2];
};

/* 0, or -1 with the error set. */
TA_NODISCARD int ta__block_sizes_open(struct ta__block_sizes *sizes, const struct ta__view *view);
void ta__block_sizes_close(struct ta__block_sizes *sizes);
/* The kinds of blocks of a live trace, and how many; valid until the next call. */
size_t ta__block_sizes_of(struct ta__block_sizes *sizes, uint32_t trace, const struct ta__blocks **kinds);

/* Does the snapshot have every block? Samples stand for others. */
static inline int ta__view_is_exact(const struct ta__view *view)
{
    return view->has_blocks && view->sample_bytes == 0;
}

#endif
