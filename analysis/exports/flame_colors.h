/* flame_colors.h: what the colours of a flame graph stand for: the module of a call, or the domain of its memory. */
#ifndef TA_ANALYSIS_EXPORTS_FLAME_COLORS_H
#define TA_ANALYSIS_EXPORTS_FLAME_COLORS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/growing_text.h"
#include "tracealloc/export.h"

/* So many groups have a colour of their own; the others share grey. */
#define TA__FLAME_COLORS 8

enum ta__flame_kind { TA__FLAME_MODULES, TA__FLAME_DOMAINS, TA__FLAME_KINDS };

struct ta__flame_groups {
    struct ta__flame_group {
        const char *name;
        double area; /* in the picture */
    } * items;       /* the largest first, once sorted */
    size_t count, capacity;
};

/* What a node belongs to; "" = nothing known, or several. */
const char *ta__flame_group_of(const struct ta_calltree_node *node, enum ta__flame_kind kind);
int ta__flame_groups_add(struct ta__flame_groups *groups, const char *name, double area);
int ta__flame_groups_sort(struct ta__flame_groups *groups);
void ta__flame_groups_free(struct ta__flame_groups *groups);
/* 0 … TA__FLAME_COLORS, the last for what has no colour of its own. */
unsigned ta__flame_color_of(const struct ta__flame_groups *groups, const char *name);

/* "hsl(…)": a tone of the colour that differs by name, so that one function looks the same everywhere. */
void ta__flame_add_color(struct ta__text *text, unsigned color, const char *name);
/* Red for growth, blue for release, white for neither; full at half of the larger value. */
void ta__flame_add_difference(struct ta__text *text, const struct ta_calltree_node *node);

#endif
