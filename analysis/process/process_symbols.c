/* process_symbols.c: see process_symbols.h. Also the public face: what the tracer knows of a live block, in words.
 *
 * The loaded objects are asked for each time, because they come and go; their files are read as those of a recording
 * are, checked by build id. Nothing is kept between two calls: ask for many addresses at once. */
#include "analysis/process/process_symbols.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis_domain.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "analysis/model.h"
#include "analysis/symbols/symbols.h"
#include "tracealloc.h"

/* The runtime's, where there is one: analysis needs none. */
extern __typeof__(ta_get_object_traceback) ta_get_object_traceback __attribute__((weak));

/* ---- what is loaded ---- */

struct object {
    uintptr_t start, end;
};

struct objects {
    struct ta__symbolizer_module *modules;
    struct object *ranges;
    size_t count, module_capacity, range_capacity;
    int failed;
};

static void find_build_id(const struct dl_phdr_info *info, struct ta__symbolizer_module *module)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE || segment->p_align > 8)
            continue;
        const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr), *end = at + segment->p_memsz;
        size_t align = segment->p_align == 8 ? 8 : 4;
        while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            size_t name = (note->n_namesz + align - 1) & ~(align - 1);
            size_t value = (note->n_descsz + align - 1) & ~(align - 1);
            const char *bytes = at + sizeof *note + name;
            if (name + value > (size_t)(end - at) - sizeof *note)
                break;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(at + sizeof *note, "GNU", 4) == 0) {
                module->build_id = (const uint8_t *)bytes;
                module->build_id_length = note->n_descsz;
                return;
            }
            at = bytes + value;
        }
    }
}

/* The program itself has no name here; the loader's list gives other paths as they were opened. */
static char *path_of(const struct dl_phdr_info *info)
{
    char program[4096];
    const char *path = info->dlpi_name;
    if (*path == '\0') {
        ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
        program[length > 0 ? length : 0] = '\0';
        path = program;
    }
    size_t size = strlen(path) + 1;
    char *copy = ta__new_array(size, 1);
    return copy == NULL ? NULL : memcpy(copy, path, size);
}

static int add_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct objects *objects = context;
    struct object range = {UINTPTR_MAX, 0};
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        range.start = start < range.start ? start : range.start;
        range.end = start + segment->p_memsz > range.end ? start + segment->p_memsz : range.end;
    }
    if (ta__grow(&objects->modules, &objects->module_capacity, objects->count + 1, sizeof *objects->modules) != 0 ||
        ta__grow(&objects->ranges, &objects->range_capacity, objects->count + 1, sizeof *objects->ranges) != 0) {
        objects->failed = 1;
        return 1;
    }
    struct ta__symbolizer_module *module = &objects->modules[objects->count];
    *module = (struct ta__symbolizer_module){.path = path_of(info), .load_base = info->dlpi_addr};
    find_build_id(info, module);
    objects->ranges[objects->count++] = range;
    objects->failed = module->path == NULL;
    return objects->failed;
}

/* Index + 1; 0 = none. The kernel's page of functions has no file. */
static uint32_t object_of(const struct objects *objects, uintptr_t address)
{
    for (size_t i = 0; i < objects->count; i++)
        if (address >= objects->ranges[i].start && address < objects->ranges[i].end)
            return (uint32_t)i + 1;
    return 0;
}

static void free_objects(struct objects *objects)
{
    for (size_t i = 0; i < objects->count; i++)
        free((char *)(uintptr_t)objects->modules[i].path);
    free(objects->modules);
    free(objects->ranges);
}

/* ---- frames ---- */

/* Copies a text behind the frames; the piece of memory was made large enough. */
static const char *put(char **at, const struct ta__view_string *string)
{
    char *copy = *at;
    memcpy(copy, string->text, string->length);
    copy[string->length] = '\0';
    *at = copy + string->length + 1;
    return copy;
}

static size_t text_bytes(const struct ta__symbols *symbols, const struct ta__view_symbol *symbol)
{
    return symbols->strings[symbol->file].length + symbols->strings[symbol->function].length +
           symbols->strings[symbol->raw_name].length + 3;
}

static size_t path_bytes(const struct ta__symbolizer_module *modules, uint32_t module)
{
    return module == 0 ? 1 : strlen(modules[module - 1].path) + 1;
}

/* Most recent first goes in, oldest first comes out. */
static struct ta_frame *make_frames(const struct ta__symbols *symbols, const struct ta__symbolizer_module *modules,
                                    const struct ta__symbolizer_address *addresses, size_t count, size_t *frame_count)
{
    size_t total = 0, bytes = 0;
    for (size_t a = 0; a < count; a++)
        for (uint32_t i = 0; i < symbols->ranges[a].count; i++, total++)
            bytes += text_bytes(symbols, &symbols->symbols[symbols->ranges[a].first + i]) +
                     path_bytes(modules, addresses[a].module);
    struct ta_frame *frames = ta__new_array(total * sizeof *frames + bytes + 1, 1);
    if (frames == NULL)
        return NULL;
    char *text = (char *)(frames + total);
    size_t place = total;
    for (size_t a = 0; a < count; a++) {
        uint32_t module = addresses[a].module;
        for (uint32_t i = 0; i < symbols->ranges[a].count; i++) {
            const struct ta__view_symbol *symbol = &symbols->symbols[symbols->ranges[a].first + i];
            const char *path = module == 0 ? "" : modules[module - 1].path;
            struct ta_frame *frame = &frames[--place];
            frame->filename = put(&text, &symbols->strings[symbol->file]);
            frame->filename_length = symbols->strings[symbol->file].length;
            frame->lineno = symbol->line;
            frame->flags = (symbol->flags & TA__SYMBOL_INLINED ? TA_FRAME_INLINED : 0u) |
                           (symbol->flags & TA__SYMBOL_NO_LINES ? TA_FRAME_NO_LINES : 0u);
            frame->function = put(&text, &symbols->strings[symbol->function]);
            frame->raw_name = put(&text, &symbols->strings[symbol->raw_name]);
            frame->module = put(&text, &(struct ta__view_string){path, strlen(path)});
            frame->offset = symbol->offset;
            frame->address = addresses[a].address;
        }
    }
    *frame_count = total;
    return frames;
}

