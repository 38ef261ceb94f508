/* symbols_names.c: what a function is called.
 *
 * Compilers give functions that other files cannot see no linkage name, only the last part of their name. The rest is
 * in the entries around the declaration, and DWARF has no way up. But the tree is stored in the order of its entries'
 * offsets: an offset lies in the last entry of a level that begins at or before it. So only the levels on the way down
 * to a wanted declaration are listed, each once, and only in units of C++ in which such a name is wanted. */
#include "analysis/symbols/symbols_names.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Registered after DWARF 5, written by newer compilers, missing from older <dwarf.h>. */
#define LANG_C_PLUS_PLUS_17 0x2b
#define LANG_C_PLUS_PLUS_20 0x2c
#define LANG_C_PLUS_PLUS_23 0x3a

#define NOTHING   UINT32_MAX
#define DEPTH_MAX 2000
#define NAME_MAX  4096 /* of one qualified name; a longer one is left unqualified */

struct entry {
    Dwarf_Die die;
    uint64_t offset;
    uint32_t around;      /* index of the named entry around it, NOTHING = the unit itself */
    uint32_t name;        /* number of the qualified name + 1, 0 = not made yet */
    uint32_t first_child; /* index; NOTHING = not listed yet */
    uint32_t child_count;
};

struct ta__name_map {
    struct ta__name_map *next;
    const void *unit;
    struct entry *entries; /* level by level, each in the order of offsets; the unit's children first */
    uint32_t count, capacity;
    uint32_t top_count;
};

void ta__name_maps_forget(struct ta__name_maps *maps)
{
    while (maps->first != NULL) {
        struct ta__name_map *next = maps->first->next;
        free(maps->first->entries);
        free(maps->first);
        maps->first = next;
    }
}

/* Appends the children of an entry that a declaration may be in; answers how many. */
static uint32_t list_children(struct ta__name_map *map, struct ta__found_symbols *found, Dwarf_Die parent,
                              uint32_t around)
{
    Dwarf_Die die;
    uint32_t first = map->count;
    if (dwarf_child(&parent, &die) != 0)
        return 0;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_namespace:
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_union_type:
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
            if (ta__found_symbols_reserve(found, (void **)&map->entries, map->count, &map->capacity,
                                          sizeof *map->entries) != 0)
                return map->count - first;
            map->entries[map->count++] =
                (struct entry){.die = die, .offset = dwarf_dieoffset(&die), .around = around, .first_child = NOTHING};
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
    return map->count - first;
}

/* The index of the entry at `offset`, NOTHING when it is not in a place that names come from. */
static uint32_t find_entry(struct ta__name_map *map, struct ta__found_symbols *found, uint64_t offset)
{
    uint32_t first = 0, count = map->top_count;
    for (unsigned depth = 0; depth < DEPTH_MAX && count > 0; depth++) {
        uint32_t low = 0, high = count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (map->entries[first + middle].offset <= offset)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == 0)
            break;
        uint32_t index = first + low - 1;
        const struct entry *entry = &map->entries[index];
        if (entry->offset == offset)
            return index;
        if (entry->first_child == NOTHING) {
            uint32_t around = dwarf_tag((Dwarf_Die *)&entry->die) == DW_TAG_lexical_block ? entry->around : index;
            uint32_t begin = map->count, listed = list_children(map, found, entry->die, around);
            map->entries[index].first_child = begin;
            map->entries[index].child_count = listed;
        }
        first = map->entries[index].first_child;
        count = map->entries[index].child_count;
    }
    return NOTHING;
}

static struct ta__name_map *map_of(struct ta__name_maps *maps, struct ta__found_symbols *found, Dwarf_Die *die)
{
    for (struct ta__name_map *map = maps->first; map != NULL; map = map->next) {
        if (map->unit == die->cu)
            return map;
    }
    struct ta__name_map *map = calloc(1, sizeof *map);
    if (map == NULL) {
        found->failed = 1;
        return NULL;
    }
    map->next = maps->first;
    map->unit = die->cu;
    maps->first = map;
    Dwarf_Die unit;
    if (dwarf_diecu(die, &unit, NULL, NULL) != NULL)
        map->top_count = list_children(map, found, unit, NOTHING);
    return map;
}

/* Before DWARF 4 compilers had an attribute of their own for it. */
static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Half version = 0;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) != NULL)
        return dwarf_formstring(&attribute);
    if (dwarf_cu_info(die->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL) == 0 && version < 4 &&
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute) != NULL)
        return dwarf_formstring(&attribute);
    return NULL;
}

