/* layout.c: see layout.h. */
#include "analysis/image/layout.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/elf_notes.h"
#include "base/facts.h"

enum { NOTE_MOST = 64 << 10, SEGMENTS_MOST = 256 };
enum need { ALWAYS, TO_TRACE, OPTIONAL };

static const struct {
    const char *name;
    size_t place;
    enum need need;
} members[] = {
#define ALWAYS_ROW(member, text) {text, offsetof(struct ta__layout, member), ALWAYS},
#define TRACE_ROW(member, text)  {text, offsetof(struct ta__layout, member), TO_TRACE},
#define OPTION_ROW(member, text) {text, offsetof(struct ta__layout, member), OPTIONAL},
    TA__LAYOUT(ALWAYS_ROW, TRACE_ROW, OPTION_ROW)};
enum { MEMBERS = sizeof members / sizeof *members };

struct reading {
    struct ta__target *target;
    struct ta__layout *layout;
    unsigned char seen[MEMBERS];
};

static const char *file_of(const struct reading *reading)
{
    return reading->layout->object != NULL ? ta__target_string(reading->target, reading->layout->object->path) : "";
}

/* ---- facts ------------------------------------------------------------------------------------------------------- */

static int take_fact(struct reading *reading, const struct ta__fact *fact)
{
    const char *name = fact->name + (fact->name[0] == '!');
    for (size_t i = 0; i < MEMBERS; i++) {
        if (strcmp(members[i].name, name) != 0)
            continue;
        memcpy((char *)reading->layout + members[i].place, &fact->value, sizeof fact->value);
        reading->seen[i] = 1;
        return 0;
    }
    if (fact->name[0] != '!')
        return 0;
    return ta__fail("%s (tracealloc %s) publishes '%s', which this program does not know: use tracealloc %s",
                    file_of(reading), reading->layout->library, name, reading->layout->library);
}

static int take_list(struct reading *reading, uint64_t address)
{
    for (uint32_t i = 0; i < TA__FACTS_MOST; i++) {
        struct ta__fact fact;
        if (ta__target_peek(reading->target, address + i * sizeof fact, &fact, sizeof fact) != 0)
            return ta__fail("%s: what the library publishes of itself cannot be read", file_of(reading));
        if (fact.name[0] == '\0')
            return 0;
        if (memchr(fact.name, '\0', sizeof fact.name) == NULL)
            return ta__fail("%s: what the library publishes of itself is damaged", file_of(reading));
        if (take_fact(reading, &fact) != 0)
            return -1;
    }
    return 0;
}

static int check_all(const struct reading *reading)
{
    int can_trace = 0;
    for (size_t i = 0; i < MEMBERS; i++)
        can_trace |= members[i].need == TO_TRACE && reading->seen[i];
    reading->layout->can_trace = can_trace;
    for (size_t i = 0; i < MEMBERS; i++)
        if (!reading->seen[i] && (members[i].need == ALWAYS || (members[i].need == TO_TRACE && can_trace)))
            return ta__fail("%s (tracealloc %s) does not say '%s': use tracealloc %s to look at it", file_of(reading),
                            reading->layout->library, members[i].name, reading->layout->library);
    return 0;
}

static int read_root(struct reading *reading, uint64_t address)
{
    struct ta__facts_root root;
    struct ta__layout *layout = reading->layout;
    if (ta__target_peek(reading->target, address, &root, sizeof root) != 0)
        return ta__fail("%s: what the library publishes of itself is not in the memory at hand (an incomplete core?)",
                        file_of(reading));
    root.library[sizeof root.library - 1] = '\0';
    for (char *at = root.library; *at != '\0'; at++)
        *at = *at > ' ' && *at < 0x7F ? *at : '?';
    layout->version = root.version;
    memcpy(layout->library, root.library, sizeof root.library);
    if (root.version != TA__FACTS_VERSION)
        return ta__fail("%s (tracealloc %s) publishes its tables in version %u; this program knows version %d",
                        file_of(reading), root.library, root.version, TA__FACTS_VERSION);
    if (root.self != address || root.bytes != sizeof root || root.fact_bytes != sizeof(struct ta__fact) ||
        root.lists_most != TA__FACTS_LISTS)
        return ta__fail("%s: what the library publishes of itself is damaged, or the process has not begun yet",
                        file_of(reading));
    for (size_t i = 0; i < TA__FACTS_LISTS; i++)
        if (root.lists[i] != 0 && take_list(reading, root.lists[i]) != 0)
            return -1;
    return check_all(reading);
}