static struct ta_frame *look_up(const struct objects *objects, const struct ta__symbolizer_address *addresses,
                                size_t count, size_t *frame_count)
{
    const struct ta__symbolizer_options options = {.threads = 1};
    struct ta__symbols symbols;
    struct ta_frame *frames = NULL;
    struct ta__symbolizer *symbolizer = ta__symbolizer_open(&options, objects->modules, (uint32_t)objects->count);
    if (symbolizer == NULL || ta__symbolizer_run(symbolizer, addresses, (uint32_t)count, &symbols) != 0)
        ta__fail_memory();
    else
        frames = make_frames(&symbols, objects->modules, addresses, count, frame_count);
    if (symbolizer != NULL)
        ta__symbolizer_close(symbolizer);
    return frames;
}

struct ta_frame *ta__process_frames(void *const *given, size_t count, size_t *frame_count)
{
    TA__OWN_DOMAIN;
    struct objects objects = {0};
    struct ta__symbolizer_address *addresses = ta__new_array(count, sizeof *addresses);
    struct ta_frame *frames = NULL;
    if (count >= UINT32_MAX)
        ta__fail("too many addresses");
    else if (addresses != NULL && (dl_iterate_phdr(add_object, &objects), !objects.failed)) {
        for (size_t i = 0; i < count; i++)
            addresses[i] = (struct ta__symbolizer_address){.address = (uintptr_t)given[i],
                                                           .module = object_of(&objects, (uintptr_t)given[i])};
        frames = look_up(&objects, addresses, count, frame_count);
    }
    free(addresses);
    free_objects(&objects);
    return frames;
}

/* ---- the public face ---- */

struct ta_traceback ta_symbolize(void *const *addresses, size_t count)
{
    size_t frame_count = 0;
    struct ta_frame *frames = count == 0 ? NULL : ta__process_frames(addresses, count, &frame_count);
    if (frames == NULL)
        return (struct ta_traceback){.total_nframe = -1};
    return (struct ta_traceback){
        .total_nframe = -1, .owner = frames, .kind = TA__TRACEBACK_OWNED, .index = (uint32_t)frame_count};
}

void ta_traceback_free(struct ta_traceback traceback)
{
    if (traceback.kind == TA__TRACEBACK_OWNED)
        free((void *)(uintptr_t)traceback.owner);
}

struct ta_traceback ta_object_traceback(const void *block)
{
    struct ta_traceback traceback = {.total_nframe = -1};
    if (ta_get_object_traceback == NULL) {
        ta__fail("this process does not run under tracealloc");
        return traceback;
    }
    size_t total = 0, count = ta_get_object_traceback(block, NULL, 0, &total);
    if (count == 0) {
        ta__fail("%p is no block with a trace", block);
        return traceback;
    }
    void **addresses = ta__new_array(count, sizeof *addresses);
    if (addresses == NULL)
        return traceback;
    size_t again = ta_get_object_traceback(block, addresses, count, &total);
    traceback = ta_symbolize(addresses, again < count ? again : count);
    traceback.total_nframe = total > 0 ? (int64_t)total : -1;
    free(addresses);
    return traceback;
}

char **ta_format_object_traceback(const void *block, int64_t limit, int most_recent_first)
{
    struct ta_traceback traceback = ta_object_traceback(block);
    char **lines = traceback.kind == 0 ? NULL : ta_traceback_format(traceback, limit, most_recent_first);
    ta_traceback_free(traceback);
    return lines;
}

size_t ta_address_text(const void *address, char *out, size_t size)
{
    struct ta__text text = {0};
    void *list[] = {(void *)(uintptr_t)address};
    struct ta_traceback traceback = ta_symbolize(list, 1);
    for (int64_t i = (int64_t)ta_traceback_length(traceback); i-- > 0;) { /* innermost first */
        struct ta_frame frame;
        ta_traceback_frame(traceback, i, &frame);
        char name[512] = "";
        ta_function_text(frame.function, name, sizeof name);
        ta__text_add_string(&text, text.length > 0 ? ", inlined into " : "");
        ta__text_add_string(&text, *name != '\0' ? name : "?");
        ta__text_add_string(&text, " at ");
        ta__text_add(&text, frame.filename, frame.filename_length);
        if (frame.lineno > 0)
            ta__text_add_format(&text, ":%u", frame.lineno);
    }
    ta_traceback_free(traceback);
    return ta__text_deliver(&text, out, size);
}
