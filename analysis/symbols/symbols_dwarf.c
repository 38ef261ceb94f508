/* symbols_dwarf.c: lines, functions and inlined calls of many addresses of one module.
 *
 * The cost of DWARF is in reading, not in searching. So the sorted addresses are dealt out to compilation units, and
 * each unit that got some is read once: its line table, and its tree of entries, going down only where an address lies:
 *
 *     addresses  ──ranges of units──►  unit  ──tree──►  scope: function → inlined call → inlined call (innermost)
 *                                        └─────lines──►  file, line
 *
 * An inlined call knows where it was called (file, line of the frame outside it); the line table knows the rest. */
#include "analysis/symbols/symbols_dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/symbols/symbols_functions.h"
#include "analysis/symbols/symbols_names.h"
#include "analysis/symbols/symbols_publics.h"
#include "base/atomics.h"

#define NO_SCOPE  0
#define DEPTH_MAX 2000 /* of nested entries: deeper is damage */

/* libdw does not look whether some of what it asks for was there, and crashes. So nobody asks it before there is room:
 * for one unit, and for the list of all, which takes a part of what there is to read. */
#define UNIT_ROOM   ((uint64_t)8 << 20)
#define UNITS_SHARE 8

struct unit_range {
    uint64_t start, end;
    uint32_t unit;
};

struct units {
    Dwarf_Die *dies;
    uint32_t count, capacity;
    struct unit_range *ranges;
    uint64_t *reach; /* largest end of ranges[0 … i] */
    size_t range_count, range_capacity;
};

/* A function or inlined call that covers at least one of the addresses. */
struct scope {
    Dwarf_Die die;
    uint64_t start; /* of the range that covers the first address found in it */
    uint32_t parent;
    uint32_t function, raw_name;
    uint32_t call_file; /* of an inlined call: where it was called; 0 = not known */
    uint64_t call_line;
    int inlined, named, placed;
};

/* The files of one line table, interned as they are needed. */
struct file_names {
    Dwarf_Files *files;
    size_t count;
    uint32_t *ids; /* number + 1 */
};

struct unit_reader {
    const struct ta__elf_module *module;
    struct ta__found_symbols *found;
    struct ta__lookup **lookups; /* those in this unit, ascending */
    uint64_t *pcs;               /* theirs, as DWARF counts */
    uint32_t *scope_of;          /* innermost scope */
    uint32_t count;
    struct scope *scopes; /* 0 is none */
    uint32_t scope_count, scope_capacity;
    int everywhere;                          /* go down where no address is, too */
    int types_hold_code;                     /* a language whose functions may be inside types */
    const struct ta__elf_symbol *last_known; /* the symbol that was wanted last, and its name's number: mostly again */
    uint32_t last_known_name;
    const char *directory;
    struct file_names line_files, call_files;
    uint32_t module_path;
    struct ta__function_ranges functions; /* of the module, once a frame has no name */
    int has_functions;
    struct ta__name_maps names;
};

/* ---- without memory ---- */

/* libdw ends the process where it finds no memory, unless it is led out of there. */
static _Thread_local jmp_buf *way_out;

static void __attribute__((noreturn)) leave(void)
{
    longjmp(*way_out, 1);
}

int ta__dwarf_has_room(void)
{
    return ta__has_room(UNIT_ROOM);
}

int ta__dwarf_guarded(struct ta__elf_module *module, int (*work)(void *context), void *context)
{
    jmp_buf back;
    if (!ta__has_room(UNIT_ROOM + module->debug_bytes / UNITS_SHARE))
        return TA__DWARF_SHORT;
    if (setjmp(back) != 0) {
        module->is_given_up = 1;
        return TA__DWARF_SHORT;
    }
    way_out = &back;
    dwarf_new_oom_handler(module->dwarf, leave);
    if (dwarf_getalt(module->dwarf) != NULL)
        dwarf_new_oom_handler(dwarf_getalt(module->dwarf), leave);
    return work(context);
}

/* ---- units ---- */

