/* ranking.h: one numbering for the keys of one or two models, in the order in which people see them.
 *
 * Grouping works with the small numbers of each model; comparing and tie-breaking need keys that two models share and
 * that sort. A ranking maps each model's own key numbers to ranks 0 … count - 1: equal keys get equal ranks, a greater
 * key gets a greater rank. */
#ifndef TA_ANALYSIS_RANKING_H
#define TA_ANALYSIS_RANKING_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/model.h"
#include "analysis/own/own_keys.h"

enum ta__key {
    TA__KEY_TRACEBACK, /* number = context */
    TA__KEY_LINENO,    /* number = location */
    TA__KEY_FILENAME,  /* number = name */
    TA__KEY_FUNCTION,  /* number = name */
    TA__KEY_MODULE,    /* number = name */
    TA__KEY_DOMAIN,    /* number = index in domain_numbers */
    TA__KEY_THREAD,    /* number = thread of the view, 0 = not kept apart */
    TA__KEY_STACK,     /* number = context; TRACEBACK by lines, or functions where there are none */
    TA__KEY_PROCESS,   /* the same where the threads of the view are processes; else 0 = the snapshot's own */
    TA__KEY_OWN,       /* number = key of the model's ta__own */
    TA__KEY_LINE,      /* the same, and every frame counts as one's own: lines, or functions where there are none */
};

struct ta__ranking {
    enum ta__key key;
    size_t count;
    uint32_t *ranks[2];     /* by model and the model's number */
    struct ta__own *own[2]; /* keys OWN and LINE */
};

int ta__ranking_build(struct ta__ranking *ranking, enum ta__key key, const struct ta__model *const *models,
                      size_t model_count);
/* own_ranking.c: the same for the keys OWN and LINE. */
int ta__rank_own(struct ta__ranking *ranking, const struct ta__model *const *models, size_t model_count);
void ta__ranking_free(struct ta__ranking *ranking);

#endif