/* Where the function is declared: behind the entries that stand for a copy or for the body of it. */
static Dwarf_Die declaration_of(Dwarf_Die *die)
{
    static const unsigned ways[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Die at = *die;
    for (unsigned step = 0; step < 16; step++) {
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        if ((dwarf_attr(&at, ways[0], &attribute) == NULL && dwarf_attr(&at, ways[1], &attribute) == NULL) ||
            dwarf_formref_die(&attribute, &next) == NULL)
            break;
        at = next;
    }
    return at;
}

static uint32_t qualified(struct ta__name_maps *maps, struct ta__found_symbols *found, Dwarf_Die *declared,
                          unsigned depth);

/* The name of an entry with all that is around it; `inner` is what the entry around is wanted for. */
static uint32_t name_of_entry(struct ta__name_maps *maps, struct ta__found_symbols *found, struct ta__name_map *map,
                              uint32_t index, const char *inner, unsigned depth)
{
    struct entry *entry = &map->entries[index];
    if (entry->name != 0)
        return entry->name - 1;
    int tag = dwarf_tag(&entry->die);
    const char *linkage = tag == DW_TAG_subprogram ? linkage_name(&entry->die) : NULL;
    const char *name = dwarf_diename(&entry->die);
    uint32_t result;
    if (linkage != NULL) {
        result = ta__found_symbols_readable(found, ta__text_intern_z(&found->text, linkage));
    } else if (tag == DW_TAG_subprogram && dwarf_hasattr(&entry->die, DW_AT_specification)) {
        Dwarf_Die declared = declaration_of(&entry->die);
        result = qualified(maps, found, &declared, depth + 1);
    } else {
        if (name == NULL && tag == DW_TAG_namespace)
            name = "(anonymous namespace)";
        else if (name == NULL)
            name = inner != NULL && strcmp(inner, "operator()") == 0 ? "{lambda}" : "(anonymous class)";
        uint32_t around = entry->around == NOTHING || depth > DEPTH_MAX
                              ? 0
                              : name_of_entry(maps, found, map, entry->around, name, depth + 1);
        char text[NAME_MAX];
        int length = snprintf(text, sizeof text, "%s::%s", found->text.strings[around].text, name);
        int is_whole = around != 0 && length > 0 && (size_t)length < sizeof text;
        result = is_whole ? ta__text_intern(&found->text, text, (size_t)length) : ta__text_intern_z(&found->text, name);
    }
    map->entries[index].name = result + 1;
    return result;
}

static uint32_t qualified(struct ta__name_maps *maps, struct ta__found_symbols *found, Dwarf_Die *declared,
                          unsigned depth)
{
    struct ta__name_map *map = depth < 64 ? map_of(maps, found, declared) : NULL;
    uint32_t index = map != NULL ? find_entry(map, found, dwarf_dieoffset(declared)) : NOTHING;
    if (index == NOTHING)
        return ta__text_intern_z(&found->text, dwarf_diename(declared));
    return name_of_entry(maps, found, map, index, NULL, depth);
}

static int is_cxx(Dwarf_Die *die)
{
    Dwarf_Die unit;
    if (dwarf_diecu(die, &unit, NULL, NULL) == NULL)
        return 0;
    switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_ObjC_plus_plus:
    case LANG_C_PLUS_PLUS_17:
    case LANG_C_PLUS_PLUS_20:
    case LANG_C_PLUS_PLUS_23:
        return 1;
    default:
        return 0;
    }
}

/* What runs the constructors of a file: every such unit has one, and it is in no namespace. */
static int is_of_compiler(const char *name)
{
    return strncmp(name, "_GLOBAL__", 9) == 0 || strncmp(name, "__static_initialization_and_destruction", 39) == 0;
}

static void read_name(struct ta__name_maps *maps, struct ta__found_symbols *found, Dwarf_Die *die, uint32_t *function,
                      uint32_t *raw_name)
{
    const char *linkage = linkage_name(die), *name = dwarf_diename(die);
    *raw_name = ta__text_intern_z(&found->text, linkage != NULL ? linkage : name);
    if (linkage != NULL) {
        *function = ta__found_symbols_readable(found, *raw_name);
        return;
    }
    Dwarf_Die declared = declaration_of(die);
    /* main, and what is declared extern "C", is called what it is called. */
    int may_be_inside = name != NULL && !is_of_compiler(name) && is_cxx(&declared);
    *function = may_be_inside ? qualified(maps, found, &declared, 0) : *raw_name;
}

void ta__name_of(struct ta__name_maps *maps, struct ta__found_symbols *found, Dwarf_Die *die, uint32_t *function,
                 uint32_t *raw_name)
{
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    if (dwarf_tag(die) != DW_TAG_inlined_subroutine || dwarf_attr(die, DW_AT_abstract_origin, &attribute) == NULL ||
        dwarf_formref_die(&attribute, &origin) == NULL) {
        read_name(maps, found, die, function, raw_name);
        return;
    }
    size_t slot = ta__hash_word((uintptr_t)origin.addr) % TA__INLINED_NAMES;
    if (maps->inlined[slot].origin != origin.addr) {
        read_name(maps, found, &origin, &maps->inlined[slot].function, &maps->inlined[slot].raw_name);
        maps->inlined[slot].origin = origin.addr;
    }
    *function = maps->inlined[slot].function;
    *raw_name = maps->inlined[slot].raw_name;
}
