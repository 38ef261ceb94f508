/* symbols_sink.c: a worker's strings and symbols. Written and read by that worker alone until it is done. */
#include "analysis/symbols_sink.h"

#include <stdlib.h>
#include <string.h>

void ta__symbol_sink_create(struct ta__symbol_sink *sink)
{
    memset(sink, 0, sizeof *sink);
    ta__text_table_create(&sink->text);
}

void ta__symbol_sink_destroy(struct ta__symbol_sink *sink)
{
    ta__text_table_destroy(&sink->text);
    free(sink->symbols);
    free(sink->demangled);
}

bool ta__symbol_sink_reserve(struct ta__symbol_sink *sink, void **array, uint32_t count, uint32_t *capacity,
                             size_t element)
{
    if (count < *capacity)
        return true;
    uint32_t larger = *capacity ? *capacity * 2 : 64;
    void *moved = larger > *capacity ? realloc(*array, larger * element) : NULL;
    if (!moved) {
        sink->failed = true;
        return false;
    }
    *array = moved;
    *capacity = larger;
    return true;
}

void ta__symbol_sink_add(struct ta__symbol_sink *sink, struct ta__lookup *lookup, struct ta__view_symbol symbol)
{
    if (!ta__symbol_sink_reserve(sink, (void **)&sink->symbols, sink->count, &sink->capacity, sizeof *sink->symbols))
        return;
    if (lookup->count++ == 0)
        lookup->first = sink->count;
    sink->symbols[sink->count++] = symbol;
}

uint32_t ta__symbol_sink_readable(struct ta__symbol_sink *sink, uint32_t raw_name)
{
    if (raw_name >= sink->demangled_count) {
        uint32_t count = raw_name + raw_name / 2 + 256;
        uint32_t *demangled = realloc(sink->demangled, count * sizeof *demangled);
        if (!demangled) {
            sink->failed = true;
            return raw_name;
        }
        memset(demangled + sink->demangled_count, 0, (count - sink->demangled_count) * sizeof *demangled);
        sink->demangled = demangled;
        sink->demangled_count = count;
    }
    uint32_t *known = &sink->demangled[raw_name];
    if (*known == 0)
        *known = ta__text_intern_demangled(&sink->text, sink->text.strings[raw_name].text) + 1;
    return *known - 1;
}
