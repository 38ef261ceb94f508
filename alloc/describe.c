/* describe.c: see describe.h. Also ta_describe: whose memory is this?
 *
 * Objects come from the table of modules or from the loader without a lock, names from their files, which are mapped for
 * the moment. Each file is read once for all frames in it. */
#include "alloc/describe.h"

#include <errno.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/remembered_frees.h"
#include "base/own_stack.h"
#include "base/readable_name.h"
#include "trace/unwind/function_names.h"
#include "trace/unwind/line_numbers.h"
#include "trace/unwind/modules.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

enum { NAME_BYTES = 2048, SHOWN_NAME_BYTES = 256, WORKING_STACK = 1 << 20 };

struct place {
    uint64_t address; /* in the file; what is looked up */
    uint64_t shown;   /* the same, but a return address as it is */
    uint64_t symbol, symbol_size;
    const struct ta__module *module; /* NULL: in no object */
    struct ta__module scratch;
    struct ta__line_number line;
    int is_named;
    char name[NAME_BYTES]; /* as the file has it */
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

struct looking {
    struct place *places;
    size_t count;
    const struct ta__module *module;
};

/* Of several names for one thing the public one, as printf among __printf and _IO_printf. */
static int is_plainer(const char *name, const char *than)
{
    size_t marks = strspn(name, "_"), others = strspn(than, "_");
    return marks != others ? marks < others : strlen(name) < strlen(than);
}

/* A symbol that says its size goes before one that does not (assembly), and that which begins later. */
static int is_better(const struct place *place, const char *name, uint64_t symbol, uint64_t size)
{
    if (place->address < symbol || (size != 0 && place->address - symbol >= size))
        return 0;
    if (!place->is_named || (size != 0) != (place->symbol_size != 0))
        return !place->is_named || size != 0;
    return symbol > place->symbol || (symbol == place->symbol && is_plainer(name, place->name));
}

static void take_symbol(const char *name, uint64_t address, uint64_t size, void *context)
{
    const struct looking *looking = context;
    for (size_t i = 0; i < looking->count; i++) {
        struct place *place = &looking->places[i];
        if (place->module != looking->module || !is_better(place, name, address, size))
            continue;
        place->is_named = 1;
        place->symbol = address;
        place->symbol_size = size;
        strncpy(place->name, name, sizeof place->name - 1);
    }
}

static void find_place(struct place *place, uint64_t address, unsigned before)
{
    place->is_named = 0;
    place->name[sizeof place->name - 1] = '\0';
    place->symbol = place->symbol_size = 0;
    place->module = ta__module_describe((uintptr_t)(address - before), &place->scratch);
    uint64_t bias = place->module != NULL ? place->module->bias : 0;
    place->shown = address - bias;
    place->address = place->line.address = place->shown - before;
    place->line.line = 0;
}

static const char *path_of(const struct ta__module *module)
{
    return module->path[0] != '\0' ? module->path : "/proc/self/exe";
}

static void find_lines(struct place *places, size_t count, const struct ta__module *module)
{
    struct ta__line_number *lines[TA__DESCRIBED_FRAMES];
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        if (places[i].module == module)
            lines[wanted++] = &places[i].line;
    ta__lines_read(path_of(module), module->build_id, module->build_id_bytes, lines, wanted);
}

/* Several may be in one module, and then have different scratches only when it could not be entered. */
static void find_names(struct place *places, size_t count, unsigned kinds)
{
    for (size_t i = 0; i < count; i++) {
        const struct ta__module *module = places[i].module;
        int is_first = module != NULL;
        for (size_t before = 0; before < i && is_first; before++)
            is_first = places[before].module != module;
        struct looking looking = {places, count, module};
        if (!is_first)
            continue;
        ta__symbols_read(path_of(module), module->build_id, module->build_id_bytes, kinds, take_symbol, &looking);
        if (kinds == TA__SYMBOLS_OF_CODE)
            find_lines(places, count, module);
    }
}

static void add_name(struct ta__message *line, const struct place *place)
{
    char readable[NAME_BYTES];
    size_t length = ta__readable_name(place->name, 0, readable, sizeof readable);
    const char *name = length != 0 ? readable : place->name;
    length = length != 0 ? length : strlen(name);
    ta__message_span(line, name, length < SHOWN_NAME_BYTES ? length : SHOWN_NAME_BYTES);
    if (length > SHOWN_NAME_BYTES)
        ta__message_text(line, "…");
}

/* "path+0x12f4", as addr2line and gdb take it. */
static void add_position(struct ta__message *line, const struct place *place)
{
    if (place->module != NULL) {
        ta__message_text(line, path_of(place->module));
        ta__message_text(line, "+");
    }
    ta__message_hex(line, place->shown);
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

struct frames {
    const uint64_t *addresses;
    size_t count;
    void (*take)(struct ta__message *line, void *context);
    void *context;
};

static void describe_frames(void *argument)
{
    const struct frames *frames = argument;
    struct place places[TA__DESCRIBED_FRAMES];
    for (size_t i = 0; i < frames->count; i++)
        find_place(&places[i], frames->addresses[i], 1);
    find_names(places, frames->count, TA__SYMBOLS_OF_CODE);
    for (size_t i = 0; i < frames->count; i++) {
        struct ta__message line;
        ta__message_begin_plain(&line);
        ta__message_text(&line, "  ");
        if (places[i].is_named)
            add_name(&line, &places[i]);
        if (places[i].line.line != 0) {
            ta__message_text(&line, places[i].is_named ? " " : "");
            ta__message_text(&line, places[i].line.file);
            ta__message_text(&line, ":");
            ta__message_number(&line, places[i].line.line);
        }
        int has_words = places[i].is_named || places[i].line.line != 0;
        ta__message_text(&line, has_words ? " (" : "");
        add_position(&line, &places[i]);
        ta__message_text(&line, has_words ? ")" : "");
        frames->take(&line, frames->context);
    }
}

/* Where there is no memory for a stack: numbers. */
static void number_frames(const struct frames *frames)
{
    for (size_t i = 0; i < frames->count; i++) {
        struct ta__message line;
        ta__message_begin_plain(&line);
        ta__message_text(&line, "  ");
        ta__message_hex(&line, frames->addresses[i]);
        frames->take(&line, frames->context);
    }
}

void ta__describe_frames(const uint64_t *addresses, size_t count, void (*take)(struct ta__message *line, void *context),
                         void *context)
{
    int saved_errno = errno;
    struct frames frames = {addresses, 0, take, context};
    while (frames.count < count && frames.count < TA__DESCRIBED_FRAMES && addresses[frames.count] != 0)
        frames.count++;
    if (!ta__on_own_stack(WORKING_STACK, describe_frames, &frames))
        number_frames(&frames);
    errno = saved_errno;
}

/* ---- one pointer ------------------------------------------------------------------------------------------------- */

struct text {
    char *at;
    size_t room, length;
};

static void add_line(struct ta__message *line, void *context)
{
    struct text *text = context;
    line->text[line->length++] = '\n';
    for (size_t i = 0; i < line->length; i++, text->length++)
        if (text->length + 1 < text->room)
            text->at[text->length] = line->text[i];
}

static void add_heading(struct text *text, const char *heading)
{
    struct ta__message line;
    ta__message_begin_plain(&line);
    ta__message_text(&line, heading);
    add_line(&line, text);
}

static void add_stack(struct text *text, const char *heading, const uint64_t *frames, size_t count)
{
    if (count == 0 || frames[0] == 0)
        return;
    add_heading(text, heading);
    ta__describe_frames(frames, count, add_line, text);
}

static void add_block(struct ta__message *line, size_t inside, size_t size, uint32_t domain)
{
    if (inside != 0) {
        ta__message_count(line, inside, "byte");
        ta__message_text(line, " inside ");
    }
    ta__message_text(line, "a block of ");
    ta__message_count(line, size, "byte");
    const char *name = ta_domain_name(ta__domain_at(domain)->number);
    if (*name != '\0') {
        ta__message_text(line, " of domain ");
        ta__message_text(line, name);
    }
}

static int describe_live(struct ta__message *line, const void *pointer, struct text *text)
{
    struct ta__block_around block;
    if (!ta__live_block_around((uintptr_t)pointer, &block))
        return 0;
    add_block(line, (size_t)block.offset, block.size, block.domain);
    ta__message_text(line, block.leaf != 0 ? "" : ", which was not traced");
    add_line(line, text);
    uint64_t frames[TA__DESCRIBED_FRAMES];
    size_t count = block.leaf != 0 ? ta__leaf_frames(block.leaf, frames, TA__DESCRIBED_FRAMES) : 0;
    add_stack(text, "Allocated at (most recent call first):", frames, count);
    return 1;
}

static int describe_freed(struct ta__message *line, const void *pointer, struct text *text)
{
    struct ta__remembered_free freed;
    if (!ta__frees_recall(pointer, 0, &freed))
        return 0;
    add_block(line, (uintptr_t)pointer - freed.user, freed.size, (uint32_t)freed.domain);
    ta__message_text(line, ", which thread ");
    ta__message_number(line, freed.thread);
    ta__message_text(line, " freed");
    add_line(line, text);
    add_stack(text, "Freed at (most recent call first):", freed.freed, TA__REMEMBERED_FRAMES);
    add_stack(text, "Allocated at (most recent call first):", freed.allocated, TA__REMEMBERED_FRAMES);
    return 1;
}

/* In our memory, but no header tells what it is. */
static int describe_heap(struct ta__message *line, const void *pointer, struct text *text)
{
    const mi_page_t *page = ta__heap_page(pointer);
    if (page == NULL && !ta__heap_reaches(pointer))
        return 0;
    if (page != NULL && !ta__page_has_headers(page)) {
        ta__message_text(line, "in a block of at most ");
        ta__message_number(line, mi_page_usable_block_size(page));
        ta__message_text(line, " bytes, which was not traced and may be free");
    } else {
        ta__message_text(line, "in memory of the allocator, but in no live block: it was freed, or is a header");
    }
    add_line(line, text);
    return 1;
}

static int describe_stack(struct ta__message *line, const void *pointer, struct text *text)
{
    for (int slot = ta__safepoint_size(); slot-- > 0;) {
        const struct ta__thread *thread = (const struct ta__thread *)ta__safepoint_member(slot);
        uintptr_t low = ta__load_relaxed(&thread->stack_low), high = ta__load_relaxed(&thread->stack_high);
        if ((uintptr_t)pointer - low >= high - low)
            continue;
        ta__message_text(line, "on the stack of thread ");
        ta__message_number(line, (uint64_t)thread->tid);
        add_line(line, text);
        return 1;
    }
    return 0;
}

struct object_job {
    struct ta__message *line;
    const void *pointer;
    int is_found;
};

static void describe_object(void *argument)
{
    struct object_job *job = argument;
    struct place place;
    find_place(&place, (uintptr_t)job->pointer, 0);
    if (place.module == NULL)
        return;
    find_names(&place, 1, TA__SYMBOLS_OF_CODE | TA__SYMBOLS_OF_DATA);
    if (place.is_named) {
        add_name(job->line, &place);
        if (place.address != place.symbol) {
            ta__message_text(job->line, "+");
            ta__message_hex(job->line, place.address - place.symbol);
        }
        ta__message_text(job->line, " (");
    }
    add_position(job->line, &place);
    ta__message_text(job->line, place.is_named ? ")" : "");
    job->is_found = 1;
}

static int describe_static(struct ta__message *line, const void *pointer, struct text *text)
{
    struct object_job job = {line, pointer, 0};
    if (!ta__on_own_stack(WORKING_STACK, describe_object, &job) || !job.is_found)
        return 0;
    add_line(line, text);
    return 1;
}

TA_API size_t ta_describe(const void *pointer, char *buffer, size_t room)
{
    int saved_errno = errno;
    struct text text = {buffer, room, 0};
    struct ta__message line;
    ta__message_begin_plain(&line);
    ta__message_hex(&line, (uintptr_t)pointer);
    ta__message_text(&line, ": ");
    if (pointer == NULL) {
        ta__message_text(&line, "the null pointer");
        add_line(&line, &text);
    } else if (!ta__process_is_ready() ||
               (!describe_live(&line, pointer, &text) && !describe_freed(&line, pointer, &text) &&
                !describe_heap(&line, pointer, &text) && !describe_stack(&line, pointer, &text) &&
                !describe_static(&line, pointer, &text))) {
        ta__message_text(&line, ta__emergency_owns(pointer) ? "in a block that a signal handler asked for"
                                                            : "in no memory that is known");
        add_line(&line, &text);
    }
    if (room > 0)
        buffer[text.length < room ? text.length : room - 1] = '\0';
    errno = saved_errno;
    return text.length;
}
