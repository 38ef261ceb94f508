/* lives.c: how large the blocks of a leaf are and how long they live, as far as counters tell. See series.h.
 *
 * Which block was freed nobody knows: of one stack's blocks the youngest are taken to go first, as temporary ones do. */
#include "analysis/growth/series.h"

#include <stdlib.h>

#include "analysis/arrays.h"

static unsigned class_of(uint64_t value, unsigned classes)
{
    unsigned bits = value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
    return bits < classes ? bits : classes - 1;
}

static void end_life(struct ta__lives *lives, size_t born, size_t died, uint64_t count)
{
    uint64_t entries = lives->series->changes.points[died].index - lives->series->changes.points[born].index;
    lives->row->told.by_life[class_of(entries, TA_LIFE_CLASSES)] += count;
}

int ta__lives_add(struct ta__lives *lives, const struct ta__change *now, const struct ta__change *before, int is_known)
{
    uint64_t born = now->allocated_blocks - before->allocated_blocks;
    uint64_t bytes = now->allocated_bytes - before->allocated_bytes;
    if (now->allocated_blocks < before->allocated_blocks || is_known)
        born = now->count, bytes = now->size;
    if (born > 0 && !is_known)
        lives->row->told.by_size[class_of(bytes / born, TA_SIZE_CLASSES)] += born;
    if (born > 0) {
        if (ta__grow(&lives->births, &lives->birth_capacity, lives->birth_count + 1, sizeof *lives->births) != 0)
            return -1;
        lives->births[lives->birth_count++] = (struct ta__birth){now->point, born};
    }
    uint64_t dying = is_known || before->count + born < now->count ? 0 : before->count + born - now->count;
    while (dying > 0 && lives->birth_count > 0) {
        struct ta__birth *youngest = &lives->births[lives->birth_count - 1];
        uint64_t count = youngest->count < dying ? youngest->count : dying;
        end_life(lives, youngest->point, now->point, count);
        youngest->count -= count;
        dying -= count;
        if (youngest->count == 0)
            lives->birth_count--;
    }
    return 0;
}

void ta__lives_forget(struct ta__lives *lives)
{
    lives->birth_count = 0;
}

void ta__lives_end(struct ta__lives *lives)
{
    for (size_t i = 0; i < lives->birth_count; i++)
        lives->row->told.still_live += lives->births[i].count;
    free(lives->births);
}
