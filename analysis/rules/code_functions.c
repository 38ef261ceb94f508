/* code_functions.c: see code_functions.h. What has debug information is found in its trees of entries; what is left, in
 * the symbol tables. */
#include "analysis/rules/code_functions.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis_domain.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "analysis/symbols/symbols.h"
#include "analysis/symbols/symbols_dwarf.h"
#include "analysis/symbols/symbols_module.h"
#include "analysis/symbols/symbols_names.h"
#include "analysis/symbols/worker_symbols.h"
#include "tracealloc.h"

enum { STACK_BYTES = 64 << 20, DEPTH_MAX = 2000 }; /* deeper nesting of entries is damage */

struct walk {
    const char *path;
    struct ta__code_object *object;
    int (*take)(void *context, const struct ta__code_function *function);
    void *context;
    int status;
    char failure[512]; /* the error text of the worker */

    struct ta__elf_module module;
    struct ta__found_symbols found;
    struct ta__name_maps names;
    struct ta__code_span *spans, *known; /* of the present entry; of all functions with debug information */
    size_t span_capacity, known_count, known_capacity;
    struct ta__text file;
    const char *directory; /* of the present unit */
};

/* ---- one entry ---- */

static int find_spans(struct walk *walk, Dwarf_Die *die, size_t *count)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;
    *count = 0;
    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
        uint64_t in_file = start + walk->module.dwarf_bias;
        if (start >= end || ta__elf_module_code(&walk->module, in_file) == NULL)
            continue; /* what the linker threw away */
        if (ta__grow(&walk->spans, &walk->span_capacity, *count + 1, sizeof *walk->spans) != 0)
            return -1;
        walk->spans[(*count)++] = (struct ta__code_span){in_file, end + walk->module.dwarf_bias};
    }
    return 0;
}

static const char *file_of(struct walk *walk, Dwarf_Die *die)
{
    const char *name = dwarf_decl_file(die);
    walk->file.length = 0;
    if (name == NULL)
        return "";
    if (*name != '/' && walk->directory != NULL) {
        ta__text_add_string(&walk->file, walk->directory);
        ta__text_add(&walk->file, "/", 1);
    }
    ta__text_add_string(&walk->file, name);
    return walk->file.failed ? "" : walk->file.bytes;
}

static const char *text_of(const struct walk *walk, uint32_t string)
{
    return string == 0 ? "" : walk->found.text.strings[string].text;
}

static int remember(struct walk *walk, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ta__grow(&walk->known, &walk->known_capacity, walk->known_count + 1, sizeof *walk->known) != 0)
            return -1;
        walk->known[walk->known_count++] = walk->spans[i];
    }
    return 0;
}

static int take_entry(struct walk *walk, Dwarf_Die *die, unsigned depth, int *has_code)
{
    size_t count;
    uint32_t function = 0, raw_name = 0;
    int line = 0;
    if (find_spans(walk, die, &count) != 0 || (depth == 0 && remember(walk, count) != 0))
        return -1;
    *has_code = count > 0;
    if (count == 0)
        return 0;
    ta__name_of(&walk->names, &walk->found, die, &function, &raw_name);
    dwarf_decl_line(die, &line);
    const struct ta__code_function row = {.function = text_of(walk, function),
                                          .raw_name = text_of(walk, raw_name),
                                          .file = file_of(walk, die),
                                          .line = line > 0 ? (uint32_t)line : 0,
                                          .depth = depth,
                                          .has_lines = 1,
                                          .spans = walk->spans,
                                          .span_count = count};
    return walk->take(walk->context, &row);
}

/* Functions and inlined calls below an entry; `depth` counts functions, `nesting` entries. */
static int take_children(struct walk *walk, Dwarf_Die *parent, unsigned depth, unsigned nesting)
{
    Dwarf_Die die;
    int status = 0;
    if (nesting > DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return 0;
    do {
        int tag = dwarf_tag(&die), has_code = 1;
        unsigned below = depth;
        if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
            status = take_entry(walk, &die, tag == DW_TAG_subprogram ? 0 : depth, &has_code);
            below = tag == DW_TAG_subprogram ? 1 : depth + 1;
        }
        if (status == 0 && has_code)
            status = take_children(walk, &die, below, nesting + 1);
    } while (status == 0 && dwarf_siblingof(&die, &die) == 0);
    return status;
}

static int take_units(void *context)
{
    struct walk *walk = context;
    Dwarf_CU *unit = NULL;
    Dwarf_Die die, split;
    int status = 0;
    while (status == 0 && dwarf_get_units(walk->module.dwarf, unit, &unit, NULL, NULL, &die, &split) == 0) {
        if (!ta__dwarf_has_room())
            return TA__DWARF_SHORT;
        Dwarf_Attribute attribute;
        Dwarf_Die *top = dwarf_tag(&split) == DW_TAG_compile_unit ? &split : &die;
        walk->directory = dwarf_formstring(dwarf_attr(&die, DW_AT_comp_dir, &attribute));
        if (dwarf_tag(top) == DW_TAG_compile_unit)
            status = take_children(walk, top, 0, 0);
        ta__name_maps_forget(&walk->names);
    }
    return status;
}