static int add_range(struct units *units, uint64_t start, uint64_t end, uint32_t unit)
{
    if (units->range_count == units->range_capacity) {
        size_t capacity = units->range_capacity > 0 ? units->range_capacity * 2 : 256;
        struct unit_range *ranges = realloc(units->ranges, capacity * sizeof *ranges);
        if (ranges == NULL)
            return -1;
        units->ranges = ranges;
        units->range_capacity = capacity;
    }
    units->ranges[units->range_count++] = (struct unit_range){start, end, unit};
    return 0;
}

static int compare_ranges(const void *left, const void *right)
{
    const struct unit_range *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->unit == b->unit ? 0 : a->unit > b->unit ? -1 : 1;
}

/* Units that do not say where their code is: .debug_aranges may. */
static int add_aranges(Dwarf *dwarf, struct units *units, const unsigned char *has_ranges)
{
    Dwarf_Aranges *aranges = NULL;
    size_t count = 0;
    if (dwarf_getaranges(dwarf, &aranges, &count) != 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Addr start;
        Dwarf_Word length;
        Dwarf_Off offset;
        if (dwarf_getarangeinfo(dwarf_onearange(aranges, i), &start, &length, &offset) != 0)
            continue;
        uint32_t low = 0, high = units->count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (dwarf_dieoffset(&units->dies[middle]) < offset)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < units->count && dwarf_dieoffset(&units->dies[low]) == offset && !has_ranges[low] &&
            add_range(units, start, start + length, low) != 0)
            return -1;
    }
    return 0;
}

static void free_units(struct units *units)
{
    free(units->dies);
    free(units->ranges);
    free(units->reach);
}

/* All units with code, and where it is. 0, or -1 without memory. */
static int read_units(const struct ta__elf_module *module, struct units *units, struct ta__found_symbols *found)
{
    memset(units, 0, sizeof *units);
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t unit_type;
    while (dwarf_get_units(module->dwarf, unit, &unit, NULL, &unit_type, &die, NULL) == 0) {
        int tag = dwarf_tag(&die);
        if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
            continue;
        if (ta__found_symbols_reserve(found, (void **)&units->dies, units->count, &units->capacity,
                                      sizeof *units->dies) != 0)
            return -1;
        units->dies[units->count++] = die;
    }

    unsigned char *has_ranges = calloc(units->count + 1, sizeof *has_ranges);
    if (has_ranges == NULL)
        return -1;
    int fits = 1, all = 1;
    for (uint32_t i = 0; i < units->count && fits; i++) {
        Dwarf_Addr base, start, end;
        ptrdiff_t at = 0;
        while (fits && (at = dwarf_ranges(&units->dies[i], at, &base, &start, &end)) > 0) {
            has_ranges[i] = 1;
            if (start < end && ta__elf_module_code(module, start + module->dwarf_bias) != NULL)
                fits = add_range(units, start, end, i) == 0;
        }
        all = all && has_ranges[i];
    }
    if (fits && !all)
        fits = add_aranges(module->dwarf, units, has_ranges) == 0;
    free(has_ranges);
    units->reach = fits ? malloc((units->range_count + 1) * sizeof *units->reach) : NULL;
    if (units->reach == NULL)
        return -1;

    if (units->range_count > 0)
        qsort(units->ranges, units->range_count, sizeof *units->ranges, compare_ranges);
    uint64_t reach = 0;
    for (size_t i = 0; i < units->range_count; i++) {
        reach = units->ranges[i].end > reach ? units->ranges[i].end : reach;
        units->reach[i] = reach;
    }
    return 0;
}

/* The unit + 1, 0 = none. Where ranges overlap, the one that begins last. */
static uint32_t find_unit(const struct units *units, uint64_t pc)
{
    size_t low = ta__begun_by(units->ranges, units->range_count, sizeof *units->ranges, pc);
    for (size_t i = low; i-- > 0 && units->reach[i] > pc;) {
        if (units->ranges[i].end > pc)
            return units->ranges[i].unit + 1;
    }
    return 0;
}

/* ---- the tree of one unit ---- */

