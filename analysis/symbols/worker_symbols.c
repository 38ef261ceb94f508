/* worker_symbols.c: a worker's strings and symbols. Written and read by that worker alone until it is done. */
#include "analysis/symbols/worker_symbols.h"

#include <stdlib.h>
#include <string.h>

void ta__found_symbols_create(struct ta__found_symbols *found)
{
    memset(found, 0, sizeof *found);
    ta__text_table_create(&found->text);
}

void ta__found_symbols_destroy(struct ta__found_symbols *found)
{
    ta__text_table_destroy(&found->text);
    free(found->symbols);
    free(found->demangled);
}

int ta__found_symbols_reserve(struct ta__found_symbols *found, void **array, uint32_t count, uint32_t *capacity,
                              size_t element)
{
    if (count < *capacity)
        return 0;
    uint32_t larger = *capacity > 0 ? *capacity * 2 : 64;
    void *moved = larger > *capacity ? realloc(*array, larger * element) : NULL;
    if (moved == NULL) {
        found->failed = 1;
        return -1;
    }
    *array = moved;
    *capacity = larger;
    return 0;
}

void ta__found_symbols_add(struct ta__found_symbols *found, struct ta__lookup *lookup, struct ta__view_symbol symbol)
{
    if (ta__found_symbols_reserve(found, (void **)&found->symbols, found->count, &found->capacity,
                                  sizeof *found->symbols) != 0)
        return;
    if (lookup->count++ == 0)
        lookup->first = found->count;
    found->symbols[found->count++] = symbol;
}

uint32_t ta__found_symbols_readable(struct ta__found_symbols *found, uint32_t raw_name)
{
    if (raw_name >= found->demangled_count) {
        uint32_t count = raw_name + raw_name / 2 + 256;
        uint32_t *demangled = realloc(found->demangled, count * sizeof *demangled);
        if (demangled == NULL) {
            found->failed = 1;
            return raw_name;
        }
        memset(demangled + found->demangled_count, 0, (count - found->demangled_count) * sizeof *demangled);
        found->demangled = demangled;
        found->demangled_count = count;
    }
    uint32_t *known = &found->demangled[raw_name];
    if (*known == 0)
        *known = ta__text_intern_demangled(&found->text, found->text.strings[raw_name].text) + 1;
    return *known - 1;
}
