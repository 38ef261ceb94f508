/* flame_colors.c: see flame_colors.h. The script has the same hues (flame_script.c). */
#include "analysis/exports/flame_colors.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"

static const unsigned short hues[TA__FLAME_COLORS] = {32, 208, 128, 282, 4, 178, 54, 322};

const char *ta__flame_group_of(const struct ta_calltree_node *node, enum ta__flame_kind kind)
{
    return kind == TA__FLAME_DOMAINS ? node->domain : node->module;
}

static struct ta__flame_group *find(const struct ta__flame_groups *groups, const char *name)
{
    for (size_t i = 0; i < groups->count; i++)
        if (groups->items[i].name == name || strcmp(groups->items[i].name, name) == 0)
            return &groups->items[i];
    return NULL;
}

int ta__flame_groups_add(struct ta__flame_groups *groups, const char *name, double area)
{
    if (*name == '\0')
        return 0;
    struct ta__flame_group *group = find(groups, name);
    if (group == NULL) {
        if (ta__grow(&groups->items, &groups->capacity, groups->count + 1, sizeof *groups->items) != 0)
            return -1;
        group = &groups->items[groups->count++];
        *group = (struct ta__flame_group){.name = name};
    }
    group->area += area;
    return 0;
}

static int by_area(const void *a, const void *b)
{
    const struct ta__flame_group *x = a, *y = b;
    if (x->area > y->area || x->area < y->area)
        return x->area > y->area ? -1 : 1;
    return strcmp(x->name, y->name);
}

int ta__flame_groups_sort(struct ta__flame_groups *groups)
{
    return ta__sort(groups->items, groups->count, sizeof *groups->items, by_area);
}

void ta__flame_groups_free(struct ta__flame_groups *groups)
{
    free(groups->items);
    *groups = (struct ta__flame_groups){0};
}

unsigned ta__flame_color_of(const struct ta__flame_groups *groups, const char *name)
{
    const struct ta__flame_group *group = *name != '\0' ? find(groups, name) : NULL;
    size_t index = group != NULL ? (size_t)(group - groups->items) : TA__FLAME_COLORS;
    return index < TA__FLAME_COLORS ? (unsigned)index : TA__FLAME_COLORS;
}

void ta__flame_add_color(struct ta__text *text, unsigned color, const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    unsigned light = 62 + hash % 14;
    if (color < TA__FLAME_COLORS)
        ta__text_add_format(text, "hsl(%u,%u%%,%u%%)", hues[color], 62 + hash / 64 % 16, light);
    else
        ta__text_add_format(text, "hsl(0,0%%,%u%%)", light + 8);
}

void ta__flame_add_difference(struct ta__text *text, const struct ta_calltree_node *node)
{
    int64_t change = node->value - node->old_value;
    int64_t larger = node->value > node->old_value ? node->value : node->old_value;
    double share = larger > 0 ? 2 * (double)change / (double)larger : 0;
    share = share > 1 ? 1 : share < -1 ? -1 : share;
    ta__text_add_format(text, "hsl(%d,85%%,%d%%)", change >= 0 ? 6 : 214,
                        94 - (int)((share < 0 ? -share : share) * 34));
}