static uint32_t first_at_or_after(const struct unit_reader *reader, uint64_t pc, uint32_t low, uint32_t high)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (reader->pcs[middle] < pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Gives the addresses of [*first, *last) that lie in the entry, and until now in `parent`, to a new scope. Narrows the
 * window to them; 0 when there are none. */
static uint32_t claim(struct unit_reader *reader, Dwarf_Die *die, int inlined, uint32_t parent, uint32_t *first,
                      uint32_t *last)
{
    uint32_t scope = NO_SCOPE, window_first = *last, window_last = *first;
    uint32_t from = inlined ? parent : NO_SCOPE;
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        for (uint32_t i = first_at_or_after(reader, start, *first, *last); i < *last && reader->pcs[i] < end; i++) {
            if (reader->scope_of[i] != from)
                continue;
            if (scope == NO_SCOPE) {
                if (ta__found_symbols_reserve(reader->found, (void **)&reader->scopes, reader->scope_count,
                                              &reader->scope_capacity, sizeof *reader->scopes) != 0)
                    return NO_SCOPE;
                scope = reader->scope_count++;
                reader->scopes[scope] =
                    (struct scope){.die = *die, .start = start, .parent = parent, .inlined = inlined};
            }
            reader->scope_of[i] = scope;
            window_first = i < window_first ? i : window_first;
            window_last = i + 1 > window_last ? i + 1 : window_last;
        }
    }
    if (scope != NO_SCOPE) {
        *first = window_first;
        *last = window_last;
    }
    return scope;
}

