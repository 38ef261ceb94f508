/* own_ranking.c: one numbering for the own keys of one or two models, in a fixed order: lines, functions, known names. */
#include <stdlib.h>

#include "analysis/ranking.h"
#include "analysis/support.h"

/* A key in terms that both models share. */
struct shared {
    uint32_t kind, a, b, line;
    uint32_t model, number;
};

static int compare_shared(const void *left, const void *right)
{
    const struct shared *x = left, *y = right;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static struct shared share(const struct ta__own *own, const uint32_t *names, uint32_t model, uint32_t number)
{
    const struct ta__own_key *key = &own->keys[number];
    struct shared shared = {.kind = key->kind, .a = key->a, .model = model, .number = number};
    if (key->kind == TA__OWN_LINE) {
        shared.a = names[own->model->locations[key->a].name];
        shared.line = own->model->locations[key->a].line;
    } else if (key->kind == TA__OWN_FUNCTION) {
        shared.a = names[key->a];
        shared.b = names[key->b];
    }
    return shared;
}

static int rank_shared(struct ta__ranking *ranking, const struct ta__ranking *names, size_t model_count)
{
    size_t total = 0, at = 0;
    for (size_t m = 0; m < model_count; m++) {
        total += ranking->own[m]->key_count;
        ranking->ranks[m] = ta__new_array(ranking->own[m]->key_count, sizeof *ranking->ranks[m]);
        if (ranking->ranks[m] == NULL)
            return -1;
    }
    struct shared *items = ta__new_array(total, sizeof *items);
    if (items == NULL)
        return -1;
    for (size_t m = 0; m < model_count; m++)
        for (size_t i = 0; i < ranking->own[m]->key_count; i++)
            items[at++] = share(ranking->own[m], names->ranks[m], (uint32_t)m, (uint32_t)i);
    int status = ta__sort(items, total, sizeof *items, compare_shared);
    for (size_t i = 0; status == 0 && i < total; i++) {
        if (i == 0 || compare_shared(&items[i - 1], &items[i]) != 0)
            ranking->count++;
        ranking->ranks[items[i].model][items[i].number] = (uint32_t)ranking->count - 1;
    }
    free(items);
    return status;
}

int ta__rank_own(struct ta__ranking *ranking, const struct ta__model *const *models, size_t model_count)
{
    struct ta__ranking names;
    if (ta__own_build(models, model_count, ranking->key == TA__KEY_LINE, ranking->own) != 0 ||
        ta__ranking_build(&names, TA__KEY_FILENAME, models, model_count) != 0)
        return -1;
    int status = rank_shared(ranking, &names, model_count);
    ta__ranking_free(&names);
    return status;
}
