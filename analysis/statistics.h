/* statistics.h: the rows of a statistic as the other files of analysis see them. */
#ifndef TA_ANALYSIS_STATISTICS_H
#define TA_ANALYSIS_STATISTICS_H

#include "analysis/grouping.h"

struct ta_statistics {
    struct ta__groups groups;
    const struct ta__group **rows; /* in the present order */
};

/* One row for one key found in either snapshot. */
struct ta__difference {
    const struct ta__group *new_group; /* NULL = not in the new snapshot */
    const struct ta__group *old_group; /* NULL = not in the old one */
};

struct ta_differences {
    struct ta__groups new_groups, old_groups;
    struct ta__difference *rows;
    size_t count;
};

ta__wide ta__difference_new(const struct ta__difference *row, enum ta__value value);
ta__signed_wide ta__difference_signed(const struct ta__difference *row, enum ta__value value);
struct ta_traceback ta__difference_traceback(const struct ta_differences *differences,
                                             const struct ta__difference *row);

void ta__statistics_add_text(struct ta__text *text, const struct ta_statistics *statistics, size_t index);
void ta__differences_add_text(struct ta__text *text, const struct ta_differences *differences, size_t index);

#endif
