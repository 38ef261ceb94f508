/* names.c: see names.h. A table from the library's own pointers, which is the usual case, and one from texts. */
#include "analysis/cli/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"

struct cli_names {
    struct cli_name {
        const char *source;
        char *text;
    } * slots;
    size_t count, capacity;
    char **texts;
    size_t text_count, text_capacity;
    uint32_t *text_slots;
    size_t text_slot_count;
};

static uint64_t mix(uint64_t value)
{
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ (value >> 29);
}

static uint64_t text_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return mix(hash);
}

static char *intern_own(struct cli_names *names, const char *text)
{
    if (2 * names->text_count >= names->text_slot_count) {
        free(names->text_slots);
        names->text_slot_count = names->text_slot_count * 2 + 1024;
        names->text_slots = cli_allocate(names->text_slot_count, sizeof *names->text_slots);
        for (size_t i = 0; i < names->text_count; i++) {
            size_t at = text_hash(names->texts[i]) % names->text_slot_count;
            while (names->text_slots[at] != 0)
                at = (at + 1) % names->text_slot_count;
            names->text_slots[at] = (uint32_t)i + 1;
        }
    }
    size_t at = text_hash(text) % names->text_slot_count;
    for (; names->text_slots[at] != 0; at = (at + 1) % names->text_slot_count)
        if (strcmp(names->texts[names->text_slots[at] - 1], text) == 0)
            return names->texts[names->text_slots[at] - 1];
    if (names->text_count == names->text_capacity) {
        names->text_capacity = names->text_capacity * 2 + 256;
        names->texts = cli_enlarge(names->texts, names->text_capacity, sizeof *names->texts);
    }
    names->texts[names->text_count++] = cli_text("%s", text);
    names->text_slots[at] = (uint32_t)names->text_count;
    return names->texts[names->text_count - 1];
}

const char *cli_intern(struct cli_names *names, const char *source)
{
    if (2 * names->count >= names->capacity) {
        struct cli_name *old = names->slots;
        size_t old_capacity = names->capacity;
        names->capacity = names->capacity * 2 + 1024;
        names->slots = cli_allocate(names->capacity, sizeof *names->slots);
        for (size_t i = 0; i < old_capacity; i++) {
            if (old[i].source == NULL)
                continue;
            size_t at = mix((uintptr_t)old[i].source) % names->capacity;
            while (names->slots[at].source != NULL)
                at = (at + 1) % names->capacity;
            names->slots[at] = old[i];
        }
        free(old);
    }
    size_t at = mix((uintptr_t)source) % names->capacity;
    for (; names->slots[at].source != NULL; at = (at + 1) % names->capacity)
        if (names->slots[at].source == source)
            return names->slots[at].text;
    names->slots[at] = (struct cli_name){source, intern_own(names, source)};
    names->count++;
    return names->slots[at].text;
}

void cli_names_forget_sources(struct cli_names *names)
{
    free(names->slots);
    names->slots = NULL;
    names->count = names->capacity = 0;
}

const char *cli_intern_text(struct cli_names *names, const char *text)
{
    return intern_own(names, text);
}

struct cli_names *cli_names_new(void)
{
    return cli_allocate(1, sizeof(struct cli_names));
}

void cli_names_free(struct cli_names *names)
{
    if (names == NULL)
        return;
    for (size_t i = 0; i < names->text_count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->text_slots);
    free(names->slots);
    free(names);
}