/* ---- what is left ---- */

static int compare_spans(const void *a, const void *b)
{
    const struct ta__code_span *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int is_known(const struct walk *walk, uint64_t address)
{
    size_t low = ta__begun_by(walk->known, walk->known_count, sizeof *walk->known, address);
    return low > 0 && address < walk->known[low - 1].end;
}

static int take_symbols(struct walk *walk)
{
    int status = ta__sort(walk->known, walk->known_count, sizeof *walk->known, compare_spans);
    for (size_t i = 0; status == 0 && i < walk->module.symbol_count; i++) {
        const struct ta__elf_symbol *symbol = &walk->module.symbols[i];
        if (symbol->start >= symbol->end || is_known(walk, symbol->start))
            continue;
        const struct ta__code_span span = {symbol->start, symbol->end};
        uint32_t raw = ta__text_intern_z(&walk->found.text, symbol->name);
        uint32_t readable = ta__found_symbols_readable(&walk->found, raw);
        const struct ta__code_function row = {.function = text_of(walk, readable),
                                              .raw_name = text_of(walk, raw),
                                              .file = "",
                                              .spans = &span,
                                              .span_count = 1};
        status = walk->take(walk->context, &row);
    }
    return status;
}

/* ---- the whole ---- */

static int read_build_id(struct walk *walk, struct ta__symbolizer_module *recorded)
{
    int descriptor = open(walk->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return ta__fail("%s: %s", walk->path, strerror(errno));
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(descriptor, ELF_C_READ_MMAP, NULL);
    const void *id = NULL;
    ssize_t length = elf != NULL && elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, &id) : -2;
    if (length > 0 && (size_t)length <= sizeof walk->object->build_id) {
        memcpy(walk->object->build_id, id, (size_t)length);
        walk->object->build_id_length = (unsigned)length;
    }
    elf_end(elf);
    close(descriptor);
    if (length == -2)
        return ta__fail("%s: not a program or library (ELF)", walk->path);
    *recorded = (struct ta__symbolizer_module){
        .path = walk->path, .build_id = walk->object->build_id, .build_id_length = walk->object->build_id_length};
    return 0;
}

static int read_object(struct walk *walk)
{
    struct ta__symbolizer_module recorded;
    if (read_build_id(walk, &recorded) != 0)
        return -1;
    ta__elf_module_open(&walk->module, &recorded, NULL);
    int status = 0;
    if (walk->module.state != TA__MODULE_LINES && walk->module.state != TA__MODULE_NAMES_ONLY)
        status = ta__fail("%s: %s", walk->path, walk->module.reason);
    else if (walk->module.no_memory)
        status = ta__fail_memory();
    walk->object->has_lines = walk->module.dwarf != NULL;
    memcpy(walk->object->reason, walk->module.reason, sizeof walk->object->reason);
    if (status == 0 && walk->module.dwarf != NULL)
        status = ta__dwarf_guarded(&walk->module, take_units, walk);
    if (status == TA__DWARF_SHORT) {
        ta__elf_module_forget_lines(&walk->module);
        status = ta__fail("%s: %s" TA__MORE_MEMORY, walk->path, walk->module.reason);
    }
    if (status == 0)
        status = take_symbols(walk);
    ta__elf_module_close(&walk->module);
    return status == 0 && walk->found.failed ? ta__fail_memory() : status;
}

static void *work(void *argument)
{
    TA__OWN_DOMAIN;
    struct walk *walk = argument;
    walk->status = read_object(walk);
    strncpy(walk->failure, ta_error_text(), sizeof walk->failure - 1); /* of this thread */
    return NULL;
}

int ta__code_functions(const char *path, struct ta__code_object *object,
                       int (*take)(void *context, const struct ta__code_function *function), void *context)
{
    TA__OWN_DOMAIN;
    struct walk walk = {.path = path, .object = object, .take = take, .context = context};
    pthread_t worker;
    pthread_attr_t attributes;
    memset(object, 0, sizeof *object);
    ta__found_symbols_create(&walk.found);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&worker, &attributes, work, &walk);
    pthread_attr_destroy(&attributes);
    if (error == 0)
        pthread_join(worker, NULL);
    ta__name_maps_forget(&walk.names);
    ta__found_symbols_destroy(&walk.found);
    ta__text_free(&walk.file);
    free(walk.spans);
    free(walk.known);
    if (error != 0)
        return ta__fail("cannot begin a thread: %s", strerror(error));
    return walk.status < 0 ? ta__fail("%s", walk.failure) : walk.status;
}
