/* recorded_places.c: places in code that travel as metadata, such as the stack of a crash: "PATH+0xADDRESS" becomes frames.
 *
 * The modules are those of the recording; what is in none of them (nothing was ever asked for from there) is looked for by
 * its path alone. Each answer has a symbolizer of its own, because that of the model holds what the traces need. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis_domain.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/symbols/symbols.h"
#include "snapshot/read/read.h"
#include "tracealloc/analysis.h"

struct place {
    uint32_t module; /* index + 1 into the symbolizer's; 0 = not known */
    uint64_t address;
    const char *text; /* as recorded */
};

struct ta_places {
    struct ta__symbolizer *symbolizer;
    struct ta__symbols symbols;
    struct ta__symbolizer_module *modules;
    size_t module_count, module_room, count, room;
    struct place *places;
    char **paths; /* one per place: those that are in no module of the recording */
};

static int add_module(struct ta_places *places, const struct ta__symbolizer_module *module)
{
    if (ta__grow(&places->modules, &places->module_room, places->module_count + 1, sizeof *places->modules) != 0)
        return -1;
    places->modules[places->module_count++] = *module;
    return 0;
}

static int add_modules(struct ta_places *places, const struct ta__view *view)
{
    for (uint32_t i = 0; i < view->module_count; i++) {
        const struct ta__view_module *row = &view->modules[i];
        if (add_module(places, &(struct ta__symbolizer_module){view->strings[row->path].text, row->build_id,
                                                               row->build_id_length, row->load_base}) != 0)
            return -1;
    }
    return 0;
}

/* The module of a path; a new one when the recording has none. 0 = no memory. */
static uint32_t module_of(struct ta_places *places, const char *path, size_t length, char **copy)
{
    for (size_t i = 0; i < places->module_count; i++)
        if (strncmp(places->modules[i].path, path, length) == 0 && places->modules[i].path[length] == '\0')
            return (uint32_t)i + 1;
    *copy = strndup(path, length);
    if (*copy == NULL || add_module(places, &(struct ta__symbolizer_module){.path = *copy}) != 0)
        return 0;
    return (uint32_t)places->module_count;
}

static int add_place(struct ta_places *places, const char *text)
{
    size_t room = places->room;
    if (ta__grow(&places->places, &places->room, places->count + 1, sizeof *places->places) != 0 ||
        ta__grow(&places->paths, &room, places->count + 1, sizeof *places->paths) != 0)
        return -1;
    struct place *place = &places->places[places->count];
    char **path = &places->paths[places->count];
    const char *plus = strrchr(text, '+');
    *place = (struct place){.text = text};
    *path = NULL;
    places->count++;
    if (plus == NULL || plus == text) {
        place->address = strtoull(text, NULL, 16);
        return 0;
    }
    place->module = module_of(places, text, (size_t)(plus - text), path);
    if (place->module == 0)
        return -1;
    place->address = strtoull(plus + 1, NULL, 16) + places->modules[place->module - 1].load_base;
    return 0;
}

static int look_up(struct ta_places *places)
{
    TA__OWN_DOMAIN;
    struct ta__symbolizer_address *addresses = ta__new_array(places->count, sizeof *addresses);
    int error = ENOMEM;
    places->symbolizer = ta__symbolizer_open(NULL, places->modules, (uint32_t)places->module_count);
    if (addresses != NULL && places->symbolizer != NULL) {
        for (size_t i = 0; i < places->count; i++)
            addresses[i] = (struct ta__symbolizer_address){places->places[i].address, places->places[i].module, 1};
        error = ta__symbolizer_run(places->symbolizer, addresses, (uint32_t)places->count, &places->symbols);
    }
    free(addresses);
    return error == 0
               ? 0
               : ta__fail("cannot look up symbols: %s%s", strerror(error), error == ENOMEM ? TA__MORE_MEMORY : "");
}

struct ta_places *ta_snapshot_places(const struct ta_snapshot *snapshot, const char *prefix)
{
    const struct ta__view *view =
        snapshot == NULL ? NULL : ta__snapshot_view((struct ta_snapshot *)(uintptr_t)snapshot);
    struct ta_places *places = view == NULL ? NULL : ta__new_array(1, sizeof *places);
    if (places == NULL || prefix == NULL)
        goto failed;
    if (add_modules(places, view) != 0)
        goto failed;
    for (unsigned row = 0;; row++) {
        char key[128];
        if (snprintf(key, sizeof key, "%s%u", prefix, row) >= (int)sizeof key)
            break;
        const char *text = ta_snapshot_metadata(snapshot, key);
        if (text == NULL)
            break;
        if (add_place(places, text) != 0)
            goto failed;
    }
    if (places->count == 0 || look_up(places) == 0)
        return places;
failed:
    ta_places_free(places);
    return NULL;
}

size_t ta_places_count(const struct ta_places *places)
{
    size_t count = 0;
    for (size_t i = 0; places != NULL && i < places->count; i++)
        count += places->symbols.ranges[i].count > 0 ? places->symbols.ranges[i].count : 1;
    return count;
}

static void fill(const struct ta_places *places, size_t place, uint32_t within, struct ta_frame *frame)
{
    const struct ta__symbols *symbols = &places->symbols;
    const struct place *row = &places->places[place];
    const char *module = row->module == 0 ? "" : places->modules[row->module - 1].path;
    *frame = (struct ta_frame){.filename = *module == '\0' ? row->text : module,
                               .function = "",
                               .raw_name = "",
                               .module = module,
                               .flags = TA_FRAME_NO_LINES,
                               .address = row->address};
    frame->filename_length = strlen(frame->filename);
    if (symbols->ranges[place].count == 0)
        return;
    const struct ta__view_symbol *symbol = &symbols->symbols[symbols->ranges[place].first + within];
    frame->filename = symbols->strings[symbol->file].text;
    frame->filename_length = symbols->strings[symbol->file].length;
    frame->lineno = symbol->line;
    frame->function = symbols->strings[symbol->function].text;
    frame->raw_name = symbols->strings[symbol->raw_name].text;
    frame->offset = symbol->offset;
    frame->flags = ((symbol->flags & TA__SYMBOL_INLINED) != 0 ? TA_FRAME_INLINED : 0u) |
                   ((symbol->flags & TA__SYMBOL_NO_LINES) != 0 ? TA_FRAME_NO_LINES : 0u);
}

int ta_places_get(const struct ta_places *places, size_t index, struct ta_frame *frame, size_t *number)
{
    for (size_t i = 0; places != NULL && i < places->count; i++) {
        size_t count = places->symbols.ranges[i].count > 0 ? places->symbols.ranges[i].count : 1;
        if (index < count) {
            fill(places, i, (uint32_t)index, frame);
            if (number != NULL)
                *number = i;
            return 0;
        }
        index -= count;
    }
    return ta__fail("no such place");
}

void ta_places_free(struct ta_places *places)
{
    if (places == NULL)
        return;
    ta__symbolizer_close(places->symbolizer);
    for (size_t i = 0; i < places->count; i++)
        free(places->paths[i]);
    free(places->paths);
    free(places->places);
    free(places->modules);
    free(places);
}
