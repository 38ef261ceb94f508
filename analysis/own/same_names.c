/* same_names.c: see same_names.h. */
#include "analysis/own/same_names.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "analysis/own/function_name.h"
#include "base/hash.h"

static uint64_t hash_of_row(const void *table, uint32_t row)
{
    const struct ta__same_names *names = table;
    return ta__hash_bytes(names->plain[row], strlen(names->plain[row]));
}

static int is_same_row(const void *table, uint32_t row, const void *wanted)
{
    const struct ta__same_names *names = table;
    return strcmp(names->plain[row], wanted) == 0;
}

/* The row of a plain name, which becomes the table's own or is freed. */
static int take(struct ta__same_names *names, char *plain, uint32_t *row)
{
    if (ta__index_reserve(&names->index, names->count, hash_of_row, names) != 0) {
        free(plain);
        return ta__fail_memory();
    }
    uint32_t *slot = ta__index_find(&names->index, ta__hash_bytes(plain, strlen(plain)), is_same_row, names, plain);
    if (*slot != 0) {
        *row = *slot - 1;
        free(plain);
        return 0;
    }
    *row = (uint32_t)names->count;
    *slot = *row + 1;
    names->plain[names->count++] = plain;
    return 0;
}

static int add(struct ta__same_names *names, const struct ta__model *model, uint32_t name)
{
    struct ta__text plain = {0};
    ta__text_add(&plain, "", 0);
    ta__function_plain(&plain, ta__function_name(model->names[name].text, model->names[name].length));
    if (plain.failed) {
        ta__text_free(&plain);
        return ta__fail_memory();
    }
    return take(names, plain.bytes, &names->rows[name]);
}

int ta__same_names_open(struct ta__same_names *names, const struct ta__model *model)
{
    *names = (struct ta__same_names){
        .rows = ta__new_array(model->name_count, sizeof *names->rows),
        .plain = ta__new_array(model->name_count + 1, sizeof *names->plain),
    };
    unsigned char *is_known = ta__new_array(model->name_count, 1);
    int status = names->rows == NULL || names->plain == NULL || is_known == NULL ? -1 : add(names, model, 0);
    for (size_t i = 0; status == 0 && i < model->logical_count; i++) {
        uint32_t name = model->logicals[i].function;
        if (name == 0 || is_known[name])
            continue;
        is_known[name] = 1;
        status = add(names, model, name);
    }
    free(is_known);
    if (status != 0)
        ta__same_names_close(names);
    return status;
}

void ta__same_names_close(struct ta__same_names *names)
{
    for (size_t i = 0; names->plain != NULL && i < names->count; i++)
        free(names->plain[i]);
    free(names->plain);
    free(names->rows);
    ta__index_free(&names->index);
    *names = (struct ta__same_names){0};
}
