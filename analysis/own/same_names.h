/* same_names.h: functions whose names differ in template arguments and parameters only are one: create<Order>() and
 * create<Item>(int) are written on the same line. Between a model's names and own_structure.c. */
#ifndef TA_ANALYSIS_OWN_SAME_NAMES_H
#define TA_ANALYSIS_OWN_SAME_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/model.h"
#include "base/index.h"

struct ta__same_names {
    uint32_t *rows; /* by name of the model, for those of functions: which one it is; 0 = no name */
    char **plain;   /* by row */
    size_t count;
    struct ta__index index;
};

/* 0, or -1 with the error set and nothing to close. */
int ta__same_names_open(struct ta__same_names *names, const struct ta__model *model);
void ta__same_names_close(struct ta__same_names *names);

#endif