static void read_tree(struct unit_reader *reader, Dwarf_Die *parent, uint32_t scope, uint32_t first, uint32_t last,
                      unsigned depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        uint32_t inner = scope, inner_first = first, inner_last = last;
        int descend = reader->everywhere;
        switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
        case DW_TAG_entry_point: {
            int inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;
            if (inlined && scope == NO_SCOPE)
                break;
            inner = claim(reader, &die, inlined, scope, &inner_first, &inner_last);
            descend = descend || inner != NO_SCOPE;
            break;
        }
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_with_stmt:
        case DW_TAG_namespace:
        case DW_TAG_module:
            descend = 1;
            break;
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_union_type:
        case DW_TAG_enumeration_type:
        case DW_TAG_interface_type:
        case DW_TAG_variant_part:
            descend = descend || reader->types_hold_code;
            break;
        default:
            descend = 0;
            break;
        }
        if (descend)
            read_tree(reader, &die, inner, inner_first, inner_last, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

/* ---- names, files, frames ---- */

static void name_scope(struct unit_reader *reader, struct scope *scope)
{
    if (!scope->named)
        ta__name_of(&reader->names, reader->found, &scope->die, &scope->function, &scope->raw_name);
    scope->named = 1;
}

static void open_files(struct file_names *names, Dwarf_Files *files, size_t count)
{
    names->files = files;
    names->count = files != NULL ? count : 0;
    names->ids = names->count > 0 ? calloc(names->count, sizeof *names->ids) : NULL;
    if (names->ids == NULL)
        names->count = 0;
}

/* The string of a file; 0 when the table does not have it. */
static uint32_t file_name(struct unit_reader *reader, struct file_names *names, size_t index)
{
    if (index >= names->count)
        return 0;
    if (names->ids[index] == 0) {
        const char *path = dwarf_filesrc(names->files, index, NULL, NULL);
        int known = path != NULL && *path != '\0' && strcmp(path, "???") != 0;
        names->ids[index] = 1 + (known ? ta__text_intern_path(&reader->found->text, reader->directory, path) : 0);
    }
    return names->ids[index] - 1;
}

static int read_number(Dwarf_Die *die, unsigned name, uint64_t *number)
{
    Dwarf_Attribute attribute;
    Dwarf_Word word;
    if (dwarf_attr(die, name, &attribute) == NULL || dwarf_formudata(&attribute, &word) != 0)
        return -1;
    *number = word;
    return 0;
}

static void set_place(const struct unit_reader *reader, struct ta__view_symbol *symbol, uint32_t file, uint64_t line)
{
    symbol->file = file != 0 ? file : reader->module_path;
    symbol->line = file != 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
    symbol->flags = file != 0 ? 0 : TA__SYMBOL_NO_LINES;
}

static void place_scope(struct unit_reader *reader, struct scope *scope)
{
    uint64_t file;
    if (!scope->placed && read_number(&scope->die, DW_AT_call_file, &file) == 0 &&
        read_number(&scope->die, DW_AT_call_line, &scope->call_line) == 0)
        scope->call_file = file_name(reader, &reader->call_files, file);
    scope->placed = 1;
}

static uint32_t name_of_symbol(struct unit_reader *reader, const struct ta__elf_symbol *symbol)
{
    if (reader->last_known != symbol) {
        reader->last_known = symbol;
        reader->last_known_name = ta__text_intern_z(&reader->found->text, symbol->name);
    }
    return reader->last_known_name;
}

static int is_mangled(const char *name)
{
    return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* What stands for a name where there is none: the module and where in it the function begins, so that all frames of one
 * function have one name; the address itself where not even that is known. main is known without a name. */
static uint32_t name_without_symbol(struct unit_reader *reader, const struct ta__lookup *lookup, uint64_t *start)
{
    if (!reader->has_functions && ta__function_ranges_read(&reader->functions, reader->module->elf) != 0)
        reader->found->failed = 1;
    reader->has_functions = 1;
    const struct ta__function_range *range = ta__function_ranges_find(&reader->functions, lookup->pc);
    *start = range != NULL ? range->start : lookup->address;
    if (range != NULL && range->start == reader->functions.main)
        return ta__text_intern_z(&reader->found->text, "main");
    return ta__text_intern_place(&reader->found->text, reader->module_path, *start);
}

/* The frame that really is on the stack. What the symbol tables call the place may say more than DWARF does: the suffix
 * of a clone, or the mangled name. */
static void add_real_frame(struct unit_reader *reader, struct ta__lookup *lookup, struct scope *scope,
                           struct ta__view_symbol symbol)
{
    struct ta__found_symbols *found = reader->found;
    const struct ta__elf_symbol *known = ta__elf_module_symbol(reader->module, lookup->pc);
    if (scope != NULL) {
        name_scope(reader, scope);
        symbol.function = scope->function;
        symbol.raw_name = scope->raw_name;
        symbol.offset = lookup->address - reader->module->dwarf_bias - scope->start;
    }
    if (known != NULL) {
        const struct ta__view_string *raw = &found->text.strings[symbol.raw_name];
        int is_clone =
            raw->length > 0 && strncmp(known->name, raw->text, raw->length) == 0 && known->name[raw->length] == '.';
        int adds_mangling = is_mangled(known->name) && !is_mangled(raw->text);
        if (symbol.function == 0 || is_clone || adds_mangling)
            symbol.raw_name = name_of_symbol(reader, known);
        if (symbol.function == 0)
            symbol.function = ta__found_symbols_readable(found, symbol.raw_name);
        symbol.offset = lookup->address - known->start;
    }
    uint64_t start = scope != NULL ? scope->start + reader->module->dwarf_bias : known != NULL ? known->start : 0;
    int is_nameless = symbol.function == 0;
    if (is_nameless) {
        symbol.function = name_without_symbol(reader, lookup, &start);
        symbol.offset = lookup->address - start;
    }
    if (reader->module->publics != NULL) {
        const char *raw = is_nameless ? "" : found->text.strings[symbol.raw_name].text;
        const char *name = ta__public_name(reader->module->publics, start, raw);
        if (name != NULL) {
            symbol.raw_name = ta__text_intern_z(&found->text, name);
            symbol.function = ta__found_symbols_readable(found, symbol.raw_name);
        }
    }
    ta__found_symbols_add(found, lookup, symbol);
}

static void add_frames(struct unit_reader *reader, struct ta__lookup *lookup, uint32_t scope, uint32_t file,
                       uint64_t line)
{
    struct ta__view_symbol symbol = {0};
    set_place(reader, &symbol, file, line);
    for (; scope != NO_SCOPE && reader->scopes[scope].inlined; scope = reader->scopes[scope].parent) {
        struct scope *inlined = &reader->scopes[scope];
        name_scope(reader, inlined);
        symbol.function = inlined->function;
        symbol.raw_name = inlined->raw_name;
        symbol.flags |= TA__SYMBOL_INLINED;
        ta__found_symbols_add(reader->found, lookup, symbol);

        memset(&symbol, 0, sizeof symbol);
        place_scope(reader, inlined);
        set_place(reader, &symbol, inlined->call_file, inlined->call_line);
    }
    add_real_frame(reader, lookup, scope == NO_SCOPE ? NULL : &reader->scopes[scope], symbol);
}

static uint64_t address_of_row(Dwarf_Lines *lines, size_t index)
{
    Dwarf_Addr address = 0;
    dwarf_lineaddr(dwarf_onesrcline(lines, index), &address);
    return address;
}

/* The row that covers `pc`: the last at or below it, unless that ends a sequence. Rows ascend, and `*from` is where an
 * earlier search for a smaller pc ended: mostly near, so it goes ahead in growing steps. */
static Dwarf_Line *find_row(Dwarf_Lines *lines, size_t count, size_t *from, uint64_t pc)
{
    size_t low = *from, step = 1;
    while (step < count - low && address_of_row(lines, low + step - 1) <= pc) {
        low += step;
        step *= 2;
    }
    size_t high = step < count - low ? low + step : count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (address_of_row(lines, middle) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    *from = low > 0 ? low - 1 : 0;
    if (low == 0)
        return NULL;
    Dwarf_Line *row = dwarf_onesrcline(lines, low - 1);
    bool ends = true; /* libdw wants a bool */
    return dwarf_lineendsequence(row, &ends) == 0 && !ends ? row : NULL;
}

static void read_unit(struct unit_reader *reader, Dwarf_Die *unit)
{
    /* With split DWARF the tree is in a file of its own; the line table stays here. */
    Dwarf_Die tree, split;
    uint8_t unit_type = 0;
    tree = *unit;
    if (dwarf_cu_info(unit->cu, NULL, &unit_type, NULL, &split, NULL, NULL, NULL) == 0 && unit_type == DW_UT_skeleton &&
        dwarf_tag(&split) == DW_TAG_compile_unit) {
        tree = split;
        dwarf_new_oom_handler(dwarf_cu_getdwarf(split.cu), leave);
    }

    int language = dwarf_srclang(&tree);
    reader->types_hold_code = language == DW_LANG_Rust || language == DW_LANG_D || language == DW_LANG_Swift;
    Dwarf_Attribute attribute;
    reader->directory = dwarf_attr(unit, DW_AT_comp_dir, &attribute) != NULL ? dwarf_formstring(&attribute) : NULL;

    reader->scope_count = 1;
    memset(reader->scope_of, 0, reader->count * sizeof *reader->scope_of);
    if (ta__found_symbols_reserve(reader->found, (void **)&reader->scopes, reader->scope_count, &reader->scope_capacity,
                                  sizeof *reader->scopes) != 0)
        return;
    reader->everywhere = 0;
    read_tree(reader, &tree, NO_SCOPE, 0, reader->count, 0);
    for (uint32_t i = 0; i < reader->count && !reader->everywhere; i++)
        reader->everywhere = reader->scope_of[i] == NO_SCOPE;
    if (reader->everywhere)
        read_tree(reader, &tree, NO_SCOPE, 0, reader->count, 0);

    Dwarf_Lines *lines = NULL;
    Dwarf_Files *files = NULL;
    size_t line_count = 0, file_count = 0, at = 0;
    if (dwarf_getsrclines(unit, &lines, &line_count) != 0)
        line_count = 0;
    open_files(&reader->line_files, NULL, 0);
    if (dwarf_getsrcfiles(&tree, &files, &file_count) != 0)
        files = NULL;
    open_files(&reader->call_files, files, file_count);

    for (uint32_t i = 0; i < reader->count; i++) {
        Dwarf_Line *row = find_row(lines, line_count, &at, reader->pcs[i]);
        uint32_t file = 0;
        int line = 0;
        size_t index = 0;
        if (row && dwarf_line_file(row, &files, &index) == 0 && dwarf_lineno(row, &line) == 0) {
            if (reader->line_files.files == NULL && dwarf_getsrcfiles(unit, &files, &file_count) == 0)
                open_files(&reader->line_files, files, file_count);
            file = file_name(reader, &reader->line_files, index);
        }
        add_frames(reader, reader->lookups[i], reader->scope_of[i], file, (uint64_t)line);
    }
    ta__name_maps_forget(&reader->names);
    free(reader->line_files.ids);
    free(reader->call_files.ids);
}

/* Deals the addresses out to units, each keeping its ascending order. Afterwards starts[u] is the end of unit u. */
static void deal(const struct ta__elf_module *module, const struct units *units, const struct ta__lookup *lookups,
                 uint32_t count, uint32_t *unit_of, uint32_t *order, uint32_t *starts)
{
    for (uint32_t i = 0; i < count; i++) {
        unit_of[i] = find_unit(units, lookups[i].pc - module->dwarf_bias);
        starts[unit_of[i] + 1]++;
    }
    for (uint32_t i = 0; i <= units->count; i++)
        starts[i + 1] += starts[i];
    for (uint32_t i = 0; i < count; i++)
        order[starts[unit_of[i]]++] = i;
}

/* 0, or TA__DWARF_SHORT. */
static int look_up(const struct ta__elf_module *module, const char *module_path, struct ta__lookup *lookups,
                   uint32_t count, struct ta__found_symbols *found, size_t *done)
{
    struct unit_reader reader = {.module = module, .found = found};
    reader.module_path = ta__text_intern_z(&found->text, module_path);
    struct units units = {0};
    int has_room = 1;
    uint32_t *unit_of = calloc((size_t)count + 1, sizeof *unit_of);
    uint32_t *order = malloc(((size_t)count + 1) * sizeof *order);
    uint32_t *starts = NULL;
    reader.lookups = malloc(((size_t)count + 1) * sizeof(*reader.lookups));
    reader.pcs = malloc(((size_t)count + 1) * sizeof *reader.pcs);
    reader.scope_of = malloc(((size_t)count + 1) * sizeof *reader.scope_of);
    if (unit_of == NULL || order == NULL || reader.lookups == NULL || reader.pcs == NULL || reader.scope_of == NULL ||
        (module->dwarf != NULL && read_units(module, &units, found) != 0) ||
        (starts = calloc((size_t)units.count + 2, sizeof *starts)) == NULL) {
        found->failed = 1;
        goto end;
    }
    deal(module, &units, lookups, count, unit_of, order, starts);
    for (uint32_t unit = 0, from = 0; unit <= units.count && !found->failed; from = starts[unit++]) {
        reader.count = starts[unit] - from;
        if (reader.count == 0)
            continue;
        for (uint32_t i = 0; i < reader.count; i++) {
            reader.lookups[i] = &lookups[order[from + i]];
            reader.pcs[i] = reader.lookups[i]->pc - module->dwarf_bias;
        }
        has_room = unit == 0 || ta__dwarf_has_room();
        if (!has_room)
            break;
        if (unit == 0) {
            for (uint32_t i = 0; i < reader.count; i++)
                add_frames(&reader, reader.lookups[i], NO_SCOPE, 0, 0);
        } else {
            read_unit(&reader, &units.dies[unit - 1]);
        }
        ta__add_relaxed(done, reader.count);
    }

end:
    found->failed = found->failed || found->text.failed;
    free_units(&units);
    ta__function_ranges_free(&reader.functions);
    free(unit_of);
    free(order);
    free(starts);
    free(reader.lookups);
    free(reader.pcs);
    free(reader.scope_of);
    free(reader.scopes);
    return has_room ? 0 : TA__DWARF_SHORT;
}

struct question {
    const struct ta__elf_module *module;
    const char *module_path;
    struct ta__lookup *lookups;
    uint32_t count;
    struct ta__found_symbols *found;
    size_t *done;
};

static int answer(void *context)
{
    const struct question *asked = context;
    return look_up(asked->module, asked->module_path, asked->lookups, asked->count, asked->found, asked->done);
}

void ta__dwarf_lookup(struct ta__elf_module *module, const char *module_path, struct ta__lookup *lookups,
                      uint32_t count, struct ta__found_symbols *found, size_t *done)
{
    if (module->dwarf != NULL) {
        struct question question = {module, module_path, lookups, count, found, done};
        if (ta__dwarf_guarded(module, answer, &question) == 0)
            return;
        ta__elf_module_forget_lines(module);
        for (uint32_t i = 0; i < count; i++)
            lookups[i].first = lookups[i].count = 0;
        ta__found_symbols_destroy(found);
        ta__found_symbols_create(found);
    }
    (void)look_up(module, module_path, lookups, count, found, done);
}