/* ---- the note ---------------------------------------------------------------------------------------------------- */

/* Where the root is by the notes at `address`: 1 when there is ours; -1 when it is of a version not known. */
static int find_note(struct reading *reading, uint64_t address, const uint8_t *notes, size_t bytes, uint64_t *root)
{
    struct ta__elf_note note;
    for (size_t at = 0; ta__elf_note_next(notes, bytes, &at, &note);) {
        uint64_t distance;
        uint32_t version = 0;
        if (!ta__elf_note_is_of(&note, TA__FACTS_NOTE_OWNER, sizeof TA__FACTS_NOTE_OWNER))
            continue;
        if (note.type != TA__FACTS_NOTE_TYPE || note.value_bytes < TA__FACTS_NOTE_BYTES)
            return ta__fail("%s: is of a tracealloc whose note (type %x) this program does not know", file_of(reading),
                            note.type);
        memcpy(&distance, note.value, sizeof distance);
        memcpy(&version, note.value + sizeof distance, sizeof version);
        if (version != TA__FACTS_VERSION)
            return ta__fail("%s: publishes its tables in version %u; this program knows version %d", file_of(reading),
                            version, TA__FACTS_VERSION);
        *root = address + (uint64_t)(note.value - notes) + distance;
        return 1;
    }
    return 0;
}

/* The bytes of the object at an address of the file's numbering: from memory, or from its file. */
static int fetch(const struct reading *reading, int file, const Elf64_Phdr *segment, uint8_t *bytes, size_t count)
{
    uint64_t address = reading->layout->object->bias + segment->p_vaddr;
    if (ta__target_peek(reading->target, address, bytes, count) == 0)
        return 0;
    return file >= 0 && pread(file, bytes, count, (off_t)segment->p_offset) == (ssize_t)count ? 0 : -1;
}

static int read_headers(const struct reading *reading, int file, Elf64_Phdr *headers)
{
    const struct ta__object_file *object = reading->layout->object;
    size_t bytes = object->phdr_count * sizeof *headers;
    if (object->phdr_count > SEGMENTS_MOST)
        return -1;
    if (ta__target_peek(reading->target, object->phdr, headers, bytes) == 0)
        return 0;
    return file >= 0 && pread(file, headers, bytes, (off_t)(object->phdr - object->start)) == (ssize_t)bytes ? 0 : -1;
}

static int look_into(struct reading *reading, const struct ta__object_file *object, uint64_t *root)
{
    Elf64_Phdr headers[SEGMENTS_MOST];
    uint8_t notes[4096];
    int found = 0;
    reading->layout->object = object;
    int file = reading->target->is_core ? ta__target_open_file(reading->target, file_of(reading)) : -1;
    if (read_headers(reading, file, headers) == 0)
        for (uint32_t i = 0; i < object->phdr_count && found == 0; i++) {
            const Elf64_Phdr *segment = &headers[i];
            size_t bytes = segment->p_filesz < sizeof notes ? (size_t)segment->p_filesz : sizeof notes;
            if (segment->p_type == PT_NOTE && fetch(reading, file, segment, notes, bytes) == 0)
                found = find_note(reading, object->bias + segment->p_vaddr, notes, bytes, root);
        }
    if (file >= 0)
        close(file);
    return found;
}

int ta__layout_read(struct ta__layout *layout, struct ta__target *target)
{
    struct reading *reading = ta__new_array(1, sizeof *reading);
    if (reading == NULL)
        return -1;
    memset(layout, 0, sizeof *layout);
    reading->target = target;
    reading->layout = layout;
    int result = 0, found = 0;
    uint64_t root = 0;
    for (size_t i = 0; i < target->object_count && found == 0; i++)
        found = look_into(reading, &target->objects[i], &root);
    if (found == 0)
        result =
            target->is_core
                ? ta__fail("the program of this core was not started with tracealloc (tracealloc run, LD_PRELOAD, or "
                           "linked), or what says so is missing from the core")
                : ta__fail("process %u was not started with tracealloc (tracealloc run, LD_PRELOAD, or linked)",
                           target->pid);
    else
        result = found < 0 ? -1 : read_root(reading, root);
    free(reading);
    return result;
}
